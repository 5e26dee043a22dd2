/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone3(2) has no function in the C library, and syscall(2) will not do: its return address would lie on the stack that
 * both use. So the few instructions are here.
 */
#include "keeper/new_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/at_end.h"
#include "base/check.h"

/* ---- descriptors ---- */

/* close_range(2), and a plain loop for where it is forbidden. REL-32. */

#define LAST_WITHOUT_RANGE \
	4095 /* the loop ends here: where it is needed, fewer descriptors are open */

void descriptors_close_from(unsigned int first)
{
	if (close_range(first, UINT_MAX, 0) == 0)
		return;
	for (unsigned int fd = first; fd <= LAST_WITHOUT_RANGE; fd++)
		close((int)fd);
}

void descriptors_fill_standard(void)
{
	at_end(file_close) int fd = -1;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
}

void descriptors_set_cloexec(void)
{
	if (close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	for (int fd = 3; fd <= LAST_WITHOUT_RANGE; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int descriptors_arrange(int *fds, size_t count)
{
	/* First out of the way of the numbers that others are to get. */
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, (int)count);
		if (fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			close((int)i);
		else if (dup2(fds[i], (int)i) < 0)
			return -1;
	}
	descriptors_close_from((unsigned int)count);
	return 0;
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif

/* What a function may use of the stack below its own frame without a word, and some. */
#define BELOW_FRAME 512
/* More than `run` uses. */
#define STACK_BYTES (64 * 1024)

/* The first version of struct clone_args that has the last field; headers of an older kernel lack it. */
struct arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

#if defined(__x86_64__) && defined(SYS_clone3)

/* Returns the number, or a negative errno. The new process goes on on this stack, below what may be in use of it. */
static __attribute__((noinline)) long clone3(const struct arguments *arguments,
					     const struct new_process *process)
{
	long result = SYS_clone3;

	/* Registers by name: what the new process still needs must not be in rbp, which it clears to end its stack. */
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%rbx, %%rdi\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "sub %[below], %%rsp\n\t"
			 "and $-16, %%rsp\n\t"
			 "call *%%rdx\n\t"
			 "ud2\n"
			 "1:"
			 : "+a"(result)
			 : "D"(arguments), "S"(sizeof(*arguments)), "d"(process->run),
			   "b"(process), [below] "i"(BELOW_FRAME)
			 : "rcx", "r11", "memory", "cc");
	return result;
}

#else

static long clone3(not_used const struct arguments *arguments,
		   not_used const struct new_process *process)
{
	return -ENOSYS;
}

#endif

/* Without this the sanitizer would take what the other process had on the stack for what is to be there. */
static void forget_its_stack(void)
{
#ifdef __SANITIZE_ADDRESS__
	char *here = __builtin_frame_address(0);

	__asan_handle_no_return();
	__asan_unpoison_memory_region(here - STACK_BYTES, STACK_BYTES);
#endif
}

static pid_t new_process_clone(struct new_process *process)
{
	struct arguments arguments = { .flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD };
	long result;
	pid_t pid;

	if (process->shares_memory)
		arguments.flags |= CLONE_VM | CLONE_VFORK;
	process->has_no_handlers = true;
	process->is_in_group = process->cgroup_fd >= 0;
	if (process->is_in_group) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)process->cgroup_fd;
	}
	result = clone3(&arguments, process);
	if (process->shares_memory)
		forget_its_stack();
	if (result > 0)
		return (pid_t)result;
	/* Whatever it was that the kernel did not like, fork may do; and if not, its errno is the one that people know. */
	process->is_in_group = process->shares_memory = process->has_no_handlers = false;
	pid = fork();
	if (pid == 0)
		process->run(process);
	return pid;
}

pid_t new_process_make(struct new_process *process)
{
	sigset_t all, before;
	pid_t pid;
	int error;

	CHECK(process->run != NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = new_process_clone(process);
	error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}
