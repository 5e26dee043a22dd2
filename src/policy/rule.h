/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rule of the configuration decided: a key of rule.def, and the entry below it. For audit
 * records and the operator; clients are not told. SEC-63
 */
#ifndef MCPGATED_POLICY_RULE_H
#define MCPGATED_POLICY_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

enum rule_key {
#define X(name, key, below) RULE_##name,
#include "policy/rule.def"
#undef X
	RULE_KEY_COUNT
};

/* All zeros: no rule. Its texts belong to the configuration. */
struct rule {
	enum rule_key key;
	struct slice name;   /* stands for NAME in the key; empty: the server concerned */
	size_t number;       /* stands for [] in the key */
	struct slice member; /* of the map at the key; empty: not a map, or the whole map */
	bool has_entry;
	size_t entry; /* index in the list there */
};

/* The key as in rule.def, and how many levels below it a rule may be. */
const char *rule_key_text(enum rule_key key);
unsigned int rule_key_below(enum rule_key key);
/*
 * Appends e.g. `servers.github.tools.deny[2]` or `roles.dev.allow.github[0]`; nothing for no rule.
 */
void rule_append(const struct rule *rule, struct slice server, struct buf *out);

#endif
