/* SPDX-License-Identifier: Apache-2.0 */
/* The effective configuration as YAML, secrets masked: every option, also those at a default. */
#include "config/config.h"
#include "config/quote.h"
#include "config/table.h"

static void print_listen(const struct config_listen *listen, FILE *out)
{
	CHECK((listen->tls == NULL) == (listen->tls_count == 0));
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
	CHECK(config->listen_count > 0 && config->server_count > 0);
	fputs("listen:\n", out);
	for (size_t i = 0; i < config->listen_count; i++)
		print_listen(&config->listen[i], out);
	table_print(OPTIONS_TOP, config, 0, out);
	fputs("servers:\n", out);
	for (size_t i = 0; i < config->server_count; i++) {
		struct buf name = { 0 };

		quote_append(&name, config->servers[i].conf.name);
		fprintf(out, "  %s:\n", buf_terminate(&name));
		table_print(OPTIONS_SERVER, &config->servers[i], 4, out);
		buf_fini(&name);
	}
}
