/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URIs of resources where they decide who may read them: servers decode and resolve them in their own ways, and a rule
 * has to hold for whatever they make of one. RFC 3986 §6.2; SEC-50.
 */
#ifndef MCPGATED_POLICY_URI_H
#define MCPGATED_POLICY_URI_H

#include "base/buf.h"
#include "base/slice.h"

#define URI_BYTES_MAX (8 * 1024)

/*
 * Appends the form in which a URI is the same however it is written: percent-encodings decoded, also of what was encoded
 * twice, `\` as `/`, scheme and host in lower case, one slash for several (so that a host is the first segment), `.` and
 * `..` resolved, localhost of files left out; files and the web's hosts as WHATWG URL reads them, whatever slashes are there.
 * For patterns, too.
 *
 * Returns NULL, or why it is no URI that a rule can be asked about, for "the URI ...": then nothing is appended.
 */
const char *uri_fold(struct slice uri, struct buf *folded) must_check;

#endif
