/* SPDX-License-Identifier: Apache-2.0 */
/* The object is written with its members in order, so only their values have to be made canonical. */
#include "router/digest.h"

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/check.h"
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

void digest_request(const struct envelope *env, struct digest *digest_r)
{
	struct buf text = { 0 };

	buf_append_char(&text, '{');
	append_member(&text, "\"arguments\":", env->arguments);
	buf_append_str(&text, "\"method\":");
	write_string(&text, env->method);
	buf_append_char(&text, ',');
	append_member(&text, "\"name\":", env->name);
	append_member(&text, "\"uri\":", env->uri);
	text.data[text.len - 1] = '}';
	digest_bytes(buf_slice(&text), digest_r);
	buf_fini(&text);
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
