/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_unotify(2): the kernel asks about each of the calls below, and is always told to go on. This process has the
 * server's user, so it sees no more than the server; what that user may not do anyway is not told. What a call names is
 * read from memory, which may have changed when the kernel reads it: another reason why this is no boundary.
 */
#include "keeper/sandbox_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "keeper/confine.h"
#include "keeper/sandbox_advice.h"
#include "process/child.h"

#define TOLD_BYTES_MAX (16 * 1024)
#define PAGE_BYTES 4096
#define FILES_TOLD 8 /* of one directory */
#define WIDE_DEPTH 3

enum look { LOOK_OPEN, LOOK_RUN, LOOK_CHANGE, LOOK_MAKE, LOOK_REMOVE, LOOK_CONNECT, LOOK_BIND };

/* The arguments: the directory that a relative path begins at (-1: where the process is), and the path. */
static const struct call {
	const char *name;
	enum look look;
	int base;
	int path;
} calls[] = {
	{ "open", LOOK_OPEN, -1, 0 },      { "openat", LOOK_OPEN, 0, 1 },
	{ "creat", LOOK_CHANGE, -1, 0 },   { "truncate", LOOK_CHANGE, -1, 0 },
	{ "execve", LOOK_RUN, -1, 0 },     { "execveat", LOOK_RUN, 0, 1 },
	{ "mkdir", LOOK_MAKE, -1, 0 },     { "mkdirat", LOOK_MAKE, 0, 1 },
	{ "mknod", LOOK_MAKE, -1, 0 },     { "mknodat", LOOK_MAKE, 0, 1 },
	{ "symlink", LOOK_MAKE, -1, 1 },   { "symlinkat", LOOK_MAKE, 1, 2 },
	{ "link", LOOK_MAKE, -1, 1 },      { "linkat", LOOK_MAKE, 2, 3 },
	{ "unlink", LOOK_REMOVE, -1, 0 },  { "unlinkat", LOOK_REMOVE, 0, 1 },
	{ "rmdir", LOOK_REMOVE, -1, 0 },   { "rename", LOOK_REMOVE, -1, 0 },
	{ "renameat", LOOK_REMOVE, 0, 1 }, { "renameat2", LOOK_REMOVE, 0, 1 },
	{ "rename", LOOK_MAKE, -1, 1 },    { "renameat", LOOK_MAKE, 2, 3 },
	{ "renameat2", LOOK_MAKE, 2, 3 },  { "connect", LOOK_CONNECT, -1, 1 },
	{ "bind", LOOK_BIND, -1, 1 },
};

/* By these, what is opened would not be seen; a sandbox has none of them either, and programs know how to go on. */
static const char *const hidden[] = { "openat2", "io_uring_setup" };

/* Others' names for what a process has open itself. */
static const char *const own[] = { "/proc/self/", "/proc/thread-self/", "/dev/fd/", "/dev/std" };

struct report {
	const struct config_server *server;
	char *const *programs;
	int listener;
	struct buf told; /* lines */
	bool is_full;
};

/* ---- what a call names ---- */

/* Of the memory of a process; page by page, because what follows the end may not be there. */
static bool read_memory(pid_t pid, uint64_t at, char *to, size_t size, bool is_text)
{
	CHECK(size > 0);
	for (size_t n = 0; n < size;) {
		size_t room = PAGE_BYTES - (at + n) % PAGE_BYTES;
		struct iovec here = { to + n, room < size - n ? room : size - n };
		struct iovec there = { (void *)(uintptr_t)(at + n), here.iov_len };

		if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len)
			return false;
		if (is_text && memchr(to + n, '\0', here.iov_len) != NULL)
			return true;
		n += here.iov_len;
	}
	return !is_text;
}

/* Makes an absolute path of it. */
static bool read_path(const struct seccomp_notif *request, const struct call *call,
		      char path_r[2 * PATH_MAX])
{
	pid_t pid = (pid_t)request->pid;
	int base = call->base < 0 ? AT_FDCWD : (int)request->data.args[call->base];
	char text[PATH_MAX];

	CHECK(call->look < LOOK_CONNECT && call->base < call->path);
	if (!read_memory(pid, request->data.args[call->path], text, sizeof(text), true) ||
	    text[0] == '\0')
		return false;
	if (text[0] == '/')
		strcpy(path_r, text);
	else if (base == AT_FDCWD)
		sprintf(path_r, "/proc/%d/cwd/%s", (int)pid, text);
	else
		sprintf(path_r, "/proc/%d/fd/%d/%s", (int)pid, base, text);
	return true;
}

/* A thread is no process; the number of its process is in its status. */
static pid_t process_of(pid_t thread)
{
	char path[64], line[64];
	int pid = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	status = fopen(path, "re");
	while (status != NULL && pid == 0 && fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "Tgid:", 5) == 0)
			pid = atoi(line + 5);
	if (status != NULL)
		fclose(status);
	return pid;
}

static bool is_own(pid_t thread, const char *path)
{
	char *end;

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0)
			return true;
	/* Relative ones go through cwd and fd: see above. */
	return strncmp(path, "/proc/", 6) == 0 && strtol(path + 6, &end, 10) != 0 &&
	       strncmp(end, "/cwd/", 5) != 0 && strncmp(end, "/fd/", 4) != 0 &&
	       atoi(path + 6) == process_of(thread);
}

static bool is_program(const struct report *report, const char *path)
{
	for (char *const *program = report->programs; *program != NULL; program++)
		if (strcmp(*program, path) == 0)
			return true;
	return false;
}

/* The type of a socket, or -1. */
static int type_of_socket(pid_t thread, int fd)
{
	socklen_t size = sizeof(int);
	at_end(file_close) int pidfd = (int)syscall(SYS_pidfd_open, process_of(thread), 0);
	at_end(file_close) int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	int type = -1;

	if (copy >= 0 && getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		type = -1;
	return type;
}

/* ---- what of it would be refused ---- */

static bool would_refuse_open(const struct report *report, const char *path, uint64_t flags,
			      struct buf *advice)
{
	bool is_read = (flags & O_ACCMODE) != O_WRONLY;
	bool is_changed = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;

	if ((flags & O_PATH) != 0 || (!is_changed && is_program(report, path)))
		return false;
	if (access(path, (is_read ? R_OK : 0) | (is_changed ? W_OK : 0)) < 0 &&
	    (errno != ENOENT || (flags & O_CREAT) == 0))
		return false;
	return sandbox_advise_path(report->server, path,
				   (is_read ? LANDLOCK_FS_READ_FILE : 0u) |
					   (is_changed ? LANDLOCK_FS_WRITE_FILE : 0u),
				   advice);
}

/* What is made or removed is so in its directory. */
static bool would_refuse_entry(const struct report *report, char *path, bool is_made,
			       struct buf *advice)
{
	struct stat st;
	char *end = path + strlen(path);
	bool is_there = lstat(path, &st) == 0;

	while (end > path + 1 && end[-1] == '/')
		*--end = '\0';
	end = strrchr(path, '/');
	CHECK(end != NULL);
	end[end == path] = '\0';
	if (is_there == is_made || access(path, W_OK) < 0)
		return false;
	return sandbox_advise_path(report->server, path,
				   is_made ? LANDLOCK_FS_MAKE_REG : LANDLOCK_FS_REMOVE_FILE,
				   advice);
}

static bool would_refuse_path(const struct report *report, const struct seccomp_notif *request,
			      const struct call *call, struct buf *advice)
{
	char path[2 * PATH_MAX];

	if (!read_path(request, call, path) || is_own((pid_t)request->pid, path))
		return false;
	if (call->look == LOOK_OPEN)
		return would_refuse_open(report, path, request->data.args[call->path + 1], advice);
	if (call->look == LOOK_CHANGE)
		return would_refuse_open(report, path, O_WRONLY | O_CREAT, advice);
	if (call->look == LOOK_RUN)
		return !is_program(report, path) && access(path, X_OK) == 0 &&
		       sandbox_advise_path(report->server, path, LANDLOCK_FS_EXECUTE, advice);
	return would_refuse_entry(report, path, call->look == LOOK_MAKE, advice);
}

static bool would_refuse_address(const struct report *report, const struct seccomp_notif *request,
				 const struct call *call, struct buf *advice)
{
	pid_t pid = (pid_t)request->pid;
	uint64_t size = request->data.args[call->path + 1];
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	in_port_t port;

	CHECK(call->look >= LOOK_CONNECT);
	if (size < sizeof(address.sun_family))
		return false;
	if (size > sizeof(address) - 1)
		size = sizeof(address) - 1;
	if (!read_memory(pid, request->data.args[call->path], (char *)&address, size, false))
		return false;
	if (address.sun_family == AF_UNIX)
		return sandbox_advise_socket(report->server, address.sun_path, advice);
	if (address.sun_family != AF_INET && address.sun_family != AF_INET6)
		return false;
	/* It is at the same place in both. Which datagrams are sent is not looked at. */
	memcpy(&port, (char *)&address + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	return port != 0 && type_of_socket(pid, (int)request->data.args[0]) == SOCK_STREAM &&
	       sandbox_advise_port(report->server, ntohs(port), call->look == LOOK_BIND, advice);
}

/* ---- telling ---- */

/* How many lines begin with this text and have no slash after it. */
static size_t count_told(const struct report *report, struct slice text)
{
	struct slice rest = buf_slice(&report->told);
	size_t count = 0;

	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');

		count +=
			slice_has_prefix(line, text) &&
			(line.n == text.n || memchr(line.p + text.n, '/', line.n - text.n) == NULL);
	}
	return count;
}

/* Each line once. */
static void tell_line(struct report *report, struct slice line)
{
	if (report->is_full || count_told(report, line) > 0)
		return;
	report->is_full = report->told.len + line.n > TOLD_BYTES_MAX;
	if (report->is_full)
		line = SLICE_LIT("more is listed than is told here");
	buf_printf(&report->told, "%.*s\n", SLICE_ARG(line));
	dprintf(STDERR_FILENO, "%s%.*s\n", CHILD_REPORT_MARK, SLICE_ARG(line));
}

/* The line for a path, or the beginning of the lines for what is below it. */
static void put_line(const struct report *report, struct buf *line, bool is_write,
		     struct slice path, const char *end)
{
	CHECK(path.n > 0 && path.p[0] == '/');
	buf_consume(line, line->len);
	buf_printf(line, "servers.%s.sandbox.%s: [\"%.*s%s", report->server->conf.name,
		   is_write ? "write" : "read", SLICE_ARG(path), end);
}

static bool is_covered(const struct report *report, struct buf *line, bool is_write,
		       struct slice path)
{
	for (size_t n = 1; n <= path.n; n++) {
		if (n < path.n && path.p[n] != '/')
			continue;
		put_line(report, line, true, slice_of(path.p, n), "\"]");
		if (count_told(report, buf_slice(line)) > 0)
			return true;
		put_line(report, line, false, slice_of(path.p, n), "\"]");
		if (!is_write && count_told(report, buf_slice(line)) > 0)
			return true;
	}
	return false;
}

/* In place of many files of a directory, the directory; but not one as large as a home. */
static struct slice widen(const struct report *report, struct buf *line, bool is_write,
			  struct slice path)
{
	for (;;) {
		size_t n = path.n, depth = 0;

		while (n > 0 && path.p[n - 1] != '/')
			n--;
		for (size_t i = 0; i < n; i++)
			depth += path.p[i] == '/';
		if (depth <= WIDE_DEPTH)
			return path;
		put_line(report, line, is_write, slice_of(path.p, n), "");
		if (count_told(report, buf_slice(line)) < FILES_TOLD)
			return path;
		path.n = n - 1;
	}
}

/* Takes what the buffer holds: nothing that a line before it allows. */
static void tell(struct report *report, struct buf *advice)
{
	struct slice path = buf_slice(advice);
	bool is_write = memmem(path.p, path.n, ".sandbox.write: ", 16) != NULL;
	at_end(buf_fini) struct buf line = { 0 };

	CHECK(path.n > 0);
	slice_cut(&path, '"');
	path.n -= path.n > 2 ? 2 : path.n; /* what ends the list */
	if (path.n == 0) {
		tell_line(report, buf_slice(advice));
	} else if (!is_covered(report, &line, is_write, path)) {
		path = widen(report, &line, is_write, path);
		put_line(report, &line, is_write, path, "\"]");
		tell_line(report, buf_slice(&line));
	}
}

static void look_at(struct report *report, const struct seccomp_notif *request)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		at_end(buf_fini) struct buf advice = { 0 };

		if (seccomp_syscall_resolve_name(calls[i].name) != request->data.nr)
			continue;
		if ((calls[i].look >= LOOK_CONNECT ?
			     would_refuse_address(report, request, &calls[i], &advice) :
			     would_refuse_path(report, request, &calls[i], &advice)) &&
		    seccomp_notify_id_valid(report->listener, request->id) == 0)
			tell(report, &advice);
	}
}

/* ---- the two processes ---- */

static void supervise(struct report *report, pid_t pid)
{
	struct pollfd polls[] = { { .fd = report->listener, .events = POLLIN },
				  { .fd = (int)syscall(SYS_pidfd_open, pid, 0),
				    .events = POLLIN } };
	struct seccomp_notif *request;
	struct seccomp_notif_resp *response;

	CHECK(pid > 0 && report->listener >= 0);
	if (seccomp_notify_alloc(&request, &response) < 0)
		return;
	while (poll(polls, ARRAY_LEN(polls), -1) > 0) {
		memset(request, 0, sizeof(*request));
		if ((polls[0].revents & POLLIN) != 0 &&
		    seccomp_notify_receive(report->listener, request) == 0) {
			look_at(report, request);
			*response = (struct seccomp_notif_resp){
				.id = request->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE
			};
			seccomp_notify_respond(report->listener, response);
		} else if (polls[1].revents != 0) {
			return;
		} else if ((polls[0].revents & ~POLLIN) != 0) {
			polls[0].fd = -1;
		}
	}
}

/* As the other: with its status, or by the signal that has killed it. */
static _Noreturn void end_as(pid_t pid)
{
	sigset_t all;
	int status = 0;

	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) {
		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		raise(WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

union descriptor {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Sends it if it is not negative, else receives it. Returns it, or -1. */
static int pass_descriptor(int channel, int fd)
{
	union descriptor control = { 0 };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes) };

	CHECK(channel >= 0);
	if (fd < 0) {
		if (recvmsg(channel, &header, MSG_CMSG_CLOEXEC) <= 0 ||
		    control.align.cmsg_type != SCM_RIGHTS)
			return -1;
		memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
		return fd;
	}
	control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	return sendmsg(channel, &header, MSG_NOSIGNAL) < 0 ? -1 : fd;
}

/* Returns the listener, or -1 with errno. */
static int make_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error = filter == NULL ? -ENOMEM : 0;

	/* Programs for another architecture are not looked at. */
	if (error == 0)
		error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
	for (size_t i = 0; error == 0 && i < ARRAY_LEN(calls); i++) {
		int number = seccomp_syscall_resolve_name(calls[i].name);

		if (number >= 0)
			error = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, number, 0);
		if (error == -EEXIST)
			error = 0;
	}
	for (size_t i = 0; error == 0 && i < ARRAY_LEN(hidden); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
					 seccomp_syscall_resolve_name(hidden[i]), 0);
	if (error == 0)
		error = seccomp_load(filter);
	errno = -error;
	return error == 0 ? seccomp_notify_fd(filter) : -1;
}

int sandbox_report_enter(const struct config_server *server, char *const *programs)
{
	struct report report = { .server = server, .programs = programs };
	int channel[2];
	sigset_t all, before;
	pid_t here = getpid();
	pid_t pid;
	int fd;

	CHECK(server->sandbox == CONFIG_SANDBOX_REPORT);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != here)
			_exit(127);
		fd = make_filter();
		return fd >= 0 && pass_descriptor(channel[1], fd) >= 0 ? 0 : -1;
	}
	if (pid < 0)
		return -1;
	/* The daemon's memory is still here. */
	prctl(PR_SET_DUMPABLE, 0);
	close(channel[1]);
	report.listener = pass_descriptor(channel[0], -1);
	/* Who waits for their ends waits for the server. */
	for (fd = 0; fd <= channel[1]; fd++)
		if (fd != STDERR_FILENO && fd != report.listener)
			close(fd);
	if (report.listener >= 0)
		supervise(&report, pid);
	end_as(pid);
}
