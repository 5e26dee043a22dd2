# SPDX-License-Identifier: Apache-2.0
"""Who may what, when another configuration comes while the daemon runs. mcpgated.yaml(5), architecture.md "Reload"."""
import json
import os
import signal
import time

import issuer
import mcp
import wire
from c100_reload import ONE, TWO, entry, reload, starts, write
from c64_deny import ask, deny, ends_within, is_active, sse_end
from c62_oauth import METADATA, ORIGIN, RESOURCE
from c71_ctl import ctl
from c81_parked import ACCEPT, Caller, FORM, said
from c80_stateless import JSON, begin as begin_modern, fields, message
from harness import case, eq, merged, ok, wait_for


def next_gateway(t, before=lambda: None):
    """The gateway is killed; `before` runs while there is none."""
    count, old = len(t.daemon.log("gateway_ready")), t.daemon.find_gateway()
    t.daemon.gateway = None
    t.expect_error_log("gateway_exit")
    os.kill(old, signal.SIGKILL)
    before()
    wait_for(lambda: len(t.daemon.log("gateway_ready")) > count, 20, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()


def entries(t):
    return sorted((e["name"], e["origin"]) for e in ask(t, "GET", "/deny")["entries"])


def is_dead(pid):
    """It has ended, and waits for its parent."""
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0] == "Z"


def starts_nothing(t, server):
    """The status of a request that needs no process."""
    conn = t.conn()
    return conn.request("DELETE", "/%s/mcp" % server).status


@case(daemon=False, deadline=40)
def a_server_and_an_endpoint_of_one_name(t):
    """product §4: whoever has a session of the one keeps it, with its rules, when the other takes the name."""
    plain, joined = {"main": {"script": {}, "tools": {"deny": ["echo"]}}}, {"endpoints": {"main": {"servers": {"other": {"prefix": "x_"}}}}}

    def tools(session):
        return [tool["name"] for tool in session.ask("tools/list")["result"]["tools"]]
    t.start(plain)
    one = t.session()
    pid = one.pid()
    allowed = tools(one)
    reload(t, {"other": {"script": {}}}, joined)
    both = t.session()
    ok("x_echo" in tools(both), "the endpoint", tools(both))
    for _ in range(2):
        eq((tools(one), one.pid()), (allowed, pid))
        eq(one.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})["error"]["code"], -32602, "still denied")
        os.kill(pid, signal.SIGKILL)
        t.daemon.wait_log("child_state", "pid=%d " % pid, "to=gone")
        ok(one.pid() != pid, "a fresh process of the same server")
        pid = one.pid()
    reload(t, plain, {})
    eq((tools(one), tools(t.session())), (allowed, allowed))
    ok(all(name.startswith("x_") for name in tools(both)), "an endpoint still", tools(both))


# ---- denied tokens ----------------------------------------------------------------------------------------------------


def denying(*names):
    return {"auth": {"mode": "token", "tokens": [entry("one", ONE), entry("two", TWO)],
                     "deny": [{"issuer": "static", "sub": name} for name in names]}}


def may(t):
    return [starts(t, "main", token=token) == 200 for token in (ONE, TWO)]


@case(daemon=False)
def denied_tokens_of_the_file_and_of_the_operator(t):
    """AUTH-SES-07: the file's entries are those of the file, the operator's stay, and what he took away stays so until the file changes it."""
    t.start({"main": {}}, denying("one"))
    order = deny(t, issuer="static", sub="one")
    eq(order["origin"], "operator")
    eq(entries(t), [("one", "configuration"), ("one", "operator")])
    two = t.session(token=TWO)
    stream = two.get()
    reload(t, config=denying("two"))
    eq(stream.reader.next(5), None, "what is open ends")
    eq((entries(t), may(t)), ([("one", "operator"), ("two", "configuration")], [False, False]))
    table = ctl(t, "deny", "list")[0]
    ok("FROM" in table and "configuration" in table and "operator" in table, table)
    number = [e["number"] for e in ask(t, "GET", "/deny")["entries"] if e["name"] == "two"][0]
    eq(ctl(t, "deny", "remove", str(number))[0], "entry %d removed\n" % number)
    eq(may(t), [False, True])
    reload(t, config=dict(denying("two"), limits={"sessions": 50}))
    eq((entries(t), may(t)), ([("one", "operator")], [False, True]), "it stays away")
    next_gateway(t)
    eq((entries(t), may(t)), ([("one", "operator")], [False, True]), "in the next gateway as well")
    changed = denying("two")
    changed["auth"]["deny"][0]["until"] = "2099-01-31"
    reload(t, config=changed)
    eq((entries(t), may(t)), ([("one", "operator"), ("two", "configuration")], [False, False]), "the file has changed it")
    ask(t, "POST", "/deny-remove?number=%d" % order["number"])
    eq(may(t), [True, False])


@case(daemon=False)
def denied_tokens_while_there_is_no_gateway(t):
    """AUTH-SES-07 REL-43: entries that a reload brings or takes away while the gateway is down hold in the next; the operator's orders, too."""
    t.start({"main": {}}, denying("one"))
    deny(t, issuer="static", sub="two")

    def meanwhile():
        write(t, config=denying("one", "two"))
        t.daemon.process.send_signal(signal.SIGHUP)
    next_gateway(t, meanwhile)
    wait_for(lambda: entries(t) == [("one", "configuration"), ("two", "configuration"), ("two", "operator")], 10, "all three")
    next_gateway(t, lambda: (write(t, config=denying()), t.daemon.process.send_signal(signal.SIGHUP)))
    wait_for(lambda: entries(t) == [("two", "operator")], 10, "his alone")
    eq(may(t), [True, False])


@case(daemon=False, deadline=60)
def a_configuration_that_a_dead_gateway_had_used_is_used(t):
    """REL-43: what a gateway has said is heard although it is killed before the keeper has read it; no other is asked again."""
    t.start({"main": {}})
    gateway, keeper = t.daemon.gateway, t.daemon.pid
    t.expect_error_log("gateway_exit")
    os.kill(gateway, signal.SIGSTOP)
    write(t, {"main": {}, "new": {}})
    os.kill(keeper, signal.SIGHUP)
    t.daemon.wait_log("reload_state", "to=judged")
    os.kill(keeper, signal.SIGSTOP)
    os.kill(gateway, signal.SIGCONT)
    wait_for(lambda: starts_nothing(t, "new") != 404, 10, "the gateway uses it")
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: is_dead(gateway), 10, "its end")
    os.kill(keeper, signal.SIGCONT)
    t.daemon.gateway = None
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 20, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    t.daemon.wait_log("reload_state", "to=idle")
    eq(len([line for line in t.daemon.log("reload_state") if "to=judged" in line]), 1, "gateways that were asked")
    eq(starts(t, "new"), 200)


@case(daemon=False, deadline=60)
def no_place_for_denied_tokens(t):
    """AUTH-SES-07: an entry of the file that the operator's orders leave no place for is said; it holds with the reload after there is one."""
    def denying_many(count):
        auth = denying("one")["auth"]
        return {"auth": dict(auth, mode="oauth", issuers=[{"issuer": i.url}],
                             deny=[{"issuer": i.url, "jti": "t%d" % n} for n in range(count)] + auth["deny"]), "public_url": ORIGIN}
    i = issuer.Issuer()
    t.start({"main": {}}, denying_many(4000))
    eq(starts(t, "main", token=TWO), 200)
    conn = t.conn(address=t.daemon.admin)
    for n in range(4001, 9999):
        answer = conn.request("POST", "/deny-add", [("Content-Type", "application/json")], json.dumps({"issuer": i.url, "jti": "o%d" % n}).encode())
        eq((answer.status, bool(answer.read())), (200, True))
    order = deny(t, issuer="static", sub="two")
    ok("as many entries as there may be" in deny(t, 409, issuer=i.url, sub="x")["error"], "the operator is told")
    t.expect_error_log("deny_list_full")
    config = denying_many(4001)
    reload(t, config=config)
    t.daemon.wait_log("deny_list_full", "name=t4000")
    eq(may(t), [False, False], "all others hold")
    ask(t, "POST", "/deny-remove?number=%d" % order["number"])
    ctl(t, "reload")
    eq(len(t.daemon.log("deny_list_full")), 1)
    eq(len(entries(t)), 10000)
    eq(may(t), [False, True])


# ---- open streams under tokens of issuers -----------------------------------------------------------------------------


def oauth(i, **of_issuer):
    return {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [dict({"issuer": i.url, "leeway": "1s", "jwks_interval": "1s"}, **of_issuer)]}}


def listen(t, token, notifications):
    """A modern client's stream, acknowledged."""
    body = message("subscriptions/listen", {"notifications": notifications})
    reader = wire.EventReader(begin_modern(t, "main", body, fields(body) + mcp.bearer(token)).response())
    eq(json.loads(reader.next(mcp.TIMEOUT).data)["method"], "notifications/subscriptions/acknowledged")
    return reader


def listen_end(reader):
    """None at its end; a modern client is told why."""
    def end(timeout):
        event = reader.next(timeout)
        if event is not None and b"error" in event.raw:
            eq(json.loads(event.data)["error"]["message"], "The access token is no longer valid")
            event = reader.next(timeout)
        return event
    return end


def but_for_changes(stream):
    """Without what it tells of lists, which a reload of rules may change."""
    def following(timeout):
        told = stream(timeout)
        while told is not None and "list_changed" in repr(getattr(told, "data", told)):
            told = stream(timeout)
        return told
    return following


def open_streams(t, token):
    """What tells of the end of each kind: a session's, one of HTTP+SSE, one of the modern era."""
    return [but_for_changes(stream) for stream in (
        t.session(token=token).get().next, sse_end(t.sse(token=token, begin=False)), listen_end(listen(t, token, {"toolsListChanged": True})))]


def nothing_ends(streams):
    for stream in streams:
        try:
            ok(False, "a stream has told something", stream(0.1))
        except TimeoutError:
            pass


MAIN = {"script": {"capabilities": {"tools": {"listChanged": True}}}}


@case(daemon=False, deadline=90)
def open_streams_follow_the_rules(t):
    """product §4 AUTH-SES-07: what became stricter ends the streams whose tokens do not meet it any more, at once; those of others go on."""
    i = issuer.Issuer()
    more = ["https://more.example/mcp"]
    tools = {"all": {"allow": {"main": ["*"]}, "when": {"team": ["red"]}}}
    steps = [  # what one token has and the other has not; the rule of the server, of the issuer, and besides
        ("scopes", {"scope": "use more"}, {"scope": "use"}, {"scopes": ["more"]}, {}, {}),
        ("clients", {"client_id": "one"}, {"client_id": "two"}, {"clients": ["one"]}, {}, {}),
        ("required_claims", {"team": "red"}, {"team": "blue"}, {}, {"required_claims": {"team": ["red"]}}, {}),
        ("max_lifetime", {"exp": int(time.time()) + 300}, {}, {}, {"max_lifetime": "400s"}, {}),
        ("roles", {"team": "red"}, {"team": "blue"}, {}, {}, {"roles": tools}),
    ]
    t.start({"main": MAIN}, oauth(i))
    for title, meets, does_not, server, of_issuer, besides in steps:
        kept = open_streams(t, i.token(RESOURCE, sub="bob", **meets))
        ended = open_streams(t, i.token(RESOURCE, sub="alice", **does_not))
        reload(t, {"main": dict(MAIN, **server)}, merged(oauth(i, **of_issuer), besides))
        ends_within(3, title, *ended)
        nothing_ends(kept)
        reload(t, {"main": MAIN}, oauth(i))
    t.daemon.wait_log("stream_over", "reason=revoked")
    for title, before, after in (("audience of the server", ({"audience": more}, {}), ({}, {})), ("audience of the issuer", ({}, {"audience": more}), ({}, {}))):
        reload(t, {"main": dict(MAIN, **before[0])}, oauth(i, **before[1]))
        kept, ended = open_streams(t, i.token(RESOURCE, sub="bob")), open_streams(t, i.token(more[0], sub="alice"))
        reload(t, {"main": dict(MAIN, **after[0])}, oauth(i, **after[1]))
        ends_within(3, title, *ended)
        nothing_ends(kept)
    for title, server, of_issuer in (("algorithms of the server", {"algorithms": ["ES256"]}, {}), ("algorithms of the issuer", {}, {"algorithms": ["ES256"]}),
                                     ("an issuer that is asked", {}, {"introspection": {"endpoint": i.url + "/introspect", "client_id": "rs",
                                                                                        "client_secret": "secret", "always": True}})):
        ended = open_streams(t, i.token(RESOURCE))
        reload(t, {"main": dict(MAIN, **server)}, oauth(i, **of_issuer))
        ends_within(3, title, *ended)
        reload(t, {"main": MAIN}, oauth(i))


# ---- limits -----------------------------------------------------------------------------------------------------------


@case(daemon=False)
def what_callers_have_used_is_counted_on(t):
    """product §4: rate, concurrency and tools.limits that stay go on over a reload, also of a server that has become another one."""
    def main(n):
        return {"main": {"script": {}, "env": {"N": str(n)}, "rate": {"calls": 50, "per": "1h"}, "concurrency": 2,
                         "tools": {"limits": [{"tools": ["other"], "concurrency": 1}, {"tools": ["echo"], "calls": 2, "per": "1h"}, {"tools": ["do"], "concurrency": 1}]}}}
    t.start(main(0))
    s = t.session()
    status = lambda name="echo", arguments={"text": "x"}: send_call(s, name, arguments)
    eq([status() for _ in range(3)], [200, 200, 429])
    running = s.start_do(["progress", 1], ["wait_cancel"], token="p")
    running.next()
    text = {"steps": [["text", "x"]]}
    eq(status("do", text), 429)
    for n, servers in enumerate((dict(main(0), a={"script": {}}), dict(main(0), b={"script": {}}), main(1))):
        reload(t, servers)
        eq((status(), status("do", text)), (429, 429), "reload %d" % n)
        if n == 2:
            s = t.session()
            eq((status(), status("do", text)), (429, 429), "in a session of the other one")
    changed = main(1)
    changed["main"]["tools"]["limits"][1]["calls"] = 3
    reload(t, changed)
    eq([status() for _ in range(4)], [200, 200, 200, 429], "another rate begins anew")


def send_call(s, name, arguments):
    exchange = s.post(mcp.request(s.new_id(), "tools/call", {"name": name, "arguments": arguments}))
    return exchange.status


# ---- issuers, claims, pins --------------------------------------------------------------------------------------------


@case(daemon=False, deadline=60)
def issuers_come_and_go(t):
    """product §4 AUTH-ISS-01 AUTH-ISS-04: one that is added is trusted at once, one that is removed is not, and what is open for its tokens ends; others go on."""
    a, b = issuer.Issuer(), issuer.Issuer()

    def trusting(*issuers):
        return {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url} for i in issuers]}}
    t.start({"main": MAIN}, trusting(a))
    of_a, of_b = a.token(RESOURCE, sub="alice"), b.token(RESOURCE, sub="bob")
    kept = open_streams(t, of_a)
    eq((starts(t, "main", token=of_a), starts(t, "main", token=of_b)), (200, 401))
    err = reload(t, config=trusting(b, a))[1]
    ok("warning: auth.issuers: %s is now the first: clients that registered with %s have to register again, with the new one" % (b.url, a.url) in err, "AUTH-ISS-04", err)
    eq((starts(t, "main", token=of_a), starts(t, "main", token=of_b)), (200, 200))
    ended = open_streams(t, of_b)
    session = t.session(token=of_b)
    nothing_ends(kept)
    reload(t, config=trusting(a))
    ends_within(3, "of the one that was removed", *ended)
    eq((starts(t, "main", token=of_a), starts(t, "main", token=of_b)), (200, 401))
    eq(session.post(mcp.request(1, "ping")).status, 401)
    nothing_ends(kept)


@case(daemon=False, deadline=60)
def old_addresses_keep_their_resource(t):
    """AUTH-AUD-01 product §4: a session goes on at the address that it began at, for tokens of that resource, whatever address new ones have."""
    i = issuer.Issuer()
    t.start({"main": MAIN}, oauth(i))
    s = t.session(token=i.token(RESOURCE))
    reload(t, {"main": dict(MAIN, env={"N": "1"})})
    s.echo("retired")
    reload(t, {"main": dict(MAIN, env={"N": "1"}, path="/other")})
    s.echo("at another address")
    eq(starts(t, "main", token=i.token(RESOURCE)), 404, "new ones")
    s.token = None
    refused = s.post(mcp.request(1, "ping"))
    eq(refused.status, 401)
    ok(METADATA in refused.response.header("www-authenticate"), "the resource of the old address")


@case(daemon=False, deadline=60)
def another_server_at_the_address(t):
    """AUTH-AUD-01 AUTH-JWT-13 product §4: sessions of a removed server go on by its own rules, not by those of the one that has its address now."""
    i = issuer.Issuer()
    loose = merged(oauth(i), {"auth": {"bind_client": False}})
    t.start({"main": dict(MAIN, clients=["one"])}, loose)
    meets, does_not = i.token(RESOURCE, client_id="one"), i.token(RESOURCE, client_id="two")
    old = t.session(token=meets)
    reload(t, {"next": dict(MAIN, path="/main/mcp")}, loose)
    t.session(token=does_not, path="/main/mcp").echo("at the new one")
    old.echo("at the old one")
    stream = old.get()
    old.token = does_not
    eq(old.post(mcp.request(1, "ping")).status, 403)
    eq(old.get(check=False).response.status, 403)
    old.token = meets
    reload(t, {"next": dict(MAIN, path="/main/mcp", clients=["two"])}, loose)
    nothing_ends([stream.next])


class Half:
    """A POST that has been let in, and whose body has begun."""

    def __init__(self, t, path, headers, body):
        self.conn, self.rest = t.conn(), body[10:]
        self.conn.send(self.conn.head("POST", path, headers + [("Expect", "100-continue")], len(body)))
        eq(self.conn.response().status, 100, "it was let in")
        self.conn.send(body[:10])

    def status(self):
        self.conn.send(self.rest)
        return self.conn.response().status


@case(daemon=False)
def bodies_that_come_over_a_reload(t):
    """AUTH-SES-07: a request that was let in is judged again when its body is there: a token that is gone, or is another one, gets 401."""
    tokens = lambda *entries: {"auth": {"mode": "token", "tokens": list(entries)}}
    t.start({"main": {}}, tokens(entry("one", ONE), entry("two", TWO)))
    waits = [Half(t, "/main/mcp", [JSON, ("Accept", mcp.BOTH)] + mcp.bearer(token), mcp.encode(mcp.initialize())) for token in (ONE, TWO)]
    reload(t, config=tokens(entry("one", "another-" + ONE), entry("two", TWO)))
    eq([half.status() for half in waits], [401, 200])


@case(daemon=False)
def bodies_that_come_when_no_issuer_is_trusted_any_more(t):
    """AUTH-SES-07 AUTH-DCR-01: a stream under an issuer's token ends when that cannot be confirmed; no client is handed out any more."""
    i = issuer.Issuer()
    i.known = {"opaque": is_active("alice")}
    asking = {"endpoint": i.url + "/introspect", "client_id": "rs", "client_secret": "secret", "ttl": "1s"}
    t.start({"main": MAIN}, merged(oauth(i, introspection=asking), {"auth": {"registration_facade": {"client_id": "public"}}}))
    body = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    waits = [Half(t, "/main/mcp", fields(body) + mcp.bearer("opaque"), mcp.encode(body)),
             Half(t, "/register", [JSON], b'{"redirect_uris":["http://127.0.0.1/"]}')]
    err = reload(t, config={"auth": {"mode": "anonymous"}})[1]
    ok("warning: auth: no token is required any more" in err, "the operator is told", err)
    eq([half.status() for half in waits], [200, 404])
    reader = wire.EventReader(waits[0].conn.last)
    eq(json.loads(reader.next(mcp.TIMEOUT).data)["method"], "notifications/subscriptions/acknowledged")
    wait_for(lambda: reader.next(10) is None, 15, "the end of the stream")
    t.daemon.wait_log("stream_over", "reason=unconfirmed")
    eq(t.session().echo("x"), "x", "the same gateway")


# ---- calls that wait for their clients --------------------------------------------------------------------------------


class CallerWith(Caller):
    """With a token."""

    def __init__(self, t, token, *args, **kw):
        Caller.__init__(self, t, *args, **kw)
        self.bearer = mcp.bearer(token)

    def head(self, body):
        return fields(body) + self.bearer


def parked(t, token, question, server="main"):
    """A call whose client has been asked, and its process."""
    c = CallerWith(t, token, [["ask", question, "elicitation/create", FORM], ["asked"]], server)
    c.state = c.asked()[1]
    c.process = next(p for p in t.daemon.children(server) if b"[\"ask\",%d" % question in t.daemon.record(p))
    return c


@case(daemon=False)
def denied_while_it_is_parked(t):
    """AUTH-SES-07: a call that waits for its client ends with the token of the request that was answered, be it denied or removed; others wait on."""
    t.start({"main": {}}, denying())
    one, two = parked(t, ONE, 71), parked(t, TWO, 72)
    deny(t, issuer="static", sub="one")
    eq(said(t, one.process, 71)[0]["result"], {"action": "cancel"})
    eq(json.loads(two.text(two.state, {"r1": ACCEPT}))[0]["result"], ACCEPT)
    two = parked(t, TWO, 73)
    reload(t, config={"auth": {"mode": "token", "tokens": [entry("one", ONE)]}})
    eq(said(t, two.process, 73)[0]["result"], {"action": "cancel"})


@case(daemon=False)
def its_server_is_replaced_while_it_is_parked(t):
    """product §4: what its client has to say would reach the server that is in use now: the call ends, and its process."""
    t.start({"main": {}, "other": {}}, denying())
    c, other = parked(t, ONE, 71), parked(t, ONE, 71, "other")
    reload(t, {"main": {"env": {"A": "1"}}, "other": {}})
    eq(said(t, c.process, 71)[0]["result"], {"action": "cancel"})
    wait_for(lambda: c.process not in t.daemon.children("main"), 5, "the end of its process")
    eq(c.refused(c.state, {"r1": ACCEPT}), "invalid_request_state")
    eq(json.loads(other.text(other.state, {"r1": ACCEPT}))[0]["result"], ACCEPT, "that of a server that stays goes on")
    eq(parked(t, ONE, 72).process in t.daemon.children("main"), True, "one that is made now")


@case(daemon=False, deadline=60)
def a_request_waits_for_its_issuer(t):
    """AUTH-KEY-07: over a reload; it is judged by the audience that holds then."""
    i = issuer.Issuer(is_open=False)
    more = "https://more.example/mcp"
    t.start({"main": dict(MAIN, audience=[more])}, oauth(i))
    waits = []
    for aud in (more, RESOURCE):
        conn = t.conn()
        body = mcp.encode(mcp.initialize())
        conn.send(conn.head("POST", "/main/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH)] + mcp.bearer(i.token(aud)), len(body)) + body)
        waits.append(conn)
    wait_for(lambda: i.asked, 10, "the question for keys")
    wait_for(lambda: len(t.daemon.log("request")) >= 2, 10, "both requests")
    reload(t, {"main": MAIN})
    i.gate.set()
    eq([conn.response().status for conn in waits], [401, 200])


@case(daemon=False, deadline=60)
def claims_over_a_reload(t):
    """AUTH-DWN-02: a session keeps the claims that it began with; one that begins has what the new configuration names."""
    i = issuer.Issuer()
    server = lambda claim: {"main": {"script": {}, "env": {"WHO": "${claim:%s}" % claim}}}
    t.start(server("team"), oauth(i))
    token = i.token(RESOURCE, team="red", room="5")
    first = t.session(token=token)
    who = lambda s: dict(e.split("=", 1) for e in s.probe()["environ"])["WHO"]
    eq(who(first), "red")
    reload(t, server("room"))
    second = t.session(token=token)
    eq((who(first), who(second)), ("red", "5"))
    reload(t, server("room"), merged(oauth(i), {"limits": {"sessions": 50}}))
    eq((who(first), who(second), who(t.session(token=token))), ("red", "5", "5"))
