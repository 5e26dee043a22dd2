/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of measures, in an order in which each is still permitted: the user and the capabilities first,
 * the filter of system calls last. Of the gateway only this is known: it works with descriptors that it has been
 * given, and it may have to fetch from the net.
 */
#include "keeper/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "keeper/gateway_entry.h"
#include "keeper/syscall_filter.h"
#include "obs/log.h"

/* ---- Landlock ---- */

/*
 * Rights that the kernel does not know are left out silently: sandbox_check has refused configurations that
 * need them.
 */

#define RULE_NET_PORT 2
#define FS_OF_A_FILE                                                                       \
	((uint64_t)(LANDLOCK_FS_EXECUTE | LANDLOCK_FS_WRITE_FILE | LANDLOCK_FS_READ_FILE | \
		    LANDLOCK_FS_TRUNCATE | LANDLOCK_FS_IOCTL_DEV))

struct net_port_rule {
	uint64_t allowed;
	uint64_t port;
};

/* Asked once: a confined process may not ask. */
int landlock_version(void)
{
	static int version;

	if (version == 0)
		version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
				       LANDLOCK_CREATE_RULESET_VERSION);
	return version;
}

/* Each version knows so many rights of the file system, from bit 0 on. */
static uint64_t known_fs(int version)
{
	static const unsigned char counts[] = { 0, 13, 14, 15, 15, 16 };
	size_t at = (size_t)version < ARRAY_LEN(counts) ? (size_t)version : ARRAY_LEN(counts) - 1;

	return (UINT64_C(1) << counts[at]) - 1;
}

int landlock_open(const struct landlock_rights *rights)
{
	int version = landlock_version();
	struct landlock_rights known = *rights;
	size_t size = offsetof(struct landlock_rights, net);

	known.fs &= known_fs(version);
	if (version >= LANDLOCK_VERSION_NET)
		size = offsetof(struct landlock_rights, scoped);
	if (version >= LANDLOCK_VERSION_SCOPED)
		size = sizeof(known);
	return (int)syscall(SYS_landlock_create_ruleset, &known, size, 0);
}

int landlock_allow_open(int ruleset, int fd, uint64_t fs)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	rule.allowed_access = fs & known_fs(landlock_version());
	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_A_FILE;
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/*
 * Grants rights on a file, or on a directory and everything below it; for a file, rights that apply
 * only to directories are left out.
 */
static int landlock_allow_path(int ruleset, const char *path, uint64_t fs)
{
	at_end(file_close) int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return landlock_allow_open(ruleset, fd, fs);
}

int landlock_allow_port(int ruleset, uint16_t port, uint64_t net)
{
	struct net_port_rule rule = { net, port };

	return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0);
}

int landlock_enforce(int ruleset)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* ---- capabilities ---- */

/* capabilities(7) without the library. */

int capabilities_drop_all(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	/* Those that a unit granted to the daemon, like binding low ports. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Up to the last that the kernel knows. Without CAP_SETPCAP the first call fails already. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
	return (int)syscall(SYS_capset, &header, none);
}

int capabilities_use_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (syscall(SYS_capget, &header, own) < 0)
		return -1;
	own[0].effective = 1U << CAP_SYS_ADMIN;
	own[1].effective = 0;
	return (int)syscall(SYS_capset, &header, own);
}

bool capabilities_reach_users(void)
{
	static const uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 }, { 0, 0, 0 } };

	return syscall(SYS_capget, &header, own) == 0 && (own[0].effective & needed) == needed;
}

#define SOCKET_TYPE 0xf /* without its flags */
#define NAME_SERVER_PORT 53

/* ---- user and rights ---- */

static int drop_user(not_used const struct confinement *what, struct error *err)
{
	const struct passwd *user;

	if (geteuid() != 0)
		return error_set(err, ERROR_INVALID, "the daemon was not started as root");
	user = getpwnam("mcpgated");
	if (user == NULL)
		user = getpwnam("nobody");
	if (user == NULL)
		return error_set(err, ERROR_INVALID,
				 "there is neither a user mcpgated nor a user nobody");
	if (setgroups(0, NULL) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return error_set_errno(err, "to user %s", user->pw_name);
	return 0;
}

static int drop_capabilities(not_used const struct confinement *what, struct error *err)
{
	return capabilities_drop_all() == 0 ? 0 : error_set_errno(err, "capset");
}

static int forbid_new_privileges(not_used const struct confinement *what, struct error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set_errno(err, "prctl");
	return 0;
}

/* Also keeps processes of the same user from reading its memory through /proc. */
static int forbid_dumps(not_used const struct confinement *what, struct error *err)
{
	struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return error_set_errno(err, "prctl or setrlimit");
	return 0;
}

/* ---- Landlock ---- */

/*
 * What getaddrinfo reads, and the libraries that it loads for the sources in nsswitch.conf. resolv.conf is replaced
 * by renaming, so a rule for the file alone would not last: the rule is for its real directory. A path that does not
 * exist is skipped.
 */
static void allow_resolving(int ruleset)
{
	static const char *const paths[] = {
		"/etc/hosts",    "/etc/host.conf",   "/etc/nsswitch.conf",
		"/etc/gai.conf", "/etc/ld.so.cache", "/lib",
		"/lib64",        "/usr/lib",         "/run/systemd/resolve",
	};
	at_end(mem_free) char *real = realpath("/etc/resolv.conf", NULL);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		landlock_allow_path(ruleset, paths[i], LANDLOCK_FS_READ_FILE);
	if (real != NULL)
		landlock_allow_path(ruleset, dirname(real), LANDLOCK_FS_READ_FILE);
}

/* That one, and that of name servers. */
static int allow_port(int ruleset, uint16_t port, struct error *err)
{
	const uint16_t ports[] = { port, NAME_SERVER_PORT };

	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		if (landlock_allow_port(ruleset, ports[i], LANDLOCK_NET_CONNECT_TCP) < 0)
			return error_set_errno(err, "landlock_add_rule");
	return 0;
}

/* Refuses all rights that the kernel knows; only the resolver gets rules that grant some. */
static int landlock(const struct confinement *what, struct error *err)
{
	const struct landlock_rights all = {
		LANDLOCK_FS_ALL,
		what->fetches && what->port == 0 && !what->unix_sockets ? LANDLOCK_NET_BIND_TCP :
									  LANDLOCK_NET_ALL,
		LANDLOCK_SCOPE_ALL,
	};
	at_end(file_close) int ruleset = -1;
	int result = 0;

	if (landlock_version() < 1)
		return error_set_errno(err, "the kernel has no Landlock");
	ruleset = landlock_open(&all);
	if (ruleset < 0)
		return error_set_errno(err, "landlock_create_ruleset");
	if (what->fetches)
		allow_resolving(ruleset);
	if (landlock_version() >= LANDLOCK_VERSION_NET && what->port != 0 && !what->unix_sockets)
		result = allow_port(ruleset, what->port, err);
	if (result == 0 && landlock_enforce(ruleset) < 0)
		result = error_set_errno(err, "landlock_restrict_self");
	return result;
}

/* ---- seccomp: what the gateway may call ---- */

/* Names that this library or this processor does not know are skipped. */
/* clang-format off */
static const char *const allowed[] = {
	/* descriptors that it has been given, or has accepted from; for close see never_with */
	"read", "write", "readv", "writev", "pread64", "recvfrom", "recv", "accept4", "close", "pipe2",
	"epoll_create1", "epoll_create", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll",
	"getsockopt", "getsockname", "getpeername",
	/* memory; for mmap and mprotect see allow_by_argument */
	"brk", "munmap", "mremap", "madvise", "futex",
	/* itself and the time */
	"exit", "exit_group", "restart_syscall", "rt_sigreturn", "rt_sigaction", "rt_sigprocmask", "sigaltstack",
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrusage",
	"sysinfo", "sched_yield", "clock_gettime", "clock_gettime64", "gettimeofday", "time",
	"clock_nanosleep", "nanosleep",
};
/* clang-format on */

/* Calls that are allowed if one argument, under `mask`, has this value. */
static const struct {
	const char *name;
	unsigned int argument;
	scmp_datum_t mask;
	scmp_datum_t value;
} allowed_with[] = {
	{ "mmap", 2, PROT_EXEC, 0 },
	{ "mmap2", 2, PROT_EXEC, 0 },
	{ "mprotect", 2, PROT_EXEC, 0 },
	/* with descriptors, to and from the keeper alone */
	{ "sendmsg", 0, UINT32_MAX, GATEWAY_KEEPER },
	{ "recvmsg", 0, UINT32_MAX, GATEWAY_KEEPER },
	/* to whom the socket is connected: without an address; SHUT_RD would close a listener for good */
	{ "sendto", 4, UINT64_MAX, 0 },
	{ "shutdown", 1, UINT32_MAX, SHUT_WR },
	{ "fcntl", 1, UINT32_MAX, F_GETFD },
	{ "fcntl", 1, UINT32_MAX, F_SETFD },
	{ "fcntl", 1, UINT32_MAX, F_GETFL },
	{ "fcntl", 1, UINT32_MAX, F_SETFL },
	{ "fcntl", 1, UINT32_MAX, F_DUPFD_CLOEXEC },
	{ "ioctl", 1, UINT32_MAX, FIONREAD },
	{ "ioctl", 1, UINT32_MAX, FIONBIO },
};

/* What is allowed with every argument but this, of which the kernel looks at the lower half alone. */
static const struct {
	const char *name;
	scmp_datum_t value;
} never_with[] = {
	/* its number would be free for another socket */
	{ "close", GATEWAY_KEEPER },
	/* nobody may take the trap away */
	{ "rt_sigaction", SIGSYS },
};

static const struct {
	int level;
	int option;
} allowed_options[] = {
	{ SOL_SOCKET, SO_LINGER },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
};

/* All else ends here: in the process that has called it, before anything is done. */
static void on_forbidden(not_used int number, siginfo_t *info, not_used void *context)
{
	char *name = info->si_arch == seccomp_arch_native() ?
			     seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, info->si_syscall) :
			     NULL;

	LOG(GATEWAY_FORBIDDEN, LOG_STR("call", name != NULL ? name : "of another architecture"),
	    LOG_INT("number", info->si_syscall));
	_exit(1);
}

/* Returns 0 or a negative errno, as the library does. */
static int allow_by_name(scmp_filter_ctx filter, const char *name, unsigned int count,
			 const struct scmp_arg_cmp *conditions)
{
	int number = seccomp_syscall_resolve_name(name);

	CHECK(filter != NULL);
	if (number < 0)
		return 0;
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, conditions);
}

static int allow_by_argument(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp itself = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0);
	const struct scmp_arg_cmp dies[] = { SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG, 0),
					     SCMP_A1(SCMP_CMP_EQ, SIGKILL, 0) };
	const struct scmp_arg_cmp reads[] = { SCMP_A0(SCMP_CMP_EQ, 0, 0),
					      SCMP_A2(SCMP_CMP_EQ, 0, 0) };
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(allowed_with) && result == 0; i++)
		result = allow_by_name(filter, allowed_with[i].name, 1,
				       &SCMP_CMP(allowed_with[i].argument, SCMP_CMP_MASKED_EQ,
						 allowed_with[i].mask, allowed_with[i].value));
	for (size_t i = 0; i < ARRAY_LEN(allowed_options) && result == 0; i++) {
		const struct scmp_arg_cmp option[] = {
			SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)allowed_options[i].level, 0),
			SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)allowed_options[i].option, 0),
		};

		result = allow_by_name(filter, "setsockopt", 2, option);
	}
	/* abort() signals the process itself; no other may be signalled, no limit changed. */
	if (result == 0)
		result = allow_by_name(filter, "tgkill", 1, &itself);
	if (result == 0)
		result = allow_by_name(filter, "prctl", 2, dies);
	return result == 0 ? allow_by_name(filter, "prlimit64", 2, reads) : result;
}

static int allow_needed(scmp_filter_ctx filter)
{
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(allowed) && result == 0; i++)
		result = allow_by_name(filter, allowed[i], 0, NULL);
	return result == 0 ? allow_by_argument(filter) : result;
}

/* In a filter of its own: a rule cannot say both that an argument is not this and which of its bits are meant. */
static int trap_never_with(scmp_filter_ctx filter)
{
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(never_with) && result == 0; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_TRAP,
					  seccomp_syscall_resolve_name(never_with[i].name), 1,
					  SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX,
						  never_with[i].value));
	return result;
}

/* ---- seccomp: what a process that fetches may not call ---- */

/* Names that this library or this processor does not know are skipped. */
/* clang-format off */
static const char *const forbidden[] = {
	/* new processes and programs; threads stay possible */
	"fork", "vfork", "execve", "execveat",
	/* other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill", "rt_sigqueueinfo",
	"rt_tgsigqueueinfo", "kcmp", "move_pages", "migrate_pages",
	"setpriority", "ioprio_set", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr",
	/* memory and queues that all processes of a user share */
	"shmget", "shmat", "semget", "msgget", "mq_open",
	/* new ways in: what is listened on was opened before. For ways out see forbid_leaving */
	"bind", "listen",
	/* the file system as a whole */
	"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick",
	"move_mount", "open_tree", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
	"quotactl", "quotactl_fd", "swapon", "swapoff", "fanotify_init",
	/* namespaces */
	"unshare", "setns",
	/* the kernel and its less trodden paths */
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "keyctl", "add_key", "request_key", "init_module", "finit_module",
	"delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "personality",
	"modify_ldt", "iopl", "ioperm", "lookup_dcookie", "memfd_secret",
	/* calls that lock a pipe while they wait: the keeper reads one of ours */
	"splice", "tee", "vmsplice", "sendfile",
	/* the machine's clock and name */
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname",
	"setdomainname",
};
/* clang-format on */

static int forbid_by_name(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	CHECK(filter != NULL);
	if (number == __NR_SCMP_ERROR || number < 0)
		return 0;
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
}

/*
 * Sockets for the net and for the list of addresses, no others: a service of this machine could do what this process may
 * not, at a path that Landlock does not look at. The C library asks some of them for names, and goes on without.
 */
static int forbid_leaving(scmp_filter_ctx filter, bool allows_unix)
{
	static const int named_by_path[] = { SOCK_DGRAM, SOCK_RAW };
	int result = 0;

	for (int family = 0; family < AF_MAX && result == 0; family++)
		if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK &&
		    !(family == AF_UNIX && allows_unix))
			result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
						  SCMP_SYS(socket), 1,
						  SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX,
							  (scmp_datum_t)family));
	/* A pair of these could be connected to a path afterwards. */
	for (size_t i = 0; i < ARRAY_LEN(named_by_path) && result == 0; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPROTONOSUPPORT),
					  SCMP_SYS(socketpair), 1,
					  SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE,
						  (scmp_datum_t)named_by_path[i]));
	return result;
}

/* System calls that are allowed with some arguments only. Returns 0 or a negative errno, as the library does. */
static int forbid_by_argument(scmp_filter_ctx filter)
{
	int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));

	/* A filter cannot look into its argument; without it the C library takes clone. */
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* abort() signals the process itself; no other may be signalled. */
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
					  SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid(), 0));
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1,
					  SCMP_A0(SCMP_CMP_NE, 0, 0));
	return result;
}

static int forbid(scmp_filter_ctx filter, bool allows_unix)
{
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(forbidden) && result == 0; i++)
		result = forbid_by_name(filter, forbidden[i]);
	if (result == 0)
		result = forbid_leaving(filter, allows_unix);
	return result == 0 ? forbid_by_argument(filter) : result;
}

static int forbid_known(scmp_filter_ctx filter)
{
	return forbid(filter, false);
}

static int forbid_known_but_unix(scmp_filter_ctx filter)
{
	return forbid(filter, true);
}

/* Calls of another architecture are trapped as well. */
static int load_filter(uint32_t action, int (*add_rules)(scmp_filter_ctx filter), struct error *err)
{
	scmp_filter_ctx filter = seccomp_init(action);
	int result;

	if (filter == NULL)
		return error_set(err, ERROR_SYSTEM,
				 "libseccomp does not support this architecture");
	result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRAP);
	if (result == 0)
		result = add_rules(filter);
	if (result == 0)
		result = seccomp_load(filter);
	seccomp_release(filter);
	errno = -result;
	return result == 0 ? 0 : error_set_errno(err, "seccomp");
}

static int filter_system_calls(const struct confinement *what, struct error *err)
{
	const struct sigaction trap = { .sa_sigaction = on_forbidden, .sa_flags = SA_SIGINFO };

	/* Nor has valgrind, whose own calls would be trapped. */
	if (!syscall_filter_is_known())
		return error_set(err, ERROR_SYSTEM, "this kernel has no seccomp(2)");
	if (what->fetches)
		return load_filter(SCMP_ACT_ALLOW,
				   what->unix_sockets ? forbid_known_but_unix : forbid_known, err);
	sigaction(SIGSYS, &trap, NULL);
	return load_filter(SCMP_ACT_ALLOW, trap_never_with, err) == 0 ?
		       load_filter(SCMP_ACT_TRAP, allow_needed, err) :
		       -1;
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	int (*apply)(const struct confinement *what, struct error *err);
} measures[] = {
	{ "user", drop_user },
	{ "capabilities", drop_capabilities },
	{ "no_new_privileges", forbid_new_privileges },
	{ "no_dumps", forbid_dumps },
	{ "landlock", landlock },
	{ "seccomp", filter_system_calls },
};

void confine_apply(const struct confinement *what)
{
	size_t on = 0;

	tzset(); /* the C library reads a file before it formats the first time, even of UTC */
	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		struct error err = { ERROR_NONE, "" };
		bool is_on = measures[i].apply(what, &err) == 0;

		on += is_on;
		if (is_on)
			LOG(CONFINED, LOG_STR("measure", measures[i].name), LOG_STR("state", "on"));
		else
			LOG(CONFINE, LOG_STR("measure", measures[i].name),
			    LOG_STR("state", err.text));
	}
	if (on == ARRAY_LEN(measures))
		LOG(CONFINE, LOG_STR("measure", "all"), LOG_STR("state", "on"));
	if (geteuid() == 0)
		LOG(GATEWAY_IS_ROOT, LOG_INT("pid", getpid()));
}
