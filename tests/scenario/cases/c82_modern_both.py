# SPDX-License-Identifier: Apache-2.0
"""Requests of 2026-07-28 at servers of 2026-07-28: passed on, bridging.md §2.4."""
import json
import os
import signal

import mcp
from c80_stateless import META, ask, begin, do, fields, listen, message, messages_of
from c81_parked import ACCEPT, ALICE, FORM, TOKENS, Caller
from harness import case, eq, ok, wait_for

CAPS = {"elicitation": {}, "roots": {}}
ELICIT = {"q": {"method": "elicitation/create", "params": FORM}}
SERVERS = {
    "main": {"script": {"era": "modern"}},
    "all": {"script": {"era": "modern"}, "isolation": "shared"},
    "two": {"script": {"era": "modern"}, "pool": {"max": 4, "requests_per_process": 1, "idle_timeout": "1500ms"}},
}
# What a server says of how long its result holds, and what its client gets.
HINTS = {"none": ({}, 0, "private"), "public": ({"ttlMs": 500, "cacheScope": "public"}, 500, "public"),
         "private": ({"ttlMs": 7, "cacheScope": "private"}, 7, "private"),
         "strange": ({"ttlMs": -1, "cacheScope": "all"}, 0, "private"), "wrong": ({"ttlMs": "5", "cacheScope": 1}, 0, "private")}
SERVERS.update({name: {"script": {"era": "modern", "on": {"resources/read": [
    ["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % json.dumps(dict({"contents": []}, **given))]]}}}
    for name, (given, _, _) in HINTS.items()})
HINTED = SERVERS["public"]["script"]["on"]["resources/read"]
CONFIG = {"defaults": {"era": "modern", "pool": {"idle_timeout": "1500ms"}}}

# Servers that do not keep to either era: what they do when asked, and whether a session, a second one, and a request are served.
ODD = {
    "refuses": ({"on": {"server/discover": [["error", -32601, "no"]]}}, "yyy"),
    "params": ({"on": {"server/discover": [["error", -32602, "no"]]}}, "yyy"),
    "early": ({"on": {"server/discover": [["error", -32000, "no"]]}}, "yyy"),
    "zero": ({"on": {"server/discover": [["error", 0, "no"]]}}, "yyy"),
    "exits": ({"on": {"server/discover": [["exit", 3]]}}, "yyy"),
    "ignores": ({"on": {"server/discover": []}}, "yyy"),
    "late": ({"on": {"server/discover": [["sleep", 1.2], ["error", -32601, "no"]]}}, "yyy"),
    "object": ({"start": [["line", "{}"]]}, "yyy"),
    "banner": ({"start": [["line", "server 1.0"]]}, "yyy"),
    "both": ({"era": "both"}, "yyy"),
    "modern": ({"era": "modern"}, "yyy"),
    "vague": ({"era": "modern", "init": [["error", -32601, "what is that?"]]}, "yyy"),
    "slow": ({"era": "modern", "init": [["error", 0, "no"]], "on": {"server/discover": [["sleep", 0.5], ["answer"]]}}, "yyy"),
    "modern_object": ({"era": "modern", "start": [["line", "{}"]]}, "yyy"),
    "silent": ({"era": "modern", "init": []}, "nyy"),
    "ends": ({"era": "modern", "init": [["exit", 3]]}, "nyy"),
    "mute": ({"init": [], "on": {"server/discover": []}}, "nnn"),
    "broken": ({"start": [["exit", 3]]}, "nnn"),
}


class Rounds(Caller):
    """A call whose server does the next list of steps each time that it is tried."""

    def __init__(self, t, *rounds, **kw):
        super().__init__(t, [], **dict({"caps": CAPS}, **kw))
        self.params = {"name": "do", "arguments": {"rounds": list(rounds)}}


def sent(t, server, method):
    """The params of all requests of this method that its processes got."""
    return [m["params"] for p in t.daemon.children(server) for m in t.daemon.messages(p) if m.get("method") == method]


@case
def requests_are_passed_on(t):
    """BACK-MSG-01 bridging.md §2.4: with what the client said of itself, capabilities, name and all; its result comes back."""
    extra = {"vendor/x": [1], "traceparent": "00-1"}
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["text", "hello"]]}}, caps={"sampling": {}}, **extra)
    for server in ("main", "all"):
        found = messages_of(begin(t, server, body).response())
        eq((found[0]["result"]["resultType"], found[0]["result"]["content"][0]["text"]), ("complete", "hello"))
        eq(found[0]["result"]["_meta"][META + "serverInfo"]["name"], "scripted")
        eq([m for p in t.daemon.children(server) for m in t.daemon.messages(p) if m.get("method") == "initialize"], [])
        told = sent(t, server, "tools/call")[-1]["_meta"]
        eq({k: told[k] for k in body["params"]["_meta"]}, body["params"]["_meta"])


@case
def what_is_missing_is_added(t):
    """BACK-MSG-05 MOD-RES-01 MOD-RES-03: and what is there stays, if it is what it may be."""
    for name, (given, ttl, scope) in HINTS.items():
        result = ask(t, name, "resources/read", {"uri": "test://x"})[1][0]["result"]
        eq((result["resultType"], result["ttlMs"], result["cacheScope"]), ("complete", ttl, scope), given)


@case(own=True, servers={"main": {"script": {"era": "modern", "on": {"resources/read": HINTED}}}},
      config={"auth": {"mode": "token", "tokens": TOKENS}, "defaults": {"era": "modern"}})
def nothing_is_public_behind_tokens(t):
    """MOD-RES-04: what one caller may see is no other's, whatever the server says."""
    body = message("resources/read", {"uri": "test://x"})
    result = messages_of(begin(t, "main", body, fields(body) + mcp.bearer(ALICE)).response())[0]["result"]
    eq((result["ttlMs"], result["cacheScope"]), (500, "private"))


@case
def state_of_a_server(t):
    """MOD-MRTR-03 BACK-MSG-04: the keys and the state are the server's own; the state is sealed, and comes back as it was."""
    c = Rounds(t, [["input", dict(ELICIT, r={"method": "roots/list"})]], [["input", ELICIT]], [["told"]])
    answers = {"q": ACCEPT, "r": {"roots": []}}
    requests, first = c.asked()
    eq(requests, dict(ELICIT, r={"method": "roots/list"}))
    requests, second = c.asked(first, answers)
    eq(requests, ELICIT)
    eq(json.loads(c.text(second, {"q": ACCEPT})), {"q": ACCEPT})
    eq([p.get("requestState") for p in sent(t, "main", "tools/call") if p["arguments"] == c.params["arguments"]], [None, "1", "2"])
    ok(first.startswith("g2.") and first != second, "sealed")
    other = Rounds(t, [["told"]])
    for wrong in (first[:-3] + "AAA", "1", "g2.x"):
        eq(c.refused(wrong, answers), "invalid_request_state")
    eq(other.refused(first, answers), "invalid_request_state", "of another request")


@case(own=True)
def state_lives_in_no_process_of_ours(t):
    """bridging.md §2.6: what a server gave is good after the end of the gateway's process, too: it is in the seal."""
    c = Rounds(t, [["input", ELICIT]], [["told"]])
    _, state = c.asked()
    before = t.daemon.gateway
    t.expect_error_log("gateway_exit")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: t.daemon.find_gateway() not in (None, before), 5, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    eq(json.loads(c.text(state, {"q": ACCEPT})), {"q": ACCEPT})


@case
def the_process_that_asked_is_asked_again(t):
    """bridging.md §2.4: servers sign their state with keys of their own process."""
    conns = []
    for _ in range(3):
        c = Rounds(t, [["input", ELICIT]], [["text", "@PID@"]], server="two")
        body = message("tools/call", {"name": "do", "arguments": {"steps": [["sleep", 0.3], ["text", "busy"]]}})
        conns += [begin(t, "two", body) for _ in range(2)]
        _, state = c.asked()
        asked = [p for p in t.daemon.children("two") if b'"rounds"' in t.daemon.record(p)
                 and json.dumps(c.params["arguments"]["rounds"], separators=(",", ":")).encode() in t.daemon.record(p)]
        for conn in conns:
            messages_of(conn.response())
        conns = []
        ok(int(c.text(state, {"q": ACCEPT})) in asked, "another process")


@case
def servers_that_ask_what_they_may_not(t):
    """MOD-MRTR-02 MOD-RES-02: an undeclared kind, another method, nothing at all, a kind of result that is none."""
    rows = (([["input", {"r": {"method": "sampling/createMessage", "params": {}}}]], CAPS), ([["input", ELICIT]], {}),
            ([["input", {"q": {"method": "tools/list"}}]], CAPS), ([["input", {"q": 1}]], CAPS),
            ([["result", {"resultType": "input_required"}]], CAPS), ([["result", {"resultType": "later"}]], CAPS),
            ([["result", {"resultType": 7}]], CAPS))
    for steps, caps in rows:
        status, answer = Rounds(t, steps, caps=caps).ask()
        eq((status, answer["error"]["code"], answer["error"]["data"]["reason"]), (200, -32603, "child_protocol_error"), steps)


def raw_input(members):
    """The step of a result that asks, with these members as they are written here."""
    return [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"resultType":"input_required",%s,"requestState":"1"}}' % members]]


@case
def servers_that_ask_twice(t):
    """MOD-MRTR-02: what was looked at is what its client sees, whatever name is repeated or written with an escape."""
    first, other = '"method":"elicitation/create"', '"sampling/createMessage"'
    t.expect_invalid("inputRequests", "what the server asks has no params, and is passed on as it is")
    for name in ("inputRequests", "input\\u0052equests"):
        c = Rounds(t, raw_input('"inputRequests":{"q":{%s}},"%s":{"r":{"method":%s}}' % (first, name, other)), caps=CAPS)
        body = c.begin().response().read()
        ok(b"sampling" not in body, "not looked at", body)
        eq(json.loads(body)["result"]["inputRequests"], {"q": {"method": "elicitation/create"}})
    for more in ('"method":%s' % other, '"m\\u0065thod":%s' % other, '"params":{},"params":{"mode":"url"}',
                 '"params":{"mode":"form","mode":"url"}', '"params":{"mode":"form","m\\u006fde":"url"}'):
        status, answer = Rounds(t, raw_input('"inputRequests":{"q":{%s,%s}}' % (first, more)), caps=CAPS).ask()
        eq((status, answer["error"]["data"]["reason"]), (200, "child_protocol_error"), more)
    status, answer = Rounds(t, raw_input('"inputRequests":{"q":{%s},"q":{%s}}' % (first, first)), caps=CAPS).ask()
    eq((status, answer["error"]["data"]["reason"]), (200, "child_protocol_error"), "one key for two")


@case
def errors_are_passed_on(t):
    """FRONT-ERA-11 bridging.md §2.4: -32601 is 404, -32021 is 400 with its data; what is between the server and us is not."""
    needed = {"requiredCapabilities": {"sampling": {}}}
    rows = ((-32601, 404, -32601), (-32021, 400, -32021), (-32020, 200, -32603), (-32022, 200, -32603), (-32602, 200, -32602),
            (-32000, 200, -32000))
    for given, status, got in rows:
        answer = ask(t, "main", "tools/call", {"name": "do", "arguments": {"steps": [["error", given, "why", needed]]}})
        eq((answer[0], answer[1][0]["error"]["code"], answer[1][0]["error"]["data"]), (status, got, needed), given)


@case
def progress_and_logs(t):
    """MOD-PROG-01 MOD-LOG-01: by the token of the request; log lines for who asked, at his level."""
    log = ["notify", "notifications/message", {"level": "error", "data": "x"}]
    found = do(t, "main", ["progress", 1], log, ["text", "done"], token="mine", level="warning")
    eq([m.get("method") for m in found[:-1]], ["notifications/progress", "notifications/message"])
    eq(found[0]["params"]["progressToken"], "mine")
    eq(len(do(t, "main", log, ["text", "done"])), 1)


@case
def changes_are_heard(t):
    """MOD-SUB-02 BACK-MSG-03: a listen hears what the pool's own subscription brings, with its own id."""
    conn, read, granted = listen(t, "all", {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]}, 5)
    eq(granted, {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]})
    do(t, "all", ["changed", "notifications/resources/updated", {"uri": "test://a"}], ["text", "said"])
    eq(read(), {"jsonrpc": "2.0", "method": "notifications/resources/updated",
                "params": {"_meta": {META + "subscriptionId": 5}, "uri": "test://a"}})
    conn.close()


@case
def leaving_cancels(t):
    """CXL-04"""
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}})
    conn = begin(t, "main", body)
    wait_for(lambda: any(b"wait_cancel" in t.daemon.record(p) for p in t.daemon.children("main")), 3, "the call")
    conn.close()
    wait_for(lambda: any(m.get("method") == "notifications/cancelled" for p in t.daemon.children("main")
                         for m in t.daemon.messages(p)), 3, "the cancellation")


# ---- what is of neither era ---------------------------------------------------

def odd_servers():
    found = {}
    for name, (script, _) in ODD.items():
        for who in ("session", "request"):  # each finds out for itself
            found["%s_%s" % (name, who)] = {"script": script}
    return found


@case(deadline=120, servers=odd_servers(), config={"defaults": {"era": "auto", "start": {"timeout": "1s"}, "pool": {"idle_timeout": "1500ms"}}})
def servers_of_neither_era(t):
    """BACK-ERA-03 BACK-ERA-05 bridging.md §1.10, §8 (8): each before clients of both eras; silent at initialize, it is asked the next time."""
    for name, (_, served) in ODD.items():
        got = ""
        for _ in range(2):
            s = t.session(name + "_session", check=False)
            answer = s.started.final(10)
            got += "y" if "result" in answer else "n"
            if "result" not in answer:
                t.will_end(s.started, s.path)
        _, found = ask(t, name + "_request", "server/discover")
        got += "y" if "result" in found[0] else "n"
        eq(got, served, name)


@case(servers={"both": {"script": {"era": "both"}, "isolation": "shared"}}, config={"defaults": {"era": "auto"}})
def who_serves_already_is_asked_beside(t):
    """bridging.md §1.10 (4): a modern client comes to processes that serve older ones; from then on the server is modern for both."""
    s = t.session("both")
    eq(s.echo("old"), "old")
    eq(len(sent(t, "both", "server/discover")), 0)

    def is_modern():
        text = "new"
        _, found = ask(t, "both", "tools/call", {"name": "echo", "arguments": {"text": text}})
        eq(found[0]["result"]["content"][0]["text"], text)
        return any(META + "protocolVersion" in p.get("_meta", {}) for p in sent(t, "both", "tools/call"))
    wait_for(is_modern, 5, "calls as of 2026-07-28")
    eq(s.echo("again"), "again")
    ok(META + "protocolVersion" in sent(t, "both", "tools/call")[-1].get("_meta", {}), "its calls, too")
    wait_for(lambda: len(t.daemon.children("both")) == 1, 5, "the end of the process before")
