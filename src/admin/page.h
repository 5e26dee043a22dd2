/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for browsers: its files, and who may request it and give orders. Its data comes
 * from admin/viewers; its orders are those of the admin socket. SEC-01, SEC-17, SEC-78.
 */
#ifndef MCPGATED_ADMIN_PAGE_H
#define MCPGATED_ADMIN_PAGE_H

#include "admin/admin.h"

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
/* The same for Host alone. */
bool page_is_own_host(struct slice host);
/* Answers with a file of the page. False: there is none at this path, and nothing was answered. */
bool page_reply_file(const struct inquiry *inquiry) must_check;
/*
 * Whether the request has the token with this SHA-256 (hexadecimal digits); NULL: there is no
 * token.
 */
bool page_has_token(const char *hash, const struct http_request *request);
/*
 * Answers what this request may do: {"orders": whether it may give any, "token": whether a token
 * would help}.
 */
struct http_exchange *page_tell_access(const struct inquiry *inquiry);

#endif
