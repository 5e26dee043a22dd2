/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text: they can be read with a debugger, and by programs of other versions. */
#include "keeper/handover.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int handover_give(struct handover *handover, int fd)
{
	CHECK(fd >= 0);
	handover->fds =
		mem_resize(handover->fds, (handover->fd_count + 1) * sizeof(*handover->fds));
	handover->fds[handover->fd_count++] = fd;
	return fd;
}

void handover_write(struct handover *handover, const char *format, ...)
{
	at_end(mem_free) char *line = NULL;
	va_list args;
	int n;

	CHECK(format[0] != ' ' && strchr(format, ' ') != NULL);
	va_start(args, format);
	n = vasprintf(&line, format, args);
	va_end(args);
	CHECK(n >= 0);
	buf_append(&handover->text, line, (size_t)n + 1);
}

const char *handover_next(const struct handover *handover, const char *word, size_t *at)
{
	const char *text = handover->text.data;
	size_t n = strlen(word);

	CHECK(n > 0 && *at <= handover->text.len);
	while (*at < handover->text.len) {
		const char *line = text + *at;

		*at += strlen(line) + 1;
		if (strncmp(line, word, n) == 0 && line[n] == ' ')
			return line + n + 1;
	}
	return NULL;
}

int handover_take(struct handover *handover, int fd)
{
	for (size_t i = 0; fd >= 0 && i < handover->fd_count; i++) {
		if (handover->fds[i] != fd)
			continue;
		handover->fds[i] = -1;
		return fd;
	}
	return -1;
}

int handover_take_named(struct handover *handover, const char *word, const char *name)
{
	const char *line;
	size_t at = 0;
	int fd, n;

	while ((line = handover_next(handover, word, &at)) != NULL)
		if (sscanf(line, "%d %n", &fd, &n) == 1 && strcmp(line + n, name) == 0 &&
		    handover_take(handover, fd) >= 0)
			return fd;
	return -1;
}

int handover_take_memory(struct handover *handover, const char *name, size_t size,
			 struct error *err)
{
	const char *line;
	struct stat status;
	size_t at = 0;
	char found[32];
	int fd;

	while ((line = handover_next(handover, "memory", &at)) != NULL) {
		if (sscanf(line, "%d %31s", &fd, found) != 2 || strcmp(found, name) != 0)
			continue;
		if (fstat(fd, &status) == 0 && (size_t)status.st_size == size &&
		    handover_take(handover, fd) >= 0)
			return fd;
		return error_set(err, ERROR_INVALID,
				 "the program before has left another kind of memory for %s", name);
	}
	return 0;
}

void handover_copy(struct handover *handover, const struct handover *from, const char *word)
{
	const char *line;
	size_t at = 0;
	int fd;

	while ((line = handover_next(from, word, &at)) != NULL) {
		handover_write(handover, "%s %s", word, line);
		if (sscanf(line, "%d", &fd) == 1)
			handover_give(handover, fd);
	}
}

void handover_fini(struct handover *handover)
{
	for (size_t i = 0; i < handover->fd_count; i++)
		if (handover->fds[i] >= 0)
			close(handover->fds[i]);
	free(handover->fds);
	buf_fini(&handover->text);
	*handover = (struct handover){ .fds = NULL };
}
