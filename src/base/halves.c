/* SPDX-License-Identifier: Apache-2.0 */
#include "base/halves.h"

/* An invalid one is as good as any to be written next. */
static uint64_t spare(const struct halves *halves)
{
	return halves->half == 0;
}

size_t halves_find_text(const struct halves *halves, size_t room)
{
	CHECK(halves->half < 2);
	return sizeof(*halves) + halves->half * room;
}

bool halves_read(const struct halves *halves, size_t room, struct slice *text_r)
{
	const uint64_t half = __atomic_load_n(&halves->half, __ATOMIC_SEQ_CST);
	uint64_t bytes;

	if (half > 1)
		return false;
	bytes = __atomic_load_n(&halves->bytes[half], __ATOMIC_SEQ_CST);
	if (bytes > room)
		return false;
	*text_r = slice_of(halves->text + half * room, bytes);
	return true;
}

char *halves_begin(struct halves *halves, size_t room)
{
	return halves->text + spare(halves) * room;
}

void halves_end(struct halves *halves, size_t room, size_t bytes)
{
	const uint64_t half = spare(halves);

	CHECK(bytes <= room);
	__atomic_store_n(&halves->bytes[half], bytes, __ATOMIC_SEQ_CST);
	__atomic_store_n(&halves->half, half, __ATOMIC_SEQ_CST);
}
