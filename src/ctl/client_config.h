/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration files of clients say of a server of ours: one row for each client. And where that server is. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/check.h"
#include "ctl/line.h"

/* The entry for a server of ours in a client's own file. Asks the daemon, or reads what -c names. */
int client_config_run(const struct line *line);
/* The name of client number i; NULL: there are no more. */
const char *client_config_client(size_t i);
/* Where that client has the user's own servers, below his home; NULL: that file is not adopted. */
const char *client_config_own_file(size_t i);
/* Which texts of an entry that client puts in other ones for. */
enum client_variables {
	CLIENT_VARIABLES_OWN,    /* ${env:NAME} and the like; ${NAME} is none */
	CLIENT_VARIABLES_NONE,   /* ${ is a text like any other */
	CLIENT_VARIABLES_BRACES, /* ${NAME}, of the environment */
	CLIENT_VARIABLES_ALL,    /* ${NAME} and $NAME */
};
/* Of client number i, one whose file is adopted. */
enum client_variables client_config_variables(size_t i);
/* Whether that client reads this list (import.h) of its file. */
bool client_config_has_list(size_t i, const char *list);
/*
 * The entry of a server for that client's file, as JSON, with the token if there is one. For a client that starts its servers
 * itself, and with a token for a file that others can read too (is_open), one that starts connect. The caller owns it.
 */
json_t *client_config_entry(size_t i, const char *name, char *url, const char *token, bool is_open);
/* Where clients reach a server, and what the daemon asks of them (origin_auth_mode). */
struct server_place {
	char *url;
	char *auth;        /* NULL: a daemon that does not say */
	char *socket;      /* the unix socket at which it listens, too; NULL: none that is known */
	char *certificate; /* the file of its first one; NULL: none that is known */
};
/*
 * Of the server named by the first argument, from the daemon, or from the configuration if that is given. Returns the
 * exit status; what is wrong has been printed. In any case the caller calls server_place_fini.
 */
int server_place_find(const struct line *line, struct server_place *place_r) must_check;
void server_place_fini(struct server_place *place);
