/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for seccomp(2), made by hand: an allow-list of arguments is no form that libseccomp has, and numbers must be
 * known that are newer than it. It looks at the architecture, at the number, then goes through the tables below;
 * of arguments only the lower half is looked at where the kernel does the same (int).
 *
 * Errors are those of a kernel without the feature, where there is one: programs know how to go on without it.
 */
#include "keeper/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Calls newer than the C library: from here on they have the same distance on every processor. */
#define NEWER(number) (SYS_landlock_create_ruleset - 444 + (number))
#define X32_BIT 0x40000000U
/* Beyond the last that was looked at, and in the x32 ABI, which begins far above, nothing is known to be harmless. */
#define LAST_KNOWN NEWER(470)

#define SOCKET_TYPE 0xf /* without its flags */
#define NAMESPACES                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
#define SET_ID_BITS (S_ISUID | S_ISGID)
#define IOPRIO_WHO_PROCESS 1
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* ---- the tables ---- */

struct refusal {
	int number;
	int error;
};

/* clang-format off */
static const struct refusal always[] = {
	/* other processes, whoever's they are */
	{ SYS_ptrace, EPERM }, { SYS_process_vm_readv, EPERM }, { SYS_process_vm_writev, EPERM },
	{ SYS_kcmp, EPERM }, { SYS_pidfd_getfd, EPERM }, { SYS_process_madvise, EPERM },
	{ NEWER(448) /* process_mrelease */, EPERM }, { SYS_move_pages, EPERM },
	{ SYS_migrate_pages, EPERM },
	/* with the lock of a pipe held; see syscall_filter_enter_always for their kin */
	{ SYS_tee, EINVAL }, { SYS_vmsplice, EINVAL },
	/* what would do the work of others unseen */
	{ SYS_io_uring_setup, ENOSYS }, { SYS_io_uring_enter, ENOSYS },
	{ SYS_io_uring_register, ENOSYS },
	/* its flags are behind a pointer; without it the C library takes clone */
	{ SYS_clone3, ENOSYS },
	/* likewise openat2: the C library takes openat */
	{ SYS_openat2, ENOSYS },
	/* memory and queues that all processes of a user share */
#ifdef SYS_shmget
	{ SYS_shmget, ENOSYS }, { SYS_shmat, ENOSYS }, { SYS_shmctl, ENOSYS },
	{ SYS_semget, ENOSYS }, { SYS_semctl, ENOSYS },
	{ SYS_msgget, ENOSYS }, { SYS_msgsnd, ENOSYS }, { SYS_msgrcv, ENOSYS },
	{ SYS_msgctl, ENOSYS },
#endif
#ifdef SYS_semop
	{ SYS_semop, ENOSYS },
#endif
#ifdef SYS_semtimedop
	{ SYS_semtimedop, ENOSYS },
#endif
	{ SYS_mq_open, ENOSYS }, { SYS_mq_unlink, ENOSYS },
	/* calls that hide others in themselves, on old processors */
#ifdef SYS_socketcall
	{ SYS_socketcall, ENOSYS },
#endif
#ifdef SYS_ipc
	{ SYS_ipc, ENOSYS },
#endif
	/* keys of the user */
	{ SYS_keyctl, EPERM }, { SYS_add_key, EPERM }, { SYS_request_key, EPERM },
	/* namespaces and the file system as a whole */
	{ SYS_setns, EPERM }, { SYS_mount, EPERM }, { SYS_umount2, EPERM },
	{ SYS_pivot_root, EPERM }, { SYS_chroot, EPERM }, { SYS_fsopen, EPERM },
	{ SYS_fsconfig, EPERM }, { SYS_fsmount, EPERM }, { SYS_fspick, EPERM },
	{ SYS_move_mount, EPERM }, { SYS_open_tree, EPERM }, { SYS_mount_setattr, EPERM },
	{ NEWER(467) /* open_tree_attr */, EPERM }, { SYS_quotactl, EPERM },
	{ NEWER(443) /* quotactl_fd */, EPERM }, { SYS_open_by_handle_at, EPERM },
	{ SYS_fanotify_init, EPERM }, { SYS_swapon, EPERM }, { SYS_swapoff, EPERM },
	/* the kernel and its less trodden paths */
	{ SYS_bpf, EPERM }, { SYS_perf_event_open, EPERM }, { SYS_userfaultfd, EPERM },
	{ SYS_init_module, EPERM }, { SYS_finit_module, EPERM }, { SYS_delete_module, EPERM },
	{ SYS_kexec_load, EPERM }, { SYS_reboot, EPERM }, { SYS_syslog, EPERM },
	{ SYS_acct, EPERM }, { SYS_settimeofday, EPERM }, { SYS_clock_settime, EPERM },
	{ SYS_sethostname, EPERM }, { SYS_setdomainname, EPERM },
	/* attributes by which a file is given to others, or marked */
	{ SYS_fchown, EPERM }, { SYS_fchownat, EPERM },
#ifdef SYS_chown
	{ SYS_chown, EPERM }, { SYS_lchown, EPERM },
#endif
#ifdef SYS_chown32
	{ SYS_chown32, EPERM }, { SYS_lchown32, EPERM }, { SYS_fchown32, EPERM },
#endif
	{ SYS_setxattr, ENOTSUP }, { SYS_lsetxattr, ENOTSUP }, { SYS_fsetxattr, ENOTSUP },
	{ SYS_removexattr, ENOTSUP }, { SYS_lremovexattr, ENOTSUP },
	{ SYS_fremovexattr, ENOTSUP }, { NEWER(463) /* setxattrat */, ENOTSUP },
	{ NEWER(466) /* removexattrat */, ENOTSUP }, { NEWER(469) /* file_setattr */, ENOTSUP },
};

/* Unless attributes are granted. */
static const struct refusal attributes[] = {
	{ SYS_fchmod, EPERM }, { SYS_fchmodat, EPERM }, { NEWER(452) /* fchmodat2 */, EPERM },
#ifdef SYS_chmod
	{ SYS_chmod, EPERM },
#endif
	{ SYS_utimensat, EPERM },
#ifdef SYS_utimensat_time64
	{ SYS_utimensat_time64, EPERM },
#endif
#ifdef SYS_utime
	{ SYS_utime, EPERM },
#endif
#ifdef SYS_utimes
	{ SYS_utimes, EPERM },
#endif
#ifdef SYS_futimesat
	{ SYS_futimesat, EPERM },
#endif
};

/* The argument must not have any of these bits. */
static const struct {
	struct refusal refusal;
	int argument;
	uint32_t bits;
} without_bits[] = {
	/* The first bytes of a TCP connection without connect(2), which Landlock does not see. */
	{ { SYS_sendto, EOPNOTSUPP }, 3, MSG_FASTOPEN },
	{ { SYS_sendmsg, EOPNOTSUPP }, 2, MSG_FASTOPEN },
	{ { SYS_sendmmsg, EOPNOTSUPP }, 3, MSG_FASTOPEN },
	{ { SYS_clone, EPERM }, CLONE_FLAGS, NAMESPACES },
	{ { SYS_unshare, EPERM }, 0, NAMESPACES | CLONE_NEWTIME },
	/* Programs that run with the rights of the server's user, whoever starts them. */
	{ { SYS_fchmod, EPERM }, 1, SET_ID_BITS },
	{ { SYS_fchmodat, EPERM }, 2, SET_ID_BITS },
	{ { NEWER(452) /* fchmodat2 */, EPERM }, 2, SET_ID_BITS },
	{ { SYS_mknodat, EPERM }, 2, SET_ID_BITS },
#ifdef SYS_chmod
	{ { SYS_chmod, EPERM }, 1, SET_ID_BITS },
	{ { SYS_mknod, EPERM }, 1, SET_ID_BITS },
	{ { SYS_creat, EPERM }, 1, SET_ID_BITS },
#endif
};

/* The argument must be this: the calling process, and nobody else. */
static const struct {
	int number;
	int argument;
	uint32_t value;
} of_itself[] = {
	{ SYS_prlimit64, 0, 0 },
	{ SYS_sched_setaffinity, 0, 0 },
	{ SYS_sched_setscheduler, 0, 0 },
	{ SYS_sched_setparam, 0, 0 },
	{ SYS_sched_setattr, 0, 0 },
};

/* Processes are named in two arguments here. */
static const struct {
	int number;
	uint32_t which;
} of_itself_alone[] = {
	{ SYS_setpriority, PRIO_PROCESS },
	{ SYS_ioprio_set, IOPRIO_WHO_PROCESS },
};
/* clang-format on */

/* ---- the program ---- */

#define CODE_MAX 512

struct program {
	struct sock_filter code[CODE_MAX];
	size_t length;
};

static void put_instruction(struct program *program, uint16_t code, uint8_t if_true,
			    uint8_t if_false, uint32_t value)
{
	CHECK(program->length < CODE_MAX);
	program->code[program->length++] = (struct sock_filter){ code, if_true, if_false, value };
}

static void put_load(struct program *program, size_t offset)
{
	put_instruction(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* The lower half. */
static void load_argument(struct program *program, int argument)
{
	size_t half = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0;

	put_load(program,
		 offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t) + half);
}

static void put_return(struct program *program, int error)
{
	put_instruction(program, BPF_RET | BPF_K, 0, 0,
			error == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* What follows, up to end_when, is for what was loaded last being this value. */
static size_t when(struct program *program, uint32_t value)
{
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, value);
	return program->length - 1;
}

/* What has not been refused since is allowed; elsewhere, what was loaded last is still there. */
static void end_when(struct program *program, size_t begin)
{
	size_t distance;

	put_return(program, 0);
	distance = program->length - begin - 1;
	CHECK(distance <= UINT8_MAX);
	program->code[begin].jf = (uint8_t)distance;
}

static void put_refusal(struct program *program, const struct refusal *refusal)
{
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)refusal->number);
	put_return(program, refusal->error);
}

static void refuse_bits(struct program *program, uint32_t bits, int error)
{
	put_instruction(program, BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
	put_return(program, error);
}

static void refuse_value(struct program *program, uint32_t value, int error)
{
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
	put_return(program, error);
}

static void refuse_all_but(struct program *program, uint32_t value, int error)
{
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value);
	put_return(program, error);
}

static void refuse_all_but_these(struct program *program, uint32_t one, uint32_t other, int error)
{
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, one);
	put_instruction(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, other);
	put_return(program, error);
}

/* ---- sockets ---- */

/* The type is masked in place: nothing else is looked at but by loading it again. */
static void load_type(struct program *program)
{
	load_argument(program, 1);
	put_instruction(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, SOCKET_TYPE);
}

static void put_internet(struct program *program, const struct syscall_grants *grants)
{
	size_t type;

	load_type(program);
	if (grants->tcp) {
		type = when(program, SOCK_STREAM);
		load_argument(program, 2);
		refuse_all_but_these(program, 0, IPPROTO_TCP, EPROTONOSUPPORT);
		end_when(program, type);
	}
	if (grants->udp) {
		type = when(program, SOCK_DGRAM);
		load_argument(program, 2);
		refuse_all_but_these(program, 0, IPPROTO_UDP, EPROTONOSUPPORT);
		end_when(program, type);
	}
	put_return(program, EPROTONOSUPPORT);
}

static void put_socket(struct program *program, const struct syscall_grants *grants)
{
	static const uint32_t families[] = { AF_INET, AF_INET6 };
	size_t begin = when(program, SYS_socket);
	size_t family;

	load_argument(program, 0);
	for (size_t i = 0; (grants->tcp || grants->udp) && i < ARRAY_LEN(families); i++) {
		family = when(program, families[i]);
		put_internet(program, grants);
		end_when(program, family);
	}
	if (grants->unix_sockets)
		end_when(program, when(program, AF_UNIX));
	/* What interfaces and addresses there are; the resolver asks. */
	family = when(program, AF_NETLINK);
	load_argument(program, 2);
	refuse_all_but(program, NETLINK_ROUTE, EPROTONOSUPPORT);
	end_when(program, family);
	put_return(program, EAFNOSUPPORT);
	end_when(program, begin);
}

/*
 * A pair is connected for good, and reaches nobody else; node and others speak with their children by it. One of
 * datagrams could be connected to a path instead.
 */
static void put_socketpair(struct program *program, const struct syscall_grants *grants)
{
	size_t begin = when(program, SYS_socketpair);

	load_argument(program, 0);
	refuse_all_but(program, AF_UNIX, EAFNOSUPPORT);
	if (!grants->unix_sockets) {
		load_type(program);
		refuse_all_but_these(program, SOCK_STREAM, SOCK_SEQPACKET, EPROTONOSUPPORT);
	}
	end_when(program, begin);
}

/* Options by which TCP connects or speaks past connect(2). */
static void put_setsockopt(struct program *program)
{
	static const uint32_t options[] = { TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_KEY,
					    TCP_ULP };
	size_t begin = when(program, SYS_setsockopt);
	size_t level;

	load_argument(program, 1);
	level = when(program, IPPROTO_TCP);
	load_argument(program, 2);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		refuse_value(program, options[i], ENOPROTOOPT);
	end_when(program, level);
	end_when(program, begin);
}

static void put_sockets(struct program *program, const struct syscall_grants *grants)
{
	static const struct refusal listen_refusal = { SYS_listen, EACCES };

	put_socket(program, grants);
	put_socketpair(program, grants);
	put_setsockopt(program);
	/* Without bind(2), which Landlock sees, the kernel chooses a port. */
	if (!grants->listen)
		put_refusal(program, &listen_refusal);
}

/* ---- the rest ---- */

static void put_refusals_of(struct program *program, const struct refusal *refusals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_refusal(program, &refusals[i]);
}

/* A file may be made with the bits that chmod is refused. The mode counts only where one is made. */
static void put_open(struct program *program, int number, int flags)
{
	size_t begin = when(program, (uint32_t)number);

	load_argument(program, flags);
	put_instruction(program, BPF_JMP | BPF_JSET | BPF_K, 1, 0,
			O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	put_return(program, 0);
	load_argument(program, flags + 1);
	refuse_bits(program, SET_ID_BITS, EPERM);
	end_when(program, begin);
}

/*
 * What file systems can do to a file or directory that is open, if only for reading: flags, versions, encryption and
 * verity of ext4 and others, attributes of XFS, snapshots of Btrfs. Landlock sees the ioctls of devices alone.
 */
static void put_ioctl(struct program *program)
{
	static const uint32_t types[] = { 'f', 'v', 'X', 0x94 /* Btrfs */ };
	size_t begin = when(program, SYS_ioctl);

	load_argument(program, 1);
	put_instruction(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, _IOC_TYPEMASK << _IOC_TYPESHIFT);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		refuse_value(program, types[i] << _IOC_TYPESHIFT, ENOTTY);
	end_when(program, begin);
}

/* Whoever holds a lease of a program has all who execute it wait, the keeper with them. */
static void put_lease(struct program *program, uint32_t fcntl_number)
{
	size_t begin = when(program, fcntl_number);

	load_argument(program, 1);
	refuse_value(program, F_SETLEASE, EINVAL);
	end_when(program, begin);
}

static void put_arguments(struct program *program)
{
	size_t begin;

	for (size_t i = 0; i < ARRAY_LEN(without_bits); i++) {
		begin = when(program, (uint32_t)without_bits[i].refusal.number);
		load_argument(program, without_bits[i].argument);
		refuse_bits(program, without_bits[i].bits, without_bits[i].refusal.error);
		end_when(program, begin);
	}
	for (size_t i = 0; i < ARRAY_LEN(of_itself); i++) {
		begin = when(program, (uint32_t)of_itself[i].number);
		load_argument(program, of_itself[i].argument);
		refuse_all_but(program, of_itself[i].value, EPERM);
		end_when(program, begin);
	}
	for (size_t i = 0; i < ARRAY_LEN(of_itself_alone); i++) {
		begin = when(program, (uint32_t)of_itself_alone[i].number);
		load_argument(program, 0);
		refuse_all_but(program, of_itself_alone[i].which, EPERM);
		load_argument(program, 1);
		refuse_all_but(program, 0, EPERM);
		end_when(program, begin);
	}
}

static void make_program(struct program *program, const struct syscall_grants *grants)
{
	put_load(program, offsetof(struct seccomp_data, arch));
	refuse_all_but(program, seccomp_arch_native(), ENOSYS);
	put_load(program, offsetof(struct seccomp_data, nr));
	put_instruction(program, BPF_JMP | BPF_JGT | BPF_K, 0, 1, LAST_KNOWN);
	put_return(program, ENOSYS);
	put_refusals_of(program, always, ARRAY_LEN(always));
	if (!grants->attributes)
		put_refusals_of(program, attributes, ARRAY_LEN(attributes));
	put_sockets(program, grants);
	put_arguments(program);
	put_ioctl(program);
	put_lease(program, SYS_fcntl);
#ifdef SYS_open
	put_open(program, SYS_open, 1);
#endif
	put_open(program, SYS_openat, 2);
	put_return(program, 0);
}

/* What makes others wait: the lock of a pipe, the lease of a program. Of each kind of program that the processor runs. */
static void make_always(struct program *program)
{
	static const struct {
		uint32_t arch;
		uint32_t numbers[4];
		uint32_t fcntls[2];
	} kinds[] = {
#if defined(__x86_64__)
		{ AUDIT_ARCH_X86_64,
		  { SYS_splice, SYS_sendfile, X32_BIT | SYS_splice, X32_BIT | SYS_sendfile },
		  { SYS_fcntl, X32_BIT | SYS_fcntl } },
		{ AUDIT_ARCH_I386, { 313, 187, 239, 313 }, { 55, 221 } },
#elif defined(__aarch64__)
		{ AUDIT_ARCH_AARCH64,
		  { SYS_splice, SYS_sendfile, SYS_splice, SYS_sendfile },
		  { SYS_fcntl, SYS_fcntl } },
		{ AUDIT_ARCH_ARM, { 340, 187, 239, 340 }, { 55, 221 } },
#else
		{ 0,
		  { SYS_splice, SYS_sendfile, SYS_splice, SYS_sendfile },
		  { SYS_fcntl, SYS_fcntl } },
#endif
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		uint32_t arch = kinds[i].arch != 0 ? kinds[i].arch : seccomp_arch_native();
		size_t begin;

		put_load(program, offsetof(struct seccomp_data, arch));
		begin = when(program, arch);
		put_load(program, offsetof(struct seccomp_data, nr));
		for (size_t j = 0; j < ARRAY_LEN(kinds[i].numbers); j++)
			refuse_value(program, kinds[i].numbers[j], EINVAL);
		for (size_t j = 0; j < ARRAY_LEN(kinds[i].fcntls); j++)
			put_lease(program, kinds[i].fcntls[j]);
		end_when(program, begin);
	}
	put_return(program, 0);
}

static int program_enter(struct program *program)
{
	struct sock_fprog filter = { .len = (unsigned short)program->length,
				     .filter = program->code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

bool syscall_filter_is_known(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int syscall_filter_enter(const struct syscall_grants *grants)
{
	struct program program = { .length = 0 };

	make_program(&program, grants);
	return program_enter(&program);
}

void syscall_filter_enter_always(void)
{
	struct program program = { .length = 0 };

	make_always(&program);
	program_enter(&program);
}
