noinst_LIBRARIES += src/cluster/libcluster.a
src_cluster_libcluster_a_SOURCES = \
	src/cluster/cluster.c src/cluster/cluster.h \
	src/cluster/denial_line.c src/cluster/denial_line.h \
	src/cluster/log_copies.c src/cluster/log_copies.h \
	src/cluster/redis.c src/cluster/redis.h \
	src/cluster/store_service.c src/cluster/store_service.h \
	src/cluster/store_url.c src/cluster/store_url.h
CLUSTER_LIBS = src/cluster/libcluster.a $(HIREDIS_LIBS) $(ROUTER_LIBS)
check_PROGRAMS += src/cluster/cluster_test src/cluster/denial_line_test src/cluster/redis_test \
	src/cluster/log_copies_test src/cluster/store_service_test
src_cluster_redis_test_SOURCES = src/cluster/redis_test.c
src_cluster_redis_test_LDADD = $(CLUSTER_LIBS) $(CMOCKA_LIBS)
src_cluster_cluster_test_SOURCES = src/cluster/cluster_test.c $(POOL_STAGE)
src_cluster_cluster_test_LDADD = $(CLUSTER_LIBS) $(CMOCKA_LIBS)
src_cluster_denial_line_test_SOURCES = src/cluster/denial_line_test.c
src_cluster_denial_line_test_LDADD = $(CLUSTER_LIBS) $(CMOCKA_LIBS)
STORE_STAGE = src/cluster/store_stage.c src/cluster/store_stage.h
src_cluster_log_copies_test_SOURCES = src/cluster/log_copies_test.c $(STORE_STAGE)
src_cluster_log_copies_test_LDADD = $(CLUSTER_LIBS) $(CMOCKA_LIBS)
src_cluster_store_service_test_SOURCES = src/cluster/store_service_test.c $(STORE_STAGE)
src_cluster_store_service_test_LDADD = $(CLUSTER_LIBS) $(CMOCKA_LIBS)
