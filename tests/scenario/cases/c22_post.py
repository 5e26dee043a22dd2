# SPDX-License-Identifier: Apache-2.0
"""Bodies of POST: notifications, responses, batches, ids in flight. requirements §7."""
import mcp
from harness import case, eq, ok, wait_for

SERVERS = {"main": {}}


def do(request_id, *steps):
    return mcp.request(request_id, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}})


def texts(messages):
    return {m["id"]: m["result"]["content"][0]["text"] for m in messages if "content" in m.get("result", {})}


@case
def notifications_are_202_and_empty(t):
    """FRONT-POST-01: an accepted notification or response is 202 without body."""
    s = t.session()
    for message in (mcp.notification("notifications/initialized"), mcp.notification("notifications/x/y", {"a": 1}),
                    {"jsonrpc": "2.0", "id": 1, "result": {}},
                    {"jsonrpc": "2.0", "id": "z", "error": {"code": 1, "message": "m"}}):
        e = s.post(message)
        eq((e.status, e.response.body), (202, b""), message)


@case
def vendor_notifications_reach_the_child(t):
    """RPC-04 bridging 2.1: a notification the gateway has no rule for is forwarded verbatim."""
    s = t.session()
    pid = s.pid()
    s.notify("notifications/com.example/x", {"n": 1.5, "_meta": {"a/b": 1}})
    s.echo("after")
    found = [m for m in t.daemon.messages(pid) if m["method"] == "notifications/com.example/x"]
    eq([m["params"] for m in found], [{"n": 1.5, "_meta": {"a/b": 1}}])


@case
def malformed_notifications(t):
    """FRONT-POST-02: what cannot be accepted is 4xx."""
    s = t.session()
    eq(s.post('{"jsonrpc":"2.0","method":"notifications/initialized","params":5}').status, 400)
    eq(s.post('{"method":"notifications/initialized"}').status, 400)


@case
def stray_responses_are_dropped(t):
    """FRONT-POST-03 SEC-48: a response that nobody waits for: 202, and nothing at the child."""
    s = t.session("main", mcp.C, {"roots": {}})
    pid = s.pid()
    e = s.start_do(["ask", "q", "roots/list"], ["asked"])
    asked = e.next()
    s.respond(asked["id"], {"roots": [{"uri": "file:///1"}]})
    final = e.rest()[-1]
    ok("file:///1" in final["result"]["content"][0]["text"], "answer", final)
    s.respond(asked["id"], {"roots": [{"uri": "file:///2"}]})
    s.respond(str(asked["id"]), {"roots": []})
    s.respond("q", {"roots": []})
    s.respond(424242, {})
    s.echo("after")
    eq(len([m for m in t.daemon.messages(pid) if "method" not in m]), 1, "responses at the child")


@case
def responses_stay_in_their_session(t):
    """FRONT-POST-04 SEC-48 BACK-SEC-01: one session cannot answer what another was asked."""
    a, b = t.session("main", mcp.C, {"roots": {}}), t.session("main", mcp.C, {"roots": {}})
    e = a.start_do(["ask", 1, "roots/list"], ["asked"])
    asked = e.next()
    b.respond(asked["id"], {"roots": [{"uri": "file:///evil"}]})
    e.nothing(0.4)
    a.respond(asked["id"], {"roots": [{"uri": "file:///good"}]})
    text = e.final()["result"]["content"][0]["text"]
    ok("good" in text and "evil" not in text, "answer", text)


@case
def single_requests_get_one_answer(t):
    """FRONT-POST-05: one object as JSON, or an event stream."""
    s = t.session()
    e = s.start("tools/list")
    eq((len(e.rest()), e.status, e.response.is_json), (1, 200, True))
    e = s.start_do(["progress", 1], ["text", "x"], token=1)
    eq((len(e.rest()), e.status, e.response.is_sse), (2, 200, True))


@case
def batches_in_the_revision_that_has_them(t):
    """FRONT-POST-06: requests in an array are all answered, order free."""
    s = t.session("main", mcp.B)
    batch = [do(1, ["sleep", 0.2], ["text", "one"]), do("2", ["text", "two"]), mcp.request(3, "ping"),
             mcp.notification("notifications/x"), mcp.request(4, "no/such/method")]
    e = s.post(batch)
    eq(e.status, 200)
    eq(sorted(str(m["id"]) for m in e.messages), ["1", "2", "3", "4"])
    eq(texts(e.messages), {1: "one", "2": "two"})
    by_id = {m["id"]: m for m in e.messages}
    eq(by_id[3]["result"], {})
    eq(by_id[4]["error"]["code"], -32601)


@case
def batch_as_json_is_an_array(t):
    """FRONT-POST-06: with a JSON answer the body is an array, also for one request."""
    s = t.session("main", mcp.B)
    for batch in ([mcp.request(1, "ping")], [mcp.request(1, "ping"), mcp.request(2, "tools/list")]):
        conn = t.conn()
        body = mcp.encode(batch)
        response = conn.request("POST", s.path, s.headers(accept="application/json"), body)
        text = response.read()
        eq((response.status, response.is_json), (200, True))
        ok(text.lstrip().startswith(b"["), "array", text)


@case
def batch_as_stream(t):
    """FRONT-POST-06 FRONT-SSE-09: on a stream each response is an event of its own; then it ends."""
    s = t.session("main", mcp.B)
    params = {"name": "do", "arguments": {"steps": [["progress", 1], ["sleep", 0.2], ["text", "a"]]}, "_meta": {"progressToken": "p"}}
    e = s.post([mcp.request(1, "tools/call", params), do(2, ["text", "b"])])
    ok(e.response.is_sse, "content type")
    ok(all(not r.startswith(b"[") for r in e.raw), "array in an event", e.raw)
    eq(texts(e.messages), {1: "a", 2: "b"})
    eq([m["params"]["progressToken"] for m in e.messages if "method" in m], ["p"])


@case
def batch_of_notifications(t):
    """FRONT-POST-06: only notifications, or only responses: 202, empty."""
    s = t.session("main", mcp.B)
    pid = s.pid()
    e = s.post([mcp.notification("notifications/a"), mcp.notification("notifications/b")])
    eq((e.status, e.response.body), (202, b""))
    e = s.post([{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": ""}}])
    eq((e.status, e.response.body), (202, b""))
    s.echo("after")
    seen = [m["method"] for m in t.daemon.messages(pid)]
    eq([m for m in seen if m in ("notifications/a", "notifications/b")], ["notifications/a", "notifications/b"])


@case
def batch_of_responses(t):
    """FRONT-POST-06: several answers to the child's questions in one array."""
    s = t.session("main", mcp.B, {"roots": {}})
    e = s.start_do(["send", "x", "roots/list"], ["send", "y", "roots/list"], ["wait", "x"], ["wait", "y"], ["asked"])
    ids = [e.next()["id"], e.next()["id"]]
    eq(s.post([{"jsonrpc": "2.0", "id": i, "result": {"roots": []}} for i in ids]).status, 202)
    ok("result" in e.final(), "answer")


@case
def batches_are_split_for_the_child(t):
    """BACK-FRAME-02 bridging 2.1.5: the child never sees an array."""
    s = t.session("main", mcp.B)
    pid = s.pid()
    s.post([do(1, ["text", "a"]), do(2, ["text", "b"])])
    ok(all(line.startswith(b"{") for line in t.daemon.record(pid).splitlines()), "lines")


@case
def bad_batches(t):
    """FRONT-POST-07 SEC-46: empty, mixed, nested or too long arrays: 400/-32600, nothing runs."""
    s = t.session("main", mcp.B)
    ping, answer = mcp.request(1, "tools/list"), {"jsonrpc": "2.0", "id": 1, "result": {}}
    with s.untouched():
        for batch in ([], [ping, answer], [[ping]], [ping, 1], [ping] * 65, [ping, {}], [mcp.notification("n/x"), "x"]):
            e = s.post(batch)
            eq((e.status, e.answer["error"]["code"]), (400, -32600), str(batch)[:80])
    eq(s.post([mcp.request(i, "ping") for i in range(64)]).status, 200, "64 elements")


@case
def batches_elsewhere(t):
    """FRONT-POST-08 SEC-46: an array in sessions of other revisions, or before any: 400/-32600."""
    for version in (mcp.C, mcp.D):
        s = t.session("main", version)
        for batch in ([mcp.request(1, "ping")], [mcp.notification("notifications/x")], []):
            e = s.post(batch)
            eq((e.status, e.answer["error"]["code"]), (400, -32600), version)
    sid, s.id = s.id, None
    e = s.post([mcp.request(1, "ping")])
    eq((e.status, e.answer["error"]["code"]), (400, -32600), "before negotiation")
    s.id = sid


@case
def equal_ids_in_flight_in_one_session(t):
    """FRONT-POST-12 SEC-47: two calls with one id are both served, each on its own response."""
    s = t.session()
    a = s.start_do(["sleep", 0.4], ["text", "a"], request_id=5)
    b = s.start_do(["text", "b"], request_id=5)
    eq(b.final()["result"]["content"][0]["text"], "b")
    eq(a.final()["result"]["content"][0]["text"], "a")


@case
def equal_ids_and_tokens_in_two_sessions(t):
    """FRONT-POST-12 SEC-06 bridging 8.1: nothing crosses between sessions with equal ids and tokens."""
    calls = []
    for i in range(4):
        s = t.session()
        calls.append(s.start_do(["progress", i + 1], ["sleep", 0.3], ["progress", i + 2], ["text", "of %d" % i],
                                token=1, request_id=1))
    for i, e in enumerate(calls):
        messages = e.rest()
        eq([m["params"]["progress"] for m in messages[:-1]], [i + 1, i + 2])
        eq(messages[-1]["result"]["content"][0]["text"], "of %d" % i)


@case(deadline=30)
def many_calls_never_cross(t):
    """SEC-06: 8 sessions, equal ids, answers out of order: each answer is checked by content."""
    sessions = [t.session() for _ in range(8)]
    for round_number in range(6):
        calls = []
        for n, s in enumerate(sessions):
            for k in range(4):
                text = "r%d s%d k%d" % (round_number, n, k)
                calls.append((s.start_do(["sleep", 0.01 * ((k * 7 + n) % 5)], ["text", text], request_id=k), k, text))
        for e, k, text in calls:
            answer = e.final()
            eq((answer["id"], answer["result"]["content"][0]["text"]), (k, text))
            e.close()


@case
def unknown_methods(t):
    """requirements §19: an unknown method is 200/-32601 with the id."""
    s = t.session()
    e = s.start("no/such/method", request_id="u")
    answer = e.final()
    eq((e.status, answer["id"], answer["error"]["code"]), (200, "u", -32601))


@case
def large_bodies_pass_both_ways(t):
    """DEF-11: a message near the limit of 4 MiB passes, and so does its answer."""
    s = t.session()
    text = "0123456789abcdef" * (3 << 16)
    eq(s.echo(text), text)
    wait_for(lambda: s.ask("ping").get("result") == {}, 3, "ping")
