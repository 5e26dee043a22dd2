/* SPDX-License-Identifier: Apache-2.0 */
/* What has to read files comes first: afterwards nothing can be opened. SEC-60, SEC-61. */
#include "keeper/gateway_entry.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/verifier.h"
#include "base/mem.h"
#include "io/tls.h"
#include "keeper/confine.h"
#include "keeper/sandbox.h"

/* The kernel ends this process with the keeper. */
static void die_with_keeper(pid_t keeper)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
}

/* The keeper alone says when to stop. */
static void ignore_signals(void)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE };

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

static struct config *read_config(void)
{
	struct config *config = NULL;
	struct stat status;
	struct error err;
	void *text = MAP_FAILED;

	if (fstat(GATEWAY_CONFIG, &status) == 0 && status.st_size > 0)
		text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, GATEWAY_CONFIG, 0);
	if (text == MAP_FAILED) {
		dprintf(GATEWAY_LOG, "mcpgated-gateway: to be started by mcpgated alone\n");
		_exit(1);
	}
	config = config_read_checked(slice_of(text, (size_t)status.st_size), &err);
	munmap(text, (size_t)status.st_size);
	close(GATEWAY_CONFIG);
	if (config == NULL) {
		dprintf(GATEWAY_LOG, "mcpgated-gateway: what the keeper has written: %s\n",
			err.text);
		_exit(1);
	}
	return config;
}

static int *find_listeners(const struct config *config)
{
	size_t count = config->listen_count + LISTENERS_MORE;
	int *listeners = mem_alloc(count * sizeof(*listeners));

	for (size_t i = 0; i < count; i++) {
		int fd = GATEWAY_LISTENERS + (int)i;

		listeners[i] = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
	}
	return listeners;
}

static bool has_tls(const struct config *config)
{
	for (size_t i = 0; i < config->listen_count; i++)
		if (config->listen[i].tls_count > 0)
			return true;
	return false;
}

void gateway_entry(struct gateway_entry *entry_r)
{
	pid_t keeper = getppid();
	bool has_issuers;
	struct error err;

	die_with_keeper(keeper);
	prctl(PR_SET_NAME, "mcpgated-gw");
	log_set_process("gateway");
	ignore_signals();
	entry_r->config = read_config();
	log_set(GATEWAY_LOG, entry_r->config->log_level, entry_r->config->log_format);
	entry_r->listeners = find_listeners(entry_r->config);
	if (has_tls(entry_r->config))
		tls_init();
	has_issuers = entry_r->config->frontend.authorization.issuers.count > 0;
	if (has_issuers && verifier_prepare(&err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		_exit(1);
	}
	sandbox_describe_all(entry_r->config); /* asks the kernel what it may not ask afterwards */
	confine_apply(has_issuers);
	die_with_keeper(keeper); /* a change of the user has cleared it */
}
