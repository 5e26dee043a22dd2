/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for the form of what clients send, and what they take. */
#ifndef MCPGATED_ENDPOINT_VALIDATION_H
#define MCPGATED_ENDPOINT_VALIDATION_H

#include <stdbool.h>

#include "http/parse.h"
#include "jsonrpc/scan.h"

/* Why the body of a POST is not to be read (415); NULL: it is one of ours. FRONT-HTTP-06, SEC-02 */
const char *validation_check_content(const struct http_request *http);
/* Whether the client takes this media type. FRONT-HTTP-03 */
bool validation_accepts(const struct http_request *http, const char *type);

bool validation_is_initialize(const struct envelope *env);
/* What a message's _meta says about the revision that it is of; absent in the legacy era. */
struct json validation_version(const struct envelope *env);
/* What is wrong with an initialize request, for its client; NULL: nothing. FRONT-INIT-01, DEF-11 */
const char *validation_check_initialize(const struct envelope *initialize);

#endif
