/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that others write as well: read, and replaced as a whole only if they are still what was read. Whoever reads one sees the old
 * text or the new one.
 */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define EDIT_BYTES_MAX ((size_t)16 << 20)
#define EDIT_LEFT_LENGTH \
	strlen(".mcpgated-XXXXXX") /* behind the name of a file, when one is written beside it */

/* Zeroed before use. */
struct edit_file {
	char *path;      /* without links */
	struct buf text; /* may be secret */
	struct stat status;
};

/*
 * Follows links. Returns 0; 1: there is no such file; -1: it is not a plain file of this user with one name, without an access control list
 * and without rights of a group that he is not in, or cannot be read;
 * what can be read is in file_r->text all the same. In any case the caller calls edit_file_fini.
 */
int edit_file_read(const char *path, struct edit_file *file_r, struct error *err) must_check;
void edit_file_fini(struct edit_file *file);
/*
 * Puts a new file in its place, with its mode, and its group if that has rights. Returns 0; 1: it is not what was read any more, and is left as it is; -1: it
 * failed, and the file is as it was, or as err says.
 */
int edit_file_replace(const struct edit_file *file, struct slice text, struct error *err)
	must_check;
/*
 * Takes the lock that the file of this path stands for, which is made if need be, for as long as the program runs. If another program
 * has it, waits for at most wait_ms; then it is an error, and err names that program.
 */
int edit_file_lock(const char *path, int wait_ms, struct error *err) must_check;
/*
 * Makes a file that only this user may read, and the directories above it, for him alone. -1: there is one already, which stays, or it
 * failed; err names it.
 */
int edit_file_create(const char *path, struct slice text, struct error *err) must_check;
/* Gives a file another name in its directory. -1: there is a file of that name, or it failed. */
int edit_file_rename(const char *path, const char *to, struct error *err) must_check;

/*
 * Finds a file that this program has left beside the file, or beside any of the folder if path ends with /, when it was killed: its text
 * is that of the file, or was to be. Under the lock, since another one may be writing. The caller frees it; NULL: there is none.
 */
char *edit_file_find_left(const char *path);
