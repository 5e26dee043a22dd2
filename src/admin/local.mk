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
	src/admin/pin_orders.c src/admin/pin_orders.h \
	src/admin/reload_order.c src/admin/reload_order.h \
	src/admin/reports.c src/admin/reports.h \
	src/admin/value.c src/admin/value.h
ADMIN_LIBS = src/admin/libadmin.a $(ENDPOINT_LIBS)
check_PROGRAMS += src/admin/admin_test
src_admin_admin_test_SOURCES = src/admin/admin_test.c $(ROUTER_STAGE)
src_admin_admin_test_LDADD = $(ADMIN_LIBS) $(CMOCKA_LIBS)
