/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The revisions of MCP and what differs between them. Code asks a row; nobody compares the names.
 */
#ifndef MCPGATED_MCP_REVISION_H
#define MCPGATED_MCP_REVISION_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* What a revision can say that the ones before could not, where that needs care. bridging.md §3. */
enum revision_feature {
	REVISION_AUDIO = 1,       /* content blocks of sound: from 2025-03-26 */
	REVISION_LINKS = 2,       /* content blocks that link to a resource: from 2025-06-18 */
	REVISION_ELICITATION = 4, /* from 2025-06-18 */
	REVISION_CONTEXT = 8,     /* of a completion: from 2025-06-18 */
	REVISION_MODES = 16,      /* elicitation by URL, more kinds of forms, tools and lists of
				      content in sampling: from 2025-11-25 */
	REVISION_TASKS = 32,      /* 2025-11-25 only */
};

struct revision {
	struct slice name;
	unsigned int features; /* of enum revision_feature */
	bool has_batches;      /* JSON-RPC arrays: 2025-03-26 only */
	bool has_priming;      /* event streams begin with an event without data: 2025-11-25 only */
	bool is_modern;        /* requests stand alone, there is no handshake: from 2026-07-28 */
};

/* The only one so far that is modern. */
extern const struct revision revision_modern;

/* NULL if `name` is no revision with a handshake that we know. */
const struct revision *revision_find(struct slice name);
/* Whether `name` is a revision that we know and do not serve: a modern one. FRONT-VER-06. */
bool revision_is_unserved(struct slice name);
/*
 * The features that a speaker of `from` may use and one of `to` does not know; 0 if there are none, or if
 * `from` is NULL: nothing was agreed on yet.
 */
unsigned int revision_lacks(const struct revision *to, const struct revision *from);
/* What is offered to clients that ask for something unknown. FRONT-INIT-01. */
const struct revision *revision_newest(void);
/* Appends {"supported":[…],"requested":requested}; requested is JSON text. FRONT-VER-02. */
void revision_append_supported(struct buf *out, struct slice requested);

#endif
