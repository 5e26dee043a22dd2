/* SPDX-License-Identifier: Apache-2.0 */
/* A list: few tools have such arguments. */
#include "remote/tools.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define ANNOTATION SLICE_LIT("x-mcp-header")

struct tool {
	struct list link;
	struct slice name, schema; /* behind this struct */
};

static struct tool *find(const struct tools *tools, struct slice name)
{
	LIST_EACH(struct tool, tool, &tools->list, link)
		if (slice_is_equal(tool->name, name))
			return tool;
	return NULL;
}

static void forget(struct tools *tools, struct tool *tool)
{
	list_remove(&tool->link);
	tools->count--;
	tools->bytes -= tool->name.n + tool->schema.n;
	free(tool);
}

static bool has_annotation(struct slice schema)
{
	return schema.n > 0 && memmem(schema.p, schema.n, ANNOTATION.p, ANNOTATION.n) != NULL;
}

static void add(struct tools *tools, struct slice name, struct slice schema)
{
	struct tool *tool = mem_alloc(sizeof(*tool) + name.n + schema.n);
	char *at = (char *)(tool + 1);

	tool->name = mem_put_slice(&at, name);
	tool->schema = mem_put_slice(&at, schema);
	tools->count++;
	tools->bytes += name.n + schema.n;
	list_append(&tools->list, &tool->link);
}

static int learn(struct slice element, void *arg)
{
	struct tools *tools = arg;
	struct slice schema = scan_member(element, SLICE_LIT("inputSchema")).text;
	at_end(buf_fini) struct buf name = { 0 };
	struct tool *known;

	if (scan_decode_string(scan_member(element, SLICE_LIT("name")), &name) == 0) {
		known = find(tools, buf_slice(&name));
		if (known != NULL)
			forget(tools, known);
		if (has_annotation(schema) && tools->count < TOOLS_MAX &&
		    name.len + schema.n <= TOOLS_BYTES_MAX - tools->bytes)
			add(tools, buf_slice(&name), schema);
	}
	return 0;
}

void tools_init(struct tools *tools)
{
	*tools = (struct tools){ 0 };
	list_init(&tools->list);
}

void tools_fini(struct tools *tools)
{
	LIST_EACH_SAFE(struct tool, tool, &tools->list, link)
		forget(tools, tool);
	CHECK(tools->count == 0 && tools->bytes == 0);
}

void tools_learn(struct tools *tools, struct slice result)
{
	struct error err;

	/* What is no list has no tools. */
	(void)!scan_array(scan_member(result, SLICE_LIT("tools")).text, SIZE_MAX, learn, tools,
			  &err);
}

struct slice tools_schema(const struct tools *tools, struct json name)
{
	at_end(buf_fini) struct buf decoded = { 0 };
	const struct tool *tool = NULL;

	if (scan_decode_string(name, &decoded) == 0)
		tool = find(tools, buf_slice(&decoded));
	return tool != NULL ? tool->schema : (struct slice){ NULL, 0 };
}
