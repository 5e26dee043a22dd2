# SPDX-License-Identifier: Apache-2.0
"""Requests of 2026-07-28 before servers of the legacy era: each stands alone, there is no session."""
import json
import time

import mcp
import wire
from harness import case, cpu_seconds, eq, ok, wait_for, within

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
JSON = ("Content-Type", "application/json")
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId",
         "tasks/cancel": "taskId"}

SERVERS = {
    "main": {"script": {}},
    "own": {"script": {}, "isolation": "principal"},
    "all": {"script": {}, "isolation": "shared"},
    "poor": {"script": {"caps": {"tools": {}}}},
    "gone": {"script": {"init": [["exit", 3]]}},
    "rude": {"script": {"init": [["error", -32000, "no"]]}},
}



def tool(name, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def tools_list(*tools):
    return {"on": {"tools/list": [["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % json.dumps({"tools": tools})]]}}


STEPS = {"type": "array"}
REGION = {"type": "string", "x-mcp-header": "Region"}
MIRRORS = tools_list(tool("plain"), tool("do", steps=STEPS, region=REGION, shard={"type": "integer", "x-mcp-header": "Shard"}))
SERVERS["mirror"] = {"script": MIRRORS}
SERVERS["modern"] = {"script": dict(MIRRORS, era="modern"), "era": "modern"}
SERVERS["broken"] = {"script": tools_list(tool("do", steps=STEPS, region={"type": "number", "x-mcp-header": "Region"}))}
SERVERS["mute"] = {"script": {"on": {"tools/list": [["error", -32603, "no"]]}}}
CONFIG = {"defaults": {"pool": {"idle_timeout": "1500ms"}}}
LISTED = ("main", "own", "all")


def meta(caps=None, token=None, level=None, version=MODERN, **more):
    found = {META + "protocolVersion": version, META + "clientCapabilities": caps or {},
             META + "clientInfo": {"name": "scenario", "version": "1"}}
    if token is not None:
        found["progressToken"] = token
    if level is not None:
        found[META + "logLevel"] = level
    return dict(found, **more)


def message(method, params=None, request_id="q", **kw):
    return mcp.request(request_id, method, dict(params or {}, _meta=meta(**kw)))


def fields(body, accept=mcp.BOTH, version=MODERN):
    """Of the head, as the body has them."""
    found = [JSON, ("Accept", accept), ("MCP-Protocol-Version", version), ("Mcp-Method", body["method"])]
    params = body.get("params")
    name = params.get(NAMES.get(body["method"])) if isinstance(params, dict) else None
    return found + ([("Mcp-Name", name)] if name else [])


def begin(t, server, body, head=None, conn=None):
    """Sends it; nothing is read yet."""
    conn = conn or t.conn()
    data = mcp.encode(body)
    conn.send(conn.head("POST", "/%s/mcp" % server, fields(body) if head is None else head, len(data)) + data)
    return conn


def messages_of(response):
    """What an answer holds, in its order; events have neither ids nor a priming event: FRONT-HTTP-02."""
    if not response.is_sse:
        body = response.read()
        return [json.loads(body)] if body else []
    reader, found = wire.EventReader(response), []
    while True:
        event = reader.next(mcp.TIMEOUT)
        if event is None:
            return found
        eq((event.id, event.name), (None, "message"))
        found.append(json.loads(event.data))


def ask(t, server, method, params=None, head=None, **kw):
    """(status, all messages) of one request."""
    body = message(method, params, **kw)
    conn = begin(t, server, body, head)
    response = conn.response()
    eq(response.header("mcp-session-id"), None, "FRONT-HTTP-02")
    found = messages_of(response)
    conn.close()
    return response.status, found


def do(t, server, *steps, **kw):
    status, found = ask(t, server, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}}, **kw)
    eq(status, 200, found)
    return found


@case
def a_call_stands_alone(t):
    """MOD-META-01, MOD-RES-01, MOD-META-03, BACK-MSG-06: no session; the server sees a request of its own era."""
    for server in LISTED:
        found = do(t, server, ["text", "from " + server], request_id="x-" + server)
        eq([m["id"] for m in found], ["x-" + server])
        result = found[0]["result"]
        eq((result["resultType"], result["content"][0]["text"]), ("complete", "from " + server))
        eq(result["_meta"][META + "serverInfo"]["name"], "scripted")
        eq("ttlMs" in result, False, "a result of a call is not cached")
        # Not that of the process that was asked for its era.
        everything = [t.daemon.messages(pid) for pid in t.daemon.children(server)]
        sent = next(sent for sent in everything if any(m.get("method") == "tools/call" for m in sent))
        eq(sent[0]["params"]["clientInfo"]["name"], "mcpgated")
        eq(META in json.dumps(sent), False, "no word of the modern era")
    t.daemon.never_logged("session_start")


@case
def discovery(t):
    """MOD-DISC-01, MOD-DISC-02: what the server offers, without a session; the same list as in -32022."""
    for server in LISTED:
        status, found = ask(t, server, "server/discover")
        result = found[0]["result"]
        eq((status, result["resultType"], result["ttlMs"], result["cacheScope"]), (200, "complete", 0, "private"))
        eq(result["supportedVersions"], [MODERN, mcp.D, mcp.C, mcp.B, mcp.A])
        eq("tasks" in result["capabilities"], False)
        eq("logging" in result["capabilities"], server != "all")
        eq(result["capabilities"]["resources"], {"subscribe": True, "listChanged": True})
        eq((result["_meta"][META + "serverInfo"]["name"], "serverInfo" in result), ("scripted", False))
    do(t, "main", ["text", "x"])
    eq(len(t.daemon.children("main")), 1, "the process of discovery serves calls, too")


@case
def servers_that_do_not_start(t):
    """MOD-DISC-03: 503, never a 4xx, which would be read as the word of an older server."""
    for server in ("gone", "rude"):
        status, found = ask(t, server, "server/discover")
        eq((status, found[0]["error"]["code"], found[0]["id"]), (503, -32603, "q"), server)
    t.expect_error_log("child_failing")


@case(own=True, servers={"main": {"script": {"init": [["sleep", 0.6], ["answer"]]}, "pool": {"queue_timeout": "200ms"}}})
def servers_that_start_slowly(t):
    """BACK-PROC-05: who waits for a process that is being started waits as long as that takes."""
    eq(do(t, "main", ["text", "x"])[0]["result"]["content"][0]["text"], "x")


@case
def lists_are_kept(t):
    """MOD-RES-03, MOD-RES-05, bridging.md §1.8: one fetch serves many; each says that it is not to be kept."""
    before = [m["method"] for p in t.daemon.children("own") for m in t.daemon.messages(p) if m.get("method") == "prompts/list"]
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        for _ in range(3):
            status, found = ask(t, "own", method)
            result = found[0].get("result", {})
            eq((status, result.get("resultType"), result.get("ttlMs"), result.get("cacheScope")),
               (200, "complete", 0, "private"), method)
    pid = t.daemon.children("own")[0]
    eq([m["method"] for m in t.daemon.messages(pid)].count("prompts/list"), len(before) + 1)


@case
def progress_and_logs_come_as_events(t):
    """MOD-PROG-01, FRONT-HTTP-12, FRONT-SSE-08, FRONT-SSE-10: what comes before the response makes it events, without ids."""
    found = do(t, "own", ["progress", 1], ["progress", 1], ["progress", 2], ["text", "done"], token="mine")
    eq([m["params"]["progress"] for m in found[:-1]], [1, 2])
    eq({m["params"]["progressToken"] for m in found[:-1]}, {"mine"})
    eq(found[-1]["result"]["content"][0]["text"], "done")


def answer_to(t, accept, *steps, server="own", method="tools/call", **kw):
    """(whether it is a stream, all messages) for a client that takes this."""
    params = {"name": "do", "arguments": {"steps": list(steps)}} if method == "tools/call" else {}
    body = message(method, params, **kw)
    response = begin(t, server, body, fields(body, accept=accept)).response()
    eq(response.status, 200)
    return response.is_sse, messages_of(response)


@case
def what_the_client_takes(t):
    """FRONT-HTTP-04 FRONT-HTTP-12: who takes no events hears of no progress; who takes nothing else gets his answer as one."""
    is_stream, found = answer_to(t, "application/json", ["progress", 1], ["text", "x"], token="mine")
    eq((is_stream, len(found), found[0]["result"]["content"][0]["text"]), (False, 1, "x"))
    for method in ("server/discover", "tools/list", "tools/call"):
        is_stream, found = answer_to(t, "text/event-stream", ["text", "x"], method=method)
        eq((is_stream, len(found), found[0]["result"]["resultType"]), (True, 1, "complete"), method)
    body = message("server/discover")
    eq(begin(t, "own", body, fields(body, accept="text/plain")).response().status, 406)


@case(own=True, servers={"own": SERVERS["own"]}, config={"streams": {"response": "json"}})
def answers_are_json(t):
    """FRONT-HTTP-12: where that is configured, but to who takes no JSON, and to who listens."""
    eq(answer_to(t, mcp.BOTH, ["progress", 1], ["text", "x"], token="mine")[0], False)
    eq(answer_to(t, "text/event-stream", ["text", "x"])[0], True)
    conn, _, granted = listen(t, "own", {"toolsListChanged": True})
    eq(granted, {"toolsListChanged": True})
    conn.close()


@case(own=True, servers={"own": SERVERS["own"]}, config={"streams": {"response": "sse"}})
def answers_are_events(t):
    """FRONT-HTTP-12: likewise, but to who takes none. The stream begins before the server answers."""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}})
    began = time.monotonic()
    conn = begin(t, "own", body)
    ok(conn.response().is_sse, "a stream, before there is an answer")
    within(began, 8, "and not after the ten seconds of any call")
    conn.close()
    eq(answer_to(t, "application/json", ["text", "x"])[0], False)


@case(own=True, deadline=20, servers={"one": {"script": {}, "isolation": "principal", "pool": {"max": 1, "requests_per_process": 1, "queue_timeout": "500ms"}}})
def who_is_not_served_in_time(t):
    """bridging.md §4: 503, and when it is worth another try: calls take three seconds here."""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}})
    steps = {"name": "do", "arguments": {"steps": [["sleep", 3], ["text", "x"]]}}
    wait_for(lambda: ask(t, "one", "tools/call", steps)[0] == 200, 15, "one that is served, since its list has come")
    conn = begin(t, "one", body)
    pid = t.daemon.children("one")[0]
    wait_for(lambda: b"wait_cancel" in t.daemon.record(pid), 3, "the call")
    response = begin(t, "one", body).response()
    eq((response.status, messages_of(response)[0]["error"]["data"]["reason"]), (503, "overloaded"))
    ok(int(response.header("retry-after")) > 3, response.header("retry-after"))
    conn.close()


@case(deadline=25)
def a_call_that_takes_long(t):
    """FRONT-HTTP-12 bridging.md §7: after ten seconds its answer begins, as events, so that nobody takes the connection for dead."""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}})
    conn = begin(t, "own", body)
    conn.sock.settimeout(15)
    ok(conn.response().is_sse, "a stream")
    conn.close()


@case(own=True, servers={"own": SERVERS["own"]}, config={"drain_timeout": "300ms"})
def a_call_at_the_end_of_the_gateway(t):
    """bridging.md §4 FRONT-ERA-09: 5xx says that nothing was executed; this one was, and its answer says how it has ended."""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}})
    do(t, "own", ["text", "x"])
    conn = begin(t, "own", body)
    wait_for(lambda: any(b"wait_cancel" in t.daemon.record(pid) for pid in t.daemon.children("own")), 3, "the call")
    t.daemon.term()
    response = conn.response()
    eq((response.status, messages_of(response)[0]["error"]["data"]["reason"]), (200, "draining"))
    eq(t.daemon.wait(), 0)


@case
def nobody_comes_back(t):
    """FRONT-RES-09, FRONT-HTTP-02: Last-Event-ID on a modern request is ignored."""
    body = message("tools/list")
    response = begin(t, "own", body, fields(body) + [("Last-Event-ID", "1-2-3")]).response()
    eq((response.status, messages_of(response)[0]["result"]["resultType"]), (200, "complete"))


@case
def errors_name_their_request(t):
    """FRONT-ERA-09: the id comes back as it was written, whoever refuses."""
    for request_id in (7, -1, "7", "", "\u00e9\"", 9007199254740993):
        for method, params in (("nope", None), ("prompts/get", {"name": 7}), ("tools/call", {"name": "do", "arguments": {"steps": [["error", -5, "no"]]}})):
            body = message(method, params, request_id=request_id)
            found = messages_of(begin(t, "own", body).response())
            eq((found[0]["id"], type(found[0]["id"]), "error" in found[0]), (request_id, type(request_id), True), method)


@case
def notifications_have_no_effect(t):
    """FRONT-POST-10: 202, whether head or body says what they are; none reaches a server. An unserved version is refused."""
    do(t, "own", ["text", "x"])
    body = mcp.notification("notifications/cancelled", {"requestId": "q", "_meta": meta()})
    for head in (fields(body), [JSON, ("Accept", mcp.BOTH)]):
        eq(begin(t, "own", body, head).response().status, 202)
    wrong = mcp.notification("notifications/x", {"_meta": meta(version="2027-01-01")})
    response = begin(t, "own", wrong, [JSON, ("Accept", mcp.BOTH)]).response()
    eq((response.status, json.loads(response.read())["error"]["code"]), (400, -32022))
    do(t, "own", ["text", "behind"])
    for pid in t.daemon.children("own"):
        eq([m for m in t.daemon.messages(pid) if m.get("method", "").startswith("notifications/")
            and m["method"] != "notifications/initialized"], [])


@case
def who_the_client_says_it_is(t):
    """MOD-META-04: the name in clientInfo decides nothing, nor do its letters: all come to the same process."""
    pids = set()
    for name in ("a", "b", "mcpgated"):
        params = {"name": "do", "arguments": {"steps": [["text", "@PID@"]]}}
        body = mcp.request("q", "tools/call", dict(params, _meta=dict(meta(), **{META + "clientInfo": {"name": name, "version": "2"}})))
        pids.add(messages_of(begin(t, "own", body).response())[0]["result"]["content"][0]["text"])
    eq(len(pids), 1)


@case
def legacy_requests_are_not_mirrored(t):
    """MOD-HDR-08: what Mcp-Method and Mcp-Name say on a request of the legacy era is nobody's business."""
    s = t.session("main")
    eq(s.echo("x", extra=[("Mcp-Method", "tools/list"), ("Mcp-Name", "other"), ("Mcp-Param-X", "y")]), "x")


def call_with(t, server, arguments, *extra):
    """(status, all messages) of a call of `do` with these arguments and fields."""
    params = {"name": "do", "arguments": dict({"steps": [["text", "done"]]}, **arguments)}
    body = message("tools/call", params, request_id="h")
    return ask(t, server, "tools/call", params, fields(body) + list(extra), request_id="h")


def is_mismatch(found, what):
    status, messages = found
    eq((status, len(messages), messages[0]["id"], messages[0].get("error", {}).get("code")), (400, 1, "h", -32020), what)


@case
def arguments_are_mirrored(t):
    """SEC-36 MOD-HDR-04 MOD-HDR-05 MOD-HDR-07 MOD-HDR-02: the schema is fetched once; what is not as it says reaches no server."""
    for server in ("mirror", "modern"):
        region, shard = ("Mcp-Param-Region", "eu"), ("mcp-param-shard", "42.0")
        is_mismatch(call_with(t, server, {"region": "eu"}), "missing, before any list was seen")
        both = {"region": "eu", "shard": 42}
        for wrong in ((shard,), (region, ("Mcp-Param-Shard", "41")), (("Mcp-Param-Region", "EU"), shard), (region, region, shard),
                      (("Mcp-Param-Region", "=?base64?ZXU?="), shard)):
            is_mismatch(call_with(t, server, both, *wrong), wrong)
        for absent in ({}, {"region": None}):
            is_mismatch(call_with(t, server, absent, region), "nothing to mirror")
        pids = t.daemon.children(server)
        eq([m["method"] for p in pids for m in t.daemon.messages(p) if m["method"] == "tools/call"], [])
        for right in ((region, shard), (("Mcp-Param-Region", "=?base64?ZXU=?="), shard, ("Mcp-Param-Other", "x"))):
            status, found = call_with(t, server, both, *right)
            eq((status, found[0]["result"]["content"][0]["text"]), (200, "done"), right)
        eq(call_with(t, server, {"region": None})[0], 200)
        asked = [m["method"] for p in pids for m in t.daemon.messages(p)]
        eq((asked.count("tools/list"), asked.count("tools/call")), (1, 3))


@case
def schemas_that_cannot_be_used(t):
    """MOD-HDR-06 MOD-HDR-07: neither wrong annotations nor a list that is not to be had keep a call from its server."""
    for server in ("broken", "mute"):
        for _ in range(2):
            eq(call_with(t, server, {"region": "eu"})[0], 200, server)
    asked = [m["method"] for p in t.daemon.children("mute") for m in t.daemon.messages(p)]
    eq((asked.count("tools/list"), asked.count("tools/call")), (1, 2), "a failure is remembered for 5 s")
    warned = t.daemon.wait_log("annotations_broken")
    eq(len(warned), 1, warned)
    ok("server=broken tool=do" in warned[0], warned)


@case
def repeated_fields(t):
    """FRONT-HTTP-08: a field of MCP that comes twice is a mismatch, in its turn on the ladder; any other one is not."""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["text", "x"]]}}, request_id="h")
    for name, value in (("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "do"),
                        ("Mcp-Session-Id", "a"), ("Last-Event-ID", "1")):
        head = [f for f in fields(body) if f[0] != name] + [(name, value)] * 2
        is_mismatch(ask(t, "main", "tools/call", body["params"], head, request_id="h"), name)
    bare = {"jsonrpc": "2.0", "id": "h", "method": "tools/call", "params": {}}
    response = begin(t, "main", bare, fields(body) + [("Mcp-Name", "do")]).response()
    eq((response.status, json.loads(response.read())["error"]["code"]), (400, -32602), "its metadata first")
    response = begin(t, "main", body, fields(body) + [JSON]).response()
    eq((response.status, json.loads(response.read())["error"]["code"]), (400, -32600), "Content-Type")


@case
def no_progress_without_a_token(t):
    """MOD-PROG-01"""
    eq(len(do(t, "own", ["progress", 1, 7], ["text", "done"])), 1)


@case
def leaving_cancels(t):
    """CXL-04: the server is told that nobody waits any more; whoever comes next is not disturbed."""
    do(t, "own", ["text", "started"])
    pid = t.daemon.children("own")[0]
    for stream in (False, True):
        steps = ([["progress", 1]] if stream else []) + [["wait_cancel"]]
        body = message("tools/call", {"name": "do", "arguments": {"steps": steps}}, token=1)
        before = sum(m.get("method") == "notifications/cancelled" for m in t.daemon.messages(pid))
        conn = begin(t, "own", body)
        if stream:
            ok(conn.response().is_sse, "a stream")
        wait_for(lambda: json.dumps(steps, separators=(",", ":")).encode() in t.daemon.record(pid), 2, "the call")
        conn.close()
        wait_for(lambda: sum(m.get("method") == "notifications/cancelled" for m in t.daemon.messages(pid)) == before + 1,
                 2, "the cancellation")
        eq(do(t, "own", ["text", "next"])[0]["result"]["content"][0]["text"], "next")


@case
def what_is_not_offered(t):
    """FRONT-ERA-07, FRONT-ERA-11: 404 and -32601, by us, without asking the server."""
    status, found = ask(t, "poor", "prompts/list")
    eq((status, found[0]["error"]["code"], found[0]["id"]), (404, -32601, "q"))
    pid = t.daemon.children("poor")[0]
    eq([m for m in t.daemon.messages(pid) if m.get("method") == "prompts/list"], [])
    eq(ask(t, "poor", "tools/list")[0], 200)


@case
def errors_in_modern_words(t):
    """RPC-05, MOD-RES-06, bridging.md §2.3.5: no code of the legacy era, none that would mean something else."""
    rows = ((-32002, -32602), (-32042, -32603), (-32020, -32603), (-32601, -32602), (-32000, -32000), (7, 7))
    for given, got in rows:
        found = do(t, "own", ["error", given, "why", {"uri": "a:b"}])
        eq(found[0]["error"], {"code": got, "message": "why", "data": {"uri": "a:b"}}, given)


@case
def results_are_the_gateways_to_name(t):
    """MOD-RES-01, MOD-MRTR-01: a legacy server has no say in what a result is, however it writes the name."""
    text = '{"resultType":"input_required","result\\u0054ype":"task","requestState":"s","inputRequests":{"a":{}},' \
           '"ttlMs":9,"cacheScope":"public","content":[],"_meta":{"x":1,"' + META + 'serverInfo":{"name":"evil"}}}'
    found = do(t, "own", ["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % text])
    result = found[0]["result"]
    eq(sorted(result), ["_meta", "content", "resultType"])
    eq((result["resultType"], result["_meta"]["x"], result["_meta"][META + "serverInfo"]["name"]), ("complete", 1, "scripted"))


@case
def answers_to_what_was_not_asked(t):
    """bridging.md §2.3.3 (e): inputResponses on a first call are ignored, and not the server's business."""
    status, found = ask(t, "own", "tools/call", {"name": "do", "arguments": {"steps": [["text", "ran"]]},
                                                 "inputResponses": {"secret": {"action": "accept"}}})
    eq((status, found[0]["result"]["content"][0]["text"]), (200, "ran"))
    pid = t.daemon.children("own")[0]
    eq(b"inputResponses" in t.daemon.record(pid), False)


@case
def get_and_delete(t):
    """FRONT-HTTP-02: what has no session cannot be listened to or ended."""
    for method in ("GET", "DELETE"):
        response = t.conn().request(method, "/main/mcp", [("MCP-Protocol-Version", MODERN), ("Accept", mcp.BOTH)])
        response.read()
        eq((response.status, response.header("allow")), (405, "POST"), method)


@case
def both_eras_on_one_connection(t):
    """FRONT-ERA-01, FRONT-SESS-10: decided for each request; a session id on a modern one is ignored."""
    s = t.session("main")
    conn = t.conn()
    for _ in range(2):
        body = message("tools/call", {"name": "echo", "arguments": {"text": "modern"}})
        begin(t, "main", body, fields(body) + [("Mcp-Session-Id", s.id)], conn)
        response = conn.response()
        eq((response.header("mcp-session-id"), messages_of(response)[0]["result"]["resultType"]), (None, "complete"))
        legacy = mcp.request(5, "tools/call", {"name": "echo", "arguments": {"text": "legacy"}})
        data = mcp.encode(legacy)
        conn.send(conn.head("POST", s.path, s.headers(), len(data)) + data)
        answer = json.loads(conn.response().read())
        eq("resultType" in answer["result"], False)
    eq(s.echo("still"), "still")


def listen(t, server, notifications, request_id="L", **kw):
    body = message("subscriptions/listen", {"notifications": notifications}, request_id=request_id, **kw)
    conn = begin(t, server, body)
    response = conn.response()
    ok(response.is_sse, "events")
    reader = wire.EventReader(response)

    def read():
        event = reader.next(mcp.TIMEOUT)
        return None if event is None else json.loads(event.data)
    first = read()
    eq(first["method"], "notifications/subscriptions/acknowledged")
    eq(first["params"]["_meta"], {META + "subscriptionId": request_id})
    return conn, read, first["params"]["notifications"]


@case
def changes_are_heard(t):
    """MOD-SUB-01, MOD-SUB-02, MOD-SUB-03, MOD-SUB-05: what was acknowledged, each with the id of its listen, and no more."""
    for server in ("own", "all"):
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["test://a", "test://b"]}
        conn, read, granted = listen(t, server, wanted, 7)
        eq(granted, wanted)
        other, other_read, granted = listen(t, server, {"promptsListChanged": True}, "other")
        eq(granted, {"promptsListChanged": True})
        do(t, server, ["notify", "notifications/resources/updated", {"uri": "test://c"}],
           ["notify", "notifications/prompts/list_changed"],
           ["notify", "notifications/resources/updated", {"uri": "test://b", "_meta": {META + "subscriptionId": "evil"}}],
           ["notify", "notifications/tools/list_changed"], ["text", "said"])
        heard = sorted((read() for _ in range(2)), key=lambda m: m["method"])
        eq(heard, [{"jsonrpc": "2.0", "method": "notifications/resources/updated",
                    "params": {"_meta": {META + "subscriptionId": 7}, "uri": "test://b"}},
                   {"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                    "params": {"_meta": {META + "subscriptionId": 7}}}])
        eq(other_read(), {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed",
                          "params": {"_meta": {META + "subscriptionId": "other"}}})
        conn.close()
        other.close()
        pid = t.daemon.children(server)[0]
        wait_for(lambda: sum(m.get("method") == "resources/unsubscribe" for m in t.daemon.messages(pid)) == 2, 2,
                 "nobody is subscribed any more")


@case(own=True, servers={"own": {"script": {}, "isolation": "principal"}}, config={"limits": {"sessions_per_principal": 2}})
def too_many_listen(t):
    """MOD-SUB-05: over the limit the request is answered with an error before anything is acknowledged; one less, and it may."""
    conns = [listen(t, "own", {"toolsListChanged": True})[0] for _ in range(2)]
    status, found = ask(t, "own", "subscriptions/listen", {"notifications": {}})
    eq((status, found[0]["error"]["code"], len(found)), (200, -32603, 1))
    conns[0].close()
    wait_for(lambda: "error" not in ask_listen(t), 2, "its place is free")


def ask_listen(t):
    body = message("subscriptions/listen", {"notifications": {}})
    conn = begin(t, "own", body)
    response = conn.response()
    first = json.loads(wire.EventReader(response).next(mcp.TIMEOUT).data) if response.is_sse else json.loads(response.read())
    conn.close()
    return first


@case
def nothing_to_hear(t):
    """MOD-SUB-06: what the server does not tell is left out of what is acknowledged."""
    conn, _, granted = listen(t, "poor", {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]})
    eq(granted, {})
    conn.close()


@case
def listening_to_many(t):
    """MOD-SUB-01, DEF-11: the first 4096 URIs, in a time that grows with the request and no faster; those that are none cost nothing."""
    do(t, "all", ["text", "x"])
    before = cpu_seconds(t.daemon.gateway)
    for first in ([""] * 100000, ["\u20ac" * 4000] * 100):
        uris = first + ["test://%d" % i for i in range(50000)]
        conn, read, granted = listen(t, "all", {"resourceSubscriptions": uris})
        eq(granted, {"resourceSubscriptions": ([""] if first[0] == "" else []) + uris[len(first):][:4096 - (first[0] == "")]})
        conn.close()
    ok(cpu_seconds(t.daemon.gateway) - before < 3, "seconds", cpu_seconds(t.daemon.gateway) - before)


@case
def listening_wants_a_stream(t):
    """FRONT-HTTP-04"""
    body = message("subscriptions/listen", {"notifications": {}})
    response = begin(t, "own", body, fields(body, accept="application/json")).response()
    eq(response.status, 406, response.read())


@case(own=True)
def listening_ends_with_the_gateway(t):
    """MOD-SUB-04: a result with the id of the subscription, then the end of the stream."""
    conn, read, _ = listen(t, "own", {"toolsListChanged": True})
    t.daemon.term()
    result = read()["result"]
    eq((result["resultType"], result["_meta"][META + "subscriptionId"]), ("complete", "L"))
    eq(read(), None)
    eq(t.daemon.wait(), 0)
