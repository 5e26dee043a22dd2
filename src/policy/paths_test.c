/* SPDX-License-Identifier: Apache-2.0 */
/* Spellings of paths: which are none, which stay inside the roots, which do not. SEC-55 */
#include "policy/paths.h"

#include "base/buf.h"
#include "base/unicode.h"
#include "base/unit_test.h"

static const struct slice roots[] = { SLICE("/srv/data"), SLICE("/srv/Caf\u00e9 100%/"),
				      SLICE("/srv/a?b") };
static const struct path_rules rules = { { roots, ARRAY_LEN(roots) }, SLICE("") };
static const struct path_rules based = { { roots, ARRAY_LEN(roots) }, SLICE("/srv/data/here") };
static const struct path_rules elsewhere = { { roots, ARRAY_LEN(roots) }, SLICE("/opt") };

static void assert_is(const struct path_rules *by, const char *text, bool is_one,
		      enum path_verdict wanted)
{
	enum path_verdict is = path_judge(by, slice_str(text), is_one);

	if (is != wanted)
		fail_msg("%s: is %d instead of %d", text, (int)is, (int)wanted);
}

static void these_are_inside(void **state)
{
	static const char *const rows[] = {
		"/srv/data",
		"/srv/data/",
		"/srv/data/notes.txt",
		"//srv///data//a//b",
		"/srv/./data/./a/.",
		"/srv/data/a/../b",
		"/srv/data/a/b/../../c",
		"/srv/data/a/..",
		"/srv/data/\u00fcber/../b",
		"/srv/data/\u00fcber.txt",
		"/srv/data/\U0001f468\u200d\U0001f469.png",
		"/srv/data/a b/c d.txt",
		"/srv/data/100%",
		"/srv/data/100%25.txt",
		"/srv/data/a%20b",
		"/srv/data/a\\b",
		"/srv/data/..hidden",
		"/srv/data/hidden..",
		"/srv/data/.git/config",
		"/srv/data/~/x",
		"/srv/data/a:b",
		"/srv/data/#1",
		"/srv/data/x?y",
		"/srv/Caf\u00e9 100%/x",
		"/srv/a?b/c",
		"  /srv/data/x",
		"\"/srv/data/x\"",
		"file:///srv/data/x",
		"file:/srv/data/x",
		"FILE:///srv/data/x",
		"file:////srv/data/x",
		"file:///srv/data/a/../b",
		"file:///srv/data/a%20b/../c",
		"file:///srv/data/x#L10",
		"file:///srv/data/x?y=1",
		"file:///srv/Caf%C3%A9%20100%25/x",
		"file:///srv/a%3Fb/c",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_is(&rules, rows[i], false, PATH_INSIDE);
		assert_is(&rules, rows[i], true, PATH_INSIDE);
	}
}

static const char *const outside[] = {
	"/",
	"/etc/passwd",
	"/srv",
	"/srv/database",
	"/srv/data2/x",
	"/srv/DATA/x",
	"/SRV/data",
	"/srv/data/..",
	"/srv/data/../",
	"/srv/data/../data/x",
	"/srv/../srv/data/x",
	"/../srv/data/x",
	"/srv/data/a/../../b",
	"/srv/data//..//..//etc/passwd",
	"/srv/data/./../x",
	"/srv/data/a/./../../x",
	"/srv/data /x",
	"/srv/Cafe\u0301 100%/x", /* another directory */
	"/proc/self/root/srv/data/x",
	"/dev/fd/3",
	/* percent-encoded, also more than once */
	"/srv/data/%2e%2e/x",
	"/srv/data/%2E./x",
	"/srv/data/.%2e/x",
	"/srv/data/..%2fx",
	"/srv/data/..%2Fx",
	"/srv/data/..%5cx",
	"/srv/data/%252e%252e/x",
	"/srv/data/%25252e%25252e%25252fx",
	"/srv/data/..%252f..%252fetc/passwd",
	"/srv/data/a%2f../../x",
	"/srv/data/%2e/../x",
	"/srv/data/a%252fb/%2e/../../x", /* inside if decoded never, or twice */
	"/srv/data/%u002e%u002e/x",
	"/srv/data/%u002e%u002e%u2215x",
	"/srv/data/..%u2216x",
	"%2fetc%2fpasswd",
	"%252fetc%252fpasswd",
	"%2e%2e%2fetc%2fpasswd",
	"%2e%2e/%2e%2e/etc/passwd",
	"%2fsrv%2fdata%2fx",
	"/srv/d%61ta/x",
	"/srv%2fdata/x",
	/* overlong */
	"/srv/data/%c0%ae%c0%ae/x",
	"/srv/data/..%c0%afx",
	"/srv/data/%e0%80%ae%e0%80%ae/x",
	"/srv/data/%f0%80%80%ae%f0%80%80%ae%f0%80%80%afx",
	"/srv/data/%c1%9c..%c1%9cx",
	"%c0%afetc%c0%afpasswd",
	/* compatible forms */
	"/srv/data/\uff0e\uff0e/x",
	"/srv/data/\u2024\u2024/x",
	"/srv/data/\u2025/x",
	"/srv/data/.\uff0e/x",
	"/srv/data/..\uff0fx",
	"/srv/data/..\u2215x",
	"/srv/data/..\u2044x",
	"/srv/data/..\uff3cx",
	"/srv/data/..\ufe68x",
	"/srv/data/%ef%bc%8e%ef%bc%8e%ef%bc%8fx",
	"/srv/data/\uff05\uff12\uff45\uff05\uff12\uff45/x",
	"\uff0fetc\uff0fpasswd",
	"\uff0e\uff0e\uff0fetc",
	"\uff0fsrv\uff0fdata\uff0fx",
	/* not seen */
	"/srv/data/.\u200b./x",
	"/srv/data/..\u200b/x",
	"/srv/data/\u2060..\ufeff/x",
	"/srv/data/.\u00ad./x",
	"\u200b/etc/passwd",
	"\ufeff../etc/passwd",
	/* backslashes */
	"/srv/data/..\\x",
	"/srv/data/..\\..\\etc\\passwd",
	"/srv/data\\..\\..\\etc",
	"..\\..\\etc\\passwd",
	"\\etc\\passwd",
	"\\\\server\\share\\x",
	"\\\\?\\C:\\x",
	"a\\..\\b",
	/* dots and spaces, and what is cut off */
	"/srv/data/.. /x",
	"/srv/data/ ../x",
	"/srv/data/. ./x",
	"/srv/data/.../x",
	"/srv/data/..../x",
	"/srv/data/....//....//etc/passwd",
	"/srv/data/..././..././etc/passwd",
	"....//....//etc/passwd",
	"..././etc/passwd",
	"/srv/data/. /../x",
	"/srv/data/ /../x",
	"/srv/data/..;/x",
	"/srv/data/..;a=b/x",
	"/srv/data/.;/../x",
	"/srv/data/..:/x",
	"/srv/data/..?x",
	"/srv/data/..#x",
	"/srv/data/x/../..'",
	"/srv/data/..\u3000/x",
	"/srv/data/..\u00a0/x",
	/* controls */
	"/srv/data/x\n",
	"/srv/data/x\x01",
	"/srv/data/x\x7f",
	"/srv/data/x\xc2\x85",
	"/srv/data/x%00.png",
	"/srv/data/x%2500.png",
	"/srv/data/..%00/x",
	"/srv/data/.\x01./x",
	"\n/etc/passwd",
	/* before it */
	" /etc/passwd",
	"\t/etc/passwd",
	"\"/etc/passwd\"",
	"'/etc/passwd'",
	"`/etc/passwd`",
	"\u00a0/etc/passwd",
	"%20/etc/passwd",
	"\u3000/etc/passwd",
	"\u1680/etc/passwd",
	"\u201c/etc/passwd\u201d",
	"' /etc/passwd '",
	"\u2003\"\u00a0/etc/passwd",
	/* around .. */
	"'..'",
	"\"..\"",
	".. ",
	" ..",
	"..\u3000",
	"..\u1680",
	"a/..\u2003",
	"'a/..'",
	"a/'..'/b",
	"/srv/data/'..'/x",
	"/srv/data/\u1680..\u1680/x",
	"/srv/data/..\u1680",
	"/srv/data/a/''/../../x",
	/* homes, drives */
	"~",
	"~/x",
	"~root",
	"~root/.ssh/id_rsa",
	"~+/x",
	"~-",
	"~\\x",
	"\uff5e/x",
	"C:/Windows/win.ini",
	"c:\\Windows\\win.ini",
	"C:%5cWindows",
	"\uff23:/x",
	/* URIs */
	"file:///etc/passwd",
	"file:/etc/passwd",
	"file:etc/passwd",
	"file:",
	"file://",
	"file:///",
	"FiLe:///etc/passwd",
	"file://localhost/srv/data/x",
	"file://host/srv/data/x",
	"file://srv/data/x",
	"file:\\\\host\\srv\\data",
	"file:///srv/data/../../etc/passwd",
	"file:///srv/data/%2e%2e/x",
	"file:///srv/data/%2E%2E%2Fx",
	"file:///srv/data/%252e%252e/x",
	"file:///srv/data/..%5cx",
	"file:///srv%2fdata/x",
	"file:///srv/%64ata/x",
	"file:///srv/data/x?/../../../etc",
	"file:///srv/data/x#/../../../etc",
	"file:///srv/data/..?x",
	"file:///srv/data/..#x",
	"file:///srv/a?b/c",
	"file:///srv/data/x%00",
	"file:///srv/data/.%20./x",
	"file%3a///etc/passwd",
	"\uff46ile:///etc/passwd",
	" file:///etc/passwd",
	"file:file:///srv/data/x",
	"file:///~root/x",
	/* relative, from nobody knows where */
	"./x",
	"../x",
	"..",
	"./../x",
	"a/../b",
	"a/..",
	"a/../../b",
	"https://example.com/../x",
};

static void these_are_outside(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		assert_is(&rules, outside[i], false, PATH_OUTSIDE);
		assert_is(&rules, outside[i], true, PATH_OUTSIDE);
	}
	assert_int_equal(path_judge(&rules, SLICE_LIT("/srv/data/x\0y"), false), PATH_OUTSIDE);
	assert_int_equal(path_judge(&rules, SLICE_LIT("\0/etc/passwd"), false), PATH_OUTSIDE);
}

static void append_point(uint32_t code, struct buf *text)
{
	char bytes[4] = { (char)code };
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; n > 1 && i > 0; i--, code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3F));
	if (n > 1)
		bytes[0] = (char)(0xF00 >> n | code);
	buf_append(text, bytes, n);
}

/* Whatever is stripped, at both ends or at one: what is left is judged. */
static void what_is_stripped_hides_nothing(void **state)
{
	static const char *const inner[] = { "..",          "../x", "a/..",
					     "/etc/passwd", "~/x",  "file:///etc/x" };
	static const char *const bases[] = { "", "a/", "/srv/data/" };

	for (uint32_t code = 0; code <= 0x10FFFF; code++) {
		if (!unicode_is_wrapping(code))
			continue;
		for (size_t i = 0; i < 4 * ARRAY_LEN(inner); i++) {
			struct buf text = { 0 };

			if ((i & 1) == 0)
				append_point(code, &text);
			buf_append_str(&text, inner[i / 4]);
			if ((i & 2) == 0)
				append_point(code, &text);
			assert_int_equal(path_judge(&rules, buf_slice(&text), false), PATH_OUTSIDE);
			buf_fini(&text);
		}
		for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
			struct buf text = { 0 };

			buf_append_str(&text, bases[i]);
			append_point(code, &text);
			buf_append_str(&text, "..");
			append_point(code, &text);
			buf_append_str(&text, "/x");
			assert_int_equal(path_judge(&rules, buf_slice(&text), false), PATH_OUTSIDE);
			buf_fini(&text);
		}
	}
}

static void these_are_no_paths(void **state)
{
	static const char *const rows[] = {
		"",
		".",
		"...",
		"hello",
		"hello, world",
		"notes.txt",
		"docs/notes.txt",
		"text/plain",
		"owner/repository",
		"2026/01/31",
		"and so on ... / then",
		"either/or/...",
		"wait .. what",
		"1..10",
		"1../..2",
		"a..b/c..d",
		"https://example.com/a/b?c=d#e",
		"https://example.com/a%20b/%E2%82%AC",
		"100%",
		"50%/60%",
		"~5 minutes",
		"~~struck~~",
		"a ~/b",
		"Q: what?",
		"C:",
		"12:30",
		"key: value",
		"a:b/c",
		"profile:x",
		"see file:///etc/passwd",
		"import x from '../lib/x'",
		"{\"a\": [1, 2]}",
		"\u00bd",
		"\u2026",
		"\u65e5\u672c\u8a9e",
		"\U0001f468\u200d\U0001f469\u200d\U0001f467",
		"line one\nline two",
		"a\\b",
		"user@example.com",
		"x/y/",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_is(&rules, rows[i], false, PATH_NONE);
		/* Where a path is expected, it is one, and begins nobody knows where. */
		assert_is(&rules, rows[i], true, PATH_OUTSIDE);
	}
}

static void relative_paths_begin_at_the_base(void **state)
{
	static const char *const inside[] = {
		"notes.txt", "docs/notes.txt", "",   ".",   "./x",
		"a/../b",    "../x",           "..", "a b", "\u00fc"
	};
	static const char *const left[] = {
		"../../x", "../..", "a/../../../x", "..\\x",  "%2e%2e", "a/%2e%2e/b",
		"x\ny",    "..;",   "\uff0e.",      "/etc",   "~",      "C:/x",
		"%2fetc",  "%7e/x", "\uff0fetc",    "C%3a/x", "%00x"
	};

	for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
		assert_is(&based, inside[i], true, PATH_INSIDE);
		assert_is(&elsewhere, inside[i], true, PATH_OUTSIDE);
	}
	for (size_t i = 0; i < ARRAY_LEN(left); i++)
		assert_is(&based, left[i], true, PATH_OUTSIDE);
	assert_is(&based, "./x", false, PATH_INSIDE);
	assert_is(&based, "x", false, PATH_NONE);
}

static void the_root_may_be_everything(void **state)
{
	const struct slice root = SLICE("/");
	const struct path_rules all = { { &root, 1 }, SLICE("") };

	assert_is(&all, "/etc/passwd", false, PATH_INSIDE);
	assert_is(&all, "/", false, PATH_INSIDE);
	assert_is(&all, "/..", false, PATH_OUTSIDE);
	assert_is(&all, "~", false, PATH_OUTSIDE);
}

/* What was encoded again and again has a last reading that nobody looks for. */
static void encodings_are_bounded(void **state)
{
	for (int times = 1; times < 20; times++) {
		struct buf text = { 0 };

		buf_append_str(&text, "/srv/data/%");
		for (int i = 1; i < times; i++)
			buf_append_str(&text, "25");
		buf_append_str(&text, "2e./x");
		assert_is(&rules, buf_terminate(&text), false, PATH_OUTSIDE);
		buf_fini(&text);
	}
	assert_is(&rules, "%252525252525252525252525252561", false, PATH_OUTSIDE);
	assert_is(&rules, "%25252561", false, PATH_NONE);
}

static void what_can_be_a_root(void **state)
{
	assert_true(path_is_absolute(SLICE_LIT("/")));
	assert_true(path_is_absolute(SLICE_LIT("/srv/..data/caf\u00e9")));
	assert_false(path_is_absolute(SLICE_LIT("")));
	assert_false(path_is_absolute(SLICE_LIT("srv")));
	assert_false(path_is_absolute(SLICE_LIT("~/data")));
	assert_false(path_is_absolute(SLICE_LIT("/srv/../etc")));
	assert_false(path_is_absolute(SLICE_LIT("/srv/..")));
	assert_false(path_is_absolute(SLICE_LIT("/srv/a\nb")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(these_are_inside),
		cmocka_unit_test(these_are_outside),
		cmocka_unit_test(what_is_stripped_hides_nothing),
		cmocka_unit_test(these_are_no_paths),
		cmocka_unit_test(relative_paths_begin_at_the_base),
		cmocka_unit_test(the_root_may_be_everything),
		cmocka_unit_test(encodings_are_bounded),
		cmocka_unit_test(what_can_be_a_root),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
