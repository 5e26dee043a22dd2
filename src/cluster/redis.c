/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection at a time: connecting -> securing (TLS) -> greeting (AUTH, SUBSCRIBE or PING) -> ready ->
 * waiting to try again. Replies come in the order of commands. One that nobody waits for ends the connection.
 */
#include "cluster/redis.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "cluster/store_url.h"
#include "io/tls.h"
#include "io/wire.h"

#define READ_BYTES (64 * 1024)
#define READS_MAX 4 /* in one turn */

enum redis_state {
	REDIS_WAITING,    /* until it is tried again */
	REDIS_CONNECTING, /* the socket */
	REDIS_SECURING,   /* it, with TLS */
	REDIS_GREETING,
	REDIS_READY,
};

/* A command that has no reply yet. */
struct awaited {
	struct list link;
	redis_reply_fn *on_reply;
	void *arg;
	uint64_t sent_ms;
};

struct redis {
	struct loop *loop;
	const struct redis_conf *conf;
	const struct redis_ops *ops;
	void *arg;
	struct store_url url;
	enum redis_state state;
	struct wire wire;
	struct tls *tls; /* in its handshake; then the wire has it */
	redisReader *reader;
	struct buf out;     /* what the socket has not taken */
	size_t out_at;      /* how much of it has been written */
	struct list sent;   /* struct awaited */
	struct timer timer; /* to try again, or to look after the connection */
	uint64_t since_ms;  /* in this state */
	uint64_t heard_ms;  /* bytes of the store */
	uint64_t retry_ms;
	size_t reply_bytes; /* read since the last whole reply */
	char why[160];      /* the last reason for a failure, which is told once */
};

/* ---- ends ---- */

struct slice redis_text(const redisReply *reply)
{
	bool is_text = reply != NULL &&
		       (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);

	return is_text ? slice_of(reply->str, (size_t)reply->len) : slice_of(NULL, 0);
}

static void redis_set_state(struct redis *redis, enum redis_state state)
{
	redis->state = state;
	redis->since_ms = redis->heard_ms = clock_now_ms();
}

/* Whoever waits learns that it is lost. He may send nothing. */
static void end_awaited(struct redis *redis, bool calls)
{
	while (!list_is_empty(&redis->sent)) {
		struct awaited *awaited = container_of(redis->sent.next, struct awaited, link);

		list_remove(&awaited->link);
		if (calls && awaited->on_reply != NULL)
			awaited->on_reply(awaited->arg, NULL);
		free(awaited);
	}
}

static void redis_close(struct redis *redis)
{
	tls_free(&redis->tls);
	if (wire_is_open(&redis->wire))
		wire_close(&redis->wire);
	redis->out.len = redis->out_at = redis->reply_bytes = 0;
}

static void redis_lose(struct redis *redis, const char *why)
{
	bool was_ready = redis->state == REDIS_READY;
	bool is_new = strcmp(redis->why, why) != 0;

	CHECK(redis->state != REDIS_WAITING);
	snprintf(redis->why, sizeof(redis->why), "%s", why);
	redis_close(redis);
	redis_set_state(redis, REDIS_WAITING);
	timer_start(redis->loop, &redis->timer, redis->retry_ms);
	redis->retry_ms =
		redis->retry_ms * 2 < REDIS_RETRY_MAX_MS ? redis->retry_ms * 2 : REDIS_RETRY_MAX_MS;
	end_awaited(redis, true);
	if (was_ready)
		redis->ops->on_lost(redis->arg, redis->why);
	else if (is_new)
		redis->ops->on_failed(redis->arg, redis->why);
}

/* ---- writing ---- */

static void redis_write(struct redis *redis)
{
	while (redis->out_at < redis->out.len) {
		struct iovec part = { redis->out.data + redis->out_at,
				      redis->out.len - redis->out_at };
		ssize_t n = wire_write(&redis->wire, &part, 1);

		if (n == WIRE_BROKEN) {
			redis_lose(redis, "the connection is broken");
			return;
		}
		if (n == 0)
			break;
		redis->out_at += (size_t)n;
	}
	wire_watch_writing(&redis->wire, redis->out_at < redis->out.len);
	if (redis->out_at == redis->out.len)
		redis->out.len = redis->out_at = 0;
}

static void put(struct redis *redis, const struct slice *arguments, size_t count,
		redis_reply_fn *on_reply, void *arg)
{
	struct awaited *awaited = mem_zalloc(sizeof(*awaited));
	const char *texts[REDIS_ARGUMENTS_MAX];
	size_t sizes[REDIS_ARGUMENTS_MAX];
	char *command = NULL;
	int n;

	CHECK(count > 0 && count <= REDIS_ARGUMENTS_MAX);
	for (size_t i = 0; i < count; i++) {
		texts[i] = arguments[i].p != NULL ? arguments[i].p : "";
		sizes[i] = arguments[i].n;
	}
	n = (int)redisFormatCommandArgv(&command, (int)count, texts, sizes);
	CHECK(n > 0); /* there is memory */
	buf_append(&redis->out, command, (size_t)n);
	explicit_bzero(command, (size_t)n); /* it may be a password */
	redisFreeCommand(command);
	*awaited = (struct awaited){ .on_reply = on_reply, .arg = arg, .sent_ms = clock_now_ms() };
	list_append(&redis->sent, &awaited->link);
	wire_watch_writing(&redis->wire, true);
}

void redis_send(struct redis *redis, const struct slice *arguments, size_t count,
		redis_reply_fn *on_reply, void *arg)
{
	CHECK(redis->state == REDIS_READY && redis->conf->channel == NULL);
	put(redis, arguments, count, on_reply, arg);
}

void redis_send_script(struct redis *redis, const char *script, const struct slice *arguments,
		       size_t count, redis_reply_fn *on_reply, void *arg)
{
	struct slice all[REDIS_ARGUMENTS_MAX] = { SLICE_LIT("EVAL"), slice_str(script) };

	CHECK(count + 2 <= ARRAY_LEN(all));
	memcpy(all + 2, arguments, count * sizeof(*arguments));
	redis_send(redis, all, count + 2, on_reply, arg);
}

/* ---- greeting ---- */

static void on_greeted(void *arg, const redisReply *reply)
{
	struct redis *redis = arg;

	if (reply == NULL)
		return;
	redis_set_state(redis, REDIS_READY);
	redis->retry_ms = REDIS_RETRY_MIN_MS;
	redis->why[0] = '\0';
	redis->ops->on_ready(redis->arg);
}

static void greet(struct redis *redis)
{
	const struct redis_conf *conf = redis->conf;
	struct slice user = slice_str(conf->username != NULL ? conf->username : "default");

	CHECK(redis->state == REDIS_CONNECTING || redis->state == REDIS_SECURING);
	redis_set_state(redis, REDIS_GREETING);
	wire_watch_reading(&redis->wire, true);
	if (conf->password != NULL && conf->username == NULL)
		put(redis, (struct slice[]){ SLICE_LIT("AUTH"), slice_str(conf->password) }, 2,
		    NULL, redis);
	else if (conf->password != NULL)
		put(redis, (struct slice[]){ SLICE_LIT("AUTH"), user, slice_str(conf->password) },
		    3, NULL, redis);
	if (conf->channel != NULL)
		put(redis, (struct slice[]){ SLICE_LIT("SUBSCRIBE"), slice_str(conf->channel) }, 2,
		    on_greeted, redis);
	else
		put(redis, (struct slice[]){ SLICE_LIT("PING") }, 1, on_greeted, redis);
}

/* ---- TLS ---- */

static void secure(struct redis *redis)
{
	struct error err;
	enum tls_step step;
	struct tls *tls;

	CHECK(redis->state == REDIS_SECURING && redis->tls != NULL);
	step = tls_handshake(redis->tls, &err);
	wire_watch_reading(&redis->wire, step == TLS_WANTS_READ);
	wire_watch_writing(&redis->wire, step == TLS_WANTS_WRITE);
	if (step == TLS_WANTS_READ || step == TLS_WANTS_WRITE)
		return;
	if (step != TLS_DONE) {
		redis_lose(redis, step == TLS_FAILED ? err.text : "it does not speak TLS");
		return;
	}
	tls = redis->tls;
	redis->tls = NULL;
	wire_set_tls(&redis->wire, tls);
	greet(redis);
}

static void begin(struct redis *redis)
{
	CHECK(redis->state == REDIS_CONNECTING && redis->tls == NULL);
	if (!redis->url.is_tls) {
		greet(redis);
		return;
	}
	redis_set_state(redis, REDIS_SECURING);
	redis->tls = tls_connect(redis->conf->trust, redis->url.host, redis->wire.fd);
	secure(redis);
}

/* ---- reading ---- */

static void take_reply(struct redis *redis, const redisReply *reply)
{
	struct awaited *awaited;

	CHECK(redis->state >= REDIS_GREETING);
	/* While subscribed: ["message", channel, text]. */
	if (reply->type == REDIS_REPLY_ARRAY && redis->conf->channel != NULL &&
	    reply->elements == 3 &&
	    slice_is_equal(redis_text(reply->element[0]), SLICE_LIT("message"))) {
		redis->ops->on_message(redis->arg, redis_text(reply->element[2]));
		return;
	}
	if (list_is_empty(&redis->sent)) {
		redis_lose(redis, "it sends replies to nothing");
		return;
	}
	if (redis->state == REDIS_GREETING && reply->type == REDIS_REPLY_ERROR) {
		char why[sizeof(redis->why)];

		snprintf(why, sizeof(why), "it answers: %.*s",
			 reply->len < 100 ? (int)reply->len : 100, reply->str);
		redis_lose(redis, why);
		return;
	}
	awaited = container_of(redis->sent.next, struct awaited, link);
	list_remove(&awaited->link);
	if (awaited->on_reply != NULL)
		awaited->on_reply(awaited->arg, reply);
	free(awaited);
}

/* False: the connection is lost. */
static bool take_replies(struct redis *redis)
{
	while (redis->state >= REDIS_GREETING) {
		void *reply = NULL;

		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
			redis_lose(redis, "it does not speak the protocol of Redis");
			return false;
		}
		if (reply == NULL)
			break;
		redis->reply_bytes = 0;
		take_reply(redis, reply);
		freeReplyObject(reply);
	}
	if (redis->reply_bytes > REDIS_REPLY_BYTES_MAX) {
		redis_lose(redis, "its reply is too long");
		return false;
	}
	return redis->state >= REDIS_GREETING;
}

static void on_readable(struct wire *wire)
{
	struct redis *redis = container_of(wire, struct redis, wire);
	char bytes[READ_BYTES];

	if (redis->state == REDIS_SECURING) {
		secure(redis);
		return;
	}
	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = wire_read(wire, bytes, sizeof(bytes));

		if (n == WIRE_AGAIN)
			return;
		if (n <= 0) {
			redis_lose(redis, "it has closed the connection");
			return;
		}
		redis->heard_ms = clock_now_ms();
		redis->reply_bytes += (size_t)n;
		if (redisReaderFeed(redis->reader, bytes, (size_t)n) != REDIS_OK ||
		    !take_replies(redis))
			return;
	}
}

static void on_writable(struct wire *wire)
{
	struct redis *redis = container_of(wire, struct redis, wire);
	int error = 0;
	socklen_t size = sizeof(error);

	if (redis->state == REDIS_SECURING) {
		secure(redis);
		return;
	}
	if (redis->state != REDIS_CONNECTING) {
		redis_write(redis);
		return;
	}
	if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error != 0) {
		redis_lose(redis, strerror(error));
		return;
	}
	begin(redis);
}

static const struct wire_ops wire_ops = { .on_readable = on_readable, .on_writable = on_writable };

/* ---- connecting ---- */

/* Returns a socket that connects, or -1 with errno. */
static int open_socket(const struct sockaddr *address, socklen_t size)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0)
		return -1;
	if (address->sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, address, size) < 0 && errno != EINPROGRESS) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int open_unix(const struct store_url *url)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, url->host, strlen(url->host));
	return open_socket((const struct sockaddr *)&address, sizeof(address));
}

/* The first address that can be tried. Which of them answers a name server decides, not we. */
static int open_tcp(const struct store_url *url, const char **why_r)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	int fd = -1, result = getaddrinfo(url->host, url->port, &hints, &list);

	if (result != 0) {
		*why_r = gai_strerror(result);
		return -1;
	}
	for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next)
		fd = open_socket(at->ai_addr, at->ai_addrlen);
	if (fd < 0)
		*why_r = strerror(errno);
	freeaddrinfo(list);
	return fd;
}

static void redis_connect(struct redis *redis)
{
	const char *why = NULL;
	int fd = redis->url.is_unix ? open_unix(&redis->url) : open_tcp(&redis->url, &why);

	CHECK(redis->state == REDIS_WAITING);
	redis_set_state(redis, REDIS_CONNECTING);
	if (redis->reader != NULL)
		redisReaderFree(redis->reader);
	redis->reader = redisReaderCreate();
	CHECK(redis->reader != NULL);
	if (fd < 0) {
		redis_lose(redis, why != NULL ? why : strerror(errno));
		return;
	}
	wire_init(&redis->wire, redis->loop, fd, &wire_ops);
	wire_watch_writing(&redis->wire, true);
	timer_start(redis->loop, &redis->timer, REDIS_PING_MS);
}

/* A store that is there answers a PING. */
static void look_after(struct redis *redis)
{
	uint64_t now_ms = clock_now_ms(), waited_ms = 0;

	if (redis->state != REDIS_READY && now_ms - redis->since_ms >= REDIS_CONNECT_MS) {
		redis_lose(redis, "it cannot be reached in time");
		return;
	}
	if (!list_is_empty(&redis->sent))
		waited_ms = now_ms - container_of(redis->sent.next, struct awaited, link)->sent_ms;
	if ((waited_ms >= REDIS_SILENCE_MS && now_ms - redis->heard_ms >= REDIS_SILENCE_MS) ||
	    waited_ms >= REDIS_SLOW_MS || redis->out.len > REDIS_UNSENT_BYTES_MAX) {
		redis_lose(redis, "it does not answer");
		return;
	}
	if (redis->state == REDIS_READY && list_is_empty(&redis->sent))
		put(redis, (struct slice[]){ SLICE_LIT("PING") }, 1, NULL, redis);
	timer_start(redis->loop, &redis->timer, REDIS_PING_MS);
}

static void on_timer(struct timer *timer)
{
	struct redis *redis = container_of(timer, struct redis, timer);

	if (redis->state == REDIS_WAITING)
		redis_connect(redis);
	else
		look_after(redis);
}

/* ---- whole ---- */

void redis_prepare(void)
{
	struct addrinfo *list = NULL;

	/* The C library reads its configuration, and loads what it needs, with the first name. */
	tls_init();
	if (getaddrinfo("localhost", NULL, NULL, &list) == 0)
		freeaddrinfo(list);
}

struct redis *redis_new(struct loop *loop, const struct redis_conf *conf,
			const struct redis_ops *ops, void *arg)
{
	struct redis *redis = mem_zalloc(sizeof(*redis));

	redis->loop = loop;
	redis->conf = conf;
	redis->ops = ops;
	redis->arg = arg;
	redis->wire.fd = -1;
	redis->retry_ms = REDIS_RETRY_MIN_MS;
	CHECK(store_url_parse(conf->url, &redis->url, NULL) == 0);
	list_init(&redis->sent);
	timer_init(&redis->timer, on_timer);
	redis_set_state(redis, REDIS_WAITING);
	timer_start(loop, &redis->timer, 0);
	return redis;
}

void redis_free(struct redis **redis)
{
	struct redis *one = *redis;

	*redis = NULL;
	if (one == NULL)
		return;
	timer_stop(&one->timer);
	end_awaited(one, false);
	redis_close(one);
	if (one->reader != NULL)
		redisReaderFree(one->reader);
	buf_fini(&one->out);
	free(one);
}

bool redis_is_ready(const struct redis *redis)
{
	return redis->state == REDIS_READY;
}
