noinst_LIBRARIES += src/admin/libadmin.a
src_admin_libadmin_a_SOURCES = \
	src/admin/admin.c src/admin/admin.h \
	src/admin/admin_reply.c src/admin/admin_reply.h \
	src/admin/can.c src/admin/can.h \
	src/admin/can_request.c src/admin/can_request.h \
	src/admin/deny.c src/admin/deny.h \
	src/admin/logs.c src/admin/logs.h \
	src/admin/metrics.c \
	src/admin/deny_request.c src/admin/deny_request.h \
	src/admin/order.c src/admin/order.h \
	src/admin/page.c src/admin/page.h \
	src/admin/page_file.h \
	src/admin/pin_orders.c src/admin/pin_orders.h \
	src/admin/reload_order.c src/admin/reload_order.h \
	src/admin/reports.c src/admin/reports.h \
	src/admin/value.c src/admin/value.h \
	src/admin/viewers.c src/admin/viewers.h
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
