/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/log_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config/places.h"
#include "keeper/record_file.h"
#include "obs/log.h"

#define JOURNAL "/run/systemd/journal/socket"
#define FILE_FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

static bool log_is_file(const struct config *config)
{
	return config->log_target != NULL && strcmp(config->log_target, "stderr") != 0 &&
	       strcmp(config->log_target, "journal") != 0; /* systemd reads stderr */
}

int log_file_open(const struct config *config, struct error *err)
{
	int fd = STDERR_FILENO;

	if (log_is_file(config))
		fd = open(config->log_target, FILE_FLAGS | O_CREAT, 0640);
	if (fd >= 0)
		return fd;
	error_set_errno(err, "cannot open the log file %.120s", config->log_target);
	return places_tell(&config->rule_places, "log.target", err);
}

int log_file_try(const struct config *config, struct error *err)
{
	if (strcmp(config->log_target, "journal") == 0 && access(JOURNAL, F_OK) < 0)
		return error_set(
			err, ERROR_SYSTEM,
			"there is no systemd journal here; the log goes to standard error");
	/* What is no absolute path the rules refuse. */
	if (!log_is_file(config) || config->log_target[0] != '/')
		return 0;
	return record_file_try(config->log_target, FILE_FLAGS, err);
}

void log_file_reopen(const struct config *config, int *fd)
{
	struct error err = { ERROR_NONE, "" };
	int fresh;

	if (!log_is_file(config))
		return;
	fresh = log_file_open(config, &err);
	if (fresh < 0) {
		LOG(LOG_REOPEN_FAILED, LOG_STR("error", err.text));
		return;
	}
	log_file_use(config, fresh, fd);
}

void log_file_use(const struct config *config, int fresh, int *fd)
{
	log_set_fd(fresh);
	log_file_close(fd);
	*fd = fresh;
	LOG(LOG_REOPENED, LOG_STR("file", config->log_target));
}

void log_file_close(int *fd)
{
	if (*fd >= 0 && *fd != STDERR_FILENO)
		close(*fd);
	*fd = -1;
}
