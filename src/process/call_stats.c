/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tools is so small that no choice of names makes lookups slow: its hash needs no
 * secret.
 */
#include "process/call_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"

static const struct slice other = SLICE("other");

const char *call_status_name(enum call_status status)
{
	static const char *const names[] = {
		[CALL_OK] = "ok",         [CALL_TOOL_ERROR] = "tool_error",
		[CALL_ERROR] = "error",   [CALL_CANCELLED] = "cancelled",
		[CALL_FAILED] = "failed",
	};

	CHECK(status < CALL_STATUSES);
	return names[status];
}

/* The tool's name is stored behind the struct, in the same allocation. */
static struct call_series *series_new(struct slice method, struct slice tool)
{
	struct call_series *series = mem_zalloc(sizeof(*series) + tool.n);
	char *name = (char *)(series + 1);

	if (tool.n > 0)
		memcpy(name, tool.p, tool.n);
	series->method = method;
	series->tool = slice_of(name, tool.n);
	return series;
}

static struct call_series *find_tool(const struct call_stats *stats, struct slice tool)
{
	MAP_EACH(struct call_series, series, &stats->by_name, text_hash(0, tool), link)
		if (slice_is_equal(series->tool, tool))
			return series;
	return NULL;
}

static struct call_series *get_tool(struct call_stats *stats, const struct method *method,
				    struct slice tool)
{
	struct call_series *series = find_tool(stats, tool);

	if (series != NULL)
		return series;
	if (stats->other_tools == NULL)
		stats->other_tools = series_new(method->name, other);
	return stats->other_tools;
}

struct call_series *call_stats_get(struct call_stats *stats, const struct method *method,
				   struct slice tool)
{
	unsigned int number = method_number(method);

	CHECK(number < METHOD_NUMBERS);
	if (method->id == METHOD_TOOLS_CALL)
		return get_tool(stats, method, tool);
	if (stats->methods[number] == NULL)
		stats->methods[number] =
			series_new(method->name.n > 0 ? method->name : other, slice_of(NULL, 0));
	return stats->methods[number];
}

bool call_stats_has_room(const struct call_stats *stats)
{
	return stats->tool_count < CALL_STATS_TOOLS;
}

void call_stats_note_tool(struct call_stats *stats, struct slice tool)
{
	struct call_series *series;

	if (!call_stats_has_room(stats) || tool.n == 0 || tool.n > CALL_STATS_NAME_BYTES ||
	    slice_is_equal(tool, other) || find_tool(stats, tool) != NULL)
		return;
	series = series_new(SLICE_LIT("tools/call"), tool);
	stats->tools[stats->tool_count++] = series;
	map_insert_link(&stats->by_name, text_hash(0, tool), &series->link);
}

void call_series_end(struct call_series *series, enum call_status status, enum reason reason,
		     uint64_t took_ms, uint64_t now_ms)
{
	CHECK(status < CALL_STATUSES && reason < REASON_COUNT);
	series->ended[status]++;
	if (status == CALL_FAILED)
		series->failed[reason]++;
	latency_histogram_add(&series->duration, took_ms, now_ms);
}

void call_stats_note_refusal(struct call_stats *stats, const char *word)
{
	size_t i = 0;

	if (word[0] == '\0')
		word = other.p;
	while (i < stats->refused_count && strcmp(stats->refused[i].word, word) != 0)
		i++;
	CHECK(i < CALL_STATS_REFUSALS);
	stats->refused[i].word = word;
	stats->refused[i].count++;
	if (i == stats->refused_count)
		stats->refused_count++;
}

void call_stats_visit(const struct call_stats *stats, call_series_fn *on_series, void *arg)
{
	for (size_t i = 0; i < METHOD_NUMBERS; i++)
		if (stats->methods[i] != NULL)
			on_series(stats->methods[i], arg);
	for (size_t i = 0; i < stats->tool_count; i++)
		on_series(stats->tools[i], arg);
	if (stats->other_tools != NULL)
		on_series(stats->other_tools, arg);
}

void call_stats_fini(struct call_stats *stats)
{
	for (size_t i = 0; i < METHOD_NUMBERS; i++)
		free(stats->methods[i]);
	for (size_t i = 0; i < stats->tool_count; i++)
		free(stats->tools[i]);
	free(stats->other_tools);
	map_fini(&stats->by_name);
	*stats = (struct call_stats){ .tool_count = 0 };
}
