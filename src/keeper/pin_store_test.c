/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway leaves is bounded, copied and kept, whatever it is. SEC-68 */
#include "keeper/pin_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/unit_test.h"
#include "process/pin_memory.h"

#define TEXT_AT(half) (sizeof(struct halves) + (half)*PIN_MEMORY_TEXT_BYTES)

static char directory[64];
static struct config config;
static struct config_server server;
static struct pin_store store;

/* What a gateway gets for a file that cannot be used. */
#define LOST                                                                       \
	PIN_MEMORY_FIRST_LINE "one\tknown\ttool\none\tknown\tprompt\none\tknown\t" \
			      "resource\none\tknown\ttemplate\none\tknown\tserver\n"
static uint64_t now_ms = 1000000;

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void begin_store(void)
{
	struct error err;

	assert_int_equal(pin_store_init(&store, &config, &err), 0);
}

static void begin_again(void)
{
	pin_store_fini(&store);
	begin_store();
}

static int setup(void **state)
{
	strcpy(directory, "/tmp/mcpgated-pins-XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(setenv("STATE_DIRECTORY", directory, 1), 0);
	server = (struct config_server){ .conf = { .name = "one", .pin = PIN_ENFORCE } };
	config = (struct config){ .servers = &server, .server_count = 1 };
	clock_freeze(now_ms += 100000);
	begin_store();
	return 0;
}

static int teardown(void **state)
{
	pin_store_fini(&store);
	remove(path_of("pins"));
	remove(path_of("pins.new"));
	remove(path_of("pins.bad"));
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

/* What a gateway writes into the memory file. */
static void leave(uint64_t half, uint64_t bytes, const char *text)
{
	const uint64_t head[] = { half, bytes, bytes };

	assert_int_equal(pwrite(store.memory, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(store.memory, text, strlen(text), (off_t)TEXT_AT(half & 1)),
			 strlen(text));
}

static void write_due(void)
{
	clock_freeze(now_ms += PIN_STORE_EACH_MS);
	(void)pin_store_do_due(&store);
}

static void assert_text(const char *text)
{
	struct buf found = { 0 };
	struct error err;

	assert_int_equal(pin_store_read(&store, &found, &err), 0);
	assert_string_equal(buf_terminate(&found), text);
	buf_fini(&found);
}

static size_t count_bytes(void)
{
	struct buf found = { 0 };
	struct error err;
	size_t count;

	assert_int_equal(pin_store_read(&store, &found, &err), 0);
	count = found.len;
	buf_fini(&found);
	return count;
}

static void pins_outlive_gateway_and_daemon(void **state)
{
	struct stat status;

	assert_text("");
	leave(1, 4, "pins");
	assert_text("pins"); /* for the next gateway, whatever was told */
	pin_store_note(&store);
	begin_again();
	assert_text("pins");
	assert_int_equal(stat(path_of("pins"), &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	assert_int_equal(access(path_of("pins.new"), F_OK), -1);
}

static void nonsense_of_a_gateway_is_not_kept(void **state)
{
	struct buf text = { 0 };
	struct error err;

	leave(0, 4, "good");
	pin_store_note(&store);
	write_due();
	leave(2, 4, "evil");
	assert_int_equal(pin_store_read(&store, &text, &err), -1);
	pin_store_note(&store);
	write_due();
	leave(1, PIN_MEMORY_TEXT_BYTES + 1, "evil");
	assert_int_equal(pin_store_read(&store, &text, &err), -1);
	leave(0, UINT64_MAX, "evil");
	assert_int_equal(pin_store_read(&store, &text, &err), -1);
	pin_store_note(&store);
	assert_int_equal(text.len, 0);
	buf_fini(&text);
	begin_again();
	assert_text("good");
}

static void memory_and_file_are_bounded(void **state)
{
	struct stat status;

	/* It cannot be made longer, nor mapped memory taken from whoever reads it. */
	assert_int_equal(ftruncate(store.memory, (off_t)PIN_MEMORY_FILE_BYTES + 1), -1);
	assert_int_equal(ftruncate(store.memory, 0), -1);
	leave(1, PIN_MEMORY_TEXT_BYTES, "all of it");
	pin_store_note(&store);
	write_due();
	assert_int_equal(stat(path_of("pins"), &status), 0);
	assert_int_equal(status.st_size, PIN_MEMORY_TEXT_BYTES + 65); /* with its digest */
	begin_again();
	assert_int_equal(truncate(path_of("pins"), status.st_size + 1), 0);
	begin_again();
	assert_text(LOST);
}

static void a_flood_is_written_now_and_then(void **state)
{
	uint64_t first_ms, second_ms;

	assert_int_equal(pin_store_do_due(&store), UINT64_MAX);
	pin_store_note(&store);
	first_ms = pin_store_do_due(&store);
	assert_int_equal(first_ms, now_ms + PIN_STORE_GATHER_MS);
	clock_freeze(now_ms = first_ms);
	assert_int_equal(pin_store_do_due(&store), UINT64_MAX);
	for (int i = 0; i < 1000; i++)
		pin_store_note(&store);
	second_ms = pin_store_do_due(&store);
	assert_int_equal(second_ms, now_ms + PIN_STORE_EACH_MS);
}

/* A disk that was full: nobody has to change a pin again, or to stop the daemon well, for it to be kept. */
static void what_could_not_be_written_is_written_later(void **state)
{
	leave(0, 4, "mine");
	assert_int_equal(mkdir(path_of("pins.new"), 0700), 0);
	pin_store_note(&store);
	write_due();
	assert_true(store.has_failed);
	assert_int_equal(access(path_of("pins"), F_OK), -1);
	assert_int_equal(rmdir(path_of("pins.new")), 0);
	assert_int_equal(pin_store_do_due(&store), now_ms + PIN_STORE_EACH_MS);
	write_due();
	assert_false(store.has_failed);
	assert_int_equal(access(path_of("pins"), F_OK), 0);
	assert_int_equal(pin_store_do_due(&store), UINT64_MAX);
}

static void what_is_no_plain_file_of_ours_is_not_read(void **state)
{
	int fifo;

	leave(0, 4, "mine");
	pin_store_note(&store);
	begin_again();
	assert_text("mine");
	if (geteuid() == 0) {
		assert_int_equal(chown(path_of("pins"), 1, (gid_t)-1), 0);
		begin_again();
		assert_text(LOST);
	}
	assert_int_equal(unlink(path_of("pins")), 0);
	assert_int_equal(mkfifo(path_of("pins"), 0600), 0);
	fifo = open(path_of("pins"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write(fifo, "evil", 4), 4);
	begin_again();
	assert_text(LOST);
	close(fifo);
}

static void a_full_disk_keeps_what_was_there(void **state)
{
	const struct rlimit small = { 4096, RLIM_INFINITY };
	struct rlimit before;

	leave(0, 4, "good");
	pin_store_note(&store);
	write_due();
	leave(0, 8192, "more");
	pin_store_note(&store);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	write_due();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(store.has_failed);
	assert_int_equal(access(path_of("pins.new"), F_OK), -1);
	leave(0, 4, "late");
	begin_again();
	assert_text("late");
}

static void write_file(const char *text, size_t size)
{
	int fd = open(path_of("pins"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, size), (ssize_t)size);
	close(fd);
}

static ssize_t read_file(const char *name, char *text_r, size_t most)
{
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text_r, most) : -1;

	if (fd >= 0)
		close(fd);
	return n;
}

/* SEC-68: what a power failure leaves of a file: nothing, or any part of it. */
static void a_part_of_a_file_is_not_used(void **state)
{
	static const char text[] = PIN_MEMORY_FIRST_LINE "one\tknown\ttool\n";
	char whole[256], bad[256];
	ssize_t size;

	leave(0, sizeof(text) - 1, text);
	pin_store_note(&store);
	begin_again();
	assert_text(text);
	size = read_file("pins", whole, sizeof(whole));
	assert_int_equal(size, sizeof(text) - 1 + 65);
	for (ssize_t n = 0; n < size; n++) {
		pin_store_fini(&store);
		write_file(whole, (size_t)n);
		begin_store();
		assert_text(LOST);
		assert_int_equal(read_file("pins.bad", bad, sizeof(bad)), n);
		/* What stands there from now on says so, too, whatever comes of what was set aside. */
		assert_int_equal(pin_store_do_due(&store), UINT64_MAX);
		remove(path_of("pins.bad"));
		begin_again();
		assert_text(LOST);
		assert_int_equal(read_file("pins.bad", bad, sizeof(bad)), -1);
		clock_freeze(now_ms += PIN_STORE_EACH_MS);
	}
	whole[30]++;
	pin_store_fini(&store);
	write_file(whole, (size_t)size);
	begin_store();
	assert_text(LOST);
}

/* Which had no digest: the first line and the end of the last one are all that can be asked for. */
static void a_file_of_an_earlier_release_is_read(void **state)
{
	static const char text[] = PIN_MEMORY_FIRST_LINE "one\tknown\ttool\n";
	int fd;

	pin_store_fini(&store);
	write_file(text, sizeof(text) - 1);
	begin_store();
	assert_text(text);
	pin_store_fini(&store);
	write_file(text, sizeof(text) - 2);
	begin_store();
	assert_text(LOST);
	for (off_t more = 0; more < 2; more++) {
		pin_store_fini(&store);
		write_file(text, sizeof(text) - 1);
		fd = open(path_of("pins"), O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, "\n", 1, (off_t)PIN_MEMORY_TEXT_BYTES - 1 + more), 1);
		close(fd);
		begin_store();
		assert_int_equal(count_bytes(), more == 0 ? PIN_MEMORY_TEXT_BYTES : strlen(LOST));
	}
}

static void one_daemon_writes(void **state)
{
	int other = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	pin_store_fini(&store);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
	begin_store();
	leave(0, 4, "mine");
	pin_store_note(&store);
	write_due();
	assert_int_equal(access(path_of("pins"), F_OK), -1);
	close(other);
	pin_store_note(&store);
	write_due();
	assert_int_equal(access(path_of("pins"), F_OK), 0);
}

static void who_has_no_pins_touches_nothing(void **state)
{
	pin_store_fini(&store);
	server.conf.pin = PIN_OFF;
	begin_store();
	assert_int_equal(store.directory, -1);
	pin_store_note(&store);
	assert_int_equal(pin_store_do_due(&store), UINT64_MAX);
	assert_text("");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pins_outlive_gateway_and_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(nonsense_of_a_gateway_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_and_file_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_is_written_now_and_then, setup, teardown),
		cmocka_unit_test_setup_teardown(what_could_not_be_written_is_written_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_plain_file_of_ours_is_not_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_keeps_what_was_there, setup, teardown),
		cmocka_unit_test_setup_teardown(a_part_of_a_file_is_not_used, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_of_an_earlier_release_is_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_daemon_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_no_pins_touches_nothing, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
