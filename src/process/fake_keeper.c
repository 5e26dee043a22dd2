/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper in the same thread as the code it serves: nothing here blocks, and all its descriptors
 * are non-blocking.
 */
#include "process/fake_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "io/ipc.h"

#define SETTLE_TURNS 12

static void on_message(struct spawner *spawner, const struct ipc_message *message)
{
	(void)spawner;
	for (size_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
}

static void on_lost(struct spawner *spawner)
{
	(void)spawner;
}

static const struct spawner_ops ops = { .on_message = on_message, .on_lost = on_lost };

void fake_keeper_init(struct fake_keeper *keeper, struct loop *loop)
{
	int fds[2];

	memset(keeper, 0, sizeof(*keeper));
	CHECK(ipc_pair(fds, NULL) == 0);
	keeper->loop = loop;
	keeper->fd = fds[0];
	keeper->gateway_fd = fds[1];
	keeper->spawner = spawner_new(loop, fds[1], &ops);
}

void fake_process_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fake_keeper_fini(struct fake_keeper *keeper)
{
	for (size_t i = 0; i < keeper->count; i++) {
		struct fake_process *process = &keeper->processes[i];

		fake_process_close(&process->in);
		fake_process_close(&process->out);
		fake_process_close(&process->err);
		buf_fini(&process->got);
		buf_fini(&process->line);
	}
	spawner_free(&keeper->spawner);
	close(keeper->fd);
	close(keeper->gateway_fd);
}

static void tell(struct fake_keeper *keeper, const struct ipc_message *message)
{
	CHECK(ipc_send(keeper->fd, message, NULL) == 0);
}

/* fds_r: our ends */
static void make_pipes(struct fake_process *process, int fds_r[3])
{
	int in[2];
	int out[2];
	int err[2];

	CHECK(pipe2(in, O_NONBLOCK | O_CLOEXEC) == 0);
	CHECK(pipe2(out, O_NONBLOCK | O_CLOEXEC) == 0);
	CHECK(pipe2(err, O_NONBLOCK | O_CLOEXEC) == 0);
	process->in = in[0];
	process->out = out[1];
	process->err = err[1];
	process->is_started = true;
	fds_r[0] = in[1];
	fds_r[1] = out[0];
	fds_r[2] = err[0];
}

void fake_keeper_start(struct fake_keeper *keeper, struct fake_process *process)
{
	struct ipc_message message = { .type = IPC_STARTED,
				       .started = { process->id, (int)(1000 + process->id) },
				       .fd_count = 3 };

	make_pipes(process, message.fds);
	tell(keeper, &message);
	for (size_t i = 0; i < message.fd_count; i++)
		close(message.fds[i]);
}

void fake_keeper_offer(struct fake_keeper *keeper, struct slice owner,
		       struct ipc_message *message_r)
{
	struct fake_process *process = &keeper->processes[keeper->count++];

	CHECK(keeper->count < FAKE_PROCESSES_MAX);
	*process = (struct fake_process){ .id = (uint64_t)1 << 62 | keeper->count };
	*message_r =
		(struct ipc_message){ .type = IPC_INHERIT,
				      .inherit = { process->id, 0, (int)(1000 + keeper->count) },
				      .texts = { owner },
				      .fd_count = 3 };
	make_pipes(process, message_r->fds);
}

static void asked_to_start(struct fake_keeper *keeper, const struct ipc_message *message)
{
	struct fake_process *process = &keeper->processes[keeper->count];

	CHECK(keeper->count < FAKE_PROCESSES_MAX);
	if (keeper->refuses != 0) {
		tell(keeper,
		     &(struct ipc_message){ .type = IPC_FAILED,
					    .failed = { message->start.child, keeper->refuses } });
		return;
	}
	keeper->count++;
	*process = (struct fake_process){ .id = message->start.child,
					  .server = message->start.server,
					  .in = -1,
					  .out = -1,
					  .err = -1 };
	if (!keeper->holds)
		fake_keeper_start(keeper, process);
}

void fake_keeper_serve(struct fake_keeper *keeper)
{
	struct ipc_message message;

	while (ipc_recv(keeper->fd, &message, NULL) == 1) {
		for (size_t i = 0; i < message.fd_count; i++)
			close(message.fds[i]);
		keeper->claims_told += message.type == IPC_START && message.texts[0].n > 0;
		if (message.type == IPC_START)
			asked_to_start(keeper, &message);
		for (size_t i = 0; i < keeper->count && message.type == IPC_SIGNAL; i++) {
			struct fake_process *process = &keeper->processes[i];

			if (process->id != message.signal.child)
				continue;
			process->last_signal = message.signal.number;
			process->signals++;
		}
	}
}

void fake_keeper_settle(struct fake_keeper *keeper)
{
	for (int i = 0; i < SETTLE_TURNS; i++) {
		loop_turn(keeper->loop, false);
		fake_keeper_serve(keeper);
	}
}

void fake_process_tell_exit(struct fake_keeper *keeper, struct fake_process *process, int status)
{
	process->is_exited = true;
	tell(keeper,
	     &(struct ipc_message){ .type = IPC_EXITED, .exited = { process->id, status } });
}

void fake_process_exit(struct fake_keeper *keeper, struct fake_process *process, int status)
{
	fake_process_close(&process->out);
	fake_process_close(&process->err);
	fake_process_close(&process->in);
	fake_process_tell_exit(keeper, process, status);
}

static void write_all(int fd, const char *text)
{
	size_t size = strlen(text);

	CHECK(write(fd, text, size) == (ssize_t)size);
}

void fake_process_write(struct fake_process *process, const char *text)
{
	write_all(process->out, text);
}

void fake_process_write_err(struct fake_process *process, const char *text)
{
	write_all(process->err, text);
}

static void fill(struct fake_process *process)
{
	while (process->in >= 0 && !process->is_eof) {
		char *into = buf_reserve(&process->got, 65536);
		ssize_t n = read(process->in, into, 65536);

		if (n == 0)
			process->is_eof = true;
		if (n <= 0)
			return;
		process->got.len += (size_t)n;
	}
}

const char *fake_process_read(struct fake_process *process)
{
	const char *begin;
	const char *stop;

	fill(process);
	if (process->got.len == process->used)
		return NULL;
	begin = process->got.data + process->used;
	stop = memchr(begin, '\n', process->got.len - process->used);
	if (stop == NULL)
		return NULL;
	process->line.len = 0;
	buf_append_slice(&process->line, slice_between(begin, stop));
	process->used += process->line.len + 1;
	return buf_terminate(&process->line);
}
