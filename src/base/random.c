/* SPDX-License-Identifier: Apache-2.0 */
/* getrandom(2), no buffer: a fork never repeats numbers. */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

#include "base/check.h"

void random_bytes(void *out, size_t size)
{
	char *at = out;

	while (size > 0) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		CHECK(n > 0);
		at += n;
		size -= (size_t)n;
	}
}

uint64_t random_below(uint64_t limit)
{
	uint64_t unfair, value;

	CHECK(limit > 0);
	/* Numbers from the incomplete last stretch would favour small results: draw again. */
	unfair = (0 - limit) % limit;
	do {
		random_bytes(&value, sizeof(value));
	} while (value < unfair);
	return value % limit;
}
