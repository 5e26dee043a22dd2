/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in columns; each is out before the next thing is looked at, for that may take a while. */
#include "ctl/finding.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#include "ctl/escape.h"

void finding_print(const char *verdict, const char *what, struct buf *text)
{
	struct buf before = { 0 };

	CHECK(strlen(verdict) < 6 && strlen(what) < 10); /* they stay in their columns */
	buf_printf(&before, "  %-5s %-9s ", verdict, what);
	escape_print(stdout, buf_terminate(&before), buf_slice(text), "");
	buf_fini(&before);
	buf_fini(text);
	fflush(stdout);
}
