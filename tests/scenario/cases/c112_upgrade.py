# SPDX-License-Identifier: Apache-2.0
"""Another program takes the place of the one that runs (mcpgatectl upgrade): architecture.md, "Upgrades"; bridging §4.2."""
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import threading
import time

import c60_tls
import harness
import issuer
import wire
from c42_confine import cgroups_of
from c62_oauth import ORIGIN
from c70_admin import get
from c71_ctl import ctl
from c80_stateless import do
from c100_reload import write
from c108_endpoints import over
from c110_processes_kept import LEGS, held, pids_of_legs
from harness import case, eq, fd_count, is_alive, ok, wait_for

PROGRAMS = ("mcpgated", "mcpgated-demo", "mcpgated-gateway", "mcpgated-fetch", "mcpgated-reaper", "mcpgated-remote", "mcpgated-store")
SERVERS = {"main": {"script": {}}}


def start(t, servers=None, config=None, caps=None, **more):
    """A daemon, a session of its first server, and the process that the session has to itself."""
    t.start(servers or SERVERS, config, **more)
    s = t.session(next(iter(t.daemon.servers)), caps=caps)
    return s, s.pid()


def upgraded(t, count=1, gateways=None):
    """It is over; the harness knows the new gateway."""
    wait_for(lambda: len(t.daemon.log("upgraded")) == count, 10, "the new program")
    wait_for(lambda: len(t.daemon.log("gateway_ready")) >= (gateways or count + 1), 10, "it serves")
    t.daemon.gateway = t.daemon.find_gateway()


def upgrade(t, count=1, status=0):
    said = ctl(t, "upgrade", status=status)
    if status == 0:
        upgraded(t, count)
    return said


def begin_upgrade(t):
    """Returns while it waits for the calls in flight."""
    def run():
        answers.append(t.conn(address=t.daemon.admin).request("POST", "/upgrade").read())
    answers = []
    thread = threading.Thread(target=run)
    thread.start()
    t.daemon.wait_log("gateway_state", "from=serving to=leaving")
    thread.join()
    ok(b'"used":true' in answers[0], "it is told before", answers)


def start_in_a_call(t, *steps, **more):
    """The same, and an upgrade that waits for this call."""
    s, pid = start(t, config={"drain_timeout": "20s"}, **more)
    call = s.start_do(*steps, ["text", "x"])
    begin_upgrade(t)
    return s, pid, call


@case(daemon=False, deadline=40)
def sessions_go_on(t):
    """The same processes, whose clients notice nothing; for systemd the same daemon; and nothing piles up."""
    s, pid = start(t, caps={"sampling": {}})
    other, keeper = t.session(), t.daemon.pid
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    fds, gateways = [], {t.daemon.gateway}
    for count in range(1, 4):
        out = upgrade(t, count)[0]
        ok(" runs now, in place of " in out, "what is said", out)
        eq([s.pid(), t.daemon.pid], [pid, keeper])
        gateways.add(t.daemon.gateway)
        fds.append(fd_count(keeper))
        stream = s.get()
        s.do(["notify", "notifications/resources/updated", {"uri": "r:a"}], ["text", "x"])
        wait_for(lambda: stream.next().get("method") == "notifications/resources/updated", 10, "the update")
        stream.conn.close()
    eq(len(gateways), 4, "gateways")
    eq(fds[0], fds[2], "descriptors")
    eq([m.get("method") for m in t.daemon.messages(pid)].count("initialize"), 1, "one handshake")
    ids = [m["id"] for m in t.daemon.messages(pid) if "method" in m and "id" in m]
    eq(len(ids), len(set(ids)), "no id twice")
    eq(other.pid(), other.pid())
    eq(s.delete().status, 204)
    wait_for(lambda: not is_alive(pid), 10, "its end")
    ok("processes=2" in t.daemon.log("upgraded")[-1], "both")
    t.daemon.base_fds = t.daemon.fds()


@case(daemon=False, deadline=40)
def calls_finish_first(t):
    """What is in flight is answered; who comes meanwhile waits, and is served by the new program."""
    s, pid = start(t, config={"drain_timeout": "20s"}, caps={"sampling": {}})
    conn = t.conn()
    call = s.start_do(["sleep", 1.5], ["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}], ["text", "asked"])
    eq(conn.request("GET", "/healthz").read(), b'{"status":"ok"}\n', "a connection that was there")
    begin_upgrade(t)
    question = call.next()
    late = s.start_do(["text", "@PID@"])  # on a connection of its own
    s.begin({"jsonrpc": "2.0", "id": question["id"], "result": {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"}},
            conn=conn)
    eq(call.final()["result"]["content"][0]["text"], "asked")
    upgraded(t)
    eq(late.final(20)["result"]["content"][0]["text"], str(pid))


@case(daemon=False, deadline=60)
def nobody_is_refused(t):
    """A connection at any moment is served."""
    s, pid = start(t)
    over, failed, served = threading.Event(), [], []

    def press():
        while not over.is_set():
            conn = None
            try:
                conn = wire.Conn(t.daemon.address)
                conn.request("GET", "/healthz").read()
                served.append(1)
            except Exception as e:  # whatever it is, it must not be
                failed.append(repr(e))
            finally:
                if conn:
                    conn.close()
    threads = [threading.Thread(target=press) for _ in range(3)]
    for thread in threads:
        thread.start()
    for count in range(1, 6):
        upgrade(t, count)
    over.set()
    for thread in threads:
        thread.join()
    eq([failed[:3], s.pid()], [[], pid])
    ok(len(served) > 50, "connections", len(served))


@case(daemon=False, deadline=40)
def refused(t):
    """What the new program says of the configuration comes to the operator; nothing has changed."""
    s, pid = start(t)
    with open(t.daemon.file, "a") as f:
        f.write("nonsense: 1\n")
    t.expect_error_log("upgrade_refused")
    err = upgrade(t, status=1)[1]
    ok("unknown key 'nonsense'" in err and "the program that runs goes on" in err, "why", err)
    write(t, dict(SERVERS), {"listen": [{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:%d" % blocked(t)}]})
    err = upgrade(t, status=1)[1]
    ok("Address already in use" in err, "why", err)
    eq([s.pid(), t.daemon.log("upgraded")], [pid, []])
    ctl(t, "upgrade", status=3, socket=os.path.join(t.directory(), "none"))


def blocked(t):
    """A port that somebody else has."""
    listener = socket.create_server(("127.0.0.1", 0))
    t.conns.append(listener)
    return listener.getsockname()[1]


@case(daemon=False, deadline=40)
def with_another_configuration(t):
    """The new program reads it: sockets that stay are the same, a server that is changed gets fresh processes, and one that is gone none."""
    s, pid = start(t, {"main": {}, "other": {}, "gone": {}})
    other, gone = t.session("other"), t.session("gone")
    pids = [pid, other.pid(), gone.pid()]
    port = t.daemon.address[1]
    write(t, {"main": {}, "other": {"script": {"changed": True}}},
          {"listen": [{"address": "127.0.0.1:0"}, {"address": "unix:" + os.path.join(t.daemon.dir, "s")}]})
    upgrade(t)
    eq([s.pid(), t.daemon.address[1]], [pids[0], port])
    ok(other.pid() != pids[1], "another process")
    eq(gone.post({"jsonrpc": "2.0", "id": 7, "method": "ping"}).status, 404)
    wait_for(lambda: not is_alive(pids[1]) and not is_alive(pids[2]), 10, "their ends")
    eq(len(t.daemon.log("process_not_taken")), 2)
    eq(t.conn(address=os.path.join(t.daemon.dir, "s")).request("GET", "/healthz").read(), b'{"status":"ok"}\n')
    t.daemon.base_fds = t.daemon.fds()


def start_beside(t, common):
    """The same, and the process of an HTTP+SSE session, which no later gateway has."""
    s, pid = start(t, {"main": {"script": {}}, "common": {"script": common}})
    client = t.sse("common")
    return s, pid, client, int(client.do_text(["text", "@PID@"]))


@case(daemon=False, deadline=40)
def what_is_not_inherited_ends_by_itself(t):
    """It sees the end of its stdin, as at any end."""
    s, pid, client, before = start_beside(t, {})
    upgrade(t)
    eq(s.pid(), pid)
    wait_for(lambda: not is_alive(before), 10, "its end")
    words = [word for _, word in t.daemon.life(before)]
    ok("eof" in words and "term" not in words, "its end", words)


@case(daemon=False, deadline=60)
def shared_processes_go_on(t):
    """Of everybody, and of one caller: with a call in flight to each, the same processes, which know no second handshake."""
    servers = {"all": {"script": {}, "isolation": "shared", "pool": {"requests_per_process": 1, "max": 2}},
               "own": {"script": {}, "isolation": "principal"}, "modern": {"script": {"era": "modern"}, "isolation": "shared", "era": "modern"}}
    t.start(servers, {"drain_timeout": "20s"})
    sessions = [t.session(name) for name in servers]
    pids = [s.pid() for s in sessions]
    calls = [s.start_do(["sleep", 1.5], ["text", "@PID@"]) for s in sessions]
    second = sessions[0].start_do(["sleep", 1], ["text", "@PID@"])
    begin_upgrade(t)
    eq([int(call.final()["result"]["content"][0]["text"]) for call in calls], pids)
    other = int(second.final()["result"]["content"][0]["text"])
    ok(other != pids[0], "a second one")
    upgraded(t)
    eq([s.pid() for s in sessions[1:]], pids[1:])
    calls = [sessions[0].start_do(["sleep", 1], ["text", "@PID@"]) for _ in range(2)]
    eq({int(call.final()["result"]["content"][0]["text"]) for call in calls}, {pids[0], other}, "both")
    new = t.session("all")
    eq(new.result["result"]["serverInfo"], sessions[0].result["result"]["serverInfo"])
    ok(new.pid() in (pids[0], other), "who comes now")
    upgrade(t, 2)
    eq([s.pid() for s in sessions[1:]], pids[1:])
    heard = [m.get("method") for m in t.daemon.messages(pids[2])]
    eq((heard.count("subscriptions/listen"), heard.count("notifications/cancelled")), (3, 2), "each gateway has ended its own")
    for pid in (pids[0], other, pids[1]):
        methods = [m.get("method") for m in t.daemon.messages(pid)]
        eq([methods.count(name) for name in ("initialize", "notifications/initialized")], [1, 1], "one handshake")


SLOW = {"init": [["sleep", 3], ["answer"]]}
TRIED = {"own": {"script": SLOW}, "common": {"script": SLOW, "isolation": "shared", "pool": {"min": 1, "max": 2}}}


@case(daemon=False, deadline=60)
def servers_that_are_tried_and_go_on(t):
    """start.try and pool.min start nothing where a process goes on, and no client waits for what they start."""
    t.start({name: dict(spec, start={"try": True}) for name, spec in TRIED.items()})
    for name in TRIED:
        t.daemon.wait_log("server_found", "server=%s " % name)
    sessions = [t.session(name) for name in TRIED]
    pids = [s.pid() for s in sessions]
    wait_for(lambda: sorted(t.daemon.children()) == sorted(pids), 10, "the others have ended")
    before = [t.daemon.started(name) for name in TRIED]
    upgrade(t)
    began = time.monotonic()
    eq([s.pid() for s in sessions], pids)
    harness.within(began, 2.5, "both calls")
    dies(t)
    os.kill(t.daemon.find_gateway(), signal.SIGCONT)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 3, 10, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    began = time.monotonic()
    eq([s.pid() for s in sessions], pids)
    harness.within(began, 2.5, "both calls")
    eq([t.daemon.started(name) for name in TRIED], before, "processes")


@case(daemon=False, deadline=60)
def whose_era_is_to_be_found_out(t):
    """A client of 2026-07-28 waits for no probe of a server of which a process goes on, whatever its era."""
    servers = {name: {"script": {"era": name}, "isolation": "shared", "pool": {"max": 1}} for name in ("legacy", "modern")}
    t.start(servers)
    pids = [do(t, name, ["text", "@PID@"])[-1]["result"]["content"][0]["text"] for name in servers]
    before = [t.daemon.started(name) for name in servers]
    upgrade(t)
    began = time.monotonic()
    eq([do(t, name, ["text", "@PID@"])[-1]["result"]["content"][0]["text"] for name in servers], pids)
    harness.within(began, 10, "both calls")
    eq([t.daemon.started(name) for name in servers], before, "processes")


@case(daemon=False, deadline=40)
def processes_that_stay(t):
    """One that ends neither with its stdin nor at SIGTERM is killed, and nobody waits for longer."""
    s, pid, client, stuck = start_beside(t, {"eof": "ignore", "term": "ignore"})
    upgrade(t)
    ok(not is_alive(stuck), "it is gone")
    eq(s.pid(), pid)


def installed(t):
    """A folder with the programs, which can be replaced."""
    folder = t.directory()
    for name in PROGRAMS:
        shutil.copy(os.path.join(harness.BIN, name), folder)
    return folder


def replace(folder, name, content=None):
    """By rename, as installers do it; None: it is gone."""
    path = os.path.join(folder, name)
    if content is None:
        os.unlink(path)
        return
    with open(path + ".new", "wb") as f:
        f.write(content)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def content(name):
    with open(os.path.join(harness.BIN, name), "rb") as f:
        return f.read()


@case(daemon=False, deadline=60)
def programs_that_cannot_take_over(t):
    """One that is missing, of a release without this, or that refuses: it is said, and nothing changes."""
    folder = installed(t)
    s, pid = start(t, program=os.path.join(folder, "mcpgated"))
    t.expect_error_log("upgrade_refused")
    for name, text, why in (("mcpgated", content("mcpgated").replace(b"mcpgated-handover", b"mcpgated-elsewhat"), "cannot take over"),
                            ("mcpgated", b"#!/bin/sh\nkill -9 $$\n", "signal 9"), ("mcpgated", None, "No such file"), ("mcpgated-gateway", None, "mcpgated-gateway")):
        replace(folder, name, text)
        err = upgrade(t, status=1)[1]
        ok(why in err, "why", err)
        replace(folder, name, content(name))
    eq([s.pid(), t.daemon.log("upgraded")], [pid, []])
    upgrade(t)
    eq(s.pid(), pid)


@case(daemon=False, deadline=60)
def a_new_gateway_that_cannot_start(t):
    """The program before goes on, with its own other programs; once all is mended, the next upgrade works."""
    folder = installed(t)
    s, pid = start(t, program=os.path.join(folder, "mcpgated"))
    gateway = t.daemon.gateway
    with open("/bin/false", "rb") as f:
        replace(folder, "mcpgated-gateway", f.read())
    t.expect_error_log("upgrade_failed")
    err = upgrade(t, status=1)[1]
    ok("the one before goes on" in err, "what is said", err)
    upgraded(t, 2, gateways=2)
    ok(t.daemon.gateway != gateway, "another gateway")
    eq([s.pid(), get(t, "/status")["upgrade"]], [pid, "failed"])
    ok("upgrade_failed" in ctl(t, "check", status=1)[0], "what there is to look at")
    replace(folder, "mcpgated-gateway", content("mcpgated-gateway"))
    ctl(t, "upgrade")
    upgraded(t, 3, gateways=3)
    eq([s.pid(), get(t, "/status")["upgrade"]], [pid, "done"])


@case(daemon=False, deadline=40)
def what_changes_meanwhile(t):
    """While calls end, the configuration is broken: the new program looks once more, and the one that runs goes on."""
    s, pid, call = start_in_a_call(t, ["sleep", 1])
    with open(t.daemon.file, "a") as f:
        f.write("nonsense: 1\n")
    t.expect_error_log("upgrade_failed")
    eq(call.final()["result"]["content"][0]["text"], "x")
    t.daemon.wait_log("upgrade_failed", "unknown key 'nonsense'")
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 10, "it serves")
    t.daemon.gateway = t.daemon.find_gateway()
    eq([s.pid(), t.daemon.log("upgraded")], [pid, []])


@case(daemon=False, deadline=90)
def many_processes(t):
    """With more than 1,000 descriptors; and under a gateway that has not taken over yet from one that has died, and has to make place."""
    folder, count, go = installed(t), 400, os.path.join(t.directory(), "go")
    t.start({"main": {"command": os.path.join(harness.BIN, "mcpgated-demo"), "pool": {"max": count}, "start": {"rate": 1000}}},
            {"limits": {"processes": count}, "log": {"level": "info"}}, program=os.path.join(folder, "mcpgated"))
    sessions = []
    for _ in range(count):
        sessions.append(t.session())
        while t.conns:
            t.conns.pop().close()
    def pids():
        return sorted(p["pid"] for p in get(t, "/processes")["processes"])
    before = pids()
    eq(len(before), count)
    upgrade(t)
    eq(pids(), before)
    replace(folder, "mcpgated", b'#!/bin/sh\nuntil [ -e "%s" ]; do sleep 0.1; done\nexec "%s/mcpgated" "$@"\n' % (go.encode(), harness.BIN.encode()))
    conn = t.conn(address=t.daemon.admin)
    conn.send(conn.head("POST", "/upgrade", [], 0))
    wait_for(lambda: len(t.daemon.log("admin_command")) == 2, 10, "the order")
    dies(t)
    open(go, "w").close()
    wait_for(lambda: len(t.daemon.log("upgrade")) == 2, 10, "the upgrade begins")
    os.kill(t.daemon.find_gateway(), signal.SIGCONT)
    upgraded(t, 2, gateways=3)
    wait_for(lambda: pids() == before, 10, "the same processes")
    sessions[0].ask("tools/list")


def dies(t):
    """The gateway; the next one does nothing yet."""
    starts = len(t.daemon.log("gateway_start"))
    t.expect_error_log("gateway_exit")
    os.kill(t.daemon.gateway, signal.SIGKILL)
    while len(t.daemon.log("gateway_start")) == starts:
        time.sleep(0.0005)
    os.kill(t.daemon.find_gateway(), signal.SIGSTOP)


@case(daemon=False, deadline=60)
def a_process_that_ends_meanwhile(t):
    """It is not handed over: its number may be another process's by then. The session gets a fresh one."""
    s, pid, client, slow = start_beside(t, {"eof": "ignore"})
    call = s.start_do(["sleep", 0.2], ["text", "x"])
    begin_upgrade(t)
    call.final()
    t.daemon.wait_log("gateway_stop")
    os.kill(pid, signal.SIGKILL)
    upgraded(t)
    ok("processes=0" in t.daemon.log("upgraded")[0], "what is handed over")
    ok(s.pid() != pid, "a fresh process")
    wait_for(lambda: not [p for p in get(t, "/processes")["processes"] if p["pid"] == pid], 10, "it is gone")


@case(daemon=False, deadline=60)
def as_an_ordinary_user(t):
    """Nobody may look into the keeper, not even its new program; and the operator's sockets are the same as before."""
    folder = installed(t)
    os.chmod(folder, 0o755)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    t.start({"main": {"command": os.path.join(folder, "mcpgated-demo")}}, {"admin": {"metrics": "127.0.0.1:0"}},
            program=os.path.join(folder, "mcpgated"), prefix=user, prepare=own)
    s = t.session()
    before, at = get(t, "/processes")["processes"][0]["pid"], t.daemon.log("listen")
    upgrade(t)
    s.ask("tools/list")
    eq([p["pid"] for p in get(t, "/processes")["processes"]], [before])
    eq(t.daemon.log("listen"), at, "no socket was opened anew")


@case(daemon=False, deadline=60)
def sockets_of_systemd(t):
    """Those that it has passed stay open over upgrades, also one that the configuration has no use for yet."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in "ab"]
    t.conns.extend(listeners)
    move = 'exec 3<&%d 4<&%d; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=a:b; exec "$@"' % tuple(l.fileno() for l in listeners)
    config = {"listen": [{"address": "systemd:a", "plaintext": True}], "hosts": ["127.0.0.1"], "auth": {"mode": "anonymous"}}
    s, pid = start(t, config=config, prefix=["bash", "-c", move, "bash"], keeps=[l.fileno() for l in listeners])
    upgrade(t, 1)
    write(t, dict(SERVERS), dict(config, listen=config["listen"] + [{"address": "systemd:b", "plaintext": True}]))
    upgrade(t, 2)
    for listener in listeners:
        eq(t.conn(address=listener.getsockname()).request("GET", "/healthz").read(), b'{"status":"ok"}\n')
    eq(s.pid(), pid)
    t.daemon.base_fds = t.daemon.fds()


def own(daemon):
    """Its files are that user's."""
    for path in (daemon.dir, daemon.records, daemon.file):
        os.chown(path, 65534, 65534)


@case(daemon=False, deadline=40)
def stopped_meanwhile(t):
    """A stop that comes while calls are waited for is one."""
    call = start_in_a_call(t, ["sleep", 1])[2]
    t.daemon.term()
    eq(call.final()["result"]["content"][0]["text"], "x")
    eq(t.daemon.wait(), 0)
    eq(t.daemon.log("upgraded"), [])


@case(daemon=False, deadline=40)
def a_gateway_that_dies_meanwhile(t):
    """The upgrade goes on without it."""
    s, pid, call = start_in_a_call(t, ["sleep", 5])
    t.expect_error_log("gateway_exit")
    os.kill(t.daemon.gateway, signal.SIGKILL)
    upgraded(t)
    call.conn.close()
    eq(s.pid(), pid)


QUESTION = ["ask", "q", "elicitation/create", {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}]


@case(daemon=False, deadline=40)
def calls_that_take_too_long(t):
    """drain_timeout: they fail, a question of the server's among them is answered, and nobody waits for longer. The process goes on."""
    s, pid = start(t, config={"drain_timeout": "1s"}, caps={"elicitation": {}})
    other = t.session()
    asking, away = s.start_do(QUESTION, ["text", "@q@"]), other.start_do(["progress", 1], ["sleep", 6], ["text", "x"], token="p")
    eq([one.next()["method"] for one in (asking, away)], ["elicitation/create", "notifications/progress"])
    away.conn.close()
    began, answers = time.monotonic(), []

    def read():
        answers.append(asking.final())
        asking.conn.close()
    reader = threading.Thread(target=read)
    reader.start()
    upgrade(t)
    harness.within(began, 3, "the upgrade")
    reader.join()
    for answer in (answers[0], other.resume(away.last_id).final()):
        eq(answer["error"]["data"]["reason"], "draining")
    eq(s.pid(), pid)
    wait_for(lambda: b'"action":"cancel"' in t.daemon.record(pid), 10, "the answer to the question")


@case(daemon=False, deadline=40)
def questions_of_calls(t):
    """While the client of a call is asked something, its answer may come on a new connection, and nobody else has to wait for that."""
    s, pid = start(t, config={"drain_timeout": "20s"}, caps={"elicitation": {}})
    other = t.session()
    call = s.start_do(QUESTION, ["text", "answered"])
    question = call.next()
    begin_upgrade(t)
    began = time.monotonic()
    for n in range(3):
        eq(other.echo("meanwhile"), "meanwhile")
        t.session().echo("a new one")
    eq(t.daemon.log("upgraded"), [], "it waits for the answer")
    s.respond(question["id"], {"action": "accept", "content": {}})
    eq(call.final()["result"]["content"][0]["text"], "answered")
    upgraded(t)
    harness.within(began, 8, "the upgrade")
    eq(s.pid(), pid)


@case(daemon=False, deadline=40)
def questions_that_nobody_answers(t):
    """Who comes in the last quarter of drain_timeout waits for the new program; the call fails in time, and nothing else does."""
    s, pid = start(t, config={"drain_timeout": "2s"}, caps={"elicitation": {}})
    other, over, failed, served = t.session(), threading.Event(), [], []

    def press():
        while not over.is_set():
            try:
                other.echo("x")
                served.append(len(t.daemon.log("upgraded")))
            except Exception as e:
                failed.append(repr(e))
    call = s.start_do(QUESTION, ["text", "x"])
    call.next()
    thread = threading.Thread(target=press)
    thread.start()
    upgrade(t)
    over.set()
    thread.join()
    eq((call.final()["error"]["data"]["reason"], failed), ("draining", []))
    ok(served.count(0) > 10, "calls meanwhile", len(served))
    eq(s.pid(), pid)


@case(daemon=False, deadline=40)
def questions_that_are_open(t):
    """One that belongs to no call is answered at once; whoever answers it later answers no other one."""
    s, pid = start(t, caps={"elicitation": {}})
    stream = s.get()
    s.do(["background", [["sleep", 0.3], QUESTION]], ["text", "x"])
    before = stream.next()["id"]
    upgrade(t)
    eq(s.respond(before, {"action": "accept", "content": {}}).status, 202)
    wait_for(lambda: b'"action":"cancel"' in t.daemon.record(pid), 10, "the answer to the question")
    call = s.start_do(QUESTION, ["text", "@q@"])
    question = call.next()["id"]
    ok(question > before, "another number", before, question)
    s.respond(question, {"action": "decline"})
    call.final()
    ok(b"accept" not in t.daemon.record(pid), "the late answer goes nowhere")


@case(daemon=False, deadline=40)
def denials_stay(t):
    """What the operator has ordered stays in force."""
    tokens = [{"name": "a", "sha256": hashlib.sha256(b"t" * 32).hexdigest()}]
    t.start(SERVERS, {"auth": {"mode": "token", "tokens": tokens}})
    s = t.session(token="t" * 32)
    s.echo("x")
    ctl(t, "deny", "add", "--sub", "a", "--issuer", "static")
    eq(s.post({"jsonrpc": "2.0", "id": 7, "method": "ping"}).status, 401)
    upgrade(t)
    eq(s.post({"jsonrpc": "2.0", "id": 7, "method": "ping"}).status, 401)


@case(daemon=False, deadline=40)
def what_a_server_says_meanwhile(t):
    """Messages that wait in its pipe come to the client, and half of one is no loss."""
    s, pid = start(t, caps={"sampling": {}})
    s.do(["text", "x"], ["background", [["sleep", 1], ["log", "warning", "meanwhile"], ["stderr", "all is written\n"]]])
    upgrade(t)
    held(t, pid)
    t.daemon.wait_log("child_stderr", "all is written")
    stream = s.get()
    seen = []
    wait_for(lambda: seen.append(stream.next()) or seen[-1]["method"] == "notifications/message", 10, "the message")
    eq(seen[-1]["params"]["data"], "meanwhile")
    eq(s.pid(), pid)


def updated(text):
    return ["notify", "notifications/resources/updated", {"uri": text}]


@case(daemon=False, deadline=40)
def streams_go_on(t):
    """What a client has not got, and what it may ask for again, is there after one upgrade and after another; nothing comes twice."""
    s = start(t)[0]
    for name in "abc":
        eq(s.ask("resources/subscribe", {"uri": "r:" + name})["result"], {})
    stream = s.get()
    s.do(updated("r:a"), ["text", "x"])
    eq(stream.next()["params"], {"uri": "r:a"})
    seen = stream.last_id
    s.do(updated("r:b"), ["text", "x"])
    eq(stream.next()["params"], {"uri": "r:b"})
    stream.conn.close()
    s.do(updated("r:c"), ["text", "x"])
    call = s.start_do(["progress", 1], ["sleep", 1], ["text", "late"], token="p")
    call.next()
    call.conn.close()
    wait_for(lambda: get(t, "/status")["calls"] == 0, 10, "its answer")
    upgrade(t, 1)
    upgrade(t, 2)
    stream = s.resume(seen)
    eq([stream.next().get("params") for _ in range(2)], [{"uri": "r:b"}, {"uri": "r:c"}])
    ok(stream.next()["method"].endswith("/list_changed"), "no more of before")
    eq(s.resume(call.last_id).final()["result"]["content"][0]["text"], "late")


@case(daemon=False, deadline=40)
def the_keeper_is_killed_afterwards(t):
    """The program that cleans up knows the processes of before and those of after."""
    s, pid = start(t)
    s.do(["grandchild", 60, True], ["text", "x"])
    upgrade(t)
    pids, groups = [pid, t.session().pid()], cgroups_of(t.daemon)
    if groups:
        eq(len([name for name in os.listdir(groups) if name.startswith("main.")]), 2, "groups")
        pids += t.daemon.grandchildren()
    os.kill(t.daemon.pid, signal.SIGKILL)
    t.daemon.forgiven = True
    t.daemon.process.wait()
    wait_for(lambda: not any(is_alive(p) for p in pids), 10, "their ends")
    wait_for(lambda: not groups or not os.path.exists(groups), 10, "the end of their groups")


TOKEN = "0123456789abcdef0123456789abcdef"


@case(daemon=False, deadline=60)
def over_tls(t):
    """Calls and streams; certificates that were renewed before or are afterwards, and one that cannot be used."""
    def shown():
        return c60_tls.leaf(c60_tls.health(daemon.at()))
    c60_tls.copy("server", "live4")
    daemon = c60_tls.start(t, dict(c60_tls.tls_config("live4"), drain_timeout="20s"))
    s = t.session()
    pid = s.pid()
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    stream = s.get()
    s.do(updated("r:a"), ["text", "x"])
    eq(stream.next()["params"], {"uri": "r:a"})
    call = s.start_do(["progress", 1], ["sleep", 1], ["text", "late"], token="p")
    eq(call.next()["method"], "notifications/progress")
    begin_upgrade(t)
    late = s.start_do(["text", "@PID@"])
    eq(call.final()["result"]["content"][0]["text"], "late")
    upgraded(t)
    eq(late.final()["result"]["content"][0]["text"], str(pid))
    s.do(updated("r:a"), ["text", "x"])
    again = s.resume(stream.last_id)
    wait_for(lambda: again.next().get("params") == {"uri": "r:a"}, 10, "the update")
    eq(shown(), c60_tls.leaf_of("server"))
    c60_tls.copy("renewed", "live4")
    c60_tls.reload(daemon)
    eq(shown(), c60_tls.leaf_of("renewed"))
    t.expect_error_log("upgrade_refused")
    shutil.copy(c60_tls.path("second.key"), c60_tls.path("live4.key"))
    ok("does not belong" in upgrade(t, status=1)[1], "why")
    c60_tls.copy("server", "live4")
    upgrade(t, 2)
    eq([shown(), s.pid()], [c60_tls.leaf_of("server"), pid])


@case(daemon=False, deadline=60)
def with_a_certificate_of_its_own(t):
    """--tls self: the same certificate afterwards."""
    tokens = os.path.join(t.directory(), "tokens")
    with open(tokens, "w") as f:
        f.write(TOKEN + "\n")
    os.chmod(tokens, 0o600)
    argv = ["--listen", "0.0.0.0:0", "--tls", "self", "--token-file", tokens, "--"] + harness.child_argv({})
    daemon = c60_tls.TlsDaemon({}, None, {}, args=argv)
    t.daemons.append(daemon)
    t.daemon = daemon
    daemon.admin = os.path.join(daemon.dir, "mcpgated", "admin.sock")
    file = re.search(r"certificate: (\S+), until", "\n".join(daemon.lines)).group(1)
    daemon.address = wire.TlsAddress(("127.0.0.1", daemon.plain_address[1]), ssl.create_default_context(cafile=file), "localhost")
    s = t.session("main", path="/mcp", token=TOKEN)
    pid = s.pid()
    upgrade(t)
    eq(s.pid(), pid)


@case(daemon=False, deadline=60)
def servers_of_every_kind(t):
    """One behind a URL and one that runs as another user keep their processes; the keys of an issuer are fetched anew."""
    folder, i = installed(t), issuer.Issuer()
    os.chmod(folder, 0o755)
    inner = t.start(SERVERS)
    other = {"command": os.path.join(folder, "mcpgated-demo"), "user": "nobody"} if os.geteuid() == 0 else {}
    t.daemon = t.start({"far": {"url": inner.endpoints["main"], "scopes": ["use"]}, "other": dict(other, scopes=["use"])},
                       {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "jwks_interval": "1s"}]}})
    far, near = [t.session(name, token=i.token("%s/%s/mcp" % (ORIGIN, name))) for name in ("far", "other")]
    eq(far.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    pid, before = far.pid(), [p["pid"] for p in get(t, "/processes")["processes"]]
    upgrade(t)
    eq([far.pid(), [p["pid"] for p in get(t, "/processes")["processes"]]], [pid, before])
    near.ask("tools/list")
    stream = far.get()
    far.do(updated("r:a"), ["text", "x"])
    wait_for(lambda: stream.next().get("params") == {"uri": "r:a"}, 10, "the update")
    stream.conn.close()
    eq(i.asked.count("/jwks"), 2)
    t.daemon.base_fds = t.daemon.fds()


@case(daemon=False, deadline=60)
def legs_go_on(t):
    """END-12: an endpoint's session keeps the processes that it has to itself, also with a call in flight to each."""
    t.start(LEGS, dict(over(*LEGS), drain_timeout="20s"))
    s = t.session("all")
    pids = pids_of_legs(s)
    calls = [s.start("tools/call", {"name": name + "__do", "arguments": {"steps": [["sleep", 1.5], ["text", "@PID@"]]}}) for name in "ab"]
    begin_upgrade(t)
    eq([int(call.final()["result"]["content"][0]["text"]) for call in calls], pids)
    upgraded(t)
    eq(pids_of_legs(s), pids)
    ok("processes=3" in t.daemon.log("upgraded")[-1], "and the shared one")
    for pid in pids:
        methods = [m.get("method") for m in t.daemon.messages(pid)]
        eq([methods.count(name) for name in ("initialize", "notifications/initialized")], [1, 1], "one handshake")
    upgrade(t, 2)
    eq(pids_of_legs(s), pids)
    eq(s.delete().status, 204)
    wait_for(lambda: not any(is_alive(pid) for pid in pids), 10, "their end")


@case(daemon=False, deadline=60)
def who_may_ask_for_any_call(t):
    """A process that one caller's sessions share and that asks for a call without saying which: it goes on over an upgrade, at rest; not
    over the death of a gateway, as it could still ask for the calls of that."""
    s, pid = start(t, {"common": {"script": {}, "isolation": "principal"}}, caps={"sampling": {}})
    other = t.session("common", caps={"sampling": {}})
    upgrade(t)
    eq([s.pid(), other.pid()], [pid, pid])
    for answer in ("y", "z"):
        call = s.start_do(["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1}], ["text", "asked"])
        s.respond(call.next()["id"], {"role": "assistant", "content": {"type": "text", "text": answer}, "model": "m"})
        eq(call.final()["result"]["content"][0]["text"], "asked")
    call = s.start_do(["sleep", 30], ["text", "x"])
    wait_for(lambda: len([m for m in t.daemon.messages(pid) if m.get("method") == "tools/call"]) == 6, 10, "it is there")
    dies(t)
    os.kill(t.daemon.find_gateway(), signal.SIGCONT)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 3, 10, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    call.conn.close()
    ok(other.pid() != pid, "a fresh one")
    wait_for(lambda: not is_alive(pid), 10, "its end")
