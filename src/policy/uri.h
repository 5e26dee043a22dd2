/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URIs of resources, where access depends on them: servers decode and resolve them in different
 * ways, and a rule must hold for all of them. RFC 3986 §6.2; SEC-50.
 */
#ifndef MCPGATED_POLICY_URI_H
#define MCPGATED_POLICY_URI_H

#include "base/buf.h"
#include "base/slice.h"

#define URI_BYTES_MAX (8 * 1024)

/*
 * Appends the folded form of a URI, which is the same for all spellings: percent-encoding decoded,
 * also if it was applied twice; `\` as `/`; scheme and host in lower case; repeated slashes
 * collapsed (so a host becomes the first segment); `.` and `..` resolved; localhost of file URIs
 * omitted; file URIs and hosts of web URIs as WHATWG URL parses them, with any number of slashes.
 * Also for patterns.
 *
 * Returns NULL, or the reason why it is not a URI that rules can be applied to, to follow "the URI
 * ..."; then nothing is appended.
 */
const char *uri_fold(struct slice uri, struct buf *folded) must_check;

#endif
