/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over the token of an open stream, whose client sends nothing that could be judged. The stream is over
 * when the token expires, when an entry of the denials names it, and, where its issuer is asked about tokens, when
 * the issuer says that it is no longer good, or has said nothing for too long; and when another configuration would not let it in. AUTH-SES-06, -07, AUTH-OPQ-08.
 */
#ifndef MCPGATED_ENDPOINT_TOKEN_WATCH_H
#define MCPGATED_ENDPOINT_TOKEN_WATCH_H

#include "auth/verifier.h"
#include "endpoint/authorization.h"
#include "endpoint/frontend.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/deny_list.h"

struct token_watch;

/* `owner` as in token_watch_new. */
struct token_watch_ops {
	/* The stream must end now: cleanly, so that its client comes back and learns what is wrong. */
	void (*on_over)(void *owner, enum reason reason);
	/* With another configuration the token gives these rights; NULL: those of the next request are in time. */
	void (*on_rights)(void *owner, const struct rights *rights);
};

struct token_watch {
	struct deny_watcher deny_watcher;
	struct list link; /* of authorization's */
	struct loop *loop;
	struct authorization *authorization;
	struct server *server; /* of place */
	const struct protected_resource *place;
	struct access access; /* of whoever opened the stream, from token_watch_begin on */
	struct timer timer;
	struct verifier_wait wait;
	char *token; /* NULL: nobody is asked about it */
	size_t token_size;
	uint64_t ask_at_ms;      /* clock_now_ms */
	uint64_t trust_until_ms; /* likewise: over then, unless the issuer says it is good */
	void *owner;
	const struct token_watch_ops *ops;
};

/*
 * For the request that opens the stream; what must be kept of it is copied. NULL, which the others take, if there
 * is nothing to watch: the client is nobody. Ended by token_watch_end.
 */
struct token_watch *token_watch_new(const struct endpoint_request *request,
				    const struct token_watch_ops *ops, void *owner);
/* The stream has begun, for a token that was just admitted. Nothing is called before the next turn. */
void token_watch_begin(struct token_watch *watch, const struct access *access);
/*
 * Another configuration is in use: those end whose tokens would not be let in now, as far as that can be known without the issuer;
 * the owners of the others hear of their rights.
 */
void token_watch_judge_all(struct authorization *auth);
/* The stream has ended, or will not begin. Sets the owner's pointer to NULL. */
void token_watch_end(struct token_watch **watch);

#endif
