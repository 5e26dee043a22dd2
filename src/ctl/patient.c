/* SPDX-License-Identifier: Apache-2.0 */
/* poll(2) over what is open. What the server asks is refused, so that it does not wait. */
#include "ctl/patient.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

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

static void take_stderr(struct patient *patient)
{
	ssize_t n =
		read(patient->process.fds[2], buf_reserve(&patient->err, READ_BYTES), READ_BYTES);

	if (n > 0)
		patient->err.len += (size_t)n;
	else if (n == 0)
		close_fd(&patient->process.fds[2]);
	if (patient->err.len > PATIENT_STDERR_BYTES)
		buf_consume(&patient->err, patient->err.len - PATIENT_STDERR_BYTES);
}

static void take_stdout(struct patient *patient)
{
	ssize_t n =
		read(patient->process.fds[1], buf_reserve(&patient->out, READ_BYTES), READ_BYTES);

	if (n > 0)
		patient->out.len += (size_t)n;
	if (n == 0 || patient->out.len > OUT_BYTES_MAX) {
		close_fd(&patient->process.fds[1]);
		patient->is_closed = true;
	}
}

/* What it has left behind goes with it: until it is reaped the number of its group cannot mean anything else. */
static void look_for_end(struct patient *patient)
{
	siginfo_t info = { .si_pid = 0 };

	if (patient->is_ended ||
	    waitid(P_PID, (id_t)patient->process.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    info.si_pid == 0)
		return;
	kill(-patient->process.pid, SIGKILL);
	waitpid(patient->process.pid, &patient->status, 0);
	patient->is_ended = true;
}

/* Waits for something on the outputs, at most so long. */
static void patient_wait(struct patient *patient, uint64_t wait_ms)
{
	struct pollfd polls[] = { { .fd = patient->process.fds[1], .events = POLLIN },
				  { .fd = patient->process.fds[2], .events = POLLIN } };

	if (poll(polls, 2, wait_ms < STEP_MS ? (int)wait_ms : STEP_MS) > 0) {
		if (polls[0].revents != 0)
			take_stdout(patient);
		if (polls[1].revents != 0)
			take_stderr(patient);
	}
	look_for_end(patient);
	clock_update();
}

/* Takes message. What does not fit into the pipe is lost; then no answer comes either. */
static void patient_send(struct patient *patient, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t size = strlen(text);

	text[size] = '\n';
	if (patient->process.fds[0] >= 0 && write(patient->process.fds[0], text, size + 1) < 0)
		close_fd(&patient->process.fds[0]);
	free(text);
	json_decref(message);
}

static void refuse_request(struct patient *patient, const json_t *request)
{
	json_t *id = json_object_get(request, "id");
	bool is_ping = strcmp(json_string_value(json_object_get(request, "method")), "ping") == 0;

	if (is_ping)
		patient_send(patient,
			     json_pack("{s:s, s:O, s:{}}", "jsonrpc", "2.0", "id", id, "result"));
	else
		patient_send(patient,
			     json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id,
				       "error", "code", -32601, "message", "Method not found"));
}

static void note_garbage(struct patient *patient, struct slice line)
{
	if (slice_trim(line).n == 0 || patient->garbage++ > 0)
		return;
	if (line.n > GARBAGE_SHOWN)
		line.n = GARBAGE_SHOWN;
	patient->first_garbage = mem_printf("%.*s", SLICE_ARG(line));
}

/* A number that came back as a text is one to the daemon as well. BACK-FRAME-05 */
static bool is_last_id(const struct patient *patient, const json_t *id)
{
	const char *text = json_string_value(id);

	return (text != NULL ? atof(text) : json_number_value(id)) == patient->last_id;
}

/* Whether it is the response to our last request. */
static bool take_message(struct patient *patient, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");

	if (!json_is_string(json_object_get(message, "method")))
		return is_last_id(patient, id);
	if (id != NULL)
		refuse_request(patient, message);
	return false;
}

/* Integers of more than 64 bits are good JSON, and nothing is done with them here. */
static json_t *load(struct slice text)
{
	json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);

	if (value != NULL)
		return value;
	return json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* As the daemon reads it: a banner without a line end may stand before a message. BACK-FRAME-04 */
static json_t *read_line(struct patient *patient, struct slice line)
{
	json_t *value = load(line);
	const char *at = line.n > 0 ? memmem(line.p, line.n, "{\"jsonrpc\"", 10) : NULL;

	if (!json_is_object(value) && !json_is_array(value))
		note_garbage(patient, line);
	if (value == NULL && at != NULL)
		value = load(slice_between(at, line.p + line.n));
	return value;
}

/* The response to our last request, if it is in this line. */
static json_t *take_line(struct patient *patient, struct slice line)
{
	json_t *value = read_line(patient, line);
	json_t *answer = NULL;
	json_t *message;
	size_t i;

	if (json_is_object(value) && take_message(patient, value))
		answer = json_incref(value);
	json_array_foreach(value, i, message)
	{
		if (answer == NULL && json_is_object(message) && take_message(patient, message))
			answer = json_incref(message);
	}
	json_decref(value);
	return answer;
}

static json_t *take_lines(struct patient *patient)
{
	json_t *answer = NULL;
	const char *end;

	while (answer == NULL && patient->out.len > 0 &&
	       (end = memchr(patient->out.data, '\n', patient->out.len)) != NULL) {
		answer = take_line(patient, slice_between(patient->out.data, end));
		buf_consume(&patient->out, (size_t)(end - patient->out.data) + 1);
	}
	return answer;
}

json_t *patient_ask(struct patient *patient, const char *method, json_t *params,
		    uint64_t timeout_ms)
{
	uint64_t end_ms = clock_now_ms() + timeout_ms;
	json_t *answer = NULL;

	patient_send(patient, json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
					++patient->last_id, "method", method, "params", params));
	while (answer == NULL && !patient->is_closed && clock_now_ms() < end_ms) {
		patient_wait(patient, end_ms - clock_now_ms());
		answer = take_lines(patient);
	}
	return answer;
}

void patient_notify(struct patient *patient, const char *method)
{
	patient_send(patient, json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method));
}

/* The verdict comes before anything else, and soon: exec has succeeded, or has not. */
static void read_verdict(struct patient *patient)
{
	struct pollfd p = { .fd = patient->process.verdict_fd, .events = POLLIN };

	poll(&p, 1, -1);
	if (read(p.fd, &patient->verdict, sizeof(patient->verdict)) !=
	    (ssize_t)sizeof(patient->verdict))
		patient->verdict.error = 0;
	close_fd(&patient->process.verdict_fd);
}

int patient_start(struct patient *patient, const struct launch *launch,
		  const struct launch_spec *spec, const struct guard *guard)
{
	*patient = (struct patient){ .process = { .fds = { -1, -1, -1 }, .verdict_fd = -1 } };
	if (launch_start(launch, spec, guard, -1, &patient->process, &patient->verdict.error) < 0) {
		patient->verdict.step = LAUNCH_SETUP;
		patient->is_ended = true;
		return -1;
	}
	read_verdict(patient);
	return patient->verdict.error == 0 ? 0 : -1;
}

bool patient_has_ended_within(struct patient *patient, uint64_t time_ms)
{
	uint64_t end_ms = clock_now_ms() + time_ms;

	while (!patient->is_ended && clock_now_ms() < end_ms)
		patient_wait(patient, end_ms - clock_now_ms());
	return patient->is_ended;
}

int patient_stop(struct patient *patient, uint64_t grace_ms, uint64_t term_ms)
{
	int needed = 0;

	close_fd(&patient->process.fds[0]);
	if (!patient_has_ended_within(patient, grace_ms)) {
		needed = SIGTERM;
		kill(-patient->process.pid, SIGTERM);
	}
	if (!patient_has_ended_within(patient, term_ms)) {
		needed = SIGKILL;
		kill(-patient->process.pid, SIGKILL);
		patient_has_ended_within(patient, UINT32_MAX);
	}
	/* What it has said last. */
	while (patient->process.fds[2] >= 0) {
		size_t before = patient->err.len;

		take_stderr(patient);
		if (patient->err.len == before)
			break;
	}
	return needed;
}

void patient_fini(struct patient *patient)
{
	for (int i = 0; i < 3; i++)
		close_fd(&patient->process.fds[i]);
	close_fd(&patient->process.verdict_fd);
	if (!patient->is_ended) {
		kill(-patient->process.pid, SIGKILL);
		waitpid(patient->process.pid, NULL, 0);
	}
	buf_fini(&patient->out);
	buf_fini(&patient->err);
	free(patient->first_garbage);
}
