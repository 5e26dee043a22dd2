/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the tokens, without recursion and without a tree. What cannot be decoded, compared or matched within its
 * limits is refused: nobody knows what a server would make of it.
 */
#include "policy/arguments.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/pattern.h"
#include "policy/permissions.h"
#include "policy/rule.h"

/* ---- the rules, prepared ---- */

static void prepare_patterns(const struct slices *expressions, struct tool_patterns *patterns)
{
	patterns->items = mem_zalloc((expressions->count + 1) * sizeof(*patterns->items));
	for (size_t i = 0; i < expressions->count; i++) {
		struct pattern *pattern = pattern_new(expressions->items[i], NULL);

		if (pattern != NULL)
			patterns->items[patterns->count++] = pattern;
	}
}

void argument_rules_prepare(struct argument_rules *rules)
{
	size_t count = rules->deny_patterns.count;
	struct tool_patterns *patterns = mem_zalloc((count + 1) * sizeof(*patterns));

	CHECK(rules->patterns == NULL);
	for (size_t i = 0; i < count; i++) {
		patterns[i].folded = name_fold_copy(rules->deny_patterns.items[i].name);
		prepare_patterns(&rules->deny_patterns.items[i].values, &patterns[i]);
	}
	rules->patterns = patterns;
	names_finish(&rules->forbidden_keys);
	names_finish(&rules->path_members);
	names_finish(&rules->paths_ignored);
}

void argument_rules_fini(struct argument_rules *rules)
{
	struct tool_patterns *patterns = (struct tool_patterns *)(uintptr_t)rules->patterns;

	for (size_t i = 0; patterns != NULL && i < rules->deny_patterns.count; i++) {
		for (size_t j = 0; j < patterns[i].count; j++)
			pattern_free(&patterns[i].items[j]);
		free(patterns[i].items);
		free((char *)(uintptr_t)patterns[i].folded.p);
	}
	free(patterns);
	rules->patterns = NULL;
	names_free(&rules->forbidden_keys);
	names_free(&rules->path_members);
	names_free(&rules->paths_ignored);
}

/* ---- judging arguments ---- */

/* What the strings of a member are. */
enum member_kind { MEMBER_ANY, MEMBER_PATH, MEMBER_IGNORED };

struct walk {
	const struct argument_rules *rules;
	struct slice name;   /* of the tool or prompt */
	struct slice folded; /* the same; empty: it is no name, and may mean any */
	struct pattern_work *work;
	struct buf decoded;
	struct buf form; /* of the name of a member */
	struct buf seen; /* what is seen of it */
	/* Of the member that a container of this depth belongs to, then of the one that is being read in it. */
	unsigned char kinds[SCAN_DEPTH_MAX + 2];
	const char *why;
	struct rule rule; /* that says so */
};

/* ---- names ---- */

static bool arguments_is_listed(const struct names *names, struct slice name)
{
	for (size_t i = 0; i < names->written.count; i++)
		if (text_fits_pattern(name, names->written.items[i]))
			return true;
	return false;
}

/* In either form: some servers find members without regard to case. */
static bool is_listed_folded(const struct names *names, struct slice name, struct slice folded)
{
	return arguments_is_listed(names, name) || (folded.n > 0 && names_fit(names, folded));
}

/* What has no folded form may be any path; what is ignored is so as it is written, and nothing else. */
static enum member_kind arguments_kind_of(const struct argument_rules *rules, struct slice name,
					  struct slice folded)
{
	const struct names *paths = &rules->path_members;

	if (is_listed_folded(paths, name, folded) || (folded.n == 0 && paths->written.count > 0))
		return MEMBER_PATH;
	return arguments_is_listed(&rules->paths_ignored, name) ? MEMBER_IGNORED : MEMBER_ANY;
}

/* ---- the walk ---- */

static int arguments_refuse(struct walk *walk, enum rule_key key, const char *why)
{
	walk->why = why;
	walk->rule = (struct rule){ .key = key };
	return -1;
}

static bool arguments_is_for(const struct walk *walk, size_t index)
{
	const struct argument_rules *rules = walk->rules;

	return walk->folded.n == 0 ||
	       text_fits_pattern(walk->name, rules->deny_patterns.items[index].name) ||
	       text_fits_pattern(walk->folded, rules->patterns[index].folded);
}

static int refuse_match(struct walk *walk, size_t member, size_t entry, const char *why)
{
	arguments_refuse(walk, RULE_DENY_PATTERNS, why);
	walk->rule.member = walk->rules->deny_patterns.items[member].name;
	walk->rule.has_entry = true;
	walk->rule.entry = entry;
	return -1;
}

static int match(struct walk *walk, struct slice text)
{
	for (size_t i = 0; i < walk->rules->deny_patterns.count; i++) {
		const struct tool_patterns *patterns = &walk->rules->patterns[i];

		for (size_t j = 0; j < patterns->count && arguments_is_for(walk, i); j++) {
			switch (pattern_find(patterns->items[j], text, 0, walk->work, NULL)) {
			case PATTERN_ABSENT:
				break;
			case PATTERN_FOUND:
				return refuse_match(walk, i, j,
						    "hold a text that is not allowed here");
			case PATTERN_TOO_HARD:
				return refuse_match(walk, i, j,
						    "hold a text that takes too long to judge");
			}
		}
	}
	return 0;
}

static int judge_path(struct walk *walk, struct slice text, enum member_kind kind)
{
	const struct path_rules *paths = &walk->rules->paths;
	bool lacks_base = paths->base.n == 0 && !slice_has_prefix(text, SLICE_LIT("/"));

	if (paths->roots.count == 0 || kind == MEMBER_IGNORED ||
	    path_judge(paths, text, kind == MEMBER_PATH) != PATH_OUTSIDE)
		return 0;
	return arguments_refuse(
		walk, RULE_PATHS,
		lacks_base ? "name a path that is not allowed here; it must be absolute" :
			     "name a path that is not allowed here");
}

/* Servers may leave out what is not seen, and strings of C end with the first NUL. */
static struct slice fold_seen(struct walk *walk, struct slice name)
{
	struct slice form;

	walk->seen.len = 0;
	while (name.n > 0 && name.p[0] != '\0') {
		size_t n = text_utf8_length(name);
		uint32_t code = unicode_decode(slice_of(name.p, n));

		if (!unicode_is_hidden(code) && !unicode_is_unknown(code))
			buf_append(&walk->seen, name.p, n);
		name = slice_of(name.p + n, name.n - n);
	}
	(void)!name_read_form(buf_slice(&walk->seen), &walk->form, &form);
	return form;
}

/* What cannot be compared may be any of them; of what nobody sees anything there is nothing to compare. */
static bool is_forbidden(struct walk *walk, struct slice name, struct slice folded)
{
	const struct names *names = &walk->rules->forbidden_keys;

	if (names->written.count == 0)
		return false;
	if (folded.n > 0)
		return is_listed_folded(names, name, folded);
	folded = fold_seen(walk, name);
	return is_listed_folded(names, name, folded) || (folded.n == 0 && walk->seen.len > 0);
}

/* A name belongs to the member whose value its object is; it is a path only if it looks like one. */
static int judge_name(struct walk *walk, struct slice name, size_t depth)
{
	const struct argument_rules *rules = walk->rules;
	enum member_kind kind = walk->kinds[depth - 1];
	struct slice folded = { NULL, 0 };

	if (rules->forbidden_keys.written.count + rules->path_members.written.count > 0)
		(void)!name_read_form(name, &walk->form, &folded);
	if (is_forbidden(walk, name, folded))
		return arguments_refuse(walk, RULE_FORBIDDEN_KEYS,
					"have a member whose name is not allowed here");
	if (match(walk, name) < 0 ||
	    judge_path(walk, name, kind == MEMBER_PATH ? MEMBER_ANY : kind) < 0)
		return -1;
	walk->kinds[depth] = (unsigned char)arguments_kind_of(rules, name, folded);
	return 0;
}

static int on_token(const struct scan_token *token, void *arg)
{
	struct walk *walk = arg;
	size_t depth = token->depth;
	struct slice text;

	CHECK(depth <= SCAN_DEPTH_MAX);
	if (token->kind == SCAN_CONTAINER) {
		walk->kinds[depth + 1] = walk->kinds[depth]; /* elements belong to its member */
		return 0;
	}
	if (scan_read_string(token->value, &walk->decoded, &text) < 0)
		return arguments_refuse(walk, RULE_ARGUMENTS, "hold a text that cannot be read");
	if (token->kind == SCAN_NAME)
		return judge_name(walk, text, depth);
	if (match(walk, text) < 0)
		return -1;
	return judge_path(walk, text, walk->kinds[depth]);
}

static bool looks_inside(const struct argument_rules *rules)
{
	return rules->deny_patterns.count > 0 || rules->forbidden_keys.written.count > 0 ||
	       rules->paths.roots.count > 0;
}

static const char *look_inside(const struct argument_rules *rules, const struct envelope *env,
			       struct pattern_work *work, struct rule *rule_r)
{
	struct walk walk = { .rules = rules, .work = work };
	at_end(buf_fini) struct buf name = { 0 }, folded = { 0 };

	if (scan_read_string(env->name, &name, &walk.name) == 0)
		(void)!name_read_form(walk.name, &folded, &walk.folded);
	scan_tokens(env->arguments.text, on_token, &walk);
	buf_fini(&walk.decoded);
	buf_fini(&walk.form);
	buf_fini(&walk.seen);
	*rule_r = walk.rule;
	return walk.why;
}

const char *arguments_judge(const struct argument_rules *rules, const struct envelope *env,
			    struct pattern_work *work, struct rule *rule_r)
{
	enum json_type type = env->arguments.type;
	bool has_rules = rules->max_bytes > 0 || looks_inside(rules);

	*rule_r = (struct rule){ .key = RULE_ARGUMENTS };
	if (!has_rules || operation_of(env) == OPERATION_OTHER)
		return NULL;
	if (env->params.type == JSON_ARRAY)
		return "have no place in an array of params";
	if (type == JSON_ABSENT || type == JSON_NULL)
		return NULL;
	if (type != JSON_OBJECT)
		return "are not an object";
	if (rules->max_bytes > 0 && env->arguments.text.n > rules->max_bytes) {
		rule_r->key = RULE_MAX_BYTES;
		return "are longer than is allowed here";
	}
	return looks_inside(rules) ? look_inside(rules, env, work, rule_r) : NULL;
}
