# SPDX-License-Identifier: Apache-2.0
"""
Nodes of a cluster behind HAProxy, with a real store, under sessions that call without pause, some of them with streams: nodes and the
store are killed, stopped for a while, drained and upgraded in random order. No session may be lost, no call may get another's answer, no
event may come twice, and none may be lost but those of the last moment before a kill, or before another node takes the session, which the
store has not got.
"""
import contextlib
import datetime
import os
import random
import signal
import subprocess
import threading
import time

import c117_cluster as nodes_of
import harness
import mcp
import wire
from common import Problem

PAUSE_S = 4  # longer than a store may be silent, and than HAProxy believes in a node that is
LAST_MOMENT_S = 0.5  # around a kill, or a move
NEWS = "notifications/com.example/x"  # for the stream of the session
GONE = (OSError, wire.ProtocolError)


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


class Run:
    def __init__(self, store, nodes, proxy, callers, rng):
        self.store, self.nodes, self.proxy, self.callers, self.rng = store, nodes, proxy, callers, rng
        self.done, self.began, self.kills = {}, [], []

    def settle(self):
        """All are served, and all is in the store: what a node and the store know alone can be lost with both."""
        for caller in self.callers:
            caller.proceed(1)
        harness.wait_for(lambda: len(self.store.records()) >= len(self.callers), 60, "all sessions in the store")

    def again(self, name):
        self.nodes.begin(name, self.nodes[name].address)

    def kill(self, name):
        self.kills.append(time.monotonic())
        self.nodes.kill(name)
        for caller in self.callers:
            caller.proceed(1)
        self.again(name)

    def drain(self, name):
        self.nodes[name].term()
        harness.eq(self.nodes[name].wait(60), 0)
        self.again(name)

    def stand_still(self, name):
        """It seems to be gone, and comes back: what others have taken meanwhile it has to give up."""
        pids = [self.nodes[name].pid] + harness.descendants(self.nodes[name].pid)
        self.kills.append(time.monotonic())
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(PAUSE_S)

    def kill_store(self, _):
        """What a node does not have is not served meanwhile."""
        self.store.stop()
        time.sleep(self.rng.random() * PAUSE_S)
        self.store.start()

    def upgrade(self, name):
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "--socket", self.nodes[name].admin, "upgrade"], capture_output=True, timeout=60)
        harness.eq(done.returncode, 0, done.stderr)

    def disturb(self):
        name = self.rng.choice("abc")
        what = self.rng.choice([self.kill, self.kill, self.drain, self.stand_still, self.kill_store, self.upgrade])
        self.settle()
        self.began.append((time.monotonic(), what.__name__, name))
        what(name)
        self.done[what.__name__] = self.done.get(what.__name__, 0) + 1


def run(options, child, scene):
    seed = options.seed or random.randrange(1, 1 << 32)
    count = options.held
    servers = {"calls": {"command": child[0], "args": child[1:], "pool": {"max": 1000}}, "main": {"script": {}, "pool": {"max": 1000}}}
    until = time.monotonic() + options.seconds
    with nodes_of.Store(scene) as store:
        nodes = nodes_of.Nodes(scene, store, "abc", servers=servers, config=dict(nodes_of.BEHIND, limits={"processes": 2000}))
        with nodes_of.Proxy(scene, nodes) as proxy:
            harness.wait_for(proxy.serves, 20, "the proxy")
            listeners = [Listener(scene, proxy, n) for n in range(max(2, count // 10))]
            callers = listeners + [nodes_of.Caller(scene, proxy, n, "calls") for n in range(count)]
            disturber = Run(store, nodes, proxy, callers, random.Random(seed))
            try:
                for caller in callers:
                    caller.start_now()
                while time.monotonic() < until:
                    disturber.disturb()
                disturber.settle()
            except AssertionError as e:
                raise Problem("seed %d: %s" % (seed, e)) from e
            finally:
                for caller in callers:
                    caller.over.set()
                for caller in callers:
                    caller.join(30)
            moves = [datetime.datetime.strptime(line.split()[0], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()
                     + time.monotonic() - time.time() for daemon in scene.daemons for line in daemon.log("session_taken")]
            lost = sum(listener.judge(disturber.kills + moves, disturber.began) for listener in listeners)
            calls, failed = sum(c.calls for c in callers), sum(len(c.failed) for c in callers)
            print("cluster: seed %d; %s; %d sessions, %d of them with streams, %d calls, %d failed, none of the sessions lost, the longest call %.1f s; "
                  "%d events, %d times a client came back for more, none twice, %d lost of the last moment before a kill or a move"
                  % (seed, ", ".join("%d %s" % (n, what) for what, n in sorted(disturber.done.items())), len(callers), len(listeners), calls, failed,
                     max(c.longest for c in callers), sum(len(listener.news) for listener in listeners), sum(listener.resumed for listener in listeners), lost))


def part_cluster(options, child):
    scene = harness.Scene(None)
    try:
        run(options, child, scene)
    finally:
        for daemon in scene.daemons:
            daemon.forgiven = True
        problems = scene.end()
    if problems:
        raise Problem("; ".join(map(str, problems)))
