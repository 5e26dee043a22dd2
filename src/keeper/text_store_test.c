/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway leaves is bounded, copied and kept, whatever it is. SEC-68 */
#include "keeper/handover.h"
#include "keeper/programs.h"
#include "keeper/text_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
static struct text_stores stores;
static struct text_store *const store = &stores.items[IPC_TEXT_PINS];

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

	assert_int_equal(text_stores_init(&stores, &config, &(struct handover){ .fds = NULL },
					  &err),
			 0);
}

static void begin_again(void)
{
	text_stores_fini(&stores);
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
	text_stores_fini(&stores);
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

	assert_int_equal(pwrite(store->memory, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(store->memory, text, strlen(text), (off_t)TEXT_AT(half & 1)),
			 strlen(text));
}

static void write_due(void)
{
	clock_freeze(now_ms += TEXT_STORE_PINS_MS);
	(void)text_stores_do_due(&stores);
}

static void assert_text(const char *text)
{
	struct buf found = { 0 };
	struct error err;

	assert_int_equal(text_store_read(store, &found, &err), 0);
	assert_string_equal(buf_terminate(&found), text);
	buf_fini(&found);
}

static size_t count_bytes(void)
{
	struct buf found = { 0 };
	struct error err;
	size_t count;

	assert_int_equal(text_store_read(store, &found, &err), 0);
	count = found.len;
	buf_fini(&found);
	return count;
}

#define NOTHING_TOLD 256

/* What a gateway is told: a bit for each text that cannot be saved. */
static unsigned int tell(void)
{
	struct ipc_message message = { .type = 0 };
	struct error err;
	int pair[2];
	int received;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				    pair),
			 0);
	text_stores_tell(&stores, pair[0]);
	received = ipc_recv(pair[1], &message, &err);
	close(pair[0]);
	close(pair[1]);
	if (received <= 0)
		return NOTHING_TOLD;
	assert_int_equal(message.type, IPC_UNSAVED);
	return message.unsaved.kinds;
}

static void pins_outlive_gateway_and_daemon(void **state)
{
	struct stat status;

	assert_text("");
	leave(1, 4, "pins");
	assert_text("pins"); /* for the next gateway, whatever was told */
	text_stores_note(&stores, IPC_TEXT_PINS);
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
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	leave(2, 4, "evil");
	assert_int_equal(text_store_read(store, &text, &err), -1);
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	leave(1, PIN_MEMORY_TEXT_BYTES + 1, "evil");
	assert_int_equal(text_store_read(store, &text, &err), -1);
	leave(0, UINT64_MAX, "evil");
	assert_int_equal(text_store_read(store, &text, &err), -1);
	text_stores_note(&stores, IPC_TEXT_PINS);
	assert_int_equal(text.len, 0);
	buf_fini(&text);
	begin_again();
	assert_text("good");
}

static void memory_and_file_are_bounded(void **state)
{
	struct stat status;

	/* It cannot be made longer, nor mapped memory taken from whoever reads it. */
	assert_int_equal(ftruncate(store->memory, (off_t)PIN_MEMORY_FILE_BYTES + 1), -1);
	assert_int_equal(ftruncate(store->memory, 0), -1);
	leave(1, PIN_MEMORY_TEXT_BYTES, "all of it");
	text_stores_note(&stores, IPC_TEXT_PINS);
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

	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
	text_stores_note(&stores, IPC_TEXT_PINS);
	first_ms = text_stores_do_due(&stores);
	assert_int_equal(first_ms, now_ms + TEXT_STORE_GATHER_MS);
	clock_freeze(now_ms = first_ms);
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
	for (int i = 0; i < 1000; i++)
		text_stores_note(&stores, IPC_TEXT_PINS);
	second_ms = text_stores_do_due(&stores);
	assert_int_equal(second_ms, now_ms + TEXT_STORE_PINS_MS);
}

/* The first note of several counts, and none waits for longer than it must. */
static void a_note_is_written_soon(void **state)
{
	const uint64_t notes_ms[] = { 1, now_ms, now_ms + 100 * TEXT_STORE_PINS_MS };

	begin_again(); /* which has written nothing yet */
	for (size_t i = 0; i < ARRAY_LEN(notes_ms); i++) {
		clock_freeze(now_ms = notes_ms[i]);
		text_stores_note(&stores, IPC_TEXT_PINS);
		assert_int_equal(text_stores_do_due(&stores), now_ms + TEXT_STORE_GATHER_MS);
		clock_freeze(now_ms + TEXT_STORE_GATHER_MS - 1);
		text_stores_note(&stores, IPC_TEXT_PINS);
		assert_int_equal(text_stores_do_due(&stores), now_ms + TEXT_STORE_GATHER_MS);
		if (i > 0) {
			clock_freeze(now_ms += TEXT_STORE_GATHER_MS);
			assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
		} else {
			begin_again();
		}
	}
}

/* What the program before has left is written by this one, if that has not come to it. */
static void what_was_handed_over_is_written(void **state)
{
	struct handover from = { .fds = NULL };
	struct error err;
	int memory = dup(store->memory);

	leave(0, 4, "mine");
	text_stores_fini(&stores);
	handover_write(&from, "memory %d pins", handover_give(&from, memory));
	assert_int_equal(text_stores_init(&stores, &config, &from, &err), 0);
	handover_fini(&from);
	assert_int_equal(store->memory, memory);
	assert_text("mine");
	assert_int_equal(text_stores_do_due(&stores), now_ms + TEXT_STORE_GATHER_MS);
	write_due();
	assert_int_equal(access(path_of("pins"), F_OK), 0);
}

/* A disk that was full: nobody has to change a pin again, or to stop the daemon well, for it to be kept. */
static void what_could_not_be_written_is_written_later(void **state)
{
	leave(0, 4, "mine");
	assert_int_equal(mkdir(path_of("pins.new"), 0700), 0);
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	assert_true(store->has_failed);
	assert_int_equal(tell(), 1u << IPC_TEXT_PINS);
	assert_int_equal(tell(), NOTHING_TOLD);
	text_stores_on_gateway_exit(&stores);
	assert_int_equal(tell(), 1u << IPC_TEXT_PINS); /* the next one does not know it */
	assert_int_equal(access(path_of("pins"), F_OK), -1);
	assert_int_equal(rmdir(path_of("pins.new")), 0);
	assert_int_equal(text_stores_do_due(&stores), now_ms + TEXT_STORE_PINS_MS);
	write_due();
	assert_false(store->has_failed);
	assert_int_equal(tell(), 0);
	assert_int_equal(tell(), NOTHING_TOLD);
	assert_int_equal(access(path_of("pins"), F_OK), 0);
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
}

static void what_is_no_plain_file_of_ours_is_not_read(void **state)
{
	int fifo;

	leave(0, 4, "mine");
	text_stores_note(&stores, IPC_TEXT_PINS);
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
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	leave(0, 8192, "more");
	text_stores_note(&stores, IPC_TEXT_PINS);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	write_due();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(store->has_failed);
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
	text_stores_note(&stores, IPC_TEXT_PINS);
	begin_again();
	assert_text(text);
	size = read_file("pins", whole, sizeof(whole));
	assert_int_equal(size, sizeof(text) - 1 + 65);
	for (ssize_t n = 0; n < size; n++) {
		text_stores_fini(&stores);
		write_file(whole, (size_t)n);
		begin_store();
		assert_text(LOST);
		assert_int_equal(read_file("pins.bad", bad, sizeof(bad)), n);
		/* What stands there from now on says so, too, whatever comes of what was set aside. */
		assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
		remove(path_of("pins.bad"));
		begin_again();
		assert_text(LOST);
		assert_int_equal(read_file("pins.bad", bad, sizeof(bad)), -1);
		clock_freeze(now_ms += TEXT_STORE_PINS_MS);
	}
	/* What is set aside is the last one. */
	for (size_t n = 5; n < 8; n++) {
		text_stores_fini(&stores);
		write_file(whole, n);
		begin_store();
		assert_int_equal(read_file("pins.bad", bad, sizeof(bad)), n);
	}
	whole[30]++;
	text_stores_fini(&stores);
	write_file(whole, (size_t)size);
	begin_store();
	assert_text(LOST);
}

/* Which had no digest: the first line and the end of the last one are all that can be asked for. */
static void a_file_of_an_earlier_release_is_read(void **state)
{
	static const char text[] = PIN_MEMORY_FIRST_LINE "one\tknown\ttool\n";
	int fd;

	text_stores_fini(&stores);
	write_file(text, sizeof(text) - 1);
	begin_store();
	assert_text(text);
	text_stores_fini(&stores);
	write_file(text, sizeof(text) - 2);
	begin_store();
	assert_text(LOST);
	for (off_t more = 0; more < 2; more++) {
		text_stores_fini(&stores);
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
	text_stores_fini(&stores);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
	begin_store();
	leave(0, 4, "mine");
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	assert_int_equal(access(path_of("pins"), F_OK), -1);
	close(other);
	text_stores_note(&stores, IPC_TEXT_PINS);
	write_due();
	assert_int_equal(access(path_of("pins"), F_OK), 0);
}

static void who_has_no_pins_touches_nothing(void **state)
{
	text_stores_fini(&stores);
	server.conf.pin = PIN_OFF;
	begin_store();
	assert_int_equal(store->directory, -1);
	text_stores_note(&stores, IPC_TEXT_PINS);
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
	assert_text("");
}

static void leave_sessions(const char *text)
{
	const struct halves head = { .bytes = { strlen(text) } };
	int memory = stores.items[IPC_TEXT_SESSIONS].memory;

	assert_int_equal(pwrite(memory, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(memory, text, strlen(text), sizeof(head)), strlen(text));
	text_stores_note(&stores, IPC_TEXT_SESSIONS);
	clock_freeze(now_ms += TEXT_STORE_SESSIONS_MS);
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
}

static size_t count_sessions(const struct text_stores *of)
{
	struct buf found = { 0 };
	struct error err;
	size_t count;

	assert_int_equal(text_store_read(&of->items[IPC_TEXT_SESSIONS], &found, &err), 0);
	count = found.len;
	buf_fini(&found);
	return count;
}

static void remove_sessions(const struct text_stores *of)
{
	char lock[TEXT_STORE_NAME_BYTES + sizeof(".lock")];

	snprintf(lock, sizeof(lock), "%s.lock", of->items[IPC_TEXT_SESSIONS].name);
	assert_int_equal(remove(path_of(lock)), 0);
	assert_int_equal(remove(path_of(of->items[IPC_TEXT_SESSIONS].name)), 0);
}

/* A user may run several daemons: each has its sessions, and only that of the same address goes on with them. */
static void sessions_are_of_an_address(void **state)
{
	struct config_listen one = { .address = "127.0.0.1:1" }, two = { .address = "[::1]:2" };
	struct text_stores other;
	struct error err;

	config.keeps_sessions = true;
	config.listen = &one;
	config.listen_count = 1;
	begin_again();
	leave_sessions("of one");
	assert_int_equal(text_stores_init(&other, &config, &(struct handover){ .fds = NULL }, &err),
			 0);
	assert_true(other.items[IPC_TEXT_SESSIONS].has_failed);
	assert_int_equal(count_sessions(&other), 0);
	text_stores_fini(&other);
	begin_again();
	assert_int_equal(count_sessions(&stores), strlen("of one"));
	remove_sessions(&stores);
	config.listen = &two;
	text_stores_renew(&stores, &config);
	leave_sessions("of the other");
	begin_again();
	assert_int_equal(count_sessions(&stores), strlen("of the other"));
	remove_sessions(&stores);
}

/* They stay while they are kept; and then nobody has them, nor hears that they cannot be saved. */
static void sessions_are_kept_as_long_as_is_configured(void **state)
{
	struct config_listen one = { .address = "127.0.0.1:1" };
	struct text_stores other;
	struct error err;
	char name[TEXT_STORE_NAME_BYTES];

	config.keeps_sessions = true;
	config.listen = &one;
	config.listen_count = 1;
	begin_again();
	leave_sessions("of one");
	strcpy(name, stores.items[IPC_TEXT_SESSIONS].name);
	text_stores_renew(&stores, &config);
	assert_int_equal(access(path_of(name), F_OK), 0);
	stores.items[IPC_TEXT_SESSIONS].has_failed = true;
	config.keeps_sessions = false;
	text_stores_renew(&stores, &config);
	assert_int_equal(access(path_of(name), F_OK), -1);
	assert_int_equal(tell(), NOTHING_TOLD);
	text_stores_note(&stores, IPC_TEXT_SESSIONS);
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
	config.keeps_sessions = true;
	assert_int_equal(text_stores_init(&other, &config, &(struct handover){ .fds = NULL }, &err),
			 0);
	assert_false(other.items[IPC_TEXT_SESSIONS].has_failed);
	text_stores_fini(&other);
	snprintf(name + strlen(name), 6, ".lock");
	assert_int_equal(remove(path_of(name)), 0);
}

/* The number in IPC_TEXT is the gateway's, as is that of bytes. */
static void any_number_is_taken(void **state)
{
	text_stores_note(&stores, IPC_TEXT_KINDS);
	text_stores_note(&stores, UINT32_MAX);
	text_stores_note(&stores, IPC_TEXT_SESSIONS); /* not kept */
	assert_int_equal(text_stores_do_due(&stores), UINT64_MAX);
}

/* It is never taken for none: there would be no sessions, and pins at first sight. */
static void what_cannot_be_read_is_no_beginning(void **state)
{
	struct handover from = { .fds = NULL };
	struct text_stores other;
	struct error err;
	int fd = memory_file_shared("pins", 5, &err);

	handover_write(&from, "memory %d %s", handover_give(&from, fd), "pins");
	assert_int_equal(text_stores_init(&other, &config, &from, &err), -1);
	assert_string_equal(err.text,
			    "the program before has left another kind of memory for pins");
	handover_fini(&from);
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
		cmocka_unit_test_setup_teardown(sessions_are_of_an_address, setup, teardown),
		cmocka_unit_test_setup_teardown(sessions_are_kept_as_long_as_is_configured, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_note_is_written_soon, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_handed_over_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(any_number_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_beginning, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_has_no_pins_touches_nothing, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
