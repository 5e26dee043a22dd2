/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever in a message a server could take for the name counts. */
#include "policy/uses.h"

#include "base/buf.h"
#include "policy/name.h"

enum used { USES_TOOL, USES_PROMPT, USES_RESOURCE, USES_REFERENCE };

static const struct use {
	struct slice method;
	enum used used;
	const char *what;
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
	uses_visit_fn *visit;
	void *arg;
	bool goes_on;
};

static int visit_reference_member(struct slice name, struct json value, void *arg)
{
	struct json quoted = { JSON_STRING, true, slice_of(name.p - 1, name.n + 2) };
	struct reference *reference = arg;
	struct buf plain = { 0 };

	reference->goes_on = scan_decode_string(quoted, &plain) == 0;
	if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("name")))
		reference->goes_on &= reference->visit(PERMISSION_PROMPT, value, reference->arg);
	else if (slice_is_equal_nocase(buf_slice(&plain), SLICE_LIT("uri")))
		reference->goes_on &= reference->visit(PERMISSION_TEMPLATE, value, reference->arg);
	buf_fini(&plain);
	return reference->goes_on ? 0 : -1;
}

/* A server that reads names in any letter case may take the last of several. SEC-11 */
static int visit_params_member(struct slice name, struct json value, void *arg)
{
	const struct reference *reference = arg;

	if (slice_is_equal_nocase(name, SLICE_LIT("ref")))
		scan_members(value.text, visit_reference_member, arg);
	return reference->goes_on ? 0 : -1;
}

static bool visit_use(const struct use *use, const struct envelope *env, uses_visit_fn *visit,
		      void *arg)
{
	struct reference reference = { visit, arg, true };

	if (env->params.type != JSON_OBJECT)
		return false;
	switch (use->used) {
	case USES_TOOL:
		return visit(PERMISSION_TOOL, env->name, arg);
	case USES_PROMPT:
		return visit(PERMISSION_PROMPT, env->name, arg);
	case USES_RESOURCE:
		return visit(PERMISSION_RESOURCE, env->uri, arg);
	case USES_REFERENCE:
		break;
	}
	scan_members(env->params.text, visit_params_member, &reference);
	return reference.goes_on;
}

const char *uses_visit(const struct envelope *env, uses_visit_fn *visit, void *arg)
{
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
	return use == NULL || visit_use(use, env, visit, arg) ? NULL : use->what;
}
