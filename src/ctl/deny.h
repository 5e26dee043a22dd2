/* SPDX-License-Identifier: Apache-2.0 */
/* The command deny: what is ordered, and what the daemon says about it. */
#ifndef MCPGATED_CTL_DENY_H
#define MCPGATED_CTL_DENY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

/* The options of the command line; NULL: not given. */
struct deny_words {
	const char *issuer;
	const char *sub;
	const char *client_id;
	const char *jti;
	const char *sid;
	const char *duration;
};

/* Appends the body of the request to the daemon. -1: err says what is wrong with the words. */
int deny_append_order(const struct deny_words *words, struct buf *out, struct error *err)
	must_check;
/* The entry that has been set, and how to make it outlast a restart. */
void deny_print_added(const json_t *entry);

#endif
