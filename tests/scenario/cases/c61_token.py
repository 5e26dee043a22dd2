# SPDX-License-Identifier: Apache-2.0
"""Static tokens: who is asked, what is answered, who may do what. oauth.md §4, §5, §8, §11."""
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import harness
import mcp
import wire
from c80_stateless import begin, fields, message
from harness import case, eq, ok, wait_for

ALICE, ALICE2, BOB, LIMITED, OLD = ("%s-token-0123456789abcdef" % n for n in ("alice", "alice2", "bob", "limited", "old"))
REALM = 'Bearer realm="mcpgated"'


def entry(name, token, **more):
    return dict({"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}, **more)


TOKENS = [entry("alice", ALICE, scopes=["main:use", "main:write"]), entry("alice", ALICE2, scopes=["admin"]),
          entry("bob", BOB, scopes=["main:use"]), entry("limited", LIMITED, servers=["free"]),
          entry("old", OLD, scopes=["main:use"], expires="2020-01-31")]
AUTH = {"mode": "token", "tokens": TOKENS, "scope_hierarchy": {"admin": ["main:use", "main:write"]}}
SERVERS = {"main": {"script": {}, "scopes": ["main:use"], "tools": {"scopes": {"ech*": ["main:write"], "e*o": ["main:loud"]}}},
           "free": {"script": {}}}
CONFIG = {"auth": AUTH, "origins": ["https://app.example.com"]}
INIT = mcp.encode(mcp.initialize())


def post(t, headers=(), body=INIT, path="/main/mcp", method="POST"):
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)] + list(headers)
    response = t.conn().request(method, path, fields, body)
    response.read()
    if response.header("mcp-session-id") and any(k == "Authorization" for k, _ in headers):
        token = [v.split()[1] for k, v in headers if k == "Authorization"][0]
        t.sessions.append(mcp.Stub(t.daemon.address, path, response.header("mcp-session-id"), token))
    return response


def challenge(response):
    fields = [v for k, v in response.headers if k == "www-authenticate"]
    eq(len(fields), 1, "WWW-Authenticate fields")
    return fields[0]


@case(daemon=False)
def lists_are_not_shared_among_callers(t):
    """AUTH-SES-10: what one caller is shown is neither kept nor fetched for another, on the same process."""
    answer = '{"jsonrpc":"2.0","id":@ID@,"result":{"tools":[],"number":@ID@}}'
    t.start({"main": {"script": {"on": {"tools/list": [["sleep", 0.2], ["line", answer]]}}, "isolation": "shared"}},
            {"auth": {"mode": "token", "tokens": [e for e in TOKENS if "servers" not in e]}})
    sessions = [t.session("main", token=token) for token in (ALICE, BOB, ALICE2, BOB)]
    waiting = [s.start("tools/list") for s in sessions]
    alice, bob, alice2, bob2 = [e.final()["result"]["number"] for e in waiting]
    eq((alice, bob), (alice2, bob2))
    ok(alice != bob, "one answer for two callers", alice)
    eq([s.ask("tools/list")["result"]["number"] for s in sessions], [alice, bob, alice, bob])


@case
def nobody_is_asked_for_a_token(t):
    """AUTH-CH-02 AUTH-CH-06 AUTH-TOK-07 FRONT-SEC-07: without a token 401, and nothing about OAuth in the challenge."""
    response = post(t)
    eq((response.status, challenge(response)), (401, REALM))
    eq((response.header("cache-control"), response.is_json), ("no-store", True))
    eq(json.loads(response.body)["error"], "unauthorized")
    for value in ("Basic YTpi", ALICE):
        answer = post(t, [("Authorization", value)])
        eq(answer.status, 401, "AUTH-IN-05: another scheme is none")
        ok("came, but not as 'Authorization: Bearer TOKEN'" in json.loads(answer.body)["error_description"], "it is told apart from none")
    answer = post(t, [("Cookie", "access_token=" + ALICE), ("X-Api-Key", ALICE)])
    eq((answer.status, "came, but as X-API-Key" in answer.body.decode()), (401, True), "AUTH-IN-02")
    eq(post(t, [("Authorization", "Bearer Bearer " + ALICE)]).status, 400)
    t.daemon.wait_log("caller_refused", "status=400", "server=main", "does not hold one token")


@case
def every_request_is_asked_before_all_else(t):
    """AUTH-CH-08 AUTH-CH-09 FRONT-SEC-04: 401 whatever else is wrong; a session id is no credential; no body is read."""
    s = t.session(token=ALICE)
    own = [("Mcp-Session-Id", s.id)]
    for method, headers, body in (("POST", own, b"{{{"), ("GET", own, b""), ("DELETE", own, b""), ("PUT", [], b""), ("POST", own, INIT)):
        response = post(t, headers, body, method=method)
        eq((response.status, challenge(response)), (401, REALM), method)
    conn = t.conn()
    conn.send(b"POST /main/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n")
    eq(conn.response().status, 401, "no 100 Continue")
    eq(s.ask("ping")["result"], {})
    eq(post(t, path="/nowhere").status, 404, "a path that is none needs no token")


@case
def wrong_token_is_refused(t):
    """AUTH-TOK-02 AUTH-CH-03 AUTH-CH-10: any change of a token makes it unknown; equal refusals have equal bytes."""
    seen = set()
    for token in (ALICE + "x", ALICE[:-1], "x" + ALICE, ALICE.upper(), ALICE + "="):
        response = post(t, [("Authorization", "Bearer " + token)])
        eq(response.status, 401, token)
        ok(token.encode() not in response.raw_head + response.body, "the answer repeats the token")
        seen.add(challenge(response))
    eq(seen, {REALM + ', error="invalid_token", error_description="The access token is not known"'})
    response = post(t, [("Authorization", "Bearer " + OLD)])
    ok("has expired" in challenge(response), "expired", challenge(response))


@case
def malformed_credentials_are_400(t):
    """AUTH-IN-03 AUTH-IN-04 AUTH-IN-02: two credentials, none behind the scheme, one in the address."""
    for value in ("Bearer", "Bearer a b", 'Bearer "a"', "Bearer a,b", "Bearer a=b", "Bearer %20"):
        response = post(t, [("Authorization", value)])
        eq(response.status, 400, value)
        ok('error="invalid_request"' in challenge(response), value)
    eq(post(t, [("Authorization", "Bearer " + ALICE)] * 2).status, 400, "two fields")
    for path in ("/main/mcp?access_token=" + ALICE, "/main/mcp?a=b&access_token=" + ALICE):
        eq(post(t, path=path).status, 400, "in the address")
        eq(post(t, [("Authorization", "Bearer " + ALICE)], path=path).status, 400, "both")
    for scheme in ("bearer", "BEARER", "Bearer  "):
        eq(post(t, [("Authorization", scheme + " " + ALICE)]).status, 200, "AUTH-IN-01 " + scheme)


@case(daemon=False)
def key_in_a_header_of_its_own(t):
    """AUTH-TOK-05: only when configured; one credential, not two; it is a static token or nothing."""
    t.start(SERVERS, dict(CONFIG, auth=dict(AUTH, x_api_key=True)))
    key = lambda token: [("X-API-Key", token)]
    response = post(t, key(BOB))
    eq(response.status, 200)
    eq(post(t, key(BOB) + [("Mcp-Session-Id", response.header("mcp-session-id"))], mcp.encode(mcp.request(1, "ping"))).status, 200)
    post(t, key(BOB) + [("Mcp-Session-Id", response.header("mcp-session-id"))], b"", method="DELETE")
    eq(t.session(token=BOB).ask("ping")["result"], {}, "Bearer goes on")
    response = post(t, key(BOB + "x"))
    eq((response.status, challenge(response)), (401, REALM + ', error="invalid_token", error_description="The access token is not known"'))
    for headers in (key(BOB) + [("Authorization", "Bearer " + BOB)], key(BOB) + [("Authorization", "Basic x")], key(BOB) * 2, key(""),
                    key("a b"), key("Bearer " + BOB)):
        response = post(t, headers)
        eq((response.status, 'error="invalid_request"' in challenge(response)), (400, True), str(headers))
    preflight = post(t, [("Origin", "https://app.example.com"), ("Access-Control-Request-Method", "POST")], b"", method="OPTIONS")
    ok("X-API-Key" in preflight.header("access-control-allow-headers"), "a page may send it")


@case
def token_is_for_its_servers(t):
    """AUTH-TOK-03: a token with a list of servers is good for those only; scopes as for any token."""
    response = post(t, [("Authorization", "Bearer " + LIMITED)])
    eq(response.status, 401)
    ok("not for this resource" in challenge(response), challenge(response))
    eq(t.session("free", token=LIMITED).ask("ping")["result"], {})
    eq(t.session("free", token=BOB).ask("ping")["result"], {}, "a token without a list is for all")


@case
def session_belongs_to_its_principal(t):
    """FRONT-SESS-05 AUTH-SES-02 AUTH-SES-03 AUTH-SES-04: another's session is like one that is not there, byte for byte."""
    s = t.session(token=ALICE)
    stranger = lambda sid, method, body: post(t, [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", sid)], body, method=method)
    unknown = s.id[:-4] + "AAAA"
    for method, body in (("POST", mcp.encode(mcp.request(1, "ping"))), ("GET", b""), ("DELETE", b""),
                         ("POST", mcp.encode(mcp.notification("notifications/cancelled", {"requestId": 1}))),
                         ("POST", mcp.encode({"jsonrpc": "2.0", "id": 1, "result": {}}))):
        mine, none = stranger(s.id, method, body), stranger(unknown, method, body)
        eq(mine.status, 404, method)
        plain = lambda r: [(k, v) for k, v in r.headers if k != "date"]
        eq((plain(mine), mine.body), (plain(none), none.body), "as for an unknown session")
    response = post(t, [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", s.id), ("Last-Event-ID", "00000000-0-1")], b"", method="GET")
    eq(response.status, 404, "Last-Event-ID")
    eq(s.ask("ping")["result"], {}, "its owner keeps it")
    s.token = ALICE2
    eq(s.ask("ping")["result"], {}, "another token of the same name goes on")


@case
def http_sse_belongs_to_its_principal(t):
    """AUTH-SES-03: the address of HTTP+SSE is worth nothing without its owner's token."""
    eq(t.sse(begin=False).response.status, 401)
    sse = t.sse(token=ALICE, begin=False)
    body = mcp.encode(mcp.request(1, "ping"))
    eq(post(t, [], body, path=sse.uri).status, 401)
    eq(post(t, [("Authorization", "Bearer " + BOB)], body, path=sse.uri).status, 404)
    eq(post(t, [("Authorization", "Bearer " + ALICE)], body, path=sse.uri).status, 202)
    call = mcp.encode(mcp.request(2, "tools/call", {"name": "echo", "arguments": {}}))
    eq(post(t, [("Authorization", "Bearer " + ALICE)], call, path=sse.uri).status, 403, "AUTH-SCP-02")
    sse.close()


@case
def missing_scopes_are_named_at_once(t):
    """AUTH-SCP-01 AUTH-SCP-02 AUTH-SCP-03 AUTH-SCP-10 AUTH-SCP-08: 403 with all that is needed and what is held."""
    response = post(t, [("Authorization", "Bearer " + LIMITED)], path="/free/mcp")
    eq(response.status, 200)
    call = mcp.encode(mcp.request(5, "tools/call", {"name": "echo", "arguments": {"text": "x"}}))
    s = t.session(token=BOB)
    seen = set()
    for _ in range(2):
        response = post(t, [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", s.id)], call)
        eq(response.status, 403)
        seen.add(challenge(response))
    wanted = REALM + ', scope="%s", error="insufficient_scope", error_description="The access token lacks a scope that this needs"'
    eq(seen, {wanted % "main:use main:write main:loud"})
    t.session(token=ALICE)  # the scopes of somebody else are not ours
    eq(post(t, [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", s.id)], call).status, 403)
    eq(s.do_text(["text", "fine"]), "fine", "other tools need no more")


@case(own=True, servers={"main": {"script": {}, "scopes": ["use"], "tools": {"scopes": {"echo": ["write"]}}}},
      config={"auth": {"mode": "token", "scope_hierarchy": {"admin": ["write"], "write": ["use"]},
                       "tokens": [entry("a", ALICE, scopes=["admin"]), entry("b", BOB, scopes=["use"])]}})
def scopes_hold_others(t):
    """AUTH-SCP-04: what a scope holds counts, over several steps, but is not named in challenges."""
    eq(t.session(token=ALICE).echo("hello"), "hello")
    s = t.session(token=BOB)
    call = mcp.encode(mcp.request(5, "tools/call", {"name": "echo", "arguments": {}}))
    response = post(t, [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", s.id)], call)
    ok('scope="use write"' in challenge(response), challenge(response))


@case
def body_decides_about_the_tool(t):
    """AUTH-SCP-06 SEC-50: escapes, header names and batches open no tool that the token may not call."""
    s = t.session(token=BOB, version=mcp.B)
    head = [("Authorization", "Bearer " + BOB), ("Mcp-Session-Id", s.id)]
    for name in ('"\\u0065cho"', '"\\u0065ch\\uD800"', "7", '"ech\\u006f"'):
        body = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%s,"arguments":{}}}' % name.encode()
        eq(post(t, head + [("Mcp-Name", "do")], body).status, 403, name)
    before = len(t.daemon.messages(s.pid()))
    batch = mcp.encode([mcp.request(8, "tools/call", {"name": "do", "arguments": {"steps": [["text", "x"]]}}),
                        mcp.request(9, "tools/call", {"name": "echo", "arguments": {}})])
    eq(post(t, head, batch).status, 403)
    eq(len(t.daemon.messages(s.pid())), before + 1, "nothing of the batch reached the server")


@case
def token_reaches_neither_child_nor_log(t):
    """FRONT-SEC-06 AUTH-DWN-01 SEC-08 AUTH-LOG-02: not in its environment, arguments or input, nor in any log line."""
    s = t.session(token=ALICE)
    seen = json.dumps(s.probe()) + json.dumps(t.daemon.messages(s.pid()))
    post(t, [("Authorization", "Bearer " + ALICE + "x")])
    digest = hashlib.sha256(ALICE.encode()).hexdigest()
    ok("steps" in seen, "the child was asked", seen)
    for secret in (ALICE, digest):
        ok(secret not in seen, "the child has seen it")
        eq([l for l in t.daemon.lines if secret in l], [], "lines of the log")


@case
def browsers_can_read_refusals(t):
    """AUTH-CORS-01 AUTH-CORS-02 AUTH-CORS-03: preflight without a token; refusals say who may read them."""
    origin = ("Origin", "https://app.example.com")
    response = post(t, [origin, ("Access-Control-Request-Method", "POST")], b"", method="OPTIONS")
    eq(response.status, 204)
    ok("authorization" in response.header("access-control-allow-headers").lower(), "Authorization is allowed")
    response = post(t, [origin])
    eq((response.status, response.header("access-control-allow-origin")), (401, "https://app.example.com"))
    for name in ("WWW-Authenticate", "Retry-After", "Mcp-Session-Id"):
        ok(name in response.header("access-control-expose-headers"), name)
    response = post(t, [("Origin", "https://evil.example"), ("Authorization", "Bearer " + ALICE)])
    eq((response.status, response.header("access-control-allow-origin")), (403, None), "Origin comes before the token")
    response = post(t, [("Host", "evil.example"), ("Authorization", "Bearer " + ALICE)])
    eq(response.status, 403, "Host comes before the token")


@case(daemon=False, deadline=30)
def streams_end_with_the_token(t):
    """AUTH-SES-06 AUTH-SES-05: listening ends cleanly when the token does; a call in progress may finish."""
    end = time.gmtime(time.time() + 6 * harness.SLOW)
    short = entry("alice", ALICE, expires=time.strftime("%Y-%m-%dT%H:%M:%SZ", end))
    daemon = t.start({"main": {}}, {"auth": {"mode": "token", "tokens": [short, entry("alice", ALICE2)]}})
    s = t.session(token=ALICE, daemon=daemon)
    sse = t.sse(token=ALICE, daemon=daemon, begin=False)
    listening = s.get()
    call = s.start_do(["sleep", 8 * harness.SLOW], ["text", "late"])
    body = message("subscriptions/listen", {"notifications": {}})
    reader = wire.EventReader(begin(t, "main", body, fields(body) + mcp.bearer(ALICE)).response())
    ok(reader.next(10).data, "what is acknowledged")
    eq(listening.rest(20), [], "the stream ends without a message")
    eq(sse.reader.next(10), None, "and so does that of HTTP+SSE")
    eq((json.loads(reader.next(10).data)["id"], reader.next(10)), ("q", None), "and that of 2026-07-28, with its answer")
    response = s.delete()
    eq(response.status, 401, "an expired token is 401, not 404")
    eq(call.final(20)["result"]["content"][0]["text"], "late")
    s.token = ALICE2
    eq(s.ask("ping")["result"], {}, "the session has waited")


@case(own=True, servers={"main": {}}, config={"auth": {"mode": "token", "tokens": [entry("a", ALICE), entry("b", BOB)]},
                                              "limits": {"sessions_per_principal": 2}})
def sessions_of_one_principal_are_limited(t):
    """FRONT-SESS-08: the third session of one caller is 503 with Retry-After; another caller still gets one."""
    kept = [t.session(token=ALICE) for _ in range(2)]
    response = post(t, [("Authorization", "Bearer " + ALICE)])
    eq((response.status, bool(response.header("retry-after"))), (503, True))
    t.session(token=BOB)
    eq(kept[0].delete().status, 204)
    kept[0].id = None
    t.session(token=ALICE)


def show(t, token, client=None, extra=()):
    """A request from that address, as the trusted proxy on this machine tells it."""
    headers = [("Authorization", "Bearer " + token)] if token else []
    return post(t, headers + ([("X-Forwarded-For", client)] if client else []) + list(extra))


@case(daemon=False, deadline=30)
def wrong_tokens_are_slowed(t):
    """AUTH-CH-11 AUTH-TOK-06 DEF-23: the 21st of one address in a minute is 429; a good token is served and resets the count."""
    t.start(SERVERS, dict(CONFIG, trusted_proxies=["127.0.0.1"]))
    a, b, net, near = "203.0.113.5", "203.0.113.6", "2001:db8:1:2::1", "[2001:db8:1:2:ffff::9]:77"
    for k in range(20):
        response = show(t, "wrong%d" % k, a)
        eq((response.status, challenge(response)), (401, REALM + ', error="invalid_token", error_description="The access token is not known"'))
    response = show(t, "wrong", a)
    eq((response.status, response.header("www-authenticate"), response.header("cache-control")), (429, None, "no-store"))
    ok(0 < int(response.header("retry-after")) <= 60, response.header("retry-after"))
    eq(json.loads(response.body)["error"], "slow_down")
    eq(show(t, "", a, [("Authorization", "Bearer a b")]).status, 429, "what is no token counts as well")
    response = show(t, None, a)
    eq((response.status, challenge(response)), (401, REALM), "who shows none learns as ever what is needed")
    eq(show(t, OLD, a).status, 401, "who shows one that has expired learns that")
    eq([show(t, "wrong", c).status for c in (b, None, "%s, %s" % (a, b))], [401] * 3, "other addresses; what a client itself says of its own")
    eq(show(t, ALICE, a).status, 200, "a good token is served")
    eq([show(t, "again", a).status for _ in range(21)], [401] * 20 + [429], "and resets the count")
    eq(show(t, LIMITED, a).status, 429, "nor is one for another server")
    eq(show(t, BOB, a).status, 200)
    eq([show(t, "again", near if k % 2 else net).status for k in range(21)], [401] * 20 + [429], "IPv6 by network")
    eq(show(t, "again", "2001:db8:1:3::1").status, 401, "the next network")
    eq([show(t, "again").status for _ in range(30)], [401] * 30, "this machine is not counted")
    eq(len(t.daemon.wait_log("client_slowed", "client=203.0.113.5")), 2)


@case(daemon=False)
def slowing_can_be_changed(t):
    """AUTH-CH-11: auth.failures_per_minute; 0 is any number. A token that only lacks a scope is a good one."""
    poor = "poor-token-0123456789abcdef"
    for limit in (2, 0):
        t.daemon = None
        t.start(SERVERS, dict(CONFIG, trusted_proxies=["127.0.0.1"],
                              auth=dict(AUTH, failures_per_minute=limit, tokens=TOKENS + [entry("poor", poor)])))
        eq([show(t, "wrong", "203.0.113.5").status for _ in range(40)], [401] * limit + [429] * (40 - limit) if limit else [401] * 40)
        eq([show(t, token, "203.0.113.7").status for token in ("x", "x", poor, "x", "x", poor, "x")], [401, 401, 403, 401, 401, 403, 401])


@case(daemon=False)
def one_command_with_a_token_file(t):
    """AUTH-TOK-01: --token-file holds tokens that only its owner may read; what is wrong with it is said."""
    path = os.path.join(t.directory(), "tokens")
    program = os.path.join(harness.BIN, "mcpgated")
    argv = ["--listen", "127.0.0.1:0", "--token-file", path, "--"] + harness.child_argv({})

    def write(text, mode=0o600):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)

    def refusal():
        done = subprocess.run([program] + argv, capture_output=True, text=True, timeout=20 * harness.SLOW)
        eq(done.returncode, 2)
        ok(ALICE not in done.stderr, "the token is told")
        return done.stderr
    ok("cannot be opened" in refusal(), "no such file")
    write(ALICE + "\n", 0o640)
    ok("chmod 600" in refusal(), "readable for others")
    write("# nothing\n\n")
    ok("contains no token" in refusal(), "empty")
    write("short\n")
    ok(":1: a token must have at least 22" in refusal(), "short")
    for line, hint in (("Bearer " + ALICE, "leave out the word"), ('"%s"' % ALICE, "leave out the quotes"), ("TOKEN=" + ALICE, "what stands before")):
        write("# ours\n%s\n" % line)
        said = refusal()
        ok(":2: a token must" in said and hint in said and "contains no token" not in said, "what is wrong with it", said)
    write("%s\n\n%s\n" % (ALICE, ALICE))
    ok(re.search(r"tokens:3:.*this token is listed twice", refusal()), "twice")
    write("\ufeff%s\r\n\n%s\n" % (ALICE, BOB))
    daemon = t.start(args=argv)
    eq(post(t, path="/mcp").status, 401)
    for token in (ALICE, BOB):
        eq(post(t, [("Authorization", "Bearer " + token)], path="/mcp").status, 200)
    ok(not re.search(ALICE + "|" + BOB, "".join(daemon.lines)), "a token in the log")


@case(daemon=False)
def tokens_of_a_file_have_names_of_their_own(t):
    """AUTH-TOK-01 AUTH-SES-07: whoever has a token of --token-file is named by the token: when a line above goes, his session goes on; that of the line ends."""
    path = os.path.join(t.directory(), "tokens")

    def write(text):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)
    write("%s anna\n%s\n" % (ALICE, BOB))
    daemon = t.start(args=["--listen", "127.0.0.1:0", "--log-level", "debug", "--token-file", path, "--"] + harness.child_argv({}))
    anna, ben = (t.session("main", path="/mcp", token=token) for token in (ALICE, BOB))
    name = "token-" + hashlib.sha256(BOB.encode()).hexdigest()[:8]
    shown = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "--print-config", "--token-file", path, "--", "/bin/cat"],
                           capture_output=True, text=True, timeout=20 * harness.SLOW).stdout
    ok(name in shown and "{name: anna, " in shown, "the names", shown)
    ok(any(" debug " in line for line in daemon.lines), "--log-level")
    write(BOB + "\n")
    os.kill(daemon.pid, signal.SIGHUP)
    daemon.wait_log("session_end", "reason=denied")
    eq((anna.post(mcp.request(9, "ping")).status, ben.post(mcp.request(9, "ping")).status), (401, 200))
    response = t.conn().request("POST", "/main/mcp", [("Content-Type", "application/json")], b"{}")
    eq((response.status, "there is one, at /mcp" in response.read().decode()), (404, True))
    daemon.wait_log("path_unknown", "path=/main/mcp")


@case(daemon=False)
def who_looks_for_a_sign_in_learns_that_there_is_none(t):
    """AUTH-FAC-06: clients that are not let in ask for the documents of OAuth and register: 404, with what is wrong; it is no wrong path."""
    guesses = [("GET", p, None) for p in ("/.well-known/oauth-protected-resource/main/mcp", "/.well-known/oauth-authorization-server",
                                          "/.well-known/openid-configuration", "/main/mcp/.well-known/openid-configuration")]
    for auth, why in ((AUTH, "the one that was sent is not known, or none was sent"), ({"mode": "none"}, "no token is needed")):
        daemon = t.start(SERVERS if auth is AUTH else {"main": {"script": {}}}, {"auth": auth})
        for method, path, body in guesses + [("POST", "/register", b'{"redirect_uris":["http://127.0.0.1/"]}')]:
            response = t.conn(address=daemon.address).request(method, path, [("Content-Type", "application/json")], body)
            said = json.loads(response.read())["error"]["message"]
            eq((response.status, why in said), (404, True), path + ": " + said)
        t.conn(address=daemon.address).request("GET", "/nothing").read()
        daemon.wait_log("path_unknown", "path=/nothing")
        daemon.never_logged("path_unknown", "well-known")
        daemon.never_logged("path_unknown", "register")


@case(servers=SERVERS, config={"auth": dict(AUTH, x_api_key=True)})
def a_placeholder_is_told(t):
    """AUTH-IN-04: a header that the client should have filled in says so, and not what it holds."""
    for text in ("${MCPGATED_TOKEN}", "$MCPGATED_TOKEN", "${env:MCPGATED_TOKEN}", "<TOKEN>"):
        for name, value in (("Authorization", "Bearer " + text), ("Authorization", text), ("X-API-Key", text)):
            response = post(t, [(name, value)])
            said = response.body.decode() + challenge(response)
            eq(response.status, 401 if value == text and name == "Authorization" else 400)
            ok("header holds a placeholder that the client did not expand" in said and "TOKEN" not in said, said)
    for text in ("$", "<", "a<b>", "$1"):
        ok("placeholder" not in challenge(post(t, [("Authorization", "Bearer " + text)])), text)


MOUNTED = '''set -e; mount -t tmpfs none "$0"; umask 022; mkdir "$0/..2026"; printf '%s\\n' "$1" >"$0/..2026/tokens"
chmod 0444 "$0/..2026/tokens"; ln -s ..2026 "$0/..data"; ln -s ..data/tokens "$0/tokens"; shift; [ "$1" = rw ] || mount -o remount,ro "$0"; shift; exec "$@"'''


@case(daemon=False)
def tokens_that_a_container_mounts(t):
    """DEF-25: secrets of Kubernetes (0444, root's, links, read-only): what nobody here can change is taken with a warning; what can be, is not."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise harness.Skip("this takes root and a mount namespace")
    place = t.directory()
    argv = [os.path.join(harness.BIN, "mcpgated"), "-t", "--token-file", place + "/tokens", "--", "/bin/cat"]

    def check(mode, user=()):
        prefix = ["unshare", "-m", "sh", "-c", MOUNTED, place, ALICE, mode]
        return subprocess.run(prefix + list(user) + argv, capture_output=True, text=True, timeout=20 * harness.SLOW)
    done = check("ro")
    ok(done.returncode == 0 and "group or others may read these tokens" in done.stderr, "mounted", done.stderr)
    done = check("rw")
    ok(done.returncode == 1 and "chmod 600" in done.stderr, "its own", done.stderr)


@case(daemon=False)
def reachable_address_needs_a_mode(t):
    """FRONT-SEC-03 DEF-04: an address that others reach starts with tokens, and not with mode none."""
    program = os.path.join(harness.BIN, "mcpgated")
    path = os.path.join(t.directory(), "a.yaml")

    def check(auth):
        with open(path, "w") as f:
            f.write(harness.to_yaml({"listen": [{"address": "0.0.0.0:0", "plaintext": True}], "auth": auth,
                                     "servers": {"a": {"command": "x"}}}))
        os.chmod(path, 0o600)
        return subprocess.run([program, "-t", "-c", path], capture_output=True, text=True, timeout=20 * harness.SLOW)
    done = check({"mode": "none"})
    eq(done.returncode, 1)
    ok("auth: {mode: token, tokens:" in done.stderr and "auth: {mode: anonymous}" in done.stderr, done.stderr)
    eq(check({"mode": "token", "tokens": [entry("a", ALICE)]}).returncode, 0)
    eq(check({"mode": "anonymous"}).returncode, 0)
    done = check({"mode": "token"})
    ok("auth.mode: token needs auth.tokens, like [{name: " in done.stderr, done.stderr)


@case(daemon=False, deadline=40)
def nobody_keeps_all_processes(t):
    """bridging §1.4 SEC-16: a caller who keeps all processes of a server busy, and has more to do, does not keep another one out."""
    t.start({"main": {"script": {}, "isolation": "principal", "pool": {"max": 2, "queue_timeout": "30s"}}},
            {"auth": {"mode": "token", "tokens": [e for e in TOKENS if "servers" not in e]}})
    alice = t.session("main", token=ALICE, caps={"elicitation": {}})
    calls = [alice.start_do(["sleep", 0.3], ["text", "done"]) for _ in range(40)]
    wait_for(lambda: len(t.daemon.children("main")) == 2, 5, "both processes are hers")
    pids = t.daemon.children("main")
    bob = t.session("main", token=BOB, caps={"elicitation": {}})
    eq(bob.echo("me too"), "me too")
    asked = sum(m.get("method") == "tools/call" for pid in pids for m in t.daemon.messages(pid))
    ok(asked < len(calls), "she was served first", asked)
    eq([e.final(30)["result"]["content"][0]["text"] for e in calls], ["done"] * len(calls))
