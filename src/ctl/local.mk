bin_PROGRAMS += mcpgatectl
MCPGATECTL_GRID = \
	src/ctl/escape.c src/ctl/escape.h \
	src/ctl/text_table.c src/ctl/text_table.h
mcpgatectl_SOURCES = $(MCPGATECTL_GRID) \
	src/ctl/can.c src/ctl/can.h \
	src/ctl/challenge.c src/ctl/challenge.h \
	src/ctl/client.c src/ctl/client.h \
	src/ctl/complete.c src/ctl/complete.h \
	src/ctl/client_config.c src/ctl/client_config.h \
	src/ctl/ctl.c \
	src/ctl/line.c src/ctl/line.h \
	src/ctl/doctor.c src/ctl/doctor.h \
	src/ctl/finding.c src/ctl/finding.h \
	src/ctl/oauth.c src/ctl/oauth.h \
	src/ctl/mcp_client.c src/ctl/mcp_client.h \
	src/ctl/offers.c src/ctl/offers.h \
	src/ctl/pins.c src/ctl/pins.h \
	src/ctl/reload.c src/ctl/reload.h \
	src/ctl/show.c src/ctl/show.h \
	src/ctl/tools.c src/ctl/tools.h \
	src/ctl/top.c src/ctl/top.h \
	src/ctl/web.c src/ctl/web.h
mcpgatectl_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
mcpgatectl_LDADD = src/mcp/libmcp.a $(KEEPER_LIBS) $(CURL_LIBS)
dist_man_MANS += docs/man/mcpgatectl.1
check_PROGRAMS += src/ctl/challenge_test
src_ctl_challenge_test_SOURCES = src/ctl/challenge_test.c \
	src/ctl/challenge.c src/ctl/challenge.h
src_ctl_challenge_test_LDADD = src/base/libbase.a $(CMOCKA_LIBS)
check_PROGRAMS += src/ctl/complete_test
src_ctl_complete_test_SOURCES = src/ctl/complete_test.c src/ctl/complete.c src/ctl/complete.h \
	src/ctl/line.c src/ctl/line.h src/ctl/escape.c src/ctl/escape.h
src_ctl_complete_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/ctl/text_table_test
src_ctl_text_table_test_SOURCES = src/ctl/text_table_test.c $(MCPGATECTL_GRID)
src_ctl_text_table_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/ctl/tools_test src/ctl/top_test
src_ctl_tools_test_SOURCES = src/ctl/tools_test.c src/ctl/tools.c src/ctl/tools.h src/ctl/escape.c src/ctl/escape.h
src_ctl_tools_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
src_ctl_top_test_SOURCES = src/ctl/top_test.c src/ctl/top.c src/ctl/top.h $(MCPGATECTL_GRID)
src_ctl_top_test_LDADD = src/obs/libobs.a src/base/libbase.a $(UTF8PROC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/ctl/can_test src/ctl/reload_test
src_ctl_can_test_SOURCES = src/ctl/can_test.c src/ctl/can.c src/ctl/can.h src/ctl/escape.c src/ctl/escape.h
src_ctl_can_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
src_ctl_reload_test_SOURCES = src/ctl/reload_test.c src/ctl/reload.c src/ctl/reload.h src/ctl/escape.c src/ctl/escape.h
src_ctl_reload_test_LDADD = src/base/libbase.a $(UTF8PROC_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
