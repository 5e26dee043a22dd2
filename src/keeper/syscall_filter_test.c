/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program as the kernel would run it, for calls that nobody makes: each answer is looked at, whatever this machine,
 * its kernel and this user would say to the call itself. What a process finds is seen in tests/hostile-server.c. SEC-62.
 */
#include "keeper/syscall_filter.c"

#include <linux/fs.h>
#include <sys/mman.h>

#include "base/unit_test.h"

#define NONE 0
#define TCP 1
#define UDP 2
#define LISTEN 4
#define UNIX 8
#define ATTRIBUTES 16
#define ALL 31

struct call {
	int number;
	uint64_t args[6];
	unsigned int grants;
	int error; /* 0: it is allowed */
};

static struct program program;

static void make_for(unsigned int grants)
{
	const struct syscall_grants from = {
		.tcp = grants & TCP,
		.udp = grants & UDP,
		.listen = grants & LISTEN,
		.unix_sockets = grants & UNIX,
		.attributes = grants & ATTRIBUTES,
	};

	program.length = 0;
	make_program(&program, &from);
}

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	assert_true(offset % sizeof(word) == 0 && offset + sizeof(word) <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

/* What the program says: SECCOMP_RET_…. Jumps lead on, so it ends. */
static uint32_t run(const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t at = 0; at < program.length; at++) {
		const struct sock_filter *i = &program.code[at];
		bool is_true = false;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load_word(data, i->k);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			is_true = a == i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			is_true = a > i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			is_true = (a & i->k) != 0;
			break;
		default:
			fail_msg("an instruction that is not known: %u", i->code);
		}
		at += is_true ? i->jt : i->jf;
	}
	fail_msg("the program has no end");
	return 0;
}

static int error_of(uint32_t arch, uint32_t number, const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)number, .arch = arch };
	uint32_t result;

	memcpy(data.args, args, sizeof(data.args));
	result = run(&data);
	if (result == SECCOMP_RET_ALLOW)
		return 0;
	assert_int_equal(result & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	return (int)(result & SECCOMP_RET_DATA);
}

static void are_answered(const struct call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		make_for(calls[i].grants);
		error = error_of(seccomp_arch_native(), (uint32_t)calls[i].number, calls[i].args);
		if (error != calls[i].error)
			fail_msg("row %zu: %d instead of %d", i, error, calls[i].error);
	}
}

static void what_is_needed_is_allowed(void **state)
{
	static const struct call calls[] = {
		{ SYS_read, { 0 }, NONE, 0 },
		{ SYS_execve, { 0 }, NONE, 0 },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC }, NONE, 0 },
		{ SYS_clone, { [CLONE_FLAGS] = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND }, NONE, 0 },
		{ SYS_unshare, { CLONE_FILES }, NONE, 0 },
		{ SYS_connect, { 0 }, NONE, 0 },
		{ SYS_sendto, { 0, 0, 0, MSG_NOSIGNAL }, NONE, 0 },
		{ LAST_KNOWN, { 0 }, NONE, 0 },
		{ LAST_KNOWN + 1, { 0 }, ALL, ENOSYS },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

/* The numbers of another architecture, and of x32, mean other calls. */
static void other_numbers_are_refused(void **state)
{
	static const uint64_t args[6] = { 0 };

	make_for(ALL);
	assert_int_equal(error_of(seccomp_arch_native(), SYS_read, args), 0);
	assert_int_equal(error_of(seccomp_arch_native() ^ 1, SYS_read, args), ENOSYS);
	assert_int_equal(error_of(seccomp_arch_native(), X32_BIT | SYS_read, args), ENOSYS);
	assert_int_equal(error_of(seccomp_arch_native(), UINT32_MAX, args), ENOSYS);
}

/* Whatever is granted, and whatever the arguments are. */
static void others_are_never_reached(void **state)
{
	static const int refused[] = {
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_process_vm_writev,
		SYS_kcmp,
		SYS_pidfd_getfd,
		SYS_process_madvise,
		SYS_move_pages,
		SYS_migrate_pages,
		SYS_io_uring_setup,
		SYS_io_uring_enter,
		SYS_clone3,
		SYS_openat2,
		SYS_shmget,
		SYS_shmat,
		SYS_mq_open,
		SYS_keyctl,
		SYS_add_key,
		SYS_request_key,
		SYS_setns,
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_chroot,
		SYS_fsopen,
		SYS_fsmount,
		SYS_move_mount,
		SYS_open_tree,
		SYS_mount_setattr,
		SYS_open_by_handle_at,
		SYS_bpf,
		SYS_perf_event_open,
		SYS_userfaultfd,
		SYS_init_module,
		SYS_finit_module,
		SYS_kexec_load,
		SYS_reboot,
		SYS_clock_settime,
		SYS_settimeofday,
		SYS_fchown,
		SYS_fchownat,
		SYS_setxattr,
		SYS_fsetxattr,
		SYS_removexattr,
		SYS_tee,
		SYS_vmsplice,
		SYS_swapon,
		SYS_fanotify_init,
		SYS_quotactl,
		NEWER(448) /* process_mrelease */,
		NEWER(463) /* setxattrat */,
		NEWER(467) /* open_tree_attr */,
		NEWER(469) /* file_setattr */,
	};
	static const uint64_t args[][6] = {
		{ 0 },
		{ 1, 1, 1, 1, 1, 1 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
	};

	make_for(ALL);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		for (size_t j = 0; j < ARRAY_LEN(args); j++)
			if (error_of(seccomp_arch_native(), (uint32_t)refused[i], args[j]) == 0)
				fail_msg("row %zu is allowed", i);
}

static void a_process_may_change_itself_alone(void **state)
{
	static const struct call calls[] = {
		{ SYS_prlimit64, { 0, 7 }, NONE, 0 },
		{ SYS_prlimit64, { 1, 7 }, ALL, EPERM },
		{ SYS_sched_setaffinity, { 0 }, NONE, 0 },
		{ SYS_sched_setaffinity, { 1 }, ALL, EPERM },
		{ SYS_sched_setscheduler, { 0 }, NONE, 0 },
		{ SYS_sched_setscheduler, { 1 }, ALL, EPERM },
		{ SYS_sched_setparam, { 0 }, NONE, 0 },
		{ SYS_sched_setparam, { 1 }, ALL, EPERM },
		{ SYS_sched_setattr, { 0 }, NONE, 0 },
		{ SYS_sched_setattr, { 1 }, ALL, EPERM },
		{ SYS_setpriority, { PRIO_PROCESS, 0 }, NONE, 0 },
		{ SYS_setpriority, { PRIO_PROCESS, 1 }, ALL, EPERM },
		{ SYS_setpriority, { PRIO_PGRP, 0 }, ALL, EPERM },
		{ SYS_setpriority, { PRIO_USER, 0 }, ALL, EPERM },
		{ SYS_ioprio_set, { IOPRIO_WHO_PROCESS, 0 }, NONE, 0 },
		{ SYS_ioprio_set, { IOPRIO_WHO_PROCESS, 1 }, ALL, EPERM },
		{ SYS_ioprio_set, { 2, 0 }, ALL, EPERM },
		/* The kernel looks at the lower half alone. */
		{ SYS_prlimit64, { UINT64_C(1) << 32 | 1 }, ALL, EPERM },
		{ SYS_setpriority, { PRIO_PROCESS, UINT64_C(1) << 32 | 1 }, ALL, EPERM },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

static void no_namespace_is_made(void **state)
{
	static const uint64_t bits[] = {
		CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
	};

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		const struct call calls[] = {
			{ SYS_unshare, { bits[i] | CLONE_FILES }, ALL, EPERM },
			{ SYS_clone, { [CLONE_FLAGS] = bits[i] | 17 }, ALL, EPERM },
		};

		are_answered(calls, ARRAY_LEN(calls));
	}
	/* In clone this bit belongs to the signal. */
	are_answered(&(struct call){ SYS_unshare, { CLONE_NEWTIME }, ALL, EPERM }, 1);
}

/* No bit that lends a user's rights, on no way to make a file or to change it. */
static void no_file_lends_rights(void **state)
{
	static const uint64_t bits[] = { S_ISUID, S_ISGID };

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		const struct call calls[] = {
			{ SYS_fchmod, { 3, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_fchmodat, { 0, 0, 0700 | bits[i] }, ALL, EPERM },
			{ NEWER(452) /* fchmodat2 */, { 0, 0, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_mknodat, { 0, 0, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_openat, { 0, 0, O_CREAT, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_openat, { 0, 0, O_TMPFILE | O_RDWR, 0700 | bits[i] }, ALL, EPERM },
			/* The mode is not looked at: it may be any number. */
			{ SYS_openat, { 0, 0, O_RDWR, 0700 | bits[i] }, NONE, 0 },
			{ SYS_openat, { 0, 0, O_DIRECTORY, 0700 | bits[i] }, NONE, 0 },
#ifdef SYS_open
			{ SYS_open, { 0, O_CREAT, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_open, { 0, O_TMPFILE | O_RDWR, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_open, { 0, O_DIRECTORY, 0700 | bits[i] }, NONE, 0 },
#endif
#ifdef SYS_chmod
			{ SYS_chmod, { 0, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_mknod, { 0, 0700 | bits[i] }, ALL, EPERM },
			{ SYS_creat, { 0, 0700 | bits[i] }, ALL, EPERM },
#endif
		};

		are_answered(calls, ARRAY_LEN(calls));
	}
}

static void attributes_are_granted(void **state)
{
	static const struct call calls[] = {
		{ SYS_fchmod, { 3, 0700 }, ALL & ~ATTRIBUTES, EPERM },
		{ SYS_fchmod, { 3, 0700 }, ATTRIBUTES, 0 },
		{ SYS_fchmodat, { 0, 0, 0700 }, ALL & ~ATTRIBUTES, EPERM },
		{ SYS_fchmodat, { 0, 0, 0700 }, ATTRIBUTES, 0 },
		{ NEWER(452), { 0, 0, 0700 }, ALL & ~ATTRIBUTES, EPERM },
		{ NEWER(452), { 0, 0, 0700 }, ATTRIBUTES, 0 },
		{ SYS_utimensat, { 0 }, ALL & ~ATTRIBUTES, EPERM },
		{ SYS_utimensat, { 0 }, ATTRIBUTES, 0 },
		{ SYS_openat, { 0, 0, O_CREAT, 0644 }, NONE, 0 },
		{ SYS_mknodat, { 0, 0, S_IFIFO | 0600 }, NONE, 0 },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

/* Of whatever number: the file system looks at the type. */
static void file_systems_are_asked_for_nothing(void **state)
{
	static const struct call calls[] = {
		{ SYS_ioctl, { 3, FS_IOC_SETFLAGS }, ALL, ENOTTY },
		{ SYS_ioctl, { 3, FS_IOC_SETVERSION }, ALL, ENOTTY },
		{ SYS_ioctl, { 3, FS_IOC_FSSETXATTR }, ALL, ENOTTY },
		{ SYS_ioctl, { 3, _IO(0x94, 1) }, ALL, ENOTTY },
		{ SYS_ioctl, { 3, FIONREAD }, NONE, 0 },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

static void sockets_are_granted(void **state)
{
	static const struct call calls[] = {
		{ SYS_socket, { AF_INET, SOCK_STREAM, 0 }, TCP, 0 },
		{ SYS_socket, { AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP }, TCP, 0 },
		{ SYS_socket, { AF_INET, SOCK_STREAM, IPPROTO_SCTP }, ALL, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_STREAM, 262 /* MPTCP */ }, ALL, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_STREAM, 0 }, UDP, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, UDP, 0 },
		{ SYS_socket, { AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP }, UDP, 0 },
		{ SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_ICMP }, ALL, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, TCP, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_TCP }, ALL, EPROTONOSUPPORT },
		{ SYS_socket, { AF_INET, SOCK_SEQPACKET, 0 }, ALL, EPROTONOSUPPORT },
		{ SYS_socket,
		  { AF_INET, SOCK_STREAM, 0 },
		  UNIX | LISTEN | ATTRIBUTES,
		  EAFNOSUPPORT },
		{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, UNIX, 0 },
		{ SYS_socket, { AF_UNIX, SOCK_DGRAM, 0 }, UNIX, 0 },
		{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, ALL & ~UNIX, EAFNOSUPPORT },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, NONE, 0 },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER }, ALL, EPROTONOSUPPORT },
		{ SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, ALL, EAFNOSUPPORT },
		{ SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, ALL, EAFNOSUPPORT },
		{ SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, ALL, EAFNOSUPPORT },
		{ SYS_socketpair, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC }, NONE, 0 },
		{ SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET }, NONE, 0 },
		{ SYS_socketpair, { AF_UNIX, SOCK_DGRAM }, ALL & ~UNIX, EPROTONOSUPPORT },
		{ SYS_socketpair, { AF_UNIX, SOCK_DGRAM }, UNIX, 0 },
		{ SYS_socketpair, { AF_TIPC, SOCK_STREAM }, ALL, EAFNOSUPPORT },
		{ SYS_listen, { 3, 1 }, LISTEN, 0 },
		{ SYS_listen, { 3, 1 }, ALL & ~LISTEN, EACCES },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

/* Landlock sees connect(2) alone. */
static void nothing_connects_past_connect(void **state)
{
	static const struct call calls[] = {
		{ SYS_sendto, { 3, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL }, ALL, EOPNOTSUPP },
		{ SYS_sendmsg, { 3, 0, MSG_FASTOPEN }, ALL, EOPNOTSUPP },
		{ SYS_sendmmsg, { 3, 0, 1, MSG_FASTOPEN }, ALL, EOPNOTSUPP },
		{ SYS_setsockopt, { 3, IPPROTO_TCP, TCP_FASTOPEN }, ALL, ENOPROTOOPT },
		{ SYS_setsockopt, { 3, IPPROTO_TCP, TCP_FASTOPEN_CONNECT }, ALL, ENOPROTOOPT },
		{ SYS_setsockopt, { 3, IPPROTO_TCP, TCP_FASTOPEN_KEY }, ALL, ENOPROTOOPT },
		{ SYS_setsockopt, { 3, IPPROTO_TCP, TCP_ULP }, ALL, ENOPROTOOPT },
		{ SYS_setsockopt, { 3, IPPROTO_TCP, TCP_NODELAY }, NONE, 0 },
		{ SYS_setsockopt, { 3, SOL_SOCKET, TCP_ULP }, NONE, 0 },
	};

	are_answered(calls, ARRAY_LEN(calls));
}

/* REL-26: of servers that have no sandbox, too; everything else is theirs. */
static void no_server_makes_others_wait(void **state)
{
	static const uint64_t args[6] = { 0 };
	static const uint64_t lease[6] = { 3, F_SETLEASE, F_WRLCK };
	uint32_t arch = seccomp_arch_native();

	program.length = 0;
	make_always(&program);
	assert_int_equal(error_of(arch, SYS_splice, args), EINVAL);
	assert_int_equal(error_of(arch, SYS_sendfile, args), EINVAL);
	assert_int_equal(error_of(arch, SYS_fcntl, lease), EINVAL);
	assert_int_equal(error_of(arch, SYS_fcntl, args), 0);
	assert_int_equal(error_of(arch, SYS_read, args), 0);
	assert_int_equal(error_of(arch, SYS_ptrace, args), 0);
#ifdef __x86_64__
	assert_int_equal(error_of(arch, X32_BIT | SYS_splice, args), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 313 /* splice */, args), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 187 /* sendfile */, args), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 239 /* sendfile64 */, args), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, SYS_splice, args), 0);
	assert_int_equal(error_of(arch, X32_BIT | SYS_fcntl, lease), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 55 /* fcntl */, lease), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 221 /* fcntl64 */, lease), EINVAL);
	assert_int_equal(error_of(AUDIT_ARCH_I386, 221 /* fcntl64 */, args), 0);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_needed_is_allowed),
		cmocka_unit_test(other_numbers_are_refused),
		cmocka_unit_test(others_are_never_reached),
		cmocka_unit_test(a_process_may_change_itself_alone),
		cmocka_unit_test(no_namespace_is_made),
		cmocka_unit_test(no_file_lends_rights),
		cmocka_unit_test(attributes_are_granted),
		cmocka_unit_test(file_systems_are_asked_for_nothing),
		cmocka_unit_test(sockets_are_granted),
		cmocka_unit_test(nothing_connects_past_connect),
		cmocka_unit_test(no_server_makes_others_wait),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
