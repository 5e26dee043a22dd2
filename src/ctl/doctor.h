/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts servers, each once and in the way the daemon would, and reports what works and what does
 * not. Needs no daemon.
 */
#ifndef MCPGATED_CTL_DOCTOR_H
#define MCPGATED_CTL_DOCTOR_H

#include "base/error.h"
#include "config/config.h"

#define DOCTOR_CLAIMS_MAX 16

/* Claims of an imaginary caller, each NAME=VALUE. Borrowed. */
struct doctor_claims {
	const char *items[DOCTOR_CLAIMS_MAX];
	size_t count;
};

/* Adds one. -1: it is not a valid claim; err says why. */
int doctor_add_claim(struct doctor_claims *claims, const char *text, struct error *err) must_check;

/*
 * Examines the server of this name, those of the endpoint of this name, or all that are enabled; those
 * that need claims get these.
 * Returns the number of servers with a failure, or -1: there is no such server.
 */
int doctor_examine(struct config *config, const char *name, const struct doctor_claims *claims);

#endif
