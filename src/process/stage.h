/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a loop, a fake keeper, and two servers whose processes the test plays line by line;
 * used by the tests of this layer and of those above. router/stage adds the router.
 *
 * There is one stage per test program; it is opened before each test and closed after it. To change
 * a server's defaults, a test sets servers[i].conf once the stage is open. Time stands still
 * between steps. The log goes to a file that a test can query. Texts are written with ' for ", to
 * be readable.
 */
#pragma once

#include "base/unit_test.h"
#include "process/fake_keeper.h"
#include "process/server.h"

extern struct loop *loop;
extern struct fake_keeper keeper;
extern struct server servers[2];
extern struct fleet fleet; /* of both servers; unlimited unless a test sets a limit */
extern uint64_t now_ms;

/* Each server is of the legacy era and has up to four processes, one per session. None runs yet. */
void stage_open(void);
/* Makes all remaining processes exit. */
void stage_end_processes(void);
/* For cmocka: the same, and no server counts a process afterwards. */
int stage_close(void **state);

/* Runs the loop until nothing is left to do. */
void settle(void);
/* Advances the time, and runs what is due. */
void pass(uint64_t ms);
/* The text with ' replaced by ". Valid for the next few calls. */
const char *q(const char *text);
/* Whether, and how often, this text is in the log of the test. */
bool is_logged(const char *text);
unsigned int count_logged(const char *text);

/* The i-th process started. */
struct fake_process *process(size_t i);
/* The server writes a line. */
void says(struct fake_process *p, const char *text);
/* Expects exactly this line as the next one that the server reads. */
void hears(struct fake_process *p, const char *text);
void hears_nothing(struct fake_process *p);
/* The process exits with this status. */
void exits(struct fake_process *p, int status);
