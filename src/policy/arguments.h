/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the arguments of tools and prompts may hold. Judged is the very text that is forwarded, every string of it
 * decoded, names of members as well. What a text means inside (JSON, a command line) is not looked at. SEC-54, SEC-55.
 */
#ifndef MCPGATED_POLICY_ARGUMENTS_H
#define MCPGATED_POLICY_ARGUMENTS_H

#include "base/check.h"

struct argument_rules;
struct envelope;
struct pattern_work;
struct rule;

/*
 * NULL, or why this message is to be refused, for "the arguments ...": a fixed text, which names no pattern.
 *
 * work     of all messages that come together: a batch takes no longer than one of them may
 * *rule_r  the rule that it breaks; that of all arguments if it cannot be judged
 */
const char *arguments_judge(const struct argument_rules *rules, const struct envelope *env,
			    struct pattern_work *work, struct rule *rule_r) must_check;

#endif
