# SPDX-License-Identifier: Apache-2.0
"""One set of servers for all clients of a user: mcpgatectl connect. mcpgatectl(1)."""
import contextlib
import hashlib
import json
import os
import subprocess
import tempfile

import harness
import mcp
from harness import case, eq, ok, wait_for

TOKEN = "mcpg_" + "t" * 40
AUTH = {"mode": "token", "tokens": [{"name": "ci", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}
SERVERS = {"main": {}}


class Connection:
    """A client that starts its servers itself: lines to and from `mcpgatectl connect`."""

    def __init__(self, *args, env=None):
        argv = args if os.path.isabs(args[0]) else [os.path.join(harness.BIN, "mcpgatectl"), *args]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def say(self, message):
        self.process.stdin.write(mcp.encode(message) + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, message):
        self.say(message)
        return self.read()

    def greet(self, caps=None):
        answer = self.ask(mcp.initialize(mcp.D, caps))
        self.say(mcp.notification("notifications/initialized"))
        return answer

    def do(self, *steps, request_id=1):
        self.say(mcp.request(request_id, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}}))

    def end(self, status=0):
        out, err = self.process.communicate(timeout=8 * harness.SLOW)
        eq(self.process.returncode, status, err)
        return out, err.decode()


@contextlib.contextmanager
def connected(*args, **more):
    connection = Connection(*args, **more)
    try:
        yield connection
    finally:
        connection.process.kill()
        connection.process.wait()
        for file in (connection.process.stdin, connection.process.stdout, connection.process.stderr):
            with contextlib.suppress(OSError):
                file.close()


@contextlib.contextmanager
def token_file(token=TOKEN):
    with tempfile.NamedTemporaryFile("w", prefix="token-") as file:
        file.write(token + "\n")
        file.flush()
        yield file.name


@case(config={"auth": AUTH}, own=True, deadline=30)
def a_client_of_standard_input(t):
    """product §2: calls, notifications, questions of the server and its unasked messages; the end of input ends the session."""
    with token_file() as path, connected("--socket", t.daemon.admin, "connect", "main", "--token-file", path) as c:
        eq(c.greet({"roots": {}})["result"]["protocolVersion"], mcp.D)
        c.do(["log", "info", "one"], ["ask", "q1", "roots/list"], ["text", "done"], request_id="x")
        eq(c.read()["params"]["data"], "one")
        question = c.read()
        eq(question["method"], "roots/list")
        c.say({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        eq(c.read(), {"jsonrpc": "2.0", "id": "x", "result": {"content": [{"type": "text", "text": "done"}]}})
        c.do(["background", [["sleep", 0.3], ["notify", "notifications/tools/list_changed"]]], ["text", "later"])
        eq(c.read()["id"], 1)
        eq(c.read()["method"], "notifications/tools/list_changed")
        ok(t.daemon.children(), "it has a process")
        with open("/proc/%d/cmdline" % c.process.pid) as file:
            eq(file.read().split("\0")[0::3], ["mcpgated-remote", ""], "what everybody can see has no token")
        eq(c.end()[0], b"")
        wait_for(lambda: not t.daemon.children(), what="the end of its process")


@case(config={"auth": AUTH}, own=True)
def what_connect_needs(t):
    """product §2: without a daemon, a server or a token, connect says what is missing."""
    for args, said in ((("--socket", t.daemon.admin, "connect", "other"), "there is no such server"),
                       (("--socket", t.daemon.admin, "connect", "main"), "the daemon asks for a token: use --token-file FILE"),
                       (("--socket", t.daemon.dir + "/none", "connect", "main"), "no daemon answers at")):
        with connected(*args) as c:
            ok(said in c.end(1)[1], said)
    with token_file("mcpg_wrong") as path, connected("--socket", t.daemon.admin, "connect", "main", "--token-file", path) as c:
        c.say(mcp.initialize(mcp.D))
        c.process.wait(10 * harness.SLOW)
        ok("status 401" in c.end(1)[1], "a wrong token")


@case(config={"auth": AUTH}, own=True, deadline=20)
def connect_with_the_users_own_files(t):
    """product §2: connect finds the address in the user's mcpgated.yaml, without asking a daemon, and the token beside it."""
    (_, port) = t.daemon.address
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, ".config", "mcpgated")
        os.makedirs(folder)
        for name, text in (("mcpgated.yaml", "listen: [{address: '127.0.0.1:%d'}]\nservers: {main: {command: /bin/cat}}\n"
                            "auth: {mode: token, tokens: [{name: a, sha256: %s}]}\n" % (port, AUTH["tokens"][0]["sha256"])), ("token", TOKEN)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
            os.chmod(os.path.join(folder, name), 0o600)
        with connected("connect", "main", env={"HOME": home}) as c:
            c.greet()
            c.do(["text", "found"])
            eq(c.read()["result"]["content"][0]["text"], "found")
            c.end()
