/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of the fetcher process: it answers a gateway's questions (io/ipc.def) about the
 * configured issuers, delivers its spans to the configured collector, and does nothing else. One
 * service belongs to one gateway, and ends with it.
 */
#pragma once

#include "auth/collector.h"
#include "auth/verifier.h"
#include "base/error.h"
#include "io/loop.h"

struct fetch_service;
/* The gateway is gone, or violates the protocol. */
typedef void fetch_service_end_fn(void *arg);

/* Call once per process, before it is confined: loads what libraries would open or read later. */
int fetch_service_prepare(struct error *err) must_check;

struct fetch_service_conf {
	const struct verifier_conf *issuers;
	const struct collector_conf *collector; /* may have no endpoint */
};

/*
 * Takes ownership of fd, an end of a SOCK_SEQPACKET pair. Copies what it keeps of conf. Returns
 * NULL and err if an issuer of the configuration cannot be asked; fd then stays the caller's.
 */
struct fetch_service *fetch_service_new(struct loop *loop, const struct fetch_service_conf *conf,
					int fd, fetch_service_end_fn *on_end, void *arg,
					struct error *err) must_check;
/* Ends all fetches. Accepts NULL. Must not be called from on_end. */
void fetch_service_free(struct fetch_service **service);
