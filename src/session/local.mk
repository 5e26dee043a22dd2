noinst_LIBRARIES += src/session/libsession.a
src_session_libsession_a_SOURCES = \
	src/session/deny_list.c src/session/deny_list.h \
	src/session/principal.c src/session/principal.h \
	src/session/session.c src/session/session.h \
	src/session/stream.c src/session/stream.h \
	src/session/stream_log.c src/session/stream_log.h
SESSION_LIBS = src/session/libsession.a src/jsonrpc/libjsonrpc.a $(IO_LIBS)
check_PROGRAMS += src/session/deny_list_test src/session/deny_snapshot_test src/session/principal_test src/session/session_test src/session/replay_store_test src/session/stream_test src/session/stream_log_test
src_session_deny_list_test_SOURCES = src/session/deny_list_test.c
src_session_deny_list_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_deny_snapshot_test_SOURCES = src/session/deny_snapshot_test.c
src_session_deny_snapshot_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_principal_test_SOURCES = src/session/principal_test.c
src_session_principal_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_session_test_SOURCES = src/session/session_test.c
src_session_session_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_replay_store_test_SOURCES = src/session/replay_store_test.c
src_session_replay_store_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_stream_test_SOURCES = src/session/stream_test.c
src_session_stream_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/session/holder_test
src_session_holder_test_SOURCES = src/session/holder_test.c
src_session_holder_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_stream_log_test_SOURCES = src/session/stream_log_test.c
src_session_stream_log_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
