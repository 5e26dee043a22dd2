bin_PROGRAMS += mcpgated-demo
mcpgated_demo_SOURCES = src/demo/demo.c
mcpgated_demo_LDADD = src/mcp/libmcp.a src/base/libbase.a $(JANSSON_LIBS)
dist_man_MANS += docs/man/mcpgated-demo.1
