noinst_LIBRARIES += src/endpoint/libendpoint.a
src_endpoint_libendpoint_a_SOURCES = \
	src/endpoint/admission.c src/endpoint/admission.h \
	src/endpoint/aggregate.c src/endpoint/aggregate.h \
	src/endpoint/answer.c src/endpoint/answer.h \
	src/endpoint/caller.c src/endpoint/caller.h \
	src/endpoint/caller_claims.c src/endpoint/caller_claims.h \
	src/endpoint/catalogue.c src/endpoint/catalogue.h \
	src/endpoint/frontend.c src/endpoint/frontend.h \
	src/endpoint/authorization.c src/endpoint/authorization.h \
	src/endpoint/http_sse.c src/endpoint/http_sse.h \
	src/endpoint/leg.c src/endpoint/leg.h \
	src/endpoint/modern.c src/endpoint/modern.h \
	src/endpoint/metadata.c src/endpoint/metadata.h \
	src/endpoint/origin.c src/endpoint/origin.h \
	src/endpoint/search.c src/endpoint/search.h \
	src/endpoint/streamable.c src/endpoint/streamable.h
ENDPOINT_LIBS = src/endpoint/libendpoint.a src/cluster/libcluster.a src/http/libhttp.a $(ROUTER_LIBS) $(AUTH_LIBS)
check_PROGRAMS += src/endpoint/failures_test src/endpoint/frontend_test src/endpoint/token_watch_test
check_PROGRAMS += src/endpoint/origin_test
src_endpoint_origin_test_SOURCES = src/endpoint/origin_test.c
src_endpoint_origin_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_failures_test_SOURCES = src/endpoint/failures_test.c
src_endpoint_failures_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_frontend_test_SOURCES = src/endpoint/frontend_test.c $(ROUTER_STAGE)
src_endpoint_frontend_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/caller_test
src_endpoint_caller_test_SOURCES = src/endpoint/caller_test.c $(ROUTER_STAGE)
src_endpoint_caller_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_token_watch_test_SOURCES = src/endpoint/token_watch_test.c $(ROUTER_STAGE)
src_endpoint_token_watch_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/authorization_test
src_endpoint_authorization_test_SOURCES = src/endpoint/authorization_test.c $(ROUTER_STAGE)
src_endpoint_authorization_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/modern_test src/endpoint/modern_params_test
src_endpoint_modern_test_SOURCES = src/endpoint/modern_test.c
src_endpoint_modern_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_modern_params_test_SOURCES = src/endpoint/modern_params_test.c
src_endpoint_modern_params_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/trace_test
src_endpoint_trace_test_SOURCES = src/endpoint/trace_test.c
src_endpoint_trace_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/catalogue_test
src_endpoint_catalogue_test_SOURCES = src/endpoint/catalogue_test.c
src_endpoint_catalogue_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/endpoint/search_test
src_endpoint_search_test_SOURCES = src/endpoint/search_test.c
src_endpoint_search_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
