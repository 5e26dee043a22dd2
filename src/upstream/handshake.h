/* SPDX-License-Identifier: Apache-2.0 */
/* initialize, as the legacy era has it: our request, and what the server agrees to. BACK-INIT-01, -02. */
#ifndef MCPGATED_UPSTREAM_HANDSHAKE_H
#define MCPGATED_UPSTREAM_HANDSHAKE_H

#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

struct revision;
struct upstream;

/* Sends the initialize request of its setup, with this id. -1: that is no valid request. */
int handshake_send(struct upstream *upstream, uint64_t id) must_check;
/* The revision of an InitializeResult, JSON text; NULL: nobody knows it. */
const struct revision *handshake_read_revision(struct slice result);
/* Tells the server that the session may begin. BACK-INIT-01 */
void handshake_complete(struct upstream *upstream);

#endif
