/* SPDX-License-Identifier: Apache-2.0 */
/* The items that are shown are copied whole and unchanged. */
#include "router/listing.h"

#include <stdint.h>

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
	struct buf *out;
	size_t kept;
	bool has_left_out;
};

static int take_item(struct slice item, void *arg)
{
	struct filter *filter = arg;
	struct json name = scan_member(item, filter->kind->name);
	const struct server *server = filter->server;
	enum permission_kind kind = filter->kind->kind;

	if (!permissions_allow_json(&server->conf.permissions, filter->rights, kind, name) ||
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

static const struct envelope *filter_list(struct convert *convert, struct filter *filter,
					  struct json list, const struct envelope *env)
{
	static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX,
						   .id_max = SIZE_MAX };
	const char *end = list.text.p + list.text.n;
	struct error err;

	buf_append_slice(&convert->text, slice_between(env->text.p, list.text.p + 1));
	if (scan_array(list.text, SIZE_MAX, take_item, filter, &err) < 0 || !filter->has_left_out)
		return env;
	buf_append_slice(&convert->text, slice_between(end - 1, env->text.p + env->text.n));
	if (scan_envelope(buf_slice(&convert->text), &limits, SCAN_LENIENT, &convert->env, &err) <
	    0)
		return env; /* cannot happen: it was accepted before */
	return &convert->env;
}

const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env)
{
	const struct server *server = call->client->server;
	const struct server_conf *conf = &server->conf;
	struct filter filter = { .server = server, .rights = &call->rights, .out = &convert->text };
	struct json list;

	if ((!conf->permissions.has_rules && !call->rights.needs_roles && !conf->needs.hides &&
	     conf->pin != PIN_ENFORCE) ||
	    env->kind != ENVELOPE_RESULT)
		return env;
	filter.kind = listing_kind_find(call->method);
	if (filter.kind == NULL)
		return env;
	if (listing_kind_find_items(filter.kind, env->result.text, &list) < 0)
		return NULL;
	return list.type == JSON_ARRAY ? filter_list(convert, &filter, list, env) : env;
}
