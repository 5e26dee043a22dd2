/* SPDX-License-Identifier: Apache-2.0 */
/* Which endpoint a path names, while a reload leaves two with the same, and where a caller belongs. */
#include "endpoint/caller.h"

#include "router/stage.h"

#define COUNT 5
#define ENTRY(name, i)                                                                 \
	{                                                                              \
		.path = SLICE("/" name), .sse_path = SLICE("/" name "/sse"),           \
		.message_path = SLICE("/" name "/message"), .server = &endpoints_of[i] \
	}

enum { RETIRED, UNUSED, OTHER, NEW, GROUP };

static struct server endpoints_of[COUNT];
static struct endpoint endpoints[COUNT];
static struct frontend frontend;
static struct access access;

static int setup(void **state)
{
	static const char *const names[COUNT] = { "a", "none", "b", "a", "c" };
	static const struct endpoint all[COUNT] = {
		[RETIRED] = ENTRY("a", RETIRED), [UNUSED] = { .path = SLICE("") },
		[OTHER] = ENTRY("b", OTHER),     [NEW] = ENTRY("a", NEW),
		[GROUP] = ENTRY("c", GROUP),
	};
	static const struct identity identity = { .issuer = SLICE("i"), .subject = SLICE("s") };

	router_stage_open();
	memset(endpoints_of, 0, sizeof(endpoints_of));
	memcpy(endpoints, all, sizeof(all));
	for (size_t i = 0; i < COUNT; i++)
		endpoints_of[i].conf.name = names[i];
	endpoints_of[RETIRED].is_retired = true;
	endpoints_of[GROUP].conf.legs.count = 1;
	frontend = (struct frontend){ .conf = { .endpoints = endpoints, .endpoint_count = COUNT },
				      .router = &router };
	access =
		(struct access){ .principal = principal_get(&router.sessions.principals, &identity),
				 .configuration = 7 };
	return 0;
}

static int teardown(void **state)
{
	access_fini(&access);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(endpoints_of[i].users, 0);
	return router_stage_close(state);
}

static void finds(const char *path, const struct endpoint *expected, enum endpoint_role role)
{
	enum endpoint_role found = ENDPOINT_MCP;

	for (int i = 0; i < 2; i++) { /* the second time with a hint */
		assert_ptr_equal(endpoint_find(&frontend, slice_str(path), &found), expected);
		if (expected != NULL)
			assert_int_equal(found, role);
	}
}

static void paths_name_endpoints(void **state)
{
	finds("/a", &endpoints[NEW], ENDPOINT_MCP);
	finds("/a/sse", &endpoints[NEW], ENDPOINT_SSE);
	finds("/a/message", &endpoints[NEW], ENDPOINT_MESSAGE);
	finds("/b", &endpoints[OTHER], ENDPOINT_MCP);
	finds("/b/sse", &endpoints[OTHER], ENDPOINT_SSE);
	finds("/c/message", &endpoints[GROUP], ENDPOINT_MESSAGE);
	finds("", NULL, ENDPOINT_MCP);
	finds("/", NULL, ENDPOINT_MCP);
	finds("/a/", NULL, ENDPOINT_MCP);
	frontend.conf.endpoint_count = 0;
	finds("/a", NULL, ENDPOINT_MCP);
}

/* A reload takes and gives places: what was found there before is not trusted. */
static void a_reload_moves_them(void **state)
{
	endpoints[NEW].server = NULL;
	finds("/a", &endpoints[RETIRED], ENDPOINT_MCP);
	finds("/a/sse", &endpoints[RETIRED], ENDPOINT_SSE);
	endpoints[NEW].server = &endpoints_of[NEW];
	finds("/a", &endpoints[NEW], ENDPOINT_MCP);
	endpoints_of[NEW].is_retired = true;
	endpoints_of[RETIRED].is_retired = false;
	finds("/a", &endpoints[RETIRED], ENDPOINT_MCP);
	endpoints[RETIRED].server = NULL;
	endpoints[NEW].server = NULL;
	finds("/a", NULL, ENDPOINT_MCP);
	frontend.conf.endpoint_count = GROUP;
	finds("/c", NULL, ENDPOINT_MCP);
}

static void servers_have_places(void **state)
{
	const struct frontend_conf *conf = &frontend.conf;
	struct server none;

	for (size_t i = 0; i < COUNT; i++)
		if (i != UNUSED)
			assert_int_equal(endpoint_place(conf, &endpoints_of[i]), i);
	assert_int_equal(endpoint_place(conf, &none), COUNT);
	assert_ptr_equal(endpoint_of_server(conf, SLICE_LIT("a")), &endpoints[NEW]);
	assert_ptr_equal(endpoint_of_server(conf, SLICE_LIT("b")), &endpoints[OTHER]);
	assert_null(endpoint_of_server(conf, SLICE_LIT("none")));
	assert_null(endpoint_of_server(conf, SLICE_LIT("c"))); /* it has legs */
	endpoints_of[NEW].is_retired = true;
	assert_null(endpoint_of_server(conf, SLICE_LIT("a")));
}

static void begin_at(struct caller *caller, size_t i)
{
	static const struct http_request http = {
		.seen = 1u << HTTP_TRACEPARENT,
		.fields = { [HTTP_TRACEPARENT] = SLICE(
				    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") },
	};

	caller_init(caller, &(struct endpoint_request){ .frontend = &frontend,
							.endpoint = &endpoints[i],
							.access = &access,
							.answer = { .origin = SLICE("http://o") },
							.http = &http });
	assert_string_equal(caller->origin, "http://o");
	assert_non_null(caller->trace);
}

static void settles(struct caller *caller, const struct server *server, size_t i)
{
	caller_settle(caller, server);
	assert_ptr_equal(caller->endpoint, &endpoints[i]);
	for (size_t k = 0; k < COUNT; k++)
		assert_int_equal(endpoints_of[k].users, k == i);
}

/* It goes where its session is, or else to who takes new ones; and is judged anew there, but not where it was. */
static void callers_follow_their_sessions(void **state)
{
	struct caller caller;

	begin_at(&caller, RETIRED);
	settles(&caller, &endpoints_of[RETIRED], RETIRED);
	assert_int_equal(caller.access.configuration, 7);
	settles(&caller, NULL, NEW);
	assert_int_equal(caller.access.configuration, 0);
	caller.access.configuration = 7;
	settles(&caller, NULL, NEW);
	settles(&caller, &endpoints_of[NEW], NEW);
	settles(&caller, &endpoints_of[OTHER], NEW); /* it has another address */
	assert_int_equal(caller.access.configuration, 7);
	settles(&caller, &endpoints_of[RETIRED], RETIRED);
	assert_int_equal(caller.access.configuration, 0);
	caller.access.configuration = 7;
	endpoints_of[NEW].is_retired = true;
	settles(&caller, NULL, RETIRED); /* there is none */
	assert_int_equal(caller.access.configuration, 7);
	assert_true(caller_is_at(&caller, &endpoints[RETIRED]));
	assert_true(caller_is_at(&caller, &endpoints[NEW]));
	assert_false(caller_is_at(&caller, &endpoints[OTHER]));
	caller_fini(&caller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_name_endpoints, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reload_moves_them, setup, teardown),
		cmocka_unit_test_setup_teardown(servers_have_places, setup, teardown),
		cmocka_unit_test_setup_teardown(callers_follow_their_sessions, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
