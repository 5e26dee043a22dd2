/* SPDX-License-Identifier: Apache-2.0 */
/* Where the store of a cluster is. CLU-CONN-01 */
#pragma once

#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"

struct store_url {
	bool is_unix, is_tls;
	char host[256]; /* or the path of the socket */
	char port[6];   /* digits; of TCP */
};

/* Whether others can read what goes there: another machine, without TLS. */
bool store_url_is_exposed(const struct store_url *url);
/*
 * valkey:// and redis://HOST[:PORT], valkeys:// and rediss:// with TLS, and unix://PATH; nothing behind
 * that. Returns 0; or -1, and err ends a sentence about the text.
 */
int store_url_parse(const char *text, struct store_url *url_r, struct error *err) must_check;
