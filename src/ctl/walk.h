/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a client's way to an MCP endpoint share: see oauth.h. */
#ifndef MCPGATED_CTL_WALK_H
#define MCPGATED_CTL_WALK_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "ctl/web.h"

struct walk {
	const char *url;
	const char *token; /* or NULL */
	struct slice ca;   /* as web_question has it */
	bool is_loopback;  /* of the URL: then what it leads to may be as well */
	const char *ill;   /* the first thing that is wrong, or NULL; see finding.h */
	bool is_static;    /* no OAuth is offered: tokens are given by hand */
	bool is_by_hand;   /* some authorization server registers nobody by itself */
	char *resource;    /* what tokens must be for; NULL: not known */
	char *scope;       /* what is asked for; NULL: nothing is said */
	json_t *issuers;   /* array of strings, or NULL */
	json_t *keys;      /* by issuer: the documents that could be read */
};

/*
 * GETs a JSON document. Returns the caller's reference; or NULL, and appends the cause to `why`; *is_down_r: nobody
 * has answered, so other addresses there need not be tried.
 */
json_t *walk_get(const struct walk *walk, const char *url, struct buf *why, bool *is_down_r);

/* The address number `at`, from 0, at which the document of `text` may be; the caller's; NULL after the last. */
typedef char *walk_address_fn(const char *text, size_t at);
/* As walk_get, at one address after the other; *address_r is that of the last, the caller's. */
json_t *walk_get_first(const struct walk *walk, walk_address_fn *address_of, const char *text,
		       struct buf *why, char **address_r);

/* Appends the texts in an array, with a space between two. */
void walk_append_texts(struct buf *out, const json_t *array);

/* Asks initialize, with the token or without. The answer is the caller's. */
void walk_initialize(const struct walk *walk, const char *token, struct web_answer *answer_r);
/* The result of initialize in the answer's body, JSON or events; the caller's; NULL if there is none. */
json_t *walk_result(const struct web_answer *answer);
/* Prints that it is good: which server answered, by the `result` of initialize; `before` begins the text. */
void walk_print_server(const char *what, const char *before, const json_t *result);

/* The steps of the other files. */
void walk_issuer(struct walk *walk, const char *issuer);
void walk_token(struct walk *walk);

#endif
