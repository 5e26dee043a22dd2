/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where a server is and with which token, and becomes mcpgated-remote (remote/remote.c), which is a client over HTTP and a stdio
 * server to whoever has started it. Nothing of the protocol is known here.
 */
#include "ctl/commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/url.h"
#include "base/mem.h"
#include "config/variables.h"
#include "ctl/client_config.h"
#include "keeper/programs.h"

#define PROGRAM "mcpgated-remote"

/* The header fields are its whole environment, which only this user can see; its arguments everybody can. */
static int become_client(const struct server_place *place, const char *ca, const char *token)
{
	char *fields[] = { token != NULL ? mem_printf("Authorization=Bearer %s", token) : NULL,
			   NULL };
	char *argv[] = { (char[]){ PROGRAM },
			 (char[]){ "--allow-private" },
			 (char[]){ "--for-client" },
			 place->url,
			 NULL,
			 NULL,
			 NULL };
	char **more = argv + 4;
	at_end(mem_free) char **paths = programs_find(PROGRAM);
	struct error err;

	CHECK(place->url[0] != '\0' && paths[0] != NULL);
	if (ca != NULL)
		*more++ = mem_printf("--ca=%s", ca);
	/* Root's client is another user as soon as it runs, and could not enter the folder. */
	if (place->socket != NULL && geteuid() != 0)
		*more++ = mem_printf("--socket=%s", place->socket);
	for (size_t i = 0; paths[i] != NULL; i++) {
		if (access(paths[i], X_OK) == 0)
			execve(paths[i], argv, fields);
	}
	error_set_errno(&err, "cannot start the program " PROGRAM);
	for (size_t i = 0; paths[i] != NULL; i++)
		free(paths[i]);
	while (--more >= argv + 4)
		free(*more);
	secret_free(&fields[0]);
	return line_fail(err.text);
}

/* For a URL no daemon is asked, and no token is sent but one that is given. */
static int connect_with(const struct line *line, const char *token)
{
	at_end(server_place_fini) struct server_place place = { .url = NULL };
	const char *ca = line->ca_file;
	struct url parts;
	int status = 0;

	if (line_is_url(line->words[1]) &&
	    (url_parse(slice_str(line->words[1]), &parts) < 0 ||
	     (!slice_is_equal_nocase(parts.scheme, SLICE_LIT("http")) &&
	      !slice_is_equal_nocase(parts.scheme, SLICE_LIT("https")))))
		status = line_refuse_usage("the URL is none of http or https");
	else if (line_is_url(line->words[1]))
		place.url = mem_strdup(line->words[1]);
	else
		status = server_place_find(line, &place);

	if (status == 0 && token == NULL && place.auth != NULL && strcmp(place.auth, "token") == 0)
		status = line_fail("the daemon asks for a token: use --token-file FILE");
	if (status == 0 && place.auth != NULL && strcmp(place.auth, "oauth") == 0 && token == NULL)
		status = line_fail(
			"the daemon asks for tokens of an issuer, which connect cannot get: "
			"use --token-file FILE");
	/* The daemon's own certificate, which --tls self has made, for instance. */
	if (ca == NULL && place.certificate != NULL && access(place.certificate, R_OK) == 0)
		ca = place.certificate;
	if (status == 0)
		status = become_client(&place, ca, token);
	return status;
}

int connect_run(const struct line *line)
{
	struct line own = *line;
	at_end(mem_free) char *file = line_own_file("mcpgated.yaml"),
			      *token_file = line_own_file("token");
	struct error err = { ERROR_NONE, "" };
	at_end(secret_free) char *token = NULL;
	int status;

	/* With a socket of systemd's there is no daemon to be asked before the first connection. */
	if (!line_is_url(line->words[1]) && !line->has_file && !line->has_socket &&
	    access(file, F_OK) == 0) {
		own.file = file;
		own.has_file = true;
	}
	if (line->token_file == NULL && own.file == file && access(token_file, F_OK) == 0)
		own.token_file = token_file;
	if (own.token_file != NULL && (token = line_read_token(own.token_file, &err)) == NULL)
		status = line_refuse_usage(err.text);
	else
		status = connect_with(&own, token);
	return status;
}
