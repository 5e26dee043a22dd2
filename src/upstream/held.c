/* SPDX-License-Identifier: Apache-2.0 */
/* A list of messages, and a map of those that are requests. How much may wait is for the caller to say. */
#include "upstream/held.h"

#include <stdlib.h>

#include "base/mem.h"

struct held_message {
	struct list link;
	uint64_t id; /* 0: it is not in the map */
	struct buf text;
};

void held_init(struct held *held)
{
	*held = (struct held){ .bytes = 0 };
	list_init(&held->messages);
}

void held_move(struct held *to, struct held *from)
{
	held_init(to);
	list_splice(&to->messages, &from->messages);
	to->by_id = from->by_id;
	to->bytes = from->bytes;
	held_init(from);
}

static size_t held_weight(const struct held_message *one)
{
	return one->text.len + sizeof(*one);
}

bool held_is_empty(const struct held *held)
{
	return list_is_empty(&held->messages);
}

void held_add(struct held *held, uint64_t id, struct buf *message)
{
	struct held_message *one = mem_zalloc(sizeof(*one));

	one->text = *message;
	*message = (struct buf){ 0 };
	held->bytes += held_weight(one);
	list_append(&held->messages, &one->link);
	if (id == 0 || map_find(&held->by_id, id) != NULL)
		return;
	one->id = id;
	map_insert(&held->by_id, id, one);
}

static void held_remove(struct held *held, struct held_message *one, struct buf *message_r)
{
	CHECK(held->bytes >= held_weight(one));
	held->bytes -= held_weight(one);
	list_remove(&one->link);
	if (one->id != 0)
		map_remove(&held->by_id, one->id);
	*message_r = one->text;
	free(one);
}

bool held_give_up(struct held *held, uint64_t id)
{
	struct held_message *one = id != 0 ? map_find(&held->by_id, id) : NULL;
	struct buf message;

	if (one == NULL)
		return false;
	held_remove(held, one, &message);
	buf_fini(&message);
	return true;
}

bool held_take(struct held *held, struct buf *message_r)
{
	if (held_is_empty(held))
		return false;
	held_remove(held, container_of(held->messages.next, struct held_message, link), message_r);
	return true;
}

void held_fini(struct held *held)
{
	struct buf message;

	while (held_take(held, &message))
		buf_fini(&message);
	map_fini(&held->by_id);
}
