/* SPDX-License-Identifier: Apache-2.0 */
/* What tls.c needs from tls_server.c; all others use io/tls.h. */
#pragma once

#include <openssl/ssl.h>

#include "io/tls.h"

/*
 * An OpenSSL connection object. The caller owns it and frees it before it releases its reference to
 * the server.
 */
SSL *tls_server_make_ssl(struct tls_server *server);
