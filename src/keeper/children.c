/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row lives from the request until its process has been reaped and the gateway was told how it ended, or
 * has forgotten it. A process is signalled only while it has not been reaped, so its number cannot mean
 * another process. BACK-PROC-02, -03, REL-28, REL-30, REL-32.
 */
#include "keeper/children.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/difference.h"
#include "keeper/handover.h"
#include "keeper/kernel_features.h"
#include "keeper/confine.h"
#include "keeper/launch.h"
#include "keeper/sandbox.h"
#include "keeper/server_slots.h"
#include "obs/log.h"

/* ---- who connects to the admin socket ---- */

/*
 * Who connects to the admin socket: the operator, or a process that a server has started. The
 * latter could also open the socket if it runs as the daemon's user, and would then control the
 * other servers. SEC-17
 *
 * Walks from the peer to its parents. A process can leave its session, its group and, as root, its cgroup; its
 * ancestors it cannot choose: when its parent ends, the next subreaper gets it, and the keeper is one. So whoever
 * descends from the keeper always does, and nobody else ever begins to, however often parents change during the walk.
 * (In a container whose first process is the keeper, orphans of other programs come to it as well; they are refused.)
 *
 * A number alone may mean another process by the time it is used. Each process is held by a pidfd, and what was read
 * by its number counts only if it still lives afterwards.
 */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* More than any shell has; a server can make a chain as long as it likes. */
#define DEPTH_MAX 128
/* Processes on the way that end meanwhile. */
#define TRIES_MAX 8

struct process {
	pid_t pid;
	int fd; /* a pidfd */
};

enum step {
	STEP_UP,      /* its parent is held */
	STEP_OURS,    /* its parent is this process */
	STEP_TOP,     /* it has none, or the first process of all */
	STEP_HIDDEN,  /* it lives, and /proc does not show it */
	STEP_CHANGED, /* it, or its parent, has ended */
};

static bool is_alive(const struct process *process)
{
	struct pollfd poll_fd = { .fd = process->fd, .events = POLLIN };

	return process->fd >= 0 && poll(&poll_fd, 1, 0) == 0;
}

/* -1: there is no such process, or it is hidden. */
static pid_t read_parent(pid_t pid)
{
	char path[32], text[512];
	const char *end;
	int parent = -1;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* NUMBER (NAME) STATE PARENT …; a process chooses its name, which may have parentheses of its own. */
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

/* parent_r is the caller's if the answer is STEP_UP. */
static enum step take_parent(const struct process *child, struct process *parent_r)
{
	pid_t pid = read_parent(child->pid);

	if (pid == getpid())
		return STEP_OURS;
	if (!is_alive(child))
		return STEP_CHANGED;
	if (pid < 0)
		return STEP_HIDDEN;
	if (pid <= 1)
		return STEP_TOP;
	*parent_r = (struct process){ pid, pidfd_open(pid, 0) };
	if (read_parent(child->pid) == pid && is_alive(parent_r) && is_alive(child))
		return STEP_UP;
	if (parent_r->fd >= 0)
		close(parent_r->fd);
	return STEP_CHANGED;
}

/* Up to the first process that has no parent to go to; *last_r: its number. */
static enum step operator_walk(const struct process *peer, pid_t *last_r)
{
	struct process at = *peer, parent = *peer;
	enum step step = STEP_UP;

	for (int depth = 0; step == STEP_UP; depth++) {
		*last_r = at.pid;
		step = depth < DEPTH_MAX ? take_parent(&at, &parent) : STEP_OURS;
		if (at.fd != peer->fd)
			close(at.fd);
		at = parent;
	}
	return step;
}

/* Of one that is over as well, whose last processes may be on their way out. */
static bool is_user_of_a_server(const struct server_slots *slots, const struct launch *launch,
				uid_t uid)
{
	for (size_t i = 0; i < slots->table.server_count; i++) {
		const struct launch_spec *spec = &launch->specs[i];

		if (slots->slots[i].is_known && uid == (spec->has_user ? spec->uid : geteuid()))
			return true;
	}
	return false;
}

/*
 * With hidepid= or ProtectProc= other users' processes are hidden, the operator's among them, and those that forbid
 * tracing. Then the user must tell: a server's process cannot gain another by itself.
 */
static bool may_hidden_be(const struct server_slots *slots, const struct launch *launch,
			  const struct ucred *peer, pid_t hidden)
{
	if (hidden == peer->pid)
		return !is_user_of_a_server(slots, launch, peer->uid);
	/* An ancestor, such as sudo. Where we may signal it, nothing tells it from a server's process. */
	return kill(hidden, 0) < 0 && errno == EPERM;
}

/* By the kernel's own reference where there is one; before, a number may have been given to another process. */
static int open_peer(int fd, pid_t pid)
{
	socklen_t size = sizeof(int);
	int peer_fd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer_fd, &size) == 0)
		return peer_fd;
	return errno == ENOPROTOOPT ? pidfd_open(pid, 0) : -1;
}

/*
 * Whether the process that connected this unix socket may be the operator, i.e. this process, the
 * subreaper of everything that servers start, is not among its ancestors. False if it has exited
 * since.
 */
static bool operator_may_be(const struct server_slots *slots, const struct launch *launch, int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	enum step step = STEP_CHANGED;
	struct process process;
	pid_t last = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	if (peer.pid <= 0)
		return true; /* in a namespace that is not below ours, so no process of a server */
	process = (struct process){ peer.pid, open_peer(fd, peer.pid) };
	for (int i = 0; i < TRIES_MAX && step == STEP_CHANGED && is_alive(&process); i++)
		step = operator_walk(&process, &last);
	if (process.fd >= 0)
		close(process.fd);
	CHECK(step != STEP_UP);
	return step == STEP_TOP ||
	       (step == STEP_HIDDEN && may_hidden_be(slots, launch, &peer, last));
}

/* Processes beyond a limit that may still be on their way out. */
#define LEAVING_MAX 16
#define STARTS_RESERVE 10

enum row_state {
	ROW_STARTING, /* forked; whether exec succeeds is not known */
	ROW_RUNNING,
	ROW_ENDED, /* reaped, or never forked */
};
static const char *const row_states[] = { "starting", "running", "ended" };

/* What the gateway has been told. */
enum row_told { TOLD_NOTHING, TOLD_STARTED, TOLD_END };

/* With the pid: for a process of a program that handed no numbers over. Those of gateways are below (process/spawn). */
#define INHERITED_BIT ((uint64_t)1 << 62)

struct row {
	struct list link;   /* children->starting or ->others */
	struct list untold; /* children->untold, or alone */
	uint64_t id;
	uint32_t server;
	pid_t pid;
	int64_t cgroup; /* of cgroups_make, or 0 */
	enum row_state state;
	enum row_told told;
	int fds[3];        /* our ends of the pipes, until the gateway stops it; or -1 */
	int verdict_fd;    /* while starting, else -1 */
	int error;         /* errno of a start that failed, or 0 */
	int status;        /* once reaped */
	bool is_inherited; /* to be offered to the next gateway */
	char owner[IPC_OWNER_BYTES];
	size_t owner_bytes;
	unsigned int deaths; /* of gateways that used it */
	uint64_t deaths_since_ms;
};

static void log_sandbox(const struct config_server *server)
{
	struct server_confinement confinement;

	sandbox_describe(server, landlock_version(), &confinement);
	if (confinement.in_force[0] != '\0')
		LOG(SANDBOX, LOG_STR("server", server->conf.name),
		    LOG_STR("in_force", confinement.in_force));
	if (confinement.only_reports)
		LOG(SANDBOX_REPORTS, LOG_STR("server", server->conf.name));
	else if (confinement.lacking[0] != '\0')
		LOG(SANDBOX_LACKS, LOG_STR("server", server->conf.name),
		    LOG_STR("lacks", confinement.lacking));
}

static struct server_starts *starts_of(const struct children *children, size_t server)
{
	CHECK(server < SERVERS_MAX);
	return &children->slots->slots[server].starts;
}

/* Its name may have been another number's, with other arguments, say. */
static bool was_root(const struct children *children, const char *name)
{
	const struct config *config = children->config;

	for (size_t i = 0; i < config->server_count; i++)
		if (starts_of(children, i)->is_logged &&
		    strcmp(config->servers[i].conf.name, name) == 0 &&
		    kernel_features_is_root(&config->servers[i]))
			return true;
	return false;
}

void children_note_servers(const struct children *children)
{
	const struct config *config = children->config;

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		/* A number stands for the same processes until it is freed. */
		if (!server->enabled || starts_of(children, i)->is_logged)
			continue;
		if (kernel_features_is_root(server) && !was_root(children, server->conf.name))
			LOG(SERVER_IS_ROOT, LOG_STR("server", server->conf.name));
		if (kernel_features_reaches_gateway(config, server))
			LOG(SERVER_REACHES_GATEWAY, LOG_STR("server", server->conf.name));
		log_sandbox(server);
		starts_of(children, i)->is_logged = true;
	}
}

void children_init(struct children *children, const struct server_slots *slots,
		   struct launch *launch, struct reaper *reaper, struct cgroups *cgroups)
{
	struct rlimit limit;

	*children = (struct children){
		.slots = slots,
		.config = &slots->table,
		.launch = launch,
		.reaper = reaper,
		.cgroups = cgroups,
		.gateway_fd = -1,
		.pipes_below = INT_MAX,
	};
	CHECK(launch->config == children->config);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < INT_MAX)
		children->pipes_below = (int)(limit.rlim_cur / 2);
	list_init(&children->starting);
	list_init(&children->others);
	list_init(&children->untold);
	children_note_servers(children);
}

static const struct config_server *row_server(const struct children *children,
					      const struct row *row)
{
	CHECK(row->server < children->config->server_count);
	return &children->config->servers[row->server];
}

static const char *row_server_name(const struct children *children, const struct row *row)
{
	return row_server(children, row)->conf.name;
}

static void row_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void row_close_pipes(struct row *row)
{
	for (size_t i = 0; i < ARRAY_LEN(row->fds); i++)
		row_close_fd(&row->fds[i]);
}

/* Puts the row at the end of those of which the gateway has to be told something, or takes it off them. */
static void row_set_untold(struct children *children, struct row *row, bool is_untold)
{
	CHECK(list_is_empty(&row->untold) || children->untold_count > 0);
	children->untold_count -= !list_is_empty(&row->untold);
	list_remove(&row->untold);
	if (!is_untold)
		return;
	list_append(&children->untold, &row->untold);
	children->untold_count++;
}

static struct row *row_new(struct children *children, const struct ipc_message *message)
{
	struct row *row = mem_zalloc(sizeof(*row));

	CHECK(message->start.server < children->config->server_count);
	row->id = message->start.child;
	row->server = message->start.server;
	row->verdict_fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(row->fds); i++)
		row->fds[i] = -1;
	list_append(&children->starting, &row->link);
	list_init(&row->untold);
	children->starting_count++;
	starts_of(children, row->server)->processes++;
	children->count++;
	map_insert(&children->by_id, row->id, row);
	return row;
}

static void child_row_free(struct children *children, struct row *row)
{
	CHECK(row->state == ROW_ENDED && row->told == TOLD_END && list_is_empty(&row->untold));
	list_remove(&row->link);
	CHECK(starts_of(children, row->server)->processes > 0);
	starts_of(children, row->server)->processes--;
	children->count--;
	free(row);
}

/* The one writer of the state. */
static void row_set_state(struct children *children, struct row *row, enum row_state state)
{
	CHECK(state > row->state);
	LOG(CHILD_STATE, LOG_STR("server", row_server_name(children, row)),
	    LOG_INT("child", row->id), LOG_STR("from", row_states[row->state]),
	    LOG_STR("to", row_states[state]));
	if (row->state == ROW_STARTING) {
		CHECK(children->starting_count > 0);
		row_close_fd(&row->verdict_fd);
		children->starting_count--;
		list_move(&children->others, &row->link);
	}
	row->state = state;
	if (row->told != TOLD_END)
		row_set_untold(children, row, true);
}

/*
 * Whether copies of its pipes are kept for a next gateway. They take no more than half of our descriptors, as a gateway
 * is made with what is left.
 */
static bool row_may_outlive(const struct children *children, const struct row *row)
{
	return row->fds[0] < children->pipes_below && row->fds[1] < children->pipes_below &&
	       row->fds[2] < children->pipes_below;
}

/*
 * The one writer of what was told. TOLD_END, which is also for an end that the gateway does not want to hear of, makes
 * the child's number free again.
 */
static void row_set_told(struct children *children, struct row *row, enum row_told told)
{
	CHECK(told > row->told);
	row->told = told;
	if (told == TOLD_END || !row_may_outlive(children, row))
		row_close_pipes(row);
	if (told == TOLD_END)
		CHECK(map_remove(&children->by_id, row->id) == row);
	if (told == TOLD_END || row->state != ROW_ENDED)
		row_set_untold(children, row, false);
	if (told == TOLD_END && row->state == ROW_ENDED)
		child_row_free(children, row);
}

/* To the whole group; a process that has not made its own group yet is alone. */
static void row_signal(const struct row *row, int number)
{
	if (row->state == ROW_ENDED)
		return;
	CHECK(row->pid > 0); /* 0 would be our own group */
	if (kill(-row->pid, number) < 0)
		kill(row->pid, number);
}

/* Once, if nothing changes: that it was tried again, and when it will be, is the gateway's to say (server_failing). */
static void log_spawn_failed(struct children *children, const struct row *row,
			     const struct launch_verdict *verdict)
{
	const char *command = launch_program(&children->config->servers[row->server]);
	struct launch_verdict *told = &starts_of(children, row->server)->failed;
	char reason[160];

	if (told->error == verdict->error && told->step == verdict->step)
		return;
	*told = *verdict;
	snprintf(reason, sizeof(reason), "%s%s", launch_step_text(verdict->step),
		 launch_hint(verdict, children->config, command));
	LOG_BY(CHILD_SPAWN_FAILED, (uintptr_t)row_server_name(children, row),
	       LOG_STR("server", row_server_name(children, row)), LOG_STR("reason", reason),
	       LOG_STR("command", command), LOG_STR("error", strerror(verdict->error)));
}

static void refuse_start(const struct ipc_message *message, const char *why)
{
	LOG(IPC_BAD_REQUEST, LOG_INT("type", message->type),
	    LOG_INT("server", message->start.server), LOG_INT("child", message->start.child),
	    LOG_STR("reason", why));
}

/* NULL, or why this start is refused. */
static const char *check_start(const struct children *children, const struct ipc_message *message)
{
	if (server_slots_find(children->slots, message->start.server) == NULL)
		return "there is no such server";
	if (!children->config->servers[message->start.server].enabled)
		return "the server is not enabled";
	if (children->config->servers[message->start.server].is_endpoint)
		return "an endpoint has no processes";
	if (message->start.child >= INHERITED_BIT)
		return "no gateway gives such numbers";
	if (map_find(&children->by_id, message->start.child) != NULL)
		return "there is already a child with this number";
	return NULL;
}

static bool is_above(size_t count, uint64_t limit)
{
	return count > LEAVING_MAX && (count - LEAVING_MAX) / 2 >= limit;
}

/* The gateway keeps to pool.max and limits.processes by itself; this is for one that was taken over. */
static bool is_over_limit(const struct children *children, uint32_t server)
{
	const struct config *config = children->config;

	return is_above(starts_of(children, server)->processes,
			config->servers[server].conf.pool_max) ||
	       is_above(children->count, config->max_processes);
}

/* Likewise with start.rate: a second's worth may come at once, and some late ones of the second before. */
static bool is_too_fast(struct children *children, uint32_t server)
{
	struct server_starts *starts = starts_of(children, server);
	uint64_t now = clock_now_ms();

	if (now - starts->second_began_ms >= 1000) {
		starts->second_began_ms = now;
		starts->count = 0;
	}
	return ++starts->count >
	       2 * children->config->servers[server].conf.start_rate + STARTS_RESERVE;
}

/* Returns 0, or -1 and in *verdict_r why there is no process. */
static int row_fork(struct children *children, struct row *row, char **envp,
		    struct launched *launched_r, struct launch_verdict *verdict_r)
{
	struct launch_spec spec = children->launch->specs[row->server];
	int cgroup_fd, result;

	spec.envp = envp;
	row->cgroup = cgroups_make(children->cgroups, row_server(children, row), &cgroup_fd);
	if (row->cgroup < 0) {
		*verdict_r = (struct launch_verdict){ LAUNCH_CGROUP, errno };
		return -1;
	}
	result = launch_start(children->launch, &spec, children->reaper, cgroup_fd, launched_r,
			      &verdict_r->error);
	row_close_fd(&cgroup_fd);
	if (result < 0)
		cgroups_remove(children->cgroups, row_server(children, row), row->cgroup);
	return result;
}

static void row_start(struct children *children, struct row *row, char **envp)
{
	struct launch_verdict verdict = { LAUNCH_SETUP, EAGAIN };
	struct launched launched;

	if (is_over_limit(children, row->server) || is_too_fast(children, row->server) ||
	    row_fork(children, row, envp, &launched, &verdict) < 0) {
		row->error = verdict.error;
		log_spawn_failed(children, row, &verdict);
		row_set_state(children, row, ROW_ENDED);
		return;
	}
	CHECK(launched.pid > 0 && launched.verdict_fd >= 0);
	row->pid = launched.pid;
	row->verdict_fd = launched.verdict_fd;
	memcpy(row->fds, launched.fds, sizeof(row->fds));
	map_insert(&children->by_pid, (uint64_t)row->pid, row);
}

/* The process gets exactly the claims that its server declares. AUTH-DWN-02 */
static void row_start_with_claims(struct children *children, struct row *row,
				  const struct ipc_message *message)
{
	char **envp = children->launch->specs[row->server].envp;
	struct error err = { ERROR_NONE, "" };
	char **made;

	if (claims_make_env(children->launch->config, row_server(children, row), envp,
			    message->texts[0], &made, &err) < 0) {
		if (err.kind == ERROR_BUSY)
			LOG_BY(CREDENTIAL_MISSING, row->server,
			       LOG_STR("server", row_server_name(children, row)),
			       LOG_STR("error", err.text));
		else
			refuse_start(message, err.text);
		row->error = err.kind == ERROR_BUSY ? IPC_NO_CREDENTIAL : EINVAL;
		row_set_state(children, row, ROW_ENDED);
		return;
	}
	row_start(children, row, made);
	claims_free_env(envp, made);
}

static void request_start(struct children *children, const struct ipc_message *message)
{
	const char *why = check_start(children, message);

	if (why != NULL) {
		refuse_start(message, why);
		return;
	}
	launch_renew_secrets(children->launch, message->start.server);
	row_start_with_claims(children, row_new(children, message), message);
}

/* That there is no such child is no mistake: it may have ended, and the gateway not been told yet. */
static void request_signal(struct children *children, const struct ipc_message *message)
{
	struct row *row = map_find(&children->by_id, message->signal.child);
	int number = message->signal.number;

	if (number != SIGTERM && number != SIGKILL)
		LOG(IPC_BAD_REQUEST, LOG_INT("type", message->type),
		    LOG_INT("child", message->signal.child),
		    LOG_STR("reason", "only TERM and KILL may be sent"));
	else if (row != NULL)
		row_signal(row, number);
}

static void request_forget(struct children *children, uint64_t child)
{
	struct row *row = map_find(&children->by_id, child);

	if (row == NULL)
		return;
	row_signal(row, SIGKILL);
	row_set_told(children, row, TOLD_END);
}

/* The copies would keep the process from seeing the end of its stdin. */
static void request_close(struct children *children, uint64_t child)
{
	struct row *row = map_find(&children->by_id, child);

	if (row != NULL && row->told == TOLD_STARTED)
		row_close_pipes(row);
}

/*
 * A gateway that was taken over could give a process to another owner, who would still have it after
 * that gateway. SEC-61
 */
static void request_owner(struct children *children, const struct ipc_message *message)
{
	struct row *row = map_find(&children->by_id, message->owner.child);
	struct slice owner = message->texts[0];

	if (row == NULL || row->owner_bytes > 0 || owner.n > sizeof(row->owner))
		return;
	memcpy(row->owner, owner.p, owner.n);
	row->owner_bytes = owner.n;
}

static void request_judge(struct children *children, uint64_t question, int fd)
{
	bool is_allowed = fd >= 0 && operator_may_be(children->slots, children->launch, fd);
	size_t i = children->judged_count++;

	CHECK(i < CHILDREN_JUDGED_MAX); /* children_may_be_asked */
	children->judged[i].question = question;
	children->judged[i].is_allowed = is_allowed;
}

void children_request(struct children *children, const struct ipc_message *message)
{
	if (message->type == IPC_START)
		request_start(children, message);
	else if (message->type == IPC_JUDGE)
		request_judge(children, message->judge.question,
			      message->fd_count > 0 ? message->fds[0] : -1);
	else if (message->type == IPC_SIGNAL)
		request_signal(children, message);
	else if (message->type == IPC_FORGET)
		request_forget(children, message->forget.child);
	else if (message->type == IPC_CLOSE)
		request_close(children, message->close.child);
	else if (message->type == IPC_OWNER)
		request_owner(children, message);
	else
		LOG(IPC_BAD_REQUEST, LOG_INT("type", message->type),
		    LOG_STR("reason", "there is no such request"));
}

size_t children_poll_fill(const struct children *children, struct pollfd *polls_r)
{
	size_t count = 0;

	LIST_EACH(struct row, row, &children->starting, link) {
		CHECK(count < CHILDREN_STARTING_MAX);
		polls_r[count++] = (struct pollfd){ .fd = row->verdict_fd, .events = POLLIN };
	}
	return count;
}

/* If there is one. The write end closes when exec succeeds, or in death. */
static void row_read_verdict(struct children *children, struct row *row)
{
	struct launch_verdict verdict;
	ssize_t n = read(row->verdict_fd, &verdict, sizeof(verdict));

	CHECK(row->state == ROW_STARTING && row->verdict_fd >= 0);
	if (n < 0)
		return;
	if (n == (ssize_t)sizeof(verdict)) {
		row->error = verdict.error;
		log_spawn_failed(children, row, &verdict);
	} else {
		starts_of(children, row->server)->failed = (struct launch_verdict){ 0 };
		LOG(CHILD_SPAWN, LOG_STR("server", row_server_name(children, row)),
		    LOG_INT("pid", row->pid), LOG_INT("child", row->id));
	}
	row_set_state(children, row, ROW_RUNNING);
}

void children_read_verdicts(struct children *children)
{
	LIST_EACH_SAFE(struct row, row, &children->starting, link)
		row_read_verdict(children, row);
}

bool children_before_reap(struct children *children, pid_t pid)
{
	const struct row *row = map_find(&children->by_pid, (uint64_t)pid);

	if (row == NULL)
		return false;
	CHECK(row->pid == pid && row->state != ROW_ENDED);
	/* Until it is reaped its number, and so its group's, cannot mean another process. */
	kill(-pid, SIGKILL);
	cgroups_kill(children->cgroups, row_server(children, row), row->cgroup);
	if (!reaper_remove(children->reaper, pid) && children->reaper->fd >= 0)
		LOG(REAPER_FAILED, LOG_STR("reason", "it cannot be told that a process has ended"));
	return true;
}

static void log_limit(const struct children *children, const struct row *row)
{
	const char *option =
		cgroups_limit_reached(children->cgroups, row_server(children, row), row->cgroup);

	if (option != NULL)
		LOG_BY(CHILD_LIMIT, (uintptr_t)row_server_name(children, row),
		       LOG_STR("server", row_server_name(children, row)), LOG_INT("pid", row->pid),
		       LOG_STR("limit", option));
}

void children_on_reaped(struct children *children, pid_t pid, int status)
{
	struct row *row = map_remove(&children->by_pid, (uint64_t)pid);

	CHECK(row != NULL && row->state != ROW_ENDED);
	/* It may have ended before its verdict was read. */
	if (row->state == ROW_STARTING)
		row_read_verdict(children, row);
	LOG(CHILD_REAPED, LOG_STR("server", row_server_name(children, row)), LOG_INT("pid", pid),
	    LOG_INT("child", row->id),
	    WIFSIGNALED(status) ? (struct log_field)LOG_INT("signal", WTERMSIG(status)) :
				  (struct log_field)LOG_INT("exit", WEXITSTATUS(status)));
	log_limit(children, row);
	cgroups_remove(children->cgroups, row_server(children, row), row->cgroup);
	row->status = status;
	row_set_state(children, row, ROW_ENDED);
	if (row->told == TOLD_END)
		child_row_free(children, row);
}

/* Sends the next message about the row. Returns whether the socket took it. */
static bool row_tell(struct children *children, struct row *row)
{
	enum row_told next = row->error == 0 && row->told == TOLD_NOTHING ? TOLD_STARTED : TOLD_END;
	struct ipc_message message;

	CHECK(row->told != TOLD_END && children->gateway_fd >= 0);
	if (row->error != 0)
		message = (struct ipc_message){ .type = IPC_FAILED,
						.failed = { row->id, row->error } };
	else if (row->told == TOLD_NOTHING && row->is_inherited)
		message = (struct ipc_message){ .type = IPC_INHERIT,
						.inherit = { row->id, row->server, row->pid },
						.texts = { slice_of(row->owner, row->owner_bytes) },
						.fds = { row->fds[0], row->fds[1], row->fds[2] },
						.fd_count = 3 };
	else if (row->told == TOLD_NOTHING)
		message = (struct ipc_message){ .type = IPC_STARTED,
						.started = { row->id, row->pid },
						.fds = { row->fds[0], row->fds[1], row->fds[2] },
						.fd_count = 3 };
	else
		message = (struct ipc_message){ .type = IPC_EXITED,
						.exited = { row->id, row->status } };
	if (ipc_send(children->gateway_fd, &message, NULL) < 0)
		return false; /* the socket is full, or the gateway has ended, which SIGCHLD tells */
	row_set_told(children, row, next);
	return true;
}

/* Sends the answer that was given last: their order means nothing. */
static bool tell_judged(struct children *children)
{
	size_t last = children->judged_count - 1;
	struct ipc_message message = { .type = IPC_JUDGED,
				       .judged = { children->judged[last].question,
						   children->judged[last].is_allowed } };

	CHECK(children->judged_count > 0 && children->gateway_fd >= 0);
	if (ipc_send(children->gateway_fd, &message, NULL) < 0)
		return false;
	children->judged_count = last;
	return true;
}

void children_tell(struct children *children)
{
	struct ipc_message end = { .type = IPC_INHERIT_END,
				   .inherit_end = { (uint8_t)children->outcome } };

	while (children->gateway_fd >= 0 && children->judged_count > 0) {
		if (!tell_judged(children))
			return;
	}
	while (children->gateway_fd >= 0 && !list_is_empty(&children->untold)) {
		if (!row_tell(children, container_of(children->untold.next, struct row, untold)))
			return;
	}
	if (children->gateway_fd >= 0 && children->owes_end)
		children->owes_end = ipc_send(children->gateway_fd, &end, NULL) < 0;
}

bool children_may_be_asked(const struct children *children)
{
	return children->starting_count < CHILDREN_STARTING_MAX &&
	       children->untold_count < CHILDREN_UNTOLD_MAX &&
	       children->judged_count < CHILDREN_JUDGED_MAX;
}

bool children_has_untold(const struct children *children)
{
	return children->judged_count > 0 || !list_is_empty(&children->untold) ||
	       children->owes_end;
}

static void row_kill(struct children *children, struct row *row)
{
	row_signal(row, SIGKILL);
	if (row->told != TOLD_END)
		row_set_told(children, row, TOLD_END);
}

static void kill_list(struct children *children, struct list *rows)
{
	LIST_EACH_SAFE(struct row, row, rows, link)
		row_kill(children, row);
}

/* ---- a gateway that dies ---- */

/* Whether it was there at too many deaths. */
static bool row_is_suspect(struct row *row)
{
	uint64_t now = clock_now_ms();

	if (row->deaths == 0 || now - row->deaths_since_ms > CHILDREN_DEATHS_WINDOW_MS) {
		row->deaths = 0;
		row->deaths_since_ms = now;
	}
	return ++row->deaths >= CHILDREN_DEATHS_MAX;
}

/* Whether the gateway that has died was using it, or was about to inherit it. */
static bool row_was_used(const struct row *row)
{
	return row->state == ROW_RUNNING && row->fds[0] >= 0 && row->owner_bytes > 0 &&
	       (row->told == TOLD_STARTED || row->is_inherited);
}

static void row_keep(struct children *children, struct row *row)
{
	for (size_t i = 0; i < ARRAY_LEN(row->fds); i++)
		fcntl(row->fds[i], F_SETFL, O_NONBLOCK); /* it may have been taken over */
	row->is_inherited = true;
	row->told = TOLD_NOTHING;
	row_set_untold(children, row, true);
}

static void keep(struct children *children, bool is_orderly)
{
	kill_list(children, &children->starting);
	LIST_EACH_SAFE(struct row, row, &children->others, link)
		if (row_was_used(row) && (is_orderly || !row_is_suspect(row)))
			row_keep(children, row);
		else if (!is_orderly)
			row_kill(children, row);
		else if (row->told != TOLD_END)
			row_set_told(children, row, TOLD_END);
	children->judged_count = 0;
	children->gateway_fd = -1;
}

void children_keep(struct children *children)
{
	keep(children, false);
}

void children_keep_orderly(struct children *children)
{
	keep(children, true);
}

size_t children_end_others(struct children *children, int number)
{
	size_t count = children->starting_count;

	CHECK(children->gateway_fd < 0);
	LIST_EACH(struct row, row, &children->others, link) {
		if (row->told != TOLD_END)
			continue;
		count++;
		if (number != 0)
			row_signal(row, number);
	}
	return count;
}

/* The configuration may be another one by now. */
static bool row_may_be_offered(const struct children *children, const struct row *row)
{
	return row->is_inherited && row->told == TOLD_NOTHING &&
	       server_slots_find(children->slots, row->server) != NULL &&
	       row_server(children, row)->enabled;
}

/* ---- another program ---- */

/*
 * A line: the process, its pipes, its cgroup, whose it is, what it was made of, the name of its server, and its
 * number.
 */

void children_hand_over(const struct children *children, struct handover *to)
{
	LIST_EACH(const struct row, row, &children->others, link) {
		char owner[2 * IPC_OWNER_BYTES + 1], digest[CONFIG_DIGEST_BYTES + 1];

		if (row->state != ROW_RUNNING || !row_may_be_offered(children, row))
			continue;
		text_to_hex(row->owner, row->owner_bytes, owner);
		owner[2 * row->owner_bytes] = '\0';
		config_digest_processes(row_server(children, row), digest);
		handover_write(to, "child %d %d %d %d %" PRId64 " %s %s %s %" PRIu64, row->pid,
			       handover_give(to, row->fds[0]), handover_give(to, row->fds[1]),
			       handover_give(to, row->fds[2]), row->cgroup, owner, digest,
			       row_server_name(children, row), row->id);
	}
}

struct left_child {
	int pid;
	int fds[3];
	int64_t cgroup;
	char owner[2 * IPC_OWNER_BYTES + 1];
	char digest[CONFIG_DIGEST_BYTES + 1];
	char server[64 + 1];
	uint64_t id;
};

/* Its number, where the same processes are made today; SERVERS_MAX: there is none. */
static uint32_t find_server_of(const struct children *children, const struct left_child *left)
{
	uint32_t server = server_slots_find_name(children->slots, left->server);
	char digest[CONFIG_DIGEST_BYTES + 1];

	if (server == SERVERS_MAX)
		return SERVERS_MAX;
	config_digest_processes(&children->config->servers[server], digest);
	return strcmp(digest, left->digest) == 0 ? server : SERVERS_MAX;
}

static void kill_left(struct children *children, const struct left_child *left)
{
	const struct config_server server = { .conf.name = (char *)(uintptr_t)left->server };

	LOG(PROCESS_NOT_TAKEN, LOG_STR("server", left->server), LOG_INT("pid", left->pid));
	kill(-left->pid, SIGKILL);
	(void)reaper_remove(children->reaper, left->pid);
	cgroups_kill(children->cgroups, &server, left->cgroup);
	cgroups_remove(children->cgroups, &server, left->cgroup);
}

static void row_take_over(struct children *children, const struct left_child *left, uint32_t server)
{
	struct ipc_message start = { .start = { left->id, server } };
	struct row *row = row_new(children, &start);

	CHECK(left->pid > 1 && server < children->config->server_count);
	row->pid = left->pid;
	row->cgroup = left->cgroup;
	memcpy(row->fds, left->fds, sizeof(row->fds));
	row->owner_bytes = strlen(left->owner) / 2;
	CHECK(text_from_hex(slice_str(left->owner), row->owner, row->owner_bytes) == 0);
	map_insert(&children->by_pid, (uint64_t)row->pid, row);
	row->is_inherited = true;
	row_set_state(children, row, ROW_RUNNING);
}

size_t children_take_over(struct children *children, struct handover *from)
{
	struct left_child left;
	size_t at = 0, count = 0;
	const char *line;

	while ((line = handover_next(from, "child", &at)) != NULL) {
		uint32_t server = SERVERS_MAX;

		left.id = 0;
		if (sscanf(line, "%d %d %d %d %" SCNd64 " %128s %64s %64s %" SCNu64, &left.pid,
			   &left.fds[0], &left.fds[1], &left.fds[2], &left.cgroup, left.owner,
			   left.digest, left.server, &left.id) < 8 ||
		    left.pid <= 1)
			continue;
		if (left.id == 0)
			left.id = INHERITED_BIT | (uint64_t)left.pid;
		for (size_t i = 0; i < ARRAY_LEN(left.fds); i++)
			left.fds[i] = handover_take(from, left.fds[i]);
		server = find_server_of(children, &left);
		if (server == SERVERS_MAX) {
			kill_left(children, &left);
			continue;
		}
		row_take_over(children, &left, server);
		count++;
	}
	children_set_reaper(children); /* it may be another one */
	return count;
}

static void kill_of_server(const struct list *rows, size_t server)
{
	LIST_EACH(const struct row, row, rows, link)
		if (row->server == server)
			row_signal(row, SIGKILL);
}

void children_kill_server(struct children *children, size_t server)
{
	CHECK(server < children->config->server_count);
	kill_of_server(&children->starting, server);
	kill_of_server(&children->others, server);
}

void children_kill_others(struct children *children)
{
	kill_list(children, &children->starting);
	LIST_EACH_SAFE(struct row, row, &children->others, link)
		if (!row_may_be_offered(children, row))
			row_kill(children, row);
}

void children_set_gateway(struct children *children, int gateway_fd)
{
	children_kill_others(children);
	if (gateway_fd < 0)
		kill_list(children, &children->others);
	children->judged_count = 0;
	children->gateway_fd = gateway_fd;
	children->owes_end = gateway_fd >= 0;
}

static void reaper_list(const struct children *children, const struct list *rows)
{
	LIST_EACH(struct row, row, rows, link)
		if (row->state != ROW_ENDED && !reaper_add(children->reaper, row->pid))
			return;
}

void children_set_reaper(struct children *children)
{
	reaper_list(children, &children->starting);
	reaper_list(children, &children->others);
}
