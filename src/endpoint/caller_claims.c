/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/caller_claims.h"

#include <jansson.h>
#include <stdlib.h>

#include "auth/grant.h"
#include "endpoint/authorization.h"
#include "policy/roles.h"

/* All that are in the token, whether they are of use here or not. */
static void append_scopes(const struct authorization_conf *conf, const struct access *access,
			  struct buf *out)
{
	const struct static_token *token =
		access->grant != NULL ?
			NULL :
			static_token_find_marked(&conf->tokens, access->principal->identity.subject,
						 access->rights.token);

	for (size_t i = 0; token != NULL && i < token->scopes.count; i++)
		buf_printf(out, "%s%s", i > 0 ? " " : "", token->scopes.items[i].p);
	for (size_t i = 0; access->grant != NULL && i < access->grant->scope_count; i++)
		buf_printf(out, "%s%s", i > 0 ? " " : "", access->grant->scopes[i]);
}

/* Those of the configuration; NULL: it has none. */
static json_t *list_roles(const struct roles *roles, const struct rights *rights)
{
	json_t *list = roles->named > 0 ? json_array() : NULL;

	for (size_t i = 0; list != NULL && i < roles->count && i < ROLES_MAX; i++) {
		const struct role *role = &roles->items[i];

		if (role_is_named(role) && role_set_has(&rights->roles, i))
			json_array_append_new(list, json_stringn(role->name.p, role->name.n));
	}
	return list;
}

/*
 * Appends the claims as a JSON object: sub and, since two issuers may use one name, sub_id (RFC 9493), client_id, scope,
 * roles. Nothing, of whom nothing can be said: nobody in particular, whom a token without sub stands for, or whom the
 * operator only imagines.
 */
static void caller_claims_append(const struct authorization_conf *conf, const struct access *access,
				 struct buf *out)
{
	const struct identity *identity = &access->principal->identity;
	bool is_static = slice_is_equal(identity->issuer, SLICE_LIT(PRINCIPAL_STATIC_ISSUER));
	/* The tokens of the configuration are our own, and each is a client by itself. */
	struct slice issuer = is_static ? conf->public_url : identity->issuer;
	struct slice client = is_static ? identity->subject : identity->client;
	at_end(buf_fini) struct buf scopes = { 0 };
	json_auto_t *claims = NULL;
	at_end(mem_free) char *text = NULL;

	if (identity->subject.n == 0 ||
	    slice_is_equal(identity->issuer, SLICE_LIT(PRINCIPAL_OPERATOR_ISSUER)))
		return;
	append_scopes(conf, access, &scopes);
	claims = json_pack("{s:s%, s:{s:s, s:s%, s:s%}, s:o*}", "sub", identity->subject.p,
			   identity->subject.n, "sub_id", "format", "iss_sub", "iss", issuer.p,
			   issuer.n, "sub", identity->subject.p, identity->subject.n, "roles",
			   list_roles(conf->roles, &access->rights));
	if (claims == NULL)
		return; /* a name that is no UTF-8 */
	if (client.n > 0)
		json_object_set_new(claims, "client_id", json_stringn(client.p, client.n));
	if (scopes.len > 0)
		json_object_set_new(claims, "scope", json_stringn(scopes.data, scopes.len));
	text = json_dumps(claims, JSON_COMPACT | JSON_SORT_KEYS);
	CHECK(text != NULL);
	buf_append_str(out, text);
}

void caller_claims_keep(const struct authorization_conf *conf, const struct access *access,
			struct slice server)
{
	at_end(buf_fini) struct buf text = { 0 };

	if (principal_is_anonymous(access->principal))
		return;
	caller_claims_append(conf, access, &text);
	principal_keep_token(access->principal, server, buf_slice(&text));
}
