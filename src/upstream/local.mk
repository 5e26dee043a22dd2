noinst_LIBRARIES += src/upstream/libupstream.a
src_upstream_libupstream_a_SOURCES = \
	src/upstream/send.c src/upstream/send.h src/upstream/held.c src/upstream/held.h \
	src/upstream/credential.c src/upstream/credential.h src/upstream/stdio.c src/upstream/stdio.h \
	src/upstream/prestart.c src/upstream/prestart.h \
	src/upstream/upstream.c src/upstream/upstream.h src/upstream/upstream_ops.h
UPSTREAM_LIBS = src/upstream/libupstream.a src/session/libsession.a $(PROCESS_LIBS) $(AUTH_LIBS)
check_PROGRAMS += src/upstream/intake_test
src_upstream_intake_test_SOURCES = src/upstream/intake_test.c
src_upstream_intake_test_LDADD = $(UPSTREAM_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/upstream/held_test
src_upstream_held_test_SOURCES = src/upstream/held_test.c
src_upstream_held_test_LDADD = $(UPSTREAM_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/upstream/send_test
src_upstream_send_test_SOURCES = src/upstream/send_test.c
src_upstream_send_test_LDADD = $(UPSTREAM_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/upstream/long_line_test
src_upstream_long_line_test_SOURCES = src/upstream/long_line_test.c
src_upstream_long_line_test_LDADD = $(UPSTREAM_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/upstream/credential_test
src_upstream_credential_test_SOURCES = src/upstream/credential_test.c
src_upstream_credential_test_LDADD = $(UPSTREAM_LIBS) $(CMOCKA_LIBS)
