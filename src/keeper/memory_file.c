/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_create(2) and its seals. */
#include "keeper/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"

static int write_all(int fd, struct slice content)
{
	while (content.n > 0) {
		ssize_t n = write(fd, content.p, content.n);

		if (n <= 0)
			return -1;
		content = slice_of(content.p + n, content.n - (size_t)n);
	}
	return 0;
}

/* Takes fd: closes it on failure. */
static int finish(int fd, const char *name, int result, int seals, struct error *err)
{
	if (result == 0 && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) == 0)
		return fd;
	error_set_errno(err, "cannot make the memory file %s", name);
	if (fd >= 0)
		close(fd);
	return -1;
}

int memory_file_sealed(const char *name, struct slice content, struct error *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return finish(fd, name, fd >= 0 ? write_all(fd, content) : -1,
		      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, err);
}

int memory_file_printed(const char *name, void (*print)(const struct config *config, FILE *out),
			const struct config *config, struct error *err)
{
	char *text = NULL;
	size_t size;
	FILE *out = mem_open_text(&text, &size);
	int fd;

	print(config, out);
	mem_close_text(out); /* a part of it would be another configuration */
	fd = memory_file_sealed(name, slice_of(text, size), err);
	explicit_bzero(text, size);
	free(text);
	return fd;
}

int memory_file_random(const char *name, size_t size, struct error *err)
{
	char bytes[MEMORY_FILE_RANDOM_MAX];
	int fd;

	CHECK(size <= sizeof(bytes));
	random_bytes(bytes, size);
	fd = memory_file_sealed(name, slice_of(bytes, size), err);
	explicit_bzero(bytes, sizeof(bytes));
	return fd;
}

int memory_file_shared(const char *name, size_t size, struct error *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return finish(fd, name, fd >= 0 ? ftruncate(fd, (off_t)size) : -1,
		      F_SEAL_SHRINK | F_SEAL_GROW, err);
}
