/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/next_listeners.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/address.h"
#include "config/difference.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
#include "keeper/listeners.h"
#include "obs/log.h"

/* The port of a TCP address; 0: it has none. */
static in_port_t port_of(const char *text)
{
	struct address address;
	struct sockaddr_in in; /* the port is at the same place in both families */
	struct error err;

	if (address_parse(text, &address, &err) < 0 || address.kind != ADDRESS_TCP)
		return 0;
	memcpy(&in, &address.socket, sizeof(in));
	return in.sin_port;
}

/* 127.0.0.1:80 and 0.0.0.0:80 cannot be open at the same time, whoever has them. */
static void blame_own(const struct config *now, const struct config *config, size_t at,
		      struct error *err)
{
	const char *address = config->listen[at].address;
	struct error why = *err;
	in_port_t port = port_of(address);

	if (strstr(err->text, strerror(EADDRINUSE)) == NULL || port == 0)
		return;
	for (size_t i = 0; i < now->listen_count; i++)
		if (port_of(now->listen[i].address) == port) {
			error_set(
				err, why.kind,
				"cannot listen on %.80s while this daemon listens on %.80s: needs "
				"a restart",
				address, now->listen[i].address);
			listeners_tell_place(config, at, err);
			return;
		}
}

int next_listeners_open(struct next_listeners *next_r, const struct config *now,
			const struct config *config, struct error *err)
{
	size_t count = config->listen_count;

	CHECK(count > 0);
	*next_r = (struct next_listeners){ .config = config };
	next_r->kept = mem_alloc(count * sizeof(*next_r->kept));
	next_r->fds = mem_alloc(count * sizeof(*next_r->fds));
	config_match_listeners(now, config, next_r->kept);
	memset(next_r->fds, 0xff, count * sizeof(*next_r->fds)); /* -1 */
	for (size_t i = 0; i < count; i++) {
		if (next_r->kept[i] >= 0)
			continue;
		next_r->fds[i] = listeners_open_one(config, i, err);
		if (next_r->fds[i] >= 0)
			continue;
		blame_own(now, config, i, err);
		next_listeners_forget(next_r);
		return -1;
	}
	return 0;
}

static void free_all(struct next_listeners *next)
{
	free(next->kept);
	free(next->fds);
	*next = (struct next_listeners){ .config = NULL };
}

void next_listeners_forget(struct next_listeners *next)
{
	for (size_t i = 0; next->config != NULL && i < next->config->listen_count; i++)
		if (next->fds[i] >= 0)
			listeners_give_up(next->config->listen[i].address, next->fds[i]);
	free_all(next);
}

int next_listeners_tell(struct next_listeners *next, int gateway_fd)
{
	while (next->config != NULL && next->sent < next->config->listen_count) {
		int fd = next->fds[next->sent];
		const struct ipc_message message = {
			.type = IPC_LISTENER,
			.listener = { (uint32_t)next->sent, next->kept[next->sent] },
			.fds = { fd },
			.fd_count = fd >= 0,
		};
		struct error err = { ERROR_NONE, "" };

		if (ipc_send(gateway_fd, &message, &err) < 0)
			return -1;
		next->sent++;
	}
	return 0;
}

void next_listeners_use(struct next_listeners *next, const struct config *now, int **listeners)
{
	size_t count = next->config->listen_count;
	int *fds = mem_alloc((count + LISTENERS_MORE) * sizeof(*fds));
	int *before = *listeners;

	for (size_t i = 0; i < count; i++) {
		int32_t kept = next->kept[i];

		CHECK(kept < (int32_t)now->listen_count);
		fds[i] = kept >= 0 ? before[kept] : next->fds[i];
		if (kept >= 0)
			before[kept] = -1;
	}
	memcpy(fds + count, before + now->listen_count, LISTENERS_MORE * sizeof(*fds));
	for (size_t i = 0; i < now->listen_count; i++) {
		if (before[i] < 0)
			continue;
		LOG(LISTEN_END, LOG_STR("address", now->listen[i].address));
		listeners_give_up(now->listen[i].address, before[i]);
	}
	free(before);
	*listeners = fds;
	free_all(next);
}
