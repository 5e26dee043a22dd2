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
	  .help = "Further files, by path or pattern, relative to the directory of this one; a pattern's are sorted by name. They "
		  "may have servers, auth.tokens and auth.issuers, which are added to those here; a name that is there twice is "
		  "refused. Like this one they must be writable for their owner alone." },
	{ .path = "listen", .type = OPTION_GROUP, .help = "Where clients connect." },
	{ .path = "listen[].address",
	  .type = OPTION_TEXT,
	  LISTEN(address),
	  .def = "127.0.0.1:8808",
	  .help = "IPV4:PORT, [IPV6]:PORT, localhost:PORT, unix:PATH, or systemd:NAME for a socket "
		  "that systemd opened. Port 0 takes a free one. PATH is not in a directory that a server in a sandbox "
		  "may write." },
	{ .path = "listen[].tls",
	  .type = OPTION_GROUP,
	  .example = "{certificate: /etc/mcpgated/tls.crt, key: /etc/mcpgated/tls.key}",
	  .help = "Makes the address speak TLS: one certificate, or a list of several. Of several a "
		  "client gets the first that is for the name it asks for, and the first of all if "
		  "none is. The files are read again on SIGHUP (systemctl reload)." },
	{ .path = "listen[].tls[].certificate",
	  .type = OPTION_TEXT,
	  TLS(certificate),
	  .example = "/etc/mcpgated/tls.crt",
	  .otherwise = "must be given",
	  .help = "The absolute path of a file in PEM form: the certificate, and behind it those that lead to its "
		  "authority." },
	{ .path = "listen[].tls[].key",
	  .type = OPTION_TEXT,
	  TLS(key),
	  .example = "/etc/mcpgated/tls.key",
	  .otherwise = "must be given",
	  .help = "The absolute path of a file in PEM form: the private key of the certificate, without passphrase. P-256 "
		  "is the fastest." },
	{ .path = "listen[].tls[].client_ca",
	  .type = OPTION_TEXT,
	  TLS(client_ca),
	  .example = "/etc/mcpgated/clients.crt",
	  .otherwise = "clients need no certificate",
	  .help = "The absolute path of a file in PEM form: authorities. Only clients with a certificate of one of them "
		  "are let in. In a list, only in its first entry, for all of the address." },
	{ .path = "listen[].tls[].min_version",
	  .type = OPTION_ENUM,
	  TLS(is_only_13),
	  .choices = tls_versions,
	  .def = "\"1.2\"",
	  .help = "The oldest version of TLS that clients may speak. In a list, only in its first "
		  "entry, for all of the address." },
	{ .path = "listen[].plaintext",
	  .type = OPTION_BOOL,
	  LISTEN(plaintext),
	  .def = "false",
	  .help = "Allows an address that other machines can reach although the traffic is not "
		  "encrypted: for a TLS proxy in front." },

	{ .path = "listen[].proxy_protocol",
	  .type = OPTION_BOOL,
	  LISTEN(proxy_protocol),
	  .def = "false",
	  .help = "Every connection begins with a header of the PROXY protocol, version 1 or 2, and is "
		  "from the client that it names. See to it that nobody but the proxy can connect." },

	{ .path = "admin", .type = OPTION_SECTION, .help = "What the operator connects to." },
	{ .path = "admin.address",
	  .type = OPTION_TEXT,
	  TOP(admin_address),
	  .def = "auto",
	  .help = "unix:PATH: the socket of mcpgatectl, for the daemon's user and root alone. auto: "
		  "admin.sock in the directory that systemd made for the daemon (/run/mcpgated), else in "
		  "mcpgated/ below XDG_RUNTIME_DIR, else for root in /run/mcpgated; without any, or if "
		  "another daemon has it, there is none. off: none." },
	{ .path = "admin.metrics",
	  .type = OPTION_TEXT,
	  TOP(admin_metrics),
	  .example = "127.0.0.1:9464",
	  .otherwise = "none",
	  .help = "A further address, loopback or unix:PATH, that answers GET /metrics for Prometheus and "
		  "nothing else." },
	{ .path = "admin.page",
	  .type = OPTION_TEXT,
	  TOP(admin_page),
	  .example = "127.0.0.1:9090",
	  .otherwise = "none",
	  .help = "A further address, loopback, that has the status page for browsers. What the page shows (servers, "
		  "callers, what servers write to standard error) every program of this machine can read there; the "
		  "admin socket has the page, too, for those who may open it." },
	{ .path = "admin.page_token",
	  .type = OPTION_TEXT,
	  TOP(admin_page_token),
	  .example = "HEX",
	  .otherwise = "the page at admin.page only shows",
	  .help = "The SHA-256 of a token in hexadecimal digits, as mcpgatectl token new prints it: who enters the "
		  "token on that page may end sessions, restart servers, decide on pins and stop the daemon." },

	{ .path = "public_url",
	  .type = OPTION_SLICE,
	  AUTH(public_url),
	  .example = "https://mcp.example.com",
	  .otherwise = "none",
	  .help = "Where clients find the gateway, if it is not a listen address: an origin, and a path if a proxy has "
		  "the gateway below one, like https://example.com/gw. The proxy may take that path away or not." },
	{ .path = "hosts",
	  .type = OPTION_TEXTS,
	  TOP(hosts),
	  .def = "[]",
	  .help = "Further names that a Host header may have, without port. The loopback names, the listen "
		  "addresses and the host of public_url are always accepted." },
	{ .path = "origins",
	  .type = OPTION_TEXTS,
	  TOP(frontend.origins),
	  .def = "[]",
	  .help = "Web origins whose pages may call, like https://app.example.com or http://localhost:6274. "
		  "Always accepted are pages of the host and port that the request is for, those of public_url, and "
		  "requests without an Origin header. Another port, of this machine too, is another origin." },

	{ .path = "trusted_proxies",
	  .type = OPTION_TEXTS,
	  TOP(trusted_proxies),
	  .def = "[]",
	  .help = "Proxies whose X-Forwarded-For, or without one Forwarded, tells who the client is: "
		  "addresses, networks like 10.0.0.0/8, or unix for whoever comes over a unix "
		  "socket. A proxy that writes Forwarded alone has to remove the other. From "
		  "everybody else these fields mean nothing. A proxy on another machine that is not "
		  "listed has the share of one address (limits.connections)." },

#include "config/options_auth.def"
#include "config/options_roles.def"

	{ .path = "limits",
	  .type = OPTION_SECTION,
	  .help = "What one client, or all of them, may use." },
	{ .path = "limits.connections",
	  .type = OPTION_COUNT,
	  TOP(http.max_connections),
	  .def = "10000",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open connections. Fewer where the daemon may not open so many files: three for each of "
		  "limits.processes, but at most half, are for the servers. At the limit one that waits for "
		  "a request, or for the rest of a head or handshake, is closed for a new one: first of the "
		  "address that has most, longest wait first. While half are open, one address has at most "
		  "a quarter; IPv6 counts by its first 64 bits. trusted_proxies and this machine have no "
		  "such share: many clients may come from there." },
	{ .path = "limits.sessions",
	  .type = OPTION_COUNT,
	  TOP(sessions.max_sessions),
	  .def = "10000",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open sessions. With more, the one that has been idle for longest, without call and stream, ends for "
		  "the new one, first of the caller who has most; where all are in use, or were within two seconds, the "
		  "new one is refused, unless somebody has two more than its caller. While half are open, callers "
		  "without a token have a quarter from one address at most, or eight; IPv6 counts by its first 64 "
		  "bits. This machine has no such share: many clients may come from there." },
	{ .path = "limits.sessions_per_principal",
	  .type = OPTION_COUNT,
	  TOP(sessions.max_per_principal),
	  .def = "100",
	  .min = "1",
	  .max = "1000000",
	  .help = "Open sessions of one caller with a token; one of his own ends for another one, as above. Callers "
		  "without a token are told apart by their address; for them see limits.sessions." },
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
	  .help = "The head of one HTTP request." },
	{ .path = "limits.message",
	  .type = OPTION_SIZE,
	  TOP(http.body_bytes),
	  .def = "4MiB",
	  .min = "1KiB",
	  .max = "1GiB",
	  .help = "One message from a client: the body of a request." },
	{ .path = "limits.response",
	  .type = OPTION_SIZE,
	  TOP(response_bytes),
	  .def = "16MiB",
	  .min = "1KiB",
	  .max = "1GiB",
	  .help = "One message from a server: a line of its standard output." },
	{ .path = "limits.json_depth",
	  .type = OPTION_COUNT,
	  TOP(json_depth),
	  .def = "128",
	  .min = "8",
	  .max = "1024",
	  .help = "Nested arrays and objects in a message." },
	{ .path = "limits.header_timeout",
	  .type = OPTION_DURATION,
	  TOP(http.header_timeout_ms),
	  .def = "10s",
	  .min = "1ms",
	  .max = "1h",
	  .help = "From the first byte of a request to the end of its head. While half of "
		  "limits.connections are open, a new connection has as long for its first byte." },
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
	  .help = "A connection without a request is closed after this time; earlier, where "
		  "limits.connections are open." },

#include "config/options_sessions.def"
	{ .path = "drain_delay",
	  .type = OPTION_DURATION,
	  TOP(drain_delay_ms),
	  .def = "0",
	  .min = "0",
	  .max = "1h",
	  .help = "When the daemon stops, /readyz answers 503 for so long before anything ends, so that balancers send "
		  "nobody any more; all else is served, with `Connection: close`. A second signal ends it. "
		  "systemd is told how long the whole stop may take, whatever TimeoutStopSec says." },
	{ .path = "drain_timeout",
	  .type = OPTION_DURATION,
	  TOP(drain_timeout_ms),
	  .def = "30s",
	  .min = "0",
	  .max = "1d",
	  .help = "How long calls in flight may go on, and slow clients may take their answers, when the "
		  "daemon stops." },

#include "config/options_audit.def"
#include "config/options_traces.def"
	{ .path = "log", .type = OPTION_SECTION, .help = "The daemon's own log." },
	{ .path = "log.level",
	  .type = OPTION_ENUM,
	  TOP(log_level),
	  .choices = log_levels,
	  .def = "info",
	  .help = "The least important lines that are written." },
	{ .path = "log.format",
	  .type = OPTION_ENUM,
	  TOP(log_format),
	  .choices = log_formats,
	  .def = "text",
	  .help = "text: event key=value; json: one object a line." },
	{ .path = "log.access",
	  .type = OPTION_BOOL,
	  TOP(http.logs_access),
	  .def = "false",
	  .help = "A line for each request: who, what, the status, and how long its answer took to begin. It has the path "
		  "without what follows a question mark." },
	{ .path = "log.target",
	  .type = OPTION_TEXT,
	  TOP(log_target),
	  .def = "stderr",
	  .help = "stderr, journal (standard error as well, which systemd takes there), or a file given by its absolute path; "
		  "not in a directory that a server in a sandbox may write." },

	{ .path = "defaults",
	  .type = OPTION_GROUP,
	  .help = "Any key of a server, for all servers that do not have it themselves. Variables "
		  "of env and times of tool_timeout are joined with the server's own." },

	{ .path = "servers",
	  .type = OPTION_GROUP,
	  .help = "The MCP servers that are started, by name: small letters, digits, '-' and '_'." },
	{ .path = "servers.NAME.command",
	  .type = OPTION_TEXT,
	  SERVER(command),
	  .example = "mcpgated-demo",
	  .otherwise = "must be given",
	  .help = "The program: a path, or a name that is looked up in PATH. No shell is involved." },
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
	  .help = "Variables of its environment. Instead of a text a value may be {file: PATH}, "
		  "{env: NAME} or {credential: NAME} (of systemd); files are read again for each process. A text may hold "
		  "${claim:NAME}: what the caller's token says, like ${claim:sub}; not with isolation "
		  "shared. Who has no such claim is refused. A session keeps what the token that opened it "
		  "said. A static token has sub alone, its name." },
	{ .path = "servers.NAME.inherit_env",
	  .type = OPTION_TEXTS,
	  SERVER(inherit_env),
	  .def = "[PATH, HOME, LANG, TZ, HTTP_PROXY, HTTPS_PROXY, NO_PROXY, ALL_PROXY, http_proxy, "
		 "https_proxy, no_proxy, all_proxy, SSL_CERT_FILE, SSL_CERT_DIR, "
		 "NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE]",
	  .help = "Variables that it gets from the daemon's environment, as far as they are set there; "
		  "no others. Those of the default behind TZ are the usual ones for proxies and "
		  "authorities; a proxy with a password in its URL is told to the server with them." },
	{ .path = "servers.NAME.cwd",
	  .type = OPTION_TEXT,
	  SERVER(cwd),
	  .example = "/var/lib/mcpgated/demo",
	  .otherwise = "the daemon's",
	  .help = "The directory it is started in." },
	{ .path = "servers.NAME.user",
	  .type = OPTION_TEXT,
	  SERVER(user),
	  .example = "mcp-demo",
	  .otherwise = "the daemon's",
	  .help = "The user it runs as, with that user's groups. Only root may say this. HOME "
		  "is then that user's, unless env has another." },
	{ .path = "servers.NAME.umask",
	  .type = OPTION_TEXT,
	  SERVER(umask),
	  .example = "\"0077\"",
	  .otherwise = "the daemon's",
	  .help = "The rights that its new files do not get, in octal." },
	{ .path = "servers.NAME.path",
	  .type = OPTION_SLICE,
	  SERVER(endpoint.path),
	  .example = "/demo/mcp",
	  .otherwise = "/NAME/mcp",
	  .help = "Where clients find it. HTTP+SSE is beside it: /demo/sse and /demo/message." },
	{ .path = "servers.NAME.enabled",
	  .type = OPTION_BOOL,
	  SERVER(enabled),
	  .def = "true",
	  .help = "false: as if the entry were not there, but still checked." },
	{ .path = "servers.NAME.isolation",
	  .type = OPTION_ENUM,
	  SERVER(conf.isolation),
	  .choices = isolations,
	  .def = "session",
	  .help = "Whom one process serves. session: one session; right for every server. principal: "
		  "all sessions of one caller (without authorization everybody is the same one); where a server of the "
		  "older revisions may ask its client something, a process has one call at a time. shared: everybody; for "
		  "servers without state of a client's own. One of the older revisions cannot ask clients anything then; "
		  "one of 2026-07-28 can. With the last two there are several processes with many sessions each; "
		  "with shared there are no tasks of 2025-11-25 (a tool that takes no other call answers with an error) and no log messages; what a server of the older revisions asks while no "
		  "call is in work, as some ask for roots when they start, is refused. A client of 2026-07-28 has no "
		  "session: with session it is served as with principal, so that without authorization all such clients "
		  "share processes." },
	{ .path = "servers.NAME.era",
	  .type = OPTION_ENUM,
	  SERVER(conf.era),
	  .choices = eras,
	  .def = "auto",
	  .help = "The era of MCP that the server is spoken to in, whatever its clients speak. legacy: with initialize, up "
		  "to 2025-11-25. modern: 2026-07-28. auto: it is asked to initialize; if it refuses that or has never "
		  "answered, or a client of 2026-07-28 comes, a process of its own is asked for server/discover and then "
		  "stopped, at most once a day. One that answers in either era, as those made with the current SDKs do, is "
		  "spoken to as modern from then on." },
	{ .path = "servers.NAME.assume_no_server_requests",
	  .type = OPTION_BOOL,
	  SERVER(conf.never_asks),
	  .def = "false",
	  .help = "With isolation principal: the server never asks clients anything (sampling, "
		  "elicitation, roots). It is told that they can do nothing of the kind, and its "
		  "processes may have many calls at a time." },
	{ .path = "servers.NAME.progress_while_waiting",
	  .is_rule = true,
	  .type = OPTION_BOOL,
	  SERVER(conf.tells_progress),
	  .def = "false",
	  .help = "While a client of 2026-07-28 has not come back with what the server asked it, the server is sent progress "
		  "every 20 s, for each of its requests that has a progress token. For servers that wait longer when they "
		  "hear of progress, and would give up after a minute without it." },
	{ .path = "servers.NAME.pool", .type = OPTION_SECTION, .help = "Its processes." },
	{ .path = "servers.NAME.pool.max",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.pool_max),
	  .def = "64",
	  .min = "1",
	  .max = "100000",
	  .help = "Processes at the same time." },
	{ .path = "servers.NAME.pool.min",
	  .type = OPTION_COUNT,
	  SERVER(conf.pool_min),
	  .def = "0",
	  .min = "0",
	  .max = "1000",
	  .help = "Processes that run and are ready whether somebody needs them or not, with "
		  "isolation shared." },
	{ .path = "servers.NAME.pool.warm",
	  .type = OPTION_COUNT,
	  SERVER(conf.warm),
	  .def = "0",
	  .min = "0",
	  .max = "1000",
	  .help = "Processes that are started before a session needs them, for servers that "
		  "start slowly; with isolation session and principal. They count in pool.max." },
	{ .path = "servers.NAME.pool.reclaim",
	  .type = OPTION_ENUM,
	  SERVER(conf.reclaims),
	  .choices = reclaims,
	  .def = "idle",
	  .help = "idle: where no more processes may run (pool.max, limits.processes), a session that has done "
		  "nothing for two seconds gives its process to one that needs it, and gets a fresh one with "
		  "its next request: what the process kept in memory for it is lost. never: it keeps its "
		  "process for as long as it lasts, and who comes too late is refused. With isolation session." },
	{ .path = "servers.NAME.pool.share",
	  .is_rule = true,
	  .type = OPTION_PERCENT,
	  SERVER(conf.share_percent),
	  .def = "50%",
	  .min = "1%",
	  .max = "100%",
	  .help = "How much of pool.max, and at least one process, a caller may have before his give way first. "
		  "With isolation session, nobody keeps two processes more than one who waits: what is too much goes as "
		  "soon as it has nothing to do, after two seconds; where calls overlap, it gets no more of them after "
		  "four, and goes when it has answered those that it has. With isolation principal, who has less "
		  "than this gets what another one has beyond it." },
	{ .path = "servers.NAME.pool.sleep_after",
	  .type = OPTION_DURATION,
	  SERVER(conf.sleep_after_ms),
	  .def = "0",
	  .min = "0",
	  .max = "365d",
	  .help = "The process of a session that did nothing for so long is stopped; the next request gets a "
		  "fresh one. 0: never. With isolation session." },
	{ .path = "servers.NAME.pool.sessions_per_process",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.sessions_per_process),
	  .def = "64",
	  .min = "1",
	  .max = "1000000",
	  .help = "How many sessions share a process before another one is started." },
	{ .path = "servers.NAME.pool.requests_per_process",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.calls_per_process),
	  .def = "64",
	  .min = "1",
	  .max = "65536",
	  .help = "Calls at the same time in one process that sessions share; with more, another "
		  "process is started." },
	{ .path = "servers.NAME.pool.queue",
	  .is_rule = true,
	  .type = OPTION_COUNT,
	  SERVER(conf.queue_calls),
	  .def = "256",
	  .min = "0",
	  .max = "65536",
	  .help = "Calls that wait when all processes that sessions share have as many as they "
		  "may. More are refused, to be tried again later." },
	{ .path = "servers.NAME.pool.queue_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.queue_timeout_ms),
	  .def = "10s",
	  .min = "1ms",
	  .max = "1h",
	  .help = "How long a call waits for a busy process. For one that is being started it "
		  "waits as long as that takes." },
	{ .path = "servers.NAME.pool.idle_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.idle_ms),
	  .def = "5m",
	  .min = "1ms",
	  .max = "365d",
	  .help = "A process that sessions share is stopped when it had no call for so long." },
	{ .path = "servers.NAME.pool.remember",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.remember_ms),
	  .def = "10m",
	  .min = "0",
	  .max = "24h",
	  .help = "When the last process that sessions share was stopped because it had no call, "
		  "what it has said of the server, and its lists, are told for so long without "
		  "starting another. Nobody tells of changes meanwhile. 0: not at all." },
	{ .path = "servers.NAME.pool.max_age",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.max_age_ms),
	  .def = "0",
	  .min = "0",
	  .max = "365d",
	  .help = "A process that sessions share gets no more calls at this age, and is stopped "
		  "when it has finished those that it has. 0: never." },
#include "config/options_start.def"
	{ .path = "servers.NAME.request_timeout",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.request_timeout_ms),
	  .def = "5m",
	  .min = "1ms",
	  .max = "7d",
	  .help = "The longest silence in a call; progress of the server renews it." },
	{ .path = "servers.NAME.request_timeout_max",
	  .is_rule = true,
	  .type = OPTION_DURATION,
	  SERVER(conf.request_timeout_max_ms),
	  .def = "60m",
	  .min = "1ms",
	  .max = "7d",
	  .help = "The longest a call may take, whatever its progress." },
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
	  .help = "request_timeout of single tools." },
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
	  .help = "From the end of its standard input to SIGTERM." },
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
	  .help = "What one of its processes, with all that it starts, may use: all but open_files "
		  "need a cgroup (version 2) of the daemon's own, which the installed unit has. And which of the "
		  "resources that the server offers may be used: allow and deny." },
	{ .path = "servers.NAME.resources.memory",
	  .type = OPTION_SIZE,
	  SERVER(memory_bytes),
	  .min = "1MiB",
	  .max = "1048576GiB",
	  .example = "512MiB",
	  .otherwise = "no limit",
	  .help = "Memory, without swap; over it, all of it is killed." },
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
	  .help = "Time of processors: 100% is one of them." },
	{ .path = "servers.NAME.resources.open_files",
	  .type = OPTION_COUNT,
	  SERVER(open_files),
	  .min = "16",
	  .max = "1000000",
	  .example = "1024",
	  .otherwise = "the daemon's",
	  .help = "Descriptors that it may have open." },
#include "config/options_resources.def"
#include "config/options_sandbox.def"
};

const size_t options_count = ARRAY_LEN(options_table);
