/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every question of ours to a foreign web server has in common, whoever asks and however he waits: bounded
 * time, verified TLS, no redirects, no proxies, no cookies; fields that are wiped afterwards. Runs no transfer.
 * The traps of libcurl that this avoids are in design/stack.md §8.  AUTH-KEY-01, AUTH-KEY-02, SEC-10
 */
#ifndef MCPGATED_AUTH_EASY_H
#define MCPGATED_AUTH_EASY_H

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

#include "auth/reach.h"
#include "base/buf.h"
#include "base/slice.h"

struct easy_conf {
	const char *agent;
	long connect_ms;
	long total_ms;
	bool allow_http;
	/* PEM text of the accepted CAs, borrowed until the handle's end; p NULL: those that libcurl knows. */
	struct slice ca;
};

/* The caller's, for curl_easy_cleanup. */
CURL *easy_new(const struct easy_conf *conf);

/* Appends `name: value`. */
void easy_add_field(struct curl_slist **fields, const char *name, const char *value);
/* Overwrites them first: there may be credentials among them. Sets the caller's pointer to NULL. */
void easy_free_fields(struct curl_slist **fields);

/* A field of the answer; empty if absent; borrowed until the handle's end. */
struct slice easy_answer_field(CURL *easy, const char *name);

/* For CURLOPT_OPENSOCKETFUNCTION: a socket, or CURL_SOCKET_BAD and *is_refused_r if it would reach too far. */
curl_socket_t easy_open_socket(const struct reach *reach, const struct curl_sockaddr *address,
			       bool *is_refused_r);
/* For CURLOPT_WRITEFUNCTION: takes all, or returns 0 with *is_too_big_r. */
size_t easy_take_body(struct buf *body, const char *data, size_t bytes, size_t bytes_max,
		      bool *is_too_big_r);

#endif
