/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the operator's order to deny a token. */
#ifndef MCPGATED_ADMIN_DENY_REQUEST_H
#define MCPGATED_ADMIN_DENY_REQUEST_H

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "session/deny_list.h"

/* The longest accepted issuer, and the longest accepted name of a token. */
#define DENY_REQUEST_NAME_BYTES_MAX 2048

struct deny_request {
	void *document;      /* owns the texts */
	struct slice issuer; /* empty: not given */
	enum denial_by by;
	struct slice name;
	uint64_t until_ms; /* wall clock; 0: not given */
};

/*
 * Reads {"issuer": TEXT, "sub" or "client_id" or "jti" or "sid": TEXT, "until_ms": NUMBER}; only
 * the second is required, and other members are errors. 0: end it with deny_request_fini; -1: err
 * may be shown to the operator.
 */
int deny_request_read(struct slice body, struct deny_request *deny_request_r, struct error *err)
	must_check;
void deny_request_fini(struct deny_request *deny_request);

#endif
