/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/curl_handle.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"
#include "remote/exchange.h"

#define PEM_BYTES_MAX (4 * 1024 * 1024)

void die(const char *text)
{
	dprintf(STDERR_FILENO, "mcpgated-remote: %s\n", text);
	_exit(1);
}

/* Everything in the environment is a field; what a sanitizer is told is not. */
static void take_fields(struct remote *remote)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		char *value = strchr(*entry, '=');

		if (value == NULL)
			continue;
		*value++ = '\0';
		if (strstr(*entry, "SAN_OPTIONS") != NULL)
			continue;
		/* libcurl would leave it out, and the server take the caller for somebody else. */
		if (slice_trim(slice_str(value)).n == 0)
			die("the value of a header field is blank");
		curl_handle_add_field(&remote->fields, *entry, value);
		explicit_bzero(value, strlen(value));
	}
	clearenv();
}

static void read_file(const char *path, struct buf *out)
{
	const struct listed_writers writers = { .running = NULL };
	struct error err;

	if (file_read(path, &writers, PEM_BYTES_MAX, out, NULL, &err) < 0)
		die(mem_printf("%s: %s", path, err.text));
}

static void take_argument(struct remote *remote, int option, char *value)
{
	uint64_t most = 0;

	switch (option) {
	case 'a':
		read_file(value, &remote->ca);
		return;
	case 't':
		remote->gets_credential = true;
		buf_append_str(&remote->no_credential, "none has been got");
		return;
	case 'c':
		read_file(value, &remote->certificate);
		return;
	case 'f':
		remote->is_for_client = true;
		return;
	case 'k':
		read_file(value, &remote->key);
		return;
	case 'm':
		if (text_parse_u64(slice_str(value), &most) < 0)
			break;
		remote->most = (size_t)most;
		return;
	case 'p':
		remote->address_filter.private = true;
		return;
	case 's':
		remote->socket = value;
		return;
	case 'x':
		remote->proxy = value;
		return;
	default:
		break;
	}
	die("can only be started by mcpgated");
}

/* unix:///run/wiki.sock#/mcp is a socket, and a URL whose host does not matter. */
static char *take_url(struct remote *remote, const char *text)
{
	const char *path = strchr(text, '#');

	if (!slice_has_prefix(slice_str(text), SLICE_LIT(URL_OF_SOCKET)) || path == NULL)
		return mem_strdup(text);
	text += strlen(URL_OF_SOCKET);
	remote->socket = mem_printf("%.*s", (int)(path - text), text);
	return mem_printf("http://localhost%s", path + 1);
}

static void take_arguments(struct remote *remote, int argc, char **argv)
{
	static const struct option options[] = {
		{ "allow-private", no_argument, NULL, 'p' },
		{ "ca", required_argument, NULL, 'a' },
		{ "certificate", required_argument, NULL, 'c' },
		{ "credential", no_argument, NULL, 't' },
		{ "for-client", no_argument, NULL, 'f' },
		{ "key", required_argument, NULL, 'k' },
		{ "message-bytes", required_argument, NULL, 'm' },
		{ "proxy", required_argument, NULL, 'x' },
		{ "socket", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
		take_argument(remote, option, optarg);
	if (optind != argc - 1)
		die("can only be started by mcpgated");
	remote->url = take_url(remote, argv[optind]);
	if (url_parse(slice_str(remote->url), &remote->parts) < 0)
		die("can only be started by mcpgated");
	remote->address_filter.loopback = url_is_loopback(&remote->parts);
}

/* That of all connections. A proxy is the operator's: it may be anywhere but where nothing may be. */
static uint16_t find_port(struct remote *remote)
{
	struct url url = remote->parts;
	uint64_t port;

	if (remote->proxy != NULL) {
		remote->address_filter.loopback = remote->address_filter.private = true;
		CHECK(url_parse(slice_str(remote->proxy), &url) == 0);
	}
	if (text_parse_u64(url_port(&url), &port) < 0 || port == 0 || port > 65535)
		die("the port of the url is not one");
	return (uint16_t)port;
}

void arguments_take(struct remote *remote, int argc, char **argv)
{
	take_fields(remote);
	take_arguments(remote, argc, argv);
	remote->port = find_port(remote);
	CHECK(remote->port != 0);
}
