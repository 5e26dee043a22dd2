# SPDX-License-Identifier: Apache-2.0
"""
Sessions over gateways that die, and over upgrades. One daemon after the other: sessions call without pause, and its gateway is killed
twice, at any moment, also while the next one takes over; or another program takes the place of the one that runs, twelve times, either in
peace, or each second time with kill -9 of the gateway before or after, or of the program that checks. Each session goes on, with the process
that it had (its own, a leg's, or one that all share), and no call is executed twice; at an upgrade in peace none is cut either. Some
sessions have streams, and get each event of them once, in its order. Every fourth session calls over TLS. With another build's programs, each
second upgrade goes back to them.
"""
import collections
import contextlib
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

import harness
import mcp
import wire
from common import Client, Problem, make_certificate, over_tls, stop
from c106_sessions_kept import saved
from c112_upgrade import PROGRAMS, replace

SERVERS = {"main": {"script": {}, "pool": {"max": 1000}}, "common": {"script": {}, "isolation": "shared"}}
# Legs of an endpoint have processes of their own, as sessions have; all sessions of the other server share one.
ENDPOINTS = {"all": {"servers": {"main": {"prefix": ""}, "common": {"prefix": "c_"}}}}
PLACES = ("main", "all", "common", "main", "all", "common")
NEWS = "notifications/com.example/x"  # for the stream of the session
QUESTION = ["ask", "q", "elicitation/create", {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}]
LAST_MOMENT_S = 0.5  # around a kill, or a move
GONE = (OSError, wire.ProtocolError)
KILLS = 2  # at the third within a minute a process goes, as it may be the cause
UPGRADES = 12
LARGE = 3 << 17  # does not fit into a pipe: a message may be half written


def judge_process(daemon, number, had, has):
    """What went wrong with the process of a session; None: nothing."""
    text = daemon.record(has)
    marks = collections.Counter(re.findall(rb'"text"[:,] ?"(<[0-9.]+>)', text))
    twice = [mark.decode() for mark, count in marks.items() if count > 1]
    if has != had:
        return "session %d has process %d instead of %d" % (number, has, had)
    if twice or text.count(b'"initialize"') != 1:
        return "session %d: executed twice: %s" % (number, twice or "initialize")
    return None


class Caller:
    def __init__(self, daemon, number, rng):
        self.daemon, self.number, self.rng = daemon, number, rng
        self.client = Client(daemon, daemon.tls_address if number % 4 == 3 else daemon.address)
        self.client.path = "/%s/mcp" % PLACES[number % len(PLACES)]
        self.client.open()
        self.pid = self.read_pid()
        self.sent, self.cut, self.problem, self.longest = [], 0, None, 0

    def read_pid(self):
        params = {"name": "do", "arguments": {"steps": [["text", "@PID@"]]}}
        response, answer = self.client.post(mcp.request(1, "tools/call", params))
        if response.status != 200 or "result" not in answer:
            raise Problem("session %d: %d %r" % (self.number, response.status, str(answer)[:200]))
        return int(answer["result"]["content"][0]["text"])

    def reconnect(self):
        session, path = self.client.id, self.client.path
        self.client.conn.close()
        self.client = Client(self.daemon, self.client.address)
        self.client.id, self.client.path = session, path

    def work(self, over):
        while not over.is_set() and not self.problem:
            mark = "<%d.%d>" % (self.number, len(self.sent))
            self.sent.append(mark)
            began = time.monotonic()
            try:
                self.client.echo(mark + "x" * (LARGE if self.rng.random() < 0.1 else 0), len(self.sent))
            except Problem as e:
                self.problem = str(e)
            except Exception:  # the connection
                self.cut += 1
                try:
                    self.reconnect()
                except OSError as e:
                    self.problem = "refused: %r" % e
            self.longest = max(self.longest, time.monotonic() - began)

    def judge(self):
        """What went wrong; None: nothing."""
        if self.problem:
            return self.problem
        self.reconnect()
        problem = judge_process(self.daemon, self.number, self.pid, self.read_pid())
        self.client.end()
        return problem


class Listener:
    """
    A session whose calls have progress, and news for its own stream, which it reads all the time. It comes back to whatever ends, with
    the id of the last event that it got.
    """

    def __init__(self, t, proxy, number):
        self.session = t.session(daemon=proxy, version=mcp.D, token="token-%d" % (number % 8))
        self.over, self.calls, self.wrong, self.failed, self.resumed, self.number = threading.Event(), 0, None, [], 0, number
        self.longest, self.is_over = 0.0, False
        self.accepted = {}  # when the call ended that had this news, if it was answered
        self.news = []
        self.threads = [threading.Thread(target=self.guard, args=(work,), daemon=True) for work in (self.listen, self.call_on)]

    def start_now(self):
        for thread in self.threads:
            thread.start()

    def guard(self, work):
        try:
            work()
        except BaseException as e:  # told by whoever waits
            self.wrong = "listener %d: %r" % (self.number, e)

    def follow(self, begin, may_end):
        """The messages of a stream, over as many connections as it takes. Ends if nobody knows it any more, or has an id of it."""
        last, deadline = None, time.monotonic() + 20
        exchange = None
        while not (may_end and self.is_over):
            try:
                exchange = exchange or (begin() if last is None else self.session.resume(last, check=False))
                if exchange.status == 200:
                    message = exchange.next(0.5)
                    last, deadline = exchange.last_id or last, time.monotonic() + 20
                    if message is not None:
                        yield message
                        continue
                elif exchange.status == 204:
                    return
                elif exchange.status not in (502, 503, 504):
                    raise Problem("status %d, %r" % (exchange.status, exchange.rest()))
            except TimeoutError:
                deadline = time.monotonic() + 20  # an open stream
                continue
            except GONE:
                pass
            exchange and exchange.close()
            exchange = None
            if last is None and not may_end:
                return
            self.resumed += last is not None
            if time.monotonic() > deadline:
                raise Problem("not served again")
            time.sleep(0.05)
        exchange and exchange.close()

    def listen(self):
        for message in self.follow(lambda: self.session.get(check=False), True):
            if message.get("method") == NEWS:
                self.news.append(message["params"]["n"])

    def call_on(self):
        while not self.over.is_set():
            began = time.monotonic()
            if self.call(self.calls):
                self.accepted[self.calls] = time.monotonic()
            self.longest = max(self.longest, time.monotonic() - began)
            self.calls += 1
            time.sleep(0.02)

    def call(self, n):
        steps = (["notify", NEWS, {"n": n}], ["progress", 1], ["sleep", 0.05], ["progress", 2], ["text", "<%d.%d>" % (self.number, n)])
        told = []
        for message in self.follow(lambda: self.session.start_do(*steps, token="t"), False):
            if "method" in message:
                told.append(message["params"]["progress"])
                continue
            harness.eq(told, [1, 2][:len(told)], "each once, in order")
            if "error" in message:
                self.failed.append(message["error"])
                return False
            harness.eq(message["result"]["content"][0]["text"], steps[-1][1])
            harness.eq(told, [1, 2])
            return True
        self.failed.append("the connection")
        return False

    def proceed(self, count=3):
        before = self.calls
        harness.wait_for(lambda: self.wrong or self.calls >= before + count, 30, "listener %d is served" % self.number)
        harness.eq(self.wrong, None)

    def join(self, seconds):
        listening, calling = self.threads
        calling.join(seconds)
        with contextlib.suppress(harness.Failure):
            harness.wait_for(lambda: self.wrong or set(self.accepted) <= set(self.news), 5, "the last events")
        self.is_over = True
        listening.join(seconds)

    def judge(self, kills, began):
        """How many events are lost that the store had not got when the node died, or another one took the session."""
        harness.eq(self.wrong, None)
        harness.ok(self.news == sorted(set(self.news)), "an event twice, or out of order", self.news)
        lost = [n for n in self.accepted if n not in set(self.news)]
        for n in lost:
            ended = self.accepted[n]
            harness.ok(any(-LAST_MOMENT_S < moment - ended < LAST_MOMENT_S for moment in kills), "listener %d: event %d is lost; before:" % (self.number, n),
                       [(what, name, round(ended - at, 2)) for at, what, name in began if at < ended + 3][-4:], self.news[-3:] + [len(self.news)])
        return len(lost)


class Survivor(Listener):
    """A listener of one daemon whose gateways die: whatever a call that was answered has told is not lost."""

    def __init__(self, daemon, number, rng):
        super().__init__(harness.Scene(daemon), daemon, number)
        self.pid = self.session.pid()

    @property
    def sent(self):
        return range(self.calls)

    @property
    def cut(self):
        return len(self.failed)

    def work(self, over):
        self.start_now()
        over.wait()
        self.over.set()
        self.join(30)

    def judge(self):
        try:
            super().judge([], [])
        except AssertionError as e:
            return str(e)
        problem = judge_process(self.session.daemon, self.number, self.pid, self.session.pid())
        self.session.delete()
        return problem


class Watcher:
    """
    A session that calls as Caller does; each call has progress and news for the session's stream, which is read all the time. The
    first one is asked something during some of them, and answers on a new connection.
    """

    def __init__(self, daemon, number, rng):
        self.daemon, self.number, self.rng = daemon, number, rng
        self.session = harness.Scene(daemon).session("main", mcp.D, {"elicitation": {}})
        self.pid = self.session.pid()
        self.sent, self.cut, self.problem, self.longest, self.resumed = [], 0, None, 0, 0
        self.is_asked = False
        self.news, self.is_over = 0, False
        self.stream = threading.Thread(target=self.watch)
        self.stream.start()

    def messages_of(self, exchange, is_last):
        """Those of a stream, over as many connections as it takes."""
        while True:
            try:
                message = exchange.next(1)
            except TimeoutError:
                if self.is_over:
                    return
                continue
            if message is None:
                exchange.conn.close()
                self.resumed += 1
                exchange = self.session.resume(exchange.last_id)
                continue
            yield message
            if is_last(message):
                exchange.conn.close()
                return

    def watch(self):
        try:
            for message in self.messages_of(self.session.get(), lambda message: False):
                if message["method"] != NEWS:
                    continue
                if message["params"]["n"] != self.news:
                    raise Problem("event %d instead of %d" % (message["params"]["n"], self.news))
                self.news += 1
        except Exception as e:
            self.problem = "session %d: its stream: %r" % (self.number, e)

    def call(self, mark):
        first, seen, asked = 2 * len(self.sent) - 2, [], [QUESTION] if self.is_asked and self.rng.random() < 0.3 else []
        exchange = self.session.start_do(["notify", NEWS, {"n": first}], ["progress", 1], *asked, ["sleep", self.rng.random() * 0.1], ["progress", 2],
                                         ["notify", NEWS, {"n": first + 1}], ["text", mark], token="t")
        for message in self.messages_of(exchange, lambda message: "id" in message and "method" not in message):
            if message.get("method") == "elicitation/create":
                self.session.respond(message["id"], {"action": "accept", "content": {}}).conn.close()
            else:
                seen.append(message)
        told = [message["params"]["progress"] for message in seen[:-1]]
        if told != [1, 2] or seen[-1].get("result", {}).get("content", [{}])[0].get("text") != mark:
            raise Problem("session %d: %r" % (self.number, seen))

    def work(self, over):
        while not over.is_set() and not self.problem:
            mark = "<%d.%d>" % (self.number, len(self.sent))
            self.sent.append(mark)
            began = time.monotonic()
            try:
                self.call(mark)
            except Exception as e:
                self.problem = "session %d: a call: %r" % (self.number, e)
            self.longest = max(self.longest, time.monotonic() - began)

    def judge(self):
        with contextlib.suppress(harness.Failure):
            harness.wait_for(lambda: self.problem or self.news == 2 * len(self.sent), 10, "the last events")
        self.is_over = True
        self.stream.join()
        if not self.problem and self.news != 2 * len(self.sent):
            self.problem = "session %d: %d of %d events" % (self.number, self.news, 2 * len(self.sent))
        problem = self.problem or judge_process(self.daemon, self.number, self.pid, self.session.pid())
        self.session.delete()
        return problem


def kill(daemon, rng):
    for _ in range(KILLS):
        time.sleep(rng.random() * 0.5)
        harness.kill(daemon.find_gateway())
    time.sleep(0.5)


def order(daemon):
    return subprocess.Popen([os.path.join(harness.BIN, "mcpgatectl"), "--socket", daemon.admin, "upgrade"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def install(daemon, build):
    for name in PROGRAMS:
        with open(os.path.join(build, name), "rb") as f:
            replace(daemon.programs, name, f.read())


def upgrade(daemon, rng):
    for n in range(UPGRADES):
        time.sleep(rng.random() * 0.3)
        install(daemon, daemon.builds[(n + 1) % len(daemon.builds)])
        done = order(daemon)
        said = done.communicate(timeout=120)[1]
        if done.returncode != 0:
            raise Problem("the upgrade: %r" % said[-300:])
    if daemon.process.poll() is not None or len(daemon.log("upgraded")) != UPGRADES:
        raise Problem("%d of %d upgrades" % (len(daemon.log("upgraded")), UPGRADES))


def kill_upgrading(daemon, rng):
    """Whatever comes of that one, the next one is as good as any."""
    daemon.expected_errors.update(("upgrade_failed", "upgrade_refused"))
    for _ in range(UPGRADES // 2):
        done = order(daemon)
        time.sleep(rng.random() * rng.choice((0.05, 0.2, 0.8)))
        ours = [(pid, name) for pid, (parent, _, name) in harness.processes().items() if parent == daemon.pid]
        harness.kill(rng.choice([pid for pid, name in ours if name in ("mcpgated", "mcpgated-gatewa")] or [daemon.find_gateway()]))
        done.communicate(timeout=120)
        harness.wait_for(lambda: order(daemon).wait() == 0, 20, "an upgrade in peace")


class Installed(harness.Daemon):
    """One whose programs are replaced, with a port for TLS beside the other one."""

    def __init__(self, builds, state):
        self.builds, self.programs = builds, os.path.join(state, "programs")
        os.mkdir(self.programs)
        install(self, builds[0])
        make_certificate(state, "first")
        files = {"certificate": os.path.join(state, "tls.crt"), "key": os.path.join(state, "tls.key")}
        super().__init__(SERVERS, {"log": {"level": "info"}, "endpoints": ENDPOINTS, "limits": {"processes": 1000},
                                   "listen": [{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:0", "tls": files}]},
                         env={"XDG_STATE_HOME": state}, program=os.path.join(self.programs, "mcpgated"))
        plain, tls = (("127.0.0.1", int(re.search(r"127\.0\.0\.1:(\d+)", line).group(1))) for line in self.log("listen")[:2])
        self.address, self.tls_address = plain, over_tls(tls)


def one_daemon(rng, disturb, builds, count, watchers, kind):
    """count sessions, the last `watchers` of them with streams. Returns the number of calls, of those that were cut, and how long the longest took."""
    noted = sum(2 if n < count - watchers and PLACES[n % len(PLACES)] == "all" else 1 for n in range(count))
    state = tempfile.mkdtemp(prefix="mcpgated-")
    daemon = Installed(builds, state)
    daemon.expected_errors.add("gateway_exit")
    daemon.forgiven = True
    over = threading.Event()
    try:
        callers = [(Caller if n < count - watchers else kind)(daemon, n, random.Random(rng.random())) for n in range(count)]
        for watcher in callers[count - watchers:][:1]:
            watcher.is_asked = True
        harness.wait_for(lambda: len(saved(state)) == noted, 20, "the sessions are noted")
        threads = [threading.Thread(target=caller.work, args=(over,)) for caller in callers]
        for thread in threads:
            thread.start()
        disturb(daemon, rng)
        over.set()
        for thread in threads:
            thread.join()
        problems = [text for text in (caller.judge() for caller in callers) if text]
        if problems:
            raise Problem("%s; the log: %s" % ("; ".join(problems), " | ".join(daemon.lines[-40:])))
        return sum(len(caller.sent) for caller in callers), sum(caller.cut for caller in callers), max(caller.longest for caller in callers)
    finally:
        over.set()
        stop(daemon)
        shutil.rmtree(state, ignore_errors=True)


def run(options, disturb, watchers=0, kind=Watcher):
    seed = options.seed or int.from_bytes(os.urandom(4), "big")
    rng, began, daemons, calls, cut, longest = random.Random(seed), time.monotonic(), 0, 0, 0, 0
    builds = [harness.BIN, options.other] if options.other else [harness.BIN]
    try:
        while time.monotonic() - began < options.seconds or daemons == 0:
            done = one_daemon(rng, disturb, builds, options.held + watchers, watchers, kind)
            daemons, calls, cut, longest = daemons + 1, calls + done[0], cut + done[1], max(longest, done[2])
    except Problem as e:
        raise Problem("seed %d, daemon %d: %s" % (seed, daemons, e))
    return seed, daemons, calls, cut, longest


def part_deaths(options, child):
    """Gateways that die end no session, no process of one, and no call twice; nothing of a stream is lost, and nothing comes twice."""
    watchers = max(2, options.held // 2)
    seed, daemons, calls, cut, _ = run(options, kill, watchers, Survivor)
    print("deaths: seed %d, %d gateways killed under %d sessions, %d of them with streams, %d calls, %d of them cut: no session lost, no process, no event, "
          "nothing twice" % (seed, daemons * KILLS, daemons * (options.held + watchers), daemons * watchers, calls, cut), flush=True)


def part_upgrades(options, child):
    """Upgrades end no session, no process of one, and no call; nothing of a stream is lost, and nothing comes twice."""
    watchers = max(2, options.held // 2)
    seed, daemons, calls, cut, longest = run(options, upgrade, watchers)
    if cut:
        raise Problem("seed %d: %d of %d calls were cut" % (seed, cut, calls))
    print("upgrades%s: seed %d, %d under %d sessions, %d of them with streams, %d calls: no session lost, no process, no call, no event; the longest took %.1f s"
          % (", half of them to another build" if options.other else "", seed, daemons * UPGRADES, daemons * (options.held + watchers), daemons * watchers, calls, longest), flush=True)


def part_killed_upgrades(options, child):
    """Kills in the middle of upgrades end no session, no process of one, and no call twice."""
    seed, daemons, calls, cut, _ = run(options, kill_upgrading)
    print("killed_upgrades: seed %d, %d kills under %d sessions, %d calls, %d of them cut: no session lost, no process, nothing twice"
          % (seed, daemons * (UPGRADES // 2), daemons * options.held, calls, cut), flush=True)
