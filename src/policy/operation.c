/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/operation.h"

#include "base/check.h"
#include "jsonrpc/scan.h"
#include "policy/name.h"

static const struct {
	struct slice method;
	enum operation operation;
} operations[] = {
	{ SLICE("tools/call"), OPERATION_TOOL },
	{ SLICE("prompts/get"), OPERATION_PROMPT },
};

static enum operation find_operation(struct slice method)
{
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (slice_is_equal(operations[i].method, method))
			return operations[i].operation;
	return OPERATION_OTHER;
}

enum operation operation_of(const struct envelope *env)
{
	struct buf folded = { 0 };
	enum operation operation = OPERATION_OTHER;

	if (env->kind == ENVELOPE_REQUEST || env->kind == ENVELOPE_NOTIFICATION) {
		operation = find_operation(env->method);
		if (operation == OPERATION_OTHER)
			operation = name_fold(env->method, &folded) != NULL ?
					    OPERATION_TOOL :
					    find_operation(buf_slice(&folded));
	}
	buf_fini(&folded);
	return operation;
}
