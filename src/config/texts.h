/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of texts, as they stand in the configuration. See config.h. */
#ifndef MCPGATED_CONFIG_TEXTS_H
#define MCPGATED_CONFIG_TEXTS_H

#include <stddef.h>

struct config_texts {
	char **items; /* terminated strings */
	size_t count;
};

/* Lists by name. */
struct config_list {
	char *name;
	struct config_texts texts;
};

struct config_lists {
	struct config_list *items;
	size_t count;
};

#endif
