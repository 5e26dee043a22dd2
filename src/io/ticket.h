/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that session tickets are sealed with. They belong to the process, not to a certificate, so
 * a client resumes its session after certificates were replaced; each is used for a bounded time.
 */
#ifndef MCPGATED_IO_TICKET_H
#define MCPGATED_IO_TICKET_H

#include <openssl/ssl.h>

/* How long a key seals, and how long after that it still opens: the life of a ticket. */
#define TICKET_KEY_MS (4 * 3600 * UINT64_C(1000))
#define TICKET_SECONDS (4 * 3600)

struct tickets;

struct tickets *tickets_new(void);
/* Overwrites the keys. */
void tickets_free(struct tickets **tickets);

/* The callback of SSL_CTX_set_tlsext_ticket_key_evp_cb(3), with the keys instead of the connection. */
int tickets_seal_or_open(struct tickets *tickets, unsigned char name[16], unsigned char *iv,
			 EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_sealing);

#endif
