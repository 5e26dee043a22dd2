# SPDX-License-Identifier: Apache-2.0
"""The processes of sessions outlive a gateway that dies: bridging §4.2."""
import base64
import fcntl
import hashlib
import json
import os
import re
import signal
import struct
import termios

import mcp
from c100_reload import reload
from c70_admin import admin, metrics
from c106_sessions_kept import Daemons, kill_gateway, lines_saved, servers
from c108_endpoints import call, over, text_of
from harness import case, eq, is_alive, ok, wait_for


def inherited(t):
    return [int(re.search(r"pid=(\d+)", line).group(1)) for line in t.daemon.log("process_inherited")]


def held(t, pid):
    t.daemon.wait_log("upstream_state", "pid=%d " % pid, "to=warm")


def piped(pid):
    """Bytes that wait in its stdin."""
    fd = os.open("/proc/%d/fd/0" % pid, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    finally:
        os.close(fd)


def begin(t, **more):
    daemons = Daemons(t)
    daemons.begin(**more)
    s = t.session(caps={"sampling": {}})
    return daemons, s, s.pid()


def noted(daemons, count=1):
    """As many sessions are on the disk: whenever the gateway dies now, they go on."""
    wait_for(lambda: len(daemons.saved()) == count, 10, "the sessions are noted")


def events(daemon, pid):
    with open([os.path.join(daemon.records, n) for n in os.listdir(daemon.records) if n.endswith("-%d.ev" % pid)][0]) as f:
        return [line.split(" ", 1)[1].strip() for line in f]


@case(daemon=False, deadline=40)
def a_process_goes_on(t):
    """The same process, again and again. It is not initialized anew, and tells and asks what it likes; its session ends it."""
    daemons, s, pid = begin(t)
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    noted(daemons)
    for round in range(1, 3):
        kill_gateway(t)
        eq(s.pid(), pid)
        wait_for(lambda: inherited(t) == [pid] * round, 10, "it is told")
        noted(daemons)
        stream = s.get()
        s.do(["notify", "notifications/resources/updated", {"uri": "r:a"}], ["text", "x"])
        wait_for(lambda: stream.next().get("method") == "notifications/resources/updated", 10, "the update")
        stream.conn.close()
        call = s.start_do(["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}], ["text", "asked"])
        s.respond(call.next()["id"], {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"})
        eq(call.final()["result"]["content"][0]["text"], "asked")
    values = metrics(admin(t).request("GET", "/metrics").read())
    eq([values["mcpgated_%s_total" % name] for name in ("children_inherited", "children", "sessions_continued")], [1, 0, 1])
    read = [json.loads(line) for line in daemons.daemon.record(pid).splitlines()]
    eq([m.get("method") for m in read].count("initialize"), 1, "one handshake")
    ids = [m["id"] for m in read if "method" in m and "id" in m]
    eq(len(ids), len(set(ids)), "no id twice")
    eq(s.delete().status, 204)
    wait_for(lambda: not is_alive(pid), 10, "its end")


@case(daemon=False, deadline=40)
def what_was_in_flight(t):
    """The server works on; its late answer is nobody's, what it asks meanwhile comes through, and no call is sent twice."""
    daemons, s, pid = begin(t)
    noted(daemons)
    gone = s.start_do(["sleep", 1.5], ["text", "late"])
    wait_for(lambda: daemons.daemon.record(pid).count(b'"steps"') == 2, 10, "it is there")
    kill_gateway(t)
    call = s.start_do(["sleep", 2], ["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}], ["text", "mine"])
    s.respond(call.next()["id"], {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"})
    eq(call.final()["result"]["content"][0]["text"], "mine")
    eq(s.pid(), pid)
    eq(daemons.daemon.record(pid).count(b'"late"'), 1, "not twice")
    gone.conn.close()


@case(daemon=False, deadline=40)
def what_it_writes_meanwhile(t):
    """What waits in the pipe while the process is held comes to the client: messages, and questions, which get their answers."""
    daemons, s, pid = begin(t)
    noted(daemons)
    gone = s.start_do(["sleep", 0.5], ["log", "warning", "meanwhile"], ["send", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}],
                      ["stderr", "all is written\n"], ["text", "late"])
    wait_for(lambda: daemons.daemon.record(pid).count(b'"steps"') == 2, 10, "it is there")
    kill_gateway(t)
    t.daemon.wait_log("child_stderr", "all is written")
    stream = s.get()
    seen = []
    wait_for(lambda: seen.append(stream.next()) or seen[-1].get("method") == "sampling/createMessage", 10, "the question")
    eq([m["params"]["data"] for m in seen if m["method"] == "notifications/message"], ["meanwhile"])
    s.respond(seen[-1]["id"], {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"})
    eq(s.do_text(["wait", "q"], ["text", "@PID@"]), str(pid))
    gone.conn.close()


@case(daemon=False, deadline=40)
def one_without_ping(t):
    """An error is an answer, too."""
    daemons, s, pid = begin(t, script={"on": {"ping": [["error", -32601, "no such method"]]}})
    noted(daemons)
    kill_gateway(t)
    eq(s.pid(), pid)


@case(daemon=False, deadline=40)
def a_message_half_written(t):
    """The gateway dies while a message is on its way into a full pipe: it is ended, and the next ones are read."""
    daemons, s, pid = begin(t)
    noted(daemons)
    s.do(["text", "x"], ["block", 3])
    gone = s.start("tools/call", {"name": "echo", "arguments": {"text": "z" * (2 << 20)}})
    wait_for(lambda: piped(pid) >= 1 << 18, 10, "the pipe is full")
    kill_gateway(t)
    eq(s.pid(), pid)
    ok([e for e in events(daemons.daemon, pid) if e.startswith("garbage")], "what was cut")
    t.expect_invalid("no message", "what was cut")
    eq(s.echo("on"), "on")
    gone.conn.close()


@case(daemon=False, deadline=60)
def one_that_does_not_answer(t):
    """It hangs: soon the session goes on with another one, and the call that waited for it is served."""
    daemons, s, pid = begin(t, start={"timeout": "2s"})
    noted(daemons)
    s.do(["text", "x"], ["deaf"])
    kill_gateway(t)
    ok(s.pid() != pid, "another one")
    eq(inherited(t), [])
    wait_for(lambda: not is_alive(pid), 20, "its end")
    ok(not t.daemon.log("server_failing"), "that is no failure of the server")


@case(daemon=False, deadline=40)
def one_that_ends_meanwhile(t):
    """Between two gateways, or while it is held: the session goes on with another one."""
    daemons, s, pid = begin(t)
    noted(daemons)
    s.do(["text", "x"], ["sleep", 0.3], ["exit", 0])
    kill_gateway(t)
    wait_for(lambda: not is_alive(pid), 10, "its end")
    again = s.pid()
    ok(again != pid, "another one")
    noted(daemons)
    kill_gateway(t)
    held(t, again)
    os.kill(again, signal.SIGKILL)
    wait_for(lambda: not is_alive(again), 10, "its end")
    ok(s.pid() not in (pid, again), "another one")


@case(daemon=False, deadline=40)
def nobody_comes_back(t):
    """A process is held as long as for a client that has closed its stream, and asked to end in the usual way."""
    daemons, s, pid = begin(t, pool={"sleep_when_gone": "1s"})
    noted(daemons)
    kill_gateway(t)
    wait_for(lambda: not is_alive(pid), 15, "its end")
    ok("eof" in events(daemons.daemon, pid), "by its stdin")
    ok(s.pid() != pid, "the session has only slept")


@case(daemon=False, deadline=40)
def who_needs_the_place(t):
    """A new client's process takes the place of one that is held for nobody so far."""
    daemons, s, pid = begin(t, pool={"max": 1})
    noted(daemons)
    kill_gateway(t)
    held(t, pid)
    other = t.session()
    ok(other.pid() != pid, "its own")
    wait_for(lambda: not is_alive(pid), 10, "its end")


@case(daemon=False, deadline=60)
def no_more_than_is_needed(t):
    """One place is needed: one gives way, however many calls wait for it; and none where sessions keep their processes for life."""
    daemons, s, pid = begin(t, pool={"max": 3}, stop={"grace": "1s"})
    others = [t.session() for _ in range(2)]
    pids = [pid] + [o.pid() for o in others]
    noted(daemons, 3)
    kill_gateway(t)
    for p in pids:
        held(t, p)
    new = t.session()
    calls = [new.start("tools/call", {"name": "echo", "arguments": {"text": "x"}}) for _ in range(6)]
    for call in calls:
        eq(call.final()["result"]["content"][0]["text"], "x")
    eq(len([p for p in pids if is_alive(p)]), 2)
    daemons.stop()
    daemons.begin(pool={"max": 1, "reclaim": "never"})
    s = t.session()
    pid = s.pid()
    wait_for(lambda: len(daemons.saved()) >= 1, 10, "noted")
    kill_gateway(t)
    held(t, pid)
    eq(t.session(check=False).started.status, 503)
    eq(s.pid(), pid)


@case(daemon=False, deadline=60)
def one_that_may_be_the_cause(t):
    """At the third death within a minute its process goes, not the service, and not its session."""
    daemons, s, pid = begin(t)
    noted(daemons)
    for _ in range(2):
        kill_gateway(t)
        eq(s.pid(), pid)
        noted(daemons)
    kill_gateway(t)
    wait_for(lambda: not is_alive(pid), 10, "its end")
    ok(s.pid() != pid, "another one")


@case(daemon=False, deadline=40)
def two_of_everything(t):
    """Each session gets its own process, of its own server, and a shared one is shared again; only that of a session that has ended ends."""
    daemons = Daemons(t)
    both = dict(servers(), other={"script": {}, "isolation": "session"}, all={"script": {}, "isolation": "shared"})
    daemons.daemon = t.daemon = t.start(both, env={"XDG_STATE_HOME": daemons.state})
    sessions = [t.session(name) for name in ("main", "other", "main", "other")]
    shared = t.session("all")
    pids, of_all = [s.pid() for s in sessions], shared.pid()
    eq(len(set(pids)), 4)
    noted(daemons, 5)
    eq(sessions[3].delete().status, 204)
    noted(daemons, 4)
    kill_gateway(t)
    eq([s.pid() for s in sessions[:3]], pids[:3])
    eq(shared.pid(), of_all)
    wait_for(lambda: not is_alive(pids[3]), 10, "that of the session that has ended")


@case(daemon=False, deadline=40)
def a_server_that_is_changed(t):
    """Held for its session when a reload changes its server: the session goes on with the new one, and that process ends."""
    daemons, s, pid = begin(t)
    noted(daemons)
    kill_gateway(t)
    held(t, pid)
    reload(t, servers(env={"CHANGED": "1"}))
    wait_for(lambda: not is_alive(pid), 10, "its end")
    eq(s.post(mcp.request(1, "ping")).status, 200)
    ok(s.pid() != pid, "another one")


@case(daemon=False, deadline=40)
def a_modern_server(t):
    """Behind a session of an older client: it is asked again what it is, and goes on."""
    daemons = Daemons(t)
    daemons.daemon = t.daemon = t.start({"main": {"script": {"era": "modern"}, "isolation": "session", "era": "modern"}},
                                        env={"XDG_STATE_HOME": daemons.state})
    s = t.session()
    pid = s.pid()
    noted(daemons)
    kill_gateway(t)
    eq(s.pid(), pid)
    wait_for(lambda: inherited(t) == [pid], 10, "it is told")


@case(daemon=False, deadline=40)
def the_daemon_ends(t):
    """Held by nobody or by the gateway: with the daemon all ends."""
    daemons, s, pid = begin(t)
    noted(daemons)
    kill_gateway(t)
    held(t, pid)
    daemons.stop()
    wait_for(lambda: not is_alive(pid), 5, "its end")


LEGS = {"a": {"script": {}}, "b": {"script": {}}, "c": {"script": {}, "isolation": "shared"}}


def begin_endpoint(t, count=3):
    """A session of an endpoint over LEGS, and the processes that it has to itself; all is on the disk."""
    daemons = Daemons(t)
    daemons.daemon = t.daemon = t.start(LEGS, over(*LEGS), env={"XDG_STATE_HOME": daemons.state})
    s = t.session("all", caps={"sampling": {}})
    pids = pids_of_legs(s)
    noted(daemons, count)
    return daemons, s, pids


def pids_of_legs(s):
    return [int(text_of(call(s, name + "__do"))) for name in "ab"]


@case(daemon=False, deadline=60)
def legs_of_an_endpoint(t):
    """END-12: so do those that an endpoint's session has to itself, with what it subscribed to and is asked; the session ends them all."""
    daemons, s, pids = begin_endpoint(t)
    shared = text_of(call(s, "c__do"))
    eq(s.ask("resources/subscribe", {"uri": "res://a"})["result"], {})
    wait_for(lambda: sum("res://a" in line for line in daemons.saved()) == 2, 10, "the endpoint's, and the leg's")
    for round in range(1, 3):
        kill_gateway(t)
        eq(pids_of_legs(s), pids)
        wait_for(lambda: all(inherited(t).count(pid) == round for pid in pids), 10, "it is told")
        noted(daemons, 3)
        stream = s.get()
        call(s, "a__do", ["notify", "notifications/resources/updated", {"uri": "res://a"}], ["text", "x"])
        wait_for(lambda: stream.next().get("method") == "notifications/resources/updated", 10, "the update")
        stream.conn.close()
        question = s.start("tools/call", {"name": "b__do", "arguments": {"steps": [
            ["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}], ["text", "asked"]]}})
        s.respond(question.next()["id"], {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"})
        eq(text_of(question.final()), "asked")
        eq(text_of(call(s, "c__do")), shared)
    for pid in pids:
        methods = [m.get("method") for m in t.daemon.messages(pid)]
        eq([methods.count(name) for name in ("initialize", "notifications/initialized")], [1, 1], "one handshake")
    eq(s.delete().status, 204)
    wait_for(lambda: not any(is_alive(pid) for pid in pids), 10, "their end")
    noted(daemons, 0)


@case(daemon=False, deadline=60)
def a_leg_is_nobody_elses(t):
    """END-12 FRONT-SESS-04: no id leads to it but that of its endpoint's session, and at its own server nothing does."""
    daemons, s, pids = begin_endpoint(t)
    lines = daemons.saved()
    eq([line[:6] for line in lines], ['{"id":', '{"leg"', '{"leg"'], "sessions come first")
    ok(not any(s.id in line for line in lines), "no id")
    kill_gateway(t)
    digest = base64.urlsafe_b64encode(hashlib.sha256(("%s/a" % s.id).encode()).digest()).decode().rstrip("=")
    ok(any(digest in line for line in lines), "so it is named")
    for id in (s.id, s.id + "/a", digest, digest[:len(s.id)]):
        response = t.conn().request("POST", "/a/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH), ("Mcp-Session-Id", id)], mcp.encode(mcp.request(1, "ping")))
        ok(response.status in (400, 404), id, response.status)
    eq(pids_of_legs(s), pids)


@case(daemon=False, deadline=60)
def a_leg_whose_server_changes(t):
    """END-12: the session goes on with the new one beside the other's process; and one that is removed meanwhile is gone."""
    daemons, s, pids = begin_endpoint(t)
    kill_gateway(t)
    held(t, pids[0])
    reload(t, dict(LEGS, a={"script": {}, "env": {"CHANGED": "1"}}))
    wait_for(lambda: not is_alive(pids[0]), 10, "its end")
    now = pids_of_legs(s)
    ok(now[0] != pids[0], "another one")
    eq(now[1], pids[1])


def pools_noted(daemons, count):
    def lines():
        return [line for line in lines_saved(daemons.state) if line.startswith('{"pool":')]
    wait_for(lambda: len(lines()) == count, 10, "pools are noted")
    return lines()


@case(daemon=False, deadline=60)
def a_shared_server_that_is_changed(t):
    """What the one before the reload said of itself is no word of the next one's, also while the former is still used."""
    daemons = Daemons(t)
    daemons.begin("shared", script={"caps": {"tools": {}}})
    old = t.session()
    pools_noted(daemons, 1)
    reload(t, {"main": {"script": {"caps": {"tools": {}, "prompts": {}}}, "isolation": "shared"}})
    new = t.session()
    pid = new.pid()
    ok(old.pid() != pid, "another one")
    wait_for(lambda: '"prompts"' in pools_noted(daemons, 1)[0], 10, "what it is now")
    kill_gateway(t)
    late = t.session()
    eq((late.pid(), sorted(late.result["result"]["capabilities"])), (pid, sorted(new.result["result"]["capabilities"])))
    ok("prompts" in late.result["result"]["capabilities"], "what it is")


@case(daemon=False, deadline=60)
def a_shared_process_goes_on(t):
    """Killed in the middle of calls of two: they end, the process goes on, and what it answers late is for nobody."""
    daemons = Daemons(t)
    daemons.begin("shared")
    one, two = t.session(version=mcp.A), t.session()
    pid = one.pid()
    eq(one.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    wait_for(lambda: any("r:a" in line for line in daemons.saved()), 10, "the subscription is noted")
    pools_noted(daemons, 1)
    calls = [s.start_do(["sleep", 1], ["text", "late"]) for s in (one, two)]
    wait_for(lambda: [m.get("method") for m in t.daemon.messages(pid)].count("tools/call") == 3, 10, "both are there")
    kill_gateway(t)
    for call in calls:
        call.conn.close()
    eq([two.pid(), one.pid()], [pid, pid])
    stream = one.get()
    two.do(["notify", "notifications/resources/updated", {"uri": "r:a"}], ["text", "x"])
    wait_for(lambda: stream.next().get("method") == "notifications/resources/updated", 10, "the update")
    values = metrics(admin(t).request("GET", "/metrics").read())
    eq([values["mcpgated_%s_total" % name] for name in ("children_inherited", "children")], [1, 0])
    eq(t.session().result["result"]["serverInfo"], two.result["result"]["serverInfo"], "who comes now")
    daemons.again("shared")
    daemons.move(one)
    ok(one.pid() != pid, "not over the end of the daemon")
    eq(len(pools_noted(daemons, 1)), 1)


@case(daemon=False, deadline=60)
def shared_processes_that_nobody_needs(t):
    """Held as long as an idle one of a pool would be; unless it is one that a pool is to have at any time."""
    daemons = Daemons(t)
    pool = {"idle_timeout": "2s"}
    servers = {"main": {"script": {}, "isolation": "shared", "pool": pool}, "least": {"script": {}, "isolation": "shared", "pool": dict(pool, min=1)}}
    daemons.daemon = t.daemon = t.start(servers, env={"XDG_STATE_HOME": daemons.state})
    s, pids = t.session("least"), [t.session(name).pid() for name in servers]
    pools_noted(daemons, 2)
    kill_gateway(t)
    held(t, pids[0])
    wait_for(lambda: not is_alive(pids[0]), 15, "its end")
    eq(s.pid(), pids[1])
    pools_noted(daemons, 1)


@case(daemon=False, deadline=60)
def what_ends_before_it_is_needed(t):
    """END-12: a session of an endpoint that is ended before it has called again takes the processes of its legs with it."""
    daemons, s, pids = begin_endpoint(t)
    kill_gateway(t)
    for pid in pids:
        held(t, pid)
    eq(s.delete().status, 204)
    wait_for(lambda: not any(is_alive(pid) for pid in pids), 10, "their end")
    noted(daemons, 0)


@case(daemon=False, deadline=60)
def kept_from_now_on(t):
    """`sessions.persist` off and on again by reloads: what is shared then goes on as well."""
    daemons = Daemons(t)
    daemons.begin("shared")
    s = t.session()
    pid = s.pid()
    pools_noted(daemons, 1)
    for config in ({"sessions": {"persist": False}}, {}):
        reload(t, config=config)
        pools_noted(daemons, 1 - len(config))
    noted(daemons)
    kill_gateway(t)
    eq(s.pid(), pid)
