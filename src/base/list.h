/* SPDX-License-Identifier: Apache-2.0 */
/* Doubly linked ring; the head is a struct list too. A removed node is linked to itself. */
#pragma once

#include <stdbool.h>

#include "base/check.h"

struct list {
	struct list *next;
	struct list *prev;
};

/* The entry, of that type, whose `member` is the node; NULL: it is the head. */
#define LIST_AT(node, head, type, member) \
	((node) != (head) ? container_of(node, type, member) : NULL)

/* `entry` is each `type` whose `member` is in the list. */
#define LIST_EACH(type, entry, head, member)                                         \
	for (type *entry = LIST_AT((head)->next, head, type, member); entry != NULL; \
	     entry = LIST_AT(entry->member.next, head, type, member))

/* The body may remove the entry, but no other one. */
#define LIST_EACH_SAFE(type, entry, head, member)                                                  \
	for (type *entry = LIST_AT((head)->next, head, type, member),                              \
		  *entry##_next =                                                                  \
			  entry != NULL ? LIST_AT(entry->member.next, head, type, member) : NULL;  \
	     entry != NULL; entry = entry##_next,                                                  \
		  entry##_next = entry != NULL ? LIST_AT(entry->member.next, head, type, member) : \
						 NULL)

/* `entry` is the first one, until there is none: the body removes it. */
#define LIST_DRAIN(type, entry, head, member) \
	for (type * entry; (entry = LIST_AT((head)->next, head, type, member)) != NULL;)

/* The same with the nodes themselves. */
#define LIST_FOREACH(node, head) \
	for (struct list *node = (head)->next; node != (head); node = node->next)

/* The body may remove `node`, but no other node. */
#define LIST_FOREACH_SAFE(node, head)                                                     \
	for (struct list *node = (head)->next, *node##_next = node->next; node != (head); \
	     node = node##_next, node##_next = node->next)

static inline void list_init(struct list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Also valid on a node that is in no list, provided it was initialized. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* To the end of that list, from another place of it or from another list. */
static inline void list_move(struct list *head, struct list *node)
{
	list_remove(node);
	list_append(head, node);
}

/* Moves all nodes of `from` to the end of `to`; `from` is then empty. */
static inline void list_splice(struct list *to, struct list *from)
{
	CHECK(to != from);
	if (list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}
