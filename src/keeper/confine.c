/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of measures, in an order in which each is still permitted: the user and the capabilities first,
 * the filter of system calls last. Of the gateway only this is known: it works with descriptors that it has been
 * given, and it may have to fetch from the net.
 */
#include "keeper/confine.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "keeper/capabilities.h"
#include "keeper/landlock.h"
#include "obs/log.h"

/* ---- user and rights ---- */

static int drop_user(bool fetches, struct error *err)
{
	const struct passwd *user;

	(void)fetches;
	if (geteuid() != 0)
		return error_set(err, ERROR_INVALID, "the daemon was not started as root");
	user = getpwnam("mcpgated");
	if (user == NULL)
		user = getpwnam("nobody");
	if (user == NULL)
		return error_set(err, ERROR_INVALID, "there is neither a user mcpgated nor nobody");
	if (setgroups(0, NULL) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return error_set_errno(err, "to user %s", user->pw_name);
	return 0;
}

static int drop_capabilities(bool fetches, struct error *err)
{
	(void)fetches;
	return capabilities_drop_all() == 0 ? 0 : error_set_errno(err, "capset");
}

static int forbid_new_privileges(bool fetches, struct error *err)
{
	(void)fetches;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set_errno(err, "prctl");
	return 0;
}

/* Also keeps processes of the same user from reading its memory through /proc. */
static int forbid_dumps(bool fetches, struct error *err)
{
	struct rlimit none = { 0, 0 };

	(void)fetches;
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
	char *real = realpath("/etc/resolv.conf", NULL);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		landlock_allow_path(ruleset, paths[i], LANDLOCK_FS_READ_FILE);
	if (real != NULL)
		landlock_allow_path(ruleset, dirname(real), LANDLOCK_FS_READ_FILE);
	free(real);
}

/* Refuses all rights that the kernel knows; only the resolver gets rules that grant some. */
static int landlock(bool fetches, struct error *err)
{
	const struct landlock_rights all = {
		LANDLOCK_FS_ALL,
		fetches ? LANDLOCK_NET_BIND_TCP : LANDLOCK_NET_ALL,
		LANDLOCK_SCOPE_ALL,
	};
	int ruleset;
	int result = 0;

	if (landlock_version() < 1)
		return error_set_errno(err, "the kernel has no Landlock");
	ruleset = landlock_open(&all);
	if (ruleset < 0)
		return error_set_errno(err, "landlock_create_ruleset");
	if (fetches)
		allow_resolving(ruleset);
	if (landlock_enforce(ruleset) < 0)
		result = error_set_errno(err, "landlock_restrict_self");
	close(ruleset);
	return result;
}

/* ---- seccomp ---- */

#define SOCKET_TYPES 0xf /* socket's second argument without its flags */

/* Names that this library or this processor does not know are skipped. */
/* clang-format off */
static const char *const forbidden[] = {
	/* new processes and programs; threads stay possible */
	"fork", "vfork", "execve", "execveat",
	/* other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill", "rt_sigqueueinfo",
	"rt_tgsigqueueinfo", "kcmp", "move_pages", "migrate_pages",
	/* new ways in: what is listened on was opened before. For ways out see forbid_leaving */
	"bind",
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
	/* calls that lock a pipe while they wait: the keeper reads one of ours (claims.c) */
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

/* Not applied where issuers are asked: libcurl and the resolver need sockets and socket pairs. Returns as above. */
static int forbid_leaving(scmp_filter_ctx filter)
{
	int result = forbid_by_name(filter, "connect");

	if (result == 0)
		result = forbid_by_name(filter, "socketpair");
	/* Datagrams, and TCP with its first bytes, get out by sendto(2), without connect. */
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
					  SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0));
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
					  SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPES, SOCK_DGRAM));
	return result;
}

static int filter_system_calls(bool fetches, struct error *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int result = 0;

	if (filter == NULL)
		return error_set(err, ERROR_SYSTEM, "libseccomp does not know this machine");
	for (size_t i = 0; i < ARRAY_LEN(forbidden) && result == 0; i++)
		result = forbid_by_name(filter, forbidden[i]);
	if (result == 0 && !fetches)
		result = forbid_leaving(filter);
	if (result == 0)
		result = forbid_by_argument(filter);
	if (result == 0)
		result = seccomp_load(filter);
	seccomp_release(filter);
	errno = -result;
	return result == 0 ? 0 : error_set_errno(err, "seccomp");
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	int (*apply)(bool fetches, struct error *err);
} measures[] = {
	{ "user", drop_user },
	{ "capabilities", drop_capabilities },
	{ "no_new_privileges", forbid_new_privileges },
	{ "no_dumps", forbid_dumps },
	{ "landlock", landlock },
	{ "seccomp", filter_system_calls },
};

void confine_apply(bool fetches)
{
	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		struct error err = { ERROR_NONE, "" };
		bool is_on = measures[i].apply(fetches, &err) == 0;

		LOG(CONFINE, LOG_STR("measure", measures[i].name),
		    LOG_STR("state", is_on ? "on" : err.text));
	}
	if (geteuid() == 0)
		LOG(GATEWAY_IS_ROOT, LOG_INT("pid", getpid()));
}
