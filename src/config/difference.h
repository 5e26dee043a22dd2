/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the configuration that is in use and the one that a reload has read. */
#ifndef MCPGATED_CONFIG_DIFFERENCE_H
#define MCPGATED_CONFIG_DIFFERENCE_H

#include "config/config.h"

enum config_difference {
	CONFIG_SAME,
	CONFIG_OTHER_RULES,     /* that hold for processes which run as well */
	CONFIG_OTHER_PROCESSES, /* it needs new ones */
};

/* Server number i of one configuration and number j of another, which have the same name. */
enum config_difference config_compare_servers(const struct config *one, size_t i,
					      const struct config *other, size_t j);
/* The number of the server with this name; server_count: there is none. */
size_t config_find_server(const struct config *config, const char *name);
/* Whether the program that fetches would get the same. */
bool config_has_same_issuers(const struct config *one, const struct config *other);

/* Whether all of `listen` says the same, with the names of the files of TLS. */
bool config_has_same_listen(const struct config *one, const struct config *other);
/* Whether number i of one configuration's listeners and number j of another's say the same. */
bool config_is_same_listener(const struct config *one, size_t i, const struct config *other,
			     size_t j);
/*
 * For each listener of `next` the number of the one in `now` that is at the same address, and so has its socket; -1: there is
 * none. Of several at one address (port 0, systemd:NAME) each is taken once, in order.
 */
void config_match_listeners(const struct config *now, const struct config *next, int32_t *kept_r);

/* Whether log.target, or audit.to, is the same. */
bool config_has_same_log(const struct config *one, const struct config *other);
bool config_has_same_audit(const struct config *one, const struct config *other);

/* What a reload cannot change is told: each key that was to change is added to `warnings`. */
void config_check_fixed(struct config *now, struct config *next, struct config_problems *warnings);
/*
 * `next`, which is used after `now`, gets the very texts of those keys, which others may point to, and `now` those of `next`. Once
 * more, and both are as they were.
 */
void config_keep_fixed(struct config *now, struct config *next);

#endif
