/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a daemon, in a directory that others may have had their hands in. SEC-68 */
#include "keeper/text_store.c"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unit_test.h"

#define NAME "text"
#define FIRST "mcpgated text 1\n"
#define MOST 1000

static char directory[64];

static char *path_of(const char *name)
{
	static char paths[2][128];
	static int at;

	at = 1 - at;
	snprintf(paths[at], sizeof(paths[at]), "%s/%s", directory, name);
	return paths[at];
}

static bool exists(const char *name)
{
	struct stat status;

	return lstat(path_of(name), &status) == 0;
}

static void put(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* -1: there is no directory that can be used, or it failed. */
static int save(const char *text)
{
	struct error err;
	int fd = state_directory_open(true, &err);
	int result = fd >= 0 ? state_file_write(fd, NAME, slice_str(text), &err) : -1;

	if (fd >= 0)
		close(fd);
	return result;
}

static int load(struct buf *text)
{
	struct error err;

	text->len = 0;
	return state_file_read(NAME, slice_of(FIRST, strlen(FIRST) - 1), MOST, text, &err);
}

static void assert_saved(const char *text)
{
	struct buf found = { 0 };

	assert_int_equal(load(&found), 1);
	assert_string_equal(buf_terminate(&found), text);
	buf_fini(&found);
}

static void assert_refused(void)
{
	struct buf found = { 0 };

	assert_int_equal(load(&found), -1);
	assert_int_equal(found.len, 0);
	buf_fini(&found);
}

static int setup(void **state)
{
	strcpy(directory, "/tmp/mcpgated-state-XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(setenv("STATE_DIRECTORY", directory, 1), 0);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { NAME,    NAME ".new",      NAME ".bad",
					     "other", "mcpgated/" NAME, "mcpgated" };

	chmod(directory, 0700);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		remove(path_of(names[i]));
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

static void what_is_written_is_read(void **state)
{
	struct buf found = { 0 };
	struct stat status;
	char most[MOST + 1];

	assert_int_equal(load(&found), 0);
	assert_int_equal(save(FIRST "one\n"), 0);
	assert_saved(FIRST "one\n");
	assert_int_equal(save(FIRST "two\n"), 0);
	assert_saved(FIRST "two\n");
	assert_int_equal(stat(path_of(NAME), &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	assert_false(exists(NAME ".new"));
	memset(most, 'x', MOST);
	memcpy(most, FIRST, strlen(FIRST));
	most[MOST] = '\0';
	assert_int_equal(save(most), 0);
	assert_saved(most);
	buf_fini(&found);
}

/* Who is not saved is told so. */
static void what_cannot_be_replaced_is_told(void **state)
{
	assert_int_equal(mkdir(path_of(NAME), 0700), 0);
	assert_int_equal(save(FIRST "one\n"), -1);
	assert_false(exists(NAME ".new"));
}

static void strange_files_are_refused(void **state)
{
	assert_int_equal(save(FIRST "one\n"), 0);
	assert_int_equal(chmod(path_of(NAME), 0620), 0); /* others may have written it */
	assert_refused();
	assert_int_equal(chmod(path_of(NAME), 0600), 0);
	assert_saved(FIRST "one\n");
	put(NAME, "mcpgated text 2\nrubbish\n");
	assert_refused();
	assert_true(exists(NAME ".bad")); /* to be looked at */
	assert_int_equal(truncate(path_of(NAME), 100000000), 0);
	assert_refused();
	unlink(path_of(NAME));
	assert_int_equal(mkfifo(path_of(NAME), 0600), 0); /* nobody waits for a writer */
	assert_refused();
	assert_int_equal(save(FIRST "two\n"), 0); /* in its place */
	assert_saved(FIRST "two\n");
}

/* What a link names is neither read nor written. */
static void links_are_not_followed(void **state)
{
	struct stat status;

	assert_int_equal(save(FIRST "one\n"), 0);
	assert_int_equal(rename(path_of(NAME), path_of("other")), 0);
	assert_int_equal(symlink("other", path_of(NAME)), 0);
	assert_refused();
	put("other", "left alone");
	assert_int_equal(symlink("other", path_of(NAME ".new")), 0);
	assert_int_equal(save(FIRST "two\n"), 0);
	assert_saved(FIRST "two\n");
	assert_int_equal(lstat(path_of(NAME), &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(stat(path_of("other"), &status), 0);
	assert_int_equal(status.st_size, strlen("left alone"));
}

static void what_others_may_write_is_no_place(void **state)
{
	struct buf found = { 0 };

	assert_int_equal(save(FIRST "one\n"), 0);
	assert_int_equal(chmod(directory, 0720), 0);
	assert_int_equal(save(FIRST "two\n"), -1);
	assert_int_equal(load(&found), 0);
	assert_int_equal(chmod(directory, 0700), 0);
	assert_saved(FIRST "one\n");
	assert_int_equal(setenv("STATE_DIRECTORY", "/nowhere/at/all", 1), 0);
	assert_int_equal(save(FIRST "two\n"), -1);
	assert_int_equal(load(&found), 0);
	buf_fini(&found);
}

/* In a user's home it is made; not by a link, nor in what others may write. */
static void directory_of_a_user(void **state)
{
	struct stat status;

	unsetenv("STATE_DIRECTORY");
	assert_int_equal(setenv("XDG_STATE_HOME", directory, 1), 0);
	assert_int_equal(symlink(".", path_of("mcpgated")), 0);
	assert_int_equal(save(FIRST "one\n"), -1);
	assert_false(exists(NAME));
	assert_int_equal(unlink(path_of("mcpgated")), 0);
	assert_int_equal(chmod(directory, 0702), 0);
	assert_int_equal(save(FIRST "one\n"), -1);
	assert_false(exists("mcpgated"));
	assert_int_equal(chmod(directory, 0700), 0);
	assert_int_equal(save(FIRST "one\n"), 0);
	assert_saved(FIRST "one\n");
	assert_int_equal(stat(path_of("mcpgated"), &status), 0);
	assert_int_equal(status.st_mode, S_IFDIR | 0700);
	assert_true(exists("mcpgated/" NAME));
	unsetenv("XDG_STATE_HOME");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read),           TEST(what_cannot_be_replaced_is_told),
		TEST(strange_files_are_refused),         TEST(links_are_not_followed),
		TEST(what_others_may_write_is_no_place), TEST(directory_of_a_user),
	};

	umask(022);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
