/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requestState and the task ids given to modern clients: what the gateway must know when they
 * are brought back, encrypted and authenticated, so that the gateway need not store it and nobody
 * else can have made it.
 *
 *	"g2." kid "." base64url(salt, nonce, AEAD(plaintext))
 *
 * The AEAD is AES-256-GCM. Each text has its own key: HMAC-SHA-256(key, label, salt), with 96
 * random bits of salt besides the 96 random bits of nonce. Two texts share both key and nonce only
 * if 192 random bits are equal, which among 2^64 texts of one key has a probability of 2^-65; so
 * nobody has to count how many texts a key has sealed. The associated data is "g2." and the name of
 * the server.
 *
 * Opens no files: the caller provides the keys. bridging.md §2.6
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/digest.h"

struct identity;

#define SEAL_KEY_BYTES 32
#define SEAL_KID_CHARS 8
#define SEAL_KEPT_MAX 2             /* the current key and the previous one */
#define SEAL_CALL_BYTES 16          /* random */
#define SEAL_TEXT_MAX (1024 * 1024) /* of seal.text */

struct seal_key {
	unsigned char bytes[SEAL_KEY_BYTES];
	char kid[SEAL_KID_CHARS]; /* derived from the key, without revealing it */
};

/* The keys that open texts and seal new ones. */
struct seal_keys {
	struct seal_key process; /* for SEAL_PARKED; ends with the process, as parked calls do */
	struct seal_key kept[SEAL_KEPT_MAX]; /* for the other kinds; the first one seals */
	size_t kept_count;
};

enum seal_kind {
	SEAL_PARKED = 1, /* a parked call waits: parked_call.h */
	/* `text` is the server's own requestState, as it wrote it; empty: it gave none. */
	SEAL_WRAPPED = 2,
	/*
	 * To be repeated after URL elicitations; `text` is what is wanted (url_pending.h).
	 * bridging.md §2.3.7
	 */
	SEAL_REPLAY = 3,
	/*
	 * A task's id (running_tasks.h); `text` is the server's own, as written. Sealing is
	 * deterministic.
	 */
	SEAL_TASK = 4,
	/* What nodes of a cluster tell each other (cluster/cluster.h). */
	SEAL_COUNTS = 5,
};

struct seal {
	enum seal_kind kind;
	uint32_t round;
	uint64_t child; /* the one that asked (process/spawn.h); it may be gone */
	unsigned char call[SEAL_CALL_BYTES]; /* for SEAL_PARKED: which call */
	uint64_t issued_at_s;                /* wall clock */
	uint64_t expires_at_s;               /* UINT64_MAX: never */
	struct slice text; /* at most SEAL_TEXT_MAX; on opening, points into the caller's buf */
};

/* The server, caller and request, which must be the same on the retry. */
struct seal_binding {
	struct slice server;
	const struct identity *caller;
	/* Of the request, including its method; for a task id, of the word "task". */
	const struct digest *digest;
};

/*
 * Creates the keys of a process. `kept`: `count` keys of SEAL_KEY_BYTES, concatenated, current
 * first, that other processes share. count 0: what would be sealed with them ends with the process.
 */
void seal_keys_init(struct seal_keys *keys, const unsigned char *kept, size_t count);
/* Overwrites the keys. */
void seal_keys_fini(struct seal_keys *keys);

/* Appends the sealed text, a JSON string. */
void seal_append(struct buf *out, const struct seal_keys *keys, const struct seal_binding *binding,
		 const struct seal *seal);
/*
 * Opens what a client sent. -1: it is not ours, for another caller or request, or too old. The
 * client must not learn which; err is only for the log.
 *
 * plain   the buffer that `seal_r` points into; empty at first; the caller frees it in either case
 */
int seal_open(const struct seal_keys *keys, const struct seal_binding *binding, struct json sealed,
	      uint64_t now_s, struct buf *plain, struct seal *seal_r, struct error *err) must_check;

/* ---- the requestState of a request ---- */

/*
 * The requestState that modern clients get and bring back on a retry: sealed for this server,
 * caller and request (seal.h). MOD-MRTR-03, bridging.md §2.4, §2.6.
 */

/* park_ttl; the same for a state that wraps a server's own. bridging.md §7 */
#define REQUEST_STATE_TTL_MS (10 * 60 * 1000)

struct call;
struct client;

/* Appends, as a JSON string, the state of a parked call in this round. */
void request_state_append_parked(struct buf *out, const struct client *client,
				 const struct digest *digest,
				 const unsigned char id[SEAL_CALL_BYTES], uint32_t round);
/*
 * Appends, as a JSON string, the state for a modern server's result (JSON text) of this call, whose
 * digest is set; it contains the server's own state. False: the result asks for something it may
 * not, and nothing was appended. MOD-MRTR-02
 */
bool request_state_append_wrapped(struct buf *out, const struct call *call, struct slice result);
/*
 * Appends, as a JSON string, the state of a call, whose digest is set, that is to be repeated once
 * the client has opened the URLs that `child` wants (url_pending.h).
 */
void request_state_append_replay(struct buf *out, const struct call *call, uint64_t child,
				 struct slice wanted);
/*
 * Whether a modern server may ask this client all of these members of inputRequests (JSON text).
 * MOD-MRTR-02
 */
bool request_state_may_ask(const struct client *client, struct slice requests);
/*
 * Opens a state that a client has brought, as seal_open. -1: it must not be used; the reason was
 * logged.
 */
int request_state_open(const struct client *client, const struct digest *digest, struct json sealed,
		       struct buf *plain, struct seal *seal_r) must_check;
