/* SPDX-License-Identifier: Apache-2.0 */
/* Challenges as servers write them, well and badly. */
#include "ctl/oauth.c"

#include <strings.h>

#include "base/check.h"
#include "base/unit_test.h"

static const struct {
	const char *field;
	bool is_bearer;
	const char *metadata; /* "" for none */
	const char *scope;
} rows[] = {
	{ "Bearer resource_metadata=\"https://h/m\", scope=\"a b\"", true, "https://h/m", "a b" },
	{ "bearer Scope=a,RESOURCE_METADATA = \"m\"", true, "m", "a" },
	{ "Basic realm=\"Bearer scope=x\", Bearer scope=\"y\"", true, "", "y" },
	{ "Negotiate abc==, Bearer scope=y", true, "", "y" },
	{ "Bearer scope=y, DPoP algs=\"ES256\", scope=z, resource_metadata=n", true, "", "y" },
	{ "Bearer realm=\"a, \\\"b\\\" c=d\", scope=\"q\\\"q\"", true, "", "q\"q" },
	{ "Bearer scope=one, scope=two", true, "", "one" },
	{ "Bearer", true, "", "" },
	{ "Bearer scope=\"open", true, "", "open" },
	{ "Bearer scope=\"open\\", true, "", "open\\" },
	{ "Bearer scope=", true, "", "" },
	{ "scope=early, Basic x", false, "", "" },
	{ ",, \"=\" ,", false, "", "" },
	{ "", false, "", "" },
};

static void reads_what_servers_write(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct challenge c;

		challenge_parse(slice_str(rows[i].field), &c);
		assert_int_equal(c.is_bearer, rows[i].is_bearer);
		assert_int_equal(c.is_first,
				 strncasecmp(rows[i].field, "Bearer", strlen("Bearer")) == 0);
		assert_string_equal(c.resource_metadata != NULL ? c.resource_metadata : "",
				    rows[i].metadata);
		assert_string_equal(c.scope != NULL ? c.scope : "", rows[i].scope);
		challenge_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_what_servers_write) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
