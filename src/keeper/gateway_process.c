/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that executes the gateway's program, with nothing of ours but the descriptors of gateway_entry.h. What it
 * gives up beyond that it gives up itself, before it hears of the network. SEC-60, SEC-61.
 */
#include "keeper/gateway_process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
#include "keeper/memory_file.h"
#include "obs/log.h"

#define RESTART_DELAY_MS 100 /* after the second death in a row; doubles */

void gateway_process_init(struct gateway_process *process)
{
	*process = (struct gateway_process){ .fd = -1 };
}

int gateway_process_number_servers(const uint32_t *numbers, size_t count, struct error *err)
{
	return memory_file_sealed("servers",
				  slice_of((const char *)numbers, count * sizeof(*numbers)), err);
}

static pid_t start(const struct gateway_process_conf *conf, int keeper_fd, struct error *err)
{
	size_t count = GATEWAY_LISTENERS + conf->listener_count;
	int *fds = mem_alloc(count * sizeof(*fds));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid;

	fds[STDIN_FILENO] = fds[STDOUT_FILENO] = null;
	fds[GATEWAY_LOG] = conf->log;
	fds[GATEWAY_KEEPER] = keeper_fd;
	fds[GATEWAY_CONFIG] = conf->config;
	fds[GATEWAY_DENY] = conf->deny;
	fds[GATEWAY_SEAL] = conf->seal;
	fds[GATEWAY_SERVERS] = conf->servers;
	fds[GATEWAY_AUDIT] = conf->audit;
	fds[GATEWAY_PINS] = conf->pins;
	fds[GATEWAY_SESSIONS] = conf->sessions;
	memcpy(fds + GATEWAY_LISTENERS, conf->listeners, conf->listener_count * sizeof(*fds));
	pid = programs_start(conf->programs, PROGRAM_GATEWAY, NULL, fds, count, err);
	if (null >= 0)
		close(null);
	free(fds);
	return pid;
}

int gateway_process_start(struct gateway_process *process, const struct gateway_process_conf *conf,
			  struct error *err)
{
	int fds[2];
	pid_t pid;

	CHECK(process->pid == 0 && process->fd < 0);
	CHECK(conf->config >= 0 && conf->log >= 0 && conf->listeners != NULL);
	if (ipc_pair(fds, err) < 0)
		return -1;
	pid = start(conf, fds[1], err);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -1;
	}
	process->pid = pid;
	process->fd = fds[0];
	return 0;
}

static size_t count_recent_deaths(const struct gateway_process *process)
{
	size_t known = process->death_count < GATEWAY_DEATHS_MAX ? process->death_count :
								   GATEWAY_DEATHS_MAX;
	size_t count = 0;

	for (size_t i = 0; i < known; i++)
		count += clock_now_ms() - process->deaths_ms[i] < GATEWAY_DEATHS_WINDOW_MS;
	return count;
}

bool gateway_process_on_exit(struct gateway_process *process)
{
	size_t before = count_recent_deaths(process);

	CHECK(process->pid > 0 && process->fd >= 0);
	ipc_close(process->fd);
	process->fd = -1;
	process->is_closed = false;
	process->pid = 0;
	process->deaths_ms[process->death_count++ % GATEWAY_DEATHS_MAX] = clock_now_ms();
	process->restart_at_ms = clock_now_ms();
	if (before > 0)
		process->restart_at_ms += (uint64_t)RESTART_DELAY_MS << (before - 1);
	return before < GATEWAY_DEATHS_MAX;
}
