# SPDX-License-Identifier: Apache-2.0
"""What nobody uses gives way to who comes: processes, shares of them, sessions. bridging.md §1.9, SEC-16."""
import json
import subprocess
import time

import c80_stateless
import harness
import mcp
from c61_token import ALICE, BOB, entry
from harness import case, eq, ok, wait_for, within

HERE, THERE = "127.0.0.1", "127.0.0.2"
IDLE = 2.0  # what a session must have done nothing for
AUTH = {"auth": {"mode": "token", "tokens": [entry("alice", ALICE), entry("bob", BOB)]}}


def methods(t, pid):
    return [m.get("method") for m in t.daemon.messages(pid)]


def asleep(t):
    return len(t.daemon.log("session_asleep"))


@case(daemon=False, deadline=40)
def who_left_makes_room(t):
    """bridging §1.9: clients that went without DELETE do not keep the next one out; their sessions sleep, and go on."""
    t.start({"main": {"script": {}, "pool": {"max": 3}}})
    kept = [t.session(source=HERE) for _ in range(3)]
    began = time.monotonic()
    pids = [s.pid() for s in kept]
    new = t.session(source=THERE)
    ok(time.monotonic() - began > IDLE - 0.5, "a session that was used a moment ago gave way", time.monotonic() - began)
    within(began, 8, "the newcomer's wait")
    new_pid = new.pid()
    ok(new_pid not in pids, "a process of its own", new_pid, pids)
    eq((asleep(t), len(t.daemon.children("main"))), (1, 3))
    eq(kept[0].echo("awake"), "awake")  # it was idle for longest: it slept
    eq([s.ask("ping")["result"] for s in kept + [new]], [{}] * 4, "nobody's session has ended")
    t.daemon.never_logged("session_end")


@case(daemon=False, deadline=40)
def what_was_asked_for_is_asked_again(t):
    """bridging §1.9, §4: a session that wakes: initialize, level and subscriptions are repeated, and its lists may have changed."""
    t.start({"main": {"script": {}, "pool": {"max": 1}}})
    a = t.session(source=HERE, caps={"roots": {}})
    eq(a.ask("logging/setLevel", {"level": "warning"})["result"], {})
    eq(a.ask("resources/subscribe", {"uri": "res://1"})["result"], {})
    first = a.pid()
    b = t.session(source=THERE)
    ok(b.pid() != first, "another process")
    eq(a.echo("again"), "again")
    third = a.pid()
    said = t.daemon.messages(third)
    eq(said[0]["params"], t.daemon.messages(first)[0]["params"], "initialize")
    eq([m["params"] for m in said if m.get("method") in ("logging/setLevel", "resources/subscribe")],
       [{"level": "warning"}, {"uri": "res://1"}])
    told = a.get()
    ok("notifications/tools/list_changed" in [told.next()["method"] for _ in range(3)], "list_changed")
    told.close()


def report(t, path):
    return json.loads(t.conn(address=t.daemon.admin).request("GET", path).read())


@case(daemon=False, deadline=40)
def who_sleeps_is_shown(t):
    """product §2: how many sessions of a server sleep, which, and how often it happened."""
    t.start({"main": {"script": {}, "pool": {"max": 1}}})
    t.session(source=HERE)
    busy = t.session(source=THERE)
    call = busy.start_do(["sleep", 3], ["text", "x"])
    wait_for(lambda: sorted(s["state"] for s in report(t, "/sessions")["sessions"]) == ["asleep", "busy"], 3, "states")
    eq([s["pid"] for s in report(t, "/sessions")["sessions"] if s["state"] == "asleep"], [None])
    eq([(s["asleep"], s["sessions"]) for s in report(t, "/status")["servers"]], [(1, 2)])
    text = t.conn(address=t.daemon.admin).request("GET", "/metrics").read().decode()
    for line in ('mcpgated_server_sessions_asleep{server="main"} 1', "mcpgated_sessions_put_to_sleep_total 1"):
        ok(line in text, line, text)
    shown = subprocess.run([harness.BIN + "/mcpgatectl", "--socket", t.daemon.admin, "status"], capture_output=True, text=True, timeout=20)
    ok(shown.returncode == 0, "status", shown)
    row = [line.split() for line in shown.stdout.splitlines() if "ASLEEP" in line or line.startswith("main")]
    eq(row[1][row[0].index("ASLEEP")], "1", shown.stdout)
    shown = subprocess.run([harness.BIN + "/mcpgatectl", "--socket", t.daemon.admin, "sessions"], capture_output=True, text=True, timeout=20)
    eq(shown.stdout.split().count("asleep"), 1, shown.stdout)
    eq(call.final()["result"]["content"][0]["text"], "x")


@case(daemon=False, deadline=60)
def one_caller_holds_all(t):
    """bridging §1.9 SEC-16: one who opens as many sessions as there may be processes does not keep another one out."""
    t.start({"main": {"script": {}, "pool": {"max": 4}}}, AUTH)
    hers = [t.session(token=ALICE) for _ in range(4)]
    streams = [s.get() for s in hers]
    began = time.monotonic()
    eq(t.session(token=BOB).echo("in"), "in")
    within(began, 6, "his wait")
    streams[0].nothing(0.1)
    eq([s.echo("too") for s in hers], ["too"] * 4)


@case(daemon=False, deadline=60)
def shares_hold_while_others_wait(t):
    """bridging §1.9 (6): who keeps all processes busy gives what is more than half away as soon as it rests."""
    t.start({"main": {"script": {}, "pool": {"max": 4}}}, AUTH)
    hers = [t.session(token=ALICE) for _ in range(4)]
    until = time.monotonic() + 5
    calls = [s.start_do(["sleep", 0.3], ["text", "x"]) for s in hers]
    waiting = t.session(token=BOB, check=False).started
    while time.monotonic() < until:  # none of hers ever rests for two seconds
        for i, s in enumerate(hers):
            calls[i].final(15)
            calls[i] = s.start_do(["sleep", 0.3], ["text", "x"])
        if asleep(t):
            break
    ok(asleep(t), "nothing was given away while she worked")
    ok("result" in waiting.final(10), "he got his process")
    t.will_end(waiting, "/main/mcp")
    t.sessions[-1].token = BOB
    eq([c.final(15)["result"]["content"][0]["text"] for c in calls], ["x"] * 4, "hers were not cut short")


@case(daemon=False, deadline=60)
def overlapping_calls_are_no_excuse(t):
    """bridging §1.9 (6): one whose sessions always have a call in flight gives what is more than half away; nothing is cut short."""
    t.start({"main": {"script": {}, "pool": {"max": 4}}}, AUTH)
    hers = [t.session(token=ALICE) for _ in range(4)]
    calls = [[] for _ in hers]
    waiting = None
    until = time.monotonic() + 9
    while time.monotonic() < until and not asleep(t):
        for s, of_session in zip(hers, calls):
            of_session.append(s.start_do(["sleep", 0.6], ["text", "x"]))
        if waiting is None:
            waiting = t.session(token=BOB, check=False).started
        time.sleep(0.3)
        for of_session in calls:
            while len(of_session) > 2:
                eq(of_session.pop(0).final(15)["result"]["content"][0]["text"], "x")
    eq(asleep(t), 1, "sessions that gave their process away")
    ok("result" in waiting.final(10), "he got his process")
    t.will_end(waiting, "/main/mcp")
    t.sessions[-1].token = BOB
    for of_session in calls:
        eq([c.final(15)["result"]["content"][0]["text"] for c in of_session], ["x"] * len(of_session))


@case(daemon=False, deadline=40)
def busy_ones_are_waited_for(t):
    """bridging §1.9 (3): nothing is taken from who works; the wait has an end, with 503 and Retry-After."""
    t.start({"main": {"script": {}, "pool": {"max": 1, "queue_timeout": "1s"}}})
    a = t.session(source=HERE)
    call = a.start_do(["sleep", 3], ["text", "done"])
    e = t.session(source=THERE, check=False).started
    eq((e.final(10)["error"]["data"]["reason"], e.status), ("overloaded", 503))
    eq(e.response.header("retry-after"), "2", "nobody knows when the call ends")
    eq(call.final(15)["result"]["content"][0]["text"], "done")
    eq(asleep(t), 0)


@case(daemon=False, deadline=40)
def all_servers_give_way(t):
    """bridging §1.9 (8): at limits.processes: sessions of other servers, and pools in both directions."""
    t.start({"main": {"script": {}}, "other": {"script": {}}, "pool": {"script": {}, "isolation": "shared"}},
            {"limits": {"processes": 1}})
    a = t.session("main", source=HERE)
    b = t.session("other", source=THERE)
    shared = t.session("pool", source=HERE)
    eq(asleep(t), 2)
    for s in (b, shared, a):
        eq(s.echo("on"), "on")


@case(daemon=False, deadline=40)
def sleep_may_come_by_itself(t):
    """product §4 pool.sleep_after: what is idle is stopped although nobody waits."""
    t.start({"main": {"script": {}, "pool": {"sleep_after": "500ms"}}})
    s = t.session()
    first = s.pid()
    wait_for(lambda: not t.daemon.children("main"), 5, "nothing runs")
    ok(s.pid() != first, "another process")


@case(daemon=False, deadline=40)
def who_is_gone_sleeps(t):
    """product §4 pool.sleep_when_gone: a client that closes its stream, as SDKs do, keeps no process; those who stay, do."""
    t.start({"main": {"script": {}, "pool": {"sleep_when_gone": "500ms"}}})
    there, silent, gone = t.session(), t.session(), t.session()
    kept = there.get()
    gone.get().close()
    first, others = gone.pid(), {there.pid(), silent.pid()}
    wait_for(lambda: len(t.daemon.children("main")) == 2, 10, "one process less")
    eq({there.pid(), silent.pid()}, others)
    ok(gone.pid() != first, "another process")
    kept.close()
    wait_for(lambda: t.daemon.children("main") == [silent.pid()], 10, "it goes as well")


@case(daemon=False, deadline=60)
def http_sse_sleeps_too(t):
    """bridging §1.9: a session of HTTP+SSE, whose stream is always open, gives way last, and goes on."""
    t.start({"main": {"script": {}, "pool": {"max": 1}}})
    sse = t.sse()
    b = t.session(source=THERE)
    eq(b.echo("b"), "b")
    eq(sse.ask("tools/call", {"name": "echo", "arguments": {"text": "a"}})["result"]["content"][0]["text"], "a")


# ---- sessions ---------------------------------------------------------------

@case(daemon=False, deadline=40)
def sessions_make_room(t):
    """FRONT-SESS-08: at limits.sessions the one that nobody has used for longest ends, of the caller who has most; no other."""
    t.start({"main": {"script": {}, "isolation": "shared"}}, {"limits": {"sessions": 3}})
    old = t.session(source=THERE)  # idle for longest, but its caller has no other
    left, listens = t.session(source=HERE), t.session(source=HERE)
    stream = listens.get()
    e = t.session(source=THERE, check=False).started
    eq((e.final()["error"]["data"]["reason"], e.status), ("overloaded", 503), "all were used a moment ago")
    ok(e.response.header("retry-after") in ("2", "3"), "Retry-After", e.response.headers)
    time.sleep(IDLE + 0.1)
    new = t.session(source=THERE)
    eq((new.echo("new"), old.echo("old"), listens.echo("listens")), ("new", "old", "listens"))
    eq(left.post(mcp.request(1, "ping")).status, 404, "it has ended")
    left.id = None
    stream.nothing(0.1)
    t.daemon.wait_log("session_end", "reason=reclaimed")


@case(daemon=False, deadline=40)
def own_sessions_make_room(t):
    """FRONT-SESS-08: at limits.sessions_per_principal one's own session makes room, and nobody else's."""
    t.start({"main": {"script": {}, "isolation": "shared"}}, dict(AUTH, limits={"sessions_per_principal": 2}))
    his = t.session(token=BOB)
    hers = [t.session(token=ALICE) for _ in range(2)]
    time.sleep(IDLE + 0.1)
    eq(hers[0].echo("used"), "used")
    hers.append(t.session(token=ALICE))
    eq(hers[1].post(mcp.request(1, "ping")).status, 404)
    hers[1].id = None
    eq([s.echo("x") for s in (his, hers[0], hers[2])], ["x"] * 3)


@case(daemon=False, deadline=40)
def refusals_say_when(t):
    """requirements §19: Retry-After is when it is worth trying: the back-off, or when somebody's process may be had."""
    t.start({"main": {"script": {}, "pool": {"max": 1, "reclaim": "never"}},
             "fails": {"script": {"start": [["exit", 3]]}, "start": {"backoff": "40s..60s", "give_up_after": 1}}},
            {"sessions": {"idle_timeout": "2m"}})

    def said(server):
        e = t.session(server, check=False).started
        e.final(20)
        eq(e.status, 503)
        return int(e.response.header("retry-after"))
    t.session("main")
    ok(119 <= said("main") <= 121, "until a session ends that nobody uses")
    ok(30 <= said("fails") <= 41, "until the next try")
    ok(28 <= said("fails") <= 41, "until the next try")


@case(daemon=False, deadline=40)
def calls_are_not_told_when_sessions_end(t):
    """requirements §19: a refused call of a session says when a process may be free, not when there is room for a session."""
    t.start({"main": {"script": {}, "isolation": "shared", "pool": {"max": 1, "requests_per_process": 1, "queue": 0}}},
            {"limits": {"sessions": 2}})
    a, b = t.session(source=HERE), t.session(source=THERE)
    call = a.start_do(["sleep", 2], ["text", "x"])
    wait_for(lambda: any("tools/call" in methods(t, pid) for pid in t.daemon.children("main")), 5, "the call is there")
    eq(b.ask("ping")["result"], {})
    e = b.start_do(["text", "y"])
    eq((e.final()["error"]["data"]["reason"], e.status, e.response.header("retry-after")), ("overloaded", 503, "2"))
    eq(call.final(10)["result"]["content"][0]["text"], "x")


@case(daemon=False, deadline=60)
def both_kinds_wait(t):
    """bridging §1.9, SEC-10: one caller waits with a session and with a request of 2026-07-28; each is counted until it is served."""
    t.start({"main": {"script": {}, "pool": {"max": 1, "queue": 1}}}, AUTH)
    gateway = t.daemon.gateway
    busy = t.session(token=ALICE)
    call = busy.start_do(["wait_cancel"], ["text", "x"])
    body = c80_stateless.message("tools/call", {"name": "echo", "arguments": {"text": "modern"}})
    modern = c80_stateless.begin(t, "main", body, c80_stateless.fields(body) + mcp.bearer(ALICE))
    wait_for(lambda: report(t, "/status")["servers"][0]["waiting"] == 1, 3, "the request")
    waiting = t.session(token=ALICE, check=False).started
    wait_for(lambda: report(t, "/status")["servers"][0]["waiting"] == 2, 3, "the session")
    refused = t.session(token=ALICE, check=False).started
    eq(refused.final()["error"]["data"]["reason"], "overloaded", "the queue is full")
    busy.cancel(call.id)
    busy.delete()
    ok("result" in waiting.final(20), "the session")
    mcp.Stub(t.daemon.address, "/main/mcp", waiting.response.header("mcp-session-id"), ALICE).end_quietly()
    eq(c80_stateless.messages_of(modern.response())[-1]["result"]["content"][0]["text"], "modern")
    eq(t.session(token=BOB).echo("on"), "on")
    eq(t.daemon.find_gateway(), gateway, "the gateway")
