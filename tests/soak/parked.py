# SPDX-License-Identifier: Apache-2.0
"""
Thousands of calls of modern clients at legacy servers that ask: made, left, forgotten, resumed, tried twice at once, replayed, and
presented by the wrong caller, at random with a seed. What the servers got is recorded: no call is run twice, each question
is answered once, with the answer of who was asked; in the end all processes are at rest in their pools.
"""
import collections
import json
import random
import threading
import time

import harness
import mcp
import wire
from common import Problem
from c80_stateless import fields, message, messages_of
from eras import ELICIT, START, auth, form

CALLERS = ("alice", "bob", "carol", "dave")
TOKENS, AUTH = auth(CALLERS)
WORKERS = 3  # of each caller
HOLDS = 6  # calls that a worker leaves waiting at once
POOL_MAX = {"main": 40, "small": 6}
PER_CALLER, PER_SERVER = 8, {name: most // 2 for name, most in POOL_MAX.items()}  # calls that may wait: bridging.md §7


def ask(mark, n):
    return ["ask", "%s/%d" % (mark, n), "elicitation/create", form("%s/%d" % (mark, n))]


def send(mark, n):
    return ["send"] + ask(mark, n)[1:]


# What servers do in a call, and how often; those that end with `asked` tell as their result what they were answered.
SCRIPTS = {
    "one": (8, lambda m: [ask(m, 1), ["asked"]]),
    "both": (4, lambda m: [send(m, 1), send(m, 2), ["wait", m + "/1"], ["wait", m + "/2"], ["asked"]]),
    "rounds": (4, lambda m: [ask(m, 1), ask(m, 2), ["asked"]]),
    "impatient": (1, lambda m: [send(m, 1), ["sleep", 0.05], ["text", m]]),
    "fickle": (1, lambda m: [send(m, 1), ["sleep", 0.05], ["notify", "notifications/cancelled", {"requestId": m + "/1"}],
                             ["sleep", 0.01], ["text", m]]),
    "dying": (0.1, lambda m: [send(m, 1), ["sleep", 0.05], ["exit", 3]]),
    "stubborn": (1, lambda m: [ask(m, 1), ["wait_cancel"], ["text", m]]),
}
QUESTIONS = {"both": 2, "rounds": 2}
ENDS_BY_ITSELF = ("impatient", "fickle", "dying")
# What a worker does next, and how often.
ACTIONS = {"make": 5, "finish": 6, "answer_some": 2, "try_twice": 1, "replay": 1, "misuse": 2, "leave": 1, "forget": 0.5}


class Parked:
    """A call of a worker, and what it was asked last."""

    def __init__(self, worker, kind, server):
        self.kind, self.server, self.caller = kind, server, worker.caller
        self.mark = "%s-%s-%d-%x" % (worker.caller, kind, worker.number, worker.random.getrandbits(64))
        self.params = {"name": "do", "arguments": {"mark": self.mark, "steps": SCRIPTS[kind][1](self.mark)}}
        self.state, self.questions, self.used = None, {}, []

    def answers(self, keys=None):
        return {key: answer_to(self.questions[key]) for key in (self.questions if keys is None else keys)}


def answer_to(question):
    return {"action": "accept", "content": {"a": question[::-1]}}


class Run:
    """What the workers share."""

    def __init__(self, daemon, seed, total):
        self.daemon, self.seed, self.left = daemon, seed, total
        self.lock = threading.Lock()
        self.counts, self.board, self.forgotten = collections.Counter(), {}, []
        self.kept = []  # (from, until, caller, server): a call waited all that time
        self.given_up, self.answered, self.lost = set(), set(), set()  # marks

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


def reason_of(m):
    return (m.get("error", {}).get("data") or {}).get("reason")


class Worker(threading.Thread):
    def __init__(self, run, number, caller):
        super().__init__(daemon=True)
        self.shared, self.number, self.caller = run, number, caller
        self.random = random.Random(run.seed * 1000 + number)
        self.mine, self.old, self.problem, self.conn, self.is_last = [], [], None, None, False

    def run(self):
        try:
            while not self.is_last or self.mine:
                self.act()
        except BaseException as e:
            self.problem = e
        self.drop()

    def act(self):
        names = ["finish"] if self.is_last or len(self.mine) >= HOLDS else list(ACTIONS) if self.mine else ["make"]
        getattr(self, self.random.choices(names, [ACTIONS[n] for n in names])[0])()

    # ---- requests ----------------------------------------------------------

    def drop(self):
        if self.conn:
            self.conn.close()
        self.conn = None

    def begin(self, server, params, conn=None):
        if conn is None:
            self.conn = conn = self.conn or wire.Conn(self.shared.daemon.address, timeout=30)
        body = message("tools/call", params, request_id=self.number, caps=ELICIT)
        data = mcp.encode(body)
        conn.send(conn.head("POST", "/%s/mcp" % server, fields(body) + mcp.bearer(TOKENS[self.caller]), len(data)) + data)
        return conn

    def read(self, conn):
        response = conn.response()
        found = messages_of(response)
        if len(found) != 1 or found[0].get("id") != self.number:
            raise Problem("answers to %r: %r" % (self.number, found))
        return response.status, found[0]

    def again(self, p, answers, conn=None, server=None, params=None, state=None):
        return self.begin(server or p.server, dict(params or p.params, requestState=state or p.state, inputResponses=answers), conn)

    def refused(self, conn, what):
        status, m = self.read(conn)
        if (status, reason_of(m)) != (400, "invalid_request_state"):
            raise Problem("%s was taken: %d %r" % (what, status, str(m)[:500]))
        self.shared.count(what)

    # ---- what comes back ---------------------------------------------------

    def judge(self, p, m):
        """An answer to p: it is p's own; what is asked is kept, anything else is the end of it."""
        if p in self.mine:
            self.mine.remove(p)
        result, reason = m.get("result"), reason_of(m)
        if result and result["resultType"] == "input_required":
            self.keep(p, result)
        elif result:
            self.judge_result(p, result)
        elif reason == "invalid_request_state" and p.state:
            self.shared.count("given up")
            self.shared.given_up.add(p.mark)
        elif reason not in ("overloaded", "child_exited", "parked_call_lost"):
            raise Problem("%s: %r" % (p.mark, m))
        else:
            self.shared.count(reason)
            if reason != "overloaded":
                self.shared.lost.add(p.mark)

    def keep(self, p, result):
        if p.state:
            p.used.append(p.state)
        p.state = result["requestState"]
        p.questions = {key: r["params"]["message"] for key, r in result["inputRequests"].items()}
        if any(q not in (p.mark + "/1", p.mark + "/2") for q in p.questions.values()):
            raise Problem("%s is asked %r" % (p.mark, p.questions))
        p.since = time.monotonic()
        self.mine.append(p)
        self.shared.board[self.caller] = (p, p.state)

    def judge_result(self, p, result):
        text = result["content"][0]["text"]
        if p.kind in ENDS_BY_ITSELF + ("stubborn",):
            is_right = text == p.mark
        else:
            told = [a["result"] for a in json.loads(text)]
            is_right = told == [answer_to("%s/%d" % (p.mark, n + 1)) for n in range(QUESTIONS.get(p.kind, 1))]
        if not is_right:
            raise Problem("%s is answered %r" % (p.mark, text[:500]))
        if p.state:
            self.old.append((p, p.state))
        self.shared.count("answered")
        self.shared.answered.add(p.mark)

    def waited(self, p, until, m):
        """A state that was taken shows that the call has waited up to there."""
        if reason_of(m) != "invalid_request_state":
            self.shared.kept.append((p.since, until, p.caller, p.server))

    def retry(self, p, answers):
        until = time.monotonic()
        m = self.read(self.again(p, answers))[1]
        self.waited(p, until, m)
        self.judge(p, m)

    # ---- what is done ------------------------------------------------------

    def make(self):
        if not self.shared.take():
            self.is_last = True
            return
        kind = self.random.choices(list(SCRIPTS), [often for often, _ in SCRIPTS.values()])[0]
        p = Parked(self, kind, "small" if self.random.random() < 0.1 else "main")
        self.try_first(p)

    def try_first(self, p):
        self.judge(p, self.read(self.begin(p.server, p.params))[1])

    def finish_all(self):
        while self.mine:
            self.finish()
        self.drop()

    def any(self):
        return self.random.choice(self.mine)

    def finish(self):
        p = self.any()
        if p.kind == "stubborn":
            self.leave_it(p)
        else:
            self.retry(p, p.answers())

    def answer_some(self):
        p = self.any()
        if p.kind != "stubborn":
            self.retry(p, p.answers(self.random.sample(list(p.questions), self.random.randrange(len(p.questions) + 1))))

    def try_twice(self):
        """One state on two connections at once: one of them is too late."""
        p, other = self.any(), wire.Conn(self.shared.daemon.address, timeout=30)
        if p.kind == "stubborn":
            return
        until = time.monotonic()
        conns = [self.again(p, p.answers()), self.again(p, p.answers(), other)]
        taken = [m for m in (self.read(c)[1] for c in conns) if reason_of(m) != "invalid_request_state"]
        other.close()
        if len(taken) == 2:
            raise Problem("%s: a state was taken twice: %r" % (p.mark, taken))
        m = taken[0] if taken else {"error": {"data": {"reason": "invalid_request_state"}}}
        self.waited(p, until, m)
        self.judge(p, m)
        self.shared.count("tried twice")

    def replay(self):
        old = self.old + [(p, state) for p in self.mine for state in p.used]
        if old:
            p, state = self.random.choice(old)
            self.refused(self.again(p, p.answers(), state=state), "replayed")

    def misuse(self):
        """By another caller, at another server, with other arguments, forged: refused, and the call waits on."""
        p = self.any()
        others = [seen for caller, seen in list(self.shared.board.items()) if caller != self.caller]
        what = self.random.choice(("caller", "caller", "server", "arguments", "forged"))
        if what == "caller" and others:
            p, state = self.random.choice(others)
            self.refused(self.again(p, p.answers(), state=state), "of another caller")
        elif what == "server":
            self.refused(self.again(p, p.answers(), server="small" if p.server == "main" else "main"), "of another server")
        elif what == "arguments":
            self.refused(self.again(p, p.answers(), params=dict(p.params, arguments={"text": "other"})), "of another call")
        elif what == "forged":
            at = self.random.randrange(20, len(p.state) - 4)
            forged = p.state[:at] + ("A" if p.state[at] != "A" else "B") + p.state[at + 1:]
            self.refused(self.again(p, p.answers(), state=forged), "forged")

    def leave(self):
        """Of the connection, while the call runs: it is cancelled; and another one at any moment of its beginning."""
        self.leave_it(self.any())
        if self.shared.take():
            p = Parked(self, "one", "main")
            self.begin(p.server, p.params)
            time.sleep(self.random.uniform(0, 0.03))
            self.drop()

    def leave_it(self, p):
        self.mine.remove(p)
        self.again(p, p.answers())
        self.drop()
        self.shared.count("left")

    def forget(self):
        p = self.any()
        self.mine.remove(p)
        self.shared.forgotten.append((self, p))
        self.shared.count("forgotten")


def finish_rest(run, workers):
    """Those that were forgotten, and not given up for others since; and those whose clients left too early to know."""
    for worker, p in run.forgotten:
        worker.mine = [p]
        worker.finish_all()
    for worker in workers[:len(CALLERS)]:
        for _ in range(PER_CALLER):  # more than may wait with those that nobody knows
            worker.try_first(Parked(worker, "one", "main"))
        worker.finish_all()


def kind_of(mark):
    return mark.split("-")[1]


# ---- what the servers have seen ----------------------------------------------

def judge_calls(run, records):
    """No call twice, none lost that was answered, and each process for one caller."""
    ran = collections.Counter()
    for pid, messages in records:
        marks = [m["params"]["arguments"]["mark"] for m in messages if m.get("method") == "tools/call"]
        ran.update(marks)
        if len({mark.split("-")[0] for mark in marks}) > 1:
            raise Problem("process %d has served several callers" % pid)
        # One that was left may end its process when another call is there already.
        if run.lost & set(marks) and not any(kind_of(mark) == "dying" for mark in marks):
            raise Problem("process %d was lost, and not by a call" % pid)
    twice = [mark for mark, n in ran.items() if n > 1]
    if twice or not run.answered <= set(ran):
        raise Problem("run twice: %r; not run: %r" % (twice[:5], list(run.answered - set(ran))[:5]))
    return sum(ran.values())


def judge_answers(run, records):
    """Each question is answered once, where it was asked, with what its own client says; a call that is given up hears so."""
    heard = set()  # marks of calls whose server is gone, or knows that nobody will answer
    for pid, messages in records:
        marks = {m["params"]["arguments"]["mark"] for m in messages if m.get("method") == "tools/call"}
        seen = set()
        if any(kind_of(mark) == "dying" for mark in marks):
            heard |= marks
        for m in messages:
            if "method" in m or "result" not in m:
                continue
            mark = m["id"].split("/")[0]
            if mark not in marks or m["id"] in seen or m["result"] not in (answer_to(m["id"]), {"action": "cancel"}):
                raise Problem("process %d is answered %r" % (pid, m))
            seen.add(m["id"])
            if m["result"] == {"action": "cancel"}:
                heard.add(mark)
    forgotten = [mark for mark in run.given_up - heard if kind_of(mark) not in ENDS_BY_ITSELF]
    if forgotten:
        raise Problem("calls are gone, and their servers wait: %r" % forgotten[:5])


def most(spans):
    """How many of them there were at once."""
    now = highest = 0
    for _, step in sorted([(begin, 1) for begin, _, _, _ in spans] + [(end, -1) for _, end, _, _ in spans]):
        now += step
        highest = max(highest, now)
    return highest


def judge_caps(run):
    """({caller: most that waited at once}, {server: the same})"""
    callers = {c: most([s for s in run.kept if s[2] == c]) for c in CALLERS}
    servers = {n: most([s for s in run.kept if s[3] == n]) for n in POOL_MAX}
    over = [n for n, k in callers.items() if k > PER_CALLER] + [n for n, k in servers.items() if k > PER_SERVER[n]]
    if over:
        raise Problem("more calls wait than may: %r %r" % (callers, servers))
    if max(callers.values()) < PER_CALLER or servers["small"] < PER_SERVER["small"]:
        raise Problem("too few calls have waited to show a limit: %r %r" % (callers, servers))
    return max(callers.values()), servers["main"], servers["small"]


def is_at_rest(daemon):
    conn = wire.Conn(daemon.admin)
    rows = json.loads(conn.request("GET", "/processes").read())["processes"]
    conn.close()
    return not any(row["calls"] for row in rows)


def judge_rest(daemon):
    """Nothing is in flight, and every process is one that its pool may stop: it does, once it is idle for long enough."""
    harness.wait_for(lambda: is_at_rest(daemon), 15, "the end of calls that were left")
    harness.wait_for(lambda: not daemon.children(), 15, "the end of idle processes")
    problems = harness.check_descriptors(daemon)
    if problems:
        raise Problem("; ".join(problems))


def judge_all(run, daemon):
    caps = judge_caps(run)
    judge_rest(daemon)
    records = [(pid, [json.loads(line) for line in data.splitlines()]) for name in POOL_MAX for pid, data in daemon.records_of(name)]
    ran = judge_calls(run, records)
    judge_answers(run, records)
    return ran, caps


def part_parked(options, child):
    """Calls that wait for their clients, whatever becomes of these."""
    seed = options.seed or random.randrange(1 << 30)
    servers = {n: {"script": {}, "start": START, "pool": {"max": most, "idle_timeout": "1s"}} for n, most in POOL_MAX.items()}
    daemon = harness.Daemon(servers, {"auth": AUTH, "log": {"level": "error"}, "limits": {"processes": 64}})
    run = Run(daemon, seed, options.parked)
    workers = [Worker(run, n, CALLERS[n % len(CALLERS)]) for n in range(WORKERS * len(CALLERS))]
    started, ran, caps = time.monotonic(), 0, None
    try:
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        problems = [repr(w.problem) for w in workers if w.problem]
        if not problems:
            finish_rest(run, workers)
            ran, caps = judge_all(run, daemon)
    except (Problem, AssertionError) as e:
        problems = [str(e)]
    problems += daemon.stop()
    if problems:
        raise Problem("seed %d: %s" % (seed, "; ".join(problems[:5])))
    print("parked: %d calls in %.0f s, %d run, none twice; at most %d of a caller, %d and %d at a server waited; %s; seed %d" % (
        options.parked, time.monotonic() - started, ran, *caps,
        ", ".join("%d %s" % (n, what) for what, n in sorted(run.counts.items())), seed), flush=True)
