/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the directory ---- */

/*
 * What the environment names may be a link: it is the operator's word, and systemd makes one for DynamicUser. Below that
 * none is followed, and each directory on the way is this user's alone to write: nobody can put another in its place.
 */

static int open_own(int at, const char *path, int flags, struct error *err)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat status;

	if (fd < 0)
		return error_set_errno(err, "the directory %.120s cannot be opened", path);
	if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return fd;
	close(fd);
	return error_set(
		err, ERROR_INVALID,
		"the directory %.120s must belong to this user, and only this user may write to it",
		path);
}

/* Takes fd, which may be -1. */
static int go_down(int fd, const char *name, bool makes_it, struct error *err)
{
	int below;

	if (fd < 0)
		return -1;
	if (makes_it && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
		below = error_set_errno(err, "the directory %.120s cannot be created", name);
	else
		below = open_own(fd, name, O_NOFOLLOW, err);
	close(fd);
	return below;
}

static const char *absolute(const char *variable)
{
	const char *path = getenv(variable);

	return path != NULL && path[0] == '/' ? path : NULL;
}

/* There may be several of them, with colons. */
static int open_of_service(const char *paths, struct error *err)
{
	size_t length = strcspn(paths, ":");
	char first[PATH_MAX];

	if (length >= sizeof(first))
		return error_set(err, ERROR_INVALID, "STATE_DIRECTORY is too long");
	memcpy(first, paths, length);
	first[length] = '\0';
	return open_own(AT_FDCWD, first, 0, err);
}

int state_directory_open(bool makes_it, struct error *err)
{
	const char *path = absolute("STATE_DIRECTORY");
	int fd;

	if (path != NULL)
		return open_of_service(path, err);
	path = absolute("XDG_STATE_HOME");
	if (path != NULL)
		return go_down(open_own(AT_FDCWD, path, 0, err), "mcpgated", makes_it, err);
	path = absolute("HOME");
	if (path == NULL)
		return error_set(err, ERROR_INVALID, "neither STATE_DIRECTORY nor HOME is set");
	fd = open_own(AT_FDCWD, path, 0, err);
	fd = go_down(fd, ".local", makes_it, err);
	fd = go_down(fd, "state", makes_it, err);
	return go_down(fd, "mcpgated", makes_it, err);
}

/* ---- the files ---- */

/* EVP would read a configuration and make its tables first, which takes longer than the rest of the keeper's start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/text.h"

#define NAME_BYTES 32
#define STEP_BYTES ((size_t)64 * 1024)
#define DIGEST_CHARS ((size_t)(2 * SHA256_DIGEST_LENGTH))
#define SEAL_BYTES (1 + DIGEST_CHARS) /* behind the first line: a space and the digest */

/* ---- the digest ---- */

static struct slice first_line_of(struct slice text)
{
	const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;

	return end != NULL ? slice_between(text.p, end) : text;
}

/* Of the text that consists of these two. */
static void make_seal(struct slice line, struct slice rest, char seal_r[SEAL_BYTES + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256_CTX context;

	CHECK(SHA256_Init(&context) == 1 && SHA256_Update(&context, line.p, line.n) == 1 &&
	      SHA256_Update(&context, rest.p, rest.n) == 1 && SHA256_Final(digest, &context) == 1);
	seal_r[0] = ' ';
	text_to_hex(digest, sizeof(digest), seal_r + 1);
}

/* Appends the text that the file holds, if it is whole. */
static int unseal(struct slice file, struct slice old_first_line, struct buf *text,
		  struct error *err)
{
	struct slice line = first_line_of(file);
	struct slice rest = slice_between(line.p + line.n, file.p + file.n);
	char seal[SEAL_BYTES + 1];

	if (file.n == 0)
		return error_set(err, ERROR_INVALID, "it is empty");
	if (slice_is_equal(line, old_first_line) && file.p[file.n - 1] == '\n') {
		buf_append_slice(text, file); /* of an earlier release */
		return 0;
	}
	if (line.n < SEAL_BYTES)
		return error_set(err, ERROR_INVALID, "it is not a file of this daemon");
	line.n -= SEAL_BYTES;
	make_seal(line, rest, seal);
	if (memcmp(line.p + line.n, seal, SEAL_BYTES) != 0)
		return error_set(err, ERROR_INVALID, "it is not what was written, or a part of it");
	buf_append_slice(text, line);
	buf_append_slice(text, rest);
	return 0;
}

/* ---- the file ---- */

static int read_file(int fd, size_t most, struct buf *text, struct error *err)
{
	struct stat status;
	ssize_t n = 1;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERROR_INVALID,
				 "it is not a regular file that only this user may write to");
	while (n > 0 && text->len <= most) {
		size_t left = most + 1 - text->len;
		size_t step = left < STEP_BYTES ? left : STEP_BYTES;

		n = read(fd, buf_reserve(text, step), step);
		if (n > 0)
			text->len += (size_t)n;
	}
	if (n < 0)
		return error_set_errno(err, "it cannot be read");
	return text->len <= most ? 0 : error_set(err, ERROR_LIMIT, "it is too long");
}

/* Beside, not away: the file is there until another takes its name, and then only this one is. */
static void set_aside(int directory, const char *name)
{
	char other[NAME_BYTES];

	CHECK((size_t)snprintf(other, sizeof(other), "%s.bad", name) < sizeof(other));
	unlinkat(directory, other, 0);
	if (linkat(directory, name, directory, other, 0) < 0)
		return; /* not in every file system; what was wrong with it is logged all the same */
}

void state_file_set_aside(const char *name)
{
	struct error err;
	int directory = state_directory_open(false, &err);

	if (directory < 0)
		return;
	set_aside(directory, name);
	close(directory);
}

static int read_in(int directory, const char *name, size_t most, struct buf *text,
		   struct error *err)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int result;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_set_errno(err, "it cannot be opened");
	result = read_file(fd, most, text, err);
	close(fd);
	return result == 0 ? 1 : -1;
}

int state_file_read(const char *name, struct slice first_line, size_t most, struct buf *text,
		    struct error *err)
{
	struct error none;
	int directory = state_directory_open(false, &none);
	size_t before = text->len;
	struct buf file = { 0 };
	int result;

	if (directory < 0)
		return 0;
	result = read_in(directory, name, most + SEAL_BYTES, &file, err);
	if (result == 1 && unseal(buf_slice(&file), first_line, text, err) < 0)
		result = -1;
	if (result == 1 && text->len > most) /* without a digest */
		result = error_set(err, ERROR_LIMIT, "it is too long");
	if (result < 0)
		text->len = before;
	if (result < 0)
		set_aside(directory, name);
	buf_fini(&file);
	close(directory);
	return result;
}

static int write_all(int fd, struct slice text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n <= 0)
			return -1;
		text = slice_of(text.p + n, text.n - (size_t)n);
	}
	return 0;
}

/* With the digest behind its first line. */
static int write_sealed(int fd, struct slice text)
{
	struct slice line = first_line_of(text);
	struct slice rest = slice_between(line.p + line.n, text.p + text.n);
	char seal[SEAL_BYTES + 1];

	make_seal(line, rest, seal);
	if (write_all(fd, line) < 0 || write_all(fd, slice_of(seal, SEAL_BYTES)) < 0 ||
	    write_all(fd, rest) < 0)
		return -1;
	return fsync(fd);
}

int state_file_write(int directory, const char *name, struct slice text, struct error *err)
{
	char other[NAME_BYTES];
	int result = -1;
	int fd;

	CHECK((size_t)snprintf(other, sizeof(other), "%s.new", name) < sizeof(other));
	unlinkat(directory, other, 0); /* of a daemon that was killed meanwhile */
	fd = openat(directory, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		result = write_sealed(fd, text);
		close(fd);
	}
	if (result == 0 && renameat(directory, other, directory, name) == 0) {
		(void)!fsync(directory); /* until then, the file before has the name */
		return 0;
	}
	error_set_errno(err, "the file %s cannot be written", name);
	if (fd >= 0)
		unlinkat(directory, other, 0);
	return -1;
}
