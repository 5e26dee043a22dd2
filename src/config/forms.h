/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What single texts of a configuration mean, and must look like: sizes, times and dates,
 * addresses, and the forms that the table of options names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/options.h"

/*
 * ---- quantity ----
 *
 * Sizes, times and dates in their written form: `16KiB`, `90s`, `2027-01-31`.
 */

/* Bytes: a number, optionally with KiB, MiB or GiB. -1: malformed or too large. */
int quantity_parse_size(struct slice text, uint64_t *bytes_r) must_check;
/* Milliseconds: a number with ms, s, m, h or d, or `0`. -1: malformed or too large. */
int quantity_parse_duration(struct slice text, uint64_t *ms_r) must_check;
/* An integer with a % sign. -1: malformed or too large. */
int quantity_parse_percent(struct slice text, uint64_t *percent_r) must_check;
/* The shortest exact text, which the parsers above can read back. */
void quantity_append_size(struct buf *out, uint64_t bytes);
void quantity_append_duration(struct buf *out, uint64_t ms);

/*
 * Milliseconds since 1970 of a day (its beginning) or a moment, both in UTC: `2027-01-31`,
 * `2027-01-31T18:00:00Z`. -1: malformed, no such date, or before 1970. RFC 3339 §5.6.
 */
int quantity_parse_date(struct slice text, uint64_t *ms_r) must_check;
#define QUANTITY_TEXT_MAX 32
void quantity_format_date(uint64_t ms, char text_r[QUANTITY_TEXT_MAX]);

/*
 * ---- address ----
 *
 * Parses listen addresses and tells who can reach them, and by which URL. Resolves no names.
 */

enum address_kind { ADDRESS_TCP, ADDRESS_UNIX, ADDRESS_SYSTEMD };

struct address {
	enum address_kind kind;
	bool is_local; /* only from this machine; false for systemd, where it is unknown */
	struct sockaddr_storage socket; /* for TCP and unix; ready for bind */
	socklen_t socket_size;
	const char *name; /* systemd: the descriptor's name; unix: the path. Points into the text */
};

/*
 * Parses `IPV4:PORT`, `[IPV6]:PORT`, `localhost:PORT` (127.0.0.1), `unix:PATH` and `systemd:NAME`.
 * Port 0 is allowed. `text` is borrowed as long as *address_r is used.
 */
int address_parse(const char *text, struct address *address_r, struct error *err) must_check;

/* ---- the origin that clients are told: the part of a server's URL before the path ---- */

/*
 * public_url, or else the address of the first listener that is not a unix socket. For a listener
 * on all addresses it names the first of `hosts`, or loopback. `listeners` are the open sockets of
 * config->listen, which know their ports; NULL: use the configured ports. The caller frees the
 * result. NULL: there is none.
 */
char *origin_find(const struct config *config, const int *listeners);
/* The same for one listener; fd: its open socket, or -1. Also NULL for a unix socket. */
char *origin_of_listener(const struct config *config, size_t i, int fd);
/* The value of auth.mode: none, anonymous, token or oauth. */
const char *origin_auth_mode(const struct config *config);

/* Whether a listener's address is every address of this machine. */
bool address_is_any(const char *address);

/*
 * ---- forms ----
 *
 * What a text in a configuration must look like, for the table of options: each by itself. What
 * depends on another option, or on this machine, is not asked here.
 */

/* Each returns 0; or -1, and err holds the rest of a sentence about the text, which ends in NUL. */

/* Where we listen: for clients, for the operator, for Prometheus, for browsers. SEC-17 */
option_form_fn form_listener, form_admin, form_metrics, form_page;
/* The names by which others call us, and whom we trust behind proxies. DEF-05 */
option_form_fn form_public_url, form_origin, form_host, form_network;
/* Of a node of a cluster: its name, its store, the beginning of its keys. */
option_form_fn form_node, form_store, form_seal_key, form_prefix;
/* Where the log and the audit go. */
option_form_fn form_log_target, form_audit_target;
/* Of a server: its path, its umask, and texts that cannot have claims of a caller. */
option_form_fn form_path, form_umask, form_without_claims;
/* Of a server behind a URL: that, and the name of a header field to send there. */
option_form_fn form_server_url, form_proxy, form_server_header;
/* Directories and files that a server may use, and roots of the paths in arguments. */
option_form_fn form_sandbox_path, form_root;
/* The hash of a token, a scope, the algorithm of a signature, an address of an issuer. */
option_form_fn form_hash, form_scope, form_algorithm, form_issuer, form_issuer_url;
/* A key of ours, private: the gateway has the public part of it. */
option_form_fn form_signing_key;
/* What is sent to a collector. */
option_form_fn form_header_name, form_header_value;
/* Names and patterns of what a server offers, or of members of arguments. */
option_form_fn form_tool, form_prompt, form_resource, form_template, form_member;
option_form_fn form_one_name, form_shown_name;
/* Regular expressions: for arguments, and for what is redacted. */
option_form_fn form_expression, form_redaction;
