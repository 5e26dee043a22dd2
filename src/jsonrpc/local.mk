noinst_LIBRARIES += src/jsonrpc/libjsonrpc.a
src_jsonrpc_libjsonrpc_a_SOURCES = \
	src/jsonrpc/canonical.c src/jsonrpc/canonical.h \
	src/jsonrpc/grammar.c src/jsonrpc/grammar.h \
	src/jsonrpc/param_headers.c src/jsonrpc/param_headers.h \
	src/jsonrpc/scan.c src/jsonrpc/scan.h \
	src/jsonrpc/scan_lookup.c \
	src/jsonrpc/write.c src/jsonrpc/write.h

JSONRPC_TEST_LIBS = src/jsonrpc/libjsonrpc.a src/base/libbase.a $(CMOCKA_LIBS)
check_PROGRAMS += \
	src/jsonrpc/canonical_test \
	src/jsonrpc/grammar_test \
	src/jsonrpc/scan_test \
	src/jsonrpc/scan_lookup_test \
	src/jsonrpc/splice_test \
	src/jsonrpc/msg_test \
	src/jsonrpc/plain_test \
	src/jsonrpc/value_test \
	src/jsonrpc/write_test
src_jsonrpc_canonical_test_SOURCES = src/jsonrpc/canonical_test.c
src_jsonrpc_canonical_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_grammar_test_SOURCES = src/jsonrpc/grammar_test.c
src_jsonrpc_grammar_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_scan_test_SOURCES = src/jsonrpc/scan_test.c
src_jsonrpc_scan_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_scan_lookup_test_SOURCES = src/jsonrpc/scan_lookup_test.c
src_jsonrpc_scan_lookup_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_splice_test_SOURCES = src/jsonrpc/splice_test.c
src_jsonrpc_splice_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_msg_test_SOURCES = src/jsonrpc/msg_test.c
src_jsonrpc_msg_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_write_test_SOURCES = src/jsonrpc/write_test.c
src_jsonrpc_write_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_plain_test_SOURCES = src/jsonrpc/plain_test.c
src_jsonrpc_plain_test_LDADD = $(JSONRPC_TEST_LIBS)
src_jsonrpc_value_test_SOURCES = src/jsonrpc/value_test.c
src_jsonrpc_value_test_LDADD = $(JSONRPC_TEST_LIBS)
