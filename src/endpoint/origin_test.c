/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages may send requests to us: all that a browser can write into Origin, and what it would not. FRONT-SEC-01, -02, SEC-01 */
#include "endpoint/origin.h"

#include "base/unit_test.h"
#include "endpoint/frontend.h"

static const struct slice hosts[] = { SLICE("localhost"), SLICE("127.0.0.1"), SLICE("[::1]"),
				      SLICE("gw.example") };
static const struct slice listed[] = { SLICE("https://app.example"), SLICE("http://dev:3000"),
				       SLICE("chrome-extension://abcdef"),
				       SLICE("tauri://localhost") };
static struct frontend_conf conf = { .hosts = { hosts, ARRAY_LEN(hosts) },
				     .origins = { listed, ARRAY_LEN(listed) } };

static bool is_allowed(const char *origin, const char *host, bool has_tls)
{
	struct http_request request = { .seen = 1u << HTTP_ORIGIN | 1u << HTTP_HOST };
	struct slice allowed = { NULL, 0 };
	const char *why;

	request.fields[HTTP_ORIGIN] = slice_str(origin);
	request.fields[HTTP_HOST] = slice_str(host);
	why = origin_check(&conf, &request, has_tls, &allowed);
	assert_int_equal(why == NULL, allowed.n > 0);
	return why == NULL;
}

static void assert_plain(const char *origin, const char *host, bool expected)
{
	if (is_allowed(origin, host, false) != expected)
		fail_msg("%s at %s", origin, host);
}

static void test_own_names_and_the_port(void **state)
{
	assert_plain("http://localhost:8808", "localhost:8808", true);
	assert_plain("http://localhost:8808", "127.0.0.1:8808", true);
	assert_plain("http://[::1]:8808", "[::1]:8808", true);
	assert_plain("http://LOCALHOST:8808", "localhost:8808", true);
	assert_plain("http://localhost:3000", "localhost:8808", false);
	assert_plain("http://localhost", "localhost:8808", false);
	assert_plain("http://localhost:80", "localhost", false);
	assert_plain("http://localhost:08808", "localhost:8808", false);
	assert_plain("http://localhost:8808 ", "localhost:8808", false);
	assert_plain("http://localhost:", "localhost", false);
	assert_plain("http://localhost:88080", "localhost:88080", false);
}

static void test_strangers(void **state)
{
	static const char *const origins[] = {
		"",
		"null",
		"file://",
		"http://",
		"//localhost",
		"localhost",
		"http:/localhost",
		"HTTP://localhost",
		"ftp://localhost",
		"ws://localhost",
		"http://evil.example",
		"http://localhost.evil.example",
		"http://evil.example/localhost",
		"http://evil.example#localhost",
		"http://localhost@evil.example",
		"http://localhost:x@evil.example",
		"http://user@localhost",
		"http://localhost.",
		"http://localhost%2eevil.example",
		"http://localhost/",
		"http://localhost?",
		"http://localhost\\@evil.example",
		"http://[::1",
		"http://[::1]x",
		"http://[::01]",
		"http://[::ffff:127.0.0.1]",
		"http://127.0.0.1.evil.example",
		"http://127.1",
		"http://2130706433",
		"http://xn--lcalhost-54a",
		"http://l\xc3\xb6"
		"calhost",
		"https://app.example, http://localhost",
		"http://localhost https://app.example",
	};

	for (size_t i = 0; i < ARRAY_LEN(origins); i++)
		assert_plain(origins[i], "localhost", false);
}

static void test_listed_ones_are_compared_whole(void **state)
{
	assert_plain("https://app.example", "localhost:8808", true);
	assert_plain("https://APP.example", "localhost:8808", true);
	assert_plain("http://dev:3000", "localhost:8808", true);
	assert_plain("http://app.example", "localhost:8808", false);
	assert_plain("https://app.example:443", "localhost:8808", false);
	assert_plain("https://app.example/", "localhost:8808", false);
	assert_plain("https://x.app.example", "localhost:8808", false);
	assert_plain("https://app.example.evil", "localhost:8808", false);
	assert_plain("http://dev", "localhost:8808", false);
	assert_plain("chrome-extension://abcdef", "localhost:8808", true);
	assert_plain("chrome-extension://abcdeg", "localhost:8808", false);
	assert_plain("tauri://localhost", "localhost:8808", true);
	assert_plain("app://localhost", "localhost", false);
}

/* Without a port, http is port 80: another program, or whoever is on the way to it. */
static void test_the_scheme_of_the_connection(void **state)
{
	assert_true(is_allowed("https://gw.example", "gw.example", true));
	assert_false(is_allowed("http://gw.example", "gw.example", true));
	assert_false(is_allowed("http://gw.example:8443", "gw.example:8443", true));
	assert_true(is_allowed("http://dev:3000", "gw.example", true));
	/* A proxy in front may have TLS. */
	assert_plain("https://gw.example", "gw.example", true);
	assert_plain("http://gw.example", "gw.example", true);
}

static void test_the_scheme_of_public_url(void **state)
{
	conf.authorization.public_url = SLICE_LIT("https://gw.example/base");
	assert_plain("https://gw.example", "gw.example", true);
	assert_plain("https://GW.example", "localhost:8808", true);
	assert_plain("http://gw.example", "gw.example", false);
	assert_plain("http://GW.example", "gw.example", false);
	assert_plain("https://gw.example:8443", "gw.example", false);
	assert_plain("http://localhost:8808", "localhost:8808", true);
	conf.authorization.public_url = SLICE_LIT("http://gw.example:8808");
	assert_plain("http://gw.example:8808", "localhost", true);
	assert_plain("https://gw.example:8808", "gw.example:8808", false);
	conf.authorization.public_url = slice_of(NULL, 0);
}

static void test_parts_of_urls(void **state)
{
	static const struct {
		const char *url, *origin, *path;
	} rows[] = {
		{ "https://h", "https://h", "" },
		{ "https://h/", "https://h", "/" },
		{ "https://h:1/a/b", "https://h:1", "/a/b" },
		{ "https://[::1]:1/a", "https://[::1]:1", "/a" },
		{ "h/a", "h/a", "" },
		{ "", "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice url = slice_str(rows[i].url);

		assert_true(slice_is_equal(origin_of(url), slice_str(rows[i].origin)));
		assert_true(slice_is_equal(origin_path_of(url), slice_str(rows[i].path)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_names_and_the_port),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_listed_ones_are_compared_whole),
		cmocka_unit_test(test_the_scheme_of_the_connection),
		cmocka_unit_test(test_the_scheme_of_public_url),
		cmocka_unit_test(test_parts_of_urls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
