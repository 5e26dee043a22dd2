/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a request is from: fields of proxies that are trusted, that are not, and that are wrong. DEF-07. */
#include "http/places.h"

#include "base/unit_test.h"

static struct http_request parse(const char *lines)
{
	const struct http_parse_limits limits = { 8192, 32768, 64 };
	static char head[8192];
	struct http_request request;
	const char *reason;
	size_t seen = 0;
	int status;

	snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
	assert_true(http_parse_head(slice_str(head), &limits, &seen, &request, &status, &reason) >
		    0);
	return request;
}

/* Trusted: 10.0.0.0/8 and ::1. */
static struct peer apply(const char *peer, const char *lines)
{
	static struct peer_net nets[2];
	const struct http_trust trust = { nets, 2 };
	struct http_request request = parse(lines);
	struct peer client;

	assert_true(peer_net_parse(SLICE_LIT("10.0.0.0/8"), &nets[0]));
	assert_true(peer_net_parse(SLICE_LIT("::1"), &nets[1]));
	assert_true(peer_parse(slice_str(peer), &client));
	http_forwarded_apply(&trust, &request, &client);
	return client;
}

static void expect(const char *peer, const char *lines, const char *from)
{
	struct peer client = apply(peer, lines);
	char text[PEER_TEXT_BYTES];

	peer_format(&client, text);
	if (strcmp(text, from) != 0)
		fail_msg("%s: %s", lines, text);
}

static void test_nobody_else_is_believed(void **state)
{
	expect("192.0.2.1", "Forwarded: for=9.9.9.9;proto=https;host=x\r\n", "192.0.2.1");
	expect("192.0.2.1", "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n",
	       "192.0.2.1");
	expect("10.0.0.1", "", "10.0.0.1");
}

static void test_forwarded(void **state)
{
	expect("10.0.0.1", "Forwarded: for=192.0.2.9;proto=https;host=mcp.example\r\n",
	       "192.0.2.9");
	expect("::1", "Forwarded: For=\"[2001:db8::1]:4711\" ; Proto=HTTPS\r\n", "2001:db8::1");
	/* What the client itself has written stands in front, and is not reached. */
	expect("10.0.0.1", "Forwarded: for=6.6.6.6;proto=https, for=192.0.2.9;proto=http\r\n",
	       "192.0.2.9");
	expect("10.0.0.1", "Forwarded: for=6.6.6.6\r\nForwarded: for=192.0.2.9\r\n", "192.0.2.9");
	/* Through two proxies of ours; the first of them has seen the client. */
	expect("10.0.0.1",
	       "Forwarded: for=192.0.2.9;proto=https;host=a, for=10.0.0.2;proto=http\r\n",
	       "192.0.2.9");
	expect("10.0.0.1", "Forwarded: for=unknown;proto=https\r\n", "10.0.0.1");
	expect("10.0.0.1", "Forwarded: for=6.6.6.6, for=_hidden, for=10.0.0.2\r\n", "10.0.0.2");
	expect("10.0.0.1", "Forwarded: for=192.0.2.9\r\nX-Forwarded-Proto: https\r\n", "192.0.2.9");
}

/* A proxy that writes the one passes the other on, as the client has made it up. */
static void test_x_forwarded_for_counts_where_both_come(void **state)
{
	expect("10.0.0.1", "Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 192.0.2.9\r\n", "192.0.2.9");
	expect("10.0.0.1", "X-Forwarded-For: 192.0.2.9\r\nForwarded: for=10.0.0.7\r\n",
	       "192.0.2.9");
}

/* What the client puts in front of the proxy's element hides nobody. */
static void test_what_stands_in_front_does_not_matter(void **state)
{
	static const char *const rows[] = { "\"", "for=\"", ",,,;", "for", "\\\"" };
	char line[4000] = "X-Forwarded-For: 1.2.3.4";
	char text[100];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "Forwarded: %s, for=192.0.2.9\r\n", rows[i]);
		expect("10.0.0.1", text, "192.0.2.9");
		snprintf(text, sizeof(text), "X-Forwarded-For: %s, 192.0.2.9\r\n", rows[i]);
		expect("10.0.0.1", text, "192.0.2.9");
	}
	for (int i = 0; i < 200; i++)
		strcat(line, ", 10.0.0.9");
	strcat(line, ", 192.0.2.9, 10.0.0.3\r\n");
	expect("10.0.0.1", line, "192.0.2.9");
}

static void test_malformed_says_nothing(void **state)
{
	static const char *const rows[] = { "for=\"1.2.3.4",     "for=1.2.3.4,",     "for",
					    "=1.2.3.4",          "for=1.2.3.4 x",    ";for=1.2.3.4",
					    "for=\"1.2\\.3.4\"", "for=1.2.3.4;;a=b", "," };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[100];

		snprintf(text, sizeof(text), "Forwarded: %s\r\n", rows[i]);
		expect("10.0.0.1", text, "10.0.0.1");
	}
	expect("10.0.0.1", "Forwarded: for=1.2.3.4, for=\"10.0.0.2\r\n", "10.0.0.1");
}

static void test_x_forwarded(void **state)
{
	expect("10.0.0.1",
	       "X-Forwarded-For: 6.6.6.6, 192.0.2.9\r\nX-Forwarded-Proto: https\r\n"
	       "X-Forwarded-Host: mcp.example:8443\r\n",
	       "192.0.2.9");
	expect("10.0.0.1", "X-Forwarded-For: 192.0.2.9,10.0.0.3 ,10.0.0.2\r\n", "192.0.2.9");
	expect("10.0.0.1", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 192.0.2.9\r\n",
	       "192.0.2.9");
	expect("10.0.0.1", "X-Forwarded-Proto: https\r\n", "10.0.0.1");
	expect("10.0.0.1", "X-Forwarded-For: 6.6.6.6, nonsense\r\n", "10.0.0.1");
	expect("10.0.0.1", "X-Forwarded-Proto: http, https\r\n", "10.0.0.1");
}

/* SEC-69 */
static void test_fields_of_proxies(void **state)
{
	static const char *const rows[] = {
		"Forwarded: ",        "X-Forwarded-For: x", "x-forwarded-host: x",
		"X-Forwarded-Proto:", "X-Forwarded-Ssl: x", "X-Real-IP: x",
		"x-real-ip:",         "Via: 1.1 x",         "CF-Ray: x",
		"cf-connecting-ip:",  "True-Client-IP: x",  "X-Client-Ip: x",
	};
	static const char *const others[] = {
		"X-Forwarded: x", "X-Real-IPs: x", "Viax: x",          "X-Via: x",    "CF: x",
		"X-Api-Key: x",   "Vi: x",         "Mcp-Param-Via: x", "Accept: */*",
	};
	char line[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_request request;

		snprintf(line, sizeof(line), "A: b\r\n%s\r\nC: d\r\n", rows[i]);
		request = parse(line);
		assert_true(http_is_forwarded(&request));
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct http_request request;

		snprintf(line, sizeof(line), "%s\r\n", others[i]);
		request = parse(line);
		assert_false(http_is_forwarded(&request));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_else_is_believed),
		cmocka_unit_test(test_forwarded),
		cmocka_unit_test(test_x_forwarded_for_counts_where_both_come),
		cmocka_unit_test(test_what_stands_in_front_does_not_matter),
		cmocka_unit_test(test_malformed_says_nothing),
		cmocka_unit_test(test_x_forwarded),
		cmocka_unit_test(test_fields_of_proxies),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
