# SPDX-License-Identifier: Apache-2.0
"""
Reloads under load: sessions that call without a pause, and streams that stay open, while configurations take turns, every second one
of which is bad. No call of the untouched server is lost, none of its sessions or streams ends, and its processes stay.
"""
import os
import subprocess
import threading
import time

import harness
import wire
from common import Client, Problem

SESSIONS = 200
CALLERS = 8  # threads, each with its share of the sessions
STREAMS = 20
RELOADS = 100
SECONDS = 60  # at most, where nothing else runs; orders are followed at five a second once there were many


def configuration(child, n):
    other = {"command": child[0], "args": child[1:], "pool": {"max": 1000}, "env": {"N": str(n)}}
    main = {"command": child[0], "args": child[1:], "pool": {"max": 1000}, "request_timeout": "%ds" % (60 + n % 2)}
    return {"main": main, "other": other} if n % 3 else {"main": main, "third": other}


def write(daemon, child, n):
    daemon.servers = configuration(child, n)
    with open(daemon.file + ".new", "w") as f:
        f.write(harness.to_yaml(daemon.configuration()) + "\n" + ("limits: {sessions: none}\nnonsense: 1\n" if n % 2 else ""))
    os.chmod(daemon.file + ".new", 0o600)
    os.rename(daemon.file + ".new", daemon.file)


def reload(daemon):
    argv = [os.path.join(harness.BIN, "mcpgatectl"), "--socket", daemon.admin, "reload"]
    return subprocess.run(argv, capture_output=True, timeout=60)


def stream_of(daemon, client):
    conn = wire.Conn(daemon.address, timeout=60)
    response = conn.request("GET", client.path, [("Accept", "text/event-stream"), ("Mcp-Session-Id", client.id),
                                                 ("MCP-Protocol-Version", "2025-11-25")])
    if response.status != 200:
        raise Problem("stream: %d" % response.status)
    return conn


def is_open(conn):
    """Nothing but comments has come, and no end."""
    conn.sock.setblocking(False)
    try:
        while True:
            data = conn.sock.recv(1 << 16)
            if not data or b"0\r\n\r\n" == data[-5:]:
                return False
    except BlockingIOError:
        return True


def part_reload(options, child):
    """100 reloads under load, half of them bad, lose no call and end no session of an untouched server."""
    daemon = harness.Daemon(configuration(child, 0), {"log": {"level": "warn"}, "limits": {"processes": 2000}})
    daemon.expected_errors.add("reload_refused")
    clients = [Client(daemon) for _ in range(SESSIONS)]
    problems, calls, slowest, stop = [], [0] * CALLERS, [0.0], threading.Event()
    try:
        for client in clients:
            client.open()
        pids = set(daemon_pids(daemon))
        streams = [stream_of(daemon, client) for client in clients[:STREAMS]]

        def work(k):
            while not stop.is_set() and not problems:
                for client in clients[k::CALLERS]:
                    began = time.monotonic()
                    try:
                        client.echo("x%d" % calls[k])
                    except Exception as e:
                        problems.append("a call was lost: %r" % e)
                        return
                    slowest[0] = max(slowest[0], time.monotonic() - began)
                    calls[k] += 1
        threads = [threading.Thread(target=work, args=(k,)) for k in range(CALLERS)]
        for thread in threads:
            thread.start()
        began, done, took = time.monotonic(), 0, []
        while done < RELOADS and time.monotonic() - began < harness.patience(SECONDS) and not problems:
            write(daemon, child, done)
            at = time.monotonic()
            outcome = reload(daemon)
            took.append(time.monotonic() - at)
            if outcome.returncode != done % 2:
                problems.append("reload %d: %d %r" % (done, outcome.returncode, outcome.stderr[-300:]))
            done += 1
        stop.set()
        for thread in threads:
            thread.join()
        ended = [i for i, conn in enumerate(streams) if not is_open(conn)]
        if ended:
            problems.append("streams have ended: %r" % ended)
        if not pids <= set(daemon_pids(daemon)):
            problems.append("processes of the untouched server have ended")
        took.sort()
        print("# %d reloads in %.1f s (median %.0f ms, slowest %.0f ms), %d sessions, %d streams, %d calls, slowest %.0f ms, lost 0"
              % (done, time.monotonic() - began, took[len(took) // 2] * 1000, took[-1] * 1000, SESSIONS, STREAMS, sum(calls),
                 slowest[0] * 1000))
        if done < RELOADS:
            problems.append("only %d reloads in %d s" % (done, SECONDS))
    finally:
        stop.set()
        daemon.term()
        daemon.wait(30)
        daemon.stop(check=False)
    if problems:
        raise Problem("; ".join(problems[:3]))


def daemon_pids(daemon):
    """The processes of the server `main`."""
    argv = [os.path.join(harness.BIN, "mcpgatectl"), "--socket", daemon.admin, "--json", "processes"]
    import json
    return [p["pid"] for p in json.loads(subprocess.run(argv, capture_output=True).stdout)["processes"] if p["server"] == "main"]
