/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and private keys in PEM form, and checks of them. Independent of TLS connections, so
 * that the keeper can use it.
 */
#pragma once

#include <openssl/x509.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define PEM_STRENGTH_BITS 112 /* RSA from 2048 bits, no SHA-1: security level 2 of OpenSSL */

/*
 * All certificates in the text; the caller frees them with sk_X509_pop_free. NULL if there is none
 * or one is damaged.
 */
STACK_OF(X509) * pem_read_certificates(struct slice pem, struct error *err) must_check;
/*
 * The private key in the text; the caller frees it with EVP_PKEY_free. NULL if there is none or it
 * needs a passphrase.
 */
EVP_PKEY *pem_read_key(struct slice pem, struct error *err) must_check;
/* Sets *err to `what` and the content of OpenSSL's error queue; returns -1. */
int pem_error(struct error *err, const char *what);

/*
 * The checks of tls_server_new one by one, so that an error can name the file. Return 0 or -1. The
 * first also reports in how many days the leaf certificate expires (negative: it has expired) and
 * whether it is valid yet.
 */
int pem_check_certificate(struct slice pem, int *days_left_r, bool *is_valid_yet_r,
			  struct error *err) must_check;
int pem_check_key(struct slice certificate, struct slice key, struct error *err) must_check;
int pem_check_authorities(struct slice pem, struct error *err) must_check;
