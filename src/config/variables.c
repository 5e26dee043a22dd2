/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms are those of Claude Code (${NAME}, ${NAME:-DEFAULT}), of VS Code and its kin
 * (${env:NAME}, ${input:ID}, ${workspaceFolder} …), of Windsurf (${file:PATH}) and of the Gemini
 * CLI ($NAME). What is put in is not looked through again.
 */
#include "config/variables.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"

/*
 * ---- secret ----
 *
 * Secrets are read while the configuration is loaded, and never named in a message.
 */

struct kind {
	const char *name;
	int (*read)(const char *name, const struct listed_writers *writers, char **value_r,
		    struct error *err);
};

static int read_file(const char *path, const struct listed_writers *writers, char **value_r,
		     struct error *err)
{
	at_end(buf_wipe) struct buf content = { 0 };
	struct error why;
	int result = 0;

	if (file_read(path, writers, SECRET_BYTES_MAX, &content, NULL, &why) != 0)
		return error_set(err, why.kind, "the file %.100s %.120s", path, why.text);
	/* The line break at the end is not part of it; that of Windows has two bytes. */
	if (content.len > 0 && content.data[content.len - 1] == '\n') {
		content.len--;
		if (content.len > 0 && content.data[content.len - 1] == '\r')
			content.len--;
	}
	if (memchr(content.data, '\0', content.len) != NULL)
		result = error_set(err, ERROR_INVALID, "the file %.100s holds a NUL byte", path);
	else
		*value_r = mem_dup_slice(buf_slice(&content));
	return result;
}

static int read_env(const char *name, not_used const struct listed_writers *writers, char **value_r,
		    struct error *err)
{
	const char *value = getenv(name);

	if (value == NULL)
		return error_set(err, ERROR_INVALID,
				 "the variable %.100s is not set in the daemon's environment",
				 name);
	*value_r = mem_strdup(value);
	return 0;
}

/* NULL: systemd has given us none. */
static char *credential_path(const char *name)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");

	return directory != NULL ? mem_printf("%s/%s", directory, name) : NULL;
}

static int read_credential(const char *name, const struct listed_writers *writers, char **value_r,
			   struct error *err)
{
	at_end(mem_free) char *path = NULL;

	if (strchr(name, '/') != NULL || name[0] == '.')
		return error_set(err, ERROR_INVALID,
				 "the name of a credential must not contain '/' or begin with '.'");
	path = credential_path(name);
	if (path == NULL)
		return error_set(err, ERROR_INVALID,
				 "there are no credentials: the daemon was not started by systemd "
				 "with LoadCredential=%.100s:…",
				 name);
	return read_file(path, writers, value_r, err);
}

static const struct kind kinds[] = {
	{ "file", read_file },
	{ "env", read_env },
	{ "credential", read_credential },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

bool secret_is_kind(const char *kind)
{
	return find_kind(kind) != NULL;
}

int secret_resolve(const char *kind, const char *name, const struct listed_writers *writers,
		   char **value_r, struct error *err)
{
	const struct kind *found = find_kind(kind);

	CHECK(found != NULL);
	return found->read(name, writers, value_r, err);
}

char *secret_find_file(const char *kind, const char *name)
{
	char *path = strcmp(kind, "file") == 0       ? mem_strdup(name) :
		     strcmp(kind, "credential") == 0 ? credential_path(name) :
						       NULL;
	struct stat status;

	CHECK(secret_is_kind(kind));
	if (path != NULL && (stat(path, &status) < 0 || !S_ISREG(status.st_mode))) {
		free(path);
		path = NULL;
	}
	return path;
}

bool secret_is_open(const char *kind, const char *name)
{
	struct stat status;

	CHECK(secret_is_kind(kind));
	return strcmp(kind, "file") == 0 && stat(name, &status) == 0 && S_ISREG(status.st_mode) &&
	       (status.st_mode & S_IROTH) != 0;
}

bool secret_is_name(const char *variable)
{
	static const char *const endings[] = { "TOKEN", "KEY", "SECRET", "PASSWORD" };
	size_t length = strlen(variable);

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t ending = strlen(endings[i]);

		if (length >= ending && strcasecmp(variable + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

bool secret_cut_token(struct slice *text, struct slice *token_r, struct slice *name_r,
		      unsigned int *number)
{
	static const struct slice mark = SLICE("\xEF\xBB\xBF"); /* of some editors */

	if (*number == 0 && slice_has_prefix(*text, mark))
		*text = slice_of(text->p + mark.n, text->n - mark.n);
	while (text->n > 0) {
		struct slice line = slice_trim(slice_cut(text, '\n'));

		++*number;
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line = slice_trim(slice_of(line.p, line.n - 1));
		if (line.n == 0 || line.p[0] == '#')
			continue;
		for (token_r->n = 0; token_r->n < line.n && line.p[token_r->n] != ' ' &&
				     line.p[token_r->n] != '\t';)
			token_r->n++;
		token_r->p = line.p;
		*name_r = slice_trim(slice_between(line.p + token_r->n, line.p + line.n));
		return true;
	}
	return false;
}

void secret_free(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/* ---- claims: found here; the keeper puts the values in ---- */

#define BEGIN "${claim:"

int claim_cut(struct slice *text, struct slice *before_r, struct slice *name_r)
{
	const char *end = text->p + text->n;
	const char *begin = memmem(text->p, text->n, BEGIN, strlen(BEGIN));
	const char *close;

	CHECK(text->p != NULL);
	*before_r = *text;
	if (begin == NULL)
		return 0;
	close = memchr(begin, '}', (size_t)(end - begin));
	if (close == NULL)
		return -1;
	*before_r = slice_between(text->p, begin);
	*name_r = slice_between(begin + strlen(BEGIN), close);
	*text = slice_between(close + 1, end);
	for (size_t i = 0; i < name_r->n; i++)
		if (name_r->p[i] <= ' ' || name_r->p[i] >= 0x7f)
			return -1;
	return name_r->n > 0 && name_r->n <= CLAIM_NAME_MAX ? 1 : -1;
}

bool claim_is_in(const char *text)
{
	return strstr(text, BEGIN) != NULL;
}

bool claim_is_alone(const char *text)
{
	struct slice rest = slice_str(text);
	struct slice before, name;

	while (claim_cut(&rest, &before, &name) > 0)
		if (before.n > 0)
			return false;
	return rest.n == 0;
}

/* What nothing here can stand for, by how it begins. */
static const struct {
	struct slice prefix;
	const char *text;
} foreign[] = {
	{ SLICE("input:"), VARIABLES_AS_THEY_STAND
	  "there is nobody to ask for it; write ${NAME} instead, and set the variable NAME for "
	  "mcpgated" },
	{ SLICE("workspaceFolder"),
	  VARIABLES_AS_THEY_STAND "no folder is open here; write a path instead" },
	{ SLICE("file:"), VARIABLES_AS_THEY_STAND
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
	return slice_is_name(name, "_") && (name.p[0] < '0' || name.p[0] > '9');
}

/* Returns why the value of a variable cannot be put in, or NULL: it has been. */
static const char *put_variable(struct expansion *expansion, struct slice written,
				struct slice name)
{
	at_end(mem_free) char *copy = mem_dup_slice(name);
	const char *value = getenv(copy);
	const char *why = NULL;

	if (value == NULL)
		why = VARIABLES_AS_THEY_STAND "no such variable is set here";
	else if (!text_is_utf8(slice_str(value)))
		why = VARIABLES_AS_THEY_STAND "the variable's value is not UTF-8";
	else if (expansion->out->len + strlen(value) > VARIABLES_BYTES_MAX)
		why = VARIABLES_AS_THEY_STAND
			"with the variable's value the text would be too long";
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
	return why;
}

/*
 * `${SOURCE:NAME:-FALLBACK}`; only NAME is required. Missing parts have n == 0, a missing fallback
 * has p == NULL. Borrowed.
 */
struct variable {
	struct slice written; /* the whole expression */
	struct slice source;
	struct slice name;
	struct slice fallback;
};

/*
 * Parses the expression at the beginning of `text`, which starts with `${`. False: it has no end;
 * `written` is then all of the text.
 */
static bool parse_variable(struct slice text, struct variable *variable_r)
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
		return VARIABLES_AS_THEY_STAND "it is not expanded here";
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
		tell(text, VARIABLES_AS_THEY_STAND "to use a variable's value, write ${NAME}", arg);
	while (rest.n > 0 && (at = memmem(rest.p, rest.n, "${", 2)) != NULL) {
		const char *why = VARIABLES_AS_THEY_STAND "it is not expanded here";
		struct variable variable;

		buf_append_slice(out, slice_between(rest.p, at));
		rest = slice_between(at, rest.p + rest.n);
		if (parse_variable(rest, &variable))
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

/* ---- what is not expanded in our own files ---- */

#define NAME_SHOWN 60

static bool is_called(const struct tree *value, const char *key)
{
	return value != NULL && value->key != NULL && strcmp(value->key, key) == 0;
}

/* By whatever path. */
static bool is_shell(const struct tree *command)
{
	static const struct slice shells = SLICE("sh ash bash csh dash fish ksh mksh tcsh zsh");
	const char *text = command != NULL && command->kind == TREE_TEXT ? command->text : "";

	return slice_has_part(shells, ' ', slice_str(basename(text)));
}

static bool is_exempt(const struct tree *value)
{
	return is_called(value, "redact") || is_called(value, "deny_patterns") ||
	       (is_called(value, "args") && is_shell(tree_find(value->parent, "command")));
}

/* The name in what begins with "${" at `text`; empty: it is no variable, or a claim. */
static struct slice name_at(const char *text)
{
	struct variable variable;
	struct slice name;
	size_t length = 0;

	if (!parse_variable(slice_str(text), &variable) ||
	    slice_is_equal(variable.source, SLICE_LIT("claim")))
		return slice_of(NULL, 0);
	name = variable.source.n == 0 ||
			       slice_has_part(SLICE_LIT("env input secret"), ' ', variable.source) ?
		       variable.name :
		       variable.source;
	while (length < name.n && slice_is_name(slice_of(name.p + length, 1), "_"))
		length++;
	/* A shell's ${NAME-DEFAULT} has no colon. */
	return slice_of(name.p,
			length == name.n || strchr(":-", name.p[length]) != NULL ? length : 0);
}

static void refuse(const struct tree *value, struct slice name, struct config_problems *problems)
{
	int n = name.n < NAME_SHOWN ? (int)name.n : NAME_SHOWN;

	if (is_called(value->parent, "env") || is_called(value, "client_secret"))
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; to use a variable of the daemon, write {env: "
			"%.*s}; to use a file, {file: PATH}",
			n, name.p, n, name.p);
	else if (is_called(value->parent, "headers"))
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; write {env: %.*s} or {file: PATH}, which hold the "
			"whole value, as with 'Bearer ' before a token",
			n, name.p, n, name.p);
	else if (is_called(value->parent, "args"))
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; pass the variable to the server, env: {%.*s: "
			"{env: %.*s}}, and if it must be an argument let a shell expand it: "
			"command: sh, args: [-c, 'exec COMMAND \"$%.*s\"']",
			n, name.p, n, name.p, n, name.p, n, name.p);
	else
		problem_add_at(
			problems, value,
			"${%.*s} is not expanded; write the value itself: {env: %.*s} works only "
			"in env and for secrets",
			n, name.p, n, name.p);
}

void unexpanded_check(const struct tree *root, struct config_problems *problems)
{
	if (is_exempt(root))
		return;
	for (size_t i = 0; root->kind != TREE_TEXT && i < root->count; i++)
		unexpanded_check(root->items[i], problems);
	if (root->kind != TREE_TEXT)
		return;
	for (const char *at = strstr(root->text, "${"); at != NULL; at = strstr(at + 2, "${")) {
		struct slice name = name_at(at);

		if (name.n > 0) {
			refuse(root, name, problems);
			return;
		}
	}
}
