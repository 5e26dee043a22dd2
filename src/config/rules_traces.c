/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the section `traces`. */
#include <string.h>

#include "auth/url.h"
#include "config/problem.h"
#include "config/rules.h"

#define FIELD_NAME_BYTES_MAX 128
#define FIELD_VALUE_BYTES_MAX 8192

/* As the program that fetches takes it; NULL: it is good. SEC-70 */
static const char *judge_endpoint(const struct collector_conf *conf)
{
	struct url url;

	if (url_parse(slice_str(conf->endpoint), &url) < 0 ||
	    (!url_is_https(&url) && !slice_is_equal_nocase(url.scheme, SLICE_LIT("http"))))
		return "must be an https or http URL without a user name, like "
		       "https://otel.example.com/v1/traces";
	if (url.tail.n > 0 && memchr(url.tail.p, '#', url.tail.n) != NULL)
		return "must have no fragment";
	if (url.tail.n == 0 || slice_is_equal(url.tail, SLICE_LIT("/")))
		return "must include the path, which usually is /v1/traces";
	if (!url_is_https(&url) && !url_is_loopback(&url) && !conf->plaintext)
		return "goes to another machine without TLS: use https, or set 'plaintext: true'";
	return NULL;
}

/* RFC 9110 s5.6.2 */
static bool is_token(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length <= FIELD_NAME_BYTES_MAX &&
	       strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length;
}

/* RFC 9110 s5.5: what is seen, spaces and tabs. */
static bool is_value(const char *value)
{
	size_t length = strlen(value);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)value[i] < ' ' ? value[i] != '\t' : value[i] == 0x7f)
			return false;
	return length > 0 && length <= FIELD_VALUE_BYTES_MAX;
}

/* What we say ourselves, and what is about the connection. */
static bool is_ours(const char *name)
{
	static const char *const names[] = { "accept",
					     "connection",
					     "content-encoding",
					     "content-length",
					     "content-type",
					     "expect",
					     "host",
					     "te",
					     "trailer",
					     "transfer-encoding",
					     "upgrade" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(names[i], name) == 0)
			return true;
	return false;
}

/* Of a value nothing is told: it is secret. */
static void check_headers(const struct fetch_fields *headers, const struct tree *at,
			  struct config_problems *problems)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct fetch_field *field = &headers->items[i];
		const struct tree *place = tree_below(at, field->name);

		if (!is_token(field->name))
			problem_add_at_key(problems, place,
					   "'%.60s' cannot be the name of a header field",
					   field->name);
		else if (is_ours(field->name))
			problem_add_at_key(problems, place, "'%.60s' cannot be set here",
					   field->name);
		if (!is_value(field->value))
			problem_add_at(problems, place,
				       "cannot be the value of a header field: it is empty, longer "
				       "than 8 KiB, or has control characters, like a line break");
	}
}

void rules_check_traces(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const struct collector_conf *collector = &config->traces.collector;
	const struct tree *traces = tree_find(root, "traces");
	const struct tree *otlp = traces != NULL ? tree_find(traces, "otlp") : NULL;
	const char *problem;

	if (otlp == NULL || tree_is_null(otlp))
		return;
	check_headers(&collector->headers, tree_below(otlp, "headers"), problems);
	if (collector->endpoint == NULL) {
		if (collector->headers.count > 0 || collector->ca_file != NULL)
			problem_add_at(problems, otlp, "the key 'endpoint' is missing");
		return;
	}
	problem = judge_endpoint(collector);
	if (problem != NULL)
		problem_add_at(problems, tree_below(otlp, "endpoint"), "%s", problem);
}
