/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each view is a report of the daemon, and what has changed since the one before. On a terminal it is written over the last
 * one, line by line, so that nothing flickers; lines that are too long are cut by the terminal.
 */
#include "ctl/top.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "ctl/escape.h"
#include "ctl/text_table.h"
#include "obs/latency_histogram.h"

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

static void on_signal(int number)
{
	(void)number;
	is_over = 1;
}

/* ---- numbers ---- */

static uint64_t number_of(const json_t *object, const char *member)
{
	json_int_t value = json_integer_value(json_object_get(object, member));

	return value > 0 ? (uint64_t)value : 0;
}

static struct slice text_of(const json_t *object, const char *member)
{
	const json_t *text = json_object_get(object, member);

	return slice_of(json_string_value(text), json_string_length(text));
}

static bool is_retiring(const json_t *server)
{
	return slice_is_equal(text_of(server, "state"), SLICE_LIT("retiring"));
}

/* What the report before said of it. One that a reload has retired since then has done nothing more, as far as is known. */
static const json_t *find_before(const json_t *report, const json_t *server)
{
	const json_t *servers = json_object_get(report, "servers");

	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *before = json_array_get(servers, i);

		if (slice_is_equal(text_of(before, "name"), text_of(server, "name")) &&
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

static const struct text_table_column heads[] = {
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

	text_table_add(table, text_of(now, "name"));
	text_table_add(table, text_of(now, "state"));
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
	struct text_table table;
	struct buf head = { 0 };

	if (seconds < 0.001)
		seconds = 0.001;
	buf_append_str(&head, "mcpgated ");
	buf_append_slice(&head, text_of(now, "version"));
	buf_append_str(&head, ": ");
	buf_append_slice(&head, text_of(now, "state"));
	buf_printf(
		&head,
		", %llu connections, %llu sessions, %llu processes, %llu calls in flight; of %s %.1f s",
		(unsigned long long)number_of(now, "connections"),
		(unsigned long long)number_of(now, "sessions"),
		(unsigned long long)number_of(now, "processes"),
		(unsigned long long)number_of(now, "calls"),
		before != NULL ? "the last" : "all its", seconds);
	escape_print(out, "", buf_slice(&head), "");
	buf_fini(&head);
	fputc('\n', out);
	text_table_init(&table, heads, ARRAY_LEN(heads));
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i);

		add_server(&table, server, find_before(before, server), seconds);
	}
	text_table_print(&table, out);
	text_table_fini(&table);
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

static void show(const json_t *now, const json_t *before, bool is_terminal)
{
	char *text = NULL;
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
	free(text);
}

static void wait_for(double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds };

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL); /* a signal ends it */
}

/* False: it is no number, or not between these. */
static bool read_number(const char *text, double least, double most, double *number_r)
{
	char *end;

	*number_r = strtod(text, &end);
	return end != text && *end == '\0' && *number_r >= least && *number_r <= most;
}

static int run(const struct line *line, long views, double delay_s, bool is_terminal)
{
	json_t *before = NULL;
	int status = 0;

	while (!is_over) {
		json_t *now = line_ask(line, "GET", mem_strdup("/status"), line_no_body);

		if (now == NULL) {
			status = EXIT_FAILED;
			break;
		}
		if (!line->is_json)
			show(now, before, is_terminal);
		fflush(stdout);
		json_decref(before);
		before = now;
		if (--views == 0)
			break;
		wait_for(delay_s);
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
	return run(line, (long)views, delay_s, is_terminal);
}
