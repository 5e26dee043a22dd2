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

char *origin_of_listener(const struct config *config, size_t i, int fd)
{
	const struct config_listen *listen = &config->listen[i];
	char address[ADDRESS_TEXT_BYTES];

	CHECK(i < config->listen_count);
	if (fd >= 0)
		address_format(fd, address);
	else
		snprintf(address, sizeof(address), "%s", listen->address);
	if (!is_for_urls(address))
		return NULL;
	return with_host(config, listen->tls_count > 0 ? "https" : "http", address);
}

char *origin_find(const struct config *config, const int *listeners)
{
	struct slice public_url = config->frontend.authorization.public_url;
	char *origin = NULL;

	if (public_url.n > 0)
		return mem_dup_slice(public_url);
	for (size_t i = 0; origin == NULL && i < config->listen_count; i++)
		origin = origin_of_listener(config, i, listeners != NULL ? listeners[i] : -1);
	return origin;
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
