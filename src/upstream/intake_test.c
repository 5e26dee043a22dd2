/* SPDX-License-Identifier: Apache-2.0 */
/* What of a message is changed, and what never is. SEC-52, SEC-53 */
#include "upstream/upstream.h"

#include "base/unit_test.h"
#include "policy/sanitize.h"
#include "process/server.h"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 64 };
static struct server_stats stats;
static struct server server;
static struct buf room;

static int open_server(void **state)
{
	struct error err;

	stats = (struct server_stats){ .users = 1 };
	server = (struct server){
		.stats = &stats,
		.conf = { .sanitize = { SANITIZE_STRIP, SANITIZE_STRIP } },
	};
	return redact_add(&server.conf.redact, SLICE_LIT("sk-[a-z]+|2\\.0"), &err);
}

static int close_server(void **state)
{
	redact_free(&server.conf.redact);
	buf_fini(&room);
	return 0;
}

/* What becomes of it; NULL: no message. Borrowed until the next. */
static const char *take(const char *text, bool redacts)
{
	struct intake intake = { .text = { 0 } };
	struct envelope env;
	const struct envelope *taken;
	struct error err;

	assert_int_equal(scan_envelope(slice_str(text), &limits, SCAN_LENIENT, &env, &err), 0);
	taken = intake_take(&intake, &server, &limits, redacts, &env);
	room.len = 0;
	if (taken != NULL) {
		assert_int_equal(taken == &env, slice_is_equal(taken->text, env.text));
		buf_append_slice(&room, taken->text);
	}
	intake_fini(&intake);
	return taken != NULL ? buf_terminate(&room) : NULL;
}

static void messages_are_changed(void **state)
{
	static const struct {
		const char *text;
		const char *taken;    /* in a handshake */
		const char *redacted; /* and later */
	} rows[] = {
		{ "{\"id\":1,\"result\":\"a\"}", "{\"id\":1,\"result\":\"a\"}",
		  "{\"id\":1,\"result\":\"a\"}" },
		{ "{\"id\":1,\"result\":{\"t\":\"s\u200bk-a\"}}",
		  "{\"id\":1,\"result\":{\"t\":\"sk-a\"}}",
		  "{\"id\":1,\"result\":{\"t\":\"[redacted]\"}}" },
		{ "{\"id\":1,\"error\":{\"code\":1,\"message\":\"\u202esk-a\"}}",
		  "{\"id\":1,\"error\":{\"code\":1,\"message\":\"sk-a\"}}",
		  "{\"id\":1,\"error\":{\"code\":1,\"message\":\"[redacted]\"}}" },
		{ "{\"method\":\"m\",\"params\":{\"t\":\"sk-a\u200b\"}}",
		  "{\"method\":\"m\",\"params\":{\"t\":\"sk-a\"}}",
		  "{\"method\":\"m\",\"params\":{\"t\":\"[redacted]\"}}" },
		{ "{\"method\":\"m\"}", "{\"method\":\"m\"}", "{\"method\":\"m\"}" },
		/* a request: its id stays, nothing is redacted */
		{ "{\"id\":\"q\u200bsk-a\",\"method\":\"m\",\"params\":{\"t\":\"sk-a\u200b\"}}",
		  "{\"id\":\"q\u200bsk-a\",\"method\":\"m\",\"params\":{\"t\":\"sk-a\"}}",
		  "{\"id\":\"q\u200bsk-a\",\"method\":\"m\",\"params\":{\"t\":\"sk-a\"}}" },
		/* beside the result */
		{ "{\"id\":1,\"result\":{},\"more\u200b\":\"\u202e\"}",
		  "{\"id\":1,\"result\":{},\"more\":\"\"}",
		  "{\"id\":1,\"result\":{},\"more\":\"\"}" },
		/* a secret there; and nothing that makes it a message */
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"sk-a\",\"a\":\"sk-a\",\"result\":{},\"b\":{\"id\":\"sk-a\"}}",
		  "{\"jsonrpc\":\"2.0\",\"id\":\"sk-a\",\"a\":\"sk-a\",\"result\":{},\"b\":{\"id\":\"sk-a\"}}",
		  "{\"jsonrpc\":\"2.0\",\"id\":\"sk-a\",\"a\":\"[redacted]\",\"result\":{},\"b\":{\"id\":\"[redacted]\"}}" },
		{ "{\"method\":\"sk-a\",\"c\":\"sk-a\"}", "{\"method\":\"sk-a\",\"c\":\"sk-a\"}",
		  "{\"method\":\"sk-a\",\"c\":\"[redacted]\"}" },
		/* no message any more */
		{ "{\"id\":1,\"result\":{},\"resul\u200bt\":{}}", NULL, NULL },
		{ "{\"method\":\"m\",\"params\":{},\"param\u200bs\":{}}", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (int redacts = 0; redacts < 2; redacts++) {
			const char *expected = redacts ? rows[i].redacted : rows[i].taken;
			const char *is = take(rows[i].text, redacts);

			if ((is == NULL) != (expected == NULL) ||
			    (is != NULL && strcmp(is, expected) != 0))
				fail_msg("%s: %s", rows[i].text, is);
		}
	}
	assert_int_equal(server.stats->redacted.found, 6);
	assert_true(server.stats->sanitized.invisible > 0);
	assert_int_equal(server.stats->sanitized.controls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_are_changed, open_server, close_server),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
