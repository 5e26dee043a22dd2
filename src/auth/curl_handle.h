/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all our questions to web servers have in common: bounded time, verified TLS, no redirects, no proxies, no
 * cookies; fields that are wiped afterwards. Runs no transfer. The traps of libcurl that this avoids are in
 * design/stack.md §8.  AUTH-KEY-01, AUTH-KEY-02, SEC-10
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "auth/url.h"
#include "base/buf.h"
#include "base/slice.h"

struct curl_handle_conf {
	const char *agent;
	long connect_ms; /* 0: libcurl's own */
	long total_ms;   /* 0: without end */
	bool allow_http;
	/* PEM text of the accepted CAs, borrowed until the handle's end; p NULL: those that libcurl knows. */
	struct slice ca;
};

/* The caller's, for curl_easy_cleanup. */
CURL *curl_handle_new(const struct curl_handle_conf *conf);

/* Appends `name: value`. */
void curl_handle_add_field(struct curl_slist **fields, const char *name, const char *value);
/* A body of this media type makes it a POST; borrowed until the handle's end. */
void curl_handle_set_body(CURL *easy, struct curl_slist **fields, const char *type,
			  struct slice body);
/* Overwrites them first: there may be credentials among them. Sets the caller's pointer to NULL. */
void curl_handle_free_fields(struct curl_slist **fields);

/* A field of the answer; empty if absent; borrowed until the handle's end. */
struct slice curl_handle_answer_field(CURL *easy, const char *name);
/* Its Retry-After, be it a number or a date, in seconds from now; 0: it has none. */
uint32_t curl_handle_retry_after(CURL *easy);

/* For CURLOPT_OPENSOCKETFUNCTION: a socket, or CURL_SOCKET_BAD and *is_refused_r if it would reach too far. */
curl_socket_t curl_handle_open_socket(const struct address_filter *address_filter,
				      const struct curl_sockaddr *address, bool *is_refused_r);
/* For CURLOPT_WRITEFUNCTION: takes all, or returns 0 with *is_too_big_r. */
size_t curl_handle_take_body(struct buf *body, const char *data, size_t bytes, size_t bytes_max,
			     bool *is_too_big_r);
