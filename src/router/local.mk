noinst_LIBRARIES += src/router/librouter.a
src_router_librouter_a_SOURCES = \
	src/router/bridged_call.c src/router/bridged_call.h \
	src/router/audit_call.c src/router/audit_call.h \
	src/router/call.c src/router/call.h \
	src/router/call_check.c src/router/call_check.h \
	src/router/wait_queue.c src/router/wait_queue.h \
	src/router/client.c src/router/client.h \
	src/router/client_request.c src/router/client_request.h \
	src/router/era.c src/router/era.h \
	src/router/client_session.c src/router/client_session.h \
	src/router/convert.c src/router/convert.h \
	src/router/pages.c src/router/pages.h \
	src/router/digest.c src/router/digest.h \
	src/router/dispatch.c src/router/dispatch.h \
	src/router/forward.c src/router/forward.h \
	src/router/change_listener.c src/router/change_listener.h \
	src/router/input_loop.c src/router/input_loop.h \
	src/router/lists.c src/router/lists.h \
	src/router/listing.c src/router/listing.h \
	src/router/listen.c src/router/listen.h \
	src/router/modern_tasks.c src/router/modern_tasks.h \
	src/router/subscriptions.c src/router/subscriptions.h \
	src/router/kept_pools.c src/router/kept_pools.h \
	src/router/kept_sessions.c src/router/kept_sessions.h \
	src/router/parked_call.c src/router/parked_call.h \
	src/router/pool.c src/router/pool.h \
	src/router/pool_memory.c src/router/pool_memory.h \
	src/router/process_slots.c src/router/process_slots.h \
	src/router/router.c src/router/router.h \
	src/router/result.c src/router/result.h \
	src/router/running_tasks.c src/router/running_tasks.h \
	src/router/seal.c src/router/seal.h \
	src/router/server_messages.c src/router/server_messages.h \
	src/router/server_request.c src/router/server_request.h \
	src/router/text_set.c src/router/text_set.h \
	src/router/url_pending.c src/router/url_pending.h \
	src/router/url_replay.c src/router/url_replay.h
ROUTER_LIBS = src/router/librouter.a src/trace/libtrace.a src/upstream/libupstream.a src/process/libprocess.a src/session/libsession.a \
	src/policy/libpolicy.a src/jsonrpc/libjsonrpc.a src/mcp/libmcp.a $(PCRE2_LIBS) $(AUTH_LIBS)
check_PROGRAMS += src/router/convert_test src/router/router_test
src_router_convert_test_SOURCES = src/router/convert_test.c
src_router_convert_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
ROUTER_STAGE = src/router/stage.c src/router/stage.h $(PROCESS_STAGE)
CLIENT_STAGE = src/router/client_stage.c src/router/client_stage.h $(ROUTER_STAGE)
src_router_router_test_SOURCES = src/router/router_test.c $(CLIENT_STAGE)
src_router_router_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/reclaim_test
src_router_reclaim_test_SOURCES = src/router/reclaim_test.c $(CLIENT_STAGE)
src_router_reclaim_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
POOL_STAGE = src/router/pool_stage.c src/router/pool_stage.h $(CLIENT_STAGE)
check_PROGRAMS += src/router/process_slots_test src/router/call_record_test
src_router_call_record_test_SOURCES = src/router/call_record_test.c src/router/span_stage.c src/router/span_stage.h \
	src/trace/fake_fetcher.c src/trace/fake_fetcher.h $(POOL_STAGE)
src_router_call_record_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_process_slots_test_SOURCES = src/router/process_slots_test.c $(POOL_STAGE)
src_router_process_slots_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/kept_sessions_test
src_router_kept_sessions_test_SOURCES = src/router/kept_sessions_test.c $(POOL_STAGE)
src_router_kept_sessions_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += src/router/pool_memory_test
src_router_pool_memory_test_SOURCES = src/router/pool_memory_test.c $(POOL_STAGE)
src_router_pool_memory_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/pool_test src/router/pool_random_test src/router/lists_test
src_router_pool_test_SOURCES = src/router/pool_test.c $(POOL_STAGE)
src_router_pool_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_pool_random_test_SOURCES = src/router/pool_random_test.c $(POOL_STAGE)
src_router_pool_random_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_lists_test_SOURCES = src/router/lists_test.c $(POOL_STAGE)
src_router_lists_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/call_check_test src/router/list_wait_test
src_router_list_wait_test_SOURCES = src/router/list_wait_test.c $(CLIENT_STAGE)
src_router_list_wait_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_call_check_test_SOURCES = src/router/call_check_test.c $(POOL_STAGE)
src_router_call_check_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/pages_test src/router/subscriptions_test src/router/text_set_test
src_router_text_set_test_SOURCES = src/router/text_set_test.c
src_router_text_set_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_subscriptions_test_SOURCES = src/router/subscriptions_test.c
src_router_subscriptions_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_pages_test_SOURCES = src/router/pages_test.c
src_router_pages_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/pinning_test
src_router_pinning_test_SOURCES = src/router/pinning_test.c
src_router_pinning_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/audit_call_test src/router/digest_test src/router/passed_result_test src/router/seal_test
src_router_passed_result_test_SOURCES = src/router/passed_result_test.c
src_router_passed_result_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_audit_call_test_SOURCES = src/router/audit_call_test.c
src_router_audit_call_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_digest_test_SOURCES = src/router/digest_test.c
src_router_digest_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_seal_test_SOURCES = src/router/seal_test.c
src_router_seal_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/parked_call_test src/router/parked_random_test
src_router_parked_call_test_SOURCES = src/router/parked_call_test.c
src_router_parked_call_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_parked_random_test_SOURCES = src/router/parked_random_test.c
src_router_parked_random_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/url_elicitation_test src/router/url_replay_test
src_router_url_elicitation_test_SOURCES = src/router/url_elicitation_test.c
src_router_url_elicitation_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
REQUEST_STAGE = src/router/request_stage.c src/router/request_stage.h $(POOL_STAGE)
src_router_url_replay_test_SOURCES = src/router/url_replay_test.c $(REQUEST_STAGE)
check_PROGRAMS += src/router/bridged_call_test src/router/change_listener_test src/router/odd_servers_test
src_router_change_listener_test_SOURCES = src/router/change_listener_test.c $(REQUEST_STAGE)
src_router_change_listener_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_odd_servers_test_SOURCES = src/router/odd_servers_test.c $(REQUEST_STAGE)
src_router_odd_servers_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_bridged_call_test_SOURCES = src/router/bridged_call_test.c $(REQUEST_STAGE)
src_router_bridged_call_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_url_replay_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/wait_queue_test
src_router_wait_queue_test_SOURCES = src/router/wait_queue_test.c
src_router_wait_queue_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
ERA_STAGE = src/router/era_stage.c src/router/era_stage.h $(POOL_STAGE)
check_PROGRAMS += src/router/trial_test
src_router_trial_test_SOURCES = src/router/trial_test.c $(ERA_STAGE)
src_router_trial_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/era_test src/router/input_loop_test src/router/listen_test
src_router_input_loop_test_SOURCES = src/router/input_loop_test.c $(ERA_STAGE)
src_router_input_loop_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_listen_test_SOURCES = src/router/listen_test.c $(ERA_STAGE)
src_router_listen_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_era_test_SOURCES = src/router/era_test.c $(ERA_STAGE)
src_router_era_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/router/task_test src/router/in_flight_test
src_router_in_flight_test_SOURCES = src/router/in_flight_test.c src/router/request_stage.c src/router/request_stage.h \
	$(ERA_STAGE)
src_router_in_flight_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
src_router_task_test_SOURCES = src/router/task_test.c src/router/request_stage.c src/router/request_stage.h \
	$(ERA_STAGE)
src_router_task_test_LDADD = $(ROUTER_LIBS) $(CMOCKA_LIBS)
