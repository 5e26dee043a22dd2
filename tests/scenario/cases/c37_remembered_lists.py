# SPDX-License-Identifier: Apache-2.0
"""What servers said of themselves, and their lists, when their last process has been stopped. bridging §1.8"""
import json
import os
import shlex

import mcp
from cases.c61_token import ALICE, BOB, entry
from cases.c70_admin import get, post
from cases.c80_stateless import ask, do, fields, message
from harness import case, child_argv, eq, ok, wait_for

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
SERVERS = {
    "main": {"script": {}},
    "own": {"script": {}, "isolation": "principal"},
    "all": {"script": {}, "isolation": "shared"},
    "modern": {"script": {"era": "modern"}, "era": "modern"},
    "short": {"script": {}, "pool": {"remember": "1s"}},
    "never": {"script": {}, "pool": {"remember": 0}},
}
CONFIG = {"defaults": {"pool": {"idle_timeout": "300ms"}}}


def result(t, server, method, **kw):
    status, found = ask(t, server, method, **kw)
    eq(status, 200, found)
    return found[-1]["result"]


def look(t, server, **kw):
    """All that there is to see of it."""
    return [result(t, server, method, **kw) for method in ("server/discover",) + LISTS]


def sleeps(t, server):
    wait_for(lambda: not t.daemon.children(server), 10, "the end of the idle process")


def is_idle(t, server):
    row = [s for s in get(t, "/servers")["servers"] if s["name"] == server][0]
    return (row["state"], row["processes"], row["sessions"]) == ("idle", 0, 0)


@case(config=CONFIG, deadline=30)
def looking_costs_no_process(t):
    """MOD-RES-03 MOD-DISC-02: discovery and lists are told after the process has gone; a call starts one, and that is listed then."""
    for server in ("main", "own", "all", "modern"):
        before = look(t, server)
        first = t.daemon.started(server)
        sleeps(t, server)
        for _ in range(3):
            eq(look(t, server), before, server)
        eq((t.daemon.started(server), t.daemon.children(server)), (first, []), server)
        wait_for(lambda: is_idle(t, server), 3, "the gateway to know that the process has gone")
        eq([p for p in get(t, "/processes")["processes"] if p["server"] == server], [], server)
        eq(t.daemon.started(server), first, server)
        do(t, server, ["text", "x"])
        eq(t.daemon.started(server), first + 1, server)
        look(t, server)
        asked = [m["method"] for m in t.daemon.messages(t.daemon.children(server)[0])]
        eq(sorted(set(LISTS) - set(asked)), [], "lists of the process that is there")


@case(config=CONFIG, deadline=30)
def memory_has_an_end(t):
    """bridging §1.8: as long as pool.remember says; by the operator's word; not at all."""
    look(t, "short")
    first = t.daemon.started("short")
    sleeps(t, "short")
    wait_for(lambda: [look(t, "short"), t.daemon.started("short") > first][1], 10, "the end of what is remembered")
    look(t, "never")
    first = t.daemon.started("never")
    sleeps(t, "never")
    look(t, "never")
    eq(t.daemon.started("never"), first + 1)
    look(t, "main")
    first = t.daemon.started("main")
    sleeps(t, "main")
    look(t, "main")
    eq(t.daemon.started("main"), first)
    post(t, "/restart?server=main")
    look(t, "main")
    eq(t.daemon.started("main"), first + 1)


@case(config=CONFIG, deadline=30)
def failed_process_is_not_believed(t):
    """bridging §1.8: when a process fails, what it and those before have said is asked anew."""
    look(t, "main")
    sleeps(t, "main")
    status, found = ask(t, "main", "tools/call", {"name": "do", "arguments": {"steps": [["exit", 3]]}})
    ok("error" in found[-1], "the call fails", status, found)
    first = t.daemon.started("main")
    look(t, "main")
    ok(t.daemon.started("main") > first, "a process is asked")


@case(daemon=False, deadline=30)
def other_lists_are_seen(t):
    """bridging §1.8: another program in its place is seen when one of its processes serves, and not before."""
    names, records = os.path.join(t.directory(), "names"), t.directory()
    tool = '{"jsonrpc":"2.0","id":@ID@,"result":%s}'

    def script(name):
        return {"on": {"tools/list": [["line", tool % json.dumps({"tools": [{"name": name, "inputSchema": {"type": "object"}}]})]]}}

    def write(name):
        with open(names + ".new", "w") as f:
            f.write("exec %s\n" % " ".join(shlex.quote(word) for word in child_argv(script(name), "main", records)))
        os.rename(names + ".new", names)

    write("old")
    t.start({"main": {"command": "/bin/sh", "args": [names]}}, CONFIG)

    def listed():
        return [found["name"] for found in result(t, "main", "tools/list")["tools"]]

    def count():
        return get(t, "/servers")["servers"][0]["processes"]

    eq(listed(), ["old"])
    wait_for(lambda: count() == 0, 10, "the end of the idle process")
    write("new")
    eq(listed(), ["old"])
    do(t, "main", ["text", "x"])
    eq(listed(), ["new"])
    wait_for(lambda: count() == 0, 10, "the end of the idle process")
    eq((listed(), count()), (["new"], 0))


@case(own=True, deadline=30, servers={"main": {"script": {}}, "all": {"script": {}, "isolation": "shared"}},
      config=dict(CONFIG, auth={"mode": "token", "tokens": [entry("alice", ALICE), entry("bob", BOB)]}))
def nobody_else_gets_it(t):
    """MOD-RES-04 AUTH-SES-10 AUTH-SES-09: what one caller was shown is remembered for him alone."""
    def tools(server, token):
        result(t, server, "tools/list", head=fields(message("tools/list")) + mcp.bearer(token))
        return t.daemon.started(server)

    for server in ("main", "all"):
        first = tools(server, ALICE)
        sleeps(t, server)
        eq(tools(server, ALICE), first, server)
        eq(tools(server, BOB), first + 1, server)
        pid = t.daemon.children(server)[0]
        eq([m.get("method") for m in t.daemon.messages(pid)].count("tools/list"), 1, "asked for the other one")
        sleeps(t, server)
        eq((tools(server, ALICE), tools(server, BOB)), (first + 1 + (server == "all"),) * 2, server)
