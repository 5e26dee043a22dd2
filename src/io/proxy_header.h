/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PROXY protocol, versions 1 and 2: the few bytes with which a proxy begins a connection, and says
 * whose it is. Strict: what is not exactly of that form is refused.
 */
#ifndef MCPGATED_IO_PROXY_HEADER_H
#define MCPGATED_IO_PROXY_HEADER_H

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/peer.h"

/* No header may be longer. */
#define PROXY_HEADER_BYTES_MAX 4096

/*
 * `in` is what has come so far. Returns the length of the header, 0 if it goes on behind `in` (then all
 * of `in` belongs to it), or -1. *client_r is set if the header names a client; the proxy may also
 * speak for itself (its checks), or for a client without an internet address.
 */
long proxy_header_parse(struct slice in, struct peer *client_r, struct error *err) must_check;

#endif
