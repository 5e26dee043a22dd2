# SPDX-License-Identifier: Apache-2.0
"""The shortest stories: if one of these fails, nothing else is worth reading."""
import os

import harness
import mcp
from harness import case, eq, ok

SERVERS = {"main": {}, "other": {}}


@case
def starts_and_is_alive(t):
    """REL-43: /healthz and /readyz answer GET and HEAD with 200 once the ready line is out."""
    for path in ("/healthz", "/readyz"):
        response = t.conn().request("GET", path)
        response.read()
        eq(response.status, 200, path)
        response = t.conn().request("HEAD", path)
        eq((response.status, response.read()), (200, b""), "HEAD " + path)


@case
def ready_lines_name_each_server(t):
    """product §2: one ready line per endpoint, with the URL that works."""
    eq(sorted(t.daemon.endpoints), ["main", "other"])
    for name, url in t.daemon.endpoints.items():
        eq(url, "http://127.0.0.1:%d/%s/mcp" % (t.daemon.address[1], name))


@case
def one_session_of_each_revision(t):
    """FRONT-INIT-01 FRONT-SESS-01 FRONT-SESS-06: initialize, list, call, end, for each revision."""
    for version in mcp.ALL:
        s = t.session("main", version)
        eq(s.result["result"]["protocolVersion"], version)
        eq(s.result["result"]["serverInfo"], {"name": "scripted", "version": "1"})
        eq([x["name"] for x in s.ask("tools/list")["result"]["tools"]], ["do", "echo"])
        eq(s.echo("hello " + version), "hello " + version)
        eq(s.delete().status, 204)
        eq(s.post(mcp.request(1, "ping")).status, 404)
        s.id = None


@case
def each_session_has_its_own_process(t):
    """SEC-07 bridging 1.2: sessions of one server never share a process."""
    a, b = t.session(), t.session()
    ok(a.pid() != b.pid(), "two sessions share a process")
    eq(a.pid(), a.pid(), "process of one session")


@case
def servers_are_told_apart_by_path(t):
    """bridging 1.1 row 14: one endpoint path per server; a session of one is unknown at the other."""
    s = t.session("other")
    ok(t.daemon.children("other") and s.pid() in t.daemon.children("other"), "wrong server")
    s.path = "/main/mcp"
    eq(s.post(mcp.request(1, "ping")).status, 404)
    s.path = "/other/mcp"
    eq(s.ask("ping")["result"], {})


@case(daemon=False)
def one_command_form_with_the_demo(t):
    """product §2: one command, no file; mcpgated-demo answers on /mcp."""
    t.start(args=["--listen", "127.0.0.1:0", "--", os.path.join(harness.BIN, "mcpgated-demo")])
    s = t.session("demo", path="/mcp")
    tools = [x["name"] for x in s.ask("tools/list")["result"]["tools"]]
    for tool in ("echo", "add", "sleep", "progress"):
        ok(tool in tools, "no tool", tool, tools)
    answer = s.ask("tools/call", {"name": "echo", "arguments": {"text": "hé", "message": "hé"}})
    ok("hé" in str(answer["result"]["content"]), "echo", answer)


@case(daemon=False)
def one_command_says_little(t):
    """product §2: without --log-level a command's log has few lines before it is ready, and one for a wrong path; no file is spoken of."""
    run = t.directory()
    d = t.start(args=["--listen", "127.0.0.1:0", "--", os.path.join(harness.BIN, "mcpgated-demo")], env={"XDG_RUNTIME_DIR": run})
    before = [line for line in d.lines if not line.startswith("mcpgated: ")]
    ok(len(before) <= 12 and not any(" debug " in line for line in d.lines), "what comes before", d.lines)
    eq(len([line for line in before if " confine process=gateway " in line]), 1, before)
    eq(t.conn().request("GET", "/demo/mcp").status, 404)
    d.wait_log("path_unknown", "path=/demo/mcp")


@case(daemon=False)
def one_command_form_with_a_name(t):
    """product §2: --name names the server in the ready line; the paths stay short."""
    t.start(args=["--listen", "127.0.0.1:0", "--name", "mine", "--"] + harness.child_argv({}))
    eq(list(t.daemon.endpoints), ["mine"])
    ok(t.daemon.endpoints["mine"].endswith("/mcp"), "endpoint", t.daemon.endpoints)
    s = t.session("mine", path=t.daemon.endpoints["mine"].split("/", 3)[3].join(["/", ""]))
    eq(s.echo("x"), "x")


@case
def demo_tools_work_through_the_gateway(t):
    """UTIL-PROG-01: progress of mcpgated-demo arrives in order, before the answer."""
    d = t.start(args=["--listen", "127.0.0.1:0", "--", os.path.join(harness.BIN, "mcpgated-demo")])
    s = t.session("demo", path="/mcp", daemon=d)
    tools = {x["name"]: x for x in s.ask("tools/list")["result"]["tools"]}
    for name in ("add", "progress"):
        ok(tools[name]["inputSchema"]["type"] == "object", "schema of", name)
    params = {"name": "progress", "arguments": {"count": 3, "interval_ms": 5}, "_meta": {"progressToken": "tok"}}
    messages = s.start("tools/call", params).rest()
    values = [m["params"]["progress"] for m in messages[:-1] if m.get("method") == "notifications/progress"]
    ok(values and values == sorted(values), "progress", messages)
    ok("result" in messages[-1], "answer", messages[-1])
