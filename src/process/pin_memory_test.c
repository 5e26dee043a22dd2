/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of servers' definitions, when another configuration says whose is. */
#include "process/pin_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "obs/log.h"

#define SERVERS 2
#define DIGEST "0000000000000000000000000000000000000000000000000000000000000001"
#define PIN(server, name) server "\ttool\tapproved\t" name "\t" DIGEST "\t{}\t\t\n"

static struct loop *loop;
static struct server servers[SERVERS];
static struct pin_memory memory;
static int log_ends[2];
static uint64_t more_halves; /* than there are, in what was left */

/* A gateway begins with this text in the keeper's file. */
static void begin(const char *text)
{
	struct error err;
	int fd = memfd_create("pins", MFD_CLOEXEC);
	struct halves *file;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)PIN_MEMORY_FILE_BYTES), 0);
	file = mmap(NULL, PIN_MEMORY_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(halves_begin(file, PIN_MEMORY_TEXT_BYTES), text, strlen(text));
	halves_end(file, PIN_MEMORY_TEXT_BYTES, strlen(text));
	file->half += more_halves;
	munmap(file, PIN_MEMORY_FILE_BYTES);
	loop = loop_new(&err);
	assert_int_equal(pipe2(log_ends, O_NONBLOCK | O_CLOEXEC), 0);
	log_set(log_ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	servers[0].conf.name = "one";
	servers[1].conf.name = "two";
	for (size_t i = 0; i < SERVERS; i++)
		pins_init(&servers[i].pins);
	pin_memory_init(&memory, loop, NULL, fd, servers, SERVERS);
	close(fd);
}

static int setup(void **state)
{
	memset(servers, 0, sizeof(servers));
	more_halves = 0;
	return 0;
}

static int teardown(void **state)
{
	pin_memory_fini(&memory);
	for (size_t i = 0; i < SERVERS; i++)
		pins_fini(&servers[i].pins);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(log_ends[0]);
	close(log_ends[1]);
	loop_free(&loop);
	return 0;
}

static void use(enum pin_mode one, enum pin_mode two)
{
	struct buf text = { 0 };

	pin_memory_leave(&memory, &text);
	servers[0].conf.pin = one;
	servers[1].conf.pin = two;
	pin_memory_return(&memory, SERVERS, buf_slice(&text));
	buf_fini(&text);
}

static size_t count(size_t server)
{
	size_t n = 0;

	LIST_FOREACH(node, &servers[server].pins.all)
		n++;
	return n;
}

static bool has_logged(const char *event)
{
	char text[1024] = "";

	return read(log_ends[0], text, sizeof(text) - 1) > 0 && strstr(text, event) != NULL;
}

static void definitions_wait_for_a_server_that_has_pins(void **state)
{
	begin(PIN_MEMORY_FIRST_LINE PIN("one", "61") PIN("two", "62"));
	assert_int_equal(count(0) + count(1), 0);
	use(PIN_WARN, PIN_OFF);
	assert_true(count(0) == 1 && count(1) == 0);
	use(PIN_OFF, PIN_ENFORCE);
	assert_true(count(0) == 0 && count(1) == 1);
	use(PIN_ENFORCE, PIN_ENFORCE);
	assert_true(count(0) == 1 && count(1) == 1);
	assert_false(has_logged("pins_"));
}

/* SEC-68: whatever stood there about a server whose pins nobody needed so far. */
static void bad_lines_are_left_out(void **state)
{
	begin(PIN_MEMORY_FIRST_LINE "one\tnonsense\n" PIN("one", "61")
		      PIN("one", "6") "one\n\none\tknown\ttool\n" PIN("two", "xx")
			      PIN("two", "62"));
	assert_false(has_logged("pins_"));
	use(PIN_ENFORCE, PIN_OFF);
	assert_int_equal(count(0), 1);
	assert_true(servers[0].pins.is_known[PERMISSION_TOOL]);
	assert_true(has_logged(" warn pins_refused lines=3"));
	use(PIN_ENFORCE, PIN_ENFORCE);
	assert_true(count(0) == 1 && count(1) == 1);
	assert_true(has_logged(" warn pins_refused lines=1"));
	assert_true(servers[1].pins.is_known[PERMISSION_RESOURCE]); /* of which no line says so */
	use(PIN_ENFORCE, PIN_ENFORCE);
	assert_false(has_logged("pins_"));
}

/* At the start it is all or nothing: the file may be somebody else's. */
static void a_bad_text_is_lost_at_the_start(void **state)
{
	servers[0].conf.pin = PIN_ENFORCE;
	begin(PIN_MEMORY_FIRST_LINE PIN("one", "61") "one\tnonsense\n");
	assert_true(has_logged(" error pins_lost "));
	assert_int_equal(count(0), 0);
	assert_true(servers[0].pins.is_known[PERMISSION_TOOL]); /* so nothing is a first sight */
	use(PIN_ENFORCE, PIN_OFF);
	assert_true(servers[0].pins.is_known[PERMISSION_TOOL]);
	use(PIN_OFF, PIN_ENFORCE);
	assert_true(servers[1].pins.is_known[PERMISSION_PROMPT]);
	assert_false(has_logged("pins_"));
}

static void a_bad_head_is_a_loss_too(void **state)
{
	servers[0].conf.pin = PIN_ENFORCE;
	more_halves = 2;
	begin(PIN_MEMORY_FIRST_LINE PIN("one", "61"));
	assert_true(has_logged(" error pins_lost "));
	assert_true(servers[0].pins.is_known[PERMISSION_TOOL]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(definitions_wait_for_a_server_that_has_pins, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bad_lines_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bad_text_is_lost_at_the_start, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bad_head_is_a_loss_too, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
