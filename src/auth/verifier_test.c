/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier with an authorization server beside it: discovery, rotation, outages, lies, introspection.
 * The monotonic clock is advanced where a pause of seconds is meant; what is fetched takes real time. Every wait is bounded.
 */
#include "auth/verifier.h"

#include "auth/fake_issuer.h"
#include "auth/fake_signer.h"
#include "auth/fetch_client.h"
#include "auth/fetch_service.h"
#include "auth/issuer.h"
#include "auth/jwt.h"
#include "auth/url.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "io/ipc.h"
#include "obs/log.h"
#include "policy/roles.h"

#define RESOURCE "https://gw.example/mcp"
#define PATIENCE_MS 20000

static struct fake_signer first;
static struct fake_signer second;
static struct fake_signer stranger;

/* One server, one verifier, the answer to the last check. */
static struct {
	struct loop *loop;
	struct fetch_service *service;
	struct fetch_client *client;
	struct verifier *verifier;
	struct fake_issuer *issuer;
	struct fake_page *keys;
	struct verifier_issuer_conf conf;
	struct slices accepted; /* of who asks */
	struct verifier_wait wait;
	bool is_told;
	struct verdict verdict;
	struct grant *grant;
} world;

static const struct slice resource[] = { SLICE(RESOURCE) };

/* ---- the world ---- */

static void publish(struct fake_page *page, const struct fake_signer *a,
		    const struct fake_signer *b)
{
	const struct fake_signer *const both[] = { a, b };
	char *text = fake_signer_set(both, b != NULL ? 2 : 1);

	fake_page_set_body(page, text);
	free(text);
}

static void set_metadata(const char *place, const char *issuer, const char *jwks_uri)
{
	char *text = mem_printf("{\"issuer\":\"%s\",\"jwks_uri\":\"%s\","
				"\"introspection_endpoint\":\"%s/introspect\"}",
				issuer, jwks_uri, world.issuer->origin);

	fake_page_set_body(fake_issuer_page(world.issuer, place), text);
	free(text);
}

static char *own_url(const char *path)
{
	return mem_printf("%s%s", world.issuer->origin, path);
}

/* An issuer that publishes `first`; its verifier is not there yet. */
static void open_world(const char *host)
{
	struct error err = { ERROR_NONE, "" };
	char *jwks_uri;

	memset(&world, 0, sizeof(world));
	world.accepted = (struct slices){ resource, 1 };
	clock_update();
	world.loop = loop_new(&err);
	world.issuer = fake_issuer_start(host);
	world.keys = fake_issuer_page(world.issuer, "/jwks");
	publish(world.keys, &first, NULL);
	jwks_uri = own_url("/jwks");
	set_metadata("/.well-known/oauth-authorization-server", world.issuer->origin, jwks_uri);
	free(jwks_uri);
	world.conf = (struct verifier_issuer_conf){ .issuer = world.issuer->origin,
						    .jwks_interval_ms = 1000,
						    .leeway_ms = 5000 };
	if (host != NULL)
		world.conf.ca = slice_str(world.issuer->certificate);
}

static void on_service_end(void *arg)
{
	fail_msg("nobody keeps to the form");
}

/* What fetches, in this process. */
static void start_service(void)
{
	const struct verifier_conf issuers = { &world.conf, 1 };
	const struct collector_conf none = { .endpoint = NULL };
	const struct fetch_service_conf conf = { .issuers = &issuers, .collector = &none };
	struct error err = { ERROR_NONE, "" };
	int fds[2];

	fetch_service_free(&world.service);
	assert_int_equal(ipc_pair(fds, &err), 0);
	world.service = fetch_service_new(world.loop, &conf, fds[0], on_service_end, NULL, &err);
	assert_non_null(world.service);
	fetch_client_connect(world.client, fds[1]);
}

static void start_verifier(void)
{
	const struct verifier_conf conf = { &world.conf, 1 };
	struct error err = { ERROR_NONE, "" };

	if (world.client == NULL)
		world.client = fetch_client_new(world.loop);
	start_service();
	world.verifier = verifier_new(world.loop, world.client, &conf, &err);
	if (world.verifier == NULL)
		print_error("%s\n", err.text);
	assert_non_null(world.verifier);
}

static int close_world(void **state)
{
	verifier_cancel(&world.wait);
	grant_unref(&world.grant);
	verifier_free(&world.verifier);
	fetch_service_free(&world.service);
	fetch_client_free(&world.client);
	fake_issuer_stop(&world.issuer);
	loop_free(&world.loop);
	return 0;
}

/* Turns until what is asked has been answered, in real time. */
static void settle(void)
{
	uint64_t end = clock_now_ms() + PATIENCE_MS;

	while (!fetch_client_is_idle(world.client) && clock_now_ms() < end)
		loop_turn(world.loop, true);
	assert_true(fetch_client_is_idle(world.client));
}

/* The next `ms` by our clock, in which all that is asked is answered. */
static void pass(uint64_t ms)
{
	uint64_t end = clock_now_ms() + ms;

	settle();
	while (clock_now_ms() < end) {
		clock_advance(100);
		loop_turn(world.loop, false);
		settle();
	}
}

/* ---- checking ---- */

static void on_done(struct verifier_wait *wait, const struct verdict *verdict, struct grant *grant)
{
	assert_false(world.is_told);
	world.is_told = true;
	world.verdict = *verdict;
	world.grant = grant;
}

static bool begin(const char *token)
{
	grant_unref(&world.grant);
	world.wait = (struct verifier_wait){ .on_done = on_done };
	world.is_told = verifier_check(world.verifier, slice_str(token), &world.accepted,
				       &world.wait, &world.verdict, &world.grant);
	return world.is_told;
}

static void finish(void)
{
	uint64_t end = clock_now_ms() + PATIENCE_MS;

	while (!world.is_told && clock_now_ms() < end)
		loop_turn(world.loop, true);
	assert_true(world.is_told);
	assert_int_equal(world.grant != NULL, world.verdict.kind == VERDICT_OK);
}

static enum verdict_kind check(const char *token)
{
	begin(token);
	finish();
	return world.verdict.kind;
}

static void expect(const char *token, enum verdict_kind kind)
{
	enum verdict_kind got = check(token);

	if (got != kind)
		print_error("%s: %s\n", verdict_get(got)->name, world.verdict.cause);
	assert_string_equal(verdict_get(got)->name, verdict_get(kind)->name);
}

/* Claims of a good token for the resource, with a word for the subject. */
static char *claims(const char *issuer, const char *subject)
{
	return mem_printf("{\"iss\":\"%s\",\"sub\":\"%s\",\"client_id\":\"app\",\"aud\":\"" RESOURCE
			  "\",\"scope\":\"a b\",\"exp\":%llu}",
			  issuer, subject, (unsigned long long)(clock_wall_ms() / 1000 + 300));
}

static char *token_by(const struct fake_signer *signer, const char *subject)
{
	char *text = claims(world.issuer->origin, subject);
	char *token = fake_signer_token(signer, text);

	free(text);
	return token;
}

static void expect_of(const struct fake_signer *signer, const char *subject, enum verdict_kind kind)
{
	char *token = token_by(signer, subject);

	expect(token, kind);
	free(token);
}

/* ---- keys ---- */

/* AUTH-AS-01, AUTH-AS-04, AUTH-IN-07: found by discovery, waited for once, then remembered. */
static void a_good_token(void **state)
{
	char *token;

	open_world(NULL);
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(begin(token));
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_OK);
	assert_string_equal(world.grant->issuer, world.issuer->origin);
	assert_string_equal(world.grant->subject, "alice");
	assert_string_equal(world.grant->client_id, "app");
	assert_string_equal(world.grant->algorithm, "RS256");
	assert_true(grant_has_scope(world.grant, SLICE_LIT("b")));
	assert_true(begin(token));
	assert_int_equal(world.verdict.kind, VERDICT_OK);
	assert_int_equal(world.keys->hits, 1);
	free(token);
}

/* AUTH-AUD-01, AUTH-AUD-04: what is remembered is judged for each asker anew. */
static void another_resource_is_refused(void **state)
{
	static const struct slice other[] = { SLICE("https://gw.example/other") };
	char *token;

	open_world(NULL);
	start_verifier();
	token = token_by(&first, "alice");
	expect(token, VERDICT_OK);
	grant_unref(&world.grant);
	assert_true(verifier_check(world.verifier, slice_str(token), &(struct slices){ other, 1 },
				   &world.wait, &world.verdict, &world.grant));
	assert_int_equal(world.verdict.kind, VERDICT_WRONG_AUDIENCE);
	assert_null(world.grant);
	expect(token, VERDICT_OK);
	free(token);
}

/* AUTH-AUD-02 */
static void an_issuer_may_have_other_audiences(void **state)
{
	static const struct slice more[] = { SLICE("api://gateway") };
	static const struct slice other[] = { SLICE("https://gw.example/other") };
	char *token;

	open_world(NULL);
	world.conf.audience = (struct slices){ more, 1 };
	start_verifier();
	token = token_by(&first, "alice");
	expect(token, VERDICT_OK);
	free(token);
	token = mem_printf("{\"iss\":\"%s\",\"sub\":\"a\",\"aud\":\"api://gateway\",\"exp\":%llu}",
			   world.issuer->origin,
			   (unsigned long long)(clock_wall_ms() / 1000 + 300));
	{
		char *signed_one = fake_signer_token(&first, token);

		grant_unref(&world.grant);
		assert_true(verifier_check(world.verifier, slice_str(signed_one),
					   &(struct slices){ other, 1 }, &world.wait,
					   &world.verdict, &world.grant));
		assert_int_equal(world.verdict.kind, VERDICT_OK);
		free(signed_one);
	}
	free(token);
}

/* After a reload that changes nothing about issuers the lists are those of the new configuration; the old one is freed. */
static void an_issuer_goes_on_with_another_configuration(void **state)
{
	struct slice *audience = mem_zalloc(sizeof(*audience));
	struct slice again = SLICE("https://more.example/");
	struct verifier_issuer_conf renewed;
	char *token;
	char *text;

	open_world(NULL);
	*audience = again;
	world.conf.audience = (struct slices){ audience, 1 };
	start_verifier();
	text = mem_printf("{\"iss\":\"%s\",\"sub\":\"alice\",\"client_id\":\"app\",\"aud\":\"%s\","
			  "\"scope\":\"a\",\"exp\":%llu}",
			  world.issuer->origin, again.p,
			  (unsigned long long)(clock_wall_ms() / 1000 + 300));
	token = fake_signer_token(&first, text);
	expect(token, VERDICT_OK);
	renewed = world.conf;
	renewed.audience = (struct slices){ &again, 1 };
	verifier_renew(world.verifier, &(struct verifier_conf){ &renewed, 1 });
	free(audience);
	expect(token, VERDICT_OK);
	free(token);
	free(text);
}

/* Who waits over a reload is judged by what his resource is afterwards. */
static void a_wait_ends_with_another_audience(void **state)
{
	static const struct slice other[] = { SLICE("https://gw.example/other") };
	char *token;

	open_world(NULL);
	world.keys->mode = FAKE_SLOW;
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(begin(token));
	world.accepted.items = other;
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_WRONG_AUDIENCE);
	world.accepted.items = resource;
	expect(token, VERDICT_OK);
	free(token);
}

/* As a reload does it: who waits is the next verifier's from now on. */
static void take_over(const char *issuer)
{
	struct verifier *verifier = world.verifier;
	struct fetch_client *client = world.client;

	world.conf.issuer = issuer;
	world.client = NULL;
	start_verifier();
	verifier_take_over(world.verifier, verifier);
	verifier_free(&verifier);
	fetch_client_free(&client);
}

static void a_wait_goes_on_at_the_next_verifier(void **state)
{
	char *token;

	open_world(NULL);
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(begin(token));
	take_over(world.issuer->origin);
	assert_false(world.is_told);
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_OK);
	assert_string_equal(world.grant->subject, "alice");
	free(token);
}

static void a_wait_ends_at_a_verifier_that_does_not_know_the_issuer(void **state)
{
	char *token;

	open_world(NULL);
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(begin(token));
	take_over("https://other.example");
	assert_true(world.is_told);
	assert_int_equal(world.verdict.kind, VERDICT_UNKNOWN_ISSUER);
	free(token);
}

/* It ends the sessions of a token that it is not as good as before: only for fewer servers, or for a shorter time. */
static void a_token_that_outlives_a_reload(void **state)
{
	static const struct slice both[] = { SLICE("a"), SLICE("b") };
	static const struct {
		struct slices before, now;
		uint64_t ended_ms, ends_ms;
		bool outlives;
	} rows[] = {
		{ { both, 0 }, { both, 0 }, 0, 0, true },
		{ { both, 1 }, { both, 0 }, 0, 0, true },
		{ { both, 1 }, { both, 2 }, 0, 0, true },
		{ { both, 2 }, { both, 2 }, 0, 0, true },
		{ { both, 2 }, { both, 1 }, 0, 0, false },
		{ { both, 1 }, { both + 1, 1 }, 0, 0, false },
		{ { both, 0 }, { both, 2 }, 0, 0, false },
		{ { both, 0 }, { both, 0 }, 0, 5, false },
		{ { both, 0 }, { both, 0 }, 5, 4, false },
		{ { both, 0 }, { both, 0 }, 5, 5, true },
		{ { both, 0 }, { both, 0 }, 5, 0, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct static_token before = { .name = SLICE("t"),
					       .servers = rows[i].before,
					       .ends_at_ms = rows[i].ended_ms };
		struct static_token now = { .name = SLICE("t"),
					    .servers = rows[i].now,
					    .ends_at_ms = rows[i].ends_ms };

		assert_int_equal(static_token_outlives(&before, &(struct static_tokens){ &now, 1 }),
				 rows[i].outlives);
		now.hash[0] = 1; /* another text */
		assert_false(static_token_outlives(&before, &(struct static_tokens){ &now, 1 }));
	}
}

static const struct slice roles_of_a[] = { SLICE("a") };
static const struct slice roles_of_none[] = { SLICE("nobody has this") };

static bool has_role(void)
{
	return role_set_has(&world.grant->roles, 0);
}

/* AUTH-IN-07: neither what is remembered nor what is being asked about keeps the roles of before. */
static void roles_are_those_of_the_configuration(void **state)
{
	struct named_slices when = { SLICE("scope"), { roles_of_a, 1 } };
	struct role role = { .name = SLICE("dev"), .when = { &when, 1 } };
	struct roles roles = { .items = &role, .count = 1 };
	struct fake_page *page;
	char *token;

	open_world(NULL);
	page = fake_issuer_page(world.issuer, "/introspect");
	fake_page_set_body(page, "{\"active\":true}");
	world.conf.roles = &roles;
	world.conf.client_id = "rs";
	world.conf.introspect_always = true;
	start_verifier();
	pass(600);
	token = token_by(&first, "alice");
	expect(token, VERDICT_OK);
	assert_true(has_role());
	when.values.items = roles_of_none;
	verifier_renew(world.verifier, &(struct verifier_conf){ &world.conf, 1 });
	page->mode = FAKE_SLOW;
	assert_false(begin(token));
	when.values.items = roles_of_a;
	verifier_renew(world.verifier, &(struct verifier_conf){ &world.conf, 1 });
	finish();
	assert_true(has_role());
	when.values.items = roles_of_none;
	verifier_renew(world.verifier, &(struct verifier_conf){ &world.conf, 1 });
	expect(token, VERDICT_OK);
	assert_false(has_role());
	free(token);
}

/* ---- once more ---- */

static enum verdict_kind judge_again(const struct grant *grant)
{
	struct verdict verdict = { .kind = VERDICT_OK };
	struct grant *again =
		verifier_judge_again(world.verifier, grant, &world.accepted, &verdict);

	assert_int_equal(again != NULL, verdict.kind == VERDICT_OK);
	if (again != NULL) {
		assert_int_equal(again->source, grant->source);
		assert_int_equal(again->ends_at_ms, grant->ends_at_ms);
		assert_int_equal(again->ask_again_at_ms, grant->ask_again_at_ms);
		assert_int_equal(again->trust_until_ms, grant->trust_until_ms);
		if (grant->source == GRANT_JWT) {
			assert_string_equal(again->algorithm, grant->algorithm);
		}
	}
	grant_unref(&again);
	return verdict.kind;
}

/* A verifier of the configuration as it is now, whose issuer says nothing. */
static enum verdict_kind judge_by_another(const struct grant *grant)
{
	enum verdict_kind kind;

	verifier_free(&world.verifier);
	world.keys->mode = FAKE_HANG;
	start_verifier();
	kind = judge_again(grant);
	return kind;
}

/* AUTH-SES-07: what a grant is worth once rules are others; without a word of its issuer. */
static void a_grant_is_judged_again(void **state)
{
	static const struct slice other[] = { SLICE("https://gw.example/other") };
	static const struct slice elliptic[] = { SLICE("ES256") };
	static const struct slice teams[] = { SLICE("red") };
	static const struct named_slices demand = { SLICE("team"), { teams, 1 } };
	struct verifier_issuer_conf good;
	struct grant *grant;
	char *token;

	open_world(NULL);
	start_verifier();
	token = token_by(&first, "alice");
	expect(token, VERDICT_OK);
	grant = grant_ref(world.grant);
	good = world.conf;
	assert_int_equal(judge_again(grant), VERDICT_OK);
	world.accepted.items = other;
	assert_int_equal(judge_again(grant), VERDICT_WRONG_AUDIENCE);
	world.conf.audience = (struct slices){ resource, 1 };
	assert_int_equal(judge_by_another(grant), VERDICT_OK);
	world.conf = good;
	world.accepted.items = resource;
	assert_int_equal(judge_by_another(grant), VERDICT_OK);
	world.conf.algorithms = (struct slices){ elliptic, 1 };
	assert_int_equal(judge_by_another(grant), VERDICT_BAD_ALG);
	world.conf = good;
	world.conf.required_claims = (struct slice_map){ &demand, 1 };
	assert_int_equal(judge_by_another(grant), VERDICT_POLICY);
	world.conf = good;
	world.conf.max_lifetime_ms = 1000;
	assert_int_equal(judge_by_another(grant), VERDICT_LIFETIME);
	world.conf = good;
	world.conf.client_id = "rs";
	world.conf.introspect_always = true;
	assert_int_equal(judge_by_another(grant), VERDICT_INACTIVE);
	world.conf = good;
	world.conf.issuer = "https://another.example";
	assert_int_equal(judge_by_another(grant), VERDICT_UNKNOWN_ISSUER);
	grant_unref(&grant);
	free(token);
}

/* AUTH-JWT-15: for each asker after the audience, remembered or not; nobody else's business. */
static void an_issuer_may_demand_claims(void **state)
{
	static const struct slice apps[] = { SLICE("other"), SLICE("app") };
	static const struct slice teams[] = { SLICE("red") };
	static const struct named_slices demands[] = { { SLICE("client_id"), { apps, 2 } },
						       { SLICE("team"), { teams, 1 } } };
	static const struct slice other[] = { SLICE("https://gw.example/other") };
	char *token;

	open_world(NULL);
	world.conf.required_claims = (struct slice_map){ demands, 1 };
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	verifier_free(&world.verifier);
	grant_unref(&world.grant);
	world.conf.required_claims.count = 2;
	start_verifier();
	token = token_by(&first, "alice");
	expect(token, VERDICT_POLICY);
	expect(token, VERDICT_POLICY);
	assert_true(verifier_check(world.verifier, slice_str(token), &(struct slices){ other, 1 },
				   &world.wait, &world.verdict, &world.grant));
	assert_int_equal(world.verdict.kind, VERDICT_WRONG_AUDIENCE);
	free(token);
}

/* AUTH-JWT-11 */
static void an_issuer_may_have_a_longest_life(void **state)
{
	open_world(NULL);
	world.conf.max_lifetime_ms = 60000;
	start_verifier();
	expect_of(&first, "alice", VERDICT_LIFETIME);
}

/* AUTH-JWT-04, AUTH-JWT-09, AUTH-ISS-01: nobody is asked about these. */
static void bad_tokens_are_refused_at_once(void **state)
{
	char *expired;
	char *text;

	open_world(NULL);
	world.conf.jwks_interval_ms = 60000; /* the keys are new enough to be sure of them */
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	expect("a.b.c", VERDICT_MALFORMED);
	expect("opaque", VERDICT_MALFORMED);
	expect_of(&stranger, "mallory", VERDICT_BAD_SIGNATURE);
	expect_of(&stranger, "mallory", VERDICT_BAD_SIGNATURE);
	text = claims("http://127.0.0.1:1", "alice");
	expired = fake_signer_token(&first, text);
	expect(expired, VERDICT_UNKNOWN_ISSUER);
	free(expired);
	free(text);
	text = mem_printf("{\"iss\":\"%s\",\"sub\":\"a\",\"exp\":1000}", world.issuer->origin);
	expired = fake_signer_token(&first, text);
	expect(expired, VERDICT_EXPIRED);
	free(expired);
	free(text);
	assert_int_equal(world.keys->hits, 1);
}

/* AUTH-IN-06 */
static void tokens_have_a_size(void **state)
{
	char *token = mem_alloc(VERIFIER_TOKEN_BYTES_MAX + 2);

	open_world(NULL);
	start_verifier();
	memset(token, 'a', VERIFIER_TOKEN_BYTES_MAX + 1);
	token[VERIFIER_TOKEN_BYTES_MAX + 1] = '\0';
	expect(token, VERDICT_TOO_LARGE);
	token[VERIFIER_TOKEN_BYTES_MAX] = '\0';
	expect(token, VERDICT_MALFORMED);
	expect("", VERDICT_MALFORMED);
	free(token);
}

/* AUTH-KEY-04: a new key is found at its first use; the old one goes on. */
static void rotation_is_followed(void **state)
{
	open_world(NULL);
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	publish(world.keys, &first, &second);
	expect_of(&second, "bob", VERDICT_OK);
	expect_of(&first, "alice", VERDICT_OK);
	assert_int_equal(world.keys->hits, 2);
}

/* AUTH-KEY-10: a name that is used again for another key; what is wrong with all keys asks no more. */
static void a_name_of_a_key_is_used_again(void **state)
{
	open_world(NULL);
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	publish(world.keys, &stranger, NULL); /* a `first` as well */
	pass(1100);
	expect_of(&stranger, "bob", VERDICT_OK);
	assert_int_equal(world.keys->hits, 2);
	expect_of(&first, "alice", VERDICT_BAD_SIGNATURE);
	expect_of(&first, "carol", VERDICT_BAD_SIGNATURE);
	assert_int_equal(world.keys->hits, 2);
}

/* AUTH-KEY-06: gone from the set, gone from memory. */
static void a_withdrawn_key_is_gone(void **state)
{
	char *old;

	open_world(NULL);
	start_verifier();
	old = token_by(&first, "alice");
	expect(old, VERDICT_OK);
	publish(world.keys, &second, NULL);
	expect_of(&second, "bob", VERDICT_OK);
	expect(old, VERDICT_UNKNOWN_KEY);
	free(old);
}

/* AUTH-KEY-04: one fetch for all who come, and none so soon again. */
static void unknown_keys_do_not_flood_the_issuer(void **state)
{
	open_world(NULL);
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	for (int i = 0; i < 40; i++) {
		char *subject = mem_printf("user%d", i);

		expect_of(&second, subject, VERDICT_UNKNOWN_KEY);
		free(subject);
	}
	assert_in_range(world.keys->hits, 2, 4);
	pass(1100);
	publish(world.keys, &first, &second);
	expect_of(&second, "bob", VERDICT_OK);
}

/* AUTH-KEY-05: whatever a refresh brings, keys that are known stay, and what is unknown is not "bad". */
static void a_bad_refresh_changes_nothing(void **state)
{
	static const struct {
		enum fake_mode mode;
		int status;
		const char *body;
	} rows[] = {
		{ FAKE_OK, 500, "{\"keys\":[]}" },
		{ FAKE_OK, 200, "<html>Wartung</html>" },
		{ FAKE_OK, 200, "{\"keys\":[]}" },
		{ FAKE_OK, 200, "{}" },
		{ FAKE_OK, 200, "" },
		{ FAKE_OK, 304, "" },
		{ FAKE_CUT, 200, "{\"keys\":[{\"kty\":\"RSA\"}]}" },
		{ FAKE_HUGE, 200, "" },
		{ FAKE_RESET, 200, "" },
	};

	open_world(NULL);
	world.conf.jwks_interval_ms = 1;
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *subject = mem_printf("user%zu", i);

		world.keys->mode = rows[i].mode;
		world.keys->status = rows[i].status;
		fake_page_set_body(world.keys, rows[i].body);
		clock_advance(5);
		expect_of(&second, subject, VERDICT_KEYS_UNAVAILABLE);
		expect_of(&first, subject, VERDICT_OK);
		free(subject);
	}
	world.keys->mode = FAKE_OK;
	world.keys->status = 200;
	publish(world.keys, &first, &second);
	clock_advance(5);
	expect_of(&second, "bob", VERDICT_OK);
}

/* AUTH-KEY-01, SEC-10: a redirect is no answer, and its target hears nothing. */
static void redirects_are_not_followed(void **state)
{
	struct fake_page *canary;

	open_world(NULL);
	canary = fake_issuer_page(world.issuer, "/elsewhere");
	publish(canary, &first, NULL);
	world.keys->status = 302;
	snprintf(world.keys->fields, sizeof(world.keys->fields), "Location: %s/elsewhere\r\n",
		 world.issuer->origin);
	start_verifier();
	expect_of(&first, "alice", VERDICT_KEYS_UNAVAILABLE);
	assert_int_equal(canary->hits, 0);
}

/* AUTH-AS-04: down at the start is "cannot tell"; then it gets well by itself. */
static void an_issuer_that_is_down_at_the_start(void **state)
{
	uint64_t end;
	char *token;

	open_world(NULL);
	world.keys->status = 503;
	start_verifier();
	token = token_by(&first, "alice");
	expect(token, VERDICT_KEYS_UNAVAILABLE);
	world.keys->status = 200;
	end = clock_now_ms() + PATIENCE_MS;
	while (check(token) != VERDICT_OK && clock_now_ms() < end)
		pass(100);
	expect(token, VERDICT_OK);
	free(token);
}

/* AUTH-KEY-07: whoever needs the fetch waits its time and no longer; others do not wait at all. */
static void silence_holds_up_nobody_else(void **state)
{
	uint64_t began;
	char *slow;

	open_world(NULL);
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	world.keys->mode = FAKE_HANG;
	slow = token_by(&second, "bob");
	began = clock_now_ms();
	assert_false(begin(slow));
	{
		struct verifier_wait other = { .on_done = on_done };
		char *quick = token_by(&first, "carol");
		struct verdict verdict;
		struct grant *grant;

		assert_true(verifier_check(world.verifier, slice_str(quick), &world.accepted,
					   &other, &verdict, &grant));
		assert_int_equal(verdict.kind, VERDICT_OK);
		grant_unref(&grant);
		free(quick);
	}
	while (!world.is_told && clock_now_ms() - began < PATIENCE_MS) {
		clock_advance(20);
		loop_turn(world.loop, false);
	}
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_KEYS_UNAVAILABLE);
	assert_in_range(clock_now_ms() - began, 9000, 11500);
	free(slow);
}

/* AUTH-AS-02: a document that names another issuer is not used. */
static void a_lying_document_is_not_used(void **state)
{
	char *jwks_uri;

	open_world(NULL);
	jwks_uri = own_url("/jwks");
	set_metadata("/.well-known/oauth-authorization-server", "https://id.example", jwks_uri);
	start_verifier();
	expect_of(&first, "alice", VERDICT_KEYS_UNAVAILABLE);
	assert_int_equal(world.keys->hits, 0);
	assert_null(verifier_metadata(world.verifier, 0));
	free(jwks_uri);
}

/* AUTH-AS-01: the places in their order, with a path in the issuer. */
static void discovery_asks_in_order(void **state)
{
	char *name;
	char *jwks_uri;
	char *text;
	char *token;

	open_world(NULL);
	name = own_url("/tenant");
	jwks_uri = own_url("/jwks");
	set_metadata("/tenant/.well-known/openid-configuration", name, jwks_uri);
	world.conf.issuer = name;
	start_verifier();
	text = claims(name, "alice");
	token = fake_signer_token(&first, text);
	expect(token, VERDICT_OK);
	assert_int_equal(world.issuer->other_hits, 2);
	assert_non_null(verifier_metadata(world.verifier, 0));
	free(token);
	free(text);
	free(jwks_uri);
	free(name);
}

/* AUTH-AS-01: a configured address needs no metadata. */
static void keys_from_a_configured_address(void **state)
{
	char *jwks_uri;

	open_world(NULL);
	jwks_uri = own_url("/jwks");
	fake_issuer_page(world.issuer, "/.well-known/oauth-authorization-server")->status = 404;
	world.conf.jwks_uri = jwks_uri;
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	free(jwks_uri);
}

static struct issuer_report report(void)
{
	struct issuer_report report;

	assert_true(verifier_report_issuer(world.verifier, 0, &report));
	return report;
}

/* An issuer that is down from the start is told of, though nobody has a token of it. */
static void what_an_issuer_lacks_is_reported(void **state)
{
	struct fake_page *metadata;
	struct issuer_report first_report, second_report;

	open_world(NULL);
	metadata = fake_issuer_page(world.issuer, "/.well-known/oauth-authorization-server");
	metadata->status = 503;
	start_verifier();
	first_report = report();
	assert_false(first_report.has_keys || first_report.is_failing); /* not answered yet */
	for (uint64_t end = clock_now_ms() + PATIENCE_MS;
	     !report().is_failing && clock_now_ms() < end;)
		pass(100);
	second_report = report();
	assert_true(second_report.is_failing && !second_report.has_keys);
	assert_int_equal(second_report.keyless_since_ms, first_report.keyless_since_ms);
	assert_non_null(strstr(second_report.cause, "its metadata: "));
	assert_string_equal(second_report.name, world.issuer->origin);
	metadata->status = 200;
	for (uint64_t end = clock_now_ms() + PATIENCE_MS;
	     !report().has_keys && clock_now_ms() < end;)
		pass(100);
	assert_true(report().has_keys && !report().is_failing);
	world.keys->status = 503; /* the keys from before are good for a while */
	for (int i = 0; i < 1000 && !report().is_failing; i++)
		pass(1000);
	assert_true(report().has_keys && report().is_failing);
	assert_string_equal(report().cause, "its keys: status 503");
	assert_false(verifier_report_issuer(world.verifier, 1, &first_report));
}

/* Nobody signs: there are no keys to wait for. */
static void an_issuer_of_opaque_tokens_needs_no_keys(void **state)
{
	char *text;

	open_world(NULL);
	text = mem_printf("{\"issuer\":\"%s\",\"introspection_endpoint\":\"%s/introspect\"}",
			  world.issuer->origin, world.issuer->origin);
	fake_page_set_body(fake_issuer_page(world.issuer,
					    "/.well-known/oauth-authorization-server"),
			   text);
	free(text);
	world.conf.client_id = "rs";
	start_verifier();
	for (uint64_t end = clock_now_ms() + PATIENCE_MS;
	     verifier_metadata(world.verifier, 0) == NULL && clock_now_ms() < end;)
		pass(100);
	pass(11000);
	assert_true(report().has_keys && !report().is_failing);
}

/* AUTH-AS-04: keys or not, where to ask about opaque tokens is said by the metadata alone. */
static void metadata_that_come_late_beside_configured_keys(void **state)
{
	struct fake_page *metadata;
	char *jwks_uri;

	open_world(NULL);
	jwks_uri = own_url("/jwks");
	metadata = fake_issuer_page(world.issuer, "/.well-known/oauth-authorization-server");
	metadata->status = 503;
	world.conf.jwks_uri = jwks_uri;
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	assert_null(verifier_metadata(world.verifier, 0));
	metadata->status = 200;
	for (uint64_t end = clock_now_ms() + PATIENCE_MS;
	     verifier_metadata(world.verifier, 0) == NULL && clock_now_ms() < end;)
		pass(100);
	assert_non_null(verifier_metadata(world.verifier, 0));
	free(jwks_uri);
}

/* AUTH-AS-05: the keys have moved; the old address fails, the metadata know the new one. */
static void keys_that_have_moved(void **state)
{
	char *moved;

	open_world(NULL);
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	moved = own_url("/moved");
	publish(fake_issuer_page(world.issuer, "/moved"), &second, NULL);
	set_metadata("/.well-known/oauth-authorization-server", world.issuer->origin, moved);
	world.keys->status = 404;
	expect_of(&second, "bob", VERDICT_KEYS_UNAVAILABLE);
	pass(1000);
	expect_of(&second, "bob", VERDICT_OK);
	expect_of(&first, "carol", VERDICT_UNKNOWN_KEY);
	free(moved);
}

/* AUTH-AS-04: what fails is tried after longer and longer pauses, however well the rest works. */
static void failed_fetches_keep_their_distance(void **state)
{
	struct fake_page *metadata;

	open_world(NULL);
	metadata = fake_issuer_page(world.issuer, "/.well-known/oauth-authorization-server");
	world.keys->status = 500;
	start_verifier();
	pass(3000);
	assert_in_range(world.keys->hits, 2, 4);
	assert_in_range(metadata->hits, 2, 5);
}

/* AUTH-KEY-03, AUTH-AS-05: a tag is one of the address that it came from. */
static void a_tag_does_not_move(void **state)
{
	struct fake_page *page;
	char *moved;

	open_world(NULL);
	strcpy(world.keys->etag, "\"v1\"");
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	moved = own_url("/moved");
	page = fake_issuer_page(world.issuer, "/moved");
	strcpy(page->etag, "\"v1\"");
	publish(page, &second, NULL);
	set_metadata("/.well-known/oauth-authorization-server", world.issuer->origin, moved);
	world.keys->etag[0] = '\0';
	world.keys->status = 404;
	expect_of(&second, "bob", VERDICT_KEYS_UNAVAILABLE);
	pass(1100);
	expect_of(&second, "bob", VERDICT_OK);
	free(moved);
}

/* AUTH-KEY-03: a set that is the same is not sent again, and counts as fetched. */
static void an_etag_is_used(void **state)
{
	open_world(NULL);
	strcpy(world.keys->etag, "\"v1\"");
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
	expect_of(&second, "bob", VERDICT_UNKNOWN_KEY);
	assert_non_null(strstr(world.keys->request, "If-None-Match: \"v1\""));
	assert_int_equal(world.keys->hits, 2);
	expect_of(&first, "carol", VERDICT_OK);
}

/* ---- TLS ---- */

/* AUTH-KEY-02 */
static void tls_with_the_right_name(void **state)
{
	open_world("localhost");
	start_verifier();
	expect_of(&first, "alice", VERDICT_OK);
}

/* AUTH-KEY-02: the certificate is trusted but for somebody else. */
static void tls_with_another_name(void **state)
{
	open_world("other.example");
	start_verifier();
	expect_of(&first, "alice", VERDICT_KEYS_UNAVAILABLE);
	assert_int_equal(world.keys->hits, 0);
}

/* AUTH-KEY-02: nobody vouches for the certificate. */
static void tls_that_is_not_trusted(void **state)
{
	struct fake_issuer *other = fake_issuer_start("localhost");

	open_world("localhost");
	world.conf.ca = slice_str(other->certificate);
	start_verifier();
	expect_of(&first, "alice", VERDICT_KEYS_UNAVAILABLE);
	assert_int_equal(world.keys->hits, 0);
	fake_issuer_stop(&other);
}

/* ---- waiting ---- */

/* Whoever leaves is not told; whoever comes with the same token shares the work. */
static void waits_are_shared_and_cancelled(void **state)
{
	struct verifier_wait other = { .on_done = on_done };
	struct verdict verdict;
	struct grant *grant;
	char *token;

	open_world(NULL);
	world.keys->mode = FAKE_SLOW;
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(verifier_check(world.verifier, slice_str(token), &world.accepted, &other,
				    &verdict, &grant));
	assert_false(begin(token));
	verifier_cancel(&other);
	verifier_cancel(&other);
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_OK);
	assert_null(other.job);
	free(token);
}

/* All waits are given up, and the verifier ends with the work under way. */
static void ending_in_the_middle(void **state)
{
	char *token;

	open_world(NULL);
	world.keys->mode = FAKE_HANG;
	start_verifier();
	token = token_by(&first, "alice");
	assert_false(begin(token));
	for (uint64_t end = clock_now_ms() + PATIENCE_MS;
	     world.keys->hits == 0 && clock_now_ms() < end;)
		loop_turn(world.loop, true);
	verifier_cancel(&world.wait);
	verifier_free(&world.verifier);
	free(token);
}

/* ---- introspection ---- */

static struct fake_page *open_introspection_with(const char *answer, enum client_auth_method method)
{
	struct fake_page *page;

	open_world(NULL);
	world.conf.auth_method = method;
	page = fake_issuer_page(world.issuer, "/introspect");
	fake_page_set_body(page, answer);
	world.conf.client_id = "gateway rs";
	world.conf.client_secret = "s:e%cret";
	start_verifier();
	pass(600); /* the metadata say where to ask */
	return page;
}

static struct fake_page *open_introspection(const char *answer)
{
	return open_introspection_with(answer, CLIENT_SECRET_BASIC);
}

#define ACTIVE                                                                         \
	"{\"active\":true,\"sub\":\"alice\",\"aud\":\"" RESOURCE "\",\"scope\":\"a\"," \
	"\"exp\":99999999999"

/* AUTH-OPQ-01, AUTH-OPQ-02, AUTH-OPQ-03 */
static void an_opaque_token(void **state)
{
	struct fake_page *page;

	page = open_introspection(ACTIVE "}");
	expect("opaque+token/1==", VERDICT_OK);
	assert_int_equal(world.grant->source, GRANT_INTROSPECTION);
	assert_string_equal(world.grant->subject, "alice");
	assert_non_null(strstr(page->request, "token=opaque%2Btoken%2F1%3D%3D&token_type_hint="));
	/* gateway%20rs:s%3Ae%25cret */
	assert_non_null(strstr(page->request,
			       "Authorization: Basic Z2F0ZXdheSUyMHJzOnMlM0FlJTI1Y3JldA==\r\n"));
	assert_non_null(strstr(page->request, "Accept: application/json\r\n"));
	expect("opaque+token/1==", VERDICT_OK);
	assert_int_equal(page->hits, 1);
}

/* AUTH-OPQ-01: client_secret_post, RFC 6749 s2.3.1 */
static void a_secret_in_the_form(void **state)
{
	struct fake_page *page;

	page = open_introspection_with(ACTIVE "}", CLIENT_SECRET_POST);
	expect("opaque", VERDICT_OK);
	assert_non_null(strstr(page->request, "\r\n\r\nclient_id=gateway%20rs&client_secret="
					      "s%3Ae%25cret&token=opaque&token_type_hint="));
	assert_null(strstr(page->request, "Authorization"));
}

/* AUTH-OPQ-02: each answer, and what it makes of the token. */
static void answers_of_introspection(void **state)
{
	static const struct {
		const char *body;
		enum verdict_kind kind;
	} rows[] = {
		{ "{\"active\":false}", VERDICT_INACTIVE },
		{ "{}", VERDICT_INACTIVE },
		{ "{\"active\":\"true\"}", VERDICT_INACTIVE },
		{ "{\"active\":1}", VERDICT_INACTIVE },
		{ ACTIVE ",\"iss\":\"https://other.example\"}", VERDICT_INACTIVE },
		{ ACTIVE ",\"nbf\":4000000000}", VERDICT_NOT_YET_VALID },
		{ ACTIVE ",\"cnf\":{\"jkt\":\"x\"}}", VERDICT_BOUND },
		{ "{\"active\":true,\"sub\":\"a\",\"aud\":\"" RESOURCE "\",\"exp\":1000}",
		  VERDICT_EXPIRED },
		{ "{\"active\":true,\"sub\":\"a\"}", VERDICT_WRONG_AUDIENCE },
		{ "{\"active\":true,\"aud\":\"" RESOURCE "\"}", VERDICT_NO_PRINCIPAL },
		{ "{\"active\":true,\"sub\":\"a\",\"aud\":\"" RESOURCE "\"}", VERDICT_OK },
		{ "<html>", VERDICT_INTROSPECTION_UNAVAILABLE },
		{ "", VERDICT_INTROSPECTION_UNAVAILABLE },
	};
	struct fake_page *page = open_introspection("{}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *token = mem_printf("opaque%zu", i);
		int before;

		fake_page_set_body(page, rows[i].body);
		expect(token, rows[i].kind);
		before = page->hits;
		if (verdict_get(rows[i].kind)->outcome != VERDICT_UNAVAILABLE) {
			expect(token, rows[i].kind);
			assert_int_equal(page->hits, before);
		}
		free(token);
	}
}

/* AUTH-OPQ-04: an outage is never the token's fault, and is not remembered. */
static void introspection_that_is_down(void **state)
{
	static const struct {
		enum fake_mode mode;
		int status;
	} rows[] = { { FAKE_OK, 500 },    { FAKE_OK, 401 },  { FAKE_OK, 302 },
		     { FAKE_RESET, 200 }, { FAKE_CUT, 200 }, { FAKE_HUGE, 200 } };
	struct fake_page *page = open_introspection(ACTIVE "}");

	expect("known", VERDICT_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		page->mode = rows[i].mode;
		page->status = rows[i].status;
		expect("asked", VERDICT_INTROSPECTION_UNAVAILABLE);
		expect("known", VERDICT_OK);
		assert_true(report().introspection_failing);
	}
	/* Whoever is not asked any more may be well again. */
	pass(9 * 60000);
	assert_true(report().introspection_failing);
	pass(60000);
	assert_false(report().introspection_failing);
	expect("asked", VERDICT_INTROSPECTION_UNAVAILABLE);
	assert_true(report().introspection_failing);
	page->mode = FAKE_OK;
	page->status = 200;
	expect("asked", VERDICT_OK);
	assert_false(report().introspection_failing);
}

/* AUTH-OPQ-03: equal tokens in flight share one call. */
static void questions_are_shared(void **state)
{
	struct fake_page *page = open_introspection(ACTIVE "}");
	struct verifier_wait other = { .on_done = on_done };
	struct verdict verdict;
	struct grant *grant;

	page->mode = FAKE_SLOW;
	assert_false(verifier_check(world.verifier, SLICE_LIT("opaque"), &world.accepted, &other,
				    &verdict, &grant));
	assert_false(begin("opaque"));
	verifier_cancel(&other);
	finish();
	assert_int_equal(world.verdict.kind, VERDICT_OK);
	assert_int_equal(page->hits, 1);
}

static void on_refused(struct verifier_wait *wait, const struct verdict *verdict,
		       struct grant *grant)
{
	assert_int_equal(verdict->kind, VERDICT_INTROSPECTION_UNAVAILABLE);
	assert_null(grant);
}

/* Asks about `count` tokens, whose names begin so, and waits for each like `model`. */
static void ask_about(struct verifier_wait *waits, size_t count, const char *name,
		      struct verifier_wait model)
{
	struct verdict verdict;
	struct grant *grant;

	for (size_t i = 0; i < count; i++) {
		char *token = mem_printf("%s%zu", name, i);

		waits[i] = model;
		waits[i].on_done = on_refused;
		assert_false(verifier_check(world.verifier, slice_str(token), &world.accepted,
					    &waits[i], &verdict, &grant));
		free(token);
	}
	loop_turn(world.loop, false);
}

/* AUTH-OPQ-03, AUTH-CH-11: whoever guesses without end leaves places for others. */
static void suspects_do_not_take_all_places(void **state)
{
	struct fake_page *page = open_introspection(ACTIVE "}");
	static struct verifier_wait waits[INTROSPECTIONS_MAX];

	page->mode = FAKE_HANG;
	ask_about(waits, ARRAY_LEN(waits), "guess", (struct verifier_wait){ .is_suspect = true });
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		assert_int_equal(waits[i].job != NULL, i < INTROSPECTIONS_SUSPECT_MAX);
	assert_false(begin("opaque"));
	loop_turn(world.loop, false);
	assert_non_null(world.wait.job);
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		verifier_cancel(&waits[i]);
}

/* The same for one address whose first guesses are not answered yet: nothing has failed so far. */
static void one_address_does_not_take_all_places(void **state)
{
	struct fake_page *page = open_introspection(ACTIVE "}");
	static struct verifier_wait waits[INTROSPECTIONS_MAX];

	page->mode = FAKE_HANG;
	ask_about(waits, ARRAY_LEN(waits), "guess", (struct verifier_wait){ .asker = 7 });
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		assert_int_equal(waits[i].job != NULL, i < INTROSPECTIONS_SUSPECT_MAX);
	ask_about(&waits[INTROSPECTIONS_SUSPECT_MAX], VERIFIER_OWN_MAX, "other",
		  (struct verifier_wait){ .asker = 8 });
	for (size_t i = 0; i < INTROSPECTIONS_SUSPECT_MAX + VERIFIER_OWN_MAX; i++)
		assert_non_null(waits[i].job);
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		verifier_cancel(&waits[i]);
}

/* AUTH-OPQ-08: who keeps something open learns when to ask again; a JWT that was not asked about, never. */
static void answers_hold_for_a_while(void **state)
{
	struct fake_page *page;
	uint64_t before_ms;

	page = open_introspection(ACTIVE "}");
	expect_of(&first, "alice", VERDICT_OK);
	assert_int_equal(world.grant->ask_again_at_ms, UINT64_MAX);
	assert_int_equal(world.grant->trust_until_ms, UINT64_MAX);
	verifier_free(&world.verifier);
	world.conf.introspection_ttl_ms = 5000;
	world.conf.introspection_endpoint = own_url("/introspect");
	start_verifier();
	free((char *)(uintptr_t)world.conf.introspection_endpoint);
	before_ms = clock_now_ms();
	expect("opaque", VERDICT_OK);
	assert_in_range(world.grant->ask_again_at_ms, before_ms + 5000, clock_now_ms() + 5000);
	assert_int_equal(world.grant->trust_until_ms, world.grant->ask_again_at_ms + 45000);
	expect("opaque", VERDICT_OK);
	assert_int_equal(page->hits, 1);
	publish(world.keys, &second, NULL);
	pass(1100); /* then a new key may be asked for */
	expect_of(&second, "bob", VERDICT_OK);
	expect("opaque", VERDICT_OK); /* keys come and go */
	assert_int_equal(page->hits, 1);
	pass(5000);
	expect("opaque", VERDICT_OK);
	assert_int_equal(page->hits, 2);
	assert_true(world.grant->ask_again_at_ms > clock_now_ms());
}

/* AUTH-SES-07 */
static void an_answer_is_judged_again(void **state)
{
	struct grant *grant;

	open_introspection("{\"active\":true,\"sub\":\"alice\",\"aud\":\"" RESOURCE "\"}");
	expect("opaque", VERDICT_OK);
	grant = grant_ref(world.grant);
	assert_int_equal(judge_again(grant), VERDICT_OK);
	world.conf.client_id = NULL; /* nobody is asked any more */
	assert_int_not_equal(judge_by_another(grant), VERDICT_OK);
	grant_unref(&grant);
}

/* AUTH-OPQ-05: asked in addition; a JWT that is bad here is not even shown. */
static void introspection_of_every_token(void **state)
{
	struct fake_page *page;

	open_world(NULL);
	page = fake_issuer_page(world.issuer, "/introspect");
	fake_page_set_body(page, "{\"active\":true}");
	world.conf.client_id = "rs";
	world.conf.introspect_always = true;
	start_verifier();
	pass(600);
	expect_of(&first, "alice", VERDICT_OK);
	assert_int_equal(world.grant->source, GRANT_JWT);
	assert_int_equal(page->hits, 1);
	expect_of(&stranger, "mallory", VERDICT_BAD_SIGNATURE);
	assert_int_equal(page->hits, 1);
	fake_page_set_body(page, "{\"active\":false}");
	expect_of(&first, "bob", VERDICT_INACTIVE);
	/* AUTH-POP-01: no downgrade to a bearer token. */
	fake_page_set_body(page, "{\"active\":true,\"cnf\":{\"jkt\":\"x\"}}");
	expect_of(&first, "dora", VERDICT_BOUND);
	page->status = 500;
	expect_of(&first, "carol", VERDICT_INTROSPECTION_UNAVAILABLE);
}

/* ---- configurations ---- */

/* AUTH-CFG-01, AUTH-JWT-02 */
static void impossible_configurations(void **state)
{
	static const char *const urls[] = { "http://id.example",
					    "https://id.example?x=1",
					    "https://id.example#f",
					    "https://u@id.example",
					    "id.example",
					    "ftp://id.example",
					    "https://",
					    "" };
	static const struct slice algorithms[] = { SLICE("none"), SLICE("HS256"), SLICE("rs256") };
	struct verifier_issuer_conf issuer = { .issuer = "https://id.example",
					       .ca = SLICE("no PEM") };
	const struct verifier_conf conf = { &issuer, 1 };
	struct error err = { ERROR_NONE, "" };

	memset(&world, 0, sizeof(world));
	world.loop = loop_new(&err);
	world.client = fetch_client_new(world.loop);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		issuer.issuer = urls[i];
		assert_null(verifier_new(world.loop, world.client, &conf, &err));
	}
	issuer.issuer = "https://id.example";
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) { /* AUTH-KEY-09 */
		issuer.jwks_uri = urls[i];
		assert_null(verifier_new(world.loop, world.client, &conf, &err));
		assert_non_null(strstr(err.text, "jwks_uri"));
	}
	issuer.jwks_uri = NULL;
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		assert_null(algorithm_find(algorithms[i]));
		issuer.algorithms = (struct slices){ &algorithms[i], 1 };
		assert_null(verifier_new(world.loop, world.client, &conf, &err));
	}
	assert_non_null(algorithm_find(SLICE_LIT("PS512")));
	assert_int_equal(url_check_ours(SLICE_LIT("http://[::1]:8080/x"), &err), 0);
}

static void ignore(struct issuer *issuer)
{
	(void)issuer;
}

/* REL-51: gateways that lost an issuer at the same moment come back to it at different ones. */
static void failures_are_spread(void **state)
{
	static const struct issuer_ops ops = { ignore, ignore };
	const struct verifier_issuer_conf conf = { .issuer = "https://id.example",
						   .jwks_interval_ms = 1000 };
	const struct fetch_answer answer = { .error = "nobody is there" };
	struct error err = { ERROR_NONE, "" };
	struct issuer issuers[16];
	size_t others = 0;

	memset(&world, 0, sizeof(world));
	world.loop = loop_new(&err);
	world.client = fetch_client_new(world.loop);
	for (size_t i = 0; i < ARRAY_LEN(issuers); i++) {
		struct inquiry *inquiry = &issuers[i].discovery.inquiry;

		assert_int_equal(issuer_init(&issuers[i], world.loop, world.client, i, &conf, &ops,
					     &err),
				 0);
		inquiry_cancel(inquiry);
		inquiry->on_done(inquiry, &answer);
		assert_in_range(issuers[i].discovery.due_ms - clock_now_ms(), 500, 1000);
		others += issuers[i].discovery.due_ms != issuers[0].discovery.due_ms;
	}
	assert_true(others > 0);
	for (size_t i = 0; i < ARRAY_LEN(issuers); i++)
		issuer_fini(&issuers[i]);
}

static int make_signers(void **state)
{
	struct error err = { ERROR_NONE, "" };

	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	fake_signer_init(&first, "RS256", "first");
	fake_signer_init(&second, "ES256", "second");
	fake_signer_init(&stranger, "RS256", "first");
	return verifier_prepare(&err) < 0 ? -1 : fetch_service_prepare(&err);
}

static int free_signers(void **state)
{
	fake_signer_fini(&first);
	fake_signer_fini(&second);
	fake_signer_fini(&stranger);
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, close_world)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_good_token),
		TEST(another_resource_is_refused),
		TEST(an_issuer_may_have_other_audiences),
		TEST(an_issuer_goes_on_with_another_configuration),
		TEST(a_wait_ends_with_another_audience),
		TEST(a_wait_goes_on_at_the_next_verifier),
		TEST(a_wait_ends_at_a_verifier_that_does_not_know_the_issuer),
		cmocka_unit_test(a_token_that_outlives_a_reload),
		TEST(roles_are_those_of_the_configuration),
		TEST(a_grant_is_judged_again),
		TEST(an_answer_is_judged_again),
		TEST(an_issuer_may_demand_claims),
		TEST(an_issuer_may_have_a_longest_life),
		TEST(bad_tokens_are_refused_at_once),
		TEST(tokens_have_a_size),
		TEST(rotation_is_followed),
		TEST(a_name_of_a_key_is_used_again),
		TEST(a_withdrawn_key_is_gone),
		TEST(unknown_keys_do_not_flood_the_issuer),
		TEST(a_bad_refresh_changes_nothing),
		TEST(redirects_are_not_followed),
		TEST(an_issuer_that_is_down_at_the_start),
		TEST(silence_holds_up_nobody_else),
		TEST(a_lying_document_is_not_used),
		TEST(discovery_asks_in_order),
		TEST(keys_from_a_configured_address),
		TEST(what_an_issuer_lacks_is_reported),
		TEST(an_issuer_of_opaque_tokens_needs_no_keys),
		TEST(metadata_that_come_late_beside_configured_keys),
		TEST(keys_that_have_moved),
		TEST(failed_fetches_keep_their_distance),
		TEST(a_tag_does_not_move),
		TEST(an_etag_is_used),
		TEST(tls_with_the_right_name),
		TEST(tls_with_another_name),
		TEST(tls_that_is_not_trusted),
		TEST(waits_are_shared_and_cancelled),
		TEST(ending_in_the_middle),
		TEST(an_opaque_token),
		TEST(a_secret_in_the_form),
		TEST(answers_of_introspection),
		TEST(introspection_that_is_down),
		TEST(questions_are_shared),
		TEST(suspects_do_not_take_all_places),
		TEST(one_address_does_not_take_all_places),
		TEST(answers_hold_for_a_while),
		TEST(introspection_of_every_token),
		TEST(impossible_configurations),
		TEST(failures_are_spread),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_signers, free_signers);
}
