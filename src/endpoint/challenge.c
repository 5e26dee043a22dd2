/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients read this field with regular expressions: one field, the parameters always in one order, all
 * values quoted, nothing in them that would need an escape. AUTH-CH-05.
 */
#include "endpoint/challenge.h"

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "endpoint/egress.h"
#include "jsonrpc/write.h"

static void append_parameter(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ", %s=\"%s\"", name, value);
}

static void append_scopes(struct buf *out, const struct authorization *auth,
			  const struct refusal *refusal)
{
	if (scope_set_is_empty(&refusal->scopes))
		return;
	buf_append_str(out, ", scope=\"");
	scope_table_append(auth->conf.scopes, &refusal->scopes, out);
	buf_append_char(out, '"');
}

/* RFC 9449 §7.1 */
static void append_proofs(struct buf *out)
{
	buf_append_str(out, ", DPoP algs=\"");
	for (size_t i = 0; dpop_algorithms[i] != NULL; i++)
		buf_printf(out, "%s%s", i > 0 ? " " : "", dpop_algorithms[i]);
	buf_append_char(out, '"');
}

static void append_challenge(struct buf *out, const struct authorization *auth,
			     const struct protected_resource *place, const struct refusal *refusal)
{
	if (auth->conf.mode == AUTHORIZATION_OAUTH)
		buf_printf(out, "Bearer resource_metadata=\"%.*s\"", SLICE_ARG(place->metadata));
	else
		buf_append_str(out, "Bearer realm=\"mcpgated\"");
	append_scopes(out, auth, refusal);
	if (refusal->error != NULL) {
		append_parameter(out, "error", refusal->error);
		append_parameter(out, "error_description", refusal->description);
	}
	if (auth->conf.dpop != AUTHORIZATION_DPOP_OFF)
		append_proofs(out);
}

static void append_challenge_field(struct buf *out, const struct authorization *auth,
				   const struct protected_resource *place,
				   const struct refusal *refusal)
{
	buf_append_str(out, "WWW-Authenticate: ");
	append_challenge(out, auth, place, refusal);
	buf_append_str(out, "\r\n");
}

void challenge_send(const struct authorization *auth, const struct protected_resource *place,
		    const struct answer *answer, const struct refusal *refusal)
{
	const char *error = refusal->error != NULL ? refusal->error : "unauthorized";
	struct buf fields = { 0 };
	struct buf body = { 0 };

	CHECK(refusal->form == REFUSAL_CHALLENGE);
	buf_append_str(&fields, "Cache-Control: no-store\r\n");
	if (refusal->status == 503) /* the token may well be good: nothing to throw it away for */
		buf_printf(&fields, "Retry-After: %d\r\n", VERIFIER_RETRY_AFTER_S);
	else if (refusal->status == 429)
		buf_printf(&fields, "Retry-After: %u\r\n", refusal->retry_after_s);
	else if (!refusal->is_final)
		append_challenge_field(&fields, auth, place, refusal);
	buf_printf(&body, "{\"error\":\"%s\",\"error_description\":\"%s\"}", error,
		   refusal->description);
	answer_document(answer, refusal->status, buf_slice(&fields), buf_slice(&body));
	buf_fini(&fields);
	buf_fini(&body);
}

/* For clients that look for it there alone. AUTH-SCP-11 */
void challenge_send_result(const struct authorization *auth, const struct protected_resource *place,
			   const struct answer *answer, const struct refusal *refusal)
{
	struct buf challenge = { 0 };
	struct buf result = { 0 };
	struct buf text = { 0 };
	struct slice whole;

	CHECK(refusal->id.n > 0 && !refusal->is_final);
	append_challenge(&challenge, auth, place, refusal);
	buf_append_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
	write_string(&result, slice_str(refusal->description));
	buf_append_str(&result, "}],\"isError\":true,\"_meta\":{\"mcp/www_authenticate\":[");
	write_string(&result, buf_slice(&challenge));
	buf_append_str(&result, "]}}");
	write_result(&text, refusal->id, buf_slice(&result));
	whole = buf_slice(&text);
	egress_send(answer, &whole, 1);
	buf_fini(&challenge);
	buf_fini(&result);
	buf_fini(&text);
}
