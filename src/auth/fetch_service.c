/* SPDX-License-Identifier: Apache-2.0 */
/* While many answers wait to be read, no question is: who does not listen is not heard. */
#include "auth/fetch_service.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "auth/client_auth.h"
#include "auth/document.h"
#include "auth/fetch.h"
#include "auth/issuer.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "io/ipc_channel.h"
#include "obs/log.h"

#define TOKEN_USUAL_S 300        /* of a token whose answer does not say how long it is good */
#define TOKEN_MOST_S (24 * 3600) /* then it is got anew */
#define ERROR_WORD_MAX 64
#define FORM_BYTES (16 * 1024) /* for all but secrets and tokens */
#define TOKEN_EXCHANGE "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
#define ACCESS_TOKEN "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"

/* ---- sites ---- */

/*
 * One issuer as the program that fetches knows it: its addresses, our credentials there, whom it is reached by. Where
 * a question goes is decided here alone: by the configuration, else by the issuer's metadata, which are fetched and
 * judged here, too. Whoever asks may be anybody: how much is under way and how often is bounded.
 * AUTH-AS-01 to 03, AUTH-OPQ-01, SEC-10
 */

struct site_question;
typedef void site_done_fn(struct site_question *question, const struct fetch_answer *answer);

/* Embedded by its owner, which sets on_done; zeroed otherwise. */
struct site_question {
	site_done_fn *on_done;
	struct fetch_site *site; /* private; NULL when nothing is under way */
	struct list link;        /* private, as all below: while it waits for metadata */
	struct fetch fetch;
	enum fetch_kind kind;
	char *etag;
	struct buf token;
};

struct fetch_site {
	char *issuer;
	struct fetcher *fetcher;
	char *own_ca;
	struct slice ca;
	struct address_filter address_filter;
	bool allow_http;
	char *configured_urls[FETCH_KIND_COUNT]; /* NULL: the metadata's */
	char *found_urls[FETCH_KIND_COUNT];      /* NULL: not found (yet) */
	bool may_introspect;
	struct client_auth client_auth; /* if it may, or gives tokens */
	const struct credential_conf
		*credential;        /* of a server; NULL: an issuer of callers' tokens */
	struct assertion assertion; /* CREDENTIAL_ASSERTION: nobody is asked */

	struct fetch discovery;
	size_t candidate;    /* which of the places is being asked */
	bool is_failing;     /* it has been logged that there are no metadata */
	struct list waiting; /* questions for or with the metadata */

	size_t under_way[FETCH_KIND_COUNT];
	uint64_t spent_ms[FETCH_KIND_COUNT]; /* until when the questions so far use up their rate */
};

/*
 * A question whose address is not known waits for the metadata, which are fetched then. Otherwise they are fetched when
 * somebody asks for them.
 */

/* What one issuer is asked at most, so that a gateway that was taken over makes no flood of it. */
static const struct {
	size_t under_way;
	uint64_t each_ms;  /* how long one question uses up the rate */
	uint64_t burst_ms; /* so much may be used up ahead */
} bounds[FETCH_KIND_COUNT] = {
	[FETCH_METADATA] = { 1, 1000, 60 * 1000 },
	[FETCH_KEYS] = { 1, 1000, 60 * 1000 },
	[FETCH_INTROSPECTION] = { INTROSPECTIONS_MAX, 1, 2000 },
	[FETCH_TOKEN] = { INTROSPECTIONS_MAX, 10, 10 * 1000 },
};

/* The member of the metadata that says where. */
static const char *const members[FETCH_KIND_COUNT] = {
	[FETCH_KEYS] = "jwks_uri",
	[FETCH_INTROSPECTION] = "introspection_endpoint",
	[FETCH_TOKEN] = "token_endpoint",
};

/* ---- questions ---- */

static const char *site_url(const struct fetch_site *site, enum fetch_kind kind)
{
	return site->configured_urls[kind] != NULL ? site->configured_urls[kind] :
						     site->found_urls[kind];
}

/* Nothing of it is under way any more. */
static void question_leave(struct site_question *question)
{
	struct fetch_site *site = question->site;

	CHECK(site->under_way[question->kind] > 0);
	site->under_way[question->kind]--;
	list_remove(&question->link);
	free(question->etag);
	buf_wipe(&question->token);
	question->etag = NULL;
	question->site = NULL;
}

static void question_tell(struct site_question *question, const struct fetch_answer *answer)
{
	question_leave(question);
	question->on_done(question, answer);
}

/* Of an answer of the token endpoint: the token, and how long it is good. Returns -1 and err if there is none. */
static int read_token(const json_t *document, struct slice *token_r, uint32_t *good_s_r,
		      struct error *err)
{
	const char *type = document_string(document, "token_type");
	const char *token = document_string(document, "access_token");
	const json_t *good = json_object_get(document, "expires_in");
	json_int_t good_s = json_is_integer(good) ? json_integer_value(good) : TOKEN_USUAL_S;

	if (json_is_real(good))
		good_s = (json_int_t)json_real_value(good);
	if (type == NULL || strcasecmp(type, "Bearer") != 0)
		return error_set(err, ERROR_INVALID, "its answer is no bearer token");
	if (token == NULL || !text_is_b64token(slice_str(token)))
		return error_set(err, ERROR_INVALID, "the token in its answer is none");
	*token_r = slice_str(token);
	*good_s_r = (uint32_t)(good_s < 0 ? 0 : good_s > TOKEN_MOST_S ? TOKEN_MOST_S : good_s);
	return 0;
}

/* RFC 6749 s5.2: a word of a few. Whatever else stands there may be anything, also a secret of ours. */
static void word_refusal(const json_t *document, const struct fetch_answer *answer,
			 struct error *err)
{
	const char *word = document != NULL ? document_string(document, "error") : NULL;

	if (word != NULL && strlen(word) <= ERROR_WORD_MAX && slice_is_name(slice_str(word), "_-"))
		error_set(err, ERROR_INVALID, "it refused: %s", word);
	else if (answer->status != 0)
		error_set(err, ERROR_INVALID, "it answered with status %d", answer->status);
	else
		error_set(err, ERROR_INVALID, "%s", answer->error);
}

static void question_tell_token(struct site_question *question, const struct fetch_answer *answer)
{
	struct fetch_answer told = { .status = answer->status };
	struct error err = { ERROR_NONE, "" };
	json_auto_t *document = document_parse(answer->body, &err);

	if (answer->status != 200)
		word_refusal(document, answer, &err);
	else if (document == NULL)
		error_set(&err, ERROR_INVALID,
			  "its answer is no JSON object"); /* and may hold a token */
	else
		(void)!read_token(document, &told.body, &told.retry_after_s, &err);
	if (err.kind != ERROR_NONE || told.body.n == 0)
		told = (struct fetch_answer){ .error = err.text };
	question_tell(question, &told);
}

static void question_on_fetched(struct fetch *fetch, const struct fetch_answer *answer)
{
	struct site_question *question = container_of(fetch, struct site_question, fetch);

	if (question->kind == FETCH_TOKEN)
		question_tell_token(question, answer);
	else
		question_tell(question, answer);
}

static struct fetch_request site_request(const struct fetch_site *site, const char *url)
{
	return (struct fetch_request){
		.url = url,
		.ca = site->ca,
		.address_filter = site->address_filter,
		.allow_http = site->allow_http,
	};
}

static void append_field(struct buf *form, const char *name, struct slice value)
{
	if (value.n == 0)
		return;
	buf_printf(form, "&%s=", name);
	client_auth_append(form, value);
}

/* The request for a token, but for who asks. RFC 6749 s4.4.2, RFC 8693 s2.1, RFC 8707 s2 */
static void append_grant(const struct credential_conf *conf, struct slice token, struct buf *form)
{
	at_end(buf_fini) struct buf scopes = { .data = NULL };

	for (size_t i = 0; i < conf->scopes.count; i++) {
		if (i > 0)
			buf_append_char(&scopes, ' ');
		buf_append_slice(&scopes, conf->scopes.items[i]);
	}
	buf_append_str(form, conf->grant == CREDENTIAL_CLIENT ?
				     "grant_type=client_credentials" :
				     "grant_type=" TOKEN_EXCHANGE
				     "&subject_token_type=" ACCESS_TOKEN
				     "&requested_token_type=" ACCESS_TOKEN);
	if (conf->grant == CREDENTIAL_EXCHANGE)
		append_field(form, "subject_token", token);
	append_field(form, "scope", buf_slice(&scopes));
	append_field(form, "resource", slice_or_empty(conf->resource));
	append_field(form, "audience", slice_or_empty(conf->audience));
}

/* Enough for all, so that it does not move, and is wiped as a whole. */
static void service_make_form(const struct site_question *question, struct buf *form_r)
{
	const struct credential_conf *credential = question->site->credential;
	at_end(buf_wipe) struct buf own = { .data = NULL };

	client_auth_begin_form(&question->site->client_auth, &own);
	buf_reserve(form_r, own.len + question->token.len * 3 + FORM_BYTES);
	buf_append_slice(form_r, buf_slice(&own));
	if (question->kind == FETCH_TOKEN) {
		append_grant(credential, buf_slice(&question->token), form_r);
		return;
	}
	buf_append_str(form_r, "token=");
	client_auth_append(form_r, buf_slice(&question->token));
	buf_append_str(form_r, "&token_type_hint=access_token");
}

static void question_send(struct site_question *question, const char *url)
{
	const struct fetch_site *site = question->site;
	struct fetch_request request = site_request(site, url);
	at_end(buf_wipe) struct buf form = { .data = NULL };

	if (question->kind == FETCH_INTROSPECTION || question->kind == FETCH_TOKEN) {
		service_make_form(question, &form);
		request.body = buf_slice(&form);
		request.media_type = FETCH_FORM;
		request.credentials = site->client_auth.credentials;
	}
	request.etag = question->etag;
	question->fetch.on_done = question_on_fetched;
	fetch_start(site->fetcher, &question->fetch, &request);
}

/* ---- discovery ---- */

static void site_on_metadata(struct fetch *fetch, const struct fetch_answer *answer);

/* Asks at the next place; false if there is none. */
static bool site_discover(struct fetch_site *site)
{
	at_end(mem_free) char *url = issuer_metadata_url(site->issuer, site->candidate);
	struct fetch_request request = site_request(site, url);

	if (url == NULL)
		return false;
	site->discovery.on_done = site_on_metadata;
	fetch_start(site->fetcher, &site->discovery, &request);
	return true;
}

/* What is not in the metadata any more is not known any more. */
static void site_take_metadata(struct fetch_site *site, const json_t *document)
{
	for (size_t kind = 0; kind < FETCH_KIND_COUNT; kind++) {
		const char *url =
			members[kind] != NULL ? document_string(document, members[kind]) : NULL;

		free(site->found_urls[kind]);
		site->found_urls[kind] = url != NULL ? mem_strdup(url) : NULL;
	}
}

/* Callbacks may ask again: that waits for the next discovery. */
static void site_end_discovery(struct fetch_site *site, const struct fetch_answer *answer,
			       bool is_good)
{
	struct list now;

	site->is_failing = !is_good;
	site->candidate = 0;
	list_init(&now);
	list_splice(&now, &site->waiting);
	LIST_DRAIN(struct site_question, question, &now, link) {
		const char *url = site_url(site, question->kind);

		list_remove(&question->link);
		if (is_good && question->kind == FETCH_METADATA)
			question_tell(question, answer);
		else if (url != NULL)
			question_send(question, url);
		else
			question_tell(question,
				      &(struct fetch_answer){
					      .error = is_good ? "the metadata does not say where" :
								 "there is no usable metadata" });
	}
}

/* Of failures in a row only the first ones are logged. */
static void site_on_metadata(struct fetch *fetch, const struct fetch_answer *answer)
{
	struct fetch_site *site = container_of(fetch, struct fetch_site, discovery);
	struct error err = { ERROR_NONE, "" };
	json_auto_t *document = NULL;

	if (answer->status == 200)
		document = issuer_metadata_read(answer->body, site->issuer, &err);
	else
		error_set(&err, ERROR_INVALID, "%s", answer->error);
	if (document != NULL) {
		site_take_metadata(site, document);
		site_end_discovery(site, answer, true);
		return;
	}
	if (!site->is_failing)
		LOG(ISSUER_METADATA_FAILED, LOG_STR("issuer", site->issuer),
		    LOG_INT("place", site->candidate + 1), LOG_INT("status", answer->status),
		    LOG_STR("error", err.text));
	site->candidate++;
	if (!site_discover(site))
		site_end_discovery(site, answer, false);
}

/* ---- asking ---- */

/* A rate as the time until which it is used up. */
static bool site_may_ask(struct fetch_site *site, enum fetch_kind kind)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t spent_ms = site->spent_ms[kind] > now_ms ? site->spent_ms[kind] : now_ms;

	if (spent_ms + bounds[kind].each_ms > now_ms + bounds[kind].burst_ms)
		return false;
	site->spent_ms[kind] = spent_ms + bounds[kind].each_ms;
	return true;
}

/* It becomes a header field. */
static bool is_etag(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return false;
	return text.n <= FETCH_FIELD_BYTES_MAX;
}

static int site_check(struct fetch_site *site, enum fetch_kind kind, struct slice etag,
		      struct slice token, struct error *err)
{
	bool needs_token =
		kind == FETCH_INTROSPECTION || (kind == FETCH_TOKEN && site->credential != NULL &&
						site->credential->grant != CREDENTIAL_CLIENT);

	/* A site of callers' tokens gives none, and that of a server does nothing else. */
	if (!is_etag(etag) || (kind != FETCH_KEYS && etag.n > 0) ||
	    token.n > VERIFIER_TOKEN_BYTES_MAX || needs_token != (token.n > 0) ||
	    (kind == FETCH_TOKEN) != (site->credential != NULL))
		return error_set(err, ERROR_INVALID, "this is not a valid question");
	if (kind == FETCH_INTROSPECTION && !site->may_introspect)
		return error_set(err, ERROR_INVALID, "this issuer is not asked about tokens");
	if (site->under_way[kind] >= bounds[kind].under_way)
		return error_set(err, ERROR_LIMIT,
				 "too many questions to it are already under way");
	if (!site_may_ask(site, kind))
		return error_set(err, ERROR_LIMIT, "it has been asked too often");
	return 0;
}

/* A token that we sign for this caller. Returns 0, or -1 and err. */
static int fetch_site_sign(struct fetch_site *site, struct slice etag, struct slice caller,
			   struct buf *token, struct error *err)
{
	if (site_check(site, FETCH_TOKEN, etag, caller, err) < 0)
		return -1;
	return assertion_sign(&site->assertion, caller, token, err);
}

/*
 * Fetches; on_done comes later, exactly once, from the loop, unless site_question_cancel comes first; it may free the
 * question. etag and token: as of inquiry_start. Returns 0, or -1 and err: it is too much, or nothing that is asked for.
 */
static int fetch_site_ask(struct fetch_site *site, struct site_question *question,
			  enum fetch_kind kind, struct slice etag, struct slice token,
			  struct error *err)
{
	const char *url;

	CHECK(question->site == NULL && question->on_done != NULL && kind < FETCH_KIND_COUNT);
	if (site_check(site, kind, etag, token, err) < 0)
		return -1;
	url = site_url(site, kind);
	question->site = site;
	question->kind = kind;
	question->etag = etag.n > 0 ? mem_dup_slice(etag) : NULL;
	buf_reserve(&question->token, token.n);
	buf_append_slice(&question->token, token);
	list_init(&question->link);
	site->under_way[kind]++;
	if (url != NULL) {
		question_send(question, url);
		return 0;
	}
	list_append(&site->waiting, &question->link);
	if (!fetch_is_running(&site->discovery))
		CHECK(site_discover(site));
	return 0;
}

/* Also if nothing is under way. */
static void site_question_cancel(struct site_question *question)
{
	if (question->site == NULL)
		return;
	fetch_cancel(&question->fetch);
	question_leave(question);
}

/* ---- whole ---- */

static char *dup_or_null(const char *text)
{
	return text != NULL ? mem_strdup(text) : NULL;
}

static int site_set_addresses(struct fetch_site *site, const struct verifier_issuer_conf *conf,
			      struct error *err)
{
	struct url url;

	if (url_check_ours(slice_str(conf->issuer), err) < 0 ||
	    url_parse(slice_str(conf->issuer), &url) < 0)
		return -1;
	site->allow_http = !url_is_https(&url);
	site->address_filter =
		(struct address_filter){ url_is_loopback(&url), conf->allow_private };
	site->configured_urls[FETCH_KEYS] = dup_or_null(conf->jwks_uri);
	site->configured_urls[FETCH_INTROSPECTION] = dup_or_null(conf->introspection_endpoint);
	if (site->credential != NULL)
		site->configured_urls[FETCH_TOKEN] = dup_or_null(site->credential->token_endpoint);
	if (!site->allow_http && site->ca.n == 0)
		return error_set(err, ERROR_SYSTEM,
				 "the system has no CA certificates (package ca-certificates) and "
				 "the issuer %.100s names none (ca)",
				 conf->issuer);
	return 0;
}

static int site_set_credentials(struct fetch_site *site, const struct verifier_issuer_conf *conf,
				struct error *err)
{
	const struct client_auth_conf own = {
		.method = conf->auth_method,
		.issuer = conf->issuer,
		.client_id = conf->client_id,
		.secret = conf->client_secret,
		.key = conf->client_key,
		.key_id = conf->client_key_id,
	};

	site->may_introspect = conf->client_id != NULL && site->credential == NULL;
	return conf->client_id != NULL ? client_auth_init(&site->client_auth, &own, err) : 0;
}

/* No question may be under way. */
static void fetch_site_fini(struct fetch_site *site)
{
	for (size_t kind = 0; kind < FETCH_KIND_COUNT; kind++) {
		CHECK(site->under_way[kind] == 0);
		free(site->configured_urls[kind]);
		free(site->found_urls[kind]);
	}
	fetch_cancel(&site->discovery);
	fetcher_free(&site->fetcher);
	client_auth_fini(&site->client_auth);
	assertion_fini(&site->assertion);
	free(site->issuer);
	free(site->own_ca);
}

/* For a server whose tokens we sign. */
static int fetch_site_init_signing(struct fetch_site *site,
				   const struct credential_conf *credential, struct error *err)
{
	*site = (struct fetch_site){ .credential = credential };
	list_init(&site->waiting);
	if (assertion_init(&site->assertion, &credential->assertion, err) == 0)
		return 0;
	fetch_site_fini(site);
	return -1;
}

/* Copies what it keeps of conf. credential, of a server, is borrowed, or NULL. */
static int fetch_site_init(struct fetch_site *site, struct loop *loop,
			   const struct verifier_issuer_conf *conf,
			   const struct credential_conf *credential, struct error *err)
{
	if (credential != NULL && credential->grant == CREDENTIAL_ASSERTION)
		return fetch_site_init_signing(site, credential, err);
	*site = (struct fetch_site){
		.credential = credential,
		.issuer = mem_strdup(conf->issuer),
		.own_ca = conf->ca.n > 0 ? mem_dup_slice(conf->ca) : NULL,
	};
	site->ca = conf->ca.n > 0 ? slice_of(site->own_ca, conf->ca.n) : fetch_system_ca();
	list_init(&site->waiting);
	if (site_set_addresses(site, conf, err) < 0 || site_set_credentials(site, conf, err) < 0) {
		fetch_site_fini(site);
		return -1;
	}
	site->fetcher = fetcher_new(loop);
	return 0;
}

/* ---- the service ---- */

#define UNSENT_BYTES_MAX (1024 * 1024)

/* Spans on their way to the collector: one body at a time. */
struct export
{
	bool is_under_way;
	uint32_t id;
	size_t body_bytes; /* that were announced */
	struct buf body;   /* what has come of them */
	struct fetch fetch;
};

struct fetch_service {
	struct ipc_channel wire;
	struct fetch_site *sites; /* of the issuers, then of the servers with `auth` */
	size_t count;
	size_t issuers;
	struct list tickets;
	struct collector *collector; /* NULL: there is none */
	struct export export;
	fetch_service_end_fn *on_end;
	void *arg;
};

/* A question of the gateway's that is being worked on. */
struct ticket {
	struct list link;
	struct fetch_service *service;
	struct site_question question;
	uint32_t id;
};

/* ---- answering ---- */

static struct slice service_cut(struct slice text)
{
	return text.n <= FETCH_FIELD_BYTES_MAX ? text : slice_of(text.p, FETCH_FIELD_BYTES_MAX);
}

/* A field that is too long says nothing: a part of it would say something else. */
static struct slice fit(struct slice field)
{
	return field.n <= FETCH_FIELD_BYTES_MAX ? field : slice_of(NULL, 0);
}

static void service_send(struct fetch_service *service, uint32_t id,
			 const struct fetch_answer *answer)
{
	const struct ipc_message message = {
		.type = IPC_ANSWER,
		.answer = { id, answer->status, (uint32_t)answer->body.n, answer->retry_after_s },
		.texts = { service_cut(slice_str(answer->error != NULL ? answer->error : "")),
			   fit(answer->cache_control), fit(answer->etag) },
	};

	CHECK(answer->body.n <= FETCH_BODY_BYTES_MAX);
	ipc_channel_send(&service->wire, &message);
	ipc_channel_send_body(&service->wire, id, answer->body);
}

static void service_refuse(struct fetch_service *service, uint32_t id, const char *why)
{
	service_send(service, id, &(struct fetch_answer){ .error = why });
}

static void ticket_free(struct ticket *ticket)
{
	site_question_cancel(&ticket->question);
	list_remove(&ticket->link);
	free(ticket);
}

static void ticket_on_done(struct site_question *question, const struct fetch_answer *answer)
{
	struct ticket *ticket = container_of(question, struct ticket, question);

	if (ipc_channel_is_open(&ticket->service->wire))
		service_send(ticket->service, ticket->id, answer);
	ticket_free(ticket);
}

/* ---- spans ---- */

static void export_end(struct export *export)
{
	fetch_cancel(&export->fetch);
	buf_fini(&export->body);
	*export = (struct export){ .is_under_way = false };
}

static void export_on_done(struct fetch *fetch, const struct fetch_answer *answer)
{
	struct fetch_service *service = container_of(fetch, struct fetch_service, export.fetch);
	struct fetch_answer shown = *answer;
	at_end(buf_fini) struct buf body = { 0 };

	buf_append_slice(&body, answer->body);
	collector_hide_secrets(service->collector, &body);
	shown.body = buf_slice(&body);
	if (ipc_channel_is_open(&service->wire))
		service_send(service, service->export.id, &shown);
	export_end(&service->export);
}

static void service_begin_export(struct fetch_service *service, uint32_t id, uint32_t body_bytes)
{
	struct export *export = &service->export;

	if (service->collector == NULL || body_bytes == 0 ||
	    body_bytes > COLLECTOR_BODY_BYTES_MAX) {
		service_refuse(service, id, "there is no collector, or nothing to send to it");
		return;
	}
	if (export->is_under_way) {
		service_refuse(service, id, "spans are already being sent");
		return;
	}
	*export = (struct export){ .is_under_way = true,
				   .id = id,
				   .body_bytes = body_bytes,
				   .fetch = { .on_done = export_on_done } };
}

/* False: more than was announced. Parts of what was refused are dropped. */
static bool service_take_part(struct fetch_service *service, uint32_t id, struct slice part)
{
	struct export *export = &service->export;
	struct error err;

	if (!export->is_under_way || export->id != id)
		return true;
	if (part.n > export->body_bytes - export->body.len)
		return false;
	buf_append_slice(&export->body, part);
	if (export->body.len < export->body_bytes || part.n == 0)
		return true;
	if (collector_send(service->collector, &export->fetch, buf_slice(&export->body), &err) <
	    0) {
		service_refuse(service, export->id, err.text);
		export_end(export);
	}
	return true;
}

/* ---- being asked ---- */

static void service_sign(struct fetch_service *service, struct fetch_site *site,
			 const struct ipc_message *message)
{
	at_end(buf_wipe) struct buf token = { 0 };
	struct error err;

	if (fetch_site_sign(site, message->texts[0], message->texts[1], &token, &err) < 0)
		service_refuse(service, message->ask.id, err.text);
	else
		service_send(service, message->ask.id,
			     &(struct fetch_answer){ .status = 200,
						     .body = buf_slice(&token),
						     .retry_after_s = ASSERTION_S });
}

static void service_ask(struct fetch_service *service, const struct ipc_message *message)
{
	uint32_t id = message->ask.id, kind = message->ask.kind, issuer = message->ask.issuer;
	struct error err = { ERROR_INVALID, "there is no such issuer, or nothing of that kind" };
	struct ticket *ticket;
	size_t site = kind == FETCH_TOKEN ? service->issuers + issuer : issuer;

	if (kind == FETCH_SPANS) {
		service_begin_export(service, id, message->ask.body_bytes);
		return;
	}
	if (kind == FETCH_TOKEN && site < service->count &&
	    service->sites[site].assertion.public.id != NULL) {
		service_sign(service, &service->sites[site], message);
		return;
	}
	if (site < service->count && kind < FETCH_KIND_COUNT) {
		ticket = mem_zalloc(sizeof(*ticket));
		ticket->service = service;
		ticket->id = id;
		ticket->question.on_done = ticket_on_done;
		list_append(&service->tickets, &ticket->link);
		if (fetch_site_ask(&service->sites[site], &ticket->question, (enum fetch_kind)kind,
				   message->texts[0], message->texts[1], &err) == 0)
			return;
		ticket_free(ticket);
	}
	service_refuse(service, id, err.text);
}

static void service_cancel(struct fetch_service *service, uint32_t id)
{
	if (service->export.is_under_way && service->export.id == id)
		export_end(&service->export);
	LIST_EACH(struct ticket, ticket, &service->tickets, link) {
		if (ticket->id == id) {
			ticket_free(ticket);
			return;
		}
	}
}

static void service_on_end(struct ipc_channel *wire)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	ipc_channel_close(wire);
	service->on_end(service->arg);
}

static void service_on_message(struct ipc_channel *wire, const struct ipc_message *message)
{
	struct fetch_service *service = container_of(wire, struct fetch_service, wire);

	if (message->type == IPC_ASK)
		service_ask(service, message);
	else if (message->type == IPC_CANCEL)
		service_cancel(service, message->cancel.id);
	else if (message->type != IPC_PART ||
		 !service_take_part(service, message->part.id, message->texts[0]))
		service_on_end(wire);
}

static const struct ipc_channel_ops service_ops = {
	.on_message = service_on_message,
	.on_end = service_on_end,
};

/* ---- whole ---- */

int fetch_service_prepare(struct error *err)
{
	uint64_t seed;

	random_bytes(&seed, sizeof(seed));
	json_object_seed((size_t)seed);
	return fetch_prepare(err);
}

struct fetch_service *fetch_service_new(struct loop *loop, const struct fetch_service_conf *conf,
					int fd, fetch_service_end_fn *on_end, void *arg,
					struct error *err)
{
	struct fetch_service *service = mem_zalloc(sizeof(*service));
	const struct verifier_conf *issuers = conf->issuers;

	service->on_end = on_end;
	service->arg = arg;
	list_init(&service->tickets);
	ipc_channel_init(&service->wire, loop, &service_ops);
	service->wire.unsent_bytes_max = UNSENT_BYTES_MAX;
	service->issuers = issuers->count;
	service->sites =
		mem_zalloc((issuers->count + conf->credential_count + 1) * sizeof(*service->sites));
	for (; service->count < issuers->count + conf->credential_count; service->count++) {
		const struct credential_conf *credential =
			service->count < issuers->count ?
				NULL :
				conf->credentials[service->count - issuers->count];

		if (fetch_site_init(&service->sites[service->count], loop,
				    credential != NULL ? &credential->at :
							 &issuers->items[service->count],
				    credential, err) < 0) {
			fetch_service_free(&service);
			return NULL;
		}
	}
	if (conf->collector->endpoint != NULL)
		service->collector = collector_new(loop, conf->collector);
	ipc_channel_open(&service->wire, fd);
	return service;
}

void fetch_service_free(struct fetch_service **service)
{
	struct fetch_service *s = *service;

	if (s == NULL)
		return;
	ipc_channel_close(&s->wire);
	LIST_DRAIN(struct ticket, ticket, &s->tickets, link)
		ticket_free(ticket);
	export_end(&s->export);
	collector_free(&s->collector);
	for (size_t i = 0; i < s->count; i++)
		fetch_site_fini(&s->sites[i]);
	free(s->sites);
	free(s);
	*service = NULL;
}
