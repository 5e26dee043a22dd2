noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	src/base/at_end.c src/base/at_end.h \
	src/base/buf.c src/base/buf.h \
	src/base/check.c src/base/check.h \
	src/base/clock.c src/base/clock.h \
	src/base/error.c src/base/error.h \
	src/base/halves.c src/base/halves.h \
	src/base/heap.c src/base/heap.h \
	src/base/list.h \
	src/base/map.c src/base/map.h \
	src/base/mem.c src/base/mem.h \
	src/base/pause.c src/base/pause.h \
	src/base/random.c src/base/random.h \
	src/base/ranking.c src/base/ranking.h \
	src/base/slice.h \
	src/base/tally.c src/base/tally.h \
	src/base/text.c src/base/text.h \
	src/base/unicode.c src/base/unicode.h
check_PROGRAMS += src/base/base_test src/base/heap_test src/base/mem_test src/base/unicode_test
src_base_base_test_SOURCES = src/base/base_test.c src/base/unit_test.h
src_base_base_test_LDADD = src/base/libbase.a $(CMOCKA_LIBS)
# Not sanitised: it is about the heap of the C library.
src_base_heap_test_SOURCES = src/base/heap_test.c src/base/heap.c
src_base_heap_test_CFLAGS = $(WARN_CFLAGS)
src_base_heap_test_LDFLAGS =
src_base_heap_test_LDADD = $(CMOCKA_LIBS)
src_base_mem_test_SOURCES = src/base/mem_test.c src/base/unit_test.h
src_base_mem_test_LDADD = src/base/libbase.a $(CMOCKA_LIBS)
src_base_unicode_test_SOURCES = src/base/unicode_test.c src/base/unit_test.h
src_base_unicode_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(CMOCKA_LIBS)
