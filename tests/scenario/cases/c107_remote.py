# SPDX-License-Identifier: Apache-2.0
"""Servers behind a URL (servers.NAME.url): each process is an mcpgated-remote, and what it talks to may be anything."""
import base64
import contextlib
import http.server
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import threading
import time

import c60_tls
import harness
import mcp
import wire
from c50_config import Files, program, refused
from c71_ctl import ctl
from c100_reload import reload
from c80_stateless import JSON, MIRRORS, fields, message, meta
from c80_stateless import ask as ask_modern
from harness import case, cpu_seconds, eq, ok, wait_for

ANSWER = {"protocolVersion": mcp.D, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "f", "version": "1"}}


class Fake(http.server.ThreadingHTTPServer):
    """An HTTP server whose answers a case writes: `serve(request, message)` gets the handler and the JSON of a POST, or None."""
    daemon_threads, request_queue_size = True, 512

    def __init__(self, serve, port=0):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fake.requests.append((self.command, dict(self.headers), body))
                fake.paths.append(self.path)
                serve(self, json.loads(body) if body else None)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *args):
                pass

            def json(self, message, status=200, **headers):
                self.whole(status, json.dumps(message).encode(), content_type="application/json", **headers)

            def result(self, request, result, **headers):
                self.json({"jsonrpc": "2.0", "id": request["id"], "result": result}, **headers)

            def whole(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def events(self, *lines, **headers):
                """Begins a stream, and ends the connection after these lines."""
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.say(*lines)
                self.close_connection = True

            def say(self, *lines):
                self.wfile.write("".join(line + "\n" for line in lines).encode())
                self.wfile.flush()

            def greet(self, message):
                """What every session begins with; True: it was that."""
                if message is None or message.get("method") not in ("initialize", "notifications/initialized"):
                    return False
                if message["method"] == "initialize":
                    self.result(message, dict(ANSWER, protocolVersion=message["params"]["protocolVersion"]), mcp_session_id="s1")
                else:
                    self.whole(202)
                return True

        super().__init__(("127.0.0.1", port), Handler)
        self.requests, self.paths = [], []
        self.url = "http://127.0.0.1:%d/mcp" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def methods(self):
        return [json.loads(body)["method"] for _, body in self.sent("POST")]

    def sent(self, verb):
        return [(headers, body) for command, headers, body in list(self.requests) if command == verb]


@contextlib.contextmanager
def fake(serve, port=0):
    server = Fake(serve, port)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def text_of(message):
    return message["result"]["content"][0]["text"]


def behind(t, url, config=None, **more):
    """A daemon whose server is behind that URL."""
    t.daemon = t.start({"main": dict({"url": url}, **more)}, config)
    return t.daemon


def chain(t, script=None, isolation="session", **more):
    """A daemon whose server is that of another daemon."""
    inner = t.start({"main": dict({"script": script or {}, "isolation": isolation}, **more)})
    return inner, behind(t, inner.endpoints["main"], isolation=isolation)


class Lines:
    """The program by itself, as the gateway sees it."""

    def __init__(self, url, env=None):
        argv = [os.path.join(harness.BIN, "mcpgated-remote"), url]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env or {})

    def say(self, message):
        self.process.stdin.write(mcp.encode(message) + b"\n")
        self.process.stdin.flush()

    def ask(self, message):
        self.say(message)
        return self.read()

    def read(self):
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def remote(url, env=None):
    lines = Lines(url, env)
    try:
        yield lines
        if not lines.process.stdin.closed:
            lines.process.stdin.close()
        eq(lines.process.wait(10 * harness.SLOW), 0)
    finally:
        lines.process.kill()
        lines.process.wait()
        lines.process.stdout.close()


def remotes(daemon):
    """The processes of its servers behind URLs."""
    def is_one(pid):
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().startswith(b"mcpgated-remote\0")
    return [pid for pid in harness.descendants(daemon.pid) if is_one(pid)]


def encoded(text):
    return "=?base64?%s?=" % base64.b64encode(text.encode()).decode()


def first_answer(t):
    """Of a client that initializes."""
    return t.conn().request("POST", "/main/mcp", [JSON, ("Accept", mcp.BOTH)], mcp.encode(mcp.initialize()))


def good(text):
    files = Files(text)
    done = program("-t", "-c", files.path)
    eq(done.returncode, 0, done.stdout + done.stderr)


# ---- what a server of ours is, it is through a URL ----

def through_a_url(isolation):
    def run(t):
        inner, _ = chain(t, isolation=isolation)
        for version in (mcp.B, mcp.C, mcp.D):
            s = t.session("main", version)
            eq(s.echo("a\u2028\u00e4"), "a\u2028\u00e4")
            e = s.start_do(["progress", 1], ["progress", 2], ["text", "x"], token="p")
            eq([e.next()["params"]["progress"] for _ in range(2)], [1, 2])
            eq(text_of(e.final()), "x")
            eq(len(s.ask("tools/list")["result"]["tools"]) > 0, True)
        if isolation == "session":
            ok(len(inner.children()) >= 3, "a process for each session behind it")
    run.__name__, run.__module__ = "a_call_goes_through_a_url_" + isolation, __name__
    run.__doc__ = "BACK-URL-01: calls, progress and lists of every revision, over Streamable HTTP."
    case(daemon=False, deadline=30)(run)


for kind in ("session", "shared"):
    through_a_url(kind)


@case(daemon=False, deadline=30)
def questions_and_changes_go_through_a_url(t):
    """BACK-URL-01: what a server asks comes on the stream of its request, what concerns none on that of the session."""
    chain(t)
    s = t.session("main", mcp.D, {"sampling": {}})
    stream = s.get()
    e = s.start_do(["ask", "q", "sampling/createMessage", {"messages": [], "maxTokens": 5}], ["asked"])
    question = e.next()
    eq(question["method"], "sampling/createMessage")
    s.respond(question["id"], {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"})
    ok("yes" in json.dumps(e.final()), "the answer")
    s.do(["notify", "notifications/tools/list_changed"], ["text", "x"])
    eq(stream.next()["method"], "notifications/tools/list_changed")


@case(daemon=False, deadline=30)
def a_cancelled_call_is_cancelled_behind_the_url(t):
    """BACK-URL-01: notifications/cancelled reaches the server; the session goes on."""
    inner, _ = chain(t)
    s = t.session("main")
    pid = inner.children()[0]
    request_id = s.new_id()
    params = s.do_params([["progress", 1], ["sleep", 30], ["text", "x"]], token="p")
    s.start("tools/call", params, request_id=request_id).next()
    s.cancel(request_id)
    wait_for(lambda: any(m.get("method") == "notifications/cancelled" for m in inner.messages(pid)), 10, "the cancellation")
    eq(s.echo("on"), "on")


@case(daemon=False, deadline=30)
def a_modern_server_behind_a_url(t):
    """BACK-URL-02: each request has its headers; both eras of clients are served."""
    inner, outer = chain(t, {"era": "modern"}, "shared", era="modern")
    s = t.session("main")
    eq(s.echo("legacy"), "legacy")
    status, found = ask_modern(t, "main", "tools/call", {"name": "echo", "arguments": {"text": "modern"}})
    eq((status, text_of(found[-1])), (200, "modern"))


@case(daemon=False, deadline=30)
def arguments_are_mirrored_behind_a_url(t):
    """BACK-URL-02, MOD-HDR-04: Mcp-Param-* as the tool's schema says; a server that finds them missing is asked for its tools, once."""
    inner, outer = chain(t, dict(MIRRORS, era="modern"), "shared", era="modern")
    for n in range(2):  # of these processes the second has seen no list
        arguments = {"steps": [["text", "x"]], "region": "\u00e4 %d" % n, "shard": n}
        status, found = ask_modern(t, "main", "tools/call", {"name": "do", "arguments": arguments},
                                   [*fields(message("tools/call", {"name": "do"})),
                                    ("Mcp-Param-Region", encoded("\u00e4 %d" % n)), ("Mcp-Param-Shard", str(n))])
        eq((status, text_of(found[-1])), (200, "x"))
        if n == 0:
            pid = remotes(outer)[0]
            os.kill(pid, signal.SIGKILL)
            outer.wait_log("child_state", "process=gateway", "pid=%d " % pid, "to=gone")  # before that a call may be given to it


@case(daemon=False)
def a_call_without_its_mirrors_is_sent_again_once(t):
    """BACK-URL-02: after -32020 the tools are listed, and the call is sent with what it lacked; a second -32020 is the answer."""
    params = {"_meta": meta()}
    call = mcp.request(1, "tools/call", dict(params, name="t", arguments={"r": "x"}))
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "R"}}}}

    def serve(request, message):
        if message["method"] == "tools/list" and "cursor" not in message["params"]:
            request.result(message, {"tools": [], "nextCursor": "2"})
        elif message["method"] == "tools/list":
            request.result(message, {"tools": [tool]})
        elif request.headers.get("Mcp-Param-R") == "x" and message["id"] == 1:
            request.result(message, {"content": []})
        else:
            request.json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "no"}}, 400)

    with fake(serve) as server, remote(server.url) as lines:
        eq(lines.ask(call)["result"], {"content": []})
        eq([m for m in server.methods()], ["tools/call", "tools/list", "tools/list", "tools/call"])
        eq(lines.ask(dict(call, id=2))["error"]["code"], -32020)
        eq(server.methods()[4:], ["tools/call", "tools/list", "tools/list", "tools/call"])


@case(daemon=False, deadline=30)
def the_end_of_a_session_is_told(t):
    """BACK-URL-03: DELETE, with the session's id."""
    inner, _ = chain(t)
    s = t.session("main")
    s.echo("x")
    pid = inner.children()[0]
    eq(s.delete().status, 204)
    wait_for(lambda: pid not in inner.children(), 10, "the end of its process")


# ---- what is sent ----

@case(daemon=False, deadline=30)
def only_the_headers_of_the_configuration_are_sent(t):
    """BACK-URL-07: no header and no token of a client reaches the server; `headers` and their secrets do, again at each start."""
    def serve(request, message):
        if request.greet(message):
            return
        if message is None:
            request.whole(405)
        else:
            request.result(message, {"content": [{"type": "text", "text": "x"}]})

    path = os.path.join(t.directory(), "key")
    with open(path, "w") as f:
        f.write("Bearer one")
    os.chmod(path, 0o600)
    with open(path + "-me", "w") as f:
        f.write("mine")
    os.chmod(path + "-me", 0o600)
    with fake(serve) as server:
        behind(t, server.url, {"auth": {"mode": "token", "tokens": [{"name": "me", "sha256": SHA256_OF_SECRET}]}},
               headers={"Authorization": {"file": path}, "X-Who": "u ${claim:sub}", "X-Own": {"file": path + "-${claim:sub}"}})
        s = t.session("main", token="secret")
        eq(text_of(s.ask("tools/call", {"name": "t"}, extra=[("X-Mine", "m"), ("Cookie", "c")])), "x")
        for verb, headers, body in server.requests:
            eq(headers["Authorization"], "Bearer one")
            eq((headers["X-Who"], headers["X-Own"]), ("u me", "mine"))
            ok(headers["User-Agent"].startswith("mcpgated"), "who asks")
            ok("secret" not in json.dumps(headers) + body.decode() and "X-Mine" not in headers and "Cookie" not in headers,
               "of the client", headers)
        with open(path, "w") as f:
            f.write("Bearer two\nX-Other: b")
        t.session("main", token="secret")
        t.daemon.wait_log("secret_stays", "variable=Authorization")
        eq({(h["Authorization"], h.get("X-Other")) for _, h, _ in server.requests}, {("Bearer one", None)})
        eq(server.sent("POST")[0][0].get("Mcp-Session-Id"), None)
        eq({h["Mcp-Session-Id"] for h, b in server.sent("POST") if b"initialize\"" not in b}, {"s1"})
        eq({h["MCP-Protocol-Version"] for h, b in server.sent("POST") if b"initialize\"" not in b}, {json.loads(server.sent("POST")[0][1])["params"]
                                                                            ["protocolVersion"]})


SHA256_OF_SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"


# ---- cuts, and the end of what is behind ----

@case(daemon=False, deadline=30)
def a_cut_answer_is_resumed(t):
    """BACK-URL-04: behind the last event, after `retry`; nothing is lost or told twice."""
    def progress(request, n):
        token = request["params"]["_meta"]["progressToken"]
        return json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}})

    asked = []

    def serve(request, message):
        if request.greet(message):
            return
        if message is not None:
            asked.append(message)
            request.events("retry: 20", "id: a1", "data:", "", "id: a2", "data: " + progress(message, 1), "", "id: a3", "data: {")
        elif request.headers.get("Last-Event-ID") == "a2":
            done = {"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"content": [{"type": "text", "text": "x"}]}}
            request.events("id: a3", "data: " + progress(asked[0], 2), "", "id: a4", "data: " + json.dumps(done), "")
        else:
            request.whole(405)

    with fake(serve) as server:
        behind(t, server.url)
        s = t.session("main")
        e = s.start_do(["text", "x"], token="p")
        eq([e.next()["params"]["progress"] for _ in range(2)], [1, 2])
        eq(text_of(e.final()), "x")
        eq(len(asked), 1, "it was called once")


@case(daemon=False, deadline=30)
def a_cut_answer_without_an_id_fails(t):
    """BACK-URL-04: the call ends with an error that says that it may have been executed."""
    def serve(request, message):
        if request.greet(message):
            return
        if message is None:
            request.whole(405)
        else:
            request.events(": nothing", "")

    with fake(serve) as server:
        behind(t, server.url)
        s = t.session("main")
        ok("may have been executed" in s.ask("tools/call", {"name": "t"})["error"]["message"], "what happened")
        eq(len([b for _, b in server.sent("POST") if b"tools/call" in b]), 1, "it was called once")


def lost_with(text, code=-32000):
    return {"status": 400, "body": mcp.encode({"jsonrpc": "2.0", "error": {"code": code, "message": text}, "id": None})}


LOST = {
    "404": {"status": 404},
    "no_valid_id": lost_with("Bad Request: No valid session ID provided"),  # server-everything, and the examples of an SDK
    "not_found": lost_with("Session not found", -32001),
    "not_initialized": lost_with("Bad Request: Server not initialized"),  # of an SDK, with one session at a time
    "a_line": {"status": 400, "body": b"Invalid session ID\n"},
}


def lost_session(name):
    def run(t):
        lost = []

        def serve(request, message):
            if request.greet(message):
                return
            if message is None:
                request.whole(405 if request.command == "GET" else 200)
            elif not lost:
                lost.append(True)
                request.whole(**LOST[name])
            else:
                request.result(message, {"tools": []})

        with fake(serve) as server:
            behind(t, server.url)
            s = t.session("main")
            message = s.ask("tools/call", {"name": "t"})["error"]["message"]
            ok("has not executed the request" in message, "what happened", message)
            eq(s.ask("tools/list")["result"]["tools"], [])
            greetings = [json.loads(b)["params"] for _, b in server.sent("POST") if b"initialize\"" in b]
            ok(len(greetings) >= 2 and greetings[0] == greetings[-1], "the same handshake", greetings)
    run.__name__, run.__module__ = "a_lost_session_is_opened_again_" + name, __name__
    run.__doc__ = "BACK-URL-05: the client's session goes on, with a fresh one behind it and the same handshake."
    case(daemon=False, deadline=30)(run)


for kind in LOST:
    lost_session(kind)


@case(daemon=False, deadline=30)
def a_server_that_starts_anew_is_used_again(t):
    """BACK-URL-05: a stream that is refused for its session says it before the next call."""
    sessions, over = [], [threading.Event()]

    def serve(request, message):
        if message is not None and message.get("method") == "initialize":
            sessions.append("s%d" % len(sessions))
            request.result(message, dict(ANSWER, protocolVersion=mcp.D), mcp_session_id=sessions[-1])
        elif request.headers["Mcp-Session-Id"] not in sessions:
            request.whole(**LOST["no_valid_id"])
        elif message is None:
            request.events("retry: 20", "")
            over[0].wait(20)
        elif "id" in message:
            request.result(message, {"tools": []})
        else:
            request.whole(202)

    with fake(serve) as server:
        daemon = behind(t, server.url, isolation="shared")
        s = t.session("main")
        eq(s.ask("tools/list")["result"]["tools"], [])
        wait_for(lambda: server.sent("GET"), 10, "the stream")
        sessions[:] = ["other"]
        over[0].set()
        daemon.wait_log("child_failed", "does not know the session")
        eq(s.ask("tools/list")["result"]["tools"], [])


@case(daemon=False, deadline=30)
def a_redirect_within_the_origin_is_followed(t):
    """BACK-URL-07: 307 and 308 to another path, as from /mcp to /mcp/; to another origin nothing is sent."""
    def serve(request, message):
        if request.path == "/mcp":
            request.whole(307, Location="/mcp/?a=b")
        elif request.path == "/away":
            request.whole(308, Location=other.url)
        elif not request.greet(message):
            request.whole(405) if message is None else request.result(message, {"tools": []})

    with fake(lambda request, message: request.whole(500)) as other, fake(serve) as server:
        behind(t, server.url)
        eq(t.session("main").ask("tools/list")["result"]["tools"], [])
        eq([path for path in server.paths if path == "/mcp"], ["/mcp"], "once")
        daemon = behind(t, server.url.replace("/mcp", "/away"), headers={"Authorization": "Bearer x"})
        eq(first_answer(t).status, 503)
        daemon.wait_log("server_failing", "a redirect that is not followed")
        eq(other.requests, [])


# ---- refusals ----

@case(daemon=False, deadline=30)
def a_refusal_names_the_server_and_is_no_401_of_ours(t):
    """BACK-URL-06: 401 and 403 of the server, at any time, are errors of the call, which say what it asked for."""
    status = [401]

    def serve(request, message):
        if request.greet(message):
            return
        if message is None:
            request.whole(405)
        else:
            request.whole(status[0], b"no", WWW_Authenticate='Bearer scope="wiki:read"')

    with fake(serve) as server:
        behind(t, server.url)
        s = t.session("main")
        for status[0] in (401, 403):
            e = s.start("tools/call", {"name": "t"})
            message = e.final()["error"]["message"]
            eq(e.status, 200)
            for word in ("127.0.0.1", str(status[0]), "credentials", "headers", 'scope="wiki:read"'):
                ok(word in message, word, message)


@case(daemon=False, deadline=30)
def what_cannot_be_reached_is_said(t):
    """BACK-URL-06: at the start it is a failed start; the cause is in the log."""
    daemon = behind(t, "http://127.0.0.1:%d/mcp" % wire.free_port())
    ok("could not be started" in json.loads(first_answer(t).read())["error"]["message"], "in a word")
    daemon.wait_log("server_failing", "cannot be reached")


def server_is_away(t, answer):
    """Calls with a server that answers nothing, or so, and then is back; its one session stays."""
    def serve(request, message):
        request.protocol_version, request.close_connection = "HTTP/1.0", True  # each request finds out whether it is there
        if answers and message is not None and message.get("method") == "tools/call":
            request.whole(answers[0])
        elif not request.greet(message):
            request.whole(405) if message is None else request.result(message, {"content": []})

    answers = []
    with fake(serve) as server:
        port, daemon = server.server_port, behind(t, server.url, isolation="shared")
        s = t.session("main")
        eq(s.ask("tools/call", {"name": "t"})["result"]["content"], [])
        eq("main is failing" in ctl(t, "status")[0], False)
        if answer is not None:
            answers[:] = [answer]
            s.ask("tools/call", {"name": "t"})
    said = "answered with status %d" % answer if answer else "cannot be reached"
    for _ in range(2 if answer is None else 0):
        ok(said in s.ask("tools/call", {"name": "t"})["error"]["message"], "what the caller is told")
    daemon.wait_log("server_away", said)
    out, _ = ctl(t, "check", status=2)
    ok(out.startswith("failing  main is failing: the server at 127.0.0.1:%d %s" % (port, said)), "check", out)
    ok('mcpgated_server_failing{server="main"} 1\n' in ctl(t, "metrics")[0], "the metric")
    ok(said in ctl(t, "logs", "main")[0], "the lines of the server")
    answers[:] = []
    with fake(serve, port) as server:
        eq(s.ask("tools/call", {"name": "t"})["result"]["content"], [])
        daemon.wait_log("server_recovered")
        eq("initialize" in server.methods(), False, "the session stays")
        ctl(t, "check", status=0)
    eq(len(daemon.log("server_away")), 1, "it is told once")


for number in (None, 401, 503):
    def one_is_away(t, number=number):
        server_is_away(t, number)
    one_is_away.__name__, one_is_away.__module__ = "a_server_that_is_away_is_noticed_%s" % (number or "down"), __name__
    one_is_away.__doc__ = "BACK-URL-09: while the server cannot be reached, or refuses all, it is failing; the session goes on when it is back."
    case(daemon=False, deadline=30)(one_is_away)


# ---- odd servers, by the program alone ----

def initialized(lines):
    eq(lines.ask(mcp.initialize())["id"], 0)
    lines.say(mcp.notification("notifications/initialized"))


@case(daemon=False, deadline=60)
def odd_answers_are_answers(t):
    """BACK-URL-06, BACK-FRAME-05: each request is answered once, whatever the server makes of it."""
    text = {"content": [{"type": "text", "text": "x"}]}

    def serve(request, message):
        if request.greet(message):
            return
        if message is None:
            request.whole(405)
            return
        name, request_id = message["params"]["name"], message["id"]
        result = {"jsonrpc": "2.0", "id": request_id, "result": text}
        error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32000, "message": "own words"}}
        if name == "refusal by another id":
            request.json(error, 400)
        elif name == "about another session":
            request.json(dict(error, error={"code": -32602, "message": "own words: session"}), 400)
        elif name == "error by another id":
            request.json(error)
        elif name == "result by another id":
            request.json(dict(result, id=99))
        elif name == "a page":
            request.whole(200, b"<html>", Content_Type="text/html")
        elif name == "a batch":
            request.json([result])
        elif name == "broken text":
            request.whole(200, json.dumps(result).encode().replace(b'"x"', b'"\xff"'), Content_Type="application/json")
        elif name == "nothing":
            request.whole(202)
        elif name == "broken event":
            request.events("data: {", "", "data: " + json.dumps(result), "")
        elif name == "twice":
            request.events("data: " + json.dumps(result), "", "data: " + json.dumps(result), "")

    with fake(serve) as server, remote(server.url) as lines:
        initialized(lines)
        for n, (name, word) in enumerate([
                ("refusal by another id", "own words"), ("about another session", "own words"), ("error by another id", "own words"), ("result by another id", "did not answer"),
                ("a page", "did not answer"), ("a batch", None), ("broken text", None), ("nothing", "did not answer"),
                ("broken event", None), ("twice", None)], 1):
            answer = lines.ask(mcp.request(n, "tools/call", {"name": name}))
            eq(answer["id"], n, name)
            ok(word in answer["error"]["message"] if word else "result" in answer, name, answer)
        eq(lines.ask(mcp.request(50, "tools/call", {"name": "a batch"}))["id"], 50, "nothing else was said")


@case(daemon=False, deadline=60)
def what_stays_open_holds_nothing_up(t):
    """BACK-URL-01: a server that answers and keeps its streams open; more requests than run at a time; cancels that it refuses."""
    over = threading.Event()

    def serve(request, message):
        if message is None:
            request.whole(405)
        elif message.get("method") == "notifications/cancelled":
            request.whole(400)
        elif "id" not in message:
            request.whole(202)
        elif message["method"] == "slow":
            over.wait(20)
        else:
            result = ANSWER if message["method"] == "initialize" else {}
            request.events("data: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), "")
            over.wait(20)

    with fake(serve) as server, remote(server.url) as lines:
        initialized(lines)
        for n in range(1, 151):
            lines.say(mcp.request(n, "tools/call", {"name": "t"}))
        eq({lines.read()["id"] for _ in range(150)}, set(range(1, 151)))
        for n in range(200, 328):
            lines.say(mcp.request(n, "slow"))
        wait_for(lambda: sum(b'"slow"' in body for _, body in server.sent("POST")) == 128, 20, "all of them run")
        for n in range(200, 328):
            lines.say(mcp.notification("notifications/cancelled", {"requestId": n}))
        eq(lines.ask(mcp.request(400, "tools/call", {"name": "t"}))["id"], 400)
        over.set()


@case(daemon=False, deadline=30)
def the_end_is_the_end(t):
    """BACK-PROC-02: once stdin is closed nothing more is asked for; a session is ended; also during the handshake."""
    late = threading.Event()

    def serve(request, message):
        if message is not None and message.get("method") == "notifications/initialized":
            late.wait(20)
        if not request.greet(message):
            request.whole(200 if request.command == "DELETE" else 405)

    with fake(serve) as server, remote(server.url) as lines:
        initialized(lines)
        for n in range(2):
            lines.say(mcp.request(n, "tools/call", {"name": "x" * 40000 * (1 + n)}))
        lines.process.stdin.close()
        eq(lines.process.wait(5 * harness.SLOW), 0)
        late.set()
        eq(len(server.sent("DELETE")), 1)
        eq(server.methods(), ["initialize", "notifications/initialized"])


@case(daemon=False, deadline=60)
def a_stream_that_ends_again_and_again(t):
    """BACK-URL-04: it is opened with growing delays, whatever `retry` says; a 404 at first is no lost session; 429 passes."""
    answers = [429, 404, "open"]
    gets = []

    def serve(request, message):
        if request.greet(message):
            return
        if message is not None:
            request.result(message, {})
            return
        gets.append(time.monotonic())
        answer = answers[min(len(gets), 3) - 1] if request.server.has_stream else 404
        request.events("retry: 0", "", ": x", "") if answer == "open" else request.whole(answer)

    for has_stream in (True, False):
        with fake(serve) as server, remote(server.url) as lines:
            server.has_stream = has_stream
            answers[1] = "open"
            del gets[:]
            initialized(lines)
            wait_for(lambda: len(gets) >= (4 if has_stream else 1), 20, "streams")
            eq(lines.ask(mcp.request(1, "ping"))["result"], {})
            if has_stream:
                ok(gets[3] - gets[2] > 0.9, "a pause", gets)


@case(daemon=False, deadline=60)
def one_that_waits_takes_no_processor(t):
    """REL-24: idle, behind the handshake, with a call that runs, and with a stream that stays open."""
    over = threading.Event()

    def serve(request, message):
        if message is not None and message.get("method") == "notifications/initialized":
            request.events(": taken", "")
            over.wait(20)
        elif not request.greet(message):
            if message is not None and message["method"] == "ping":
                request.result(message, {})
            else:
                request.events(": open", "")
                over.wait(20)

    with fake(serve) as server, remote(server.url) as lines:
        initialized(lines)
        wait_for(lambda: server.sent("GET"), 10, "the stream of the session")
        lines.say(mcp.request(1, "tools/call", {"name": "t"}))
        eq(lines.ask(mcp.request(2, "ping"))["result"], {})
        before = cpu_seconds(lines.process.pid)
        time.sleep(1.5)  # in which a loop that never waits would take all of it
        ok(cpu_seconds(lines.process.pid) - before < 0.5, "processor time", cpu_seconds(lines.process.pid) - before)
        over.set()


@case(daemon=False, deadline=60)
def many_are_redirected_at_once(t):
    """BACK-URL-07: each goes where it was sent from where it came, also by a relative reference."""
    def serve(request, message):
        if request.path == "/mcp":
            request.whole(307, Location="mcp/")
        elif request.path == "/mcp/":
            request.result(message, {})
        else:
            request.whole(404)

    with fake(serve) as server, remote(server.url) as lines:
        for n in range(20):
            lines.say(mcp.request(n, "tools/call", {"_meta": meta(), "name": "t"}))
        answers = [lines.read() for _ in range(20)]
        eq(({answer["id"] for answer in answers}, [a for a in answers if "result" not in a]), (set(range(20)), []))
        eq(lines.ask(mcp.request(99, "tools/call", {"_meta": meta(), "name": "t"}))["result"], {})


@case(daemon=False, deadline=60)
def a_list_of_its_own_that_stays_open(t):
    """BACK-URL-02: the call that waits for it is sent, also if the server leaves the stream of its list open."""
    over = threading.Event()
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "R"}}}}

    def serve(request, message):
        if message["method"] == "tools/list":
            request.events("data: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [tool]}}), "")
            over.wait(20)
        elif request.headers.get("Mcp-Param-R") == "x":
            request.result(message, {})
        else:
            request.json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "no"}}, 400)

    with fake(serve) as server, remote(server.url) as lines:
        eq(lines.ask(mcp.request(1, "tools/call", {"_meta": meta(), "name": "t", "arguments": {"r": "x"}}))["result"], {})
        over.set()


@case(daemon=False)
def a_caller_cannot_blank_a_header(t):
    """AUTH-DWN-03: a value of blanks would be left out, and one that looks like an option of a sanitizer is a value like any other."""
    with fake(lambda request, message: request.greet(message)) as server:
        with remote(server.url, env={"X-Who": "u aSAN_OPTIONS=b"}) as lines:
            lines.ask(mcp.initialize())
        eq(server.requests[0][1]["X-Who"], "u aSAN_OPTIONS=b")
        with contextlib.suppress(BrokenPipeError):
            lines = Lines(server.url, env={"X-Who": "  "})
            eq(lines.process.wait(10 * harness.SLOW), 1)
            lines.process.stdin.close()
            lines.process.stdout.close()


# ---- HTTP+SSE ----

def old_server(endpoint):
    """Of 2024-11-05: a stream, and an address to post to."""
    streams = []

    def serve(request, message):
        if request.command == "GET":
            streams.append(request)
            request.events("event: endpoint", "data: " + endpoint, "")
            request.rfile.read(1)  # until the client has gone
        elif request.path.startswith("/post"):
            request.whole(202)
            if "id" in message:
                result = ANSWER if message["method"] == "initialize" else {"tools": []}
                streams[-1].say("event: message", "data: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), "")
        else:
            request.whole(405)
    return serve


@case(daemon=False, deadline=30)
def a_server_of_2024_11_05(t):
    """BACK-URL-08: after 405 the stream says where to post, and answers come on it."""
    with fake(old_server("/post?session=1")) as server:
        behind(t, server.url)
        s = t.session("main")
        for _ in range(2):
            answer = s.ask("tools/list")
            eq(answer.get("result", answer).get("tools"), [], answer)


@case(daemon=False, deadline=30)
def messages_go_to_no_other_origin(t):
    """BACK-URL-08, SEC-79: an `endpoint` of another origin is refused; nothing is sent there."""
    with fake(lambda request, message: request.whole(500)) as other, fake(old_server(other.url)) as server:
        daemon = behind(t, server.url)
        eq(first_answer(t).status, 503)
        daemon.wait_log("server_failing", "another host")
        eq(other.requests, [])


# ---- configuration ----

@case(daemon=False, deadline=60)
def a_reload_is_for_what_begins_later(t):
    """product §4: another url, headers, ca, proxy or allow_private means other processes; sessions keep theirs; a command may become a url, and back."""
    def serve(request, message):
        if not request.greet(message):
            request.whole(405) if message is None else request.result(message, {"tools": [{"name": request.headers["X-N"], "inputSchema": {"type": "object"}}]})

    def seen(session):
        return sorted(tool["name"] for tool in session.ask("tools/list")["result"]["tools"])

    with fake(serve) as one, fake(serve) as two:
        daemon = behind(t, one.url, headers={"X-N": "1"})
        sessions = [t.session("main")]
        steps = [({"url": one.url, "headers": {"X-N": "2"}}, one), ({"url": two.url, "headers": {"X-N": "3"}}, two),
                 ({"url": two.url, "headers": {"X-N": "4"}, "ca": "/etc/ssl/certs/ca-certificates.crt"}, two),
                 ({"url": two.url, "headers": {"X-N": "5"}, "allow_private": True}, two), ({"script": {}}, None),
                 ({"url": one.url, "headers": {"X-N": "7"}}, one),
                 ({"url": one.url, "headers": {"X-N": "8"}, "proxy": two.url[:-4]}, two)]
        for n, (server, place) in enumerate(steps, 2):
            reload(t, {"main": server})
            before = place and len(place.requests)
            sessions.append(t.session("main"))
            ok(place is None or len(place.requests) > before, "the new one is asked", server)
        for n, session in enumerate(sessions, 1):
            eq(seen(session), [str(n)] if n != 6 else ["do", "echo"], n)
        eq(len(remotes(daemon)), 7)

class Proxy(socketserver.ThreadingTCPServer):
    """Joins whoever says CONNECT with where it wants to; or answers with a status. It keeps what it was told."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, status=200):
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                head = []
                while not head or head[-1] not in (b"\r\n", b""):
                    head.append(self.rfile.readline())
                proxy.heads.append(b"".join(head).decode())
                self.wfile.write(b"HTTP/1.1 %d x\r\n\r\n" % status)
                with contextlib.suppress(OSError):  # its daemon may have ended
                    status == 200 and self.join(socket.create_connection(("127.0.0.1", int(head[0].split()[1].rsplit(b":")[-1]))))

            def join(self, other):
                threading.Thread(target=self.copy, args=(self.connection, other), daemon=True).start()
                self.copy(other, self.connection)

            def copy(self, one, other):
                with contextlib.suppress(OSError):
                    while data := one.recv(65536):
                        other.sendall(data)
                    other.shutdown(socket.SHUT_WR)

        super().__init__(("127.0.0.1", 0), Handler)
        self.heads = []
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()


@case(daemon=False, deadline=60)
def by_a_proxy_with_a_certificate(t):
    """BACK-URL-04: the proxy is asked for the server's name and gets nothing of the messages; the server sees our certificate."""
    inner = c60_tls.start(t, dict(c60_tls.tls_config(client_ca=c60_tls.path("ca.crt")), hosts=["wiki.example.com"]), {"main": {"script": {}}})
    proxy, port = Proxy(), inner.plain_address[1]
    url = "https://wiki.example.com:%d/main/mcp" % port
    tls = {"ca": c60_tls.path("ca.crt"), "certificate": c60_tls.path("client.crt"), "key": c60_tls.path("client.key")}
    locked = os.path.join(t.directory(), "locked.key")
    os.chmod(os.path.dirname(locked), 0o711)
    c60_tls.made(c60_tls.openssl("ec", "-aes256", "-passout", "pass:secret", "-in", tls["key"], "-out", locked))
    behind(t, url, proxy=proxy.url, headers={"X-Secret": "for the server"}, **tls)
    eq(t.session("main").echo("on"), "on")
    ok(proxy.heads and all(head.startswith("CONNECT wiki.example.com:%d HTTP/1.1\r\n" % port) for head in proxy.heads), proxy.heads)
    ok(not any("for the server" in head or "mcp-" in head.lower() for head in proxy.heads), "nothing else", proxy.heads)
    for more, what in ((dict(tls, certificate=c60_tls.path("stranger.crt"), key=c60_tls.path("stranger.key")), "alert unknown ca"),
                       (dict(tls, key=locked), "private key"), ({"ca": tls["ca"]}, "alert certificate required")):
        daemon = behind(t, url, proxy=proxy.url, **more)
        eq(first_answer(t).status, 503)
        daemon.wait_log("server_failing", what)


@case(daemon=False)
def files_of_tls_are_looked_at(t):
    """product §3 BACK-URL-04: -t warns of a certificate, a key or CAs that the server's connection will miss; they may come later, so it starts."""
    path = c60_tls.path
    for certificate, key, ca, said in (
            ("client.crt", "client.key", "ca.crt", []),
            ("short.crt", "short.key", "ca.crt", [r"certificate: \S+/short\.crt expires in [23] days"]),
            ("client.crt", "stranger.key", "ca.crt", [r"key: \S+/stranger\.key: the key does not belong to the certificate"]),
            ("none.crt", "client.key", "ca.crt", [r"certificate: \S+/none\.crt: cannot be opened: No such file"]),
            ("client.crt", "client.key", "client.key", [r"ca: \S+/client\.key: holds no certificate"])):
        files = Files("servers: {main: {url: https://x.example/mcp, certificate: %s, key: %s, ca: %s}}\n" % (path(certificate), path(key), path(ca)))
        done = program("-t", "-c", files.path)
        warnings = re.findall(r"servers\.main\.(?:certificate|key|ca): .*", done.stderr)
        eq((done.returncode, len(warnings)), (0, len(said)), done.stderr)
        ok(all(re.search(one, warnings[0]) for one in said), "which", warnings)


@case(daemon=False, deadline=30)
def a_proxy_that_refuses_is_named(t):
    """BACK-URL-09: who is away is said: the proxy, with its status, or that there is none; nothing is connected to beside it."""
    with fake(lambda h, message: h.greet(message) or h.result(message, {})) as server:
        for status in (403, 407, 503):
            proxy = Proxy(status)
            daemon = behind(t, "https://127.0.0.1:%d/mcp" % server.server_port, proxy=proxy.url)
            eq(first_answer(t).status, 503)
            daemon.wait_log("server_failing", "cannot be reached", str(status))
            ok(proxy.heads, "it was asked")
        daemon = behind(t, server.url, proxy="http://127.0.0.1:%d" % wire.free_port())
        eq(first_answer(t).status, 503)
        daemon.wait_log("server_failing", "cannot be reached")
        eq(server.requests, [])


@case(daemon=False, deadline=30)
def a_server_on_a_unix_socket(t):
    """BACK-URL-01: the same as by an address; one that does not let us in, or none, is an error that says so."""
    place = os.path.join(t.directory(), "s")
    t.start({"main": {"script": {}}}, {"listen": [{"address": "unix:" + place}, {"address": "127.0.0.1:0"}]})
    os.chmod(os.path.dirname(place), 0o711)
    os.chmod(place, 0o666)  # root's process is nobody's
    behind(t, "unix://%s#/main/mcp" % place)
    s = t.session("main")
    eq(s.echo("on"), "on")
    for url, why in (("unix://%s.none#/main/mcp" % place, "No such file"), ("unix://%s/s#/main/mcp" % place, "Not a directory")):
        daemon = behind(t, url)
        eq(first_answer(t).status, 503)
        daemon.wait_log("server_failing", "the server at /", "cannot be reached", why)


@case(daemon=False)
def what_is_written_wrong(t):
    """mcpgated.yaml(5): url and command exclude each other, as do their options; what `defaults` says of programs is not meant."""
    head = "servers:\n  main:\n    "
    refused(head + "enabled: true\n", "the key 'command' or 'url' is missing")
    refused(head + "url: ftp://x/\n", "must be an https or http URL")
    refused(head + "url: https://u@x/\n", "must be an https or http URL")
    refused(head + "url: unix://run/x#/mcp\n", "must be the absolute path of a socket, and behind # that of requests, like unix:///run/wiki.sock#/mcp")
    refused(head + "url: unix:///run/x\n", "must be the absolute path of a socket")
    refused(head + "url: unix:///run/x#/mcp\n    proxy: http://127.0.0.1:1\n", "leads to no unix socket")
    refused(head + "url: https://x/\n    proxy: http://a:b@127.0.0.1:1\n", "must be an http URL of a host and a port")
    refused(head + "url: 'unix:///run/x#/m cp'\n", "must be the absolute path of a socket")
    refused(head + "url: https://x/\n    proxy: http://127.0.0.1\n", "must be an http URL of a host and a port")
    refused(head + "url: http://localhost:1/\n    proxy: http://192.0.2.1:3128\n", "gets all that goes to the server without TLS")
    refused(head + "url: HTTP://localhost:1/\n    proxy: HTTP://192.0.2.1:3128\n", "gets all that goes to the server without TLS")
    good(head + "url: http://localhost:1/\n    proxy: http://192.0.2.1:3128\n    allow_private: true\n")
    good(head + "url: HTTPS://x/\n    certificate: /a\n    key: /b\n")
    refused(head + "url: http://localhost:1/\n    certificate: /a\n    key: /b\n", "certificate: is for https alone")
    refused(head + "url: https://x/\n    headers: {Proxy-Authorization: b}\n", "cannot be set here")
    refused(head + "url: https://x/\n    certificate: /a\n", "certificate: needs key as well")
    refused(head + "url: https://x/\n    key: /a\n", "key: needs certificate as well")
    good(head + "url: unix:///run/x#/mcp\n")
    refused(head + "url: http://192.0.2.1/mcp\n", "goes to another machine without TLS")
    refused(head + "url: https://x/\n    command: /bin/cat\n", "is for a server with a 'command', and this one has a 'url'; a server has one of the two")
    refused(head + "url: https://x/\n    env: {A: b}\n", "and this one has a 'url'; use headers")
    refused(head + "command: /bin/cat\n    headers: {A: b}\n", "headers: is for a server with a 'url', and this one has a 'command'; what a command needs goes into env")
    refused(head + "url: https://x/\n    headers: {A: 'Bearer ${TOK}'}\n", "${TOK} is not expanded; write {env: TOK} or {file: PATH}, which hold the whole value")
    refused(head + "url: https://x/\n    headers: {A: {file: 'keys/${claim:sub}'}}\n", "must be an absolute path, like /etc/mcpgated/keys/${claim:sub}.key")
    refused(head + "url: https://x/\n    headers: {A: {file: '/k/${claim:a}/${claim:b}-${claim:c}'}}\n", "write a / between them")
    refused(head + "url: https://x/\n    headers: {A: {credential: 'k-${claim:sub}'}}\n", "can only be in env and headers, as a text or in {file: PATH}")
    refused(head + "url: https://x/\n    sandbox: {mode: landlock}\n", "is for a server with a 'command'")
    refused(head + "url: https://x/\n    headers: {Mcp-Session-Id: b}\n", "cannot be set here")
    refused(head + "url: https://x/\n    headers: {A: \"b\\nc\"}\n", "cannot be the value of a header field")
    files = Files(head + "url: https://x/\n    headers: {A: b}\n")
    printed = program("--print-config", "-c", files.path).stdout
    ok("url: " in printed and "inherit_env" not in printed, "what is printed", printed)
    good(printed)
    good("defaults: {command: /bin/cat, env: {A: b}, sandbox: {mode: landlock}}\n" + head + "url: https://x/\n    headers: {A: b}\n")
