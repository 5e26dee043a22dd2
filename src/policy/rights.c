/* SPDX-License-Identifier: Apache-2.0 */
/* A number is the place in the order in which the configuration names the scopes. */
#include "policy/rights.h"

static size_t table_seek(const struct scope_table *table, struct slice name)
{
	size_t i = 0;

	CHECK(table->count <= SCOPES_MAX);
	while (i < table->count && !slice_is_equal(table->names[i], name))
		i++;
	return i;
}

static void set_add(struct scope_set *set, size_t number)
{
	CHECK(number < SCOPES_MAX);
	set->words[number / 64] |= (uint64_t)1 << number % 64;
}

static bool set_has(const struct scope_set *set, size_t number)
{
	CHECK(number < SCOPES_MAX);
	return set->words[number / 64] >> number % 64 & 1;
}

void scope_table_add(struct scope_table *table, struct slice name, struct scope_set *set)
{
	size_t number = table_seek(table, name);

	if (number == SCOPES_MAX) {
		table->lacks_some = true;
		return;
	}
	if (number == table->count)
		table->names[table->count++] = name;
	set_add(set, number);
}

void scope_table_find(const struct scope_table *table, struct slice name, struct scope_set *set)
{
	size_t number = table_seek(table, name);

	if (number < table->count)
		set_add(set, number);
}

void scope_table_imply(struct scope_table *table, struct slice name, struct slice given)
{
	struct scope_set added = { { 0 } };
	size_t number;

	scope_table_add(table, name, &added);
	number = table_seek(table, name);
	if (number < table->count)
		scope_table_add(table, given, &table->implied[number]);
}

bool scope_table_implies(const struct scope_table *table, struct slice name, struct slice given)
{
	size_t from = table_seek(table, name);
	size_t to = table_seek(table, given);
	struct scope_set all;

	if (from == table->count || to == table->count)
		return false;
	all = scope_table_close(table, &table->implied[from]);
	return set_has(&all, to);
}

struct scope_set scope_table_close(const struct scope_table *table, const struct scope_set *held)
{
	struct scope_set all = *held;
	struct scope_set done = { { 0 } };
	bool grows = true;

	while (grows) {
		grows = false;
		for (size_t i = 0; i < table->count; i++) {
			if (!set_has(&all, i) || set_has(&done, i))
				continue;
			set_add(&done, i);
			scope_set_join(&all, &table->implied[i]);
			grows = true;
		}
	}
	return all;
}

void scope_table_append(const struct scope_table *table, const struct scope_set *set,
			struct buf *out)
{
	bool is_first = true;

	for (size_t i = 0; i < table->count; i++) {
		if (!set_has(set, i))
			continue;
		if (!is_first)
			buf_append_char(out, ' ');
		buf_append_slice(out, table->names[i]);
		is_first = false;
	}
}

void scope_set_join(struct scope_set *set, const struct scope_set *other)
{
	for (size_t i = 0; i < SCOPE_WORDS; i++)
		set->words[i] |= other->words[i];
}

bool scope_set_is_empty(const struct scope_set *set)
{
	const struct scope_set nothing = { { 0 } };

	return scope_set_covers(&nothing, set);
}

bool scope_set_covers(const struct scope_set *set, const struct scope_set *needed)
{
	for (size_t i = 0; i < SCOPE_WORDS; i++)
		if ((needed->words[i] & ~set->words[i]) != 0)
			return false;
	return true;
}
