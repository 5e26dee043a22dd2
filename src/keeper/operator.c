/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks from the peer to its parents. A process can leave its session, its group and, as root, its cgroup; its
 * ancestors it cannot choose: when its parent ends, the next subreaper gets it, and the keeper is one. So whoever
 * descends from the keeper always does, and nobody else ever begins to, however often parents change during the walk.
 * (In a container whose first process is the keeper, orphans of other programs come to it as well; they are refused.)
 *
 * A number alone may mean another process by the time it is used. Each process is held by a pidfd, and what was read
 * by its number counts only if it still lives afterwards.
 */
#include "keeper/operator.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

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
static enum step walk(const struct process *peer, pid_t *last_r)
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

bool operator_may_be(const struct server_slots *slots, const struct launch *launch, int fd)
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
		step = walk(&process, &last);
	if (process.fd >= 0)
		close(process.fd);
	CHECK(step != STEP_UP);
	return step == STEP_TOP ||
	       (step == STEP_HIDDEN && may_hidden_be(slots, launch, &peer, last));
}
