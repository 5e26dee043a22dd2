/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are the same one. bridging.md §2.6, §8 (4) */
#include "router/digest.h"

#include "base/buf.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };

/* Of a request whose digest is asked for later, and twice. */
static void kept_is_of(const struct envelope *env, const struct digest *expected)
{
	struct kept_digest *kept = kept_digest_new(env);

	for (int i = 0; i < 2; i++)
		assert_memory_equal(kept_digest_get(kept)->bytes, expected->bytes,
				    sizeof(expected->bytes));
	kept_digest_free(&kept);
	assert_null(kept);
	kept_digest_free(&kept);
}

/* Of a request with this method and these params, in which ' stands for ". */
static struct digest digest_of(const char *method, const char *params)
{
	struct buf text = { 0 };
	struct digest digest;
	struct envelope env;
	struct error err;

	buf_printf(&text, "{'jsonrpc':'2.0','id':1,'method':'%s','params':%s}", method, params);
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\'')
			text.data[i] = '"';
	}
	assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &env, &err), 0);
	digest_request(&env, &digest);
	kept_is_of(&env, &digest);
	buf_fini(&text);
	return digest;
}

static bool is_same(const char *params, const char *others)
{
	struct digest a = digest_of("tools/call", params);
	struct digest b = digest_of("tools/call", others);

	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static void it_is_sha256_of_the_canonical_object(void **state)
{
	struct digest made =
		digest_of("tools/call", "{ 'name':'t', 'arguments':{'b':1.0,'a':[]}, 'x':1 }");
	struct digest expected;

	digest_bytes(
		SLICE_LIT(
			"{\"arguments\":{\"a\":[],\"b\":1},\"method\":\"tools/call\",\"name\":\"t\"}"),
		&expected);
	assert_memory_equal(made.bytes, expected.bytes, sizeof(made.bytes));
	made = digest_of("resources/read", "{'uri':'file:\\/\\/\\/a'}");
	digest_bytes(SLICE_LIT("{\"method\":\"resources/read\",\"uri\":\"file:///a\"}"), &expected);
	assert_memory_equal(made.bytes, expected.bytes, sizeof(made.bytes));
	made = digest_of("tools/call", "[]");
	digest_bytes(SLICE_LIT("{\"method\":\"tools/call\"}"), &expected);
	assert_memory_equal(made.bytes, expected.bytes, sizeof(made.bytes));
}

static void sha256_is_sha256(void **state)
{
	static const unsigned char abc[] =
		"\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23"
		"\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad";
	struct digest digest;

	digest_bytes(SLICE_LIT("abc"), &digest);
	assert_memory_equal(digest.bytes, abc, sizeof(digest.bytes));
}

static void what_changes_with_a_retry_is_left_out(void **state)
{
	assert_true(is_same(
		"{'name':'t','arguments':{'a':1}}",
		"{'_meta':{'progressToken':9},'arguments':{ 'a' : 1e0 },'requestState':'g1',"
		"'inputResponses':{'r1':{}},'name':'\\u0074'}"));
}

static void other_requests_are_others(void **state)
{
	static const char base[] = "{'name':'t','arguments':{'a':1,'b':'x'}}";
	static const char *const others[] = {
		"{'name':'u','arguments':{'a':1,'b':'x'}}",
		"{'name':'t','arguments':{'a':2,'b':'x'}}",
		"{'name':'t','arguments':{'a':1,'b':'x','c':null}}",
		"{'name':'t','arguments':{'a':1}}",
		"{'name':'t','arguments':{'a':'1','b':'x'}}",
		"{'name':'t'}",
		"{'arguments':{'a':1,'b':'x'}}",
		"{'uri':'t','arguments':{'a':1,'b':'x'}}",
		"{'name':'t','arguments':{'a':1,'b':'x','_meta':{}}}",
	};
	struct digest a = digest_of("tools/call", base);
	struct digest b = digest_of("prompts/get", base);

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(is_same(base, others[i]));
	assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
}

/* Just below, at and above what is kept as text. */
static void length_does_not_matter(void **state)
{
	struct digest last = { { 0 } };

	for (size_t n = KEPT_DIGEST_TEXT_MAX - 80; n < KEPT_DIGEST_TEXT_MAX + 2; n++) {
		struct buf params = { 0 };
		struct digest made;

		buf_printf(&params, "{'name':'%0*d'}", (int)n, 7);
		made = digest_of("tools/call", buf_terminate(&params));
		assert_memory_not_equal(made.bytes, last.bytes, sizeof(made.bytes));
		last = made;
		buf_fini(&params);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_sha256_of_the_canonical_object),
		cmocka_unit_test(sha256_is_sha256),
		cmocka_unit_test(what_changes_with_a_retry_is_left_out),
		cmocka_unit_test(other_requests_are_others),
		cmocka_unit_test(length_does_not_matter),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
