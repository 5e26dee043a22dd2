/* SPDX-License-Identifier: Apache-2.0 */
/* The option table. Order is that of the sample file and the manual page. */
#include "config/options.h"

#include "base/check.h"
#include "config/config.h"
#include "obs/log.h"

#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
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

_Static_assert(offsetof(struct server_conf, backoff_max_ms) ==
		       offsetof(struct server_conf, backoff_min_ms) + sizeof(uint64_t),
	       "OPTION_RANGE writes two neighbours");

static const struct option_choice tls_versions[] = {
	{ "1.2", false },
	{ "1.3", true },
	{ NULL, 0 },
};

static const struct option_choice auth_modes[] = {
	{ "none", AUTHORIZATION_NONE },
	{ "token", AUTHORIZATION_TOKEN },
	{ "oauth", AUTHORIZATION_OAUTH },
	{ "anonymous", AUTHORIZATION_ANONYMOUS },
	{ NULL, 0 },
};

static const struct option_choice dpop_modes[] = {
	{ "off", AUTHORIZATION_DPOP_OFF },
	{ "on", AUTHORIZATION_DPOP_ON },
	{ "required", AUTHORIZATION_DPOP_REQUIRED },
	{ NULL, 0 },
};

static const struct option_choice audience_claims[] = {
	{ "aud", false },
	{ "client_id", true },
	{ NULL, 0 },
};

static const struct option_choice client_auths[] = {
	{ "client_secret_basic", CLIENT_SECRET_BASIC },
	{ "client_secret_post", CLIENT_SECRET_POST },
	{ "private_key_jwt", CLIENT_PRIVATE_KEY_JWT },
	{ NULL, 0 },
};

static const struct option_choice facade_modes[] = {
	{ "auto", METADATA_FACADE_AUTO },
	{ "on", METADATA_FACADE_ON },
	{ "off", METADATA_FACADE_OFF },
	{ NULL, 0 },
};

static const struct option_choice reclaims[] = {
	{ "idle", RECLAIM_IDLE },
	{ "never", RECLAIM_NEVER },
	{ NULL, 0 },
};

static const struct option_choice eras[] = {
	{ "auto", ERA_UNKNOWN },
	{ "legacy", ERA_LEGACY },
	{ "modern", ERA_MODERN },
	{ NULL, 0 },
};

static const struct option_choice isolations[] = {
	{ "session", ISOLATION_SESSION },
	{ "principal", ISOLATION_PRINCIPAL },
	{ "shared", ISOLATION_SHARED },
	{ NULL, 0 },
};

static const struct option_choice responses[] = {
	{ "auto", FRONTEND_RESPONSE_AUTO },
	{ "json", FRONTEND_RESPONSE_JSON },
	{ "sse", FRONTEND_RESPONSE_SSE },
	{ NULL, 0 },
};

static const struct option_choice sandboxes[] = {
	{ "off", CONFIG_SANDBOX_OFF },
	{ "landlock", CONFIG_SANDBOX_LANDLOCK },
	{ NULL, 0 },
};

static const struct option_choice udps[] = {
	{ "names", CONFIG_UDP_NAMES },
	{ "none", CONFIG_UDP_NONE },
	{ "any", CONFIG_UDP_ANY },
	{ NULL, 0 },
};

static const struct option_choice pin_modes[] = {
	{ "off", PIN_OFF },
	{ "warn", PIN_WARN },
	{ "enforce", PIN_ENFORCE },
	{ NULL, 0 },
};

static const struct option_choice sanitize_modes[] = {
	{ "keep", SANITIZE_KEEP },
	{ "strip", SANITIZE_STRIP },
	{ "mark", SANITIZE_MARK },
	{ NULL, 0 },
};

static const struct option_choice schema_modes[] = {
	{ "off", false },
	{ "check", true },
	{ NULL, 0 },
};

static const struct option_choice log_levels[] = {
	{ "error", LOG_LEVEL_ERROR },
	{ "warn", LOG_LEVEL_WARN },
	{ "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },
	{ NULL, 0 },
};

static const struct option_choice audit_calls[] = {
	{ "all", false },
	{ "refused", true },
	{ NULL, 0 },
};

static const struct option_choice log_formats[] = {
	{ "text", LOG_FORMAT_TEXT },
	{ "json", LOG_FORMAT_JSON },
	{ NULL, 0 },
};

const struct option options_table[] = {
	{ .path = "include",
	  .type = OPTION_TEXTS,
	  TOP(include),
	  .def = "[]",
	  .example = "[conf.d/*.yaml]",
	  .help = "More files, by path or pattern, relative to the directory of this file; the matches of a "
		  "pattern are sorted by name. They may contain servers, auth.tokens and auth.issuers, "
		  "which are added to those here; a duplicate name is an error. Like this file, only "
		  "their owner may have write access." },
	{ .path = "listen", .type = OPTION_GROUP, .help = "Where clients connect." },
	{ .path = "listen[].address",
	  .type = OPTION_TEXT,
	  LISTEN(address),
	  .def = "127.0.0.1:8808",
	  .help = "IPV4:PORT, [IPV6]:PORT, localhost:PORT, unix:PATH, or systemd:NAME for a socket opened by "
		  "systemd. Port 0 picks a free port. PATH must not be in a directory that a sandboxed "
		  "server may write to." },
	{ .path = "listen[].tls",
	  .type = OPTION_GROUP,
	  .example = "{certificate: /etc/mcpgated/tls.crt, key: /etc/mcpgated/tls.key}",
	  .help = "Enables TLS on this address, with one certificate or a list of several. With several, a "
		  "client gets the first one that matches the name it asks for, or else the first in "
		  "the list. The files are read again on SIGHUP (systemctl reload)." },
	{ .path = "listen[].tls[].certificate",
	  .type = OPTION_TEXT,
	  TLS(certificate),
	  .example = "/etc/mcpgated/tls.crt",
	  .otherwise = "must be given",
	  .help = "Absolute path of a PEM file with the certificate, followed by its intermediate certificates." },
	{ .path = "listen[].tls[].key",
	  .type = OPTION_TEXT,
	  TLS(key),
	  .example = "/etc/mcpgated/tls.key",
	  .otherwise = "must be given",
	  .help = "Absolute path of a PEM file with the certificate's private key, without a passphrase. P-256 "
		  "is fastest." },
	{ .path = "listen[].tls[].client_ca",
	  .type = OPTION_TEXT,
	  TLS(client_ca),
	  .example = "/etc/mcpgated/clients.crt",
	  .otherwise = "clients need no certificate",
	  .help = "Absolute path of a PEM file with CA certificates. Only clients with a certificate issued by "
		  "one of them are accepted. In a list, set it in the first entry only; it applies to "
		  "the whole address." },
	{ .path = "listen[].tls[].min_version",
	  .type = OPTION_ENUM,
	  TLS(is_only_13),
	  .choices = tls_versions,
	  .def = "\"1.2\"",
	  .help = "The oldest TLS version that clients may use. In a list, set it in the first entry only; it "
		  "applies to the whole address." },
	{ .path = "listen[].plaintext",
	  .type = OPTION_BOOL,
	  LISTEN(plaintext),
	  .def = "false",
	  .help = "Allows an address that other machines can reach without encryption, for use behind a TLS "
		  "proxy." },

	{ .path = "listen[].proxy_protocol",
	  .type = OPTION_BOOL,
	  LISTEN(proxy_protocol),
	  .def = "false",
	  .help = "Every connection must begin with a PROXY protocol header, version 1 or 2, and counts as "
		  "coming from the client that the header names. Make sure that only the proxy can "
		  "connect." },

	{ .path = "admin", .type = OPTION_SECTION, .help = "What the operator connects to." },
	{ .path = "admin.address",
	  .type = OPTION_TEXT,
	  TOP(admin_address),
	  .def = "auto",
	  .help = "unix:PATH: the socket for mcpgatectl, accessible only to the daemon's user and root. auto: "
		  "admin.sock in the runtime directory that systemd made for the daemon "
		  "(/run/mcpgated), else in mcpgated/ below XDG_RUNTIME_DIR, else, for root, in "
		  "/run/mcpgated; if there is none of these, or another daemon uses the socket, there "
		  "is no admin socket. off: no admin socket." },
	{ .path = "admin.metrics",
	  .type = OPTION_TEXT,
	  TOP(admin_metrics),
	  .example = "127.0.0.1:9464",
	  .otherwise = "none",
	  .help = "An additional address, loopback or unix:PATH, that answers only GET /metrics, for "
		  "Prometheus." },
	{ .path = "admin.page",
	  .type = OPTION_TEXT,
	  TOP(admin_page),
	  .example = "127.0.0.1:9090",
	  .otherwise = "none",
	  .help = "An additional loopback address for the status page. Every program on this machine can read "
		  "there what the page shows (servers, callers, the standard error of servers). The "
		  "admin socket serves the page as well, to those who may open it." },
	{ .path = "admin.page_token",
	  .type = OPTION_TEXT,
	  TOP(admin_page_token),
	  .example = "HEX",
	  .otherwise = "the page at admin.page is read-only",
	  .help = "The SHA-256 of a token in hexadecimal, as printed by mcpgatectl token new. Whoever enters "
		  "the token on that page may end sessions, restart servers, decide on pins and stop "
		  "the daemon." },

	{ .path = "public_url",
	  .type = OPTION_SLICE,
	  AUTH(public_url),
	  .example = "https://mcp.example.com",
	  .otherwise = "none",
	  .help = "Where clients reach the gateway if not at a listen address: an origin, plus a path if a "
		  "proxy publishes the gateway below one, like https://example.com/gw. The proxy may "
		  "strip that path or keep it." },
	{ .path = "hosts",
	  .type = OPTION_TEXTS,
	  TOP(hosts),
	  .def = "[]",
	  .help = "More names to accept in the Host header, without port. Loopback names, the listen addresses "
		  "and the host of public_url are always accepted." },
	{ .path = "origins",
	  .type = OPTION_TEXTS,
	  TOP(frontend.origins),
	  .def = "[]",
	  .help = "Web origins whose pages may send requests, like https://app.example.com, "
		  "http://localhost:6274 or chrome-extension://ID. Always accepted are pages from the host and port that the "
		  "request is sent to, pages from public_url, and requests without an Origin header. "
		  "Another port is another origin, also on this machine." },

	{ .path = "trusted_proxies",
	  .type = OPTION_TEXTS,
	  TOP(trusted_proxies),
	  .def = "[]",
	  .help = "Proxies whose X-Forwarded-For header, or Forwarded if that is missing, identifies the "
		  "client: addresses, networks like 10.0.0.0/8, or unix for connections over a unix "
		  "socket. A proxy that sets only Forwarded must remove X-Forwarded-For. From anyone "
		  "else these headers are ignored. A proxy on another machine that is not listed gets "
		  "the share of a single address (limits.connections)." },

#include "config/options_auth.def"
#include "config/options_roles.def"

	{ .path = "limits",
	  .type = OPTION_SECTION,
	  .help = "What one client, or all of them together, may use." },
	{ .path = "limits.connections",
	  .type = OPTION_COUNT,
	  TOP(http.max_connections),
	  .def = "10000",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open connections. Lower if the daemon may not open enough files: three descriptors for each "
		  "of limits.processes, but at most half of all, are reserved for servers. At the "
		  "limit, a new connection displaces one that waits for a request or for the rest of a "
		  "request head or handshake: of the address with the most connections, the one that "
		  "has waited longest. While half are open, one address may have at most a quarter; "
		  "IPv6 addresses count by their first 64 bits. trusted_proxies and this machine have "
		  "no such share, since many clients may come from there." },
	{ .path = "limits.sessions",
	  .type = OPTION_COUNT,
	  TOP(sessions.max_sessions),
	  .def = "10000",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open sessions. At the limit, a new session displaces the longest-idle session (no call, no "
		  "stream) of the caller with the most sessions. If every session is in use, or was "
		  "within the last two seconds, the new one is refused, unless another caller has at "
		  "least two more than the new one's. While half are open, callers without a token may "
		  "have at most a quarter per address, or eight if that is more; IPv6 addresses count "
		  "by their first 64 bits. This machine has no such share, since many clients may come "
		  "from there." },
	{ .path = "limits.sessions_per_principal",
	  .type = OPTION_COUNT,
	  TOP(sessions.max_per_principal),
	  .def = "100",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open sessions of one caller with a token; beyond that, one of the caller's own idle "
		  "sessions is displaced, as above. Callers without a token are told apart by address; "
		  "for them see limits.sessions." },
	{ .path = "limits.processes",
	  .type = OPTION_COUNT,
	  TOP(max_processes),
	  .def = "256",
	  .min = "1",
	  .max = "100000",
	  .help = "Processes of all servers together." },
	{ .path = "limits.header_bytes",
	  .type = OPTION_SIZE,
	  TOP(http.header_bytes),
	  .def = "16KiB",
	  .min = "1KiB",
	  .max = "1MiB",
	  .help = "Size of the head of one HTTP request." },
	{ .path = "limits.message",
	  .type = OPTION_SIZE,
	  TOP(http.body_bytes),
	  .def = "4MiB",
	  .min = "1KiB",
	  .max = "1GiB",
	  .help = "Size of one message from a client, which is the body of a request." },
	{ .path = "limits.response",
	  .type = OPTION_SIZE,
	  TOP(response_bytes),
	  .def = "16MiB",
	  .min = "1KiB",
	  .max = "1GiB",
	  .help = "Size of one message from a server, which is a line of its standard output. A call "
		  "with a larger answer fails." },
	{ .path = "limits.json_depth",
	  .type = OPTION_COUNT,
	  TOP(json_depth),
	  .def = "128",
	  .min = "8",
	  .max = "1024",
	  .help = "Nesting depth of arrays and objects in a message." },
	{ .path = "limits.header_timeout",
	  .type = OPTION_DURATION,
	  TOP(http.header_timeout_ms),
	  .def = "10s",
	  .min = "1ms",
	  .max = "1h",
	  .help = "From the first byte of a request to the end of its head. While half of limits.connections "
		  "are open, a new connection must also send its first byte within this time." },
	{ .path = "limits.body_timeout",
	  .type = OPTION_DURATION,
	  TOP(http.body_timeout_ms),
	  .def = "30s",
	  .min = "1ms",
	  .max = "1h",
	  .help = "From the end of the head to the end of the body." },
	{ .path = "limits.idle_timeout",
	  .type = OPTION_DURATION,
	  TOP(http.idle_timeout_ms),
	  .def = "120s",
	  .min = "1ms",
	  .max = "1d",
	  .help = "A connection without a request is closed after this time, or earlier if limits.connections "
		  "is reached." },

#include "config/options_sessions.def"
	{ .path = "drain_delay",
	  .type = OPTION_DURATION,
	  TOP(drain_delay_ms),
	  .def = "0",
	  .min = "0",
	  .max = "1h",
	  .help = "When the daemon stops, /readyz answers 503 for this long before anything ends, so that load "
		  "balancers stop sending traffic; everything else is still served, with `Connection: "
		  "close`. A second signal cuts it short. systemd is told how long the whole stop may "
		  "take, whatever TimeoutStopSec says." },
	{ .path = "drain_timeout",
	  .type = OPTION_DURATION,
	  TOP(drain_timeout_ms),
	  .def = "30s",
	  .min = "0",
	  .max = "1d",
	  .help = "When the daemon stops, how long calls in flight may continue and slow clients may take to "
		  "read their answers." },

#include "config/options_audit.def"
#include "config/options_traces.def"
	{ .path = "log", .type = OPTION_SECTION, .help = "The daemon's own log." },
	{ .path = "log.level",
	  .type = OPTION_ENUM,
	  TOP(log_level),
	  .choices = log_levels,
	  .def = "info",
	  .help = "The least important level that is logged." },
	{ .path = "log.format",
	  .type = OPTION_ENUM,
	  TOP(log_format),
	  .choices = log_formats,
	  .def = "text",
	  .help = "text: event key=value; json: one object per line." },
	{ .path = "log.access",
	  .type = OPTION_BOOL,
	  TOP(http.logs_access),
	  .def = "false",
	  .help = "Logs a line for each request: the client, the request, the status, and the time until its "
		  "answer began. The query string is left out." },
	{ .path = "log.payloads",
	  .type = OPTION_BOOL,
	  TOP(log_payloads),
	  .def = "false",
	  .help = "Logs the beginning of each message, between clients and the gateway and between the gateway and "
		  "servers. To find out what goes wrong: messages may hold secrets, those of servers before `redact`." },
	{ .path = "log.target",
	  .type = OPTION_TEXT,
	  TOP(log_target),
	  .def = "stderr",
	  .help = "stderr, journal (standard error that systemd collects), or the absolute path of a file, "
		  "which must not be in a directory that a sandboxed server may write to." },

	{ .path = "defaults",
	  .type = OPTION_GROUP,
	  .help = "Any key of a server, for all servers that do not set it themselves. Variables in env and "
		  "times in tool_timeout are merged with the server's own." },

	{ .path = "servers",
	  .type = OPTION_GROUP,
	  .help = "The MCP servers to run, by name: lowercase letters, digits, '-' and '_'." },
	{ .path = "servers.NAME.command",
	  .type = OPTION_TEXT,
	  SERVER(command),
	  .example = "mcpgated-demo",
	  .otherwise = "must be given",
	  .help = "The program to start: a path, or a name that is looked up in PATH. No shell is involved." },
	{ .path = "servers.NAME.args",
	  .type = OPTION_TEXTS,
	  SERVER(args),
	  .reader = OPTION_FOR_CHILD,
	  .def = "[]",
	  .help = "Its arguments." },
	{ .path = "servers.NAME.env",
	  .type = OPTION_ENV,
	  .reader = OPTION_FOR_CHILD,
	  .example = "{API_TOKEN: {file: /etc/mcpgated/api.token}, MODE: fast}",
	  .otherwise = "none",
	  .help = "Environment variables for the server. A value may be a text, or {file: PATH}, {env: NAME} "
		  "or {credential: NAME} (systemd); files are read again for each process. A text may "
		  "contain ${claim:NAME}, the value of a claim in the caller's token, like "
		  "${claim:sub}; not with isolation shared. A caller without that claim is refused. A "
		  "session keeps the values of the token that opened it. A static token has only sub, "
		  "its name." },
	{ .path = "servers.NAME.inherit_env",
	  .type = OPTION_TEXTS,
	  SERVER(inherit_env),
	  .def = "[PATH, HOME, LANG, TZ, HTTP_PROXY, HTTPS_PROXY, NO_PROXY, ALL_PROXY, http_proxy, "
		 "https_proxy, no_proxy, all_proxy, SSL_CERT_FILE, SSL_CERT_DIR, "
		 "NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE]",
	  .help = "Variables that it gets from the daemon's environment if they are set there; it gets no "
		  "others. In the default, those after TZ are the usual ones for proxies and CA "
		  "certificates; if a proxy URL contains a password, the server gets it too." },
	{ .path = "servers.NAME.cwd",
	  .type = OPTION_TEXT,
	  SERVER(cwd),
	  .example = "/var/lib/mcpgated/demo",
	  .otherwise = "the daemon's",
	  .help = "The working directory it is started in." },
	{ .path = "servers.NAME.user",
	  .type = OPTION_TEXT,
	  SERVER(user),
	  .example = "mcp-demo",
	  .otherwise = "the daemon's",
	  .help = "The user it runs as, with that user's groups. Requires root. HOME is set to that user's "
		  "home directory unless env sets it." },
	{ .path = "servers.NAME.umask",
	  .type = OPTION_TEXT,
	  SERVER(umask),
	  .example = "\"0077\"",
	  .otherwise = "the daemon's",
	  .help = "Its umask, in octal." },
	{ .path = "servers.NAME.path",
	  .type = OPTION_SLICE,
	  SERVER(endpoint.path),
	  .example = "/demo/mcp",
	  .otherwise = "/NAME/mcp",
	  .help = "Where clients find it. HTTP+SSE is next to it: /demo/sse and /demo/message." },
	{ .path = "servers.NAME.enabled",
	  .type = OPTION_BOOL,
	  SERVER(enabled),
	  .def = "true",
	  .help = "false: the entry is checked but otherwise ignored." },
	{ .path = "servers.NAME.isolation",
	  .type = OPTION_ENUM,
	  SERVER(conf.isolation),
	  .choices = isolations,
	  .def = "session",
	  .help = "Whom one process serves. session: one session; works for every server. principal: all "
		  "sessions of one caller (without authorization, all callers count as one); if a "
		  "server of the older revisions may send requests to its client, its process handles "
		  "one call at a time. shared: everyone; for servers that keep no state per client. A "
		  "server of the older revisions then cannot send requests to clients; one of "
		  "2026-07-28 can. With principal and shared there are several processes with many "
		  "sessions each. With shared there are no tasks of 2025-11-25 (a tool that can only "
		  "be called as a task answers with an error) and no log messages, and requests that a "
		  "server of the older revisions sends while no call is in flight, such as for roots "
		  "at start, are refused. A client of 2026-07-28 has no session: with session it is "
		  "served as with principal, so without authorization all such clients share processes." },
	{ .path = "servers.NAME.era",
	  .type = OPTION_ENUM,
	  SERVER(conf.era),
	  .choices = eras,
	  .def = "auto",
	  .help = "The era of MCP that the gateway speaks to the server, whatever its clients speak. legacy: "
		  "with initialize, up to 2025-11-25. modern: 2026-07-28. auto: the server is sent "
		  "initialize; if it refuses that or has never answered, or when a client of "
		  "2026-07-28 comes, a separate process is sent server/discover and then stopped, at "
		  "most once a day. A server that speaks both eras, as those built with the current "
		  "SDKs do, is spoken to as modern from then on." },
	{ .path = "servers.NAME.assume_no_server_requests",
	  .type = OPTION_BOOL,
	  SERVER(conf.never_asks),
	  .def = "false",
	  .help = "With isolation principal: asserts that the server never sends requests to clients "
		  "(sampling, elicitation, roots). It is told that clients support none of them, and "
		  "its processes may handle many calls at a time." },
	{ .path = "servers.NAME.progress_while_waiting",
	  .is_rule = true,
	  .type = OPTION_BOOL,
	  SERVER(conf.tells_progress),
	  .def = "false",
	  .help = "While the server waits for a client of 2026-07-28 to return with the answers to its "
		  "requests, it is sent progress every 20 s, for each of those requests that has a "
		  "progress token. For servers that wait longer when they receive progress, and would "
		  "give up after a minute without it." },
	{ .path = "servers.NAME.pool", .type = OPTION_SECTION, .help = "Its processes." },
	{ .path = "servers.NAME.pool.max",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.pool_max),
	  .def = "64",
	  .min = "1",
	  .max = "100000",
	  .help = "Maximum number of processes." },
	{ .path = "servers.NAME.pool.min",
	  .type = OPTION_COUNT,
	  SERVER(conf.pool_min),
	  .def = "0",
	  .min = "0",
	  .max = "1000",
	  .help = "Processes that are kept running and ready, whether needed or not; with isolation shared." },
	{ .path = "servers.NAME.pool.warm",
	  .type = OPTION_COUNT,
	  SERVER(conf.warm),
	  .def = "0",
	  .min = "0",
	  .max = "1000",
	  .help = "Processes that are started before a session needs them, for servers that start slowly; with "
		  "isolation session and principal. They count toward pool.max." },
	{ .path = "servers.NAME.pool.reclaim",
	  .type = OPTION_ENUM,
	  SERVER(conf.reclaims),
	  .choices = reclaims,
	  .def = "idle",
	  .help = "idle: when no more processes may run (pool.max, limits.processes), a session that has been "
		  "idle for two seconds gives up its process to one that needs it, and gets a fresh "
		  "process with its next request; what the old process kept in memory is lost. never: "
		  "a session keeps its process for its lifetime, and latecomers are refused. With "
		  "isolation session." },
	{ .path = "servers.NAME.pool.share",
	  .is_rule = true,
	  .type = OPTION_PERCENT,
	  SERVER(conf.share_percent),
	  .def = "50%",
	  .min = "1%",
	  .max = "100%",
	  .help = "The part of pool.max, and at least one process, that a caller may have before its processes "
		  "are the first to be reclaimed. With isolation session, while another caller waits, "
		  "none keeps two or more processes more than the one that waits: after a wait of two "
		  "seconds an excess process is reclaimed as soon as it is idle; if its calls overlap, "
		  "it gets no more of them after four seconds and is reclaimed once it has answered "
		  "the rest. With isolation principal, a caller below its share gets what another has "
		  "beyond its own." },
	{ .path = "servers.NAME.pool.sleep_after",
	  .type = OPTION_DURATION,
	  SERVER(conf.sleep_after_ms),
	  .def = "0",
	  .min = "0",
	  .max = "365d",
	  .help = "If a session is idle for this long, its process is stopped; the next request gets a fresh "
		  "one. 0: never. With isolation session." },
	{ .path = "servers.NAME.pool.sessions_per_process",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.sessions_per_process),
	  .def = "64",
	  .min = "1",
	  .max = "1000000",
	  .help = "Sessions that share a process before another one is started." },
	{ .path = "servers.NAME.pool.requests_per_process",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.calls_per_process),
	  .def = "64",
	  .min = "1",
	  .max = "65536",
	  .help = "Concurrent calls in one shared process; beyond that another process is started." },
	{ .path = "servers.NAME.pool.queue",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.queue_calls),
	  .def = "256",
	  .min = "0",
	  .max = "65536",
	  .help = "Calls that may wait while all shared processes have as many calls as they may. Further "
		  "calls are refused, to be retried later." },
	{ .path = "servers.NAME.pool.queue_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.queue_timeout_ms),
	  .def = "10s",
	  .min = "1ms",
	  .max = "1h",
	  .help = "How long a call waits for a busy process. If it waits for a process that is being started, "
		  "it waits as long as the start takes." },
	{ .path = "servers.NAME.pool.idle_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.idle_ms),
	  .def = "5m",
	  .min = "1ms",
	  .max = "365d",
	  .help = "A shared process is stopped when it has had no call for this long." },
	{ .path = "servers.NAME.pool.remember",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.remember_ms),
	  .def = "10m",
	  .min = "0",
	  .max = "24h",
	  .help = "After the last shared process was stopped for lack of calls, what it said about the server, "
		  "and its lists, are served from memory for this long without starting a process. "
		  "Clients are not notified of changes meanwhile. 0: never." },
	{ .path = "servers.NAME.pool.max_age",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.max_age_ms),
	  .def = "0",
	  .min = "0",
	  .max = "365d",
	  .help = "At this age a shared process gets no more calls, and is stopped when it has finished those "
		  "it has. 0: never." },
#include "config/options_start.def"
	{ .path = "servers.NAME.request_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.request_timeout_ms),
	  .def = "5m",
	  .min = "1ms",
	  .max = "7d",
	  .help = "The longest silence in a call; each progress notification from the server restarts it." },
	{ .path = "servers.NAME.request_timeout_max",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.request_timeout_max_ms),
	  .def = "60m",
	  .min = "1ms",
	  .max = "7d",
	  .help = "The longest a call may take, regardless of progress." },
#include "config/options_policy.def"
#include "config/options_arguments.def"
	{ .path = "servers.NAME.tool_timeout",
	  .is_rule = true,
	  .type = OPTION_TIMEOUTS,
	  SERVER(conf.tool_timeouts),
	  .min = "1ms",
	  .max = "7d",
	  .example = "{deploy: 10m}",
	  .otherwise = "none",
	  .help = "request_timeout for single tools." },
	{ .path = "servers.NAME.stop",
	  .is_rule = true,
	  .type = OPTION_SECTION,
	  .help = "How a process is stopped." },
	{ .path = "servers.NAME.stop.grace",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.stop_grace_ms),
	  .def = "5s",
	  .min = "0",
	  .max = "10m",
	  .help = "From closing its standard input to SIGTERM." },
	{ .path = "servers.NAME.stop.term",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.stop_term_ms),
	  .def = "5s",
	  .min = "0",
	  .max = "10m",
	  .help = "From SIGTERM to SIGKILL." },
	{ .path = "servers.NAME.resources",
	  .is_rule = true,
	  .type = OPTION_SECTION,
	  .help = "Resource limits for each of its processes together with everything that process starts. All "
		  "except open_files require a cgroup (version 2) of the daemon's own, which the "
		  "installed unit has. Also which of the MCP resources that the server offers may be "
		  "used: allow and deny." },
	{ .path = "servers.NAME.resources.memory",
	  .type = OPTION_SIZE,
	  SERVER(memory_bytes),
	  .min = "1MiB",
	  .max = "1048576GiB",
	  .example = "512MiB",
	  .otherwise = "no limit",
	  .help = "Memory, without swap. Over the limit, the process and everything it started are killed." },
	{ .path = "servers.NAME.resources.processes",
	  .type = OPTION_COUNT,
	  SERVER(processes),
	  .min = "1",
	  .max = "4000000",
	  .example = "64",
	  .otherwise = "no limit",
	  .help = "Processes and threads." },
	{ .path = "servers.NAME.resources.cpu",
	  .type = OPTION_PERCENT,
	  SERVER(cpu_percent),
	  .min = "1%",
	  .max = "100000%",
	  .example = "100%",
	  .otherwise = "no limit",
	  .help = "CPU time: 100% is one processor." },
	{ .path = "servers.NAME.resources.open_files",
	  .type = OPTION_COUNT,
	  SERVER(open_files),
	  .min = "16",
	  .max = "1000000",
	  .example = "1024",
	  .otherwise = "the daemon's",
	  .help = "File descriptors it may have open." },
#include "config/options_resources.def"
#include "config/options_sandbox.def"
};

const size_t options_count = ARRAY_LEN(options_table);
