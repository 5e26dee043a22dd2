/* SPDX-License-Identifier: Apache-2.0 */
/* Which tool, prompt or resource a message uses. Whatever in it a server could take for the name counts. */
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/permissions.h"

bool permissions_allow_json(const struct permissions *permissions, enum permission_kind kind,
			    struct json name)
{
	struct buf decoded = { 0 };
	bool is_allowed;

	if (!permissions->has_rules)
		return true;
	is_allowed = scan_decode_string(name, &decoded) == 0 &&
		     permissions_allow(permissions, kind, buf_slice(&decoded));
	buf_fini(&decoded);
	return is_allowed;
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

struct judge {
	permission_judge_fn *allows;
	const void *arg;
};

/* What a completion is for: whatever in it could be taken for a name or a URI. */
struct reference {
	const struct judge *judge;
	bool is_allowed;
};

static bool allow(const struct judge *judge, enum permission_kind kind, struct json name)
{
	return judge->allows(judge->arg, kind, name);
}

static int judge_reference_member(struct slice name, struct json value, void *arg)
{
	struct json quoted = { JSON_STRING, true, slice_of(name.p - 1, name.n + 2) };
	struct reference *reference = arg;
	struct buf plain = { 0 };

	reference->is_allowed &= scan_decode_string(quoted, &plain) == 0;
	if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("name")))
		reference->is_allowed &= allow(reference->judge, PERMISSION_PROMPT, value);
	else if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("uri")))
		reference->is_allowed &= allow(reference->judge, PERMISSION_TEMPLATE, value);
	buf_fini(&plain);
	return reference->is_allowed ? 0 : -1;
}

/* A server that reads names in any letter case may take the last of several. SEC-11 */
static int judge_params_member(struct slice name, struct json value, void *arg)
{
	const struct reference *reference = arg;

	if (slice_is_equal_nocase(name, SLICE_LIT("ref")))
		scan_members(value.text, judge_reference_member, arg);
	return reference->is_allowed ? 0 : -1;
}

static bool allow_use(const struct judge *judge, const struct use *use, const struct envelope *env)
{
	struct reference reference = { judge, true };

	if (env->params.type != JSON_OBJECT)
		return false;
	switch (use->used) {
	case USES_TOOL:
		return allow(judge, PERMISSION_TOOL, env->name);
	case USES_PROMPT:
		return allow(judge, PERMISSION_PROMPT, env->name);
	case USES_RESOURCE:
		return allow(judge, PERMISSION_RESOURCE, env->uri);
	case USES_REFERENCE:
		break;
	}
	scan_members(env->params.text, judge_params_member, &reference);
	return reference.is_allowed;
}

const char *permissions_find_refused(permission_judge_fn *allows, const void *arg,
				     const struct envelope *env)
{
	const struct judge judge = { allows, arg };
	const struct use *use = find_use(env->method);
	struct buf folded = { 0 };
	bool is_name = true;

	if (env->method.n == 0)
		return NULL;
	if (use == NULL) {
		is_name = name_fold(env->method, &folded) == NULL;
		use = find_use(buf_slice(&folded));
		buf_fini(&folded);
	}
	if (!is_name)
		return "method";
	return use == NULL || allow_use(&judge, use, env) ? NULL : use->what;
}

static bool allow_by_rules(const void *arg, enum permission_kind kind, struct json name)
{
	return permissions_allow_json(arg, kind, name);
}

const char *permissions_find_denied(const struct permissions *permissions,
				    const struct envelope *env)
{
	return permissions->has_rules ? permissions_find_refused(allow_by_rules, permissions, env) :
					NULL;
}
