/* SPDX-License-Identifier: Apache-2.0 */
/* One certificate for as long as it is good for all names, and the same key for as long as nobody has changed it. */
#include "config/self_signed.c"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/unit_test.h"

static char directory[64];
static const struct slice names[] = { SLICE("localhost"), SLICE("[::1]"),
				      SLICE("0.0.0.0"),   SLICE("box.example.com"),
				      SLICE("192.0.2.7"), SLICE("[::]") };

static int setup(void **state)
{
	strcpy(directory, "/tmp/mcpgated-self-XXXXXX");
	assert_non_null(mkdtemp(directory));
	return setenv("STATE_DIRECTORY", directory, 1);
}

static int teardown(void **state)
{
	char command[128];

	unsetenv("STATE_DIRECTORY");
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static enum self_signed keep(size_t count)
{
	enum self_signed done;
	struct error err = { ERROR_NONE, "" };

	assert_int_equal(self_signed_keep("box", (struct slices){ names, count }, &done, &err), 0);
	return done;
}

static X509 *read_made(const char *name)
{
	int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	X509 *made = read_certificate(at, name);

	close(at);
	assert_non_null(made);
	return made;
}

static struct self_signed_facts facts(void)
{
	char *certificate, *key;
	struct self_signed_facts facts;
	struct stat status;
	struct error err;

	assert_int_equal(self_signed_paths("box", &certificate, &key, &err), 0);
	assert_int_equal(self_signed_describe(certificate, &facts, &err), 0);
	assert_int_equal(stat(key, &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	free(certificate);
	free(key);
	return facts;
}

static void it_is_made_once(void **state)
{
	struct self_signed_facts first;

	assert_int_equal(keep(5), SELF_SIGNED_MADE);
	first = facts();
	assert_int_equal(strlen(first.fingerprint), 95);
	assert_int_equal(keep(5), SELF_SIGNED_KEPT);
	assert_int_equal(keep(3), SELF_SIGNED_KEPT); /* a name more does no harm */
	assert_string_equal(facts().fingerprint, first.fingerprint);
}

static void it_is_a_certificate_of_a_server(void **state)
{
	X509 *made;

	assert_int_equal(keep(ARRAY_LEN(names)), SELF_SIGNED_MADE);
	made = read_made("box.crt");
	assert_int_equal(X509_check_ca(made), 0);
	assert_int_equal(X509_check_purpose(made, X509_PURPOSE_SSL_SERVER, 0), 1);
	assert_int_equal(X509_check_purpose(made, X509_PURPOSE_SSL_CLIENT, 0), 0);
	assert_int_equal(X509_check_host(made, "box.example.com", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(made, "example.com", 0, 0, NULL), 0);
	assert_int_equal(X509_check_ip_asc(made, "192.0.2.7", 0), 1);
	assert_int_equal(X509_check_ip_asc(made, "::1", 0), 1);
	assert_int_equal(X509_check_ip_asc(made, "0.0.0.0", 0), 0);
	assert_int_equal(X509_check_ip_asc(made, "::", 0), 0);
	assert_int_equal(X509_verify(made, X509_get0_pubkey(made)), 1);
	X509_free(made);
}

/* Some systems refuse certificates of more than 825 days; clocks of clients may be late. */
static void everybody_takes_its_time(void **state)
{
	time_t hour_ago = time(NULL) - 3600;
	int days, seconds;
	X509 *made;

	assert_int_equal(keep(5), SELF_SIGNED_MADE);
	made = read_made("box.crt");
	assert_int_equal(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(made),
					X509_get0_notAfter(made)),
			 1);
	assert_in_range(days, 700, 825);
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(made), &hour_ago), -1);
	X509_free(made);
}

static void name_may_be_long(void **state)
{
	static const char name[] = "a-name-of-a-machine-that-is-longer-than-the-sixty-four-"
				   "characters-of-a-common-name.example.com";
	const struct slice only[] = { slice_str(name) };
	enum self_signed done;
	struct error err;
	X509 *made;

	assert_int_equal(self_signed_keep(name, (struct slices){ only, 1 }, &done, &err), 0);
	made = read_made("a-name-of-a-machine-that-is-longer-than-the-sixty-four-"
			 "characters-of-a-common-name.example.com.crt");
	assert_int_equal(X509_check_host(made, name, 0, 0, NULL), 1);
	X509_free(made);
}

/* Of several directories of a service it is the first; a relative one is none. */
static void first_directory_counts(void **state)
{
	char *several = mem_printf("%s:/nonexistent", directory);
	struct self_signed_facts first;

	assert_int_equal(keep(5), SELF_SIGNED_MADE);
	first = facts();
	assert_int_equal(setenv("STATE_DIRECTORY", several, 1), 0);
	assert_int_equal(keep(5), SELF_SIGNED_KEPT);
	assert_string_equal(facts().fingerprint, first.fingerprint);
	free(several);
	assert_int_equal(setenv("STATE_DIRECTORY", "tmp", 1), 0);
	several = state_directory_path();
	assert_true(several == NULL || several[0] == '/');
	free(several);
}

static void another_name_is_another_certificate_of_the_same_key(void **state)
{
	X509 *before, *after;

	assert_int_equal(keep(3), SELF_SIGNED_MADE);
	before = read_made("box.crt");
	assert_int_equal(keep(4), SELF_SIGNED_EXTENDED);
	after = read_made("box.crt");
	assert_int_not_equal(X509_cmp(before, after), 0);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(before), X509_get0_pubkey(after)), 1);
	X509_free(before);
	X509_free(after);
}

/* Two daemons of one first name take turns, and each finds its own names. */
static void names_that_it_had_are_kept(void **state)
{
	static const struct slice others[] = { SLICE("localhost"), SLICE("192.0.2.8") };
	enum self_signed done;
	struct error err;
	X509 *made;

	assert_int_equal(keep(5), SELF_SIGNED_MADE);
	assert_int_equal(self_signed_keep("box", (struct slices){ others, 2 }, &done, &err), 0);
	assert_int_equal(done, SELF_SIGNED_EXTENDED);
	assert_int_equal(keep(5), SELF_SIGNED_KEPT);
	made = read_made("box.crt");
	assert_int_equal(X509_check_ip_asc(made, "192.0.2.8", 0), 1);
	assert_int_equal(X509_check_ip_asc(made, "192.0.2.7", 0), 1);
	X509_free(made);
}

static void one_of_another_time_is_made_again(void **state)
{
	const long days[] = { 29, 31, 31 };
	const long begins[] = { -DAY, -DAY, DAY }; /* a clock that went wrong */

	for (size_t i = 0; i < ARRAY_LEN(days); i++) {
		int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct error err;
		EVP_PKEY *key = keep_key(at, "box.key", &err);
		X509 *old = make_certificate(key, "box", (struct slices){ names, 5 }, NULL, &err);

		X509_gmtime_adj(X509_getm_notAfter(old), days[i] * DAY + 60);
		X509_gmtime_adj(X509_getm_notBefore(old), begins[i]);
		assert_true(X509_sign(old, key, EVP_sha256()) > 0);
		assert_int_equal(put_certificate(at, "box.crt", old, &err), 0);
		assert_int_equal(keep(5), i == 1 ? SELF_SIGNED_KEPT : SELF_SIGNED_MADE_AGAIN);
		X509_free(old);
		EVP_PKEY_free(key);
		close(at);
	}
}

/* A server that runs as the same user could have put it there. */
static void key_of_others_is_not_used(void **state)
{
	char path[128];
	X509 *before, *after;

	assert_int_equal(keep(5), SELF_SIGNED_MADE);
	before = read_made("box.crt");
	snprintf(path, sizeof(path), "%s/box.key", directory);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(keep(5), SELF_SIGNED_MADE_AGAIN);
	after = read_made("box.crt");
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(before), X509_get0_pubkey(after)), 0);
	(void)facts(); /* whose key is for this user alone again */
	X509_free(before);
	X509_free(after);
}

static void directory_of_others_is_no_place(void **state)
{
	enum self_signed done;
	struct error err;

	assert_int_equal(chmod(directory, 0722), 0);
	assert_int_equal(self_signed_keep("box", (struct slices){ names, 5 }, &done, &err), -1);
	assert_non_null(strstr(err.text, "only this user may write to it"));
	assert_int_equal(chmod(directory, 0700), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(directory, 65534, 65534), 0);
	assert_int_equal(self_signed_keep("box", (struct slices){ names, 5 }, &done, &err), -1);
	assert_non_null(strstr(err.text, "must belong to this user"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_made_once, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_a_certificate_of_a_server, setup, teardown),
		cmocka_unit_test_setup_teardown(another_name_is_another_certificate_of_the_same_key,
						setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_another_time_is_made_again, setup, teardown),
		cmocka_unit_test_setup_teardown(everybody_takes_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(name_may_be_long, setup, teardown),
		cmocka_unit_test_setup_teardown(first_directory_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(names_that_it_had_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(key_of_others_is_not_used, setup, teardown),
		cmocka_unit_test_setup_teardown(directory_of_others_is_no_place, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
