/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plaintext, with big-endian numbers:
 * 	kind 1, round 4, child 8, call 16, issued 8, expires 8,
 * 	caller 32, digest 32, text
 * It was made by this program, or another version of it, so only length and kind are checked.
 */
#include "router/seal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/router.h"
#include "router/server_request.h"
#include "session/principal.h"

#define FORMAT "g2."
#define HEAD_CHARS (sizeof(FORMAT) - 1 + SEAL_KID_CHARS + 1)
#define LABEL "mcpgated requestState g2"
#define NAME_LABEL "mcpgated task id g2"
#define SALT_BYTES 12
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define FIELD_BYTES (1 + 4 + 8 + SEAL_CALL_BYTES + 8 + 8 + DIGEST_BYTES + DIGEST_BYTES)
#define LEAST_BYTES (SALT_BYTES + NONCE_BYTES + FIELD_BYTES + TAG_BYTES)
#define MOST_BYTES (LEAST_BYTES + SEAL_TEXT_MAX)

/* ---- keys ---- */

static void hmac(const struct seal_key *key, const unsigned char *text, size_t size,
		 unsigned char out[SEAL_KEY_BYTES])
{
	unsigned int n = 0;

	CHECK(HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), text, size, out, &n) != NULL &&
	      n == SEAL_KEY_BYTES);
}

static void set_kid(struct seal_key *key)
{
	static const unsigned char label[] = "mcpgated kid";
	unsigned char bytes[SEAL_KEY_BYTES];

	hmac(key, label, sizeof(label), bytes);
	CHECK(text_base64url(bytes, SEAL_KID_CHARS * 3 / 4, key->kid) == SEAL_KID_CHARS);
}

void seal_keys_init(struct seal_keys *keys, const unsigned char *kept, size_t count)
{
	CHECK(count <= SEAL_KEPT_MAX);
	*keys = (struct seal_keys){ .kept_count = count };
	random_bytes(keys->process.bytes, sizeof(keys->process.bytes));
	set_kid(&keys->process);
	for (size_t i = 0; i < count; i++) {
		memcpy(keys->kept[i].bytes, kept + i * SEAL_KEY_BYTES, SEAL_KEY_BYTES);
		set_kid(&keys->kept[i]);
	}
}

void seal_keys_fini(struct seal_keys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}

static const struct seal_key *key_for(const struct seal_keys *keys, enum seal_kind kind)
{
	return kind == SEAL_PARKED || keys->kept_count == 0 ? &keys->process : &keys->kept[0];
}

static const struct seal_key *find_key(const struct seal_keys *keys, const char *kid)
{
	if (memcmp(keys->process.kid, kid, SEAL_KID_CHARS) == 0)
		return &keys->process;
	for (size_t i = 0; i < keys->kept_count; i++) {
		if (memcmp(keys->kept[i].kid, kid, SEAL_KID_CHARS) == 0)
			return &keys->kept[i];
	}
	return NULL;
}

/* ---- the AEAD ---- */

/*
 * Begins to encrypt or decrypt, with the key that the salt leads to and with the nonce, and adds
 * the other authenticated data. The caller frees the context.
 */
static EVP_CIPHER_CTX *begin_aead(const struct seal_key *key, struct slice server,
				  const unsigned char *salt_and_nonce, bool encrypts)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	unsigned char text[sizeof(LABEL) + SALT_BYTES] = LABEL; /* the NUL separates */
	unsigned char own[SEAL_KEY_BYTES];
	int n;

	memcpy(text + sizeof(LABEL), salt_and_nonce, SALT_BYTES);
	hmac(key, text, sizeof(text), own);
	CHECK(ctx != NULL);
	CHECK(EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, own, salt_and_nonce + SALT_BYTES,
				encrypts) == 1);
	CHECK(EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *)FORMAT, sizeof(FORMAT) - 1) ==
	      1);
	CHECK(server.n > 0);
	CHECK(EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *)server.p, (int)server.n) == 1);
	explicit_bzero(own, sizeof(own));
	return ctx;
}

/* Encrypts in place; the tag is put behind the text. */
static void encrypt(EVP_CIPHER_CTX *ctx, unsigned char *text, size_t size)
{
	int n;

	CHECK(EVP_CipherUpdate(ctx, text, &n, text, (int)size) == 1 && (size_t)n == size);
	CHECK(EVP_CipherFinal_ex(ctx, text + size, &n) == 1 && n == 0);
	CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, text + size) == 1);
}

/* Decrypts in place; the tag is behind the text. */
static bool decrypt(EVP_CIPHER_CTX *ctx, unsigned char *text, size_t size)
{
	int n;

	CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, text + size) == 1);
	CHECK(EVP_CipherUpdate(ctx, text, &n, text, (int)size) == 1 && (size_t)n == size);
	return EVP_CipherFinal_ex(ctx, text + size, &n) == 1;
}

/* ---- the fields ---- */

static void append_number(struct buf *out, uint64_t number, int bytes)
{
	while (bytes-- > 0)
		buf_append_char(out, (char)(number >> 8 * bytes & 0xff));
}

static uint64_t take_number(const unsigned char **at, int bytes)
{
	uint64_t number = 0;

	while (bytes-- > 0)
		number = number << 8 | *(*at)++;
	return number;
}

/* Includes the lengths of the parts, so that they do not run together. */
static void digest_caller(const struct identity *caller, struct digest *digest_r)
{
	const struct slice *const parts[] = { &caller->issuer, &caller->subject, &caller->client };
	at_end(buf_fini) struct buf text = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		append_number(&text, parts[i]->n, 8);
		buf_append_slice(&text, *parts[i]);
	}
	digest_bytes(buf_slice(&text), digest_r);
}

static void append_fields(struct buf *out, const struct seal_binding *binding,
			  const struct seal *seal)
{
	struct digest caller;

	digest_caller(binding->caller, &caller);
	append_number(out, seal->kind, 1);
	append_number(out, seal->round, 4);
	append_number(out, seal->child, 8);
	buf_append(out, seal->call, sizeof(seal->call));
	append_number(out, seal->issued_at_s, 8);
	append_number(out, seal->expires_at_s, 8);
	buf_append(out, caller.bytes, sizeof(caller.bytes));
	buf_append(out, binding->digest->bytes, sizeof(binding->digest->bytes));
}

/*
 * The id of a task is a name and no secret, and must be the same each time: its salt and nonce are
 * derived from everything that is sealed, so that they are the same only if the text is.
 */
static void choose_nonce(const struct seal_key *key, const struct seal_binding *binding,
			 enum seal_kind kind, unsigned char *bytes, size_t size)
{
	unsigned char chosen[SEAL_KEY_BYTES];
	at_end(buf_fini) struct buf text = { 0 };

	if (kind != SEAL_TASK) {
		random_bytes(bytes, SALT_BYTES + NONCE_BYTES);
		return;
	}
	buf_append(&text, NAME_LABEL, sizeof(NAME_LABEL)); /* the NUL separates */
	append_number(&text, binding->server.n, 8);
	buf_append_slice(&text, binding->server);
	buf_append(&text, bytes + SALT_BYTES + NONCE_BYTES, size - SALT_BYTES - NONCE_BYTES);
	hmac(key, (const unsigned char *)text.data, text.len, chosen);
	memcpy(bytes, chosen, SALT_BYTES + NONCE_BYTES);
}

void seal_append(struct buf *out, const struct seal_keys *keys, const struct seal_binding *binding,
		 const struct seal *seal)
{
	const struct seal_key *key = key_for(keys, seal->kind);
	at_end(buf_fini) struct buf bytes = { 0 };
	unsigned char *text;
	EVP_CIPHER_CTX *ctx;

	CHECK(seal->text.n <= SEAL_TEXT_MAX);
	buf_reserve(&bytes, SALT_BYTES + NONCE_BYTES);
	bytes.len = SALT_BYTES + NONCE_BYTES;
	append_fields(&bytes, binding, seal);
	buf_append_slice(&bytes, seal->text);
	buf_reserve(&bytes, TAG_BYTES);
	text = (unsigned char *)bytes.data;
	choose_nonce(key, binding, seal->kind, text, bytes.len);
	ctx = begin_aead(key, binding->server, text, true);
	encrypt(ctx, text + SALT_BYTES + NONCE_BYTES, bytes.len - SALT_BYTES - NONCE_BYTES);
	EVP_CIPHER_CTX_free(ctx);
	bytes.len += TAG_BYTES;
	buf_append_str(out, "\"" FORMAT);
	buf_append(out, key->kid, sizeof(key->kid));
	buf_append_char(out, '.');
	out->len += text_base64url(bytes.data, bytes.len, buf_reserve(out, bytes.len * 4 / 3 + 3));
	buf_append_char(out, '"');
}

/* Decodes the text, and decrypts it into `plain`; the fields begin at *at_r and end at *end_r. */
static int decode(const struct seal_keys *keys, struct slice server, struct slice text,
		  struct buf *plain, const unsigned char **at_r, const unsigned char **end_r,
		  struct error *err)
{
	const struct seal_key *key;
	unsigned char *bytes;
	EVP_CIPHER_CTX *ctx;
	size_t n = 0;
	bool is_genuine;

	if (text.n < HEAD_CHARS || text.n > HEAD_CHARS + (MOST_BYTES * 4 + 2) / 3 ||
	    !slice_has_prefix(text, SLICE_LIT(FORMAT)) || text.p[HEAD_CHARS - 1] != '.')
		return error_set(err, ERROR_INVALID, "it is not of our form");
	key = find_key(keys, text.p + sizeof(FORMAT) - 1);
	if (key == NULL)
		return error_set(err, ERROR_INVALID, "its key is not known, or no longer");
	text = slice_of(text.p + HEAD_CHARS, text.n - HEAD_CHARS);
	bytes = (unsigned char *)buf_reserve(plain, text.n);
	if (text_from_base64url(text, bytes, &n) < 0 || n < LEAST_BYTES)
		return error_set(err, ERROR_INVALID, "it is not of our form");
	ctx = begin_aead(key, server, bytes, false);
	n -= SALT_BYTES + NONCE_BYTES + TAG_BYTES;
	*at_r = bytes + SALT_BYTES + NONCE_BYTES;
	*end_r = *at_r + n;
	is_genuine = decrypt(ctx, bytes + SALT_BYTES + NONCE_BYTES, n);
	EVP_CIPHER_CTX_free(ctx);
	if (!is_genuine)
		return error_set(err, ERROR_INVALID,
				 "it was changed, or belongs to another server");
	return 0;
}

static bool take_equal(const unsigned char **at, const struct digest *expected)
{
	struct slice have = slice_of((const char *)*at, sizeof(expected->bytes));

	*at += sizeof(expected->bytes);
	return text_is_equal_secret(have, slice_of((const char *)expected->bytes,
						   sizeof(expected->bytes)));
}

int seal_open(const struct seal_keys *keys, const struct seal_binding *binding, struct json sealed,
	      uint64_t now_s, struct buf *plain, struct seal *seal_r, struct error *err)
{
	const unsigned char *at = NULL;
	const unsigned char *end = NULL;
	struct digest caller;
	bool is_callers;
	bool is_same_request;

	if (decode(keys, binding->server, scan_plain_string(sealed), plain, &at, &end, err) < 0)
		return -1;
	*seal_r = (struct seal){ .kind = (enum seal_kind)take_number(&at, 1) };
	seal_r->round = (uint32_t)take_number(&at, 4);
	seal_r->child = take_number(&at, 8);
	memcpy(seal_r->call, at, sizeof(seal_r->call));
	at += sizeof(seal_r->call);
	seal_r->issued_at_s = take_number(&at, 8);
	seal_r->expires_at_s = take_number(&at, 8);
	digest_caller(binding->caller, &caller);
	is_callers = take_equal(&at, &caller);
	is_same_request = take_equal(&at, binding->digest);
	seal_r->text = slice_between((const char *)at, (const char *)end);
	if (seal_r->kind < SEAL_PARKED || seal_r->kind > SEAL_COUNTS)
		return error_set(err, ERROR_INVALID, "its kind is not known");
	if (!is_callers)
		return error_set(err, ERROR_INVALID, "it belongs to another caller");
	if (!is_same_request)
		return error_set(err, ERROR_INVALID, "it belongs to another request");
	if (now_s >= seal_r->expires_at_s)
		return error_set(err, ERROR_INVALID, "it has expired");
	return 0;
}

/* ---- the requestState of a request ---- */

/*
 * A server's own state is kept exactly as it was written: it may be signed with a key that only its
 * process has.
 */

static struct seal_binding binding_of(const struct client *client, const struct digest *digest)
{
	return (struct seal_binding){ .server = slice_str(client->server->conf.name),
				      .caller = &client->principal->identity,
				      .digest = digest };
}

static void append(struct buf *out, const struct client *client, const struct digest *digest,
		   struct seal *seal)
{
	struct seal_binding binding = binding_of(client, digest);

	seal->issued_at_s = clock_wall_ms() / 1000;
	seal->expires_at_s = seal->issued_at_s + REQUEST_STATE_TTL_MS / 1000;
	seal_append(out, &client->router->seal_keys, &binding, seal);
}

void request_state_append_parked(struct buf *out, const struct client *client,
				 const struct digest *digest,
				 const unsigned char id[SEAL_CALL_BYTES], uint32_t round)
{
	struct seal seal = { .kind = SEAL_PARKED, .round = round };

	memcpy(seal.call, id, sizeof(seal.call));
	append(out, client, digest, &seal);
}

void request_state_append_replay(struct buf *out, const struct call *call, uint64_t child,
				 struct slice wanted)
{
	struct seal seal = { .kind = SEAL_REPLAY, .child = child, .text = wanted };

	append(out, call->client, kept_digest_get(call->digest), &seal);
}

/* ---- what a modern server asks ---- */

#define REQUESTS_MAX 64 /* of one result */

struct asked {
	struct slice keys[REQUESTS_MAX]; /* so far */
	size_t count;
};

/*
 * Whether every reader understands the request as we do: no name in it or in its params is repeated
 * or written with an escape.
 */
static bool is_plain(const struct client *client, struct json request)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope env;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":0,");
	buf_append_slice(&text, slice_of(request.text.p + 1, request.text.n - 1));
	return scan_envelope(buf_slice(&text), &client->router->limits, 0, &env, NULL) == 0;
}

/*
 * Whether there may be a request with this key: not too many requests, and no key twice.
 * MOD-MRTR-02
 */
static bool take_key(struct asked *asked, struct slice key)
{
	if (asked->count == REQUESTS_MAX ||
	    slices_has((struct slices){ asked->keys, asked->count }, key))
		return false;
	asked->keys[asked->count++] = key;
	return true;
}

bool request_state_may_ask(const struct client *client, struct slice requests)
{
	struct slice capabilities = client_capabilities(client);
	struct asked asked = { .count = 0 };

	SCAN_MEMBERS(request, requests) {
		const struct method *method = asking_method(request.value.text);
		struct slice params = scan_member(request.value.text, SLICE_LIT("params")).text;

		if (!take_key(&asked, request.name) || method->id == METHOD_TASKS ||
		    !asking_is_declared(capabilities, method) ||
		    !asking_is_possible(capabilities, method, params) ||
		    !is_plain(client, request.value))
			return false;
	}
	return true;
}

static bool may_ask(const struct call *call, struct slice result)
{
	struct json requests = scan_member(result, SLICE_LIT("inputRequests"));
	struct json state = scan_member(result, SLICE_LIT("requestState"));

	if (!(call->method->flags & METHOD_ASKING) ||
	    (requests.type != JSON_OBJECT && requests.type != JSON_ABSENT) ||
	    (state.type != JSON_STRING && state.type != JSON_ABSENT) ||
	    (requests.type == JSON_ABSENT && state.type == JSON_ABSENT) ||
	    state.text.n > SEAL_TEXT_MAX)
		return false;
	return request_state_may_ask(call->client, requests.text);
}

bool request_state_append_wrapped(struct buf *out, const struct call *call, struct slice result)
{
	struct seal seal = { .kind = SEAL_WRAPPED,
			     .child = upstream_child_number(call->request.upstream),
			     .text = scan_member(result, SLICE_LIT("requestState")).text };

	if (call->digest == NULL || !may_ask(call, result))
		return false;
	append(out, call->client, kept_digest_get(call->digest), &seal);
	return true;
}

/* ---- what a client brings ---- */

int request_state_open(const struct client *client, const struct digest *digest, struct json sealed,
		       struct buf *plain, struct seal *seal_r)
{
	struct seal_binding binding = binding_of(client, digest);
	struct error err = { .kind = ERROR_NONE };

	if (seal_open(&client->router->seal_keys, &binding, sealed, clock_wall_ms() / 1000, plain,
		      seal_r, &err) == 0)
		return 0;
	LOG_BY(STATE_REFUSED, holder_number(client->principal, &client->peer),
	       LOG_STR("server", client->server->conf.name),
	       LOG_SLICE("principal", client->principal->identity.subject),
	       LOG_STR("reason", err.text));
	return -1;
}
