/* SPDX-License-Identifier: Apache-2.0 */
/* A table of columns for each report: which member, and how its value is written. */
#include "ctl/show.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "auth/document.h"
#include "base/buf.h"
#include "base/check.h"
#include "config/quantity.h"
#include "ctl/escape.h"
#include "ctl/text_table.h"

#define COLUMNS_MAX 20

/* The numbers, which stand to the right, come last. */
enum kind {
	KIND_TEXT,
	KIND_OFFER,       /* a text of a server, which may be missing */
	KIND_DESCRIPTION, /* likewise; its first line is enough to choose by */
	KIND_ARGUMENTS,   /* an array of names; those that may be left out in brackets */
	KIND_FLAG,
	KIND_DATE, /* milliseconds since 1970 */
	KIND_COUNT,
	KIND_PROCESS, /* its id; of a session without one: asleep */
	KIND_AGE,     /* milliseconds */
	KIND_LATENCY, /* the upper bound of a bucket, milliseconds */
	KIND_BYTES,
};

struct column {
	const char *title;
	const char *member;
	enum kind kind;
};

static void append_age(struct buf *out, uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (s < 60)
		buf_printf(out, "%ds", (int)s);
	else if (s < 3600)
		buf_printf(out, "%dm%02ds", (int)(s / 60), (int)(s % 60));
	else if (s < 86400)
		buf_printf(out, "%dh%02dm", (int)(s / 3600), (int)(s / 60 % 60));
	else
		buf_printf(out, "%llud%02dh", (unsigned long long)(s / 86400),
			   (int)(s / 3600 % 24));
}

static void append_bytes(struct buf *out, uint64_t bytes)
{
	if (bytes < 1024)
		buf_printf(out, "%d", (int)bytes);
	else if (bytes < 1024 * 1024)
		buf_printf(out, "%.1fK", (double)bytes / 1024);
	else
		buf_printf(out, "%.1fM", (double)bytes / 1024 / 1024);
}

static uint64_t number_of(const json_t *object, const char *member)
{
	json_int_t value = json_integer_value(json_object_get(object, member));

	return value > 0 ? (uint64_t)value : 0;
}

static void append_date(struct buf *out, uint64_t ms)
{
	char text[QUANTITY_TEXT_MAX];

	quantity_format_date(ms / 1000 * 1000, text);
	buf_append_str(out, text);
}

static void append_arguments(struct buf *out, const json_t *arguments)
{
	for (size_t i = 0; i < json_array_size(arguments); i++) {
		const json_t *argument = json_array_get(arguments, i);
		bool is_required = json_is_true(json_object_get(argument, "required"));

		buf_append_str(out, i > 0 ? " " : "");
		buf_append_str(out, is_required ? "" : "[");
		buf_append_slice(out, document_text(argument, "name"));
		buf_append_str(out, is_required ? "" : "]");
	}
}

/* What a server offers, blank if it is missing. */
static void append_offer(struct buf *out, const json_t *row, const struct column *column)
{
	struct slice text = document_text(row, column->member);

	if (column->kind == KIND_ARGUMENTS)
		append_arguments(out, json_object_get(row, column->member));
	else
		buf_append_slice(out,
				 column->kind == KIND_DESCRIPTION ? slice_cut(&text, '\n') : text);
}

static void append_value(struct buf *out, const json_t *row, const struct column *column)
{
	const json_t *value = json_object_get(row, column->member);
	uint64_t number = number_of(row, column->member);

	if (column->kind == KIND_PROCESS &&
	    slice_is_equal(document_text(row, "state"), SLICE_LIT("asleep")))
		buf_append_str(out, "asleep");
	else if (column->kind >= KIND_OFFER && column->kind <= KIND_ARGUMENTS)
		append_offer(out, row, column);
	else if (value == NULL || json_is_null(value))
		buf_append_char(out, '-');
	else if (column->kind == KIND_TEXT && json_is_string(value))
		buf_append_slice(out, document_text(row, column->member));
	else if (column->kind == KIND_FLAG)
		buf_append_str(out, json_is_true(value) ? "yes" : "no");
	else if (column->kind == KIND_DATE)
		append_date(out, number);
	else if (column->kind == KIND_AGE)
		append_age(out, number);
	else if (column->kind == KIND_LATENCY && number < 1000)
		buf_printf(out, "<%dms", (int)number);
	else if (column->kind == KIND_LATENCY)
		buf_printf(out, "<%.1fs", (double)number / 1000);
	else if (column->kind == KIND_BYTES)
		append_bytes(out, number);
	else
		buf_append_u64(out, number);
}

static void print_rows(const json_t *rows, const struct column *columns, size_t count)
{
	struct text_table_column heads[COLUMNS_MAX];
	struct text_table table;

	CHECK(count > 0 && count <= COLUMNS_MAX);
	for (size_t c = 0; c < count; c++)
		heads[c] = (struct text_table_column){ columns[c].title,
						       columns[c].kind >= KIND_COUNT };
	text_table_init(&table, heads, count);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		for (size_t c = 0; c < count; c++) {
			struct buf cell = { 0 };

			append_value(&cell, json_array_get(rows, i), &columns[c]);
			text_table_add(&table, buf_slice(&cell));
			buf_fini(&cell);
		}
	}
	text_table_print(&table, stdout);
	text_table_fini(&table);
}

/* ---- servers ---- */

static const struct column server_columns[] = {
	{ "SERVER", "name", KIND_TEXT },         { "STATE", "state", KIND_TEXT },
	{ "ISOLATION", "isolation", KIND_TEXT }, { "ERA", "era", KIND_TEXT },
	{ "ERA FROM", "era_from", KIND_TEXT },   { "PROCESSES", "processes", KIND_COUNT },
	{ "SESSIONS", "sessions", KIND_COUNT },  { "ASLEEP", "asleep", KIND_COUNT },
	{ "CALLS", "calls", KIND_COUNT },        { "WAITING", "waiting", KIND_COUNT },
	{ "PARKED", "parked", KIND_COUNT },      { "LAST MIN", "answered_last_minute", KIND_COUNT },
	{ "ANSWERED", "answered", KIND_COUNT },  { "FAILED", "failed", KIND_COUNT },
	{ "P50", "p50_ms", KIND_LATENCY },       { "P95", "p95_ms", KIND_LATENCY },
	{ "P99", "p99_ms", KIND_LATENCY },
};

/* Below the table: why, since when, and when it is tried again. */
static void print_failure(const json_t *server)
{
	const json_t *failure = json_object_get(server, "last_failure");
	const json_t *next = json_object_get(server, "next_try_ms");
	uint64_t now_ms = (uint64_t)time(NULL) * 1000;
	uint64_t at_ms = number_of(failure, "at_ms");
	struct buf text = { 0 };

	if (number_of(server, "failures_in_a_row") == 0)
		return;
	buf_append_slice(&text, document_text(server, "name"));
	buf_append_str(&text, " is failing: ");
	buf_append_slice(&text, document_text(failure, "error"));
	buf_append_str(&text, " (");
	append_age(&text, now_ms > at_ms ? now_ms - at_ms : 0);
	buf_append_str(&text, " ago); next try ");
	if (json_is_integer(next)) {
		buf_append_str(&text, "not before ");
		append_age(&text, number_of(server, "next_try_ms") + 999);
	} else {
		buf_append_str(&text, "with the next call");
	}
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

/* Likewise: for how long it is being started. */
static void print_start(const json_t *server)
{
	struct buf text = { 0 };

	if (!json_is_integer(json_object_get(server, "starting_ms")))
		return;
	buf_append_slice(&text, document_text(server, "name"));
	buf_append_str(&text, " is starting: no answer to the handshake for ");
	append_age(&text, number_of(server, "starting_ms"));
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

/* Likewise: what keeps in a server that has a sandbox. */
static void print_sandbox(const json_t *server)
{
	struct slice lacking = document_text(server, "sandbox_lacks");
	struct buf text = { 0 };

	if (document_text(server, "sandbox").n == 0)
		return;
	buf_append_slice(&text, document_text(server, "name"));
	buf_append_str(&text, " is in a sandbox: ");
	buf_append_slice(&text, document_text(server, "sandbox"));
	if (lacking.n > 0) {
		buf_append_str(&text, "; the kernel lacks ");
		buf_append_slice(&text, lacking);
	}
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

static void print_waiting_pins(const json_t *server)
{
	uint64_t count = number_of(server, "pins_waiting");
	struct buf text = { 0 };

	if (count == 0)
		return;
	buf_append_slice(&text, document_text(server, "name"));
	buf_printf(&text, " has %llu definition%s that wait%s for approval: mcpgatectl pins ",
		   (unsigned long long)count, count == 1 ? "" : "s", count == 1 ? "s" : "");
	buf_append_slice(&text, document_text(server, "name"));
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

void show_servers(const json_t *report)
{
	const json_t *servers = json_object_get(report, "servers");

	print_rows(servers, server_columns, ARRAY_LEN(server_columns));
	for (size_t i = 0; i < json_array_size(servers); i++) {
		print_failure(json_array_get(servers, i));
		print_start(json_array_get(servers, i));
		print_sandbox(json_array_get(servers, i));
		print_waiting_pins(json_array_get(servers, i));
	}
}

static void append_count(struct buf *out, uint64_t count, const char *noun, const char *plural)
{
	buf_printf(out, ", %llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : plural);
}

/* A line, where there is an audit. */
static void print_audit(const json_t *audit)
{
	struct slice error = document_text(audit, "last_error");
	bool works = json_is_true(json_object_get(audit, "works"));
	struct buf text = { 0 };

	if (!json_is_object(audit))
		return;
	buf_append_str(&text, "audit to ");
	buf_append_slice(&text, document_text(audit, "to"));
	buf_append_str(&text, works ? " works" : " fails");
	if (!works && json_is_true(json_object_get(audit, "required")))
		buf_append_str(&text, ", and calls are refused (audit.required)");
	append_count(&text, number_of(audit, "written"), "record", "s");
	buf_printf(&text, " written, %llu lost", (unsigned long long)number_of(audit, "lost"));
	if (error.n > 0)
		buf_printf(&text, works ? "; it failed before: %.*s" : ": %.*s", SLICE_ARG(error));
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

void show_status(const json_t *report)
{
	struct buf text = { 0 };

	buf_append_str(&text, "mcpgated ");
	buf_append_slice(&text, document_text(report, "version"));
	buf_append_str(&text, ": ");
	buf_append_slice(&text, document_text(report, "state"));
	/* How long it has been up, not how long it drains. */
	buf_append_str(&text,
		       slice_is_equal(document_text(report, "state"), SLICE_LIT("draining")) ?
			       ", up for " :
			       " for ");
	append_age(&text, number_of(report, "uptime_ms"));
	append_count(&text, number_of(report, "connections"), "connection", "s");
	buf_printf(&text, ", %llu of", (unsigned long long)number_of(report, "sessions"));
	buf_printf(&text, " %llu sessions", (unsigned long long)number_of(report, "sessions_max"));
	append_count(&text, number_of(report, "processes"), "process", "es");
	append_count(&text, number_of(report, "calls"), "call", "s");
	buf_append_str(&text, " in flight");
	escape_print(stdout, "", buf_slice(&text), "");
	print_audit(json_object_get(report, "audit"));
	putchar('\n');
	buf_fini(&text);
	show_servers(report);
}

/* ---- the others ---- */

/* Who it is, in the words of `deny`. */
#define PRINCIPAL_COLUMNS                                                       \
	{ "ISSUER", "issuer", KIND_TEXT }, { "SUBJECT", "subject", KIND_TEXT }, \
	{                                                                       \
		"CLIENT", "client", KIND_TEXT                                   \
	}

void show_processes(const json_t *report)
{
	static const struct column columns[] = {
		{ "PID", "pid", KIND_COUNT },
		{ "SERVER", "server", KIND_TEXT },
		{ "STATE", "state", KIND_TEXT },
		{ "AGE", "age_ms", KIND_AGE },
		{ "CALLS", "calls", KIND_COUNT },
		{ "ANSWERED", "answered", KIND_COUNT },
		{ "UNREAD", "stdin_bytes", KIND_BYTES },
		{ "SESSION", "session", KIND_TEXT },
		{ "LEASED", "leased", KIND_FLAG },
		PRINCIPAL_COLUMNS,
	};

	print_rows(json_object_get(report, "processes"), columns, ARRAY_LEN(columns));
}

void show_sessions(const json_t *report)
{
	static const struct column columns[] = {
		{ "SESSION", "session", KIND_TEXT },
		{ "SERVER", "server", KIND_TEXT },
		{ "REVISION", "revision", KIND_TEXT },
		{ "AGE", "age_ms", KIND_AGE },
		{ "IDLE", "idle_ms", KIND_AGE },
		{ "CALLS", "calls", KIND_COUNT },
		{ "WAITING", "waiting", KIND_COUNT },
		{ "ASKED", "asked", KIND_COUNT },
		{ "LISTENS", "listens", KIND_FLAG },
		{ "PID", "pid", KIND_PROCESS },
		PRINCIPAL_COLUMNS,
		{ "PROGRAM", "program", KIND_TEXT },
		{ "ADDRESS", "address", KIND_TEXT },
	};

	print_rows(json_object_get(report, "sessions"), columns, ARRAY_LEN(columns));
}

void show_streams(const json_t *report)
{
	static const struct column columns[] = {
		{ "SESSION", "session", KIND_TEXT },  { "SERVER", "server", KIND_TEXT },
		{ "STREAM", "stream", KIND_COUNT },   { "KIND", "kind", KIND_TEXT },
		{ "READ", "is_read", KIND_FLAG },     { "ENDED", "has_ended", KIND_FLAG },
		{ "WAITING", "waiting", KIND_COUNT }, { "BYTES", "waiting_bytes", KIND_BYTES },
		{ "KEPT", "kept", KIND_COUNT },       { "BYTES", "kept_bytes", KIND_BYTES },
	};

	print_rows(json_object_get(report, "streams"), columns, ARRAY_LEN(columns));
}

void show_deny_list(const json_t *report)
{
	static const struct column columns[] = {
		{ "NUMBER", "number", KIND_COUNT }, { "ISSUER", "issuer", KIND_TEXT },
		{ "BY", "by", KIND_TEXT },          { "NAME", "name", KIND_TEXT },
		{ "UNTIL", "until_ms", KIND_DATE }, { "FROM", "origin", KIND_TEXT },
	};

	print_rows(json_object_get(report, "entries"), columns, ARRAY_LEN(columns));
}

void show_log_line(const json_t *line)
{
	uint64_t at_ms = number_of(line, "at_ms");
	time_t at = (time_t)(at_ms / 1000);
	struct buf text = { 0 };
	char stamp[32];
	struct tm local;

	localtime_r(&at, &local);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
	escape_append(&text, document_text(line, "text"), "\t");
	printf("%s.%03d [%llu] %s\n", stamp, (int)(at_ms % 1000),
	       (unsigned long long)number_of(line, "pid"), buf_terminate(&text));
	fflush(stdout);
	buf_fini(&text);
}

void show_tools(const json_t *tools)
{
	static const struct column columns[] = {
		{ "TOOL", "name", KIND_OFFER },
		{ "DESCRIPTION", "description", KIND_DESCRIPTION },
	};

	print_rows(tools, columns, ARRAY_LEN(columns));
}

void show_prompts(const json_t *prompts)
{
	static const struct column columns[] = {
		{ "PROMPT", "name", KIND_OFFER },
		{ "ARGUMENTS", "arguments", KIND_ARGUMENTS },
		{ "DESCRIPTION", "description", KIND_DESCRIPTION },
	};

	print_rows(prompts, columns, ARRAY_LEN(columns));
}

/* A template is a row as a resource is, with its pattern as the URI. */
void show_resources(const json_t *resources, const json_t *templates)
{
	static const struct column columns[] = {
		{ "URI OR TEMPLATE", "uri", KIND_OFFER },
		{ "NAME", "name", KIND_OFFER },
		{ "TYPE", "mimeType", KIND_OFFER },
		{ "DESCRIPTION", "description", KIND_DESCRIPTION },
	};
	json_t *rows = json_copy((json_t *)(uintptr_t)resources);

	for (size_t i = 0; i < json_array_size(templates); i++) {
		json_t *row = json_copy(json_array_get(templates, i));

		json_object_set(row, "uri", json_object_get(row, "uriTemplate"));
		json_array_append_new(rows, row);
	}
	print_rows(rows, columns, ARRAY_LEN(columns));
	json_decref(rows);
}
