/* SPDX-License-Identifier: Apache-2.0 */
/* The object is written with its members in order, so only their values must be made canonical. */
#include "router/digest.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "session/principal.h"

static void digest_append_member(struct buf *out, const char *name, struct json value)
{
	if (value.type == JSON_ABSENT)
		return;
	buf_append_str(out, name);
	CHECK(canonical_append(out, value.text, SCAN_DEPTH_MAX) == 0); /* was scanned before */
	buf_append_char(out, ',');
}

/* The members of a request that count. */
struct asked {
	struct slice method;
	struct json arguments;
	struct json name;
	struct json uri;
	struct slice canonical; /* of the arguments, if it has been made; not kept */
};

static struct asked asked_of(const struct envelope *env)
{
	return (struct asked){ env->method, env->arguments, env->name, env->uri,
			       env->canonical.text };
}

static void compute(const struct asked *asked, struct digest *digest_r)
{
	at_end(buf_fini) struct buf text = { 0 };

	buf_append_char(&text, '{');
	if (asked->canonical.n > 0) {
		buf_append_str(&text, "\"arguments\":");
		buf_append_slice(&text, asked->canonical);
		buf_append_char(&text, ',');
	} else {
		digest_append_member(&text, "\"arguments\":", asked->arguments);
	}
	buf_append_str(&text, "\"method\":");
	write_string(&text, asked->method);
	buf_append_char(&text, ',');
	digest_append_member(&text, "\"name\":", asked->name);
	digest_append_member(&text, "\"uri\":", asked->uri);
	text.data[text.len - 1] = '}';
	digest_bytes(buf_slice(&text), digest_r);
}

void digest_request(const struct envelope *env, struct digest *digest_r)
{
	struct asked asked = asked_of(env);

	compute(&asked, digest_r);
}

struct kept_digest {
	bool is_computed;
	struct digest digest;
	struct asked asked; /* until it is computed; slices of text */
	char text[];
};

static char *digest_keep(struct slice *part, char *to)
{
	if (part->n > 0)
		memcpy(to, part->p, part->n);
	part->p = to;
	return to + part->n;
}

struct kept_digest *kept_digest_new(const struct envelope *env)
{
	struct asked asked = asked_of(env);
	size_t n = asked.method.n + asked.arguments.text.n + asked.name.text.n + asked.uri.text.n;
	bool is_long = n > KEPT_DIGEST_TEXT_MAX;
	struct kept_digest *kept = mem_alloc(sizeof(*kept) + (is_long ? 0 : n));
	char *to = kept->text;

	kept->is_computed = is_long;
	if (is_long) {
		compute(&asked, &kept->digest);
		return kept;
	}
	asked.canonical.n = 0;
	to = digest_keep(&asked.method, to);
	to = digest_keep(&asked.arguments.text, to);
	to = digest_keep(&asked.name.text, to);
	(void)digest_keep(&asked.uri.text, to);
	kept->asked = asked;
	return kept;
}

const struct digest *kept_digest_get(struct kept_digest *kept)
{
	if (!kept->is_computed)
		compute(&kept->asked, &kept->digest);
	kept->is_computed = true;
	return &kept->digest;
}

void kept_digest_free(struct kept_digest **kept)
{
	free(*kept);
	*kept = NULL;
}

void digest_bytes(struct slice bytes, struct digest *digest_r)
{
	/* Both are made only once: that costs more than hashing a short text. */
	static EVP_MD *sha256;
	static EVP_MD_CTX *context;
	unsigned int size = 0;

	if (context == NULL) {
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
		context = EVP_MD_CTX_new();
	}
	CHECK(EVP_DigestInit_ex2(context, sha256, NULL) == 1 &&
	      EVP_DigestUpdate(context, bytes.p, bytes.n) == 1 &&
	      EVP_DigestFinal_ex(context, digest_r->bytes, &size) == 1 &&
	      size == sizeof(digest_r->bytes));
}

/* Each part is length-counted. */
void digest_principal(const struct principal *principal, struct digest *digest_r)
{
	const struct identity *who = &principal->identity;
	at_end(buf_fini) struct buf text = { 0 };

	buf_printf(&text, "%zu:%.*s%zu:%.*s%zu:%.*s", who->issuer.n, SLICE_ARG(who->issuer),
		   who->subject.n, SLICE_ARG(who->subject), who->client.n, SLICE_ARG(who->client));
	digest_bytes(buf_slice(&text), digest_r);
}

void digest_append(struct buf *out, const struct digest *digest)
{
	char text[DIGEST_TEXT + 1];
	size_t n = text_base64url(digest->bytes, DIGEST_BYTES, text);

	buf_append_char(out, '"');
	buf_append(out, text, n);
	buf_append_char(out, '"');
}
