/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper refuses a text in which claims are missing: it checks for itself. */
#include "upstream/claims.h"

#include <string.h>

#include "process/server.h"
#include "obs/log.h"
#include "session/principal.h"

int claims_append(struct buf *out, const struct server_conf *conf,
		  const struct principal *principal)
{
	for (size_t i = 0; i < conf->claims.count; i++) {
		const char *value = principal_claim(principal, conf->claims.items[i]);

		if (value == NULL) {
			LOG_BY(CLAIM_MISSING, principal->by_key.key, LOG_STR("server", conf->name),
			       LOG_SLICE("claim", conf->claims.items[i]));
			return -1;
		}
		buf_append_slice(out, conf->claims.items[i]);
		buf_append_char(out, '\0');
		buf_append(out, value, strlen(value) + 1);
	}
	return 0;
}
