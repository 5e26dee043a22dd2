# SPDX-License-Identifier: Apache-2.0
"""The HTTP surface: methods, media types, header rules, Origin and Host. requirements §1, §2."""
import json

import mcp
from harness import case, eq, ok, wait_for

SERVERS = {"main": {}}
CONFIG = {"streams": {"keepalive": "400ms"}, "origins": ["https://app.example.com"]}
JSON = ("Content-Type", "application/json")
PING = mcp.encode(mcp.request(7, "ping"))


def error(response, status, code, request_id=None):
    """Asserts a JSON-RPC error body; id None means that there is no id member."""
    body = response.read()
    eq(response.status, status, "status (%r)" % body[:300])
    ok(response.is_json, "content type", response.headers)
    message = json.loads(body)
    eq(message.get("jsonrpc"), "2.0", "jsonrpc")
    eq(message["error"]["code"], code, "code")
    ok(isinstance(message["error"]["message"], str) and message["error"]["message"], "message", message)
    if request_id is None:
        ok("id" not in message, "id where none was readable", message)
    else:
        eq(message.get("id"), request_id, "id")
    return message["error"]


def post(t, s, body, headers=None, **kw):
    fields = s.headers(headers or (), **kw)
    return t.conn().request("POST", s.path, fields, body)


@case
def other_methods_get_405(t):
    """FRONT-HTTP-01: PUT, PATCH on the endpoint are 405 with Allow."""
    for method in ("PUT", "PATCH"):
        response = t.conn().request(method, "/main/mcp", [JSON], b"{}")
        response.read()
        eq(response.status, 405, method)
        allow = sorted(x.strip() for x in response.header("allow").split(","))
        eq([x for x in allow if x not in ("OPTIONS", "HEAD")], ["DELETE", "GET", "POST"], "Allow")


@case
def unknown_method_never_runs(t):
    """SEC-22: TRACE, CONNECT and invented methods are refused."""
    for method in ("TRACE", "BREW", "post"):
        response = t.conn().request(method, "/main/mcp", [JSON], b"{}")
        response.read()
        ok(response.status in (405, 501), method, response.status)


@case
def unknown_path_is_404_json(t):
    """product §3: a path that nobody serves is 404 with a JSON body."""
    for path in ("/", "/mcp", "/main", "/main/mcp//", "/main/MCP", "/Main/mcp", "//main/mcp", "/main/../main/mcp"):
        response = t.conn().request("POST", path, [JSON], PING)
        body = response.read()
        eq(response.status, 404, path)
        ok(response.is_json and isinstance(json.loads(body), dict), "body", body)


@case
def accept_is_read_tolerantly(t):
    """FRONT-HTTP-03: missing, */*, wildcards, case and spaces are accepted; both orders work."""
    s = t.session()
    for accept in (None, "*/*", "text/event-stream, application/json", "APPLICATION/JSON ,Text/Event-Stream",
                   "application/*, text/*", "application/json;q=0.9, text/event-stream;q=0.1"):
        response = post(t, s, PING, accept=accept)
        response.read()
        eq(response.status, 200, "Accept: %s" % accept)


@case
def accept_of_neither_type_is_406(t):
    """FRONT-HTTP-03: neither type acceptable is 406, and nothing reaches the child."""
    s = t.session()
    with s.untouched():
        for accept in ("text/html", "image/*", "application/json;q=0, text/event-stream;q=0"):
            response = post(t, s, mcp.encode(mcp.request(1, "tools/list")), accept=accept)
            response.read()
            eq(response.status, 406, accept)


@case
def accept_json_only_gets_json(t):
    """FRONT-HTTP-03: a JSON-only exchange gets one object and no notifications."""
    s = t.session()
    e = s.start_do(["progress", 1], ["progress", 2], ["sleep", 1.3], ["text", "x"], token="a",
                   accept="application/json")
    messages = e.rest()
    ok(e.response.is_json, "content type", e.response.headers)
    eq(len(messages), 1, "messages")
    eq(messages[0]["id"], e.id)


@case
def accept_json_only_is_asked_nothing(t):
    """FRONT-HTTP-03: no server request travels on a JSON-only exchange; the call still ends."""
    s = t.session("main", mcp.C, {"roots": {}})
    g = s.get()
    e = s.start_do(["ask", "q", "roots/list"], ["asked"], accept="application/json")
    asked = g.next()
    eq(asked["method"], "roots/list", "on the standalone stream")
    s.respond(asked["id"], {"roots": []})
    eq(len(e.rest()), 1)
    ok(e.response.is_json, "content type")


@case
def accept_sse_only_gets_a_stream(t):
    """FRONT-HTTP-03: only text/event-stream accepted: the answer comes as an event."""
    s = t.session()
    e = s.start("tools/list", accept="text/event-stream")
    eq(e.rest()[-1]["id"], e.id)
    ok(e.response.is_sse, "content type", e.response.headers)


@case
def get_must_accept_event_stream(t):
    """FRONT-HTTP-05: GET without text/event-stream in Accept is 406."""
    s = t.session()
    for accept in ("application/json", "text/plain"):
        response = t.conn().request("GET", s.path, s.headers(accept=accept, content=False))
        response.read()
        eq(response.status, 406, accept)
    for accept in ("text/event-stream", "*/*", "text/*"):
        response = t.conn().request("GET", s.path, s.headers(accept=accept, content=False))
        eq((response.status, response.is_sse), (200, True), accept)


@case
def content_type_must_be_json(t):
    """FRONT-HTTP-06 SEC-02: all but application/json is 415, the CORS-safelisted types above all."""
    s = t.session()
    for value in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                  "application/jsonx", "text/json", "application/json; charset=iso-8859-1", "json", ""):
        response = post(t, s, PING, [("Content-Type", value)])
        response.read()
        eq(response.status, 415, value)
    response = post(t, s, PING, content=False)
    response.read()
    eq(response.status, 415, "no Content-Type")


@case
def content_type_parameters_are_fine(t):
    """FRONT-HTTP-06 SEC-02: application/json with parameters, in any case."""
    s = t.session()
    for value in ("application/json; charset=utf-8", "Application/JSON;charset=UTF-8", 'application/json; charset="utf-8"',
                  "application/json; v=1"):
        response = post(t, s, PING, [("Content-Type", value)])
        response.read()
        eq(response.status, 200, value)


@case
def header_names_in_any_case(t):
    """FRONT-HTTP-07: names in any case, spaces around values stripped; values are exact."""
    s = t.session()
    sid, s.id = s.id, None
    for name in ("mcp-session-id", "MCP-SESSION-ID", "Mcp-Session-Id"):
        response = post(t, s, PING, [(name, "  %s \t" % sid), ("mcp-protocol-VERSION", " 2025-06-18 ")],
                        version_header=False)
        response.read()
        eq(response.status, 200, name)
    response = post(t, s, PING, [("Mcp-Session-Id", sid.swapcase())])
    response.read()
    eq(response.status, 404, "id in other case")
    s.id = sid


@case
def repeated_single_headers_are_400(t):
    """FRONT-HTTP-08 SEC-30: a single-value header that occurs twice is 400, equal values too."""
    s = t.session()
    base = s.headers()
    for name, first, second in (("Mcp-Session-Id", s.id, s.id), ("Mcp-Session-Id", s.id, "x"),
                                ("MCP-Protocol-Version", "2025-06-18", "2025-06-18"),
                                ("Origin", "https://app.example.com", "https://app.example.com"),
                                ("Authorization", "Bearer a", "Bearer b"), ("Last-Event-ID", "1", "1"),
                                ("Content-Type", "application/json", "text/plain")):
        fields = [(k, v) for k, v in base if k.lower() != name.lower()] + [(name, first), (name.lower(), second)]
        response = t.conn().request("POST", s.path, fields, PING)
        response.read()
        ok(response.status == 400 or (name == "Origin" and response.status == 403), name, response.status)


@case(config={"limits": {"message": "8KiB", "header_bytes": "4KiB"}})
def sizes_over_the_limit(t):
    """FRONT-HTTP-09 DEF-11: body over the limit 413, head over it 431, nothing reaches the child."""
    s = t.session()
    with s.untouched():
        big = mcp.encode(mcp.request(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 9000}}))
        response = post(t, s, big)
        response.read()
        eq(response.status, 413, "body")
        response = post(t, s, PING, [("X-Padding", "y" * 5000)])
        response.read()
        eq(response.status, 431, "head")
    eq(s.ask("ping")["result"], {})


@case
def chunked_body_over_the_limit(t):
    """FRONT-HTTP-09 SEC-29: chunked bytes are counted while they come."""
    s = t.session()
    conn = t.conn()
    conn.send(conn.head("POST", s.path, s.headers() + [("Transfer-Encoding", "chunked")]))
    piece = b"10000\r\n" + b"[" * 65536 + b"\r\n"
    try:
        for _ in range(80):
            conn.send(piece)
    except OSError:
        pass
    response = conn.response()
    response.read()
    eq(response.status, 413)


@case
def nesting_over_the_limit(t):
    """FRONT-HTTP-09 DEF-11: JSON nested deeper than 128 is 400/-32600; the child sees nothing."""
    s = t.session()
    with s.untouched():
        for depth in (129, 5000, 200000):
            body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":%s1%s}}' % ("[" * depth, "]" * depth)
            response = post(t, s, body)
            response.read()
            eq(response.status, 400, depth)
            eq(json.loads(response.body)["error"]["code"], -32600, depth)
    fine = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%s1%s}}' % ("[" * 100, "]" * 100)
    response = post(t, s, fine)
    response.read()
    eq(response.status, 200, "depth 102")


@case
def bodies_that_are_not_json(t):
    """FRONT-HTTP-10: not JSON or not UTF-8 is 400/-32700 without id."""
    s = t.session()
    for body in (b"", b"{", b"nope", b'{"jsonrpc":"2.0","id":1,"method":"ping"', b'{"a":\xff}', b"{'a':1}",
                 b'{"jsonrpc":"2.0","id":1,"method":"ping"}}', b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
                 b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"id":1,"x":"\xc0\x80"}',
                 b'{"id":1,"x":"\xed\xa0\x80"}', b'{"id":NaN}', b'{"id":01}', b'{"a":"\x01"}', b"[1,]"):
        error(post(t, s, body), 400, -32700)


@case
def json_that_is_no_message(t):
    """FRONT-HTTP-10: JSON that is not JSON-RPC is 400/-32600; a readable id is echoed."""
    s = t.session()
    for body, request_id in (('{}', None), ('1', None), ('"x"', None), ('null', None), ('true', None),
                             ('{"id":5,"method":"ping"}', 5), ('{"jsonrpc":"1.0","id":"a","method":"ping"}', "a"),
                             ('{"jsonrpc":"2.0","id":5}', 5), ('{"jsonrpc":"2.0","method":5,"id":6}', 6),
                             ('{"jsonrpc":"2.0","id":7,"method":"ping","params":3}', 7),
                             ('{"jsonrpc":"2.0","id":8,"result":{},"error":{"code":1,"message":""}}', 8)):
        error(post(t, s, body), 400, -32600, request_id)


@case
def duplicate_members_are_refused(t):
    """FRONT-HTTP-11 SEC-11 SEC-40: a repeated name in envelope, params or _meta is 400/-32600."""
    s = t.session()
    with s.untouched():
        for body in ('{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
                     '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"tools/list"}',
                     '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}',
                     '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
                     '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1,"x":2}}}',
                     '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","na\\u006de":"b"}}',
                     '{"jsonrpc":"2.0","id":1,"method":"ping","meth\\u006fd":"tools/list"}'):
            response = post(t, s, body)
            response.read()
            eq(response.status, 400, body)
            eq(json.loads(response.body)["error"]["code"], -32600, body)


@case
def event_stream_headers(t):
    """FRONT-HTTP-12: headers of every event stream; the head is flushed before any event."""
    s = t.session()
    for e in (s.get(), s.start_do(["progress", 1], ["text", "x"], token=1)):
        ok(e.response.is_sse, "content type", e.response.headers)
        cache = [x.strip() for x in e.response.header("cache-control").split(",")]
        ok("no-cache" in cache and "no-transform" in cache, "Cache-Control", cache)
        eq(e.response.header("x-accel-buffering"), "no")
        eq(e.response.header("content-encoding"), None)


@case
def streams_are_kept_alive(t):
    """FRONT-HTTP-13 REL-06: comment lines on every open stream at the configured interval."""
    s = t.session()
    g = s.get()
    e = s.start_do(["progress", 1], ["sleep", 2.2], ["text", "x"], token=1)
    e.rest()
    ok(e.reader.comments >= 2, "comments on the POST stream", e.reader.comments)
    try:
        g.next(0.5)
    except TimeoutError:
        pass
    ok(g.reader.comments >= 3, "comments on the GET stream", g.reader.comments)


@case
def cors_for_an_allowed_origin(t):
    """FRONT-HTTP-14: preflight answered, session id exposed, MCP headers allowed."""
    origin = ("Origin", "https://app.example.com")
    response = t.conn().request("OPTIONS", "/main/mcp", [
        origin, ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type,mcp-param-region , x-other,mcp-session-id, mcp-protocol-version, last-event-id, Mcp-Param-Zone")])
    response.read()
    ok(response.status in (200, 204), "status", response.status)
    eq(response.header("access-control-allow-origin"), "https://app.example.com")
    methods = response.header("access-control-allow-methods")
    ok(all(m in methods for m in ("POST", "GET", "DELETE")), "methods", methods)
    allowed = response.header("access-control-allow-headers").lower()
    for name in ("mcp-session-id", "mcp-protocol-version", "content-type", "last-event-id", "mcp-param-region", "mcp-param-zone"):
        ok(name in allowed.split(", "), "allowed headers", allowed)
    ok("x-other" not in allowed, "what we do not read is not allowed", allowed)
    response = t.conn().request("POST", "/main/mcp", [origin, JSON, ("Accept", mcp.BOTH)],
                                mcp.encode(mcp.initialize()))
    response.read()
    eq(response.status, 200)
    eq(response.header("access-control-allow-origin"), "https://app.example.com")
    ok("mcp-session-id" in response.header("access-control-expose-headers").lower(), "exposed")
    s = t.session()
    s.id, old = response.header("mcp-session-id"), s.id
    eq(s.delete().status, 204)
    s.id = old


@case
def no_cors_headers_for_others(t):
    """SEC-02 FRONT-SEC-01: no Access-Control-Allow-* for an origin that is not listed."""
    response = t.conn().request("OPTIONS", "/main/mcp", [("Origin", "https://evil.example"),
                                                         ("Access-Control-Request-Method", "POST")])
    response.read()
    eq(response.status, 403)
    eq([k for k, _ in response.headers if k.startswith("access-control-")], [])


@case
def session_answers_carry_the_id(t):
    """FRONT-HTTP-14: Mcp-Session-Id on session responses is the session's own."""
    s = t.session()
    for e in (s.start("ping"), s.start("tools/list")):
        e.rest()
        ok(e.response.header("mcp-session-id") in (None, s.id), "id", e.response.headers)


@case
def leaving_client_is_noticed(t):
    """FRONT-HTTP-15: a reset or closed client frees its connection within one keep-alive interval."""
    s = t.session()
    before = t.daemon.fds()[t.daemon.gateway]
    streams = [s.get(), s.start_do(["progress", 1], ["sleep", 4], ["text", "x"], token=1)]
    streams[1].next()
    streams[0].conn.reset()
    streams[1].conn.close()
    wait_for(lambda: t.daemon.fds()[t.daemon.gateway] <= before, 3, "connections freed")


# ---- Origin and Host --------------------------------------------------------

REFUSED_ORIGINS = ("https://evil.example", "null", "http://evil.example:8808", "https://app.example.com.evil.example",
                   "https://app.example.com:444", "http://app.example.com", "file://", "http://127.0.0.1.evil.example",
                   "http://localhost:1", "http://127.0.0.1", "http://127.0.0.1:6274")


@case
def bad_origins_are_403_on_every_path(t):
    """FRONT-SEC-01 SEC-01: a foreign Origin is 403 for every method and path, before the body is read."""
    s = t.session()
    for origin in REFUSED_ORIGINS:
        for method, path in (("POST", s.path), ("GET", s.path), ("DELETE", s.path), ("OPTIONS", s.path),
                             ("GET", "/healthz"), ("POST", "/nowhere")):
            body = b"not json" if method == "POST" else None
            response = t.conn().request(method, path, s.headers([("Origin", origin)]), body)
            response.read()
            eq(response.status, 403, "%s %s from %s" % (method, path, origin))
    eq(s.ask("ping")["result"], {})


@case
def bad_origin_is_refused_before_the_body(t):
    """FRONT-SEC-01: the refusal comes although the announced body does not."""
    conn = t.conn()
    conn.send(conn.head("POST", "/main/mcp", [("Origin", "https://evil.example"), JSON], 100000))
    response = conn.response()
    response.read()
    eq(response.status, 403)


@case
def good_origins_are_served(t):
    """FRONT-SEC-01 DEF-06: absent, the own port of this machine and configured origins are fine."""
    s = t.session()
    port = t.daemon.address[1]
    for origin in (None, "http://localhost:%d" % port, "http://127.0.0.1:%d" % port, "https://app.example.com"):
        response = post(t, s, PING, [("Origin", origin)])
        response.read()
        eq(response.status, 200, origin)


@case
def foreign_hosts_are_403(t):
    """FRONT-SEC-02 SEC-01: only loopback names are accepted as Host on a loopback listener."""
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.2.evil.example",
                 "169.254.169.254"):
        for method, path in (("POST", "/main/mcp"), ("GET", "/main/mcp"), ("DELETE", "/main/mcp"),
                             ("GET", "/healthz")):
            response = t.conn().request(method, path, [("Host", host), JSON], b"{}" if method == "POST" else None)
            response.read()
            eq(response.status, 403, "%s %s Host %s" % (method, path, host))


@case(own=True)
def the_log_has_what_was_refused(t):
    """product §5: the line of a refused Host or Origin has its value, cut off; the answer has it not."""
    for field, value in (("Host", "box.example:8808"), ("Origin", "https://" + "o" * 200)):
        response = t.conn().request("GET", "/healthz", [(field, value)])
        eq((response.status, value[:40] in response.read().decode()), (403, False))
        ok(t.daemon.wait_log("caller_refused", "this %s is not" % field)[0].endswith("cause=" + value[:100]), field, t.daemon.log("caller_refused"))


@case
def loopback_hosts_are_served(t):
    """FRONT-SEC-02: localhost, 127.0.0.1 and [::1] with any port, in any case."""
    for host in ("localhost", "LocalHost:%d" % t.daemon.address[1], "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"):
        response = t.conn().request("GET", "/healthz", [("Host", host)])
        response.read()
        eq(response.status, 200, host)


@case(deadline=30)
def a_thousand_refusals_cost_nothing(t):
    """SEC-01: after 1000 refused requests there is no new session, process or descriptor."""
    t.session().echo("warm")
    children = set(t.daemon.children())
    fds = t.daemon.fds()
    body = mcp.encode(mcp.initialize())
    for i in range(1000):
        conn = t.conn()
        conn.request("POST", "/main/mcp", [("Origin" if i % 2 else "Host", "http://evil.example"), JSON], body).read()
        ok(conn.last.status in (400, 403), "status", conn.last.status)
        conn.close()
    eq(set(t.daemon.children()) - children, set(), "new processes")
    wait_for(lambda: all(n <= fds[pid] for pid, n in t.daemon.fds().items()), 3, "no more descriptors than before")
    wait_for(lambda: len(t.daemon.log("session_start")) == 1 + len(t.daemon.log("session_end")), 3, "no session but its own")


@case
def requests_never_become_command_lines(t):
    """FRONT-SEC-08 SEC-03: argv of a child is the configuration's, whatever the requests say."""
    hostile = "$(touch /tmp/x); `id` | rm -rf --; --import\n"
    s = t.session("main", info={"name": hostile, "version": hostile})
    s.post(mcp.request(1, "tools/call", {"name": hostile, "arguments": {hostile: hostile}}))
    probe = s.probe()
    eq(probe["argv"][1:3], ["-I", "-S"], "argv")
    eq(json.loads(probe["argv"][4]), {"name": "main", "record": t.daemon.records}, "argv")
    names = sorted(e.split("=")[0] for e in probe["environ"])
    net = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
           "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    ok(set(names) <= {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LC_CTYPE"} | net, "environment", names)
    t.daemon.wait_log("child_spawn", "pid=%d" % probe["pid"])
