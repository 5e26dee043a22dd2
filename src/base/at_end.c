/* SPDX-License-Identifier: Apache-2.0 */
/* Ends what at_end.h is most used for. */
#include "base/at_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mem_free(void *at)
{
	void *pointer;

	memcpy(&pointer, at, sizeof(pointer)); /* of whatever type it is */
	free(pointer);
}

void file_close(int *fd)
{
	int why = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = why;
}
