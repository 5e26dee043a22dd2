/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins as text, to be remembered. Others may have written it: it is read like any input. SEC-68
 *
 *	SERVER known tool
 *	SERVER tool changed NAME DIGEST TEXT DIGEST TEXT
 *
 * With tabs between. NAME and digests are in hexadecimal digits; the first definition is the approved one, the second the one
 * that waits; where there is none, or its text is not kept, nothing stands between the tabs.
 */
#ifndef MCPGATED_POLICY_PIN_RECORD_H
#define MCPGATED_POLICY_PIN_RECORD_H

#include "base/buf.h"
#include "policy/pins.h"

/* Appends the lines of a server. */
void pin_record_write(const struct pins *pins, const char *server, bool with_texts,
		      struct buf *out);
/* Takes one of them, behind the name of its server and the tab. -1: it is none, or there is no room for it. */
int pin_record_read(struct pins *pins, struct slice line) must_check;

#endif
