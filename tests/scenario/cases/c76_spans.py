# SPDX-License-Identifier: Apache-2.0
"""Spans of calls at a collector of OpenTelemetry, and collectors that do not what they should. mcpgated(1); SEC-70."""
import http.server
import json
import re
import threading
import time

import mcp
from c70_admin import admin, metrics
from c50_config import Files, program, refused
from c71_ctl import ctl
from c80_stateless import ask as ask_modern
from c100_reload import reload
from harness import case, eq, ok, to_yaml, wait_for, within

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEAD = [("traceparent", "00-%s-%s-01" % (TRACE, PARENT))]
SECRET = "Bearer very-secret-of-the-collector"
SERVER, CLIENT, ERROR = 2, 3, 2
HUGE = 2 << 20


class Collector:
    """Takes spans over loopback HTTP and holds them against the JSON encoding of OTLP."""

    def __init__(self):
        self.spans, self.heads, self.bodies, self.problems = [], [], 0, []
        self.status, self.fields, self.manner, self.says = 200, [], "answers", b"{}"
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                collector.take(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # who has asked may go
        self.url = "http://127.0.0.1:%d/v1/traces" % self.server.server_port
        self.gate = threading.Event()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self, **more):
        return {"traces": {"otlp": dict({"endpoint": self.url, "interval": "100ms", "headers": {"Authorization": SECRET}}, **more)}}

    def take(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.bodies += 1
        self.heads.append((request.path, dict(request.headers)))
        if self.manner == "hangs":
            self.gate.wait(60)
        if self.manner in ("hangs", "closes"):
            request.close_connection = True
            return
        if self.status == 200:
            try:
                self.read(body)
            except (AssertionError, KeyError, TypeError, ValueError) as e:
                self.problems.append(repr(e))
        answer = b"x" * HUGE if self.manner == "is huge" else self.says
        try:
            request.send_response(self.status)
            for name, value in self.fields:
                request.send_header(name, value)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(answer)))
            request.end_headers()
            request.wfile.write(answer)
        except OSError:
            pass  # it has not waited for all of that

    def read(self, body):
        eq(list(body), ["resourceSpans"])
        [resource] = body["resourceSpans"]
        eq(self.attributes(resource["resource"])["service.name"], "mcpgated")
        [scope] = resource["scopeSpans"]
        eq(scope["scope"]["name"], "mcpgated")
        for span in scope["spans"]:
            ok(re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), "ids", span)
            ok(span["kind"] in (SERVER, CLIENT), "kind", span)
            ok(isinstance(span["startTimeUnixNano"], str) and isinstance(span["endTimeUnixNano"], str), "64 bits are text", span)
            begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            ok(time.time_ns() - 60 * 10**9 < begin <= end <= time.time_ns(), "times", span)
            self.spans.append(dict(span, at=self.attributes(span), begin=begin, end=end))

    @staticmethod
    def attributes(thing):
        found = {a["key"]: a["value"]["stringValue"] for a in thing["attributes"]}
        eq(len(found), len(thing["attributes"]), "a key is there twice")
        return found

    def wait(self, count, name=None):
        """So many spans, of this name if it is given."""
        def those():
            return [s for s in self.spans if name in (None, s["name"])]
        wait_for(lambda: len(those()) >= count, 10, "spans")
        eq(self.problems, [])
        eq(len(those()), count, [s["name"] for s in self.spans])
        return those()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


def call(s, request_id, name, arguments, head=(), **params):
    return s.post(mcp.request(request_id, "tools/call", dict({"name": name, "arguments": arguments}, **params)), extra=list(head))


def counted(t, name):
    return metrics(admin(t).request("GET", "/metrics").read())["mcpgated_%s_total" % name]


def of_kind(spans, kind):
    [found] = [s for s in spans if s["kind"] == kind]
    return found


@case(daemon=False, deadline=20)
def a_call_is_two_spans(t):
    """product §3: that of the gateway, whose parent the client has named, and within it that of the process, which it is told."""
    collector = Collector()
    t.start({"main": {}}, collector.config(sample="0%"))
    s = t.session()
    pid = s.pid()
    eq(call(s, 7, "echo", {"text": "x"}, HEAD + [("tracestate", "a=1")]).status, 200)
    spans = collector.wait(2)
    ours, process = of_kind(spans, SERVER), of_kind(spans, CLIENT)
    for span in spans:
        eq((span["name"], span["traceId"], span["traceState"]), ("tools/call echo", TRACE, "a=1"))
        at = span["at"]
        eq((at["mcp.method.name"], at["gen_ai.tool.name"], at["gen_ai.operation.name"], at["mcpgated.server"]),
           ("tools/call", "echo", "execute_tool", "main"))
        ok("status" not in span and "error.type" not in at, "it has not failed", span)
    eq((ours["parentSpanId"], process["parentSpanId"]), (PARENT, ours["spanId"]))
    ok(ours["begin"] <= process["begin"] <= process["end"] <= ours["end"], "one within the other", spans)
    at = ours["at"]
    eq((at["jsonrpc.request.id"], at["mcpgated.status"], at["mcpgated.front"], at["mcpgated.era"], at["mcp.protocol.version"]),
       ("7", "ok", "streamable", "legacy", "2025-06-18"))
    eq((at["client.address"], at["network.transport"], process["at"]["network.transport"]), ("127.0.0.1", "tcp", "pipe"))
    ok(s.id.startswith(at["mcp.session.id"]) and len(at["mcp.session.id"]) == 8, "a part of the session's id", at)
    told = t.daemon.messages(pid)[-1]["params"]["_meta"]
    eq(told, {"traceparent": "00-%s-%s-01" % (TRACE, process["spanId"]), "tracestate": "a=1"})
    path, head = collector.heads[0]
    eq((path, head["Authorization"], head["Content-Type"]), ("/v1/traces", SECRET, "application/json"))
    # Of a trace that is not sampled, and of none, with sample: 0%, there is nothing; what is passed on stays as it was.
    call(s, 8, "echo", {"text": "x"}, [("traceparent", HEAD[0][1][:-1] + "0")])
    eq(t.daemon.messages(pid)[-1]["params"]["_meta"], {"traceparent": HEAD[0][1][:-1] + "0"})
    call(s, 9, "echo", {"text": "x"})
    ok("_meta" not in t.daemon.messages(pid)[-1]["params"], "no trace is made")
    call(s, 10, "echo", {"text": "last"}, HEAD)
    eq([x["at"]["jsonrpc.request.id"] for x in collector.wait(4) if x["kind"] == SERVER], ["7", "10"])
    # In _meta a tracestate comes as its client has it: what is none is told to nobody.
    call(s, 11, "echo", {"text": "x"}, _meta={"traceparent": HEAD[0][1], "tracestate": "A=1"})
    ok(not any("traceState" in x for x in collector.wait(6)[4:]), "a tracestate that is none", collector.spans)
    # The answer of the collector comes after what it was sent.
    wait_for(lambda: counted(t, "spans_exported") == 6, 3, "the count of what was taken")
    eq(counted(t, "spans_lost"), 0)
    ok(not any(SECRET in line for line in t.daemon.lines), "a secret in the log")
    ok(SECRET not in ctl(t, "status", "--json")[0], "a secret")
    collector.close()


@case(daemon=False, deadline=30)
def what_became_of_it(t):
    """product §3: failed, refused, cancelled, and answered by the gateway: each is told, and begins a trace of its own."""
    collector = Collector()
    fails = {"on": {"tools/call": [["result", {"content": [], "isError": True}]]}}
    refuses = {"on": {"tools/call": [["error", -32042, "no"]], "resources/read": [["error", -32002, "no"]]}}
    t.start({"main": {}, "fails": fails, "refuses": refuses, "slow": {"script": {}, "request_timeout": "50ms"}}, collector.config())

    def outcome(server, tool="do", steps=(), **more):
        s = t.session(server)
        call(s, 1, tool, {"steps": list(steps)}, **more)
        found = collector.wait(2, "tools/call " + tool if tool else "tools/call")
        collector.spans.clear()
        ours = of_kind(found, SERVER)
        ok("parentSpanId" not in ours, "a trace of its own", ours)
        failed = [x.get("status", {}).get("code") for x in found]
        ok(len(set(failed)) == 1, "both fail, or none", found)
        return failed[0], ours["at"].get("error.type"), ours["at"]["mcpgated.status"], ours["at"].get("mcpgated.reason")
    eq(outcome("fails"), (ERROR, "tool_error", "tool_error", None))
    eq(outcome("refuses"), (ERROR, "-32042", "error", None))
    eq(outcome("slow", steps=[["wait_cancel"]]), (ERROR, "timeout", "failed", "timeout"))
    t.expect_error_log("call_timeout")
    s = t.session()
    pid = s.pid()
    collector.wait(2, "tools/call do")
    collector.spans.clear()
    waiting = s.start_do(["wait_cancel"])
    wait_for(lambda: t.daemon.messages(pid)[-1].get("method") == "tools/call", 5, "the call")
    s.cancel(waiting.id)
    ours = of_kind(collector.wait(2, "tools/call do"), SERVER)
    eq((ours["at"]["mcpgated.status"], "status" in ours), ("cancelled", False))
    other = t.session()
    [begun] = collector.wait(1, "initialize")
    ok("gen_ai.tool.name" not in begun["at"] and begun["at"]["mcpgated.status"] == "ok", "initialize", begun)
    other.delete()
    s.ask("ping")
    # Names are foreign texts.
    s.ask("tools/call", {"name": "n\"\\\n\u202e" + "x" * 400, "arguments": {}})
    s.ask("acme/unknown", {})
    wait_for(lambda: any(x["name"] == "other" for x in collector.spans), 5, "an unknown method")
    eq([x for x in collector.spans if x["name"] == "ping"], [], "a ping has none: it would have come before")
    [odd] = [x for x in collector.spans if x["kind"] == SERVER and x["name"].startswith("tools/call n")]
    ok(odd["at"]["gen_ai.tool.name"].startswith("n\"\\\n\u202exx") and len(odd["at"]["gen_ai.tool.name"]) < 260, "a name", odd)
    eq(collector.problems, [])
    collector.close()


@case(daemon=False, deadline=30)
def clients_without_sessions_have_them_too(t):
    """product §3: of 2026-07-28, at servers of either era, and where the server may ask its client meanwhile."""
    collector = Collector()
    t.start({"all": {"script": {}, "isolation": "shared"}, "main": {"script": {}}, "modern": {"script": {"era": "modern"}, "era": "modern"}},
            collector.config())
    for server in ("all", "main", "modern"):
        ask_modern(t, server, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
        spans = collector.wait(2, "tools/call echo")
        collector.spans.clear()
        ours, process = of_kind(spans, SERVER), of_kind(spans, CLIENT)
        eq(process["parentSpanId"], ours["spanId"], server)
        eq((ours["at"]["mcpgated.era"], ours["at"]["mcpgated.server"], ours["traceId"]), ("modern", server, process["traceId"]))
        told = [m for pid in t.daemon.children(server) for m in t.daemon.messages(pid) if m.get("method") == "tools/call"]
        eq(told[-1]["params"]["_meta"]["traceparent"], "00-%s-%s-01" % (ours["traceId"], process["spanId"]), server)
    collector.close()


@case(daemon=False, deadline=30)
def a_collector_says_why(t):
    """SEC-70: the log has a collector's own words, up to a bound and escaped, and no secret that it repeats."""
    collector = Collector()
    collector.status, collector.says = 401, json.dumps({"code": 16, "message": "who is\n\u001b[31m %s or %s?%s" % (SECRET, SECRET.split()[1], "x" * 500)}).encode()
    t.start({"main": {}}, collector.config())
    call(t.session(), 1, "echo", {"text": "x"})
    for event in ("spans_not_taken", "spans_lost"):
        said = t.daemon.wait_log(event, "said=")[0].split('said="')[1].split('"')[0]
        ok(said.startswith("who is \\u001b[31m %s or %s?xxx" % ("*" * len(SECRET), "*" * len(SECRET.split()[1]))) and len(said) < 210, event, said)
    collector.close()


def problems(t):
    """Their kinds."""
    report = json.loads(t.conn(address=t.daemon.admin).request("GET", "/check").read())
    return [p["kind"] for p in report["problems"]]


@case(daemon=False, deadline=60)
def collectors_that_do_not_take_them(t):
    """SEC-70: whatever a collector does, calls are answered as ever; spans are tried again, or lost and counted, and it is said."""
    collector = Collector()
    t.start({"main": {}}, collector.config())
    s = t.session()
    collector.wait(1, "initialize")
    for manner, status, lost in (("answers", 500, True), ("answers", 400, True), ("closes", 200, False), ("is huge", 200, False),
                                 ("answers", 503, False)):
        collector.manner, collector.status, collector.fields = manner, status, [("Retry-After", "1")]
        before, bodies = counted(t, "spans_lost"), collector.bodies
        began = time.monotonic()
        for i in range(20):
            eq(call(s, i, "echo", {"text": "x"}).status, 200)
        within(began, 5, "calls wait for a collector that " + manner)
        wait_for(lambda: collector.bodies > bodies, 5, "an attempt")
        if lost:
            wait_for(lambda: counted(t, "spans_lost") >= before + 40, 5, "the loss")
        else:
            wait_for(lambda: collector.bodies > bodies + 1, 10, "another attempt")
        wait_for(lambda: "collector_away" in problems(t), 5, "the problem is told")
        collector.manner, collector.status, collector.fields = "answers", 200, []
        collector.spans.clear()
        call(s, 99, "echo", {"text": "good again"})
        wait_for(lambda: any(x["at"].get("jsonrpc.request.id") == "99" for x in collector.spans), 20, "spans again")
        eq(len([x for x in collector.spans if x["kind"] == SERVER]), 1 if lost else 21, manner)
        wait_for(lambda: "collector_away" not in problems(t), 5, "it is over")
    t.daemon.wait_log("spans_not_taken")
    t.daemon.wait_log("spans_taken")
    t.daemon.wait_log("spans_lost")
    # One that hangs is given up, and ends with the daemon.
    collector.manner = "hangs"
    began = time.monotonic()
    for i in range(20):
        eq(call(s, i, "echo", {"text": "x"}).status, 200)
    within(began, 5, "calls wait for a collector that hangs")
    s.delete()
    t.daemon.term()
    eq(t.daemon.wait(20), 0)
    collector.close()


@case(daemon=False, deadline=30)
def the_last_spans_are_sent(t):
    """product §3: a daemon that stops sends what waits, for two seconds at most."""
    collector = Collector()
    t.start({"main": {}}, collector.config(interval="1m"))
    s = t.session()
    call(s, 1, "echo", {"text": "x"})
    s.delete()
    eq(collector.bodies, 0)
    t.daemon.term()
    eq(t.daemon.wait(20), 0)
    collector.wait(2, "tools/call echo")
    collector.close()


@case(daemon=False, deadline=30)
def a_reload_changes_collectors(t):
    """product §4: on, to another one, and off again; calls and sessions go on."""
    first, second = Collector(), Collector()
    t.start({"main": {}})
    s = t.session()
    call(s, 1, "echo", {"text": "x"})
    reload(t, config=first.config(service_name="mcpgated", sample="100%"))
    call(s, 2, "echo", {"text": "x"})
    first.wait(2, "tools/call echo")
    reload(t, config=second.config())
    call(s, 3, "echo", {"text": "x"})
    second.wait(2, "tools/call echo")
    reload(t, config={})
    call(s, 4, "echo", {"text": "x"})
    eq([x["at"]["jsonrpc.request.id"] for x in first.spans + second.spans if x["kind"] == SERVER], ["2", "3"])
    # What would have come had there been one: the same call, with one.
    reload(t, config=first.config())
    call(s, 5, "echo", {"text": "x"})
    first.wait(4, "tools/call echo")
    eq([x["at"]["jsonrpc.request.id"] for x in first.spans if x["kind"] == SERVER], ["2", "5"])
    first.close()
    second.close()


@case(daemon=False)
def wrong_collectors_are_refused(t):
    """product §4: what cannot be is told with its place, and never a secret."""
    for config, words in (({"endpoint": "ftp://x/y"}, "https or http"), ({"endpoint": "http://otel.example.com/v1/traces"}, "without TLS"),
                          ({"endpoint": "https://u:p@example.com/v1/traces"}, "without a user"), ({"endpoint": "https://example.com"}, "the path"),
                          ({"endpoint": "https://example.com/v1/traces", "headers": {"a b": SECRET}}, "name of a header field"),
                          ({"endpoint": "https://example.com/v1/traces", "headers": {"Content-Length": "7"}}, "cannot be set here"),
                          ({"endpoint": "https://example.com/v1/traces", "headers": {"A": SECRET + "\x7f"}}, "control characters"),
                          ({"headers": {"A": SECRET}}, "'endpoint' is missing"), ({"endpoint": "https://e/x", "sample": "101%"}, "at most 100%")):
        output = refused(to_yaml({"servers": {"main": {"command": "/bin/cat"}}, "traces": {"otlp": config}}) + "\n", words)
        ok(SECRET not in output, "a secret is shown", output)
    files = Files(to_yaml({"servers": {"main": {"command": "/bin/cat"}}, "traces": {"otlp": {
        "endpoint": "http://otel:4318/v1/traces", "plaintext": "@", "headers": {"A": SECRET}}}}).replace("'@'", "true").replace('"@"', "true") + "\n")
    shown = program("--print-config", "-c", files.path).stdout
    ok("headers: {A: \"***\"}" in shown and SECRET not in shown, "secrets are masked", shown)
