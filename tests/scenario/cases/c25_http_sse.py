# SPDX-License-Identifier: Apache-2.0
"""HTTP+SSE, the transport of 2024-11-05: /NAME/sse and /NAME/message. requirements §10."""
import re
import time

from harness import case, child_argv, eq, ok, wait_for
from mcp import A, B, C, D, encode, initialize, notification, request

SERVERS = {"main": {}, "other": {}}
JSON = [("Content-Type", "application/json")]


@case
def begins_with_the_endpoint(t):
    """FRONT-OLD-01: text/event-stream; first event: endpoint, a relative URI of the same origin with an unguessable id."""
    first, second = t.sse(begin=False), t.sse(begin=False)
    for c in (first, second):
        ok(c.response.is_sse, "content type", c.response.headers)
        ok(re.fullmatch(r"/main/message\?sessionId=[A-Za-z0-9_-]{32}", c.uri), "uri", c.uri)
        eq(c.response.header("cache-control"), "no-cache, no-transform")
        eq(c.response.header("mcp-session-id"), None)
    ok(first.uri != second.uri, "two streams, one id", first.uri)


@case
def messages_travel_on_the_stream(t):
    """FRONT-OLD-02: POST is answered 202 with nothing in it; the answers come as events."""
    c = t.sse()
    eq(c.version, A)
    eq(c.do_text(["text", "hello"]), "hello")
    eq(c.ask("ping")["result"], {})
    answer = c.do(["progress", 1], ["progress", 2], ["notify", "notifications/message", {"level": "info", "data": "x"}],
                  ["text", "end"], token="tok")
    eq(answer["result"]["content"][0]["text"], "end")
    eq([m["params"].get("progress", "log") for m in c.seen], [1, 2, "log"])
    eq(c.seen[0]["params"]["progressToken"], "tok")


@case
def many_calls_at_once(t):
    """FRONT-OLD-02 RPC-04: answers to calls in flight together come each once, by their ids, in any order."""
    c = t.sse()
    ids = [c.start_do(["sleep", 0.01 * (20 - i)], ["text", str(i)], request_id="r%d" % i) for i in range(20)]
    for i, request_id in enumerate(ids):
        eq(c.wait_answer(request_id)["result"]["content"][0]["text"], str(i))
    eq(c.seen, [])


@case
def server_asks_and_is_answered(t):
    """FRONT-OLD-02: a request of the server is an event; the client's answer is a POST."""
    c = t.sse(version=C, caps={"elicitation": {}, "roots": {"listChanged": True}})
    call = c.start_do(["ask", "q", "elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}], ["asked"])
    asked = c.next()
    eq(asked["method"], "elicitation/create")
    c.respond(asked["id"], {"action": "accept", "content": {"a": 1}})
    ok("accept" in c.wait_answer(call)["result"]["content"][0]["text"], "the server's view", call)


@case
def news_come_without_a_call(t):
    """FRONT-OLD-02 FRONT-GET-03: list_changed and logs outside calls come on the one stream."""
    c = t.sse()
    c.do(["background", [["sleep", 0.05], ["notify", "notifications/tools/list_changed"]]], ["text", "x"])
    eq(c.next()["method"], "notifications/tools/list_changed")


@case
def refusals_of_posts(t):
    """FRONT-OLD-03: unknown session 404, no session 400, bad JSON 400, not JSON 415, other methods 405."""
    c = t.sse()
    ping = request(1, "ping")
    stranger = c.uri[:-4] + ("AAAA" if c.uri[-4:] != "AAAA" else "BBBB")
    for status, headers, uri, body in (
            (404, JSON, stranger, ping), (404, JSON, c.uri + "x", ping), (404, JSON, c.uri.replace("/main/", "/other/"), ping),
            (400, JSON, "/main/message", ping), (400, JSON, "/main/message?sessionId=", ping),
            (400, JSON, "/main/message?session=" + c.uri[-32:], ping),
            (400, JSON, c.uri, b"{"), (400, JSON, c.uri, b'{"jsonrpc":"2.0"}'), (400, JSON, c.uri, b""),
            (415, [("Content-Type", "text/plain")], c.uri, ping), (415, [], c.uri, ping),
            (415, JSON + [("Content-Encoding", "gzip")], c.uri, ping)):
        eq(c.post(body, headers, uri).status, status, (uri, body))
    for method, path, allow in (("GET", c.uri, "POST"), ("DELETE", c.uri, "POST"), ("POST", "/main/sse", "GET"),
                                ("DELETE", "/main/sse", "GET"), ("PUT", "/main/sse", "GET")):
        response = t.conn().request(method, path, JSON, encode(ping) if method == "POST" else None)
        eq((response.status, response.header("allow")), (405, allow + ", OPTIONS"), (method, path))
    eq(t.conn().request("GET", "/main/sse", [("Accept", "application/json")]).status, 406)
    eq(c.post(ping, uri=c.uri.replace("?", "?a=b&")).status, 202)
    eq(c.next(), {"jsonrpc": "2.0", "id": 1, "result": {}})


@case
def origin_and_host_are_checked(t):
    """FRONT-OLD-01 FRONT-SEC-01: the gate before the MCP endpoint stands before these paths as well."""
    c = t.sse()
    for method, path in (("GET", "/main/sse"), ("POST", c.uri)):
        eq(t.conn().request(method, path, JSON + [("Origin", "https://evil.example")], b"" if method == "POST" else None).status, 403)
    own = "http://localhost:%d" % t.daemon.address[1]
    response = t.conn().request("OPTIONS", "/main/sse", [("Origin", own), ("Access-Control-Request-Method", "GET")])
    eq((response.status, response.header("access-control-allow-methods")), (204, "GET, OPTIONS"))
    other = t.sse(extra=[("Origin", own)])
    eq(other.response.header("access-control-allow-origin"), own)


@case(config={"sessions": {"reconnect_timeout": "0"}})
def closing_ends_everything(t):
    """FRONT-OLD-04: without reconnect_timeout, when the stream closes calls are cancelled, the process ends, the address is unknown."""
    c = t.sse()
    pid = c.pid()
    c.start_do(["wait_cancel"])
    wait_for(lambda: "wait_cancel" in str(t.daemon.messages(pid)), what="the call at the child")
    c.close()
    wait_for(lambda: "notifications/cancelled" in str(t.daemon.messages(pid)), what="the cancellation")
    wait_for(lambda: pid not in t.daemon.children(), what="the end of the process")
    eq(t.sse(begin=False).post(request(1, "ping"), uri=c.uri).status, 404)


@case
def closing_during_initialize(t):
    """FRONT-OLD-04: a stream that closes while its server starts leaves nothing behind."""
    daemon = t.start({"main": {"script": {"init": [["sleep", 30]]}}})
    c = t.sse(daemon=daemon, begin=False)
    c.start("initialize", initialize(A)["params"])
    wait_for(lambda: daemon.children(), what="the process")
    c.close()
    wait_for(lambda: not daemon.children(), timeout=9, what="the end of the process")


@case
def any_revision_may_be_negotiated(t):
    """FRONT-OLD-05: each legacy revision works here; arrays only where the revision has them."""
    for version in (A, B, C, D):
        c = t.sse(version=version)
        eq(c.version, version)
        eq(c.do_text(["text", version]), version)
        batch = [request(1, "ping"), notification("notifications/roots/list_changed"), request(2, "ping")]
        eq(c.post(batch).status, 202 if version == B else 400, version)
        if version == B:
            eq([c.next()["id"], c.next()["id"]], [1, 2])
    c = t.sse(begin=False)
    eq(c.post([request(1, "ping")]).status, 400)


@case
def modern_requests_fall_back(t):
    """FRONT-OLD-06: a request of the newest revision is answered with -32601, before and after initialize."""
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientCapabilities": {}}}
    c = t.sse(begin=False)
    eq(c.ask("server/discover", meta)["error"]["code"], -32601)
    c.result = c.ask("initialize", initialize(A)["params"])
    eq(c.result["result"]["protocolVersion"], A)
    eq(c.ask("tools/list", meta)["error"]["code"], -32601)
    ok("tools" in c.ask("tools/list")["result"], "still works", c.seen)


@case(config={"streams": {"keepalive": "300ms"}})
def comments_keep_it_alive(t):
    """FRONT-OLD-07: comments while nothing happens, before and after initialize."""
    c = t.sse(begin=False)
    for _ in range(2):
        before = c.reader.comments
        end = time.monotonic() + 1
        try:
            c.reader.next(1)
        except TimeoutError:
            pass
        ok(c.reader.comments - before >= 2, "comments", c.reader.comments - before)
        ok(time.monotonic() >= end - 0.1, "an event came", None)
        if before == 0:
            c.ask("initialize", initialize(A)["params"])


@case
def kept_apart_from_the_mcp_endpoint(t):
    """FRONT-OLD-08: GET on the MCP endpoint sends no endpoint event; sessions of one are unknown to the other."""
    s, c = t.session(), t.sse()
    eq(t.conn().request("GET", "/main/mcp", [("Accept", "text/event-stream")]).status, 400)
    eq(c.post(request(1, "ping"), uri="/main/message?sessionId=" + s.id).status, 404)
    response = t.conn().request("POST", "/main/mcp", JSON + [("Mcp-Session-Id", c.uri[-32:])], encode(request(1, "ping")))
    eq(response.status, 404)


@case(own=True, config={"sessions": {"reconnect_timeout": "0s"}})
def order_of_messages_is_enforced(t):
    """FRONT-INIT-01 FRONT-OLD-02: what comes before initialize, a second one, an incomplete one: errors as events."""
    c = t.sse(begin=False)
    eq(c.ask("tools/list")["error"]["code"], -32600)
    c.notify("notifications/initialized")
    eq(c.ask("initialize", {"protocolVersion": A})["error"]["code"], -32602)
    eq(c.ask("initialize", initialize(A)["params"])["result"]["protocolVersion"], A)
    eq(c.ask("initialize", initialize(A)["params"])["error"]["code"], -32600)
    eq(c.do_text(["text", "x"]), "x")


@case
def failures_are_events(t):
    """bridging §4: a server that cannot start, and one that dies in a call, are told as -32603 events."""
    daemon = t.start({"bad": {"command": "/nonexistent/program"}, "main": {}})
    c = t.sse("bad", daemon=daemon, begin=False)
    error = c.ask("initialize", initialize(A)["params"])["error"]
    eq((error["code"], error["data"]["reason"]), (-32603, "backend_unavailable"))
    c = t.sse(daemon=daemon)
    error = c.do(["exit", 3])["error"]
    eq((error["code"], error["data"]["reason"]), (-32603, "child_exited"))
    eq(c.do_text(["text", "on"]), "on")


@case
def cancelled_calls_get_no_answer(t):
    """CXL-02 FRONT-OLD-02: after notifications/cancelled nothing comes for that call; others go on."""
    c = t.sse()
    call = c.start_do(["wait_cancel"], ["text", "too late"])
    c.notify("notifications/cancelled", {"requestId": call})
    eq(c.do_text(["text", "next"]), "next")
    eq(c.seen, [])


@case(own=True)
def drain_lets_calls_finish(t):
    """bridging §4: at SIGTERM calls in flight are answered on the stream, new ones refused there; then it ends."""
    newcomer = t.sse(begin=False)
    c = t.sse()
    call = c.start_do(["sleep", 1], ["text", "done"])
    body = encode(request("new", "tools/list"))
    conn = t.conn()
    conn.send(conn.head("POST", c.uri, JSON, len(body)) + body[:1])
    c.do(["text", "x"])
    t.daemon.term()
    t.daemon.wait_log("drain")
    conn.send(body[1:])
    eq(conn.response().status, 202)
    eq(c.wait_answer("new")["error"]["data"]["reason"], "draining")
    eq(newcomer.next(), None)
    eq(c.wait_answer(call)["result"]["content"][0]["text"], "done")
    eq(c.next(), None)


@case(own=True, config={"drain_timeout": "500ms"})
def drain_tells_what_did_not_finish(t):
    """bridging §4: what does not finish within drain_timeout is answered -32603 draining before the stream ends."""
    c = t.sse()
    call = c.start_do(["sleep", 20], ["text", "never"])
    c.do(["text", "x"])
    t.daemon.term()
    eq(c.wait_answer(call)["error"]["data"]["reason"], "draining")
    eq(c.next(), None)


@case(config={"sessions": {"max_age": "1s"}})
def an_old_session_ends_with_its_stream(t):
    """FRONT-SESS-08: sessions.max_age ends the stream; calls in flight get an error first."""
    c = t.sse()
    call = c.start_do(["sleep", 20], ["text", "never"])
    eq(c.wait_answer(call)["error"]["code"], -32603)
    eq(c.next(), None)


@case
def many_calls_are_bounded(t):
    """FRONT-OLD-02: requests are taken up to a bound, then refused as overloaded; none is lost."""
    c = t.sse()
    c.conn.sock.settimeout(8)
    conn = t.conn()
    for i in range(1100):
        response = conn.request("POST", c.uri, JSON, encode(request(i + 1000, "tools/call", c_params())))
        response.read()
        eq(response.status, 202)
    errors = [c.next() for _ in range(76)]
    ok(all(m["error"]["data"]["reason"] == "overloaded" for m in errors), "errors", errors[:1])


def c_params():
    return {"name": "do", "arguments": {"steps": [["wait_cancel"]]}}


@case
def one_command_form_has_the_addresses(t):
    """product §3: without a file the addresses are /mcp, /sse and /message."""
    c = t.sse(daemon=t.start(args=["--listen", "127.0.0.1:0", "--"] + child_argv({})), path="/sse")
    ok(c.uri.startswith("/message?sessionId="), "uri", c.uri)
    eq(c.do_text(["text", "x"]), "x")
