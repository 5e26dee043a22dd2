/* SPDX-License-Identifier: Apache-2.0 */
/* What of two configurations is another, and what of the one before stays. */
#include "config/difference.h"

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/tree.h"

static struct config *make(const char *yaml)
{
	struct error err = { ERROR_NONE, "" };
	struct config *config = config_read_checked(slice_str(yaml), &err);

	if (config == NULL)
		fail_msg("refused: %s", err.text);
	return config;
}

static void assert_difference(const char *of_one, const char *of_other,
			      enum config_difference difference)
{
	char *texts[] = { mem_printf("servers: {x: {command: c}, a: {command: c%s}}\n", of_one),
			  mem_printf("servers: {a: {command: c%s}}\n", of_other) };
	struct config *one = make(texts[0]), *other = make(texts[1]);

	assert_int_equal(config_compare_servers(one, 1, other, 0), difference);
	assert_int_equal(config_compare_servers(other, 0, one, 1), difference);
	config_free(&one);
	config_free(&other);
	free(texts[0]);
	free(texts[1]);
}

static void rules_are_no_processes(void **state)
{
	static const char *const rules[] = {
		", tools: {deny: [x]}",
		", rate: {calls: 5}",
		", path: /a/mcp, tools: {allow: [y]}",
		", request_timeout: 7s",
		", pin: warn",
		", sanitize: {controls: strip}",
		", redact: [x]",
	};
	static const char *const processes[] = {
		", args: [x]",
		", args: ['']",
		", env: {A: '1'}",
		", env: {A: {env: HOME}}",
		", inherit_env: [X]",
		", cwd: /tmp",
		", user: nobody",
		", enabled: false",
		", isolation: shared",
		", sandbox: {mode: landlock}",
		", resources: {open_files: 50}",
		", start: {rate: 3}",
	};

	assert_difference("", "", CONFIG_SAME);
	assert_difference(", args: [x, y]", ", args: [x, y]", CONFIG_SAME);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		assert_difference("", rules[i], CONFIG_OTHER_RULES);
	for (size_t i = 0; i < ARRAY_LEN(processes); i++)
		assert_difference("", processes[i], CONFIG_OTHER_PROCESSES);
	assert_difference(", args: [x, y]", ", args: ['x, y']", CONFIG_OTHER_PROCESSES);
	assert_difference(", env: {A: '1'}", ", env: {A: '2'}", CONFIG_OTHER_PROCESSES);
	assert_difference(", env: {A: '1'}", ", env: {B: '1'}", CONFIG_OTHER_PROCESSES);
	assert_difference(", env: {A: '1'}", ", env: {A: '1', B: '2'}", CONFIG_OTHER_PROCESSES);
	assert_difference(", env: {A: '1'}", ", env: {A: '1'}", CONFIG_SAME);
	/* Secrets, too, although they are printed alike. */
	assert_difference(", env: {A_TOKEN: '1'}", ", env: {A_TOKEN: '2'}", CONFIG_OTHER_PROCESSES);
}

/* Those are read again with each start. */
static void values_from_files_are_their_names(void **state)
{
	struct config *one = make("servers: {a: {command: c, env: {A_TOKEN: '1'}}}\n");
	struct config *other = make("servers: {a: {command: c, env: {A_TOKEN: '2'}}}\n");

	one->servers[0].env[0].file = mem_strdup("/run/a");
	assert_int_equal(config_compare_servers(one, 0, other, 0), CONFIG_OTHER_PROCESSES);
	assert_int_equal(config_compare_servers(other, 0, one, 0), CONFIG_OTHER_PROCESSES);
	other->servers[0].env[0].file = mem_strdup("/run/b");
	assert_int_equal(config_compare_servers(one, 0, other, 0), CONFIG_OTHER_PROCESSES);
	other->servers[0].env[0].file[5] = 'a';
	assert_int_equal(config_compare_servers(one, 0, other, 0), CONFIG_SAME);
	config_free(&one);
	config_free(&other);
}

/* What all servers' processes are made with. */
static void sizes_of_messages_are_of_processes(void **state)
{
	struct config *one = make("servers: {a: {command: c}}\n");
	struct config *message = make("limits: {message: 1MiB}\nservers: {a: {command: c}}\n");
	struct config *response = make("limits: {response: 1MiB}\nservers: {a: {command: c}}\n");

	assert_int_equal(config_compare_servers(one, 0, message, 0), CONFIG_OTHER_PROCESSES);
	assert_int_equal(config_compare_servers(one, 0, response, 0), CONFIG_OTHER_PROCESSES);
	config_free(&one);
	config_free(&message);
	config_free(&response);
}

static void servers_are_found_by_name(void **state)
{
	struct config *config = make("servers: {a: {command: c}, ab: {command: c}}\n");

	assert_int_equal(config_find_server(config, "ab"), 1);
	assert_int_equal(config_find_server(config, "a"), 0);
	assert_int_equal(config_find_server(config, "b"), 2);
	config_free(&config);
}

#define AUTH                                                               \
	"auth: {mode: oauth, issuers: [{issuer: 'https://%s.example'}]}\n" \
	"public_url: https://x.example\nservers: {a: {command: c}}\n"

static void issuers_are_what_the_fetcher_gets(void **state)
{
	char *texts[] = { mem_printf(AUTH, "i"), mem_printf(AUTH, "j"),
			  mem_printf("drain_timeout: 3s\n" AUTH, "i") };
	struct config *one = make(texts[0]), *other = make(texts[1]), *same = make(texts[2]);

	assert_false(config_has_same_issuers(one, other));
	assert_true(config_has_same_issuers(one, same));
	config_free(&one);
	config_free(&other);
	config_free(&same);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
}

static void the_end_of_tokens_is_said(void **state)
{
	char *text = mem_printf(AUTH, "i");
	struct config *with = make(text), *without = make("servers: {a: {command: c}}\n");
	struct config_problems warnings = { 0 };

	config_check_tokens_needed(with, with, &warnings);
	config_check_tokens_needed(without, with, &warnings);
	config_check_tokens_needed(without, without, &warnings);
	assert_int_equal(warnings.count, 0);
	config_check_tokens_needed(with, without, &warnings);
	assert_int_equal(warnings.count, 1);
	assert_non_null(strstr(warnings.items[0], "auth: no token is required any more"));
	config_problems_fini(&warnings);
	config_free(&with);
	config_free(&without);
	free(text);
}

#define TWO_ISSUERS(first, second)                                                           \
	"auth: {issuers: [{issuer: 'https://" first "'}, {issuer: 'https://" second "'}]}\n" \
	"public_url: https://x\nservers: {a: {command: c}}\n"

/* AUTH-ISS-04 */
static void another_first_issuer_is_said(void **state)
{
	struct config *one = make(TWO_ISSUERS("one", "two"));
	struct config *turned = make(TWO_ISSUERS("two", "one"));
	struct config *longer = make(TWO_ISSUERS("one", "three"));
	struct config *none = make("servers: {a: {command: c}}\n");
	struct config_problems warnings = { 0 };

	config_check_first_issuer(one, longer, &warnings);
	config_check_first_issuer(one, none, &warnings);
	config_check_first_issuer(none, one, &warnings);
	assert_int_equal(warnings.count, 0);
	config_check_first_issuer(one, turned, &warnings);
	assert_int_equal(warnings.count, 1);
	assert_non_null(strstr(warnings.items[0], "auth.issuers: https://two is now the first: "));
	assert_non_null(strstr(warnings.items[0], "https://one"));
	config_problems_fini(&warnings);
	config_free(&one);
	config_free(&turned);
	config_free(&longer);
	config_free(&none);
}

static void what_is_fixed_stays(void **state)
{
	struct config *now = make("admin: {address: 'off', metrics: '127.0.0.1:9'}\n"
				  "servers: {a: {command: c}}\n");
	struct config *next = make("admin: {address: auto}\nservers: {a: {command: c}}\n");
	struct config_problems warnings = { 0 };
	const char *address = now->admin_address;

	config_check_fixed(now, next, &warnings);
	assert_int_equal(warnings.count, 2);
	assert_non_null(strstr(warnings.items[0],
			       "admin.address: the change takes effect only after a restart"));
	assert_non_null(strstr(warnings.items[1], "admin.metrics: "));
	config_keep_fixed(now, next);
	/* The very texts. */
	assert_ptr_equal(next->admin_address, address);
	assert_string_equal(now->admin_address, "auto");
	assert_string_equal(next->admin_metrics, "127.0.0.1:9");
	config_keep_fixed(now, next);
	assert_ptr_equal(now->admin_address, address);
	assert_string_equal(next->admin_address, "auto");
	config_problems_fini(&warnings);
	config_check_fixed(now, now, &warnings);
	assert_int_equal(warnings.count, 0);
	config_free(&now);
	config_free(&next);
}

static void the_log_and_the_audit_are_compared(void **state)
{
	struct config *one = make("log: {target: /tmp/one}\nservers: {a: {command: c}}\n");
	struct config *other = make("log: {target: /tmp/one, level: debug}\n"
				    "audit: {to: /tmp/a}\nservers: {a: {command: c}}\n");

	assert_true(config_has_same_log(one, other));
	assert_false(config_has_same_audit(one, other));
	assert_true(config_has_same_audit(one, one));
	config_free(&other);
	other = make("servers: {a: {command: c}}\n");
	assert_false(config_has_same_log(one, other));
	assert_true(config_has_same_audit(one, other));
	config_free(&one);
	config_free(&other);
}

/* ---- listeners ---- */

#define LISTENERS_MAX 6

/* Of addresses alone, as far as one is given. */
struct listeners {
	struct config_listen listen[LISTENERS_MAX];
	struct config config;
};

static const struct config *made(struct listeners *listeners, const char *const *addresses)
{
	*listeners = (struct listeners){ .config = { .listen = listeners->listen } };
	for (size_t i = 0; addresses[i] != NULL; i++) {
		assert_true(i < LISTENERS_MAX);
		listeners->listen[i].address = (char *)(uintptr_t)addresses[i];
		listeners->config.listen_count++;
	}
	return &listeners->config;
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void assert_kept(const char *const *now, const char *const *next, const int32_t *expected)
{
	struct listeners one, other;
	int32_t kept[LISTENERS_MAX];
	const struct config *to = made(&other, next);

	config_match_listeners(made(&one, now), to, kept);
	for (size_t i = 0; i < to->listen_count; i++)
		assert_int_equal(kept[i], expected[i]);
}

#define KEPT(...) ((const int32_t[]){ __VA_ARGS__ })

static void an_address_is_known_again(void **state)
{
	assert_kept(LIST("127.0.0.1:80", "[::1]:80"), LIST("[::1]:80", "127.0.0.1:81"),
		    KEPT(1, -1));
	assert_kept(LIST("127.0.0.1:80"), LIST("localhost:80"), KEPT(0));
	assert_kept(LIST("[::1]:80"), LIST("[0:0::1]:80"), KEPT(0));
	assert_kept(LIST("127.0.0.1:80"), LIST("0.0.0.0:80"), KEPT(-1));
	assert_kept(LIST("unix:/run/a"), LIST("unix:/run/a", "unix:/run/b"), KEPT(0, -1));
	assert_kept(LIST("systemd:a"), LIST("systemd:b", "systemd:a"), KEPT(-1, 0));
}

/* Each socket goes on once. */
static void several_at_one_address(void **state)
{
	assert_kept(LIST("127.0.0.1:0", "127.0.0.1:0"),
		    LIST("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"), KEPT(0, 1, -1));
	assert_kept(LIST("systemd:a", "[::1]:1", "systemd:a"), LIST("systemd:a", "systemd:a"),
		    KEPT(0, 2));
	assert_kept(LIST("127.0.0.1:9", "[::1]:1"), LIST("127.0.0.1:9", "localhost:9"),
		    KEPT(0, -1));
}

static void what_a_listener_says(void **state)
{
	struct config_tls tls = { .certificate = (char *)(uintptr_t) "/a",
				  .key = (char *)(uintptr_t) "/b" };
	struct config_tls other_tls = tls;
	struct listeners a, b;

	made(&a, LIST("127.0.0.1:80", "127.0.0.1:81"));
	made(&b, LIST("127.0.0.1:80", "127.0.0.1:81"));
	assert_true(config_has_same_listen(&a.config, &b.config));
	b.listen[1].proxy_protocol = true;
	assert_true(config_is_same_listener(&a.config, 0, &b.config, 0));
	assert_false(config_is_same_listener(&a.config, 1, &b.config, 1));
	assert_false(config_has_same_listen(&a.config, &b.config));
	b.listen[1].proxy_protocol = false;
	b.listen[0].tls = &tls;
	b.listen[0].tls_count = 1;
	assert_false(config_has_same_listen(&a.config, &b.config));
	a.listen[0].tls = &other_tls;
	a.listen[0].tls_count = 1;
	assert_true(config_has_same_listen(&a.config, &b.config));
	other_tls.client_ca = (char *)(uintptr_t) "/c";
	assert_false(config_has_same_listen(&a.config, &b.config));
	b.config.listen_count = 1;
	assert_false(config_has_same_listen(&a.config, &b.config));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_no_processes),
		cmocka_unit_test(values_from_files_are_their_names),
		cmocka_unit_test(sizes_of_messages_are_of_processes),
		cmocka_unit_test(servers_are_found_by_name),
		cmocka_unit_test(issuers_are_what_the_fetcher_gets),
		cmocka_unit_test(another_first_issuer_is_said),
		cmocka_unit_test(the_end_of_tokens_is_said),
		cmocka_unit_test(what_is_fixed_stays),
		cmocka_unit_test(the_log_and_the_audit_are_compared),
		cmocka_unit_test(an_address_is_known_again),
		cmocka_unit_test(several_at_one_address),
		cmocka_unit_test(what_a_listener_says),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
