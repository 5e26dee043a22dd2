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

#define AS_IT_STANDS "is passed as it stands: "

/* What nothing here can stand for, by how it begins. */
static const struct {
	struct slice prefix;
	const char *text;
} foreign[] = {
	{ SLICE("input:"),
	  AS_IT_STANDS "nobody is asked for it here; write ${NAME} in its place, and set the "
		       "variable NAME for mcpgated" },
	{ SLICE("workspaceFolder"),
	  AS_IT_STANDS "no folder is open here; write the path of one in its place" },
	{ SLICE("file:"), AS_IT_STANDS
	  "it is not read; a configuration can: env: {NAME: {file: PATH}}, see mcpgated.yaml(5)" },
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
			expansion->tell(written,
					"seems to be a secret, and stands in a command line, which "
					"everybody on this machine can read; most servers take it "
					"from a variable: env",
					expansion->arg);
	}
	free(copy);
	return why;
}

/* `inside` of ${…}: puts in what it stands for and returns NULL, or returns what is to be told. */
static const char *put(struct expansion *expansion, struct slice written, struct slice inside)
{
	const char *colon = inside.n > 0 ? memmem(inside.p, inside.n, ":-", 2) : NULL;
	struct slice name = colon != NULL ? slice_between(inside.p, colon) : inside;
	const char *why;

	if (slice_has_prefix(inside, SLICE_LIT("env:")))
		return put_variable(expansion, written, slice_of(inside.p + 4, inside.n - 4));
	if (slice_is_equal(inside, SLICE_LIT("userHome")))
		return put_variable(expansion, written, SLICE_LIT("HOME"));
	if (slice_is_equal(inside, SLICE_LIT("pathSeparator")) ||
	    slice_is_equal(inside, SLICE_LIT("/"))) {
		buf_append_char(expansion->out, '/');
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		if (slice_has_prefix(inside, foreign[i].prefix))
			return foreign[i].text;
	if (!is_name(name) || memchr(inside.p, '$', inside.n) != NULL)
		return AS_IT_STANDS "nothing is put in its place here";
	why = put_variable(expansion, written, name);
	if (why == NULL || colon == NULL)
		return why;
	buf_append_slice(expansion->out, slice_between(colon + 2, inside.p + inside.n));
	return NULL;
}

bool variables_expand(struct slice text, bool is_open, struct buf *out, variables_tell_fn *tell,
		      void *arg)
{
	struct expansion expansion = { .is_open = is_open, .out = out, .tell = tell, .arg = arg };
	struct slice rest = text;
	const char *at;

	if (text.n > 1 && text.p[0] == '$' && is_name(slice_of(text.p + 1, text.n - 1)))
		tell(text, AS_IT_STANDS "write ${NAME} to have a variable's value", arg);
	while (rest.n > 0 && (at = memmem(rest.p, rest.n, "${", 2)) != NULL) {
		const char *end = memchr(at, '}', (size_t)(rest.p + rest.n - at));
		const char *after = end != NULL ? end + 1 : rest.p + rest.n;
		struct slice written = slice_between(at, after);
		const char *why = AS_IT_STANDS "nothing is put in its place here";

		buf_append_slice(out, slice_between(rest.p, at));
		if (end != NULL)
			why = put(&expansion, written, slice_between(at + 2, end));
		if (why != NULL) {
			buf_append_slice(out, written);
			if (!slice_has_prefix(written, SLICE_LIT("${claim:")))
				tell(written, why, arg);
		}
		rest = slice_between(after, rest.p + rest.n);
	}
	buf_append_slice(out, rest);
	return expansion.has_value;
}
