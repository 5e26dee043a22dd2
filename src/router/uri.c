/* SPDX-License-Identifier: Apache-2.0 */
#include "router/uri.h"

#include <string.h>

#include "jsonrpc/write.h"

struct slice uri_spell(struct json uri, struct buf *room)
{
	struct buf plain = { 0 };
	struct slice text = SLICE_LIT("");

	CHECK(room->len == 0);
	if (uri.type == JSON_STRING)
		text = slice_of(uri.text.p + 1, uri.text.n - 2);
	if (text.n > 0 && memchr(text.p, '\\', text.n) != NULL &&
	    scan_decode_string(uri, &plain) == 0) {
		write_string(room, buf_slice(&plain));
		text = slice_of(room->data + 1, room->len - 2);
	}
	buf_fini(&plain);
	return text;
}

bool uri_is_within(struct slice uri, struct slice parent)
{
	if (!slice_has_prefix(uri, parent) || parent.n == 0)
		return false;
	return uri.n == parent.n || parent.p[parent.n - 1] == '/' || uri.p[parent.n] == '/';
}
