/* SPDX-License-Identifier: Apache-2.0 */
/* A table of columns for each report: which member, and how its value is written. */
#include "ctl/commands.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "auth/document.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/forms.h"
#include "ctl/output.h"
#include "obs/latency_histogram.h"

#define COLUMNS_MAX TEXT_TABLE_COLUMNS_MAX
/* Exit statuses of check. */
#define CHECK_LOOK 1
#define CHECK_FAILING 2

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
	const char *member;
	size_t position; /* from 1; 0: in no table */
	const char *title;
	enum kind kind;
};

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
	char age[TEXT_AGE_BYTES], date[QUANTITY_TEXT_MAX];

	quantity_format_date(number / 1000 * 1000, date);
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
		buf_append_str(out, date);
	else if (column->kind == KIND_AGE)
		buf_append_str(out, text_format_age(number, age));
	else if (column->kind == KIND_LATENCY && number < 1000)
		buf_printf(out, "<%dms", (int)number);
	else if (column->kind == KIND_LATENCY)
		buf_printf(out, "<%.1fs", (double)number / 1000);
	else if (column->kind == KIND_BYTES)
		append_bytes(out, number);
	else
		buf_append_u64(out, number);
}

/* NULL: there are no more. */
static const struct column *column_at(const struct column *columns, size_t count, size_t position)
{
	for (size_t i = 0; i < count; i++)
		if (columns[i].position == position)
			return &columns[i];
	return NULL;
}

/* What a narrow terminal has no room for, of all tables: the first is missed least. */
static const char *const dispensable[] = {
	"ERA FROM", "P50",     "P95",      "PARKED", "ISOLATION", "ISSUER",  "UNREAD",   "LEASED",
	"ASKED",    "LISTENS", "ASLEEP",   "ERA",    "ANSWERED",  "CLIENT",  "REVISION", "KIND",
	"AGE",      "ADDRESS", "LAST MIN", "PID",    "PROGRAM",   "WAITING", "P99"
};

/* Says in a line what has been left out; "" if nothing has. The caller frees it. */
static char *fit(struct text_table *table)
{
	at_end(buf_fini) struct buf titles = { 0 };

	text_table_fit(table, dispensable, ARRAY_LEN(dispensable), output_columns());
	for (size_t c = 0; c < table->column_count; c++)
		if (table->left_out[c])
			buf_printf(&titles, "%s%s", titles.len > 0 ? ", " : "",
				   table->columns[c].title);
	return titles.len == 0 ?
		       mem_strdup("") :
		       mem_printf("(no room for: %s; --json has all)", buf_terminate(&titles));
}

static void print_rows(const json_t *rows, const struct column *columns, size_t count)
{
	struct text_table_column heads[COLUMNS_MAX];
	const struct column *shown[COLUMNS_MAX];
	at_end(text_table_fini) struct text_table table = { .count = 0 };
	at_end(mem_free) char *left_out = NULL;
	size_t n = 0;

	while (n < COLUMNS_MAX && (shown[n] = column_at(columns, count, n + 1)) != NULL) {
		heads[n] =
			(struct text_table_column){ shown[n]->title, shown[n]->kind >= KIND_COUNT };
		n++;
	}
	CHECK(n > 0);
	text_table_init(&table, heads, n);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		for (size_t c = 0; c < n; c++) {
			at_end(buf_fini) struct buf cell = { 0 };

			append_value(&cell, json_array_get(rows, i), shown[c]);
			text_table_add(&table, buf_slice(&cell));
		}
	}
	left_out = fit(&table);
	text_table_print(&table, stdout);
	if (left_out[0] != '\0')
		output_say("%s", left_out);
}

/* ---- servers ---- */

/* A row of admin/facts.def as a column. */
#define TEXT(member, fact, ...) { member, __VA_ARGS__ },
#define FLAG TEXT
#define NUMBER TEXT
#define JSON(member, fact)
#define METRIC_NUMBER(metric, ...) TEXT(__VA_ARGS__)
#define METRIC_ONLY(metric, fact)

static const struct column server_columns[] = {
#define FACTS_OF_SERVER
#include "admin/facts.def"
};

/* Below the table: for how long it is being started. */
static void print_start(const json_t *server)
{
	char age[TEXT_AGE_BYTES];

	if (json_is_integer(json_object_get(server, "starting_ms")))
		output_say("%.*s is starting: no answer to the handshake for %s",
			   SLICE_ARG(document_text(server, "name")),
			   text_format_age(number_of(server, "starting_ms"), age));
}

/* Likewise: what keeps in a server that has a sandbox. */
static void print_sandbox(const json_t *server)
{
	struct slice sandbox = document_text(server, "sandbox");
	struct slice lacking = document_text(server, "sandbox_lacks");

	if (sandbox.n == 0 && lacking.n > 0)
		output_say("%.*s is in no sandbox, which lacks %.*s",
			   SLICE_ARG(document_text(server, "name")), SLICE_ARG(lacking));
	if (sandbox.n > 0)
		output_say("%.*s is in a sandbox: %.*s%s%.*s",
			   SLICE_ARG(document_text(server, "name")), SLICE_ARG(sandbox),
			   lacking.n > 0 ? "; the kernel lacks " : "", SLICE_ARG(lacking));
}

/* What somebody should look at, the worst first. */
static void print_problems(const json_t *report, const char *title)
{
	const json_t *problems = json_object_get(report, "problems");

	if (json_array_size(problems) > 0)
		fputs(title, stdout);
	for (size_t i = 0; i < json_array_size(problems); i++)
		output_say("%.*s", SLICE_ARG(document_text(json_array_get(problems, i), "text")));
}

static void print_servers(const json_t *report)
{
	const json_t *servers = json_object_get(report, "servers");

	print_rows(servers, server_columns, ARRAY_LEN(server_columns));
	for (size_t i = 0; i < json_array_size(servers); i++) {
		print_start(json_array_get(servers, i));
		print_sandbox(json_array_get(servers, i));
	}
}

void show_servers(const json_t *report)
{
	print_servers(report);
	print_problems(report, "");
}

static const char *plural(uint64_t count, const char *ending)
{
	return count == 1 ? "" : ending;
}

/* A line, where there is an audit. */
static void print_audit(const json_t *audit)
{
	struct slice error = document_text(audit, "last_error");
	bool works = json_is_true(json_object_get(audit, "works"));
	bool refuses = !works && json_is_true(json_object_get(audit, "required"));
	uint64_t written = number_of(audit, "written");

	if (json_is_object(audit))
		output_say("audit to %.*s %s%s, %llu record%s written, %llu lost%s%.*s",
			   SLICE_ARG(document_text(audit, "to")), works ? "works" : "fails",
			   refuses ? ", and calls are refused (audit.required)" : "",
			   (unsigned long long)written, plural(written, "s"),
			   (unsigned long long)number_of(audit, "lost"),
			   error.n == 0 ? "" :
			   works        ? "; it failed before: " :
					  ": ",
			   SLICE_ARG(error));
}

void show_status(const json_t *report)
{
	struct slice state = document_text(report, "state");
	/* How long it has been up, not how long it drains. */
	bool is_draining = slice_is_equal(state, SLICE_LIT("draining"));
	unsigned long long connections = number_of(report, "connections");
	unsigned long long processes = number_of(report, "processes");
	unsigned long long calls = number_of(report, "calls");
	struct slice node = document_text(report, "node");
	char age[TEXT_AGE_BYTES];

	output_say(
		"mcpgated %.*s%s%.*s: %.*s%s for %s, %llu connection%s, %llu of %llu sessions, %llu "
		"process%s, %llu call%s in flight",
		SLICE_ARG(document_text(report, "version")), node.n > 0 ? ", node " : "",
		SLICE_ARG(node), SLICE_ARG(state), is_draining ? ", up" : "",
		text_format_age(number_of(report, "uptime_ms"), age), connections,
		plural(connections, "s"), (unsigned long long)number_of(report, "sessions"),
		(unsigned long long)number_of(report, "sessions_max"), processes,
		plural(processes, "es"), calls, plural(calls, "s"));
	print_audit(json_object_get(report, "audit"));
	putchar('\n');
	print_servers(report);
	print_problems(report, "\nneeds attention:\n");
}

/* ---- check ---- */

/* Whether --ignore has its kind, or what it is about. */
static bool is_ignored(const struct line *line, const json_t *problem)
{
	struct slice ignored = slice_or_empty(line->ignore);
	struct slice about = document_text(problem, "about");

	return slice_has_part(ignored, ',', document_text(problem, "kind")) ||
	       (about.n > 0 && slice_has_part(ignored, ',', about));
}

/* The worst comes first. */
static void drop_ignored(const struct line *line, json_t *answer)
{
	json_t *problems = json_object_get(answer, "problems");

	for (size_t i = json_array_size(problems); i-- > 0;)
		if (is_ignored(line, json_array_get(problems, i)))
			json_array_remove(problems, i);
	if (json_is_array(problems))
		json_object_set_new(answer, "verdict",
				    json_array_size(problems) > 0 ?
					    json_incref(json_object_get(json_array_get(problems, 0),
									"severity")) :
					    json_string("ok"));
}

int show_check(const struct line *line)
{
	struct line own = *line;
	const json_t *problems;
	struct slice verdict;
	json_auto_t *answer = NULL;
	int status;

	own.is_json = false;
	answer = line_ask(&own, "GET", mem_strdup("/check"), line_no_body);
	drop_ignored(line, answer);
	problems = json_object_get(answer, "problems");
	verdict = document_text(answer, "verdict");
	status = slice_is_equal(verdict, SLICE_LIT("ok"))   ? 0 :
		 slice_is_equal(verdict, SLICE_LIT("warn")) ? CHECK_LOOK :
							      CHECK_FAILING;
	if (answer != NULL && line->is_json) {
		json_dumpf(answer, stdout, JSON_ENSURE_ASCII);
		putchar('\n');
	}
	for (size_t i = 0; i < json_array_size(problems) && !line->is_json; i++) {
		const json_t *problem = json_array_get(problems, i);

		escape_printf(stdout, "%-8.*s %.*s", SLICE_ARG(document_text(problem, "severity")),
			      SLICE_ARG(document_text(problem, "text")));
	}
	if (status == 0 && !line->is_json)
		puts("ok       nothing needs attention");
	return status;
}

/* ---- the others ---- */

static const struct column process_columns[] = {
#define FACTS_OF_PROCESS
#include "admin/facts.def"
};

static const struct column session_columns[] = {
#define FACTS_OF_SESSION
#include "admin/facts.def"
};

static const struct column stream_columns[] = {
#define FACTS_OF_STREAM
#include "admin/facts.def"
};

static const struct column denial_columns[] = {
#define FACTS_OF_DENIAL
#include "admin/facts.def"
};

void show_list(const json_t *report)
{
	static const struct {
		const char *member; /* which no other report has */
		const struct column *columns;
		size_t count;
	} lists[] = {
		{ "processes", process_columns, ARRAY_LEN(process_columns) },
		{ "sessions", session_columns, ARRAY_LEN(session_columns) },
		{ "streams", stream_columns, ARRAY_LEN(stream_columns) },
		{ "entries", denial_columns, ARRAY_LEN(denial_columns) },
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const json_t *rows = json_object_get(report, lists[i].member);

		if (rows != NULL)
			print_rows(rows, lists[i].columns, lists[i].count);
	}
}

void show_log_line(const json_t *line)
{
	uint64_t at_ms = number_of(line, "at_ms");
	time_t at = (time_t)(at_ms / 1000);
	at_end(buf_fini) struct buf text = { 0 };
	char stamp[32];
	struct tm local;

	localtime_r(&at, &local);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
	escape_append(&text, document_text(line, "text"), "\t");
	printf("%s.%03d [%llu] %s\n", stamp, (int)(at_ms % 1000),
	       (unsigned long long)number_of(line, "pid"), buf_terminate(&text));
	fflush(stdout);
}

void show_tools(const json_t *tools)
{
	static const struct column columns[] = {
		{ "name", 1, "TOOL", KIND_OFFER },
		{ "description", 2, "DESCRIPTION", KIND_DESCRIPTION },
	};

	print_rows(tools, columns, ARRAY_LEN(columns));
}

void show_prompts(const json_t *prompts)
{
	static const struct column columns[] = {
		{ "name", 1, "PROMPT", KIND_OFFER },
		{ "arguments", 2, "ARGUMENTS", KIND_ARGUMENTS },
		{ "description", 3, "DESCRIPTION", KIND_DESCRIPTION },
	};

	print_rows(prompts, columns, ARRAY_LEN(columns));
}

/* A template is a row as a resource is, with its pattern as the URI. */
void show_resources(const json_t *resources, const json_t *templates)
{
	static const struct column columns[] = {
		{ "uri", 1, "URI OR TEMPLATE", KIND_OFFER },
		{ "name", 2, "NAME", KIND_OFFER },
		{ "mimeType", 3, "TYPE", KIND_OFFER },
		{ "description", 4, "DESCRIPTION", KIND_DESCRIPTION },
	};
	json_auto_t *rows = json_copy((json_t *)(uintptr_t)resources);

	for (size_t i = 0; i < json_array_size(templates); i++) {
		json_t *row = json_copy(json_array_get(templates, i));

		json_object_set(row, "uri", json_object_get(row, "uriTemplate"));
		json_array_append_new(rows, row);
	}
	print_rows(rows, columns, ARRAY_LEN(columns));
}

/*
 * ---- top ----
 *
 * Each view is a report of the daemon, and what has changed since the one before. On a terminal
 * it is written over the last one, line by line, so that nothing flickers; lines that are too
 * long are cut by the terminal.
 */

#define DELAY_S 2.0
#define DELAY_MIN_S 0.1
#define DELAY_MAX_S 3600.0
#define VIEWS_MAX 1000000000L
#define ROWS_DEFAULT 24

#define HOME "\x1b[H"
#define NO_WRAP "\x1b[?7l"
#define WRAP "\x1b[?7h"
#define REST_OF_LINE "\x1b[K"
#define REST_OF_SCREEN "\x1b[J"

static volatile sig_atomic_t is_over;

static void on_signal(not_used int number)
{
	is_over = 1;
}

/* ---- numbers ---- */

static bool is_retiring(const json_t *server)
{
	return slice_is_equal(document_text(server, "state"), SLICE_LIT("retiring"));
}

/* What the report before said of it. One that a reload has retired since then has done nothing more, as far as is known. */
static const json_t *find_before(const json_t *report, const json_t *server)
{
	const json_t *servers = json_object_get(report, "servers");

	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *before = json_array_get(servers, i);

		if (slice_is_equal(document_text(before, "name"), document_text(server, "name")) &&
		    is_retiring(before) == is_retiring(server))
			return before;
	}
	return report != NULL && is_retiring(server) ? server : NULL;
}

/* What a counter has become more by; of a daemon that has begun anew, all of it. */
static uint64_t growth(const json_t *now, const json_t *before, const char *member)
{
	uint64_t n = number_of(now, member), b = number_of(before, member);

	return n >= b ? n - b : n;
}

static void read_latencies(const json_t *now, const json_t *before, struct latency_histogram *h_r)
{
	const json_t *counts = json_object_get(now, "answer_buckets");
	const json_t *old = json_object_get(before, "answer_buckets");
	bool is_anew = number_of(now, "answered") < number_of(before, "answered");

	*h_r = (struct latency_histogram){ .count = 0 };
	for (size_t i = 0; i < LATENCY_HISTOGRAM_BUCKETS; i++) {
		json_int_t n = json_integer_value(json_array_get(counts, i));
		json_int_t b = is_anew ? 0 : json_integer_value(json_array_get(old, i));

		h_r->buckets[i] = n > b ? (uint64_t)(n - b) : 0;
		h_r->count += h_r->buckets[i];
	}
}

/* ---- a view ---- */

static const struct text_table_column top_columns[] = {
	{ "SERVER", false }, { "STATE", false },  { "PROCESSES", true }, { "SESSIONS", true },
	{ "CALLS", true },   { "WAITING", true }, { "CALLS/S", true },   { "ERRORS/S", true },
	{ "P50", true },     { "P95", true },     { "P99", true },
};

static void printf_like(2, 3) add_cell(struct text_table *table, const char *format, ...)
{
	char text[40];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text_table_add(table, slice_str(text));
}

static void add_number(struct text_table *table, uint64_t number)
{
	add_cell(table, "%llu", (unsigned long long)number);
}

static void add_latency(struct text_table *table, const struct latency_histogram *h,
			unsigned int permille)
{
	uint64_t ms = latency_histogram_quantile_ms(h, permille);

	if (h->count == 0)
		text_table_add(table, SLICE_LIT("-"));
	else if (ms == UINT64_MAX)
		add_cell(table, ">%.0fs",
			 (double)latency_histogram_bound_ms(LATENCY_HISTOGRAM_BUCKETS - 2) / 1000);
	else if (ms < 1000)
		add_cell(table, "<%.0fms", (double)ms);
	else
		add_cell(table, "<%.1fs", (double)ms / 1000);
}

static void add_server(struct text_table *table, const json_t *now, const json_t *before,
		       double seconds)
{
	struct latency_histogram latencies;
	uint64_t failed = growth(now, before, "failed");

	text_table_add(table, document_text(now, "name"));
	text_table_add(table, document_text(now, "state"));
	add_number(table, number_of(now, "processes"));
	add_number(table, number_of(now, "sessions"));
	add_number(table, number_of(now, "calls"));
	add_number(table, number_of(now, "waiting"));
	add_cell(table, "%.1f", (double)(growth(now, before, "answered") + failed) / seconds);
	add_cell(table, "%.1f", (double)(growth(now, before, "errors") + failed) / seconds);
	read_latencies(now, before, &latencies);
	add_latency(table, &latencies, 500);
	add_latency(table, &latencies, 950);
	add_latency(table, &latencies, 990);
}

/* before: NULL with the first view. */
static void write_view(const json_t *now, const json_t *before, FILE *out)
{
	const json_t *servers = json_object_get(now, "servers");
	uint64_t up_ms = number_of(now, "uptime_ms"), old_ms = number_of(before, "uptime_ms");
	double seconds = (double)(up_ms > old_ms ? up_ms - old_ms : up_ms) / 1000;
	at_end(text_table_fini) struct text_table table = { .count = 0 };
	at_end(mem_free) char *left_out = NULL;

	if (seconds < 0.001)
		seconds = 0.001;
	escape_printf(out, "mcpgated %.*s: %.*s; of %s %.1f s",
		      SLICE_ARG(document_text(now, "version")),
		      SLICE_ARG(document_text(now, "state")),
		      before != NULL ? "the last" : "all its", seconds);
	fprintf(out, "%llu connections, %llu sessions, %llu processes, %llu calls in flight\n\n",
		(unsigned long long)number_of(now, "connections"),
		(unsigned long long)number_of(now, "sessions"),
		(unsigned long long)number_of(now, "processes"),
		(unsigned long long)number_of(now, "calls"));
	text_table_init(&table, top_columns, ARRAY_LEN(top_columns));
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i);

		add_server(&table, server, find_before(before, server), seconds);
	}
	left_out = fit(&table);
	text_table_print(&table, out);
	if (left_out[0] != '\0')
		fprintf(out, "%s\n", left_out);
}

/* ---- the screen ---- */

static size_t count_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row :
										 ROWS_DEFAULT;
}

/* As many lines as there is room for; the last row stays empty, so that nothing scrolls. */
static void show_on_terminal(struct slice text)
{
	fputs(HOME NO_WRAP, stdout);
	for (size_t left = count_rows() - 1; left > 0 && text.n > 0; left--) {
		struct slice row = slice_cut(&text, '\n');

		printf("%.*s" REST_OF_LINE "\r\n", SLICE_ARG(row));
	}
	fputs(REST_OF_SCREEN WRAP, stdout);
}

static void show_view(const json_t *now, const json_t *before, bool is_terminal)
{
	at_end(mem_free) char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (!is_terminal) {
		write_view(now, before, stdout);
		return;
	}
	out = mem_open_text(&text, &size);
	write_view(now, before, out);
	mem_close_text(out);
	show_on_terminal(slice_of(text, size));
}

/* False: it is no number, or not between these. */
static bool read_number(const char *text, double least, double most, double *number_r)
{
	char *end;

	*number_r = strtod(text, &end);
	return end != text && *end == '\0' && *number_r >= least && *number_r <= most;
}

static int show_views(const struct line *line, long views, double delay_s, bool is_terminal)
{
	struct timespec delay = { .tv_sec = (time_t)delay_s };
	json_t *before = NULL;
	int status = 0;

	delay.tv_nsec = (long)((delay_s - (double)delay.tv_sec) * 1e9);
	while (!is_over) {
		json_t *now = line_ask(line, "GET", mem_strdup("/status"), line_no_body);

		if (now == NULL) {
			status = EXIT_FAILED;
			break;
		}
		if (!line->is_json)
			show_view(now, before, is_terminal);
		fflush(stdout);
		json_decref(before);
		before = now;
		if (--views == 0)
			break;
		nanosleep(&delay, NULL); /* a signal ends it */
	}
	json_decref(before);
	return status;
}

int top_run(const struct line *line)
{
	bool is_terminal = isatty(STDOUT_FILENO) && !line->is_json;
	const struct sigaction end = { .sa_handler = on_signal };
	double delay_s = DELAY_S, views = is_terminal ? 0 : 1;

	if (line->delay != NULL && !read_number(line->delay, DELAY_MIN_S, DELAY_MAX_S, &delay_s))
		return line_refuse_usage("-d takes seconds, from 0.1 to 3600");
	if (line->views != NULL && !read_number(line->views, 1, (double)VIEWS_MAX, &views))
		return line_refuse_usage("-n takes a number, from 1 on");
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	if (is_terminal)
		fputs(HOME REST_OF_SCREEN, stdout);
	return show_views(line, (long)views, delay_s, is_terminal);
}
