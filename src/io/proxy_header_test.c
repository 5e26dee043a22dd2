/* SPDX-License-Identifier: Apache-2.0 */
/* PROXY headers: complete, truncated at every byte, and malformed in every way. */
#include "io/proxy_header.h"

#include "base/unit_test.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\x00\x02\x01\xc6\x33\x64\x02\x9c\x40\x01\xbb" /* 192.0.2.1:40000 */
#define V6                                           \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01" \
	"0123456789abcdef"                           \
	"\0\x01\xff\xff"
#define V6_OF_V4                                       \
	"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01" \
	"0123456789abcdef"                             \
	"\0\x01\xff\xff"

static const struct row {
	struct slice text;
	const char *client; /* NULL: unchanged */
	unsigned int port;
} good[] = {
	{ SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n"), "192.0.2.1", 40000 },
	{ SLICE("PROXY TCP4 255.255.255.255 255.255.255.255 65535 0\r\n"), "255.255.255.255",
	  65535 },
	{ SLICE("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n"), "2001:db8::1", 1 },
	/* Dual-stack proxies write IPv4 like this; it is the same client as with TCP4. */
	{ SLICE("PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 5 443\r\n"), "192.0.2.1", 5 },
	{ SLICE("PROXY UNKNOWN\r\n"), NULL, 0 },
	{ SLICE("PROXY UNKNOWN ffff:: whatever\r\n"), NULL, 0 },
	{ SLICE(SIGNATURE "\x20\0\0\0"), NULL, 0 },
	{ SLICE(SIGNATURE "\x20\x11\0\x04junk"), NULL, 0 },
	{ SLICE(SIGNATURE "\x21\0\0\0"), NULL, 0 },
	{ SLICE(SIGNATURE "\x21\x11\0\x0c" V4), "192.0.2.1", 40000 },
	{ SLICE(SIGNATURE "\x21\x11\0\x12" V4 "\x04\0\x03"
			  "abc"),
	  "192.0.2.1", 40000 },
	{ SLICE(SIGNATURE "\x21\x21\0\x24" V6), "2001:db8::1", 1 },
	{ SLICE(SIGNATURE "\x21\x21\0\x24" V6_OF_V4), "192.0.2.1", 1 },
};

static const struct slice bad[] = {
	SLICE("GET / HTTP/1.1\r\n"),
	SLICE("\r\n\r\nX"),
	SLICE("PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n"),
	SLICE("PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"),
	SLICE("PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n"),
	SLICE("PROXY TCP4 ::1 ::1 1 2\r\n"),
	SLICE("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n"),
	SLICE("PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n"),
	SLICE("PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n"),
	SLICE("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"),
	SLICE("PROXY UNKNOWNx\r\n"),
	SLICE("PROXY \r\n"),
	SLICE("PROXY \n"),
	SLICE("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n"),
	SLICE(SIGNATURE "\x11\x11\0\x0c" V4),
	SLICE(SIGNATURE "\x22\x11\0\x0c" V4),
	SLICE(SIGNATURE "\x21\x12\0\x0c" V4),
	SLICE(SIGNATURE "\x21\x41\0\x0c" V4),
	SLICE(SIGNATURE "\x21\x11\0\x0b" V4),
	SLICE(SIGNATURE "\x21\x11\0\x0d" V4 "x"),
	SLICE(SIGNATURE "\x21\x11\0\x12" V4 "\x04\0\x04"
			"abc"),
	SLICE(SIGNATURE "\x21\x21\0\x0c" V4),
	SLICE(SIGNATURE "\x21\x11\xff\xff"),
};

/* Copies the text to memory of exactly its size, so that a read past the end is detected. */
static long parse(struct slice text, struct peer *peer)
{
	struct error err;
	char *copy = malloc(text.n + 1);
	long length;

	memcpy(copy, text.p, text.n);
	copy = realloc(copy, text.n > 0 ? text.n : 1);
	length = proxy_header_parse(slice_of(copy, text.n), peer, &err);
	free(copy);
	return length;
}

static void test_good_headers_at_every_cut(void **state)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct slice text = good[i].text;
		struct peer peer = { .family = 99 };
		char shown[PEER_TEXT_BYTES];

		for (size_t n = 0; n < text.n; n++)
			assert_int_equal(parse(slice_of(text.p, n), &peer), 0);
		assert_int_equal(peer.family, 99);
		assert_int_equal(parse(text, &peer), text.n);
		if (good[i].client == NULL) {
			assert_int_equal(peer.family, 99);
			continue;
		}
		peer_format(&peer, shown);
		assert_string_equal(shown, good[i].client);
		assert_int_equal(peer.port, good[i].port);
	}
}

static void test_what_follows_is_not_the_headers(void **state)
{
	struct peer peer;

	assert_int_equal(parse(SLICE_LIT("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n\r\n"), &peer), 15);
	assert_int_equal(parse(SLICE_LIT(SIGNATURE "\x21\x11\0\x0c" V4 "PROXY UNKNOWN\r\n"), &peer),
			 28);
}

static void test_bad_headers(void **state)
{
	struct peer peer = { .family = 99 };
	char line[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i], &peer) != -1)
			fail_msg("row %zu", i);
	}
	memset(line, 'x', sizeof(line));
	memcpy(line, "PROXY UNKNOWN ", 14);
	assert_int_equal(parse(slice_of(line, 106), &peer), 0);
	assert_int_equal(parse(slice_of(line, 107), &peer), -1);
	assert_int_equal(peer.family, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_headers_at_every_cut),
		cmocka_unit_test(test_what_follows_is_not_the_headers),
		cmocka_unit_test(test_bad_headers),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
