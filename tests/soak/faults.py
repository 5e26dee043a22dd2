# SPDX-License-Identifier: Apache-2.0
"""
The fault matrix of docs/design/threats.md §7: each fault of a server's process hits its own call or process. What a
neighbour on the same server notices of it is measured: its p99 beside calls that are faulty, and beside ones that are not.
"""
import concurrent.futures
import multiprocessing
import time

import harness
import mcp

SECONDS = 1.5  # a turn
# The neighbour shares two processors with a server that burns one, and with this script. Where others are busy as well, all of
# them wait for a processor: the allowance is that much longer, but not more than CROWD_MAX times.
FACTOR, ALLOWANCE = 5, 0.020
CROWD_MAX = 8
FLOOD = 200000
HARMLESS = [["text", "x"]]

# name, steps of the faulty call, what its caller gets: a key of the error's data.reason, or None: an answer
FAULTS = (
    ("REL-20 garbage", [["fill", "not a message\n", FLOOD], ["text", "x"]], None),
    ("REL-21 half lines", [["write", '{"jsonrpc":"2.0","id":@ID@,\n"result":{}}\n'], ["text", "x"]], None),
    ("REL-22 endless line", [["fill", "x" * 1000, 40000], ["sleep", 60]], "child_protocol_error"),
    ("REL-23 malformed", [["line", '{"jsonrpc":"2.0","id":@ID@,"result":1,"error":{}}'], ["sleep", 60]], "child_protocol_error"),
    ("REL-23 strangers", [["fill", '{"jsonrpc":"2.0","id":99999999,"result":{}}\n', FLOOD], ["text", "x"]], None),
    ("REL-24 progress", [["fill", '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1}}\n', FLOOD], ["text", "x"]], None),
    ("REL-24 logs", [["fill", '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}\n', FLOOD], ["text", "x"]], None),
    ("REL-24 list_changed", [["fill", '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n', FLOOD], ["text", "x"]], None),
    ("REL-24 questions", [["fill", '{"jsonrpc":"2.0","id":"q","method":"ping"}\n', 50000], ["text", "x"]], None),
    ("REL-25 silence", [["sleep", 60]], "timeout"),
    ("REL-25 stopped", [["kill", 19]], "timeout"),
    ("REL-26 deaf", [["deaf"], ["sleep", 60]], "timeout"),
    ("REL-27 no stdout", [["close_stdout"], ["sleep", 60]], "child_exited"),
    ("REL-27 no stdin", [["close_stdin"], ["sleep", 60]], "timeout"),
    ("REL-28 exit", [["exit", 1]], "child_exited"),
    ("REL-28 killed", [["kill", 9]], "child_exited"),
    ("REL-30 grandchild", [["grandchild", 60], ["exit", 1]], "child_exited"),
    ("REL-31 stderr", [["stderr", "\x1b[31mred\n", 500000], ["text", "x"]], None),
)
# Those that need no time-out. A process that is shared has one call at a time here: what hits it hits that call alone.
# Another one is started meanwhile: without a pause there would be none for the neighbour.
PAUSE = 0.4
BRIEF = ("REL-20 garbage", "REL-23 strangers", "REL-24 progress", "REL-24 list_changed", "REL-28 exit", "REL-28 killed")
SHARED = {"isolation": "shared", "pool": {"min": 3, "max": 8, "requests_per_process": 1}}
DEADLINE = 10  # request_timeout, a ping without answer, the end of the process
ROUNDS = 3


class Fault(Exception):
    pass


class Address:
    """All of a daemon that another process needs."""

    def __init__(self, address):
        self.address = address


client = None  # of the neighbour's process


def schedule():
    """How long this process has run, and has waited to run, in ns."""
    try:
        with open("/proc/self/schedstat") as f:
            ran, waited, _ = map(int, f.read().split())
        return ran, waited
    except (OSError, ValueError):
        return 0, 0  # the kernel does not count


def neighbour(new_client, daemon, seconds):
    """In a process of its own: one call after the other. The p99 of their times, and how crowded the processors were (1: not)."""
    global client
    if client is None:
        client = new_client(daemon)
        client.open()
    times, before, end = [], schedule(), time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.monotonic()
        client.echo("neighbour")
        times.append(time.monotonic() - started)
        time.sleep(0.0005)
    times.sort()
    ran, waited = (now - then for now, then in zip(schedule(), before))
    return times[len(times) * 99 // 100], min(1 + waited / max(ran, 1), CROWD_MAX)


def one_fault(daemon, new_client, steps, expected, pause):
    """The faulty calls of a turn. How long the longest took."""
    longest, end = 0, time.monotonic() + SECONDS
    while True:
        client = new_client(daemon)
        client.open()
        started = time.monotonic()
        params = {"name": "do", "arguments": {"steps": steps}, "_meta": {"progressToken": "t"}}
        _, answer = client.post(mcp.request(1, "tools/call", params))
        longest = max(longest, time.monotonic() - started)
        reason = answer.get("error", {}).get("data", {}).get("reason")
        if reason != expected or (expected is None and "result" not in answer):
            raise Fault("%r instead of %r" % (str(answer)[:300], expected))
        client.conn.close()
        time.sleep(pause)
        if time.monotonic() > end:
            return longest


def turn(pool, daemon, new_client, steps, expected, pause=0):
    """((p99 of the neighbour, crowd), longest faulty call)"""
    future = pool.submit(neighbour, new_client, daemon, SECONDS)
    longest = one_fault(daemon, new_client, steps, expected, pause)
    return future.result(60), longest


def measure(pool, daemon, new_client, fault, without):
    """One fault. Where somebody had to wait too long, it is measured twice more, and most rounds count: the machine may be busy."""
    problem, is_of_time = measure_once(pool, daemon, new_client, fault, without)
    if not is_of_time:
        return problem
    for _ in range(ROUNDS - 1):
        again, is_of_time = measure_once(pool, daemon, new_client, fault, without)
        if again is not None:
            return again if not is_of_time else "%s; %s" % (problem, again)
    return None


def measure_once(pool, daemon, new_client, fault, without):
    """
    One fault beside a neighbour of whom `without` is measured when there is none; None: to be measured here. Returns a problem or
    None, and whether it is only that somebody had to wait.
    """
    name, steps, expected = fault
    pause = 0 if without is None else PAUSE
    try:
        if without is None:
            without, _ = turn(pool, daemon, new_client, HARMLESS, None)
        (during, _), longest = turn(pool, daemon, new_client, steps, expected, pause)
    except (Fault, AssertionError, OSError) as e:
        return "%s: %s" % (name, e), False
    alone, crowd = without
    print("faults: %-20s its call %.2f s; neighbour p99 %.1f ms without, %.1f ms with; crowd %.1f" % (
        name, longest, alone * 1000, during * 1000, crowd), flush=True)
    if during > alone * FACTOR + ALLOWANCE * crowd:
        return "%s: the neighbour's p99 went from %.1f to %.1f ms" % (name, alone * 1000, during * 1000), True
    if longest > DEADLINE:
        return "%s: its call took %.1f s" % (name, longest), True
    return None, False


def one_server(new_client, server, faults, is_brief):
    daemon = harness.Daemon({"main": dict({"script": {}, "request_timeout": "2s"}, **server)},
                            {"log": {"level": "error"}, "sessions": {"idle_timeout": "3s"}})
    # Each server has a neighbour's process of its own.
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        address = Address(daemon.address)
        without = turn(pool, address, new_client, HARMLESS, None)[0] if is_brief else None
        problems = [measure(pool, address, new_client, fault, without) for fault in faults]
    return [p for p in problems if p is not None] + daemon.stop()


def run(new_client):
    problems = one_server(new_client, {"pool": {"max": 200}}, FAULTS, False)
    print("faults: of processes that are shared:", flush=True)
    return problems + one_server(new_client, SHARED, [f for f in FAULTS if f[0] in BRIEF], True)
