/* SPDX-License-Identifier: Apache-2.0 */
/* SEC-59. In the tables ' stands for ". */
#include "policy/schema.h"

#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/unit_test.h"
#include "jsonrpc/canonical.h"
#include "policy/pattern.h"
#include "policy/schema_cache.h"

#define VALUES_MAX 14

struct row {
	const char *schema;
	const char *fits[VALUES_MAX];
	const char *misfits[VALUES_MAX];
};

static int check_text(const struct schema *schema, struct slice text, size_t shares,
		      struct error *err)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct canonical_form form = canonical_of(text, &room);

	return schema_check(schema, &form, shares, err);
}

static size_t values_checked;

static struct slice quote(struct buf *out, const char *text)
{
	out->len = 0;
	for (; *text != '\0'; text++)
		buf_append_char(out, *text == '\'' ? '"' : *text);
	return buf_slice(out);
}

static struct schema *read_good(const char *text)
{
	struct buf quoted = { 0 };
	struct error err = { .kind = ERROR_NONE };
	struct schema *schema = schema_new(quote(&quoted, text), &err);

	if (schema == NULL)
		fail_msg("%s: %s", text, err.text);
	buf_fini(&quoted);
	return schema;
}

/* The kind of error; ERROR_NONE: it fits. */
static enum error_kind check(const struct schema *schema, const char *value, struct error *err)
{
	struct buf quoted = { 0 };

	err->kind = ERROR_NONE;
	if (check_text(schema, quote(&quoted, value), 1, err) == 0)
		err->kind = ERROR_NONE;
	buf_fini(&quoted);
	return err->kind;
}

static void check_row(const struct row *row)
{
	struct schema *schema = read_good(row->schema);
	struct error err;

	for (size_t i = 0; i < VALUES_MAX && row->fits[i] != NULL; i++, values_checked++)
		if (check(schema, row->fits[i], &err) != ERROR_NONE)
			fail_msg("%s refuses %s: %s", row->schema, row->fits[i], err.text);
	for (size_t i = 0; i < VALUES_MAX && row->misfits[i] != NULL; i++, values_checked++)
		if (check(schema, row->misfits[i], &err) != ERROR_INVALID)
			fail_msg("%s takes %s", row->schema, row->misfits[i]);
	schema_free(&schema);
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_row(&rows[i]);
}

#define CHECK_ROWS(rows) check_rows(rows, ARRAY_LEN(rows))

static void test_any_value(void **state)
{
	static const struct row rows[] = {
		{ "true", { "1", "null", "{}" }, { NULL } },
		{ "false", { NULL }, { "1", "null", "{}" } },
		{ "{}", { "1", "[]", "'x'" }, { NULL } },
		{ "{'type':'null'}", { "null" }, { "0", "''", "false", "[]", "{}" } },
		{ "{'type':'boolean'}", { "true", "false" }, { "null", "0", "'true'" } },
		{ "{'type':'string'}", { "''", "'1'" }, { "1", "null", "['a']" } },
		{ "{'type':'number'}", { "1", "-1.5", "1e3", "0" }, { "'1'", "true" } },
		{ "{'type':'integer'}",
		  { "1", "1.0", "-0", "1e3", "10e-1", "12345678901234567890123", "1e300" },
		  { "1.5", "1e-1", "'1'", "0.1", "null" } },
		{ "{'type':'object'}", { "{}", "{'a':1}" }, { "[]", "'x'" } },
		{ "{'type':'array'}", { "[]", "[1]" }, { "{}", "null" } },
		{ "{'type':['string','null']}", { "'x'", "null" }, { "1", "{}" } },
		{ "{'type':['integer','array']}", { "1", "[]", "2.0" }, { "1.5", "{}" } },
		{ "{'enum':[1,'a',null,[1,2],{'a':1,'b':2}]}",
		  { "1", "1.0", "'a'", "'\\u0061'", "null", "[1,2]", "{'b':2,'a':1.0}" },
		  { "'1'", "2", "[2,1]", "{'a':1}", "true", "false" } },
		{ "{'enum':[]}", { NULL }, { "1", "null" } },
		{ "{'const':0}", { "0", "0.0", "-0", "0e5" }, { "false", "'0'", "null" } },
		{ "{'const':{'a':[1]}}", { "{'a':[1]}", "{'a':[1.0]}" }, { "{'a':[2]}", "{}" } },
		{ "{'const':false}", { "false" }, { "0", "null", "true" } },
		{ "{'const':'\xC3\xA4'}", { "'\\u00e4'", "'\xC3\xA4'" }, { "'a'", "'a\\u0308'" } },
		{ "{'title':'t','format':'email','x-mcp-header':5,'default':1}",
		  { "'no mail'", "{}" },
		  { NULL } },
	};

	CHECK_ROWS(rows);
}

static void test_numbers(void **state)
{
	static const struct row rows[] = {
		{ "{'minimum':1.1}", { "1.1", "1.10", "2", "'x'" }, { "1.09", "-5", "0", "1" } },
		{ "{'minimum':-2}", { "-2", "-1.999", "0" }, { "-2.001", "-3", "-1e9" } },
		{ "{'maximum':3}", { "3", "3.0", "-7", "null" }, { "3.0001", "4", "1e1" } },
		{ "{'maximum':1e400}", { "1e399", "1e400", "10e399" }, { "1e401", "1.1e400" } },
		{ "{'exclusiveMinimum':0}", { "1e-300", "1" }, { "0", "0.0", "-1e-300" } },
		{ "{'exclusiveMaximum':10}", { "9.999", "1", "-10" }, { "10", "1e1", "10.01" } },
		{ "{'minimum':9007199254740993}",
		  { "9007199254740993", "9007199254740994" },
		  { "9007199254740992" } },
		{ "{'multipleOf':2}", { "0", "4", "-6", "4.0", "'x'", "1e20" }, { "7", "2.5" } },
		{ "{'multipleOf':0.01}", { "0.07", "4.35", "75", "1e300" }, { "0.001", "4.351" } },
		{ "{'multipleOf':1.5}", { "3", "4.5", "0" }, { "2", "35", "1.50001" } },
		{ "{'multipleOf':1e-8}", { "12391239123", "1e-8" }, { "1e-9", "1.5e-8" } },
		{ "{'multipleOf':300}", { "300", "9e2", "3e5" }, { "30", "100", "1e5" } },
		{ "{'multipleOf':7}", { "49", "7e30" }, { "1e30", "50" } },
		{ "{'multipleOf':123456789}",
		  { "123456789e5", "-246913578" },
		  { "1", "123456788" } },
		{ "{'multipleOf':12345.6789}", { "12345.6789", "123456789" }, { "1", "1.1e300" } },
		{ "{'multipleOf':999999999e20}", { "999999999e20", "0" }, { "999999999e19" } },
		{ "{'multipleOf':536870912}",
		  { "536870912", "1e29", "1e999999999999999999" },
		  { "1e28", "268435456" } },
		{ "{'multipleOf':0.5}", { "1", "0.5", "-2.5", "1e400" }, { "0.25", "1e-400" } },
	};

	CHECK_ROWS(rows);
}

static void test_strings(void **state)
{
	static const struct row rows[] = {
		{ "{'minLength':2}",
		  { "'ab'", "'\xC3\xA4\xC3\xB6'", "5", "'\\n\\n'" },
		  { "'a'", "''", "'\xF0\x9F\x98\x80'", "'\\ud83d\\ude00'" } },
		{ "{'maxLength':2}",
		  { "''", "'ab'", "'\xF0\x9F\x98\x80\xF0\x9F\x98\x80'", "[1,2,3]" },
		  { "'abc'", "'a\\u0308a'" } },
		{ "{'minLength':2.0,'maxLength':1e1}", { "'ab'" }, { "'a'", "'12345678901'" } },
		{ "{'pattern':'^a*$'}", { "'aaa'", "''", "1" }, { "'ab'", "'a\\n'", "'\\na'" } },
		{ "{'pattern':'b'}", { "'abc'", "'b'" }, { "'ac'", "''" } },
		{ "{'pattern':''}", { "''", "'x'" }, { NULL } },
		{ "{'pattern':'^\\\\d{3}$'}",
		  { "'123'" },
		  { "'12'", "'\xD9\xA1\xD9\xA2\xD9\xA3'" } },
		{ "{'pattern':'^\\\\w+$'}", { "'a_1'" }, { "'\xC3\xA4'", "'a b'" } },
		{ "{'pattern':'^\\\\s$'}",
		  { "' '", "'\\t'", "'\\u00a0'", "'\\u2028'" },
		  { "'x'" } },
		{ "{'pattern':'^\\\\S+$'}", { "'ab'" }, { "'a b'", "'a\\u00a0b'" } },
		{ "{'pattern':'^[\\\\s\\\\S]$'}", { "'a'", "'\\n'" }, { "'ab'", "''" } },
		{ "{'pattern':'^.$'}", { "'a'", "'\xF0\x9F\x98\x80'" }, { "'\\n'", "'\\r'" } },
		{ "{'pattern':'^[^]$'}", { "'a'", "'\\n'" }, { "''" } },
		{ "{'pattern':'\\\\n$'}", { "'\\r\\n'" }, { "'\\r'" } },
		{ "{'pattern':'^\\\\u{1F600}\\\\u0041\\\\x42$'}",
		  { "'\xF0\x9F\x98\x80"
		    "AB'" },
		  { "'AB'" } },
		{ "{'pattern':'^\\\\p{L}+$'}", { "'\xC3\xA4z'" }, { "'1'" } },
		{ "{'pattern':'^(?=a)(?<n>.)(?!c)(?:b|)\\\\k<n>$'}",
		  { "'aba'", "'aa'" },
		  { "'aca'" } },
		{ "{'pattern':'^[\\\\w.\\\\-]+@x$'}", { "'a-b.c@x'" }, { "'a b@x'" } },
		{ "{'pattern':'^\\\\v$'}", { "'\\u000b'" }, { "'\\n'" } },
	};

	CHECK_ROWS(rows);
}

static void test_objects(void **state)
{
	static const struct row rows[] = {
		{ "{'required':['a','b']}",
		  { "{'a':1,'b':2}", "{'a':null,'b':null,'c':1}", "[]", "1" },
		  { "{}", "{'a':1}", "{'A':1,'b':2}" } },
		{ "{'required':['\\u0061\\n']}",
		  { "{'a\\n':1}", "{'\\u0061\\u000a':1}" },
		  { "{'a':1}" } },
		{ "{'required':[]}", { "{}" }, { NULL } },
		{ "{'properties':{'a':{'type':'string'},'b':false}}",
		  { "{}", "{'a':'x'}", "{'c':1}", "[]" },
		  { "{'a':1}", "{'b':1}", "{'\\u0061':1}" } },
		{ "{'properties':{'a':{}},'additionalProperties':false}",
		  { "{}", "{'a':1}", "5" },
		  { "{'b':1}", "{'a':1,'A':1}", "{'':1}" } },
		{ "{'additionalProperties':{'type':'integer'}}",
		  { "{}", "{'x':1,'y':2}" },
		  { "{'x':'1'}", "{'x':1,'y':null}" } },
		{ "{'properties':{'a':true},'patternProperties':{'^x-':{'type':'string'}},"
		  "'additionalProperties':false}",
		  { "{'a':1,'x-b':'s'}", "{'x-':''}" },
		  { "{'x-b':1}", "{'y':1}", "{'ax-':1}" } },
		{ "{'patternProperties':{'a':{'type':'integer'},'b':{'minimum':5}}}",
		  { "{'a':1}", "{'b':'x'}", "{'ab':5}", "{'c':null}" },
		  { "{'ab':4}", "{'a':'x'}" } },
		{ "{'propertyNames':{'maxLength':2}}",
		  { "{'ab':1}", "{}", "'abc'" },
		  { "{'abc':1}" } },
		{ "{'propertyNames':{'pattern':'^\xC3\xA4'}}", { "{'\\u00e4':1}" }, { "{'a':1}" } },
		{ "{'propertyNames':{'enum':['a']}}",
		  { "{'a':1}" },
		  { "{'b':1}", "{'a':1,'b':1}" } },
		{ "{'propertyNames':false}", { "{}" }, { "{'a':1}" } },
		{ "{'minProperties':1,'maxProperties':2}",
		  { "{'a':1}", "{'a':1,'b':1}", "[]" },
		  { "{}", "{'a':1,'b':1,'c':1}" } },
		{ "{'properties':{'__proto__':{'type':'number'},'toString':{'type':'string'}}}",
		  { "{}", "{'__proto__':1}" },
		  { "{'__proto__':'x'}", "{'toString':1}" } },
		{ "{'properties':{'$ref':{'type':'string'},'$id':{'type':'string'}}}",
		  { "{'$ref':'a'}" },
		  { "{'$ref':1}", "{'$id':1}" } },
	};

	CHECK_ROWS(rows);
}

static void test_arrays(void **state)
{
	static const struct row rows[] = {
		{ "{'items':{'type':'integer'}}",
		  { "[]", "[1,2]", "{}" },
		  { "[1,'x']", "[null]" } },
		{ "{'items':false}", { "[]" }, { "[1]" } },
		{ "{'prefixItems':[{'type':'string'},{'type':'integer'}]}",
		  { "[]", "['a']", "['a',1]", "['a',1,null]" },
		  { "[1]", "['a','b']" } },
		{ "{'prefixItems':[{'type':'string'}],'items':{'type':'integer'}}",
		  { "['a',1,2]", "['a']" },
		  { "['a','b']", "['a',1,'c']" } },
		{ "{'items':[{'type':'string'},{'type':'integer'}],'additionalItems':false}",
		  { "['a',1]", "['a']", "[]" },
		  { "['a',1,2]", "[1]" } },
		{ "{'items':[{}],'additionalItems':{'type':'null'}}", { "[1,null]" }, { "[1,2]" } },
		{ "{'items':{'type':'string'},'additionalItems':false}",
		  { "['a','b']" },
		  { "[1]" } },
		{ "{'additionalItems':false}", { "[1,2]" }, { NULL } },
		{ "{'contains':{'const':1}}", { "[1]", "[2,1.0]", "{}" }, { "[]", "[2]" } },
		{ "{'minItems':1,'maxItems':2}", { "[1]", "[1,2]", "'abc'" }, { "[]", "[1,2,3]" } },
		{ "{'uniqueItems':true}",
		  { "[]", "[1]", "[1,2]", "[1,true,'1']", "[[1],[2]]", "[0,false]", "'aa'" },
		  { "[1,1]", "[1,1.0]", "[2,1,2]", "[{'a':1,'b':2},{'b':2,'a':1}]",
		    "['a','\\u0061']", "[[],[]]" } },
		{ "{'uniqueItems':false}", { "[1,1]" }, { NULL } },
	};

	CHECK_ROWS(rows);
}

static void test_combinations(void **state)
{
	static const struct row rows[] = {
		{ "{'allOf':[{'minimum':1},{'maximum':3}]}", { "1", "3", "'x'" }, { "0", "4" } },
		{ "{'anyOf':[{'type':'string'},{'minimum':5}]}", { "'x'", "5", "null" }, { "4" } },
		{ "{'oneOf':[{'minimum':5},{'maximum':7}]}", { "8", "4" }, { "5", "6", "'x'" } },
		{ "{'oneOf':[true,true,true]}", { NULL }, { "1" } },
		{ "{'oneOf':[false,false,true]}", { "1" }, { NULL } },
		{ "{'not':{'type':'string'}}", { "1", "null" }, { "'x'" } },
		{ "{'not':{'not':{'type':'string'}}}", { "'x'" }, { "1" } },
		{ "{'not':{}}", { NULL }, { "1", "{}" } },
		{ "{'if':{'minimum':10},'then':{'multipleOf':10},'else':{'multipleOf':3}}",
		  { "20", "9", "'x'" },
		  { "11", "8" } },
		{ "{'if':{'const':1},'then':false}", { "2" }, { "1" } },
		{ "{'if':{'const':1},'else':false}", { "1" }, { "2" } },
		{ "{'then':false,'else':false}", { "1" }, { NULL } },
		{ "{'properties':{'kind':{'enum':['a','b']}},"
		  "'if':{'properties':{'kind':{'const':'a'}},'required':['kind']},'then':{'required':['x']}}",
		  { "{}", "{'kind':'b'}", "{'kind':'a','x':1}" },
		  { "{'kind':'a'}", "{'kind':'c'}" } },
		{ "{'oneOf':[{'properties':{'t':{'const':1}},'required':['t','a']},"
		  "{'properties':{'t':{'const':2}},'required':['t','b']}]}",
		  { "{'t':1,'a':0}", "{'t':2,'b':0}" },
		  { "{'t':1,'b':0}", "{'t':3,'a':0,'b':0}", "{}" } },
	};

	CHECK_ROWS(rows);
}

static void test_references(void **state)
{
	static const struct row rows[] = {
		{ "{'$ref':'#/$defs/a','$defs':{'a':{'type':'string'}}}", { "'x'" }, { "1" } },
		{ "{'$ref':'#/definitions/a','definitions':{'a':{'type':'string'}}}",
		  { "'x'" },
		  { "1" } },
		{ "{'$ref':'#a','$defs':{'x':{'$anchor':'a','type':'string'}}}",
		  { "'x'" },
		  { "1" } },
		{ "{'$ref':'#a','$defs':{'x':{'$dynamicAnchor':'a','type':'string'}}}",
		  { "'x'" },
		  { "1" } },
		{ "{'$ref':'#a','$defs':{'x':{'$id':'#a','type':'string'}}}", { "'x'" }, { "1" } },
		{ "{'$ref':'#/$defs/a~1b~0c%25d%22','$defs':{'a/b~c%d\\u0022':{'type':'string'}}}",
		  { "'x'" },
		  { "1" } },
		{ "{'properties':{'a':{'type':'string'},'b':{'$ref':'#/properties/a'}}}",
		  { "{'b':'x'}" },
		  { "{'b':1}" } },
		{ "{'prefixItems':[{'type':'string'},{'$ref':'#/prefixItems/0'}]}",
		  { "['a','b']" },
		  { "['a',1]" } },
		{ "{'type':'object','properties':{'next':{'$ref':'#'}},'additionalProperties':false}",
		  { "{}", "{'next':{'next':{}}}" },
		  { "{'next':{'nex':{}}}", "{'next':1}" } },
		{ "{'type':'object','properties':{'next':{'$ref':''}},'additionalProperties':false}",
		  { "{}", "{'next':{'next':{}}}" },
		  { "{'next':{'nex':{}}}", "{'next':1}" } },
		{ "{'$defs':{'n':{'type':'object','properties':{'v':{'type':'number'},"
		  "'l':{'type':'array','items':{'$ref':'#/$defs/n'}}},'required':['v']}},'$ref':'#/$defs/n'}",
		  { "{'v':1}", "{'v':1,'l':[{'v':2,'l':[]}]}" },
		  { "{'v':1,'l':[{}]}", "{'v':1,'l':[{'v':1,'l':[{'v':'x'}]}]}" } },
		{ "{'$ref':'#/$defs/a','minimum':5,'$defs':{'a':{'maximum':9}}}",
		  { "5", "9" },
		  { "4", "10" } },
		{ "{'$id':'http://x.example/s','$ref':'#/$defs/a','$defs':{'a':{'type':'null'}}}",
		  { "null" },
		  { "1" } },
		{ "{'$ref':'#/$defs/a','$defs':{'a':{'type':'null'},'b':{'$ref':'http://x.example/'}}}",
		  { "null" },
		  { "1" } },
		{ "{'$ref':'#/$defs/a','$defs':{'a':true}}", { "1" }, { NULL } },
		{ "{'$ref':'#/$defs/a','$defs':{'a':{'type':'null'},'b':{'minContains':2}}}",
		  { "null" },
		  { "1" } },
		/* The name of a keyword, and of a pattern, at once. */
		{ "{'patternProperties':{'uniqueItems':true,'b':false},'$ref':'#/patternProperties'}",
		  { "[1]", "{'uniqueItems':1}" },
		  { "[1,1]", "{'b':1}" } },
	};

	CHECK_ROWS(rows);
}

#define DRAFT7 "'$schema':'http://json-schema.org/draft-07/schema#'"
#define MIDDLE "'$schema':'https://json-schema.org/draft/2019-09/schema'"
#define NEWEST "'$schema':'https://json-schema.org/draft/2020-12/schema'"

static void test_dialects(void **state)
{
	static const struct row rows[] = {
		{ "{" DRAFT7
		  ",'type':'object','properties':{'a':{'type':'string'}},'required':['a'],"
		  "'additionalProperties':false}",
		  { "{'a':'x'}" },
		  { "{}", "{'a':1}", "{'a':'x','b':1}" } },
		{ "{" DRAFT7 ",'items':[{'type':'string'}],'additionalItems':false}",
		  { "['a']" },
		  { "['a',1]" } },
		{ "{" DRAFT7 ",'properties':{'a':{'$ref':'#/definitions/p','maximum':1}},"
		  "'definitions':{'p':{'type':'number'}}}",
		  { "{'a':1}", "{'a':2}" },
		  { "{'a':'x'}" } },
		{ "{" DRAFT7 ",'if':{'const':1},'then':false}", { "2" }, { "1" } },
		{ "{" DRAFT7
		  ",'allOf':[{'$ref':'#x'}],'definitions':{'d':{'$id':'#x','type':'null'}}}",
		  { "null" },
		  { "1" } },
		{ "{'$schema':'https://json-schema.org/draft-07/schema','type':'null'}",
		  { "null" },
		  { "1" } },
		{ "{" MIDDLE ",'$ref':'#/$defs/a','maximum':5,'$defs':{'a':{'minimum':1}}}",
		  { "3" },
		  { "0", "6" } },
		{ "{" MIDDLE ",'items':[{'type':'string'}],'additionalItems':{'type':'null'}}",
		  { "['a',null]" },
		  { "['a',1]" } },
		{ "{" NEWEST ",'prefixItems':[{'type':'string'}],'items':false}",
		  { "['a']" },
		  { "['a',1]" } },
	};

	CHECK_ROWS(rows);
}

static const struct {
	const char *schema;
	const char *why;
} unusable[] = {
	{ "5", "/ is not a schema" },
	{ "[]", "/ is not a schema" },
	{ "{'properties':{'a':5}}", "/properties/a is not a schema" },
	{ "{'properties':[]}", "/properties is not an object of schemas" },
	{ "{'type':'strng'}", "/type is not a type" },
	{ "{'type':['string','x']}", "/type/1 is not a type" },
	{ "{'type':[]}", "/type is not a type" },
	{ "{'type':{'a':1}}", "/type is not a type" },
	{ "{'enum':'a'}", "/enum is not a list" },
	{ "{'required':true}", "/required is not a list of names" },
	{ "{'required':[1]}", "/required/0 is not a name" },
	{ "{'minimum':'1'}", "/minimum is not a number" },
	{ "{'exclusiveMinimum':true}", "/exclusiveMinimum is not a number" },
	{ "{'multipleOf':0}", "/multipleOf is not a divisor of up to 9 digits" },
	{ "{'multipleOf':-1}", "/multipleOf is not a divisor of up to 9 digits" },
	{ "{'multipleOf':1234567891}", "/multipleOf is not a divisor of up to 9 digits" },
	{ "{'properties':{'a':{'multipleOf':0.1234567891}}}",
	  "/properties/a/multipleOf is not a divisor of up to 9 digits" },
	{ "{'multipleOf':1234567890123456789}", "/multipleOf is not a divisor of up to 9 digits" },
	{ "{'minLength':-1}", "/minLength is not a count" },
	{ "{'maxItems':1.5}", "/maxItems is not a count" },
	{ "{'uniqueItems':'yes'}", "/uniqueItems is neither true nor false" },
	{ "{'allOf':[]}", "/allOf is not a non-empty list of schemas" },
	{ "{'anyOf':{}}", "/anyOf is not a non-empty list of schemas" },
	{ "{'not':[]}", "/not is not a schema" },
	{ "{'pattern':5}", "/pattern is not a pattern" },
	{ "{'pattern':'('}",
	  "/pattern is not a usable pattern: missing closing parenthesis, at byte 10" },
	{ "{'pattern':'a++'}", "/pattern is not a usable pattern: it has a possessive quantifier" },
	{ "{'pattern':'\\\\A'}",
	  "/pattern is not a usable pattern: it has an escape that is not in ECMA-262" },
	{ "{'patternProperties':{'[[:alpha:]]':{}}}",
	  "/patternProperties/[[:alpha:]] is not a usable pattern: it has a named character "
	  "class" },
	{ "{'pattern':'(?i)a'}",
	  "/pattern is not a usable pattern: it has a kind of group that is not in ECMA-262" },
	{ "{'pattern':'(*ACCEPT)'}", "/pattern is not a usable pattern: it has a verb" },
	{ "{'pattern':'\\\\012'}", "/pattern is not a usable pattern: it has an octal escape" },
	{ "{'$ref':'http://x.example/s'}", "/$ref leads to another document" },
	{ "{'$ref':'other.json#/a'}", "/$ref leads to another document" },
	{ "{'$ref':5}", "/$ref leads to another document" },
	{ "{'$ref':'#/$defs/none'}", "/$ref leads nowhere" },
	{ "{'$ref':'#none'}", "/$ref leads nowhere" },
	{ "{'$ref':'#/prefixItems/2','prefixItems':[{},{}]}", "/$ref leads nowhere" },
	{ "{'$ref':'#/prefixItems/0','prefixItems':[]}", "/$ref leads nowhere" },
	{ "{'$ref':'#a','$defs':{'x':{'$anchor':'a'},'y':{'$anchor':'a'}}}",
	  "/$ref leads nowhere" },
	{ "{'$ref':'#/$defs/a/b','$defs':{'a':{'$id':'http://x.example/','b':{}}}}",
	  "/$ref leads into a schema with an $id of its own" },
	{ "{'items':{'$id':'http://x.example/'}}",
	  "/items/$id is a keyword that is not supported here" },
	{ "{'items':{'$dynamicRef':'#a'}}",
	  "/items/$dynamicRef is a keyword that is not supported here" },
	{ "{'$recursiveRef':'#'}", "/$recursiveRef is a keyword that is not supported here" },
	/* What is not checked, whatever it says, and wherever a check could come to it. */
	{ "{'dependencies':{'a':['b']}}", "/dependencies is a keyword that is not supported here" },
	{ "{" DRAFT7 ",'dependencies':{}}",
	  "/dependencies is a keyword that is not supported here" },
	{ "{'dependentRequired':{'a':['b']}}",
	  "/dependentRequired is a keyword that is not supported here" },
	{ "{'dependentSchemas':{'a':{'required':['b']}}}",
	  "/dependentSchemas is a keyword that is not supported here" },
	{ "{" DRAFT7 ",'items':{'dependentSchemas':{}}}",
	  "/items/dependentSchemas is a keyword that is not supported here" },
	{ "{'contains':true,'minContains':2}",
	  "/minContains is a keyword that is not supported here" },
	{ "{'contains':true,'maxContains':2}",
	  "/maxContains is a keyword that is not supported here" },
	{ "{" NEWEST ",'properties':{'a':{'minContains':0}}}",
	  "/properties/a/minContains is a keyword that is not supported here" },
	{ "{'prefixItems':[true],'unevaluatedItems':false}",
	  "/unevaluatedItems is a keyword that is not supported here" },
	{ "{" DRAFT7 ",'unevaluatedProperties':true}",
	  "/unevaluatedProperties is a keyword that is not supported here" },
	{ "{" MIDDLE ",'allOf':[{'not':{'unevaluatedProperties':false}}]}",
	  "/allOf/0/not/unevaluatedProperties is a keyword that is not supported here" },
	{ "{'anyOf':[true,{'$ref':'#/$defs/a'}],'$defs':{'a':{'unevaluatedItems':{}}}}",
	  "/$defs/a/unevaluatedItems is a keyword that is not supported here" },
	{ "{'$vocabulary':{}}", "/$vocabulary is a keyword that is not supported here" },
	{ "{'$schema':'http://json-schema.org/draft-04/schema#'}",
	  "/$schema is an unknown dialect" },
	{ "{'$schema':'http://x.example/s'}", "/$schema is an unknown dialect" },
	{ "{'$schema':7}", "/$schema is an unknown dialect" },
	{ "{'items':{'$schema':'http://json-schema.org/draft-07/schema#'}}",
	  "/items/$schema is not the dialect of the root" },
	{ "{'a':1,'\\u0061':2}", "an object has a name twice" },
	{ "{'const':'\\ud800'}", "a text cannot be read" },
};

/* What is not understood is no schema: nothing passes by it. */
static void test_schemas_that_cannot_be_used(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
		struct buf quoted = { 0 };
		struct error err = { .kind = ERROR_NONE };
		struct schema *schema = schema_new(quote(&quoted, unusable[i].schema), &err);

		if (schema != NULL)
			fail_msg("is taken: %s", unusable[i].schema);
		assert_string_equal(err.text, unusable[i].why);
		buf_fini(&quoted);
	}
}

/* The first misfit, by place and keyword; no value is repeated. */
static void test_what_is_told(void **state)
{
	static const struct {
		const char *schema, *value, *text;
	} rows[] = {
		{ "{'type':'object'}", "5", " must be of type object (schema: /type)" },
		{ "{'properties':{'a':{'items':{'type':['string','null']}}}}", "{'a':['x',7]}",
		  "/a/1 must be of type string or null (schema: /properties/a/items/type)" },
		{ "{'required':['a']}", "{}", " must have the member a (schema: /required)" },
		{ "{'additionalProperties':false}", "{'x/y':'secret'}",
		  "/x~1y must not be present (schema: /additionalProperties)" },
		{ "{'minLength':3}", "'ab'",
		  " must have at least 3 characters (schema: /minLength)" },
		{ "{'maxItems':1}", "[1,2]", " must have at most 1 elements (schema: /maxItems)" },
		{ "{'contains':{'const':1}}", "[2]",
		  " has too few elements of the required kind (schema: /contains)" },
		{ "{'properties':{'n':{'multipleOf':0.5}}}", "{'n':0.3}",
		  "/n must be a multiple of the given number (schema: /properties/n/multipleOf)" },
		{ "{'minimum':3}", "2", " is too small (schema: /minimum)" },
		{ "{'anyOf':[{'type':'string'},{'type':'null'}]}", "5",
		  " must match one of the alternatives (schema: /anyOf)" },
		{ "{'propertyNames':{'maxLength':1}}", "{'ab':1}",
		  "/ab must have another name (schema: /propertyNames)" },
		{ "{'$ref':'#/$defs/a','$defs':{'a':{'enum':['x']}}}", "'y'",
		  " must be one of the allowed values (schema: /$defs/a/enum)" },
		{ "{'not':{'required':['a']},'type':'null'}", "{'a':1}",
		  " must not be of the excluded kind (schema: /not)" },
		{ "{'const':'a'}", "{'a':1,'\\u0061':2}",
		  " cannot be checked: an object has a name twice" },
		{ "{}", "['\\ud800']", " cannot be checked: a text cannot be read" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct schema *schema = read_good(rows[i].schema);
		struct error err;

		assert_int_not_equal(check(schema, rows[i].value, &err), ERROR_NONE);
		assert_string_equal(err.text, rows[i].text);
		schema_free(&schema);
	}
}

/* `count` times the part in the middle. */
static struct slice repeat(struct buf *out, const char *head, const char *part, size_t count,
			   const char *tail)
{
	struct buf quoted = { 0 };

	out->len = 0;
	buf_append_slice(out, quote(&quoted, head));
	for (size_t i = 0; i < count; i++)
		buf_append_slice(out, quote(&quoted, part));
	buf_append_slice(out, quote(&quoted, tail));
	buf_fini(&quoted);
	return buf_slice(out);
}

static void is_too_hard(const char *schema_text, struct slice value, const char *why)
{
	struct schema *schema = read_good(schema_text);
	struct error err;

	assert_int_equal(check_text(schema, value, 1, &err), -1);
	assert_int_equal(err.kind, ERROR_LIMIT);
	assert_string_equal(err.text, why);
	schema_free(&schema);
}

/* What is beyond a bound is refused, also where it stands in a `not`. */
static void test_bounds_of_a_check(void **state)
{
	struct buf text = { 0 };

	is_too_hard("{'$ref':'#'}", SLICE_LIT("1"),
		    " cannot be checked: its schema is nested too deeply");
	is_too_hard("{'not':{'$ref':'#'}}", SLICE_LIT("1"),
		    " cannot be checked: its schema is nested too deeply");
	is_too_hard("{'anyOf':[{'$ref':'#/$defs/a'},true],'$defs':{'a':{'$ref':'#/$defs/b'},"
		    "'b':{'$ref':'#/$defs/a'}}}",
		    SLICE_LIT("1"), " cannot be checked: its schema is nested too deeply");
	/* Two ways at each level. */
	is_too_hard(
		"{'type':'array','anyOf':[{'items':{'$ref':'#'},'minItems':2},{'items':{'$ref':'#'},"
		"'minItems':2}]}",
		repeat(&text, "", "[", 40, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
		" cannot be checked: it takes too many steps");
	is_too_hard("{}", repeat(&text, "[0", ",0", SCHEMA_VALUES_MAX, "]"),
		    " cannot be checked: it has too many values");
	is_too_hard("{'contains':{'contains':{'enum':[1,2,3,4,5,6,7,8,9,10,11,12,13,14]}}}",
		    repeat(&text, "[[]", ",[0,0,0,0,0,0,0,0,0]", 9000, "]"),
		    " cannot be checked: it takes too many steps");
	is_too_hard("{'not':{'pattern':'^(a|a)*$'}}", repeat(&text, "'", "a", 60, "b'"),
		    " cannot be checked: a pattern takes too long");
	is_too_hard("{'pattern':'x'}", repeat(&text, "'", "a", PATTERN_TEXT_MAX + 1, "'"),
		    " cannot be checked: a pattern takes too long");
	buf_fini(&text);
}

/* `count` times a part with a number in it. */
static void append_numbered(struct buf *out, const char *before, const char *after, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s%zu%s", i > 0 ? "," : "", before, i, after);
}

/* Each place where it is asked costs what the schema holds, also what means nothing. */
static void test_large_schemas_cost_more(void **state)
{
	struct buf text = { 0 }, values = { 0 };

	buf_append_str(&text, "{'items':{");
	append_numbered(&text, "'unknown", "':1", 500);
	buf_append_str(&text, "}}");
	is_too_hard(buf_terminate(&text), repeat(&values, "[0", ",0", 9000, "]"),
		    " cannot be checked: it takes too many steps");
	buf_fini(&text);
	buf_fini(&values);
}

static void takes_no_longer(struct slice schema_text, struct slice value)
{
	struct error err = { .kind = ERROR_NONE };
	struct schema *schema = schema_new(schema_text, &err);
	clock_t begin = clock();

	assert_non_null(schema);
	assert_int_equal(check_text(schema, value, 1, &err), -1);
	assert_string_equal(err.text, " cannot be checked: it takes too many steps");
	assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
	schema_free(&schema);
}

/* Steps are no more than they say: what is beyond is refused at once, however wide schema and value are. */
static void test_time_of_a_check(void **state)
{
	struct buf schema = { 0 }, value = { 0 };

	buf_append_char(&value, '{');
	append_numbered(&value, "\"q", "\":1", 90000);
	buf_append_char(&value, '}');
	buf_append_str(&schema, "{\"properties\":{");
	append_numbered(&schema, "\"p", "\":true", 9000);
	buf_append_str(&schema, "}}");
	takes_no_longer(buf_slice(&schema), buf_slice(&value));
	schema.len = value.len = 0;

	buf_append_str(&schema, "{\"allOf\":[");
	append_numbered(&schema, "{\"uniqueItems\":true,\"x\":", "}", 100);
	buf_append_str(&schema, "]}");
	buf_append_char(&value, '[');
	append_numbered(&value, "", "", 90000);
	buf_append_char(&value, ']');
	takes_no_longer(buf_slice(&schema), buf_slice(&value));

	takes_no_longer(SLICE_LIT("{\"multipleOf\":7}"),
			repeat(&value, "", "9", 8 * 1000 * 1000, ""));
	buf_fini(&schema);
	buf_fini(&value);
}

/* An honest one of some size is well within them. */
static void test_large_values(void **state)
{
	struct schema *schema = read_good("{'type':'array','items':{'type':'object','properties':{"
					  "'a':{'type':'integer'}},'required':['a']}}");
	struct buf text = { 0 };
	struct error err;

	assert_int_equal(check_text(schema, repeat(&text, "[{'a':0}", ",{'a':1}", 40000, "]"), 1,
				    &err),
			 0);
	assert_int_equal(check_text(schema, repeat(&text, "[{'a':0}", ",{'a':1}", 40000, ",{}]"), 1,
				    &err),
			 -1);
	assert_string_equal(err.text, "/40001 must have the member a (schema: /items/required)");
	schema_free(&schema);
	buf_fini(&text);
}

/* What fits alone does not where it is one of many: they share the bound of one. */
static void test_checks_that_come_together(void **state)
{
	struct schema *schema = read_good("{'items':{'type':'integer'}}");
	struct buf text = { 0 };
	struct slice value = repeat(&text, "[0", ",0", 40000, "]");
	struct error err;

	assert_int_equal(check_text(schema, value, 1, &err), 0);
	assert_int_equal(check_text(schema, value, 4, &err), 0);
	assert_int_equal(check_text(schema, value, 64, &err), -1);
	assert_int_equal(err.kind, ERROR_LIMIT);
	assert_string_equal(err.text, " cannot be checked: it takes too many steps");
	schema_free(&schema);
	buf_fini(&text);
}

static void is_unusable(struct slice text, const char *why)
{
	struct error err;

	assert_null(schema_new(text, &err));
	assert_string_equal(err.text, why);
}

static void test_bounds_of_a_schema(void **state)
{
	struct buf text = { 0 };
	struct buf tail = { 0 };
	struct error err;
	struct schema *schema;

	is_unusable(repeat(&text, "{'enum':[0", ",0", SCHEMA_NODES_MAX, "]}"),
		    "it has too many values");
	is_unusable(repeat(&text, "{'title':'", "a", SCHEMA_BYTES_MAX, "'}"), "it is too long");
	repeat(&tail, "true", "}", SCHEMA_DEPTH_MAX + 1, "");
	is_unusable(repeat(&text, "", "{'not':", SCHEMA_DEPTH_MAX + 1, buf_terminate(&tail)),
		    "it is nested too deep");
	is_unusable(repeat(&text, "{'allOf':[{'pattern':'a'}", ",{'pattern':'a'}",
			   SCHEMA_PATTERNS_MAX, "]}"),
		    "/allOf/256/pattern is one pattern too many");
	/* How much one takes is up to PCRE2. */
	assert_null(
		schema_new(repeat(&text, "{'allOf':[{'pattern':'a'}",
				  ",{'pattern':'((abcdefghijklmnopqrstuvwxyz){100})'}", 200, "]}"),
			   &err));
	assert_non_null(strstr(err.text, "/pattern is one pattern too many"));
	is_unusable(repeat(&text, "{'$defs':{'d':{'$anchor':'a'}},'allOf':[{'$ref':'#a'}",
			   ",{'$ref':'#a'}", 2000, "]}"),
		    "/allOf/499/$ref is one reference too many");
	/* A chain of references is followed as deep as a check may be. */
	text.len = 0;
	buf_append_str(&text, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "\"%d\":{\"$ref\":\"#/$defs/%d\"},", i, i + 1);
	buf_append_str(&text, "\"1000\":true}}");
	is_unusable(buf_slice(&text), "/$defs/599 is nested too deep");
	schema = schema_new(repeat(&text, "{'enum':[0", ",0", SCHEMA_NODES_MAX - 3, "]}"), &err);
	assert_non_null(schema);
	assert_true(schema_size(schema) > SCHEMA_NODES_MAX * 16);
	schema_free(&schema);
	buf_fini(&text);
	buf_fini(&tail);
}

static void test_numbers_are_exact(void **state)
{
	uint32_t count;

	assert_true(decimal_compare(SLICE_LIT("1"), SLICE_LIT("1")) == 0);
	assert_true(decimal_compare(SLICE_LIT("-1"), SLICE_LIT("0")) < 0);
	assert_true(decimal_compare(SLICE_LIT("-2"), SLICE_LIT("-1")) < 0);
	assert_true(decimal_compare(SLICE_LIT("12"), SLICE_LIT("1e1")) > 0);
	assert_true(decimal_compare(SLICE_LIT("1e999999999999999999"), SLICE_LIT("9")) > 0);
	assert_true(decimal_compare(SLICE_LIT("1e-999999999999999999"), SLICE_LIT("0")) > 0);
	assert_true(decimal_is_multiple(SLICE_LIT("1e999999999999999999"), SLICE_LIT("2")));
	assert_false(decimal_is_multiple(SLICE_LIT("1e999999999999999999"), SLICE_LIT("3")));
	assert_true(decimal_is_multiple(SLICE_LIT("3e999999999999999999"),
					SLICE_LIT("3e-999999999999999999")));
	assert_false(decimal_is_multiple(SLICE_LIT("3e-999999999999999999"), SLICE_LIT("3")));
	assert_true(decimal_count(SLICE_LIT("12e2"), &count) && count == 1200);
	assert_true(decimal_count(SLICE_LIT("0"), &count) && count == 0);
	assert_true(decimal_count(SLICE_LIT("1e999999999999999999"), &count) &&
		    count == UINT32_MAX);
	assert_true(decimal_count(SLICE_LIT("4294967295"), &count) && count == UINT32_MAX);
	assert_true(decimal_count(SLICE_LIT("99999999999999999999999"), &count) &&
		    count == UINT32_MAX);
	assert_false(decimal_count(SLICE_LIT("-1"), &count));
	assert_false(decimal_count(SLICE_LIT("1e-1"), &count));
}

static void test_schemas_are_read_once(void **state)
{
	struct slice good = SLICE_LIT("{\"type\":\"null\"}");
	struct schema_cache cache;
	struct cached_schema first, again;
	uint64_t key = 0, other = 0;
	struct buf text = { 0 };

	schema_cache_init(&cache);
	first = schema_cache_get(&cache, good, &key);
	assert_true(first.is_new && first.schema != NULL);
	again = schema_cache_get(&cache, good, &key);
	assert_true(!again.is_new && again.schema == first.schema);
	first = schema_cache_get(&cache, SLICE_LIT("5"), &other);
	assert_true(first.is_new && first.schema == NULL);
	again = schema_cache_get(&cache, SLICE_LIT("5"), &other);
	assert_true(!again.is_new && again.schema == NULL);
	assert_string_equal(again.why, "/ is not a schema");
	for (size_t i = 0; i < 40; i++) {
		assert_true(schema_cache_get(&cache,
					     repeat(&text, "{'enum':[", "0,", 9000 + i, "0]}"),
					     &(uint64_t){ 0 })
				    .is_new);
		assert_true(cache.bytes <= SCHEMA_CACHE_BYTES);
	}
	assert_true(schema_cache_get(&cache, good, &key).is_new);
	schema_cache_fini(&cache);
	buf_fini(&text);
}

/* The last of all. */
static void test_tables_are_whole(void **state)
{
	assert_true(values_checked > 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_value),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_dialects),
		cmocka_unit_test(test_schemas_that_cannot_be_used),
		cmocka_unit_test(test_what_is_told),
		cmocka_unit_test(test_bounds_of_a_check),
		cmocka_unit_test(test_large_schemas_cost_more),
		cmocka_unit_test(test_time_of_a_check),
		cmocka_unit_test(test_large_values),
		cmocka_unit_test(test_checks_that_come_together),
		cmocka_unit_test(test_bounds_of_a_schema),
		cmocka_unit_test(test_numbers_are_exact),
		cmocka_unit_test(test_schemas_are_read_once),
		cmocka_unit_test(test_tables_are_whole),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
