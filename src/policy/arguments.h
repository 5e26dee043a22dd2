/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the arguments of tools and prompts against the operator's rules. The check applies to the
 * text that is forwarded: every string of it decoded, names of members included. It does not
 * interpret texts further (nested JSON, command lines). SEC-54, SEC-55.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "policy/name.h"
#include "policy/paths.h"

/* ---- the rules, prepared ---- */

/*
 * The operator's rules for the arguments of tools and prompts, prepared for evaluation; see
 * arguments.h.
 */

struct pattern;

/* The patterns of one entry of deny_patterns. */
struct tool_patterns {
	struct slice folded; /* the folded name of the tool or prompt */
	struct pattern **items;
	size_t count;
};

struct argument_rules {
	uint64_t max_bytes;             /* limit on the size of the arguments as written; 0: none */
	struct slice_map deny_patterns; /* regular expressions by name of the tool or prompt */
	struct names forbidden_keys;
	struct path_rules paths;    /* no roots: paths are not checked */
	struct names path_members;  /* members whose texts are always treated as paths */
	struct names paths_ignored; /* members whose texts are never paths, as written */
	/* Computed by argument_rules_prepare: */
	const struct tool_patterns *patterns; /* one for each of deny_patterns */
};

/*
 * Computes the derived members. Invalid names and expressions are skipped; the configuration reader
 * rejects them.
 */
void argument_rules_prepare(struct argument_rules *rules);
/* Frees the derived members. */
void argument_rules_fini(struct argument_rules *rules);

/* ---- judging arguments ---- */

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
