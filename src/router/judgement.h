/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that have waited while a reload changed the configuration: whatever they waited for, they
 * are judged again before they are sent, by what a call that comes now would be judged by.
 */
#ifndef MCPGATED_ROUTER_JUDGEMENT_H
#define MCPGATED_ROUTER_JUDGEMENT_H

#include "policy/rule.h"

struct call;
struct envelope;

/* Why a call that was admitted once is refused. */
struct call_refusal {
	int code;           /* one of enum mcp_error */
	enum rule_key rule; /* or RULE_NONE */
	const char *word;   /* for its record */
	char text[400];
};

/* Of a call that was about to be sent, or given a list: refuses it, or handles it, now or later. */
void judgement_begin(struct call *call, const struct envelope *env);

#endif
