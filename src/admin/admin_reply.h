/* SPDX-License-Identifier: Apache-2.0 */
/* Whole answers to the operator. */
#ifndef MCPGATED_ADMIN_ADMIN_REPLY_H
#define MCPGATED_ADMIN_ADMIN_REPLY_H

#include <stdint.h>

#include "base/buf.h"
#include "http/conn.h"

/* 200 with a text of this type. */
void admin_reply_text(struct http_conn *conn, const char *type, const struct buf *body);
/* 200 with a JSON text, to which a line end is appended. */
void admin_reply_json(struct http_conn *conn, struct buf *body);
/* The same with {member: value}: how many a command has done it to. */
void admin_reply_number(struct http_conn *conn, const char *member, uint64_t value);
/* {"error": why} */
void admin_reply_error(struct http_conn *conn, int status, const char *why);

#endif
