# SPDX-License-Identifier: Apache-2.0
"""Tasks in shared processes: what hostile clients, and servers that say odd things, make of them. bridging.md §2.5."""
import base64
import json

import mcp
from c80_stateless import begin, fields, message, messages_of
from c81_parked import ACCEPT, ALICE, BOB, FORM
from c83_tasks import KNOWS, MODERN, made
from c84_pooled_tasks import ASKS, CONFIG, DONE, RELATED, SCRIPT, SERVERS, answer, asking, listed, make, make_apart, raw, refused, session, state, task_text
from harness import case, eq, ok, wait_for

ABOUT = {"_meta": {RELATED: {"taskId": "t1"}}}
NULL = {"script": dict(SCRIPT, on={"tasks/list": [raw('{"nextCursor":null,"_meta":{"a":1},"tasks":[%s]}' % task_text())]}),
        "isolation": "principal", "pool": {"max": 4, "requests_per_process": 1}}
LOG = ["notify", "notifications/message", dict(ABOUT, level="info", data="x")]
ODD = ["notify", "notifications/odd", ABOUT]


def of_tasks(t, server):
    """What the processes of a server were sent about tasks."""
    return [m for p in t.daemon.children(server) for m in t.daemon.messages(p) if m.get("method", "").startswith("tasks/")]


def cursor(form, number, text):
    return base64.urlsafe_b64encode(bytes([form]) + number.to_bytes(8, "big") + text).rstrip(b"=").decode()


@case(own=True, servers=SERVERS, config=CONFIG)
def cursors_that_are_made_up(t):
    """UTIL-TASK-02 SEC-06: no process is asked for them, be it another principal's, and none is started."""
    s, other = session(t, "brief"), session(t, "brief", token=BOB)
    make(other)
    before = t.daemon.started("brief")
    for number in (0, 2, 3, 2**63, 2**64 - 1):
        for text in (b"", b"0", b'"', b"\\"):
            eq(s.ask("tasks/list", {"cursor": cursor(1, number, text)})["error"]["code"], -32602, number)
        eq(s.ask("tasks/list", {"cursor": cursor(2, number, bytes(8))})["result"], {"tasks": []}, number)
    eq((of_tasks(t, "brief"), t.daemon.started("brief")), ([], before))


@case(own=True, servers=dict(SERVERS, null=NULL), config=CONFIG)
def lists_are_asked_for_where_there_are_tasks(t):
    """UTIL-TASK-02: a process that has had none is not asked; a cursor of null is replaced, and does not stay beside ours."""
    s = session(t, "null")
    eq((listed(s), s.echo("x")), (([], 1), "x"))
    eq(of_tasks(t, "null"), [], "nobody was asked")
    make(s), make_apart(t, s, 1, server="null")
    e = s.start("tasks/list")
    ok(e.next()["result"]["nextCursor"], "there is another process")
    eq(e.raw[0].count(b'"nextCursor"'), 1, e.raw)


@case(own=True, servers=SERVERS, config=CONFIG)
def ids_that_servers_read_otherwise(t):
    """UTIL-TASK-02 SEC-41 FRONT-HTTP-11: a server that takes names in any letter case, or the last of two, finds no other id."""
    s = session(t)
    task = make(s)
    make(s, task_id="t9")
    for members in ('"taskId":"%s","taskId":"t9"', '"taskId":"%s","task\\u0049d":"t9"', '"taskId":"%s","TaskId":"t9"',
                    '"taskid":"t9","taskId":"%s"', '"task\u0131d":"t9","taskId":"%s"'):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            e = s.post('{"jsonrpc":"2.0","id":9,"method":"%s","params":{%s}}' % (method, members % task))
            eq((e.status, json.loads(e.response.body)["error"]["code"]), (400, -32600), members)
    eq(s.post("[%s]" % json.dumps(mcp.request(9, "tasks/get", {"taskId": task}))).status, 400)
    eq(s.ask("tasks/get", [task])["error"]["code"], -32602)
    eq(of_tasks(t, "main"), [])
    e = s.post('{"params":{"x":{"taskId":"t9"},"taskId":"%s","_meta":{"progressToken":"p"}},"id":9,"method":"tasks/get","jsonrpc":"2.0"}' % task)
    eq((e.status, json.loads(e.response.body)["result"]["taskId"]), (200, task))
    eq([m["params"]["taskId"] for m in of_tasks(t, "main")], ["t1"])


@case(own=True, servers={"all": {"script": MODERN, "isolation": "shared"}}, config={"defaults": {"era": "modern"}})
def ids_that_modern_servers_read_otherwise(t):
    """MOD-TASK-02 SEC-41: likewise where all share the process, and the other task may be anybody's."""
    task = made(t, "all")
    made(t, "all", task_id="t9")
    for name in ("TaskId", "taskid", "TASKID"):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            body = message(method, {"taskId": task, name: "t9"}, caps=KNOWS)
            response = begin(t, "all", body, fields(body)).response()
            eq((response.status, messages_of(response)[0]["error"]["code"]), (400, -32600), name)
    eq(of_tasks(t, "all"), [])


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_whose_session_has_gone(t):
    """SEC-06 bridging.md §1.6 (4): what it asks and tells is nobody's, also while a call of another session has its process."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    task = make(s, ["sleep", 1.5], LOG, ODD, asking("q"), ["job_asked"])
    s.delete()
    e = other.start_do(["sleep", 2.5], ["text", "x"], token="a")
    eq(e.final()["result"]["content"][0]["text"], "x")
    eq(len(e.raw), 1, "nothing but its result")
    told = json.loads(other.ask("tasks/result", {"taskId": task})["result"]["content"][0]["text"])
    eq(told[0]["error"]["code"], -32602, "nobody was asked")


@case(own=True, servers=SERVERS, config=CONFIG)
def what_is_told_during_a_task(t):
    """UTIL-TASK-03 bridging.md §1.7: log lines, and what we do not know, go to the session of the task, not to the call beside it."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    g = s.get()
    task = make(s, ["sleep", 0.6], LOG, ODD)
    e = other.start_do(["sleep", 1.2], ["text", "x"], token="a")
    found = [g.next(), g.next()]
    eq([m["method"] for m in found], ["notifications/message", "notifications/odd"])
    eq([m["params"]["_meta"] for m in found], [{RELATED: {"taskId": task}}] * 2)
    e.final()
    eq(len(e.raw), 1, "nothing but its result")


@case(own=True, servers=SERVERS, config=CONFIG)
def a_task_takes_back_what_it_has_asked(t):
    """CXL-09 UTIL-TASK-03: also where it says which task it is about, the client hears of it by the id that it knows."""
    s = session(t, caps=ASKS)
    g = s.get()
    task = make(s, ["send", "r", "elicitation/create", dict(FORM, **ABOUT)], ["sleep", 0.3], ["notify", "notifications/cancelled", dict(ABOUT, requestId="r")])
    asked, withdrawn = g.next(), g.next()
    eq(withdrawn["params"], {"requestId": asked["id"], "_meta": {RELATED: {"taskId": task}}})


@case(own=True, servers=SERVERS, config=CONFIG)
def servers_that_escape_slashes(t):
    """BACK-FRAME-04 UTIL-TASK-03: as PHP does by default: requests and notifications are what they are, and name their tasks."""
    s = session(t, caps=ASKS)
    g = s.get()
    question = mcp.request("q", "elicitation/create", dict(FORM, **ABOUT))
    log = mcp.notification(LOG[1], LOG[2])
    task = make(s, *[["line", json.dumps(m).replace("/", "\\/")] for m in (question, log)], ["wait", "q"], ["job_asked"])
    asked, logged = g.next(), g.next()
    eq((asked["method"], logged["method"]), ("elicitation/create", "notifications/message"))
    eq([m["params"]["_meta"] for m in (asked, logged)], [{RELATED: {"taskId": task}}] * 2)
    answer(s, asked, task)
    told = json.loads(s.ask("tasks/result", {"taskId": task})["result"]["content"][0]["text"])
    eq(told[0]["result"]["_meta"], {RELATED: {"taskId": "t1"}})
    said = json.dumps({"content": [], **ABOUT}).replace("/", "\\/")
    eq(s.do(raw(said))["result"]["_meta"], {RELATED: {"taskId": task}}, "of results, too")


def failing(*steps):
    return {"script": dict(SCRIPT, on={"tasks/result": list(steps)}), "isolation": "principal", "pool": {"idle_timeout": "300ms"}}


@case(own=True, servers={"late": failing(["error", -32000, "no"])}, config=CONFIG)
def a_task_that_ends_with_an_error(t):
    """UTIL-TASK-01 bridging.md §2.5: which is its result, too; while it works, an error in answer to tasks/result is no end of it."""
    s = session(t, "late")
    task = make(s, ["sleep", 1], ["job", {"status": "failed"}], members={"ttl": None})
    eq(refused(s, "tasks/result", task), -32000)
    pid = t.daemon.children("late")
    wait_for(lambda: state(s, task) == "failed", 4, "its end")
    eq(t.daemon.children("late"), pid, "the process has stayed for it")
    eq(refused(s, "tasks/result", task), -32000)
    wait_for(lambda: not t.daemon.children("late"), 4, "the end of the process")


@case(own=True, servers=SERVERS, config=CONFIG)
def everybody_waits_for_results(t):
    """UTIL-TASK-01 SEC-46: as many as may: a further one is told so; the tasks can be looked at and cancelled, and calls go on."""
    sessions = [session(t) for _ in range(3)]
    s = sessions[0]
    task = make(s, members={"ttl": None})
    waiting = [sessions[n % 3].start("tasks/result", {"taskId": task}) for n in range(128)]
    wait_for(lambda: len(of_tasks(t, "main")) == 128, 8, "all of them")
    one_more = s.ask("tasks/result", {"taskId": task})
    eq(one_more["error"]["data"]["reason"], "overloaded")
    eq((state(s, task), listed(s)[0], s.echo("x")), ("working", [task], "x"))
    eq(s.ask("tasks/cancel", {"taskId": task})["result"]["status"], "cancelled")
    for exchange in waiting:
        eq(exchange.final()["result"]["_meta"], {RELATED: {"taskId": task}})


@case(own=True, servers=SERVERS, config=CONFIG)
def answers_that_name_other_tasks(t):
    """UTIL-TASK-03: a client's answer names the task of another process: its server reads no id of its own."""
    s = session(t, "two", caps=ASKS)
    one = make(s, ["sleep", 1], asking("q"), ["job_asked"])
    two = make_apart(t, s, 1)
    e = s.start("tasks/result", {"taskId": one})
    answer(s, e.next(), two)
    told = json.loads(e.final()["result"]["content"][0]["text"])
    eq(told[0]["result"]["_meta"], {RELATED: {"taskId": two}})


@case(own=True, servers=SERVERS, config=CONFIG)
def tasks_of_one_name(t):
    """UTIL-TASK-03 bridging.md §1.6 (4): who waits for the result of one is not asked by that of another process."""
    s, other = session(t, "two", caps=ASKS), session(t, "two", caps=ASKS)
    one = make(s)
    e = s.start("tasks/result", {"taskId": one})
    wait_for(lambda: of_tasks(t, "two"), 3, "it waits")
    g = other.get()
    two = make_apart(t, other, 1, ["sleep", 0.2], asking("q"), ["job_asked"])
    asked = g.next()
    eq(asked["params"]["_meta"], {RELATED: {"taskId": two}})
    answer(other, asked, two)
    eq(g.next()["params"]["status"], "completed")
    s.ask("tasks/cancel", {"taskId": one})
    e.final()
    eq(len(e.raw), 1, "it was asked nothing")


@case(own=True, servers=SERVERS, config=CONFIG)
def who_waits_gives_up_while_it_is_asked(t):
    """CXL-08 UTIL-TASK-03: it may answer all the same; who ends its session instead has cancelled; one that is over asks no more."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    tasks = [make(s, ["sleep", 0.3], asking("q%d" % n, "t%d" % n), ["job_asked"], task_id="t%d" % n) for n in range(2)]
    waiting = [other.start("tasks/result", {"taskId": task}, request_id=n) for n, task in enumerate(tasks)]
    asked = [e.next() for e in waiting]
    other.cancel(0)
    answer(other, asked[0], tasks[0])
    told = json.loads(s.ask("tasks/result", {"taskId": tasks[0]})["result"]["content"][0]["text"])
    eq(told[0]["result"]["action"], "accept")
    other.delete()
    told = json.loads(s.ask("tasks/result", {"taskId": tasks[1]})["result"]["content"][0]["text"])
    eq(told[0]["result"], {"action": "cancel"})


@case(own=True, servers=SERVERS, config=CONFIG)
def sessions_of_older_revisions(t):
    """UTIL-TASK-01: beside those that have tasks there are none for them, not by their ids either."""
    s, old = session(t), t.session("main", mcp.C, {}, token=ALICE)
    task = make(s)
    said = {"content": [], "task": {"taskId": "t1", "status": "working"}, "_meta": {RELATED: {"taskId": "t1"}}}
    eq(old.do(["result", said])["result"], said, "no words of its revision")
    before = len(of_tasks(t, "main"))
    for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update"):
        eq(refused(old, method, task), -32601, method)
    eq(len(of_tasks(t, "main")), before)


@case(own=True, servers=SERVERS, config=CONFIG)
def one_id_for_two_tasks(t):
    """UTIL-TASK-03 SEC-42: a server that gives an id twice has one task; what it says of none, or in no words, reaches nobody."""
    s, other = session(t, caps=ASKS), session(t, caps=ASKS)
    g, quiet = s.get(), other.get()
    task = make(s)
    eq(make(other, ["sleep", 0.2], ["job", DONE]), task)
    eq(g.next()["params"]["taskId"], task)
    odd = ({}, {"taskId": None}, {"taskId": 7}, {"taskId": ""}, {"taskId": ["t1"]}, {"taskId": {"taskId": "t1"}}, {"taskId": "x" * 2000})
    told = [["notify", "notifications/tasks/status", dict(params, status="working")] for params in odd]
    stray = ['{"jsonrpc":"2.0","id":%s,"result":{"taskId":"t1"}}' % number for number in ("77777", '"t1"', '"1"')]
    s.do_text(*told, *[["line", line] for line in stray], ["text", "x"])
    g.nothing(0.2)
    quiet.nothing(0)
    eq(state(other, task), "completed")
