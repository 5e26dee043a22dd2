/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a server that a reload changes while its processes go on. They have a number:
 * what is kept of the server's output was made under one number, and must not be shown under
 * another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server;
struct server_conf;

/*
 * Adopts the settings of another configuration that do not affect processes. All borrowed.
 * `is_other`: not all are the same.
 */
void server_take_rules(struct server *server, const struct server_conf *conf, bool is_other);
/*
 * The number of the rules in use: it grows with each reload that changes them, and with each
 * decision of the operator about a definition.
 */
uint64_t server_rules(const struct server *server);
