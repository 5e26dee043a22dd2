# SPDX-License-Identifier: Apache-2.0
"""Parts of the soak test about event streams: connections that are lost, thousands that are idle, readers that never read."""
import contextlib
import json
import os
import random
import resource
import selectors
import signal
import socket
import subprocess
import threading
import time

from common import BENCH, HERE, Client, Problem, compiled, in_parallel, stop
import harness
import mcp

import c24_resume

LANES = 8  # sessions that are cut at the same time
IDLE_SECONDS = 10
READERS = 100
BURST, PACED, PACE_MS = 600, 35, 200  # events of 2 KiB to each of them
SLOWEST_RATIO = 3.0  # of a p99, the median of all rounds: the machine may be busy with other things in some


def part_cuts(options, child):
    """Connections lost at random points, two calls and the GET stream of a session at once: nothing lost, nothing twice."""
    seed = int(os.environ.get("SCENARIO_SEED") or random.randrange(1 << 32))
    daemon = harness.Daemon({"main": {}})
    started, cuts = time.monotonic(), [0] * LANES

    def work(lane):
        scene = harness.Scene(daemon)
        try:
            cuts[lane] = c24_resume.cut_many(scene, options.cuts // LANES, seed + lane)
        finally:
            scene.end()
    in_parallel(LANES, work)
    print("cuts: %d connections lost at random points in %.1f s, no event lost, none twice; seeds from %d"
          % (sum(cuts), time.monotonic() - started, seed), flush=True)
    stop(daemon)


# ---- idle streams -----------------------------------------------------------

def can_share():
    """Whether one process may serve all sessions."""
    sample = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "--dump", "sample"], capture_output=True, text=True).stdout
    return "isolation:" in sample


def allow_descriptors():
    """As many as may be had; returns how many."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Idle:
    """A session's GET stream, read as bytes and only when something has come."""

    def __init__(self, daemon, session_id):
        head = "GET /main/mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n" \
               "MCP-Protocol-Version: %s\r\n\r\n" % (session_id, mcp.C)
        self.sock = socket.create_connection(daemon.address)
        self.sock.sendall(head.encode())
        self.data = b""

    def read(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise Problem("a stream has ended: %r" % self.data[-200:])
        self.data += piece


def read_until(streams, token, seconds):
    """Reads all streams until each has got the token; returns the seconds that took."""
    started = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for s in streams:
            if token not in s.data:
                selector.register(s.sock, selectors.EVENT_READ, s)
        while selector.get_map():
            if time.monotonic() - started > seconds:
                raise Problem("%d of %d streams do not get %r" % (len(selector.get_map()), len(streams), token))
            for key, _ in selector.select(1):
                key.data.read()
                if token in key.data.data:
                    selector.unregister(key.fileobj)
    return time.monotonic() - started


def part_streams(options, child):
    """Idle GET streams, held by one gateway: memory of each, CPU at rest, the time until all have the same news."""
    program = compiled(options.scratch, os.path.join(HERE, "news.c"))
    if program is None:
        raise Problem("no compiler for news.c")
    shared, descriptors = can_share(), allow_descriptors()
    count = options.idle or (min(10000, descriptors - 500) if shared else min(1000, descriptors // 5))
    server = {"command": program, "pool": {"max": count + 10}}
    if shared:
        server["isolation"] = "shared"
    limits = {"connections": count + 100, "sessions": count + 100}
    daemon = harness.Daemon({"main": server}, {"log": {"level": "warn"}, "limits": limits})
    try:
        hold_streams(daemon, count)
    finally:
        stop(daemon)


def open_sessions(daemon, count):
    ids = [None] * count

    def work(lane):
        client = Client(daemon)
        for n in range(lane, count, 4):
            client.open()
            ids[n] = client.id
        client.conn.close()
    in_parallel(4, work)
    return ids


def hold_streams(daemon, count):
    started = time.monotonic()
    ids = open_sessions(daemon, count)
    time.sleep(1)
    opened, before = time.monotonic() - started, harness.rss_kib(daemon.gateway)
    streams = [Idle(daemon, i) for i in ids]
    read_until(streams, b"\r\n\r\n", 60)
    time.sleep(1)
    after, cpu = harness.rss_kib(daemon.gateway), harness.cpu_seconds(daemon.gateway)
    time.sleep(IDLE_SECONDS)
    cpu = harness.cpu_seconds(daemon.gateway) - cpu
    servers = [p for p in harness.descendants(daemon.pid) if p != daemon.gateway]
    for pid in servers:
        os.kill(pid, signal.SIGUSR1)
    delivered = read_until(streams, b"list_changed", 60)
    if any(s.data.count(b"list_changed") != 1 for s in streams):
        raise Problem("a stream got the news more than once")
    each = (after - before) * 1024 / count
    print("streams: %d idle GET streams (server processes: %d), sessions opened in %.1f s; %.0f bytes of the gateway each, RSS %d KiB; "
          "CPU at rest %.2f s in %d s; list_changed with all of them after %.0f ms"
          % (count, len(servers), opened, each, after, cpu, IDLE_SECONDS, delivered * 1000), flush=True)
    for s in streams:
        s.sock.close()
    if each > 16384:
        raise Problem("a stream costs more than 16 KiB")
    if cpu > IDLE_SECONDS / 4:
        raise Problem("the gateway is not at rest")


# ---- readers that never read ------------------------------------------------

class Listener:
    """A session whose call sends it events: many at once, which fills what there is of buffers, and then some each second."""

    def __init__(self, daemon):
        self.client = Client(daemon)
        self.client.open()
        self.sock = None

    def begin(self):
        arguments = {"count": BURST + PACED, "burst": BURST, "interval_ms": PACE_MS, "message": "s" * 2048}
        params = {"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}}
        body = mcp.encode(mcp.request(7, "tools/call", params))
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.connect(self.client.daemon.address)
        self.sock.sendall(("POST /main/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: %s\r\n"
                           "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: %s\r\nContent-Length: %d\r\n\r\n"
                           % (mcp.BOTH, self.client.id, mcp.C, len(body))).encode() + body)

    def end(self):
        self.sock.close()


class Reading:
    """Reads all sockets of the listeners in a thread, until it is left."""

    def __init__(self, listeners):
        self.selector = selectors.DefaultSelector()
        for l in listeners:
            self.selector.register(l.sock, selectors.EVENT_READ)
        self.over = False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over:
            for key, _ in self.selector.select(0.2):
                if not key.fileobj.recv(1 << 16):
                    self.selector.unregister(key.fileobj)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.selector.close()


def p99_of_others(daemon, load):
    """Milliseconds, of calls at a fixed rate on sessions of their own, counted from their planned time."""
    run = subprocess.run([load, "--url", "http://127.0.0.1:%d/main/mcp" % daemon.address[1], "--connections", str(READERS),
                          "--rate", "1000", "--duration", "2", "--warmup", "0.5"], capture_output=True, text=True, timeout=120)
    text = run.stdout[run.stdout.find("{\n"):]
    if not text:
        raise Problem("load: status %d %s %s" % (run.returncode, run.stdout[-500:], run.stderr[-500:]))
    figures = json.loads(text)
    if figures["errors"]:
        raise Problem("load: %d errors, the first: %s" % (figures["errors"], figures["first_error"]))
    return figures["latency_us"]["p99"] / 1000


def beside_listeners(daemon, load, listeners, read):
    """The p99 of others while each listener's call sends it events, evenly spread."""
    for l in listeners:
        l.begin()
        time.sleep(PACE_MS / 1000 / len(listeners))
    with Reading(listeners) if read else contextlib.nullcontext():
        time.sleep(2)
        return p99_of_others(daemon, load)


def is_slower(rows):
    """Whether readers that never read slow others down, by most of the rows."""
    return median(never / nobody for nobody, never, _ in rows) > SLOWEST_RATIO


def compare_listeners(daemon, load, rounds):
    """
    Rows of p99: nobody beside, listeners that never read, listeners that do; in turn. And what the first of these cost in KiB.
    What speaks against the gateway is measured again, up to four times as long: the machine may have been busy.
    """
    listeners, rows, grown = [Listener(daemon) for _ in range(READERS)], [], None
    while len(rows) < rounds or (is_slower(rows) and len(rows) < 4 * rounds):
        row = [p99_of_others(daemon, load)]
        before = harness.rss_kib(daemon.gateway)
        for read in False, True:
            row.append(beside_listeners(daemon, load, listeners, read))
            if grown is None:
                grown = harness.rss_kib(daemon.gateway) - before
            for l in listeners:
                l.end()
            time.sleep(2)  # until the last of these calls is through
        rows.append(row)
    return rows, grown


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def part_slow(options, child):
    """Readers that never read, and others on the same server: whether these notice."""
    load = compiled(options.scratch, os.path.join(BENCH, "load.c"))
    if load is None or "echo-server" not in child[0]:
        raise Problem("no compiler for load.c")
    allow_descriptors()
    for isolation in "session", "shared":
        server = {"command": child[0], "args": child[1:], "isolation": isolation, "pool": {"max": 1000}}
        if isolation == "shared":
            server["pool"] = {"max": 1, "sessions_per_process": 1000, "requests_per_process": 1000}
        daemon = harness.Daemon({"main": server}, {"log": {"level": "error"}, "limits": {"processes": 1000}})
        try:
            rows, grown = compare_listeners(daemon, load, options.rounds)
        finally:
            stop(daemon)
        to_none, to_reading = median(d / n for n, d, r in rows), median(d / r for n, d, r in rows)
        print("slow: %s: p99 of %d others beside nobody, %d readers that never read, %d that read, ms: %s; the second against the "
              "first, median of %d: %.2f, against the third: %.2f (aim: 1.20); %d KiB of the gateway for each that never reads"
              % (isolation, READERS, READERS, READERS, ", ".join("%.2f %.2f %.2f" % tuple(r) for r in rows), len(rows), to_none,
                 to_reading, grown // READERS), flush=True)
        if is_slower(rows):
            raise Problem("readers that never read slow others down")
