/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of single messages. They are written here with ' for ", so that they can be read; one that
 * is to stay as it is must come back as the same envelope, not as an equal one. bridging.md §3
 */
#include "router/convert.h"

#include "base/unit_test.h"
#include "mcp/revision.h"

#define A "2024-11-05"
#define B "2025-03-26"
#define C "2025-06-18"
#define D "2025-11-25"

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 256 };
static char asked[4096];

/* A message with `inside` as that member. */
static struct envelope read_message(const char *member, const char *inside)
{
	struct envelope env;
	struct error err;

	assert_in_range(snprintf(asked, sizeof(asked), "{'jsonrpc':'2.0','id':7,%s:%s}", member,
				 inside),
			1, sizeof(asked) - 1);
	for (char *p = asked; *p != '\0'; p++) {
		if (*p == '\'')
			*p = '"';
	}
	if (scan_envelope(slice_str(asked), &limits, SCAN_LENIENT, &env, &err) < 0)
		fail_msg("%s: %s", asked, err.text);
	return env;
}

static unsigned int lost(const char *to, const char *from)
{
	return revision_lacks(revision_find(slice_str(to)), revision_find(slice_str(from)));
}

static void is_text(struct slice have, const char *inside)
{
	char *text = malloc(have.n + 1);

	for (size_t i = 0; i < have.n; i++)
		text[i] = have.p[i] == '"' ? '\'' : have.p[i];
	text[have.n] = '\0';
	assert_string_equal(text, inside);
	free(text);
}

typedef const struct envelope *convert_fn(struct convert *convert, unsigned int lost,
					  const struct method *method, const struct envelope *env);

/* `wanted`: of the member that counts; NULL: the message stays; "": it is refused. */
static void becomes(convert_fn *fn, unsigned int flags, const char *method, const char *inside,
		    const char *wanted)
{
	bool is_response = fn == convert_response || fn == convert_answer;
	struct envelope env =
		read_message(is_response ? "'result'" : "'method':'x','params'", inside);
	struct convert convert = { .text = { 0 } };
	const struct envelope *got = fn(&convert, flags, method_find(slice_str(method)), &env);

	if (wanted == NULL) {
		assert_ptr_equal(got, &env);
		assert_int_equal(convert.text.len, 0);
	} else if (wanted[0] == '\0') {
		assert_null(got);
	} else {
		assert_non_null(got);
		assert_ptr_not_equal(got, &env);
		assert_int_equal(got->kind, env.kind);
		assert_true(slice_is_equal(got->id.text, SLICE_LIT("7")));
		is_text(env.kind == ENVELOPE_RESULT ? got->result.text : got->params.text, wanted);
	}
	convert_fini(&convert);
}

#define AUDIO "{'type':'audio','data':'UklG\\/g==','mimeType':'audio/wav'}"
#define AUDIO_TEXT "{'type':'text','text':'[audio: audio/wav, 4 bytes omitted]'}"
#define LINK "{'uri':'file:///a','type':'resource_link','name':'The \\n a','mimeType':'x/y'}"
#define LINK_TEXT "{'type':'text','text':'The \\n a: file:///a'}"
#define TEXT "{'type':'text','text':'t'}"

static void features_are_lost_downwards_only(void **state)
{
	static const char *const names[] = { A, B, C, D };

	for (size_t to = 0; to < 4; to++) {
		for (size_t from = 0; from < 4; from++)
			assert_int_equal(lost(names[to], names[from]) != 0, from > to);
	}
	assert_int_equal(revision_lacks(revision_find(SLICE_LIT(A)), NULL), 0);
}

static void sound_becomes_text(void **state)
{
	static const char content[] = "{'content':[" TEXT " ,\t" AUDIO "," AUDIO "],'x':1.0}";
	static const char noted[] =
		"{'content':[{'type':'audio','data':'','mimeType':'m','annotations':{'priority':1.50}}]}";

	becomes(convert_response, lost(A, B), "tools/call", content,
		"{'content':[" TEXT " ,\t" AUDIO_TEXT "," AUDIO_TEXT "],'x':1.0}");
	becomes(convert_response, lost(B, D), "tools/call", content, NULL);
	becomes(convert_response, lost(A, D), "tools/list", content, NULL);
	becomes(convert_response, lost(A, D), "tools/call", noted,
		"{'content':[{'type':'text','text':'[audio: m, 0 bytes omitted]',"
		"'annotations':{'priority':1.50}}]}");
	becomes(convert_response, lost(A, C), "prompts/get",
		"{'messages':[{'role':'user','content':" AUDIO "},{'role':'user','content':" TEXT
		"}]}",
		"{'messages':[{'role':'user','content':" AUDIO_TEXT
		"},{'role':'user','content':" TEXT "}]}");
}

static void links_become_text(void **state)
{
	static const char content[] = "{'content':[" LINK "," AUDIO "]}";

	becomes(convert_response, lost(B, C), "tools/call", content,
		"{'content':[" LINK_TEXT "," AUDIO "]}");
	becomes(convert_response, lost(A, D), "tools/call", content,
		"{'content':[" LINK_TEXT "," AUDIO_TEXT "]}");
	becomes(convert_response, lost(C, D), "tools/call", content, NULL);
	becomes(convert_response, lost(B, D), "prompts/get",
		"{'messages':[{'content':" LINK ",'role':'assistant'}]}",
		"{'messages':[{'content':" LINK_TEXT ",'role':'assistant'}]}");
}

/* Hostile or broken: as it is. */
static void what_nobody_understands_stays(void **state)
{
	static const char *const results[] = {
		"1",
		"[]",
		"{}",
		"{'content':null}",
		"{'content':" AUDIO "}",
		"{'content':[]}",
		"{'content':[1,'audio',[" AUDIO "],null,{}]}",
		"{'content':[{'type':'audio'}]}",
		"{'content':[{'type':'audio','data':1,'mimeType':'m'}]}",
		"{'content':[{'type':'resource_link','uri':'u'}]}",
		"{'content':[{'type':'resource_link','name':{},'uri':'u'}]}",
		"{'content':[{'type':['audio']}]}",
		"{'messages':[1,{},{'content':1},{'content':[]}]}",
		"{'tools':[1,null,{},{'name':'execution'},{'x':{'execution':1}}]}",
		"{'tools':{'execution':{'taskSupport':'required'}}}",
		"{'capabilities':['tasks']}",
		"{'tasks':{}}",
	};
	static const char *const methods[] = { "tools/call", "prompts/get", "tools/list",
					       "initialize", "resources/read" };

	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		for (size_t k = 0; k < ARRAY_LEN(methods); k++)
			becomes(convert_response, lost(A, D), methods[k], results[i], NULL);
	}
}

/* bridging.md §2.5: clients of older revisions know no tasks. */
static void tasks_are_hidden(void **state)
{
	static const char optional[] =
		"{'tools':[{'name':'a','execution':{'taskSupport':'optional'}}, {'name':'b'} ]}";

	becomes(convert_response, lost(C, D), "tools/list", optional,
		"{'tools':[{'name':'a'}, {'name':'b'} ]}");
	becomes(convert_response, lost(A, C), "tools/list", optional, NULL);
	becomes(convert_response, lost(C, D), "tools/list",
		"{'tools':[{'execution':{}, 'name':'a'},{'execution':1}]}",
		"{'tools':[{'name':'a'},{}]}");
	becomes(convert_response, lost(C, D), "initialize",
		"{'capabilities':{'tasks':{'list':{}},'tools':{}},'x':1}",
		"{'capabilities':{'tools':{}},'x':1}");
	becomes(convert_request, lost(C, D), "tools/call",
		"{'name':'a','task':{'ttl':1},'_meta':{}}", "{'name':'a','_meta':{}}");
	becomes(convert_request, lost(C, D), "prompts/get", "{'task':1}", NULL);
}

#define REQUIRED "{'execution':{'taskSupport':'required'}}"
static void tools_that_require_tasks_are_hidden(void **state)
{
	static const struct {
		const char *before;
		const char *after;
	} rows[] = {
		{ "[" REQUIRED "]", "[]" },
		{ "[ " REQUIRED " , " REQUIRED " ]", "[  ]" },
		{ "[" REQUIRED ",1]", "[1]" },
		{ "[1 ," REQUIRED "]", "[1]" },
		{ "[1," REQUIRED "," REQUIRED ",2]", "[1,2]" },
		{ "[" REQUIRED "," REQUIRED ",1," REQUIRED ",2," REQUIRED "," REQUIRED "]",
		  "[1,2]" },
		{ "[" REQUIRED ",{'execution':0}," REQUIRED "]", "[{}]" },
	};
	char before[1024];
	char after[1024];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(before, sizeof(before), "{'tools':%s,'nextCursor':'c'}", rows[i].before);
		snprintf(after, sizeof(after), "{'tools':%s,'nextCursor':'c'}", rows[i].after);
		becomes(convert_response, lost(B, D), "tools/list", before, after);
	}
}

static void error_about_urls_becomes_a_common_one(void **state)
{
	static const struct {
		const char *to;
		const char *before;
		const char *after;
	} rows[] = {
		{ C, "{'code':-32042,'message':'m','data':{'a':1}}",
		  "{'code':-32603,'message':'m','data':{'a':1}}" },
		{ A, "{'message':'m','code' : -32042}", "{'message':'m','code' : -32603}" },
		{ C, "{'code':-32002,'message':'m'}", NULL },
		{ C, "{'code':-320420,'message':'-32042'}", NULL },
		{ D, "{'code':-32042,'message':'m'}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct envelope env = read_message("'error'", rows[i].before);
		struct convert convert = { .text = { 0 } };
		const struct envelope *got =
			convert_response(&convert, lost(rows[i].to, D),
					 method_find(SLICE_LIT("tools/call")), &env);

		assert_int_equal(got == &env, rows[i].after == NULL);
		if (rows[i].after != NULL)
			is_text(got->error.text, rows[i].after);
		convert_fini(&convert);
	}
}

#define FORM(fields) "{'message':'m','requestedSchema':{'type':'object','properties':{" fields "}}}"
static void forms_are_told_in_older_words(void **state)
{
	static const char choice[] = FORM(
		"'n':{'type':'number'},'a':{'type':'string','oneOf':[{'const':'x','title':'X'},"
		"{'title':'Y','const':'y'},{'const':'z'}],'default':'x'}");
	static const char old[] =
		FORM("'n':{'type':'number'},'a':{'type':'string','enum':['x','y','z'],"
		     "'enumNames':['X','Y','z'],'default':'x'}");

	becomes(convert_server_request, lost(C, D), "elicitation/create", choice, old);
	becomes(convert_server_request, lost(D, D), "elicitation/create", choice, NULL);
	becomes(convert_server_request, lost(C, D), "elicitation/create", old, NULL);
	becomes(convert_server_request, lost(C, D), "elicitation/create",
		FORM("'a':{'type':'array','items':{'enum':['x']}}"), "");
	becomes(convert_server_request, lost(C, D), "elicitation/create",
		FORM("'a':{'type':'array','items':{'anyOf':[{'const':'x','title':'X'}]}}"), "");
	becomes(convert_server_request, lost(C, D), "elicitation/create",
		FORM("'a':{'oneOf':[{'const':1}]}"), "");
	becomes(convert_server_request, lost(C, D), "elicitation/create", FORM("'a':{'oneOf':[]}"),
		"");
	becomes(convert_server_request, lost(C, D), "elicitation/create",
		FORM("'a':1,'b':[],'c':{}"), NULL);
	becomes(convert_server_request, lost(C, D), "elicitation/create", "{'requestedSchema':[]}",
		NULL);
}

#define TOOL_USE "{'type':'tool_use','id':'1','name':'n','input':{}}"
static void sampling_is_told_in_older_words(void **state)
{
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[],'tools':[]}", "");
	becomes(convert_server_request, lost(B, C), "sampling/createMessage",
		"{'messages':[],'tools':[]}", NULL);
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[{'role':'user','content':" TOOL_USE "}]}", "");
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[{'role':'user','content':[" TEXT "," TOOL_USE "]}]}", "");
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[{'role':'user','content':[ " TEXT " ],'_meta':{}}]}",
		"{'messages':[{'role':'user','content':" TEXT ",'_meta':{}}]}");
	becomes(convert_server_request, lost(A, D), "sampling/createMessage",
		"{'messages':[{'role':'user','content':[" AUDIO "," TEXT "]},"
		"{'role':'assistant','content':" AUDIO "}]}",
		"{'messages':[{'role':'user','content':" AUDIO_TEXT
		"},{'role':'user','content':" TEXT "},{'role':'assistant','content':" AUDIO_TEXT
		"}]}");
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[{'role':'assistant','content':[" TEXT "," TEXT "]}]}",
		"{'messages':[{'role':'assistant','content':" TEXT
		"},{'role':'assistant','content':" TEXT "}]}");
	becomes(convert_server_request, lost(C, D), "sampling/createMessage",
		"{'messages':[{'role':'system','content':[" TEXT "]},{'role':'user','content':[]},"
		"{'role':'user','content':[{},{},{}]},{'role':'user','content':[" TOOL_USE
		",1]},1]}",
		NULL);
	becomes(convert_server_request, lost(A, D), "roots/list",
		"{'messages':[{'content':" AUDIO "}]}", NULL);
}

static void answers_are_told_in_older_words(void **state)
{
	becomes(convert_answer, lost(C, D), "sampling/createMessage",
		"{'role':'assistant','content':[" TEXT "]}",
		"{'role':'assistant','content':" TEXT "}");
	becomes(convert_answer, lost(A, D), "sampling/createMessage", "{'content':[" AUDIO "]}",
		"{'content':" AUDIO_TEXT "}");
	becomes(convert_answer, lost(A, B), "sampling/createMessage", "{'content':" AUDIO "}",
		"{'content':" AUDIO_TEXT "}");
	becomes(convert_answer, lost(C, D), "sampling/createMessage",
		"{'content':[" TEXT "," TEXT "]}", NULL);
	becomes(convert_answer, lost(C, D), "roots/list", "{'content':[" TEXT "]}", NULL);
	becomes(convert_answer, lost(D, C), "sampling/createMessage", "{'content':[" TEXT "]}",
		NULL);
}

static void context_of_completions_goes(void **state)
{
	static const char params[] = "{'context':{'arguments':{}} , 'ref':{'context':1}}";

	becomes(convert_request, lost(B, C), "completion/complete", params,
		"{'ref':{'context':1}}");
	becomes(convert_request, lost(C, D), "completion/complete", params, NULL);
	becomes(convert_request, lost(B, C), "tools/call", params, NULL);
}

static const struct envelope *initialize(struct convert *convert, unsigned int flags,
					 const struct method *method, const struct envelope *env)
{
	return convert_initialize(convert, flags, env);
}

/* BACK-INIT-03 FRONT-INIT-10 */
static void capabilities_fit_the_revision(void **state)
{
	static const char caps[] = "{'capabilities':{'tasks':{},'elicitation':{'url':{}},"
				   "'sampling':{'tools':{}},'roots':{'listChanged':true}},'x':1}";

	becomes(initialize, lost(D, D), "initialize", caps, NULL);
	becomes(initialize, lost(C, D), "initialize", caps,
		"{'capabilities':{'elicitation':{},'sampling':{},'roots':{'listChanged':true}},'x':1}");
	becomes(initialize, lost(B, D), "initialize", caps,
		"{'capabilities':{'sampling':{},'roots':{'listChanged':true}},'x':1}");
	becomes(initialize, lost(C, D), "initialize",
		"{'capabilities':{'elicitation':{},'sampling':true}}", NULL);
	becomes(initialize, lost(A, D), "initialize", "{'capabilities':{'elicitation':{}}}",
		"{'capabilities':{}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(features_are_lost_downwards_only),
		cmocka_unit_test(sound_becomes_text),
		cmocka_unit_test(links_become_text),
		cmocka_unit_test(what_nobody_understands_stays),
		cmocka_unit_test(tasks_are_hidden),
		cmocka_unit_test(tools_that_require_tasks_are_hidden),
		cmocka_unit_test(error_about_urls_becomes_a_common_one),
		cmocka_unit_test(forms_are_told_in_older_words),
		cmocka_unit_test(sampling_is_told_in_older_words),
		cmocka_unit_test(answers_are_told_in_older_words),
		cmocka_unit_test(context_of_completions_goes),
		cmocka_unit_test(capabilities_fit_the_revision),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
