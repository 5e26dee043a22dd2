/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts servers once, by itself and as the daemon would, and says what works and what does not. No daemon
 * is needed.
 */
#ifndef MCPGATED_CTL_DOCTOR_H
#define MCPGATED_CTL_DOCTOR_H

#include "base/error.h"
#include "config/config.h"

#define DOCTOR_CLAIMS_MAX 16

/* Claims of a caller, who is not there: NAME=VALUE each. Borrowed. */
struct doctor_claims {
	const char *items[DOCTOR_CLAIMS_MAX];
	size_t count;
};

/* Takes one more. -1: err says why it can be none. */
int doctor_add_claim(struct doctor_claims *claims, const char *text, struct error *err) must_check;

/*
 * Examines the server of this name, or all that are enabled, with these claims where they want some. Returns how many are
 * ill, or -1: there is none.
 */
int doctor_examine(struct config *config, const char *name, const struct doctor_claims *claims);

#endif
