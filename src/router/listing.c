/* SPDX-License-Identifier: Apache-2.0 */
/* The items that are shown are copied as they stand, each whole. */
#include "router/listing.h"

#include <stdint.h>

#include "process/server.h"
#include "router/listing_kind.h"
#include "router/pinning.h"

struct filter {
	const struct server *server;
	const struct listing_kind *kind;
	struct buf *out;
	size_t kept;
	bool has_left_out;
};

static int take_item(struct slice item, void *arg)
{
	struct filter *filter = arg;
	struct json name = scan_member(item, filter->kind->name);

	if (!permissions_allow_json(&filter->server->conf.permissions, filter->kind->kind, name) ||
	    !pinning_shows(filter->server, filter->kind->kind, name)) {
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
		return env; /* it was accepted before: cannot be */
	return &convert->env;
}

const struct envelope *listing_filter(struct convert *convert, const struct server *server,
				      const struct method *method, const struct envelope *env)
{
	struct filter filter = { .server = server, .out = &convert->text };
	struct json list;

	if ((!server->conf.permissions.has_rules && server->conf.pin != PIN_ENFORCE) ||
	    env->kind != ENVELOPE_RESULT)
		return env;
	filter.kind = listing_kind_find(method);
	if (filter.kind == NULL)
		return env;
	list = scan_member(env->result.text, filter.kind->member);
	return list.type == JSON_ARRAY ? filter_list(convert, &filter, list, env) : env;
}
