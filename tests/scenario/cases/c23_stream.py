# SPDX-License-Identifier: Apache-2.0
"""Event streams: answers to POST and the standalone GET stream. requirements §8, §9."""
import time

import mcp
from harness import case, eq, ok, rss_kib, wait_for, within

SERVERS = {"main": {}}
ROOTS = {"roots": {"listChanged": True}}


def background(*steps):
    """Steps that run after the call has been answered."""
    return [["background", [["sleep", 0.1]] + list(steps)], ["text", "started"]]


@case
def quick_answers_are_json(t):
    """FRONT-SSE-01: an answer without anything before it is application/json, for lists and calls."""
    s = t.session()
    for method, params in (("tools/list", None), ("ping", None), ("prompts/list", {}),
                           ("tools/call", {"name": "echo", "arguments": {}})):
        e = s.start(method, params)
        e.rest()
        ok(e.response.is_json, method, e.response.headers)


@case
def slow_answers_become_streams(t):
    """FRONT-SSE-01: after 1 s without answer the response is committed as a stream."""
    s = t.session()
    started = time.monotonic()
    e = s.start_do(["sleep", 2], ["text", "late"])
    ok(e.response.is_sse, "content type", e.response.headers)
    ok(time.monotonic() - started > 0.7, "too early")
    within(started, 1.8, "committed after")
    eq([m["id"] for m in e.rest()], [e.id])


@case(config={"streams": {"json_grace": "200ms"}})
def grace_is_configurable(t):
    """FRONT-SSE-01: streams.json_grace is that time."""
    s = t.session()
    started = time.monotonic()
    e = s.start_do(["sleep", 1], ["text", "late"])
    ok(e.response.is_sse, "committed after", e.response.headers)
    within(started, 0.8, "committed after")
    e.rest()


@case(config={"streams": {"response": "json"}})
def response_json_is_configurable(t):
    """FRONT-SSE-01 product §4: streams.response json: calls are answered with JSON only."""
    s = t.session()
    e = s.start_do(["progress", 1], ["sleep", 1.3], ["text", "x"], token=1)
    eq(len(e.rest()), 1)
    ok(e.response.is_json, "content type", e.response.headers)


@case(config={"streams": {"response": "sse"}})
def response_sse_is_configurable(t):
    """FRONT-SSE-01 FRONT-INIT-04: streams.response sse: calls are streams, initialize is still JSON."""
    s = t.session()
    ok(s.started.response.is_json, "initialize", s.started.response.headers)
    e = s.start_do(["text", "x"])
    eq(e.rest()[-1]["id"], e.id)
    ok(e.response.is_sse, "content type", e.response.headers)


@case
def first_message_commits(t):
    """FRONT-SSE-01: the first message to relay makes it a stream at once."""
    s = t.session()
    started = time.monotonic()
    e = s.start_do(["progress", 1], ["sleep", 1], ["text", "x"], token="a")
    eq(e.next()["params"], {"progressToken": "a", "progress": 1})
    within(started, 0.8)
    e.rest()


@case
def one_message_per_event(t):
    """FRONT-SSE-02: event: message, one data line, whatever the message holds."""
    s = t.session()
    e = s.start_do(["progress", 1], ["text", "a\nb\rc\u2028d\n\ndata: x"], token=1)
    messages = e.rest()
    eq(messages[-1]["result"]["content"][0]["text"], "a\nb\rc\u2028d\n\ndata: x")
    e = s.start_do(["progress", 1], ["text", "x"], token=1)
    event = None
    e.wait_head(5)
    event = e.reader.next()
    while event and not event.data:
        event = e.reader.next()
    eq(event.name, "message")


@case
def no_empty_events_below_the_newest_revision(t):
    """FRONT-SSE-04: sessions of 2025-03-26 and 2025-06-18 never see an event with empty data."""
    for version in (mcp.B, mcp.C):
        s = t.session("main", version)
        e = s.start_do(["progress", 1], ["text", "x"], token=1)
        e.wait_head(5)
        event = e.reader.next()
        while event:
            ok(event.data, "empty event", event)
            event = e.reader.next()
        g = s.get()
        s.do(*background(["notify", "notifications/tools/list_changed"]))
        event = g.reader.next()
        ok(event.data, "empty event", event)


@case
def connection_stays_until_the_answer(t):
    """FRONT-SSE-06: the stream is not closed by us before the response."""
    s = t.session()
    e = s.start_do(["progress", 1], ["sleep", 3], ["text", "x"], token=1)
    eq(len(e.rest()), 2)


@case
def streams_carry_what_belongs_to_them(t):
    """FRONT-SSE-07 FRONT-SSE-11 UTIL-PROG-01: progress of two calls travels on their own streams only."""
    s = t.session()
    g = s.get()
    a = s.start_do(["progress", 1], ["sleep", 0.4], ["progress", 2], ["text", "a"], token="ta")
    b = s.start_do(["progress", 5], ["sleep", 0.2], ["progress", 6], ["text", "b"], token="tb")
    for e, token, values in ((a, "ta", [1, 2]), (b, "tb", [5, 6])):
        messages = e.rest()
        eq([(m["params"]["progressToken"], m["params"]["progress"]) for m in messages[:-1]], [(token, v) for v in values])
        eq(messages[-1]["id"], e.id)
    g.nothing(0.2)


@case
def server_requests_travel_on_the_call(t):
    """FRONT-SSE-07 bridging 1.6.6: a question during a call goes to that call's stream, once."""
    s = t.session("main", mcp.C, ROOTS)
    g = s.get()
    e = s.start_do(["ask", "q", "roots/list"], ["asked"])
    asked = e.next()
    eq(asked["method"], "roots/list")
    ok(type(asked["id"]) is int and asked["id"] >= 1000001, "id of the question", asked["id"])
    g.nothing(0.2)
    s.respond(asked["id"], {"roots": []})
    e.final()


@case
def after_the_response_the_stream_ends(t):
    """FRONT-SSE-09: the stream ends with the response, and the connection can be used again."""
    s = t.session()
    e = s.start_do(["progress", 1], ["text", "x"], ["progress", 2], token=1)
    started = time.monotonic()
    eq(len(e.rest()), 2)
    within(started, 1)
    if (e.response.header("connection") or "").lower() != "close":
        eq(s.post(mcp.request(1, "ping"), conn=e.conn).status, 200, "same connection")


@case
def no_message_on_two_streams(t):
    """FRONT-SSE-11 REL-03: with several streams open each message comes exactly once."""
    s = t.session()
    g = s.get()
    calls = [s.start_do(["sleep", 0.5], ["text", str(i)]) for i in range(3)]
    s.do(["notify", "notifications/tools/list_changed"], ["notify", "notifications/com.example/x", {"n": 1}], ["text", "x"])
    seen = [m for e in calls for m in e.rest()]
    try:
        while True:
            seen.append(g.next(0.4))
    except TimeoutError:
        pass
    methods = [m["method"] for m in seen if "method" in m]
    eq(sorted(methods), ["notifications/com.example/x", "notifications/tools/list_changed"])


@case
def streams_run_concurrently(t):
    """FRONT-SSE-12: several POST streams of one session run independently."""
    s = t.session()
    calls = [s.start_do(["progress", 1], ["sleep", 0.5], ["text", str(i)], token=i) for i in range(6)]
    started = time.monotonic()
    for i, e in enumerate(calls):
        eq(e.final()["result"]["content"][0]["text"], str(i))
    within(started, 2)


@case(deadline=30)
def slow_reader_harms_nobody(t):
    """FRONT-SSE-13 BACK-FRAME-07 SEC-26 bridging 8.10: a reader that stops blocks neither child nor others."""
    s, other = t.session(), t.session()
    s.echo("warm")
    before = rss_kib(t.daemon.gateway)
    conn = t.conn(receive_buffer=4096)
    pad = "x" * 1000
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' % pad
    slow = s.begin(mcp.request(1, "tools/call", s.do_params([["fill", line, 40000], ["text", "flooded"]], 1)), conn=conn)
    started = time.monotonic()
    pid = s.pid()
    within(started, 8, "another call of the session waited")
    eq(other.echo("x"), "x")
    wait_for(lambda: s.do_text(["text", "@PID@"]) == str(pid), 5, "the child is alive")
    ok(rss_kib(t.daemon.gateway) - before < 24 << 10, "memory", before, rss_kib(t.daemon.gateway))
    slow.close()


@case(deadline=20)
def overflow_never_loses_the_response(t):
    """FRONT-SSE-13: what is dropped for a slow reader is progress and logs, never the response."""
    s = t.session()
    conn = t.conn(receive_buffer=4096)
    line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":%d,"message":"%s"}}'
    steps = [["line", line % (i, "x" * 60000)] for i in range(1, 40)] + [["text", "the end"]]
    e = s.begin(mcp.request(1, "tools/call", s.do_params(steps, 1)), conn=conn)
    time.sleep(1.5)
    messages = e.rest()
    eq(messages[-1]["result"]["content"][0]["text"], "the end")
    values = [m["params"]["progress"] for m in messages[:-1]]
    eq(values, sorted(set(values)), "progress order")
    ok(len(values) < 39, "nothing was dropped")


# ---- GET --------------------------------------------------------------------

@case
def get_opens_a_stream(t):
    """FRONT-GET-01: GET with a live session is 200 and an event stream, at once."""
    for version in mcp.ALL:
        s = t.session("main", version)
        started = time.monotonic()
        g = s.get()
        within(started, 0.7, "head after")
        g.nothing(0.1)


@case
def get_carries_what_belongs_to_no_call(t):
    """FRONT-GET-02: notifications and questions while nothing is in flight go to the GET stream."""
    s = t.session("main", mcp.C, ROOTS)
    pid = s.pid()
    g = s.get()
    s.do(*background(["notify", "notifications/tools/list_changed"], ["send", "q", "roots/list"],
                     ["notify", "notifications/message", {"level": "error", "data": "d"}]))
    seen = [g.next(), g.next(), g.next()]
    eq(sorted(m["method"] for m in seen), ["notifications/message", "notifications/tools/list_changed", "roots/list"])
    asked = [m for m in seen if "id" in m][0]
    s.respond(asked["id"], {"roots": []})
    wait_for(lambda: any(m.get("id") == "q" for m in t.daemon.messages(pid)), 3, "answer at the child")


@case
def get_never_carries_a_response(t):
    """FRONT-GET-02: responses of calls never appear on the GET stream."""
    s = t.session()
    g = s.get()
    e = s.start_do(["progress", 1], ["sleep", 0.3], ["text", "x"], token=1)
    e.next()
    e.conn.reset()
    s.do(["text", "y"])
    g.nothing(0.6)


@case
def second_get_takes_over(t):
    """FRONT-GET-03 REL-03: the older GET ends, the newer gets everything; never 409."""
    s = t.session()
    first = s.get()
    second = s.get()
    eq(first.rest(3), [], "the first stream ends")
    s.do(*background(["notify", "notifications/tools/list_changed"]))
    eq(second.next()["method"], "notifications/tools/list_changed")
    third = s.get()
    eq(second.rest(3), [], "the second stream ends")
    third.nothing(0.2)


@case
def messages_wait_for_a_get(t):
    """FRONT-GET-04: without a GET they wait; list_changed and updated are coalesced."""
    s = t.session("main", mcp.C, ROOTS)
    s.ask("resources/subscribe", {"uri": "res://a"})
    s.ask("resources/subscribe", {"uri": "res://b"})
    s.do(["repeat", 5, [["notify", "notifications/tools/list_changed"],
                        ["notify", "notifications/resources/updated", {"uri": "res://a"}]]],
         ["notify", "notifications/prompts/list_changed"],
         ["notify", "notifications/resources/updated", {"uri": "res://b"}],
         *background(["send", "q", "roots/list"]))
    time.sleep(0.5)
    g = s.get()
    seen = []
    try:
        while True:
            seen.append(g.next(0.4))
    except TimeoutError:
        pass
    keys = sorted(m["method"] + m.get("params", {}).get("uri", "") for m in seen)
    eq(keys, ["notifications/prompts/list_changed", "notifications/resources/updatedres://a",
              "notifications/resources/updatedres://b", "notifications/tools/list_changed", "roots/list"])


@case(deadline=20)
def standalone_queue_is_bounded(t):
    """FRONT-GET-04 REL-24: a flood without a reader costs bounded memory."""
    s = t.session()
    s.echo("warm")
    before = rss_kib(t.daemon.gateway)
    line = '{"jsonrpc":"2.0","method":"notifications/com.example/x","params":{"pad":"%s"}}\n' % ("y" * 1000)
    s.do(["fill", line, 30000], ["text", "x"], timeout=15)
    ok(rss_kib(t.daemon.gateway) - before < 24 << 10, "memory", before, rss_kib(t.daemon.gateway))
    s.echo("still here")


@case
def get_again_after_a_disconnect(t):
    """FRONT-GET-04: a client that comes back gets what came meanwhile."""
    s = t.session()
    g = s.get()
    g.conn.reset()
    time.sleep(0.1)
    s.do(*background(["notify", "notifications/tools/list_changed"]))
    time.sleep(0.3)
    eq(s.get().next()["method"], "notifications/tools/list_changed")
