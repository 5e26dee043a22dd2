# SPDX-License-Identifier: Apache-2.0
"""initialize on both sides, and the version header. requirements §4, §5, §18."""
import json
import time

import mcp
from harness import case, eq, ok, wait_for, within

ERROR = [["error", -32000, "not today", {"why": 1}]]
SERVERS = {
    "main": {},
    "bare": {"caps": {"tools": {}}},
    "old": {"version": "2024-11-05"}, "b": {"version": "2025-03-26"}, "c": {"version": "2025-06-18"},
    "new": {"version": "2025-11-25"}, "unknown": {"version": "1999-01-01"}, "modern": {"version": "2026-07-28"},
    "refuses": {"init": ERROR},
    "silent": {"script": {"init": []}, "start": {"timeout": "1s"}},
    "malformed": {"init": [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"capabilities":{}}}']]},
    "eager": {"initialized": [["ask", "r", "roots/list"], ["send", 5, "ping"]]},
    "hasty": {"init": [["answer"], ["send", "h", "roots/list"]]},
}
JSON = ("Content-Type", "application/json")


def initialize(t, server, params=None, headers=(), body=None):
    body = body or mcp.encode(mcp.request(0, "initialize", params))
    conn = t.conn()
    fields = [JSON, ("Accept", mcp.BOTH)] + list(headers)
    conn.send(conn.head("POST", "/%s/mcp" % server, fields, len(body)) + body)
    e = mcp.Exchange(conn)
    e.answer = e.final()
    t.will_end(e, "/%s/mcp" % server)
    return e


def params(version=mcp.C, **caps):
    return {"protocolVersion": version, "capabilities": caps, "clientInfo": {"name": "n", "version": "1"}}


@case
def supported_versions_are_kept(t):
    """FRONT-INIT-01: a supported version is the one in the result, whatever the child answers."""
    for server in ("main", "old", "b", "c", "new"):
        for version in mcp.ALL:
            s = t.session(server, version)
            eq(s.result["result"]["protocolVersion"], version, server)


@case
def unsupported_versions_get_the_newest(t):
    """FRONT-INIT-01: anything else gets 2025-11-25, never a version of the modern era."""
    for version in ("1999-01-01", "2026-07-28", "2099-01-01", "", "DRAFT-2025-v3"):
        s = t.session("main", version)
        eq(s.result["result"]["protocolVersion"], "2025-11-25", version)
        s.echo("x")


@case
def missing_params_are_32602(t):
    """FRONT-INIT-02: missing or wrong required members: 200/-32602, no session, no process."""
    before = t.daemon.started("main")
    good = params()
    variants = [{k: v for k, v in good.items() if k != missing} for missing in good]
    variants += [dict(good, protocolVersion=5), dict(good, capabilities=[1]), dict(good, capabilities=5), dict(good, clientInfo="x"), {}]
    for variant in variants:
        e = initialize(t, "main", variant)
        eq(e.status, 200, variant)
        eq(e.answer["error"]["code"], -32602, variant)
        eq(e.answer["id"], 0)
        eq(e.response.header("mcp-session-id"), None, "session id")
    eq(t.daemon.started("main"), before, "processes")


@case
def initialize_in_a_batch(t):
    """FRONT-INIT-03: initialize inside an array is 400/-32600."""
    one = mcp.initialize(mcp.B)
    for body in ([one], [one, mcp.notification("notifications/initialized")]):
        e = initialize(t, "main", body=mcp.encode(body))
        eq((e.status, e.answer["error"]["code"]), (400, -32600))
        eq(e.response.header("mcp-session-id"), None)
    s = t.session("main", mcp.B)
    e = s.post([one, mcp.request(2, "ping")])
    eq((e.status, e.answer["error"]["code"]), (400, -32600), "in a session")


@case
def initialize_is_answered_with_json(t):
    """FRONT-INIT-04: one application/json body, also when the child is slow and notifies first."""
    d = t.start({"slow": {"init": [["notify", "notifications/message", {"level": "info", "data": 1}],
                                   ["sleep", 1.5], ["answer"]]}})
    s = t.session("slow", daemon=d)
    ok(s.started.response.is_json, "content type", s.started.response.headers)
    s = t.session("main")
    ok(s.started.response.is_json, "content type", s.started.response.headers)
    e = initialize(t, "main", params(), [("Accept", "application/json")])
    eq(e.status, 200, "JSON-only client")


@case
def session_header_on_initialize_is_ignored(t):
    """FRONT-INIT-05: stale, foreign or live ids on initialize give a new session."""
    s = t.session("main")
    for value in (s.id, "no-such-session", "!"):
        e = initialize(t, "main", params(), [("Mcp-Session-Id", value)])
        eq(e.status, 200, value)
        fresh = e.response.header("mcp-session-id")
        ok(fresh and fresh != s.id, "id", fresh)
    eq(s.ask("ping")["result"], {}, "the old session")


@case
def capabilities_are_those_of_the_child(t):
    """FRONT-INIT-06 BACK-INIT-03: nothing is invented, nothing of the child's is lost."""
    s = t.session("bare")
    eq(s.result["result"]["capabilities"], {"tools": {}})
    s = t.session("main")
    caps = s.result["result"]["capabilities"]
    for name in ("tools", "resources", "prompts", "logging", "completions"):
        ok(name in caps, "capability", name, caps)
    eq(caps["resources"], {"subscribe": True, "listChanged": True})


@case
def the_child_hears_the_client(t):
    """BACK-INIT-03 bridging 2.1: capabilities and clientInfo of the client reach the child verbatim."""
    caps = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}, "experimental": {"x/y": {"z": 1}}}
    info = {"name": "a client", "version": "7", "title": "T\u00e9"}
    s = t.session("main", mcp.C, caps, info=info)
    first = t.daemon.messages(s.pid())[0]
    eq(first["params"]["capabilities"], caps)
    eq(first["params"]["clientInfo"], info)
    eq(first["params"]["protocolVersion"], mcp.C)


@case
def handshake_at_the_child(t):
    """BACK-INIT-01: initialize first and alone, then initialized once, then the rest."""
    s = t.session("main", initialized=False)
    s.notify("notifications/initialized")
    s.notify("notifications/initialized")
    pid = s.pid()
    methods = [m["method"] for m in t.daemon.messages(pid)]
    eq(methods[:2], ["initialize", "notifications/initialized"])
    eq(methods.count("notifications/initialized"), 1, "initialized")
    eq(methods.count("initialize"), 1, "initialize")


@case
def version_asked_of_the_child(t):
    """BACK-INIT-02: the child is asked for the session's version."""
    for version in mcp.ALL:
        s = t.session("main", version)
        eq(t.daemon.messages(s.pid())[0]["params"]["protocolVersion"], version)


@case
def unknown_version_from_the_child(t):
    """BACK-INIT-02: a child that answers an unknown revision is an error, and ends."""
    e = initialize(t, "unknown", params())
    eq(e.status, 503)
    eq((e.answer["error"]["code"], e.answer["error"]["data"]["reason"]), (-32603, "backend_unavailable"))
    wait_for(lambda: not t.daemon.children("unknown"), 5, "end of the child")


@case
def error_of_the_child_on_initialize(t):
    """bridging 2.1: a child's error to initialize is the client's error; no session, child stopped."""
    e = initialize(t, "refuses", params())
    eq(e.status, 200)
    eq(e.answer, {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "not today", "data": {"why": 1}}})
    eq(e.response.header("mcp-session-id"), None)
    wait_for(lambda: not t.daemon.children("refuses"), 5, "end of the child")
    t.daemon.wait_log("child_failed", "server=refuses", "not today")


@case
def silent_child_meets_the_handshake_timeout(t):
    """BACK-INIT-04 REL-29: no answer to initialize within start.timeout: 503 backend_unavailable."""
    started = time.monotonic()
    e = initialize(t, "silent", params())
    eq(e.status, 503)
    eq((e.answer["error"]["code"], e.answer["error"]["data"]["reason"]), (-32603, "backend_unavailable"))
    ok(time.monotonic() - started > 0.8, "too early")
    within(started, 5)
    ok(e.response.header("retry-after"), "Retry-After", e.response.headers)
    wait_for(lambda: not t.daemon.children("silent"), 5, "end of the child")


SLOW = {"slow": {"init": [["sleep", 1], ["answer"]]}, "late": {"init": [["sleep", 1], *ERROR]}}


@case(servers=SLOW, config={"streams": {"keepalive": "200ms"}}, own=True)
def slow_start_keeps_the_connection_alive(t):
    """FRONT-INIT-04: initialize that waits for a start gets comments, and the session's id before its answer; who takes JSON only does not."""
    for version in mcp.ALL:
        s = t.session("slow", version, check=False)
        s.started.wait_head(5)
        s.started.resumed = True  # no priming event is asked for
        s.id = s.started.response.header("mcp-session-id")
        ok(s.started.response.is_sse and s.id, "a stream", s.started.response.headers)
        eq(s.ask("tools/list", version_header=False).get("error", {}).get("code"), -32001, "it is not there before the result is")
        s.result = s.started.final(5)
        eq(s.started.primings, [], "events before the result")
        ok(s.started.reader.comments >= 2, "comments", s.started.reader.comments)
        eq(s.result["result"]["protocolVersion"], version)
        s.take_id()
        s.notify("notifications/initialized")
        eq(s.echo("x"), "x", version)
    begun = time.monotonic()
    conn = t.conn()
    body = mcp.encode(mcp.request(0, "initialize", params()))
    conn.send(conn.head("POST", "/slow/mcp", [JSON, ("Accept", "application/json")], len(body)) + body)
    e = mcp.Exchange(conn)
    eq((e.final()["result"]["protocolVersion"], e.status, e.response.is_sse), (mcp.C, 200, False))
    t.will_end(e, "/slow/mcp")
    ok(time.monotonic() - begun > 0.8, "it waited")


@case(servers=SLOW, config={"streams": {"keepalive": "200ms"}}, own=True)
def slow_start_that_fails(t):
    """FRONT-INIT-04 FRONT-SESS-04: what goes wrong after the head is told in the stream, and the id in it belongs to nothing."""
    e = initialize(t, "late", params())
    eq((e.status, e.response.is_sse), (200, True))
    eq(e.answer["error"]["code"], -32000, e.answer)
    session = e.response.header("mcp-session-id")
    body = mcp.encode(mcp.request(1, "tools/list"))
    conn = t.conn()
    eq(conn.request("POST", "/late/mcp", [JSON, ("Accept", mcp.BOTH), ("Mcp-Session-Id", session)], body).status, 404)
    left = t.session("slow", check=False)
    left.started.wait_head(5)
    left.started.conn.close()
    pid = wait_for(lambda: t.daemon.children("slow"), 5, "its process")[0]
    wait_for(lambda: pid not in t.daemon.children("slow"), 5, "the end of the process of a client who left")


@case
def malformed_result_of_the_child(t):
    """REL-23 BACK-INIT-02: a result of initialize without a version is an error of the backend."""
    e = initialize(t, "malformed", params())
    eq(e.status, 503)
    eq(e.answer["error"]["data"]["reason"], "backend_unavailable")


@case
def no_requests_before_initialized(t):
    """FRONT-INIT-07: requests of the child wait until the client has said initialized."""
    s = t.session("hasty", mcp.C, {"roots": {}}, initialized=False)
    g = s.get()
    g.nothing(0.7)
    s.notify("notifications/initialized")
    message = g.next()
    eq(message["method"], "roots/list")
    s.respond(message["id"], {"roots": []})


@case
def clients_that_never_say_initialized(t):
    """FRONT-INIT-08: their requests are served all the same."""
    s = t.session("main", initialized=False)
    eq(s.echo("x"), "x")
    eq(len(s.ask("tools/list")["result"]["tools"]), 2)


@case
def child_requests_at_once_after_initialized(t):
    """FRONT-GET-02 BACK-MSG-07: roots/list right after initialized goes to the standalone stream."""
    s = t.session("eager", mcp.C, {"roots": {}})
    g = s.get()
    message = g.next()
    eq(message["method"], "roots/list")
    s.respond(message["id"], {"roots": [{"uri": "file:///x"}]})
    pid = s.pid()
    wait_for(lambda: any(m.get("id") == 5 for m in t.daemon.messages(pid) if "method" not in m), 3, "pong")
    answers = {m["id"]: m for m in t.daemon.messages(pid) if "method" not in m}
    eq(answers["r"]["result"], {"roots": [{"uri": "file:///x"}]})
    eq(answers[5], {"jsonrpc": "2.0", "id": 5, "result": {}})


@case
def initialize_cannot_be_cancelled(t):
    """FRONT-INIT-09 CXL-03: a cancel that names initialize is ignored."""
    d = t.start({"slow": {"init": [["sleep", 0.8], ["answer"]]}})
    e = t.session("slow", daemon=d, check=False).started
    conn = t.conn(address=d.address)
    body = mcp.encode(mcp.notification("notifications/cancelled", {"requestId": 0}))
    conn.request("POST", "/slow/mcp", [JSON, ("Accept", mcp.BOTH)], body).read()
    eq(conn.last.status, 400, "cancel without session")
    answer = e.final()
    ok("result" in answer, "answer", answer)
    sid = e.response.header("mcp-session-id")
    t.will_end(e, "/slow/mcp", d)
    conn = t.conn(address=d.address)
    conn.request("POST", "/slow/mcp", [JSON, ("Accept", mcp.BOTH), ("Mcp-Session-Id", sid)], body).read()
    eq(conn.last.status, 202, "cancel in the session")
    pid = d.children("slow")[0]
    ok(b"cancelled" not in d.record(pid), "cancel at the child", d.record(pid))


@case
def second_initialize_reaches_no_child(t):
    """FRONT-INIT-05 BACK-INIT-01: a child gets one initialize in its life."""
    s = t.session("main")
    pid = s.pid()
    initialize(t, "main", params(), [("Mcp-Session-Id", s.id)])
    s.echo("x")
    eq([m["method"] for m in t.daemon.messages(pid)].count("initialize"), 1)


@case
def feature_not_negotiated_is_not_used(t):
    """FRONT-INIT-10 UTIL-ROOT-02: a child that asks for what the client lacks is refused itself."""
    s = t.session("main")
    answers = json.loads(s.do_text(["ask", "a", "sampling/createMessage", {"messages": [], "maxTokens": 1}],
                                   ["ask", "b", "roots/list"], ["ask", "c", "elicitation/create", {"message": "?"}],
                                   ["asked"]))
    eq([a["error"]["code"] for a in answers], [-32601, -32601, -32601])


# ---- version header ---------------------------------------------------------

def ping(t, s, value, method="POST"):
    fields = [(k, v) for k, v in s.headers(version_header=False)]
    if value is not None:
        fields.append(("MCP-Protocol-Version", value))
    if method == "GET":
        fields = [(k, v) for k, v in fields if k != "Content-Type"]
    body = mcp.encode(mcp.request(3, "ping")) if method == "POST" else None
    return t.conn().request(method, s.path, fields, body)


@case
def any_supported_header_is_fine(t):
    """FRONT-VER-01 FRONT-VER-04: another supported version is no error; behaviour is as negotiated."""
    for negotiated in mcp.ALL:
        s = t.session("main", negotiated)
        for value in mcp.ALL:
            eq(ping(t, s, value).status, 200, "POST %s in %s" % (value, negotiated))
            eq(ping(t, s, value, "GET").status, 200, "GET %s in %s" % (value, negotiated))
    s = t.session("main", mcp.C)
    e = s.post([mcp.request(1, "ping")], extra=[("MCP-Protocol-Version", mcp.B)])
    eq(e.status, 400, "batch with the header of B in a session of C")


@case
def unknown_header_is_32022(t):
    """FRONT-VER-02: unknown or malformed values are 400/-32022 with supported and requested."""
    s = t.session("main")
    for method in ("POST", "GET", "DELETE"):
        for value in ("1999-01-01", "2025-06-19", "v1", "2025-06-18x", "2024"):
            response = ping(t, s, value, method)
            error = json.loads(response.read())["error"]
            eq((response.status, error["code"]), (400, -32022), "%s %s" % (method, value))
            eq(error["data"]["requested"], value)
            supported = error["data"]["supported"]
            ok(set(mcp.ALL) <= set(supported), "supported", supported)
    eq(s.ask("ping")["result"], {})
