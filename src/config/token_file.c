/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a token is overwritten as soon as its hash is known. */
#include "config/token_file.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/file.h"
#include "config/problem.h"
#include "config/secret.h"

static bool is_token(struct slice text)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789-._~+/=";

	for (size_t i = 0; i < text.n; i++)
		if (memchr(characters, text.p[i], sizeof(characters) - 1) == NULL)
			return false;
	return text.n >= TOKEN_CHARACTERS_MIN;
}

static void add_token(struct slice text, unsigned int line, const char *path, struct tree *tokens)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	struct tree *entry = tree_new(TREE_MAP, path);
	struct buf digits = { 0 };
	char name[32];

	SHA256((const unsigned char *)text.p, text.n, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		buf_printf(&digits, "%02x", hash[i]);
	snprintf(name, sizeof(name), "line-%u", line);
	tree_add(entry, "name", tree_new_text(name, path));
	tree_add(entry, "sha256", tree_new_text(buf_terminate(&digits), path));
	tree_add(tokens, NULL, entry);
	buf_fini(&digits);
}

static void add_lines(const struct types_context *context, struct slice text, const char *path,
		      struct tree *tokens)
{
	unsigned int line = 0;

	CHECK(tokens->kind == TREE_LIST && tokens->count == 0);
	while (text.n > 0) {
		struct slice one = slice_trim(slice_cut(&text, '\n'));

		line++;
		if (one.n > 0 && one.p[one.n - 1] == '\r')
			one = slice_trim(slice_of(one.p, one.n - 1));
		if (one.n == 0 || one.p[0] == '#')
			continue;
		if (is_token(one))
			add_token(one, line, path, tokens);
		else
			problem_add(
				context->problems,
				"%s:%u: a token has at least %d letters, digits and -._~+/= and "
				"nothing else; make one with: openssl rand -hex 32",
				path, line, TOKEN_CHARACTERS_MIN);
	}
	if (tokens->count == 0)
		problem_add(context->problems,
			    "%s: there is no token in it; make one with: openssl rand -hex 32",
			    path);
}

void token_file_add(const struct types_context *context, const char *path, struct tree *root)
{
	struct tree *auth = tree_new(TREE_MAP, path);
	struct tree *tokens = tree_new(TREE_LIST, path);
	struct buf content = { 0 };
	struct error err;
	mode_t mode = 0;

	CHECK(root->kind == TREE_MAP);
	tree_add(auth, "mode", tree_new_text("token", path));
	tree_add(auth, "tokens", tokens);
	if (file_read(path, SECRET_BYTES_MAX, &content, &mode, &err) != 0)
		problem_add(context->problems, "%s: %s", path, err.text);
	else if ((mode & (S_IRWXG | S_IRWXO)) != 0)
		problem_add(
			context->problems,
			"%s: others than its owner may read or write these tokens; take the right "
			"away: chmod 600 %s",
			path, path);
	else
		add_lines(context, buf_slice(&content), path, tokens);
	file_wipe(&content);
	tree_remove(root, "auth");
	tree_add(root, "auth", auth);
}
