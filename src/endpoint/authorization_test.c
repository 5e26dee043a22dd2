/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a verdict, and of the grant that came with it. The rest is seen from outside: tests/scenario. */
#include "endpoint/authorization.h"

#include <openssl/sha.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/grant.h"
#include "auth/verifier.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/conn.h"
#include "policy/permissions.h"
#include "router/stage.h"

static struct authorization authorization;
static struct protected_resource place;
static struct grant *grant; /* that the verdict brings; one reference is the test's */
static struct authorization_check check;
static enum authorization_step step;
static const struct verdict good = { VERDICT_OK, "" };
static bool is_judged; /* the verdict is there already: this one */
static const struct verdict *judged;
static struct verifier_wait wait;
static const char *credential;
static struct peer peer;

/* Of a token of this subject. */
static struct grant *grant_for(const char *subject)
{
	struct grant *made = mem_zalloc(sizeof(*made));

	made->references = 1;
	made->issuer = mem_strdup("https://id.example");
	made->subject = mem_strdup(subject);
	made->client_id = mem_strdup("app");
	made->ends_at_ms = UINT64_MAX;
	return made;
}

/* ---- a request whose token has been judged ---- */

static struct http_exchange *on_request(struct http_handler *handler, struct http_conn *conn,
					const struct http_request *request)
{
	access_fini(&check.access);
	check = (struct authorization_check){
		.auth = &authorization, .place = &place, .http = request, .conn = conn
	};
	step = is_judged ? authorization_conclude(&check, judged,
						  judged->kind == VERDICT_OK ? grant_ref(grant) :
									       NULL) :
			   authorization_admit(&check, &wait);
	http_reply(conn, &(struct http_reply){ .status = 204 });
	return NULL;
}

static void write_plain_error(struct http_handler *handler, int status, const char *reason,
			      struct buf *body)
{
}

static struct http_handler handler = { on_request, write_plain_error, NULL };

static void request(void)
{
	char *head = mem_printf("POST /mcp HTTP/1.1\r\nHost: a\r\n%s\r\nContent-Length: 0\r\n\r\n",
				credential);
	const struct http_conf conf = {
		.header_bytes = 16384,
		.body_bytes = 16384,
		.header_timeout_ms = 10000,
		.body_timeout_ms = 10000,
		.idle_timeout_ms = 10000,
		.stall_timeout_ms = 10000,
		.max_connections = 2,
	};
	struct http_server *server = http_server_new(loop, &conf, &handler);
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1], .peer = peer });
	step = AUTHORIZATION_WAITING;
	assert_int_equal(write(fds[0], head, strlen(head)), strlen(head));
	settle();
	assert_int_not_equal(step, AUTHORIZATION_WAITING);
	http_server_free(&server);
	close(fds[0]);
	free(head);
}

/* The same with a token that has to be judged. */
static void present(const char *field)
{
	is_judged = false;
	credential = field;
	request();
}

static void on_done(struct verifier_wait *done, const struct verdict *verdict, struct grant *found)
{
	fail_msg("nobody is to be asked");
}

/* ---- before and after ---- */

static int setup(void **state)
{
	const struct authorization_conf conf = { .mode = AUTHORIZATION_OAUTH };

	router_stage_open();
	authorization_init(&authorization, &router.sessions, &conf);
	place = (struct protected_resource){ .server = SLICE("main") };
	grant = grant_for("alice");
	is_judged = true;
	judged = &good;
	wait = (struct verifier_wait){ .on_done = on_done };
	credential = "Authorization: Bearer x";
	peer = (struct peer){ .family = 0 };
	return 0;
}

static int teardown(void **state)
{
	access_fini(&check.access);
	assert_int_equal(grant->references, 1);
	grant_unref(&grant);
	authorization_fini(&authorization);
	return router_stage_close(state);
}

/* ---- the tests ---- */

static void access_holds_its_grant(void **state)
{
	struct access copy;

	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	assert_int_equal(grant->references, 2);
	copy = access_copy(&check.access);
	assert_int_equal(grant->references, 3);
	access_fini(&check.access);
	assert_non_null(copy.principal);
	access_fini(&copy);
}

/* AUTH-JWT-13 */
static void who_is_refused_is_known(void **state)
{
	static const struct slice others[] = { SLICE("another-app") };

	place.clients = (struct slices){ others, 1 };
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 403);
	assert_non_null(check.access.principal);
	assert_true(slice_is_equal(check.access.principal->identity.subject, SLICE_LIT("alice")));
	access_fini(&check.access);
	assert_int_equal(grant->references, 1);
}

/* AUTH-SES-04, AUTH-OPQ-08: what the issuer says of a token later is of the same caller, or of no use. */
static void renewal_is_for_the_same_principal(void **state)
{
	struct grant *others = grant_for("bob");
	struct principal *principal;

	request();
	principal = check.access.principal;
	assert_true(authorization_renew(&authorization, &place, &check.access, grant_for("alice")));
	assert_ptr_equal(check.access.principal, principal);
	assert_int_equal(grant->references, 1); /* the access has the new one */
	assert_false(authorization_renew(&authorization, &place, &check.access, grant_ref(others)));
	assert_ptr_equal(check.access.principal, principal);
	assert_int_equal(others->references, 1);
	grant_unref(&others);
	access_fini(&check.access);
}

static void renewal_is_judged_by_what_is_new(void **state)
{
	static const struct slice algorithms[] = { SLICE("RS256") };
	const char *const used[] = { "RS256", "ES256" };
	uint64_t refused = verdict_counted(VERDICT_BAD_ALG);

	place.algorithms = (struct slices){ algorithms, 1 };
	request();
	for (size_t i = 0; i < ARRAY_LEN(used); i++) {
		struct grant *fresh = grant_for("alice");

		fresh->algorithm = used[i];
		assert_int_equal(authorization_renew(&authorization, &place, &check.access, fresh),
				 i == 0);
		assert_int_equal(verdict_counted(VERDICT_BAD_ALG), refused + i);
	}
	access_fini(&check.access);
}

/* AUTH-DWN-02: of a static token the name is the subject, and all that it says. */
static void static_tokens_have_one_claim(void **state)
{
	static const struct slice names[] = { SLICE("team"), SLICE("sub") };
	const struct identity identity = { SLICE(PRINCIPAL_STATIC_ISSUER), SLICE("ci"), SLICE("") };
	struct principal_set *principals = &router.sessions.principals;
	struct access access = { .ends_at_ms = UINT64_MAX };

	principals->claim_names = (struct slices){ names, ARRAY_LEN(names) };
	access.principal = principal_get(principals, &identity);
	access_keep_claims(&access);
	assert_string_equal(principal_claim(access.principal, SLICE_LIT("sub")), "ci");
	assert_null(principal_claim(access.principal, SLICE_LIT("team")));
	access_fini(&access);
	access.principal = principal_ref(&principals->anonymous);
	access_keep_claims(&access); /* of nobody there are none */
	access_fini(&access);
}

/* SEC-56: who has no role at a server is refused there, also when his token is judged anew. */
static void who_has_no_role_is_refused(void **state)
{
	static const struct slice all[] = { SLICE("*") };
	struct permission_role role = { .number = 1, .server = SLICE("main") };
	struct permissions permissions = { .roles = &role, .role_count = 1 };

	role.kinds[PERMISSION_PROMPT].allow = (struct slices){ all, 1 };
	authorization.conf.has_roles = true;
	place.permissions = &permissions;
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 403);
	role_set_add(&grant->roles, 1);
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	assert_true(check.access.rights.needs_roles);
	assert_true(role_set_has(&check.access.rights.roles, 1));
	assert_false(
		authorization_renew(&authorization, &place, &check.access, grant_for("alice")));
	access_fini(&check.access);
}

/* AUTH-SES-07: while the issuer was asked, a reload has changed what is accepted. */
static void what_is_accepted_no_more_is_refused(void **state)
{
	credential = "Authorization: DPoP x";
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 401);
}

/* AUTH-TOK-05: what comes as a key is never shown to an issuer, whatever it looks like. */
static void keys_are_static_tokens_alone(void **state)
{
	authorization.conf.takes_api_keys =
		true; /* there is no verifier: to ask it would end this */
	present("X-API-Key: eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.AAAA");
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 401);
}

#define RIGHT "right-0123456789"

static struct static_token *the_token(void)
{
	static struct static_token token;

	token = (struct static_token){ .name = SLICE("ci") };
	SHA256((const unsigned char *)RIGHT, strlen(RIGHT), token.hash);
	authorization.conf.tokens = (struct static_tokens){ &token, 1 };
	authorization.conf.mode = AUTHORIZATION_TOKEN;
	return &token;
}

/* AUTH-TOK-02: all of the hash counts. */
static void near_tokens_are_wrong(void **state)
{
	const struct static_token *token = the_token();
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char field[64];
	char *text = strstr(strcpy(field, "Authorization: Bearer 0"), "0");

	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	access_fini(&check.access);
	for (unsigned int i = 0; i == 0 || hash[0] != token->hash[0]; i++) {
		snprintf(text, 16, "%u", i);
		SHA256((unsigned char *)text, strlen(text), hash);
	}
	present(field);
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 401);
}

/* AUTH-TOK-03, AUTH-CH-08: access ends with its token, which may be while the body comes. */
static void access_ends_with_its_token(void **state)
{
	struct static_token *token = the_token();
	uint64_t later_ms = clock_wall_ms() + 1000000;
	struct refusal refusal;

	token->ends_at_ms = 1;
	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	token->ends_at_ms = later_ms;
	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	assert_int_equal(check.access.ends_at_ms, later_ms);
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	check.access.ends_at_ms = clock_wall_ms();
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	assert_int_equal(refusal.status, 401);
	access_fini(&check.access);
	authorization.conf.mode = AUTHORIZATION_OAUTH;
	grant->ends_at_ms = later_ms;
	is_judged = true;
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	assert_int_equal(check.access.ends_at_ms, later_ms);
	access_fini(&check.access);
}

/* AUTH-SES-07: who was let in by one configuration, and is none of another, goes no further while his body comes. */
static void another_configuration_judges_again(void **state)
{
	struct static_token *token = the_token();
	struct authorization_conf conf = authorization.conf;
	struct refusal refusal;
	uint64_t later_ms = clock_wall_ms() + 1000000;

	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	token->ends_at_ms = later_ms;
	authorization_renew_conf(&authorization, &conf);
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	assert_int_equal(check.access.ends_at_ms, later_ms); /* as it is now */
	token->hash[0] ^= 1;                                 /* another token of this name */
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	authorization_renew_conf(&authorization, &conf);
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	assert_int_equal(refusal.status, 401);
	assert_int_not_equal(refusal.rule.key, RULE_DENIED_TOKENS);
	token->hash[0] ^= 1;
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	conf.tokens.count = 0;
	authorization_renew_conf(&authorization, &conf);
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	conf.mode = AUTHORIZATION_NONE;
	authorization_renew_conf(&authorization, &conf);
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	access_fini(&check.access);
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED); /* nobody in particular */
	conf.mode = AUTHORIZATION_TOKEN;
	authorization_renew_conf(&authorization, &conf);
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	access_fini(&check.access);
}

/* SEC-56: entries of one name are one caller, but what he may do is what the entry of his own token says. */
static void rights_are_those_of_the_own_entry(void **state)
{
	struct static_token *token = the_token(), both[] = { *token, *token };
	struct authorization_conf conf = authorization.conf;
	struct access other;
	struct rights rights;

	both[0].hash[0] ^= 1;
	role_set_add(&both[0].rights.roles, 7);
	conf.tokens = (struct static_tokens){ both, 2 };
	authorization_renew_conf(&authorization, &conf);
	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	rights = check.access.rights;
	role_set_add(&both[1].rights.roles, 3);
	authorization_renew_rights(&conf, check.access.principal, &rights);
	assert_true(role_set_has(&rights.roles, 3));
	assert_false(role_set_has(&rights.roles, 7));
	authorization_renew_rights(&conf, check.access.principal,
				   &rights); /* it is known still whose they are */
	assert_true(role_set_has(&rights.roles, 3));
	conf.tokens.count = 1;
	authorization_renew_rights(&conf, check.access.principal, &rights);
	assert_true(rights.needs_roles && rights.needs_scopes);
	assert_false(role_set_has(&rights.roles, 3) || role_set_has(&rights.roles, 7));
	other = check.access;
	assert_true(access_is_same(&other, &check.access));
	other.rights.token++;
	assert_false(access_is_same(&other, &check.access));
	access_fini(&check.access);
}

/* What a request would get by the other configuration: no scope (AUTH-SCP-02), no role (SEC-56), none of its clients. */
static void another_configuration_refuses_in_its_own_way(void **state)
{
	static const struct slice others[] = { SLICE("another-app") };
	static struct scope_table table;
	struct static_token *token = the_token();
	struct authorization_conf conf = authorization.conf;
	struct refusal refusal;

	table = (struct scope_table){ .count = 0 };
	conf.scopes = &table;
	present("Authorization: Bearer " RIGHT);
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	scope_table_add(&table, SLICE_LIT("use"), &place.base);
	authorization_renew_conf(&authorization, &conf);
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	assert_int_equal(refusal.status, 403);
	assert_string_equal(refusal.error, "insufficient_scope");
	scope_table_find(&table, SLICE_LIT("use"), &token->rights.scopes);
	assert_true(authorization_is_current(&authorization, &place, &check.access, &refusal));
	access_fini(&check.access);
	place.base = (struct scope_set){ { 0 } };
	authorization.conf.mode = AUTHORIZATION_OAUTH;
	is_judged = true;
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	place.clients = (struct slices){ others, 1 };
	assert_false(authorization_renew(&authorization, &place, &check.access, grant_ref(grant)));
	place.clients.count = 0;
	assert_true(authorization_renew(&authorization, &place, &check.access, grant_ref(grant)));
	conf.mode = AUTHORIZATION_TOKEN; /* no issuers any more */
	authorization_renew_conf(&authorization, &conf);
	assert_false(authorization_is_current(&authorization, &place, &check.access, &refusal));
	assert_int_equal(refusal.status, 401);
	assert_string_equal(refusal.error, "invalid_token");
	access_fini(&check.access);
}

/* AUTH-JWT-13: a list of clients is none for those that have no name. */
static void a_client_without_a_name_is_none(void **state)
{
	static const struct slice apps[] = { SLICE("app") };

	place.clients = (struct slices){ apps, 1 };
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	access_fini(&check.access);
	free(grant->client_id);
	grant->client_id = NULL;
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 403);
}

/* AUTH-SCP-01, -05: what the server wants of any request is asked of the head, and each scope of a token counts. */
static void scopes_of_a_server_are_asked_of_the_head(void **state)
{
	static struct scope_table table;
	static char names[100][8];
	char *held[100];

	table = (struct scope_table){ .count = 0 };
	authorization.conf.scopes = &table;
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		snprintf(names[i], sizeof(names[i]), "s%zu", i);
		held[i] = names[i];
		scope_table_add(&table, slice_str(names[i]), &place.base);
	}
	grant->scopes = held;
	grant->scope_count = ARRAY_LEN(held) - 1;
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_string_equal(check.refusal.error, "insufficient_scope");
	grant->scope_count = ARRAY_LEN(held);
	request();
	assert_int_equal(step, AUTHORIZATION_ADMITTED);
	access_fini(&check.access);
	grant->scopes = NULL;
	grant->scope_count = 0;
}

/* AUTH-CH-11: a good token that is not enough here is no guess, and ends the count of guesses. */
static void who_may_not_is_no_guesser(void **state)
{
	static const struct slice others[] = { SLICE("another-app") };

	peer = (struct peer){ .family = AF_INET, .address = { 192, 0, 2, 1 } };
	authorization.failures.max = 2;
	the_token();
	for (int i = 0; i < 2; i++) {
		present("Authorization: Bearer wrong");
		assert_int_equal(check.refusal.status, 401);
	}
	place.clients = (struct slices){ others, 1 };
	is_judged = true;
	authorization.conf.mode = AUTHORIZATION_OAUTH;
	request();
	assert_int_equal(check.refusal.status, 403);
	authorization.conf.mode = AUTHORIZATION_TOKEN;
	for (int i = 0; i < 2; i++) {
		present("Authorization: Bearer wrong");
		assert_int_equal(check.refusal.status, 401);
	}
	present("Authorization: Bearer wrong");
	assert_int_equal(check.refusal.status, 429);
}

/* AUTH-CH-11: a token that has expired was good once; it is no guess, and is told so to whoever has guessed, too. */
static void who_is_late_is_no_guesser(void **state)
{
	static const struct verdict expired = { VERDICT_EXPIRED, "" };
	static const struct verdict revoked = { VERDICT_REVOKED, "" };

	peer = (struct peer){ .family = AF_INET, .address = { 192, 0, 2, 1 } };
	authorization.failures.max = 2;
	judged = &expired;
	for (int i = 0; i < 4; i++) {
		request();
		assert_int_equal(check.refusal.status, 401);
	}
	judged = &revoked;
	for (int i = 0; i < 3; i++) {
		request();
		assert_int_equal(check.refusal.status, i < 2 ? 401 : 429);
	}
	judged = &expired;
	request();
	assert_int_equal(check.refusal.status, 401);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(access_holds_its_grant, setup, teardown),
		cmocka_unit_test_setup_teardown(who_is_refused_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(renewal_is_for_the_same_principal, setup, teardown),
		cmocka_unit_test_setup_teardown(renewal_is_judged_by_what_is_new, setup, teardown),
		cmocka_unit_test_setup_teardown(static_tokens_have_one_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_no_role_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_accepted_no_more_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keys_are_static_tokens_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(near_tokens_are_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(access_ends_with_its_token, setup, teardown),
		cmocka_unit_test_setup_teardown(another_configuration_judges_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(rights_are_those_of_the_own_entry, setup, teardown),
		cmocka_unit_test_setup_teardown(another_configuration_refuses_in_its_own_way, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_client_without_a_name_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(scopes_of_a_server_are_asked_of_the_head, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_may_not_is_no_guesser, setup, teardown),
		cmocka_unit_test_setup_teardown(who_is_late_is_no_guesser, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
