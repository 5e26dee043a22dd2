/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the stage with a pool of at most two processes, and its usual messages. */
#pragma once

#include "router/client_stage.h"

#define POOL_IDLE_MS 300000
#define POOL_QUEUE_TIMEOUT_MS 10000

/* cmocka setups and teardown; with principals, `alice` and `bob` exist and do not share. */
int pool_setup(void **state);
int pool_setup_principals(void **state);
int pool_teardown_principals(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_setup, client_stage_close)
#define TEST_PRINCIPALS(name) \
	cmocka_unit_test_setup_teardown(name, pool_setup_principals, pool_teardown_principals)

extern struct principal *alice, *bob;

/* Makes a member of an opened session: attaches a reader and sends `initialized`. */
struct member *join(struct front *front);
/* Process i completes its handshake in the usual way. */
void get_ready(size_t i);
/* Begins a session; the first one makes process 0 ready. */
struct member *begin(void);
/* Begins a session of a client that can be asked; its process i becomes ready. */
struct member *begin_asking(struct principal *principal, size_t i);
struct member *begin_plain(struct principal *principal);
/* From `ms` from now on, until stage_rest, each turn is a long one before anything is done in it. */
void stage_is_busy(uint64_t ms);
void stage_rest(void);
/* Whether the call was answered with this error. */
bool is_error(struct front *front, const char *code);

#define INITIALIZE                                                                                \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-06-18'," \
	"'capabilities':{'roots':{},'sampling':{}},'clientInfo':{'name':'c','version':'1'}}}"
#define HANDSHAKE(caps)                                                                          \
	"{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':'2025-11-25'" \
	",'capabilities':{" caps "},'clientInfo':{'name':'mcpgated','version':'" PACKAGE_VERSION \
	"'}}}"
#define ASK(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'m'}}"
#define OFFERS                                                        \
	"'tools':{'listChanged':true},'resources':{'subscribe':true," \
	"'listChanged':true},'prompts':{}"
#define WELCOME                                                                             \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{" \
	"'logging':{}," OFFERS ",'tasks':{'list':{}}},'serverInfo':{'name':'s','version':'1'}}}"
#define WELCOMED                                                                                   \
	"{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-06-18','capabilities':{" OFFERS \
	"},'serverInfo':{'name':'s','version':'1'}}}"
#define LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list'}"
#define PAGE(id, cursor)                                              \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/list','params'" \
	":{'cursor':" cursor "}}"
#define TOOLS(id, names) "{'jsonrpc':'2.0','id':" id ",'result':{'tools':[" names "]}}"
#define SUBSCRIBE(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/subscribe','params':{'uri':'r:a'}}"
#define UNSUBSCRIBE(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/unsubscribe','params':{'uri':'r:a'}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"
#define CANCELLED(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}"
