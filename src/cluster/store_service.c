/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connections: for commands, and for what other nodes announce. What is to be written follows from a
 * comparison of the gateway's lines with those that were written before; while the store cannot be
 * reached nothing is lost by that, and all is written as soon as it can be.
 */
#include "cluster/store_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "auth/fetch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/halves.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "cluster/denial_line.h"
#include "cluster/log_copies.h"
#include "cluster/redis.h"
#include "io/ipc_channel.h"
#include "obs/log.h"
#include "router/kept_sessions.h"
#include "session/session.h"

#define LIFE_MIN_MS (60 * UINT64_C(1000))
#define UNSENT_BYTES_MAX (32 * 1024 * 1024)
#define TICKETS_MAX \
	1024 /* questions that wait for the store; beyond that it counts as out of reach */
#define TAKING_MS 10
#define TAKEN_MS 2000 /* by then what a gateway has taken is in its file */
#define DENIALS_EACH \
	16 /* news of them in one answer: the gateway looks at all that is open for each */
#define DENIALS_BYTES_MAX \
	(64 * 1024) /* that wait for the gateway; beyond that they are read anew */
#define DENIALS_SCANNED "100"
#define COUNTS_WAITING_MAX (64 * 1024) /* bytes for the gateway; further ones are left out */
#define REFRESH_MS 5000

/* A session or leg of this node, as it is in the store, or is to be. */
struct entry {
	struct map_link link;
	struct list all;
	char id[DIGEST_TEXT];
	uint64_t hash;     /* of its line, as it was written */
	uint64_t due_ms;   /* when it is to be written again; 0: at once */
	uint64_t taken_ms; /* when it was taken over, until it is in the gateway's file; else 0 */
	bool is_seen;      /* by the comparison that is under way */
	bool is_lost;      /* another node has it, which the gateway is to be told */
};

/* A question of the gateway for a session. */
struct ticket {
	struct list link;
	struct store_service *service;
	uint32_t id;
	bool is_cancelled;
	struct buf owner;
	struct buf ids; /* that it asks for, with spaces between */
	size_t id_count;
	bool wants_logs;
};

struct store_service {
	struct loop *loop;
	const struct cluster_conf *conf;
	store_service_end_fn *on_end;
	void *arg;
	struct ipc_channel wire;
	const struct halves *file;
	char *text; /* a copy of the gateway's */
	struct log_copies copies;
	uint32_t logged; /* the question that waits until all is written; 0: none */
	uint64_t life_ms;
	uint64_t seed;
	struct map by_id;
	struct list entries;
	struct list waiting; /* tickets that are to be sent */
	struct list tickets; /* that were sent, and wait for the store */
	size_t ticket_count, sent_count;
	struct timer taking;
	struct timer refresh;
	struct redis_conf command_conf, channel_conf;
	struct redis *commands, *announcements;
	char *channel, *since, *denials_key; /* PREFIX:news, PREFIX:since, PREFIX:denials */
	struct buf denials, counts;          /* lines for the gateway */
	bool is_scanning;                    /* the denials of the store */
	bool must_scan;                      /* from the beginning, or from `cursor` */
	char cursor[24];
	uint32_t watch; /* the question that waits; 0: none */
	bool is_up;
	bool is_news; /* is_up has not been told */
	char why[160];
	bool is_refused;      /* something, by the store, since the last refresh */
	bool is_log_refused;  /* likewise */
	bool is_refusal_told; /* that was logged */
	char known_since[32]; /* what the store has said of `since`; empty: nothing */
};

/* ---- answers to the gateway ---- */

static void answer(struct store_service *service, uint32_t id, int status, const char *error,
		   struct slice body, struct slice etag)
{
	const struct ipc_message message = {
		.type = IPC_ANSWER,
		.answer = { id, status, (uint32_t)body.n, 0 },
		.texts = { slice_of(error, strnlen(error, FETCH_FIELD_BYTES_MAX)),
			   slice_of(NULL, 0), etag },
	};

	CHECK(body.n <= FETCH_STORE_BODY_BYTES_MAX);
	if (!ipc_channel_is_open(&service->wire))
		return;
	ipc_channel_send(&service->wire, &message);
	ipc_channel_send_body(&service->wire, id, body);
}

static void answer_word(struct store_service *service, uint32_t id, int status, const char *error)
{
	answer(service, id, status, error, slice_of(NULL, 0), slice_of(NULL, 0));
}

static void scan_denials(struct store_service *service);

/* The logs are in the store as they are, or have been refused there. */
static void tell_logged(struct store_service *service)
{
	uint32_t id = service->logged;

	if (id == 0 || (service->is_up && !log_copies_are_written(&service->copies)))
		return;
	service->logged = 0;
	answer_word(service, id, service->is_up ? 200 : 503, "");
}

/* Moves lines that wait for the gateway, as many as one answer may have. */
static void move_lines(struct buf *lines, struct buf *waiting, size_t most)
{
	struct slice rest = buf_slice(waiting);

	for (size_t i = 0; i < most && rest.n > 0 && lines->len <= STORE_LINES_BYTES_MAX; i++) {
		buf_append_slice(lines, slice_cut(&rest, '\n'));
		buf_append_char(lines, '\n');
	}
	buf_consume(waiting, waiting->len - rest.n);
}

static void tell_news(struct store_service *service)
{
	at_end(buf_fini) struct buf lines = { 0 };
	uint32_t id = service->watch;

	if (id == 0)
		return;
	if (service->is_news && service->is_up)
		buf_append_str(&lines, "up\n");
	else if (service->is_news)
		buf_printf(&lines, "down %s\n", service->why);
	service->is_news = false;
	LIST_FOREACH(node, &service->entries) {
		struct entry *entry = container_of(node, struct entry, all);

		if (!entry->is_lost || lines.len > STORE_LINES_BYTES_MAX)
			continue;
		entry->is_lost = false;
		buf_printf(&lines, "lost %.*s\n", DIGEST_TEXT, entry->id);
	}
	move_lines(&lines, &service->denials, DENIALS_EACH);
	move_lines(&lines, &service->counts, SIZE_MAX);
	if (lines.len > 0) {
		service->watch = 0;
		answer(service, id, 200, "", buf_slice(&lines), slice_of(NULL, 0));
	}
	scan_denials(service);
}

/* ---- entries ---- */

static struct entry *find_entry(const struct store_service *service, struct slice id)
{
	if (id.n != DIGEST_TEXT)
		return NULL;
	for (struct map_link *at = map_find_link(&service->by_id, text_hash(service->seed, id));
	     at != NULL; at = at->next) {
		struct entry *entry = container_of(at, struct entry, link);

		if (slice_is_equal(slice_of(entry->id, DIGEST_TEXT), id))
			return entry;
	}
	return NULL;
}

static struct entry *add_entry(struct store_service *service, struct slice id)
{
	struct entry *entry = mem_zalloc(sizeof(*entry));

	memcpy(entry->id, id.p, DIGEST_TEXT);
	list_append(&service->entries, &entry->all);
	map_insert_link(&service->by_id, text_hash(service->seed, id), &entry->link);
	return entry;
}

static void drop_entry(struct store_service *service, struct entry *entry)
{
	map_remove_link(&service->by_id, &entry->link);
	list_remove(&entry->all);
	free(entry);
}

static void note_lost(struct store_service *service, struct slice id)
{
	struct entry *entry = find_entry(service, id);

	if (entry == NULL)
		return;
	entry->is_lost = true;
	tell_news(service);
}

/* ---- writing to the store ---- */

static bool is_refusal(struct store_service *service, const redisReply *reply)
{
	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return false;
	if (!service->is_refusal_told)
		LOG(STORE_REFUSES, LOG_SLICE("error", slice_of(reply->str, (size_t)reply->len)));
	service->is_refusal_told = true;
	return true;
}

/* What was refused is written again, and read, with each refresh until it is not. */
static void note_refusal(struct store_service *service, const redisReply *reply)
{
	service->is_refused |= is_refusal(service, reply);
}

/* It is somebody else's, if the reply names one: then nothing was written. */
static void on_written(void *arg, const redisReply *reply)
{
	struct store_service *service = arg;

	note_lost(service, redis_text(reply));
	note_refusal(service, reply);
}

static void on_log_reply(void *arg, const redisReply *reply)
{
	struct store_service *service = arg;

	note_lost(service, redis_text(reply));
	service->is_log_refused |= is_refusal(service, reply);
	tell_logged(service);
}

static void write_entry(struct store_service *service, const struct entry *entry,
			struct slice owner, struct slice line)
{
	static const char script[] =
		"local n = redis.call('HGET', KEYS[1], 'n') "
		"if n and n ~= ARGV[1] then return ARGV[5] end "
		"redis.call('HSET', KEYS[1], 'n', ARGV[1], 'o', ARGV[2], 'l', ARGV[3]) "
		"redis.call('PEXPIRE', KEYS[1], ARGV[4]) "
		"return 1";
	at_end(buf_fini) struct buf key = { 0 };
	struct slice id = slice_of(entry->id, DIGEST_TEXT);
	char life[24];

	CHECK(service->is_up && line.n > 0);
	store_key_append(&key, service->conf->prefix, 's', id);
	snprintf(life, sizeof(life), "%" PRIu64, service->life_ms);
	redis_send_script(service->commands, script,
			  (struct slice[]){ SLICE_LIT("1"), buf_slice(&key),
					    slice_str(service->conf->node), owner, line,
					    slice_str(life), id },
			  7, on_written, service);
}

static void remove_record(struct store_service *service, struct slice id)
{
	static const char script[] =
		"if redis.call('HGET', KEYS[1], 'n') ~= ARGV[1] then return 1 end "
		"redis.call('DEL', KEYS[1]) "
		"for _, number in ipairs(redis.call('SMEMBERS', ARGV[2])) do "
		"  redis.call('DEL', ARGV[2] .. ':' .. number) "
		"end "
		"redis.call('DEL', ARGV[2]) "
		"return 1";
	at_end(buf_fini) struct buf key = { 0 }, streams = { 0 };

	CHECK(service->is_up && id.n == DIGEST_TEXT);
	store_key_append(&key, service->conf->prefix, 's', id);
	store_key_append(&streams, service->conf->prefix, 'e', id);
	redis_send_script(service->commands, script,
			  (struct slice[]){ SLICE_LIT("1"), buf_slice(&key),
					    slice_str(service->conf->node), buf_slice(&streams) },
			  4, on_written, service);
}

/* ---- denials ---- */

/* It has expired, or nobody believes it. */
static void remove_denial(struct store_service *service, struct slice field, struct slice value)
{
	static const char script[] = "if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then "
				     "redis.call('HDEL', KEYS[1], ARGV[1]) end return 1";

	redis_send_script(service->commands, script,
			  (struct slice[]){ SLICE_LIT("1"), slice_str(service->denials_key), field,
					    value },
			  4, on_written, service);
}

static void take_denial(struct store_service *service, struct slice value, struct slice field)
{
	at_end(buf_fini) struct buf line = { 0 };
	struct denial denial;

	buf_append_slice(&line, value);
	buf_append_char(&line, '\t');
	buf_append_slice(&line, field);
	if (denial_line_read(buf_slice(&line), &denial) && denial.until_ms > clock_wall_ms())
		buf_printf(&service->denials, "denial %.*s\n", SLICE_ARG(buf_slice(&line)));
	else if (service->is_up)
		remove_denial(service, field, value);
}

/* [cursor, [field, value, …]] */
static void on_scanned(void *arg, const redisReply *reply)
{
	struct store_service *service = arg;
	const redisReply *pairs =
		reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ?
			reply->element[1] :
			NULL;
	struct slice cursor = pairs != NULL ? redis_text(reply->element[0]) : slice_of(NULL, 0);

	service->is_scanning = false;
	note_refusal(service, reply);
	if (cursor.n == 0 || cursor.n >= sizeof(service->cursor) ||
	    pairs->type != REDIS_REPLY_ARRAY) {
		service->must_scan = true; /* with the next refresh */
		return;
	}
	for (size_t i = 0; i + 1 < pairs->elements; i += 2)
		take_denial(service, redis_text(pairs->element[i + 1]),
			    redis_text(pairs->element[i]));
	if (!service->must_scan) {
		snprintf(service->cursor, sizeof(service->cursor), "%.*s", SLICE_ARG(cursor));
		service->must_scan = strcmp(service->cursor, "0") != 0;
	}
	tell_news(service);
}

/* What was read before goes to the gateway first. */
static void scan_denials(struct store_service *service)
{
	if (!service->must_scan || service->is_scanning || !service->is_up ||
	    service->denials.len > 0)
		return;
	service->must_scan = false;
	service->is_scanning = true;
	redis_send(service->commands,
		   (struct slice[]){ SLICE_LIT("HSCAN"), slice_str(service->denials_key),
				     slice_str(service->cursor), SLICE_LIT("COUNT"),
				     SLICE_LIT(DENIALS_SCANNED) },
		   5, on_scanned, service);
}

static void scan_anew(struct store_service *service)
{
	snprintf(service->cursor, sizeof(service->cursor), "0");
	service->must_scan = true;
	scan_denials(service);
}

/* Lines "VALUE<tab>FIELD". */
static void write_denials(struct store_service *service, struct slice lines)
{
	static const char script[] =
		"local had = redis.call('HGET', KEYS[1], ARGV[1]) "
		"if not had or had < ARGV[2] then "
		"  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
		"  redis.call('PUBLISH', ARGV[3], 'denial ' .. ARGV[2] .. '\\t' .. ARGV[1]) "
		"end "
		"return 1";

	while (service->is_up && lines.n > 0) {
		struct slice field = slice_cut(&lines, '\n'), value;
		struct denial denial;

		if (!denial_line_read(field, &denial))
			continue;
		value = slice_cut(&field, '\t');
		redis_send_script(service->commands, script,
				  (struct slice[]){ SLICE_LIT("1"), slice_str(service->denials_key),
						    field, value, slice_str(service->channel) },
				  5, on_written, service);
	}
}

/* ---- comparing ---- */

struct line {
	struct slice id;
	struct slice owner;
};

/* Takes `"…"` of DIGEST_TEXT characters behind `before`. */
static bool take_digest(struct slice *rest, const char *before, struct slice *digest_r)
{
	size_t n = strlen(before);

	if (rest->n < n + DIGEST_TEXT + 1 || memcmp(rest->p, before, n) != 0 ||
	    rest->p[n + DIGEST_TEXT] != '"')
		return false;
	*digest_r = slice_of(rest->p + n, DIGEST_TEXT);
	*rest = slice_of(rest->p + n + DIGEST_TEXT + 1, rest->n - n - DIGEST_TEXT - 1);
	return true;
}

/* Takes `"owner":"…","server":"…"`; no name of a server has a quote or an escape. */
static bool take_owner(struct slice *rest, struct slice *owner_r)
{
	static const struct slice before = SLICE(",\"server\":\"");
	const char *begin = rest->p + 1;
	struct slice digest;
	const char *end;

	if (!take_digest(rest, ",\"owner\":\"", &digest) || !slice_has_prefix(*rest, before))
		return false;
	end = memchr(rest->p + before.n, '"', rest->n - before.n);
	if (end != NULL)
		*owner_r = slice_of(begin, (size_t)(end + 1 - begin));
	return end != NULL;
}

/* Lines of shared pools are this node's own. */
static bool read_line(struct slice line, struct line *line_r)
{
	struct slice rest = line;

	return (take_digest(&rest, "{\"id\":\"", &line_r->id) ||
		take_digest(&rest, "{\"leg\":\"", &line_r->id)) &&
	       take_owner(&rest, &line_r->owner) && line.n < FETCH_BODY_BYTES_MAX;
}

static void take_line(struct store_service *service, struct slice text)
{
	uint64_t now_ms = clock_now_ms(), hash = text_hash(service->seed, text);
	struct entry *entry;
	struct line line;

	if (!read_line(text, &line))
		return;
	entry = find_entry(service, line.id);
	if (entry == NULL)
		entry = add_entry(service, line.id);
	entry->is_seen = true;
	if (entry->hash == hash && now_ms < entry->due_ms)
		return;
	entry->hash = hash;
	entry->due_ms = now_ms + service->life_ms / 3;
	write_entry(service, entry, line.owner, text);
}

/* A copy of the gateway's text, which it may replace twice while that is read: then it has been told to us again. */
static bool copy_text(struct store_service *service, struct slice *text_r)
{
	static const struct slice first = SLICE(KEPT_SESSIONS_FIRST_LINE);
	struct slice text;

	if (!halves_read(service->file, KEPT_SESSIONS_TEXT_BYTES, &text) || text.n < first.n)
		return false;
	memcpy(service->text, text.p, text.n);
	text.p = service->text;
	if (!slice_has_prefix(text, first) || text.p[text.n - 1] != '\n')
		return false;
	*text_r = slice_of(text.p + first.n, text.n - first.n);
	return true;
}

/* Brings the store to what the gateway has. */
static void compare(struct store_service *service)
{
	struct slice text;

	if (!service->is_up || !copy_text(service, &text))
		return;
	while (text.n > 0)
		take_line(service, slice_cut(&text, '\n'));
	LIST_FOREACH_SAFE(node, &service->entries) {
		struct entry *entry = container_of(node, struct entry, all);

		if (entry->is_seen) {
			entry->is_seen = false;
			entry->taken_ms = 0;
		} else if (entry->taken_ms == 0) { /* the gateway has forgotten it */
			remove_record(service, slice_of(entry->id, DIGEST_TEXT));
			drop_entry(service, entry);
		} else if (clock_now_ms() - entry->taken_ms >
			   TAKEN_MS) { /* it did not wait for it */
			drop_entry(service, entry);
		}
	}
}

/* All, as the store may have lost it. */
static void write_anew(struct store_service *service)
{
	LIST_FOREACH(node, &service->entries)
		container_of(node, struct entry, all)->due_ms = 0;
	compare(service);
}

/* The store may lack anything, and the gateway tells all that it has said of denials again. */
static void catch_up(struct store_service *service)
{
	write_anew(service);
	scan_anew(service);
	service->is_news = true;
	tell_news(service);
}

/* Another time than before: the store was emptied under its connections. */
static void on_since(void *arg, const redisReply *reply)
{
	struct store_service *service = arg;
	struct slice text = redis_text(reply), known = slice_str(service->known_since);

	if (text.n == 0 || text.n >= sizeof(service->known_since) || slice_is_equal(text, known))
		return;
	snprintf(service->known_since, sizeof(service->known_since), "%.*s", SLICE_ARG(text));
	if (known.n == 0 || !service->is_up)
		return;
	catch_up(service);
	log_copies_write_anew(&service->copies);
}

/* Since when the store has what it has; from now on, if it has nothing. */
static void note_since(struct store_service *service)
{
	static const char script[] = "local t = redis.call('TIME') "
				     "redis.call('SET', KEYS[1], t[1] .. '.' .. t[2], 'NX') "
				     "return redis.call('GET', KEYS[1])";

	redis_send_script(service->commands, script,
			  (struct slice[]){ SLICE_LIT("1"), slice_str(service->since) }, 2,
			  on_since, service);
}

/* What the gateway has ended, whoever has written it: a service before this one may have. */
static void remove_ended(struct store_service *service, struct slice ids)
{
	while (service->is_up && ids.n > 0) {
		struct slice id = slice_cut(&ids, ' ');
		struct entry *entry = find_entry(service, id);

		if (id.n != DIGEST_TEXT || (entry != NULL && entry->taken_ms == 0))
			continue; /* it is in the file */
		if (entry != NULL)
			drop_entry(service, entry);
		remove_record(service, id);
	}
}

static void on_refresh(struct timer *timer)
{
	struct store_service *service = container_of(timer, struct store_service, refresh);

	if (service->is_up)
		note_since(service);
	if (service->is_refused && service->is_up) {
		service->is_refused = false;
		catch_up(service);
	} else {
		service->is_refusal_told = service->is_log_refused;
		compare(service);
		scan_denials(service);
	}
	service->is_log_refused = false;
	if (service->is_up)
		log_copies_try_again(&service->copies);
	timer_start(service->loop, timer, REFRESH_MS);
}

/* ---- taking over ---- */

static void ticket_free(struct ticket *ticket)
{
	ticket->service->ticket_count--;
	list_remove(&ticket->link);
	buf_fini(&ticket->owner);
	buf_fini(&ticket->ids);
	free(ticket);
}

/* It is ours now, whatever was found before. */
static void note_taken(struct store_service *service, struct slice ids)
{
	while (ids.n > 0) {
		struct slice id = slice_cut(&ids, ' ');
		struct entry *entry = find_entry(service, id);

		if (entry == NULL && id.n == DIGEST_TEXT)
			entry = add_entry(service, id);
		if (entry == NULL)
			continue;
		entry->is_lost = false;
		entry->taken_ms = clock_now_ms();
	}
}

static void append_log(struct buf *lines, struct slice text)
{
	if (text.n == 0 || lines->len + text.n > FETCH_STORE_BODY_BYTES_MAX - FETCH_BODY_BYTES_MAX)
		return;
	buf_printf(lines, "log %zu\n", text.n);
	buf_append_slice(lines, text);
}

static void send_tickets(struct store_service *service);

/* [node before, line for each ID, log …]; a leg that is not there has an empty line. */
static void on_taken(void *arg, const redisReply *reply)
{
	struct ticket *ticket = arg;
	struct store_service *service = ticket->service;
	at_end(buf_fini) struct buf lines = { 0 };
	size_t count = reply != NULL && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;

	for (size_t i = 1; i < count && i <= ticket->id_count; i++) {
		struct slice line = redis_text(reply->element[i]);

		if (line.n == 0 || lines.len + line.n + 1 > FETCH_BODY_BYTES_MAX ||
		    memchr(line.p, '\n', line.n) != NULL ||
		    slice_has_prefix(line, SLICE_LIT("log ")))
			continue;
		buf_append_slice(&lines, line);
		buf_append_char(&lines, '\n');
	}
	for (size_t i = ticket->id_count + 1; lines.len > 0 && i < count; i++)
		append_log(&lines, redis_text(reply->element[i]));
	if (lines.len > 0)
		note_taken(service, buf_slice(&ticket->ids));
	if (ticket->is_cancelled)
		;
	else if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
		answer_word(service, ticket->id, 503, reply != NULL ? reply->str : "no answer");
	else if (lines.len == 0 || redis_text(reply->element[0]).n > SESSION_NODE_MAX)
		answer_word(service, ticket->id, 404, "");
	else
		answer(service, ticket->id, 200, "", buf_slice(&lines),
		       redis_text(reply->element[0]));
	ticket_free(ticket);
	service->sent_count--;
	if (reply != NULL)
		send_tickets(service);
}

/*
 * Those of this owner become this node's. What a node has that is gone it takes from itself, so that it is the one that
 * others would have to take it from.
 */
static const char take_script[] =
	"local had = redis.call('HMGET', KEYS[1], 'n', 'o') "
	"if not had[1] then "
	"  local now = redis.call('TIME')[1] "
	"  local since = redis.call('GET', ARGV[5]) "
	"  if not since then redis.call('SET', ARGV[5], now) end "
	"  if now - (since or now) < " STORE_YOUNG_S " then "
	"    return redis.error_reply('YOUNG it was lost a moment ago') "
	"  end "
	"end "
	"if had[2] ~= ARGV[2] then return {} end "
	/* The newest logs that there is room for, of one epoch, and the session's own; oldest first. */
	"local streams, room, epoch = ARGV[#ARGV - 1], tonumber(ARGV[#ARGV]), nil "
	"local numbers, chosen, sorted = redis.pcall('SMEMBERS', streams), {}, {} "
	"if numbers.err or (ARGV[6] == '' and had[1] == ARGV[1]) then numbers = {} end "
	"for _, number in ipairs(numbers) do "
	"  if tonumber(number) then sorted[#sorted + 1] = number end "
	"end "
	"table.sort(sorted, function(a, b) return tonumber(a) > tonumber(b) end) "
	"local own = redis.pcall('GET', streams .. ':0') "
	"if type(own) == 'string' then room = room - #own end "
	"for _, number in ipairs(sorted) do "
	"  local log = redis.pcall('GET', streams .. ':' .. number) "
	"  local of = type(log) == 'string' and string.match(log, '^of %S+ (%d+) ') "
	"  epoch = epoch or of "
	"  if of and of == epoch and (number == '0' or (#log <= room and #chosen < tonumber(ARGV[8]))) then "
	"    if number ~= '0' then room = room - #log end "
	"    table.insert(chosen, 1, log) "
	"  end "
	"end "
	"local lines = { had[1] } "
	"for i, key in ipairs(KEYS) do "
	"  local l = redis.pcall('HGET', key, 'l') "
	"  if type(l) == 'string' and #l < tonumber(ARGV[7]) then "
	"    redis.call('HSET', key, 'n', ARGV[1]) "
	"    redis.call('PEXPIRE', key, ARGV[3]) "
	"    if had[1] ~= ARGV[1] then "
	"      redis.call('PUBLISH', ARGV[4], 'taken ' .. had[1] .. ' ' .. ARGV[8 + i]) "
	"    end "
	"    lines[i + 1] = l "
	"  else "
	"    lines[i + 1] = '' "
	"  end "
	"end "
	"for _, log in ipairs(chosen) do lines[#lines + 1] = log end "
	"return lines";

static void ticket_send(struct ticket *ticket)
{
	struct store_service *service = ticket->service;
	struct slice arguments[REDIS_ARGUMENTS_MAX], ids[STORE_TAKE_MAX];
	struct slice rest = buf_slice(&ticket->ids);
	struct buf keys[STORE_TAKE_MAX] = { 0 };
	at_end(buf_fini) struct buf streams = { 0 };
	char number[24], life[24], line_max[24], logs_max[24], room[24];
	size_t count = 0, n = 0;

	for (; rest.n > 0 && count < STORE_TAKE_MAX; count++) {
		ids[count] = slice_cut(&rest, ' ');
		store_key_append(&keys[count], service->conf->prefix, 's', ids[count]);
	}
	ticket->id_count = count;
	if (count > 0)
		store_key_append(&streams, service->conf->prefix, 'e', ids[0]);
	snprintf(number, sizeof(number), "%zu", count);
	snprintf(line_max, sizeof(line_max), "%d", FETCH_BODY_BYTES_MAX);
	snprintf(logs_max, sizeof(logs_max), "%d", STORE_LOGS_MAX);
	snprintf(room, sizeof(room), "%d", LOG_COPY_BYTES_MAX);
	snprintf(life, sizeof(life), "%" PRIu64, service->life_ms);
	arguments[n++] = slice_str(number);
	for (size_t i = 0; i < count; i++)
		arguments[n++] = buf_slice(&keys[i]);
	arguments[n++] = slice_str(service->conf->node);
	arguments[n++] = buf_slice(&ticket->owner);
	arguments[n++] = slice_str(life);
	arguments[n++] = slice_str(service->channel);
	arguments[n++] = slice_str(service->since);
	arguments[n++] = ticket->wants_logs ? SLICE_LIT("logs") : SLICE_LIT("");
	arguments[n++] = slice_str(line_max);
	arguments[n++] = slice_str(logs_max);
	for (size_t i = 0; i < count; i++)
		arguments[n++] = ids[i];
	arguments[n++] = buf_slice(&streams);
	arguments[n++] = slice_str(room);
	redis_send_script(service->commands, take_script, arguments, n, on_taken, ticket);
	for (size_t i = 0; i < count; i++)
		buf_fini(&keys[i]);
}

/* A few at a time, as each may bring much; those that nobody waits for any more are not sent. */
static void send_tickets(struct store_service *service)
{
	LIST_DRAIN(struct ticket, ticket, &service->waiting, link) {
		bool has_room = service->sent_count < STORE_TAKING_MAX &&
				service->wire.unsent_bytes < UNSENT_BYTES_MAX / 2;

		if (!service->is_up)
			answer_word(service, ticket->id, 503, service->why);
		if (!service->is_up || ticket->is_cancelled) {
			ticket_free(ticket);
		} else if (has_room) {
			list_move(&service->tickets, &ticket->link);
			service->sent_count++;
			ticket_send(ticket);
		} else {
			timer_start(service->loop, &service->taking, TAKING_MS);
			return;
		}
	}
}

static void on_taking(struct timer *timer)
{
	send_tickets(container_of(timer, struct store_service, taking));
}

static void take_over(struct store_service *service, uint32_t id, struct slice question)
{
	struct ticket *ticket;

	if (!service->is_up || service->ticket_count >= TICKETS_MAX) {
		answer_word(service, id, 503, service->why);
		return;
	}
	ticket = mem_zalloc(sizeof(*ticket));
	ticket->service = service;
	ticket->id = id;
	ticket->wants_logs = question.n == 0 || question.p[question.n - 1] != '\n';
	buf_append_slice(&ticket->owner, slice_cut(&question, '\n'));
	buf_append_slice(&ticket->ids, slice_cut(&question, '\n'));
	service->ticket_count++;
	list_append(&service->waiting, &ticket->link);
	send_tickets(service);
}

/* ---- the store ---- */

static void set_up(struct store_service *service, bool is_up, const char *why)
{
	if (is_up)
		LOG(STORE_UP, LOG_STR("store", service->conf->store));
	else
		LOG(STORE_DOWN, LOG_STR("store", service->conf->store), LOG_STR("error", why));
	snprintf(service->why, sizeof(service->why), "%s", why);
	service->is_up = is_up;
	service->is_news = true;
	tell_news(service);
	tell_logged(service);
	send_tickets(service);
}

/*
 * Both connections are there. Others may have written and announced something meanwhile, and the store may have lost what
 * it had.
 */
static void on_ready(void *arg)
{
	struct store_service *service = arg;

	if (!redis_is_ready(service->commands) || !redis_is_ready(service->announcements))
		return;
	set_up(service, true, "");
	note_since(service);
	write_anew(service);
	log_copies_write_anew(&service->copies);
	scan_anew(service);
}

static void on_lost(void *arg, const char *why)
{
	struct store_service *service = arg;

	if (service->is_up)
		set_up(service, false, why);
}

static void on_failed(void *arg, const char *why)
{
	set_up(arg, false, why);
}

/* If commands cannot be sent either, that says so. */
static void on_announcements_failed(void *arg, const char *why)
{
	struct store_service *service = arg;

	if (redis_is_ready(service->commands))
		set_up(service, false, why);
}

/* By now this node may have taken it back: what the store says behind that counts. */
static void ask_who_has(struct store_service *service, struct slice id)
{
	static const char script[] = "if redis.call('HGET', KEYS[1], 'n') ~= ARGV[1] then "
				     "return ARGV[2] end return 1";
	at_end(buf_fini) struct buf key = { 0 };

	if (!service->is_up || find_entry(service, id) == NULL)
		return;
	store_key_append(&key, service->conf->prefix, 's', id);
	redis_send_script(service->commands, script,
			  (struct slice[]){ SLICE_LIT("1"), buf_slice(&key),
					    slice_str(service->conf->node), id },
			  4, on_written, service);
}

/* Of another node, in one line. */
static void take_counts(struct store_service *service, struct slice message)
{
	struct slice node = slice_cut(&message, ' ');
	struct slice text = slice_cut(&message, '\n');

	if (slice_is_equal(node, slice_str(service->conf->node)) || text.n > IPC_TEXT_BYTES_MAX ||
	    service->counts.len > COUNTS_WAITING_MAX)
		return;
	buf_printf(&service->counts, "counts %.*s\n", SLICE_ARG(text));
	tell_news(service);
}

static void on_announced(void *arg, struct slice message)
{
	struct store_service *service = arg;
	struct slice word = slice_cut(&message, ' ');
	struct slice value;

	if (slice_is_equal(word, SLICE_LIT("taken"))) {
		if (slice_is_equal(slice_cut(&message, ' '), slice_str(service->conf->node)))
			ask_who_has(service, message);
	} else if (slice_is_equal(word, SLICE_LIT("denial"))) {
		value = slice_cut(&message, '\t');
		if (service->denials.len > DENIALS_BYTES_MAX)
			scan_anew(service);
		else
			take_denial(service, value, message);
		tell_news(service);
	} else if (slice_is_equal(word, SLICE_LIT("counts"))) {
		take_counts(service, message);
	}
}

static const struct redis_ops command_ops = { .on_ready = on_ready,
					      .on_lost = on_lost,
					      .on_failed = on_failed };
static const struct redis_ops channel_ops = { .on_ready = on_ready,
					      .on_lost = on_lost,
					      .on_failed = on_announcements_failed,
					      .on_message = on_announced };

/* ---- being asked ---- */

/* It is not told again. */
static void on_published(void *arg, const redisReply *reply)
{
	(void)is_refusal(arg, reply);
}

static void tell_counts(struct store_service *service, struct slice text)
{
	at_end(buf_fini) struct buf message = { 0 };

	if (!service->is_up)
		return;
	buf_printf(&message, "counts %s %.*s", service->conf->node, SLICE_ARG(text));
	redis_send(service->commands,
		   (struct slice[]){ SLICE_LIT("PUBLISH"), slice_str(service->channel),
				     buf_slice(&message) },
		   3, on_published, service);
}

static void on_ask(struct store_service *service, const struct ipc_message *message)
{
	uint32_t id = message->ask.id;

	if (message->ask.kind == FETCH_STORE_TAKE) {
		take_over(service, id, message->texts[1]);
	} else if (message->ask.kind == FETCH_STORE_SAVED) {
		compare(service);
		remove_ended(service, message->texts[1]);
		answer_word(service, id, service->is_up ? 200 : 503, "");
	} else if (message->ask.kind == FETCH_STORE_LOGGED) {
		service->logged = id;
		if (service->is_up)
			log_copies_compare(&service->copies);
		tell_logged(service);
	} else if (message->ask.kind == FETCH_STORE_DENY) {
		if (message->texts[1].n == 0)
			scan_anew(service);
		write_denials(service, message->texts[1]);
		answer_word(service, id, service->is_up ? 200 : 503, "");
	} else if (message->ask.kind == FETCH_STORE_COUNT) {
		tell_counts(service, message->texts[1]);
		answer_word(service, id, service->is_up ? 200 : 503, "");
	} else if (message->ask.kind == FETCH_STORE_WATCH) {
		service->watch = id;
		tell_news(service);
	} else {
		answer_word(service, id, 0, "the store is not asked for this");
	}
}

static void on_cancel(struct store_service *service, uint32_t id)
{
	if (service->watch == id)
		service->watch = 0;
	if (service->logged == id)
		service->logged = 0;
	LIST_EACH(struct ticket, ticket, &service->tickets, link)
		ticket->is_cancelled |= ticket->id == id;
	LIST_EACH(struct ticket, ticket, &service->waiting, link)
		ticket->is_cancelled |= ticket->id == id;
}

static void on_wire_end(struct ipc_channel *wire)
{
	struct store_service *service = container_of(wire, struct store_service, wire);

	ipc_channel_close(wire);
	service->on_end(service->arg);
}

static void on_message(struct ipc_channel *wire, const struct ipc_message *message)
{
	struct store_service *service = container_of(wire, struct store_service, wire);

	if (message->type == IPC_ASK)
		on_ask(service, message);
	else if (message->type == IPC_CANCEL)
		on_cancel(service, message->cancel.id);
	else
		on_wire_end(wire);
}

static const struct ipc_channel_ops wire_ops = { .on_message = on_message, .on_end = on_wire_end };

/* ---- whole ---- */

struct store_service *store_service_new(struct loop *loop, const struct store_service_conf *conf,
					int fd, store_service_end_fn *on_end, void *arg,
					struct error *err)
{
	const struct cluster_conf *cluster = conf->cluster;
	struct store_service *service;
	void *file = mmap(NULL, KEPT_SESSIONS_FILE_BYTES, PROT_READ, MAP_SHARED, conf->sessions, 0);

	if (file == MAP_FAILED) {
		error_set_errno(err, "cannot read what the gateway keeps");
		return NULL;
	}
	service = mem_zalloc(sizeof(*service));
	service->loop = loop;
	service->conf = cluster;
	service->on_end = on_end;
	service->arg = arg;
	service->file = file;
	service->text = mem_alloc(KEPT_SESSIONS_TEXT_BYTES);
	log_copies_init(&service->copies, conf->streams);
	service->life_ms = conf->idle_ms > LIFE_MIN_MS ? conf->idle_ms : LIFE_MIN_MS;
	random_bytes(&service->seed, sizeof(service->seed));
	list_init(&service->entries);
	list_init(&service->tickets);
	list_init(&service->waiting);
	timer_init(&service->taking, on_taking);
	timer_init(&service->refresh, on_refresh);
	timer_start(loop, &service->refresh, REFRESH_MS);
	snprintf(service->why, sizeof(service->why), "it has not been reached yet");
	service->channel = mem_printf("%s:news", cluster->prefix);
	service->denials_key = mem_printf("%s:denials", cluster->prefix);
	service->since = mem_printf("%s:since", cluster->prefix);
	service->command_conf = (struct redis_conf){ .url = cluster->store,
						     .username = cluster->username,
						     .password = cluster->password,
						     .trust = conf->trust };
	service->channel_conf = service->command_conf;
	service->channel_conf.channel = service->channel;
	service->commands = redis_new(loop, &service->command_conf, &command_ops, service);
	service->announcements = redis_new(loop, &service->channel_conf, &channel_ops, service);
	service->copies.arg = service;
	service->copies.node = cluster->node;
	service->copies.prefix = cluster->prefix;
	service->copies.life_ms = service->life_ms;
	service->copies.redis = service->commands;
	service->copies.on_reply = on_log_reply;
	ipc_channel_init(&service->wire, loop, &wire_ops);
	service->wire.unsent_bytes_max = UNSENT_BYTES_MAX;
	ipc_channel_open(&service->wire, fd);
	return service;
}

void store_service_free(struct store_service **service)
{
	struct store_service *one = *service;

	*service = NULL;
	if (one == NULL)
		return;
	ipc_channel_close(&one->wire);
	timer_stop(&one->refresh);
	redis_free(&one->commands);
	redis_free(&one->announcements);
	log_copies_fini(&one->copies);
	timer_stop(&one->taking);
	LIST_DRAIN(struct ticket, ticket, &one->tickets, link)
		ticket_free(ticket);
	LIST_DRAIN(struct ticket, ticket, &one->waiting, link)
		ticket_free(ticket);
	while (!list_is_empty(&one->entries))
		drop_entry(one, container_of(one->entries.next, struct entry, all));
	munmap((void *)(uintptr_t)one->file, KEPT_SESSIONS_FILE_BYTES);
	free(one->channel);
	free(one->since);
	free(one->denials_key);
	buf_fini(&one->denials);
	buf_fini(&one->counts);
	free(one->text);
	free(one);
}
