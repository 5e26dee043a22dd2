/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the gateway's program begins: with these descriptors and nothing else, not even an environment. The keeper's end
 * of it is gateway_process.h.
 */
#ifndef MCPGATED_KEEPER_GATEWAY_ENTRY_H
#define MCPGATED_KEEPER_GATEWAY_ENTRY_H

#include "config/config.h"
#include "obs/process_usage.h"
#include "process/era.h"
#include "router/seal.h"

/* 0 and 1 are the null device. */
enum gateway_descriptor {
	GATEWAY_LOG = 2,    /* a pipe to the keeper: log_relay.h */
	GATEWAY_KEEPER = 3, /* speaks io/ipc.h */
	GATEWAY_CONFIG = 4, /* a memory file: what config_read_checked takes */
	GATEWAY_DENY = 5,   /* a memory file: session/deny_snapshot.h */
	GATEWAY_SEAL =
		6, /* a memory file: a key for router/seal.h, the same for all gateways of a keeper */
	GATEWAY_SERVERS = 7, /* a memory file: a struct gateway_server for each server */
	GATEWAY_AUDIT = 8,   /* a pipe to the keeper: audit_writer.h */
	GATEWAY_PINS = 9,    /* a memory file: process/pin_memory.h */
	/* In the order of config->listen, then those of enum listener_more; closed where there is none. */
	GATEWAY_LISTENERS = 10,
};

enum listener_more { LISTENER_ADMIN, LISTENER_METRICS, LISTENER_PAGE, LISTENERS_MORE };

/* What a gateway is told of each server of its configuration, besides that. */
struct gateway_server {
	uint32_t number; /* by which the keeper knows it: below SERVERS_MAX */
	struct era_memory era;
};

struct gateway_entry {
	struct config *config; /* free with config_free */
	int *listeners; /* config->listen_count and LISTENERS_MORE, non-blocking; -1: there is none. To be freed */
	struct gateway_server *servers; /* for each of the configuration. To be freed */
	int landlock; /* the version that the kernel has, which cannot be asked afterwards */
	struct process_views views;
	size_t audit_bytes; /* that the pipe of the audit holds; 0: there is none */
	unsigned char seal_key[SEAL_KEY_BYTES]; /* to be overwritten when it has been taken over */
};

/*
 * Reads the configuration, sets up log and signals, gives up all rights that the gateway does not need, and tells what
 * the caller is to serve. Exits if the process was not started by a keeper, or if the configuration is none.
 */
void gateway_entry(struct gateway_entry *entry_r);
/* What is in such a memory file, for so many servers; closes it. The caller frees it; NULL: it is something else. */
struct gateway_server *gateway_servers_read(int fd, size_t count) must_check;

#endif
