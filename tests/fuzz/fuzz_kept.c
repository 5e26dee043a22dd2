/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the lines in which sessions are kept, and of the logs of their streams. The input follows the id and the owner of
 * a session, and is the rest of the text. What must hold: the session is found only if all of its line can be used; what its
 * client gets is within the bounds; when it is written again, and read again, it is the same. The input is also all that
 * follows the name in a log.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "mcp/revision.h"
#include "router/client.h"
#include "router/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slice id = SLICE("ABCDEFGHABCDEFGHABCDEFGHABCDEFGH");
static struct server server = { .conf = { .name = "main" } };
static struct session_set *sessions;
static struct router router;
static struct halves *file;
static struct loop *loop;
static int fd;

static void on_denied(struct deny_watcher *watcher)
{
	CHECK(watcher == NULL); /* nobody denies anything */
}

static const struct deny_watcher_ops watcher_ops = { .on_denied = on_denied };

static void begin(void)
{
	static const struct session_conf conf = {
		.max_sessions = 1,
		.max_age_ms = 1000,
		.idle_ms = 1000,
		.store = { .stream = { .max_bytes = 300,
				       .replay_events = 4,
				       .replay_age_ms = 1000 },
			   .session_bytes = 1000,
			   .total_bytes = 2000 },
	};
	struct error err;

	loop = loop_new(&err);
	CHECK(loop != NULL);
	fd = memfd_create("sessions", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)KEPT_SESSIONS_FILE_BYTES) == 0);
	file = mmap(NULL, KEPT_SESSIONS_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(file != MAP_FAILED);
	sessions = &router.sessions;
	session_set_init(sessions, loop, &conf);
}

static void begin_streams(struct session *session)
{
	replay_store_init(&session->replay_store, &sessions->store, 1);
	stream_init(&session->standalone, loop, &sessions->conf.store.stream,
		    &session->replay_store.budget);
}

static void end_streams(struct session *session)
{
	stream_fini(&session->standalone);
	replay_store_fini(&session->replay_store);
}

static void read_log(struct slice data)
{
	struct session session = { .set = sessions };
	at_end(buf_fini) struct buf text = { 0 };

	buf_append_str(&text, "of n ");
	buf_append_slice(&text, data);
	begin_streams(&session);
	replay_store_read(&session.replay_store, &session.standalone, buf_slice(&text));
	CHECK(session.standalone.taken >= session.standalone.kept_count);
	CHECK(session.standalone.kept_count <= 4 && session.replay_store.finished_count <= 1);
	end_streams(&session);
}

static void end_set(struct kept_sessions *kept)
{
	timer_stop(&kept->saving);
	kept_sessions_fini(kept);
}

/* Reads the text, and the session in it; it goes on, and is written as the next text. Returns whether there was one. */
static bool go_round(struct slice text, struct buf *out)
{
	struct kept_sessions *kept = &router.kept_sessions;
	struct session session = { .set = sessions, .state = SESSION_LIVE };
	struct client client = { .router = &router,
				 .server = &server,
				 .session = &session,
				 .principal = &sessions->principals.anonymous };
	struct kept_state state;
	struct kept_session *one;

	memcpy(halves_begin(file, KEPT_SESSIONS_TEXT_BYTES), text.p, text.n);
	halves_end(file, KEPT_SESSIONS_TEXT_BYTES, text.n);
	begin_streams(&session);
	kept_sessions_init(kept, loop);
	kept_sessions_open(kept, NULL, fd, true, &sessions->conf);
	deny_watcher_init(&session.deny_watcher, &watcher_ops);
	one = kept_sessions_find(kept, id, &sessions->principals.anonymous, &server, &state);
	if (one != NULL) {
		CHECK(state.agreed != NULL && state.params.n > 0);
		text_set_init(&client.subscriptions);
		kept_session_wake(one, &client, id);
		CHECK(client.level >= -1 && client.level < 8);
		CHECK(client.subscriptions.count <= TEXT_SET_MAX);
		client.kept = one;
		kept_session_end(&client.kept, REASON_DRAINING);
		buf_append_slice(out, buf_slice(&one->line));
		session_forget_marks(&session);
		text_set_fini(&client.subscriptions);
	}
	end_streams(&session);
	end_set(kept);
	return one != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct slice first = SLICE(KEPT_SESSIONS_FIRST_LINE);
	struct buf text = { 0 }, again = { 0 }, more = { 0 };

	if (loop == NULL)
		begin();
	read_log(slice_of((const char *)data, size));
	buf_append_slice(&text, first);
	kept_session_name(&text, id, &sessions->principals.anonymous);
	buf_append(&text, data, size);
	buf_append_char(&text, '\n');
	buf_append_slice(&again, first);
	if (go_round(buf_slice(&text), &again)) {
		buf_append_slice(&more, first);
		CHECK(go_round(buf_slice(&again), &more));
		CHECK(slice_is_equal(buf_slice(&again), buf_slice(&more)));
	}
	buf_fini(&text);
	buf_fini(&again);
	buf_fini(&more);
	return 0;
}
