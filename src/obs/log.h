/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line per fact, `time level event key=value …`, or the same as a JSON object. Event
 * names and levels are the rows of log_events.def. Foreign bytes are escaped and cut; a line never
 * holds a raw control character, nor one that is not seen or turns the direction of writing. Writing never blocks: a line that does not fit is dropped and
 * counted, and the count is reported by the next line that does.
 *
 *	LOG(CHILD_EXIT, LOG_STR("server", name), LOG_INT("pid", pid));
 */
#ifndef MCPGATED_OBS_LOG_H
#define MCPGATED_OBS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"
#include "obs/line.h"

#define LOG_LINE_MAX TEXT_LINE_BYTES

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum log_event {
#define X(event, level, name, help) LOG_EVENT_##event,
#include "obs/log_events.def"
#undef X
	LOG_EVENT_COUNT
};

/* LOG_LEVEL_OF_<event>, a constant. */
enum {
#define X(event, level, name, help) LOG_LEVEL_OF_##event = LOG_LEVEL_##level,
#include "obs/log_events.def"
#undef X
};

/* The words of its row. */
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

#define LOG(event, ...)                                                                        \
	do {                                                                                   \
		if ((int)LOG_LEVEL_OF_##event <= (int)log_threshold)                           \
			log_write(LOG_EVENT_##event,                                           \
				  (const struct log_field[]){ __VA_ARGS__, { .key = NULL } }); \
	} while (0)

/* Events of a higher level are not written. Set by log_set. */
extern enum log_level log_threshold;

/* What the log is from now on. The descriptor is borrowed and stays the caller's. */
void log_set(int fd, enum log_level level, enum log_format format);
/* The same but for the descriptor, which stays. */
void log_set_level(enum log_level level, enum log_format format);
/*
 * Lines of other processes may have this format as well for a minute: they change it a little before this one or after it.
 * log_set_level expects the one before.
 */
void log_expect_format(enum log_format format);
/* Another descriptor, the rest as before. */
void log_set_fd(int fd);
/* Prepended to every line's fields as `process=…`; a literal. */
void log_set_process(const char *name);
bool log_is_on(enum log_event event);
/* Lines so far, with those that were lost. */
uint64_t log_line_count(void);
struct log_event_row log_event_get(enum log_event event);
/*
 * Writes out a line that the process of this name has formatted as log_write does, without its line feed; nothing is
 * put in it. False, and nothing written: it is no such line, or says that another process wrote it.
 */
bool log_relay_line(struct slice line, const char *process) must_check;
/* fields ends with a NULL key. Use LOG. */
void log_write(enum log_event event, const struct log_field *fields);

#endif
