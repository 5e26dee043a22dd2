/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what gateways remember of servers' definitions (process/pin_memory): from one gateway to
 * the next in a memory file, and for the next daemon in the file `pins` of the state directory. The
 * gateway writes the memory file and reports that (IPC_PINS); its contents are copied without being
 * interpreted. So all that a compromised gateway can do is approve, forget and invent pins, and
 * cause a file of at most PIN_MEMORY_TEXT_BYTES to be written every ten seconds. SEC-68
 */
#ifndef MCPGATED_KEEPER_PIN_STORE_H
#define MCPGATED_KEEPER_PIN_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

#define PIN_STORE_GATHER_MS 500 /* changes within this time are written together */
#define PIN_STORE_EACH_MS 10000 /* minimum interval between writes */

struct pin_store {
	int memory;    /* the memory file, for every gateway */
	int directory; /* locked against other daemons; -1: not yet */
	bool is_used; /* a server has pins; otherwise nothing is written, whatever a gateway says */
	bool is_due;
	bool has_failed; /* writing the file failed, and that was logged */
	uint64_t write_at_ms;
	uint64_t written_at_ms; /* or attempted; 0: never */
};

/* Creates the memory file, and reads the stored file, if any, into it. */
int pin_store_init(struct pin_store *store, const struct config *config, struct error *err)
	must_check;
/* Switches to another configuration. */
void pin_store_renew(struct pin_store *store, const struct config *config);
/* Writes what has not been written. */
void pin_store_fini(struct pin_store *store);
/* Handles a gateway's IPC_PINS: its pins have changed. */
void pin_store_note(struct pin_store *store);
/*
 * Writes when due, and retries failures later. Returns when it will be due; UINT64_MAX: nothing to
 * write.
 */
uint64_t pin_store_do_due(struct pin_store *store);
/* Appends the valid text in the memory file. -1: a gateway has left something invalid there. */
int pin_store_read(const struct pin_store *store, struct buf *text, struct error *err) must_check;

#endif
