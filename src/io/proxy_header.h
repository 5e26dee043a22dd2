/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PROXY protocol, versions 1 and 2: a proxy begins each connection with a short header that
 * names the client. Strict: anything that deviates from the format is rejected.
 */
#pragma once

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/peer.h"

/* The longest header accepted. */
#define PROXY_HEADER_BYTES_MAX 4096

/*
 * Parses what was received so far. Returns the length of the header, 0 if it is incomplete (then
 * all of `in` belongs to it), or -1. Sets *client_r if the header names a client; a proxy may also
 * connect on its own behalf (health checks), or for a client without an internet address.
 */
long proxy_header_parse(struct slice in, struct peer *client_r, struct error *err) must_check;
