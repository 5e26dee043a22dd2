# SPDX-License-Identifier: Apache-2.0
"""
Endpoints over several servers. That an endpoint over one is to its clients as that server is, whole files of other cases say
(run --behind-endpoints); here is what several of them make of it.
"""
import json
import os
import re
import subprocess

import harness
import mcp
from c61_token import entry
from c62_oauth import ORIGIN
from c80_stateless import ask as ask_modern
from c100_reload import reload
from c71_ctl import ctl
from c106_sessions_kept import Daemons
from harness import case, eq, ok, wait_for
from issuer import Issuer

OBJECT = {"type": "object"}


def tools(*names):
    return ["result", {"tools": [{"name": name, "inputSchema": OBJECT} for name in names]}]


def resources(*uris):
    return ["result", {"resources": [{"uri": uri, "name": uri} for uri in uris]}]


def over(*names, **more):
    return {"endpoints": {"all": dict({"servers": list(names)}, **more)}}


def names_of(answer, kind="tools", key="name"):
    return [item[key] for item in answer["result"][kind]]


def call(s, name, *steps, **kw):
    return s.ask("tools/call", {"name": name, "arguments": {"steps": list(steps) or [["text", "@PID@"]]}}, **kw)


def text_of(answer):
    return answer["result"]["content"][0]["text"]


def heard(daemon, server, method):
    return [m for pid, _ in daemon.records_of(server) for m in daemon.messages(pid) if m.get("method") == method]


TWO = {"a": {"script": {}}, "b": {"script": {}, "isolation": "shared"}}


@case(servers=TWO, config=over("a", "b"))
def lists_are_joined(t):
    """END-01 END-02: the items of all servers, in the order of the configuration, each under a name that leads to its server."""
    for s in (t.session("all", version=v) for v in (mcp.A, mcp.B, mcp.C, mcp.D)):
        eq(s.result["result"]["serverInfo"]["name"], "all")
        eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])
        eq(names_of(s.ask("prompts/list"), "prompts"), ["a__p", "b__p"])
        eq(names_of(s.ask("resources/list"), "resources", "uri"), ["res://a"])
        pids = {name: {str(pid) for pid, _ in t.daemon.records_of(name)} for name in "ab"}
        for name in "ab":
            ok(text_of(call(s, name + "__do")) in pids[name], name)
        eq(s.ask("prompts/get", {"name": "b__p"})["result"], {"messages": []})
        eq(s.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "a__p"}, "argument": {"name": "x", "value": ""}})
           ["result"]["completion"]["values"], ["one", "two"])
        for name in ("do", "a__", "c__do", "A__do", ""):
            eq(call(s, name)["error"]["code"], -32602, name)
    eq({m["params"]["name"] for m in heard(t.daemon, "b", "prompts/get")}, {"p"})


@case(servers={"a": {"script": {"on": {"tools/list": [tools("do", "x.y", "n" * 70, "twin", "twin")], "resources/list": [resources("res://x", "res://1")]}}},
               "b": {"script": {"on": {"tools/list": [tools("do", "x/y")], "resources/list": [resources("res://x", "res://2")]}}}},
      config=over("a", "b"))
def names_that_do_not_fit(t):
    """END-03: [A-Za-z0-9_-]{1,64}, the same every time; two of one name cannot be reached, of two URIs the first counts; the log says so."""
    s = t.session("all")
    shown = names_of(s.ask("tools/list"))
    eq((shown[0], shown[-2:]), ("a__do", ["b__do", shown[-1]]))
    eq([len(name) <= 64 and all(c.isalnum() or c in "_-" for c in name) for name in shown], [True] * 5)
    eq(shown, names_of(t.session("all").ask("tools/list")))
    for name, real in zip(shown, ("do", "x.y", "n" * 70)):
        # The name alone, in a session that has listed nothing.
        t.session("all").ask("tools/call", {"name": name, "arguments": {"steps": [["text", "x"]]}})
        ok(real in {m["params"]["name"] for m in heard(t.daemon, "a", "tools/call")}, name)
    eq(call(s, "a__twin")["error"]["code"], -32602, "neither")
    t.daemon.wait_log("names_collide", "endpoint=all", "list=tools", "server=a", "name=a__twin")
    eq(names_of(s.ask("resources/list"), "resources", "uri"), ["res://x", "res://1", "res://2"])
    for uri, server in (("res://x", "a"), ("res://2", "b")):
        s.ask("resources/read", {"uri": uri})
        eq([m["params"]["uri"] for m in heard(t.daemon, server, "resources/read")], [uri])
    eq(s.ask("resources/read", {"uri": "other://x"})["error"]["code"], -32002)
    t.daemon.wait_log("names_collide", "list=resources", "name=res://x")


@case(servers={"a": {"script": {"on": {"tools/list": [tools("do", "same")]}}}, "b": {"script": {"on": {"tools/list": [tools("same", "other", "x_y")]}}}},
      config={"endpoints": {"all": {"servers": {"a": {"prefix": ""}, "b": {"prefix": ""}}}, "some": {"servers": {"a": {"prefix": "x_"}, "b": {"prefix": ""}}}}})
def prefixes_that_overlap(t):
    """END-03: where a name alone does not tell its server, the lists do."""
    s = t.session("all")
    eq(call(s, "other")["result"], call(s, "other")["result"])
    eq([m["params"]["name"] for m in heard(t.daemon, "b", "tools/call")], ["other"] * 2)
    eq(call(s, "same")["error"]["code"], -32602)
    eq(names_of(s.ask("tools/list")), ["do", "other", "x_y"])
    eq((heard(t.daemon, "a", "tools/call"), call(s, "nothing")["error"]["code"]), ([], -32602))
    some = t.session("some")
    eq(call(some, "x_y")["result"]["content"], [{"type": "text", "text": "None"}])
    eq([m["params"]["name"] for m in heard(t.daemon, "b", "tools/call")], ["other"] * 2 + ["x_y"])


@case(servers={"a": {"script": {}}, "dead": {"script": {"start": [["exit", 3]]}, "start": {"backoff": "100ms..200ms", "give_up_after": 2}}},
      config=over("a", "dead"), deadline=40)
def servers_that_are_away(t):
    """END-04: one that cannot be started costs its own items only, and its calls say which it is."""
    for front in ("session", "sse"):
        s = getattr(t, front)("all")
        eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])
        error = s.ask("tools/call", {"name": "dead__do", "arguments": {}})["error"]
        eq((error["data"]["reason"], error["data"]["server"]), ("backend_unavailable", "dead"))
        ok(s.ask("tools/call", {"name": "a__echo", "arguments": {"text": "x"}})["result"], "the other")
    t.daemon.wait_log("leg_lost", "endpoint=all", "server=dead")


@case(servers={"a": {"script": {}}, "late": {"script": {"init": [["sleep", 13], ["result", {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "late", "version": "1"}}]]}}}, config=over("a", "late"), deadline=60)
def servers_that_are_late(t):
    """END-04: nobody waits for a slow one for longer than ten seconds; when it is there, its client is told, and lists it."""
    s = t.session("all")
    g = s.get()
    eq(names_of(s.ask("tools/list", timeout=25)), ["a__do", "a__echo"])
    eq(g.next(timeout=20)["method"], "notifications/tools/list_changed")
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "late__do", "late__echo"])


@case(daemon=False, deadline=40)
def a_list_under_way_when_rules_come(t):
    """END-04: what one server had listed before a reload is listed anew by its rules of now, while the other is waited for."""
    slow = {"script": {"on": {"tools/list": [["sleep", 5], ["result", {"tools": []}]]}}}
    t.start({"a": {"script": {}}, "b": slow}, over("a", "b"))
    s = t.session("all")
    asked = s.start("tools/list")
    for server in "ab":
        wait_for(lambda: any(m.get("method") == "tools/list" for p in t.daemon.children(server) for m in t.daemon.messages(p)), 5, "both are asked")
    s.ask("ping")
    reload(t, {"a": {"script": {}, "tools": {"deny": ["echo"]}}, "b": slow})
    eq(names_of(asked.final(20)), ["a__do"])


@case(servers={"a": {"script": {}}, "b": {"script": {"caps": {"tools": {"listChanged": True}}}}}, config=over("a", "b"), deadline=30)
def servers_that_die(t):
    """END-04: the calls of one that dies fail, saying so; the next gets a fresh one, and the others notice nothing."""
    s = t.session("all")
    before = text_of(call(s, "b__do")), text_of(call(s, "a__do"))
    waiting = s.start("tools/call", {"name": "a__do", "arguments": {"steps": [["sleep", 1], ["text", "done"]]}})
    error = call(s, "b__do", ["exit", 1])["error"]
    eq((error["data"]["reason"], error["data"]["server"]), ("child_exited", "b"))
    ok(text_of(call(s, "b__do")) != before[0], "a fresh one")
    eq((text_of(waiting.final()), text_of(call(s, "a__do"))), ("done", before[1]))


@case(servers={"a": {"script": {}}, "b": {"script": {}}}, config=over("a", "b"))
def servers_that_ask(t):
    """END-05: questions of all servers reach the client, with ids that differ, and each answer the server that asked; progress likewise."""
    s = t.session("all", mcp.D, {"sampling": {}, "elicitation": {}})
    ask = ["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 1, "_meta": {"progressToken": "q"}}]
    calls = [s.start("tools/call", {"name": name + "__do", "arguments": {"steps": [ask, ["asked"]]}, "_meta": {"progressToken": name}}) for name in "ab"]
    asked = [e.next() for e in calls]
    ok(asked[0]["id"] != asked[1]["id"], asked)
    s.notify("notifications/progress", {"progressToken": asked[1]["params"]["_meta"]["progressToken"], "progress": 1})
    for name, question in reversed(list(zip("ab", asked))):
        s.respond(question["id"], {"role": "assistant", "model": name, "content": {"type": "text", "text": "for " + name}})
    for name, e in zip("ab", calls):
        ok("for " + name in text_of(e.final()), name)
    eq([len(heard(t.daemon, name, "notifications/progress")) for name in "ab"], [0, 1])


@case(servers=TWO, config=over("a", "b"))
def what_belongs_to_a_call(t):
    """END-05: progress, log lines and cancellation keep to the call and its server."""
    s = t.session("all")
    steps = [["progress", 1], ["progress", 2], ["sleep", 5], ["text", "late"]]
    calls = [s.start("tools/call", {"name": name + "__do", "arguments": {"steps": steps}, "_meta": {"progressToken": name}}) for name in "ab"]
    for name, e in zip("ab", calls):
        eq([e.next()["params"] for _ in range(2)], [{"progressToken": name, "progress": n} for n in (1, 2)])
    s.notify("notifications/cancelled", {"requestId": calls[0].id, "reason": "bored"})
    wait_for(lambda: heard(t.daemon, "a", "notifications/cancelled"), what="the cancellation")
    eq(heard(t.daemon, "a", "notifications/cancelled")[0]["params"]["reason"], "bored")
    eq(heard(t.daemon, "b", "notifications/cancelled"), [])
    eq(text_of(calls[1].final(10)), "late")
    eq(s.ask("logging/setLevel", {"level": "error"})["result"], {})
    wait_for(lambda: [m["params"] for m in heard(t.daemon, "a", "logging/setLevel")] == [{"level": "error"}], what="the level")


@case(servers={"a": {"script": {"on": {"tools/list": [["once", tools("do")], tools("do", "new")]}}}, "b": {"script": {}}}, config=over("a", "b"))
def lists_that_change(t):
    """END-06: what one server says of its lists and resources reaches the clients of the endpoint, also those of 2026-07-28."""
    s = t.session("all")
    g = s.get()
    eq(names_of(s.ask("tools/list")), ["a__do", "b__do", "b__echo"])
    call(s, "a__do", ["notify", "notifications/tools/list_changed"], ["text", "x"])
    eq(g.next()["method"], "notifications/tools/list_changed")
    eq(names_of(s.ask("tools/list")), ["a__do", "a__new", "b__do", "b__echo"])
    eq(s.ask("resources/subscribe", {"uri": "res://a"})["result"], {})
    call(s, "a__do", ["notify", "notifications/resources/updated", {"uri": "res://a"}], ["text", "x"])
    eq(g.next()["params"], {"uri": "res://a"})


@case(servers=TWO, config=over("a", "b"))
def clients_without_a_session(t):
    """END-07: requests of 2026-07-28, with the name that is shown in their head."""
    def names(method, kind):
        return names_of(ask_modern(t, "all", method)[1][-1], kind)
    eq(names("tools/list", "tools"), ["a__do", "a__echo", "b__do", "b__echo"])
    eq(names("prompts/list", "prompts"), ["a__p", "b__p"])
    for name in "ab":
        eq(text_of(ask_modern(t, "all", "tools/call", {"name": name + "__echo", "arguments": {"text": name}})[1][-1]), name)


POLICY = {"a": {"script": {}, "tools": {"deny": ["echo"], "arguments": {"forbidden_keys": ["secret"]}}, "rate": {"calls": 3, "per": "1h", "burst": 3}},
          "b": {"script": {}, "prompts": {"allow": []}}}


@case(daemon=False)
def what_servers_forbid(t):
    """END-08: what the configuration says of a server holds for its tools at the endpoint, whatever they are called there; the audit names the server's."""
    log = os.path.join(t.directory(), "audit.log")
    t.start(POLICY, dict(over("a", "b"), audit={"to": log}))
    s = t.session("all")
    eq(names_of(s.ask("tools/list")), ["a__do", "b__do", "b__echo"])
    eq(names_of(s.ask("prompts/list"), "prompts"), ["a__p"])
    eq(s.ask("tools/call", {"name": "a__echo", "arguments": {}})["error"]["code"], -32602)
    eq(s.ask("prompts/get", {"name": "b__p"})["error"]["code"], -32602)
    eq(s.ask("tools/call", {"name": "a__do", "arguments": {"secret": 1}})["error"]["code"], -32602)
    answers = [call(s, "a__do") for _ in range(3)]
    eq(answers[-1].get("error", {}).get("data", {}).get("reason"), "rate_limited", answers)
    ok("result" in call(s, "b__do"), "the other")
    eq({m["params"]["name"] for m in heard(t.daemon, "a", "tools/call")}, {"do"})

    def records():
        with open(log) as f:
            return [json.loads(line) for line in f]
    wait_for(lambda: len([r for r in records() if r.get("tool") == "do" and r["server"] == "b"]) == 1, what="the record")
    eq([r for r in records() if r["server"] == "all" and r.get("tool")], [])
    ok([r for r in records() if r["server"] == "a" and r.get("tool") == "echo" and r["verdict"] == "refused"], records())


@case(daemon=False)
def one_sign_in(t):
    """END-09: a token for the endpoint is good there for all its servers that it has the scopes for, and at none of them."""
    issuer = Issuer()
    t.start({"a": {"script": {}}, "b": {"script": {}, "scopes": ["more"]}},
            dict(over("a", "b"), public_url=ORIGIN, auth={"mode": "oauth", "issuers": [{"issuer": issuer.url, "leeway": "1s"}]}))
    token = issuer.token(ORIGIN + "/all/mcp", sub="alice", scope="use")
    s = t.session("all", token=token)
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])
    refused = s.post(mcp.request(900, "tools/call", {"name": "b__do", "arguments": {"steps": [["text", "x"]]}}))
    eq((refused.status, refused.response.header("www-authenticate").count('scope="')), (403, 1))
    ok("more" in refused.response.header("www-authenticate"), "what to ask for")
    ok("result" in call(s, "a__do"), "its own")
    eq(mcp.Session(t, t.daemon, "a", token=token, check=False).started.status, 401)
    other = issuer.token(ORIGIN + "/a/mcp", sub="alice", scope="use")
    eq(mcp.Session(t, t.daemon, "all", token=other, check=False).started.status, 401)
    s = t.session("all", token=issuer.token(ORIGIN + "/all/mcp", sub="bob", scope="use more"))
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])
    eq(heard(t.daemon, "b", "tools/call"), [])
    ok("result" in call(s, "b__do"), "with the scope")


@case(daemon=False)
def what_is_not_ones_own_while_others_start(t):
    """END-08: the first that a caller sends is a call to a server that it has no right to, and the others are starting: refused, and no more."""
    token = "t" * 43
    t.start({"a": {"script": {"init": [["sleep", 1], ["answer"]]}}, "b": {"script": {}}},
            dict(over("a", "b"), roles={"support": {"allow": {"a": ["*"]}}},
                 auth={"mode": "token", "tokens": [entry("mina", token, roles=["support"])]}))
    for _ in range(3):
        s = t.session("all", token=token)
        eq(s.ask("tools/call", {"name": "b__echo", "arguments": {}})["error"]["code"], -32602)
        eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])


@case(daemon=False)
def a_token_that_has_more(t):
    """END-08: in one session, the next token shows and does at once what it is good for, and the one before no longer."""
    few, all_ = "t" * 43, "u" * 43
    t.start({"a": {"script": {}}, "b": {"script": {}}},
            dict(over("a", "b"), roles={"few": {"allow": {"a": ["*"]}}, "all": {"allow": {"a": ["*"], "b": ["*"]}}},
                 auth={"mode": "token", "tokens": [entry("mina", few, roles=["few"]), entry("mina", all_, roles=["all"])]}))
    s = t.session("all", token=few)
    for _ in range(2):
        s.token = few
        eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])
        eq(s.ask("tools/call", {"name": "b__echo", "arguments": {}})["error"]["code"], -32602)
        s.token = all_
        ok("result" in call(s, "b__do"), "with the other one")
        eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])


@case(daemon=False)
def servers_that_are_not_ones_own(t):
    """END-08 END-09: a server that the caller has no right to is to it as one that is not there: nothing is refused until it calls it, and then as a name that no server has; the audit has that call."""
    log, token, both = os.path.join(t.directory(), "audit.log"), "t" * 43, "u" * 43
    t.start({"a": {"script": {}}, "b": {"script": {}}},
            dict(over("a", "b"), audit={"to": log}, roles={"support": {"allow": {"a": ["echo"]}}, "all": {"allow": {"a": ["*"], "b": ["*"]}}},
                 auth={"mode": "token", "tokens": [entry("mina", token, roles=["support"]), entry("max", both, roles=["all"])]}))

    def refusals():
        with open(log) as f:
            return [r for r in map(json.loads, f) if r["event"] == "refusal"]
    s = t.session("all", token=token)
    eq(names_of(s.ask("tools/list")), ["a__echo"])
    eq(s.ask("resources/list")["result"]["resources"], [])
    unknown = s.ask("tools/call", {"name": "c__x", "arguments": {}})["error"]
    eq((unknown["code"], refusals()), (-32602, []))
    for method, params, like in (("tools/call", {"name": "b__echo", "arguments": {}}, unknown), ("tools/call", {"name": "b__nope"}, unknown),
                                 ("prompts/get", {"name": "b__p"}, s.ask("prompts/get", {"name": "c__p"})["error"])):
        eq(s.ask(method, params)["error"], like, params)
    wait_for(lambda: len(refusals()) == 3, what="the records")
    eq([(r["server"], r["method"], r["reason"]) for r in refusals()],
       [("b", "tools/call", "forbidden")] * 2 + [("b", "prompts/get", "forbidden")])
    eq([r.get("tool") for r in refusals()][:2], ["echo", "nope"])
    t.daemon.never_logged("leg_lost", "server=b")
    eq(t.daemon.records_of("b"), [])
    eq(names_of(t.session("all", token=both).ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])


@case(servers=TWO, config=over("a", "b"), deadline=30)
def servers_that_a_reload_changes(t):
    """END-10: a session goes on with the servers that it has; a new one finds those of now."""
    s = t.session("all")
    before = text_of(call(s, "a__do"))
    reload(t, {"b": TWO["b"], "c": {"script": {}}}, over("b", "c"))
    eq(text_of(call(s, "a__do")), before)
    eq(names_of(t.session("all").ask("tools/list")), ["b__do", "b__echo", "c__do", "c__echo"])
    s.delete()
    wait_for(lambda: not t.daemon.children("a"), what="the end of its process")


@case(servers=TWO, config=over("a"), deadline=30)
def endpoints_that_a_reload_changes(t):
    """END-10, product §4: each key of an endpoint by a reload: where it is, whether it is, and what it consists of."""
    old = t.session("all")
    reload(t, TWO, {"endpoints": {"all": {"servers": {"b": {"prefix": "x-"}}, "path": "/elsewhere/mcp"}}})
    eq(mcp.Session(t, t.daemon, "all", check=False).started.status, 404)
    new = t.session("all", path="/elsewhere/mcp")
    eq(names_of(new.ask("tools/list")), ["x-do", "x-echo"])
    eq(names_of(old.ask("tools/list")), ["a__do", "a__echo"])
    reload(t, TWO, {"endpoints": {"all": {"servers": ["a"], "enabled": False}}})
    eq(mcp.Session(t, t.daemon, "all", check=False).started.status, 404)
    eq(names_of(new.ask("tools/list")), ["x-do", "x-echo"])
    reload(t, TWO, {})
    eq(names_of(old.ask("tools/list")), ["a__do", "a__echo"])
    reload(t, TWO, over("b"))
    eq(names_of(t.session("all").ask("tools/list")), ["b__do", "b__echo"])


@case(daemon=False, deadline=30)
def endpoints_outlive_the_daemon(t):
    """END-10, bridging §4.1: a session of an endpoint goes on in the next daemon, each of its servers with a fresh process."""
    daemons = Daemons(t)
    daemons.begin(config=over("main"))
    s = t.session("all", mcp.D)
    eq(names_of(s.ask("tools/list")), ["main__do", "main__echo"])
    pid = text_of(call(s, "main__do"))
    wait_for(daemons.saved, what="what is on the disk")
    daemons.again(config=over("main"))
    daemons.move(s)
    ok(text_of(call(s, "main__do")) != pid, "a fresh one")
    eq(names_of(s.ask("tools/list")), ["main__do", "main__echo"])


@case(servers=TWO, config=over("a", "b"))
def nothing_is_left(t):
    """END-10: with the session its legs end, in whatever state they are."""
    s = t.session("all")
    s.start("tools/call", {"name": "a__do", "arguments": {"steps": [["sleep", 60]]}})
    wait_for(lambda: heard(t.daemon, "a", "tools/call"), what="the call")
    eq(s.delete().status, 204)
    wait_for(lambda: not t.daemon.children("a"), what="the end of its process")
    eq(t.session("a").echo("x"), "x")


@case(servers={"a": {"script": {}}, "b": {"script": {}}}, config=over("a", "b"), deadline=40)
def sessions_that_end(t):
    """END-04: when a server's own session has ended, the next call opens another one; what the client subscribed to is subscribed to again."""
    s = t.session("all")
    g = s.get()
    eq(s.ask("resources/subscribe", {"uri": "res://a"})["result"], {})
    for _ in range(4):
        call(s, "a__do", ["exit", 1])
    t.daemon.wait_log("leg_lost", "endpoint=all", "server=a")
    wait_for(lambda: "result" in call(s, "a__do"), 5, "another session")
    wait_for(lambda: [m for m in t.daemon.messages(int(text_of(call(s, "a__do")))) if m.get("method") == "resources/subscribe"], what="the subscription")
    call(s, "a__do", ["notify", "notifications/resources/updated", {"uri": "res://a"}], ["text", "x"])
    wait_for(lambda: g.next()["method"] == "notifications/resources/updated", what="the update")


@case(servers={"a": {"script": {"on": {"tools/list": [["sleep", 1], tools("do")]}}, "isolation": "shared"}, "b": {"script": {}}}, config=over("a", "b"), deadline=20)
def lists_that_many_ask_for(t):
    """DEF-11: who asks for a list many times at once is served by one look at the servers, or two."""
    s = t.session("all")
    waiting = [s.start("tools/list") for _ in range(20)]
    for e in waiting:
        eq(names_of(e.final(10)), ["a__do", "b__do", "b__echo"])
    ok(len(heard(t.daemon, "b", "tools/list")) <= 2, "lists")


ROLES = {"roles": {"all": {"when": {"sub": ["alice"]}, "allow": {"a": ["*"], "b": ["*"]}}}}


@case(daemon=False, deadline=30)
def what_a_reload_takes(t):
    """END-08: a server that its caller may no longer use says nothing more to it: its items, its calls and what it says by itself are gone."""
    issuer = Issuer()
    auth = {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": issuer.url, "leeway": "1s"}]}}
    config = dict(over("a", "b"), **auth)
    servers = {"a": {"script": {}}, "b": {"script": {}}}
    t.start(servers, dict(config, **ROLES))
    s = t.session("all", token=issuer.token(ORIGIN + "/all/mcp", sub="alice", scope="use"))
    g = s.get()
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])
    call(s, "b__do", ["background", [["repeat", 40, [["sleep", 0.2], ["log", "error", "SECRET"]]]]], ["text", "x"])
    eq(g.next()["params"]["data"], "SECRET")
    fewer = {"roles": {"all": {"when": {"sub": ["alice"]}, "allow": {"a": ["*"]}}}}
    reload(t, servers, dict(config, **fewer))
    error = call(s, "b__do")["error"]
    ok(error["code"] < 0, error)
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])
    wait_for(lambda: not t.daemon.children("b"), what="the end of its process")
    call(s, "a__do", ["background", [["sleep", 0.3], ["log", "error", "the last"]]], ["text", "x"])
    seen = []
    while "the last" not in seen:
        seen.append(g.next().get("params", {}).get("data"))
    ok(seen.count("SECRET") < 20, seen)


@case(daemon=False, deadline=30)
def what_a_reload_takes_is_gone_at_once(t):
    """END-08: neither the client nor the server has to say anything for it."""
    issuer = Issuer()
    auth = {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": issuer.url, "leeway": "1s"}]}}
    config, servers = dict(over("a", "b"), **auth), {"a": {"script": {}}, "b": {"script": {}}}
    t.start(servers, dict(config, **ROLES))
    s = t.session("all", token=issuer.token(ORIGIN + "/all/mcp", sub="alice", scope="use"))
    g = s.get()
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo", "b__do", "b__echo"])
    ok(t.daemon.children("b"), "its process is there")
    reload(t, servers, dict(config, roles={"all": {"when": {"sub": ["alice"]}, "allow": {"a": ["*"]}}}))
    wait_for(lambda: not t.daemon.children("b"), what="the end of its process")
    eq(g.next()["method"], "notifications/tools/list_changed")
    ok(t.daemon.children("a"), "the other one stays")
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])


@case(servers={"a": {"script": {}}}, config=over("a"), deadline=20)
def what_a_reload_replaces(t):
    """END-10: requests of 2026-07-28 get the servers of now, as they do at a server's own path."""
    eq(names_of(ask_modern(t, "all", "tools/list")[1][-1]), ["a__do", "a__echo"])
    reload(t, {"a": {"script": {"on": {"tools/list": [tools("other")]}}}}, over("a"))
    eq(names_of(ask_modern(t, "all", "tools/list")[1][-1]), ["a__other"])
    wait_for(lambda: len(t.daemon.children("a")) <= 1, what="the end of the old process")


@case(daemon=False)
def claims_that_are_lacking(t):
    """END-02, AUTH-DWN-01: a server that needs a claim which the token has not is left out, and nothing is tried again and again."""
    issuer = Issuer()
    t.start({"a": {"script": {}}, "b": {"script": {}, "env": {"X": "${claim:nope}"}}},
            dict(over("a", "b"), public_url=ORIGIN, auth={"mode": "oauth", "issuers": [{"issuer": issuer.url, "leeway": "1s"}]}))
    s = t.session("all", token=issuer.token(ORIGIN + "/all/mcp", sub="alice", scope="use"))
    eq(names_of(s.ask("tools/list")), ["a__do", "a__echo"])
    eq(call(s, "b__do")["error"]["data"], {"reason": "forbidden", "server": "b"})
    t.daemon.never_logged("leg_lost", "server=b")


@case(daemon=False)
def mistakes_have_an_answer(t):
    """product §2: restart of an endpoint says what to restart; a name that no server has is told with the nearest one, in endpoints and tokens."""
    t.start(TWO, over("a", "b"))
    ok("has no processes; restart its servers" in ctl(t, "restart", "all", status=1)[1], "an endpoint")
    path = os.path.join(t.directory(), "t.yaml")
    for text, what in (("endpoints: {all: {servers: [flies]}}", "endpoints.all.servers[0]: there is no server 'flies'; did you mean 'files'?"),
                       ("endpoints: {all: {servers: [files]}, more: {servers: [all]}}", "'all' is an endpoint: name its servers"),
                       ("roles: {r: {allow: {fles: ['*']}}}", "there is no server 'fles'; did you mean 'files'?")):
        with open(path, "w") as f:
            f.write("servers: {files: {command: /bin/cat}}\n" + text + "\n")
        done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "-c", path], capture_output=True, text=True, timeout=20 * harness.SLOW)
        ok(done.returncode != 0 and what in done.stderr, text, done.stderr)


@case(daemon=False)
def the_doctor_examines_its_servers(t):
    """product §2: an endpoint has no process to start; those of its servers are examined, and once where all are."""
    t.start(TWO, over("a", "b"))
    for words, count in ((["all"], 2), ([], 2), (["b"], 1)):
        said = ctl(t, "doctor", *words, "-c", t.daemon.file)[0]
        eq(len(re.findall(r"^  ok +tools", said, re.M)), count, said)
    ok("no such server" in ctl(t, "doctor", "c", "-c", t.daemon.file, status=1)[1], "none")


@case(daemon=False)
def names_may_be_long(t):
    """END-02: a server with the longest name that there may be; the gateway reads its usual prefix as well."""
    name = "n" * 64
    t.start({name: {"script": {}}}, over(name))
    shown = names_of(t.session("all").ask("tools/list"))
    ok(len(shown) == 2 and all(len(one) == 64 for one in shown), "names", shown)
    ok("isError" not in call(t.session("all"), shown[0])["result"], "a call")


@case(servers={"a": {"script": {}, "tools": {"deny": ["do"]}}, "b": {"script": {}, "prompts": {"deny": ["p"]}}}, config=over("a", "b"))
def can_knows_the_rules_of_its_servers(t):
    """SEC-56 END-03: what `can` says of a name at the endpoint is what a caller meets there: the rules of the server that has it."""
    s = t.session("all")
    eq(names_of(s.ask("tools/list")), ["a__echo", "b__do", "b__echo"])
    for words, status, part in ((["a__do"], 1, "servers.a.tools.deny[0]"), (["a__echo"], 0, "yes: "), (["b__do"], 0, "yes: "),
                                (["--prompt", "b__p"], 1, "servers.b.prompts.deny[0]"), (["--prompt", "a__p"], 0, "yes: "),
                                (["do"], 2, "ask about the server that has it"), (["--resource", "res://a"], 2, "ask about the server")):
        out = "".join(ctl(t, "can", "anybody", "all", *words, status=status))
        ok(part in out, part, out)


@case(daemon=False, deadline=60)
def names_lead_where_the_rules_say(t):
    """END-02 END-03: which server a name leads to follows a reload of its servers' rules, in both directions, for sessions from before too."""
    def server(tag, **rules):
        return dict({"script": {"on": {"tools/list": [tools("same")], "tools/call": [["text", tag]],
                                       "resources/list": [resources("res://x")],
                                       "resources/read": [["result", {"contents": [{"uri": "res://x", "text": tag}]}]]}}}, **rules)
    both = {"endpoints": {"all": {"servers": {"a": {"prefix": ""}, "b": {"prefix": ""}}}}}
    free = {"a": server("of a"), "b": server("of b")}
    t.start(free, both)
    old = t.session("all")
    for kind in ("tools", "resources"):
        old.ask(kind + "/list")
    for servers, reached, read in ((free, None, "of a"), (dict(free, b=server("of b", tools={"deny": ["same"]})), "of a", "of a"),
                                   (dict(free, a=server("of a", resources={"deny": ["res://x"]})), None, "of b"), (free, None, "of a")):
        reload(t, servers, both)
        for s in (old, t.session("all")):
            answer = call(s, "same")
            eq(text_of(answer) if "result" in answer else None, reached, (servers, s is old))
            eq(s.ask("resources/read", {"uri": "res://x"})["result"]["contents"][0]["text"], read, (servers, s is old))


@case(daemon=False, deadline=60)
def what_an_endpoint_says_of_itself_follows_the_rules(t):
    """END-02, REL-40: a reload of a server's rules changes what an endpoint over it tells clients of both eras of it, in both directions."""
    def config(**rules):
        init = ["result", {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
                           "instructions": "be\u200bware"}]
        return {"a": dict({"isolation": "shared", "script": {"init": [init]}}, **rules)}

    def says(word):
        """The endpoint to a new session, and to clients without sessions, as others keep one open."""
        told = [t.session("all").result["result"]["instructions"], ask_modern(t, "all", "server/discover")[1][-1]["result"]["instructions"]]
        for text in told:
            ok(text.endswith("\n" + word), ascii(text))
        eq(names_of(ask_modern(t, "all", "tools/list")[1][-1]), ["a__do", "a__echo"])
    t.start(config(), over("a"))
    says("be\u200bware")
    for servers, word in ((config(sanitize={"invisible": "strip"}), "beware"), (config(), "be\u200bware")):
        reload(t, servers, over("a"))
        says(word)


# ---- search ----

def described(*rows):
    return ["result", {"tools": [{"name": name, "description": text, "inputSchema": OBJECT} for name, text in rows]}]


SEARCHED = {"a": {"script": {"on": {"tools/list": [described(("do", "Runs the steps of a test."), ("secret", "Runs what nobody may see."))]}},
                  "tools": {"deny": ["secret"]}},
            "b": {"script": {"on": {"tools/list": [described(("do", "Sends mail to a colleague."), ("echo", "Says the same again."))]}}, "isolation": "shared"}}


def find(s, query, **more):
    """The names of what is found."""
    text = text_of(s.ask("tools/call", {"name": "find_tool", "arguments": dict({"query": query}, **more)}))
    return [tool["name"] for tool in json.loads(text)["tools"]] if text.startswith("{") else text


@case(servers=SEARCHED, config=over("a", "b", search=True))
def tools_are_found_by_what_they_do(t):
    """END-11: two tools in place of all; what is found is what a list would show, and a call of it is judged as itself."""
    for s in (t.session("all", version=v) for v in (mcp.A, mcp.D)):
        eq(names_of(s.ask("tools/list")), ["find_tool", "call_tool"])
        eq(find(s, "send mail"), ["b__do"])
        eq(find(s, "runs steps"), ["a__do"])
        ok("None of 3 tools" in find(s, "secret"), "what is denied is not found")
        eq(len(find(s, "a the", limit=1)), 1)
        for server in "ab":
            answer = s.ask("tools/call", {"name": "call_tool", "arguments": {"name": server + "__do", "arguments": {"steps": [["text", "x"]]}}})
            eq(text_of(answer), "x")
        eq(text_of(call(s, "b__do", ["text", "by its name"])), "by its name")
        for name in ("a__secret", "nobody", "call_tool", "find_tool"):
            answer = s.ask("tools/call", {"name": "call_tool", "arguments": {"name": name}})
            eq(answer["error"]["code"], -32602, name)
        eq(s.ask("tools/call", {"name": "call_tool", "arguments": {}})["error"]["code"], -32602)
        eq(s.ask("tools/call", {"name": "find_tool"})["result"]["isError"], True)
        eq(s.ask("tools/call", {"name": "find_tool", "arguments": {"query": "mail " * 10000}})["result"]["isError"], True)
        for broken in ("\n", "\t", " \r\n\t"):
            message = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"find_tool","arguments":{"query":%s"mail"}}}' % broken
            eq(json.loads(text_of(s.post(message.encode()).answer))["tools"][0]["name"], "b__do", repr(broken))
        eq(names_of(s.ask("prompts/list"), "prompts"), ["a__p", "b__p"])
    eq([m["params"]["name"] for m in heard(t.daemon, "b", "tools/call")], ["do", "do"] * 2)
    ok(all(m["params"]["name"] == "do" for m in heard(t.daemon, "a", "tools/call")), "the real names")
    status, found = ask_modern(t, "all", "tools/call", {"name": "find_tool", "arguments": {"query": "mail"}})
    eq((status, json.loads(text_of(found[-1]))["tools"][0]["name"]), (200, "b__do"))
    status, found = ask_modern(t, "all", "tools/call", {"name": "call_tool", "arguments": {"name": "b__do", "arguments": {"steps": [["text", "y"]]}}})
    eq((status, text_of(found[-1])), (200, "y"))


@case(servers=SEARCHED, config=over("a", "b", search=True))
def a_call_that_is_found_is_a_call(t):
    """END-11: progress, cancellation and questions are those of the call; a reload that turns the search off tells the client."""
    s = t.session("all", mcp.D, {"sampling": {}})
    stream = s.get()
    params = {"name": "call_tool", "arguments": {"name": "a__do", "arguments": {"steps": [["progress", 1], ["text", "x"]]}}, "_meta": {"progressToken": "p"}}
    e = s.start("tools/call", params)
    eq(e.next()["params"]["progress"], 1)
    eq(text_of(e.final()), "x")
    request_id = s.new_id()
    params["arguments"]["arguments"]["steps"] = [["progress", 1], ["sleep", 30], ["text", "x"]]
    s.start("tools/call", params, request_id=request_id).next()
    s.cancel(request_id)
    wait_for(lambda: heard(t.daemon, "a", "notifications/cancelled"), 10, "the cancellation")
    reload(t, SEARCHED, over("a", "b"))
    wait_for(lambda: stream.next()["method"] == "notifications/tools/list_changed", 10, "it is told")
    eq(names_of(s.ask("tools/list")), ["a__do", "b__do", "b__echo"])
    eq(s.ask("tools/call", {"name": "find_tool", "arguments": {"query": "x"}})["error"]["code"], -32602)


@case(daemon=False)
def what_a_role_allows_is_found(t):
    """END-11: who may use one tool of one server finds that one, and calls it by call_tool; the record names the tool."""
    path = os.path.join(t.directory(), "audit")
    config = dict(over("a", "b", search=True), roles={"mail": {"allow": {"b": ["do"]}}}, audit={"to": path},
                  auth={"mode": "token", "tokens": [dict(entry("mailer", "mailer"), roles=["mail"])]})
    t.start(SEARCHED, config)
    s = t.session("all", token="mailer")
    eq(names_of(s.ask("tools/list")), ["find_tool", "call_tool"])
    eq(find(s, "runs steps sends mail says"), ["b__do"])
    eq(text_of(s.ask("tools/call", {"name": "call_tool", "arguments": {"name": "b__do", "arguments": {"steps": [["text", "x"]]}}})), "x")
    for name in ("a__do", "b__echo"):
        ok("error" in s.ask("tools/call", {"name": "call_tool", "arguments": {"name": name}}), name)

    def records():
        with open(path) as f:
            return [json.loads(line) for line in f]
    wait_for(lambda: [r for r in records() if r.get("tool") == "do" and r.get("server") == "b"], 10, "the record of the tool")
