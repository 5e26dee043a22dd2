/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a listen address, and which of them only this machine can reach. DEF-01, DEF-02. */
#include "config/forms.h"

#include <netinet/in.h>
#include <sys/un.h>

#include "base/unit_test.h"

static void assert_form(const char *text, enum address_kind kind, bool is_local)
{
	struct address address;
	struct error err = { .text = "" };

	assert_int_equal(address_parse(text, &address, &err), 0);
	assert_int_equal(address.kind, kind);
	assert_int_equal(address.is_local, is_local);
}

static void assert_refused(const char *text, const char *part)
{
	struct address address;
	struct error err = { .text = "" };

	assert_int_equal(address_parse(text, &address, &err), -1);
	assert_non_null(strstr(err.text, part));
}

static void test_forms_and_reach(void **state)
{
	assert_form("127.0.0.1:8808", ADDRESS_TCP, true);
	assert_form("127.5.6.7:0", ADDRESS_TCP, true);
	assert_form("localhost:65535", ADDRESS_TCP, true);
	assert_form("[::1]:80", ADDRESS_TCP, true);
	assert_form("[::ffff:127.0.0.1]:80", ADDRESS_TCP, true);
	assert_form("unix:/run/x.sock", ADDRESS_UNIX, true);
	assert_form("0.0.0.0:80", ADDRESS_TCP, false);
	assert_form("[::]:80", ADDRESS_TCP, false);
	assert_form("[::ffff:10.0.0.1]:80", ADDRESS_TCP, false);
	assert_form("192.168.1.1:80", ADDRESS_TCP, false);
	assert_form("systemd:http", ADDRESS_SYSTEMD, false);
}

static void test_sockets_are_ready_to_bind(void **state)
{
	struct address address;
	struct error err;

	assert_int_equal(address_parse("localhost:258", &address, &err), 0);
	assert_int_equal(address.socket_size, sizeof(struct sockaddr_in));
	assert_memory_equal(&((struct sockaddr_in *)&address.socket)->sin_port, "\1\2", 2);
	assert_memory_equal(&((struct sockaddr_in *)&address.socket)->sin_addr, "\x7f\0\0\1", 4);
	assert_int_equal(address_parse("[2001:db8::1]:1", &address, &err), 0);
	assert_int_equal(address.socket.ss_family, AF_INET6);
	assert_int_equal(address_parse("unix:a/b", &address, &err), 0);
	assert_string_equal(((struct sockaddr_un *)&address.socket)->sun_path, "a/b");
}

static void test_what_is_no_address(void **state)
{
	char path[sizeof("unix:") + sizeof(((struct sockaddr_un *)0)->sun_path)];

	assert_refused("", "must end in ':' and a port");
	assert_refused("8808", "must end in ':' and a port");
	assert_refused("127.0.0.1", "must end in ':' and a port");
	assert_refused("127.0.0.1:", "must end in ':' and a port");
	assert_refused("127.0.0.1:65536", "must end in ':' and a port");
	assert_refused("127.0.0.1:+1", "must end in ':' and a port");
	assert_refused(":80", "is not an address to listen on");
	assert_refused("*:80", "is not an address to listen on");
	assert_refused("example.com:80", "is not an address to listen on");
	assert_refused("::1:80", "is not an address to listen on");
	assert_refused("[::1:80", "is not an address to listen on");
	assert_refused("[]:80", "is not an address to listen on");
	assert_refused("[127.0.0.1]:80", "is not an address to listen on");
	assert_refused("127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1:80",
		       "is not an address to listen on");
	assert_refused("unix:", "must have 1 to 107 bytes");
	memset(path, 'x', sizeof(path) - 1);
	memcpy(path, "unix:", 5);
	path[sizeof(path) - 1] = '\0';
	assert_refused(path, "must have 1 to 107 bytes");
	assert_refused("systemd:", "a name");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_and_reach),
		cmocka_unit_test(test_sockets_are_ready_to_bind),
		cmocka_unit_test(test_what_is_no_address),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
