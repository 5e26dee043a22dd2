# SPDX-License-Identifier: Apache-2.0
"""The status page at the admin socket and at admin.page: its bounds, its token. mcpgated(1), threats.md SEC-78."""
import hashlib
import json
import os
import signal

from harness import case, eq, ok, wait_for
from c70_admin import admin, get, of
from wire import free_port

SERVERS = {"main": {}, "broken": {"command": "/nonexistent/command"}}
TOKEN = "operator-token"
HASH = hashlib.sha256(TOKEN.encode()).hexdigest()
VIEWERS = 16


def start(t, token=None, servers=None):
    port = free_port()
    d = t.start(servers or SERVERS, {"admin": dict({"page": "127.0.0.1:%d" % port}, **({"page_token": token} if token else {}))})
    return d, ("127.0.0.1", port)


def look(t, at, **kw):
    """A viewer: its connection and the bytes of its stream."""
    conn = t.conn(address=at, **kw)
    return conn, conn.request("GET", "/events")


def snapshot(response):
    text = b""
    while not (b"data: " in text and text.endswith(b"\n\n")):
        text += response.read_some()
    return json.loads(text.rsplit(b"data: ", 1)[1])


@case(daemon=False)
def page_and_its_files(t):
    """SEC-78: at both addresses the same page, with a policy that lets nothing else run; nothing else is at admin.page."""
    d, at = start(t)
    for where in (at, d.admin):
        for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"), ("/icon.svg", "image/svg+xml")):
            response = t.conn(address=where).request("GET", path)
            ok(len(response.read()) > 100, "a file", path)
            eq((response.status, response.header("content-type").split(";")[0]), (200, kind), path)
            ok("frame-ancestors 'none'" in response.header("content-security-policy"), "a policy", path)
    for path in ("/status", "/metrics", "/deny", "/mcp/main", "/main/mcp", "/page"):
        eq(t.conn(address=at).request("GET", path).status, 404, path)


@case(daemon=False)
def snapshots_tell(t):
    """product §3: a snapshot a second: servers with their state and cause, sessions, processes, refusals, counters."""
    d, at = start(t)
    s = t.session(daemon=d)
    s.echo("x")
    conn, response = look(t, at)
    first = snapshot(response)
    eq(of(first["status"]["servers"], name="main")["state"], "ready")
    eq([r["server"] for r in first["sessions"]], ["main"])
    eq([p["server"] for p in first["processes"]], ["main"])
    s.echo("y")
    second = snapshot(response)
    eq(second["counters"]["calls"], first["counters"]["calls"] + 1)
    ok(second["status"]["uptime_ms"] - first["status"]["uptime_ms"] >= 900, "a second between them")
    s.delete()
    wait_for(lambda: snapshot(response)["sessions"] == [], 5, "a snapshot without the session")


@case(daemon=False)
def viewers_are_bounded(t):
    """SEC-78: sixteen look, at both addresses together; one more gets 503, until one has left."""
    d, at = start(t)
    viewers = [look(t, at if i % 2 else d.admin) for i in range(VIEWERS)]
    for _, response in viewers:
        eq(response.status, 200)
    for where in (at, d.admin):
        conn, response = look(t, where)
        eq(response.status, 503)
        ok("too many" in json.loads(response.read())["error"], "a reason")
    viewers.pop()[0].close()
    wait_for(lambda: look(t, at)[1].status == 200, 5, "a place")


@case(daemon=False, deadline=60)
def stalled_viewer_is_ended(t):
    """SEC-78: who takes nothing of its snapshots is ended, with its place; the others see everything meanwhile."""
    names = {"server-%03d" % i: {"command": "/nonexistent/command"} for i in range(250)}  # snapshots of some hundred KiB
    d, at = start(t, servers=dict(SERVERS, **names))
    stalled, head = look(t, at, receive_buffer=4096)
    eq(head.status, 200)
    other = look(t, at)[1]
    ended = lambda: [line for line in d.log("connection_end") if "slow_reader" in str(line)]
    wait_for(lambda: len(snapshot(other)["status"]["servers"]) == 252 and ended(), 45, "the end of the stalled viewer")
    eq(len(snapshot(other)["status"]["servers"]), 252)


@case(daemon=False)
def orders_take_the_token(t):
    """SEC-78: at admin.page orders take the token of admin.page_token, and come from no other page; at the socket they do not."""
    d, at = start(t, HASH)
    s = t.session(daemon=d)
    path = "/end-session?id=" + get(t, "/sessions", d)["sessions"][0]["session"]
    right = ("Authorization", "Bearer " + TOKEN)
    for headers in ([], [("Authorization", "Bearer x")], [("Authorization", "Bearer " + HASH)], [right, ("Origin", "http://evil.example")],
                    [right, ("Host", "evil.example")], [right, ("Origin", "http://127.0.0.1:1")]):
        eq(t.conn(address=at).request("POST", path, headers).status, 403, repr(headers))
    d.wait_log("admin_refused")
    for order in ("/deny-add", "/reload", "/can"):
        eq(t.conn(address=at).request("POST", order, [right]).status, 404, order)
    s.echo("still there")
    own = ("Origin", "http://127.0.0.1:%d" % at[1])
    eq(json.loads(t.conn(address=at).request("POST", path, [right, own]).read()), {"ended": 1})
    eq(get(t, "/sessions", d)["sessions"], [])
    s.end_quietly = lambda: None
    for headers in ([("Origin", "http://evil.example")], [("Host", "evil.example")]):
        eq(admin(t, d).request("POST", "/drain", headers).status, 403, repr(headers))
    eq(t.conn(address=at).request("POST", "/drain", [right]).status, 200)
    eq(d.wait(), 0, "exit status")


@case(daemon=False)
def without_a_token_it_shows(t):
    """SEC-78: without admin.page_token no order is taken at admin.page, whatever is shown."""
    d, at = start(t)
    for headers in ([], [("Authorization", "Bearer x")], [("Authorization", "Bearer ")]):
        response = t.conn(address=at).request("POST", "/drain", headers)
        eq(response.status, 403)
        ok("only shows" in json.loads(response.read())["error"], "a reason")
    eq(json.loads(t.conn(address=at).request("GET", "/access").read()), {"orders": False, "token": False})
    eq(json.loads(admin(t, d).request("GET", "/access").read()), {"orders": True, "token": False})


@case(daemon=False)
def page_after_the_gateway(t):
    """REL-30: when the gateway is killed, the address stays, and the next gateway has the page."""
    d, at = start(t, HASH)
    conn, response = look(t, at)
    snapshot(response)
    gateway = d.find_gateway()
    os.kill(gateway, signal.SIGKILL)
    t.expect_error_log("gateway_exit")
    wait_for(lambda: d.find_gateway() not in (None, gateway), 5, "another gateway")
    conn, response = look(t, at)
    ok(snapshot(response)["status"]["state"] == "serving", "it serves")
    right = ("Authorization", "Bearer " + TOKEN)
    eq(json.loads(t.conn(address=at).request("GET", "/access", [right]).read())["orders"], True)
