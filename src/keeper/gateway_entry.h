/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of the gateway's program, which gets these descriptors and nothing else, not even an
 * environment. The keeper's side is programs.h.
 */
#pragma once

#include "config/config.h"
#include "obs/process_usage.h"
#include "router/seal.h"

/* 0 and 1 are the null device. */
enum gateway_descriptor {
	GATEWAY_LOG = 2,    /* a pipe to the keeper: records.h */
	GATEWAY_KEEPER = 3, /* protocol: io/ipc.h */
	GATEWAY_CONFIG = 4, /* a memory file for config_read_checked */
	GATEWAY_DENY = 5,   /* a memory file: session/deny_list.h */
	GATEWAY_SEAL =
		/* A memory file: a key for router/seal.h, the same for all gateways of a keeper. */
	6,
	GATEWAY_SERVERS = 7,   /* a memory file: the keeper's number for each server */
	GATEWAY_AUDIT = 8,     /* a pipe to the keeper: records.h */
	GATEWAY_PINS = 9,      /* a memory file: process/pin_memory.h */
	GATEWAY_SESSIONS = 10, /* a memory file: router/kept_sessions.h */
	GATEWAY_PIPES = 11,    /* a memory file: process/spawn.h */
	GATEWAY_STREAMS = 12,  /* a memory file: session/stream_log.h */
	/*
	 * In the order of config->listen, then of enum listener_more; closed where there is none.
	 */
	GATEWAY_LISTENERS = 13,
};

enum listener_more { LISTENER_ADMIN, LISTENER_METRICS, LISTENER_PAGE, LISTENERS_MORE };

struct gateway_entry {
	struct config *config; /* free with config_free */
	/* config->listen_count + LISTENERS_MORE, non-blocking; -1: none. Freed by the caller. */
	int *listeners;
	/* The keeper's number for each server, below SERVERS_MAX; freed by the caller. */
	uint32_t *numbers;
	int landlock; /* the kernel's version of it, which cannot be queried later */
	struct process_views views;
	size_t audit_bytes;                     /* capacity of the audit pipe; 0: no audit */
	unsigned char seal_key[SEAL_KEY_BYTES]; /* to be overwritten once it has been copied */
};

/*
 * Reads the configuration, sets up log and signals, drops all rights that the gateway does not
 * need, and returns what the caller has to serve. Exits if the process was not started by a keeper
 * or the configuration is invalid.
 */
void gateway_entry(struct gateway_entry *entry_r);
/*
 * Reads such a memory file for this many servers, and closes it. The caller frees the result; NULL:
 * invalid.
 */
uint32_t *gateway_servers_read(int fd, size_t count) must_check;
