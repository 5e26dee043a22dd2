/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever gets such a file can do with it, and what not. */
#include "keeper/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/unit_test.h"

static void is_refused(int64_t result)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, EPERM);
}

static void sealed_content_stays(void **state)
{
	struct error err;
	char text[16] = "";
	int fd = memory_file_sealed("test", SLICE_LIT("content"), &err);

	assert_true(fd >= 0);
	is_refused(pwrite(fd, "x", 1, 0));
	is_refused(pwrite(fd, "x", 1, 7));
	is_refused(ftruncate(fd, 0));
	assert_true(mmap(NULL, 7, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	is_refused(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	assert_int_equal(pread(fd, text, sizeof(text), 0), 7);
	assert_string_equal(text, "content");
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

static void print(const struct config *config, FILE *out)
{
	fprintf(out, "printed of %p", (const void *)config);
}

static void printed_content_is_sealed(void **state)
{
	const struct config *config = (const struct config *)(const void *)"x";
	char text[64] = "", expected[64];
	struct error err;
	int fd = memory_file_printed("test", print, config, &err);

	snprintf(expected, sizeof(expected), "printed of %p", (const void *)config);
	is_refused(pwrite(fd, "x", 1, 0));
	assert_int_equal(pread(fd, text, sizeof(text), 0), strlen(expected));
	assert_string_equal(text, expected);
	close(fd);
}

static void random_bytes_are_others_each_time(void **state)
{
	struct error err;
	char one[33], other[33];
	int fds[] = { memory_file_random("test", 32, &err), memory_file_random("test", 32, &err) };

	is_refused(pwrite(fds[0], "x", 1, 0));
	assert_int_equal(pread(fds[0], one, sizeof(one), 0), 32);
	assert_int_equal(pread(fds[1], other, sizeof(other), 0), 32);
	assert_memory_not_equal(one, other, 32);
	close(fds[0]);
	close(fds[1]);
}

static void shared_size_stays(void **state)
{
	struct error err;
	int fd = memory_file_shared("test", 100, &err);

	assert_true(fd >= 0);
	is_refused(ftruncate(fd, 0));
	is_refused(ftruncate(fd, 5000));
	is_refused(pwrite(fd, "x", 1, 5000));
	/* Nobody can take from the others that they may write. */
	is_refused(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	assert_int_equal(pwrite(fd, "x", 1, 99), 1);
	assert_int_equal(lseek(fd, 0, SEEK_END), 100);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

/* Nor is a descriptor left of it. */
static void what_cannot_be_written_is_none(void **state)
{
	struct rlimit before, now;
	struct error err = { ERROR_NONE, "" };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = (struct rlimit){ 8, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(memory_file_sealed("test",
					    SLICE_LIT("too much"
						      " of it"),
					    &err),
			 -1);
	assert_int_equal(memory_file_shared("test", 9, NULL), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_string_equal(err.text, "cannot make the memory file test: File too large");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed_content_stays),
		cmocka_unit_test(printed_content_is_sealed),
		cmocka_unit_test(random_bytes_are_others_each_time),
		cmocka_unit_test(shared_size_stays),
		cmocka_unit_test(what_cannot_be_written_is_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
