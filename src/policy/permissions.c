/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are compared in a folded form: if the server takes a name for another one, both have the same. Of the URIs of
 * resources it is not known whether the server tells letters by case: a deny fits both ways, an allow exactly.
 */
#include "policy/permissions.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/name.h"
#include "policy/rights.h"
#include "policy/uri.h"
#include "policy/uses.h"

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

static void lower(struct buf *text)
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
		lower(&folded);
	(void)buf_terminate(&folded);
	return slice_of(folded.data, folded.len);
}

struct slice permission_fold_deny(enum permission_kind kind, struct slice pattern)
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
	struct buf lowered = { 0 };
	bool fits;

	if (!is_uri(kind))
		return text_fits_pattern(folded, pattern);
	buf_append_slice(&lowered, folded);
	lower(&lowered);
	fits = text_fits_pattern(buf_slice(&lowered), pattern) ||
	       text_fits_pattern(without_query(buf_slice(&lowered)), pattern);
	buf_fini(&lowered);
	return fits;
}

/* ---- rules ---- */

static struct slices fold_all(enum permission_kind kind, struct slices patterns, bool is_deny)
{
	struct slice *items = mem_zalloc((patterns.count + 1) * sizeof(*items));

	for (size_t i = 0; i < patterns.count; i++)
		items[i] = fold_pattern(kind, patterns.items[i], is_deny);
	return (struct slices){ items, patterns.count };
}

static bool allows_all(const struct permission_rules *rules)
{
	return rules->deny.count == 0 && rules->allow.count == 1 &&
	       slice_is_equal(rules->allow.items[0], SLICE_LIT("*"));
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
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		permissions->has_rules |= !allows_all(&permissions->kinds[kind]);
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

static bool find_denied(struct judgement *judgement, const struct permission_rules *rules,
			const struct permission_role *role)
{
	const struct slices *deny = &rules[judgement->kind].deny_folded;

	for (size_t i = 0; i < deny->count; i++) {
		if (!permission_fits_deny(judgement->kind, judgement->name, deny->items[i]))
			continue;
		judgement->verdict = (struct permission_verdict){ PERMISSION_DENIED, role, i };
		return true;
	}
	return false;
}

static bool find_allowed(struct judgement *judgement, const struct permission_rules *rules,
			 const struct permission_role *role)
{
	const struct slices *allow = &rules[judgement->kind].allow_folded;

	for (size_t i = 0; i < allow->count; i++) {
		if (!text_fits_pattern(judgement->name, allow->items[i]))
			continue;
		judgement->verdict = (struct permission_verdict){ PERMISSION_ALLOWED, role, i };
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
		if (find_denied(judgement, role->kinds, role))
			return;
	while ((role = next_role(permissions, rights, role)) != NULL)
		if (find_allowed(judgement, role->kinds, role))
			return;
	judgement->verdict.ground = PERMISSION_NO_ROLE;
	judgement->verdict.role = find_only_role(permissions, rights);
}

static void judge(const struct permissions *permissions, const struct rights *rights,
		  struct judgement *judgement)
{
	const struct permission_rules *own = permissions->kinds;

	if (permissions->has_rules && find_denied(judgement, own, NULL))
		return;
	judgement->verdict.ground = PERMISSION_NOT_ALLOWED;
	if (permissions->has_rules && !find_allowed(judgement, own, NULL))
		return;
	if (rights->needs_roles)
		judge_roles(permissions, rights, judgement);
}

struct permission_verdict permissions_judge(const struct permissions *permissions,
					    const struct rights *rights, enum permission_kind kind,
					    struct slice name)
{
	struct judgement judgement = { .kind = kind, .verdict = { .ground = PERMISSION_FREE } };
	struct buf folded = { 0 };

	CHECK(kind < PERMISSION_KINDS);
	if (!permissions->has_rules && !rights->needs_roles)
		return judgement.verdict;
	if (permission_read_form(kind, name, &folded, &judgement.name) != NULL)
		judgement.verdict.ground = PERMISSION_NO_NAME;
	else
		judge(permissions, rights, &judgement);
	buf_fini(&folded);
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
	struct buf decoded = { 0 };
	struct slice plain;
	bool is_allowed;

	if (!permissions->has_rules && !rights->needs_roles)
		return true;
	is_allowed = scan_read_string(name, &decoded, &plain) == 0 &&
		     permissions_allow(permissions, rights, kind, plain);
	buf_fini(&decoded);
	return is_allowed;
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

static bool visit_name(enum permission_kind kind, struct json name, void *arg)
{
	struct permission_verdict verdict = { .ground = PERMISSION_NO_NAME };
	struct visit *visit = arg;
	struct buf decoded = { 0 };

	if (scan_decode_string(name, &decoded) == 0)
		verdict = permissions_judge(visit->permissions, visit->rights, kind,
					    buf_slice(&decoded));
	buf_fini(&decoded);
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
	what = uses_visit(env, visit_name, &visit);
	if (what != NULL)
		*rule_r = visit.rule.key != RULE_NONE ? visit.rule : rule_without_names(what);
	return what;
}
