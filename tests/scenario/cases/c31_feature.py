# SPDX-License-Identifier: Apache-2.0
"""Feature rules of the session era. requirements §16."""
import json
import time

import mcp
from harness import case, eq, ok, wait_for, within

LISTS = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
SERVERS = {"main": {}, "mute": {"caps": LISTS},
           "paged": {"on": {"tools/list": [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"tools":[],"nextCursor":""}}']],
                            "prompts/list": [["error", -32602, "bad cursor"]]}},
           "level": {"on": {"logging/setLevel": [["error", -32603, "broken"]]}}}
SAMPLE = {"role": "assistant", "content": {"type": "text", "text": "t"}, "model": "m"}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}


def drain(g, seconds=0.4):
    seen = []
    try:
        while True:
            message = g.next(seconds)
            if message is None:
                return seen
            seen.append(message)
    except TimeoutError:
        return seen


@case
def progress_keeps_token_and_type(t):
    """UTIL-PROG-01: original token, value and type; unknown members of the notification pass."""
    s = t.session()
    for token in ("text", "1", 1, 0, -5, "", "caf\u00e9"):
        line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1.50,"total":2,"message":"m","x":[1.0]}}'
        e = s.start_do(["line", line], ["text", "x"], token=token)
        first = e.next()
        got = first["params"]["progressToken"]
        eq((type(got), got), (type(token), token))
        ok(b'"progress":1.50' in e.raw[0] and b'"x":[1.0]' in e.raw[0], "lexemes", e.raw[0])
        e.rest()


@case
def progress_must_increase(t):
    """UTIL-PROG-01 bridging 8.2: equal or falling values are dropped."""
    s = t.session()
    e = s.start_do(*[["progress", v] for v in (1, 1, 0.5, 2, 1.5, 2, 2.5, -1, 10)], ["text", "x"], token=1)
    eq([m["params"]["progress"] for m in e.rest()[:-1]], [1, 2, 2.5, 10])


@case
def stray_progress_is_dropped(t):
    """UTIL-PROG-01 bridging 8.2: unknown token, no client token, after the response: never delivered."""
    s = t.session()
    g = s.get()
    e = s.start_do(["progress", 1, 424242], ["progress", 1, "no"], ["progress", 1], ["text", "x"], ["progress", 9])
    eq(len(e.rest()), 1, "call without token")
    e = s.start_do(["progress", 1], ["progress", 2, "t"], ["text", "x"], ["progress", 5], token="t")
    eq([m["params"]["progress"] for m in e.rest()[:-1]], [1])
    eq(drain(g), [])


@case
def progress_without_value_is_dropped(t):
    """UTIL-PROG-01 REL-23: progress without a number is no progress."""
    s = t.session()
    e = s.start_do(["line", '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@}}'],
                   ["line", '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":"1"}}'],
                   ["line", '{"jsonrpc":"2.0","method":"notifications/progress"}'],
                   ["text", "x"], token="t")
    eq(len(e.rest()), 1)


@case
def ping_from_the_client(t):
    """UTIL-PING-01: answered by the gateway, also while the child is busy; the child never sees it."""
    d = t.start({"main": {"start": [], "initialized": [["deaf"]]}})
    s = t.session("main", daemon=d)
    started = time.monotonic()
    eq(s.ask("ping", request_id="p"), {"jsonrpc": "2.0", "id": "p", "result": {}})
    within(started, 1)
    s = t.session()
    pid = s.pid()
    s.ask("ping")
    ok(b'"ping"' not in t.daemon.record(pid), "ping at the child")


@case
def ping_from_the_child(t):
    """UTIL-PING-01 BACK-MSG-07: answered {} by the gateway, with the child's id as it was."""
    s = t.session()
    g = s.get()
    asked = json.loads(s.do_text(["ask", "p-1", "ping"], ["ask", 0, "ping"], ["ask", -7, "ping"], ["asked"]))
    eq(asked, [{"jsonrpc": "2.0", "id": i, "result": {}} for i in ("p-1", 0, -7)])
    eq(drain(g, 0.2), [])


@case
def clients_are_not_pinged(t):
    """UTIL-PING-02: no ping reaches a client."""
    s = t.session()
    eq(drain(s.get(), 1.5), [])


@case
def unknown_requests_of_the_child(t):
    """BACK-MSG-07 UTIL-ROOT-02: an unknown method of the child is -32601, once."""
    s = t.session("main", mcp.C, {"roots": {}, "sampling": {}, "elicitation": {}})
    pid = s.pid()
    asked = json.loads(s.do_text(["ask", "a", "tools/list"], ["ask", "b", "x/y"], ["ask", "c", "initialize", {}], ["asked"]))
    eq([(a["id"], a["error"]["code"]) for a in asked], [("a", -32601), ("b", -32601), ("c", -32601)])
    s.echo("after")
    eq(len([m for m in t.daemon.messages(pid) if "method" not in m]), 3, "answers")


@case
def log_level_is_checked(t):
    """UTIL-LOG-01: a bad level is -32602; without the capability -32601."""
    s = t.session()
    for params in ({"level": "loud"}, {"level": 3}, {}, None):
        e = s.start("logging/setLevel", params)
        answer = e.final()
        eq((e.status, answer.get("error", {}).get("code")), (200, -32602), params)
    s = t.session("mute")
    eq(s.ask("logging/setLevel", {"level": "info"})["error"]["code"], -32601)


@case
def log_level_filters(t):
    """UTIL-LOG-01: after setLevel only messages at or above the level reach the session."""
    s = t.session()
    levels = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    steps = [["notify", "notifications/message", {"level": l, "data": l}] for l in levels]
    e = s.start_do(*steps, ["text", "x"])
    eq([m["params"]["data"] for m in e.rest()[:-1]], list(levels), "before setLevel all pass")
    for level in ("warning", "emergency", "debug"):
        eq(s.ask("logging/setLevel", {"level": level})["result"], {})
        e = s.start_do(*steps, ["text", "x"])
        eq([m["params"]["data"] for m in e.rest()[:-1]], list(levels[levels.index(level):]), level)


@case
def log_level_that_the_child_refuses(t):
    """UTIL-LOG-01: `after success`: a level that the child refuses changes nothing."""
    s = t.session("level")
    eq(s.ask("logging/setLevel", {"level": "error"})["error"]["code"], -32603)
    e = s.start_do(["notify", "notifications/message", {"level": "debug", "data": 1}], ["text", "x"])
    eq(len(e.rest()), 2)


@case
def logs_go_to_the_only_call(t):
    """bridging 1.7: a log line goes to the call if there is exactly one, else to the standalone stream."""
    s = t.session()
    g = s.get()
    note = ["notify", "notifications/message", {"level": "info", "data": "one"}]
    e = s.start_do(note, ["text", "x"])
    eq(e.next()["params"]["data"], "one")
    e.rest()
    pid = s.pid()
    other = s.start_do(["sleep", 2], ["text", "other"])
    wait_for(lambda: "other" in str(t.daemon.messages(pid)), what="the other call")
    e = s.start_do(note, ["text", "x"])
    eq(len(e.rest()), 1, "two calls in flight")
    eq(g.next()["params"]["data"], "one")
    eq(len(other.rest()), 1)


@case
def requests_need_the_capability(t):
    """UTIL-ROOT-01 UTIL-ROOT-02: only declared features reach the client; else the child gets -32601."""
    every = {"roots/list": ("roots", None, {"roots": []}),
             "sampling/createMessage": ("sampling", {"messages": [], "maxTokens": 5}, SAMPLE),
             "elicitation/create": ("elicitation", FORM, {"action": "decline"})}
    for declared in ("roots", "sampling", "elicitation"):
        s = t.session("main", mcp.C, {declared: {}})
        for method, (capability, params, valid) in every.items():
            answer = dict(valid, answer=1)
            e = s.start_do(["ask", "q", method, params], ["asked"])
            message = e.next()
            if capability == declared:
                eq(message["method"], method)
                eq(message.get("params"), params)
                s.respond(message["id"], answer)
                message = e.next()
            asked = json.loads(message["result"]["content"][0]["text"])[0]
            if capability == declared:
                eq(asked["result"], answer)
            else:
                eq(asked["error"]["code"], -32601, method)


@case
def elicitation_modes(t):
    """UTIL-ROOT-01 UTIL-ROOT-02: url mode needs elicitation.url; else the child gets -32602."""
    url = {"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": "e1"}
    s = t.session("main", mcp.D, {"elicitation": {"form": {}}})
    eq(json.loads(s.do_text(["ask", "q", "elicitation/create", url], ["asked"]))[0]["error"]["code"], -32602)
    s = t.session("main", mcp.D, {"elicitation": {"url": {}, "form": {}}})
    e = s.start_do(["ask", "q", "elicitation/create", url], ["asked"])
    asked = e.next()
    eq(asked["params"], url)
    s.respond(asked["id"], {"action": "accept"})
    e.final()


@case
def elicitation_complete(t):
    """UTIL-ELIC-01 bridging 1.1 row 11: complete reaches only the session that got that elicitation, and only in 2025-11-25."""
    url = {"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": "e1"}
    s, other = t.session("main", mcp.D, {"elicitation": {"url": {}}}), t.session("main", mcp.D, {"elicitation": {"url": {}}})
    g, go = s.get(), other.get()
    e = s.start_do(["ask", "q", "elicitation/create", url], ["asked"])
    s.respond(e.next()["id"], {"action": "accept"})
    e.final()
    for session in (other, s):
        session.do(*[["notify", "notifications/elicitation/complete", {"elicitationId": i}] for i in ("unknown", "e1")], ["text", "x"])
    eq([m["params"]["elicitationId"] for m in drain(g)], ["e1"])
    eq(drain(go, 0.2), [], "a session that got no elicitation")
    old = t.session("main", mcp.C, {"elicitation": {}})
    go = old.get()
    old.do(["notify", "notifications/elicitation/complete", {"elicitationId": "e1"}], ["text", "x"])
    eq(drain(go, 0.2), [], "a session of 2025-06-18")


@case
def sampling_with_tools(t):
    """UTIL-ROOT-01: sampling with tools needs sampling.tools; else the child gets an error."""
    params = {"messages": [], "maxTokens": 5, "tools": [{"name": "x", "inputSchema": {"type": "object"}}]}
    s = t.session("main", mcp.D, {"sampling": {}})
    ok("error" in json.loads(s.do_text(["ask", "q", "sampling/createMessage", params], ["asked"]))[0], "accepted")
    s = t.session("main", mcp.D, {"sampling": {"tools": {}}})
    e = s.start_do(["ask", "q", "sampling/createMessage", params], ["asked"])
    eq(e.next()["params"], params)


@case
def roots_changed_only_if_told(t):
    """UTIL-ROOT-03: roots/list_changed reaches only a child that was told roots.listChanged."""
    for caps, expected in (({"roots": {"listChanged": True}}, 1), ({"roots": {}}, 0), ({"roots": {"listChanged": False}}, 0), ({}, 0)):
        s = t.session("main", mcp.C, caps)
        pid = s.pid()
        s.notify("notifications/roots/list_changed")
        s.echo("after")
        seen = [m for m in t.daemon.messages(pid) if m["method"] == "notifications/roots/list_changed"]
        eq(len(seen), expected, caps)


@case
def elicitation_answers_pass_unchanged(t):
    """UTIL-ELIC-02 bridging 2.1.4: results and errors of the client reach the child verbatim."""
    t.expect_invalid("elicitation/create: /result/content/extra", "the client's content is passed on as it is")
    s = t.session("main", mcp.C, {"elicitation": {}})
    for result in ({"action": "accept", "content": {"a": "x", "n": 1.0, "extra": [1]}}, {"action": "decline"},
                   {"action": "cancel"}, {"action": "accept", "content": {"not": "in the schema"}}):
        e = s.start_do(["ask", "q", "elicitation/create", FORM], ["asked"])
        s.respond(e.next()["id"], result)
        eq(json.loads(e.final()["result"]["content"][0]["text"])[0], {"jsonrpc": "2.0", "id": "q", "result": result})
    error = {"code": -1, "message": "User rejected", "data": {"x": 1}}
    e = s.start_do(["ask", "q2", "elicitation/create", FORM], ["asked"])
    s.respond(e.next()["id"], error=error)
    eq(json.loads(e.final()["result"]["content"][0]["text"])[0]["error"], error)


@case
def answers_of_clients_byte_for_byte(t):
    """RPC-04: lexemes in a client's result reach the child unchanged."""
    s = t.session("main", mcp.C, {"elicitation": {}})
    pid = s.pid()
    e = s.start_do(["ask", "q", "elicitation/create", FORM], ["asked"])
    fid = e.next()["id"]
    s.post('{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"n":1.0,"big":12345678901234567890123,"s":"\\u0041"}}}' % fid)
    e.final()
    ok(b'"content":{"n":1.0,"big":12345678901234567890123,"s":"\\u0041"}' in t.daemon.record(pid), "lexemes", t.daemon.record(pid)[-300:])


@case
def question_ids_are_never_reused(t):
    """RPC-02 bridging 1.1 row 2: ids of questions to a client are integers that never repeat."""
    s = t.session("main", mcp.C, {"roots": {}})
    ids = []
    for _ in range(4):
        e = s.start_do(["ask", "same", "roots/list"], ["asked"])
        ids.append(e.next()["id"])
        s.respond(ids[-1], {"roots": []})
        e.final()
    ok(all(type(i) is int and i > 1000000 for i in ids), "ids", ids)
    eq(len(set(ids)), 4, "ids differ")


@case
def progress_of_the_client_for_a_question(t):
    """bridging 1.1 row 5: progress of the client for a child's request reaches the child with its token."""
    s = t.session("main", mcp.C, {"sampling": {}})
    pid = s.pid()
    e = s.start_do(["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1, "_meta": {"progressToken": "mine"}}], ["asked"])
    asked = e.next()
    token = asked["params"]["_meta"]["progressToken"]
    s.notify("notifications/progress", {"progressToken": token, "progress": 1})
    s.notify("notifications/progress", {"progressToken": "guess", "progress": 1})
    s.respond(asked["id"], SAMPLE)
    e.final()
    seen = [m["params"]["progressToken"] for m in t.daemon.messages(pid) if m.get("method") == "notifications/progress"]
    eq(seen, ["mine"])


@case
def updates_only_for_subscribed(t):
    """UTIL-SUBS-01 bridging 1.7: updated reaches a session for subscribed URIs and below them only."""
    s = t.session()
    g = s.get()

    def updated(uri):
        s.do(["notify", "notifications/resources/updated", {"uri": uri}], ["text", "x"])
    updated("res://a")
    eq(drain(g, 0.3), [], "before subscribing")
    eq(s.ask("resources/subscribe", {"uri": "res://a"})["result"], {})
    for uri in ("res://a", "res://b", "res://ab", "res://a/sub"):
        updated(uri)
    eq([m["params"]["uri"] for m in drain(g)], ["res://a", "res://a/sub"])
    eq(s.ask("resources/unsubscribe", {"uri": "res://a"})["result"], {})
    updated("res://a")
    eq(drain(g, 0.3), [], "after unsubscribing")


@case
def subscriptions_are_the_sessions_own(t):
    """UTIL-SUBS-01 bridging I1: a subscription of one session sends nothing to another."""
    a, b = t.session(), t.session()
    ga, gb = a.get(), b.get()
    a.ask("resources/subscribe", {"uri": "res://a"})
    for s in (a, b):
        s.do(["notify", "notifications/resources/updated", {"uri": "res://a"}], ["text", "x"])
    eq(len(drain(ga)), 1)
    eq(drain(gb, 0.2), [])


@case
def list_changed_needs_its_capability(t):
    """UTIL-LIST-01: list_changed only if listChanged was advertised to the session."""
    for server, expected in (("main", 3), ("mute", 0)):
        s = t.session(server)
        g = s.get()
        s.do(*[["notify", "notifications/%s/list_changed" % x] for x in ("tools", "prompts", "resources")], ["text", "x"])
        eq(len(drain(g)), expected, server)


@case
def completion_passes(t):
    """UTIL-COMP-01: completion/complete is forwarded with all its members."""
    s = t.session()
    pid = s.pid()
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}, "context": {"arguments": {"b": "c"}}}
    eq(s.ask("completion/complete", params)["result"], {"completion": {"values": ["one", "two"]}})
    seen = t.daemon.messages(pid)[-1]["params"]
    seen.pop("_meta", None)
    eq(seen, params)


@case
def cursors_are_opaque(t):
    """UTIL-PAGE-01: cursors pass verbatim both ways, an empty one too; a bad one is the child's -32602."""
    s = t.session("paged")
    pid = s.pid()
    e = s.start("tools/list", {"cursor": ""})
    eq(e.final()["result"]["nextCursor"], "")
    eq(t.daemon.messages(pid)[-1]["params"]["cursor"], "")
    for cursor in ("a\u2028b\"\\", "x" * 5000, "../../etc"):
        eq(s.ask("tools/list", {"cursor": cursor})["result"]["tools"], [])
        eq(t.daemon.messages(pid)[-1]["params"]["cursor"], cursor)
    e = s.start("prompts/list", {"cursor": "bad"})
    eq((e.final()["error"]["code"], e.status), (-32602, 200))


@case
def question_waits_for_a_stream(t):
    """bridging 1.6.6 FRONT-GET-04: a question with no stream open is held until a GET comes."""
    s = t.session("main", mcp.C, {"roots": {}})
    pid = s.pid()
    s.do(["background", [["sleep", 0.1], ["send", "late", "roots/list"]]], ["text", "x"])
    time.sleep(0.4)
    g = s.get()
    asked = g.next()
    eq(asked["method"], "roots/list")
    s.respond(asked["id"], {"roots": []})
    wait_for(lambda: any(m.get("id") == "late" for m in t.daemon.messages(pid)), 3, "answer at the child")


@case
def vendor_notifications_of_the_child(t):
    """RPC-04 bridging 1.7: other notifications go to the standalone stream unchanged."""
    s = t.session()
    g = s.get()
    e = s.start_do(["line", '{"jsonrpc":"2.0","method":"notifications/com.example/x","params":{"v":1.0}}'], ["text", "x"])
    eq(len(e.rest()), 1)
    eq(g.next()["method"], "notifications/com.example/x")
    ok(b'"v":1.0' in g.raw[-1], "lexeme", g.raw[-1])


# ---- tasks (2025-11-25) ----

TASK_CAPS = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
RELATED = "io.modelcontextprotocol/related-task"
ENDED = dict({"content": [{"type": "text", "text": "late"}]}, _meta={RELATED: {"taskId": "t1"}})


def of_task(status):
    return {"taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000}


def task_server(caps=TASK_CAPS, **more):
    return dict({"version": mcp.D, "caps": caps, "on": {
        "tasks/get": [["progress", 5, 2], ["result", of_task("working")], ["progress", 6, 2]],
        "tasks/result": [["sleep", 0.2], ["result", ENDED], ["progress", 8, 2]],
        "tasks/cancel": [["error", -32602, "terminal"]], "tasks/list": [["result", {"tasks": [of_task("working")]}]]}}, **more)


SERVERS["tasks"] = task_server()
SERVERS["task_pool"] = {"script": task_server(), "isolation": "shared", "pool": {"idle_timeout": "300ms"}}


def begin_task(s, token="mine"):
    """The first call of a session: its id at the server is 2."""
    params = {"name": "do", "task": {"ttl": 1000}, "_meta": {"progressToken": token},
              "arguments": {"steps": [["progress", 1], ["result", {"task": of_task("working")}], ["progress", 2, 2], ["progress", 2, 2]]}}
    e = s.start("tools/call", params, request_id="c")
    messages = e.rest()
    eq(messages[-1]["result"]["task"], of_task("working"))
    eq([m["params"]["progress"] for m in messages[:-1]], [1])


@case
def progress_of_tasks(t):
    """UTIL-PROG-02 UTIL-TASK-01 UTIL-TASK-03: the token of a call is good until its task is terminal; what is said of tasks passes."""
    s = t.session("tasks", version=mcp.D)
    g = s.get()
    begin_task(s)
    eq(s.ask("tasks/get", {"taskId": "t1"})["result"], of_task("working"))
    for value in (2, 5, 6):
        eq(g.next()["params"], {"progressToken": "mine", "progress": value})
    eq(s.ask("tasks/result", {"taskId": "t1"})["result"], ENDED)
    s.do_text(["progress", 9, 2], ["notify", "notifications/x"], ["text", "x"])
    eq([m["method"] for m in drain(g)], ["notifications/x"], "it is over")


@case
def tasks_end_in_many_ways(t):
    """UTIL-PROG-02: a status that is terminal ends the token, however it is told."""
    for status in ("completed", "failed", "cancelled"):
        s = t.session("tasks", version=mcp.D)
        g = s.get()
        begin_task(s)
        eq(g.next()["params"]["progress"], 2)
        s.do_text(["notify", "notifications/tasks/status", of_task("input_required")], ["progress", 3, 2],
                  ["notify", "notifications/tasks/status", of_task(status)], ["progress", 4, 2], ["text", "x"])
        eq([m["method"] for m in drain(g)], ["notifications/tasks/status", "notifications/progress", "notifications/tasks/status"], status)


@case
def tasks_are_cancelled_by_name(t):
    """CXL-07 UTIL-TASK-01: the notification does nothing once the task is made; tasks/cancel is the server's to answer."""
    s = t.session("tasks", version=mcp.D)
    begin_task(s)
    s.cancel("c")
    answer = s.ask("tasks/cancel", {"taskId": "t1"})
    eq((answer["error"]["code"], answer["error"]["message"]), (-32602, "terminal"))
    eq([m for m in t.daemon.messages(s.pid()) if m.get("method") == "notifications/cancelled"], [])


@case
def tasks_of_others(t):
    """UTIL-TASK-02 UTIL-TASK-01: each session asks its own process; where everybody shares processes there are no tasks."""
    one, two = (t.session("tasks", version=mcp.D) for _ in range(2))
    begin_task(one)
    two.ask("tasks/list")
    pids = [s.pid() for s in (one, two)]
    eq([sum(m.get("method") == "tasks/list" for m in t.daemon.messages(p)) for p in pids], [0, 1])
    pooled = t.session("task_pool", version=mcp.D)
    eq(["tasks" in s.result["result"]["capabilities"] for s in (one, pooled)], [True, False])
    eq(pooled.ask("tasks/get", {"taskId": "t1"})["error"]["code"], -32601)


@case
def tasks_are_bounded(t):
    """UTIL-PROG-02 DEF-11: of very many tasks the oldest ones tell no progress any more; long tokens tell none."""
    s = t.session("tasks", version=mcp.D)
    g = s.get()
    for number in range(65):
        s.ask("tools/call", {"name": "do", "task": {}, "_meta": {"progressToken": "t%d" % number},
                             "arguments": {"steps": [["result", {"task": dict(of_task("working"), taskId="t%d" % number)}]]}})
    s.ask("tools/call", {"name": "do", "task": {}, "_meta": {"progressToken": "x" * 1025},
                         "arguments": {"steps": [["result", {"task": of_task("working")}]]}})
    s.do_text(["progress", 1, 2], ["progress", 1, 3], ["progress", 1, 66], ["progress", 1, 67], ["text", "x"])
    eq([m["params"]["progressToken"] for m in drain(g)], ["t1", "t64"])
