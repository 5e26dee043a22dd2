/* SPDX-License-Identifier: Apache-2.0 */
/* Complete responses to the operator. */
#ifndef MCPGATED_ADMIN_ADMIN_REPLY_H
#define MCPGATED_ADMIN_ADMIN_REPLY_H

#include <stdint.h>

#include "admin/value.h"
#include "http/conn.h"
#include "process/server.h"

void admin_reply(struct http_conn *conn, int status, const char *type, const struct buf *body);
/* Replies with a JSON text; appends a line end to it. */
void admin_reply_json(struct http_conn *conn, int status, struct buf *body);
/* Replies with a value, which it takes. */
void admin_reply_value(struct http_conn *conn, int status, struct json_t *value);
/* 200 with {member: number}: how many items a command has affected. */
void admin_reply_number(struct http_conn *conn, const char *member, uint64_t number);
/* {"error": why} */
void admin_reply_error(struct http_conn *conn, int status, const char *why);
/* 404, with the name of the most similar server, if any is similar. */
void admin_reply_no_server(struct http_conn *conn, const struct server *servers, size_t count,
			   struct slice name);
/* Only that object; owned by the caller. */
struct json_t *admin_reply_make_error(const char *why);

#endif
