# SPDX-License-Identifier: Apache-2.0
"""
Arguments that are held against the schema of their tool: on every way in, nothing that does not fit reaches a server, nor
anything that nobody can judge, and all else does as it was sent. What was sent is judged by what the server records.
"""
import json

import mcp
from c65_doors import WAYS, Way
from c80_stateless import ask
from c91_arguments import call, recorded
from harness import case, eq, ok, wait_for

CHECK = {"arguments": {"schema": "check"}}
ECHO = {
    "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False, "required": ["text"],
    "properties": {
        "text": {"type": "string", "minLength": 3, "maxLength": 40}, "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "kind": {"enum": ["a", "b", None]}, "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}, "uniqueItems": True, "maxItems": 3},
        "tree": {"$ref": "#/definitions/tree"}, "one": {"oneOf": [{"type": "string"}, {"type": "number", "multipleOf": 0.01}]},
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}], "additionalItems": False},
        "not": {"not": {"const": 0}}, "map": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        "when": {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["v"]}, "propertyNames": {"maxLength": 2}},
    },
    "definitions": {"tag": {"type": "string", "pattern": "^[a-z]+$"},
                    "tree": {"type": "object", "properties": {"in": {"$ref": "#/definitions/tree"}}, "additionalProperties": False}},
}
ODD = {"type": "object", "properties": {"a": {"$ref": "https://schemas.example/a.json"}}}
HARD = {"type": "object", "properties": {"text": {"type": "string"}, "a": {"$ref": "#/$defs/a"}}, "$defs": {
    "a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}, "minItems": 1}, {"items": {"$ref": "#/$defs/a"}, "minItems": 1}]}}}
TOOLS = [{"name": name, "inputSchema": schema} for name, schema in (
    ("echo", ECHO), ("do", {"type": "object"}), ("odd", ODD), ("hard", HARD), ("loop", {"$ref": "#"}))] + [{"name": "bare"}]


def script(*lists):
    """The last of them from then on."""
    results = [["result", {"tools": tools}] for tools in lists]
    return {"on": {"tools/list": [["once", r] for r in results[:-1]] + results[-1:]}}


SERVERS = {"main": {"script": script(TOOLS), "tools": CHECK}}
POOLED = {"main": {"script": script(TOOLS), "tools": CHECK, "isolation": "shared"}}

MISFITS = ['{"text":%s}' % v for v in ('5', 'null', '"MARK%s"' % ("x" * 60), '["MARK"]', '{"a":"MARK"}')] + ['{"text":"MARK",%s}' % v for v in (
    '"n":0', '"n":11', '"n":1.5', '"n":"1"', '"n":1e1000', '"n":null', '"kind":"c"', '"kind":0', '"kind":false', '"tags":["A"]', '"tags":["a","a"]',
    '"tags":["a","\\u0061"]', '"tags":["a","b","c","d"]', '"tags":"a"', '"tags":["a\\n"]', '"tree":{"on":{}}', '"tree":{"in":{"in":{"in":1}}}',
    '"one":true', '"one":0.001', '"pair":["a",true,1]', '"pair":[true]', '"not":0', '"not":0.0', '"not":-0', '"map":{"y":"a"}', '"map":{"x-a":1}',
    '"when":{"k":1}', '"when":{"abc":1}', '"more":1', '"Text":"MARK"', '"__proto__":1', '"":1', '"\\u006e":0', '"a":"\\ud800"', '"kind":"a","kind":"a"',
    '"n":5,"\\u006e":5', '"tree":%s' % ('{"in":' * 30 + "[]" + "}" * 30))]
MISFITS += ['["MARK"]', '"MARK"', '7', 'null', '{}', '{"n":5}']
FITTING = ['{"text":"MARK"}'] + ['{"text":"MARK",%s}' % v for v in (
    '"n":1', '"n":10', '"n":5.0', '"n":1e1', '"kind":"a"', '"kind":null', '"k\\u0069nd":"\\u0062"', '"tags":[]', '"tags":["a","b"]', '"tree":{}',
    '"tree":%s' % ('{"in":' * 30 + "{}" + "}" * 30), '"one":"a"', '"one":0.07', '"one":4.35', '"pair":[]', '"pair":["a",false]', '"not":1', '"not":null',
    '"map":{"x-a":"b"}', '"when":{"k":1,"v":2}', '"when":{"k":2}', '"when":7')]


def refused(name, code=-32602):
    """What is told: of a batch the other call is served."""
    if name == "stateless":
        return "400 -32602" if code == -32602 else "200 %d" % code
    return ("202" if "http_sse" in name else "200") + " %d" % code + (" taken" if name.endswith("_batch") else "")


def heard(daemon, method):
    return [m for pid, _ in daemon.records_of("main") for m in daemon.messages(pid) if m.get("method") == method]


def every_value(t, name, servers):
    way = Way(t, name, servers)
    taken = ("202" if way.home.sse else "200") + " taken"
    for i, arguments in enumerate(MISFITS):
        eq(call(way, arguments, "misfit-%d." % i), refused(name), arguments)
    for tool, code in (("odd", -32603), ("bare", -32603), ("loop", -32602), ("Echo", -32602), ("ech", -32602)):
        eq(call(way, '{"text":"MARK"}', "misfit-900.", name=tool), refused(name, code), tool)
    eq(call(way, '{"text":"MARK","a":%s}' % ("[" * 40 + "]" * 40), "misfit-901.", name="hard"), refused(name), "too many steps")
    for i, arguments in enumerate(FITTING):
        eq(call(way, arguments, "fitting-%d." % i), taken, arguments)
    eq({i: m for i, m in recorded(way, "misfit-").items() if [c for c in m if c["params"]["name"] != "do"]}, {}, "nothing that does not fit arrives")
    arrived = recorded(way, "fitting-")
    eq(sorted(arrived), list(range(len(FITTING))), "all else does")
    for i, arguments in enumerate(FITTING):
        sent = [m["params"]["arguments"] for m in arrived[i] if m["params"]["name"] == "echo"]
        eq(sent, [json.loads(arguments.replace("MARK", "fitting-%d." % i))], "as it was sent")
    eq(len(heard(t.daemon, "tools/list")), 1, "the list, which no client has asked for, is asked for once")
    t.daemon.wait_log("schema_unusable")
    eq(len(t.daemon.log("schema_unusable")), 1, "said once")


def for_way(name, servers, what):
    def by_way(t):
        every_value(t, name, servers)
    by_way.__name__ = what + name
    by_way.__doc__ = "SEC-59: what does not fit the schema of its tool reaches no server by %s, and all else does." % name.replace("_", " ")
    return case(daemon=False, deadline=60)(by_way)


for _name in WAYS:
    globals()["by_" + _name] = for_way(_name, SERVERS, "by_")
    globals()["shared_by_" + _name] = for_way(_name, POOLED, "shared_by_")


@case(daemon=False)
def what_only_looks_like_a_call(t):
    """SEC-50 SEC-59: a notification, or another spelling of the method, has no schema that it could be held against."""
    way = Way(t, "streamable", SERVERS)
    for method in ("TOOLS/CALL", "Tools/call", "tools/call ", "\uff54ools/call", "tools\uff0fcall", "tools/call\u200b"):
        eq(call(way, '{"text":"MARK"}', "misfit-0.", method), "200 -32602", method)
    message = mcp.notification("tools/call", {"name": "echo", "arguments": {"text": "misfit-1."}})
    eq(way.send(way.home, message, way.good).response().status, 400, "a notification")
    message = mcp.request(7, "tools/call", [{"name": "echo", "arguments": {"text": "misfit-2."}}])
    eq(json.loads(way.send(way.home, message, way.good).response().read())["error"]["code"], -32602, "an array of params")
    message = mcp.request(8, "tools/call", {"name": "echo", "arguments": {"text": 5, "mark": "misfit-3."}, "task": {}})
    eq(json.loads(way.send(way.home, message, way.good).response().read())["error"]["code"], -32602, "a task")
    eq(call(way, '{"text":"MARK"}', "fitting-0."), "200 taken", "a call")
    eq((sorted(recorded(way, "misfit-")), sorted(recorded(way, "fitting-"))), ([], [0]), "what arrived")


@case(daemon=False)
def the_refusal_says_where(t):
    """SEC-51 SEC-59: the place and the rule, as a name without what would steer a terminal, and no value."""
    t.start(SERVERS)
    client = t.session("main")
    for arguments, text in (
            ({"text": 5}, "arguments/text must be of type string (schema: /properties/text/type)"),
            ({}, "arguments must have the member text (schema: /required)"),
            ({"text": "secret" * 9}, "arguments/text must have at most 40 characters (schema: /properties/text/maxLength)"),
            ({"text": "abc", "tags": ["a", "S3CRET"]}, "arguments/tags/1 must match the pattern (schema: /definitions/tag/pattern)"),
            ({"text": "abc", "x\x1b[1m/\u202e": "secret"}, "arguments/x?u001b[1m~1??? must not be present (schema: /additionalProperties)")):
        error = client.ask("tools/call", {"name": "echo", "arguments": arguments})["error"]
        eq(error, {"code": -32602, "message": "Invalid params: " + text}, "told")
    error = client.ask("tools/call", {"name": "odd", "arguments": {}})["error"]
    eq(error["message"], "Internal error: the schema of this tool cannot be used: /properties/a/$ref leads to another document", "unusable")
    error = client.ask("tools/call", {"name": "nix", "arguments": {}})["error"]
    eq(error["message"], "Invalid params: the server lists no such tool", "unlisted")


@case(daemon=False)
def keywords_that_are_not_checked(t):
    """SEC-59: a schema that uses one is as any that cannot be used: its tool is refused and logged, whatever the arguments; others are called."""
    unchecked = {
        "dependencies": {"a": ["b"]}, "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"required": ["b"]}}, "minContains": 0,
        "maxContains": 9, "unevaluatedItems": True, "unevaluatedProperties": True, "multipleOf": 0.1234567891}
    tools = [{"name": keyword, "inputSchema": {"type": "object", "properties": {"a": {keyword: value}}}} for keyword, value in unchecked.items()]
    t.start({"main": {"script": script(TOOLS + tools), "tools": CHECK}})
    client = t.session("main")
    for keyword in unchecked:
        why = "is not a divisor of up to 9 digits" if keyword == "multipleOf" else "is a keyword that is not supported here"
        for arguments in ({}, {"a": 1}):
            error = client.ask("tools/call", {"name": keyword, "arguments": arguments})["error"]
            eq(error, {"code": -32603, "message": "Internal error: the schema of this tool cannot be used: /properties/a/%s %s" % (keyword, why)}, keyword)
    ok("result" in client.ask("tools/call", {"name": "echo", "arguments": {"text": "abc"}}), "another tool")
    eq([m["params"]["name"] for m in heard(t.daemon, "tools/call")], ["echo"], "what arrived")
    t.daemon.wait_log("schema_unusable", "tool=dependencies ")


def lists_change(t, more):
    other = [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "integer"}}}}, TOOLS[1]]
    t.start({"main": dict(more, script=script(TOOLS, other), tools=CHECK)})
    client = t.session("main")
    echo = lambda value: "result" in client.ask("tools/call", {"name": "echo", "arguments": {"text": value}})
    eq((echo("abc"), echo(5)), (True, False), "before")
    client.ask("tools/call", {"name": "do", "arguments": {"steps": [["notify", "notifications/tools/list_changed"], ["text", "x"]]}})
    eq((echo("abc"), echo(5)), (False, True), "afterwards")
    eq("error" in client.ask("tools/call", {"name": "hard", "arguments": {}}), True, "a tool that is not there any more")


@case(daemon=False)
def lists_that_change(t):
    """SEC-59: when the server says that its list has changed, the new schema counts from then on."""
    lists_change(t, {})


@case(daemon=False)
def shared_lists_that_change(t):
    """SEC-59: likewise for all who share a server."""
    lists_change(t, {"isolation": "shared"})


@case(daemon=False)
def lists_that_have_pages(t):
    """SEC-59: the whole list counts, however many pages it has; calls that come at once have it fetched once."""
    pages = [["once", ["result", {"tools": TOOLS[1:], "nextCursor": "c"}]], ["result", {"tools": TOOLS[:1]}]]
    t.start({"main": {"script": {"on": {"tools/list": pages}}, "tools": CHECK}})
    client = t.session("main")
    calls = [client.start("tools/call", {"name": "echo", "arguments": {"text": v}}) for v in ("abc", 5, "xyz")]
    eq(["result" in c.final() for c in calls], [True, False, True], "told")
    eq([m.get("params") for m in heard(t.daemon, "tools/list")], [None, {"cursor": "c"}], "asked")


@case(daemon=False)
def lists_that_are_not_to_be_had(t):
    """SEC-59: then nothing is called; and for a while the server is not asked again by each call."""
    for more in ({}, {"isolation": "shared"}):
        daemon = t.start({"main": dict(more, script={"on": {"tools/list": [["error", -32603, "no"]]}}, tools=CHECK)})
        client = t.session("main", daemon=daemon)
        for _ in range(4):
            error = client.ask("tools/call", {"name": "echo", "arguments": {"text": "abc"}})["error"]
            eq(error, {"code": -32603, "message": "Internal error: the arguments cannot be checked: the server has not told its tools"}, "told")
        eq(len(heard(daemon, "tools/list")), 2, "asked, and asked again")
        ok("result" in client.ask("prompts/list", {}), "another request arrives, and so would have the calls")
        eq((len(heard(daemon, "prompts/list")), heard(daemon, "tools/call")), (1, []), "what arrived")


@case(daemon=False, deadline=30)
def a_server_that_says_nothing(t):
    """SEC-59: a list that does not come within 10 s is not waited for; another request is served meanwhile."""
    t.start({"main": {"script": {"on": {"tools/list": []}}, "tools": CHECK}})
    client = t.session("main")
    waiting = client.start("tools/call", {"name": "echo", "arguments": {"text": "abc"}})
    wait_for(lambda: heard(t.daemon, "tools/list"), 3, "it is asked")
    ok("result" in client.ask("prompts/list", {}), "another request")
    eq(waiting.final(15)["error"]["code"], -32603, "told")


@case(daemon=False, deadline=30)
def servers_that_die_over_it(t):
    """SEC-59: a call whose list is lost with the process fails, and so does nothing else."""
    for more in ({}, {"isolation": "shared"}):
        steps = [["once", ["exit", 1]], ["result", {"tools": TOOLS}]]
        daemon = t.start({"main": dict(more, script={"on": {"tools/list": steps}}, tools=CHECK)})
        client = t.session("main", daemon=daemon)
        answer = client.ask("tools/call", {"name": "echo", "arguments": {"text": "abc"}}, timeout=20)
        ok("error" in answer, answer)
        eq(heard(daemon, "tools/call"), [], "what arrived")
        ok("result" in client.ask("prompts/list", {}, timeout=20), "another process serves")


@case(daemon=False)
def clients_that_leave(t):
    """SEC-59 CXL-02: a call that is cancelled while its list is fetched, or whose session ends, is not made."""
    t.start({"main": {"script": {"on": {"tools/list": [["sleep", 2], ["result", {"tools": TOOLS}]]}}, "tools": CHECK}})
    leaving, staying = t.session("main"), t.session("main")
    calls = [c.start("tools/call", {"name": "echo", "arguments": {"text": "abc"}}) for c in (leaving, staying, staying)]
    wait_for(lambda: len(heard(t.daemon, "tools/list")) == 2, 3, "both lists are asked for")
    staying.notify("notifications/cancelled", {"requestId": calls[1].id})
    leaving.delete()
    ok("result" in calls[2].final(), "the other call")
    eq(len(heard(t.daemon, "tools/call")), 1, "what arrived")


@case(daemon=False)
def servers_of_the_modern_era(t):
    """SEC-59: likewise, for clients of either era, also when they try again with an answer to what the server asked."""
    rounds = {"type": "array", "maxItems": 2}
    tools = [TOOLS[0], {"name": "do", "inputSchema": {"type": "object", "properties": {"rounds": rounds}, "additionalProperties": False}}]
    t.start({"main": {"script": dict(script(tools), era="modern"), "tools": CHECK, "isolation": "shared"}})
    client = t.session("main")
    for value, is_taken in (("abc", True), (5, False)):
        eq("result" in client.ask("tools/call", {"name": "echo", "arguments": {"text": value}}), is_taken, value)
    asked = [["input", {"q": {"method": "roots/list", "params": {}}}]]
    params = {"name": "do", "arguments": {"rounds": [asked, [["told"]]]}}
    _, found = ask(t, "main", "tools/call", params, caps={"roots": {}})
    eq(found[-1]["result"]["resultType"], "input_required", found)
    again = dict(params, requestState=found[-1]["result"]["requestState"], inputResponses={"q": {"roots": []}})
    for more, place in (({"more": 1}, "/more"), ({"rounds": [asked] * 3}, "/rounds")):
        status, found = ask(t, "main", "tools/call", dict(again, arguments=dict(again["arguments"], **more)), caps={"roots": {}})
        ok(status == 400 and found[-1]["error"]["message"].startswith("Invalid params: arguments%s must " % place), found)
    _, found = ask(t, "main", "tools/call", again, caps={"roots": {}})
    eq(found[-1]["result"]["resultType"], "complete", found)


@case(daemon=False, deadline=30)
def batches_share_the_bound_of_one_check(t):
    """SEC-59: what takes some of the steps of a check is good alone, and too much in a batch of 64, which takes no longer than one may."""
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "integer"}}}}
    t.start({"main": {"script": script([{"name": "echo", "inputSchema": schema}]), "tools": CHECK}})
    client = t.session("main", "2025-03-26")
    costly = {"name": "echo", "arguments": {"list": [0] * 12000}}
    ok("result" in client.ask("tools/call", costly), "alone")
    batch = [mcp.request("b%d" % i, "tools/call", costly if i < 2 else {"name": "echo", "arguments": {"list": [i]}}) for i in range(64)]
    exchange = client.post(batch)
    answers = exchange.answer if isinstance(exchange.answer, list) else exchange.messages
    told = {a["id"]: a for a in answers}
    eq(len(told), 64, "answers")
    for i in range(64):
        answer = told["b%d" % i]
        ok("takes too many steps" in answer["error"]["message"] if i < 2 else "result" in answer, i, answer)
