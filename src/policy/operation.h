/* SPDX-License-Identifier: Apache-2.0 */
/* What a message asks for, as far as policies depend on it. AUTH-SCP-12, SEC-50. */
#ifndef MCPGATED_POLICY_OPERATION_H
#define MCPGATED_POLICY_OPERATION_H

struct envelope;

enum operation {
	OPERATION_OTHER,
	OPERATION_TOOL,   /* tools/call */
	OPERATION_PROMPT, /* prompts/get */
};

/*
 * Our own routing recognizes a method only by its exact spelling. Here a look-alike counts as the
 * method it resembles; a method that cannot be compared (name_fold) counts as a tool call.
 */
enum operation operation_of(const struct envelope *env);

#endif
