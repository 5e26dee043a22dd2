/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server is told of a caller, in a token that the fetcher signs (auth/assertion): from what was found out about the
 * caller's token, and never that token. BACK-URL-11
 */
#pragma once

#include "base/slice.h"

struct access;
struct authorization_conf;

/*
 * Keeps them for the tokens that this server gets, as what the caller has shown last there (principal_keep_token). Nothing
 * to be said counts as nothing shown.
 */
void caller_claims_keep(const struct authorization_conf *conf, const struct access *access,
			struct slice server);
