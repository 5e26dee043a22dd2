/* SPDX-License-Identifier: Apache-2.0 */
#include "config/origin.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/address.h"

/* Whoever listens on all addresses is not reached by that one. */
static char *with_host(const struct config *config, const char *scheme, const char *address)
{
	static const char *const any[] = { "0.0.0.0:", "[::]:" };

	for (size_t i = 0; i < ARRAY_LEN(any); i++) {
		const char *port = address + strlen(any[i]);

		if (strncmp(address, any[i], strlen(any[i])) == 0 && config->hosts.count > 0)
			return mem_printf("%s://%.*s:%s", scheme, SLICE_ARG(config->hosts.items[0]),
					  port);
		if (strncmp(address, any[i], strlen(any[i])) == 0)
			return mem_printf("%s://127.0.0.1:%s", scheme, port);
	}
	return mem_printf("%s://%s", scheme, address);
}

static bool is_for_urls(const char *address)
{
	const char *port = strrchr(address, ':');

	return strncmp(address, "unix:", 5) != 0 && strncmp(address, "systemd:", 8) != 0 &&
	       port != NULL && strcmp(port, ":0") != 0;
}

char *origin_find(const struct config *config, const int *listeners)
{
	struct slice public_url = config->frontend.authorization.origin;

	if (public_url.n > 0)
		return mem_dup_slice(public_url);
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];
		char address[ADDRESS_TEXT_BYTES];

		if (listeners != NULL)
			address_format(listeners[i], address);
		else
			snprintf(address, sizeof(address), "%s", listen->address);
		if (is_for_urls(address))
			return with_host(config, listen->tls_count > 0 ? "https" : "http", address);
	}
	return NULL;
}

const char *origin_auth_mode(const struct config *config)
{
	static const char *const names[] = {
		[AUTHORIZATION_NONE] = "none",
		[AUTHORIZATION_ANONYMOUS] = "anonymous",
		[AUTHORIZATION_TOKEN] = "token",
		[AUTHORIZATION_OAUTH] = "oauth",
	};

	CHECK(config->frontend.authorization.mode < ARRAY_LEN(names));
	return names[config->frontend.authorization.mode];
}
