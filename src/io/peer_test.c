/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text, and which range contains which address. */
#include "io/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/unit_test.h"

static void test_texts(void **state)
{
	static const struct {
		const char *text;
		const char *address; /* NULL: rejected */
		unsigned int port;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", 0 },
		{ "192.0.2.1:80", "192.0.2.1", 80 },
		{ "2001:db8::1", "2001:db8::1", 0 },
		{ "[2001:db8::1]", "2001:db8::1", 0 },
		{ "[2001:db8::1]:65535", "2001:db8::1", 65535 },
		{ "[::ffff:192.0.2.1]:8", "192.0.2.1", 8 },
		{ "::ffff:192.0.2.1", "192.0.2.1", 0 },
		{ "", NULL, 0 },
		{ "unknown", NULL, 0 },
		{ "_hidden", NULL, 0 },
		{ "192.0.2.1:", NULL, 0 },
		{ "192.0.2.1:65536", NULL, 0 },
		{ "192.0.2.256", NULL, 0 },
		{ "192.0.2.1 ", NULL, 0 },
		{ "[2001:db8::1", NULL, 0 },
		{ "[2001:db8::1]80", NULL, 0 },
		{ "[2001:db8::1]:x", NULL, 0 },
		{ "1:2", NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer peer = { 0 };
		char text[PEER_TEXT_BYTES];
		bool is_good = peer_parse(slice_str(rows[i].text), &peer);

		if (is_good != (rows[i].address != NULL))
			fail_msg("'%s'", rows[i].text);
		if (!is_good)
			continue;
		peer_format(&peer, text);
		assert_string_equal(text, rows[i].address);
		assert_int_equal(peer.port, rows[i].port);
	}
	assert_false(peer_parse(slice_of("1.2.3.4\0x", 9), &(struct peer){ 0 }));
}

static void test_ranges(void **state)
{
	static const struct {
		const char *net;
		const char *in;
		const char *out;
	} rows[] = {
		{ "127.0.0.1", "127.0.0.1", "127.0.0.2" },
		{ "10.0.0.0/8", "10.255.1.1", "11.0.0.0" },
		{ "10.1.2.0/23", "10.1.3.255", "10.1.4.0" },
		{ "0.0.0.0/0", "9.9.9.9", "::1" },
		{ "2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::" },
		{ "::ffff:10.0.0.1", "10.0.0.1", "::1" },
	};
	struct peer_net net;
	struct peer peer;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(peer_net_parse(slice_str(rows[i].net), &net));
		assert_true(peer_parse(slice_str(rows[i].in), &peer));
		assert_true(peer_net_has(&net, &peer));
		assert_true(peer_parse(slice_str(rows[i].out), &peer));
		assert_false(peer_net_has(&net, &peer));
	}
	assert_true(peer_net_parse(SLICE_LIT("unix"), &net));
	assert_false(peer_net_has(&net, &peer));
	assert_true(peer_net_has(&net, &(struct peer){ 0 }));
	assert_false(peer_net_parse(SLICE_LIT("10.0.0.0/33"), &net));
	assert_false(peer_net_parse(SLICE_LIT("10.0.0.0/"), &net));
	assert_false(peer_net_parse(SLICE_LIT("unix/0"), &net));
	assert_false(peer_net_parse(SLICE_LIT("example.com"), &net));
	assert_false(peer_net_parse(SLICE_LIT("10.0.0.1:80"), &net));
}

static void test_sockaddr(void **state)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(80) };
	char text[PEER_TEXT_BYTES];
	struct peer peer;

	peer = peer_of_sockaddr(&address);
	assert_int_equal(peer.family, 0);
	peer_format(&peer, text);
	assert_string_equal(text, "local");
	v4.sin_addr.s_addr = htonl(0x7f000001);
	memcpy(&address, &v4, sizeof(v4));
	peer = peer_of_sockaddr(&address);
	peer_format(&peer, text);
	assert_string_equal(text, "127.0.0.1");
	assert_int_equal(peer.port, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_sockaddr),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
