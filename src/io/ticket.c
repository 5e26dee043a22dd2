/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two keys: the one that seals, and the one before it, which only opens. A key is made when one is
 * needed and the newest is too old, so there is no timer. AES-256-CBC and HMAC-SHA-256, RFC 5077 §4.
 */
#include "io/ticket.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

struct ticket_key {
	unsigned char name[16];
	unsigned char cipher[32];
	unsigned char mac[32];
	uint64_t made_ms;
};

struct tickets {
	struct ticket_key current;
	struct ticket_key previous;
};

static void make_key(struct ticket_key *key)
{
	random_bytes(key->name, sizeof(key->name));
	random_bytes(key->cipher, sizeof(key->cipher));
	random_bytes(key->mac, sizeof(key->mac));
	key->made_ms = clock_now_ms();
}

struct tickets *tickets_new(void)
{
	struct tickets *tickets = mem_zalloc(sizeof(*tickets));

	make_key(&tickets->current);
	make_key(&tickets->previous); /* opens nothing: nobody has a ticket of it */
	return tickets;
}

void tickets_free(struct tickets **tickets)
{
	if (*tickets == NULL)
		return;
	explicit_bzero(*tickets, sizeof(**tickets));
	free(*tickets);
	*tickets = NULL;
}

static const struct ticket_key *key_to_seal(struct tickets *tickets)
{
	if (clock_now_ms() - tickets->current.made_ms >= TICKET_KEY_MS) {
		tickets->previous = tickets->current;
		make_key(&tickets->current);
	}
	return &tickets->current;
}

/* NULL: of another process, or too old. */
static const struct ticket_key *key_to_open(const struct tickets *tickets,
					    const unsigned char name[16])
{
	const struct ticket_key *key = &tickets->current;

	if (memcmp(key->name, name, sizeof(key->name)) != 0)
		key = &tickets->previous;
	if (memcmp(key->name, name, sizeof(key->name)) != 0 ||
	    clock_now_ms() - key->made_ms >= 2 * TICKET_KEY_MS)
		return NULL;
	return key;
}

static int use_key(const struct ticket_key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher,
		   EVP_MAC_CTX *mac, int is_sealing)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac,
						  sizeof(key->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, is_sealing) ==
		       1 &&
	       EVP_MAC_CTX_set_params(mac, params) == 1;
}

int tickets_seal_or_open(struct tickets *tickets, unsigned char name[16], unsigned char *iv,
			 EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_sealing)
{
	const struct ticket_key *key;

	CHECK(tickets != NULL);
	if (is_sealing) {
		key = key_to_seal(tickets);
		memcpy(name, key->name, sizeof(key->name));
		random_bytes(iv, 16);
		return use_key(key, iv, cipher, mac, 1) ? 1 : -1;
	}
	key = key_to_open(tickets, name);
	if (key == NULL)
		return 0; /* a whole handshake */
	if (!use_key(key, iv, cipher, mac, 0))
		return -1;
	return key == &tickets->current ? 1 : 2; /* 2: the client gets a new one */
}
