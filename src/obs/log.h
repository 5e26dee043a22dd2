/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line per fact, `time level event key=value …`, or the same as a JSON object. The
 * rows of log_events.def define event names and levels. Foreign bytes are escaped and truncated: a
 * line never contains raw control characters, invisible characters or characters that change the
 * writing direction. Writing never blocks: a line that cannot be written is dropped and counted,
 * and the next line that can be written reports the count.
 *
 * 	LOG(CHILD_REAPED, LOG_STR("server", name), LOG_INT("pid", pid));
 *
 * What a caller or a server can cause has a pace in log_events.def: lines beyond that are counted,
 * and the next line of the event has the number as `left_out`. Who causes it must be said:
 *
 * 	LOG_BY(TASK_REFUSED, holder_number(principal, peer), LOG_STR("server", name));
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "obs/line.h"

#define LOG_LINE_MAX TEXT_LINE_BYTES

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum log_event {
#define X(event, level, cause, name, help) LOG_EVENT_##event,
#include "obs/log_events.def"
	LOG_EVENT_COUNT
};

/* LOG_LEVEL_OF_<event>: the level of each event, as a constant. */
enum {
#define X(event, level, cause, name, help) LOG_LEVEL_OF_##event = LOG_LEVEL_##level,
#include "obs/log_events.def"
};

/* LOG_PACE_OF_<event>: how many lines a second one caller or server may cause; 0: see BY_US. */
enum {
#define BY_US 0
#define BY_CALLER(n) n
#define BY_SERVER(n) n
#define X(event, level, cause, name, help) LOG_PACE_OF_##event = cause,
#include "obs/log_events.def"
};

/* The columns of a row of log_events.def. */
struct log_event_row {
	const char *level;
	const char *name;
	const char *help;
};

struct log_field {
	const char *key; /* NULL ends the array */
	struct slice text;
	int64_t number;
	bool is_number;
};

#define LOG_STR(k, string)                            \
	{                                             \
		.key = (k), .text = slice_str(string) \
	}
#define LOG_SLICE(k, s)                 \
	{                               \
		.key = (k), .text = (s) \
	}
#define LOG_INT(k, value)                                                 \
	{                                                                 \
		.key = (k), .number = (int64_t)(value), .is_number = true \
	}

#define LOG_IF(event, is_wanted, ...)                                                          \
	do {                                                                                   \
		if ((int)LOG_LEVEL_OF_##event <= (int)log_threshold && (is_wanted))            \
			log_write(LOG_EVENT_##event,                                           \
				  (const struct log_field[]){ __VA_ARGS__, { .key = NULL } }); \
	} while (0)

#define LOG(event, ...)                                                                     \
	do {                                                                                \
		_Static_assert((int)LOG_PACE_OF_##event == 0, "who causes it? See LOG_BY"); \
		LOG_IF(event, true, __VA_ARGS__);                                           \
	} while (0)

/* causer: a number for the caller or server, the same whenever it is the same one. */
#define LOG_BY(event, causer, ...)                                                              \
	do {                                                                                    \
		_Static_assert((int)LOG_PACE_OF_##event > 0, "nobody outside causes it: LOG");  \
		LOG_IF(event, log_may_say(LOG_EVENT_##event, (uint64_t)(causer)), __VA_ARGS__); \
	} while (0)

/* The lines of one event that all causers together may cause in a second, in paces. */
#define LOG_CAUSERS_MAX 10

/* Whether messages are logged: log.payloads. */
extern bool log_shows_payloads;

/* Events above this level are not written. Set by log_set and log_set_level. */
extern enum log_level log_threshold;

/* Sets descriptor, level and format. The descriptor is borrowed; the caller keeps it open. */
void log_set(int fd, enum log_level level, enum log_format format);
/* Sets level and format, and keeps the descriptor. */
void log_set_level(enum log_level level, enum log_format format);
/*
 * For one minute, log_relay_line accepts this format as well: other processes change theirs
 * slightly before or after this one. log_set_level does this for the previous format.
 */
void log_expect_format(enum log_format format);
/* Sets the descriptor, and keeps level and format. */
void log_set_fd(int fd);
/* Every line gets the field `process=NAME` first. `name` is a string literal, not copied. */
void log_set_process(const char *name);
bool log_is_on(enum log_event event);
/* Number of lines so far, including lost ones. */
uint64_t log_line_count(void);
struct log_event_row log_event_get(enum log_event event);
/*
 * Writes a line that another process, of this name, formatted with log_write. `line` comes without
 * its line feed and is written unchanged. Returns false, and writes nothing, if log_write could not
 * have produced the line or if it names another process.
 */
bool log_relay_line(struct slice line, const char *process) must_check;
/* Whether the causer may cause one more line of this event now; if not, it is counted. */
bool log_may_say(enum log_event event, uint64_t causer);
/*
 * Writes the event. `fields` ends with a NULL key. Use the macro LOG, which checks the level first.
 */
void log_write(enum log_event event, const struct log_field *fields);
/* As log_payload, whether messages are wanted or not. */
void log_write_payload(const char *way, const char *server, const struct slice *parts,
		       size_t count);

#define LOG_PAYLOADS_PER_SECOND 1000

/*
 * Logs a message, which these parts make together, truncated like any value; beyond
 * LOG_PAYLOADS_PER_SECOND they are only counted. `way`: "from_client", "to_server", "from_server"
 * or "to_client"; `server`: its name, or NULL.
 */
static inline void log_payload(const char *way, const char *server, const struct slice *parts,
			       size_t count)
{
	if (log_shows_payloads)
		log_write_payload(way, server, parts, count);
}
