/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parsed command line of mcpgatectl, and what most commands do with it: ask the daemon, or
 * report an error.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "ctl/client.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define LINE_VARIABLES_MAX 256
#define DOCTOR_CLAIMS_MAX 16
#define LINE_OPTIONS_MAX 512

struct line {
	char socket[CLIENT_PATH_BYTES];
	bool is_another; /* the socket is the system's, since the user's own is not there */
	const char *file;
	bool has_file;   /* given explicitly */
	bool has_socket; /* likewise */
	const char *format;
	const char *name;
	const char *url;
	const char *token_file;
	const char *ca_file;
	const char *client;
	const char *views;  /* number of views for top; NULL: unlimited */
	const char *delay;  /* between views; NULL: not given */
	const char *ignore; /* kinds of problems, or what they are about, with commas; likewise */
	/* Claims of an imaginary caller, each NAME=VALUE. */
	struct doctor_claims {
		const char *items[DOCTOR_CLAIMS_MAX];
		size_t count;
	} claims;
	struct {
		const char *issuer;
		const char *sub;
		const char *client_id;
		const char *jti;
		const char *sid;
		const char *duration;
	} deny; /* NULL: not given */
	struct can_question {
		const char *claims; /* JSON */
		const char *token;
		const char *prompt;
		const char *resource;
	} can; /* likewise */
	const char *given
		[LINE_OPTIONS_MAX]; /* the long names of the options that are there, each time */
	size_t given_count;
	bool is_json;
	bool follows;
	bool all;
	bool wants_help;
	bool is_dry_run; /* these three: of adopt */
	bool undoes;
	bool wants_explanation;
	char **words; /* the command's name and its arguments */
	int count;
	char *const *command; /* after "--", or NULL */
	const char *env[LINE_VARIABLES_MAX];
	size_t env_count; /* further ones are rejected */
};

/* The path of a file below this user's home; $XDG_CONFIG_HOME is in the place of .config. The caller frees it. */
char *line_home_file(const char *name);
/* The path of this user's own file: $XDG_CONFIG_HOME/mcpgated/NAME, or in ~/.config. The caller frees it. */
char *line_own_file(const char *name);

/* A configuration; owned by the caller. NULL: what is wrong with it has been printed. */
struct config *line_load(const struct config_request *request);
/* Prints the text on stderr; returns EXIT_FAILED. */
int line_fail(const char *text);
/* The same for errors of the command line; returns EXIT_USAGE. */
int line_refuse_usage(const char *text);

extern const struct slice line_no_body;

/*
 * Takes target. Returns the object that the daemon answers, owned by the caller; or NULL: the error
 * has been printed. With --json the answer is printed unchanged.
 */
json_t *line_ask(const struct line *line, const char *method, char *target, struct slice body);
/* GETs events, and hands out the data of each, until the daemon ends them. Takes target. Returns the exit status. */
int line_follow(const struct line *line, char *target, void (*on_event)(struct slice data));
/* Takes the answer, or NULL. Returns the exit status. */
int line_finish(json_t *answer);
/* Takes target. Shows what line_ask returns, unless that is done with --json. Returns the exit status. */
int line_tell(const struct line *line, const char *method, char *target, struct slice body,
	      void (*show)(const json_t *answer));
/* The same of the report with the command's name. */
int line_report(const struct line *line, void (*show)(const json_t *report));
/*
 * Whether the word needs no encoding in the daemon's paths; any other word names nothing that
 * exists.
 */
bool line_is_plain(const char *word);
/* Whether the word is a URL, and no name. */
bool line_is_url(const char *word);
/* What --claims says; owned by the caller. NULL: it is no JSON object, and err says so. */
json_t *line_read_claims(const char *text, struct error *err) must_check;
#define LINE_TOKEN_BYTES 64
#define LINE_HASH_BYTES 65 /* SHA-256 in hexadecimal, and a NUL */

struct line_token {
	char text[LINE_TOKEN_BYTES];
	char hash[LINE_HASH_BYTES];
};
/* Makes a static token of 256 random bits. The caller wipes it. */
void line_make_token(struct line_token *token_r);
/* What a configuration has in place of a token, for instance: the SHA-256 of a text. */
void line_hash(struct slice text, char hash_r[LINE_HASH_BYTES]);
/* The token in a file, its only line; owned by the caller, which must wipe it. NULL: err says why. */
char *line_read_token(const char *path, struct error *err) must_check;
