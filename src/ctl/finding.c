/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in columns; each is out before the next thing is looked at, for that may take a while. */
#include "ctl/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/escape.h"

static void printf_like(3, 0)
	print(const char *verdict, const char *what, const char *format, va_list args)
{
	char before[24];
	char *text;

	CHECK(strlen(verdict) < 6 && strlen(what) < 10); /* they stay in their columns */
	CHECK(vasprintf(&text, format, args) > 0);
	snprintf(before, sizeof(before), "  %-5s %-9s ", verdict, what);
	escape_print(stdout, before, slice_str(text), "");
	free(text);
	fflush(stdout);
}

void finding_print(const char *verdict, const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(verdict, what, format, args);
	va_end(args);
}

void finding_fail(const char **ill, const char *what, const char *format, ...)
{
	va_list args;

	if (*ill == NULL)
		*ill = what;
	va_start(args, format);
	print("FAIL", what, format, args);
	va_end(args);
}
