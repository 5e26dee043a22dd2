/* SPDX-License-Identifier: Apache-2.0 */
/* mcpgatectl can: writes the question to the daemon, and prints its answer. */
#ifndef MCPGATED_CTL_CAN_H
#define MCPGATED_CTL_CAN_H

#include <jansson.h>

#include "base/check.h"
#include "base/error.h"

/* As on the command line; NULL: not given. */
struct can_question {
	const char *claims; /* JSON */
	const char *token;
	const char *prompt;
	const char *resource;
};

/*
 * The body of the request (the caller frees it). `words` are PRINCIPAL SERVER TOOL, without those
 * that options replace. NULL: err says what is wrong.
 */
char *can_write(const struct can_question *question, char *const *words, int count,
		struct error *err) must_check;
void can_show(const json_t *answer);

#endif
