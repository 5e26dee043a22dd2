/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets are read while the configuration is loaded, and never named in a message. */
#include "config/secret.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "config/listed_path.h"

struct kind {
	const char *name;
	int (*read)(const char *name, const struct listed_writers *writers, char **value_r,
		    struct error *err);
};

static int read_file(const char *path, const struct listed_writers *writers, char **value_r,
		     struct error *err)
{
	struct buf content = { 0 };
	struct error why;
	int result = 0;

	if (file_read(path, writers, SECRET_BYTES_MAX, &content, NULL, &why) != 0)
		return error_set(err, why.kind, "the file %.100s %.120s", path, why.text);
	/* The line break at the end is not part of it; that of Windows has two bytes. */
	if (content.len > 0 && content.data[content.len - 1] == '\n') {
		content.len--;
		if (content.len > 0 && content.data[content.len - 1] == '\r')
			content.len--;
	}
	if (memchr(content.data, '\0', content.len) != NULL)
		result = error_set(err, ERROR_INVALID, "the file %.100s holds a NUL byte", path);
	else
		*value_r = mem_dup_slice(buf_slice(&content));
	buf_wipe(&content);
	return result;
}

static int read_env(const char *name, const struct listed_writers *writers, char **value_r,
		    struct error *err)
{
	const char *value = getenv(name);

	(void)writers;
	if (value == NULL)
		return error_set(err, ERROR_INVALID,
				 "the variable %.100s is not set in the daemon's environment",
				 name);
	*value_r = mem_strdup(value);
	return 0;
}

/* NULL: systemd has given us none. */
static char *credential_path(const char *name)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");

	return directory != NULL ? mem_printf("%s/%s", directory, name) : NULL;
}

static int read_credential(const char *name, const struct listed_writers *writers, char **value_r,
			   struct error *err)
{
	char *path;
	int result;

	if (strchr(name, '/') != NULL || name[0] == '.')
		return error_set(err, ERROR_INVALID,
				 "the name of a credential must not contain '/' or begin with '.'");
	path = credential_path(name);
	if (path == NULL)
		return error_set(err, ERROR_INVALID,
				 "there are no credentials: the daemon was not started by systemd "
				 "with LoadCredential=%.100s:…",
				 name);
	result = read_file(path, writers, value_r, err);
	free(path);
	return result;
}

static const struct kind kinds[] = {
	{ "file", read_file },
	{ "env", read_env },
	{ "credential", read_credential },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

bool secret_is_kind(const char *kind)
{
	return find_kind(kind) != NULL;
}

int secret_resolve(const char *kind, const char *name, const struct listed_writers *writers,
		   char **value_r, struct error *err)
{
	const struct kind *found = find_kind(kind);

	CHECK(found != NULL);
	return found->read(name, writers, value_r, err);
}

char *secret_find_file(const char *kind, const char *name)
{
	char *path = strcmp(kind, "file") == 0       ? mem_strdup(name) :
		     strcmp(kind, "credential") == 0 ? credential_path(name) :
						       NULL;
	struct stat status;

	CHECK(secret_is_kind(kind));
	if (path != NULL && (stat(path, &status) < 0 || !S_ISREG(status.st_mode))) {
		free(path);
		path = NULL;
	}
	return path;
}

bool secret_is_open(const char *kind, const char *name)
{
	struct stat status;

	CHECK(secret_is_kind(kind));
	return strcmp(kind, "file") == 0 && stat(name, &status) == 0 && S_ISREG(status.st_mode) &&
	       (status.st_mode & S_IROTH) != 0;
}

bool secret_is_name(const char *variable)
{
	static const char *const endings[] = { "TOKEN", "KEY", "SECRET", "PASSWORD" };
	size_t length = strlen(variable);

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t ending = strlen(endings[i]);

		if (length >= ending && strcasecmp(variable + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

void secret_free(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}
