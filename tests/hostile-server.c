/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MCP server that tries what a hostile one would try, and what an honest one must be able to do. Everything is one
 * probe: a function that returns 0 if it got through, otherwise an errno. As a server it answers initialize with the
 * results as its instructions; with --once as the first argument it prints them, which shows what gets through without a
 * sandbox. The other arguments say what there is to try at: NAME=VALUE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Newer than some C libraries; the same on every processor. */
#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_FILE_SETATTR 469

#define X32_BIT 0x40000000L
#define GARBAGE_ABOVE(value) (0x100000000L | (value))
#define EXIT_KILLED 255

static char **arguments;

/* ---- what there is to try at ---- */

static const char *argument(const char *name)
{
	size_t length = strlen(name);

	for (char **a = arguments; *a != NULL; a++)
		if (strncmp(*a, name, length) == 0 && (*a)[length] == '=')
			return *a + length + 1;
	fprintf(stderr, "hostile-server: %s= is missing\n", name);
	_exit(2);
}

static int number(const char *name)
{
	return atoi(argument(name));
}

static const char *path_below(const char *directory, const char *name)
{
	static char paths[4][512];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", argument(directory), name);
	return path;
}

static const char *outside(const char *name)
{
	return path_below("outside", name);
}

static const char *inside(const char *name)
{
	return path_below("inside", name);
}

/* Of a system call. */
static int result(long value)
{
	return value >= 0 ? 0 : errno;
}

/* A probe that is one expression. */
#define TRY(name, expression)      \
	static int name(void)      \
	{                          \
		return expression; \
	}

/* ---- files ---- */

static int open_file(const char *path, int flags)
{
	return result(open(path, flags | O_CLOEXEC, 0600));
}

TRY(read_outside, open_file(outside("file"), O_RDONLY))
TRY(write_outside, open_file(outside("file"), O_WRONLY | O_APPEND))
TRY(create_outside, open_file(outside("new"), O_WRONLY | O_CREAT | O_EXCL))
TRY(empty_outside, result(truncate(outside("file"), 0)))
TRY(empty_outside_by_open, open_file(outside("file"), O_RDONLY | O_TRUNC))
TRY(list_outside, open_file(argument("outside"), O_RDONLY | O_DIRECTORY))
TRY(remove_outside, result(unlink(outside("removed"))))
TRY(mkdir_outside, result(mkdir(outside("directory"), 0700)))
TRY(rename_outside, result(rename(outside("renamed"), outside("renamed-2"))))
TRY(symlink_outside, result(symlink("x", outside("symlink"))))
TRY(fifo_outside, result(mkfifo(outside("fifo"), 0600)))
TRY(link_from_outside, result(link(outside("file"), inside("linked"))))
static int read_through_symlink(void)
{
	unlink(inside("symlink"));
	if (symlink(outside("file"), inside("symlink")) < 0)
		return errno;
	return open_file(inside("symlink"), O_RDONLY);
}
TRY(read_shadow, open_file("/etc/shadow", O_RDONLY))
TRY(read_root_directory, open_file("/", O_RDONLY | O_DIRECTORY))
static int read_victims_status(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", number("victim"));
	return open_file(path, O_RDONLY);
}
static int read_victims_memory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", number("victim"));
	return open_file(path, O_RDONLY);
}

static int run(const char *path)
{
	char *const argv[] = { (char *)(uintptr_t)path, NULL };
	int status, errors[2];
	int error = 0;

	if (pipe2(errors, O_CLOEXEC) < 0)
		return errno;
	if (fork() == 0) {
		execve(path, argv, (char *const[]){ NULL });
		error = errno;
		_exit(write(errors[1], &error, sizeof(error)) > 0);
	}
	close(errors[1]);
	if (read(errors[0], &error, sizeof(error)) < 0)
		error = errno;
	wait(&status);
	return error;
}
TRY(run_from_inside, run(inside("tool")))

/* What it has written itself: rights to execute are of files. */
static int run_from_memory(void)
{
	static const char script[] = "#!/bin/true\n";
	int fd = memfd_create("x", 0);
	char path[32];

	if (fd < 0 || write(fd, script, sizeof(script) - 1) < 0)
		return errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return run(path);
}
TRY(write_sysctl, open_file("/proc/sys/kernel/domainname", O_WRONLY))
TRY(move_to_first_cgroup, open_file("/sys/fs/cgroup/cgroup.procs", O_WRONLY))
TRY(share_memory_by_file, open_file("/dev/shm", O_RDWR | O_TMPFILE))
TRY(lock_passwd, result(flock(open("/etc/passwd", O_RDONLY | O_CLOEXEC), LOCK_EX | LOCK_NB)))

TRY(lease_its_program, result(fcntl(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), F_SETLEASE, F_RDLCK)))

/* ---- attributes ---- */

/* Of what it may read alone: the program itself. */
static int change_flag(unsigned long get, unsigned long set, int flag)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct fsxattr attributes; /* begins with its flags */
	int flags;

	if (ioctl(fd, get, &attributes) < 0)
		return errno;
	memcpy(&flags, &attributes, sizeof(flags));
	flags ^= flag;
	memcpy(&attributes, &flags, sizeof(flags));
	return result(ioctl(fd, set, &attributes));
}
TRY(change_flags, change_flag(FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NODUMP_FL))
TRY(change_flags_extended, change_flag(FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, FS_XFLAG_NOATIME))
TRY(chmod_outside, result(chmod(outside("file"), 0640)))
TRY(chown_outside, result(chown(outside("file"), (uid_t)-1, getegid())))
TRY(chown_outside_by_at, result(fchownat(AT_FDCWD, outside("file"), (uid_t)-1, getegid(), 0)))
static int fchown_inside(void)
{
	int fd = open(inside("file"), O_RDWR | O_CLOEXEC);

	return result(fchown(fd, (uid_t)-1, getegid()));
}
TRY(utimes_outside, result(utimensat(AT_FDCWD, outside("file"), NULL, 0)))
TRY(setxattr_outside, result(syscall(SYS_setxattr, outside("file"), "user.x", "x", 1, 0)))
TRY(lremovexattr_outside, result(syscall(SYS_lremovexattr, outside("marked"), "user.mark")))
static int setxattrat_outside(void)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} arguments_of = { (uintptr_t) "x", 1, 0 };

	return result(syscall(NR_SETXATTRAT, AT_FDCWD, outside("file"), 0, "user.y", &arguments_of,
			      sizeof(arguments_of)));
}
static int file_setattr_outside(void)
{
	uint64_t attributes[3] = { 0, 0, 0 };

	return result(syscall(NR_FILE_SETATTR, AT_FDCWD, outside("file"), attributes,
			      sizeof(attributes), 0));
}
TRY(chmod_setuid, result(chmod(inside("file"), 04700)))
TRY(fchmod_setgid, result(fchmod(open(inside("file"), O_RDWR | O_CLOEXEC), 02700)))
TRY(fchmodat2_setuid, result(syscall(NR_FCHMODAT2, AT_FDCWD, inside("file"), 04700, 0)))
static int create_setuid(void)
{
	unlink(inside("setuid"));
	return result(open(inside("setuid"), O_WRONLY | O_CREAT | O_CLOEXEC, 04700));
}
static int creat_setuid(void)
{
#ifdef SYS_creat
	unlink(inside("setuid-2"));
	return result(syscall(SYS_creat, inside("setuid-2"), 04700));
#else
	return ENOSYS;
#endif
}

/* ---- sockets ---- */

static struct sockaddr_un unix_address(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

static int connect_path(int fd, const char *path)
{
	struct sockaddr_un address = unix_address(path);

	return result(connect(fd, (struct sockaddr *)&address, sizeof(address)));
}
TRY(unix_connect, connect_path(socket(AF_UNIX, SOCK_STREAM, 0), argument("stream")))
TRY(unix_connect_admin,
    connect_path(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), argument("admin")))
TRY(unix_connect_with_garbage,
    connect_path((int)syscall(SYS_socket, GARBAGE_ABOVE(AF_UNIX), GARBAGE_ABOVE(SOCK_STREAM),
			      GARBAGE_ABOVE(0)),
		 argument("stream")))
TRY(unix_datagram, connect_path(socket(AF_UNIX, SOCK_DGRAM, 0), argument("datagram")))
static int unix_pair_of_datagrams(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds) < 0)
		return errno;
	return connect_path(fds[0], argument("datagram"));
}
/* The kernel makes datagrams of it. */
static int unix_pair_of_raw(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_RAW, 0, fds) < 0)
		return errno;
	return connect_path(fds[0], argument("datagram"));
}
static int unix_abstract(void)
{
	struct sockaddr_un address = unix_address("");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", argument("abstract"));
	return result(connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					  strlen(argument("abstract")))));
}
static int unix_bind(void)
{
	struct sockaddr_un address = unix_address(inside("socket"));

	unlink(address.sun_path);
	return result(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address,
			   sizeof(address)));
}
TRY(unix_seqpacket, result(socket(AF_UNIX, SOCK_SEQPACKET, 0)))

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int connect_port(int fd, int port)
{
	struct sockaddr_in address = loopback(port);

	return result(connect(fd, (struct sockaddr *)&address, sizeof(address)));
}
TRY(tcp_connect, connect_port(socket(AF_INET, SOCK_STREAM, 0), number("port")))
static int tcp_connect_mapped(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_port = htons((uint16_t)number("port")) };

	memcpy(&address.sin6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	return result(connect(socket(AF_INET6, SOCK_STREAM, 0), (struct sockaddr *)&address,
			      sizeof(address)));
}
TRY(tcp_connect_gateway, connect_port(socket(AF_INET, SOCK_STREAM, 0), number("gateway")))
static int tcp_bind(void)
{
	struct sockaddr_in address = loopback(0);

	return result(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address,
			   sizeof(address)));
}
TRY(tcp_listen_unbound, result(listen(socket(AF_INET, SOCK_STREAM, 0), 1)))
TRY(tcp_listen_unbound_6, result(listen(socket(AF_INET6, SOCK_STREAM, 0), 1)))
static int fast_open_by_sendto(void)
{
	struct sockaddr_in address = loopback(number("port"));

	return result(sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN,
			     (struct sockaddr *)&address, sizeof(address)));
}

static struct msghdr message_to(struct sockaddr_in *address)
{
	static struct iovec part = { (void *)(uintptr_t) "x", 1 };

	return (struct msghdr){ .msg_name = address,
				.msg_namelen = sizeof(*address),
				.msg_iov = &part,
				.msg_iovlen = 1 };
}
static int fast_open_by_sendmsg(void)
{
	struct sockaddr_in address = loopback(number("port"));
	struct msghdr message = message_to(&address);

	return result(sendmsg(socket(AF_INET, SOCK_STREAM, 0), &message, MSG_FASTOPEN));
}
static int fast_open_by_sendmmsg(void)
{
	struct sockaddr_in address = loopback(number("port"));
	struct mmsghdr message = { .msg_hdr = message_to(&address) };

	return result(sendmmsg(socket(AF_INET, SOCK_STREAM, 0), &message, 1, MSG_FASTOPEN));
}
static int fast_open_by_option(void)
{
	int on = 1;

	return result(setsockopt(socket(AF_INET, SOCK_STREAM, 0), IPPROTO_TCP, TCP_FASTOPEN_CONNECT,
				 &on, sizeof(on)));
}
static int fast_open_of_listener(void)
{
	int on = 1;

	return result(setsockopt(socket(AF_INET, SOCK_STREAM, 0), IPPROTO_TCP, TCP_FASTOPEN, &on,
				 sizeof(on)));
}
TRY(mptcp_connect, connect_port(socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP), number("port")))
TRY(mptcp_listen, result(listen(socket(AF_INET6, SOCK_STREAM, IPPROTO_MPTCP), 1)))
TRY(sctp_socket, result(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)))
TRY(smc_socket, result(socket(AF_SMC, SOCK_STREAM, 0)))
static int udp_send(void)
{
	struct sockaddr_in address = loopback(number("port"));

	return result(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (struct sockaddr *)&address,
			     sizeof(address)));
}
TRY(udp_socket_6, result(socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP)))
TRY(udplite_socket, result(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE)))
TRY(ping_socket, result(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)))
TRY(raw_socket, result(socket(AF_INET, SOCK_RAW, IPPROTO_RAW)))
TRY(packet_socket, result(socket(AF_PACKET, SOCK_DGRAM, 0)))
TRY(crypto_socket, result(socket(AF_ALG, SOCK_SEQPACKET, 0)))
TRY(vsock_socket, result(socket(AF_VSOCK, SOCK_STREAM, 0)))
TRY(netlink_sock_diag, result(socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)))
TRY(netlink_uevent, result(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)))
TRY(netlink_generic, result(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)))
TRY(netlink_audit, result(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)))
TRY(x32_socket, result(syscall(X32_BIT | SYS_socket, AF_UNIX, SOCK_STREAM, 0)))
/* By the old gate for 32-bit programs, in which the numbers are others. */
static int i386_socket(void)
{
#ifdef __x86_64__
	int value;

	__asm__ volatile("int $0x80"
			 : "=a"(value)
			 : "a"(359), "b"(AF_UNIX), "c"(SOCK_STREAM), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return value >= 0 ? 0 : -value;
#else
	return ENOSYS;
#endif
}

/* ---- other processes ---- */

TRY(signal_victim, result(kill(number("victim"), 0)))
TRY(signal_victims_group, result(kill(-getpgid(number("victim")), 0)))
static int signal_victim_by_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, number("victim"), 0);

	return result(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}
TRY(queue_signal_to_victim, result(sigqueue(number("victim"), 0, (union sigval){ .sival_int = 0 })))
TRY(trace_victim, result(ptrace(PTRACE_SEIZE, number("victim"), NULL, NULL)))
TRY(attach_to_victim, result(ptrace(PTRACE_ATTACH, number("victim"), NULL, NULL)))
TRY(trace_parent, result(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL)))
static int move_victims_bytes(long call)
{
	char byte;
	struct iovec here = { &byte, 1 };
	struct iovec there = { (void *)(uintptr_t)strtoull(argument("page"), NULL, 16), 1 };

	return result(syscall(call, number("victim"), &here, 1, &there, 1, 0));
}
TRY(read_victims_bytes, move_victims_bytes(SYS_process_vm_readv))
/* The lowest page of its stack is in use by nobody. */
TRY(write_victims_bytes, move_victims_bytes(SYS_process_vm_writev))
static int take_victims_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, number("victim"), 0);

	return result(syscall(SYS_pidfd_getfd, fd, 0, 0));
}
TRY(compare_with_victim,
    result(syscall(SYS_kcmp, getpid(), number("victim"), 0 /* KCMP_FILE */, 0, 0)))
static int advise_victims_memory(void)
{
	int fd = (int)syscall(SYS_pidfd_open, number("victim"), 0);
	struct iovec there = { (void *)(uintptr_t)strtoull(argument("page"), NULL, 16), 4096 };

	return result(syscall(SYS_process_madvise, fd, &there, 1, 20 /* MADV_COLD */, 0));
}
static int move_victims_pages(void)
{
	void *page = (void *)(uintptr_t)strtoull(argument("page"), NULL, 16);
	int status;

	return result(syscall(SYS_move_pages, number("victim"), 1, &page, NULL, &status, 0));
}
TRY(renice_victim, result(setpriority(PRIO_PROCESS, (id_t)number("victim"), 19)))
TRY(renice_victims_group, result(setpriority(PRIO_PGRP, (id_t)getpgid(number("victim")), 19)))
static int pin_victim(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return result(sched_setaffinity(number("victim"), sizeof(set), &set));
}
static int schedule_victim(void)
{
	struct sched_param param = { 0 };

	return result(sched_setscheduler(number("victim"), SCHED_BATCH, &param));
}
static int schedule_victim_by_attributes(void)
{
	struct {
		uint32_t size, policy, flags[2], nice, rest[7];
	} attributes = { .size = 48, .policy = SCHED_BATCH, .nice = 19 }; /* no less nice */

	return result(syscall(SYS_sched_setattr, number("victim"), &attributes, 0));
}
TRY(io_priority_of_victim, result(syscall(SYS_ioprio_set, 1, number("victim"), 2 << 13 | 7)))
static int limit_victim(void)
{
	struct rlimit limit;

	if (prlimit(number("victim"), RLIMIT_CORE, NULL, &limit) < 0)
		return errno;
	return result(prlimit(number("victim"), RLIMIT_CORE, &limit, NULL));
}

/* Besides its standard streams. */
static int inherited_descriptor(void)
{
	for (int fd = STDERR_FILENO + 1; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	return EBADF;
}

/* ---- the kernel ---- */

static int io_uring(void)
{
	char params[120] = { 0 };

	return result(syscall(SYS_io_uring_setup, 1, params));
}
TRY(user_namespace, result(unshare(CLONE_NEWUSER)))
TRY(mount_namespace, result(unshare(CLONE_NEWNS)))
TRY(time_namespace, result(unshare(0x80)))
static int clone_into_user_namespace(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	return result(pid);
}
static int clone3_into_user_namespace(void)
{
	uint64_t flags[8] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, flags, sizeof(flags));

	if (pid == 0)
		_exit(0);
	return result(pid);
}
static int join_namespace(void)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	return result(setns(fd, CLONE_NEWUTS));
}
TRY(mount_something,
    unshare(CLONE_NEWNS) < 0 ? errno : result(mount("x", inside("."), "tmpfs", 0, NULL)))
TRY(change_root, result(chroot(argument("inside"))))
TRY(open_file_system, result(syscall(SYS_fsopen, "tmpfs", 0)))
TRY(clone_tree, result(syscall(SYS_open_tree, AT_FDCWD, argument("inside"), 1)))
TRY(watch_file_system, result(syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY)))
TRY(session_keyring, result(syscall(SYS_keyctl, 0, -3, 1)))
TRY(add_key, result(syscall(SYS_add_key, "user", "mcpgated-probe", "x", 1, -1)))
static int request_key(void)
{
	/* Looking for a key that is not there is getting through. */
	int error = result(syscall(SYS_request_key, "user", "mcpgated-none", NULL, -2));

	return error == ENOKEY ? 0 : error;
}
static int bpf_map(void)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return result(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}
static int perf_event(void)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
					      .size = sizeof(attributes),
					      .config = PERF_COUNT_SW_CPU_CLOCK,
					      .exclude_kernel = 1 };

	return result(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}
TRY(user_fault, result(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */)))
TRY(kernel_log, result(syscall(SYS_syslog, 10 /* its size */, NULL, 0)))
static int shared_memory(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	return id >= 0 ? result(shmctl(id, IPC_RMID, NULL)) : errno;
}
static int semaphores(void)
{
	int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

	return id >= 0 ? result(semctl(id, 0, IPC_RMID)) : errno;
}
static int message_queue(void)
{
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	return id >= 0 ? result(msgctl(id, IPC_RMID, NULL)) : errno;
}
static int posix_queue(void)
{
	mqd_t queue = mq_open("/mcpgated-probe", O_CREAT | O_RDWR, 0600, NULL);
	int error = result(queue);

	mq_unlink("/mcpgated-probe");
	return error;
}

/*
 * While one of these waits for bytes it holds the lock of a pipe; were it our standard output, whoever reads from the other
 * end would wait as well, if it may or not. Here there are bytes.
 */
static int move_to_pipe(bool is_copy)
{
	int from[2], to[2];

	if (pipe(from) < 0 || pipe(to) < 0 || write(from[1], "x", 1) != 1)
		return errno;
	return result(is_copy ? tee(from[0], to[1], 1, 0) :
				splice(from[0], NULL, to[1], NULL, 1, 0));
}
TRY(splice_to_pipe, move_to_pipe(false))
TRY(tee_to_pipe, move_to_pipe(true))
static int vmsplice_to_pipe(void)
{
	struct iovec part = { (void *)(uintptr_t) "x", 1 };
	int to[2];

	return pipe(to) < 0 ? errno : result(vmsplice(to[1], &part, 1, 0));
}
static int sendfile_to_pipe(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	int to[2];

	return pipe(to) < 0 ? errno : result(sendfile(to[1], fd, NULL, 1));
}

/* ---- what must work ---- */

static int pair_works(int type)
{
	int fds[2];
	char byte;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return errno;
	return write(fds[0], "x", 1) == 1 && read(fds[1], &byte, 1) == 1 ? 0 : EIO;
}
TRY(pair_of_streams, pair_works(SOCK_STREAM))
TRY(pair_of_seqpackets, pair_works(SOCK_SEQPACKET))
TRY(netlink_route, result(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)))
TRY(be_nicer, result(setpriority(PRIO_PROCESS, 0, 19)))
static int pin_itself(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return result(sched_setaffinity(0, sizeof(set), &set));
}
static int limit_itself(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return errno;
	return result(setrlimit(RLIMIT_NOFILE, &limit));
}
static void *do_nothing(void *unused)
{
	return unused;
}
static int start_thread(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, do_nothing, NULL);

	return error == 0 ? pthread_join(thread, NULL) : error;
}
TRY(run_program, run("/bin/true"))
static int kill_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return result(kill(pid, SIGKILL));
}
static int watch_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(syscall(SYS_pidfd_open, pid, 0));
}
TRY(read_passwd, open_file("/etc/passwd", O_RDONLY))
static int create_inside(void)
{
	unlink(inside("new"));
	return open_file(inside("new"), O_RDWR | O_CREAT | O_EXCL);
}
TRY(chmod_inside, result(chmod(inside("file"), 0700)))
TRY(utimes_inside, result(utimensat(AT_FDCWD, inside("file"), NULL, 0)))
TRY(watch_inside,
    result(inotify_add_watch(inotify_init1(IN_CLOEXEC), argument("inside"), IN_CREATE)))
TRY(tcp_connect_listed,
    connect_port(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), number("listed")))
static int stat_outside(void)
{
	struct stat st;

	return result(stat(outside("file"), &st));
}
TRY(watch_outside,
    result(inotify_add_watch(inotify_init1(IN_CLOEXEC), argument("outside"), IN_CREATE)))

/* ---- all of them ---- */

static const struct {
	const char *name;
	int (*try)(void);
} probes[] = {
#define X(name) { #name, name },
#include "hostile-server.def"
#undef X
};

/* In a process of its own, so that no probe changes what another finds. */
static const char *try(size_t i)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		/* Where the sandbox does not hold, nothing may wait. */
		alarm(5);
		_exit(probes[i].try());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return "lost";
	if (!WIFEXITED(status))
		return "killed";
	return WEXITSTATUS(status) == 0 ? "ok" : strerrorname_np(WEXITSTATUS(status));
}

static void print_results(FILE *out, const char *separator)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		const char *text = try(i);

		fprintf(out, "%s %s%s", probes[i].name, text != NULL ? text : "?", separator);
	}
	fflush(out);
}

int main(int argc, char **argv)
{
	char line[65536];

	setvbuf(stdout, NULL, _IOFBF, sizeof(line));
	arguments = argv + 1;
	if (argc > 1 && strcmp(argv[1], "--once") == 0) {
		print_results(stdout, "\n");
		return 0;
	}
	/* The id of ours is the first member that looks like one: the daemon writes it first. */
	while (fgets(line, sizeof(line), stdin) != NULL) {
		const char *id = strstr(line, "\"id\":");

		if (id == NULL)
			continue;
		id += 5;
		printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":"
		       "\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"hostile\","
		       "\"version\":\"1\"},\"instructions\":\"",
		       (int)strcspn(id, ",}"), id);
		fflush(stdout);
		print_results(stdout, "; ");
		printf("\"}}\n");
		fflush(stdout);
	}
	_exit(0);
}
