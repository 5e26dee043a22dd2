/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch table changes at the moment at which the gateway's word comes: what it asks for afterwards, in the same socket, is
 * asked of the new one. The process that fetches is stopped before the gateway gets other issuers, so that no answer about
 * one is taken for that of another.
 */
#include "keeper/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/difference.h"
#include "config/problem.h"
#include "keeper/log_file.h"
#include "keeper/memory_file.h"
#include "obs/log.h"

#define REPORT_BYTES_MAX (64 * 1024)
#define STATUS_USED "The configuration was read again"
#define STATUS_REFUSED \
	"The configuration was read again and refused; the one before is in use: see the log"

/* The one writer of the state. */
static void reload_set_state(struct reload *reload, enum reload_state state)
{
	static const char *const names[] = { "idle", "sending", "judged" };

	CHECK(state == RELOAD_IDLE || state == reload->state + 1);
	LOG(RELOAD_STATE, LOG_STR("from", names[reload->state]), LOG_STR("to", names[state]));
	reload->state = state;
}

void reload_init(struct reload *reload, const struct reload_parts *parts)
{
	*reload = (struct reload){ .parts = *parts, .text = -1, .servers = -1, .report_file = -1 };
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What was read is not used, or has been taken. */
static void forget(struct reload *reload)
{
	config_free(&reload->next);
	free(reload->numbers);
	reload->numbers = NULL;
	close_fd(&reload->text);
	close_fd(&reload->servers);
}

void reload_fini(struct reload *reload)
{
	forget(reload);
	buf_fini(&reload->report);
	close_fd(&reload->report_file);
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

static void report_server(struct reload *reload, const char *kind, const char *name)
{
	reload_report(reload, kind, name);
	LOG(SERVER_RELOADED, LOG_STR("server", name), LOG_STR("is", kind));
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
			report_server(reload, is_there ? "added" : "removed", name);
		if (!was_there || !is_there)
			continue;
		difference = config_compare_servers(now, before, next, i);
		if (difference != CONFIG_SAME)
			report_server(reload,
				      difference == CONFIG_OTHER_RULES ? "rules" : "changed", name);
	}
	for (size_t i = 0; i < now->server_count; i++)
		if (now->servers[i].enabled &&
		    config_find_server(next, now->servers[i].conf.name) == next->server_count)
			report_server(reload, "removed", now->servers[i].conf.name);
}

static void make_report(struct reload *reload)
{
	struct error err = { ERROR_NONE, "" };

	CHECK(reload->state == RELOAD_IDLE && reload->next == NULL);
	close_fd(&reload->report_file);
	if (reload->answered > 0)
		reload->report_file =
			memory_file_sealed("report", buf_slice(&reload->report), &err);
	buf_fini(&reload->report);
}

/* ---- reading ---- */

/* What the machine keeps was asked by request->check; what this daemon can keep, as it was started, is asked here. */
static void check_daemon(const struct reload *reload, struct config_problems *problems)
{
	const struct config *next = reload->next;
	struct error err = { ERROR_NONE, "" };
	struct launch launch;

	if (launch_init(&launch, next, &err) < 0)
		problem_add(problems, "%s", err.text);
	launch_fini(&launch);
	for (size_t i = 0; i < next->server_count; i++)
		if (next->servers[i].enabled &&
		    !cgroups_can_keep(reload->parts.cgroups, &next->servers[i]))
			problem_add(problems,
				    "servers.%s.resources: needs a restart, for the daemon was "
				    "started without limits of this kind",
				    next->servers[i].conf.name);
}

int reload_write_config(const struct config *config, struct error *err)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int fd;

	if (out == NULL)
		return error_set_errno(err, "open_memstream");
	config_print_for_gateway(config, out);
	fclose(out);
	fd = memory_file_sealed("configuration", slice_of(text, size), err);
	explicit_bzero(text, size);
	free(text);
	return fd;
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
	reload->text = reload_write_config(reload->next, err);
	config_keep_fixed(now, reload->next);
	return reload->text < 0 ? -1 : 0;
}

static void read_config(struct reload *reload)
{
	struct config_problems problems = { NULL, 0 }, warnings = { NULL, 0 };
	struct config *now = server_slots_config(reload->parts.slots);
	struct error err = { ERROR_NONE, "" };

	reload->next = config_load(reload->parts.request, &problems, &warnings);
	if (reload->next != NULL)
		check_daemon(reload, &problems);
	if (problems.count == 0 && plan(reload, &err) < 0)
		problem_add(&problems, "%s", err.text);
	if (problems.count == 0)
		config_check_fixed(now, reload->next, &problems, &warnings);
	report_problems(reload, "error", &problems);
	report_problems(reload, "warning", &warnings);
	if (problems.count > 0)
		forget(reload);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
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

static void use(struct reload *reload)
{
	const struct reload_parts *parts = &reload->parts;
	struct error err = { ERROR_NONE, "" };
	struct config *next = reload->next;

	report_changes(reload);
	announcement_renew(parts->announcement, next);
	config_keep_fixed(server_slots_config(parts->slots), next);
	reload->next = NULL;
	era_store_renew(parts->era_store);
	server_slots_use(parts->slots, next, reload->numbers);
	renew_launch(reload);
	children_note_servers(parts->children);
	pin_store_renew(parts->pin_store, next);
	certificates_renew(parts->certificates, next);
	if (reload->has_other_issuers && fetcher_process_renew(parts->fetcher, next, &err) < 0)
		reload_report(reload, "error", err.text);
	close_fd(parts->gateway_config);
	*parts->gateway_config = reload->text;
	reload->text = -1;
	log_set_level(next->log_level, next->log_format);
	reload->is_used = true;
	LOG(RELOAD_USED, LOG_INT("servers", next->server_count));
}

/* True: the gateway has to judge it. Otherwise it is refused, or, where there is no gateway (-1), in use. */
static bool begin(struct reload *reload, int gateway_fd)
{
	struct error err = { ERROR_NONE, "" };
	const struct config *now = server_slots_config(reload->parts.slots);

	CHECK(reload->state == RELOAD_IDLE && reload->next == NULL);
	reload->answered = reload->asked;
	reload->is_used = false;
	if (reload->parts.request == NULL)
		return false;
	read_config(reload);
	if (reload->next == NULL)
		return false;
	reload->has_other_issuers = !config_has_same_issuers(now, reload->next);
	if (gateway_fd < 0) {
		use(reload);
		forget(reload);
		return false;
	}
	reload->servers = era_store_hand_over(reload->parts.era_store, reload->numbers,
					      reload->next->server_count, &err);
	if (reload->servers < 0) {
		reload_report(reload, "error", err.text);
		forget(reload);
		return false;
	}
	reload_set_state(reload, RELOAD_SENDING);
	return true;
}

/* ---- steps ---- */

static void go_on(struct reload *reload, int gateway_fd);

static void end_if_over(struct reload *reload, int gateway_fd)
{
	if (!reload->is_under_way || reload->state != RELOAD_IDLE ||
	    certificates_is_reloading(reload->parts.certificates))
		return;
	reload->is_under_way = false;
	make_report(reload);
	notify_send(reload->parts.notify, reload->is_used ? "READY=1\nSTATUS=" STATUS_USED :
							    "READY=1\nSTATUS=" STATUS_REFUSED);
	if (reload->is_owed && !reload->is_stopped)
		go_on(reload, gateway_fd);
}

/* The configuration is in use, or is not: certificates are read again in both cases, as they may have been renewed. */
static void read_certificates(struct reload *reload, int gateway_fd)
{
	if (gateway_fd < 0) {
		certificates_reload_later(reload->parts.certificates);
		return; /* it ends when the next gateway is ready */
	}
	if (certificates_exist(reload->parts.certificates))
		certificates_reload(reload->parts.certificates);
	end_if_over(reload, gateway_fd);
}

static void go_on(struct reload *reload, int gateway_fd)
{
	char text[64];

	reload->is_owed = reload->is_under_way;
	if (reload->is_under_way)
		return;
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)clock_now_ms() * 1000);
	notify_send(reload->parts.notify, text);
	reload->is_under_way = true;
	if (!begin(reload, gateway_fd))
		read_certificates(reload, gateway_fd);
}

void reload_ask(struct reload *reload, int gateway_fd)
{
	const struct config *now = server_slots_config(reload->parts.slots);

	LOG(RELOAD, LOG_STR("log", now->log_target));
	log_file_reopen(now, reload->parts.log_fd);
	audit_writer_reopen(reload->parts.audit);
	if (!reload->is_stopped)
		go_on(reload, gateway_fd);
}

void reload_on_order(struct reload *reload, uint64_t number, int gateway_fd)
{
	reload->asked = number;
	reload_ask(reload, gateway_fd);
}

void reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd)
{
	if (reload->state != RELOAD_JUDGED)
		return;
	reload_set_state(reload, RELOAD_IDLE);
	reload->is_tried_again = false;
	if (is_used)
		use(reload);
	else if (!reload->is_stopped)
		reload_report(reload, "error",
			      "the gateway cannot use the configuration; the log says why");
	if (reload->has_other_issuers)
		fetcher_process_set_gateway(reload->parts.fetcher, gateway_fd);
	forget(reload);
	read_certificates(reload, gateway_fd);
}

void reload_on_certificates(struct reload *reload, bool is_used, int gateway_fd)
{
	if (!certificates_on_verdict(reload->parts.certificates, is_used))
		return;
	if (!is_used)
		reload_report(reload, "error",
			      "the certificates cannot be used, and those before stay in use; the "
			      "log says why");
	end_if_over(reload, gateway_fd);
}

/* One that has ended while it judged may have ended of anything; one that does so again, of what it judged. */
void reload_on_gateway_exit(struct reload *reload)
{
	reload->asked = reload->answered = 0; /* who has asked has gone with it */
	close_fd(&reload->report_file);
	if (reload->state == RELOAD_IDLE)
		return;
	reload_set_state(reload, RELOAD_IDLE);
	if (reload->is_tried_again)
		reload_report(reload, "error", "the gateway has ended before it has used it");
	else
		reload->is_owed = reload->is_tried_again = true;
	forget(reload);
}

void reload_on_gateway_ready(struct reload *reload, int gateway_fd)
{
	CHECK(gateway_fd >= 0);
	end_if_over(reload, gateway_fd);
}

void reload_stop(struct reload *reload)
{
	reload->is_stopped = true;
	if (reload->state != RELOAD_SENDING)
		return;
	reload_set_state(reload, RELOAD_IDLE);
	forget(reload);
}

/* ---- telling ---- */

static void send_config(struct reload *reload, int gateway_fd)
{
	const struct ipc_message message = { .type = IPC_CONFIG,
					     .value = reload->has_other_issuers };
	const int fds[] = { reload->text, reload->servers };
	struct error err = { ERROR_NONE, "" };

	/* First, and once: see above. */
	if (reload->has_other_issuers && reload->parts.fetcher->gateway_fd >= 0)
		fetcher_process_set_gateway(reload->parts.fetcher, -1);
	if (ipc_send(gateway_fd, &message, fds, ARRAY_LEN(fds), &err) < 0)
		return;
	reload_set_state(reload, RELOAD_JUDGED);
	close_fd(&reload->servers);
}

static void send_report(struct reload *reload, int gateway_fd)
{
	const struct ipc_message message = { .type = IPC_RELOADED,
					     .child = reload->answered,
					     .value = reload->is_used };
	struct error err = { ERROR_NONE, "" };

	if (ipc_send(gateway_fd, &message, &reload->report_file, 1, &err) == 0)
		close_fd(&reload->report_file);
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
