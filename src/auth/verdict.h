/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The possible verdicts on a token: the rows of verdict.def. The function that finds a reason to
 * refuse writes the verdict and its cause; authorization maps it to a status, the log to a word.
 */
#ifndef MCPGATED_AUTH_VERDICT_H
#define MCPGATED_AUTH_VERDICT_H

#include <stdint.h>

#include "base/check.h"

enum verdict_kind {
#define X(id, outcome, name, description) VERDICT_##id,
#include "auth/verdict.def"
#undef X
	VERDICT_COUNT
};

enum verdict_outcome {
	VERDICT_GRANTED,
	VERDICT_REFUSED, /* 401 invalid_token with the row's description */
	VERDICT_DENIED,  /* 403 without a challenge: the token is valid, and no other would help */
	VERDICT_UNAVAILABLE, /* 503 with Retry-After, no challenge: the token may be valid */
};

#define VERDICT_CAUSE_BYTES 160

struct verdict {
	enum verdict_kind kind;
	/*
	 * For the log, never for the client: what exactly was wrong. May quote claims, never the
	 * token.
	 */
	char cause[VERDICT_CAUSE_BYTES];
};

struct verdict_row {
	enum verdict_outcome outcome;
	const char *name; /* for the log and the metrics */
	/*
	 * For error_description: constant ASCII without `"`, `\` and `=`; "" if there is no
	 * objection to the token.
	 */
	const char *description;
};
const struct verdict_row *verdict_get(enum verdict_kind kind);

/* How often this process has reached this verdict; whoever acts on a verdict counts it. */
void verdict_count(enum verdict_kind kind);
uint64_t verdict_counted(enum verdict_kind kind);

/* Fills *verdict_r and returns -1, so that callers can write `return verdict_set(…)`. */
int verdict_set(struct verdict *verdict_r, enum verdict_kind kind, const char *format, ...)
	printf_like(3, 4);

#endif
