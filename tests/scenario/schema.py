# SPDX-License-Identifier: Apache-2.0
"""
Whether a message is what docs/protocol/schema says for its revision: fault() is the door. Knows the keywords of JSON
Schema that those files use, and stops at any other; `format` is an annotation here, as in JSON Schema itself. What the
schemas leave open (Result allows everything) is open here. tests/check-schema shows that it refuses what is wrong.
"""
import functools
import json
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "protocol", "schema")
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
BATCHES = "2025-03-26"  # the one revision that has them
TASK_REQUESTS = ("CallToolRequest", "CreateMessageRequest", "ElicitRequest")  # of 2025-11-25
EXTENDED = REVISIONS[-1]  # the one whose extension for tasks is known here, too
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
ANNOTATIONS = {"$schema", "definitions", "$defs", "description", "format"}


def is_type(value, name):
    if name in TYPES:
        return isinstance(value, TYPES[name])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return name == "number" or value == int(value)


def is_same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Validator:
    """One schema file. find(schema, value) is the first thing that is wrong, as text that begins with its path, or None."""

    def __init__(self, root):
        self.types = root.get("$defs") or root["definitions"]

    def find(self, schema, value, path=""):
        if isinstance(schema, bool):
            return None if schema else path + ": not allowed"
        for keyword, argument in schema.items():
            if keyword in ANNOTATIONS:
                continue
            check = getattr(self, "on_" + keyword.lstrip("$"), None)
            if check is None:
                raise NotImplementedError("keyword %s at %s" % (keyword, path))
            found = check(argument, value, path, schema)
            if found:
                return found
        return None

    def find_type(self, name, value, path=""):
        return self.find(self.types[name], value, path)

    def on_ref(self, reference, value, path, _):
        return self.find_type(reference.rsplit("/", 1)[1], value, path)

    def on_type(self, names, value, path, _):
        names = [names] if isinstance(names, str) else names
        if not any(is_type(value, name) for name in names):
            return "%s: %s is no %s" % (path, brief(value), " or ".join(names))

    def on_const(self, expected, value, path, _):
        if not is_same(value, expected):
            return "%s: %s is not %s" % (path, brief(value), brief(expected))

    def on_enum(self, choices, value, path, _):
        if not any(is_same(value, choice) for choice in choices):
            return "%s: %s is none of %s" % (path, brief(value), brief(choices))

    def on_minimum(self, limit, value, path, _):
        if is_type(value, "number") and value < limit:
            return "%s: %s is below %s" % (path, value, limit)

    def on_maximum(self, limit, value, path, _):
        if is_type(value, "number") and value > limit:
            return "%s: %s is above %s" % (path, value, limit)

    def on_required(self, names, value, path, _):
        missing = [name for name in names if name not in value] if isinstance(value, dict) else []
        if missing:
            return "%s: %s missing" % (path, ", ".join(missing))

    def on_properties(self, schemas, value, path, _):
        for name, schema in schemas.items() if isinstance(value, dict) else ():
            found = name in value and self.find(schema, value[name], path + "/" + name)
            if found:
                return found

    def on_additionalProperties(self, schema, value, path, parent):
        for name in value if isinstance(value, dict) else ():
            found = name not in parent.get("properties", ()) and self.find(schema, value[name], path + "/" + name)
            if found:
                return found

    def on_items(self, schema, value, path, _):
        for i, item in enumerate(value if isinstance(value, list) else ()):
            found = self.find(schema, item, "%s/%d" % (path, i))
            if found:
                return found

    def on_maxItems(self, limit, value, path, _):
        if isinstance(value, list) and len(value) > limit:
            return "%s: %d elements, %d are allowed" % (path, len(value), limit)

    def on_allOf(self, schemas, value, path, _):
        return next(filter(None, (self.find(schema, value, path) for schema in schemas)), None)

    def on_anyOf(self, schemas, value, path, _):
        found = []
        for schema in schemas:
            found.append(self.find(schema, value, path))
            if found[-1] is None:
                return None
        return "%s: none of %d: %s" % (path, len(found), "; ".join(found))


def task_types():
    """The extension io.modelcontextprotocol/tasks (SEP-2663): what it adds to the types of 2026-07-28."""
    text, whole = {"type": "string"}, {"type": "object"}
    named = {"required": ["taskId"], "properties": {"taskId": text}}
    state = {"type": "object", "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"], "properties": {
        "taskId": text, "statusMessage": text, "createdAt": text, "lastUpdatedAt": text, "ttlMs": {"type": ["integer", "null"]},
        "pollIntervalMs": {"type": "integer"}, "inputRequests": {"$ref": "#/$defs/InputRequests"}}}

    def with_status(status, *needed):
        return {"required": list(needed), "properties": dict({"status": {"const": status}}, **{n: whole for n in needed})}
    states = [with_status("working"), with_status("cancelled"), with_status("input_required", "inputRequests"),
              with_status("completed", "result"), with_status("failed", "error")]
    detailed = {"allOf": [state, {"anyOf": states}]}

    def result(kind, *more):
        return {"allOf": [{"required": ["resultType"], "properties": {"resultType": {"const": kind}}}, *more]}

    def call(method, *more):
        return {"required": ["params"], "properties": {"method": {"const": method}, "params": {"allOf": [whole, *more]}}}
    requests = {"GetTask": "tasks/get", "UpdateTask": "tasks/update", "CancelTask": "tasks/cancel"}
    types = {"CreateTaskResult": result("task", detailed), "GetTaskResult": result("complete", detailed),
             "UpdateTaskResult": result("complete"), "CancelTaskResult": result("complete"),
             "TaskStatusNotification": call("notifications/tasks", detailed)}
    types.update({name + "Request": call(method, named) for name, method in requests.items()})
    methods = {"client": {method: name + "Request" for name, method in requests.items()},
               "server": {"notifications/tasks": "TaskStatusNotification"}}
    return types, methods


class Revision(Validator):
    """What one revision of MCP allows each side to say."""

    def __init__(self, name):
        with open(os.path.join(FOLDER, name + ".json")) as f:
            super().__init__(json.load(f))
        self.name = name
        self.methods = {side: self.methods_of(side.capitalize()) for side in ("client", "server")}
        if name == EXTENDED:
            types, methods = task_types()
            self.types.update(types)
            for side, more in methods.items():
                self.methods[side].update(more)
        self.errors = {}
        for type_name, schema in self.types.items():
            for part in schema.get("properties", {}).get("error", {}).get("allOf", ()):
                if "properties" in part:
                    self.errors[part["properties"]["code"]["const"]] = type_name

    def methods_of(self, side):
        """{method: type of the message} of what that side may send."""
        types = {}
        for kind in ("Request", "Notification"):
            union = self.types.get(side + kind, {"anyOf": []})  # since 2026-07-28 servers make no requests
            for schema in union.get("anyOf", [union]):
                name = schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else side + kind
                types[self.types[name]["properties"]["method"]["const"]] = name
        return types

    def result_types(self, method):
        """The types that results of the method may have, whoever was asked."""
        request = self.methods["client"].get(method) or self.methods["server"].get(method)
        if request is None:
            return ["Result"]
        name = request.removesuffix("Request") + "Result"
        names = [name if name in self.types else "EmptyResult"]
        if "CreateTaskResult" in self.types and request in TASK_REQUESTS:
            names.append("CreateTaskResult")
        return names

    def may_ask(self, method):
        """Whether the result may be that the client is to be asked something."""
        whole = (self.methods["client"].get(method) or "").removesuffix("Request") + "ResultResponse"
        allowed = self.types[whole]["properties"]["result"].get("anyOf", ()) if whole in self.types else ()
        return {"$ref": "#/$defs/InputRequiredResult"} in allowed

    def find_result(self, message, method):
        response = "JSONRPCResultResponse" if "JSONRPCResultResponse" in self.types else "JSONRPCResponse"
        found = self.find_type(response, message)
        if found or method is None:
            return found
        names = self.result_types(method)
        if message["result"].get("resultType") == "input_required" and self.may_ask(method):
            names = ["InputRequiredResult"]
        found = [self.find_type(name, message["result"], "/result") for name in names]
        return None if None in found else "; ".join(found)

    def find_error(self, message):
        response = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in self.types else "JSONRPCError"
        found = self.find_type(response, message)
        own = self.errors.get(None if found else message["error"]["code"])
        return self.find_type(own, message) if own else found

    def find_call(self, message, side):
        found = self.find_type("JSONRPCRequest" if "id" in message else "JSONRPCNotification", message)
        name = self.methods[side].get(message["method"])
        if found or name:
            return found or self.find_type(name, message)
        if any(message["method"] in revision(r).methods[s] for r in REVISIONS for s in ("client", "server")):
            return "/method: %s is nothing that a %s says in %s" % (message["method"], side, self.name)
        return None  # an extension's


@functools.cache
def revision(name):
    return Revision(name)


def brief(value):
    text = json.dumps(value)
    return text if len(text) < 80 else text[:80] + "…"


def fault(message, name, side, method=None):
    """What is wrong with a message of `side` ("client", "server") in revision `name`, or None; method: what it answers."""
    if isinstance(message, list) and name == BATCHES and message:
        return next(filter(None, (fault(m, name, side) for m in message)), None)
    if not isinstance(message, dict):
        return ": no message"
    kinds = [k for k in ("method", "result", "error") if k in message]
    if len(kinds) != 1:
        return ": %s together" % (kinds or "neither request, nor notification, nor response")
    if kinds == ["result"]:
        return revision(name).find_result(message, method)
    if kinds == ["error"]:
        return revision(name).find_error(message)
    return revision(name).find_call(message, side)
