/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The legacy era begins with initialize. The modern one has no handshake: server/discover takes its
 * place, so that older clients can be told what the server offers. BACK-INIT-01, -02; bridging.md
 * §2.2.
 */
#include "upstream/upstream_era.h"

#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "upstream/modern.h"
#include "upstream/send.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define REFUSAL_LOGGED 300

static const struct revision *read_initialize_result(const struct upstream *upstream,
						     struct slice result,
						     struct buf *initialize_result)
{
	struct json version = scan_member(result, SLICE_LIT("protocolVersion"));

	(void)upstream;
	(void)initialize_result; /* the result is one already */
	return revision_find(scan_plain_string(version));
}

const struct upstream_era upstream_era_legacy = {
	.handshake = SLICE("initialize"),
	.ping = SLICE("ping"),
	.may_ask = true,
	.send_handshake = send_initialize,
	.read_result = read_initialize_result,
};

static int send_discover(struct upstream *upstream, uint64_t id)
{
	send_request(upstream, id, upstream_era_modern.handshake, (struct slice){ NULL, 0 });
	return 0;
}

static const struct revision *read_discover_result(const struct upstream *upstream,
						   struct slice result,
						   struct buf *initialize_result)
{
	const char *name = upstream->server->conf.name;

	return modern_read_discovery(result, name, initialize_result) == 0 ? &revision_modern :
									     NULL;
}

const struct upstream_era upstream_era_modern = {
	.is_modern = true,
	.handshake = SLICE("server/discover"),
	.ping = SLICE("server/discover"),
	.send_handshake = send_discover,
	.read_result = read_discover_result,
};

void upstream_era_note_refusal(struct upstream *upstream, const struct envelope *response)
{
	struct slice error = response->error.text;
	struct buf text = { 0 };

	if (error.n > REFUSAL_LOGGED)
		error.n = REFUSAL_LOGGED;
	buf_printf(&text, "the server answered %.*s with an error: %.*s",
		   SLICE_ARG(upstream->era->handshake), SLICE_ARG(error));
	upstream->ops->note_failure(upstream, buf_terminate(&text));
	buf_fini(&text);
}
