/* SPDX-License-Identifier: Apache-2.0 */
/* Where secrets are read from, their limits, and which variables are taken for secrets. */
#include "config/variables.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/listed_path.h"

static const struct listed_writers nobody;

/* A file of its own for each test; the path is the state. */
static int make_file(void **state)
{
	char *path = mem_strdup("/tmp/mcpgated-secret-XXXXXX");
	int fd = mkstemp(path);

	*state = path;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	int result = unlink(*state);

	free(*state);
	return result;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void assert_value(const char *kind, const char *name, const char *expected)
{
	struct error err = { .text = "" };
	char *value = NULL;

	assert_int_equal(secret_resolve(kind, name, &nobody, &value, &err), 0);
	assert_string_equal(value, expected);
	secret_free(&value);
	assert_null(value);
}

static void assert_no_value(const char *kind, const char *name, const char *part)
{
	struct error err = { .text = "" };
	char *value = NULL;

	assert_int_equal(secret_resolve(kind, name, &nobody, &value, &err), -1);
	assert_null(value);
	if (strstr(err.text, part) == NULL)
		fail_msg("'%s' has no '%s'", err.text, part);
}

static void test_file_loses_one_line_break(void **state)
{
	write_file(*state, "s3cret\n", 7);
	assert_value("file", *state, "s3cret");
	write_file(*state, "s3cret", 6);
	assert_value("file", *state, "s3cret");
	write_file(*state, "a\nb\n\n", 5);
	assert_value("file", *state, "a\nb\n");
	write_file(*state, "s3cret\r\n", 8);
	assert_value("file", *state, "s3cret");
	write_file(*state, "\n", 1);
	assert_value("file", *state, "");
	write_file(*state, "", 0);
	assert_value("file", *state, "");
}

static void test_file_limits(void **state)
{
	char *large = mem_alloc(SECRET_BYTES_MAX + 1);
	struct error err;
	char *value = NULL;

	memset(large, 'x', SECRET_BYTES_MAX + 1);
	write_file(*state, large, SECRET_BYTES_MAX);
	assert_int_equal(secret_resolve("file", *state, &nobody, &value, &err), 0);
	assert_int_equal(strlen(value), SECRET_BYTES_MAX);
	secret_free(&value);
	write_file(*state, large, SECRET_BYTES_MAX + 1);
	assert_no_value("file", *state, "is larger than 64 KiB");
	write_file(*state, "a\0b", 3);
	assert_no_value("file", *state, "holds a NUL byte");
	assert_no_value("file", "/nonexistent/file",
			"the file /nonexistent/file cannot be opened: No such file");
	assert_no_value("file", "/tmp", "is not a regular file");
	free(large);
}

static void test_environment(void **state)
{
	assert_int_equal(setenv("MCPGATED_TEST_TOKEN", "t0ken", 1), 0);
	assert_value("env", "MCPGATED_TEST_TOKEN", "t0ken");
	assert_int_equal(unsetenv("MCPGATED_TEST_TOKEN"), 0);
	assert_no_value("env", "MCPGATED_TEST_TOKEN",
			"the variable MCPGATED_TEST_TOKEN is not set");
}

static void test_credentials_of_systemd(void **state)
{
	const char *name = strrchr(*state, '/') + 1;

	write_file(*state, "cred\n", 5);
	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
	assert_no_value("credential", name, "there are no credentials");
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/tmp", 1), 0);
	assert_value("credential", name, "cred");
	assert_no_value("credential", "../etc/passwd", "must not contain '/'");
	assert_no_value("credential", "..", "or begin with '.'");
	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

static void test_names_of_secrets(void **state)
{
	assert_true(secret_is_name("GITHUB_TOKEN"));
	assert_true(secret_is_name("apiKey"));
	assert_true(secret_is_name("CLIENT_SECRET"));
	assert_true(secret_is_name("PASSWORD"));
	assert_false(secret_is_name("TOKEN_FILE"));
	assert_false(secret_is_name("MODE"));
	assert_false(secret_is_name(""));
	assert_true(secret_is_kind("file"));
	assert_false(secret_is_kind("vault"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file_loses_one_line_break, make_file,
						remove_file),
		cmocka_unit_test_setup_teardown(test_file_limits, make_file, remove_file),
		cmocka_unit_test(test_environment),
		cmocka_unit_test_setup_teardown(test_credentials_of_systemd, make_file,
						remove_file),
		cmocka_unit_test(test_names_of_secrets),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
