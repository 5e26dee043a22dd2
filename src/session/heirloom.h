/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The denials of a network process that has ended before it was asked to, for the one that takes its place: memory
 * that all of them share, from the process that starts them. What is in it was written by a process that may have
 * been somebody else's in the end, and is read with as much trust.
 */
#ifndef MCPGATED_SESSION_HEIRLOOM_H
#define MCPGATED_SESSION_HEIRLOOM_H

#include <stdbool.h>

#include "session/denials.h"

struct heirloom;

/* Before the first of the processes is forked. Takes memory as it is written. NULL: there is none to be had. */
struct heirloom *heirloom_new(void);
/* Writes down all entries. Accepts NULL. */
void heirloom_save(struct heirloom *heirloom, const struct denials *denials);
/*
 * Adds what the process before has written down, with the same numbers. False: there was none, or it left
 * something that is no such list, which is logged; then nothing has been added. Accepts NULL.
 */
bool heirloom_load(const struct heirloom *heirloom, struct denials *denials) must_check;

#endif
