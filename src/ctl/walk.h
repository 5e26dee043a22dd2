/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the steps of a client's way to an MCP endpoint: see oauth.h. */
#ifndef MCPGATED_CTL_WALK_H
#define MCPGATED_CTL_WALK_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "ctl/web.h"

struct walk {
	const char *url;
	const char *token; /* or NULL */
	struct slice ca;   /* as in web_question */
	bool is_loopback;  /* the URL is loopback, so what it leads to may be as well */
	const char *ill;   /* the first failure, or NULL; see finding.h */
	bool is_static;    /* no OAuth is offered; tokens are distributed by hand */
	bool is_by_hand;   /* some authorization server does not register clients by itself */
	char *resource;    /* the resource that tokens must be for; NULL: not known */
	char *scope;       /* to be requested; NULL: not stated */
	json_t *issuers;   /* array of strings, or NULL */
	json_t *keys;      /* by issuer: those that could be read */
};

/*
 * GETs a JSON document. Returns a reference owned by the caller; or NULL, and appends the cause to
 * `why`. *is_down_r: nobody answered, so there is no point in trying other addresses there.
 */
json_t *walk_get(const struct walk *walk, const char *url, struct buf *why, bool *is_down_r);

/*
 * Candidate number `at`, from 0, for the address of the document that belongs to `text`; owned by
 * the caller. NULL after the last.
 */
typedef char *walk_address_fn(const char *text, size_t at);
/*
 * As walk_get, trying one address after the other; *address_r is the last one tried, owned by the
 * caller.
 */
json_t *walk_get_first(const struct walk *walk, walk_address_fn *address_of, const char *text,
		       struct buf *why, char **address_r);

/* Appends the texts of an array, separated by spaces. */
void walk_append_texts(struct buf *out, const json_t *array);

/* Sends initialize, with the token or without. The caller owns the answer. */
void walk_initialize(const struct walk *walk, const char *token, struct web_answer *answer_r);
/*
 * The result of initialize in the answer's body, JSON or events; owned by the caller. NULL: there
 * is none.
 */
json_t *walk_result(const struct web_answer *answer);
/*
 * Prints an ok finding that says which server answered, from the `result` of initialize; the text
 * begins with `before`.
 */
void walk_print_server(const char *what, const char *before, const json_t *result);

/* The steps in other files. */
void walk_issuer(struct walk *walk, const char *issuer);
void walk_token(struct walk *walk);

#endif
