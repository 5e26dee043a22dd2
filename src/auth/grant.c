/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims, one rule a function; the first rule that is broken is the one that is reported. The texts of a
 * grant are copies, so that its users need not know how jansson keeps its own.
 */
#include "auth/grant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/document.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/mem.h"
#include "policy/roles.h"

#define NAME_BYTES_MAX 1024      /* sub */
#define CLIENT_ID_BYTES_MAX 2048 /* may be a URL: AUTH-DCR-04 */
#define SCOPES_MAX 256
#define TIME_END 9007199254740992.0 /* 2^53: from here on a double counts in steps above one */

/* ---- times ---- */

/* Seconds as `exp` has them. 0 if absent, else 1; -1 if it is no time. */
static int read_time(const json_t *claims, const char *name, double *seconds_r,
		     struct verdict *verdict_r)
{
	const json_t *value = json_object_get(claims, name);

	if (value == NULL)
		return 0;
	*seconds_r = json_number_value(value);
	if (json_is_number(value) && *seconds_r >= 0 && *seconds_r < TIME_END)
		return 1;
	return verdict_set(verdict_r, VERDICT_MALFORMED, "`%s` is not a time", name);
}

static int check_end(struct grant *grant, const struct grant_rules *rules, uint64_t now_ms,
		     struct verdict *verdict_r)
{
	double seconds = 0;
	int found = read_time(grant->claims, "exp", &seconds, verdict_r);

	if (found < 0)
		return -1;
	if (found == 0 && rules->must_expire)
		return verdict_set(verdict_r, VERDICT_MALFORMED, "`exp` is missing");
	grant->ends_at_ms = UINT64_MAX;
	if (found == 0)
		return 0;
	grant->expires_at_s = (uint64_t)seconds;
	grant->ends_at_ms = (uint64_t)(seconds * 1000) + rules->leeway_ms;
	if (!grant_is_current(grant, now_ms))
		return verdict_set(verdict_r, VERDICT_EXPIRED, "`exp` was %llu seconds ago",
				   (unsigned long long)(now_ms / 1000 - grant->expires_at_s));
	return 0;
}

/* check_end and check_begin have seen that both are times, if they are there. AUTH-JWT-11 */
static int check_lifetime(const json_t *claims, const struct grant_rules *rules,
			  struct verdict *verdict_r)
{
	double end = json_number_value(json_object_get(claims, "exp"));
	double begin = json_number_value(json_object_get(claims, "iat"));

	if (rules->max_lifetime_ms == 0)
		return 0;
	if (json_object_get(claims, "exp") == NULL || json_object_get(claims, "iat") == NULL)
		return verdict_set(verdict_r, VERDICT_LIFETIME,
				   "without both `iat` and `exp` its lifetime is unknown");
	if ((end - begin) * 1000 > (double)rules->max_lifetime_ms)
		return verdict_set(verdict_r, VERDICT_LIFETIME,
				   "its lifetime is %.0f seconds, more than max_lifetime",
				   end - begin);
	return 0;
}

static int check_begin(const json_t *claims, const char *name, const struct grant_rules *rules,
		       uint64_t now_ms, struct verdict *verdict_r)
{
	double seconds = 0;
	int found = read_time(claims, name, &seconds, verdict_r);

	if (found > 0 && seconds * 1000 > (double)(now_ms + rules->leeway_ms))
		return verdict_set(verdict_r, VERDICT_NOT_YET_VALID, "`%s` is in the future", name);
	return found < 0 ? -1 : 0;
}

bool grant_is_current(const struct grant *grant, uint64_t now_ms)
{
	return now_ms < grant->ends_at_ms;
}

/* ---- the principal ---- */

/* The claim as a copy, NULL if it is absent. -1 if it is empty, too long, no string, or has control characters. */
static int copy_name(const json_t *claims, const char *name, size_t max, char **copy_r)
{
	const json_t *value = json_object_get(claims, name);
	struct slice text = document_text(claims, name);

	*copy_r = NULL;
	if (value == NULL)
		return 0;
	if (text.n == 0 || text.n > max)
		return -1;
	for (size_t i = 0; i < text.n; i++) {
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7F)
			return -1;
	}
	*copy_r = mem_dup_slice(text);
	return 0;
}

static int read_principal(struct grant *grant, struct verdict *verdict_r)
{
	static const char *const names[] = { "client_id", "azp", "appid", "cid" };

	if (copy_name(grant->claims, "sub", NAME_BYTES_MAX, &grant->subject) < 0)
		return verdict_set(verdict_r, VERDICT_NO_PRINCIPAL, "`sub` is not a usable name");
	for (size_t i = 0; i < ARRAY_LEN(names) && grant->client_id == NULL; i++) {
		if (copy_name(grant->claims, names[i], CLIENT_ID_BYTES_MAX, &grant->client_id) < 0)
			return verdict_set(verdict_r, VERDICT_MALFORMED,
					   "`%s` is not a usable name", names[i]);
	}
	if (grant->subject == NULL && grant->client_id == NULL)
		return verdict_set(verdict_r, VERDICT_NO_PRINCIPAL,
				   "there is neither `sub` nor a client id");
	return 0;
}

/* ---- scopes and audience ---- */

/* RFC 6749 s3.3: visible ASCII but `"` and `\`. No operation needs a scope with other characters. */
static bool is_scope_token(struct slice scope)
{
	for (size_t i = 0; i < scope.n; i++) {
		char c = scope.p[i];

		if (c <= ' ' || c > '~' || c == '"' || c == '\\')
			return false;
	}
	return scope.n > 0;
}

static void grant_add_scopes(struct grant *grant, struct slice list)
{
	while (list.n > 0 && grant->scope_count < SCOPES_MAX) {
		struct slice scope = slice_cut(&list, ' ');

		if (is_scope_token(scope) && !grant_has_scope(grant, scope))
			grant->scopes[grant->scope_count++] = mem_dup_slice(scope);
	}
}

static void read_scopes(struct grant *grant)
{
	static const char *const names[] = { "scope", "scp" };

	grant->scopes = mem_zalloc(SCOPES_MAX * sizeof(*grant->scopes));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const json_t *value = json_object_get(grant->claims, names[i]);

		grant_add_scopes(grant, document_text(grant->claims, names[i]));
		for (size_t j = 0; j < json_array_size(value); j++) {
			const json_t *item = json_array_get(value, j);

			grant_add_scopes(grant, slice_of(json_string_value(item),
							 json_string_length(item)));
		}
	}
	grant->scopes = mem_resize(grant->scopes, (grant->scope_count + 1) * sizeof(char *));
}

bool grant_has_scope(const struct grant *grant, struct slice scope)
{
	for (size_t i = 0; i < grant->scope_count; i++) {
		if (slice_is_equal(slice_str(grant->scopes[i]), scope))
			return true;
	}
	return false;
}

static bool is_accepted(struct slice audience, struct slices accepted)
{
	for (size_t i = 0; i < accepted.count; i++)
		if (audience.n > 0 && url_is_same_resource(audience, accepted.items[i]))
			return true;
	return false;
}

struct slice grant_claim_text(const struct grant *grant, const char *name)
{
	return document_text(grant->claims, name);
}

static bool grant_append_value(const json_t *value, struct buf *out)
{
	struct slice text = slice_of(json_string_value(value), json_string_length(value));

	if (json_is_integer(value))
		buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		buf_append_str(out, json_is_true(value) ? "true" : "false");
	else if (text.n > 0 && memchr(text.p, '\0', text.n) == NULL)
		buf_append_slice(out, text);
	else
		return false;
	return true;
}

bool grant_append_claim(const struct grant *grant, struct slice name, struct buf *out)
{
	return grant_append_value(json_object_getn(grant->claims, name.p, name.n), out);
}

static bool grant_is_among(const json_t *value, struct slices values)
{
	at_end(buf_fini) struct buf text = { 0 };

	return grant_append_value(value, &text) && slices_has(values, buf_slice(&text));
}

bool grant_meets(const struct grant *grant, const struct named_slices *demand)
{
	const json_t *claim = json_object_getn(grant->claims, demand->name.p, demand->name.n);
	bool is_met = grant_is_among(claim, demand->values);

	for (size_t i = 0; i < json_array_size(claim); i++)
		is_met |= grant_is_among(json_array_get(claim, i), demand->values);
	return is_met;
}

void grant_append_audience(const struct grant *grant, struct buf *out)
{
	const json_t *audience = json_object_get(grant->claims, "aud");
	size_t count = json_array_size(audience);

	CHECK(grant->claims != NULL);
	for (size_t i = 0; i < count; i++) {
		buf_append_str(out, i > 0 ? "," : "");
		(void)grant_append_value(json_array_get(audience, i), out);
	}
	if (count == 0 && !grant_append_value(audience, out))
		buf_append_str(out, "missing");
}

static bool has_any_scope(const struct grant *grant, struct slices scopes)
{
	for (size_t i = 0; i < scopes.count; i++)
		if (grant_has_scope(grant, scopes.items[i]))
			return true;
	return false;
}

static bool fits_role(const struct grant *grant, const struct role *role)
{
	for (size_t i = 0; i < role->when.count; i++) {
		const struct named_slices *demand = &role->when.items[i];
		bool is_scope = slice_is_equal(demand->name, SLICE_LIT("scope")) ||
				slice_is_equal(demand->name, SLICE_LIT("scp"));

		if (is_scope ? !has_any_scope(grant, demand->values) : !grant_meets(grant, demand))
			return false;
	}
	return role->when.count > 0;
}

/*
 * The roles all of whose claims it has; `scope` and `scp` are lists of scopes in any form. SEC-56
 */
static struct role_set grant_find_roles(const struct grant *grant, const struct roles *roles)
{
	struct role_set found = { { 0 } };

	for (size_t i = 0; roles != NULL && i < roles->count && i < ROLES_MAX; i++)
		if (role_is_named(&roles->items[i]) && fits_role(grant, &roles->items[i]))
			role_set_add(&found, i);
	return found;
}

bool grant_is_for(const struct grant *grant, struct slices accepted)
{
	const json_t *audience = json_object_get(grant->claims, "aud");
	bool is_for = is_accepted(document_text(grant->claims, "aud"), accepted);

	if (audience == NULL && grant->client_is_audience && grant->client_id != NULL)
		return is_accepted(slice_str(grant->client_id), accepted);
	/* A list with an element that is no string is no audience. */
	for (size_t i = 0; i < json_array_size(audience); i++) {
		const json_t *item = json_array_get(audience, i);

		if (!json_is_string(item))
			return false;
		is_for |= is_accepted(slice_of(json_string_value(item), json_string_length(item)),
				      accepted);
	}
	return is_for;
}

/* ---- binding ---- */

/* All of `cnf` has to be proven: a token with a binding that is not known here is refused. */
static int read_binding(struct grant *grant, struct verdict *verdict_r)
{
	json_t *binding = json_object_get(grant->claims, "cnf");
	const char *name;
	json_t *value;

	if (binding == NULL)
		return 0;
	if (!json_is_object(binding) || json_object_size(binding) == 0)
		return verdict_set(verdict_r, VERDICT_BOUND, "`cnf` is not understood");
	json_object_foreach(binding, name, value)
	{
		char *to = strcmp(name, "jkt") == 0      ? grant->jkt :
			   strcmp(name, "x5t#S256") == 0 ? grant->x5t_s256 :
							   NULL;

		if (to == NULL || json_string_length(value) != GRANT_THUMBPRINT_BYTES - 1)
			return verdict_set(verdict_r, VERDICT_BOUND,
					   "`cnf` has a `%.40s`, which cannot be verified", name);
		memcpy(to, json_string_value(value), GRANT_THUMBPRINT_BYTES);
	}
	return 0;
}

/* ---- whole ---- */

/*
 * An ID token has its client's id as audience, like an access token may have. It is recognised by claims that access
 * tokens do not have: not `nonce`, which some have; `at_hash` only with client_is_audience, because the access tokens
 * of Dex have it, and those have an `aud`. OpenID Connect Core s3.1.3.6, s3.3.2.11; AUTH-JWT-07
 */
static int check_purpose(const json_t *claims, const struct grant_rules *rules,
			 struct verdict *verdict_r)
{
	static const char *const names[] = { "c_hash", "s_hash", "at_hash" };
	size_t count = ARRAY_LEN(names) - !rules->client_is_audience;

	for (size_t i = 0; i < count; i++) {
		if (json_object_get(claims, names[i]) != NULL)
			return verdict_set(verdict_r, VERDICT_MALFORMED,
					   "by its `%s` it is an ID token, not an access token",
					   names[i]);
	}
	return 0;
}

struct grant *grant_new(json_t *claims, const struct grant_rules *rules, uint64_t now_ms,
			struct verdict *verdict_r)
{
	struct grant *grant = mem_zalloc(sizeof(*grant));

	CHECK(json_is_object(claims) && rules->issuer != NULL);
	grant->references = 1;
	grant->ask_again_at_ms = grant->trust_until_ms = UINT64_MAX;
	grant->issuer = mem_strdup(rules->issuer);
	grant->claims = json_incref(claims);
	grant->client_is_audience = rules->client_is_audience;
	if (check_purpose(claims, rules, verdict_r) < 0 ||
	    check_end(grant, rules, now_ms, verdict_r) < 0 ||
	    check_begin(claims, "nbf", rules, now_ms, verdict_r) < 0 ||
	    check_begin(claims, "iat", rules, now_ms, verdict_r) < 0 ||
	    check_lifetime(claims, rules, verdict_r) < 0 || read_principal(grant, verdict_r) < 0 ||
	    read_binding(grant, verdict_r) < 0) {
		grant_unref(&grant);
		return NULL;
	}
	CHECK(grant->subject != NULL || grant->client_id != NULL);
	read_scopes(grant);
	grant->roles = grant_find_roles(grant, rules->roles);
	return grant;
}

struct grant *grant_imagine(const json_t *claims, const char *issuer, const struct roles *roles,
			    struct error *err)
{
	static const char *const ignored[] = { "exp", "nbf", "iat", "cnf" };
	const struct grant_rules rules = { .issuer = issuer, .roles = roles };
	json_auto_t *kept = json_copy((json_t *)(uintptr_t)claims);
	struct verdict verdict;
	struct grant *grant;

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		json_object_del(kept, ignored[i]);
	if (json_object_get(kept, "sub") == NULL)
		json_object_set_new(kept, "sub", json_string("somebody"));
	grant = grant_new(kept, &rules, 0, &verdict);
	if (grant == NULL)
		error_set(err, ERROR_INVALID, "no token has such claims: %s", verdict.cause);
	return grant;
}

struct grant *grant_imagine_text(struct slice claims, const char *issuer, const struct roles *roles,
				 struct error *err)
{
	json_auto_t *document = document_parse(claims, err);
	struct grant *grant = NULL;

	if (document != NULL)
		grant = grant_imagine(document, issuer, roles, err);
	return grant;
}

struct grant *grant_ref(struct grant *grant)
{
	CHECK(grant->references > 0);
	grant->references++;
	return grant;
}

void grant_unref(struct grant **grant)
{
	struct grant *g = *grant;

	*grant = NULL;
	CHECK(g == NULL || g->references > 0);
	if (g == NULL || --g->references > 0)
		return;
	for (size_t i = 0; i < g->scope_count; i++)
		free(g->scopes[i]);
	free(g->scopes);
	free(g->issuer);
	free(g->subject);
	free(g->client_id);
	json_decref(g->claims);
	free(g);
}

/* ---- verdicts ---- */

/* The table of verdict.def, and filling a struct verdict. */

static const struct verdict_row verdicts[] = {
#define X(id, outcome, name, description) [VERDICT_##id] = { VERDICT_##outcome, name, description },
#include "auth/verdict.def"
};

static uint64_t counts[VERDICT_COUNT];

const struct verdict_row *verdict_get(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return &verdicts[kind];
}

void verdict_count(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	counts[kind]++;
}

uint64_t verdict_counted(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return counts[kind];
}

int verdict_set(struct verdict *verdict_r, enum verdict_kind kind, const char *format, ...)
{
	va_list args;

	CHECK(kind != VERDICT_OK && kind < VERDICT_COUNT);
	verdict_r->kind = kind;
	va_start(args, format);
	vsnprintf(verdict_r->cause, sizeof(verdict_r->cause), format, args);
	va_end(args);
	return -1;
}
