/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket that is closed here may be open elsewhere: by the keeper, until it hears that the configuration is in use, and by the
 * service manager for good. The kernel would go on to tell of who connects there until the loop has told it to leave off, which
 * it does at the beginning of its next turn: therefore such a socket is closed after that, by the second of two timers, since
 * the first may be due in the same turn still.
 */
#include "ports.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/listen.h"
#include "obs/log.h"

#define CLOSING_MS 1

struct port {
	struct listener listener;
	struct ports *ports;
	size_t index;        /* in config->listen */
	unsigned int number; /* of no other one of this process */
	struct timer closing;
	bool has_waited; /* for the first timer */
};

struct ports_socket {
	int kept; /* number of the listener whose socket it is; -1: fd */
	int fd;
};

struct ports_files {
	size_t listener;
	size_t entry;
	int fds[CERTIFICATES_FILES];
	size_t count;
};

static void ports_on_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct port *port = container_of(listener, struct port, listener);
	struct ports *ports = port->ports;

	CHECK(port->index < ports->config->listen_count);
	acceptor_accept(ports->acceptor, fd, peer,
			&(struct acceptor_port){
				.number = port->number,
				.has_proxy_header =
					ports->config->listen[port->index].proxy_protocol,
				.tls_server = ports->certificates.servers[port->index] });
}

static void port_on_closing(struct timer *timer)
{
	struct port *port = container_of(timer, struct port, closing);

	if (!port->has_waited) {
		port->has_waited = true;
		timer_start(port->ports->loop, timer, CLOSING_MS);
		return;
	}
	close(port->listener.fd);
	free(port);
}

static struct port *port_new(struct ports *ports, size_t index, int fd)
{
	struct port *port = mem_zalloc(sizeof(*port));

	port->ports = ports;
	port->index = index;
	port->number = ++ports->last_number;
	timer_init(&port->closing, port_on_closing);
	listener_init(&port->listener, ports->loop, fd, ports_on_accept);
	return port;
}

void ports_init(struct ports *ports, struct loop *loop, struct acceptor *acceptor,
		const struct config *config, const int *fds)
{
	size_t size = config->listen_count * sizeof(*fds);

	*ports = (struct ports){ .loop = loop, .acceptor = acceptor, .config = config };
	ports->fds = mem_alloc(size);
	memcpy(ports->fds, fds, size);
	server_certificates_init(&ports->certificates, config, tickets_new());
}

void ports_listen(struct ports *ports)
{
	size_t count = ports->config->listen_count;

	CHECK(ports->items == NULL);
	ports->items = mem_alloc(count * sizeof(struct port *));
	for (size_t i = 0; i < count; i++)
		ports->items[i] = port_new(ports, i, ports->fds[i]);
}

bool ports_is_listening(const struct ports *ports)
{
	return ports->items != NULL;
}

void ports_fini(struct ports *ports)
{
	struct tickets *tickets = ports->certificates.tickets;

	ports_forget(ports);
	for (size_t i = 0; ports->items != NULL && i < ports->config->listen_count; i++)
		free(ports->items[i]);
	free(ports->items);
	free(ports->fds);
	server_certificates_fini(&ports->certificates);
	tickets_free(&tickets);
}

/* ---- stopping ---- */

/* The service manager keeps the socket. */
static bool is_kept(const struct config *config, size_t i)
{
	return slice_has_prefix(slice_str(config->listen[i].address), SLICE_LIT("systemd:"));
}

static void ports_leave(struct ports *ports, bool leaves_all)
{
	for (size_t i = 0; ports->items != NULL && i < ports->config->listen_count; i++)
		if (!ports->has_left && (leaves_all || is_kept(ports->config, i)))
			listener_fini(&ports->items[i]->listener);
	ports->has_left = ports->has_left || leaves_all;
}

void ports_leave_kept(struct ports *ports)
{
	ports_leave(ports, false);
}

void ports_leave_all(struct ports *ports)
{
	ports_leave(ports, true);
}

void ports_return(struct ports *ports)
{
	for (size_t i = 0;
	     ports->items != NULL && ports->has_left && i < ports->config->listen_count; i++) {
		struct port *port = ports->items[i];

		CHECK(port->index == i);
		listener_init(&port->listener, ports->loop, port->listener.fd, ports_on_accept);
	}
	ports->has_left = false;
}

/* Who waits is accepted: he would be reset. */
static void port_close(struct port *port)
{
	listener_accept_waiting(&port->listener);
	listener_fini(&port->listener);
	close(port->listener.fd);
}

void ports_close(struct ports *ports)
{
	for (size_t i = 0; i < ports->config->listen_count; i++) {
		if (is_kept(ports->config, i))
			continue;
		if (ports->items != NULL && !ports->has_left)
			port_close(ports->items[i]);
		else
			close(ports->fds[i]);
	}
}

/* ---- a change ---- */

void ports_take_socket(struct ports *ports, size_t listener, int kept, int fd)
{
	struct ports_change *change = &ports->change;

	/* Those of a change that was given up before it was whole. */
	if (listener == 0)
		ports_forget(ports);
	if (listener != change->socket_count || (kept < 0) != (fd >= 0)) {
		change->is_broken = true;
		file_close(&fd);
		return;
	}
	change->sockets = mem_resize(change->sockets, (listener + 1) * sizeof(*change->sockets));
	change->sockets[change->socket_count++] = (struct ports_socket){ kept, fd };
}

void ports_take_files(struct ports *ports, size_t listener, size_t entry, const int *fds,
		      size_t count)
{
	struct ports_change *change = &ports->change;
	struct ports_files *files;

	CHECK(count <= CERTIFICATES_FILES);
	change->files =
		mem_resize(change->files, (change->files_count + 1) * sizeof(*change->files));
	files = &change->files[change->files_count++];
	*files = (struct ports_files){ .listener = listener, .entry = entry, .count = count };
	memcpy(files->fds, fds, count * sizeof(*fds));
}

/* Each socket goes on as one listener at most. */
static bool is_whole(const struct ports *ports, const struct config *next)
{
	const struct ports_change *change = &ports->change;
	at_end(mem_free) bool *is_taken = mem_zalloc(ports->config->listen_count + 1);
	bool is_good = !change->is_broken && change->socket_count == next->listen_count;

	for (size_t i = 0; is_good && i < change->socket_count; i++) {
		int kept = change->sockets[i].kept;

		if (kept < 0)
			continue;
		is_good = (size_t)kept < ports->config->listen_count && !is_taken[kept];
		if (is_good)
			is_taken[kept] = true;
	}
	return is_good;
}

static int judge_certificates(struct ports *ports, const struct config *next, struct error *err)
{
	struct ports_change *change = &ports->change;

	server_certificates_init(&change->certificates, next, ports->certificates.tickets);
	change->is_judged = true;
	for (size_t i = 0; i < change->files_count; i++) {
		const struct ports_files *files = &change->files[i];

		server_certificates_take(&change->certificates, files->listener, files->entry,
					 files->fds, files->count);
	}
	change->files_count = 0; /* they are closed */
	if (server_certificates_are_needed(&change->certificates) &&
	    !server_certificates_use(&change->certificates))
		return error_set(err, ERROR_INVALID, "the certificates cannot be used");
	return 0;
}

int ports_judge(struct ports *ports, const struct config *next, struct error *err)
{
	const struct ports_change *change = &ports->change;

	CHECK(ports->items != NULL && !change->is_judged);
	if (change->socket_count == 0 && !change->is_broken &&
	    next->listen_count == ports->config->listen_count)
		return 0;
	if (!is_whole(ports, next))
		return error_set(err, ERROR_INVALID, "the keeper has not given all listeners");
	return judge_certificates(ports, next, err);
}

static void end_port(struct ports *ports, struct port *port)
{
	CHECK(!timer_is_running(&port->closing));
	if (is_kept(ports->config, port->index)) {
		listener_fini(&port->listener);
		timer_start(ports->loop, &port->closing, CLOSING_MS);
		acceptor_leave_port(ports->acceptor, port->number);
		return;
	}
	port_close(port);
	acceptor_leave_port(ports->acceptor, port->number);
	loop_defer_free(ports->loop, port);
}

/* In the place of those in use, which are left as NULL where they go on. */
static struct port **make_items(struct ports *ports)
{
	const struct ports_change *change = &ports->change;
	struct port **items = mem_alloc(change->socket_count * sizeof(struct port *));

	for (size_t i = 0; i < change->socket_count; i++) {
		const struct ports_socket *socket = &change->sockets[i];

		if (socket->kept < 0) {
			items[i] = port_new(ports, i, socket->fd);
			continue;
		}
		items[i] = ports->items[socket->kept];
		ports->items[socket->kept] = NULL;
	}
	return items;
}

static void use_change(struct ports *ports, const struct config *next)
{
	struct ports_change *change = &ports->change;
	struct port **items = make_items(ports);

	for (size_t i = 0; i < ports->config->listen_count; i++)
		if (ports->items[i] != NULL)
			end_port(ports, ports->items[i]);
	free(ports->items);
	ports->items = items;
	ports->fds = mem_resize(ports->fds, change->socket_count * sizeof(*ports->fds));
	for (size_t i = 0; i < change->socket_count; i++) {
		items[i]->index = i;
		ports->fds[i] = items[i]->listener.fd;
	}
	server_certificates_fini(&ports->certificates);
	ports->certificates = change->certificates;
	change->is_judged = false;
	change->socket_count = 0;
	ports->config = next;
	LOG(LISTENERS_USED, LOG_INT("listeners", next->listen_count));
}

void ports_use(struct ports *ports, const struct config *next)
{
	CHECK(ports->change.is_judged == (ports->change.socket_count > 0));
	if (ports->change.socket_count > 0)
		use_change(ports, next);
	ports->config = next;
	ports->certificates.config = next;
	ports_forget(ports);
}

void ports_forget(struct ports *ports)
{
	struct ports_change *change = &ports->change;

	for (size_t i = 0; i < change->socket_count; i++)
		file_close(&change->sockets[i].fd);
	for (size_t i = 0; i < change->files_count; i++)
		for (size_t j = 0; j < change->files[i].count; j++)
			close(change->files[i].fds[j]);
	if (change->is_judged)
		server_certificates_fini(&change->certificates);
	free(change->sockets);
	free(change->files);
	*change = (struct ports_change){ .sockets = NULL };
}
