/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a configuration comes from: a YAML file, an imported JSON file, or the command line. Each
 * becomes a tree, and one loader (load.c) makes the configuration from it. threats.md DEF-25.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/certificates.h"
#include "config/file.h"
#include "config/import.h"
#include "config/load.h"
#include "config/name.h"
#include "config/problem.h"
#include "config/rules.h"
#include "config/token_file.h"
#include "config/yaml.h"

/* Whoever writes this file chooses what is run as the daemon's user. */
static void check_mode(struct types_context *context, const char *path, mode_t mode)
{
	if ((mode & (S_IWGRP | S_IWOTH)) != 0)
		problem_add(
			context->problems,
			"%s: not only its owner may write it; take the right from group and others: "
			"chmod go-w %s",
			path, path);
	context->is_world_readable = (mode & S_IROTH) != 0;
}

static struct tree *read_file(const struct config_request *request, struct types_context *context)
{
	bool is_import = request->file == NULL;
	const char *path = is_import ? request->import_file : request->file;
	struct buf content = { 0 };
	struct tree *root;
	struct error err;
	mode_t mode;

	CHECK(path != NULL);
	if (file_read(path, is_import ? IMPORT_BYTES_MAX : YAML_BYTES_MAX, &content, &mode, &err) !=
	    0) {
		problem_add(context->problems, "%s: %s", path, err.text);
		return NULL;
	}
	check_mode(context, path, mode);
	if (is_import)
		root = import_read(buf_slice(&content), path, context->problems, context->warnings);
	else if ((root = yaml_read(buf_slice(&content), path, &err)) == NULL)
		problem_add(context->problems, "%s:%s", path, err.text);
	file_wipe(&content);
	return root;
}

/* One server with every default, at /mcp. */
static struct tree *tree_from_command(const struct config_request *request)
{
	static const char file[] = "command line";
	struct tree *root = tree_new(TREE_MAP, file);
	struct tree *servers = tree_new(TREE_MAP, file);
	struct tree *server = tree_new(TREE_MAP, file);
	struct tree *args = tree_new(TREE_LIST, file);
	char *name = request->name != NULL ? mem_strdup(request->name) :
					     name_from_command(request->command);

	tree_add(root, "servers", servers);
	tree_add(servers, name, server);
	tree_add(server, "command", tree_new_text(request->command[0], file));
	tree_add(server, "args", args);
	for (char *const *arg = request->command + 1; *arg != NULL; arg++)
		tree_add(args, NULL, tree_new_text(*arg, file));
	tree_add(server, "path", tree_new_text("/mcp", file));
	if (request->isolation != NULL)
		tree_add(server, "isolation", tree_new_text(request->isolation, "--isolation"));
	free(name);
	return root;
}

/* --listen stands for all that the file says about listeners. */
static void replace_listen(struct tree *root, const char *address)
{
	static const char file[] = "--listen";
	struct tree *list, *item;

	if (root->kind != TREE_MAP)
		return;
	tree_remove(root, "listen");
	list = tree_new(TREE_LIST, file);
	item = tree_new(TREE_MAP, file);
	tree_add(root, "listen", list);
	tree_add(list, NULL, item);
	tree_add(item, "address", tree_new_text(address, file));
}

static struct tree *read_source(const struct config_request *request, struct types_context *context)
{
	if (request->file != NULL || request->import_file != NULL)
		return read_file(request, context);
	if (request->command != NULL && request->command[0] != NULL)
		return tree_from_command(request);
	problem_add(context->problems, "command line: neither a file nor a command is given");
	return NULL;
}

struct config *config_load(const struct config_request *request, struct config_problems *problems)
{
	struct config_problems warnings = { 0 };
	struct types_context context = {
		.problems = problems,
		.warnings = &warnings,
		.resolve = secret_resolve,
	};
	struct tree *root = read_source(request, &context);
	struct config *config = NULL;

	CHECK(root != NULL || problems->count > 0);
	if (root != NULL && request->listen != NULL)
		replace_listen(root, request->listen);
	if (root != NULL && request->token_file != NULL)
		token_file_add(&context, request->token_file, root);
	if (root != NULL)
		config = load_tree(&context, root);
	if (config != NULL)
		rules_check(config, root, problems);
	if (problems->count == 0)
		certificates_check(&context, config, root);
	if (problems->count > 0)
		config_free(&config);
	tree_free(&root);
	CHECK((config != NULL) == (problems->count == 0));
	if (config != NULL)
		config->warnings = warnings;
	else
		config_problems_fini(&warnings);
	return config;
}

struct config *config_read_checked(struct slice text, struct error *err)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct types_context context = {
		.problems = &problems,
		.warnings = &warnings,
		.resolve = secret_resolve,
	};
	struct config *config = NULL;
	struct tree *root = yaml_read(text, "memory file", err);

	if (root != NULL)
		config = load_tree(&context, root);
	if (root != NULL && config == NULL)
		error_set(err, ERROR_INVALID, "%.200s", problems.items[0]);
	tree_free(&root);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	return config;
}
