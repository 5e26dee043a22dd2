noinst_LIBRARIES += src/trace/libtrace.a
src_trace_libtrace_a_SOURCES = \
	src/trace/exporter.c src/trace/exporter.h \
	src/trace/span.c src/trace/span.h
TRACE_LIBS = src/trace/libtrace.a src/mcp/libmcp.a src/jsonrpc/libjsonrpc.a $(AUTH_LIBS)
check_PROGRAMS += src/trace/exporter_test src/trace/span_test src/trace/trace_message_test
src_trace_exporter_test_SOURCES = src/trace/exporter_test.c src/trace/fake_fetcher.c src/trace/fake_fetcher.h
src_trace_exporter_test_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
src_trace_span_test_SOURCES = src/trace/span_test.c src/trace/fake_fetcher.c src/trace/fake_fetcher.h
src_trace_span_test_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
src_trace_trace_message_test_SOURCES = src/trace/trace_message_test.c
src_trace_trace_message_test_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
