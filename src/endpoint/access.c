/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/access.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

struct access access_copy(const struct access *access)
{
	struct access copy = *access;

	CHECK(access->principal != NULL);
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

void access_keep_claims(const struct access *access)
{
	struct principal *principal = access->principal;
	const struct slices *names = &principal->set->claim_names;

	if (principal_is_anonymous(principal))
		return;
	for (size_t i = 0; i < names->count; i++) {
		struct buf text = { 0 };

		if (access->grant != NULL)
			grant_append_claim(access->grant, names->items[i], &text);
		else if (slice_is_equal(names->items[i], SLICE_LIT("sub")))
			buf_append_slice(&text, principal->identity.subject); /* its only claim */
		principal_set_claim(principal, i, buf_slice(&text));
		buf_fini(&text);
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
