/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator says about the arguments of tools and prompts, made ready to be asked: see arguments.h. */
#ifndef MCPGATED_POLICY_ARGUMENT_RULES_H
#define MCPGATED_POLICY_ARGUMENT_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "policy/name.h"
#include "policy/paths.h"

struct pattern;

/* Those of one entry of deny_patterns. */
struct tool_patterns {
	struct slice folded; /* the name, likewise */
	struct pattern **items;
	size_t count;
};

struct argument_rules {
	uint64_t max_bytes;             /* of the arguments as they are written; 0: any number */
	struct slice_map deny_patterns; /* by name of the tool or prompt; regular expressions */
	struct names forbidden_keys;
	struct path_rules paths;    /* no roots: paths are not looked at */
	struct names path_members;  /* whose texts are paths, whatever they look like */
	struct names paths_ignored; /* whose texts are none; as they are written */
	/* What follows from that: */
	const struct tool_patterns *patterns; /* one for each of deny_patterns */
};

/* Makes what follows. What is no name or no expression is left out; who reads the configuration refuses that. */
void argument_rules_prepare(struct argument_rules *rules);
/* Frees what follows. */
void argument_rules_fini(struct argument_rules *rules);

#endif
