/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: mcpgated-store between a gateway and a store, which the test plays, over real sockets. */
#pragma once

#include <hiredis/hiredis.h>
#include <unistd.h>

#include "auth/fetch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/halves.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "cluster/store_service.h"
#include "io/ipc.h"

#define PATIENCE_MS 20000
#define ID_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define ID_B "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define ID_C "DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"
#define OWNER "\"owner\":\"CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC\",\"server\":\"main\""
#define LINE(id, rest) "{\"id\":\"" id "\"," OWNER rest "}\n"
#define LEG(id) "{\"leg\":\"" id "\"," OWNER "}\n"

/* A connection of the store's. */
struct end {
	int fd;
	redisReader *reader;
	redisReply *command; /* the last one */
	unsigned int pings;  /* that were answered */
};

#define NO_DENIALS "*2\r\n$1\r\n0\r\n*0\r\n" /* a scan that is at its end */

struct store_stage {
	char folder[32], path[64], url[80];
	int listener;
	struct loop *loop;
	struct cluster_conf conf;
	struct store_service *service;
	int gateway; /* the gateway's end */
	int memory;
	struct halves *file;
	int streams;
	struct end commands, channel;
	bool has_ended, has_denials;
	uint32_t last_id;
	/* the last answer */
	uint32_t id;
	int status;
	char etag[16], error[64];
	struct buf body;
	const char *since; /* since when the store has what it has, as a reply */
	int log;
};

extern struct store_stage world;

/* cmocka setup and teardown. */
int store_stage_open(void **state);
int store_stage_close(void **state);

/* One turn of the loop. */
void turn(void);
#define TURN_UNTIL(condition)                                                \
	do {                                                                 \
		uint64_t end_ms = clock_now_ms() + PATIENCE_MS;              \
		while (!(condition)) {                                       \
			turn();                                              \
			assert_true(clock_now_ms() < end_ms || (condition)); \
		}                                                            \
	} while (0)

/* Time goes by, after the store has answered what it was asked whether it is there. */
void pass(uint64_t ms);
unsigned int count_logged(const char *text);

/* ---- the store ---- */

/* The next two connections, of which one subscribes. */
void store_accepts(void);
void end_close(struct end *end);
/* Whether there is a command, which becomes end->command. */
bool has_command(struct end *end);
/*
 * What asks whether the store is there, and since when, is answered, and does not count; nor what looks for denials,
 * unless the test has some.
 */
bool has_order(struct end *end);
/* The arguments of the last command. */
const char *word(const struct end *end, size_t i);
/* The store sends this. */
void answers(const struct end *end, const char *text);
void store_announces(const char *text);
/* EVAL SCRIPT 1 KEY NODE OWNER LINE LIFE ID */
void store_is_given(const char *id, const char *line);
/* Nothing is on its way: what was asked last would have come behind it. */
void store_is_given_nothing(void);

/* ---- the gateway ---- */

void keeps(const char *lines);
void saves(const char *lines);
uint32_t asks(enum fetch_kind kind, const char *text);
/* The whole of an answer; its body comes in parts. */
bool is_answered(void);
void hears(uint32_t id, int status, const char *body);
