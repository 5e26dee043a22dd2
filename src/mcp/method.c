/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, the frequent ones first. */
#include "mcp/method.h"

#include "base/check.h"

static const struct method methods[] = {
	{ METHOD_TOOLS_CALL, SLICE("tools/call"), METHOD_ASKING, OFFER_TOOLS, NULL },
	{ METHOD_PROGRESS, SLICE("notifications/progress"), 0, 0, NULL },
	{ METHOD_PING, SLICE("ping"), 0, 0, NULL },
	{ METHOD_INITIALIZE, SLICE("initialize"), 0, 0, NULL },
	{ METHOD_INITIALIZED, SLICE("notifications/initialized"), 0, 0, NULL },
	{ METHOD_PROMPTS_GET, SLICE("prompts/get"), METHOD_ASKING, OFFER_PROMPTS, NULL },
	{ METHOD_RESOURCES_READ, SLICE("resources/read"), METHOD_ASKING, OFFER_RESOURCES, NULL },
	{ METHOD_TOOLS_LIST, SLICE("tools/list"), METHOD_SAFE | METHOD_PAGED, OFFER_TOOLS, NULL },
	{ METHOD_OTHER, SLICE("prompts/list"), METHOD_SAFE | METHOD_PAGED, OFFER_PROMPTS, NULL },
	{ METHOD_OTHER, SLICE("resources/list"), METHOD_SAFE | METHOD_PAGED, OFFER_RESOURCES,
	  NULL },
	{ METHOD_OTHER, SLICE("resources/templates/list"), METHOD_SAFE | METHOD_PAGED,
	  OFFER_RESOURCES, NULL },
	{ METHOD_COMPLETE, SLICE("completion/complete"), METHOD_SAFE, OFFER_COMPLETIONS, NULL },
	{ METHOD_DISCOVER, SLICE("server/discover"), 0, 0, NULL },
	{ METHOD_LISTEN, SLICE("subscriptions/listen"), 0, 0, NULL },
	{ METHOD_SET_LEVEL, SLICE("logging/setLevel"), METHOD_REMEMBERED, OFFER_LOGGING, NULL },
	{ METHOD_SUBSCRIBE, SLICE("resources/subscribe"), METHOD_REMEMBERED, OFFER_SUBSCRIBE,
	  NULL },
	{ METHOD_UNSUBSCRIBE, SLICE("resources/unsubscribe"), METHOD_REMEMBERED, OFFER_SUBSCRIBE,
	  NULL },
	{ METHOD_CANCELLED, SLICE("notifications/cancelled"), 0, 0, NULL },
	{ METHOD_MESSAGE, SLICE("notifications/message"), 0, 0, NULL },
	{ METHOD_ROOTS_CHANGED, SLICE("notifications/roots/list_changed"), 0, 0, NULL },
	{ METHOD_LIST_CHANGED, SLICE("notifications/tools/list_changed"), 0, 0, "tools" },
	{ METHOD_LIST_CHANGED, SLICE("notifications/prompts/list_changed"), 0, 0, "prompts" },
	{ METHOD_LIST_CHANGED, SLICE("notifications/resources/list_changed"), 0, 0, "resources" },
	{ METHOD_RESOURCE_UPDATED, SLICE("notifications/resources/updated"), 0, 0, NULL },
	{ METHOD_ELICITATION_COMPLETE, SLICE("notifications/elicitation/complete"), 0, 0, NULL },
	{ METHOD_TASK_STATUS, SLICE("notifications/tasks/status"), 0, 0, NULL },
	{ METHOD_ROOTS_LIST, SLICE("roots/list"), 0, 0, "roots" },
	{ METHOD_SAMPLING, SLICE("sampling/createMessage"), 0, 0, "sampling" },
	{ METHOD_ELICITATION, SLICE("elicitation/create"), 0, 0, "elicitation" },
	{ METHOD_TASKS, SLICE("tasks/get"), 0, OFFER_TASKS, "tasks" },
	{ METHOD_TASKS, SLICE("tasks/result"), 0, OFFER_TASKS, "tasks" },
	{ METHOD_TASKS, SLICE("tasks/list"), 0, OFFER_TASKS, "tasks" },
	{ METHOD_TASKS, SLICE("tasks/cancel"), 0, OFFER_TASKS, "tasks" },
	{ METHOD_TASKS, SLICE("tasks/update"), 0, OFFER_TASKS, NULL }, /* of the modern era */
};

_Static_assert(ARRAY_LEN(methods) < METHOD_NUMBERS, "METHOD_NUMBERS has room for all");

const struct method_change method_changes[METHOD_CHANGES] = {
	{ SLICE("notifications/tools/list_changed"), "toolsListChanged", OFFER_TOOLS },
	{ SLICE("notifications/prompts/list_changed"), "promptsListChanged", OFFER_PROMPTS },
	{ SLICE("notifications/resources/list_changed"), "resourcesListChanged", OFFER_RESOURCES },
};

static const struct method other = { METHOD_OTHER, SLICE(""), 0, 0, NULL };

const struct method *method_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (slice_is_equal(methods[i].name, name))
			return &methods[i];
	}
	return &other;
}

unsigned int method_number(const struct method *method)
{
	CHECK(method == &other || (method >= methods && method < methods + ARRAY_LEN(methods)));
	return method == &other ? 0 : (unsigned int)(method - methods) + 1;
}
