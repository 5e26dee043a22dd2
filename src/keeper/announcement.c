/* SPDX-License-Identifier: Apache-2.0 */
/* What a server calls itself is its own choice: it is shown like any foreign text, and short. */
#include "keeper/announcement.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/address.h"
#include "obs/line.h"
#include "obs/log.h"

#define WAIT_MS 2000
#define NAME_SHOWN 60
#define VERSION_SHOWN 30
#define LINE_BYTES 1400

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

/* There is no common form of a URL for a unix socket; this one can be read. */
static void format_url(const struct config_listen *listen, int listener, const char *path,
		       char *url_r, size_t size)
{
	const char *scheme = listen->tls_count > 0 ? "https" : "http";
	char address[ADDRESS_TEXT_BYTES];
	bool is_unix;

	CHECK(listener >= 0);
	address_format(listener, address);
	is_unix = strncmp(address, "unix:", 5) == 0;
	snprintf(url_r, size, "%s%s://%s%s%s", scheme, is_unix ? "+unix" : "",
		 is_unix ? address + 5 : address, is_unix ? ":" : "", path);
}

/* A log of JSON objects has no other lines among them. */
static void announce(struct announcement *announcement, size_t server)
{
	const struct config *config = announcement->config;
	const struct config_server *of = &config->servers[server];
	struct announced *announced = &announcement->servers[server];
	char line[LINE_BYTES + sizeof(announced->text)], url[900];

	CHECK(!announced->is_said);
	announced->is_said = true;
	for (size_t i = 0; i < config->listen_count; i++) {
		if (announcement->listeners[i] < 0)
			continue; /* it is stopping */
		format_url(&config->listen[i], announcement->listeners[i], of->endpoint.path.p, url,
			   sizeof(url));
		snprintf(line, sizeof(line), "mcpgated: ready: %s%s at %s\n", of->conf.name,
			 announced->text, url);
		if (config->log_format == LOG_FORMAT_JSON)
			LOG(ENDPOINT_READY, LOG_STR("server", of->conf.name), LOG_STR("url", url));
		else
			say(line);
	}
}

/* ---- what is known of a server ---- */

/* Where an object of the log says where it is, server_found says what it is. */
static bool is_awaited(const struct announcement *announcement, size_t server)
{
	const struct server_conf *conf = &announcement->config->servers[server].conf;

	return conf->is_tried && conf->claims.count == 0 &&
	       announcement->config->log_format != LOG_FORMAT_JSON &&
	       !announcement->servers[server].is_found;
}

static void put_shown(struct text_line *line, struct slice text, size_t most)
{
	if (text.n == 0)
		return;
	line_puts(line, line->length > 0 ? " " : "");
	(void)line_put_shown(line, text, most); /* that it was cut is said in it */
}

/* ipc.h: IPC_FOUND */
static void describe(struct announced *announced, int tools, struct slice text)
{
	struct slice name = slice_cut(&text, '\0'), version = slice_cut(&text, '\0');
	char count[32] = "";
	struct text_line line;

	if (tools == IPC_FOUND_FAILING) {
		snprintf(announced->text, sizeof(announced->text),
			 " (fails to start, the log says how)");
		return;
	}
	line_init(&line, sizeof(announced->text) - sizeof(count) - 8);
	put_shown(&line, name, NAME_SHOWN);
	put_shown(&line, version, VERSION_SHOWN);
	if (tools >= 0)
		snprintf(count, sizeof(count), "%s%d tool%s", line.length > 0 ? ", " : "", tools,
			 tools == 1 ? "" : "s");
	if (line.length > 0 || tools >= 0)
		snprintf(announced->text, sizeof(announced->text), " (%.*s%s)", (int)line.length,
			 line.bytes, count);
}

void announcement_take(struct announcement *announcement, const struct ipc_message *message,
		       int text_fd)
{
	char text[IPC_FOUND_BYTES];
	struct announced *announced;
	size_t n;

	if (announcement->config == NULL || message->server >= announcement->config->server_count ||
	    !is_awaited(announcement, message->server))
		return;
	announced = &announcement->servers[message->server];
	n = text_fd >= 0 ? ipc_read_text(text_fd, text, sizeof(text)) : 0;
	announced->is_found = true;
	if (!announced->is_said)
		describe(announced, message->value, slice_of(text, n));
	if (announcement->listeners != NULL && !announced->is_said)
		announce(announcement, message->server);
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
		if (is_late || !is_awaited(announcement, i))
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
