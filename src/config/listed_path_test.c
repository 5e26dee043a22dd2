/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the keeper reads with its own rights, and by which links. What of this is about the paths of a sandbox is
 * keeper/sandbox_test's.
 */
#include "config/listed_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"

/* Two directories, of which servers may write the first. */
static char writable[PATH_MAX], other[PATH_MAX];

static struct slice write_list[1];
static struct config_server server = { .enabled = true,
				       .conf = { .name = "files" },
				       .sandbox = CONFIG_SANDBOX_LANDLOCK,
				       .sandbox_write = { write_list, 1 } };
static const struct config config = { .servers = &server, .server_count = 1 };
static const struct listed_writers running = { .running = &config };
static const struct listed_writers next = { .next = &config };
static const struct listed_writers nobody;

static char *path_in(const char *directory, const char *name)
{
	return mem_printf("%s/%s", directory, name);
}

static void put(const char *directory, const char *name, const char *text)
{
	char *path = path_in(directory, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(path);
}

static void link_to(const char *directory, const char *name, const char *target)
{
	char *path = path_in(directory, name);

	assert_int_equal(symlink(target, path), 0);
	free(path);
}

static int setup(void **state)
{
	char made[] = "/tmp/mcpgated-listed-XXXXXX";
	char *target;

	(void)state;
	if (mkdtemp(made) == NULL || realpath(made, other) == NULL)
		return -1;
	snprintf(writable, sizeof(writable), "%.4000s/data", other);
	write_list[0] = slice_str(writable);
	server.enabled = true;
	server.sandbox = CONFIG_SANDBOX_LANDLOCK;
	if (mkdir(writable, 0700) < 0)
		return -1;
	put(other, "secret", "foreign");
	put(writable, "plain", "own");
	target = path_in(other, "secret");
	link_to(writable, "link", target);
	link_to(writable, "up", "..");
	link_to(writable, "here", "plain");
	free(target);
	link_to(other, "to_plain", "data/plain");
	link_to(other, "to_link", "./data/../data/link");
	link_to(other, "to_data", "data");
	link_to(other, "chain", "to_link");
	link_to(other, "self", "self");
	return 0;
}

static int teardown(void **state)
{
	char *command = mem_printf("rm -r '%s'", other);
	int result = system(command);

	(void)state;
	free(command);
	return result;
}

/* What is in the file of this name, or an errno as text; borrowed until the next call. */
static const char *read_by(const struct listed_writers *writers, const char *directory,
			   const char *name)
{
	static char text[64];
	char *path = path_in(directory, name);
	int fd = listed_path_open_file(writers, path);
	ssize_t n;

	free(path);
	if (fd < 0)
		return errno == ELOOP ? "ELOOP" : errno == ENOENT ? "ENOENT" : "another error";
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return text;
}

static void links_of_servers_lead_nowhere(void **state)
{
	static const struct {
		bool is_writable;
		const char *name, *text;
	} table[] = {
		{ true, "plain", "own" },
		{ true, "./../data//plain", "own" },
		{ true, "link", "ELOOP" },
		{ true, "here", "ELOOP" },
		{ true, "up/secret", "ELOOP" },
		{ true, "../secret", "foreign" },
		{ true, "none", "ENOENT" },
		{ false, "secret", "foreign" },
		{ false, "to_plain", "own" },
		{ false, "to_data/plain", "own" },
		/* A link of the operator that leads to one of a server. */
		{ false, "to_link", "ELOOP" },
		{ false, "to_data/link", "ELOOP" },
		{ false, "to_data/up/secret", "ELOOP" },
		{ false, "chain", "ELOOP" },
		{ false, "self", "ELOOP" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *directory = table[i].is_writable ? writable : other;

		assert_string_equal(read_by(&running, directory, table[i].name), table[i].text);
		assert_string_equal(read_by(&next, directory, table[i].name), table[i].text);
	}
}

/* Whoever may write nothing, or is in no sandbox at all, is none of those that a link is feared of. */
static void links_of_nobody_are_followed(void **state)
{
	assert_string_equal(read_by(&nobody, writable, "link"), "foreign");
	assert_string_equal(read_by(&nobody, other, "chain"), "foreign");
	server.enabled = false;
	assert_string_equal(read_by(&next, writable, "link"), "foreign");
	assert_string_equal(read_by(&running, writable, "link"), "ELOOP"); /* it may still run */
	server.enabled = true;
	server.sandbox = CONFIG_SANDBOX_OFF;
	assert_string_equal(read_by(&next, writable, "up/secret"), "foreign");
}

/* By another name of what may be written, and from the directory that this process is in. */
static void names_do_not_count(void **state)
{
	char *name = path_in(other, "to_data");
	int before = open(".", O_PATH | O_CLOEXEC);

	write_list[0] = slice_str(name);
	assert_string_equal(read_by(&running, writable, "link"), "ELOOP");
	assert_int_equal(chdir(writable), 0);
	assert_int_equal(listed_path_open_file(&running, "link"), -1);
	assert_int_equal(errno, ELOOP);
	assert_string_equal(read_by(&running, ".", "plain"), "own");
	assert_string_equal(read_by(&running, "..", "secret"), "foreign");
	assert_int_equal(fchdir(before), 0);
	close(before);
	write_list[0] = slice_str(other);
	assert_string_equal(read_by(&running, other, "to_plain"), "ELOOP");
	write_list[0] = SLICE_LIT("/");
	assert_string_equal(read_by(&running, other, "to_plain"), "ELOOP");
	assert_string_equal(read_by(&running, other, "secret"), "foreign");
	free(name);
}

static void long_paths_are_refused(void **state)
{
	size_t size = 2 * PATH_MAX;
	char *path = mem_zalloc(size + 1);
	char target[PATH_MAX];

	for (size_t i = 0; i < size; i++)
		path[i] = "/."[i % 2];
	assert_int_equal(listed_path_open_file(&running, path), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	/* A link, and what stands behind it. */
	memset(target, '/', sizeof(target));
	target[sizeof(target) - 2] = '\0';
	link_to(other, "long", target);
	assert_string_equal(read_by(&running, other, "long/./././secret"), "another error");
	free(path);
}

/* Neither is waited for: a FIFO that nobody writes into, a device. */
static void plain_files_alone_are_read(void **state)
{
	char *fifo = path_in(writable, "fifo");
	const char *const paths[] = { fifo, "/dev/null", writable };
	struct error err = { ERROR_NONE, "" };
	struct buf content = { 0 };

	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		assert_int_equal(file_read(paths[i], &nobody, 100, &content, NULL, &err), -1);
		assert_string_equal(err.text, "is not a regular file");
		assert_int_equal(file_read(paths[i], &running, 100, &content, NULL, &err), -1);
		assert_string_equal(err.text, "is not a regular file");
		assert_int_equal(content.len, 0);
	}
	free(fifo);
}

/* Those of /proc are said to be empty. */
static void file_that_has_grown_is_read_to_its_end(void **state)
{
	struct error err = { ERROR_NONE, "" };
	struct buf content = { 0 };
	struct stat status;

	(void)state;
	assert_int_equal(file_read("/proc/meminfo", &nobody, 1 << 16, &content, &status, &err), 0);
	assert_int_equal(status.st_size, 0);
	assert_memory_equal(content.data, "MemTotal:", 9);
	assert_true(content.len > 512 && content.data[content.len - 1] == '\n');
	buf_wipe(&content);
	assert_int_equal(file_read("/proc/meminfo", &nobody, 512, &content, NULL, &err), -1);
	assert_int_equal(err.kind, ERROR_LIMIT);
	assert_int_equal(content.cap, 0);
}

/* What we write ourselves is nowhere where a server could put a link, or another file, in its place. */
static void output_is_where_no_server_writes(void **state)
{
	static const struct {
		bool is_writable, is_good;
		const char *name;
	} table[] = {
		{ false, true, "log" },
		{ false, true, "none/log" },
		{ true, false, "log" },
		{ true, false, "below/log" },
		{ true, true, "../log" },
		{ true, false, "link" },
		{ false, false, "to_plain" },
		{ false, false, "to_link" },
		{ false, false, "to_data/fresh" },
	};
	struct error err = { ERROR_NONE, "" };

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *path = path_in(table[i].is_writable ? writable : other, table[i].name);

		assert_int_equal(listed_path_check_output(&next, path, &err),
				 table[i].is_good ? 0 : -1);
		assert_int_equal(listed_path_check_output(&nobody, path, &err), 0);
		server.enabled = false;
		assert_int_equal(listed_path_check_output(&next, path, &err), 0);
		/* What it has done while it ran, and its last processes do, is the same. */
		assert_int_equal(listed_path_check_output(&running, path, &err),
				 table[i].is_good ? 0 : -1);
		server.enabled = true;
		free(path);
	}
	assert_int_equal(listed_path_check_output(&next, "/", &err), 0);
	write_list[0] = SLICE_LIT("/");
	assert_int_equal(listed_path_check_output(&next, "/log", &err), -1);
	assert_non_null(strstr(err.text, "'files' may write to the directory"));
	assert_int_equal(listed_path_check_output(&running, "/log", &err), -1);
	assert_non_null(strstr(err.text, "'files', as it has run until now, may write"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(links_of_servers_lead_nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(links_of_nobody_are_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(names_do_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(file_that_has_grown_is_read_to_its_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(long_paths_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(output_is_where_no_server_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(plain_files_alone_are_read, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
