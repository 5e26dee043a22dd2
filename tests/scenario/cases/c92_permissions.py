# SPDX-License-Identifier: Apache-2.0
"""
What of a server may be used: what its rules do not allow is as if it were not there, in lists and in calls, on every way
in and however it is spelled. What was used is judged by what the server records.
"""
import json
import re

import mcp
from c65_doors import WAYS, Way, each_way
from c66_names import MALFORMED, METHODS, OTHER, SPELLINGS, TOOLS, call, named, recorded, tools_read
from c70_admin import admin, metrics
from c80_stateless import meta
from harness import case, eq, ok, wait_for

LISTS = {"on": {
    "tools/list": [["result", {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("echo", "do", "drop_all", "DROP_it")]}]],
    "prompts/list": [["result", {"prompts": [{"name": "hidden"}, {"name": "p"}]}]],
    "resources/list": [["result", {"resources": [{"uri": "res://a", "name": "a"}, {"uri": "res://private/b", "name": "b"}]}]],
    "resources/templates/list": [["result", {"resourceTemplates": [
        {"uriTemplate": "res://{x}", "name": "x"}, {"uriTemplate": "secret://{x}", "name": "y"},
        {"uriTemplate": "file:///{x}", "name": "z"}]}]],
}}
RULES = {"tools": {"deny": ["drop_*"]}, "prompts": {"allow": ["p*"]},
         "resources": {"allow": ["res://*"], "deny": ["res://private/*"]}, "templates": {"deny": ["secret:*"]}}
SERVERS = {"main": dict(RULES, script=LISTS), "pooled": dict(RULES, script=LISTS, isolation="shared")}
LISTED = {"tools/list": ("tools", "name", ["echo", "do"]), "prompts/list": ("prompts", "name", ["p"]),
          "resources/list": ("resources", "uri", ["res://a"]),
          "resources/templates/list": ("resourceTemplates", "uriTemplate", ["res://{x}", "file:///{x}"])}
DENIED = [
    ("tools/call", {"name": "drop_all"}), ("tools/call", {"name": "Drop_All"}), ("tools/call", {"name": "drop_ unlisted"}),
    ("prompts/get", {"name": "hidden"}), ("prompts/get", {"name": "q"}),
    ("resources/read", {"uri": "res://private/b"}), ("resources/read", {"uri": "res://private/x/../b"}),
    ("resources/read", {"uri": "res://priv%61te/b"}), ("resources/read", {"uri": "file:///etc/passwd"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "hidden"}, "argument": {"name": "a", "value": ""}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "secret://{x}"}, "argument": {"name": "a", "value": ""}}),
]
SUBSCRIPTIONS = [("resources/subscribe", {"uri": "res://private/b"}), ("resources/unsubscribe", {"uri": "file:///x"})]
ALLOWED = [
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}}), ("prompts/get", {"name": "p"}),
    ("resources/read", {"uri": "res://a"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
]


def ask(way, place, server, method, params):
    """What one request is told: a status, and its answer. In a batch a ping goes first."""
    way.last_id += 2
    message = mcp.request(way.last_id, method, dict(params))
    if way.front == "stateless":
        message["params"]["_meta"] = meta()
    token = None if way.front == "admin" else way.token(server)
    text = [mcp.request(way.last_id - 1, "ping"), message] if way.is_batch else message
    conn = way.send(place, text, token)
    response = conn.response()
    body = response.read()
    conn.close()
    if place.sse and response.status == 202:
        return 202, place.sse.wait_answer(way.last_id)
    answers = json.loads(body)
    answers = answers if isinstance(answers, list) else [answers]
    return response.status, next((a for a in answers if a.get("id") == way.last_id), answers[0])


def refused(way, place, server, method, params):
    status, answer = ask(way, place, server, method, params)
    ok("error" in answer, "%s %s" % (method, params), answer)
    eq(answer["error"]["code"], -32602, "%s %s" % (method, params))
    ok(answer["error"]["message"].startswith("Invalid params: there is no such "), answer)
    eq(status, 400 if way.front == "stateless" or way.is_batch and not place.sse else 202 if place.sse else 200, method)


def every_use(t, name):
    way = Way(t, name, SERVERS)
    for server in ("main", "pooled"):
        place = way.open(server)
        for method, (member, key, expected) in LISTED.items():
            _, answer = ask(way, place, server, method, {})
            eq([item[key] for item in answer["result"][member]], expected, "%s of %s" % (method, server))
        for method, params in DENIED + (SUBSCRIPTIONS if way.front != "stateless" else []):
            refused(way, place, server, method, params)
        for method, params in ALLOWED:
            ok("result" in ask(way, place, server, method, params)[1], server, method, "may be used")
        used = [m for pid, _ in t.daemon.records_of(server) for m in t.daemon.messages(pid)]
        for method, params in DENIED + SUBSCRIPTIONS:
            ok(not [m for m in used if m.get("method") == method and
                    all(m.get("params", {}).get(k) == v for k, v in params.items())], "it has reached the server", method, params)
        eq({m["method"] for m in used} & {"resources/subscribe", "resources/unsubscribe"}, set(), "subscriptions")
        eq(len([m for m in used if m.get("method") == "resources/read"]), 1, "reads: that which may be")
    ok(counted(t, "requests_denied") >= 2 * len(DENIED), "they are counted", counted(t, "requests_denied"))


def counted(t, name):
    """A counter without labels."""
    return metrics(admin(t).request("GET", "/metrics").read())["mcpgated_%s_total" % name]


each_way(every_use, "by_", "SEC-50 product §4: by way of %s lists and uses agree, and nothing denied reaches the server.")


def every_spelling(t, name):
    """As in c66, but nobody may call these tools."""
    way = Way(t, name, {"main": {"script": {}, "tools": {"deny": list(TOOLS)}}})
    token = None if way.front == "admin" else way.good
    for i, (what, method, params) in enumerate(SPELLINGS):
        is_told = call(way, method, params, "denied-%d." % i, token)
        taken = is_told in ("200 taken", "202 taken")
        ok(taken == (what == OTHER) and (taken or " -32602" in is_told or what == MALFORMED), "told", what, params[:80], is_told)
    for i, method in enumerate(METHODS):
        is_told = call(way, method, named('"echo"'), "denied-%d." % (1000 + i), token)
        ok(" -32602" in is_told, "told", method, is_told)
    eq(call(way, "tools/call", named('"read"'), "last-0.", token)[4:], "taken", "another tool")
    ok(0 in recorded(way, "last-"), "it arrived, and so would have what came before")
    arrived = recorded(way, "denied-")
    eq(sorted(arrived), [i for i, (what, _, _) in enumerate(SPELLINGS) if what == OTHER], "what reached the server")
    for message in arrived.values():
        eq(tools_read(message), set(), "some server would run a denied tool for %s" % json.dumps(message))


each_way(every_spelling, "no_spelling_by_", "SEC-50 SEC-42: no spelling calls a denied tool by way of %s.", ways=WAYS[:-1])


@case(daemon=False)
def a_deny_that_fits_no_tool_is_told(t):
    """SEC-50 product §5: once a list has come, check has each entry of deny that fits none of the tools; of defaults none need fit."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("crash", "delete_all")]
    script = {"on": {"tools/list": [["result", {"tools": tools}]]}}
    t.start({"main": {"script": script, "tools": {"deny": ["crash", "crsh", "delete_*"]}}, "other": {"script": script},
             "single": {"script": script, "tools": {"deny": ["crahs"]}},
             "renamed": {"script": script, "tools": {"deny": ["halt"], "rename": {"crash": "halt"}}}},
            {"defaults": {"tools": {"deny": ["nowhere"]}}})

    def told():
        report = json.loads(t.conn(address=t.daemon.admin).request("GET", "/check").read())
        return [(p["about"], p["text"]) for p in report["problems"] if p["kind"] == "deny_unmatched"]
    eq(told(), [], "no list is known")
    for name in ("main", "other"):
        t.session(name).ask("tools/list")
    wait_for(lambda: len(told()) == 1, 5, "one")
    [(about, text)] = told()
    eq(about, "servers.main.tools.deny[1]")
    ok(re.fullmatch(r"servers\.main\.tools\.deny\[1\] \(\S+:\d+\) fits no tool that main lists: is it misspelt\? mcpgatectl tools main has the names",
                    text), "with its place", text)
    t.session("single").ask("tools/list")
    wait_for(lambda: len(told()) == 2, 5, "a list of one")
    t.session("renamed").ask("tools/list")
    wait_for(lambda: len(told()) == 3, 5, "one that is called otherwise")
    eq([about for about, text in told() if text.endswith(" has the names (of tools.rename, write the server's own)")], ["servers.renamed.tools.deny[0]"])
