/* SPDX-License-Identifier: Apache-2.0 */
/* Options of one handle. What is libcurl's default is written out where much depends on it. */
#include "auth/curl_handle.h"

#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/mem.h"

CURL *curl_handle_new(const struct curl_handle_conf *conf)
{
	struct curl_blob ca = { (void *)(uintptr_t)conf->ca.p, conf->ca.n, CURL_BLOB_NOCOPY };
	CURL *easy = curl_easy_init();

	CHECK(easy != NULL && conf->agent != NULL);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Or cleaning up would wait for a slow resolver. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, conf->total_ms);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, conf->connect_ms);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, conf->allow_http ? "http,https" : "https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, conf->agent);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (conf->ca.p != NULL) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
	}
	return easy;
}

void curl_handle_add_field(struct curl_slist **fields, const char *name, const char *value)
{
	at_end(mem_free) char *field = mem_printf("%s: %s", name, value);
	struct curl_slist *longer = curl_slist_append(*fields, field);

	CHECK(longer != NULL);
	*fields = longer;
	explicit_bzero(field, strlen(field));
}

void curl_handle_set_body(CURL *easy, struct curl_slist **fields, const char *type,
			  struct slice body)
{
	CHECK(body.n > 0 && body.n <= LONG_MAX);
	curl_handle_add_field(fields, "Content-Type", type);
	curl_handle_add_field(fields, "Expect", ""); /* no 100 Continue is waited for */
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.n);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.p);
}

void curl_handle_free_fields(struct curl_slist **fields)
{
	for (struct curl_slist *field = *fields; field != NULL; field = field->next)
		explicit_bzero(field->data, strlen(field->data));
	curl_slist_free_all(*fields);
	*fields = NULL;
}

struct slice curl_handle_answer_field(CURL *easy, const char *name)
{
	struct curl_header *header;

	if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return (struct slice){ NULL, 0 };
	return slice_str(header->value);
}

uint32_t curl_handle_retry_after(CURL *easy)
{
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds < 0)
		return 0;
	return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

curl_socket_t curl_handle_open_socket(const struct address_filter *address_filter,
				      const struct curl_sockaddr *address, bool *is_refused_r)
{
	*is_refused_r = !address_filter_allows(address_filter, &address->addr);
	if (*is_refused_r)
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      address->protocol);
}

size_t curl_handle_take_body(struct buf *body, const char *data, size_t bytes, size_t bytes_max,
			     bool *is_too_big_r)
{
	CHECK(body->len <= bytes_max);
	*is_too_big_r = bytes > bytes_max - body->len;
	if (*is_too_big_r)
		return 0;
	buf_append(body, data, bytes);
	return bytes;
}
