/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a secret is made with room enough not to move, and wiped. A token that we sign is for the issuer alone, by
 * the name that it has in the configuration: made for an address, it could be of use at another issuer's.
 */
#include "auth/client_auth.h"

#include <stdlib.h>

#include <jansson.h>
#include <openssl/ecdsa.h>

#include "auth/jwt.h"
#include "auth/signing_key.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

#define ASSERTION_S 60 /* how long a token of ours is good */
#define ASSERTION_TYPE "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
#define JTI_BYTES 16
#define SIGNATURE_BYTES_MAX (JWK_RSA_BITS_MAX / 8)

/* ---- with a secret ---- */

void client_auth_append(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (slice_is_name(slice_of(text.p + i, 1), "-._"))
			buf_append_char(out, text.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)text.p[i]);
	}
}

/* A buffer that grows moves, and leaves copies of secrets behind that are not wiped. */
static void reserve_form(struct buf *buf, const char *client_id, const char *client_secret)
{
	buf_reserve(buf, (strlen(client_id) + strlen(client_secret)) * 3 + 64);
}

static char *make_basic(const char *client_id, const char *client_secret)
{
	at_end(buf_wipe) struct buf pair = { .data = NULL };
	at_end(mem_free) unsigned char *encoded = NULL;
	char *text;
	int size;

	reserve_form(&pair, client_id, client_secret);
	client_auth_append(&pair, slice_str(client_id));
	buf_append_char(&pair, ':');
	client_auth_append(&pair, slice_str(client_secret));
	encoded = mem_alloc(pair.len / 3 * 4 + 8);
	size = EVP_EncodeBlock(encoded, (const unsigned char *)pair.data, (int)pair.len);
	text = mem_printf("Basic %.*s", size, (const char *)encoded);
	explicit_bzero(encoded, (size_t)size);
	return text;
}

static char *client_auth_make_form(const char *client_id, const char *client_secret)
{
	at_end(buf_wipe) struct buf form = { .data = NULL };

	reserve_form(&form, client_id, client_secret);
	buf_append_str(&form, "client_id=");
	client_auth_append(&form, slice_str(client_id));
	buf_append_str(&form, "&client_secret=");
	client_auth_append(&form, slice_str(client_secret));
	buf_append_char(&form, '&');
	return mem_dup_slice(buf_slice(&form));
}

/* ---- with a key ---- */

static void append_base64url(struct buf *out, const void *data, size_t size)
{
	out->len += text_base64url(data, size, buf_reserve(out, size * 2 + 4));
}

static void append_json(struct buf *out, json_t *object)
{
	at_end(mem_free) char *text = json_dumps(object, JSON_COMPACT);

	CHECK(text != NULL);
	append_base64url(out, text, strlen(text));
	json_decref(object);
}

/* JWS has r and s one after the other, each of fixed width; OpenSSL has DER. RFC 7518 s3.4 */
static size_t flatten(size_t width, unsigned char *signature, size_t size)
{
	const unsigned char *der = signature;
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)size);

	CHECK(pair != NULL);
	CHECK(BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, (int)width) == (int)width);
	CHECK(BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + width, (int)width) == (int)width);
	ECDSA_SIG_free(pair);
	return width * 2;
}

static void append_signature(const struct client_auth *auth, struct buf *token)
{
	unsigned char signature[SIGNATURE_BYTES_MAX];
	size_t size = sizeof(signature);
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	CHECK(context != NULL);
	CHECK(EVP_DigestSignInit_ex(context, NULL, auth->algorithm->digest, NULL, NULL, auth->key,
				    NULL) == 1);
	CHECK(EVP_DigestSign(context, signature, &size, (const unsigned char *)token->data,
			     token->len) == 1);
	EVP_MD_CTX_free(context);
	if (auth->algorithm->width > 0)
		size = flatten(auth->algorithm->width, signature, size);
	buf_append_char(token, '.');
	append_base64url(token, signature, size);
}

/* RFC 7523 s3: good for a minute and, by its number, once. */
static void append_assertion(const struct client_auth *auth, struct buf *out)
{
	json_int_t now_s = (json_int_t)(clock_wall_ms() / 1000);
	unsigned char number[JTI_BYTES];
	char jti[JTI_BYTES * 2];
	at_end(buf_wipe) struct buf token = { .data = NULL };

	random_bytes(number, sizeof(number));
	jti[text_base64url(number, sizeof(number), jti)] = '\0';
	append_json(&token, json_pack("{s:s, s:s, s:s*}", "alg", auth->algorithm->name, "typ",
				      "JWT", "kid", auth->key_id));
	buf_append_char(&token, '.');
	append_json(&token, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "iss", auth->client_id,
				      "sub", auth->client_id, "aud", auth->issuer, "jti", jti,
				      "iat", now_s, "exp", now_s + ASSERTION_S));
	append_signature(auth, &token);
	buf_append_slice(out, buf_slice(&token));
}

/* ---- whole ---- */

int client_auth_init(struct client_auth *auth, const struct client_auth_conf *conf,
		     struct error *err)
{
	const char *secret = conf->secret != NULL ? conf->secret : "";

	*auth = (struct client_auth){ .credentials = NULL };
	if (conf->method == CLIENT_SECRET_BASIC)
		auth->credentials = make_basic(conf->client_id, secret);
	else if (conf->method == CLIENT_SECRET_POST)
		auth->form = client_auth_make_form(conf->client_id, secret);
	if (conf->method != CLIENT_PRIVATE_KEY_JWT)
		return 0;
	if (conf->key == NULL)
		return error_set(err, ERROR_INVALID, "there is no key to sign with");
	auth->key = signing_key_read(conf->key, &auth->algorithm, err);
	auth->issuer = mem_strdup(conf->issuer);
	auth->client_id = mem_strdup(conf->client_id);
	auth->key_id = conf->key_id != NULL ? mem_strdup(conf->key_id) : NULL;
	return auth->key != NULL ? 0 : -1;
}

static void free_secret(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

void client_auth_fini(struct client_auth *auth)
{
	free_secret(auth->credentials);
	free_secret(auth->form);
	EVP_PKEY_free(auth->key);
	free(auth->issuer);
	free(auth->client_id);
	free(auth->key_id);
	*auth = (struct client_auth){ .credentials = NULL };
}

void client_auth_begin_form(const struct client_auth *auth, struct buf *form)
{
	if (auth->form != NULL)
		buf_append_str(form, auth->form);
	if (auth->key == NULL)
		return;
	buf_append_str(form, "client_id=");
	client_auth_append(form, slice_str(auth->client_id));
	buf_append_str(form, "&client_assertion_type=" ASSERTION_TYPE "&client_assertion=");
	append_assertion(auth, form);
	buf_append_char(form, '&');
}
