/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that fail. As a library that is loaded before all others it counts the calls of a program, and lets one of them fail
 * with an errno, once: the first argument of FAULT_CALL at which the count is FAULT_NTH. What was counted stands in the file
 * FAULT_COUNTS, which is there while programs run, whatever they may open. With -DSHIM it is the program that stands in
 * place of one of mcpgated's, whose environment is empty: it executes the real one with the library. tests/syscall-faults
 * builds both.
 */
#ifndef SHIM

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each with what it returns when it fails, and the parameters that it has. */
#define CALLS(CALL)                                                                              \
	CALL(read, ssize_t, -1, (int a, void *b, size_t c), (a, b, c))                           \
	CALL(write, ssize_t, -1, (int a, const void *b, size_t c), (a, b, c))                    \
	CALL(readv, ssize_t, -1, (int a, const struct iovec *b, int c), (a, b, c))               \
	CALL(writev, ssize_t, -1, (int a, const struct iovec *b, int c), (a, b, c))              \
	CALL(pread, ssize_t, -1, (int a, void *b, size_t c, off_t d), (a, b, c, d))              \
	CALL(recv, ssize_t, -1, (int a, void *b, size_t c, int d), (a, b, c, d))                 \
	CALL(sendmsg, ssize_t, -1, (int a, const struct msghdr *b, int c), (a, b, c))            \
	CALL(recvmsg, ssize_t, -1, (int a, struct msghdr *b, int c), (a, b, c))                  \
	CALL(sendto, ssize_t, -1,                                                                \
	     (int a, const void *b, size_t c, int d, const struct sockaddr *e, socklen_t f),     \
	     (a, b, c, d, e, f))                                                                 \
	CALL(socket, int, -1, (int a, int b, int c), (a, b, c))                                  \
	CALL(socketpair, int, -1, (int a, int b, int c, int d[2]), (a, b, c, d))                 \
	CALL(bind, int, -1, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))           \
	CALL(listen, int, -1, (int a, int b), (a, b))                                            \
	CALL(connect, int, -1, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))        \
	CALL(accept4, int, -1, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c, d))   \
	CALL(setsockopt, int, -1, (int a, int b, int c, const void *d, socklen_t e),             \
	     (a, b, c, d, e))                                                                    \
	CALL(getsockname, int, -1, (int a, struct sockaddr *b, socklen_t *c), (a, b, c))         \
	CALL(shutdown, int, -1, (int a, int b), (a, b))                                          \
	CALL(epoll_create1, int, -1, (int a), (a))                                               \
	CALL(epoll_wait, int, -1, (int a, struct epoll_event *b, int c, int d), (a, b, c, d))    \
	CALL(signalfd, int, -1, (int a, const sigset_t *b, int c), (a, b, c))                    \
	CALL(pipe2, int, -1, (int a[2], int b), (a, b))                                          \
	CALL(dup2, int, -1, (int a, int b), (a, b))                                              \
	CALL(dup3, int, -1, (int a, int b, int c), (a, b, c))                                    \
	CALL(fork, pid_t, -1, (void), ())                                                        \
	CALL(execve, int, -1, (const char *a, char *const b[], char *const c[]), (a, b, c))      \
	CALL(execveat, int, -1, (int a, const char *b, char *const c[], char *const d[], int e), \
	     (a, b, c, d, e))                                                                    \
	CALL(kill, int, -1, (pid_t a, int b), (a, b))                                            \
	CALL(setsid, pid_t, -1, (void), ())                                                      \
	CALL(setrlimit, int, -1, (__rlimit_resource_t a, const struct rlimit *b), (a, b))        \
	CALL(memfd_create, int, -1, (const char *a, unsigned int b), (a, b))                     \
	CALL(ftruncate, int, -1, (int a, off_t b), (a, b))                                       \
	CALL(fstat, int, -1, (int a, struct stat *b), (a, b))                                    \
	CALL(fsync, int, -1, (int a), (a))                                                       \
	CALL(renameat, int, -1, (int a, const char *b, int c, const char *d), (a, b, c, d))      \
	CALL(unlinkat, int, -1, (int a, const char *b, int c), (a, b, c))                        \
	CALL(mkdirat, int, -1, (int a, const char *b, mode_t c), (a, b, c))                      \
	CALL(mkdir, int, -1, (const char *a, mode_t b), (a, b))                                  \
	CALL(unlink, int, -1, (const char *a), (a))                                              \
	CALL(chmod, int, -1, (const char *a, mode_t b), (a, b))                                  \
	CALL(opendir, DIR *, NULL, (const char *a), (a))                                         \
	CALL(fopen, FILE *, NULL, (const char *a, const char *b), (a, b))                        \
	CALL(fopencookie, FILE *, NULL, (void *a, const char *b, cookie_io_functions_t c),       \
	     (a, b, c))                                                                          \
	CALL(tee, ssize_t, -1, (int a, int b, size_t c, unsigned int d), (a, b, c, d))           \
	CALL(getrandom, ssize_t, -1, (void *a, size_t b, unsigned int c), (a, b, c))             \
	CALL(mmap, void *, MAP_FAILED, (void *a, size_t b, int c, int d, int e, off_t f),        \
	     (a, b, c, d, e, f))

/* With parameters that are not always there, or that the real one cannot be looked up for; they are written out below. */
#define OTHERS(CALL) \
	CALL(open)   \
	CALL(openat) \
	CALL(poll) CALL(epoll_ctl) CALL(fcntl) CALL(prctl) CALL(malloc) CALL(calloc) CALL(realloc)

#define NUMBER(name, ...) AT_##name,
enum { CALLS(NUMBER) OTHERS(NUMBER) CALL_COUNT };

#define NAME(name, ...) #name,
/* Read by tests/syscall-faults. */
const char *const fault_names[CALL_COUNT + 1] = { CALLS(NAME) OTHERS(NAME) };

static _Atomic unsigned int own_counts[CALL_COUNT + 1];
static _Atomic unsigned int *counts = own_counts; /* the last one: whether the call has failed */
static int failing = -1;
static unsigned int failing_nth;
static int failing_errno;
static bool is_on;

static bool fails(int call)
{
	unsigned int nth;

	if (!is_on)
		return false;
	nth = 1 + atomic_fetch_add(&counts[call], 1);
	if (call != failing || nth != failing_nth)
		return false;
	atomic_store(&counts[CALL_COUNT], 1);
	errno = failing_errno;
	return true;
}

#define FUNCTION(name, type, failure, parameters, arguments)                           \
	type name parameters                                                           \
	{                                                                              \
		static type(*_Atomic real) parameters;                                 \
                                                                                       \
		if (real == NULL)                                                      \
			real = (type(*) parameters)(uintptr_t)dlsym(RTLD_NEXT, #name); \
		return fails(AT_##name) ? failure : real arguments;                    \
	}
CALLS(FUNCTION)

ssize_t __read_chk(int fd, void *out, size_t size, size_t room);
ssize_t __read_chk(int fd, void *out, size_t size, size_t room)
{
	return size <= room ? read(fd, out, size) : -1;
}

ssize_t __recv_chk(int fd, void *out, size_t size, size_t room, int flags);
ssize_t __recv_chk(int fd, void *out, size_t size, size_t room, int flags)
{
	return size <= room ? recv(fd, out, size, flags) : -1;
}

int __poll_chk(struct pollfd *polls, nfds_t count, int ms, size_t room);
int __poll_chk(struct pollfd *polls, nfds_t count, int ms, size_t room)
{
	return count * sizeof(*polls) <= room ? poll(polls, count, ms) : -1;
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(arguments, mode_t) : 0;
}

int openat(int directory, const char *path, int flags, ...)
{
	static int (*_Atomic real)(int, const char *, int, ...);
	va_list arguments;
	mode_t mode;

	if (real == NULL)
		real = (int (*)(int, const char *, int, ...))(uintptr_t)dlsym(RTLD_NEXT, "openat");
	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails(AT_openat) ? -1 : real(directory, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	static int (*_Atomic real)(const char *, int, ...);
	va_list arguments;
	mode_t mode;

	if (real == NULL)
		real = (int (*)(const char *, int, ...))(uintptr_t)dlsym(RTLD_NEXT, "open");
	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails(AT_open) ? -1 : real(path, flags, mode);
}

/* One that does not wait is not interrupted. */
int poll(struct pollfd *polls, nfds_t count, int ms)
{
	static int (*_Atomic real)(struct pollfd *, nfds_t, int);

	if (real == NULL)
		real = (int (*)(struct pollfd *, nfds_t, int))(uintptr_t)dlsym(RTLD_NEXT, "poll");
	return ms != 0 && fails(AT_poll) ? -1 : real(polls, count, ms);
}

/* Only the first watch of a descriptor wants memory. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	static int (*_Atomic real)(int, int, int, struct epoll_event *);

	if (real == NULL)
		real = (int (*)(int, int, int, struct epoll_event *))(uintptr_t)dlsym(RTLD_NEXT,
										      "epoll_ctl");
	return operation == EPOLL_CTL_ADD && fails(AT_epoll_ctl) ?
		       -1 :
		       real(epoll, operation, fd, event);
}

int fcntl(int fd, int command, ...)
{
	static int (*_Atomic real)(int, int, ...);
	va_list arguments;
	void *argument;

	if (real == NULL)
		real = (int (*)(int, int, ...))(uintptr_t)dlsym(RTLD_NEXT, "fcntl");
	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return command == F_DUPFD_CLOEXEC && fails(AT_fcntl) ? -1 : real(fd, command, argument);
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int prctl(int option, ...)
{
	static int (*_Atomic real)(int, ...);
	unsigned long values[4];
	va_list arguments;

	if (real == NULL)
		real = (int (*)(int, ...))(uintptr_t)dlsym(RTLD_NEXT, "prctl");
	va_start(arguments, option);
	for (int i = 0; i < 4; i++)
		values[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	return fails(AT_prctl) ? -1 : real(option, values[0], values[1], values[2], values[3]);
}

/* dlsym itself wants memory. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return fails(AT_malloc) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(AT_calloc) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(AT_realloc) ? NULL : __libc_realloc(old, size);
}

/* libseccomp 2.5 follows pointers that its own failed allocations left empty; a gateway does this once, before any client. */
int seccomp_load(const void *filter);
int seccomp_load(const void *filter)
{
	int (*real)(const void *) =
		(int (*)(const void *))(uintptr_t)dlsym(RTLD_NEXT, "seccomp_load");
	bool was_on = is_on;
	int result;

	is_on = false;
	result = real(filter);
	is_on = was_on;
	return result;
}

/* Programs that mcpgated starts do not inherit it. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAULT_COUNTS"), *call = getenv("FAULT_CALL");
	void *at = MAP_FAILED;
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		at = mmap(NULL, sizeof(own_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return;
	close(fd);
	counts = at;
	for (int i = 0; call != NULL && i < CALL_COUNT; i++)
		if (strcmp(call, fault_names[i]) == 0)
			failing = i;
	if (failing >= 0) {
		failing_nth = (unsigned int)atoi(getenv("FAULT_NTH"));
		failing_errno = atoi(getenv("FAULT_ERRNO"));
	}
	unsetenv("LD_PRELOAD");
	unsetenv("FAULT_COUNTS");
	is_on = true;
}

#else

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* SHIM is the path of a file: the real program in its first line, then its environment, a variable a line. */
int main(int argc, char **argv)
{
	static char text[4096];
	char *environment[16] = { NULL };
	size_t count = 0;
	FILE *file = fopen(SHIM, "re");
	char *rest = text, *program;

	(void)argc;
	if (file == NULL || fread(text, 1, sizeof(text) - 1, file) == 0)
		return 127;
	fclose(file);
	program = strsep(&rest, "\n");
	while (rest != NULL && *rest != '\0' && count < 15)
		environment[count++] = strsep(&rest, "\n");
	execve(program, argv, environment);
	return 127;
}

#endif
