/* SPDX-License-Identifier: Apache-2.0 */
/* What a server's -32042 says, and what a client answers to it. bridging.md §2.3.7, MOD-MRTR-02, -05 */
#include "router/url_pending.h"

#include "base/text.h"
#include "base/unit_test.h"

static char *q(const char *text)
{
	char *copy = strdup(text);

	for (char *p = copy; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

/* What is wanted by an error of this text; "": nothing that is understood. The caller frees it. */
static char *wanted_by(const char *error)
{
	struct buf wanted = { 0 };
	char *text = q(error);
	bool is_read = url_elicitation_read(slice_str(text), &wanted);
	char *found;

	assert_int_equal(is_read, wanted.len > 0);
	found = strdup(buf_terminate(&wanted));
	buf_fini(&wanted);
	free(text);
	return found;
}

static void is_wanted(const char *error, const char *expected)
{
	char *found = wanted_by(error);
	char *text = q(expected);

	assert_string_equal(found, text);
	free(text);
	free(found);
}

#define ERROR(list) "{'code':-32042,'message':'m','data':{'elicitations':" list "}}"
#define URL(id, url) "{'mode':'url','elicitationId':" id ",'message':'m','url':" url "}"

static void errors_are_read(void **state)
{
	is_wanted(ERROR("[" URL("'a'", "'u:1'") "]"), "[{'id':'a','message':'m','url':'u:1'}]");
	is_wanted(ERROR("[ {'url' : 'u:1', 'x':[1], 'message':'m','elicitationId':'a','mode':'url',"
			"'_meta':{},'task':1} ,\n" URL("'a'", "'u:2'") "]"),
		  "[{'id':'a','message':'m','url':'u:1'},{'id':'a','message':'m','url':'u:2'}]");
	/* What stands first counts, and that alone is what a client gets. */
	is_wanted(ERROR("[{'mode':'url','elicitationId':'a','message':'m','url':'u:1','url':'u:2',"
			"'u\\u0072l':'u:3'}]"),
		  "[{'id':'a','message':'m','url':'u:1'}]");
}

static void what_is_none(void **state)
{
	static const char *const errors[] = {
		"{'code':-32042,'message':'m'}",
		"{'code':-32042,'message':'m','data':1}",
		"{'code':-32042,'message':'m','data':{'elicitations':{}}}",
		"{'code':-32041,'message':'m','data':{'elicitations':[" URL("'a'", "'u'") "]}}",
		"{'code':'-32042','message':'m','data':{'elicitations':[" URL("'a'", "'u'") "]}}",
		ERROR("[]"),
		ERROR("[1]"),
		ERROR("[[]]"),
		ERROR("[{}]"),
		ERROR("[null," URL("'a'", "'u'") "]"),
		ERROR("[" URL("'a'", "'u'") ",null]"),
		ERROR("[" URL("1", "'u'") "]"),
		ERROR("[" URL("'a'", "{}") "]"),
		ERROR("[{'mode':'form','elicitationId':'a','message':'m','url':'u'}]"),
		ERROR("[{'elicitationId':'a','message':'m','url':'u'}]"),
		ERROR("[{'mode':'url','mod\\u0065':'form','elicitationId':'a','message':1,'url':'u'}]"),
		ERROR("[{'mode':'url','message':'m','url':'u'}]"),
		ERROR("[{'mode':'url','elicitationId':'a','url':'u'}]"),
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		is_wanted(errors[i], "");
}

/* An error with so many, of which each has an id and a URL of these lengths. */
static bool is_taken(size_t count, int id, int url)
{
	struct buf error = { 0 };
	char *found;
	bool is_found;

	buf_append_str(&error, "{'code':-32042,'message':'m','data':{'elicitations':[");
	for (size_t i = 0; i < count; i++)
		buf_printf(&error, "%s" URL("'%0*d'", "'%0*d'"), i > 0 ? "," : "", id, 1, url, 1);
	buf_append_str(&error, "]}}");
	found = wanted_by(buf_terminate(&error));
	is_found = found[0] != '\0';
	free(found);
	buf_fini(&error);
	return is_found;
}

static void there_are_bounds(void **state)
{
	assert_true(is_taken(URL_ELICITATIONS_MAX, 8, 8));
	assert_false(is_taken(URL_ELICITATIONS_MAX + 1, 8, 8));
	assert_false(is_taken(1000, 8, 8));
	assert_true(is_taken(1, URL_ELICITATION_ID_MAX - 2, 8));
	assert_false(is_taken(1, URL_ELICITATION_ID_MAX - 1, 8));
	assert_true(is_taken(1, 8, URL_ELICITATIONS_BYTES_MAX - 100));
	assert_false(is_taken(1, 8, URL_ELICITATIONS_BYTES_MAX));
	assert_false(is_taken(2, 8, URL_ELICITATIONS_BYTES_MAX - 100));
	assert_true(is_taken(URL_ELICITATIONS_MAX, URL_ELICITATION_ID_MAX - 2, 8 * 1024));
}

#define THREE \
	"[{'id':'a','message':'m','url':'u:1'},{'id':'b'},{'id':'c','message':'n','url':'u:3'}]"

static void clients_are_asked(void **state)
{
	struct buf out = { 0 };
	char *wanted = q(THREE);
	char *expected = q(
		"'e1':{'method':'elicitation/create','params':{'mode':'url','message':'m','url':'u:1'"
		"}},'e3':{'method':'elicitation/create','params':{'mode':'url','message':'n','url':"
		"'u:3'}}");

	url_elicitation_append_requests(&out, slice_str(wanted));
	assert_string_equal(buf_terminate(&out), expected);
	buf_fini(&out);
	free(wanted);
	free(expected);
}

#define ACCEPT "{'action':'accept'}"

static void answers_are_read(void **state)
{
	static const struct {
		const char *responses;
		enum url_answers answers;
		const char *left;
	} rows[] = {
		{ "{'e1':" ACCEPT ",'e3':" ACCEPT "}", URL_ANSWERS_ACCEPTED, "" },
		{ "{'e3':{'x':1,'action':'accept','content':{}},'r1':1,'e1':" ACCEPT "}",
		  URL_ANSWERS_ACCEPTED, "" },
		{ "{'e1':" ACCEPT "}", URL_ANSWERS_PARTIAL,
		  "[{'id':'a'},{'id':'b'},{'id':'c','message':'n','url':'u:3'}]" },
		{ "{}", URL_ANSWERS_PARTIAL, THREE },
		{ "", URL_ANSWERS_PARTIAL, THREE },
		/* Keys that were not given out, or are answered already. */
		{ "{'e2':1,'e4':1,'e0':1,'e01':1,'e':1,'e99999999999999999999':1,'e1 ':1,'E1':1,"
		  "'\\u0065\\u0031':1}",
		  URL_ANSWERS_PARTIAL, THREE },
		{ "{'e1':" ACCEPT ",'e3':{'action':'decline'}}", URL_ANSWERS_DECLINED, "" },
		{ "{'e3':{'action':'cancel'}}", URL_ANSWERS_DECLINED, "" },
		{ "{'e1':{'action':'accept'},'e1':{'action':'accept'}}", URL_ANSWERS_MALFORMED,
		  "" },
		{ "{'e1':null}", URL_ANSWERS_MALFORMED, "" },
		{ "{'e1':'accept'}", URL_ANSWERS_MALFORMED, "" },
		{ "{'e1':{'action':'yes'}}", URL_ANSWERS_MALFORMED, "" },
		{ "{'e1':{'action':['accept']}}", URL_ANSWERS_MALFORMED, "" },
		{ "{'e1':{}}", URL_ANSWERS_MALFORMED, "" },
		{ "[]", URL_ANSWERS_MALFORMED, "" },
		{ "1", URL_ANSWERS_MALFORMED, "" },
	};
	char *wanted = q(THREE);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *responses = q(rows[i].responses), *expected = q(rows[i].left);
		struct json json = scan_value(slice_str(responses));
		struct buf left = { 0 };

		assert_int_equal(url_elicitation_read_answers(slice_str(wanted), json, &left),
				 rows[i].answers);
		assert_string_equal(buf_terminate(&left), expected);
		buf_fini(&left);
		free(responses);
		free(expected);
	}
	free(wanted);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(errors_are_read),  cmocka_unit_test(what_is_none),
	cmocka_unit_test(there_are_bounds), cmocka_unit_test(clients_are_asked),
	cmocka_unit_test(answers_are_read),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
