/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of what says for whom a request is and where it comes from: Host, Origin, Accept and Last-Event-ID, a line each. What must
 * hold: an Origin is allowed only if it is listed, or one of our names, with the port of a Host that is ours, in the spelling of
 * a browser; with TLS only https; an event id that is read is the only way to write it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "endpoint/answer.h"
#include "endpoint/frontend.h"
#include "endpoint/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "localhost", "[::1]", "gw.example" };
static const struct slice hosts[] = { SLICE("localhost"), SLICE("[::1]"), SLICE("gw.example") };
static const struct slice listed[] = { SLICE("https://app.example") };

/* The same as the code under test judges, by writing down all that may be. */
static bool is_expected(const struct frontend_conf *conf, struct slice origin, struct slice host,
			bool has_tls)
{
	const char *port =
		host.p[0] == '[' ? memchr(host.p, ']', host.n) + 1 : memchr(host.p, ':', host.n);
	struct slice own = origin_of(conf->authorization.public_url);
	int port_length = port != NULL ? (int)(host.p + host.n - port) : 0;
	char text[300];

	if (slice_is_equal_nocase(origin, listed[0]) ||
	    (own.n > 0 && slice_is_equal_nocase(origin, own)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (int tls = has_tls ? 1 : 0; tls < 2; tls++) {
			snprintf(text, sizeof(text), "%s%s%.*s", tls ? "https://" : "http://",
				 names[i], port_length, port_length > 0 ? port : "");
			if (slice_is_equal_nocase(origin, slice_str(text)))
				return origin.p[0] == 'h' &&
				       strncmp(origin.p, text, strchr(text, ':') - text + 3) == 0;
		}
	return false;
}

static void try_origin(const struct frontend_conf *conf, const struct http_request *request,
		       bool has_tls)
{
	struct slice allowed = { NULL, 0 };
	const char *why;
	int status = 0;

	if (request->fields[HTTP_HOST].n > 200)
		return;
	why = origin_check_host(conf, request, &status);
	CHECK(why == NULL || status == 400 || status == 403);
	if (why != NULL)
		return;
	why = origin_check(conf, request, has_tls, &allowed);
	CHECK((why == NULL) == (allowed.p != NULL));
	if (why == NULL)
		CHECK(is_expected(conf, request->fields[HTTP_ORIGIN], request->fields[HTTP_HOST],
				  has_tls));
}

static void try_event_id(struct slice id)
{
	struct event_source source = { .after = 0 };
	char client[SESSION_ID_LENGTH], text[EVENT_ID_BYTES];
	uint64_t number;

	if (memchr(id.p, '\0', id.n) == NULL && /* no field has one */
	    event_id_parse_of_client(id, client, &number) == 0 &&
	    id.p[SESSION_ID_LENGTH + 1] != '0')
		CHECK(slice_is_equal(id, event_id_of_client(slice_of(client, sizeof(client)),
							    number, text)));
	(void)!event_id_parse(id, &source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frontend frontend = { .conf = { .hosts = { hosts, ARRAY_LEN(hosts) },
					       .origins = { listed, ARRAY_LEN(listed) } } };
	struct http_request request = { .seen = 1u << HTTP_HOST | 1u << HTTP_ORIGIN |
						1u << HTTP_ACCEPT };
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	struct slice rest = slice_of(copy, size);

	CHECK(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	request.fields[HTTP_HOST] = slice_cut(&rest, '\n');
	request.fields[HTTP_ORIGIN] = slice_cut(&rest, '\n');
	request.fields[HTTP_ACCEPT] = slice_cut(&rest, '\n');
	for (int tls = 0; tls < 2; tls++) {
		try_origin(&frontend.conf, &request, tls);
		frontend.conf.authorization.public_url = SLICE_LIT("https://gw.example/base");
		try_origin(&frontend.conf, &request, tls);
		frontend.conf.authorization.public_url = slice_of(NULL, 0);
	}
	(void)landing_is_wanted(&frontend, &request);
	if (rest.n > 0)
		try_event_id(rest);
	free(copy);
	return 0;
}
