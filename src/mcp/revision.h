/* SPDX-License-Identifier: Apache-2.0 */
/* The revisions of MCP and their differences. Code queries a row instead of comparing names. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * ---- era ----
 *
 * The eras of MCP: how the conversation with a server begins.
 */

enum era {
	ERA_UNKNOWN, /* configured as "auto": still to be probed */
	ERA_LEGACY,  /* begins with initialize */
	ERA_MODERN,  /* each request is self-contained: since 2026-07-28 */
};

/* The name in the configuration; "unknown" for what is called "auto" there. */
const char *era_name(enum era era);

/*
 * What a revision can express that earlier ones cannot, where this needs handling. bridging.md §3.
 */
enum revision_feature {
	REVISION_AUDIO = 1,       /* audio content blocks: since 2025-03-26 */
	REVISION_LINKS = 2,       /* content blocks that link to a resource: since 2025-06-18 */
	REVISION_ELICITATION = 4, /* since 2025-06-18 */
	REVISION_CONTEXT = 8,     /* context of a completion: since 2025-06-18 */
	/*
	 * elicitation by URL, more kinds of forms, tools and lists of content in sampling: since
	 * 2025-11-25
	 */
	REVISION_MODES = 16,
	REVISION_TASKS = 32, /* 2025-11-25 only */
};

struct revision {
	struct slice name;
	unsigned int features; /* bits of enum revision_feature */
	bool has_batches;      /* JSON-RPC arrays: 2025-03-26 only */
	bool has_priming;      /* event streams begin with an event without data: 2025-11-25 only */
	bool is_modern;        /* self-contained requests, no handshake: since 2026-07-28 */
};

/* The only modern revision so far. */
extern const struct revision revision_modern;

/* NULL if `name` is not a known revision with a handshake. */
const struct revision *revision_find(struct slice name);
/* Whether `name` is a known modern revision. */
bool revision_is_modern(struct slice name);
/*
 * The features that a peer speaking `from` may use and one speaking `to` does not know; 0 if there
 * are none or if `from` is NULL because nothing is negotiated yet.
 */
unsigned int revision_lacks(const struct revision *to, const struct revision *from);
/*
 * The newest revision with a handshake, offered to clients that request an unknown one.
 * FRONT-INIT-01.
 */
const struct revision *revision_newest(void);
/* Appends the names of all served revisions as a JSON array, the modern ones first. MOD-DISC-02 */
void revision_append_served(struct buf *out);
/*
 * Appends {"supported":[…],"requested":requested}; requested is JSON text. With `is_legacy_claim`,
 * the client claimed a revision that has a handshake outside of one, and only the modern ones are
 * listed. FRONT-VER-02, FRONT-ERA-05
 */
void revision_append_supported(struct buf *out, struct slice requested, bool is_legacy_claim);
