REMOTE_SOURCES = \
	src/remote/event_reader.c src/remote/event_reader.h \
	src/remote/message_headers.c src/remote/message_headers.h \
	src/remote/tools.c src/remote/tools.h
mcpgated_remote_SOURCES = src/remote/remote.c src/remote/arguments.c src/remote/arguments.h src/remote/exchange.c src/remote/exchange.h $(REMOTE_SOURCES)
mcpgated_remote_LDADD = $(KEEPER_LIBS) $(CURL_LIBS)
REMOTE_TEST_LIBS = src/jsonrpc/libjsonrpc.a src/mcp/libmcp.a src/base/libbase.a $(CRYPTO_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/remote/event_reader_test src/remote/message_headers_test
src_remote_event_reader_test_SOURCES = src/remote/event_reader_test.c $(REMOTE_SOURCES)
src_remote_event_reader_test_LDADD = $(REMOTE_TEST_LIBS)
src_remote_message_headers_test_SOURCES = src/remote/message_headers_test.c $(REMOTE_SOURCES)
src_remote_message_headers_test_LDADD = $(REMOTE_TEST_LIBS)
