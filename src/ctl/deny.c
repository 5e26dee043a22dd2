/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon keeps entries in memory alone; here the operator is told the line for the configuration. */
#include "ctl/deny.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "config/quantity.h"
#include "config/quote.h"
#include "ctl/escape.h"

/* What is added to the clock must not come out as a time that is over. */
#define FOR_MS_MAX (UINT64_C(36500) * 24 * 3600 * 1000)

static void set_text(json_t *order, const char *member, const char *text)
{
	if (text != NULL)
		json_object_set_new(order, member, json_string(text));
}

int deny_append_order(const struct deny_words *words, struct buf *out, struct error *err)
{
	json_t *order = json_object();
	uint64_t for_ms;
	char *text;

	CHECK(out->len == 0);
	set_text(order, "issuer", words->issuer);
	set_text(order, "sub", words->sub);
	set_text(order, "client_id", words->client_id);
	set_text(order, "jti", words->jti);
	set_text(order, "sid", words->sid);
	if (words->duration != NULL) {
		if (quantity_parse_duration(slice_str(words->duration), &for_ms) < 0 ||
		    for_ms == 0 || for_ms > FOR_MS_MAX) {
			json_decref(order);
			return error_set(err, ERROR_INVALID,
					 "--for takes a time like 90m, 12h or 30d, up to 36500d");
		}
		json_object_set_new(order, "until_ms",
				    json_integer((json_int_t)(clock_wall_ms() + for_ms)));
	}
	text = json_dumps(order, JSON_COMPACT);
	json_decref(order);
	if (text == NULL)
		return error_set(err, ERROR_INVALID, "a name is no UTF-8");
	buf_append_str(out, text);
	free(text);
	return 0;
}

static const char *text_of(const json_t *entry, const char *member)
{
	const char *text = json_string_value(json_object_get(entry, member));

	return text != NULL ? text : "";
}

static long long number_of(const json_t *entry, const char *member)
{
	return (long long)json_integer_value(json_object_get(entry, member));
}

void deny_print_added(const json_t *entry)
{
	char until[QUANTITY_TEXT_MAX];
	struct buf text = { 0 };

	quantity_format_date((uint64_t)number_of(entry, "until_ms") / 1000 * 1000, until);
	printf("entry %lld holds until %s; sessions ended: %lld\n", number_of(entry, "number"),
	       until, number_of(entry, "sessions_ended"));
	puts("A restart forgets it. To keep it, in auth.deny of the configuration:");
	buf_append_str(&text, "  - {issuer: ");
	quote_append(&text, text_of(entry, "issuer"));
	buf_printf(&text, ", %s: ", text_of(entry, "by"));
	quote_append(&text, text_of(entry, "name"));
	buf_printf(&text, ", until: %s}", until);
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}
