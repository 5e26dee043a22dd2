/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a line answers is found out wherever its parts end, and whatever it is. */
#include "upstream/stdio.h"

#include "base/check.h"
#include "base/unit_test.h"

static char found[200];

static void on_id(struct slice id, void *arg)
{
	assert_null(arg);
	snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s;", (int)id.n, id.p);
}

/* The ids found in a text, in which ' stands for ", that comes in parts of this size. */
static const char *find(const char *text, size_t size)
{
	struct long_line line = { .depth = 0 };
	char copy[400];
	size_t length = strlen(text);

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = copy; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	found[0] = '\0';
	for (size_t i = 0; i < length; i += size) {
		size_t n = length - i < size ? length - i : size;

		long_line_take(&line, slice_of(copy + i, n), i + n == length, on_id, NULL);
	}
	return found;
}

/* BACK-FRAME-06 */
static void the_ids_of_responses_are_found(void **state)
{
	static const struct {
		const char *text;
		const char *ids;
	} rows[] = {
		{ "{'jsonrpc':'2.0','id':7,'result':{'a':[1,{'id':8}]}}", "7;" },
		{ "{'result':{'text':'}],\\'id\\':3,\\\\','id':[4]} , 'id' : 12 }", "12;" },
		{ "{'id':'seven','error':{'code':1}}", "'seven';" },
		{ "{'id':1,'id':2,'result':{}}", "1;" },
		{ "{'id':5,'method':'ping'}", "" },
		{ "{'method':'notifications/x','params':{'id':9}}", "" },
		{ "{'result':{},'id':{'id':4}}", "" },
		{ "{'result':'id','x':'id'}", "" },
		{ "[{'id':1,'result':{}},{'result':[],'id':2},{'id':3,'method':'m'}]", "1;2;" },
		{ "{'id':6,'result':{'cut", "6;" },
		{ "]]]}}}:,:,'id':4", "" },
		{ "debug: {'id':4,'result':1}", "4;" },
		{ "{'id':1111111111111111111111111111111111111111111111111111111111111111111111}",
		  "" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char wanted[200];

		snprintf(wanted, sizeof(wanted), "%s", rows[i].ids);
		for (char *at = wanted; (at = strchr(at, '\'')) != NULL;)
			*at = '"';
		for (size_t size = 1; size < 90; size++)
			assert_string_equal(find(rows[i].text, size), wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ids_of_responses_are_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
