# SPDX-License-Identifier: Apache-2.0
"""Processes that many sessions share: bridging.md §1, §4, §8. Numbers in brackets are those of §8."""
import json
import os
import random
import signal
import threading
import time

import mcp
import wire
from c80_stateless import begin, fields, message, messages_of
from harness import case, child_argv, eq, kill, ok, seconds_since, wait_for, within

CONFIG = {"defaults": {"isolation": "shared", "pool": {"idle_timeout": "1500ms"}}}
SERVERS = {
    "main": {},
    "two": {"script": {}, "pool": {"requests_per_process": 2, "max": 2, "queue": 2, "queue_timeout": "700ms"}},
    "one": {"script": {}, "pool": {"max": 1}},
    "slow": {"script": {"init": [["sleep", 0.4], ["answer"]]}},
    "bare": {"script": {"caps": {"tools": {}}}},
    "crash": {"script": {"start": [["exit", 3]]}, "start": {"backoff": "200ms..400ms"}},
}
QUESTION = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
CAPS = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}


def calls_waiting(t, server):
    rows = json.loads(t.conn(address=t.daemon.admin).request("GET", "/servers").read())["servers"]
    return [row["waiting"] for row in rows if row["name"] == server][0]


def methods(t, pid):
    return [m.get("method") for m in t.daemon.messages(pid)]


@case
def many_sessions_one_process(t):
    """SEC-07, bridging §2.1 (2): sessions of a shared server use one process; it is told nothing of them."""
    sessions = [t.session("main", caps=CAPS, info={"name": "secret-%d" % n, "version": "1"}) for n in range(5)]
    pids = {s.pid() for s in sessions}
    eq(len(pids), 1, "processes")
    for s in sessions:
        capabilities = s.result["result"]["capabilities"]
        eq(sorted(capabilities), ["completions", "prompts", "resources", "tools"], "capabilities")
        eq(s.result["result"]["protocolVersion"], mcp.C)
    said = t.daemon.messages(pids.pop())
    eq([m["params"]["capabilities"] for m in said if m.get("method") == "initialize"], [{}])
    ok("secret-" not in json.dumps(said), "a client's name at the child")
    eq(len([m for m in said if m.get("method") == "notifications/initialized"]), 1, "initialized")
    ended = sessions.pop(0)
    eq(ended.delete().status, 204)
    eq(sessions[0].echo("still there"), "still there")


@case
def first_ones_wait_for_one_start(t):
    """bridging §2.1 (2): sessions that open while the process starts wait for that one."""
    before = t.daemon.started("slow")
    waiting = [t.session("slow", check=False) for _ in range(4)]
    wait_for(lambda: t.daemon.started("slow") > before, 5, "the start")
    rows = json.loads(t.conn(address=t.daemon.admin).request("GET", "/servers").read())["servers"]
    eq([row["sessions"] for row in rows if row["name"] == "slow"], [0], "of a start that is not over")
    for s in waiting:
        ok("result" in s.started.final(), "a session")
        s.id = s.started.response.header("mcp-session-id")
    eq(t.daemon.started("slow") - before, 1, "processes")


@case
def start_failure_is_everybodys(t):
    """bridging §4: no process, no session: 503, and another try later."""
    for _ in range(2):
        e = t.session("crash", check=False).started
        answer = e.final(10)
        eq((e.status, answer["error"]["data"]["reason"]), (503, "backend_unavailable"))
        ok(e.response.header("retry-after"), "Retry-After")


@case
def ids_and_tokens_do_not_cross(t):
    """SEC-06 UTIL-PROG-01 bridging §8 (1), (2): the same id and the same token, at once, on one process."""
    a, b = t.session("main"), t.session("main")
    steps = [["progress", 1], ["sleep", 0.2], ["progress", 2]]
    e = a.start_do(*steps, ["text", "for a"], token="T", request_id=1)
    f = b.start_do(["sleep", 0.1], *steps, ["text", "for b"], token="T", request_id=1)
    for exchange, text in ((e, "for a"), (f, "for b")):
        messages = exchange.rest()
        eq([m["params"]["progress"] for m in messages[:-1]], [1, 2], "progress of " + text)
        eq((messages[-1]["id"], messages[-1]["result"]["content"][0]["text"]), (1, text))


@case
def stray_messages_reach_nobody(t):
    """REL-23 bridging §1.1, §8 (2): answers twice, late or to nothing, progress without end: dropped."""
    a, b = t.session("main"), t.session("main")
    listening = b.get()
    pid = a.pid()
    a.do(["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"1"}]}}'],
         ["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"2"}]}}'],
         ["line", '{"jsonrpc":"2.0","id":99999,"result":{}}'],
         ["notify", "notifications/progress", {"progressToken": 1, "progress": 9}],
         ["notify", "notifications/message", {"level": "error", "data": "of a"}],
         ["notify", "notifications/cancelled", {"requestId": 1}],
         ["notify", "notifications/unheard_of", {"of": "a"}])
    eq(b.echo("mine"), "mine")
    listening.nothing(0.3)
    eq(a.pid(), pid)


@case
def children_cannot_ask(t):
    """bridging §1.3, §1.6, §8 (3): what a shared process asks reaches no client, in a call, after it, or after a cancel."""
    a, b = t.session("main", caps=CAPS), t.session("main", caps=CAPS)
    listening = [a.get(), b.get()]
    answers = json.loads(a.do_text(["ask", 1, "sampling/createMessage", {}], ["ask", 2, "roots/list"],
                                   ["ask", 3, "ping"], ["asked"]))
    eq([m.get("error", {}).get("code") for m in answers], [-32601, -32601, None])
    pid = b.pid()
    e = b.start_do(["wait_cancel"], ["send", 8, "elicitation/create", {"message": "m", "requestedSchema": {}}])
    b.cancel(e.id)
    a.do(["background", [["sleep", 0.1], ["send", 9, "elicitation/create", {}]]], ["text", "x"])
    codes = wait_for(lambda: [m["error"]["code"] for m in t.daemon.messages(pid) if m.get("id") in (8, 9) and "error" in m][1:],
                     3, "answers")
    ok(set(codes) <= {-32601, -32602}, "codes", codes)
    for stream in listening:
        stream.nothing(0.1)


@case
def what_is_not_offered(t):
    """bridging §2.1 (3): -32601 from the gateway for what the server does not offer."""
    s = t.session("bare")
    pid = s.pid()
    for method in ("prompts/list", "resources/read", "resources/subscribe", "completion/complete", "logging/setLevel", "tasks/get"):
        eq(s.ask(method, {"uri": "u", "level": "info"})["error"]["code"], -32601, method)
    eq([m for m in methods(t, pid) if m in ("prompts/list", "resources/read", "logging/setLevel")], [])


@case(daemon=False)
def lists_go_on_at_their_process(t):
    """bridging §1.1 (7): a cursor works in any session, and only for the process that gave it."""
    t.start({"main": {"script": {"on": {"tools/list": [["result", {"tools": [], "nextCursor": "@PID@"}]]}}}}, CONFIG)
    a, b = t.session("main"), t.session("main")
    cursor = a.ask("tools/list", {"vendor": 1})["result"]["nextCursor"]  # a list of its own is not kept
    ok(cursor != "@PID@", "the child's own cursor", cursor)
    eq(b.ask("tools/list", {"cursor": cursor})["result"]["tools"], [])
    pid = t.daemon.children("main")[0]
    eq([m["params"]["cursor"] for m in t.daemon.messages(pid) if "cursor" in (m.get("params") or {})], ["@PID@"])
    eq(b.ask("tools/list", {"cursor": ""})["result"]["tools"], [])  # UTIL-PAGE-01: an empty one is the child's own
    for wrong in ("x", "!" + cursor, "AQAAAAAAAAAJeA", 5):
        eq(b.ask("tools/list", {"cursor": wrong})["error"]["code"], -32602, wrong)


PAGES = {"on": {"tools/list": [["sleep", 0.2], ["answer"]], "prompts/list": [["error", -32001, "not now"]],
                "resources/list": [["result", {"resources": [{"uri": "res://1", "name": "1"}], "nextCursor": "again"}]]}}


@case(daemon=False)
def lists_are_fetched_once(t):
    """bridging §1.8: one fetch for all sessions that ask, and one more for each change."""
    t.start({"main": {"script": PAGES}}, CONFIG)
    sessions = [t.session("main") for _ in range(30)]
    pid = t.daemon.children("main")[0]
    for n in (1, 2):
        waiting = [s.start("tools/list", {"_meta": {"progressToken": 1}}) for s in sessions]
        first = waiting[0].final()["result"]
        eq([e.final()["result"] for e in waiting[1:]], [first] * 29)
        eq(sessions[3].ask("tools/list")["result"], first)
        eq(methods(t, pid).count("tools/list"), n, "fetches")
        listening = sessions[0].get()
        sessions[1].do(["notify", "notifications/tools/list_changed"], ["text", "x"])
        eq(listening.next()["method"], "notifications/tools/list_changed")
        listening.close()


@case(daemon=False)
def what_is_not_kept(t):
    """bridging §1.8: errors; lists without an end, whose pages then are the server's own."""
    t.start({"main": {"script": PAGES}}, CONFIG)
    s = t.session("main")
    pid = t.daemon.children("main")[0]
    for n in (1, 2):
        eq(s.ask("prompts/list")["error"], {"code": -32001, "message": "not now"})
        eq(methods(t, pid).count("prompts/list"), n)
    page = s.ask("resources/list")["result"]
    for _ in range(3):
        eq(page["resources"][0]["name"], "1")
        page = s.ask("resources/list", {"cursor": page["nextCursor"]})["result"]
    eq([m["params"]["cursor"] for m in t.daemon.messages(pid) if "cursor" in (m.get("params") or {})], ["again"] * 4)


@case(daemon=False)
def lists_come_while_people_think(t):
    """bridging §1.8: a process that waits for its caller's answer shows its lists to the others all the same."""
    t.start({"main": {"script": {}, "isolation": "principal", "pool": {"max": 1}}}, CONFIG)
    a, b = t.session("main", caps={"elicitation": {}}), t.session("main", caps={"elicitation": {}})
    asking = a.start_do(["ask", 1, "elicitation/create", QUESTION], ["asked"])
    question = asking.next()
    ok(len(b.ask("tools/list")["result"]["tools"]) > 0, "tools")
    a.respond(question["id"], {"action": "accept", "content": {"of": "a"}})
    eq(json.loads(asking.final()["result"]["content"][0]["text"])[0]["result"]["content"], {"of": "a"})


@case
def calls_spread_and_wait(t):
    """bridging §1.4, §4: two calls a process, two processes, two waiting; more are refused with 503; the wait has an end."""
    s = t.session("two")
    running = [s.start_do(["wait_cancel"]) for _ in range(4)]
    calls = lambda: sorted(methods(t, p).count("tools/call") for p in t.daemon.children("two"))
    wait_for(lambda: sum(calls()) == 4, 5, "four calls")
    waiting = [s.start_do(["text", "late"]) for _ in range(2)]
    wait_for(lambda: calls_waiting(t, "two") == 2, 3, "two that wait")
    refused = s.start_do(["text", "x"])
    answer = refused.final()
    eq((refused.status, answer["error"]["data"]["reason"]), (503, "overloaded"))
    ok(refused.response.header("retry-after"), "Retry-After")
    for e in waiting:  # no process has room before 0.7 s have passed
        answer = e.final()
        eq((e.status, answer["error"]["data"]["reason"]), (503, "overloaded"))
    eq(calls(), [2, 2], "calls a process")
    for e in running:
        s.cancel(e.id)
        eq(e.rest(), [])


@case(daemon=False)
def neighbours_take_turns(t):
    """bridging §1.4: who has many calls waiting does not keep others from theirs."""
    t.start({"main": {"script": {}, "pool": {"requests_per_process": 1, "max": 1}}}, CONFIG)
    greedy, modest = t.session("main"), t.session("main")
    many = [greedy.start_do(["wait_cancel"])] + [greedy.start_do(["text", "g"]) for _ in range(9)]
    wait_for(lambda: calls_waiting(t, "main") == 9, 3, "many that wait")
    one = modest.start("tools/call", {"name": "echo", "arguments": {"text": "m"}})
    wait_for(lambda: calls_waiting(t, "main") == 10, 3, "one more")
    body = message("tools/call", {"name": "echo", "arguments": {"text": "m"}})
    modern = begin(t, "main", body, fields(body))
    wait_for(lambda: calls_waiting(t, "main") == 11, 3, "one without a session")
    report = json.loads(t.conn(address=t.daemon.admin).request("GET", "/check").read())
    eq([(p["severity"], p["about"], p["text"]) for p in report["problems"] if p["kind"] == "calls_wait"],
       [("warn", "main", "main: calls wait (11), and all 1 processes of pool.max run")])
    greedy.cancel(many[0].id)
    for e in many[1:] + [one]:
        ok("result" in e.final(), "each is answered")
    ok("result" in messages_of(modern.response())[-1], "and this one")
    names = [m["params"]["name"] for m in t.daemon.messages(t.daemon.children("main")[0]) if m.get("method") == "tools/call"]
    ok(names.index("echo") <= 2, "its turn, behind the one that ran", names)


@case(daemon=False)
def crash_fails_its_own_calls(t):
    """bridging §4 BACK-PROC-05: a process that dies takes its calls; lists are asked again; sessions live."""
    t.start({"main": {"script": {"on": {"prompts/list": [["sleep", 0.3], ["answer"]]}}}}, CONFIG)
    a, b = t.session("main"), t.session("main")
    pid = a.pid()
    running = b.start_do(["sleep", 5], ["text", "x"])
    listing = b.start("prompts/list")
    wait_for(lambda: "prompts/list" in methods(t, pid), 3, "the list at the child")
    os.kill(pid, signal.SIGKILL)
    answer = running.final(3)
    eq((running.status, answer["error"]["data"]["reason"]), (200, "child_exited"))
    eq(listing.final()["result"]["prompts"][0]["name"], "p")
    ok(a.pid() != pid, "a fresh process")
    eq(t.daemon.started("main"), 2)


@case(daemon=False)
def subscribers_are_merged(t):
    """UTIL-SUBS-01 bridging §1.5, §8 (6), (7): one subscribe, one unsubscribe, whoever comes and goes; crashes are made good."""
    t.start({"main": {"script": {"on": {"resources/subscribe": [["sleep", 0.1], ["answer"]]}}}}, CONFIG)
    sessions = [t.session("main") for _ in range(10)]
    streams = [s.get() for s in sessions[:2]]
    pid = sessions[0].pid()
    waiting = [s.start("resources/subscribe", {"uri": "res://a"}) for s in sessions]
    for e in waiting:
        eq(e.final()["result"], {})
    eq(methods(t, pid).count("resources/subscribe"), 1)
    sessions[5].do(["notify", "notifications/resources/updated", {"uri": "res://a"}],
                   ["notify", "notifications/resources/updated", {"uri": "res://b"}], ["text", "x"])
    for stream in streams:
        eq(stream.next()["params"]["uri"], "res://a")
    os.kill(pid, signal.SIGKILL)
    fresh = wait_for(lambda: [p for p in t.daemon.children("main") if p != pid], 5, "a fresh process")[0]
    wait_for(lambda: methods(t, fresh).count("resources/subscribe") == 1, 5, "the subscription at the fresh process")
    for n, s in enumerate(sessions):
        if n % 2:
            eq(s.ask("resources/unsubscribe", {"uri": "res://a"})["result"], {})
        else:
            s.delete()
    wait_for(lambda: methods(t, fresh).count("resources/unsubscribe") == 1, 3, "unsubscribe")
    eq(methods(t, fresh).count("resources/subscribe"), 1)


@case
def list_changes_are_joined(t):
    """UTIL-LIST-01 bridging §1.7: everybody hears, once."""
    sessions = [t.session("main") for _ in range(3)]
    streams = [s.get() for s in sessions]
    sessions[0].do(*[["notify", "notifications/tools/list_changed"]] * 20, ["text", "x"])
    for stream in streams:
        eq(stream.next()["method"], "notifications/tools/list_changed")
        stream.nothing(0.25)


@case
def slow_reader_delays_nobody(t):
    """REL-24 bridging §8 (10): one who does not read does not hold up the others on his process."""
    a, b = t.session("main"), t.session("main")
    e = a.start_do(["repeat", 400, [["progress", 1], ["fill", '{"jsonrpc":"2.0","method":"notifications/progress","params":'
                                     '{"progressToken":@TOKEN@,"progress":2,"message":"%s"}}\n' % ("x" * 8000), 1]]],
                   ["text", "done"], token="t")
    worst = 0
    for n in range(20):
        started = time.monotonic()
        eq(b.echo("n%d" % n), "n%d" % n)
        worst = max(worst, seconds_since(started))
    ok(worst < 1.5, "worst", worst)
    e.close()


@case(daemon=False)
def idle_processes_go(t):
    """product §4 pool.idle_timeout: the session stays, and gets another one."""
    t.start({"main": {"script": {}, "pool": {"idle_timeout": "300ms"}}}, CONFIG)
    s = t.session("main")
    pid = s.pid()
    wait_for(lambda: t.daemon.children("main") == [], 5, "end of the idle process")
    ok(s.pid() != pid, "a fresh process")


@case(daemon=False)
def isolation_on_the_command_line(t):
    """product §2: --isolation shared."""
    t.start(args=["--listen", "127.0.0.1:0", "--isolation", "shared", "--"] + child_argv({}))
    a, b = t.session("main", path="/mcp"), t.session("main", path="/mcp")
    eq(a.pid(), b.pid())


# ---- one process for each principal and class -------------------------------


@case(daemon=False)
def leased_processes_ask_their_caller(t):
    """bridging §1.2, §1.6 (4): one call at a time in a process that may ask; what it asks is asked in that call alone."""
    t.start({"main": {"script": {}, "isolation": "principal"}}, CONFIG)
    caps = {"elicitation": {}}
    sessions = [t.session("main", caps=caps) for _ in range(4)]
    streams = [s.get() for s in sessions]
    asking = [s.start_do(["ask", 1, "elicitation/create", QUESTION], ["asked"]) for s in sessions]
    questions = [e.next() for e in asking]
    for n, (s, question) in enumerate(zip(sessions, questions)):
        eq(question["method"], "elicitation/create")
        s.respond(question["id"], {"action": "accept", "content": {"of": n}})
    for n, e in enumerate(asking):
        answers = json.loads(e.final()["result"]["content"][0]["text"])
        eq(answers[0]["result"]["content"], {"of": n})
    eq(t.daemon.started("main"), 4)
    for stream in streams:
        stream.nothing(0.05)
    plain = t.session("main")
    ok(plain.pid() not in [int(s.pid()) for s in sessions], "another class, another process")


@case(daemon=False)
def questions_without_a_call(t):
    """bridging §1.6 (6), §8 (3): asked between calls or after a cancellation: -32602 for the process, nothing for clients."""
    t.start({"main": {"script": {}, "isolation": "principal"}}, CONFIG)
    s = t.session("main", caps={"elicitation": {}})
    listening = s.get()
    s.do(["background", [["sleep", 0.1], ["send", 8, "elicitation/create", QUESTION]]], ["text", "x"])
    pid = t.daemon.children("main")[0]
    wait_for(lambda: [m["error"]["code"] for m in t.daemon.messages(pid) if m.get("id") == 8 and "error" in m] == [-32602], 3,
             "the refusal of the first")
    e = s.start_do(["wait_cancel"], ["send", 9, "elicitation/create", QUESTION])
    wait_for(lambda: methods(t, pid).count("tools/call") == 2, 3, "the call")
    s.cancel(e.id)
    wait_for(lambda: [m["error"]["code"] for m in t.daemon.messages(pid) if m.get("id") == 9 and "error" in m] == [-32602], 3,
             "the refusal of the second")
    listening.nothing(0.1)
    eq(s.echo("on"), "on")


# ---- how many processes there are -------------------------------------------

@case(daemon=False)
def spares_are_there_before(t):
    """product §4 pool.warm: a session gets a process that was started before, and had heard nothing."""
    t.start({"main": {"script": {}, "isolation": "session", "pool": {"warm": 1}}})
    pid = wait_for(lambda: t.daemon.children("main"), 5, "the spare")[0]
    eq(t.daemon.record(pid), b"")
    s = t.session("main")
    eq(int(s.pid()), pid)
    wait_for(lambda: len(t.daemon.children("main")) == 2, 5, "the next spare")
    s.delete()
    wait_for(lambda: pid not in t.daemon.children("main"), 5, "the end of the session's process")


@case(daemon=False)
def kept_processes_are_ready(t):
    """product §4 pool.min: they have said hello before anybody comes, and come back when they die."""
    t.start({"main": {"script": {}, "pool": {"min": 2, "idle_timeout": "200ms"}}}, CONFIG)
    wait_for(lambda: sum("notifications/initialized" in methods(t, p) for p in t.daemon.children("main")) == 2, 5, "two, ready")
    time.sleep(0.5)
    pids = t.daemon.children("main")
    eq(len(pids), 2)
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: len(set(t.daemon.children("main")) - set(pids)) == 1, 5, "another one")


@case(daemon=False, deadline=20)
def crash_loop_after_the_handshake(t):
    """REL-29: a server that dies right after its handshake is started less and less; callers hear so at once."""
    t.start({"main": {"script": {"initialized": [["exit", 1]]}, "isolation": "session",
                      "start": {"backoff": "500ms..2s", "give_up_after": 2}}})
    refused, end = 0, time.monotonic() + 6
    while time.monotonic() < end:
        e = t.session("main", check=False).started
        answer = e.final(10)
        if e.status == 503:
            eq(answer["error"]["data"]["reason"], "backend_unavailable")
            ok(e.response.header("retry-after"), "Retry-After")
            refused += 1
        else:
            t.will_end(e, "/main/mcp")
        time.sleep(0.05)
    ok(refused > 10, "refused", refused)
    ok(t.daemon.started("main") <= 12, "starts in 6 s", t.daemon.started("main"))


@case(daemon=False)
def all_processes_have_a_limit(t):
    """product §4 limits.processes: of all servers together."""
    t.start({"main": {"script": {}}, "other": {"script": {}}},
            {"limits": {"processes": 1}, "defaults": {"pool": {"reclaim": "never"}}})
    s = t.session("main")
    e = t.session("other", check=False).started
    eq((e.final()["error"]["data"]["reason"], e.status), ("overloaded", 503))
    s.delete()
    t.daemon.wait_log("child_state", "server=main", "to=gone")
    t.session("other")


# ---- anything in any order ---------------------------------------------------

CLIENTS = 50
# Answers that come late, twice, under another id, after the cancellation; each carries its call's mark.
TRICKS = (
    lambda m: [["text", m]],
    lambda m: [["sleep", random.uniform(0, 0.05)], ["text", m]],
    lambda m: [["text", m], ["text", m]],
    lambda m: [["line", '{"jsonrpc":"2.0","id":@ID@000000,"result":{"content":[{"type":"text","text":"stray"}]}}'], ["text", m]],
    lambda m: [["progress", 1], ["sleep", 0.01], ["progress", 2], ["text", m], ["progress", 3]],
    lambda m: [["background", [["sleep", 0.03], ["text", m]]], ["sleep", 0.02], ["text", m]],
    lambda m: [["wait_cancel"], ["text", m], ["progress", 7]],
)


class Client(threading.Thread):
    """Calls with the same few ids and tokens as all others; every byte that comes back must be its own."""

    def __init__(self, t, number, until, seed):
        super().__init__(daemon=True)
        # With isolation principal those who can be asked something have a process for themselves in each call.
        self.session = t.session("main", caps={"elicitation": {}} if number % 4 == 0 else None)
        self.number, self.until = number, until
        self.random = random.Random(seed * 1000 + number)
        self.calls = self.cancelled = self.lost = self.answered = 0
        self.problem = None

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.call()
        except BaseException as e:
            self.problem = e

    def call(self):
        s, request_id = self.session, self.random.randrange(3)
        mark = "mark-%d-%d" % (self.number, self.calls)
        trick = self.random.choice(TRICKS)
        conn = wire.Conn(s.address, timeout=20)
        try:
            e = s.begin(mcp.request(request_id, "tools/call", s.do_params(trick(mark), token=request_id)), conn)
            if trick is TRICKS[-1]:
                time.sleep(0.01)
                self.cancelled += 1
                other = wire.Conn(s.address, timeout=20)
                other.request("POST", s.path, s.headers(), mcp.encode(
                    mcp.notification("notifications/cancelled", {"requestId": request_id}))).read()
                other.close()
            told = e.rest(20)
            for m in told:
                self.judge(m, request_id, mark)
            self.answered += any("result" in m for m in told)
            # What was cancelled may be answered or not; all else is.
            ok(trick is TRICKS[-1] or any("method" not in m for m in told), "a call without an answer", told)
        finally:
            conn.close()
        self.calls += 1

    def judge(self, m, request_id, mark):
        if "method" in m:
            eq((m["method"], m["params"]["progressToken"]), ("notifications/progress", request_id))
        elif "error" in m:
            self.lost += 1
            ok(m["error"]["data"]["reason"] in ("child_exited", "overloaded", "cancelled"), "error", m)
            eq(m["id"], request_id)
        else:
            eq((m["id"], m["result"]["content"][0]["text"]), (request_id, mark))


def interleave(t, seconds, seed, crashes):
    """Runs CLIENTS clients for so long; returns a line of figures."""
    random.seed(seed)
    listening = [t.session("main").get() for _ in range(3)]
    clients = [Client(t, n, time.monotonic() + seconds, seed) for n in range(CLIENTS)]
    for c in clients:
        c.start()
    while any(c.is_alive() for c in clients):
        time.sleep(0.5)
        if crashes and random.random() < 0.3:
            for pid in t.daemon.children("main")[:1]:
                kill(pid)
    for c in clients:
        if c.problem is not None:
            raise AssertionError("seed %d, client %d: %r" % (seed, c.number, c.problem)) from c.problem
    for stream in listening:
        stream.nothing(0.05)
    ok(sum(c.answered for c in clients) > CLIENTS, "calls that were answered", [c.answered for c in clients])
    return "%d clients, %d calls, %d cancelled, %d failed by crashes or load, 0 crossed, seed %d" % (
        CLIENTS, sum(c.calls for c in clients), sum(c.cancelled for c in clients), sum(c.lost for c in clients), seed)


@case(deadline=40, daemon=False)
def nothing_crosses(t):
    """SEC-05 SEC-06 bridging I1, I2: fifty clients, the same ids and tokens, answers in any order and too many: none crosses."""
    t.start({"main": {"script": {}, "pool": {"max": 4, "requests_per_process": 16}}}, CONFIG)
    seed = int(os.environ.get("SCENARIO_SEED") or random.randrange(1 << 30))
    interleave(t, 4, seed, crashes=True)
