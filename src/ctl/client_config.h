/* SPDX-License-Identifier: Apache-2.0 */
/* mcpgatectl client-config: the entry for a server of ours in a client's own file. */
#ifndef MCPGATED_CTL_CLIENT_CONFIG_H
#define MCPGATED_CTL_CLIENT_CONFIG_H

#include "base/check.h"
#include "base/error.h"
#include "ctl/line.h"

/* Where a server is, and what it requires of its clients. */
struct client_config_server {
	const char *name;
	const char *url;
	bool takes_token;  /* Authorization: Bearer */
	bool takes_login;  /* OAuth: the client asks its user */
	const char *token; /* NULL: the entry says where the client finds it */
};

/* The name of client number i; NULL: there are no more. */
const char *client_config_client(size_t i);

/*
 * The command: asks the daemon, or reads the configuration that -c names. Returns the exit status.
 */
int client_config_run(const struct line *line);

#endif
