/* SPDX-License-Identifier: Apache-2.0 */
/* poll(2) over what is open. What the server asks is refused, so that it does not wait. */
#include "ctl/probe.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "mcp/error.h"

#define READ_BYTES (64 * 1024)
#define OUT_BYTES_MAX (64u * 1024 * 1024)
#define GARBAGE_SHOWN 200
#define STEP_MS 50 /* how often its end is looked for */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Appends what can be read; at the end of the stream it is closed. */
static void take(int *fd, struct buf *out)
{
	ssize_t n = read(*fd, buf_reserve(out, READ_BYTES), READ_BYTES);

	if (n > 0)
		out->len += (size_t)n;
	else if (n == 0)
		close_fd(fd);
}

static void take_stderr(struct probe *probe)
{
	take(&probe->process.fds[2], &probe->err);
	if (probe->err.len > PROBE_STDERR_BYTES)
		buf_consume(&probe->err, probe->err.len - PROBE_STDERR_BYTES);
}

/* Waits for something on the outputs, at most so long, and looks whether the process has ended. */
static void probe_wait(struct probe *probe, uint64_t wait_ms)
{
	int *fds = probe->process.fds;
	struct pollfd polls[] = { { .fd = fds[1], .events = POLLIN },
				  { .fd = fds[2], .events = POLLIN } };
	siginfo_t info = { .si_pid = 0 };
	pid_t pid = probe->process.pid;

	if (poll(polls, 2, wait_ms < STEP_MS ? (int)wait_ms : STEP_MS) > 0) {
		if (polls[0].revents != 0)
			take(&fds[1], &probe->out);
		if (polls[1].revents != 0)
			take_stderr(probe);
	}
	if (probe->out.len > OUT_BYTES_MAX)
		close_fd(&fds[1]);
	probe->is_closed = fds[1] < 0;
	if (!probe->is_ended && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid != 0) {
		CHECK(pid > 0);
		/* Its group with it: until the process is reaped, the group's number is not used again. */
		kill(-pid, SIGKILL);
		waitpid(pid, &probe->status, 0);
		probe->is_ended = true;
	}
	clock_update();
}

/* Takes message. What does not fit into the pipe is lost; then no answer comes either. */
static void probe_send(struct probe *probe, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t size;

	CHECK(text != NULL);
	size = strlen(text);
	text[size] = '\n';
	if (probe->process.fds[0] >= 0 && write(probe->process.fds[0], text, size + 1) < 0)
		close_fd(&probe->process.fds[0]);
	free(text);
	json_decref(message);
}

/*
 * Whether it is the response to our last request; a request is refused. A number may come back as a text.
 * BACK-FRAME-05
 */
static bool take_message(struct probe *probe, const json_t *message)
{
	json_t *id = json_object_get(message, "id");
	const char *text = json_string_value(id);
	const char *method = json_string_value(json_object_get(message, "method"));

	CHECK(json_is_object(message));
	if (method == NULL)
		return (text != NULL ? atof(text) : json_number_value(id)) == probe->last_id;
	if (id != NULL && strcmp(method, "ping") == 0)
		probe_send(probe,
			   json_pack("{s:s, s:O, s:{}}", "jsonrpc", "2.0", "id", id, "result"));
	else if (id != NULL)
		probe_send(probe, json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id,
					    "error", "code", MCP_METHOD_NOT_FOUND, "message",
					    "Method not found"));
	return false;
}

/* Integers of more than 64 bits are good JSON, and nothing is done with them here. */
static json_t *load(struct slice text)
{
	json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);

	return value != NULL ?
		       value :
		       json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* As the daemon reads it: a banner without a line end may stand before a message. BACK-FRAME-04 */
static json_t *read_line(struct probe *probe, struct slice line)
{
	json_t *value = load(line);
	const char *at = line.n > 0 ? memmem(line.p, line.n, "{\"jsonrpc\"", 10) : NULL;

	if (!json_is_object(value) && !json_is_array(value) && slice_trim(line).n > 0 &&
	    probe->garbage++ == 0) {
		CHECK(probe->first_garbage == NULL);
		probe->first_garbage =
			mem_printf("%.*s", line.n < GARBAGE_SHOWN ? (int)line.n : GARBAGE_SHOWN,
				   line.p);
	}
	if (value == NULL && at != NULL)
		value = load(slice_between(at, line.p + line.n));
	return value;
}

/* The response to our last request, if it is in this line. */
static json_t *take_line(struct probe *probe, struct slice line)
{
	json_t *value = read_line(probe, line);
	json_t *answer = NULL;
	json_t *message;
	size_t i;

	if (json_is_object(value) && take_message(probe, value))
		answer = json_incref(value);
	json_array_foreach(value, i, message)
	{
		if (answer == NULL && json_is_object(message) && take_message(probe, message))
			answer = json_incref(message);
	}
	json_decref(value);
	return answer;
}

json_t *probe_ask(struct probe *probe, const char *method, json_t *params, uint64_t timeout_ms)
{
	uint64_t end_ms = clock_now_ms() + timeout_ms;
	struct buf *out = &probe->out;
	json_t *answer = NULL;
	const char *end;

	CHECK(probe->verdict.error == 0);
	probe_send(probe, json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
				    ++probe->last_id, "method", method, "params", params));
	while (answer == NULL && !probe->is_closed && clock_now_ms() < end_ms) {
		probe_wait(probe, end_ms - clock_now_ms());
		while (answer == NULL && out->len > 0 &&
		       (end = memchr(out->data, '\n', out->len)) != NULL) {
			answer = take_line(probe, slice_between(out->data, end));
			buf_consume(out, (size_t)(end - out->data) + 1);
		}
	}
	return answer;
}

void probe_notify(struct probe *probe, const char *method)
{
	probe_send(probe, json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method));
}

int probe_start(struct probe *probe, const struct launch *launch, const struct launch_spec *spec,
		const struct reaper *reaper)
{
	struct pollfd p = { .events = POLLIN };

	*probe = (struct probe){ .process = { .fds = { -1, -1, -1 }, .verdict_fd = -1 } };
	if (launch_start(launch, spec, reaper, -1, &probe->process, &probe->verdict.error) < 0) {
		probe->verdict.step = LAUNCH_SETUP;
		probe->is_ended = true;
		return -1;
	}
	/* The verdict comes before anything else, and soon: exec has succeeded, or has not. */
	p.fd = probe->process.verdict_fd;
	poll(&p, 1, -1);
	if (read(p.fd, &probe->verdict, sizeof(probe->verdict)) != (ssize_t)sizeof(probe->verdict))
		probe->verdict.error = 0;
	close_fd(&probe->process.verdict_fd);
	CHECK(probe->process.pid > 0);
	return probe->verdict.error == 0 ? 0 : -1;
}

bool probe_has_ended_within(struct probe *probe, uint64_t time_ms)
{
	uint64_t end_ms = clock_now_ms() + time_ms;

	while (!probe->is_ended && clock_now_ms() < end_ms)
		probe_wait(probe, end_ms - clock_now_ms());
	return probe->is_ended;
}

int probe_stop(struct probe *probe, uint64_t grace_ms, uint64_t term_ms)
{
	int needed = 0;

	CHECK(probe->process.pid > 0);
	close_fd(&probe->process.fds[0]);
	if (!probe_has_ended_within(probe, grace_ms)) {
		needed = SIGTERM;
		kill(-probe->process.pid, SIGTERM);
	}
	if (!probe_has_ended_within(probe, term_ms)) {
		needed = SIGKILL;
		kill(-probe->process.pid, SIGKILL);
		probe_has_ended_within(probe, UINT32_MAX);
	}
	/* The rest of its stderr. */
	while (probe->process.fds[2] >= 0) {
		size_t before = probe->err.len;

		take_stderr(probe);
		if (probe->err.len == before)
			break;
	}
	return needed;
}

void probe_fini(struct probe *probe)
{
	for (int i = 0; i < 3; i++)
		close_fd(&probe->process.fds[i]);
	close_fd(&probe->process.verdict_fd);
	if (!probe->is_ended) {
		CHECK(probe->process.pid > 0);
		kill(-probe->process.pid, SIGKILL);
		waitpid(probe->process.pid, NULL, 0);
	}
	buf_fini(&probe->out);
	buf_fini(&probe->err);
	free(probe->first_garbage);
}
