/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may be asked: what it declared at the beginning, in the way that it declared. UTIL-ROOT-01, -02. */
#ifndef MCPGATED_ROUTER_ASKING_H
#define MCPGATED_ROUTER_ASKING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "mcp/method.h"

/* What requests of servers need of a client. */
enum asking_need {
	ASKING_ROOTS = 1,
	ASKING_SAMPLING = 2,
	ASKING_SAMPLING_TOOLS = 4,
	ASKING_FORMS = 8,
	ASKING_URLS = 16,
};

/* `capabilities` are those of the client, JSON text. Whether it can answer requests of this method at all. */
bool asking_is_declared(struct slice capabilities, const struct method *method);
/* Whether it can answer in the way that these params want: by form or URL, with tools. */
bool asking_is_possible(struct slice capabilities, const struct method *method,
			struct slice params);
/* What a request of this method with these params needs: bits of enum asking_need; 0: nothing that has a name here. */
unsigned int asking_needs(const struct method *method, struct slice params);
/* Appends such needs as an object of client capabilities: {"sampling":{"tools":{}}}. MOD-CAP-01 */
void asking_append_needs(struct buf *out, unsigned int needs);

/* Whether it can be asked to open a URL. */
bool asking_can_open_urls(struct slice capabilities);

#endif
