/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server is told of a caller, in a token that the fetcher signs (auth/assertion): from what was found out about the
 * caller's token, and never that token. BACK-URL-11
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

struct access;
struct authorization_conf;

/*
 * Appends the claims as a JSON object: sub and, since two issuers may use one name, sub_id (RFC 9493), client_id, scope,
 * roles. Nothing, of whom nothing can be said: nobody in particular, whom a token without sub stands for, or whom the
 * operator only imagines.
 */
void caller_claims_append(const struct authorization_conf *conf, const struct access *access,
			  struct buf *out);
/*
 * Keeps them for the tokens that this server gets, as what the caller has shown last there (principal_keep_token). Nothing
 * to be said counts as nothing shown.
 */
void caller_claims_keep(const struct authorization_conf *conf, const struct access *access,
			struct slice server);
