/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a line into a fixed buffer and writes it with one call. No rotation, no threads, no
 * blocking: if the log is a pipe whose reader is stuck, lines are dropped and counted. What does
 * not fit into a line is cut off at a character or field boundary, so every line is complete.
 * REL-47, REL-48.
 */
#include "obs/log.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/unicode.h"
#include "obs/line.h"

#define VALUE_MAX_BYTES 1024
#define NUMBER_MAX_BYTES 20
#define OTHER_FORMAT_MS (60 * 1000)

static const struct {
	enum log_level level;
	unsigned int pace;
	const char *name;
	const char *help;
} events[] = {
#define X(event, at, cause, text, help) [LOG_EVENT_##event] = { LOG_LEVEL_##at, cause, text, help },
#include "obs/log_events.def"
};

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static struct {
	int fd;
	enum log_format format;
	enum log_format other; /* also accepted from other processes until other_until_ms */
	uint64_t other_until_ms;
	const char *process;
	uint64_t count;
	uint64_t dropped;
	bool is_torn; /* the last line was written only in part */
} sink = { .fd = STDERR_FILENO };

enum log_level log_threshold = LOG_LEVEL_INFO;
bool log_shows_payloads;

void log_set_fd(int fd)
{
	sink.fd = fd;
	sink.is_torn = false;
}

void log_set_level(enum log_level level, enum log_format format)
{
	enum log_format before = sink.format;

	CHECK(level <= LOG_LEVEL_DEBUG && format <= LOG_FORMAT_JSON);
	log_threshold = level;
	sink.format = format;
	log_expect_format(before);
}

void log_expect_format(enum log_format format)
{
	if (format == sink.format)
		return;
	sink.other = format;
	sink.other_until_ms = clock_now_ms() + OTHER_FORMAT_MS;
}

void log_set(int fd, enum log_level level, enum log_format format)
{
	log_set_fd(fd);
	log_set_level(level, format);
	sink.other_until_ms = 0;
}

void log_set_process(const char *name)
{
	sink.process = name;
}

bool log_is_on(enum log_event event)
{
	CHECK(event < LOG_EVENT_COUNT);
	return events[event].level <= log_threshold;
}

uint64_t log_line_count(void)
{
	return sink.count;
}

struct log_event_row log_event_get(enum log_event event)
{
	CHECK(event < LOG_EVENT_COUNT);
	return (struct log_event_row){ level_names[events[event].level], events[event].name,
				       events[event].help };
}

static bool value_needs_quotes(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' ||
		    (unsigned char)s.p[i] >= 0x7F)
			return true;
	}
	return s.n == 0;
}

static void line_put_field(struct text_line *line, const struct log_field *field)
{
	CHECK(field->key != NULL);
	if (!line_has_room(line, strlen(field->key) + sizeof(",\"\":\"") + NUMBER_MAX_BYTES +
					 TEXT_LINE_END_BYTES))
		return;
	line_puts(line, sink.format == LOG_FORMAT_JSON ? ",\"" : " ");
	line_puts(line, field->key);
	line_puts(line, sink.format == LOG_FORMAT_JSON ? "\":" : "=");
	if (field->is_number) {
		line_put_number(line, field->number);
		return;
	}
	if (sink.format == LOG_FORMAT_JSON || value_needs_quotes(field->text)) {
		line_puts(line, "\"");
		line_put_shown(line, field->text, VALUE_MAX_BYTES);
		line_puts(line, "\"");
	} else {
		line_put_shown(line, field->text, VALUE_MAX_BYTES);
	}
}

static void line_put_head(struct text_line *line, enum log_event event)
{
	bool is_json = sink.format == LOG_FORMAT_JSON;

	line_puts(line, is_json ? "{\"time\":\"" : "");
	line_put_time(line, clock_wall_ms());
	line_puts(line, is_json ? "\",\"level\":\"" : " ");
	line_puts(line, level_names[events[event].level]);
	line_puts(line, is_json ? "\",\"event\":\"" : " ");
	line_puts(line, events[event].name);
	line_puts(line, is_json ? "\"" : "");
	if (sink.process != NULL)
		line_put_field(line, &(struct log_field)LOG_STR("process", sink.process));
}

/* Returns false, without writing, if the write would block; files are always ready. */
static bool sink_write(const char *bytes, size_t size)
{
	struct pollfd p = { .fd = sink.fd, .events = POLLOUT };
	ssize_t n;

	CHECK(size > 0);
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	do {
		n = write(sink.fd, bytes, size);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		sink.is_torn = (size_t)n < size; /* a disk that has just become full */
	return n >= 0 && (size_t)n == size;
}

static bool line_send(const struct text_line *line)
{
	if (sink.is_torn && !sink_write("\n", 1))
		return false;
	return sink_write(line->bytes, line->length);
}

/* ---- paces ---- */

/* Those that caused lines lately: a sieve, in which one that was quiet gives way to another. */
#define CAUSER_WAYS 4
#define CAUSER_SETS 256

struct causer {
	uint64_t key; /* of the event and who caused it */
	uint64_t second;
	unsigned int lines;
};

static struct causer causers[CAUSER_SETS][CAUSER_WAYS];

static struct {
	uint64_t second;
	unsigned int lines;
	unsigned int left_out;
} paced[LOG_EVENT_COUNT];

static struct causer *get_causer(uint64_t key)
{
	struct causer *set = causers[(key >> 32) % CAUSER_SETS];
	struct causer *found = set;

	for (size_t i = 0; i < CAUSER_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].second < found->second)
			found = &set[i];
	}
	*found = (struct causer){ .key = key };
	return found;
}

bool log_may_say(enum log_event event, uint64_t number)
{
	uint64_t second = clock_now_ms() / 1000 + 1;
	uint64_t key = (number * 0x9E3779B97F4A7C15u ^ (event + 1)) * 0xD6E8FEB86659FD93u;
	unsigned int pace = events[event].pace;
	struct causer *causer = get_causer(key);

	CHECK(event < LOG_EVENT_COUNT && pace > 0);
	if (causer->second != second)
		*causer = (struct causer){ .key = key, .second = second };
	if (paced[event].second != second) {
		paced[event].second = second;
		paced[event].lines = 0;
	}
	if (causer->lines >= pace || paced[event].lines >= pace * LOG_CAUSERS_MAX) {
		paced[event].left_out++;
		return false;
	}
	causer->lines++;
	paced[event].lines++;
	return true;
}

/* ---- lines ---- */

static void line_put_left_out(struct text_line *line, enum log_event event)
{
	if (paced[event].left_out > 0)
		line_put_field(line, &(struct log_field)LOG_INT("left_out", paced[event].left_out));
	paced[event].left_out = 0;
}

/* Returns false if the line is lost. */
static bool line_write(enum log_event event, const struct log_field *fields)
{
	struct text_line line;

	line_init(&line, sizeof(line.bytes));
	line_put_head(&line, event);
	for (; fields->key != NULL; fields++)
		line_put_field(&line, fields);
	line_put_left_out(&line, event);
	line_puts(&line, sink.format == LOG_FORMAT_JSON ? "}\n" : "\n");
	CHECK(line.bytes[line.length - 1] == '\n'); /* fields leave room for it */
	return line_send(&line);
}

/* Once there is room again, first reports how many lines were lost. */
static void report_dropped(void)
{
	const struct log_field lost[] = { LOG_INT("lines", sink.dropped), { .key = NULL } };

	if (sink.dropped > 0 && line_write(LOG_EVENT_LOG_DROPPED, lost))
		sink.dropped = 0;
}

void log_write(enum log_event event, const struct log_field *fields)
{
	CHECK(event < LOG_EVENT_COUNT);
	sink.count++;
	report_dropped();
	if (!line_write(event, fields))
		sink.dropped++;
}

/* ---- lines of another process ---- */

/*
 * Takes text of this form off the front of *rest: `0` stands for a digit, `a` for a run of letters,
 * anything else for itself.
 */
static bool take_form(struct slice *rest, const char *form)
{
	for (; *form != '\0'; form++) {
		size_t n = 0;

		if (*form == 'a')
			while (n < rest->n &&
			       ((rest->p[n] >= 'a' && rest->p[n] <= 'z') || rest->p[n] == '_'))
				n++;
		else
			n = rest->n > 0 && (*form == '0' ? rest->p[0] >= '0' && rest->p[0] <= '9' :
							   rest->p[0] == *form);
		if (n == 0)
			return false;
		*rest = slice_of(rest->p + n, rest->n - n);
	}
	return true;
}

/* Takes one visible character. */
static bool take_seen(struct slice *rest)
{
	size_t n = text_utf8_length(*rest);

	if (n == 0 || unicode_is_hidden(unicode_decode(slice_of(rest->p, n))))
		return false;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

static bool take_hex(struct slice *rest, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (i >= rest->n || !isxdigit((unsigned char)rest->p[i]))
			return false;
	*rest = slice_of(rest->p + count, rest->n - count);
	return true;
}

/* Takes a quoted text as line_put_shown writes it. */
static bool take_quoted(struct slice *rest)
{
	while (!take_form(rest, "\"")) {
		if (!take_form(rest, "\\")) {
			if (!take_seen(rest))
				return false;
		} else if (!take_form(rest, "\"") && !take_form(rest, "\\") &&
			   !(take_form(rest, "u") && take_hex(rest, 4))) {
			return false;
		}
	}
	return true;
}

/* Takes an unquoted text value; numbers are not quoted either. */
static bool take_plain(struct slice *rest)
{
	size_t n = 0;

	while (n < rest->n && !value_needs_quotes(slice_of(rest->p + n, 1)))
		n++;
	*rest = slice_of(rest->p + n, rest->n - n);
	return n > 0;
}

static bool take_number(struct slice *rest)
{
	take_form(rest, "-");
	if (!take_form(rest, "0"))
		return false;
	while (take_form(rest, "0"))
		;
	return true;
}

/*
 * Takes a field as line_put_field writes it. Keys of the fixed part at the front must not be
 * repeated: JSON parsers use the last one.
 */
static bool take_field(struct slice *rest, bool is_json)
{
	struct slice key;

	if (!take_form(rest, is_json ? ",\"" : " "))
		return false;
	key = slice_of(rest->p, 0);
	while (key.n < rest->n && (islower((unsigned char)key.p[key.n]) ||
				   isdigit((unsigned char)key.p[key.n]) || key.p[key.n] == '_'))
		key.n++;
	if (slice_has_part(SLICE_LIT("time level event process"), ' ', key))
		return false;
	*rest = slice_of(rest->p + key.n, rest->n - key.n);
	if (key.n == 0 || !take_form(rest, is_json ? "\":" : "="))
		return false;
	if (take_form(rest, "\""))
		return take_quoted(rest);
	return is_json ? take_number(rest) : take_plain(rest);
}

/* Whether log_write could have written the line in a process of this name. */
static bool is_line_of(struct slice line, struct slice process, enum log_format format)
{
	bool is_json = format == LOG_FORMAT_JSON;
	struct slice rest = line;

	if (!take_form(&rest, is_json ? "{\"time\":\"0000-00-00T00:00:00.000Z\",\"level\":\"a\","
					"\"event\":\"a\",\"process\":\"" :
					"0000-00-00T00:00:00.000Z a a process=") ||
	    !slice_has_prefix(rest, process))
		return false;
	rest = slice_of(rest.p + process.n, rest.n - process.n);
	if (is_json && !take_form(&rest, "\""))
		return false;
	while (rest.n > 0 && !(is_json && slice_is_equal(rest, SLICE_LIT("}"))))
		if (!take_field(&rest, is_json))
			return false;
	return !is_json || rest.n > 0;
}

bool log_relay_line(struct slice line, const char *process)
{
	struct text_line copy;

	bool is_good = is_line_of(line, slice_str(process), sink.format) ||
		       (clock_now_ms() < sink.other_until_ms &&
			is_line_of(line, slice_str(process), sink.other));

	if (line.n >= sizeof(copy.bytes) || !is_good)
		return false;
	line_init(&copy, sizeof(copy.bytes));
	line_put(&copy, line);
	line_puts(&copy, "\n");
	sink.count++;
	report_dropped();
	if (!line_send(&copy))
		sink.dropped++;
	return true;
}

/* ---- messages ---- */

/* Whoever sends many must not drive other lines out of the log. */
static bool may_show_payload(void)
{
	static uint64_t second;
	static unsigned int shown, skipped;
	uint64_t now = clock_now_ms() / 1000;

	if (now != second) {
		if (skipped > 0)
			LOG(PAYLOADS_SKIPPED, LOG_INT("messages", skipped));
		second = now;
		shown = skipped = 0;
	}
	if (shown < LOG_PAYLOADS_PER_SECOND)
		shown++;
	else
		skipped++;
	return skipped == 0;
}

void log_write_payload(const char *way, const char *server, const struct slice *parts, size_t count)
{
	char text[VALUE_MAX_BYTES + 4]; /* with the rest of a character that begins in there */
	size_t bytes = 0, n = 0;

	CHECK(way != NULL && count > 0);
	if (!log_is_on(LOG_EVENT_PAYLOAD) || !may_show_payload())
		return;
	for (size_t i = 0; i < count; i++) {
		size_t room = sizeof(text) - n;
		size_t taken = parts[i].n < room ? parts[i].n : room;

		if (taken > 0)
			memcpy(text + n, parts[i].p, taken);
		n += taken;
		bytes += parts[i].n;
	}
	if (server != NULL)
		LOG(PAYLOAD, LOG_STR("way", way), LOG_STR("server", server),
		    LOG_INT("bytes", bytes), LOG_SLICE("text", slice_of(text, n)));
	else
		LOG(PAYLOAD, LOG_STR("way", way), LOG_INT("bytes", bytes),
		    LOG_SLICE("text", slice_of(text, n)));
}
