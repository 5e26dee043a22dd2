/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of WWW-Authenticate. What must hold: nothing behind the field is read; parameters belong to a challenge for
 * Bearer; each is a terminated text no longer than the field; the same comes out twice.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ctl/oauth.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct challenge *challenge, const char *text, const char *again,
		       size_t size)
{
	CHECK((text == NULL) == (again == NULL));
	if (text == NULL)
		return;
	CHECK(challenge->is_bearer);
	CHECK(strlen(text) <= size);
	CHECK(strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	struct challenge first, second;

	memcpy(copy, data, size);
	challenge_parse(slice_of(copy, size), &first);
	challenge_parse(slice_of(copy, size), &second);
	CHECK(first.is_bearer == second.is_bearer);
	check_text(&first, first.resource_metadata, second.resource_metadata, size);
	check_text(&first, first.scope, second.scope, size);
	check_text(&first, first.error, second.error, size);
	check_text(&first, first.error_description, second.error_description, size);
	challenge_fini(&first);
	challenge_fini(&second);
	free(copy);
	return 0;
}
