/* SPDX-License-Identifier: Apache-2.0 */
/* What one server wants of a token that is good for others: see authorization.h. */
#include "auth/grant.h"
#include "endpoint/authorization.h"

static bool is_among(const char *text, const struct slice *slices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text != NULL && slice_is_equal(slice_str(text), slices[i]))
			return true;
	return false;
}

/* What was introspected has no signature that we saw: its issuer answers for it. */
static bool is_signed_well(const struct protected_resource *place, const struct grant *grant)
{
	return place->algorithm_count == 0 || grant->algorithm == NULL ||
	       is_among(grant->algorithm, place->algorithms, place->algorithm_count);
}

int authorization_judge(const struct protected_resource *place, const struct grant *grant,
			struct verdict *verdict_r)
{
	CHECK(grant != NULL);
	if (!is_signed_well(place, grant))
		return verdict_set(verdict_r, VERDICT_BAD_ALG,
				   "`%s` is none of this server's algorithms", grant->algorithm);
	if (place->client_count > 0 &&
	    !is_among(grant->client_id, place->clients, place->client_count))
		return verdict_set(verdict_r, VERDICT_POLICY,
				   "the client `%.60s` is none of this server's clients",
				   grant->client_id != NULL ? grant->client_id : "");
	return 0;
}
