/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: what the file, the command line or an imported JSON file said, checked, with
 * every default filled in. Immutable once loaded. product.md §4 is the contract.
 */
#ifndef MCPGATED_CONFIG_CONFIG_H
#define MCPGATED_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/records.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "obs/audit.h"
#include "obs/log.h"
#include "policy/roles.h"
#include "policy/rule_places.h"
#include "process/server.h"
#include "session/session.h"

/* What the gateway knows of a server is its modules' own; the rest is what the keeper starts. */
struct config_server {
	struct server_conf conf;  /* all but the fleet, which is the gateway's */
	struct endpoint endpoint; /* all but the server, likewise */
	bool enabled;
	char *command;
	struct slices args;
	struct config_pair *env;
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
	bool sandbox_gateway; /* the ports of this gateway, if they are among those of connect */
};

/* A token with these marks is refused although it is good; all but one of the names are empty. */
struct config_denial {
	struct denial_marks marks;
	uint64_t until_ms; /* since 1970; 0: for good */
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
	bool is_from_file; /* YAML: what is to be changed are its keys, and not options of the command line */
	struct config_listen *listen;
	size_t listen_count;
	char *admin_address; /* "auto", "off" or unix:PATH */
	char *admin_metrics; /* loopback address or unix:PATH; NULL: none */
	char *admin_page;    /* loopback address; NULL: none */
	char *admin_page_token; /* SHA-256 in hexadecimal digits; NULL: there is no order to give there */
	struct slices include; /* empty: what is included stands in its place */
	struct slices hosts;   /* besides those that are known anyway */
	struct config_denials deny;
	struct slices trusted_proxies; /* what peer_net_parse understands */
	struct http_conf http;         /* max_connections: as long as there are files for so many */
	struct session_conf sessions;
	struct frontend_conf frontend;  /* without what the gateway makes; its hosts are all */
	struct slices claim_names;      /* that any server needs to know of its principals */
	struct roles roles;             /* those of tokens included */
	struct rule_places rule_places; /* in the files that it is from */
	struct scope_table scopes;      /* all that are named; of the frontend's authorization */
	struct slices scope_names; /* copies of those that had a number before: config_read_next */
	uint64_t max_processes;
	uint64_t response_bytes;
	uint64_t json_depth;
	uint64_t drain_delay_ms; /* not ready any more, and nothing else yet */
	uint64_t drain_timeout_ms;
	struct audit_conf audit;
	struct config_traces traces;
	enum log_level log_level;
	enum log_format log_format;
	char *log_target; /* "stderr", "journal" or a file */
	struct config_server *servers;
	size_t server_count;
};

struct config_request;
struct tree;

/*
 * What can be told only by asking the machine. It is asked of a configuration with problems as well: then commands may
 * be NULL, and paths anything. `root` is the tree it was read from and tells the places.
 */
typedef void config_check_fn(const struct config_request *request, const struct config *config,
			     const struct tree *root, struct config_problems *problems,
			     struct config_problems *warnings);

/* What the command line asks for. All strings are borrowed. */
struct config_request {
	const char *file;        /* -c, or NULL */
	const char *import_file; /* --import, or NULL */
	char *const *command;    /* after "--", NULL-terminated, or NULL */
	const char *name;        /* --name, or NULL */
	const char *listen;      /* --listen, or NULL */
	const char *tls;         /* --tls, CERTIFICATE,KEY of what listens, or NULL */
	bool plaintext;          /* --plaintext, of the same */
	const char *token_file;  /* --token-file, or NULL */
	const char *isolation;   /* --isolation of the command, or NULL */
	const char *const *env;  /* --env of the command, each NAME or NAME=VALUE */
	size_t env_count;
	const char *const *hosts; /* --host, each a name */
	size_t host_count;
	config_check_fn *check;       /* or NULL */
	const struct config *running; /* whose servers run while it is read; NULL: none do */
};

/*
 * Loads and checks. Returns a configuration (free with config_free), or NULL; then `problems` holds every problem that was found,
 * not only the first. `warnings` are of the same form, and there in both cases. Both are the caller's to end.
 */
struct config *config_load(const struct config_request *request, struct config_problems *problems,
			   struct config_problems *warnings) must_check;
void config_free(struct config **config);
void config_problems_fini(struct config_problems *problems);
/* Whether there is something for the program that fetches: issuers, or a collector of traces. */
bool config_is_fetching(const struct config *config);

/* YAML that config_load reads back; secrets as "***". A ${NAME} of the command line or an imported file it refuses: unexpanded.h. */
void config_print(const struct config *config, FILE *out);
/*
 * The same for config_read_checked, in the gateway: without what the servers' processes alone may know (arguments,
 * values of env) and without what is for the program that fetches; behind it where the rules stand.
 */
void config_print_for_gateway(const struct config *config, FILE *out);
/* What that one needs: the log, who may call, and the traces, with the secrets that it shows to issuers and collector. */
void config_print_for_fetcher(const struct config *config, FILE *out);
/* What one of the two has written; free with config_free. NULL: it is something else. */
struct config *config_read_checked(struct slice text, struct error *err) must_check;
/* The same after `before`, whose numbers of roles and scopes mean what they meant. NULL also: no number is left for more. */
struct config *config_read_next(struct slice text, const struct config *before, struct error *err);
/* Made from the option table: the commented sample file; a JSON Schema (draft-07) of the file, for editors. */
void config_print_sample(FILE *out);
void config_print_schema(FILE *out);
/* As text of manual pages (roff): the option table; the events of the log; the fields of the audit; the errors that clients get; metrics. */
void config_print_manual(FILE *out);
void config_print_events(FILE *out);
void config_print_metrics(FILE *out);
void config_print_audit(FILE *out);
void config_print_reasons(FILE *out);

#endif
