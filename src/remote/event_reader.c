/* SPDX-License-Identifier: Apache-2.0 */
/* Lines end with CR, LF or both; a line that is empty ends an event. */
#include "remote/event_reader.h"

#include <string.h>

#include "base/text.h"

#define BOM SLICE_LIT("\xef\xbb\xbf")
#define KEPT_BYTES ((size_t)64 << 10)

static size_t held(const struct event_reader *reader)
{
	return reader->line.len + reader->data.len + reader->name.len + reader->next_id.len;
}

static void set(struct buf *buf, struct slice value)
{
	buf->len = 0;
	buf_append_slice(buf, value);
}

/* Streams are open for long: what a large event needed is given back. */
static void clear(struct buf *buf)
{
	buf->len = 0;
	if (buf->cap > KEPT_BYTES)
		buf_fini(buf);
}

static void take_id(struct event_reader *reader)
{
	if (!reader->has_new_id)
		return;
	set(&reader->last_id, buf_slice(&reader->next_id));
	reader->ids++;
	reader->has_new_id = false;
}

static void finish_event(struct event_reader *reader, server_event_fn *on_event, void *arg)
{
	struct server_event event = { SLICE_LIT("message"), buf_slice(&reader->data) };

	take_id(reader);
	if (reader->name.len > 0)
		event.name = buf_slice(&reader->name);
	if (reader->has_data && event.data.n > 0)
		on_event(&event, arg);
	clear(&reader->data);
	reader->name.len = 0;
	reader->has_data = false;
}

static void take_field(struct event_reader *reader, struct slice name, struct slice value)
{
	if (slice_is_equal(name, SLICE_LIT("data"))) {
		if (reader->has_data)
			buf_append_char(&reader->data, '\n');
		buf_append_slice(&reader->data, value);
		reader->has_data = true;
	} else if (slice_is_equal(name, SLICE_LIT("event"))) {
		if (value.n <= EVENT_ID_BYTES_MAX)
			set(&reader->name, value);
	} else if (slice_is_equal(name, SLICE_LIT("id"))) {
		if (value.n <= EVENT_ID_BYTES_MAX &&
		    (value.n == 0 || memchr(value.p, '\0', value.n) == NULL)) {
			set(&reader->next_id, value);
			reader->has_new_id = true;
		}
	} else if (slice_is_equal(name, SLICE_LIT("retry"))) {
		uint64_t retry_ms;

		if (text_parse_u64(value, &retry_ms) == 0 && retry_ms != EVENT_RETRY_NONE)
			reader->retry_ms = retry_ms;
	}
}

static void take_line(struct event_reader *reader, server_event_fn *on_event, void *arg)
{
	struct slice rest = buf_slice(&reader->line);
	struct slice name;

	if (!reader->has_begun && slice_has_prefix(rest, BOM))
		rest = slice_of(rest.p + BOM.n, rest.n - BOM.n);
	reader->has_begun = true;
	if (rest.n == 0) {
		finish_event(reader, on_event, arg);
		return;
	}
	name = slice_cut(&rest, ':');
	if (rest.n > 0 && rest.p[0] == ' ')
		rest = slice_of(rest.p + 1, rest.n - 1);
	take_field(reader, name, rest); /* a comment has an empty name */
}

/* The length of what stands before the next end of a line. */
static size_t line_length(struct slice bytes)
{
	const char *lf = memchr(bytes.p, '\n', bytes.n);
	size_t n = lf != NULL ? (size_t)(lf - bytes.p) : bytes.n;
	const char *cr = n > 0 ? memchr(bytes.p, '\r', n) : NULL;

	return cr != NULL ? (size_t)(cr - bytes.p) : n;
}

int event_reader_take(struct event_reader *reader, struct slice bytes, server_event_fn *on_event,
		      void *arg)
{
	CHECK(reader->most > 0 && on_event != NULL);
	while (bytes.n > 0) {
		size_t n = line_length(bytes);

		if (reader->has_cr && bytes.p[0] == '\n') {
			reader->has_cr = false; /* the rest of CR LF */
			bytes = slice_of(bytes.p + 1, bytes.n - 1);
			continue;
		}
		reader->has_cr = false;
		if (n > reader->most || held(reader) > reader->most - n) {
			take_id(reader); /* or it would come again, for ever */
			return -1;
		}
		buf_append(&reader->line, bytes.p, n);
		if (n == bytes.n)
			return 0;
		reader->has_cr = bytes.p[n] == '\r';
		take_line(reader, on_event, arg);
		clear(&reader->line);
		bytes = slice_of(bytes.p + n + 1, bytes.n - n - 1);
	}
	return 0;
}

void event_reader_restart(struct event_reader *reader)
{
	reader->has_new_id = false;
	reader->line.len = 0;
	reader->data.len = 0;
	reader->name.len = 0;
	reader->has_data = false;
	reader->has_cr = false;
	reader->has_begun = false;
}

void event_reader_fini(struct event_reader *reader)
{
	buf_fini(&reader->line);
	buf_fini(&reader->data);
	buf_fini(&reader->name);
	buf_fini(&reader->next_id);
	buf_fini(&reader->last_id);
}
