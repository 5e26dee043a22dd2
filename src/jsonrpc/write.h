/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages that the gateway itself creates. Each function appends one compact JSON text without
 * a line end.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

/* ---- bytes with a count of references ---- */

/* A JSON-RPC message: immutable bytes, reference-counted; of one that was read, what was found. */

struct envelope; /* jsonrpc/scan */

struct msg {
	unsigned int refs;
	struct slice text;
	const struct envelope *env; /* of msg_new_scanned: slices of text; else NULL */
	char *owned; /* the allocation that contains text, unless it follows this struct */
};

/* Copies `text`. The caller owns one reference. */
struct msg *msg_new(struct slice text);
/* Copies the message and what has been found in it, so that whoever keeps it need not scan it again. Likewise. */
struct msg *msg_new_scanned(const struct envelope *env);
/* Takes over the bytes of buf, which is empty afterwards. The caller owns one reference. */
struct msg *msg_new_take(struct buf *buf);
struct msg *msg_ref(struct msg *msg);
/*
 * Accepts a pointer to NULL; sets the pointer to NULL. Frees the message with the last reference.
 */
void msg_unref(struct msg **msg);

/* ---- splicing ---- */

/*
 * Rewrites a message with some spans replaced; everything else stays byte for byte. bridging.md I6;
 * RPC-04.
 */

struct splice_edit {
	struct slice span; /* within the message */
	struct slice with; /* the replacement; may be empty */
};

enum splice_flags {
	SPLICE_ONE_LINE = 1, /* raw CR and LF become spaces (they can only occur between tokens) */
	SPLICE_ESCAPE_SEPARATORS = 2, /* raw U+0085, U+2028, U+2029 become \u escapes */
};

/*
 * Appends `text` to `out` with `count` edits applied, which must be sorted by their spans and must
 * not overlap. `text` must have passed scan_envelope. The flags also apply to the `with` of the
 * edits, so they hold for the whole output. BACK-FRAME-01.
 */
void splice_append(struct buf *out, struct slice text, const struct splice_edit *edits,
		   size_t count, unsigned int flags);

/*
 * Appends a request with these members first in its params._meta, which is made if it is not there; in place of what is no object.
 * The message must have none of these names.
 */
void write_with_meta(struct buf *out, const struct envelope *env, const char *members);

/* ---- objects and lists that are open in `out` ---- */

/* A comma, unless `out` is empty or ends where the object or list begins. */
void write_comma(struct buf *out);
/* Begins the next member; the name is as written, without its quotes. */
void write_name(struct buf *out, struct slice name);
/* The next member; both as written. */
void write_member(struct buf *out, struct slice name, struct slice value);
/* The same, with name and value as splice_append writes them with both flags: for servers. */
void splice_member(struct buf *out, struct slice name, struct slice value);

/* ---- messages ---- */

/*
 * A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD; controls and U+2028/2029 are
 * escaped.
 */
void write_string(struct buf *out, struct slice text);

/*
 * An error response. `id` is the id of the request as written; if empty, the member is omitted.
 * `data` is JSON text, or empty for none. requirements.md §0 ("omit id").
 */
void write_error(struct buf *out, struct slice id, int code, struct slice message,
		 struct slice data);

/* {"jsonrpc":"2.0","id":…,"result":…}; result is JSON text. */
void write_result(struct buf *out, struct slice id, struct slice result);

/* A notification or, with a nonempty id, a request. params is JSON text, or empty for none. */
void write_call(struct buf *out, struct slice id, struct slice method, struct slice params);
