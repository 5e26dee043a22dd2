/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts what comes into lines, each into a buffer of fixed size. */
#include "keeper/log_relay.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define PIPE_BYTES (1 << 20)
#define READ_BYTES 16384
#define READS_PER_TURN 4
#define SECOND_MS 1000

int log_relay_open(struct log_relay *relay, const char *process, struct error *err)
{
	int fds[2];

	*relay = (struct log_relay){ .process = process, .in = -1, .out = -1 };
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as much as it may: best effort */
	relay->in = fds[0];
	relay->out = fds[1];
	return 0;
}

void log_relay_restore(struct log_relay *relay)
{
	fcntl(relay->out, F_SETFL, O_NONBLOCK);
}

void log_relay_close(struct log_relay *relay)
{
	if (relay->in >= 0) {
		close(relay->in);
		close(relay->out);
	}
	relay->in = relay->out = -1;
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
	ssize_t n = read(relay->in, bytes, sizeof(bytes));
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
	while (i++ <= PIPE_BYTES / READ_BYTES && log_relay_pause_ms(relay) == 0 && read_some(relay))
		;
	write_out(relay);
	relay->is_skipping = false;
	if (log_relay_pause_ms(relay) == 0 || read(relay->in, rest, sizeof(rest)) <= 0)
		return;
	while (i++ <= PIPE_BYTES / READ_BYTES && read(relay->in, rest, sizeof(rest)) > 0)
		;
	write_out_quoted(relay, SLICE_LIT("... there was more, which was discarded"));
}
