/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a text in a configuration must look like, for the table of options: each by itself. What
 * depends on another option, or on this machine, is not asked here.
 */
#ifndef MCPGATED_CONFIG_FORMS_H
#define MCPGATED_CONFIG_FORMS_H

#include "config/options.h"

/* Each returns 0; or -1, and err holds the rest of a sentence about the text, which ends in NUL. */

/* Where we listen: for clients, for the operator, for Prometheus, for browsers. SEC-17 */
option_form_fn form_listener, form_admin, form_metrics, form_page;
/* The names by which others call us, and whom we trust behind proxies. DEF-05 */
option_form_fn form_public_url, form_origin, form_host, form_network;
/* Where the log and the audit go. */
option_form_fn form_log_target, form_audit_target;
/* Of a server: its path, its umask, and texts that cannot have claims of a caller. */
option_form_fn form_path, form_umask, form_without_claims;
/* Of a server behind a URL: that, and the name of a header field to send there. */
option_form_fn form_server_url, form_server_header;
/* Directories and files that a server may use, and roots of the paths in arguments. */
option_form_fn form_sandbox_path, form_root;
/* The hash of a token, a scope, the algorithm of a signature, an address of an issuer. */
option_form_fn form_hash, form_scope, form_algorithm, form_issuer_url;
/* What is sent to a collector. */
option_form_fn form_header_name, form_header_value;
/* Names and patterns of what a server offers, or of members of arguments. */
option_form_fn form_tool, form_prompt, form_resource, form_template, form_member;
/* Regular expressions: for arguments, and for what is redacted. */
option_form_fn form_expression, form_redaction;

#endif
