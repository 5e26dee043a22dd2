/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the router on a stage, between fronts that write into buffers and servers that are played line by
 * line. Time stands still between steps. Texts are given with ' for ", so that they can be read.
 */
#ifndef MCPGATED_ROUTER_STAGE_H
#define MCPGATED_ROUTER_STAGE_H

#include "process/fake_keeper.h"
#include "router/forward.h"
#include "router/client_session.h"
#include "router/router.h"

#define STAGE_FRONTS_MAX 8192
#define STAGE_MEMBERS_MAX 64

enum ending { ENDING_NONE, ENDING_RESPONSE, ENDING_FAILED, ENDING_CANCELLED };

struct front {
	struct call call;
	struct buf messages; /* each followed by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	unsigned int endings;
	bool refuses;       /* its client cannot be given messages */
	bool ends_session;  /* when it is told */
	unsigned long mark; /* what random calls carry */
};

/* A session and who reads its own stream. */
struct member {
	struct client *client;
	struct stream_reader reader;
	struct buf got; /* each followed by a bar */
	unsigned int detached;
};

extern struct loop *loop;
extern struct fake_keeper keeper;
extern struct server server;
extern struct router router;
extern struct front *fronts;
extern size_t front_count;
extern struct member members[STAGE_MEMBERS_MAX];
extern size_t member_count;
extern uint64_t now_ms;

/* The stage with nobody on it. */
void stage_open(const struct session_conf *sessions, const struct server_conf *conf);
/* Whatever a test did: every call has ended once, every process goes, and nothing is left. */
void stage_close(void);

/* The text with " for '. Good for the next few calls. */
const char *q(const char *text);
/* Lets time go by, and what is due happen. */
void pass(uint64_t ms);
struct envelope scan(const char *text);
struct front *front_new(const struct envelope *env);
/* As the front door would let it in; NULL: for no session yet. Good until the next one. */
struct admitted *admit(const struct client *client, const struct envelope *env);
struct fake_process *process(size_t i);

/* An initialize request of a client; what comes of it is to be seen. */
struct front *open_session_as(struct principal *principal, const char *text);
struct front *open_session(const char *text);
struct front *request(struct client *client, const char *text);
void notify(struct client *client, const char *text);
void answer(struct client *client, const char *text);
/* Someone reads the session's own stream from now on. */
struct member *listen_to(struct client *client);

/* The server writes a line. */
void says(struct fake_process *p, const char *text);
/* The server reads exactly this line next. */
void hears(struct fake_process *p, const char *text);
void hears_nothing(struct fake_process *p);

void is_answered(struct front *front, const char *text);
void is_failed(const struct front *front, enum reason reason);
void is_open(const struct front *front);
/* What the client of this call has been told since the last look. */
void was_told(struct front *front, const char *text);
/* The same on the session's own stream. */
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

#endif
