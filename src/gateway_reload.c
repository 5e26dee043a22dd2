/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway takes of its configuration, and another configuration while requests are served. First what may fail; then everything is swapped within one turn of the loop, so
 * that no request sees half of it. Nothing points into the one before afterwards but what the table keeps it for.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/forms.h"
#include "endpoint/caller.h"
#include "gateway.h"
#include "http/conn.h"
#include "io/aside.h"
#include "obs/log.h"
#include "router/client_request.h"
#include "router/client_session.h"

#define PIPES_EACH 3
#define OWN_DESCRIPTORS 64 /* the listeners, the log, the operator, the fetcher */
#define CHUNK_BYTES ((size_t)64 * 1024)
#define CONFIG_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* ---- what is taken of any configuration ---- */

struct frontend_conf gateway_frontend_conf(const struct gateway *g)
{
	struct frontend_conf conf = g->config->frontend;

	CHECK(conf.authorization.verifier == NULL);
	conf.endpoints = g->table.endpoints;
	conf.endpoint_count = g->table.count;
	conf.authorization.verifier = g->verifier;
	conf.authorization.proofs = g->proofs;
	conf.cluster = g->cluster.client != NULL ? (struct cluster *)(uintptr_t)&g->cluster : NULL;
	return conf;
}

static void gateway_deny(struct deny_list *deny_list, const struct config_denial *denial,
			 bool is_first)
{
	const struct denial_marks *marks = &denial->marks;
	uint64_t until_ms = denial->until_ms > 0 ? denial->until_ms : UINT64_MAX;

	for (enum denial_by by = 0; by < DENIAL_BY_COUNT; by++)
		if (marks->names[by].n > 0 && is_first)
			deny_list_configure_keep(deny_list, marks->issuer, by, marks->names[by],
						 until_ms);
		else if (marks->names[by].n > 0 &&
			 !deny_list_configure(deny_list, marks->issuer, by, marks->names[by],
					      until_ms))
			LOG(DENY_LIST_FULL, LOG_SLICE("issuer", marks->issuer),
			    LOG_SLICE("name", marks->names[by]));
}

void gateway_use_deny_list(struct gateway *g)
{
	struct deny_list *deny_list = &g->router.sessions.deny_list;

	deny_list_configure_begin(deny_list);
	for (size_t i = 0; i < g->config->deny.count; i++)
		gateway_deny(deny_list, &g->config->deny.items[i], true);
	for (size_t i = 0; i < g->config->deny.count; i++)
		gateway_deny(deny_list, &g->config->deny.items[i], false);
	deny_list_configure_end(deny_list);
	deny_snapshot_save(g->deny_snapshot, deny_list);
}

/* Clients alone must not use up the descriptors of this process: those of servers need some, too. REL-44 */
static uint64_t find_connections_max(const struct config *config)
{
	uint64_t wanted = config->http.max_connections;
	uint64_t own = config->max_processes * PIPES_EACH + OWN_DESCRIPTORS;
	struct rlimit files;
	uint64_t room;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return wanted;
	room = files.rlim_cur / 2 > own ? files.rlim_cur - own : files.rlim_cur / 2;
	if (wanted <= room)
		return wanted;
	LOG(CONNECTIONS_BOUNDED, LOG_INT("limit", wanted), LOG_INT("here", room),
	    LOG_INT("open_files", files.rlim_cur));
	return room;
}

struct http_conf gateway_http_conf(const struct config *config)
{
	struct http_conf conf = config->http;

	conf.max_connections = find_connections_max(config);
	return conf;
}

void gateway_use_audit(struct gateway *g)
{
	g->audit.conf = g->config->audit;
	g->router.audit = g->audit.conf.to != NULL ? &g->audit : NULL;
	if (g->router.audit == NULL)
		g->audit.written = 0; /* as the metrics say then, and so they go on */
}

void gateway_export(struct gateway *g)
{
	bool is_on = g->config->traces.collector.endpoint != NULL;

	CHECK(!is_on || g->fetch_client != NULL);
	exporter_use(g->exporter, is_on ? g->fetch_client : NULL, &g->config->traces.exporter);
	g->router.exporter = is_on ? g->exporter : NULL;
}

/* What has been made for another one, and is not in use. */
struct next {
	struct config *config;
	uint32_t *numbers;
	bool has_verifier; /* it takes the place of the one before, which may be NULL like this */
	struct fetch_client *fetch_client; /* NULL: the one before is used, or none */
	struct verifier *verifier;
};

static int refuse(const char *why)
{
	LOG(RELOAD_FAILED, LOG_STR("error", why));
	return -1;
}

/* ---- what may fail ---- */

static int read_next(const struct gateway *g, const int fds[2], struct next *next_r)
{
	struct error err = { ERROR_NONE, "" };
	struct buf text = { 0 };
	ssize_t n;

	do {
		n = pread(fds[0], buf_reserve(&text, CHUNK_BYTES), CHUNK_BYTES, (off_t)text.len);
		text.len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && text.len < CONFIG_BYTES_MAX);
	close(fds[0]);
	/* A part of it would be another configuration, and nothing one without authorization. */
	if (n == 0 && text.len > 0)
		next_r->config = config_read_next(buf_slice(&text), g->config, &err);
	else
		error_set(&err, ERROR_SYSTEM,
			  "the configuration of the keeper cannot be read whole");
	buf_wipe(&text);
	if (next_r->config == NULL) {
		close(fds[1]);
		return refuse(err.text);
	}
	next_r->numbers = gateway_servers_read(fds[1], next_r->config->server_count);
	return next_r->numbers != NULL ? 0 : refuse("the keeper has given no servers");
}

static int begin(const struct gateway *g, const int *fds, struct next *next_r)
{
	if (fds == NULL)
		return refuse("too many open files");
	if (g->state == GATEWAY_SERVING && ports_is_listening(&g->ports))
		return read_next(g, fds, next_r);
	close(fds[0]);
	close(fds[1]);
	return refuse("the gateway is about to stop");
}

static int judge_ports(struct gateway *g, const struct next *next)
{
	struct error err = { ERROR_NONE, "" };

	return ports_judge(&g->ports, next->config, &err) == 0 ? 0 : refuse(err.text);
}

/* Answers about issuers come to the client that asked, by their numbers: others need another one. */
static int make_verifier(const struct gateway *g, bool has_other_issuers, struct next *next)
{
	const struct authorization_conf *conf = &next->config->frontend.authorization;
	bool is_needed = conf->mode == AUTHORIZATION_OAUTH;
	struct error err = { ERROR_NONE, "" };

	if (config_is_fetching(next->config) && (has_other_issuers || g->fetch_client == NULL))
		next->fetch_client = fetch_client_new(g->loop);
	if (is_needed == (g->verifier != NULL) && !has_other_issuers)
		return 0;
	next->has_verifier = true;
	if (!is_needed)
		return 0;
	next->verifier =
		verifier_new(g->loop,
			     next->fetch_client != NULL ? next->fetch_client : g->fetch_client,
			     &conf->issuers, &err);
	return next->verifier != NULL ? 0 : refuse(err.text);
}

static void forget(struct next *next)
{
	verifier_free(&next->verifier);
	fetch_client_free(&next->fetch_client);
	config_free(&next->config);
	free(next->numbers);
}

/* ---- what is swapped ---- */

/* What waits for an answer is asked of the one that is in use now. */
static void use_verifier(struct gateway *g, struct next *next, struct verifier **before,
			 struct fetch_client **client_before)
{
	*before = NULL;
	*client_before = NULL;
	if (next->has_verifier) {
		*before = g->verifier;
		g->verifier = next->verifier;
	} else if (g->verifier != NULL) {
		verifier_renew(g->verifier, &next->config->frontend.authorization.issuers);
	}
	if (next->fetch_client != NULL || !config_is_fetching(next->config)) {
		*client_before = g->fetch_client;
		g->fetch_client = next->fetch_client;
	}
	if (g->proofs == NULL && g->verifier != NULL &&
	    next->config->frontend.authorization.dpop != AUTHORIZATION_DPOP_OFF)
		g->proofs = dpop_memory_new(PROOFS_MAX);
	next->verifier = NULL;
	next->fetch_client = NULL;
}

/* Where there is none now, those who wait learn from the request's own step that no token is known any more. */
static void end_verifier(struct gateway *g, struct verifier *before,
			 struct fetch_client *client_before)
{
	if (before != NULL && g->verifier != NULL)
		verifier_take_over(g->verifier, before);
	else if (before != NULL)
		verifier_give_up(before);
	verifier_free(&before);
	fetch_client_free(&client_before);
}

/* What nobody may have open any more ends; who goes on has the rights that he has now. */
static void use_rights(struct gateway *g, const struct config *before)
{
	const struct authorization_conf *conf = &g->frontend.authorization.conf;
	const struct authorization_conf *old = &before->frontend.authorization;

	authorization_end_removed(&g->frontend.authorization, old);
	if (old->mode < AUTHORIZATION_TOKEN && conf->mode >= AUTHORIZATION_TOKEN)
		router_end_anonymous(&g->router, REASON_DENIED);
	LIST_EACH(struct session, session, &g->router.sessions.sessions, link)
		authorization_renew_rights(conf, session->principal,
					   &client_session_client(session)->rights);
	LIST_EACH(struct client_request, request, &g->router.requests, link) {
		struct client *client = &request->client;

		authorization_renew_rights(conf, client->principal, &client->rights);
	}
	token_watch_judge_all(&g->frontend.authorization);
}

static void use_router(struct gateway *g)
{
	const struct config *config = g->config;

	g->router.configuration++;
	session_set_renew(&g->router.sessions, &config->sessions);
	client_session_keep_all(&g->router, config->keeps_sessions);
	g->router.limits.depth_max = config->json_depth;
	g->router.upstreams.limits.depth_max = config->json_depth;
	principal_set_rename_claims(&g->router.sessions.principals, config->claim_names);
	gateway_use_audit(g);
	g->router.rule_places = &config->rule_places;
	log_set_level(config->log_level, config->log_format);
	log_shows_payloads = config->log_payloads;
}

static void use_servers(struct gateway *g, struct next *next)
{
	at_end(buf_fini) struct buf pins = { 0 };

	pin_memory_leave(&g->pin_memory, &pins);
	server_table_use(&g->table, next->config, next->numbers);
	pin_memory_return(&g->pin_memory, g->table.count, buf_slice(&pins));
}

static void use_front(struct gateway *g)
{
	const struct http_conf http = gateway_http_conf(g->config);
	const struct frontend_conf frontend = gateway_frontend_conf(g);

	CHECK(g->state == GATEWAY_SERVING);
	frontend_renew(&g->frontend, &frontend);
	http_server_renew(g->http, &http);
	free(g->origin);
	g->origin = origin_find(g->config, g->ports.fds);
	admin_server_renew(g->admin_server, g->table.count, g->origin, origin_auth_mode(g->config));
}

/* Records of what was answered go where they were to go: before the keeper turns to another place, or to none. SEC-63 */
static void leave_audit(struct gateway *g, const struct config *next)
{
	if (g->router.audit == NULL)
		return;
	if (next->audit.to == NULL)
		audit_finish(&g->audit);
	else
		(void)audit_flush(&g->audit);
}

static void use(struct gateway *g, struct next *next)
{
	const struct config *before = g->config;
	struct verifier *verifier_before;
	struct fetch_client *client_before;

	aside_finish(g->loop); /* what has begun by the rules before */
	leave_audit(g, next->config);
	ports_use(&g->ports, next->config);     /* before the keeper gives up what goes */
	spawner_judge_config(g->spawner, true); /* before anything is asked of it */
	use_verifier(g, next, &verifier_before, &client_before);
	g->config = next->config;
	gateway_export(g); /* while what it uses so far is there */
	use_router(g);
	use_servers(g, next);
	next->config = NULL; /* the table's */
	use_front(g);
	credentials_use(&g->router.upstreams.credentials, g->fetch_client);
	gateway_use_deny_list(g); /* before anybody who has waited for a verdict is let in */
	end_verifier(g, verifier_before, client_before);
	use_rights(g, before);
	router_use_rules(
		&g->router); /* by the pins that there are now, for those who are still there */
	LOG(RELOAD_USED, LOG_INT("sessions", g->router.sessions.count),
	    LOG_INT("calls", g->router.calls));
}

void gateway_reload(struct gateway *g, const int fds[2], bool has_other_issuers)
{
	struct next next = { .config = NULL };

	if (begin(g, fds, &next) == 0 && judge_ports(g, &next) == 0 &&
	    make_verifier(g, has_other_issuers, &next) == 0) {
		use(g, &next);
	} else {
		ports_forget(&g->ports); /* before the keeper looks who has sockets open */
		spawner_judge_config(g->spawner, false);
	}
	forget(&next);
}
