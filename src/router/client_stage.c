/* SPDX-License-Identifier: Apache-2.0 */
/* See client_stage.h. */
#include "router/client_stage.h"

struct front *fronts;
size_t front_count;
struct member members[STAGE_MEMBERS_MAX];
size_t member_count;

static struct admitted *admitted;

/* ---- fronts and readers ---- */

static void front_end(struct front *front, enum ending ending)
{
	front->ending = ending;
	front->endings++;
	assert_int_equal(front->endings, 1); /* bridging I3 */
	if (front->ends_session)
		session_end(front->call.client->session, REASON_PEER_CLOSED);
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct front *front = container_of(call, struct front, call);

	assert_int_equal(front->endings, 0);
	if (front->refuses || call->method->id == METHOD_INITIALIZE)
		return false;
	buf_append_slice(&front->messages, msg->text);
	buf_append_char(&front->messages, '|');
	return true;
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct front *front = container_of(call, struct front, call);

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&front->response, parts[i]);
	front_end(front, ENDING_RESPONSE);
}

static void on_failed(struct call *call, enum reason reason)
{
	struct front *front = container_of(call, struct front, call);

	front->reason = reason;
	front_end(front, ENDING_FAILED);
}

static void on_cancelled(struct call *call)
{
	front_end(container_of(call, struct front, call), ENDING_CANCELLED);
}

static bool is_reachable(const struct call *call)
{
	return !container_of(call, struct front, call)->refuses;
}

static const struct call_ops front_ops = {
	.on_message = on_message,
	.is_reachable = is_reachable,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

static void on_wake(struct stream_reader *reader)
{
	struct member *member = container_of(reader, struct member, reader);
	uint64_t number;
	struct msg *msg;

	while ((msg = stream_take(reader, &number)) != NULL) {
		buf_append_slice(&member->got, msg->text);
		buf_append_char(&member->got, '|');
		msg_unref(&msg);
	}
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
	container_of(reader, struct member, reader)->detached++;
}

static const struct stream_reader_ops reader_ops = { on_wake, on_detached };

struct member *listen_to(struct client *client)
{
	struct member *member = &members[member_count++];

	assert_true(member_count < STAGE_MEMBERS_MAX);
	member->client = client;
	assert_true(stream_attach(&client->session->standalone, &member->reader, &reader_ops,
				  STREAM_FROM_HERE));
	settle();
	return member;
}

/* ---- before and after ---- */

void client_stage_open(void)
{
	router_stage_open();
	fronts = calloc(STAGE_FRONTS_MAX, sizeof(*fronts));
	front_count = member_count = 0;
	memset(members, 0, sizeof(members));
}

int client_stage_close(void **state)
{
	router_stage_close(state);
	for (size_t i = 0; i < front_count; i++) {
		assert_int_equal(fronts[i].endings, 1);
		buf_fini(&fronts[i].messages);
		buf_fini(&fronts[i].response);
	}
	for (size_t i = 0; i < member_count; i++)
		buf_fini(&members[i].got);
	free(fronts);
	admitted_free(&admitted);
	return 0;
}

/* ---- words for the stories ---- */

struct envelope scan(const char *text)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(slice_str(text), &router.limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return env;
}

struct front *front_new(const struct envelope *env)
{
	struct front *front = &fronts[front_count++];

	assert_true(front_count < STAGE_FRONTS_MAX);
	call_init(&front->call, &front_ops, env);
	return front;
}

struct admitted *admit(const struct client *client, const struct envelope *env)
{
	static const struct rights no_rights = { .needs_roles = false };

	admitted_free(&admitted);
	admitted = admitted_new(client, &no_rights, NULL, env, 1);
	admitted_next(admitted);
	return admitted;
}

static struct front *open_session_of(struct server *server, struct principal *principal,
				     const struct peer *peer, const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	client_session_open(&router, server, principal, peer, &front->call, admit(NULL, &env),
			    false);
	settle();
	return front;
}

struct front *open_session_at(struct server *server, struct principal *principal, const char *text)
{
	return open_session_of(server, principal, &(struct peer){ .family = 0 }, text);
}

struct front *open_session_from(const char *address, const char *text)
{
	struct peer peer;

	assert_true(peer_parse(slice_str(address), &peer));
	return open_session_of(&servers[0], &router.sessions.principals.anonymous, &peer, text);
}

struct front *open_session_as(struct principal *principal, const char *text)
{
	return open_session_at(&servers[0], principal, text);
}

struct front *open_session(const char *text)
{
	return open_session_as(&router.sessions.principals.anonymous, text);
}

struct front *request(struct client *client, const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	forward_request(client, &front->call, admit(client, &env));
	settle();
	return front;
}

void notify(struct client *client, const char *text)
{
	struct envelope env = scan(q(text));

	forward_notification(client, admit(client, &env));
	settle();
}

void answer(struct client *client, const char *text)
{
	struct envelope env = scan(q(text));

	forward_answer(client, admit(client, &env));
	settle();
}

void is_answered(struct front *front, const char *text)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	assert_string_equal(buf_terminate(&front->response), q(text));
}

void is_failed(const struct front *front, enum reason reason)
{
	assert_int_equal(front->ending, ENDING_FAILED);
	assert_string_equal(reason_get(front->reason)->text, reason_get(reason)->text);
}

void is_open(const struct front *front)
{
	assert_int_equal(front->ending, ENDING_NONE);
}

void was_told(struct front *front, const char *text)
{
	assert_string_equal(buf_terminate(&front->messages), q(text));
	front->messages.len = 0;
}

void heard(struct member *member, const char *text)
{
	assert_string_equal(buf_terminate(&member->got), q(text));
	member->got.len = 0;
}
