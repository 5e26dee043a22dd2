/* SPDX-License-Identifier: Apache-2.0 */
/* From the texts of the configuration to sockets, once. Wildcard addresses are shown as they are. */
#include "keeper/listeners.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/slice.h"
#include "config/address.h"
#include "io/address.h"
#include "obs/log.h"

/* How many of the listeners before this one have the same text: systemd may pass several. */
static size_t count_same_before(const struct config *config, size_t at)
{
	size_t count = 0;

	for (size_t i = 0; i < at; i++)
		count += strcmp(config->listen[i].address, config->listen[at].address) == 0;
	return count;
}

static int listener_open(const struct config *config, size_t at, struct error *err)
{
	struct address address;

	if (address_parse(config->listen[at].address, &address, err) < 0)
		return -1;
	if (address.kind == ADDRESS_SYSTEMD)
		return address_take_systemd(address.name, count_same_before(config, at), err);
	return address_listen((const struct sockaddr *)&address.socket, address.socket_size, err);
}

int *listeners_open(const struct config *config, struct error *err)
{
	int *listeners = mem_alloc((config->listen_count + 1) * sizeof(*listeners));

	for (size_t i = 0; i < config->listen_count; i++) {
		struct error why = { ERROR_NONE, "" };
		char text[ADDRESS_TEXT_BYTES];

		listeners[i] = listener_open(config, i, &why);
		if (listeners[i] < 0) {
			LOG(LISTEN_FAILED, LOG_STR("address", config->listen[i].address),
			    LOG_STR("error", why.text));
			error_set(err, why.kind, "cannot listen on %.80s: %.150s",
				  config->listen[i].address, why.text);
			free(listeners);
			return NULL;
		}
		address_format(listeners[i], text);
		LOG(LISTEN, LOG_STR("address", text),
		    LOG_STR("reach", address_is_loopback(listeners[i]) ? "local" : "network"));
	}
	return listeners;
}

void listeners_stop(const struct config *config, int *listeners)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		if (listeners[i] >= 0)
			close(listeners[i]);
		listeners[i] = -1;
	}
}

void listeners_close(const struct config *config, int **listeners)
{
	listeners_stop(config, *listeners);
	for (size_t i = 0; i < config->listen_count; i++) {
		struct address address;
		struct error ignored;

		if (address_parse(config->listen[i].address, &address, &ignored) == 0 &&
		    address.kind != ADDRESS_SYSTEMD)
			address_remove_stale((const struct sockaddr *)&address.socket,
					     address.socket_size);
	}
	free(*listeners);
	*listeners = NULL;
}

/* A reader of stderr that sleeps must not stop the daemon. */
static void say(const char *text)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
	    write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody to tell */
}

static void announce(const struct config_server *server, const struct config_listen *listen,
		     int listener)
{
	const char *scheme = listen->tls_count > 0 ? "https" : "http";
	char text[ADDRESS_TEXT_BYTES];
	char line[1024];
	bool is_unix;

	address_format(listener, text);
	is_unix = strncmp(text, "unix:", 5) == 0;
	/* There is no common form of a URL for a unix socket; this one can be read. */
	snprintf(line, sizeof(line), "mcpgated: ready: %s at %s%s://%s%s%s\n", server->name, scheme,
		 is_unix ? "+unix" : "", is_unix ? text + 5 : text, is_unix ? ":" : "",
		 server->path);
	say(line);
}

void listeners_announce(const struct config *config, const int *listeners)
{
	for (size_t s = 0; s < config->server_count; s++) {
		for (size_t i = 0; i < config->listen_count && config->servers[s].enabled; i++)
			announce(&config->servers[s], &config->listen[i], listeners[i]);
	}
}
