/* SPDX-License-Identifier: Apache-2.0 */
/* The table of reason.def. */
#include "obs/reason.h"

#include "base/check.h"

static const struct reason_row rows[] = {
#define X(id, log, status, code, reason, answer) \
	[REASON_##id] = { log, status, code, reason, answer },
#include "obs/reason.def"
};

const struct reason_row *reason_get(enum reason reason)
{
	CHECK(reason < REASON_COUNT);
	return &rows[reason];
}
