/* SPDX-License-Identifier: Apache-2.0 */
/* What may be used, by whatever name it is asked for. SEC-50 */
#include "policy/permissions.h"

#include <time.h>

#include "base/unit_test.h"
#include "jsonrpc/scan.h"
#include "policy/name.h"
#include "policy/rights.h"

static const struct scan_limits limits = { 64, 256 };
static const struct rights anybody = { .needs_roles = false };

/* The URI folded, or NULL. Until the next call. */
static const char *folded_uri(const char *uri)
{
	static struct buf folded;

	folded.len = 0;
	if (uri == NULL) {
		buf_fini(&folded);
		return NULL;
	}
	return uri_fold(slice_str(uri), &folded) == NULL ? buf_terminate(&folded) : NULL;
}

static void uris_are_what_they_mean(void **state)
{
	static const struct {
		const char *uri;
		const char *folded;
	} rows[] = {
		{ "file:///srv/data/a", "file:/srv/data/a" },
		{ "FILE:///srv/Data", "file:/srv/Data" },
		{ "file://localhost/srv", "file:/srv" },
		{ "file:/srv", "file:/srv" },
		{ "file:srv/data", "file:/srv/data" },
		{ "FILE:./srv/../etc", "file:/etc" },
		{ "file:///My files", "file:/My files" },
		{ "http://Example.COM/A/b", "http:/example.com/A/b" },
		{ "file:///srv/data/../etc", "file:/srv/etc" },
		{ "file:///srv/data/..", "file:/srv/" },
		{ "file:///srv/data/.", "file:/srv/data/" },
		{ "file:///../../etc", "file:/etc" },
		{ "file:///srv//data///a", "file:/srv/data/a" },
		{ "file:///srv/./data", "file:/srv/data" },
		{ "file:///srv/%64ata", "file:/srv/data" },
		{ "file:///srv/data%2f..%2Fetc", "file:/srv/etc" },
		{ "file:///srv/%252e%252e/etc", "file:/etc" },
		{ "file:///srv\\data\\..\\etc", "file:/srv/etc" },
		{ "file:///srv/%5c..%5cetc", "file:/etc" },
		{ "file:%2f%2f/srv", "file:/srv" },
		{ "res://a/b", "res:/a/b" },
		{ "res:///a/b", "res:/a/b" },
		{ "demo:note", "demo:note" },
		{ "demo:a/../b", "demo:b" },
		{ "note", "note" },
		{ "a/../../b", "b" },
		{ "file:///srv/data/", "file:/srv/data/" },
		{ "file:///100%", "file:/100%" },
		{ "file:///%zz", "file:/%zz" },
		{ "http://h", "http:/h" },
		{ "http:H/A", "http:/h/A" },
		{ "https:/H/A", "https:/h/A" },
		{ "http:////H/A", "http:/h/A" },
		{ "http://h/a/..", "http:/h/" },
		{ "res://a?q=1#f", "res:/a?q=1#f" },
		{ "file:///s\xC3\xA4.txt", "file:/s\xC3\xA4.txt" },
		{ "file:///s%C3%A4.txt", "file:/s\xC3\xA4.txt" },
		{ "postgres://me@h/a", "postgres:/me@h/a" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *found = folded_uri(rows[i].uri);

		if (found == NULL)
			fail_msg("%s", rows[i].uri);
		assert_string_equal(found, rows[i].folded);
	}
	(void)folded_uri(NULL);
}

static void what_could_mean_anything_is_no_uri(void **state)
{
	static const char *const uris[] = {
		"res://a/../b?/x",
		"",
		" file:///srv",
		"file:///srv ",
		"%20file:///srv",
		"file:///a%00b",
		"file:///a%0ab",
		"file:///a\xE2\x80\x8B",
		"file:///a%E2%80%AEb",
		"file:///a%FF",
		"%2525252525252e",
		"%252525252e",
		"http://h/..",
		"http:/h/../private",
		"http://public@private/a",
		"http://\xef\xbd\x88/a",
		"https://h\xe3\x80\x82x/a",
		"http://h./a",
		"http:h.:80/a",
		"ws://%EF%BD%88/a",
		"res://x/../private",
		"res://x/a/%2e%2e/../private",
		"res://a/b?/../c",
		"res://a/b%23/../c",
		"file://host/srv",
		"file://127.0.0.1/srv",
		"file:///srv/private\u3000",
		"\u1680file:///srv/private",
		"file:///srv/private%E2%80%83",
		"\"file:///srv/private\"",
		"file:///srv/private'",
		"\u201cfile:///srv/private\u201d",
		"file:///srv/a/..%20/private",
		"file:///srv/a/'..'/private",
		"file:///srv/a/..;x/private",
		"res://a/b?/..%20/c",
	};

	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		const char *found = folded_uri(uris[i]);

		if (found != NULL)
			fail_msg("%s: %s", uris[i], found);
	}
	(void)folded_uri(NULL);
}

/* Each decoding takes two characters: to find the end of it would take thousands. SEC-14 */
static void what_is_encoded_without_end_costs_little(void **state)
{
	const int uris = 100;
	char uri[URI_BYTES_MAX + 1] = "%";
	struct buf folded = { 0 };
	clock_t begin = clock();

	for (size_t i = 1; i + 1 < URI_BYTES_MAX; i += 2)
		memcpy(uri + i, "25", 3);
	for (int i = 0; i < uris; i++)
		assert_non_null(uri_fold(slice_str(uri), &folded));
	assert_int_equal(folded.len, 0);
	assert_true((clock() - begin) / (CLOCKS_PER_SEC / 1000) < 2 * uris);
	buf_fini(&folded);
}

/* What is folded once stays as it is. */
static void folding_again_changes_nothing(void **state)
{
	static const char *const uris[] = { "FILE:///a/%2e%2e/b/", "a\\b//c/./d", "http://H//x/..",
					    "x:%2f%2e%2e/y", "file:///%2561" };

	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		struct buf once = { 0 }, twice = { 0 };

		assert_null(uri_fold(slice_str(uris[i]), &once));
		assert_null(uri_fold(buf_slice(&once), &twice));
		assert_true(slice_is_equal(buf_slice(&once), buf_slice(&twice)));
		buf_fini(&once);
		buf_fini(&twice);
	}
}

/* tools: read_*, Echo, but not read_secret*; resources below file:///srv/data, but not its Private. */
static struct permissions some_rules(void)
{
	static const struct slice tools[] = { SLICE("read_*"), SLICE("Echo") };
	static const struct slice secrets[] = { SLICE("read_secret*") };
	static const struct slice all[] = { SLICE("*") };
	static const struct slice files[] = { SLICE("file:///srv/data/*") };
	static const struct slice private[] = { SLICE("file:///srv/data/Private/*"),
						SLICE("file:///srv/data/private") };
	struct permissions permissions = { .kinds = {
						   [PERMISSION_TOOL] = { .allow = { tools, 2 },
									 .deny = { secrets, 1 } },
						   [PERMISSION_PROMPT] = { .allow = { all, 1 } },
						   [PERMISSION_RESOURCE] = { .allow = { files, 1 },
									     .deny = { private,
										       2 } },
					   } };

	permissions_finish(&permissions);
	return permissions;
}

static void deny_wins_however_it_is_spelled(void **state)
{
	static const struct {
		enum permission_kind kind;
		const char *name;
		bool is_allowed;
	} rows[] = {
		{ PERMISSION_TOOL, "read_file", true },
		{ PERMISSION_TOOL, "READ_file", true },
		{ PERMISSION_TOOL, "echo", true },
		{ PERMISSION_TOOL, "echo2", false },
		{ PERMISSION_TOOL, "write_file", false },
		{ PERMISSION_TOOL, "read_secret", false },
		{ PERMISSION_TOOL, "Read_Secrets", false },
		{ PERMISSION_TOOL, "read_ secret", false },
		{ PERMISSION_TOOL,
		  "\xEF\xBD\x92"
		  "ead_secret",
		  false }, /* full width r */
		{ PERMISSION_TOOL, "read_\xE2\x80\x8Bsecret", false },
		{ PERMISSION_TOOL, "", false },
		{ PERMISSION_PROMPT, "anything", true },
		{ PERMISSION_PROMPT, "any\x01thing", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/a", true },
		{ PERMISSION_RESOURCE, "file:///srv/data/../x", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/%2e%2e/x", false },
		{ PERMISSION_RESOURCE, "file:///x/../srv/data/a", true },
		{ PERMISSION_RESOURCE, "FILE:///srv/data/a", true },
		{ PERMISSION_RESOURCE, "file:///SRV/data/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/Private/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/private/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/x/../PRIVATE/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/Privat%65/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/private?x", false },
		{ PERMISSION_RESOURCE, "file:srv/data/private/a", false },
		{ PERMISSION_RESOURCE, "file:///srv/data/Private/a?x", false },
		{ PERMISSION_TEMPLATE, "file:///{path}", false }, /* nothing is allowed */
	};
	struct permissions permissions = some_rules();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (permissions_allow(&permissions, &anybody, rows[i].kind,
				      slice_str(rows[i].name)) != rows[i].is_allowed)
			fail_msg("%s", rows[i].name);
	permissions_free(&permissions);
}

static void without_rules_all_is_allowed(void **state)
{
	static const struct slice all[] = { SLICE("*") };
	struct permissions permissions = { .has_rules = false };

	for (size_t i = 0; i < PERMISSION_KINDS; i++)
		permissions.kinds[i].allow = (struct slices){ all, 1 };
	permissions_finish(&permissions);
	assert_false(permissions.has_rules);
	assert_true(permissions_allow(&permissions, &anybody, PERMISSION_TOOL, SLICE_LIT("a\x01")));
	assert_true(permissions_allow_json(&permissions, &anybody, PERMISSION_TOOL,
					   (struct json){ .type = JSON_NUMBER }));
	permissions_free(&permissions);
}

static const struct {
	const char *message;
	const char *denied; /* NULL: nothing */
	const char *rule;   /* behind servers.main. */
} messages[] = {
	{ "'method':'tools/call','params':{'name':'read_a'}", NULL, NULL },
	{ "'method':'tools/call','params':{'name':'write'}", "tool", "tools.allow" },
	{ "'method':'tools/call','params':{'name':'read_secr\\u0065t'}", "tool", "tools.deny[0]" },
	{ "'method':'tools/call','params':{'name':7}", "tool", "tools.allow" },
	{ "'method':'tools/call','params':{}", "tool", "tools.allow" },
	{ "'method':'tools/call','params':['write']", "tool", "tools.allow" },
	{ "'method':'tools/call'", "tool", "tools.allow" },
	{ "'method':'Tools/Call','params':{'name':'write'}", "tool", "tools.allow" },
	{ "'method':'tools /call','params':{'name':'write'}", "tool", "tools.allow" },
	{ "'method':'tools/call\xE2\x80\x8B','params':{'name':'write'}", "method", "" },
	{ "'method':'tools/list'", NULL, NULL },
	{ "'method':'ping'", NULL, NULL },
	{ "'method':'prompts/get','params':{'name':'p'}", NULL, NULL },
	{ "'method':'prompts/get','params':{'name':'p\\u0000'}", "prompt", "prompts.allow" },
	{ "'method':'resources/read','params':{'uri':'file:///srv/data/a'}", NULL, NULL },
	{ "'method':'resources/read','params':{'uri':'file:///etc/passwd'}", "resource",
	  "resources.allow" },
	{ "'method':'resources/subscribe','params':{'uri':'file:///etc'}", "resource",
	  "resources.allow" },
	{ "'method':'resources/unsubscribe','params':{'uri':'file:///etc'}", "resource",
	  "resources.allow" },
	{ "'method':'completion/complete','params':{'ref':{'type':'ref/prompt','name':'p'}}", NULL,
	  NULL },
	{ "'method':'completion/complete','params':{'ref':{'type':'ref/resource','uri':'a'}}",
	  "prompt or resource", "templates.allow" },
	{ "'method':'completion/complete','params':{'ref':{'\\u0075ri':'a','name':'p'}}",
	  "prompt or resource", "templates.allow" },
	{ "'method':'completion/complete','params':{'ref':{'name':'p','Uri':'a'}}",
	  "prompt or resource", "templates.allow" },
	{ "'method':'completion/complete','params':{'ref':{'\\ud800':'p'}}", "prompt or resource",
	  "prompts.allow" },
	{ "'method':'completion/complete','params':{'ref':{'name':'p'},'Ref':{'uri':'a'}}",
	  "prompt or resource", "templates.allow" },
	{ "'method':'completion/complete','params':{'ref':7,'REF':{'name':'p'}}", NULL, NULL },
	{ "'method':'completion/complete','params':[{'ref':{'uri':'a'}}]", "prompt or resource",
	  "prompts.allow" },
	{ "'method':'completion/complete'", "prompt or resource", "prompts.allow" },
	{ "'result':{}", NULL, NULL },
};

static void messages_are_judged_by_what_they_use(void **state)
{
	struct permissions permissions = some_rules();

	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		struct envelope env;
		struct error err;
		struct buf text_of_rule = { 0 };
		struct rule rule;
		const char *denied;
		char text[512];

		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,%s}", messages[i].message);
		for (char *at = text; (at = strchr(at, '\'')) != NULL;)
			*at = '"';
		if (scan_envelope(slice_str(text), &limits, 0, &env, &err) < 0)
			fail_msg("%s: %s", text, err.text);
		denied = permissions_find_denied(&permissions, &anybody, &env, &rule);
		if ((denied == NULL) != (messages[i].denied == NULL) ||
		    (denied != NULL && strcmp(denied, messages[i].denied) != 0))
			fail_msg("%s: %s", text, denied != NULL ? denied : "allowed");
		rule_append(&rule, SLICE_LIT("main"), &text_of_rule);
		if (denied != NULL && rule.key != RULE_NONE &&
		    strcmp(buf_terminate(&text_of_rule) + strlen("servers.main."),
			   messages[i].rule) != 0)
			fail_msg("%s: by %s", text, text_of_rule.data);
		buf_fini(&text_of_rule);
	}
	permissions_free(&permissions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uris_are_what_they_mean),
		cmocka_unit_test(what_could_mean_anything_is_no_uri),
		cmocka_unit_test(what_is_encoded_without_end_costs_little),
		cmocka_unit_test(folding_again_changes_nothing),
		cmocka_unit_test(deny_wins_however_it_is_spelled),
		cmocka_unit_test(without_rules_all_is_allowed),
		cmocka_unit_test(messages_are_judged_by_what_they_use),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
