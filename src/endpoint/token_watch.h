/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the token of an open stream, whose client sends nothing that could be judged. The stream
 * ends when the token expires, when a deny list entry names it, when a new configuration would not
 * admit it and, where the issuer is asked about tokens, when the issuer says that it is invalid or
 * has not answered for too long. AUTH-SES-06, -07, AUTH-OPQ-08.
 */
#ifndef MCPGATED_ENDPOINT_TOKEN_WATCH_H
#define MCPGATED_ENDPOINT_TOKEN_WATCH_H

#include "auth/verifier.h"
#include "endpoint/authorization.h"
#include "endpoint/frontend.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/deny_list.h"

struct caller;
struct token_watch;

/* `owner` as in token_watch_new. */
struct token_watch_ops {
	/* The stream must end now, cleanly, so that its client reconnects and learns the reason. */
	void (*on_over)(void *owner, enum reason reason);
	/*
	 * A new configuration gives the token these rights. NULL: the next request will pick them
	 * up.
	 */
	void (*on_rights)(void *owner, const struct rights *rights);
};

struct token_watch {
	struct deny_watcher deny_watcher;
	struct list link; /* of auth->watches */
	struct loop *loop;
	struct authorization *authorization;
	struct server *server; /* of `place` */
	const struct protected_resource *place;
	struct access access; /* of whoever opened the stream; set by token_watch_begin */
	struct timer timer;
	struct verifier_wait wait;
	char *token; /* NULL: the issuer is not asked */
	size_t token_size;
	uint64_t ask_at_ms;      /* clock_now_ms */
	uint64_t trust_until_ms; /* likewise: ends then, unless the issuer confirms it */
	void *owner;
	const struct token_watch_ops *ops;
};

/*
 * For the request that opens the stream; what is needed of it is copied. NULL if there is nothing
 * to watch because the client is anonymous; the other functions accept that. Ended by
 * token_watch_end.
 */
struct token_watch *token_watch_new(const struct endpoint_request *request,
				    const struct token_watch_ops *ops, void *owner);
/*
 * The stream has begun, for a token that was just admitted where the caller is. No callback comes
 * before the next turn.
 */
void token_watch_begin(struct token_watch *watch, const struct caller *caller);
/* The caller is at another endpoint now: the token is judged by what that one requires. */
void token_watch_move(struct token_watch *watch, const struct caller *caller);
/*
 * A new configuration is in use: ends the streams whose tokens it would not admit, as far as that
 * is known without the issuer; gives the owners of the others their rights.
 */
void token_watch_judge_all(struct authorization *auth);
/* The stream has ended, or will not begin. Sets the owner's pointer to NULL. */
void token_watch_end(struct token_watch **watch);

#endif
