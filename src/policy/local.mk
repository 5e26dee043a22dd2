noinst_LIBRARIES += src/policy/libpolicy.a
src_policy_libpolicy_a_SOURCES = \
	src/policy/arguments.c src/policy/arguments.h \
	src/policy/call_limits.c src/policy/call_limits.h \
	src/policy/name.c src/policy/name.h \
	src/policy/paths.c src/policy/paths.h \
	src/policy/pattern.c src/policy/pattern.h \
	src/policy/permissions.c src/policy/permissions.h \
	src/policy/pins.c src/policy/pins.h \
	src/policy/rights.c src/policy/rights.h \
	src/policy/roles.c src/policy/roles.h \
	src/policy/shadows.c src/policy/shadows.h \
	src/policy/shown.c src/policy/shown.h \
	src/policy/sanitize.c src/policy/sanitize.h \
	src/policy/schema.c src/policy/schema.h \
	src/policy/schema_cache.c src/policy/schema_cache.h \
	src/policy/rule.c src/policy/rule.def src/policy/rule.h

POLICY_LIBS = src/policy/libpolicy.a src/jsonrpc/libjsonrpc.a src/mcp/libmcp.a src/obs/libobs.a src/base/libbase.a \
	$(PCRE2_LIBS) $(UTF8PROC_LIBS)
check_PROGRAMS += \
	src/policy/arguments_test \
	src/policy/name_test \
	src/policy/paths_test \
	src/policy/pattern_test \
	src/policy/pin_record_test \
	src/policy/pins_test \
	src/policy/shadows_test \
	src/policy/shown_test \
	src/policy/rate_test \
	src/policy/redact_test \
	src/policy/sanitize_test \
	src/policy/schema_test
src_policy_name_test_SOURCES = src/policy/name_test.c
src_policy_name_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/policy/call_limits_test src/policy/literal_test src/policy/needs_test src/policy/permissions_test \
	src/policy/roles_test src/policy/rule_test
src_policy_literal_test_SOURCES = src/policy/literal_test.c
src_policy_literal_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_call_limits_test_SOURCES = src/policy/call_limits_test.c
src_policy_call_limits_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/policy/scopes_test
src_policy_scopes_test_SOURCES = src/policy/scopes_test.c
src_policy_scopes_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_needs_test_SOURCES = src/policy/needs_test.c
src_policy_needs_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_rule_test_SOURCES = src/policy/rule_test.c
src_policy_rule_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_roles_test_SOURCES = src/policy/roles_test.c
src_policy_roles_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_permissions_test_SOURCES = src/policy/permissions_test.c
src_policy_permissions_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_pattern_test_SOURCES = src/policy/pattern_test.c
src_policy_pattern_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_rate_test_SOURCES = src/policy/rate_test.c
src_policy_rate_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_redact_test_SOURCES = src/policy/redact_test.c
src_policy_redact_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_sanitize_test_SOURCES = src/policy/sanitize_test.c
src_policy_sanitize_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_arguments_test_SOURCES = src/policy/arguments_test.c
src_policy_arguments_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_paths_test_SOURCES = src/policy/paths_test.c
src_policy_paths_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_pins_test_SOURCES = src/policy/pins_test.c
src_policy_pins_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_pin_record_test_SOURCES = src/policy/pin_record_test.c
src_policy_pin_record_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_shown_test_SOURCES = src/policy/shown_test.c
src_policy_shown_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_shadows_test_SOURCES = src/policy/shadows_test.c
src_policy_shadows_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
src_policy_schema_test_SOURCES = src/policy/schema_test.c
src_policy_schema_test_LDADD = $(POLICY_LIBS) $(CMOCKA_LIBS)
