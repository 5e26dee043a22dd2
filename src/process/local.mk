noinst_LIBRARIES += src/process/libprocess.a
src_process_libprocess_a_SOURCES = \
	src/process/backoff.c src/process/backoff.h \
	src/process/call_stats.c src/process/call_stats.h \
	src/process/era.c src/process/era.h \
	src/process/pin_memory.c src/process/pin_memory.h \
	src/process/server.c src/process/server.h \
	src/process/server_rules.c src/process/server_rules.h \
	src/process/stderr_ring.c src/process/stderr_ring.h \
	src/process/child.c src/process/child.h \
	src/process/spawn.c src/process/spawn.h
PROCESS_LIBS = src/process/libprocess.a src/mcp/libmcp.a $(POLICY_LIBS) $(IO_LIBS)
PROCESS_STAGE = src/process/stage.c src/process/stage.h src/process/fake_keeper.c src/process/fake_keeper.h
check_PROGRAMS += src/process/child_test src/process/server_test
src_process_child_test_SOURCES = src/process/child_test.c $(PROCESS_STAGE)
src_process_child_test_LDADD = $(PROCESS_LIBS) $(CMOCKA_LIBS)
src_process_server_test_SOURCES = src/process/server_test.c $(PROCESS_STAGE)
src_process_server_test_LDADD = $(PROCESS_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/process/spawn_test
src_process_spawn_test_SOURCES = src/process/spawn_test.c $(PROCESS_STAGE)
src_process_spawn_test_LDADD = $(PROCESS_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/process/call_stats_test
src_process_call_stats_test_SOURCES = src/process/call_stats_test.c
src_process_call_stats_test_LDADD = $(PROCESS_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/process/pin_memory_test
src_process_pin_memory_test_SOURCES = src/process/pin_memory_test.c
src_process_pin_memory_test_LDADD = $(PROCESS_LIBS) $(CMOCKA_LIBS)
