/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requestState, and the ids of tasks, that modern clients are given: what the gateway has to know when they bring them
 * back, encrypted and authenticated, so that it need not be kept and nobody else can have made it.
 *
 *	"g1." kid "." base64url(salt, nonce, AEAD(plaintext))
 *
 * The AEAD is AES-256-GCM. Its key is made for each text: HMAC-SHA-256(key, label, salt), with 96 random bits of salt
 * beside the 96 random bits of nonce. For a text to share both key and nonce with another one, 192 random bits must
 * be equal, which among 2^64 texts of one key happens with a probability of 2^-65; so nobody has to count how many a
 * key has sealed. What is authenticated besides: "g1." and the name of the server.
 *
 * Opens no files: the caller has the keys. bridging.md §2.6
 */
#ifndef MCPGATED_ROUTER_SEAL_H
#define MCPGATED_ROUTER_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "router/digest.h"

struct identity;
struct json;

#define SEAL_KEY_BYTES 32
#define SEAL_KID_CHARS 8
#define SEAL_KEPT_MAX 2             /* the current key and the one before */
#define SEAL_CALL_BYTES 16          /* random */
#define SEAL_TEXT_MAX (1024 * 1024) /* of what a seal holds besides its fields */

struct seal_key {
	unsigned char bytes[SEAL_KEY_BYTES];
	char kid[SEAL_KID_CHARS]; /* follows from the key, and does not tell it */
};

/* What opens texts, and seals new ones. */
struct seal_keys {
	uint64_t instance;       /* this process: child numbers are its own */
	struct seal_key process; /* ends with the process, as what SEAL_PARKED refers to does */
	struct seal_key kept[SEAL_KEPT_MAX]; /* for the other kinds; the first one seals */
	size_t kept_count;
};

enum seal_kind {
	SEAL_PARKED = 1, /* a parked call waits: parked_call.h */
	/* `text` is the server's own requestState, as it wrote it; empty: it gave none. */
	SEAL_WRAPPED = 2,
	/* To be run again after URL elicitations; `text` is what is wanted (url_elicitation.h). bridging.md §2.3.7 */
	SEAL_REPLAY = 3,
	/* A task's id (task_id.h); `text` is the server's own, as it wrote it. The same is sealed the same way each time. */
	SEAL_TASK = 4,
};

struct seal {
	enum seal_kind kind;
	uint32_t round;
	uint64_t child;                      /* the one that asked: cid */
	bool is_of_this_process;             /* when opened: else `child` says nothing */
	unsigned char call[SEAL_CALL_BYTES]; /* SEAL_PARKED: which one */
	uint64_t issued_at_s;                /* wall clock */
	uint64_t expires_at_s;               /* UINT64_MAX: never */
	struct slice text; /* at most SEAL_TEXT_MAX; when opened, lies in the caller's buf */
};

/* Whose and what the request is: must be the same when the client tries again. */
struct seal_binding {
	struct slice server;
	const struct identity *caller;
	/* Of the request, its method included; for the id of a task: of the word "task". */
	const struct digest *digest;
};

/*
 * New keys for a process. `kept`: `count` keys of SEAL_KEY_BYTES, one after the other, current first, which other
 * processes have, too; 0: what would be sealed with them ends with the process.
 */
void seal_keys_init(struct seal_keys *keys, const unsigned char *kept, size_t count);
/* Overwrites them. */
void seal_keys_fini(struct seal_keys *keys);

/* Appends the sealed text, a JSON string. */
void seal_append(struct buf *out, const struct seal_keys *keys, const struct seal_binding *binding,
		 const struct seal *seal);
/*
 * Opens what a client sent. -1: it is not ours, not this caller's or not this request's, or too old; the client must not
 * learn which, err is for the log alone.
 *
 * plain   for what `seal_r` points into; empty at first, to be freed in either case
 */
int seal_open(const struct seal_keys *keys, const struct seal_binding *binding, struct json sealed,
	      uint64_t now_s, struct buf *plain, struct seal *seal_r, struct error *err) must_check;

#endif
