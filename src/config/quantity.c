/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables of units, largest first, and one way to read and write with them. */
#include "config/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* The row that ends a table has the factor 1. */
static const struct unit size_units[] = {
	{ "GiB", 1ull << 30 },
	{ "MiB", 1ull << 20 },
	{ "KiB", 1ull << 10 },
	{ "", 1 },
};

static const struct unit duration_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

static int parse(const struct unit *units, struct slice text, uint64_t *value_r)
{
	size_t digits = 0;
	uint64_t number;

	while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
		digits++;
	if (text_parse_u64(slice_of(text.p, digits), &number) != 0)
		return -1;
	text = slice_of(text.p + digits, text.n - digits);
	for (const struct unit *unit = units;; unit++) {
		if (slice_is_equal(text, slice_str(unit->name)))
			return __builtin_mul_overflow(number, unit->factor, value_r) ? -1 : 0;
		if (unit->factor == 1)
			return -1;
	}
}

static void append(const struct unit *units, uint64_t value, struct buf *out)
{
	const struct unit *unit = units;

	while (unit->factor > 1 && (value == 0 || value % unit->factor != 0))
		unit++;
	CHECK(unit->factor > 0 && value % unit->factor == 0);
	buf_printf(out, "%" PRIu64 "%s", value / unit->factor, unit->name);
}

int quantity_parse_size(struct slice text, uint64_t *bytes_r)
{
	return parse(size_units, text, bytes_r);
}

int quantity_parse_duration(struct slice text, uint64_t *ms_r)
{
	if (slice_is_equal(text, SLICE_LIT("0"))) {
		*ms_r = 0;
		return 0;
	}
	return parse(duration_units, text, ms_r);
}

int quantity_parse_percent(struct slice text, uint64_t *percent_r)
{
	if (text.n == 0 || text.p[text.n - 1] != '%')
		return -1;
	return text_parse_u64(slice_of(text.p, text.n - 1), percent_r);
}

void quantity_append_size(struct buf *out, uint64_t bytes)
{
	append(size_units, bytes, out);
}

void quantity_append_duration(struct buf *out, uint64_t ms)
{
	if (ms == 0)
		buf_append_char(out, '0');
	else
		append(duration_units, ms, out);
}

#define DATE_FORM "%Y-%m-%dT%H:%M:%SZ"
#define DAY_CHARACTERS 10
static const char midnight[] = "T00:00:00Z";

int quantity_parse_date(struct slice text, uint64_t *ms_r)
{
	char whole[QUANTITY_TEXT_MAX];
	char again[QUANTITY_TEXT_MAX];
	struct tm utc = { 0 };
	const char *end;
	time_t seconds;
	int n = snprintf(whole, sizeof(whole), "%.*s%s", SLICE_ARG(text),
			 text.n == DAY_CHARACTERS ? midnight : "");

	if (n < 0 || (size_t)n >= sizeof(whole))
		return -1;
	end = strptime(whole, DATE_FORM, &utc);
	if (end == NULL || *end != '\0')
		return -1;
	seconds = timegm(&utc); /* a day that the month does not have becomes another */
	if (seconds <= 0 || strftime(again, sizeof(again), DATE_FORM, &utc) == 0 ||
	    strcmp(whole, again) != 0) /* strptime is lenient */
		return -1;
	*ms_r = (uint64_t)seconds * 1000;
	return 0;
}

void quantity_format_date(uint64_t ms, char text_r[QUANTITY_TEXT_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(text_r, QUANTITY_TEXT_MAX, DATE_FORM, &utc);
	if (strcmp(text_r + DAY_CHARACTERS, midnight) == 0)
		text_r[DAY_CHARACTERS] = '\0';
}
