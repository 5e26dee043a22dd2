/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gateways remember of servers' definitions (process/pin_memory), from one to the next in a memory file, and for the next
 * daemon in the file `pins` of the state directory. The gateway writes the one and tells that it has (IPC_PINS); what it
 * says is copied and not understood here. So a gateway that was taken over can approve, forget and invent pins, and have a file
 * of at most PIN_MEMORY_TEXT_BYTES written every ten seconds; nothing else comes of it. SEC-68
 */
#ifndef MCPGATED_KEEPER_PIN_STORE_H
#define MCPGATED_KEEPER_PIN_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

#define PIN_STORE_GATHER_MS 500 /* what comes together is written together */
#define PIN_STORE_EACH_MS 10000 /* and so often at most */

struct pin_store {
	int memory;    /* the memory file, for every gateway */
	int directory; /* locked: no other daemon writes there; -1: not yet */
	bool is_used;  /* a server has pins: else nothing is written, whatever a gateway says */
	bool is_due;
	bool has_failed; /* to write the file, which was logged */
	uint64_t write_at_ms;
	uint64_t written_at_ms; /* or tried to; 0: never */
};

/* Makes the memory file, and reads the file, if there is one, into it. */
int pin_store_init(struct pin_store *store, const struct config *config, struct error *err)
	must_check;
/* Another configuration is in use. */
void pin_store_renew(struct pin_store *store, const struct config *config);
/* Writes what has not been written. */
void pin_store_fini(struct pin_store *store);
/* A gateway's IPC_PINS: it has other pins. */
void pin_store_note(struct pin_store *store);
/* Writes when it is time to, and what has failed again later. Returns when it will be; UINT64_MAX: there is nothing to write. */
uint64_t pin_store_do_due(struct pin_store *store);
/* Appends the text that holds in the memory file. -1: what a gateway has left there makes no sense. */
int pin_store_read(const struct pin_store *store, struct buf *text, struct error *err) must_check;

#endif
