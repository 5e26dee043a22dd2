/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/assertion.h"

#include <stdlib.h>

#include <jansson.h>
#include <jwt.h>

#include "auth/document.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"

#define JTI_BYTES 16

int assertion_init(struct assertion *assertion, const struct assertion_conf *conf,
		   struct error *err)
{
	*assertion = (struct assertion){ .conf = *conf };
	return signing_key_publish(conf->key, &assertion->public, err);
}

void assertion_fini(struct assertion *assertion)
{
	signing_key_public_fini(&assertion->public);
}

/* RFC 9068 s2.2. The caller's; or NULL and err. */
static json_t *make_claims(const struct assertion_conf *conf, struct slice caller,
			   struct error *err)
{
	json_int_t now_s = (json_int_t)(clock_wall_ms() / 1000);
	json_t *claims = NULL;
	unsigned char number[JTI_BYTES];
	char jti[JTI_BYTES * 2];

	if (caller.n > ASSERTION_CALLER_BYTES_MAX)
		error_set(err, ERROR_LIMIT, "more than %d bytes would be said of the caller",
			  ASSERTION_CALLER_BYTES_MAX);
	else
		claims = document_parse(caller, err);
	if (claims == NULL)
		return NULL;
	if (document_text(claims, "sub").n == 0) {
		json_decref(claims);
		error_set(err, ERROR_INVALID, "nobody is named");
		return NULL;
	}
	random_bytes(number, sizeof(number));
	jti[text_base64url(number, sizeof(number), jti)] = '\0';
	json_object_del(claims, "nbf");
	json_object_set_new(claims, "iss", json_stringn(conf->issuer.p, conf->issuer.n));
	json_object_set_new(claims, "aud", json_string(conf->audience));
	json_object_set_new(claims, "iat", json_integer(now_s));
	json_object_set_new(claims, "exp", json_integer(now_s + ASSERTION_S));
	json_object_set_new(claims, "jti", json_string(jti));
	return claims;
}

/* Its type is JWT, whatever one asks for: libjwt 1.10 writes no other. */
static char *sign(const struct assertion *assertion, const char *claims)
{
	const char *key = assertion->conf.key;
	jwt_t *jwt = NULL;
	char *token;

	CHECK(jwt_new(&jwt) == 0 && jwt_add_grants_json(jwt, claims) == 0 &&
	      jwt_add_header(jwt, "kid", assertion->public.id) == 0 &&
	      jwt_set_alg(jwt, jwt_str_alg(assertion->public.algorithm), (const unsigned char *)key,
			  (int)strlen(key)) == 0);
	token = jwt_encode_str(jwt);
	jwt_free(jwt);
	return token;
}

static void free_token(char *token)
{
	explicit_bzero(token, strlen(token));
#ifdef HAVE_JWT_FREE_STR
	jwt_free_str(token);
#else
	free(token);
#endif
}

int assertion_sign(const struct assertion *assertion, struct slice caller, struct buf *token,
		   struct error *err)
{
	json_auto_t *claims = make_claims(&assertion->conf, caller, err);
	at_end(mem_free) char *text = NULL;
	char *made;

	if (claims == NULL)
		return -1;
	text = json_dumps(claims, JSON_COMPACT);
	CHECK(text != NULL);
	made = sign(assertion, text);
	if (made == NULL)
		return error_set(err, ERROR_SYSTEM, "libjwt cannot sign");
	buf_append_str(token, made);
	free_token(made);
	return 0;
}
