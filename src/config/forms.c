/* SPDX-License-Identifier: Apache-2.0 */
/* Each text by itself. What depends on another option, or on this machine, is not asked here. */
#include "config/forms.h"

#include <ctype.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#include "auth/jwt.h"
#include "auth/signing_key.h"
#include "auth/url.h"
#include "base/mem.h"
#include "base/text.h"
#include "cluster/store_url.h"
#include "config/variables.h"
#include "endpoint/authorization.h"
#include "endpoint/origin.h"
#include "io/address.h"
#include "io/peer.h"
#include "policy/paths.h"
#include "policy/pattern.h"
#include "policy/permissions.h"
#include "policy/sanitize.h"
#include "policy/shown.h"
#include "session/session.h"

#define WELL_KNOWN "/.well-known/"

/*
 * ---- quantity ----
 *
 * Two tables of units, largest first, and one way to read and write with them.
 */

struct unit {
	const char *name;
	uint64_t factor;
};

/* The row that ends a table has the factor 1. */
static const struct unit size_units[] = {
	{ "GiB", 1ull << 30 },
	{ "MiB", 1ull << 20 },
	{ "KiB", 1ull << 10 },
	{ "", 1 },
};

static const struct unit duration_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

static int parse(const struct unit *units, struct slice text, uint64_t *value_r)
{
	size_t digits = 0;
	uint64_t number;

	while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
		digits++;
	if (text_parse_u64(slice_of(text.p, digits), &number) != 0)
		return -1;
	text = slice_of(text.p + digits, text.n - digits);
	for (const struct unit *unit = units;; unit++) {
		if (slice_is_equal(text, slice_str(unit->name)))
			return __builtin_mul_overflow(number, unit->factor, value_r) ? -1 : 0;
		if (unit->factor == 1)
			return -1;
	}
}

static void append(const struct unit *units, uint64_t value, struct buf *out)
{
	const struct unit *unit = units;

	while (unit->factor > 1 && (value == 0 || value % unit->factor != 0))
		unit++;
	CHECK(unit->factor > 0 && value % unit->factor == 0);
	buf_printf(out, "%" PRIu64 "%s", value / unit->factor, unit->name);
}

int quantity_parse_size(struct slice text, uint64_t *bytes_r)
{
	return parse(size_units, text, bytes_r);
}

int quantity_parse_duration(struct slice text, uint64_t *ms_r)
{
	if (slice_is_equal(text, SLICE_LIT("0"))) {
		*ms_r = 0;
		return 0;
	}
	return parse(duration_units, text, ms_r);
}

int quantity_parse_percent(struct slice text, uint64_t *percent_r)
{
	if (text.n == 0 || text.p[text.n - 1] != '%')
		return -1;
	return text_parse_u64(slice_of(text.p, text.n - 1), percent_r);
}

void quantity_append_size(struct buf *out, uint64_t bytes)
{
	append(size_units, bytes, out);
}

void quantity_append_duration(struct buf *out, uint64_t ms)
{
	if (ms == 0)
		buf_append_char(out, '0');
	else
		append(duration_units, ms, out);
}

#define DATE_FORM "%Y-%m-%dT%H:%M:%SZ"
#define DAY_CHARACTERS 10
static const char midnight[] = "T00:00:00Z";

int quantity_parse_date(struct slice text, uint64_t *ms_r)
{
	char whole[QUANTITY_TEXT_MAX];
	char again[QUANTITY_TEXT_MAX];
	struct tm utc = { 0 };
	const char *end;
	time_t seconds;
	int n = snprintf(whole, sizeof(whole), "%.*s%s", SLICE_ARG(text),
			 text.n == DAY_CHARACTERS ? midnight : "");

	if (n < 0 || (size_t)n >= sizeof(whole))
		return -1;
	end = strptime(whole, DATE_FORM, &utc);
	if (end == NULL || *end != '\0')
		return -1;
	seconds = timegm(&utc); /* a day that the month does not have becomes another */
	if (seconds <= 0 || strftime(again, sizeof(again), DATE_FORM, &utc) == 0 ||
	    strcmp(whole, again) != 0) /* strptime is lenient */
		return -1;
	*ms_r = (uint64_t)seconds * 1000;
	return 0;
}

void quantity_format_date(uint64_t ms, char text_r[QUANTITY_TEXT_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(text_r, QUANTITY_TEXT_MAX, DATE_FORM, &utc);
	if (strcmp(text_r + DAY_CHARACTERS, midnight) == 0)
		text_r[DAY_CHARACTERS] = '\0';
}

/*
 * ---- address ----
 *
 * One function per form. Only literal addresses: nothing here waits for a name server.
 */

static int parse_unix(const char *path, struct address *address, struct error *err)
{
	struct sockaddr_un *socket = (struct sockaddr_un *)(void *)&address->socket;
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(socket->sun_path))
		return error_set(err, ERROR_INVALID,
				 "the path after 'unix:' must have 1 to %zu bytes",
				 sizeof(socket->sun_path) - 1);
	address->kind = ADDRESS_UNIX;
	address->is_local = true;
	address->name = path;
	address->socket_size = sizeof(*socket);
	socket->sun_family = AF_UNIX;
	memcpy(socket->sun_path, path, length + 1);
	return 0;
}

static int parse_tcp(const char *text, struct address *address, struct error *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&address->socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&address->socket;
	const char *colon = strrchr(text, ':');
	struct slice host = slice_between(text, colon != NULL ? colon : text);
	int family = text[0] == '[' ? AF_INET6 : AF_INET;
	unsigned char bytes[16];
	uint64_t port;

	if (colon == NULL || text_parse_u64(slice_str(colon + 1), &port) != 0 || port > 65535)
		return error_set(err, ERROR_INVALID,
				 "must end in ':' and a port from 0 to 65535, like 127.0.0.1:8808");
	if (family == AF_INET6 && host.n >= 2 && host.p[host.n - 1] == ']')
		host = slice_of(host.p + 1, host.n - 2);
	else if (slice_is_equal(host, SLICE_LIT("localhost")))
		host = SLICE_LIT("127.0.0.1");
	if (!peer_parse_bytes(family, host, bytes))
		return error_set(
			err, ERROR_INVALID,
			"'%.60s' is not an address to listen on; it must be an IPv4 address, an "
			"IPv6 address in brackets, 'localhost', 'unix:PATH' or 'systemd:NAME'",
			text);
	if (family == AF_INET6) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((in_port_t)port);
		memcpy(&v6->sin6_addr, bytes, sizeof(v6->sin6_addr));
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((in_port_t)port);
		memcpy(&v4->sin_addr, bytes, sizeof(v4->sin_addr));
	}
	address->kind = ADDRESS_TCP;
	address->socket_size = family == AF_INET6 ? sizeof(*v6) : sizeof(*v4);
	address->is_local = peer_is_loopback(peer_of_bytes(family, bytes, 0));
	return 0;
}

int address_parse(const char *text, struct address *address_r, struct error *err)
{
	CHECK(text != NULL);
	*address_r = (struct address){ 0 };
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, address_r, err);
	if (strncmp(text, "systemd:", 8) != 0)
		return parse_tcp(text, address_r, err);
	if (text[8] == '\0')
		return error_set(err, ERROR_INVALID,
				 "a name (FileDescriptorName=) must follow 'systemd:'");
	address_r->kind = ADDRESS_SYSTEMD;
	address_r->name = text + 8;
	return 0;
}

bool address_is_any(const char *address)
{
	return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* ---- the origin that clients are told ---- */

/* Whoever listens on all addresses is not reached by that one. */
static char *with_host(const struct config *config, const char *scheme, const char *address)
{
	const char *port = strrchr(address, ':');

	if (!address_is_any(address))
		return mem_printf("%s://%s", scheme, address);
	if (config->hosts.count > 0)
		return mem_printf("%s://%.*s%s", scheme, SLICE_ARG(config->hosts.items[0]), port);
	return mem_printf("%s://127.0.0.1%s", scheme, port);
}

char *origin_of_listener(const struct config *config, size_t i, int fd)
{
	const struct config_listen *listen = &config->listen[i];
	char address[ADDRESS_TEXT_BYTES];
	const char *port;

	CHECK(i < config->listen_count);
	if (fd >= 0)
		address_format(fd, address);
	else
		snprintf(address, sizeof(address), "%s", listen->address);
	port = strrchr(address, ':');
	if (strncmp(address, "unix:", 5) == 0 || strncmp(address, "systemd:", 8) == 0 ||
	    port == NULL || strcmp(port, ":0") == 0)
		return NULL;
	return with_host(config, listen->tls_count > 0 ? "https" : "http", address);
}

char *origin_find(const struct config *config, const int *listeners)
{
	struct slice public_url = config->frontend.authorization.public_url;
	char *origin = NULL;

	if (public_url.n > 0)
		return mem_dup_slice(public_url);
	for (size_t i = 0; origin == NULL && i < config->listen_count; i++)
		origin = origin_of_listener(config, i, listeners != NULL ? listeners[i] : -1);
	return origin;
}

const char *origin_auth_mode(const struct config *config)
{
	static const char *const names[] = {
		[AUTHORIZATION_NONE] = "none",
		[AUTHORIZATION_ANONYMOUS] = "anonymous",
		[AUTHORIZATION_TOKEN] = "token",
		[AUTHORIZATION_OAUTH] = "oauth",
	};

	CHECK(config->frontend.authorization.mode < ARRAY_LEN(names));
	return names[config->frontend.authorization.mode];
}

/*
 * ---- forms ----
 *
 * One function per form.
 */

#define FIELD_NAME_BYTES_MAX 128
#define FIELD_VALUE_BYTES_MAX 8192

/* Returns 0, or -1 with what must be instead. */
static int want(bool is_good, struct slice text, struct error *err, const char *expected)
{
	return is_good ? 0 : error_set(err, ERROR_INVALID, "%s, not '%.100s'", expected, text.p);
}

/* ---- addresses ---- */

int form_listener(struct slice text, struct error *err)
{
	struct address address;

	return address_parse(text.p, &address, err);
}

/* The admin socket has no password: who may open the file is the operator. threats.md SEC-17 */
int form_admin(struct slice text, struct error *err)
{
	struct address address;

	if (slice_is_equal(text, SLICE_LIT("auto")) || slice_is_equal(text, SLICE_LIT("off")))
		return 0;
	if (slice_has_prefix(text, SLICE_LIT("unix:")))
		return address_parse(text.p, &address, err);
	return error_set(err, ERROR_INVALID,
			 "must be unix:PATH, auto or off, not '%.100s'; to give Prometheus an "
			 "address of its own, use admin.metrics",
			 text.p);
}

int form_metrics(struct slice text, struct error *err)
{
	struct address address;

	if (address_parse(text.p, &address, err) < 0)
		return -1;
	return want(address.is_local, text, err,
		    "must be an address that only this machine can reach, like 127.0.0.1:9464 or "
		    "unix:PATH");
}

/* Who reads it there is not asked who he is, so only this machine may. SEC-17 */
int form_page(struct slice text, struct error *err)
{
	struct address address;

	if (address_parse(text.p, &address, err) < 0)
		return -1;
	if (address.is_local && address.kind == ADDRESS_TCP)
		return 0;
	return error_set(err, ERROR_INVALID,
			 "must be a loopback address, like 127.0.0.1:9090, not '%.100s'; the admin "
			 "socket serves the page without this key",
			 text.p);
}

/* ---- names of ours ---- */

/*
 * `SCHEME://HOST`, with a port or without, and nothing behind. Extensions and applications have schemes
 * of their own. RFC 3986 §3.1
 */
static bool is_origin(const char *text)
{
	static const char others[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
	const char *rest = text + strspn(text, others);

	return isalpha((unsigned char)text[0]) && strncmp(rest, "://", 3) == 0 && rest[3] != '\0' &&
	       strpbrk(rest + 3, "/?#@*\" ") == NULL;
}

/* An origin, and perhaps a path without a slash at its end: what a proxy has in front of ours. */
int form_public_url(struct slice text, struct error *err)
{
	at_end(mem_free) char *origin = mem_dup_slice(origin_of(text));
	bool is_web = slice_has_prefix(text, SLICE_LIT("https://")) ||
		      slice_has_prefix(text, SLICE_LIT("http://"));
	bool is_good = is_web && is_origin(origin) && strpbrk(text.p, "?#*\" ") == NULL &&
		       strstr(text.p + strlen(origin), "//") == NULL && text.p[text.n - 1] != '/';

	return want(is_good, text, err,
		    "must be like https://mcp.example.com or https://example.com/mcp, without a "
		    "slash at the end");
}

int form_origin(struct slice text, struct error *err)
{
	return want(is_origin(text.p), text, err,
		    "must be an origin like https://app.example.com, without a path or '*'");
}

/* Host headers are compared without their port. */
int form_host(struct slice text, struct error *err)
{
	bool is_v6 = text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';
	const char *others = is_v6 ? "/?#@*\" " : "/?#@*\" :[]";

	return want(text.n > 0 && strpbrk(text.p, others) == NULL, text, err,
		    "must be a name or an address without a port, IPv6 in brackets");
}

int form_network(struct slice text, struct error *err)
{
	struct peer_net ignored;

	return want(peer_net_parse(text, &ignored), text, err,
		    "must be an address, a network like 10.0.0.0/8, or unix");
}

/* ---- nodes of a cluster ---- */

static bool consists_of(struct slice text, const char *characters)
{
	return strspn(text.p, characters) == text.n;
}

int form_node(struct slice text, struct error *err)
{
	return want(text.n <= SESSION_NODE_MAX &&
			    consists_of(text, "abcdefghijklmnopqrstuvwxyz0123456789"),
		    text, err, "must be one to eight lower-case letters and digits");
}

int form_store(struct slice text, struct error *err)
{
	struct store_url url;

	return store_url_parse(text.p, &url, err);
}

int form_seal_key(struct slice text, struct error *err)
{
	if (text.n >= 32)
		return 0;
	error_set(err, ERROR_INVALID,
		  "must be at least 32 characters, the output of: openssl rand -base64 32");
	return -1;
}

int form_prefix(struct slice text, struct error *err)
{
	return want(text.n <= 64 && consists_of(text, "abcdefghijklmnopqrstuvwxyz"
						      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"),
		    text, err, "must be at most 64 letters, digits and -_.:");
}

/* ---- where records go ---- */

int form_log_target(struct slice text, struct error *err)
{
	bool is_word = slice_is_equal(text, SLICE_LIT("stderr")) ||
		       slice_is_equal(text, SLICE_LIT("journal"));

	return want(is_word || text.p[0] == '/', text, err,
		    "must be stderr, journal, or the absolute path of a file");
}

int form_audit_target(struct slice text, struct error *err)
{
	static const struct slice lead = SLICE("unix:");
	const struct sockaddr_un *address;
	bool is_good = text.p[0] == '/' || slice_is_equal(text, SLICE_LIT("journal"));

	if (slice_has_prefix(text, lead))
		is_good = text.p[lead.n] == '/' && text.n - lead.n < sizeof(address->sun_path);
	return want(is_good, text, err,
		    "must be the absolute path of a file, journal, or unix:PATH with the absolute "
		    "path of a socket");
}

/* ---- servers ---- */

int form_path(struct slice text, struct error *err)
{
	/* What the daemon itself answers; the last three are what clients of OAuth try. AUTH-FAC-06 */
	static const struct slice reserved =
		SLICE("/healthz /readyz /.well-known /authorize /token /register");
	bool is_reserved = slice_has_prefix(text, SLICE_LIT("/.well-known/"));
	size_t length = 0;

	while (text.p[length] > ' ' && text.p[length] < 0x7f &&
	       strchr("?#%\"\\", text.p[length]) == NULL)
		length++;
	if (text.p[0] != '/' || length < text.n)
		return error_set(
			err, ERROR_INVALID,
			"the path '%.100s' must begin with '/' and have only visible ASCII "
			"characters other than ? # %% \" and backslash",
			text.p);
	/* A slash at the end makes no other path. */
	if (text.n > 1 && text.p[text.n - 1] == '/')
		text.n--;
	if (is_reserved || slice_has_part(reserved, ' ', text))
		return error_set(err, ERROR_INVALID,
				 "the path '%.*s' is reserved for the daemon itself",
				 (int)(text.n < 100 ? text.n : 100), text.p);
	return 0;
}

int form_umask(struct slice text, struct error *err)
{
	size_t digits = strspn(text.p, "01234567");

	return want(digits == text.n && digits <= 4 && (digits < 4 || text.p[0] == '0'), text, err,
		    "must be up to four octal digits like \"0077\"");
}

int form_without_claims(struct slice text, struct error *err)
{
	if (!claim_is_in(text.p))
		return 0;
	return error_set(err, ERROR_INVALID,
			 "claims of the caller (${claim:…}) can only be in env and headers");
}

/* Paths are compared by their names (listed_path.h), in which `..` would hide where they lead. */
int form_sandbox_path(struct slice text, struct error *err)
{
	bool is_absolute = text.p[0] == '/';
	struct slice rest = text;

	while (is_absolute && rest.p != NULL && rest.n > 0)
		if (slice_is_equal(slice_cut(&rest, '/'), SLICE_LIT("..")))
			return want(false, text, err, "must be a path without '..'");
	return want(is_absolute, text, err, "must be an absolute path");
}

int form_root(struct slice text, struct error *err)
{
	return want(path_is_absolute(text), text, err, "must be an absolute path without '..'");
}

/* ---- tokens ---- */

int form_hash(struct slice text, struct error *err)
{
	unsigned char hash[STATIC_TOKEN_HASH_BYTES];

	if (text_from_hex(text, hash, sizeof(hash)) == 0)
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"must be 64 hexadecimal digits, the output of: printf %%s TOKEN | sha256sum");
}

/* RFC 6749 §3.3; the two that concern the client and its issuer alone are never ours. AUTH-PRM-05 */
int form_scope(struct slice text, struct error *err)
{
	size_t length = 0;

	while (text.p[length] > ' ' && text.p[length] < 0x7f && text.p[length] != '"' &&
	       text.p[length] != '\\')
		length++;
	if (text.n == 0 || length < text.n)
		return error_set(err, ERROR_INVALID,
				 "the scope '%.60s' must have only visible ASCII characters other "
				 "than \" and backslash",
				 text.p);
	if (!slice_is_equal(text, SLICE_LIT("openid")) &&
	    !slice_is_equal(text, SLICE_LIT("offline_access")))
		return 0;
	return error_set(err, ERROR_INVALID,
			 "the scope '%s' says nothing about what a token may do here; remove it",
			 text.p);
}

int form_algorithm(struct slice text, struct error *err)
{
	if (algorithm_find(text) != NULL)
		return 0;
	return error_set(err, ERROR_INVALID,
			 "'%.20s' is not a supported signature algorithm; use RS256, PS256, ES256, "
			 "EdDSA, or RS, PS, ES with 384 or 512",
			 text.p);
}

/*
 * The metadata documents are at /.well-known/NAME behind the origin and before the path of the issuer
 * (RFC 8414), or behind all of it (OpenID): what is left is the issuer.
 */
static int refuse_document(struct slice text, const char *place, struct error *err)
{
	const char *name = place + strlen(WELL_KNOWN);
	const char *path = name + strcspn(name, "/");

	return error_set(err, ERROR_INVALID,
			 "is the address of a document of the issuer; write the issuer itself: "
			 "%.*s%s",
			 (int)(place - text.p), text.p, path);
}

/* AUTH-CFG-01 */
int form_issuer_url(struct slice text, struct error *err)
{
	return url_check_ours(text, err);
}

int form_issuer(struct slice text, struct error *err)
{
	const char *place = strstr(text.p, WELL_KNOWN);

	return place != NULL ? refuse_document(text, place, err) : form_issuer_url(text, err);
}

int form_signing_key(struct slice text, struct error *err)
{
	struct signing_key_public public;
	int result = signing_key_publish(text.p, &public, err);

	signing_key_public_fini(&public);
	return result;
}

/* ---- headers ---- */

/* RFC 9110 s5.6.2 */
static bool is_field_name(const char *name)
{
	return slice_is_name(slice_str(name), "!#$%&'*+-.^_`|~") &&
	       strlen(name) <= FIELD_NAME_BYTES_MAX;
}

/* RFC 9110 s5.5: what is seen, spaces and tabs. */
static bool is_field_value(const char *value)
{
	size_t length = strlen(value);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)value[i] < ' ' ? value[i] != '\t' : value[i] == 0x7f)
			return false;
	return length > 0 && length <= FIELD_VALUE_BYTES_MAX;
}

/* What we say ourselves, and what is about the connection. */
static bool is_our_field(struct slice name)
{
	static const struct slice names = SLICE(
		"accept connection content-encoding content-length content-type expect host te "
		"proxy-authorization trailer transfer-encoding upgrade");
	struct slice rest = names;

	while (rest.n > 0)
		if (slice_is_equal_nocase(slice_cut(&rest, ' '), name))
			return true;
	return false;
}

int form_header_name(struct slice text, struct error *err)
{
	if (is_field_name(text.p) && !is_our_field(text))
		return 0;
	return error_set(err, ERROR_INVALID,
			 is_field_name(text.p) ? "'%.60s' cannot be set here" :
						 "'%.60s' cannot be the name of a header field",
			 text.p);
}

int form_server_header(struct slice text, struct error *err)
{
	static const struct slice ours = SLICE("mcp-");

	/* What these say follows from each message. */
	if ((text.n >= ours.n && slice_is_equal_nocase(slice_of(text.p, ours.n), ours)) ||
	    slice_is_equal_nocase(text, SLICE_LIT("last-event-id")))
		return error_set(err, ERROR_INVALID, "'%.60s' cannot be set here", text.p);
	return form_header_name(text, err);
}

/* A socket, and behind # the path of a request. */
static int form_socket_url(struct slice text, struct error *err)
{
	struct slice path =
		slice_of(text.p + strlen(URL_OF_SOCKET), text.n - strlen(URL_OF_SOCKET));
	struct slice file = slice_cut(&path, '#');
	at_end(buf_fini) struct buf request = { 0 };
	const struct sockaddr_un *address;
	struct url url;

	buf_append_str(&request, "http://localhost");
	buf_append_slice(&request, path);
	return want(file.n > 1 && file.p[0] == '/' && file.n < sizeof(address->sun_path) &&
			    path.n > 0 && path.p[0] == '/' &&
			    url_parse(buf_slice(&request), &url) == 0,
		    text, err,
		    "must be the absolute path of a socket, and behind # that of requests, like "
		    "unix:///run/wiki.sock#/mcp");
}

int form_server_url(struct slice text, struct error *err)
{
	struct url url;

	if (form_without_claims(text, err) < 0)
		return -1;
	if (slice_has_prefix(text, SLICE_LIT(URL_OF_SOCKET)))
		return form_socket_url(text, err);
	if (url_parse(text, &url) < 0 || !url_is_http(&url) ||
	    (url.tail.n > 0 && memchr(url.tail.p, '#', url.tail.n) != NULL))
		return error_set(err, ERROR_INVALID,
				 "must be an https or http URL without a user name and a "
				 "fragment, like https://wiki.example.com/mcp");
	return 0;
}

int form_proxy(struct slice text, struct error *err)
{
	struct url url;

	if (url_parse(text, &url) == 0 && !url_is_https(&url) && url_is_http(&url) &&
	    url.tail.n == 0 && url.port.n > 0)
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"must be an http URL of a host and a port, like http://proxy.example.com:3128");
}

/* Of a value nothing is told: it is secret. */
int form_header_value(struct slice text, struct error *err)
{
	if (is_field_value(text.p))
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"cannot be the value of a header field: it is empty, longer than 8 KiB, or "
		"has control characters, like a line break");
}

/* ---- names and patterns ---- */

static int check_name(enum permission_kind kind, const char *what, struct slice name,
		      struct error *err)
{
	at_end(buf_fini) struct buf folded = { 0 };
	const char *why = permission_fold(kind, name, &folded);

	return why == NULL ? 0 : error_set(err, ERROR_INVALID, "the name of the %s %s", what, why);
}

int form_tool(struct slice text, struct error *err)
{
	return check_name(PERMISSION_TOOL, "tool", text, err);
}

int form_prompt(struct slice text, struct error *err)
{
	return check_name(PERMISSION_PROMPT, "prompt", text, err);
}

int form_one_name(struct slice text, struct error *err)
{
	if (memchr(text.p, '*', text.n) != NULL)
		return error_set(err, ERROR_INVALID,
				 "must be one name: no * stands for others here");
	return form_tool(text, err);
}

int form_shown_name(struct slice text, struct error *err)
{
	if (slice_is_name(text, "_-.") && text.n <= SHOWN_NAME_MAX)
		return 0;
	return error_set(err, ERROR_INVALID,
			 "must be 1 to %d letters (a to z), digits, '_', '-' and '.'",
			 SHOWN_NAME_MAX);
}

int form_resource(struct slice text, struct error *err)
{
	return check_name(PERMISSION_RESOURCE, "resource", text, err);
}

int form_template(struct slice text, struct error *err)
{
	return check_name(PERMISSION_TEMPLATE, "template", text, err);
}

/* Folded like the name of a tool. */
int form_member(struct slice text, struct error *err)
{
	return check_name(PERMISSION_TOOL, "member", text, err);
}

int form_expression(struct slice text, struct error *err)
{
	struct error why;
	at_end(pattern_free) struct pattern *pattern = pattern_new(text, &why);

	if (pattern == NULL)
		return error_set(err, ERROR_INVALID, "is not a usable regular expression: %s",
				 why.text);
	return 0;
}

int form_redaction(struct slice text, struct error *err)
{
	at_end(redact_free) struct redact_rules rules = { NULL, 0 };
	struct error why;
	int result = redact_add(&rules, text, &why);

	return result == 0 ? 0 :
			     error_set(err, ERROR_INVALID, "is not a usable pattern: %s", why.text);
}
