/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop around poll. Reads signals, the gateway's fixed-size requests and the verdicts of its own
 * forks; never a byte that a client or a server's process wrote. Exits are collected on SIGCHLD by
 * waitid, which as subreaper also brings what servers leave behind. BACK-PROC-03, REL-28, REL-30,
 * REL-32, REL-43, REL-52.
 *
 *	starting -> running -> draining -> done
 *	            running <-> upgrading
 */
#include "keeper/keeper.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/load.h"
#include "io/ipc.h"
#include "keeper/announcement.h"
#include "keeper/cgroups.h"
#include "keeper/children.h"
#include "keeper/gateway_entry.h"
#include "keeper/launch.h"
#include "keeper/listeners.h"
#include "keeper/new_process.h"
#include "keeper/programs.h"
#include "keeper/records.h"
#include "keeper/reload.h"
#include "keeper/server_slots.h"
#include "keeper/text_store.h"
#include "keeper/upgrade.h"
#include "obs/log.h"
#include "process/spawn.h"
#include "router/kept_sessions.h"
#include "router/seal.h"
#include "session/deny_list.h"

#define MESSAGES_PER_TURN 64
#define LAST_MESSAGES_MAX 4096 /* of a gateway that has ended */
#define REAPS_PER_TURN 256
#define REAPER_STARTS_MAX 10
#define STOP_RESERVE_MS 10000 /* what the gateway gets beyond the times of the configuration */
#define SWEEP_MS 5000         /* what killed processes get to disappear */
#define SETTLE_PAUSE_MS 20
#define NEVER UINT64_MAX

enum keeper_state {
	KEEPER_STARTING, /* no gateway has been ready yet */
	KEEPER_RUNNING,
	KEEPER_UPGRADING, /* until the gateway, and what is not handed over, has ended */
	KEEPER_DRAINING,
	KEEPER_DONE,
};

#define TO(state) (1u << KEEPER_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[KEEPER_STARTING] = { "starting", TO(RUNNING) | TO(DRAINING) | TO(DONE) },
	[KEEPER_RUNNING] = { "running", TO(UPGRADING) | TO(DRAINING) | TO(DONE) },
	[KEEPER_UPGRADING] = { "upgrading", TO(RUNNING) | TO(DRAINING) | TO(DONE) },
	[KEEPER_DRAINING] = { "draining", TO(DONE) },
	[KEEPER_DONE] = { "done", 0 },
};
#undef TO

/* The question whether the gateway is alive, for the watchdog of systemd. */
enum keeper_ping {
	PING_NONE,
	PING_OWED, /* IPC_PING did not fit yet */
	PING_OPEN, /* sent, and not answered */
};

struct keeper {
	struct server_slots slots; /* and the configuration */
	const struct config_request *request;
	const struct programs *programs;
	enum keeper_state state;
	int exit_code;
	int log_fd;
	int signal_fd;
	int gateway_config; /* memory files, for each gateway: gateway_entry.h */
	int gateway_deny;
	int gateway_seal;
	int gateway_pipes;
	int gateway_streams;
	struct log_relay log_relay;  /* of all gateways */
	struct audit_writer audit;   /* likewise */
	struct log_budget asked_for; /* what we write because of their requests */
	int *listeners;
	struct announcement announcement;
	struct notify notify;
	struct launch launch;
	struct cgroups cgroups;
	struct reaper reaper;
	unsigned int reaper_starts;
	struct children children;
	struct gateway_process gateway;
	struct helper_process helpers[IPC_HELPERS];
	struct certificates certificates;
	struct text_stores text_stores;
	struct reload reload;
	struct upgrade *upgrade;
	bool is_continued;   /* the program before has handed over to this one */
	bool owes_hand_over; /* IPC_HAND_OVER did not fit yet */
	int settling;        /* while upgrading: the last signal to what is not handed over */
	uint64_t settle_at_ms;
	unsigned int drains_owed; /* IPC_DRAIN messages that did not fit yet */
	enum keeper_ping ping;
	bool is_reap_due; /* more processes had ended than one turn reaps */
	uint64_t kill_at_ms;
	uint64_t watchdog_at_ms;
};

static struct config *keeper_config(const struct keeper *keeper)
{
	return server_slots_config(&keeper->slots);
}

/* The one writer of the state. Done may be said twice: signals and ends of processes come together. */
static void keeper_set_state(struct keeper *keeper, enum keeper_state state)
{
	if (keeper->state == KEEPER_DONE && state == KEEPER_DONE)
		return;
	CHECK(states[keeper->state].next & 1u << state);
	LOG(KEEPER_STATE, LOG_STR("from", states[keeper->state].name),
	    LOG_STR("to", states[state].name));
	keeper->state = state;
}

/* Not asked to stop so far, nor to make place. */
static bool keeper_is_on(const struct keeper *keeper)
{
	return keeper->state <= KEEPER_RUNNING;
}

/* ---- the reaper ---- */

static void keeper_start_reaper(struct keeper *keeper)
{
	struct error err = { ERROR_NONE, "" };

	if (keeper->reaper_starts++ >= REAPER_STARTS_MAX)
		error_set(&err, ERROR_SYSTEM, "it keeps ending");
	else if (reaper_start(&keeper->reaper, &err) == 0)
		return;
	LOG(REAPER_FAILED, LOG_STR("reason", err.text));
}

static void keeper_on_reaper_exit(struct keeper *keeper)
{
	CHECK(keeper->reaper.pid > 0);
	keeper->reaper.pid = 0;
	if (keeper->state == KEEPER_DONE)
		return;
	reaper_stop(&keeper->reaper);
	keeper_start_reaper(keeper);
	children_set_reaper(&keeper->children);
}

/* ---- another program ---- */

/* The next gateway is this program's again. */
static void keeper_give_up_upgrade(struct keeper *keeper, struct slice why)
{
	LOG(UPGRADE_FAILED, LOG_SLICE("error", why));
	keeper->children.outcome = IPC_UPGRADE_FAILED;
	keeper_set_state(keeper, KEEPER_RUNNING);
}

static void keeper_write_handover(struct keeper *keeper, struct handover *to)
{
	const struct {
		const char *name;
		int fd;
	} files[] = {
		{ "denials", keeper->gateway_deny },
		{ "pipes", keeper->gateway_pipes },
		{ "stream_logs", keeper->gateway_streams },
		{ "seal", keeper->gateway_seal },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		handover_write(to, "memory %d %s", handover_give(to, files[i].fd), files[i].name);
	if (keeper->reaper.fd >= 0)
		handover_write(to, "reaper %d %d", (int)keeper->reaper.pid,
			       handover_give(to, keeper->reaper.fd));
	if (keeper->cgroups.path != NULL)
		handover_write(to, "cgroups %" PRIu64 " %d %s", keeper->cgroups.last,
			       (int)keeper->reaper.pid, keeper->cgroups.path);
	listeners_hand_over(keeper_config(keeper), keeper->listeners, to);
	text_stores_hand_over(&keeper->text_stores, to);
	launch_hand_over(&keeper->launch, to);
	children_hand_over(&keeper->children, to);
}

/* Returns if the new program cannot be executed. */
static void keeper_hand_over(struct keeper *keeper)
{
	struct handover to = { .fds = NULL };
	struct error err = { ERROR_NONE, "" };

	CHECK(keeper->upgrade->checker == 0);
	children_kill_others(&keeper->children);
	keeper_write_handover(keeper, &to);
	programs_hand_over(keeper->programs, &to);
	if (audit_writer_is_through(&keeper->audit))
		(void)!upgrade_execute(keeper->upgrade, &to, &err);
	else
		error_set(&err, ERROR_BUSY, "audit records wait to be written");
	to.fd_count = 0; /* what was given is still ours */
	handover_fini(&to);
	keeper_give_up_upgrade(keeper, slice_str(err.text));
}

/* The new program's gateway does not start: the program before goes on. Returns if it cannot be executed. */
static void keeper_go_back(struct keeper *keeper)
{
	struct handover to = { .fds = NULL };
	struct error err = { ERROR_NONE, "" };

	LOG(UPGRADE_FAILED,
	    LOG_STR("error", "the gateway of the new program has ended at its start"));
	children_keep_orderly(&keeper->children);
	children_kill_others(&keeper->children);
	keeper_write_handover(keeper, &to);
	(void)!upgrade_go_back(keeper->upgrade, &to, &err);
	LOG(UPGRADE_FAILED, LOG_STR("error", err.text));
	to.fd_count = 0;
	handover_fini(&to);
	keeper->children.outcome = IPC_UPGRADE_FAILED;
}

/* ---- helpers ---- */

static void set_gateway_of_helpers(struct keeper *keeper, int gateway_fd)
{
	for (size_t i = 0; i < IPC_HELPERS; i++)
		helper_process_set_gateway(&keeper->helpers[i], gateway_fd);
}

static bool have_helpers(const struct keeper *keeper)
{
	return keeper->helpers[IPC_HELPER_FETCHER].pid > 0 ||
	       keeper->helpers[IPC_HELPER_STORE].pid > 0;
}

/* ---- the gateway ---- */

static int keeper_make_gateway(struct keeper *keeper, struct error *err)
{
	const struct config *config = keeper_config(keeper);
	size_t listener_count = config->listen_count + LISTENERS_MORE;
	size_t count = GATEWAY_LISTENERS + listener_count;
	int *fds, result;
	int servers =
		gateway_process_number_servers(keeper->slots.numbers, config->server_count, err);

	if (servers < 0)
		return -1;
	fds = mem_alloc(count * sizeof(*fds));
	fds[GATEWAY_LOG] = keeper->log_relay.pipe.out;
	fds[GATEWAY_CONFIG] = keeper->gateway_config;
	fds[GATEWAY_DENY] = keeper->gateway_deny;
	fds[GATEWAY_SEAL] = keeper->gateway_seal;
	fds[GATEWAY_SERVERS] = servers;
	fds[GATEWAY_PIPES] = keeper->gateway_pipes;
	fds[GATEWAY_STREAMS] = keeper->gateway_streams;
	fds[GATEWAY_AUDIT] = keeper->audit.pipe.out;
	fds[GATEWAY_PINS] = keeper->text_stores.items[IPC_TEXT_PINS].memory;
	fds[GATEWAY_SESSIONS] = keeper->text_stores.items[IPC_TEXT_SESSIONS].memory;
	memcpy(fds + GATEWAY_LISTENERS, keeper->listeners, listener_count * sizeof(*fds));
	result = gateway_process_start(&keeper->gateway, keeper->programs, fds, count, err);
	close(servers);
	free(fds);
	return result;
}

static void keeper_start_gateway(struct keeper *keeper)
{
	struct error err = { ERROR_NONE, "" };

	CHECK(keeper_is_on(keeper) && keeper->gateway.pid == 0);
	listeners_restore(keeper_config(keeper), keeper->listeners);
	records_pipe_restore(&keeper->log_relay.pipe);
	audit_writer_set_gateway(&keeper->audit);
	server_slots_release_all(&keeper->slots);
	if (keeper_make_gateway(keeper, &err) < 0) {
		LOG(GATEWAY_GIVE_UP, LOG_STR("error", err.text));
		keeper->exit_code = 1;
		keeper_set_state(keeper, KEEPER_DONE);
		return;
	}
	children_set_gateway(&keeper->children, keeper->gateway.fd);
	certificates_set_gateway(&keeper->certificates);
	set_gateway_of_helpers(keeper, keeper->gateway.fd);
	LOG(GATEWAY_START, LOG_INT("pid", keeper->gateway.pid));
}

static void log_gateway_exit(const struct keeper *keeper, int status)
{
	LOG(GATEWAY_EXIT, LOG_INT("pid", keeper->gateway.pid),
	    WIFSIGNALED(status) ? (struct log_field)LOG_INT("signal", WTERMSIG(status)) :
				  (struct log_field)LOG_INT("exit", WEXITSTATUS(status)));
}

/* The longest that a server may take to end by itself, or (else) after SIGTERM. */
static uint64_t longest_ms(const struct config *config, bool is_by_itself)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < config->server_count; i++) {
		const struct server_conf *conf = &config->servers[i].conf;
		uint64_t ms = is_by_itself ? conf->stop_grace_ms : conf->stop_term_ms;

		longest = ms > longest ? ms : longest;
	}
	return longest;
}

/* The gateway's own times, those of servers, and a reserve. */
static uint64_t stop_time_ms(const struct config *config)
{
	return config->drain_delay_ms + config->drain_timeout_ms + longest_ms(config, true) +
	       longest_ms(config, false) + STOP_RESERVE_MS;
}

static void keeper_on_gateway_exit(struct keeper *keeper, int status)
{
	bool is_expected = !keeper_is_on(keeper);
	bool may_restart;

	CHECK(keeper->gateway.pid > 0);
	log_relay_flush(&keeper->log_relay);
	audit_writer_flush(&keeper->audit);
	if (!is_expected || status != 0)
		log_gateway_exit(keeper, status);
	set_gateway_of_helpers(keeper, -1);
	reload_on_gateway_exit(&keeper->reload);
	keeper->drains_owed = 0;
	keeper->owes_hand_over = false;
	keeper->upgrade->order = 0; /* who has ordered it has gone with it */
	keeper->ping = PING_NONE;
	keeper->watchdog_at_ms = 0; /* the next gateway is asked at once */
	text_stores_on_gateway_exit(&keeper->text_stores);
	may_restart = gateway_process_on_exit(&keeper->gateway);
	if (keeper->state == KEEPER_UPGRADING) {
		children_keep_orderly(&keeper->children);
		keeper->settle_at_ms = clock_now_ms() + longest_ms(&keeper->slots.table, true);
		keeper->gateway.restart_at_ms = clock_now_ms(); /* if it comes to that */
		return;                                         /* keeper_do_upgrade goes on */
	}
	if (!is_expected && keeper->state == KEEPER_STARTING &&
	    upgrade_can_go_back(keeper->upgrade))
		keeper_go_back(keeper);
	if (!is_expected && may_restart) {
		children_keep(&keeper->children);
		return; /* keeper_do_due starts it when its time has come */
	}
	children_set_gateway(&keeper->children, -1);
	keeper_set_state(keeper, KEEPER_DONE);
	if (!is_expected) {
		LOG(GATEWAY_GIVE_UP, LOG_INT("deaths", GATEWAY_DEATHS_MAX + 1),
		    LOG_INT("within_ms", GATEWAY_DEATHS_WINDOW_MS));
		keeper->exit_code = 1;
	}
}

/* What the program before has left, and is not needed any more. */
static void keeper_drop_left(struct keeper *keeper)
{
	listeners_drop(&keeper->upgrade->from);
	handover_fini(&keeper->upgrade->from);
}

static void keeper_on_ready(struct keeper *keeper)
{
	if (!keeper_is_on(keeper))
		return;
	certificates_on_ready(&keeper->certificates);
	notify_send(&keeper->notify, "READY=1");
	if (keeper->state == KEEPER_STARTING) {
		keeper_set_state(keeper, KEEPER_RUNNING);
		if (!keeper->is_continued)
			announcement_begin(&keeper->announcement, keeper->listeners);
		keeper_drop_left(keeper);
	}
	reload_on_gateway_ready(&keeper->reload);
}

/* A drain may take longer than TimeoutStopSec of the unit: systemd is told how long, and kills only what takes longer still. */
static void keeper_tell_of_stop(const struct keeper *keeper, uint64_t stop_ms)
{
	char text[64];

	snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
		 (unsigned long long)(stop_ms + SWEEP_MS) * 1000);
	notify_send(&keeper->notify, text);
}

static void keeper_on_stop(struct keeper *keeper)
{
	uint64_t stop_ms = stop_time_ms(&keeper->slots.table);

	if (keeper->gateway.pid == 0) {
		keeper_set_state(keeper, KEEPER_DONE);
		return;
	}
	if (keeper->state < KEEPER_DRAINING) {
		keeper_tell_of_stop(keeper, stop_ms);
		reload_stop(&keeper->reload, keeper->gateway.fd);
		keeper_set_state(keeper, KEEPER_DRAINING);
		listeners_stop(keeper_config(keeper), keeper->listeners);
		keeper->kill_at_ms = clock_now_ms() + stop_ms;
	}
	keeper->drains_owed++;
}

/* ---- upgrades ---- */

static uint64_t earlier(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* Why not, to whoever has ordered it and to the log. */
static void keeper_refuse_upgrade(struct keeper *keeper, uint64_t order, const char *why)
{
	at_end(buf_fini) struct buf report = { 0 };

	LOG(UPGRADE_REFUSED, LOG_STR("error", why));
	buf_printf(&report, "error %s\n", why);
	reload_answer(&keeper->reload, order, false, buf_slice(&report));
}

static int keeper_check(struct keeper *keeper, uint64_t order, struct error *err)
{
	return upgrade_check(keeper->upgrade, order, keeper->listeners,
			     keeper_config(keeper)->listen_count + LISTENERS_MORE, err);
}

static void keeper_on_upgrade(struct keeper *keeper, uint64_t order)
{
	struct error err = { ERROR_NONE, "" };

	if (!reload_may_follow(&keeper->reload))
		error_set(&err, ERROR_BUSY, "too many orders at a time");
	else if (keeper->upgrade->argv == NULL)
		error_set(&err, ERROR_INVALID, "where this program is cannot be seen (/proc)");
	else if (keeper->state != KEEPER_RUNNING || keeper->upgrade->checker > 0 ||
		 keeper->reload.state != RELOAD_IDLE)
		error_set(&err, ERROR_BUSY, "the daemon starts, reloads, or does this already");
	else if (keeper->audit.is_failing)
		error_set(&err, ERROR_BUSY, "audit records wait to be written");
	else if (keeper_check(keeper, order, &err) == 0)
		return;
	keeper_refuse_upgrade(keeper, order, err.text);
}

static void keeper_begin_upgrade(struct keeper *keeper)
{
	LOG(UPGRADE, LOG_STR("program", keeper->upgrade->program));
	keeper_set_state(keeper, KEEPER_UPGRADING);
	keeper->owes_hand_over = keeper->gateway.pid > 0;
	keeper->settling = 0;
	keeper->settle_at_ms = clock_now_ms();
	keeper->kill_at_ms = clock_now_ms() + stop_time_ms(&keeper->slots.table);
}

/* Why the new program refuses. */
static struct slice first_error(const struct buf *report)
{
	static const struct slice word = SLICE("error ");
	struct slice rest = buf_slice(report), line = { NULL, 0 };

	while (rest.n > 0 && !slice_has_prefix(line, word))
		line = slice_cut(&rest, '\n');
	return slice_has_prefix(line, word) ? slice_of(line.p + word.n, line.n - word.n) :
					      SLICE_LIT("the new program refuses");
}

/* The new program has checked the configuration: before the gateway is asked to make place, or once all is settled. */
static void keeper_on_checked(struct keeper *keeper, int status)
{
	uint64_t order = keeper->upgrade->order;
	at_end(buf_fini) struct buf report = { 0 };
	bool is_fine = upgrade_on_checked(keeper->upgrade, status, &report);

	if (keeper->state == KEEPER_UPGRADING) {
		if (is_fine)
			keeper_hand_over(keeper);
		else
			keeper_give_up_upgrade(keeper, first_error(&report));
	} else if (is_fine && keeper->state == KEEPER_RUNNING) {
		keeper_begin_upgrade(keeper);
		reload_answer(&keeper->reload, order, true, buf_slice(&report));
	} else if (is_fine) {
		keeper_refuse_upgrade(keeper, order, "the daemon is about to stop");
	} else {
		LOG(UPGRADE_REFUSED, LOG_SLICE("error", first_error(&report)));
		reload_answer(&keeper->reload, order, false, buf_slice(&report));
	}
}

/* A gateway that does not exit. Returns when it is one. */
static uint64_t keeper_kill_overdue(struct keeper *keeper, uint64_t now)
{
	CHECK(keeper->gateway.pid > 0);
	if (now >= keeper->kill_at_ms) {
		kill(keeper->gateway.pid, SIGKILL); /* SIGCHLD follows */
		keeper->kill_at_ms = NEVER;
	}
	return keeper->kill_at_ms;
}

/* What is on the disk may have changed since; the checker's end goes on (keeper_on_checked). */
static uint64_t keeper_check_again(struct keeper *keeper)
{
	struct error err = { ERROR_NONE, "" };

	if (keeper_check(keeper, 0, &err) < 0)
		keeper_give_up_upgrade(keeper, slice_str(err.text));
	return clock_now_ms() + SETTLE_PAUSE_MS;
}

/* What is not handed over sees its stdin end, then gets SIGTERM, then SIGKILL. */
static uint64_t keeper_settle(struct keeper *keeper, uint64_t now)
{
	bool is_over = now >= keeper->settle_at_ms;
	size_t left;

	CHECK(keeper->state == KEEPER_UPGRADING && keeper->gateway.pid == 0);
	if (keeper->upgrade->checker > 0)
		return upgrade_do_due(keeper->upgrade);
	if (is_over && keeper->settling == 0) {
		keeper->settling = SIGTERM;
		keeper->settle_at_ms = now + longest_ms(&keeper->slots.table, false);
	} else if (is_over && keeper->settling == SIGTERM) {
		keeper->settling = SIGKILL;
		keeper->settle_at_ms = now + SWEEP_MS;
	} else if (is_over) {
		return keeper_check_again(keeper);
	}
	left = children_end_others(&keeper->children, is_over ? keeper->settling : 0);
	if (left > 0 || have_helpers(keeper) || cgroups_retry(&keeper->cgroups))
		return earlier(keeper->settle_at_ms, now + SETTLE_PAUSE_MS);
	return keeper_check_again(keeper);
}

static uint64_t keeper_do_upgrade(struct keeper *keeper, uint64_t now)
{
	if (keeper->state != KEEPER_UPGRADING)
		return upgrade_do_due(keeper->upgrade);
	if (keeper->gateway.pid == 0)
		return keeper_settle(keeper, now);
	return keeper_kill_overdue(keeper, now);
}

/* ---- the watchdog of systemd ---- */

static void keeper_feed_watchdog(struct keeper *keeper)
{
	keeper->ping = PING_NONE;
	notify_send(&keeper->notify, "WATCHDOG=1");
}

/* Only an answer of the gateway feeds the watchdog, so that a gateway that hangs is noticed, too. REL-52 */
static void keeper_watch(struct keeper *keeper, uint64_t now)
{
	CHECK(keeper->notify.watchdog_ms > 0);
	keeper->watchdog_at_ms = now + keeper->notify.watchdog_ms;
	if (keeper->gateway.fd < 0) {
		keeper_feed_watchdog(keeper);
		return;
	}
	if (keeper->ping != PING_NONE)
		LOG(GATEWAY_SILENT, LOG_INT("pid", keeper->gateway.pid));
	keeper->ping = PING_OWED;
}

static void keeper_on_release(struct keeper *keeper, uint32_t server)
{
	if (!server_slots_release(&keeper->slots, server))
		LOG(IPC_BAD_REQUEST, LOG_INT("type", IPC_RELEASE), LOG_INT("server", server),
		    LOG_STR("reason", "it is not a server of an earlier configuration"));
}

static void keeper_drop_fds(const struct ipc_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		ipc_drop(message->fds[i]);
}

/* The only descriptor that a message may bring is a connection to be judged. */
static void keeper_on_message(struct keeper *keeper, const struct ipc_message *message)
{
	if (message->type == IPC_READY)
		keeper_on_ready(keeper);
	else if (message->type == IPC_STOP)
		keeper_on_stop(keeper);
	else if (message->type == IPC_RELOAD && message->reload.is_upgrade != 0)
		keeper_on_upgrade(keeper, message->reload.order);
	else if (message->type == IPC_RELOAD)
		reload_on_order(&keeper->reload, message->reload.order);
	else if (message->type == IPC_CONFIG_USED)
		reload_on_verdict(&keeper->reload, message->config_used.is_used != 0,
				  keeper->gateway.fd);
	else if (message->type == IPC_RELEASE)
		keeper_on_release(keeper, message->release.server);
	else if (message->type == IPC_CERTIFICATES_USED)
		reload_on_certificates(&keeper->reload, message->certificates_used.is_used != 0);
	else if (message->type == IPC_ALIVE)
		keeper_feed_watchdog(keeper);
	else if (message->type == IPC_TEXT)
		text_stores_note(&keeper->text_stores, message->text.kind);
	else if (message->type == IPC_FOUND)
		announcement_take(&keeper->announcement, message);
	else
		children_request(&keeper->children, message);
	keeper_drop_fds(message);
}

/* Nor is one heard that makes us write too much. */
static bool keeper_may_listen(struct keeper *keeper)
{
	return keeper->gateway.fd >= 0 && !keeper->gateway.is_closed &&
	       children_may_be_asked(&keeper->children) &&
	       log_budget_pause_ms(&keeper->asked_for) == 0;
}

static void keeper_read_requests(struct keeper *keeper)
{
	for (int i = 0; i < MESSAGES_PER_TURN && keeper_may_listen(keeper); i++) {
		struct ipc_message message;
		uint64_t lines = log_line_count();
		int n = ipc_recv(keeper->gateway.fd, &message, NULL);

		if (n > 0) {
			keeper_on_message(keeper, &message);
			keeper->asked_for.lines += (unsigned int)(log_line_count() - lines);
			continue;
		}
		/* The gateway is ending, or does not keep to the protocol; SIGCHLD tells of its end. */
		if (n < 0) {
			kill(keeper->gateway.pid, SIGKILL);
			keeper->gateway.is_closed = true;
		}
		return;
	}
}

static void keeper_tell_gateway(struct keeper *keeper)
{
	struct ipc_message drain = { .type = IPC_DRAIN };
	struct ipc_message ping = { .type = IPC_PING };
	struct ipc_message hand_over = { .type = IPC_HAND_OVER };

	if (keeper->gateway.fd < 0)
		return;
	while (keeper->drains_owed > 0 && ipc_send(keeper->gateway.fd, &drain, NULL) == 0)
		keeper->drains_owed--;
	if (keeper->ping == PING_OWED && ipc_send(keeper->gateway.fd, &ping, NULL) == 0)
		keeper->ping = PING_OPEN;
	reload_tell(&keeper->reload, keeper->gateway.fd);
	certificates_tell(&keeper->certificates, keeper->gateway.fd);
	for (size_t i = 0; i < IPC_HELPERS; i++)
		helper_process_tell(&keeper->helpers[i]);
	audit_writer_tell(&keeper->audit, keeper->gateway.fd);
	text_stores_tell(&keeper->text_stores, keeper->gateway.fd);
	children_tell(&keeper->children);
	/* Behind the answer to whoever has ordered it, and behind the processes that it is to keep. */
	if (keeper->owes_hand_over && !reload_has_untold(&keeper->reload) &&
	    !children_has_untold(&keeper->children) &&
	    ipc_send(keeper->gateway.fd, &hand_over, NULL) == 0)
		keeper->owes_hand_over = false;
}

static bool keeper_has_untold(const struct keeper *keeper)
{
	return keeper->drains_owed > 0 || keeper->ping == PING_OWED || keeper->owes_hand_over ||
	       reload_has_untold(&keeper->reload) ||
	       certificates_has_untold(&keeper->certificates) ||
	       helper_process_has_untold(&keeper->helpers[IPC_HELPER_FETCHER]) ||
	       helper_process_has_untold(&keeper->helpers[IPC_HELPER_STORE]) ||
	       audit_writer_has_untold(&keeper->audit) || children_has_untold(&keeper->children);
}

/* ---- the ends of processes ---- */

/*
 * What the gateway had said before it ended counts: it uses a configuration, there is something to
 * keep, whose a process is. What it had asked for is for nobody any more.
 */
static void keeper_hear_last(struct keeper *keeper)
{
	struct ipc_message message;

	for (int i = 0; i < LAST_MESSAGES_MAX && !keeper->gateway.is_closed &&
			ipc_recv(keeper->gateway.fd, &message, NULL) > 0;
	     i++) {
		bool is_news = message.type == IPC_CONFIG_USED ||
			       message.type == IPC_CERTIFICATES_USED ||
			       message.type == IPC_RELEASE || message.type == IPC_TEXT ||
			       message.type == IPC_OWNER || message.type == IPC_CLOSE;

		if (is_news)
			keeper_on_message(keeper, &message);
		else
			keeper_drop_fds(&message);
	}
}

static void keeper_reap(struct keeper *keeper, pid_t pid)
{
	bool is_child = children_before_reap(&keeper->children, pid);
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return;
	if (is_child) {
		children_on_reaped(&keeper->children, pid, status);
	} else if (pid == keeper->gateway.pid) {
		keeper_hear_last(keeper);
		keeper_on_gateway_exit(keeper, status);
	} else if (pid == keeper->helpers[IPC_HELPER_FETCHER].pid) {
		helper_process_on_exit(&keeper->helpers[IPC_HELPER_FETCHER], status);
	} else if (pid == keeper->helpers[IPC_HELPER_STORE].pid) {
		helper_process_on_exit(&keeper->helpers[IPC_HELPER_STORE], status);
	} else if (pid == keeper->reaper.pid) {
		keeper_on_reaper_exit(keeper);
	} else if (pid == keeper->upgrade->checker) {
		keeper_on_checked(keeper, status);
	} else {
		/* It may be one that was killed when the program before handed over. */
		(void)reaper_remove(&keeper->reaper, pid);
		LOG(ORPHAN_REAPED, LOG_INT("pid", pid));
	}
}

/* Looks before reaping: until a process is reaped its number cannot be given to another. */
static void keeper_reap_all(struct keeper *keeper)
{
	keeper->is_reap_due = true;
	for (int i = 0; i < REAPS_PER_TURN; i++) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) {
			keeper->is_reap_due = false;
			return;
		}
		keeper_reap(keeper, info.si_pid);
	}
}

/* ---- signals ---- */

static void keeper_on_signal(struct keeper *keeper, int number)
{
	if (number != SIGCHLD)
		LOG(SIGNAL_RECEIVED, LOG_STR("signal", sigabbrev_np(number)));
	if (number == SIGTERM || number == SIGINT)
		keeper_on_stop(keeper);
	else if (number == SIGHUP)
		reload_ask(&keeper->reload);
}

static void keeper_read_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		keeper_on_signal(keeper, (int)info.ssi_signo);
	keeper_reap_all(keeper);
}

static int open_signals(struct error *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, as some shells leave it, would lose every exit */
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 ? fd : error_set_errno(err, "signalfd");
}

/* ---- the loop ---- */

/* When what was paused may go on; 0: nothing was. */
static int keeper_pause_ms(struct keeper *keeper)
{
	const int pauses[] = {
		log_relay_pause_ms(&keeper->log_relay),
		log_relay_pause_ms(&keeper->helpers[IPC_HELPER_FETCHER].log_relay),
		log_relay_pause_ms(&keeper->helpers[IPC_HELPER_STORE].log_relay),
		log_budget_pause_ms(&keeper->asked_for),
	};
	int first = 0;

	for (size_t i = 0; i < ARRAY_LEN(pauses); i++)
		if (pauses[i] > 0 && (first == 0 || pauses[i] < first))
			first = pauses[i];
	return first;
}

/* Does what is due; returns when the next thing will be. */
static uint64_t keeper_do_due(struct keeper *keeper)
{
	uint64_t now = clock_now_ms();
	uint64_t next = NEVER;
	int pause_ms;

	if (keeper_is_on(keeper) && keeper->gateway.pid == 0) {
		if (now >= keeper->gateway.restart_at_ms)
			keeper_start_gateway(keeper);
		else
			next = keeper->gateway.restart_at_ms;
	}
	next = earlier(next,
		       reload_do_due(&keeper->reload, keeper->gateway.fd, keeper->gateway.pid));
	next = earlier(next, listeners_do_due());
	next = earlier(next, server_slots_do_due(&keeper->slots));
	for (size_t i = 0; i < IPC_HELPERS; i++)
		next = earlier(next, helper_process_do_due(&keeper->helpers[i]));
	next = earlier(next, audit_writer_run(&keeper->audit));
	next = earlier(next, text_stores_do_due(&keeper->text_stores));
	next = earlier(next, announcement_do_due(&keeper->announcement));
	next = earlier(next, keeper_do_upgrade(keeper, now));
	if (keeper->state == KEEPER_DRAINING)
		next = earlier(next, keeper_kill_overdue(keeper, now));
	if (cgroups_retry(&keeper->cgroups))
		next = earlier(next, now + CGROUPS_RETRY_MS);
	pause_ms = keeper_pause_ms(keeper);
	if (pause_ms > 0)
		next = earlier(next, now + (uint64_t)pause_ms);
	if (keeper->notify.watchdog_ms == 0)
		return next;
	if (now >= keeper->watchdog_at_ms)
		keeper_watch(keeper, now);
	return earlier(next, keeper->watchdog_at_ms);
}

static int timeout_until(uint64_t at_ms)
{
	uint64_t now = clock_now_ms();

	if (at_ms == NEVER)
		return -1;
	if (at_ms <= now)
		return 0;
	return at_ms - now < 60000 ? (int)(at_ms - now) : 60000;
}

/* -1 if it must not be read now, or if there is none. */
static struct pollfd poll_of_log(struct log_relay *relay)
{
	bool is_paused = log_relay_pause_ms(relay) > 0;

	return (struct pollfd){ .fd = is_paused ? -1 : relay->pipe.in, .events = POLLIN };
}

static void keeper_turn(struct keeper *keeper, uint64_t next_ms)
{
	struct pollfd polls[3 + IPC_HELPERS + AUDIT_WRITER_POLLS + CHILDREN_STARTING_MAX];
	size_t count = 3;

	polls[0] = (struct pollfd){ .fd = keeper->signal_fd, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = keeper->gateway.fd };
	if (keeper_may_listen(keeper))
		polls[1].events |= POLLIN;
	if (keeper_has_untold(keeper))
		polls[1].events |= POLLOUT;
	/* The socket of a gateway that has ended is always ready; SIGCHLD tells of the end. */
	if (polls[1].events == 0 || keeper->gateway.is_closed)
		polls[1].fd = -1;
	polls[2] = poll_of_log(&keeper->log_relay);
	for (size_t i = 0; i < IPC_HELPERS; i++)
		polls[count++] = poll_of_log(&keeper->helpers[i].log_relay);
	audit_writer_poll_fill(&keeper->audit, polls + count); /* keeper_do_due runs it */
	count += AUDIT_WRITER_POLLS;
	count += children_poll_fill(&keeper->children, polls + count);
	CHECK(count <= ARRAY_LEN(polls));
	if (poll(polls, count, keeper->is_reap_due ? 0 : timeout_until(next_ms)) < 0)
		return;
	clock_update();
	if (polls[0].revents != 0 || keeper->is_reap_due)
		keeper_read_signals(keeper);
	if (polls[2].revents != 0)
		log_relay_read(&keeper->log_relay);
	for (size_t i = 0; i < IPC_HELPERS; i++)
		if (polls[3 + i].revents != 0)
			log_relay_read(&keeper->helpers[i].log_relay);
	if (polls[1].revents != 0)
		keeper_read_requests(keeper);
	if (keeper->children.starting_count > 0)
		children_read_verdicts(&keeper->children);
	reload_free_slots(&keeper->reload);
	keeper_tell_gateway(keeper);
}

static void keeper_loop(struct keeper *keeper)
{
	while (keeper->state != KEEPER_DONE) {
		uint64_t next_ms = keeper_do_due(keeper);

		if (keeper->state != KEEPER_DONE)
			keeper_turn(keeper, next_ms);
	}
}

/* ---- start and end ---- */

/* Before anything is forked, because the daemon's own processes may have to move to another cgroup. */
static int keeper_open_cgroups(struct keeper *keeper, struct error *err)
{
	struct error why = { ERROR_NONE, "" };
	size_t at = 0;
	const char *left = handover_next(&keeper->upgrade->from, "cgroups", &at);

	if ((left != NULL ? cgroups_take_over(&keeper->cgroups, left, keeper_config(keeper), &why) :
			    cgroups_open(&keeper->cgroups, keeper_config(keeper), &why)) < 0) {
		*err = why;
		return -1;
	}
	keeper->reaper.cgroups = keeper->cgroups.path;
	LOG(CONFINE, LOG_STR("measure", "cgroups"),
	    LOG_STR("state", keeper->cgroups.path != NULL ? "on" : why.text));
	return 0;
}

/* The memory file of the program before, or a new one. */
static int keeper_share(struct keeper *keeper, const char *name, size_t size, struct error *err)
{
	int left = handover_take_memory(&keeper->upgrade->from, name, size, err);

	return left != 0 ? left : memory_file_shared(name, size, err);
}

/* The same at all nodes of a cluster. */
static int keeper_make_shared_key(const struct keeper *keeper, struct error *err)
{
	static const unsigned char label[] = "mcpgated seal key";
	const char *secret = keeper_config(keeper)->cluster.seal_key;
	unsigned char key[SEAL_KEY_BYTES];
	unsigned int n = 0;
	int fd;

	CHECK(HMAC(EVP_sha256(), secret, (int)strlen(secret), label, sizeof(label), key, &n) !=
		      NULL &&
	      n == sizeof(key));
	fd = memory_file_sealed("seal key", slice_of((const char *)key, sizeof(key)), err);
	explicit_bzero(key, sizeof(key));
	return fd;
}

/* What every gateway gets. */
static int keeper_open_gateway_files(struct keeper *keeper, struct error *err)
{
	struct handover *from = &keeper->upgrade->from;

	keeper->gateway_config = memory_file_printed("configuration", config_print_for_gateway,
						     keeper_config(keeper), err);
	if (keeper->gateway_config < 0)
		return -1;
	keeper->gateway_deny = keeper_share(keeper, "denials", DENY_SNAPSHOT_FILE_BYTES, err);
	if (keeper->gateway_deny < 0)
		return -1;
	keeper->gateway_pipes = keeper_share(keeper, "pipes", PIPE_STATES_BYTES, err);
	if (keeper->gateway_pipes < 0)
		return -1;
	keeper->gateway_streams = keeper_share(keeper, "stream_logs", STREAM_LOG_FILE_BYTES, err);
	if (keeper->gateway_streams < 0)
		return -1;
	/* The key outlives a gateway, and no file has it: servers can read what the daemon's user can. */
	if (keeper_config(keeper)->cluster.seal_key != NULL)
		keeper->gateway_seal = keeper_make_shared_key(keeper, err);
	else
		keeper->gateway_seal = handover_take_memory(from, "seal", SEAL_KEY_BYTES, err);
	if (keeper->gateway_seal == 0)
		keeper->gateway_seal = memory_file_random("seal key", SEAL_KEY_BYTES, err);
	return keeper->gateway_seal < 0 ? -1 : log_relay_open(&keeper->log_relay, "gateway", err);
}

static void keeper_init_reload(struct keeper *keeper)
{
	reload_init(&keeper->reload,
		    &(struct reload_parts){ .request = keeper->request,
					    .slots = &keeper->slots,
					    .launch = &keeper->launch,
					    .children = &keeper->children,
					    .cgroups = &keeper->cgroups,
					    .text_stores = &keeper->text_stores,
					    .fetcher = &keeper->helpers[IPC_HELPER_FETCHER],
					    .certificates = &keeper->certificates,
					    .audit = &keeper->audit,
					    .announcement = &keeper->announcement,
					    .notify = &keeper->notify,
					    .listeners = &keeper->listeners,
					    .log_fd = &keeper->log_fd,
					    .gateway_config = &keeper->gateway_config });
}

/* It knows the groups of the processes that go on. */
static bool keeper_take_reaper(struct keeper *keeper)
{
	size_t at = 0;
	const char *line = handover_next(&keeper->upgrade->from, "reaper", &at);
	int pid, fd;

	if (line == NULL || sscanf(line, "%d %d", &pid, &fd) != 2)
		return false;
	keeper->reaper.fd = handover_take(&keeper->upgrade->from, fd);
	keeper->reaper.pid = keeper->reaper.fd >= 0 ? pid : 0;
	return keeper->reaper.fd >= 0;
}

/* The last step of the start. */
static void keeper_take_over(struct keeper *keeper)
{
	struct handover *from = &keeper->upgrade->from;

	if (from->text.len == 0)
		return;
	keeper->is_continued = true;
	keeper->is_reap_due = true;
	keeper->children.outcome = keeper->upgrade->is_back ? IPC_UPGRADE_FAILED : IPC_UPGRADE_DONE;
	if (keeper->upgrade->is_back)
		LOG(UPGRADE_FAILED,
		    LOG_STR("error", "the new program could not go on; this is the one before"));
	LOG(UPGRADED, LOG_INT("processes", children_take_over(&keeper->children, from)));
}

static int keeper_start(struct keeper *keeper, struct error *err)
{
	const struct config *config = keeper_config(keeper);
	struct handover *from = &keeper->upgrade->from;

	descriptors_fill_standard();
	descriptors_set_cloexec();
	keeper->log_fd = log_file_open(config, err);
	if (keeper->log_fd < 0)
		return -1;
	log_set(keeper->log_fd, config->log_level, config->log_format);
	log_set_process("keeper");
	if (audit_writer_open(&keeper->audit, config->audit.to, err) < 0)
		return places_tell(&config->rule_places, "audit.to", err);
	keeper->signal_fd = open_signals(err);
	if (keeper->signal_fd < 0)
		return -1;
	notify_init(&keeper->notify);
	keeper->listeners = listeners_open(config, from, err);
	if (keeper->listeners == NULL)
		return -1;
	if (certificates_init(&keeper->certificates, config, NULL, err) < 0)
		return -1;
	keeper->certificates.running = &keeper->slots.table; /* whoever reads them again */
	/* The keeper has the secrets of all children: none of them may read its memory. SEC-61. */
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (keeper_open_gateway_files(keeper, err) < 0)
		return -1;
	for (size_t i = 0; i < IPC_HELPERS; i++)
		if (helper_process_init(&keeper->helpers[i], (enum ipc_helper)i, config,
					keeper->programs, err) < 0)
			return -1;
	if (launch_init(&keeper->launch, &keeper->slots.table, SERVERS_MAX, err) < 0)
		return -1;
	launch_raise_limits(&keeper->launch, from);
	launch_note_signals(&keeper->launch);
	if (text_stores_init(&keeper->text_stores, config, from, err) < 0)
		return -1;
	keeper->helpers[IPC_HELPER_STORE].sessions =
		keeper->text_stores.items[IPC_TEXT_SESSIONS].memory;
	keeper->helpers[IPC_HELPER_STORE].streams = keeper->gateway_streams;
	if (keeper_open_cgroups(keeper, err) < 0)
		return -1;
	keeper->reaper.programs = keeper->programs;
	if (!keeper_take_reaper(keeper))
		keeper_start_reaper(keeper);
	announcement_init(&keeper->announcement, config);
	children_init(&keeper->children, &keeper->slots, &keeper->launch, &keeper->reaper,
		      &keeper->cgroups);
	gateway_process_init(&keeper->gateway);
	keeper_init_reload(keeper);
	clock_update();
	LOG(KEEPER_START, LOG_INT("pid", getpid()), LOG_INT("reaper", keeper->reaper.pid));
	keeper_take_over(keeper);
	return 0;
}

/*
 * Kills all processes that are left. The children of a killed process become ours, so this repeats until there
 * are none. The reaper does the same with the groups that it knows, and ends.
 */
static void keeper_finish(struct keeper *keeper)
{
	static const struct timespec pause = { .tv_nsec = 2000000 };
	uint64_t end_ms = clock_now_ms() + SWEEP_MS;
	bool is_empty = false;

	children_set_gateway(&keeper->children, -1);
	set_gateway_of_helpers(keeper, -1);
	log_relay_flush(&keeper->log_relay);
	reaper_stop(&keeper->reaper);
	while (!is_empty && clock_now_ms() < end_ms) {
		siginfo_t info = { .si_pid = 0 };

		if (keeper->gateway.pid > 0)
			kill(keeper->gateway.pid, SIGKILL);
		reaper_kill_siblings(&keeper->reaper);
		keeper_reap_all(keeper);
		is_empty = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;
		if (!is_empty)
			nanosleep(&pause, NULL);
		clock_update();
	}
	audit_writer_close(&keeper->audit);
	text_stores_fini(&keeper->text_stores);
	LOG(KEEPER_STOP, LOG_INT("exit", keeper->exit_code),
	    LOG_STR("left", is_empty ? "nothing" : "processes that cannot be killed"));
}

/* What others would see of it afterwards; all else goes with the process. */
static void keeper_fini(struct keeper *keeper)
{
	listeners_close(keeper_config(keeper), &keeper->listeners);
	cgroups_close(&keeper->cgroups);
	for (size_t i = 0; i < IPC_HELPERS; i++)
		helper_process_fini(&keeper->helpers[i]); /* its last lines of the log */
	prctl(PR_SET_DUMPABLE, 1); /* for whoever looks for what was not freed */
}

int keeper_run(struct config **config, const struct config_request *request,
	       const struct programs *programs, struct upgrade *upgrade)
{
	static struct keeper keeper; /* much for a stack */
	struct error err = { ERROR_NONE, "" };
	int exit_code = 1;

	CHECK(*config != NULL && programs != NULL && keeper.programs == NULL);
	keeper.request = request;
	keeper.programs = programs;
	keeper.upgrade = upgrade;
	keeper.log_fd = -1;
	server_slots_init(&keeper.slots, &server_slots_keeper);
	server_slots_begin(&keeper.slots, *config);
	if (keeper_start(&keeper, &err) < 0) {
		fprintf(stderr, "mcpgated: %s\n", err.text);
	} else {
		keeper_loop(&keeper);
		keeper_finish(&keeper);
		keeper_fini(&keeper);
		exit_code = keeper.exit_code;
	}
	*config = server_slots_fini(&keeper.slots);
	return exit_code;
}
