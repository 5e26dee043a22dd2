/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/audit.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"

#define SCHEMA_VERSION 1
#define FIXED_BYTES_MAX 128 /* of texts of our own */
#define NUMBER_BYTES_MAX 20
#define SAID_EVERY_MS 10000

static const struct {
	const char *name;
	struct slice lead; /* of a text, in a line; of others without the quote at its end */
	size_t bytes_max;
	const char *help;
} fields[] = {
#define X(field, text, most, what) \
	[AUDIT_##field] = { text, SLICE(",\"" text "\":\""), most, what },
#include "obs/audit.def"
#undef X
};

const char *audit_field_name(enum audit_field field)
{
	CHECK(field < AUDIT_FIELD_COUNT);
	return fields[field].name;
}

const char *audit_field_help(enum audit_field field)
{
	CHECK(field < AUDIT_FIELD_COUNT);
	return fields[field].help;
}

/* False: there is no room for it. */
static bool put_name(struct text_line *line, enum audit_field field, bool is_text)
{
	struct slice lead;

	CHECK(field < AUDIT_FIELD_COUNT);
	lead = fields[field].lead;
	if (!line_has_room(line, lead.n + NUMBER_BYTES_MAX + TEXT_LINE_END_BYTES))
		return false;
	line_put(line, slice_of(lead.p, is_text ? lead.n : lead.n - 1));
	return true;
}

bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text)
{
	size_t most = fields[field].bytes_max > 0 ? fields[field].bytes_max : FIXED_BYTES_MAX;
	bool is_whole;

	if (text.n == 0)
		return true;
	if (!put_name(line, field, true))
		return false;
	is_whole = line_put_shown(line, text, most);
	line_put(line, SLICE_LIT("\""));
	return is_whole;
}

void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number)
{
	if (put_name(line, field, false))
		line_put_number(line, number <= INT64_MAX ? (int64_t)number : INT64_MAX);
}

void audit_put_true(struct text_line *line, enum audit_field field)
{
	if (put_name(line, field, false))
		line_puts(line, "true");
}

void audit_line_begin(struct text_line *line, const char *event)
{
	line_init(line, sizeof(line->bytes));
	line_put(line, SLICE_LIT("{"));
	line_put(line, slice_of(fields[AUDIT_TIME].lead.p + 1, fields[AUDIT_TIME].lead.n - 1));
	line_put_time(line, clock_wall_now_ms());
	line_put(line, SLICE_LIT("\""));
	audit_put_number(line, AUDIT_SCHEMA, SCHEMA_VERSION);
	audit_put_text(line, AUDIT_EVENT, slice_str(event));
}

static void end_line(struct text_line *line)
{
	line_puts(line, "}\n");
	CHECK(line->bytes[line->length - 1] == '\n'); /* fields have left room for it */
}

/* A pipe takes so few bytes as a whole or not at all. */
static bool write_whole(const struct audit *audit, struct slice lines)
{
	ssize_t n;

	CHECK(lines.n <= PIPE_BUF);
	do {
		n = write(audit->fd, lines.p, lines.n);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)lines.n;
}

/* Says how many are missing, once there is room again. False: there is none. */
static bool tell_lost(struct audit *audit)
{
	struct text_line line;

	if (audit->lost == 0)
		return true;
	audit_line_begin(&line, "lost");
	audit_put_number(&line, AUDIT_LINES, audit->lost);
	end_line(&line);
	if (!write_whole(audit, slice_of(line.bytes, line.length)))
		return false;
	audit->lost = 0;
	return true;
}

static void note_lost(struct audit *audit, size_t lines)
{
	uint64_t now_ms = clock_now_ms();

	audit->lost += lines;
	for (size_t i = 0; i < lines; i++)
		counter_add(COUNTER_AUDIT_LOST);
	if (audit->said_at_ms != 0 && now_ms - audit->said_at_ms < SAID_EVERY_MS)
		return;
	audit->said_at_ms = now_ms;
	LOG(AUDIT_LOST, LOG_INT("records", counter_get(COUNTER_AUDIT_LOST)));
}

bool audit_flush(struct audit *audit)
{
	size_t lines = audit->gathered_lines;
	struct slice text = slice_of(audit->gathered, audit->gathered_length);

	if (lines == 0)
		return true;
	audit->gathered_lines = audit->gathered_length = 0;
	if (tell_lost(audit) && write_whole(audit, text)) {
		audit->written += lines;
		return true;
	}
	note_lost(audit, lines);
	return false;
}

bool audit_write(struct audit *audit, struct text_line *line)
{
	bool is_first;

	end_line(line);
	if (audit->gathered_length + line->length > sizeof(audit->gathered))
		(void)audit_flush(audit);
	is_first = audit->gathered_lines == 0;
	memcpy(audit->gathered + audit->gathered_length, line->bytes, line->length);
	audit->gathered_length += line->length;
	audit->gathered_lines++;
	if (audit->on_gathering == NULL)
		return audit_flush(audit);
	if (is_first)
		audit->on_gathering(audit);
	return true;
}
