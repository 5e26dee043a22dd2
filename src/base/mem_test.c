/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when memory runs out while a text is written: the program must abort. So the test
 * runs it in a process of its own.
 */
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"

#define MEMORY_BYTES (64u << 20) /* the memory limit of the process, and how much it writes */
#define LINE_BYTES 1024u
#define LOSES 7

static void a_text_is_what_was_written(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = mem_open_text(&text, &size);

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(fprintf(out, "%04d\n", i), 5);
	fputc('\0', out);
	mem_close_text(out);
	assert_int_equal(size, 50001);
	assert_int_equal(strlen(text), 50000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(atoi(text + (size_t)i * 5), i);
	free(text);
	mem_close_text(mem_open_text(&text, &size));
	assert_int_equal(size, 0);
	assert_string_equal(text, "");
	free(text);
}

/* Writes a whole text of MEMORY_BYTES; aborts if it cannot. */
static int write_too_much(void)
{
	char line[LINE_BYTES + 1];
	char *text = NULL;
	size_t size = 0;
	FILE *out;

#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer has its own limit */
	const struct rlimit limit = { MEMORY_BYTES, MEMORY_BYTES };

	if (setrlimit(RLIMIT_AS, &limit) < 0)
		return 1;
#endif
	memset(line, 'x', LINE_BYTES);
	line[LINE_BYTES] = '\0';
	out = mem_open_text(&text, &size);
	for (unsigned int i = 0; i < MEMORY_BYTES / LINE_BYTES; i++)
		fputs(line, out);
	mem_close_text(out);
	free(text);
	return size < MEMORY_BYTES ? LOSES : 0;
}

/* A configuration in which one line was silently lost would go unnoticed. */
static void a_text_is_whole_or_the_program_ends(void **state)
{
	const struct rlimit no_core = { 0, 0 };
	pid_t pid = fork();
	int status = 0;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("ASAN_OPTIONS", "allocator_may_return_null=1:max_allocation_size_mb=4", 1);
		setrlimit(RLIMIT_CORE, &no_core);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execl("/proc/self/exe", "mem_test", "too much", (char *)NULL);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_what_was_written),
		cmocka_unit_test(a_text_is_whole_or_the_program_ends),
	};

	(void)argv;
	if (argc > 1)
		return write_too_much();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
