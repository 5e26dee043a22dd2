/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of connections that are not HTTP yet. They end by being handed to the http_server, or with a line
 * in the log; the number of such lines is bounded, however many connections fail.
 */
#include "http/acceptor.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/conn.h"
#include "http/places.h"
#include "io/proxy_header.h"
#include "obs/counters.h"
#include "obs/log.h"

struct entry {
	struct list link;
	struct conn_place place;
	struct acceptor *acceptor;
	struct http_arrival arrival;   /* tls NULL: the PROXY header is awaited */
	struct tls_server *tls_server; /* shared (ref); NULL: no TLS */
	struct buf header;             /* what has come of the PROXY header */
	struct watch reading;
	struct watch writing;
	struct timer deadline;
};

void acceptor_init(struct acceptor *acceptor, struct loop *loop, struct http_server *http)
{
	*acceptor = (struct acceptor){ .loop = loop, .http = http };
	list_init(&acceptor->entries);
}

static void acceptor_log(const struct peer *peer, const char *reason)
{
	char client[PEER_TEXT_BYTES];

	counter_add(COUNTER_ARRIVALS_REFUSED);
	peer_format(peer, client);
	LOG_BY(ARRIVAL_REFUSED, peer_key(peer, 0), LOG_STR("client", client),
	       LOG_STR("reason", reason));
}

/* Takes the entry out; its descriptor and TLS are the caller's to end or to hand on. */
static void entry_remove(struct entry *entry)
{
	watch_set(&entry->reading, false);
	watch_set(&entry->writing, false);
	timer_stop(&entry->deadline);
	list_remove(&entry->link);
	place_leave(&entry->place);
	CHECK(entry->acceptor->count > 0);
	entry->acceptor->count--;
	buf_fini(&entry->header);
	tls_server_unref(&entry->tls_server);
	loop_defer_free(entry->acceptor->loop, entry);
}

static void entry_end(struct entry *entry, const char *reason)
{
	acceptor_log(&entry->arrival.peer, reason);
	entry_remove(entry);
	tls_free(&entry->arrival.tls);
	close(entry->arrival.fd);
}

static void entry_on_give_way(struct conn_place *place)
{
	entry_end(container_of(place, struct entry, place), "it gave way to a new connection");
}

/* In the place of the one it had, if any. False: there is none, and the entry has ended. */
static bool entry_take_place(struct entry *entry, const struct peer *peer)
{
	struct places *places = http_server_places(entry->acceptor->http);
	const char *reason;

	place_leave(&entry->place);
	reason = places_make_room(places, peer);
	if (reason == NULL) {
		place_enter(&entry->place, places, peer, entry_on_give_way);
		return true;
	}
	/* Nothing can be said before the handshake. */
	counter_add(COUNTER_CONNECTIONS_REFUSED);
	entry_end(entry, reason);
	return false;
}

static void entry_hand_on(struct entry *entry)
{
	struct http_server *http = entry->acceptor->http;
	const struct http_arrival arrival = entry->arrival;

	entry_remove(entry);
	if (arrival.tls == NULL) {
		http_server_accept(http, &arrival); /* it was nobody's until now */
		return;
	}
	counter_add(COUNTER_HANDSHAKES);
	http_server_take(http, &arrival);
}

/* Answers in plain HTTP, which the client speaks. Bytes left unread would turn the close into a reset. */
static void entry_answer_http(struct entry *entry)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
				   "Content-Length: 49\r\nConnection: close\r\n\r\n"
				   "This port speaks TLS only: the URL begins https:\n";

	if (read(entry->arrival.fd, loop_buffer(entry->acceptor->loop), LOOP_BUFFER_BYTES) != 0 &&
	    write(entry->arrival.fd, text, sizeof(text) - 1) >= 0)
		shutdown(entry->arrival.fd, SHUT_WR);
	entry_end(entry, "the client speaks HTTP without TLS");
}

/* The header is complete, or the port has none: TLS or HTTP begins. */
static void entry_begin(struct entry *entry)
{
	CHECK(entry->arrival.tls == NULL);
	if (entry->tls_server == NULL) {
		entry_hand_on(entry);
		return;
	}
	if (!entry_take_place(entry, &entry->arrival.peer))
		return;
	entry->arrival.tls = tls_new(entry->tls_server, entry->arrival.fd);
	watch_set(&entry->reading, true);
}

/* Takes what is the header's out of the socket, and not a byte more: what follows is TLS's or HTTP's. */
static void entry_read_header(struct entry *entry)
{
	char *room = loop_buffer(entry->acceptor->loop);
	size_t before = entry->header.len;
	struct error err = { ERROR_NONE, "" };
	ssize_t n = recv(entry->arrival.fd, room, PROXY_HEADER_BYTES_MAX, MSG_PEEK);
	long length;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		entry_end(entry, "the client has gone before its PROXY header");
		return;
	}
	CHECK(before < PROXY_HEADER_BYTES_MAX);
	buf_append_slice(&entry->header, slice_of(room, (size_t)n));
	length = proxy_header_parse(buf_slice(&entry->header), &entry->arrival.peer, &err);
	if (length >= 0)
		n = recv(entry->arrival.fd, room, length > 0 ? (size_t)length - before : (size_t)n,
			 0);
	if (length < 0)
		entry_end(entry, err.text);
	else if (length > 0)
		entry_begin(entry);
}

static void entry_go_on(struct entry *entry)
{
	struct error err = { ERROR_NONE, "" };
	enum tls_step step;

	if (entry->arrival.tls == NULL) {
		entry_read_header(entry);
		return;
	}
	step = tls_handshake(entry->arrival.tls, &err);
	if (step == TLS_DONE) {
		entry_hand_on(entry);
	} else if (step == TLS_SPEAKS_HTTP) {
		entry_answer_http(entry);
	} else if (step == TLS_FAILED) {
		entry_end(entry, err.text);
	} else {
		watch_set(&entry->reading, step == TLS_WANTS_READ);
		watch_set(&entry->writing, step == TLS_WANTS_WRITE);
	}
}

static void entry_on_readable(struct watch *watch)
{
	entry_go_on(container_of(watch, struct entry, reading));
}

static void entry_on_writable(struct watch *watch)
{
	entry_go_on(container_of(watch, struct entry, writing));
}

static void entry_on_deadline(struct timer *timer)
{
	entry_end(container_of(timer, struct entry, deadline),
		  "its PROXY header or handshake took too long");
}

void acceptor_accept(struct acceptor *acceptor, int fd, const struct peer *peer,
		     const struct acceptor_port *port)
{
	static const struct peer nobody = { 0 };
	struct entry *entry;
	const struct http_arrival arrival = { .fd = fd, .peer = *peer, .port = port->number };

	if (port->tls_server == NULL && !port->has_proxy_header) {
		http_server_accept(acceptor->http, &arrival);
		return;
	}
	CHECK((acceptor->count == 0) == list_is_empty(&acceptor->entries));
	if (acceptor->count >= ACCEPTOR_MAX)
		entry_end(container_of(acceptor->entries.next, struct entry, link),
			  "too many handshakes at a time, and this one is the oldest");
	entry = mem_zalloc(sizeof(*entry));
	entry->acceptor = acceptor;
	entry->arrival = arrival;
	if (port->tls_server != NULL)
		entry->tls_server = tls_server_ref(port->tls_server);
	watch_init(&entry->reading, acceptor->loop, fd, WATCH_READ, entry_on_readable);
	watch_init(&entry->writing, acceptor->loop, fd, WATCH_WRITE, entry_on_writable);
	timer_init(&entry->deadline, entry_on_deadline);
	timer_start(acceptor->loop, &entry->deadline, ACCEPTOR_MS);
	list_append(&acceptor->entries, &entry->link);
	acceptor->count++;
	if (!port->has_proxy_header)
		entry_begin(entry);
	else if (entry_take_place(entry, &nobody)) /* the client is not known yet */
		watch_set(&entry->reading, true);
}

void acceptor_leave_port(struct acceptor *acceptor, unsigned int number)
{
	LIST_EACH(struct entry, entry, &acceptor->entries, link)
		entry->arrival.is_leaving =
			entry->arrival.is_leaving || entry->arrival.port == number;
	http_server_leave_port(acceptor->http, number);
}

void acceptor_fini(struct acceptor *acceptor)
{
	LIST_DRAIN(struct entry, entry, &acceptor->entries, link)
		entry_end(entry, "the daemon is about to stop");
	CHECK(acceptor->count == 0);
}
