/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verdict.def, and filling a struct verdict. */
#include "auth/verdict.h"

#include <stdarg.h>
#include <stdio.h>

static const struct verdict_row verdicts[] = {
#define X(id, outcome, name, description) [VERDICT_##id] = { VERDICT_##outcome, name, description },
#include "auth/verdict.def"
#undef X
};

static uint64_t counts[VERDICT_COUNT];

const struct verdict_row *verdict_get(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return &verdicts[kind];
}

void verdict_count(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	counts[kind]++;
}

uint64_t verdict_counted(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return counts[kind];
}

int verdict_set(struct verdict *verdict_r, enum verdict_kind kind, const char *format, ...)
{
	va_list args;

	CHECK(kind != VERDICT_OK && kind < VERDICT_COUNT);
	verdict_r->kind = kind;
	va_start(args, format);
	vsnprintf(verdict_r->cause, sizeof(verdict_r->cause), format, args);
	va_end(args);
	return -1;
}
