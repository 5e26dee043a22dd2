# SPDX-License-Identifier: Apache-2.0
"""Streams that survive their connections: event ids, priming, Last-Event-ID. requirements §8 to §11."""
import json
import os
import random
import time

import mcp
from harness import case, eq, ok, wait_for, within

SERVERS = {"main": {}}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
ELICITATION = {"elicitation": {}}
HALF = 20
STORY_LENGTH = 2 * HALF + 2
NEWS = "notifications/com.example/x"
# FRONT-RES-07; before 2025-11-25 the schema wants an id in every error.
ERROR_WITHOUT_ID = "the session's own stream belongs to no request whose id an error could have"


def progress(first, count, pause=0):
    steps = []
    for value in range(first, first + count):
        steps += [["progress", value]] + ([["sleep", pause]] if pause else [])
    return steps


def story(pause=0):
    """Steps of a call: progress, one question, progress, the result."""
    return (progress(1, HALF, pause) + [["ask", "q", "elicitation/create", FORM]]
            + progress(HALF + 1, HALF, pause) + [["asked"]])


def plain(message):
    """A message without the ids that differ from call to call."""
    return {k: v for k, v in message.items() if k != "id"}


def told(token="t"):
    """What a client must see of story(), once and in this order."""
    def value(n):
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}}
    asked = {"jsonrpc": "2.0", "method": "elicitation/create", "params": FORM}
    return [value(n) for n in range(1, HALF + 1)] + [asked] + [value(n) for n in range(HALF + 1, 2 * HALF + 1)]


class Follower:
    """Reads one stream over as many connections as it takes; sees each message of it once, in order."""

    def __init__(self, session, exchange):
        self.session, self.exchange = session, exchange
        self.call_id = getattr(exchange, "id", None)
        self.messages, self.ids, self.last, self.asked = [], [], None, None
        self.old = []
        self.cuts = 0
        self.done = False

    def take(self, timeout=mcp.TIMEOUT):
        message = self.exchange.next(timeout)
        self.last = self.exchange.last_id or self.last
        if message is None:
            self.done = True
            return None
        self.messages.append(message)
        self.ids.append(self.exchange.ids[-1])
        if message.get("method") == "elicitation/create":
            self.asked = message["id"]
        return message

    def prime(self):
        self.exchange.prime()
        self.last = self.exchange.last_id

    def answer(self):
        if self.asked is not None:
            self.session.respond(self.asked, {"action": "accept", "content": {"a": "x"}})
            self.asked = None

    def cut(self, how):
        """Loses the connection: reset, close, or hang (nobody reads it, it stays open)."""
        self.cuts += 1
        if how == "hang":
            self.old.append(self.exchange)
        elif how == "reset":
            self.exchange.conn.reset()
        else:
            self.exchange.conn.close()

    def resume(self):
        """Goes on behind the last id; 204 says that there is nothing more."""
        self.exchange = self.session.resume(self.last, check=False)
        if self.exchange.status == 204:
            eq(self.exchange.response.read(), b"", "body of 204")
            self.done = True
            return
        eq(self.exchange.status, 200, "status of the resumption behind %s" % self.last)
        ok(self.exchange.response.is_sse, "content type", self.exchange.response.headers)

    def read_on(self):
        while not self.done:
            self.take()
            self.answer()

    def check(self, expected, what):
        eq(len(set(self.ids)), len(self.ids), what + ": event ids that differ")
        seen = [m["params"]["progress"] if "progress" in m.get("params", {}) else m.get("method", "result")
                for m in self.messages]
        eq(len(self.messages), len(expected) + 1, "%s: messages %r" % (what, seen))
        eq([plain(m) for m in self.messages[:-1]], expected, what)
        answers = json.loads(self.messages[-1]["result"]["content"][0]["text"])
        eq([a["result"] for a in answers], [{"action": "accept", "content": {"a": "x"}}], what + ": answers at the child")
        for exchange in self.old:
            exchange.rest()


def follow(s, *steps, token="t"):
    return Follower(s, s.start_do(*(steps or story()), token=token))


def expect_expired(exchange, request_id):
    """FRONT-RES-07: what to say where events are gone for good."""
    eq(exchange.status, 200)
    ok(exchange.response.is_sse, "content type", exchange.response.headers)
    eq(exchange.response.header("mcp-session-id"), exchange.session.id, "FRONT-HTTP-14")
    messages = exchange.rest()
    eq(len(messages), 1, "messages")
    eq((messages[0]["error"]["code"], messages[0]["error"]["data"]["reason"]), (-32603, "stream_expired"))
    eq(messages[0].get("id"), request_id, "id of the request that gets the error")


def expect_refused(s, last_id):
    e = s.resume(last_id, check=False)
    body = e.response.read()
    eq(e.status, 400, "status for %r" % last_id)
    ok("error" in json.loads(body), "body", body)


def expect_nothing_more(s, last_id):
    e = s.resume(last_id, check=False)
    eq((e.status, e.response.read()), (204, b""), "answer to %s" % last_id)
    eq(s.post(mcp.request(1, "ping"), conn=e.conn).status, 200, "the same connection")


def is_carried_out(t, pid, times=1):
    """Waits until the child has been sent so many calls and has ended them."""
    wait_for(lambda: t.daemon.record(pid).count(b'"tools/call"') >= times, 3, "call at the child")
    time.sleep(0.5)


# ---- ids and priming --------------------------------------------------------

@case
def every_event_has_an_id(t):
    """FRONT-RES-01 FRONT-SSE-04: ids on all events of POST and GET streams, unique in the session."""
    for version in mcp.ALL:
        s = t.session("main", version)
        g = s.get()
        calls = [s.start_do(*progress(1, 3), ["notify", NEWS, {"n": i}], ["text", "x"], token=i) for i in range(3)]
        ids = []
        for e in calls:
            eq(len(e.rest()), 4)
            ids += e.ids + [p.id for p in e.primings]
        for _ in calls:
            g.next()
        ids += g.ids + [p.id for p in g.primings]
        eq(len(ids), 15 + (4 if version == mcp.D else 0))
        eq(len(set(ids)), len(ids), "ids that differ in " + version)


@case
def streams_begin_with_a_priming_event(t):
    """FRONT-SSE-03: id, retry, empty data first on every 2025-11-25 stream, POST and GET, and only there."""
    s = t.session("main", mcp.D)
    for e in (s.get(), s.start_do(["progress", 1], ["text", "x"], token=1)):
        event = e.prime()
        eq((event.data, event.retry), (b"", 1000), "priming event %r" % event)
        ok(event.name in (None, "message"), "type", event)
    eq(len(e.rest()), 2)
    eq(len(e.primings), 1, "priming events of one connection")


@case
def slow_call_is_primed_at_the_grace(t):
    """FRONT-SSE-03 FRONT-SSE-01: a stream without messages is primed when it is committed."""
    s = t.session("main", mcp.D)
    started = time.monotonic()
    e = s.start_do(["sleep", 2], ["text", "late"])
    e.prime(1.8)
    within(started, 1.8)
    e.conn.reset()
    e = s.resume(e.last_id)
    eq(e.final()["result"]["content"][0]["text"], "late")


@case
def json_answers_are_not_primed(t):
    """FRONT-SSE-01 FRONT-SSE-03: what is answered quickly stays JSON in 2025-11-25, too."""
    s = t.session("main", mcp.D)
    e = s.start("tools/list")
    e.rest()
    ok(e.response.is_json and not e.primings, "content type", e.response.headers)


@case(config={"streams": {"retry": "250ms"}})
def retry_is_configurable(t):
    """FRONT-SSE-03: streams.retry is what the priming event says."""
    eq(t.session("main", mcp.D).get().prime().retry, 250)


@case
def resumed_streams_are_primed_again(t):
    """FRONT-RES-06 FRONT-SSE-04: a priming event comes with the resumption, its id works; never below 2025-11-25."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(*progress(1, 4), ["sleep", 0.6], ["text", "x"], token=1)
        values = [e.next()["params"]["progress"] for _ in range(2)]
        e.conn.reset()
        e = s.resume(e.ids[-1])
        values += [e.next()["params"]["progress"] for _ in range(2)]
        try:
            e.next(0.2)  # a priming event may stand behind the replay
        except TimeoutError:
            pass
        eq(values, [1, 2, 3, 4])
        eq(len(e.primings), 1 if version == mcp.D else 0, "priming events in " + version)
        if version == mcp.D:
            eq(e.primings[0].retry, 1000)
            e.conn.reset()
            rest = s.resume(e.primings[0].id).rest()
            ok(rest[-1]["id"] and "result" in rest[-1], "last message", rest)
            eq([m["params"]["progress"] for m in rest[:-1]], [3, 4][2 - (len(rest) - 1):], "progress behind the priming event")


# ---- nothing lost, nothing twice --------------------------------------------

@case(deadline=60)
def every_cut_is_healed(t):
    """FRONT-RES-01 FRONT-RES-02 FRONT-RES-05 REL-01: killed after every event, the parts equal the whole."""
    for version in (mcp.D, mcp.C, mcp.B):
        caps = {} if version == mcp.B else ELICITATION
        steps = progress(1, HALF) + progress(HALF + 1, HALF) + [["text", "end"]] if version == mcp.B else story()
        s = t.session("main", version, caps)
        whole = follow(s, *steps)
        whole.read_on()
        if version != mcp.B:
            whole.check(told(), version + " uninterrupted")
        for at in range(0 if version == mcp.D else 1, len(whole.messages) + 1):
            cut_at(s, steps, at, whole)


def cut_at(s, steps, at, whole):
    f = follow(s, *steps)
    if at == 0:
        f.prime()
    for _ in range(at):
        f.take()
        if f.asked is not None and len(f.messages) < at:
            f.answer()
    f.cut("reset" if at % 2 else "close")
    if at % 4 < 2:
        f.answer()  # while nobody reads the stream; else after the resumption
    f.resume()
    f.read_on()
    what = "%s cut after %d" % (s.version, at)
    eq([plain(m) for m in f.messages], [plain(m) for m in whole.messages], what)
    eq(len(set(f.ids)), len(f.ids), what + ": event ids that differ")
    eq(f.exchange.status, 204 if at == len(whole.messages) else 200, what + ": status")


@case(deadline=60)
def every_cut_of_a_paced_stream_is_healed(t):
    """FRONT-RES-02 FRONT-RES-05: the same while events come one by one and the old connection still hangs."""
    sessions = [t.session("main", mcp.D, ELICITATION) for _ in range(4)]
    points = list(range(STORY_LENGTH + 1))
    while points:
        now, points = points[:len(sessions)], points[len(sessions):]
        followers = [(at, follow(s, *story(0.003))) for s, at in zip(sessions, now)]
        for at, f in followers:
            if at == 0:
                f.prime()
            while len(f.messages) < at:
                f.answer()
                f.take()
            f.cut("hang" if at % 2 else "reset")
            f.resume()
        for at, f in followers:
            f.answer()
            f.read_on()
            f.check(told(), "cut after %d" % at)


@case(deadline=60)
def random_cuts_are_healed(t):
    """FRONT-RES-02 FRONT-RES-05 REL-01 REL-03: many cuts of two calls and the GET stream of one session at once."""
    seed = int(os.environ.get("SCENARIO_SEED") or random.randrange(1 << 32))
    cut_many(t, 300, seed)


def cut_many(t, count, seed):
    """Sessions one after the other until so many connections were lost; returns how many that were."""
    rng, cuts = random.Random(seed), 0
    try:
        while cuts < count:
            for version in (mcp.D, mcp.C):
                s = t.session("main", version, ELICITATION)
                cuts += cut_at_random(s, rng)
                s.delete()
                while t.conns:
                    t.conns.pop().close()
    except (AssertionError, OSError, KeyError) as e:
        raise AssertionError("SCENARIO_SEED=%d, %d cuts before: %s: %s" % (seed, cuts, type(e).__name__, e)) from e
    return cuts


def noisy_story(rng, asks):
    """A story whose server also has news for the GET stream. Only one of two calls may ask: see bridging 1.6."""
    steps = [step for step in story(rng.choice((0, 0.001, 0.004))) if asks or step[0] not in ("ask", "asked")]
    steps += [] if asks else [["text", "[]"]]
    steps.insert(5, ["notify", NEWS, {"n": 1}])
    steps.insert(-5, ["notify", NEWS, {"n": 2}])
    return steps


def cut_at_random(s, rng):
    """Six times two calls and the GET stream; returns how many connections were lost."""
    cuts = 0
    for _ in range(6):
        g = Follower(s, s.get())
        calls = [follow(s, *noisy_story(rng, token == "a"), token=token) for token in "ab"]
        while not all(f.done for f in calls):
            f = rng.choice([f for f in calls if not f.done])
            disturb(f, rng, rng.randrange(1, 8))
            disturb(g, rng, 1)
            for f in calls:
                if rng.random() < 0.7:
                    f.answer()
        for f, token in zip(calls, "ab"):
            eq(len(set(f.ids)), len(f.ids), "event ids that differ")
            eq([plain(m) for m in f.messages[:-1] if "id" not in m], [m for m in told(token) if m["params"] != FORM],
               "progress of " + token)
            eq(f.messages[-1]["id"], f.call_id, "the last message of " + token)
            for exchange in f.old:
                exchange.rest()
        asked = [m for f in calls for m in f.messages if m.get("method") == "elicitation/create"]
        eq(len(asked), 1, "questions")
        eq(json.loads(calls[0].messages[-1]["result"]["content"][0]["text"])[0]["result"]["action"], "accept")
        while len(g.messages) < 4:
            g.take()
        eq(sorted(m["params"]["n"] for m in g.messages), [1, 1, 2, 2], "news on the GET stream")
        g.exchange.nothing(0.05)
        g.exchange.conn.reset()
        cuts += sum(f.cuts for f in calls + [g])
    return cuts


def disturb(f, rng, count):
    """Takes up to so many messages as come, then perhaps loses the connection, if an id is known to come back with."""
    try:
        for _ in range(count):
            if not f.done:
                f.take(0.02)
    except TimeoutError:
        f.last = f.exchange.last_id or f.last
    if not f.done and f.last is not None and rng.random() < 0.7:
        f.cut(rng.choice(("reset", "close", "hang")))
        if rng.random() < 0.3:
            time.sleep(0.02)
        f.resume()


@case
def two_streams_do_not_mix(t):
    """FRONT-RES-03 FRONT-SSE-11: two streams of one session, both cut; each resumption replays its own only."""
    for version in mcp.ALL:
        s = t.session("main", version)
        a, b = (follow(s, *progress(1, 4), ["sleep", 0.4], *progress(5, 4), ["text", k], token=k) for k in "ab")
        for f, n in ((a, 1), (b, 3)):
            for _ in range(n):
                f.take()
            f.cut("reset")
        for f in (b, a):
            f.resume()
        for f, k in ((a, "a"), (b, "b")):
            f.read_on()
            eq([(m["params"]["progressToken"], m["params"]["progress"]) for m in f.messages[:-1]],
               [(k, n) for n in range(1, 9)], "stream " + k)
            eq(f.messages[-1]["result"]["content"][0]["text"], k)


@case
def batch_is_resumed(t):
    """FRONT-RES-02 FRONT-POST-06: the stream of a batch is one stream; a cut loses none of its responses."""
    s = t.session("main", mcp.B)

    def batch():
        return Follower(s, s.begin([mcp.request(i, "tools/call", s.do_params(
            [["sleep", i / 20]] + progress(1, 2) + [["text", "r%d" % i]], "t%d" % i)) for i in (1, 2, 3)]))
    whole = batch()
    whole.read_on()
    eq(len(whole.messages), 9)
    for at in range(1, 10):
        f = batch()
        for _ in range(at):
            f.take()
        f.cut("reset")
        f.resume()
        f.read_on()
        eq(f.messages, whole.messages, "cut after %d" % at)


@case
def cut_inside_an_event_is_healed(t):
    """FRONT-RES-02 FRONT-RES-05 REL-01: an event of which half was read comes again as a whole."""
    for version in mcp.ALL:
        s = t.session("main", version)
        for how in ("reset", "hang"):
            text = version + "x" * 600000
            f = follow(s, ["progress", 1], ["text", text])
            f.take()
            f.exchange.conn.take(100000)
            f.cut(how)
            f.resume()
            f.read_on()
            eq(len(f.messages), 2)
            eq(f.messages[1]["result"]["content"][0]["text"], text)


# ---- POST-born streams ------------------------------------------------------

@case
def resumed_stream_ends_after_its_response(t):
    """FRONT-RES-02 FRONT-SSE-09: live again until the response, then it ends and the connection is free."""
    s = t.session()
    e = s.start_do(["progress", 1], ["sleep", 0.5], ["progress", 2], ["sleep", 0.3], ["text", "x"], token=1)
    e.next()
    e.conn.reset()
    r = s.resume(e.last_id)
    started = time.monotonic()
    eq([m.get("params", {}).get("progress") for m in r.rest()], [2, None])
    within(started, 2)
    eq(s.post(mcp.request(1, "ping"), conn=r.conn).status, 200, "the same connection")


@case
def resumption_has_the_headers_of_a_stream(t):
    """FRONT-HTTP-12 FRONT-RES-02: a resumed stream is an event stream like any other."""
    s = t.session()
    e = s.start_do(["progress", 1], ["sleep", 0.5], ["text", "x"], token=1)
    e.next()
    e.conn.reset()
    r = s.resume(e.last_id)
    ok("no-transform" in r.response.header("cache-control"), "Cache-Control", r.response.headers)
    eq(r.response.header("x-accel-buffering"), "no")
    r.rest()


@case
def live_stream_is_taken_over(t):
    """FRONT-RES-04: the old connection ends, the new one goes on; again and again."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(["progress", 1], ["sleep", 0.4], ["progress", 2], ["text", "x"], token=1)
        e.next()
        first = s.resume(e.last_id)
        eq(e.rest(1), [], "the old connection")
        second = s.resume(e.last_id)
        eq(first.rest(1), [], "the resumed connection")
        eq([m.get("params", {}).get("progress") for m in second.rest()], [2, None])


@case
def take_over_replays_from_an_earlier_event(t):
    """FRONT-RES-02 FRONT-RES-04: the id that is sent counts, not what an earlier connection was written."""
    s = t.session()
    e = s.start_do(*progress(1, 5), ["sleep", 0.6], ["text", "x"], token=1)
    for _ in range(5):
        e.next()
    r = s.resume(e.ids[1])
    eq(e.rest(1), [], "the old connection")
    messages = r.rest()
    eq([m["params"]["progress"] for m in messages[:-1]], [3, 4, 5])
    eq(r.ids[:3], e.ids[2:5], "ids of replayed events")
    eq(r.raw[:3], e.raw[2:5], "bytes of replayed events")


@case
def other_streams_stay_where_they_are(t):
    """FRONT-RES-04 FRONT-GET-03: resuming a call takes over neither the GET stream nor another call."""
    s = t.session()
    g = s.get()
    a = s.start_do(["progress", 1], ["sleep", 0.6], ["text", "a"], token="a")
    b = s.start_do(["progress", 1], ["sleep", 0.6], ["text", "b"], token="b")
    a.next()
    b.next()
    a.conn.reset()
    r = s.resume(a.last_id)
    eq(r.final()["result"]["content"][0]["text"], "a")
    eq(b.final()["result"]["content"][0]["text"], "b")
    s.do(["notify", "notifications/tools/list_changed"], ["text", "x"])
    eq(g.next()["method"], "notifications/tools/list_changed")
    g.nothing(0.1)


@case
def question_is_repeated_only_to_who_has_not_seen_it(t):
    """FRONT-RES-05 bridging 1.6: a question is answered while its stream has no connection."""
    s = t.session("main", mcp.D, ELICITATION)
    f = follow(s, ["progress", 1], ["ask", "q", "elicitation/create", FORM], ["asked"])
    f.take()
    f.cut("reset")
    time.sleep(0.2)
    f.resume()
    eq(f.take()["method"], "elicitation/create")
    f.cut("reset")
    f.answer()
    f.resume()
    f.read_on()
    eq(len(f.messages), 3)
    eq(json.loads(f.messages[-1]["result"]["content"][0]["text"])[0]["result"]["action"], "accept")


@case
def question_waits_for_who_left(t):
    """CXL-01 bridging 1.6: what is asked while nobody is connected is the first thing after the resumption."""
    for version in (mcp.C, mcp.D):
        s = t.session("main", version, ELICITATION)
        f = follow(s, ["progress", 1], ["sleep", 0.2], ["ask", "q", "elicitation/create", FORM], ["asked"])
        f.take()
        f.cut("reset")
        time.sleep(0.5)
        f.resume()
        eq(f.take()["method"], "elicitation/create")
        f.answer()
        f.read_on()
        eq(json.loads(f.messages[-1]["result"]["content"][0]["text"])[0]["result"]["action"], "accept")


# ---- the GET stream ---------------------------------------------------------

def news(first, count):
    """list_changed, updated and others: what a GET stream carries, each once and in this order."""
    steps = []
    for n in range(first, first + count):
        steps.append(["notify", NEWS, {"n": n}] if n % 2 else
                     ["notify", "notifications/resources/updated", {"uri": "res://%d" % n}])
    return steps


def subscribed(t, version):
    s = t.session("main", version)
    for n in range(0, 12, 2):
        s.ask("resources/subscribe", {"uri": "res://%d" % n})
    return s


@case(deadline=30)
def get_stream_is_resumed(t):
    """FRONT-RES-02 FRONT-RES-05 FRONT-GET-04: cut after every event, with events before, during and after the gap."""
    for version in mcp.ALL:
        s = subscribed(t, version)
        for at in range(0 if version == mcp.D else 1, 7):
            g = Follower(s, s.get())
            if at == 0:
                g.prime()
            s.do(*news(0, 6), ["text", "x"])
            for _ in range(at):
                g.take()
            g.cut("reset" if at % 2 else "hang")
            s.do(["notify", "notifications/tools/list_changed"], *news(6, 3), ["text", "x"])
            g.resume()
            s.do(["notify", "notifications/prompts/list_changed"], *news(9, 3), ["text", "x"])
            while len(g.messages) < 14:
                g.take()
            g.exchange.nothing(0.05)
            eq(len(set(g.ids)), 14, "event ids that differ")
            expected = [s[2] for s in news(0, 6)] + [{}] + [s[2] for s in news(6, 3)] + [{}] + [s[2] for s in news(9, 3)]
            eq([m.get("params") or {} for m in g.messages], expected, "%s cut after %d" % (version, at))
            g.exchange.conn.reset()


@case
def get_without_id_goes_on_with_what_is_new(t):
    """FRONT-RES-05 FRONT-GET-04: a fresh GET does not replay; a resumed one takes over from it."""
    s = t.session()
    g = s.get()
    s.do(["notify", NEWS, {"n": 1}], ["notify", NEWS, {"n": 2}], ["text", "x"])
    eq([g.next()["params"]["n"], g.next()["params"]["n"]], [1, 2])
    g.conn.reset()
    fresh = s.get()
    fresh.nothing(0.2)
    resumed = s.resume(g.ids[0])
    eq(fresh.rest(2), [], "the fresh stream ends")
    eq(resumed.next()["params"]["n"], 2)
    s.do(["notify", NEWS, {"n": 3}], ["text", "x"])
    eq(resumed.next()["params"]["n"], 3)
    again = s.get()
    eq(resumed.rest(2), [], "the resumed stream ends")
    again.nothing(0.1)


@case
def caught_up_get_stream_stays_open(t):
    """FRONT-RES-10: the GET stream never is complete: its last id is 200 and an open stream."""
    s = t.session("main", mcp.D)
    g = s.get()
    s.do(["notify", NEWS, {"n": 1}], ["text", "x"])
    g.next()
    g.conn.reset()
    r = s.resume(g.last_id)
    r.nothing(0.3)
    s.do(["notify", NEWS, {"n": 2}], ["text", "x"])
    eq(r.next()["params"]["n"], 2)


# ---- what the client left ---------------------------------------------------

@case
def result_waits_for_who_left(t):
    """CXL-01 FRONT-RES-08: leaving cancels nothing, and the result is stored once an id was sent."""
    for version in mcp.ALL:
        s = t.session("main", version)
        pid = s.pid()
        e = s.start_do(["progress", 1], ["sleep", 0.2], ["progress", 2], ["text", "stored"], token=1)
        e.next()
        e.conn.reset()
        is_carried_out(t, pid, 2)
        messages = s.resume(e.last_id).rest()
        eq([m.get("params", {}).get("progress") for m in messages], [2, None])
        eq((messages[-1]["id"], messages[-1]["result"]["content"][0]["text"]), (e.id, "stored"))
        eq([m for m in t.daemon.messages(pid) if m.get("method") == "notifications/cancelled"], [], "cancels at the child")


@case
def result_waits_behind_a_priming_event(t):
    """CXL-01 FRONT-SSE-03: the id of the priming event is an id that was sent."""
    s = t.session("main", mcp.D)
    e = s.start_do(["sleep", 1.6], ["text", "stored"])
    e.prime(1.8)
    e.conn.reset()
    time.sleep(1.2)
    eq(s.resume(e.last_id).final()["result"]["content"][0]["text"], "stored")


@case
def result_without_id_is_discarded(t):
    """CXL-01: where no id was sent nothing is stored; the GET stream does not get it either."""
    s = t.session()
    g = s.get()
    e = s.start_do(["sleep", 0.3], ["text", "lost"])
    time.sleep(0.1)
    e.conn.reset()
    g.nothing(0.6)
    eq(s.echo("fine"), "fine")


@case
def complete_streams_stay_replayable(t):
    """FRONT-RES-08: the same events for every id of a complete stream, as often as they are asked for."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(*progress(1, 5), ["text", "x"], token=1)
        e.rest()
        s.echo("between")
        for _ in range(2):
            for i in range(len(e.ids) - 1):
                r = s.resume(e.ids[i])
                r.rest()
                eq((r.ids, r.raw), (e.ids[i + 1:], e.raw[i + 1:]), "events behind %d" % i)


@case
def nothing_more_is_204(t):
    """FRONT-RES-10: behind the last event of a complete stream there is 204 without body, also repeatedly."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(["progress", 1], ["text", "x"], token=1)
        e.rest()
        for _ in range(3):
            expect_nothing_more(s, e.ids[-1])


@case
def cancelled_stream_is_204(t):
    """FRONT-RES-10 CXL-02: a stream that ended by cancellation is complete, whatever id is sent."""
    for version in mcp.ALL:
        for leaves in (False, True):
            s = t.session("main", version)
            e = s.start_do(["progress", 1], ["progress", 2], ["wait_cancel"], ["text", "late"], token=1)
            e.next()
            e.next()
            if leaves:
                e.conn.reset()
                time.sleep(0.1)
            s.cancel(e.id)
            if not leaves:
                eq(e.rest(), [])
            for last_id in e.ids[::-1] + [p.id for p in e.primings]:
                expect_nothing_more(s, last_id)


@case
def cancel_ends_a_resumed_stream(t):
    """CXL-02 FRONT-RES-10: a cancel reaches the connection that reads the stream now."""
    s = t.session("main", mcp.D)
    e = s.start_do(["progress", 1], ["wait_cancel"], token=1)
    e.next()
    e.conn.reset()
    r = s.resume(e.last_id)
    r.nothing(0.1)
    s.cancel(e.id)
    eq(r.rest(3), [], "messages after the cancel")
    expect_nothing_more(s, r.last_id)


@case
def failure_waits_for_who_left(t):
    """CXL-01 FRONT-RES-08: also the error of a call whose server has died while nobody was connected."""
    s = t.session()
    e = s.start_do(["progress", 1], ["sleep", 0.2], ["exit", 3], token=1)
    e.next()
    e.conn.reset()
    time.sleep(0.6)
    r = s.resume(e.last_id)
    eq([(m["id"], m["error"]["code"]) for m in r.rest()], [(e.id, -32603)])
    expect_nothing_more(s, r.last_id)


@case
def end_of_the_session_ends_a_resumed_stream(t):
    """FRONT-SESS-06 FRONT-RES-02: DELETE ends the connection that reads a stream now."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(["progress", 1], ["sleep", 5], ["text", "x"], token=1)
        e.next()
        e.conn.reset()
        r = s.resume(e.last_id)
        r.nothing(0.1)
        started = time.monotonic()
        s.delete()
        ok(all("result" not in m for m in r.rest(3)), "result after DELETE")
        within(started, 2)


# ---- ids that are none ------------------------------------------------------

@case
def unknown_ids_are_refused(t):
    """FRONT-RES-07: malformed and unknown ids are 400, never 404; they disturb no stream."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(["progress", 1], ["sleep", 0.4], ["text", "x"], token=1)
        e.next()
        good = e.last_id
        for bad in ("x", "0", "-1", "-", "--", "1-1-1", "a-b-c", "_", "0" * 300, "%00", "null", '"' + good + '"', good + "0" * 20,
                    good + "-", good + "-1", good + "x", "x" + good, good[1:], good[::-1], good.upper() + "Z", good + " " + good,
                    good + "," + good, "\u00e9", "99999999999999999999", "ffffffff-1-1", good + "fffff"):
            expect_refused(s, bad)
        eq(e.final()["result"]["content"][0]["text"], "x")
        eq(s.echo("alive"), "alive")


@case
def ids_of_another_session_mean_nothing(t):
    """FRONT-RES-03 FRONT-RES-07 REL-02 SEC-04: neither events of the other session nor of the own, but 400."""
    for version in mcp.ALL:
        a, b = t.session("main", version), t.session("main", version)
        ga = a.get()
        a.do(["notify", NEWS, {"n": "of a"}], ["text", "x"])
        ga.next()
        calls = [a.start_do(*progress(1, 3), ["text", "secret of a"], token="a") for _ in range(3)]
        for e in calls:
            e.rest()
        ids = [i for e in calls + [ga] for i in e.ids + [p.id for p in e.primings]]
        for last_id in ids:
            expect_refused(b, last_id)
        gb = b.get()
        b.do(["notify", NEWS, {"n": "of b"}], ["text", "x"])
        gb.next()
        running = b.start_do(*progress(1, 3), ["sleep", 0.5], ["text", "of b"], token="b")
        for _ in range(3):
            running.next()
        for last_id in ids:
            expect_refused(b, last_id)
        eq(running.final()["result"]["content"][0]["text"], "of b")
        gb.nothing(0.1)


@case
def foreign_events_are_never_replayed(t):
    """FRONT-RES-03 REL-02: whatever an id of another session gets, it is not that session's events."""
    a, b = t.session(), t.session()
    e = a.start_do(*progress(1, 3), ["text", "secret of a"], token="a")
    e.rest()
    b.do(*progress(1, 3), ["text", "of b"], token="b")
    for last_id in e.ids:
        r = b.resume(last_id, check=False)
        ok(r.status in (200, 204, 400), "status", r.status)
        body = r.response.read() if r.status != 200 else b"".join(r.raw if r.rest() else [])
        ok(b"secret" not in body and b'"a"' not in body, "events of another session", body)


@case
def ended_session_is_404(t):
    """FRONT-SESS-04 FRONT-RES-07: with an id of an ended session it is the session that is not found."""
    s = t.session()
    e = s.start_do(["progress", 1], ["text", "x"], token=1)
    e.rest()
    s.delete()
    r = s.resume(e.ids[0], check=False)
    r.response.read()
    eq(r.status, 404)


# ---- what was forgotten -----------------------------------------------------

@case(config={"streams": {"replay_events": 4}})
def evicted_events_are_an_error(t):
    """FRONT-RES-07 FRONT-RES-08: behind forgotten events comes stream_expired; the response is kept."""
    for version in mcp.ALL:
        s = t.session("main", version)
        e = s.start_do(*progress(1, 30), ["text", "x"], token=1)
        e.rest()
        expect_expired(s.resume(e.ids[0], check=False), e.id)
        expect_expired(s.resume(e.ids[10], check=False), e.id)
        r = s.resume(e.ids[-2])
        eq(r.final(), json.loads(e.raw[-1]))
        eq(s.echo("alive"), "alive")


@case(config={"streams": {"replay_events": 4}})
def evicted_events_of_a_running_call(t):
    """FRONT-RES-07: the same while the call runs; its newest events can still be resumed."""
    s = t.session()
    e = s.start_do(*progress(1, 30), ["sleep", 0.8], ["text", "x"], token=1)
    for _ in range(30):
        e.next()
    expect_expired(s.resume(e.ids[0], check=False), e.id)
    r = s.resume(e.ids[28])
    eq([m.get("params", {}).get("progress") for m in r.rest()], [30, None])


@case(config={"streams": {"replay_age": "1s"}})
def old_streams_expire(t):
    """FRONT-RES-07: a stream that is kept no longer is known still: the error names the request."""
    for version in (mcp.C, mcp.D):
        s = t.session("main", version)
        e = s.start_do(*progress(1, 3), ["text", "x"], token=1)
        e.rest()
        time.sleep(1.7)
        expect_expired(s.resume(e.ids[0], check=False), e.id)


@case(deadline=30)
def many_streams_are_kept_or_expired(t):
    """FRONT-RES-07 FRONT-RES-08: after hundreds of calls the oldest are replayed or expired, the newest replayed."""
    s = t.session()
    calls = []
    for _ in range(300):
        e = s.start_do(["progress", 1], ["text", "x"], token=1)
        e.rest()
        e.conn.close()
        calls.append(e)
    for e in calls[:3] + calls[-10:]:
        r = s.resume(e.ids[0], check=False)
        eq(r.status, 200)
        last = r.final()
        if "error" in last:
            ok(e not in calls[-10:], "one of the newest has expired", e.ids[0])
            eq(last["error"]["data"]["reason"], "stream_expired")
            continue
        eq(last["id"], e.id, "id of the response")


@case(deadline=30)
def answer_of_the_longest_call_is_kept(t):
    """FRONT-RES-08 CXL-01: what came last, and nobody has seen, is not what goes first, however early its call began."""
    s = t.session("main", mcp.D)
    pid = s.pid()
    e = s.start_do(["progress", 1], token=1)
    e.next()
    e.conn.reset()
    child_id = max(m["id"] for m in t.daemon.messages(pid) if m.get("method") == "tools/call")
    for _ in range(80):
        s.start_do(["progress", 1], ["text", "x"], token=1).rest()
    s.do(["line", '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"late"}]}}' % child_id], ["text", "x"])
    eq(s.resume(e.last_id).final()["result"]["content"][0]["text"], "late")


@case(config={"streams": {"replay_events": 4}})
def evicted_news_are_an_error(t):
    """FRONT-RES-07: events of the GET stream that are gone: stream_expired, no 404; its id, or a new GET, leads on."""
    t.expect_invalid("2025-06-18, to a client.* id missing", ERROR_WITHOUT_ID)
    s = t.session()
    g = s.get()
    s.do(*[["notify", NEWS, {"n": n}] for n in range(20)], ["text", "x"])
    for _ in range(20):
        g.next()
    r = s.resume(g.ids[0], check=False)
    eq(r.status, 200)
    eq([m["error"]["data"]["reason"] for m in r.rest()], ["stream_expired"])
    s.do(["notify", NEWS, {"n": 20}], ["text", "x"])
    eq(s.resume(r.last_id).next()["params"]["n"], 20)  # a client that knows this id alone is not lost
    eq(s.resume(g.ids[-2]).next()["params"]["n"], 19)
    s.get().nothing(0.1)


@case(deadline=20, config={"streams": {"replay_bytes": "256KiB"}})
def storm_of_resumptions(t):
    """FRONT-RES-04 REL-32: a hundred resumptions of one live stream, all left hanging, cost nothing lasting."""
    s = t.session("main", mcp.D)
    e = s.start_do(["progress", 1], ["sleep", 1.5], ["text", "x"], token=1)
    e.next()
    readers = [s.resume(e.last_id) for _ in range(100)]
    for r in readers[:-1]:
        eq(r.rest(2), [], "a connection that was taken over")
    eq(len(readers[-1].rest()), 1)
