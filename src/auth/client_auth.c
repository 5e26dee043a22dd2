/* SPDX-License-Identifier: Apache-2.0 */
/* What holds a secret is made with room enough not to move, and wiped. */
#include "auth/client_auth.h"

#include <stdlib.h>

#include <openssl/evp.h>

#include "base/mem.h"

/* application/x-www-form-urlencoded, every doubtful byte as %XX. */
void client_auth_append(struct buf *out, struct slice text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._";

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c != '\0' && strchr(plain, c) != NULL)
			buf_append_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

/* A buffer that grows moves, and leaves copies of secrets behind that are not wiped. */
static void reserve_form(struct buf *buf, const char *client_id, const char *client_secret)
{
	buf_reserve(buf, (strlen(client_id) + strlen(client_secret)) * 3 + 64);
}

char *client_auth_basic(const char *client_id, const char *client_secret)
{
	struct buf pair = { .data = NULL };
	unsigned char *encoded;
	char *text;
	int size;

	reserve_form(&pair, client_id, client_secret);
	client_auth_append(&pair, slice_str(client_id));
	buf_append_char(&pair, ':');
	client_auth_append(&pair, slice_str(client_secret));
	encoded = mem_alloc(pair.len / 3 * 4 + 8);
	size = EVP_EncodeBlock(encoded, (const unsigned char *)pair.data, (int)pair.len);
	text = mem_printf("Basic %.*s", size, (const char *)encoded);
	explicit_bzero(encoded, (size_t)size);
	free(encoded);
	buf_wipe(&pair);
	return text;
}

char *client_auth_form(const char *client_id, const char *client_secret)
{
	struct buf form = { .data = NULL };
	char *text;

	reserve_form(&form, client_id, client_secret);
	buf_append_str(&form, "client_id=");
	client_auth_append(&form, slice_str(client_id));
	buf_append_str(&form, "&client_secret=");
	client_auth_append(&form, slice_str(client_secret));
	buf_append_char(&form, '&');
	text = mem_dup_slice(buf_slice(&form));
	buf_wipe(&form);
	return text;
}
