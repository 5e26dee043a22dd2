/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms are those of Claude Code (${NAME}, ${NAME:-DEFAULT}), of VS Code and its kin (${env:NAME}, ${input:ID},
 * ${workspaceFolder} …), of Windsurf (${file:PATH}) and of the Gemini CLI ($NAME). What is put in is not looked
 * through again.
 */
#include "config/variables.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/secret.h"

#define AS_IT_STANDS "is passed on unchanged: "

/* What nothing here can stand for, by how it begins. */
static const struct {
	struct slice prefix;
	const char *text;
} foreign[] = {
	{ SLICE("input:"), AS_IT_STANDS
	  "there is nobody to ask for it; write ${NAME} instead, and set the variable NAME for "
	  "mcpgated" },
	{ SLICE("workspaceFolder"), AS_IT_STANDS "no folder is open here; write a path instead" },
	{ SLICE("file:"), AS_IT_STANDS
	  "the file is not read; a configuration file can do that: env: {NAME: {file: PATH}}, see "
	  "mcpgated.yaml(5)" },
};

struct expansion {
	bool is_open;
	struct buf *out;
	variables_tell_fn *tell;
	void *arg;
	bool has_value;
};

static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!is_letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.n > 0;
}

/* Returns why the value of a variable cannot be put in, or NULL: it has been. */
static const char *put_variable(struct expansion *expansion, struct slice written,
				struct slice name)
{
	char *copy = mem_dup_slice(name);
	const char *value = getenv(copy);
	const char *why = NULL;

	if (value == NULL)
		why = AS_IT_STANDS "no such variable is set here";
	else if (!text_is_utf8(slice_str(value)))
		why = AS_IT_STANDS "the variable's value is not UTF-8";
	else if (expansion->out->len + strlen(value) > VARIABLES_BYTES_MAX)
		why = AS_IT_STANDS "with the variable's value the text would be too long";
	if (why == NULL) {
		buf_append_str(expansion->out, value);
		expansion->has_value = true;
		if (expansion->is_open && secret_is_name(copy))
			expansion->tell(
				written,
				"seems to be a secret, and is on a command line, which everybody "
				"on this machine can read; most servers accept it in a variable "
				"instead: env",
				expansion->arg);
	}
	free(copy);
	return why;
}

bool variable_parse(struct slice text, struct variable *variable_r)
{
	const char *end = memchr(text.p, '}', text.n);
	struct slice name, fallback = { NULL, 0 };
	const char *colon, *dash;

	CHECK(slice_has_prefix(text, SLICE_LIT("${")));
	*variable_r = (struct variable){ .written = text };
	if (end == NULL)
		return false;
	name = slice_between(text.p + 2, end);
	variable_r->written = slice_between(text.p, end + 1);
	dash = name.n > 0 ? memmem(name.p, name.n, ":-", 2) : NULL;
	if (dash != NULL) {
		fallback = slice_between(dash + 2, end);
		name = slice_between(name.p, dash);
	}
	colon = name.n > 0 ? memchr(name.p, ':', name.n) : NULL;
	if (colon != NULL) {
		variable_r->source = slice_between(name.p, colon);
		name = slice_between(colon + 1, name.p + name.n);
	}
	variable_r->name = name;
	variable_r->fallback = fallback;
	return true;
}

/* Puts in what it stands for and returns NULL, or returns what is to be told. */
static const char *put(struct expansion *expansion, const struct variable *variable)
{
	struct slice inside = slice_of(variable->written.p + 2, variable->written.n - 3);
	bool is_plain = variable->source.n == 0;
	const char *why;

	if (slice_is_equal(inside, SLICE_LIT("userHome")))
		return put_variable(expansion, variable->written, SLICE_LIT("HOME"));
	if (slice_is_equal(inside, SLICE_LIT("pathSeparator")) ||
	    slice_is_equal(inside, SLICE_LIT("/"))) {
		buf_append_char(expansion->out, '/');
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		if (slice_has_prefix(inside, foreign[i].prefix))
			return foreign[i].text;
	if ((!is_plain && !slice_is_equal(variable->source, SLICE_LIT("env"))) ||
	    !is_name(variable->name) || memchr(inside.p, '$', inside.n) != NULL)
		return AS_IT_STANDS "it is not expanded here";
	why = put_variable(expansion, variable->written, variable->name);
	if (why == NULL || variable->fallback.p == NULL)
		return why;
	buf_append_slice(expansion->out, variable->fallback);
	return NULL;
}

bool variables_expand(struct slice text, bool is_open, struct buf *out, variables_tell_fn *tell,
		      void *arg)
{
	struct expansion expansion = { .is_open = is_open, .out = out, .tell = tell, .arg = arg };
	struct slice rest = text;
	const char *at;

	if (text.n > 1 && text.p[0] == '$' && is_name(slice_of(text.p + 1, text.n - 1)))
		tell(text, AS_IT_STANDS "to use a variable's value, write ${NAME}", arg);
	while (rest.n > 0 && (at = memmem(rest.p, rest.n, "${", 2)) != NULL) {
		const char *why = AS_IT_STANDS "it is not expanded here";
		struct variable variable;

		buf_append_slice(out, slice_between(rest.p, at));
		rest = slice_between(at, rest.p + rest.n);
		if (variable_parse(rest, &variable))
			why = put(&expansion, &variable);
		if (why != NULL) {
			buf_append_slice(out, variable.written);
			if (!slice_is_equal(variable.source, SLICE_LIT("claim")))
				tell(variable.written, why, arg);
		}
		rest = slice_of(rest.p + variable.written.n, rest.n - variable.written.n);
	}
	buf_append_slice(out, rest);
	return expansion.has_value;
}
