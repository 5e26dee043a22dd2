/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A position in an array of messages. Only this file knows the struct: nobody else can make one, or
 * change what it is for.
 */
#include "router/admitted.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"

struct admitted {
	const struct client *client;
	struct rights rights;
	const struct audit_origin *origin;
	const struct envelope *messages;
	size_t count;
	size_t next;
	bool is_taken; /* the one before `next` */
};

struct admitted *admitted_new(const struct client *client, const struct rights *rights,
			      const struct audit_origin *origin, const struct envelope *messages,
			      size_t count)
{
	struct admitted *admitted = mem_alloc(sizeof(*admitted));

	CHECK(count > 0);
	CHECK(client != NULL || count == 1);
	*admitted = (struct admitted){ .client = client,
				       .rights = *rights,
				       .origin = origin,
				       .messages = messages,
				       .count = count };
	return admitted;
}

void admitted_free(struct admitted **admitted)
{
	free(*admitted);
	*admitted = NULL;
}

size_t admitted_count(const struct admitted *admitted)
{
	return admitted->count;
}

const struct audit_origin *admitted_origin(const struct admitted *admitted)
{
	return admitted->origin;
}

const struct envelope *admitted_next(struct admitted *admitted)
{
	if (admitted->next == admitted->count)
		return NULL;
	admitted->is_taken = false;
	return &admitted->messages[admitted->next++];
}

const struct envelope *admitted_take(struct admitted *admitted, const struct client *client)
{
	CHECK(admitted->next > 0 && !admitted->is_taken);
	CHECK(admitted->client == client);
	admitted->is_taken = true;
	return &admitted->messages[admitted->next - 1];
}

const struct rights *admitted_rights(const struct admitted *admitted)
{
	return &admitted->rights;
}
