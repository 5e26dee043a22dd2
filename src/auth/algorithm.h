/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signature algorithms: a table, and the only place that verifies signatures. Asymmetric ones only:
 * an algorithm that is not in the table does not exist here, so neither `none` nor HS* can ever be
 * accepted. RFC 7518 s3, RFC 8037 s3.1. AUTH-JWT-02, AUTH-JWT-08
 */
#ifndef MCPGATED_AUTH_ALGORITHM_H
#define MCPGATED_AUTH_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "base/slice.h"

/* A set of algorithms, for lists of a configuration: the `bit`s of its members. */
typedef uint32_t algorithm_set;
#define ALGORITHM_ALL UINT32_MAX

struct algorithm {
	const char *name;
	const char *key_type; /* `kty` */
	const char *curve;    /* `crv`, or NULL */
	const char *digest;   /* OpenSSL's name, or NULL: the algorithm has its own */
	bool is_pss;
	size_t width; /* ECDSA: bytes of one coordinate; else 0 */
	algorithm_set bit;
};

/* Exact match; NULL if there is no such name. */
const struct algorithm *algorithm_find(struct slice name);
/* The members of `from` that a key of this type and curve (NULL: none) supports. */
algorithm_set algorithm_fitting(algorithm_set from, const char *key_type, const char *curve);

/*
 * Whether `signature`, in JWS format, is the key's signature of `input`. The key must fit the
 * algorithm. ECDSA signatures must be the two numbers in their fixed width.
 */
bool algorithm_verify(const struct algorithm *algorithm, EVP_PKEY *key, struct slice input,
		      struct slice signature);

#endif
