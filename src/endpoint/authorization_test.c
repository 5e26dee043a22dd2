/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a verdict, and of the grant that came with it. The rest is seen from outside: tests/scenario. */
#include "endpoint/authorization.h"

#include <sys/socket.h>
#include <unistd.h>

#include "auth/grant.h"
#include "base/mem.h"
#include "http/conn.h"
#include "policy/permissions.h"
#include "router/stage.h"

static struct authorization authorization;
static struct protected_resource place;
static struct grant *grant; /* that the verdict brings; one reference is the test's */
static struct authorization_check check;
static enum authorization_step step;

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
	const struct verdict verdict = { VERDICT_OK, "" };

	check = (struct authorization_check){
		.auth = &authorization, .place = &place, .http = request, .conn = conn
	};
	step = authorization_conclude(&check, &verdict, grant_ref(grant));
	http_reply(conn, &(struct http_reply){ .status = 204 });
	return NULL;
}

static void write_error(struct http_handler *handler, int status, const char *reason,
			struct buf *body)
{
}

static struct http_handler handler = { on_request, write_error, NULL };

static void request(void)
{
	static const char head[] =
		"POST /mcp HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n";
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
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1] });
	step = AUTHORIZATION_WAITING;
	assert_int_equal(write(fds[0], head, strlen(head)), strlen(head));
	settle();
	assert_int_not_equal(step, AUTHORIZATION_WAITING);
	http_server_free(&server);
	close(fds[0]);
}

/* ---- before and after ---- */

static int setup(void **state)
{
	const struct authorization_conf conf = { .mode = AUTHORIZATION_OAUTH };

	router_stage_open();
	authorization_init(&authorization, &router.sessions, &conf);
	place = (struct protected_resource){ .server = SLICE("main") };
	grant = grant_for("alice");
	return 0;
}

static int teardown(void **state)
{
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
static void refusal_holds_no_grant(void **state)
{
	static const struct slice others[] = { SLICE("another-app") };

	place.clients = (struct slices){ others, 1 };
	request();
	assert_int_equal(step, AUTHORIZATION_REFUSED);
	assert_int_equal(check.refusal.status, 403);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(access_holds_its_grant, setup, teardown),
		cmocka_unit_test_setup_teardown(refusal_holds_no_grant, setup, teardown),
		cmocka_unit_test_setup_teardown(renewal_is_for_the_same_principal, setup, teardown),
		cmocka_unit_test_setup_teardown(static_tokens_have_one_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_no_role_is_refused, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
