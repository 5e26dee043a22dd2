# SPDX-License-Identifier: Apache-2.0
"""Tasks of 2025-11-25 where the sessions of a principal share processes (isolation: principal). bridging.md §2.5."""
import json
import os
import signal

import mcp
from c81_parked import ACCEPT, ALICE, BOB, FORM, TOKENS
from harness import case, eq, ok, wait_for

RELATED = "io.modelcontextprotocol/related-task"
CAPS = {"tools": {}, "logging": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
TOOLS = [{"name": "do", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
         {"name": "must", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}]
SCRIPT = {"version": mcp.D, "caps": CAPS, "on": {"tools/list": [["result", {"tools": TOOLS}]]}}
SERVERS = {
    "main": {"script": SCRIPT, "isolation": "principal"},
    "two": {"script": SCRIPT, "isolation": "principal", "pool": {"max": 4, "requests_per_process": 1}},
    "brief": {"script": SCRIPT, "isolation": "principal", "pool": {"idle_timeout": "300ms"}},
}
CONFIG = {"auth": {"mode": "token", "tokens": TOKENS}, "defaults": {"era": "legacy", "pool": {"idle_timeout": "1500ms"}}}
DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
ASKS = {"elicitation": {}}


def session(t, server="main", token=ALICE, caps=None, **kw):
    return t.session(server, mcp.D, caps or {}, token=token, **kw)


def make(s, *steps, task_id="t1", members=None, token=None):
    """The id of a task that does these steps, as its session knows it."""
    params = dict(s.do_params([["task", task_id, list(steps), members]], token), task={"ttl": 3000})
    answer = s.ask("tools/call", params)
    eq(answer["result"]["task"]["status"], "working", answer)
    return answer["result"]["task"]["taskId"]


def state(s, task):
    answer = s.ask("tasks/get", {"taskId": task})
    eq(answer["result"]["taskId"], task, answer)
    return answer["result"]["status"]


def listed(s):
    """The ids of all pages, and how many these were."""
    found, pages, cursor = [], 0, {}
    while cursor is not None:
        result = s.ask("tasks/list", cursor)["result"]
        found += [task["taskId"] for task in result["tasks"]]
        pages += 1
        cursor = {"cursor": result["nextCursor"]} if result.get("nextCursor") else None
    return found, pages


def refused(s, method, task):
    return s.ask(method, {"taskId": task})["error"]["code"]


def make_apart(t, s, count, *steps, server="two", **kw):
    """The same in a process of its own, while `count` others are busy."""
    before = sum(t.daemon.record(p).count(b'"busy"') for p in t.daemon.children(server))
    busy = [s.start_do(["sleep", 0.5], ["text", "busy"]) for _ in range(count)]
    wait_for(lambda: sum(t.daemon.record(p).count(b'"busy"') for p in t.daemon.children(server)) == before + count, 5, "they are busy")
    task = make(s, *steps, **kw)
    for call in busy:
        call.final()
    return task


def where(t, server, task_id):
    """The process that was asked to make it."""
    return next(p for p in t.daemon.children(server) if b'"task","%s"' % task_id.encode() in t.daemon.record(p))


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_from_its_call_to_its_result(t):
    """UTIL-TASK-01 UTIL-TASK-03: its id is not the server's; tasks/result waits, and is exactly what the server says, but for the id."""
    s = session(t)
    eq(s.result["result"]["capabilities"]["tasks"], CAPS["tasks"])
    eq(s.ask("tools/list")["result"]["tools"], TOOLS)
    task = make(s, ["sleep", 1.5], ["job", DONE])
    ok(task.startswith("g1.") and "t1" != task, "not the server's own", task)
    eq(state(s, task), "working")
    eq(s.ask("tasks/result", {"taskId": task})["result"], dict(DONE["result"], _meta={RELATED: {"taskId": task}}))
    eq(state(s, task), "completed")
    eq(listed(s), ([task], 1))
    asked = {m["params"].get("taskId") for p in t.daemon.children("main") for m in t.daemon.messages(p)
             if m.get("method", "").startswith("tasks/")}
    eq(asked, {"t1", None}, "what the server reads are its own ids")


def asking(rid, task_id="t1"):
    return ["ask", rid, "elicitation/create", dict(FORM, _meta={RELATED: {"taskId": task_id}})]


def answer(s, asked, task):
    """Of a person; its client says, too, which task it is about."""
    s.respond(asked["id"], dict(ACCEPT, _meta={RELATED: {"taskId": task}}))


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_asks_who_waits_for_it(t):
    """UTIL-TASK-03 UTIL-TASK-01 bridging.md §1.6 (4): in the stream of tasks/result, whoever made it, whatever else the process does."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    task = make(s, ["sleep", 1.5], asking("q"), ["job_asked"])
    e = other.start("tasks/result", {"taskId": task})
    busy = s.start_do(["sleep", 1.7], ["text", "x"])
    asked = e.next()
    eq((asked["method"], asked["params"]["_meta"]), ("elicitation/create", {RELATED: {"taskId": task}}))
    eq(busy.final()["result"]["content"][0]["text"], "x", "its end takes back nothing of the task's")
    eq(len(t.daemon.children("main")), 1)
    eq(state(s, task), "working")
    answer(other, asked, task)
    final = e.final()
    eq(final["result"]["_meta"], {RELATED: {"taskId": task}})
    told = json.loads(final["result"]["content"][0]["text"])
    eq(told[0]["result"], dict(ACCEPT, _meta={RELATED: {"taskId": "t1"}}), "the server's own id")


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_asks_who_made_it(t):
    """UTIL-TASK-03 CXL-09 bridging.md §1.6 (4): where nobody waits for its result, in the stream of its session; and takes it back."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    g, quiet = s.get(), other.get()
    task = make(s, asking("q"), ["send", "r", "elicitation/create", dict(FORM, _meta={RELATED: {"taskId": "t1"}})],
                ["sleep", 0.3], ["notify", "notifications/cancelled", {"requestId": "r"}], ["job_asked"])
    first = g.next()
    eq((first["method"], first["params"]["_meta"][RELATED]), ("elicitation/create", {"taskId": task}))
    answer(s, first, task)
    told = [g.next() for _ in range(3)]
    second = next(m for m in told if m["method"] == "elicitation/create")
    eq([m["method"] for m in told if m is not second], ["notifications/cancelled", "notifications/tasks/status"])
    eq(told[1]["params"]["requestId"], second["id"])
    eq((told[2]["params"]["taskId"], told[2]["params"]["status"]), (task, "completed"))
    eq(json.loads(s.ask("tasks/result", {"taskId": task})["result"]["content"][0]["text"])[0]["result"]["action"], "accept")
    quiet.nothing(0.2)


@case(own=True, servers=SERVERS, config=CONFIG)
def tasks_that_nobody_has_ask_nobody(t):
    """SEC-06 UTIL-TASK-02 bridging.md §1.6: a task that is not known, or whose session has gone, is not one of another's."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    task = make(s, ["sleep", 1.5], asking("q"), ["job_asked"])
    quiet = other.get()
    s.delete()
    told = json.loads(other.ask("tasks/result", {"taskId": make(other, asking("x", "never"), ["job_asked"], task_id="t2")})
                      ["result"]["content"][0]["text"])
    eq(told[0]["error"]["code"], -32602)
    wait_for(lambda: state(other, task) == "completed", 3, "its end")
    told = json.loads(other.ask("tasks/result", {"taskId": task})["result"]["content"][0]["text"])
    eq(told[0]["error"]["code"], -32602)
    eq([m["method"] for m in [quiet.next()]], ["notifications/tasks/status"], "of its own task")
    quiet.nothing(0.2)


@case(own=True, servers=SERVERS, config=CONFIG)
def progress_and_status_of_tasks(t):
    """UTIL-PROG-02 UTIL-TASK-03: of tasks of two processes with one name, each to its session, until it is terminal; log lines, too."""
    one, two = session(t, "two"), session(t, "two")
    streams = one.get(), two.get()
    logged = {"level": "info", "data": "x", "_meta": {RELATED: {"taskId": "t1"}}}
    steps = (["sleep", 0.5], ["notify", "notifications/message", logged], ["progress", 1], ["job", {"status": "working", "statusMessage": "half"}], ["progress", 2], ["progress", 2],
             ["job", DONE], ["progress", 3])
    tasks = [make(one, ["sleep", 1], *steps, token="mine"), make_apart(t, two, 1, *steps, token="mine")]
    ok(tasks[0] != tasks[1], "of two processes")
    for stream, task in zip(streams, tasks):
        eq(stream.next()["params"]["_meta"], {RELATED: {"taskId": task}})
        told = [stream.next() for _ in range(4)]
        eq([m["params"].get("progress", m["params"].get("status")) for m in told], [1, "working", 2, "completed"])
        eq({m["params"].get("progressToken", task) for m in told} - {task}, {"mine"})
        eq({m["params"].get("taskId", task) for m in told}, {task})
        stream.nothing(0.2)


@case(own=True, servers=SERVERS, config=CONFIG)
def sessions_of_one_principal(t):
    """UTIL-TASK-02 CXL-07: they have its tasks together; a session that ends does not end them; one is cancelled by its name alone."""
    s, other = session(t), session(t)
    params = dict(s.do_params([["task", "t1", []]]), task={})
    task = s.ask("tools/call", params, request_id="c")["result"]["task"]["taskId"]
    s.cancel("c")
    eq(state(other, task), "working")
    eq(listed(other)[0], [task])
    s.delete()
    eq(other.ask("tasks/cancel", {"taskId": task})["result"]["status"], "cancelled")
    eq(refused(other, "tasks/cancel", task), -32602, "the server's word")
    pid = t.daemon.children("main")[0]
    eq([m for m in t.daemon.messages(pid) if m.get("method") == "notifications/cancelled"], [])


@case(own=True, servers=SERVERS, config=CONFIG)
def tasks_of_other_principals(t):
    """UTIL-TASK-02 SEC-06 AUTH-SES-02: they are not there, and nobody is asked; as are ids that are made up, changed, or of another server."""
    s, other = session(t), session(t, token=BOB)
    task, theirs = make(s), make(other, task_id="t1")
    elsewhere = make(session(t, "two"), task_id="t1")
    ok(len({task, theirs, elsewhere}) == 3, "one name for each")
    eq((listed(s)[0], listed(other)[0]), ([task], [theirs]))
    pids = t.daemon.children("main")
    count = lambda: sum(m.get("method", "").startswith("tasks/") for p in pids for m in t.daemon.messages(p))
    before = count()
    body = task.partition(".")[2]
    for wrong in (theirs, elsewhere, "t1", "", "x", "g1.", task[:-2], task[:-2] + "AA", task + "A", "g1." + body[::-1], "0" * 4000, 7, None, [task]):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            eq(refused(s, method, wrong), -32602, wrong)
    eq(s.ask("tasks/get")["error"]["code"], -32602)
    eq(s.ask("tasks/update", {"taskId": task})["error"]["code"], -32601)
    for cursor in ("x", "", 7, "AQ", None):
        eq(s.ask("tasks/list", {"cursor": cursor})["error"]["code"], -32602, cursor)
    eq((count(), state(s, task)), (before, "working"))


@case(own=True, servers=SERVERS, config=CONFIG)
def tasks_of_several_processes(t):
    """UTIL-TASK-01 UTIL-TASK-02 bridging.md §1.4: each is asked for where it is; the list goes over all of them, page by page."""
    s, tasks = session(t, "two"), []
    eq(listed(s), ([], 1))
    for number in range(3):
        tasks += [make_apart(t, s, number, task_id="%s%d" % (word, number)) for word in "nm"]
    eq(len({where(t, "two", "n%d" % number) for number in range(3)}), 3)
    found, pages = listed(s)
    eq((sorted(found), len(found)), (sorted(tasks), 6))
    ok(pages >= 3, "two a page", pages)
    eq({state(s, task) for task in tasks}, {"working"})
    waiting = [s.start("tasks/result", {"taskId": task}) for task in tasks]
    wait_for(lambda: sum(m.get("method") == "tasks/result" for p in t.daemon.children("two") for m in t.daemon.messages(p)) == 6, 3, "all wait")
    eq(s.echo("beside"), "beside")
    for task in tasks:
        eq(s.ask("tasks/cancel", {"taskId": task})["result"]["status"], "cancelled")
    for exchange, task in zip(waiting, tasks):
        eq(exchange.final()["result"]["_meta"], {RELATED: {"taskId": task}})


@case(own=True, servers=SERVERS, config=CONFIG)
def a_process_that_ends(t):
    """UTIL-TASK-01 UTIL-TASK-02 bridging.md §4: who waits is told; its tasks are not there any more, those of others are; none is started for them."""
    s = session(t, "two", caps=ASKS)
    lost, kept = make(s, ["sleep", 1.5], asking("q", "lost"), task_id="lost"), make_apart(t, s, 1, task_id="kept")
    e = s.start("tasks/result", {"taskId": lost})
    pid, other = where(t, "two", "lost"), where(t, "two", "kept")
    ok(pid != other, "two processes")
    wait_for(lambda: any(m.get("method") == "tasks/result" for m in t.daemon.messages(pid)), 3, "it waits")
    asked = e.next()
    os.kill(pid, signal.SIGKILL)
    withdrawn, final = e.next(), e.final()
    eq((withdrawn["method"], withdrawn["params"]["requestId"]), ("notifications/cancelled", asked["id"]))
    eq((final["error"]["code"], final["error"]["data"]["reason"]), (-32603, "child_exited"))
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        eq(refused(s, method, lost), -32602)
    eq((state(s, kept), listed(s)[0]), ("working", [kept]))
    os.kill(other, signal.SIGKILL)
    wait_for(lambda: refused(s, "tasks/get", kept) == -32602, 3, "the end of its process")
    eq(listed(s), ([], 1))


@case(own=True, servers={"main": SERVERS["main"]}, config={"defaults": {"era": "legacy"}})
def tasks_of_anonymous_callers(t):
    """UTIL-TASK-02: who cannot be told apart gets no list of tasks; by its id, which nobody guesses, a task is there."""
    s, other = t.session("main", mcp.D), t.session("main", mcp.D)
    eq(s.result["result"]["capabilities"]["tasks"], {"cancel": {}, "requests": {"tools": {"call": {}}}})
    task = make(s)
    for one in (s, other):
        eq(one.ask("tasks/list")["error"]["code"], -32601)
        eq(state(one, task), "working")
        eq(refused(one, "tasks/get", "t1"), -32602)


@case(own=True, servers={"main": SERVERS["main"]}, config=CONFIG)
def tasks_end_with_the_gateway(t):
    """UTIL-TASK-02 bridging.md §4: another gateway process has none of them: -32602, also when its processes have the same numbers."""
    task = make(session(t))
    before = t.daemon.gateway
    t.expect_error_log("gateway_exit")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: t.daemon.find_gateway() not in (None, before), 5, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    s = session(t)
    eq(refused(s, "tasks/get", task), -32602)
    fresh = make(s)
    ok(fresh != task, "its number may be another's now")
    eq((refused(s, "tasks/get", task), state(s, fresh)), (-32602, "working"))


@case(own=True, servers=SERVERS, config=CONFIG)
def a_process_stays_for_its_tasks(t):
    """bridging.md §2.5 UTIL-TASK-01: until the result has been asked for; not for one that is cancelled, or lives briefly."""
    s = session(t, "brief")
    task = make(s, ["sleep", 1], ["job", DONE])
    pid = t.daemon.children("brief")[0]
    wait_for(lambda: "job" in [word for _, word in t.daemon.life(pid)], 4, "the end of the task")
    wait_for(lambda: state(s, task) == "completed", 3, "its last state")
    eq(s.ask("tasks/result", {"taskId": task})["result"]["content"], DONE["result"]["content"])
    wait_for(lambda: not t.daemon.children("brief"), 4, "the end of the process")
    eq(refused(s, "tasks/result", task), -32602)
    s.ask("tasks/cancel", {"taskId": make(s, members={"ttl": None})})
    wait_for(lambda: not t.daemon.children("brief"), 4, "the end of the next one")
    make(s, members={"ttl": 700})
    wait_for(lambda: not t.daemon.children("brief"), 4, "the end of the third")


@case(own=True, servers={"old": {"script": SCRIPT, "isolation": "principal", "pool": {"max_age": "300ms"}}}, config=CONFIG)
def a_process_that_retires(t):
    """bridging.md §2.5: it gets no more calls, and finishes its tasks; they are asked about there."""
    s = session(t, "old")
    task = make(s, ["sleep", 1], ["job", DONE])
    pid = t.daemon.children("old")[0]
    wait_for(lambda: s.pid() != pid, 3, "another process")
    ok(pid in t.daemon.children("old"), "it works on")
    eq(state(s, task), "working")
    eq(s.ask("tasks/result", {"taskId": task})["result"]["content"], DONE["result"]["content"])
    wait_for(lambda: pid not in t.daemon.children("old"), 4, "its end")


@case(own=True, servers=SERVERS, config=CONFIG)
def a_call_is_given_up_beside_a_task(t):
    """CXL-07 bridging.md §2.3.3: while its process has yet to show that it is over, the task is asked about all the same."""
    s = session(t, caps=ASKS)
    task = make(s)
    waiting = s.start("tasks/result", {"taskId": task})
    e = s.start_do(["sleep", 1], ["text", "x"])
    pid = t.daemon.children("main")[0]
    wait_for(lambda: len([m for m in t.daemon.messages(pid) if m.get("method") in ("tools/call", "tasks/result")]) == 3, 3, "both are there")
    s.cancel(e.id)
    eq(state(s, task), "working")
    eq(s.echo("next"), "next")
    eq(s.ask("tasks/cancel", {"taskId": task})["result"]["status"], "cancelled")
    eq(waiting.final()["result"]["_meta"], {RELATED: {"taskId": task}})


def raw(result):
    """The step of a result as it is written here."""
    return ["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % result]


def task_text(task_id='"t1"', status='"working"', more=""):
    return '{"taskId":%s,"status":%s,"createdAt":"x","lastUpdatedAt":"x","ttl":1000%s}' % (task_id, status, more)


ODD = {
    "get": {"tasks/get": [raw(task_text('"t2"'))]}, "none": {"tasks/get": [raw('{"status":"working"}')]},
    "status": {"tasks/get": [raw(task_text(status='"later"'))]}, "cancel": {"tasks/cancel": [raw(task_text("7"))]},
    "list": {"tasks/list": [raw('{"tasks":[%s,{}]}' % task_text())]}, "text": {"tasks/list": [raw('{"tasks":"x"}')]},
    "many": {"tasks/list": [raw('{"tasks":[%s]}' % ",".join([task_text()] * 1001))]},
}
ODD_SERVERS = {name: {"script": dict(SCRIPT, on=on), "isolation": "principal"} for name, on in ODD.items()}
ODD_SERVERS["main"] = SERVERS["main"]
ODD_SERVERS["null"] = {"script": dict(SCRIPT, on={"tasks/list": [raw('{"nextCursor":null,"_meta":{"a":1},"tasks":[%s]}' % task_text())]}),
                       "isolation": "principal", "pool": {"max": 4, "requests_per_process": 1}}
ODD_SERVERS["mute"] = {"script": dict(SCRIPT, on={"tasks/list": []}), "isolation": "principal", "request_timeout": "500ms"}


@case(own=True, servers=ODD_SERVERS, config=CONFIG, deadline=25)
def servers_that_say_odd_things_of_tasks(t):
    """UTIL-TASK-02 UTIL-TASK-03 SEC-42: ids that are none, another task's state, lists that are none or too long: no answer of a server."""
    s = session(t)
    for bad in ("7", "null", '""', '"%s"' % ("x" * 1023)):
        eq(s.do(raw('{"task":%s}' % task_text(bad)))["error"]["data"]["reason"], "child_protocol_error", bad[:20])
    eq(s.do(raw('{"task":%s}' % task_text(status="1")))["error"]["data"]["reason"], "child_protocol_error")
    for fine in ('{"task":{"a":1},"content":[]}', '{"task":7,"content":[]}', '{"content":[],"_meta":{"%s":{"taskId":7}}}' % RELATED):
        eq(s.do(raw(fine))["result"], json.loads(fine), "no task")
    longest = s.do(raw('{"_meta":{"%s":{"taskId":"t1"}},"task":%s}' % (RELATED, task_text('"%s"' % ("x" * 1022)))))["result"]
    ok(longest["task"]["taskId"].startswith("g1.") and longest["_meta"][RELATED]["taskId"].startswith("g1."), "both are sealed")
    for name, on in ODD.items():
        s = session(t, name)
        method = next(iter(on))
        answer = s.ask(method, {} if method == "tasks/list" else {"taskId": make(s)}) if method != "tasks/list" or make(s) else None
        eq(answer["error"]["data"]["reason"], "child_protocol_error", name)


@case(own=True, servers=ODD_SERVERS, config=CONFIG)
def lists_that_do_not_come_or_end(t):
    """UTIL-TASK-02 REL-25: a process that does not answer has no list in time, and ends; a cursor that is null is none."""
    s = session(t, "mute")
    make(s)
    answer = s.ask("tasks/list")
    eq((answer["error"]["code"], answer["error"]["data"]["reason"]), (-32603, "timeout"))
    s = session(t, "null")
    make(s), make_apart(t, s, 1, server="null")
    t.expect_invalid("nextCursor: null", "its server says so")
    found, pages = listed(s)
    eq((len(set(found)), pages), (2, 2))


@case(own=True, servers=SERVERS, config=CONFIG)
def tasks_are_bounded(t):
    """UTIL-PROG-02 DEF-11 UTIL-TASK-01: of very many, the newest of a session tell; all of them are there."""
    s = session(t)
    g = s.get()
    tasks = [make(s, task_id="t%d" % number, token="p%d" % number) for number in range(65)]
    eq((state(s, tasks[0]), state(s, tasks[64])), ("working", "working"))
    found, pages = listed(s)
    eq((sorted(found), pages), (sorted(tasks), 33))
    told = (("t0", "working"), ("t1", "working"), ("none", "working"), (7, "working"), ("t1", "x"), ("t64", "failed"), ("t64", "failed"))
    s.do_text(["notify", "notifications/tasks/status"], *[["notify", "notifications/tasks/status", {
        "taskId": task_id, "status": status, "createdAt": "x", "lastUpdatedAt": "x", "ttl": 1000}] for task_id, status in told], ["text", "x"])
    eq([g.next()["params"]["taskId"] for _ in range(2)], [tasks[1], tasks[64]])
    g.nothing(0.2)


@case(own=True, servers={"main": SERVERS["main"]}, config={"defaults": {"era": "legacy"}})
def tasks_over_http_sse(t):
    """UTIL-TASK-01 UTIL-TASK-03 UTIL-PROG-02: all of it on the one stream of HTTP+SSE, where a client of it speaks that revision."""
    s = t.sse("main", version=mcp.D, caps=ASKS)
    steps = ["task", "t1", [["progress", 1], asking("q"), ["job_asked"]]]
    params = {"name": "do", "arguments": {"steps": [steps]}, "task": {}, "_meta": {"progressToken": "p"}}
    task = s.ask("tools/call", params)["result"]["task"]["taskId"]
    request_id = s.start("tasks/result", {"taskId": task})
    while not any(m.get("method") == "elicitation/create" for m in s.seen):
        s.seen.append(s.next())
    eq([m["params"] for m in s.seen if m["method"] == "notifications/progress"], [{"progressToken": "p", "progress": 1}])
    asked = next(m for m in s.seen if m["method"] == "elicitation/create")
    eq(asked["params"]["_meta"], {RELATED: {"taskId": task}})
    s.respond(asked["id"], dict(ACCEPT, _meta={RELATED: {"taskId": task}}))
    final = s.wait_answer(request_id)
    eq(final["result"]["_meta"], {RELATED: {"taskId": task}})
    eq(json.loads(final["result"]["content"][0]["text"])[0]["result"]["_meta"], {RELATED: {"taskId": "t1"}})
    eq(s.ask("tasks/get", {"taskId": task})["result"]["status"], "completed")
    eq(s.ask("tasks/get", {"taskId": "t1"})["error"]["code"], -32602)


COUNTED = {"pooled": {"script": SCRIPT, "isolation": "principal", "concurrency": 1}, "own": {"script": SCRIPT, "concurrency": 1},
           "tool": {"script": SCRIPT, "isolation": "principal", "tools": {"limits": [{"tools": ["do"], "concurrency": 1}]}}}


def is_refused(s):
    """Whether a call is, because its caller has too many in flight."""
    exchange = s.start("tools/call", s.do_params([["text", "x"]]))
    exchange.final()
    ok(exchange.status in (200, 429), "status", exchange.status)
    return exchange.status == 429


@case(own=True, servers=COUNTED, config=CONFIG, deadline=30)
def tasks_count_as_calls_in_flight(t):
    """product §4 concurrency UTIL-TASK-01: a call that became a task counts until the task ends, whatever its ttl and session; who asks about it does not."""
    for server in COUNTED:
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
            ok(server == "own" or is_refused(session(t, server)), "the server works on", server)
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_refused(session(t, server)), 5, "the end of the process")
