/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the configuration's readers: YAML text, and JSON for import where the input begins with
 * '{'. No file is touched: references to secrets are answered here. What must hold: an accepted
 * configuration is printed as text that is accepted and prints the same again; so is what the keeper
 * hands on to the gateway and to its helpers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "config/import.h"
#include "config/load.h"
#include "config/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int resolve(const char *kind, const char *name, const struct listed_writers *writers,
		   char **value_r, struct error *err)
{
	(void)kind;
	(void)writers;
	if (name[0] == 'x')
		return error_set(err, ERROR_INVALID, "there is no %.60s", name);
	*value_r = mem_strdup(name);
	return 0;
}

static struct tree *read_tree(struct slice text, bool is_import, struct config_problems *problems,
			      struct config_problems *warnings)
{
	struct error err = { .kind = ERROR_NONE };
	struct tree *root;

	if (is_import) {
		root = import_read(text, "f", problems, warnings);
		CHECK((root != NULL) == (problems->count == 0));
		return root;
	}
	root = yaml_read(text, "f", &err);
	CHECK((root != NULL) == (err.kind == ERROR_NONE));
	return root;
}

static struct config *load(struct slice text, bool is_import)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct types_context context = {
		.problems = &problems,
		.warnings = &warnings,
		.resolve = resolve,
		.is_world_readable = true,
	};
	struct tree *root = read_tree(text, is_import, &problems, &warnings);
	struct config *config = NULL;

	if (root != NULL) {
		config = load_tree(&context, root);
		CHECK((config != NULL) == (problems.count == 0));
	}
	tree_free(&root);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	return config;
}

/* The caller frees text_r->p. */
static void print_by(void (*print)(const struct config *, FILE *), const struct config *config,
		     struct slice *text_r)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out != NULL);
	print(config, out);
	CHECK(fclose(out) == 0);
	*text_r = slice_of(text, size);
}

static void check_round_trip(struct config *config)
{
	struct slice first, second;
	struct config *again;

	print_by(config_print, config, &first);
	if (first.n <= YAML_BYTES_MAX) {
		again = load(first, false);
		CHECK(again != NULL);
		print_by(config_print, again, &second);
		CHECK(slice_is_equal(first, second));
		free((char *)(uintptr_t)second.p);
		config_free(&again);
	}
	free((char *)(uintptr_t)first.p);
}

static void check_handed_on(void (*print)(const struct config *, FILE *),
			    const struct config *config)
{
	struct slice first, second;
	struct error err = { .kind = ERROR_NONE };
	struct config *again;

	print_by(print, config, &first);
	if (first.n <= YAML_BYTES_MAX) {
		again = config_read_checked(first, &err);
		CHECK(again != NULL);
		print_by(print, again, &second);
		CHECK(slice_is_equal(first, second));
		free((char *)(uintptr_t)second.p);
		config_free(&again);
	}
	free((char *)(uintptr_t)first.p);
}

static void try_text(struct slice text, bool is_import)
{
	struct config *config = load(text, is_import);

	if (config == NULL)
		return;
	check_round_trip(config);
	check_handed_on(config_print_for_gateway, config);
	check_handed_on(config_print_for_fetcher, config);
	check_handed_on(config_print_for_store, config);
	config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of((const char *)data, size);

	if (size > IMPORT_BYTES_MAX)
		return 0;
	try_text(text, false);
	if (size > 0 && data[0] == '{')
		try_text(text, true);
	return 0;
}
