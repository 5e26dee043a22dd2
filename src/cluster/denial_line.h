/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator has said about denied tokens (session/deny_list.h), as nodes of a cluster tell each
 * other: a line "VALUE<tab>FIELD" without its end, which cluster/store_service.h describes.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "session/deny_list.h"

/* Of a clock that is further ahead nothing is believed: nobody could ever say anything later. */
#define DENIAL_AHEAD_MS (24 * 3600 * UINT64_C(1000))

/* Appends the line of an order, and its end. False: no other node could read it; nothing is appended. */
bool denial_line_append(struct buf *out, const struct denial *denial);
/* Reads a line, whoever wrote it and however long it is; what *denial_r has is borrowed from it. False: it is none, or is not believed. */
bool denial_line_read(struct slice line, struct denial *denial_r);
