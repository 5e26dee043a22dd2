/* SPDX-License-Identifier: Apache-2.0 */
/* getrandom(2) without a buffer, so a forked process never repeats numbers. */
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
	/* The incomplete last interval would bias the result toward small numbers: draw again. */
	unfair = (0 - limit) % limit;
	do {
		random_bytes(&value, sizeof(value));
	} while (value < unfair);
	return value % limit;
}
