/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of messages: what is copied, what is taken, who frees. LeakSanitizer finds what is left. */
#include "jsonrpc/write.h"

#include <stdlib.h>

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static void text_is_copied(void **state)
{
	char text[] = "{\"a\":1}";
	struct msg *msg = msg_new(slice_of(text, 7));

	memset(text, 'x', 7);
	assert_true(slice_is_equal(msg->text, SLICE_LIT("{\"a\":1}")));
	msg_unref(&msg);
	assert_null(msg);
}

static void empty_text(void **state)
{
	struct buf buf = { NULL, 0, 0 };
	struct msg *copied = msg_new(slice_of(NULL, 0));
	struct msg *taken = msg_new_take(&buf);

	assert_int_equal(copied->text.n, 0);
	assert_int_equal(taken->text.n, 0);
	msg_unref(&copied);
	msg_unref(&taken);
}

static void buffer_is_taken_and_left_empty(void **state)
{
	struct buf buf = { NULL, 0, 0 };
	const char *bytes;
	struct msg *msg;

	buf_append_str(&buf, "hello");
	bytes = buf.data;
	msg = msg_new_take(&buf);
	assert_null(buf.data);
	assert_int_equal(buf.len, 0);
	assert_int_equal(buf.cap, 0);
	assert_ptr_equal(msg->text.p, bytes);
	assert_int_equal(msg->text.n, 5);
	buf_append_str(&buf, "again");
	assert_true(slice_is_equal(msg->text, SLICE_LIT("hello")));
	buf_fini(&buf);
	msg_unref(&msg);
}

/* What was found is kept with its copy, and refers to that alone. */
static void findings_are_copied(void **state)
{
	static const char whole[] =
		" {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":"
		"{\"name\":\"echo\",\"arguments\":{\"a\":1},\"_meta\":{\"progressToken\":7}}} ";
	char *text = strdup(whole);
	struct envelope env, anew;
	struct error err;
	struct msg *msg;

	assert_int_equal(scan_envelope(slice_str(text), &scan_limits_none, 0, &env, &err), 0);
	msg = msg_new_scanned(&env);
	memset(text, 'x', strlen(text));
	free(text);
	assert_ptr_equal(msg->env->text.p, msg->text.p);
	assert_int_equal(msg->text.n, strlen(whole) - 2);
	assert_int_equal(scan_envelope(msg->text, &scan_limits_none, 0, &anew, &err), 0);
	assert_int_equal(anew.kind, msg->env->kind);
	assert_ptr_equal(anew.method.p, msg->env->method.p);
	for (size_t i = 0; i < ENVELOPE_MEMBERS; i++) {
		assert_int_equal(anew.members[i].type, msg->env->members[i].type);
		assert_ptr_equal(anew.members[i].text.p, msg->env->members[i].text.p);
		assert_int_equal(anew.members[i].text.n, msg->env->members[i].text.n);
	}
	assert_true(slice_is_equal(msg->env->progress_token.text, SLICE_LIT("7")));
	assert_true(slice_is_equal(msg->env->related_task.text, SLICE_LIT("")));
	msg_unref(&msg);
}

static void last_reference_frees(void **state)
{
	struct msg *first = msg_new(SLICE_LIT("text"));
	struct msg *second = msg_ref(first);
	struct msg *none = NULL;

	assert_ptr_equal(first, second);
	assert_int_equal(first->refs, 2);
	msg_unref(&first);
	assert_null(first);
	assert_int_equal(second->refs, 1);
	assert_true(slice_is_equal(second->text, SLICE_LIT("text")));
	msg_unref(&second);
	assert_null(second);
	msg_unref(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_copied),
		cmocka_unit_test(empty_text),
		cmocka_unit_test(buffer_is_taken_and_left_empty),
		cmocka_unit_test(findings_are_copied),
		cmocka_unit_test(last_reference_frees),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
