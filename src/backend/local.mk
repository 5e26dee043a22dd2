noinst_LIBRARIES += src/backend/libbackend.a
src_backend_libbackend_a_SOURCES = \
	src/backend/backend.c src/backend/backend.h \
	src/backend/backlog.c src/backend/backlog.h \
	src/backend/child.c src/backend/child.h \
	src/backend/spawn.c src/backend/spawn.h
FAKE_KEEPER = src/backend/fake_keeper.c src/backend/fake_keeper.h
check_PROGRAMS += src/backend/child_test
src_backend_child_test_SOURCES = src/backend/child_test.c $(FAKE_KEEPER)
src_backend_child_test_LDADD = src/backend/libbackend.a $(IO_LIBS) $(CMOCKA_LIBS)
