# SPDX-License-Identifier: Apache-2.0
"""
A fuzzer of the whole program: clients of every front that send what the protocol allows and what it does not, servers that answer
with anything, an operator who reloads, denies and approves, processes that are killed; all in an order that a seed chooses. It
belongs to a build with sanitizers.

What must hold whatever happens: a result that a call gets is its own; each exchange ends in time; keeper and gateway live on,
but for the gateways that were killed here; no sanitizer speaks; in the end no process is left, and the descriptors are those of the
beginning. The last actions of every actor are printed with a failure.
"""
import collections
import json
import os
import random
import re
import signal
import subprocess
import threading
import time

import harness
import mcp
import wire
from common import Problem
from c80_stateless import fields, message
from eras import auth, form

CLIENTS = 12
ROUND_SECONDS = 60  # of one daemon; the next one has the next seed
CALL_SECONDS = 30  # more than all time-outs of the configurations together
REMEMBERED = 12    # actions of an actor
GATEWAY_KILLS_EVERY = 45  # more than three a minute, and the keeper gives up
TOKENS, AUTH = auth(("alice", "bob"))
SERVERS = ("own", "people", "shared", "modern", "both", "extra")
# Error lines that the daemon writes when it is done to it here.
EXPECTED = ("reload_refused", "gateway_exit", "gateway_lost", "server_failed", "child_broken", "listen_failed", "audit_lost",
            "audit_open_failed", "config_error", "pins_unreadable")
TEXTS = ("", "x", "\u00e9\u2028", "../../etc/passwd", "secret-12345678", "\\/", "a" * 5000, "\ufdfa" * 200, "\U0001f600")
LINES = (
    "", "{}", "[]", "nonsense", "null", "1", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":@ID@}', '{"jsonrpc":"2.0","id":@ID@,"result":NaN}',
    '{"id":@ID@,"result":{},"level":"info"}', '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}',
    '{"jsonrpc":"2.0","id":99999999,"result":{}}', '{"jsonrpc":"2.0","method":"","id":@ID@,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', '{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":1}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}',
    '{"jsonrpc":"2.0","id":8,"method":"roots/list"}', '{"jsonrpc":"2.0","id":9,"method":"no/such"}',
    '{"jsonrpc":"2.0","id":"' + "x" * 300 + '","result":{}}', "noise" + '{"jsonrpc":"2.0","id":77,"result":{}}', '{"a":' * 200, "x" * 70000,
    '[{"jsonrpc":"2.0","id":98,"result":{}}]', '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]},"id":1}',
)
BYTES = ("fffe206e6f74205554462d380a", "7b226a736f6e727063223a22322e30222c226964223a312c22726573756c74223a7b22ff223a317d7d0a", "0a0a0d0a", "00", "efbbbf0a")
METHODS = ("tools/list", "resources/list", "prompts/list", "resources/templates/list", "ping", "logging/setLevel", "resources/read",
           "resources/subscribe", "resources/unsubscribe", "prompts/get", "completion/complete", "tasks/list", "tasks/get", "server/discover",
           "subscriptions/listen", "no/such", "initialize")


# ---- configurations ----------------------------------------------------------

START = {"timeout": "4s", "backoff": "1ms..5ms", "give_up_after": 1000, "rate": 100000}


def script(chance, name):
    found = {"era": {"modern": "modern", "both": "both"}.get(name, "legacy")}
    if chance.random() < 0.3:
        found["on"] = {"tools/list": [["result", {"tools": tools(chance)}]]}
    return found


def tools(chance):
    known = [{"name": n, "inputSchema": {"type": "object"}, "description": chance.choice(TEXTS)} for n in ("do", "echo", "other")]
    return chance.sample(known, chance.randint(1, 3)) + known[:1] * chance.randint(0, 1)


# Key of a server -> values that it may have; None: it is not there.
SERVER_KEYS = {
    "isolation": ("session", "principal", "shared"), "request_timeout": ("1s", "3s", None), "era": ("legacy", "modern", None),
    "pool": ({"max": 1}, {"max": 3, "requests_per_process": 2}, {"max": 2, "warm": 1, "queue": 2}, {"max": 4, "idle_timeout": "100ms"}, None),
    "pin": ("off", "warn", "enforce", None), "redact": (["secret-[0-9]+"], None), "sanitize": ({"controls": "strip"}, {"invisible": "mark"}, None),
    "env": ({"A": "1"}, {"A": "2"}, None), "enabled": (False, True, None, None, None), "concurrency": (3, None), "rate": ({"calls": 600}, None, None),
    "tools": ({"deny": ["other"]}, {"allow": ["do", "echo"]}, {"deny": ["d*"]}, {"arguments": {"schema": "check"}}, None, None),
}
KEYS = {
    "audit": ({"to": "audit", "arguments": True}, {"to": "/nowhere/audit"}, None), "auth": (AUTH, None),
    "streams": ({"response": "sse"}, {"max_connection_age": "300ms"}, {"total_bytes": "64KiB", "replay_bytes": "16KiB"}, None),
    "sessions": ({"idle_timeout": "1s"}, {"max_age": "2s"}, None), "limits": ({"response": "64KiB"}, {"processes": 6}, {"sessions": 6}, None),
}


def drawn(chance, keys, share):
    found = {key: chance.choice(values) for key, values in keys.items() if chance.random() < share}
    return {key: value for key, value in found.items() if value is not None}


def servers(chance):
    found = {name: dict(drawn(chance, SERVER_KEYS, 0.3), script=script(chance, name)) for name in SERVERS if chance.random() < 0.85}
    for spec in found.values():
        spec.setdefault("request_timeout", "2s")
        spec.update(start=START, request_timeout_max="6s")
    return found


# ---- what all actors share ---------------------------------------------------

class Run:
    def __init__(self, daemon, seed, seconds):
        self.daemon, self.seed, self.until = daemon, seed, time.monotonic() + seconds
        self.counts, self.lock, self.ids = collections.Counter(), threading.Lock(), ["nothing"]
        self.gateway_kills = 0

    def is_over(self):
        return time.monotonic() > self.until

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


class Actor(threading.Thread):
    def __init__(self, run, number):
        super().__init__(daemon=True)
        self.shared, self.daemon_under_test, self.number = run, run.daemon, number
        self.chance = random.Random("%d %s %d" % (run.seed, type(self).__name__, number))
        self.done, self.problem = collections.deque(maxlen=REMEMBERED), None

    def run(self):
        try:
            while not self.shared.is_over():
                self.act()
        except BaseException as e:
            self.problem = e
            self.shared.until = 0

    def note(self, *what):
        self.done.append("%.3f %s" % (time.time(), " ".join(str(w)[:200] for w in what)))

    def story(self):
        return "%s %d: %r\n  %s" % (type(self).__name__, self.number, self.problem, "\n  ".join(self.done))


# ---- clients -----------------------------------------------------------------

def mutated(chance, data):
    """The bytes with a few of them changed, dropped, doubled or cut off."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, what = chance.randrange(len(data) + 1), chance.randrange(5)
        if what == 0:
            data[at:at + 1] = bytes([chance.randrange(256)])
        elif what == 1:
            del data[at:at + chance.randint(1, 8)]
        elif what == 2:
            data[at:at] = data[at:at + chance.randint(1, 40)]
        elif what == 3:
            data[at:at] = chance.choice((b'"', b"}", b"{", b"[", b"\\", b",", b"\x00", b"\xff", b"1e999", b"\\ud800", b"null", b"\r\n"))
        else:
            del data[at:]
    return bytes(data)


class Client(Actor):
    """One after the other, calls of a session; at times of none, at times of a session that it has lost."""

    def __init__(self, run, number):
        super().__init__(run, number)
        self.session, self.path, self.serial, self.last_event = None, None, 0, None
        self.version = mcp.C

    def act(self):
        self.serial += 1
        self.mark = "m-%d-%d-%x" % (self.number, self.serial, self.chance.getrandbits(48))
        self.bearer = mcp.bearer(self.chance.choice(list(TOKENS.values())) if self.chance.random() < 0.95 else None)
        kinds = {self.legacy: 8, self.modern: 6, self.old: 2, self.raw: 3, self.listen: 1, self.leave: 1, self.others: 1}
        what = self.chance.choices(list(kinds), list(kinds.values()))[0]
        try:
            what()
        except TimeoutError as e:
            raise Problem("%s: nothing has come in time" % self.mark) from e
        except (OSError, wire.ProtocolError) as e:
            # A connection may end: the gateway was killed, a stream has ended, a peer was refused. Wrong HTTP may not.
            if isinstance(e, wire.ProtocolError) and "connection" not in str(e) and "ended" not in str(e):
                raise
            self.shared.count("cut")
            time.sleep(0.02)

    # ---- calls ----

    def steps(self):
        c, found = self.chance, []
        for _ in range(c.choice((0, 0, 1, 2, 3))):
            found.append(c.choice((
                lambda: ["sleep", c.uniform(0, 0.1)], lambda: ["line", c.choice(LINES)], lambda: ["progress", c.randrange(5)],
                lambda: ["log", "error", c.choice(TEXTS)], lambda: ["notify", "notifications/tools/list_changed"],
                lambda: ["hex", c.choice(BYTES)], lambda: ["stderr", c.choice(TEXTS) + "\n"],
                lambda: ["ask", "q%d" % c.randrange(3), "elicitation/create", form(self.mark)], lambda: ["fill", "x", c.choice((10, 200000))],
                lambda: ["write", "{"], lambda: ["notify", "notifications/resources/updated", {"uri": "res://a"}]))())
        if c.random() < 0.06:
            found.append(c.choice((["exit", 3], ["kill", 11], ["deaf"], ["close_stdout"], ["close_stdin"], ["wait_cancel"])))
        end = c.choice((["text", self.mark], ["text", self.mark], ["text", self.mark + "x" * c.choice((1, 3000, 90000))],
                        ["error", -32000, self.mark], ["task", "t%d" % c.randrange(3), [["sleep", 0.05], ["job", {"status": "completed"}]]],
                        ["input", {"q": {"method": "elicitation/create", "params": form(self.mark)}}]))
        return found + [end]

    def request(self, request_id):
        c = self.chance
        if c.random() < 0.65:
            return mcp.request(request_id, "tools/call", {"name": "do", "arguments": {"steps": self.steps()}, "_meta": {"progressToken": request_id}})
        params = {"name": c.choice(("echo", "do", "p", "nobody")), "uri": "res://" + c.choice("ab"), "level": c.choice(("debug", "error", "loud")),
                  "arguments": {"text": self.mark}, "cursor": c.choice(TEXTS), "taskId": c.choice(self.shared.ids),
                  "requestState": c.choice(self.shared.ids), "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
        return mcp.request(request_id, c.choice(METHODS + ("tools/call",) * 4), {k: v for k, v in params.items() if c.random() < 0.6})

    def judge(self, m, request_id, is_own_text):
        """A message that came for this request."""
        if not isinstance(m, dict):
            raise Problem("%s: not a message: %r" % (self.mark, m))
        if "method" in m:
            return
        if "result" not in m and "error" not in m:
            raise Problem("%s: no response: %r" % (self.mark, m))
        if m.get("id") not in (request_id, None):
            raise Problem("%s: the answer of another: asked %r, got %r" % (self.mark, request_id, str(m)[:300]))
        result = m.get("result")
        for item in result.get("content", []) if isinstance(result, dict) and isinstance(result.get("content"), list) else []:
            text = item.get("text") if isinstance(item, dict) else None
            if is_own_text and isinstance(text, str) and re.match(r"m-\d+-\d+-", text) and not text.startswith(self.mark):
                raise Problem("%s: the text of another: %r" % (self.mark, text[:100]))
        if isinstance(result, dict):
            self.shared.ids += [v for v in (result.get("requestState"), (result.get("task") or {}).get("taskId"), result.get("taskId")) if isinstance(v, str)]
            del self.shared.ids[:-50]
            self.shared.count("result")
        else:
            self.shared.count("error")

    def exchange(self, conn, request_id, answers):
        """Reads to the end, or leaves early."""
        response, c = conn.response(), self.chance
        if not response.is_sse:
            body = response.read()
            if response.header("content-type", "").startswith("application/json") and body:
                for m in [json.loads(body)] if body[:1] == b"{" else json.loads(body):
                    self.judge(m, request_id, True)
            return response
        reader, left = wire.EventReader(response), c.random() < 0.1
        while True:
            event = reader.next(CALL_SECONDS)
            if event is None:
                return response
            self.last_event = event.id or self.last_event
            if event.data:
                m = json.loads(event.data)
                self.judge(m, request_id, True)
                if "method" in m and "id" in m and answers and c.random() < 0.8:
                    self.respond(m["id"])
            if left:
                return response

    def respond(self, request_id):
        c = self.chance
        request_id = c.choice((request_id, request_id, request_id, str(request_id), 12345))
        body = {"jsonrpc": "2.0", "id": request_id, "result": {"action": "accept", "content": {"a": self.mark}}}
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        conn.request("POST", self.path, self.head(), mcp.encode(body)).read()
        conn.close()

    # ---- the fronts ----

    def head(self):
        found = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)] + self.bearer
        if self.session:
            found.append(("Mcp-Session-Id", self.session))
            if self.version != mcp.B:
                found.append(("MCP-Protocol-Version", self.version))
        return found

    def post(self, body, head, judged=None, answers=False):
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        try:
            data = mcp.encode(body)
            conn.send(conn.head("POST", self.path, head, len(data)) + data)
            return self.exchange(conn, judged, answers)
        finally:
            conn.close()

    def begin(self):
        self.path, self.version = "/%s/mcp" % self.chance.choice(SERVERS), self.chance.choice(mcp.ALL)
        self.session, self.last_event = None, None
        self.note("initialize", self.path, self.version)
        caps = self.chance.choice(({}, {"elicitation": {}}, {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}, "tasks": {}}))
        response = self.post(mcp.initialize(self.version, caps, request_id=5), self.head(), 5)
        self.session = response.header("mcp-session-id")
        if self.session and self.chance.random() < 0.95:
            self.post(mcp.notification("notifications/initialized"), self.head())
        return self.session is not None

    def legacy(self):
        if self.session is None and not self.begin():
            time.sleep(0.05)
            return
        request_id = self.chance.choice((1, 2, "a", "1", 0))
        body = self.request(request_id)
        self.note("call", self.path, body)
        if self.chance.random() < 0.1:
            self.post(mcp.notification("notifications/cancelled", {"requestId": self.chance.choice((1, 2, "a"))}), self.head())
        response = self.post(body, self.head(), request_id, answers=True)
        if response.status == 404 or self.chance.random() < 0.02:
            self.session = None

    def modern(self):
        before, self.session, self.path = (self.session, self.path), None, "/%s/mcp" % self.chance.choice(SERVERS)
        try:
            request_id = self.chance.choice((1, 2, "a", "1"))
            own = self.request(request_id)
            caps = self.chance.choice(({}, {"elicitation": {}}, {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}))
            body = message(own["method"], own.get("params"), request_id=request_id, caps=caps, token=request_id)
            self.note("modern", self.path, body)
            self.post(body, fields(body) + self.bearer, request_id)
        finally:
            self.session, self.path = before

    def old(self):
        """HTTP+SSE: a stream, a few calls, and at times the stream again."""
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        path = "/%s/sse" % self.chance.choice(SERVERS)
        try:
            for _ in range(self.chance.randint(1, 3)):
                self.note("sse", path)
                conn.send(conn.head("GET", path, [("Accept", "text/event-stream")] + self.bearer))
                response = conn.response()
                if response.status != 200:
                    response.read()
                    return
                reader = wire.EventReader(response)
                first = reader.next(CALL_SECONDS)
                if first is None or not self.told(first.data.decode(), reader):
                    return
                conn.close()
                conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        finally:
            conn.close()

    def told(self, uri, reader):
        """Whether all was accepted, and answered."""
        bodies = [mcp.initialize(mcp.A, request_id=5)]
        bodies += [mcp.request(n, "tools/call", {"name": "echo", "arguments": {"text": self.mark}}) for n in range(self.chance.randrange(3))]
        for body in bodies:
            if not self.tell(uri, body):
                return False
            event = reader.next(CALL_SECONDS)
            while event is not None and b'"method"' in event.data:
                event = reader.next(CALL_SECONDS)
            if event is None:
                return False
            self.judge(json.loads(event.data), body["id"], True)
        return True

    def tell(self, uri, body):
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        response = conn.request("POST", uri, [("Content-Type", "application/json")] + self.bearer, mcp.encode(body))
        response.read()
        conn.close()
        return response.status == 202

    def raw(self):
        """Bytes near those of a request, whole or cut."""
        self.path = self.path or "/own/mcp"
        data, c = mcp.encode(self.request(1)), self.chance
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        try:
            if c.random() < 0.6:
                data = mutated(c, data)
                head = conn.head("POST", self.path, self.head(), len(data))
            else:
                head = mutated(c, conn.head("POST", self.path, self.head(), len(data)))
            self.note("raw", head + data)
            conn.send((head + data)[:c.choice((10 ** 9, 10 ** 9, len(head), len(head) // 2))])
            if c.random() < 0.5:
                conn.half_close()
                while conn.sock.recv(65536):
                    pass
        finally:
            conn.close()

    def listen(self):
        """The session's own stream, or one of before, for a moment."""
        if self.session is None:
            return
        again = [("Last-Event-ID", self.chance.choice((self.last_event, "nonsense", "0-0")))] if self.last_event else []
        self.note("listen", self.path, again)
        conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
        try:
            conn.send(conn.head("GET", self.path, [f for f in self.head() if f[0] != "Content-Type"] + again))
            response = conn.response()
            if response.is_sse:
                reader = wire.EventReader(response)
                event = reader.next(0.2)
                while event is not None:
                    event = reader.next(0.2)
        except TimeoutError:
            pass
        finally:
            conn.close()

    def leave(self):
        if self.session and self.chance.random() < 0.3:
            self.note("delete", self.path)
            conn = wire.Conn(self.daemon_under_test.address, timeout=CALL_SECONDS)
            conn.request("DELETE", self.path, [f for f in self.head() if f[0] != "Content-Type"]).read()
            conn.close()
            self.session = None

    def others(self):
        """Calls in a batch; a session at another server's endpoint; a made-up one."""
        c, before = self.chance, (self.session, self.path)
        if not self.session:
            return
        self.path = "/%s/mcp" % c.choice(SERVERS)
        self.session = c.choice((self.session, "made-up", self.session[:-1] + "0"))
        self.note("others", self.path, self.session)
        try:
            self.post(c.choice(([self.request(1)] * 2, self.request(1), [], [1], b"", [mcp.notification("ping")])), self.head(), 1)
        finally:
            self.session, self.path = before


# ---- the operator, and accidents ---------------------------------------------

class Operator(Actor):
    def ctl(self, *argv):
        self.note(*argv)
        program = os.path.join(harness.BIN, "mcpgatectl")
        found = subprocess.run([program, "--socket", self.daemon_under_test.admin] + list(argv), capture_output=True, timeout=60)
        self.shared.count("ctl %s %d" % (" ".join(argv[:2] if argv[0] in ("deny", "pins") else argv[:1]), found.returncode))

    def act(self):
        kinds = {self.reload: 6, self.deny: 2, self.look: 2, self.pins: 2}
        self.chance.choices(list(kinds), list(kinds.values()))[0]()
        time.sleep(self.chance.choice((0, 0.01, 0.05, 0.3, 1)))

    def reload(self):
        daemon, c = self.daemon_under_test, self.chance
        daemon.servers, daemon.extra = servers(c), dict(BASE, **drawn(c, KEYS, 0.4))
        if daemon.extra.get("audit", {}).get("to") == "audit":
            daemon.extra["audit"] = dict(daemon.extra["audit"], to=os.path.join(daemon.dir, "audit.log"))
        text = harness.to_yaml(daemon.configuration()) + "\n" + ("nonsense: 1\n" if c.random() < 0.1 else "")
        self.note("reload", json.dumps({n: {k: v for k, v in s.items() if k != "script"} for n, s in daemon.servers.items()}), json.dumps(daemon.extra))
        with open(daemon.file + ".new", "w") as f:
            f.write(text)
        os.chmod(daemon.file + ".new", 0o600)
        os.rename(daemon.file + ".new", daemon.file)
        if c.random() < 0.5:
            self.ctl("reload")
        else:
            daemon.process.send_signal(signal.SIGHUP)

    def deny(self):
        c = self.chance
        if c.random() < 0.4:
            self.ctl("deny", "add", "--issuer", "static", "--sub", c.choice(("alice", "bob", "nobody")), "--for", c.choice(("1s", "1h")))
        else:
            self.ctl("deny", "remove", str(c.randrange(1, 20)))

    def look(self):
        c = self.chance
        server = c.choice(SERVERS)
        self.ctl(*c.choice((["status"], ["servers"], ["processes"], ["sessions"], ["pins"], ["streams"], ["metrics"], ["deny", "list"], ["tools", server],
                            ["call", server, "echo", '{"text":"x"}'], ["logs", server], ["restart", server], ["can", "alice", server, "do"])))

    def pins(self):
        self.ctl("pins", self.chance.choice(("approve", "reject")), self.chance.choice(SERVERS), "--all")


class Accident(Actor):
    def __init__(self, run, number):
        super().__init__(run, number)
        self.next_gateway = time.monotonic() + GATEWAY_KILLS_EVERY * self.chance.uniform(0.2, 1)

    def act(self):
        time.sleep(self.chance.uniform(0, 1.0))
        if time.monotonic() > self.next_gateway:
            self.kill_gateway()
        victims = self.daemon_under_test.children()
        if victims and self.chance.random() < 0.5:
            pid = self.chance.choice(victims)
            self.note("kill", pid)
            self.shared.count("kill")
            harness.kill(pid)

    def kill_gateway(self):
        daemon, before = self.daemon_under_test, self.daemon_under_test.find_gateway()
        self.note("kill the gateway", before)
        self.shared.gateway_kills += 1
        os.kill(before, signal.SIGKILL)
        harness.wait_for(lambda: daemon.find_gateway() not in (None, before), 15, "the next gateway")
        self.next_gateway = time.monotonic() + GATEWAY_KILLS_EVERY * self.chance.uniform(0.5, 1.5)


BASE = {"log": {"level": "info"}, "sessions": {"idle_timeout": "5s"}}


def judge_lives(run):
    lives, kills = len(run.daemon.log("gateway_start")), run.gateway_kills
    if lives != kills + 1:
        raise Problem("the gateway was started %d times, and killed %d times" % (lives, kills))


def one_round(seed, seconds):
    """A daemon from its start to its end. Returns what was done, as text."""
    daemon = harness.Daemon({n: {"script": {}, "request_timeout": "2s", "request_timeout_max": "6s", "start": START} for n in SERVERS}, BASE)
    daemon.expected_errors.update(EXPECTED)
    run = Run(daemon, seed, seconds)
    actors = [Client(run, n) for n in range(CLIENTS)] + [Operator(run, 0), Accident(run, 0)]
    problems = []
    try:
        for actor in actors:
            actor.start()
        for actor in actors:
            actor.join()
        problems = [actor.story() for actor in actors if actor.problem is not None]
        judge_lives(run)
        if daemon.process.poll() is not None:
            raise Problem("the keeper has ended with %d" % daemon.process.returncode)
    except Problem as e:
        problems.append(str(e))
    finally:
        if problems:
            problems += [actor.story() for actor in actors[CLIENTS:] if actor.problem is None]
            with open("protocol-%d.log" % seed, "w") as f:
                f.write("\n".join(daemon.lines))
        problems += daemon.stop()
    if problems:
        raise Problem("seed %d (the log is in protocol-%d.log):\n%s" % (seed, seed, "\n".join(problems)))
    return ", ".join("%s %d" % pair for pair in sorted(run.counts.items()))


def part_protocol(options, child):
    """Everything at once, in random order: nothing dies, nothing crosses, every exchange ends."""
    seed = options.seed or random.randrange(1 << 30)
    for n in range(max(1, options.seconds // ROUND_SECONDS)):
        print("protocol: seed %d" % (seed + n), flush=True)
        print("protocol: %s" % one_round(seed + n, min(options.seconds, ROUND_SECONDS)), flush=True)
