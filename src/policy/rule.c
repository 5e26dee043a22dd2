/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rule.h"

#include <string.h>

#include "base/check.h"

static const struct {
	const char *text;
	unsigned int below;
} keys[] = {
#define X(name, key, depth) [RULE_##name] = { key, depth },
#include "policy/rule.def"
#undef X
};

const char *rule_key_text(enum rule_key key)
{
	CHECK(key < RULE_KEY_COUNT);
	return keys[key].text;
}

unsigned int rule_key_below(enum rule_key key)
{
	CHECK(key < RULE_KEY_COUNT);
	return keys[key].below;
}

void rule_append(const struct rule *rule, struct slice server, struct buf *out)
{
	static const struct slice name = SLICE("NAME");
	struct slice rest = slice_str(rule_key_text(rule->key));

	while (rest.n > 0) {
		size_t taken = 1;

		if (slice_has_prefix(rest, name)) {
			buf_append_slice(out, rule->name.n > 0 ? rule->name : server);
			taken = name.n;
		} else if (slice_has_prefix(rest, SLICE_LIT("[]"))) {
			buf_printf(out, "[%zu]", rule->number);
			taken = 2;
		} else {
			buf_append_char(out, *rest.p);
		}
		rest = slice_of(rest.p + taken, rest.n - taken);
	}
	if (rule->member.n > 0)
		buf_printf(out, ".%.*s", SLICE_ARG(rule->member));
	if (rule->has_entry)
		buf_printf(out, "[%zu]", rule->entry);
}
