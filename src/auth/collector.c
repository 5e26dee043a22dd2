/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/collector.h"

#include <stdlib.h>
#include <string.h>

#include "auth/url.h"
#include "base/mem.h"

#define SECRET_BYTES_MIN 4

struct collector {
	struct fetcher *fetcher;
	char *endpoint;
	struct fetch_fields headers;
	char *own_ca;
	struct slice ca;
	struct address_filter address_filter;
	bool allow_http;
};

/* ---- whole ---- */

struct collector *collector_new(struct loop *loop, const struct collector_conf *conf)
{
	struct collector *collector = mem_zalloc(sizeof(*collector));
	struct fetch_fields *headers = &collector->headers;
	struct url url = { .scheme = { NULL, 0 } };

	CHECK(conf->endpoint != NULL);
	CHECK(url_parse(slice_str(conf->endpoint), &url) == 0); /* the rules have asked */
	collector->fetcher = fetcher_new(loop);
	collector->endpoint = mem_strdup(conf->endpoint);
	collector->own_ca = conf->ca.n > 0 ? mem_dup_slice(conf->ca) : NULL;
	collector->ca =
		conf->ca.n > 0 ? slice_of(collector->own_ca, conf->ca.n) : fetch_system_ca();
	collector->allow_http = !url_is_https(&url);
	collector->address_filter =
		(struct address_filter){ url_is_loopback(&url), conf->allow_private };
	headers->items = mem_zalloc((conf->headers.count + 1) * sizeof(*headers->items));
	for (; headers->count < conf->headers.count; headers->count++) {
		const struct fetch_field *field = &conf->headers.items[headers->count];

		headers->items[headers->count] =
			(struct fetch_field){ mem_strdup(field->name), mem_strdup(field->value) };
	}
	return collector;
}

void collector_free(struct collector **collector)
{
	struct collector *c = *collector;

	if (c == NULL)
		return;
	fetcher_free(&c->fetcher);
	for (size_t i = 0; i < c->headers.count; i++) {
		explicit_bzero(c->headers.items[i].value, strlen(c->headers.items[i].value));
		free(c->headers.items[i].name);
		free(c->headers.items[i].value);
	}
	free(c->headers.items);
	free(c->endpoint);
	free(c->own_ca);
	free(c);
	*collector = NULL;
}

/* ---- sending ---- */

int collector_send(struct collector *collector, struct fetch *fetch, struct slice body,
		   struct error *err)
{
	const struct fetch_request request = {
		.url = collector->endpoint,
		.body = body,
		.media_type = "application/json",
		.fields = &collector->headers,
		.ca = collector->ca,
		.address_filter = collector->address_filter,
		.allow_http = collector->allow_http,
	};

	CHECK(body.n <= COLLECTOR_BODY_BYTES_MAX);
	if (body.n == 0)
		return error_set(err, ERROR_INVALID, "there is nothing to send");
	if (!collector->allow_http && collector->ca.n == 0)
		return error_set(err, ERROR_SYSTEM,
				 "the system has no CA certificates (package ca-certificates) and "
				 "traces.otlp names none (ca)");
	fetch_start(collector->fetcher, fetch, &request);
	return 0;
}

/* ---- its answer ---- */

static void hide(struct buf *text, struct slice secret)
{
	char *at = text->data, *end = at + text->len;

	/* What is shorter than any secret would make holes anywhere. */
	if (secret.n < SECRET_BYTES_MIN)
		return;
	while ((at = memmem(at, (size_t)(end - at), secret.p, secret.n)) != NULL) {
		memset(at, '*', secret.n);
		at += secret.n;
	}
}

void collector_hide_secrets(const struct collector *collector, struct buf *answer)
{
	CHECK(answer->len <= FETCH_BODY_BYTES_MAX);
	for (size_t i = 0; i < collector->headers.count && answer->len > 0; i++) {
		const char *value = collector->headers.items[i].value;
		const char *space = strrchr(value, ' '); /* Bearer SECRET */

		hide(answer, slice_str(value));
		if (space != NULL)
			hide(answer, slice_str(space + 1));
	}
}
