/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execveat(2) on what was opened at the start. REL-32, SEC-60.
 *
 * What runs in the new process (become) runs in this one's memory: keeper/new_process.h.
 */
#include "keeper/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
#include "keeper/handover.h"
#include "keeper/new_process.h"
#include "obs/log.h"

/* ---- memory files ---- */

/* memfd_create(2) and its seals. */

static int memory_file_write(int fd, struct slice content)
{
	while (content.n > 0) {
		ssize_t n = write(fd, content.p, content.n);

		if (n <= 0)
			return -1;
		content = slice_of(content.p + n, content.n - (size_t)n);
	}
	return 0;
}

/* Takes fd: closes it on failure. */
static int memory_file_finish(int fd, const char *name, int result, int seals, struct error *err)
{
	if (result == 0 && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) == 0)
		return fd;
	error_set_errno(err, "cannot make the memory file %s", name);
	file_close(&fd);
	return -1;
}

int memory_file_sealed(const char *name, struct slice content, struct error *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return memory_file_finish(fd, name, fd >= 0 ? memory_file_write(fd, content) : -1,
				  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, err);
}

int memory_file_printed(const char *name, void (*print)(const struct config *config, FILE *out),
			const struct config *config, struct error *err)
{
	at_end(mem_free) char *text = NULL;
	size_t size;
	FILE *out = mem_open_text(&text, &size);
	int fd;

	print(config, out);
	mem_close_text(out); /* a part of it would be another configuration */
	fd = memory_file_sealed(name, slice_of(text, size), err);
	explicit_bzero(text, size);
	return fd;
}

int memory_file_random(const char *name, size_t size, struct error *err)
{
	char bytes[MEMORY_FILE_RANDOM_MAX];
	int fd;

	CHECK(size <= sizeof(bytes));
	random_bytes(bytes, size);
	fd = memory_file_sealed(name, slice_of(bytes, size), err);
	explicit_bzero(bytes, sizeof(bytes));
	return fd;
}

int memory_file_shared(const char *name, size_t size, struct error *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return memory_file_finish(fd, name, fd >= 0 ? ftruncate(fd, (off_t)size) : -1,
				  F_SEAL_SHRINK | F_SEAL_GROW, err);
}

#define FDS_MAX 4096 /* the listeners of a configuration, and a few */

static const char *const program_names[] = {
	[PROGRAM_GATEWAY] = "mcpgated-gateway",
	[PROGRAM_FETCHER] = "mcpgated-fetch",
	[PROGRAM_STORE] = "mcpgated-store",
	[PROGRAM_REAPER] = "mcpgated-reaper",
};

/* The directory of the running program; "" where there is no /proc. */
static void find_own_directory(char path_r[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path_r, PATH_MAX - 1);

	char *end;

	path_r[n > 0 ? n : 0] = '\0';
	end = strrchr(path_r, '/');
	if (end != NULL)
		*end = '\0';
}

static int program_open(const char *directory, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? open(path, O_PATH | O_CLOEXEC) :
								  -1;
}

int programs_open(struct programs *programs_r, struct error *err)
{
	char beside[PATH_MAX];

	find_own_directory(beside);
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		programs_r->fds[i] = -1;
	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		int *fd = &programs_r->fds[i];

		if (beside[0] != '\0')
			*fd = program_open(beside, program_names[i]);
		if (*fd < 0)
			*fd = program_open(LIBEXECDIR, program_names[i]);
		if (*fd < 0) {
			error_set_errno(err,
					"cannot open the program %s, neither in %.100s nor in %s",
					program_names[i], beside, LIBEXECDIR);
			programs_close(programs_r);
			return -1;
		}
	}
	return 0;
}

void programs_hand_over(const struct programs *programs, struct handover *to)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		handover_write(to, "program %d %s", handover_give(to, programs->fds[i]),
			       program_names[i]);
}

bool programs_take(struct programs *programs_r, struct handover *from)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		programs_r->fds[i] = handover_take_named(from, "program", program_names[i]);
		if (programs_r->fds[i] < 0)
			return false;
	}
	return true;
}

char **programs_find(const char *name)
{
	char beside[PATH_MAX];
	char **paths = mem_zalloc(3 * sizeof(*paths));
	size_t count = 0;

	find_own_directory(beside);
	if (beside[0] != '\0')
		paths[count++] = mem_printf("%s/%s", beside, name);
	paths[count++] = mem_printf("%s/%s", LIBEXECDIR, name);
	return paths;
}

void programs_close(struct programs *programs)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		file_close(&programs->fds[i]);
}

/* The sanitizers of a test build are configured by the environment. */
static char **program_environment(void)
{
	static char *kept[8];
#ifdef __SANITIZE_ADDRESS__
	size_t count = 0;

	for (char **p = environ; *p != NULL && count < ARRAY_LEN(kept) - 1; p++)
		if (strstr(*p, "SAN_OPTIONS=") != NULL)
			kept[count++] = *p;
#endif
	return kept;
}

struct start {
	struct new_process process;
	int program_fd;
	bool keeps_blocked; /* signals, those that this process has blocked for it */
	char **argv;
	char **envp;
	const int *fds;
	size_t count;
};

static void program_become(const struct new_process *process)
{
	const struct start *start = container_of(process, const struct start, process);
	size_t count = start->count;
	int places[FDS_MAX];
	sigset_t none;

	setsid();
	sigemptyset(&none);
	if (!start->keeps_blocked)
		sigprocmask(SIG_SETMASK, &none, NULL);
	memcpy(places, start->fds, count * sizeof(*places));
	places[count] = start->program_fd;
	if (descriptors_arrange(places, count + 1) == 0 &&
	    fcntl((int)count, F_SETFD, FD_CLOEXEC) == 0)
		execveat((int)count, "", start->argv, start->envp, AT_EMPTY_PATH);
	_exit(127);
}

/*
 * Starts the program in a session of its own, without a terminal: with fds[i] as descriptor i (-1:
 * closed) and no others, with `argument` (or NULL) as the only argument, and no environment.
 * Returns its process id, or -1. A process that cannot execute the program exits with 127.
 */
static pid_t programs_start(const struct programs *programs, enum program program,
			    const char *argument, const int *fds, size_t count, struct error *err)
{
	char *argv[] = { (char *)(uintptr_t)program_names[program], (char *)(uintptr_t)argument,
			 NULL };
	struct start start = {
		.process = { .run = program_become, .shares_memory = true, .cgroup_fd = -1 },
		.program_fd = programs->fds[program],
		/* Until it ignores those that stop the daemon they must not reach it. */
		.keeps_blocked = program == PROGRAM_REAPER,
		.argv = argv,
		.envp = program_environment(),
		.fds = fds,
		.count = count,
	};
	pid_t pid;

	CHECK(count < FDS_MAX && start.program_fd >= 0);
	pid = new_process_make(&start.process);
	return pid > 0 ? pid : error_set_errno(err, "fork");
}

/*
 * The same with the null device as its standard input and output, and with one end of a new pair
 * for messages. The caller gets the other one.
 */
static pid_t program_start_connected(const struct programs *programs, enum program program,
				     int *fds, size_t count, int *own_end_r, struct error *err)
{
	int null, pair[2];
	pid_t pid;

	if (ipc_pair(pair, err) < 0)
		return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[STDIN_FILENO] = fds[STDOUT_FILENO] = null;
	fds[HELPER_GATEWAY] = pair[1];
	pid = programs_start(programs, program, NULL, fds, count, err);
	file_close(&null);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*own_end_r = pair[0];
	return pid;
}

_Static_assert((int)HELPER_GATEWAY == (int)GATEWAY_KEEPER, "both have the pair at the same place");

/* ---- the reaper ---- */

/*
 * The keeper's side of it. One number a record: the group, negative when it has ended. Records are written whole (they
 * are far below PIPE_BUF), so they are read whole. The child itself reports its group before it executes
 * anything, so the reaper knows each group before there can be anything in it to kill.
 */

#define PIPE_BYTES (1 << 20)

int reaper_start(struct reaper *reaper, struct error *err)
{
	int fds[2];

	CHECK(reaper->pid == 0);
	reaper->fd = -1;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as much as it may: best effort */
	/* A reader of the daemon's outputs must see their end when the daemon ends: it gets nothing but its pipe. */
	reaper->pid =
		programs_start(reaper->programs, PROGRAM_REAPER, reaper->cgroups, fds, 1, err);
	close(fds[0]);
	if (reaper->pid < 0) {
		close(fds[1]);
		reaper->pid = 0;
		return -1;
	}
	reaper->fd = fds[1];
	return 0;
}

static bool reaper_tell(const struct reaper *reaper, int32_t record)
{
	return write(reaper->fd, &record, sizeof(record)) == (ssize_t)sizeof(record);
}

bool reaper_add(const struct reaper *reaper, pid_t group)
{
	return reaper_tell(reaper, group);
}

bool reaper_remove(const struct reaper *reaper, pid_t group)
{
	CHECK(group > 0);
	return reaper_tell(reaper, -group);
}

void reaper_stop(struct reaper *reaper)
{
	file_close(&reaper->fd);
}

void reaper_kill_siblings(const struct reaper *reaper)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
	file = fopen(path, "re");
	if (file == NULL)
		return; /* no /proc: the groups have been killed, which is nearly all */
	while (fscanf(file, "%d", &pid) == 1) {
		if (pid != reaper->pid)
			kill(pid, SIGKILL);
	}
	fclose(file);
}

/* ---- the gateway ---- */

/*
 * A process that executes the gateway's program, with nothing of ours but the descriptors of gateway_entry.h. What it
 * gives up beyond that it gives up itself, before it hears of the network. SEC-60, SEC-61.
 */

#define RESTART_DELAY_MS 100 /* after the second death in a row; doubles */

void gateway_process_init(struct gateway_process *process)
{
	*process = (struct gateway_process){ .fd = -1 };
}

int gateway_process_number_servers(const uint32_t *numbers, size_t count, struct error *err)
{
	return memory_file_sealed("servers",
				  slice_of((const char *)numbers, count * sizeof(*numbers)), err);
}

int gateway_process_start(struct gateway_process *process, const struct programs *programs,
			  int *fds, size_t count, struct error *err)
{
	pid_t pid;

	CHECK(process->pid == 0 && process->fd < 0 && count >= GATEWAY_LISTENERS);
	CHECK(fds[GATEWAY_CONFIG] >= 0 && fds[GATEWAY_LOG] >= 0);
	pid = program_start_connected(programs, PROGRAM_GATEWAY, fds, count, &process->fd, err);
	if (pid < 0)
		return -1;
	process->pid = pid;
	return 0;
}

static size_t count_recent_deaths(const struct gateway_process *process)
{
	size_t known = process->death_count < GATEWAY_DEATHS_MAX ? process->death_count :
								   GATEWAY_DEATHS_MAX;
	size_t count = 0;

	for (size_t i = 0; i < known; i++)
		count += clock_now_ms() - process->deaths_ms[i] < GATEWAY_DEATHS_WINDOW_MS;
	return count;
}

bool gateway_process_on_exit(struct gateway_process *process)
{
	size_t before = count_recent_deaths(process);

	CHECK(process->pid > 0 && process->fd >= 0);
	ipc_close(process->fd);
	process->fd = -1;
	process->is_closed = false;
	process->pid = 0;
	process->deaths_ms[process->death_count++ % GATEWAY_DEATHS_MAX] = clock_now_ms();
	process->restart_at_ms = clock_now_ms();
	if (before > 0)
		process->restart_at_ms += (uint64_t)RESTART_DELAY_MS << (before - 1);
	return before < GATEWAY_DEATHS_MAX;
}

/* ---- helpers ---- */

/*
 * As the gateway's, but one process is one connection: it ends when the gateway closes its end.
 */

#define RESTART_MIN_MS 100 /* after the first failure; doubles */
#define RESTART_MAX_MS 30000
#define RESTART_STEPS_MAX 16
#define GOOD_MS 60000 /* one that ran for so long has not failed at its start */

static const struct helper_kind {
	enum program program;
	const char *name; /* in the log */
	bool (*is_needed)(const struct config *config);
	void (*print)(const struct config *config, FILE *out);
} helper_kinds[IPC_HELPERS] = {
	[IPC_HELPER_FETCHER] = { PROGRAM_FETCHER, "fetch", config_is_fetching,
				 config_print_for_fetcher },
	[IPC_HELPER_STORE] = { PROGRAM_STORE, "store", config_has_store, config_print_for_store },
};

static const struct helper_kind *helper_kind(const struct helper_process *process)
{
	return &helper_kinds[process->which];
}

static const char *helper_program(const struct helper_process *process)
{
	return program_names[helper_kind(process)->program];
}

static int helper_make_config(const struct helper_process *process, const struct config *config,
			      struct error *err)
{
	const struct helper_kind *kind = helper_kind(process);

	return memory_file_printed(kind->name, kind->print, config, err);
}

int helper_process_init(struct helper_process *process, enum ipc_helper which,
			const struct config *config, const struct programs *programs,
			struct error *err)
{
	*process = (struct helper_process){
		.which = which,
		.programs = programs,
		.sessions = -1,
		.streams = -1,
		.config = -1,
		.gateway_fd = -1,
		.gateway_end = -1,
		.log_relay = { .pipe = { -1, -1 } },
	};
	if (!helper_kind(process)->is_needed(config))
		return 0;
	process->config = helper_make_config(process, config, err);
	return process->config < 0 ?
		       -1 :
		       log_relay_open(&process->log_relay, helper_kind(process)->name, err);
}

static void helper_drop_gateway_end(struct helper_process *process)
{
	file_close(&process->gateway_end);
}

void helper_process_fini(struct helper_process *process)
{
	helper_drop_gateway_end(process);
	if (process->log_relay.pipe.in >= 0) {
		log_relay_flush(&process->log_relay);
		records_pipe_close(&process->log_relay.pipe);
	}
	file_close(&process->config);
}

int helper_process_renew(struct helper_process *process, const struct config *config,
			 struct error *err)
{
	bool is_needed = helper_kind(process)->is_needed(config);
	int fd = is_needed ? helper_make_config(process, config, err) : -1;

	CHECK(process->gateway_fd < 0);
	/* If there is none, nobody is asked: what is known so far are the addresses of other issuers. */
	file_close(&process->config);
	if (is_needed && fd < 0)
		return -1;
	if (is_needed && process->log_relay.pipe.in < 0 &&
	    log_relay_open(&process->log_relay, helper_kind(process)->name, err) < 0) {
		close(fd);
		return -1;
	}
	process->config = fd;
	return 0;
}

/* What it could write in there the gateway would take for its own. */
static int reopen_for_reading(int memory_file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_file);
	return memory_file >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static int helper_start(struct helper_process *process, struct error *err)
{
	at_end(file_close) int sessions = reopen_for_reading(process->sessions);
	at_end(file_close) int streams = reopen_for_reading(process->streams);
	int fds[HELPER_DESCRIPTORS] = {
		[HELPER_LOG] = process->log_relay.pipe.out,
		[HELPER_CONFIG] = process->config,
		[HELPER_SESSIONS] = sessions,
		[HELPER_STREAMS] = streams,
	};
	pid_t pid;

	CHECK(process->pid == 0 && process->gateway_end < 0);
	records_pipe_restore(&process->log_relay.pipe);
	pid = program_start_connected(process->programs, helper_kind(process)->program, fds,
				      HELPER_DESCRIPTORS, &process->gateway_end, err);
	if (pid < 0)
		return -1;
	process->pid = pid;
	process->started_ms = clock_now_ms();
	LOG(HELPER_START, LOG_STR("program", helper_program(process)), LOG_INT("pid", pid));
	return 0;
}

static void helper_fail(struct helper_process *process)
{
	unsigned int step =
		process->failures < RESTART_STEPS_MAX ? process->failures : RESTART_STEPS_MAX;
	uint64_t wait_ms = (uint64_t)RESTART_MIN_MS << step;

	process->failures++;
	process->restart_at_ms =
		clock_now_ms() + (wait_ms < RESTART_MAX_MS ? wait_ms : RESTART_MAX_MS);
}

uint64_t helper_process_do_due(struct helper_process *process)
{
	struct error err = { ERROR_NONE, "" };

	if (process->config < 0 || process->pid > 0 || process->gateway_fd < 0)
		return UINT64_MAX;
	if (clock_now_ms() >= process->restart_at_ms) {
		if (helper_start(process, &err) == 0)
			return UINT64_MAX;
		LOG(HELPER_FAILED, LOG_STR("program", helper_program(process)),
		    LOG_STR("error", err.text));
		helper_fail(process);
	}
	return process->restart_at_ms;
}

void helper_process_set_gateway(struct helper_process *process, int gateway_fd)
{
	process->gateway_fd = gateway_fd;
	helper_drop_gateway_end(process);
	process->failures = 0;
	process->restart_at_ms = 0;
	process->is_stopped = process->pid > 0;
	if (process->is_stopped)
		kill(process->pid, SIGKILL);
}

void helper_process_on_exit(struct helper_process *process, int status)
{
	CHECK(process->pid > 0);
	log_relay_flush(&process->log_relay);
	helper_drop_gateway_end(process);
	if (!process->is_stopped && status != 0) /* 0: the gateway has closed its end */
		LOG(HELPER_EXIT, LOG_STR("program", helper_program(process)),
		    LOG_INT("pid", process->pid),
		    WIFSIGNALED(status) ? (struct log_field)LOG_INT("signal", WTERMSIG(status)) :
					  (struct log_field)LOG_INT("exit", WEXITSTATUS(status)));
	if (clock_now_ms() - process->started_ms >= GOOD_MS)
		process->failures = 0;
	process->pid = 0;
	if (!process->is_stopped)
		helper_fail(process);
	process->is_stopped = false;
}

void helper_process_tell(struct helper_process *process)
{
	const struct ipc_message message = { .type = IPC_HELPER,
					     .helper = { process->which },
					     .fds = { process->gateway_end },
					     .fd_count = 1 };

	if (process->gateway_end < 0 || process->gateway_fd < 0)
		return;
	if (ipc_send(process->gateway_fd, &message, NULL) == 0)
		helper_drop_gateway_end(process);
}

bool helper_process_has_untold(const struct helper_process *process)
{
	return process->gateway_end >= 0 && process->gateway_fd >= 0;
}
