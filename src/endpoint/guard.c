/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credential is looked for in the Authorization field alone. Its text is never kept: what stays of a
 * request is the principal, the scopes and the end.
 */
#include "endpoint/guard.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/text.h"

_Static_assert(GUARD_HASH_BYTES == SHA256_DIGEST_LENGTH, "hashes are SHA-256");

void guard_init(struct guard *guard, struct principal_set *principals,
		const struct guard_conf *conf)
{
	guard->conf = *conf;
	guard->principals = principals;
}

/* ---- refusals ---- */

static bool refuse(struct refusal *refusal_r, int status, const char *error,
		   const char *description)
{
	*refusal_r = (struct refusal){ status, error, description, { { 0 } } };
	return false;
}

/* Nothing, or something that is none of ours, was presented. AUTH-CH-02, AUTH-IN-05 */
static bool refuse_nobody(struct refusal *refusal_r)
{
	return refuse(refusal_r, 401, NULL, "A token is needed");
}

static bool refuse_token(const char *why, struct refusal *refusal_r)
{
	return refuse(refusal_r, 401, "invalid_token", why);
}

static bool refuse_request(const char *why, struct refusal *refusal_r)
{
	return refuse(refusal_r, 400, "invalid_request", why);
}

/* ---- the credential ---- */

/* 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=": RFC 6750 §2.1. */
static bool is_b64token(struct slice text)
{
	size_t i = 0;

	while (i < text.n &&
	       ((text.p[i] >= 'a' && text.p[i] <= 'z') || (text.p[i] >= 'A' && text.p[i] <= 'Z') ||
		(text.p[i] >= '0' && text.p[i] <= '9') ||
		(text.p[i] != '\0' && strchr("-._~+/", text.p[i]) != NULL)))
		i++;
	if (i == 0)
		return false;
	while (i < text.n && text.p[i] == '=')
		i++;
	return i == text.n;
}

static bool has_token_in_query(struct slice query)
{
	while (query.n > 0) {
		struct slice pair = slice_cut(&query, '&');

		if (slice_is_equal(slice_cut(&pair, '='), SLICE_LIT("access_token")))
			return true;
	}
	return false;
}

/* Returns false if *refusal_r says it all. AUTH-IN-01 … -05 */
static bool take_token(const struct http_request *http, struct slice *token_r,
		       struct refusal *refusal_r)
{
	struct slice rest = http->fields[HTTP_AUTHORIZATION];
	struct slice scheme;

	if (has_token_in_query(http->query))
		return refuse_request("Tokens are not taken from the address", refusal_r);
	if (!http_has(http, HTTP_AUTHORIZATION))
		return refuse_nobody(refusal_r);
	scheme = slice_cut(&rest, ' ');
	if (!slice_is_equal_nocase(scheme, SLICE_LIT("Bearer")))
		return refuse_nobody(refusal_r);
	*token_r = slice_trim(rest);
	if (!is_b64token(*token_r))
		return refuse_request("The Authorization header does not hold one token",
				      refusal_r);
	return true;
}

/* ---- static tokens ---- */

/* Looks at all of them, whatever is found. AUTH-TOK-02 */
static const struct guard_token *find_token(const struct guard *guard, struct slice text)
{
	const struct guard_token *found = NULL;
	unsigned char hash[GUARD_HASH_BYTES];

	SHA256((const unsigned char *)text.p, text.n, hash);
	for (size_t i = 0; i < guard->conf.token_count; i++)
		if (CRYPTO_memcmp(hash, guard->conf.tokens[i].sha256, sizeof(hash)) == 0)
			found = &guard->conf.tokens[i];
	return found;
}

static bool is_for(const struct guard_token *token, const struct guard_place *place)
{
	for (size_t i = 0; i < token->server_count; i++)
		if (slice_is_equal(token->servers[i], place->server))
			return true;
	return token->server_count == 0;
}

/* AUTH-TOK-03 */
static bool admit_static(struct guard *guard, const struct guard_place *place,
			 const struct guard_token *token, struct access *access_r,
			 struct refusal *refusal_r)
{
	const struct identity identity = { SLICE("static"), token->name, SLICE("") };

	if (clock_wall_ms() >= token->ends_at_ms)
		return refuse_token("The access token has expired", refusal_r);
	if (!is_for(token, place))
		return refuse_token("The access token is not for this resource", refusal_r);
	*access_r = (struct access){
		.principal = principal_get(guard->principals, &identity),
		.held = token->scopes,
		.ends_at_ms = token->ends_at_ms,
	};
	return true;
}

bool guard_admit(struct guard *guard, const struct guard_place *place,
		 const struct http_request *http, struct access *access_r,
		 struct refusal *refusal_r)
{
	const struct scope_set none = { { 0 } };
	const struct guard_token *token;
	struct slice text = { NULL, 0 };

	if (guard->conf.mode == GUARD_OPEN) {
		*access_r = (struct access){ principal_ref(&guard->principals->anonymous),
					     { { 0 } },
					     UINT64_MAX };
		return true;
	}
	if (!take_token(http, &text, refusal_r))
		return false;
	token = find_token(guard, text);
	if (token == NULL)
		return refuse_token("The access token is not known", refusal_r);
	if (!admit_static(guard, place, token, access_r, refusal_r))
		return false;
	if (guard_permits(guard, place, access_r, &none, refusal_r))
		return true;
	access_fini(access_r);
	return false;
}

/* ---- operations ---- */

bool guard_permits(const struct guard *guard, const struct guard_place *place,
		   const struct access *access, const struct scope_set *needed,
		   struct refusal *refusal_r)
{
	struct scope_set all = place->base;
	struct scope_set held;

	if (guard->conf.mode == GUARD_OPEN)
		return true;
	scope_set_join(&all, needed);
	if (scope_set_covers(&access->held, &all))
		return true;
	held = scope_table_close(guard->conf.scopes, &access->held);
	if (scope_set_covers(&held, &all))
		return true;
	if (guard->conf.names_held)
		scope_set_join(&all, &access->held);
	*refusal_r = (struct refusal){ 403, "insufficient_scope",
				       "The access token lacks a scope that this needs", all };
	return false;
}

/* ---- access ---- */

struct access access_copy(const struct access *access)
{
	struct access copy = *access;

	principal_ref(copy.principal);
	return copy;
}

void access_fini(struct access *access)
{
	principal_unref(&access->principal);
}

uint64_t access_left_ms(const struct access *access)
{
	uint64_t now_ms = clock_wall_ms();

	if (access->ends_at_ms == UINT64_MAX)
		return UINT64_MAX;
	return access->ends_at_ms > now_ms ? access->ends_at_ms - now_ms : 0;
}
