noinst_LIBRARIES += src/session/libsession.a
src_session_libsession_a_SOURCES = \
	src/session/denials.c src/session/denials.h \
	src/session/heirloom.c src/session/heirloom.h \
	src/session/principal.c src/session/principal.h \
	src/session/session.c src/session/session.h \
	src/session/store.c src/session/store.h \
	src/session/stream.c src/session/stream.h
SESSION_LIBS = src/session/libsession.a src/jsonrpc/libjsonrpc.a $(IO_LIBS)
check_PROGRAMS += src/session/denials_test src/session/heirloom_test src/session/principal_test src/session/session_test src/session/store_test src/session/stream_test
src_session_denials_test_SOURCES = src/session/denials_test.c
src_session_denials_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_heirloom_test_SOURCES = src/session/heirloom_test.c
src_session_heirloom_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_principal_test_SOURCES = src/session/principal_test.c
src_session_principal_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_session_test_SOURCES = src/session/session_test.c
src_session_session_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_store_test_SOURCES = src/session/store_test.c
src_session_store_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
src_session_stream_test_SOURCES = src/session/stream_test.c
src_session_stream_test_LDADD = $(SESSION_LIBS) $(CMOCKA_LIBS)
