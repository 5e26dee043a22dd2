/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks for, in 32 bytes: the SHA-256 of {"arguments":…,"method":…,"name":…,"uri":…} in the form of
 * jsonrpc/canonical.h, without the members that the request does not have. Whatever else stands in the request is left
 * out, above all _meta, inputResponses and requestState, which change when a client tries again. bridging.md §2.6
 */
#ifndef MCPGATED_ROUTER_DIGEST_H
#define MCPGATED_ROUTER_DIGEST_H

#include "base/slice.h"

struct envelope;

#define DIGEST_BYTES 32

struct digest {
	unsigned char bytes[DIGEST_BYTES];
};

/* Of a request that scan_envelope has read, not as SCAN_LENIENT. */
void digest_request(const struct envelope *env, struct digest *digest_r);
/* SHA-256 of any bytes. */
void digest_bytes(struct slice bytes, struct digest *digest_r);

#endif
