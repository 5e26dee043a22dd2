/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are compared in a folded form: if the server takes a name for another one, both have the same. Of the URIs of
 * resources it is not known whether the server tells letters by case: a deny fits both ways, an allow exactly.
 */
#include "policy/permissions.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/rights.h"

/* ---- which names ---- */

/* Whatever in a message a server could take for the name counts. */

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

/* ---- which operation ---- */

static enum operation find_operation(struct slice method)
{
	const struct use *use = find_use(method);

	if (use != NULL && use->used == USES_TOOL)
		return OPERATION_TOOL;
	return use != NULL && use->used == USES_PROMPT ? OPERATION_PROMPT : OPERATION_OTHER;
}

enum operation operation_of(const struct envelope *env)
{
	at_end(buf_fini) struct buf folded = { 0 };
	enum operation operation = OPERATION_OTHER;

	if (env->kind == ENVELOPE_REQUEST || env->kind == ENVELOPE_NOTIFICATION) {
		operation = find_operation(env->method);
		if (operation == OPERATION_OTHER)
			operation = name_fold(env->method, &folded) != NULL ?
					    OPERATION_TOOL :
					    find_operation(buf_slice(&folded));
	}
	return operation;
}

/* What a completion is for: whatever in it could be taken for a name or a URI. */
static bool visit_reference(struct slice reference, uses_visit_fn *visit, void *arg)
{
	SCAN_MEMBERS(member, reference) {
		at_end(buf_fini) struct buf room = { 0 };
		struct slice meant;
		bool goes_on = scan_read_name(member.name, &room, &meant) == 0;

		if (slice_is_equal_nocase(meant, SLICE_LIT("name")))
			goes_on &= visit(PERMISSION_PROMPT, member.value, arg);
		else if (slice_is_equal_nocase(meant, SLICE_LIT("uri")))
			goes_on &= visit(PERMISSION_TEMPLATE, member.value, arg);
		if (!goes_on)
			return false;
	}
	return true;
}

static bool visit_use(const struct use *use, const struct envelope *env, uses_visit_fn *visit,
		      void *arg)
{
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
	/* A server that reads names in any letter case may take the last of several. SEC-11 */
	SCAN_MEMBERS(param, env->params.text)
		if (slice_is_equal_nocase(param.name, SLICE_LIT("ref")) &&
		    !visit_reference(param.value.text, visit, arg))
			return false;
	return true;
}

const char *uses_visit(const struct envelope *env, uses_visit_fn *visit, void *arg)
{
	const struct use *use = find_use(env->method);
	at_end(buf_fini) struct buf folded = { 0 };
	bool is_name = true;

	if (env->method.n == 0)
		return NULL;
	if (use == NULL) {
		is_name = name_fold(env->method, &folded) == NULL;
		use = find_use(buf_slice(&folded));
	}
	if (!is_name)
		return "method";
	return use == NULL || visit_use(use, env, visit, arg) ? NULL : use->what;
}

/* ---- permissions ---- */

/* ---- names ---- */

static bool is_uri(enum permission_kind kind)
{
	return kind == PERMISSION_RESOURCE || kind == PERMISSION_TEMPLATE;
}

const char *permission_fold(enum permission_kind kind, struct slice name, struct buf *folded)
{
	return is_uri(kind) ? uri_fold(name, folded) : name_fold(name, folded);
}

const char *permission_read_form(enum permission_kind kind, struct slice name, struct buf *room,
				 struct slice *form_r)
{
	const char *why;

	if (!is_uri(kind))
		return name_read_form(name, room, form_r);
	room->len = 0;
	why = uri_fold(name, room);
	*form_r = why == NULL ? buf_slice(room) : slice_of(NULL, 0);
	return why;
}

static void permissions_lower(struct buf *text)
{
	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] >= 'A' && text->data[i] <= 'Z')
			text->data[i] |= 0x20;
}

static struct slice fold_pattern(enum permission_kind kind, struct slice pattern, bool is_deny)
{
	struct buf folded = { 0 };

	(void)!permission_fold(kind, pattern, &folded); /* then it stays empty */
	if (is_deny && is_uri(kind))
		permissions_lower(&folded);
	(void)buf_terminate(&folded);
	return slice_of(folded.data, folded.len);
}

/*
 * The folded form of a pattern that denies something. It also covers servers that compare URIs
 * without case, or ignore what follows a `?`. The caller frees it; empty: invalid name.
 */
static struct slice permission_fold_deny(enum permission_kind kind, struct slice pattern)
{
	return fold_pattern(kind, pattern, true);
}

/* A server may not look at what follows. */
static struct slice without_query(struct slice uri)
{
	size_t n = 0;

	while (n < uri.n && uri.p[n] != '?' && uri.p[n] != '#')
		n++;
	return slice_of(uri.p, n);
}

bool permission_fits_deny(enum permission_kind kind, struct slice folded, struct slice pattern)
{
	at_end(buf_fini) struct buf lowered = { 0 };

	if (!is_uri(kind))
		return text_fits_pattern(folded, pattern);
	buf_append_slice(&lowered, folded);
	permissions_lower(&lowered);
	return text_fits_pattern(buf_slice(&lowered), pattern) ||
	       text_fits_pattern(without_query(buf_slice(&lowered)), pattern);
}

/* ---- rules ---- */

static struct slices fold_all(enum permission_kind kind, struct slices patterns, bool is_deny)
{
	struct slice *items = mem_zalloc((patterns.count + 1) * sizeof(*items));

	for (size_t i = 0; i < patterns.count; i++)
		items[i] = fold_pattern(kind, patterns.items[i], is_deny);
	return (struct slices){ items, patterns.count };
}

static void fold_rules(struct permission_rules *rules)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		CHECK(rules[kind].allow_folded.items == NULL);
		CHECK(rules[kind].deny_folded.items == NULL);
		rules[kind].allow_folded = fold_all(kind, rules[kind].allow, false);
		rules[kind].deny_folded = fold_all(kind, rules[kind].deny, true);
	}
}

void permissions_finish(struct permissions *permissions)
{
	fold_rules(permissions->kinds);
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct permission_rules *rules = &permissions->kinds[kind];

		permissions->has_rules |= rules->deny.count > 0 || rules->allow.count != 1 ||
					  !slice_is_equal(rules->allow.items[0], SLICE_LIT("*"));
	}
	for (size_t i = 0; i < permissions->role_count; i++)
		fold_rules(permissions->roles[i].kinds);
}

static void free_folded(struct slices *folded)
{
	for (size_t i = 0; i < folded->count; i++)
		free((char *)(uintptr_t)folded->items[i].p);
	free((struct slice *)(uintptr_t)folded->items);
	*folded = (struct slices){ NULL, 0 };
}

static void free_rules(struct permission_rules *rules)
{
	for (size_t i = 0; i < PERMISSION_KINDS; i++) {
		free_folded(&rules[i].allow_folded);
		free_folded(&rules[i].deny_folded);
	}
}

void permissions_free(struct permissions *permissions)
{
	free_rules(permissions->kinds);
	for (size_t i = 0; i < permissions->role_count; i++)
		free_rules(permissions->roles[i].kinds);
	free(permissions->roles);
	permissions->roles = NULL;
	permissions->role_count = 0;
}

/* ---- verdicts ---- */

/* A name that is judged, and what has decided so far. */
struct judgement {
	enum permission_kind kind;
	struct slice name; /* folded */
	struct permission_verdict verdict;
};

/* By a list of what is denied, or allowed. */
static bool is_decided(struct judgement *judgement, enum permission_ground ground,
		       const struct permission_rules *rules, const struct permission_role *role)
{
	bool is_deny = ground == PERMISSION_DENIED;
	struct slices list =
		is_deny ? rules[judgement->kind].deny_folded : rules[judgement->kind].allow_folded;

	for (size_t i = 0; i < list.count; i++) {
		if (is_deny ?
			    !permission_fits_deny(judgement->kind, judgement->name, list.items[i]) :
			    !text_fits_pattern(judgement->name, list.items[i]))
			continue;
		judgement->verdict = (struct permission_verdict){ ground, role, i };
		return true;
	}
	return false;
}

static const struct permission_role *next_role(const struct permissions *permissions,
					       const struct rights *rights,
					       const struct permission_role *role)
{
	const struct permission_role *end;

	if (permissions->role_count == 0)
		return NULL;
	end = permissions->roles + permissions->role_count;
	role = role == NULL ? permissions->roles : role + 1;
	while (role != end && !role_set_has(&rights->roles, role->number))
		role++;
	return role != end ? role : NULL;
}

/* What is said of this server by the one role that he has, by its name rather than by `*`; NULL: he has several, or none. */
static const struct permission_role *find_only_role(const struct permissions *permissions,
						    const struct rights *rights)
{
	const struct permission_role *role = NULL, *found = NULL;

	while ((role = next_role(permissions, rights, role)) != NULL) {
		if (found != NULL && found->number != role->number)
			return NULL;
		found = role;
	}
	return found;
}

static void judge_roles(const struct permissions *permissions, const struct rights *rights,
			struct judgement *judgement)
{
	const struct permission_role *role = NULL;

	while ((role = next_role(permissions, rights, role)) != NULL)
		if (is_decided(judgement, PERMISSION_DENIED, role->kinds, role))
			return;
	while ((role = next_role(permissions, rights, role)) != NULL)
		if (is_decided(judgement, PERMISSION_ALLOWED, role->kinds, role))
			return;
	judgement->verdict.ground = PERMISSION_NO_ROLE;
	judgement->verdict.role = find_only_role(permissions, rights);
}

static void permissions_judge_rules(const struct permissions *permissions,
				    const struct rights *rights, struct judgement *judgement)
{
	const struct permission_rules *own = permissions->kinds;

	if (permissions->has_rules && is_decided(judgement, PERMISSION_DENIED, own, NULL))
		return;
	judgement->verdict.ground = PERMISSION_NOT_ALLOWED;
	if (permissions->has_rules && !is_decided(judgement, PERMISSION_ALLOWED, own, NULL))
		return;
	if (rights->needs_roles)
		judge_roles(permissions, rights, judgement);
}

struct permission_verdict permissions_judge(const struct permissions *permissions,
					    const struct rights *rights, enum permission_kind kind,
					    struct slice name)
{
	struct judgement judgement = { .kind = kind, .verdict = { .ground = PERMISSION_FREE } };
	at_end(buf_fini) struct buf folded = { 0 };

	CHECK(kind < PERMISSION_KINDS);
	if (!permissions->has_rules && !rights->needs_roles)
		return judgement.verdict;
	if (permission_read_form(kind, name, &folded, &judgement.name) != NULL)
		judgement.verdict.ground = PERMISSION_NO_NAME;
	else
		permissions_judge_rules(permissions, rights, &judgement);
	return judgement.verdict;
}

bool permissions_allow(const struct permissions *permissions, const struct rights *rights,
		       enum permission_kind kind, struct slice name)
{
	return permissions_judge(permissions, rights, kind, name).ground <= PERMISSION_ALLOWED;
}

bool permissions_allow_json(const struct permissions *permissions, const struct rights *rights,
			    enum permission_kind kind, struct json name)
{
	at_end(buf_fini) struct buf decoded = { 0 };
	struct slice plain;

	if (!permissions->has_rules && !rights->needs_roles)
		return true;
	return scan_read_string(name, &decoded, &plain) == 0 &&
	       permissions_allow(permissions, rights, kind, plain);
}

bool permissions_allow_any(const struct permissions *permissions, const struct rights *rights)
{
	const struct permission_role *role = NULL;

	if (!rights->needs_roles)
		return true;
	while ((role = next_role(permissions, rights, role)) != NULL)
		for (size_t kind = 0; kind < PERMISSION_KINDS; kind++)
			if (role->kinds[kind].allow.count > 0)
				return true;
	return false;
}

/* The same of one list; *index becomes what is left of it. */
static bool deny_at(const struct permission_rules *rules, const struct permission_role *role,
		    size_t *index, struct permission_verdict *verdict_r, struct slice *pattern_r)
{
	if (*index >= rules->deny_folded.count) {
		*index -= rules->deny_folded.count;
		return false;
	}
	*verdict_r = (struct permission_verdict){ PERMISSION_DENIED, role, *index };
	*pattern_r = rules->deny_folded.items[*index];
	return true;
}

bool permissions_deny_at(const struct permissions *permissions, enum permission_kind kind,
			 size_t index, struct permission_verdict *verdict_r,
			 struct slice *pattern_r)
{
	CHECK(kind < PERMISSION_KINDS);
	if (deny_at(&permissions->kinds[kind], NULL, &index, verdict_r, pattern_r))
		return true;
	for (size_t i = 0; i < permissions->role_count; i++) {
		const struct permission_role *role = &permissions->roles[i];

		if (!slice_is_equal(role->server, SLICE_LIT("*")) &&
		    deny_at(&role->kinds[kind], role, &index, verdict_r, pattern_r))
			return true;
	}
	return false;
}

struct rule permission_rule(enum permission_kind kind, const struct permission_verdict *verdict)
{
	const struct permission_role *role = verdict->role;
	bool is_deny = verdict->ground == PERMISSION_DENIED;
	struct rule rule = { .has_entry = is_deny || verdict->ground == PERMISSION_ALLOWED,
			     .entry = verdict->pattern };

	_Static_assert(RULE_TEMPLATES_ALLOW - RULE_TOOLS_ALLOW == PERMISSION_KINDS - 1 &&
			       RULE_TEMPLATES_DENY - RULE_TOOLS_DENY == PERMISSION_KINDS - 1 &&
			       RULE_ROLE_TEMPLATES_ALLOW - RULE_ROLE_ALLOW ==
				       PERMISSION_KINDS - 1 &&
			       RULE_ROLE_TEMPLATES_DENY - RULE_ROLE_DENY == PERMISSION_KINDS - 1,
		       "a row of rule.def for each kind, in their order");
	CHECK(kind < PERMISSION_KINDS);
	if (verdict->ground == PERMISSION_FREE)
		return rule;
	if (role == NULL && verdict->ground == PERMISSION_NO_ROLE) {
		rule.key = RULE_ROLES;
	} else if (role != NULL && !role->is_of_token && verdict->ground == PERMISSION_NO_ROLE &&
		   role->kinds[kind].allow.count == 0) {
		rule.key = RULE_ROLE; /* there is no list that it is missing from */
		rule.name = role->name;
	} else if (role == NULL) {
		rule.key = (is_deny ? RULE_TOOLS_DENY : RULE_TOOLS_ALLOW) + kind;
	} else {
		rule.key = role->is_of_token ? RULE_TOKEN_TOOLS :
					       (is_deny ? RULE_ROLE_DENY : RULE_ROLE_ALLOW) + kind;
		rule.name = role->is_of_token ? rule.name : role->name;
		rule.number = role->token;
		rule.member = role->server;
	}
	return rule;
}

/* ---- messages ---- */

struct visit {
	const struct permissions *permissions;
	const struct rights *rights;
	struct rule rule; /* that a name breaks; or none */
};

static bool visit_denied(enum permission_kind kind, struct json name, void *arg)
{
	struct permission_verdict verdict = { .ground = PERMISSION_NO_NAME };
	struct visit *visit = arg;
	at_end(buf_fini) struct buf decoded = { 0 };

	if (scan_decode_string(name, &decoded) == 0)
		verdict = permissions_judge(visit->permissions, visit->rights, kind,
					    buf_slice(&decoded));
	if (verdict.ground > PERMISSION_ALLOWED)
		visit->rule = permission_rule(kind, &verdict);
	return verdict.ground <= PERMISSION_ALLOWED;
}

/* What has no names where they should stand may use any. */
static struct rule rule_without_names(const char *what)
{
	enum rule_key key = strcmp(what, "method") == 0   ? RULE_NONE :
			    strcmp(what, "tool") == 0     ? RULE_TOOLS_ALLOW :
			    strcmp(what, "resource") == 0 ? RULE_RESOURCES_ALLOW :
							    RULE_PROMPTS_ALLOW;

	return (struct rule){ .key = key };
}

const char *permissions_find_denied(const struct permissions *permissions,
				    const struct rights *rights, const struct envelope *env,
				    struct rule *rule_r)
{
	struct visit visit = { permissions, rights, { .key = RULE_NONE } };
	const char *what;

	*rule_r = (struct rule){ .key = RULE_NONE };
	if (!permissions->has_rules && !rights->needs_roles)
		return NULL;
	what = uses_visit(env, visit_denied, &visit);
	if (what != NULL)
		*rule_r = visit.rule.key != RULE_NONE ? visit.rule : rule_without_names(what);
	return what;
}

/* ---- needed scopes ---- */

/* What either form of a name needs is needed: the server may know it by the one or the other. SEC-50 */

/* ---- made ---- */

void needs_finish(struct needs *needs, struct scope_table *table)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct slice_map *map = &needs->by_name[kind];

		CHECK(needs->names[kind] == NULL);
		needs->names[kind] = mem_zalloc((map->count + 1) * sizeof(*needs->names[kind]));
		for (size_t i = 0; i < map->count; i++) {
			struct name_needs *name = &needs->names[kind][i];

			name->folded = permission_fold_deny(kind, map->items[i].name);
			for (size_t j = 0; j < map->items[i].values.count; j++)
				scope_table_add(table, map->items[i].values.items[j],
						&name->scopes);
		}
	}
}

void needs_free(struct needs *needs)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		for (size_t i = 0; needs->names[kind] != NULL && i < needs->by_name[kind].count;
		     i++)
			free((char *)(uintptr_t)needs->names[kind][i].folded.p);
		free(needs->names[kind]);
		needs->names[kind] = NULL;
	}
}

/* ---- names ---- */

/* Of a template it is not known which resources come of it: those that its own text fits. */
static enum permission_kind kind_of_needs(enum permission_kind kind)
{
	return kind == PERMISSION_TEMPLATE ? PERMISSION_RESOURCE : kind;
}

static void add_all(const struct needs *needs, enum permission_kind kind, struct scope_set *needed)
{
	for (size_t i = 0; i < needs->by_name[kind].count; i++)
		scope_set_join(needed, &needs->names[kind][i].scopes);
}

/*
 * Adds the scopes that the use of this name requires. Returns NULL, or why it is not a valid name;
 * it may then require anything. `name` is decoded.
 */
static const char *needs_add_of_name(const struct needs *needs, enum permission_kind kind,
				     struct slice name, struct scope_set *needed)
{
	const struct slice_map *map;
	at_end(buf_fini) struct buf folded = { 0 };
	const char *why;

	kind = kind_of_needs(kind);
	map = &needs->by_name[kind];
	if (map->count == 0)
		return NULL;
	why = permission_fold(kind, name, &folded);
	for (size_t i = 0; why == NULL && i < map->count; i++)
		if (text_fits_pattern(name, map->items[i].name) ||
		    permission_fits_deny(kind, buf_slice(&folded), needs->names[kind][i].folded))
			scope_set_join(needed, &needs->names[kind][i].scopes);
	return why;
}

static const char *add_of_json(const struct needs *needs, enum permission_kind kind,
			       struct json name, struct scope_set *needed)
{
	at_end(buf_fini) struct buf decoded = { 0 };
	const char *why = "is not a text";

	if (needs->by_name[kind_of_needs(kind)].count == 0)
		return NULL;
	if (scan_decode_string(name, &decoded) == 0)
		why = needs_add_of_name(needs, kind, buf_slice(&decoded), needed);
	else
		add_all(needs, kind_of_needs(kind), needed);
	return why;
}

bool needs_show(const struct needs *needs, const struct rights *rights, enum permission_kind kind,
		struct json name)
{
	struct scope_set needed = { { 0 } };

	if (!needs->hides || !rights->needs_scopes || kind == PERMISSION_TEMPLATE)
		return true;
	return add_of_json(needs, kind, name, &needed) == NULL &&
	       scope_set_covers(&rights->scopes, &needed);
}

/* ---- messages ---- */

struct needs_visit {
	const struct needs *needs;
	struct scope_set *needed;
	const char *why;
};

static bool visit_needed(enum permission_kind kind, struct json name, void *arg)
{
	struct needs_visit *visit = arg;

	visit->why = kind == PERMISSION_TOOL ? NULL :
					       add_of_json(visit->needs, kind, name, visit->needed);
	return visit->why == NULL;
}

/* Of prompts and resources. Where there is no name to be found, it could be any. */
static struct needs_flaw add_of_others(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed)
{
	struct needs_visit visit = { needs, needed, NULL };
	struct needs_flaw flaw = { .what = NULL };

	if (needs->by_name[PERMISSION_PROMPT].count + needs->by_name[PERMISSION_RESOURCE].count ==
	    0)
		return flaw;
	flaw.what = uses_visit(env, visit_needed, &visit);
	flaw.why = visit.why != NULL ? visit.why : "cannot be read";
	if (flaw.what == NULL || visit.why != NULL)
		return flaw;
	if (strcmp(flaw.what, "tool") == 0)
		return (struct needs_flaw){ .what = NULL };
	add_all(needs, PERMISSION_PROMPT, needed);
	add_all(needs, PERMISSION_RESOURCE, needed);
	return flaw;
}

struct needs_flaw needs_add_of_message(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed)
{
	struct needs_flaw flaw = { .what = "tool" };

	if (needs->by_name[PERMISSION_TOOL].count == 0 || operation_of(env) != OPERATION_TOOL)
		return add_of_others(needs, env, needed);
	if (env->params.type == JSON_ARRAY)
		flaw.why = "has no place in an array of params";
	else
		flaw.why = add_of_json(needs, PERMISSION_TOOL, env->name, needed);
	if (flaw.why == NULL)
		flaw.what = NULL;
	return flaw;
}
