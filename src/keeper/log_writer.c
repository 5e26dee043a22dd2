/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/log_writer.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/places.h"

/* ---- where the log goes ---- */

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
	if (strcmp(config->log_target, "journal") == 0 && access(RECORDS_JOURNAL, F_OK) < 0)
		return error_set(
			err, ERROR_SYSTEM,
			"there is no systemd journal here; the log goes to standard error");
	/* What is no absolute path the rules refuse. */
	if (!log_is_file(config) || config->log_target[0] != '/')
		return 0;
	return records_file_try(config->log_target, FILE_FLAGS, err);
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

/* ---- what other processes write: it is cut into lines, each in a buffer of fixed size ---- */

#define READ_BYTES 16384
#define READS_PER_TURN 4
#define SECOND_MS 1000

int log_relay_open(struct log_relay *relay, const char *process, struct error *err)
{
	*relay = (struct log_relay){ .process = process };
	return records_pipe_open(&relay->pipe, err);
}

int log_budget_pause_ms(struct log_budget *budget)
{
	unsigned int lines_max =
		log_threshold == LOG_LEVEL_DEBUG ? LOG_RELAY_LINES_DEBUG : LOG_RELAY_LINES;
	uint64_t now = clock_now_ms();

	if (now - budget->second_began_ms >= SECOND_MS)
		*budget = (struct log_budget){ .second_began_ms = now };
	return budget->lines < lines_max ? 0 : (int)(budget->second_began_ms + SECOND_MS - now);
}

int log_relay_pause_ms(struct log_relay *relay)
{
	return log_budget_pause_ms(&relay->budget);
}

static void write_out_quoted(struct log_relay *relay, struct slice text)
{
	if (strcmp(relay->process, "gateway") == 0)
		LOG(GATEWAY_OUTPUT, LOG_SLICE("text", text));
	else
		LOG(FETCHER_OUTPUT, LOG_SLICE("text", text));
}

static void write_out(struct log_relay *relay)
{
	struct slice line = slice_of(relay->line, relay->length);

	relay->length = 0;
	relay->budget.lines++;
	if (line.n > 0 && !log_relay_line(line, relay->process))
		write_out_quoted(relay, line);
}

static void take_part(struct log_relay *relay, struct slice part, bool is_end)
{
	size_t room = sizeof(relay->line) - relay->length;
	size_t n = part.n < room ? part.n : room;

	if (!relay->is_skipping && n > 0)
		memcpy(relay->line + relay->length, part.p, n);
	if (!relay->is_skipping)
		relay->length += n;
	if (!relay->is_skipping && (is_end || n < part.n)) {
		write_out(relay);
		relay->is_skipping = true;
	}
	if (is_end)
		relay->is_skipping = false;
}

/* False: there is nothing more now. */
static bool read_some(struct log_relay *relay)
{
	char bytes[READ_BYTES];
	ssize_t n = read(relay->pipe.in, bytes, sizeof(bytes));
	struct slice rest = slice_of(bytes, n > 0 ? (size_t)n : 0);

	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		size_t length = end != NULL ? (size_t)(end - rest.p) : rest.n;

		take_part(relay, slice_of(rest.p, length), end != NULL);
		length += end != NULL;
		rest = slice_of(rest.p + length, rest.n - length);
	}
	return n > 0;
}

void log_relay_read(struct log_relay *relay)
{
	for (int i = 0; i < READS_PER_TURN && log_relay_pause_ms(relay) == 0; i++)
		if (!read_some(relay))
			return;
}

void log_relay_flush(struct log_relay *relay)
{
	char rest[READ_BYTES];
	int i = 0;

	/* Nobody writes to the pipe now: it holds so much at most. */
	while (i++ <= RECORDS_PIPE_BYTES / READ_BYTES && log_relay_pause_ms(relay) == 0 &&
	       read_some(relay))
		;
	write_out(relay);
	relay->is_skipping = false;
	if (log_relay_pause_ms(relay) == 0 || read(relay->pipe.in, rest, sizeof(rest)) <= 0)
		return;
	while (i++ <= RECORDS_PIPE_BYTES / READ_BYTES &&
	       read(relay->pipe.in, rest, sizeof(rest)) > 0)
		;
	write_out_quoted(relay, SLICE_LIT("... there was more, which was discarded"));
}
