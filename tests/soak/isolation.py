# SPDX-License-Identifier: Apache-2.0
"""
Processes that sessions share, for long: calls in any order with nothing crossed; processes that are killed at any
moment, thousands of them; what many sessions on few processes cost; what a spare process is worth.
"""
import json
import os
import random
import subprocess
import sys
import threading
import time

import harness
from common import BENCH, Client, Problem, compiled, in_parallel, stop

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(harness.__file__)), "cases"))
import c33_pools  # noqa: E402

KILLERS_WORKERS = 12
SLOW_START = 1.0


def run_interleaved(options):
    """Calls of fifty clients in any order, with crashes; every byte that comes back is its caller's."""
    seed = options.seed or random.randrange(1 << 30)
    for isolation in ("shared", "principal"):
        pool = {"max": 4, "requests_per_process": 16, "idle_timeout": "2s"}
        daemon = harness.Daemon({"main": {"script": {}, "isolation": isolation, "pool": pool}}, {"log": {"level": "error"}})
        scene = harness.Scene(daemon)
        try:
            figures = c33_pools.interleave(scene, options.seconds / 4, seed, crashes=True)
        finally:
            problems = daemon.stop()
        if problems:
            raise Problem("; ".join(problems))
        print("isolation: %s: %s" % (isolation, figures), flush=True)


# ---- kills -------------------------------------------------------------------

class Killer(threading.Thread):
    """Kills some process of a server every now and then, whatever it does."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_under_test, self.kills, self.is_over = daemon, 0, False

    def run(self):
        spared = (self.daemon_under_test.gateway,)
        while not self.is_over:
            table = harness.processes()
            victims = [p for p, (ppid, state, name) in table.items()
                       if ppid == self.daemon_under_test.pid and p not in spared and "mcpgated" not in name]
            for pid in random.sample(victims, min(3, len(victims))):
                self.kills += harness.kill(pid)
            time.sleep(random.uniform(0.001, 0.02))


def zombies_of(pid):
    return len([p for p, (ppid, state, _) in harness.processes().items() if ppid == pid and state == "Z"])


def spawned(daemon):
    return len([1 for line in list(daemon.lines) if " child_spawn " in line])


def use_and_lose(daemon, until_spawned):
    """Sessions of both kinds, whose processes die under them; every call has an end, and nothing else is accepted."""
    counts = {"ok": 0, "failed": 0}

    def work(n):
        client = Client(daemon)
        client.path = "/own/mcp" if n % 2 else "/pool/mcp"
        while spawned(daemon) < until_spawned:
            try:
                client.open()
                for i in range(random.randrange(4)):
                    client.echo("worker %d call %d" % (n, i))
                client.end()
                counts["ok"] += 1
            except Problem as e:
                if "a wrong answer" in str(e):
                    raise
                counts["failed"] += 1
        client.conn.close()
    in_parallel(KILLERS_WORKERS, work)
    return counts


def run_kills(options, child):
    start = {"backoff": "1ms..5ms", "give_up_after": 1000, "rate": 100000}
    servers = {"own": {"command": child[0], "args": child[1:], "start": start, "pool": {"max": 64}},
               "pool": {"command": child[0], "args": child[1:], "start": start, "isolation": "shared",
                        "pool": {"max": 16, "requests_per_process": 1, "idle_timeout": "300ms"}}}
    daemon = harness.Daemon(servers, {"log": {"level": "debug"}, "sessions": {"idle_timeout": "5s"}})
    time.sleep(0.3)
    before, started = daemon.fds(), time.monotonic()
    base = len(harness.descendants(daemon.pid))
    killer = Killer(daemon)
    killer.start()
    counts = use_and_lose(daemon, options.spawns)
    killer.is_over = True
    killer.join()
    seconds = time.monotonic() - started
    harness.wait_for(lambda: len(harness.descendants(daemon.pid)) <= base, 30, "end of all processes")
    time.sleep(0.5)
    zombies, orphans, after = zombies_of(daemon.pid), zombies_of(os.getpid()), daemon.fds()
    print("isolation: %d processes started and %d killed at random in %.0f s; %d sessions whole, %d cut short; "
          "zombies %d, orphans %d, descriptors keeper %d -> %d, gateway %d -> %d" % (
              spawned(daemon), killer.kills, seconds, counts["ok"], counts["failed"], zombies, orphans,
              before[daemon.pid], after[daemon.pid], before[daemon.gateway], after[daemon.gateway]), flush=True)
    grown = [pid for pid in before if after[pid] > before[pid] + 1]
    stop(daemon)
    if zombies or orphans or grown:
        raise Problem("something is left of processes that were killed")
    if counts["ok"] == 0:
        raise Problem("no session came to its end")


# ---- what it costs -----------------------------------------------------------

def run_many(options, child):
    """A thousand sessions with the same ids: on four processes, and with one each. Each answer is compared with its own call."""
    load = compiled(options.scratch, os.path.join(BENCH, "load.c"))
    if load is None or "echo-server" not in child[0]:
        raise Problem("no compiler for load.c")
    for name, server in (("shared, 4 processes", {"isolation": "shared", "pool": {"max": 4, "requests_per_process": 1024,
                                                                               "queue": 4096, "min": 4}}),
                         ("session, 1,000 processes", {"isolation": "session", "pool": {"max": 1100}, "start": {"rate": 100000}})):
        daemon = harness.Daemon({"main": dict(server, command=child[0], args=child[1:])},
                                {"log": {"level": "info"}, "limits": {"processes": 1200}})
        time.sleep(0.5)
        empty = harness.rss_kib(daemon.gateway)
        run = subprocess.Popen([load, "--url", "http://127.0.0.1:%d/main/mcp" % daemon.address[1], "--connections", "1000",
                                "--duration", str(max(4, options.seconds // 4)), "--warmup", "2", "--timeout", str(harness.patience(10)),
                                "--setup-timeout", str(harness.patience(30))], stdout=subprocess.PIPE, text=True)
        peak = [0, 0]
        while run.poll() is None:
            peak = [max(peak[0], harness.rss_kib(daemon.gateway)),
                    max(peak[1], len(harness.descendants(daemon.pid)) - 2)]
            time.sleep(0.2)
        text = run.stdout.read()
        figures = json.loads(text[text.find("{\n"):])
        stop(daemon)
        if figures["errors"]:
            raise Problem("load: %d errors, the first: %s" % (figures["errors"], figures["first_error"]))
        print("isolation: 1,000 sessions, %s: %d calls, none crossed, %.0f calls/s, p99 %.1f ms, gateway %.1f KiB a session, "
              "%d processes" % (name, figures["requests"], figures["rps"], figures["latency_us"]["p99"] / 1000,
                                (peak[0] - empty) / 1000, peak[1]), flush=True)


def first_call_ms(daemon, path):
    client = Client(daemon)
    client.path = path
    started = time.monotonic()
    client.open()
    client.echo("first")
    return (time.monotonic() - started) * 1000


def run_spares(options, child):
    """Session and first call of a server that takes a second to start: cold, with a spare, and with one that runs."""
    slow = {"command": "/bin/sh", "args": ["-c", "sleep %s; exec \"$@\"" % SLOW_START, "sh"] + child}
    servers = {"cold": dict(slow, isolation="session"), "spare": dict(slow, isolation="session", pool={"warm": 1}),
               "running": dict(slow, isolation="shared", pool={"min": 1})}
    daemon = harness.Daemon(servers, {"log": {"level": "error"}})
    rounds = []
    try:
        for _ in range(options.rounds):
            time.sleep(SLOW_START + 0.7)  # until the next spare is there
            rounds.append([first_call_ms(daemon, "/%s/mcp" % name) for name in ("cold", "spare", "running")])
    finally:
        stop(daemon)
    cold, spare, running = (sorted(r[i] for r in rounds)[len(rounds) // 2] for i in range(3))
    ratio = sorted(r[1] / r[2] for r in rounds)[len(rounds) // 2]
    print("isolation: initialize and first call of a server that starts in %.0f ms: cold %.0f ms, with a spare %.1f ms, "
          "on a running process %.1f ms; spare / running, median of %d: %.1f" % (
              SLOW_START * 1000, cold, spare, running, len(rounds), ratio), flush=True)
    if spare > cold / 2:
        raise Problem("a spare is no help")


def part_isolation(options, child):
    """Processes that sessions share."""
    run_interleaved(options)
    run_kills(options, child)
    run_spares(options, child)
    run_many(options, child)
