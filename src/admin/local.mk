noinst_LIBRARIES += src/admin/libadmin.a
src_admin_libadmin_a_SOURCES = \
	src/admin/admin.c src/admin/admin.h \
	src/admin/commands.c \
	src/admin/facts.def \
	src/admin/json.c src/admin/json.h \
	src/admin/metrics.c \
	src/admin/page.c src/admin/page.h \
	src/admin/problems.c src/admin/problems.def src/admin/problems.h \
	src/admin/reports.c src/admin/reports.h
nodist_src_admin_libadmin_a_SOURCES = src/admin/page_files.c
# The status page becomes a part of the program.
page_files = src/admin/page/generate src/admin/page/icon.svg src/admin/page/index.html src/admin/page/page.css src/admin/page/page.js
EXTRA_DIST += $(page_files)
CLEANFILES += src/admin/page_files.c
src/admin/page_files.c: $(page_files)
	$(AM_V_GEN)$(MKDIR_P) src/admin && sh '$(srcdir)/src/admin/page/generate' '$(srcdir)/src/admin/page' > $@.tmp && mv $@.tmp $@
ADMIN_LIBS = src/admin/libadmin.a $(ENDPOINT_LIBS)
check_PROGRAMS += src/admin/admin_test src/admin/page_test
src_admin_page_test_SOURCES = src/admin/page_test.c $(ROUTER_STAGE)
src_admin_page_test_LDADD = $(ADMIN_LIBS) $(CMOCKA_LIBS)
src_admin_admin_test_SOURCES = src/admin/admin_test.c $(ROUTER_STAGE)
src_admin_admin_test_LDADD = $(ADMIN_LIBS) $(CMOCKA_LIBS)
