/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/audit.h"

#include <errno.h>
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
	struct slice lead; /* in a line */
	size_t bytes_max;
	const char *help;
} fields[] = {
#define X(field, text, most, what) [AUDIT_##field] = { text, SLICE(",\"" text "\":"), most, what },
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
static bool put_name(struct text_line *line, enum audit_field field)
{
	struct slice lead;

	CHECK(field < AUDIT_FIELD_COUNT);
	lead = fields[field].lead;
	if (!line_has_room(line, lead.n + 1 + NUMBER_BYTES_MAX + TEXT_LINE_END_BYTES))
		return false;
	line_put(line, lead);
	return true;
}

bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text)
{
	size_t most = fields[field].bytes_max > 0 ? fields[field].bytes_max : FIXED_BYTES_MAX;
	bool is_whole;

	if (text.n == 0)
		return true;
	if (!put_name(line, field))
		return false;
	line_puts(line, "\"");
	is_whole = line_put_shown(line, text, most);
	line_puts(line, "\"");
	return is_whole;
}

void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number)
{
	if (put_name(line, field))
		line_put_number(line, number <= INT64_MAX ? (int64_t)number : INT64_MAX);
}

void audit_put_true(struct text_line *line, enum audit_field field)
{
	if (put_name(line, field))
		line_puts(line, "true");
}

void audit_line_begin(struct text_line *line, const char *event)
{
	line_init(line, sizeof(line->bytes));
	line_puts(line, "{\"");
	line_puts(line, audit_field_name(AUDIT_TIME));
	line_puts(line, "\":\"");
	line_put_time(line, clock_wall_ms());
	line_puts(line, "\"");
	audit_put_number(line, AUDIT_SCHEMA, SCHEMA_VERSION);
	audit_put_text(line, AUDIT_EVENT, slice_str(event));
}

/* A pipe takes a line as a whole or not at all. */
static bool write_line(const struct audit *audit, struct text_line *line)
{
	ssize_t n;

	line_puts(line, "}\n");
	CHECK(line->bytes[line->length - 1] == '\n'); /* fields have left room for it */
	do {
		n = write(audit->fd, line->bytes, line->length);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)line->length;
}

/* Says how many are missing, once there is room again. False: there is none. */
static bool tell_lost(struct audit *audit)
{
	struct text_line line;

	if (audit->lost == 0)
		return true;
	audit_line_begin(&line, "lost");
	audit_put_number(&line, AUDIT_LINES, audit->lost);
	if (!write_line(audit, &line))
		return false;
	audit->lost = 0;
	return true;
}

static void note_lost(struct audit *audit)
{
	uint64_t now_ms = clock_now_ms();

	audit->lost++;
	counter_add(COUNTER_AUDIT_LOST);
	if (audit->said_at_ms != 0 && now_ms - audit->said_at_ms < SAID_EVERY_MS)
		return;
	audit->said_at_ms = now_ms;
	LOG(AUDIT_LOST, LOG_INT("records", counter_get(COUNTER_AUDIT_LOST)));
}

bool audit_write(struct audit *audit, struct text_line *line)
{
	if (tell_lost(audit) && write_line(audit, line)) {
		audit->written++;
		return true;
	}
	note_lost(audit);
	return false;
}
