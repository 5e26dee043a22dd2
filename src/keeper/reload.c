/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch table changes at the moment at which the gateway's word comes: what it asks for afterwards, in the same socket, is
 * asked of the new one. The process that fetches is stopped before the gateway gets other issuers, so that no answer about
 * one is taken for that of another.
 */
#include "keeper/reload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/difference.h"
#include "config/load.h"
#include "config/tree.h"
#include "keeper/listeners.h"
#include "keeper/programs.h"
#include "keeper/records.h"
#include "obs/log.h"

#define REPORT_BYTES_MAX (64 * 1024)
#define STATUS_USED "The configuration was read again"
#define STATUS_REFUSED \
	"The configuration was read again and refused; the previous one stays in use: see the log"

#define TO(state) (1u << RELOAD_##state)
static const struct state_row states[] = {
	[RELOAD_IDLE] = { "idle", TO(WAITING) },
	[RELOAD_WAITING] = { "waiting", TO(SENDING) | TO(CERTIFICATES) | TO(IDLE) },
	[RELOAD_SENDING] = { "sending", TO(JUDGED) | TO(WAITING) | TO(CERTIFICATES) | TO(IDLE) },
	[RELOAD_JUDGED] = { "judged", TO(CERTIFICATES) | TO(WAITING) },
	[RELOAD_CERTIFICATES] = { "certificates", TO(IDLE) },
};
#undef TO

/* The one writer of the state; what is waited for has its time from now on. */
static void reload_set_state(struct reload *reload, enum reload_state state)
{
	CHECK(states[reload->state].next & 1u << state);
	LOG(RELOAD_STATE, LOG_STR("from", states[reload->state].name),
	    LOG_STR("to", states[state].name));
	reload->state = state;
	reload->judge_by_ms = 0;
}

void reload_init(struct reload *reload, const struct reload_parts *parts)
{
	*reload = (struct reload){
		.parts = *parts, .log_fd = -1, .text = -1, .servers = -1, .report_file = -1
	};
}

/* What was read is not used, or has been taken. */
static void reload_forget(struct reload *reload)
{
	next_listeners_forget(&reload->listeners);
	log_file_close(&reload->log_fd);
	CHECK(audit_writer_open_next(reload->parts.audit, NULL, NULL) == 0);
	certificates_fini(&reload->certificates);
	reload->certificates = (struct certificates){ .count = 0 };
	config_free(&reload->next);
	free(reload->numbers);
	reload->numbers = NULL;
	file_close(&reload->text);
	file_close(&reload->servers);
}

/* ---- the report ---- */

static void reload_report(struct reload *reload, const char *kind, const char *text)
{
	if (reload->report.len < REPORT_BYTES_MAX)
		buf_printf(&reload->report, "%s %s\n", kind, text);
	if (strcmp(kind, "error") == 0)
		LOG(RELOAD_REFUSED, LOG_STR("error", text));
	else if (strcmp(kind, "warning") == 0)
		LOG(RELOAD_WARNING, LOG_STR("warning", text));
}

static void report_problems(struct reload *reload, const char *kind,
			    const struct config_problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		reload_report(reload, kind, problems->items[i]);
}

static void reload_report_server(struct reload *reload, const char *kind, const char *name)
{
	reload_report(reload, kind, name);
	LOG(SERVER_RELOADED, LOG_STR("server", name), LOG_STR("is", kind));
}

/* What it does to the listeners. */
static void report_listeners(struct reload *reload)
{
	const struct config *now = server_slots_config(reload->parts.slots);
	const struct config *next = reload->next;
	at_end(mem_free) bool *is_kept = mem_zalloc(now->listen_count);

	for (size_t i = 0; i < next->listen_count; i++) {
		int32_t kept = reload->listeners.kept[i];

		if (kept < 0)
			reload_report(reload, "listen_added", next->listen[i].address);
		else if (!config_is_same_listener(now, (size_t)kept, next, i))
			reload_report(reload, "listen_changed", next->listen[i].address);
		if (kept >= 0)
			is_kept[kept] = true;
	}
	for (size_t i = 0; i < now->listen_count; i++)
		if (!is_kept[i])
			reload_report(reload, "listen_removed", now->listen[i].address);
}

/* What it does to the servers. Those that are not enabled are as if they were not there. */
static void report_changes(struct reload *reload)
{
	const struct config *now = server_slots_config(reload->parts.slots);
	const struct config *next = reload->next;

	for (size_t i = 0; i < next->server_count; i++) {
		const char *name = next->servers[i].conf.name;
		size_t before = config_find_server(now, name);
		bool was_there = before < now->server_count && now->servers[before].enabled;
		bool is_there = next->servers[i].enabled;
		enum config_difference difference;

		if (was_there != is_there)
			reload_report_server(reload, is_there ? "added" : "removed", name);
		if (!was_there || !is_there)
			continue;
		difference = config_compare_servers(now, before, next, i);
		if (difference != CONFIG_SAME)
			reload_report_server(reload,
					     difference == CONFIG_OTHER_RULES ? "rules" : "changed",
					     name);
	}
	for (size_t i = 0; i < now->server_count; i++)
		if (now->servers[i].enabled &&
		    config_find_server(next, now->servers[i].conf.name) == next->server_count)
			reload_report_server(reload, "removed", now->servers[i].conf.name);
}

/* By the time that it is sent, the next reload may have begun. */
void reload_answer(struct reload *reload, uint64_t order, bool is_used, struct slice text)
{
	CHECK(text.p != NULL || text.n == 0);
	/* One that was not sent yet is told to nobody, but nobody waits for ever. */
	if (reload->report_file >= 0 && reload->outcome.reloaded.order > order)
		order = reload->outcome.reloaded.order;
	file_close(&reload->report_file);
	reload->outcome =
		(struct ipc_message){ .type = IPC_RELOADED, .reloaded = { order, is_used } };
	reload->report_file = memory_file_sealed("report", text, NULL);
}

static void make_report(struct reload *reload)
{
	CHECK(reload->state == RELOAD_IDLE && reload->next == NULL);
	reload_answer(reload, reload->answered, reload->is_used, buf_slice(&reload->report));
	buf_fini(&reload->report);
}

/* ---- reading ---- */

/* What the machine keeps was asked by request->check; what this daemon can keep, as it was started, is asked here. */
static void check_daemon(const struct reload *reload, struct config_problems *problems)
{
	const struct config *next = reload->next;
	struct error err = { ERROR_NONE, "" };
	struct launch launch;

	if (launch_init(&launch, next, next->server_count, &err) < 0)
		problem_add(problems, "%s", err.text);
	launch_fini(&launch);
	for (size_t i = 0; i < next->server_count; i++)
		if (next->servers[i].enabled &&
		    !cgroups_can_keep(reload->parts.cgroups, &next->servers[i]))
			problem_add(problems,
				    "servers.%s.resources: needs a restart, because the daemon was "
				    "started without limits of this kind",
				    next->servers[i].conf.name);
}

static int plan(struct reload *reload, struct error *err)
{
	struct config *now = server_slots_config(reload->parts.slots);

	CHECK(reload->numbers == NULL && reload->text < 0);
	reload->numbers = mem_zalloc((reload->next->server_count + 1) * sizeof(*reload->numbers));
	if (server_slots_plan(reload->parts.slots, reload->next, reload->numbers, err) < 0)
		return -1;
	/* As it will be used, if it is. */
	config_keep_fixed(now, reload->next);
	reload->text =
		memory_file_printed("configuration", config_print_for_gateway, reload->next, err);
	config_keep_fixed(now, reload->next);
	return reload->text < 0 ? -1 : 0;
}

/* Where the log and the audit go next. A file that was made for that stays, empty, if something else is refused. */
static int open_records(struct reload *reload, struct error *err)
{
	const struct config *now = server_slots_config(reload->parts.slots);
	const struct config *next = reload->next;

	CHECK(reload->log_fd < 0);
	if (!config_has_same_log(now, next)) {
		reload->log_fd = log_file_open(next, err);
		if (reload->log_fd < 0)
			return -1;
	}
	if (config_has_same_audit(now, next))
		return 0;
	if (audit_writer_open_next(reload->parts.audit, next->audit.to, err) < 0)
		return places_tell(&next->rule_places, "audit.to", err);
	return 0;
}

/* Last: what is opened here is connected to. */
static int open_listen(struct reload *reload, struct error *err)
{
	const struct config *now = server_slots_config(reload->parts.slots);

	CHECK(reload->listeners.config == NULL);
	if (config_has_same_listen(now, reload->next))
		return 0;
	if (certificates_init(&reload->certificates, reload->next, &reload->parts.slots->table,
			      err) < 0)
		return -1;
	return next_listeners_open(&reload->listeners, now, reload->next, err);
}

static void reload_read_config(struct reload *reload)
{
	at_end(config_problems_fini) struct config_problems problems = { NULL, 0 },
							    warnings = { NULL, 0 };
	struct config *now = server_slots_config(reload->parts.slots);
	struct config_request request = *reload->parts.request;
	struct error err = { ERROR_NONE, "" };

	request.running = &reload->parts.slots->table;
	reload->next = config_load(&request, &problems, &warnings);
	if (reload->next != NULL)
		check_daemon(reload, &problems);
	if (problems.count == 0 && plan(reload, &err) < 0)
		problem_add(&problems, "%s", err.text);
	if (problems.count == 0)
		config_check_fixed(now, reload->next, &warnings);
	if (problems.count == 0 && open_records(reload, &err) < 0)
		problem_add(&problems, "%s", err.text);
	if (problems.count == 0 && open_listen(reload, &err) < 0)
		problem_add(&problems, "%s", err.text);
	if (problems.count == 0) {
		config_check_first_issuer(now, reload->next, &warnings);
		config_check_tokens_needed(now, reload->next, &warnings);
	}
	report_problems(reload, "error", &problems);
	report_problems(reload, "warning", &warnings);
	if (problems.count > 0)
		reload_forget(reload);
}

/* ---- using ---- */

/* A server whose user has gone since it was checked is not started as another one. */
static void renew_launch(struct reload *reload)
{
	struct server_slots *slots = reload->parts.slots;
	struct error err = { ERROR_NONE, "" };

	for (size_t i = 0; i < server_slots_config(slots)->server_count; i++) {
		struct config_server *server = &slots->table.servers[slots->numbers[i]];

		if (launch_renew(reload->parts.launch, slots->numbers[i], &err) == 0)
			continue;
		server->enabled = false;
		reload_report(reload, "error", err.text);
	}
}

/* While the configuration before is still there, which knows the addresses of what goes. */
static void use_listen(struct reload *reload)
{
	const struct config *now = server_slots_config(reload->parts.slots);

	if (reload->listeners.config == NULL)
		return;
	report_listeners(reload);
	next_listeners_use(&reload->listeners, now, reload->parts.listeners);
	certificates_replace(reload->parts.certificates, &reload->certificates);
	if (reload->is_stopped)
		listeners_stop(reload->next, *reload->parts.listeners);
}

/* While the configuration before is still there, which has the names in use. */
static void use_records(struct reload *reload)
{
	audit_writer_use_next(reload->parts.audit, reload->next->audit.to);
	if (reload->log_fd < 0)
		return;
	LOG(LOG_MOVED, LOG_STR("to", reload->next->log_target));
	log_file_use(reload->next, reload->log_fd, reload->parts.log_fd);
	reload->log_fd = -1;
}

static void reload_use(struct reload *reload)
{
	const struct reload_parts *parts = &reload->parts;
	struct error err = { ERROR_NONE, "" };
	struct config *next = reload->next;

	report_changes(reload);
	announcement_renew(parts->announcement, next);
	use_records(reload);
	use_listen(reload);
	config_keep_fixed(server_slots_config(parts->slots), next);
	reload->next = NULL;
	server_slots_use(parts->slots, next, reload->numbers);
	server_slots_bound(parts->slots);
	renew_launch(reload);
	children_note_servers(parts->children);
	text_stores_renew(parts->text_stores, next);
	certificates_renew(parts->certificates, next);
	if (reload->has_other_issuers && helper_process_renew(parts->fetcher, next, &err) < 0)
		reload_report(reload, "error", err.text);
	file_close(parts->gateway_config);
	*parts->gateway_config = reload->text;
	reload->text = -1;
	log_set_level(next->log_level, next->log_format);
	reload->is_used = true;
	LOG(RELOAD_USED, LOG_INT("servers", next->server_count));
}

/* ---- steps ---- */

static void reload_finish(struct reload *reload)
{
	reload_set_state(reload, RELOAD_IDLE);
	reload->is_tried_again = false;
	make_report(reload);
	notify_send(reload->parts.notify, reload->is_used ? "READY=1\nSTATUS=" STATUS_USED :
							    "READY=1\nSTATUS=" STATUS_REFUSED);
}

static void finish_if_over(struct reload *reload)
{
	if (reload->state == RELOAD_CERTIFICATES &&
	    !certificates_is_reloading(reload->parts.certificates))
		reload_finish(reload);
}

/* The configuration is in use, or is not: certificates are read again in both cases, as they may have been renewed. */
static void read_certificates(struct reload *reload)
{
	reload_forget(reload);
	reload_set_state(reload, RELOAD_CERTIFICATES);
	if (!reload->is_serving)
		certificates_reload_later(reload->parts.certificates);
	else if (certificates_exist(reload->parts.certificates))
		certificates_reload(reload->parts.certificates);
	finish_if_over(reload);
}

/* Nothing is used that no gateway has judged: the next one might end of it, and the one after that. */
static void reload_begin(struct reload *reload)
{
	struct error err = { ERROR_NONE, "" };
	const struct config *now = server_slots_config(reload->parts.slots);

	CHECK(reload->state == RELOAD_WAITING && reload->is_serving && reload->next == NULL);
	reload->answered = reload->asked;
	if (reload->parts.request != NULL)
		reload_read_config(reload);
	if (reload->next != NULL) {
		/* Where nobody could be told of the issuers in use, this reload is to tell him. */
		reload->has_other_issuers =
			!config_has_same_issuers(now, reload->next) ||
			(config_is_fetching(reload->next) && reload->parts.fetcher->config < 0);
		reload->servers = gateway_process_number_servers(reload->numbers,
								 reload->next->server_count, &err);
		if (reload->servers < 0)
			reload_report(reload, "error", err.text);
	}
	if (reload->servers >= 0)
		reload_set_state(reload, RELOAD_SENDING);
	else
		read_certificates(reload);
}

static void reload_start(struct reload *reload)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)clock_now_ms() * 1000);
	notify_send(reload->parts.notify, text);
	reload_set_state(reload, RELOAD_WAITING);
	reload->is_owed = reload->is_used = false;
	if (reload->is_serving)
		reload_begin(reload);
}

static void reopen(const struct reload *reload)
{
	const struct config *now = server_slots_config(reload->parts.slots);

	LOG(RELOAD, LOG_STR("log", now->log_target));
	log_file_reopen(now, reload->parts.log_fd);
	audit_writer_reopen(reload->parts.audit);
}

void reload_ask(struct reload *reload)
{
	reopen(reload);
	reload->is_owed = !reload->is_stopped;
}

void reload_on_order(struct reload *reload, uint64_t number)
{
	reload->asked = number;
}

/* When the next order may be followed. */
static uint64_t find_order_time(const struct reload *reload)
{
	const uint64_t at_once = (RELOAD_ORDERS_AT_ONCE - 1) * RELOAD_ORDER_EACH_MS;

	return reload->orders_due_ms > at_once ? reload->orders_due_ms - at_once : 0;
}

bool reload_may_follow(struct reload *reload)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms < find_order_time(reload))
		return false;
	if (reload->orders_due_ms < now_ms)
		reload->orders_due_ms = now_ms;
	reload->orders_due_ms += RELOAD_ORDER_EACH_MS;
	return true;
}

void reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd)
{
	if (reload->state != RELOAD_JUDGED)
		return;
	if (is_used)
		reload_use(reload);
	else if (!reload->is_stopped)
		reload_report(reload, "error",
			      "the gateway cannot use the configuration; the log says why");
	if (reload->has_other_issuers)
		helper_process_set_gateway(reload->parts.fetcher, gateway_fd);
	read_certificates(reload);
}

void reload_on_certificates(struct reload *reload, bool is_used)
{
	if (!certificates_on_verdict(reload->parts.certificates, is_used))
		return;
	if (!is_used)
		reload_report(
			reload, "error",
			"the certificates cannot be used, and the previous ones stay in use; the "
			"log says why");
	finish_if_over(reload);
}

/* ---- gateways ---- */

/* One that has ended while it judged may have ended of anything; one that does so again, of what it judged. */
void reload_on_gateway_exit(struct reload *reload)
{
	reload->asked = reload->answered = 0; /* who has asked has gone with it */
	file_close(&reload->report_file);
	reload->is_serving = false;
	reload->judge_by_ms = 0;
	if (reload->state != RELOAD_SENDING && reload->state != RELOAD_JUDGED)
		return;
	if (reload->is_tried_again) {
		reload_report(reload, "error",
			      "the gateway ended before it used the configuration");
		read_certificates(reload);
		return;
	}
	reload_forget(reload);
	reload_set_state(reload, RELOAD_WAITING);
	reload->is_tried_again = true;
}

void reload_on_gateway_ready(struct reload *reload)
{
	reload->is_serving = true;
	if (reload->state == RELOAD_WAITING)
		reload_begin(reload);
	finish_if_over(reload);
}

/* What it may still say of it is not heard: it is killed before it can ask for anything. */
static void reload_give_up(struct reload *reload, pid_t gateway)
{
	static const struct {
		const char *what;
		const char *result;
	} texts[] = {
		[RELOAD_SENDING] = { "accepted the configuration", "nothing has changed" },
		[RELOAD_JUDGED] = { "said whether it uses the configuration",
				    "nothing has changed" },
		[RELOAD_CERTIFICATES] = { "said whether it uses the certificates",
					  "the previous ones stay in use" },
	};
	char text[160];

	snprintf(text, sizeof(text), "the gateway has not %s within %d s, and is killed; %s",
		 texts[reload->state].what, RELOAD_VERDICT_MS / 1000, texts[reload->state].result);
	LOG(GATEWAY_OVERDUE, LOG_INT("pid", gateway));
	reload_report(reload, "error", text);
	kill(gateway, SIGKILL); /* SIGCHLD follows */
	reload->is_serving = false;
	if (reload->state == RELOAD_CERTIFICATES) {
		certificates_give_up(reload->parts.certificates);
		reload_finish(reload);
	} else {
		read_certificates(reload);
	}
}

uint64_t reload_do_due(struct reload *reload, int gateway_fd, pid_t gateway)
{
	bool is_ordered = reload->asked != reload->answered;

	if (reload->state == RELOAD_IDLE && !reload->is_stopped && reload->is_owed)
		reload_start(reload);
	else if (reload->state == RELOAD_IDLE && !reload->is_stopped && is_ordered) {
		if (!reload_may_follow(reload))
			return find_order_time(reload);
		reopen(reload);
		reload_start(reload);
	}
	if (reload->state < RELOAD_SENDING || gateway_fd < 0)
		return UINT64_MAX;
	if (reload->judge_by_ms == 0)
		reload->judge_by_ms = clock_now_ms() + RELOAD_VERDICT_MS;
	if (clock_now_ms() < reload->judge_by_ms)
		return reload->judge_by_ms;
	reload_give_up(reload, gateway);
	return UINT64_MAX;
}

void reload_stop(struct reload *reload, int gateway_fd)
{
	reload->is_stopped = true;
	if (reload->state != RELOAD_WAITING && reload->state != RELOAD_SENDING)
		return;
	if (reload->state == RELOAD_SENDING && reload->has_other_issuers)
		helper_process_set_gateway(reload->parts.fetcher, gateway_fd);
	reload_set_state(reload, RELOAD_IDLE);
	reload_forget(reload);
}

/* ---- servers of earlier configurations ---- */

static void free_slot(const struct reload_parts *parts, size_t number)
{
	server_slots_free_one(parts->slots, number);
	CHECK(launch_renew(parts->launch, number, NULL) == 0); /* there is nothing to prepare */
}

void reload_free_slots(const struct reload *reload)
{
	const struct reload_parts *parts = &reload->parts;

	for (size_t i = 0; i < parts->slots->table.server_count; i++)
		if (parts->slots->slots[i].starts.processes > 0) {
			if (server_slots_is_overdue(parts->slots, i))
				children_kill_server(parts->children, i);
		} else if (server_slots_is_released(parts->slots, i)) {
			free_slot(parts, i);
		}
}

/* ---- telling ---- */

static void send_config(struct reload *reload, int gateway_fd)
{
	const struct ipc_message message = { .type = IPC_CONFIG,
					     .config = { reload->has_other_issuers },
					     .fds = { reload->text, reload->servers },
					     .fd_count = 2 };

	/* First, and once: see above. */
	if (reload->has_other_issuers && reload->parts.fetcher->gateway_fd >= 0)
		helper_process_set_gateway(reload->parts.fetcher, -1);
	if (next_listeners_tell(&reload->listeners, gateway_fd) < 0 ||
	    certificates_tell_next(&reload->certificates, gateway_fd) < 0 ||
	    ipc_send(gateway_fd, &message, NULL) < 0)
		return;
	reload_set_state(reload, RELOAD_JUDGED);
	log_expect_format(reload->next->log_format);
	file_close(&reload->servers);
}

static void send_report(struct reload *reload, int gateway_fd)
{
	reload->outcome.fds[0] = reload->report_file;
	reload->outcome.fd_count = 1;
	if (ipc_send(gateway_fd, &reload->outcome, NULL) == 0)
		file_close(&reload->report_file);
}

void reload_tell(struct reload *reload, int gateway_fd)
{
	if (reload->report_file >= 0)
		send_report(reload, gateway_fd);
	if (reload->state == RELOAD_SENDING)
		send_config(reload, gateway_fd);
}

bool reload_has_untold(const struct reload *reload)
{
	return reload->report_file >= 0 || reload->state == RELOAD_SENDING;
}
