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

/*
 * What a reload cannot change is told: listeners are added to `problems`, for what a listener is for depends on the rest
 * (auth), and one cannot be had without the other; of the others each key that was to change is added to `warnings`.
 */
void config_check_fixed(struct config *now, struct config *next, struct config_problems *problems,
			struct config_problems *warnings);
/*
 * `next`, which is used after `now`, gets the very texts of those keys, which others may point to, and `now` those of `next`; all of
 * `audit` where `audit.to` differs. Once more, and both are as they were.
 */
void config_keep_fixed(struct config *now, struct config *next);

#endif
