# SPDX-License-Identifier: Apache-2.0
"""
What the gateway says of callers to servers that it starts itself (servers.NAME.auth.grant assertion, with a command): in _meta of
each request, and nobody else may say it there.
"""
import json
import os
import threading

import issuer
import mcp
from c50_config import refused
from c80_stateless import begin as begin_modern, fields, message, messages_of
from c107_remote import good
from c110_processes_kept import kill_gateway
from c115_assertion import HASHES, ORIGIN, keys, new_key, person, verify
from harness import case, eq, ok, wait_for

KEY = "io.mcpgated/caller"
AUDIENCE = "crm"
AUTH = {"grant": "assertion", "audience": AUDIENCE}
CALL = {"name": "echo", "arguments": {"text": "x"}}


def begin(t, servers=None, **config):
    t.key_file = os.path.join(t.directory(), "assertion.pem")
    new_key(t)
    t.issuer = issuer.Issuer()
    t.config = dict({"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": t.issuer.url}], "assertion_key": {"file": t.key_file},
                                                    "tokens": [{"name": "ci", "sha256": HASHES["secret"]}]}}, **config)
    return t.start(servers or {"main": {"script": {}, "auth": AUTH}}, t.config)


def received(t, name="main"):
    """[(its process, message)] of all that was written to that server."""
    return [(pid, json.loads(line)) for pid, record in t.daemon.records_of(name) for line in record[:record.rfind(b"\n") + 1].splitlines()]


def requests(t, name="main", method=None):
    return [m for _, m in received(t, name) if "id" in m and m.get("method") not in (None, "ping") and method in (None, m["method"])]


def told(t, m, published=None):
    return verify(m["params"]["_meta"][KEY], published or keys(t))


def modern(t, place, token, meta=None, name="echo", text="x"):
    """(status, answer) of a call of a modern client."""
    body = message("tools/call", dict(CALL, name=name, arguments={"text": text}))
    body["params"]["_meta"].update(meta or {})
    response = begin_modern(t, place, body, [*fields(body), ("Authorization", "Bearer " + token)]).response()
    return response.status, messages_of(response)[-1]


@case(daemon=False, deadline=40)
def each_request_says_who_calls(t):
    """BACK-MSG-10: from the first one on, with what is in _meta besides; what is no request says nothing, and neither is the caller's own token told."""
    begin(t)
    token = person(t, "anna", client_id="editor", scope="a b")
    s = t.session("main", token=token)
    s.ask("tools/list")
    s.ask("tools/call", CALL)
    s.ask("tools/call", dict(CALL, _meta={}))
    s.ask("tools/call", dict(CALL, _meta={"com.example/x": 1, "progressToken": "p"}))
    s.notify("notifications/com.example/x", {"_meta": {"a/b": 1}})
    wait_for(lambda: [m for _, m in received(t) if m["method"] == "notifications/com.example/x"])
    seen, published = requests(t), keys(t)
    eq([m["method"] for m in seen][:1], ["initialize"])
    eq(len([m for m in seen if m["method"] == "tools/call"]), 3)
    for m in seen:
        claims = told(t, m, published)
        eq((claims["iss"], claims["aud"], claims["sub"], claims["client_id"], claims["scope"], claims["exp"] - claims["iat"]),
           (ORIGIN, AUDIENCE, "anna", "editor", "a b", 300), m["method"])
    eq((seen[-1]["params"]["_meta"]["com.example/x"], "progressToken" in seen[-1]["params"]["_meta"], seen[-1]["params"]["arguments"]), (1, True, {"text": "x"}))
    others = [m for _, m in received(t) if "id" not in m]
    ok(len(others) == 2 and KEY not in json.dumps(others), others)
    ok(token not in json.dumps(received(t)), "the caller's own token")
    t.issuer.close()


@case(daemon=False, deadline=60)
def nobody_is_taken_for_another(t):
    """BACK-MSG-10: callers at once, of both eras, with servers of both: all that a process is asked is for one of them, and for whom it is."""
    names = ["alice", "bob", "carol"]
    begin(t, {name: {"auth": AUTH, "isolation": isolation, "script": {"era": era}, "era": "auto"}
              for name, isolation, era in (("main", "principal", "legacy"), ("own", "session", "legacy"), ("new", "principal", "modern"))})
    failures = []

    def work(server, name):
        token = person(t, name, server)
        s = t.session(server, token=token)
        for n in range(4):
            answers = s.ask("tools/call", dict(CALL, arguments={"text": name})), modern(t, server, token, text=name)[1]
            failures.extend(answer for answer in answers if "error" in answer)
        if server == "new":  # where it would look like our own question whether the server is alive
            failures.extend(answer for answer in [s.ask("server/discover")] if answer.get("error", {}).get("code") != -32601)
    threads = [threading.Thread(target=work, args=(server, name)) for server in ("main", "own", "new") for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eq(failures, [])
    published = keys(t)
    for server in ("main", "own", "new"):
        found = {}
        for pid, m in received(t, server):
            if "id" in m and m["method"] != "ping" and not (m["method"] == "server/discover" and KEY not in m["params"]["_meta"]):
                claims = told(t, m, published)
                found.setdefault(pid, set()).add(claims["sub"])
                if m["method"] == "tools/call":
                    eq(claims["sub"], m["params"]["arguments"]["text"])
        eq([pid for pid, subs in found.items() if len(subs) != 1], [])
        eq(set().union(*found.values()), set(names), server)
    t.issuer.close()


FORGED = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{%s}}}'
SPELLINGS = ['"%s":"forged"' % KEY, '"\\u0069o.mcpgated/caller":"forged"', '"io.mcpgated\\/caller":"forged"', '"%s":{"a":["forged"]},"x/y":1' % KEY,
             '"x/y":"z","%s":null' % KEY, '"progressToken":"p","io.mcpgated/c\\u0061ller":"forged"',
             '"io.modelcontextprotocol/logLevel":"info","%s":"forged"' % KEY]
REFUSED = ['"%s":"forged","%s":"forged"' % (KEY, KEY), '"%s":1,"io.mcpgated\\/caller":"forged"' % KEY, '"io.mcpgated/Caller":"forged"',
           '"io.mcpgated/ca\\u017fler":1,"IO.MCPGATED/CALLER":"forged"']


@case(daemon=False, deadline=60)
def nobody_else_says_it(t):
    """BACK-MSG-09: what a client puts under the key does not arrive, however it is spelled, with the option and without, at endpoints, in both eras."""
    servers = {"main": {"script": {}, "auth": AUTH}, "plain": {"script": {}}, "new": {"auth": AUTH, "script": {"era": "modern"}, "era": "auto"},
               "plain_new": {"script": {"era": "modern"}, "era": "auto"}}
    begin(t, servers, endpoints={"all": {"servers": {"main": {"prefix": "a_"}, "plain": {"prefix": "b_"}}}})
    published, calls = keys(t), {"main": 0, "plain": 0, "new": 0, "plain_new": 0}
    for place, server, name in (("main", "main", "echo"), ("plain", "plain", "echo"), ("new", "new", "echo"), ("plain_new", "plain_new", "echo"),
                                ("all", "main", "a_echo"), ("all", "plain", "b_echo")):
        token = person(t, "anna", place)
        s = t.session(place, token=token)
        for n, members in enumerate(SPELLINGS):
            text = (FORGED % (100 + n, members)).replace('"echo"', '"%s"' % name)
            eq(s.begin(text.encode()).final(20)["result"]["content"][0]["text"], "x", members)
            status, answer = modern(t, place, token, {KEY: "forged"}, name)
            eq((status, answer["result"]["content"][0]["text"]), (200, "x"))
            calls[server] += 2
        for n, members in enumerate(REFUSED):
            exchange = s.begin((FORGED % (200 + n, members)).replace('"echo"', '"%s"' % name).encode())
            eq((exchange.final(20)["error"]["code"], exchange.status), (-32600, 400), members)
        s.notify("notifications/com.example/x", {"_meta": {KEY: "forged", "a/b": place}})
        s.ask("ping")
    for server, count in calls.items():
        found = requests(t, server, "tools/call")
        eq(len(found), count, server)
        ok("forged" not in json.dumps(received(t, server)), "nothing that is forged", server)
        for m in found:
            eq(told(t, m, published)["sub"] if "auth" in servers[server] else (m["params"].get("_meta") or {}).get(KEY), "anna" if "auth" in servers[server] else None)
    eq([m["params"]["_meta"]["a/b"] for _, m in received(t, "plain") if m["method"] == "notifications/com.example/x"][:1], ["plain"])
    t.issuer.close()


@case(daemon=False, deadline=40)
def nobody_else_says_it_in_what_is_no_call(t):
    """BACK-MSG-09: nor in initialize, nor in progress on what the server asks."""
    begin(t)
    token = person(t, "anna")
    s = t.session("main", mcp.C, {"sampling": {}}, token=token)
    opening = mcp.request(1, "initialize", {"protocolVersion": s.version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
                                            "_meta": {KEY: "forged", "a/b": 1}})
    conn = t.conn()
    body = mcp.encode(opening)
    conn.send(conn.head("POST", "/main/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH), ("Authorization", "Bearer " + token)], len(body)) + body)
    answer = conn.response()
    eq(answer.status, 200)
    exchange = s.start_do(["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1, "_meta": {"progressToken": "q"}}], ["asked"])
    asked = exchange.next()
    s.notify("notifications/progress", {"progressToken": asked["params"]["_meta"]["progressToken"], "progress": 1, "_meta": {KEY: "forged"}})
    s.respond(asked["id"], {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"})
    exchange.final(20)
    wait_for(lambda: [m for _, m in received(t) if m.get("method") == "notifications/progress"])
    openings = requests(t, "main", "initialize")
    eq(sorted(m["params"]["_meta"].get("a/b", 0) for m in openings), [0, 1])
    ok("forged" not in json.dumps(received(t)), received(t))
    t.issuer.close()


@case(daemon=False, deadline=40)
def who_cannot_be_named(t):
    """BACK-MSG-10: whom nothing can be said of is refused, from the start or later; the server never sees his request, and others are served."""
    begin(t)
    refusal = t.session("main", token=t.issuer.token(ORIGIN + "/main/mcp", sub=None, client_id="robot"), check=False).started
    eq((refusal.final(20)["error"]["message"], refusal.status), ("There is no credential of this caller for this server", 403))
    s = t.session("main", token=person(t, "anna"))
    s.ask("tools/call", CALL)
    s.token = person(t, "anna", scope=" ".join("a-scope-with-a-long-name-%d" % k for k in range(200)))
    calls = [s.start("tools/call", dict(CALL, arguments={"text": "too much"})) for _ in range(3)]
    for call in calls:
        error = call.final(20)["error"]
        eq(error["code"], -32603)
        ok("main is told who calls, and that cannot be said: " in error["message"] and "4096 bytes" in error["message"], error)
    s.token = person(t, "anna", scope="a")
    eq(s.ask("tools/call", CALL)["result"]["content"][0]["text"], "x")
    eq([told(t, m).get("scope") for m in requests(t, "main", "tools/call")], ["use", "a"])
    ok("too much" not in json.dumps(received(t)), "it is not sent")
    eq(t.daemon.log("server_failing"), [])
    t.issuer.close()


@case(daemon=False, deadline=40)
def callers_of_an_endpoint(t):
    """BACK-MSG-10: the caller of an endpoint is told to each of its servers; whom that is for is each one's own."""
    begin(t, {"main": {"script": {}, "auth": AUTH}, "other": {"script": {}, "auth": dict(AUTH, audience="two")}},
          endpoints={"all": {"servers": {"main": {"prefix": "a_"}, "other": {"prefix": "b_"}}}})
    s = t.session("all", token=person(t, "bob", "all"))
    for name in ("a_echo", "b_echo"):
        s.ask("tools/call", dict(CALL, name=name))
    eq([(told(t, m)["sub"], told(t, m)["aud"]) for name in ("main", "other") for m in requests(t, name, "tools/call")], [("bob", AUDIENCE), ("bob", "two")])
    t.issuer.close()


@case(daemon=False, deadline=40)
def processes_that_outlive_the_gateway(t):
    """BACK-MSG-10: the next gateway tells them another token, that its fetcher has signed."""
    begin(t, sessions={"persist": True})
    s = t.session("main", token=person(t, "anna"))
    s.ask("tools/call", CALL)
    pid = s.pid()
    kill_gateway(t)
    eq((s.ask("tools/call", CALL).get("error"), t.daemon.children("main")), (None, [pid]))
    seen = [told(t, m) for m in t.daemon.messages(pid) if m.get("method") == "tools/call"]
    eq([claims["sub"] for claims in seen], ["anna"] * 3)
    eq([seen[0]["jti"] == claims["jti"] for claims in seen], [True, True, False])
    t.issuer.close()


@case(daemon=False)
def what_it_needs(t):
    """product §4: -t says what is missing, and what a command cannot have."""
    t.key_file = os.path.join(t.directory(), "a.pem")
    new_key(t)
    head = "public_url: 'https://g.example'\nauth: {mode: token, tokens: [{name: a, sha256: %s}], assertion_key: {file: %s}}\n" % (HASHES["secret"], t.key_file)
    for server, word in (("{command: cat, auth: {grant: assertion}}", "'audience' is missing"),
                         ("{command: cat, isolation: shared, auth: {grant: assertion, audience: a}}", "isolation session or principal"),
                         ("{command: cat, auth: {grant: assertion, audience: a, issuer: 'https://i.example'}}", "auth.issuer: is not used with grant assertion"),
                         ("{command: cat, auth: {grant: client_credentials}}", "is for a server with a 'url'"),
                         ("{command: cat, auth: {grant: token_exchange}}", "is for a server with a 'url'")):
        refused(head + "servers: {a: %s}\n" % server, word)
    good(head + "servers: {a: {command: cat, env: {AUTHORIZATION: x}, auth: {grant: assertion, audience: a}}}\n")
