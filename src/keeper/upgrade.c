/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next program gets the lines in a sealed memory file, whose descriptor is in its environment. Everything that
 * survives execve(2) survives here: the process with its children, blocked signals, and the descriptors that go with
 * the lines, which alone are not close-on-exec then.
 */
#include "keeper/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "keeper/programs.h"

#define VARIABLE "MCPGATED_HANDOVER"
#define BACK_SUFFIX ",back"
#define CHECKS "check"
#define MAGIC "mcpgated-handover"
#define FILE_BYTES_MAX (8 * 1024 * 1024)
#define REPORT_BYTES_MAX (32 * 1024)

/* ---- the memory file ---- */

/* The lines with what the frame adds: the format, the descriptors, and an end. */
static int handover_make_file(const struct handover *handover, struct error *err)
{
	at_end(buf_fini) struct buf text = { 0 };

	buf_printf(&text, MAGIC " %d %d%c", HANDOVER_FORMAT, HANDOVER_LOWEST, '\0');
	buf_append_slice(&text, buf_slice(&handover->text));
	for (size_t i = 0; i < handover->fd_count; i++)
		buf_printf(&text, "fd %d%c", handover->fds[i], '\0');
	buf_printf(&text, "end %c", '\0');
	return text.len > FILE_BYTES_MAX ?
		       error_set(err, ERROR_LIMIT, "there are too many processes to hand over") :
		       memory_file_sealed("handover", buf_slice(&text), err);
}

/* Only the programs of a keeper make such a file, which nobody can change. */
static bool handover_read_file(int fd, struct buf *text)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	size_t size;

	if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || fstat(fd, &status) < 0 ||
	    status.st_size < 1 || status.st_size > FILE_BYTES_MAX)
		return false;
	size = (size_t)status.st_size;
	if (pread(fd, buf_reserve(text, size), size, 0) != (ssize_t)size ||
	    text->data[size - 1] != '\0')
		return false;
	text->len = size;
	return true;
}

static bool handover_is_readable(const struct handover *handover)
{
	size_t at = 0;
	const char *first = handover_next(handover, MAGIC, &at);
	int format, lowest;

	if (first == NULL || sscanf(first, "%d %d", &format, &lowest) != 2 ||
	    lowest > HANDOVER_FORMAT)
		return false;
	return handover_next(handover, "end", &at) != NULL;
}

static void handover_find_fds(struct handover *handover)
{
	const char *line;
	size_t at = 0;
	int fd;

	while ((line = handover_next(handover, "fd", &at)) != NULL)
		if (sscanf(line, "%d", &fd) == 1 && fd > STDERR_FILENO &&
		    fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
			handover_give(handover, fd);
}

/* ---- the beginning ---- */

/* As it is before anybody takes something out, and with room for one more. */
static char **copy_environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count] != NULL)
		count++;
	copy = mem_zalloc((count + 2) * sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], VARIABLE "=", sizeof(VARIABLE)) != 0)
			copy[kept++] = environ[i];
	return copy;
}

static char **free_place(const struct upgrade *upgrade)
{
	char **place = upgrade->environment;

	while (*place != NULL)
		place++;
	return place;
}

int upgrade_begin(struct upgrade *upgrade_r, char **argv)
{
	const char *text = getenv(VARIABLE), *line;
	char *end = NULL;
	size_t at = 0;
	ssize_t n;
	int fd;

	*upgrade_r =
		(struct upgrade){ .output = -1, .file = -1, .environment = copy_environment() };
	n = readlink("/proc/self/exe", upgrade_r->program, sizeof(upgrade_r->program) - 1);
	upgrade_r->argv = n > 0 ? argv : NULL;
	if (text == NULL)
		return 0;
	/* From here on no process of a server that has the same user can look into this one. */
	prctl(PR_SET_DUMPABLE, 0);
	upgrade_r->is_checker = strcmp(text, CHECKS) == 0;
	if (upgrade_r->is_checker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		unsetenv(VARIABLE);
		return 0;
	}
	fd = (int)strtol(text, &end, 10);
	upgrade_r->is_back = strcmp(end, BACK_SUFFIX) == 0;
	unsetenv(VARIABLE);
	if (!handover_read_file(fd, &upgrade_r->from.text))
		return -1;
	handover_find_fds(&upgrade_r->from);
	upgrade_r->file = handover_give(&upgrade_r->from, fd);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* What this program was executed from has no path any more. */
	line = handover_next(&upgrade_r->from, "path", &at);
	if (upgrade_r->is_back && line != NULL)
		snprintf(upgrade_r->program, sizeof(upgrade_r->program), "%s", line);
	return handover_is_readable(&upgrade_r->from) ? 0 : -1;
}

void upgrade_fini(struct upgrade *upgrade)
{
	handover_fini(&upgrade->from);
	free(upgrade->environment);
	upgrade->environment = NULL;
}

/* ---- the check ---- */

static int upgrade_spawn(struct upgrade *upgrade, char **argv, const int *sockets, size_t count,
			 struct error *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, stopped;
	char variable[] = VARIABLE "=" CHECKS;
	int result;

	sigemptyset(&none);
	sigemptyset(&stopped);
	sigaddset(&stopped, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &stopped);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, upgrade->output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, upgrade->output, STDERR_FILENO);
	for (size_t i = 0; i < count; i++)
		if (sockets[i] > STDERR_FILENO) /* stays open */
			posix_spawn_file_actions_adddup2(&actions, sockets[i], sockets[i]);
	*free_place(upgrade) = variable;
	result = posix_spawn(&upgrade->checker, upgrade->program, &actions, &attributes, argv,
			     upgrade->environment);
	free_place(upgrade)[-1] = NULL;
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (result == 0)
		return 0;
	upgrade->checker = 0;
	errno = result;
	return error_set_errno(err, "%.200s", upgrade->program);
}

int upgrade_check(struct upgrade *upgrade, uint64_t order, const int *sockets, size_t count,
		  struct error *err)
{
	size_t words = 0;
	at_end(mem_free) char **argv = NULL;
	int result;

	CHECK(upgrade->argv != NULL && upgrade->checker == 0);
	while (upgrade->argv[words] != NULL)
		words++;
	argv = mem_zalloc((words + 2) * sizeof(*argv));
	argv[0] = upgrade->argv[0];
	argv[1] = (char *)(uintptr_t) "-t";
	memcpy(argv + 2, upgrade->argv + 1, (words - 1) * sizeof(*argv));
	upgrade->order = order;
	upgrade->check_by_ms = clock_now_ms() + UPGRADE_CHECK_MS;
	upgrade->output = memfd_create("check", MFD_CLOEXEC);
	result = upgrade->output >= 0 ? upgrade_spawn(upgrade, argv, sockets, count, err) :
					error_set_errno(err, "a memory file cannot be made");
	if (result < 0)
		file_close(&upgrade->output);
	return result;
}

uint64_t upgrade_do_due(struct upgrade *upgrade)
{
	if (upgrade->checker == 0)
		return UINT64_MAX;
	if (clock_now_ms() < upgrade->check_by_ms)
		return upgrade->check_by_ms;
	kill(upgrade->checker, SIGKILL); /* SIGCHLD follows */
	upgrade->check_by_ms = UINT64_MAX;
	return UINT64_MAX;
}

void upgrade_print_format(void)
{
	printf(MAGIC " %d\n", HANDOVER_FORMAT);
}

/* Whether it is the line of a program that can read what this one leaves. */
static bool is_good_format(struct slice line)
{
	uint64_t format;

	return slice_is_equal(slice_cut(&line, ' '), SLICE_LIT(MAGIC)) &&
	       text_parse_u64(line, &format) == 0 && format >= HANDOVER_LOWEST;
}

static void upgrade_report_line(struct slice line, bool is_fine, struct buf *report)
{
	static const struct slice own = SLICE("mcpgated: "), warning = SLICE("warning: ");

	if (slice_has_prefix(line, own))
		line = slice_of(line.p + own.n, line.n - own.n);
	if (slice_has_prefix(line, warning))
		buf_printf(report, "warning %.*s\n", (int)(line.n - warning.n), line.p + warning.n);
	else if (line.n > 0 && !is_fine)
		buf_printf(report, "error %.*s\n", SLICE_ARG(line));
}

bool upgrade_on_checked(struct upgrade *upgrade, int status, struct buf *report)
{
	at_end(mem_free) char *text = mem_alloc(REPORT_BYTES_MAX);
	ssize_t n = pread(upgrade->output, text, REPORT_BYTES_MAX, 0);
	bool is_fine = WIFEXITED(status) && WEXITSTATUS(status) == 0, can_take_over = false;
	struct slice rest = slice_of(text, n > 0 ? (size_t)n : 0);

	CHECK(upgrade->checker > 0);
	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');

		if (is_good_format(line))
			can_take_over = true;
		else
			upgrade_report_line(line, is_fine, report);
	}
	if (is_fine && !can_take_over)
		buf_printf(report,
			   "error %s is of a release that cannot take over: restart the daemon\n",
			   upgrade->program);
	if (WIFSIGNALED(status))
		buf_printf(report, "error the new program, %s, was ended by signal %d\n",
			   upgrade->program, WTERMSIG(status));
	file_close(&upgrade->output);
	upgrade->checker = 0;
	return is_fine && can_take_over;
}

/* ---- executing ---- */

static void set_close_on_exec(const struct handover *handover, int file, int flag)
{
	fcntl(file, F_SETFD, flag);
	for (size_t i = 0; i < handover->fd_count; i++)
		fcntl(handover->fds[i], F_SETFD, flag);
}

/* program_fd: what to execute; -1: upgrade->program. Returns if it cannot be executed. */
static int execute(const struct upgrade *upgrade, const struct handover *handover, int file,
		   int program_fd, struct error *err)
{
	char variable[64];

	snprintf(variable, sizeof(variable), VARIABLE "=%d%s", file,
		 program_fd >= 0 ? BACK_SUFFIX : "");
	*free_place(upgrade) = variable;
	set_close_on_exec(handover, file, 0);
	if (program_fd >= 0)
		execveat(program_fd, "", upgrade->argv, upgrade->environment, AT_EMPTY_PATH);
	else
		execve(upgrade->program, upgrade->argv, upgrade->environment);
	error_set_errno(err, "%.200s cannot be executed", upgrade->program);
	set_close_on_exec(handover, file, FD_CLOEXEC);
	free_place(upgrade)[-1] = NULL;
	return -1;
}

int upgrade_execute(const struct upgrade *upgrade, struct handover *handover, struct error *err)
{
	int own = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	int result = -1, file;

	CHECK(upgrade->argv != NULL);
	if (own >= 0)
		handover_write(handover, "old %d", handover_give(handover, own));
	handover_write(handover, "path %s", upgrade->program);
	file = handover_make_file(handover, err);
	if (file >= 0) {
		result = execute(upgrade, handover, file, -1, err);
		close(file);
	}
	if (own >= 0)
		close(own);
	return result;
}

/* -1: there is none. */
static int find_old(const struct upgrade *upgrade)
{
	size_t at = 0;
	const char *line = handover_next(&upgrade->from, "old", &at);
	int old;

	return line != NULL && sscanf(line, "%d", &old) == 1 ? old : -1;
}

bool upgrade_can_go_back(const struct upgrade *upgrade)
{
	return !upgrade->is_back && upgrade->argv != NULL && find_old(upgrade) >= 0;
}

int upgrade_go_back(const struct upgrade *upgrade, struct handover *handover, struct error *err)
{
	int result, file;

	CHECK(upgrade_can_go_back(upgrade));
	handover_copy(handover, &upgrade->from, "old");
	handover_copy(handover, &upgrade->from, "program");
	handover_copy(handover, &upgrade->from, "path");
	file = handover_make_file(handover, err);
	result = file >= 0 ? execute(upgrade, handover, file, find_old(upgrade), err) : -1;
	if (file >= 0)
		close(file);
	return result;
}

/* The very file is passed on. The descriptors are found again: whoever has taken one has not closed it. */
void upgrade_fall_back(struct upgrade *upgrade)
{
	struct error err = { ERROR_NONE, "" };

	if (!upgrade_can_go_back(upgrade))
		return;
	upgrade->from.fd_count = 0;
	handover_find_fds(&upgrade->from);
	(void)!execute(upgrade, &upgrade->from, upgrade->file, find_old(upgrade), &err);
	fprintf(stderr, "mcpgated: the program before: %s\n", err.text);
}
