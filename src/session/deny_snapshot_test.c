/* SPDX-License-Identifier: Apache-2.0 */
/* What one process leaves to the next: read back whole, or not at all. */
#include "session/deny_list.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "obs/log.h"

#define ISSUER SLICE_LIT("https://id.example")

static struct halves *deny_snapshot;
static struct deny_list before, after;

static int setup(void **state)
{
	int fd = memfd_create("denials", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)DENY_SNAPSHOT_FILE_BYTES) < 0)
		return 1;
	deny_snapshot = deny_snapshot_map(fd);
	close(fd);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	deny_list_init(&before);
	deny_list_init(&after);
	return deny_snapshot == NULL;
}

static int teardown(void **state)
{
	deny_list_fini(&before);
	deny_list_fini(&after);
	return 0;
}

static void add(enum denial_by by, struct slice name, uint64_t until_ms)
{
	assert_non_null(deny_list_add(&before, ISSUER, by, name, until_ms));
}

static bool finds(enum denial_by by, struct slice name)
{
	struct denial_marks marks = { .issuer = ISSUER };

	marks.names[by] = name;
	return deny_list_find(&after, &marks) != NULL;
}

/* AUTH-SES-07 REL-43 */
static void entries_go_to_the_next_process(void **state)
{
	int status = -1;
	pid_t pid;

	assert_false(deny_snapshot_load(deny_snapshot, &after));
	add(DENIAL_BY_SUB, SLICE_LIT("gone"), UINT64_MAX);
	add(DENIAL_BY_SUB, SLICE_LIT("alice"), UINT64_MAX);
	add(DENIAL_BY_JTI, SLICE_LIT("over"), 1);
	add(DENIAL_BY_SID, SLICE_LIT("l\xc3\xa4"), UINT64_MAX);
	assert_true(deny_list_remove(&before, 1));
	pid = fork();
	if (pid == 0) {
		deny_snapshot_save(deny_snapshot, &before);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	assert_true(finds(DENIAL_BY_SUB, SLICE_LIT("alice")));
	assert_true(finds(DENIAL_BY_SID, SLICE_LIT("l\xc3\xa4")));
	assert_false(finds(DENIAL_BY_SUB, SLICE_LIT("gone")));
	assert_false(finds(DENIAL_BY_JTI, SLICE_LIT("over")));
	assert_true(deny_list_remove(&after, 2));
	assert_false(finds(DENIAL_BY_SUB, SLICE_LIT("alice")));
	assert_int_equal(deny_list_add(&after, ISSUER, DENIAL_BY_SUB, SLICE_LIT("new"), UINT64_MAX)
				 ->number,
			 before.last_number + 1);
}

static void configure(struct deny_list *deny_list, struct slice name)
{
	deny_list_configure_begin(deny_list);
	assert_true(deny_list_configure(deny_list, ISSUER, DENIAL_BY_SUB, name, UINT64_MAX));
	deny_list_configure_end(deny_list);
}

/* Whose an entry is, and what was taken away of the configuration, the next process knows. */
static void origins_go_to_the_next_process(void **state)
{
	add(DENIAL_BY_SUB, SLICE_LIT("alice"), UINT64_MAX);
	configure(&before, SLICE_LIT("bob"));
	assert_true(deny_list_remove(&before, 2));
	deny_snapshot_save(deny_snapshot, &before);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	configure(&after, SLICE_LIT("bob"));
	assert_false(finds(DENIAL_BY_SUB, SLICE_LIT("bob")));
	configure(&after, SLICE_LIT("carol"));
	assert_true(finds(DENIAL_BY_SUB, SLICE_LIT("alice")));
	assert_true(finds(DENIAL_BY_SUB, SLICE_LIT("carol")));
	assert_int_equal(after.count, 2);
}

/* CLU-DENY-01: when something was said, and that it was taken back. */
static void shared_entries_go_to_the_next_process(void **state)
{
	const struct denial *denial;
	bool is_full;

	before.is_shared = true;
	add(DENIAL_BY_SUB, SLICE_LIT("alice"), UINT64_MAX);
	add(DENIAL_BY_SUB, SLICE_LIT("bob"), UINT64_MAX);
	assert_true(deny_list_remove(&before, 2));
	deny_snapshot_save(deny_snapshot, &before);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	after.is_shared = true;
	assert_true(finds(DENIAL_BY_SUB, SLICE_LIT("alice")));
	assert_false(finds(DENIAL_BY_SUB, SLICE_LIT("bob")));
	LIST_FOREACH(node, &before.entries) {
		denial = container_of(node, struct denial, link);
		assert_null(deny_list_take(&after, denial, &is_full));
		assert_true(denial->changed_ms > 0);
	}
	assert_int_equal(after.count, 2);
}

static void no_entries_are_a_list_too(void **state)
{
	deny_snapshot_save(deny_snapshot, &before);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	assert_int_equal(after.count, 0);
	deny_snapshot_save(NULL, &before);
	assert_false(deny_snapshot_load(NULL, &after));
}

/* An attacker may have written it: whatever a byte is, nothing is read beyond the end, and all or nothing is taken. */
static void rubbish_is_refused(void **state)
{
	unsigned char *bytes = (unsigned char *)deny_snapshot;

	add(DENIAL_BY_SUB, SLICE_LIT("alice"), UINT64_MAX);
	add(DENIAL_BY_CLIENT_ID, SLICE_LIT("app"), UINT64_MAX);
	for (size_t i = 0; i < 200; i++) {
		static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };

		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			deny_snapshot_save(deny_snapshot, &before);
			bytes[i] = values[k];
			if (!deny_snapshot_load(deny_snapshot, &after))
				assert_int_equal(after.count, 0);
			LIST_FOREACH(node, &after.entries) {
				uint64_t until_ms =
					container_of(node, struct denial, link)->until_ms;

				assert_true(container_of(node, struct denial, link)->origin <
					    DENIAL_ORIGIN_COUNT);
				/* Reports write it as a signed number, or as none. */
				assert_true(until_ms <= INT64_MAX || until_ms == UINT64_MAX);
			}
			deny_list_fini(&after);
			deny_list_init(&after);
		}
	}
}

/* The operator has to hear of it: tokens that he denied are good again. Of the first process he hears nothing. */
static void loss_is_told(void **state)
{
	char text[512] = "", *at;
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_false(deny_snapshot_load(deny_snapshot, &after));
	deny_snapshot_save(deny_snapshot, &before);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	assert_int_equal(read(ends[0], text, sizeof(text) - 1), -1);
	memset(deny_snapshot, 0xff, sizeof(uint64_t));
	assert_false(deny_snapshot_load(deny_snapshot, &after));
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, " error denials_lost "));
	add(DENIAL_BY_SUB, SLICE_LIT("alice"), UINT64_MAX);
	deny_snapshot_save(deny_snapshot, &before);
	at = memmem(deny_snapshot, DENY_SNAPSHOT_FILE_BYTES, ISSUER.p, ISSUER.n);
	at[-1] = 1; /* of the length of the name */
	assert_false(deny_snapshot_load(deny_snapshot, &after));
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(ends[0]);
	close(ends[1]);
}

static void assert_entries(size_t count)
{
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	assert_int_equal(after.count, count);
	deny_list_fini(&after);
	deny_list_init(&after);
}

/* A process that dies while it writes leaves what was there before, at whatever byte. */
static void what_is_being_written_does_not_count(void **state)
{
	static char text[4096];
	char *begin;
	size_t bytes;

	for (int i = 0; i < 3; i++) {
		add(DENIAL_BY_SUB, slice_of(&"abc"[i], 1), UINT64_MAX);
		begin = halves_begin(deny_snapshot, DENY_SNAPSHOT_BYTES);
		deny_snapshot_save(deny_snapshot, &before);
		bytes = deny_snapshot->bytes[deny_snapshot->half];
		assert_true(bytes <= sizeof(text));
		memcpy(text, begin, bytes);
	}
	deny_list_fini(&before);
	deny_list_init(&before);
	add(DENIAL_BY_SUB, SLICE_LIT("another"), UINT64_MAX);
	deny_snapshot_save(deny_snapshot, &before);
	for (size_t n = 0; n <= bytes; n++) {
		begin = halves_begin(deny_snapshot, DENY_SNAPSHOT_BYTES);
		memset(begin, 0, sizeof(text));
		memcpy(begin, text, n);
		assert_entries(1);
	}
	deny_snapshot->bytes[!deny_snapshot->half] = bytes;
	assert_entries(1);
	halves_end(deny_snapshot, DENY_SNAPSHOT_BYTES, bytes);
	assert_entries(3);
}

static void all_that_may_be_fit(void **state)
{
	static char name[2048];

	memset(name, 'x', sizeof(name));
	for (unsigned int i = 0; i < DENY_LIST_MAX; i++) {
		memcpy(name, &i, sizeof(i));
		add(DENIAL_BY_JTI, slice_of(name, sizeof(name)), UINT64_MAX);
	}
	deny_snapshot_save(deny_snapshot, &before);
	assert_true(deny_snapshot_load(deny_snapshot, &after));
	assert_int_equal(after.count, DENY_LIST_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(entries_go_to_the_next_process, setup, teardown),
		cmocka_unit_test_setup_teardown(origins_go_to_the_next_process, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_entries_go_to_the_next_process, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_entries_are_a_list_too, setup, teardown),
		cmocka_unit_test_setup_teardown(rubbish_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(loss_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_being_written_does_not_count, setup,
						teardown),
		cmocka_unit_test_setup_teardown(all_that_may_be_fit, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
