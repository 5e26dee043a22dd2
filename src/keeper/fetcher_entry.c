/* SPDX-License-Identifier: Apache-2.0 */
/* What has to read files comes first: afterwards only what resolves names can be opened. SEC-10, SEC-61. */
#include "keeper/fetcher_entry.h"

#include <unistd.h>

#include "auth/fetch_service.h"
#include "keeper/program_entry.h"
#include "obs/log.h"

struct config *fetcher_entry(void)
{
	struct program_entry entry;
	struct error err;

	program_entry_begin(&entry, "mcpgated-fetch", "mcpgated-fetch", "fetch", FETCHER_LOG,
			    FETCHER_CONFIG);
	if (fetch_service_prepare(&err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	program_entry_confine(&entry, true);
	return entry.config;
}
