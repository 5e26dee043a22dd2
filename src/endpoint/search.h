/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding tools by what they do (`search` of an endpoint): in place of all its tools an endpoint lists two, find_tool and
 * call_tool. What is said of a tool (name, title, description, arguments) is ranked by BM25 against the words of the query. Nothing
 * is kept: a list of some hundred tools is read in less time than a message takes. bridging.md §5, END-11
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

#define SEARCH_FIND "find_tool"
#define SEARCH_CALL "call_tool"

/* The result of tools/list. */
extern const struct slice search_tools;

/* Those of a call of find_tool; `{}` if there are none, or more than some words. */
struct slice search_arguments(const struct envelope *env);
/*
 * Appends the result of a call of find_tool with these arguments: the tools of the list `result` (that of
 * tools/list) that fit best, best first, as JSON in a text. Of a list of very many tools the first are read, of each tool the beginning.
 */
void search_append_found(struct slice result, struct slice arguments, struct buf *out);
/*
 * Appends the call that a call of call_tool stands for: the same request, with that name and those arguments. False: it has no
 * name.
 */
bool search_unwrap(const struct envelope *env, struct buf *out) must_check;
