/* SPDX-License-Identifier: Apache-2.0 */
/* Which tool, prompt or resource a message uses. Whatever in it a server could take for the name counts. */
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/permissions.h"

enum permission_verdict permissions_judge_json(const struct permissions *permissions,
					       enum permission_kind kind, struct json name)
{
	enum permission_verdict verdict = PERMISSION_UNLISTED;
	struct buf decoded = { 0 };

	if (!permissions->has_rules)
		return PERMISSION_ALLOWED;
	if (scan_decode_string(name, &decoded) == 0)
		verdict = permissions_judge(permissions, kind, buf_slice(&decoded));
	buf_fini(&decoded);
	return verdict;
}

bool permissions_allow_json(const struct permissions *permissions, enum permission_kind kind,
			    struct json name)
{
	return permissions_judge_json(permissions, kind, name) == PERMISSION_ALLOWED;
}

/* ---- uses ---- */

static const struct {
	const char *allow;
	const char *deny;
} keys[PERMISSION_KINDS] = {
	[PERMISSION_TOOL] = { "servers.NAME.tools.allow", "servers.NAME.tools.deny" },
	[PERMISSION_PROMPT] = { "servers.NAME.prompts.allow", "servers.NAME.prompts.deny" },
	[PERMISSION_RESOURCE] = { "servers.NAME.resources.allow", "servers.NAME.resources.deny" },
	[PERMISSION_TEMPLATE] = { "servers.NAME.templates.allow", "servers.NAME.templates.deny" },
};

/* NULL: it may be used; else the key of what says no. */
static const char *find_rule(const struct permissions *permissions, enum permission_kind kind,
			     struct json name)
{
	switch (permissions_judge_json(permissions, kind, name)) {
	case PERMISSION_ALLOWED:
		break;
	case PERMISSION_UNLISTED:
		return keys[kind].allow;
	case PERMISSION_DENIED:
		return keys[kind].deny;
	}
	return NULL;
}

enum used { USES_TOOL, USES_PROMPT, USES_RESOURCE, USES_REFERENCE };

static const struct use {
	struct slice method;
	enum used used;
	const char *what; /* that may be denied */
} uses[] = {
	{ SLICE("tools/call"), USES_TOOL, "tool" },
	{ SLICE("prompts/get"), USES_PROMPT, "prompt" },
	{ SLICE("resources/read"), USES_RESOURCE, "resource" },
	{ SLICE("resources/subscribe"), USES_RESOURCE, "resource" },
	{ SLICE("resources/unsubscribe"), USES_RESOURCE, "resource" },
	{ SLICE("completion/complete"), USES_REFERENCE, "prompt or resource" },
};

static const struct use *find_use(struct slice method)
{
	for (size_t i = 0; i < ARRAY_LEN(uses); i++)
		if (slice_is_equal(method, uses[i].method))
			return &uses[i];
	return NULL;
}

/* What a completion is for: whatever in it could be taken for a name or a URI. */
struct reference {
	const struct permissions *permissions;
	const char *rule; /* that one of them breaks; NULL: none */
};

static int judge_reference_member(struct slice name, struct json value, void *arg)
{
	struct json quoted = { JSON_STRING, true, slice_of(name.p - 1, name.n + 2) };
	struct reference *reference = arg;
	struct buf plain = { 0 };

	if (scan_decode_string(quoted, &plain) < 0)
		reference->rule = keys[PERMISSION_PROMPT].allow; /* what is no name may be any */
	else if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("name")))
		reference->rule = find_rule(reference->permissions, PERMISSION_PROMPT, value);
	else if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("uri")))
		reference->rule = find_rule(reference->permissions, PERMISSION_TEMPLATE, value);
	buf_fini(&plain);
	return reference->rule == NULL ? 0 : -1;
}

/* A server that reads names in any letter case may take the last of several. SEC-11 */
static int judge_params_member(struct slice name, struct json value, void *arg)
{
	const struct reference *reference = arg;

	if (slice_is_equal_nocase(name, SLICE_LIT("ref")))
		scan_members(value.text, judge_reference_member, arg);
	return reference->rule == NULL ? 0 : -1;
}

/* NULL, or the rule that it breaks. */
static const char *judge_use(const struct permissions *permissions, const struct use *use,
			     const struct envelope *env)
{
	struct reference reference = { permissions, NULL };
	const struct json none = { .type = JSON_ABSENT };
	bool has_names = env->params.type == JSON_OBJECT;

	switch (use->used) {
	case USES_TOOL:
		return find_rule(permissions, PERMISSION_TOOL, has_names ? env->name : none);
	case USES_PROMPT:
		return find_rule(permissions, PERMISSION_PROMPT, has_names ? env->name : none);
	case USES_RESOURCE:
		return find_rule(permissions, PERMISSION_RESOURCE, has_names ? env->uri : none);
	case USES_REFERENCE:
		break;
	}
	if (!has_names)
		return keys[PERMISSION_PROMPT].allow;
	scan_members(env->params.text, judge_params_member, &reference);
	return reference.rule;
}

const char *permissions_find_denied(const struct permissions *permissions,
				    const struct envelope *env, const char **rule_r)
{
	const struct use *use = find_use(env->method);
	struct buf folded = { 0 };
	bool is_name = true;

	*rule_r = "";
	if (!permissions->has_rules || env->method.n == 0)
		return NULL;
	if (use == NULL) {
		is_name = name_fold(env->method, &folded) == NULL;
		use = find_use(buf_slice(&folded));
		buf_fini(&folded);
	}
	if (!is_name)
		return "method";
	if (use == NULL)
		return NULL;
	*rule_r = judge_use(permissions, use, env);
	return *rule_r == NULL ? NULL : use->what;
}
