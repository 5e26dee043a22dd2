/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verdict.def, and filling a struct verdict. */
#include "auth/verdict.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	enum verdict_outcome outcome;
	const char *name;
	const char *description;
} verdicts[] = {
#define X(id, outcome, name, description) [VERDICT_##id] = { VERDICT_##outcome, name, description },
#include "auth/verdict.def"
#undef X
};

enum verdict_outcome verdict_outcome(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return verdicts[kind].outcome;
}

const char *verdict_name(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return verdicts[kind].name;
}

const char *verdict_description(enum verdict_kind kind)
{
	CHECK(kind < VERDICT_COUNT);
	return verdicts[kind].description;
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
