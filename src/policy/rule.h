/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rule of the configuration has decided: a key of rule.def, and the entry below it. For records and the operator;
 * clients are not told. SEC-63
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

/* All zeros: none. Its texts are the configuration's. */
struct rule {
	enum rule_key key;
	struct slice
		name;  /* what NAME stands for in the key; empty: the server that is asked about */
	size_t number; /* what stands in [] */
	struct slice member; /* of the map at the key; empty: it is no map, or all of it */
	bool has_entry;
	size_t entry; /* of the list there */
};

/* As it stands in the table, and how far below it rules may stand. */
const char *rule_key_text(enum rule_key key);
unsigned int rule_key_below(enum rule_key key);
/* Appends `servers.github.tools.deny[2]`, `roles.dev.allow.github[0]`; nothing for none. */
void rule_append(const struct rule *rule, struct slice server, struct buf *out);

#endif
