# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: stopping, dying, logging, running out of things. threats.md §8."""
import json
import os
import re
import signal
import socket
import time

import harness
import mcp
from harness import case, cpu_seconds, descendants, eq, is_alive, ok, processes, wait_for, within

SERVERS = {"main": {}, "stubborn": {"script": {"eof": "ignore", "term": "ignore"}, "stop": {"grace": "500ms", "term": "500ms"}}}


def ended(d, status=0, timeout=10):
    eq(d.wait(timeout), status, "exit status")
    eq(d.leftovers(), [], "leftovers")


@case(own=True)
def stops_on_sigterm(t):
    """REL-41 product §2: SIGTERM of an idle daemon: exit 0, quickly, nothing left."""
    sessions = [t.session() for _ in range(3)]
    g = sessions[0].get()
    started = time.monotonic()
    t.daemon.term()
    eq(g.rest(5), [], "streams end")
    ended(t.daemon)
    within(started, 5)
    t.daemon.wait_log("keeper_stop")


@case(own=True)
def stops_on_sigint(t):
    """REL-41: SIGINT is the same (Ctrl-C)."""
    t.session().echo("x")
    t.daemon.process.send_signal(signal.SIGINT)
    ended(t.daemon)


@case(own=True)
def drain_finishes_calls(t):
    """REL-41 bridging 4: in-flight calls finish; new connections are refused then; exit 0."""
    s = t.session()
    call = s.start_do(["sleep", 1.5], ["text", "done"])
    stream = s.start_do(["progress", 1], ["sleep", 1.5], ["text", "done too"], token=1)
    stream.next()
    conn, reading = t.conn(), t.conn(receive_buffer=1 << 17)
    conn.request("GET", "/healthz").read()
    # Keeps the daemon for longer than its calls take.
    steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'], ["fill", "x" * 1000, 10000], ["line", '"}]}}']]
    slow = s.begin(mcp.request(1, "tools/call", s.do_params(steps)), conn=reading)
    eq(slow.status, 200)
    t.daemon.term()
    eq(call.final()["result"]["content"][0]["text"], "done")
    eq(stream.final()["result"]["content"][0]["text"], "done too")
    t.daemon.wait_log("session_end")
    try:
        t.conn()
        ok(False, "a new connection after the last call: it would wait for nobody")
    except ConnectionRefusedError:
        pass
    slow.final()
    ended(t.daemon)


FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


@case(own=True)
def drain_serves_the_calls_that_run(t):
    """REL-41: while calls are in flight new connections bring answers, resume streams and end sessions; all that is new gets 503."""
    s, other = t.session("main", mcp.D, {"elicitation": {}}), t.session()
    call = s.start_do(["ask", "q", "elicitation/create", FORM], ["asked"], token=1)
    asked = call.next()
    cut = s.start_do(["progress", 1], ["sleep", 1], ["progress", 2], ["text", "done"], token=2)
    cut.next()
    cut.close()
    t.daemon.term()
    t.daemon.wait_log("drain")
    ready = t.conn().request("GET", "/readyz")
    eq((ready.status, ready.read()), (503, b'{"status":"draining"}\n'))
    eq(t.conn().request("GET", "/healthz").status, 200)
    for refused in (s.begin(mcp.request(1, "tools/list")), mcp.Session(t, t.daemon, "main", check=False).started, s.get(check=False)):
        eq(refused.status, 503)
        ok(int(refused.response.header("retry-after")) > 0, "Retry-After")
    eq(other.delete().status, 204)
    other.id = None
    again = s.resume(cut.last_id)
    s.respond(asked["id"], {"action": "decline"})
    ok("decline" in call.final()["result"]["content"][0]["text"], "the answer has reached the server")
    eq([m.get("method", "result") for m in again.rest()], ["notifications/progress", "result"])
    ended(t.daemon)


def asks(conn, body):
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    conn.send(conn.head("POST", "/main/mcp", fields, len(body)) + body)


@case(own=True)
def drain_answers_who_waits(t):
    """REL-41: who has connected and was not accepted yet, or has sent what was not read yet, is answered, mostly with 503."""
    body = mcp.encode(mcp.initialize())
    used, silent = t.conn(), t.conn()
    used.request("GET", "/healthz").read()
    os.kill(t.daemon.gateway, signal.SIGSTOP)
    try:
        asks(used, body)
        early = t.conn()
        asks(early, body)
        t.daemon.term()
        t.daemon.wait_log("signal")
    finally:
        os.kill(t.daemon.gateway, signal.SIGCONT)
    for conn in (used, early):
        response = conn.response()
        answer = json.loads(response.read())
        # What was read in the last moment before may even have come through.
        ok(response.status == 200 or answer["error"]["data"]["reason"] == "draining", "answer", response.status, answer)
    ok(silent.is_closed(8), "a connection that says nothing")
    ended(t.daemon)


@case(servers={"main": {}}, config={"drain_timeout": "5m"}, deadline=40)
def drain_lets_slow_clients_read(t):
    """REL-41: the answer of a call that is through is sent whole, though its client is slow in taking it."""
    s = t.session()
    steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'], ["fill", "x" * 1000, 10000], ["line", '"}]}}']]
    conn = t.conn(receive_buffer=1 << 17)
    slow = s.begin(mcp.request(1, "tools/call", s.do_params(steps)), conn=conn)
    eq(slow.status, 200)
    t.daemon.term()
    t.daemon.wait_log("session_end")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        conn.pending += conn.sock.recv(20000)
        time.sleep(0.05)
    eq(len(slow.final()["result"]["content"][0]["text"]), 10000000)
    ended(t.daemon)


def start_activated(t, listener):
    """A daemon with a socket that the service manager has opened, and keeps."""
    move = 'exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=mcp; exec "$@"' % listener.fileno()
    return t.start({"main": {}}, {"listen": [{"address": "systemd:mcp", "plaintext": True}], "hosts": ["127.0.0.1"], "auth": {"mode": "anonymous"}},
                   prefix=["sh", "-c", move, "sh"], keeps=[listener.fileno()])


@case(daemon=False, deadline=20)
def sockets_of_the_manager_wait_for_the_next(t):
    """REL-41 REL-42: who connects to a socket of the service manager while the daemon stops is served by the next, and costs nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        d = start_activated(t, listener)
        call = t.session().start_do(["sleep", 2.5], ["text", "x"])
        wait_for(lambda: "sleep" in str(d.messages(d.children()[0])), what="the call at the server")
        d.term()
        d.wait_log("drain")
        waiting = t.conn()
        waiting.send(waiting.head("GET", "/healthz"))
        before = cpu_seconds(d.gateway)
        eq(call.final()["result"]["content"][0]["text"], "x")
        ok(cpu_seconds(d.gateway) - before < 0.5, "seconds of the processor's time", cpu_seconds(d.gateway) - before)
        ended(d)
        start_activated(t, listener)
        eq(waiting.response().status, 200)


@case(servers={"main": {}}, config={"drain_timeout": "1s"})
def drain_has_a_limit(t):
    """REL-41 bridging 4: after the limit calls end with -32603 draining; exit 0."""
    s = t.session()
    call = s.start_do(["wait_cancel"])
    stream = s.start_do(["progress", 1], ["wait_cancel"], token=1)
    stream.next()
    started = time.monotonic()
    t.daemon.term()
    for e in (call, stream):
        answer = e.final()
        eq((answer["error"]["code"], answer["error"]["data"]["reason"]), (-32603, "draining"))
    ok(time.monotonic() - started > 0.7, "too early")
    within(started, 4)
    ended(t.daemon)


def at_the_server(t):
    """Until the call that waits for its cancellation has reached the only process."""
    wait_for(lambda: "wait_cancel" in str([t.daemon.messages(p) for p in t.daemon.children("main")]), 5, "the call at the server")


@case(servers={"main": {}}, config={"drain_timeout": "1s", "streams": {"response": "json"}})
def a_call_that_was_sent_never_gets_5xx(t):
    """requirements §19: 5xx means not executed; what the server has been sent fails in band."""
    s = t.session()
    call = s.start_do(["wait_cancel"])
    at_the_server(t)
    t.daemon.term()
    eq(call.final()["error"]["data"]["reason"], "draining")
    eq(call.status, 200)
    ended(t.daemon)


@case(own=True)
def second_signal_hurries(t):
    """REL-41: a second SIGTERM does not wait for calls."""
    s = t.session()
    s.start_do(["wait_cancel"])
    at_the_server(t)
    t.daemon.term()
    t.daemon.wait_log("drain")
    time.sleep(0.3)
    ok(t.daemon.process.poll() is None, "ended at once although a call runs")
    started = time.monotonic()
    t.daemon.term()
    ended(t.daemon)
    within(started, 5)


@case(own=True, deadline=20)
def stubborn_children_at_the_end(t):
    """REL-41 BACK-PROC-02: children that ignore everything are killed before the daemon ends."""
    s = t.session("stubborn")
    s.do(["grandchild", 60], ["text", "x"])
    t.daemon.term()
    ended(t.daemon)


@case(own=True)
def keeper_killed(t):
    """REL-43 BACK-PROC-03: kill -9 of the keeper: gateway, children and grandchildren end."""
    s = t.session("stubborn")
    s.do(["grandchild", 60], ["text", "x"])
    grandchild = wait_for(t.daemon.grandchildren, 3, "grandchild")[-1]
    pids = [t.daemon.gateway, s.pid(), grandchild]
    t.daemon.forgiven = True
    t.daemon.process.kill()
    t.daemon.process.wait()
    wait_for(lambda: not [p for p in pids if is_alive(p)], 5, "end of %s" % pids)
    wait_for(lambda: (harness.reap_adopted(), not t.daemon.leftovers())[1], 3, "end of everything")


@case(own=True)
def gateway_killed(t):
    """REL-43: kill -9 of the gateway: it is started again within a second; sessions go on with their processes."""
    s = t.session("stubborn")
    child = s.pid()
    old = t.daemon.gateway
    t.daemon.gateway = None
    started = time.monotonic()
    os.kill(old, signal.SIGKILL)

    def serves():
        try:
            conn = t.conn()
            conn.request("GET", "/readyz").read()
            return conn.last.status == 200
        except (OSError, AssertionError):
            return False
    wait_for(serves, 5, "a new gateway")
    within(started, 2 * harness.SLOW)
    eq(s.pid(), child, "its process")
    t.daemon.wait_log("gateway_exit")
    eq(t.session().echo("x"), "x")


@case(own=True)
def child_killed_from_outside(t):
    """REL-28: the gateway goes on when a child is killed; nothing is restarted but the child."""
    s = t.session()
    gateway = t.daemon.gateway
    pid = s.pid()
    os.kill(pid, signal.SIGKILL)
    t.daemon.wait_log("child_failed", "pid=%d " % pid)
    eq(s.echo("x"), "x")
    ok(is_alive(gateway), "gateway")


def notify_socket(address):
    """What the service manager would be told, a datagram each."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(address)
    sock.settimeout(5)
    return sock


@case(daemon=False)
def systemd_is_notified(t):
    """REL-52 REL-41: READY=1 once it serves, STOPPING=1 when it stops; children get no NOTIFY_SOCKET."""
    path = os.path.join(t.directory(), "notify")
    sock = notify_socket(path)
    t.start({"main": {}}, env={"NOTIFY_SOCKET": path})
    ok("READY=1" in sock.recv(4096).decode().splitlines(), "READY=1")
    probe = t.session().probe()
    ok(not any(e.startswith("NOTIFY_SOCKET") for e in probe["environ"]), "NOTIFY_SOCKET at the child")
    t.daemon.term()
    seen = ""
    while "STOPPING=1" not in seen.splitlines():
        seen += sock.recv(4096).decode() + "\n"
    ended(t.daemon)
    sock.close()


@case(daemon=False)
def systemd_waits_for_the_drain(t):
    """REL-41 REL-52: a drain that may take longer than the unit's TimeoutStopSec is told to systemd, with all that it may take."""
    path = os.path.join(t.directory(), "notify")
    sock = notify_socket(path)
    t.start({"main": {"stop": {"grace": "3s", "term": "4s"}}}, {"drain_delay": "1h", "drain_timeout": "2m"}, env={"NOTIFY_SOCKET": path})
    t.daemon.term()
    seen = []
    while "STOPPING=1" not in seen:
        seen = sock.recv(4096).decode().splitlines()
    told = [int(l.split("=")[1]) for l in seen if l.startswith("EXTEND_TIMEOUT_USEC=")]
    own = 3600 + 120 + 3 + 4
    ok(len(told) == 1 and own * 10**6 < told[0] <= (own + 30) * 10**6, "how long it may take", seen)
    t.daemon.term()
    ended(t.daemon)
    sock.close()


@case(daemon=False)
def systemd_abstract_socket(t):
    """REL-52: a NOTIFY_SOCKET in the abstract name space works too."""
    name = "mcpgated-test-%d" % os.getpid()
    sock = notify_socket("\0" + name)
    t.start({"main": {}}, env={"NOTIFY_SOCKET": "@" + name})
    ok("READY=1" in sock.recv(4096).decode().splitlines(), "READY=1")
    sock.close()


@case(daemon=False)
def systemd_watches_the_gateway(t):
    """REL-52: the watchdog is fed as long as the gateway's loop turns, and not a moment longer."""
    path = os.path.join(t.directory(), "notify")
    sock = notify_socket(path)
    d = t.start({"main": {}}, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"})
    d.expected_errors.add("gateway_silent")

    def fed():
        while sock.recv(4096) != b"WATCHDOG=1":
            pass

    def silent_twice():
        count = len(d.log("gateway_silent")) + 2
        wait_for(lambda: len(d.log("gateway_silent")) >= count, 5, "gateway_silent")

    fed()
    os.kill(d.gateway, signal.SIGSTOP)
    silent_twice()
    sock.setblocking(False)
    while True:
        try:
            sock.recv(4096)
        except BlockingIOError:
            break
    silent_twice()
    try:
        eq(sock.recv(4096), b"", "of a daemon whose gateway hangs")
    except BlockingIOError:
        pass
    os.kill(d.gateway, signal.SIGCONT)
    sock.settimeout(5)
    fed()
    eq(t.session().echo("x"), "x")
    sock.close()


@case(daemon=False)
def hup_reopens_the_log_file(t):
    """REL-40 product §4: after the log file was moved away SIGHUP goes on in a new one."""
    directory = t.directory()
    path = os.path.join(directory, "log")
    with open(path, "w") as f:
        f.write("before\n")
    d = t.start({"main": {}}, {"log": {"target": path, "level": "info"}})
    s = t.session()
    pid = s.pid()
    ok(os.path.getsize(path) > 100 and open(path).read().startswith("before\n"), "it goes on behind what was there")
    os.rename(path, path + ".1")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(path), 3, "new log file")
    s2 = t.session()
    pid2 = s2.pid()
    wait_for(lambda: "pid=%d" % pid2 in open(path).read(), 3, "lines of the gateway in the new file")
    ok("pid=%d" % pid2 not in open(path + ".1").read(), "lines in the old file")
    eq(s.pid(), pid, "sessions are untouched")
    d.term()
    ended(d)
    ok("keeper_stop" in open(path).read(), "lines of the keeper in the new file")


@case(own=True)
def hup_without_a_log_file(t):
    """REL-40: SIGHUP disturbs nothing, also many of them."""
    s = t.session()
    pid = s.pid()
    for _ in range(20):
        t.daemon.process.send_signal(signal.SIGHUP)
        eq(s.pid(), pid)
    t.daemon.wait_log("reload_used")
    ok(is_alive(t.daemon.gateway), "gateway")


@case(deadline=30, daemon=False)
def descriptors_run_out(t):
    """REL-44 SEC-16: NOFILE 128 and 300 clients: no spin, no log flood; established work goes on."""
    d = t.start({"main": {}}, nofile=128)
    s = t.session()
    worker = t.conn()
    eq(s.post(mcp.request(1, "ping"), conn=worker).status, 200)
    conns = []
    for _ in range(300):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(d.address)
        conns.append(sock)
    time.sleep(0.5)
    cpu, lines = cpu_seconds(d.gateway), len(d.lines)
    time.sleep(2)
    ok(cpu_seconds(d.gateway) - cpu < 0.5, "CPU seconds in 2 s", cpu_seconds(d.gateway) - cpu)
    ok(len(d.lines) - lines < 100, "log lines in 2 s", len(d.lines) - lines)
    eq(s.post(mcp.request(2, "ping"), conn=worker).status, 200, "established connection")
    d.wait_log("connections_bounded", "open_files=128")
    response = worker.request("POST", "/main/mcp", s.headers(), mcp.encode(mcp.initialize()))
    eq((response.status, "result" in json.loads(response.read())), (200, True), "a process for another session")
    for sock in conns:
        sock.close()
    wait_for(lambda: t.session().echo("x") == "x", 5, "a new session after the storm")
    eq(len(d.log("gateway_start")), 1, "one gateway all the time")


@case(deadline=20, config={"limits": {"connections": 10}})
def connections_over_the_limit(t):
    """REL-46 DEF-14: over the limit a connection gets 503 or is closed; the others go on."""
    s = t.session()
    worker = t.conn()
    eq(s.post(mcp.request(1, "ping"), conn=worker).status, 200)
    for conn in t.conns:
        if conn is not worker:
            conn.close()
    time.sleep(0.2)
    conns = [t.conn() for _ in range(30)]
    # Those that have sent nothing yet give way to the others, and not the one that has been served.
    wait_for(lambda: len([l for l in t.daemon.log("connection_end") if "gave_way" in l]) >= 21, 3, "21 that gave way")
    refused = 0
    for conn in conns:
        try:
            conn.request("GET", "/healthz").read()
            refused += conn.last.status == 503
        except (OSError, AssertionError):
            refused += 1
    ok(refused >= 20, "refused", refused)
    eq(s.post(mcp.request(2, "ping"), conn=worker).status, 200)
    for conn in conns:
        conn.close()
    wait_for(lambda: s.ask("ping").get("result") == {}, 3, "room again")


@case(daemon=False)
def reader_of_the_log_is_gone(t):
    """REL-47: a closed stderr pipe neither blocks nor kills."""
    d = t.start({"main": {}})
    # The pipe's only reader is our thread's file: closing it makes every further line EPIPE.
    s = t.session()
    os.dup2(os.open("/dev/null", os.O_RDONLY), d.process.stderr.fileno())
    for _ in range(20):
        eq(s.echo("x"), "x")
    eq(t.session().echo("y"), "y")
    ok(is_alive(d.gateway) and is_alive(d.pid), "daemon")


@case(daemon=False)
def reader_of_the_log_sleeps(t):
    """REL-47: a full stderr pipe does not block the daemon."""
    path = os.path.join(t.directory(), "http.sock")
    read, write = os.pipe()
    d = t.start({"main": {}}, {"listen": [{"address": "unix:" + path}], "log": {"level": "debug"}}, wait=False, stderr=write)
    os.close(write)
    wait_for(lambda: os.path.exists(path), 5, "socket")
    d.address = path
    time.sleep(0.3)
    s = t.session()
    for _ in range(3):
        s.do(["stderr", "e" * 500 + "\n", 3000], ["text", "x"])
    eq(s.echo("x"), "x")
    s.delete()
    s.id = None
    d.term()
    eq(d.wait(), 0)
    os.close(read)


@case(daemon=False)
def disk_full(t):
    """REL-47: a log on a full disk neither blocks nor kills."""
    t.start({"main": {}}, {"log": {"target": "/dev/full", "level": "debug"}})
    for _ in range(3):
        eq(t.session().echo("x"), "x")
    t.daemon.term()
    eq(t.daemon.wait(), 0)


@case
def foreign_text_in_the_log(t):
    """REL-48: CR, LF, ESC and forged lines from clients stay inside one escaped line, where nothing hides or turns it round."""
    unseen = "\u202e\u2066\u061c\u200b\ufeff\u00ad\u2028\u3164\ufe0f\U000e0041"
    s = t.session("main", info={"name": "x\n2026 error gateway_give_up\r\x1b[2J", "version": "1"})
    conn = t.conn()
    conn.request("GET", "/a%0d%0aerror%1b[31m\"quoted\"", [("User-Agent", "x\ty")]).read()
    s.post('{"jsonrpc":"2.0","id":"\\n2026 error forged","method":"no\\nsuch"}')
    s.ask("evil/\u001b[2J\u2028method")
    s.do(["stderr", "line one\nerror fake=1\rsecond\x1b]0;title\x07\n"], ["notify", "notifications/x\ny"], ["text", "x"])
    s.do(["stderr", "unseen " + unseen + "\n"], ["text", "x"])
    wait_for(lambda: any("unseen" in line for line in t.daemon.lines), 3, "the last line")
    escapes = "\\u202e\\u2066\\u061c\\u200b\\ufeff\\u00ad\\u2028\\u3164\\ufe0f\\udb40\\udc41"
    ok(any(escapes in line for line in t.daemon.lines), "as escapes", [line for line in t.daemon.lines if "unseen" in line])
    for line in t.daemon.lines:
        ok(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line), "control in the log", line)
        ok(not set(line) & set(unseen), "what is not seen in the log", line)
        ok(re.match(r"\d{4}-\d\d-\d\dT\S+ (error|warn|info|debug) [a-z_]+", line) or line.startswith("mcpgated: ready"),
           "shape of a log line", line)


@case
def no_core_dumps_of_secrets(t):
    """DEF-24 SEC-61: the gateway is not dumpable."""
    path = "/proc/%d/environ" % t.daemon.gateway
    owner = os.stat("/proc/%d/mem" % t.daemon.gateway).st_uid
    if os.getuid() == 0:
        with open("/proc/%d/limits" % t.daemon.gateway) as f:
            core = [l for l in f if l.startswith("Max core file size")][0].split()
        eq(core[4], "0", "core limit of " + path)
    else:
        eq(owner, 0, "owner of the gateway's memory file")


@case
def two_processes(t):
    """architecture §1: one keeper, one gateway; the children are the keeper's."""
    s = t.session()
    pid = s.pid()
    table = processes()
    eq(table[t.daemon.gateway][0], t.daemon.pid, "parent of the gateway")
    eq(table[pid][0], t.daemon.pid, "parent of the child")
    ok(not [p for p in descendants(t.daemon.gateway)], "children of the gateway")


@case
def readiness_and_liveness(t):
    """product §3: /healthz and /readyz refuse other methods, say nothing about the machine."""
    for path in ("/healthz", "/readyz"):
        response = t.conn().request("POST", path, [("Content-Type", "application/json")], b"{}")
        response.read()
        eq(response.status, 405, path)
        response = t.conn().request("GET", path + "?a=b")
        response.read()
        eq(response.status, 200, path + " with a query")
