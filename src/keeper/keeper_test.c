/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper as a whole: each test runs it in a process of its own with a gateway that is played by a
 * function below. This program is executed anew for it, and the function runs confined, like the real one; it tells
 * the test what it sees on its standard output, a named pipe. The test process is a subreaper: what the daemon leaves behind would become
 * its child, and assert_nothing_left() would find it.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit_test.h"
#include "config/variables.h"
#include "config/table.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
#include "keeper/launch.h"
#include "keeper/reload.h"
#include "obs/log.h"

typedef int gateway_fn(struct config *config, const int *listeners, size_t count, int keeper_fd);

#define WAIT_MS 20000 /* for anything; a sanitised build on a busy machine is slow */

/* The numbers of the servers of make_config. */
enum { CAT, SH, MISSING, FORBIDDEN, NO_CWD, DISABLED, CLAIMS, FEW, ENDPOINT, SERVER_COUNT };

/* ---- the daemon under test ---- */

static struct {
	pid_t pid;
	int out;            /* what the gateway says */
	int log;            /* a file */
	const char *script; /* of server SH */
	const char *log_target;
	const char *log_level;
	const char *listen;
	const char *gateway; /* the name of a function */
	bool hides_cgroups;  /* where it could have some */
	bool has_next;       /* there is another program, `next` */
} daemon_;

static char directory[64];

#define CONFIGURED_PROCESSES 150

static const char configuration[] =
	"listen: [{address: '%s'}]\n"
	"admin: {address: 'off'}\n"
	"limits: {processes: 150}\n"
	"log: {level: %s, target: '%s'}\n"
	"defaults: {pool: {max: 1000}, start: {try: false}, stop: {grace: 100ms, term: 100ms}}\n"
	"servers:\n"
	"  cat: {command: cat, start: {rate: 1}}\n"
	"  sh: {command: sh, args: [-c], env: {TOKEN: configured-secret}, inherit_env: [PATH, INHERITED, "
	"LISTEN_FDS, NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_PID, CREDENTIALS_DIRECTORY]}\n"
	"  missing: {command: no-such-command-anywhere}\n"
	"  forbidden: {command: /proc/self/status}\n"
	"  no_cwd: {command: cat, cwd: /no/such/directory}\n"
	"  disabled: {enabled: false, command: %s, cwd: %s/out}\n"
	"  claims:\n"
	"    command: sh\n"
	"    args: [-c, 'echo \"$USER_ID|$BOTH|$TOKEN\"']\n"
	"    env: {USER_ID: 'u-${claim:sub}', BOTH: '${claim:team}.${claim:sub}', TOKEN: '${claim:sub}'}\n"
	"  few: {command: sleep, args: ['1000'], pool: {max: 3}}\n"
	"endpoints: {all: {servers: [cat]}}\n";

static struct config *make_config(void)
{
	char *text = mem_printf(configuration, daemon_.listen, daemon_.log_level,
				daemon_.log_target, daemon_.gateway, directory);
	struct error err;
	struct config *config = config_read_checked(slice_str(text), &err);

	if (config == NULL || config->server_count != SERVER_COUNT)
		abort();
	free(text);
	texts_add(&config->servers[SH].args, slice_str(daemon_.script));
	config->servers[CLAIMS].env[2].has_claims = false; /* as if it were from a file */
	return config;
}

/* This program is the gateway; the reaper is the real one, which the build has put two directories up. */
static void open_programs(struct programs *programs_r)
{
	char path[PATH_MAX + 64] = "";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	for (int up = 0; n > 0 && up < 3; up++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/mcpgated-reaper");
	programs_r->fds[PROGRAM_GATEWAY] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	/* Neither is started: there are no issuers, and no cluster. */
	programs_r->fds[PROGRAM_FETCHER] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	programs_r->fds[PROGRAM_STORE] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	programs_r->fds[PROGRAM_REAPER] = open(path, O_PATH | O_CLOEXEC);
}

/* An hour goes by, once. */
static void on_hour(int number)
{
	static bool is_over;

	(void)number;
	if (!is_over)
		clock_freeze(clock_now_ms() + 3600000);
	is_over = true;
}

/* For this process and what it starts. Who is not root has none, unless somebody gave him some. */
static void hide_cgroups(void)
{
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	     mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0))
		_exit(8);
}

#define OPEN_FILES 250

static void daemon_main(void)
{
	static char name[] = "mcpgated", *argv[] = { name, NULL };
	struct config *config = make_config();
	struct upgrade upgrade = { .argv = NULL };
	struct programs programs;
	struct rlimit limit;
	int code;

	open_programs(&programs);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, on_hour);
	/* What the daemon may raise for itself is not for servers. */
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = OPEN_FILES;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (daemon_.hides_cgroups)
		hide_cgroups();
	dup2(daemon_.log, STDERR_FILENO);
	/* What a careless parent leaves behind: REL-32. */
	dup2(daemon_.log, 50);
	setenv("INHERITED", "by-name", 1);
	setenv("SECRET_OF_THE_DAEMON", "not-for-children", 1);
	setenv("LISTEN_FDS", "0", 1);
	setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x", 1);
	upgrade.output = -1;
	if (daemon_.has_next) {
		if (upgrade_begin(&upgrade, argv) < 0)
			_exit(8);
		snprintf(upgrade.program, sizeof(upgrade.program), "%s/next", directory);
	}
	code = keeper_run(&config, NULL, &programs, &upgrade);
#ifdef __SANITIZE_ADDRESS__
	config_free(&config);
	__lsan_do_leak_check(); /* does not return if anything was left that nobody could free */
#endif
	_exit(code);
}

#define start(gateway, script) start_named(#gateway, script)

static void start_named(const char *gateway, const char *script)
{
	char out[96];

	daemon_.gateway = gateway;
	daemon_.script = script;
	snprintf(out, sizeof(out), "%s/out", directory);
	assert_int_equal(mkfifo(out, 0600), 0);
	daemon_.out = open(out, O_RDWR | O_CLOEXEC);
	assert_true(daemon_.out >= 0);
	daemon_.log = memfd_create("log", MFD_CLOEXEC);
	assert_true(daemon_.log >= 0);
	/* Two processes write to it, and the kernel does not lock the position of such a file. */
	assert_int_equal(fcntl(daemon_.log, F_SETFL, O_APPEND), 0);
	daemon_.pid = fork();
	assert_true(daemon_.pid >= 0);
	if (daemon_.pid == 0)
		daemon_main();
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* All that the daemon has logged; borrowed until the next call. */
static const char *logged(void)
{
	static char text[1 << 17];
	ssize_t n = pread(daemon_.log, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

/* The next line that the gateway says, without its end; borrowed until the next call. */
static const char *next_line(void)
{
	static char line[4096]; /* it may be an environment */
	struct pollfd p = { .fd = daemon_.out, .events = POLLIN };
	size_t length = 0;

	while (poll(&p, 1, WAIT_MS) == 1 && length < sizeof(line) - 1) {
		if (read(daemon_.out, line + length, 1) != 1)
			break;
		if (line[length] == '\n') {
			line[length] = '\0';
			return line;
		}
		length++;
	}
	fail_msg("the gateway said nothing more; the log:\n%s", logged());
	return "";
}

static int next_number(const char *prefix)
{
	const char *line = next_line();

	assert_memory_equal(line, prefix, strlen(prefix));
	return atoi(line + strlen(prefix));
}

static void wait_for_log(const char *text)
{
	int64_t end = now_ms() + WAIT_MS;

	while (strstr(logged(), text) == NULL) {
		assert_true(now_ms() < end);
		pause_ms(5);
	}
}

static size_t count_logged(const char *text)
{
	size_t count = 0;

	for (const char *p = logged(); (p = strstr(p, text)) != NULL; p++)
		count++;
	return count;
}

/* Whatever the daemon started would be a child of this process by now. REL-30, REL-43. */
static void assert_nothing_left(void)
{
	int64_t end = now_ms() + WAIT_MS;

	while (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD) {
		assert_true(now_ms() < end);
		pause_ms(2);
	}
}

/* After a failure: the next test begins without what this one has left behind. */
static void end_what_is_left(void)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	do {
		file = fopen(path, "re");
		if (file == NULL)
			return;
		while (fscanf(file, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		fclose(file);
	} while (waitpid(-1, NULL, 0) > 0);
}

/* Waits for the daemon itself and returns its wait status. */
static int wait_for_end(void)
{
	int64_t end = now_ms() + WAIT_MS;
	int status = 0;

	while (waitpid(daemon_.pid, &status, WNOHANG) == 0) {
		assert_true(now_ms() < end);
		pause_ms(2);
	}
	daemon_.pid = 0;
	return status;
}

static void stop_and_expect(int exit_code)
{
	int status;

	assert_int_equal(kill(daemon_.pid, SIGTERM), 0);
	status = wait_for_end();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), exit_code);
	assert_nothing_left();
	assert_int_equal(count_logged(" reaper_failed "), 0);
}

/* Those that the daemon has of what begins so; 0 as well where they are hidden. */
static size_t count_descriptors(const char *kind)
{
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon_.pid);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			count += strncmp(target, kind, strlen(kind)) == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return count;
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	daemon_.log_target = "stderr";
	daemon_.log_level = "debug";
	daemon_.listen = "127.0.0.1:0";
	daemon_.hides_cgroups = daemon_.has_next = false;
	snprintf(directory, sizeof(directory), "%.40s/keeper.XXXXXX", tmp != NULL ? tmp : "/tmp");
	return mkdtemp(directory) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
	static const char *const files[] = { "log", "log.1", "socket", "out", "next", "asked" };
	char path[96];

	if (daemon_.pid > 0)
		kill(daemon_.pid, SIGKILL);
	daemon_.pid = 0;
	end_what_is_left();
	close(daemon_.out);
	close(daemon_.log);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
	return rmdir(directory);
}

/* ---- what gateways are made of; they run in the gateway's process ---- */

/* Not dprintf: it asks the kernel for what a confined process may not ask. */
static void tell(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(int fd, const char *format, ...)
{
	static char text[3 * LOG_LINE_MAX];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(fd, text, (size_t)length) != length)
		_exit(9);
}

#define say(...) tell(STDOUT_FILENO, __VA_ARGS__)

static void ask(int keeper_fd, enum ipc_type type, uint32_t server, uint64_t child, int value)
{
	struct ipc_message message = { .type = type };
	struct error err;

	if (type == IPC_START)
		message.start.child = child, message.start.server = server;
	else if (type == IPC_SIGNAL)
		message.signal.child = child, message.signal.number = value;
	else
		message.forget.child = child;
	if (ipc_send(keeper_fd, &message, &err) < 0) {
		say("cannot ask: %s\n", err.text);
		_exit(9);
	}
}

/* Waits for the next message; its descriptors come to fds_r. */
static struct ipc_message hear(int keeper_fd, int fds_r[IPC_FDS_MAX])
{
	struct pollfd p = { .fd = keeper_fd, .events = POLLIN };
	struct ipc_message message;
	struct error err;

	if (poll(&p, 1, WAIT_MS) != 1 || ipc_recv(keeper_fd, &message, &err) != 1 ||
	    message.fd_count !=
		    (message.type == IPC_STARTED || message.type == IPC_INHERIT ? 3 : 0)) {
		say("heard nothing sensible\n");
		_exit(9);
	}
	/* Another daemon of this user may have the state directory: that is not what is tested. */
	if (message.type == IPC_INHERIT_END || message.type == IPC_UNSAVED)
		return hear(keeper_fd, fds_r);
	memcpy(fds_r, message.fds, sizeof(message.fds));
	return message;
}

static int expect(int keeper_fd, enum ipc_type type, uint64_t child, int fds_r[IPC_FDS_MAX])
{
	struct ipc_message message = hear(keeper_fd, fds_r);

	uint64_t of = type == IPC_DRAIN ? 0 : message.started.child; /* as the others have it */

	if (message.type != (uint32_t)type || of != child) {
		say("heard type %u of child %lu instead of type %d\n", message.type,
		    (unsigned long)of, (int)type);
		_exit(9);
	}
	if (type == IPC_FAILED)
		return message.failed.error;
	return type == IPC_STARTED ? message.started.pid : message.exited.status;
}

/* The pid; descriptors in fds_r. */
static int start_child(int keeper_fd, uint32_t server, uint64_t child, int fds_r[IPC_FDS_MAX])
{
	ask(keeper_fd, IPC_START, server, child, 0);
	return expect(keeper_fd, IPC_STARTED, child, fds_r);
}

/* Copies what comes to the test until the end. */
static void say_all(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n = -1;

	while (poll(&p, 1, WAIT_MS) == 1 && (n = read(fd, bytes, sizeof(bytes))) > 0) {
		if (write(STDOUT_FILENO, bytes, (size_t)n) != n)
			_exit(9);
	}
	say(n == 0 ? "-- end\n" : "-- no end\n");
}

static int serve_until_drain(int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	expect(keeper_fd, IPC_DRAIN, 0, fds);
	return 0;
}

/* ---- children ---- */

static int gateway_cat(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	char bytes[16] = "";
	int fds[IPC_FDS_MAX];
	struct pollfd p;

	(void)config, (void)listeners, (void)count;
	start_child(keeper_fd, CAT, 1, fds);
	say("blocking %d\n", !(fcntl(fds[0], F_GETFL) & O_NONBLOCK));
	if (write(fds[0], "hello\n", 6) != 6)
		return 9;
	p = (struct pollfd){ .fd = fds[1], .events = POLLIN };
	if (poll(&p, 1, WAIT_MS) != 1 || read(fds[1], bytes, sizeof(bytes)) != 6)
		return 9;
	say("%s", bytes);
	close(fds[0]);
	ask(keeper_fd, IPC_CLOSE, 0, 1, 0);
	say_all(fds[1]);
	say("status %d\n", expect(keeper_fd, IPC_EXITED, 1, fds));
	return serve_until_drain(keeper_fd);
}

/* BACK-PROC-02: closing its stdin ends it, and the ends of output and process both arrive. */
static void child_echoes_and_ends_with_its_stdin(void **state)
{
	start(gateway_cat, "");
	assert_string_equal(next_line(), "blocking 0");
	assert_string_equal(next_line(), "hello");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "status 0");
	stop_and_expect(0);
	assert_non_null(strstr(logged(), "child_spawn process=keeper server=cat pid="));
}

/* Starts SH and says its output, its errors and how it ended. */
static int gateway_script(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];
	int status;

	(void)config, (void)listeners, (void)count;
	start_child(keeper_fd, SH, 1, fds);
	say_all(fds[1]);
	say_all(fds[2]);
	status = expect(keeper_fd, IPC_EXITED, 1, fds);
	if (WIFEXITED(status))
		say("exit %d\n", WEXITSTATUS(status));
	else
		say("signal %d\n", WTERMSIG(status));
	return serve_until_drain(keeper_fd);
}

static void exit_status_and_stderr_arrive(void **state)
{
	start(gateway_script, "echo trouble >&2; exit 7");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "trouble");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "exit 7");
	stop_and_expect(0);
}

/* fd -1: none. */
static void start_with(int keeper_fd, uint32_t server, uint64_t child, struct slice claims, int fd)
{
	struct ipc_message message = { .type = IPC_START,
				       .start = { child, server },
				       .texts = { claims },
				       .fds = { fd },
				       .fd_count = fd >= 0 };
	struct error err;

	if (ipc_send(keeper_fd, &message, &err) < 0)
		_exit(9);
}

static void expect_refused(int keeper_fd, uint32_t server, uint64_t child, struct slice claims)
{
	int fds[IPC_FDS_MAX];
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	start_with(keeper_fd, server, child, claims, fd);
	if (fd >= 0)
		close(fd);
	if (expect(keeper_fd, IPC_FAILED, child, fds) != EINVAL) {
		say("child %lu was not refused\n", (unsigned long)child);
		_exit(9);
	}
}

static int gateway_claims(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	static char big[17 * 1024];
	char longest[TEXT_CLAIM_MAX + 32] = "team\0t\0sub\0";
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	say("begins\n");
	expect_refused(keeper_fd, CLAIMS, 1, slice_of(NULL, 0));
	expect_refused(keeper_fd, CLAIMS, 2, SLICE_LIT(""));
	expect_refused(keeper_fd, CLAIMS, 3, SLICE_LIT("sub\0alice\0"));
	expect_refused(keeper_fd, CLAIMS, 4, SLICE_LIT("sub\0alice\0team\0t\0root\0x\0"));
	expect_refused(keeper_fd, CLAIMS, 5, SLICE_LIT("sub\0alice\0root\0x\0"));
	expect_refused(keeper_fd, CLAIMS, 6, SLICE_LIT("sub\0a\0sub\0b\0"));
	expect_refused(keeper_fd, CLAIMS, 7, SLICE_LIT("sub\0\0team\0t\0"));
	expect_refused(keeper_fd, CLAIMS, 8, SLICE_LIT("sub\0a\nb\0team\0t\0"));
	expect_refused(keeper_fd, CLAIMS, 9, SLICE_LIT("sub\0a\xff\0team\0t\0"));
	expect_refused(keeper_fd, CLAIMS, 10, SLICE_LIT("sub\0alice\0team\0t"));
	expect_refused(keeper_fd, CLAIMS, 11, SLICE_LIT("\0"));
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	expect_refused(keeper_fd, CLAIMS, 12, slice_of(big, sizeof(big)));
	memset(longest + 11, 'x', TEXT_CLAIM_MAX + 1);
	expect_refused(keeper_fd, CLAIMS, 13, slice_of(longest, 11 + TEXT_CLAIM_MAX + 2));
	expect_refused(keeper_fd, CAT, 14, SLICE_LIT("sub\0alice\0"));
	start_with(keeper_fd, CLAIMS, 15, SLICE_LIT("sub\0al ice\0team\0${claim:sub}\0"), -1);
	expect(keeper_fd, IPC_STARTED, 15, fds);
	say_all(fds[1]);
	expect(keeper_fd, IPC_EXITED, 15, fds);
	return serve_until_drain(keeper_fd);
}

/* AUTH-DWN-02, AUTH-DWN-03: exactly the claims that are declared, plain and short; a value is no template again. */
static void only_declared_claims_are_put_in(void **state)
{
	start(gateway_claims, "");
	assert_string_equal(next_line(), "begins");
	assert_string_equal(next_line(), "u-al ice|${claim:sub}.al ice|${claim:sub}");
	assert_string_equal(next_line(), "-- end");
	/* What came with fifteen orders is closed: those of the last process and of the log are open. */
	for (int64_t end = now_ms() + WAIT_MS; count_descriptors("pipe:") > 8; pause_ms(2))
		assert_true(now_ms() < end);
	stop_and_expect(0);
	assert_int_equal(count_logged(" ipc_bad_request "), 14);
	assert_null(strstr(logged(), "al ice"));
}

/* REL-28: a process that is killed by a signal. */
static void death_by_signal_arrives(void **state)
{
	start(gateway_script, "kill -SEGV $$");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "-- end");
	assert_int_equal(next_number("signal "), SIGSEGV);
	stop_and_expect(0);
}

/* REL-28, REL-30: the leader ends; its group, which holds the pipes, does not outlive it. */
static void group_ends_with_its_leader(void **state)
{
	start(gateway_script, "sleep 1000 & sleep 1000 & echo started; exit 0");
	assert_string_equal(next_line(), "started");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "exit 0");
	stop_and_expect(0);
}

/* REL-32: nothing but the three streams (and what ls itself opens). BACK-PROC-03. */
static void child_has_three_descriptors(void **state)
{
	start(gateway_script, "exec ls /proc/self/fd");
	for (int i = 0; i < 4; i++)
		assert_int_equal(next_number(""), i);
	assert_string_equal(next_line(), "-- end");
	stop_and_expect(0);
}

/* SEC-60, BACK-PROC-03: exactly what is configured, and what is inherited by name. */
static void child_environment_is_exact(void **state)
{
	char path[4096];

	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	/* Not env, but what the kernel was given: the shell adds variables of its own. */
	start(gateway_script, "tr '\\0' '\\n' < /proc/$$/environ; :");
	assert_string_equal(next_line(), "TOKEN=configured-secret");
	assert_string_equal(next_line(), path);
	assert_string_equal(next_line(), "INHERITED=by-name");
	assert_string_equal(next_line(), "-- end");
	stop_and_expect(0);
	/* FRONT-SEC-08, DEF-24: starts are logged, values never. */
	assert_non_null(strstr(logged(), "child_spawn process=keeper server=sh pid="));
	assert_null(strstr(logged(), "configured-secret"));
	assert_null(strstr(logged(), "by-name"));
}

/* SEC-60: not even where they are listed, whoever forgot to take them out of the environment. */
static void variables_of_the_service_manager_stay(void **state)
{
	static const char *const names[] = { "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET",
					     "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY" };
	struct error err = { ERROR_NONE, "" };
	struct config *config;
	struct launch launch;
	size_t inherited = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		setenv(names[i], "mark", 1);
	daemon_.gateway = daemon_.script = "none";
	config = make_config();
	assert_int_equal(launch_init(&launch, config, config->server_count, &err), 0);
	for (char **p = launch.specs[SH].envp; *p != NULL; p++) {
		assert_null(strstr(*p, "=mark"));
		inherited += strncmp(*p, "PATH=", 5) == 0;
	}
	assert_int_equal(inherited, 1);
	launch_fini(&launch);
	config_free(&config);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

/* As whoever starts the daemon may leave them; the C library hides the last one, and touches it in no set. */
static void set_ignored(void (*handler)(int))
{
	static const int numbers[] = { SIGUSR2, 64, 33 };
	const unsigned long action[4] = { (unsigned long)handler };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		assert_int_equal(syscall(SYS_rt_sigaction, numbers[i], action, NULL, 8), 0);
}

/* SEC-60, BACK-PROC-03: session and group of its own, signals as at login, limits, no privileges. */
static void child_state_is_clean(void **state)
{
	set_ignored(SIG_IGN);
	start(gateway_script,
	      "read pid comm state ppid group session rest < /proc/$$/stat\n"
	      "echo $((pid - $$)) $((group - $$)) $((session - $$))\n"
	      "ulimit -n; ulimit -c\n"
	      "exec grep -E '^(SigBlk|SigIgn|NoNewPrivs|CapAmb)' /proc/self/status");
	set_ignored(SIG_DFL);
	assert_string_equal(next_line(), "0 0 0");
	assert_int_equal(next_number(""), OPEN_FILES);
	assert_int_equal(next_number(""), 0);
	assert_string_equal(next_line(), "SigBlk:\t0000000000000000");
	assert_string_equal(next_line(), "SigIgn:\t0000000000000000");
	assert_string_equal(next_line(), "CapAmb:\t0000000000000000");
	assert_string_equal(next_line(), "NoNewPrivs:\t1");
	stop_and_expect(0);
}

static int gateway_failures(struct config *config, const int *listeners, size_t count,
			    int keeper_fd)
{
	static const uint32_t servers[] = { MISSING, MISSING, FORBIDDEN, NO_CWD };
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	for (uint32_t i = 0; i < ARRAY_LEN(servers); i++) {
		ask(keeper_fd, IPC_START, servers[i], 100 + i, 0);
		say("errno %d\n", expect(keeper_fd, IPC_FAILED, 100 + i, fds));
	}
	return serve_until_drain(keeper_fd);
}

/* REL-29: a start that fails says why, to the gateway as errno and to the operator in words, once. */
static void exec_failures_carry_their_errno(void **state)
{
	start(gateway_failures, "");
	assert_int_equal(next_number("errno "), ENOENT);
	assert_int_equal(next_number("errno "), ENOENT);
	assert_int_equal(next_number("errno "), EACCES);
	assert_int_equal(next_number("errno "), ENOENT);
	stop_and_expect(0);
	assert_non_null(strstr(
		logged(),
		"child_spawn_failed process=keeper server=missing reason=\"cannot execute the "
		"command\" command=no-such-command-anywhere error=\"No such "
		"file or directory\""));
	assert_int_equal(count_logged("child_spawn_failed process=keeper server=missing "), 1);
	assert_non_null(
		strstr(logged(), "server=no_cwd reason=\"cannot change to the directory (cwd)\""));
}

static int gateway_nonsense(struct config *config, const int *listeners, size_t count,
			    int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	ask(keeper_fd, IPC_START, SERVER_COUNT, 1, 0);
	ask(keeper_fd, IPC_START, UINT32_MAX, 2, 0);
	ask(keeper_fd, IPC_START, DISABLED, 3, 0);
	ask(keeper_fd, IPC_START, ENDPOINT, 9, 0);
	ask(keeper_fd, IPC_SIGNAL, 0, 4, SIGKILL);
	ask(keeper_fd, IPC_FORGET, 0, 5, 0);
	ask(keeper_fd, IPC_EXITED, 0, 6, 0);
	ask(keeper_fd, (enum ipc_type)4711, 0, 7, 0);
	start_child(keeper_fd, CAT, 8, fds);
	ask(keeper_fd, IPC_START, CAT, 8, 0);
	ask(keeper_fd, IPC_SIGNAL, 0, 8, SIGSTOP);
	ask(keeper_fd, IPC_SIGNAL, 0, 8, SIGKILL);
	say("status %d\n", expect(keeper_fd, IPC_EXITED, 8, fds));
	return serve_until_drain(keeper_fd);
}

/* FRONT-SEC-08, SEC-03: the gateway can have what the configuration names, and nothing else. */
static void nonsense_is_logged_and_ignored(void **state)
{
	start(gateway_nonsense, "");
	assert_int_equal(next_number("status "), SIGKILL);
	stop_and_expect(0);
	assert_int_equal(count_logged(" ipc_bad_request "), 8);
}

static int gateway_signals(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];
	char byte;
	struct pollfd p;

	(void)config, (void)listeners, (void)count;
	start_child(keeper_fd, SH, 1, fds);
	p = (struct pollfd){ .fd = fds[1], .events = POLLIN };
	if (poll(&p, 1, WAIT_MS) != 1 || read(fds[1], &byte, 1) != 1)
		return 9;
	ask(keeper_fd, IPC_SIGNAL, 0, 1, SIGTERM);
	say_all(fds[1]);
	say("status %d\n", expect(keeper_fd, IPC_EXITED, 1, fds));
	return serve_until_drain(keeper_fd);
}

/* BACK-PROC-02, REL-30: TERM reaches the whole group; a trap may turn it into an orderly end. */
static void term_reaches_the_group(void **state)
{
	start(gateway_signals, "trap 'wait; echo trapped; exit 3' TERM\n"
			       "sh -c 'trap \"echo inner; exit\" TERM; echo; sleep 1000 & wait' &\n"
			       "wait");
	assert_string_equal(next_line(), "inner");
	assert_string_equal(next_line(), "trapped");
	assert_string_equal(next_line(), "-- end");
	assert_int_equal(next_number("status "), 3 << 8);
	stop_and_expect(0);
}

static int gateway_forgets(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	start_child(keeper_fd, SH, 1, fds);
	ask(keeper_fd, IPC_FORGET, 0, 1, 0);
	say_all(fds[1]);
	/* Its number is free again at once, and of the first nothing more is heard. */
	start_child(keeper_fd, CAT, 1, fds);
	ask(keeper_fd, IPC_START, CAT, 2, 0);
	ask(keeper_fd, IPC_FORGET, 0, 2, 0); /* perhaps before it has been executed */
	ask(keeper_fd, IPC_SIGNAL, 0, 1, SIGKILL);
	while (hear(keeper_fd, fds).type != IPC_EXITED)
		;
	say("ended\n");
	return serve_until_drain(keeper_fd);
}

static void forgotten_child_is_killed(void **state)
{
	start(gateway_forgets, "trap '' TERM HUP; sleep 1000 & wait");
	assert_string_equal(next_line(), "-- end");
	assert_string_equal(next_line(), "ended");
	stop_and_expect(0);
}

#define TOO_MANY (CONFIGURED_PROCESSES * 3)

/* Starts so many, lets go of none, and says how many there are. */
static int hoard(int keeper_fd, uint32_t server, uint64_t most)
{
	unsigned int started = 0;
	int fds[IPC_FDS_MAX];

	for (uint64_t i = 1; i <= most; i++) {
		ask(keeper_fd, IPC_START, server, i, 0);
		if (hear(keeper_fd, fds).type == IPC_FAILED)
			continue;
		started++;
		for (int j = 0; j < 3; j++)
			close(fds[j]);
	}
	say("started %u\n", started);
	return serve_until_drain(keeper_fd);
}

static int gateway_hoards(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	(void)config, (void)listeners, (void)count;
	return hoard(keeper_fd, SH, TOO_MANY);
}

/* SEC-61: limits.processes holds for a gateway that does not keep to it, too, but for those that are on their way out. */
static void processes_are_bounded(void **state)
{
	start(gateway_hoards, "exec sleep 1000");
	assert_in_range(next_number("started "), CONFIGURED_PROCESSES,
			CONFIGURED_PROCESSES * 2 + 20);
	stop_and_expect(0);
}

/* As many as start.rate lets through at once. */
static int gateway_hoards_few(struct config *config, const int *listeners, size_t count,
			      int keeper_fd)
{
	(void)listeners, (void)count;
	return hoard(keeper_fd, FEW, 2 * config->servers[FEW].conf.start_rate);
}

/* SEC-61: likewise pool.max. */
static void processes_of_a_server_are_bounded(void **state)
{
	start(gateway_hoards_few, "");
	assert_in_range(next_number("started "), 3, 3 * 2 + 20);
	stop_and_expect(0);
}

/* It makes of a listener what it may, and ends. */
static int gateway_spoils(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	struct linger linger = { 0, 0 };
	int no_delay = 0, low_water = 0, timeout_ms = 0;
	socklen_t size = sizeof(int), linger_size = sizeof(linger);
	int fd = listeners[0];

	(void)config, (void)count, (void)keeper_fd;
	getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &linger_size);
	getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
	getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low_water, &size);
	getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &size);
	say("%d %d %d %d %d %d\n", linger.l_onoff, no_delay, low_water, timeout_ms,
	    (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0,
	    (fcntl(GATEWAY_LOG, F_GETFL) & O_NONBLOCK) != 0);
	linger = (struct linger){ 1, 3600 };
	no_delay = low_water = timeout_ms = 1;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, linger_size) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, size) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low_water, size) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, size) < 0 ||
	    fcntl(fd, F_SETFL, 0) < 0 || fcntl(GATEWAY_LOG, F_SETFL, 0) < 0)
		say("it may not\n");
	return 1;
}

/* SEC-61: of one that was taken over nothing stays. Accepted sockets would have all of it from their listener. */
static void next_gateway_finds_sockets_as_they_were(void **state)
{
	start(gateway_spoils, "");
	for (int i = 0; i < 3; i++)
		assert_string_equal(next_line(), "0 0 0 0 1 1");
	assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
}

/* It starts and lets go of processes as fast as it can. */
static int gateway_hurries(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	unsigned int failed = 0;
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	for (uint64_t i = 1; i <= 30; i++) {
		ask(keeper_fd, IPC_START, CAT, i, 0);
		failed += hear(keeper_fd, fds).type == IPC_FAILED;
		ask(keeper_fd, IPC_FORGET, 0, i, 0);
	}
	say("failed %u\n", failed);
	return serve_until_drain(keeper_fd);
}

/* SEC-61: start.rate holds for a gateway that does not keep to it, too. */
static void starts_a_second_are_bounded(void **state)
{
	start(gateway_hurries, "");
	assert_in_range(next_number("failed "), 1, 29);
	stop_and_expect(0);
}

#define MANY 300

/* Asks for all without listening: the answers do not fit into the socket. */
static int gateway_many(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	unsigned int started = 0, ended = 0;
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	for (uint64_t i = 1; i <= MANY; i++) {
		struct ipc_message message = { .type = IPC_START, .start = { i, SH } };
		struct error err;

		while (ipc_send(keeper_fd, &message, &err) < 0)
			pause_ms(1);
	}
	pause_ms(300);
	while (ended < MANY) {
		struct ipc_message message = hear(keeper_fd, fds);

		started += message.type == IPC_STARTED;
		ended += message.type == IPC_EXITED && message.exited.status == 5 << 8;
		for (int i = 0; message.type == IPC_STARTED && i < 3; i++)
			close(fds[i]);
	}
	say("started %u\n", started);
	return serve_until_drain(keeper_fd);
}

/* REL-28, REL-32: no start and no end is lost, however slow the gateway is. */
static void no_message_is_lost(void **state)
{
	start(gateway_many, "exit 5");
	assert_int_equal(next_number("started "), MANY);
	stop_and_expect(0);
	assert_int_equal(count_logged(" child_reaped "), MANY);
}

/* ---- what survives whom ---- */

static bool is_reaper(int pid)
{
	char path[64];
	char name[32] = "";
	FILE *file;
	bool is_found;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	is_found = fscanf(file, "%31s", name) == 1 && strcmp(name, "mcpgated-reaper") == 0;
	fclose(file);
	return is_found;
}

/* The present reaper among the daemon's children, or 0. */
static pid_t find_reaper(void)
{
	char path[64];
	FILE *file;
	int pid;
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", daemon_.pid, daemon_.pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (fscanf(file, "%d", &pid) == 1)
		found = is_reaper(pid) ? pid : found;
	fclose(file);
	return found;
}

/* The same when it has got as far as its name. 0: this kernel does not list children. */
static pid_t await_reaper(void)
{
	int64_t end = now_ms() + WAIT_MS;
	char path[64];
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	while (access(path, F_OK) == 0 && (found = find_reaper()) == 0) {
		assert_true(now_ms() < end);
		pause_ms(2);
	}
	return found;
}

/* Says its own pid and that of a child with a family, then waits. */
static int gateway_family(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	say("gateway %d\n", getpid());
	say("child %d\n", start_child(keeper_fd, SH, 1, fds));
	/* The script writes a line when its family is complete. */
	struct pollfd p = { .fd = fds[1], .events = POLLIN };
	if (poll(&p, 1, WAIT_MS) != 1)
		return 9;
	say("complete\n");
	return serve_until_drain(keeper_fd);
}

#define FAMILY "trap '' TERM HUP INT\nsleep 1000 & sh -c 'sleep 1000 & sleep 1000; :' & echo; wait"
#define ESCAPED "setsid sh -c 'trap \"\" TERM HUP; setsid sleep 1000 & echo; wait' & wait"

/* BACK-PROC-03, REL-43: not even kill -9 of the daemon leaves anything behind. */
static void nothing_survives_kill_of_the_keeper(void **state)
{
	start(gateway_family, FAMILY);
	next_number("gateway ");
	next_number("child ");
	assert_string_equal(next_line(), "complete");
	assert_int_equal(kill(daemon_.pid, SIGKILL), 0);
	wait_for_end();
	assert_nothing_left();
}

/* The same where there are no cgroups, in which all could be killed at once. */
static void groups_do_not_survive_kill_of_the_keeper(void **state)
{
	daemon_.hides_cgroups = true;
	nothing_survives_kill_of_the_keeper(state);
	assert_null(strstr(logged(), "measure=cgroups state=on"));
}

/* It hears nothing any more: only the kernel can end it. */
static int gateway_sleeps(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	say("gateway %d\n", getpid());
	say("child %d\n", start_child(keeper_fd, SH, 1, fds));
	while (poll(NULL, 0, WAIT_MS) == 0)
		;
	return 9;
}

static void wait_for_orphan(pid_t pid)
{
	int64_t end = now_ms() + WAIT_MS;

	while (waitpid(pid, NULL, WNOHANG) != pid) {
		assert_true(now_ms() < end);
		pause_ms(2);
	}
}

/* BACK-PROC-03, REL-43: the processes that the keeper started end with it, also where the reaper does nothing. */
static void kernel_ends_what_the_keeper_started(void **state)
{
	pid_t gateway, child, reaper;

	start(gateway_sleeps, "exec sleep 1000");
	gateway = next_number("gateway ");
	child = next_number("child ");
	reaper = await_reaper();
	if (reaper == 0)
		skip();
	assert_int_equal(kill(reaper, SIGSTOP), 0);
	assert_int_equal(kill(daemon_.pid, SIGKILL), 0);
	wait_for_end();
	wait_for_orphan(gateway);
	wait_for_orphan(child);
	assert_int_equal(kill(reaper, SIGCONT), 0);
	assert_nothing_left();
}

/* REL-30: what has left its group is found by the subreaper when the daemon stops. */
static void nothing_survives_a_stop(void **state)
{
	start(gateway_family, ESCAPED);
	next_number("gateway ");
	next_number("child ");
	assert_string_equal(next_line(), "complete");
	stop_and_expect(0);
	assert_non_null(strstr(logged(), " keeper_stop process=keeper exit=0 left=nothing"));
}

/* By the subreaper alone. */
static void orphans_do_not_survive_a_stop(void **state)
{
	daemon_.hides_cgroups = true;
	nothing_survives_a_stop(state);
	assert_null(strstr(logged(), "measure=cgroups state=on"));
}

/* SEC-61: it has the secrets of all servers. */
static void keeper_leaves_no_dump(void **state)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, before;
	void (*on_quit)(int);
	int status;

	getrlimit(RLIMIT_CORE, &before);
	if (setrlimit(RLIMIT_CORE, &all) < 0)
		skip();
	on_quit = signal(SIGQUIT, SIG_DFL); /* shells have background jobs ignore it */
	start(gateway_sleeps, "exec sleep 1000");
	signal(SIGQUIT, on_quit);
	next_number("gateway ");
	next_number("child ");
	setrlimit(RLIMIT_CORE, &before);
	assert_int_equal(kill(daemon_.pid, SIGQUIT), 0);
	status = wait_for_end();
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
	assert_false(WCOREDUMP(status));
	assert_nothing_left();
}

static void assert_gone(pid_t pid)
{
	int64_t end = now_ms() + WAIT_MS;

	while (kill(pid, 0) == 0 || errno != ESRCH) {
		assert_true(now_ms() < end);
		pause_ms(2);
	}
}

/* REL-43: the gateway is killed; its children are gone, a new one serves the same listeners. */
static void gateway_is_restarted_without_its_children(void **state)
{
	pid_t gateway, child;
	int64_t killed_at;

	start(gateway_family, FAMILY);
	gateway = next_number("gateway ");
	child = next_number("child ");
	assert_string_equal(next_line(), "complete");
	killed_at = now_ms();
	assert_int_equal(kill(gateway, SIGKILL), 0);
	assert_int_not_equal(next_number("gateway "), gateway);
	assert_true(now_ms() - killed_at < 1000);
	assert_gone(child);
	assert_int_not_equal(next_number("child "), child);
	assert_string_equal(next_line(), "complete");
	stop_and_expect(0);
	assert_non_null(strstr(logged(), " gateway_exit process=keeper pid="));
}

static void say_owner(int keeper_fd, uint64_t child, const char *owner)
{
	struct ipc_message message = { .type = IPC_OWNER,
				       .owner = { child },
				       .texts = { slice_str(owner) } };
	struct error err;

	if (ipc_send(keeper_fd, &message, &err) < 0)
		_exit(9);
}

/* Each gateway gives so many numbers, from its own pid times as many on. */
#define HEIR_NUMBERS 4

/* Says what it inherits, and that it can be used. */
static void take_inherited(const struct ipc_message *message, const int fds[IPC_FDS_MAX])
{
	struct pollfd p = { .fd = fds[1], .events = POLLIN };
	char bytes[16] = "";

	say("inherited %d\n", message->inherit.pid);
	say("numbered by %d\n", (int)(message->inherit.child / HEIR_NUMBERS));
	say("of %.*s, server %u, blocking %d\n", SLICE_ARG(message->texts[0]),
	    message->inherit.server, !(fcntl(fds[0], F_GETFL) & O_NONBLOCK));
	if (write(fds[0], "hello\n", 6) != 6 || poll(&p, 1, WAIT_MS) != 1 ||
	    read(fds[1], bytes, sizeof(bytes)) != 6)
		_exit(9);
	say("%s", bytes);
}

/* Three children: one with an owner, which it tries to change; one without; one that it has closed. */
static int gateway_heir(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	uint64_t number = (uint64_t)getpid() * HEIR_NUMBERS;
	int fds[IPC_FDS_MAX];
	struct ipc_message message;
	int first;

	(void)config, (void)listeners, (void)count;
	say("gateway %d\n", getpid());
	ask(keeper_fd, IPC_START, CAT, number, 0);
	for (message = hear(keeper_fd, fds); message.type == IPC_INHERIT;
	     message = hear(keeper_fd, fds))
		take_inherited(&message, fds);
	fcntl(fds[0], F_SETFL, 0);
	first = message.started.pid;
	ask(keeper_fd, IPC_START, CAT, ((uint64_t)1 << 62) | 1, 0); /* not its to give */
	say_owner(keeper_fd, number, "alice");
	say_owner(keeper_fd, number, "mallory");
	start_child(keeper_fd, CAT, number + 1, fds);
	say("other %d\n", start_child(keeper_fd, CAT, number + 2, fds));
	say_owner(keeper_fd, number + 2, "bob");
	ask(keeper_fd, IPC_CLOSE, 0, number + 2, 0);
	say("child %d\n", first);
	return serve_until_drain(keeper_fd);
}

/*
 * SEC-61: a child that has an owner outlives the gateway, with its number, and is the first owner's; one that was
 * there at the third death is not. What is closed, or has no owner, ends.
 */
static void child_outlives_the_gateway(void **state)
{
	pid_t child = 0, other, gateways[4];

	start(gateway_heir, "");
	for (int deaths = 0; deaths < 4; deaths++) {
		gateways[deaths] = next_number("gateway ");
		/* Of each gateway before one, but for the first one's in the end. */
		for (int i = 0; i < deaths - (deaths == 3); i++) {
			pid_t inherited = next_number("inherited ");

			assert_int_equal(next_number("numbered by "), gateways[i + (deaths == 3)]);
			assert_string_equal(next_line(), "of alice, server 0, blocking 0");
			assert_string_equal(next_line(), "hello");
			assert_int_equal(inherited == child, i == 0 && deaths < 3);
		}
		other = next_number("other ");
		if (deaths == 0)
			child = next_number("child ");
		else
			next_number("child ");
		if (deaths == 3)
			break;
		assert_int_equal(kill(gateways[deaths], SIGKILL), 0);
		assert_gone(other);
	}
	assert_gone(child);
	stop_and_expect(0);
}

/* What this process, as a gateway, was given. */
static struct gateway_entry given;

static int gateway_has_key(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	char text[2 * SEAL_KEY_BYTES + 1];

	(void)config, (void)listeners, (void)count;
	for (size_t i = 0; i < SEAL_KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", given.seal_key[i]);
	say("gateway %d\n", getpid());
	say("%s\n", text);
	return serve_until_drain(keeper_fd);
}

/* What one gateway has sealed the next one opens. bridging.md §2.6 */
static void each_gateway_has_the_same_key(void **state)
{
	char key[2 * SEAL_KEY_BYTES + 1] = "";
	pid_t gateway;

	start(gateway_has_key, "");
	gateway = next_number("gateway ");
	strncat(key, next_line(), sizeof(key) - 1);
	assert_int_equal(strlen(key), 2 * SEAL_KEY_BYTES);
	assert_int_not_equal(strspn(key, "0"), strlen(key));
	assert_int_equal(kill(gateway, SIGKILL), 0);
	assert_int_not_equal(next_number("gateway "), gateway);
	assert_string_equal(next_line(), key);
	stop_and_expect(0);
	assert_null(strstr(logged(), key));
}

/* What was made for one goes with it. */
static void no_descriptor_is_left_of_a_gateway(void **state)
{
	size_t count = 0;

	start(gateway_has_key, "");
	for (int i = 0; i < 3; i++) {
		pid_t gateway = next_number("gateway ");
		int64_t end = now_ms() + WAIT_MS;
		char text[64];

		next_line();
		/* From then on nothing is done but for it. */
		snprintf(text, sizeof(text), "gateway_start process=keeper pid=%d", gateway);
		wait_for_log(text);
		if (i == 0)
			count = count_descriptors("");
		while (count_descriptors("") != count) {
			assert_true(now_ms() < end);
			pause_ms(5);
		}
		if (i < 2)
			assert_int_equal(kill(gateway, SIGKILL), 0);
	}
	stop_and_expect(0);
}

#define DEAF_ASKS 20000

static int gateway_fails(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	(void)config, (void)listeners, (void)count, (void)keeper_fd;
	say("started\n");
	return 1;
}

static void gateway_that_always_dies_ends_the_daemon(void **state)
{
	int status;

	start(gateway_fails, "");
	for (int i = 0; i < 6; i++)
		assert_string_equal(next_line(), "started");
	status = wait_for_end();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_nothing_left();
	assert_int_equal(count_logged(" gateway_start "), 6);
	assert_int_equal(count_logged(" gateway_give_up "), 1);
}

/* REL-30: who stops the daemon while no gateway runs does not wait for the next one. */
static void stop_between_two_gateways(void **state)
{
	int64_t end = now_ms() + WAIT_MS;

	start(gateway_fails, "");
	for (size_t i = 1; i < 6; i++) {
		assert_string_equal(next_line(), "started");
		while (count_logged(" gateway_exit ") < i) {
			assert_true(now_ms() < end);
			pause_ms(2);
		}
	}
	stop_and_expect(0);
	assert_int_equal(count_logged(" gateway_start "), 5);
}

/* It asks and asks, and hears nothing until nobody takes its requests any more. */
static int gateway_deaf(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	struct ipc_message message = { .type = IPC_START,
				       .start.server = CLAIMS }; /* without claims: refused */
	int fds[IPC_FDS_MAX];
	int idle = 0;
	struct error err;

	(void)config, (void)listeners, (void)count;
	while (idle < 50 && message.start.child < DEAF_ASKS) {
		message.start.child++;
		if (ipc_send(keeper_fd, &message, &err) == 0) {
			idle = 0;
			continue;
		}
		message.start.child--;
		idle++;
		poll(NULL, 0, 10);
	}
	say("asked %lu\n", (unsigned long)message.start.child);
	for (uint64_t i = 1; i <= message.start.child; i++)
		expect(keeper_fd, IPC_FAILED, i, fds);
	say("heard all\n");
	return serve_until_drain(keeper_fd);
}

/* BACK-SEC-01: what the keeper owes to a gateway that is out of its mind is bounded; and nothing of it is lost. */
static void gateway_that_does_not_listen_is_not_heard(void **state)
{
	start(gateway_deaf, "");
	assert_in_range(next_number("asked "), 1, DEAF_ASKS - 1);
	assert_string_equal(next_line(), "heard all");
	stop_and_expect(0);
}

#define JUDGED 100

/* It asks about connections, over and over. */
static int gateway_asks(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];
	struct error err;

	(void)config, (void)listeners, (void)count;
	for (uint64_t i = 1; i <= JUDGED; i++) {
		struct ipc_message message = {
			.type = IPC_JUDGE, .judge.question = i, .fds = { keeper_fd }, .fd_count = 1
		};

		if (ipc_send(keeper_fd, &message, &err) < 0)
			return 9;
		message = hear(keeper_fd, fds);
		if (message.type != IPC_JUDGED || message.judged.question != i)
			return 9;
	}
	say("asked\n");
	return serve_until_drain(keeper_fd);
}

/* SEC-61: the keeper keeps nothing of what it was asked about. */
static void connections_that_were_judged_are_closed(void **state)
{
	start(gateway_asks, "");
	assert_string_equal(next_line(), "asked");
	assert_true(count_descriptors("") < JUDGED);
	stop_and_expect(0);
}

/* A packet that is no message, with many descriptors. */
static void send_raw(int keeper_fd, const int *fds, size_t count)
{
	char byte = 'x';
	char control[CMSG_SPACE(100 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	if (sendmsg(keeper_fd, &header, 0) != 1)
		_exit(9);
}

/* It hands over a connection that cannot be closed before its client has read everything. */
static int gateway_lingering(struct config *config, const int *listeners, size_t count,
			     int keeper_fd)
{
	static char block[1 << 16];
	const struct linger endless = { 1, 3600 };
	struct sockaddr_in at = { .sin_port = 0 };
	struct pollfd p = { .fd = listeners[0], .events = POLLIN };
	socklen_t size = sizeof(at);
	int fds[IPC_FDS_MAX];
	int copies[100];
	int fd;

	(void)config, (void)count;
	if (getsockname(listeners[0], (struct sockaddr *)&at, &size) < 0)
		return 9;
	say("port %d\n", ntohs(at.sin_port));
	if (poll(&p, 1, WAIT_MS) != 1 || (fd = accept4(listeners[0], NULL, NULL, SOCK_CLOEXEC)) < 0)
		return 9;
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &endless, sizeof(endless)) < 0)
		return 9;
	start_with(keeper_fd, CLAIMS, 1, slice_of(NULL, 0), fd);
	for (size_t i = 0; i < ARRAY_LEN(copies); i++)
		copies[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	close(fd);
	expect(keeper_fd, IPC_FAILED, 1, fds);
	say("refused\n");
	send_raw(keeper_fd, copies, ARRAY_LEN(copies));
	send_raw(keeper_fd, copies, ARRAY_LEN(copies)); /* nobody takes it */
	return serve_until_drain(keeper_fd);
}

/* A gateway that breaks the protocol is killed; what it hands over does not keep the keeper waiting. */
static void closing_does_not_wait(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	start(gateway_lingering, "");
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)next_number("port "));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_string_equal(next_line(), "refused");
	next_number("port "); /* of the next gateway */
	assert_int_equal(kill(daemon_.pid, SIGKILL), 0);
	wait_for_end();
	assert_nothing_left();
	close(fd);
}

/* Whether it has come so far that this signal does nothing to it. */
static bool reaper_ignores(int pid, int number)
{
	unsigned long long ignored = 0;
	char path[64];
	char line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL &&
	       sscanf(line, "SigIgn: %llx", &ignored) != 1)
		;
	fclose(file);
	return (ignored >> (number - 1) & 1) != 0;
}

/* REL-43: the reaper is replaced, and the new one knows the groups that the old one knew. */
static void reaper_is_replaced(void **state)
{
	pid_t first, second = 0;
	int64_t end = now_ms() + WAIT_MS;
	size_t count;

	daemon_.hides_cgroups =
		true; /* by their cgroups it would find them without having been told */
	start(gateway_family, FAMILY);
	next_number("gateway ");
	next_number("child ");
	assert_string_equal(next_line(), "complete");
	first = await_reaper();
	if (first == 0)
		skip();
	while (!reaper_ignores(first, SIGTERM)) { /* only its pipe, or KILL, ends it */
		assert_true(now_ms() < end);
		pause_ms(2);
	}
	count = count_descriptors("");
	assert_int_equal(kill(first, SIGKILL), 0);
	while (second == 0 || second == first) {
		assert_true(now_ms() < end);
		pause_ms(2);
		second = find_reaper();
	}
	/* The keeper hears this after it has told the new one, which reads it even if the keeper has gone by then. */
	assert_int_equal(kill(daemon_.pid, SIGHUP), 0);
	wait_for_log(" signal ");
	assert_int_equal(count_descriptors(""), count);
	assert_int_equal(kill(daemon_.pid, SIGKILL), 0);
	wait_for_end();
	assert_nothing_left();
}

/* ---- confinement ---- */

static int gateway_prisoner(struct config *config, const int *listeners, size_t count,
			    int keeper_fd)
{
	const struct config_pair *env = config->servers[SH].env;
	int count_foreign = 0;
	sigset_t blocked;

	for (char **p = environ; *p != NULL; p++)
		count_foreign +=
			strstr(*p, "SAN_OPTIONS=") == NULL; /* a sanitized build keeps its own */
	say("environment %d\n", count_foreign);
	say("secret %d\n", env != NULL || config->servers[SH].args.count > 0);
	say("root %d\n", getuid() == 0 || geteuid() == 0 || getgid() == 0);
	say("inherited %d\n", fcntl(50, F_GETFD) >= 0);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	say("blocked %d\n", !sigisemptyset(&blocked));
	say("group %d\n", kill(getppid(), 0)); /* not allowed: this is its end */
	return serve_until_drain(keeper_fd);
}

/* Whether the daemon logged that it could not take this measure here. */
static bool is_measure_on(const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "measure=%s state=on", name);
	return strstr(logged(), text) != NULL;
}

/* SEC-60, SEC-61, DEF-24: the process that faces the network can do nothing to the host. */
static void gateway_is_confined(void **state)
{
	start(gateway_prisoner, "");
	assert_int_equal(next_number("environment "), 0);
	assert_int_equal(next_number("secret "), 0);
	if (getuid() == 0)
		assert_int_equal(next_number("root "), 0);
	else
		next_line();
	assert_int_equal(next_number("inherited "), 0);
	assert_int_equal(next_number("blocked "), 0);
	wait_for_log(" gateway_forbidden process=gateway call=kill number=");
	assert_true(is_measure_on("seccomp") && is_measure_on("no_dumps"));
	/* What comes next is the next gateway. */
	assert_int_equal(next_number("environment "), 0);
	stop_and_expect(0);
}

/* ---- stop, reload, systemd ---- */

static int gateway_drains_twice(struct config *config, const int *listeners, size_t count,
				int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)count;
	say("running\n");
	expect(keeper_fd, IPC_DRAIN, 0, fds);
	close(listeners[0]);
	say("drain\n");
	expect(keeper_fd, IPC_DRAIN, 0, fds);
	say("hurry\n");
	return 0;
}

/* REL-41: the second signal hurries; from the first on nobody listens but the gateway. */
static void second_signal_is_a_second_drain(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *port;
	int status;

	start(gateway_drains_twice, "");
	assert_string_equal(next_line(), "running");
	assert_int_equal(kill(daemon_.pid, SIGINT), 0);
	assert_string_equal(next_line(), "drain");
	port = strstr(logged(), " address=127.0.0.1:");
	assert_non_null(port);
	at.sin_port = htons((uint16_t)atoi(strchr(port, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), -1);
	close(fd);
	assert_int_equal(kill(daemon_.pid, SIGTERM), 0);
	assert_string_equal(next_line(), "hurry");
	status = wait_for_end();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_nothing_left();
}

static int gateway_ignores(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	say("running\n");
	expect(keeper_fd, IPC_DRAIN, 0, fds);
	say("drain\n");
	while (poll(NULL, 0, WAIT_MS) == 0)
		;
	return 9;
}

/* REL-41: it has its time, and is killed afterwards. */
static void gateway_that_does_not_stop_is_killed(void **state)
{
	int status = 0;

	start(gateway_ignores, "");
	assert_string_equal(next_line(), "running");
	assert_int_equal(kill(daemon_.pid, SIGTERM), 0);
	assert_string_equal(next_line(), "drain");
	for (int i = 0; i < 20; i++) {
		pause_ms(2);
		assert_int_equal(waitpid(daemon_.pid, &status, WNOHANG), 0);
	}
	assert_null(strstr(logged(), " gateway_exit "));
	for (int64_t end = now_ms() + WAIT_MS; waitpid(daemon_.pid, &status, WNOHANG) == 0;) {
		assert_true(now_ms() < end);
		kill(daemon_.pid, SIGUSR1);
		pause_ms(5);
	}
	daemon_.pid = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_nothing_left();
	assert_non_null(strstr(logged(), "signal=9"));
}

static int gateway_logs(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	(void)config, (void)listeners, (void)count;
	say("running\n");
	serve_until_drain(keeper_fd);
	tell(GATEWAY_LOG, "2026-01-02T03:04:05.678Z info late process=gateway\n");
	return 0;
}

static int gateway_forges(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	static char longest[2 * LOG_LINE_MAX];

	(void)config, (void)listeners, (void)count;
	memset(longest, 'x', sizeof(longest) - 1);
	tell(GATEWAY_LOG, "2026-01-02T03:04:05.678Z info mine process=gateway a=b\n"
			  "2026-01-02T03:04:05.678Z info forged process=keeper pid=1\n"
			  "2026-01-02T03:04:05.678Z info forged process=gateways\n"
			  "2026-01-02T03:04:05.678Z info forged pid=1 process=gateway\n"
			  "2026-01-02T03:04:05.678Z info forged process=gateway \x1b[2J\n"
			  "2026-01-02 03:04:05 forged\n\n");
	tell(GATEWAY_LOG, "%s\n", longest);
	say("written\n");
	serve_until_drain(keeper_fd);
	tell(GATEWAY_LOG, "half a line");
	return 0;
}

/* REL-47: what the gateway writes is a line of its own, or quoted in one of the keeper's. */
static void gateway_cannot_forge_the_log(void **state)
{
	const char *text;

	(void)state;
	start(gateway_forges, "");
	assert_string_equal(next_line(), "written");
	stop_and_expect(0);
	text = logged();
	assert_non_null(strstr(text, "\n2026-01-02T03:04:05.678Z info mine process=gateway a=b\n"));
	assert_null(strstr(text, "\n2026-01-02T03:04:05.678Z info forged"));
	assert_null(strchr(text, '\x1b'));
	assert_int_equal(count_logged(" gateway_output process=keeper text="), 7);
	assert_non_null(strstr(text, " gateway_output process=keeper text=\"half a line\"\n"));
}

/* Asks for what it cannot have, as fast as it can, for a while. */
static int gateway_floods(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	struct ipc_message message = { .type = IPC_START, .start.server = SERVER_COUNT };
	int64_t end = now_ms() + 1500;
	struct error err;

	(void)config, (void)listeners, (void)count;
	while (now_ms() < end)
		if (ipc_send(keeper_fd, &message, &err) < 0)
			poll(&(struct pollfd){ .fd = keeper_fd, .events = POLLOUT }, 1, 10);
	say("done\n");
	return serve_until_drain(keeper_fd);
}

static int gateway_orders(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	struct ipc_message order = { .type = IPC_RELOAD, .reload = { 1, 1 } };
	struct error err;

	(void)config, (void)listeners, (void)count;
	ask(keeper_fd, IPC_READY, 0, 0, 0);
	while (order.reload.order <= 200)
		if (ipc_send(keeper_fd, &order, &err) == 0)
			order.reload.order++;
	say("done\n");
	pause();
	return 0;
}

/* REL-40: a gateway that was taken over orders upgrades as often as it likes. */
static void orders_of_upgrades_are_bounded(void **state)
{
	start(gateway_orders, "");
	assert_string_equal(next_line(), "done");
	wait_for_log("too many orders");
	assert_in_range(count_logged("cannot be seen"), RELOAD_ORDERS_AT_ONCE, 100);
	assert_int_equal(kill(daemon_.pid, SIGKILL), 0);
	wait_for_end();
	assert_nothing_left();
}

/* Orders another program, and makes place for it. */
static int gateway_makes_place(struct config *config, const int *listeners, size_t count,
			       int keeper_fd)
{
	const struct ipc_message order = { .type = IPC_RELOAD, .reload = { 1, 1 } };
	struct ipc_message message = { .type = 0 };
	struct error err;
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	start_child(keeper_fd, SH, 1, fds);
	ask(keeper_fd, IPC_READY, 0, 0, 0);
	if (ipc_send(keeper_fd, &order, &err) < 0)
		_exit(9);
	while (message.type != IPC_HAND_OVER && message.type != IPC_DRAIN) {
		char text[256] = "";

		poll(&(struct pollfd){ .fd = keeper_fd, .events = POLLIN }, 1, WAIT_MS);
		if (ipc_recv(keeper_fd, &message, &err) != 1)
			_exit(9);
		if (message.type == IPC_RELOADED) {
			(void)!pread(message.fds[0], text, sizeof(text) - 1, 0);
			say("answer %d %s%s", message.reloaded.is_used, text,
			    text[0] != '\0' ? "" : "\n");
		}
		for (size_t i = 0; i < message.fd_count; i++)
			close(message.fds[i]);
	}
	say("gone\n");
	return 0;
}

/* What it says when it is asked, and then, once a gateway has made place; the rest when it is executed. */
static void put_next(const char *first, const char *then)
{
	char path[96];
	FILE *out;

	snprintf(path, sizeof(path), "%s/next", directory);
	out = fopen(path, "we");
	assert_non_null(out);
	fprintf(out,
		"#!/bin/sh\n"
		"cd '%s'\n"
		"if [ \"$MCPGATED_HANDOVER\" = check ]; then\n"
		"	[ -e asked ] && { %s; exit; }\n"
		"	: >asked; %s; exit\n"
		"fi\n"
		"exec >out\n"
		"tr '\\000' '\\n' <\"/proc/self/fd/$MCPGATED_HANDOVER\"\n"
		"echo end; exit 7\n",
		directory, then, first);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, 0700), 0);
	daemon_.has_next = true;
}

#define FINE "echo mcpgated-handover 1"

/* All that the next one needs; a process that is nobody's has ended before. */
static void another_program_takes_over(void **state)
{
	static const char *const left[] = {
		" denials", " pipes", " stream_logs", " seal",    "reaper ", "listener ",
		"program ", "old ",   "path ",        "sessions", "pins",
	};
	bool is_left[ARRAY_LEN(left)] = { false };
	const char *line;
	int status;

	put_next(FINE, FINE);
	start(gateway_makes_place, "exec cat");
	assert_string_equal(next_line(), "answer 1 ");
	assert_string_equal(next_line(), "gone");
	while (strcmp(line = next_line(), "end") != 0)
		for (size_t i = 0; i < ARRAY_LEN(left); i++)
			is_left[i] |= strstr(line, left[i]) != NULL;
	for (size_t i = 0; i < ARRAY_LEN(left); i++)
		if (!is_left[i])
			fail_msg("not left: %s", left[i]);
	status = wait_for_end();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_non_null(strstr(logged(), "from=running to=upgrading"));
	assert_int_equal(count_logged("from=upgrading"), 0);
	assert_nothing_left();
}

/* Before or after a gateway has made place; this program goes on, and says why. */
static void a_program_that_refuses_is_not_executed(void **state)
{
	put_next("echo mcpgated: not so >&2; exit 1", "exit 1");
	start(gateway_makes_place, "");
	assert_string_equal(next_line(), "answer 0 error not so");
	assert_int_equal(count_logged("upgrade_refused process=keeper error=\"not so\""), 1);
	stop_and_expect(0);
	assert_int_equal(count_logged("to=upgrading"), 0);
}

static void a_program_that_refuses_later_is_not_executed(void **state)
{
	put_next(FINE, "echo mcpgated: not any more >&2; exit 1");
	start(gateway_makes_place, "");
	assert_string_equal(next_line(), "answer 1 ");
	assert_string_equal(next_line(), "gone");
	/* The next gateway orders it again. */
	assert_string_equal(next_line(), "answer 0 error not any more");
	assert_int_equal(count_logged("upgrade_failed process=keeper error=\"not any more\""), 1);
	assert_int_equal(count_logged("from=upgrading to=running"), 1);
	stop_and_expect(0);
}

/* Leaves as many lines as there is room for behind. */
static int gateway_babbles(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	static char lines[4096];

	(void)config, (void)listeners, (void)count, (void)keeper_fd;
	for (size_t i = 0; i < sizeof(lines); i += 2)
		memcpy(lines + i, "x\n", 2);
	while (write(GATEWAY_LOG, lines, sizeof(lines)) > 0)
		;
	return 1;
}

#define LINES_A_SECOND 10000 /* log_writer.h */

static size_t count_lines(void)
{
	size_t count = 0;
	struct stat st;
	char *text;

	assert_int_equal(fstat(daemon_.log, &st), 0);
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, daemon_.log, 0);
	assert_true(text != MAP_FAILED);
	for (off_t i = 0; i < st.st_size; i++)
		count += text[i] == '\n';
	munmap(text, (size_t)st.st_size);
	return count;
}

/* SEC-61, REL-47: what it makes the keeper write is bounded like what it writes by itself. */
static void gateway_cannot_fill_the_log(void **state)
{
	daemon_.log_level = "info";
	start(gateway_floods, "");
	assert_string_equal(next_line(), "done");
	assert_in_range(count_lines(), 1, LINES_A_SECOND * 4);
	stop_and_expect(0);
}

/* SEC-61, REL-47: likewise with what it leaves behind. */
static void last_words_of_a_gateway_are_bounded(void **state)
{
	daemon_.log_level = "info";
	start(gateway_babbles, "");
	assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
	/* Six gateways, in four seconds or more; each would leave half a million. */
	assert_in_range(count_lines(), 1, LINES_A_SECOND * 20);
}

static size_t read_file(const char *path, char *text_r, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text_r, size - 1) : 0;

	if (fd >= 0)
		close(fd);
	text_r[n > 0 ? n : 0] = '\0';
	return strlen(text_r);
}

static void hangup_opens_the_log_anew(void **state)
{
	static char text[1 << 15];
	char path[80], moved[80];

	snprintf(path, sizeof(path), "%s/log", directory);
	snprintf(moved, sizeof(moved), "%s/log.1", directory);
	daemon_.log_target = path;
	start(gateway_logs, "");
	assert_string_equal(next_line(), "running");
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(kill(daemon_.pid, SIGHUP), 0);
	for (int64_t end = now_ms() + WAIT_MS; read_file(path, text, sizeof(text)) == 0;
	     pause_ms(2))
		assert_true(now_ms() < end);
	stop_and_expect(0);
	read_file(moved, text, sizeof(text));
	assert_non_null(strstr(text, " keeper_start "));
	assert_null(strstr(text, " keeper_stop "));
	read_file(path, text, sizeof(text));
	assert_non_null(strstr(text, " log_reopened "));
	assert_non_null(strstr(text, "\n2026-01-02T03:04:05.678Z info late process=gateway\n"));
	assert_non_null(strstr(text, " keeper_stop "));
}

static int gateway_ready(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int on = 0;
	socklen_t size = sizeof(on);

	getsockopt(listeners[0], SOL_SOCKET, SO_ACCEPTCONN, &on, &size);
	say("listening %d\n", count == 1 && on);
	ask(keeper_fd, IPC_READY, 0, 0, 0);
	return serve_until_drain(keeper_fd);
}

static int gateway_alive(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	ask(keeper_fd, IPC_READY, 0, 0, 0);
	while (hear(keeper_fd, fds).type == IPC_PING)
		ask(keeper_fd, IPC_ALIVE, 0, 0, 0);
	return 0;
}

static int gateway_hangs(struct config *config, const int *listeners, size_t count, int keeper_fd)
{
	int fds[IPC_FDS_MAX];

	(void)config, (void)listeners, (void)count;
	ask(keeper_fd, IPC_READY, 0, 0, 0);
	while (hear(keeper_fd, fds).type == IPC_PING) {
	}
	return 0;
}

static void expect_datagram(int fd, const char *text)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char bytes[128];
	ssize_t n;

	do {
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		n = recv(fd, bytes, sizeof(bytes) - 1, 0);
		assert_true(n > 0);
		bytes[n] = '\0';
	} while (strcmp(bytes, "WATCHDOG=1") == 0 && strcmp(text, bytes) != 0);
	assert_memory_equal(bytes, text, strlen(text));
}

/* An abstract socket, as systemd may use it in containers. */
#define start_supervised(gateway) start_supervised_named(#gateway)

static int start_supervised_named(const char *gateway)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[64];
	int length, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	length = snprintf(name, sizeof(name), "@mcpgated-keeper-test-%d", getpid());
	memcpy(at.sun_path + 1, name + 1, (size_t)length - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	/* The socket holds ten datagrams: so long a busy machine may keep this process from reading them. */
	setenv("WATCHDOG_USEC", "200000", 1);
	start_named(gateway, "");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	return fd;
}

/* REL-52 */
static void systemd_hears_of_ready_watchdog_and_stop(void **state)
{
	int fd = start_supervised(gateway_alive);

	expect_datagram(fd, "READY=1");
	for (int i = 0; i < 3; i++)
		expect_datagram(fd, "WATCHDOG=1");
	stop_and_expect(0);
	expect_datagram(fd, "STOPPING=1\nEXTEND_TIMEOUT_USEC=");
	close(fd);
}

/* REL-52: a question stayed open for as long as the watchdog may wait half, and systemd was not told that all is well. */
static void hanging_gateway_does_not_feed_the_watchdog(void **state)
{
	int fd = start_supervised(gateway_hangs);
	char bytes[128];

	expect_datagram(fd, "READY=1");
	wait_for_log(" gateway_silent process=keeper pid=");
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
	stop_and_expect(0);
	expect_datagram(fd, "STOPPING=1\nEXTEND_TIMEOUT_USEC=");
	close(fd);
}

static void ready_lines_name_the_real_port(void **state)
{
	unsigned int port = 0;
	const char *line;

	start(gateway_ready, "");
	wait_for_log("mcpgated: ready: no_cwd ");
	line = strstr(logged(), "mcpgated: ready: cat (not tried yet) at http://127.0.0.1:");
	assert_non_null(line);
	assert_int_equal(
		sscanf(line,
		       "mcpgated: ready: cat (not tried yet) at http://127.0.0.1:%u/cat/mcp\n",
		       &port),
		1);
	assert_int_not_equal(port, 0);
	assert_null(strstr(logged(), "ready: disabled"));
	stop_and_expect(0);
}

static void ready_lines_name_a_unix_socket(void **state)
{
	char address[80], expected[160];

	snprintf(address, sizeof(address), "unix:%s/socket", directory);
	snprintf(expected, sizeof(expected),
		 "mcpgated: ready: cat (not tried yet) at http+unix://%s/socket:/cat/mcp\n",
		 directory);
	daemon_.listen = address;
	start(gateway_ready, "");
	wait_for_log(expected);
	stop_and_expect(0);
}

static void address_that_cannot_be_used_ends_the_start(void **state)
{
	int status;

	daemon_.listen = "unix:/no/such/directory/socket";
	start(gateway_ready, "");
	status = wait_for_end();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_non_null(
		strstr(logged(),
		       "mcpgated: cannot listen on unix:/no/such/directory/socket: "
		       "No such file or directory; that directory has to be there before\n"));
	assert_nothing_left();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- this program as the gateway's ---- */

/* The named pipe, while it can be opened: its path stands in the configuration. */
static void open_output(void)
{
	static char text[1 << 16];
	char *end, *begin;

	if (pread(GATEWAY_CONFIG, text, sizeof(text) - 1, 0) <= 0 ||
	    (end = strstr(text, "/out")) == NULL)
		_exit(9);
	for (begin = end; begin > text && begin[-1] != ' ' && begin[-1] != '"'; begin--)
		;
	end[strlen("/out")] = '\0';
	if (dup2(open(begin, O_WRONLY | O_CLOEXEC), STDOUT_FILENO) < 0)
		_exit(9);
}

static int gateway_program(void)
{
	static const struct {
		const char *name;
		gateway_fn *run;
	} gateways[] = {
		{ "gateway_alive", gateway_alive },
		{ "gateway_asks", gateway_asks },
		{ "gateway_babbles", gateway_babbles },
		{ "gateway_cat", gateway_cat },
		{ "gateway_claims", gateway_claims },
		{ "gateway_deaf", gateway_deaf },
		{ "gateway_drains_twice", gateway_drains_twice },
		{ "gateway_fails", gateway_fails },
		{ "gateway_failures", gateway_failures },
		{ "gateway_family", gateway_family },
		{ "gateway_heir", gateway_heir },
		{ "gateway_floods", gateway_floods },
		{ "gateway_orders", gateway_orders },
		{ "gateway_forges", gateway_forges },
		{ "gateway_forgets", gateway_forgets },
		{ "gateway_has_key", gateway_has_key },
		{ "gateway_hoards", gateway_hoards },
		{ "gateway_hoards_few", gateway_hoards_few },
		{ "gateway_hurries", gateway_hurries },
		{ "gateway_ignores", gateway_ignores },
		{ "gateway_hangs", gateway_hangs },
		{ "gateway_lingering", gateway_lingering },
		{ "gateway_logs", gateway_logs },
		{ "gateway_makes_place", gateway_makes_place },
		{ "gateway_many", gateway_many },
		{ "gateway_nonsense", gateway_nonsense },
		{ "gateway_prisoner", gateway_prisoner },
		{ "gateway_ready", gateway_ready },
		{ "gateway_script", gateway_script },
		{ "gateway_signals", gateway_signals },
		{ "gateway_sleeps", gateway_sleeps },
		{ "gateway_spoils", gateway_spoils },
	};
	open_output();
	gateway_entry(&given);
	for (size_t i = 0; i < ARRAY_LEN(gateways); i++)
		if (strcmp(gateways[i].name, given.config->servers[DISABLED].command) == 0)
			_exit(gateways[i].run(given.config, given.listeners,
					      given.config->listen_count, GATEWAY_KEEPER));
	_exit(9);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(child_echoes_and_ends_with_its_stdin),
		TEST(exit_status_and_stderr_arrive),
		TEST(only_declared_claims_are_put_in),
		TEST(death_by_signal_arrives),
		TEST(group_ends_with_its_leader),
		TEST(child_has_three_descriptors),
		TEST(child_environment_is_exact),
		TEST(variables_of_the_service_manager_stay),
		TEST(child_state_is_clean),
		TEST(exec_failures_carry_their_errno),
		TEST(nonsense_is_logged_and_ignored),
		TEST(term_reaches_the_group),
		TEST(forgotten_child_is_killed),
		TEST(starts_a_second_are_bounded),
		TEST(processes_are_bounded),
		TEST(processes_of_a_server_are_bounded),
		TEST(next_gateway_finds_sockets_as_they_were),
		TEST(no_message_is_lost),
		TEST(nothing_survives_kill_of_the_keeper),
		TEST(groups_do_not_survive_kill_of_the_keeper),
		TEST(kernel_ends_what_the_keeper_started),
		TEST(nothing_survives_a_stop),
		TEST(orphans_do_not_survive_a_stop),
		TEST(keeper_leaves_no_dump),
		TEST(gateway_is_restarted_without_its_children),
		TEST(child_outlives_the_gateway),
		TEST(each_gateway_has_the_same_key),
		TEST(no_descriptor_is_left_of_a_gateway),
		TEST(connections_that_were_judged_are_closed),
		TEST(gateway_that_always_dies_ends_the_daemon),
		TEST(stop_between_two_gateways),
		TEST(gateway_that_does_not_listen_is_not_heard),
		TEST(closing_does_not_wait),
		TEST(reaper_is_replaced),
		TEST(gateway_is_confined),
		TEST(second_signal_is_a_second_drain),
		TEST(gateway_that_does_not_stop_is_killed),
		TEST(gateway_cannot_forge_the_log),
		TEST(gateway_cannot_fill_the_log),
		TEST(orders_of_upgrades_are_bounded),
		TEST(another_program_takes_over),
		TEST(a_program_that_refuses_is_not_executed),
		TEST(a_program_that_refuses_later_is_not_executed),
		TEST(last_words_of_a_gateway_are_bounded),
		TEST(hangup_opens_the_log_anew),
		TEST(systemd_hears_of_ready_watchdog_and_stop),
		TEST(hanging_gateway_does_not_feed_the_watchdog),
		TEST(ready_lines_name_the_real_port),
		TEST(ready_lines_name_a_unix_socket),
		TEST(address_that_cannot_be_used_ends_the_start),
	};

	if (argc > 0 && strcmp(argv[0], "mcpgated-gateway") == 0)
		return gateway_program();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
