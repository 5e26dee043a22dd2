/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of mcpgated-fetch, which gets these descriptors and nothing else, not even an
 * environment. The keeper's side is fetcher_process.h.
 */
#ifndef MCPGATED_KEEPER_FETCHER_ENTRY_H
#define MCPGATED_KEEPER_FETCHER_ENTRY_H

#include "config/config.h"

/* 0 and 1 are the null device. */
enum fetcher_descriptor {
	FETCHER_LOG = 2,     /* a pipe to the keeper: log_relay.h */
	FETCHER_GATEWAY = 3, /* protocol: io/ipc.h */
	FETCHER_CONFIG = 4,  /* a memory file written by config_print_for_fetcher */
	FETCHER_DESCRIPTORS
};

/*
 * Reads the configuration and the CA certificates, and drops all rights except for resolving names
 * and connecting. Returns the configuration, which is freed with config_free. Exits if the process
 * was not started by a keeper.
 */
struct config *fetcher_entry(void);

#endif
