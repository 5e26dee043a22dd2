/* SPDX-License-Identifier: Apache-2.0 */
/* Claims, audiences, URLs, addresses, and what is remembered: all that needs neither key nor net. */
#include "auth/grant.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "auth/document.h"
#include "auth/issuer.h"
#include "auth/url.h"
#include "auth/verifier.c"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "policy/roles.h"

#define NOW_MS 1700000000000
#define EXP "\"exp\":1700000300"

static struct grant_rules rules = { .issuer = "https://id.example",
				    .leeway_ms = 60000,
				    .must_expire = true };

static struct grant *grant_of(const char *claims, enum verdict_kind *kind_r)
{
	struct verdict verdict = { .kind = VERDICT_OK };
	struct error err = { ERROR_NONE, "" };
	json_t *json = document_parse(slice_str(claims), &err);
	struct grant *grant = NULL;

	if (json != NULL)
		grant = grant_new(json, &rules, NOW_MS, &verdict);
	*kind_r = json != NULL ? verdict.kind : VERDICT_MALFORMED;
	json_decref(json);
	return grant;
}

/* AUTH-JWT-10, AUTH-JWT-12, AUTH-JWT-13, AUTH-JWT-14, AUTH-POP-01 */
static void claims_and_their_verdicts(void **state)
{
	static const struct {
		const char *claims;
		enum verdict_kind kind;
	} rows[] = {
		{ "{\"sub\":\"a\"," EXP "}", VERDICT_OK },
		{ "{\"client_id\":\"a\"," EXP "}", VERDICT_OK },
		{ "{\"azp\":\"a\"," EXP "}", VERDICT_OK },
		{ "{\"sub\":\"a\",\"exp\":1700000300.5}", VERDICT_OK },
		{ "{\"sub\":\"a\",\"exp\":1699999941}", VERDICT_OK },
		{ "{\"sub\":\"a\",\"exp\":1699999940}", VERDICT_EXPIRED },
		{ "{\"sub\":\"a\",\"exp\":0}", VERDICT_EXPIRED },
		{ "{\"sub\":\"a\"}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":\"1700000300\"}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":true}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":null}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":-1}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":9007199254740992}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":1e300}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":1e999}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"exp\":18446744073709551616}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\"," EXP ",\"nbf\":1700000060}", VERDICT_OK },
		{ "{\"sub\":\"a\"," EXP ",\"nbf\":1700000061}", VERDICT_NOT_YET_VALID },
		{ "{\"sub\":\"a\"," EXP ",\"nbf\":\"0\"}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\"," EXP ",\"iat\":1700000061}", VERDICT_NOT_YET_VALID },
		/* AUTH-JWT-07 */
		{ "{\"sub\":\"a\"," EXP ",\"at_hash\":\"x\"}", VERDICT_OK },
		{ "{\"sub\":\"a\"," EXP ",\"s_hash\":\"x\"}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\"," EXP ",\"c_hash\":null}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\"," EXP ",\"nonce\":\"x\"}", VERDICT_OK },
		{ "{" EXP "}", VERDICT_NO_PRINCIPAL },
		{ "{\"sub\":\"\"," EXP "}", VERDICT_NO_PRINCIPAL },
		{ "{\"sub\":42," EXP "}", VERDICT_NO_PRINCIPAL },
		{ "{\"sub\":null,\"client_id\":\"a\"," EXP "}", VERDICT_NO_PRINCIPAL },
		{ "{\"sub\":\"a\\n\"," EXP "}", VERDICT_NO_PRINCIPAL },
		{ "{\"sub\":\"a\\u0000b\"," EXP "}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"client_id\":7," EXP "}", VERDICT_MALFORMED },
		{ "{\"sub\":\"a\",\"cnf\":{}," EXP "}", VERDICT_BOUND },
		{ "{\"sub\":\"a\",\"cnf\":null," EXP "}", VERDICT_BOUND },
		{ "{\"sub\":\"a\",\"cnf\":{\"kid\":\"x\"}," EXP "}", VERDICT_BOUND },
		{ "{\"sub\":\"a\",\"cnf\":{\"jkt\":\"short\"}," EXP "}", VERDICT_BOUND },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum verdict_kind kind;
		struct grant *grant = grant_of(rows[i].claims, &kind);

		if (kind != rows[i].kind)
			print_error("%s\n", rows[i].claims);
		assert_string_equal(verdict_get(kind)->name, verdict_get(rows[i].kind)->name);
		assert_int_equal(grant != NULL, kind == VERDICT_OK);
		grant_unref(&grant);
	}
}

/* AUTH-JWT-11 */
static void long_lives_are_refused(void **state)
{
	static const struct {
		const char *claims;
		enum verdict_kind kind;
	} rows[] = {
		{ "{\"sub\":\"a\",\"iat\":1700000000," EXP "}", VERDICT_OK },
		{ "{\"sub\":\"a\",\"iat\":1699999999," EXP "}", VERDICT_LIFETIME },
		{ "{\"sub\":\"a\",\"iat\":0," EXP "}", VERDICT_LIFETIME },
		{ "{\"sub\":\"a\"," EXP "}", VERDICT_LIFETIME },
	};

	rules.max_lifetime_ms = 300000;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum verdict_kind kind;
		struct grant *grant = grant_of(rows[i].claims, &kind);

		assert_string_equal(verdict_get(kind)->name, verdict_get(rows[i].kind)->name);
		grant_unref(&grant);
	}
	rules.max_lifetime_ms = 0;
}

/* AUTH-JWT-15 */
static void demands_are_met_exactly(void **state)
{
	static const struct slice values[] = { SLICE("red"), SLICE("7"), SLICE("true") };
	static const struct named_slices demand = { SLICE("team"), { values, ARRAY_LEN(values) } };
	static const struct {
		const char *team;
		bool is_met;
	} rows[] = {
		{ "\"red\"", true },
		{ "[\"blue\",\"red\"]", true },
		{ "7", true },
		{ "[7]", true },
		{ "true", true },
		{ "\"Red\"", false },
		{ "\"red \"", false },
		{ "\"red\\u0000\"", false },
		{ "\"\"", false },
		{ "7.0", false },
		{ "[[\"red\"]]", false },
		{ "{\"red\":\"red\"}", false },
		{ "[]", false },
		{ "null", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *claims = mem_printf("{\"sub\":\"a\",\"team\":%s," EXP "}", rows[i].team);
		enum verdict_kind kind;
		struct grant *grant = grant_of(claims, &kind);

		if (grant != NULL && grant_meets(grant, &demand) != rows[i].is_met)
			fail_msg("%s", rows[i].team);
		assert_true(grant != NULL || !rows[i].is_met);
		grant_unref(&grant);
		free(claims);
	}
}

/* SEC-56: all claims of a role, of each one value; and nobody has a role that asks for none. */
static void claims_give_roles(void **state)
{
	static const struct slice dev[] = { SLICE("dev"), SLICE("ops") };
	static const struct slice seven[] = { SLICE("7") };
	static const struct slice read[] = { SLICE("read") };
	static const struct named_slices groups[] = { { SLICE("groups"), { dev, 2 } } };
	static const struct named_slices both[] = { { SLICE("groups"), { dev, 2 } },
						    { SLICE("tid"), { seven, 1 } } };
	static const struct named_slices scope[] = { { SLICE("scope"), { read, 1 } } };
	static const struct named_slices empty[] = { { SLICE("groups"), { NULL, 0 } } };
	static struct role items[] = { { .name = SLICE("a"), .when = { groups, 1 } },
				       { .name = SLICE("b"), .when = { both, 2 } },
				       { .name = SLICE("c"), .when = { scope, 1 } },
				       { .name = SLICE("d"), .when = { empty, 1 } },
				       { .name = SLICE("e"), .when = { NULL, 0 } } };
	static const struct roles roles = { .items = items, .count = 5, .named = 5 };
	static const struct {
		const char *claims;
		uint64_t roles;
	} rows[] = {
		{ "\"x\":1", 0 },
		{ "\"groups\":\"dev\"", 1 },
		{ "\"groups\":[\"a\",\"ops\"]", 1 },
		{ "\"groups\":\"dev ops\"", 0 },
		{ "\"groups\":\"Dev\"", 0 },
		{ "\"groups\":[[\"dev\"]]", 0 },
		{ "\"groups\":{\"dev\":true}", 0 },
		{ "\"groups\":[\"dev\"],\"tid\":7", 3 },
		{ "\"tid\":\"7\"", 0 },
		{ "\"scope\":\"write read\"", 4 },
		{ "\"scp\":[\"read\"]", 4 },
		{ "\"scope\":\"readers\"", 0 },
		{ "\"groups\":\"\"", 0 },
	};

	rules.roles = &roles;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *claims = mem_printf("{\"sub\":\"a\"," EXP ",%s}", rows[i].claims);
		enum verdict_kind kind;
		struct grant *grant = grant_of(claims, &kind);

		assert_non_null(grant);
		if (grant->roles.words[0] != rows[i].roles)
			fail_msg("%s: %u", rows[i].claims, (unsigned int)grant->roles.words[0]);
		grant_unref(&grant);
		free(claims);
	}
	rules.roles = NULL;
}

static void what_a_grant_holds(void **state)
{
	static const char *const thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
	enum verdict_kind kind;
	struct grant *grant = grant_of(
		"{\"sub\":\"alice\",\"azp\":\"app\",\"appid\":\"no\",\"scope\":\"a  b a\",\"scp\":[\"c\","
		"\"d e\",1,\"x\\u00e4\"],\"exp\":1700000300.75,\"cnf\":{\"jkt\":"
		"\"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k\"}}",
		&kind);
	struct grant *again;

	assert_non_null(grant);
	assert_string_equal(grant->subject, "alice");
	assert_string_equal(grant->client_id, "app");
	assert_string_equal(grant->jkt, thumbprint);
	assert_string_equal(grant->x5t_s256, "");
	assert_int_equal(grant->expires_at_s, 1700000300);
	assert_int_equal(grant->ends_at_ms, 1700000360750);
	/* AUTH-SCP-05: both claims, each once, whole */
	assert_int_equal(grant->scope_count, 5);
	assert_true(grant_has_scope(grant, SLICE_LIT("e")));
	assert_false(grant_has_scope(grant, SLICE_LIT("A")));
	assert_false(grant_has_scope(grant, SLICE_LIT("d e")));
	assert_false(grant_has_scope(grant, SLICE_LIT("")));
	again = grant_ref(grant);
	grant_unref(&grant);
	assert_string_equal(again->subject, "alice");
	grant_unref(&again);
}

/* A claim is told as text; of what is no text, nothing is. */
static void claims_are_told_as_text(void **state)
{
	static const struct {
		const char *name;
		const char *text; /* NULL: it is not told */
	} rows[] = {
		{ "sub", "alice" }, { "n", "7" },      { "yes", "true" },
		{ "no", "false" },  { "list", NULL },  { "object", NULL },
		{ "null", NULL },   { "empty", NULL }, { "none", NULL },
	};
	enum verdict_kind kind;
	struct grant *grant =
		grant_of("{\"sub\":\"alice\",\"exp\":1700000300,\"n\":7,\"yes\":true,\"no\":false,"
			 "\"list\":[1],\"object\":{},\"null\":null,\"empty\":\"\"}",
			 &kind);

	assert_string_equal(verdict_get(kind)->name, "none");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		assert_int_equal(grant_append_claim(grant, slice_str(rows[i].name), &out),
				 rows[i].text != NULL);
		assert_true(slice_is_equal(buf_slice(&out),
					   slice_str(rows[i].text != NULL ? rows[i].text : "")));
		buf_fini(&out);
	}
	grant_unref(&grant);
}

/* AUTH-SCP-05: large directories give a token a scope for each group. */
static void many_scopes_are_held(void **state)
{
	struct buf claims = { .data = NULL };
	enum verdict_kind kind;
	struct grant *grant;

	buf_append_str(&claims, "{\"sub\":\"a\"," EXP ",\"scope\":\"");
	for (int i = 0; i < 300; i++)
		buf_printf(&claims, "s%d ", i);
	buf_append_str(&claims, "\"}");
	buf_terminate(&claims);
	grant = grant_of(claims.data, &kind);
	assert_non_null(grant);
	assert_int_equal(grant->scope_count, 256);
	assert_true(grant_has_scope(grant, SLICE_LIT("s64")));
	assert_true(grant_has_scope(grant, SLICE_LIT("s255")));
	grant_unref(&grant);
	buf_fini(&claims);
}

/* AUTH-JWT-12: what a name may be long, and what it may not. */
static void names_have_a_length(void **state)
{
	static const struct {
		const char *claim;
		int longest;
		enum verdict_kind longer;
	} rows[] = { { "sub", 1024, VERDICT_NO_PRINCIPAL },
		     { "client_id", 2048, VERDICT_MALFORMED } };

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		int length = rows[i / 2].longest + (int)(i % 2);
		char *claims =
			mem_printf("{\"%s\":\"%0*d\"," EXP "}", rows[i / 2].claim, length, 7);
		enum verdict_kind kind;
		struct grant *grant = grant_of(claims, &kind);

		assert_int_equal(kind, i % 2 == 0 ? VERDICT_OK : rows[i / 2].longer);
		grant_unref(&grant);
		free(claims);
	}
}

/* AUTH-AUD-01, AUTH-AUD-03, AUTH-AUD-05, AUTH-AUD-06 */
static void audiences(void **state)
{
	static const struct {
		const char *aud;
		const char *resource;
		bool is_for;
	} rows[] = {
		{ "\"https://gw.example/mcp\"", "https://gw.example/mcp", true },
		{ "\"https://gw.example/mcp/\"", "https://gw.example/mcp", true },
		{ "\"https://gw.example/mcp\"", "https://gw.example/mcp/", true },
		{ "\"https://gw.example\"", "https://gw.example/", true },
		{ "\"HTTPS://GW.example:443/mcp\"", "https://gw.example/mcp", true },
		{ "\"http://gw.example:80\"", "http://gw.example", true },
		{ "[\"x\",\"https://gw.example/mcp\"]", "https://gw.example/mcp", true },
		{ "\"api://gateway\"", "api://gateway", true },
		{ "\"gateway\"", "gateway", true },
		{ "\"Gateway\"", "gateway", false },
		{ "\"https://gw.example/MCP\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example/mcp//\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example/mcp/x\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example/mcp?x=/\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example/mcp?x\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example/mcp.evil.example\"", "https://gw.example/mcp", false },
		{ "\"https://gw.example:444/mcp\"", "https://gw.example/mcp", false },
		{ "\"http://gw.example/mcp\"", "https://gw.example/mcp", false },
		{ "\"http://gw.example:443/mcp\"", "https://gw.example/mcp", false },
		{ "\"https://hw.example/mcp\"", "https://gw.example/mcp", false },
		{ "\"https://u@gw.example/mcp\"", "https://gw.example/mcp", false },
		{ "[]", "https://gw.example/mcp", false },
		{ "[\"https://gw.example/mcp\",1]", "https://gw.example/mcp", false },
		{ "[[\"https://gw.example/mcp\"]]", "https://gw.example/mcp", false },
		{ "{\"https://gw.example/mcp\":1}", "https://gw.example/mcp", false },
		{ "1", "1", false },
		{ "null", "null", false },
		{ "\"\"", "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice accepted = slice_str(rows[i].resource);
		char claims[256];
		enum verdict_kind kind;
		struct grant *grant;

		snprintf(claims, sizeof(claims), "{\"sub\":\"a\"," EXP ",\"aud\":%s}", rows[i].aud);
		grant = grant_of(claims, &kind);
		assert_non_null(grant);
		if (grant_is_for(grant, (struct slices){ &accepted, 1 }) != rows[i].is_for)
			print_error("%s for %s\n", rows[i].aud, rows[i].resource);
		assert_int_equal(grant_is_for(grant, (struct slices){ &accepted, 1 }),
				 rows[i].is_for);
		assert_false(grant_is_for(grant, (struct slices){ &accepted, 0 }));
		grant_unref(&grant);
	}
}

/* AUTH-AUD-02: only where there is no `aud`, and only by the rules. */
static void client_may_be_the_audience(void **state)
{
	static const struct slice accepted[] = { SLICE("app"), SLICE("other") };
	static const struct {
		const char *claims;
		bool is_for;
	} rows[] = {
		{ "{\"sub\":\"a\",\"client_id\":\"app\"," EXP "}", true },
		{ "{\"sub\":\"a\",\"azp\":\"app\"," EXP "}", true },
		{ "{\"sub\":\"a\",\"client_id\":\"apple\"," EXP "}", false },
		{ "{\"sub\":\"a\",\"client_id\":\"app\",\"aud\":\"x\"," EXP "}", false },
		{ "{\"sub\":\"a\",\"client_id\":\"app\",\"aud\":[]," EXP "}", false },
		{ "{\"sub\":\"a\",\"client_id\":\"app\",\"aud\":null," EXP "}", false },
		{ "{\"sub\":\"app\"," EXP "}", false },
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		bool is_allowed = i < ARRAY_LEN(rows);
		enum verdict_kind kind;
		struct grant *grant;

		rules.client_is_audience = is_allowed;
		grant = grant_of(rows[i % ARRAY_LEN(rows)].claims, &kind);
		rules.client_is_audience = false;
		assert_non_null(grant);
		assert_int_equal(grant_is_for(grant, (struct slices){ accepted, 2 }),
				 is_allowed && rows[i % ARRAY_LEN(rows)].is_for);
		grant_unref(&grant);
	}
}

/* AUTH-JWT-07: of those whose access tokens have no `aud`, what has an `at_hash` is an ID token. */
static void hash_of_a_token_tells_where_there_is_no_audience(void **state)
{
	enum verdict_kind kind;

	rules.client_is_audience = true;
	assert_null(grant_of("{\"sub\":\"a\"," EXP ",\"aud\":\"app\",\"at_hash\":\"x\"}", &kind));
	rules.client_is_audience = false;
	assert_int_equal(kind, VERDICT_MALFORMED);
}

/* AUTH-CH-03, AUTH-CH-05: what clients may read. */
static void descriptions_are_harmless(void **state)
{
	for (unsigned int i = 0; i < VERDICT_COUNT; i++) {
		const char *text = verdict_get((enum verdict_kind)i)->description;
		enum verdict_outcome outcome = verdict_get((enum verdict_kind)i)->outcome;
		bool is_refusal = outcome == VERDICT_REFUSED || outcome == VERDICT_DENIED;

		assert_int_equal(text[0] != '\0', is_refusal);
		assert_null(strpbrk(text, "\"\\="));
		for (; *text != '\0'; text++)
			assert_in_range(*text, 0x20, 0x7E);
	}
}

/* AUTH-CFG-01, AUTH-AS-03 */
static void urls_that_we_may_ask(void **state)
{
	static const struct {
		const char *url;
		bool is_good;
	} rows[] = {
		{ "https://id.example", true },
		{ "https://id.example/", true },
		{ "https://id.example:8443/tenant/v2", true },
		{ "https://[2001:db8::1]:8443/x", true },
		{ "http://127.0.0.1:9000", true },
		{ "http://127.1.2.3", true },
		{ "http://localhost:9000/x", true },
		{ "http://[::1]:9000", true },
		{ "http://id.example", false },
		{ "http://127.0.0.1.evil.example", false },
		{ "http://localhost.evil.example", false },
		{ "http://127.0.0.1@evil.example", false },
		{ "https://id.example?x", false },
		{ "https://id.example/#", false },
		{ "https://id.example/a b", false },
		{ "https://id.example\\@x", false },
		{ "https://:443", false },
		{ "https://id.example:", false },
		{ "https://id.example:x", false },
		{ "https://[::1", false },
		{ "https:///x", false },
		{ "file:///etc/passwd", false },
		{ "://x", false },
		{ "", false },
	};
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if ((url_check_ours(slice_str(rows[i].url), &err) == 0) != rows[i].is_good)
			print_error("%s\n", rows[i].url);
		assert_int_equal(url_check_ours(slice_str(rows[i].url), &err) == 0,
				 rows[i].is_good);
	}
}

static bool may_connect(const char *text, bool loopback, bool private)
{
	const struct address_filter address_filter = { loopback, private };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return address_filter_allows(&address_filter, (struct sockaddr *)&in);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return address_filter_allows(&address_filter, (struct sockaddr *)&in6);
}

/* AUTH-KEY-09, SEC-10 */
static void addresses_that_may_be_reached(void **state)
{
	static const char *const always[] = { "1.1.1.1",          "172.15.0.1",    "172.32.0.1",
					      "100.63.255.255",   "192.0.1.1",     "2606:4700::1",
					      "64:ff9b::101:101", "::ffff:1.1.1.1" };
	static const char *const never[] = {
		"0.0.0.0",           "169.254.169.254",
		"224.0.0.1",         "255.255.255.255",
		"240.0.0.1",         "100.100.100.200",
		"192.0.0.192",       "::",
		"fe80::1",           "ff02::1",
		"fd00:ec2::254",     "::ffff:169.254.169.254",
		"168.63.129.16",     "::ffff:168.63.129.16",
		"fd00:ec2::23",      "64:ff9b:1::a9fe:a9fe",
		"::169.254.1.1",     "64:ff9b::169.254.169.254",
		"2002:a9fe:a9fe::1", "2001::1",
		"fd20:ce::254",      "fd00:c1::a9fe:a9fe",
	};
	static const char *const private[] = {
		"10.0.0.1",        "172.16.0.1",        "172.31.255.255", "192.168.1.1",
		"100.64.0.1",      "198.18.0.1",        "fc00::1",        "fdff::1",
		"::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::",   "fec0::1",
		"fd20:ce::253",    "fd00:c1::1"
	};
	static const char *const loopback[] = { "127.0.0.1", "127.255.0.1", "::1",
						"::ffff:127.0.0.1" };

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		assert_true(may_connect(always[i], false, false));
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		assert_false(may_connect(never[i], true, true));
	for (size_t i = 0; i < ARRAY_LEN(private); i++) {
		assert_false(may_connect(private[i], true, false));
		assert_true(may_connect(private[i], false, true));
	}
	for (size_t i = 0; i < ARRAY_LEN(loopback); i++) {
		assert_false(may_connect(loopback[i], false, false));
		assert_true(may_connect(loopback[i], true, false));
	}
	assert_false(address_filter_allows(&(struct address_filter){ true, true },
					   &(struct sockaddr){ .sa_family = AF_UNIX }));
}

static void places_of_metadata(void **state)
{
	static const struct {
		const char *issuer;
		const char *urls[4];
	} rows[] = {
		{ "https://id.example",
		  { "https://id.example/.well-known/oauth-authorization-server",
		    "https://id.example/.well-known/openid-configuration", NULL } },
		{ "https://id.example/",
		  { "https://id.example/.well-known/oauth-authorization-server",
		    "https://id.example/.well-known/openid-configuration", NULL } },
		{ "https://id.example:8443/a/b/",
		  { "https://id.example:8443/.well-known/oauth-authorization-server/a/b",
		    "https://id.example:8443/.well-known/openid-configuration/a/b",
		    "https://id.example:8443/a/b/.well-known/openid-configuration", NULL } },
	};

	/* AUTH-AS-01, RFC 8414 s3.1 */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t at = 0;

		for (; rows[i].urls[at] != NULL; at++) {
			char *url = issuer_metadata_url(rows[i].issuer, at);

			assert_non_null(url);
			assert_string_equal(url, rows[i].urls[at]);
			free(url);
		}
		assert_null(issuer_metadata_url(rows[i].issuer, at));
	}
}

/* AUTH-AS-02, AUTH-AS-03 */
static void metadata_that_may_be_used(void **state)
{
	static const struct {
		const char *document;
		bool is_good;
	} rows[] = {
		{ "{\"issuer\":\"https://id.example\",\"jwks_uri\":\"https://keys.example/k\"}",
		  true },
		{ "{\"issuer\":\"https://id.example\"}", true },
		{ "{\"issuer\":\"https://id.example/\"}", false },
		{ "{\"issuer\":\"https://ID.example\"}", false },
		{ "{\"issuer\":[\"https://id.example\"]}", false },
		{ "{}", false },
		{ "{\"issuer\":\"https://id.example\",\"jwks_uri\":\"http://127.0.0.1/k\"}",
		  false },
		{ "{\"issuer\":\"https://id.example\",\"jwks_uri\":\"file:///k\"}", false },
		{ "{\"issuer\":\"https://id.example\",\"jwks_uri\":7}", false },
		{ "{\"issuer\":\"https://id.example\",\"introspection_endpoint\":\"gopher://x\"}",
		  false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct error err = { ERROR_NONE, "" };
		json_t *json = document_parse(slice_str(rows[i].document), &err);

		assert_int_equal(issuer_metadata_check(json, "https://id.example", &err) == 0,
				 rows[i].is_good);
		json_decref(json);
	}
}

/* A member of `count` numbers, `depth` deep. */
static bool is_document(size_t depth, size_t count)
{
	struct buf text = { 0 };
	struct error err;
	json_t *json;

	buf_append_str(&text, "{\"a\":");
	for (size_t i = 1; i < depth; i++)
		buf_append_char(&text, '[');
	for (size_t i = 1; i < count; i++)
		buf_append_str(&text, "0,");
	buf_append_char(&text, '0');
	for (size_t i = 1; i < depth; i++)
		buf_append_char(&text, ']');
	buf_append_char(&text, '}');
	json = document_parse(buf_slice(&text), &err);
	buf_fini(&text);
	json_decref(json);
	return json != NULL;
}

static void documents_are_bounded(void **state)
{
	assert_true(is_document(DOCUMENT_DEPTH_MAX, 1));
	assert_false(is_document(DOCUMENT_DEPTH_MAX + 1, 1));
	assert_true(is_document(2, DOCUMENT_VALUES_MAX - 2));
	assert_false(is_document(2, DOCUMENT_VALUES_MAX - 1));
}

/* AUTH-KEY-03 */
static void lifetimes(void **state)
{
	static const struct {
		const char *field;
		uint64_t seconds;
	} rows[] = {
		{ "", 600 },
		{ "public", 600 },
		{ "max-age=300", 300 },
		{ "public, Max-Age = 300 , x", 300 },
		{ "max-age=1", 60 },
		{ "max-age=99999999", 86400 },
		{ "max-age=99999999999999999999", 600 },
		{ "max-age=-1", 600 },
		{ "no-store", 60 },
		{ ",,=,", 600 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(issuer_lifetime_ms(slice_str(rows[i].field)),
				 rows[i].seconds * 1000);
}

/* ---- what is remembered: AUTH-IN-07, AUTH-KEY-06 ---- */

static void remember(struct token_cache *cache, const char *token, size_t issuer)
{
	const struct verdict verdict = { .kind = VERDICT_INACTIVE };
	struct token_digest digest = token_cache_digest(cache, slice_str(token));

	token_cache_put(cache, &digest, issuer, &verdict, NULL, 1000);
}

static bool knows(struct token_cache *cache, const char *token)
{
	struct token_digest digest = token_cache_digest(cache, slice_str(token));

	return token_cache_find(cache, &digest) != NULL;
}

static void memory_is_bounded_and_forgets(void **state)
{
	struct token_cache cache;

	clock_freeze(1000);
	token_cache_init(&cache, 3);
	remember(&cache, "a", 0);
	remember(&cache, "b", 1);
	remember(&cache, "c", 0);
	assert_true(knows(&cache, "a"));
	remember(&cache, "d", 1); /* b was used longest ago */
	assert_false(knows(&cache, "b"));
	assert_true(knows(&cache, "a"));
	assert_true(knows(&cache, "c"));
	token_cache_forget_keys(&cache, 0);
	assert_false(knows(&cache, "a"));
	assert_true(knows(&cache, "d"));
	remember(&cache, "d", 1);
	assert_int_equal(cache.count, 1);
	clock_freeze(1999);
	assert_true(knows(&cache, "d"));
	clock_freeze(2000);
	assert_false(knows(&cache, "d"));
	assert_int_equal(cache.count, 0);
	token_cache_fini(&cache);
}

/* Not past the token's own end, whatever the cache was told. */
static void memory_ends_with_the_token(void **state)
{
	const struct verdict verdict = { .kind = VERDICT_OK };
	struct token_digest digest;
	struct token_cache cache;
	enum verdict_kind kind;
	struct grant *grant = grant_of("{\"sub\":\"a\"," EXP "}", &kind);

	assert_non_null(grant);
	token_cache_init(&cache, 3);
	digest = token_cache_digest(&cache, SLICE_LIT("t"));
	token_cache_put(&cache, &digest, 0, &verdict, grant, 1000);
	assert_null(token_cache_find(&cache, &digest)); /* 2023 is over */
	grant->ends_at_ms = UINT64_MAX;
	token_cache_put(&cache, &digest, 0, &verdict, grant, 1000);
	assert_non_null(token_cache_find(&cache, &digest));
	token_cache_fini(&cache);
	grant_unref(&grant);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims_and_their_verdicts),
		cmocka_unit_test(hash_of_a_token_tells_where_there_is_no_audience),
		cmocka_unit_test(long_lives_are_refused),
		cmocka_unit_test(demands_are_met_exactly),
		cmocka_unit_test(claims_give_roles),
		cmocka_unit_test(what_a_grant_holds),
		cmocka_unit_test(claims_are_told_as_text),
		cmocka_unit_test(many_scopes_are_held),
		cmocka_unit_test(names_have_a_length),
		cmocka_unit_test(audiences),
		cmocka_unit_test(client_may_be_the_audience),
		cmocka_unit_test(descriptions_are_harmless),
		cmocka_unit_test(urls_that_we_may_ask),
		cmocka_unit_test(addresses_that_may_be_reached),
		cmocka_unit_test(places_of_metadata),
		cmocka_unit_test(metadata_that_may_be_used),
		cmocka_unit_test(documents_are_bounded),
		cmocka_unit_test(lifetimes),
		cmocka_unit_test(memory_is_bounded_and_forgets),
		cmocka_unit_test(memory_ends_with_the_token),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
