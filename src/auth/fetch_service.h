/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program that fetches does: answers a gateway's questions (fetch_wire.h) about the issuers of the
 * configuration, takes its spans to the collector of the configuration, and nothing else. One service has one gateway, and
 * ends with it.
 */
#ifndef MCPGATED_AUTH_FETCH_SERVICE_H
#define MCPGATED_AUTH_FETCH_SERVICE_H

#include "auth/collector.h"
#include "auth/verifier.h"
#include "base/error.h"
#include "io/loop.h"

struct fetch_service;
/* The gateway has gone, or does not keep to the form. */
typedef void fetch_service_end_fn(void *arg);

/* Once per process, before it is confined: what libraries would open or read later. */
int fetch_service_prepare(struct error *err) must_check;

struct fetch_service_conf {
	const struct verifier_conf *issuers;
	const struct collector_conf *collector; /* may have no endpoint */
};

/*
 * Takes fd, an end of a SOCK_SEQPACKET pair. Copies what it keeps of conf. Returns NULL and err (fd is the caller's
 * still) if an issuer of the configuration cannot be asked.
 */
struct fetch_service *fetch_service_new(struct loop *loop, const struct fetch_service_conf *conf,
					int fd, fetch_service_end_fn *on_end, void *arg,
					struct error *err) must_check;
/* Ends all fetches. Accepts NULL. Not from on_end. */
void fetch_service_free(struct fetch_service **service);

#endif
