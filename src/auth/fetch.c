/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface on our loop: it says which descriptors and which time it waits for, and is called
 * when they are due. Its callbacks only record that; answers are handed out after libcurl has returned, so
 * that on_done may start and cancel fetches.
 */
#include "auth/fetch.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/ssl.h>

#include "auth/curl_handle.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"

#define CONNECTIONS_KEPT 16L
#define CA_READ_BYTES (64 * 1024)
#define CA_BYTES_MAX (4 * 1024 * 1024)

struct transfer {
	struct list link;
	struct fetcher *fetcher;
	struct fetch *fetch; /* NULL: cancelled */
	CURL *easy;
	struct curl_slist *fields;
	struct buf sent; /* may hold a token: wiped at the end */
	struct buf body;
	struct address_filter address_filter;
	bool is_refused; /* an address was out of reach */
	bool is_too_big;
	char error[CURL_ERROR_SIZE];
};

struct fetcher {
	struct loop *loop;
	CURLM *multi;
	struct timer timer;
	uint64_t due_ms;
	struct list transfers;
	struct task hand_out;
};

/* One descriptor that libcurl watches. */
struct channel {
	struct fetcher *fetcher;
	struct watch read;
	struct watch write;
	int fd;
};

/* One per process: PEM text of the system's certificates. */
static struct buf system_ca;

/* From where libcurl was built to look; without certificates there, issuers need a `ca` of their own. */
static void read_system_ca(void)
{
	const char *path = curl_version_info(CURLVERSION_NOW)->cainfo;
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	size_t n;

	if (file == NULL)
		return;
	do {
		char *at = buf_reserve(&system_ca, CA_READ_BYTES);

		n = fread(at, 1, CA_READ_BYTES, file);
		system_ca.len += n;
	} while (n > 0 && system_ca.len < CA_BYTES_MAX);
	fclose(file);
}

struct slice fetch_system_ca(void)
{
	return buf_slice(&system_ca);
}

int fetch_prepare(struct error *err)
{
	/* Reads openssl.cnf and the texts of errors. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL) != 1)
		return error_set(err, ERROR_SYSTEM, "cannot initialize OpenSSL");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return error_set(err, ERROR_SYSTEM, "cannot initialize libcurl");
	if (system_ca.len == 0)
		read_system_ca();
	return 0;
}

/* ---- answers ---- */

static void transfer_free(struct transfer *transfer)
{
	list_remove(&transfer->link);
	curl_multi_remove_handle(transfer->fetcher->multi, transfer->easy);
	curl_easy_cleanup(transfer->easy);
	curl_handle_free_fields(&transfer->fields);
	buf_wipe(&transfer->sent);
	buf_fini(&transfer->body);
	free(transfer);
}

static void transfer_finish(struct transfer *transfer, CURLcode code)
{
	struct fetch *fetch = transfer->fetch;
	struct fetch_answer answer = { .status = 0, .error = "" };
	long status = 0;

	if (code == CURLE_OK) {
		curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
		answer.status = (int)status;
		answer.body = buf_slice(&transfer->body);
		answer.cache_control = curl_handle_answer_field(transfer->easy, "Cache-Control");
		answer.etag = curl_handle_answer_field(transfer->easy, "ETag");
		answer.retry_after_s = curl_handle_retry_after(transfer->easy);
	} else if (transfer->is_too_big) {
		answer.error = "the answer is too large";
	} else if (transfer->is_refused) {
		answer.error = "connecting to the host's address is not allowed (allow_private)";
	} else {
		answer.error =
			transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code);
	}
	if (fetch != NULL) {
		fetch->transfer = NULL;
		fetch->on_done(fetch, &answer);
	}
	transfer_free(transfer);
}

static void fetcher_hand_out(struct task *task)
{
	struct fetcher *fetcher = container_of(task, struct fetcher, hand_out);
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(fetcher->multi, &left)) != NULL) {
		struct transfer *transfer = NULL;
		CURLcode code = message->data.result;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		CHECK(transfer != NULL && transfer->fetcher == fetcher);
		if (message->msg == CURLMSG_DONE)
			transfer_finish(transfer, code);
	}
}

static void fetcher_act(struct fetcher *fetcher, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(fetcher->multi, fd, what, &running);
	task_schedule(fetcher->loop, &fetcher->hand_out);
}

/* ---- what libcurl asks for: descriptors ---- */

static void channel_on_read(struct watch *watch)
{
	struct channel *channel = container_of(watch, struct channel, read);

	fetcher_act(channel->fetcher, channel->fd, CURL_CSELECT_IN);
}

static void channel_on_write(struct watch *watch)
{
	struct channel *channel = container_of(watch, struct channel, write);

	fetcher_act(channel->fetcher, channel->fd, CURL_CSELECT_OUT);
}

static int on_socket(not_used CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct fetcher *fetcher = arg;
	struct channel *channel = of_socket;

	CHECK(channel == NULL || channel->fd == fd);
	if (channel == NULL && what == CURL_POLL_REMOVE)
		return 0;
	if (channel == NULL) {
		channel = mem_zalloc(sizeof(*channel));
		channel->fetcher = fetcher;
		channel->fd = fd;
		watch_init(&channel->read, fetcher->loop, fd, WATCH_READ, channel_on_read);
		watch_init(&channel->write, fetcher->loop, fd, WATCH_WRITE, channel_on_write);
		curl_multi_assign(fetcher->multi, fd, channel);
	}
	watch_set(&channel->read, what == CURL_POLL_IN || what == CURL_POLL_INOUT);
	watch_set(&channel->write, what == CURL_POLL_OUT || what == CURL_POLL_INOUT);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(fetcher->multi, fd, NULL);
		loop_defer_free(fetcher->loop, channel); /* its callback may be on the stack */
	}
	return 0;
}

/* ---- what libcurl asks for: time ---- */

/*
 * The loop wants few distinct durations and libcurl asks for any, so we wait for the largest power of two
 * that is not too long, then for the rest.
 */
static void fetcher_wait(struct fetcher *fetcher)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t left_ms = fetcher->due_ms > now_ms ? fetcher->due_ms - now_ms : 0;
	uint64_t wait_ms = left_ms > 0 ? 1 : 0;

	while (wait_ms > 0 && wait_ms * 2 <= left_ms)
		wait_ms *= 2;
	timer_start(fetcher->loop, &fetcher->timer, wait_ms);
}

static int on_time(not_used CURLM *multi, long wait_ms, void *arg)
{
	struct fetcher *fetcher = arg;

	if (wait_ms < 0) {
		timer_stop(&fetcher->timer);
		return 0;
	}
	fetcher->due_ms = clock_now_ms() + (uint64_t)wait_ms;
	fetcher_wait(fetcher);
	return 0;
}

/*
 * Our clock of the turn may have been behind libcurl's when it asked for the time. Then libcurl finds nothing due
 * now, and does not ask again: it is asked what comes next.
 */
static void fetcher_on_timer(struct timer *timer)
{
	struct fetcher *fetcher = container_of(timer, struct fetcher, timer);
	long left_ms;

	if (clock_now_ms() < fetcher->due_ms) {
		fetcher_wait(fetcher);
		return;
	}
	fetcher_act(fetcher, CURL_SOCKET_TIMEOUT, 0);
	if (curl_multi_timeout(fetcher->multi, &left_ms) == CURLM_OK && left_ms >= 0)
		on_time(fetcher->multi, left_ms > 0 ? left_ms : 1, fetcher);
}

/* ---- what libcurl asks for: sockets and bytes ---- */

static curl_socket_t fetch_on_open(void *arg, not_used curlsocktype purpose,
				   struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;

	return curl_handle_open_socket(&transfer->address_filter, address, &transfer->is_refused);
}

static size_t fetch_on_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;

	return curl_handle_take_body(&transfer->body, data, size * count, FETCH_BODY_BYTES_MAX,
				     &transfer->is_too_big);
}

/* ---- starting and stopping ---- */

static void transfer_set_question(struct transfer *transfer, const struct fetch_request *request)
{
	CURL *easy = transfer->easy;

	curl_handle_add_field(&transfer->fields, "Accept", "application/json");
	if (request->etag != NULL)
		curl_handle_add_field(&transfer->fields, "If-None-Match", request->etag);
	if (request->credentials != NULL)
		curl_handle_add_field(&transfer->fields, "Authorization", request->credentials);
	for (size_t i = 0; request->fields != NULL && i < request->fields->count; i++)
		curl_handle_add_field(&transfer->fields, request->fields->items[i].name,
				      request->fields->items[i].value);
	if (request->body.p != NULL) {
		/* So that it does not move, and is wiped whole. */
		buf_reserve(&transfer->sent, request->body.n);
		buf_append_slice(&transfer->sent, request->body);
		curl_handle_set_body(easy, &transfer->fields, request->media_type,
				     buf_slice(&transfer->sent));
	}
	curl_easy_setopt(easy, CURLOPT_URL, request->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->fields);
}

void fetch_start(struct fetcher *fetcher, struct fetch *fetch, const struct fetch_request *request)
{
	const struct curl_handle_conf conf = {
		.agent = "mcpgated",
		.connect_ms = FETCH_CONNECT_MS,
		.total_ms = FETCH_TOTAL_MS,
		.allow_http = request->allow_http,
		/* Not NULL, or libcurl would take its own CAs where there are none. */
		.ca = request->ca.n > 0 ? request->ca : SLICE_LIT(""),
	};
	struct transfer *transfer = mem_zalloc(sizeof(*transfer));

	CHECK(fetch->transfer == NULL && fetch->on_done != NULL && request->url != NULL);
	transfer->fetcher = fetcher;
	transfer->fetch = fetch;
	transfer->address_filter = request->address_filter;
	transfer->easy = curl_handle_new(&conf);
	transfer_set_question(transfer, request);
	curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, fetch_on_body);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_OPENSOCKETFUNCTION, fetch_on_open);
	curl_easy_setopt(transfer->easy, CURLOPT_OPENSOCKETDATA, transfer);
	fetch->transfer = transfer;
	list_append(&fetcher->transfers, &transfer->link);
	CHECK(curl_multi_add_handle(fetcher->multi, transfer->easy) == CURLM_OK);
}

void fetch_cancel(struct fetch *fetch)
{
	struct transfer *transfer = fetch->transfer;

	if (transfer == NULL)
		return;
	CHECK(transfer->fetch == fetch);
	fetch->transfer = NULL;
	transfer_free(transfer);
}

bool fetch_is_running(const struct fetch *fetch)
{
	return fetch->transfer != NULL;
}

struct fetcher *fetcher_new(struct loop *loop)
{
	struct fetcher *fetcher = mem_zalloc(sizeof(*fetcher));

	fetcher->loop = loop;
	fetcher->multi = curl_multi_init();
	CHECK(fetcher->multi != NULL);
	timer_init(&fetcher->timer, fetcher_on_timer);
	task_init(&fetcher->hand_out, fetcher_hand_out);
	list_init(&fetcher->transfers);
	curl_multi_setopt(fetcher->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(fetcher->multi, CURLMOPT_SOCKETDATA, fetcher);
	curl_multi_setopt(fetcher->multi, CURLMOPT_TIMERFUNCTION, on_time);
	curl_multi_setopt(fetcher->multi, CURLMOPT_TIMERDATA, fetcher);
	curl_multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
	return fetcher;
}

void fetcher_free(struct fetcher **fetcher)
{
	struct fetcher *f = *fetcher;

	if (f == NULL)
		return;
	LIST_DRAIN(struct transfer, transfer, &f->transfers, link) {
		if (transfer->fetch != NULL)
			transfer->fetch->transfer = NULL;
		transfer_free(transfer);
	}
	curl_multi_cleanup(f->multi);
	timer_stop(&f->timer);
	task_cancel(&f->hand_out);
	free(f);
	*fetcher = NULL;
}
