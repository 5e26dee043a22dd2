/* SPDX-License-Identifier: Apache-2.0 */
/* A member that is not known is an error: an entry that denies less than the operator means is worse than none. */
#include "admin/deny_request.h"

#include <string.h>

#include <jansson.h>

#include "auth/document.h"

/* As in tokens that are accepted: no other text could ever match one. */
static int read_text(const json_t *value, const char *member, struct slice *text_r,
		     struct error *err)
{
	if (!json_is_string(value))
		return error_set(err, ERROR_INVALID, "'%s' must be a text", member);
	*text_r = slice_of(json_string_value(value), json_string_length(value));
	if (text_r->n == 0 || text_r->n > DENY_REQUEST_NAME_BYTES_MAX)
		return error_set(err, ERROR_INVALID, "'%s' must have 1 to %d bytes", member,
				 DENY_REQUEST_NAME_BYTES_MAX);
	for (size_t i = 0; i < text_r->n; i++)
		if ((unsigned char)text_r->p[i] < 0x20 || text_r->p[i] == 0x7F)
			return error_set(err, ERROR_INVALID, "'%s' has control characters", member);
	return 0;
}

static int read_member(const char *member, const json_t *value, struct deny_request *request,
		       struct error *err)
{
	if (strcmp(member, "issuer") == 0)
		return read_text(value, member, &request->issuer, err);
	for (enum denial_by by = 0; by < DENIAL_BY_COUNT; by++) {
		if (strcmp(member, denial_by_name(by)) != 0)
			continue;
		if (request->name.n > 0)
			return error_set(
				err, ERROR_INVALID,
				"only one of sub, client_id, jti and sid can be denied at a time");
		request->by = by;
		return read_text(value, member, &request->name, err);
	}
	if (strcmp(member, "until_ms") != 0)
		return error_set(err, ERROR_INVALID, "the member '%.40s' is not known", member);
	if (!json_is_integer(value) || json_integer_value(value) <= 0)
		return error_set(err, ERROR_INVALID,
				 "'until_ms' must be milliseconds since 1970, as a whole number");
	request->until_ms = (uint64_t)json_integer_value(value);
	return 0;
}

int deny_request_read(struct slice body, struct deny_request *request_r, struct error *err)
{
	json_t *document = document_parse(body, err);
	const char *member;
	json_t *value;

	*request_r = (struct deny_request){ .document = document };
	if (document == NULL)
		return -1;
	json_object_foreach(document, member, value)
	{
		if (read_member(member, value, request_r, err) < 0)
			goto failed;
	}
	CHECK(request_r->name.n <= DENY_REQUEST_NAME_BYTES_MAX);
	if (request_r->name.n > 0)
		return 0;
	error_set(err, ERROR_INVALID, "one of sub, client_id, jti and sid must be there");
failed:
	deny_request_fini(request_r);
	return -1;
}

void deny_request_fini(struct deny_request *request)
{
	json_decref(request->document);
	request->document = NULL;
}
