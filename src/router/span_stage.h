/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: what a collector gets of spans. Apart, as its JSON has other names for what ours has. There is only one. */
#pragma once

#include <stddef.h>

struct exporter;
struct loop;

/* An exporter of all spans, each of which waits for so many ms. */
struct exporter *span_stage_open(struct loop *loop, unsigned int interval_ms);
/* Also frees the exporter. */
void span_stage_close(struct exporter **exporter);
/* Takes what has arrived, which must be some, in place of what was taken before; returns how many spans that is. */
size_t span_stage_take(void);
/* An attribute of the span with this number; NULL: it has none of this name. Borrowed until the next take. */
const char *span_stage_attribute(size_t number, const char *name);
