/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the other end of a fetch_client, which takes spans and answers as it is told. There is one. */
#ifndef MCPGATED_TRACE_FAKE_FETCHER_H
#define MCPGATED_TRACE_FAKE_FETCHER_H

#include <jansson.h>
#include <stdbool.h>

#include "auth/fetch_client.h"
#include "io/loop.h"

/* A client that is connected with it. */
struct fetch_client *fake_fetcher_start(struct loop *loop);
/* Frees the client, too. */
void fake_fetcher_stop(void);

/* Whether a body has begun to come, within a turn of the loop. */
bool fake_fetcher_is_asked(void);
/* The next body, for json_decref; it comes. */
json_t *fake_fetcher_take(void);
/* What the last one is answered with; the client has it then. */
void fake_fetcher_answer(int status, uint32_t retry_after_s, const char *body);

/* Of such a body: the span with this number, its attribute of this name (NULL: it has none), and how many there are. */
const json_t *fake_fetcher_span(const json_t *body, size_t number);
const char *fake_fetcher_attribute(const json_t *span, const char *name);
size_t fake_fetcher_count(const json_t *body);

#endif
