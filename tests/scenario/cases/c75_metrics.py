# SPDX-License-Identifier: Apache-2.0
"""What monitoring reads of calls, and the traces that they belong to. mcpgated(1)."""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import harness
import mcp
from harness import case, eq, ok, wait_for
from c70_admin import admin, metrics
from c71_ctl import RAW, ctl, rows

NASTY = 'n"\\\n} 1\x1b[31m\u202e'
MANY = [{"name": "tool-%d" % i, "inputSchema": {"type": "object"}} for i in range(1000)]
FAILS = [["result", {"content": [], "isError": True}]]
SERVERS = {
    "main": {},
    "many": {"on": {"tools/list": [["result", {"tools": [{"name": NASTY, "inputSchema": {"type": "object"}}] + MANY}]]}},
    "bad": {"on": {"tools/call": FAILS}},
    "spaced": {"on": {"tools/call": [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"isError" : true}}']]}},
    "nested": {"on": {"tools/call": [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"isError"}],'
                                              '"structuredContent":{"isError":true,"E":["isError"]},"isError":false}}']]}},
    "refuses": {"on": {"tools/call": [["error", -32000, "no"]]}},
    "dead": {"command": "/nonexistent/command"},
    "plain": {"on": {"resources/templates/list": [["error", -32601, "no"]]}},
}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def read(t, daemon=None):
    return metrics(admin(t, daemon).request("GET", "/metrics").read())


def series(values, name, **labels):
    """The samples that have these labels, as {text of the other labels: value}."""
    found = {}
    for key, value in values.items():
        m = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})?", key)
        if m:
            has = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', m.group(1) or ""))
            if all(has.get(k) == v for k, v in labels.items()):
                found[",".join("%s=%s" % (k, v) for k, v in sorted(has.items()) if k not in labels)] = value
    return found


@case(own=True)
def calls_are_told_apart(t):
    """product §3: calls by server, method, tool, status and reason; how long they took and waited."""
    s = t.session()
    s.ask("tools/list")
    s.echo("x")
    s.echo("y")
    s.ask("ping")
    s.ask("acme/unknown-%d" % os.getpid())
    s.ask("tools/call", {"name": "nothing of the kind", "arguments": {}})
    call = s.start_do(["wait_cancel"])
    wait_for(lambda: read(t)["mcpgated_calls_in_flight"] == 1, 3, "the call in flight")
    s.cancel(call.id)
    for server in ("bad", "spaced", "nested", "refuses"):
        other = t.session(server)
        other.ask("tools/list")
        other.ask("tools/call", {"name": "do", "arguments": {}})
    wait_for(lambda: series(read(t), "mcpgated_calls_ended_total", server="main", tool="do", status="cancelled"), 3, "the end")
    values = read(t)

    def ended(**labels):
        return series(values, "mcpgated_calls_ended_total", **labels)
    eq(ended(server="main", method="tools/call", tool="echo"), {"status=ok": 2})
    eq(ended(server="main", method="tools/call", tool="other"), {"status=ok": 1})
    eq(ended(server="main", method="tools/call", tool="do"), {"status=ok": 0, "status=cancelled": 1})
    eq(ended(server="main", method="initialize"), {"status=ok": 1})
    eq(ended(server="main", method="ping"), {"status=ok": 1})
    eq(ended(server="main", method="other"), {"status=ok": 0, "status=error": 1})
    eq(ended(server="bad", method="tools/call", tool="do"), {"status=ok": 0, "status=tool_error": 1})
    eq(ended(server="spaced", method="tools/call", tool="do"), {"status=ok": 0, "status=tool_error": 1})
    eq(ended(server="nested", method="tools/call", tool="do"), {"status=ok": 1}, "what stands deeper says nothing of the tool")
    eq(ended(server="refuses", method="tools/call", tool="do"), {"status=ok": 0, "status=error": 1})
    eq(series(values, "mcpgated_call_duration_seconds_count", server="main", tool="echo"), {"method=tools/call": 2})
    for name in ("wait", "first_message"):
        ok(values['mcpgated_call_%s_seconds_count{server="main"}' % name] >= 5, name, values)
    eq(values['mcpgated_server_sessions{server="main"}'], 1)
    eq(series(values, "mcpgated_server_processes_by_state", server="main")["state=ready"], 1)
    ok(values["mcpgated_http_read_bytes_total"] > 500 and values["mcpgated_http_written_bytes_total"] > 500, "bytes", values)


@case(own=True)
def failures_have_reasons(t):
    """product §5: a call that cannot be served, a request that is refused, a process that ends: counted by reason."""
    headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    t.conn().request("POST", "/dead/mcp", headers, mcp.encode(mcp.initialize())).read()
    t.conn().request("POST", "/main/mcp", headers, b"{").read()
    t.conn().request("POST", "/main/mcp", headers, mcp.encode(mcp.request(1, "tools/list"))).read()
    s = t.session()
    s.do(["exit", 3])
    wait_for(lambda: series(read(t), "mcpgated_server_process_ends_total", server="main"), 3, "the end of the process")
    values = read(t)
    eq(series(values, "mcpgated_calls_ended_total", server="dead", method="initialize", status="failed"), {"reason=start_failed": 1})
    eq(series(values, "mcpgated_refusals_total", server="main"), {"reason=malformed": 1, "reason=no_session": 1})
    eq(series(values, "mcpgated_calls_ended_total", server="main", method="tools/call", status="failed", reason="child_exited"),
       {"tool=other": 1})
    eq(series(values, "mcpgated_server_process_ends_total", server="main"), {"reason=child_exited": 1})
    eq(values['mcpgated_server_failing{server="dead"}'], 1)


@case(own=True)
def series_are_bounded(t):
    """SEC-17: neither a server with a thousand tools nor a client with as many names makes more series than there may be."""
    s = t.session("many")
    s.ask("tools/list")
    for i in range(0, 1000, 50):
        s.ask("tools/call", {"name": "tool-%d" % i, "arguments": {}})
        s.ask("no/method-%d" % i)
    s.ask("tools/call", {"name": NASTY, "arguments": {}})
    s.ask("tools/call", {"name": "x" * 5000, "arguments": {}})
    raw = admin(t).request("GET", "/metrics").read()
    values = metrics(raw)
    eq(len(series(values, "mcpgated_calls_ended_total", server="many", method="tools/call")), 65, "64 tools, and all others")
    tools = series(values, "mcpgated_call_duration_seconds_count", server="many", method="tools/call")
    eq(tools["tool=other"], 18 + 1, "those that are not among the first 63 beside the nasty one, and the long name")
    eq([value for name, value in tools.items() if value and not re.fullmatch("tool=(other|tool-(0|50))", name)], [1.0], "the nasty one, though it came with escapes")
    eq(sum(tools.values()), 22)
    eq(series(values, "mcpgated_calls_ended_total", server="many", method="other"), {"status=error": 20, "status=ok": 0})
    ok(not RAW.search(raw.decode()), "nothing in it acts on a terminal", raw[:300])
    ok(NASTY.split("\n")[0].replace("\\", "\\\\").replace('"', '\\"') + r"\\u{a}} 1\\u{1b}[31m\\u{202e}" in raw.decode(), "the name, escaped")
    ctl(t, "metrics")


@case(own=True)
def monitoring_reads_it(t):
    """product §3: the text format of Prometheus, and OpenMetrics where it is asked for."""
    t.session().echo("x")
    plain = admin(t).request("GET", "/metrics")
    both = [("Accept", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")]
    opened = admin(t).request("GET", "/metrics", both)
    eq(plain.header("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    eq(opened.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8")
    plain, opened = plain.read().decode(), opened.read().decode()
    ok(opened.endswith("\n# EOF\n") and "# EOF" not in plain, "its end", opened[-100:])
    eq(admin(t).request("GET", "/metrics", [("Accept", "*/*")]).header("content-type")[:10], "text/plain")
    values = metrics(plain.encode())
    version = json.loads(admin(t).request("GET", "/status").read())["version"]
    ok('mcpgated_build_info{version="%s"}' % version in values, "build_info", version)
    for process in ("gateway", "keeper"):
        started = values['process_start_time_seconds{process="%s"}' % process]
        ok(abs(started - time.time()) < 60, "started", process, started)
        ok(values['process_resident_memory_bytes{process="%s"}' % process] > 1e6, "memory of", process)
        ok('process_cpu_seconds_total{process="%s"}' % process in values, "processor of", process)
    ok(10 < values['process_open_fds{process="gateway"}'] < values['process_max_fds{process="gateway"}'], "descriptors", values)
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=plain, capture_output=True, text=True, timeout=30)
        eq((done.returncode, done.stdout), (0, ""), done.stderr)


# The families of what it reads, and their types.
FAMILIES = """
import importlib, json, sys
parser = importlib.import_module("prometheus_client.%sparser" % "".join(sys.argv[1:]))
print(json.dumps({f.name: f.type for f in parser.text_string_to_metric_families(sys.stdin.read())}))
"""


@case
def parsers_of_others_read_it(t):
    """product §3: both formats have the same families, as the client of Prometheus for Python reads them."""
    # Debian's package is for Debian's Python.
    python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run([p, "-c", FAMILIES], input=b"", capture_output=True).returncode == 0), None)
    if python is None:
        raise harness.Skip("there is no prometheus_client for Python")
    first, second = (json.loads(subprocess.run([python, "-c", FAMILIES, kind], input=admin(t).request("GET", "/metrics", accept).read(),
                                               stdout=subprocess.PIPE, check=True).stdout)
                     for kind, accept in (("", []), ("openmetrics.", [("Accept", "application/openmetrics-text;version=1.0.0")])))
    ok(len(first) > 80 and first["mcpgated_call_wait_seconds"] == "histogram", "families", first)
    del first["mcpgated_build_info"]
    eq(second.pop("mcpgated_build"), "info")
    eq(second, first, "the same families")


def traced(t, headers, params=None):
    """What the server gets in _meta."""
    s = t.session()
    pid = s.pid()
    params = dict({"name": "echo", "arguments": {"text": "x"}}, **(params or {}))
    eq(s.post(mcp.request(7, "tools/call", params), extra=headers).status, 200)
    found = t.daemon.messages(pid)[-1]["params"].get("_meta")
    s.delete()
    return found


@case
def traces_of_heads(t):
    """RPC-07: traceparent and tracestate of the head are the request's, where they are valid and its _meta names none."""
    def head(parent=PARENT, state=None, *more):
        return [("traceparent", parent)] + ([("tracestate", state)] if state is not None else []) + list(more)
    eq(traced(t, head(state="a=1,b@c=x y, d/e=\"q\"")), {"traceparent": PARENT, "tracestate": "a=1,b@c=x y, d/e=\"q\""})
    eq(traced(t, head(), {"_meta": {"progressToken": "p", "com.example/x": 1}})["traceparent"], PARENT)
    eq(traced(t, head(), {"_meta": {}}), {"traceparent": PARENT})
    other = PARENT.replace("0af", "1af")
    eq(traced(t, head(state="a=1"), {"_meta": {"traceparent": other}}), {"traceparent": other}, "its own is not replaced")
    future = "cc" + PARENT[2:] + "-what-comes"
    eq(traced(t, head(future)), {"traceparent": future})
    for state in ("", "a", "A=1", "a=1,a=2", "a=" + "x" * 257, ",".join("k%d=v" % i for i in range(33)), "a=\u00e9"):
        eq(traced(t, head(state=state)), {"traceparent": PARENT}, "tracestate " + state[:20])
    for parent in (PARENT.upper(), PARENT[:-1], PARENT + "-00", "ff" + PARENT[2:], PARENT.replace("b7ad6b7169203331", "0" * 16),
                   PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32), "", "x" * 300):
        eq(traced(t, head(parent, "a=1")), None, parent)
    eq(traced(t, head(PARENT, None, ("traceparent", PARENT))), None, "twice")


@case(servers={"slow": {"script": {}, "request_timeout": "50ms"}}, own=True)
def traces_are_in_the_log(t):
    """product §3: a line about a call names its trace."""
    s = t.session("slow")
    s.post(mcp.request(1, "tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}}),
           extra=[("traceparent", PARENT)])
    t.daemon.wait_log("call_timeout", "trace_id=" + PARENT[3:35])
    values = read(t)
    eq(series(values, "mcpgated_calls_ended_total", server="slow", status="failed"), {"method=tools/call,reason=timeout,tool=other": 1})


@case(own=True)
def top_shows_servers(t):
    """product §2: a line for each server; without a terminal once; the rates are of the time between two views."""
    s = t.session()
    s.ask("tools/list")
    s.echo("x")
    out, _ = ctl(t, "top")
    ok(re.match(r"mcpgated \S+: serving; of all its \S+ s\n\d+ connections, 1 sessions, 1 processes, 0 calls in flight\n\n", out), "head", out)
    table = rows(out)[3:]
    eq(table[0], ["SERVER", "STATE", "PROCESSES", "SESSIONS", "CALLS", "WAITING", "CALLS/S", "ERRORS/S", "P50", "P95", "P99"])
    eq(table[1][:6], ["main", "ready", "1", "1", "0", "0"])
    ok(float(table[1][6]) > 0 and table[1][-1].startswith("<"), "rates", table[1])
    out, _ = ctl(t, "top", "-n", "2", "-d", "0.1")
    views = out.split("mcpgated ")
    eq(len(views), 3, "two views")
    eq(rows(views[2])[4][6:], ["0.0", "0.0", "-", "-", "-"], "nothing has happened between them")
    eq(len(ctl(t, "top", "--once", "--json")[0].splitlines()), 1)
    for words in (["-n", "0"], ["-n", "x"], ["-d", "0"], ["-d", "1e9"], ["-d", "nan"]):
        ctl(t, "top", *words, status=2)
    ctl(t, "status", "-n", "1", status=2)


@case(own=True)
def top_on_a_terminal(t):
    """product §2: views are written over each other; nothing but that acts on the terminal, and Ctrl-C ends it well."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 80, 0, 0))
    argv = [os.path.join(harness.BIN, "mcpgatectl"), "--socket", t.daemon.admin, "top", "-d", "0.1"]
    process = subprocess.Popen(argv, stdin=secondary, stdout=secondary, stderr=secondary)
    os.close(secondary)
    text = b""
    while text.count(b"\x1b[H") < 4:
        text += os.read(primary, 65536)
    process.send_signal(signal.SIGINT)
    eq(process.wait(10 * harness.SLOW), 0)
    os.close(primary)
    views = text.decode().split("\x1b[H")[2:-1]
    eq([view.count("\n") for view in views], [5] * len(views), "all rows but the last, for nothing is to scroll")
    text = re.sub(r"\x1b\[(H|K|J|\?7[lh])", "", text.decode()).replace("\r", "")
    ok(not RAW.search(text) and "SERVER" in text and "main" in text, "the view", text[:400])


@case
def what_servers_offer(t):
    """product §2: prompts, resources and templates through the same path as for any client."""
    out, _ = ctl(t, "prompts", "main")
    eq(rows(out), [["PROMPT", "ARGUMENTS", "DESCRIPTION"], ["p"]])
    out, _ = ctl(t, "resources", "main")
    eq(rows(out), [["URI OR TEMPLATE", "NAME", "TYPE", "DESCRIPTION"], ["res://a", "a"]])
    eq(json.loads(ctl(t, "resources", "main", "--json")[0]), {"resources": [{"uri": "res://a", "name": "a"}], "resourceTemplates": []})
    eq(json.loads(ctl(t, "prompts", "main", "--json")[0]), [{"name": "p"}])
    eq(json.loads(ctl(t, "resources", "plain", "--json")[0])["resourceTemplates"], [], "without templates")
    ctl(t, "prompts", "nobody", status=1)
    ctl(t, "resources", status=2)
