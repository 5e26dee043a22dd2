/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the configuration in use with the one that a reload has read. */
#pragma once

#include "config/config.h"

enum config_difference {
	CONFIG_SAME,
	CONFIG_OTHER_RULES,     /* which also apply to running processes */
	CONFIG_OTHER_PROCESSES, /* which takes new processes */
};

/* Compares server i of one configuration with server j of another. They must have the same name. */
enum config_difference config_compare_servers(const struct config *one, size_t i,
					      const struct config *other, size_t j);
/* The digest, in hexadecimal digits, of what processes of the server are made of. */
#define CONFIG_DIGEST_BYTES 64
void config_digest_processes(const struct config_server *server,
			     char hex_r[CONFIG_DIGEST_BYTES + 1]);
/* Whether the fetcher would get the same. */
bool config_has_same_issuers(const struct config *one, const struct config *other);

/*
 * Adds a warning if another issuer comes first: clients register with the first one that they are
 * told of. AUTH-ISS-04
 */
void config_check_first_issuer(const struct config *now, const struct config *next,
			       struct config_problems *warnings);

/* Adds a warning if callers need no token any more. SEC-61 */
void config_check_tokens_needed(const struct config *now, const struct config *next,
				struct config_problems *warnings);

/* Whether all of `listen` is the same, including the names of TLS files. */
bool config_has_same_listen(const struct config *one, const struct config *other);
/* Whether listener i of one configuration and listener j of the other are the same. */
bool config_is_same_listener(const struct config *one, size_t i, const struct config *other,
			     size_t j);
/*
 * For each listener of `next`: the index of the listener of `now` with the same address, whose
 * socket it keeps; -1: none. If several have the same address (port 0, systemd:NAME), each is used
 * once, in order.
 */
void config_match_listeners(const struct config *now, const struct config *next, int32_t *kept_r);

/* Whether log.target, or audit.to, is the same. */
bool config_has_same_log(const struct config *one, const struct config *other);
bool config_has_same_audit(const struct config *one, const struct config *other);

/* Adds a warning for each key that differs but that a reload cannot change. */
void config_check_fixed(struct config *now, struct config *next, struct config_problems *warnings);
/*
 * Swaps the texts of those keys: `next`, which is used after `now`, gets the very strings of `now`,
 * which others may point to. A second call undoes it.
 */
void config_keep_fixed(struct config *now, struct config *next);
