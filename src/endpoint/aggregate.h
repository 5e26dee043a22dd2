/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint over several servers, as one client of it sees it: an upstream without a process, which
 * answers as a server of the legacy era, by asking the servers. To each of them it is a client like
 * any other, in a session of its own, a leg: everything that the configuration says of that server
 * applies, and admission judges each message again for it. bridging.md §5
 */
#pragma once

struct server;
struct upstream;
struct upstream_shared;

/* For router->aggregate_new: as stdio_new, for a server that has legs. */
struct upstream *aggregate_new(struct upstream_shared *shared, struct server *server);
