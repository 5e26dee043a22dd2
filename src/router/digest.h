/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks for, in 32 bytes: the SHA-256 of {"arguments":…,"method":…,"name":…,"uri":…}
 * in the form of jsonrpc/canonical.h, without the members that the request lacks. Everything else
 * is left out, above all _meta, inputResponses and requestState, which change on a retry.
 * bridging.md §2.6
 */
#pragma once

#include "base/slice.h"

struct buf;
struct envelope;
struct principal;

#define DIGEST_BYTES 32
#define DIGEST_TEXT 43 /* its length in base64url */

struct digest {
	unsigned char bytes[DIGEST_BYTES];
};

/* Of a request that scan_envelope has read, but not with SCAN_LENIENT. */
void digest_request(const struct envelope *env, struct digest *digest_r);
/* SHA-256 of any bytes. */
void digest_bytes(struct slice bytes, struct digest *digest_r);
/* Who it is: issuer, subject and client. */
void digest_principal(const struct principal *principal, struct digest *digest_r);
/* Appends it as a JSON string: base64url, DIGEST_TEXT characters. */
void digest_append(struct buf *out, const struct digest *digest);

/*
 * The digest of a request, computed when somebody asks for it: few calls ever need it. Until then up to
 * KEPT_DIGEST_TEXT_MAX bytes of what it is computed from are kept; the digest of a longer text is computed at once.
 */
#define KEPT_DIGEST_TEXT_MAX 1024
struct kept_digest;
/* `env` as digest_request takes it; not kept. Caller owns the result. */
struct kept_digest *kept_digest_new(const struct envelope *env);
/* Borrowed until kept_digest_free. */
const struct digest *kept_digest_get(struct kept_digest *kept);
/* Accepts a pointer to NULL; sets the pointer to NULL. */
void kept_digest_free(struct kept_digest **kept);
