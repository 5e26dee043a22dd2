/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the other end of a fetch_client, which accepts spans and answers as the test says.
 * There is only one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "auth/fetch_client.h"
#include "io/loop.h"

/* Returns a client that is connected to it. */
struct fetch_client *fake_fetcher_start(struct loop *loop);
/* Also frees the client. */
void fake_fetcher_stop(void);

/* Whether a body has begun to arrive, within a turn of the loop. */
bool fake_fetcher_is_asked(void);
/* The next body, which must arrive; release it with json_decref. */
json_t *fake_fetcher_take(void);
/* Answers the last body; the client has received the answer on return. */
void fake_fetcher_answer(int status, uint32_t retry_after_s, const char *body);

/*
 * In such a body: the span with this number, a span's attribute with this name (NULL: none), and
 * the number of spans.
 */
const json_t *fake_fetcher_span(const json_t *body, size_t number);
const char *fake_fetcher_attribute(const json_t *span, const char *name);
size_t fake_fetcher_count(const json_t *body);
