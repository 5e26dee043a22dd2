/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages are sanitized first, then redacted: invisible characters must not hide a secret from the
 * patterns.
 */
#include "upstream/intake.h"

#include "base/clock.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/splice.h"
#include "policy/redact.h"
#include "policy/sanitize.h"
#include "process/server.h"

/*
 * Takes ownership of `text`, the next form of the message. Returns NULL if it is not a valid
 * message.
 */
static const struct envelope *go_on(struct intake *intake, struct buf *text,
				    const struct scan_limits *limits)
{
	struct error err;

	buf_fini(&intake->text);
	intake->text = *text;
	*text = (struct buf){ 0 };
	return scan_envelope(buf_slice(&intake->text), limits, SCAN_LENIENT, &intake->env, &err) ==
			       0 ?
		       &intake->env :
		       NULL;
}

/* Replaces one part of the message by `with`. */
static const struct envelope *put(struct intake *intake, const struct envelope *env,
				  struct slice span, struct slice with,
				  const struct scan_limits *limits)
{
	const struct splice_edit edit = { span, with };
	struct buf text = { 0 };

	splice_append(&text, env->text, &edit, 1, 0);
	return go_on(intake, &text, limits);
}

static const struct envelope *sanitize(struct intake *intake, struct server *server,
				       const struct scan_limits *limits, const struct envelope *env)
{
	struct buf text = { 0 };
	const struct envelope *clean;

	if (!sanitize_text(&server->conf.sanitize, env->text, &text, &server->stats->sanitized))
		return env;
	clean = go_on(intake, &text, limits);
	/* The id must stay as the server wrote it, or it would not recognize the response. */
	if (clean != NULL && clean->id.type != JSON_ABSENT && env->id.type != JSON_ABSENT &&
	    !slice_is_equal(clean->id.text, env->id.text))
		clean = put(intake, clean, clean->id.text, env->id.text, limits);
	return clean;
}

static const struct envelope *redact(struct intake *intake, struct server *server,
				     const struct scan_limits *limits, const struct envelope *env)
{
	const struct redact_rules *rules = &server->conf.redact;
	struct slice kept[] = { env->method, env->id.text, { NULL, 0 } };
	struct buf text = { 0 };

	if (rules->count == 0 || env->kind == ENVELOPE_REQUEST)
		return env;
	kept[2] = scan_member(env->text, SLICE_LIT("jsonrpc")).text;
	server->stats->redact_pace.now_ms = clock_now_ms();
	if (!redact_text(rules, env->text, (struct slices){ kept, ARRAY_LEN(kept) },
			 &server->stats->redact_pace, &text, &server->stats->redacted))
		return env;
	return go_on(intake, &text, limits);
}

const struct envelope *intake_take(struct intake *intake, struct server *server,
				   const struct scan_limits *limits, bool redacts,
				   const struct envelope *env)
{
	env = sanitize(intake, server, limits, env);
	return env != NULL && redacts ? redact(intake, server, limits, env) : env;
}

void intake_fini(struct intake *intake)
{
	buf_fini(&intake->text);
}

struct msg *intake_again(struct server *server, const struct scan_limits *limits, struct slice text)
{
	struct intake intake = { .text = { 0 } };
	const struct envelope *taken = NULL;
	struct msg *msg = NULL;
	struct envelope env;
	struct error err;

	if (scan_envelope(text, limits, SCAN_LENIENT, &env, &err) == 0)
		taken = intake_take(&intake, server, limits, false, &env);
	if (taken != NULL)
		msg = msg_new(taken->text);
	intake_fini(&intake);
	return msg;
}
