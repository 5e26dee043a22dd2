/* SPDX-License-Identifier: Apache-2.0 */
/* The small records that a configuration's sections and lists consist of. */
#ifndef MCPGATED_CONFIG_RECORDS_H
#define MCPGATED_CONFIG_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/collector.h"
#include "trace/exporter.h"

struct config_pair {
	char *name;
	char *value; /* resolved: {file:}, {env:} and {credential:} have been read */
	char *file;  /* the file it came from, which can be read again; NULL: none */
	bool is_secret;
	bool has_claims; /* the value is a template: variables.h */
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

enum config_sandbox { CONFIG_SANDBOX_OFF, CONFIG_SANDBOX_LANDLOCK };
/* CONFIG_UDP_NAMES: any, if there are ports to connect to. */
enum config_udp { CONFIG_UDP_NAMES, CONFIG_UDP_NONE, CONFIG_UDP_ANY };

/* Both are set, or neither: collector.endpoint says whether spans are exported. */
struct config_traces {
	struct collector_conf collector;
	struct exporter_conf exporter;
};

#endif
