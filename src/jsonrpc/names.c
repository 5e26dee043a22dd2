/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated names. Up to NAMES_FEW they are compared one by one, but only if a name of the same kind
 * (length, first and last byte, folded into 64 bits) was met before. Beyond, they are collected and
 * sorted at the end, which needs no hash that a peer could aim at.
 *
 * FRONT-HTTP-11, SEC-44.
 */
#include "jsonrpc/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

void names_init(struct names *names)
{
	names->heap = NULL;
	names->count = 0;
	names->cap = 0;
	names->seen = 0;
}

static uint64_t names_kind(struct slice name)
{
	unsigned int sum = (unsigned int)name.n;

	if (name.n > 0)
		sum += (unsigned char)name.p[0] * 5u + (unsigned char)name.p[name.n - 1] * 3u;
	return UINT64_C(1) << (sum & 63);
}

static void names_add_to_heap(struct names *names, struct slice name)
{
	CHECK(names->count >= NAMES_FEW && (names->heap == NULL || names->count <= names->cap));
	if (names->heap == NULL) {
		names->cap = (size_t)NAMES_FEW * 4;
		names->heap = mem_alloc(names->cap * sizeof(*names->heap));
		memcpy(names->heap, names->few, sizeof(names->few));
	}
	if (names->count == names->cap) {
		names->cap *= 2;
		names->heap = mem_resize(names->heap, names->cap * sizeof(*names->heap));
	}
	names->heap[names->count++] = name;
}

bool names_add(struct names *names, struct slice name)
{
	uint64_t kind = names_kind(name);

	if (names->count >= NAMES_FEW) {
		names_add_to_heap(names, name);
		return false;
	}
	if ((names->seen & kind) != 0 &&
	    slices_has((struct slices){ names->few, names->count }, name))
		return true;
	names->seen |= kind;
	names->few[names->count++] = name;
	return false;
}

static int names_compare(const void *a, const void *b)
{
	const struct slice *left = a;
	const struct slice *right = b;

	if (left->n != right->n)
		return left->n < right->n ? -1 : 1;
	return left->n == 0 ? 0 : memcmp(left->p, right->p, left->n);
}

bool names_find_repeated(struct names *names, struct slice *name_r)
{
	if (names->heap == NULL)
		return false;
	CHECK(names->count > NAMES_FEW && names->count <= names->cap);
	qsort(names->heap, names->count, sizeof(*names->heap), names_compare);
	for (size_t i = 1; i < names->count; i++) {
		if (slice_is_equal(names->heap[i - 1], names->heap[i])) {
			*name_r = names->heap[i];
			return true;
		}
	}
	return false;
}

void names_fini(struct names *names)
{
	free(names->heap);
	names->heap = NULL;
}
