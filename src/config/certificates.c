/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same reading and the same rules as when the certificates are used (io/tls.h), only that here each
 * file has a place in the configuration. What was read is overwritten.
 */
#include "config/certificates.h"

#include "config/file.h"
#include "config/problem.h"
#include "io/tls.h"

#define DAYS_TO_WARN 14

static int read_file(const struct types_context *context, const char *path, const struct tree *at,
		     struct buf *text_r)
{
	struct error err;
	mode_t mode = 0;

	CHECK(path != NULL);
	if (file_read(path, CERTIFICATES_BYTES_MAX, text_r, &mode, &err) != 0) {
		problem_add_at(context->problems, at, "%s: %s", path, err.text);
		return -1;
	}
	if ((mode & S_IROTH) != 0 && at->key != NULL && strcmp(at->key, "key") == 0)
		problem_add_at(context->warnings, at,
			       "everybody can read this private key; take the right away: chmod "
			       "o-r %s",
			       path);
	return 0;
}

static void check_dates(const struct types_context *context, const char *path,
			const struct tree *at, int days_left, bool is_valid_yet)
{
	if (!is_valid_yet)
		problem_add_at(context->warnings, at, "%s is not valid yet", path);
	if (days_left < 0)
		problem_add_at(context->warnings, at, "%s has expired; clients will refuse it",
			       path);
	else if (days_left < DAYS_TO_WARN)
		problem_add_at(context->warnings, at, "%s expires in %d days", path, days_left);
}

static void check_pair(const struct types_context *context, const struct config_tls *tls,
		       const struct tree *at)
{
	const struct tree *certificate_at = tree_below(at, "certificate");
	const struct tree *key_at = tree_below(at, "key");
	struct buf certificate = { 0 };
	struct buf key = { 0 };
	bool is_valid_yet = true;
	int days_left = 0;
	struct error err;
	int has_certificate = read_file(context, tls->certificate, certificate_at, &certificate);
	int has_key = read_file(context, tls->key, key_at, &key);

	if (has_certificate == 0) {
		has_certificate = tls_check_certificate(buf_slice(&certificate), &days_left,
							&is_valid_yet, &err);
		if (has_certificate < 0)
			problem_add_at(context->problems, certificate_at, "%s: %s",
				       tls->certificate, err.text);
		else
			check_dates(context, tls->certificate, certificate_at, days_left,
				    is_valid_yet);
	}
	if (has_certificate == 0 && has_key == 0 &&
	    tls_check_key(buf_slice(&certificate), buf_slice(&key), &err) < 0)
		problem_add_at(context->problems, key_at, "%s: %s", tls->key, err.text);
	file_wipe(&certificate);
	file_wipe(&key);
}

static void check_authorities(const struct types_context *context, const struct config_tls *tls,
			      const struct tree *at)
{
	struct buf text = { 0 };
	struct error err;

	if (tls->client_ca != NULL && read_file(context, tls->client_ca, at, &text) == 0 &&
	    tls_check_authorities(buf_slice(&text), &err) < 0)
		problem_add_at(context->problems, at, "%s: %s", tls->client_ca, err.text);
	file_wipe(&text);
}

void certificates_check(const struct types_context *context, const struct config *config,
			const struct tree *root)
{
	const struct tree *list = tree_find(root, "listen");

	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];

		CHECK(listen->tls_count == 0 || (list != NULL && i < list->count));
		for (size_t j = 0; j < listen->tls_count; j++) {
			const struct tree *at = tree_item(tree_below(tree_item(list, i), "tls"), j);

			check_pair(context, &listen->tls[j], at);
			check_authorities(context, &listen->tls[j], tree_below(at, "client_ca"));
		}
	}
}
