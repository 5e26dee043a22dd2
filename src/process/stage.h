/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the stage that the tests of all rows from here on upwards play on. On it are a loop, a keeper that is
 * played, and two servers whose processes are played line by line. router/stage adds the router.
 *
 * There is one stage in a test program; it is opened before each test and closed after it. What a test wants of a
 * server beyond the usual, it puts into servers[i].conf once the stage is open. Time stands still between steps. The
 * log goes to a file that a test can ask. Texts are given with ' for ", so that they can be read.
 */
#ifndef MCPGATED_PROCESS_STAGE_H
#define MCPGATED_PROCESS_STAGE_H

#include "base/unit_test.h"
#include "process/fake_keeper.h"
#include "process/server.h"

extern struct loop *loop;
extern struct fake_keeper keeper;
extern struct server servers[2];
extern struct fleet fleet; /* of both servers; no limit unless a test sets one */
extern uint64_t now_ms;

/* Each server is of the legacy era and has up to four processes, one for each session. None runs yet. */
void stage_open(void);
/* Every process that is left ends. */
void stage_end_processes(void);
/* For cmocka: the same, and no server counts a process any more. */
int stage_close(void **state);

/* Runs the loop until nothing moves any more. */
void settle(void);
/* Lets time go by, and what is due happen. */
void pass(uint64_t ms);
/* The text with " for '. Good for the next few calls. */
const char *q(const char *text);
/* Whether, and how often, this stands in the log of the test. */
bool is_logged(const char *text);
unsigned int count_logged(const char *text);

/* The i-th that was started. */
struct fake_process *process(size_t i);
/* The server writes a line. */
void says(struct fake_process *p, const char *text);
/* The server reads exactly this line next. */
void hears(struct fake_process *p, const char *text);
void hears_nothing(struct fake_process *p);
/* The process ends with this status. */
void exits(struct fake_process *p, int status);

#endif
