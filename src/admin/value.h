/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the JSON for the operator. The values are jansson's, whose header is not included here:
 * some of its names conflict with jsonrpc/scan.h.
 */
#ifndef MCPGATED_ADMIN_VALUE_H
#define MCPGATED_ADMIN_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct json_t;

/* Empty values; owned by the caller. */
struct json_t *value_object(void);
struct json_t *value_array(void);

/* Each sets a new member; members keep this order. value_set takes value; NULL: null. */
void value_set(struct json_t *object, const char *member, struct json_t *value);
void value_set_flag(struct json_t *object, const char *member, bool flag);
/* VALUE_NONE becomes null. */
void value_set_number(struct json_t *object, const char *member, uint64_t number);
#define VALUE_NONE UINT64_MAX
/* Any bytes; an empty text becomes null. */
void value_set_text(struct json_t *object, const char *member, struct slice text);
/* A single text, which must not be empty; owned by the caller. */
struct json_t *value_text(struct slice text);
/* Likewise. */
struct json_t *value_number(uint64_t number);
/* Takes value. */
void value_append(struct json_t *array, struct json_t *value);

/* Takes value and appends its text. */
void value_write(struct json_t *value, struct buf *out);

/*
 * Writes {"member":[value,...]}, value by value, for lists too long to have in memory twice.
 * value_list_add takes value.
 */
void value_list_begin(struct buf *out, const char *member);
void value_list_add(struct buf *out, struct json_t *value);
/* Ends the list and begins another member with its own list. */
void value_list_next(struct buf *out, const char *member);
void value_list_end(struct buf *out);

#endif
