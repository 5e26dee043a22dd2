/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's commands. Each answers at once, or returns the exchange that answers: what needs
 * the body of its request, or takes time.
 */
#ifndef MCPGATED_ADMIN_COMMANDS_H
#define MCPGATED_ADMIN_COMMANDS_H

#include "admin/admin.h"
#include "base/buf.h"

typedef struct http_exchange *command_fn(const struct inquiry *inquiry);

/* Replaces a server's processes; ends a session, by the beginning of its id; stops the daemon. */
command_fn command_restart, command_end_session, command_drain;
/* The operator's entries against tokens: lists, adds and removes them. AUTH-SES-07 */
void command_deny_report(const struct admin *admin, struct buf *out);
command_fn command_deny_add, command_deny_remove;
/* The definitions from servers' lists, and decisions on those that wait. SEC-65 */
command_fn command_pins, command_pins_approve, command_pins_reject;
/* The last lines of a server's stderr, once or continuously. */
command_fn command_logs;
/*
 * Explains whether somebody may use something, and by which rule, using the code that decides it
 * for requests. SEC-56
 */
command_fn command_can;
/*
 * Rereads the configuration. It is answered when the new one is in use, or when its errors are
 * known.
 */
command_fn command_reload;
/* The same with the program: it is answered when another one is about to take over, or is refused. */
command_fn command_upgrade;
/* Like admin_reloaded. */
void command_reload_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* Like admin_leave, for the pending orders. */
void command_reload_refuse_all(struct admin *admin);

#endif
