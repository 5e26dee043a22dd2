/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the addresses of the configuration. Wildcard addresses are shown as they are. */
#include "keeper/listeners.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "config/difference.h"
#include "config/forms.h"
#include "config/listed_path.h"
#include "config/load.h"
#include "config/tree.h"
#include "io/address.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
#include "keeper/handover.h"
#include "obs/log.h"

/* Where mcpgatectl looks without being told, and what systemd makes for the service. */
#define ROOT_PLACE "/run/mcpgated"

#define NEVER UINT64_MAX

/* The admin socket with admin.address: auto; see below. */
static struct {
	char *made; /* its directory; NULL: it was there before */
	/* Its usual address; NULL: this daemon's socket has been there from the beginning. */
	char *address;
	char *own; /* where it is; NULL: at `address` */
	pid_t owner;
	unsigned int free_count; /* how often in a row nobody has listened there */
	uint64_t next_ms, until_ms;
} usual = { .next_ms = NEVER };

/* How many of the listeners before this one have the same text: systemd may pass several. */
static size_t count_same_before(const struct config *config, size_t at)
{
	size_t count = 0;

	CHECK(at < config->listen_count);
	for (size_t i = 0; i < at; i++)
		count += strcmp(config->listen[i].address, config->listen[at].address) == 0;
	return count;
}

static int listener_open(const struct config *config, size_t at, struct error *err)
{
	struct address address;

	if (address_parse(config->listen[at].address, &address, err) < 0)
		return -1;
	if (address.kind == ADDRESS_SYSTEMD)
		return address_take_systemd(address.name, count_same_before(config, at), err);
	return address_listen((const struct sockaddr *)&address.socket, address.socket_size, err);
}

/* The texts of config->listen, then those of enum listener_more; NULL: none is wanted, or it is made anew. */
static const char *text_of(const struct config *config, size_t at)
{
	const char *texts[LISTENERS_MORE] = {
		[LISTENER_ADMIN] = config->admin_address,
		[LISTENER_METRICS] = config->admin_metrics,
		[LISTENER_PAGE] = config->admin_page,
	};

	CHECK(at < config->listen_count + LISTENERS_MORE);
	return at < config->listen_count ? config->listen[at].address :
					   texts[at - config->listen_count];
}

/* A socket of the operator that is beside another daemon's is made anew. */
void listeners_hand_over(const struct config *config, const int *listeners, struct handover *to)
{
	int end = ADDRESS_SYSTEMD_BEGIN + (int)address_count_systemd();

	for (int fd = ADDRESS_SYSTEMD_BEGIN; fd < end; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			handover_write(to, "systemd %d", handover_give(to, fd));
	for (size_t i = 0; i < config->listen_count + LISTENERS_MORE; i++) {
		bool is_passed = listeners[i] < end && listeners[i] >= ADDRESS_SYSTEMD_BEGIN;

		if (listeners[i] >= 0 && !is_passed &&
		    (i != config->listen_count + LISTENER_ADMIN || usual.own == NULL))
			handover_write(to, "listener %d %s", handover_give(to, listeners[i]),
				       text_of(config, i));
	}
	if (usual.made != NULL)
		handover_write(to, "made %s", usual.made);
}

/* The file of a unix socket that nobody listens on goes. */
static void remove_stale(const char *text)
{
	struct address address;

	if (address_parse(text, &address, NULL) == 0 && address.kind == ADDRESS_UNIX)
		address_remove_stale((const struct sockaddr *)&address.socket, address.socket_size);
}

static const char *path_of(const char *address)
{
	return address + strlen("unix:");
}

static void log_listener(int fd)
{
	char text[ADDRESS_TEXT_BYTES];

	address_format(fd, text);
	LOG(LISTEN, LOG_STR("address", text),
	    LOG_STR("reach", address_is_loopback(fd) ? "local" : "network"));
}

static void fail_at(const char *address, const struct error *why, struct error *err)
{
	LOG(LISTEN_FAILED, LOG_STR("address", address), LOG_STR("error", why->text));
	error_set(err, why->kind, "cannot listen on %.80s: %.150s", address, why->text);
}

/* Prefixes err with that place. Returns -1. */
static int listeners_tell_place(const struct config *config, size_t at, struct error *err)
{
	char key[48];

	snprintf(key, sizeof(key), "listen[%zu].address", at);
	return places_tell(&config->rule_places, key, err);
}

/* Opens one, by index. -1: err names the address and its place in the configuration. */
static int listeners_open_one(const struct config *config, size_t at, struct error *err)
{
	struct error why = { ERROR_NONE, "" };
	int fd = listener_open(config, at, &why);

	if (fd < 0) {
		fail_at(config->listen[at].address, &why, err);
		return listeners_tell_place(config, at, err);
	}
	log_listener(fd);
	return fd;
}

/*
 * Closes a socket of that address, and removes the file of a unix socket unless another process has
 * it open. A socket opened by systemd stays open, for reuse.
 */
static void listeners_give_up(const char *address, int fd)
{
	struct address parsed;

	CHECK(fd >= 0);
	if (address_parse(address, &parsed, NULL) < 0 || parsed.kind == ADDRESS_SYSTEMD)
		return;
	/* The file goes if nobody listens, and a gateway that has this open as well does not from now on. */
	if (parsed.kind == ADDRESS_UNIX)
		shutdown(fd, SHUT_RD);
	close(fd);
	remove_stale(address);
}

/* Nobody closes what systemd has passed. */
static void listeners_take_passed(struct handover *from)
{
	const char *line;
	size_t at = 0;
	int fd;

	while ((line = handover_next(from, "systemd", &at)) != NULL)
		if (sscanf(line, "%d", &fd) == 1)
			(void)handover_take(from, fd);
}

void listeners_drop(struct handover *from)
{
	const char *line;
	size_t at = 0;
	int fd, n;

	while ((line = handover_next(from, "listener", &at)) != NULL) {
		if (sscanf(line, "%d %n", &fd, &n) != 1 || handover_take(from, fd) < 0)
			continue;
		LOG(LISTEN_END, LOG_STR("address", line + n));
		listeners_give_up(line + n, fd);
	}
}

static int open_all(const struct config *config, struct handover *from, int *listeners,
		    struct error *err)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		listeners[i] = handover_take_named(from, "listener", config->listen[i].address);
		if (listeners[i] < 0)
			listeners[i] = listeners_open_one(config, i, err);
		if (listeners[i] < 0)
			return -1;
	}
	return 0;
}

/* Where a unix socket is to be made; what is there already is this daemon's, or replaced if nobody listens. */
static int try_directory_of(const char *path, struct error *err)
{
	const char *name = strrchr(path, '/');
	at_end(mem_free) char *directory =
		name != NULL ? mem_dup_slice(slice_between(path, name + 1)) : NULL;
	int result = access(directory != NULL ? directory : ".", W_OK | X_OK);

	if (result < 0)
		error_set_errno(err, "cannot create a socket in its directory");
	return result;
}

/* What is no address at all the rules have refused, and what systemd passes is there in a service alone. */
static int try_to_listen(const struct address *address, struct error *err)
{
	int fd;

	if (address->kind == ADDRESS_SYSTEMD)
		return 0;
	if (address->kind == ADDRESS_UNIX)
		return try_directory_of(((const struct sockaddr_un *)(const void *)&address->socket)
						->sun_path,
					err);
	fd = address_listen((const struct sockaddr *)&address->socket, address->socket_size, err);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* The port of a TCP address; 0: it has none. */
static in_port_t listeners_port_of(const char *text)
{
	struct address address;
	struct sockaddr_in in; /* the port is at the same place in both families */

	if (address_parse(text, &address, NULL) < 0 || address.kind != ADDRESS_TCP)
		return 0;
	memcpy(&in, &address.socket, sizeof(in));
	return in.sin_port;
}

/* Whether the process has this socket open, as far as this user may know. */
static bool has_socket(pid_t pid, unsigned long inode)
{
	char path[64], wanted[64], found[64];
	const struct dirent *entry;
	bool has_it = false;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	all = opendir(path);
	while (all != NULL && !has_it && (entry = readdir(all)) != NULL) {
		ssize_t n = readlinkat(dirfd(all), entry->d_name, found, sizeof(found) - 1);

		found[n > 0 ? n : 0] = '\0';
		has_it = strcmp(found, wanted) == 0;
	}
	if (all != NULL)
		closedir(all);
	return has_it;
}

/* Whether the process listens on this TCP port. */
static bool listens_on(pid_t pid, unsigned int port)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	const unsigned int listening = 0x0A;
	bool listens = false;

	CHECK(pid > 0 && port > 0);
	for (size_t i = 0; i < ARRAY_LEN(tables) && !listens; i++) {
		FILE *table = fopen(tables[i], "re");
		char line[512];

		while (table != NULL && !listens && fgets(line, sizeof(line), table) != NULL) {
			unsigned int own = 0, state = 0;
			unsigned long inode = 0;

			if (sscanf(line,
				   " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu",
				   &own, &state, &inode) == 3)
				listens =
					own == port && state == listening && has_socket(pid, inode);
		}
		if (table != NULL)
			fclose(table);
	}
	return listens;
}

/* Whether the daemon at the admin socket of this configuration has the port, which is taken: then it is this daemon. */
static bool is_own_port(const struct config *config, const char *address, pid_t daemon)
{
	const char *admin = config->admin_address, *user = getenv("XDG_RUNTIME_DIR");
	unsigned int port = ntohs(listeners_port_of(address));
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = ROOT_PLACE "/admin.sock";
	pid_t owner;

	if (daemon > 0)
		return listens_on(daemon, port);
	if (strncmp(admin, "unix:", 5) == 0)
		snprintf(path, sizeof(path), "%s", admin + 5);
	else if (user != NULL)
		snprintf(path, sizeof(path), "%s/mcpgated/admin.sock", user);
	owner = address_owner(path);
	return owner > 0 && listens_on(owner, port);
}

/* A service manager may make the directory of a socket. */
static void listeners_check_one(const struct config *config, const char *text,
				const struct tree *at, pid_t daemon,
				struct config_problems *problems, struct config_problems *warnings)
{
	struct error err = { ERROR_NONE, "" };
	struct address address;
	bool is_taken;

	if (text == NULL || address_parse(text, &address, &err) < 0 ||
	    try_to_listen(&address, &err) == 0)
		return;
	is_taken = slice_has_prefix(slice_str(err.text), slice_str(strerror(EADDRINUSE)));
	if (is_taken && is_own_port(config, text, daemon))
		return;
	is_taken = is_taken && daemon == 0;
	problem_add_at(is_taken || address.kind == ADDRESS_UNIX ? warnings : problems, at,
		       "cannot listen on %.100s now: %s%s", text, err.text,
		       is_taken ? " (perhaps this daemon is already running)" : "");
}

void listeners_check(const struct config *config, const struct tree *root, pid_t daemon,
		     struct config_problems *problems, struct config_problems *warnings)
{
	const struct tree *admin = tree_below(root, "admin");

	for (size_t i = 0; i < config->listen_count; i++) {
		const struct tree *item = tree_item(tree_below(root, "listen"), i);

		listeners_check_one(config, config->listen[i].address, tree_below(item, "address"),
				    daemon, problems, warnings);
	}
	/* "auto" and "off" are no addresses. */
	listeners_check_one(config, config->admin_address, tree_below(admin, "address"), daemon,
			    problems, warnings);
	listeners_check_one(config, config->admin_metrics, tree_below(admin, "metrics"), daemon,
			    problems, warnings);
	listeners_check_one(config, config->admin_page, tree_below(admin, "page"), daemon, problems,
			    warnings);
}

/* ---- for the operator ---- */

/*
 * The admin socket with admin.address: auto. If another daemon of this user has the usual one, this one's
 * is beside it, and is moved there once the other has ended: within a minute, as for a daemon that takes
 * the place of one that still ends.
 */
#define USUAL_WAIT_MS 60000
#define USUAL_PAUSE_MS 250
#define USUAL_FREE_COUNT 8

/* Its files are made by whoever may write it; root's is made where there is none. Returns an address to free, or NULL. */
static char *admin_place_in(const char *dir, struct error *why)
{
	struct stat st;
	bool is_made = mkdir(dir, 0700) == 0;

	if (!is_made && errno != EEXIST)
		error_set_errno(why, "mkdir %.150s", dir);
	else if (lstat(dir, &st) < 0)
		error_set_errno(why, "%.150s", dir);
	else if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		 (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		error_set(why, ERROR_INVALID,
			  "%.150s must be a directory that belongs to this user and that only this "
			  "user may write to",
			  dir);
	if (is_made) {
		free(usual.made);
		usual.made = mem_strdup(dir);
	}
	return why->kind == ERROR_NONE ? mem_printf("unix:%s/admin.sock", dir) : NULL;
}

/*
 * Where the admin socket is with admin.address: auto: only in directories that belong to this daemon or this user
 * alone. Returns an address to free, or NULL.
 */
static char *admin_place(struct error *why)
{
	const char *service = getenv("RUNTIME_DIRECTORY");
	const char *user = getenv("XDG_RUNTIME_DIR");
	struct slice dirs = slice_str(service != NULL ? service : "");
	struct slice dir = slice_cut(&dirs, ':');
	at_end(mem_free) char *made = NULL;

	if (dir.n > 0)
		return mem_printf("unix:%.*s/admin.sock", SLICE_ARG(dir));
	if ((user == NULL || user[0] != '/') && geteuid() == 0)
		return admin_place_in(ROOT_PLACE, why);
	if (user == NULL || user[0] != '/') {
		error_set(
			why, ERROR_INVALID,
			"neither RUNTIME_DIRECTORY nor XDG_RUNTIME_DIR is set; set the latter to a "
			"directory of this user, or admin.address in a configuration file");
		return NULL;
	}
	made = mem_printf("%s/mcpgated", user);
	return admin_place_in(made, why);
}

static int open_private(const char *text, struct error *err)
{
	struct address address;

	if (address_parse(text, &address, err) < 0)
		return -1;
	return address_listen_private((const struct sockaddr *)&address.socket, address.socket_size,
				      err);
}

/* Beside the usual one, which another daemon has. */
static int open_admin_beside(const char *address, pid_t owner, struct error *why)
{
	const char *end = address + strlen(address) - strlen(".sock");
	at_end(mem_free) char *own =
		mem_printf("%.*s-%d.sock", (int)(end - address), address, (int)getpid());
	int fd = open_private(own, why);

	CHECK(owner > 0 && usual.address == NULL && usual.own == NULL);
	if (fd >= 0) {
		LOG(ADMIN_BESIDE, LOG_STR("address", own), LOG_STR("usual", address),
		    LOG_INT("pid", owner));
		usual.address = mem_strdup(address);
		usual.own = mem_strdup(own);
		usual.owner = owner;
		usual.next_ms = clock_now_ms() + USUAL_PAUSE_MS;
		usual.until_ms = clock_now_ms() + USUAL_WAIT_MS;
	}
	return fd;
}

uint64_t listeners_do_due(void)
{
	uint64_t now = clock_now_ms();

	if (now < usual.next_ms)
		return usual.next_ms;
	usual.next_ms = now < usual.until_ms ? now + USUAL_PAUSE_MS : NEVER;
	CHECK(usual.address != NULL && usual.own != NULL);
	/* Not while it only makes place for the one that follows it. */
	if (kill(usual.owner, 0) == 0 || errno != ESRCH ||
	    address_owner(path_of(usual.address)) != 0)
		usual.free_count = 0;
	else
		usual.free_count++;
	if (usual.free_count < USUAL_FREE_COUNT)
		return usual.next_ms;
	remove_stale(usual.address);
	if (renameat2(AT_FDCWD, path_of(usual.own), AT_FDCWD, path_of(usual.address),
		      RENAME_NOREPLACE) == 0) {
		LOG(LISTEN, LOG_STR("address", usual.address), LOG_STR("reach", "local"));
		free(usual.own);
		usual.own = NULL;
		usual.next_ms = NEVER;
	}
	return usual.next_ms;
}

/* What was made for it goes, with nothing in it; its own socket has been closed. */
static void usual_fini(void)
{
	CHECK(usual.own == NULL || usual.address != NULL);
	if (usual.address != NULL && usual.own == NULL)
		remove_stale(usual.address);
	if (usual.made != NULL)
		(void)rmdir(usual.made);
	free(usual.made);
	free(usual.address);
	free(usual.own);
	memset(&usual, 0, sizeof(usual));
	usual.next_ms = NEVER;
}

/* At a place that was not configured: without one, a daemon serves all the same. */
static int open_admin_somewhere(void)
{
	struct error why = { ERROR_NONE, "" };
	at_end(mem_free) char *address = admin_place(&why);
	pid_t owner;
	int fd = -1;

	if (address != NULL)
		fd = open_private(address, &why);
	owner = fd < 0 && address != NULL ? address_owner(path_of(address)) : 0;
	if (owner > 0)
		fd = open_admin_beside(address, owner, &why);
	else if (fd >= 0)
		log_listener(fd);
	if (fd < 0)
		LOG(ADMIN_OFF, LOG_STR("address", address != NULL ? address : "-"),
		    LOG_STR("reason", why.text));
	return fd;
}

static int open_more(const struct config *config, struct handover *from, int *more,
		     struct error *err)
{
	static const char *const keys[LISTENERS_MORE] = {
		[LISTENER_ADMIN] = "admin.address",
		[LISTENER_METRICS] = "admin.metrics",
		[LISTENER_PAGE] = "admin.page",
	};

	for (size_t i = 0; i < LISTENERS_MORE; i++) {
		const char *text = text_of(config, config->listen_count + i);
		struct error why = { ERROR_NONE, "" };

		if (text == NULL || strcmp(text, "off") == 0)
			continue;
		more[i] = handover_take_named(from, "listener", text);
		if (more[i] >= 0)
			continue;
		if (strcmp(text, "auto") == 0) {
			more[i] = open_admin_somewhere();
			continue;
		}
		more[i] = open_private(text, &why);
		if (more[i] < 0) {
			fail_at(text, &why, err);
			return places_tell(&config->rule_places, keys[i], err);
		}
		log_listener(more[i]);
	}
	return 0;
}

int *listeners_open(const struct config *config, struct handover *from, struct error *err)
{
	size_t count = config->listen_count + LISTENERS_MORE, at = 0;
	int *listeners = mem_alloc(count * sizeof(*listeners));
	const char *made = handover_next(from, "made", &at);

	for (size_t i = 0; i < count; i++)
		listeners[i] = -1;
	usual.made = made != NULL ? mem_strdup(made) : NULL;
	listeners_take_passed(from);
	if (open_all(config, from, listeners, err) == 0 &&
	    open_more(config, from, listeners + config->listen_count, err) == 0)
		return listeners;
	if (from->text.len == 0)
		listeners_close(config, &listeners);
	free(listeners);
	return NULL;
}

/* ---- the end ---- */

/* Removes the file of a unix socket as well; its address is asked of the socket. */
static void close_private(int fd)
{
	char own[ADDRESS_TEXT_BYTES];

	if (fd < 0)
		return;
	address_format(fd, own);
	close(fd);
	remove_stale(own);
}

/* The options that keeper/confine lets it set; a unix socket has but the first. */
static void restore(int fd)
{
	static const int options[] = { TCP_NODELAY, TCP_NOTSENT_LOWAT, TCP_USER_TIMEOUT };
	const struct linger no_linger = { 0, 0 };
	const int none = 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		setsockopt(fd, IPPROTO_TCP, options[i], &none, sizeof(none));
}

void listeners_restore(const struct config *config, const int *listeners)
{
	for (size_t i = 0; i < config->listen_count + LISTENERS_MORE; i++)
		if (listeners[i] >= 0)
			restore(listeners[i]);
}

void listeners_stop(const struct config *config, int *listeners)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		if (listeners[i] >= 0)
			close(listeners[i]);
		listeners[i] = -1;
	}
}

void listeners_close(const struct config *config, int **listeners)
{
	CHECK(*listeners != NULL);
	listeners_stop(config, *listeners);
	for (size_t i = 0; i < config->listen_count; i++)
		remove_stale(config->listen[i].address);
	for (size_t i = 0; i < LISTENERS_MORE; i++)
		close_private((*listeners)[config->listen_count + i]);
	usual_fini();
	free(*listeners);
	*listeners = NULL;
}

/* ---- those of the next configuration ---- */

/* 127.0.0.1:80 and 0.0.0.0:80 cannot be open at the same time, whoever has them. */
static void blame_own(const struct config *now, const struct config *config, size_t at,
		      struct error *err)
{
	const char *address = config->listen[at].address;
	struct error why = *err;
	in_port_t port = listeners_port_of(address);

	if (strstr(err->text, strerror(EADDRINUSE)) == NULL || port == 0)
		return;
	for (size_t i = 0; i < now->listen_count; i++)
		if (listeners_port_of(now->listen[i].address) == port) {
			error_set(
				err, why.kind,
				"cannot listen on %.80s while this daemon listens on %.80s: needs "
				"a restart",
				address, now->listen[i].address);
			listeners_tell_place(config, at, err);
			return;
		}
}

int next_listeners_open(struct next_listeners *next_r, const struct config *now,
			const struct config *config, struct error *err)
{
	size_t count = config->listen_count;

	CHECK(count > 0);
	*next_r = (struct next_listeners){ .config = config };
	next_r->kept = mem_alloc(count * sizeof(*next_r->kept));
	next_r->fds = mem_alloc(count * sizeof(*next_r->fds));
	config_match_listeners(now, config, next_r->kept);
	memset(next_r->fds, 0xff, count * sizeof(*next_r->fds)); /* -1 */
	for (size_t i = 0; i < count; i++) {
		if (next_r->kept[i] >= 0)
			continue;
		next_r->fds[i] = listeners_open_one(config, i, err);
		if (next_r->fds[i] >= 0)
			continue;
		blame_own(now, config, i, err);
		next_listeners_forget(next_r);
		return -1;
	}
	return 0;
}

static void free_all(struct next_listeners *next)
{
	free(next->kept);
	free(next->fds);
	*next = (struct next_listeners){ .config = NULL };
}

void next_listeners_forget(struct next_listeners *next)
{
	for (size_t i = 0; next->config != NULL && i < next->config->listen_count; i++)
		if (next->fds[i] >= 0)
			listeners_give_up(next->config->listen[i].address, next->fds[i]);
	free_all(next);
}

int next_listeners_tell(struct next_listeners *next, int gateway_fd)
{
	while (next->config != NULL && next->sent < next->config->listen_count) {
		int fd = next->fds[next->sent];
		const struct ipc_message message = {
			.type = IPC_LISTENER,
			.listener = { (uint32_t)next->sent, next->kept[next->sent] },
			.fds = { fd },
			.fd_count = fd >= 0,
		};

		if (ipc_send(gateway_fd, &message, NULL) < 0)
			return -1;
		next->sent++;
	}
	return 0;
}

void next_listeners_use(struct next_listeners *next, const struct config *now, int **listeners)
{
	size_t count = next->config->listen_count;
	int *fds = mem_alloc((count + LISTENERS_MORE) * sizeof(*fds));
	int *before = *listeners;

	for (size_t i = 0; i < count; i++) {
		int32_t kept = next->kept[i];

		CHECK(kept < (int32_t)now->listen_count);
		fds[i] = kept >= 0 ? before[kept] : next->fds[i];
		if (kept >= 0)
			before[kept] = -1;
	}
	memcpy(fds + count, before + now->listen_count, LISTENERS_MORE * sizeof(*fds));
	for (size_t i = 0; i < now->listen_count; i++) {
		if (before[i] < 0)
			continue;
		LOG(LISTEN_END, LOG_STR("address", now->listen[i].address));
		listeners_give_up(now->listen[i].address, before[i]);
	}
	free(before);
	*listeners = fds;
	free_all(next);
}

/* ---- the certificates of listeners ---- */

/*
 * Opens, sends, closes; never reads. One IPC_CERTIFICATE for each entry, then IPC_CERTIFICATES_END.
 */

#define CERTIFICATES_FILES 3 /* certificate, key, client_ca: as they are sent */

_Static_assert(CERTIFICATES_FILES <= IPC_FDS_MAX, "an entry is one message");

static size_t count_entries(const struct config *config)
{
	size_t count = 0;

	for (size_t i = 0; i < config->listen_count; i++)
		count += config->listen[i].tls_count;
	return count;
}

static void close_set(int **fds, size_t count)
{
	for (size_t i = 0; *fds != NULL && i < count * CERTIFICATES_FILES; i++) {
		if ((*fds)[i] >= 0)
			close((*fds)[i]);
	}
	free(*fds);
	*fds = NULL;
}

/* NULL is no file, which is fine. */
static int open_file(const struct listed_writers *writers, const char *path, int *fd_r,
		     struct error *err)
{
	struct error why;

	*fd_r = -1;
	if (path == NULL)
		return 0;
	*fd_r = file_open(path, writers, &why);
	return *fd_r >= 0 ? 0 : error_set(err, why.kind, "%.150s: %.150s", path, why.text);
}

static int open_entry(const struct listed_writers *writers, const struct config_tls *tls,
		      int *fds_r, struct error *err)
{
	if (open_file(writers, tls->certificate, &fds_r[0], err) < 0 ||
	    open_file(writers, tls->key, &fds_r[1], err) < 0)
		return -1;
	return open_file(writers, tls->client_ca, &fds_r[2], err);
}

static int *open_set(const struct config *config, const struct config *running, size_t count,
		     struct error *err)
{
	const struct listed_writers writers = { .running = running, .next = config };
	int *fds = mem_alloc((count * CERTIFICATES_FILES + 1) * sizeof(*fds));
	int *at = fds;

	memset(fds, 0xff, (count * CERTIFICATES_FILES + 1) * sizeof(*fds)); /* -1 */
	for (size_t i = 0; i < config->listen_count; i++) {
		for (size_t j = 0; j < config->listen[i].tls_count; j++) {
			if (open_entry(&writers, &config->listen[i].tls[j], at, err) < 0) {
				close_set(&fds, count);
				return NULL;
			}
			at += CERTIFICATES_FILES;
		}
	}
	CHECK(at == fds + count * CERTIFICATES_FILES);
	return fds;
}

int certificates_init(struct certificates *certificates, const struct config *config,
		      const struct config *running, struct error *err)
{
	CHECK(config != NULL);
	*certificates = (struct certificates){ .config = config,
					       .running = running,
					       .count = count_entries(config) };
	certificates->used = open_set(config, running, certificates->count, err);
	return certificates->used != NULL ? 0 : -1;
}

void certificates_fini(struct certificates *certificates)
{
	close_set(&certificates->used, certificates->count);
	close_set(&certificates->next, certificates->count);
}

void certificates_renew(struct certificates *certificates, const struct config *config)
{
	CHECK(count_entries(config) == certificates->count);
	certificates->config = config;
}

bool certificates_exist(const struct certificates *certificates)
{
	return certificates->count > 0;
}

void certificates_set_gateway(struct certificates *certificates)
{
	/* A set that the gateway before has not judged is read again for this one. */
	certificates->is_asked_for = certificates->is_asked_for || certificates->next != NULL;
	close_set(&certificates->next, certificates->count);
	certificates->sent = 0;
}

void certificates_reload_later(struct certificates *certificates)
{
	certificates->is_asked_for = certificates_exist(certificates);
}

void certificates_on_ready(struct certificates *certificates)
{
	if (certificates->is_asked_for)
		certificates_reload(certificates);
}

void certificates_reload(struct certificates *certificates)
{
	struct error err = { ERROR_NONE, "" };

	if (certificates->next != NULL || certificates_has_untold(certificates)) {
		certificates->is_asked_for = true;
		return;
	}
	CHECK(certificates->next == NULL);
	certificates->is_asked_for = false;
	certificates->next =
		open_set(certificates->config, certificates->running, certificates->count, &err);
	if (certificates->next == NULL)
		LOG(CERTIFICATES_REFUSED, LOG_STR("error", err.text));
	else
		certificates->sent = 0;
}

bool certificates_on_verdict(struct certificates *certificates, bool is_used)
{
	if (certificates->next == NULL || certificates_has_untold(certificates))
		return false; /* no set was sent that could be judged */
	if (is_used) {
		close_set(&certificates->used, certificates->count);
		certificates->used = certificates->next;
		certificates->next = NULL;
	}
	close_set(&certificates->next, certificates->count);
	if (certificates->is_asked_for)
		certificates_reload(certificates);
	return certificates->next == NULL;
}

void certificates_give_up(struct certificates *certificates)
{
	close_set(&certificates->next, certificates->count);
	certificates->is_asked_for = false;
}

bool certificates_is_reloading(const struct certificates *certificates)
{
	return certificates->next != NULL || certificates->is_asked_for;
}

/* Entry number `at`, counted over all listeners. */
static int send_entry(const struct certificates *certificates, size_t at, int gateway_fd)
{
	const int *fds = (certificates->next != NULL ? certificates->next : certificates->used) +
			 at * CERTIFICATES_FILES;
	struct ipc_message message = { .type = IPC_CERTIFICATE,
				       .certificate.is_next = certificates->is_next,
				       .fds = { fds[0], fds[1], fds[2] },
				       .fd_count = fds[2] >= 0 ? 3 : 2 };
	uint32_t listener = 0;

	CHECK(at < certificates->count);
	while (at >= certificates->config->listen[listener].tls_count)
		at -= certificates->config->listen[listener++].tls_count;
	message.certificate.listener = listener;
	message.certificate.entry = (uint32_t)at;
	return ipc_send(gateway_fd, &message, NULL);
}

void certificates_tell(struct certificates *certificates, int gateway_fd)
{
	const struct ipc_message end = { .type = IPC_CERTIFICATES_END };

	while (certificates_has_untold(certificates)) {
		bool is_end = certificates->sent == certificates->count;

		CHECK(certificates->sent <= certificates->count);
		if ((is_end ? ipc_send(gateway_fd, &end, NULL) :
			      send_entry(certificates, certificates->sent, gateway_fd)) < 0)
			return;
		certificates->sent++;
	}
}

int certificates_tell_next(struct certificates *next, int gateway_fd)
{
	CHECK(next->next == NULL);
	next->is_next = true;
	while (next->sent < next->count) {
		if (send_entry(next, next->sent, gateway_fd) < 0)
			return -1;
		next->sent++;
	}
	return 0;
}

void certificates_replace(struct certificates *certificates, struct certificates *next)
{
	CHECK(next->next == NULL && next->sent == next->count);
	certificates_fini(certificates);
	*certificates = *next;
	certificates->is_next = false;
	certificates->sent = certificates->count + 1;
	*next = (struct certificates){ .count = 0 };
}

bool certificates_has_untold(const struct certificates *certificates)
{
	return certificates->count > 0 && certificates->sent <= certificates->count;
}
