/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix says to people and to scanners of leaked secrets what it is. */
#include "ctl/token.h"

#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "base/random.h"
#include "base/slice.h"
#include "base/text.h"

#define SECRET_BYTES 32
#define HASH_BYTES 32
#define PREFIX "mcpg_"

static void hash_to_hex(struct slice text, char hex_r[HASH_BYTES * 2 + 1])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	CHECK(EVP_Digest(text.p, text.n, hash, &size, EVP_sha256(), NULL) == 1 &&
	      size == HASH_BYTES);
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(hex_r + i * 2, 3, "%02x", hash[i]);
}

void token_print_new(const char *name, bool is_json)
{
	char token[sizeof(PREFIX) + (SECRET_BYTES * 4 + 2) / 3] = PREFIX;
	unsigned char secret[SECRET_BYTES];
	char hex[HASH_BYTES * 2 + 1];
	size_t length;

	random_bytes(secret, sizeof(secret));
	length = sizeof(PREFIX) - 1 +
		 text_base64url(secret, sizeof(secret), token + sizeof(PREFIX) - 1);
	token[length] = '\0';
	hash_to_hex(slice_of(token, length), hex);
	if (is_json)
		printf("{\"name\":\"%s\",\"token\":\"%s\",\"sha256\":\"%s\"}\n", name, token, hex);
	else
		printf("For the client, shown this once:\n  %s\n"
		       "For auth.tokens in the configuration:\n  - {name: %s, sha256: %s}\n",
		       token, name, hex);
}
