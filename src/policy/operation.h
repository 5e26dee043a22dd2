/* SPDX-License-Identifier: Apache-2.0 */
/* What a message asks for, where a policy is about that. AUTH-SCP-12, SEC-50. */
#ifndef MCPGATED_POLICY_OPERATION_H
#define MCPGATED_POLICY_OPERATION_H

struct envelope;

enum operation {
	OPERATION_OTHER,
	OPERATION_TOOL,   /* the call of a tool */
	OPERATION_PROMPT, /* a prompt, to be made of arguments */
};

/*
 * Our own routing knows a method by its spelling alone. Here what only looks like one counts as it; one that cannot be
 * compared (name_fold), as the call of a tool.
 */
enum operation operation_of(const struct envelope *env);

#endif
