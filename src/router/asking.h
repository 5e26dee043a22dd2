/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server may ask of a client, according to the capabilities that the client declared.
 * UTIL-ROOT-01, -02.
 */
#ifndef MCPGATED_ROUTER_ASKING_H
#define MCPGATED_ROUTER_ASKING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "mcp/method.h"

/* What a server's request requires of the client. */
enum asking_need {
	ASKING_ROOTS = 1,
	ASKING_SAMPLING = 2,
	ASKING_SAMPLING_TOOLS = 4,
	ASKING_FORMS = 8,
	ASKING_URLS = 16,
};

/*
 * Whether a client with these capabilities (JSON text) can answer requests of this method at all.
 */
bool asking_is_declared(struct slice capabilities, const struct method *method);
/* Whether it can answer in the mode that these params ask for: by form or URL, with tools. */
bool asking_is_possible(struct slice capabilities, const struct method *method,
			struct slice params);
/*
 * What a request with this method and params needs: bits of enum asking_need; 0: nothing listed
 * here.
 */
unsigned int asking_needs(const struct method *method, struct slice params);
/* Appends these needs as an object of client capabilities: {"sampling":{"tools":{}}}. MOD-CAP-01 */
void asking_append_needs(struct buf *out, unsigned int needs);

/* Whether the client can be asked to open a URL. */
bool asking_can_open_urls(struct slice capabilities);

/* The method of one of the questions in `inputRequests`, which may be written with escapes. */
const struct method *asking_method(struct slice question);

#endif
