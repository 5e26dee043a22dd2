/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of the fetcher process: it answers a gateway's questions (io/ipc.def) about the
 * configured issuers, gets tokens for servers or signs them, delivers its spans to the configured collector, and
 * does nothing else. One service belongs to one gateway, and ends with it.
 */
#pragma once

#include "auth/assertion.h"
#include "auth/collector.h"
#include "auth/verifier.h"
#include "base/error.h"
#include "io/loop.h"

struct fetch_service;
/* The gateway is gone, or violates the protocol. */
typedef void fetch_service_end_fn(void *arg);

/* Call once per process, before it is confined: loads what libraries would open or read later. */
int fetch_service_prepare(struct error *err) must_check;

enum credential_grant {
	CREDENTIAL_NONE,
	CREDENTIAL_CLIENT,   /* a token of our own: RFC 6749 s4.4 */
	CREDENTIAL_EXCHANGE, /* one for a caller's token: RFC 8693 */
	CREDENTIAL_ASSERTION /* one that we sign, about a caller: assertion.h */
};

/* How a token for a server behind a URL is got. BACK-URL-10, BACK-URL-11 */
struct credential_conf {
	enum credential_grant grant;
	struct verifier_issuer_conf at; /* the authorization server, and who we are there */
	const char *token_endpoint;     /* NULL: from the issuer's metadata */
	struct slices scopes;
	const char *resource;            /* RFC 8707; NULL: not said */
	const char *audience;            /* likewise */
	struct assertion_conf assertion; /* CREDENTIAL_ASSERTION, which needs none of the others */
};

struct fetch_service_conf {
	const struct verifier_conf *issuers;
	const struct credential_conf *const
		*credentials; /* asked for by number, behind the issuers */
	size_t credential_count;
	const struct collector_conf *collector; /* may have no endpoint */
};

/*
 * Takes ownership of fd, an end of a SOCK_SEQPACKET pair. Copies what it keeps of conf, but the
 * credentials, which are borrowed. Returns NULL and err if an issuer of the configuration cannot be asked; fd then stays the caller's.
 */
struct fetch_service *fetch_service_new(struct loop *loop, const struct fetch_service_conf *conf,
					int fd, fetch_service_end_fn *on_end, void *arg,
					struct error *err) must_check;
/* Ends all fetches. Accepts NULL. Must not be called from on_end. */
void fetch_service_free(struct fetch_service **service);
