/* SPDX-License-Identifier: Apache-2.0 */
/* Logs in a file that the next process maps: what it finds, whatever the one before has done. */
#include "session/stream_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "obs/log.h"

static int fd;
static struct stream_logs logs;
static struct stream_log_owner owners[2];

/* ---- the next gateway ---- */

static struct {
	struct stream_logs logs;
	struct stream_log_owner owner;
	struct buf texts; /* found, with "|" behind each */
	bool refuses;
} next;

static struct stream_log_owner *on_found(void *arg, struct slice text)
{
	assert_ptr_equal(arg, &next);
	buf_append_slice(&next.texts, text);
	buf_append_char(&next.texts, '|');
	return next.refuses ? NULL : &next.owner;
}

static void next_opens(void)
{
	next.texts.len = 0;
	stream_log_owner_init(&next.owner);
	stream_logs_open(&next.logs, fd, on_found, &next);
}

static void next_ends(void)
{
	stream_log_owner_fini(&next.owner);
	stream_logs_fini(&next.logs);
}

static void next_finds(const char *texts)
{
	next_opens();
	assert_string_equal(buf_terminate(&next.texts), texts);
}

/* ---- this one ---- */

static struct stream_log_owner *on_none(void *arg, struct slice text)
{
	fail();
	return NULL;
}

static int setup(void **state)
{
	fd = memfd_create("logs", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)STREAM_LOG_FILE_BYTES), 0);
	stream_logs_open(&logs, fd, on_none, NULL);
	stream_log_owner_init(&owners[0]);
	stream_log_owner_init(&owners[1]);
	assert_non_null(logs.file);
	return 0;
}

static int teardown(void **state)
{
	stream_log_owner_fini(&owners[0]);
	stream_log_owner_fini(&owners[1]);
	stream_logs_fini(&logs);
	buf_fini(&next.texts);
	close(fd);
	return 0;
}

static void append(struct stream_log **log, const char *text)
{
	stream_log_append(log, slice_str(text), SLICE_LIT("."));
}

static void lines_have_what_they_are_given(void **state)
{
	static struct stream_log *log;
	at_end(buf_fini) struct buf text = { 0 };

	stream_log_write(&text, "waits", UINT64_MAX - 1, 0, SLICE_LIT("{}"));
	stream_log_write(&text, "first", 100, STREAM_LOG_NONE, SLICE_LIT(""));
	stream_log_write(&text, "ended", STREAM_LOG_NONE, STREAM_LOG_NONE, SLICE_LIT(""));
	assert_string_equal(buf_terminate(&text),
			    "waits 18446744073709551614 0 {}\nfirst 100\nended\n");
	stream_log_new(&logs, &owners[0], &log);
	stream_log_note(&log, "kept", 9, 1099, SLICE_LIT("{}"));
	stream_log_note(&log, "taken", 10, 99, SLICE_LIT(""));
	next_finds("kept 9 1099 {}\ntaken 10 99\n|");
	next_ends();
}

/* FRONT-RES-11 */
static void what_was_appended_is_found(void **state)
{
	static struct stream_log *a, *b, *gone, *empty;

	stream_log_new(&logs, &owners[0], &a);
	stream_log_new(&logs, &owners[1], &b);
	stream_log_new(&logs, &owners[0], &gone);
	append(&a, "one");
	append(&gone, "x");
	append(&a, "two");
	append(&b, "other");
	stream_log_free(&gone);
	assert_null(gone);
	stream_log_free(&gone);
	stream_log_new(&logs, &owners[0], &empty);
	stream_log_free(&empty);
	next_finds("one.\ntwo.\n|other.\n|");
	assert_int_equal(next.owner.pages, 2);
	next_ends();
	next_finds(""); /* it has freed them */
	next_ends();
}

/* Of any length, across pages; and none that is empty. */
static void pages_are_joined(void **state)
{
	static const size_t sizes[] = { 1, STREAM_LOG_PAGE_BYTES - 3, STREAM_LOG_PAGE_BYTES,
					5 * STREAM_LOG_PAGE_BYTES - 1, 100000 };
	static struct stream_log *log, *other, *empty;
	at_end(buf_fini) struct buf text = { 0 }, read = { 0 };

	stream_log_new(&logs, &owners[0], &log);
	stream_log_new(&logs, &owners[0], &other);
	stream_log_new(&logs, &owners[0], &empty);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		at_end(mem_free) char *many = mem_alloc(sizes[i]);

		memset(many, 'a' + (int)i, sizes[i]);
		stream_log_append(&log, slice_of(many, sizes[i]), SLICE_LIT("."));
		buf_append(&text, many, sizes[i]);
		buf_append_str(&text, ".\n");
		append(&other, "between");
	}
	stream_log_read(log, &read);
	assert_int_equal(read.len, text.len);
	assert_memory_equal(read.data, text.data, text.len);
	read.len = 0;
	stream_log_read(empty, &read);
	assert_int_equal(read.len, 0);
	assert_int_equal(stream_log_file_read(logs.file, log->first, 1000, &read) >> 32,
			 log->generation);
	assert_int_equal(read.len, text.len - 1000);
	assert_memory_equal(read.data, text.data + 1000, read.len);
	next_opens();
	assert_int_equal(next.texts.len,
			 text.len + 1 + strlen("between.\n") * ARRAY_LEN(sizes) + 1);
	assert_memory_equal(next.texts.data, text.data, text.len);
	/* What it has taken over it can go on with. */
	assert_int_equal(next.logs.count, 2);
	log = container_of(next.owner.logs.next, struct stream_log, link);
	stream_log_append(&log, SLICE_LIT("more"), SLICE_LIT(""));
	read.len = 0;
	stream_log_read(log, &read);
	assert_int_equal(read.len, text.len + strlen("more\n"));
	next_ends();
}

static void text_is_replaced(void **state)
{
	static struct stream_log *log;
	uint32_t generation;

	stream_log_new(&logs, &owners[0], &log);
	append(&log, "before");
	generation = log->generation;
	stream_log_replace(&log, SLICE_LIT("after\n"));
	assert_int_not_equal(log->generation, generation);
	assert_int_equal(owners[0].pages, 1);
	append(&log, "more");
	next_finds("after\nmore.\n|");
	next_ends();
}

/* Logs that have no stream here. */
static void logs_may_have_no_stream(void **state)
{
	at_end(buf_fini) struct buf text = { 0 };

	stream_log_add(&logs, &owners[0], SLICE_LIT("one\n"));
	stream_log_add(&logs, &owners[0], SLICE_LIT("two\n"));
	next_finds("one\n|two\n|");
	assert_true(stream_log_take(&next.owner, &text));
	assert_string_equal(buf_terminate(&text), "one\n");
	assert_true(stream_log_take(&next.owner, &text));
	assert_string_equal(buf_terminate(&text), "one\ntwo\n");
	assert_false(stream_log_take(&next.owner, &text));
	next_ends();
}

/* A process that ends for good leaves what it has, and changes nothing more. */
static void all_may_be_left(void **state)
{
	static struct stream_log *log, *gone;

	stream_log_new(&logs, &owners[0], &log);
	append(&log, "one");
	stream_log_new(&logs, &owners[0], &gone);
	append(&gone, "gone");
	stream_log_free(&gone);
	logs.is_left = true;
	append(&log, "two");
	stream_log_replace(&log, SLICE_LIT("other\n"));
	stream_log_new(&logs, &owners[0], &gone);
	assert_null(gone);
	stream_log_owner_fini(&owners[0]);
	assert_null(log);
	stream_logs_fini(&logs);
	next_finds("one.\n|");
	next_ends();
}

/* A file of another form is none, whatever else is in it. */
static void another_form_is_not_read(void **state)
{
	static struct stream_log *log;

	logs.file->form = 7;
	logs.file->used = 2;
	logs.file->marks[0] = logs.file->marks[1] = UINT64_C(1) << 32 | 5;
	next_finds("");
	stream_log_new(&next.logs, &next.owner, &log);
	stream_log_append(&log, SLICE_LIT("one"), SLICE_LIT(""));
	assert_int_equal(logs.file->form, STREAM_LOG_FORM);
	assert_int_equal(logs.file->used, 1);
	assert_int_equal(logs.file->marks[1], 0);
	next_ends();
}

/* Whoever has most gives way, with his oldest: others lose nothing. */
static void whoever_has_most_gives_way(void **state)
{
	static char much[1024 * 1024];
	static struct stream_log *first, *small, *more[128];
	at_end(buf_fini) struct buf text = { 0 };
	size_t held = 0;

	memset(much, 'x', sizeof(much));
	stream_log_new(&logs, &owners[1], &small);
	append(&small, "small");
	stream_log_new(&logs, &owners[0], &first);
	append(&first, "first");
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		stream_log_new(&logs, &owners[0], &more[i]);
		stream_log_append(&more[i], slice_of(much, sizeof(much)), SLICE_LIT(""));
		assert_non_null(more[i]);
	}
	assert_null(first);
	assert_null(more[0]);
	assert_non_null(small);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		held += more[i] != NULL;
	assert_in_range(held, 50, 64);
	append(&small, "more");
	assert_non_null(small);
	/* The one that grows may be the oldest of whoever has most. */
	stream_log_owner_fini(&owners[0]);
	stream_log_new(&logs, &owners[0], &first);
	stream_log_new(&logs, &owners[0], &more[0]);
	for (size_t i = 0; i < 31; i++) {
		stream_log_append(&first, slice_of(much, sizeof(much)), SLICE_LIT(""));
		stream_log_append(&more[0], slice_of(much, sizeof(much)), SLICE_LIT(""));
	}
	stream_log_append(&small, slice_of(much, sizeof(much)), SLICE_LIT(""));
	assert_non_null(first);
	stream_log_append(&first, slice_of(much, sizeof(much) - 100), SLICE_LIT(""));
	assert_null(first);
	assert_non_null(more[0]);
	/* One alone that is too much. */
	stream_log_free(&small);
	stream_log_new(&logs, &owners[1], &small);
	for (size_t i = 0; i < 40 && small != NULL; i++)
		stream_log_append(&small, slice_of(much, sizeof(much)), SLICE_LIT(""));
	assert_null(small);
	append(&small, "nothing");
	stream_log_replace(&small, SLICE_LIT("nothing"));
	assert_null(small);
	/* As long as may be; then longer. */
	stream_log_new(&logs, &owners[1], &small);
	for (size_t i = 0; i < 31; i++)
		stream_log_append(&small, slice_of(much, sizeof(much)), SLICE_LIT(""));
	stream_log_append(&small, slice_of(much, sizeof(much) - 32), SLICE_LIT(""));
	stream_log_read(small, &text);
	assert_int_equal(text.len, STREAM_LOG_BYTES_MAX);
	stream_log_append(&small, SLICE_LIT(""), SLICE_LIT(""));
	assert_null(small);
	assert_non_null(more[0]);
	assert_int_equal(logs.file->used, STREAM_LOG_PAGES);
	next_opens();
	assert_int_equal(next.logs.count, 1);
	next_ends();
}

/* FRONT-RES-11: killed at any moment, a process leaves what it has appended whole. */
static void killed_at_any_moment(void **state)
{
	for (int i = 0; i < 20; i++) {
		int ready[2];
		char byte;
		pid_t pid;
		size_t n;

		assert_int_equal(pipe(ready), 0);
		pid = fork();
		if (pid == 0) {
			struct stream_log *log;
			char text[64];

			stream_log_new(&logs, &owners[0], &log);
			for (int k = 0;; k++) {
				snprintf(text, sizeof(text), "%d", k);
				append(&log, text);
				if (k % 100 == 99)
					stream_log_replace(&log, SLICE_LIT("0.\n"));
				if (k % 100 == 99)
					k = 0;
				if (k == 50)
					(void)!write(ready[1], "x", 1);
			}
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		usleep((useconds_t)(i * 37));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		next_opens();
		/* At the moment of a replacement there may be both. */
		buf_terminate(&next.texts);
		n = 0;
		for (char *line = strtok(next.texts.data, "\n"); line != NULL;
		     line = strtok(NULL, "\n")) {
			if (*line == '|' && line[1] == '\0')
				break;
			if (*line == '|') {
				n = 0;
				line++;
			}
			assert_int_equal(strtoul(line, NULL, 10), n++);
			assert_int_equal(line[strlen(line) - 1], '.');
		}
		next_ends();
	}
}

/* Whoever wrote the file was taken over: nothing is read outside of it, no page is used twice. */
static void file_is_not_believed(void **state)
{
	static const uint64_t values[] = { 0,
					   1,
					   2,
					   3,
					   1024,
					   1025,
					   5000,
					   65535,
					   65536,
					   65537,
					   UINT32_MAX,
					   UINT64_C(7) << 32 | 2048,
					   UINT64_C(9) << 32,
					   UINT64_C(9) << 32 | (STREAM_LOG_BYTES_MAX + 1),
					   UINT64_C(0xffffffff) << 32 | 1024,
					   UINT64_MAX };
	unsigned int seed = 20261128;

	for (int round = 0; round < 2000; round++) {
		struct stream_log *log = NULL;
		size_t pages = 0;

		logs.file->form = STREAM_LOG_FORM;
		logs.file->used =
			(uint32_t)(round % 50 == 0 ?
					   values[(size_t)rand_r(&seed) % ARRAY_LEN(values)] :
					   8);
		for (size_t i = 0; i < 8; i++) {
			logs.file->marks[i] = values[(size_t)rand_r(&seed) % ARRAY_LEN(values)];
			logs.file->next[i] =
				rand_r(&seed) % 8 == 0 ?
					(uint32_t)
						values[(size_t)rand_r(&seed) % ARRAY_LEN(values)] :
					(uint32_t)(rand_r(&seed) % 8);
		}
		next.refuses = round % 7 == 0;
		next_opens();
		LIST_FOREACH(node, &next.owner.logs) {
			at_end(buf_fini) struct buf text = { 0 };

			log = container_of(node, struct stream_log, link);
			stream_log_read(log, &text);
			assert_int_equal(text.len, log->size);
			assert_int_not_equal(log->size, 0);
			pages += log->pages;
		}
		assert_int_equal(pages, next.owner.pages);
		assert_true(pages <= 8);
		if (log != NULL && round % 3 == 0)
			stream_log_append(&log, SLICE_LIT("x"), SLICE_LIT(""));
		next_ends();
	}
	next.refuses = false;
	memset(logs.file, 0, 1024);
	next_finds("");
	next_ends();
}

/* Whoever only reads is not led out of the file. */
static void a_reader_does_not_believe_it(void **state)
{
	static const uint32_t odd[] = { STREAM_LOG_PAGES, UINT32_MAX };
	at_end(buf_fini) struct buf text = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		text.len = 0;
		logs.file->marks[3] = UINT64_C(1) << 32 | (2 * STREAM_LOG_PAGE_BYTES);
		logs.file->next[3] = odd[i];
		assert_true(stream_log_file_read(logs.file, 3, 0, &text) > 0);
		assert_int_equal(text.len, STREAM_LOG_PAGE_BYTES);
	}
	logs.file->marks[3] = UINT64_C(1) << 32 | (STREAM_LOG_BYTES_MAX + 1);
	assert_int_equal(stream_log_file_read(logs.file, 3, 0, &text), 0);
	assert_int_equal(text.len, STREAM_LOG_PAGE_BYTES);
	/* Nor a gateway, by one that is too long, and whole. */
	for (uint32_t page = 0; page < STREAM_LOG_PAGES; page++)
		logs.file->next[page] = page + 1;
	logs.file->used = STREAM_LOG_PAGES;
	logs.file->marks[0] = UINT64_C(1) << 32 | 5;
	memcpy(logs.file->pages[0], "hello", 5);
	next_finds("hello|");
	assert_int_equal(next.logs.free.len, (STREAM_LOG_PAGES - 1) * sizeof(uint32_t));
	next_ends();
}

/* If there is no file, streams have no logs. */
static void no_file_is_none(void **state)
{
	static struct stream_log *log;
	struct stream_logs none;

	stream_logs_open(&none, -1, on_none, NULL);
	assert_null(none.file);
	stream_log_new(&none, &owners[0], &log);
	assert_null(log);
	append(&log, "nowhere");
	stream_logs_fini(&none);
	assert_null(stream_log_file_map(-1));
	assert_non_null(stream_log_file_map(fd));
}

/* Memory that nobody needs any more goes back. */
static void memory_goes_back(void **state)
{
	static char much[8 * 1024 * 1024];
	static struct stream_log *log;

	memset(much, 'x', sizeof(much));
	stream_log_new(&logs, &owners[0], &log);
	stream_log_append(&log, slice_of(much, sizeof(much)), SLICE_LIT(""));
	assert_true(logs.file->used > sizeof(much) / STREAM_LOG_PAGE_BYTES);
	assert_int_equal(logs.file->pages[5][0], 'x');
	stream_log_free(&log);
	assert_int_equal(logs.file->used, 0);
	assert_int_equal(logs.file->pages[5][0], 0);
	stream_log_new(&logs, &owners[0], &log);
	append(&log, "again");
	assert_int_equal(logs.file->used, 1);
	next_finds("again.\n|");
	next_ends();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(lines_have_what_they_are_given),
		CASE(what_was_appended_is_found),
		CASE(pages_are_joined),
		CASE(text_is_replaced),
		CASE(logs_may_have_no_stream),
		CASE(all_may_be_left),
		CASE(another_form_is_not_read),
		CASE(a_reader_does_not_believe_it),
		CASE(whoever_has_most_gives_way),
		CASE(killed_at_any_moment),
		CASE(file_is_not_believed),
		CASE(no_file_is_none),
		CASE(memory_goes_back),
	};

	log_set_level(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
