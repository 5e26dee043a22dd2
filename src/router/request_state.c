/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's own state is kept exactly as it was written: it may be signed with a key that only its
 * process has.
 */
#include "router/request_state.h"

#include "base/clock.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/router.h"
#include "router/server_request.h"
#include "session/holder.h"
#include "session/principal.h"

static struct seal_binding binding_of(const struct client *client, const struct digest *digest)
{
	return (struct seal_binding){ .server = slice_str(client->server->conf.name),
				      .caller = &client->principal->identity,
				      .digest = digest };
}

static void append(struct buf *out, const struct client *client, const struct digest *digest,
		   struct seal *seal)
{
	struct seal_binding binding = binding_of(client, digest);

	seal->issued_at_s = clock_wall_ms() / 1000;
	seal->expires_at_s = seal->issued_at_s + REQUEST_STATE_TTL_MS / 1000;
	seal_append(out, &client->router->seal_keys, &binding, seal);
}

void request_state_append_parked(struct buf *out, const struct client *client,
				 const struct digest *digest,
				 const unsigned char id[SEAL_CALL_BYTES], uint32_t round)
{
	struct seal seal = { .kind = SEAL_PARKED, .round = round };

	memcpy(seal.call, id, sizeof(seal.call));
	append(out, client, digest, &seal);
}

void request_state_append_replay(struct buf *out, const struct call *call, uint64_t child,
				 struct slice wanted)
{
	struct seal seal = { .kind = SEAL_REPLAY, .child = child, .text = wanted };

	append(out, call->client, kept_digest_get(call->digest), &seal);
}

/* ---- what a modern server asks ---- */

#define REQUESTS_MAX 64 /* of one result */

struct asked {
	const struct client *client;
	struct slice keys[REQUESTS_MAX]; /* so far */
	size_t count;
	bool is_wrong;
};

/*
 * Whether every reader understands the request as we do: no name in it or in its params is repeated
 * or written with an escape.
 */
static bool is_plain(const struct client *client, struct json request)
{
	struct buf text = { 0 };
	struct envelope env;
	struct error err;
	bool is_plain;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":0,");
	buf_append_slice(&text, slice_of(request.text.p + 1, request.text.n - 1));
	is_plain = scan_envelope(buf_slice(&text), &client->router->limits, 0, &env, &err) == 0;
	buf_fini(&text);
	return is_plain;
}

/*
 * Whether there may be a request with this key: not too many requests, and no key twice.
 * MOD-MRTR-02
 */
static bool take_key(struct asked *asked, struct slice key)
{
	if (asked->count == REQUESTS_MAX ||
	    slices_has((struct slices){ asked->keys, asked->count }, key))
		return false;
	asked->keys[asked->count++] = key;
	return true;
}

static int check_request(struct slice key, struct json request, void *arg)
{
	struct asked *asked = arg;
	struct slice capabilities = client_capabilities(asked->client);
	const struct method *method = asking_method(request.text);
	struct slice params = scan_member(request.text, SLICE_LIT("params")).text;

	asked->is_wrong = !take_key(asked, key) || request.type != JSON_OBJECT ||
			  method->capability == NULL || method->id == METHOD_LIST_CHANGED ||
			  method->id == METHOD_TASKS || !asking_is_declared(capabilities, method) ||
			  !asking_is_possible(capabilities, method, params) ||
			  !is_plain(asked->client, request);
	return asked->is_wrong ? -1 : 0;
}

bool request_state_may_ask(const struct client *client, struct slice requests)
{
	struct asked asked = { .client = client };

	scan_members(requests, check_request, &asked);
	return !asked.is_wrong;
}

static bool may_ask(const struct call *call, struct slice result)
{
	struct json requests = scan_member(result, SLICE_LIT("inputRequests"));
	struct json state = scan_member(result, SLICE_LIT("requestState"));

	if (!(call->method->flags & METHOD_ASKING) ||
	    (requests.type != JSON_OBJECT && requests.type != JSON_ABSENT) ||
	    (state.type != JSON_STRING && state.type != JSON_ABSENT) ||
	    (requests.type == JSON_ABSENT && state.type == JSON_ABSENT) ||
	    state.text.n > SEAL_TEXT_MAX)
		return false;
	return request_state_may_ask(call->client, requests.text);
}

bool request_state_append_wrapped(struct buf *out, const struct call *call, struct slice result)
{
	struct seal seal = { .kind = SEAL_WRAPPED,
			     .child = upstream_child_number(call->request.upstream),
			     .text = scan_member(result, SLICE_LIT("requestState")).text };

	if (call->digest == NULL || !may_ask(call, result))
		return false;
	append(out, call->client, kept_digest_get(call->digest), &seal);
	return true;
}

/* ---- what a client brings ---- */

int request_state_open(const struct client *client, const struct digest *digest, struct json sealed,
		       struct buf *plain, struct seal *seal_r)
{
	struct seal_binding binding = binding_of(client, digest);
	struct error err = { .kind = ERROR_NONE };

	if (seal_open(&client->router->seal_keys, &binding, sealed, clock_wall_ms() / 1000, plain,
		      seal_r, &err) == 0)
		return 0;
	LOG_BY(STATE_REFUSED, holder_number(client->principal, &client->peer),
	       LOG_STR("server", client->server->conf.name), LOG_STR("reason", err.text));
	return -1;
}
