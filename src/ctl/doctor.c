/* SPDX-License-Identifier: Apache-2.0 */
/* The questions in the order in which a start goes wrong; each answer is one line. */
#include "ctl/commands.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/fetch_client.h"
#include "auth/fetch_service.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "ctl/output.h"
#include "io/ipc.h"
#include "keeper/cgroups.h"
#include "keeper/confine.h"
#include "keeper/launch.h"
#include "keeper/programs.h"
#include "keeper/sandbox.h"
#include "keeper/sandbox_advice.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "process/child.h"

/*
 * ---- a server process under examination ----
 *
 * Its three streams, line by line, with a time limit for each answer: poll(2) over what is open. What
 * the server asks is refused, so that it does not wait.
 */

#define PROBE_STDERR_BYTES (16 * 1024)

struct probe {
	struct launched process;
	struct launch_verdict verdict; /* why it could not be started; error 0: it was started */
	struct buf out;                /* its stdout that has not been parsed yet */
	struct buf err;                /* the end of its stderr */
	size_t garbage;                /* lines of stdout that were not messages */
	char *first_garbage;
	bool is_closed; /* its stdout has ended */
	bool is_ended;  /* it has been reaped */
	int status;     /* as wait(2) gives it */
	int last_id;
};

#define READ_BYTES (64 * 1024)
#define OUT_BYTES_MAX (64u * 1024 * 1024)
#define GARBAGE_SHOWN 200
#define STEP_MS 50       /* how often its end is looked for */
#define PATIENCE_MS 3000 /* before it is said what is waited for */

/* Appends what can be read; at the end of the stream it is closed. */
static void take(int *fd, struct buf *out)
{
	ssize_t n = read(*fd, buf_reserve(out, READ_BYTES), READ_BYTES);

	if (n > 0)
		out->len += (size_t)n;
	else if (n == 0)
		file_close(fd);
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
		file_close(&fds[1]);
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

/* A line. What does not fit into the pipe is lost; then no answer comes either. */
static void probe_write(struct probe *probe, struct slice line)
{
	if (probe->process.fds[0] >= 0 && write(probe->process.fds[0], line.p, line.n) < 0)
		file_close(&probe->process.fds[0]);
}

/* Takes message. */
static void probe_send(struct probe *probe, json_t *message)
{
	at_end(mem_free) char *text = json_dumps(message, JSON_COMPACT);
	size_t size;

	CHECK(text != NULL);
	size = strlen(text);
	text[size] = '\n';
	probe_write(probe, slice_of(text, size + 1));
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
	json_auto_t *value = read_line(probe, line);
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
	return answer;
}

/* Among the findings it would be one. */
static void say_what_is_awaited(const struct probe *probe, const char *method)
{
	fprintf(stderr, "mcpgatectl: no answer to %s yet, %d s; %s\n", method, PATIENCE_MS / 1000,
		probe->garbage > 0 ? "its standard output has lines that are no messages" :
		probe->err.len > 0 ? "its standard error is shown at the end" :
				     "it has written nothing; npx, uvx and the like may be "
				     "downloading, or have no network");
}

/*
 * Takes params. Returns the whole response (owned by the caller), or NULL: none came in time, or
 * the process has ended.
 */
static json_t *probe_ask(struct probe *probe, const char *method, json_t *params,
			 uint64_t timeout_ms)
{
	uint64_t end_ms = clock_now_ms() + timeout_ms, tell_ms = clock_now_ms() + PATIENCE_MS;
	struct buf *out = &probe->out;
	json_t *answer = NULL;
	const char *end;

	CHECK(probe->verdict.error == 0);
	probe_send(probe, json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
				    ++probe->last_id, "method", method, "params", params));
	while (answer == NULL && !probe->is_closed && clock_now_ms() < end_ms) {
		if (clock_now_ms() >= tell_ms) {
			say_what_is_awaited(probe, method);
			tell_ms = UINT64_MAX;
		}
		probe_wait(probe, end_ms - clock_now_ms());
		while (answer == NULL && out->len > 0 &&
		       (end = memchr(out->data, '\n', out->len)) != NULL) {
			answer = take_line(probe, slice_between(out->data, end));
			buf_consume(out, (size_t)(end - out->data) + 1);
		}
	}
	return answer;
}

/*
 * Starts a server: a spec of launch's, or a copy of one. -1: it could not be started. Call
 * probe_fini in both cases.
 */
static int probe_start(struct probe *probe, const struct launch *launch,
		       const struct launch_spec *spec, const struct reaper *reaper)
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
	file_close(&probe->process.verdict_fd);
	CHECK(probe->process.pid > 0);
	return probe->verdict.error == 0 ? 0 : -1;
}

/* Waits for it to end, at most this long. */
static bool probe_has_ended_within(struct probe *probe, uint64_t time_ms)
{
	uint64_t end_ms = clock_now_ms() + time_ms;

	while (!probe->is_ended && clock_now_ms() < end_ms)
		probe_wait(probe, end_ms - clock_now_ms());
	return probe->is_ended;
}

/*
 * Closes its stdin, and kills it if it does not exit by itself. Returns the signal that was needed,
 * or 0.
 */
static int probe_stop(struct probe *probe, uint64_t grace_ms, uint64_t term_ms)
{
	int needed = 0;

	CHECK(probe->process.pid > 0);
	file_close(&probe->process.fds[0]);
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

static void probe_fini(struct probe *probe)
{
	for (int i = 0; i < 3; i++)
		file_close(&probe->process.fds[i]);
	file_close(&probe->process.verdict_fd);
	if (!probe->is_ended) {
		CHECK(probe->process.pid > 0);
		kill(-probe->process.pid, SIGKILL);
		waitpid(probe->process.pid, NULL, 0);
	}
	buf_fini(&probe->out);
	buf_fini(&probe->err);
	free(probe->first_garbage);
}

#define META "io.modelcontextprotocol/"
#define LIST_MS 30000
#define DISCOVER_MS 15000 /* as the daemon waits. BACK-ERA-03 */
#define EXIT_MS 1000      /* between the end of its output and its own */
#define PAGES_MAX 1000
#define STDERR_LINES 20
#define REFUSALS_SHOWN 64
#define VARIABLE_BYTES_MIN 4 /* shorter names are words too often */

struct examination {
	const struct config_server *server;
	const struct doctor_claims *given;
	const struct launch *launch;
	const struct reaper *reaper;
	const struct launch_spec *spec;
	struct probe probe;
	bool is_modern;        /* it is spoken to in the modern era */
	struct buf credential; /* the line that tells its process its token; empty: it gets none */
	json_t *refusal;   /* its answer to initialize, for which it was started again; or NULL */
	struct buf errors; /* the messages of its errors, one a line */
	const char *ill;   /* the first thing that is wrong, or NULL */
};

/* ---- claims ---- */

int doctor_add_claim(struct doctor_claims *claims, const char *text, struct error *err)
{
	const char *value = strchr(text, '=');

	if (value == NULL || value == text || !text_is_claim(slice_str(value + 1)))
		return error_set(err, ERROR_INVALID,
				 "--claim takes NAME=VALUE; the value is plain text of 1 to "
				 "%d bytes",
				 TEXT_CLAIM_MAX);
	if (claims->count == DOCTOR_CLAIMS_MAX)
		return error_set(err, ERROR_INVALID, "there are more than %d claims",
				 DOCTOR_CLAIMS_MAX);
	claims->items[claims->count++] = text;
	return 0;
}

/* NULL: it is not given. */
static const char *value_of(const struct doctor_claims *given, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < given->count; i++)
		if (strncmp(given->items[i], name, length) == 0 && given->items[i][length] == '=')
			return given->items[i] + length + 1;
	return NULL;
}

/* Puts them into its environment, as the daemon would for a caller. */
static bool put_claims(struct examination *e, struct launch_spec *spec, struct slice claims)
{
	struct error err;

	if (claims_make_env(e->launch->config, e->server, spec->envp, claims, &spec->envp, &err) ==
	    0)
		return true;
	finding_fail(&e->ill, "claims", "%s", err.text);
	return false;
}

/* There is no caller: unless --claim gives a value for each, they stay as the configuration has them. */
static bool examine_claims(struct examination *e, struct launch_spec *spec)
{
	const struct server_conf *conf = &e->server->conf;
	at_end(buf_fini) struct buf missing = { 0 }, claims = { 0 };
	bool is_good = true;

	for (size_t i = 0; i < conf->claims.count; i++) {
		const char *name = conf->claims.items[i].p;
		const char *value = value_of(e->given, name);

		if (value == NULL) {
			buf_printf(&missing, " --claim %s=VALUE", name);
			continue;
		}
		buf_append(&claims, name, strlen(name) + 1);
		buf_append(&claims, value, strlen(value) + 1);
	}
	if (missing.len > 0)
		finding_print("warn", "claims",
			      "its %s claims of the caller, and here there is none: it is started "
			      "with the text ${claim:...} itself; give%s",
			      e->server->command != NULL ? "env uses" : "headers use",
			      buf_terminate(&missing));
	else if (conf->claims.count > 0)
		is_good = put_claims(e, spec, buf_slice(&claims));
	return is_good;
}

/* ---- the start ---- */

/* ---- its token ---- */

/* As the daemon gets it: of a fetcher, which is in this process here. */
struct asking {
	struct loop *loop;
	struct inquiry inquiry;
	struct buf token;
	uint64_t good_s;
	char error[256]; /* empty: there is a token */
};

static void on_token(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct asking *asking = container_of(inquiry, struct asking, inquiry);

	if (answer->status == 200)
		buf_append_slice(&asking->token, answer->body);
	else
		snprintf(asking->error, sizeof(asking->error), "%s", answer->error);
	asking->good_s = answer->retry_after_s;
	loop_stop(asking->loop);
}

/* Of two ends of a wire in one process, none goes before the other. */
static void on_service_end(void *arg)
{
	loop_stop(arg);
}

static int ask_for_token(struct asking *asking, const struct config_server *server,
			 struct error *err)
{
	static const struct verifier_conf no_issuers;
	static const struct collector_conf no_collector;
	const struct credential_conf *const credentials[] = { &server->credential };
	const struct fetch_service_conf conf = { &no_issuers, credentials, 1, &no_collector };
	struct fetch_service *service = NULL;
	struct fetch_client *client;
	int ends[2];

	asking->inquiry.on_done = on_token;
	if (fetch_service_prepare(err) < 0 || (asking->loop = loop_new(err)) == NULL)
		return -1;
	if (ipc_pair(ends, err) < 0)
		return -1;
	service =
		fetch_service_new(asking->loop, &conf, ends[0], on_service_end, asking->loop, err);
	if (service == NULL)
		return -1;
	client = fetch_client_new(asking->loop);
	fetch_client_connect(client, ends[1]);
	inquiry_start(client, &asking->inquiry, FETCH_TOKEN, 0, NULL, (struct slice){ NULL, 0 });
	loop_run(asking->loop);
	fetch_client_free(&client);
	fetch_service_free(&service);
	loop_free(&asking->loop);
	return 0;
}

/* Returns whether its process can go on: it has been told the token, or needs none. */
static bool examine_credential(struct examination *e)
{
	const struct credential_conf *conf = &e->server->credential;
	struct asking asking = { .token = { 0 } };
	struct error err;

	if (conf->grant == CREDENTIAL_NONE)
		return true;
	if (e->server->conf.for_caller) {
		finding_print(
			"warn", "auth",
			"a token is made for each caller, and here there is none: it is not tried");
		return false;
	}
	if (ask_for_token(&asking, e->server, &err) < 0)
		finding_fail(&e->ill, "auth", "%s", err.text);
	else if (asking.token.len == 0)
		finding_fail(&e->ill, "auth", "%s gives no token: %s", conf->at.issuer,
			     asking.error);
	else
		finding_print("ok", "auth", "a token of %s, good for %llu s", conf->at.issuer,
			      (unsigned long long)asking.good_s);
	if (asking.token.len > 0) {
		buf_printf(&e->credential, CHILD_CREDENTIAL_MARK "%.*s\n",
			   SLICE_ARG(buf_slice(&asking.token)));
		probe_write(&e->probe, buf_slice(&e->credential));
	}
	buf_wipe(&asking.token);
	return e->credential.len > 0;
}

static void explain_start(struct examination *e)
{
	const struct launch_verdict *verdict = &e->probe.verdict;
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(verdict->error != 0);
	buf_append_str(&text, launch_step_text(verdict->step));
	if (verdict->step == LAUNCH_CWD)
		buf_printf(&text, " %s", e->server->cwd);
	if (verdict->step == LAUNCH_EXEC)
		buf_printf(&text, " '%s'", launch_program(e->server));
	buf_printf(&text, ": %s", strerror(verdict->error));
	if (verdict->step == LAUNCH_EXEC && verdict->error == ENOENT) {
		buf_append_str(&text, "; looked for");
		for (char **path = e->spec->candidates; *path != NULL; path++)
			buf_printf(&text, " %s", *path);
		if (access(e->spec->candidates[0], F_OK) == 0)
			buf_append_str(
				&text,
				"; the file exists, so the interpreter in its first line (#!) does "
				"not");
		buf_append_str(&text,
			       launch_hint(verdict, e->launch->config, launch_program(e->server)));
	}
	if (verdict->step == LAUNCH_EXEC && verdict->error == ENOEXEC)
		buf_append_str(&text, "; a script needs a first line like #!/bin/sh");
	finding_fail(&e->ill, "start", "%s", buf_terminate(&text));
}

static void end_probe(struct examination *e)
{
	probe_fini(&e->probe);
	if (e->probe.process.pid > 0)
		reaper_remove(e->reaper, e->probe.process.pid);
}

/* A process is spoken to in one era only. BACK-ERA-07 */
static bool start_again(struct examination *e)
{
	const struct server_conf *conf = &e->server->conf;
	bool is_started;

	probe_stop(&e->probe, conf->stop_grace_ms, conf->stop_term_ms);
	end_probe(e);
	is_started = probe_start(&e->probe, e->launch, e->spec, e->reaper) == 0;
	if (!is_started)
		explain_start(e);
	else if (e->credential.len > 0)
		probe_write(&e->probe, buf_slice(&e->credential));
	return is_started;
}

/* Fails what has got no answer because the output is closed; `when` goes on from how it ended. */
static void explain_exit(struct examination *e, const char *what, const char *when)
{
	struct probe *probe = &e->probe;

	if (!probe_has_ended_within(probe, EXIT_MS))
		finding_fail(&e->ill, what, "it has closed its standard output%s", when);
	else if (WIFSIGNALED(probe->status))
		finding_fail(&e->ill, what, "it was killed by signal %s%s",
			     sigabbrev_np(WTERMSIG(probe->status)), when);
	else
		finding_fail(&e->ill, what, "it exited with status %d%s",
			     WEXITSTATUS(probe->status), when);
}

/* ---- the handshake ---- */

static const char *text_of(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text != NULL ? text : "?";
}

/* Takes params; in the modern era each request says in which revision it is, and who asks. */
static json_t *ask(struct examination *e, const char *method, json_t *params, uint64_t timeout_ms)
{
	struct slice revision = revision_modern.name;
	const char *message;
	json_t *answer;

	if (e->is_modern)
		json_object_set_new(params, "_meta",
				    json_pack("{s:s%, s:{}, s:{s:s, s:s}}", META "protocolVersion",
					      revision.p, revision.n, META "clientCapabilities",
					      META "clientInfo", "name", "mcpgatectl", "version",
					      PACKAGE_VERSION));
	answer = probe_ask(&e->probe, method, params, timeout_ms);
	message = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
	if (message != NULL)
		buf_printf(&e->errors, "%s\n", message);
	return answer;
}

/* The revision that is spoken from now on, or what it wants instead; NULL: it says none. */
static const char *revision_in(const struct examination *e, const json_t *result)
{
	const json_t *version = json_object_get(result, "protocolVersion");
	const json_t *versions = json_object_get(result, "supportedVersions");

	for (size_t i = 0; e->is_modern && i < json_array_size(versions); i++) {
		version = json_array_get(versions, i);
		if (json_is_string(version) &&
		    revision_is_modern(slice_str(json_string_value(version))))
			break;
	}
	return json_string_value(version);
}

static bool judge_answer(struct examination *e, const json_t *answer, uint64_t took_ms)
{
	const json_t *result = json_object_get(answer, "result");
	const json_t *info = e->is_modern ? json_object_get(json_object_get(result, "_meta"),
							    META "serverInfo") :
					    json_object_get(result, "serverInfo");
	const char *version = revision_in(e, result);
	struct slice name = slice_str(version != NULL ? version : "");

	if (!json_is_object(result)) {
		const json_t *first = e->refusal != NULL ? e->refusal : answer;

		finding_fail(&e->ill, "answer", "it refused %s: %s",
			     e->is_modern && e->refusal == NULL ? "server/discover" : "initialize",
			     text_of(json_object_get(first, "error"), "message"));
		return false;
	}
	if (e->is_modern ? !revision_is_modern(name) : revision_find(name) == NULL) {
		finding_fail(&e->ill, "answer",
			     "it answered with the revision '%s', which is unknown", name.p);
		return false;
	}
	finding_print("ok", "answer", "after %.2f s: %s %s, revision %s", (double)took_ms / 1000,
		      text_of(info, "name"), text_of(info, "version"), version);
	return true;
}

/* What would fetch something at its start, like npx and uvx, may be waiting for a network that it has not. */
static const char *network_hint(const struct config_server *server)
{
	if (server->sandbox != CONFIG_SANDBOX_LANDLOCK || server->sandbox_connect.is_any ||
	    server->sandbox_connect.count > 0)
		return "";
	return "; its sandbox lets it connect nowhere (sandbox.connect lists no port), so it can "
	       "download nothing";
}

static void explain_silence(struct examination *e, const char *method, uint64_t timeout_ms)
{
	at_end(buf_fini) struct buf when = { 0 };

	buf_printf(&when, " before it answered %s", method);
	if (e->refusal != NULL)
		(void)judge_answer(e, e->refusal, 0);
	else if (e->probe.is_closed)
		explain_exit(e, "answer", buf_terminate(&when));
	else
		finding_fail(&e->ill, "answer",
			     "no answer to %s within %.1f s (start.timeout); perhaps it "
			     "waits for a download, a login or a terminal%s",
			     method, (double)timeout_ms / 1000, network_hint(e->server));
}

/* As the daemon finds out of which era it is. bridging.md §1.10 */
static bool examine_handshake(struct examination *e, json_t **capabilities_r)
{
	const struct server_conf *conf = &e->server->conf;
	uint64_t timeout_ms = e->refusal != NULL ? DISCOVER_MS : conf->start_timeout_ms;
	const char *method = e->is_modern ? "server/discover" : "initialize";
	uint64_t begin_ms = clock_now_ms();
	json_t *answer =
		ask(e, method, e->is_modern ? json_object() : mcp_client_hello(), timeout_ms);
	bool is_good = false;

	if (!e->is_modern && conf->era == ERA_UNKNOWN && json_object_get(answer, "error") != NULL) {
		e->is_modern = true;
		e->refusal = answer;
		return start_again(e) && examine_handshake(e, capabilities_r);
	}
	if (answer != NULL)
		is_good = judge_answer(e, answer, clock_now_ms() - begin_ms);
	else
		explain_silence(e, method, timeout_ms);
	*capabilities_r =
		json_incref(json_object_get(json_object_get(answer, "result"), "capabilities"));
	json_decref(answer);
	return is_good;
}

/* ---- what it does then ---- */

static void examine_tools(struct examination *e, const json_t *capabilities)
{
	uint64_t begin_ms = clock_now_ms();
	json_auto_t *cursor = NULL;
	size_t count = 0;
	bool is_good = true;
	int pages = 0;

	if (json_object_get(capabilities, "tools") == NULL) {
		finding_print("ok", "tools", "it offers none");
		return;
	}
	do {
		json_t *params = json_pack("{s:o*}", "cursor", cursor);
		json_auto_t *answer = ask(e, "tools/list", params, LIST_MS);
		const json_t *result = json_object_get(answer, "result");
		json_t *next = json_object_get(result, "nextCursor");

		is_good = json_is_array(json_object_get(result, "tools"));
		count += json_array_size(json_object_get(result, "tools"));
		cursor = json_is_string(next) ? json_incref(next) : NULL;
	} while (is_good && cursor != NULL && ++pages < PAGES_MAX);
	if (is_good && pages < PAGES_MAX)
		finding_print("ok", "tools", "%zu, listed in %.2f s", count,
			      (double)(clock_now_ms() - begin_ms) / 1000);
	else if (e->probe.is_closed)
		explain_exit(e, "tools", "");
	else
		finding_fail(&e->ill, "tools", "tools/list returns no list, or does not end");
}

static void examine_end(struct examination *e)
{
	const struct server_conf *conf = &e->server->conf;
	uint64_t begin_ms = clock_now_ms();
	int needed = probe_stop(&e->probe, conf->stop_grace_ms, conf->stop_term_ms);

	if (e->ill != NULL)
		return; /* how it ended was said, or says nothing */
	if (needed == 0)
		finding_print("ok", "end", "%.2f s after its standard input was closed",
			      (double)(clock_now_ms() - begin_ms) / 1000);
	else
		finding_print(
			"warn", "end",
			"it does not exit when its standard input is closed; SIG%s was needed",
			sigabbrev_np(needed));
}

/* Whether it gets a variable of this name. */
static bool is_passed_on(char *const *envp, struct slice name)
{
	for (; *envp != NULL; envp++)
		if (slice_has_prefix(slice_str(*envp), name) && (*envp)[name.n] == '=')
			return true;
	return false;
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether the name stands in the text as a word. */
static bool is_named(struct slice text, struct slice name)
{
	const char *end = text.p + text.n;
	const char *at = text.p;

	while (at != NULL && (at = memmem(at, (size_t)(end - at), name.p, name.n)) != NULL) {
		if ((at == text.p || !is_of_name(at[-1])) &&
		    (at + name.n == end || !is_of_name(at[name.n])))
			return true;
		at++;
	}
	return false;
}

/* A variable of ours that it names in what it wrote, and has not got: probably what it misses. */
static void examine_variables(const struct examination *e)
{
	struct slice garbage = slice_str(e->probe.garbage > 0 ? e->probe.first_garbage : "");

	for (char **entry = environ; *entry != NULL; entry++) {
		struct slice rest = slice_str(*entry);
		struct slice name = slice_cut(&rest, '=');

		if (name.n < VARIABLE_BYTES_MIN || is_passed_on(e->spec->envp, name))
			continue;
		if (is_named(buf_slice(&e->probe.err), name) || is_named(garbage, name))
			finding_print(
				"warn", "env",
				"%.*s is set here but not passed on; for a command use --env %.*s, "
				"in a configuration env: {%.*s: {env: %.*s}}",
				SLICE_ARG(name), SLICE_ARG(name), SLICE_ARG(name), SLICE_ARG(name));
	}
}

/* By what it wrote of it; where the sandbox only reports, by what that wrote. */
static bool advise(const struct config_server *server, struct slice line, struct buf *advice)
{
	const struct slice mark = SLICE_LIT(CHILD_REPORT_MARK);

	if (server->sandbox == CONFIG_SANDBOX_LANDLOCK)
		return sandbox_advise_line(server, line, advice);
	if (!slice_has_prefix(line, mark))
		return false;
	buf_append(advice, line.p + mark.n, line.n - mark.n);
	return true;
}

/* What its sandbox has refused, or would refuse. */
static void examine_refusals(const struct examination *e)
{
	struct slice rests[] = { buf_slice(&e->probe.err), buf_slice(&e->errors),
				 slice_or_empty(e->probe.first_garbage) };
	at_end(buf_fini) struct buf told = { 0 }, advice = { 0 };
	size_t count = 0;

	for (size_t i = 0; e->server->sandbox != CONFIG_SANDBOX_OFF && i < ARRAY_LEN(rests); i++) {
		while (rests[i].n > 0 && count < REFUSALS_SHOWN) {
			buf_consume(&advice, advice.len);
			if (!advise(e->server, slice_cut(&rests[i], '\n'), &advice))
				continue;
			buf_append_char(&advice, '\n');
			if (told.len > 0 &&
			    memmem(told.data, told.len, advice.data, advice.len) != NULL)
				continue;
			buf_append_slice(&told, buf_slice(&advice));
			finding_print("warn", "sandbox",
				      "something %s refused; if its user may do that, this "
				      "allows it: %.*s",
				      e->server->sandbox == CONFIG_SANDBOX_REPORT ? "would be" :
										    "was",
				      (int)advice.len - 1, advice.data);
			count++;
		}
	}
}

static void examine_running(struct examination *e)
{
	struct slice rest;
	json_auto_t *capabilities = NULL;
	size_t lines = 0;

	if (examine_handshake(e, &capabilities)) {
		if (!e->is_modern)
			probe_send(&e->probe, json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
							"notifications/initialized"));
		examine_tools(e, capabilities);
	}
	json_decref(e->refusal);
	if (e->probe.verdict.error != 0)
		return; /* it was not started again */
	if (e->probe.garbage > 0)
		finding_print(
			"warn", "stdout",
			"lines that are not messages, skipped (logs belong on stderr): %zu; the "
			"first: %s",
			e->probe.garbage, e->probe.first_garbage);
	examine_end(e);
	examine_variables(e);
	examine_refusals(e);
	/* The last lines of stderr; how many there were before is not known. */
	rest = buf_slice(&e->probe.err);
	for (size_t i = 0; i < rest.n; i++)
		lines += rest.p[i] == '\n';
	for (; lines >= STDERR_LINES && rest.n > 0; lines--)
		slice_cut(&rest, '\n');
	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');

		if (!slice_has_prefix(line, SLICE_LIT(CHILD_REPORT_MARK)))
			finding_quote(line);
	}
}

/* ---- all of it ---- */

static void report_sandbox(const struct config_server *server)
{
	struct server_confinement confinement;
	bool is_whole;

	sandbox_describe(server, landlock_version(), &confinement);
	is_whole = confinement.lacking[0] == '\0';
	if (confinement.only_reports)
		finding_print("warn", "sandbox",
			      "nothing is refused: sandbox.mode is report, which is for finding "
			      "out what to list");
	if (confinement.in_force[0] != '\0')
		finding_print(is_whole ? "ok" : "warn", "sandbox", "%s%s%s", confinement.in_force,
			      is_whole ? "" : "; the kernel lacks ", confinement.lacking);
}

/* Returns whether nothing is wrong with the server of this number. */
static bool examine(const struct config *config, size_t index, const struct launch *launch,
		    const struct reaper *reaper, const struct doctor_claims *given)
{
	struct launch_spec spec = launch->specs[index];
	struct examination e = { .server = &config->servers[index],
				 .given = given,
				 .launch = launch,
				 .reaper = reaper,
				 .spec = &spec };
	char **path = spec.candidates;
	struct error err;

	e.is_modern = e.server->conf.era == ERA_MODERN;
	finding_begin("server", e.server->conf.name);
	report_sandbox(e.server);
	/* The daemon would not start at all. */
	if (cgroups_is_needed(e.server) && cgroups_check(config, &err) < 0)
		finding_fail(&e.ill, "resources", "%s", err.text);
	if (examine_claims(&e, &spec)) {
		clock_update();
		if (probe_start(&e.probe, launch, &spec, reaper) < 0) {
			explain_start(&e);
		} else {
			CHECK(path[0] != NULL); /* one of them has been started */
			while (path[1] != NULL && access(*path, X_OK) != 0)
				path++;
			finding_print("ok", "start", "%s", *path);
			if (examine_credential(&e))
				examine_running(&e);
		}
		end_probe(&e);
	}
	claims_free_env(launch->specs[index].envp, spec.envp);
	buf_fini(&e.errors);
	buf_wipe(&e.credential);
	return e.ill == NULL;
}

/* Whether it is meant by this name: as a server, or as one of an endpoint's servers. NULL: all that are enabled. */
static bool is_meant(const struct config *config, const struct config_server *server,
		     const char *name)
{
	size_t at = name != NULL ? config_find_server(config, name) : config->server_count;
	const struct server_legs *legs;

	if (server->is_endpoint)
		return false; /* it has no process */
	if (name == NULL)
		return server->enabled;
	if (at == config->server_count)
		return false;
	legs = &config->servers[at].conf.legs;
	for (size_t i = 0; i < legs->count; i++)
		if (slice_is_equal(legs->items[i].server, slice_str(server->conf.name)))
			return true;
	return &config->servers[at] == server;
}

int doctor_examine(struct config *config, const char *name, const struct doctor_claims *claims)
{
	struct error err = { ERROR_NONE, "" };
	struct launch launch;
	struct programs programs;
	struct reaper reaper = { .programs = &programs };
	int count = 0;
	int ill = 0;

	CHECK(claims->count <= DOCTOR_CLAIMS_MAX);
	signal(SIGPIPE, SIG_IGN);
	if (programs_open(&programs, &err) < 0 || reaper_start(&reaper, &err) < 0) {
		fprintf(stderr, "mcpgatectl: %s\n", err.text);
		return 1;
	}
	if (launch_init(&launch, config, config->server_count, &err) < 0) {
		fprintf(stderr, "mcpgatectl: %s\n", err.text);
		count = ill = 1;
	}
	for (size_t i = 0; i < config->server_count && err.kind == ERROR_NONE; i++) {
		if (!is_meant(config, &config->servers[i], name))
			continue;
		count++;
		ill += !examine(config, i, &launch, &reaper, claims);
	}
	launch_fini(&launch);
	reaper_stop(&reaper);
	waitpid(reaper.pid, NULL, 0);
	programs_close(&programs);
	CHECK(ill <= count);
	return count > 0 ? ill : -1;
}
