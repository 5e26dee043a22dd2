/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins as text, for storage. Others may have written the text: it is parsed like any untrusted
 * input. SEC-68
 *
 * 	SERVER known tool
 * 	SERVER tool changed NAME DIGEST TEXT DIGEST TEXT
 *
 * Fields are separated by tabs. NAME and digests are hexadecimal. The first definition is the
 * approved one, the second the pending one; if one does not exist or its text is not kept, its
 * field is empty.
 */
#ifndef MCPGATED_POLICY_PIN_RECORD_H
#define MCPGATED_POLICY_PIN_RECORD_H

#include "base/buf.h"
#include "policy/pins.h"

/* Appends the lines of a server. */
void pin_record_write(const struct pins *pins, const char *server, bool with_texts,
		      struct buf *out);
/*
 * Reads such a line, without the name of its server and the first tab. Returns 0, or -1 if it is
 * invalid or there is no room.
 */
int pin_record_read(struct pins *pins, struct slice line) must_check;

#endif
