/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients read this field with regular expressions: one field, the parameters always in one order, all
 * values quoted, nothing in them that would need an escape. AUTH-CH-05.
 */
#include "endpoint/challenge.h"

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "obs/counters.h"
#include "obs/log.h"

static void append_parameter(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ", %s=\"%s\"", name, value);
}

static void append_scopes(struct buf *out, const struct guard *guard, const struct refusal *refusal)
{
	if (scope_set_is_empty(&refusal->scopes))
		return;
	buf_append_str(out, ", scope=\"");
	scope_table_append(guard->conf.scopes, &refusal->scopes, out);
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

static void append_challenge(struct buf *out, const struct guard *guard,
			     const struct guard_place *place, const struct refusal *refusal)
{
	if (guard->conf.mode == GUARD_OAUTH)
		buf_printf(out, "WWW-Authenticate: Bearer resource_metadata=\"%.*s\"",
			   SLICE_ARG(place->metadata));
	else
		buf_append_str(out, "WWW-Authenticate: Bearer realm=\"mcpgated\"");
	append_scopes(out, guard, refusal);
	if (refusal->error != NULL) {
		append_parameter(out, "error", refusal->error);
		append_parameter(out, "error_description", refusal->description);
	}
	if (guard->conf.dpop != GUARD_DPOP_OFF)
		append_proofs(out);
	buf_append_str(out, "\r\n");
}

void challenge_send(const struct guard *guard, const struct guard_place *place,
		    const struct answer *answer, const struct refusal *refusal)
{
	const char *error = refusal->error != NULL ? refusal->error : "unauthorized";
	struct buf fields = { 0 };
	struct buf body = { 0 };

	counter_add(COUNTER_REQUESTS_UNAUTHORIZED);
	LOG(REQUEST_REFUSED, LOG_INT("status", refusal->status), LOG_SLICE("server", place->server),
	    LOG_STR("reason", refusal->description));
	buf_append_str(&fields, "Cache-Control: no-store\r\n");
	if (refusal->status == 503) /* the token may well be good: nothing to throw it away for */
		buf_printf(&fields, "Retry-After: %d\r\n", VERIFIER_RETRY_AFTER_S);
	else if (refusal->status == 429)
		buf_printf(&fields, "Retry-After: %u\r\n", refusal->retry_after_s);
	else
		append_challenge(&fields, guard, place, refusal);
	buf_printf(&body, "{\"error\":\"%s\",\"error_description\":\"%s\"}", error,
		   refusal->description);
	answer_document(answer, refusal->status, buf_slice(&fields), buf_slice(&body));
	buf_fini(&fields);
	buf_fini(&body);
}

bool challenge_permits(const struct guard *guard, const struct guard_place *place,
		       const struct access *access, const struct scope_set *needed,
		       const struct answer *answer)
{
	struct refusal refusal;

	if (guard_permits(guard, place, access, needed, &refusal))
		return true;
	challenge_send(guard, place, answer, &refusal);
	return false;
}
