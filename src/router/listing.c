/* SPDX-License-Identifier: Apache-2.0 */
/* The items that are shown are copied as they stand, each whole. */
#include "router/listing.h"

#include <stdint.h>

#include "policy/needs.h"
#include "policy/permissions.h"
#include "process/server.h"
#include "router/call.h"
#include "router/client.h"

static const struct {
	struct slice method;
	struct slice member; /* of the result: the list */
	enum permission_kind kind;
	struct slice name; /* the member of an item that the rules are about */
} lists[] = {
	{ SLICE("tools/list"), SLICE("tools"), PERMISSION_TOOL, SLICE("name") },
	{ SLICE("prompts/list"), SLICE("prompts"), PERMISSION_PROMPT, SLICE("name") },
	{ SLICE("resources/list"), SLICE("resources"), PERMISSION_RESOURCE, SLICE("uri") },
	{ SLICE("resources/templates/list"), SLICE("resourceTemplates"), PERMISSION_TEMPLATE,
	  SLICE("uriTemplate") },
};

struct filter {
	const struct server_conf *conf;
	const struct rights *rights;
	enum permission_kind kind;
	struct slice name;
	struct buf *out;
	size_t kept;
	bool has_left_out;
};

static int take_item(struct slice item, void *arg)
{
	struct filter *filter = arg;

	struct json name = scan_member(item, filter->name);

	if (!permissions_allow_json(&filter->conf->permissions, filter->rights, filter->kind,
				    name) ||
	    !needs_show(&filter->conf->needs, filter->rights, filter->kind, name)) {
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

const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env)
{
	const struct server_conf *conf = &call->client->server->conf;
	bool has_rules =
		conf->permissions.has_rules || call->rights.needs_roles || conf->needs.hides;

	if (!has_rules || env->kind != ENVELOPE_RESULT || !(call->method->flags & METHOD_PAGED))
		return env;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct filter filter = { .conf = conf,
					 .rights = &call->rights,
					 .kind = lists[i].kind,
					 .name = lists[i].name,
					 .out = &convert->text };
		struct json list;

		if (!slice_is_equal(call->method->name, lists[i].method))
			continue;
		list = scan_member(env->result.text, lists[i].member);
		return list.type == JSON_ARRAY ? filter_list(convert, &filter, list, env) : env;
	}
	return env;
}
