/* SPDX-License-Identifier: Apache-2.0 */
/* What an issuer says of itself (RFC 8414, OpenID discovery): where that is, and whether it may be believed. Pure. */
#ifndef MCPGATED_AUTH_ISSUER_METADATA_H
#define MCPGATED_AUTH_ISSUER_METADATA_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

/*
 * Address number `at` (from 0) of the issuer's metadata, in the order of AUTH-AS-01; the caller's; NULL after the
 * last. RFC 8414 s3.1: the well-known part goes between host and path.
 */
char *issuer_metadata_url(const char *issuer, size_t at);
/* Whether the document is this issuer's and its addresses may be used. AUTH-AS-02, AUTH-AS-03 */
int issuer_metadata_check(const json_t *document, const char *issuer, struct error *err) must_check;

#endif
