/* SPDX-License-Identifier: Apache-2.0 */
#include "router/kept_sessions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "io/ipc.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "process/server.h"
#include "process/spawn.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"
#include "session/session.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#define SAVING_MS 300 /* changes within this time are written together */
#define STREAMS_BYTES_MAX ((size_t)16 * 1024 * 1024) /* that are read of one session: in one turn */
#define LINES_MAX (4 * KEPT_SESSIONS_TEXT_BYTES) /* of long ones, of which not all are written */
#define LINE_BEGIN "{\"id\":"
#define LEG_BEGIN "{\"leg\":"
#define HOLDING_MS 1000

/* ---- lines ---- */

static bool is_digest(struct json value, const struct digest *digest)
{
	at_end(buf_fini) struct buf text = { 0 };

	digest_append(&text, digest);
	return text_is_equal_secret(value.text, buf_slice(&text));
}

/* Of a session and its owner: the keeper knows it, whatever a gateway that was taken over writes. SEC-68 */
static void digest_bond(struct slice id, const struct principal *owner, struct digest *digest_r)
{
	struct digest digest;
	at_end(buf_fini) struct buf text = { 0 };

	digest_principal(owner, &digest);
	buf_append(&text, (const char *)digest.bytes, DIGEST_BYTES);
	buf_append_slice(&text, id);
	digest_bytes(buf_slice(&text), digest_r);
}

/* As in base64url, without quotes. */
static void append_text(struct buf *out, const struct digest *digest)
{
	char text[DIGEST_TEXT + 1];

	buf_append(out, text, text_base64url(digest->bytes, sizeof(digest->bytes), text));
}

static void append_owner(struct buf *out, const struct principal *owner)
{
	struct digest digest;

	digest_principal(owner, &digest);
	buf_append_str(out, "\"owner\":");
	digest_append(out, &digest);
}

static void append_server(struct buf *out, const struct server *server)
{
	buf_append_str(out, ",\"server\":");
	write_string(out, slice_str(server->conf.name));
}

void kept_session_name(struct buf *out, struct slice id, const struct principal *owner)
{
	struct digest digest;

	digest_bytes(id, &digest);
	buf_append_str(out, id.n > SESSION_ID_LENGTH ? LEG_BEGIN : LINE_BEGIN);
	digest_append(out, &digest);
	buf_append_char(out, ',');
	append_owner(out, owner);
}

static void write_fixed(struct kept_session *one, struct slice id, struct slice params)
{
	const struct client *client = one->client;

	kept_session_name(&one->line, id, client->principal);
	append_server(&one->line, client->server);
	buf_printf(&one->line, ",\"began\":%" PRIu64 ",\"agreed\":\"%.*s\"",
		   clock_wall_ms() - session_age_ms(client->session),
		   SLICE_ARG(client->pool->agreed->name));
	buf_printf(&one->line,
		   ",\"offers\":%u,\"tells\":%u,\"initialize\":", client->pool->capabilities.offers,
		   client->pool->capabilities.tells);
	splice_append(&one->line, params, NULL, 0, SPLICE_ONE_LINE);
	one->fixed = one->line.len;
}

/* What may change. */
static void write_rest(struct kept_sessions *kept, struct kept_session *one)
{
	const struct denial_marks *marks = one->client->session->marks;

	kept->bytes -= one->line.len;
	one->line.len = one->fixed;
	one->is_changed = false;
	if (one->client->level >= 0)
		buf_printf(&one->line, ",\"level\":\"%.*s\"",
			   SLICE_ARG(level_name(one->client->level)));
	buf_append_str(&one->line, ",\"subscriptions\":[");
	LIST_FOREACH(node, &one->client->subscriptions.items) {
		const struct text_set_item *item = container_of(node, struct text_set_item, link);

		/* As it is spelled between the quotes of JSON: text_set_spell. */
		write_comma(&one->line);
		buf_append_char(&one->line, '"');
		buf_append(&one->line, item->text, item->length);
		buf_append_char(&one->line, '"');
	}
	buf_append_char(&one->line, ']');
	if (marks != NULL) {
		buf_append_str(&one->line, ",\"marks\":[");
		write_string(&one->line, marks->issuer);
		for (size_t i = 0; i < DENIAL_BY_COUNT; i++) {
			buf_append_char(&one->line, ',');
			write_string(&one->line, marks->names[i]);
		}
		buf_append_char(&one->line, ']');
	}
	buf_append_str(&one->line, "}\n");
	kept->bytes += one->line.len;
}

/* ---- the set ---- */

static struct kept_session *kept_at(struct list *node)
{
	return container_of(node, struct kept_session, link);
}

static uint64_t key_of(const struct kept_sessions *kept, const struct digest *id)
{
	return text_hash(kept->seed, slice_of((const char *)id->bytes, DIGEST_BYTES));
}

static struct kept_session *find_in(const struct kept_sessions *kept, const struct map *map,
				    const struct digest *id)
{
	for (struct map_link *at = map_find_link(map, key_of(kept, id)); at != NULL;
	     at = at->next) {
		struct kept_session *one = container_of(at, struct kept_session, by_id);

		if (memcmp(one->id.bytes, id->bytes, DIGEST_BYTES) == 0)
			return one;
	}
	return NULL;
}

static struct kept_session *find_asleep(const struct kept_sessions *kept, const struct digest *id)
{
	return find_in(kept, &kept->by_id, id);
}

/* Before `where` in the list of those asleep. */
static void lay_down(struct kept_sessions *kept, struct kept_session *one, struct list *where)
{
	one->client = NULL;
	list_append(where, &one->link);
	map_insert_link(&kept->by_id, key_of(kept, &one->id), &one->by_id);
}

/*
 * Of the line of one asleep, which does not change: there may be many, and all are asked for each name that is
 * denied. REL-54
 */
struct kept_facts {
	bool is_valid; /* else nothing else is set */
	bool has_bad_marks;
	struct slice server;
	struct json owner;
	struct denial_marks *marks; /* NULL: none, or bad ones */
};

static void forget_facts(struct kept_session *one)
{
	if (one->facts != NULL)
		free(one->facts->marks);
	free(one->facts);
	one->facts = NULL;
}

static void drop(struct kept_sessions *kept, struct kept_session *one)
{
	if (one->process != NULL)
		upstream_close(one->process, REASON_SESSION_END);
	map_remove_link(one->client == NULL ? &kept->by_id : &kept->live_by_id, &one->by_id);
	list_remove(&one->link);
	CHECK(kept->bytes >= one->line.len);
	kept->bytes -= one->line.len;
	forget_facts(one);
	buf_fini(&one->line);
	stream_log_owner_fini(&one->logs);
	free(one);
}

static void drop_asleep(struct kept_sessions *kept)
{
	while (!list_is_empty(&kept->asleep))
		drop(kept, kept_at(kept->asleep.next));
}

/* ---- writing ---- */

/* Soon, and the first of several changes at once: at the end of this turn. */
static void note(struct kept_sessions *kept)
{
	bool is_first = clock_now_ms() - kept->saved_at_ms >= SAVING_MS;

	if (kept->file != NULL && !timer_is_running(&kept->saving))
		timer_start(kept->loop, &kept->saving, is_first ? 0 : SAVING_MS);
}

/*
 * There is a place of this size for each session that there can be, awake and asleep: nobody takes
 * it from another by long params of initialize, or by many subscriptions.
 */
static size_t place_of(const struct kept_sessions *kept)
{
	CHECK(kept->conf != NULL);
	return KEPT_SESSIONS_TEXT_BYTES / (2 * (kept->conf->max_sessions + 1));
}

static void note_full(struct kept_sessions *kept)
{
	if (!kept->is_full)
		LOG(SESSIONS_UNSAVED, LOG_STR("reason", "they are too many, or too long"));
	kept->is_full = true;
}

/* Those longer than `above` and not longer than `most`, of sessions or of legs. */
static void put_some(const struct list *list, bool is_of_legs, size_t above, size_t most,
		     struct kept_text *text)
{
	LIST_FOREACH(node, list) {
		const struct buf *line = &kept_at(node)->line;

		if (kept_at(node)->is_leg == is_of_legs && line->len > above && line->len <= most)
			kept_text_put(text, line);
	}
}

/* Short ones first: whoever has long ones takes room from those alone who have longer ones. */
static void put_all(struct kept_sessions *kept, bool is_of_legs, struct kept_text *text)
{
	size_t above = 0;

	for (size_t most = place_of(kept); above < text->max; most *= 2) {
		put_some(&kept->live, is_of_legs, above, most, text);
		put_some(&kept->asleep, is_of_legs, above, most, text);
		above = most;
	}
}

static void save(struct kept_sessions *kept)
{
	static const struct slice first = SLICE(KEPT_SESSIONS_FIRST_LINE);
	struct kept_text text = { .bytes = halves_begin(kept->file, KEPT_SESSIONS_TEXT_BYTES),
				  .at = first.n,
				  .max = KEPT_SESSIONS_TEXT_BYTES };

	LIST_FOREACH(node, &kept->live)
		if (kept_at(node)->is_changed)
			write_rest(kept, kept_at(node));
	memcpy(text.bytes, first.p, first.n);
	put_all(kept, false, &text);
	put_all(kept, true, &text);
	kept_pools_put(&kept->pools, &text);
	halves_end(kept->file, KEPT_SESSIONS_TEXT_BYTES, text.at);
	if (text.lacks_some)
		note_full(kept);
	else
		kept->is_full = false;
	kept->saved_at_ms = clock_now_ms();
	spawner_note_text(kept->spawner, IPC_TEXT_SESSIONS);
	if (kept->on_saved != NULL)
		kept->on_saved(kept);
}

static void on_saving(struct timer *timer)
{
	save(container_of(timer, struct kept_sessions, saving));
}

/* What has not been saved. */
static void save_rest(struct kept_sessions *kept)
{
	if (timer_is_running(&kept->saving))
		save(kept);
	timer_stop(&kept->saving);
}

/* ---- reading ---- */

/* Only the id is looked at here: most lines will never be needed. Returns whether it has one. */
static bool take_line(struct kept_sessions *kept, struct slice line, bool is_leg)
{
	struct kept_session *one;
	struct digest id;

	if (!kept_line_read_id(line, is_leg ? SLICE_LIT(LEG_BEGIN) : SLICE_LIT(LINE_BEGIN), &id) ||
	    find_asleep(kept, &id) != NULL)
		return false;
	one = mem_zalloc(sizeof(*one));
	one->id = id;
	one->is_leg = is_leg;
	stream_log_owner_init(&one->logs);
	buf_append_slice(&one->line, line);
	buf_append_char(&one->line, '\n');
	kept->bytes += one->line.len;
	lay_down(kept, one, &kept->asleep);
	return true;
}

static void load(struct kept_sessions *kept)
{
	static const struct slice first = SLICE(KEPT_SESSIONS_FIRST_LINE);
	struct slice text = { NULL, 0 };
	uint64_t count = 0, bad = 0;

	if (!halves_read(kept->file, KEPT_SESSIONS_TEXT_BYTES, &text) || text.n == 0)
		return;
	bad += !slice_has_prefix(text, first) || text.p[text.n - 1] != '\n';
	text = bad > 0 ? slice_of(NULL, 0) : slice_of(text.p + first.n, text.n - first.n);
	while (text.n > 0) {
		struct slice line = slice_cut(&text, '\n');
		bool is_leg = slice_has_prefix(line, SLICE_LIT(LEG_BEGIN));
		bool is_pool = slice_has_prefix(line, SLICE_LIT(KEPT_POOL_BEGIN));
		bool is_taken = line.n < KEPT_LINE_MAX &&
				(is_pool ? kept_pools_take_line(&kept->pools, line) :
					   (is_leg || count < 2 * kept->conf->max_sessions) &&
						   take_line(kept, line, is_leg));

		count += is_taken && !is_leg && !is_pool;
		bad += !is_taken;
	}
	if (count + bad > 0)
		LOG(SESSIONS_KEPT, LOG_INT("sessions", count), LOG_INT("unreadable", bad));
}

static void on_forgetting(struct timer *timer)
{
	struct kept_sessions *kept = container_of(timer, struct kept_sessions, forgetting);

	drop_asleep(kept);
	note(kept);
}

/* ---- live sessions ---- */

static struct kept_sessions *set_of(const struct client *client)
{
	return &client->router->kept_sessions;
}

/* What a leg's server says is the endpoint's as soon as it comes. */
static void log_streams(const struct kept_session *one)
{
	struct session *session = one->client->session;
	char name[DIGEST_TEXT + 1];

	if (one->is_leg)
		return;
	text_base64url(one->id.bytes, sizeof(one->id.bytes), name);
	replay_store_log(&session->replay_store, &session->standalone, slice_of(name, DIGEST_TEXT));
}

static void read_streams(struct kept_session *one)
{
	struct session *session = one->client->session;
	at_end(buf_fini) struct buf text = { 0 };
	size_t bytes = 0;

	while (bytes < STREAMS_BYTES_MAX && stream_log_take(&one->logs, &text)) {
		replay_store_read(&session->replay_store, &session->standalone, buf_slice(&text));
		bytes += text.len;
		text.len = 0;
	}
	stream_log_owner_fini(&one->logs);
	/* There may be copies of streams elsewhere: no number of one is given again. */
	if (session->replay_store.name_length == 0)
		session->replay_store.last_number = clock_wall_ms();
	log_streams(one);
}

struct kept_session *kept_session_new(struct client *client, struct slice id, struct slice params)
{
	struct kept_sessions *kept = set_of(client);
	struct kept_session *one;
	struct digest digest;

	CHECK(client->session->state == SESSION_LIVE && client->pool->agreed != NULL);
	if (!kept->is_on || kept->file == NULL)
		return NULL;
	if (params.n > place_of(kept) && kept->bytes + params.n > LINES_MAX) {
		note_full(kept);
		return NULL;
	}
	digest_bytes(id, &digest);
	one = find_asleep(kept, &digest);
	if (one != NULL)
		drop(kept, one); /* a leg that could not go on */
	one = mem_zalloc(sizeof(*one));
	one->client = client;
	one->is_changed = true;
	one->is_leg = id.n > SESSION_ID_LENGTH;
	one->id = digest;
	stream_log_owner_init(&one->logs);
	digest_bond(id, client->principal, &one->bond);
	write_fixed(one, id, params);
	kept->bytes += one->line.len;
	list_append(&kept->live, &one->link);
	map_insert_link(&kept->live_by_id, key_of(kept, &one->id), &one->by_id);
	kept_session_note_process(one);
	log_streams(one);
	note(kept);
	return one;
}

struct slice kept_session_params(const struct kept_session *one)
{
	return scan_member(buf_slice(&one->line), SLICE_LIT("initialize")).text;
}

void kept_session_note(struct kept_session *one)
{
	if (one == NULL)
		return;
	CHECK(one->client != NULL);
	one->is_changed = true;
	note(set_of(one->client));
}

void kept_session_note_process(struct kept_session *one)
{
	const struct upstream *own = pool_own_upstream(one->client->pool);
	char owner[IPC_OWNER_BYTES];

	if (own == NULL || own->child == NULL || !upstream_is_serving(own))
		return;
	memcpy(owner, one->id.bytes, DIGEST_BYTES);
	memcpy(owner + DIGEST_BYTES, one->bond.bytes, DIGEST_BYTES);
	spawned_note_owner(&own->child->spawned, slice_of(owner, sizeof(owner)));
}

/* Those that the session of this endpoint had in the gateway before, and has not needed yet. */
static void forget_legs(struct kept_sessions *kept, const struct client *client)
{
	const struct server_legs *legs = &client->server->conf.legs;

	for (size_t i = 0; i < legs->count; i++) {
		at_end(buf_fini) struct buf text = { 0 };
		struct kept_session *leg;
		struct digest id;

		kept_leg_id(&text, session_id(client->session), legs->items[i].server);
		digest_bytes(buf_slice(&text), &id);
		leg = find_asleep(kept, &id);
		if (leg != NULL)
			drop(kept, leg);
	}
}

void kept_leg_id(struct buf *out, struct slice session_id, struct slice server)
{
	buf_append_slice(out, session_id);
	buf_append_char(out, '/');
	buf_append_slice(out, server);
}

void kept_session_end(struct kept_session **one, enum reason reason)
{
	struct kept_sessions *kept;

	if (*one == NULL)
		return;
	kept = set_of((*one)->client);
	if (reason == REASON_DRAINING) {
		if ((*one)->is_changed)
			write_rest(kept, *one);
		list_remove(&(*one)->link);
		map_remove_link(&kept->live_by_id, &(*one)->by_id);
		/* Those in use come first, and nobody waits here for those who do not come back. */
		lay_down(kept, *one, kept->asleep.next);
		timer_stop(&kept->forgetting);
	} else {
		if (reason != REASON_MOVED && !(*one)->is_leg) /* those may come back */
			kept->ended[kept->ended_count++ % KEPT_ENDED_MAX] = (*one)->id;
		forget_legs(kept, (*one)->client);
		drop(kept, *one);
	}
	*one = NULL;
	note(kept);
}

/* ---- those asleep ---- */

/* A member of the part that does not change: what stands behind that would be lost. */
static struct json fixed_member(struct slice line, struct slice params, struct slice name)
{
	struct json value = scan_member(line, name);

	return value.type != JSON_ABSENT && value.text.p < params.p ?
		       value :
		       (struct json){ .type = JSON_ABSENT };
}

static bool read_number(struct slice line, struct slice params, struct slice name, uint64_t max,
			uint64_t *number_r)
{
	return text_parse_u64(fixed_member(line, params, name).text, number_r) == 0 &&
	       *number_r <= max;
}

/* Whether all of it can be used; what `initialize` says is judged by who sends it. */
static bool read_state(struct slice line, struct kept_state *state_r)
{
	struct json params = scan_member(line, SLICE_LIT("initialize"));
	uint64_t began_ms, offers, tells, now_ms = clock_wall_ms();

	if (params.type != JSON_OBJECT ||
	    !read_number(line, params.text, SLICE_LIT("began"), UINT64_MAX, &began_ms) ||
	    !read_number(line, params.text, SLICE_LIT("offers"), UINT32_MAX, &offers) ||
	    !read_number(line, params.text, SLICE_LIT("tells"), UINT32_MAX, &tells))
		return false;
	state_r->params = params.text;
	state_r->agreed = kept_line_revision(fixed_member(line, params.text, SLICE_LIT("agreed")));
	state_r->capabilities =
		(struct server_capabilities){ (unsigned int)offers, (unsigned int)tells };
	state_r->age_ms = now_ms > began_ms ? now_ms - began_ms : 0;
	return state_r->agreed != NULL;
}

struct marks_reader {
	struct denial_marks marks;
	struct buf rooms[1 + DENIAL_BY_COUNT];
	size_t count;
	bool is_bad;
};

static int read_mark(struct slice element, void *arg)
{
	struct marks_reader *reader = arg;
	struct slice *into = reader->count == 0 ? &reader->marks.issuer :
						  &reader->marks.names[reader->count - 1];

	if (reader->count >= ARRAY_LEN(reader->rooms) ||
	    scan_read_string(scan_value(element), &reader->rooms[reader->count], into) < 0) {
		reader->is_bad = true;
		return -1;
	}
	reader->count++;
	return 0;
}

/* Returns false if there are none, or they cannot be read. marks_reader_fini must follow. */
static bool read_marks(struct slice line, struct marks_reader *reader)
{
	struct json marks = scan_member(line, SLICE_LIT("marks"));

	*reader = (struct marks_reader){ .is_bad = marks.type != JSON_ABSENT };
	if (marks.type == JSON_ARRAY &&
	    scan_array(marks.text, ARRAY_LEN(reader->rooms), read_mark, reader, NULL) > 0)
		reader->is_bad = reader->marks.issuer.n == 0;
	return reader->count > 0 && !reader->is_bad;
}

static void marks_reader_fini(struct marks_reader *reader)
{
	for (size_t i = 0; i < ARRAY_LEN(reader->rooms); i++)
		buf_fini(&reader->rooms[i]);
}

/* Whether the token that it was begun with has been denied meanwhile; also if that cannot be read. */
static bool is_denied(const struct kept_sessions *kept, struct slice line)
{
	const struct router *router = container_of(kept, struct router, kept_sessions);
	struct marks_reader reader;
	bool is_denied = read_marks(line, &reader) ? deny_list_find(&router->sessions.deny_list,
								    &reader.marks) != NULL :
						     reader.is_bad;

	marks_reader_fini(&reader);
	return is_denied;
}

static const struct kept_facts *facts_of(struct kept_session *one)
{
	struct kept_facts *facts = one->facts;
	struct marks_reader reader;
	struct slice line;

	CHECK(one->client == NULL);
	if (facts != NULL)
		return facts;
	line = kept_line(&one->line);
	facts = one->facts = mem_zalloc(sizeof(*facts));
	facts->is_valid = line.n > 0;
	if (!facts->is_valid)
		return facts;
	facts->server = scan_plain_string(scan_member(line, SLICE_LIT("server")));
	facts->owner = scan_member(line, SLICE_LIT("owner"));
	if (read_marks(line, &reader))
		facts->marks = denial_marks_copy(&reader.marks);
	else
		facts->has_bad_marks = reader.is_bad;
	marks_reader_fini(&reader);
	return facts;
}

static void on_reading(struct task *task)
{
	struct kept_sessions *kept = container_of(task, struct kept_sessions, reading);

	LIST_FOREACH(node, &kept->asleep) {
		if (kept_at(node)->facts != NULL)
			continue;
		if (loop_turn_is_long(kept->loop)) {
			task_schedule(kept->loop, task);
			return;
		}
		(void)facts_of(kept_at(node));
	}
}

/* Also one whose marks cannot be read. */
static bool is_named(const struct kept_facts *facts, struct slice issuer, enum denial_by by,
		     struct slice name)
{
	const struct denial_marks *marks = facts->marks;

	if (marks == NULL)
		return facts->has_bad_marks;
	return slice_is_equal(marks->issuer, issuer) &&
	       (name.n == 0 || slice_is_equal(marks->names[by], name));
}

static void on_denial(struct deny_observer *observer, struct slice issuer, enum denial_by by,
		      struct slice name)
{
	struct kept_sessions *kept = container_of(observer, struct kept_sessions, denials);

	LIST_FOREACH_SAFE(node, &kept->asleep) {
		const struct kept_facts *facts = facts_of(kept_at(node));

		if (!facts->is_valid || is_named(facts, issuer, by, name))
			kept_session_forget(kept, kept_at(node));
	}
}

void kept_sessions_forget_server(struct kept_sessions *kept, struct slice server)
{
	LIST_FOREACH_SAFE(node, &kept->asleep) {
		const struct kept_facts *facts = facts_of(kept_at(node));

		if (!facts->is_valid || slice_is_equal(facts->server, server))
			kept_session_forget(kept, kept_at(node));
	}
}

void kept_sessions_forget_owner(struct kept_sessions *kept, const struct principal *owner)
{
	struct digest digest;

	digest_principal(owner, &digest);
	LIST_FOREACH_SAFE(node, &kept->asleep) {
		const struct kept_facts *facts = facts_of(kept_at(node));

		if (!facts->is_valid || is_digest(facts->owner, &digest))
			kept_session_forget(kept, kept_at(node));
	}
}

struct kept_session *kept_sessions_find(const struct kept_sessions *kept, struct slice id,
					const struct principal *principal,
					const struct server *server, struct kept_state *state_r)
{
	struct kept_session *one;
	struct digest digest;
	struct slice line;
	bool is_theirs;

	digest_bytes(id, &digest);
	one = find_asleep(kept, &digest);
	if (one == NULL)
		return NULL;
	line = kept_line(&one->line);
	digest_principal(principal, &digest);
	is_theirs = line.n > 0 && read_state(line, state_r) &&
		    is_digest(fixed_member(line, state_r->params, SLICE_LIT("owner")), &digest) &&
		    slice_is_equal(scan_plain_string(fixed_member(line, state_r->params,
								  SLICE_LIT("server"))),
				   slice_str(server->conf.name)) &&
		    !is_denied(kept, line);
	return is_theirs ? one : NULL;
}

static int take_subscription(struct slice element, void *arg)
{
	struct client *client = arg;

	if (scan_type(element) == JSON_STRING && element.n >= 2)
		text_set_add(&client->subscriptions, slice_of(element.p + 1, element.n - 2));
	return 0;
}

void kept_session_wake(struct kept_session *one, struct client *client, struct slice id)
{
	struct kept_sessions *kept = set_of(client);
	struct slice line = buf_slice(&one->line);
	struct slice params = kept_session_params(one);
	struct json subscriptions = scan_member(line, SLICE_LIT("subscriptions"));
	struct marks_reader reader;

	CHECK(one->client == NULL);
	forget_facts(one);
	client->level = level_find(scan_plain_string(scan_member(line, SLICE_LIT("level"))));
	if (subscriptions.type == JSON_ARRAY)
		(void)!scan_array(subscriptions.text, TEXT_SET_MAX, take_subscription, client,
				  NULL);
	if (read_marks(line, &reader))
		session_keep_marks(client->session, &reader.marks);
	marks_reader_fini(&reader);
	one->fixed = (size_t)(params.p + params.n - one->line.data);
	map_remove_link(&kept->by_id, &one->by_id);
	list_remove(&one->link);
	list_append(&kept->live, &one->link);
	map_insert_link(&kept->live_by_id, key_of(kept, &one->id), &one->by_id);
	one->client = client;
	digest_bond(id, client->principal, &one->bond);
	read_streams(one);
	kept_session_note(one);
}

void kept_session_forget(struct kept_sessions *kept, struct kept_session *one)
{
	CHECK(one->client == NULL);
	drop(kept, one);
	note(kept);
}

/* ---- of other nodes ---- */

void kept_sessions_question(const struct kept_sessions *kept, struct buf *out, struct slice id,
			    const struct principal *owner, const struct server *server)
{
	const struct server_legs *legs = &server->conf.legs;
	const struct kept_session *one;
	struct digest digest;

	append_owner(out, owner);
	append_server(out, server);
	buf_append_char(out, '\n');
	digest_bytes(id, &digest);
	one = find_asleep(kept, &digest);
	append_text(out, &digest);
	for (size_t i = 0; i < legs->count; i++) {
		at_end(buf_fini) struct buf leg = { 0 };

		kept_leg_id(&leg, id, legs->items[i].server);
		digest_bytes(buf_slice(&leg), &digest);
		buf_append_char(out, ' ');
		append_text(out, &digest);
	}
	if (one != NULL && !list_is_empty(&one->logs.logs))
		buf_append_char(out, '\n');
}

size_t kept_sessions_ended(const struct kept_sessions *kept, size_t since, struct buf *out)
{
	size_t count = kept->ended_count;

	CHECK(since <= count);
	if (count > KEPT_ENDED_MAX && since < count - KEPT_ENDED_MAX)
		since = count - KEPT_ENDED_MAX;
	for (; since < count; since++) {
		append_text(out, &kept->ended[since % KEPT_ENDED_MAX]);
		buf_append_char(out, ' ');
	}
	return count;
}

bool kept_sessions_have(const struct kept_sessions *kept, const struct digest *id)
{
	return find_asleep(kept, id) != NULL;
}

/* What is read of the store may be older than that. */
static bool has_just_ended(const struct kept_sessions *kept, const struct digest *id)
{
	size_t count = kept->ended_count < KEPT_ENDED_MAX ? kept->ended_count : KEPT_ENDED_MAX;

	for (size_t i = 0; i < count; i++)
		if (memcmp(kept->ended[i].bytes, id->bytes, DIGEST_BYTES) == 0)
			return true;
	return false;
}

/* "log BYTES", and behind that line its text, of the session before; NULL: it is not wanted. */
static void take_log(struct kept_sessions *kept, struct kept_session *one, struct slice line,
		     struct slice *rest)
{
	char name[DIGEST_TEXT + 1];
	struct slice text;
	uint64_t size;

	slice_cut(&line, ' ');
	if (text_parse_u64(line, &size) < 0 || size > rest->n)
		return;
	text = slice_of(rest->p, size);
	*rest = slice_of(rest->p + size, rest->n - size);
	if (one == NULL)
		return;
	text_base64url(one->id.bytes, sizeof(one->id.bytes), name);
	if (slice_is_equal(stream_log_name(text), slice_of(name, DIGEST_TEXT)))
		stream_log_add(&kept->logs, &one->logs, text);
}

void kept_sessions_take(struct kept_sessions *kept, struct slice lines, bool is_ours)
{
	struct kept_session *taken = NULL;

	while (lines.n > 0 && kept->is_on && kept->file != NULL) {
		struct slice line = slice_cut(&lines, '\n');
		bool is_leg = slice_has_prefix(line, SLICE_LIT(LEG_BEGIN));
		struct kept_session *one;
		struct digest id;

		if (slice_has_prefix(line, SLICE_LIT("log "))) {
			take_log(kept, taken, line, &lines);
			continue;
		}
		if (!kept_line_read_id(line, is_leg ? SLICE_LIT(LEG_BEGIN) : SLICE_LIT(LINE_BEGIN),
				       &id) ||
		    find_in(kept, &kept->live_by_id, &id) != NULL || has_just_ended(kept, &id))
			continue;
		one = find_asleep(kept, &id);
		if (one != NULL && is_ours) { /* a daemon that began anew has no logs */
			if (!one->is_leg && list_is_empty(&one->logs.logs))
				taken = one;
			continue;
		}
		if (one == taken)
			taken = NULL;
		if (one != NULL)
			drop(kept, one);
		if (kept->bytes + line.n < LINES_MAX && take_line(kept, line, is_leg) && !is_leg)
			taken = find_asleep(kept, &id);
	}
	if (!timer_is_running(&kept->forgetting))
		timer_start(kept->loop, &kept->forgetting, kept->conf->idle_ms);
	note(kept);
}

void kept_sessions_lose(struct kept_sessions *kept, struct slice digest)
{
	struct kept_session *one;
	struct digest id;
	size_t n;

	if (digest.n != DIGEST_TEXT || text_from_base64url(digest, id.bytes, &n) != 0 ||
	    n != DIGEST_BYTES)
		return;
	one = find_asleep(kept, &id);
	if (one != NULL) {
		kept_session_forget(kept, one);
		return;
	}
	one = find_in(kept, &kept->live_by_id, &id);
	if (one != NULL && !one->is_leg)
		session_end(one->client->session, REASON_MOVED);
}

/* ---- processes of the gateway before ---- */

static struct kept_session *find_holder(struct list *list, const struct upstream *process)
{
	LIST_FOREACH(node, list)
		if (kept_at(node)->process == process)
			return kept_at(node);
	return NULL;
}

static void on_process_closed(struct upstream *upstream)
{
	struct kept_sessions *kept =
		&container_of(upstream->shared, struct router, upstreams)->kept_sessions;
	struct kept_session *one = find_holder(&kept->asleep, upstream);

	if (one == NULL)
		one = find_holder(&kept->live, upstream);
	if (one != NULL)
		one->process = NULL;
	else
		list_remove(&upstream->link);
}

static void on_process_lost(not_used struct upstream *upstream, not_used enum reason reason)
{
	/* The session gets another one. */
}

/* Nothing is sent to it, and nothing read of it: none of the other events can occur. */
static const struct upstream_owner_ops process_ops = {
	.on_closed = on_process_closed,
	.on_lost = on_process_lost,
};

bool kept_sessions_inherit(struct kept_sessions *kept, struct server *server,
			   const struct ipc_message *message)
{
	struct router *router = container_of(kept, struct router, kept_sessions);
	struct slice owner = message->texts[0], name = slice_str(server->conf.name);
	struct kept_session *one;
	struct upstream *process;
	struct kept_pool *pool;
	struct digest id;

	if (owner.n < DIGEST_BYTES || server->is_retired)
		return false;
	memcpy(id.bytes, owner.p, DIGEST_BYTES);
	one = owner.n == IPC_OWNER_BYTES ? find_asleep(kept, &id) : NULL;
	pool = owner.n == DIGEST_BYTES ? kept_pools_find(&kept->pools, &id) : NULL;
	if (pool == NULL &&
	    (one == NULL || one->process != NULL || !slice_is_equal(facts_of(one)->server, name)))
		return false;
	process = stdio_inherit(&router->upstreams, server, &process_ops, message->inherit.child,
				message->inherit.pid, message->fds);
	if (pool != NULL) {
		list_append(&pool->processes, &process->link);
	} else {
		memcpy(one->process_bond.bytes, owner.p + DIGEST_BYTES, DIGEST_BYTES);
		one->process = process;
	}
	if (!timer_is_running(&kept->holding)) {
		kept->held_since_ms = clock_now_ms();
		timer_start(kept->loop, &kept->holding, HOLDING_MS);
	}
	return true;
}

struct upstream *kept_session_take_process(struct client *client)
{
	struct kept_session *one = client->kept;
	struct upstream *process = one != NULL ? one->process : NULL;

	if (process == NULL)
		return NULL;
	if (process->server != client->server ||
	    memcmp(one->process_bond.bytes, one->bond.bytes, DIGEST_BYTES) != 0) {
		upstream_close(process, REASON_RETIRED);
		return NULL;
	}
	one->process = NULL;
	process->revision = client->pool->agreed;
	return process;
}

bool kept_session_has_process(const struct client *client)
{
	return client->kept != NULL && client->kept->process != NULL;
}

/* Whether the client of a session that holds a process has had its time. */
static bool is_over(const struct kept_sessions *kept, const struct server *server, bool is_shared)
{
	uint64_t most_ms = is_shared                      ? server->conf.idle_ms :
			   server->conf.sleep_gone_ms > 0 ? server->conf.sleep_gone_ms :
							    server->conf.sleep_after_ms;

	return server->is_retired ||
	       (most_ms > 0 && clock_now_ms() - kept->held_since_ms >= most_ms);
}

/* Returns whether any of them holds a process. */
static bool end_old(const struct kept_sessions *kept, struct list *list)
{
	bool is_held = false;

	LIST_FOREACH(node, list) {
		struct upstream *process = kept_at(node)->process;

		is_held |= process != NULL;
		if (process != NULL && is_over(kept, process->server, false))
			upstream_close(process, REASON_IDLE_TIMEOUT);
	}
	return is_held;
}

/* The same of shared pools. */
static bool end_old_of_pools(struct kept_sessions *kept)
{
	bool is_held = false;

	LIST_FOREACH(node, &kept->pools.list) {
		struct kept_pool *one = container_of(node, struct kept_pool, link);

		LIST_FOREACH_SAFE(at, &one->processes) {
			struct upstream *process = container_of(at, struct upstream, link);

			if (is_over(kept, process->server, true))
				upstream_close(process, REASON_IDLE_TIMEOUT);
		}
		is_held |= !list_is_empty(&one->processes);
	}
	kept_pools_forget_idle(&kept->pools);
	return is_held;
}

static void on_holding(struct timer *timer)
{
	struct kept_sessions *kept = container_of(timer, struct kept_sessions, holding);
	bool are_asleep = end_old(kept, &kept->asleep), are_live = end_old(kept, &kept->live);
	bool are_shared = end_old_of_pools(kept);

	if (are_asleep || are_live || are_shared)
		timer_start(kept->loop, timer, HOLDING_MS);
}

void kept_sessions_give_way(struct kept_sessions *kept, const struct server *server)
{
	bool is_any = !server_is_full(server);

	if (clock_now_ms() - kept->gave_way_ms < HOLDING_MS)
		return; /* one at a time: its place is about to come */
	LIST_FOREACH(node, &kept->asleep) {
		struct upstream *process = kept_at(node)->process;

		if (process != NULL && process->server->conf.reclaims &&
		    (is_any || process->server == server)) {
			kept->gave_way_ms = clock_now_ms();
			upstream_close(process, REASON_IDLE_TIMEOUT);
			return;
		}
	}
	LIST_FOREACH(node, &kept->pools.list) {
		struct list *processes = &container_of(node, struct kept_pool, link)->processes;
		struct upstream *process = container_of(processes->next, struct upstream, link);

		if (!list_is_empty(processes) && (is_any || process->server == server)) {
			kept->gave_way_ms = clock_now_ms();
			upstream_close(process, REASON_IDLE_TIMEOUT);
			return;
		}
	}
}

static void end_processes_of(struct list *list, enum reason reason)
{
	LIST_FOREACH(node, list)
		if (kept_at(node)->process != NULL)
			upstream_close(kept_at(node)->process, reason);
}

void kept_sessions_end_processes(struct kept_sessions *kept, enum reason reason)
{
	end_processes_of(&kept->asleep, reason);
	end_processes_of(&kept->live, reason);
	LIST_FOREACH(node, &kept->pools.list)
		LIST_FOREACH_SAFE(at, &container_of(node, struct kept_pool, link)->processes)
			upstream_close(container_of(at, struct upstream, link), reason);
	timer_stop(&kept->holding);
}

/* ---- beginning and end ---- */

static void on_pools_change(struct kept_pools *pools, bool is_urgent)
{
	struct kept_sessions *kept = container_of(pools, struct kept_sessions, pools);

	if (!is_urgent || kept->file == NULL) {
		note(kept);
		return;
	}
	timer_stop(&kept->saving);
	save(kept);
}

void kept_sessions_init(struct kept_sessions *kept, struct loop *loop)
{
	*kept = (struct kept_sessions){ .loop = loop };
	list_init(&kept->live);
	list_init(&kept->asleep);
	list_init(&kept->pools.list);
	kept->pools.on_change = on_pools_change;
	timer_init(&kept->saving, on_saving);
	timer_init(&kept->forgetting, on_forgetting);
	timer_init(&kept->holding, on_holding);
	task_init(&kept->reading, on_reading);
}

void kept_sessions_open(struct kept_sessions *kept, struct spawner *spawner, int fd, bool is_on,
			const struct session_conf *conf)
{
	struct router *router = container_of(kept, struct router, kept_sessions);
	void *file =
		mmap(NULL, KEPT_SESSIONS_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(kept->file == NULL && list_is_empty(&kept->live));
	if (file == MAP_FAILED)
		return;
	kept->file = file;
	kept->spawner = spawner;
	kept->conf = conf;
	kept->is_on = kept->pools.is_on = is_on;
	random_bytes(&kept->seed, sizeof(kept->seed));
	kept->denials.on_denial = on_denial;
	router->sessions.deny_list.observer = &kept->denials;
	if (!is_on)
		return;
	load(kept);
	task_schedule(kept->loop, &kept->reading);
	timer_start(kept->loop, &kept->forgetting, conf->idle_ms);
}

void kept_sessions_use(struct kept_sessions *kept, bool is_on)
{
	if (kept->is_on == is_on)
		return;
	kept->is_on = kept->pools.is_on = is_on;
	if (!is_on) {
		drop_asleep(kept);
		kept_pools_drop_all(&kept->pools);
	}
	while (!is_on && !list_is_empty(&kept->live)) {
		struct kept_session *one = kept_at(kept->live.next);

		one->client->kept = NULL;
		drop(kept, one);
	}
	if (is_on)
		kept_pools_note_all(&container_of(kept, struct router, kept_sessions)->slots.pools);
	note(kept);
}

/* ---- what clients could still get ---- */

static struct stream_log_owner *on_log(void *arg, struct slice text)
{
	const struct kept_sessions *kept = arg;
	struct slice name = stream_log_name(text);
	struct kept_session *one;
	struct digest id;
	size_t n;

	if (name.n != DIGEST_TEXT || text_from_base64url(name, id.bytes, &n) < 0)
		return NULL;
	one = find_asleep(kept, &id);
	return one != NULL && !one->is_leg ? &one->logs : NULL;
}

void kept_sessions_open_streams(struct kept_sessions *kept, int fd)
{
	stream_logs_open(&kept->logs, fd, on_log, kept);
	container_of(kept, struct router, kept_sessions)->sessions.store.logs = &kept->logs;
}

void kept_sessions_hand_over(struct kept_sessions *kept)
{
	save_rest(kept);
}

void kept_sessions_leave(struct kept_sessions *kept)
{
	kept->logs.is_left = true;
}

void kept_sessions_fini(struct kept_sessions *kept)
{
	CHECK(list_is_empty(&kept->live));
	save_rest(kept);
	timer_stop(&kept->forgetting);
	timer_stop(&kept->holding);
	task_cancel(&kept->reading);
	drop_asleep(kept);
	kept_pools_drop_all(&kept->pools);
	if (kept->file != NULL)
		munmap(kept->file, KEPT_SESSIONS_FILE_BYTES);
	stream_logs_fini(&kept->logs);
}
