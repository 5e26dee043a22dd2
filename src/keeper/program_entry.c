/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration comes as the text that config_read_checked takes, in a file that nobody can change. */
#include "keeper/program_entry.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obs/log.h"

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

static struct config *program_entry_read_config(const char *program, int log_fd, int config_fd)
{
	struct config *config = NULL;
	struct stat status;
	struct error err;
	void *text = MAP_FAILED;

	if (fstat(config_fd, &status) == 0 && status.st_size > 0)
		text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, config_fd, 0);
	if (text == MAP_FAILED) {
		dprintf(log_fd, "%s: can only be started by mcpgated\n", program);
		_exit(1);
	}
	config = config_read_checked(slice_of(text, (size_t)status.st_size), &err);
	munmap(text, (size_t)status.st_size);
	close(config_fd);
	if (config == NULL) {
		dprintf(log_fd, "%s: the configuration from the keeper: %s\n", program, err.text);
		_exit(1);
	}
	return config;
}

void program_entry_begin(struct program_entry *entry_r, const char *program, const char *comm,
			 const char *process, int log_fd, int config_fd)
{
	entry_r->keeper = getppid();
	die_with_keeper(entry_r->keeper);
	prctl(PR_SET_NAME, comm);
	log_set_process(process);
	ignore_signals();
	entry_r->config = program_entry_read_config(program, log_fd, config_fd);
	log_set(log_fd, entry_r->config->log_level, entry_r->config->log_format);
	log_shows_payloads = entry_r->config->log_payloads;
}

void program_entry_confine(const struct program_entry *entry, const struct confinement *what)
{
	confine_apply(what);
	die_with_keeper(entry->keeper); /* a change of the user has cleared it */
}
