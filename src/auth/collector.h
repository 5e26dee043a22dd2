/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of traces as the program that fetches knows it: where spans are sent, with what header fields, and to
 * which addresses that may lead. All of it is the configuration's; who asks brings the body alone, and one at a time.
 * OTLP/HTTP with JSON. SEC-10, SEC-70
 */
#pragma once

#include <stdbool.h>

#include "auth/fetch.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

/* Of one body. */
#define COLLECTOR_BODY_BYTES_MAX (1024 * 1024)

struct collector_conf {
	char *endpoint; /* NULL: there is none */
	struct fetch_fields headers;
	char *ca_file;
	struct slice ca; /* PEM, read from there; empty: the system's */
	bool allow_private;
	bool plaintext; /* http to other machines */
};

struct collector;

/* Copies what it keeps of conf, whose endpoint is a URL of http or https. One that cannot be reached says so when it is sent something. */
struct collector *collector_new(struct loop *loop, const struct collector_conf *conf);
/* Ends what is under way without a callback. Accepts NULL. */
void collector_free(struct collector **collector);

/*
 * Sends a body of at most COLLECTOR_BODY_BYTES_MAX, which is copied. on_done of the fetch comes later, exactly once, unless
 * fetch_cancel comes first. Returns 0, or -1 and err.
 */
int collector_send(struct collector *collector, struct fetch *fetch, struct slice body,
		   struct error *err) must_check;
/* Overwrites in what the collector has answered the values of the headers that it is sent: whoever reads it must not learn them. */
void collector_hide_secrets(const struct collector *collector, struct buf *answer);
