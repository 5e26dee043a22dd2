# SPDX-License-Identifier: Apache-2.0
"""
Tools and prompts that clients see under other names and in other words: on every way in lists and uses agree, the server
gets its own names, and rules go by these.
"""
import json

import mcp
from c108_endpoints import call, heard, names_of, over, text_of
from c100_reload import reload
from c65_doors import Place, Way, each_way
from c66_names import recorded
from c92_permissions import ask, refused
from harness import case, eq, ok

OBJECT = {"type": "object"}
LISTS = {"on": {
    "tools/list": [["result", {"tools": [
        {"name": "echo", "description": "Its own words.", "annotations": {"title": "Its title", "readOnlyHint": True}, "inputSchema": OBJECT},
        {"name": "do", "inputSchema": OBJECT}, {"name": "drop", "inputSchema": OBJECT}, {"name": "say", "inputSchema": OBJECT}]}]],
    "prompts/list": [["result", {"prompts": [{"name": "p"}, {"name": "p2"}]}]],
}}
SHOWN = {"tools": {"rename": {"echo": "say", "drop": "remove"}, "describe": {"echo": 'Says "it".'}, "deny": ["drop"],
                   "annotations": {"echo": {"readOnlyHint": False, "title": "Say"}, "do": {"destructiveHint": True}}},
         "prompts": {"rename": {"p": "p.new"}, "describe": {"p": "New."}}}
SERVERS = {"main": dict(SHOWN, script=LISTS), "pooled": dict(SHOWN, script=LISTS, isolation="shared")}
TOOLS = [{"name": "say", "description": 'Says "it".', "annotations": {"readOnlyHint": False, "title": "Say"}, "inputSchema": OBJECT},
         {"name": "do", "annotations": {"destructiveHint": True}, "inputSchema": OBJECT}]
PROMPTS = [{"name": "p.new", "description": "New."}, {"name": "p2"}]


def completion(name):
    return "completion/complete", {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "x", "value": ""}}


def every_use(t, name):
    way = Way(t, name, SERVERS)
    for server in SERVERS:
        place = way.open(server)
        for method, member, expected in (("tools/list", "tools", TOOLS), ("prompts/list", "prompts", PROMPTS)):
            eq(ask(way, place, server, method, {})[1]["result"][member], expected, (method, server))
        for method, params in (("tools/call", {"name": "say", "arguments": {"text": "x"}}), ("prompts/get", {"name": "p.new"}),
                               completion("p.new"), ("prompts/get", {"name": "p2"})):
            _, answer = ask(way, place, server, method, params)
            ok("result" in answer, method, params, answer)
        for method, params in (("tools/call", {"name": "echo"}), ("tools/call", {"name": "drop"}), ("tools/call", {"name": "remove"}),
                               ("prompts/get", {"name": "p"}), completion("p")):
            refused(way, place, server, method, params)
        got = {method: [m["params"].get("name") or m["params"]["ref"]["name"] for m in heard(t.daemon, server, method)]
               for method in ("tools/call", "prompts/get", "completion/complete")}
        eq(got, {"tools/call": ["echo"], "prompts/get": ["p", "p2"], "completion/complete": ["p"]}, "what %s was asked" % server)
    t.daemon.wait_log("names_collide", "server=main", "list=tools", "name=say")


each_way(every_use, "by_", "SEC-50 product §4: by way of %s lists show names and words that are not the server's own, and uses of them reach it by its own.")


@case(daemon=False, deadline=60)
def every_message_of_a_batch_is_renamed(t):
    """product §4: also beside others, with escapes in its name, and in a notification."""
    way = Way(t, "streamable_batch", {"main": dict(SHOWN, script=LISTS)})
    text = ('[{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"s\\u0061y","arguments":{"text":"mark-1."}}},'
            '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"say","arguments":{"text":"mark-2."}}},'
            '{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{"arguments":{"name":"say","text":"mark-3."},"name":"say"}}]')
    conn = way.send(way.home, text, way.good)
    answers = json.loads(conn.response().read())
    eq(sorted((a["id"], "result" in a) for a in answers), [(71, True), (72, True)])
    got = recorded(way, "mark-")
    eq({number: (m["params"]["name"], m["params"]["arguments"].get("name")) for number, m in got.items()},
       {1: ("echo", None), 2: ("echo", None), 3: ("echo", "say")})


@case(daemon=False, deadline=30)
def a_reload_renames(t):
    """product §4: open sessions are told that lists have changed, and know the new names at once."""
    named = {name: dict(SERVERS[name], tools={"rename": {"echo": "tell"}}) for name in SERVERS}
    t.start(SERVERS)
    sessions = {name: t.session(name) for name in SERVERS}
    streams = {name: s.get() for name, s in sessions.items()}
    for s in sessions.values():
        eq(names_of(s.ask("tools/list")), ["say", "do"])
    reload(t, named)
    for name, s in sessions.items():
        eq(streams[name].next()["method"], "notifications/tools/list_changed")
        eq(names_of(s.ask("tools/list")), ["tell", "do", "drop", "say"])
        eq(text_of(s.ask("tools/call", {"name": "tell", "arguments": {"text": "x"}})), "x")
        eq(s.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})["error"]["code"], -32602)


@case(daemon=False, deadline=30)
def an_endpoint_shows_the_same(t):
    """END-03: an endpoint over several servers adds its prefix to the name that is shown, and what a tool needs is what it needs by its own name."""
    way = Way(t, "streamable", {"main": dict(SHOWN, script=LISTS, tools=dict(SHOWN["tools"], scopes={"echo": ["write"]})), "b": {"script": {}}},
              endpoints=over("main", "b")["endpoints"])
    s = t.session("all", token=way.token("all"))
    eq(names_of(s.ask("tools/list")), ["main__say", "main__do", "b__do", "b__echo"])
    eq(text_of(s.ask("tools/call", {"name": "main__say", "arguments": {"text": "x"}})), "x")
    eq(call(s, "main__echo")["error"]["code"], -32602)
    weak = way.send(Place(t.daemon.address, "/all/mcp", [("Mcp-Session-Id", s.id)]),
                    mcp.request(99, "tools/call", {"name": "main__say", "arguments": {"text": "x"}}), way.token("all", scope="use")).response()
    eq((weak.status, 'write' in weak.header("www-authenticate")), (403, True))
    eq([m["params"]["name"] for m in heard(t.daemon, "main", "tools/call")], ["echo"])


@case(daemon=False, deadline=30)
def pins_keep_the_servers_names(t):
    """product §5: renaming a pinned tool needs no approval; pins have the server's own names."""
    t.start({"main": {"script": LISTS, "pin": "enforce"}})
    eq(names_of(t.session("main").ask("tools/list")), ["echo", "do", "drop", "say"])
    reload(t, {"main": dict(SHOWN, script=LISTS, pin="enforce")})
    s = t.session("main")
    eq(names_of(s.ask("tools/list")), ["say", "do"])
    eq(text_of(s.ask("tools/call", {"name": "say", "arguments": {"text": "x"}})), "x")


@case(daemon=False, deadline=30)
def a_reload_while_a_session_begins(t):
    """product §4: who waits for a place has seen no lists: there is nothing to be told, and the session begins."""
    server = {"script": {}, "pool": {"max": 1}}
    t.start({"main": server})
    t.session(source="127.0.0.1")
    gateway = t.daemon.find_gateway()
    second = mcp.Session(t, t.daemon, "main", source="127.0.0.2", check=False)
    for _ in range(2):  # what was sent before has been read then
        eq(t.conn().request("GET", "/healthz").status, 200)
    reload(t, {"main": dict(server, tools={"deny": ["nothing"]})})
    eq(second.started.status, 200)
    second.result = second.started.final()
    second.take_id()
    t.sessions.append(second)
    eq(second.echo("on"), "on")
    eq(t.daemon.find_gateway(), gateway)
