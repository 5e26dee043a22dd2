/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admits a request by its head: the credential, static tokens, tokens of issuers, DPoP; and judges an
 * access again under another configuration or with a new grant. At the end: the access itself, and
 * failures, the addresses that send wrong tokens.
 *
 * A credential is taken only from the Authorization field or, if configured, from X-API-Key. Its
 * text is not kept here: what remains of it is the access.
 */
#include "endpoint/authorization.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/slice.h"
#include "base/text.h"
#include "endpoint/caller_claims.h"
#include "endpoint/origin.h"
#include "http/conn.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/permissions.h"
#include "session/session.h"

void authorization_init(struct authorization *auth, struct session_set *sessions,
			const struct authorization_conf *conf)
{
	auth->conf = *conf;
	list_init(&auth->watches);
	auth->principals = &sessions->principals;
	auth->deny_list = &sessions->deny_list;
	failures_init(&auth->failures, conf->failures_max);
	auth->failures.seed = auth->principals->seed; /* the same at all nodes of a cluster */
	auth->configuration = 1;
}

void authorization_renew_conf(struct authorization *auth, const struct authorization_conf *conf)
{
	auth->conf = *conf;
	auth->failures.max = conf->failures_max;
	auth->configuration++;
}

/* ---- another configuration ---- */

static struct rights static_rights(const struct static_token *token)
{
	struct rights rights = token->rights;

	rights.token = static_token_mark(token);
	return rights;
}

static bool has_issuer(const struct verifier_conf *issuers, const char *issuer)
{
	for (size_t i = 0; i < issuers->count; i++)
		if (strcmp(issuers->items[i].issuer, issuer) == 0)
			return true;
	return false;
}

void authorization_end_removed(struct authorization *auth, const struct authorization_conf *before)
{
	const struct authorization_conf *now = &auth->conf;
	static const struct slice issuer = SLICE(PRINCIPAL_STATIC_ISSUER), any = { NULL, 0 };

	for (size_t i = 0; i < before->tokens.count; i++)
		if (now->mode < AUTHORIZATION_TOKEN ||
		    !static_token_outlives(&before->tokens.items[i], &now->tokens))
			deny_list_tell(auth->deny_list, issuer, before->tokens.items[i].name);
	for (size_t i = 0; i < before->issuers.count; i++)
		if (now->mode != AUTHORIZATION_OAUTH ||
		    !has_issuer(&now->issuers, before->issuers.items[i].issuer))
			deny_list_tell(auth->deny_list, slice_str(before->issuers.items[i].issuer),
				       any);
}

void authorization_renew_rights(const struct authorization_conf *conf,
				const struct principal *principal, struct rights *rights)
{
	const struct rights no_rights = { .needs_roles = true, .needs_scopes = true };
	const struct identity *identity = &principal->identity;
	const struct static_token *token;

	if (principal_is_anonymous(principal))
		return;
	rights->needs_roles = conf->has_roles || rights->needs_roles;
	rights->needs_scopes = true;
	if (!slice_is_equal(identity->issuer, SLICE_LIT(PRINCIPAL_STATIC_ISSUER)))
		/*
		 * token_watch or the next request judges the token again; numbers of roles keep
		 * their meaning.
		 */
		return;
	token = static_token_find_marked(&conf->tokens, identity->subject, rights->token);
	*rights = token != NULL ? static_rights(token) : no_rights;
}

void authorization_fini(struct authorization *auth)
{
	CHECK(list_is_empty(&auth->watches));
	failures_fini(&auth->failures);
}

/* ---- refusals ---- */

static enum authorization_step authorization_refuse(struct refusal *refusal_r, int status,
						    const char *error, const char *description)
{
	*refusal_r = (struct refusal){
		.status = status,
		.error = error,
		.description = description,
		.is_failure = error != NULL && status < 500,
	};
	return AUTHORIZATION_REFUSED;
}

/*
 * Tells the client which scopes to request first; with static tokens, there is nobody to request
 * them from. AUTH-TOK-07
 *
 * Without `error`, no credential was presented, or one of a kind that we do not take. AUTH-CH-02,
 * AUTH-IN-05
 */
static enum authorization_step refuse_token(const struct authorization *auth,
					    const struct protected_resource *place,
					    const char *error, const char *why,
					    struct refusal *refusal_r)
{
	authorization_refuse(refusal_r, 401, error, why);
	if (auth->conf.mode == AUTHORIZATION_OAUTH) {
		refusal_r->scopes = place->base;
		scope_set_join(&refusal_r->scopes, &auth->conf.initial);
	}
	return AUTHORIZATION_REFUSED;
}

static enum authorization_step refuse_by_verdict(const struct authorization *auth,
						 const struct protected_resource *place,
						 const struct verdict *verdict,
						 struct refusal *refusal_r)
{
	const char *description = verdict_get(verdict->kind)->description;
	enum verdict_outcome outcome = verdict_get(verdict->kind)->outcome;

	CHECK(outcome != VERDICT_GRANTED);
	verdict_count(verdict->kind);
	LOG(TOKEN_REFUSED, LOG_SLICE("server", place->server),
	    LOG_STR("reason", verdict_get(verdict->kind)->name), LOG_STR("cause", verdict->cause));
	if (outcome == VERDICT_UNAVAILABLE)
		return authorization_refuse(refusal_r, 503, "temporarily_unavailable",
					    "The token cannot be judged now");
	if (outcome == VERDICT_DENIED) {
		authorization_refuse(refusal_r, 403, "forbidden", description);
		refusal_r->is_final = true; /* a new token would be refused as well. oauth.md §1 */
		memcpy(refusal_r->cause, verdict->cause, sizeof(refusal_r->cause));
		return AUTHORIZATION_REFUSED;
	}
	refuse_token(auth, place, "invalid_token", description, refusal_r);
	memcpy(refusal_r->cause, verdict->cause, sizeof(refusal_r->cause));
	/* An expired token was good once, and this is how clients learn that it no longer is. */
	refusal_r->is_failure = verdict->kind != VERDICT_EXPIRED;
	return AUTHORIZATION_REFUSED;
}

/* ---- the credential ---- */

struct credential {
	struct slice token;
	bool is_proven; /* DPoP instead of Bearer */
	bool is_key;    /* X-API-Key: a static token, or nothing */
};

#define HOLDS_PLACEHOLDER " holds a placeholder that the client did not expand"

/* `${NAME}`, `$NAME` or `<NAME>`: what was to stand there, in a client's configuration. */
static bool is_placeholder(struct slice text)
{
	unsigned char next = text.n > 1 ? (unsigned char)text.p[1] : ' ';

	return (text.n > 1 && text.p[0] == '$' && (next == '{' || next == '_' || isalpha(next))) ||
	       (text.n > 1 && text.p[0] == '<' && text.p[text.n - 1] == '>');
}

struct slice authorization_token(const struct http_request *http)
{
	struct slice rest = http->fields[HTTP_AUTHORIZATION];

	slice_cut(&rest, ' ');
	return slice_trim(rest);
}

/* What is there in place of a token that could be taken. */
static const char *why_no_token(const struct http_request *http)
{
	if (is_placeholder(http->fields[HTTP_AUTHORIZATION]))
		return "The Authorization header" HOLDS_PLACEHOLDER;
	if (http_has(http, HTTP_AUTHORIZATION))
		return "A token came, but not as 'Authorization: Bearer TOKEN'";
	if (http_has(http, HTTP_X_API_KEY))
		return "A token came, but as X-API-Key, not as 'Authorization: Bearer TOKEN'";
	return "A token is needed";
}

/* AUTH-IN-01 … -05 */
static enum authorization_step take_credential(struct authorization_check *check,
					       struct credential *credential_r)
{
	const struct authorization_conf *conf = &check->auth->conf;
	const struct http_request *http = check->http;
	struct slice rest = http->fields[HTTP_AUTHORIZATION];
	struct slice scheme = slice_cut(&rest, ' ');
	struct slice in_query;

	*credential_r = (struct credential){ .is_proven = false };
	if (http_query_find(http->query, SLICE_LIT("access_token"), &in_query))
		return authorization_refuse(&check->refusal, 400, "invalid_request",
					    "Tokens are not taken from the address");
	if (conf->takes_api_keys && http_has(http, HTTP_X_API_KEY)) { /* AUTH-TOK-05 */
		credential_r->token = http->fields[HTTP_X_API_KEY];
		credential_r->is_key = true;
		if (http_has(http, HTTP_AUTHORIZATION) || http->repeated & 1u << HTTP_X_API_KEY)
			return authorization_refuse(&check->refusal, 400, "invalid_request",
						    "There must be one token, not two");
		if (!text_is_b64token(credential_r->token))
			return authorization_refuse(
				&check->refusal, 400, "invalid_request",
				is_placeholder(credential_r->token) ?
					"The X-API-Key header" HOLDS_PLACEHOLDER :
					"The X-API-Key header does not hold one token");
		return AUTHORIZATION_ADMITTED;
	}
	credential_r->is_proven = conf->dpop != AUTHORIZATION_DPOP_OFF &&
				  slice_is_equal_nocase(scheme, SLICE_LIT("DPoP"));
	if (!http_has(http, HTTP_AUTHORIZATION) ||
	    (!credential_r->is_proven && !slice_is_equal_nocase(scheme, SLICE_LIT("Bearer"))))
		return refuse_token(check->auth, check->place, NULL, why_no_token(http),
				    &check->refusal);
	credential_r->token = authorization_token(http);
	if (!text_is_b64token(credential_r->token))
		return authorization_refuse(&check->refusal, 400, "invalid_request",
					    is_placeholder(credential_r->token) ?
						    "The Authorization header" HOLDS_PLACEHOLDER :
						    "The Authorization header does not hold one "
						    "token");
	return AUTHORIZATION_ADMITTED;
}

/* ---- static tokens ---- */

/* AUTH-TOK-03 */
static enum authorization_step admit_static(const struct authorization *auth,
					    const struct protected_resource *place,
					    const struct static_token *token,
					    struct access *access_r, struct refusal *refusal_r)
{
	const struct identity identity = { SLICE(PRINCIPAL_STATIC_ISSUER), token->name, SLICE("") };
	const struct verdict expired = { VERDICT_EXPIRED, "a static token" };

	if (static_token_is_over(token))
		return refuse_by_verdict(auth, place, &expired, refusal_r);
	if (!static_token_is_for(token, place->server)) {
		refuse_token(auth, place, "invalid_token",
			     "The access token is not for this resource", refusal_r);
		snprintf(refusal_r->cause, sizeof(refusal_r->cause),
			 "the entry %.*s of auth.tokens is for other servers",
			 SLICE_ARG(token->name));
		refusal_r->rule = (struct rule){
			.key = RULE_TOKEN_SERVERS,
			.number = (size_t)(token - auth->conf.tokens.items),
		};
		return AUTHORIZATION_REFUSED;
	}
	*access_r = (struct access){
		.principal = principal_get(auth->principals, &identity),
		.rights = static_rights(token),
		.configuration = auth->configuration,
		.ends_at_ms = token->ends_at_ms > 0 ? token->ends_at_ms : UINT64_MAX,
	};
	return AUTHORIZATION_ADMITTED;
}

static enum authorization_step refuse_unknown(const struct authorization *auth,
					      const struct protected_resource *place,
					      struct refusal *refusal_r)
{
	counter_add(COUNTER_TOKENS_UNKNOWN);
	return refuse_token(auth, place, "invalid_token", "The access token is not known",
			    refusal_r);
}

/* ---- tokens of issuers ---- */

/*
 * Whether the client of this connection has the certificate that the token is bound to. RFC 8705
 * §3, AUTH-POP-04
 */
static bool has_certificate(const struct http_conn *conn, const struct grant *grant)
{
	unsigned char thumbprint[TLS_THUMBPRINT_BYTES];
	char text[GRANT_THUMBPRINT_BYTES];

	if (!http_conn_peer_thumbprint(conn, thumbprint))
		return false;
	return text_is_equal_secret(slice_of(text,
					     text_base64url(thumbprint, sizeof(thumbprint), text)),
				    slice_str(grant->x5t_s256));
}

/*
 * Checks that the client proves what the token is bound to, in the way that is required.
 * AUTH-POP-01, -02, -04
 */
static int prove(const struct authorization_check *check, const struct credential *credential,
		 const struct grant *grant, struct verdict *verdict_r)
{
	const struct authorization_conf *conf = &check->auth->conf;
	bool needs_proof = grant->jkt[0] != '\0' || conf->dpop == AUTHORIZATION_DPOP_REQUIRED;
	struct dpop_request proof = {
		.proof = check->http->fields[HTTP_DPOP],
		.method = check->http->method_name,
		.token = credential->token,
		.now_s = clock_wall_ms() / 1000,
	};
	at_end(buf_fini) struct buf url = { 0 };

	if (needs_proof && !credential->is_proven)
		return verdict_set(verdict_r, VERDICT_BOUND, "there is no DPoP proof");
	if (grant->x5t_s256[0] != '\0' && !has_certificate(check->conn, grant))
		return verdict_set(verdict_r, VERDICT_BOUND,
				   "the connection lacks the certificate it is bound to");
	if (!credential->is_proven)
		return 0;
	buf_append_slice(&url, conf->public_url);
	buf_append_slice(&url, origin_own_path(conf->public_url, check->http->path));
	proof.url = buf_slice(&url);
	return dpop_check(conf->proofs, grant, &proof, verdict_r);
}

/*
 * What one server requires beyond a valid token. Returns 0, or -1, the verdict and the rule that
 * refuses it. We saw no signature of an introspected token: its issuer answers for it. AUTH-ISS-03
 */
static int check_policy(const struct protected_resource *place, const struct grant *grant,
			struct verdict *verdict_r, enum rule_key *rule_r)
{
	const char *client = grant->client_id != NULL ? grant->client_id : "";

	*rule_r = RULE_ALGORITHMS;
	if (place->algorithms.count > 0 && grant->algorithm != NULL &&
	    !slices_has(place->algorithms, slice_str(grant->algorithm)))
		return verdict_set(verdict_r, VERDICT_BAD_ALG,
				   "`%s` is none of this server's algorithms", grant->algorithm);
	*rule_r = RULE_CLIENTS;
	if (place->clients.count > 0 &&
	    (grant->client_id == NULL || !slices_has(place->clients, slice_str(client))))
		return verdict_set(verdict_r, VERDICT_POLICY,
				   "the client `%.60s` is none of this server's clients", client);
	return 0;
}

struct rights authorization_rights_of(const struct authorization_conf *conf,
				      const struct grant *grant)
{
	struct rights rights = { .needs_roles = conf->has_roles,
				 .needs_scopes = true,
				 .roles = grant->roles };

	for (size_t i = 0; i < grant->scope_count; i++)
		scope_table_find(conf->scopes, slice_str(grant->scopes[i]), &rights.scopes);
	return rights;
}

static struct access access_of(const struct authorization *auth, struct grant *grant)
{
	bool is_person = grant->subject != NULL;
	const struct identity identity = {
		.issuer = slice_str(grant->issuer),
		.subject = slice_or_empty(grant->subject),
		.client = slice_or_empty(auth->conf.binds_client || !is_person ? grant->client_id :
										 NULL),
	};

	return (struct access){
		.principal = principal_get(auth->principals, &identity),
		.grant = grant_ref(grant),
		.rights = authorization_rights_of(&auth->conf, grant),
		.configuration = auth->configuration,
		.ends_at_ms = grant->ends_at_ms,
	};
}

static enum authorization_step admit_granted(struct authorization_check *check,
					     const struct credential *credential,
					     const struct verdict *verdict, struct grant *grant)
{
	enum authorization_step step = AUTHORIZATION_ADMITTED;
	enum rule_key rule = RULE_NONE;
	struct verdict proof;

	if (grant == NULL)
		return refuse_by_verdict(check->auth, check->place, verdict, &check->refusal);
	CHECK(verdict->kind == VERDICT_OK);
	if (prove(check, credential, grant, &proof) == 0)
		check->access = access_of(check->auth, grant);
	if (check->access.principal == NULL ||
	    check_policy(check->place, grant, &proof, &rule) < 0) {
		step = refuse_by_verdict(check->auth, check->place, &proof, &check->refusal);
		check->refusal.rule.key = rule;
	}
	grant_unref(&grant);
	return step;
}

/* ---- nobody's credential ---- */

/* As somebody with these claims, for whom the operator asks; he may use everything, as without. */
static enum authorization_step admit_claims(struct authorization_check *check)
{
	struct grant *grant = grant_imagine_text(check->http->fields[HTTP_CALLER_CLAIMS],
						 PRINCIPAL_OPERATOR_ISSUER, NULL, NULL);
	struct identity identity = { SLICE(PRINCIPAL_OPERATOR_ISSUER), { NULL, 0 }, SLICE("") };

	if (grant == NULL)
		return authorization_refuse(&check->refusal, 400, "invalid_request",
					    "No token has such claims");
	identity.subject = slice_str(grant->subject);
	check->access = (struct access){
		.principal = principal_get(check->auth->principals, &identity),
		.grant = grant,
		.ends_at_ms = UINT64_MAX,
	};
	return AUTHORIZATION_ADMITTED;
}

static enum authorization_step admit_anybody(struct authorization_check *check)
{
	struct authorization *auth = check->auth;

	if (auth->conf.takes_claims && http_has(check->http, HTTP_CALLER_CLAIMS))
		return admit_claims(check);
	check->access = (struct access){ .principal = principal_ref(&auth->principals->anonymous),
					 .ends_at_ms = UINT64_MAX };
	return AUTHORIZATION_ADMITTED;
}

/* ---- requests ---- */

bool authorization_has_role(const struct protected_resource *place, const struct rights *rights)
{
	return place->permissions == NULL || permissions_allow_any(place->permissions, rights);
}

static bool has_role(const struct authorization *auth, const struct protected_resource *place,
		     const struct access *access, struct refusal *refusal_r)
{
	struct verdict verdict;

	if (authorization_has_role(place, &access->rights))
		return true;
	verdict_set(&verdict, VERDICT_POLICY, "none of its roles allows anything of this server");
	refuse_by_verdict(auth, place, &verdict, refusal_r);
	return false;
}

/* Checks what every request needs. AUTH-SCP-01 */
static bool has_base(const struct authorization *auth, const struct protected_resource *place,
		     struct access *access, struct refusal *refusal_r)
{
	const struct scope_set none = { { 0 } };

	return authorization_is_current(auth, place, access, refusal_r) &&
	       has_role(auth, place, access, refusal_r) &&
	       authorization_covers(auth, place, access, &none, refusal_r);
}

/*
 * The last step: checks the scopes that every request needs, and counts failures. A good token
 * resets the count, even if it does not suffice here. AUTH-CH-11
 */
static enum authorization_step authorization_finish(struct authorization_check *check,
						    enum authorization_step step)
{
	struct failures *failures = &check->auth->failures;
	const struct peer *peer = http_conn_client(check->conn);
	struct refusal *refusal = &check->refusal;
	unsigned int wait_s = 0;

	if (step == AUTHORIZATION_ADMITTED &&
	    !has_base(check->auth, check->place, &check->access, refusal))
		step = AUTHORIZATION_REFUSED;
	if (step == AUTHORIZATION_ADMITTED)
		verdict_count(VERDICT_OK);
	if (step == AUTHORIZATION_ADMITTED && check->place->asserts_caller)
		caller_claims_keep(&check->auth->conf, &check->access, check->place->server);
	if (step == AUTHORIZATION_ADMITTED && check->place->keeps_token &&
	    check->access.grant != NULL)
		principal_keep_token(check->access.principal, check->place->server,
				     authorization_token(check->http));
	if (step == AUTHORIZATION_ADMITTED || refusal->status == 403)
		failures_forget(failures, peer);
	else if (refusal->is_failure)
		wait_s = failures_note(failures, peer);
	if (wait_s == 0)
		return step;
	counter_add(COUNTER_REQUESTS_SLOWED);
	authorization_refuse(refusal, 429, "slow_down",
			     "Too many wrong tokens come from this address");
	refusal->retry_after_s = wait_s;
	return AUTHORIZATION_REFUSED;
}

enum authorization_step authorization_admit(struct authorization_check *check,
					    struct verifier_wait *wait)
{
	struct authorization *auth = check->auth;
	const struct protected_resource *place = check->place;
	const struct static_token *token;
	struct credential credential;
	struct grant *grant = NULL;
	struct verdict verdict;

	CHECK(check->conn != NULL && wait->on_done != NULL);
	if (auth->conf.mode < AUTHORIZATION_TOKEN)
		return admit_anybody(check);
	if (take_credential(check, &credential) == AUTHORIZATION_REFUSED)
		return authorization_finish(check, AUTHORIZATION_REFUSED);
	token = credential.is_proven ? NULL :
				       static_token_find(&auth->conf.tokens, credential.token);
	if (token != NULL)
		return authorization_finish(check, admit_static(auth, place, token, &check->access,
								&check->refusal));
	if (auth->conf.mode != AUTHORIZATION_OAUTH || credential.is_key)
		return authorization_finish(check, refuse_unknown(auth, place, &check->refusal));
	CHECK(auth->conf.verifier != NULL);
	wait->is_suspect = failures_is_slowed(&auth->failures, http_conn_client(check->conn));
	wait->asker = failures_key(&auth->failures, http_conn_client(check->conn));
	if (!verifier_check(auth->conf.verifier, credential.token, &place->accepted, wait, &verdict,
			    &grant))
		return AUTHORIZATION_WAITING;
	return authorization_finish(check, admit_granted(check, &credential, &verdict, grant));
}

enum authorization_step authorization_conclude(struct authorization_check *check,
					       const struct verdict *verdict, struct grant *grant)
{
	struct credential credential;

	CHECK(grant == NULL || verdict->kind == VERDICT_OK);
	/* It was accepted before, but a reload may have changed what is accepted. */
	if (take_credential(check, &credential) == AUTHORIZATION_REFUSED) {
		grant_unref(&grant);
		return authorization_finish(check, AUTHORIZATION_REFUSED);
	}
	CHECK(!credential.is_key);
	return authorization_finish(check, admit_granted(check, &credential, verdict, grant));
}

/* ---- operations ---- */

bool authorization_is_current(const struct authorization *auth,
			      const struct protected_resource *place, struct access *access,
			      struct refusal *refusal_r)
{
	struct verdict verdict = { VERDICT_EXPIRED, "it was good when the head came" };
	const struct denial *denial = NULL;
	struct denial_marks marks;

	CHECK(access->principal != NULL);
	if (auth->conf.mode < AUTHORIZATION_TOKEN)
		return true;
	if (access->configuration != auth->configuration &&
	    !authorization_judge_again(auth, place, access, refusal_r))
		return false;
	if (access->ends_at_ms == UINT64_MAX || clock_wall_ms() < access->ends_at_ms) {
		if (auth->deny_list->count == 0)
			return true;
		/*
		 * Whatever was found out about the token, and whenever, a denial counts.
		 * AUTH-SES-07
		 */
		access_show(access, &marks);
		denial = deny_list_find(auth->deny_list, &marks);
		if (denial == NULL)
			return true;
		counter_add(COUNTER_TOKENS_DENIED);
		verdict_set(&verdict, VERDICT_REVOKED,
			    "entry %llu of the denied tokens names its %s",
			    (unsigned long long)denial->number, denial_by_name(denial->by));
	}
	refuse_by_verdict(auth, place, &verdict, refusal_r);
	if (denial != NULL)
		refusal_r->rule.key = RULE_DENIED_TOKENS;
	return false;
}

bool authorization_covers(const struct authorization *auth, const struct protected_resource *place,
			  const struct access *access, const struct scope_set *needed,
			  struct refusal *refusal_r)
{
	struct scope_set all = place->base;
	struct scope_set held;

	if (auth->conf.mode < AUTHORIZATION_TOKEN)
		return true;
	scope_set_join(&all, needed);
	if (scope_set_covers(&access->rights.scopes, &all))
		return true;
	held = scope_table_close(auth->conf.scopes, &access->rights.scopes);
	if (scope_set_covers(&held, &all))
		return true;
	if (auth->conf.names_held)
		scope_set_join(&all, &access->rights.scopes);
	authorization_refuse(refusal_r, 403, "insufficient_scope",
			     "The access token lacks a scope that this needs");
	refusal_r->scopes = all;
	refusal_r->rule.key =
		scope_set_covers(&held, &place->base) ? RULE_TOOLS_SCOPES : RULE_SCOPES;
	return false;
}

/* ---- an access judged again ---- */

struct rights authorization_rights(const struct authorization *auth, const struct access *access)
{
	struct rights rights = access->rights;

	if (rights.needs_scopes)
		rights.scopes = scope_table_close(auth->conf.scopes, &rights.scopes);
	return rights;
}

/*
 * Whether such a token could be proven now. Its proof was checked when it was presented; the next
 * one is due when it is presented again.
 */
static bool can_be_proven(const struct authorization_conf *conf, const struct grant *grant)
{
	return grant->jkt[0] != '\0' ? conf->dpop != AUTHORIZATION_DPOP_OFF :
				       conf->dpop != AUTHORIZATION_DPOP_REQUIRED;
}

/* Whether `fresh`, the access that the new grant gives, may replace `access`. */
static bool is_as_good(const struct authorization *auth, const struct protected_resource *place,
		       const struct access *access, struct access *fresh, struct refusal *refusal_r)
{
	enum rule_key rule = RULE_NONE;
	struct verdict verdict;

	if (fresh->principal != access->principal)
		verdict_set(&verdict, VERDICT_REVOKED, "it is somebody else's now");
	else if (!can_be_proven(&auth->conf, fresh->grant))
		verdict_set(&verdict, VERDICT_BOUND, "what is asked of its proof has changed");
	else if (check_policy(place, fresh->grant, &verdict, &rule) == 0)
		return has_base(auth, place, fresh, refusal_r);
	refuse_by_verdict(auth, place, &verdict, refusal_r);
	refusal_r->rule.key = rule;
	return false;
}

bool authorization_suffices(const struct authorization *auth,
			    const struct protected_resource *place, const struct access *access)
{
	const struct scope_set none = { { 0 } };
	struct refusal refusal;
	struct verdict verdict;
	enum rule_key rule;

	CHECK(access->principal != NULL);
	if (auth->conf.mode < AUTHORIZATION_TOKEN)
		return true;
	return (access->grant == NULL ||
		check_policy(place, access->grant, &verdict, &rule) == 0) &&
	       authorization_has_role(place, &access->rights) &&
	       authorization_covers(auth, place, access, &none, &refusal);
}

/* Takes ownership of the grant. Returns whether *access was replaced. */
static bool authorization_replace(const struct authorization *auth,
				  const struct protected_resource *place, struct access *access,
				  struct grant *grant, struct refusal *refusal_r)
{
	struct access fresh = access_of(auth, grant);
	bool is_good = is_as_good(auth, place, access, &fresh, refusal_r);

	grant_unref(&grant);
	access_fini(is_good ? access : &fresh);
	if (is_good)
		*access = fresh;
	return is_good;
}

bool authorization_renew(const struct authorization *auth, const struct protected_resource *place,
			 struct access *access, struct grant *grant)
{
	struct refusal refusal;

	return authorization_replace(auth, place, access, grant, &refusal);
}

static bool judge_static_again(const struct authorization *auth,
			       const struct protected_resource *place, struct access *access,
			       struct refusal *refusal_r)
{
	const struct static_token *token =
		static_token_find_marked(&auth->conf.tokens, access->principal->identity.subject,
					 access->rights.token);
	struct access fresh;
	bool is_good;

	if (token == NULL) {
		refuse_unknown(auth, place, refusal_r);
		return false;
	}
	if (admit_static(auth, place, token, &fresh, refusal_r) == AUTHORIZATION_REFUSED)
		return false;
	is_good = has_base(auth, place, &fresh, refusal_r);
	access_fini(is_good ? access : &fresh);
	if (is_good)
		*access = fresh;
	return is_good;
}

bool authorization_judge_again(const struct authorization *auth,
			       const struct protected_resource *place, struct access *access,
			       struct refusal *refusal_r)
{
	struct verdict verdict = { VERDICT_UNKNOWN_ISSUER,
				   "tokens of issuers are not taken any more" };
	struct grant *grant = NULL;

	if (principal_is_anonymous(access->principal)) {
		if (auth->conf.mode >= AUTHORIZATION_TOKEN)
			refuse_token(auth, place, NULL, "A token is needed", refusal_r);
		return auth->conf.mode < AUTHORIZATION_TOKEN;
	}
	if (access->grant == NULL)
		return judge_static_again(auth, place, access, refusal_r);
	if (auth->conf.mode == AUTHORIZATION_OAUTH)
		grant = verifier_judge_again(auth->conf.verifier, access->grant, &place->accepted,
					     &verdict);
	if (grant != NULL)
		return authorization_replace(auth, place, access, grant, refusal_r);
	refuse_by_verdict(auth, place, &verdict, refusal_r);
	return false;
}

/* ---- access ---- */

struct access access_copy(const struct access *access)
{
	struct access copy = *access;

	CHECK(access->principal != NULL);
	principal_ref(copy.principal);
	if (copy.grant != NULL)
		grant_ref(copy.grant);
	return copy;
}

bool access_is_same(const struct access *one, const struct access *other)
{
	return one->principal == other->principal && one->grant == other->grant &&
	       one->rights.token == other->rights.token;
}

void access_fini(struct access *access)
{
	principal_unref(&access->principal);
	grant_unref(&access->grant);
}

void access_keep_claims(const struct access *access)
{
	struct principal *principal = access->principal;
	const struct slices *names = &principal->set->claim_names;

	if (principal_is_anonymous(principal))
		return;
	for (size_t i = 0; i < names->count; i++) {
		at_end(buf_fini) struct buf text = { 0 };

		if (access->grant != NULL)
			grant_append_claim(access->grant, names->items[i], &text);
		else if (slice_is_equal(names->items[i], SLICE_LIT("sub")))
			buf_append_slice(&text, principal->identity.subject); /* its only claim */
		principal_set_claim(principal, i, buf_slice(&text));
	}
}

/* A static token has only its name; an anonymous caller has nothing. */
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

/* ---- failures ---- */

/* A table keyed by address. */

struct failing {
	struct list link;
	uint64_t key;
	uint64_t since_ms; /* clock_now_ms */
	uint64_t last_ms;
	uint64_t count; /* since then */
	bool is_logged; /* that it is slowed */
};

uint64_t failures_key(const struct failures *failures, const struct peer *peer)
{
	return peer->family != 0 && !peer_is_loopback(*peer) ? peer_key(peer, failures->seed) : 0;
}

static bool is_counted(const struct failures *failures, const struct peer *peer)
{
	return failures->max > 0 && failures_key(failures, peer) != 0;
}

static void authorization_remove_entry(struct failures *failures, struct failing *failing)
{
	CHECK(failures->count > 0 && failures->count == failures->by_key.count);
	map_remove(&failures->by_key, failing->key);
	list_remove(&failing->link);
	failures->count--;
	free(failing);
}

static struct failing *longest_ago(const struct failures *failures)
{
	CHECK(!list_is_empty(&failures->entries));
	return container_of(failures->entries.next, struct failing, link);
}

static struct failing *get_entry(struct failures *failures, uint64_t key, uint64_t now_ms)
{
	struct failing *failing = map_find(&failures->by_key, key);

	if (failing == NULL) {
		while (failures->count > 0 &&
		       (failures->count >= FAILURES_ADDRESSES_MAX ||
			now_ms - longest_ago(failures)->last_ms >= FAILURES_WINDOW_MS))
			authorization_remove_entry(failures, longest_ago(failures));
		failing = mem_zalloc(sizeof(*failing));
		failing->key = key;
		failing->since_ms = now_ms;
		list_init(&failing->link);
		map_insert(&failures->by_key, key, failing);
		failures->count++;
	} else if (now_ms - failing->since_ms >= FAILURES_WINDOW_MS) {
		failing->since_ms = now_ms;
		failing->count = 0;
		failing->is_logged = false;
	}
	CHECK(failures->count <= FAILURES_ADDRESSES_MAX && failing->key == key);
	CHECK(now_ms >= failing->last_ms);
	failing->last_ms = now_ms;
	list_move(&failures->entries, &failing->link);
	return failing;
}

unsigned int failures_note(struct failures *failures, const struct peer *peer)
{
	uint64_t now_ms = clock_now_ms();
	char client[PEER_TEXT_BYTES];
	struct failing *failing;

	if (!is_counted(failures, peer))
		return 0;
	failing = get_entry(failures, peer_key(peer, failures->seed), now_ms);
	tally_add(&failures->shared, failing->key, 1);
	if (++failing->count <= failures->max)
		return 0;
	if (!failing->is_logged) {
		peer_format(peer, client);
		LOG_BY(CLIENT_SLOWED, failing->key, LOG_STR("client", client));
		failing->is_logged = true;
	}
	return (unsigned int)((failing->since_ms + FAILURES_WINDOW_MS - now_ms + 999) / 1000);
}

static struct failing *authorization_find(const struct failures *failures, const struct peer *peer)
{
	if (failures->count == 0 || !is_counted(failures, peer))
		return NULL;
	return map_find(&failures->by_key, peer_key(peer, failures->seed));
}

bool failures_is_slowed(const struct failures *failures, const struct peer *peer)
{
	const struct failing *failing = authorization_find(failures, peer);

	return failing != NULL && failing->count >= failures->max &&
	       clock_now_ms() - failing->since_ms < FAILURES_WINDOW_MS;
}

void failures_forget(struct failures *failures, const struct peer *peer)
{
	struct failing *failing = authorization_find(failures, peer);

	if (failing == NULL)
		return;
	tally_reset(&failures->shared, failing->key);
	authorization_remove_entry(failures, failing);
}

/* Of another node; who it is is known when it fails here. */
static void failures_on_told(struct tally *tally, uint64_t key, uint64_t amount)
{
	struct failures *failures = container_of(tally, struct failures, shared);
	struct failing *failing = map_find(&failures->by_key, key);

	if (amount > 0 && failures->max > 0)
		get_entry(failures, key, clock_now_ms())->count +=
			amount < failures->max ? amount : failures->max;
	else if (amount == 0 && failing != NULL)
		authorization_remove_entry(failures, failing);
}

void failures_init(struct failures *failures, uint64_t max)
{
	*failures = (struct failures){ .max = max };
	list_init(&failures->entries);
	tally_init(&failures->shared, failures_on_told);
	random_bytes(&failures->seed, sizeof(failures->seed));
}

void failures_fini(struct failures *failures)
{
	while (failures->count > 0)
		authorization_remove_entry(failures, longest_ago(failures));
	CHECK(failures->by_key.count == 0 && list_is_empty(&failures->entries));
	map_fini(&failures->by_key);
	tally_fini(&failures->shared);
}
