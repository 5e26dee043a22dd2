/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may list. Whether the machine can keep it is kernel_features_check's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "config/address.h"
#include "config/problem.h"
#include "config/rules.h"

static bool has_parent_part(struct slice path)
{
	while (path.p != NULL && path.n > 0) {
		if (slice_is_equal(slice_cut(&path, '/'), SLICE_LIT("..")))
			return true;
	}
	return false;
}

/* Paths are compared by their names (config/listed_path), in which `..` would hide where they lead. */
static void check_paths(const struct slices *paths, const struct tree *at,
			struct config_problems *problems)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (paths->items[i].p[0] != '/')
			problem_add_at(problems, at, "must be an absolute path, not '%.100s'",
				       paths->items[i].p);
		else if (has_parent_part(paths->items[i]))
			problem_add_at(problems, at, "must be a path without '..', not '%.100s'",
				       paths->items[i].p);
	}
}

/* 0: it is none of TCP, or the kernel chooses it. */
static uint16_t port_of(const char *text)
{
	struct sockaddr_in in;
	struct address address;
	struct error err;

	if (text == NULL || address_parse(text, &address, &err) != 0 || address.kind != ADDRESS_TCP)
		return 0;
	/* The port is at the same place in both families. */
	memcpy(&in, &address.socket, sizeof(in));
	return ntohs(in.sin_port);
}

static bool is_own_port(const struct config *config, uint16_t port)
{
	bool is_own = port_of(config->admin_metrics) == port || port_of(config->admin_page) == port;

	for (size_t i = 0; i < config->listen_count; i++)
		is_own = is_own || port_of(config->listen[i].address) == port;
	return is_own;
}

/* The kernel knows ports, not machines: who may call 8808 elsewhere may call it here. SEC-17 */
static void check_ports(const struct config *config, const struct config_server *server,
			const struct tree *at, struct config_problems *problems)
{
	const struct config_ports *ports = &server->sandbox_connect;

	if (server->sandbox == CONFIG_SANDBOX_OFF || server->sandbox_gateway)
		return;
	for (size_t i = 0; i < ports->count; i++) {
		if (is_own_port(config, ports->items[i]))
			problem_add_at(
				problems, tree_item(problem_place(at, "sandbox.connect"), i),
				"%d is a port of this gateway, on which the server could call "
				"other servers; set 'gateway: true' to allow that, or listen on "
				"another port",
				ports->items[i]);
	}
}

/* An entry of `sandbox` that says what may be reached. */
static bool lists_anything(const struct tree *sandbox)
{
	for (size_t i = 0; sandbox != NULL && i < sandbox->count; i++)
		if (sandbox->items[i]->key != NULL && strcmp(sandbox->items[i]->key, "mode") != 0)
			return true;
	return false;
}

/* Who lists what may be reached and does not say `mode` believes that there is a sandbox. */
static void check_mode(const struct config_server *server, const struct tree *root,
		       const struct tree *at, struct config_problems *problems)
{
	const struct tree *own = tree_find(at, "sandbox");
	const struct tree *usual = tree_find(tree_find(root, "defaults"), "sandbox");
	bool has_mode = tree_find(own, "mode") != NULL || tree_find(usual, "mode") != NULL;

	if (server->sandbox == CONFIG_SANDBOX_OFF && !has_mode &&
	    (lists_anything(own) || lists_anything(usual)))
		problem_add_at(
			problems, lists_anything(own) ? own : usual,
			"without 'mode' there is no sandbox, and nothing is refused: add 'mode: "
			"landlock', or 'mode: off' if you want none");
}

void rules_check_sandbox(const struct config *config, const struct config_server *server,
			 const struct tree *root, const struct tree *at,
			 struct config_problems *problems)
{
	check_mode(server, root, at, problems);
	check_paths(&server->sandbox_read, problem_place(at, "sandbox.read"), problems);
	check_paths(&server->sandbox_write, problem_place(at, "sandbox.write"), problems);
	check_ports(config, server, at, problems);
}
