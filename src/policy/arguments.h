/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the arguments of tools and prompts against the operator's rules. The check applies to the
 * text that is forwarded: every string of it decoded, names of members included. It does not
 * interpret texts further (nested JSON, command lines). SEC-54, SEC-55.
 */
#ifndef MCPGATED_POLICY_ARGUMENTS_H
#define MCPGATED_POLICY_ARGUMENTS_H

#include "base/check.h"

struct argument_rules;
struct envelope;
struct pattern_work;
struct rule;

/*
 * Returns NULL, or why the message must be refused, to follow "the arguments ...": a fixed text
 * that names no pattern.
 *
 * work     shared by all messages that arrive together: a batch gets no more than one message
 * *rule_r  the rule that is violated; the rule for all arguments if they cannot be checked
 */
const char *arguments_judge(const struct argument_rules *rules, const struct envelope *env,
			    struct pattern_work *work, struct rule *rule_r) must_check;

#endif
