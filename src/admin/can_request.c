/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/can_request.h"

#include <string.h>

#include <jansson.h>

#include "auth/document.h"
#include "auth/grant.h"

static int read_text(const json_t *value, const char *member, struct slice *text_r,
		     struct error *err)
{
	if (text_r->n > 0)
		return error_set(err, ERROR_INVALID, "'%s' is one too many", member);
	*text_r = slice_of(json_string_value(value), json_string_length(value));
	return text_r->n > 0 ? 0 :
			       error_set(err, ERROR_INVALID,
					 "'%s' must be a text, not an empty one", member);
}

static int read_member(const char *member, const json_t *value, struct can_request *request,
		       struct error *err)
{
	static const char *const kinds[] = { "tool", "prompt", "resource" };
	static const char *const names[] = { "principal", "token" };

	if (strcmp(member, "server") == 0)
		return read_text(value, member, &request->server, err);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(member, kinds[i]) != 0)
			continue;
		request->kind = (enum permission_kind)i;
		return read_text(value, member, &request->name, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(member, names[i]) != 0)
			continue;
		request->who = (enum can_who)i;
		return read_text(value, member, &request->who_name, err);
	}
	if (strcmp(member, "claims") != 0)
		return error_set(err, ERROR_INVALID, "the member '%.40s' is not known", member);
	if (!json_is_object(value))
		return error_set(err, ERROR_INVALID, "'claims' must be an object");
	request->who = CAN_CLAIMS;
	return 0;
}

int can_request_read(struct slice body, struct can_request *request_r, struct error *err)
{
	json_t *document = document_parse(body, err);
	const char *member;
	json_t *value;
	bool has_claims;

	*request_r = (struct can_request){ .document = document };
	if (document == NULL)
		return -1;
	json_object_foreach(document, member, value)
	{
		if (read_member(member, value, request_r, err) < 0)
			goto failed;
	}
	has_claims = json_object_get(document, "claims") != NULL;
	if (request_r->server.n > 0 && request_r->name.n > 0 &&
	    has_claims == (request_r->who_name.n == 0))
		return 0;
	error_set(err, ERROR_INVALID,
		  "there must be server; one of tool, prompt and resource; and one of principal, "
		  "token and claims");
failed:
	can_request_fini(request_r);
	return -1;
}

void can_request_fini(struct can_request *request)
{
	json_decref(request->document);
	request->document = NULL;
}

struct grant *can_request_grant(const struct can_request *request, const struct roles *roles,
				struct error *err)
{
	static const char *const ignored[] = { "exp", "nbf", "iat", "cnf" };
	const struct grant_rules rules = { .issuer = "", .roles = roles };
	json_t *claims = json_copy(json_object_get(request->document, "claims"));
	struct verdict verdict;
	struct grant *grant;

	CHECK(request->who == CAN_CLAIMS && claims != NULL);
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		json_object_del(claims, ignored[i]);
	if (json_object_get(claims, "sub") == NULL)
		json_object_set_new(claims, "sub", json_string("somebody"));
	grant = grant_new(claims, &rules, 0, &verdict);
	if (grant == NULL)
		error_set(err, ERROR_INVALID, "no token has such claims: %s", verdict.cause);
	json_decref(claims);
	return grant;
}
