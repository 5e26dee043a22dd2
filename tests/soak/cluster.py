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
import time

import c117_cluster as nodes_of
import harness
from common import Problem
from deaths import Listener

PAUSE_S = 4  # longer than a store may be silent, and than HAProxy believes in a node that is


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
        with nodes_of.HAProxy(scene, nodes) as proxy:
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
