/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed requestState: what opens, and all that must not. bridging.md §2.6, §8 (4) */
#include "router/seal.h"

#include <ctype.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/call.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/router.h"
#include "session/principal.h"

#define NOW 1700000000

static const struct identity ann = { SLICE("https://as.example"), SLICE("ann"), SLICE("cli") };
static struct digest digest;
static struct seal_keys keys;
static struct seal_binding binding;
static struct buf sealed; /* with its quotes */
static struct buf plain;
static struct seal seal;
static struct error err;

static int setup(void **state)
{
	static const unsigned char kept[2 * SEAL_KEY_BYTES] = { 1, 2, 3, [SEAL_KEY_BYTES] = 4 };

	digest_bytes(SLICE_LIT("abc"), &digest);
	seal_keys_init(&keys, kept, 2);
	binding = (struct seal_binding){ .server = SLICE_LIT("books"),
					 .caller = &ann,
					 .digest = &digest };
	return 0;
}

static int teardown(void **state)
{
	seal_keys_fini(&keys);
	buf_fini(&sealed);
	buf_fini(&plain);
	return 0;
}

static void make(enum seal_kind kind, struct slice text)
{
	struct seal one = { .kind = kind,
			    .round = 7,
			    .child = 1234567890123,
			    .call = { 9, 8, 7 },
			    .issued_at_s = NOW,
			    .expires_at_s = NOW + 600,
			    .text = text };

	sealed.len = 0;
	seal_append(&sealed, &keys, &binding, &one);
}

static int open_slice(struct slice text, uint64_t now_s)
{
	struct json value = { .type = JSON_STRING, .text = text };

	buf_fini(&plain);
	return seal_open(&keys, &binding, value, now_s, &plain, &seal, &err);
}

static int open_sealed(void)
{
	return open_slice(buf_slice(&sealed), NOW);
}

static void is_refused(const char *why)
{
	assert_int_equal(open_sealed(), -1);
	assert_int_equal(err.kind, ERROR_INVALID);
	assert_string_equal(err.text, why);
}

static void what_is_sealed_is_opened(void **state)
{
	static const enum seal_kind kinds[] = { SEAL_PARKED, SEAL_WRAPPED, SEAL_REPLAY, SEAL_TASK,
						SEAL_COUNTS };
	static const struct slice texts[] = { SLICE(""), SLICE("\"a\\u0000\xc3\xa9\""),
					      SLICE("\0\n\"\\") };
	static const unsigned char call[SEAL_CALL_BYTES] = { 9, 8, 7 };

	for (size_t i = 0; i < ARRAY_LEN(kinds) * ARRAY_LEN(texts); i++) {
		enum seal_kind kind = kinds[i / ARRAY_LEN(texts)];
		struct slice text = texts[i % ARRAY_LEN(texts)];

		make(kind, text);
		assert_int_equal(open_sealed(), 0);
		assert_int_equal(seal.kind, kind);
		assert_int_equal(seal.round, 7);
		assert_int_equal(seal.child, 1234567890123);
		assert_memory_equal(seal.call, call, sizeof(call));
		assert_int_equal(seal.issued_at_s, NOW);
		assert_int_equal(seal.expires_at_s, NOW + 600);
		assert_true(slice_is_equal(seal.text, text));
	}
}

/* A JSON string that every transport takes as it is. */
static void its_form(void **state)
{
	struct buf first = { 0 };

	make(SEAL_WRAPPED, SLICE_LIT("x"));
	assert_memory_equal(sealed.data, "\"g2.", 4);
	assert_int_equal(sealed.data[4 + SEAL_KID_CHARS], '.');
	assert_int_equal(sealed.data[sealed.len - 1], '"');
	for (size_t i = 1; i < sealed.len - 1; i++)
		assert_true(isalnum((unsigned char)sealed.data[i]) ||
			    strchr("-_.", sealed.data[i]) != NULL);
	buf_append_slice(&first, buf_slice(&sealed));
	make(SEAL_WRAPPED, SLICE_LIT("x"));
	assert_int_equal(first.len, sealed.len);
	/* of the same, nothing is the same but the head */
	assert_memory_not_equal(first.data + 16, sealed.data + 16, 16);
	assert_memory_not_equal(first.data + 48, sealed.data + 48, 32);
	buf_fini(&first);
}

/* A task has one name; another task, of another server or with another key, has nothing in common with it. */
static void a_name_is_the_same_each_time(void **state)
{
	struct buf first = { 0 };

	make(SEAL_TASK, SLICE_LIT("x"));
	buf_append_slice(&first, buf_slice(&sealed));
	make(SEAL_TASK, SLICE_LIT("x"));
	assert_true(slice_is_equal(buf_slice(&first), buf_slice(&sealed)));
	make(SEAL_TASK, SLICE_LIT("y"));
	assert_memory_not_equal(first.data + 16, sealed.data + 16, 16);
	assert_memory_not_equal(first.data + 48, sealed.data + 48, 32);
	binding.server = SLICE_LIT("another");
	make(SEAL_TASK, SLICE_LIT("x"));
	assert_memory_not_equal(first.data + 16, sealed.data + 16, 16);
	assert_memory_not_equal(first.data + 48, sealed.data + 48, 32);
	buf_fini(&first);
}

/* Made by another implementation (Python's hmac, and AESGCM of `cryptography`): the form does not change unnoticed. */
static void a_text_of_somebody_else_opens(void **state)
{
	static const char text[] =
		"\"g2.6q23Ptsr.c2FsdC1vZi0xMi1ibm9uY2Utb2YtMTJipkPRF8YFfSdv03CEeYMZHb822DDcH1gAbE9"
		"VNUsb0pc9zG-0fRjmV1TKhF3ye9JbR65IqxJcS8ft164m8pzFRFPPVWMgWjDtsxloOYvVd9ZCydYcXDN"
		"bQ8div_fmLafocgibE4LzLL0b6P8Jmd2gbGEE7BfBEaE-3As__IZR3O9TRPe5i90\"";
	unsigned char key[SEAL_KEY_BYTES];

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)i;
	seal_keys_fini(&keys);
	seal_keys_init(&keys, key, 1);
	assert_int_equal(open_slice(slice_str(text), NOW), 0);
	assert_int_equal(seal.kind, SEAL_WRAPPED);
	assert_int_equal(seal.round, 3);
	assert_int_equal(seal.child, 42);
	assert_int_equal(seal.expires_at_s, NOW + 600);
	assert_true(slice_is_equal(seal.text, SLICE_LIT("\"X\\u0041\"")));
}

static void any_change_is_noticed(void **state)
{
	make(SEAL_PARKED, SLICE_LIT("text"));
	for (size_t i = 1; i < sealed.len - 1; i++) {
		char was = sealed.data[i];

		for (unsigned int bit = 0; bit < 8; bit++) {
			sealed.data[i] = (char)(was ^ 1u << bit);
			assert_int_equal(open_sealed(), -1);
		}
		sealed.data[i] = was;
	}
	assert_int_equal(open_sealed(), 0);
	for (size_t n = 0; n < sealed.len - 1; n++) {
		char *copy = mem_printf("%.*s\"", (int)n, sealed.data);

		assert_int_equal(open_slice(slice_str(copy), NOW), -1);
		free(copy);
	}
}

static void only_its_caller_opens_it(void **state)
{
	static const struct identity others[] = {
		{ SLICE("https://as.example"), SLICE("ann"), SLICE("cli2") },
		{ SLICE("https://as.example"), SLICE("bob"), SLICE("cli") },
		{ SLICE("https://as2.example"), SLICE("ann"), SLICE("cli") },
		{ SLICE("https://as.example"), SLICE("annc"), SLICE("li") },
		{ SLICE("https://as.examplea"), SLICE("nn"), SLICE("cli") },
		{ SLICE(""), SLICE(""), SLICE("") },
	};

	make(SEAL_WRAPPED, SLICE_LIT("x"));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		binding.caller = &others[i];
		is_refused("it belongs to another caller");
	}
}

static void only_its_server_opens_it(void **state)
{
	static const struct slice others[] = { SLICE("book"), SLICE("books2"), SLICE("Books"),
					       SLICE(".books") };

	make(SEAL_PARKED, SLICE_LIT("x"));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		binding.server = others[i];
		is_refused("it was changed, or belongs to another server");
	}
}

static void only_its_request_opens_it(void **state)
{
	make(SEAL_PARKED, SLICE_LIT("x"));
	digest_bytes(SLICE_LIT("abd"), &digest);
	is_refused("it belongs to another request");
}

static void it_expires(void **state)
{
	make(SEAL_PARKED, SLICE_LIT("x"));
	assert_int_equal(open_slice(buf_slice(&sealed), NOW + 599), 0);
	assert_int_equal(open_slice(buf_slice(&sealed), NOW + 600), -1);
	assert_string_equal(err.text, "it has expired");
	assert_int_equal(open_slice(buf_slice(&sealed), UINT64_MAX), -1);
}

/* A new process with new keys that were kept, current first. */
static void restart(unsigned char current, unsigned char previous)
{
	unsigned char kept[2 * SEAL_KEY_BYTES] = { current, [SEAL_KEY_BYTES] = previous };

	seal_keys_fini(&keys);
	seal_keys_init(&keys, kept, 2);
}

static void parked_calls_end_with_the_process(void **state)
{
	restart(10, 11);
	make(SEAL_PARKED, SLICE_LIT("x"));
	restart(10, 11);
	is_refused("its key is not known, or no longer");
}

static void other_kinds_outlive_process_and_one_rotation(void **state)
{
	restart(10, 11);
	make(SEAL_WRAPPED, SLICE_LIT("x"));
	restart(10, 11);
	assert_int_equal(open_sealed(), 0);
	restart(12, 10);
	assert_int_equal(open_sealed(), 0);
	restart(13, 12);
	is_refused("its key is not known, or no longer");
}

static void without_kept_keys_all_ends_with_the_process(void **state)
{
	seal_keys_fini(&keys);
	seal_keys_init(&keys, NULL, 0);
	make(SEAL_REPLAY, SLICE_LIT("x"));
	assert_int_equal(open_sealed(), 0);
	seal_keys_fini(&keys);
	seal_keys_init(&keys, NULL, 0);
	is_refused("its key is not known, or no longer");
}

/* A key that is kept may have been used by a version that knows more kinds. */
static void unknown_kinds_are_refused(void **state)
{
	make((enum seal_kind)(SEAL_COUNTS + 1), SLICE_LIT("x"));
	is_refused("its kind is not known");
}

static void what_is_no_text_of_ours_is_refused(void **state)
{
	static const char *const texts[] = { "\"\"", "\"g2.\"", "\"g2.AAAAAAAA.\"", "\"X\"",
					     "\"g2.AAAAAAAA.AAAA\"" };
	static const struct json values[] = {
		{ .type = JSON_ABSENT },
		{ .type = JSON_NULL, .text = SLICE("null") },
		{ .type = JSON_NUMBER, .text = SLICE("1") },
		{ .type = JSON_OBJECT, .text = SLICE("{}") },
		{ .type = JSON_STRING, .has_escape = true, .text = SLICE("\"\\u0067\"") },
	};
	static const char junk[200] = "\"g2.";

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(open_slice(slice_str(texts[i]), NOW), -1);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		assert_int_equal(seal_open(&keys, &binding, values[i], NOW, &plain, &seal, &err),
				 -1);
	assert_int_equal(open_slice(slice_of(junk, sizeof(junk)), NOW), -1);
	/* a good head, and then too little for the rest */
	make(SEAL_PARKED, SLICE_LIT(""));
	sealed.data[60] = '"';
	sealed.len = 61;
	is_refused("it is not of our form");
}

static void size_is_bounded(void **state)
{
	struct buf text = { 0 };

	memset(buf_reserve(&text, SEAL_TEXT_MAX), 'x', SEAL_TEXT_MAX);
	text.len = SEAL_TEXT_MAX;
	make(SEAL_WRAPPED, buf_slice(&text));
	assert_int_equal(open_sealed(), 0);
	assert_true(slice_is_equal(seal.text, buf_slice(&text)));
	sealed.data[sealed.len - 1] = 'A';
	buf_append_str(&sealed, "AAA\"");
	is_refused("it is not of our form");
	buf_fini(&text);
}

/* ---- what a modern server asks ---- */

static struct router router;
static struct server server = { .conf = { .name = "books" } };
static struct principal principal;
static struct client client = { .router = &router, .server = &server, .principal = &principal };

/* Whether a server may answer a call of this method so; and if it may, its state opens as it was written. */
static bool may_be_answered(const char *method, const char *result)
{
	struct upstream upstream = { .child = NULL };
	struct call call = { .client = &client,
			     .method = method_find(slice_str(method)),
			     .request = { .upstream = &upstream } };
	struct slice state = scan_member(slice_str(result), SLICE_LIT("requestState")).text;
	struct envelope env;
	bool may;

	assert_int_equal(scan_envelope(SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"),
				       &scan_limits_none, 0, &env, NULL),
			 0);
	sealed.len = 0;
	assert_false(request_state_append_wrapped(&sealed, &call, slice_str(result)));
	call.digest = kept_digest_new(&env);
	may = request_state_append_wrapped(&sealed, &call, slice_str(result));
	if (may) {
		buf_fini(&plain);
		assert_int_equal(request_state_open(&client, kept_digest_get(call.digest),
						    (struct json){ .type = JSON_STRING,
								   .text = buf_slice(&sealed) },
						    &plain, &seal),
				 0);
		assert_true(slice_is_equal(seal.text, state));
	}
	kept_digest_free(&call.digest);
	return may;
}

/* MOD-MRTR-02: only what the client has declared, each under a key of its own; a state, requests, or both. */
static void what_servers_may_ask(void **state)
{
#define ROOTS "{\"method\":\"roots/list\"}"
#define ASKS(requests) "{\"inputRequests\":" requests "}"
	static const struct {
		const char *method, *result;
		bool may;
	} rows[] = {
		{ "tools/call", ASKS("{\"a\":" ROOTS "}"), true },
		{ "tools/call", ASKS("{\"a\":" ROOTS ",\"b\":" ROOTS "}"), true },
		{ "tools/call", ASKS("{\"a\":" ROOTS ",\"a\":" ROOTS "}"), false },
		{ "tools/call", "{\"inputRequests\":{\"a\":" ROOTS "},\"requestState\":\"s\"}",
		  true },
		{ "tools/call", "{\"requestState\":\"s\"}", true },
		{ "tools/call", "{}", false },
		{ "tools/call", "{\"requestState\":1}", false },
		{ "tools/call", "{\"inputRequests\":{\"a\":" ROOTS "},\"requestState\":1}", false },
		{ "tools/call", ASKS("[" ROOTS "]"), false },
		{ "tools/call", "{\"inputRequests\":[],\"requestState\":\"s\"}", false },
		{ "tools/list", ASKS("{\"a\":" ROOTS "}"), false },
		{ "tools/call", ASKS("{\"a\":" ROOTS ",\"b\":1}"), false },
		{ "tools/call", ASKS("{\"a\":\"roots/list\"}"), false },
		{ "tools/call",
		  ASKS("{\"a\":{\"method\":\"sampling/createMessage\",\"params\":{}}}"), false },
		{ "tools/call", ASKS("{\"a\":{\"method\":\"tasks/get\"}}"), false },
		{ "tools/call", ASKS("{\"a\":{\"method\":\"notifications/tools/list_changed\"}}"),
		  false },
		{ "tools/call", ASKS("{\"a\":{\"method\":\"ping\"}}"), false },
		{ "tools/call", ASKS("{\"a\":{\"method\":\"elicitation/create\",\"params\":{}}}"),
		  true },
		{ "tools/call",
		  ASKS("{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"}}}"),
		  false },
		{ "tools/call", ASKS("{\"a\":{\"method\":\"roots/list\",\"m\\u0065thod\":\"x\"}}"),
		  false },
	};
#undef ROOTS
#undef ASKS

	router.limits = scan_limits_none;
	router.seal_keys = keys;
	principal = (struct principal){ .identity = ann, .set = &router.sessions.principals };
	client.capabilities =
		mem_strdup("{\"roots\":{},\"elicitation\":{},\"tasks\":{},\"tools\":{}}");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (may_be_answered(rows[i].method, rows[i].result) != rows[i].may)
			fail_msg("%s", rows[i].result);
	free(client.capabilities);
}

/* And no more requests, nor a longer state, than we take back. */
static void what_servers_ask_is_bounded(void **state)
{
	struct buf text = { 0 };

	router.limits = scan_limits_none;
	router.seal_keys = keys;
	principal = (struct principal){ .identity = ann, .set = &router.sessions.principals };
	client.capabilities = mem_strdup("{\"roots\":{}}");
	for (int count = 64; count <= 65; count++) {
		text.len = 0;
		buf_append_str(&text, "{\"inputRequests\":{");
		for (int i = 0; i < count; i++)
			buf_printf(&text, "%s\"k%d\":{\"method\":\"roots/list\"}", i > 0 ? "," : "",
				   i);
		buf_append_str(&text, "}}");
		assert_int_equal(may_be_answered("tools/call", buf_terminate(&text)), count == 64);
	}
	for (size_t more = 0; more < 2; more++) {
		size_t size = SEAL_TEXT_MAX - 2 + more;

		text.len = 0;
		buf_append_str(&text, "{\"requestState\":\"");
		memset(buf_reserve(&text, size), 'x', size);
		text.len += size;
		buf_append_str(&text, "\"}");
		assert_int_equal(may_be_answered("tools/call", buf_terminate(&text)), more == 0);
	}
	buf_fini(&text);
	free(client.capabilities);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(what_is_sealed_is_opened),
	TEST(its_form),
	TEST(a_name_is_the_same_each_time),
	TEST(a_text_of_somebody_else_opens),
	TEST(any_change_is_noticed),
	TEST(only_its_caller_opens_it),
	TEST(only_its_server_opens_it),
	TEST(only_its_request_opens_it),
	TEST(it_expires),
	TEST(parked_calls_end_with_the_process),
	TEST(other_kinds_outlive_process_and_one_rotation),
	TEST(without_kept_keys_all_ends_with_the_process),
	TEST(unknown_kinds_are_refused),
	TEST(what_is_no_text_of_ours_is_refused),
	TEST(size_is_bounded),
	TEST(what_servers_may_ask),
	TEST(what_servers_ask_is_bounded),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
