# SPDX-License-Identifier: Apache-2.0
"""What the gateway keeps of a server's output, and calls that wait, when another configuration comes. mcpgated.yaml(5)."""
import hashlib
import json
import os

import c95_audit
import mcp
from c100_reload import reload
from c71_ctl import ctl
from c80_stateless import begin as begin_modern, fields, message
from c96_pins import DO, EVIL, Lists, SAFE, is_refused
from harness import case, eq, kill, merged, ok, wait_for

SECRET, HIDDEN = "sk-0123456789", "a​b"
KINDS = ("session", "principal", "shared")


def modern(t, server, method, params=None):
    body = message(method, params or {})
    answer = json.loads(begin_modern(t, server, body, fields(body)).response().read())
    return answer["result"]


def told(t, session, server):
    """What clients of both eras, those that are there and new ones, are told of this server now."""
    fresh = t.session(server)
    texts = [session.ask("tools/list")["result"]["tools"][0]["description"], fresh.ask("tools/list")["result"]["tools"][0]["description"],
             modern(t, server, "tools/list")["tools"][0]["description"]]
    return texts, [fresh.result["result"]["instructions"], modern(t, server, "server/discover")["instructions"]]


@case(daemon=False, deadline=60)
def lists_and_instructions(t):
    """product §5 SEC-52: what is shown from the reload on follows its redact and sanitize, whoever was shown it before, with every isolation; and back."""
    tool = {"name": "do", "description": SECRET + HIDDEN, "inputSchema": {"type": "object"}}
    script = {"capabilities": {"tools": {"listChanged": True}}, "on": {"tools/list": [["result", {"tools": [tool]}]]},
              "init": [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},'
                        '"serverInfo":{"name":"x","version":"1"},"instructions":%s}}\n' % json.dumps(HIDDEN)]]}
    def servers(**rules):
        return {kind: dict({"script": script, "isolation": kind}, **rules) for kind in KINDS}
    t.start(servers())
    sessions = {kind: t.session(kind) for kind in KINDS}
    plain = ([SECRET + HIDDEN] * 3, [HIDDEN] * 2)
    for kind, s in sessions.items():
        eq(told(t, s, kind), plain, kind)
    for rules, secret, hidden in (({"redact": ["sk-[0-9]+"]}, "[redacted]", HIDDEN), ({"sanitize": {"invisible": "strip"}}, SECRET, "ab"), ({}, SECRET, HIDDEN)):
        reload(t, servers(**rules))
        for kind, s in sessions.items():
            eq(told(t, s, kind), ([secret + hidden] * 3, [hidden] * 2), (kind, rules))


def pins_begin(t, mode):
    lists = Lists(t)
    def servers(pin):
        return {kind: lists.server(pin=pin, isolation=kind) for kind in KINDS}
    t.start(servers("off"))
    sessions = {kind: t.session(kind) for kind in KINDS}
    for kind in ("session", "shared"):
        sessions[kind].ask("tools/list")
    reload(t, servers(mode))
    for kind, s in sessions.items():
        eq(s.ask("tools/list")["result"]["tools"], [SAFE, DO], kind)
        ok("result" in s.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}), kind)
        ok("result" in t.session(kind).ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}), kind)
    eq(waiting(t), [])
    lists.write(tools=[EVIL, DO])
    reload(t, servers("off"))
    for kind, s in sessions.items():
        eq(s.ask("tools/list")["result"]["tools"], [EVIL, DO], kind)
    eq(json.loads(ctl(t, "pins", "--json")[0])["pins"], [])
    reload(t, servers(mode))
    for kind, s in sessions.items():
        eq(s.ask("tools/list")["result"]["tools"], [EVIL, DO] if mode == "warn" else [DO], kind)
    eq(waiting(t), sorted((kind, "echo") for kind in KINDS), "what was approved once")


@case(daemon=False, deadline=60)
def pins_that_warn_begin(t):
    """SEC-65: with pins from a reload on, nothing that was shown before, or comes with the first list, waits; pins that were there come back."""
    pins_begin(t, "warn")


@case(daemon=False, deadline=60)
def pins_that_are_enforced_begin(t):
    """SEC-65: likewise, and every tool can be called."""
    pins_begin(t, "enforce")


def pins_begin_with_what_was_shown(t, mode):
    lists = Lists(t)
    def servers(pin):
        return {kind: lists.server(pin=pin, isolation=kind) for kind in KINDS}
    t.start(servers("off"))
    sessions = {kind: t.session(kind) for kind in KINDS}
    for s in sessions.values():
        eq(s.ask("tools/list")["result"]["tools"], [SAFE, DO])
    lists.write(tools=[EVIL, DO])
    reload(t, servers(mode))
    for kind, s in sessions.items():
        eq(s.ask("tools/list")["result"]["tools"], [EVIL, DO] if mode == "warn" else [DO], kind)
        eq(is_refused(s.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})), mode == "enforce", kind)
    eq(waiting(t), sorted((kind, "echo") for kind in KINDS))


@case(daemon=False, deadline=60)
def pins_that_warn_begin_with_what_was_shown(t):
    """SEC-65: what a server has changed since it was shown last, under no pins yet, waits for approval."""
    pins_begin_with_what_was_shown(t, "warn")


@case(daemon=False, deadline=60)
def pins_that_are_enforced_begin_with_what_was_shown(t):
    """SEC-65: likewise, and it is withheld."""
    pins_begin_with_what_was_shown(t, "enforce")


@case(daemon=False, deadline=60)
def pins_that_begin_outlive_the_gateway(t):
    """SEC-65 SEC-68: pins that come by a reload are kept at once: what the server changes after the gateway was killed waits."""
    lists = Lists(t)
    t.start({"main": lists.server(pin="off")})
    eq(t.session().ask("tools/list")["result"]["tools"], [SAFE, DO])
    reload(t, {"main": lists.server()})
    kill(t.daemon.find_gateway())
    lists.write(tools=[EVIL, DO])
    wait_for(lambda: len(t.daemon.log("gateway_ready")) > 1, what="another gateway")
    t.daemon.gateway = None
    eq(t.session().ask("tools/list")["result"]["tools"], [DO])


@case(daemon=False, deadline=60)
def what_a_server_says_of_itself_under_other_pins(t):
    """SEC-65: what it said of itself while nobody pinned is judged by the pins that a reload brings back."""
    lists = Lists(t)

    def init(text):
        with open(lists.path("init"), "w") as f:
            json.dump({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}, "instructions": text}, f)

    def said():
        return modern(t, "main", "server/discover").get("instructions"), t.session().result["result"].get("instructions")

    def servers(pin):
        return {"main": dict(lists.server(era="legacy", pin=pin, isolation="shared"), script=lists.script(init=[["result_of", lists.path("init")]]))}
    init("good")
    t.start(servers("enforce"))
    eq(said(), ("good", "good"))
    reload(t, servers("off"))
    init("evil")
    ctl(t, "restart", "main")
    t.session().ask("tools/list")  # the next process
    eq(said(), ("evil", "evil"))
    reload(t, servers("enforce"))
    eq(said(), (None, None))
    eq(waiting(t), [("main", "instructions")])


@case(daemon=False, deadline=60)
def a_description_that_is_none_as_it_was_written(t):
    """REL-43: only sanitized it describes a server: the rules of a reload are applied to that."""
    line = ('{"jsonrpc":"2.0","id":@ID@,"method":"\u200b","result\u200b":{"protocolVersion":"2025-06-18","capabilities":{},'
            '"serverInfo":{"name":"x","version":"1"}}}')
    def servers(seconds):
        return {"main": {"script": {"init": [["line", line]]}, "isolation": "shared", "sanitize": {"invisible": "strip"},
                         "request_timeout": "%ds" % seconds}}
    t.start(servers(10))
    gateway = t.daemon.gateway
    t.session()
    reload(t, servers(11))
    eq(t.session().result["result"]["protocolVersion"], mcp.C)
    eq(t.daemon.find_gateway(), gateway)


def waiting(t):
    return sorted((pin["server"], pin["name"]) for pin in json.loads(ctl(t, "pins", "--json")[0])["pins"] if pin["state"] != "approved")


# ---- calls that wait ---------------------------------------------------------------------------------------------------


@case(daemon=False, deadline=60)
def calls_in_a_queue(t):
    """product §4: a call that waited for a place over a reload is judged as one that comes now: refused with the same text, recorded once, not sent."""
    records = c95_audit.Records(os.path.join(t.directory(), "audit"))
    def servers(**rules):
        return {kind: dict({"script": {"on": {"tools/list": [["result", {"tools": [DO]}]]}}, "isolation": kind,
                            "pool": {"max": 1, "requests_per_process": 1, "queue_timeout": "30s"}}, **rules) for kind in ("principal", "shared")}
    config = {"audit": {"to": records.path}}
    t.start(servers(), config)
    for kind in ("principal", "shared"):
        s, old = t.session(kind), t.sse(server=kind)
        running = s.start_do(["progress", 1], ["sleep", 2], ["text", "ran"], token="a")
        eq(running.next()["params"]["progress"], 1)
        waiting = s.start_do(["text", "waited"])
        of_old = old.start_do(["text", "waited"])
        params = {"name": "do", "arguments": {"steps": [["text", "waited"]]}}
        body = message("tools/call", params)
        of_modern = begin_modern(t, kind, body, fields(body))
        wait_for(lambda: queued(t, kind) == 3, what="those that wait; a list that one of them needs is no call")
        reload(t, servers(tools={"deny": ["do"]}), config)
        fresh = s.ask("tools/call", params)["error"]
        eq(running.final()["result"]["content"][0]["text"], "ran", "what runs goes on")
        eq(waiting.final()["error"], fresh)
        eq(old.wait_answer(of_old)["error"], fresh)
        eq(json.loads(of_modern.response().read())["error"], fresh)
        reload(t, servers(), config)
        refused = [r for r in records.all() if r.get("server") == kind and r.get("reason") == "not_permitted"]
        eq(len(refused), 4, refused)
        sent = [m for pid, _ in t.daemon.records_of(kind) for m in t.daemon.messages(pid) if m.get("method") == "tools/call"]
        eq(len(sent), 1, "nothing of them was sent")


@case(daemon=False, deadline=60)
def calls_in_a_queue_that_may_go_on(t):
    """product §4: whoever waited over a reload and may still call gets his turn; a call without the arguments that schemas require now does not."""
    tool = dict(DO, inputSchema={"type": "object", "required": ["more"]})
    def servers(**rules):
        return {kind: dict({"script": {"on": {"tools/list": [["result", {"tools": [tool]}]]}}, "isolation": kind,
                            "pool": {"max": 1, "requests_per_process": 1, "queue_timeout": "30s"}}, **rules) for kind in ("principal", "shared")}
    t.start(servers())
    for kind in ("principal", "shared"):
        s = t.session(kind)
        for rules in ({"request_timeout": "1m"}, {"tools": {"arguments": {"schema": "check"}}}):
            running = s.start_do(["progress", 1], ["sleep", 1], ["text", "ran"], token="a")
            eq(running.next()["params"]["progress"], 1)
            waiting = [s.start("tools/call", {"name": "do", "arguments": {"steps": [["text", "waited"]], "more": i}}) for i in range(3)]
            unfit = s.start_do(["text", "waited"])
            wait_for(lambda: queued(t, kind) == 4, what="those that wait")
            reload(t, servers(**rules))
            eq([e.final()["result"]["content"][0]["text"] for e in [running] + waiting], ["ran"] + ["waited"] * 3)
            eq("error" in unfit.final(), "tools" in rules, (kind, rules))
        reload(t, servers())


@case(daemon=False, deadline=60)
def lists_that_are_awaited(t):
    """product §5: a list that was asked for before a reload, and comes after it, is shown by the rules and roles that hold then."""
    tools = [{"name": name, "description": SECRET, "inputSchema": {"type": "object"}} for name in ("a", "b")]
    def servers(**rules):
        return {kind: dict({"script": {"on": {"tools/list": [["sleep", 1], ["result", {"tools": tools}]]}}, "isolation": kind}, **rules)
                for kind in ("principal", "shared")}
    token = "one-token-0123456789abcdef"
    def config(**more):
        return dict({"auth": {"mode": "token", "tokens": [dict({"name": "one", "sha256": hashlib.sha256(token.encode()).hexdigest()}, **more)]}})
    t.start(servers(), config())
    for kind in ("principal", "shared"):
        s = t.session(kind, token=token)
        before = 0
        for rules, more, shown in (({"redact": ["sk-[0-9]+"]}, {}, [("a", "[redacted]"), ("b", "[redacted]")]),
                                   ({}, {"tools": {kind: ["b"]}}, [("b", SECRET)])):
            pending = [s.start("tools/list"), s.start("tools/list")]
            wait_for(lambda: lists_asked(t, kind) > before, what="the list is asked for")
            reload(t, servers(**rules), config(**more))
            for exchange in pending:
                eq([(tool["name"], tool["description"]) for tool in exchange.final(20)["result"]["tools"]], shown, (kind, rules, more))
            reload(t, servers(), config())
            eq(len(s.ask("tools/list")["result"]["tools"]), 2)
            reload(t, servers(redact=["none"]), config())
            reload(t, servers(), config())
            before = lists_asked(t, kind)


def lists_asked(t, server):
    return sum(m.get("method") == "tools/list" for pid, _ in t.daemon.records_of(server) for m in t.daemon.messages(pid))


def queued(t, server):
    return next(s["waiting"] for s in json.loads(ctl(t, "status", "--json")[0])["servers"] if s["name"] == server)
