# SPDX-License-Identifier: Apache-2.0
"""The operator's side: the admin socket. mcpgated(1); threats.md SEC-17."""
import hashlib
import json
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import harness
import mcp
import wire
from harness import Skip, case, eq, is_alive, ok, wait_for

SERVERS = {"main": {}, "other": {}, "broken": {"command": "/nonexistent/command", "start": {"backoff": "50ms..50ms", "give_up_after": 1}}}


def admin(t, daemon=None):
    return t.conn(address=(daemon or t.daemon).admin)


def get(t, path, daemon=None):
    """The object that a report is."""
    response = admin(t, daemon).request("GET", path)
    body = response.read()
    eq(response.status, 200, "status of %s: %r" % (path, body[:200]))
    ok(response.is_json, "content type of " + path)
    return json.loads(body)


def post(t, path, status=200, daemon=None):
    response = admin(t, daemon).request("POST", path)
    body = response.read()
    eq(response.status, status, "status of %s: %r" % (path, body[:200]))
    return json.loads(body)


def of(rows, **wanted):
    """The one row that has these values."""
    found = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    eq(len(found), 1, "rows with %r among %r" % (wanted, rows))
    return found[0]


def metrics(text):
    """{name with labels: value}; every sample belongs to a HELP and a TYPE before it."""
    values, known = {}, {}
    for line in text.decode().splitlines():
        m = re.fullmatch(r"# (HELP|TYPE) ((?:mcpgated|process)_[a-z_]+) (.+)", line)
        if m:
            known.setdefault(m.group(2), []).append(m.group(1))
            continue
        m = re.fullmatch(r"(((?:mcpgated|process)_[a-z_]+?)(_bucket|_sum|_count)?(?:\{LABEL(?:,LABEL)*\})?) ([0-9.]+)"
                         .replace("LABEL", r'[a-z_]+="(?:[^"\\]|\\["\\n])*"'), line)
        ok(m, "line of the metrics", line)
        ok(known.get(m.group(2)) == ["HELP", "TYPE"] or known.get(m.group(2) + (m.group(3) or "")), "HELP and TYPE of", line)
        ok(m.group(1) not in values, "twice:", line)
        values[m.group(1)] = float(m.group(4))
    for name, words in known.items():
        eq(words, ["HELP", "TYPE"], name)
    return values


@case
def socket_is_private(t):
    """SEC-17: the admin socket has mode 0600."""
    st = os.stat(t.daemon.admin)
    ok(stat.S_ISSOCK(st.st_mode), "it is a socket")
    eq(stat.S_IMODE(st.st_mode), 0o600, "mode")


@case(own=True)
def reports_follow_the_work(t):
    """product §2: status, servers, processes, sessions and streams say what is there now."""
    before = get(t, "/status")
    eq((before["state"], before["sessions"], before["processes"], before["calls"]), ("serving", 0, 0, 0))
    eq([s["name"] for s in before["servers"]], ["main", "other", "broken"])
    eq([s["state"] for s in before["servers"]], ["idle"] * 3)
    eq(of(before["servers"], name="main")["path"], "/main/mcp")
    s = t.session()
    s.echo("x")
    call = s.start_do(["sleep", 30], ["text", "done"])
    stream = s.get()
    wait_for(lambda: get(t, "/status")["calls"] == 1, 3, "the call in flight")
    status = get(t, "/status")
    main = of(status["servers"], name="main")
    eq((status["sessions"], status["processes"]), (1, 1))
    eq((main["state"], main["sessions"], main["processes"], main["calls"], main["waiting"]), ("ready", 1, 1, 1, 0))
    ok(main["answered"] >= 1 and main["p50_ms"] >= 1 and main["p99_ms"] >= main["p50_ms"], "latencies", main)
    pid = t.daemon.children("main")[0]
    process = of(get(t, "/processes")["processes"], pid=pid)
    eq((process["server"], process["state"], process["calls"]), ("main", "ready", 1))
    ok(process["answered"] >= 1 and process["age_ms"] < 60000, "process", process)
    session = of(get(t, "/sessions")["sessions"], server="main")
    eq((session["pid"], session["calls"], session["listens"], session["revision"]), (pid, 1, True, s.version))
    eq(session["session"], s.id[:8], "as much of the id as is shown")
    eq(process["session"], s.id[:8])
    own = of(get(t, "/streams")["streams"], kind="session")
    eq((own["session"], own["stream"], own["is_read"], own["has_ended"]), (s.id[:8], 0, True, False))
    s.delete()
    wait_for(lambda: get(t, "/status")["processes"] == 0, 5, "the end of the process")
    eq(get(t, "/sessions"), {"sessions": []})
    eq(get(t, "/streams"), {"streams": []})


@case(daemon=False)
def whose_processes_are(t):
    """product §2: how a server is shared, whose a process and a session is, and for whom it works alone now."""
    tokens = [{"name": name, "sha256": hashlib.sha256(("%s-token-0123456789abcdef" % name).encode()).hexdigest()}
              for name in ("alice", "bob")]
    script = {"script": {}}
    t.start({"own": script, "mine": dict(script, isolation="principal"), "all": dict(script, isolation="shared")},
            {"auth": {"mode": "token", "tokens": tokens}})
    eq([s["isolation"] for s in get(t, "/servers")["servers"]], ["session", "principal", "shared"])
    eq([s["era"] for s in get(t, "/servers")["servers"]], ["unknown"] * 3)
    caps = {"elicitation": {}}
    own = t.session("own", token="alice-token-0123456789abcdef")
    mine = t.session("mine", token="bob-token-0123456789abcdef", caps=caps)
    t.session("all", token="bob-token-0123456789abcdef")
    eq([s["era"] for s in get(t, "/servers")["servers"]], ["legacy"] * 3)
    alice = ("static", "alice", None)
    bob = ("static", "bob", None)

    def who(row):
        return row["issuer"], row["subject"], row["client"]

    def process(server):
        return of(get(t, "/processes")["processes"], server=server)
    eq([who(of(get(t, "/sessions")["sessions"], server=s)) for s in ("own", "mine", "all")], [alice, bob, bob])
    eq([who(process(s)) for s in ("own", "mine", "all")], [alice, bob, (None, None, None)])
    eq([(process(s)["session"], process(s)["leased"]) for s in ("own", "mine", "all")],
       [(own.id[:8], False), (None, False), (None, False)])
    call = mine.start_do(["wait_cancel"], ["text", "x"])
    wait_for(lambda: process("mine")["leased"], 3, "the lease")
    eq(process("mine")["session"], mine.id[:8])
    mine.cancel(call.id)
    wait_for(lambda: not process("mine")["leased"], 3, "the end of the lease")
    eq(process("mine")["session"], None)
    ok("token-0123" not in json.dumps([get(t, p) for p in ("/sessions", "/processes", "/servers")]), "a token in a report")


@case
def ids_stay_secret(t):
    """FRONT-SESS-02: no report and no metric shows a whole session id."""
    s = t.session()
    s.get()
    for path in ("/status", "/processes", "/sessions", "/streams", "/metrics"):
        body = admin(t).request("GET", path).read().decode()
        ok(s.id not in body and s.id[8:] not in body, "the id in " + path)


@case(own=True)
def failures_are_explained(t):
    """product §5: a server that cannot start is failing, with the cause and the time of the next try."""
    e = mcp.encode(mcp.initialize())
    headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    t.conn().request("POST", "/broken/mcp", headers, e).read()
    row = of(get(t, "/servers")["servers"], name="broken")
    eq((row["state"], row["failures_in_a_row"], row["processes"]), ("failing", 1, 0))
    ok("No such file" in row["last_failure"]["error"], "the cause", row)
    ok(abs(row["last_failure"]["at_ms"] / 1000 - time.time()) < 60, "its time", row)
    post(t, "/restart?server=broken")
    row = of(get(t, "/servers")["servers"], name="broken")
    eq((row["state"], row["next_try_ms"]), ("idle", None), "after restart")


@case(own=True)
def metrics_are_prometheus(t):
    """product §3: /metrics has the counters, what is open, and a histogram of each server's calls."""
    s = t.session()
    for _ in range(3):
        s.echo("x")
    response = admin(t).request("GET", "/metrics")
    values = metrics(response.read())
    eq(response.header("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    eq(values["mcpgated_sessions_total"], 1)
    eq(values["mcpgated_sessions_open"], 1)
    eq(values['mcpgated_server_processes{server="main"}'], 1)
    eq(values['mcpgated_call_answer_seconds_count{server="main"}'], 3)
    eq(values['mcpgated_call_answer_seconds_bucket{server="main",le="+Inf"}'], 3)
    eq(values['mcpgated_call_answer_seconds_count{server="other"}'], 0)
    buckets = [v for k, v in values.items() if k.startswith('mcpgated_call_answer_seconds_bucket{server="main"')]
    ok(buckets == sorted(buckets) and len(buckets) == 18, "cumulative buckets", buckets)


@case(daemon=False)
def metrics_address(t):
    """SEC-17 SEC-01: admin.metrics on loopback has /metrics and nothing else, and not for web pages."""
    port = wire.free_port()
    d = t.start(SERVERS, {"admin": {"metrics": "127.0.0.1:%d" % port}})
    at = ("127.0.0.1", port)
    metrics(t.conn(address=at).request("GET", "/metrics").read())
    for path in ("/status", "/sessions", "/logs?server=main", "/mcp/main", "/"):
        eq(t.conn(address=at).request("GET", path).status, 404, path)
    eq(t.conn(address=at).request("POST", "/drain").status, 404)
    eq(t.conn(address=at).request("POST", "/metrics").status, 405)
    eq(t.conn(address=at).request("GET", "/metrics", [("Origin", "http://localhost")]).status, 403)
    eq(t.conn(address=at).request("GET", "/metrics", [("Origin", "http://127.0.0.1:%d" % port)]).status, 403, "there are no pages here")
    eq(t.conn(address=at).request("GET", "/metrics", [("Host", "evil.example")]).status, 403)
    ok(d.process.poll() is None, "the daemon lives")


@case
def wrong_requests(t):
    """Wrong paths, methods and parameters get a status and a reason, and change nothing."""
    table = [("GET", "/nothing", 404), ("GET", "/STATUS", 404), ("POST", "/status", 405),
             ("GET", "/restart?server=main", 405), ("POST", "/restart", 400), ("POST", "/restart?server=", 400),
             ("POST", "/restart?server=nobody", 404), ("POST", "/restart?server=MAIN", 404),
             ("POST", "/restart?server=%6dain", 404), ("POST", "/restart?xserver=main", 400),
             ("POST", "/end-session", 400), ("POST", "/end-session?id=abc", 400),
             ("POST", "/end-session?id=abcdefgh", 404), ("GET", "/logs", 400), ("GET", "/logs?server=nobody", 404),
             ("POST", "/logs?server=main", 405), ("DELETE", "/metrics", 405), ("GET", "/drain", 405),
             ("GET", "/mcp/nobody", 404), ("GET", "/main/mcp", 404)]
    for method, path, status in table:
        response = admin(t).request(method, path)
        body = response.read()
        eq(response.status, status, method + " " + path)
        ok(json.loads(body).get("error"), "a reason", body)
    eq(get(t, "/status")["state"], "serving")


@case(own=True)
def restart_replaces_processes(t):
    """bridging 4: after restart sessions go on with fresh processes; a call in flight gets child_exited."""
    a, b, other = t.session(), t.session(), t.session("other")
    call = a.start_do(["sleep", 30])
    wait_for(lambda: get(t, "/status")["calls"] == 1, 3, "the call in flight")
    old, kept = set(t.daemon.children("main")), t.daemon.children("other")
    eq(post(t, "/restart?server=main"), {"restarted": 2})
    eq(call.final()["error"]["data"]["reason"], "child_exited")
    wait_for(lambda: not any(is_alive(p) for p in old), 5, "the end of the old processes")
    for _ in range(4):  # more often than a session may lose its process by itself
        a.echo("again")
        b.echo("again")
        post(t, "/restart?server=main")
    a.echo("still")
    other.echo("untouched")
    eq(t.daemon.children("other"), kept)
    t.daemon.wait_log("admin_command", "command=restart", "server=main")


@case(servers={"pool": {"script": {}, "isolation": "shared"}})
def restart_of_shared_processes(t):
    """bridging 1.2: a shared process belongs to no session; restart puts a fresh one under all of them."""
    a, b = t.session("pool"), t.session("pool")
    a.echo("x")
    b.echo("x")
    old = t.daemon.children("pool")
    eq(len(old), 1)
    eq(of(get(t, "/processes")["processes"], pid=old[0])["session"], None)
    eq([r["pid"] for r in get(t, "/sessions")["sessions"]], [None, None])
    call = a.start_do(["sleep", 30])
    wait_for(lambda: get(t, "/status")["calls"] == 1, 3, "the call in flight")
    eq(post(t, "/restart?server=pool"), {"restarted": 1})
    eq(call.final()["error"]["data"]["reason"], "child_exited")
    wait_for(lambda: not is_alive(old[0]), 5, "the end of the old process")
    for _ in range(4):
        a.echo("again")
        b.echo("again")
        post(t, "/restart?server=pool")
    b.echo("still")
    eq(get(t, "/status")["sessions"], 2)


@case(own=True)
def end_session(t):
    """product §2: end-session takes as much of an id as the listing shows; the client gets 404."""
    a, b = t.session(), t.session()
    eq(post(t, "/end-session?id=" + a.id[:8]), {"ended": 1})
    eq(a.post(mcp.request(9, "ping")).status, 404)
    b.echo("still there")
    eq(post(t, "/end-session?id=" + b.id), {"ended": 1})
    eq(get(t, "/sessions"), {"sessions": []})
    t.daemon.wait_log("session_end", "reason=operator")
    ok(not any(x.id in line for line in t.daemon.lines for x in (a, b)), "a whole id in the log")


@case(own=True, deadline=30)
def many_sessions(t):
    """A long listing arrives whole."""
    sessions = [t.session() for _ in range(40)]
    rows = get(t, "/sessions")["sessions"]
    eq(sorted(r["session"] for r in rows), sorted(s.id[:8] for s in sessions))
    eq(len(get(t, "/processes")["processes"]), 40)
    eq(of(get(t, "/servers")["servers"], name="main")["sessions"], 40)


@case(own=True)
def drain_stops_the_daemon(t):
    """REL-41: drain is SIGTERM: calls finish, and the reports go on until the end."""
    s = t.session()
    call = s.start_do(["sleep", 1], ["text", "done"])
    wait_for(lambda: get(t, "/status")["calls"] == 1, 3, "the call in flight")
    watcher = admin(t)
    eq(post(t, "/drain"), {"calls": 1})
    wait_for(lambda: json.loads(watcher.request("GET", "/status").read())["state"] == "draining", 3, "draining")
    eq(call.final()["result"]["content"][0]["text"], "done")
    eq(t.daemon.wait(), 0, "exit status")
    ok(not os.path.exists(t.daemon.admin), "the socket file is gone")


@case(own=True)
def logs_keep_the_last_lines(t):
    """product §2: logs has the last lines of stderr with time and pid, also of processes that have gone."""
    s = t.session()
    hostile = "a\x1b]0;title\x07 \x9b31m \u202eevil"
    s.do(["stderr", hostile + "\n"], ["text", ""])
    pid = t.daemon.children("main")[0]
    s.do(["stderr", "second\n"], ["text", ""])
    wait_for(lambda: len(get(t, "/logs?server=main")["lines"]) >= 2, 3, "the lines")
    s.delete()
    wait_for(lambda: not is_alive(pid), 5, "the end of the process")
    body = admin(t).request("GET", "/logs?server=main").read()
    ok(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", body), "raw control bytes", body)
    lines = json.loads(body)["lines"]
    eq([l["text"] for l in lines], [hostile, "second"])
    eq([l["pid"] for l in lines], [pid, pid])
    eq(get(t, "/logs?server=other")["lines"], [])


@case(own=True)
def logs_are_bounded(t):
    """REL-28: of a server that floods its stderr the last 64 KiB stay."""
    s = t.session()
    for n in range(30):
        s.do(["stderr", "".join("%d %d %s\n" % (n, i, "x" * 100) for i in range(100))], ["text", ""])
    lines = wait_for(lambda: [l for l in [get(t, "/logs?server=main")["lines"]] if l[-1]["text"].startswith("29 99 ")], 5, "the last line")[0]
    ok(100 < len(lines) < 700, "lines kept", len(lines))


@case(own=True)
def logs_follow(t):
    """product §2: logs -f gets what is kept and then each new line, from several at a time."""
    s = t.session()
    s.do(["stderr", "old\n"], ["text", ""])
    wait_for(lambda: get(t, "/logs?server=main")["lines"], 3, "the first line")
    readers = []
    for _ in range(2):
        response = admin(t).request("GET", "/logs?server=main&follow=1")
        ok(response.is_sse, "an event stream")
        readers.append(wire.EventReader(response))
    for r in readers:
        eq(json.loads(r.next().data)["text"], "old")
    s.do(["stderr", "new\n"], ["text", ""])
    for r in readers:
        eq(json.loads(r.next().data)["text"], "new")
    readers[0].response.conn.close()
    s.do(["stderr", "third\n"], ["text", ""])
    eq(json.loads(readers[1].next().data)["text"], "third")


PROBE = """
import os, socket, sys, time
def ask(who):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[1])
        s.sendall(b"POST /drain HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
        got = s.recv(100)
    except OSError:
        got = b""
    open(sys.argv[2] + "/" + who, "wb").write(got)
ask("own")
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    ask("helper")
    os._exit(0)
os.waitpid(pid, 0)
open(sys.argv[2] + "/done", "wb")
sys.stdin.read()
"""


@case(daemon=False)
def servers_are_turned_away(t):
    """SEC-17: a process of a server, and its helpers, cannot use the admin socket."""
    place = t.directory()
    path = os.path.join(place, "s")
    d = t.start({"main": {}, "probe": {"command": sys.executable, "args": ["-I", "-c", PROBE, path, place],
                                       "start": {"timeout": "3s"}}},
                {"admin": {"address": "unix:" + path}})
    conn = t.conn()
    body = mcp.encode(mcp.initialize())
    headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    conn.send(conn.head("POST", "/probe/mcp", headers, len(body)) + body)
    wait_for(lambda: os.path.exists(os.path.join(place, "done")), 5, "the probe")
    for who in ("own", "helper"):
        with open(os.path.join(place, who), "rb") as f:
            eq(f.read(), b"", "what the daemon told " + who)
    wait_for(lambda: len(d.log("admin_refused")) == 2, 3, "refusals in the log")
    d.never_logged("drain")
    conn.close()
    t.session("main").echo("x")


# argv: the socket, a directory. Each way out of its session writes what it was told to a file; "done" comes last.
RUNAWAYS = """
import os, socket, sys
path, place = sys.argv[1:]

def dial():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s

def ask(name, s):
    told = b""
    try:
        s.sendall(b"GET /status HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
        while part := s.recv(4096):
            told += part
    except OSError:
        pass
    with open(os.path.join(place, name), "wb") as f:
        f.write(told)

def run(name, prepare):
    r, w = os.pipe()
    if os.fork() == 0:
        prepare()
        ask(name, dial())
        os._exit(0)
    os.close(w)
    os.read(r, 1)  # its end comes when nobody has the other end any more
    os.close(r)
    os.waitpid(-1, 0)

def be_orphan():
    os.setsid()
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        os.sched_yield()

def be_deep():
    for _ in range(5):
        if os.fork():
            os.wait()
            os._exit(0)

run("setsid", os.setsid)
run("orphan", be_orphan)
run("deep", be_deep)

# Whoever has connected is gone when it is asked; a relative uses the connection.
ours, theirs = socket.socketpair()
if os.fork() == 0:
    connection = dial()
    socket.send_fds(theirs, [b"x"], [connection.fileno()])
    os._exit(0)
os.wait()
ask("passed on", socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0]))
open(place + "/done", "wb")
sys.stdin.read()
"""
RUNAWAY_WAYS = ("setsid", "orphan", "deep", "passed on")


@case(daemon=False)
def who_descends_from_a_server_is_turned_away(t):
    """SEC-17: no session, orphanhood or number of forks makes a server's process the operator; others are let in."""
    place, outside = t.directory(), t.directory()
    path = os.path.join(place, "s")
    argv = ["-I", "-c", RUNAWAYS, path]
    d = t.start({"main": {}, "probe": {"command": sys.executable, "args": argv + [place], "start": {"timeout": "3s"}}},
                {"admin": {"address": "unix:" + path}})
    conn = t.conn()
    body = mcp.encode(mcp.initialize())
    headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    conn.send(conn.head("POST", "/probe/mcp", headers, len(body)) + body)
    wait_for(lambda: os.path.exists(os.path.join(place, "done")), 5, "the runaways")
    conn.close()
    for _ in range(30):  # whoever has ended when it is looked at is not taken for one of them
        subprocess.run([sys.executable, "-I", "-S", "-c", "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])", path],
                       check=True)
    for who in RUNAWAY_WAYS:
        with open(os.path.join(place, who), "rb") as f:
            eq(f.read(), b"", "what the daemon told " + who)
    wait_for(lambda: len(d.log("admin_refused")) == len(RUNAWAY_WAYS), 3, "refusals in the log")
    # Nobody is refused for how it was started. (Of a connection that was passed on, the first owner may have gone.)
    subprocess.run([sys.executable] + argv + [outside], stdin=subprocess.DEVNULL, timeout=8 * harness.SLOW, check=True)
    for who in RUNAWAY_WAYS[:-1]:
        with open(os.path.join(outside, who), "rb") as f:
            eq(f.read()[:12], b"HTTP/1.1 200", "what it told others, " + who)
    t.session("main").echo("x")


@case(own=True)
def operator_is_a_client(t):
    """product §2: the servers are at /mcp/NAME of the admin socket, through the same path as for a client."""
    conn = admin(t)
    headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    response = conn.request("POST", "/mcp/main", headers, mcp.encode(mcp.initialize()))
    eq(response.status, 200)
    response.read()
    sid = response.header("mcp-session-id")
    headers.append(("Mcp-Session-Id", sid))
    conn.request("POST", "/mcp/main", headers, mcp.encode(mcp.notification("notifications/initialized"))).read()
    answer = json.loads(conn.request("POST", "/mcp/main", headers, mcp.encode(mcp.request(1, "tools/list"))).read())
    ok(answer["result"]["tools"], "tools", answer)
    eq(of(get(t, "/servers")["servers"], name="main")["sessions"], 1)
    eq(conn.request("DELETE", "/mcp/main", headers).status, 204)


def owner(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        return struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def end(daemon):
    os.kill(daemon.pid, signal.SIGTERM)
    eq(daemon.wait(), 0, "exit status")


@case(daemon=False)
def place_by_itself(t):
    """product §3: without a place in the file the socket is where systemd or the user's session has one for it."""
    one = t.directory()
    d = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": one})
    path = os.path.join(one, "mcpgated", "admin.sock")
    eq(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    eq(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
    second = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": one})
    second.admin = os.path.join(one, "mcpgated", "admin-%d.sock" % second.pid)
    second.wait_log("admin_beside", "address=unix:" + second.admin, "usual=unix:" + path, "pid=%d" % d.pid)
    d.admin = path
    eq([owner(daemon.admin) for daemon in (d, second)], [d.pid, second.pid], "each has its own")
    eq([get(t, "/status", daemon)["state"] for daemon in (d, second)], ["serving"] * 2)
    said = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "client-config", "none"], env={"XDG_RUNTIME_DIR": one}, capture_output=True, text=True).stderr
    ok(said.endswith("lists them; other daemons, for --socket: %s\n" % second.admin), "where the other one is", said)
    three = t.directory()
    third = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": one, "RUNTIME_DIRECTORY": three + ":/x"})
    ok(os.path.exists(os.path.join(three, "admin.sock")), "systemd's directory comes first")
    fourth = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": "/nonexistent"})
    fourth.wait_log("admin_off", "/nonexistent")
    fifth = t.start(SERVERS, {"admin": {"address": "off"}}, env={"XDG_RUNTIME_DIR": t.directory()})
    fifth.never_logged("admin_off")
    eq(len(fifth.log("listen")), 1)
    end(d)
    second.wait_log("listen", "address=unix:" + path, "reach=local")
    second.admin = path
    eq((owner(path), get(t, "/status", second)["state"]), (second.pid, "serving"), "it has moved there")
    end(second)
    eq(os.listdir(os.path.dirname(path)), [], "nothing is left")


@case(daemon=False)
def place_that_was_made(t):
    """product §3: the directory of the socket goes with the daemon that has made it, and stays if it was there."""
    for was_there in (False, True):
        one = t.directory()
        if was_there:
            os.mkdir(os.path.join(one, "mcpgated"), 0o700)
        d = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": one})
        eq(os.listdir(os.path.join(one, "mcpgated")), ["admin.sock"])
        end(d)
        eq(os.listdir(one), ["mcpgated"] if was_there else [])


@case(daemon=False)
def place_of_root(t):
    """product §3: root's daemon has its socket where mcpgatectl looks, also where nobody has said where that is, unless the directory is another's."""
    own_run = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && { test -z "$RUN_OF" || mkdir -m 700 /run/mcpgated; } && '
               '{ test -z "$RUN_OF" || chown "$RUN_OF" /run/mcpgated; } && exec "$@"', "sh"]
    if os.geteuid() != 0 or subprocess.run(own_run + ["true"], capture_output=True).returncode != 0:
        raise Skip("this takes root and a mount namespace")
    daemon = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": ""}, prefix=own_run)
    daemon.wait_log("listen", "address=unix:/run/mcpgated/admin.sock")
    done = subprocess.run(["nsenter", "-t", str(daemon.pid), "-m", os.path.join(harness.BIN, "mcpgatectl"), "status"], capture_output=True, text=True,
                          env={k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}, timeout=20)
    ok("serving" in done.stdout, "mcpgatectl finds it", done.stdout, done.stderr)
    other = t.start(SERVERS, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": "", "RUN_OF": "65534"}, prefix=own_run)
    other.wait_log("admin_off", "/run/mcpgated must be a directory that belongs to this user and that only this user may write to")


@case(daemon=False)
def chosen_place_must_work(t):
    """product §2: an admin address that was given and cannot be used ends the start with the reason."""
    d = t.start(SERVERS, {"admin": {"address": "unix:/nonexistent/admin.sock"}}, wait=False)
    d.forgiven = True
    t.expect_error_log("listen_failed")
    eq(d.wait(), 1, "exit status")
    ok(any("cannot listen on unix:/nonexistent/admin.sock" in l for l in d.lines), "the reason", d.lines)
