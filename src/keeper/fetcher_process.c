/* SPDX-License-Identifier: Apache-2.0 */
/* As gateway_process.c, but one process is one connection: it ends when the gateway closes its end. */
#include "keeper/fetcher_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/ipc.h"
#include "keeper/memory_file.h"
#include "obs/log.h"

#define RESTART_MIN_MS 100 /* after the first failure; doubles */
#define RESTART_MAX_MS 30000
#define RESTART_STEPS_MAX 16
#define GOOD_MS 60000 /* one that ran for so long has not failed at its start */

static int make_config(const struct config *config, struct error *err)
{
	return memory_file_printed("fetcher", config_print_for_fetcher, config, err);
}

int fetcher_process_init(struct fetcher_process *process, const struct config *config,
			 const struct programs *programs, struct error *err)
{
	*process = (struct fetcher_process){
		.programs = programs,
		.config = -1,
		.gateway_fd = -1,
		.gateway_end = -1,
		.log_relay = { .pipe = { -1, -1 } },
	};
	if (!config_is_fetching(config))
		return 0;
	process->config = make_config(config, err);
	return process->config < 0 ? -1 : log_relay_open(&process->log_relay, "fetch", err);
}

static void drop_gateway_end(struct fetcher_process *process)
{
	if (process->gateway_end >= 0)
		close(process->gateway_end);
	process->gateway_end = -1;
}

void fetcher_process_fini(struct fetcher_process *process)
{
	drop_gateway_end(process);
	if (process->log_relay.pipe.in >= 0) {
		log_relay_flush(&process->log_relay);
		records_pipe_close(&process->log_relay.pipe);
	}
	if (process->config >= 0)
		close(process->config);
	process->config = -1;
}

int fetcher_process_renew(struct fetcher_process *process, const struct config *config,
			  struct error *err)
{
	bool is_needed = config_is_fetching(config);
	int fd = is_needed ? make_config(config, err) : -1;

	CHECK(process->gateway_fd < 0);
	/* If there is none, nobody is asked: what is known so far are the addresses of other issuers. */
	if (process->config >= 0)
		close(process->config);
	process->config = -1;
	if (is_needed && fd < 0)
		return -1;
	if (is_needed && process->log_relay.pipe.in < 0 &&
	    log_relay_open(&process->log_relay, "fetch", err) < 0) {
		close(fd);
		return -1;
	}
	process->config = fd;
	return 0;
}

static pid_t start_program(const struct fetcher_process *process, int own_end, struct error *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int fds[FETCHER_DESCRIPTORS] = {
		[STDIN_FILENO] = null,
		[STDOUT_FILENO] = null,
		[FETCHER_LOG] = process->log_relay.pipe.out,
		[FETCHER_GATEWAY] = own_end,
		[FETCHER_CONFIG] = process->config,
	};
	pid_t pid = programs_start(process->programs, PROGRAM_FETCHER, NULL, fds,
				   FETCHER_DESCRIPTORS, err);

	if (null >= 0)
		close(null);
	return pid;
}

static int start(struct fetcher_process *process, struct error *err)
{
	int fds[2];
	pid_t pid;

	CHECK(process->pid == 0 && process->gateway_end < 0);
	if (ipc_pair(fds, err) < 0)
		return -1;
	records_pipe_restore(&process->log_relay.pipe);
	pid = start_program(process, fds[1], err);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -1;
	}
	process->pid = pid;
	process->gateway_end = fds[0];
	process->started_ms = clock_now_ms();
	LOG(FETCHER_START, LOG_INT("pid", pid));
	return 0;
}

static void fail(struct fetcher_process *process)
{
	unsigned int step =
		process->failures < RESTART_STEPS_MAX ? process->failures : RESTART_STEPS_MAX;
	uint64_t wait_ms = (uint64_t)RESTART_MIN_MS << step;

	process->failures++;
	process->restart_at_ms =
		clock_now_ms() + (wait_ms < RESTART_MAX_MS ? wait_ms : RESTART_MAX_MS);
}

uint64_t fetcher_process_do_due(struct fetcher_process *process)
{
	struct error err = { ERROR_NONE, "" };

	if (process->config < 0 || process->pid > 0 || process->gateway_fd < 0)
		return UINT64_MAX;
	if (clock_now_ms() >= process->restart_at_ms) {
		if (start(process, &err) == 0)
			return UINT64_MAX;
		LOG(FETCHER_FAILED, LOG_STR("error", err.text));
		fail(process);
	}
	return process->restart_at_ms;
}

void fetcher_process_set_gateway(struct fetcher_process *process, int gateway_fd)
{
	process->gateway_fd = gateway_fd;
	drop_gateway_end(process);
	process->failures = 0;
	process->restart_at_ms = 0;
	process->is_stopped = process->pid > 0;
	if (process->is_stopped)
		kill(process->pid, SIGKILL);
}

void fetcher_process_on_exit(struct fetcher_process *process, int status)
{
	CHECK(process->pid > 0);
	log_relay_flush(&process->log_relay);
	drop_gateway_end(process);
	if (!process->is_stopped && status != 0) /* 0: the gateway has closed its end */
		LOG(FETCHER_EXIT, LOG_INT("pid", process->pid),
		    WIFSIGNALED(status) ? (struct log_field)LOG_INT("signal", WTERMSIG(status)) :
					  (struct log_field)LOG_INT("exit", WEXITSTATUS(status)));
	if (clock_now_ms() - process->started_ms >= GOOD_MS)
		process->failures = 0;
	process->pid = 0;
	if (!process->is_stopped)
		fail(process);
	process->is_stopped = false;
}

void fetcher_process_tell(struct fetcher_process *process)
{
	const struct ipc_message message = { .type = IPC_FETCHER,
					     .fds = { process->gateway_end },
					     .fd_count = 1 };
	struct error err = { ERROR_NONE, "" };

	if (process->gateway_end < 0 || process->gateway_fd < 0)
		return;
	if (ipc_send(process->gateway_fd, &message, &err) == 0)
		drop_gateway_end(process);
}

bool fetcher_process_has_untold(const struct fetcher_process *process)
{
	return process->gateway_end >= 0 && process->gateway_fd >= 0;
}
