/* SPDX-License-Identifier: Apache-2.0 */
/* The items that are shown are copied whole and unchanged. */
#include "router/listing.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/needs.h"
#include "policy/permissions.h"
#include "process/server.h"
#include "router/call.h"
#include "router/client.h"
#include "router/listing_kind.h"
#include "router/pinning.h"

struct filter {
	const struct server *server;
	const struct rights *rights;
	const struct listing_kind *kind;
	struct json list; /* of that kind */
	struct buf *out;
	size_t kept;    /* of its items */
	size_t members; /* of the result */
	size_t folded;  /* listing_kind_may_fold */
	bool has_left_out;
};

static int take_item(struct slice item, void *arg)
{
	struct filter *filter = arg;
	struct json name = scan_member(item, filter->kind->name);
	const struct server *server = filter->server;
	enum permission_kind kind = filter->kind->kind;

	if (!listing_kind_may_fold(name.text, &filter->folded) ||
	    !permissions_allow_json(&server->conf.permissions, filter->rights, kind, name) ||
	    !needs_show(&server->conf.needs, filter->rights, kind, name) ||
	    !pinning_shows(server, kind, name)) {
		filter->has_left_out = true;
		return 0;
	}
	if (filter->kept++ > 0)
		buf_append_char(filter->out, ',');
	buf_append_slice(filter->out, item);
	return 0;
}

/* Where definitions are approved, nothing else that a model could read stands beside them. */
static bool is_beside(const struct filter *filter, struct slice name)
{
	static const struct slice names[] = { SLICE("nextCursor"), SLICE("resultType"),
					      SLICE("ttlMs"), SLICE("cacheScope") };

	return filter->server->conf.pin != PIN_ENFORCE ||
	       slices_has((struct slices){ names, ARRAY_LEN(names) }, name);
}

static int take_member(struct slice name, struct json value, void *arg)
{
	struct filter *filter = arg;
	bool is_list = value.text.p == filter->list.text.p;
	struct error err;

	if (!is_list && !is_beside(filter, name)) {
		filter->has_left_out = true;
		return 0;
	}
	if (filter->members++ > 0)
		buf_append_char(filter->out, ',');
	buf_append_slice(filter->out, slice_between(name.p - 1, value.text.p));
	if (!is_list) {
		buf_append_slice(filter->out, value.text);
		return 0;
	}
	buf_append_char(filter->out, '[');
	CHECK(scan_array(value.text, SIZE_MAX, take_item, filter, &err) >= 0);
	buf_append_char(filter->out, ']');
	return 0;
}

static const struct envelope *filter_list(struct convert *convert, struct filter *filter,
					  const struct envelope *env)
{
	struct slice result = env->result.text;
	struct error err;

	buf_append_slice(&convert->text, slice_between(env->text.p, result.p));
	buf_append_char(&convert->text, '{');
	scan_members(result, take_member, filter);
	buf_append_char(&convert->text, '}');
	if (!filter->has_left_out)
		return env;
	buf_append_slice(&convert->text,
			 slice_between(result.p + result.n, env->text.p + env->text.n));
	if (scan_envelope(buf_slice(&convert->text), &scan_limits_none, SCAN_LENIENT, &convert->env,
			  &err) < 0)
		return env; /* cannot happen: it was accepted before */
	return &convert->env;
}

const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env)
{
	const struct server *server = call->client->server;
	const struct server_conf *conf = &server->conf;
	struct filter filter = { .server = server, .out = &convert->text };

	/* A reload may have changed them since it was sent. */
	filter.rights = call_is_stale(call) ? &call->client->rights : &call->rights;
	if ((!conf->permissions.has_rules && !filter.rights->needs_roles && !conf->needs.hides &&
	     conf->pin != PIN_ENFORCE) ||
	    env->kind != ENVELOPE_RESULT)
		return env;
	filter.kind = listing_kind_find(call->method);
	if (filter.kind == NULL)
		return env;
	if (listing_kind_find_items(filter.kind, env->result.text, &filter.list) < 0)
		return NULL;
	return filter.list.type == JSON_ARRAY ? filter_list(convert, &filter, env) : env;
}

/* ---- tool series ---- */

struct note {
	struct call_stats *stats;
	struct buf name;
};

static int note_item(struct slice item, void *arg)
{
	struct note *note = arg;

	note->name.len = 0;
	if (scan_decode_string(scan_member(item, SLICE_LIT("name")), &note->name) == 0)
		call_stats_note_tool(note->stats, buf_slice(&note->name));
	return call_stats_has_room(note->stats) ? 0 : -1;
}

void tool_series_note(struct server *server, const struct method *method, struct slice result)
{
	struct note note = { .stats = &server->stats->calls };
	struct json tools;
	struct error err;

	if (method->id != METHOD_TOOLS_LIST || !call_stats_has_room(note.stats))
		return;
	tools = scan_member(result, SLICE_LIT("tools"));
	if (tools.type == JSON_ARRAY)
		(void)!scan_array(tools.text, SIZE_MAX, note_item, &note, &err);
	buf_fini(&note.name);
}
