/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The denials of a gateway process that failed, for the next one: a memory file that the keeper makes and all gateway
 * processes share. An attacker may have taken over the process that wrote it, so it is read like any input.
 */
#ifndef MCPGATED_SESSION_DENY_SNAPSHOT_H
#define MCPGATED_SESSION_DENY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "session/deny_list.h"

/* Of the keeper's memory file, zeros at first; only what is written costs memory. */
#define DENY_SNAPSHOT_FILE_BYTES ((size_t)48 * 1024 * 1024)

struct deny_snapshot;

/* Maps the file, for as long as the process runs. NULL: that was not possible. */
struct deny_snapshot *deny_snapshot_map(int fd);
/* Writes down all entries. Accepts NULL. */
void deny_snapshot_save(struct deny_snapshot *deny_snapshot, const struct deny_list *deny_list);
/*
 * Adds what the gateway before has saved, with the same numbers. False: nothing was saved, or it is not a
 * correct list, which is logged; then nothing has been added. Accepts NULL.
 */
bool deny_snapshot_load(const struct deny_snapshot *deny_snapshot, struct deny_list *deny_list);

#endif
