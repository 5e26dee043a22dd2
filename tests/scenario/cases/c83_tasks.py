# SPDX-License-Identifier: Apache-2.0
"""Tasks: those of 2026-07-28 (SEP-2663) at servers of that revision, and nobody else's. bridging.md §2.5."""
import json
import os
import signal

import mcp
import wire
from c80_stateless import META, ask, begin, fields, listen, message, messages_of
from c81_parked import ACCEPT, ALICE, BOB, FORM, TOKENS
from c106_sessions_kept import kill_gateway, lines_saved
from c112_upgrade import upgrade
from harness import case, eq, ok, wait_for

EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS = {"elicitation": {}, "extensions": {EXTENSION: {}}}
MODERN = {"era": "modern", "caps": {"tools": {"listChanged": True}, "extensions": {EXTENSION: {}}}}
DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
SERVERS = {
    "main": {"script": MODERN},
    "all": {"script": MODERN, "isolation": "shared"},
    "two": {"script": MODERN, "pool": {"max": 4, "requests_per_process": 1}},
    "brief": {"script": MODERN, "pool": {"idle_timeout": "300ms"}},
    "plain": {"script": {"era": "modern"}},
}
CONFIG = {"defaults": {"era": "modern", "pool": {"idle_timeout": "1500ms"}}}


def call(t, server, *steps, caps=KNOWS, **kw):
    status, found = ask(t, server, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}}, caps=caps, **kw)
    return status, found[-1]


def made(t, server, *steps, task_id="t1", members=None, **kw):
    """The id of a task that does these steps, as its client knows it."""
    status, answer = call(t, server, ["task", task_id, list(steps), members], **kw)
    eq((status, answer["result"]["resultType"], answer["result"]["status"]), (200, "task", "working"), answer)
    return answer["result"]["taskId"]


def of(t, server, method, task_id, caps=KNOWS, **more):
    status, found = ask(t, server, method, dict({"taskId": task_id}, **more), caps=caps)
    return status, found[-1]


def state(t, server, task_id):
    status, answer = of(t, server, "tasks/get", task_id)
    eq((status, answer["result"]["resultType"], answer["result"]["taskId"]), (200, "complete", task_id), answer)
    return answer["result"]


def refused(t, server, method, task_id, **kw):
    status, answer = of(t, server, method, task_id, **kw)
    return status, answer["error"]["code"]


@case
def a_call_becomes_a_task(t):
    """MOD-TASK-01 MOD-TASK-02 MOD-RES-02: it is asked about by an id that is not the server's, until it has its result."""
    for server in ("main", "all"):
        task = made(t, server, ["sleep", 1.5], ["job", DONE])
        ok(task.startswith("g2.") and task.count(".") == 2, "not the server's own", task)
        eq(state(t, server, task)["status"], "working")
        done = wait_for(lambda: (s := state(t, server, task))["status"] == "completed" and s, 3, "its end")
        eq((done["result"], done["ttlMs"], done["createdAt"]), (DONE["result"], 3000, "2026-01-01T00:00:00Z"))
        eq(done["_meta"][META + "serverInfo"]["name"], "scripted")
        asked = [m["params"]["taskId"] for p in t.daemon.children(server) for m in t.daemon.messages(p)
                 if m.get("method") == "tasks/get"]
        eq(set(asked), {"t1"})


@case
def tasks_ask_and_are_told(t):
    """MOD-TASK-01: what a task asks is in its state, tasks/update answers it; what it did not ask is the server's to ignore."""
    asks = {"status": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": FORM}}}
    task = made(t, "main", ["job", asks], ["updated"], task_id="asks")
    eq(state(t, "main", task)["inputRequests"], asks["inputRequests"])
    status, answer = of(t, "main", "tasks/update", task, inputResponses={"q": ACCEPT})
    eq((status, answer["result"]["resultType"], "taskId" in answer["result"]), (200, "complete", False))
    done = wait_for(lambda: (s := state(t, "main", task))["status"] == "completed" and s, 3, "its end")
    eq(json.loads(done["result"]["content"][0]["text"]), {"q": ACCEPT})


@case
def tasks_are_cancelled(t):
    """MOD-TASK-01: tasks/cancel is the server's to answer."""
    task = made(t, "main", task_id="cancelled")
    status, answer = of(t, "main", "tasks/cancel", task)
    eq((status, answer["result"]["resultType"]), (200, "complete"))
    eq(state(t, "main", task)["status"], "cancelled")


@case
def who_does_not_know_tasks(t):
    """MOD-TASK-01 FRONT-ERA-06 MOD-HDR-01: -32021 without the declaration, -32601 for what is not a method, or not of this server."""
    task = made(t, "main", task_id="known")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        status, answer = of(t, "main", method, task, caps={})
        eq((status, answer["error"]["code"]), (400, -32021))
        eq(answer["error"]["data"], {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})
    status, found = ask(t, "main", "subscriptions/listen", {"notifications": {"taskIds": [task]}}, caps={})
    eq((status, found[0]["error"]["code"]), (400, -32021))
    for method in ("tasks/list", "tasks/result"):
        eq(refused(t, "main", method, task), (404, -32601), method)
    call(t, "plain", ["text", "x"])
    eq(refused(t, "plain", "tasks/get", task), (404, -32601))
    body = message("tasks/get", {"taskId": task}, caps=KNOWS)
    for name in ("t1", task[:-1] + "x", task.upper()):
        head = [f for f in fields(body) if f[0] != "Mcp-Name"] + [("Mcp-Name", name)]
        found = messages_of(begin(t, "main", body, head).response())
        eq(found[0]["error"]["code"], -32020, name)


@case
def tasks_that_are_not_there(t):
    """MOD-TASK-01 MOD-TASK-02 SEC-06: made up, changed, of another server, of a process that has gone: -32602, and nobody is asked."""
    task = made(t, "main", task_id="there")
    pid = t.daemon.children("main")[0]
    before = sum(m.get("method") == "tasks/get" for m in t.daemon.messages(pid))
    body, _, rest = task.partition(".")
    for wrong in ("there", "x", "g2.", task[:-2], task[:-2] + "AA", task + "A", "g2." + rest[::-1], "0" * 4000):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            eq(refused(t, "main", method, wrong), (400, -32602), wrong[:40])
    for wrong in (7, None, [task], {"a": task}):
        message_of = message("tasks/get", {"taskId": wrong}, caps=KNOWS)
        head = [f for f in fields(message_of) if f[0] != "Mcp-Name"] + [("Mcp-Name", task)]
        eq(messages_of(begin(t, "main", message_of, head).response())[0]["error"]["code"], -32020, wrong)
    made(t, "all", task_id="there")
    eq(refused(t, "all", "tasks/get", task), (400, -32602), "of another server")
    eq(sum(m.get("method") == "tasks/get" for m in t.daemon.messages(pid)), before)
    eq(state(t, "main", task)["status"], "working")
    gone = made(t, "two", ["exit", 3], task_id="gone")
    wait_for(lambda: not t.daemon.children("two"), 3, "the end of its process")
    eq(refused(t, "two", "tasks/get", gone), (400, -32602))
    eq(t.daemon.children("two"), [], "a task starts no process")


@case
def the_process_of_a_task(t):
    """bridging.md §1.1 (9), §1.4: a task is asked about where it is, whatever the others have to do and whatever the client declares now."""
    tasks = {}
    for number in range(3):
        busy = [begin(t, "two", message("tools/call", {"name": "do", "arguments": {"steps": [["sleep", 0.3], ["text", "x"]]}},
                                        caps=KNOWS)) for _ in range(number)]
        tasks[number] = made(t, "two", task_id="n%d" % number)
        for conn in busy:
            messages_of(conn.response())
    for number, task in tasks.items():
        for caps in (KNOWS, dict(KNOWS, sampling={}), {"extensions": {EXTENSION: {}}}):
            status, answer = of(t, "two", "tasks/get", task, caps=caps)
            eq((status, answer["result"]["status"], answer["result"]["taskId"]), (200, "working", task))
    ok(len({p for p in t.daemon.children("two") if b'"task","n' in t.daemon.record(p)}) > 1, "one process had all")


@case
def a_process_with_a_task_is_not_idle(t):
    """bridging.md §2.5: it stays for its task, goes when that is over, and a task that was never told of keeps nothing."""
    task = made(t, "brief", ["sleep", 1.5], ["job", DONE])
    pid = t.daemon.children("brief")[0]
    wait_for(lambda: "job" in [word for _, word in t.daemon.life(pid)], 4, "the end of the task")
    eq(state(t, "brief", task)["status"], "completed")
    wait_for(lambda: not t.daemon.children("brief"), 3, "the end of the process")
    eq(refused(t, "brief", "tasks/get", task), (400, -32602))


@case
def a_task_that_lives_briefly(t):
    """bridging.md §2.5: what its server says of its time is the longest that it keeps a process without a word."""
    made(t, "brief", members={"ttlMs": 700})
    wait_for(lambda: not t.daemon.children("brief"), 4, "the end of the process")


def hear(t, server, task_ids, caps=KNOWS, request_id="L"):
    return listen(t, server, {"taskIds": task_ids}, request_id, caps=caps)


@case
def tasks_are_listened_to(t):
    """MOD-TASK-01 MOD-TASK-02 MOD-SUB-02: by the ids of the client and of its listen; what is not there is left out."""
    for server in ("main", "all"):
        task = made(t, server, ["sleep", 1.5], ["job", {"status": "working", "statusMessage": "half"}], ["sleep", 0.3],
                    ["job", DONE], task_id="heard")
        quiet = made(t, server, task_id="quiet")
        conn, read, granted = hear(t, server, [task, "x", task[:-2] + "AA", quiet])
        eq(granted, {"taskIds": [task, quiet]})
        first, second = read(), read()
        eq([m["method"] for m in (first, second)], ["notifications/tasks"] * 2)
        eq((first["params"]["taskId"], first["params"]["statusMessage"]), (task, "half"))
        eq((second["params"]["taskId"], second["params"]["status"], second["params"]["result"]), (task, "completed", DONE["result"]))
        eq(second["params"]["_meta"], {META + "subscriptionId": "L"})
        conn.close()
        pid = t.daemon.children(server)[0]
        wait_for(lambda: any(m.get("method") == "notifications/cancelled" for m in t.daemon.messages(pid)), 3, "its end there")


@case
def many_ids_that_are_none(t):
    """MOD-TASK-02 bridging.md §2.5: however many there are in one listen, they are one line of the log."""
    before = len(t.daemon.log("task_refused"))
    conn, _, granted = hear(t, "main", ["x%d" % number for number in range(64)])
    conn.close()
    wait_for(lambda: len(t.daemon.log("task_refused")) > before, 3, "the line")
    made(t, "main", task_id="later")
    lines = t.daemon.log("task_refused")[before:]
    eq((granted, len(lines)), ({}, 1))
    ok("ids=64" in lines[0], "the count", lines)


@case
def listening_ends_with_the_process(t):
    """MOD-SUB-04 bridging.md §2.5: who listens to a task that nobody works on any more is told so by the end of the stream."""
    task = made(t, "two", task_id="lost")
    conn, read, granted = hear(t, "two", [task])
    eq(granted, {"taskIds": [task]})
    pid = next(p for p in t.daemon.children("two") if b'"lost"' in t.daemon.record(p))
    os.kill(pid, 9)
    eq(read()["result"]["resultType"], "complete")
    eq(read(), None)
    conn.close()
    conn, read, granted = hear(t, "two", [task])
    eq(granted, {})
    conn.close()


def raw(result):
    """The step of a result as it is written here."""
    return ["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % result]


def task_text(task_id='"h"', status='"working"', more=""):
    return ('{"resultType":"task","taskId":%s,"status":%s,"createdAt":"x","lastUpdatedAt":"x","ttlMs":1000%s}'
            % (task_id, status, more))


@case
def servers_that_make_bad_tasks(t):
    """MOD-TASK-01 MOD-RES-02: ids that are none, states that are none, tasks for who does not know them or asked for something else."""
    bad = (task_text("7"), task_text("null"), task_text('""'), task_text('["h"]'), task_text('"%s"' % ("x" * 1023)),
           task_text('"%s"' % ("x" * (1 << 20))), task_text(status='"later"'), task_text(status="1"), task_text(status="null"),
           '{"resultType":"task"}', '{"resultType":"task","status":"working"}',
           task_text(more=',"inputRequests":{"r":{"method":"sampling/createMessage","params":{}}}'),
           task_text(more=',"inputRequests":[]'), task_text(more=',"inputRequests":{"r":{"method":"tools/call"}}'))
    for result in bad:
        status, answer = call(t, "main", raw(result))
        eq((status, answer["error"]["code"], answer["error"]["data"]["reason"]), (200, -32603, "child_protocol_error"), result[:80])
    for caps in ({}, {"extensions": {}}, {"extensions": {"x/tasks": {}}}):
        status, answer = call(t, "main", raw(task_text()), caps=caps)
        eq((status, answer["error"]["data"]["reason"]), (200, "child_protocol_error"), caps)
    status, answer = call(t, "plain", raw(task_text()))
    eq(answer["error"]["data"]["reason"], "child_protocol_error", "it does not offer tasks")
    status, answer = call(t, "main", raw(task_text('"%s"' % ("x" * 1022))))
    ok(len(answer["result"]["taskId"]) < 2048, "the longest that is one")
    eq(refused(t, "main", "tasks/get", answer["result"]["taskId"]), (200, -32602), "the server's word")


@case(servers={"odd": {"script": dict(MODERN, caps=dict(MODERN["caps"], prompts={}), on={"prompts/get": [raw(task_text())]})}}, own=True, config=CONFIG)
def only_tools_become_tasks(t):
    """MOD-TASK-01: tasks are for tools/call."""
    status, found = ask(t, "odd", "prompts/get", {"name": "p"}, caps=KNOWS)
    eq(found[-1]["error"]["data"]["reason"], "child_protocol_error")


def state_text(members):
    return '{"resultType":"complete","createdAt":"x","lastUpdatedAt":"x","ttlMs":1000,%s}' % members


STATES = {
    "another": '"taskId":"t2","status":"working"', "none": '"status":"working"', "number": '"taskId":1,"status":"working"',
    "state": '"taskId":"t1","status":"x"', "asking": '"taskId":"t1","status":"input_required","inputRequests":{"r":{"method":"roots/list"}}',
}
SERVERS.update({"bad_" + name: {"script": dict(MODERN, on={"tasks/get": [raw(state_text(text))]})} for name, text in STATES.items()})
SERVERS["escaped"] = {"script": dict(MODERN, on={"tasks/get": [raw(
    '{"resultType":"task","taskId":"\\u00741","t\\u0061skId":"t1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":1000,'
    '"requestState":"s","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}')]})}


@case
def servers_that_say_odd_things_of_tasks(t):
    """MOD-TASK-01 MOD-TASK-02 MOD-MRTR-02: another task's state is no answer; the server's id comes out in no spelling."""
    for name in STATES:
        status, answer = of(t, "bad_" + name, "tasks/get", made(t, "bad_" + name), caps={"extensions": {EXTENSION: {}}})
        eq((status, answer["error"]["data"]["reason"]), (200, "child_protocol_error"), name)
    task = made(t, "escaped")
    body = message("tasks/get", {"taskId": task}, caps=KNOWS)
    text = begin(t, "escaped", body).response().read()
    eq(json.loads(text)["result"]["taskId"], task)
    eq([word for word in (b'"t1"', b"0741", b"skId\\", b"requestState", b"related-task") if word in text], [], text)


@case
def tasks_of_one_name(t):
    """MOD-TASK-02: a server that gives two tasks one id has one task, and so has the client."""
    one, two, other = (made(t, "main", task_id=task_id) for task_id in ("same", "same", "other"))
    eq((one == two, one == other), (True, False))
    eq([state(t, "main", task)["status"] for task in (one, other)], ["working"] * 2)


@case
def very_many_tasks(t):
    """MOD-TASK-02 bridging.md §2.5: more than are kept in mind: all of them are good, as long as their process is there."""
    tasks = [made(t, "main", task_id="many%d" % number) for number in range(300)]
    eq({state(t, "main", task)["status"] for task in (tasks[0], tasks[-1])}, {"working"})


ACKNOWLEDGED = ('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":'
                '["t2","\\u0074\\u0031","t1",7]},"_meta":{"io.modelcontextprotocol/subscriptionId":@ID@}}}')


@case(servers={"mute": {"script": dict(MODERN, on={"subscriptions/listen": []})},
               "deaf": {"script": dict(MODERN, on={"subscriptions/listen": [["error", -32601, "no"]]})},
               "liar": {"script": dict(MODERN, on={"subscriptions/listen": [["line", ACKNOWLEDGED]]})}},
      own=True, config=CONFIG, deadline=25)
def servers_that_do_not_tell_of_tasks(t):
    """MOD-TASK-01 MOD-SUB-06: what is not agreed to is left out, at once, or after ten seconds; what was not asked for is left out, too."""
    for server in ("deaf", "liar", "mute"):
        task = made(t, server, members={"ttlMs": 60000})
        body = message("subscriptions/listen", {"notifications": {"taskIds": [task]}}, caps=KNOWS)
        conn = begin(t, server, body, conn=t.conn(timeout=15))
        first = json.loads(wire.EventReader(conn.response()).next(15).data)
        eq(first["params"]["notifications"], {"taskIds": [task]} if server == "liar" else {}, server)
        conn.close()


@case(own=True, config={"auth": {"mode": "token", "tokens": TOKENS}, "defaults": {"era": "modern", "pool": {"idle_timeout": "1500ms"}}},
      servers={"main": SERVERS["main"], "all": SERVERS["all"]})
def tasks_of_others(t):
    """MOD-TASK-02 SEC-06 AUTH-SES-02: another principal's task is not there, be the process shared or not."""
    def by(token, server, method, params):
        body = message(method, params, caps=KNOWS)
        return messages_of(begin(t, server, body, fields(body) + mcp.bearer(token)).response())
    for server in ("main", "all"):
        steps = {"name": "do", "arguments": {"steps": [["task", "t1"]]}}
        task = by(ALICE, server, "tools/call", steps)[-1]["result"]["taskId"]
        by(BOB, server, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            eq(by(BOB, server, method, {"taskId": task})[-1]["error"]["code"], -32602, method)
        eq(by(ALICE, server, "tasks/get", {"taskId": task})[-1]["result"]["status"], "working")
        body = message("subscriptions/listen", {"notifications": {"taskIds": [task]}}, caps=KNOWS)
        conn = begin(t, server, body, fields(body) + mcp.bearer(BOB))
        first = json.loads(wire.EventReader(conn.response()).next(mcp.TIMEOUT).data)
        eq(first["params"]["notifications"], {})
        conn.close()
        pids = t.daemon.children(server)
        eq(sum(m.get("method") == "tasks/get" for p in pids for m in t.daemon.messages(p)), 1, "only its owner is asked for")


@case(daemon=False, deadline=60)
def tasks_go_on_with_their_process(t):
    """MOD-TASK-02 bridging.md §4.2: after the death of the gateway and after an upgrade; those of a process that has gone, or of another daemon, do not."""
    both, config = {server: {"script": MODERN, "isolation": server} for server in ("principal", "shared")}, {"defaults": {"era": "modern"}}
    t.start(both, config)
    gone, tasks = made(t, "shared", task_id="x"), {}
    wait_for(lambda: t.daemon.children("shared"), 5, "its process")
    os.kill(t.daemon.children("shared")[0], signal.SIGKILL)
    wait_for(lambda: not t.daemon.children("shared"), 5, "it has gone")
    for server in both:
        tasks[server] = made(t, server, ["sleep", 0.2], ["job", DONE])
    processes = [t.daemon.children(server) for server in both]
    wait_for(lambda: len(lines_saved(t.daemon.dir)) == 2, 10, "their pools are noted")
    for disturb in (kill_gateway, upgrade):
        disturb(t)
        for server in both:
            wait_for(lambda: state(t, server, tasks[server])["status"] == "completed", 5, "its result")
            eq(state(t, server, tasks[server])["result"]["content"][0]["text"], "done")
            ok(made(t, server, task_id="t2") not in tasks.values(), "another one")
        eq(refused(t, "shared", "tasks/get", gone), (400, -32602))
        eq([t.daemon.children(server) for server in both], processes)
    other = t.start(both, config)
    body = message("tasks/get", {"taskId": tasks["shared"]}, caps=KNOWS)
    response = begin(t, "shared", body, conn=t.conn(address=other.address)).response()
    eq((response.status, messages_of(response)[0]["error"]["code"]), (400, -32602), "of another daemon, as after its restart")


@case(daemon=False, deadline=60)
def tasks_of_several_processes_go_on(t):
    """bridging.md §4.2: whoever comes first to the next gateway, and whatever he can be asked, all of a pool's processes are taken."""
    t.start({"two": {"script": MODERN, "isolation": "principal", "pool": {"max": 4, "requests_per_process": 1}}})
    tasks = []
    for number in range(3):
        busy = [begin(t, "two", message("tools/call", {"name": "do", "arguments": {"steps": [["sleep", 0.3], ["text", "x"]]}},
                                        caps=KNOWS)) for _ in range(number)]
        tasks.append(made(t, "two", task_id="n%d" % number))
        for conn in busy:
            messages_of(conn.response())
    processes = sorted(t.daemon.children("two"))
    ok(len(processes) > 1, "several", processes)
    wait_for(lambda: len(lines_saved(t.daemon.dir)) == 1, 10, "their pool is noted")
    for caps in ({"elicitation": {}}, {"sampling": {}}):
        kill_gateway(t)
        t.session("two", caps=caps)
        for task in tasks:
            wait_for(lambda: "result" in of(t, "two", "tasks/get", task)[1], 5, "it is there, or the gateway is about to take its process")
        ok(set(processes) <= set(t.daemon.children("two")), "the same ones")


@case(own=True, servers={"all": SERVERS["all"]}, config=CONFIG)
def ids_that_servers_read_otherwise(t):
    """MOD-TASK-02 SEC-41: a server that takes names in any letter case finds no other id, where all share it and the other task may be anybody's."""
    task = made(t, "all")
    made(t, "all", task_id="t9")
    for name in ("TaskId", "taskid", "TASKID"):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            body = message(method, {"taskId": task, name: "t9"}, caps=KNOWS)
            response = begin(t, "all", body, fields(body)).response()
            eq((response.status, messages_of(response)[0]["error"]["code"]), (400, -32600), name)
    eq([m for p in t.daemon.children("all") for m in t.daemon.messages(p) if m.get("method", "").startswith("tasks/")], [])


# ---- each kind of client, each kind of server: bridging.md §2.5 ----

OF_D = {"taskId": "t1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000}
D_CAPS = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}, "extensions": {EXTENSION: {}}}
MUST = {"name": "must", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
MAY = {"name": "do", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
LEGACY = {"version": mcp.D, "caps": D_CAPS, "on": {"tools/list": [["result", {"tools": [MUST, MAY]}]], "tasks/get": [["result", OF_D]]}}
OLD_CLIENTS = (mcp.A, mcp.B, mcp.C)
CELLS = {
    "d_session": {"script": LEGACY, "era": "legacy"},
    "d_principal": {"script": LEGACY, "era": "legacy", "isolation": "principal"},
    "d_shared": {"script": LEGACY, "era": "legacy", "isolation": "shared"},
    "e_session": {"script": MODERN}, "e_principal": {"script": MODERN, "isolation": "principal"},
    "e_shared": {"script": MODERN, "isolation": "shared"},
}


def offered(session):
    """What its server's capabilities say of tasks: of the legacy era, of the modern one."""
    caps = session.result["result"]["capabilities"]
    return "tasks" in caps, EXTENSION in caps.get("extensions", {})


def is_told(t, server):
    """Whether one of its processes was told anything about tasks."""
    return any(word in t.daemon.record(p) for p in t.daemon.children(server)
               for word in (b'"tasks"', b"modelcontextprotocol/tasks", b"tasks/", b'"task":'))


def session_of(t, server, version):
    caps = {"extensions": {EXTENSION: {}}}
    return t.session(server, version, dict(caps, tasks={}) if version == mcp.D else caps)


@case(own=True, servers=CELLS, config=CONFIG, deadline=30)
def legacy_clients_and_tasks(t):
    """UTIL-TASK-01 UTIL-TASK-02 MOD-TASK-01: those of 2025-11-25 have tasks at such a server, unless sessions share it, and nowhere else."""
    steps = {"steps": [["result", {"task": OF_D}]]}
    for version in OLD_CLIENTS + (mcp.D,):
        for server in CELLS:
            s = session_of(t, server, version)
            has = version == mcp.D and server == "d_session"
            eq(offered(s)[0], has, (version, server))
            eq(s.ask("tasks/get", {"taskId": "t1"}).get("error", {}).get("code"), None if has else -32601, (version, server))
            if has:
                eq(s.ask("tools/call", {"name": "do", "task": {"ttl": 1}, "arguments": steps})["result"]["task"], OF_D)
            elif server[0] == "e":
                eq(offered(s)[1], False, (version, server))
                s.ask("tools/call", dict({"name": "echo", "arguments": {"text": "x"}}, **({"task": {}} if version == mcp.D else {})))
                made_one = s.ask("tools/call", {"name": "do", "arguments": {"steps": [["task", "t1"]]}})
                eq(made_one["error"]["data"]["reason"], "child_protocol_error", (version, server))
            s.delete()
    for server in ("e_principal", "e_shared"):
        eq([word for p in t.daemon.children(server) for word in (b"modelcontextprotocol/tasks", b"tasks/", b'"task":')
            if word in t.daemon.record(p)], [], server)


@case(own=True, servers=CELLS, config={"defaults": {"pool": {"idle_timeout": "1500ms"}}})
def modern_clients_and_tasks(t):
    """MOD-TASK-01 MOD-DISC-01: modern ones have them at modern servers, whatever the isolation; legacy ones hear nothing of it."""
    for server in CELLS:
        found = ask(t, server, "server/discover", caps=KNOWS)[1][0]["result"]["capabilities"]
        eq((EXTENSION in found.get("extensions", {}), "tasks" in found), (server[0] == "e", False), server)
        if server[0] == "e":
            eq(state(t, server, made(t, server))["status"], "working")
            continue
        eq(refused(t, server, "tasks/get", "t1"), (404, -32601), server)
        names = [tool["name"] for tool in ask(t, server, "tools/list", caps=KNOWS)[1][0]["result"]["tools"]]
        eq(names, ["do"], "a tool that is nothing but a task")
        status, answer = call(t, server, ["text", "x"])
        eq((status, answer["result"]["resultType"]), (200, "complete"))
        eq(is_told(t, server), False, server)


@case(own=True, servers={"must": {"script": dict(LEGACY, on={"tools/call": [["error", -32601, "as a task only"]]})}},
      config={"defaults": {"pool": {"idle_timeout": "1500ms"}}})
def tools_that_are_nothing_but_tasks(t):
    """UTIL-TASK-01 bridging.md §2.3.2: who calls one all the same gets the refusal of its server, in words of his era."""
    status, found = ask(t, "must", "tools/call", {"name": "must", "arguments": {}, "task": {"ttl": 1}}, caps=KNOWS)
    eq((status, found[-1]["error"]["code"]), (200, -32602))
    eq(is_told(t, "must"), False)


@case(own=True, servers={"main": {"script": MODERN, "concurrency": 1}, "all": {"script": MODERN, "isolation": "shared", "concurrency": 1},
                         "twin": {"script": MODERN, "concurrency": 2}},
      config=CONFIG, deadline=30)
def tasks_count_as_calls_in_flight(t):
    """product §4 concurrency MOD-TASK-01: a call that became a task counts until the task ends, whatever its ttl, or its process has gone."""
    for server in ("main", "all"):
        task = made(t, server, task_id="one")
        eq(call(t, server, ["text", "x"])[0], 429, "while it works")
        for _ in range(3):
            eq(state(t, server, task)["status"], "working")
        of(t, server, "tasks/cancel", task)
        eq(state(t, server, task)["status"], "cancelled")
        eq(call(t, server, ["text", "x"])[0], 200, "it was cancelled, and its state says so")
        task = made(t, server, task_id="two", members={"ttlMs": 1})
        for _ in range(3):
            eq(call(t, server, ["text", "x"])[0], 429, "one of a short life, on which the server works on")
        of(t, server, "tasks/cancel", task)
        wait_for(lambda: call(t, server, ["text", "x"])[0] == 200, 5, "its end")
        made(t, server, task_id="three")
        eq(call(t, server, ["text", "x"])[0], 429, "another one")
        os.kill(t.daemon.children(server)[0], signal.SIGKILL)
        wait_for(lambda: call(t, server, ["text", "x"])[0] == 200, 5, "the end of its process")
    for _ in range(2):
        made(t, "twin", task_id="same")
    eq(call(t, "twin", ["text", "x"])[0], 200, "two calls that became one task are one")
