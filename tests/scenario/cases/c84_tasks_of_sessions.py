# SPDX-License-Identifier: Apache-2.0
"""Tasks of 2025-11-25: of a session at its own process; where sessions share processes there are none. bridging.md §2.5."""
import json
import os
import signal

import mcp
from c81_parked import ACCEPT, ALICE, FORM, TOKENS
from harness import case, eq, ok, wait_for

RELATED = "io.modelcontextprotocol/related-task"
CAPS = {"tools": {}, "logging": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
TOOLS = [{"name": "do", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
         {"name": "must", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}]
SCRIPT = {"version": mcp.D, "caps": CAPS, "on": {"tools/list": [["result", {"tools": TOOLS}]]}}
CONFIG = {"auth": {"mode": "token", "tokens": TOKENS}, "defaults": {"era": "legacy", "pool": {"idle_timeout": "1500ms"}}}
DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
ASKS = {"elicitation": {}}
ABOUT = {"_meta": {RELATED: {"taskId": "t1"}}}
SERVERS = {"main": {"script": SCRIPT}, "short": {"script": SCRIPT, "request_timeout": "500ms"}}
SHARED = {"principal": {"script": SCRIPT, "isolation": "principal"}, "shared": {"script": SCRIPT, "isolation": "shared"}}


def session(t, server="main", caps=None, **kw):
    return t.session(server, mcp.D, caps or {}, token=ALICE, **kw)


def make(s, *steps, task_id="t1", members=None, token=None):
    """A task that does these steps."""
    params = dict(s.do_params([["task", task_id, list(steps), members]], token), task={"ttl": 3000})
    answer = s.ask("tools/call", params)
    eq((answer["result"]["task"]["taskId"], answer["result"]["task"]["status"]), (task_id, "working"), answer)
    return task_id


def state(s, task):
    answer = s.ask("tasks/get", {"taskId": task})
    eq(answer["result"]["taskId"], task, answer)
    return answer["result"]["status"]


def of_tasks(t, server):
    """What the processes of a server were sent about tasks."""
    return [m for p in t.daemon.children(server) for m in t.daemon.messages(p) if m.get("method", "").startswith("tasks/")]


# ---- a session and its own process ----

@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_from_its_call_to_its_result(t):
    """UTIL-TASK-01 UTIL-TASK-03: all of it passes as it is; tasks/result waits, also for longer than a request may take, and is what the server says."""
    for server in SERVERS:
        s = session(t, server)
        eq(s.result["result"]["capabilities"]["tasks"], CAPS["tasks"])
        eq(s.ask("tools/list")["result"]["tools"], TOOLS)
        task = make(s, ["sleep", 1.2], ["job", DONE])
        eq(state(s, task), "working")
        eq(s.ask("tasks/result", {"taskId": task})["result"], dict(DONE["result"], **ABOUT))
        eq(state(s, task), "completed")
        eq([one["taskId"] for one in s.ask("tasks/list")["result"]["tasks"]], [task])
        eq(s.ask("tasks/cancel", {"taskId": task})["error"]["code"], -32602, "the server's word")


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_asks_who_made_it(t):
    """UTIL-TASK-03 CXL-09: while a call waits for its result or not, its session is asked, and asked no more; so are its status and log lines."""
    s = session(t, caps=ASKS)
    g = s.get()
    task = make(s, ["sleep", 0.3], ["notify", "notifications/message", dict(ABOUT, level="info", data="x")], ["ask", "q", "elicitation/create", dict(FORM, **ABOUT)],
                ["send", "r", "elicitation/create", dict(FORM, **ABOUT)], ["sleep", 0.3],
                ["notify", "notifications/cancelled", dict(ABOUT, requestId="r")], ["job_asked"])
    logged, first = g.next(), g.next()
    eq((logged["method"], logged["params"]["_meta"]), ("notifications/message", ABOUT["_meta"]))
    eq((first["method"], first["params"]["_meta"][RELATED]), ("elicitation/create", {"taskId": task}))
    s.respond(first["id"], dict(ACCEPT, **ABOUT))
    second, withdrawn, told = g.next(), g.next(), g.next()
    eq((second["method"], withdrawn["params"]), ("elicitation/create", dict(ABOUT, requestId=second["id"])))
    eq((told["params"]["taskId"], told["params"]["status"]), (task, "completed"))
    answers = json.loads(s.ask("tasks/result", {"taskId": task})["result"]["content"][0]["text"])
    eq(answers[0]["result"], dict(ACCEPT, **ABOUT))


@case(own=True, servers=SERVERS, config=CONFIG)
def two_tasks_of_one_name(t):
    """UTIL-PROG-02 SEC-42: a server that names two tasks alike has one, which is the first one's; when it has ended neither token is good."""
    s = session(t)
    g = s.get()
    make(s, ["sleep", 0.5], ["progress", 1], ["job", DONE], ["progress", 2], token="a")
    make(s, ["sleep", 0.9], ["progress", 3], token="b")
    progress, status = g.next(), g.next()
    eq((progress["params"]["progressToken"], progress["params"]["progress"], status["method"]), ("a", 1, "notifications/tasks/status"))
    g.nothing(0.8)


@case(own=True, servers=SERVERS, config=CONFIG)
def a_process_that_ends(t):
    """UTIL-TASK-01 bridging.md §4: who waits for a result is told; the next process has no such task, and says so."""
    s = session(t)
    task = make(s)
    e = s.start("tasks/result", {"taskId": task})
    pid = t.daemon.children("main")[0]
    wait_for(lambda: of_tasks(t, "main"), 3, "it waits")
    os.kill(pid, signal.SIGKILL)
    final = e.final()
    eq((final["error"]["code"], final["error"]["data"]["reason"]), (-32603, "child_exited"))
    eq(s.ask("tasks/get", {"taskId": task}, timeout=10)["error"]["code"], -32602, "the server's word")


@case(own=True, servers={"main": SERVERS["main"]}, config={"defaults": {"era": "legacy"}})
def tasks_over_http_sse(t):
    """UTIL-TASK-01 UTIL-TASK-03 UTIL-PROG-02: all of it on the one stream of HTTP+SSE, where a client of it speaks that revision."""
    s = t.sse("main", version=mcp.D, caps=ASKS)
    steps = ["task", "t1", [["progress", 1], ["ask", "q", "elicitation/create", dict(FORM, **ABOUT)], ["job_asked"]]]
    params = {"name": "do", "arguments": {"steps": [steps]}, "task": {}, "_meta": {"progressToken": "p"}}
    eq(s.ask("tools/call", params)["result"]["task"]["taskId"], "t1")
    request_id = s.start("tasks/result", {"taskId": "t1"})
    while not any(m.get("method") == "elicitation/create" for m in s.seen):
        s.seen.append(s.next())
    eq([m["params"] for m in s.seen if m["method"] == "notifications/progress"], [{"progressToken": "p", "progress": 1}])
    asked = next(m for m in s.seen if m["method"] == "elicitation/create")
    eq(asked["params"]["_meta"], ABOUT["_meta"])
    s.respond(asked["id"], dict(ACCEPT, **ABOUT))
    final = s.wait_answer(request_id)
    eq(final["result"]["_meta"], ABOUT["_meta"])
    eq(json.loads(final["result"]["content"][0]["text"])[0]["result"]["_meta"], ABOUT["_meta"])
    eq(s.ask("tasks/get", {"taskId": "t1"})["result"]["status"], "completed")


def is_refused(s):
    """Whether a call is, because its caller has too many in flight."""
    exchange = s.start("tools/call", s.do_params([["text", "x"]]))
    exchange.final()
    ok(exchange.status in (200, 429), "status", exchange.status)
    return exchange.status == 429


@case(own=True, servers={"own": {"script": SCRIPT, "concurrency": 1}, "tool": {"script": SCRIPT, "tools": {"limits": [{"tools": ["do"], "concurrency": 1}]}}},
      config=CONFIG, deadline=30)
def tasks_count_as_calls_in_flight(t):
    """product §4 concurrency UTIL-TASK-01: a call that became a task counts until the task ends, whatever its ttl and session; who asks about it does not."""
    for server in ("own", "tool"):
        s = session(t, server)
        task = make(s)
        ok(is_refused(s), "while it works", server)
        for _ in range(3):
            eq(state(s, task), "working")
        waiting = s.start("tasks/result", {"taskId": task})
        eq(s.ask("tasks/cancel", {"taskId": task})["result"]["status"], "cancelled")
        waiting.final()
        ok(not is_refused(s), "it was cancelled", server)
        task = make(s, ["sleep", 0.3], ["job", DONE], task_id="t2")
        ok(is_refused(s), "another one", server)
        wait_for(lambda: not is_refused(s), 5, "the server tells that it has ended")
        task = make(s, task_id="t3", members={"ttl": 1})
        for _ in range(3):
            ok(is_refused(s), "one of a short life, on which the server works on", server)
        s.ask("tasks/cancel", {"taskId": task})
        wait_for(lambda: not is_refused(s), 5, "its end")
        make(s, task_id="t4")
        ok(is_refused(s), "one of a session", server)
        s.delete()
        t.sessions.remove(s)
        for pid in t.daemon.children(server):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_refused(session(t, server)), 5, "the end of the process")


# ---- processes that sessions share ----

def offers_none(t, server, s):
    eq("tasks" in s.result["result"]["capabilities"], False, server)
    eq(s.ask("tools/list")["result"]["tools"], [{"name": "do", "inputSchema": {"type": "object"}}], server)
    params = dict(s.do_params([["text", "x"]]), task={"ttl": 1})
    eq(s.ask("tools/call", params)["result"]["content"][0]["text"], "x", "as if it had not asked for a task")
    for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update"):
        eq(s.ask(method, {"taskId": "t1"})["error"]["code"], -32601, (server, method))
    calls = [m for p in t.daemon.children(server) for m in t.daemon.messages(p) if m.get("method") == "tools/call"]
    eq((of_tasks(t, server), [m for m in calls if "task" in m["params"]]), ([], []), "what the server was told of tasks")


@case(own=True, servers=SHARED, config=CONFIG)
def shared_processes_offer_no_tasks(t):
    """UTIL-TASK-01 UTIL-TASK-02: they are not advertised, `task` is ignored, tasks/* is unknown, and tools that are nothing but tasks are not listed."""
    for server in SHARED:
        offers_none(t, server, session(t, server))
        offers_none(t, server, session(t, server, caps={"elicitation": {}, "tasks": {"requests": {"elicitation": {"create": {}}}}}))


@case(own=True, servers=SHARED, config={"defaults": {"era": "legacy"}})
def nor_to_anonymous_callers(t):
    """UTIL-TASK-01 UTIL-TASK-02: likewise, by each front."""
    for server in SHARED:
        offers_none(t, server, t.session(server, mcp.D))
        s = t.sse(server, version=mcp.D)
        eq(s.ask("tasks/list")["error"]["code"], -32601, server)
        params = {"name": "do", "arguments": {"steps": [["text", "x"]]}, "task": {}}
        eq(s.ask("tools/call", params)["result"]["content"][0]["text"], "x", server)


MUST = dict(SCRIPT, on=dict(SCRIPT["on"], **{"tools/call": [["error", -32601, "as a task only"]]}))


@case(own=True, servers={"must": {"script": MUST, "isolation": "principal"}}, config=CONFIG)
def tools_that_are_nothing_but_tasks(t):
    """UTIL-TASK-01: who calls one all the same gets the refusal of its server."""
    s = session(t, "must")
    eq(s.ask("tools/call", {"name": "must", "arguments": {}, "task": {"ttl": 1}})["error"], {"code": -32601, "message": "as a task only"})


@case(own=True, servers={"main": SHARED["principal"]}, config=CONFIG)
def servers_that_speak_of_tasks_all_the_same(t):
    """UTIL-TASK-03 SEC-42: a state that no client asked for reaches nobody; a question during a call is that call's, whatever task it names; a result is a result."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    g, quiet = s.get(), other.get()
    status = {"taskId": "t1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": 1000}
    e = s.start_do(["notify", "notifications/tasks/status", status], ["ask", "q", "elicitation/create", dict(FORM, **ABOUT)], ["text", "x"])
    asked = e.next()
    eq((asked["method"], asked["params"]["_meta"]), ("elicitation/create", ABOUT["_meta"]))
    s.respond(asked["id"], ACCEPT)
    eq((e.final()["result"]["content"][0]["text"], len(e.raw)), ("x", 2))
    said = dict({"content": [], "task": {"taskId": "t1", "status": "working"}}, **ABOUT)
    eq(s.do(["result", said])["result"], said)
    eq(s.ask("tasks/get", {"taskId": "t1"})["error"]["code"], -32601)
    g.nothing(0.2)
    quiet.nothing(0)
