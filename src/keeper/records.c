/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "config/load.h"
#include "io/ipc.h"
#include "obs/line.h"
#include "obs/log.h"

#define SECOND_MS 1000
#define READS_PER_TURN 4

static int records_pipe_open(struct records_pipe *pipe, struct error *err)
{
	int fds[2];

	*pipe = (struct records_pipe){ -1, -1 };
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	*pipe = (struct records_pipe){ fds[0], fds[1] };
	records_pipe_restore(pipe);
	return 0;
}

void records_pipe_restore(const struct records_pipe *pipe)
{
	fcntl(pipe->out, F_SETFL, O_NONBLOCK);
	fcntl(pipe->out, F_SETPIPE_SZ, RECORDS_PIPE_BYTES); /* as much as it may: best effort */
}

void records_pipe_close(struct records_pipe *pipe)
{
	file_close(&pipe->in);
	file_close(&pipe->out);
}

/* Whether a file could be made there. */
static int try_directory(const char *path, struct error *err)
{
	at_end(mem_free) char *directory =
		mem_dup_slice(slice_of(path, (size_t)(strrchr(path, '/') - path) + 1));
	int result = 0;

	if (access(directory, F_OK) < 0 && errno == ENOENT)
		result = error_set(err, ERROR_SYSTEM, "its directory does not exist");
	else if (access(directory, W_OK | X_OK) < 0)
		result = error_set_errno(err, "cannot create a file in its directory");
	return result;
}

/*
 * Whether a start could open this absolute path with these flags (without O_CREAT). Does not create
 * a missing file, but checks its directory. -1: err says what is in the way.
 */
static int records_file_try(const char *path, int flags, struct error *err)
{
	at_end(file_close) int fd = open(path, flags);

	CHECK(path[0] == '/' && (flags & O_CREAT) == 0);
	if (fd < 0)
		return errno == ENOENT ? try_directory(path, err) :
					 error_set_errno(err, "it cannot be opened");
	return 0;
}

/* ---- the log ---- */

/* ---- where the log goes ---- */

#define LOG_FILE_FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

static bool log_is_file(const struct config *config)
{
	return config->log_target != NULL && strcmp(config->log_target, "stderr") != 0 &&
	       strcmp(config->log_target, "journal") != 0; /* systemd reads stderr */
}

int log_file_open(const struct config *config, struct error *err)
{
	int fd = STDERR_FILENO;

	if (log_is_file(config))
		fd = open(config->log_target, LOG_FILE_FLAGS | O_CREAT, 0640);
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
	return records_file_try(config->log_target, LOG_FILE_FLAGS, err);
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

#define LOG_READ_BYTES 16384

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

static void log_relay_quote(struct log_relay *relay, struct slice text)
{
	if (strcmp(relay->process, "gateway") == 0)
		LOG(GATEWAY_OUTPUT, LOG_SLICE("text", text));
	else
		LOG(HELPER_OUTPUT, LOG_STR("process", relay->process), LOG_SLICE("text", text));
}

static void log_relay_write_out(struct log_relay *relay)
{
	struct slice line = slice_of(relay->line, relay->length);

	relay->length = 0;
	relay->budget.lines++;
	if (line.n > 0 && !log_relay_line(line, relay->process))
		log_relay_quote(relay, line);
}

static void log_relay_take_part(struct log_relay *relay, struct slice part, bool is_end)
{
	size_t room = sizeof(relay->line) - relay->length;
	size_t n = part.n < room ? part.n : room;

	if (!relay->is_skipping && n > 0)
		memcpy(relay->line + relay->length, part.p, n);
	if (!relay->is_skipping)
		relay->length += n;
	if (!relay->is_skipping && (is_end || n < part.n)) {
		log_relay_write_out(relay);
		relay->is_skipping = true;
	}
	if (is_end)
		relay->is_skipping = false;
}

/* False: there is nothing more now. */
static bool log_relay_read_some(struct log_relay *relay)
{
	char bytes[LOG_READ_BYTES];
	ssize_t n = read(relay->pipe.in, bytes, sizeof(bytes));
	struct slice rest = slice_of(bytes, n > 0 ? (size_t)n : 0);

	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		size_t length = end != NULL ? (size_t)(end - rest.p) : rest.n;

		log_relay_take_part(relay, slice_of(rest.p, length), end != NULL);
		length += end != NULL;
		rest = slice_of(rest.p + length, rest.n - length);
	}
	return n > 0;
}

void log_relay_read(struct log_relay *relay)
{
	for (int i = 0; i < READS_PER_TURN && log_relay_pause_ms(relay) == 0; i++)
		if (!log_relay_read_some(relay))
			return;
}

void log_relay_flush(struct log_relay *relay)
{
	char rest[LOG_READ_BYTES];
	int i = 0;

	/* Nobody writes to the pipe now: it holds so much at most. */
	while (i++ <= RECORDS_PIPE_BYTES / LOG_READ_BYTES && log_relay_pause_ms(relay) == 0 &&
	       log_relay_read_some(relay))
		;
	log_relay_write_out(relay);
	relay->is_skipping = false;
	if (log_relay_pause_ms(relay) == 0 || read(relay->pipe.in, rest, sizeof(rest)) <= 0)
		return;
	while (i++ <= RECORDS_PIPE_BYTES / LOG_READ_BYTES &&
	       read(relay->pipe.in, rest, sizeof(rest)) > 0)
		;
	log_relay_quote(relay, SLICE_LIT("... there was more, which was discarded"));
}

/* ---- the audit ---- */

/*
 * Reads only when all that was read before is written: what waits is in the pipe, where its writer sees that it is full.
 */

#define SECOND_BYTES_MAX (40 * 1024 * 1024) /* of a gateway that was taken over; calls make less */
#define RETRY_MS 1000
#define GATHER_MS 10 /* with a pipe of RECORDS_PIPE_BYTES: not to be woken for each record */
#define NEVER UINT64_MAX
#define AUDIT_FILE_FLAGS (O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK)

/* ---- what is written to ---- */

static bool audit_is_journal(const struct audit_writer *writer)
{
	return strcmp(writer->to, "journal") == 0;
}

static bool audit_names_file(const char *to)
{
	return to[0] == '/';
}

static bool audit_is_file(const struct audit_writer *writer)
{
	return audit_names_file(writer->to);
}

/* A daemon that was killed, or a full disk, may have left half a line. */
static int audit_end_last_line(int fd)
{
	struct stat found;
	char last = '\n';

	if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) || found.st_size == 0)
		return 0;
	if (pread(fd, &last, 1, found.st_size - 1) == 1 && last != '\n')
		return write(fd, "\n", 1) == 1 ? 0 : -1;
	return 0;
}

static int audit_open_file(const char *path)
{
	int fd = open(path, AUDIT_FILE_FLAGS | O_CREAT, 0600);

	if (fd >= 0 && audit_end_last_line(fd) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int audit_open_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int audit_open_target(const char *to, const char *journal)
{
	if (audit_names_file(to))
		return audit_open_file(to);
	return audit_open_socket(strcmp(to, "journal") == 0 ? journal : to + strlen("unix:"));
}

int audit_writer_try(const char *to, struct error *err)
{
	at_end(file_close) int fd = -1;

	if (audit_names_file(to))
		return records_file_try(to, AUDIT_FILE_FLAGS, err);
	fd = audit_open_target(to, RECORDS_JOURNAL);
	if (fd < 0)
		return error_set_errno(err, "nothing is listening there now");
	return 0;
}

/* ---- whether it works ---- */

static void audit_fail(struct audit_writer *writer, int error)
{
	writer->retry_at_ms = clock_now_ms() + RETRY_MS;
	if (writer->is_failing)
		return;
	writer->is_failing = true;
	writer->error = error;
	writer->is_told = false;
	LOG(AUDIT_FAILED, LOG_STR("to", writer->to), LOG_STR("error", strerror(error)));
}

static void audit_recover(struct audit_writer *writer)
{
	if (!writer->is_failing)
		return;
	writer->is_failing = false;
	writer->is_told = false;
	LOG(AUDIT_RECOVERED, LOG_STR("to", writer->to));
}

/* A line that was begun in what was open before is written anew. */
static void audit_use(struct audit_writer *writer, int fd)
{
	file_close(&writer->fd);
	writer->fd = fd;
	writer->is_blocked = false;
	writer->retry_at_ms = 0;
	while (writer->written > 0 && writer->bytes[writer->written - 1] != '\n')
		writer->written--;
}

void audit_writer_reopen(struct audit_writer *writer)
{
	int fd;

	if (writer->to == NULL)
		return;
	fd = audit_open_target(writer->to, writer->journal);
	if (fd < 0) {
		LOG(AUDIT_REOPEN_FAILED, LOG_STR("to", writer->to),
		    LOG_STR("error", strerror(errno)));
		return;
	}
	audit_use(writer, fd);
	LOG(AUDIT_REOPENED, LOG_STR("to", writer->to));
}

int audit_writer_open_next(struct audit_writer *writer, const char *to, struct error *err)
{
	file_close(&writer->next_fd);
	if (to == NULL)
		return 0;
	writer->next_fd = audit_open_target(to, writer->journal);
	if (writer->next_fd < 0 && audit_names_file(to))
		return error_set_errno(err, "cannot open the audit file %.120s", to);
	return 0;
}

int audit_writer_open(struct audit_writer *writer, const char *to, struct error *err)
{
	memset(writer, 0, sizeof(*writer));
	writer->pipe = (struct records_pipe){ -1, -1 };
	writer->fd = writer->next_fd = -1;
	writer->is_told = true;
	writer->to = to;
	writer->journal = RECORDS_JOURNAL;
	if (audit_writer_open_next(writer, to, err) < 0)
		return -1;
	writer->fd = writer->next_fd;
	writer->next_fd = -1;
	if (to != NULL && writer->fd < 0)
		audit_fail(writer, errno);
	/* Without an audit, too: a reload may begin one, and the gateway gets no descriptors later. */
	if (records_pipe_open(&writer->pipe, err) < 0)
		return -1;
	writer->gather_ms =
		GATHER_MS * (uint64_t)fcntl(writer->pipe.out, F_GETPIPE_SZ) / RECORDS_PIPE_BYTES;
	return 0;
}

/* ---- reading ---- */

static bool audit_is_record(struct slice line)
{
	static const struct slice lead = SLICE("{\"time\":\"");

	return line.n < TEXT_LINE_BYTES && slice_has_prefix(line, lead) &&
	       line.p[line.n - 1] == '}' && line_is_seen(line);
}

/* Puts lines that came behind `whole` there, if they are records; returns how many are not. */
static size_t audit_take_lines(struct audit_writer *writer)
{
	size_t at = writer->whole, bad = 0;

	while (at < writer->length) {
		const char *begin = writer->bytes + at;
		const char *end = memchr(begin, '\n', writer->length - at);
		size_t n = end != NULL ? (size_t)(end - begin) : 0;

		if (end == NULL)
			break;
		if (!writer->is_skipping && audit_is_record(slice_of(begin, n))) {
			if (at > writer->whole)
				memmove(writer->bytes + writer->whole, begin, n + 1);
			writer->whole += n + 1;
		} else {
			bad++;
		}
		writer->is_skipping = false;
		at += n + 1;
	}
	if (at > writer->whole)
		memmove(writer->bytes + writer->whole, writer->bytes + at, writer->length - at);
	writer->length = writer->whole + writer->length - at;
	if (writer->length - writer->whole >= TEXT_LINE_BYTES) { /* no line is as long */
		writer->length = writer->whole;
		writer->is_skipping = true;
	}
	return bad;
}

/* In ms; 0: it may be read. */
static uint64_t audit_pause_ms(struct audit_writer *writer)
{
	uint64_t now = clock_now_ms();

	if (now < writer->gather_until_ms)
		return writer->gather_until_ms - now;

	if (now - writer->second_began_ms >= SECOND_MS) {
		writer->second_began_ms = now;
		writer->second_bytes = 0;
	}
	return writer->second_bytes < SECOND_BYTES_MAX ? 0 :
							 writer->second_began_ms + SECOND_MS - now;
}

/* Only when nothing waits to be written. False: there is nothing now. */
static bool audit_read_some(struct audit_writer *writer)
{
	size_t bad;
	ssize_t n;

	CHECK(writer->written == writer->whole);
	writer->length -= writer->whole;
	memmove(writer->bytes, writer->bytes + writer->whole, writer->length);
	writer->written = writer->whole = 0;
	CHECK(writer->length < AUDIT_WRITER_BYTES);
	n = read(writer->pipe.in, writer->bytes + writer->length,
		 AUDIT_WRITER_BYTES - writer->length);
	if (n <= 0)
		return false;
	if (writer->length + (size_t)n < AUDIT_WRITER_BYTES) /* all that there was */
		writer->gather_until_ms = clock_now_ms() + writer->gather_ms;
	writer->second_bytes += (size_t)n;
	writer->length += (size_t)n;
	bad = audit_take_lines(writer);
	if (bad > 0)
		LOG(AUDIT_OUTPUT, LOG_INT("lines", bad));
	return true;
}

/* ---- writing ---- */

static ssize_t audit_send_record(const struct audit_writer *writer, struct slice record)
{
	static const char fields[] = "SYSLOG_IDENTIFIER=mcpgated-audit\nPRIORITY=6\nMESSAGE=";
	char text[sizeof(fields) + TEXT_LINE_BYTES];

	if (!audit_is_journal(writer))
		return send(writer->fd, record.p, record.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	memcpy(text, fields, sizeof(fields) - 1);
	memcpy(text + sizeof(fields) - 1, record.p, record.n);
	text[sizeof(fields) - 1 + record.n] = '\n';
	return send(writer->fd, text, sizeof(fields) + record.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* To a file as much as it takes; to a socket one record. Returns how many bytes of ours that were, or -1 with errno. */
static ssize_t audit_write_some(const struct audit_writer *writer)
{
	struct slice rest =
		slice_of(writer->bytes + writer->written, writer->whole - writer->written);
	struct slice record = rest;

	if (audit_is_file(writer))
		return write(writer->fd, rest.p, rest.n);
	record = slice_cut(&rest, '\n');
	return audit_send_record(writer, record) < 0 ? -1 : (ssize_t)record.n + 1;
}

/* Whether all that was read is written. */
static bool audit_write_out(struct audit_writer *writer)
{
	while (writer->fd >= 0 && writer->written < writer->whole) {
		ssize_t n = audit_write_some(writer);

		if (n > 0) {
			writer->written += (size_t)n;
			continue;
		}
		if (n == 0)
			errno = EIO;
		if (errno == EINTR)
			continue;
		writer->is_blocked = errno == EAGAIN || errno == ENOBUFS;
		if (writer->is_blocked)
			return false;
		audit_fail(writer, errno);
		if (!audit_is_file(writer))
			file_close(
				&writer->fd); /* its reader may have gone, and another may come */
		return false;
	}
	if (writer->fd < 0)
		return false;
	writer->is_blocked = false;
	audit_recover(writer);
	return true;
}

/* A file that was removed while it was open: what is written there nobody will read. */
static void audit_leave_removed_file(struct audit_writer *writer)
{
	struct stat found;

	if (writer->fd < 0 || clock_now_ms() < writer->look_at_ms)
		return;
	writer->look_at_ms = clock_now_ms() + SECOND_MS;
	if (fstat(writer->fd, &found) < 0 || !S_ISREG(found.st_mode) || found.st_nlink > 0)
		return;
	LOG(AUDIT_REMOVED, LOG_STR("to", writer->to));
	file_close(&writer->fd);
}

/* What has failed is tried again when its time has come. */
static bool audit_may_write(struct audit_writer *writer)
{
	int fd;

	if (clock_now_ms() < writer->retry_at_ms)
		return false;
	writer->retry_at_ms = 0;
	audit_leave_removed_file(writer);
	if (writer->fd >= 0)
		return true;
	fd = audit_open_target(writer->to, writer->journal);
	if (fd < 0) {
		audit_fail(writer, errno);
		return false;
	}
	audit_use(writer, fd);
	return true;
}

uint64_t audit_writer_run(struct audit_writer *writer)
{
	uint64_t wait_ms;

	if (writer->to == NULL)
		return NEVER;
	for (int i = 0; i < READS_PER_TURN; i++) {
		if (!audit_may_write(writer) || !audit_write_out(writer))
			return writer->retry_at_ms > 0 ? writer->retry_at_ms : NEVER;
		wait_ms = audit_pause_ms(writer);
		if (wait_ms > 0)
			return clock_now_ms() + wait_ms;
		if (!audit_read_some(writer))
			return NEVER;
	}
	return clock_now_ms();
}

void audit_writer_poll_fill(const struct audit_writer *writer,
			    struct pollfd polls_r[AUDIT_WRITER_POLLS])
{
	bool is_waiting = writer->to == NULL || writer->is_failing ||
			  writer->written < writer->whole ||
			  clock_now_ms() < writer->gather_until_ms ||
			  writer->second_bytes >= SECOND_BYTES_MAX;

	polls_r[0] = (struct pollfd){ .fd = is_waiting ? -1 : writer->pipe.in, .events = POLLIN };
	polls_r[1] =
		(struct pollfd){ .fd = writer->is_blocked ? writer->fd : -1, .events = POLLOUT };
}

/* ---- gateways ---- */

void audit_writer_set_gateway(struct audit_writer *writer)
{
	records_pipe_restore(&writer->pipe);
	writer->is_told = !writer->is_failing; /* it begins in good hope */
}

/* What is in the pipe now: it holds so much at most. */
static void audit_write_all(struct audit_writer *writer)
{
	for (int i = 0; i <= RECORDS_PIPE_BYTES / TEXT_LINE_BYTES; i++)
		if (!audit_write_out(writer) || !audit_read_some(writer))
			break;
}

/* What could not be written will not be. */
static void audit_give_up(struct audit_writer *writer)
{
	size_t lost = 0;

	/* What the pipe holds now at most: a gateway may go on to write. */
	for (int i = 0; i <= RECORDS_PIPE_BYTES / TEXT_LINE_BYTES; i++) {
		for (size_t j = writer->written; j < writer->whole; j++)
			lost += writer->bytes[j] == '\n';
		writer->written = writer->whole; /* half a line stays: its other half comes */
		if (!audit_read_some(writer))
			break;
	}
	if (lost > 0)
		LOG(AUDIT_LOST, LOG_INT("records", lost));
}

void audit_writer_use_next(struct audit_writer *writer, const char *to)
{
	const char *before = writer->to;
	bool is_other = before == NULL || to == NULL ? before != to : strcmp(before, to) != 0;

	if (is_other && before != NULL)
		audit_write_all(writer);
	if (is_other && to == NULL) {
		audit_give_up(writer);
		writer->is_told = writer->is_told && !writer->is_failing;
		writer->is_failing = false;
	}
	writer->to = to;
	if (!is_other)
		return;
	audit_use(writer, writer->next_fd);
	writer->next_fd = -1;
	LOG(AUDIT_MOVED, LOG_STR("to", to != NULL ? to : "nothing"));
}

/* What a gateway that has gone has left, when there was no place for it. */
static void audit_discard(struct audit_writer *writer)
{
	char bytes[TEXT_LINE_BYTES];

	for (int i = 0; i <= RECORDS_PIPE_BYTES / TEXT_LINE_BYTES; i++)
		if (read(writer->pipe.in, bytes, sizeof(bytes)) <= 0)
			break;
	writer->length = writer->whole = writer->written = 0;
	writer->is_skipping = false;
}

void audit_writer_flush(struct audit_writer *writer)
{
	if (writer->to == NULL) {
		audit_discard(writer);
		return;
	}
	audit_write_all(writer);
	if (writer->written == writer->whole) {
		writer->length = writer->whole; /* half a line */
		writer->is_skipping = false;
	}
}

bool audit_writer_is_through(struct audit_writer *writer)
{
	int left = 0;

	audit_writer_flush(writer);
	return writer->to == NULL || (writer->written == writer->whole &&
				      ioctl(writer->pipe.in, FIONREAD, &left) == 0 && left == 0);
}

void audit_writer_tell(struct audit_writer *writer, int gateway_fd)
{
	const struct ipc_message message = { .type = IPC_AUDIT,
					     .audit = { writer->is_failing ? writer->error : 0 } };

	if (!writer->is_told && ipc_send(gateway_fd, &message, NULL) == 0)
		writer->is_told = true;
}

bool audit_writer_has_untold(const struct audit_writer *writer)
{
	return !writer->is_told;
}

void audit_writer_close(struct audit_writer *writer)
{
	if (writer->to != NULL) {
		audit_writer_flush(writer);
		audit_give_up(writer);
	}
	records_pipe_close(&writer->pipe);
	file_close(&writer->fd);
	file_close(&writer->next_fd);
	writer->to = NULL;
}
