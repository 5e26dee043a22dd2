/* SPDX-License-Identifier: Apache-2.0 */
/* What a token was made for is known by its hash alone. Whoever waits is in the list of one credential. */
#include "upstream/credential.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "auth/fetch_client.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "obs/log.h"
#include "process/server.h"
#include "session/principal.h"

#define DIGEST_BYTES 32
#define MARGIN_MS 30000 /* before its end it is got anew; of a short one, a quarter of its time */
#define FAILED_MS 5000  /* for which a failure counts */
#define SWEEP_MS 60000
#define FRESH_MS 10000 /* a token that is refused so soon would be refused again */

struct credential {
	struct map_link by_key;
	struct list used;
	struct credentials *credentials;
	uint32_t number;                     /* of the server */
	unsigned char subject[DIGEST_BYTES]; /* of the caller's token; zeros: it is for nobody */
	struct list waits;
	struct inquiry inquiry;
	struct buf token; /* empty: there is none */
	char *error;      /* why, as of got_ms; NULL: it is not known */
	uint64_t got_ms;
	uint64_t good_until_ms, good_until_wall_ms;
};

/* ---- what is kept ---- */

static void credential_free(struct credential *credential)
{
	struct credentials *credentials = credential->credentials;

	CHECK(list_is_empty(&credential->waits));
	inquiry_cancel(&credential->inquiry);
	map_remove_link(&credentials->by_key, &credential->by_key);
	list_remove(&credential->used);
	credentials->count--;
	buf_wipe(&credential->token);
	free(credential->error);
	free(credential);
}

const struct shown_token *credential_subject(const struct server *server,
					     const struct principal *principal)
{
	return server->conf.for_caller && principal != NULL ?
		       principal_token(principal, slice_str(server->conf.name)) :
		       NULL;
}

/* False: it is for a caller's token, and there is none. */
static bool digest_subject(const struct server *server, const struct principal *principal,
			   unsigned char digest_r[DIGEST_BYTES])
{
	const struct shown_token *subject = credential_subject(server, principal);

	memset(digest_r, 0, DIGEST_BYTES);
	if (!server->conf.for_caller)
		return true;
	if (subject == NULL)
		return false;
	CHECK(EVP_Digest(subject->token.data, subject->token.len, digest_r, NULL, EVP_sha256(),
			 NULL) == 1);
	return true;
}

static uint64_t hash(const struct credentials *credentials, uint32_t number,
		     const unsigned char *subject)
{
	return text_hash(credentials->seed + number, slice_of((const char *)subject, DIGEST_BYTES));
}

static struct credential *find(const struct credentials *credentials, uint32_t number,
			       const unsigned char *subject)
{
	uint64_t key = hash(credentials, number, subject);

	MAP_EACH(struct credential, credential, &credentials->by_key, key, by_key)
		if (credential->number == number &&
		    memcmp(credential->subject, subject, DIGEST_BYTES) == 0)
			return credential;
	return NULL;
}

/* Those that somebody waits for are few: each has processes. */
static void make_room(struct credentials *credentials)
{
	LIST_EACH_SAFE(struct credential, credential, &credentials->used, used) {
		if (credentials->count < CREDENTIALS_MAX)
			return;
		if (list_is_empty(&credential->waits))
			credential_free(credential);
	}
}

static struct credential *credential_new(struct credentials *credentials, uint32_t number,
					 const unsigned char *subject)
{
	struct credential *credential = mem_zalloc(sizeof(*credential));

	make_room(credentials);
	credential->credentials = credentials;
	credential->number = number;
	memcpy(credential->subject, subject, DIGEST_BYTES);
	list_init(&credential->waits);
	list_append(&credentials->used, &credential->used);
	map_insert_link(&credentials->by_key, hash(credentials, number, subject),
			&credential->by_key);
	credentials->count++;
	if (!timer_is_running(&credentials->sweep))
		timer_start(credentials->loop, &credentials->sweep, SWEEP_MS);
	return credential;
}

static bool is_known(const struct credential *credential)
{
	uint64_t now_ms = clock_now_ms();

	return credential->error != NULL ?
		       now_ms < credential->got_ms + FAILED_MS :
		       credential->token.len > 0 && now_ms < credential->good_until_ms &&
			       clock_wall_now_ms() < credential->good_until_wall_ms;
}

/* Forgets those that are over. */
static void on_sweep(struct timer *timer)
{
	struct credentials *credentials = container_of(timer, struct credentials, sweep);

	LIST_EACH_SAFE(struct credential, credential, &credentials->used, used)
		if (list_is_empty(&credential->waits) && !is_known(credential))
			credential_free(credential);
	if (credentials->count > 0)
		timer_start(credentials->loop, timer, SWEEP_MS);
}

/* ---- asking ---- */

static void credential_set(struct credential *credential, const struct fetch_answer *answer)
{
	uint64_t good_ms = (uint64_t)answer->retry_after_s * 1000;
	uint64_t margin_ms = good_ms / 4 < MARGIN_MS ? good_ms / 4 : MARGIN_MS;

	buf_wipe(&credential->token);
	free(credential->error);
	credential->error = NULL;
	credential->got_ms = clock_now_ms();
	credential->good_until_ms = credential->got_ms + good_ms - margin_ms;
	credential->good_until_wall_ms = clock_wall_ms() + good_ms - margin_ms;
	if (answer->status != 200)
		credential->error = mem_strdup(answer->error);
	else if (answer->body.n > VERIFIER_TOKEN_BYTES_MAX || !text_is_b64token(answer->body))
		credential->error = mem_strdup("what came is no token");
	else if (good_ms == 0)
		credential->error = mem_strdup("the token that came is over already");
	else
		buf_append_slice(&credential->token, answer->body);
}

static struct credential_answer answer_of(const struct credential *credential)
{
	return (struct credential_answer){ buf_slice(&credential->token), credential->good_until_ms,
					   credential->good_until_wall_ms, credential->error };
}

static void note_failure(const struct server *server, const char *error)
{
	LOG_BY(CREDENTIAL_FAILED, (uintptr_t)server, LOG_STR("server", server->conf.name),
	       LOG_STR("error", error));
}

/* Callbacks may ask again; whoever does gets what is kept now. */
static void on_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct credential *credential = container_of(inquiry, struct credential, inquiry);
	struct list told;

	credential_set(credential, answer);
	list_move(&credential->credentials->used,
		  &credential->used); /* it is not the one to be forgotten meanwhile */
	list_init(&told);
	list_splice(&told, &credential->waits);
	if (credential->error != NULL && !list_is_empty(&told))
		note_failure(container_of(told.next, struct credential_wait, link)->server,
			     credential->error);
	LIST_DRAIN(struct credential_wait, wait, &told, link) {
		const struct credential_answer now = answer_of(credential);

		list_remove(&wait->link);
		wait->credential = NULL;
		wait->on_done(wait, &now);
	}
}

static void credential_ask(struct credential *credential, const struct server *server,
			   const struct principal *principal)
{
	const struct shown_token *shown = credential_subject(server, principal);
	struct slice subject = { NULL, 0 };

	if (inquiry_is_running(&credential->inquiry))
		return;
	if (shown != NULL)
		subject = buf_slice(&shown->token);
	credential->inquiry.on_done = on_answer;
	inquiry_start(credential->credentials->client, &credential->inquiry, FETCH_TOKEN,
		      credential->number - 1, NULL, subject);
}

bool credential_get(struct credentials *credentials, const struct server *server,
		    struct principal *principal, struct credential_wait *wait,
		    struct credential_answer *answer_r)
{
	unsigned char subject[DIGEST_BYTES];
	struct credential *credential;

	CHECK(wait->credential == NULL && wait->on_done != NULL && server->conf.credential > 0);
	*answer_r = (struct credential_answer){ .error = NULL };
	if (server->is_retired || credentials->client == NULL)
		answer_r->error =
			"the configuration of the server has changed: a new session is needed";
	else if (!digest_subject(server, principal, subject))
		answer_r->error =
			"the caller has shown no token that it could be made for (token_exchange: "
			"of an issuer; assertion: with a sub)";
	if (answer_r->error != NULL) {
		note_failure(server, answer_r->error);
		return true;
	}
	credential = find(credentials, server->conf.credential, subject);
	if (credential == NULL)
		credential = credential_new(credentials, server->conf.credential, subject);
	list_move(&credentials->used, &credential->used);
	*answer_r = answer_of(credential);
	if (is_known(credential))
		return true;
	wait->credential = credential;
	wait->server = server;
	wait->principal = principal;
	list_append(&credential->waits, &wait->link);
	credential_ask(credential, server, principal);
	return false;
}

void credential_cancel(struct credential_wait *wait)
{
	if (wait->credential == NULL)
		return;
	list_remove(&wait->link);
	wait->credential = NULL;
}

bool credential_refused(struct credentials *credentials, const struct server *server,
			const struct principal *principal, uint64_t good_until_ms,
			uint64_t since_ms)
{
	unsigned char subject[DIGEST_BYTES];
	struct credential *credential = NULL;

	if (digest_subject(server, principal, subject))
		credential = find(credentials, server->conf.credential, subject);
	if (credential == NULL || credential->good_until_ms != good_until_ms)
		return true;
	if (credential->got_ms >= since_ms && clock_now_ms() < credential->got_ms + FRESH_MS)
		return false;
	buf_wipe(&credential->token);
	return true;
}

/* ---- whole ---- */

void credentials_init(struct credentials *credentials, struct loop *loop)
{
	*credentials = (struct credentials){ .loop = loop };
	random_bytes(&credentials->seed, sizeof(credentials->seed));
	list_init(&credentials->used);
	timer_init(&credentials->sweep, on_sweep);
}

void credentials_fini(struct credentials *credentials)
{
	LIST_DRAIN(struct credential, credential, &credentials->used, used)
		credential_free(credential);
	map_fini(&credentials->by_key);
	timer_stop(&credentials->sweep);
}

void credentials_use(struct credentials *credentials, struct fetch_client *client)
{
	struct list waits;

	if (credentials->client == client)
		return;
	list_init(&waits);
	LIST_EACH(struct credential, credential, &credentials->used, used)
		list_splice(&waits, &credential->waits);
	credentials_fini(credentials);
	credentials->client = client;
	LIST_DRAIN(struct credential_wait, wait, &waits, link) {
		struct credential_answer answer;

		list_remove(&wait->link);
		wait->credential = NULL;
		if (credential_get(credentials, wait->server, wait->principal, wait, &answer))
			wait->on_done(wait, &answer);
	}
}
