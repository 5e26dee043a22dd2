/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the texts that a gateway leaves for later ones: what it remembers of servers' definitions
 * (process/pin_memory), and its sessions (router/kept_sessions). From one gateway to the next in a
 * memory file, and for the next daemon in a file of the state directory. The gateway writes the
 * memory file and reports that (IPC_TEXT); its contents are copied without being interpreted. So
 * all that a compromised gateway can do is approve, forget and invent pins, forget and invent
 * sessions, and cause files of a limited size to be written every few seconds. SEC-68
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "io/ipc.h"

struct handover;

#define TEXT_STORE_GATHER_MS 500    /* changes within this time are written together */
#define TEXT_STORE_PINS_MS 10000    /* minimum interval between writes */
#define TEXT_STORE_SESSIONS_MS 2000 /* likewise: a power failure costs no more than that */
#define TEXT_STORE_NAME_BYTES 48

struct text_kind;

/* One of the texts. */
struct text_store {
	const struct text_kind *kind;
	char name[TEXT_STORE_NAME_BYTES]; /* of its file */
	int memory;                       /* the memory file, for every gateway */
	int directory;                    /* that has the file, which is ours; -1: not yet */
	int lock;                         /* what says so to other daemons; -1: not yet */
	/* The configuration wants it; otherwise nothing is written, whatever a gateway says. */
	bool is_used;
	bool is_due;
	bool has_failed; /* writing the file failed, and that was logged */
	uint64_t write_at_ms;
	uint64_t written_at_ms; /* or attempted; 0: never */
	uint64_t took_ms;       /* that */
};

struct text_stores {
	struct text_store items[IPC_TEXT_KINDS]; /* by enum ipc_text */
	uint8_t told; /* which cannot be saved, as the gateway knows it */
};

/*
 * Creates the memory files, and reads the stored files, if any, into them; or takes those of the
 * program before (`from`).
 */
int text_stores_init(struct text_stores *stores, const struct config *config, struct handover *from,
		     struct error *err) must_check;
/* Writes the memory files for the next program. */
void text_stores_hand_over(const struct text_stores *stores, struct handover *to);
/* Switches to another configuration. */
void text_stores_renew(struct text_stores *stores, const struct config *config);
/* Writes what has not been written. */
void text_stores_fini(struct text_stores *stores);
/* Handles a gateway's IPC_TEXT of this kind, which may be any number. */
void text_stores_note(struct text_stores *stores, uint32_t kind);
/* A gateway has gone: whatever it has not told may have changed, and the next one knows nothing. */
void text_stores_on_gateway_exit(struct text_stores *stores);
/* Sends which texts cannot be saved, if that has changed. */
void text_stores_tell(struct text_stores *stores, int gateway_fd);
/*
 * Writes what is due, and retries failures later. Returns when something will be due; UINT64_MAX:
 * nothing to write.
 */
uint64_t text_stores_do_due(struct text_stores *stores);
/* Appends the valid text in the memory file. -1: a gateway has left something invalid there. */
int text_store_read(const struct text_store *store, struct buf *text, struct error *err) must_check;
