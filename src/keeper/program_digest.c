/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are looked at, not read: number, size and dates. Of the device there is no word: its number may be another one
 * after each boot. That a file is the same one too rarely costs a question, too often at most a day in the wrong era.
 */
#include "keeper/program_digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* EVP would read a configuration and make its tables first, which takes longer than the rest of the keeper's start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/buf.h"
#include "keeper/launch.h"

static void append_text(struct buf *out, struct slice text)
{
	buf_append_u64(out, text.n);
	buf_append_char(out, ':');
	buf_append_slice(out, text);
}

static void append_date(struct buf *out, const struct timespec *date)
{
	buf_printf(out, " %lld.%09ld", (long long)date->tv_sec, date->tv_nsec);
}

/* Whether it is a plain file, as the process of the server would find it. */
static bool append_file(struct buf *out, int cwd, const char *path)
{
	struct stat status;

	if (fstatat(cwd, path, &status, 0) < 0 || !S_ISREG(status.st_mode))
		return false;
	buf_printf(out, "file %llu %lld", (unsigned long long)status.st_ino,
		   (long long)status.st_size);
	append_date(out, &status.st_mtim);
	append_date(out, &status.st_ctim);
	return true;
}

static void append_files(struct buf *out, const struct launch_spec *spec, int cwd)
{
	for (char **path = spec->candidates; *path != NULL; path++)
		if (append_file(out, cwd, *path))
			break;
	for (size_t i = 0; i < spec->server->args.count; i++)
		(void)append_file(out, cwd, spec->server->args.items[i].p);
}

void program_digest_make(const struct launch_spec *spec, struct program_digest *digest_r)
{
	const struct config_server *server = spec->server;
	int cwd = AT_FDCWD;
	SHA256_CTX context;
	struct buf text = { 0 };

	_Static_assert(sizeof(digest_r->bytes) == SHA256_DIGEST_LENGTH, "it is SHA-256");
	append_text(&text, slice_str(server->conf.name));
	append_text(&text, slice_str(server->command));
	for (size_t i = 0; i < server->args.count; i++)
		append_text(&text, server->args.items[i]);
	if (server->cwd != NULL)
		cwd = open(server->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cwd >= 0 || cwd == AT_FDCWD)
		append_files(&text, spec, cwd);
	if (cwd >= 0)
		close(cwd);
	CHECK(SHA256_Init(&context) == 1 && SHA256_Update(&context, text.data, text.len) == 1 &&
	      SHA256_Final(digest_r->bytes, &context) == 1);
	buf_wipe(&text); /* arguments may hold secrets */
}
