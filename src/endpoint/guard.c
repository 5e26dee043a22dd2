/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credential is looked for in the Authorization field alone. Its text is never kept: what stays of a
 * request is the principal, the scopes and the end.
 */
#include "endpoint/guard.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/conn.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "session/session.h"

_Static_assert(GUARD_HASH_BYTES == SHA256_DIGEST_LENGTH, "hashes are SHA-256");

void guard_init(struct guard *guard, struct session_set *sessions, const struct guard_conf *conf)
{
	guard->conf = *conf;
	guard->principals = &sessions->principals;
	guard->denials = &sessions->denials;
	failures_init(&guard->failures, conf->failures_max);
}

void guard_fini(struct guard *guard)
{
	failures_fini(&guard->failures);
}

/* ---- refusals ---- */

static enum guard_step refuse(struct refusal *refusal_r, int status, const char *error,
			      const char *description)
{
	*refusal_r = (struct refusal){
		.status = status,
		.error = error,
		.description = description,
		.is_failure = error != NULL && status < 500,
	};
	return GUARD_REFUSED;
}

/* What a client is told to ask for when it begins. A client of static tokens asks nobody. AUTH-TOK-07 */
static void name_first_scopes(const struct guard *guard, const struct guard_place *place,
			      struct refusal *refusal)
{
	if (guard->conf.mode != GUARD_OAUTH)
		return;
	refusal->scopes = place->base;
	scope_set_join(&refusal->scopes, &guard->conf.initial);
}

/* Nothing, or something that is none of ours, was presented. AUTH-CH-02, AUTH-IN-05 */
static enum guard_step refuse_nobody(const struct guard *guard, const struct guard_place *place,
				     struct refusal *refusal_r)
{
	refuse(refusal_r, 401, NULL, "A token is needed");
	name_first_scopes(guard, place, refusal_r);
	return GUARD_REFUSED;
}

static enum guard_step refuse_token(const struct guard *guard, const struct guard_place *place,
				    const char *why, struct refusal *refusal_r)
{
	refuse(refusal_r, 401, "invalid_token", why);
	name_first_scopes(guard, place, refusal_r);
	return GUARD_REFUSED;
}

/* A new token would be refused as well, so none is asked for. oauth.md §1 */
static enum guard_step refuse_for_good(const char *why, struct refusal *refusal_r)
{
	refuse(refusal_r, 403, "forbidden", why);
	refusal_r->is_final = true;
	return GUARD_REFUSED;
}

static enum guard_step refuse_by_verdict(const struct guard *guard, const struct guard_place *place,
					 const struct verdict *verdict, struct refusal *refusal_r)
{
	LOG(TOKEN_REFUSED, LOG_SLICE("server", place->server),
	    LOG_STR("reason", verdict_name(verdict->kind)), LOG_STR("cause", verdict->cause));
	if (verdict_outcome(verdict->kind) == VERDICT_UNAVAILABLE)
		return refuse(refusal_r, 503, "temporarily_unavailable",
			      "The token cannot be judged now");
	if (verdict_outcome(verdict->kind) == VERDICT_DENIED)
		return refuse_for_good(verdict_description(verdict->kind), refusal_r);
	refuse_token(guard, place, verdict_description(verdict->kind), refusal_r);
	/* It was good once: that is how clients learn that it is no longer. */
	refusal_r->is_failure = verdict->kind != VERDICT_EXPIRED;
	return GUARD_REFUSED;
}

/* ---- the credential ---- */

struct credential {
	struct slice token;
	bool is_proven; /* DPoP instead of Bearer */
	bool is_key;    /* X-API-Key: a static token, or nothing */
};

/* 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=": RFC 6750 §2.1. */
static bool is_b64token(struct slice text)
{
	static const bool allowed[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
		['-'] = true,         ['.'] = true,         ['_'] = true,
		['~'] = true,         ['+'] = true,         ['/'] = true,
	};
	size_t i = 0;

	while (i < text.n && allowed[(unsigned char)text.p[i]])
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

struct slice guard_token(const struct http_request *http)
{
	struct slice rest = http->fields[HTTP_AUTHORIZATION];

	slice_cut(&rest, ' ');
	return slice_trim(rest);
}

/* AUTH-TOK-05 */
static enum guard_step take_key(const struct http_request *http, struct credential *credential_r,
				struct refusal *refusal_r)
{
	*credential_r =
		(struct credential){ .token = http->fields[HTTP_X_API_KEY], .is_key = true };
	if (http_has(http, HTTP_AUTHORIZATION) || http->repeated & 1u << HTTP_X_API_KEY)
		return refuse(refusal_r, 400, "invalid_request",
			      "There must be one token, not two");
	if (!is_b64token(credential_r->token))
		return refuse(refusal_r, 400, "invalid_request",
			      "The X-API-Key header does not hold one token");
	return GUARD_ADMITTED;
}

/* AUTH-IN-01 … -05 */
static enum guard_step take_credential(const struct guard *guard,
				       const struct guard_request *request,
				       struct credential *credential_r, struct refusal *refusal_r)
{
	const struct http_request *http = request->http;
	struct slice rest = http->fields[HTTP_AUTHORIZATION];
	struct slice scheme = slice_cut(&rest, ' ');
	bool takes_proofs = guard->conf.dpop != GUARD_DPOP_OFF;

	*credential_r = (struct credential){ .is_proven = false };
	if (has_token_in_query(http->query))
		return refuse(refusal_r, 400, "invalid_request",
			      "Tokens are not taken from the address");
	if (guard->conf.takes_api_keys && http_has(http, HTTP_X_API_KEY))
		return take_key(http, credential_r, refusal_r);
	credential_r->is_proven = takes_proofs && slice_is_equal_nocase(scheme, SLICE_LIT("DPoP"));
	if (!http_has(http, HTTP_AUTHORIZATION) ||
	    (!credential_r->is_proven && !slice_is_equal_nocase(scheme, SLICE_LIT("Bearer"))))
		return refuse_nobody(guard, request->place, refusal_r);
	credential_r->token = guard_token(http);
	if (!is_b64token(credential_r->token))
		return refuse(refusal_r, 400, "invalid_request",
			      "The Authorization header does not hold one token");
	return GUARD_ADMITTED;
}

/* ---- static tokens ---- */

/* Looks at all of them, whatever is found. AUTH-TOK-02 */
static const struct guard_token *find_token(const struct guard *guard, struct slice text)
{
	const struct guard_token *found = NULL;
	unsigned char hash[GUARD_HASH_BYTES];

	if (guard->conf.token_count == 0)
		return NULL;
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
static enum guard_step admit_static(struct guard *guard, const struct guard_place *place,
				    const struct guard_token *token, struct access *access_r,
				    struct refusal *refusal_r)
{
	const struct identity identity = { SLICE(PRINCIPAL_STATIC_ISSUER), token->name, SLICE("") };
	const struct verdict expired = { VERDICT_EXPIRED, "a static token" };

	if (clock_wall_ms() >= token->ends_at_ms)
		return refuse_by_verdict(guard, place, &expired, refusal_r);
	if (!is_for(token, place))
		return refuse_token(guard, place, "The access token is not for this resource",
				    refusal_r);
	*access_r = (struct access){
		.principal = principal_get(guard->principals, &identity),
		.held = token->scopes,
		.ends_at_ms = token->ends_at_ms,
	};
	return GUARD_ADMITTED;
}

/* ---- tokens of issuers ---- */

/* RFC 8705 §3: the client of this connection has the certificate that the token is bound to. AUTH-POP-04 */
static bool has_certificate(const struct guard_request *request, const struct grant *grant)
{
	unsigned char thumbprint[TLS_THUMBPRINT_BYTES];
	char text[GRANT_THUMBPRINT_BYTES];

	if (!http_conn_peer_thumbprint(request->conn, thumbprint))
		return false;
	return text_is_equal_secret(slice_of(text,
					     text_base64url(thumbprint, sizeof(thumbprint), text)),
				    slice_str(grant->x5t_s256));
}

static int check_proof(const struct guard *guard, const struct guard_request *request,
		       const struct credential *credential, const struct grant *grant,
		       struct verdict *verdict_r)
{
	struct buf url = { 0 };
	struct dpop_request proof = {
		.proof = request->http->fields[HTTP_DPOP],
		.method = request->http->method_name,
		.token = credential->token,
		.now_s = clock_wall_ms() / 1000,
	};
	int result;

	buf_append_slice(&url, guard->conf.origin);
	buf_append_slice(&url, request->http->path);
	proof.url = buf_slice(&url);
	result = dpop_check(guard->conf.proofs, grant, &proof, verdict_r);
	buf_fini(&url);
	return result;
}

/* What the token is bound to is proven, and in the way that is asked for. AUTH-POP-01, -02, -04 */
static int prove(const struct guard *guard, const struct guard_request *request,
		 const struct credential *credential, const struct grant *grant,
		 struct verdict *verdict_r)
{
	bool needs_proof = grant->jkt[0] != '\0' || guard->conf.dpop == GUARD_DPOP_REQUIRED;

	if (needs_proof && !credential->is_proven)
		return verdict_set(verdict_r, VERDICT_BOUND, "there is no DPoP proof");
	if (grant->x5t_s256[0] != '\0' && !has_certificate(request, grant))
		return verdict_set(verdict_r, VERDICT_BOUND,
				   "the connection lacks the certificate it is bound to");
	if (credential->is_proven)
		return check_proof(guard, request, credential, grant, verdict_r);
	return 0;
}

static struct slice slice_or_empty(const char *text)
{
	return text != NULL ? slice_str(text) : slice_of("", 0);
}

static struct access access_of(const struct guard *guard, struct grant *grant)
{
	bool is_person = grant->subject != NULL;
	const struct identity identity = {
		.issuer = slice_str(grant->issuer),
		.subject = slice_or_empty(grant->subject),
		.client = slice_or_empty(guard->conf.binds_client || !is_person ? grant->client_id :
										  NULL),
	};
	struct access access = {
		.principal = principal_get(guard->principals, &identity),
		.grant = grant_ref(grant),
		.ends_at_ms = grant->ends_at_ms,
	};

	for (size_t i = 0; i < grant->scope_count; i++)
		scope_table_find(guard->conf.scopes, slice_str(grant->scopes[i]), &access.held);
	return access;
}

static enum guard_step admit_granted(struct guard *guard, const struct guard_request *request,
				     const struct credential *credential,
				     const struct verdict *verdict, struct grant *grant,
				     struct access *access_r, struct refusal *refusal_r)
{
	struct verdict proof = { .kind = VERDICT_OK };

	if (grant == NULL)
		return refuse_by_verdict(guard, request->place, verdict, refusal_r);
	if (prove(guard, request, credential, grant, &proof) < 0 ||
	    guard_judge(request->place, grant, &proof) < 0) {
		grant_unref(&grant);
		return refuse_by_verdict(guard, request->place, &proof, refusal_r);
	}
	*access_r = access_of(guard, grant);
	grant_unref(&grant);
	return GUARD_ADMITTED;
}

/* ---- requests ---- */

/* The last step: the scopes that any request needs. AUTH-SCP-01 */
static enum guard_step check_base(const struct guard *guard, const struct guard_place *place,
				  struct access *access, struct refusal *refusal_r)
{
	const struct scope_set none = { { 0 } };

	if (guard_permits(guard, place, access, &none, refusal_r))
		return GUARD_ADMITTED;
	access_fini(access);
	return GUARD_REFUSED;
}

static enum guard_step ask_verifier(struct guard *guard, const struct guard_request *request,
				    const struct credential *credential, struct verifier_wait *wait,
				    struct access *access_r, struct refusal *refusal_r)
{
	const struct guard_place *place = request->place;
	struct verdict verdict;
	struct grant *grant = NULL;

	wait->is_suspect = failures_is_slowed(&guard->failures, http_conn_client(request->conn));
	if (!verifier_check(guard->conf.verifier, credential->token, place->accepted,
			    place->accepted_count, wait, &verdict, &grant))
		return GUARD_WAITING;
	return admit_granted(guard, request, credential, &verdict, grant, access_r, refusal_r);
}

/* A good token resets the count, also one that is good for something else. AUTH-CH-11 */
static enum guard_step count_failures(struct guard *guard, const struct guard_request *request,
				      enum guard_step step, struct refusal *refusal)
{
	const struct peer *peer = http_conn_client(request->conn);
	unsigned int wait_s = 0;

	if (step == GUARD_ADMITTED || (step == GUARD_REFUSED && refusal->status == 403))
		failures_forget(&guard->failures, peer);
	else if (step == GUARD_REFUSED && refusal->is_failure)
		wait_s = failures_note(&guard->failures, peer);
	if (wait_s == 0)
		return step;
	counter_add(COUNTER_REQUESTS_SLOWED);
	refuse(refusal, 429, "slow_down", "Too many wrong tokens come from this address");
	refusal->retry_after_s = wait_s;
	return GUARD_REFUSED;
}

static enum guard_step judge(struct guard *guard, const struct guard_request *request,
			     struct verifier_wait *wait, struct access *access_r,
			     struct refusal *refusal_r)
{
	const struct guard_place *place = request->place;
	const struct guard_token *token;
	struct credential credential;
	enum guard_step step = take_credential(guard, request, &credential, refusal_r);

	if (step != GUARD_ADMITTED)
		return step;
	token = credential.is_proven ? NULL : find_token(guard, credential.token);
	if (token != NULL)
		step = admit_static(guard, place, token, access_r, refusal_r);
	else if (guard->conf.mode == GUARD_OAUTH && !credential.is_key)
		step = ask_verifier(guard, request, &credential, wait, access_r, refusal_r);
	else
		step = refuse_token(guard, place, "The access token is not known", refusal_r);
	return step == GUARD_ADMITTED ? check_base(guard, place, access_r, refusal_r) : step;
}

enum guard_step guard_admit(struct guard *guard, const struct guard_request *request,
			    struct verifier_wait *wait, struct access *access_r,
			    struct refusal *refusal_r)
{
	if (guard->conf.mode == GUARD_OPEN) {
		*access_r =
			(struct access){ .principal = principal_ref(&guard->principals->anonymous),
					 .ends_at_ms = UINT64_MAX };
		return GUARD_ADMITTED;
	}
	return count_failures(guard, request, judge(guard, request, wait, access_r, refusal_r),
			      refusal_r);
}

enum guard_step guard_conclude(struct guard *guard, const struct guard_request *request,
			       const struct verdict *verdict, struct grant *grant,
			       struct access *access_r, struct refusal *refusal_r)
{
	struct credential credential;
	enum guard_step step = take_credential(guard, request, &credential, refusal_r);

	CHECK(step == GUARD_ADMITTED); /* it was before */
	step = admit_granted(guard, request, &credential, verdict, grant, access_r, refusal_r);
	if (step == GUARD_ADMITTED)
		step = check_base(guard, request->place, access_r, refusal_r);
	return count_failures(guard, request, step, refusal_r);
}

void guard_leave(struct guard *guard, const struct peer *client)
{
	failures_note(&guard->failures, client);
}

/* ---- operations ---- */

/* Whatever was found out about the token, and whenever. AUTH-SES-07 */
static bool is_denied(const struct guard *guard, const struct guard_place *place,
		      const struct access *access, struct refusal *refusal_r)
{
	const struct denial *denial;
	struct denial_marks marks;
	struct verdict verdict;

	if (guard->denials->count == 0)
		return false;
	access_show(access, &marks);
	denial = denials_find(guard->denials, &marks);
	if (denial == NULL)
		return false;
	counter_add(COUNTER_TOKENS_DENIED);
	verdict_set(&verdict, VERDICT_REVOKED, "entry %llu of the denied tokens names its %s",
		    (unsigned long long)denial->number, denial_by_name(denial->by));
	refuse_by_verdict(guard, place, &verdict, refusal_r);
	return true;
}

bool guard_permits(const struct guard *guard, const struct guard_place *place,
		   const struct access *access, const struct scope_set *needed,
		   struct refusal *refusal_r)
{
	struct scope_set all = place->base;
	struct scope_set held;

	if (guard->conf.mode == GUARD_OPEN)
		return true;
	if (is_denied(guard, place, access, refusal_r))
		return false;
	scope_set_join(&all, needed);
	if (scope_set_covers(&access->held, &all))
		return true;
	held = scope_table_close(guard->conf.scopes, &access->held);
	if (scope_set_covers(&held, &all))
		return true;
	if (guard->conf.names_held)
		scope_set_join(&all, &access->held);
	refuse(refusal_r, 403, "insufficient_scope",
	       "The access token lacks a scope that this needs");
	refusal_r->scopes = all;
	return false;
}

/* ---- access ---- */

bool guard_renew(const struct guard *guard, const struct guard_place *place, struct access *access,
		 struct grant *grant)
{
	const struct scope_set none = { { 0 } };
	struct access fresh = access_of(guard, grant);
	struct refusal refusal;
	bool is_good = fresh.principal == access->principal &&
		       guard_permits(guard, place, &fresh, &none, &refusal);

	grant_unref(&grant);
	if (is_good) {
		access_fini(access);
		*access = fresh;
	} else {
		access_fini(&fresh);
	}
	return is_good;
}

struct access access_copy(const struct access *access)
{
	struct access copy = *access;

	principal_ref(copy.principal);
	if (copy.grant != NULL)
		grant_ref(copy.grant);
	return copy;
}

void access_fini(struct access *access)
{
	principal_unref(&access->principal);
	grant_unref(&access->grant);
}

/* A static token says one thing: what it is called. */
static void append_claim(const struct access *access, struct slice name, struct buf *out)
{
	if (access->grant != NULL)
		grant_append_claim(access->grant, name, out);
	else if (slice_is_equal(name, SLICE_LIT("sub")))
		buf_append_slice(out, access->principal->identity.subject);
}

void access_keep_claims(const struct access *access)
{
	const struct principal_set *set = access->principal->set;

	if (principal_is_anonymous(access->principal))
		return;
	for (size_t i = 0; i < set->claim_count; i++) {
		struct buf text = { 0 };

		append_claim(access, set->claim_names[i], &text);
		principal_set_claim(access->principal, i, buf_slice(&text));
		buf_fini(&text);
	}
}

/* Of a static token its name is known; of nobody in particular, nothing. */
void access_show(const struct access *access, struct denial_marks *marks_r)
{
	const struct grant *grant = access->grant;
	const struct identity *identity = &access->principal->identity;

	*marks_r = (struct denial_marks){ .issuer = identity->issuer };
	if (grant == NULL) {
		marks_r->names[DENIAL_BY_SUB] = identity->subject;
		return;
	}
	marks_r->names[DENIAL_BY_SUB] = slice_or_empty(grant->subject);
	marks_r->names[DENIAL_BY_CLIENT_ID] = slice_or_empty(grant->client_id);
	marks_r->names[DENIAL_BY_JTI] = grant_claim_text(grant, "jti");
	marks_r->names[DENIAL_BY_SID] = grant_claim_text(grant, "sid");
}
