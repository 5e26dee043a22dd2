/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of lists as they come in, page by page, how often, and in what lists nobody may look. SEC-65, SEC-67 */
#include "router/listing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/pages.h"
#include "router/router.h"

static struct server server;
static struct server_stats stats;
static int told[2]; /* a pipe: the log */
static uint64_t now_ms = 1000000;

static int begin(void **state)
{
	stats = (struct server_stats){ .users = 1 };
	server = (struct server){ .conf = { .name = "a", .pin = PIN_WARN }, .stats = &stats };
	pins_init(&server.pins);
	assert_int_equal(pipe2(told, O_CLOEXEC | O_NONBLOCK), 0);
	log_set(told[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	clock_freeze(now_ms);
	return 0;
}

static int end(void **state)
{
	pins_fini(&server.pins);
	call_stats_fini(&stats.calls);
	log_set(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	close(told[0]);
	close(told[1]);
	return 0;
}

static struct slice spell(const char *text)
{
	static char spelled[4096];

	snprintf(spelled, sizeof(spelled), "%s", text);
	for (char *at = spelled; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	return slice_str(spelled);
}

static void look(const char *result, uint64_t page)
{
	listing_look(&server, method_find(SLICE_LIT("tools/list")), spell(result), page);
}

/* How many lines of the log since the last time have this word. */
static size_t count(const char *word)
{
	static char text[65536];
	ssize_t n = read(told[0], text, sizeof(text) - 1);
	size_t lines = 0;

	text[n > 0 ? n : 0] = '\0';
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		lines++;
	return lines;
}

/* What clients are told of a server that says this of itself, without envelope. */
static void assert_said(const char *result, const char *shown)
{
	static const struct scan_limits limits = { 64, 256 };
	char text[2048];
	struct convert convert = { 0 };
	struct envelope env;
	struct error err;
	struct slice found, wanted;

	snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,'result':%s}", result);
	assert_int_equal(scan_envelope(spell(text), &limits, SCAN_LENIENT, &env, &err), 0);
	found = pinning_take_server(&convert, &server, &env)->result.text;
	found = slice_of(mem_dup_slice(found), found.n);
	wanted = spell(shown);
	if (!slice_is_equal(found, wanted))
		fail_msg("%s: %.*s", shown, SLICE_ARG(found));
	free((char *)(uintptr_t)found.p);
	convert_fini(&convert);
}

/* SEC-65: and once somebody could have read something else in it, it stays withheld. */
static void what_a_server_says_of_itself_is_pinned(void **state)
{
	static const char good[] = "{'serverInfo':{'name':'n','title':'t'},'instructions':'i'}";

	server.conf.pin = PIN_WARN;
	assert_said(good, good);
	assert_said("{'instructions':'other'}", "{'instructions':'other'}");
	assert_int_equal(count("pin_waits"), 1);
	server.conf.pin = PIN_ENFORCE;
	assert_said(good, "{'serverInfo':{'name':'n','title':'t'}}");
	pins_reject(&server.pins, pins_find(&server.pins, PIN_SERVER, SLICE_LIT("instructions")));
	assert_said(good, good);
	assert_said("{'serverInfo':{'title':'t','name':'n'},'instructions':'\\u0069'}",
		    "{'serverInfo':{'title':'t','name':'n'},'instructions':'\\u0069'}");
	assert_said("{'instructions':'i','Instructions':'more'}", "{}");
	assert_said("{'instr\\u0075ctions':'more','x':1}", "{'x':1}");
	assert_said("{'in\u017ftructions':'more','\u017ferverInfo':{'title':'more'},'x':1}",
		    "{'\u017ferverInfo':{},'x':1}");
	assert_said("{'serverInfo':{'version':'2','name':'n','icons':[]},'x':1}",
		    "{'serverInfo':{'version':'2','name':'n'},'x':1}");
	assert_said("{'serverInfo':{'name':'n'}}", "{'serverInfo':{'name':'n'}}");
}

/* All of it is: what comes after the name, and after other members. */
static void all_that_a_server_says_is_pinned(void **state)
{
	static const char good[] = "{'serverInfo':{'name':'n','title':'t','icons':[]}}";

	server.conf.pin = PIN_ENFORCE;
	assert_said(good, good);
	assert_said("{'serverInfo':{'name':'n','version':'2','title':'t','icons':[]}}",
		    "{'serverInfo':{'name':'n','version':'2','title':'t','icons':[]}}");
	assert_said("{'serverInfo':{'name':'n','title':'t','icons':[1]}}",
		    "{'serverInfo':{'name':'n'}}");
}

/* What is said later for the first time is new. */
static void what_was_not_said_at_first_is_new(void **state)
{
	server.conf.pin = PIN_ENFORCE;
	assert_said("{'serverInfo':{'name':'n'}}", "{'serverInfo':{'name':'n'}}");
	assert_said("{'instructions':'i'}", "{}");
	assert_int_equal(count("is=new"), 1);
}

static void pages_do_not_make_each_others_items_gone(void **state)
{
	const uint64_t second =
		listing_kind_page((struct json){ JSON_STRING, true, SLICE("\"x\"") });

	look("{'tools':[{'name':'one'}],'nextCursor':'x'}", 0);
	look("{'tools':[]}", listing_kind_page((struct json){ JSON_STRING, true, SLICE("\"y\"") }));
	assert_false(server.pins.is_known[PERMISSION_TOOL]); /* no page of it */
	look("{'tools':[{'name':'two'}]}", second);
	assert_true(server.pins.is_known[PERMISSION_TOOL]);
	assert_int_equal(count("pin_moved"), 0);
	look("{'tools':[{'name':'one'}]}", 0);
	assert_int_equal(count("is=gone"), 1);
	look("{'tools':[{'name':'one'},{'name':'two'}]}", 0);
	assert_int_equal(count("is=back"), 1);
}

/* The entries of deny that fit no tool are known once a list has come to its end. */
static void deny_without_a_tool_is_noticed(void **state)
{
	static const struct slice deny[] = { SLICE("one"), SLICE("onee"), SLICE("t*") };
	const struct method *method = method_find(SLICE_LIT("tools/list"));
	struct permissions *permissions = &server.conf.permissions;
	const uint64_t second =
		listing_kind_page((struct json){ JSON_STRING, true, SLICE("\"x\"") });
	struct rule rule;
	size_t at = 0;

	permissions->kinds[PERMISSION_TOOL].deny = (struct slices){ deny, ARRAY_LEN(deny) };
	permissions_finish(permissions);
	listing_look(&server, method, spell("{'tools':[{'name':'on\\u0065'}],'nextCursor':'x'}"),
		     0);
	assert_false(deny_watch_next(&server, &at, &rule));
	listing_look(&server, method, spell("{'tools':[{'name':'two'}]}"), second);
	assert_true(deny_watch_next(&server, &at, &rule));
	assert_true(rule.key == RULE_TOOLS_DENY && rule.has_entry);
	assert_int_equal(rule.entry, 1);
	assert_false(deny_watch_next(&server, &at, &rule));
	server.rules++; /* by a reload: a list has to come first */
	at = 0;
	assert_false(deny_watch_next(&server, &at, &rule));
	listing_look(&server, method, spell("{'tools':[]}"), second); /* of a list from before */
	assert_false(deny_watch_next(&server, &at, &rule));
	listing_look(&server, method, spell("{'tools':[]}"), 0);
	for (size_t i = 0; i < ARRAY_LEN(deny); i++)
		assert_true(deny_watch_next(&server, &at, &rule));
	assert_false(deny_watch_next(&server, &at, &rule));
	permissions_free(permissions);
	*permissions = (struct permissions){ .roles = NULL };
}

static void lines_are_bounded_for_a_minute(void **state)
{
	char text[128];

	look("{'tools':[]}", 0);
	for (int minute = 0; minute < 2; minute++) {
		for (int i = 0; i < 100; i++) {
			snprintf(text, sizeof(text), "{'tools':[{'name':'t','title':'%d'}]}",
				 minute * 100 + i);
			look(text, 0);
		}
		assert_in_range(count("pin_waits"), 20, 40);
		look("{'tools':[{'name':'t','title':'more'}]}", 0);
		assert_int_equal(count("pin_waits"), 0);
		clock_freeze(now_ms += 60 * 1000);
	}
	assert_int_equal(server.pins.count, 1);
}

/* So many of them, and no more: of the others nothing is said. */
static void many_entries_of_deny_are_watched(void **state)
{
	struct permissions *permissions = &server.conf.permissions;
	char texts[DENY_WATCHED + 2][8];
	struct slice deny[DENY_WATCHED + 2];
	struct rule rule;
	size_t at = 0, count_unused = 0;

	for (size_t i = 0; i < ARRAY_LEN(deny); i++) {
		snprintf(texts[i], sizeof(texts[i]), "n%zu", i);
		deny[i] = slice_str(texts[i]);
	}
	permissions->kinds[PERMISSION_TOOL].deny = (struct slices){ deny, ARRAY_LEN(deny) };
	permissions_finish(permissions);
	look("{'tools':[{'name':'n0'},{'name':'n63'},{'name':'n64'}]}", 0);
	while (deny_watch_next(&server, &at, &rule))
		count_unused++;
	assert_int_equal(count_unused, DENY_WATCHED - 2);
	permissions_free(permissions);
	*permissions = (struct permissions){ .roles = NULL };
}

static void lists_of_two_meanings_are_not_looked_at(void **state)
{
	static const char *const lists[] = {
		"{'tools':[{'name':'a'}],'tools':[]}", "{'tools':[{'name':'a'}],'t\\u006fols':[]}",
		"{'tools':[{'name':'a'}],'TOOLS':[]}", "{'tool\\u017f':[{'name':'a'}]}",
		"{'\\uff54ools':[{'name':'a'}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		look(lists[i], 0);
		assert_int_equal(count("list_ambiguous"), 1);
		assert_int_equal(server.pins.count, 0);
		assert_false(server.pins.is_known[PERMISSION_TOOL]);
	}
	look("{'tool':[],'toolss':1,'\\ud800tools':2,'prompts':[],'tools':[{'name':'a'}]}", 0);
	assert_int_equal(count("list_ambiguous"), 0);
	assert_int_equal(server.pins.count, 1);
}

/* REL-51: names whose comparison is slow are compared up to a bound; ASCII ones without one. */
static void slow_names_are_bounded(void **state)
{
	struct buf list = { 0 };
	char item[400], name[256] = "";

	for (size_t n = 0; n + 2 < sizeof(name) - 8; n += 2)
		memcpy(name + n, "\xCC\x81", 2);
	buf_append_str(&list, "{\"tools\":[");
	for (int i = 0; i < 500; i++) {
		snprintf(item, sizeof(item), "{\"name\":\"a%d\"},{\"name\":\"%d%s\"},", i, i, name);
		buf_append_str(&list, item);
	}
	buf_append_str(&list, "{\"name\":\"last\"}]}");
	listing_look(&server, method_find(SLICE_LIT("tools/list")), buf_slice(&list), 0);
	assert_in_range(server.pins.count, 501 + 100, 501 + LISTING_FOLDED_BYTES_MAX / 240);
	buf_fini(&list);
}

/* A page without items, or with another thing in their place, ends the list all the same. */
static void what_is_no_list_ends_it(void **state)
{
	look("{}", 0);
	assert_true(server.pins.is_known[PERMISSION_TOOL]);
	look("{'tools':{'a':1}}", 0);
	assert_int_equal(server.pins.count, 0);
	look("{'tools':[{'name':'late'},{},{'name':7},1]}", 0);
	assert_int_equal(server.pins.waiting, 1);
}

/* What a client gets of this list of tools; NULL: nothing, as it could read another one in it. */
static void is_shown(const char *result, const char *shown)
{
	static const struct scan_limits limits = { 64, 256 };
	static struct router router;
	struct client client = { .router = &router, .server = &server };
	struct call call = { .client = &client, .method = method_find(SLICE_LIT("tools/list")) };
	at_end(convert_fini) struct convert convert = { 0 };
	const struct envelope *filtered;
	struct envelope env;
	char text[1000], *found;

	snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,'result':%s}", result);
	assert_int_equal(scan_envelope(spell(text), &limits, SCAN_LENIENT, &env, NULL), 0);
	filtered = listing_filter(&convert, &call, &env);
	assert_int_equal(filtered == NULL, shown == NULL);
	if (shown == NULL)
		return;
	assert_int_equal(filtered == &env,
			 strcmp(result, shown) == 0); /* it is not copied in vain */
	found = mem_dup_slice(filtered->text);
	snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,'result':%s}", shown);
	assert_string_equal(found, spell(text).p);
	free(found);
	assert_int_equal(filtered == &env,
			 strcmp(result, shown) == 0); /* nothing is copied in vain */
}

/* All other items are shown, in their order, and what stands beside them; unless that could be read instead. */
static void what_is_denied_is_not_shown(void **state)
{
	static const struct slice allow[] = { SLICE("*") }, deny[] = { SLICE("b"), SLICE("B*") };
	struct permissions *permissions = &server.conf.permissions;

	is_shown("{'tools':[{'name':'b'}]}", "{'tools':[{'name':'b'}]}");
	permissions->kinds[PERMISSION_TOOL].allow = (struct slices){ allow, ARRAY_LEN(allow) };
	permissions->kinds[PERMISSION_TOOL].deny = (struct slices){ deny, ARRAY_LEN(deny) };
	permissions_finish(permissions);
	is_shown("{'tools':[{'name':'a','x':1},{'name':'c'}],'y':2}",
		 "{'tools':[{'name':'a','x':1},{'name':'c'}],'y':2}");
	is_shown(
		"{'x':0,'tools':[{'name':'b'},{'name':'a','x':1},{'name':'\\u0062'},{'name':'c'}],'y':2,'nextCursor':'n'}",
		"{'x':0,'tools':[{'name':'a','x':1},{'name':'c'}],'y':2,'nextCursor':'n'}");
	is_shown("{'tools':[{'name':'a'},{'name':'b'}]}", "{'tools':[{'name':'a'}]}");
	is_shown("{'tools':[{'name':'b'}]}", "{'tools':[]}");
	is_shown("{'tools':[{}, {'name':1}]}", "{'tools':[]}");
	is_shown("{'tools':{'name':'b'}}", "{'tools':{'name':'b'}}");
	is_shown("{'tools':[{'name':'a'}],'Tools':[]}", NULL);
	permissions_free(permissions);
	*permissions = (struct permissions){ .roles = NULL };
}

/* SEC-65: nothing else that a model could read either. */
static void only_what_is_approved_is_shown(void **state)
{
	server.conf.pin = PIN_ENFORCE;
	look("{'tools':[{'name':'a'},{'name':'c'}]}", 0);
	look("{'tools':[{'name':'a'},{'name':'b'},{'name':'c','x':1}]}", 0);
	is_shown(
		"{'y':1,'tools':[{'name':'a'},{'name':'b'},{'name':'c'}],'nextCursor':'n','z':2,'ttlMs':1}",
		"{'tools':[{'name':'a'}],'nextCursor':'n','ttlMs':1}");
}

static const char *find_withheld(const char *message)
{
	static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };
	struct envelope env;
	struct error err;

	assert_int_equal(scan_envelope(spell(message), &limits, 0, &env, &err), 0);
	return pinning_find_withheld(&server, &env);
}

static void notifications_that_are_calls_are_withheld(void **state)
{
	const char *call = "{'jsonrpc':'2.0','method':'Tools/call','params':{'name':'a'}}";

	assert_null(find_withheld(call));
	server.conf.pin = PIN_ENFORCE;
	assert_string_equal(find_withheld(call), "notification");
	assert_null(find_withheld("{'jsonrpc':'2.0','method':'notifications/initialized'}"));
	assert_null(find_withheld("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{"
				  "'name':'a'}}"));
}

static void what_is_new_is_withheld(void **state)
{
	const char *read =
		"{'jsonrpc':'2.0','id':1,'method':'resources/read','params':{'uri':'a:b'}}";
	const struct method *method = method_find(SLICE_LIT("resources/list"));

	server.conf.pin = PIN_ENFORCE;
	listing_look(&server, method, spell("{'resources':[]}"), 0);
	assert_null(find_withheld(read));
	listing_look(&server, method, spell("{'resources':[{'uri':'a:b'}]}"), 0);
	assert_string_equal(find_withheld(read), "resource");
}

/* Once, until the rules are others. */
static void names_that_collide_are_told(void **state)
{
	static const struct slice shown = SLICE("b");
	static const struct named_slices names = { SLICE("a"), { &shown, 1 } };

	server.conf.shown.kinds[PERMISSION_TOOL].names = (struct slice_map){ &names, 1 };
	for (server.rules = 0; server.rules < 2; server.rules++) {
		look("{'tools':[{'name':'a'},{'name':'b'}]}", 0);
		look("{'tools':[{'name':'a'},{'name':'b'}]}", 0);
		assert_int_equal(count("names_collide server=a list=tools name=b"), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_server_says_of_itself_is_pinned, begin, end),
		cmocka_unit_test_setup_teardown(all_that_a_server_says_is_pinned, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_said_at_first_is_new, begin, end),
		cmocka_unit_test_setup_teardown(pages_do_not_make_each_others_items_gone, begin,
						end),
		cmocka_unit_test_setup_teardown(lines_are_bounded_for_a_minute, begin, end),
		cmocka_unit_test_setup_teardown(deny_without_a_tool_is_noticed, begin, end),
		cmocka_unit_test_setup_teardown(many_entries_of_deny_are_watched, begin, end),
		cmocka_unit_test_setup_teardown(lists_of_two_meanings_are_not_looked_at, begin,
						end),
		cmocka_unit_test_setup_teardown(slow_names_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_list_ends_it, begin, end),
		cmocka_unit_test_setup_teardown(what_is_new_is_withheld, begin, end),
		cmocka_unit_test_setup_teardown(names_that_collide_are_told, begin, end),
		cmocka_unit_test_setup_teardown(what_is_denied_is_not_shown, begin, end),
		cmocka_unit_test_setup_teardown(only_what_is_approved_is_shown, begin, end),
		cmocka_unit_test_setup_teardown(notifications_that_are_calls_are_withheld, begin,
						end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
