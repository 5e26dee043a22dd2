/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens for servers (`auth` of a server): one for all its processes, or one for each token of
 * a caller's. The fetcher gets them (auth/fetch_client). A token is got when a message is about to be
 * sent, once for all who wait, and kept until shortly before its end. BACK-URL-10
 *
 *	asked -> kept -> asked …        (whoever waits is told of a failure, which counts for a while)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"

struct credential_wait;
struct fetch_client;
struct principal;
struct server;
struct shown_token;

/* Kept and asked for; beyond that, the one that was used longest ago is forgotten, if nobody waits for it. */
#define CREDENTIALS_MAX 10000

/* One for a gateway. Zeroed, but for what credentials_init sets. */
struct credentials {
	struct loop *loop;
	struct fetch_client *client; /* borrowed; NULL: there is no fetcher */
	struct map by_key;
	struct list used; /* longest ago first */
	size_t count;
	uint64_t seed;
	struct timer sweep;
};

/* The token and until when it is good; or why there is none: else NULL. Borrowed. */
struct credential_answer {
	struct slice token;
	uint64_t good_until_ms; /* by clock_now_ms, which stands still while the machine sleeps */
	uint64_t good_until_wall_ms; /* and by clock_wall_ms, which somebody may set */
	const char *error;
};

typedef void credential_done_fn(struct credential_wait *wait,
				const struct credential_answer *answer);

/* Embedded by its owner, which sets on_done; zeroed otherwise. */
struct credential_wait {
	credential_done_fn *on_done;
	struct credential *credential; /* private, as all below; NULL when it does not wait */
	struct list link;
	const struct server *server;
	struct principal *principal;
};

void credentials_init(struct credentials *credentials, struct loop *loop);
/* Nobody may wait. */
void credentials_fini(struct credentials *credentials);
/*
 * The client from now on. Another one, as after a reload that changed issuers or `auth` of servers, knows them by other
 * numbers: what is kept is forgotten, and what is waited for is asked again.
 */
void credentials_use(struct credentials *credentials, struct fetch_client *client);

/*
 * The token of the server, which must have one (conf.credential); principal: whose token it is for, if it is
 * (conf.for_caller), else NULL. True: the answer is there; it is borrowed until the next call. False: on_done follows
 * once, unless credential_cancel comes first.
 */
bool credential_get(struct credentials *credentials, const struct server *server,
		    struct principal *principal, struct credential_wait *wait,
		    struct credential_answer *answer_r) must_check;
/* The caller's token that the server's is made for now; NULL: there is none, or it is made for none. */
const struct shown_token *credential_subject(const struct server *server,
					     const struct principal *principal);
/* Also if it does not wait. */
void credential_cancel(struct credential_wait *wait);
/*
 * The server has refused the token that is good until then. True: another one can be got now, or has been. False: it
 * has just been got, since the process was started (since_ms), and the next one would be refused as well.
 */
bool credential_refused(struct credentials *credentials, const struct server *server,
			const struct principal *principal, uint64_t good_until_ms,
			uint64_t since_ms);
