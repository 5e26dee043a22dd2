/* SPDX-License-Identifier: Apache-2.0 */
/* The option table. Order is that of the sample file and the manual page. */
#include "config/options.h"

#include "base/check.h"
#include "config/config.h"
#include "config/forms.h"
#include "obs/log.h"

/* A row: the path, the type, the field, and whatever else of struct option is to be said. */
#define OPTION(path_, type_, field_, ...)                                  \
	{                                                                  \
		.path = path_, .type = OPTION_##type_, field_, __VA_ARGS__ \
	}
#define SECTION(path_, ...) OPTION(path_, SECTION, NO_FIELD, __VA_ARGS__)
#define GROUP(path_, ...) OPTION(path_, GROUP, NO_FIELD, __VA_ARGS__)

#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
/* A pointer to records, and their number behind it. */
#define LIST(type, member) .offset = offsetof(type, member), .size = sizeof(void *) + sizeof(size_t)
#define NO_FIELD .size = 0 /* of the whole record */
#define TOP(member) FIELD(struct config, member)
#define LISTEN(member) FIELD(struct config_listen, member)
#define TLS(member) FIELD(struct config_tls, member)
#define TOKEN(member) FIELD(struct static_token, member)
#define ROLE(member) FIELD(struct role, member)
#define DENIAL(member) FIELD(struct config_denial, member)
#define TOOL_LIMIT(member) FIELD(struct tool_limit, member)
#define ISSUER(member) FIELD(struct verifier_issuer_conf, member)
#define AUTH(member) TOP(frontend.authorization.member)
#define SERVER(member) FIELD(struct config_server, member)

#define RULE .is_rule = true
#define FOR_COMMAND .is_for_command = true
#define REQUIRED .is_required = true, .otherwise = "must be given"
#define RECORDS(path_, type) .records = path_, .record_size = sizeof(type)
#define CHOICES(...)                              \
	.choices = (const struct option_choice[]) \
	{                                         \
		__VA_ARGS__,                      \
		{                                 \
			NULL, 0                   \
		}                                 \
	}
#define RELATIONS(...)                                \
	.relations = (const struct option_relation[]) \
	{                                             \
		__VA_ARGS__,                          \
		{                                     \
			.kind = RELATION_NONE         \
		}                                     \
	}
#define RELATION(kind_, ...)                                   \
	{                                                      \
		.kind = RELATION_##kind_, .other = __VA_ARGS__ \
	}
#define NEEDS(...) RELATION(NEEDS, __VA_ARGS__)
#define COMPLETE(...) RELATION(COMPLETE, __VA_ARGS__)
#define EXCLUDES(...) RELATION(EXCLUDES, __VA_ARGS__)
#define AT_MOST(...) RELATION(AT_MOST, __VA_ARGS__)
#define IDLE_UNLESS(...) RELATION(IDLE_UNLESS, __VA_ARGS__)
#define NEEDS_TOKENS \
	RELATIONS(NEEDS("auth.mode", .words = "token oauth", .why = "no token is required here"))

#define CREDENTIAL(member) SERVER(credential.member)
#define CREDENTIAL_AT(member) SERVER(credential.at.member)

/* Who we are at an authorization server: of a struct verifier_issuer_conf. */
#define CLIENT_AT(path_, FIELD_, ...)                                                                                            \
	OPTION(path_ ".client_id", TEXT, FIELD_(client_id), .example = "mcpgated",                                               \
	       .help = "The gateway's client id at the issuer.", __VA_ARGS__),                                                   \
		OPTION(path_ ".client_secret", SECRET, FIELD_(client_secret),                                                    \
		       .example = "{file: /etc/mcpgated/client.secret}", .otherwise = "none",                                    \
		       RELATIONS(COMPLETE(path_ ".client_id")),                                                                  \
		       .help = "The gateway's client secret at the issuer."),                                                    \
		OPTION(path_ ".auth_method", ENUM, FIELD_(auth_method),                                                          \
		       .def = "client_secret_basic",                                                                             \
		       CHOICES({ "client_secret_basic", CLIENT_SECRET_BASIC },                                                   \
			       { "client_secret_post", CLIENT_SECRET_POST },                                                     \
			       { "private_key_jwt", CLIENT_PRIVATE_KEY_JWT }),                                                   \
		       .help = "How the gateway authenticates: with client_secret in the Authorization header or in "            \
			       "the form, or with a JWT signed with client_key (RFC 7523)."),                                    \
		OPTION(path_ ".client_key", SECRET, FIELD_(client_key),                                                          \
		       .example = "{file: /etc/mcpgated/client.key}", .otherwise = "none",                                       \
		       RELATIONS(COMPLETE(path_ ".client_id")),                                                                  \
		       .help = "For private_key_jwt, in place of client_secret: the gateway's private key in PEM form, without " \
			       "a passphrase. An RSA key signs with RS256; an EC key with ES256, ES384 or ES512, depending on "  \
			       "its curve; an Ed25519 key with EdDSA."),                                                         \
		OPTION(path_ ".client_key_id", TEXT, FIELD_(client_key_id),                                                      \
		       .example = "mcpgated-1", .otherwise = "no kid is sent",                                                   \
		       .help = "The kid under which the issuer knows that key.")
/* How it is reached. */
#define REACHED_AT(path_, FIELD_)                                                                                               \
	OPTION(path_ ".ca", TEXT, FIELD_(ca_file), .reader = OPTION_FOR_FETCHER,                                                \
	       .example = "/etc/mcpgated/id-ca.crt", .otherwise = "the system's",                                               \
	       .help = "PEM file with the CA certificates that the issuer's TLS certificate may be issued by. Read at start."), \
		OPTION(path_ ".allow_private", BOOL, FIELD_(allow_private), .def = "false",                                     \
		       .help = "The issuer's addresses may be loopback or private ones. Link-local addresses are never allowed.")

#define MAY(path_, KIND, list, ...)          \
	OPTION("servers.NAME." path_, TEXTS, \
	       SERVER(conf.permissions.kinds[PERMISSION_##KIND].list), RULE, __VA_ARGS__)
#define ROLE_MAY(path_, KIND, list, ...)                                        \
	OPTION("roles.NAME." path_, LISTS, ROLE(kinds[PERMISSION_##KIND].list), \
	       .otherwise = "none", __VA_ARGS__)
#define SHOWN(path_, KIND, list, ...)                                                          \
	OPTION("servers.NAME." path_, NAMED, SERVER(conf.shown.kinds[PERMISSION_##KIND].list), \
	       RULE, .name_form = form_one_name, .otherwise = "none", __VA_ARGS__)
#define OF_URL(key_, field, ...)                                                      \
	OPTION("servers.NAME." key_, TEXT, SERVER(field), .reader = OPTION_FOR_CHILD, \
	       RELATIONS(COMPLETE("servers.NAME.url")), __VA_ARGS__)
#define CARD(path_)                                                                             \
	OPTION(path_, OBJECT, SERVER(endpoint.card), RULE,                                      \
	       CHOICES({ "title", 0 }, { "description", 0 }, { "version", 0 },                  \
		       { "websiteUrl", 0 }),                                                    \
	       RELATIONS(NEEDS("public_url", .why = "the card names it")), .otherwise = "none", \
	       .example = "{description: The team's wiki., version: 1.0.0}",                    \
	       .help = "A public server card at the path and /server-card (SEP-2127): a JSON "  \
		       "document that says what it is and where, to whoever asks.")
/* How often something may be called, in a struct rate. */
#define RATE(path_, field_, rate_, ...)                                                              \
	OPTION(path_ ".calls", COUNT, field_(rate_.calls), __VA_ARGS__, .min = "1",                  \
	       .max = "1000000", .example = "120", .otherwise = "any number",                        \
	       .help = "Number of calls per period (per)."),                                         \
		OPTION(path_ ".per", DURATION, field_(rate_.per_ms), __VA_ARGS__, .def = "1m",       \
		       .min = "1s", .max = "1d", RELATIONS(IDLE_UNLESS(path_ ".calls")),             \
		       .help = "See calls."),                                                        \
		OPTION(path_ ".burst", COUNT, field_(rate_.burst), __VA_ARGS__, .min = "1",          \
		       .max = "1000000", .example = "30", .otherwise = "as many as calls",           \
		       RELATIONS(IDLE_UNLESS(path_ ".calls")),                                       \
		       .help = "How many may come at once after a pause; further ones are spread."), \
		OPTION(path_ ".shared", BOOL, field_(rate_.is_shared), __VA_ARGS__,                  \
		       .def = "false", RELATIONS(IDLE_UNLESS("cluster.seal_key")),                   \
		       .help = "In a cluster: calls by way of other nodes count, too, within a second.")

const struct option options_table[] = {
	OPTION("include", TEXTS, TOP(include), .def = "[]", .example = "[conf.d/*.yaml]",
	       .help = "More files, by path or pattern, relative to the directory of this file; the matches of a pattern "
		       "are sorted by name. They may contain servers, endpoints, auth.tokens and auth.issuers, which are "
		       "added to those here; a duplicate name is an error. Like this file, only their owner may have write access."),
	OPTION("listen", GROUP, LIST(struct config, listen),
	       RECORDS(OPTIONS_LISTEN, struct config_listen), .list = OPTION_LIST_NEVER_EMPTY,
	       .help = "Where clients connect."),
	OPTION("listen[].address", TEXT, LISTEN(address), .def = "127.0.0.1:8808",
	       .form = form_listener,
	       .help = "IPV4:PORT, [IPV6]:PORT, localhost:PORT, unix:PATH, or systemd:NAME for a socket opened by systemd. "
		       "Port 0 picks a free port. PATH must not be in a directory that a sandboxed server may write to."),
	OPTION("listen[].tls", GROUP, LIST(struct config_listen, tls),
	       RECORDS(OPTIONS_TLS, struct config_tls), .list = OPTION_LIST_OR_ONE,
	       .example = "{certificate: /etc/mcpgated/tls.crt, key: /etc/mcpgated/tls.key}",
	       .help = "Enables TLS on this address, with one certificate or a list of several. With several, a client gets "
		       "the first one that matches the name it asks for, or else the first in the list. The files are read "
		       "again on SIGHUP (systemctl reload)."),
	OPTION("listen[].tls[].certificate", TEXT, TLS(certificate), REQUIRED,
	       .example = "/etc/mcpgated/tls.crt",
	       .help = "Absolute path of a PEM file with the certificate, followed by its intermediate certificates."),
	OPTION("listen[].tls[].key", TEXT, TLS(key), REQUIRED, .example = "/etc/mcpgated/tls.key",
	       .help = "Absolute path of a PEM file with the certificate's private key, without a passphrase. P-256 is fastest."),
	OPTION("listen[].tls[].client_ca", TEXT, TLS(client_ca),
	       .example = "/etc/mcpgated/clients.crt", .otherwise = "clients need no certificate",
	       .help = "Absolute path of a PEM file with CA certificates. Only clients with a certificate issued by one of "
		       "them are accepted. In a list, set it in the first entry only; it applies to the whole address."),
	OPTION("listen[].tls[].min_version", ENUM, TLS(is_only_13), .def = "\"1.2\"",
	       CHOICES({ "1.2", false }, { "1.3", true }),
	       .help = "The oldest TLS version that clients may use. In a list, set it in the "
		       "first entry only; it applies to the whole address."),
	OPTION("listen[].plaintext", BOOL, LISTEN(plaintext), .def = "false",
	       RELATIONS(EXCLUDES("listen[].tls")),
	       .help = "Allows an address that other machines can reach without encryption, for use behind a TLS proxy."),
	OPTION("listen[].proxy_protocol", BOOL, LISTEN(proxy_protocol), .def = "false",
	       .help = "Every connection must begin with a PROXY protocol header, version 1 or 2, and counts as coming from "
		       "the client that the header names. Make sure that only the proxy can connect."),

	SECTION("admin", .help = "What the operator connects to."),
	OPTION("admin.address", TEXT, TOP(admin_address), .def = "auto", .form = form_admin,
	       .help = "unix:PATH: the socket for mcpgatectl, accessible only to the daemon's user and root. auto: "
		       "admin.sock in the runtime directory that systemd made for the daemon (/run/mcpgated), else in "
		       "mcpgated/ below XDG_RUNTIME_DIR, else, for root, in /run/mcpgated; if there is none of these, there "
		       "is no admin socket; if another daemon has it, it is admin-PID.sock beside that. off: no admin socket."),
	OPTION("admin.metrics", TEXT, TOP(admin_metrics), .form = form_metrics,
	       .example = "127.0.0.1:9464", .otherwise = "none",
	       .help = "An additional address, loopback or unix:PATH, that answers only GET /metrics, for Prometheus."),
	OPTION("admin.page", TEXT, TOP(admin_page), .form = form_page, .example = "127.0.0.1:9090",
	       .otherwise = "none",
	       .help = "An additional loopback address for the status page. Every program on this machine can read there "
		       "what the page shows (servers, callers, the standard error of servers). The admin socket serves the "
		       "page as well, to those who may open it."),
	OPTION("admin.page_token", TEXT, TOP(admin_page_token), .form = form_hash, .example = "HEX",
	       .otherwise = "the page at admin.page is read-only",
	       RELATIONS(NEEDS("admin.page", .why = "it is for that page")),
	       .help = "The SHA-256 of a token in hexadecimal, as printed by mcpgatectl token new. Whoever enters the token "
		       "on that page may end sessions, restart servers, decide on pins and stop the daemon."),

	OPTION("public_url", SLICE, AUTH(public_url), .form = form_public_url,
	       .example = "https://mcp.example.com", .otherwise = "none",
	       .help = "Where clients reach the gateway if not at a listen address: an origin, plus a path if a proxy "
		       "publishes the gateway below one, like https://example.com/gw. The proxy may strip that path or keep "
		       "it."),
	OPTION("hosts", TEXTS, TOP(hosts), .def = "[]", .form = form_host,
	       .help = "More names to accept in the Host header, without port. Loopback names, "
		       "the listen addresses and the host of public_url are always accepted."),
	OPTION("origins", TEXTS, TOP(frontend.origins), .def = "[]", .form = form_origin,
	       .help = "Web origins whose pages may send requests, like https://app.example.com, http://localhost:6274 or "
		       "chrome-extension://ID. Always accepted are pages from the host and port that the request is sent "
		       "to, pages from public_url, and requests without an Origin header. Another port is another origin, "
		       "also on this machine."),
	OPTION("trusted_proxies", TEXTS, TOP(trusted_proxies), .def = "[]", .form = form_network,
	       .help = "Proxies whose X-Forwarded-For header, or Forwarded if that is missing, identifies the client: "
		       "addresses, networks like 10.0.0.0/8, or unix for connections over a unix socket. A proxy that sets "
		       "only Forwarded must remove X-Forwarded-For. From anyone else these headers are ignored. A proxy on "
		       "another machine that is not listed gets the share of a single address (limits.connections)."),

	SECTION("auth", .help = "Who may call."),
	OPTION("auth.mode", ENUM, AUTH(mode), .def = "none",
	       CHOICES({ "none", AUTHORIZATION_NONE }, { "token", AUTHORIZATION_TOKEN },
		       { "oauth", AUTHORIZATION_OAUTH }, { "anonymous", AUTHORIZATION_ANONYMOUS }),
	       RELATIONS(
		       NEEDS("auth.tokens", .when = "token"),
		       NEEDS("public_url", .when = "oauth",
			     .why = "the names by which issuers know the servers are made from it"),
		       NEEDS("auth.issuers", .when = "oauth")),
	       .help = "none: anyone who can connect; enough for loopback and unix sockets. token: callers with one of "
		       "auth.tokens. oauth: callers with a token from one of auth.issuers, or with one of auth.tokens; "
		       "requires public_url. anonymous: anyone, stated explicitly, for an address that other machines can "
		       "reach."),
	OPTION("auth.issuers", RECORDS, AUTH(issuers),
	       RECORDS(OPTIONS_ISSUER, struct verifier_issuer_conf),
	       .example = "[{issuer: https://id.example.com}]", .otherwise = "none",
	       RELATIONS(NEEDS("auth.mode", .words = "oauth",
			       .why = "issuers are not used otherwise")),
	       .help = "Authorization servers whose tokens are accepted. Put the preferred one "
		       "first: most clients use only that one."),
	OPTION("auth.issuers[].issuer", TEXT, ISSUER(issuer), .form = form_issuer, REQUIRED,
	       .example = "https://id.example.com",
	       .help = "Its issuer identifier, byte for byte as in its metadata and in the iss "
		       "claim of its tokens; https, or http to a loopback address."),
	OPTION("auth.issuers[].audience", TEXTS, ISSUER(audience), .def = "[]",
	       .help = "Further values accepted in aud besides the server's own resource "
		       "(public_url and path), for issuers that cannot be told the resource."),
	OPTION("auth.issuers[].audience_claim", ENUM, ISSUER(client_is_audience), .def = "aud",
	       CHOICES({ "aud", false }, { "client_id", true }),
	       .help = "client_id: in a token without aud, the client id is used as its audience "
		       "and must be listed in audience; for issuers that do not set aud (Cognito)."),
	OPTION("auth.issuers[].algorithms", TEXTS, ISSUER(algorithms),
	       .def = "[RS256, PS256, ES256, EdDSA]", .form = form_algorithm,
	       .help = "Accepted signature algorithms: RS256, PS256, ES256, EdDSA, and RS, PS and ES with 384 and 512."),
	OPTION("auth.issuers[].jwks_uri", TEXT, ISSUER(jwks_uri), .form = form_issuer_url,
	       .example = "https://id.example.com/jwks",
	       .otherwise = "what the issuer's metadata says",
	       .help = "Where its keys are published."),
	OPTION("auth.issuers[].jwks_interval", DURATION, ISSUER(jwks_interval_ms), .def = "10s",
	       .min = "1s", .max = "1h",
	       .help = "A token signed with an unknown key triggers a fetch of the keys, at most once in this time."),
	OPTION("auth.issuers[].leeway", DURATION, ISSUER(leeway_ms), .def = "60s", .min = "0",
	       .max = "5m", .help = "Allowed clock difference to the issuer."),
	OPTION("auth.issuers[].max_lifetime", DURATION, ISSUER(max_lifetime_ms), .def = "0",
	       .min = "0", .max = "366d",
	       .help = "Tokens with a longer lifetime, from iat to exp, are refused. 0: no limit."),
	OPTION("auth.issuers[].required_claims", LISTS, ISSUER(required_claims),
	       .example = "{tid: [9188040d-6c67-4c5b-b112-36a304b66dad], groups: [mcp, admins]}",
	       .otherwise = "none",
	       .help = "Claims that its tokens must have, each with one of the given values, byte for byte; a claim that is "
		       "a list must contain one of them. Other tokens get 403."),
	SECTION("auth.issuers[].introspection",
		.help = "Asks the issuer about tokens that are not JWTs (RFC 7662); disabled without client_id."),
	OPTION("auth.issuers[].introspection.endpoint", TEXT, ISSUER(introspection_endpoint),
	       .form = form_issuer_url, .example = "https://id.example.com/introspect",
	       .otherwise = "what the issuer's metadata says",
	       RELATIONS(COMPLETE("auth.issuers[].introspection.client_id")),
	       .help = "The introspection endpoint."),
	CLIENT_AT("auth.issuers[].introspection", ISSUER, .otherwise = "no introspection"),
	OPTION("auth.issuers[].introspection.always", BOOL, ISSUER(introspect_always),
	       .def = "false", RELATIONS(COMPLETE("auth.issuers[].introspection.client_id")),
	       .help = "Introspects JWTs as well, so that revoked ones are detected."),
	OPTION("auth.issuers[].introspection.ttl", DURATION, ISSUER(introspection_ttl_ms),
	       .def = "30s", .min = "1s", .max = "10m",
	       .help = "How long a positive answer is cached; after that the issuer is asked again, also about the tokens "
		       "of open streams. While it does not answer, those streams stay open for ten times as long."),
	REACHED_AT("auth.issuers[]", ISSUER),
	OPTION("auth.initial_scopes", TEXTS, AUTH(initial_scopes), .def = "[]", .form = form_scope,
	       .help = "Scopes that clients are told to request at first, besides those that the "
		       "server needs: some clients cannot request more later."),
	OPTION("auth.bind_client", BOOL, AUTH(binds_client), .def = "true",
	       .help = "true: a session belongs to one person using one client. false: it belongs "
		       "to the person, whatever the client; for issuers whose client ids change."),
	OPTION("auth.dpop", ENUM, AUTH(dpop), .def = "off",
	       CHOICES({ "off", AUTHORIZATION_DPOP_OFF }, { "on", AUTHORIZATION_DPOP_ON },
		       { "required", AUTHORIZATION_DPOP_REQUIRED }),
	       .help = "Tokens bound to a key of the client, with proof of possession in each request (DPoP, RFC 9449). "
		       "off: such tokens are refused. on: they are accepted. required: only they are accepted."),
	OPTION("auth.assertion_key", SECRET, TOP(assertion_key), .form = form_signing_key,
	       .example = "{file: /etc/mcpgated/assertion.pem}", .otherwise = "nothing is signed",
	       RELATIONS(NEEDS("public_url", .why = "it says whose the key is")),
	       .help = "The gateway's private key, RSA or EC (P-256), in PEM form, without a passphrase: it signs what "
		       "servers are told of callers (servers.NAME.auth.grant: assertion). Its public part is at "
		       "/.well-known/jwks.json; after a reload with another key, the old one stays there for as long as "
		       "tokens that it signed are good."),
	OPTION("auth.metadata_facade", ENUM, TOP(frontend.metadata.facade), .def = "auto",
	       CHOICES({ "auto", METADATA_FACADE_AUTO }, { "on", METADATA_FACADE_ON },
		       { "off", METADATA_FACADE_OFF }),
	       .help = "For clients of 2025-03-26, which look for the issuer's metadata at the "
		       "gateway: serves a copy of it. auto: if there is exactly one issuer."),
	SECTION("auth.registration_facade",
		.help = "For issuers without client registration: POST /register answers with one client that was created "
			"at the issuer by hand, without a secret. The issuer must know its exact redirect URIs."),
	OPTION("auth.registration_facade.client_id", SLICE, TOP(frontend.metadata.client_id),
	       .example = "mcp-public", .otherwise = "no registration",
	       .help = "The id of that client."),
	OPTION("auth.registration_facade.redirect_uris", TEXTS,
	       TOP(frontend.metadata.redirect_uris), .def = "[]",
	       RELATIONS(COMPLETE("auth.registration_facade.client_id")),
	       .help = "Redirect URIs that clients may register besides http to a loopback address on any port."),
	OPTION("auth.tokens", RECORDS, AUTH(tokens), .reader = OPTION_FOR_GATEWAY,
	       RECORDS(OPTIONS_TOKEN, struct static_token),
	       .example = "[{name: ci, sha256: HEX, expires: 2027-01-31}]", .otherwise = "none",
	       RELATIONS(NEEDS("auth.mode", .words = "token oauth",
			       .why = "tokens are not checked otherwise")),
	       .help = "Static tokens, stored only as hashes. To make one: openssl rand -hex 32. To hash it: printf %s "
		       "THE-TOKEN | sha256sum. Clients send it as Authorization: Bearer THE-TOKEN."),
	OPTION("auth.tokens[].name", SLICE, TOKEN(name), REQUIRED, .example = "ci",
	       .help = "Who the caller is. Entries with the same name are the same caller, so a "
		       "token can be replaced while its sessions continue."),
	OPTION("auth.tokens[].sha256", TEXT, TOKEN(sha256), .form = form_hash, REQUIRED,
	       .example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	       .help = "SHA-256 of the token's text, without a line break."),
	OPTION("auth.tokens[].scopes", TEXTS, TOKEN(scopes), .def = "[]", .form = form_scope,
	       .help = "The scopes it grants, for servers and tools that require scopes."),
	OPTION("auth.tokens[].servers", TEXTS, TOKEN(servers), .def = "[]",
	       .help = "The servers and endpoints it is valid for, by name. Empty: all."),
	OPTION("auth.tokens[].roles", TEXTS, TOKEN(roles), .def = "[]",
	       .help = "Its roles, from those defined under roles."),
	OPTION("auth.tokens[].tools", LISTS, TOKEN(tools), .form = form_tool,
	       .example = "{github: [\"get_*\", search], files: [\"*\"]}",
	       .otherwise = "what its roles allow; everything if there are no roles",
	       RELATIONS(EXCLUDES(
		       "auth.tokens[].roles",
		       .why = "only one of the two may say what the token may be used for")),
	       .help = "The tools it may call, by server. It may use nothing else: no other tools, servers, prompts or "
		       "resources. This is a role of this token alone, in the form of roles.NAME.allow; tools and roles "
		       "exclude each other."),
	OPTION("auth.tokens[].expires", DATE, TOKEN(ends_at_ms), .example = "2027-01-31",
	       .otherwise = "never",
	       .help = "The token is refused from this day or moment on (UTC)."),
	OPTION("auth.x_api_key", BOOL, AUTH(takes_api_keys), .def = "false",
	       RELATIONS(
		       NEEDS("auth.tokens", .words = "", .why = "X-API-Key is for static tokens")),
	       .help = "Also accepts static tokens in the X-API-Key header, for clients that "
		       "cannot send Authorization. A request with both headers is refused."),
	OPTION("auth.failures_per_minute", COUNT, AUTH(failures_max), .def = "20", .min = "0",
	       .max = "1000000",
	       .help = "Wrong tokens that one address (for IPv6, one /64 network) may present per minute; further ones get "
		       "429 until the minute is over or a valid token arrives. Valid, expired and missing tokens are "
		       "answered as usual. Addresses of this machine are not counted: see trusted_proxies. 0: no limit."),
	OPTION("auth.deny", RECORDS, TOP(deny), .reader = OPTION_FOR_GATEWAY,
	       RECORDS(OPTIONS_DENIAL, struct config_denial),
	       .example = "[{issuer: https://id.example.com, sub: alice, until: 2027-01-31}]",
	       .otherwise = "none",
	       RELATIONS(NEEDS("auth.mode", .words = "token oauth",
			       .why = "tokens are not checked otherwise")),
	       .help = "Tokens that are refused although they are valid. On a running daemon use mcpgatectl deny, which "
		       "also ends their sessions and streams. Those denials last until the daemon stops; these apply from "
		       "its start until a reload removes them."),
	OPTION("auth.deny[].issuer", SLICE, DENIAL(marks.issuer), REQUIRED,
	       .example = "https://id.example.com",
	       .help = "Whose tokens: one of auth.issuers, or static for auth.tokens."),
	OPTION("auth.deny[].sub", SLICE, DENIAL(marks.names[DENIAL_BY_SUB]), .example = "alice",
	       .otherwise = "one of the four must be given",
	       .help = "The person, with any client; for static tokens, the token's name."),
	OPTION("auth.deny[].client_id", SLICE, DENIAL(marks.names[DENIAL_BY_CLIENT_ID]),
	       .example = "old-app", .otherwise = "one of the four must be given",
	       .help = "The client, used by any person."),
	OPTION("auth.deny[].jti", SLICE, DENIAL(marks.names[DENIAL_BY_JTI]), .example = "7ac1e0c2",
	       .otherwise = "one of the four must be given",
	       .help = "A single token, by its token id."),
	OPTION("auth.deny[].sid", SLICE, DENIAL(marks.names[DENIAL_BY_SID]), .example = "08a5019c",
	       .otherwise = "one of the four must be given",
	       .help = "All tokens of one login, for issuers that put the session id into tokens."),
	OPTION("auth.deny[].until", DATE, DENIAL(until_ms), .example = "2027-01-31",
	       .otherwise = "permanent",
	       .help = "The entry is ignored from this day or moment on (UTC)."),
	OPTION("auth.scope_hierarchy", LISTS, AUTH(scope_hierarchy), .form = form_scope,
	       .name_form = form_scope, .example = "{admin: [write], write: [read]}",
	       .otherwise = "no scope includes another",
	       .help = "Scopes that include others: whoever has the scope on the left also has "
		       "those in its list."),
	OPTION("auth.challenge_held", BOOL, AUTH(names_held), .def = "true",
	       .help = "A response that asks for more scopes also names those that the token already has: many clients "
		       "request exactly the scopes that are named and would lose the others."),

	GROUP("roles",
	      RELATIONS(NEEDS("auth.mode", .words = "token oauth",
			      .why = "roles are given to tokens")),
	      .help = "Who may use what, by role name. Without roles, every accepted caller may use whatever the servers "
		      "allow. Once there is a role, a token may use what at least one of its roles allows and none denies; "
		      "the server's own allow and deny apply in addition. A caller without a role that allows anything on a "
		      "server gets 403 there. The admin socket needs no role."),
	OPTION("roles.NAME.when", LISTS, ROLE(when),
	       .example = "{groups: [dev, ops], iss: [https://id.example.com]}",
	       .otherwise = "only static tokens have it, if they name it in roles",
	       .help = "Claims in issuers' tokens that grant this role: all of the claims listed here must match, each with "
		       "one of its values, byte for byte. A claim that is a list must contain one of them; scope and scp "
		       "are lists, space-separated or not. Nested claims are not searched."),
	ROLE_MAY(
		"allow", TOOL, allow, .form = form_tool,
		.example = "{github: [\"*\"], files: [\"read_*\"]}",
		.help = "The tools it allows, by server, as in servers.NAME.tools.allow; the server * stands for all. "
			"Anything not listed is not allowed: prompts, resources and templates have their own sections."),
	ROLE_MAY("deny", TOOL, deny, .form = form_tool, .example = "{github: [\"delete_*\"]}",
		 .help = "Tools that a caller with this role may not use, whatever other roles "
			 "allow."),
	SECTION("roles.NAME.prompts", .help = "The same for prompts."),
	ROLE_MAY("prompts.allow", PROMPT, allow, .form = form_prompt,
		 .example = "{github: [\"*\"]}", .help = "Like allow, for prompts."),
	ROLE_MAY("prompts.deny", PROMPT, deny, .form = form_prompt,
		 .example = "{github: [\"internal_*\"]}", .help = "Like deny, for prompts."),
	SECTION("roles.NAME.resources", .help = "The same for resources, by URI."),
	ROLE_MAY("resources.allow", RESOURCE, allow, .form = form_resource,
		 .example = "{github: [\"repo://*\"]}",
		 .help = "Like allow, for resources, by URI. Matched as in "
			 "servers.NAME.resources.allow."),
	ROLE_MAY("resources.deny", RESOURCE, deny, .form = form_resource,
		 .example = "{github: [\"repo://private/*\"]}",
		 .help = "Like deny, for resources, by URI."),
	SECTION("roles.NAME.templates", .help = "The same for resource templates, by uriTemplate."),
	ROLE_MAY("templates.allow", TEMPLATE, allow, .form = form_template,
		 .example = "{github: [\"repo://*\"]}",
		 .help = "Like allow, for resource templates, by uriTemplate."),
	ROLE_MAY("templates.deny", TEMPLATE, deny, .form = form_template,
		 .example = "{github: [\"repo://private/*\"]}",
		 .help = "Like deny, for resource templates, by uriTemplate."),

	SECTION("limits", .help = "What one client, or all of them together, may use."),
	OPTION("limits.connections", COUNT, TOP(http.max_connections), .def = "10000", .min = "1",
	       .max = "1000000",
	       .help = "Open connections. Lower if the daemon may not open enough files: three descriptors for each of "
		       "limits.processes, but at most half of all, are reserved for servers. At the limit, a new connection "
		       "displaces one that waits for a request or for the rest of a request head or handshake: of the "
		       "address with the most connections, the one that has waited longest. While half are open, one "
		       "address may have at most a quarter; IPv6 addresses count by their first 64 bits. trusted_proxies "
		       "and this machine have no such share, since many clients may come from there."),
	OPTION("limits.sessions", COUNT, TOP(sessions.max_sessions), .def = "10000", .min = "1",
	       .max = "1000000",
	       .help = "Open sessions. At the limit, a new session displaces the longest-idle session (no call, no stream) "
		       "of the caller with the most sessions. If every session is in use, or was within the last two "
		       "seconds, the new one is refused, unless another caller has at least two more than the new one's. "
		       "While half are open, callers without a token may have at most a quarter per address, or eight if "
		       "that is more; IPv6 addresses count by their first 64 bits. This machine has no such share, since "
		       "many clients may come from there."),
	OPTION("limits.sessions_per_principal", COUNT, TOP(sessions.max_per_principal),
	       .def = "100", .min = "1", .max = "1000000",
	       .help = "Open sessions of one caller with a token; beyond that, one of the caller's own idle sessions is "
		       "displaced, as above. Callers without a token are told apart by address; for them see "
		       "limits.sessions."),
	OPTION("limits.processes", COUNT, TOP(max_processes), .def = "256", .min = "1",
	       .max = "100000", .help = "Processes of all servers together."),
	OPTION("limits.header_bytes", SIZE, TOP(http.header_bytes), .def = "16KiB", .min = "1KiB",
	       .max = "1MiB", .help = "Size of the head of one HTTP request."),
	OPTION("limits.message", SIZE, TOP(http.body_bytes), .def = "4MiB", .min = "1KiB",
	       .max = "1GiB",
	       .help = "Size of one message from a client, which is the body of a request."),
	OPTION("limits.response", SIZE, TOP(response_bytes), .def = "16MiB", .min = "1KiB",
	       .max = "1GiB",
	       .help = "Size of one message from a server, which is a line of its standard "
		       "output. A call with a larger answer fails."),
	OPTION("limits.json_depth", COUNT, TOP(json_depth), .def = "128", .min = "8", .max = "1024",
	       .help = "Nesting depth of arrays and objects in a message."),
	OPTION("limits.header_timeout", DURATION, TOP(http.header_timeout_ms), .def = "10s",
	       .min = "1ms", .max = "1h",
	       .help = "From the first byte of a request to the end of its head. While half of limits.connections are open, "
		       "a new connection must also send its first byte within this time."),
	OPTION("limits.body_timeout", DURATION, TOP(http.body_timeout_ms), .def = "30s",
	       .min = "1ms", .max = "1h",
	       .help = "From the end of the head to the end of the body."),
	OPTION("limits.idle_timeout", DURATION, TOP(http.idle_timeout_ms), .def = "120s",
	       .min = "1ms", .max = "1d",
	       .help = "A connection without a request is closed after this time, or earlier if "
		       "limits.connections is reached."),

	SECTION("sessions", .help = "Sessions of clients that begin with initialize."),
	OPTION("sessions.idle_timeout", DURATION, TOP(sessions.idle_ms), .def = "1h", .min = "1ms",
	       .max = "365d",
	       .help = "A session with neither a request nor an open stream ends after this time."),
	OPTION("sessions.max_age", DURATION, TOP(sessions.max_age_ms), .def = "24h", .min = "1ms",
	       .max = "365d", .help = "A session ends at this age, used or not."),
	OPTION("sessions.persist", BOOL, TOP(keeps_sessions), .def = "true",
	       .help = "A session outlives the daemon: after a restart, an upgrade or a crash its client's next request "
		       "continues it with the same handshake: after an upgrade, or a crash of the gateway alone, mostly "
		       "with the same process, else with a fresh one. What that needs is in the state directory, readable "
		       "by this user only, and contains no token."),
	OPTION("sessions.reconnect_timeout", DURATION, TOP(frontend.reconnect_ms), .def = "1m",
	       .min = "0", .max = "1d",
	       .help = "How long an HTTP+SSE client (2024-11-05) that lost its connection may reconnect and continue its "
		       "session; after that the session ends. 0: the session ends with the connection."),

	SECTION("cluster",
		.help = "Several daemons, the nodes, that serve the same sessions: what they keep of them is in a store, Valkey or "
			"Redis; when one node is gone another one goes on with its sessions."),
	OPTION("cluster.node", TEXT, TOP(cluster.node), .form = form_node, .example = "a",
	       .otherwise = "no cluster", RELATIONS(COMPLETE("cluster.store")),
	       .help = "The name of this node, one to eight lower-case letters and digits, different from the others'. The "
		       "ids of its sessions begin with it, and proxies route by it. All nodes have the same servers, under "
		       "the same names, and the same rules."),
	OPTION("cluster.store", TEXT, TOP(cluster.store), .form = form_store,
	       .reader = OPTION_FOR_FETCHER, .example = "valkeys://store.example.com:6379",
	       .otherwise = "no cluster", RELATIONS(COMPLETE("cluster.node")),
	       .help = "The store: valkey://HOST:PORT, or valkeys:// with TLS; redis:// and rediss:// are the same; or "
		       "unix://PATH. Without the store everything goes on, but sessions of other nodes."),
	OPTION("cluster.username", TEXT, TOP(cluster.username), .reader = OPTION_FOR_FETCHER,
	       .example = "mcpgated", .otherwise = "the store's default user",
	       RELATIONS(COMPLETE("cluster.password")), .help = "Who this node is at the store."),
	OPTION("cluster.password", SECRET, TOP(cluster.password),
	       .example = "{file: /etc/mcpgated/store.password}", .otherwise = "none",
	       RELATIONS(COMPLETE("cluster.store")), .help = "Its password there."),
	OPTION("cluster.seal_key", SECRET, TOP(cluster.seal_key), .form = form_seal_key,
	       .reader = OPTION_FOR_CHILD, .example = "{file: /etc/mcpgated/seal.key}",
	       .otherwise = "each node has its own, until it is restarted",
	       RELATIONS(COMPLETE("cluster.store")),
	       .help = "At least 32 random characters, the same for all nodes: what one of them gives a client of 2026-07-28 to "
		       "bring back (requestState) is understood by all, and they count shared rates and failed sign-ins together."),
	OPTION("cluster.ca", TEXT, TOP(cluster.ca_file), .reader = OPTION_FOR_FETCHER,
	       .example = "/etc/mcpgated/store-ca.crt", .otherwise = "the system's",
	       RELATIONS(COMPLETE("cluster.store")),
	       .help = "PEM file with the CA certificates that the store's TLS certificate may be issued by. Read at start."),
	OPTION("cluster.plaintext", BOOL, TOP(cluster.plaintext), .reader = OPTION_FOR_FETCHER,
	       .def = "false", RELATIONS(IDLE_UNLESS("cluster.store")),
	       .help = "The store may be on another machine without TLS: who can read that network can read the password, and "
		       "what clients say of themselves; who can change it can take sessions over."),
	OPTION("cluster.prefix", TEXT, TOP(cluster.prefix), .form = form_prefix,
	       .reader = OPTION_FOR_FETCHER, .def = "mcpgated",
	       RELATIONS(IDLE_UNLESS("cluster.store")),
	       .help = "What the names of the keys begin with, in a store that others use, too."),

	SECTION("streams", .help = "Responses sent as event streams."),
	OPTION("streams.keepalive", DURATION, TOP(frontend.keepalive_ms), .def = "15s",
	       .min = "1ms", .max = "55s",
	       .help = "How often an idle stream is sent a comment, so that nothing on the way "
		       "closes it."),
	OPTION("streams.response", ENUM, TOP(frontend.response), .def = "auto",
	       CHOICES({ "auto", FRONTEND_RESPONSE_AUTO }, { "json", FRONTEND_RESPONSE_JSON },
		       { "sse", FRONTEND_RESPONSE_SSE }),
	       .help = "auto: an answer within json_grace is sent as plain JSON, a later one as a "
		       "stream. json: never a stream. sse: always a stream."),
	OPTION("streams.json_grace", DURATION, TOP(frontend.grace_ms), .def = "1s", .min = "0",
	       .max = "1m", .help = "How long auto waits for the answer before it opens a stream."),
	OPTION("streams.replay_bytes", SIZE, TOP(sessions.store.stream.max_bytes), .def = "1MiB",
	       .min = "1KiB", .max = "1GiB",
	       .help = "Bytes of one stream that may wait for its reader, and that are kept for a "
		       "client that lost its connection and reconnects."),
	OPTION("streams.replay_events", COUNT, TOP(sessions.store.stream.replay_events),
	       .def = "1024", .min = "1", .max = "1000000",
	       .help = "Messages of one stream that are kept for a client that reconnects."),
	OPTION("streams.replay_age", DURATION, TOP(sessions.store.stream.replay_age_ms),
	       .def = "10m", .min = "1s", .max = "1d",
	       .help = "How long a message, and a stream after its end, is kept for a client that "
		       "reconnects."),
	OPTION("streams.session_bytes", SIZE, TOP(sessions.store.session_bytes), .def = "64MiB",
	       .min = "1KiB", .max = "64GiB",
	       .help = "Bytes held for all streams of one session. Beyond that, the least important messages are dropped "
		       "first: progress, then logs, other notifications, requests from the server, answers."),
	OPTION("streams.total_bytes", SIZE, TOP(sessions.store.total_bytes), .def = "256MiB",
	       .min = "1KiB", .max = "64GiB",
	       .help = "The same for the streams of all sessions together."),
	OPTION("streams.max_connection_age", DURATION, TOP(frontend.max_connection_age_ms),
	       .def = "0", .min = "0", .max = "7d",
	       .help = "A connection that carries a stream is closed after this time, and the client is asked to reconnect "
		       "and continue after the last event, if its revision supports that. 0: never."),
	OPTION("streams.retry", DURATION, TOP(frontend.retry_ms), .def = "1s", .min = "1ms",
	       .max = "1h",
	       .help = "When a client that lost its connection is asked to reconnect. If the daemon closes the stream, the "
		       "client is told a random time between this and twice this."),

	OPTION("drain_delay", DURATION, TOP(drain_delay_ms), .def = "0", .min = "0", .max = "1h",
	       .help = "When the daemon stops, /readyz answers 503 for this long before anything ends, so that load "
		       "balancers stop sending traffic; everything else is still served, with `Connection: close`. A second "
		       "signal cuts it short. systemd is told how long the whole stop may take, whatever TimeoutStopSec "
		       "says."),
	OPTION("drain_timeout", DURATION, TOP(drain_timeout_ms), .def = "30s", .min = "0",
	       .max = "1d",
	       .help = "When the daemon stops, how long calls in flight may continue and slow "
		       "clients may take to read their answers."),

	SECTION("audit",
		.help = "Records of what was decided about requests and how they ended, one JSON "
			"object per line. See mcpgated.yaml(5), Audit."),
	OPTION("audit.to", TEXT, TOP(audit.to), .form = form_audit_target,
	       .example = "/var/log/mcpgated/audit.jsonl", .otherwise = "no records",
	       .help = "The absolute path of a file, which is created readable for the daemon's user only and appended to; "
		       "journal; or unix:PATH, a socket that receives each record as a datagram. Reopened on SIGHUP."),
	OPTION("audit.calls", ENUM, TOP(audit.is_refused_only), .def = "all",
	       CHOICES({ "all", false }, { "refused", true }), RELATIONS(IDLE_UNLESS("audit.to")),
	       .help = "all: a record for each call when it ends, and for each request refused at "
		       "admission. refused: only for refused requests."),
	OPTION("audit.arguments", BOOL, TOP(audit.shows_arguments), .def = "false",
	       RELATIONS(IDLE_UNLESS("audit.to")),
	       .help = "Records include the arguments of tools and prompts, up to 1 KiB. "
		       "Otherwise they include a digest of the arguments."),
	OPTION("audit.required", BOOL, TOP(audit.is_required), .def = "false",
	       RELATIONS(NEEDS("audit.to", .why = "without it nothing is recorded"),
			 NEEDS("audit.calls", .words = "all", .why = "it is about calls")),
	       .help = "Each call is also recorded before it is passed on, and is refused (503) while the daemon cannot "
		       "write records or 1 MiB of them is waiting. Otherwise calls continue, and lost records are counted."),

	SECTION("traces", .help = "What tracing systems are told about calls."),
	SECTION("traces.otlp",
		.help = "Sends spans of calls to an OpenTelemetry collector, over OTLP/HTTP with "
			"JSON. See mcpgated.yaml(5), Traces."),
	OPTION("traces.otlp.endpoint", TEXT, TOP(traces.collector.endpoint),
	       .example = "https://otel.example.com/v1/traces", .otherwise = "no spans",
	       .help = "Where spans are sent, including the path; https, or http to a loopback "
		       "address."),
	OPTION("traces.otlp.headers", FIELDS, TOP(traces.collector.headers),
	       .form = form_header_value, .name_form = form_header_name,
	       .reader = OPTION_FOR_FETCHER,
	       .example = "{Authorization: {file: /etc/mcpgated/otlp.authorization}}",
	       .otherwise = "none", RELATIONS(COMPLETE("traces.otlp.endpoint")),
	       .help = "Headers to send along. Their values are never shown, and the process that faces the network does "
		       "not have them. Each may be {file: PATH}, {env: NAME} or {credential: NAME}."),
	OPTION("traces.otlp.ca", TEXT, TOP(traces.collector.ca_file), .reader = OPTION_FOR_FETCHER,
	       .example = "/etc/mcpgated/otel-ca.crt", .otherwise = "the system's",
	       RELATIONS(COMPLETE("traces.otlp.endpoint")),
	       .help = "Absolute path of a PEM file with the CA certificates that the collector's "
		       "certificate may be issued by."),
	OPTION("traces.otlp.allow_private", BOOL, TOP(traces.collector.allow_private),
	       .reader = OPTION_FOR_FETCHER, .def = "false",
	       RELATIONS(IDLE_UNLESS("traces.otlp.endpoint")),
	       .help = "Its addresses may be loopback or private ones. Link-local addresses are never allowed. A loopback "
		       "address given in endpoint itself is always allowed."),
	OPTION("traces.otlp.plaintext", BOOL, TOP(traces.collector.plaintext),
	       .reader = OPTION_FOR_FETCHER, .def = "false",
	       RELATIONS(IDLE_UNLESS("traces.otlp.endpoint")),
	       .help = "Allows http to another machine: anyone in between can read spans and "
		       "headers."),
	OPTION("traces.otlp.sample", PERCENT, TOP(traces.exporter.sample_percent), .def = "100%",
	       .min = "0%", .max = "100%", RELATIONS(IDLE_UNLESS("traces.otlp.endpoint")),
	       .help = "The share of calls without a trace from the client for which a trace is started. A call with a "
		       "trace from the client gets spans if that trace is sampled, and otherwise none."),
	OPTION("traces.otlp.interval", DURATION, TOP(traces.exporter.interval_ms), .def = "5s",
	       .min = "100ms", .max = "1m", RELATIONS(IDLE_UNLESS("traces.otlp.endpoint")),
	       .help = "How often spans are sent; earlier once there are 512."),
	OPTION("traces.otlp.service_name", TEXT, TOP(traces.exporter.service_name),
	       .def = "mcpgated", RELATIONS(IDLE_UNLESS("traces.otlp.endpoint")),
	       .help = "The service.name of the spans."),

	SECTION("log", .help = "The daemon's own log."),
	OPTION("log.level", ENUM, TOP(log_level), .def = "info",
	       CHOICES({ "error", LOG_LEVEL_ERROR }, { "warn", LOG_LEVEL_WARN },
		       { "info", LOG_LEVEL_INFO }, { "debug", LOG_LEVEL_DEBUG }),
	       .help = "The least important level that is logged."),
	OPTION("log.format", ENUM, TOP(log_format), .def = "text",
	       CHOICES({ "text", LOG_FORMAT_TEXT }, { "json", LOG_FORMAT_JSON }),
	       .help = "text: event key=value; json: one object per line."),
	OPTION("log.access", BOOL, TOP(http.logs_access), .def = "false",
	       RELATIONS(IDLE_UNLESS(
		       "log.level",
		       .words = "info debug",
		       .why = "its lines are of level info, and 'level' leaves those out")),
	       .help = "Logs a line for each request: the client, the request, the status, and "
		       "the time until its answer began. The query string is left out."),
	OPTION("log.payloads", BOOL, TOP(log_payloads), .def = "false",
	       RELATIONS(IDLE_UNLESS(
		       "log.level",
		       .words = "info debug",
		       .why = "its lines are of level info, and 'level' leaves those out")),
	       .help = "Logs the beginning of each message, between clients and the gateway and between the gateway and "
		       "servers. To find out what goes wrong: messages may hold secrets, those of servers before `redact`."),
	OPTION("log.target", TEXT, TOP(log_target), .def = "stderr", .form = form_log_target,
	       .help = "stderr, journal (standard error that systemd collects), or the absolute path of a file, which must "
		       "not be in a directory that a sandboxed server may write to."),

	GROUP("defaults",
	      .help = "Any key of a server, for all servers that do not set it themselves. Variables in env and times in "
		      "tool_timeout are merged with the server's own."),

	GROUP("servers",
	      .help = "The MCP servers to run, by name: lowercase letters, digits, '-' and '_'."),
	OPTION("servers.NAME.command", TEXT, SERVER(command), .form = form_without_claims,
	       FOR_COMMAND, .or_key = "url", .example = "mcpgated-demo",
	       .otherwise = "url must be given",
	       .help = "The program to start: a path, or a name that is looked up in PATH. No "
		       "shell is involved."),
	OPTION("servers.NAME.args", TEXTS, SERVER(args), .reader = OPTION_FOR_CHILD, FOR_COMMAND,
	       .def = "[]", .form = form_without_claims, .help = "Its arguments."),
	OPTION("servers.NAME.url", TEXT, SERVER(url), .form = form_server_url,
	       .reader = OPTION_FOR_CHILD, .example = "https://wiki.example.com/mcp",
	       .otherwise = "command must be given",
	       .help = "In place of command: the address of a server that is reached over HTTP. Each process of it is a "
		       "small program of the daemon's own, mcpgated-remote, which speaks Streamable HTTP of any revision, "
		       "or HTTP+SSE (2024-11-05), and can connect to that port alone. https, or http to a loopback address "
		       "or with allow_private; or unix:///PATH#/mcp. Everyone on this machine can read it: secrets belong "
		       "into headers."),
	OPTION("servers.NAME.headers", ENV, NO_FIELD, .reader = OPTION_FOR_CHILD,
	       .name_form = form_server_header, .form = form_header_value,
	       .example = "{Authorization: {file: /etc/mcpgated/wiki.authorization}}",
	       .otherwise = "none", RELATIONS(COMPLETE("servers.NAME.url")),
	       .help = "With url: header fields to send with each request, for credentials. The values are like those of "
		       "env, also for each caller. A client's own headers, and its token, never go to the server."),
	SECTION("servers.NAME.auth",
		.help = "A token for the server, which the gateway gets from an authorization server, or signs, and renews. "
			"With command: grant assertion alone. See docs/guides/remote.md."),
	OPTION("servers.NAME.auth.grant", ENUM, CREDENTIAL(grant), .def = "none",
	       CHOICES({ "none", CREDENTIAL_NONE }, { "client_credentials", CREDENTIAL_CLIENT },
		       { "token_exchange", CREDENTIAL_EXCHANGE },
		       { "assertion", CREDENTIAL_ASSERTION }),
	       RELATIONS(COMPLETE("servers.NAME.url", .when = "client_credentials"),
			 COMPLETE("servers.NAME.url", .when = "token_exchange"),
			 NEEDS("auth.assertion_key", .when = "assertion",
			       .why = "it signs the tokens")),
	       .help = "client_credentials: a token of the gateway's own, one for all callers. token_exchange: one for each "
		       "caller, for his token (RFC 8693); needs auth.mode oauth, and isolation session or principal. "
		       "assertion: one for each caller, which the gateway signs with auth.assertion_key: who is calling, "
		       "for five minutes, for audience; of the keys here, only that one is for it. A server with a command "
		       "gets it in _meta of each request. It needs auth.mode token or oauth, and isolation session or "
		       "principal. See docs/guides/callers.md."),
	OPTION("servers.NAME.auth.issuer", TEXT, CREDENTIAL_AT(issuer), .form = form_issuer,
	       .example = "https://id.example.com", .otherwise = "none",
	       .help = "The authorization server: its issuer identifier."),
	OPTION("servers.NAME.auth.token_endpoint", TEXT, CREDENTIAL(token_endpoint),
	       .form = form_issuer_url, .example = "https://id.example.com/token",
	       .otherwise = "what the issuer's metadata says", .help = "Its token endpoint."),
	CLIENT_AT("servers.NAME.auth", CREDENTIAL_AT, .otherwise = "none"),
	OPTION("servers.NAME.auth.scopes", TEXTS, CREDENTIAL(scopes), .def = "[]",
	       .form = form_scope, .help = "The scopes that are asked for."),
	OPTION("servers.NAME.auth.resource", TEXT, CREDENTIAL(resource),
	       .example = "https://wiki.example.com/mcp",
	       .otherwise = "the url, unless audience is given",
	       .help = "What the token is to be for (RFC 8707)."),
	OPTION("servers.NAME.auth.audience", TEXT, CREDENTIAL(audience), .example = "wiki",
	       .otherwise = "none; of an assertion, the url; with command it must be given",
	       .help = "The same for issuers that call it audience; and whom an assertion is for."),
	REACHED_AT("servers.NAME.auth", CREDENTIAL_AT),
	OF_URL("ca", ca_file, .example = "/etc/mcpgated/wiki-ca.crt", .otherwise = "the system's",
	       .help = "With url: absolute path of a PEM file with the CAs of its certificate."),
	OF_URL("certificate", certificate_file, .example = "/etc/mcpgated/wiki-client.crt",
	       .otherwise = "none",
	       .help = "With url: absolute path of our own certificate, in PEM."),
	OF_URL("key", key_file, .example = "/etc/mcpgated/wiki-client.key", .otherwise = "none",
	       .help = "The private key of certificate."),
	OF_URL("proxy", proxy, .form = form_proxy, .example = "http://proxy.example.com:3128",
	       .otherwise = "none",
	       .help = "With url: the HTTP proxy; nothing else is connected to."),
	OPTION("servers.NAME.allow_private", BOOL, SERVER(allow_private),
	       .reader = OPTION_FOR_CHILD, .def = "false", RELATIONS(COMPLETE("servers.NAME.url")),
	       .help = "With url: the host may have loopback or private addresses. Link-local addresses are never allowed. "
		       "A loopback address given in url itself is always allowed."),
	OPTION("servers.NAME.env", ENV, NO_FIELD, .reader = OPTION_FOR_CHILD, FOR_COMMAND,
	       .example = "{API_TOKEN: {file: /etc/mcpgated/api.token}, MODE: fast}",
	       .otherwise = "none",
	       .help = "Environment variables for the server. A value may be a text, or {file: PATH}, {env: NAME} or "
		       "{credential: NAME} (systemd); files are read again for each process. A text may contain "
		       "${claim:NAME}, the value of a claim in the caller's token, like ${claim:sub}; not with isolation "
		       "shared. A caller without that claim is refused. PATH may contain it, too: a file for each caller. "
		       "See docs/guides/callers.md."),
	OPTION("servers.NAME.inherit_env", TEXTS, SERVER(inherit_env), FOR_COMMAND,
	       .def = "[PATH, HOME, LANG, TZ, HTTP_PROXY, HTTPS_PROXY, NO_PROXY, ALL_PROXY, "
		      "http_proxy, https_proxy, no_proxy, all_proxy, SSL_CERT_FILE, "
		      "SSL_CERT_DIR, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE]",
	       .help = "Variables that it gets from the daemon's environment if they are set there; it gets no others. In "
		       "the default, those after TZ are the usual ones for proxies and CA certificates; if a proxy URL "
		       "contains a password, the server gets it too."),
	OPTION("servers.NAME.cwd", TEXT, SERVER(cwd), .form = form_without_claims, FOR_COMMAND,
	       .example = "/var/lib/mcpgated/demo", .otherwise = "the daemon's",
	       .help = "The working directory it is started in."),
	OPTION("servers.NAME.user", TEXT, SERVER(user), .example = "mcp-demo",
	       .otherwise = "the daemon's",
	       .help = "The user it runs as, with that user's groups. Requires root. HOME is set "
		       "to that user's home directory unless env sets it."),
	OPTION("servers.NAME.umask", TEXT, SERVER(umask), .form = form_umask, FOR_COMMAND,
	       .example = "\"0077\"", .otherwise = "the daemon's", .help = "Its umask, in octal."),
	OPTION("servers.NAME.path", SLICE, SERVER(endpoint.path), .form = form_path,
	       .example = "/demo/mcp", .otherwise = "/NAME/mcp",
	       .help = "Where clients find it. HTTP+SSE is next to it: /demo/sse and "
		       "/demo/message."),
	CARD("servers.NAME.card"),
	OPTION("servers.NAME.enabled", BOOL, SERVER(enabled), .def = "true",
	       .help = "false: the entry is checked but otherwise ignored."),
	OPTION("servers.NAME.isolation", ENUM, SERVER(conf.isolation), .def = "session",
	       CHOICES({ "session", ISOLATION_SESSION }, { "principal", ISOLATION_PRINCIPAL },
		       { "shared", ISOLATION_SHARED }),
	       .help = "Whom one process serves. session: one session; works for every server. principal: all sessions of "
		       "one caller (without authorization, all callers count as one); if a server of the older revisions "
		       "may send requests to its client, its process handles one call at a time. shared: everyone; for "
		       "servers that keep no state per client. A server of the older revisions then cannot send requests to "
		       "clients; one of 2026-07-28 can. With principal and shared there are several processes with many "
		       "sessions each, and no tasks of 2025-11-25 (a tool that can only be called as a task answers with an "
		       "error). With shared there are no log messages, and requests that a server of the older revisions "
		       "sends while no call is in flight, such as for roots at start, are refused. A client of 2026-07-28 "
		       "has no session: with session it is served as with principal, so without authorization all such "
		       "clients share processes."),
	OPTION("servers.NAME.era", ENUM, SERVER(conf.era), .def = "auto",
	       CHOICES({ "auto", ERA_UNKNOWN }, { "legacy", ERA_LEGACY }, { "modern", ERA_MODERN }),
	       .help = "The era of MCP that the gateway speaks to the server, whatever its clients speak. legacy: with "
		       "initialize, up to 2025-11-25. modern: 2026-07-28. auto: the server is sent initialize; if it "
		       "refuses that or has never answered, or when a client of 2026-07-28 comes, a separate process is "
		       "sent server/discover and then stopped, at most once a day, and again after a restart. A server that "
		       "speaks both eras, as those built with the current SDKs do, is spoken to as modern from then on."),
	OPTION("servers.NAME.assume_no_server_requests", BOOL, SERVER(conf.never_asks),
	       .def = "false",
	       RELATIONS(IDLE_UNLESS("servers.NAME.isolation", .words = "session principal",
				     .why = "it is for isolation principal")),
	       .help = "With isolation principal: asserts that the server never sends requests to clients (sampling, "
		       "elicitation, roots). It is told that clients support none of them, and its processes may handle "
		       "many calls at a time."),
	OPTION("servers.NAME.progress_while_waiting", BOOL, SERVER(conf.tells_progress), RULE,
	       .def = "false",
	       RELATIONS(IDLE_UNLESS("servers.NAME.isolation", .words = "session principal")),
	       .help = "While the server waits for a client of 2026-07-28 to return with the answers to its requests, it is "
		       "sent progress every 20 s, for each of those requests that has a progress token. For servers that "
		       "wait longer when they receive progress, and would give up after a minute without it."),

	SECTION("servers.NAME.pool", .help = "Its processes."),
	OPTION("servers.NAME.pool.max", COUNT, SERVER(conf.pool_max), RULE, .def = "64", .min = "1",
	       .max = "100000", .help = "Maximum number of processes."),
	OPTION("servers.NAME.pool.min", COUNT, SERVER(conf.pool_min), .def = "0", .min = "0",
	       .max = "1000",
	       RELATIONS(AT_MOST("servers.NAME.pool.max"),
			 IDLE_UNLESS("servers.NAME.isolation", .words = "shared")),
	       .help = "Processes that are kept running and ready, whether needed or not; with "
		       "isolation shared."),
	OPTION("servers.NAME.pool.warm", COUNT, SERVER(conf.warm), .def = "0", .min = "0",
	       .max = "1000",
	       RELATIONS(AT_MOST("servers.NAME.pool.max"),
			 IDLE_UNLESS("servers.NAME.isolation", .words = "session principal")),
	       .help = "Processes that are started before a session needs them, for servers that "
		       "start slowly. They count toward pool.max."),
	OPTION("servers.NAME.pool.reclaim", ENUM, SERVER(conf.reclaims), .def = "idle",
	       CHOICES({ "idle", RECLAIM_IDLE }, { "never", RECLAIM_NEVER }),
	       RELATIONS(IDLE_UNLESS("servers.NAME.isolation", .words = "session")),
	       .help = "idle: when no more processes may run (pool.max, limits.processes), a session that has been idle for "
		       "two seconds gives up its process to one that needs it, and gets a fresh process with its next "
		       "request; what the old process kept in memory is lost. never: a session keeps its process for its "
		       "lifetime, and latecomers are refused."),
	OPTION("servers.NAME.pool.share", PERCENT, SERVER(conf.share_percent), RULE, .def = "50%",
	       .min = "1%", .max = "100%",
	       .help = "The part of pool.max, and at least one process, that a caller may have before its processes are the "
		       "first to be reclaimed. With isolation session, while another caller waits, none keeps two or more "
		       "processes more than the one that waits: after a wait of two seconds an excess process is reclaimed "
		       "as soon as it is idle; if its calls overlap, it gets no more of them after four seconds and is "
		       "reclaimed once it has answered the rest. With isolation principal, a caller below its share gets "
		       "what another has beyond its own."),
	OPTION("servers.NAME.pool.sleep_after", DURATION, SERVER(conf.sleep_after_ms), .def = "0",
	       .min = "0", .max = "365d",
	       RELATIONS(IDLE_UNLESS("servers.NAME.isolation", .words = "session")),
	       .help = "After this time an idle session's process is stopped. 0: never."),
	OPTION("servers.NAME.pool.sleep_when_gone", DURATION, SERVER(conf.sleep_gone_ms),
	       .def = "2m", .min = "0", .max = "365d",
	       RELATIONS(IDLE_UNLESS("servers.NAME.isolation", .words = "session")),
	       .help = "The same once the client has closed its stream, as one does that leaves."),
	OPTION("servers.NAME.pool.sessions_per_process", COUNT, SERVER(conf.sessions_per_process),
	       RULE, .def = "64", .min = "1", .max = "1000000",
	       .help = "Sessions that share a process before another one is started."),
	OPTION("servers.NAME.pool.requests_per_process", COUNT, SERVER(conf.calls_per_process),
	       RULE, .def = "64", .min = "1", .max = "65536",
	       .help = "Concurrent calls in one shared process; beyond that another process is "
		       "started."),
	OPTION("servers.NAME.pool.queue", COUNT, SERVER(conf.queue_calls), RULE, .def = "256",
	       .min = "0", .max = "65536",
	       .help = "Calls that may wait while all shared processes are busy; others are refused."),
	OPTION("servers.NAME.pool.queue_timeout", DURATION, SERVER(conf.queue_timeout_ms), RULE,
	       .def = "10s", .min = "1ms", .max = "1h",
	       .help = "How long a call waits for a busy process. If it waits for a process that "
		       "is being started, it waits as long as the start takes."),
	OPTION("servers.NAME.pool.idle_timeout", DURATION, SERVER(conf.idle_ms), RULE, .def = "5m",
	       .min = "1ms", .max = "365d",
	       .help = "A shared process is stopped when it has had no call for this long."),
	OPTION("servers.NAME.pool.remember", DURATION, SERVER(conf.remember_ms), RULE, .def = "10m",
	       .min = "0", .max = "24h",
	       .help = "After the last shared process was stopped for lack of calls, what it said about the server, and its "
		       "lists, are served from memory for this long without starting a process. Clients are not notified of "
		       "changes meanwhile. 0: never."),
	OPTION("servers.NAME.pool.max_age", DURATION, SERVER(conf.max_age_ms), RULE, .def = "0",
	       .min = "0", .max = "365d",
	       .help = "At this age a shared process gets no more calls, and is stopped when it "
		       "has finished those it has. 0: never."),

	SECTION("servers.NAME.start", RULE, .help = "How a process is started."),
	OPTION("servers.NAME.start.timeout", DURATION, SERVER(conf.start_timeout_ms), RULE,
	       .def = "60s", .min = "1ms", .max = "1h",
	       .help = "How long it may take to answer for the first time."),
	OPTION("servers.NAME.start.backoff", RANGE, SERVER(conf.backoff_min_ms), RULE,
	       .def = "1s..60s", .min = "1ms", .max = "1h",
	       .help = "The delay after a failed start, and the maximum to which it grows."),
	OPTION("servers.NAME.start.rate", COUNT, SERVER(conf.start_rate), .def = "1000", .min = "1",
	       .max = "100000",
	       .help = "Processes started per second; further starts wait their turn, or are "
		       "refused if that would take longer than start.timeout."),
	OPTION("servers.NAME.start.try", BOOL, SERVER(conf.is_tried), .def = "true",
	       .help = "Starts the server once together with the daemon, asks what it is and for its tools, and stops that "
		       "process: problems are in the log before the first client connects, and npx or uvx has fetched what "
		       "it needs. Four at a time; if a client needs a server meanwhile, that server is next, and the client "
		       "waits. Skipped if env has claims. false: it is started when a client needs it, and counts as not "
		       "tried until then."),
	OPTION("servers.NAME.start.give_up_after", COUNT, SERVER(conf.give_up_after), RULE,
	       .def = "5", .min = "1", .max = "1000",
	       .help = "After this many failed starts in a row, callers are refused immediately "
		       "until a start succeeds."),
	OPTION("servers.NAME.request_timeout", DURATION, SERVER(conf.request_timeout_ms), RULE,
	       .def = "5m", .min = "1ms", .max = "7d",
	       RELATIONS(AT_MOST("servers.NAME.request_timeout_max")),
	       .help = "The longest silence in a call; each progress notification from the server "
		       "restarts it."),
	OPTION("servers.NAME.request_timeout_max", DURATION, SERVER(conf.request_timeout_max_ms),
	       RULE, .def = "60m", .min = "1ms", .max = "7d",
	       .help = "The longest a call may take, regardless of progress."),
	OPTION("servers.NAME.audience", TEXTS, SERVER(endpoint.place.audience), RULE, .def = "[]",
	       .help = "Further values accepted in a token's aud for this server, besides "
		       "public_url and path."),
	OPTION("servers.NAME.clients", TEXTS, SERVER(endpoint.place.clients), RULE, .def = "[]",
	       RELATIONS(NEEDS("auth.mode", .words = "oauth",
			       .why = "it is about tokens from issuers")),
	       .help = "Clients whose tokens are accepted, by the client id that the issuer assigned (client_id, azp, appid "
		       "or cid). Empty: all. For static tokens use auth.tokens[].servers."),
	OPTION("servers.NAME.algorithms", TEXTS, SERVER(endpoint.place.algorithms), RULE,
	       .def = "[]", .form = form_algorithm,
	       RELATIONS(NEEDS("auth.mode", .words = "oauth",
			       .why = "it is about tokens from issuers")),
	       .help = "Signature algorithms that are accepted, out of those that the issuer may "
		       "use. Empty: all of them."),
	OPTION("servers.NAME.scopes", TEXTS, SERVER(endpoint.place.scopes), RULE, .def = "[]",
	       .form = form_scope, NEEDS_TOKENS,
	       .help = "Scopes that a token needs for any request to this server."),
	OPTION("servers.NAME.hide", BOOL, SERVER(conf.needs.hides), RULE, .def = "false",
	       .help = "Lists show a caller only the tools, prompts and resources for which the token has the scopes. A "
		       "call to any other is still answered with the challenge that names the missing scopes, so that a "
		       "client can get them: the challenge depends on the name alone and does not reveal whether there is "
		       "such a tool."),

	SECTION("servers.NAME.tools", .help = "Its tools."),
	OPTION("servers.NAME.tools.scopes", LISTS, SERVER(conf.needs.by_name[PERMISSION_TOOL]),
	       RULE, .form = form_scope, .name_form = form_tool,
	       .example = "{\"delete_*\": [demo:write]}", .otherwise = "none", NEEDS_TOKENS,
	       .help = "Additional scopes that a token needs to call tools, by name; a * matches any characters. All "
		       "matching patterns apply. Differences in case, compatibility forms of letters (full width, "
		       "ligatures) and spaces are ignored. A call is refused if the name has invisible or unassigned "
		       "characters, or is longer than 256 bytes."),
	OPTION("servers.NAME.tools.challenge_in_result", BOOL,
	       SERVER(endpoint.place.tells_in_result), RULE, .def = "false",
	       .help = "A call without the scopes of its tool is answered with an error result that carries the challenge "
		       "in _meta[\"mcp/www_authenticate\"], instead of 403: some clients look only there. Not for batches "
		       "and HTTP+SSE."),
	MAY("tools.allow", TOOL, allow, .def = "[\"*\"]", .form = form_tool,
	    .help = "The tools that clients may see and call, by name; a * matches any characters. All others are treated "
		    "as nonexistent. Names are compared as in scopes."),
	MAY("tools.deny", TOOL, deny, .def = "[]", .form = form_tool, .example = "[\"delete_*\"]",
	    .help = "Exceptions to allow: deny wins."),
	SHOWN("prompts.rename", PROMPT, names, .form = form_shown_name,
	      .example = "{review: code_review}", .help = "As for tools."),
	SHOWN("prompts.describe", PROMPT, descriptions, .example = "{review: Reviews a change.}",
	      .help = "As for tools."),
	SHOWN("tools.rename", TOOL, names, .form = form_shown_name,
	      .example = "{create_issue: new_issue}",
	      .help = "Names by which clients see and call tools, by the server's own name, without *. All else here goes "
		      "by the server's own. A tool whose name another one has got is not reachable, and the log says so."),
	SHOWN("tools.describe", TOOL, descriptions, .example = "{create_issue: Opens an issue.}",
	      .help = "Descriptions for clients in place of the server's, by its own name."),
	SHOWN("tools.annotations", TOOL, annotations,
	      CHOICES({ "title", 0 }, { "readOnlyHint", 1 }, { "destructiveHint", 1 },
		      { "idempotentHint", 1 }, { "openWorldHint", 1 }),
	      .example = "{delete_repo: {destructiveHint: true}}",
	      .help = "Annotations for clients in place of the server's, by its own name."),
	OPTION("servers.NAME.tools.limits", RECORDS, SERVER(conf.limits.tools), RULE,
	       RECORDS(OPTIONS_TOOL_LIMIT, struct tool_limit),
	       .example =
		       "[{tools: [\"create_*\"], calls: 10, per: 1m}, {tools: [report], concurrency: 1}]",
	       .otherwise = "none",
	       .help = "How often, and how many at once, each caller may call some of the tools, in addition to rate and "
		       "concurrency. All tools that match an entry are counted together; the first matching entry applies."),
	OPTION("servers.NAME.tools.limits[].tools", TEXTS, TOOL_LIMIT(tools.written),
	       .form = form_tool, REQUIRED, .example = "[\"create_*\"]",
	       .help = "Their names, as in scopes."),
	RATE("servers.NAME.tools.limits[]", TOOL_LIMIT, limit.rate, .is_rule = false),
	OPTION("servers.NAME.tools.limits[].concurrency", COUNT, TOOL_LIMIT(limit.concurrency),
	       .min = "1", .max = "100000", .example = "1", .otherwise = "any number",
	       .help = "How many of them may be in flight; see the server's concurrency."),

	SECTION("servers.NAME.prompts", .help = "Its prompts."),
	OPTION("servers.NAME.prompts.scopes", LISTS, SERVER(conf.needs.by_name[PERMISSION_PROMPT]),
	       RULE, .form = form_scope, .name_form = form_prompt,
	       .example = "{\"internal_*\": [demo:write]}", .otherwise = "none", NEEDS_TOKENS,
	       .help = "Additional scopes that a token needs to get prompts or complete their "
		       "arguments, by name, as for tools."),
	MAY("prompts.allow", PROMPT, allow, .def = "[\"*\"]", .form = form_prompt,
	    .help = "The prompts that clients may see and get, by name, as for tools."),
	MAY("prompts.deny", PROMPT, deny, .def = "[]", .form = form_prompt,
	    .example = "[\"internal_*\"]", .help = "Exceptions to allow: deny wins."),

	SECTION("servers.NAME.templates", RULE, .help = "Its resource templates."),
	MAY("templates.allow", TEMPLATE, allow, .def = "[\"*\"]", .form = form_template,
	    .help = "The resource templates that clients may see and complete, by uriTemplate. "
		    "What may be read is controlled by resources."),
	MAY("templates.deny", TEMPLATE, deny, .def = "[]", .form = form_template,
	    .example = "[\"db:///*\"]", .help = "Exceptions to allow: deny wins."),

	SECTION("servers.NAME.rate", RULE,
		.help = "How often each caller may call it. A caller is a principal, or without a token an address (all of "
			"this machine count as one). Calls are all requests except initialize, ping and the server/discover "
			"of 2026-07-28, and notifications that name a method of calls. Calls over the limit get 429 with "
			"Retry-After, a batch as a whole; on HTTP+SSE an error."),
	RATE("servers.NAME.rate", SERVER, conf.limits.all.rate, RULE),
	OPTION("servers.NAME.concurrency", COUNT, SERVER(conf.limits.all.concurrency), RULE,
	       .min = "1", .max = "100000", .example = "16", .otherwise = "any number",
	       .help = "How many calls to it each caller may have in flight; counted as for rate, and checked before it. "
		       "Streams of changes, calls that wait for their client's answer, and requests about tasks do not "
		       "count. A call that became a task counts until the server says that the task ended, or ten minutes "
		       "pass without news of it. A call that was cancelled, or lost its client, counts until the server has "
		       "answered it or its process is gone, but no longer than request_timeout."),
	OPTION("servers.NAME.pin", ENUM, SERVER(conf.pin), RULE, .def = "off",
	       CHOICES({ "off", PIN_OFF }, { "warn", PIN_WARN }, { "enforce", PIN_ENFORCE }),
	       .help = "Remembers the definitions of its tools, prompts, resources and templates as its lists first show "
		       "them, and its instructions and titles. If one changes, or a new one appears, the log and mcpgatectl "
		       "pins report it. warn: it is passed on. enforce: it can be neither seen nor called until mcpgatectl "
		       "pins approve; tools and prompts can then be called only once the process's list is known, which the "
		       "gateway fetches, and a list that clients could read in two ways fails. Across servers with pins, "
		       "tools with the same name, and descriptions that name another server's tool, are reported as well. "
		       "Pins apply to the server, for all its callers: not for servers that show each caller different "
		       "definitions. They are kept in the state directory, by server name."),

	SECTION("servers.NAME.sanitize", RULE,
		.help = "Control and invisible characters in what it writes: in every string of results, lists, errors, "
			"notifications and requests, including member names. keep: they stay. strip: they are removed. "
			"mark: each is replaced by its code point, like \\u{200b}, up to 4096 per message; the rest are "
			"removed."),
	OPTION("servers.NAME.sanitize.controls", ENUM, SERVER(conf.sanitize.controls), RULE,
	       .def = "keep",
	       CHOICES({ "keep", SANITIZE_KEEP }, { "strip", SANITIZE_STRIP },
		       { "mark", SANITIZE_MARK }),
	       .help = "Control characters other than tab, LF and CR; they can control a terminal. strip removes whole "
		       "escape sequences; of an unterminated one it removes only the beginning."),
	OPTION("servers.NAME.sanitize.invisible", ENUM, SERVER(conf.sanitize.invisible), RULE,
	       .def = "keep",
	       CHOICES({ "keep", SANITIZE_KEEP }, { "strip", SANITIZE_STRIP },
		       { "mark", SANITIZE_MARK }),
	       .help = "Characters that people do not see but a model reads: direction marks, zero-width characters, tags, "
		       "variation selectors, soft hyphens. Those that scripts need stay: joiners next to letters of joining "
		       "scripts (Arabic, Indic) and in emoji, and one selector after an emoji, an ideograph or a Mongolian "
		       "letter."),
	OPTION("servers.NAME.redact", TEXTS, SERVER(redact), RULE, .def = "[]",
	       .form = form_redaction,
	       .help = "Regular expressions (PCRE2). Matches in a string of a result, an error or a notification are "
		       "replaced by [redacted]. Strings are matched one by one with escapes decoded, after sanitize. Not "
		       "searched: member names, nextCursor, requestState, and data and blob that are 1 KiB or more of "
		       "base64. A string longer than 256 KiB, or one that takes an expression too long (100 ms per "
		       "message), is replaced as a whole. Protects against accidents only: a malicious server can encode a "
		       "secret differently."),
	SECTION("servers.NAME.tools.arguments", RULE,
		.help = "What the arguments of its tools and prompts may contain. A call that violates this is answered "
			"with error -32602 and never reaches the server. See mcpgated.yaml(5), Arguments."),
	OPTION("servers.NAME.tools.arguments.max_bytes", SIZE, SERVER(endpoint.arguments.max_bytes),
	       RULE, .def = "0", .min = "0", .max = "1GiB",
	       .help = "Maximum size of the arguments as written. 0: limited only by "
		       "limits.message."),
	OPTION("servers.NAME.tools.arguments.schema", ENUM, SERVER(conf.checks_schemas), RULE,
	       .def = "off", CHOICES({ "off", false }, { "check", true }),
	       .help = "check: the arguments of a call must match the inputSchema of its tool. What cannot be checked is "
		       "refused: a tool that the server does not list, a tool whose schema is not supported, and every tool "
		       "if the server does not return its list."),
	OPTION("servers.NAME.tools.arguments.deny_patterns", LISTS,
	       SERVER(endpoint.arguments.deny_patterns), RULE, .form = form_expression,
	       .name_form = form_tool,
	       .example = "{\"*\": ['(?i)drop\\s+table'], \"run_*\": ['[;&|`$]']}",
	       .otherwise = "none",
	       .help = "Regular expressions (PCRE2) that no string may match, member names included, by name of the tool or "
		       "prompt; a * matches any characters. Strings are Unicode with escapes decoded. A match that takes "
		       "too long is refused, and so is a string longer than 256 KiB if expressions apply to it."),
	OPTION("servers.NAME.tools.arguments.forbidden_keys", TEXTS,
	       SERVER(endpoint.arguments.forbidden_keys.written), RULE, .def = "[]",
	       .form = form_member, .example = "[__proto__, constructor, prototype]",
	       .help = "Names that no member may have, at any depth; a * matches any characters. Differences in case, "
		       "compatibility forms of letters, spaces and invisible characters are ignored; a name longer than 256 "
		       "bytes is refused."),
	SECTION("servers.NAME.tools.arguments.paths", RULE,
		.help = "Where paths in the arguments may lead."),
	OPTION("servers.NAME.tools.arguments.paths.roots", TEXTS,
	       SERVER(endpoint.arguments.paths.roots), RULE, .def = "[]", .form = form_root,
	       .example = "[/srv/data]",
	       .help = "Directories that every path must stay in. Paths are compared as text; links are not followed. A "
		       "string is a path if it begins with /, ./, ../, ~, file: or a drive letter, or contains .. between "
		       "slashes, also in an encoded form. Empty: paths may lead anywhere."),
	OPTION("servers.NAME.tools.arguments.paths.members", TEXTS,
	       SERVER(endpoint.arguments.path_members.written), RULE, .def = "[]",
	       .form = form_member, .example = "[path, \"*_path\", paths, uri]",
	       RELATIONS(NEEDS("servers.NAME.tools.arguments.paths.roots",
			       .why = "paths must stay in those directories")),
	       .help = "Names of members whose strings are always paths, in lists as well. A "
		       "relative path starts at cwd; without cwd it is refused."),
	OPTION("servers.NAME.tools.arguments.paths.ignore", TEXTS,
	       SERVER(endpoint.arguments.paths_ignored.written), RULE, .def = "[]",
	       .form = form_member, .example = "[content, \"*Text\"]",
	       RELATIONS(NEEDS("servers.NAME.tools.arguments.paths.roots",
			       .why = "paths must stay in those directories")),
	       .help = "Names of members whose strings are never paths; matched exactly as "
		       "written."),
	OPTION("servers.NAME.tool_timeout", TIMEOUTS, SERVER(conf.tool_timeouts), RULE,
	       .min = "1ms", .max = "7d", .example = "{deploy: 10m}", .otherwise = "none",
	       .help = "request_timeout for single tools."),

	SECTION("servers.NAME.stop", RULE, .help = "How a process is stopped."),
	OPTION("servers.NAME.stop.grace", DURATION, SERVER(conf.stop_grace_ms), RULE, .def = "5s",
	       .min = "0", .max = "10m", .help = "From closing its standard input to SIGTERM."),
	OPTION("servers.NAME.stop.term", DURATION, SERVER(conf.stop_term_ms), RULE, .def = "5s",
	       .min = "0", .max = "10m", .help = "From SIGTERM to SIGKILL."),

	SECTION("servers.NAME.resources", RULE,
		.help = "Resource limits for each of its processes together with everything that process starts. All except "
			"open_files require a cgroup (version 2) of the daemon's own, which the installed unit has. Also "
			"which of the MCP resources that the server offers may be used: allow and deny."),
	OPTION("servers.NAME.resources.memory", SIZE, SERVER(memory_bytes), .min = "1MiB",
	       .max = "1048576GiB", .example = "512MiB", .otherwise = "no limit",
	       .help = "Memory, without swap. Over the limit, the process and everything it "
		       "started are killed."),
	OPTION("servers.NAME.resources.processes", COUNT, SERVER(processes), .min = "1",
	       .max = "4000000", .example = "64", .otherwise = "no limit",
	       .help = "Processes and threads."),
	OPTION("servers.NAME.resources.cpu", PERCENT, SERVER(cpu_percent), .min = "1%",
	       .max = "100000%", .example = "100%", .otherwise = "no limit",
	       .help = "CPU time: 100% is one processor."),
	OPTION("servers.NAME.resources.open_files", COUNT, SERVER(open_files), .min = "16",
	       .max = "1000000", .example = "1024", .otherwise = "the daemon's",
	       .help = "File descriptors it may have open."),
	OPTION("servers.NAME.resources.scopes", LISTS,
	       SERVER(conf.needs.by_name[PERMISSION_RESOURCE]), RULE, .form = form_scope,
	       .name_form = form_resource,
	       .example = "{\"file:///srv/private/*\": [files:private]}", .otherwise = "none",
	       NEEDS_TOKENS,
	       .help = "Additional scopes that a token needs to read resources, subscribe to them or complete their URIs, "
		       "by URI, as for tools. URIs are normalized, and case is ignored, as in deny."),
	MAY("resources.allow", RESOURCE, allow, .def = "[\"*\"]", .form = form_resource,
	    .help = "The resources of the server that clients may see, read and subscribe to, by URI; a * matches any "
		    "characters. URIs are normalized first: percent-encodings are decoded, . and .. are resolved. Case "
		    "matters here; in deny it is ignored."),
	MAY("resources.deny", RESOURCE, deny, .def = "[]", .form = form_resource,
	    .example = "[\"file:///srv/private/*\"]", .help = "Exceptions to allow: deny wins."),

	SECTION("servers.NAME.sandbox", FOR_COMMAND,
		.help = "What it, and everything it starts, can reach. See mcpgated.yaml(5), "
			"Sandbox."),
	OPTION("servers.NAME.sandbox.mode", ENUM, SERVER(sandbox), .def = "off",
	       CHOICES({ "off", CONFIG_SANDBOX_OFF }, { "report", CONFIG_SANDBOX_REPORT },
		       { "landlock", CONFIG_SANDBOX_LANDLOCK }),
	       .help = "off: everything its user can reach. landlock: programs, libraries, the few files that every program "
		       "needs, and what is listed here; the kernel refuses the rest. report: as off, but the log says what "
		       "landlock would refuse. The mode must be set explicitly if anything is listed here."),
	OPTION("servers.NAME.sandbox.read", TEXTS, SERVER(sandbox_read), .def = "[]",
	       .form = form_sandbox_path,
	       .help = "Files and directories, with everything below them, that it may read and "
		       "execute: absolute paths that exist."),
	OPTION("servers.NAME.sandbox.write", TEXTS, SERVER(sandbox_write), .def = "[]",
	       .form = form_sandbox_path,
	       .help = "Files and directories that it may read, change, create and remove, but "
		       "not execute."),
	OPTION("servers.NAME.sandbox.connect", PORTS, SERVER(sandbox_connect), .def = "[]",
	       .help = "TCP ports, on any machine, that it may connect to; or any."),
	OPTION("servers.NAME.sandbox.bind", PORTS, SERVER(sandbox_bind), .def = "[]",
	       .help = "TCP ports that it may listen on; or any."),
	OPTION("servers.NAME.sandbox.udp", ENUM, SERVER(sandbox_udp), .def = "names",
	       CHOICES({ "names", CONFIG_UDP_NAMES }, { "none", CONFIG_UDP_NONE },
		       { "any", CONFIG_UDP_ANY }),
	       .help = "UDP, which name lookups use; the kernel cannot restrict it by port. "
		       "names: allowed if connect lists something, otherwise not."),
	OPTION("servers.NAME.sandbox.unix_sockets", BOOL, SERVER(sandbox_unix), .def = "false",
	       .help = "Unix sockets, at any path that its user may use: those of a database, or "
		       "of a container engine."),
	OPTION("servers.NAME.sandbox.gateway", BOOL, SERVER(sandbox_gateway), .def = "false",
	       .help = "Allows connect to list a port of this gateway, which the server can then "
		       "call like any client on this machine."),

	GROUP("endpoints",
	      .help = "Endpoints over several servers, by name, like servers: a client that connects to one finds the "
		      "tools, prompts and resources of all its servers there, with one sign-in. What the configuration says "
		      "of each server (roles, scopes, permissions, arguments, rates, pins) applies there as well."),
	OPTION("endpoints.NAME.servers", LEGS, SERVER(conf.legs), REQUIRED,
	       .example = "[files, wiki]",
	       .help = "The servers, in the order in which lists show them. The names of tools and prompts begin with the "
		       "server's name and two underscores, like files__read; in place of the list, a map sets another "
		       "prefix: {files: {prefix: \"\"}, wiki: {prefix: w_}}. A name with other characters than letters, "
		       "digits, '-' and '_', or with more than 64, is shown with underscores, shortened, and with a short "
		       "hash at its end. Two items that would have one name cannot be reached, and the log says so."),
	OPTION("endpoints.NAME.search", BOOL, SERVER(conf.searches), RULE, .def = "false",
	       .help = "In place of all tools, two are listed: find_tool, which finds tools by what they do, and call_tool, "
		       "which calls one; for endpoints with more tools than a model should read."),
	OPTION("endpoints.NAME.path", SLICE, SERVER(endpoint.path), .form = form_path,
	       .example = "/all/mcp", .otherwise = "/NAME/mcp",
	       .help = "Where clients find it, as for servers."),
	CARD("endpoints.NAME.card"),
	OPTION("endpoints.NAME.enabled", BOOL, SERVER(enabled), .def = "true",
	       .help = "false: the entry is checked but otherwise ignored."),
	OPTION("endpoints.NAME.audience", TEXTS, SERVER(endpoint.place.audience), RULE, .def = "[]",
	       .help = "Further values accepted in a token's aud, besides public_url and path. The "
		       "audience of its servers does not count here."),
	OPTION("endpoints.NAME.clients", TEXTS, SERVER(endpoint.place.clients), RULE, .def = "[]",
	       RELATIONS(NEEDS("auth.mode", .words = "oauth",
			       .why = "it is about tokens from issuers")),
	       .help = "Clients whose tokens are accepted, as for servers."),
	OPTION("endpoints.NAME.scopes", TEXTS, SERVER(endpoint.place.scopes), RULE, .def = "[]",
	       .form = form_scope, NEEDS_TOKENS,
	       .help = "Scopes that a token needs for any request to it. A server that requires "
		       "further ones is left out for callers without them."),
};

const size_t options_count = ARRAY_LEN(options_table);
