/* SPDX-License-Identifier: Apache-2.0 */
/* The questions in the order in which a start goes wrong; each answer is one line. */
#include "ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "ctl/escape.h"
#include "ctl/finding.h"
#include "ctl/mcp_client.h"
#include "ctl/probe.h"
#include "keeper/claims.h"
#include "keeper/landlock.h"
#include "keeper/sandbox.h"
#include "mcp/revision.h"

#define LIST_MS 30000
#define EXIT_MS 1000 /* between the end of its output and its own */
#define PAGES_MAX 1000
#define STDERR_LINES 20

struct examination {
	const struct config_server *server;
	struct probe probe;
	bool is_ill;
	const struct doctor_claims *given;
};

static void fail(struct examination *e, const char *what, struct buf *text)
{
	CHECK(text->len > 0);
	e->is_ill = true;
	finding_print("FAIL", what, text);
}

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

/* What the gateway would give to the keeper: a pipe with all in it, which is little. -1 with errno. */
static int open_claims(struct slice text)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	if (write(fds[1], text.p, text.n) != (ssize_t)text.n) {
		close(fds[0]);
		fds[0] = -1;
	}
	close(fds[1]);
	return fds[0];
}

/* Puts them into its environment, as the daemon would for a caller. */
static bool put_claims(struct examination *e, struct launch_spec *spec, struct slice claims)
{
	int fd = open_claims(claims);
	const char *why = claims_make_env(e->server, spec->envp, fd, &spec->envp);
	struct buf text = { 0 };

	if (fd >= 0)
		close(fd);
	if (why == NULL)
		return true;
	buf_append_str(&text, why);
	fail(e, "claims", &text);
	return false;
}

/* There is no caller: unless --claim gives a value for each, they stay as the configuration has them. */
static bool examine_claims(struct examination *e, struct launch_spec *spec)
{
	const struct server_conf *conf = &e->server->conf;
	struct buf missing = { 0 };
	struct buf claims = { 0 };
	struct buf text = { 0 };
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
	if (missing.len > 0) {
		buf_printf(&text,
			   "its env names claims of a caller, and nobody has called: it is "
			   "started with the text ${claim:...} itself; give%s",
			   buf_terminate(&missing));
		finding_print("warn", "claims", &text);
	} else if (conf->claims.count > 0) {
		is_good = put_claims(e, spec, buf_slice(&claims));
	}
	buf_fini(&missing);
	buf_fini(&claims);
	return is_good;
}

/* ---- the start ---- */

static void explain_start(struct examination *e, const struct launch_spec *spec)
{
	const struct launch_verdict *verdict = &e->probe.verdict;
	struct buf text = { 0 };

	CHECK(verdict->error != 0);
	buf_append_str(&text, launch_step_text(verdict->step));
	if (verdict->step == LAUNCH_CWD)
		buf_printf(&text, " %s", e->server->cwd);
	if (verdict->step == LAUNCH_EXEC)
		buf_printf(&text, " '%s'", e->server->command);
	buf_printf(&text, ": %s", strerror(verdict->error));
	if (verdict->step == LAUNCH_EXEC && verdict->error == ENOENT) {
		buf_append_str(&text, "; looked for");
		for (char **path = spec->candidates; *path != NULL; path++)
			buf_printf(&text, " %s", *path);
		if (access(spec->candidates[0], F_OK) == 0)
			buf_append_str(&text,
				       "; it is there, so what its first line (#!) names is not");
		buf_append_str(&text, launch_hint(verdict, e->server->command));
	}
	if (verdict->step == LAUNCH_EXEC && verdict->error == ENOEXEC)
		buf_append_str(&text, "; a script needs a first line like #!/bin/sh");
	fail(e, "start", &text);
}

static void explain_exit(struct probe *probe, struct buf *text)
{
	if (!probe_has_ended_within(probe, EXIT_MS))
		buf_append_str(text, "it has closed its standard output");
	else if (WIFSIGNALED(probe->status))
		buf_printf(text, "it was ended by the signal %s",
			   sigabbrev_np(WTERMSIG(probe->status)));
	else
		buf_printf(text, "it ended by itself with the status %d",
			   WEXITSTATUS(probe->status));
}

/* ---- the handshake ---- */

static void append_member(struct buf *out, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	buf_append_str(out, text != NULL ? text : "?");
}

static void explain_silence(struct examination *e, uint64_t timeout_ms)
{
	struct buf text = { 0 };

	if (e->probe.is_closed) {
		explain_exit(&e->probe, &text);
		buf_append_str(&text, " before it answered initialize");
	} else {
		buf_printf(&text,
			   "no answer to initialize within %.1f s (start.timeout); perhaps it "
			   "waits for a download, a login or a terminal",
			   (double)timeout_ms / 1000);
	}
	fail(e, "answer", &text);
}

static bool judge_answer(struct examination *e, const json_t *answer, uint64_t took_ms)
{
	const json_t *result = json_object_get(answer, "result");
	const json_t *info = json_object_get(result, "serverInfo");
	const char *version = json_string_value(json_object_get(result, "protocolVersion"));
	struct buf text = { 0 };

	if (!json_is_object(result)) {
		buf_append_str(&text, "it refused initialize: ");
		append_member(&text, json_object_get(answer, "error"), "message");
		fail(e, "answer", &text);
		return false;
	}
	if (version == NULL || revision_find(slice_str(version)) == NULL) {
		buf_printf(&text, "it answered with the revision '%s', which nobody knows",
			   version != NULL ? version : "");
		fail(e, "answer", &text);
		return false;
	}
	buf_printf(&text, "after %.2f s: ", (double)took_ms / 1000);
	append_member(&text, info, "name");
	buf_append_char(&text, ' ');
	append_member(&text, info, "version");
	buf_printf(&text, ", revision %s", version);
	finding_print("ok", "answer", &text);
	return true;
}

static bool examine_handshake(struct examination *e, json_t **capabilities_r)
{
	uint64_t timeout_ms = e->server->conf.start_timeout_ms;
	uint64_t begin_ms = clock_now_ms();
	json_t *answer = probe_ask(&e->probe, "initialize", mcp_client_hello(), timeout_ms);
	bool is_good = false;

	if (answer == NULL)
		explain_silence(e, timeout_ms);
	else
		is_good = judge_answer(e, answer, clock_now_ms() - begin_ms);
	*capabilities_r =
		json_incref(json_object_get(json_object_get(answer, "result"), "capabilities"));
	json_decref(answer);
	return is_good;
}

/* ---- the tools ---- */

/* Adds the page's tools to *count; returns its cursor, or NULL after the last; *is_good_r: it came. */
static json_t *count_page(struct examination *e, json_t *cursor, size_t *count, bool *is_good_r)
{
	json_t *params = json_object();
	json_t *answer;
	json_t *result;
	json_t *next;

	if (cursor != NULL)
		json_object_set_new(params, "cursor", cursor);
	answer = probe_ask(&e->probe, "tools/list", params, LIST_MS);
	result = json_object_get(answer, "result");
	*is_good_r = json_is_array(json_object_get(result, "tools"));
	*count += json_array_size(json_object_get(result, "tools"));
	next = json_object_get(result, "nextCursor");
	next = json_is_string(next) ? json_incref(next) : NULL;
	json_decref(answer);
	return next;
}

static void examine_tools(struct examination *e, const json_t *capabilities)
{
	uint64_t begin_ms = clock_now_ms();
	struct buf text = { 0 };
	json_t *cursor = NULL;
	size_t count = 0;
	bool is_good = true;
	int pages = 0;

	if (json_object_get(capabilities, "tools") == NULL) {
		buf_append_str(&text, "it offers none");
		finding_print("ok", "tools", &text);
		return;
	}
	do
		cursor = count_page(e, cursor, &count, &is_good);
	while (is_good && cursor != NULL && ++pages < PAGES_MAX);
	json_decref(cursor);
	if (is_good && pages < PAGES_MAX) {
		buf_printf(&text, "%zu, listed in %.2f s", count,
			   (double)(clock_now_ms() - begin_ms) / 1000);
		finding_print("ok", "tools", &text);
		return;
	}
	if (e->probe.is_closed)
		explain_exit(&e->probe, &text);
	else
		buf_append_str(&text, "tools/list has no list, or no end");
	fail(e, "tools", &text);
}

/* ---- the end ---- */

static void examine_end(struct examination *e)
{
	uint64_t begin_ms = clock_now_ms();
	int needed =
		probe_stop(&e->probe, e->server->conf.stop_grace_ms, e->server->conf.stop_term_ms);
	struct buf text = { 0 };

	if (e->is_ill)
		return; /* how it ended was said, or says nothing */
	if (needed == 0)
		buf_printf(&text, "%.2f s after its standard input was closed",
			   (double)(clock_now_ms() - begin_ms) / 1000);
	else
		buf_printf(&text,
			   "it does not end when its standard input is closed; SIG%s was needed",
			   sigabbrev_np(needed));
	finding_print(needed == 0 ? "ok" : "warn", "end", &text);
}

/* The last lines; how many there were before is not known. */
static void print_stderr(const struct probe *probe)
{
	struct slice rest = buf_slice(&probe->err);
	size_t count = 0;

	for (size_t i = 0; i < rest.n; i++)
		count += rest.p[i] == '\n';
	for (; count >= STDERR_LINES && rest.n > 0; count--)
		slice_cut(&rest, '\n');
	while (rest.n > 0)
		escape_print(stdout, "        stderr    | ", slice_cut(&rest, '\n'), "");
}

static void examine_running(struct examination *e)
{
	json_t *capabilities = NULL;
	struct buf text = { 0 };

	if (examine_handshake(e, &capabilities)) {
		probe_notify(&e->probe, "notifications/initialized");
		examine_tools(e, capabilities);
	}
	json_decref(capabilities);
	if (e->probe.garbage > 0) {
		buf_printf(&text,
			   "%zu lines are no messages and were skipped (logs belong to stderr); "
			   "the first: %s",
			   e->probe.garbage, e->probe.first_garbage);
		finding_print("warn", "stdout", &text);
	}
	examine_end(e);
	print_stderr(&e->probe);
}

static void examine_start(struct examination *e, const struct launch *launch,
			  const struct launch_spec *spec, const struct reaper *reaper)
{
	char **path = spec->candidates;
	struct buf text = { 0 };

	clock_update();
	if (probe_start(&e->probe, launch, spec, reaper) < 0) {
		explain_start(e, spec);
	} else {
		CHECK(path[0] != NULL); /* one of them has been started */
		while (path[1] != NULL && access(*path, X_OK) != 0)
			path++;
		buf_append_str(&text, *path);
		finding_print("ok", "start", &text);
		examine_running(e);
	}
	probe_fini(&e->probe);
	if (e->probe.process.pid > 0)
		reaper_remove(reaper, e->probe.process.pid);
}

/* ---- the sandbox ---- */

static void report_sandbox(const struct config_server *server)
{
	struct server_confinement confinement;
	struct buf text = { 0 };

	sandbox_describe(server, landlock_version(), &confinement);
	if (confinement.in_force[0] == '\0')
		return;
	buf_append_str(&text, confinement.in_force);
	if (confinement.lacking[0] != '\0')
		buf_printf(&text, "; the kernel lacks %s", confinement.lacking);
	finding_print(confinement.lacking[0] == '\0' ? "ok" : "warn", "sandbox", &text);
}

static bool examine(const struct config *config, size_t index, const struct launch *launch,
		    const struct reaper *reaper, const struct doctor_claims *given)
{
	struct examination e = { .server = &config->servers[index], .given = given };
	struct launch_spec spec = launch->specs[index];

	printf("%s\n", e.server->conf.name);
	report_sandbox(e.server);
	if (examine_claims(&e, &spec))
		examine_start(&e, launch, &spec, reaper);
	claims_free_env(launch->specs[index].envp, spec.envp);
	return !e.is_ill;
}

/* Returns how many are ill; -1: none has this name. */
static int examine_all(const struct config *config, const char *name, const struct launch *launch,
		       const struct reaper *reaper, const struct doctor_claims *given)
{
	int count = 0;
	int ill = 0;

	CHECK(given->count <= DOCTOR_CLAIMS_MAX);
	for (size_t i = 0; i < config->server_count; i++) {
		if (name != NULL ? strcmp(config->servers[i].conf.name, name) != 0 :
				   !config->servers[i].enabled)
			continue;
		count++;
		ill += !examine(config, i, launch, reaper, given);
	}
	CHECK(ill <= count);
	return count > 0 ? ill : -1;
}

int doctor_examine(struct config *config, const char *name, const struct doctor_claims *claims)
{
	struct error err = { ERROR_NONE, "" };
	struct launch launch;
	struct reaper reaper = { .pid = 0 };
	int ill = 1;

	signal(SIGPIPE, SIG_IGN);
	if (reaper_start(&reaper, &err) < 0) {
		fprintf(stderr, "mcpgatectl: %s\n", err.text);
		return 1;
	}
	if (launch_init(&launch, config, &err) < 0)
		fprintf(stderr, "mcpgatectl: %s\n", err.text);
	else
		ill = examine_all(config, name, &launch, &reaper, claims);
	launch_fini(&launch);
	reaper_stop(&reaper);
	waitpid(reaper.pid, NULL, 0);
	return ill;
}
