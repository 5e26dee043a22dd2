/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a daemon, in a directory that others may have had their hands in. BACK-ERA-06 */
#include "keeper/era_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "keeper/gateway_entry.h"

#define SERVERS 3 /* two that are not configured, one that is */

static char directory[64];
static char program[96];
static struct server_slot slot[SERVERS_MAX];
static struct server_slots slots = { .slots = slot };
static struct launch launch;
static struct launch_spec specs[SERVERS];
static struct config_server servers[SERVERS];
static char *candidates[] = { program, NULL };
static struct era_store store;
static uint64_t now_ms = 1000000;

static char *path_of(const char *name)
{
	static char paths[2][128];
	static int at;

	at = 1 - at;
	snprintf(paths[at], sizeof(paths[at]), "%s/%s", directory, name);
	return paths[at];
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void pass(uint64_t ms)
{
	clock_freeze(now_ms += ms);
}

static void note(uint32_t server, int era, uint64_t is_probed)
{
	era_store_note(&store, &(struct ipc_message){ .type = IPC_ERA,
						      .era = { server, era, (uint8_t)is_probed } });
}

static struct era_memory handed_over(size_t server)
{
	static const uint32_t numbers[SERVERS] = { 2, 1, 0 };
	struct gateway_server handed[SERVERS];
	struct error err;
	int fd = era_store_hand_over(&store, numbers, SERVERS, &err);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, handed, sizeof(handed), 0), sizeof(handed));
	close(fd);
	for (size_t i = 0; i < SERVERS; i++)
		assert_int_equal(handed[i].number, numbers[i]);
	return handed[SERVERS - 1 - server].era;
}

static void begin_again(void)
{
	era_store_fini(&store);
	era_store_init(&store, &slots, &launch);
}

static bool has_file(void)
{
	return access(path_of("eras"), F_OK) == 0;
}

static int setup(void **state)
{
	static const char *const names[SERVERS] = { "one", "two", "pinned" };

	strcpy(directory, "/tmp/mcpgated-eras-XXXXXX");
	assert_non_null(mkdtemp(directory));
	strcpy(program, path_of("program"));
	write_file(program, "1");
	assert_int_equal(setenv("STATE_DIRECTORY", directory, 1), 0);
	for (size_t i = 0; i < SERVERS; i++) {
		servers[i] = (struct config_server){ .command = program, .conf.name = names[i] };
		specs[i] = (struct launch_spec){ .candidates = candidates, .server = &servers[i] };
		slot[i] = (struct server_slot){ .state = SERVER_SLOT_CURRENT, .is_known = true };
	}
	servers[2].conf.era = ERA_LEGACY;
	slots.table = (struct config){ .servers = servers, .server_count = SERVERS };
	launch = (struct launch){ .specs = specs, .config = &slots.table };
	pass(0);
	era_store_init(&store, &slots, &launch);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "eras",  "eras.new",      "eras.bad", "program",
					     "other", "mcpgated/eras", "mcpgated" };

	era_store_fini(&store);
	chmod(directory, 0700);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		remove(path_of(names[i]));
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

static void verdicts_outlive_the_daemon(void **state)
{
	struct stat status;

	note(0, ERA_MODERN, 1);
	note(1, ERA_LEGACY, 0);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	assert_true(clock_wall_ms() - handed_over(0).probed_at_ms < 60000);
	assert_int_equal(handed_over(1).era, ERA_LEGACY);
	assert_int_equal(handed_over(1).probed_at_ms, 0);
	assert_int_equal(handed_over(2).era, ERA_UNKNOWN);
	assert_int_equal(stat(path_of("eras"), &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	assert_int_equal(access(path_of("eras.new"), F_OK), -1);
}

/* That it is of another era now does not change when it was asked. */
static void contradiction_is_remembered(void **state)
{
	uint64_t probed_at_ms;

	note(0, ERA_MODERN, 1);
	begin_again();
	probed_at_ms = handed_over(0).probed_at_ms;
	note(0, ERA_UNKNOWN, 0);
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	assert_int_equal(handed_over(0).probed_at_ms, probed_at_ms);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	assert_int_equal(handed_over(0).probed_at_ms, probed_at_ms);
}

/* One server's verdict is written, and says nothing of the others. */
static void others_are_left_as_they_are(void **state)
{
	struct slice arg = SLICE_LIT("--two");

	servers[1].args.items = &arg;
	servers[1].args.count = 1;
	note(0, ERA_MODERN, 1);
	note(1, ERA_LEGACY, 0);
	begin_again();
	note(1, ERA_MODERN, 0);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	assert_int_equal(handed_over(1).era, ERA_MODERN);
}

/* What was written is of the program as it was then, however often others are written. */
static void what_was_written_is_of_that_program(void **state)
{
	note(0, ERA_MODERN, 1);
	pass(ERA_STORE_GATHER_MS);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	write_file(program, "22");
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

/* What the file says of a server whose era is configured since is not handed on. */
static void what_is_configured_is_not_remembered(void **state)
{
	note(0, ERA_MODERN, 1);
	begin_again();
	servers[0].conf.era = ERA_LEGACY;
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

static void another_program_is_not_known(void **state)
{
	note(0, ERA_MODERN, 1);
	begin_again();
	write_file(program, "22");
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	assert_int_equal(handed_over(0).probed_at_ms, 0);
}

static void another_script_is_not_known(void **state)
{
	struct slice arg;

	strcpy(program, "/bin/sh");
	servers[0].cwd = directory;
	write_file(path_of("other"), "1");
	arg = SLICE_LIT("other"); /* from where the server's process begins */
	servers[0].args.items = &arg;
	servers[0].args.count = 1;
	note(0, ERA_MODERN, 1);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	write_file(path_of("other"), "22");
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

static void other_arguments_are_not_known(void **state)
{
	struct slice arg = SLICE_LIT("--modern");

	note(0, ERA_MODERN, 1);
	begin_again();
	servers[0].args.items = &arg;
	servers[0].args.count = 1;
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

/* Whatever a gateway says: so often, and no more. */
static void writes_are_few(void **state)
{
	note(0, ERA_MODERN, 1);
	assert_int_equal(era_store_do_due(&store), now_ms + ERA_STORE_GATHER_MS);
	pass(ERA_STORE_GATHER_MS - 1);
	era_store_do_due(&store);
	assert_false(has_file());
	pass(1);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	assert_true(has_file());
	unlink(path_of("eras"));
	for (int i = 0; i < 1000; i++)
		note(0, i % 3, 1);
	assert_int_equal(era_store_do_due(&store), now_ms + ERA_STORE_EACH_MS);
	pass(ERA_STORE_EACH_MS - 1);
	note(0, ERA_LEGACY, 1); /* which puts nothing off */
	era_store_do_due(&store);
	assert_false(has_file());
	pass(1);
	era_store_do_due(&store);
	assert_true(has_file());
}

/* SEC-61 */
static void nonsense_is_ignored(void **state)
{
	note(SERVERS, ERA_MODERN, 1);
	note(UINT32_MAX, ERA_MODERN, 1);
	note(2, ERA_MODERN, 1); /* it is configured */
	note(0, 3, 1);
	note(0, -1, 1);
	note(0, ERA_MODERN, 2);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

/* SEC-61: what a number meant before, it does not mean any more. */
static void what_has_gone_is_not_spoken_of(void **state)
{
	slot[0].state = SERVER_SLOT_RELEASED;
	note(0, ERA_MODERN, 1);
	slot[1] = (struct server_slot){ .state = SERVER_SLOT_FREE };
	servers[1] = (struct config_server){ .enabled = false };
	specs[1] = (struct launch_spec){ .server = &servers[1] };
	note(1, ERA_MODERN, 1);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	era_store_renew(&store);
	assert_int_equal(store.table->count, 0);
}

static void strange_files_are_ignored(void **state)
{
	note(0, ERA_MODERN, 1);
	begin_again();
	assert_int_equal(chmod(path_of("eras"), 0620), 0); /* others may have written it */
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	chmod(path_of("eras"), 0600);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	write_file(path_of("eras"), "mcpgated eras 1\nrubbish\n");
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	assert_int_equal(access(path_of("eras.bad"), F_OK), 0); /* to be looked at */
	assert_int_equal(truncate(path_of("eras"), 100000000), 0);
	begin_again();
	unlink(path_of("eras"));
	assert_int_equal(mkfifo(path_of("eras"), 0600), 0); /* nobody waits for a writer */
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
}

/* What a link names is neither read nor written. */
static void links_are_not_followed(void **state)
{
	struct stat status;

	note(0, ERA_MODERN, 1);
	begin_again();
	assert_int_equal(rename(path_of("eras"), path_of("other")), 0);
	assert_int_equal(symlink("other", path_of("eras")), 0);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_UNKNOWN);
	write_file(path_of("other"), "left alone");
	assert_int_equal(symlink("other", path_of("eras.new")), 0);
	note(0, ERA_LEGACY, 1);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_LEGACY);
	assert_int_equal(lstat(path_of("eras"), &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(stat(path_of("other"), &status), 0);
	assert_int_equal(status.st_size, strlen("left alone"));
}

/* What it cannot write down the daemon knows all the same. */
static void memory_alone_will_do(void **state)
{
	assert_int_equal(chmod(directory, 0720), 0); /* others may write in it */
	note(0, ERA_MODERN, 1);
	pass(ERA_STORE_GATHER_MS);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	assert_false(has_file());
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	assert_int_equal(chmod(directory, 0700), 0);
	assert_int_equal(setenv("STATE_DIRECTORY", "/nowhere/at/all", 1), 0);
	note(0, ERA_LEGACY, 1);
	pass(ERA_STORE_EACH_MS);
	assert_int_equal(era_store_do_due(&store), UINT64_MAX);
	assert_int_equal(handed_over(0).era, ERA_LEGACY);
}

/* In a user's home it is made; not by a link, nor in what others may write. */
static void directory_of_a_user(void **state)
{
	struct stat status;

	unsetenv("STATE_DIRECTORY");
	assert_int_equal(setenv("XDG_STATE_HOME", directory, 1), 0);
	assert_int_equal(symlink(".", path_of("mcpgated")), 0);
	note(0, ERA_MODERN, 1);
	begin_again();
	assert_false(has_file());
	assert_int_equal(unlink(path_of("mcpgated")), 0);
	assert_int_equal(chmod(directory, 0702), 0);
	note(0, ERA_MODERN, 1);
	begin_again();
	assert_int_equal(access(path_of("mcpgated"), F_OK), -1);
	assert_int_equal(chmod(directory, 0700), 0);
	note(0, ERA_MODERN, 1);
	begin_again();
	assert_int_equal(handed_over(0).era, ERA_MODERN);
	assert_int_equal(stat(path_of("mcpgated"), &status), 0);
	assert_int_equal(status.st_mode, S_IFDIR | 0700);
	assert_int_equal(access(path_of("mcpgated/eras"), F_OK), 0);
	unsetenv("XDG_STATE_HOME");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(verdicts_outlive_the_daemon),
		TEST(contradiction_is_remembered),
		TEST(another_program_is_not_known),
		TEST(another_script_is_not_known),
		TEST(other_arguments_are_not_known),
		TEST(writes_are_few),
		TEST(nonsense_is_ignored),
		TEST(what_has_gone_is_not_spoken_of),
		TEST(strange_files_are_ignored),
		TEST(links_are_not_followed),
		TEST(memory_alone_will_do),
		TEST(directory_of_a_user),
		TEST(others_are_left_as_they_are),
		TEST(what_was_written_is_of_that_program),
		TEST(what_is_configured_is_not_remembered),
	};

	umask(022);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
