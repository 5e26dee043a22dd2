/* SPDX-License-Identifier: Apache-2.0 */
/* A file that others write too: what is put in its place, and when nothing is. */
#include "ctl/edit_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"

static char folder[64], path[96];

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void check(const char *text, mode_t mode)
{
	struct edit_file file = { NULL };
	struct error err;

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	assert_string_equal(buf_terminate(&file.text), text);
	assert_int_equal(file.status.st_mode & 07777, mode);
	edit_file_fini(&file);
}

static void check_alone(void)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	assert_int_equal(count, 3); /* itself, its parent, the file */
}

static int make_folder(void **state)
{
	strcpy(folder, "/tmp/edit-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	put("old");
	assert_int_equal(chmod(path, 0640), 0);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static void test_replaces_what_was_read(void **state)
{
	struct edit_file file = { NULL };
	struct error err;

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), 0);
	edit_file_fini(&file);
	check("new", 0640);
	check_alone();
}

/* Another process that has opened the file, and goes on as soon as that has another name. Returns its id. */
static pid_t open_and_write_late(const char *late, const char *later)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		struct stat mine, there;

		if (fd < 0 || fstat(fd, &mine) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		while (stat(path, &there) < 0 || there.st_ino == mine.st_ino)
			usleep(1000);
		if (later != NULL)
			put(later);
		/* Whoever does not wait removes it. */
		for (int i = 0; i < 100 && fstat(fd, &mine) == 0 && mine.st_nlink > 0; i++)
			usleep(1000);
		_exit(write(fd, late, strlen(late)) == (ssize_t)strlen(late) ? 0 : 1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void assert_ended(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Who opens, and writes once another file is in the place, has written into the one that is there in the end. */
static void test_waits_for_who_has_it_open(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	pid_t pid;

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	pid = open_and_write_late("late", NULL);
	assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), 1);
	assert_ended(pid);
	edit_file_fini(&file);
	check("late", 0640);
	check_alone();
}

/* If he writes into both, none of them goes. */
static void test_keeps_what_was_written_into_both(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	char *left;
	pid_t pid;

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	pid = open_and_write_late("late", "later");
	assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), -1);
	assert_ended(pid);
	edit_file_fini(&file);
	left = strstr(err.text, folder);
	assert_non_null(left);
	check("late", 0640);
	snprintf(path, sizeof(path), "%s", left);
	check("later", 0640);
	unlink(path);
	snprintf(path, sizeof(path), "%s/file", folder);
	check_alone();
}

static void test_leaves_what_was_written_meanwhile(void **state)
{
	static const char *const texts[] = { "odd", "longer than before", "" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct edit_file file = { NULL };
		struct error err;

		assert_int_equal(edit_file_read(path, &file, &err), 0);
		put(texts[i]);
		assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), 1);
		edit_file_fini(&file);
		check(texts[i], 0640);
		check_alone();
	}
}

static void test_leaves_another_file_of_the_same_text(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	char other[128];

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(rename(path, other), 0);
	put("old");
	assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), 1);
	edit_file_fini(&file);
	assert_int_equal(unlink(other), 0);
	check_alone();
}

static void test_makes_files_for_this_user_alone(void **state)
{
	struct error err;
	char other[128];

	assert_int_equal(edit_file_create(path, SLICE_LIT("secret"), &err), -1);
	check("old", 0640);
	check_alone();
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(edit_file_rename(path, other, &err), 0);
	assert_int_equal(edit_file_create(path, SLICE_LIT("secret"), &err), 0);
	check("secret", 0600);
	assert_int_equal(edit_file_rename(other, path, &err), -1);
	check("secret", 0600);
	assert_int_equal(unlink(other), 0);
	check_alone();
}

static void test_says_what_it_does_not_edit(void **state)
{
	struct edit_file file = { NULL };
	struct error err;

	assert_int_equal(edit_file_read("/nonexistent/file", &file, &err), 1);
	edit_file_fini(&file);
	assert_int_equal(edit_file_read(folder, &file, &err), -1);
	assert_string_equal(err.text, "is not a plain file");
	edit_file_fini(&file);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20); /* nobody will ever write into it */
	assert_int_equal(edit_file_read(path, &file, &err), -1);
	assert_string_equal(err.text, "is not a plain file");
	alarm(0);
	edit_file_fini(&file);
}

/* Root alone may give the folder another group. */
static void test_keeps_the_group_in_a_folder_of_another(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	struct stat status;

	if (chown(folder, (uid_t)-1, 12345) < 0 || chmod(folder, 02700) < 0)
		skip();
	assert_int_equal(edit_file_read(path, &file, &err), 0);
	assert_int_equal(edit_file_replace(&file, SLICE_LIT("new"), &err), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_gid, file.status.st_gid);
	assert_int_not_equal(status.st_gid, 12345);
	edit_file_fini(&file);
	check("new", 0640);
}

static void test_leaves_an_access_control_list_alone(void **state)
{
	/* Version 2; each a tag, the permissions and who: the user, user 1, the group, the mask, others. */
	static const unsigned char list[] = {
		2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,   4,
		0, 1, 0,   0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16,  0,
		4, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255,
	};
	struct edit_file file = { NULL };
	struct error err;

	if (setxattr(path, "system.posix_acl_access", list, sizeof(list), 0) < 0)
		skip();
	assert_int_equal(edit_file_read(path, &file, &err), -1);
	assert_string_equal(err.text, "has an access control list");
	edit_file_fini(&file);
}

static void test_finds_what_was_left(void **state)
{
	char left[128], other[128], in[128], *found;
	FILE *made;

	assert_null(edit_file_find_left(path));
	snprintf(other, sizeof(other), "%s/other", folder);
	snprintf(left, sizeof(left), "%s.mcpgated-1234567", path);
	made = fopen(left, "w");
	assert_non_null(made);
	fclose(made);
	assert_null(edit_file_find_left(path));
	assert_int_equal(unlink(left), 0);
	left[strlen(left) - 1] = '\0';
	made = fopen(left, "w");
	assert_non_null(made);
	fclose(made);
	found = edit_file_find_left(path);
	assert_string_equal(found, left);
	free(found);
	/* Beside one that was never made; and not beside another one. */
	assert_int_equal(rename(path, other), 0);
	assert_null(edit_file_find_left(other));
	snprintf(in, sizeof(in), "%s/", folder);
	found = edit_file_find_left(in);
	assert_string_equal(found, left);
	free(found);
	assert_int_equal(unlink(left), 0);
	assert_null(edit_file_find_left(in));
	assert_null(edit_file_find_left("/nonexistent/"));
	assert_int_equal(unlink(other), 0);
}

/* It could not be read again. */
static void test_writes_no_more_than_it_reads(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	char *text = mem_zalloc(EDIT_BYTES_MAX + 1);

	assert_int_equal(edit_file_read(path, &file, &err), 0);
	assert_int_equal(edit_file_replace(&file, slice_of(text, EDIT_BYTES_MAX + 1), &err), -1);
	assert_string_equal(err.text, "would be larger than 16 MiB");
	check("old", 0640);
	check_alone();
	assert_int_equal(edit_file_replace(&file, slice_of(text, EDIT_BYTES_MAX), &err), 0);
	free(text);
	edit_file_fini(&file);
}

/* Who knows what is in it can say what it means that it is left alone. */
static void test_reads_what_it_does_not_edit(void **state)
{
	struct edit_file file = { NULL };
	struct error err;
	char other[128];

	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(edit_file_read(path, &file, &err), -1);
	assert_string_equal(err.text, "has a second name (a hard link)");
	assert_string_equal(buf_terminate(&file.text), "old");
	edit_file_fini(&file);
	assert_int_equal(unlink(other), 0);
}

static void test_says_what_cannot_be_made(void **state)
{
	struct error err;
	char in[128], said[256];

	snprintf(in, sizeof(in), "%s/file", path);
	snprintf(said, sizeof(said), "%s: cannot write a file beside it: Not a directory", in);
	assert_int_equal(edit_file_create(in, SLICE_LIT("x"), &err), -1);
	assert_string_equal(err.text, said);
	snprintf(in, sizeof(in), "%s/folder/file", path);
	snprintf(said, sizeof(said), "%s/folder cannot be made: Not a directory", path);
	assert_int_equal(edit_file_create(in, SLICE_LIT("x"), &err), -1);
	assert_string_equal(err.text, said);
	assert_int_equal(edit_file_lock(in, 0, &err), -1);
	assert_string_equal(err.text, said);
	check("old", 0640);
	check_alone();
}

/* One program has the lock as long as it runs; the next one says which, when it has waited. */
static void test_locks_others_out(void **state)
{
	struct error err;
	char byte, text[sizeof(err.text)];
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		if (edit_file_lock(path, 0, &err) == 0 && write(ends[1], "1", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(edit_file_lock(path, 40, &err), -1);
	snprintf(text, sizeof(text),
		 "another program is at it, process %d: wait until it has ended", child);
	assert_string_equal(err.text, text);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = fork(); /* it is free again */
	if (child == 0)
		_exit(edit_file_lock(path, 0, &err) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replaces_what_was_read, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_waits_for_who_has_it_open, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_keeps_what_was_written_into_both, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_leaves_what_was_written_meanwhile, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_leaves_another_file_of_the_same_text,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_makes_files_for_this_user_alone, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_says_what_it_does_not_edit, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_finds_what_was_left, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_writes_no_more_than_it_reads, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_reads_what_it_does_not_edit, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_says_what_cannot_be_made, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_leaves_an_access_control_list_alone,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_keeps_the_group_in_a_folder_of_another,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_locks_others_out, make_folder, remove_folder),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
