/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of processes, with real ones, a gateway that is the other end of a socket, and a reaper that is the other end of a
 * pipe: what each is told, and what is left. REL-28, REL-30, REL-32.
 */
#include "keeper/children.c"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/unit_test.h"
#include "config/load.h"

#define SERVERS                                                                                                  \
	"servers: {a: {command: cat, start: {rate: 1}, pool: {max: 4}}, b: {command: cat}, "                     \
	"none: {command: /none, args: [x]}, off: {command: cat, enabled: false}, "                               \
	"bounded: {command: cat, resources: {memory: 64MiB}}, "                                                  \
	"tame: {command: cat, user: nobody}, "                                                                   \
	"boxed: {command: cat, sandbox: {mode: landlock}}, "                                                     \
	"reports: {command: cat, sandbox: {mode: report}}, "                                                     \
	"short: {command: \"true\"}, "                                                                           \
	"callers: {command: sh, args: [-c, echo $S $T $U; cat], isolation: principal, env: {S: {file: FILE.s}, " \
	"T: '${claim:sub}', U: {file: 'FILE.${claim:sub}'}}}}\n"                                                 \
	"auth: {mode: token, tokens: [{name: x, sha256: " ZEROS "}]}\n"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
enum { A, B, NONE, OFF, BOUNDED, SHORT = 8, CALLERS };

static char directory[32], file[40];
static struct server_slots slots;
static struct launch launch;
static struct reaper reaper;
static struct cgroups cgroups;
static struct children children;
static int ends[2]; /* the keeper's, the gateway's */
static int told;    /* what the reaper reads */
static int log_fd;
static uint64_t now_ms;

/* ---- the keeper ---- */

static size_t count_logged(const char *text)
{
	static char log[1 << 16];
	ssize_t n = pread(log_fd, log, sizeof(log) - 1, 0);
	size_t count = 0;

	log[n > 0 ? n : 0] = '\0';
	for (const char *p = log; (p = strstr(p, text)) != NULL; p++)
		count++;
	return count;
}

static void pass(uint64_t ms)
{
	clock_freeze(now_ms += ms);
}

/* A file beside it. */
static void put(const char *more, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s%s", file, more);
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* FILE in it stands for the path of the file. */
static struct config *load(const char *text)
{
	const struct config_request request = { .file = file };
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct slice rest = slice_str(text);
	struct buf filled = { 0 };
	struct config *config;

	for (const char *at; (at = memmem(rest.p, rest.n, "FILE", 4)) != NULL;) {
		buf_append_slice(&filled, slice_between(rest.p, at));
		buf_append_str(&filled, file);
		rest = slice_between(at + 4, rest.p + rest.n);
	}
	buf_append_slice(&filled, rest);
	buf_terminate(&filled);
	put(".s", "one\n");
	put(".his", "own\n");
	put("", filled.data);
	buf_fini(&filled);
	config = config_load(&request, &problems, &warnings);
	if (config == NULL)
		fail_msg("refused: %s", problems.items[0]);
	config_problems_fini(&warnings);
	return config;
}

/* ---- the gateway ---- */

static struct ipc_message hear(enum ipc_type type)
{
	struct ipc_message message = { .type = 0 };
	struct error err;

	children_tell(&children);
	assert_int_equal(ipc_recv(ends[1], &message, &err), 1);
	assert_int_equal(message.type, type);
	for (size_t i = 0; i < message.fd_count; i++)
		close(message.fds[i]);
	return message;
}

static bool hears_nothing(void)
{
	struct ipc_message message;
	struct error err;

	children_tell(&children);
	return ipc_recv(ends[1], &message, &err) == 0;
}

static void ask(struct ipc_message message)
{
	children_request(&children, &message);
}

static void own(uint64_t child, struct slice owner)
{
	ask((struct ipc_message){ .type = IPC_OWNER, .owner = { child }, .texts = { owner } });
}

static struct row *row_of(uint64_t child)
{
	return map_find(&children.by_id, child);
}

/* Until it is known whether its program is executed. */
static void start(uint64_t child, uint32_t server)
{
	struct pollfd polls[CHILDREN_STARTING_MAX];

	ask((struct ipc_message){ .type = IPC_START, .start = { child, server } });
	while (children.starting_count > 0) {
		assert_true(poll(polls, children_poll_fill(&children, polls), 20000) > 0);
		children_read_verdicts(&children);
	}
}

/* One that runs, and of which the gateway was told. */
static pid_t run(uint64_t child, uint32_t server)
{
	start(child, server);
	return hear(IPC_STARTED).started.pid;
}

/* ---- begin and end ---- */

static int begin(void **state)
{
	struct error err;
	int fds[2];

	strcpy(directory, "/tmp/children.XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(file, sizeof(file), "%s/file", directory);
	pass(1000000);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	server_slots_init(&slots, &server_slots_keeper);
	server_slots_begin(&slots, load(SERVERS));
	assert_int_equal(launch_init(&launch, &slots.table, SERVERS_MAX, &err), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	told = fds[0];
	reaper = (struct reaper){ .fd = fds[1] };
	cgroups = (struct cgroups){ .fd = -1 };
	list_init(&cgroups.leaving);
	children_init(&children, &slots, &launch, &reaper, &cgroups);
	assert_int_equal(ipc_pair(ends, &err), 0);
	children_set_gateway(&children, ends[0]);
	hear(IPC_INHERIT_END);
	return 0;
}

/* Any that has ended: the signal that has done so, 0: none. */
static int reap(void)
{
	siginfo_t info;
	int status;

	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
	assert_true(children_before_reap(&children, info.si_pid));
	assert_int_equal(waitpid(info.si_pid, &status, 0), info.si_pid);
	children_on_reaped(&children, info.si_pid, status);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Nothing is left of any. */
static int end(void **state)
{
	struct config *config;
	char command[48];

	children_set_gateway(&children, -1);
	while (children.by_pid.count > 0)
		reap();
	assert_int_equal(children.count, 0);
	assert_int_equal(children.starting_count + children.untold_count, 0);
	assert_false(children_has_untold(&children));
	for (size_t i = 0; i < slots.table.server_count; i++)
		assert_int_equal(slots.slots[i].starts.processes, 0);
	map_fini(&children.by_id);
	map_fini(&children.by_pid);
	launch_fini(&launch);
	config = server_slots_fini(&slots);
	config_free(&config);
	ipc_close(ends[0]);
	ipc_close(ends[1]);
	reaper_stop(&reaper);
	close(told);
	log_set_fd(STDERR_FILENO);
	close(log_fd);
	snprintf(command, sizeof(command), "rm -r '%s'", directory);
	return system(command);
}

/* ---- what the reaper is told ---- */

/* How often this record is among those that it can read. */
static size_t count_told(int32_t record)
{
	int32_t found;
	size_t count = 0;

	while (read(told, &found, sizeof(found)) == (ssize_t)sizeof(found))
		count += found == record;
	return count;
}

static void the_reaper_knows_what_lives(void **state)
{
	pid_t one = run(1, A), two = run(2, B);

	assert_int_equal(count_told(one), 1);
	children_set_reaper(&children);
	assert_int_equal(count_told(two), 1);
	kill(one, SIGKILL);
	assert_int_equal(reap(), SIGKILL);
	assert_int_equal(count_told(-one), 1);
	children_set_reaper(&children);
	assert_int_equal(count_told(one), 0);
	children_set_reaper(&children);
	assert_int_equal(count_told(two), 1);
	assert_int_equal(count_logged("reaper_failed"), 0);
	hear(IPC_EXITED);
}

static void a_reaper_that_cannot_be_told_is_logged(void **state)
{
	static const int32_t filler[1024];
	pid_t pid = run(1, A);

	while (write(reaper.fd, filler, sizeof(filler)) > 0)
		;
	kill(pid, SIGKILL);
	reap();
	assert_int_equal(count_logged("reaper_failed"), 1);
	hear(IPC_EXITED);
	/* Where there is none there is nothing to log. */
	pid = run(2, A);
	close(reaper.fd);
	reaper.fd = -1;
	kill(pid, SIGKILL);
	reap();
	assert_int_equal(count_logged("reaper_failed"), 1);
}

/* ---- requests ---- */

static void only_what_may_be_started_is(void **state)
{
	static const struct {
		uint64_t child;
		uint32_t server;
		const char *why;
	} rows[] = {
		{ 9, 10, "there is no such server" },
		{ 9, UINT32_MAX, "there is no such server" },
		{ 9, OFF, "there is no such server" },
		{ INHERITED_BIT, A, "no gateway gives such numbers" },
		{ 1, A, "there is already a child with this number" },
	};

	start(1, A);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		start(rows[i].child, rows[i].server);
		assert_int_equal(count_logged("ipc_bad_request"), i + 1);
		if (count_logged(rows[i].why) == 0)
			fail_msg("row %zu", i);
	}
	assert_int_equal(children.count, 1);
	/* One whose user has gone when the configuration was reloaded. */
	slots.table.servers[B].enabled = false;
	start(9, B);
	assert_int_equal(count_logged("the server is not enabled"), 1);
	slots.table.servers[B].enabled = slots.table.servers[B].is_endpoint = true;
	start(9, B);
	assert_int_equal(count_logged("an endpoint has no processes"), 1);
	slots.table.servers[B].is_endpoint = false;
	start(INHERITED_BIT - 1, B);
	assert_int_equal(children.count, 2);
}

static void only_two_signals_may_be_sent(void **state)
{
	static const int numbers[] = { SIGHUP, SIGSTOP, 0, SIGKILL, SIGTERM };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		bool is_sent = i > 2;

		run(i + 1, B);
		ask((struct ipc_message){ .type = IPC_SIGNAL, .signal = { i + 1, numbers[i] } });
		assert_int_equal(count_logged("only TERM and KILL may be sent"),
				 is_sent ? 3 : i + 1);
		if (is_sent) {
			assert_int_equal(reap(), numbers[i]);
			hear(IPC_EXITED);
		} else {
			assert_int_equal(kill(row_of(i + 1)->pid, 0), 0);
		}
	}
	ask((struct ipc_message){ .type = IPC_SIGNAL, .signal = { 99, SIGKILL } });
	ask((struct ipc_message){ .type = IPC_PING });
	assert_int_equal(count_logged("there is no such request"), 1);
	assert_int_equal(count_logged("ipc_bad_request"), 4);
}

/* A process has one owner for good, with a name that fits. */
static void an_owner_is_said_once(void **state)
{
	static const char longest[IPC_OWNER_BYTES + 1] = "x";
	struct row *row;

	run(1, A);
	row = row_of(1);
	own(1, slice_of(longest, IPC_OWNER_BYTES + 1));
	assert_int_equal(row->owner_bytes, 0);
	own(1, slice_of(longest, IPC_OWNER_BYTES));
	assert_int_equal(row->owner_bytes, IPC_OWNER_BYTES);
	own(1, SLICE_LIT("other"));
	assert_int_equal(row->owner_bytes, IPC_OWNER_BYTES);
	assert_memory_equal(row->owner, longest, IPC_OWNER_BYTES);
	own(2, SLICE_LIT("nobody's"));
}

/* The copies of its pipes go when the gateway is about to close its own; before it has any there is nothing to close. */
static void closing_ends_the_copies(void **state)
{
	start(1, A);
	ask((struct ipc_message){ .type = IPC_CLOSE, .close = { 1 } });
	ask((struct ipc_message){ .type = IPC_CLOSE, .close = { 2 } });
	assert_true(row_of(1)->fds[0] >= 0);
	hear(IPC_STARTED);
	ask((struct ipc_message){ .type = IPC_CLOSE, .close = { 1 } });
	assert_int_equal(row_of(1)->fds[0], -1);
	assert_int_equal(reap(), 0); /* cat sees the end */
	assert_int_equal(hear(IPC_EXITED).exited.status, 0);
}

static void forgotten_ones_are_not_told_of(void **state)
{
	run(1, A);
	start(2, B);
	for (uint64_t i = 1; i < 4; i++)
		ask((struct ipc_message){ .type = IPC_FORGET, .forget = { i } });
	assert_null(row_of(1));
	assert_null(row_of(2));
	assert_int_equal(children.count, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reap(), SIGKILL);
	assert_true(hears_nothing());
}

static void answers_are_given_to_those_who_asked(void **state)
{
	for (uint64_t i = 0; i < CHILDREN_JUDGED_MAX; i++) {
		assert_true(children_may_be_asked(&children));
		ask((struct ipc_message){ .type = IPC_JUDGE, .judge = { i }, .fds = { ends[0] } });
	}
	assert_false(children_may_be_asked(&children));
	assert_true(children_has_untold(&children));
	for (uint64_t i = CHILDREN_JUDGED_MAX; i-- > 0;) {
		struct ipc_message message = hear(IPC_JUDGED);

		assert_int_equal(message.judged.question, i);
		assert_int_equal(message.judged.is_allowed, 0); /* of no descriptor */
	}
	assert_false(children_has_untold(&children));
	/* It is the peer that is judged: this process, which is no descendant of its own. */
	ask((struct ipc_message){
		.type = IPC_JUDGE, .judge = { 7 }, .fds = { ends[0] }, .fd_count = 1 });
	assert_int_equal(hear(IPC_JUDGED).judged.is_allowed, 1);
	/* What one gateway has asked is not for the next one. */
	ask((struct ipc_message){ .type = IPC_JUDGE, .judge = { 8 } });
	children_set_gateway(&children, ends[0]);
	hear(IPC_INHERIT_END);
	assert_true(hears_nothing());
}

/* ---- what is told ---- */

static void what_does_not_fit_is_told_later(void **state)
{
	const struct ipc_message ping = { .type = IPC_PING };
	struct ipc_message message;

	while (ipc_send(ends[0], &ping, NULL) == 0)
		;
	children_set_gateway(&children, ends[0]);
	start(1, A);
	start(2, NONE);
	ask((struct ipc_message){ .type = IPC_JUDGE, .judge = { 7 } });
	children_tell(&children);
	assert_int_equal(children.judged_count, 1);
	assert_int_equal(children.untold_count, 2);
	assert_true(children.owes_end);
	while (ipc_recv(ends[1], &message, NULL) == 1)
		assert_int_equal(message.type, IPC_PING);
	hear(IPC_JUDGED);
	assert_int_equal(hear(IPC_STARTED).started.child, 1);
	message = hear(IPC_FAILED);
	assert_int_equal(message.failed.child, 2);
	assert_int_equal(message.failed.error, ENOENT);
	hear(IPC_INHERIT_END);
	assert_true(hears_nothing());
	assert_int_equal(reap(), 0);
	assert_true(hears_nothing());
}

/* Of the one who starts and of the one who fails, each by its own name. */
static void what_becomes_of_a_start_is_logged(void **state)
{
	char line[96];
	pid_t pid;

	start(1, NONE);
	reap();
	start(2, NONE);
	reap();
	assert_int_equal(count_logged(
				 "child_spawn_failed server=none reason=\"cannot execute the "
				 "command\" command=/none error=\"No such file or directory\""),
			 1);
	assert_int_equal(count_logged("child_spawn "), 0);
	start(3, A);
	pid = row_of(3)->pid;
	snprintf(line, sizeof(line), "child_spawn server=a pid=%d child=3", pid);
	assert_int_equal(count_logged(line), 1);
	ask((struct ipc_message){ .type = IPC_SIGNAL, .signal = { 3, SIGTERM } });
	reap();
	snprintf(line, sizeof(line), "child_reaped server=a pid=%d child=3 signal=15", pid);
	assert_int_equal(count_logged(line), 1);
	for (uint64_t i = 1; i < 3; i++)
		assert_int_equal(hear(IPC_FAILED).failed.child, i);
	hear(IPC_STARTED);
	assert_int_equal(hear(IPC_EXITED).exited.status, SIGTERM);
}

/* Its environment is that of its caller, with what is in the files now. AUTH-DWN-02 */
static void each_process_is_its_callers(void **state)
{
	static const struct {
		struct slice claims;
		int error; /* 0: it runs */
		const char *logged;
	} rows[] = {
		{ SLICE(""), EINVAL, "ipc_bad_request" },
		{ SLICE("sub\0nobody\0"), IPC_NO_CREDENTIAL, "credential_missing server=callers" },
		{ SLICE("sub\0his\0"), 0, "child_spawn server=callers" },
	};
	char text[64] = "";
	struct pollfd says;

	put(".s", "two\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pollfd polls[CHILDREN_STARTING_MAX];

		ask((struct ipc_message){ .type = IPC_START,
					  .start = { i + 1, CALLERS },
					  .texts = { rows[i].claims } });
		while (rows[i].error == 0 && children.starting_count > 0) {
			assert_true(poll(polls, children_poll_fill(&children, polls), 20000) > 0);
			children_read_verdicts(&children);
		}
		assert_int_equal(count_logged(rows[i].logged), 1);
		if (rows[i].error != 0)
			assert_int_equal(hear(IPC_FAILED).failed.error, rows[i].error);
	}
	says = (struct pollfd){ .fd = row_of(3)->fds[1], .events = POLLIN };
	assert_int_equal(poll(&says, 1, 20000), 1);
	assert_true(read(says.fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "two his own\n");
}

/* Until it becomes another one, or a process has been started. */
static void the_same_failure_is_logged_once(void **state)
{
	static const struct {
		struct launch_verdict verdict;
		size_t logged;
	} rows[] = {
		{ { LAUNCH_EXEC, ENOENT }, 1 }, { { LAUNCH_EXEC, ENOENT }, 1 },
		{ { LAUNCH_CWD, ENOENT }, 2 },  { { LAUNCH_CWD, EACCES }, 3 },
		{ { LAUNCH_CWD, EACCES }, 3 },
	};

	start(1, A);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		log_spawn_failed(&children, row_of(1), &rows[i].verdict);
		assert_int_equal(count_logged("child_spawn_failed server=a"), rows[i].logged);
	}
	start(2, A);
	log_spawn_failed(&children, row_of(1), &rows[4].verdict);
	assert_int_equal(count_logged("child_spawn_failed server=a"), 4);
}

/* One that has not made its own group yet. */
static void whoever_is_alone_is_signalled(void **state)
{
	struct row row = { .state = ROW_RUNNING, .pid = fork() };
	int status;

	while (row.pid == 0)
		pause();
	row_signal(&row, SIGKILL);
	assert_int_equal(waitpid(row.pid, &status, 0), row.pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* Where no cgroup can be made, a server without limits does without. */
static void no_process_runs_without_its_limits(void **state)
{
	cgroups.fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	start(1, BOUNDED);
	assert_int_equal(count_logged(
				 "child_spawn_failed server=bounded reason=\"cannot create the "
				 "cgroup for its limits"),
			 1);
	assert_true(hear(IPC_FAILED).failed.error > 0);
	assert_null(row_of(1));
	run(2, A);
	close(cgroups.fd);
	cgroups.fd = -1;
}

/* Nothing is left open of one that could not be started, nor its group. */
static void without_descriptors_none_is_started(void **state)
{
	struct rlimit before, now;
	uint64_t child = 0;
	char path[64];
	int first;

	cgroups.fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	first = dup(told);
	close(first);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (;;) {
		now = (struct rlimit){ (rlim_t)first + child++, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
		ask((struct ipc_message){ .type = IPC_START, .start = { child, B } });
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (children.starting_count > 0)
			break;
		assert_int_equal(hear(IPC_FAILED).failed.error, EMFILE);
		assert_int_equal(dup(told), first);
		close(first);
	}
	assert_true(child > 8);
	assert_int_equal(count_logged("child_spawn_failed"), 1); /* for the same reason */
	for (uint64_t i = 1; i <= child; i++) {
		snprintf(path, sizeof(path), "%s/b.%d", directory, (int)i);
		assert_int_equal(access(path, F_OK), i == child ? 0 : -1);
	}
	children_set_gateway(&children, -1);
	reap();
	close(cgroups.fd);
	cgroups.fd = -1;
}

/* Once, of each server: a number that another server has from now on is another one, a name is the same. */
static void what_a_server_may_is_logged_once(void **state)
{
	struct config_server *b = &slots.table.servers[B];
	const char *own = b->conf.name;
	size_t by_root = geteuid() == 0;

	assert_int_equal(count_logged("server_is_root server=a"), by_root);
	assert_int_equal(count_logged("server_is_root server=off"), 0);
	children_note_servers(&children);
	assert_int_equal(count_logged("server_is_root server=a"), by_root);
	assert_int_equal(count_logged("server_is_root server=tame"), 0);
	assert_int_equal(count_logged("sandbox server=boxed in_force="), 1);
	assert_int_equal(count_logged("sandbox_reports server=reports"), 1);
	assert_int_equal(count_logged("sandbox_reports "), 1);
	assert_int_equal(count_logged("sandbox server=a "), 0);
	assert_int_equal(count_logged("sandbox_lacks server=a "), 0);
	assert_int_equal(count_logged("server_reaches_gateway"), 0);
	for (int i = 0; i < 2; i++) {
		b->conf.name =
			(char *)(uintptr_t)(i == 0 ? slots.table.servers[A].conf.name : "other");
		slots.slots[B].starts.is_logged = false;
		children_note_servers(&children);
		assert_true(slots.slots[B].starts.is_logged);
	}
	assert_int_equal(count_logged("server_is_root server=a"), by_root);
	assert_int_equal(count_logged("server_is_root server=other"), by_root);
	b->conf.name = (char *)(uintptr_t)own;
}

/* What became of its start is in the pipe still. */
static void an_end_may_come_before_the_start_is_known(void **state)
{
	ask((struct ipc_message){ .type = IPC_START, .start = { 1, NONE } });
	reap();
	assert_int_equal(hear(IPC_FAILED).failed.error, ENOENT);
	assert_int_equal(count_logged("child_spawn_failed server=none"), 1);
	ask((struct ipc_message){ .type = IPC_START, .start = { 2, SHORT } });
	reap();
	assert_int_equal(count_logged("child_spawn server=short"), 1);
	hear(IPC_STARTED);
	assert_int_equal(hear(IPC_EXITED).exited.status, 0);
	assert_int_equal(children.starting_count, 0);
}

/* ---- cgroups, as plain files ---- */

static const char *const group_files[] = { "cgroup.procs", "cgroup.kill", "memory.max",
					   "memory.events" };

/* Of the group of the process number; the text of the last one. */
/* Of the group of the process number; the text of the last one. */
static void make_group(int number, const char *events)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.groups/bounded.%d", file, number);
	assert_int_equal(mkdir(name, 0700), 0);
	for (size_t i = 0; i < ARRAY_LEN(group_files); i++) {
		snprintf(name, sizeof(name), ".groups/bounded.%d/%s", number, group_files[i]);
		put(name, i == ARRAY_LEN(group_files) - 1 ? events : "");
	}
}

static void remove_group_files(int number)
{
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(group_files); i++) {
		snprintf(path, sizeof(path), "%s.groups/bounded.%d/%s", file, number,
			 group_files[i]);
		assert_int_equal(unlink(path), 0);
	}
}

static void a_group_ends_with_its_process(void **state)
{
	char path[64], byte = 0;
	int fd;

	snprintf(path, sizeof(path), "%s.groups", file);
	cgroups.path = path;
	assert_int_equal(mkdir(path, 0700), 0);
	cgroups.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 1; i < 3; i++) {
		char name[128];
		pid_t pid;
		int status;

		make_group(i, i == 1 ? "oom_kill 1\n" : "oom_kill 0\n");
		pid = run((uint64_t)i, BOUNDED);
		kill(pid, SIGKILL);
		assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
		assert_true(children_before_reap(&children, pid));
		snprintf(name, sizeof(name), "%s/bounded.%d/cgroup.kill", path, i);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		assert_int_equal(read(fd, &byte, 1), 1);
		assert_int_equal(byte, '1');
		close(fd);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (i == 2)
			remove_group_files(i);
		children_on_reaped(&children, pid, status);
		assert_int_equal(count_logged("child_limit server=bounded"), 1);
		assert_int_equal(count_logged("limit=resources.memory"), 1);
		snprintf(name, sizeof(name), "%s/bounded.%d", path, i);
		assert_int_equal(access(name, F_OK), i == 1 ? 0 : -1);
		hear(IPC_EXITED);
	}
	close(cgroups.fd);
	cgroups.fd = -1;
	cgroups.path = NULL;
}

/* ---- bounds ---- */

/* Twice what is configured, and some that are on their way out. */
static void processes_have_a_bound(void **state)
{
	static const struct {
		size_t count;
		uint64_t limit;
		bool is_above;
	} rows[] = {
		{ 0, 0, false }, { 16, 0, false }, { 17, 0, true }, { 17, 1, false },
		{ 18, 1, true }, { 23, 4, false }, { 24, 4, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_above(rows[i].count, rows[i].limit) != rows[i].is_above)
			fail_msg("%zu of %zu", rows[i].count, (size_t)rows[i].limit);
	slots.slots[A].starts.processes = 24;
	assert_true(is_over_limit(&children, A));
	assert_false(is_over_limit(&children, B));
	slots.slots[A].starts.processes = 0;
	children.count = LEAVING_MAX + 2 * children.config->max_processes;
	assert_true(is_over_limit(&children, B));
	children.count--;
	assert_false(is_over_limit(&children, B));
	children.count = 0;
}

static void starts_have_a_bound_each_second(void **state)
{
	for (int second = 0; second < 3; second++) {
		for (int i = 0; i < 2 * 1 + STARTS_RESERVE; i++)
			assert_false(is_too_fast(&children, A));
		assert_true(is_too_fast(&children, A));
		assert_false(is_too_fast(&children, B));
		pass(999);
		assert_true(is_too_fast(&children, A));
		pass(1);
	}
}

static void whoever_does_not_listen_may_not_ask(void **state)
{
	struct children busy = { .starting_count = CHILDREN_STARTING_MAX - 1,
				 .untold_count = CHILDREN_UNTOLD_MAX - 1,
				 .judged_count = CHILDREN_JUDGED_MAX - 1 };

	assert_true(children_may_be_asked(&busy));
	busy.starting_count++;
	assert_false(children_may_be_asked(&busy));
	busy.starting_count--;
	busy.untold_count++;
	assert_false(children_may_be_asked(&busy));
	busy.untold_count--;
	busy.judged_count++;
	assert_false(children_may_be_asked(&busy));
}

/* Copies of pipes take the lower half of our descriptors. */
static void half_of_the_descriptors_stay_free(void **state)
{
	static const struct {
		int fds[3];
		bool may;
	} rows[] = {
		{ { 9, 9, 9 }, true },
		{ { 10, 9, 9 }, false },
		{ { 9, 10, 9 }, false },
		{ { 9, 9, 10 }, false },
	};
	struct children few = { .pipes_below = 10 };
	struct rlimit before, now;
	int below = children.pipes_below;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct row row;

		memcpy(row.fds, rows[i].fds, sizeof(row.fds));
		assert_int_equal(row_may_outlive(&few, &row), rows[i].may);
	}
	children.pipes_below = 0;
	run(1, A);
	assert_int_equal(row_of(1)->fds[0], -1);
	children.pipes_below = below;
	run(2, B);
	assert_true(row_of(2)->fds[0] >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = (struct rlimit){ 200, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	children_init(&few, &slots, &launch, &reaper, &cgroups);
	assert_int_equal(few.pipes_below, 100);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- a gateway that dies ---- */

static void only_what_was_used_is_kept(void **state)
{
	static const struct {
		struct row row;
		bool was_used;
	} rows[] = {
		{ { .state = ROW_RUNNING, .owner_bytes = 1, .told = TOLD_STARTED }, true },
		{ { .state = ROW_RUNNING, .owner_bytes = 1, .is_inherited = true }, true },
		{ { .state = ROW_RUNNING, .owner_bytes = 1 }, false },
		{ { .state = ROW_RUNNING, .told = TOLD_STARTED }, false },
		{ { .state = ROW_RUNNING, .owner_bytes = 1, .told = TOLD_STARTED, .fds = { -1 } },
		  false },
		{ { .state = ROW_ENDED, .owner_bytes = 1, .told = TOLD_STARTED }, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (row_was_used(&rows[i].row) != rows[i].was_used)
			fail_msg("row %zu", i);
}

/* A process that is there at three deaths within a minute may be what they come of. */
static void what_was_there_at_too_many_deaths_is_suspect(void **state)
{
	struct row row = { .deaths = 0 };

	for (int i = 0; i < 3; i++) {
		assert_false(row_is_suspect(&row));
		assert_false(row_is_suspect(&row));
		pass(CHILDREN_DEATHS_WINDOW_MS + 1);
	}
	assert_false(row_is_suspect(&row));
	assert_false(row_is_suspect(&row));
	pass(CHILDREN_DEATHS_WINDOW_MS);
	assert_true(row_is_suspect(&row));
}

static void the_next_gateway_gets_what_was_used(void **state)
{
	struct ipc_message message;
	pid_t used = run(1, A);
	int blocking;

	own(1, SLICE_LIT("who"));
	run(2, B); /* nobody's */
	start(3, B);
	own(3, SLICE_LIT("who")); /* the gateway does not know of it */
	ask((struct ipc_message){ .type = IPC_START, .start = { 4, B } });
	ask((struct ipc_message){ .type = IPC_JUDGE, .judge = { 7 } });
	blocking = row_of(1)->fds[0];
	assert_int_equal(fcntl(blocking, F_SETFL, 0), 0); /* as the gateway could */
	children_keep(&children);
	assert_int_equal(children.gateway_fd, -1);
	assert_true(fcntl(blocking, F_GETFL) & O_NONBLOCK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reap(), SIGKILL);
	assert_int_equal(children.count, 1);
	children_set_gateway(&children, ends[0]);
	message = hear(IPC_INHERIT);
	assert_int_equal(message.inherit.child, 1);
	assert_int_equal(message.inherit.server, A);
	assert_int_equal(message.inherit.pid, used);
	assert_int_equal(message.fd_count, 3);
	assert_int_equal(hear(IPC_INHERIT_END).inherit_end.upgrade, children.outcome);
	assert_true(hears_nothing());
	/* It is suspect at the third death. */
	for (int i = 0; i < 2; i++) {
		children_keep(&children);
		assert_int_equal(children.count, 1);
		children_set_gateway(&children, ends[0]);
		if (i == 0)
			hear(IPC_INHERIT);
		if (i == 0)
			hear(IPC_INHERIT_END);
	}
	assert_int_equal(reap(), SIGKILL);
	assert_int_equal(children.count, 0);
	hear(IPC_INHERIT_END);
	assert_true(hears_nothing());
}

/* One that makes place: the others see the end of their stdin, and are counted until they are gone. */
static void others_end_in_order(void **state)
{
	pid_t kept = run(1, A);

	own(1, SLICE_LIT("who"));
	run(2, B);
	children_keep_orderly(&children);
	assert_null(row_of(2));
	assert_int_equal(children_end_others(&children, 0), 1);
	assert_int_equal(reap(), 0);
	assert_int_equal(children_end_others(&children, SIGKILL), 0);
	assert_int_equal(kill(kept, 0), 0);
	for (int i = 0; i < CHILDREN_DEATHS_MAX; i++) /* which are none */
		children_keep_orderly(&children);
	children_kill_others(&children);
	assert_int_equal(children.count, 1);
	children_set_gateway(&children, ends[0]);
	hear(IPC_INHERIT);
	hear(IPC_INHERIT_END);
	/* What does not end by itself gets the signal. */
	children_keep_orderly(&children);
	children_set_gateway(&children, ends[0]);
	hear(IPC_INHERIT);
	hear(IPC_INHERIT_END);
	run(3, B);
	kill(row_of(3)->pid, SIGSTOP);
	children_keep_orderly(&children);
	assert_int_equal(children_end_others(&children, SIGKILL), 1);
	assert_int_equal(reap(), SIGKILL);
	assert_int_equal(kill(kept, 0), 0);
}

static void processes_of_one_server_are_killed(void **state)
{
	pid_t other = run(1, A);

	run(2, B);
	ask((struct ipc_message){ .type = IPC_START, .start = { 3, B } });
	children_kill_server(&children, B);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reap(), SIGKILL);
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(children.count, 3); /* the gateway is told */
}

/* ---- another program ---- */

static char **lines(struct handover *from)
{
	static char *found[8];
	size_t at = 0, count = 0;
	const char *line;

	while ((line = handover_next(from, "child", &at)) != NULL)
		found[count++] = (char *)(uintptr_t)line;
	found[count] = NULL;
	return found;
}

static void what_is_handed_over_is_taken(void **state)
{
	struct handover to = { .fds = NULL };
	struct children before;
	struct ipc_message message;
	pid_t pid = run(1, A);

	own(1, SLICE_LIT("who"));
	run(2, B);
	children_keep_orderly(&children);
	children_hand_over(&children, &to);
	assert_non_null(lines(&to)[0]);
	assert_null(lines(&to)[1]);
	/* Another table, as that of the next program. */
	assert_int_equal(reap(), 0);
	before = children;
	slots.slots[A].starts.processes = 0;
	count_told(0);
	children_init(&children, &slots, &launch, &reaper, &cgroups);
	assert_int_equal(children_take_over(&children, &to), 1);
	assert_int_equal(count_told(pid), 1);
	handover_fini(&to);
	children_set_gateway(&children, ends[0]);
	message = hear(IPC_INHERIT);
	assert_int_equal(message.inherit.child, 1);
	assert_int_equal(message.inherit.pid, pid);
	assert_int_equal(message.inherit.server, A);
	assert_int_equal(row_of(1)->owner_bytes, 3);
	assert_memory_equal(row_of(1)->owner, "who", 3);
	hear(IPC_INHERIT_END);
	kill(pid, SIGKILL);
	assert_int_equal(reap(), SIGKILL);
	assert_int_equal(hear(IPC_EXITED).exited.status, SIGKILL);
	/* The program before is not there any more. */
	free(map_remove(&before.by_id, 1));
	map_fini(&before.by_id);
	map_fini(&before.by_pid);
}

static void only_what_runs_and_was_used_is_handed_over(void **state)
{
	struct handover to = { .fds = NULL };
	struct row *row;

	run(1, A);
	own(1, SLICE_LIT("who"));
	children_keep_orderly(&children);
	row = row_of(1);
	assert_true(row_may_be_offered(&children, row));
	row->is_inherited = false;
	assert_false(row_may_be_offered(&children, row));
	row->is_inherited = true;
	row->told = TOLD_STARTED;
	assert_false(row_may_be_offered(&children, row));
	row->told = TOLD_NOTHING;
	slots.slots[A].is_known = false;
	assert_false(row_may_be_offered(&children, row));
	slots.slots[A].is_known = true;
	slots.table.servers[A].enabled = false;
	assert_false(row_may_be_offered(&children, row));
	slots.table.servers[A].enabled = true;
	kill(row->pid, SIGKILL);
	reap();
	children_hand_over(&children, &to);
	assert_int_equal(to.fd_count, 0);
	handover_fini(&to);
}

static pid_t start_left(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(pid, pid);
	return pid;
}

/* Of a server that is made of something else today, or is not there; a line that makes no sense is none. */
static void what_is_of_no_server_is_killed(void **state)
{
	char digest[CONFIG_DIGEST_BYTES + 1];
	struct handover from = { .fds = NULL };
	pid_t pids[3];
	int status, fds[2];

	config_digest_processes(&children.config->servers[A], digest);
	for (int i = 0; i < 3; i++)
		pids[i] = start_left();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++)
		handover_give(&from, fds[i]);
	handover_write(&from, "child %d -1 -1 -1 0 77686f other a 5", pids[0]);
	handover_write(&from, "child %d -1 -1 -1 0 77686f %s nobody 6", pids[1], digest);
	handover_write(&from, "child 1 -1 -1 -1 0 77686f %s a 7", digest);
	handover_write(&from, "child 2 -1 -1 -1 0 77686f");
	handover_write(&from, "child %d %d %d -1 0 77686f %s a", pids[2], fds[0], fds[1], digest);
	assert_int_equal(children_take_over(&children, &from), 1);
	handover_fini(&from);
	for (int i = 0; i < 2; i++) {
		char line[64];

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(WTERMSIG(status), SIGKILL);
		snprintf(line, sizeof(line), "process_not_taken server=%s pid=%d",
			 i == 0 ? "a" : "nobody", pids[i]);
		assert_int_equal(count_logged(line), 1);
	}
	assert_int_equal(count_told(-pids[1]), 1);
	assert_int_equal(children.count, 1);
	/* One without a number gets one that no gateway gives. */
	assert_non_null(row_of(INHERITED_BIT | (uint64_t)pids[2]));
	assert_int_equal(row_of(INHERITED_BIT | (uint64_t)pids[2])->fds[1], fds[1]);
}

/* With them what they have started. */
static void groups_of_what_is_of_no_server_end(void **state)
{
	struct handover from = { .fds = NULL };
	char path[128], byte = 0;
	pid_t pids[2];
	int fd;

	cgroups.fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/gone.%d", directory, i + 3);
		assert_int_equal(mkdir(path, 0700), 0);
		pids[i] = start_left();
		handover_write(&from, "child %d -1 -1 -1 %d 77686f other gone 5", pids[i], i + 3);
	}
	strcat(path, "/cgroup.kill");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(children_take_over(&children, &from), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '1');
	snprintf(path, sizeof(path), "%s/gone.3", directory);
	assert_int_equal(access(path, F_OK), -1);
	handover_fini(&from);
	close(fd);
	close(cgroups.fd);
	cgroups.fd = -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_reaper_knows_what_lives),
		TEST(a_reaper_that_cannot_be_told_is_logged),
		TEST(only_what_may_be_started_is),
		TEST(only_two_signals_may_be_sent),
		TEST(an_owner_is_said_once),
		TEST(closing_ends_the_copies),
		TEST(forgotten_ones_are_not_told_of),
		TEST(answers_are_given_to_those_who_asked),
		TEST(what_does_not_fit_is_told_later),
		TEST(what_becomes_of_a_start_is_logged),
		TEST(each_process_is_its_callers),
		TEST(the_same_failure_is_logged_once),
		TEST(whoever_is_alone_is_signalled),
		TEST(no_process_runs_without_its_limits),
		TEST(without_descriptors_none_is_started),
		TEST(what_a_server_may_is_logged_once),
		TEST(an_end_may_come_before_the_start_is_known),
		TEST(a_group_ends_with_its_process),
		TEST(processes_have_a_bound),
		TEST(starts_have_a_bound_each_second),
		TEST(whoever_does_not_listen_may_not_ask),
		TEST(half_of_the_descriptors_stay_free),
		TEST(only_what_was_used_is_kept),
		TEST(what_was_there_at_too_many_deaths_is_suspect),
		TEST(the_next_gateway_gets_what_was_used),
		TEST(others_end_in_order),
		TEST(processes_of_one_server_are_killed),
		TEST(what_is_handed_over_is_taken),
		TEST(only_what_runs_and_was_used_is_handed_over),
		TEST(what_is_of_no_server_is_killed),
		TEST(groups_of_what_is_of_no_server_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
