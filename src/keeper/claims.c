/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values must be exactly those that are declared. */
#include "keeper/claims.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/text.h"
#include "config/claim.h"

#define TEXT_MAX (16 * 1024)

/* The value of this name; p NULL: it is not there. */
static struct slice text_find(struct slice text, struct slice name)
{
	struct slice rest = text;

	while (rest.n > 0) {
		struct slice at = slice_cut(&rest, '\0');
		struct slice value = slice_cut(&rest, '\0');

		if (slice_is_equal(at, name))
			return value;
	}
	return (struct slice){ NULL, 0 };
}

static size_t text_count(struct slice text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == '\0';
	return count;
}

/* All declared claims are there, and not more than are declared. */
static const char *text_check(struct slice text, const struct server_conf *conf)
{
	if (text_count(text) != conf->claims.count * 2)
		return "the claims are not those that the server declares";
	for (size_t i = 0; i < conf->claims.count; i++) {
		struct slice value = text_find(text, conf->claims.items[i]);

		if (value.p == NULL)
			return "a claim that the server declares is missing";
		if (!text_is_claim(value))
			return "the value of a claim is empty, too long or not plain text";
	}
	return NULL;
}

/* ---- the environment ---- */

static char *make_entry(const struct config_pair *pair, struct slice text)
{
	struct slice rest = slice_str(pair->value);
	size_t claims_max = rest.n / (sizeof("${claim:x}") - 1);
	size_t room = strlen(pair->name) + rest.n + claims_max * TEXT_CLAIM_MAX + 2;
	struct slice before, name;
	struct buf entry = { 0 };
	int result;

	/* All at once: a buffer that grows leaves copies behind. */
	buf_reserve(&entry, room);
	buf_append_str(&entry, pair->name);
	buf_append_char(&entry, '=');
	do {
		result = claim_cut(&rest, &before, &name);
		buf_append_slice(&entry, before);
		if (result > 0)
			buf_append_slice(&entry, text_find(text, name));
	} while (result > 0);
	CHECK(entry.len < room);
	buf_terminate(&entry);
	return entry.data;
}

static const struct config_pair *find_pair(const struct config_server *server, const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < server->env_count; i++)
		if (server->env[i].has_claims && strlen(server->env[i].name) == length &&
		    memcmp(server->env[i].name, entry, length) == 0)
			return &server->env[i];
	return NULL;
}

static char **make_env(const struct config_server *server, char **envp, struct slice text)
{
	size_t count = 0;
	char **made;

	while (envp[count] != NULL)
		count++;
	made = mem_zalloc((count + 1) * sizeof(*made));
	for (size_t i = 0; i < count; i++) {
		const struct config_pair *pair = find_pair(server, envp[i]);

		made[i] = pair != NULL ? make_entry(pair, text) : envp[i];
	}
	return made;
}

const char *claims_make_env(const struct config_server *server, char **envp, struct slice text,
			    char ***envp_r)
{
	const char *why;

	CHECK(envp != NULL);
	*envp_r = envp;
	if (server->conf.claims.count == 0)
		return text.n == 0 ? NULL : "the server declares no claims";
	if (text.n == 0 || text.n > TEXT_MAX || text.p[text.n - 1] != '\0')
		return "the claims are missing or incomplete";
	why = text_check(text, &server->conf);
	if (why == NULL)
		*envp_r = make_env(server, envp, text);
	return why;
}

void claims_free_env(char **envp, char **made)
{
	if (made == envp)
		return;
	for (size_t i = 0; made[i] != NULL; i++) {
		if (made[i] == envp[i])
			continue;
		explicit_bzero(made[i], strlen(made[i]));
		free(made[i]);
	}
	free(made);
}
