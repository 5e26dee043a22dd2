/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in columns; each is out before the next thing is looked at, for that may take a while. */
#include "ctl/finding.h"

#include <stdio.h>

#include "ctl/escape.h"

void finding_print_line(const char *before, struct slice text)
{
	struct buf clean = { 0 };

	escape_append(&clean, text, "");
	printf("%s%s\n", before, buf_terminate(&clean));
	buf_fini(&clean);
}

void finding_print(const char *verdict, const char *what, struct buf *text)
{
	struct buf before = { 0 };

	buf_printf(&before, "  %-5s %-9s ", verdict, what);
	finding_print_line(buf_terminate(&before), buf_slice(text));
	buf_fini(&before);
	buf_fini(text);
	fflush(stdout);
}
