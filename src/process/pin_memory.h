/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pins of all servers, for the next gateway and the next daemon: the gateway's end of keeper/pin_store. They lie as text
 * in a memory file that the keeper makes, twice, so that one is whole while the other is written. An attacker may have taken
 * over the gateway that wrote it, or a server may write the keeper's file: it is read like any input. SEC-68
 */
#ifndef MCPGATED_PROCESS_PIN_MEMORY_H
#define MCPGATED_PROCESS_PIN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "io/loop.h"
#include "process/pin_shadows.h"
#include "process/server.h"

#define PIN_MEMORY_TEXT_BYTES ((size_t)16 * 1024 * 1024)
#define PIN_MEMORY_FIRST_LINE "mcpgated pins 1\n"

/* How it lies in the memory file; zeros at first. Only what is written costs memory. */
struct pin_memory_file {
	uint64_t half;     /* that holds */
	uint64_t bytes[2]; /* of each; 0: nothing was written */
	char text[2][PIN_MEMORY_TEXT_BYTES];
};

struct pin_memory {
	struct pin_memory_file *file; /* NULL: it could not be mapped */
	struct spawner *spawner;
	struct server *servers;
	size_t server_count;
	struct buf others; /* lines about servers that have no pins now: they may have again */
	uint64_t changes;  /* of all pins when they were saved */
	bool is_too_long;  /* which was logged */
	struct loop *loop;
	struct timer saving;
	struct pin_shadows shadows;
};

/* Reads what is there, for those of the servers that have pins. All is borrowed but fd's file, which stays mapped. */
void pin_memory_init(struct pin_memory *memory, struct loop *loop, struct spawner *spawner, int fd,
		     struct server *servers, size_t server_count);
/*
 * Around a change of the servers, or of which have pins: what is known of all as text, to be read again by those that have pins
 * afterwards. `text` is empty before, and the caller's. What servers without pins had was not read so far: lines of it that are not
 * correct are left out, which is logged.
 */
void pin_memory_leave(struct pin_memory *memory, struct buf *text);
void pin_memory_return(struct pin_memory *memory, size_t server_count, struct slice text);
/* Saves what has not been saved. */
void pin_memory_fini(struct pin_memory *memory);
/* Pins may have changed: they are saved soon. Accepts NULL. */
void pin_memory_note(struct pin_memory *memory);
/* The operator has decided: they are saved now, so that his word outlives this process. Accepts NULL. */
void pin_memory_save(struct pin_memory *memory);

#endif
