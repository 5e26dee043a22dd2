bin_PROGRAMS += mcpgated-demo
mcpgated_demo_SOURCES = \
	src/demo/call.c src/demo/call.h \
	src/demo/demo.c \
	src/demo/dispatch.c src/demo/dispatch.h \
	src/demo/job.c src/demo/job.h \
	src/demo/prompts.c src/demo/prompts.h \
	src/demo/resources.c src/demo/resources.h \
	src/demo/rpc.c src/demo/rpc.h \
	src/demo/server.h \
	src/demo/tools.c src/demo/tools.h
mcpgated_demo_LDADD = src/mcp/libmcp.a src/base/libbase.a $(JANSSON_LIBS)
dist_man_MANS += docs/man/mcpgated-demo.1
