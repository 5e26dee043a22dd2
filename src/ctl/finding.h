/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says: one line for each thing that was looked at. Strangers' texts come out clean. */
#ifndef MCPGATED_CTL_FINDING_H
#define MCPGATED_CTL_FINDING_H

#include "base/buf.h"

/* `verdict` is ok, warn or FAIL, `what` a word for the thing. Frees the text. */
void finding_print(const char *verdict, const char *what, struct buf *text);

#endif
