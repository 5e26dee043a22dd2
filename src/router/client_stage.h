/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a stage with clients whose fronts write into buffers. */
#pragma once

#include "router/client_session.h"
#include "router/forward.h"
#include "router/stage.h"

#define STAGE_FRONTS_MAX 8192
#define STAGE_MEMBERS_MAX 64

enum ending { ENDING_NONE, ENDING_RESPONSE, ENDING_FAILED, ENDING_CANCELLED };

struct front {
	struct call call;
	struct buf messages; /* each terminated by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	unsigned int endings;
	bool refuses;       /* its client cannot receive messages */
	bool ends_session;  /* when it is told the outcome */
	unsigned long mark; /* carried by random calls */
};

/* A session and the reader of its own stream. */
struct member {
	struct client *client;
	struct stream_reader reader;
	struct buf got; /* each terminated by a bar */
	unsigned int detached;
};

extern struct front *fronts;
extern size_t front_count;
extern struct member members[STAGE_MEMBERS_MAX];
extern size_t member_count;

/* Opens the stage, without clients. */
void client_stage_open(void);
/* A cmocka teardown: whatever the test did, every call has ended exactly once. */
int client_stage_close(void **state);

struct envelope scan(const char *text);
struct front *front_new(const struct envelope *env);
/* As admission would let it in; client NULL: no session yet. Valid until the next call. */
struct admitted *admit(const struct client *client, const struct envelope *env);

/*
 * Sends a client's initialize request, by default to the first server; the test examines the
 * outcome.
 */
struct front *open_session_at(struct server *server, struct principal *principal, const char *text);
/* The same for an anonymous client at this address. */
struct front *open_session_from(const char *address, const char *text);
struct front *open_session_as(struct principal *principal, const char *text);
struct front *open_session(const char *text);
struct front *request(struct client *client, const char *text);
void notify(struct client *client, const char *text);
void answer(struct client *client, const char *text);
/* Attaches a reader to the session's own stream. */
struct member *listen_to(struct client *client);

void is_answered(struct front *front, const char *text);
void is_failed(const struct front *front, enum reason reason);
void is_open(const struct front *front);
/* Checks what the client of this call has received since the last check. */
void was_told(struct front *front, const char *text);
/* The same for the session's own stream. */
void heard(struct member *member, const char *text);

#define INITIALIZE_WITH(caps)                                                                     \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'," \
	"'capabilities':{" caps "},'clientInfo':{'name':'c','version':'1'}}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CALL(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t'}}"
#define RESULT(id) "{'jsonrpc':'2.0','id':" id ",'result':{'ok':1}}"
#define PROGRESS(token, value)                                                                \
	"{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':" token \
	",'progress':" value "}}"
#define CHANGED(list) "{'jsonrpc':'2.0','method':'notifications/" list "/list_changed'}"
#define UPDATED(uri) \
	"{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'" uri "'}}"
