/* SPDX-License-Identifier: Apache-2.0 */
/* The object is written with its members in order, so only their values have to be made canonical. */
#include "router/digest.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

static void append_member(struct buf *out, const char *name, struct json value)
{
	if (value.type == JSON_ABSENT)
		return;
	buf_append_str(out, name);
	CHECK(canonical_append(out, value.text, SCAN_DEPTH_MAX) == 0); /* it has been scanned */
	buf_append_char(out, ',');
}

static void append_request(struct buf *out, const struct envelope *env)
{
	buf_append_char(out, '{');
	append_member(out, "\"arguments\":", env->arguments);
	buf_append_str(out, "\"method\":");
	write_string(out, env->method);
	buf_append_char(out, ',');
	append_member(out, "\"name\":", env->name);
	append_member(out, "\"uri\":", env->uri);
	out->data[out->len - 1] = '}';
}

void digest_request(const struct envelope *env, struct digest *digest_r)
{
	struct buf text = { 0 };

	append_request(&text, env);
	digest_bytes(buf_slice(&text), digest_r);
	buf_fini(&text);
}

struct kept_digest {
	struct buf text; /* of the request; empty: the digest is computed */
	struct digest digest;
};

static void compute(struct kept_digest *kept)
{
	digest_bytes(buf_slice(&kept->text), &kept->digest);
	buf_fini(&kept->text);
}

struct kept_digest *kept_digest_new(const struct envelope *env)
{
	struct kept_digest *kept = mem_zalloc(sizeof(*kept));

	append_request(&kept->text, env);
	if (kept->text.len > KEPT_DIGEST_TEXT_MAX)
		compute(kept);
	return kept;
}

const struct digest *kept_digest_get(struct kept_digest *kept)
{
	if (kept->text.len > 0)
		compute(kept);
	return &kept->digest;
}

void kept_digest_free(struct kept_digest **kept)
{
	if (*kept == NULL)
		return;
	buf_fini(&(*kept)->text);
	free(*kept);
	*kept = NULL;
}

void digest_bytes(struct slice bytes, struct digest *digest_r)
{
	/* Both are made once: that costs more than a short text. */
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
