bin_PROGRAMS += mcpgatectl
noinst_LIBRARIES += src/ctl/libctl.a
src_ctl_libctl_a_SOURCES = \
	src/ctl/adopt.c src/ctl/shareable.def \
	src/ctl/adopted.c src/ctl/adopted.h \
	src/ctl/client.c src/ctl/client.h \
	src/ctl/client_config.c src/ctl/client_config.h \
	src/ctl/commands.h \
	src/ctl/complete.c src/ctl/complete.h \
	src/ctl/connect.c \
	src/ctl/doctor.c \
	src/ctl/edit_file.c src/ctl/edit_file.h \
	src/ctl/entry_text.c src/ctl/entry_text.h \
	src/ctl/line.c src/ctl/line.h \
	src/ctl/oauth.c \
	src/ctl/offers.c \
	src/ctl/orders.c \
	src/ctl/output.c src/ctl/output.h \
	src/ctl/show.c
CTL_LIBS = src/ctl/libctl.a src/mcp/libmcp.a $(KEEPER_LIBS) $(CURL_LIBS) $(JWT_LIBS)
mcpgatectl_SOURCES = src/ctl/ctl.c
mcpgatectl_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
mcpgatectl_LDADD = $(CTL_LIBS)
dist_man_MANS += docs/man/mcpgatectl.1
check_PROGRAMS += \
	src/ctl/can_test \
	src/ctl/challenge_test \
	src/ctl/complete_test \
	src/ctl/edit_file_test \
	src/ctl/reload_test \
	src/ctl/text_table_test \
	src/ctl/tools_test \
	src/ctl/top_test
src_ctl_can_test_SOURCES = src/ctl/can_test.c
src_ctl_can_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_challenge_test_SOURCES = src/ctl/challenge_test.c
src_ctl_challenge_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_complete_test_SOURCES = src/ctl/complete_test.c
src_ctl_complete_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_edit_file_test_SOURCES = src/ctl/edit_file_test.c
src_ctl_edit_file_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_reload_test_SOURCES = src/ctl/reload_test.c
src_ctl_reload_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_text_table_test_SOURCES = src/ctl/text_table_test.c
src_ctl_text_table_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_tools_test_SOURCES = src/ctl/tools_test.c
src_ctl_tools_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
src_ctl_top_test_SOURCES = src/ctl/top_test.c
src_ctl_top_test_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
