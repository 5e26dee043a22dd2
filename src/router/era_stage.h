/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the stage with modern servers, and their usual messages. */
#pragma once

#include "router/pool.h"
#include "router/pool_stage.h"

/* cmocka setups: the era of the first server is yet to be detected, or it is modern. */
int era_setup(void **state);
int era_setup_modern(void **state);

#define MODERN_TEST(name) \
	cmocka_unit_test_setup_teardown(name, era_setup_modern, client_stage_close)

/*
 * Begins a session with these client capabilities at a server with those; its process is number 0.
 */
struct member *begin_with(const char *client_caps, const char *server_caps);
/* The same for a client that can be asked everything. */
struct member *begin_asked(void);

#define META "io.modelcontextprotocol/"
#define META_OF(caps, info)                                                                   \
	"'_meta':{'" META "protocolVersion':'2026-07-28','" META "clientCapabilities':{" caps \
	"},'" META "clientInfo':" info
#define CLIENT "{'name':'c','version':'1'}"
#define GATEWAY "{'name':'mcpgated','version':'" PACKAGE_VERSION "'}"
#define REQUEST(id, method, params) \
	"{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "}}"
#define DISCOVER(caps, info) REQUEST("1", "server/discover", META_OF(caps, info) "}")
#define DISCOVERED_WITH(caps)                                                                      \
	"{'jsonrpc':'2.0','id':1,'result':{'resultType':'complete','supportedVersions':['x',"      \
	"'2026-07-28'],'capabilities':{" caps "},'ttlMs':0,'cacheScope':'private','_meta':{'" META \
	"serverInfo':{'name':'s','version':'1'}}}}"
#define DISCOVERED DISCOVERED_WITH("'tools':{}")
#define ANSWER(id, result) "{'jsonrpc':'2.0','id':" id ",'result':{" result "}}"
#define ERROR(id, code) "{'jsonrpc':'2.0','id':" id ",'error':{'code':" code ",'message':'m'}}"
#define REFUSED                                                                 \
	"{'jsonrpc':'2.0','id':1,'error':{'code':-32022,'message':'m','data':{" \
	"'supported':['2026-07-28'],'requested':'2025-11-25'}}}"
#define ASKS(id, inputs) \
	"{'jsonrpc':'2.0','id':" id ",'result':{'resultType':'input_required'," inputs "}}"
#define FORM "{'method':'elicitation/create','params':{'message':'m','requestedSchema':{}}}"
#define ASKED(id)                                                                             \
	"{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'m'," \
	"'requestedSchema':{}}}"
#define WITHDRAWN(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}|"
