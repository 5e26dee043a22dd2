/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for room in the socket is bounded by the number of children, questions and servers, because each has at
 * most a few messages there.
 */
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "io/ipc_channel.h"
#include "obs/log.h"

/* Beyond, a server gets no claims, and the keeper refuses to start it. */
#define CLAIMS_BYTES_MAX IPC_TEXT_BYTES_MAX
#define FOUND_BYTES 511 /* of a name or a version */

struct spawner {
	const struct spawner_ops *ops;
	struct ipc_channel channel;
	uint32_t last_number;           /* without pipe_states */
	uint64_t last_reload;           /* number of the last order */
	struct map by_id;               /* struct spawned */
	struct map questions;           /* struct spawner_question */
	struct pipe_state *pipe_states; /* PIPE_STATES; NULL: not shared */
	struct pipe_state no_state;
};

static void spawner_send(struct spawner *spawner, const struct ipc_message *message)
{
	ipc_channel_send(&spawner->channel, message);
}

void spawner_forget(struct spawner *spawner, uint64_t number)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_FORGET, .forget = { number } });
}

static void spawner_on_started(struct spawner *spawner, const struct ipc_message *message)
{
	uint64_t id = message->started.child;
	struct spawned *spawned = map_find(&spawner->by_id, id);

	if (spawned != NULL && message->fd_count > 0) {
		spawned->ops->on_started(spawned, message->started.pid, message->fds);
		return;
	}
	for (size_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]); /* we no longer know it */
	if (spawned == NULL)
		return;
	/* The process is useless without its descriptors: it is to be killed. REL-44 */
	map_remove(&spawner->by_id, id);
	spawner_forget(spawner, id);
	spawned->ops->on_failed(spawned, EMFILE);
}

static void spawner_on_failed(struct spawner *spawner, uint64_t id, int error)
{
	struct spawned *spawned = map_remove(&spawner->by_id, id);

	if (spawned != NULL)
		spawned->ops->on_failed(spawned, error);
}

static void spawner_on_exited(struct spawner *spawner, uint64_t id, int status)
{
	struct spawned *spawned = map_remove(&spawner->by_id, id);

	if (spawned != NULL)
		spawned->ops->on_exited(spawned, status);
}

static void spawner_on_judged(struct spawner *spawner, uint64_t id, bool is_allowed)
{
	struct spawner_question *question = map_remove(&spawner->questions, id);

	if (question != NULL)
		question->on_answer(question, is_allowed);
}

static void spawner_on_message(struct ipc_channel *channel, const struct ipc_message *message)
{
	struct spawner *spawner = container_of(channel, struct spawner, channel);

	if (message->type == IPC_STARTED)
		spawner_on_started(spawner, message);
	else if (message->type == IPC_FAILED)
		spawner_on_failed(spawner, message->failed.child, message->failed.error);
	else if (message->type == IPC_EXITED)
		spawner_on_exited(spawner, message->exited.child, message->exited.status);
	else if (message->type == IPC_JUDGED)
		spawner_on_judged(spawner, message->judged.question,
				  message->judged.is_allowed == 1);
	else if (message->type == IPC_PING)
		spawner_send(spawner, &(struct ipc_message){ .type = IPC_ALIVE });
	else
		spawner->ops->on_message(spawner, message);
}

static void spawner_on_end(struct ipc_channel *channel)
{
	struct spawner *spawner = container_of(channel, struct spawner, channel);

	spawner->ops->on_lost(spawner);
}

static void spawner_on_unsent(not_used struct ipc_channel *channel, const struct error *err)
{
	LOG(IPC_FAILED, LOG_STR("error", err->text));
}

static const struct ipc_channel_ops channel_ops = {
	.on_message = spawner_on_message,
	.on_end = spawner_on_end,
	.on_unsent = spawner_on_unsent,
};

struct spawner *spawner_new(struct loop *loop, int keeper_fd, const struct spawner_ops *ops)
{
	struct spawner *spawner = mem_zalloc(sizeof(*spawner));

	CHECK(keeper_fd >= 0 && ops != NULL);
	spawner->ops = ops;
	ipc_channel_init(&spawner->channel, loop, &channel_ops);
	spawner->channel.takes_fds = true;
	ipc_channel_open(&spawner->channel, keeper_fd);
	return spawner;
}

void spawner_free(struct spawner **spawner)
{
	struct spawner *s = *spawner;

	if (s == NULL)
		return;
	ipc_channel_leave(&s->channel);
	map_fini(&s->by_id);
	map_fini(&s->questions);
	if (s->pipe_states != NULL)
		munmap(s->pipe_states, PIPE_STATES_BYTES);
	free(s);
	*spawner = NULL;
}

bool spawner_use_pipe_states(struct spawner *spawner, int fd)
{
	void *states = mmap(NULL, PIPE_STATES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(spawner->pipe_states == NULL && spawner->last_number == 0);
	if (states == MAP_FAILED)
		return false;
	spawner->pipe_states = states;
	return true;
}

struct pipe_state *spawner_pipe_state(struct spawner *spawner, int pid)
{
	if (spawner->pipe_states == NULL || pid <= 0 || pid >= PIPE_STATES)
		return &spawner->no_state;
	return &spawner->pipe_states[pid];
}

void spawner_ready(struct spawner *spawner)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_READY });
}

void spawner_stop(struct spawner *spawner)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_STOP });
}

uint64_t spawner_reload(struct spawner *spawner, bool is_upgrade)
{
	spawner_send(spawner,
		     &(struct ipc_message){ .type = IPC_RELOAD,
					    .reload = { ++spawner->last_reload, is_upgrade } });
	return spawner->last_reload;
}

void spawner_judge_config(struct spawner *spawner, bool is_used)
{
	spawner_send(spawner,
		     &(struct ipc_message){ .type = IPC_CONFIG_USED, .config_used = { is_used } });
}

void spawner_release(struct spawner *spawner, uint32_t server)
{
	CHECK(spawner != NULL);
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_RELEASE, .release = { server } });
}

void spawner_judge_certificates(struct spawner *spawner, bool is_used)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_CERTIFICATES_USED,
						     .certificates_used = { is_used } });
}

static struct slice cut(struct slice text)
{
	return text.n <= FOUND_BYTES ? text : slice_of(text.p, FOUND_BYTES);
}

void spawner_note_found(struct spawner *spawner, uint32_t server, int tools, struct slice name,
			struct slice version)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_FOUND,
						     .found = { server, tools },
						     .texts = { cut(name), cut(version) } });
}

void spawner_note_text(struct spawner *spawner, enum ipc_text kind)
{
	LIST_EACH(struct ipc_unsent, ipc_unsent, &spawner->channel.unsent, link) {
		const struct ipc_message *unsent = &ipc_unsent->message;

		if (unsent->type == IPC_TEXT && unsent->text.kind == kind)
			return;
	}
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_TEXT, .text = { kind } });
}

bool spawner_knows(const struct spawner *spawner, uint64_t number)
{
	return map_find(&spawner->by_id, number) != NULL ||
	       map_find(&spawner->questions, number) != NULL;
}

/* For a process or a question. */
static uint64_t next_number(struct spawner *spawner)
{
	uint32_t *last = spawner->pipe_states != NULL ? &spawner->pipe_states[0].last_id :
							&spawner->last_number;

	/* A gateway that was taken over may have left any number. */
	do
		++*last;
	while (*last == 0 || spawner_knows(spawner, *last));
	return *last;
}

void spawner_ask(struct spawner *spawner, struct spawner_question *question, int fd)
{
	/* If there is no copy (too many descriptors are open), the answer is no. */
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	CHECK(question->on_answer != NULL && fd >= 0);
	question->id = next_number(spawner);
	map_insert(&spawner->questions, question->id, question);
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_JUDGE,
						     .judge = { question->id },
						     .fds = { copy },
						     .fd_count = copy >= 0 });
}

void spawner_drop_question(struct spawner *spawner, struct spawner_question *question)
{
	CHECK(map_remove(&spawner->questions, question->id) == question);
}

void spawned_inherit(struct spawned *spawned, struct spawner *spawner, uint64_t number,
		     const struct spawned_ops *ops)
{
	CHECK(ops->on_started != NULL && ops->on_failed != NULL && ops->on_exited != NULL);
	spawned->ops = ops;
	spawned->spawner = spawner;
	spawned->id = number;
	map_insert(&spawner->by_id, number, spawned);
}

void spawned_start(struct spawned *spawned, struct spawner *spawner, uint32_t server,
		   struct slice claims, const struct spawned_ops *ops)
{
	spawned_inherit(spawned, spawner, next_number(spawner), ops);
	if (claims.n > CLAIMS_BYTES_MAX)
		claims.n = 0;
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_START,
						     .start = { spawned->id, server },
						     .texts = { claims } });
}

void spawned_signal(struct spawned *spawned, int number)
{
	CHECK(number == SIGTERM || number == SIGKILL);
	spawner_send(spawned->spawner, &(struct ipc_message){ .type = IPC_SIGNAL,
							      .signal = { spawned->id, number } });
}

void spawned_close(struct spawned *spawned)
{
	spawner_send(spawned->spawner,
		     &(struct ipc_message){ .type = IPC_CLOSE, .close = { spawned->id } });
}

void spawned_note_owner(struct spawned *spawned, struct slice owner)
{
	CHECK(owner.n <= IPC_OWNER_BYTES);
	spawner_send(spawned->spawner, &(struct ipc_message){ .type = IPC_OWNER,
							      .owner = { spawned->id },
							      .texts = { owner } });
}
