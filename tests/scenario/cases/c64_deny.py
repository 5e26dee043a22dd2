# SPDX-License-Identifier: Apache-2.0
"""Tokens that the operator denies, or their issuer revokes: what is refused, what ends, and how soon. oauth.md §10, §13; mcpgated(1)."""
import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import time

import harness
import issuer
import mcp
import wire
from c80_stateless import begin as begin_modern, fields, message
from c81_parked import ALICE, BOB, TOKENS
from c62_oauth import ORIGIN, RESOURCE, begin, challenge, send
from harness import case, eq, ok, to_yaml, wait_for

SERVERS = {"main": {"script": {}}, "slow": {"script": {"init": [["sleep", 60]]}}}
PING = mcp.encode(mcp.request(1, "ping"))
STATIC = "static-token-0123456789abcdef"
CI = {"name": "ci", "sha256": hashlib.sha256(STATIC.encode()).hexdigest()}


def ask(t, method, path, body=b"", status=200):
    response = t.conn(address=t.daemon.admin).request(method, path, [("Content-Type", "application/json")], body)
    answer = json.loads(response.read())
    eq(response.status, status, "%s: %r" % (path, answer))
    return answer


def deny(t, status=200, **order):
    if "until" in order:
        order["until_ms"] = int(order.pop("until") * 1000)
    return ask(t, "POST", "/deny-add", json.dumps(order).encode(), status)


def is_refused(t, token, session=None):
    """401 as any token that is no good, and the reason in the log alone."""
    response = send(t, mcp.bearer(token) + ([("Mcp-Session-Id", session.id)] if session else []), PING if session else mcp.encode(mcp.initialize()))
    eq(response.status, 401)
    ok(challenge(response).endswith('error="invalid_token", error_description="The access token is not active"'), challenge(response))
    ok(b"deni" not in response.body, response.body)


def status_in(t, session, token):
    return send(t, mcp.bearer(token) + [("Mcp-Session-Id", session.id)], PING).status


def ends_within(seconds, what, *streams):
    end = time.monotonic() + seconds * harness.SLOW
    for stream in streams:
        eq(stream(max(0.01, end - time.monotonic())), None, what)


def sse_end(client):
    return lambda timeout: client.reader.next(timeout)


@case(own=True, servers={"main": {"script": {}}}, config={"auth": {"mode": "token", "tokens": TOKENS}})
def modern_requests_of_a_denied_token(t):
    """AUTH-SES-07 CXL-04: a call ends, and its server is told; a subscription ends; those of others go on; the next request is 401."""
    steps = {"name": "do", "arguments": {"steps": [["progress", 1], ["wait_cancel"]]}}

    def opened(method, params, token):
        body = message(method, params, token=1)
        return wire.EventReader(begin_modern(t, "main", body, fields(body) + mcp.bearer(token)).response())

    calls = [opened("tools/call", steps, token) for token in (ALICE, BOB)]
    listens = [opened("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, token) for token in (ALICE, BOB)]
    for reader in calls + listens:
        ok(reader.next(mcp.TIMEOUT).data, "progress, or what is acknowledged")
    deny(t, issuer="static", sub="alice")
    eq(json.loads(calls[0].next(3).data)["error"]["data"]["reason"], "cancelled")
    ends_within(3, "streams", calls[0].next)
    ends_within(3, "streams", listens[0].next)
    given_up = lambda: [m for p in t.daemon.children("main") for m in t.daemon.messages(p) if m.get("method") == "notifications/cancelled"]
    wait_for(lambda: len(given_up()) == 1, 3, "one is given up")
    for reader in (calls[1], listens[1]):
        try:
            ok(False, "nothing ends for others", reader.next(0.2))
        except TimeoutError:
            pass
    body = message("server/discover")
    eq(begin_modern(t, "main", body, fields(body) + mcp.bearer(ALICE)).response().status, 401)


@case(daemon=False, deadline=40)
def person_is_shut_out_at_once(t):
    """AUTH-SES-07 AUTH-IN-07: sessions, both kinds of streams and calls of a denied subject end within 1 s; others see nothing of it."""
    i = begin(t, SERVERS)
    alice, again, bob = i.token(RESOURCE), i.token(RESOURCE, client_id="other"), i.token(RESOURCE, sub="bob")
    first, second = t.session(token=alice), t.session(token=again)
    others = t.session(token=bob)
    streams = [first.get(), second.get()]
    old = t.sse(token=alice, begin=False)
    other_stream = others.get()
    pid = first.pid()
    call, kept = first.start_do(["sleep", 30], ["text", "x"]), others.start_do(["sleep", 2 * harness.SLOW], ["text", "kept"])
    wait_for(lambda: ask(t, "GET", "/status")["calls"] == 2, 3, "the calls")
    added = deny(t, issuer=i.url, sub="alice")
    ok(added["sessions_ended"] >= 2 and abs(added["until_ms"] / 1000 - time.time() - 86400) < 60, str(added))
    ends_within(1, "streams", *([s.next for s in streams] + [sse_end(old)]))
    eq(call.final(2)["error"]["data"]["reason"], "cancelled", "the call")
    for token, s in ((alice, first), (again, second), (alice, None), (i.token(RESOURCE, jti="fresh"), None)):
        is_refused(t, token, s)
    wait_for(lambda: not harness.is_alive(pid), 5, "the end of its process")
    ok(t.daemon.wait_log("token_refused", "reason=revoked"), "the reason")
    t.daemon.wait_log("session_end", "reason=denied")
    t.daemon.wait_log("stream_over", "principal=alice", "reason=denied")
    other_stream.nothing(0.2)
    eq(kept.final(10)["result"]["content"][0]["text"], "kept")
    eq(ask(t, "GET", "/deny")["entries"], [{k: v for k, v in added.items() if k != "sessions_ended"}])
    ask(t, "POST", "/deny-remove?number=%d" % added["number"])
    eq(status_in(t, first, alice), 404, "the token is good again, its session is gone")
    eq(t.session(token=alice).ask("ping")["result"], {})
    eq(ask(t, "POST", "/deny-remove?number=%d" % added["number"], status=404)["error"], "there is no entry of this number")


@case(daemon=False, deadline=40)
def one_token_is_shut_out(t):
    """AUTH-SES-07 AUTH-SES-08: by jti: what it opened and what it waits for ends; the person goes on with another token."""
    i = begin(t, SERVERS)
    bad, good = i.token(RESOURCE, jti="bad"), i.token(RESOURCE, jti="good")
    opened, used = t.session(token=bad), t.session(token=good)
    eq(opened.echo("x"), "x")
    listening = used.get()
    used.token = bad
    plain = used.start_do(["sleep", 30], ["text", "x"], accept="application/json")
    stream = used.start_do(["progress", 1], ["sleep", 30], ["text", "x"], token="p")
    eq(stream.next()["method"], "notifications/progress")
    wait_for(lambda: ask(t, "GET", "/status")["calls"] == 2, 3, "the calls")
    eq(deny(t, jti="bad")["sessions_ended"], 1, "the session that it opened")
    ends_within(1, "the event stream of the call", lambda timeout: end_of(stream, timeout))
    eq(plain.final(2)["error"]["data"]["reason"], "cancelled", "the call that waits for JSON")
    is_refused(t, bad, used)
    eq(status_in(t, opened, good), 404)
    eq(status_in(t, used, good), 200, "the other session goes on")
    listening.nothing(0.2)
    wait_for(lambda: len([m for m in t.daemon.messages(t.daemon.children("main")[0]) if m.get("method") == "notifications/cancelled"]) == 2, 3,
             "both calls are cancelled at the server")


@case(daemon=False, deadline=40)
def one_token_of_many_on_one_stream(t):
    """AUTH-SES-07 AUTH-SES-04: on HTTP+SSE as well, what was sent with the denied token ends, and the rest goes on."""
    i = begin(t, SERVERS)
    bad, good = i.token(RESOURCE, jti="bad"), i.token(RESOURCE, jti="good")
    c = t.sse(token=good, begin=False)

    def post(token, message, status=202):
        c.token = token
        eq(c.post(message).status, status, message)

    post(good, mcp.initialize(mcp.C))
    eq(c.next()["id"], 0)
    slow = {"name": "do", "arguments": {"steps": [["wait_cancel"], ["text", "x"]]}}
    post(bad, mcp.request(1, "tools/call", slow))
    post(good, mcp.request(2, "tools/call", {"name": "do", "arguments": {"steps": [["sleep", 1], ["text", "kept"]]}}))
    server = t.daemon.children("main")[0]
    wait_for(lambda: "wait_cancel" in str(t.daemon.messages(server)), 3, "the call at the server")
    deny(t, jti="bad")
    answers = {m["id"]: m for m in (c.next(), c.next())}
    eq(answers[1]["error"]["data"]["reason"], "cancelled")
    eq(answers[2]["result"]["content"][0]["text"], "kept")
    wait_for(lambda: "notifications/cancelled" in str(t.daemon.messages(server)), 3, "it is cancelled at the server")
    post(bad, mcp.request(3, "ping"), 401)
    post(good, mcp.request(4, "ping"))
    eq(c.next(), {"jsonrpc": "2.0", "id": 4, "result": {}})


def end_of(exchange, timeout):
    """None at the end of a stream; an error that says why may come before."""
    message = exchange.next(timeout)
    return exchange.next(timeout) if message is not None and "error" in message else message


@case(daemon=False)
def login_and_client_can_be_named(t):
    """AUTH-SES-07 AUTH-SES-01: sid and client_id, also where sessions do not belong to clients; byte for byte, of this issuer alone."""
    a, b = begin(t, SERVERS, issuers=2, bind_client=False)
    tokens = {name: a.token(RESOURCE, sid=sid, client_id=client)
              for name, sid, client in (("login", "s1", "one"), ("login2", "s1", "two"), ("client", "s2", "two"), ("free", "S1", "One"))}
    other = t.session(token=b.token(RESOURCE, sid="s1", client_id="two"))
    sessions = {name: t.session(token=token) for name, token in tokens.items()}
    streams = {name: s.get() for name, s in sessions.items()}
    eq(deny(t, issuer=a.url, sid="s1")["sessions_ended"], 2)
    ends_within(1, "of the login", streams["login"].next, streams["login2"].next)
    eq(status_in(t, sessions["client"], tokens["client"]), 200)
    eq(deny(t, issuer=a.url, client_id="two")["sessions_ended"], 1)
    ends_within(1, "of the client", streams["client"].next)
    for name in ("login", "login2", "client"):
        is_refused(t, tokens[name])
    eq(status_in(t, sessions["free"], tokens["free"]), 200)
    streams["free"].nothing(0.1)
    eq(other.ask("ping")["result"], {})


@case(daemon=False)
def nothing_slips_through_while_it_is_denied(t):
    """AUTH-SES-07: a request whose head was let in is refused when its body comes; a session that is being opened does not open."""
    i = begin(t, SERVERS)
    bad = i.token(RESOURCE, jti="bad")
    s = t.session(token=i.token(RESOURCE, jti="good"))
    slow = i.token(ORIGIN + "/slow/mcp", jti="bad")
    opening = t.conn()
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    init = mcp.encode(mcp.initialize())
    opening.send(opening.head("POST", "/slow/mcp", fields + mcp.bearer(slow), len(init)) + init)
    halves = []
    for body, more in ((init, []), (PING, [("Mcp-Session-Id", s.id)]), (b"[" + PING + b"]", [("Mcp-Session-Id", s.id)])):
        conn = t.conn()
        conn.send(conn.head("POST", "/main/mcp", fields + mcp.bearer(bad) + more, len(body)) + body[:5])
        halves.append((conn, body[5:]))
    get = t.conn()
    get.send(get.head("GET", "/main/mcp", [("Accept", "text/event-stream"), ("Mcp-Session-Id", s.id)] + mcp.bearer(bad), 5) + b"xx")
    old = t.conn()
    old.send(old.head("GET", "/main/sse", [("Accept", "text/event-stream")] + mcp.bearer(bad), 5) + b"xx")
    wait_for(lambda: len(t.daemon.log("request")) >= 7 and t.daemon.children("slow"), 5, "all heads")
    eq(deny(t, jti="bad")["sessions_ended"], 0)
    for conn, rest in halves + [(get, b"xxx"), (old, b"xxx")]:
        conn.send(rest)
        response = conn.response()
        response.read()
        eq((response.status, 'error="invalid_token"' in challenge(response)), (401, True))
    response = opening.response()
    eq(json.loads(response.read())["error"]["data"]["reason"], "cancelled")
    eq(ask(t, "GET", "/status")["sessions"], 1)
    wait_for(lambda: not t.daemon.children("slow"), 10, "the end of the process that was to serve it")


@case(daemon=False)
def orders_are_read_strictly(t):
    """AUTH-SES-07: what would deny nothing, or something else than was meant, is refused."""
    i = begin(t, SERVERS, tokens=[CI])
    far = int(time.time() + 1000) * 1000
    for status, order in ((400, b"{{"), (400, b"[]"), (400, b"{}"), (400, b'{"sub":"a","sub":"b"}'), (400, b'{"sub":"a","jti":"b"}'),
                          (400, b'{"sub":""}'), (400, b'{"sub":7}'), (400, b'{"sub":"a\\u0000"}'), (400, b'{"sub":"a\\n"}'), (400, b'{"sub":"a","Issuer":"x"}'),
                          (400, b'{"sub":"a","until_ms":"1"}'), (400, b'{"sub":"a","until_ms":-1}'), (400, b'{"sub":"a","until_ms":1e30}'),
                          (400, json.dumps({"sub": "x" * 2049}).encode()), (409, b'{"sub":"a","until_ms":1000}'),
                          (409, json.dumps({"issuer": i.url + "/", "sub": "a"}).encode()), (409, json.dumps({"issuer": i.url.upper(), "sub": "a"}).encode()),
                          (409, b'{"issuer":"static","sub":"nobody"}'), (409, b'{"issuer":"static","jti":"ci"}')):
        ok(ask(t, "POST", "/deny-add", order, status)["error"], order.decode())
    eq(ask(t, "GET", "/deny-add", status=405)["error"], "a command takes POST")
    eq(ask(t, "GET", "/deny")["entries"], [])
    s = t.session(token=STATIC)
    eq(deny(t, issuer="static", sub="ci", until_ms=far)["sessions_ended"], 1, "a static token is denied by its name")
    is_refused(t, STATIC, s)
    t.daemon = None
    t.start({"main": {"script": {}}})
    ok("auth.mode" in deny(t, 409, issuer="static", sub="ci")["error"], "nobody is asked for a token")


@case(daemon=False, deadline=30)
def entries_of_the_configuration(t):
    """AUTH-SES-07: auth.deny holds from the start; an entry whose time is over does not; what names nothing is refused."""
    i = issuer.Issuer()
    entries = [{"issuer": i.url, "sub": "alice"}, {"issuer": i.url, "jti": "old", "until": "2020-01-31"}, {"issuer": "static", "sub": "ci"}]
    auth = {"mode": "oauth", "issuers": [{"issuer": i.url}], "tokens": [CI], "deny": entries}
    t.start(SERVERS, {"public_url": ORIGIN, "auth": auth})
    is_refused(t, i.token(RESOURCE))
    is_refused(t, STATIC)
    t.session(token=i.token(RESOURCE, sub="bob", jti="old"))
    eq([(e["issuer"], e["by"], e["name"], e["until_ms"]) for e in ask(t, "GET", "/deny")["entries"]],
       [(i.url, "sub", "alice", None), ("static", "sub", "ci", None)])
    path = os.path.join(t.directory(), "a.yaml")
    for entry, why in (({"sub": "a"}, "'issuer' is missing"), ({"issuer": i.url}, "one of sub, client_id, jti and sid"),
                       ({"issuer": i.url, "sub": "a", "sid": "b"}, "one of sub, client_id, jti and sid"),
                       ({"issuer": i.url + "/", "sub": "a"}, "no entry in auth.issuers"), ({"issuer": "static", "sub": "x"}, "its name in auth.tokens"),
                       ({"issuer": "static", "sid": "ci"}, "its name in auth.tokens")):
        with open(path, "w") as f:
            f.write(to_yaml({"public_url": ORIGIN, "auth": dict(auth, deny=[entry]), "servers": {"a": {"command": "x"}}}))
        os.chmod(path, 0o600)
        done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "-c", path], capture_output=True, text=True, timeout=20 * harness.SLOW)
        eq((done.returncode, why in done.stderr), (1, True), done.stderr)


@case(daemon=False, deadline=30)
def entries_outlive_a_failed_process(t):
    """AUTH-SES-07 REL-43: who can make the network process fail does not get denied tokens back; what was taken away stays so."""
    i = begin(t, SERVERS, tokens=[CI], deny=[{"issuer": "static", "sub": "ci"}])
    alice = i.token(RESOURCE)
    deny(t, issuer=i.url, sub="alice")
    eq(deny(t, issuer=i.url, jti="x")["number"], 3)
    ask(t, "POST", "/deny-remove?number=1")
    before = ask(t, "GET", "/deny")
    for _ in range(2):
        old, t.daemon.gateway = t.daemon.gateway, None
        os.kill(old, signal.SIGKILL)

        def serves():
            try:
                return t.conn().request("GET", "/readyz").status == 200
            except (OSError, AssertionError):
                return False
        wait_for(lambda: t.daemon.find_gateway() not in (None, old) and serves(), 10, "a new process")
        t.daemon.gateway = t.daemon.find_gateway()
        eq(ask(t, "GET", "/deny"), before)
        is_refused(t, alice)
        t.session(token=STATIC)


@case(daemon=False, deadline=30)
def operator_denies(t):
    """product §2: mcpgatectl deny add, list, remove; an entry ends by itself; the line for the configuration is told."""
    i = begin(t, SERVERS)

    def ctl(*args, status=0):
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "--socket", t.daemon.admin] + list(args), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20 * harness.SLOW)
        eq(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr
    alice = i.token(RESOURCE)
    s = t.session(token=alice)
    out = ctl("deny", "add", "--sub", "alice", "--for", "%ds" % (4 * harness.SLOW))
    ok("entry 1 is in force until 20" in out and "sessions ended: 1" in out, out)
    line = "  - {issuer: %s, sub: alice, until: 20" % ('"%s"' % i.url if '"' + i.url in out else i.url)
    ok(line in out, out)
    is_refused(t, alice, s)
    out = ctl("deny", "list")
    row = out.splitlines()[1].split()
    eq(row[:4], ["1", i.url, "sub", "alice"])
    eq(json.loads(ctl("deny", "list", "--json"))["entries"][0]["number"], 1)
    wait_for(lambda: json.loads(ctl("deny", "list", "--json"))["entries"] == [], 15, "its end")
    t.session(token=alice)
    ctl("deny", "add", "--issuer", i.url, "--jti", "x y/%ä", "--json")
    eq(ctl("deny", "remove", "2"), "entry 2 removed\n")
    for args, status in ((["deny"], 2), (["deny", "nothing"], 2), (["deny", "add"], 1), (["deny", "add", "--sub", "a", "--sid", "b"], 1), (["deny", "remove"], 2),
                         (["deny", "add", "--sub", "a", "--for", "soon"], 2), (["deny", "remove", "2"], 1), (["deny", "remove", "a b"], 2), (["deny", "list", "1"], 2)):
        ctl(*args, status=status)


# ---- issuers that are asked -------------------------------------------------------------------------------------------


def begin_asking(t, trusted_proxies=(), **more):
    """A gateway that asks its issuer about tokens; an answer holds for a second."""
    i = issuer.Issuer()
    introspection = dict({"endpoint": i.url + "/introspect", "client_id": "rs", "client_secret": "secret", "ttl": "1s"}, **more)
    t.start(SERVERS, {"public_url": ORIGIN, "trusted_proxies": list(trusted_proxies),
                      "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "introspection": introspection}]}})
    return i


def is_active(sub):
    return {"active": True, "sub": sub, "client_id": "app", "aud": RESOURCE, "exp": int(time.time()) + 600}


@case(daemon=False, deadline=60)
def open_streams_are_asked_about_again(t):
    """AUTH-SES-07 AUTH-OPQ-08 AUTH-OPQ-03: once for all of a token in each ttl; revoked, its streams end, and what a POST waits for may finish."""
    i = begin_asking(t)
    alice, bob = "opaque-alice", "opaque-bob"
    i.known = {alice: is_active("alice"), bob: is_active("bob")}
    s, other = t.session(token=alice), t.session(token=bob)
    streams = [s.get(), t.session(token=alice).get(), other.get()]
    old = t.sse(token=alice, begin=False)
    begun, before = time.monotonic(), i.questions.count(alice)
    wait_for(lambda: i.questions.count(alice) >= before + 3, 15, "three questions")
    took = time.monotonic() - begun
    ok(1.8 < took, "three questions in %.1f s" % took)
    call = s.start_do(["sleep", 5], ["text", "late"])
    del i.known[alice]
    ends_within(3, "streams", streams[0].next, streams[1].next, sse_end(old))
    is_refused(t, alice, s)
    eq(call.final(10)["result"]["content"][0]["text"], "late")
    eq(len(t.daemon.wait_log("stream_over", "reason=revoked")), 3)
    streams[2].nothing(2)
    i.known[bob] = is_active("mallory")
    ends_within(3, "the stream of a token that is somebody else's now", streams[2].next)


def guess(t, n, client):
    """A guessed token from that address; returns the connection, on which nobody has listened yet."""
    c = t.conn()
    c.send(c.head("POST", "/main/mcp", [("Authorization", "Bearer guess-%d" % n), ("X-Forwarded-For", client)], 0))
    return c


@case(daemon=False, deadline=40)
def guesses_take_half_of_the_questions(t):
    """AUTH-CH-11 AUTH-OPQ-03: who guesses and does not wait for the answer is counted as well, and leaves places for others."""
    i = begin_asking(t, trusted_proxies=["127.0.0.1"])
    good = "opaque-alice"
    i.known = {good: is_active("alice")}
    i.voice.clear()
    for n in range(20):
        c = guess(t, n, "203.0.113.5")
        wait_for(lambda: "guess-%d" % n in i.questions, 10, "the question")
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.sock.close()
    waits = [guess(t, n, "203.0.113.5") for n in range(20, 90)]
    c = t.conn()
    c.send(c.head("POST", "/main/mcp", [("Authorization", "Bearer " + good)], 0))
    wait_for(lambda: good in i.questions, 10, "the question of somebody else")
    i.voice.set()
    eq(c.response().status, 415)
    eq({c.response().status for c in waits}, {429, 503}, "answered, or there was no place")


@case(daemon=False, deadline=90)
def issuer_that_is_silent(t):
    """AUTH-SES-07 AUTH-OPQ-04: while it does not answer, requests are 503 and open streams stay; for ten times the ttl, then they end."""
    i = begin_asking(t)
    i.known = {"opaque-alice": is_active("alice")}
    s = t.session(token="opaque-alice")
    stream = s.get()
    def failing():
        report = json.loads(t.conn(address=t.daemon.admin).request("GET", "/check").read())
        return [p["about"] for p in report["problems"] if p["kind"] == "introspection_failing"]
    i.status = 500
    stream.nothing(3)
    eq(status_in(t, s, "opaque-alice"), 503)
    eq(failing(), [i.url], "the problem")
    i.status = 200
    count = len(i.questions)
    wait_for(lambda: len(i.questions) > count + 2, 15, "that it is asked again")
    stream.nothing(1)
    eq(status_in(t, s, "opaque-alice"), 200)
    eq(failing(), [], "it is over")
    begun, i.status = time.monotonic(), 500
    eq(stream.next(20), None, "the end")
    ok(7 < time.monotonic() - begun < 13 * harness.SLOW, "after %.1f s" % (time.monotonic() - begun))
    t.daemon.wait_log("stream_over", "reason=unconfirmed")
    i.status = 200
    eq(status_in(t, s, "opaque-alice"), 200, "the session has waited")


@case(daemon=False, deadline=40)
def signed_tokens_are_asked_about_again(t):
    """AUTH-SES-07 AUTH-OPQ-05: with introspection.always their streams end as well; without, nobody is asked."""
    i = begin_asking(t, always=True)
    token = i.token(RESOURCE)
    i.known = {token: {"active": True}}
    stream = t.session(token=token).get()
    stream.nothing(2)
    i.known = {}
    ends_within(3, "the stream", stream.next)
    t.daemon = None
    i = begin_asking(t)
    stream = t.session(token=i.token(RESOURCE)).get()
    stream.nothing(2)
    eq(i.questions, [])
