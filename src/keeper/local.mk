noinst_LIBRARIES += src/keeper/libkeeper.a
src_keeper_libkeeper_a_SOURCES = \
	src/keeper/announcement.c src/keeper/announcement.h \
	src/keeper/cgroups.c src/keeper/cgroups.h \
	src/keeper/children.c src/keeper/children.h \
	src/keeper/confine.c src/keeper/confine.h \
	src/keeper/gateway_entry.c src/keeper/gateway_entry.h \
	src/keeper/handover.c src/keeper/handover.h \
	src/keeper/records.c src/keeper/records.h \
	src/keeper/keeper.c src/keeper/keeper.h \
	src/keeper/launch.c src/keeper/launch.h \
	src/keeper/listeners.c src/keeper/listeners.h \
	src/keeper/kernel_features.c src/keeper/kernel_features.h \
	src/keeper/new_process.c src/keeper/new_process.h \
	src/keeper/program_entry.c src/keeper/program_entry.h \
	src/keeper/programs.c src/keeper/programs.h \
	src/keeper/sandbox.c src/keeper/sandbox.h \
	src/keeper/sandbox_advice.c src/keeper/sandbox_advice.h \
	src/keeper/sandbox_report.c src/keeper/sandbox_report.h \
	src/keeper/server_slots.c src/keeper/server_slots.h \
	src/keeper/reload.c src/keeper/reload.h \
	src/keeper/text_store.c src/keeper/text_store.h \
	src/keeper/upgrade.c src/keeper/upgrade.h \
	src/keeper/syscall_filter.c src/keeper/syscall_filter.h
KEEPER_LIBS = src/keeper/libkeeper.a src/config/libconfig.a src/cluster/libcluster.a src/endpoint/libendpoint.a src/policy/libpolicy.a src/jsonrpc/libjsonrpc.a \
	$(PCRE2_LIBS) src/auth/libauth.a src/mcp/libmcp.a $(IO_LIBS) $(YAML_LIBS) $(AUTH_LIBS) $(SECCOMP_LIBS)
check_PROGRAMS += src/keeper/keeper_test
src_keeper_keeper_test_SOURCES = src/keeper/keeper_test.c
EXTRA_src_keeper_keeper_test_DEPENDENCIES = mcpgated-reaper$(EXEEXT)
src_keeper_keeper_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/cgroups_test src/keeper/sandbox_test src/keeper/sandbox_advice_test src/keeper/sandbox_report_test
src_keeper_sandbox_report_test_SOURCES = src/keeper/sandbox_report_test.c
src_keeper_sandbox_report_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_sandbox_advice_test_SOURCES = src/keeper/sandbox_advice_test.c
src_keeper_sandbox_advice_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_sandbox_test_SOURCES = src/keeper/sandbox_test.c
src_keeper_sandbox_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/confine_test
src_keeper_confine_test_SOURCES = src/keeper/confine_test.c
src_keeper_confine_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_cgroups_test_SOURCES = src/keeper/cgroups_test.c
src_keeper_cgroups_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/audit_writer_test src/keeper/log_writer_test src/keeper/restart_test
src_keeper_audit_writer_test_SOURCES = src/keeper/audit_writer_test.c
src_keeper_audit_writer_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_log_writer_test_SOURCES = src/keeper/log_writer_test.c
src_keeper_log_writer_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_restart_test_SOURCES = src/keeper/restart_test.c
src_keeper_restart_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/memory_file_test src/keeper/operator_test src/keeper/children_test
check_PROGRAMS += src/keeper/launch_test
src_keeper_launch_test_SOURCES = src/keeper/launch_test.c
src_keeper_launch_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_children_test_SOURCES = src/keeper/children_test.c
src_keeper_children_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_memory_file_test_SOURCES = src/keeper/memory_file_test.c
src_keeper_memory_file_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_operator_test_SOURCES = src/keeper/operator_test.c
src_keeper_operator_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/reload_test src/keeper/server_slots_test
src_keeper_server_slots_test_SOURCES = src/keeper/server_slots_test.c
src_keeper_server_slots_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_reload_test_SOURCES = src/keeper/reload_test.c
src_keeper_reload_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/upgrade_test
src_keeper_upgrade_test_SOURCES = src/keeper/upgrade_test.c
src_keeper_upgrade_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/reaper_test
src_keeper_reaper_test_SOURCES = src/keeper/reaper_test.c
EXTRA_src_keeper_reaper_test_DEPENDENCIES = mcpgated-reaper$(EXEEXT)
src_keeper_reaper_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/syscall_filter_test
src_keeper_syscall_filter_test_SOURCES = src/keeper/syscall_filter_test.c
src_keeper_syscall_filter_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/announcement_test
src_keeper_announcement_test_SOURCES = src/keeper/announcement_test.c
src_keeper_announcement_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/text_store_test
src_keeper_text_store_test_SOURCES = src/keeper/text_store_test.c
src_keeper_text_store_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/state_file_test
src_keeper_state_file_test_SOURCES = src/keeper/state_file_test.c
src_keeper_state_file_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/new_process_test
src_keeper_new_process_test_SOURCES = src/keeper/new_process_test.c
src_keeper_new_process_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/keeper/kernel_features_test src/keeper/listeners_test
src_keeper_kernel_features_test_SOURCES = src/keeper/kernel_features_test.c
src_keeper_kernel_features_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
src_keeper_listeners_test_SOURCES = src/keeper/listeners_test.c
src_keeper_listeners_test_LDADD = $(KEEPER_LIBS) $(CMOCKA_LIBS)
