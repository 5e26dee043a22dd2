/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confinement of the processes that face the network: code execution there must not become code
 * execution on the host. Each measure is logged in one line (CONFINE): on, or why not. SEC-61,
 * DEF-20, DEF-24.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* ---- Landlock ---- */

/*
 * Landlock by system call: landlock(7). The constants are defined here because the build's header
 * may be older than the kernel. Everything is async-signal-safe and reports errors by errno.
 */

/* The versions that first support these restrictions. */
#define LANDLOCK_VERSION_TRUNCATE 3 /* Linux 6.2; before it, every writable file can be truncated */
#define LANDLOCK_VERSION_NET 4      /* Linux 6.7: TCP */
#define LANDLOCK_VERSION_SCOPED 6   /* Linux 6.12: signals, abstract unix sockets */

enum landlock_fs {
	LANDLOCK_FS_EXECUTE = 1 << 0,
	LANDLOCK_FS_WRITE_FILE = 1 << 1,
	LANDLOCK_FS_READ_FILE = 1 << 2,
	LANDLOCK_FS_READ_DIR = 1 << 3,
	LANDLOCK_FS_REMOVE_DIR = 1 << 4,
	LANDLOCK_FS_REMOVE_FILE = 1 << 5,
	LANDLOCK_FS_MAKE_CHAR = 1 << 6,
	LANDLOCK_FS_MAKE_DIR = 1 << 7,
	LANDLOCK_FS_MAKE_REG = 1 << 8,
	LANDLOCK_FS_MAKE_SOCK = 1 << 9,
	LANDLOCK_FS_MAKE_FIFO = 1 << 10,
	LANDLOCK_FS_MAKE_BLOCK = 1 << 11,
	LANDLOCK_FS_MAKE_SYM = 1 << 12,
	LANDLOCK_FS_REFER = 1 << 13,
	LANDLOCK_FS_TRUNCATE = 1 << 14,
	LANDLOCK_FS_IOCTL_DEV = 1 << 15,
	LANDLOCK_FS_ALL = (1 << 16) - 1,
};

enum landlock_net {
	LANDLOCK_NET_BIND_TCP = 1 << 0,
	LANDLOCK_NET_CONNECT_TCP = 1 << 1,
	LANDLOCK_NET_ALL = 3,
};

/* Abstract unix sockets of, and signals to, processes outside. */
#define LANDLOCK_SCOPE_ALL 3

/* What is denied unless a rule grants it. */
struct landlock_rights {
	uint64_t fs;     /* enum landlock_fs */
	uint64_t net;    /* enum landlock_net */
	uint64_t scoped; /* LANDLOCK_SCOPE_ALL or 0; rules cannot grant these */
};

/* The version of the kernel's interface; below 1: not available, with errno. */
int landlock_version(void);
/* Creates a ruleset (a descriptor) for those of the rights that the kernel knows. -1: errno. */
int landlock_open(const struct landlock_rights *rights) must_check;
/* The same for an open descriptor, which may be O_PATH. */
int landlock_allow_open(int ruleset, int fd, uint64_t fs);
int landlock_allow_port(int ruleset, uint16_t port, uint64_t net) must_check;
/* Applies to this process and its future children. no_new_privs must be set. */
int landlock_enforce(int ruleset) must_check;

/* ---- capabilities ---- */

/*
 * Drops all capabilities, including those gained by executing a program as root. Returns 0, or -1
 * with errno. Async-signal-safe.
 */
int capabilities_drop_all(void) must_check;

/*
 * Makes CAP_SYS_ADMIN effective, out of the capabilities that prctl(PR_SET_KEEPCAPS) kept across a
 * change of user. Returns 0, or -1 with errno. Async-signal-safe.
 */
int capabilities_use_admin(void) must_check;

/* Whether this process can start and kill processes of other users. Being root is not enough. */
bool capabilities_reach_users(void);

struct confinement {
	/*
	 * For what talks to other hosts (mcpgated-fetch, mcpgated-remote): may connect, start
	 * threads (to resolve names) and read the files that resolving needs; a deny-list replaces
	 * the allow-list.
	 */
	bool fetches;
	uint16_t port; /* if it does, the only one (TCP) that it may connect to; 0: any */
	/*
	 * If it does, it may connect to unix sockets in place of TCP, and to any: nothing can tell one from another. For
	 * a client of the user's own daemon.
	 */
	bool unix_sockets;
};

/*
 * Applies all measures that the kernel and the process's rights allow; one that fails is logged and
 * the rest is applied. Afterwards the process opens no files, makes no connections, starts nothing,
 * and cannot undo any of it. A system call that is not on the list in confine.c terminates it, with
 * one line in the log (GATEWAY_FORBIDDEN). Clears the parent-death signal if the user changes.
 */
void confine_apply(const struct confinement *what);
