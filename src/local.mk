bin_PROGRAMS += mcpgated
mcpgated_SOURCES = src/main.c
mcpgated_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
# What is not linked cannot be attacked: tests/check-links.
mcpgated_LDADD = src/keeper/libkeeper.a src/config/libconfig.a src/cluster/libcluster.a src/endpoint/libendpoint.a src/policy/libpolicy.a src/jsonrpc/libjsonrpc.a src/auth/libauth.a \
	src/session/libsession.a src/mcp/libmcp.a src/io/libio.a src/obs/libobs.a src/base/libbase.a \
	$(YAML_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(CRYPTO_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS)
programsdir = $(libexecdir)/mcpgated
programs_PROGRAMS = mcpgated-fetch mcpgated-gateway mcpgated-reaper mcpgated-remote mcpgated-store
mcpgated_fetch_SOURCES = src/fetcher.c
mcpgated_fetch_LDADD = $(KEEPER_LIBS) $(CURL_LIBS) $(JWT_LIBS)
mcpgated_store_SOURCES = src/store.c
mcpgated_store_LDADD = $(KEEPER_LIBS) $(CLUSTER_LIBS)
mcpgated_gateway_SOURCES = \
	src/admin_server.c src/admin_server.h \
	src/gateway.c src/gateway.h \
	src/gateway_reload.c \
	src/ports.c src/ports.h \
	src/server_table.c src/server_table.h \
	src/server_certificates.c src/server_certificates.h
mcpgated_gateway_LDFLAGS = $(HARD_LDFLAGS) $(LTO_LDFLAGS)
mcpgated_gateway_LDADD = src/keeper/libkeeper.a src/config/libconfig.a $(ADMIN_LIBS) \
	$(JANSSON_LIBS) $(YAML_LIBS) $(SECCOMP_LIBS)
mcpgated_reaper_SOURCES = src/keeper/reaper_program.c
mcpgated_reaper_LDADD = src/keeper/libkeeper.a src/obs/libobs.a src/base/libbase.a $(UTF8PROC_LIBS)
# For the scenarios: the gateway with a mind of its own, and what it tries, unconfined.
noinst_PROGRAMS += tests/taken-over/mcpgated-gateway tests/taken-over/control
tests_taken_over_mcpgated_gateway_SOURCES = $(mcpgated_gateway_SOURCES) tests/taken-over.c
tests_taken_over_mcpgated_gateway_LDADD = $(mcpgated_gateway_LDADD)
tests_taken_over_control_SOURCES = tests/taken-over.c
tests_taken_over_control_CPPFLAGS = $(AM_CPPFLAGS) -DCONTROL
