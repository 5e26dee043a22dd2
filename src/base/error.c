/* SPDX-License-Identifier: Apache-2.0 */
/* Fills struct error; texts that are too long are truncated. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
	va_list args;

	CHECK(kind != ERROR_NONE);
	if (err == NULL)
		return -1;
	err->kind = kind;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int error_set_errno(struct error *err, const char *format, ...)
{
	int number = errno;
	va_list args;
	size_t length;

	if (err == NULL)
		return -1;
	err->kind = ERROR_SYSTEM;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	length = strlen(err->text);
	snprintf(err->text + length, sizeof(err->text) - length, ": %s", strerror(number));
	return -1;
}
