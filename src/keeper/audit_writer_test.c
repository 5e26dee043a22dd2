/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way out: to files, sockets, and what does not take them. SEC-63 */
#include "keeper/records.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/ipc.h"
#include "obs/log.h"

#define RECORD(name) "{\"time\":\"2026-01-02T03:04:05.678Z\",\"v\":1,\"event\":\"" name "\"}\n"

static struct audit_writer writer;
static char directory[] = "/tmp/audit-XXXXXX";
static char path[64], moved[64], socket_to[80];
static uint64_t now_ms = 1000000;
static int log_fd;

static int begin(void **state)
{
	log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	clock_freeze(now_ms);
	unlink(path);
	unlink(moved);
	return 0;
}

static int end(void **state)
{
	audit_writer_close(&writer);
	close(log_fd);
	unlink(path);
	unlink(moved);
	return 0;
}

static void open_to(const char *to)
{
	struct error err = { ERROR_NONE, "" };

	if (audit_writer_open(&writer, to, &err) < 0)
		fail_msg("%s", err.text);
}

static void tell(const char *text)
{
	assert_int_equal(write(writer.pipe.out, text, strlen(text)), strlen(text));
}

static const char *content(const char *of)
{
	static char text[8192];
	int fd = open(of, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

static void wait_ms(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
}

/* As soon as it reads again. */
static uint64_t run(void)
{
	wait_ms(writer.gather_ms);
	return audit_writer_run(&writer);
}

/* A datagram socket with room for little. */
static int listen_at(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static const char *take(int fd)
{
	static char text[8192];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void a_file_is_appended_to(void **state)
{
	struct stat found;
	uint64_t next_ms;

	open_to(path);
	tell(RECORD("a") RECORD("b"));
	next_ms = run();
	assert_int_equal(next_ms, now_ms + writer.gather_ms);
	assert_int_equal(run(), UINT64_MAX);
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	assert_int_equal(stat(path, &found), 0);
	assert_int_equal(found.st_mode & 0777, 0600);
	audit_writer_close(&writer);
	open_to(path);
	tell(RECORD("c"));
	run();
	assert_string_equal(content(path), RECORD("a") RECORD("b") RECORD("c"));
}

/* The first at once, those that follow together. */
static void records_are_gathered(void **state)
{
	struct pollfd polls[AUDIT_WRITER_POLLS];

	open_to(path);
	assert_in_range(writer.gather_ms, 1, 50);
	tell(RECORD("a"));
	audit_writer_run(&writer);
	assert_string_equal(content(path), RECORD("a"));
	tell(RECORD("b"));
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, -1);
	assert_int_equal(audit_writer_run(&writer), now_ms + writer.gather_ms);
	tell(RECORD("c"));
	wait_ms(writer.gather_ms - 1);
	assert_int_equal(audit_writer_run(&writer), now_ms + 1);
	assert_string_equal(content(path), RECORD("a"));
	wait_ms(1);
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, writer.pipe.in);
	audit_writer_run(&writer);
	assert_string_equal(content(path), RECORD("a") RECORD("b") RECORD("c"));
}

/* A daemon that was killed leaves half a line. */
static void half_a_line_is_ended(void **state)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "{\"ti", 4), 4);
	close(fd);
	open_to(path);
	tell(RECORD("a"));
	run();
	assert_string_equal(content(path), "{\"ti\n" RECORD("a"));
}

/* Records behind one that cannot be ended would be lost with it. */
static void half_a_line_that_stays_is_refused(void **state)
{
	struct rlimit before, now;
	struct error err = { ERROR_NONE, "" };
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "{\"ti", 4), 4);
	close(fd);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = (struct rlimit){ 4, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(audit_writer_open(&writer, path, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(err.text, "File too large"));
}

static void no_link_is_followed(void **state)
{
	struct error err = { ERROR_NONE, "" };

	assert_int_equal(symlink(moved, path), 0);
	assert_int_equal(audit_writer_open(&writer, path, &err), -1);
	assert_non_null(strstr(err.text, "cannot open the audit file"));
	assert_int_equal(access(moved, F_OK), -1);
	writer.to = NULL;
}

/* A gateway that was taken over writes what it likes. */
static void only_records_are_written(void **state)
{
	char longest[TEXT_LINE_BYTES * 2 + 2];

	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "{\"time\":\"", 9);
	strcpy(longest + sizeof(longest) - 3, "}\n");
	open_to(path);
	tell("hello\n\n{}\n{\"time\":\"\x1b[2J\"}\n{\"time\":\"\xE2\x80\xAE\"}\n{\"time\":\"\xFF\"}\n");
	tell(RECORD("a"));
	tell(longest);
	tell(RECORD("b") "{\"time\":\"");
	run();
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	audit_writer_flush(&writer); /* it has ended: the rest will not come */
	tell(RECORD("c"));
	run();
	assert_string_equal(content(path), RECORD("a") RECORD("b") RECORD("c"));
}

static void a_long_line_in_pieces_is_none(void **state)
{
	open_to(path);
	for (int i = 0; i < 40; i++) {
		char piece[4096];

		memset(piece, 'x', sizeof(piece) - 1);
		piece[sizeof(piece) - 1] = '\0';
		tell(piece);
		run();
	}
	tell(RECORD("its end")); /* looks like one, and is none */
	tell(RECORD("a"));
	run();
	assert_string_equal(content(path), RECORD("a"));
}

static void a_renamed_file_is_left(void **state)
{
	open_to(path);
	tell(RECORD("a"));
	run();
	assert_int_equal(rename(path, moved), 0);
	tell(RECORD("b"));
	run();
	audit_writer_reopen(&writer);
	tell(RECORD("c"));
	run();
	assert_string_equal(content(moved), RECORD("a") RECORD("b"));
	assert_string_equal(content(path), RECORD("c"));
}

/* /dev/full takes nothing. What was read, and what is in the pipe, waits. */
static void what_cannot_be_written_waits(void **state)
{
	struct pollfd polls[AUDIT_WRITER_POLLS];
	struct ipc_message message;
	struct error err;
	int pair[2];

	assert_int_equal(ipc_pair(pair, &err), 0);
	open_to("/dev/full");
	audit_writer_set_gateway(&writer);
	assert_false(audit_writer_has_untold(&writer));
	tell(RECORD("a"));
	assert_int_equal(audit_writer_run(&writer), now_ms + 1000);
	assert_true(writer.is_failing);
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, -1);
	assert_int_equal(polls[1].fd, -1);
	assert_true(audit_writer_has_untold(&writer));
	audit_writer_tell(&writer, pair[0]);
	assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
	assert_int_equal(message.type, IPC_AUDIT);
	assert_int_equal(message.audit.error, ENOSPC);
	tell(RECORD("b"));
	wait_ms(999);
	assert_int_equal(audit_writer_run(&writer), now_ms + 1);
	wait_ms(1);
	assert_int_equal(audit_writer_run(&writer), now_ms + 1000);
	writer.to = path; /* as if there were room */
	audit_writer_reopen(&writer);
	run();
	assert_false(writer.is_failing);
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	audit_writer_tell(&writer, pair[0]);
	assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
	assert_int_equal(message.audit.error, 0);
	ipc_close(pair[0]);
	ipc_close(pair[1]);
}

/* The next gateway begins in good hope, and is told. */
static void another_gateway_is_told(void **state)
{
	open_to("/dev/full");
	tell(RECORD("a"));
	run();
	writer.is_told = true;
	audit_writer_set_gateway(&writer);
	assert_true(audit_writer_has_untold(&writer));
}

static void what_is_in_the_way_is_said(void **state)
{
	struct error err;
	int fd;

	assert_int_equal(audit_writer_try(path, &err), 0);
	assert_int_equal(access(path, F_OK), -1); /* it is not made */
	assert_int_equal(audit_writer_try(socket_to, &err), -1);
	assert_string_equal(err.text, "nothing is listening there now: No such file or directory");
	fd = listen_at();
	assert_int_equal(audit_writer_try(socket_to, &err), 0);
	close(fd);
	assert_int_equal(audit_writer_try(path, &err), -1); /* a socket is no file */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(audit_writer_try(path, &err), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(audit_writer_try("/no/such/file", &err), -1);
	assert_string_equal(err.text, "its directory does not exist");
	assert_int_equal(audit_writer_try("/dev/null", &err), 0);
}

/* ---- reloads ---- */

static void use_next(const char *to)
{
	struct error err = { ERROR_NONE, "" };

	if (audit_writer_open_next(&writer, to, &err) < 0)
		fail_msg("%s", err.text);
	audit_writer_use_next(&writer, to);
}

static void a_reload_moves_it(void **state)
{
	char *same = mem_printf("%s", path);
	struct error err = { ERROR_NONE, "" };
	int fd;

	open_to(path);
	tell(RECORD("a"));
	assert_int_equal(audit_writer_open_next(&writer, "/no/such/file", &err), -1);
	assert_non_null(strstr(err.text, "cannot open the audit file /no/such/file"));
	fd = writer.fd;
	audit_writer_use_next(&writer, same); /* nothing but the text */
	assert_ptr_equal(writer.to, same);
	assert_int_equal(writer.fd, fd);
	use_next(moved);
	assert_string_equal(content(path), RECORD("a"));
	tell(RECORD("b"));
	run();
	assert_string_equal(content(path), RECORD("a"));
	assert_string_equal(content(moved), RECORD("b"));
	/* What is not used after all is closed. */
	assert_int_equal(audit_writer_open_next(&writer, path, &err), 0);
	fd = writer.next_fd;
	assert_int_equal(audit_writer_open_next(&writer, NULL, &err), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	free(same);
}

static void what_waits_goes_with_it(void **state)
{
	open_to("/dev/full");
	tell(RECORD("a"));
	run();
	assert_true(writer.is_failing);
	tell(RECORD("b"));
	use_next(path);
	run();
	assert_false(writer.is_failing);
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
}

static void a_reload_begins_and_ends_it(void **state)
{
	struct pollfd polls[AUDIT_WRITER_POLLS];

	open_to(NULL);
	tell(RECORD("a"));
	assert_int_equal(run(), UINT64_MAX);
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, -1);
	use_next(path);
	run();
	assert_string_equal(content(path), RECORD("a"));
	tell(RECORD("b"));
	use_next(NULL); /* which writes what there is */
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	assert_int_equal(run(), UINT64_MAX);
	use_next("/dev/full");
	tell(RECORD("c"));
	run();
	assert_true(writer.is_failing);
	writer.is_told = true;
	use_next(NULL);
	assert_false(writer.is_failing);
	assert_true(audit_writer_has_untold(&writer));
	use_next(path); /* what could not be written before is not written now */
	run();
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	use_next(NULL);
	tell("{\"half");
	audit_writer_flush(&writer); /* the gateway has gone, and what it left was for nobody */
	use_next(path);
	tell(RECORD("d"));
	run();
	assert_string_equal(content(path), RECORD("a") RECORD("b") RECORD("d"));
}

/* Nothing of it has been read from the pipe: it is lost all the same, and is no record of what comes next. */
static void what_a_target_never_took_is_lost_with_it(void **state)
{
	char text[512] = "";
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	open_to(socket_to);
	assert_true(writer.is_failing);
	tell(RECORD("a"));
	tell(RECORD("b"));
	run();
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	use_next(NULL);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "audit_lost records=2"));
	use_next(path);
	tell(RECORD("c"));
	run();
	assert_string_equal(content(path), RECORD("c"));
	close(ends[0]);
	close(ends[1]);
}

static void a_reload_may_name_who_comes_later(void **state)
{
	int fd;

	open_to(NULL);
	use_next(socket_to);
	tell(RECORD("a"));
	run();
	assert_true(writer.is_failing);
	assert_true(audit_writer_has_untold(&writer));
	fd = listen_at();
	wait_ms(1000);
	run();
	assert_string_equal(take(fd),
			    "{\"time\":\"2026-01-02T03:04:05.678Z\",\"v\":1,\"event\":\"a\"}");
	close(fd);
}

/* What was begun in a FIFO whose reader is slow is whole in the file after it. */
static void a_line_is_written_anew_elsewhere(void **state)
{
	char record[1600];
	int reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
	open_to(path);
	memset(record, 'x', sizeof(record));
	memcpy(record, "{\"time\":\"", 9);
	memcpy(record + sizeof(record) - 3, "}\n", 3);
	for (int i = 0; i < 4; i++)
		tell(record);
	run();
	assert_true(writer.is_blocked);
	assert_int_not_equal(writer.written % (sizeof(record) - 1), 0);
	assert_int_equal(unlink(path), 0);
	audit_writer_reopen(&writer);
	run();
	assert_memory_equal(content(path), record, sizeof(record) - 1);
	assert_int_equal(strlen(content(path)) % (sizeof(record) - 1), 0);
	close(reader);
}

static void what_is_lost_at_the_end_is_counted(void **state)
{
	char text[256] = "";
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	log_set(fds[1], LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	open_to("/dev/full");
	tell(RECORD("a") RECORD("b"));
	run();
	tell(RECORD("c"));
	assert_int_not_equal(read(fds[0], text, sizeof(text)), -1);
	audit_writer_close(&writer);
	memset(text, 0, sizeof(text));
	assert_int_not_equal(read(fds[0], text, sizeof(text) - 1), -1);
	assert_non_null(strstr(text, "audit_lost"));
	assert_non_null(strstr(text, "records=3"));
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(fds[0]);
	close(fds[1]);
}

/* By whoever forgot to tell us, or has something to hide. */
static void a_removed_file_is_made_anew(void **state)
{
	open_to(path);
	tell(RECORD("a"));
	audit_writer_run(&writer);
	wait_ms(1000);
	assert_int_equal(unlink(path), 0);
	tell(RECORD("b"));
	audit_writer_run(&writer);
	assert_string_equal(content(path), RECORD("b"));
	/* Where none can be made they wait. */
	wait_ms(1000);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	tell(RECORD("c"));
	audit_writer_run(&writer);
	assert_true(writer.is_failing);
	assert_int_equal(rmdir(path), 0);
	wait_ms(1000);
	audit_writer_run(&writer);
	assert_string_equal(content(path), RECORD("c"));
}

/* Only that: nothing is opened again that is still there, nor a pipe whose reader goes on. */
static void what_is_not_removed_stays_open(void **state)
{
	char text[256] = "";
	int reader;

	open_to(path);
	assert_int_equal(fcntl(writer.fd, F_SETFL, O_APPEND), 0); /* by which it is known again */
	wait_ms(1000);
	tell(RECORD("a"));
	run();
	assert_int_equal(fcntl(writer.fd, F_GETFL) & O_NONBLOCK, 0);
	assert_string_equal(content(path), RECORD("a"));
	audit_writer_close(&writer);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	open_to(path);
	assert_int_equal(unlink(path), 0);
	wait_ms(1000);
	tell(RECORD("b"));
	run();
	assert_true(read(reader, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, RECORD("b"));
	close(reader);
}

/* At the end of a gateway, before another program takes the place of this one, and at the end of all. */
static void what_is_in_the_pipe_is_written(void **state)
{
	open_to(path);
	tell(RECORD("a"));
	audit_writer_flush(&writer);
	assert_string_equal(content(path), RECORD("a"));
	tell(RECORD("b") "{\"half");
	assert_true(audit_writer_is_through(&writer));
	assert_string_equal(content(path), RECORD("a") RECORD("b"));
	tell(RECORD("c"));
	audit_writer_close(&writer);
	assert_string_equal(content(path), RECORD("a") RECORD("b") RECORD("c"));
	open_to("/dev/full");
	assert_true(audit_writer_is_through(&writer));
	tell(RECORD("d"));
	assert_false(audit_writer_is_through(&writer));
	audit_writer_close(&writer);
	open_to(NULL);
	tell(RECORD("e"));
	assert_true(audit_writer_is_through(&writer));
}

/* Of the last one, that was taken over: a small pipe, and writes that wait. */
static void what_a_gateway_can_change_is_taken_back(void **state)
{
	int size;

	open_to(path);
	size = fcntl(writer.pipe.out, F_GETPIPE_SZ);
	assert_int_equal(fcntl(writer.pipe.out, F_SETPIPE_SZ, 4096), 4096);
	assert_int_equal(fcntl(writer.pipe.out, F_SETFL, 0), 0);
	audit_writer_set_gateway(&writer);
	assert_int_equal(fcntl(writer.pipe.out, F_GETPIPE_SZ), size);
	assert_true(fcntl(writer.pipe.out, F_GETFL) & O_NONBLOCK);
}

static void a_socket_gets_datagrams(void **state)
{
	int fd = listen_at();

	open_to(socket_to);
	tell(RECORD("a") RECORD("b"));
	run();
	assert_memory_equal(take(fd), RECORD("a"), strlen(RECORD("a")) - 1);
	assert_memory_equal(take(fd), RECORD("b"), strlen(RECORD("b")) - 1);
	assert_string_equal(take(fd), "");
	close(fd);
}

/* https://systemd.io/JOURNAL_NATIVE_PROTOCOL: fields as lines, each with its end. */
static void the_journal_gets_fields(void **state)
{
	int fd = listen_at();

	open_to("journal"); /* the one of this machine, if it has one, gets nothing */
	writer.journal = path;
	audit_writer_reopen(&writer);
	tell(RECORD("a") RECORD("b"));
	run();
	assert_string_equal(take(fd),
			    "SYSLOG_IDENTIFIER=mcpgated-audit\nPRIORITY=6\nMESSAGE=" RECORD("a"));
	assert_string_equal(take(fd),
			    "SYSLOG_IDENTIFIER=mcpgated-audit\nPRIORITY=6\nMESSAGE=" RECORD("b"));
	assert_string_equal(take(fd), "");
	close(fd);
}

static void a_slow_reader_is_waited_for(void **state)
{
	struct pollfd polls[AUDIT_WRITER_POLLS];
	int fd = listen_at();
	size_t sent = 0, came = 0;

	open_to(socket_to);
	while (!writer.is_blocked) {
		assert_in_range(++sent, 1, 100000);
		tell(RECORD("a"));
		run();
	}
	assert_false(writer.is_failing);
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, -1);
	assert_int_equal(polls[1].fd, writer.fd);
	assert_int_equal(poll(polls, AUDIT_WRITER_POLLS, 0), 0);
	while (*take(fd) != '\0')
		came++;
	assert_int_equal(poll(polls, AUDIT_WRITER_POLLS, 0), 1);
	run();
	assert_false(writer.is_blocked);
	while (*take(fd) != '\0')
		came++;
	assert_int_equal(came, sent);
	close(fd);
}

static void a_reader_may_come_later_and_go(void **state)
{
	int fd;

	open_to(socket_to);
	assert_true(writer.is_failing);
	tell(RECORD("a"));
	assert_int_equal(audit_writer_run(&writer), now_ms + 1000);
	fd = listen_at();
	wait_ms(1000);
	run();
	assert_false(writer.is_failing);
	assert_memory_equal(take(fd), RECORD("a"), 30);
	close(fd);
	unlink(path);
	tell(RECORD("b"));
	run();
	assert_true(writer.is_failing);
	fd = listen_at();
	wait_ms(1000);
	run();
	assert_false(writer.is_failing);
	assert_non_null(strstr(take(fd), "\"event\":\"b\""));
	close(fd);
}

static void a_flood_is_bounded(void **state)
{
	char lines[TEXT_LINE_BYTES];
	struct pollfd polls[AUDIT_WRITER_POLLS];
	size_t count = 0;
	uint64_t next_ms;

	memset(lines, 'x', sizeof(lines)); /* no records: nothing is written */
	lines[sizeof(lines) - 1] = '\n';
	open_to(path);
	for (;;) {
		while (write(writer.pipe.out, lines, sizeof(lines)) > 0)
			count++;
		next_ms = audit_writer_run(&writer);
		if (next_ms > now_ms + writer.gather_ms)
			break;
		wait_ms(next_ms - now_ms);
		assert_in_range(count, 1, 20000);
	}
	assert_in_range(count, 10000, 11000); /* of 40 MiB, and what is in the pipe */
	audit_writer_poll_fill(&writer, polls);
	assert_int_equal(polls[0].fd, -1);
	wait_ms(1000);
	assert_int_equal(audit_writer_run(&writer), now_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_appended_to, begin, end),
		cmocka_unit_test_setup_teardown(records_are_gathered, begin, end),
		cmocka_unit_test_setup_teardown(half_a_line_is_ended, begin, end),
		cmocka_unit_test_setup_teardown(half_a_line_that_stays_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(no_link_is_followed, begin, end),
		cmocka_unit_test_setup_teardown(only_records_are_written, begin, end),
		cmocka_unit_test_setup_teardown(a_long_line_in_pieces_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_renamed_file_is_left, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_written_waits, begin, end),
		cmocka_unit_test_setup_teardown(another_gateway_is_told, begin, end),
		cmocka_unit_test_setup_teardown(what_a_gateway_can_change_is_taken_back, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_in_the_way_is_said, begin, end),
		cmocka_unit_test_setup_teardown(a_removed_file_is_made_anew, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_removed_stays_open, begin, end),
		cmocka_unit_test_setup_teardown(what_is_in_the_pipe_is_written, begin, end),
		cmocka_unit_test_setup_teardown(a_line_is_written_anew_elsewhere, begin, end),
		cmocka_unit_test_setup_teardown(what_is_lost_at_the_end_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_socket_gets_datagrams, begin, end),
		cmocka_unit_test_setup_teardown(the_journal_gets_fields, begin, end),
		cmocka_unit_test_setup_teardown(a_slow_reader_is_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_may_come_later_and_go, begin, end),
		cmocka_unit_test_setup_teardown(a_flood_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(a_reload_moves_it, begin, end),
		cmocka_unit_test_setup_teardown(what_waits_goes_with_it, begin, end),
		cmocka_unit_test_setup_teardown(a_reload_begins_and_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(what_a_target_never_took_is_lost_with_it, begin,
						end),
		cmocka_unit_test_setup_teardown(a_reload_may_name_who_comes_later, begin, end),
	};
	int failures;

	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/a", directory);
	snprintf(moved, sizeof(moved), "%s/b", directory);
	snprintf(socket_to, sizeof(socket_to), "unix:%s", path);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failures = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failures;
}
