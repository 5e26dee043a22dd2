/* SPDX-License-Identifier: Apache-2.0 */
/* The effective configuration as YAML: every option, also those at a default. */
#include "config/config.h"
#include "config/quote.h"
#include "config/table.h"

static void print_listen(enum table_reader reader, const struct config_listen *listen, FILE *out)
{
	CHECK((listen->tls == NULL) == (listen->tls_count == 0));
	fputs("  -\n", out);
	table_print(reader, OPTIONS_LISTEN, listen, 4, out);
	if (listen->tls_count > 0)
		fputs("    tls:\n", out);
	for (size_t i = 0; i < listen->tls_count; i++) {
		fputs("      -\n", out);
		table_print(reader, OPTIONS_TLS, &listen->tls[i], 8, out);
	}
}

/* Which claims a server is told is in its env, which the gateway does not get: a variable for each stands for it. */
static void print_claims(const struct slices *claims, FILE *out)
{
	if (claims->count > 0)
		fputs("    env:\n", out);
	for (size_t i = 0; i < claims->count; i++) {
		struct buf value = { 0 }, text = { 0 };

		buf_printf(&value, "${claim:%.*s}", SLICE_ARG(claims->items[i]));
		quote_append(&text, buf_terminate(&value));
		fprintf(out, "      CLAIM_%zu: %s\n", i, buf_terminate(&text));
		buf_fini(&value);
		buf_fini(&text);
	}
}

static void print(enum table_reader reader, const struct config *config, FILE *out)
{
	CHECK(config->listen_count > 0 && config->server_count > 0);
	fputs("listen:\n", out);
	for (size_t i = 0; i < config->listen_count; i++)
		print_listen(reader, &config->listen[i], out);
	table_print(reader, OPTIONS_TOP, config, 0, out);
	fputs("servers:\n", out);
	for (size_t i = 0; i < config->server_count; i++) {
		struct buf name = { 0 };

		quote_append(&name, config->servers[i].conf.name);
		fprintf(out, "  %s:\n", buf_terminate(&name));
		table_print(reader, OPTIONS_SERVER, &config->servers[i], 4, out);
		if (reader == TABLE_FOR_GATEWAY)
			print_claims(&config->servers[i].conf.claims, out);
		buf_fini(&name);
	}
}

void config_print(const struct config *config, FILE *out)
{
	print(TABLE_FOR_PEOPLE, config, out);
}

void config_print_for_gateway(const struct config *config, FILE *out)
{
	print(TABLE_FOR_GATEWAY, config, out);
}
