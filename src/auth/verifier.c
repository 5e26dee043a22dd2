/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token is looked up in the caches, else judged, else its issuer has to be asked: then it becomes a job, which
 * all requests with the same token share. A job runs on when all of them have gone: its result is remembered.
 *
 * A token that is a JWT is judged by the keys of the issuer that it names, and that is final; any other one is
 * shown to the issuers that introspect, in their order. AUTH-OPQ-05, AUTH-ISS-01
 */
#include "auth/verifier.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "auth/document.h"
#include "auth/issuer.h"
#include "auth/jwt.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "obs/log.h"

/* ---- what was found out before ---- */

/*
 * Caches verdicts on tokens by a keyed SHA-256 of the token, never the token itself. Bounded; the
 * least recently used entry is dropped first. AUTH-IN-07, AUTH-OPQ-03
 */

#define TOKEN_DIGEST_BYTES 32
#define AUDIENCE_SHOWN ((size_t)64)

/* Keyed, so that an attacker cannot choose tokens that collide in the map. */
struct token_digest {
	unsigned char bytes[TOKEN_DIGEST_BYTES];
};

struct token_cache {
	unsigned char key[TOKEN_DIGEST_BYTES];
	EVP_MD *sha256; /* fetched once: that costs more than the digest of a token */
	EVP_MD_CTX *ctx;
	struct map map;
	struct list used; /* least recently used first */
	size_t count;
	size_t count_max;
};

struct token_entry {
	struct list link;
	struct token_digest digest;
	size_t issuer; /* number of its issuer */
	struct verdict verdict;
	struct grant *grant; /* NULL unless the verdict is OK */
	uint64_t until_ms;   /* clock_now_ms */
};

/* A map by the first bytes of the digest, and a list in the order of use. */

static void token_cache_init(struct token_cache *cache, size_t count_max)
{
	*cache = (struct token_cache){ .count_max = count_max };
	cache->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	cache->ctx = EVP_MD_CTX_new();
	CHECK(cache->sha256 != NULL && cache->ctx != NULL);
	list_init(&cache->used);
	random_bytes(cache->key, sizeof(cache->key));
}

static struct token_digest token_cache_digest(const struct token_cache *cache, struct slice token)
{
	EVP_MD_CTX *ctx = cache->ctx;
	struct token_digest digest;

	CHECK(EVP_DigestInit_ex(ctx, cache->sha256, NULL) == 1 &&
	      EVP_DigestUpdate(ctx, cache->key, sizeof(cache->key)) == 1 &&
	      EVP_DigestUpdate(ctx, token.p, token.n) == 1 &&
	      EVP_DigestFinal_ex(ctx, digest.bytes, NULL) == 1);
	return digest;
}

static uint64_t verifier_place_of(const struct token_digest *digest)
{
	uint64_t place;

	memcpy(&place, digest->bytes, sizeof(place));
	return place;
}

static void token_cache_remove(struct token_cache *cache, struct token_entry *entry)
{
	CHECK(map_remove(&cache->map, verifier_place_of(&entry->digest)) == entry &&
	      cache->count > 0);
	list_remove(&entry->link);
	cache->count--;
	grant_unref(&entry->grant);
	free(entry);
}

static void token_cache_fini(struct token_cache *cache)
{
	LIST_DRAIN(struct token_entry, entry, &cache->used, link)
		token_cache_remove(cache, entry);
	CHECK(cache->count == 0);
	map_fini(&cache->map);
	EVP_MD_CTX_free(cache->ctx);
	EVP_MD_free(cache->sha256);
}

/* Borrowed until the cache changes; NULL if there is no current entry. Times as in clock.h. */
static const struct token_entry *token_cache_find(struct token_cache *cache,
						  const struct token_digest *digest)
{
	struct token_entry *entry = map_find(&cache->map, verifier_place_of(digest));

	if (entry == NULL || memcmp(&entry->digest, digest, sizeof(*digest)) != 0)
		return NULL;
	if (clock_now_ms() >= entry->until_ms ||
	    (entry->grant != NULL && !grant_is_current(entry->grant, clock_wall_ms()))) {
		token_cache_remove(cache, entry);
		return NULL;
	}
	list_move(&cache->used, &entry->link);
	return entry;
}

/*
 * Caches for `for_ms`, but no longer than the grant is current. The cache takes its own reference
 * to the grant.
 */
static void token_cache_put(struct token_cache *cache, const struct token_digest *digest,
			    size_t issuer, const struct verdict *verdict, struct grant *grant,
			    uint64_t for_ms)
{
	struct token_entry *entry = map_find(&cache->map, verifier_place_of(digest));

	CHECK((grant != NULL) == (verdict->kind == VERDICT_OK));
	if (entry != NULL)
		token_cache_remove(cache, entry);
	if (cache->count == cache->count_max)
		token_cache_remove(cache, container_of(cache->used.next, struct token_entry, link));
	entry = mem_zalloc(sizeof(*entry));
	entry->digest = *digest;
	entry->issuer = issuer;
	entry->verdict = *verdict;
	entry->grant = grant != NULL ? grant_ref(grant) : NULL;
	entry->until_ms = clock_now_ms() + for_ms;
	map_insert(&cache->map, verifier_place_of(digest), entry);
	list_append(&cache->used, &entry->link);
	cache->count++;
}

/* Drops all entries. */
static void token_cache_forget(struct token_cache *cache)
{
	LIST_EACH_SAFE(struct token_entry, token_entry, &cache->used, link)
		token_cache_remove(cache, token_entry);
}

/*
 * This issuer's keys have changed: drops all its verdicts except those of introspection.
 * AUTH-KEY-06
 */
static void token_cache_forget_keys(struct token_cache *cache, size_t issuer)
{
	LIST_EACH_SAFE(struct token_entry, entry, &cache->used, link)
		if (entry->issuer == issuer &&
		    (entry->grant == NULL || entry->grant->source == GRANT_JWT))
			token_cache_remove(cache, entry);
}

/* ---- the verifier ---- */

#define GOOD_MAX 4096 /* tokens remembered */
#define BAD_MAX 1024
#define GOOD_MS (5 * 60 * 1000)
#define ASKED_MS \
	(30 * 1000)     /* an answer of introspection; revocation shows after it. AUTH-OPQ-03, 08 */
#define TRUST_FACTOR 10 /* times that: how long an open stream outlasts the issuer's silence */
#define BAD_MS (10 * 1000)
#define JOBS_MAX 1024

struct authority {
	struct issuer issuer;
	struct introspector introspector;
	struct verifier *verifier;
	bool asks_always;
	uint64_t asked_ms; /* for so long an answer of its introspection is remembered */
};

struct verifier {
	struct loop *loop;
	struct authority *authorities;
	size_t count;
	struct token_cache good;
	struct token_cache bad;
	struct list jobs;
	size_t job_count;
};

/* What is known about a token, the audience aside. */
struct finding {
	size_t authority;
	struct verdict verdict;
	struct grant *grant;
	bool was_asked; /* it is the issuer's answer */
};

/* What a job waits for. */
enum job_state {
	JOB_AWAITS_KEYS, /* of the issuer of a JWT */
	JOB_CONFIRMS,    /* a JWT that is good, and whose issuer is asked as well */
	JOB_SHOWS,       /* an opaque token, which is shown to one authority after the other */
};

struct verifier_job {
	struct list link;
	struct verifier *verifier;
	struct list waits;
	struct token_digest digest;
	struct buf token;
	enum job_state state;
	bool is_unclear; /* an authority that it was shown to could not say */
	struct finding finding;
	struct question question;
	uint64_t asker; /* of its first wait */
	struct task ask;
	struct timer deadline;
};

enum next { NEXT_TELL, NEXT_KEYS, NEXT_ASK };

static const char *const job_states[] = {
	[JOB_AWAITS_KEYS] = "awaits_keys",
	[JOB_CONFIRMS] = "confirms",
	[JOB_SHOWS] = "shows",
};

/* ---- judging a JWT ---- */

static enum next verifier_refuse(struct finding *finding, enum verdict_kind kind, const char *cause)
{
	verdict_set(&finding->verdict, kind, "%s", cause);
	return NEXT_TELL;
}

static enum next judge_claims(struct authority *authority, const struct jwt *jwt,
			      struct finding *finding)
{
	const struct grant_rules rules = issuer_rules(&authority->issuer, true);

	CHECK(finding->grant == NULL);
	finding->grant = grant_new(jwt->claims, &rules, clock_wall_ms(), &finding->verdict);
	if (finding->grant == NULL)
		return NEXT_TELL;
	finding->verdict = (struct verdict){ .kind = VERDICT_OK };
	finding->grant->source = GRANT_JWT;
	finding->grant->algorithm = jwt->algorithm->name;
	return authority->asks_always ? NEXT_ASK : NEXT_TELL;
}

static enum next judge_jwt(struct authority *authority, struct jwt *jwt, bool has_sought,
			   struct finding *finding)
{
	struct issuer *issuer = &authority->issuer;
	const struct jwk *key = NULL;

	if (jwt_check_header(jwt, issuer->algorithms, jwt_access_token_types, &finding->verdict) <
	    0)
		return NEXT_TELL;
	if (issuer_has_keys(issuer))
		key = jwk_set_find(&issuer->keys, jwt_key_id(jwt), jwt->algorithm);
	if (key == NULL) {
		if (has_sought ? issuer_is_seeking(issuer) : issuer_seek_keys(issuer))
			return NEXT_KEYS;
		if (issuer_is_in_doubt(issuer))
			return verifier_refuse(finding, VERDICT_KEYS_UNAVAILABLE,
					       "the issuer's keys could not be fetched");
		return verifier_refuse(finding, VERDICT_UNKNOWN_KEY,
				       "the issuer has no key with this `kid`");
	}
	if (jwt_is_signed_by(jwt, key->key))
		return judge_claims(authority, jwt, finding);
	if (!has_sought && issuer_doubts_keys(issuer))
		return NEXT_KEYS;
	return verifier_refuse(finding, VERDICT_BAD_SIGNATURE, "the signature is wrong");
}

/* The authority of this name; its number, or the count of all. */
static size_t find_authority(const struct verifier *verifier, struct slice name)
{
	size_t at = 0;

	while (at < verifier->count &&
	       !slice_is_equal(slice_str(verifier->authorities[at].issuer.name), name))
		at++;
	return at;
}

static enum next verifier_judge(struct verifier *verifier, struct slice token, bool has_sought,
				struct finding *finding)
{
	/* `{"` and a dot: meant as a JWT, also if it is a broken one. */
	bool is_meant_as_jwt =
		slice_has_prefix(token, SLICE_LIT("eyJ")) && memchr(token.p, '.', token.n) != NULL;
	enum next next = NEXT_TELL;
	at_end(jwt_fini) struct jwt jwt = { .header = NULL };

	finding->authority = verifier->count;
	if (jwt_parse(token, &jwt, &finding->verdict) < 0) {
		for (size_t i = 0; i < verifier->count && !is_meant_as_jwt; i++)
			if (introspector_is_on(&verifier->authorities[i].introspector))
				return NEXT_ASK;
		return NEXT_TELL;
	}
	finding->authority = find_authority(verifier, document_text(jwt.claims, "iss"));
	if (finding->authority < verifier->count)
		next = judge_jwt(&verifier->authorities[finding->authority], &jwt, has_sought,
				 finding);
	else
		verifier_refuse(finding, VERDICT_UNKNOWN_ISSUER,
				"`iss` is not a configured issuer");
	return next;
}

/* The same claims by the rules that hold now; else as it was. NULL: they are no longer met. */
static struct grant *grant_again(const struct authority *authority, const struct grant *before,
				 struct verdict *verdict_r)
{
	bool is_jwt = before->source == GRANT_JWT;
	const struct grant_rules rules = issuer_rules(&authority->issuer, is_jwt);
	struct grant *grant = grant_new(before->claims, &rules, clock_wall_ms(), verdict_r);

	if (grant == NULL)
		return NULL;
	grant->source = before->source;
	grant->algorithm = before->algorithm;
	grant->ask_again_at_ms = before->ask_again_at_ms;
	grant->trust_until_ms = before->trust_until_ms;
	return grant;
}

/* Whether tokens come to be known in this way now. */
static int check_source(const struct authority *authority, const struct grant *grant,
			struct verdict *verdict_r)
{
	bool was_asked = grant->ask_again_at_ms != UINT64_MAX;
	const struct algorithm *algorithm;

	if (grant->source == GRANT_INTROSPECTION) {
		if (introspector_is_on(&authority->introspector))
			return 0;
		return verdict_set(verdict_r, VERDICT_MALFORMED,
				   "its issuer is no longer asked about tokens");
	}
	algorithm = algorithm_find(slice_str(grant->algorithm));
	if (algorithm == NULL || (authority->issuer.algorithms & algorithm->bit) == 0)
		return verdict_set(verdict_r, VERDICT_BAD_ALG,
				   "`%s` is no longer one of the issuer's algorithms",
				   grant->algorithm);
	if (authority->asks_always && !was_asked)
		return verdict_set(verdict_r, VERDICT_INACTIVE,
				   "its issuer was not asked about it");
	return 0;
}

/* ---- telling ---- */

/* AUTH-JWT-15 */
static int check_demands(const struct issuer *issuer, const struct grant *grant,
			 struct verdict *verdict_r)
{
	for (size_t i = 0; i < issuer->required_claims.count; i++) {
		const struct named_slices *demand = &issuer->required_claims.items[i];

		if (!grant_meets(grant, demand))
			return verdict_set(
				verdict_r, VERDICT_POLICY,
				"`%.*s` is missing, or has no value that required_claims lists",
				SLICE_ARG(demand->name));
	}
	return 0;
}

/* Names both sides: which of them is misspelt the operator sees at once. */
static void refuse_audience(const struct grant *grant, struct slices accepted,
			    struct verdict *verdict_r)
{
	struct slice resource = accepted.count > 0 ? accepted.items[0] : slice_of("", 0);
	at_end(buf_fini) struct buf audience = { 0 };

	grant_append_audience(grant, &audience);
	verdict_set(verdict_r, VERDICT_WRONG_AUDIENCE, "`aud` is %.*s%s, not %.*s",
		    (int)(audience.len < AUDIENCE_SHOWN ? audience.len : AUDIENCE_SHOWN),
		    buf_terminate(&audience), audience.len > AUDIENCE_SHOWN ? "..." : "",
		    SLICE_ARG(resource));
}

/* The finding for this asker, whose audience decides. Returns the caller's reference to the grant, or NULL. */
static struct grant *verifier_answer(const struct verifier *verifier, const struct finding *finding,
				     struct slices accepted, struct verdict *verdict_r)
{
	const struct issuer *issuer;

	CHECK((finding->grant != NULL) == (finding->verdict.kind == VERDICT_OK));
	*verdict_r = finding->verdict;
	if (finding->grant == NULL)
		return NULL;
	CHECK(finding->authority < verifier->count);
	issuer = &verifier->authorities[finding->authority].issuer;
	if (!grant_is_for(finding->grant, accepted) &&
	    !grant_is_for(finding->grant, issuer->audience))
		refuse_audience(finding->grant, accepted, verdict_r);
	else if (check_demands(issuer, finding->grant, verdict_r) == 0)
		return grant_ref(finding->grant);
	return NULL;
}

static void remember_finding(struct verifier *verifier, const struct token_digest *digest,
			     const struct finding *finding)
{
	enum verdict_kind kind = finding->verdict.kind;

	if (finding->grant != NULL)
		token_cache_put(&verifier->good, digest, finding->authority, &finding->verdict,
				finding->grant,
				finding->was_asked ?
					verifier->authorities[finding->authority].asked_ms :
					GOOD_MS);
	/* Other refusals may soon be out of date (a key is published, a clock catches up), or are cheap to find again. */
	else if (verdict_get(kind)->outcome == VERDICT_REFUSED &&
		 (finding->was_asked || kind == VERDICT_BAD_SIGNATURE || kind == VERDICT_EXPIRED))
		token_cache_put(&verifier->bad, digest, finding->authority, &finding->verdict, NULL,
				BAD_MS);
}

static bool recall(struct verifier *verifier, const struct token_digest *digest,
		   struct finding *finding_r)
{
	const struct token_entry *entry = token_cache_find(&verifier->good, digest);

	if (entry == NULL)
		entry = token_cache_find(&verifier->bad, digest);
	if (entry == NULL)
		return false;
	finding_r->authority = entry->issuer;
	finding_r->verdict = entry->verdict;
	finding_r->grant = entry->grant != NULL ? grant_ref(entry->grant) : NULL;
	return true;
}

/* ---- jobs ---- */

static void verifier_job_free(struct verifier_job *job)
{
	CHECK(list_is_empty(&job->waits) && job->verifier->job_count > 0);
	list_remove(&job->link);
	job->verifier->job_count--;
	timer_stop(&job->deadline);
	task_cancel(&job->ask);
	question_cancel(&job->question);
	buf_wipe(&job->token);
	grant_unref(&job->finding.grant);
	free(job);
}

static void job_finish(struct verifier_job *job)
{
	struct verifier *verifier = job->verifier;
	struct finding *finding = &job->finding;

	if (finding->was_asked && finding->grant != NULL) { /* AUTH-OPQ-08 */
		uint64_t asked_ms = verifier->authorities[finding->authority].asked_ms;

		finding->grant->ask_again_at_ms = clock_now_ms() + asked_ms;
		finding->grant->trust_until_ms = clock_now_ms() + asked_ms * TRUST_FACTOR;
	}
	list_remove(&job->link); /* from now on requests find what is remembered */
	remember_finding(verifier, &job->digest, finding);
	LIST_DRAIN(struct verifier_wait, wait, &job->waits, link) {
		struct verdict verdict;
		struct grant *grant = verifier_answer(verifier, finding, *wait->accepted, &verdict);

		list_remove(&wait->link);
		wait->job = NULL;
		wait->on_done(wait, &verdict, grant);
	}
	verifier_job_free(job);
}

/* Drops the grant, if there is one that was not confirmed. */
static void job_refuse(struct verifier_job *job, const struct verdict *verdict)
{
	CHECK(verdict->kind != VERDICT_OK);
	grant_unref(&job->finding.grant);
	job->finding.verdict = *verdict;
	job_finish(job);
}

static void job_on_deadline(struct timer *timer)
{
	struct verifier_job *job = container_of(timer, struct verifier_job, deadline);
	bool is_asking = inquiry_is_running(&job->question.inquiry);
	struct verdict verdict;

	verdict_set(&verdict,
		    is_asking ? VERDICT_INTROSPECTION_UNAVAILABLE : VERDICT_KEYS_UNAVAILABLE,
		    "the issuer did not answer in time");
	question_cancel(&job->question);
	job_refuse(job, &verdict);
}

/* Shows an opaque token to the next authority that can be asked; there may be none left. */
static void job_ask_next(struct verifier_job *job, size_t from)
{
	struct verifier *verifier = job->verifier;
	struct verdict verdict;

	CHECK(job->state == JOB_SHOWS);
	for (size_t at = from; at < verifier->count; at++) {
		struct introspector *introspector = &verifier->authorities[at].introspector;

		if (!introspector_is_on(introspector))
			continue;
		job->finding.authority = at;
		if (introspector_ask(introspector, &job->question, buf_slice(&job->token),
				     &verdict) == 0)
			return;
		job->is_unclear = true;
	}
	if (job->is_unclear)
		verdict_set(&verdict, VERDICT_INTROSPECTION_UNAVAILABLE,
			    "an issuer that may know the token cannot be asked");
	else
		verdict_set(&verdict, VERDICT_INACTIVE, "no issuer knows the token as active");
	job_refuse(job, &verdict);
}

static void job_take_confirmation(struct verifier_job *job, const json_t *claims,
				  const struct verdict *verdict)
{
	const json_t *binding = json_object_get(claims, "cnf");
	const json_t *own = json_object_get(job->finding.grant->claims, "cnf");
	struct verdict bound;

	if (claims == NULL) {
		job_refuse(job, verdict);
	} else if (binding != NULL && !json_equal(binding, own)) {
		/* One that only the answer has binds the token as well, and cannot be proven. AUTH-POP-01 */
		verdict_set(&bound, VERDICT_BOUND,
			    "the issuer's answer has a `cnf` that the token does not have");
		job_refuse(job, &bound);
	} else {
		/* Rules may have changed since. */
		struct finding *finding = &job->finding;
		struct authority *authority = &job->verifier->authorities[finding->authority];
		at_end(grant_unref) struct grant *before = finding->grant;

		finding->grant = grant_again(authority, before, &finding->verdict);
		job_finish(job);
	}
}

static void job_on_answer(struct question *question, json_t *claims, const struct verdict *verdict)
{
	struct verifier_job *job = container_of(question, struct verifier_job, question);
	struct finding *finding = &job->finding;
	struct grant_rules rules;
	bool is_answer = verdict_get(verdict->kind)->outcome != VERDICT_UNAVAILABLE;

	CHECK(job->state != JOB_AWAITS_KEYS);
	CHECK((claims != NULL) == (verdict->kind == VERDICT_OK));
	finding->was_asked |= is_answer;
	if (job->state == JOB_CONFIRMS) {
		job_take_confirmation(job, claims, verdict);
		return;
	}
	job->is_unclear |= !is_answer;
	if (claims == NULL) {
		job_ask_next(job, finding->authority + 1);
		return;
	}
	/* All that is known of an opaque token is in the answer. AUTH-OPQ-02 */
	CHECK(finding->grant == NULL);
	rules = issuer_rules(&job->verifier->authorities[finding->authority].issuer, false);
	finding->grant = grant_new(claims, &rules, clock_wall_ms(), &finding->verdict);
	if (finding->grant != NULL) {
		finding->grant->source = GRANT_INTROSPECTION;
		finding->verdict = (struct verdict){ .kind = VERDICT_OK };
	}
	job_finish(job);
}

/* A task, because on_done must not be called before verifier_check has returned. */
static void job_on_ask(struct task *task)
{
	struct verifier_job *job = container_of(task, struct verifier_job, ask);

	struct authority *authority;
	struct verdict verdict;

	if (job->state == JOB_SHOWS) {
		job_ask_next(job, 0);
		return;
	}
	CHECK(job->state == JOB_CONFIRMS && job->finding.grant != NULL);
	authority = &job->verifier->authorities[job->finding.authority];
	if (introspector_ask(&authority->introspector, &job->question, buf_slice(&job->token),
			     &verdict) < 0)
		job_refuse(job, &verdict);
}

static void job_set_state(struct verifier_job *job, enum job_state state)
{
	CHECK(job->state == JOB_AWAITS_KEYS && state != JOB_AWAITS_KEYS);
	LOG(TOKEN_STATE, LOG_STR("from", job_states[job->state]), LOG_STR("to", job_states[state]),
	    LOG_INT("jobs", job->verifier->job_count));
	job->state = state;
}

static void job_go_on(struct verifier_job *job, enum next next)
{
	CHECK(job->state == JOB_AWAITS_KEYS);
	if (next == NEXT_TELL) {
		job_finish(job);
	} else if (next == NEXT_ASK) {
		job_set_state(job, job->finding.grant != NULL ? JOB_CONFIRMS : JOB_SHOWS);
		task_schedule(job->verifier->loop, &job->ask);
	}
}

static struct verifier_job *job_new(struct verifier *verifier, struct slice token,
				    const struct token_digest *digest)
{
	struct verifier_job *job = mem_zalloc(sizeof(*job));

	job->verifier = verifier;
	list_init(&job->waits);
	list_append(&verifier->jobs, &job->link);
	verifier->job_count++;
	job->digest = *digest;
	buf_append_slice(&job->token, token);
	job->question.on_done = job_on_answer;
	task_init(&job->ask, job_on_ask);
	timer_init(&job->deadline, job_on_deadline);
	timer_start(verifier->loop, &job->deadline, VERIFIER_WAIT_MS);
	return job;
}

static struct verifier_job *find_job(const struct verifier *verifier,
				     const struct token_digest *digest)
{
	LIST_EACH(struct verifier_job, job, &verifier->jobs, link)
		if (memcmp(&job->digest, digest, sizeof(*digest)) == 0)
			return job;
	return NULL;
}

/*
 * Whether the question may take only what suspects may: guesses that are still under way have not
 * failed yet. AUTH-OPQ-03
 */
static bool counts_as_suspect(const struct verifier *verifier, const struct verifier_wait *wait)
{
	size_t own = 0;

	if (wait->is_suspect || wait->asker == 0)
		return wait->is_suspect;
	LIST_EACH(struct verifier_job, verifier_job, &verifier->jobs, link)
		own += verifier_job->asker == wait->asker;
	return own >= VERIFIER_OWN_MAX;
}

static void job_add_wait(struct verifier_job *job, struct verifier_wait *wait)
{
	CHECK(wait->job == NULL && wait->on_done != NULL);
	wait->job = job;
	list_append(&job->waits, &wait->link);
}

/* ---- what issuers tell ---- */

/* Callbacks may begin and end waits, so the jobs are moved to a list of their own first. */
static void on_settled(struct issuer *issuer)
{
	struct authority *authority = container_of(issuer, struct authority, issuer);
	struct verifier *verifier = authority->verifier;
	struct list now;

	list_init(&now);
	LIST_EACH_SAFE(struct verifier_job, job, &verifier->jobs, link)
		if (job->state == JOB_AWAITS_KEYS &&
		    &verifier->authorities[job->finding.authority] == authority)
			list_move(&now, &job->link);
	LIST_DRAIN(struct verifier_job, job, &now, link) {
		list_move(&verifier->jobs, &job->link);
		job_go_on(job,
			  verifier_judge(verifier, buf_slice(&job->token), true, &job->finding));
	}
}

static void on_keys_changed(struct issuer *issuer)
{
	struct authority *authority = container_of(issuer, struct authority, issuer);
	struct verifier *verifier = authority->verifier;
	size_t number = (size_t)(authority - verifier->authorities);

	token_cache_forget_keys(&verifier->good, number);
	token_cache_forget_keys(&verifier->bad, number);
}

static const struct issuer_ops issuer_ops = {
	.on_settled = on_settled,
	.on_keys_changed = on_keys_changed,
};

/* ---- checking ---- */

bool verifier_check(struct verifier *verifier, struct slice token, const struct slices *accepted,
		    struct verifier_wait *wait, struct verdict *verdict_r, struct grant **grant_r)
{
	struct finding finding = { .grant = NULL };
	struct token_digest digest;
	struct verifier_job *job;
	enum next next = NEXT_TELL;
	bool is_suspect;

	CHECK(accepted->count == 0 || accepted->items != NULL);
	*grant_r = NULL;
	wait->accepted = accepted;
	if (token.n == 0 || token.n > VERIFIER_TOKEN_BYTES_MAX) {
		verdict_set(verdict_r, token.n == 0 ? VERDICT_MALFORMED : VERDICT_TOO_LARGE,
			    "%zu bytes", token.n);
		return true;
	}
	digest = token_cache_digest(&verifier->good, token);
	if (!recall(verifier, &digest, &finding)) {
		job = find_job(verifier, &digest);
		if (job != NULL) {
			job_add_wait(job, wait);
			return false;
		}
		next = verifier_judge(verifier, token, false, &finding);
		if (next == NEXT_TELL)
			remember_finding(verifier, &digest, &finding);
	}
	is_suspect = next != NEXT_TELL && counts_as_suspect(verifier, wait);
	if (next != NEXT_TELL && verifier->job_count < (is_suspect ? JOBS_MAX / 2 : JOBS_MAX)) {
		job = job_new(verifier, token, &digest);
		job->finding = finding;
		job->question.is_suspect = is_suspect;
		job->asker = wait->asker;
		job_add_wait(job, wait);
		job_go_on(job, next);
		return false;
	}
	if (next == NEXT_TELL)
		*grant_r = verifier_answer(verifier, &finding, *accepted, verdict_r);
	else
		verdict_set(verdict_r,
			    next == NEXT_KEYS ? VERDICT_KEYS_UNAVAILABLE :
						VERDICT_INTROSPECTION_UNAVAILABLE,
			    "questions about %zu tokens are already under way",
			    verifier->job_count);
	grant_unref(&finding.grant);
	return true;
}

/* Each wait stays where it can be cancelled until its turn comes: callbacks may end others. */
static void job_move(struct verifier_job *job, struct verifier *verifier)
{
	LIST_DRAIN(struct verifier_wait, wait, &job->waits, link) {
		struct grant *grant;
		struct verdict verdict;

		list_remove(&wait->link);
		wait->job = NULL;
		if (verifier_check(verifier, buf_slice(&job->token), wait->accepted, wait, &verdict,
				   &grant))
			wait->on_done(wait, &verdict, grant);
	}
}

void verifier_give_up(struct verifier *verifier)
{
	struct verdict verdict;

	verdict_set(&verdict, VERDICT_KEYS_UNAVAILABLE, "the configuration has changed");
	LIST_DRAIN(struct verifier_job, job, &verifier->jobs, link)
		job_refuse(job, &verdict);
}

void verifier_take_over(struct verifier *verifier, struct verifier *other)
{
	CHECK(verifier != other);
	LIST_DRAIN(struct verifier_job, job, &other->jobs, link) {
		job_move(job, verifier);
		verifier_job_free(job);
	}
}

void verifier_cancel(struct verifier_wait *wait)
{
	if (wait->job == NULL)
		return;
	wait->job = NULL;
	list_remove(&wait->link);
}

/* ---- whole ---- */

int verifier_prepare(struct error *err)
{
	uint64_t seed;

	random_bytes(&seed, sizeof(seed));
	json_object_seed((size_t)seed);
	/* Reads openssl.cnf and the texts of errors. */
	if (OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
				NULL) != 1)
		return error_set(err, ERROR_SYSTEM, "cannot initialize OpenSSL");
	return 0;
}

static int add_authority(struct verifier *verifier, struct fetch_client *client,
			 const struct verifier_issuer_conf *conf, struct error *err)
{
	struct authority *authority = &verifier->authorities[verifier->count];
	struct error why = { ERROR_NONE, "" };

	if (conf->introspection_endpoint != NULL &&
	    url_check_ours(slice_str(conf->introspection_endpoint), &why) < 0)
		return error_set(err, ERROR_INVALID, "introspection endpoint %.100s: %s",
				 conf->introspection_endpoint, why.text);
	if (conf->introspect_always && conf->client_id == NULL)
		return error_set(err, ERROR_INVALID,
				 "issuer %.100s: introspection needs a client_id", conf->issuer);
	if (issuer_init(&authority->issuer, verifier->loop, client, verifier->count, conf,
			&issuer_ops, err) < 0)
		return -1;
	introspector_init(&authority->introspector, &authority->issuer, conf);
	authority->verifier = verifier;
	authority->asks_always = conf->introspect_always;
	authority->asked_ms =
		conf->introspection_ttl_ms > 0 ? conf->introspection_ttl_ms : ASKED_MS;
	verifier->count++;
	return 0;
}

struct verifier *verifier_new(struct loop *loop, struct fetch_client *client,
			      const struct verifier_conf *conf, struct error *err)
{
	struct verifier *verifier = mem_zalloc(sizeof(*verifier));

	verifier->loop = loop;
	list_init(&verifier->jobs);
	token_cache_init(&verifier->good, GOOD_MAX);
	token_cache_init(&verifier->bad, BAD_MAX);
	verifier->authorities = mem_zalloc((conf->count + 1) * sizeof(*verifier->authorities));
	for (size_t i = 0; i < conf->count; i++) {
		if (add_authority(verifier, client, &conf->items[i], err) < 0) {
			verifier_free(&verifier);
			return NULL;
		}
	}
	return verifier;
}

void verifier_renew(struct verifier *verifier, const struct verifier_conf *conf)
{
	CHECK(verifier->count == conf->count);
	for (size_t i = 0; i < conf->count; i++)
		issuer_renew(&verifier->authorities[i].issuer, &conf->items[i]);
	token_cache_forget(&verifier->good);
	token_cache_forget(&verifier->bad);
}

struct grant *verifier_judge_again(const struct verifier *verifier, const struct grant *grant,
				   const struct slices *accepted, struct verdict *verdict_r)
{
	struct finding finding = { .verdict = { .kind = VERDICT_OK } };
	struct grant *judged;

	finding.authority = find_authority(verifier, slice_str(grant->issuer));
	if (finding.authority == verifier->count) {
		verdict_set(verdict_r, VERDICT_UNKNOWN_ISSUER,
			    "its issuer is no longer configured");
		return NULL;
	}
	if (check_source(&verifier->authorities[finding.authority], grant, verdict_r) < 0)
		return NULL;
	finding.grant = grant_again(&verifier->authorities[finding.authority], grant, verdict_r);
	if (finding.grant == NULL)
		return NULL;
	judged = verifier_answer(verifier, &finding, *accepted, verdict_r);
	grant_unref(&finding.grant);
	return judged;
}

void verifier_free(struct verifier **verifier)
{
	struct verifier *v = *verifier;

	if (v == NULL)
		return;
	LIST_DRAIN(struct verifier_job, job, &v->jobs, link)
		verifier_job_free(job);
	CHECK(v->job_count == 0);
	for (size_t i = 0; i < v->count; i++) {
		introspector_fini(&v->authorities[i].introspector);
		issuer_fini(&v->authorities[i].issuer);
	}
	token_cache_fini(&v->good);
	token_cache_fini(&v->bad);
	free(v->authorities);
	free(v);
	*verifier = NULL;
}

const json_t *verifier_metadata(const struct verifier *verifier, size_t index)
{
	CHECK(index < verifier->count);
	return verifier->authorities[index].issuer.metadata;
}

/* ---- report ---- */

/* By its own metadata it publishes no keys, and it is asked about each token. */
static bool has_opaque_tokens(const struct authority *authority)
{
	const struct issuer *issuer = &authority->issuer;

	return introspector_is_on(&authority->introspector) && !issuer->has_jwks_uri &&
	       issuer->metadata != NULL && document_string(issuer->metadata, "jwks_uri") == NULL;
}

#define INTROSPECTION_TOLD_MS (10 * 60 * 1000) /* without another question nobody knows */

bool verifier_report_issuer(const struct verifier *verifier, size_t index,
			    struct issuer_report *report_r)
{
	const struct authority *authority = &verifier->authorities[index];
	const struct issuer *issuer = &authority->issuer;

	if (index >= verifier->count)
		return false;
	*report_r = (struct issuer_report){
		.name = issuer->name,
		.has_keys = issuer_has_keys(issuer) || has_opaque_tokens(authority),
		.is_failing = issuer_is_failing(issuer) && !has_opaque_tokens(authority),
		.cause = issuer->cause,
		.keyless_since_ms = issuer_keyless_since_ms(issuer),
		.introspection_failing = authority->introspector.is_failing &&
					 clock_now_ms() - authority->introspector.failed_at_ms <
						 INTROSPECTION_TOLD_MS,
	};
	return true;
}

/* ---- static tokens ---- */

_Static_assert(STATIC_TOKEN_HASH_BYTES == SHA256_DIGEST_LENGTH, "hashes are SHA-256");

/* Compares all of them, whether or not one has matched. */
const struct static_token *static_token_find(const struct static_tokens *tokens, struct slice text)
{
	const struct static_token *found = NULL;
	unsigned char hash[STATIC_TOKEN_HASH_BYTES];

	if (tokens->count == 0)
		return NULL;
	SHA256((const unsigned char *)text.p, text.n, hash);
	for (size_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(hash, tokens->items[i].hash, sizeof(hash)) == 0)
			found = &tokens->items[i];
	return found;
}

bool static_token_is_over(const struct static_token *token)
{
	return token->ends_at_ms > 0 && clock_wall_ms() >= token->ends_at_ms;
}

bool static_token_is_for(const struct static_token *token, struct slice server)
{
	return token->servers.count == 0 || slices_has(token->servers, server);
}

uint64_t static_token_mark(const struct static_token *token)
{
	uint64_t mark;

	memcpy(&mark, token->hash, sizeof(mark));
	return mark;
}

const struct static_token *static_token_find_marked(const struct static_tokens *tokens,
						    struct slice name, uint64_t mark)
{
	for (size_t i = 0; i < tokens->count; i++) {
		const struct static_token *token = &tokens->items[i];

		if (slice_is_equal(token->name, name) && static_token_mark(token) == mark)
			return token;
	}
	return NULL;
}

bool static_token_outlives(const struct static_token *token, const struct static_tokens *now)
{
	const struct static_token *same =
		static_token_find_marked(now, token->name, static_token_mark(token));

	if (same == NULL || (same->ends_at_ms > 0 &&
			     (token->ends_at_ms == 0 || same->ends_at_ms < token->ends_at_ms)))
		return false;
	if (same->servers.count == 0)
		return true;
	for (size_t i = 0; i < token->servers.count; i++)
		if (!slices_has(same->servers, token->servers.items[i]))
			return false;
	return token->servers.count > 0;
}
