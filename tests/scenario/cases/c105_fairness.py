# SPDX-License-Identifier: Apache-2.0
"""One caller takes all that it can get of what callers share; another one's call, stream, record and line come through."""
import hashlib
import json
import re
import statistics
import threading
import time

import harness
import mcp
from c80_stateless import begin, message
from harness import case, eq, ok, wait_for

SLOW_NAME = '{"name":"%s","inputSchema":{"type":"object"}},' % ("\u0301\u0323" * 60)
WORK_SECONDS, IDLE_SECONDS = 3, 1.4  # of a call; until a process that nobody uses ends, at least
CONFIG = {"limits": {"response": "64KiB"}}
SHARED = {"script": {}, "isolation": "shared", "pool": {"max": 1, "idle_timeout": "1500ms"}}
SERVERS = {"main": SHARED, "narrow": dict(SHARED, concurrency=1)}


@case
def an_answer_that_is_too_large(t):
    """BACK-FRAME-06, REL-22: of a shared process's calls, only the one that it answers fails, wherever the id stands."""
    other, one = t.session("main"), t.session("main")
    pid = one.pid()
    eq(other.pid(), pid, "one process")
    waiting = other.start_do(["sleep", 1], ["text", "fine"])
    for begin, end in (('{"jsonrpc":"2.0","id":@ID@,"result":"', '"}\n'), ('{"jsonrpc":"2.0","result":{"id":"', '"},"id":@ID@}\n'),
                       ('[{"jsonrpc":"2.0","result":{"id":"', '"},"id":@ID@}]\n')):
        error = one.do(["write", begin], ["fill", "x", 300 << 10], ["write", end])["error"]
        eq((error["code"], error["data"]["reason"]), (-32603, "child_protocol_error"))
        ok("larger than the gateway allows" in error["message"], "true", error)
    eq(waiting.final()["result"]["content"][0]["text"], "fine")
    eq((one.pid(), other.pid()), (pid, pid), "the process stays")


def is_free(t):
    """Whether another call is admitted."""
    s = t.session("narrow")
    try:
        return s.begin(mcp.request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}})).status == 200
    finally:
        s.delete()


def late_calls(t):
    """How many of the calls of counts_until_answered the server has got."""
    return sum("late" in json.dumps(m) for pid, _ in t.daemon.records_of("narrow") for m in t.daemon.messages(pid))


def counts_until_answered(t, begin_call, give_up):
    """The call counts although nobody waits for it, until the server has answered."""
    before = late_calls(t)
    running = begin_call(["sleep", WORK_SECONDS], ["text", "late"])
    wait_for(lambda: late_calls(t) > before, 5, "the call at the server")
    wait_for(lambda: not is_free(t), 5, "the call in flight")
    give_up(running)
    gave_up = time.monotonic()
    while time.monotonic() < gave_up + IDLE_SECONDS / 2:
        free = is_free(t)
        ok(not free or time.monotonic() > gave_up + IDLE_SECONDS, "the server works on")
    wait_for(lambda: is_free(t), 2 * WORK_SECONDS, "its answer, or its end")


@case
def a_call_that_fails_by_its_answer_has_been_answered(t):
    """REL-46: an answer that cannot be passed on ends the count as any other does."""
    s = t.session("narrow")
    for _ in range(3):
        answer = s.do(["write", '{"jsonrpc":"2.0","id":@ID@,"result":"'], ["fill", "x", 300 << 10], ["write", '"}\n'])
        ok("larger than the gateway allows" in answer["error"]["message"], "the call runs", answer)
    eq(s.echo("next"), "next")


@case(deadline=30)
def a_long_name_for_a_call_is_compared_at_once(t):
    """REL-51, CXL-02: a cancellation names a call by megabytes of escapes, while many calls are in flight."""
    t.start({"main": dict(SHARED, pool={"max": 1, "requests_per_process": 512})})
    s = t.session("main")
    calls = [s.start("tools/call", s.do_params([["wait_cancel"], ["text", "x"]]), request_id="call-%d" % n) for n in range(48)]
    body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}' % (b"\\u0061" * 600000)
    eq(s.post(body).status, 202)
    for call in calls:
        s.cancel(call.id)
    text = t.conn(address=t.daemon.admin).request("GET", "/metrics").read().decode()
    longest = float(re.search(r"^mcpgated_loop_turn_max_seconds (\S+)", text, re.M).group(1))
    ok(longest < harness.SLOW, "the longest turn", longest)


@case(deadline=20)
def a_cancelled_call_counts_until_it_is_answered(t):
    """REL-46, product §4: whoever cancels calls has no more of them at the server than others."""
    s = t.session("narrow")
    counts_until_answered(t, s.start_do, lambda running: s.cancel(running.id))


@case(deadline=20)
def a_call_of_an_ended_session_counts_until_it_is_answered(t):
    """REL-46, product §4: nor whoever ends the session."""
    s = t.session("narrow")
    counts_until_answered(t, s.start_do, lambda running: s.delete())


@case(deadline=20)
def a_call_of_a_closed_connection_counts_until_it_is_answered(t):
    """REL-46, product §4: nor whoever closes the connection of a request of 2026-07-28."""
    def begin_call(*steps):
        return begin(t, "narrow", message("tools/call", {"name": "do", "arguments": {"steps": list(steps)}}))
    counts_until_answered(t, begin_call, lambda running: running.close())


@case(own=True, servers={"slow": {"isolation": "shared", "pin": "enforce", "tools": {"deny": ["secret*"]}, "script": {
    "on": {"tools/list": [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"tools":['], ["repeat", 8000, [["write", SLOW_NAME]]],
                          ["write", '{"name":"last","inputSchema":{"type":"object"}}]}}\n']]}}, "pool": {"max": 1, "idle_timeout": "1500ms"}}},
      config={"limits": {"response": "16MiB"}}, deadline=60)
def names_that_are_slow_to_compare(t):
    """REL-51: a list of names that unfold to much stops nobody, neither when it comes nor when it is asked for."""
    s = t.session("slow")
    for _ in range(3):
        ok(len(s.ask("tools/list", timeout=30)["result"]["tools"]) < 8000, "only so many")
    text = t.conn(address=t.daemon.admin).request("GET", "/metrics").read().decode()
    longest = float(re.search(r"^mcpgated_loop_turn_max_seconds (\S+)", text, re.M).group(1))
    ok(longest < harness.SLOW, "the longest turn", longest)


WORST = {"tools": {"arguments": {"deny_patterns": {"*": ["(?i)drop\\s+table", "a+b+c"]}, "forbidden_keys": ["secret*"]}}}
CALLERS = [{"name": who, "sha256": hashlib.sha256(("token-of-%s" % who).encode()).hexdigest()} for who in ("alice", "mallory")]


def worst_message():
    """Takes long to read and judge, for its size."""
    members = ",".join('"\uff41\uff42%d":0' % n for n in range(60000))
    return ('{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":{%s}}}' % members).encode()


def took(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


@case(daemon=False, deadline=90)
def messages_that_take_long(t):
    """REL-53: one caller sends nothing but them, by six connections: another's call waits for one of them, not for six; alone he waits for nobody."""
    t.start({"main": dict(SHARED, **WORST)}, {"auth": {"mode": "token", "tokens": CALLERS}})
    alice, body, over, sent = t.session(token="token-of-alice"), worst_message(), threading.Event(), []
    those = [t.session(token="token-of-mallory") for _ in range(6)]
    one = statistics.median(took(lambda: those[0].post(body)) for _ in range(5))
    alone = statistics.median(took(lambda: alice.echo("x")) for _ in range(5))

    def press(s):
        while not over.is_set():
            s.post(body)
            sent.append(time.monotonic())
    threads = [threading.Thread(target=press, args=(s,)) for s in those]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(sent) >= 12 and (sent[-1] - sent[-12]) / 11 < 2 * one, 30, "alone he goes on without a pause")
    meanwhile = [took(lambda: alice.echo("x")) for _ in range(12)]
    over.set()
    for thread in threads:
        thread.join()
    ok(statistics.median(meanwhile) < alone + 2.5 * one, "hers", statistics.median(meanwhile), alone, one)
