noinst_LIBRARIES += src/obs/libobs.a
src_obs_libobs_a_SOURCES = \
	src/obs/counters.c src/obs/counters.h \
	src/obs/audit.c src/obs/audit.h src/obs/audit.def \
	src/obs/line.c src/obs/line.h \
	src/obs/log.c src/obs/log.h src/obs/log_events.def \
	src/obs/latency_histogram.c src/obs/latency_histogram.h \
	src/obs/metric.c src/obs/metric.h src/obs/metrics.def \
	src/obs/process_usage.c src/obs/process_usage.h \
	src/obs/reason.c src/obs/reason.h src/obs/reason.def
check_PROGRAMS += src/obs/obs_test src/obs/audit_test
src_obs_obs_test_SOURCES = src/obs/obs_test.c
src_obs_obs_test_LDADD = src/obs/libobs.a src/base/libbase.a $(UTF8PROC_LIBS) $(CMOCKA_LIBS)
src_obs_audit_test_SOURCES = src/obs/audit_test.c
src_obs_audit_test_LDADD = src/obs/libobs.a src/base/libbase.a $(UTF8PROC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/obs/metric_test
src_obs_metric_test_SOURCES = src/obs/metric_test.c
src_obs_metric_test_LDADD = src/obs/libobs.a src/base/libbase.a $(UTF8PROC_LIBS) $(CMOCKA_LIBS)
