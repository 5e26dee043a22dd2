/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the denials of a gateway process that failed to the next one, in a memory file that the
 * keeper creates and all gateway processes share (base/halves). An attacker may have controlled the process that
 * wrote it, so it is validated like any input.
 */
#ifndef MCPGATED_SESSION_DENY_SNAPSHOT_H
#define MCPGATED_SESSION_DENY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/halves.h"
#include "session/deny_list.h"

#define DENY_SNAPSHOT_BYTES ((size_t)48 * 1024 * 1024)
/* Size of the keeper's memory file, which is zeroed initially; only written pages use memory. */
#define DENY_SNAPSHOT_FILE_BYTES HALVES_BYTES(DENY_SNAPSHOT_BYTES)

/* Maps the file for the life of the process. Returns NULL if that fails. */
struct halves *deny_snapshot_map(int fd);
/* Saves all entries. Accepts NULL. */
void deny_snapshot_save(struct halves *deny_snapshot, const struct deny_list *deny_list);
/*
 * Adds the entries that the previous gateway saved, with the same numbers. Returns false, and adds
 * nothing, if nothing was saved or the list is invalid, which is logged. Accepts NULL.
 */
bool deny_snapshot_load(const struct halves *deny_snapshot, struct deny_list *deny_list);

#endif
