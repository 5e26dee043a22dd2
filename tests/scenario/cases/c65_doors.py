# SPDX-License-Identifier: Apache-2.0
"""
Every way in, and every reason to refuse: nothing of what is refused reaches a server. Each refusal is followed by a call
that is permitted, in the same way and session: it must arrive, so that the one before would have been seen.
"""
import json
import re
import time

import mcp
from c62_oauth import ORIGIN
from c80_stateless import fields as modern_fields, meta
from harness import case, eq, ok, wait_for
from issuer import Issuer

WAYS = ("streamable", "streamable_batch", "http_sse", "http_sse_batch", "admin", "admin_batch", "stateless")
SCOPES = {"scopes": ["use"], "tools": {"scopes": {"echo": ["write"]}, "arguments": {"forbidden_keys": ["__proto__"]}}}
DO = {"name": "do", "inputSchema": {"type": "object"}}
SERVERS = {"main": dict(SCOPES, script={}, tools=dict(SCOPES["tools"], deny=["forbidden"])), "other": dict(SCOPES, script={}),
           "stepup": {"script": {}, "scopes": ["use"], "tools": {"scopes": {"echo": ["write"]}, "challenge_in_result": True}},
           # Its list shows echo when it is asked for again.
           "pinned": {"isolation": "shared", "pin": "enforce", "script": {"on": {"tools/list": [
               ["once", ["result", {"tools": [DO]}]], ["result", {"tools": [DO, dict(DO, name="echo")]}]]}}}}
CALLS_MAX = {"streamable": 4096, "http_sse": 1024, "admin": 4096}  # in flight, of one session
BATCH_MAX = 64
JSON, EVENTS = "application/json", "text/event-stream"


# ---- what a client is told --------------------------------------------------

def told(answer):
    """Of one answer of a call: what it says."""
    if "error" in answer:
        return answer["error"].get("data", {}).get("reason") or str(answer["error"]["code"])
    return "in the result" if "mcp/www_authenticate" in answer["result"].get("_meta", {}) else "taken"


class Half:
    """A request whose last byte is not sent yet."""

    def __init__(self, conn, rest, ids, sse):
        self.conn, self.rest, self.ids, self.sse = conn, rest, ids, sse

    def finish(self):
        """Sends it and says what came of it: a status, and with 200, 202 and 503 what its requests are answered."""
        self.conn.send(self.rest)
        response = self.conn.response()
        body = response.read()
        self.conn.close()
        if response.status == 503:
            return "503 " + told(json.loads(body))
        if response.status >= 400 or not self.ids:
            return str(response.status)
        if self.sse:
            answers = [self.sse.wait_answer(i) for i in self.ids]
        elif response.is_sse:
            answers = [json.loads(m) for m in re.findall(rb"^data: (.+)$", body, re.M)]
        else:
            answers = json.loads(body)
            answers = answers if isinstance(answers, list) else [answers]
        eq(sorted(a["id"] for a in answers), self.ids, "ids of the answers")
        return " ".join([str(response.status)] + sorted({told(a) for a in answers}))


class Place:
    """Where a session is: its address, and what names it there."""

    def __init__(self, address, path, fields=(), sse=None):
        self.address, self.path, self.fields, self.sse = address, path, list(fields), sse
        self.stub = None

    def end(self):
        self.sse.close() if self.sse else self.stub.end_quietly()


class Way:
    def __init__(self, t, name, servers=SERVERS, claims=None, auth=None, **config):
        self.t, self.name, self.claims = t, name, claims or {}
        self.front, self.is_batch = name.replace("_batch", ""), name.endswith("_batch")
        self.issuer = Issuer()
        issuers = [{"issuer": self.issuer.url, "leeway": "0s"}]
        self.servers = servers
        t.start(servers, dict({"public_url": ORIGIN, "auth": dict({"mode": "oauth", "issuers": issuers}, **(auth or {})),
                               "drain_timeout": "5s", "streams": {"keepalive": "100ms"}}, **config))
        self.last_id = 0
        self.good = self.token()
        self.home = self.open()
        self.marker = None  # what the call says that is to be refused

    # ---- who, and where -------------------------------------------------

    def token(self, server="main", sub=None, **claims):
        claims = dict({"sub": "alice", "scope": "use write"}, **dict(self.claims, **claims))
        claims["sub"] = sub or claims["sub"]
        return self.issuer.token("%s/%s/mcp" % (ORIGIN, server), **claims)

    def listen(self, server="main"):
        """A client of HTTP+SSE that has not begun a session."""
        sse = self.t.sse(server, token=self.token(server), begin=False)
        return Place(self.t.daemon.address, sse.uri, sse=sse)

    def open(self, server="main", version=mcp.B, front=None):
        """A session of alice's, or the operator's; where there are none, the place alone."""
        front = front or self.front
        if front == "stateless":
            return Place(self.t.daemon.address, "/%s/mcp" % server)
        if front == "http_sse":
            place = self.listen(server)
        else:
            path = "/mcp/%s" % server if front == "admin" else "/%s/mcp" % server
            place = Place(self.t.daemon.admin if front == "admin" else self.t.daemon.address, path)
        token = None if front == "admin" else self.token(server)
        conn = self.send(place, mcp.initialize(version), token)
        response = conn.response()
        answer = json.dumps(place.sse.wait_answer(0)) if place.sse else response.read()
        conn.close()
        eq(json.loads(answer)["result"]["protocolVersion"], version, answer)
        if not place.sse:
            session = response.header("mcp-session-id")
            place.fields.append(("Mcp-Session-Id", session))
            place.stub = mcp.Stub(place.address, place.path, session, token)
            self.t.sessions.append(place.stub)
        eq(Half(self.send(place, mcp.notification("notifications/initialized"), token), b"", [], None).finish(), "202")
        return place

    # ---- sending --------------------------------------------------------

    def send(self, place, message, token, accept=JSON, but=0, fields=()):
        """All but the last `but` bytes of a POST, on a connection of its own."""
        body = mcp.encode(message)
        conn = self.t.conn(address=place.address)
        own = [("Content-Type", JSON), ("Accept", accept)]
        if self.front == "stateless" and isinstance(message, dict):
            own = modern_fields(message, accept)
        head = conn.head("POST", place.path, own + mcp.bearer(token) + place.fields + list(fields), len(body))
        conn.send(head + body[:len(body) - but])
        return conn

    def calls(self, text):
        """What this way carries calls in: a message, or two of which the first needs no scope of its own."""
        self.last_id += 2
        echo = mcp.request(self.last_id, "tools/call", {"name": "echo", "arguments": {"text": text}})
        if self.front == "stateless":
            echo["params"]["_meta"] = meta()
        do = mcp.request(self.last_id - 1, "tools/call", {"name": "do", "arguments": {"steps": [["text", text]]}})
        return [do, echo] if self.is_batch else echo

    def half(self, place=None, message=None, token="", accept=JSON, fields=()):
        """All but the last byte of what is to be refused."""
        place, message = place or self.home, message or self.calls(self.marker)
        token = token if token != "" else None if self.front == "admin" else self.good
        messages = [] if isinstance(message, (str, bytes)) else message if isinstance(message, list) else [message]
        conn = self.send(place, message, token, accept, 1, fields)
        return Half(conn, mcp.encode(message)[-1:], sorted(m["id"] for m in messages if "id" in m), place.sse)

    def told(self, **how):
        return self.half(**how).finish()

    # ---- what came of it ------------------------------------------------

    def arrived(self, text):
        """Whether any process of a server was sent it."""
        return any(text.encode() in data for server in self.servers for _, data in self.t.daemon.records_of(server))

    def permit(self, place=None, server="main"):
        """The same call arrives, and is answered, as JSON and as a stream."""
        for accept in (JSON,) if (place or self.home).sse else (JSON, EVENTS):
            text = self.marker.replace("refused", "permitted as " + accept)
            token = None if self.front == "admin" else self.token(server)
            status = "202" if (place or self.home).sse else "200"
            eq(self.told(place=place, message=self.calls(text), token=token, accept=accept), status + " taken", text)
            ok(self.arrived(text), "it did not arrive", text)

    def deny(self, jti):
        self.order("POST", "/deny-add", {"issuer": self.issuer.url, "jti": jti})

    def order(self, method, path, body=None):
        conn = self.t.conn(address=self.t.daemon.admin)
        response = conn.request(method, path, [("Content-Type", JSON)], mcp.encode(body) if body else None)
        answer = response.read()
        conn.close()
        eq(response.status, 200, path)
        return json.loads(answer)


def each_way(check, name, title, deadline=60, ways=WAYS):
    """A case for each of them: check(t, the way's name). `name` stands before that, `title` has a %s for it."""
    for way_name in ways:
        def by_way(t, way=way_name):
            check(t, way)
        by_way.__name__, by_way.__doc__, by_way.__module__ = name + way_name, title % way_name, check.__module__
        case(daemon=False, deadline=deadline)(by_way)


# ---- what is refused --------------------------------------------------------
# Each says what the client was told, and for which place and server the permitted call follows, if not in its home.

def with_token(**claims):
    return lambda way: way.told(token=way.token(**claims))


def wrong_token(way):
    return way.told(token=way.good[:-8] + ("AAAAAAAA" if way.good[-8:] != "AAAAAAAA" else "BBBBBBBB"))


def denied(way):
    way.deny("denied")
    return way.told(token=way.token(jti="denied"))


def denied_late(way):
    half = way.half(token=way.token(jti="late"))
    way.deny("late")
    return half.finish()


def expired_late(way):
    ends = time.time() + 0.3
    half = way.half(token=way.token(exp=ends))
    wait_for(lambda: time.time() > ends, 2, "the end of the token")
    return half.finish()


def foreign_session(way):
    if way.front != "admin":
        return way.told(token=way.token(sub="bob"))
    client = way.open(front="streamable")
    return way.told(place=Place(way.home.address, way.home.path, client.fields))


def session_of_another_server(way):
    other = way.open("other")
    path = other.path.replace("/other/", "/main/") if way.front == "http_sse" else way.home.path
    answer = way.told(place=Place(other.address, path, other.fields, other.sse))
    way.permit(other, "other")
    return answer


def unknown_session(way):
    if way.front == "http_sse":
        return way.told(place=Place(way.home.address, way.home.path[:-32] + "A" * 32))
    return way.told(place=Place(way.home.address, way.home.path, [("Mcp-Session-Id", "A" * 32)]))


def no_session(way):
    return way.told(place=Place(way.home.address, way.home.path.split("?")[0]))


def before_initialize(way):
    """On HTTP+SSE by a ping: any other request would be that of a client who has come back. FRONT-OLD-09"""
    if way.front != "http_sse":
        return way.told(place=way.listen())
    ping = mcp.request(99, "ping")
    return way.told(place=way.listen(), message=[ping, ping] if way.is_batch else ping)


def second_initialize(way):
    message = mcp.initialize(mcp.B, info={"name": way.marker, "version": "1"}, request_id=99)
    return way.told(message=[message] if way.is_batch else message)


def bad_initialize(version, **params):
    """As the first message of a client, where the way has one; no process is started for it."""
    def send(way):
        message = mcp.initialize(mcp.B, info={"name": way.marker, "version": version}, request_id=99)
        message["params"].update(params)
        place = way.listen() if way.front == "http_sse" else Place(way.home.address, way.home.path)
        before = way.t.daemon.started("main")
        answer = way.told(place=place, message=[message] if way.is_batch else message)
        eq(way.t.daemon.started("main"), before, "processes")
        return answer
    return send


def malformed(way):
    """A member twice: one of the two could be what is judged, and the other what is run."""
    text = mcp.encode(way.calls(way.marker)).decode()
    last = text.rindex('"method"')
    return way.told(message=text[:last] + '"method":"ping",' + text[last:])


def another_tool_in_the_head(way):
    """By a rule of a router before us, the call is one of `do`, which needs no scope of its own."""
    message = way.calls(way.marker)
    head = [(k, "do" if k == "Mcp-Name" else v) for k, v in modern_fields(message)] + mcp.bearer(way.good)
    body = mcp.encode(message)
    conn = way.t.conn(address=way.home.address)
    conn.send(conn.head("POST", way.home.path, head, len(body)) + body[:-1])
    return Half(conn, body[-1:], [message["id"]], None).finish()


def by_no_name(params):
    """A call of the tool that needs a scope, by something else than its name, and without the scope."""
    def send(way):
        message = way.calls(way.marker)
        call = message[-1] if way.is_batch else message
        call["params"] = params(call["params"])
        return way.told(message=message, token=None if way.front == "admin" else way.token(scope="use"))
    return send


def forbidden_arguments(way):
    message = way.calls(way.marker)
    call = message[-1] if way.is_batch else message
    call["params"]["arguments"]["__proto__"] = 1
    return way.told(message=message)


def stepped_up_in_result(way):
    place = way.open("stepup")
    answer = way.told(place=place, token=way.token("stepup", scope="use"))
    way.permit(place, "stepup")
    return answer


def not_approved(way):
    """The first call of it waits for the list that shows it; from then on it is known at the door."""
    place, token = way.open("pinned"), None if way.front == "admin" else way.token("pinned")
    change = mcp.request(way.last_id + 2, "tools/call", {"name": "do", "arguments": {"steps": [
        ["notify", "notifications/tools/list_changed"], ["text", "told"]]}})
    if way.front == "stateless":
        change["params"]["_meta"] = meta()
    way.last_id += 2
    way.told(place=place, message=change, token=token)
    first = way.told(place=place, message=way.calls("not known yet"), token=token)
    ok(first == "400" or "-32602" in first, "behind the door", first)
    return way.told(place=place, token=token)


def batch_of_another_revision(way):
    return way.told(place=way.open(version=mcp.C))


def unknown_revision(way):
    return way.told(fields=[("MCP-Protocol-Version", "1999-12-31")])


def claim_of_the_modern_era(way):
    message = way.calls(way.marker)
    call = message[-1] if way.is_batch else message
    call["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    return way.told(message=message)


def begun_and_left(conn):
    """Whether calls run for a client that has gone; the daemon finds that out when it writes a comment."""
    status = conn.response().status
    conn.close()
    return status in (200, 202)


def too_many_calls(way):
    """Its own session has as many as it may; two that are cancelled make room."""
    place, limit, count = way.open(), CALLS_MAX[way.front], 0
    silent = {"name": "do", "arguments": {"steps": []}}
    token = None if way.front == "admin" else way.good
    before = way.t.daemon.fds()[way.t.daemon.gateway]
    while count < limit:
        batch = [mcp.request("s%d" % (count + i), "tools/call", silent) for i in range(BATCH_MAX)]
        wait_for(lambda: begun_and_left(way.send(place, batch, token, EVENTS)), 5, "a place for a connection")
        count += BATCH_MAX
    wait_for(lambda: way.t.daemon.fds()[way.t.daemon.gateway] <= before, 5, "the end of their connections")
    eq(way.order("GET", "/status")["calls"], limit, "calls in flight")
    answer = way.told(place=place)
    for i in range(2):
        eq(way.told(place=place, message=mcp.notification("notifications/cancelled", {"requestId": "s%d" % i})), "202")
    way.permit(place)
    place.end()
    return answer


def draining(way):
    """A call still runs; that it is cancelled is let in."""
    claim = {"_meta": meta()} if way.front == "stateless" else {}
    long = mcp.request("long", "tools/call", dict({"name": "do", "arguments": {"steps": [["wait_cancel"]]}}, **claim))
    cancel = mcp.notification("notifications/cancelled", {"requestId": "long"})
    running = way.half(message=[long] if way.is_batch else long)
    running.conn.send(running.rest)
    wait_for(lambda: way.arrived("wait_cancel"), 3, "the call that runs")
    late, permitted = way.half(), way.half(message=[cancel] if way.is_batch else cancel)
    way.t.daemon.term()
    way.t.daemon.wait_log("drain")
    answer = late.finish()
    if way.front == "stateless":
        permitted.conn.close()
        running.conn.close()  # which cancels
        return answer
    eq(permitted.finish(), "202")
    wait_for(lambda: way.arrived("notifications/cancelled"), 3, "what is permitted")
    return answer


NO_TOKENS = "who could open the admin socket is the operator, and shows no token"
OWN_SESSION = "initialize begins a session of its own, whatever session it names (FRONT-INIT-05)"
LEGACY = "Streamable HTTP serves the session that was agreed on, whatever is claimed"
NO_FIELD = "HTTP+SSE has no such field"
NO_ARRAY = "there is no array"
NO_STREAM = "there is no stream before the session"
NO_SESSION = "there is no session"
NO_HEAD = "the head says nothing of what is in the body"

# By the ways; what is no answer says why there is none to be had.
TABLE = [
    # reason, how it comes about             streamable     batch   http_sse       batch   admin   batch   stateless
    ("no token", lambda way: way.told(token=None), "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("wrong token", wrong_token, "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("expired token", with_token(exp=1), "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("token expires while its body comes", expired_late, "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("denied token", denied, "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("token denied while its body comes", denied_late, "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("token for another server", with_token(server="other"), "401", "401", "401", "401", NO_TOKENS, NO_TOKENS, "401"),
    ("missing base scope", with_token(scope="write"), "403", "403", "403", "403", NO_TOKENS, NO_TOKENS, "403"),
    ("missing tool scope", with_token(scope="use"), "403", "403", "403", "403", NO_TOKENS, NO_TOKENS, "403"),
    ("tool with a NUL behind its name", by_no_name(lambda p: dict(p, name="echo\0")), "200 -32602", "400", "202 -32602",
     "202 -32602", "200 -32602", "400", "400"),
    ("tool in an array of params", by_no_name(lambda p: [p]), "200 -32602", "400", "202 -32602", "202 -32602", "200 -32602", "400", "400"),
    ("denied tool", by_no_name(lambda p: dict(p, name="forbidden")), "200 -32602", "400", "202 -32602", "202 -32602", "200 -32602", "400",
     "400"),
    ("forbidden arguments", forbidden_arguments, "200 -32602", "400", "202 -32602", "202 -32602", "200 -32602", "400", "400"),
    ("definition not approved", not_approved, "200 -32602", "400", "202 -32602", "202 -32602", "200 -32602", "400", "400"),
    ("step-up in the result", stepped_up_in_result, "200 in the result", "403", "403", "403", NO_TOKENS, NO_TOKENS, "200 in the result"),
    ("foreign session", foreign_session, "404", "404", "404", "404", "404", "404", NO_SESSION),
    ("session of another server", session_of_another_server, "404", "404", "404", "404", "404", "404", NO_SESSION),
    ("unknown session", unknown_session, "404", "404", "404", "404", "404", "404", NO_SESSION),
    ("no session named", no_session, "400", "400", "400", "400", "400", "400", NO_SESSION),
    ("before initialize", before_initialize, NO_STREAM, NO_STREAM, "202 -32600", "400", NO_STREAM, NO_STREAM, NO_SESSION),
    ("initialize again", second_initialize, OWN_SESSION, "400", "202 -32600", "400", OWN_SESSION, "400", NO_SESSION),
    ("initialize too large", bad_initialize("x" * 70000), "200 -32602", "400", "202 -32602", "400", "200 -32602", "400", NO_SESSION),
    ("initialize incomplete", bad_initialize("1", capabilities=None), "200 -32602", "400", "202 -32602", "400", "200 -32602", "400", NO_SESSION),
    ("malformed envelope", malformed, "400", "400", "400", "400", "400", "400", "400"),
    ("batch of another revision", batch_of_another_revision, NO_ARRAY, "400", NO_ARRAY, "400", NO_ARRAY, "400", NO_SESSION),
    ("unknown revision", unknown_revision, "400", "400", NO_FIELD, NO_FIELD, "400", "400", "400"),
    ("claim of the modern era", claim_of_the_modern_era, LEGACY, LEGACY, "202 -32601", "202 -32601", LEGACY, LEGACY, "what is claimed is served"),
    ("too many calls in flight", too_many_calls, "503 overloaded", "503 overloaded", "202 overloaded", "202 overloaded", "503 overloaded",
     "503 overloaded", NO_SESSION),
    ("another tool in the head", another_tool_in_the_head, NO_HEAD, NO_HEAD, NO_HEAD, NO_HEAD, NO_HEAD, NO_HEAD, "400"),
    # The last: the daemon ends.
    ("draining", draining, "503 draining", "503 draining", "202 draining", "202 draining", "503 draining", "503 draining", "503 draining"),
]
ANSWER = re.compile(r"\d{3}( -\d+| overloaded| draining| in the result)?$")


def every_reason(t, name):
    way = Way(t, name)
    for reason, how, *by_way in TABLE:
        eq(len(by_way), len(WAYS), reason)
        expected = by_way[WAYS.index(name)]
        if not ANSWER.match(expected):
            continue
        way.marker = "refused: " + reason
        eq(how(way), expected, reason)
        if reason != "draining":
            way.permit()
        ok(not way.arrived(way.marker), "it has reached a server", reason)


@case(daemon=False, deadline=60)
def by_streamable(t):
    """AUTH-SCP-02 AUTH-SES-03 SEC-50: what is refused over Streamable HTTP reaches no server."""
    every_reason(t, "streamable")


@case(daemon=False, deadline=60)
def by_streamable_batch(t):
    """AUTH-SCP-06 FRONT-POST-08: nothing of a batch of which something is refused reaches a server."""
    every_reason(t, "streamable_batch")


@case(daemon=False, deadline=60)
def by_http_sse(t):
    """AUTH-SES-03 FRONT-OLD-03: what is refused over HTTP+SSE reaches no server, be it told by a status or on the stream."""
    every_reason(t, "http_sse")


@case(daemon=False, deadline=60)
def by_http_sse_batch(t):
    """AUTH-SCP-06 FRONT-OLD-05: the same for batches over HTTP+SSE."""
    every_reason(t, "http_sse_batch")


@case(daemon=False, deadline=60)
def by_admin(t):
    """product §2: the operator needs no token; all else that may refuse is asked on his socket as well."""
    every_reason(t, "admin")


@case(daemon=False, deadline=60)
def by_admin_batch(t):
    """product §2: the same for batches."""
    every_reason(t, "admin_batch")


@case(daemon=False, deadline=60)
def by_stateless(t):
    """FRONT-ERA-02 AUTH-SCP-02: what is refused of a modern request reaches no server."""
    every_reason(t, "stateless")


# ---- the GET that takes a stream of HTTP+SSE up again ------------------------

def resume(way, token="", server="main", event=None):
    """Its status; the stream goes on where it was, unless it is 200."""
    conn = way.t.conn()
    named = [("Accept", EVENTS), ("Last-Event-ID", event or way.home.sse.last_id)]
    conn.send(conn.head("GET", "/%s/sse" % server, named + mcp.bearer(way.good if token == "" else token)))
    status = conn.response().status
    conn.close()
    return status


def resume_denied(way):
    way.deny("denied")
    return resume(way, way.token(jti="denied"))


RESUMING = [
    ("no token", lambda way: resume(way, None), 401),
    ("wrong token", lambda way: resume(way, way.good[:-8] + "AAAAAAAA"), 401),
    ("expired token", lambda way: resume(way, way.token(exp=1)), 401),
    ("denied token", resume_denied, 401),
    ("token for another server", lambda way: resume(way, way.token("other")), 401),
    ("missing base scope", lambda way: resume(way, way.token(scope="write")), 403),
    ("foreign session", lambda way: resume(way, way.token(sub="bob")), 404),
    ("session of another server", lambda way: resume(way, way.token("other"), "other"), 404),
    ("unknown session", lambda way: resume(way, event="A" * 32 + "-7"), 404),
    ("no event of ours", lambda way: resume(way, event="7"), 404),
]


@case(daemon=False, deadline=30)
def by_resuming_http_sse(t):
    """FRONT-OLD-04 FRONT-SESS-05 AUTH-SES-03: who may not have a stream does not take it from whom it belongs to; who may, does."""
    way = Way(t, "http_sse", sessions={"reconnect_timeout": "30s"})
    for reason, how, status in RESUMING:
        way.marker = "refused: " + reason
        eq(how(way), status, reason)
        way.permit()  # it is answered on the stream that is open
    old, way.marker = way.home.sse, "refused: nothing"
    way.home.sse = old.again()
    eq((way.home.sse.response.status, old.next()), (200, None), "taken up by its owner")
    way.permit()
