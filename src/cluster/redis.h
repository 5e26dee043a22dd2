/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to Valkey or Redis, which is made again whenever it is lost: hiredis formats commands and
 * reads replies (RESP2), io/wire carries them. Knows nothing of what is kept there. Resolving a name
 * blocks: for a process that has nothing else to do. CLU-CONN-*
 */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "io/loop.h"

/* A store that does not answer within this time is lost, and connected to again. */
#define REDIS_SILENCE_MS 3000
#define REDIS_SLOW_MS 15000 /* nor may a command wait for longer, whatever else it answers */
#define REDIS_PING_MS 1000
#define REDIS_CONNECT_MS 3000
#define REDIS_RETRY_MIN_MS 50 /* after the first failure; doubles */
#define REDIS_RETRY_MAX_MS 1000
/* Of one reply; a store that sends more is not believed. */
#define REDIS_REPLY_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define REDIS_UNSENT_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define REDIS_ARGUMENTS_MAX 160

struct tls_client;

/* All texts are borrowed for the life of the connection. */
struct redis_conf {
	const char *url;                /* as store_url_parse takes it */
	const char *username;           /* NULL: the default user */
	const char *password;           /* NULL: none is sent */
	const struct tls_client *trust; /* for a URL with TLS */
	const char *channel; /* subscribed to: then no commands can be sent. NULL: none */
};

struct redis;

/* None may free the connection. */
struct redis_ops {
	/* It can be used, from now on until on_lost. */
	void (*on_ready)(void *arg);
	/* It was ready, and is lost; it is being connected to again. */
	void (*on_lost)(void *arg, const char *why);
	/* It cannot be reached, once for each reason: `why` is for people. */
	void (*on_failed)(void *arg, const char *why);
	/* A message of the channel; NULL if there is none. */
	void (*on_message)(void *arg, struct slice message);
};

/* NULL: its connection is lost, and nobody knows whether the command was executed. Borrowed. */
typedef void redis_reply_fn(void *arg, const redisReply *reply);

/* Call once per process, before it is confined: what libraries would open later. */
void redis_prepare(void);
/* Begins to connect. `conf` and `ops` are borrowed for its life. */
struct redis *redis_new(struct loop *loop, const struct redis_conf *conf,
			const struct redis_ops *ops, void *arg);
/* Commands that were not answered end without a callback. Accepts a pointer to NULL. */
void redis_free(struct redis **redis);
bool redis_is_ready(const struct redis *redis);
/*
 * Sends a command, which is copied, to a connection that is ready; on_reply is called once, later.
 * What waits for replies is bounded by whoever sends.
 */
void redis_send(struct redis *redis, const struct slice *arguments, size_t count,
		redis_reply_fn *on_reply, void *arg);
/* The same, of EVAL; arguments: how many keys, these, and what else the script gets. */
void redis_send_script(struct redis *redis, const char *script, const struct slice *arguments,
		       size_t count, redis_reply_fn *on_reply, void *arg);
/* Of a reply that is a text, else an empty one. */
struct slice redis_text(const redisReply *reply);
