/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration, from the file, the command line or an imported JSON file: checked, and with
 * every default filled in. Immutable once loaded. mcpgated.yaml(5) is the contract.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <stdio.h>

#include "auth/collector.h"
#include "auth/fetch_service.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "cluster/store_service.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "obs/audit.h"
#include "obs/log.h"
#include "policy/roles.h"
#include "policy/rule.h"
#include "process/server.h"
#include "session/session.h"
#include "trace/exporter.h"

/* ---- the small records that sections and lists consist of ---- */

struct config_pair {
	char *name;
	char *value; /* resolved: {file:}, {env:} and {credential:} have been read */
	char *file;  /* the file it came from, which can be read again; NULL: none */
	bool is_secret;
	bool has_claims; /* the value is a template: variables.h */
	bool names_file; /* of a file's path: each caller's is read for each process */
};

/* One certificate of a listener: names of PEM files, each of at most this many bytes. */
#define CERTIFICATES_BYTES_MAX ((size_t)256 << 10)
struct config_tls {
	char *certificate; /* followed by its chain */
	char *key;
	char *client_ca; /* NULL: no client certificates. Like the next, only in the first entry */
	bool is_only_13; /* refuses TLS 1.2 */
};

struct config_listen {
	char *address; /* host:port, [v6]:port, unix:PATH, systemd:NAME */
	bool plaintext;
	bool proxy_protocol;
	struct config_tls *tls; /* the first is the default */
	size_t tls_count;       /* 0: no TLS */
};

/* TCP ports; `is_any`: all. */
struct config_ports {
	uint16_t *items;
	size_t count;
	bool is_any;
};

enum config_sandbox { CONFIG_SANDBOX_OFF, CONFIG_SANDBOX_REPORT, CONFIG_SANDBOX_LANDLOCK };
/* CONFIG_UDP_NAMES: any, if there are ports to connect to. */
enum config_udp { CONFIG_UDP_NAMES, CONFIG_UDP_NONE, CONFIG_UDP_ANY };

/* Both are set, or neither: collector.endpoint says whether spans are exported. */
struct config_traces {
	struct collector_conf collector;
	struct exporter_conf exporter;
};

/* ---- the configuration ---- */

/*
 * The gateway's modules define what the gateway needs of a server; the rest is for the keeper,
 * which starts it.
 */
struct config_server {
	struct server_conf conf;  /* except the fleet, which the gateway sets */
	struct endpoint endpoint; /* except the server, likewise */
	bool enabled;
	bool is_endpoint; /* over several servers: conf.legs; it has neither of the next two */
	char *command;    /* NULL: it is behind a URL */
	char *url;        /* NULL: it is a program */
	struct slices args;
	/* of a URL: */
	char *ca_file, *certificate_file, *key_file, *proxy;
	bool allow_private;
	struct credential_conf credential; /* auth */
	struct config_pair *env;           /* of a URL: the header fields */
	size_t env_count;
	struct slices inherit_env;
	struct slices redact;  /* patterns */
	char *cwd;             /* NULL: the daemon's */
	char *user;            /* NULL: the daemon's */
	char *umask;           /* octal digits; NULL: the daemon's */
	uint64_t memory_bytes; /* resources; 0: not limited */
	uint64_t processes;
	uint64_t cpu_percent; /* of one processor */
	uint64_t open_files;  /* 0: the daemon's */
	enum config_sandbox sandbox;
	struct slices sandbox_read; /* absolute paths */
	struct slices sandbox_write;
	struct config_ports sandbox_connect;
	struct config_ports sandbox_bind;
	enum config_udp sandbox_udp;
	bool sandbox_unix;    /* unix sockets, any that its user may use */
	bool sandbox_gateway; /* this gateway's ports, if they are listed in connect */
};

/* The section of the configuration file that it is in. */
static inline const char *config_section_of(const struct config_server *server)
{
	return server->is_endpoint ? "endpoints" : "servers";
}

/* Tokens with these marks are refused although they are valid. All names but one are empty. */
struct config_denial {
	struct denial_marks marks;
	uint64_t until_ms; /* since 1970; 0: no end */
};

struct config_denials {
	struct config_denial *items;
	size_t count;
};

/* A list of problems, each one line of text: `FILE:LINE:COLUMN: what is wrong`. */
struct config_problems {
	char **items;
	size_t count;
};

struct config {
	bool is_from_file; /* YAML: users change keys in a file, not command-line options */
	bool is_command;   /* one server, whose command is on the command line */
	struct config_listen *listen;
	size_t listen_count;
	char *admin_address;    /* "auto", "off" or unix:PATH */
	char *admin_metrics;    /* loopback address or unix:PATH; NULL: none */
	char *admin_page;       /* loopback address; NULL: none */
	char *admin_page_token; /* SHA-256 in hexadecimal digits; NULL: the page is read-only */
	struct slices include;  /* empty: the included files are already merged */
	struct slices hosts;    /* in addition to those that are always allowed */
	char *assertion_key;    /* PEM; the gateway has its public part, a JWK; NULL: none */
	struct config_denials deny;
	struct slices trusted_proxies; /* in the form that peer_net_parse reads */
	struct http_conf http;         /* max_connections applies if there are enough descriptors */
	struct session_conf sessions;
	bool keeps_sessions; /* for later gateways and daemons */
	struct cluster_conf
		cluster; /* except of the gateway, which has the name of the node alone */
	struct frontend_conf frontend; /* except what the gateway creates; its hosts are complete */
	struct slices claim_names;     /* claims of principals that any server needs */
	struct roles roles;            /* including those of tokens */
	struct rule_places rule_places; /* in the files that were read */
	struct scope_table scopes;      /* every scope named; for the frontend's authorization */
	struct slices scope_names;      /* copies of those numbered before: config_read_next */
	uint64_t max_processes;
	uint64_t response_bytes;
	uint64_t json_depth;
	uint64_t drain_delay_ms; /* not ready, but otherwise serving */
	uint64_t drain_timeout_ms;
	struct audit_conf audit;
	struct config_traces traces;
	enum log_level log_level;
	enum log_format log_format;
	bool log_payloads;
	char *log_target; /* "stderr", "journal" or a file */
	struct config_server *servers;
	size_t server_count;
};

struct config_request;
struct tree;

/*
 * The checks that need this machine. They also run on a configuration with problems; commands may
 * then be NULL, and paths may be anything. `root` is the tree it was read from, for the places in
 * messages.
 */
typedef void config_check_fn(const struct config_request *request, const struct config *config,
			     const struct tree *root, struct config_problems *problems,
			     struct config_problems *warnings);

#define TOKEN_NAME_DIGITS \
	8 /* of the SHA-256 of a token of --token-file, by which who has no name is known */

#define CONFIG_LISTEN_MAX 8 /* addresses of --listen */

/* What the command line asks for. All strings are borrowed. */
struct config_request {
	const char *file;                          /* -c, or NULL */
	const char *import_file;                   /* --import, or NULL */
	char *const *command;                      /* after "--", NULL-terminated, or NULL */
	const char *name;                          /* --name, or NULL */
	const char *listen[CONFIG_LISTEN_MAX + 1]; /* each --listen; NULL behind them */
	const char *tls;        /* --tls of these listeners, CERTIFICATE,KEY or "self", or NULL */
	bool makes_certificate; /* for "self", which is not only checked */
	bool plaintext;         /* --plaintext of these listeners */
	const char *token_file; /* --token-file, or NULL */
	const char *log_level;  /* --log-level, or NULL */
	const char *isolation;  /* --isolation of the command, or NULL */
	const char *const *env; /* --env of the command, each NAME or NAME=VALUE */
	size_t env_count;
	const char *const *hosts; /* --host, each a name */
	size_t host_count;
	config_check_fn *check;       /* or NULL */
	const struct config *running; /* whose servers run meanwhile; NULL: none */
	pid_t daemon; /* the one that is to use it; 0: it is not known, or there is none */
};

/*
 * Loads and checks. Returns a configuration (free with config_free), or NULL; `problems` then has
 * all the problems found, not only the first. `warnings` has the same form and is filled in both
 * cases. The caller ends both with config_problems_fini.
 */
struct config *config_load(const struct config_request *request, struct config_problems *problems,
			   struct config_problems *warnings) must_check;
void config_free(struct config **config);
void config_problems_fini(struct config_problems *problems);
/* The index of the server with this name; server_count: there is none. */
size_t config_find_server(const struct config *config, const char *name);
/* Whether it is a node of a cluster, which has a store. */
bool config_has_store(const struct config *config);
/* Whether the fetcher has anything to do: there are issuers, a trace collector, or servers with `auth`. */
bool config_is_fetching(const struct config *config);

/*
 * Prints YAML that config_load can read back; secrets appear as "***". config_load rejects a
 * ${NAME} that came from the command line or an imported file: variables.h.
 */
void config_print(const struct config *config, FILE *out);
/*
 * The same for config_read_checked in the gateway: omits what only the servers' processes may know
 * (arguments, values of env) and what is for the fetcher; appends the places of the rules.
 */
void config_print_for_gateway(const struct config *config, FILE *out);
/*
 * What the fetcher needs: the log, who may call, traces, and `auth` of servers, with the secrets for
 * the issuers and the collector.
 */
void config_print_for_fetcher(const struct config *config, FILE *out);
/* What mcpgated-store needs: the log, how long sessions are kept, and the cluster, with its secrets. */
void config_print_for_store(const struct config *config, FILE *out);
/*
 * Reads the output of one of the functions above; free with config_free. NULL: it is anything
 * else.
 */
struct config *config_read_checked(struct slice text, struct error *err) must_check;
/*
 * The same after `before`: the numbers of its roles and scopes keep their meaning. Also NULL if no
 * numbers are left for new ones.
 */
struct config *config_read_next(struct slice text, const struct config *before, struct error *err);
/*
 * Generated from the option table: the commented sample file, and a JSON Schema (draft-07) of the
 * file, for editors.
 */
void config_print_sample(FILE *out);
void config_print_schema(FILE *out);
/*
 * Manual pages (roff): the option table; the log events; the metrics; the audit fields; the errors
 * that clients get.
 */
void config_print_manual(FILE *out);
void config_print_events(FILE *out);
void config_print_metrics(FILE *out);
void config_print_audit(FILE *out);
void config_print_reasons(FILE *out);
