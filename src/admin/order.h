/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator writes to have a token denied: reading it, and nothing else. */
#ifndef MCPGATED_ADMIN_ORDER_H
#define MCPGATED_ADMIN_ORDER_H

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "session/denials.h"

/* The longest issuer, and the longest name of a token that is accepted. */
#define ORDER_NAME_BYTES_MAX 2048

struct order {
	void *document;      /* what the texts lie in */
	struct slice issuer; /* empty: not said */
	enum denial_by by;
	struct slice name;
	uint64_t until_ms; /* wall clock; 0: not said */
};

/*
 * {"issuer": TEXT, "sub" or "client_id" or "jti" or "sid": TEXT, "until_ms": NUMBER}; all but the second may be
 * missing, and nothing else may be there. 0: end it with order_fini; -1: err may be shown to the operator.
 */
int order_read(struct slice body, struct order *order_r, struct error *err) must_check;
void order_fini(struct order *order);

#endif
