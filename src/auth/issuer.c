/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two errands, each with its own due time: discovery, and renewal of keys. A failed one is repeated after
 * 1, 2, 4 … 60 seconds (discovery beside a configured jwks_uri: up to an hour, because some issuers have no
 * metadata); a failed renewal also starts discovery, because keys may have moved. One slow tick starts what is
 * due, so that the many different waits need no timer each.
 */
#include "auth/issuer.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/document.h"
#include "auth/url.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "obs/log.h"

#define TICK_MS 500
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS (60 * 1000)
#define RETRY_STEPS_MAX 12
#define LIFETIME_MIN_S 60
#define LIFETIME_DEFAULT_S 600
#define LIFETIME_MAX_S (24 * 60 * 60)
#define DISCOVERY_MS (24 * 60 * 60 * 1000)
#define SPARE_RETRY_MAX_MS (60 * 60 * 1000) /* where metadata are not needed for keys */
#define STALE_MAX_MS (24 * 60 * 60 * 1000)
#define ETAG_BYTES_MAX 256
#define UNASKED_MAX_MS 10000 /* it may take so long that it is asked, and answers */

/* ---- documents ---- */

uint64_t issuer_lifetime_ms(struct slice cache_control)
{
	uint64_t seconds = LIFETIME_DEFAULT_S;
	struct slice rest = cache_control;

	while (rest.n > 0) {
		struct slice value = slice_trim(slice_cut(&rest, ','));
		struct slice name = slice_trim(slice_cut(&value, '='));
		uint64_t given;

		if (slice_is_equal_nocase(name, SLICE_LIT("no-store")) ||
		    slice_is_equal_nocase(name, SLICE_LIT("no-cache")))
			seconds = LIFETIME_MIN_S;
		if (slice_is_equal_nocase(name, SLICE_LIT("max-age")) &&
		    text_parse_u64(slice_trim(value), &given) == 0)
			seconds = given;
	}
	if (seconds < LIFETIME_MIN_S)
		seconds = LIFETIME_MIN_S;
	return (seconds < LIFETIME_MAX_S ? seconds : LIFETIME_MAX_S) * 1000;
}

/* ---- errands ---- */

static void errand_is_done(struct issuer_errand *errand, uint64_t again_after_ms)
{
	CHECK(!inquiry_is_running(&errand->inquiry));
	errand->failures = 0;
	errand->due_ms = clock_now_ms() + again_after_ms;
}

/* Half of the wait is random, so that gateways that lost one issuer at once do not all come back at once. */
static void errand_has_failed(struct issuer_errand *errand, uint64_t wait_max_ms)
{
	unsigned int step = errand->failures < RETRY_STEPS_MAX ? errand->failures : RETRY_STEPS_MAX;
	uint64_t wait_ms = (uint64_t)RETRY_MIN_MS << step;

	CHECK(!inquiry_is_running(&errand->inquiry));
	if (wait_ms > wait_max_ms)
		wait_ms = wait_max_ms;
	errand->failures++;
	errand->due_ms = clock_now_ms() + wait_ms / 2 + random_below(wait_ms / 2 + 1);
}

/* Whether it is known where the keys are; which address that is decides whoever fetches. */
static bool issuer_has_jwks_uri(const struct issuer *issuer)
{
	return issuer->has_jwks_uri || document_string(issuer->metadata, "jwks_uri") != NULL;
}

static void issuer_start_discovery(struct issuer *issuer)
{
	inquiry_start(issuer->client, &issuer->discovery.inquiry, FETCH_METADATA, issuer->number,
		      NULL, slice_of(NULL, 0));
}

static void issuer_start_renewal(struct issuer *issuer)
{
	inquiry_start(issuer->client, &issuer->renewal.inquiry, FETCH_KEYS, issuer->number,
		      issuer->etag, slice_of(NULL, 0));
}

/* For the operator. */
static void issuer_note_cause(struct issuer *issuer, const char *what,
			      const struct fetch_answer *answer, const char *otherwise)
{
	CHECK(otherwise != NULL);
	if (answer->status == 0)
		snprintf(issuer->cause, sizeof(issuer->cause), "%s: %s", what, answer->error);
	else if (answer->status != 200)
		snprintf(issuer->cause, sizeof(issuer->cause), "%s: status %d", what,
			 answer->status);
	else
		snprintf(issuer->cause, sizeof(issuer->cause), "%s: %s", what, otherwise);
}

/* ---- discovery ---- */

/* The tag of the set of keys, or none. */
static void issuer_keep_etag(struct issuer *issuer, struct slice etag)
{
	free(issuer->etag);
	issuer->etag = etag.n > 0 && etag.n <= ETAG_BYTES_MAX ? mem_dup_slice(etag) : NULL;
}

static void issuer_take_metadata(struct issuer *issuer, json_t *document)
{
	struct slice before = document_text(issuer->metadata, "jwks_uri");
	bool is_moved = issuer->metadata != NULL &&
			!slice_is_equal(before, document_text(document, "jwks_uri"));
	bool is_due = issuer->renewal.due_ms <= clock_now_ms();

	json_decref(issuer->metadata);
	issuer->metadata = document;
	errand_is_done(&issuer->discovery, DISCOVERY_MS);
	if (is_moved) /* at another address the same tag may stand for another set */
		issuer_keep_etag(issuer, slice_of(NULL, 0));
	/*
	 * Keys that just failed to come are not fetched from the same address before they are due: each such
	 * failure starts discovery, which leads here again.
	 */
	if ((is_due || is_moved) && issuer_has_jwks_uri(issuer) &&
	    !inquiry_is_running(&issuer->renewal.inquiry))
		issuer_start_renewal(issuer);
}

static void issuer_on_metadata(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct issuer_errand *errand = container_of(inquiry, struct issuer_errand, inquiry);
	struct issuer *issuer = container_of(errand, struct issuer, discovery);
	struct error err = { ERROR_NONE, "" };
	json_t *document = answer->status == 200 ?
				   issuer_metadata_read(answer->body, issuer->name, &err) :
				   NULL; /* whoever fetches has judged, and logs, what it finds */

	if (document != NULL) {
		issuer_take_metadata(issuer, document);
	} else {
		errand_has_failed(errand, issuer->has_jwks_uri ? SPARE_RETRY_MAX_MS : RETRY_MAX_MS);
		if (!issuer->has_jwks_uri)
			issuer_note_cause(issuer, "its metadata", answer, err.text);
	}
	issuer->ops->on_settled(issuer);
}

/* ---- keys ---- */

static int issuer_take_keys(struct issuer *issuer, struct slice text, struct error *err)
{
	json_auto_t *document = document_parse(text, err);
	unsigned char digest[sizeof(issuer->digest)];
	struct jwk_set set;
	int result;

	if (document == NULL)
		return -1;
	result = jwk_set_parse(document, issuer->algorithms, &set, err);
	if (result < 0)
		return -1;
	CHECK(set.count > 0);
	jwk_set_fini(&issuer->keys);
	issuer->keys = set;
	SHA256((const unsigned char *)text.p, text.n, digest);
	if (memcmp(digest, issuer->digest, sizeof(digest)) == 0)
		return 0;
	memcpy(issuer->digest, digest, sizeof(digest));
	LOG(ISSUER_KEYS, LOG_STR("issuer", issuer->name), LOG_INT("keys", set.count),
	    LOG_INT("skipped", set.skipped));
	issuer->ops->on_keys_changed(issuer);
	return 0;
}

static void issuer_on_keys(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct issuer_errand *errand = container_of(inquiry, struct issuer_errand, inquiry);
	struct issuer *issuer = container_of(errand, struct issuer, renewal);
	struct error err = { ERROR_NONE, "no answer with status 200" };
	bool is_same = answer->status == 304 && issuer->etag != NULL;
	uint64_t lifetime_ms = issuer_lifetime_ms(answer->cache_control);

	if (is_same ||
	    (answer->status == 200 && issuer_take_keys(issuer, answer->body, &err) == 0)) {
		if (!is_same)
			issuer_keep_etag(issuer, answer->etag);
		issuer->fetched_ms = clock_now_ms();
		if (errand->failures > 0 && issuer->discovery.failures > 0)
			issuer->discovery.due_ms = clock_now_ms(); /* the issuer answers again */
		errand_is_done(errand, lifetime_ms - lifetime_ms / 10);
	} else {
		issuer_note_cause(issuer, "its keys", answer, err.text);
		LOG(ISSUER_KEYS_FAILED, LOG_STR("issuer", issuer->name),
		    LOG_INT("status", answer->status),
		    LOG_STR("error", answer->status == 0 ? answer->error : err.text));
		errand_has_failed(errand, RETRY_MAX_MS);
		issuer->discovery.due_ms = clock_now_ms();
	}
	issuer->ops->on_settled(issuer);
}

/* ---- what is due ---- */

static void issuer_on_tick(struct timer *timer)
{
	struct issuer *issuer = container_of(timer, struct issuer, tick);
	uint64_t now_ms = clock_now_ms();

	if (issuer->discovery.due_ms <= now_ms && !inquiry_is_running(&issuer->discovery.inquiry))
		issuer_start_discovery(issuer);
	if (issuer->renewal.due_ms <= now_ms && !inquiry_is_running(&issuer->renewal.inquiry) &&
	    issuer_has_jwks_uri(issuer))
		issuer_start_renewal(issuer);
	timer_start(issuer->loop, &issuer->tick, TICK_MS);
}

bool issuer_has_keys(const struct issuer *issuer)
{
	return issuer->keys.count > 0 && clock_now_ms() - issuer->fetched_ms < STALE_MAX_MS;
}

/* Metadata that are not needed for keys may be missing for good. */
bool issuer_is_failing(const struct issuer *issuer)
{
	return issuer->renewal.failures > 0 ||
	       (issuer->discovery.failures > 0 && !issuer->has_jwks_uri) ||
	       (!issuer_has_keys(issuer) && clock_now_ms() - issuer->began_ms >= UNASKED_MAX_MS);
}

uint64_t issuer_keyless_since_ms(const struct issuer *issuer)
{
	return issuer->keys.count > 0 ? issuer->fetched_ms + STALE_MAX_MS : issuer->began_ms;
}

bool issuer_is_in_doubt(const struct issuer *issuer)
{
	return issuer->renewal.failures > 0 || !issuer_has_keys(issuer);
}

bool issuer_is_seeking(const struct issuer *issuer)
{
	return inquiry_is_running(&issuer->renewal.inquiry) ||
	       (inquiry_is_running(&issuer->discovery.inquiry) && !issuer_has_jwks_uri(issuer));
}

bool issuer_seek_keys(struct issuer *issuer)
{
	bool is_too_soon =
		issuer->forced_ms > 0 && clock_now_ms() - issuer->forced_ms < issuer->interval_ms;

	if (issuer_is_seeking(issuer))
		return true;
	if (is_too_soon)
		return false;
	issuer->forced_ms = clock_now_ms();
	if (issuer_has_jwks_uri(issuer))
		issuer_start_renewal(issuer);
	else
		issuer_start_discovery(issuer);
	return true;
}

bool issuer_doubts_keys(struct issuer *issuer)
{
	return clock_now_ms() - issuer->fetched_ms >= issuer->interval_ms &&
	       issuer_seek_keys(issuer);
}

struct grant_rules issuer_rules(const struct issuer *issuer, bool must_expire)
{
	return (struct grant_rules){
		.issuer = issuer->name,
		.leeway_ms = issuer->leeway_ms,
		.must_expire = must_expire,
		.max_lifetime_ms = issuer->max_lifetime_ms,
		.client_is_audience = issuer->client_is_audience,
		.roles = issuer->roles,
	};
}

/* ---- whole ---- */

static int issuer_set_algorithms(struct issuer *issuer, const struct verifier_issuer_conf *conf,
				 struct error *err)
{
	static const struct slice usual[] = VERIFIER_ALGORITHMS;
	struct slices names = { usual, ARRAY_LEN(usual) };

	if (conf->algorithms.count > 0)
		names = conf->algorithms;
	for (size_t i = 0; i < names.count; i++) {
		const struct algorithm *algorithm = algorithm_find(names.items[i]);

		if (algorithm == NULL)
			return error_set(err, ERROR_INVALID, "%.100s: there is no algorithm `%.*s`",
					 conf->issuer, SLICE_ARG(names.items[i]));
		issuer->algorithms |= algorithm->bit;
	}
	return 0;
}

static int issuer_check_addresses(const struct verifier_issuer_conf *conf, struct error *err)
{
	struct error why = { ERROR_NONE, "" };

	if (url_check_ours(slice_str(conf->issuer), &why) < 0)
		return error_set(err, ERROR_INVALID, "issuer %.100s: %s", conf->issuer, why.text);
	if (conf->jwks_uri != NULL && url_check_ours(slice_str(conf->jwks_uri), &why) < 0)
		return error_set(err, ERROR_INVALID, "jwks_uri %.100s: %s", conf->jwks_uri,
				 why.text);
	return 0;
}

static void borrow_lists(struct issuer *issuer, const struct verifier_issuer_conf *conf)
{
	issuer->audience = conf->audience;
	issuer->roles = conf->roles;
	issuer->required_claims = conf->required_claims;
}

void issuer_renew(struct issuer *issuer, const struct verifier_issuer_conf *conf)
{
	CHECK(strcmp(issuer->name, conf->issuer) == 0);
	borrow_lists(issuer, conf);
}

int issuer_init(struct issuer *issuer, struct loop *loop, struct fetch_client *client,
		size_t number, const struct verifier_issuer_conf *conf,
		const struct issuer_ops *ops, struct error *err)
{
	CHECK(client != NULL && ops->on_settled != NULL && ops->on_keys_changed != NULL);
	*issuer = (struct issuer){
		.ops = ops,
		.loop = loop,
		.client = client,
		.number = number,
		.name = mem_strdup(conf->issuer),
		.client_is_audience = conf->client_is_audience,
		.has_jwks_uri = conf->jwks_uri != NULL,
		.began_ms = clock_now_ms(),
		.interval_ms = conf->jwks_interval_ms,
		.leeway_ms = conf->leeway_ms,
		.max_lifetime_ms = conf->max_lifetime_ms,
	};
	borrow_lists(issuer, conf);
	timer_init(&issuer->tick, issuer_on_tick);
	issuer->discovery.inquiry.on_done = issuer_on_metadata;
	issuer->renewal.inquiry.on_done = issuer_on_keys;
	if (issuer_set_algorithms(issuer, conf, err) < 0 || issuer_check_addresses(conf, err) < 0) {
		issuer_fini(issuer);
		return -1;
	}
	issuer_on_tick(&issuer->tick);
	return 0;
}

void issuer_fini(struct issuer *issuer)
{
	timer_stop(&issuer->tick);
	inquiry_cancel(&issuer->discovery.inquiry);
	inquiry_cancel(&issuer->renewal.inquiry);
	jwk_set_fini(&issuer->keys);
	json_decref(issuer->metadata);
	free(issuer->name);
	free(issuer->etag);
}

/* ---- asking it about a token ---- */

/* Reads a document. Without an answer a token is never called bad: clients would drop good ones. */

/* ---- the answer ---- */

json_t *introspect_read(struct slice body, const char *issuer, struct verdict *verdict_r)
{
	struct error err = { ERROR_NONE, "" };
	json_t *document = document_parse(body, &err);

	if (document == NULL) {
		verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE, "the answer: %.100s",
			    err.text);
		return NULL;
	}
	if (!json_is_true(json_object_get(document, "active")))
		verdict_set(verdict_r, VERDICT_INACTIVE, "the issuer says it is not active");
	else if (json_object_get(document, "iss") != NULL &&
		 !slice_is_equal(document_text(document, "iss"), slice_str(issuer)))
		verdict_set(verdict_r, VERDICT_UNKNOWN_ISSUER,
			    "the issuer answers that another issuer issued it");
	else
		return document;
	json_decref(document);
	return NULL;
}

/* An outage is logged once, at its beginning; as an error if our own credentials are refused. */
static void introspector_tell(struct introspector *introspector, const struct fetch_answer *answer)
{
	bool was_failing = introspector->is_failing;

	introspector->is_failing = true;
	introspector->failed_at_ms = clock_now_ms();
	if (was_failing)
		return;
	if (answer->status == 401 || answer->status == 403)
		LOG(INTROSPECTION_REFUSED, LOG_STR("issuer", introspector->issuer->name),
		    LOG_INT("status", answer->status));
	else
		LOG(INTROSPECTION_FAILED, LOG_STR("issuer", introspector->issuer->name),
		    LOG_INT("status", answer->status), LOG_STR("error", answer->error));
}

static void question_on_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct question *question = container_of(inquiry, struct question, inquiry);
	struct introspector *introspector = question->introspector;
	struct verdict verdict;
	json_auto_t *claims = NULL;

	CHECK(introspector->running > 0);
	introspector->running--;
	verdict_set(&verdict, VERDICT_INTROSPECTION_UNAVAILABLE, "status %d; %.100s",
		    answer->status, answer->error);
	if (answer->status == 200) {
		verdict.kind = VERDICT_OK;
		claims = introspect_read(answer->body, introspector->issuer->name, &verdict);
	}
	if (verdict.kind == VERDICT_INTROSPECTION_UNAVAILABLE)
		introspector_tell(introspector, answer);
	else
		introspector->is_failing = false;
	question->on_done(question, claims, &verdict);
}

/* ---- asking ---- */

int introspector_ask(struct introspector *introspector, struct question *question,
		     struct slice token, struct verdict *verdict_r)
{
	const struct issuer *issuer = introspector->issuer;
	bool has_endpoint = introspector->has_endpoint ||
			    document_string(issuer->metadata, "introspection_endpoint") != NULL;
	size_t max = question->is_suspect ? INTROSPECTIONS_SUSPECT_MAX : INTROSPECTIONS_MAX;

	CHECK(introspector_is_on(introspector) && question->on_done != NULL);
	CHECK(!inquiry_is_running(&question->inquiry));
	if (!has_endpoint)
		return verdict_set(
			verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
			"the issuer's metadata has no introspection_endpoint, or was not found "
			"yet");
	if (introspector->running >= max)
		return verdict_set(verdict_r, VERDICT_INTROSPECTION_UNAVAILABLE,
				   "%zu questions to the issuer are already under way",
				   introspector->running);
	introspector->running++;
	question->introspector = introspector;
	question->inquiry.on_done = question_on_answer;
	inquiry_start(issuer->client, &question->inquiry, FETCH_INTROSPECTION, issuer->number, NULL,
		      token);
	return 0;
}

void question_cancel(struct question *question)
{
	if (!inquiry_is_running(&question->inquiry))
		return;
	CHECK(question->introspector->running > 0);
	question->introspector->running--;
	inquiry_cancel(&question->inquiry);
}

void introspector_init(struct introspector *introspector, struct issuer *issuer,
		       const struct verifier_issuer_conf *conf)
{
	*introspector = (struct introspector){
		.issuer = issuer,
		.is_on = conf->client_id != NULL,
		.has_endpoint = conf->introspection_endpoint != NULL,
	};
}

void introspector_fini(struct introspector *introspector)
{
	CHECK(introspector->running == 0);
}

bool introspector_is_on(const struct introspector *introspector)
{
	return introspector->is_on;
}
