/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for browsers: its files, and who may request it and give orders. Its data
 * comes to the viewers; its orders are those of the admin socket. SEC-01, SEC-17, SEC-78.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"

struct http_exchange;
struct http_request;
struct admin_request;

/*
 * ---- viewers ----
 *
 * Each gets a snapshot once a second, as an event, until it
 * disconnects. No snapshot is made without viewers, and never more than one a second: a new
 * viewer gets the last one first. A viewer that has not read the previous snapshot misses the
 * next, and is disconnected if that continues.
 */

#define VIEWERS_MAX 16
#define VIEWERS_EVERY_MS 1000
#define VIEWERS_BEHIND_MAX_MS 10000

struct viewers {
	struct list all;
	size_t count; /* including those about to begin; at most VIEWERS_MAX */
	struct timer every;
	struct buf last; /* the event made at last_ms, for viewers that come soon after */
	uint64_t last_ms;
};

void viewers_init(struct viewers *viewers);
/* There must be no viewers. */
void viewers_fini(struct viewers *viewers);
/*
 * Returns the exchange that sends the snapshots. NULL: there are too many viewers, and the request
 * has been answered.
 */
struct http_exchange *viewers_join(const struct admin_request *asked);

/* ---- requests ---- */

/* What of an operator's path is available at admin.page. */
enum page_use {
	PAGE_NOTHING,
	PAGE_SHOWS,
	PAGE_ORDERS, /* with the token of admin.page_token */
};

/*
 * Why a browser may be sending this request for another site's page; NULL: it is not. A page can
 * choose neither Host, which is its own name, nor Origin, which is where it came from; and nobody's
 * domain name is a numeric address.
 */
const char *page_find_stranger(const struct http_request *request);
/* Answers with a file of the page. False: there is none at this path, and nothing was answered. */
bool page_reply_file(const struct admin_request *asked) must_check;
/*
 * Whether the request has the token with this SHA-256 (hexadecimal digits); NULL: there is no
 * token.
 */
bool page_has_token(const char *hash, const struct http_request *request);
/*
 * Answers what this request may do: {"orders": whether it may give any, "token": whether a token
 * would help}.
 */
struct http_exchange *page_tell_access(const struct admin_request *asked);

/* The files of src/admin/page/, which make compiles into the program (page/generate). */
struct page_file {
	const char *path; /* in requests */
	const char *type;
	const unsigned char *bytes;
	size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;
