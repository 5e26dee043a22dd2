# SPDX-License-Identifier: Apache-2.0
"""What bounds a stream: the age of its connection, the ceilings of what is kept, the stop of the gateway."""
import json
import time

import mcp
from c24_resume import (ELICITATION, ERROR_WITHOUT_ID, FORM, NEWS, expect_expired, expect_nothing_more, plain, story, told)
from harness import case, eq, ok, rss_kib, wait_for, within

SERVERS = {"main": {}}
AGE = {"max_connection_age": "300ms", "json_grace": "50ms", "retry": "20ms"}
KILO = 1024


class Poller:
    """Reads a stream and comes back whenever its connection is closed, until the response or so many messages."""

    def __init__(self, session, exchange):
        self.session, self.exchange = session, exchange
        self.messages, self.ids, self.connections, self.asked = [], [], 1, []

    def step(self):
        """One message, or a new connection."""
        message = self.exchange.next()
        if message is None:
            self.check_close()
            self.exchange = self.session.resume(self.exchange.last_id)
            self.connections += 1
            return
        self.messages.append(message)
        self.ids.append(self.exchange.ids[-1])
        if message.get("method") == "elicitation/create":
            self.asked.append(message["id"])

    def check_close(self):
        """FRONT-SSE-05 FRONT-GET-05 FRONT-SSE-04: the last event says when to come back, where the revision knows that."""
        e = self.exchange
        if self.session.version != mcp.D:
            eq(len(e.primings), 0, "priming events in " + self.session.version)
            return
        ok(len(e.primings) >= 2, "priming events of a connection that was closed", e.primings)
        eq(e.primings[-1].data, b"", "last event")
        ok(20 <= e.primings[-1].retry <= 40, "retry, and a random time more (REL-51)", e.primings[-1].retry)
        eq(e.last_id, e.primings[-1].id, "the id to come back with is that of the last event")

    def answered(self):
        return bool(self.messages) and ("result" in self.messages[-1] or "error" in self.messages[-1])

    def until(self, done):
        while not done():
            self.step()


def values(messages):
    return [m["params"]["progress"] for m in messages if "progress" in m.get("params", {})]


# ---- the age of a connection ------------------------------------------------

@case(config={"streams": AGE})
def old_connection_of_a_call_is_closed(t):
    """FRONT-SSE-05 SEP-1699: a primed stream is closed at the age, with retry; its client loses nothing."""
    s = t.session("main", mcp.D)
    started = time.monotonic()
    p = Poller(s, s.start_do(["progress", 1], ["sleep", 0.5], ["progress", 2], ["sleep", 0.5], ["progress", 3], ["text", "x"], token=1))
    p.until(lambda: p.connections == 2)
    ok(time.monotonic() - started > 0.25, "too early")
    within(started, 1, "seconds to the first close")
    p.until(p.answered)
    eq(values(p.messages), [1, 2, 3])
    eq(p.messages[-1]["result"]["content"][0]["text"], "x")
    ok(3 <= p.connections <= 5, "connections", p.connections)
    expect_nothing_more(s, p.ids[-1])


@case(config={"streams": AGE})
def silent_call_is_polled(t):
    """FRONT-SSE-05 SEP-1699: the priming event alone is enough to come back with."""
    s = t.session("main", mcp.D)
    p = Poller(s, s.start_do(["sleep", 1], ["text", "late"]))
    p.until(p.answered)
    eq((len(p.messages), p.messages[-1]["result"]["content"][0]["text"]), (1, "late"))
    ok(p.connections >= 3, "connections", p.connections)


@case(config={"streams": AGE})
def old_get_connection_is_closed(t):
    """FRONT-GET-05: a GET stream is closed at the age, with retry; news come once, whenever they come."""
    s = t.session("main", mcp.D)
    p = Poller(s, s.get())
    for n in range(8):
        s.do(["notify", NEWS, {"n": n}], ["sleep", 0.1], ["text", "x"])
        if n % 3 == 1:
            p.until(lambda: len(p.messages) == n + 1)
    p.until(lambda: len(p.messages) == 8)
    eq([m["params"]["n"] for m in p.messages], list(range(8)))
    eq(len(set(p.ids)), 8, "event ids that differ")
    p.until(lambda: p.connections >= 4)


@case(config={"streams": AGE})
def old_connections_of_older_revisions(t):
    """FRONT-SSE-06 FRONT-GET-05 FRONT-SSE-04: a call's connection is left alone; a GET is closed once it holds an id."""
    for version in (mcp.B, mcp.C):
        s = t.session("main", version)
        g = s.get()
        e = s.start_do(["progress", 1], ["sleep", 0.8], ["text", "x"], token=1)
        eq(len(e.rest()), 2)
        g.nothing(0.1)
        s.do(["notify", NEWS, {"n": 1}], ["text", "x"])
        eq([m["params"]["n"] for m in g.rest(2)], [1], "the only message of the overdue connection")
        s.do(["notify", NEWS, {"n": 2}], ["text", "x"])
        p = Poller(s, s.resume(g.last_id))
        p.until(lambda: p.messages)
        eq(p.messages[0]["params"]["n"], 2)


@case(config={"streams": AGE})
def old_connection_that_resumed_in_an_older_revision(t):
    """FRONT-GET-05: who came with an id can come again with it, or with a later one."""
    s = t.session("main", mcp.C)
    e = s.start_do(["progress", 1], ["sleep", 0.9], ["progress", 2], ["text", "x"], token=1)
    e.next()
    e.conn.reset()
    r, connections = s.resume(e.last_id), 1
    r.last_id = e.last_id
    messages = r.rest()
    while not messages or "id" not in messages[-1]:
        last, connections = r.last_id, connections + 1
        r = s.resume(last)
        r.last_id = last
        messages += r.rest()
    eq((values(messages), messages[-1]["id"]), ([2], e.id))
    ok(connections >= 3, "connections", connections)


@case(config={"streams": dict(AGE, max_connection_age="40ms")}, deadline=30)
def questions_survive_old_connections(t):
    """FRONT-SSE-05 FRONT-RES-05 REL-01: a call with a question, polled: each message once, in order."""
    s = t.session("main", mcp.D, ELICITATION)
    for k in range(4):
        p = Poller(s, s.start_do(*story(0.01), token="t"))
        while not p.answered():
            p.step()
            while p.asked:
                time.sleep(0.06 * k)
                s.respond(p.asked.pop(), {"action": "accept", "content": {"a": "x"}})
        eq([plain(m) for m in p.messages[:-1]], told(), "messages")
        eq(len(set(p.ids)), len(p.ids), "event ids that differ")
        ok(p.connections >= 4, "connections", p.connections)


@case
def connections_do_not_age_by_default(t):
    """FRONT-GET-05: without the option nothing is closed."""
    t.session("main", mcp.D).get().nothing(1.5)


# ---- the stop ---------------------------------------------------------------

@case(own=True)
def drain_asks_get_streams_to_come_back(t):
    """REL-41 FRONT-GET-05 bridging 4: at SIGTERM what waits is delivered, 2025-11-25 gets retry, then the stream ends."""
    gets = []
    for version in list(mcp.ALL) + [mcp.D] * 4:
        s = t.session("main", version)
        g = s.get()
        s.do(["notify", NEWS, {"n": 1}], ["text", "x"])
        gets.append((version, g))
    s = t.session("main", mcp.D)
    pid = s.pid()
    call = s.start_do(["sleep", 1.2], ["text", "done"])
    silent_call(t.daemon, pid, "done")
    started = time.monotonic()
    t.daemon.term()
    for version, g in gets:
        eq([m["params"]["n"] for m in g.rest(3)], [1], "messages in " + version)
        eq([p.data for p in g.primings], [b""] * 2 if version == mcp.D else [], "priming events in " + version)
        ok(all(1000 <= p.retry <= 2000 for p in g.primings), "retry, and a random time more (REL-51)", g.primings)
    ok(len({g.primings[-1].retry for version, g in gets if version == mcp.D}) > 1, "all come back at once")
    within(started, 1)
    eq(call.final()["result"]["content"][0]["text"], "done")
    eq(t.daemon.wait(), 0)


@case(config={"drain_timeout": "700ms", "streams": dict(AGE, max_connection_age="500ms")})
def drain_leaves_call_streams_open(t):
    """REL-41 FRONT-SSE-05: while nobody could come back no old connection is closed: the error comes on it."""
    s = t.session("main", mcp.D)
    calls = [s.start_do(["progress", 1], ["wait_cancel"], token=i) for i in range(3)]
    for e in calls:
        e.next()
    started = time.monotonic()
    t.daemon.term()
    for e in calls:
        messages = e.rest()
        eq([(m["id"], m["error"]["code"], m["error"]["data"]["reason"]) for m in messages], [(e.id, -32603, "draining")])
    within(started, 2)
    eq(t.daemon.wait(), 0)


# ---- what is kept -----------------------------------------------------------

def padded(first, count, size=KILO):
    """Steps: progress whose messages have about so many bytes each."""
    line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":%d,"message":"%s"}}'
    steps = []
    for n in range(first, first + count):
        steps += [["line", line % (n, "x" * size)]] + ([["sleep", 0.01]] if n % 5 == 0 else [])  # so that they are not dropped unread
    return steps


def call(s, *steps):
    """A call that is through, as a primed stream."""
    e = s.start_do(*steps, token=1)
    e.messages = e.rest()
    ok(e.response.is_sse, "content type", e.response.headers)
    return e


def answer_only(s, size=10 * KILO):
    return call(s, ["text", "y" * size])


def expect_whole(s, e):
    """All that came behind the priming event comes again."""
    r = s.resume(e.primings[0].id)
    eq([plain(m) for m in r.rest()], [plain(m) for m in e.messages], "replayed messages")
    eq(r.ids, e.ids, "replayed ids")


def expect_beginning_gone(s, e):
    """FRONT-RES-07 FRONT-RES-08: behind a hole comes an error, behind the last but one the answer."""
    expect_expired(s.resume(e.primings[0].id, check=False), e.id)
    expect_expired(s.resume(e.ids[0], check=False), e.id)
    eq(s.resume(e.ids[-2]).final()["id"], e.id)
    expect_nothing_more(s, e.ids[-1])


@case(config={"streams": {"response": "sse", "replay_bytes": "16KiB"}})
def eviction_by_bytes(t):
    """FRONT-RES-08 FRONT-RES-07: replay_bytes: the newest of a stream are kept, what is before them is an error."""
    s = t.session("main", mcp.D)
    e = call(s, *padded(1, 40), ["text", "x"])
    expect_beginning_gone(s, e)
    eq(values(s.resume(e.ids[-6]).rest()), [37, 38, 39, 40])
    expect_whole(s, call(s, *padded(1, 10), ["text", "x"]))


@case(config={"streams": {"replay_age": "1s"}})
def eviction_by_age_of_a_live_stream(t):
    """FRONT-RES-08 FRONT-RES-07 DEF-16: replay_age holds on a stream that goes on, too; its last event stays."""
    t.expect_invalid("2025-06-18, to a client.* id missing", ERROR_WITHOUT_ID)
    for version in (mcp.C, mcp.D):
        s = t.session("main", version)
        g = s.get()
        s.do(*[["notify", NEWS, {"n": n}] for n in range(3)], ["text", "x"])
        for _ in range(3):
            g.next()
        r = s.resume(g.ids[0])
        eq([r.next()["params"]["n"], r.next()["params"]["n"]], [1, 2])
        time.sleep(1.4)
        expect_expired(s.resume(g.ids[0], check=False), None)
        eq(s.resume(g.ids[1]).next()["params"]["n"], 2)


@case(config={"streams": {"response": "sse", "session_bytes": "64KiB"}})
def session_ceiling(t):
    """FRONT-RES-08 FRONT-RES-07: session_bytes: progress goes first, whose stream it is, the answers last; others keep theirs."""
    s, other = t.session("main", mcp.D), t.session("main", mcp.D)
    of_other = call(other, *padded(1, 40), ["text", "other"])
    first = answer_only(s)
    second = call(s, *padded(1, 30), ["text", "second"])
    expect_whole(s, first), expect_whole(s, second)
    third = call(s, *padded(1, 30), ["text", "third"])
    expect_beginning_gone(s, second)
    expect_whole(s, first), expect_whole(s, third)
    answers = [answer_only(s) for _ in range(7)]
    expect_beginning_gone(s, third)
    expect_expired(s.resume(first.primings[0].id, check=False), first.id)
    expect_whole(s, answers[-1]), expect_whole(s, answers[-5])
    expect_whole(other, of_other)
    eq(s.echo("alive"), "alive")


@case(config={"streams": {"response": "sse", "session_bytes": "64KiB"}})
def news_go_after_logs_and_before_questions(t):
    """FRONT-RES-08: the order of kinds across the streams of a session, the live GET stream among them."""
    s = t.session("main", mcp.D, ELICITATION)
    g = s.get()
    s.do(*[["notify", NEWS, {"n": n, "pad": "z" * 4000}] for n in range(3)], ["text", "x"])
    for _ in range(3):
        g.next()
    log = {"level": "error", "data": "l" * 8000}
    logs = call(s, ["notify", "notifications/message", log], ["notify", "notifications/message", log], ["text", "logs"])
    asked = s.start_do(["ask", "q", "elicitation/create", dict(FORM, message="m" * 8000)], ["asked"], token=1)
    asked.prime()
    s.respond(asked.next()["id"], {"action": "decline"})
    asked.messages = asked.rest()
    answer_only(s, 42 * KILO)  # the log lines have to go
    expect_beginning_gone(s, logs)
    eq(s.resume(g.primings[0].id).next()["params"]["n"], 0)
    answer_only(s, 12 * KILO)  # then the news
    expect_expired(s.resume(g.primings[0].id, check=False), None)
    eq(s.resume(asked.primings[0].id).next()["method"], "elicitation/create")
    answer_only(s, 12 * KILO)  # then the question
    expect_expired(s.resume(asked.primings[0].id, check=False), asked.id)
    eq(s.resume(asked.ids[0]).final()["id"], asked.id)


@case(config={"streams": {"response": "sse", "session_bytes": "64KiB"}})
def ceiling_takes_nothing_from_who_reads(t):
    """FRONT-SSE-13 FRONT-RES-08: kept answers fill the ceiling; what comes for a reader that is there goes out all the same."""
    s = t.session("main", mcp.D)
    g = s.get()
    for _ in range(6):
        answer_only(s, 15 * KILO)
    for n in range(3):
        s.do(["notify", NEWS, {"n": n, "pad": "z" * 12 * KILO}], ["text", "x"])
        eq(g.next()["params"]["n"], n)
    for _ in range(6):
        answer_only(s, 15 * KILO)
    steps = [step for n in range(1, 4) for step in padded(n, 1, 12 * KILO) + [["sleep", 0.05]]]
    eq(values(call(s, *steps, ["text", "x"]).messages), [1, 2, 3])


@case(config={"streams": {"response": "sse", "total_bytes": "64KiB"}})
def process_ceiling(t):
    """FRONT-RES-08 FRONT-RES-07 DEF-16: total_bytes: the same over all sessions; none is ended by it."""
    a, b = t.session("main", mcp.D), t.session("main", mcp.D)
    first = answer_only(a)
    second = call(a, *padded(1, 30), ["text", "second"])
    expect_whole(a, first), expect_whole(a, second)
    third = call(b, *padded(1, 30), ["text", "third"])
    expect_beginning_gone(a, second)
    expect_whole(a, first), expect_whole(b, third)
    answers = [answer_only(b) for _ in range(7)]
    expect_expired(a.resume(first.primings[0].id, check=False), first.id)
    expect_whole(b, answers[-1])
    for s in (a, b):
        eq(s.echo("alive"), "alive")


@case(config={"streams": {"total_bytes": "64KiB"}})
def ceiling_counts_what_waits(t):
    """FRONT-RES-08 FRONT-GET-04: news that wait for nobody's GET are given up before kept answers; the newest come."""
    a, b = t.session("main", mcp.D), t.session("main", mcp.D)
    kept = call(a, ["progress", 1], ["text", "y" * 20 * KILO])
    b.do(*[["notify", NEWS, {"n": n, "pad": "z" * 4000}] for n in range(40)], ["text", "x"])
    eq(a.resume(kept.ids[0]).final()["id"], kept.id)
    g, seen = b.get(), []
    while 39 not in seen:
        seen.append(g.next()["params"]["n"])
    eq(seen, list(range(seen[0], 40)), "the newest, in order")
    ok(5 <= len(seen) <= 12, "news that were kept", seen)
    wait_for(lambda: t.daemon.log("stream_overflow"), 2, "log line about what was dropped")


# ---- much at once -----------------------------------------------------------

def both_in_one_write(other):
    """The answer of a call, larger than a stream may hold, and that of the call with the child's id `other`, at once."""
    large = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"%s"}]}}\n' % ("x" * 2000000)
    return ["write", large + '{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % other]


def silent_call(daemon, pid, marker):
    """The child's id of the call that has come last."""
    return wait_for(lambda: [m["id"] for m in daemon.messages(pid) if marker in json.dumps(m)], what="the call at the child")[0]


@case
def large_and_small_answer_at_once(t):
    """FRONT-SSE-13 FRONT-POST-06 FRONT-OLD-02: no reader is slow because one turn brings more than may wait for it."""
    c = t.sse()
    small = c.start_do(["repeat", 0, ["unanswered"]])
    large = c.start_do(both_in_one_write(silent_call(t.daemon, c.pid(), "unanswered")))
    eq(len(c.wait_answer(large)["result"]["content"][0]["text"]), 2000000)
    eq(c.wait_answer(small)["result"]["content"], [])
    s = t.session("main", mcp.B)
    last = max(m["id"] for m in t.daemon.messages(s.pid()) if "id" in m)
    batch = [mcp.request("small", "tools/call", s.do_params([])),
             mcp.request("large", "tools/call", s.do_params([both_in_one_write(last + 1)]))]
    eq(sorted(m["id"] for m in s.begin(batch, accept="text/event-stream").rest()), ["large", "small"])


# ---- readers that never read ------------------------------------------------

LOG_LINE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n'
PROGRESS_LINE = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":%d,"message":"%s"}}\n'
QUESTION = {"pad": "q" * 100000}
QUESTIONS = 20


def never_read(s, size):
    """A call that floods its client, which reads nothing, with lines of that size, and then asks more than fits."""
    progress = "".join(PROGRESS_LINE % (n, "x" * size) for n in range(1, 300000 // size))
    steps = [["progress", 0.5], ["fill", LOG_LINE % ("x" * size), 8000000 // size], ["write", progress]]
    steps += [["send", "q%d" % i, "roots/list", QUESTION] for i in range(QUESTIONS)] + [["sleep", 0.5], ["text", "the end"]]
    conn = s.scene.conn(address=s.address, receive_buffer=4096)
    return s.begin(mcp.request(1, "tools/call", s.do_params(steps, 1)), conn=conn)


def drain_what_is_there(e):
    """Reads to where the connection was cut, in the middle of whatever; whole events only count."""
    try:
        while e.next(3) is not None:
            pass
        raise AssertionError("the stream of a reader that never read came to its end")
    except (OSError, mcp.wire.ProtocolError):
        pass


def number(event_id):
    return int(event_id.rsplit("-", 1)[1], 16)


def beside_a_flood(t, s, size):
    """The slow reader, after other sessions and calls were seen to be unharmed, and it was ended."""
    other = t.session()
    other.echo("warm")
    before = rss_kib(t.daemon.gateway)
    slow = never_read(s, size)
    for _ in range(20):
        started = time.monotonic()
        eq(other.echo("x"), "x")
        within(started, 1, "seconds of another session's call")
        ok(rss_kib(t.daemon.gateway) - before < 24 << 10, "memory", before, rss_kib(t.daemon.gateway))
        time.sleep(0.05)
    t.daemon.wait_log("connection_end", "reason=slow_reader")
    drain_what_is_there(slow)
    ok(slow.last_id is not None, "no event was seen", slow.raw[:1])
    return slow


@case(deadline=30, config={"streams": {"replay_events": 100000}})
def slow_reader_comes_back(t):
    """FRONT-SSE-13 FRONT-RES-02 REL-24: ended for what may not be dropped; back in time it goes on where it was."""
    s = t.session("main", mcp.D, {"roots": {}})
    slow = beside_a_flood(t, s, 1000)
    r = s.resume(slow.last_id)
    messages = r.rest()
    eq(messages[-1]["result"]["content"][0]["text"], "the end")
    eq([number(i) for i in r.ids], list(range(number(slow.last_id) + 1, number(slow.last_id) + 1 + len(r.ids))), "numbers of the events")
    asked = [m["id"] for m in messages + [json.loads(raw) for raw in slow.raw] if m.get("method") == "roots/list"]
    ok(5 < len(asked) < QUESTIONS, "questions on the stream of the call", len(asked))
    g = s.get()  # what came when that was full and nobody read it
    asked += [g.next()["id"] for _ in range(QUESTIONS - len(asked))]
    eq(len(set(asked)), QUESTIONS, "questions: each once")
    eq(s.echo("alive"), "alive")


@case(deadline=30, config={"streams": {"replay_events": 16}})
def slow_reader_comes_back_too_late(t):
    """FRONT-SSE-13 FRONT-RES-07 REL-24: if what it missed is no longer kept, its request gets stream_expired; the session lives."""
    s = t.session("main", mcp.D, {"roots": {}})
    slow = beside_a_flood(t, s, 100)
    expect_expired(s.resume(slow.last_id, check=False), 1)
    eq(s.echo("alive"), "alive")
