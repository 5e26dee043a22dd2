/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place that knows all parts of the network process. Stopping goes in steps, each begun when
 * the one before is through or its time is up: calls finish, sessions end, processes go.
 */
#include "gateway.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "authorization.h"
#include "backend/backend.h"
#include "backend/spawn.h"
#include "base/clock.h"
#include "base/mem.h"
#include "config/claim.h"
#include "desk.h"
#include "endpoint/gate.h"
#include "http/conn.h"
#include "http/entrance.h"
#include "identities.h"
#include "io/listen.h"
#include "io/loop.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/route.h"
#include "router/spares.h"
#include "session/heirloom.h"

#define STALL_MS (30 * 1000)
#define DRAIN_STEP_MS 20
#define LINGER_MS 2000
#define ID_BYTES_MAX 256
#define HEAP_KEPT_BYTES (16 * 1024 * 1024)

enum gateway_state {
	GATEWAY_SERVING,
	GATEWAY_FINISHING, /* calls in flight run on */
	GATEWAY_STOPPING,  /* sessions have ended, processes are on their way out */
};

struct port {
	struct listener listener;
	struct gateway *gateway;
	size_t index; /* in config->listen */
};

struct gateway {
	struct loop *loop;
	const struct config *config;
	struct spawner *spawner;
	struct backend *backends;
	struct fleet fleet;
	struct gate_endpoint *endpoints;
	size_t backend_count;
	struct slice *hosts;
	size_t host_count;
	struct slice *origins;
	struct slice *claims;      /* of each server, in their order */
	struct slice *claim_names; /* the same, each once */
	struct authorization authorization;
	struct router router;
	struct gate gate;
	struct http_server *http;
	struct entrance entrance;
	struct identities identities;
	struct peer_net *proxies;
	const int *listeners;
	struct port *ports;
	struct desk *desk;
	size_t port_count; /* 0: not listening yet */
	enum gateway_state state;
	uint64_t state_since_ms;
	uint64_t drain_until_ms;
	struct timer drain;
	int log_fd;
};

/* The keeper's callbacks carry no pointer of ours; there is one gateway in a process. */
static struct gateway *gateway;
/* Of all gateways that one keeper starts. */
static struct heirloom *heirloom;

/* ---- stopping ---- */

static void gateway_set_state(struct gateway *g, enum gateway_state state)
{
	g->state = state;
	g->state_since_ms = clock_now_ms();
}

/* At a socket that the service manager keeps they wait for the next daemon. */
static void gateway_close_port(struct port *port)
{
	struct slice address = slice_str(port->gateway->config->listen[port->index].address);

	if (!slice_has_prefix(address, SLICE_LIT("systemd:")))
		listener_accept_waiting(&port->listener);
	listener_fini(&port->listener);
}

static void gateway_stop_serving(struct gateway *g)
{
	LOG(DRAIN, LOG_INT("calls", g->router.calls), LOG_INT("sessions", g->router.sessions.count),
	    LOG_INT("connections", http_server_connection_count(g->http)));
	gateway_set_state(g, GATEWAY_FINISHING);
	g->drain_until_ms = clock_now_ms() + g->config->drain_timeout_ms;
	g->router.is_draining = true;
	for (size_t i = 0; i < g->port_count; i++)
		gateway_close_port(&g->ports[i]);
	/* With the keeper's the last: who connects from now on is refused, and tries elsewhere. */
	for (size_t i = 0; i < g->config->listen_count; i++)
		close(g->listeners[i]);
	http_server_drain(g->http);
	gate_drain(&g->gate);
	LIST_FOREACH(node, &g->router.sessions.sessions) {
		struct session *session = container_of(node, struct session, link);

		if (!session->has_one_stream)
			stream_end(&session->standalone, REASON_DRAINING);
	}
}

static void gateway_end_sessions(struct gateway *g)
{
	gateway_set_state(g, GATEWAY_STOPPING);
	while (!list_is_empty(&g->router.sessions.sessions))
		session_end(container_of(g->router.sessions.sessions.next, struct session, link),
			    REASON_DRAINING);
	spares_end_all(&g->router, REASON_DRAINING);
	partition_end_all(&g->router, REASON_DRAINING);
}

static size_t gateway_count_children(const struct gateway *g)
{
	size_t count = 0;

	for (size_t i = 0; i < g->backend_count; i++)
		count += g->backends[i].count;
	return count;
}

static void gateway_kill_children(struct gateway *g)
{
	for (size_t i = 0; i < g->backend_count; i++)
		backend_kill_all(&g->backends[i]);
}

/* Answers are what the calls were waited for: who is slow in taking one has as long as they had. */
static bool gateway_is_through(const struct gateway *g, uint64_t passed_ms)
{
	if (gateway_count_children(g) > 0)
		return false;
	if (http_server_connection_count(g->http) + g->entrance.count == 0)
		return true;
	return passed_ms >= LINGER_MS &&
	       (clock_now_ms() >= g->drain_until_ms || !http_server_is_writing(g->http));
}

static void gateway_on_drain_step(struct timer *timer)
{
	struct gateway *g = container_of(timer, struct gateway, drain);
	uint64_t passed_ms = clock_now_ms() - g->state_since_ms;

	if (g->state == GATEWAY_FINISHING &&
	    (g->router.calls == 0 || passed_ms >= g->config->drain_timeout_ms))
		gateway_end_sessions(g);
	if (g->state == GATEWAY_STOPPING && gateway_is_through(g, passed_ms)) {
		loop_stop(g->loop);
		return;
	}
	timer_start(g->loop, &g->drain, DRAIN_STEP_MS);
}

static void gateway_on_drain(struct spawner *spawner)
{
	(void)spawner;
	if (gateway->state == GATEWAY_SERVING) {
		gateway_stop_serving(gateway);
		timer_start(gateway->loop, &gateway->drain, 0);
		return;
	}
	/* Asked a second time: somebody is in a hurry. */
	if (gateway->state == GATEWAY_FINISHING)
		gateway_end_sessions(gateway);
	gateway->drain_until_ms = clock_now_ms();
	gateway_kill_children(gateway);
}

static void gateway_on_log(struct spawner *spawner, int fd)
{
	(void)spawner;
	log_set_fd(fd);
	if (gateway->log_fd >= 0)
		close(gateway->log_fd);
	gateway->log_fd = fd;
}

static void gateway_on_keeper_lost(struct spawner *spawner)
{
	(void)spawner;
	LOG(IPC_FAILED, LOG_STR("error", "the keeper has gone; so does this process"));
	exit(1);
}

/* ---- certificates ---- */

static void gateway_listen(struct gateway *g);

static void gateway_on_certificate(struct spawner *spawner, size_t listener, size_t entry,
				   const int *fds, size_t count)
{
	(void)spawner;
	identities_take(&gateway->identities, listener, entry, fds, count);
}

/* The first set opens the ports; without a good one there is nothing to serve with. */
static void gateway_on_certificates_end(struct spawner *spawner)
{
	bool is_used = identities_use(&gateway->identities);

	if (gateway->port_count > 0) {
		spawner_judge_certificates(spawner, is_used);
		return;
	}
	if (!is_used)
		exit(1);
	if (gateway->state == GATEWAY_SERVING)
		gateway_listen(gateway);
}

static const struct spawner_ops gateway_spawner_ops = {
	.on_drain = gateway_on_drain,
	.on_log = gateway_on_log,
	.on_lost = gateway_on_keeper_lost,
	.on_certificate = gateway_on_certificate,
	.on_certificates_end = gateway_on_certificates_end,
};

/* ---- starting ---- */

static uint64_t gateway_tool_timeout(const struct backend_conf *conf, struct slice tool)
{
	const struct config_server *server = conf->config;

	for (size_t i = 0; i < server->tool_timeout_count; i++) {
		if (slice_is_equal(slice_str(server->tool_timeouts[i].tool), tool))
			return server->tool_timeouts[i].timeout_ms;
	}
	return 0;
}

static struct backend_conf gateway_backend_conf(const struct config *config, size_t index)
{
	static const enum isolation isolations[] = {
		[CONFIG_ISOLATION_SESSION] = ISOLATION_SESSION,
		[CONFIG_ISOLATION_PRINCIPAL] = ISOLATION_PRINCIPAL,
		[CONFIG_ISOLATION_SHARED] = ISOLATION_SHARED,
	};
	const struct config_server *server = &config->servers[index];

	return (struct backend_conf){
		.name = server->name,
		.server = (uint32_t)index,
		.isolation = isolations[server->isolation],
		.never_asks = server->assume_no_server_requests,
		.pool_max = server->pool_max,
		.pool_min = server->pool_min,
		.warm = server->pool_warm,
		.start_rate = server->start_rate,
		.sessions_per_process = server->pool_sessions_per_process,
		.max_age_ms = server->pool_max_age_ms,
		.calls_per_process = server->pool_requests_per_process,
		.queue_calls = server->pool_queue,
		.queue_timeout_ms = server->pool_queue_timeout_ms,
		.idle_ms = server->pool_idle_ms,
		.line_max = server->line_max,
		.queue_max = config->message_bytes * 2,
		.start_timeout_ms = server->start_timeout_ms,
		.backoff_min_ms = server->backoff_min_ms,
		.backoff_max_ms = server->backoff_max_ms,
		.give_up_after = (unsigned int)server->give_up_after,
		.stop_grace_ms = server->stop_grace_ms,
		.stop_term_ms = server->stop_term_ms,
		.stall_ms = STALL_MS,
		.request_timeout_ms = server->request_timeout_ms,
		.request_timeout_max_ms = server->request_timeout_max_ms,
		.tool_timeout_ms = server->tool_timeout_count > 0 ? gateway_tool_timeout : NULL,
		.config = server,
	};
}

/* What runs before somebody comes. */
static void gateway_start_children(struct gateway *g)
{
	for (size_t i = 0; i < g->backend_count; i++) {
		struct backend *backend = &g->backends[i];

		if (backend->conf.isolation == ISOLATION_SHARED && backend->conf.pool_min > 0)
			partition_prepare(&g->router, backend);
		else if (backend->conf.isolation != ISOLATION_SHARED && backend->conf.warm > 0 &&
			 backend->conf.claim_count == 0)
			spares_start(&g->router, backend);
	}
}

/* Adds it to what principals keep, unless it is there. */
static void gateway_add_claim_name(struct gateway *g, struct slice name)
{
	struct principal_set *set = &g->router.sessions.principals;

	for (size_t i = 0; i < set->claim_count; i++)
		if (slice_is_equal(g->claim_names[i], name))
			return;
	g->claim_names[set->claim_count++] = name;
}

/* What servers are told of their principals: principals keep that and nothing else. */
static void gateway_list_claims(struct gateway *g)
{
	const struct config *config = g->config;
	size_t room = config->server_count * CLAIMS_MAX + 1;
	size_t count = 0;

	g->claims = mem_zalloc(room * sizeof(*g->claims));
	g->claim_names = mem_zalloc(room * sizeof(*g->claim_names));
	g->router.sessions.principals.claim_names = g->claim_names;
	for (size_t i = 0; i < config->server_count; i++)
		for (size_t j = 0; j < config->servers[i].claims.count; j++) {
			g->claims[count] = slice_str(config->servers[i].claims.items[j]);
			gateway_add_claim_name(g, g->claims[count++]);
		}
}

static void gateway_make_backends(struct gateway *g)
{
	const struct config *config = g->config;
	const struct slice *claims = g->claims;

	g->fleet.max = config->max_processes;
	g->backends = mem_zalloc(config->server_count * sizeof(*g->backends));
	g->endpoints = mem_zalloc(config->server_count * sizeof(*g->endpoints));
	for (size_t i = 0; i < config->server_count; i++) {
		struct backend_conf conf = gateway_backend_conf(config, i);
		struct backend *backend = &g->backends[g->backend_count];

		conf.claims = claims;
		conf.claim_count = config->servers[i].claims.count;
		claims += conf.claim_count;
		if (!config->servers[i].enabled)
			continue;
		conf.fleet = &g->fleet;
		backend_init(backend, g->loop, g->spawner, &conf);
		g->endpoints[g->backend_count++] = (struct gate_endpoint){
			.path = slice_str(config->servers[i].path),
			.sse_path = slice_str(config->servers[i].sse_path),
			.message_path = slice_str(config->servers[i].message_path),
			.backend = backend,
			.place = authorization_make_place(&g->authorization, &config->servers[i]),
		};
	}
}

static void gateway_add_host(struct gateway *g, struct slice host)
{
	if (host.n > 0)
		g->hosts[g->host_count++] = host;
}

/* Who we are: the configured names, ourselves on this machine, the addresses listened on. DEF-05 */
static void gateway_make_hosts(struct gateway *g)
{
	const struct config *config = g->config;
	struct slice url = config->public_url != NULL ? slice_str(config->public_url) :
							(struct slice){ NULL, 0 };
	const char *authority = url.n > 0 ? memmem(url.p, url.n, "://", 3) : NULL;

	g->hosts = mem_zalloc((config->hosts.count + config->listen_count + 4) * sizeof(*g->hosts));
	gateway_add_host(g, SLICE_LIT("localhost"));
	gateway_add_host(g, SLICE_LIT("127.0.0.1"));
	gateway_add_host(g, SLICE_LIT("[::1]"));
	for (size_t i = 0; i < config->hosts.count; i++)
		gateway_add_host(g, gate_host_of(slice_str(config->hosts.items[i])));
	for (size_t i = 0; i < config->listen_count; i++) {
		struct slice address = slice_str(config->listen[i].address);

		if (!slice_has_prefix(address, SLICE_LIT("unix:")) &&
		    !slice_has_prefix(address, SLICE_LIT("systemd:")))
			gateway_add_host(g, gate_host_of(address));
	}
	if (authority != NULL) {
		struct slice rest = slice_between(authority + 3, url.p + url.n);

		gateway_add_host(g, gate_host_of(slice_cut(&rest, '/')));
	}
}

static void gateway_make_gate(struct gateway *g)
{
	static const enum gate_response responses[] = {
		[CONFIG_RESPONSE_AUTO] = GATE_RESPONSE_AUTO,
		[CONFIG_RESPONSE_JSON] = GATE_RESPONSE_JSON,
		[CONFIG_RESPONSE_SSE] = GATE_RESPONSE_SSE,
	};
	const struct config *config = g->config;
	struct gate_conf conf = {
		.endpoints = g->endpoints,
		.endpoint_count = g->backend_count,
		.origin_count = config->origins.count,
		.guard = g->authorization.guard,
		.metadata = g->authorization.metadata.resource_count > 0 ?
				    &g->authorization.metadata :
				    NULL,
		.response = responses[config->response],
		.grace_ms = config->json_grace_ms,
		.keepalive_ms = config->stream_keepalive_ms,
		.retry_ms = config->retry_ms,
		.max_connection_age_ms = config->max_connection_age_ms,
	};

	gateway_make_hosts(g);
	g->origins = mem_zalloc((config->origins.count + 1) * sizeof(*g->origins));
	for (size_t i = 0; i < config->origins.count; i++)
		g->origins[i] = slice_str(config->origins.items[i]);
	conf.hosts = g->hosts;
	conf.host_count = g->host_count;
	conf.origins = g->origins;
	gate_init(&g->gate, &g->router, &conf);
}

/* Those of the process before, if it has failed; they began as the configuration's. AUTH-SES-07 */
static void gateway_make_denials(struct gateway *g)
{
	struct denials *denials = &g->router.sessions.denials;

	if (!heirloom_load(heirloom, denials))
		authorization_deny(g->config, denials);
	heirloom_save(heirloom, denials);
}

static void gateway_make_router(struct gateway *g)
{
	const struct config *config = g->config;
	const struct session_conf conf = {
		.max_sessions = config->max_sessions,
		.max_per_principal = config->max_sessions_per_principal,
		.idle_ms = config->session_idle_ms,
		.max_age_ms = config->session_max_age_ms,
		.store = { .stream = { .max_bytes = config->replay_bytes,
				       .replay_events = config->replay_events,
				       .replay_age_ms = config->replay_age_ms },
			   .session_bytes = config->replay_session_bytes,
			   .total_bytes = config->replay_total_bytes },
	};

	g->router.loop = g->loop;
	g->router.limits = (struct scan_limits){ config->json_depth, ID_BYTES_MAX };
	list_init(&g->router.pools);
	listings_store_init(&g->router.lists);
	list_init(&g->router.spares);
	session_set_init(&g->router.sessions, g->loop, &conf);
	gateway_list_claims(g);
}

static void gateway_on_admin_drain(void)
{
	spawner_stop(gateway->spawner);
}

static void gateway_on_denials(void)
{
	heirloom_save(heirloom, &gateway->router.sessions.denials);
}

static void gateway_on_admin_reload(void)
{
	spawner_reload(gateway->spawner);
}

static void gateway_on_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct port *port = container_of(listener, struct port, listener);
	struct gateway *g = port->gateway;

	entrance_accept(&g->entrance, fd, peer,
			&(struct entrance_port){
				.has_proxy_header = g->config->listen[port->index].proxy_protocol,
				.tls_server = g->identities.servers[port->index] });
}

static void gateway_make_http(struct gateway *g)
{
	const struct config *config = g->config;
	struct http_conf conf = {
		.header_bytes = config->header_bytes,
		.body_bytes = config->message_bytes,
		.header_timeout_ms = config->header_timeout_ms,
		.body_timeout_ms = config->body_timeout_ms,
		.idle_timeout_ms = config->idle_timeout_ms,
		.stall_timeout_ms = STALL_MS,
		.max_connections = config->max_connections,
	};

	g->proxies = mem_zalloc((config->trusted_proxies.count + 1) * sizeof(*g->proxies));
	for (size_t i = 0; i < config->trusted_proxies.count; i++) {
		if (peer_net_parse(slice_str(config->trusted_proxies.items[i]),
				   &g->proxies[conf.trust.count]))
			conf.trust.count++;
	}
	conf.trust.nets = g->proxies;
	g->http = http_server_new(g->loop, &conf, &g->gate.handler);
	entrance_init(&g->entrance, g->loop, g->http);
	identities_init(&g->identities, config);
	g->desk = desk_new(&(struct desk_conf){ .loop = g->loop,
						.router = &g->router,
						.endpoints = g->endpoints,
						.backends = g->backends,
						.backend_count = g->backend_count,
						.gate = &g->gate.conf,
						.http = &conf,
						.front = g->http,
						.listeners = g->listeners + config->listen_count,
						.on_drain = gateway_on_admin_drain,
						.on_reload = gateway_on_admin_reload,
						.on_denials = gateway_on_denials });
}

/* Everything is there: from now on requests are served. */
static void gateway_listen(struct gateway *g)
{
	size_t count = g->config->listen_count;

	g->ports = mem_zalloc((count + 1) * sizeof(*g->ports));
	g->port_count = count;
	for (size_t i = 0; i < count; i++) {
		g->ports[i].gateway = g;
		g->ports[i].index = i;
		listener_init(&g->ports[i].listener, g->loop, g->listeners[i], gateway_on_accept);
	}
	LOG(GATEWAY_READY, LOG_INT("servers", g->backend_count));
	spawner_ready(g->spawner);
}

static void gateway_free(struct gateway *g)
{
	desk_free(&g->desk);
	entrance_fini(&g->entrance);
	http_server_free(&g->http);
	identities_fini(&g->identities);
	gate_fini(&g->gate);
	session_set_fini(&g->router.sessions);
	buf_fini(&g->router.scratch);
	spawner_free(&g->spawner);
	authorization_fini(&g->authorization);
	for (size_t i = 0; i < g->backend_count; i++)
		backend_fini(&g->backends[i]);
	free(g->backends);
	free(g->endpoints);
	free(g->hosts);
	free(g->claims);
	free(g->claim_names);
	free(g->origins);
	free(g->proxies);
	free(g->ports);
	timer_stop(&g->drain);
	loop_free(&g->loop);
}

/*
 * Large messages come and go: memory for them is not asked of the kernel, page by page, each time anew.
 * What is free at the heap's end beyond this bound goes back.
 */
static void gateway_tune_heap(void)
{
	mallopt(M_MMAP_THRESHOLD, HEAP_KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
}

void gateway_prepare(void)
{
	heirloom = heirloom_new();
}

int gateway_main(struct config *config, const int *listeners, size_t listener_count, int keeper_fd)
{
	struct gateway g = { .config = config, .listeners = listeners, .log_fd = -1 };
	struct error err = { ERROR_NONE, "" };

	log_set_process("gateway");
	signal(SIGPIPE, SIG_IGN);
	/* The keeper hears these and tells us; a terminal sends them to everybody. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	gateway_tune_heap();
	gateway = &g;
	g.loop = loop_new(&err);
	if (g.loop == NULL) {
		LOG(IPC_FAILED, LOG_STR("error", err.text));
		return 1;
	}
	timer_init(&g.drain, gateway_on_drain_step);
	g.spawner = spawner_new(g.loop, keeper_fd, &gateway_spawner_ops);
	gateway_make_router(&g);
	if (authorization_init(&g.authorization, config, g.loop, &err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		return 1;
	}
	gateway_make_denials(&g);
	gateway_make_backends(&g);
	gateway_start_children(&g);
	gateway_make_gate(&g);
	gateway_make_http(&g);
	CHECK(listener_count == config->listen_count);
	if (!identities_are_needed(&g.identities))
		gateway_listen(&g); /* otherwise when the keeper has sent the certificates */
	loop_run(g.loop);
	LOG(GATEWAY_STOP, LOG_INT("children", gateway_count_children(&g)));
	counters_log();
	gateway_free(&g);
	return 0;
}
