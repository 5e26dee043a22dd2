/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway (fetch_client.h) and the program that fetches (fetch_service.h) say to each other, over a
 * SOCK_SEQPACKET pair (ipc_pair): one frame a packet. The gateway asks by number; it can name no address. Each end
 * believes the other nothing but the form: numbers and lengths are judged by whoever uses them.
 *
 *	gateway	ask(id, kind, issuer, etag, token) …	cancel(id)
 *		ask(id, FETCH_SPANS, body_bytes), then part(id, bytes) until the body is there
 *	fetcher	answer(id, status, body_bytes, error, cache_control, etag), then part(id, bytes) until the body is there
 */
#ifndef MCPGATED_AUTH_FETCH_WIRE_H
#define MCPGATED_AUTH_FETCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"

/* What is wanted of an issuer; the last, of the collector of traces. */
enum fetch_kind {
	FETCH_METADATA,      /* the document, from the first of its places that has a good one */
	FETCH_KEYS,          /* from jwks_uri; with an etag the answer may be 304 */
	FETCH_INTROSPECTION, /* what it says about the token */
	FETCH_KIND_COUNT,
	FETCH_SPANS = FETCH_KIND_COUNT /* to be taken */
};

enum fetch_frame_type { FETCH_ASK = 1, FETCH_CANCEL, FETCH_ANSWER, FETCH_PART };

#define FETCH_TEXTS 3
#define FETCH_PACKET_BYTES_MAX (32 * 1024)
/* Of the texts of one frame together: a token, or a part of a body. */
#define FETCH_TEXT_BYTES_MAX (FETCH_PACKET_BYTES_MAX - 64)
/* Header fields and errors that are longer are left out, or cut. */
#define FETCH_FIELD_BYTES_MAX 256

/* What a type has no use for is 0. */
struct fetch_frame {
	uint32_t type; /* enum fetch_frame_type; from the other side: any number, as all below */
	uint32_t id;   /* of the question; chosen by the gateway */
	uint32_t kind;
	uint32_t issuer; /* in the order of the configuration */
	int32_t status;  /* as in struct fetch_answer */
	uint32_t body_bytes;
	uint32_t retry_after_s;
	struct slice texts
		[FETCH_TEXTS]; /* ASK: etag, token; ANSWER: error, cache_control, etag; PART: bytes */
};

struct fetch_wire;

struct fetch_wire_ops {
	/* Texts are borrowed for the call. It may end the wire. */
	void (*on_frame)(struct fetch_wire *wire, const struct fetch_frame *frame);
	/* The other side has gone, or does not keep to the form. Nothing follows; it is still to be closed. */
	void (*on_end)(struct fetch_wire *wire);
};

struct fetch_wire {
	const struct fetch_wire_ops *ops;
	struct loop *loop;
	int fd; /* -1: closed */
	struct watch reading;
	struct watch writing;
	struct list packets; /* that did not fit yet */
	size_t unsent_bytes;
	size_t unsent_bytes_max; /* set by the owner: nothing is read while there is more; one end alone may have this */
};

/* Nothing is connected yet. ops is borrowed. */
void fetch_wire_init(struct fetch_wire *wire, struct loop *loop, const struct fetch_wire_ops *ops);
/* Takes fd, and begins to read. */
void fetch_wire_open(struct fetch_wire *wire, int fd);
bool fetch_wire_is_open(const struct fetch_wire *wire);
/* Wipes what is not sent. Also if it is closed. */
void fetch_wire_close(struct fetch_wire *wire);
/* To an open wire; keeps what does not fit now: whoever sends bounds how much that is. */
void fetch_wire_send(struct fetch_wire *wire, const struct fetch_frame *frame);
/* As many parts as the body of a frame with this id takes. */
void fetch_wire_send_body(struct fetch_wire *wire, uint32_t id, struct slice body);

/* ---- pure, for tests ---- */

/* Takes one packet apart; texts are slices of it. False: it is no frame. */
bool fetch_wire_unpack(struct slice packet, struct fetch_frame *frame_r) must_check;

#endif
