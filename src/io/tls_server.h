/* SPDX-License-Identifier: Apache-2.0 */
/* What tls.c needs of tls_server.c; everybody else uses io/tls.h. */
#ifndef MCPGATED_IO_TLS_SERVER_H
#define MCPGATED_IO_TLS_SERVER_H

#include <openssl/ssl.h>

#include "io/tls.h"

/* One connection of the library; the caller frees it before it lets go of the server. */
SSL *tls_server_make_ssl(struct tls_server *server);

#endif
