/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page, for browsers: its files, and who may ask for it and give orders. What it shows comes from
 * admin/viewers; its orders are those of the admin socket. SEC-01, SEC-17, SEC-78.
 */
#ifndef MCPGATED_ADMIN_PAGE_H
#define MCPGATED_ADMIN_PAGE_H

#include "admin/admin.h"

/* What of the operator's paths there is at admin.page. */
enum page_use {
	PAGE_NOTHING,
	PAGE_SHOWS,
	PAGE_ORDERS, /* with the token of admin.page_token */
};

/*
 * Why a browser that sends such a request shows the page of a stranger; NULL: it does not. A page cannot choose Host, which is
 * its own name, and Origin, which is where it is from; numbers of addresses are nobody's name.
 */
const char *page_find_stranger(const struct http_request *request);
/* The same, of Host alone. */
bool page_is_own_host(struct slice host);
/* Answers with a file of the page; false: there is none at this path, and no answer. */
bool page_reply_file(const struct inquiry *inquiry) must_check;
/* Whether the request has the token, whose SHA-256 this is in hexadecimal digits; NULL: there is none. */
bool page_has_token(const char *hash, const struct http_request *request);
/* Answers what this request may do: {"orders": whether it may give any, "token": whether a token would help}. */
struct http_exchange *page_tell_access(const struct inquiry *inquiry);

#endif
