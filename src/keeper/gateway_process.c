/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork without exec: the gateway's process begins as a copy of the keeper and gives up, in this
 * order, descriptors, secrets and rights, before it runs the gateway. SEC-60, SEC-61.
 */
#include "keeper/gateway_process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "auth/verifier.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/ipc.h"
#include "io/tls.h"
#include "keeper/confine.h"
#include "keeper/descriptors.h"
#include "obs/log.h"

#define RESTART_DELAY_MS 100 /* after the second death in a row; doubles */

void gateway_process_init(struct gateway_process *process)
{
	*process = (struct gateway_process){ .fd = -1 };
}

static void die_with_keeper(pid_t keeper_pid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper_pid)
		_exit(1);
}

/* A terminal signals both processes, but the keeper decides when the gateway stops. */
static void set_signals(void)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_foreign(const struct gateway_process_conf *conf, int keeper_fd)
{
	size_t count = conf->config->listen_count + LISTENERS_MORE;
	int *keep = mem_alloc((count + 2) * sizeof(*keep));

	memcpy(keep, conf->listeners, count * sizeof(*keep));
	keep[count] = keeper_fd;
	keep[count + 1] = conf->log_fd;
	descriptors_close_except(keep, count + 2);
	free(keep);
}

/* Overwrites the texts in place, so that /proc does not show them either. */
static void forget_environment(void)
{
	for (char **p = environ; p != NULL && *p != NULL; p++)
		explicit_bzero(*p, strlen(*p));
	if (environ != NULL)
		environ[0] = NULL;
}

static bool has_tls(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		if (config->listen[i].tls_count > 0)
			return true;
	}
	return false;
}

static bool has_issuers(const struct config *config)
{
	return config->frontend.authorization.issuers.count > 0;
}

static void run(const struct gateway_process_conf *conf, int keeper_fd)
{
	pid_t keeper_pid = conf->launch->keeper_pid;
	struct error err;

	die_with_keeper(keeper_pid);
	prctl(PR_SET_NAME, "mcpgated-gw");
	log_set_process("gateway");
	set_signals();
	close_foreign(conf, keeper_fd);
	config_forget_secrets(conf->config);
	launch_forget_secrets(conf->launch);
	forget_environment();
	if (has_tls(conf->config))
		tls_init(); /* reads files, which is forbidden afterwards */
	if (has_issuers(conf->config) && verifier_prepare(&err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	confine_apply(has_issuers(conf->config));
	die_with_keeper(keeper_pid); /* a change of the user has cleared it */
	_exit(conf->main(conf->config, conf->listeners, conf->config->listen_count, keeper_fd));
}

int gateway_process_start(struct gateway_process *process, const struct gateway_process_conf *conf,
			  struct error *err)
{
	int fds[2];
	pid_t pid;

	CHECK(process->pid == 0 && process->fd < 0);
	CHECK(conf->main != NULL && conf->listeners != NULL);
	if (ipc_pair(fds, err) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run(conf, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return error_set_errno(err, "fork");
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
	process->pid = 0;
	process->deaths_ms[process->death_count++ % GATEWAY_DEATHS_MAX] = clock_now_ms();
	process->restart_at_ms = clock_now_ms();
	if (before > 0)
		process->restart_at_ms += (uint64_t)RESTART_DELAY_MS << (before - 1);
	return before < GATEWAY_DEATHS_MAX;
}
