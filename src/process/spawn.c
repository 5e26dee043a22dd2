/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's end of the socket to the keeper. Messages that the socket has no room for wait in a
 * list. Its length is bounded by the number of children, questions and servers, because each has at
 * most a few messages in it.
 */
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "base/buf.h"
#include "base/mem.h"
#include "io/ipc.h"
#include "obs/log.h"

#define MESSAGES_PER_TURN 64

struct unsent {
	struct list link;
	struct ipc_message message;
	int fd; /* sent along with it, or -1 */
};

struct spawner {
	const struct spawner_ops *ops;
	struct loop *loop;
	int fd;
	uint64_t last_id;
	uint64_t last_reload; /* number of the last order */
	struct map by_id;     /* struct spawned */
	struct map questions; /* struct spawner_question */
	struct watch reading;
	struct watch writing;
	struct list unsent;
};

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Takes ownership of fd, unless it is -1. */
static void spawner_send_with(struct spawner *spawner, const struct ipc_message *message, int fd)
{
	struct error err = { ERROR_NONE, "" };
	struct unsent *unsent;

	if (list_is_empty(&spawner->unsent)) {
		int result = ipc_send(spawner->fd, message, &fd, fd >= 0, &err);

		if (result < 0 && err.kind != ERROR_BUSY)
			LOG(IPC_FAILED, LOG_STR("error", err.text));
		if (result == 0 || err.kind != ERROR_BUSY) {
			close_fd(fd);
			return; /* if it failed, the reading side notices and acts on it */
		}
	}
	CHECK(err.kind == ERROR_NONE || err.kind == ERROR_BUSY);
	unsent = mem_alloc(sizeof(*unsent));
	unsent->message = *message;
	unsent->fd = fd;
	list_append(&spawner->unsent, &unsent->link);
	watch_set(&spawner->writing, true);
}

static void spawner_send(struct spawner *spawner, const struct ipc_message *message)
{
	spawner_send_with(spawner, message, -1);
}

static void unsent_free(struct unsent *unsent)
{
	close_fd(unsent->fd);
	list_remove(&unsent->link);
	free(unsent);
}

static void spawner_on_writable(struct watch *watch)
{
	struct spawner *spawner = container_of(watch, struct spawner, writing);
	struct error err = { ERROR_NONE, "" };

	while (!list_is_empty(&spawner->unsent)) {
		struct unsent *unsent = container_of(spawner->unsent.next, struct unsent, link);

		if (ipc_send(spawner->fd, &unsent->message, &unsent->fd, unsent->fd >= 0, &err) <
			    0 &&
		    err.kind == ERROR_BUSY)
			return;
		unsent_free(unsent);
	}
	watch_set(&spawner->writing, false);
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

static void spawner_on_child_message(struct spawner *spawner, const struct ipc_message *message,
				     const int *fds, size_t count)
{
	struct spawned *spawned = map_find(&spawner->by_id, message->child);

	if (spawned != NULL && message->type == IPC_STARTED && count == 3) {
		spawned->ops->on_started(spawned, message->pid, fds);
		return;
	}
	close_all(fds, count);
	if (spawned == NULL)
		return; /* we no longer know it */
	map_remove(&spawner->by_id, spawned->id);
	if (message->type == IPC_STARTED) {
		/* The process is useless without its descriptors: it is to be killed. REL-44 */
		spawner_send(spawner,
			     &(struct ipc_message){ .type = IPC_FORGET, .child = spawned->id });
		spawned->ops->on_failed(spawned, EMFILE);
	} else if (message->type == IPC_FAILED) {
		spawned->ops->on_failed(spawned, message->value);
	} else {
		spawned->ops->on_exited(spawned, message->value);
	}
}

static void spawner_on_judged(struct spawner *spawner, const struct ipc_message *message)
{
	struct spawner_question *question = map_remove(&spawner->questions, message->child);

	if (question != NULL)
		question->on_answer(question, message->value == 1);
}

static void spawner_on_message(struct spawner *spawner, const struct ipc_message *message,
			       const int *fds, size_t count)
{
	if (message->type == IPC_DRAIN) {
		close_all(fds, count);
		spawner->ops->on_drain(spawner);
	} else if (message->type == IPC_CERTIFICATE && count >= 2) {
		spawner->ops->on_certificate(spawner, message->child == 1, message->server,
					     (size_t)message->value, fds, count);
	} else if (message->type == IPC_LISTENER && count <= 1 &&
		   spawner->ops->on_listener != NULL) {
		spawner->ops->on_listener(spawner, message->server, message->value,
					  count == 1 ? fds[0] : -1);
	} else if (message->type == IPC_FETCHER && count == 1 && spawner->ops->on_fetcher != NULL) {
		spawner->ops->on_fetcher(spawner, fds[0]);
	} else if (message->type == IPC_CONFIG && spawner->ops->on_config != NULL) {
		if (count != 2)
			close_all(fds, count); /* we lacked descriptors to receive them all */
		spawner->ops->on_config(spawner, count == 2 ? fds : NULL, message->value == 1);
	} else if (message->type == IPC_RELOADED && count <= 1 &&
		   spawner->ops->on_reloaded != NULL) {
		spawner->ops->on_reloaded(spawner, message->child, message->value == 1,
					  count == 1 ? fds[0] : -1);
	} else if (message->type == IPC_PING) {
		close_all(fds, count);
		spawner_send(spawner, &(struct ipc_message){ .type = IPC_ALIVE });
	} else if (message->type == IPC_CERTIFICATES_END) {
		close_all(fds, count);
		spawner->ops->on_certificates_end(spawner);
	} else if (message->type == IPC_AUDIT) {
		close_all(fds, count);
		if (spawner->ops->on_audit != NULL)
			spawner->ops->on_audit(spawner, message->value);
	} else if (message->type == IPC_JUDGED) {
		close_all(fds, count);
		spawner_on_judged(spawner, message);
	} else if (message->type == IPC_STARTED || message->type == IPC_FAILED ||
		   message->type == IPC_EXITED) {
		spawner_on_child_message(spawner, message, fds, count);
	} else {
		close_all(fds, count); /* it arrived without all of its descriptors. REL-44 */
	}
}

static void spawner_on_readable(struct watch *watch)
{
	struct spawner *spawner = container_of(watch, struct spawner, reading);
	struct error err = { ERROR_NONE, "" };

	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		struct ipc_message message;
		int fds[IPC_FDS_MAX];
		size_t count = 0;
		int n = ipc_recv(spawner->fd, &message, fds, &count, &err);

		if (n == 0)
			return;
		if (n < 0) {
			watch_set(&spawner->reading, false);
			spawner->ops->on_lost(spawner);
			return;
		}
		spawner_on_message(spawner, &message, fds, count);
	}
}

struct spawner *spawner_new(struct loop *loop, int keeper_fd, const struct spawner_ops *ops)
{
	struct spawner *spawner = mem_zalloc(sizeof(*spawner));

	CHECK(keeper_fd >= 0 && ops != NULL);
	spawner->ops = ops;
	spawner->loop = loop;
	spawner->fd = keeper_fd;
	list_init(&spawner->unsent);
	watch_init(&spawner->reading, loop, keeper_fd, WATCH_READ, spawner_on_readable);
	watch_init(&spawner->writing, loop, keeper_fd, WATCH_WRITE, spawner_on_writable);
	watch_set(&spawner->reading, true);
	return spawner;
}

void spawner_free(struct spawner **spawner)
{
	struct spawner *s = *spawner;

	if (s == NULL)
		return;
	watch_set(&s->reading, false);
	watch_set(&s->writing, false);
	while (!list_is_empty(&s->unsent))
		unsent_free(container_of(s->unsent.next, struct unsent, link));
	map_fini(&s->by_id);
	map_fini(&s->questions);
	free(s);
	*spawner = NULL;
}

void spawner_ready(struct spawner *spawner)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_READY });
}

void spawner_stop(struct spawner *spawner)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_STOP });
}

uint64_t spawner_reload(struct spawner *spawner)
{
	spawner_send(spawner,
		     &(struct ipc_message){ .type = IPC_RELOAD, .child = ++spawner->last_reload });
	return spawner->last_reload;
}

void spawner_judge_config(struct spawner *spawner, bool is_used)
{
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_CONFIG_USED, .value = is_used });
}

void spawner_release(struct spawner *spawner, uint32_t server)
{
	CHECK(spawner != NULL);
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_RELEASE, .server = server });
}

void spawner_judge_certificates(struct spawner *spawner, bool is_used)
{
	spawner_send(spawner,
		     &(struct ipc_message){ .type = IPC_CERTIFICATES_USED, .value = is_used });
}

/* Of several unsent messages about one server, only the last one counts. */
void spawner_note_era(struct spawner *spawner, uint32_t server, enum era era, bool is_probed)
{
	struct ipc_message message = {
		.type = IPC_ERA, .server = server, .child = is_probed, .value = (int32_t)era
	};

	LIST_FOREACH(node, &spawner->unsent) {
		struct ipc_message *unsent = &container_of(node, struct unsent, link)->message;

		if (unsent->type == IPC_ERA && unsent->server == server) {
			message.child |= unsent->child;
			*unsent = message;
			return;
		}
	}
	spawner_send(spawner, &message);
}

/* Name and version are cut so that both fit into IPC_FOUND_BYTES. */
void spawner_note_found(struct spawner *spawner, uint32_t server, int tools, struct slice name,
			struct slice version)
{
	const size_t most = IPC_FOUND_BYTES / 2 - 1;
	struct buf text = { 0 };

	buf_append(&text, name.p, name.n < most ? name.n : most);
	buf_append_char(&text, '\0');
	buf_append(&text, version.p, version.n < most ? version.n : most);
	buf_append_char(&text, '\0');
	spawner_send_with(spawner,
			  &(struct ipc_message){
				  .type = IPC_FOUND, .server = server, .value = tools },
			  ipc_open_text(buf_slice(&text)));
	buf_fini(&text);
}

void spawner_note_text(struct spawner *spawner, enum ipc_text kind)
{
	LIST_FOREACH(node, &spawner->unsent) {
		const struct ipc_message *unsent =
			&container_of(node, struct unsent, link)->message;

		if (unsent->type == IPC_TEXT && unsent->server == kind)
			return;
	}
	spawner_send(spawner, &(struct ipc_message){ .type = IPC_TEXT, .server = kind });
}

void spawner_ask(struct spawner *spawner, struct spawner_question *question, int fd)
{
	/* If there is no copy (too many descriptors are open), the answer is no. */
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	CHECK(question->on_answer != NULL && fd >= 0);
	question->id = ++spawner->last_id;
	map_insert(&spawner->questions, question->id, question);
	spawner_send_with(spawner,
			  &(struct ipc_message){ .type = IPC_JUDGE, .child = question->id }, copy);
}

void spawner_drop_question(struct spawner *spawner, struct spawner_question *question)
{
	CHECK(map_remove(&spawner->questions, question->id) == question);
}

void spawned_start(struct spawned *spawned, struct spawner *spawner, uint32_t server, int claims_fd,
		   const struct spawned_ops *ops)
{
	CHECK(ops->on_started != NULL && ops->on_failed != NULL && ops->on_exited != NULL);
	spawned->ops = ops;
	spawned->spawner = spawner;
	spawned->id = ++spawner->last_id;
	map_insert(&spawner->by_id, spawned->id, spawned);
	spawner_send_with(spawner,
			  &(struct ipc_message){
				  .type = IPC_START, .server = server, .child = spawned->id },
			  claims_fd);
}

void spawned_signal(struct spawned *spawned, int number)
{
	CHECK(number == SIGTERM || number == SIGKILL);
	spawner_send(spawned->spawner, &(struct ipc_message){ .type = IPC_SIGNAL,
							      .child = spawned->id,
							      .value = number });
}
