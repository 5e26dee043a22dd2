/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task id never expires: the task ends with its process at the latest, and it is for the server
 * to say how long it keeps the task.
 */
#include "router/task_id.h"

#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"
#include "session/holder.h"
#include "session/principal.h"

/* Also fills *digest_r, with a digest that belongs to no request. */
static struct seal_binding binding_of(const struct server *server, const struct principal *caller,
				      struct digest *digest_r)
{
	digest_bytes(SLICE_LIT("task"), digest_r);
	return (struct seal_binding){ .server = slice_str(server->conf.name),
				      .caller = &caller->identity,
				      .digest = digest_r };
}

bool task_id_is_fit(struct json own)
{
	return own.type == JSON_STRING && own.text.n > 2 && own.text.n <= TASK_ID_BYTES_MAX;
}

void task_id_append(struct buf *out, const struct pool *pool, const struct principal *caller,
		    uint64_t child, struct json own)
{
	struct digest digest;
	struct seal_binding binding = binding_of(pool->server, caller, &digest);
	struct seal seal = {
		.kind = SEAL_TASK, .child = child, .expires_at_s = UINT64_MAX, .text = own.text
	};

	CHECK(task_id_is_fit(own));
	seal_append(out, &pool->router->seal_keys, &binding, &seal);
}

struct task_id *task_id_open(const struct client *client, struct json name, struct error *err)
{
	struct digest digest;
	struct seal_binding binding = binding_of(client->server, client->principal, &digest);
	struct task_id *id = NULL;
	struct buf plain = { 0 };
	struct seal seal;
	char *at;

	if (seal_open(&client->router->seal_keys, &binding, name, clock_wall_ms() / 1000, &plain,
		      &seal, err) < 0)
		goto out;
	if (seal.kind != SEAL_TASK || !seal.is_of_this_process) {
		(void)!error_set(err, ERROR_INVALID, "it is of another gateway process");
		goto out;
	}
	id = mem_alloc(sizeof(*id) + seal.text.n + name.text.n);
	at = id->text;
	id->child = seal.child;
	id->own = mem_put_slice(&at, seal.text);
	id->name = mem_put_slice(&at, name.text);
out:
	buf_fini(&plain);
	return id;
}

void task_id_log_refused(const struct client *client, size_t count, const struct error *err)
{
	LOG_BY(TASK_REFUSED, holder_number(client->principal, &client->peer),
	       LOG_STR("server", client->server->conf.name), LOG_INT("ids", count),
	       LOG_STR("reason", err->text));
}

bool task_id_is_own(const struct task_id *id, struct json own)
{
	struct buf one = { 0 }, other = { 0 };
	bool is_same;

	if (!task_id_is_fit(own))
		return false;
	if (slice_is_equal(id->own, own.text))
		return true;
	is_same = scan_decode_string((struct json){ JSON_STRING, true, id->own }, &one) == 0 &&
		  scan_decode_string(own, &other) == 0 &&
		  slice_is_equal(buf_slice(&one), buf_slice(&other));
	buf_fini(&one);
	buf_fini(&other);
	return is_same;
}
