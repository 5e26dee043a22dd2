/* SPDX-License-Identifier: Apache-2.0 */
/* Finds claims in texts. The keeper puts the values in. */
#include "config/claim.h"

#include <string.h>

#include "config/texts.h"

#define BEGIN "${claim:"

int claim_cut(struct slice *text, struct slice *before_r, struct slice *name_r)
{
	const char *end = text->p + text->n;
	const char *begin = memmem(text->p, text->n, BEGIN, strlen(BEGIN));
	const char *close;

	CHECK(text->p != NULL);
	*before_r = *text;
	if (begin == NULL)
		return 0;
	close = memchr(begin, '}', (size_t)(end - begin));
	if (close == NULL)
		return -1;
	*before_r = slice_between(text->p, begin);
	*name_r = slice_between(begin + strlen(BEGIN), close);
	*text = slice_between(close + 1, end);
	for (size_t i = 0; i < name_r->n; i++)
		if (name_r->p[i] <= ' ' || name_r->p[i] >= 0x7f)
			return -1;
	return name_r->n > 0 && name_r->n <= CLAIM_NAME_MAX ? 1 : -1;
}

bool claim_is_in(const char *text)
{
	return strstr(text, BEGIN) != NULL;
}

bool claim_is_alone(const char *text)
{
	struct slice rest = slice_str(text);
	struct slice before, name;

	while (claim_cut(&rest, &before, &name) > 0)
		if (before.n > 0)
			return false;
	return rest.n == 0;
}

void claim_collect(struct config_server *server)
{
	struct slices *claims = &server->conf.claims;

	CHECK(claims->count == 0);
	for (size_t i = 0; i < server->env_count; i++) {
		struct slice rest = slice_str(server->env[i].value);
		struct slice before, name;

		while (server->env[i].has_claims && claim_cut(&rest, &before, &name) > 0)
			if (!slices_has(*claims, name))
				texts_add(claims, name);
	}
}
