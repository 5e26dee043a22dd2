/* SPDX-License-Identifier: Apache-2.0 */
/* One function per form. */
#include "config/forms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "auth/algorithm.h"
#include "auth/url.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/address.h"
#include "config/variables.h"
#include "endpoint/authorization.h"
#include "endpoint/origin.h"
#include "io/peer.h"
#include "policy/paths.h"
#include "policy/pattern.h"
#include "policy/permissions.h"
#include "policy/redact.h"

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
	char *origin = mem_dup_slice(origin_of(text));
	bool is_web = slice_has_prefix(text, SLICE_LIT("https://")) ||
		      slice_has_prefix(text, SLICE_LIT("http://"));
	bool is_good = is_web && is_origin(origin) && strpbrk(text.p, "?#*\" ") == NULL &&
		       strstr(text.p + strlen(origin), "//") == NULL && text.p[text.n - 1] != '/';

	free(origin);
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
	static const struct slice reserved[] = { SLICE("/healthz"),     SLICE("/readyz"),
						 SLICE("/.well-known"), SLICE("/authorize"),
						 SLICE("/token"),       SLICE("/register") };
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
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		is_reserved |= slice_is_equal(text, reserved[i]);
	if (is_reserved)
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
	unsigned char hash[AUTHORIZATION_HASH_BYTES];

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

/* AUTH-CFG-01 */
int form_issuer_url(struct slice text, struct error *err)
{
	return url_check_ours(text, err);
}

/* ---- headers ---- */

/* RFC 9110 s5.6.2 */
static bool is_field_name(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length <= FIELD_NAME_BYTES_MAX &&
	       strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length;
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
		"trailer transfer-encoding upgrade");
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

int form_server_url(struct slice text, struct error *err)
{
	struct url url;

	if (form_without_claims(text, err) < 0)
		return -1;
	if (url_parse(text, &url) < 0 || !url_is_http(&url) ||
	    (url.tail.n > 0 && memchr(url.tail.p, '#', url.tail.n) != NULL))
		return error_set(err, ERROR_INVALID,
				 "must be an https or http URL without a user name and a "
				 "fragment, like https://wiki.example.com/mcp");
	return 0;
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
	struct buf folded = { 0 };
	const char *why = permission_fold(kind, name, &folded);

	buf_fini(&folded);
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
	struct pattern *pattern = pattern_new(text, &why);

	if (pattern == NULL)
		return error_set(err, ERROR_INVALID, "is not a usable regular expression: %s",
				 why.text);
	pattern_free(&pattern);
	return 0;
}

int form_redaction(struct slice text, struct error *err)
{
	struct redact_rules rules = { NULL, 0 };
	struct error why;
	int result = redact_add(&rules, text, &why);

	redact_free(&rules);
	return result == 0 ? 0 :
			     error_set(err, ERROR_INVALID, "is not a usable pattern: %s", why.text);
}
