/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about connections to the admin socket; the test is the keeper. Processes: child_test. */
#include "process/spawn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "io/ipc.h"
#include "process/fake_keeper.h"

struct asked {
	struct spawner_question question;
	unsigned int answers;
	bool is_allowed;
};

static struct loop *loop;
static struct fake_keeper keeper;

static void on_answer(struct spawner_question *question, bool is_allowed)
{
	struct asked *asked = container_of(question, struct asked, question);

	asked->answers++;
	asked->is_allowed = is_allowed;
}

static int setup(void **state)
{
	struct error err;

	(void)state;
	loop = loop_new(&err);
	assert_non_null(loop);
	fake_keeper_init(&keeper, loop);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_keeper_fini(&keeper);
	loop_free(&loop);
	return 0;
}

/* Asks about one end of a pair; returns the keeper's descriptor, with the number of the question in *id_r. */
static int ask(struct asked *asked, uint64_t *id_r)
{
	struct ipc_message message;
	struct error err;
	int pair[2];

	*asked = (struct asked){ .question.on_answer = on_answer };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	spawner_ask(keeper.spawner, &asked->question, pair[0]);
	assert_int_equal(ipc_recv(keeper.fd, &message, &err), 1);
	assert_int_equal(message.type, IPC_JUDGE);
	assert_int_equal(message.fd_count, 1);
	/* What came is that connection, and it stays the owner's. */
	assert_int_equal(write(pair[0], "x", 1), 1);
	assert_int_equal(write(message.fds[0], "y", 1), 1);
	close(pair[0]);
	close(pair[1]);
	*id_r = message.judge.question;
	return message.fds[0];
}

static void answer(uint64_t id, int value)
{
	struct ipc_message message = { .type = IPC_JUDGED, .judged = { id, (uint8_t)value } };
	struct error err;

	assert_int_equal(ipc_send(keeper.fd, &message, &err), 0);
	fake_keeper_settle(&keeper);
}

static void answers_come_to_their_questions(void **state)
{
	struct asked one, other;
	uint64_t id, other_id;

	(void)state;
	close(ask(&one, &id));
	close(ask(&other, &other_id));
	assert_int_not_equal(id, other_id);
	answer(other_id, 1);
	assert_int_equal(one.answers, 0);
	assert_int_equal(other.answers, 1);
	assert_true(other.is_allowed);
	answer(id, 0);
	assert_int_equal(one.answers, 1);
	assert_false(one.is_allowed);
	answer(id, 1);
	answer(12345, 1);
	assert_int_equal(one.answers + other.answers, 2);
}

static void nobody_waits_for_an_answer_any_more(void **state)
{
	struct asked asked;
	uint64_t id;

	(void)state;
	close(ask(&asked, &id));
	spawner_drop_question(keeper.spawner, &asked.question);
	answer(id, 1);
	assert_int_equal(asked.answers, 0);
}

/* REL-32: a process that was forgotten while it started has its pipes closed, and nobody is told of it. */
static void pipes_of_a_forgotten_child_are_closed(void **state)
{
	struct ipc_message message = { .type = IPC_STARTED,
				       .started = { 12345, 1 },
				       .fd_count = 3 };
	int readers[3];
	struct error err;
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++) {
		int pair[2];

		assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
		readers[i] = pair[0];
		message.fds[i] = pair[1];
	}
	assert_int_equal(ipc_send(keeper.fd, &message, &err), 0);
	for (int i = 0; i < 3; i++)
		close(message.fds[i]);
	fake_keeper_settle(&keeper);
	for (int i = 0; i < 3; i++) {
		struct pollfd p = { .fd = readers[i], .events = POLLIN };

		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(read(readers[i], &byte, 1), 0);
		close(readers[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static unsigned int heard;

static void on_started(struct spawned *spawned, int pid, const int fds[3])
{
	(void)spawned;
	(void)pid;
	(void)fds;
	heard++;
}

static void on_end(struct spawned *spawned, int value)
{
	(void)spawned;
	(void)value;
	heard++;
}

/* REL-44: what comes without its descriptors, as there is no room for them here, is no word about the process of its number. */
static void messages_without_descriptors_end_no_process(void **state)
{
	static const enum ipc_type types[] = { IPC_CERTIFICATE, IPC_LISTENER, IPC_RELOADED,
					       IPC_HELPER };
	static const struct spawned_ops ops = { on_started, on_end, on_end };
	struct ipc_message asked;
	struct spawned spawned;
	struct error err;

	(void)state;
	spawned_start(&spawned, keeper.spawner, 0, slice_of(NULL, 0), &ops);
	assert_int_equal(ipc_recv(keeper.fd, &asked, &err), 1);
	assert_int_equal(asked.type, IPC_START);
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const struct ipc_message message = { .type = types[i], .exited.child = spawned.id };

		assert_int_equal(ipc_send(keeper.fd, &message, &err), 0);
		fake_keeper_settle(&keeper);
		assert_int_equal(heard, 0);
	}
	assert_int_equal(ipc_send(keeper.fd,
				  &(struct ipc_message){ .type = IPC_EXITED,
							 .exited.child = spawned.id },
				  &err),
			 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(heard, 1);
}

/* The next gateway shares the memory: what one has called a process is no other's name. */
static void numbers_go_on_in_the_next_gateway(void **state)
{
	int fd = memfd_create("pipes", MFD_CLOEXEC);
	struct asked asked;
	uint64_t id;

	(void)state;
	assert_int_equal(ftruncate(fd, PIPE_STATES_BYTES), 0);
	for (uint64_t i = 1; i <= 2; i++) {
		assert_true(spawner_use_pipe_states(keeper.spawner, fd));
		close(ask(&asked, &id));
		assert_int_equal(id, i);
		spawner_drop_question(keeper.spawner, &asked.question);
		fake_keeper_fini(&keeper);
		fake_keeper_init(&keeper, loop);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_come_to_their_questions),
		TEST(nobody_waits_for_an_answer_any_more),
		TEST(pipes_of_a_forgotten_child_are_closed),
		TEST(messages_without_descriptors_end_no_process),
		TEST(numbers_go_on_in_the_next_gateway),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
