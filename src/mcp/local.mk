noinst_LIBRARIES += src/mcp/libmcp.a
src_mcp_libmcp_a_SOURCES = \
	src/mcp/error.h \
	src/mcp/level.c src/mcp/level.h \
	src/mcp/method.c src/mcp/method.h \
	src/mcp/revision.c src/mcp/revision.h \
	src/mcp/trace_context.c src/mcp/trace_context.h
check_PROGRAMS += src/mcp/mcp_test
src_mcp_mcp_test_SOURCES = src/mcp/mcp_test.c
src_mcp_mcp_test_LDADD = src/mcp/libmcp.a src/base/libbase.a $(CMOCKA_LIBS)
