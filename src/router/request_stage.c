/* SPDX-License-Identifier: Apache-2.0 */
/* See request_stage.h. */
#include "router/request_stage.h"

#include "io/peer.h"
#include "router/client_request.h"

static struct asker askers[ASKERS_MAX];
static size_t asker_count;

/* ---- fronts ---- */

static struct asker *of_call(struct call *call)
{
	return container_of(call, struct asker, call);
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct asker *asker = of_call(call);

	buf_append_slice(&asker->messages, msg->text);
	buf_append_char(&asker->messages, '|');
	return true;
}

/* By the principal's name alone. */
static void show(const struct call *call, struct denial_marks *marks_r)
{
	const struct identity *identity = &call->client->principal->identity;

	*marks_r = (struct denial_marks){ .issuer = identity->issuer,
					  .names[DENIAL_BY_SUB] = identity->subject };
}

static void end(struct call *call, enum ending ending)
{
	struct asker *asker = of_call(call);

	assert_int_equal(asker->ending, ENDING_NONE);
	asker->ending = ending;
	asker->http_status = call->http_status;
	client_request_close(call->client);
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append_slice(&of_call(call)->response, parts[i]);
	end(call, ENDING_RESPONSE);
}

static void on_failed(struct call *call, enum reason reason)
{
	of_call(call)->reason = reason;
	end(call, ENDING_FAILED);
}

static void on_cancelled(struct call *call)
{
	end(call, ENDING_CANCELLED);
}

static const struct call_ops ops = {
	.on_message = on_message,
	.show = show,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

/* ---- before and after ---- */

int request_setup(void **state)
{
	memset(askers, 0, sizeof(askers));
	asker_count = 0;
	return pool_setup_principals(state);
}

int request_teardown(void **state)
{
	router_end_calls(&router, REASON_DRAINING);
	for (size_t i = 0; i < asker_count; i++) {
		assert_int_not_equal(askers[i].ending, ENDING_NONE);
		buf_fini(&askers[i].messages);
		buf_fini(&askers[i].response);
	}
	return pool_teardown_principals(state);
}

/* ---- words for the stories ---- */

struct asker *ask_as(struct principal *principal, const char *text)
{
	static const struct peer nobody;
	struct asker *asker = &askers[asker_count++];
	struct envelope env = scan(q(text));

	assert_true(asker_count <= ASKERS_MAX);
	call_init(&asker->call, &ops, &env);
	client_request_open(&router, &servers[0], principal, &nobody, &asker->call,
			    admit(NULL, &env));
	settle();
	return asker;
}

struct asker *ask(const char *text)
{
	return ask_as(&router.sessions.principals.anonymous, text);
}

void was_answered(struct asker *asker, int http_status, const char *text)
{
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	assert_string_equal(buf_terminate(&asker->response), q(text));
	assert_int_equal(asker->http_status, http_status);
}

void reads_one(size_t i)
{
	assert_non_null(fake_process_read(process(i)));
}

static char *member_at(struct asker *asker, const char *const *path, size_t length)
{
	struct slice text;

	assert_int_equal(asker->ending, ENDING_RESPONSE);
	text = scan_path(buf_slice(&asker->response), path, length).text;
	return text.n == 0 ? NULL : strndup(text.p, text.n);
}

char *result_member(struct asker *asker, const char *name)
{
	const char *const path[] = { "result", name };

	return member_at(asker, path, 2);
}

void was_refused(struct asker *asker, const char *code, const char *reason)
{
	static const char *const code_path[] = { "error", "code" };
	static const char *const reason_path[] = { "error", "data", "reason" };
	char *found = member_at(asker, code_path, 2);

	assert_non_null(found);
	assert_string_equal(found, code);
	free(found);
	found = member_at(asker, reason_path, 3);
	assert_string_equal(found != NULL ? found : "", q(reason));
	free(found);
}
