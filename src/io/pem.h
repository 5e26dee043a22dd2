/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and private keys as texts in PEM form, and what is wrong with them. Without TLS: the keeper checks them. */
#ifndef MCPGATED_IO_PEM_H
#define MCPGATED_IO_PEM_H

#include <openssl/x509.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define PEM_STRENGTH_BITS 112 /* RSA from 2048, no SHA-1: level 2 of OpenSSL */

/* All certificates of the text; free with sk_X509_pop_free. NULL: there is none, or one is damaged. */
STACK_OF(X509) * pem_read_certificates(struct slice pem, struct error *err) must_check;
/* The private key of the text; free with EVP_PKEY_free. NULL: there is none, or it has a passphrase. */
EVP_PKEY *pem_read_key(struct slice pem, struct error *err) must_check;
/* `what`, and what the library's error queue holds. */
int pem_error(struct error *err, const char *what);

/*
 * The checks of tls_server_new one by one, for a message that names the file. The first also tells
 * the days (counted from now) until the leaf expires, negative if it has, and whether it is valid yet.
 */
int pem_check_certificate(struct slice pem, int *days_left_r, bool *is_valid_yet_r,
			  struct error *err) must_check;
int pem_check_key(struct slice certificate, struct slice key, struct error *err) must_check;
int pem_check_authorities(struct slice pem, struct error *err) must_check;

#endif
