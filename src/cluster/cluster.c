/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "cluster/denial_line.h"
#include "cluster/store_service.h"
#include "obs/log.h"
#include "router/router.h"
#include "router/seal.h"
#include "session/principal.h"

#define NOT_REACHED "it has not been reached yet"

/* ---- what is kept ---- */

static void start_saved(struct cluster *cluster)
{
	at_end(buf_fini) struct buf ended = { 0 };

	cluster->is_unsaved = false;
	cluster->asked_ended =
		kept_sessions_ended(&cluster->router->kept_sessions, cluster->told_ended, &ended);
	inquiry_start(cluster->client, &cluster->saved, FETCH_STORE_SAVED, 0, NULL,
		      buf_slice(&ended));
}

static void on_saved_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct cluster *cluster = container_of(inquiry, struct cluster, saved);

	if (answer->status == 200)
		cluster->told_ended = cluster->asked_ended;
	/* A store process that begins looks at everything else by itself. */
	if (cluster->is_unsaved)
		start_saved(cluster);
}

static void on_saved(struct kept_sessions *kept)
{
	struct cluster *cluster = kept->cluster;

	if (inquiry_is_running(&cluster->saved))
		cluster->is_unsaved = true;
	else
		start_saved(cluster);
}

#define LOGGING_MS 2

static void on_logging(struct timer *timer)
{
	struct cluster *cluster = container_of(timer, struct cluster, logging);

	cluster->is_unlogged = inquiry_is_running(&cluster->logged);
	if (!cluster->is_unlogged && cluster->is_up)
		inquiry_start(cluster->client, &cluster->logged, FETCH_STORE_LOGGED, 0, NULL,
			      slice_of(NULL, 0));
}

static void note_logs_change(struct cluster *cluster)
{
	if (cluster->is_up && !timer_is_running(&cluster->logging))
		timer_start(cluster->router->loop, &cluster->logging, LOGGING_MS);
}

static void on_logged_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct cluster *cluster = container_of(inquiry, struct cluster, logged);

	if (cluster->is_unlogged && answer->status == 200)
		note_logs_change(cluster);
}

static void on_logs_change(struct stream_logs *logs)
{
	note_logs_change(container_of(logs, struct kept_sessions, logs)->cluster);
}

bool cluster_is_busy(const struct cluster *cluster)
{
	return cluster->is_up &&
	       (timer_is_running(&cluster->router->kept_sessions.saving) ||
		inquiry_is_running(&cluster->saved) || timer_is_running(&cluster->counting) ||
		inquiry_is_running(&cluster->count) || timer_is_running(&cluster->logging) ||
		inquiry_is_running(&cluster->logged));
}

/* ---- denials ---- */

/* What does not fit goes with the next one. */
void cluster_tell_denials(struct cluster *cluster)
{
	at_end(buf_fini) struct buf lines = { 0 };

	if (!cluster->is_up || inquiry_is_running(&cluster->deny))
		return;
	LIST_EACH(struct denial, denial, &cluster->router->sessions.deny_list.entries, link) {
		if (!denial->is_untold || lines.len > STORE_LINES_BYTES_MAX)
			continue;
		denial->is_untold = false;
		(void)!denial_line_append(&lines, denial);
	}
	if (lines.len == 0 && cluster->is_full)
		cluster->is_full = false; /* and all are asked for again: there may be room now */
	else if (lines.len == 0)
		return;
	inquiry_start(cluster->client, &cluster->deny, FETCH_STORE_DENY, 0, NULL,
		      buf_slice(&lines));
}

/* If the store could not be reached, all will be told again when it can be. */
static void on_deny_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	if (answer->status == 200)
		cluster_tell_denials(container_of(inquiry, struct cluster, deny));
}

static bool take_denial(struct cluster *cluster, struct slice line)
{
	const struct denial *denial;
	struct denial order;
	bool is_full = false;

	if (!denial_line_read(line, &order))
		return false;
	denial = deny_list_take(&cluster->router->sessions.deny_list, &order, &is_full);
	if (is_full && !cluster->is_full)
		LOG(DENIALS_FULL, LOG_INT("entries", DENY_LIST_MAX));
	cluster->is_full |= is_full;
	if (denial != NULL)
		LOG(DENIAL_TAKEN, LOG_INT("number", denial->number),
		    LOG_SLICE("issuer", denial->issuer), LOG_STR("by", denial_by_name(denial->by)),
		    LOG_SLICE("name", denial->name),
		    LOG_STR("effect", denial->is_lifted ? "allowed" : "denied"));
	return denial != NULL;
}

/* ---- what all count together ---- */

/*
 * Approximate, and never waited for: what is lost on the way, or while the store cannot be reached, counts at its own
 * node alone. CLU-RATE-01
 */

#define COUNTING_MS 200
#define COUNTS_BYTES_MAX (10 * 1024) /* of each kind in one message, before the last line */
#define COUNTS_S 60 /* clocks may differ by so much; what is older is not believed */

static const struct slice count_words[] = {
	[CLUSTER_RATES] = SLICE("rate"),
	[CLUSTER_FAILURES] = SLICE("failures"),
};

static void on_counted(struct tally *tally)
{
	struct cluster *cluster = tally->arg;

	if (!timer_is_running(&cluster->counting))
		timer_start(cluster->router->loop, &cluster->counting, COUNTING_MS);
}

void cluster_share(struct cluster *cluster, enum cluster_count kind, struct tally *tally)
{
	CHECK(cluster->client != NULL && cluster->tallies[kind] == NULL);
	cluster->tallies[kind] = tally;
	tally->on_counted = on_counted;
	tally->arg = cluster;
}

static void append_count(struct buf *out, struct slice word, uint64_t key, uint64_t amount)
{
	buf_append_slice(out, word);
	buf_append_char(out, ' ');
	buf_append_u64(out, key);
	buf_append_char(out, ' ');
	buf_append_u64(out, amount);
	buf_append_char(out, '\n');
}

/* As much as may be told at a time; each kind has its part, so that none keeps the other waiting. */
static void append_counts(const struct cluster *cluster, struct buf *lines)
{
	struct tally_count count;

	for (size_t kind = 0; kind < CLUSTER_COUNT_KINDS; kind++)
		while (lines->len <= (kind + 1) * COUNTS_BYTES_MAX &&
		       cluster->tallies[kind] != NULL &&
		       tally_take(cluster->tallies[kind], &count)) {
			if (count.is_anew)
				append_count(lines, count_words[kind], count.key, 0);
			if (count.amount > 0)
				append_count(lines, count_words[kind], count.key, count.amount);
		}
}

static bool has_more_counts(const struct cluster *cluster)
{
	bool has_more = false;

	for (size_t kind = 0; kind < CLUSTER_COUNT_KINDS; kind++)
		has_more |= cluster->tallies[kind] != NULL &&
			    !list_is_empty(&cluster->tallies[kind]->entries);
	return has_more;
}

/* The store learns nothing of who calls, and cannot make what it says: only nodes with the same key understand each other. */
static const struct identity nobody;

/* The digest is for the binding to point to. */
static struct seal_binding bind_counts(struct digest *digest)
{
	digest_bytes(SLICE_LIT("counts"), digest);
	return (struct seal_binding){ SLICE_LIT("cluster"), &nobody, digest };
}

static void seal_counts(const struct cluster *cluster, struct slice lines, struct buf *out)
{
	struct digest digest;
	const struct seal_binding binding = bind_counts(&digest);
	const uint64_t now_s = clock_wall_ms() / 1000;

	seal_append(out, &cluster->router->seal_keys, &binding,
		    &(struct seal){ .kind = SEAL_COUNTS,
				    .issued_at_s = now_s,
				    .expires_at_s = now_s + COUNTS_S,
				    .text = lines });
}

static void on_counting(struct timer *timer)
{
	struct cluster *cluster = container_of(timer, struct cluster, counting);
	at_end(buf_fini) struct buf lines = { 0 }, sealed = { 0 };

	if (inquiry_is_running(&cluster->count)) {
		timer_start(cluster->router->loop, timer, COUNTING_MS);
		return;
	}
	append_counts(cluster, &lines);
	if (has_more_counts(cluster))
		timer_start(cluster->router->loop, timer, COUNTING_MS);
	if (!cluster->is_up || lines.len == 0)
		return;
	seal_counts(cluster, buf_slice(&lines), &sealed);
	inquiry_start(cluster->client, &cluster->count, FETCH_STORE_COUNT, 0, NULL,
		      buf_slice(&sealed));
}

/* What could not be told is lost. */
static void on_count_answer(not_used struct inquiry *inquiry,
			    not_used const struct fetch_answer *answer)
{
}

static void take_count(struct cluster *cluster, struct slice line)
{
	const struct slice word = slice_cut(&line, ' ');
	uint64_t key, amount;

	if (text_parse_u64(slice_cut(&line, ' '), &key) != 0 || text_parse_u64(line, &amount) != 0)
		return;
	for (size_t kind = 0; kind < CLUSTER_COUNT_KINDS; kind++)
		if (slice_is_equal(word, count_words[kind]) && cluster->tallies[kind] != NULL)
			tally_hear(cluster->tallies[kind], key, amount);
}

static void take_counts(struct cluster *cluster, struct slice sealed)
{
	struct digest digest;
	const struct seal_binding binding = bind_counts(&digest);
	at_end(buf_fini) struct buf plain = { 0 };
	struct error err;
	struct seal seal;

	if (seal_open(&cluster->router->seal_keys, &binding,
		      (struct json){ .type = JSON_STRING, .text = sealed }, clock_wall_ms() / 1000,
		      &plain, &seal, &err) < 0 ||
	    seal.kind != SEAL_COUNTS)
		return;
	while (seal.text.n > 0)
		take_count(cluster, slice_cut(&seal.text, '\n'));
}

/* ---- what the store says by itself ---- */

static void start_watch(struct cluster *cluster)
{
	inquiry_start(cluster->client, &cluster->watch, FETCH_STORE_WATCH, 0, NULL,
		      slice_of(NULL, 0));
}

static void set_down(struct cluster *cluster, bool is_judged, struct slice why)
{
	cluster->is_up = false;
	cluster->is_judged = is_judged;
	snprintf(cluster->why, sizeof(cluster->why), "%.*s", SLICE_ARG(why));
}

static void settle_asks(struct cluster *cluster);

static void take_loss(struct cluster *cluster, struct slice digest)
{
	struct digest *lost = &cluster->lost[cluster->lost_count % CLUSTER_LOST_MAX];
	size_t n;

	kept_sessions_lose(&cluster->router->kept_sessions, digest);
	if (digest.n == DIGEST_TEXT && text_from_base64url(digest, lost->bytes, &n) == 0)
		cluster->lost_count++;
}

bool cluster_has_lost(const struct cluster *cluster, struct slice id, uint16_t since)
{
	struct digest digest;

	if ((uint16_t)(cluster->lost_count - since) > CLUSTER_LOST_MAX)
		return true;
	if (since == cluster->lost_count)
		return false;
	digest_bytes(id, &digest);
	for (uint16_t i = since; i != cluster->lost_count; i++)
		if (memcmp(cluster->lost[i % CLUSTER_LOST_MAX].bytes, digest.bytes, DIGEST_BYTES) ==
		    0)
			return true;
	return false;
}

/* Returns whether denials have changed. */
static bool take_news(struct cluster *cluster, struct slice line)
{
	struct slice word = slice_cut(&line, ' ');

	if (slice_is_equal(word, SLICE_LIT("up"))) {
		cluster->is_up = cluster->is_judged = true;
		cluster->is_full = false;
		on_saved(&cluster->router->kept_sessions); /* what has ended meanwhile */
		note_logs_change(cluster);
		settle_asks(cluster);
		deny_list_untell(&cluster->router->sessions.deny_list);
		cluster_tell_denials(cluster);
	} else if (slice_is_equal(word, SLICE_LIT("down"))) {
		set_down(cluster, true, line);
		settle_asks(cluster);
	} else if (slice_is_equal(word, SLICE_LIT("lost"))) {
		take_loss(cluster, line);
	} else if (slice_is_equal(word, SLICE_LIT("counts"))) {
		take_counts(cluster, line);
	} else if (slice_is_equal(word, SLICE_LIT("denial"))) {
		return take_denial(cluster, line);
	}
	return false;
}

static void on_watch_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct cluster *cluster = container_of(inquiry, struct cluster, watch);
	struct slice lines = answer->body;
	bool is_denied = false;

	if (answer->status != 200)
		set_down(cluster, true, SLICE_LIT("mcpgated-store does not run"));
	while (answer->status == 200 && lines.n > 0)
		is_denied |= take_news(cluster, slice_cut(&lines, '\n'));
	if (is_denied)
		cluster->on_denials();
	start_watch(cluster);
}

void cluster_connect(struct cluster *cluster, int fd)
{
	CHECK(cluster->client != NULL);
	set_down(cluster, false, SLICE_LIT(NOT_REACHED));
	fetch_client_connect(cluster->client, fd); /* which may end what the one before was asked */
	set_down(cluster, false, SLICE_LIT(NOT_REACHED));
}

/* ---- sessions of others ---- */

static void ask_end(struct cluster_ask *ask)
{
	ask->cluster->asking_count--;
	list_remove(&ask->link);
	timer_stop(&ask->deadline);
	inquiry_cancel(&ask->inquiry);
	buf_fini(&ask->question);
	ask->cluster = NULL;
}

static void ask_finish(struct cluster_ask *ask, bool is_answered)
{
	bool is_known =
		is_answered || kept_sessions_have(&ask->cluster->router->kept_sessions, &ask->id);

	ask_end(ask);
	ask->on_done(ask, is_known);
}

static void on_take_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct cluster_ask *ask = container_of(inquiry, struct cluster_ask, inquiry);
	struct cluster *cluster = ask->cluster;
	bool was_ours = slice_is_equal(answer->etag, cluster->node);

	if (answer->status == 200)
		kept_sessions_take(&cluster->router->kept_sessions, answer->body, was_ours);
	if (answer->status == 200 && !was_ours)
		LOG(SESSION_TAKEN, LOG_SLICE("from", answer->etag));
	ask_finish(ask, answer->status == 200 || answer->status == 404);
}

static void ask_send(struct cluster_ask *ask)
{
	inquiry_start(ask->cluster->client, &ask->inquiry, FETCH_STORE_TAKE, 0, NULL,
		      buf_slice(&ask->question));
}

/* Those who came before anybody knew whether the store can be reached. */
static void settle_asks(struct cluster *cluster)
{
	LIST_EACH_SAFE(struct cluster_ask, ask, &cluster->asking, link) {
		if (inquiry_is_running(&ask->inquiry) || ask->question.len == 0)
			continue;
		if (cluster->is_up)
			ask_send(ask);
		else
			timer_start(cluster->router->loop, &ask->deadline, 0);
	}
}

static void on_ask_deadline(struct timer *timer)
{
	ask_finish(container_of(timer, struct cluster_ask, deadline), false);
}

bool cluster_must_ask(const struct cluster *cluster, struct slice id)
{
	const struct session_table *live = &cluster->router->sessions.table;

	return cluster->client != NULL && session_id_node(id).n > 0 &&
	       session_table_find(live, id) == NULL;
}

/* Whether this caller, or all together, ask for too much already. */
static bool is_busy(const struct cluster *cluster, const struct principal *principal)
{
	size_t own = 0;

	LIST_FOREACH(node, &cluster->asking)
		own += container_of(node, struct cluster_ask, link)->principal == principal;
	return cluster->asking_count >= CLUSTER_ASKING_MAX || own >= CLUSTER_ASKING_EACH;
}

void cluster_ask_start(struct cluster *cluster, struct cluster_ask *ask, struct slice id,
		       const struct principal *principal, const struct server *server)
{
	bool can_ask = (cluster->is_up || !cluster->is_judged) && !is_busy(cluster, principal) &&
		       !cluster->router->is_draining; /* it would be taken from who serves it */

	CHECK(cluster->client != NULL && ask->cluster == NULL && ask->on_done != NULL);
	ask->cluster = cluster;
	ask->principal = principal;
	digest_bytes(id, &ask->id);
	ask->inquiry = (struct inquiry){ .on_done = on_take_answer };
	ask->question = (struct buf){ 0 };
	list_append(&cluster->asking, &ask->link);
	cluster->asking_count++;
	timer_init(&ask->deadline, on_ask_deadline);
	timer_start(cluster->router->loop, &ask->deadline, can_ask ? CLUSTER_ASK_MS : 0);
	if (!can_ask)
		return;
	kept_sessions_question(&cluster->router->kept_sessions, &ask->question, id, principal,
			       server);
	if (cluster->is_up)
		ask_send(ask);
}

void cluster_ask_cancel(struct cluster_ask *ask)
{
	if (ask->cluster != NULL)
		ask_end(ask);
}

/* ---- whole ---- */

void cluster_init(struct cluster *cluster, struct router *router, const char *node,
		  cluster_denials_fn *on_denials)
{
	*cluster =
		(struct cluster){ .router = router, .on_denials = on_denials, .why = NOT_REACHED };
	list_init(&cluster->asking);
	if (node == NULL)
		return;
	snprintf(cluster->name, sizeof(cluster->name), "%s", node);
	cluster->node = slice_str(cluster->name);
	cluster->saved.on_done = on_saved_answer;
	cluster->watch.on_done = on_watch_answer;
	cluster->deny.on_done = on_deny_answer;
	cluster->logged.on_done = on_logged_answer;
	cluster->count.on_done = on_count_answer;
	timer_init(&cluster->counting, on_counting);
	timer_init(&cluster->logging, on_logging);
	router->kept_sessions.logs.on_change = on_logs_change;
	router->sessions.deny_list.is_shared = true;
	cluster->client = fetch_client_new(router->loop);
	cluster_share(cluster, CLUSTER_RATES, &router->rates.shared);
	session_table_name(&router->sessions.table, cluster->node);
	router->kept_sessions.cluster = cluster;
	router->kept_sessions.on_saved = on_saved;
	start_watch(cluster);
}

void cluster_fini(struct cluster *cluster)
{
	CHECK(list_is_empty(&cluster->asking));
	if (cluster->client == NULL)
		return;
	cluster->router->kept_sessions.on_saved = NULL;
	cluster->router->kept_sessions.logs.on_change = NULL;
	for (size_t kind = 0; kind < CLUSTER_COUNT_KINDS; kind++)
		if (cluster->tallies[kind] != NULL)
			cluster->tallies[kind]->on_counted = NULL;
	timer_stop(&cluster->counting);
	timer_stop(&cluster->logging);
	fetch_client_free(&cluster->client);
}
