/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what would be printed: so each new option is compared from the beginning. */
#include "config/difference.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/forms.h"
#include "config/table.h"
#include "config/tree.h"

struct text {
	char *p;
	size_t n;
	FILE *out;
};

static FILE *text_begin(struct text *text)
{
	*text = (struct text){ .p = NULL };
	text->out = mem_open_text(&text->p, &text->n);
	return text->out;
}

/* Both have been written. Frees them; they may have secrets. */
static bool texts_are_equal(struct text *one, struct text *other)
{
	bool is_equal;

	mem_close_text(one->out);
	mem_close_text(other->out);
	is_equal = one->n == other->n && memcmp(one->p, other->p, one->n) == 0;
	explicit_bzero(one->p, one->n);
	explicit_bzero(other->p, other->n);
	free(one->p);
	free(other->p);
	return is_equal;
}

static bool is_same_record(enum table_reader reader, const char *level, const void *one,
			   const void *other)
{
	struct text a, b;

	table_print(reader, level, one, 0, text_begin(&a));
	table_print(reader, level, other, 0, text_begin(&b));
	return texts_are_equal(&a, &b);
}

static bool is_same_text(const char *one, const char *other)
{
	return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

/* A text with its length, so that no two lists of texts are written alike. */
static void write_text(FILE *out, const char *text)
{
	if (text == NULL)
		fputs("- ", out);
	else
		fprintf(out, "%zu:%s ", strlen(text), text);
}

/*
 * What processes of the server are made of. Values that are from files are read again with each start: the file's
 * name is what counts.
 */
static void write_processes(const struct config_server *server, FILE *out)
{
	table_print(TABLE_FOR_PROCESSES, table_level_of(server), server, 0, out);
	fprintf(out, "%d %zu %zu\n", server->is_endpoint, server->conf.line_max,
		server->conf.queue_max);
	for (size_t i = 0; i < server->env_count; i++) {
		const struct config_pair *pair = &server->env[i];

		write_text(out, pair->name);
		write_text(out, pair->file);
		write_text(out, pair->file == NULL ? pair->value : NULL);
		fprintf(out, "%d\n", pair->names_file);
	}
}

enum config_difference config_compare_servers(const struct config *one, size_t i,
					      const struct config *other, size_t j)
{
	const struct config_server *a = &one->servers[i], *b = &other->servers[j];
	struct text own, others;

	CHECK(i < one->server_count && j < other->server_count);
	write_processes(a, text_begin(&own));
	write_processes(b, text_begin(&others));
	if (!texts_are_equal(&own, &others))
		return CONFIG_OTHER_PROCESSES;
	return is_same_record(TABLE_FOR_PEOPLE, table_level_of(a), a, b) ? CONFIG_SAME :
									   CONFIG_OTHER_RULES;
}

void config_digest_processes(const struct config_server *server,
			     char hex_r[CONFIG_DIGEST_BYTES + 1])
{
	unsigned char digest[CONFIG_DIGEST_BYTES / 2];
	struct text text;

	CHECK(server->conf.name != NULL);
	write_processes(server, text_begin(&text));
	mem_close_text(text.out);
	CHECK(EVP_Digest(text.p, text.n, digest, NULL, EVP_sha256(), NULL) == 1);
	text_to_hex(digest, sizeof(digest), hex_r);
	hex_r[CONFIG_DIGEST_BYTES] = '\0';
	explicit_bzero(text.p, text.n);
	free(text.p);
}

bool config_has_same_issuers(const struct config *one, const struct config *other)
{
	struct text a, b;

	CHECK(one != NULL && other != NULL);
	config_print_for_fetcher(one, text_begin(&a));
	config_print_for_fetcher(other, text_begin(&b));
	return texts_are_equal(&a, &b);
}

void config_check_first_issuer(const struct config *now, const struct config *next,
			       struct config_problems *warnings)
{
	const struct verifier_conf *old = &now->frontend.authorization.issuers;
	const struct verifier_conf *new = &next->frontend.authorization.issuers;

	if (old->count > 0 && new->count > 0 &&
	    !is_same_text(old->items[0].issuer, new->items[0].issuer))
		problem_add(
			warnings,
			"auth.issuers: %s is now the first: clients that registered with %s have "
			"to register again, with the new one",
			new->items[0].issuer, old->items[0].issuer);
}

void config_check_tokens_needed(const struct config *now, const struct config *next,
				struct config_problems *warnings)
{
	CHECK(now != NULL && next != NULL);
	if (now->frontend.authorization.mode >= AUTHORIZATION_TOKEN &&
	    next->frontend.authorization.mode < AUTHORIZATION_TOKEN)
		problem_add(warnings, "auth: no token is required any more: whoever reaches the "
				      "listeners may use the servers");
}

/* ---- listeners ---- */

bool config_is_same_listener(const struct config *one, size_t i, const struct config *other,
			     size_t j)
{
	const struct config_listen *a = &one->listen[i], *b = &other->listen[j];

	CHECK(i < one->listen_count && j < other->listen_count);
	return is_same_record(TABLE_FOR_PEOPLE, OPTIONS_LISTEN, a, b);
}

bool config_has_same_listen(const struct config *one, const struct config *other)
{
	size_t i = 0;

	if (one->listen_count != other->listen_count)
		return false;
	while (i < one->listen_count && config_is_same_listener(one, i, other, i))
		i++;
	return i == one->listen_count;
}

/* localhost:80 is 127.0.0.1:80. */
static bool is_same_address(const char *one, const char *other)
{
	struct address a, b;

	if (strcmp(one, other) == 0)
		return true;
	return address_parse(one, &a, NULL) == 0 && address_parse(other, &b, NULL) == 0 &&
	       a.kind == ADDRESS_TCP && b.kind == ADDRESS_TCP && a.socket_size == b.socket_size &&
	       memcmp(&a.socket, &b.socket, a.socket_size) == 0;
}

void config_match_listeners(const struct config *now, const struct config *next, int32_t *kept_r)
{
	at_end(mem_free) bool *is_taken = mem_zalloc(now->listen_count + 1);

	for (size_t i = 0; i < next->listen_count; i++) {
		size_t j = 0;

		while (j < now->listen_count &&
		       (is_taken[j] ||
			!is_same_address(next->listen[i].address, now->listen[j].address)))
			j++;
		kept_r[i] = j < now->listen_count ? (int32_t)j : -1;
		is_taken[j] = true;
	}
}

/* ---- where the log and the audit go ---- */

bool config_has_same_log(const struct config *one, const struct config *other)
{
	return is_same_text(one->log_target, other->log_target);
}

bool config_has_same_audit(const struct config *one, const struct config *other)
{
	return is_same_text(one->audit.to, other->audit.to);
}

/* ---- what stays ---- */

struct fixed {
	const char *key;
	char **text;
};

#define FIXED_COUNT 10

/* Texts that parts of the daemon were started with. */
static void find_fixed(struct config *config, struct fixed fixed_r[FIXED_COUNT])
{
	fixed_r[0] = (struct fixed){ "admin.address", &config->admin_address };
	fixed_r[1] = (struct fixed){ "admin.metrics", &config->admin_metrics };
	fixed_r[2] = (struct fixed){ "admin.page", &config->admin_page };
	fixed_r[3] = (struct fixed){ "admin.page_token", &config->admin_page_token };
	fixed_r[4] = (struct fixed){ "cluster.node", &config->cluster.node };
	fixed_r[5] = (struct fixed){ "cluster.store", &config->cluster.store };
	fixed_r[6] = (struct fixed){ "cluster.username", &config->cluster.username };
	fixed_r[7] = (struct fixed){ "cluster.password", &config->cluster.password };
	fixed_r[8] = (struct fixed){ "cluster.prefix", &config->cluster.prefix };
	fixed_r[9] = (struct fixed){ "cluster.seal_key", &config->cluster.seal_key };
}

void config_check_fixed(struct config *now, struct config *next, struct config_problems *warnings)
{
	struct fixed old[FIXED_COUNT], new[FIXED_COUNT];

	find_fixed(now, old);
	find_fixed(next, new);
	for (size_t i = 0; i < FIXED_COUNT; i++)
		if (!is_same_text(*old[i].text, *new[i].text))
			problem_add(warnings, "%s: the change takes effect only after a restart",
				    old[i].key);
}

void config_keep_fixed(struct config *now, struct config *next)
{
	struct fixed old[FIXED_COUNT], new[FIXED_COUNT];

	find_fixed(now, old);
	find_fixed(next, new);
	for (size_t i = 0; i < FIXED_COUNT; i++) {
		char *kept = *old[i].text;

		*old[i].text = *new[i].text;
		*new[i].text = kept;
	}
}
