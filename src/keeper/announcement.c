/* SPDX-License-Identifier: Apache-2.0 */
/* What a server calls itself is its own choice: it is shown like any foreign text, and short. */
#include "keeper/announcement.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/text.h"
#include "config/forms.h"
#include "io/address.h"
#include "obs/line.h"
#include "obs/log.h"

#define WAIT_MS 2000
#define NAME_SHOWN 60
#define VERSION_SHOWN 30

struct announced {
	bool is_found; /* `text` is all that will be known */
	bool is_said;
	char text[128 +
		  6 * (NAME_SHOWN + VERSION_SHOWN)]; /* ` (NAME VERSION, 3 tools)`, or nothing */
};

void announcement_init(struct announcement *announcement, const struct config *config)
{
	*announcement = (struct announcement){ .config = config, .until_ms = UINT64_MAX };
	announcement->servers = mem_zalloc(config->server_count * sizeof(struct announced));
}

void announcement_fini(struct announcement *announcement)
{
	free(announcement->servers);
	announcement->servers = NULL;
}

/* ---- a line ---- */

/* Never waits: a reader of stderr that does not read must not stop the daemon. */
static void say(const char *text)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
	    write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody to tell */
}

/* There is no common form of a URL for a unix socket; this one can be read. The caller frees it. */
static char *format_url(const struct config *config, size_t i, int fd, const char *path)
{
	at_end(mem_free) char *origin = origin_of_listener(config, i, fd);
	char address[ADDRESS_TEXT_BYTES];
	char *url;

	CHECK(fd >= 0);
	address_format(fd, address);
	if (strncmp(address, "unix:", 5) == 0)
		url = mem_printf("%s+unix://%s:%s",
				 config->listen[i].tls_count > 0 ? "https" : "http", address + 5,
				 path);
	else
		url = mem_printf("%s%s", origin != NULL ? origin : address, path);
	return url;
}

/* Where the configuration says how clients reach the daemon, that is told as well. */
static void announcement_tell(const struct config *config, const struct announced *announced,
			      const char *name, const char *url, const char *path)
{
	struct slice public_url = config->frontend.authorization.public_url;
	bool is_public = public_url.n > 0;
	at_end(mem_free) char *for_clients =
		mem_printf("%.*s%s", SLICE_ARG(public_url), is_public ? path : "");
	at_end(mem_free) char *line =
		mem_printf("mcpgated: ready: %s%s at %s%s%s\n", name, announced->text, url,
			   is_public ? ", for clients " : "", for_clients);

	if (config->log_format != LOG_FORMAT_JSON)
		say(line);
	else if (is_public)
		LOG(ENDPOINT_READY, LOG_STR("server", name), LOG_STR("url", url),
		    LOG_STR("public_url", for_clients));
	else
		LOG(ENDPOINT_READY, LOG_STR("server", name), LOG_STR("url", url));
}

/* Nothing of it is started before somebody needs it. */
static bool waits_for_client(const struct config_server *server)
{
	const struct server_conf *conf = &server->conf;

	return !server->is_endpoint && (!conf->is_tried || conf->claims.count > 0) &&
	       conf->warm == 0 && (conf->isolation != ISOLATION_SHARED || conf->pool_min == 0);
}

/* Where an object of the log says where it is, server_found says what it is. */
static bool announcement_is_awaited(const struct announcement *announcement, size_t server)
{
	const struct server_conf *conf = &announcement->config->servers[server].conf;

	return conf->is_tried && conf->claims.count == 0 && !server_is_endpoint(conf) &&
	       announcement->config->log_format != LOG_FORMAT_JSON &&
	       !announcement->servers[server].is_found;
}

/* A log of JSON objects has no other lines among them. */
static void announce(struct announcement *announcement, size_t server)
{
	const struct config *config = announcement->config;
	const struct config_server *of = &config->servers[server];
	struct announced *announced = &announcement->servers[server];

	CHECK(!announced->is_said);
	announced->is_said = true;
	if (waits_for_client(of))
		snprintf(announced->text, sizeof(announced->text), " (not tried yet)");
	else if (announcement_is_awaited(announcement, server))
		snprintf(announced->text, sizeof(announced->text), " (no answer yet)");
	for (size_t i = 0; i < config->listen_count; i++) {
		at_end(mem_free) char *url = NULL;

		if (announcement->listeners[i] < 0)
			continue; /* it is stopping */
		url = format_url(config, i, announcement->listeners[i], of->endpoint.path.p);
		announcement_tell(config, announced, of->conf.name, url, of->endpoint.path.p);
	}
}

/* ---- what is known of a server ---- */

static void announced_put_shown(struct text_line *line, struct slice text, size_t most)
{
	if (text.n == 0)
		return;
	line_puts(line, line->length > 0 ? " " : "");
	(void)line_put_shown(line, text, most); /* that it was cut is said in it */
}

static void announced_describe(struct announced *announced, int tools, struct slice name,
			       struct slice version)
{
	char count[32] = "";
	struct text_line line;

	if (tools == IPC_FOUND_FAILING) {
		snprintf(announced->text, sizeof(announced->text),
			 " (fails to start, see the log)");
		return;
	}
	line_init(&line, sizeof(announced->text) - sizeof(count) - 8);
	announced_put_shown(&line, name, NAME_SHOWN);
	announced_put_shown(&line, version, VERSION_SHOWN);
	if (tools >= 0)
		snprintf(count, sizeof(count), "%s%d tool%s", line.length > 0 ? ", " : "", tools,
			 tools == 1 ? "" : "s");
	if (line.length > 0 || tools >= 0)
		snprintf(announced->text, sizeof(announced->text), " (%.*s%s)", (int)line.length,
			 line.bytes, count);
}

void announcement_take(struct announcement *announcement, const struct ipc_message *message)
{
	uint32_t server = message->found.server;
	struct announced *announced;

	if (announcement->config == NULL || server >= announcement->config->server_count ||
	    !announcement_is_awaited(announcement, server))
		return;
	announced = &announcement->servers[server];
	announced->is_found = true;
	if (!announced->is_said)
		announced_describe(announced, message->found.tools, message->texts[0],
				   message->texts[1]);
	if (announcement->listeners != NULL && !announced->is_said)
		announce(announcement, server);
}

/* ---- when ---- */

/* Returns whether lines still wait. */
static bool announce_all(struct announcement *announcement, bool is_late)
{
	const struct config *config = announcement->config;
	bool waits = false;

	for (size_t i = 0; i < config->server_count; i++) {
		if (!config->servers[i].enabled || announcement->servers[i].is_said)
			continue;
		if (is_late || !announcement_is_awaited(announcement, i))
			announce(announcement, i);
		else
			waits = true;
	}
	return waits;
}

void announcement_begin(struct announcement *announcement, const int *listeners)
{
	CHECK(announcement->config != NULL);
	CHECK(announcement->listeners == NULL && listeners != NULL);
	announcement->listeners = listeners;
	if (announce_all(announcement, false))
		announcement->until_ms = clock_now_ms() + WAIT_MS;
}

void announcement_renew(struct announcement *announcement, const struct config *config)
{
	if (announcement->listeners != NULL) {
		if (announcement->config != NULL)
			(void)announce_all(announcement, true);
		announcement->config = NULL;
		announcement->until_ms = UINT64_MAX;
		return;
	}
	announcement_fini(announcement);
	announcement_init(announcement, config);
	for (size_t i = 0; i < config->server_count; i++)
		announcement->servers[i].is_found = true;
}

uint64_t announcement_do_due(struct announcement *announcement)
{
	if (announcement->until_ms <= clock_now_ms()) {
		announcement->until_ms = UINT64_MAX;
		(void)announce_all(announcement, true);
	}
	return announcement->until_ms;
}

/* ---- what systemd is told ---- */

/* Datagrams to the socket that NOTIFY_SOCKET names, in the file system or abstract. */

static uint64_t read_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t value;
	uint64_t number;

	if (usec == NULL || text_parse_u64(slice_str(usec), &value) != 0 || value < 2000)
		return 0;
	if (pid != NULL &&
	    (text_parse_u64(slice_str(pid), &number) != 0 || number != (uint64_t)getpid()))
		return 0;
	return value / 1000 / 2;
}

static void open_socket(struct notify *notify, const char *path)
{
	size_t length = path != NULL ? strlen(path) : 0;

	CHECK(notify->fd < 0);
	if (length < 2 || length >= sizeof(notify->address.sun_path))
		return;
	if (path[0] != '/' && path[0] != '@')
		return; /* vsock, or nothing that we know */
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, path, length);
	if (path[0] == '@')
		notify->address.sun_path[0] = '\0';
	notify->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void notify_init(struct notify *notify)
{
	*notify = (struct notify){ .fd = -1 };
	open_socket(notify, getenv("NOTIFY_SOCKET"));
	if (notify->fd >= 0)
		notify->watchdog_ms = read_watchdog_ms();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_send(const struct notify *notify, const char *text)
{
	if (notify->fd < 0)
		return;
	sendto(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
	       (const struct sockaddr *)&notify->address, notify->size);
}
