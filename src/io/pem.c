/* SPDX-License-Identifier: Apache-2.0 */
/* Reads no files and never prompts on a terminal. */
#include "io/pem.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

int pem_error(struct error *err, const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;

	return error_set(err, ERROR_INVALID, "%s%s%s", what, reason != NULL ? ": " : "",
			 reason != NULL ? reason : "");
}

static BIO *open_pem(struct slice pem)
{
	BIO *bio = BIO_new_mem_buf(pem.p != NULL ? pem.p : "", (int)pem.n);

	CHECK(bio != NULL && pem.n <= INT_MAX);
	ERR_clear_error();
	return bio;
}

/* A daemon that starts by itself cannot ask for a passphrase. */
static int refuse_passphrase(not_used char *text, not_used int size, not_used int is_writing,
			     void *was_asked)
{
	*(bool *)was_asked = true;
	return -1;
}

STACK_OF(X509) * pem_read_certificates(struct slice pem, struct error *err)
{
	STACK_OF(X509) *all = sk_X509_new_null();
	BIO *bio = open_pem(pem);
	X509 *one;

	CHECK(all != NULL);
	while ((one = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
		CHECK(sk_X509_push(all, one) > 0);
	BIO_free(bio);
	if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE && sk_X509_num(all) > 0) {
		ERR_clear_error(); /* the end of the text */
		return all;
	}
	if (sk_X509_num(all) == 0)
		error_set(err, ERROR_SYNTAX,
			  "holds no certificate in PEM form (-----BEGIN "
			  "CERTIFICATE-----)");
	else
		pem_error(err, "holds a damaged certificate");
	sk_X509_pop_free(all, X509_free);
	return NULL;
}

EVP_PKEY *pem_read_key(struct slice pem, struct error *err)
{
	BIO *bio = open_pem(pem);
	bool was_asked = false;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &was_asked);

	BIO_free(bio);
	if (key == NULL && was_asked)
		error_set(err, ERROR_INVALID,
			  "the key has a passphrase; remove it with: openssl pkey -in FILE -out "
			  "NEW-FILE");
	else if (key == NULL)
		error_set(err, ERROR_SYNTAX,
			  "holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)");
	return key;
}

/* ---- checks ---- */

/*
 * The same judgment as OpenSSL's in use. The signature of a self-signed trusted certificate is not
 * checked.
 */
static int check_strength(X509 *certificate, struct error *err)
{
	const EVP_PKEY *key = X509_get0_pubkey(certificate);
	int bits = -1;

	if (key == NULL || EVP_PKEY_get_security_bits(key) < PEM_STRENGTH_BITS)
		return error_set(err, ERROR_INVALID,
				 "cannot be used: a key is too small (RSA needs 2048 bits)");
	if ((X509_get_extension_flags(certificate) & EXFLAG_SS) != 0)
		return 0;
	if (X509_get_signature_info(certificate, NULL, NULL, &bits, NULL) != 1 ||
	    bits < PEM_STRENGTH_BITS)
		return error_set(err, ERROR_INVALID,
				 "cannot be used: a signature is too weak (SHA-1, say)");
	return 0;
}

int pem_check_certificate(struct slice pem, int *days_left_r, bool *is_valid_yet_r,
			  struct error *err)
{
	STACK_OF(X509) *chain = pem_read_certificates(pem, err);
	const X509 *leaf;
	int seconds = 0;
	int result = 0;

	if (chain == NULL)
		return -1;
	leaf = sk_X509_value(chain, 0);
	*is_valid_yet_r = X509_cmp_current_time(X509_get0_notBefore(leaf)) < 0;
	*days_left_r = -1;
	ASN1_TIME_diff(days_left_r, &seconds, NULL, X509_get0_notAfter(leaf));
	if (*days_left_r == 0 && seconds < 0)
		*days_left_r = -1;
	for (int i = 0; i < sk_X509_num(chain) && result == 0; i++)
		result = check_strength(sk_X509_value(chain, i), err);
	sk_X509_pop_free(chain, X509_free);
	ERR_clear_error();
	return result;
}

int pem_check_key(struct slice certificate, struct slice key, struct error *err)
{
	STACK_OF(X509) *chain = pem_read_certificates(certificate, err);
	EVP_PKEY *private_key = chain != NULL ? pem_read_key(key, err) : NULL;
	int result = private_key != NULL ? 0 : -1;

	if (result == 0 && X509_check_private_key(sk_X509_value(chain, 0), private_key) != 1)
		result =
			error_set(err, ERROR_INVALID, "the key does not belong to the certificate");
	EVP_PKEY_free(private_key);
	sk_X509_pop_free(chain, X509_free);
	ERR_clear_error();
	return result;
}

int pem_check_authorities(struct slice pem, struct error *err)
{
	STACK_OF(X509) *all = pem_read_certificates(pem, err);
	int result = all != NULL ? 0 : -1;

	sk_X509_pop_free(all, X509_free);
	return result;
}
