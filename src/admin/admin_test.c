/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of servers in states that are hard to come by: the exact text, without sockets. */
#include "admin/admin.h"

#include <errno.h>

#include "admin/commands.c"
#include "admin/json.h"
#include "admin/reports.h"
#include "auth/grant.h"
#include "obs/audit.h"
#include "obs/counters.h"
#include "router/stage.h"

static struct admin admin;
static struct http_server *front;
static struct http_handler handler;
static struct buf out;

static const struct frontend_conf no_rules;

static int setup(void **state)
{
	static const struct slice paths[] = { SLICE("/a/mcp"), SLICE("/b\"\x1b/mcp") };
	static const char *const names[] = { "a", "b" };
	const struct http_conf http = { .max_connections = 1 };

	router_stage_open();
	router.sessions.conf.max_sessions = 7;
	for (size_t i = 0; i < 2; i++) {
		struct server_conf *conf = &servers[i].conf;

		conf->name = names[i];
		conf->backoff_min_ms = conf->backoff_max_ms = 4000;
	}
	front = http_server_new(loop, &http, &handler);
	admin_init(&admin, &(struct admin_conf){ .router = &router,
						 .servers = servers,
						 .server_count = 2,
						 .fleet = &fleet,
						 .paths = paths,
						 .auth_mode = "none",
						 .client_frontend = &no_rules,
						 .front = front,
						 .version = "9" });
	return 0;
}

static int teardown(void **state)
{
	http_server_free(&front);
	admin_fini(&admin);
	buf_fini(&out);
	return router_stage_close(state);
}

static void assert_has(const char *text)
{
	if (strstr(buf_terminate(&out), text) == NULL)
		fail_msg("%s\nis not in\n%s", text, out.data);
}

static void values_are_written(void **state)
{
	struct json_t *value = value_object(), *array = value_array();

	value_list_begin(&out, "list");
	value_append(array, value_object());
	value_list_add(&out, array);
	value_set_text(value, "text {", SLICE_LIT("a\"\x1b[\xC2\x9B\xFF"));
	value_set_text(value, "none", SLICE_LIT(""));
	value_set_flag(value, "flag", true);
	value_list_add(&out, value);
	value_list_end(&out);
	assert_string_equal(buf_terminate(&out),
			    "{\"list\":[[{}],{\"text {\":\"a\\\"\\u001B[\\u009B\\uFFFD\","
			    "\"none\":null,\"flag\":true}]}");
}

static void parameters_are_found(void **state)
{
	static const struct {
		const char *query;
		const char *value;
	} rows[] = {
		{ "server=a", "a" },     { "x=1&server=a", "a" }, { "server=a&server=b", "a" },
		{ "server=", "" },       { "server", "" },        { "xserver=a", "" },
		{ "server=a=b", "a=b" }, { "&&server=a&", "a" },  { "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice value = parameter_of(slice_str(rows[i].query), "server");

		assert_int_equal(value.n, strlen(rows[i].value));
		assert_memory_equal(value.n > 0 ? value.p : "", rows[i].value, value.n);
	}
	assert_int_equal(parameter_of((struct slice){ NULL, 0 }, "server").n, 0);
	assert_ptr_equal(find_server(&admin, SLICE_LIT("b")), &servers[1]);
	assert_null(find_server(&admin, SLICE_LIT("ab")));
	assert_null(find_server(&admin, SLICE_LIT("")));
	servers[1].is_retired = true; /* by a reload */
	assert_null(find_server(&admin, SLICE_LIT("b")));
	servers[1].is_retired = false;
}

static void servers_are_reported(void **state)
{
	reports_status(&admin, &out);
	assert_has("\"version\":\"9\",\"node\":null,\"upgrade\":null,\"state\":\"serving\"");
	assert_has("\"sessions\":0,\"sessions_max\":7");
	assert_has("{\"name\":\"a\",\"state\":\"idle\",\"path\":\"/a/mcp\"");
	assert_has("\"path\":\"/b\\\"\\u001B/mcp\"");
	assert_has("\"p50_ms\":null");
	assert_has("\"next_try_ms\":null,\"last_failure\":null");
	assert_has("\"audit\":null");
	out.len = 0;
	latency_histogram_add(&servers[0].stats->answered, 3, now_ms);
	latency_histogram_add(&servers[0].stats->answered, UINT64_C(1) << 50, now_ms);
	server_note_failure(&servers[1], "it \"ended\"", "status 3");
	backoff_note_failed(&servers[1].backoff);
	router.is_draining = true;
	reports_status(&admin, &out);
	assert_has("\"state\":\"draining\"");
	assert_has("\"answered\":2,\"failed\":0");
	assert_has("\"p50_ms\":4,\"p95_ms\":null,\"p99_ms\":null");
	assert_has("{\"name\":\"b\",\"state\":\"failing\"");
	assert_has("\"failures_in_a_row\":1,\"next_try_ms\":");
	assert_has("\"error\":\"it \\\"ended\\\": status 3\"}");
}

static void the_audit_is_reported(void **state)
{
	struct audit audit = { .conf.to = (char[]){ "/a" }, .written = 7 };

	router.audit = &audit;
	reports_status(&admin, &out);
	assert_has(
		"\"audit\":{\"to\":\"/a\",\"works\":true,\"required\":false,\"written\":7,\"lost\":0,\"last_error\":null}");
	audit.is_failing = true;
	audit.last_error = ENOSPC;
	counter_add(COUNTER_AUDIT_LOST);
	out.len = 0;
	reports_status(&admin, &out);
	assert_has(
		"\"works\":false,\"required\":false,\"written\":7,\"lost\":1,\"last_error\":\"No space left on device\"");
	router.audit = NULL;
}

static bool on_certificate(size_t index, struct certificate_report *report_r)
{
	static const struct certificate_report reports[] = {
		{ "0.0.0.0:443", "/new.pem", UINT64_MAX / 2 },
		{ "0.0.0.0:443", "/old.pem", 86400000 },
	};

	if (index >= ARRAY_LEN(reports))
		return false;
	*report_r = reports[index];
	return true;
}

/* One list for all who ask, the worst first. */
static void problems_are_found(void **state)
{
	struct audit audit = { .conf = { .to = "/a", .is_required = true },
			       .is_failing = true,
			       .last_error = ENOSPC };

	servers[0].stats->has_worked = servers[1].stats->has_worked = true;
	reports_check(&admin, &out);
	assert_string_equal(buf_terminate(&out), "{\"verdict\":\"ok\",\"problems\":[]}");
	out.len = 0;
	servers[0].stats->has_worked = false;
	servers[1].pins.waiting = 2;
	router.is_draining = true;
	admin_reloaded(&admin, 0, false, SLICE_LIT("warning w\nerror c.yaml:1: x\nerror y\n"));
	reports_check(&admin, &out);
	assert_has(
		"{\"verdict\":\"warn\",\"problems\":[{\"severity\":\"warn\",\"kind\":\"pins_wait\","
		"\"about\":\"b\",\"text\":\"b has 2 definitions that wait for approval: "
		"mcpgatectl pins b\"},");
	assert_has("\"kind\":\"server_not_tried\",\"about\":null,\"text\":\"not tried yet: a; ");
	assert_has("has failed: c.yaml:1: x; correct it, then mcpgatectl reload\"}");
	assert_has("\"kind\":\"draining\"");
	assert_null(strstr(out.data, "sandbox_reports"));
	out.len = 0;
	servers[1].conf.confinement.only_reports = true;
	reports_check(&admin, &out);
	assert_has("{\"severity\":\"warn\",\"kind\":\"sandbox_reports\",\"about\":\"b\","
		   "\"text\":\"the sandbox of b refuses nothing: its mode is report. ");
	servers[1].conf.confinement.only_reports = false;
	out.len = 0;
	admin.unsaved = 1u << IPC_TEXT_SESSIONS;
	reports_check(&admin, &out);
	assert_has("{\"severity\":\"warn\",\"kind\":\"state_unsaved\",\"about\":\"sessions\","
		   "\"text\":\"sessions cannot be saved, and end with this daemon: ");
	admin.unsaved = 0;
	out.len = 0;
	servers[1].is_retired = true; /* by a reload, while the first one takes its place */
	reports_check(&admin, &out);
	assert_null(strstr(out.data, "pins_wait"));
	servers[1].is_retired = false;
	out.len = 0;
	admin_reloaded(&admin, 0, true, SLICE_LIT("warning w\n"));
	server_note_failure(&servers[0], "no such file", NULL);
	backoff_note_failed(&servers[0].backoff);
	router.audit = &audit;
	admin.conf.on_certificate = on_certificate;
	reports_check(&admin, &out);
	assert_has("{\"verdict\":\"failing\",\"problems\":[{\"severity\":\"failing\",\"kind\":"
		   "\"certificate_expired\",\"about\":\"/old.pem\",\"text\":\"the certificate "
		   "/old.pem of 0.0.0.0:443 has expired on 1970-01-02T00:00:00Z: renew it, then "
		   "mcpgatectl reload\"},{\"severity\":\"failing\",\"kind\":\"audit_failing\","
		   "\"about\":\"/a\",\"text\":\"audit records cannot be written to /a: No space "
		   "left on device; calls are refused (audit.required)\"},");
	assert_has("\"about\":\"a\",\"text\":\"a is failing: no such file (0s ago); next try "
		   "in 4s at the earliest\"},{\"severity\":\"warn\",\"kind\":\"pins_wait\"");
	assert_null(strstr(out.data, "reload_failed"));
	assert_null(strstr(out.data, "not_tried"));
	out.len = 0;
	reports_metrics(&admin, false, &out);
	assert_has("\nmcpgated_problem{kind=\"server_failing\"} 1\n");
	assert_has("\nmcpgated_problem{kind=\"collector_away\"} 0\n");
	assert_has("mcpgated_certificate_not_after_seconds{listener=\"0.0.0.0:443\",file=\"/old.pem"
		   "\"} 86400.000\n");
	out.len = 0;
	reports_servers(&admin, &out);
	assert_has("\"problems\":[{\"severity\":\"failing\",\"kind\":\"server_failing\"");
	assert_null(strstr(out.data, "audit_failing"));
	router.audit = NULL;
	servers[1].pins.waiting = 0;
}

/* What each says when it is a little different; those that fail come first, in whatever order they were found. */
static void problems_say_what_is_so(void **state)
{
	struct audit audit = { .conf = { .to = "/a" }, .is_failing = true, .last_error = EIO };

	servers[0].stats->has_worked = servers[1].stats->has_worked = true;
	servers[0].pins.waiting = 1;
	servers[0].conf.pool_max = 1;
	admin.unsaved = 1u << IPC_TEXT_PINS;
	admin.upgrade = IPC_UPGRADE_FAILED;
	router.audit = &audit;
	server_note_failure(&servers[1], "no such file", NULL);
	backoff_note_failed(&servers[1].backoff);
	servers[1].stats->failed_at_ms -= 90000;
	reports_check(&admin, &out);
	assert_has("\"problems\":[{\"severity\":\"failing\",\"kind\":\"audit_failing\",\"about\":"
		   "\"/a\",\"text\":\"audit records cannot be written to /a: Input/output "
		   "error\"},{\"severity\":\"failing\",\"kind\":\"server_failing\",\"about\":\"b\","
		   "\"text\":\"b is failing: no such file (1m");
	assert_has("\"text\":\"a has 1 definition that waits for approval: mcpgatectl pins a\"");
	assert_has("\"kind\":\"state_unsaved\",\"about\":\"pins\"");
	assert_has("\"kind\":\"upgrade_failed\"");
	assert_null(strstr(out.data, "\"about\":\"sessions\""));
	assert_null(strstr(out.data, "calls_wait"));
	router.audit = NULL;
	servers[0].pins.waiting = 0;
	admin.unsaved = 0;
	admin.upgrade = IPC_UPGRADE_NONE;
}

/* One that a reload has retired is not waited for; claims are those of the first that is named. */
static void untried_servers_are_those_in_use(void **state)
{
	static const struct slice sub[] = { SLICE("sub") }, team[] = { SLICE("team") };

	servers[0].conf.claims = (struct slices){ sub, 1 };
	servers[1].conf.claims = (struct slices){ team, 1 };
	servers[0].stats->has_worked = servers[1].stats->has_worked = false;
	reports_check(&admin, &out);
	assert_has("not tried yet: a, b, for claims of a caller; mcpgatectl tools a --claims "
		   "'{\\\"sub\\\": \\\"...\\\"}' tries it now");
	out.len = 0;
	servers[0].is_retired = true;
	reports_check(&admin, &out);
	assert_has("not tried yet: b, for claims of a caller; mcpgatectl tools b --claims "
		   "'{\\\"team\\\": \\\"...\\\"}' tries it now");
	servers[0].is_retired = false;
	servers[0].conf.claims = servers[1].conf.claims = (struct slices){ .count = 0 };
}

/* BACK-URL-09 */
static void a_server_that_is_away_is_failing(void **state)
{
	server_note_away(&servers[0], SLICE_LIT("no route"));
	servers[0].away = 1;
	reports_check(&admin, &out);
	assert_has("\"text\":\"a is failing: no route (0s ago); next try with the next call\"}");
	out.len = 0;
	reports_status(&admin, &out);
	assert_has("{\"name\":\"a\",\"state\":\"failing\"");
	servers[0].away = 0;
}

/* Of very many, the list says how many there are. */
static void untried_servers_are_named_up_to_a_bound(void **state)
{
	static const struct slice claims[] = { SLICE("sub"), SLICE("tenant") };
	static struct server many[30];
	static struct slice paths[ARRAY_LEN(many)];
	struct server *before = admin.conf.servers;

	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		const struct server_conf conf = { .name = "x" };

		server_init(&many[i], loop, NULL, &conf);
	}
	many[0].conf.claims = (struct slices){ claims, ARRAY_LEN(claims) };
	many[1].conf.legs.count = 1;
	many[2].stats->has_worked = true;
	admin.conf.servers = many;
	admin.conf.server_count = ARRAY_LEN(many);
	admin.conf.paths = paths;
	reports_check(&admin, &out);
	assert_has(" x, x and 7 more; ");
	assert_has("not tried yet: x, for claims of a caller; mcpgatectl tools x --claims "
		   "'{\\\"sub\\\": \\\"...\\\", \\\"tenant\\\": \\\"...\\\"}' tries it now");
	out.len = 0;
	reports_metrics(&admin, false, &out);
	assert_has("\nmcpgated_problem{kind=\"server_not_tried\"} 28\n");
	many[1].conf.legs.count = 0;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		server_fini(&many[i]);
	admin.conf.servers = before;
	admin.conf.server_count = 2;
}

static void metrics_are_exact(void **state)
{
	latency_histogram_add(&servers[0].stats->answered, 0, now_ms);
	latency_histogram_add(&servers[0].stats->answered, 1500, now_ms);
	backoff_note_failed(&servers[1].backoff);
	reports_metrics(&admin, false, &out);
	assert_has("# HELP mcpgated_sessions_open open sessions\n# TYPE mcpgated_sessions_open "
		   "gauge\nmcpgated_sessions_open 0\n");
	assert_has(
		"\nmcpgated_server_failing{server=\"a\"} 0\nmcpgated_server_failing{server=\"b\"} 1\n");
	assert_has("_bucket{server=\"a\",le=\"0.001\"} 1\n");
	assert_has("_bucket{server=\"a\",le=\"1.024\"} 1\n");
	assert_has("_bucket{server=\"a\",le=\"2.048\"} 2\n");
	assert_has("_bucket{server=\"a\",le=\"+Inf\"} 2\n"
		   "mcpgated_call_answer_seconds_sum{server=\"a\"} 1.500\n"
		   "mcpgated_call_answer_seconds_count{server=\"a\"} 2\n");
	assert_has("\nmcpgated_build_info{version=\"9\"} 1\n");
	assert_has("\nmcpgated_server_processes_by_state{server=\"a\",state=\"stopping\"} 0\n");
	assert_int_equal(out.data[out.len - 1], '\n');
}

/* SEC-56 */
static void questions_are_whole(void **state)
{
	static const struct {
		const char *body;
		const char *why; /* NULL: it is understood */
	} rows[] = {
		{ "{\"server\":\"a\",\"tool\":\"t\",\"principal\":\"p\"}", NULL },
		{ "{\"claims\":{},\"resource\":\"r:\",\"server\":\"a\"}", NULL },
		{ "{\"server\":\"a\",\"tool\":\"t\"}", "there must be server" },
		{ "{\"server\":\"a\",\"token\":\"t\"}", "there must be server" },
		{ "{\"server\":\"a\",\"tool\":\"t\",\"token\":\"x\",\"claims\":{}}",
		  "there must be server" },
		{ "{\"server\":\"a\",\"tool\":\"t\",\"prompt\":\"p\",\"token\":\"x\"}",
		  "'prompt' is one too many" },
		{ "{\"server\":\"a\",\"tool\":\"\",\"token\":\"x\"}", "'tool' must be a text" },
		{ "{\"server\":\"a\",\"tool\":\"t\",\"claims\":[]}", "'claims' must be an object" },
		{ "{\"server\":\"a\",\"tool\":\"t\",\"role\":\"x\"}", "'role' is not known" },
		{ "[]", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct can_request request;
		struct error err = { ERROR_NONE, "" };
		int result = can_request_read(slice_str(rows[i].body), &request, &err);

		if ((result == 0) != (rows[i].why == NULL) ||
		    (result < 0 && strstr(err.text, rows[i].why) == NULL))
			fail_msg("%s: %s", rows[i].body, err.text);
		if (result == 0)
			can_request_fini(&request);
	}
}

/* When a token is good is not asked; who it is for need not be said. */
static void claims_are_of_a_token(void **state)
{
	static const char good[] = "{\"server\":\"a\",\"tool\":\"t\",\"claims\":{\"exp\":1,"
				   "\"cnf\":{\"x\":1},\"scope\":\"s\"}}";
	static const char bad[] = "{\"server\":\"a\",\"tool\":\"t\",\"claims\":{\"sub\":7}}";
	struct can_request request;
	struct error err;
	struct grant *grant;

	assert_int_equal(can_request_read(slice_str(good), &request, &err), 0);
	grant = can_request_grant(&request, NULL, &err);
	assert_true(grant_has_scope(grant, SLICE_LIT("s")));
	grant_unref(&grant);
	can_request_fini(&request);
	assert_int_equal(can_request_read(slice_str(bad), &request, &err), 0);
	assert_null(can_request_grant(&request, NULL, &err));
	assert_non_null(strstr(err.text, "no token has such claims"));
	can_request_fini(&request);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_written),
		TEST(parameters_are_found),
		TEST(servers_are_reported),
		TEST(the_audit_is_reported),
		TEST(metrics_are_exact),
		TEST(questions_are_whole),
		TEST(claims_are_of_a_token),
		TEST(problems_are_found),
		TEST(untried_servers_are_named_up_to_a_bound),
		TEST(a_server_that_is_away_is_failing),
		TEST(problems_say_what_is_so),
		TEST(untried_servers_are_those_in_use),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
