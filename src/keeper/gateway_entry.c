/* SPDX-License-Identifier: Apache-2.0 */
/* What has to read files comes first: afterwards nothing can be opened. SEC-60, SEC-61. */
#include "keeper/gateway_entry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/verifier.h"
#include "base/mem.h"
#include "io/tls.h"
#include "keeper/confine.h"
#include "keeper/program_entry.h"
#include "keeper/sandbox.h"
#include "obs/log.h"

/* An address may have none: what else the descriptor is, a tool's that watches the program, is left alone. */
static bool is_listener(int fd)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
	       fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static int *find_listeners(const struct config *config)
{
	size_t count = config->listen_count + LISTENERS_MORE;
	int *listeners = mem_alloc(count * sizeof(*listeners));

	for (size_t i = 0; i < count; i++) {
		int fd = GATEWAY_LISTENERS + (int)i;

		listeners[i] = is_listener(fd) ? fd : -1;
	}
	return listeners;
}

static void read_seal_key(struct gateway_entry *entry)
{
	ssize_t n = pread(GATEWAY_SEAL, entry->seal_key, sizeof(entry->seal_key), 0);

	close(GATEWAY_SEAL);
	if (n != sizeof(entry->seal_key)) {
		dprintf(GATEWAY_LOG, "mcpgated-gateway: the keeper has given no key\n");
		_exit(1);
	}
}

uint32_t *gateway_servers_read(int fd, size_t count)
{
	size_t size = count * sizeof(uint32_t);
	uint32_t *numbers = mem_alloc(size + 1);
	bool is_good = pread(fd, numbers, size, 0) == (ssize_t)size;

	close(fd);
	for (size_t i = 0; is_good && i < count; i++)
		is_good = numbers[i] < SERVERS_MAX;
	if (!is_good) {
		free(numbers);
		return NULL;
	}
	return numbers;
}

static void read_servers(struct gateway_entry *entry)
{
	entry->numbers = gateway_servers_read(GATEWAY_SERVERS, entry->config->server_count);
	if (entry->numbers == NULL) {
		dprintf(GATEWAY_LOG, "mcpgated-gateway: the keeper has given no servers\n");
		_exit(1);
	}
}

static size_t measure_audit(void)
{
	int bytes = fcntl(GATEWAY_AUDIT, F_GETPIPE_SZ);

	return bytes > 0 ? (size_t)bytes : 0;
}

void gateway_entry(struct gateway_entry *entry_r)
{
	struct program_entry entry;
	struct error err;

	program_entry_begin(&entry, "mcpgated-gateway", "mcpgated-gw", "gateway", GATEWAY_LOG,
			    GATEWAY_CONFIG);
	entry_r->config = entry.config;
	entry_r->listeners = find_listeners(entry.config);
	read_seal_key(entry_r);
	read_servers(entry_r);
	entry_r->audit_bytes = measure_audit();
	tls_init(); /* a reload may bring what needs it */
	/* Hashes of tokens and reports of the operator need the same libraries as issuers do. */
	if (verifier_prepare(&err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	process_view_open(&entry_r->views.gateway, getpid());
	process_view_open(&entry_r->views.keeper, entry.keeper);
	/* Asks the kernel what it may not be asked afterwards. */
	entry_r->landlock = landlock_version();
	sandbox_describe_all(entry_r->config, entry_r->landlock);
	program_entry_confine(&entry, &(struct confinement){ .fetches = false });
}
