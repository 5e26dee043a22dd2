# SPDX-License-Identifier: Apache-2.0
"""
Clients of both eras at servers of one and of both, in every isolation, for two callers: calls in any order, processes that crash, are
restarted or idle too long, sessions that expire, one end of the gateway, attempts at what is another's. Each answer names who
asked, each process serves only whom it may: a mix-up fails, and says the seed.
"""
import collections
import hashlib
import itertools
import json
import os
import random
import signal
import threading
import time

import harness
import mcp
import wire
from common import Problem
from c80_stateless import fields, message

ISOLATIONS, ERAS = ("session", "principal", "shared"), ("legacy", "modern")
SERVER_ERAS = ERAS + ("both",)  # the last is legacy until a modern client comes, and modern from then on
CLIENTS = 2  # of each era and caller at each server
SECONDS = 15
SECONDS_MAX = 4 * SECONDS  # until everything has happened that should, on a machine that is slow
SESSION_SECONDS = 1.0
CRASH_EVERY = 0.4
OUTAGE = 8.0  # so long after the end of a gateway what fails is forgiven
ELICIT = {"elicitation": {}}
# What may become of a call by no fault of its client.
FAILURES = ("child_exited", "overloaded", "backend_unavailable", "cancelled", "parked_call_lost")
START = {"backoff": "1ms..5ms", "give_up_after": 1000, "rate": 100000}


def auth(callers):
    """({caller: token}, the configuration that knows them)."""
    tokens = {n: "%s-token-0123456789abcdef" % n for n in callers}
    known = [{"name": n, "sha256": hashlib.sha256(t.encode()).hexdigest()} for n, t in tokens.items()]
    return tokens, {"mode": "token", "tokens": known}


TOKENS, AUTH = auth(("alice", "bob"))


def tools(era):
    """A list that names the process that gave it."""
    known = ', '.join('{"name": "%s", "inputSchema": {"type": "object"}}' % name for name in ("do", "from-@PID@"))
    extra = "" if era == "legacy" else '"resultType": "complete", "ttlMs": 0, "cacheScope": "private", '
    return [["line", '{"jsonrpc": "2.0", "id": @ID@, "result": {%s"tools": [%s]}}' % (extra, known)]]


def server(isolation, era):
    return {"script": {"era": era, "on": {"tools/list": tools(era)}}, "isolation": isolation,
            "pool": {"max": 8, "requests_per_process": 8, "idle_timeout": "300ms"},
            "start": START}


def form(mark):
    return {"mode": "form", "message": mark, "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}


def may_ask(isolation, era):
    """Whether calls of such a server are to ask: one of both eras has no way that does for both."""
    return era == "modern" or (era == "legacy" and isolation != "shared")


def asking(era, mark):
    """Arguments of a call whose server tells, as its result, what it was answered."""
    if era == "legacy":
        return {"steps": [["ask", mark, "elicitation/create", form(mark)], ["asked"]]}
    return {"rounds": [[["input", {"q": {"method": "elicitation/create", "params": form(mark)}}]], [["told"]]]}


def text(mark):
    return ["text", mark + " @PID@"]


# What a server may do in a call: m is the call's mark, p a number of its own, r a source of chance.
TRICKS = {
    "plain": lambda m, p, r: [text(m)],
    "slow": lambda m, p, r: [["sleep", r.uniform(0, 0.05)], text(m)],
    "twice": lambda m, p, r: [text(m), text(m)],
    "stray": lambda m, p, r: [["line", '{"jsonrpc":"2.0","id":@ID@000000,"result":{"content":[{"type":"text","text":"stray"}]}}'],
                              text(m)],
    "progress": lambda m, p, r: [["progress", p], ["sleep", 0.01], ["progress", p + 1], text(m), ["progress", p + 2]],
    "logs": lambda m, p, r: [["log", "error", m], text(m)],
    "left": lambda m, p, r: [["progress", p], ["wait_cancel"], text(m), ["progress", p + 1]],
}
WEIGHTS = {"listed": 1, "asked": 4, "thief": 1, "pause": 0.3}


class Run:
    """What the clients share."""

    def __init__(self, daemon, seed):
        self.daemon, self.seed = daemon, seed
        self.is_over = False
        self.lock = threading.Lock()
        self.owners, self.counts, self.things = {}, collections.Counter(), {}
        self.gateway_killed = -OUTAGE
        self.lives = self.kills = 0  # gateways that are dead for certain, and that may be dead

    def count(self, *what):
        with self.lock:
            self.counts[what] += 1

    def claim(self, name, pid, owner):
        """That process answers this owner: no other one, ever."""
        with self.lock:
            first = self.owners.setdefault((name, pid), owner)
        if first != owner:
            raise Problem("process %d of %s serves %r and %r" % (pid, name, first, owner))

    def is_out(self):
        return time.monotonic() < self.gateway_killed + OUTAGE


class Client(threading.Thread):
    """One after the other, calls with the same few ids and tokens as everybody's."""

    def __init__(self, run, number, isolation, era, caller, declares):
        super().__init__(daemon=True)
        self.declares = declares  # a legacy one: that it can be asked; and it wants log lines
        self.shared, self.number, self.caller = run, number, caller
        self.isolation, self.server_era, self.server = isolation, era, "%s-%s" % (isolation, era)
        self.path, self.bearer = "/%s/mcp" % self.server, mcp.bearer(TOKENS[caller])
        self.random = random.Random(run.seed * 1000 + number)
        self.serial, self.problem, self.conn = 0, None, None

    def run(self):
        try:
            while not self.shared.is_over:
                self.act_or_forgive()
        except BaseException as e:
            self.problem = e
        self.drop()

    def act_or_forgive(self):
        """While the gateway is replaced connections end."""
        try:
            self.act()
        except (OSError, wire.ProtocolError) as e:
            if not self.shared.is_out() or not isinstance(e, OSError) and "connection" not in str(e):
                raise
            self.shared.count("cut")
            self.drop()
            time.sleep(0.05)

    def act(self):
        kinds = [k for k in list(TRICKS) + list(WEIGHTS) if k != "asked" or self.may_be_asked()]
        kind = self.random.choices(kinds, [WEIGHTS.get(k, 1) for k in kinds])[0]
        self.serial += 1
        self.mark = "%s-%s-%d-%d-%x" % (self.caller, self.era, self.number, self.serial, self.random.getrandbits(64))
        self.progress = self.number * 10 ** 6 + self.serial * 10
        self.id, self.asked, self.questions = self.random.randrange(3), 0, []
        if not self.prepare():
            return
        if kind in ("thief", "pause"):
            getattr(self, kind)()
        elif kind == "listed":
            self.exchange(kind, "tools/list", {})
        elif kind == "asked":
            self.exchange(kind, "tools/call", {"name": "do", "arguments": asking(self.server_era, self.mark)})
        else:
            steps = TRICKS[kind](self.mark, self.progress, self.random)
            self.exchange(kind, "tools/call", {"name": "do", "arguments": {"steps": steps}})

    # ---- bytes ------------------------------------------------------------

    def drop(self):
        if self.conn:
            self.conn.close()
        self.conn = None

    def post(self, body, head, conn=None):
        """The response to a message, its head read."""
        if conn is None:
            self.conn = conn = self.conn or wire.Conn(self.shared.daemon.address, timeout=30)
        return conn.request("POST", self.path, head, mcp.encode(body))

    def messages(self, response):
        """Each message as it comes."""
        if not response.is_sse:
            body = response.read()
            if body:
                yield json.loads(body)
            return
        reader = wire.EventReader(response)
        event = reader.next(30)
        while event is not None:
            if event.data:
                yield json.loads(event.data)
            event = reader.next(30)

    # ---- judging ----------------------------------------------------------

    def wrong(self, what, message):
        raise Problem("%s, %s client %d of %s at %s: %s: %r" % (
            self.mark, self.era, self.number, self.caller, self.server, what, str(message)[:500]))

    def expect(self, condition, what, message):
        if not condition:
            self.wrong(what, message)

    def judge_notification(self, m):
        params = m["params"]
        if m["method"] == "notifications/cancelled":
            self.expect(params["requestId"] in self.questions, "a question that is taken back", m)
        elif m["method"] == "notifications/progress":
            self.expect(params["progressToken"] == self.id and params["progress"] - self.progress in (0, 1, 2), "progress", m)
        else:
            self.expect(m["method"] == "notifications/message" and params["data"] == self.mark, "a notification", m)

    def judge_question(self, m):
        self.expect(m["method"] == "elicitation/create" and m["params"]["message"] == self.mark, "a question", m)
        self.asked += 1

    def judge_end(self, kind, m):
        """Returns whether it is a result."""
        self.expect(m.get("id") == self.id, "an id", m)
        if "error" in m:
            self.expect((m["error"].get("data") or {}).get("reason") in FAILURES, "an error", m)
            self.shared.count("failed")
            return False
        result = m["result"]
        if kind == "listed":
            self.judge_process(result["tools"][1]["name"].removeprefix("from-"), m)
        elif kind == "asked":
            self.judge_answers(json.loads(result["content"][0]["text"]), m)
        else:
            mark, pid = result["content"][0]["text"].split(" ")
            self.expect(mark == self.mark, "an answer", m)
            self.judge_process(pid, m)
        self.shared.count(self.server, self.era, kind)
        return True

    def judge_answers(self, told, m):
        answers = list(told.values()) if isinstance(told, dict) else [a.get("result") for a in told]
        self.expect(self.asked == 1 and answers == [self.accept()], "answers (asked %d times)" % self.asked, m)

    def judge_process(self, pid, m):
        self.expect(pid.isdigit(), "a process", m)
        if self.isolation != "shared":
            self.shared.claim(self.server, int(pid), self.owner())

    def accept(self):
        return {"action": "accept", "content": {"a": self.mark}}

    def owner(self):
        return self.caller

    # ---- others -----------------------------------------------------------

    def show(self, thing):
        """Lets the others know what must be of no use to them."""
        with self.shared.lock:
            self.shared.things[(self.server, self.era, self.caller)] = thing

    def seen(self):
        other = next(n for n in TOKENS if n != self.caller)
        with self.shared.lock:
            return self.shared.things.get((self.server, self.era, other))


class Legacy(Client):
    era = "legacy"
    session = None

    def may_be_asked(self):
        return self.declares and may_ask(self.isolation, self.server_era)

    def head(self, session=None):
        found = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)] + self.bearer
        session = session or self.session
        return found + ([("Mcp-Session-Id", session), ("MCP-Protocol-Version", mcp.C)] if session else [])

    def owner(self):
        return self.session if self.isolation == "session" else self.caller

    def prepare(self):
        """A session, once there is room for it."""
        if self.session is not None:
            return True
        # Before it is asked for: of a gateway that ends afterwards it may be.
        self.life, self.used = self.shared.lives, time.monotonic()
        response = self.post(mcp.initialize(mcp.C, ELICIT if self.declares else None), self.head())
        answer = list(self.messages(response))[-1]
        if response.status == 503:
            self.expect(answer["error"]["data"]["reason"] in FAILURES, "a refusal", answer)
            self.shared.count("refused")
            time.sleep(0.1)
            return False
        self.expect(response.status == 200 and "result" in answer, "initialize", answer)
        self.session = response.header("mcp-session-id")
        self.post(mcp.notification("notifications/initialized"), self.head()).read()
        if self.declares and self.isolation != "shared":
            self.post(mcp.request("level", "logging/setLevel", {"level": "debug"}), self.head()).read()
        self.show(self.session)
        return True

    def exchange(self, kind, method, params):
        used, self.used = self.used, time.monotonic()
        response = self.post(mcp.request(self.id, method, dict(params, _meta={"progressToken": self.id})), self.head())
        if response.status == 404:
            response.read()
            self.judge_loss(time.monotonic() - used)  # a busy machine lets the gateway have the request late
            return
        for m in self.messages(response):
            if "id" not in m:
                self.judge_notification(m)
                if kind == "left":
                    self.answer(mcp.notification("notifications/cancelled", {"requestId": self.id}))
            elif "method" in m:
                self.judge_question(m)
                self.questions.append(m["id"])
                self.answer({"jsonrpc": "2.0", "id": m["id"], "result": self.accept()})
            else:
                self.judge_end(kind, m)

    def judge_loss(self, idle):
        """The session may have ended: of itself, with the gateway, or since its own process was killed too often."""
        is_old = idle > 0.9 * SESSION_SECONDS
        self.expect(is_old or self.life != self.shared.kills or self.isolation == "session",
                    "a session is lost, idle for %.3f s" % idle, self.session)
        self.shared.count("expired" if is_old else "lost")
        self.session = None

    def answer(self, body):
        conn = wire.Conn(self.shared.daemon.address, timeout=30)
        self.post(body, self.head(), conn).read()
        conn.close()

    def pause(self):
        """The session may expire; what comes next finds that out."""
        time.sleep(SESSION_SECONDS * self.random.uniform(0.5, 1.5))

    def thief(self):
        session = self.seen()
        if session is None:
            return
        response = self.post(mcp.request(self.id, "tools/call", {"name": "do", "arguments": {"steps": [text(self.mark)]}}),
                             self.head(session))
        answers = list(self.messages(response))
        self.expect(response.status == 404 and not any("result" in a for a in answers), "another's session served", answers)
        self.shared.count(self.server, self.era, "thief")


class Modern(Client):
    era = "modern"

    def may_be_asked(self):
        return may_ask(self.isolation, self.server_era)

    def prepare(self):
        self.life = self.shared.lives
        return True

    def request(self, kind, method, params):
        caps = ELICIT if kind == "asked" or self.random.random() < 0.2 else None
        body = message(method, params, request_id=self.id, caps=caps, token=self.id, level="debug" if kind == "logs" else None)
        return self.post(body, fields(body) + self.bearer)

    def exchange(self, kind, method, params):
        response = self.request(kind, method, params)
        for m in self.messages(response):
            if "id" not in m:
                self.judge_notification(m)
                if kind == "left":
                    self.drop()
                    self.shared.count(self.server, self.era, kind)
                    return
            elif m.get("result", {}).get("resultType") == "input_required" and self.asked == 0:
                self.try_again(params, m)
            elif (m.get("error", {}).get("data") or {}).get("reason") == "invalid_request_state" and self.asked:
                self.expect(self.server_era == "legacy" and self.life != self.shared.kills, "a state is lost", m)
            else:
                self.judge_end(kind, m)

    def try_again(self, params, m):
        self.expect(m["id"] == self.id, "an id", m)
        requests, state = m["result"]["inputRequests"], m["result"]["requestState"]
        for request in requests.values():
            self.judge_question(request)
        again = dict(params, requestState=state, inputResponses={key: self.accept() for key in requests})
        self.show(again)
        if self.random.random() < 0.3:  # let others have a try first
            time.sleep(0.05)
        self.exchange("asked", "tools/call", again)

    def pause(self):
        time.sleep(0.4)  # longer than processes may be idle

    def thief(self):
        again = self.seen()
        if again is None:
            return
        response = self.request("asked", "tools/call", again)
        m = list(self.messages(response))[-1]
        reason = (m.get("error", {}).get("data") or {}).get("reason")
        if response.status == 503 and reason in FAILURES:  # it has not come as far as to be judged
            self.shared.count("refused")
            return
        self.expect((response.status, reason) == (400, "invalid_request_state"), "another's state was taken", m)
        self.shared.count(self.server, self.era, "thief")


# ---- all of them -------------------------------------------------------------

def kill_gateway(daemon, run):
    before = daemon.gateway
    daemon.expected_errors.add("gateway_exit")
    run.gateway_killed = time.monotonic()
    run.kills += 1
    os.kill(before, signal.SIGKILL)
    harness.wait_for(lambda: not harness.is_alive(before), 10, "the end of the gateway")
    run.lives += 1
    daemon.gateway = harness.wait_for(lambda: daemon.find_gateway() not in (None, before) and daemon.find_gateway(), 10,
                                      "the next gateway")


def restart(daemon, run, name):
    """All processes of a server at once."""
    conn = wire.Conn(daemon.admin)
    if conn.request("POST", "/restart?server=" + name).read():
        run.count("restarts")
    conn.close()


def crash_some(daemon, run, rng, clients):
    """Kills a process every now and then, and the gateway once, and has servers restarted, until all that should has happened."""
    began = time.monotonic()
    while not any(c.problem for c in clients):
        passed = time.monotonic() - began
        if passed > SECONDS_MAX or (passed > SECONDS and not lacking(run)):
            break
        time.sleep(CRASH_EVERY * rng.uniform(0.5, 1.5))
        victims = daemon.children()
        if victims and harness.kill(rng.choice(victims)):
            run.count("crashes")
        if rng.random() < 0.2:
            restart(daemon, run, rng.choice(list(daemon.servers)))
        if run.kills == 0 and passed > SECONDS / 2:
            kill_gateway(daemon, run)


def lacking(run):
    """What has not happened and should have: a run without it has shown nothing."""
    with run.lock:
        happened = dict(run.counts)
    wanted = [("crashes",), ("restarts",), ("expired",)]
    for isolation, era, client in itertools.product(ISOLATIONS, SERVER_ERAS, ERAS):
        kinds = ["plain", "listed"] + (["asked"] if may_ask(isolation, era) else [])
        if client == "legacy" or "asked" in kinds:
            kinds.append("thief")  # modern clients who were asked nothing have no state to steal
        wanted += [("%s-%s" % (isolation, era), client, k) for k in kinds]
    return [w for w in wanted if not happened.get(w)]


def part_eras(options, child):
    """Both eras on both sides: what a client gets back was computed for it."""
    seed = options.seed or random.randrange(1 << 30)
    rng = random.Random(seed)
    matrix = list(itertools.product(ISOLATIONS, SERVER_ERAS))
    daemon = harness.Daemon({"%s-%s" % row: server(*row) for row in matrix},
                            {"auth": AUTH, "log": {"level": "error"}, "limits": {"processes": 80},
                             "sessions": {"idle_timeout": "%dms" % (SESSION_SECONDS * 1000)}})
    run = Run(daemon, seed)
    makers = itertools.product(range(CLIENTS), (Legacy, Modern), TOKENS, matrix)
    clients = [make(run, n, isolation, era, caller, k % 2 == 0) for n, (k, make, caller, (isolation, era)) in enumerate(makers)]
    try:
        for c in clients:
            c.start()
        crash_some(daemon, run, rng, clients)
        run.is_over = True
        for c in clients:
            c.join(60)
    finally:
        problems = daemon.stop()
    problems = [repr(c.problem) for c in clients if c.problem] + problems
    problems += ["client %d does not end" % c.number for c in clients if c.is_alive()]
    problems = problems or ["never: %s" % " ".join(w) for w in lacking(run)]
    if problems:
        raise Problem("seed %d: %s" % (seed, "; ".join(problems[:5])))
    of = collections.Counter()
    for what, n in run.counts.items():
        of[what[-1]] += n
    print("eras: %d clients, %d calls answered, %d asked their clients, %d by the wrong caller refused, %d cut short, %d processes "
          "and the gateway killed, %d servers restarted, %d sessions ended early; 0 crossed, seed %d" % (
              len(clients), sum(n for what, n in run.counts.items() if len(what) == 3 and what[2] != "thief"), of["asked"],
              of["thief"], of["failed"] + of["cut"], of["crashes"], of["restarts"], of["expired"], seed), flush=True)
