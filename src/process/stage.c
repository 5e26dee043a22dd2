/* SPDX-License-Identifier: Apache-2.0 */
/* One stage for the whole test program; see stage.h. */
#include "process/stage.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "obs/log.h"

struct loop *loop;
struct fake_keeper keeper;
struct server servers[2];
struct fleet fleet;
uint64_t now_ms;

static int log_fd;

void stage_open(void)
{
	static const struct server_conf conf = {
		.name = "test",
		.era = ERA_LEGACY,
		.fleet = &fleet,
		.pool_max = 4,
		.line_max = 1 << 20,
		.queue_max = 1 << 20,
		.start_timeout_ms = 20000,
		.backoff_min_ms = 1000,
		.backoff_max_ms = 8000,
		.give_up_after = 3,
		.stop_grace_ms = 5000,
		.stop_term_ms = 3000,
		.stall_ms = 30000,
		.request_timeout_ms = 120000,
		.request_timeout_max_ms = 600000,
	};

	signal(SIGPIPE, SIG_IGN);
	now_ms = 1000000;
	clock_freeze(now_ms);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	loop = loop_new(NULL);
	fake_keeper_init(&keeper, loop);
	fleet = (struct fleet){ .max = SIZE_MAX };
	for (size_t i = 0; i < ARRAY_LEN(servers); i++)
		server_init(&servers[i], loop, keeper.spawner, &conf);
}

void stage_end_processes(void)
{
	settle();
	for (size_t i = 0; i < keeper.count; i++) {
		if (!process(i)->is_started)
			fake_keeper_start(&keeper, process(i));
		if (!process(i)->is_exited)
			fake_process_exit(&keeper, process(i), 0);
	}
	settle();
}

int stage_close(void **state)
{
	stage_end_processes();
	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		assert_int_equal(servers[i].count + servers[i].reserved, 0);
		server_fini(&servers[i]);
	}
	assert_int_equal(fleet.count, 0);
	fake_keeper_fini(&keeper);
	loop_free(&loop);
	close(log_fd);
	return 0;
}

void settle(void)
{
	fake_keeper_settle(&keeper);
}

void pass(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
	settle();
}

const char *q(const char *text)
{
	static char texts[8][80000];
	static unsigned int next;
	char *to = texts[next++ % 8];

	assert_true(strlen(text) < sizeof(texts[0]));
	strcpy(to, text);
	for (char *at = to; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	return to;
}

unsigned int count_logged(const char *text)
{
	static char log[1 << 20];
	ssize_t n = pread(log_fd, log, sizeof(log) - 1, 0);
	unsigned int count = 0;

	assert_in_range(n, 0, sizeof(log) - 2);
	log[n] = '\0';
	for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

bool is_logged(const char *text)
{
	return count_logged(text) > 0;
}

struct fake_process *process(size_t i)
{
	assert_true(i < keeper.count);
	return &keeper.processes[i];
}

void says(struct fake_process *p, const char *text)
{
	fake_process_write(p, q(text));
	fake_process_write(p, "\n");
	settle();
}

void hears(struct fake_process *p, const char *text)
{
	const char *line = fake_process_read(p);

	if (line == NULL)
		fail_msg("nothing came instead of %s", text);
	assert_string_equal(line, q(text));
}

void hears_nothing(struct fake_process *p)
{
	const char *line = fake_process_read(p);

	if (line != NULL)
		fail_msg("nothing was to come, but %s", line);
}

void exits(struct fake_process *p, int status)
{
	fake_process_exit(&keeper, p, status);
	settle();
}
