/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-gateway: the only place that knows all parts of the network process. Stopping goes in steps, each begun when
 * the one before is through or its time is up: calls finish, sessions end, processes go.
 */
#include "gateway.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/mem.h"
#include "config/forms.h"
#include "endpoint/aggregate.h"
#include "io/aside.h"
#include "io/loop.h"
#include "keeper/gateway_entry.h"
#include "obs/counters.h"
#include "obs/log.h"

#define REPORT_BYTES_MAX ((size_t)128 * 1024) /* of a reload */
#define DRAIN_STEP_MS 20
#define AUDIT_WAITING_MS 10
#define LINGER_MS 2000
#define LAST_MS (LINGER_MS + 1000)
#define LAST_REQUESTS_MS \
	250 /* without a request: whoever uses his connection has had an answer that says that it is the last */
#define ID_BYTES_MAX 256

/* The keeper's callbacks carry no pointer of ours; there is one gateway in a process. */
static struct gateway *gateway;

/* ---- stopping ---- */

/* Nothing else changes the state; it goes one step at a time. */
static void gateway_set_state(struct gateway *g, enum gateway_state state)
{
	static const char *const names[] = {
		[GATEWAY_SERVING] = "serving",
		[GATEWAY_LEAVING] = "leaving",
		[GATEWAY_FINISHING] = "finishing",
		[GATEWAY_STOPPING] = "stopping",
	};

	CHECK(state == g->state + 1);
	LOG(GATEWAY_STATE, LOG_STR("from", names[g->state]), LOG_STR("to", names[state]));
	g->state = state;
	g->state_since_ms = clock_now_ms();
}

static void gateway_leave(struct gateway *g)
{
	gateway_set_state(g, GATEWAY_LEAVING);
	ports_forget(&g->ports);
	admin_server_leave(g->admin_server);
	frontend_leave(&g->frontend);
	http_server_leave(g->http);
}

/* Its client would come back to another node, which takes the session over, and so ends its calls. */
static bool stream_must_stay(const struct gateway *g, struct session *session)
{
	return g->cluster.client != NULL && !list_is_empty(&client_session_client(session)->calls);
}

/* Connections and streams end with what they are at. */
static void gateway_finish(struct gateway *g)
{
	gateway_set_state(g, GATEWAY_FINISHING);
	http_server_drain(g->http);
	frontend_drain(&g->frontend);
	LIST_EACH(struct session, session, &g->router.sessions.sessions, link)
		if (session->owner == NULL && !stream_must_stay(g, session))
			stream_end(&session->standalone, REASON_DRAINING);
}

static void gateway_stop_serving(struct gateway *g)
{
	LOG(DRAIN, LOG_INT("calls", g->router.calls), LOG_INT("sessions", g->router.sessions.count),
	    LOG_INT("connections", http_server_connection_count(g->http)));
	g->drain_until_ms = clock_now_ms() + g->config->drain_timeout_ms;
	router_drain(&g->router);
	ports_leave_kept(&g->ports);
	gateway_finish(g);
}

/*
 * Until now the listeners stayed open: those who wait for calls in flight may have to answer a server's question, or to resume a
 * stream, on a new connection. The keeper has closed its copies: from now on who connects is refused, and tries elsewhere.
 */
static void gateway_end_sessions(struct gateway *g)
{
	ports_close(&g->ports);
	gateway_set_state(g, GATEWAY_STOPPING);
	kept_sessions_leave(&g->router.kept_sessions);
	router_end_sessions(&g->router, REASON_DRAINING);
	CHECK(g->router.sessions.count == 0);
	router_end_processes(&g->router, REASON_DRAINING);
	exporter_finish(g->exporter);
}

/* A client that still reads its answer gets as much time as calls get to finish; other connections LINGER_MS. */
static bool gateway_is_through(const struct gateway *g, uint64_t passed_ms)
{
	if (server_table_count_children(&g->table) > 0)
		return false;
	if ((exporter_is_busy(g->exporter) || cluster_is_busy(&g->cluster)) &&
	    passed_ms < LINGER_MS)
		return false;
	if (http_server_connection_count(g->http) + g->acceptor.count == 0)
		return true;
	return passed_ms >= LINGER_MS &&
	       (clock_now_ms() >= g->drain_until_ms || !http_server_is_writing(g->http));
}

/*
 * New connections wait for the next gateway; but an answer that a call waits for may come on one, and a person may think for a while:
 * until he has answered, all are served. Not in the last quarter of the time, so that what has begun by then can end.
 */
static void gateway_judge_ports(struct gateway *g, uint64_t passed_ms)
{
	uint64_t accepts_ms = g->config->drain_timeout_ms - g->config->drain_timeout_ms / 4;

	CHECK(g->hands_over);
	if (g->state == GATEWAY_LEAVING && passed_ms < accepts_ms && router_is_asking(&g->router))
		ports_return(&g->ports);
	else
		ports_leave_all(&g->ports);
}

/*
 * Until the end requests on open connections are served as ever, but each connection ends with its answer. What the next gateway
 * inherits must not be in the middle of a message.
 */
static void gateway_on_hand_over_step(struct gateway *g, uint64_t passed_ms)
{
	size_t connections = http_server_connection_count(g->http) + g->acceptor.count;
	bool is_quiet = g->router.calls == 0 && server_table_is_quiet(&g->table);

	gateway_judge_ports(g, passed_ms);
	if (http_server_usage(g->http).read_bytes != g->read_bytes)
		g->read_at_ms = clock_now_ms();
	g->read_bytes = http_server_usage(g->http).read_bytes;
	if (g->state == GATEWAY_LEAVING &&
	    ((is_quiet &&
	      (connections == 0 || clock_now_ms() - g->read_at_ms >= LAST_REQUESTS_MS)) ||
	     passed_ms >= g->config->drain_timeout_ms)) {
		router_end_waits(&g->router, REASON_DRAINING);
		router_end_calls(&g->router, REASON_DRAINING);
		router_hand_over(&g->router);
		gateway_finish(g);
		exporter_finish(g->exporter);
		return;
	}
	is_quiet = is_quiet && connections == 0 && !exporter_is_busy(g->exporter);
	if (g->state != GATEWAY_FINISHING || (!is_quiet && passed_ms < LINGER_MS))
		return;
	/* What has come on a connection that was there: it is answered, and nothing is handed over in the middle of it. */
	if (g->router.calls > 0 && passed_ms < LAST_MS) {
		router_end_waits(&g->router, REASON_DRAINING);
		router_end_calls(&g->router, REASON_DRAINING);
		return;
	}
	gateway_set_state(g, GATEWAY_STOPPING);
}

static void gateway_on_hand_over(void)
{
	if (gateway->state != GATEWAY_SERVING)
		return;
	gateway->hands_over = true;
	gateway_leave(gateway);
	ports_leave_all(&gateway->ports);
	timer_start(gateway->loop, &gateway->drain, 0);
}

static void gateway_on_drain_step(struct timer *timer)
{
	struct gateway *g = container_of(timer, struct gateway, drain);
	uint64_t passed_ms = clock_now_ms() - g->state_since_ms;

	CHECK(g->state != GATEWAY_SERVING);
	if (g->hands_over)
		gateway_on_hand_over_step(g, passed_ms);
	else if (g->state == GATEWAY_LEAVING && passed_ms >= g->config->drain_delay_ms)
		gateway_stop_serving(g);
	else if (g->state == GATEWAY_FINISHING &&
		 (g->router.calls == 0 || passed_ms >= g->config->drain_timeout_ms))
		gateway_end_sessions(g);
	passed_ms = clock_now_ms() - g->state_since_ms;
	if (g->state == GATEWAY_STOPPING && (g->hands_over || gateway_is_through(g, passed_ms))) {
		loop_stop(g->loop);
		return;
	}
	timer_start(g->loop, &g->drain, DRAIN_STEP_MS);
}

static void gateway_on_drain(void)
{
	gateway->hands_over = false;
	if (gateway->state == GATEWAY_SERVING) {
		gateway_leave(gateway);
		if (gateway->config->drain_delay_ms == 0)
			gateway_stop_serving(gateway);
		timer_start(gateway->loop, &gateway->drain, 0);
		return;
	}
	if (gateway->state == GATEWAY_LEAVING) {
		gateway_stop_serving(gateway);
		return;
	}
	/* Asked a second time, it stops at once. */
	if (gateway->state == GATEWAY_FINISHING)
		gateway_end_sessions(gateway);
	gateway->drain_until_ms = clock_now_ms();
	server_table_kill_children(&gateway->table, REASON_DRAINING);
}

static void gateway_on_keeper_lost(not_used struct spawner *spawner)
{
	LOG(IPC_FAILED, LOG_STR("error", "the keeper has gone; so does this process"));
	exit(1);
}

/* ---- certificates ---- */

static void gateway_listen_once_complete(struct gateway *g);

static void gateway_on_certificate(const struct ipc_message *message)
{
	uint32_t listener = message->certificate.listener, entry = message->certificate.entry;

	if (message->fd_count == 0)
		return; /* it arrived without its descriptors. REL-44 */
	if (message->certificate.is_next != 0)
		ports_take_files(&gateway->ports, listener, entry, message->fds, message->fd_count);
	else
		server_certificates_take(&gateway->ports.certificates, listener, entry,
					 message->fds, message->fd_count);
}

/* The first set opens the ports; without a good one there is nothing to serve with. */
static void gateway_on_certificates_end(void)
{
	bool is_used = server_certificates_use(&gateway->ports.certificates);

	if (ports_is_listening(&gateway->ports)) {
		spawner_judge_certificates(gateway->spawner, is_used);
		return;
	}
	if (!is_used)
		exit(1);
	gateway->has_certificates = true;
	gateway_listen_once_complete(gateway);
}

/* ---- what else the keeper says ---- */

static void gateway_on_audit(int error)
{
	gateway->audit.is_failing = error != 0;
	if (error != 0)
		gateway->audit.last_error = error;
}

static void gateway_on_helper(const struct ipc_message *message)
{
	if (message->fd_count == 0)
		return;
	if (message->helper.which == IPC_HELPER_FETCHER && gateway->fetch_client != NULL)
		fetch_client_connect(gateway->fetch_client, message->fds[0]);
	else if (message->helper.which == IPC_HELPER_STORE && gateway->cluster.client != NULL)
		cluster_connect(&gateway->cluster, message->fds[0]);
	else
		close(message->fds[0]);
}

/* fd -1: we were out of descriptors. */
static void gateway_on_reloaded(uint64_t order, bool is_used, int fd)
{
	static const struct slice unread =
		SLICE("error what has come of it cannot be read here; the log says it\n");
	at_end(mem_free) char *text = mem_alloc(REPORT_BYTES_MAX);
	ssize_t n = fd >= 0 ? pread(fd, text, REPORT_BYTES_MAX, 0) : -1;

	file_close(&fd);
	admin_server_tell_reloaded(gateway->admin_server, order, is_used,
				   n >= 0 ? slice_of(text, (size_t)n) : unread);
}

/* Without its descriptors (REL-44), the state of its pipes, or a session, it is of no use. */
static void gateway_on_inherit(const struct ipc_message *message)
{
	uint32_t number = message->inherit.server;
	struct server *server =
		number < gateway->table.count && gateway->table.rows[number].name != NULL ?
			&gateway->table.servers[number] :
			NULL;

	if (server != NULL && message->fd_count > 0 && gateway->state == GATEWAY_SERVING &&
	    gateway->shares_pipes && !spawner_knows(gateway->spawner, message->inherit.child) &&
	    kept_sessions_inherit(&gateway->router.kept_sessions, server, message))
		return;
	for (size_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
	spawner_forget(gateway->spawner, message->inherit.child);
}

/* A session that is named earlier would get another process. */
static void gateway_on_inherit_end(unsigned int upgrade)
{
	gateway->has_inherited = true;
	kept_pools_forget_idle(&gateway->router.kept_sessions.pools);
	if (gateway->state == GATEWAY_SERVING)
		server_table_start(&gateway->table);
	admin_server_tell_upgrade(gateway->admin_server, upgrade);
	gateway_listen_once_complete(gateway);
}

static void gateway_on_message(not_used struct spawner *spawner, const struct ipc_message *message)
{
	int fd = message->fd_count > 0 ? message->fds[0] : -1;

	if (message->type == IPC_DRAIN)
		gateway_on_drain();
	else if (message->type == IPC_HAND_OVER)
		gateway_on_hand_over();
	else if (message->type == IPC_CERTIFICATE)
		gateway_on_certificate(message);
	else if (message->type == IPC_CERTIFICATES_END)
		gateway_on_certificates_end();
	else if (message->type == IPC_LISTENER)
		ports_take_socket(&gateway->ports, message->listener.number, message->listener.kept,
				  fd);
	else if (message->type == IPC_CONFIG)
		gateway_reload(gateway, fd >= 0 ? message->fds : NULL,
			       message->config.has_other_issuers != 0);
	else if (message->type == IPC_RELOADED)
		gateway_on_reloaded(message->reloaded.order, message->reloaded.is_used != 0, fd);
	else if (message->type == IPC_AUDIT)
		gateway_on_audit(message->audit.error);
	else if (message->type == IPC_UNSAVED)
		admin_server_tell_unsaved(gateway->admin_server, message->unsaved.kinds);
	else if (message->type == IPC_HELPER)
		gateway_on_helper(message);
	else if (message->type == IPC_INHERIT)
		gateway_on_inherit(message);
	else if (message->type == IPC_INHERIT_END)
		gateway_on_inherit_end(message->inherit_end.upgrade);
}

static const struct spawner_ops gateway_spawner_ops = {
	.on_message = gateway_on_message,
	.on_lost = gateway_on_keeper_lost,
};

/* ---- starting ---- */

static void gateway_make_frontend(struct gateway *g)
{
	const struct frontend_conf conf = gateway_frontend_conf(g);

	frontend_init(&g->frontend, &g->router, &conf);
	g->router.aggregate_new = aggregate_new;
}

/* Begins to fetch what issuers publish, without waiting. */
static int gateway_make_verifier(struct gateway *g, struct error *err)
{
	const struct authorization_conf *conf = &g->config->frontend.authorization;

	CHECK(g->verifier == NULL && g->proofs == NULL);
	if (config_is_fetching(g->config))
		g->fetch_client = fetch_client_new(g->loop);
	if (conf->mode != AUTHORIZATION_OAUTH)
		return 0;
	if (conf->dpop != AUTHORIZATION_DPOP_OFF)
		g->proofs = dpop_memory_new(PROOFS_MAX);
	g->verifier = verifier_new(g->loop, g->fetch_client, &conf->issuers, err);
	return g->verifier != NULL ? 0 : -1;
}

/* What the operator has ordered while a gateway before was there, which has failed; and the configuration. AUTH-SES-07 */
static void gateway_make_deny_list(struct gateway *g)
{
	deny_snapshot_load(g->deny_snapshot, &g->router.sessions.deny_list);
	gateway_use_deny_list(g);
}

static void gateway_on_records(struct task *task)
{
	(void)audit_flush(&container_of(task, struct gateway, records)->audit);
}

static void gateway_on_gathering(struct audit *audit)
{
	struct gateway *g = container_of(audit, struct gateway, audit);

	task_schedule(g->loop, &g->records);
}

static void gateway_on_audit_waiting(struct audit *audit)
{
	struct gateway *g = container_of(audit, struct gateway, audit);

	timer_start(g->loop, &g->audit_waiting, AUDIT_WAITING_MS);
}

static void gateway_on_audit_due(struct timer *timer)
{
	struct audit *audit = &container_of(timer, struct gateway, audit_waiting)->audit;

	if (!audit_drain(audit))
		gateway_on_audit_waiting(audit);
}

static void gateway_make_router(struct gateway *g, size_t audit_bytes)
{
	router_init(&g->router, g->loop,
		    &(struct scan_limits){ g->config->json_depth, ID_BYTES_MAX },
		    &g->config->sessions);
	g->router.sessions.principals.claim_names = g->config->claim_names;
	task_init(&g->records, gateway_on_records);
	timer_init(&g->audit_waiting, gateway_on_audit_due);
	g->audit = (struct audit){ .fd = GATEWAY_AUDIT,
				   .pipe_bytes = audit_bytes,
				   .on_gathering = gateway_on_gathering,
				   .on_waiting = gateway_on_audit_waiting };
	g->router.rule_places = &g->config->rule_places;
	gateway_use_audit(g);
}

static void gateway_on_admin_drain(void)
{
	spawner_stop(gateway->spawner);
}

static void gateway_on_denials(void)
{
	deny_snapshot_save(gateway->deny_snapshot, &gateway->router.sessions.deny_list);
}

static void gateway_on_deny_list(void)
{
	gateway_on_denials();
	cluster_tell_denials(&gateway->cluster);
}

static uint64_t gateway_on_admin_reload(bool is_upgrade)
{
	return spawner_reload(gateway->spawner, is_upgrade);
}

static bool gateway_on_certificate_report(size_t index, struct certificate_report *report_r)
{
	return server_certificates_report(&gateway->ports.certificates, index, report_r);
}

static void gateway_make_http(struct gateway *g)
{
	const struct config *config = g->config;
	const struct http_conf conf = gateway_http_conf(config);

	CHECK(g->http == NULL && g->admin_server == NULL);
	g->http = http_server_new(g->loop, &conf, &g->frontend.handler);
	acceptor_init(&g->acceptor, g->loop, g->http);
	ports_init(&g->ports, g->loop, &g->acceptor, config, g->listeners);
	g->origin = origin_find(config, g->ports.fds);
	g->admin_server = admin_server_new(&(struct admin_server_conf){
		.admin = { .router = &g->router,
			   .servers = g->table.servers,
			   .server_count = g->table.count,
			   .fleet = &g->table.fleet,
			   .front = g->http,
			   .client_frontend = &g->frontend.conf,
			   .views = g->views,
			   .origin = g->origin,
			   .auth_mode = origin_auth_mode(config),
			   .page_token = config->admin_page_token,
			   .on_drain = gateway_on_admin_drain,
			   .on_reload = gateway_on_admin_reload,
			   .on_deny_list = gateway_on_deny_list,
			   .on_certificate = gateway_on_certificate_report },
		.loop = g->loop,
		.spawner = g->spawner,
		.endpoints = g->table.endpoints,
		.http = &conf,
		.listeners = g->listeners + config->listen_count });
}

/* If everything is there, requests are served from now on. */
static void gateway_listen_once_complete(struct gateway *g)
{
	if (g->state != GATEWAY_SERVING || !g->has_certificates || !g->has_inherited)
		return;
	ports_listen(&g->ports);
	LOG(GATEWAY_READY, LOG_INT("servers", g->table.count));
	spawner_ready(g->spawner);
}

static void gateway_free(struct gateway *g)
{
	admin_server_free(&g->admin_server);
	acceptor_fini(&g->acceptor);
	http_server_free(&g->http);
	ports_fini(&g->ports);
	frontend_fini(&g->frontend);
	cluster_fini(&g->cluster);
	router_fini(&g->router);
	audit_finish(&g->audit);
	pin_memory_fini(&g->pin_memory);
	spawner_free(&g->spawner);
	verifier_free(&g->verifier);
	exporter_free(&g->exporter);
	fetch_client_free(&g->fetch_client);
	dpop_memory_free(&g->proofs);
	server_table_fini(&g->table);
	free(g->origin);
	timer_stop(&g->drain);
	timer_stop(&g->heap_look);
	timer_stop(&g->audit_waiting);
	loop_free(&g->loop);
}

/* All that the next gateway is to know; sessions and processes stay as they are. */
static void gateway_save(struct gateway *g)
{
	CHECK(g->hands_over && g->state == GATEWAY_STOPPING);
	kept_sessions_hand_over(&g->router.kept_sessions);
	pin_memory_fini(&g->pin_memory);
	audit_finish(&g->audit);
}

static void gateway_on_heap_look(struct timer *timer)
{
	struct gateway *g = container_of(timer, struct gateway, heap_look);

	heap_give_back(&g->heap);
	timer_start(g->loop, timer, HEAP_LOOK_MS);
}

static void gateway_on_server_freed(void)
{
	admin_server_renew(gateway->admin_server, gateway->table.count, gateway->origin,
			   origin_auth_mode(gateway->config));
}

/* Returns the exit status of the process. */
static int gateway_run(struct gateway_entry *entry)
{
	struct gateway g = { .config = entry->config,
			     .listeners = entry->listeners,
			     .views = &entry->views,
			     .deny_snapshot = deny_snapshot_map(GATEWAY_DENY) };
	struct error err = { ERROR_NONE, "" };

	CHECK(gateway == NULL);
	close(GATEWAY_DENY);
	gateway = &g;
	g.loop = loop_new(&err);
	if (g.loop == NULL) {
		LOG(IPC_FAILED, LOG_STR("error", err.text));
		return 1;
	}
	timer_init(&g.drain, gateway_on_drain_step);
	timer_init(&g.heap_look, gateway_on_heap_look);
	timer_start(g.loop, &g.heap_look, HEAP_LOOK_MS);
	g.spawner = spawner_new(g.loop, GATEWAY_KEEPER, &gateway_spawner_ops);
	g.shares_pipes = spawner_use_pipe_states(g.spawner, GATEWAY_PIPES);
	close(GATEWAY_PIPES);
	gateway_make_router(&g, entry->audit_bytes);
	router_use_seal_key(&g.router, entry->seal_key);
	OPENSSL_cleanse(entry->seal_key, sizeof(entry->seal_key));
	if (gateway_make_verifier(&g, &err) < 0) {
		LOG(ISSUERS_FAILED, LOG_STR("error", err.text));
		return 1;
	}
	credentials_use(&g.router.upstreams.credentials, g.fetch_client);
	g.exporter = exporter_new(g.loop);
	gateway_export(&g);
	gateway_make_deny_list(&g);
	server_table_init(&g.table, &g.router, g.spawner, entry->landlock, gateway_on_server_freed);
	server_table_use(&g.table, entry->config, entry->numbers);
	pin_memory_init(&g.pin_memory, g.loop, g.spawner, GATEWAY_PINS, g.table.servers,
			g.table.count);
	close(GATEWAY_PINS);
	kept_sessions_open(&g.router.kept_sessions, g.spawner, GATEWAY_SESSIONS,
			   entry->config->keeps_sessions, &g.router.sessions.conf);
	close(GATEWAY_SESSIONS);
	kept_sessions_open_streams(&g.router.kept_sessions, GATEWAY_STREAMS);
	close(GATEWAY_STREAMS);
	cluster_init(&g.cluster, &g.router, entry->config->cluster.node, gateway_on_denials);
	free(entry->numbers);
	gateway_make_frontend(&g);
	gateway_make_http(&g);
	g.has_certificates = !server_certificates_are_needed(&g.ports.certificates);
	heap_keep_freed(); /* only now: what is made until here is large, for life, and hardly ever used whole */
	loop_run(g.loop);
	CHECK(g.state == GATEWAY_STOPPING);
	aside_finish(g.loop);
	LOG(GATEWAY_STOP, LOG_INT("children", server_table_count_children(&g.table)));
	counters_log();
	if (g.hands_over)
		gateway_save(&g);
	else
		gateway_free(&g);
	return 0;
}

int main(void)
{
	struct gateway_entry entry;

	gateway_entry(&entry);
	/* What is left belongs to the process, and ends with it. */
	_exit(gateway_run(&entry));
}
