/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/line.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "config/variables.h"
#include "ctl/output.h"

#define TOKEN_BYTES_MAX (64 * 1024)
#define TOKEN_PREFIX "mcpg_" /* says to people and to scanners of leaked secrets what it is */
#define TOKEN_BYTES 32

const struct slice line_no_body = { NULL, 0 };

struct config *line_load(const struct config_request *request)
{
	struct config_problems problems = { NULL, 0 }, warnings = { NULL, 0 };
	struct config *config = config_load(request, &problems, &warnings);

	for (size_t i = 0; i < problems.count; i++)
		line_fail(problems.items[i]);
	config_problems_fini(&problems);
	config_problems_fini(&warnings); /* -t tells them */
	return config;
}

char *line_home_file(const char *name)
{
	const char *folder = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (folder != NULL && folder[0] == '/' &&
	    slice_has_prefix(slice_str(name), SLICE_LIT(".config/")))
		return mem_printf("%s/%s", folder, name + strlen(".config/"));
	return mem_printf("%s/%s", home != NULL ? home : "", name);
}

char *line_own_file(const char *name)
{
	at_end(mem_free) char *below = mem_printf(".config/mcpgated/%s", name);

	return line_home_file(below);
}

int line_fail(const char *text)
{
	escape_print(stderr, "mcpgatectl: ", slice_str(text), "");
	return EXIT_FAILED;
}

int line_refuse_usage(const char *text)
{
	line_fail(text);
	fputs("try: mcpgatectl --help\n", stderr);
	return EXIT_USAGE;
}

/* on_event: gets what comes, and then there is no object. */
static json_t *ask(const struct line *line, const char *method, char *target, struct slice body,
		   void (*on_event)(struct slice data))
{
	struct client_request request = { line->socket, method, target, .body = body,
					  .on_event = on_event };
	at_end(client_reply_fini) struct client_reply reply = { .status = 0 };
	struct error err = { ERROR_NONE, "" };
	int result = client_ask(&request, &reply, &err);
	json_t *answer;

	free(target);
	if (line->is_another && result == 0 && strcmp(method, "POST") == 0)
		fprintf(stderr, "mcpgatectl: no daemon of this user runs; the one asked is at %s\n",
			line->socket);
	if (result < 0) {
		line_fail(err.text);
		return NULL;
	}
	answer = on_event != NULL && reply.status == 200 ? json_object() :
							   client_reply_read(&reply, &err);
	if (reply.status != 200) {
		const char *why = json_string_value(json_object_get(answer, "error"));

		line_fail(why != NULL ? why : "the daemon refuses, and does not say why");
		json_decref(answer);
		answer = NULL;
	} else if (answer == NULL) {
		line_fail(err.text);
	} else if (line->is_json && on_event == NULL) {
		fwrite(reply.body.data, 1, reply.body.len, stdout);
	}
	return answer;
}

json_t *line_ask(const struct line *line, const char *method, char *target, struct slice body)
{
	return ask(line, method, target, body, NULL);
}

int line_follow(const struct line *line, char *target, void (*on_event)(struct slice data))
{
	return line_finish(ask(line, "GET", target, line_no_body, on_event));
}

int line_finish(json_t *answer)
{
	int status = answer != NULL ? 0 : EXIT_FAILED;

	json_decref(answer);
	return status;
}

int line_tell(const struct line *line, const char *method, char *target, struct slice body,
	      void (*show)(const json_t *answer))
{
	json_t *answer = line_ask(line, method, target, body);

	if (answer != NULL && !line->is_json)
		show(answer);
	return line_finish(answer);
}

int line_report(const struct line *line, void (*show)(const json_t *report))
{
	return line_tell(line, "GET", mem_printf("/%s", line->words[0]), line_no_body, show);
}

bool line_is_plain(const char *word)
{
	return slice_is_name(slice_str(word), "_-");
}

bool line_is_url(const char *word)
{
	return strstr(word, "://") != NULL;
}

json_t *line_read_claims(const char *text, struct error *err)
{
	json_t *claims = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(claims))
		return claims;
	json_decref(claims);
	error_set(err, ERROR_INVALID, "--claims takes a JSON object, like {\"groups\": [\"dev\"]}");
	return NULL;
}

/* Of the one line that is neither empty nor a comment, as in a file of `mcpgatectl token new`; n 0: not one. */
static struct slice find_token(struct slice text)
{
	struct slice found = { NULL, 0 }, name, more;
	unsigned int number = 0;

	if (!secret_cut_token(&text, &found, &name, &number) ||
	    secret_cut_token(&text, &more, &name, &number))
		return slice_of("", 0);
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] <= ' ')
			return slice_of("", 0); /* a sentence, and no name */
	for (size_t i = 0; i < found.n; i++)
		if (found.p[i] <= ' ' || found.p[i] >= 0x7F)
			return slice_of("", 0);
	return found;
}

char *line_read_token(const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char *text = mem_zalloc(TOKEN_BYTES_MAX + 1);
	struct slice token;
	size_t n;

	if (file == NULL) {
		free(text);
		error_set_errno(err, "cannot open the token file %s", path);
		return NULL;
	}
	setvbuf(file, NULL, _IONBF, 0); /* no second copy */
	n = fread(text, 1, TOKEN_BYTES_MAX, file);
	fclose(file);
	token = find_token(slice_of(text, n));
	if (token.n > 0) {
		memmove(text, token.p, token.n);
		explicit_bzero(text + token.n, n - token.n);
		return text;
	}
	explicit_bzero(text, n);
	free(text);
	error_set(err, ERROR_INVALID,
		  "the token file %s must hold one token, beside comments and its name", path);
	return NULL;
}

void line_hash(struct slice text, char hash_r[LINE_HASH_BYTES])
{
	unsigned char hash[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)text.p, text.n, hash);
	text_to_hex(hash, sizeof(hash), hash_r);
}

void line_make_token(struct line_token *token_r)
{
	unsigned char secret[TOKEN_BYTES];
	size_t length = strlen(TOKEN_PREFIX);

	strcpy(token_r->text, TOKEN_PREFIX);
	random_bytes(secret, sizeof(secret));
	length += text_base64url(secret, sizeof(secret), token_r->text + length);
	CHECK(length < sizeof(token_r->text));
	token_r->text[length] = '\0';
	line_hash(slice_str(token_r->text), token_r->hash);
	explicit_bzero(secret, sizeof(secret));
}
