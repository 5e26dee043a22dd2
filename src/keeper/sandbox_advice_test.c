/* SPDX-License-Identifier: Apache-2.0 */
/* Which line is proposed for which refusal, and that nothing is proposed for what is allowed. */
#include "keeper/sandbox_advice.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "keeper/confine.h"

static char place[PATH_MAX];
static struct config_server server = { .sandbox = CONFIG_SANDBOX_LANDLOCK };

/* In both, %s is the place. NULL: nothing is proposed. */
static void expect(const char *line, const char *advice)
{
	struct buf out = { 0 };
	char *written = mem_alloc(4096);
	char *wanted = mem_alloc(4096);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(written, 4096, line, place, place);
	snprintf(wanted, 4096, advice != NULL ? advice : "", place);
#pragma GCC diagnostic pop
	assert_int_equal(sandbox_advise_line(&server, slice_str(written), &out), advice != NULL);
	assert_string_equal(buf_terminate(&out), wanted);
	buf_fini(&out);
	free(written);
	free(wanted);
}

static void what_may_not_be_read_is_named(void **state)
{
	static const char *const lines[] = {
		"cat: %s/file: Permission denied",
		"Error: EACCES: permission denied, open '%s/file'",
		"PermissionError: [Errno 13] Permission denied: '%s/file'",
		"open %s/file: permission denied",
		"java.io.FileNotFoundException: %s/file (Permission denied)",
		"cp: '/usr/bin/env', and \"%s/file\": Permission denied",
		"EACCES: %s/./sub/../file.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		expect(lines[i], "servers.s.sandbox.read: [\"%s/file\"]");
	expect("EACCES: '%s/a \"b\"'", "servers.s.sandbox.read: [\"%s/a \\\"b\\\"\"]");
	expect("EACCES: permission denied, scandir '%s'", "servers.s.sandbox.read: [\"%s\"]");
}

static void what_may_not_be_changed_is_named(void **state)
{
	struct slice read_list[1] = { slice_str(place) };

	expect("EACCES: permission denied, mkdir '%s/new/deeper'",
	       "servers.s.sandbox.write: [\"%s\"]");
	expect("/bin/sh: 1: cannot create %s/file: Permission denied",
	       "servers.s.sandbox.write: [\"%s/file\"]");
	/* Nobody reads what is not there. */
	expect("[Errno 13] Permission denied: '%s/new'", "servers.s.sandbox.write: [\"%s\"]");
	server.sandbox_read = (struct slices){ read_list, 1 };
	expect("[Errno 13] Permission denied: '%s/file'", "servers.s.sandbox.write: [\"%s/file\"]");
	server.sandbox_write = server.sandbox_read;
	expect("[Errno 13] Permission denied: '%s/file'", NULL);
	server.sandbox_read = server.sandbox_write = (struct slices){ NULL, 0 };
}

static void connections_are_named(void **state)
{
	static uint16_t listed[] = { 8080 };

	expect("connect EACCES 192.0.2.1:443 - Local (0.0.0.0:0)",
	       "servers.s.sandbox.connect: [443]");
	expect("connect EACCES ::1:5432", "servers.s.sandbox.connect: [5432]");
	expect("main.go:42: dial tcp [2001:db8::1]:80: connect: permission denied",
	       "servers.s.sandbox.connect: [80]");
	expect("12:30:45 connect localhost:8080: Permission denied",
	       "servers.s.sandbox.connect: [8080]");
	expect("Error: listen EACCES: permission denied 127.0.0.1:3000",
	       "servers.s.sandbox.bind: [3000]");
	expect("socket: Address family not supported by protocol",
	       "servers.s.sandbox.connect, with the port");
	server.sandbox_connect = (struct config_ports){ .items = listed, .count = 1 };
	expect("connect EACCES 192.0.2.1:443", "servers.s.sandbox.connect: [443]");
	expect("connect EACCES 192.0.2.1:8080", NULL);
	expect("connect EACCES 192.0.2.1:65535", "servers.s.sandbox.connect: [65535]");
	expect("socket: Address family not supported by protocol", NULL);
	server.sandbox_connect = (struct config_ports){ .count = 0 };
	server.sandbox_connect.is_any = server.sandbox_bind.is_any = true;
	expect("connect EACCES 192.0.2.1:443", NULL);
	expect("listen EACCES 192.0.2.1:443", NULL);
	expect("socket: Address family not supported by protocol", NULL);
	server.sandbox_connect.is_any = server.sandbox_bind.is_any = false;
}

static void sockets_are_named(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/socket", place);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	expect("connect EAFNOSUPPORT %s/socket", "servers.s.sandbox.unix_sockets: true");
	server.sandbox_unix = true;
	expect("connect EAFNOSUPPORT %s/socket", NULL);
	server.sandbox_unix = false;
	assert_int_equal(unlink(address.sun_path), 0);
}

static void nothing_is_made_up(void **state)
{
	static const char *const lines[] = {
		"",
		"Permission denied",
		"12:30:45 Permission denied",
		"opened %s/file",
		"EACCES",
		"EACCES http://a.example/b and c/d",
		"EACCES 192.0.2.1:0, 192.0.2.1:65536, 1.2.3:4, a.example:5",
		"EPERM //",
		"EPERM ''",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		expect(lines[i], NULL);
}

/* A server writes what it likes. */
static void long_lines_are_harmless(void **state)
{
	static const char *const begins[] = { "EACCES ", "EACCES '/", "EACCES '" };
	static const char *const pieces[] = { "f", "f/", "/" };
	static const char *const ends[] = { ":443", "'", "'" };

	for (size_t i = 0; i < 3; i++) {
		struct buf line = { 0 }, out = { 0 };

		buf_append_str(&line, begins[i]);
		for (size_t n = 0; n < 2 * (size_t)PATH_MAX; n++)
			buf_append_str(&line, pieces[i]);
		buf_append_str(&line, ends[i]);
		assert_false(sandbox_advise_line(&server, buf_slice(&line), &out));
		buf_fini(&line);
		buf_fini(&out);
	}
}

/* What the daemon's user may not look at is proposed as it is written. */
static void hidden_paths_are_named(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(seteuid(65534), 0);
	expect("EACCES: permission denied, open '%s/file'",
	       "servers.s.sandbox.read: [\"%s/file\"]");
	assert_int_equal(seteuid(0), 0);
}

static int make_place(void **state)
{
	char path[PATH_MAX + 16];

	strcpy(place, "/tmp/advice-XXXXXX");
	server.conf.name = mem_strdup("s");
	assert_non_null(mkdtemp(place));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), i == 0 ? "%s/file" : "%s/a \"b\"", place);
		fclose(fopen(path, "w"));
	}
	snprintf(path, sizeof(path), "%s/sub", place);
	return mkdir(path, 0700);
}

static int remove_place(void **state)
{
	char command[PATH_MAX + 16];

	free((void *)(uintptr_t)server.conf.name);
	snprintf(command, sizeof(command), "rm -r '%s'", place);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_not_be_read_is_named),
		cmocka_unit_test(what_may_not_be_changed_is_named),
		cmocka_unit_test(connections_are_named),
		cmocka_unit_test(sockets_are_named),
		cmocka_unit_test(nothing_is_made_up),
		cmocka_unit_test(long_lines_are_harmless),
		cmocka_unit_test(hidden_paths_are_named),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_place, remove_place);
}
