/* SPDX-License-Identifier: Apache-2.0 */
/* The effective configuration as YAML, secrets masked: every option, also those at a default. */
#include "config/config.h"
#include "config/quote.h"
#include "config/table.h"

static void print_name(const char *name, FILE *out)
{
	struct buf text = { 0 };

	quote_append(&text, name);
	fprintf(out, "  %s:\n", buf_terminate(&text));
	buf_fini(&text);
}

static void print_listen(const struct config_listen *listen, FILE *out)
{
	fputs("  -\n", out);
	table_print(OPTIONS_LISTEN, listen, 4, out);
	if (listen->tls_count > 0)
		fputs("    tls:\n", out);
	for (size_t i = 0; i < listen->tls_count; i++) {
		fputs("      -\n", out);
		table_print(OPTIONS_TLS, &listen->tls[i], 8, out);
	}
}

void config_print(const struct config *config, FILE *out)
{
	fputs("listen:\n", out);
	for (size_t i = 0; i < config->listen_count; i++)
		print_listen(&config->listen[i], out);
	table_print(OPTIONS_TOP, config, 0, out);
	fputs("servers:\n", out);
	for (size_t i = 0; i < config->server_count; i++) {
		print_name(config->servers[i].conf.name, out);
		table_print(OPTIONS_SERVER, &config->servers[i], 4, out);
	}
}
