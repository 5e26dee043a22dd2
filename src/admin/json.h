/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of the operator: the values that are answered, the responses that hold them, and the
 * orders that are read. The values are jansson's, whose header is not included here: some of its
 * names conflict with jsonrpc/scan.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "http/conn.h"
#include "policy/permissions.h"
#include "policy/roles.h"
#include "process/server.h"
#include "session/deny_list.h"

/* ---- values ---- */

struct json_t;

/* Empty values; owned by the caller. */
struct json_t *value_object(void);
struct json_t *value_array(void);
/*
 * As json_pack; owned by the caller. Its "s" is for texts of the program and names of servers, which are
 * ASCII: any other goes through value_text.
 */
struct json_t *value_pack(const char *format, ...) __attribute__((returns_nonnull));

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

/*
 * ---- responses ----
 *
 * Complete ones, to the operator.
 */

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

/*
 * ---- the question of can ----
 *
 * Parses the operator's question about somebody's rights.
 */

struct grant;

enum can_who {
	CAN_PRINCIPAL, /* the caller of a session, by subject */
	CAN_TOKEN,     /* a static token, by name */
	CAN_CLAIMS,    /* anyone whose token has these claims */
};

struct can_request {
	void *document; /* owns the texts */
	struct slice server;
	enum permission_kind kind;
	struct slice name;
	enum can_who who;
	struct slice who_name; /* not for CAN_CLAIMS */
};

/*
 * Reads {"server": TEXT, "tool" or "prompt" or "resource": TEXT, "principal" or "token": TEXT or
 * "claims": OBJECT}; other members are errors. 0: end it with can_request_fini; -1: err may be
 * shown to the operator.
 */
int can_request_read(struct slice body, struct can_request *request_r, struct error *err)
	must_check;
void can_request_fini(struct can_request *request);
/*
 * For CAN_CLAIMS: the grant of a token with these claims, disregarding its validity and to whom it
 * is bound. The caller owns a reference. NULL: no token can have these claims; err says why.
 */
struct grant *can_request_grant(const struct can_request *request, const struct roles *roles,
				struct error *err);

/*
 * ---- the order to deny a token ----
 *
 * Parses the operator's order to deny a token.
 */

struct deny_request {
	void *document;      /* owns the texts */
	struct slice issuer; /* empty: not given */
	enum denial_by by;
	struct slice name;
	uint64_t until_ms; /* wall clock; 0: not given */
};

/*
 * Reads {"issuer": TEXT, "sub" or "client_id" or "jti" or "sid": TEXT, "until_ms": NUMBER}; only
 * the second is required, and other members are errors. 0: end it with deny_request_fini; -1: err
 * may be shown to the operator.
 */
int deny_request_read(struct slice body, struct deny_request *deny_request_r, struct error *err)
	must_check;
void deny_request_fini(struct deny_request *deny_request);
