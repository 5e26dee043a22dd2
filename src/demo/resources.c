/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources, their templates and the one subscription that is ever told something: demo://counter.
 * The clock changes all the time and is not announced; an echo never changes.
 */
#include "demo/resources.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "demo/rpc.h"

#define CLOCK_URI "demo://clock"
#define COUNTER_URI "demo://counter"
#define ECHO_PREFIX "demo://echo/"
#define UNKNOWN_RESOURCE (-32002) /* up to revision 2025-11-25 */

json_t *resources_time(void)
{
	char text[32];
	time_t now = time(NULL);
	struct tm parts;

	gmtime_r(&now, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

static json_t *describe(const char *uri_key, const char *uri, const char *name, const char *text)
{
	return json_pack("{s:s, s:s, s:s, s:s}", uri_key, uri, "name", name, "description", text,
			 "mimeType", "text/plain");
}

json_t *resources_list(struct server *server, struct call *call)
{
	(void)server;
	(void)call;
	return json_pack("{s:[o, o]}", "resources",
			 describe("uri", CLOCK_URI, "clock", "The time now, in UTC"),
			 describe("uri", COUNTER_URI, "counter",
				  "A number that the tool bump raises; can be subscribed to"));
}

json_t *resources_list_templates(struct server *server, struct call *call)
{
	(void)server;
	(void)call;
	return json_pack("{s:[o]}", "resourceTemplates",
			 describe("uriTemplate", ECHO_PREFIX "{text}", "echo",
				  "The text itself, percent-decoded"));
}

/* The percent-decoded text; NULL if it is cut, not hexadecimal or not UTF-8. */
static json_t *decode(struct slice text)
{
	char *out = mem_alloc(text.n + 1);
	size_t size = 0;
	json_t *decoded = NULL;

	for (size_t i = 0; i < text.n; i++) {
		out[size] = text.p[i];
		if (text.p[i] == '%') {
			if (text.n - i < 3 ||
			    text_from_hex(slice_of(text.p + i + 1, 2), out + size, 1) < 0)
				goto out;
			i += 2;
		}
		size++;
	}
	decoded = json_stringn(out, size);
out:
	free(out);
	return decoded;
}

/* The text of the resource that the params name, a new string; NULL with an error of the call. */
static json_t *read_text(struct server *server, struct call *call, const json_t **uri_r)
{
	const json_t *uri = call_string(call, call->params, "uri");
	struct slice rest = call_text(uri);
	json_t *text;

	*uri_r = uri;
	if (uri == NULL)
		return NULL;
	if (call_is(uri, CLOCK_URI))
		return resources_time();
	if (call_is(uri, COUNTER_URI))
		return json_sprintf("%" JSON_INTEGER_FORMAT, server->counter);
	if (!slice_has_prefix(rest, SLICE_LIT(ECHO_PREFIX))) {
		call->data = json_pack("{s:O}", "uri", uri);
		return call_fail(call, UNKNOWN_RESOURCE, "There is no such resource");
	}
	text = decode(slice_between(rest.p + strlen(ECHO_PREFIX), rest.p + rest.n));
	if (text == NULL)
		call_fail(call, MCP_INVALID_PARAMS,
			  "The text in the URI is not percent-encoded UTF-8");
	return text;
}

json_t *resources_read(struct server *server, struct call *call)
{
	const json_t *uri;
	json_t *text = read_text(server, call, &uri);

	if (text == NULL)
		return NULL;
	return json_pack("{s:[{s:O, s:s, s:o}]}", "contents", "uri", uri, "mimeType", "text/plain",
			 "text", text);
}

static json_t *watch(struct server *server, struct call *call, bool is_watched)
{
	const json_t *uri;
	json_t *text = read_text(server, call, &uri);

	if (text == NULL)
		return NULL;
	json_decref(text);
	if (call_is(uri, COUNTER_URI))
		server->is_counter_watched = is_watched;
	return json_object();
}

json_t *resources_subscribe(struct server *server, struct call *call)
{
	return watch(server, call, true);
}

json_t *resources_unsubscribe(struct server *server, struct call *call)
{
	return watch(server, call, false);
}

void resources_bump(struct server *server)
{
	server->counter++;
	if (server->is_counter_watched)
		rpc_send_notification("notifications/resources/updated",
				      json_pack("{s:s}", "uri", COUNTER_URI));
}
