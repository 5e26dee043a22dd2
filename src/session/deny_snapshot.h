/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The denials of a network process that has ended before it was asked to, for the one that takes its place: memory
 * that all of them share, from the process that starts them. What is in it was written by a process that may have
 * been somebody else's in the end, and is read with as much trust.
 */
#ifndef MCPGATED_SESSION_DENY_SNAPSHOT_H
#define MCPGATED_SESSION_DENY_SNAPSHOT_H

#include <stdbool.h>

#include "session/deny_list.h"

struct deny_snapshot;

/* Before the first of the processes is forked. Takes memory as it is written. NULL: there is none to be had. */
struct deny_snapshot *deny_snapshot_new(void);
/* Writes down all entries. Accepts NULL. */
void deny_snapshot_save(struct deny_snapshot *deny_snapshot, const struct deny_list *deny_list);
/*
 * Adds what the process before has written down, with the same numbers. False: there was none, or it left
 * something that is no such list, which is logged; then nothing has been added. Accepts NULL.
 */
bool deny_snapshot_load(const struct deny_snapshot *deny_snapshot, struct deny_list *deny_list)
	must_check;

#endif
