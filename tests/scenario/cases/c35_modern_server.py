# SPDX-License-Identifier: Apache-2.0
"""Clients of the older revisions at servers of 2026-07-28. bridging §1.10, §2.2; requirements §18."""
import json

import mcp
from harness import case, eq, ok, wait_for

META = "io.modelcontextprotocol/"
REFUSES = {"init": [["error", -32601, "what is that?"]]}
DISCOVER = "server/discover"
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
ELICIT = {"q": {"method": "elicitation/create", "params": FORM}}
CAPS = {"elicitation": {}, "sampling": {}, "roots": {}}


def probed(*steps):
    """A server that refuses initialize, and does this when it is asked for server/discover."""
    return {"script": dict(REFUSES, on={DISCOVER: list(steps)})}


SERVERS = {
    "main": {"era": "modern"},
    "old": {},
    "both": {"era": "both"},
    "pinned": {"script": {"era": "modern"}, "era": "modern"},
    "vague": {"script": {"era": "modern", "init": [["error", -32601, "what is that?"]]}},
    "banner": {"script": {"era": "modern", "start": [["line", "server 1.0"], ["line", "{}"]]}},
    "shared": {"script": {"era": "modern"}, "isolation": "shared", "pool": {"max": 2, "idle_timeout": "1s"}},
    "mine": {"script": {"era": "modern"}, "isolation": "principal", "pool": {"max": 2, "idle_timeout": "1s"}},
    "exits": probed(["exit", 1]),
    "e32601": probed(["error", -32601, "no"]), "e32602": probed(["error", -32602, "no"]),
    "e32000": probed(["error", -32000, "no"]), "e0": probed(["error", 0, "no"]),
    "garbage": probed(["line", '{"jsonrpc":"2.0","id":@ID@,"result":[]}']),
    "mute": {"script": {"era": "modern", "caps": {"tools": {}}}},
    "deaf": {"script": {"era": "modern", "on": {"subscriptions/listen": [["error", -32601, "no"]]}}},
}


def methods(t, pid):
    return [m.get("method") for m in t.daemon.messages(pid)]


def first_methods(t, server):
    """What each process of the server was asked first."""
    return sorted(json.loads(data.splitlines()[0])["method"] for _, data in t.daemon.records_of(server) if data)


def initialize(t, server):
    s = t.session(server, check=False)
    answer = s.started.final(20)
    t.will_end(s.started, s.path)
    return answer


@case(own=True)
def legacy_servers_are_asked_nothing_else(t):
    """BACK-ERA-07: who knows initialize gets that first, and is started once; a server of both eras as well."""
    for server in ("old", "both"):
        s = t.session(server)
        s.echo("x")
        eq(t.daemon.started(server), 1)
        eq(methods(t, s.pid())[:2], ["initialize", "notifications/initialized"])


@case(own=True)
def modern_servers_are_found(t):
    """BACK-ERA-01 BACK-ERA-02 BACK-ERA-04 BACK-ERA-05: by what they refuse initialize with, or by a question; once."""
    for server, first, then in (("main", ["initialize", DISCOVER], 1), ("banner", ["initialize", DISCOVER], 1),
                                ("vague", ["initialize", DISCOVER, DISCOVER], 1), ("pinned", [DISCOVER], 1)):
        s = t.session(server)
        eq(s.echo("x"), "x", server)
        eq(first_methods(t, server), sorted(first), server)
        t.session(server).echo("x")
        eq(t.daemon.started(server), len(first) + then, server)


@case(own=True)
def what_is_no_proof(t):
    """BACK-ERA-03: errors of any code, a result that is none, an end: the server is legacy, its refusal the client's."""
    for server in ("exits", "e32601", "e32602", "e32000", "e0", "garbage"):
        for started in (3, 4):
            answer = initialize(t, server)
            eq(answer["error"], {"code": -32601, "message": "what is that?"}, server)
            eq(t.daemon.started(server), started, server)


@case
def initialize_is_answered_for_them(t):
    """MOD-DISC-01: version of the client, capabilities and name of the server."""
    for version in mcp.ALL:
        result = t.session("main", version).result["result"]
        eq(result["protocolVersion"], version)
        eq(result["serverInfo"], {"name": "scripted", "version": "1"})
        ok("tools" in result["capabilities"], "capabilities", result)
        ok("supportedVersions" not in result and "ttlMs" not in result, "members", result)


@case
def requests_say_all(t):
    """BACK-MSG-01 BACK-MSG-05: revision, capabilities and name in _meta; results without what older clients do not know."""
    s = t.session("main", caps={"roots": {"listChanged": True}, "elicitation": {}})
    e = s.start("tools/call", dict(s.do_params([["progress", 1], ["text", "x"]], token="t")))
    eq(e.next()["params"], {"progressToken": "t", "progress": 1})
    result = e.final()["result"]
    eq(sorted(result), ["content"])
    call = [m for m in t.daemon.messages(s.pid()) if m.get("method") == "tools/call"][0]
    meta = call["params"]["_meta"]
    eq(meta[META + "protocolVersion"], "2026-07-28")
    eq(meta[META + "clientCapabilities"], {"roots": {}, "elicitation": {"form": {}}})
    eq(meta[META + "clientInfo"]["name"], t.daemon.messages(s.pid())[0]["params"]["_meta"][META + "clientInfo"]["name"])
    ok("initialize" not in methods(t, s.pid()) and "notifications/initialized" not in methods(t, s.pid()), "handshake")


def rounds(*lists):
    return {"name": "do", "arguments": {"rounds": [list(steps) for steps in lists]}}


def ask_server(t, server, *lists, caps=None, token=None):
    s = t.session(server, caps=CAPS if caps is None else caps)
    params = rounds(*lists)
    if token:
        params["_meta"] = {"progressToken": token}
    return s, s.start("tools/call", params)


@case
def server_asks_by_its_result(t):
    """BACK-MSG-04 bridging 8.5: input_required becomes requests on the stream of the call, which goes on with the answers."""
    for server in ("main", "shared"):
        s, e = ask_server(t, server, [["input", dict(ELICIT, r={"method": "roots/list"})]], [["progress", 2], ["told"]],
                          token="a")
        asked = {}
        for _ in range(2):
            m = e.next()
            asked[m["method"]] = m
        eq(asked["elicitation/create"]["params"], FORM)
        s.respond(asked["roots/list"]["id"], {"roots": []})
        s.respond(asked["elicitation/create"]["id"], {"action": "accept", "content": {"a": "\u2028"}})
        eq(e.next()["params"], {"progressToken": "a", "progress": 2})
        eq(json.loads(e.final()["result"]["content"][0]["text"]),
           {"q": {"action": "accept", "content": {"a": "\u2028"}}, "r": {"roots": []}})


@case
def rounds_may_be_many(t):
    """bridging 8.5: two rounds, one of them without a question."""
    s, e = ask_server(t, "main", [["input", ELICIT]], [["input", {}]], [["input", ELICIT]], [["told"]])
    for action in ("decline", "cancel"):
        m = e.next()
        eq(m["method"], "elicitation/create")
        s.respond(m["id"], {"action": action})
    eq(json.loads(e.final()["result"]["content"][0]["text"]), {"q": {"action": "cancel"}})


@case
def rounds_have_an_end(t):
    """bridging §2.2: a server that keeps asking is not answered for ever."""
    s, e = ask_server(t, "main", *[[["input", ELICIT]]] * 12)
    for _ in range(10):
        s.respond(e.next()["id"], {"action": "decline"})
    result = e.final()["result"]
    eq((result["isError"], len(result["content"])), (True, 1))


@case
def what_cannot_be_asked_fails(t):
    """bridging 8.5: a capability that the client lacks, or its error: a tool fails, nobody is asked anything else."""
    s, e = ask_server(t, "main", [["input", dict(ELICIT, r={"method": "roots/list"})]], caps={"roots": {}})
    eq(len(messages := e.rest()), 1, messages)
    eq(messages[0]["result"]["isError"], True)
    s, e = ask_server(t, "main", [["input", {"r": {"method": "roots/list"}}]])
    s.respond(e.next()["id"], error={"code": -1, "message": "no"})
    eq(e.final()["result"]["isError"], True)
    s, e = ask_server(t, "main", [["input", ELICIT]], [["told"]])
    s.respond(e.next()["id"], error={"code": -1, "message": "no"})
    eq(json.loads(e.final()["result"]["content"][0]["text"]), {"q": {"action": "cancel"}})


@case
def malformed_questions_are_the_servers_fault(t):
    """BACK-SEC-01: what is no question fails the call, not the gateway."""
    for requests in ({"x": {"method": "tools/list"}}, {"x": 1}, {"x": {"method": "roots/list", "params": []}}, [], "x"):
        s, e = ask_server(t, "main", [["input", requests]])
        eq(e.final()["error"]["data"]["reason"], "child_protocol_error", requests)
    s, e = ask_server(t, "main", [["result", {"resultType": "input_required"}]])
    eq(e.final()["error"]["data"]["reason"], "child_protocol_error")
    s, e = ask_server(t, "main", [["result", {"resultType": "surprise"}]])
    eq(e.final()["error"]["data"]["reason"], "child_protocol_error")


@case
def cancelled_in_the_middle(t):
    """bridging 8.5: who cancels a call takes back what he was asked."""
    s, e = ask_server(t, "main", [["input", ELICIT]], [["told"]])
    asked = e.next()
    s.cancel(e.id)
    eq(e.next(), mcp.notification("notifications/cancelled", {"requestId": asked["id"]}))
    s.respond(asked["id"], {"action": "accept"})
    s.echo("x")
    eq(len([m for m in methods(t, s.pid()) if m == "tools/call"]), 3)


def listens(t, pid):
    return [m for m in t.daemon.messages(pid) if m.get("method") == "subscriptions/listen"]


@case
def changes_of_lists_are_heard(t):
    """BACK-MSG-03: what the server tells by its subscription, and nothing else."""
    s = t.session()
    g = s.get()
    s.do(["changed", "notifications/tools/list_changed"], ["notify", "notifications/prompts/list_changed"],
         ["text", "x"])
    eq(g.next(), mcp.notification("notifications/tools/list_changed", {}))
    s.do(["changed", "notifications/resources/list_changed"], ["text", "x"])
    eq(g.next(), mcp.notification("notifications/resources/list_changed", {}))
    eq([m["params"]["notifications"] for m in listens(t, s.pid())],
       [{"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}])


@case
def nothing_to_listen_to(t):
    """bridging §2.2: a server that tells of no changes is not asked to."""
    s = t.session("mute")
    s.echo("x")
    eq(listens(t, s.pid()), [])


@case
def subscriptions_are_one(t):
    """BACK-MSG-03 bridging §2.2: subscribing changes what is listened to; the former subscription is cancelled after that."""
    for server in ("main", "shared"):
        s = t.session(server)
        g = s.get()
        before = len(listens(t, s.pid()))
        eq(s.ask("resources/subscribe", {"uri": "res://a"})["result"], {})
        eq(s.ask("resources/subscribe", {"uri": "res://b"})["result"], {})
        asked = listens(t, s.pid())
        eq(asked[-1]["params"]["notifications"]["resourceSubscriptions"], ["res://a", "res://b"], asked)
        cancelled = [m["params"]["requestId"] for m in t.daemon.messages(s.pid())
                     if m.get("method") == "notifications/cancelled"]
        eq(cancelled, [m["id"] for m in asked[:-1]])
        s.do(["changed", "notifications/resources/updated", {"uri": "res://a"}],
             ["changed", "notifications/resources/updated", {"uri": "res://c"}], ["text", "x"])
        eq(g.next()["params"], {"uri": "res://a"})
        eq(s.ask("resources/unsubscribe", {"uri": "res://a"})["result"], {})
        wait_for(lambda: len(listens(t, s.pid())) > len(asked), what="another subscription")
        ok("res://a" not in listens(t, s.pid())[-1]["params"]["notifications"]["resourceSubscriptions"], "gone")
        ok(len(asked) - before == 2, "subscriptions", asked)


@case
def subscription_may_be_refused(t):
    """bridging §2.2: who cannot be told of changes hears that."""
    s = t.session("deaf")
    eq(s.ask("resources/subscribe", {"uri": "res://a"})["error"]["code"], -32602)
    eq(s.echo("x"), "x")


@case(own=True)
def respawned_server_is_listened_to_again(t):
    """BACK-PROC-05: a process that ends is replaced; so is the subscription."""
    s = t.session()
    s.ask("resources/subscribe", {"uri": "res://a"})
    pid = s.pid()
    s.do(["exit", 1])
    eq(s.echo("x"), "x")
    ok(s.pid() != pid, "process")
    wait_for(lambda: listens(t, s.pid()), what="subscription")
    eq(listens(t, s.pid())[0]["params"]["notifications"]["resourceSubscriptions"], ["res://a"])


@case
def many_share_a_modern_server(t):
    """bridging §1.2: without a lease; each is asked what belongs to his call."""
    for server in ("shared", "mine"):
        one, first = ask_server(t, server, [["input", ELICIT]], [["told"]])
        two, second = ask_server(t, server, [["input", ELICIT]], [["told"]])
        asked = [first.next(), second.next()]
        two.respond(asked[1]["id"], {"action": "accept", "content": {"a": "two"}})
        one.respond(asked[0]["id"], {"action": "accept", "content": {"a": "one"}})
        for e, name in ((first, "one"), (second, "two")):
            eq(json.loads(e.final()["result"]["content"][0]["text"])["q"]["content"], {"a": name})
        eq(one.pid(), two.pid())


@case(servers={"warm": {"script": {"era": "modern"}, "pool": {"warm": 1}}})
def warm_processes_are_of_any_era(t):
    """BACK-ERA-07: a process that waits has been told nothing; what it is asked first is what is known by then."""
    for _ in range(2):
        wait_for(lambda: t.daemon.children("warm"), what="a warm process")
        s = t.session("warm")
        eq(s.echo("x"), "x")
        eq(methods(t, s.pid())[0], DISCOVER)
