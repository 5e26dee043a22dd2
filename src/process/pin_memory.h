/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preserves the pins of all servers for the next gateway and the next daemon: the gateway's side of
 * keeper/pin_store. They are stored as text in a memory file that the keeper creates
 * (base/halves). An attacker may have controlled the
 * gateway that wrote it, or a server may write the keeper's file, so it is validated like any
 * input. SEC-68
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/halves.h"
#include "io/loop.h"
#include "policy/shadows.h"
#include "process/server.h"

#define PIN_MEMORY_TEXT_BYTES ((size_t)16 * 1024 * 1024)
#define PIN_MEMORY_FIRST_LINE "mcpgated pins 1\n"

#define PIN_MEMORY_FILE_BYTES \
	HALVES_BYTES(PIN_MEMORY_TEXT_BYTES) /* only what is written uses memory */

/* ---- what servers say about each other's tools ---- */

/*
 * Calls on_shadow for all current ones (policy/shadows). The log has each once, up to SHADOWS_MAX in
 * total. SEC-12
 */
void pin_shadows_find(const struct server *servers, size_t count, shadow_fn *on_shadow, void *arg);

/* ---- the memory ---- */

struct pin_memory {
	struct halves *file; /* NULL: it could not be mapped */
	struct spawner *spawner;
	struct server *servers;
	size_t server_count;
	struct buf others; /* lines about servers that have no pins now, but may have them again */
	uint64_t changes;  /* of all pins, when they were last saved */
	bool is_too_long;  /* this was logged */
	struct loop *loop;
	struct timer saving;
	uint64_t second; /* in which first lists were last saved, and how often */
	unsigned int saves;
	struct map shadows_told; /* what servers say about each other's tools, and the log has */
};

/*
 * Loads the pins of those servers that have pins. Borrows everything; the file of fd stays mapped.
 */
void pin_memory_init(struct pin_memory *memory, struct loop *loop, struct spawner *spawner, int fd,
		     struct server *servers, size_t server_count);
/*
 * Bracket a change of the set of servers, or of which ones have pins: pin_memory_leave writes all
 * that is known as text, and pin_memory_return reads it for the servers that have pins afterwards.
 * `text` must be empty at first, and is the caller's. Lines about servers without pins have not
 * been parsed before: invalid ones are dropped, which is logged.
 */
void pin_memory_leave(struct pin_memory *memory, struct buf *text);
void pin_memory_return(struct pin_memory *memory, size_t server_count, struct slice text);
/* Saves unsaved changes. */
void pin_memory_fini(struct pin_memory *memory);
/*
 * Pins may have changed: saves them soon. Those of a first list are saved now, before any client
 * has it: the next gateway would take another list for the first. Accepts NULL.
 */
void pin_memory_note(struct pin_memory *memory, bool is_first_list);
/*
 * The operator has decided: saves the pins now, so that the decision outlives this process. Accepts
 * NULL.
 */
void pin_memory_save(struct pin_memory *memory);
