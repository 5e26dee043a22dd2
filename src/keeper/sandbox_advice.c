/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of refusals, as the C library, shells, Node.js, Python and Go write them: the last path or address counts. */
#include "keeper/sandbox_advice.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "keeper/confine.h"
#include "keeper/sandbox.h"

#define TO_READ (LANDLOCK_FS_READ_FILE | LANDLOCK_FS_READ_DIR | LANDLOCK_FS_EXECUTE)
#define TO_CREATE ((uint64_t)(LANDLOCK_FS_MAKE_REG | LANDLOCK_FS_WRITE_FILE))
#define PATH_ENDS " \t'\"`:;,()[]<>"

/* ---- paths and ports ---- */

/*
 * Resolves it into real_r. If it is not there, the nearest directory above it that is; false: nothing can be said.
 */
static bool resolve(const char *path, char real_r[PATH_MAX], bool *is_there_r)
{
	char above[PATH_MAX];
	char *end;

	*is_there_r = realpath(path, real_r) != NULL;
	if (*is_there_r)
		return true;
	if (strlen(path) >= sizeof(above))
		return false;
	/* Only the server's user may look: it is as it is written. */
	*is_there_r = errno == EACCES;
	if (*is_there_r)
		strcpy(real_r, path);
	if (errno != ENOENT)
		return *is_there_r;
	strcpy(above, path);
	while ((end = strrchr(above, '/')) != NULL) {
		end[end == above] = '\0';
		if (realpath(above, real_r) != NULL)
			return true;
		if (end == above)
			break;
	}
	return false;
}

static bool put_path(const struct config_server *server, const char *key, const char *path,
		     struct buf *out)
{
	json_auto_t *value = json_string(path);
	at_end(mem_free) char *text = json_dumps(value, JSON_ENCODE_ANY);

	if (text != NULL)
		buf_printf(out, "servers.%s.sandbox.%s: [%s]", server->conf.name, key, text);
	return value != NULL;
}

bool sandbox_advise_path(const struct config_server *server, const char *path, uint64_t wanted,
			 struct buf *out)
{
	char real[PATH_MAX];
	bool is_there;

	CHECK(path[0] == '/');
	if (!resolve(path, real, &is_there))
		return false;
	if (!is_there)
		wanted = TO_CREATE;
	if ((wanted & ~sandbox_rights(server, real)) == 0)
		return false;
	return put_path(server, (wanted & ~(uint64_t)TO_READ) != 0 ? "write" : "read", real, out);
}

static bool is_listed(const struct config_ports *ports, uint64_t port)
{
	bool is_found = ports->is_any;

	for (size_t i = 0; i < ports->count; i++)
		is_found = is_found || ports->items[i] == port;
	return is_found;
}

bool sandbox_advise_port(const struct config_server *server, uint64_t port, bool listens,
			 struct buf *out)
{
	CHECK(port > 0 && port <= UINT16_MAX);
	if (is_listed(listens ? &server->sandbox_bind : &server->sandbox_connect, port))
		return false;
	buf_printf(out, "servers.%s.sandbox.%s: [%u]", server->conf.name,
		   listens ? "bind" : "connect", (unsigned int)port);
	return true;
}

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

bool sandbox_advise_socket(const struct config_server *server, const char *path, struct buf *out)
{
	if (server->sandbox_unix || !is_socket(path))
		return false;
	buf_printf(out, "servers.%s.sandbox.unix_sockets: true", server->conf.name);
	return true;
}

/* ---- lines ---- */

static const char *const of_files[] = { "EACCES", "EPERM", "permission denied",
					"operation not permitted", NULL };
static const char *const of_sockets[] = { "EAFNOSUPPORT", "EPROTONOSUPPORT",
					  "not supported by protocol", "protocol not supported",
					  NULL };
static const char *const of_changes[] = { "mkdir", "creat",  "writ",    "unlink",  "rename",
					  "remov", "delet",  "rmdir",   "symlink", "touch",
					  "chmod", "append", "truncat", "utime",   NULL };
static const char *const of_listening[] = { "listen", "bind", NULL };

static bool has_word(const char *text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcasestr(text, *words) != NULL)
			return true;
	return false;
}

/* The last absolute path; it is cut out of the line, which ends before it. NULL: there is none. */
static const char *cut_path(char *line)
{
	for (size_t i = strlen(line); i-- > 0;) {
		char before = i > 0 ? line[i - 1] : ' ';
		bool is_quoted = before == '\'' || before == '"' || before == '`';
		const char quote[] = { before, '\0' };
		size_t length;

		if (line[i] != '/' || line[i + 1] == '/' || strchr(PATH_ENDS "=", before) == NULL)
			continue;
		length = strcspn(line + i, is_quoted ? quote : PATH_ENDS);
		while (!is_quoted && length > 1 && line[i + length - 1] == '.')
			length--;
		line[i + length] = '\0';
		/* What stands before the path is left as a text of its own. */
		if (i > 0)
			line[i - 1] = '\0';
		return line + i;
	}
	return NULL;
}

static bool is_address(const char *begin, const char *end)
{
	char text[INET6_ADDRSTRLEN + 1];
	unsigned char address[16];
	size_t length = (size_t)(end - begin);

	if (begin[0] == '[' && end[-1] == ']') {
		begin++;
		length -= 2;
	}
	if (length >= sizeof(text))
		return false;
	memcpy(text, begin, length);
	text[length] = '\0';
	return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1 ||
	       strcmp(text, "localhost") == 0;
}

/* The port of the last address; 0: there is none. */
static uint64_t find_port(const char *line)
{
	for (size_t i = strlen(line); i-- > 0;) {
		size_t digits = strspn(line + i + 1, "0123456789");
		size_t begin = i;
		uint64_t port;

		while (begin > 0 && (isalnum((unsigned char)line[begin - 1]) ||
				     strchr(".:[]", line[begin - 1]) != NULL))
			begin--;
		if (line[i] == ':' && is_address(line + begin, line + i) &&
		    text_parse_u64(slice_of(line + i + 1, digits), &port) == 0 && port > 0 &&
		    port <= UINT16_MAX)
			return port;
	}
	return 0;
}

static bool advise_named(const struct config_server *server, const char *path, const char *before,
			 struct buf *out)
{
	if (is_socket(path))
		return sandbox_advise_socket(server, path, out);
	/* What may be read already was to be changed. */
	return (!has_word(before, of_changes) &&
		sandbox_advise_path(server, path, LANDLOCK_FS_READ_FILE, out)) ||
	       sandbox_advise_path(server, path, LANDLOCK_FS_WRITE_FILE, out);
}

static bool advise_text(const struct config_server *server, char *text, bool names_socket,
			struct buf *out)
{
	uint64_t port = find_port(text);
	const char *path;

	CHECK(server->sandbox != CONFIG_SANDBOX_OFF);
	if (port != 0)
		return sandbox_advise_port(server, port, has_word(text, of_listening), out);
	path = cut_path(text);
	if (path != NULL)
		return advise_named(server, path, text, out);
	if (!names_socket || server->sandbox_connect.is_any || server->sandbox_connect.count > 0)
		return false;
	buf_printf(out, "servers.%s.sandbox.connect, with the port", server->conf.name);
	return true;
}

bool sandbox_advise_line(const struct config_server *server, struct slice line, struct buf *out)
{
	at_end(mem_free) char *text = mem_dup_slice(line);
	bool names_socket = has_word(text, of_sockets);

	return (names_socket || has_word(text, of_files)) &&
	       advise_text(server, text, names_socket, out);
}
