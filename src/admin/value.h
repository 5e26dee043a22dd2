/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON that the operator gets. The values are jansson's, whose header is not included here: it has names
 * in common with jsonrpc/scan.h.
 */
#ifndef MCPGATED_ADMIN_VALUE_H
#define MCPGATED_ADMIN_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct json_t;

/* Empty ones; the caller's. */
struct json_t *value_object(void);
struct json_t *value_array(void);

/* Each sets a member that is not there yet; members stay in this order. The first takes value; NULL: null. */
void value_set(struct json_t *object, const char *member, struct json_t *value);
void value_set_flag(struct json_t *object, const char *member, bool flag);
/* VALUE_NONE becomes null. */
void value_set_number(struct json_t *object, const char *member, uint64_t number);
#define VALUE_NONE UINT64_MAX
/* Any bytes; an empty text becomes null. */
void value_set_text(struct json_t *object, const char *member, struct slice text);
/* One by itself, not empty; the caller's. */
struct json_t *value_text(struct slice text);
/* Likewise. */
struct json_t *value_number(uint64_t number);
/* Takes value. */
void value_append(struct json_t *array, struct json_t *value);

/* Appends the text of value, which is taken. */
void value_write(struct json_t *value, struct buf *out);

/*
 * Writes {"member":[value,...]}, value by value: for lists so long that they are not to be in memory twice.
 * value_list_add takes value.
 */
void value_list_begin(struct buf *out, const char *member);
void value_list_add(struct buf *out, struct json_t *value);
/* Another member, with a list of its own, follows. */
void value_list_next(struct buf *out, const char *member);
void value_list_end(struct buf *out);

#endif
