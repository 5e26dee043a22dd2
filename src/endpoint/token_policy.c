/* SPDX-License-Identifier: Apache-2.0 */
/* What one server wants of a token that is good for others: see authorization.h. */
#include "auth/grant.h"
#include "endpoint/authorization.h"

/* What was introspected has no signature that we saw: its issuer answers for it. */
static bool is_signed_well(const struct protected_resource *place, const struct grant *grant)
{
	return place->algorithms.count == 0 || grant->algorithm == NULL ||
	       slices_has(place->algorithms, slice_str(grant->algorithm));
}

int authorization_judge(const struct protected_resource *place, const struct grant *grant,
			struct verdict *verdict_r)
{
	const char *client = grant->client_id != NULL ? grant->client_id : "";

	CHECK(grant != NULL);
	if (!is_signed_well(place, grant))
		return verdict_set(verdict_r, VERDICT_BAD_ALG,
				   "`%s` is none of this server's algorithms", grant->algorithm);
	if (place->clients.count > 0 &&
	    (grant->client_id == NULL || !slices_has(place->clients, slice_str(client))))
		return verdict_set(verdict_r, VERDICT_POLICY,
				   "the client `%.60s` is none of this server's clients", client);
	return 0;
}
