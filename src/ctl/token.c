/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/token.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

#define TOKEN_PREFIX "mcpg_" /* says to people and to scanners of leaked secrets what it is */
#define TOKEN_BYTES 32
#define HASH_BYTES 32

void token_print(const char *name, bool is_json)
{
	char token[sizeof(TOKEN_PREFIX) + (TOKEN_BYTES * 4 + 2) / 3] = TOKEN_PREFIX;
	unsigned char secret[TOKEN_BYTES];
	unsigned char hash[EVP_MAX_MD_SIZE];
	char hex[HASH_BYTES * 2 + 1];
	unsigned int hash_bytes = 0;
	size_t length = strlen(TOKEN_PREFIX);

	random_bytes(secret, sizeof(secret));
	length += text_base64url(secret, sizeof(secret), token + length);
	CHECK(length < sizeof(token));
	token[length] = '\0';
	CHECK(EVP_Digest(token, length, hash, &hash_bytes, EVP_sha256(), NULL) == 1);
	CHECK(hash_bytes == HASH_BYTES);
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(hex + i * 2, 3, "%02x", hash[i]);
	if (is_json)
		printf("{\"name\":\"%s\",\"token\":\"%s\",\"sha256\":\"%s\"}\n", name, token, hex);
	else
		printf("For the client, shown this once:\n  %s\n"
		       "For auth.tokens in the configuration:\n  - {name: %s, sha256: %s}\n",
		       token, name, hex);
}
