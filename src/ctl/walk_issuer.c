/* SPDX-License-Identifier: Apache-2.0 */
/* One authorization server: its metadata, what a client needs there, its keys. RFC 8414, RFC 7636, RFC 7591 */
#include <stdlib.h>
#include <string.h>

#include "auth/document.h"
#include "auth/issuer_metadata.h"
#include "auth/jwk.h"
#include "auth/url.h"
#include "base/check.h"
#include "ctl/finding.h"
#include "ctl/walk.h"

#define KINDS_MAX 8

/* NULL: there is none, and that was said. */
static json_t *examine_metadata(struct walk *walk, const char *issuer)
{
	struct error err = { ERROR_NONE, "" };
	struct buf why = { 0 };
	json_t *document = NULL;
	char *address = NULL;

	if (url_check_ours(slice_str(issuer), &err) < 0) {
		finding_fail(&walk->ill, "issuer", "%s: %s", issuer, err.text);
		return NULL;
	}
	document = walk_get_first(walk, issuer_metadata_url, issuer, &why, &address);
	if (document == NULL) {
		finding_fail(&walk->ill, "issuer", "%s", buf_terminate(&why));
	} else if (issuer_metadata_check(document, issuer, &err) < 0) {
		finding_fail(&walk->ill, "issuer", "the metadata of %s cannot be used: %s", issuer,
			     err.text);
		json_decref(document);
		document = NULL;
	} else {
		finding_print("ok", "issuer", "%s", issuer);
	}
	free(address);
	buf_fini(&why);
	return document;
}

/* ---- what a client needs ---- */

static void examine_endpoints(struct walk *walk, const json_t *document)
{
	static const char *const names[] = { "authorization_endpoint", "token_endpoint" };
	const json_t *types = json_object_get(document, "response_types_supported");
	struct buf bad = { 0 };
	struct buf good = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *address = document_string(document, names[i]);
		struct url url;

		if (address == NULL)
			buf_printf(&bad, "%sthere is no %s", bad.len > 0 ? "; " : "", names[i]);
		else if (url_parse(slice_str(address), &url) < 0 ||
			 (!url_is_https(&url) && !url_is_loopback(&url)))
			buf_printf(&bad, "%sthe %s is not an https URL: %s",
				   bad.len > 0 ? "; " : "", names[i], address);
		else
			buf_printf(&good, "%s%s", good.len > 0 ? ", " : "", address);
	}
	if (!document_lists(types, SLICE_LIT("code")))
		buf_printf(&bad, "%sresponse_types_supported does not list code",
			   bad.len > 0 ? "; " : "");
	if (bad.len > 0)
		finding_fail(&walk->ill, "endpoints", "%s", buf_terminate(&bad));
	else
		finding_print("ok", "endpoints", "%s", buf_terminate(&good));
	buf_fini(&bad);
	buf_fini(&good);
}

static void examine_pkce(struct walk *walk, const json_t *document)
{
	const json_t *methods = json_object_get(document, "code_challenge_methods_supported");

	if (document_lists(methods, SLICE_LIT("S256")))
		finding_print("ok", "pkce", "S256");
	else
		finding_fail(&walk->ill, "pkce",
			     "code_challenge_methods_supported %s; MCP clients give up without it",
			     methods != NULL ? "does not list S256" : "is missing");
}

static void examine_registration(struct walk *walk, const json_t *document)
{
	static const char documents[] = "by client id metadata documents";
	bool has_documents =
		json_is_true(json_object_get(document, "client_id_metadata_document_supported"));
	const char *endpoint = document_string(document, "registration_endpoint");

	walk->is_by_hand |= !has_documents && endpoint == NULL;
	if (endpoint != NULL)
		finding_print("ok", "register", "%s%sdynamic, at %s",
			      has_documents ? documents : "", has_documents ? ", or " : "",
			      endpoint);
	else if (has_documents)
		finding_print("ok", "register", "%s", documents);
	else
		finding_print("warn", "register",
			      "neither dynamic nor %s: each client must be registered there by "
			      "hand, and given its id",
			      documents);
}

/* ---- keys ---- */

struct kind {
	const char *name;
	size_t count;
};

static void count_kind(struct kind kinds[KINDS_MAX], const json_t *key)
{
	const char *name = document_string(key, "crv");

	if (name == NULL)
		name = document_string(key, "kty");
	if (name == NULL)
		name = "without a kind";
	for (size_t i = 0; i < KINDS_MAX; i++) {
		if (kinds[i].name == NULL)
			kinds[i].name = name;
		if (strcmp(kinds[i].name, name) == 0) {
			kinds[i].count++;
			return;
		}
	}
}

static void judge_keys(struct walk *walk, const char *issuer, json_t *document)
{
	const json_t *keys = json_object_get(document, "keys");
	struct kind kinds[KINDS_MAX] = { { NULL, 0 } };
	struct error err = { ERROR_NONE, "" };
	struct jwk_set set;
	struct buf text = { 0 };

	if (jwk_set_parse(document, ALGORITHM_ALL, &set, &err) < 0) {
		finding_fail(&walk->ill, "keys", "no key can be used: %s", err.text);
		return;
	}
	buf_printf(&text, "%zu", json_array_size(keys));
	for (size_t i = 0; i < json_array_size(keys); i++)
		count_kind(kinds, json_array_get(keys, i));
	for (size_t i = 0; i < KINDS_MAX && kinds[i].name != NULL; i++)
		buf_printf(&text, "%s %zu %s", i > 0 ? "," : ":", kinds[i].count, kinds[i].name);
	if (set.skipped > 0)
		buf_printf(&text, "; %zu cannot verify tokens", set.skipped);
	finding_print("ok", "keys", "%s", buf_terminate(&text));
	json_object_set(walk->keys, issuer, document);
	jwk_set_fini(&set);
	buf_fini(&text);
}

void walk_issuer(struct walk *walk, const char *issuer)
{
	json_t *document = examine_metadata(walk, issuer);
	const char *address = document_string(document, "jwks_uri");
	struct buf why = { 0 };
	json_t *keys;
	bool is_down;

	if (document == NULL)
		return;
	examine_endpoints(walk, document);
	examine_pkce(walk, document);
	examine_registration(walk, document);
	if (address == NULL) {
		finding_print(
			"warn", "keys",
			"no jwks_uri: its tokens can be checked only by asking it (introspection)");
	} else {
		keys = walk_get(walk, address, &why, &is_down);
		if (keys == NULL)
			finding_fail(&walk->ill, "keys", "%s", buf_terminate(&why));
		else
			judge_keys(walk, issuer, keys);
		json_decref(keys);
		buf_fini(&why);
	}
	json_decref(document);
}
