# SPDX-License-Identifier: Apache-2.0
"""One set of servers for all clients of a user: mcpgatectl connect and adopt. mcpgatectl(1)."""
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import tempfile
import threading
from urllib.parse import urlsplit

import harness
import mcp
import wire
from harness import case, eq, ok, wait_for

TOKEN = "mcpg_" + "t" * 40
AUTH = {"mode": "token", "tokens": [{"name": "ci", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}
SERVERS = {"main": {}}


OTHER = 65534 if os.getuid() == 0 else None


def as_user(user):
    return {"user": user, "group": user, "extra_groups": []} if user else {}


class Connection:
    """A client that starts its servers itself: lines to and from `mcpgatectl connect`."""

    def __init__(self, *args, env=None, user=None):
        argv = args if os.path.isabs(args[0]) else [os.path.join(harness.BIN, "mcpgatectl"), *args]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                                        **as_user(user))

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
            eq(file.read().split("\0")[0::4], ["mcpgated-remote", ""], "what everybody can see has no token")
        eq(c.end()[0], b"")
        wait_for(lambda: not t.daemon.children(), what="the end of its process")


@case(config={"auth": AUTH}, own=True, deadline=20)
def the_end_of_input_waits_for_answers(t):
    """product §2: what was asked before the end of input is answered, also behind the handshake; SIGTERM ends the session at once."""
    with token_file() as path, connected("--socket", t.daemon.admin, "connect", "main", "--token-file", path) as c:
        c.say(mcp.initialize(mcp.D))
        c.say(mcp.notification("notifications/initialized"))
        c.do(["sleep", 0.5], ["text", "late"], request_id=7)
        out = [json.loads(line) for line in c.end()[0].splitlines()]
        eq([message["id"] for message in out], [0, 7])
        eq(out[1]["result"]["content"][0]["text"], "late")
        wait_for(lambda: not t.daemon.children(), what="the end of its process")
    with token_file() as path, connected("--socket", t.daemon.admin, "connect", "main", "--token-file", path) as c:
        c.greet()
        c.do(["sleep", 60])
        wait_for(lambda: t.daemon.children(), what="its process")
        c.process.terminate()
        eq(c.process.wait(8 * harness.SLOW), 0)
        wait_for(lambda: not t.daemon.children(), what="the end of its process")


@case(daemon=False, deadline=40)
def connect_waits_for_what_is_about_to_start(t):
    """product §2: a URL in place of a server, and a daemon that comes up a moment later."""
    port = wire.free_port()
    with connected("connect", "http://127.0.0.1:%d/main/mcp" % port) as c:
        c.say(mcp.initialize(mcp.D))
        eq(select.select([c.process.stdout, c.process.stderr], [], [], 0.6)[0], [], "an answer, or the end, before anybody is there")
        t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:%d" % port}]})
        eq(c.read()["result"]["protocolVersion"], mcp.D)
        c.say(mcp.notification("notifications/initialized"))
        eq(c.ask(mcp.request(2, "ping"))["result"], {})
        c.end()
    for url, said in (("ftp://127.0.0.1/x", "none of http or https"), ("http:///x", "none of http or https")):
        with connected("connect", url) as c:
            ok(said in c.end(2)[1], url)


@case(config={"auth": AUTH}, own=True)
def what_connect_needs(t):
    """product §2: without a daemon, a server or a token, connect says what is missing."""
    for args, said in ((("--socket", t.daemon.admin, "connect", "other"), "there is no such server"),
                       (("--socket", t.daemon.admin, "connect", "main"), "the daemon asks for a token: use --token-file FILE"),
                       (("--socket", t.daemon.dir + "/none", "connect", "main"), "no daemon answers at"),
                       (("connect", "http://127.0.0.1:9/mcp", "--ca", "/none.crt"), "/none.crt: cannot be opened")):
        with connected(*args) as c:
            ok(said in c.end(1)[1], said)
    with token_file("mcpg_wrong") as path, connected("--socket", t.daemon.admin, "connect", "main", "--token-file", path) as c:
        c.say(mcp.initialize(mcp.D))
        c.process.wait(10 * harness.SLOW)
        ok("status 401" in c.end(1)[1], "a wrong token")
    with connected("connect", "http://127.0.0.1:9/mcp") as c:
        c.say(mcp.initialize(mcp.D))
        c.process.wait(10 * harness.SLOW)
        ok("systemctl --user start mcpgated.socket" in c.end(1)[1], "how a daemon is started")


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
        # The token is for that address alone, and what is given goes before the user's own files.
        with connected("connect", "http://127.0.0.1:%d/main/mcp" % port, env={"HOME": home}) as c:
            c.say(mcp.initialize(mcp.D))
            c.process.wait(10 * harness.SLOW)
            ok("status 401: it wants a token that allows this (--token-file FILE)" in c.end(1)[1], "a URL is shown no token")
        own = os.path.join(folder, "mcpgated.yaml")
        given = os.path.join(home, "given.yaml")
        os.rename(own, given)
        for path, text in ((own, "servers: {other: {command: /bin/cat}}\n"),
                           (given + ".oauth", "servers: {main: {command: /bin/cat}}\npublic_url: https://a.example\n"
                            "auth: {mode: oauth, issuers: [{issuer: 'https://i.example'}]}\n")):
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o600)
        for args, said in ((("--socket", t.daemon.admin), "asks for a token"), (("-c", given), "asks for a token"),
                           (("-c", given + ".oauth"), "tokens of an issuer, which connect cannot get")):
            with connected(*args, "connect", "main", env={"HOME": home}) as c:
                ok(said in c.end(1)[1], args)


# ---- adopt ----

CURSOR, CLAUDE, CODE = ".cursor/mcp.json", ".config/Claude/claude_desktop_config.json", ".claude.json"
VSCODE, WINDSURF = ".config/Code/User/mcp.json", ".codeium/windsurf/mcp_config.json"
ZED, GEMINI, CODEX = ".config/zed/settings.json", ".gemini/settings.json", ".codex/config.toml"
BOM = b"\xef\xbb\xbf"
PLAIN = b"""{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"],
      "env": {"API_KEY": "s3cret"}
    }
  }
}
"""
TOML = b"""model = "a-model"

[mcp_servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]

[mcp_servers.files.env]
API_KEY = "s3cret"

[tui]
theme = "dark"
"""
# What it is: (where it is, what is in it, the entries that are moved, what is said)
POSTED = {
    "plain": (CURSOR, PLAIN, 1, ""),
    "without a line end": (CURSOR, PLAIN.rstrip(), 1, ""),
    "blank lines behind it": (CURSOR, PLAIN + b"\n\n\n", 1, ""),
    "CRLF": (CURSOR, PLAIN.replace(b"\n", b"\r\n"), 1, ""),
    "a byte order mark": (CURSOR, BOM + PLAIN, 1, ""),
    "a byte order mark and CRLF": (CLAUDE, BOM + PLAIN.replace(b"\n", b"\r\n"), 1, ""),
    "tabs": (CURSOR, PLAIN.replace(b"  ", b"\t"), 1, ""),
    "one line": (CURSOR, b'{"mcpServers":{"a":{"command":"x"},"b":{"command":"y","args":["1"]}}}', 2, ""),
    "no space at all but line ends": (CURSOR, b'{\n"mcpServers":{\n"a":{\n"command":"x"\n}\n}\n}', 1, ""),
    "odd indentation": (CURSOR, b'{ "mcpServers"\n:\n        {"a"\n :  {   "command"\n:"x"\n            ,"args":[\n"1"]}   }}', 1, ""),
    "braces of their own": (CURSOR, b'{\n  "mcpServers":\n  {\n    "a":\n    {\n      "command": "x"\n    }\n  }\n}\n', 1, ""),
    "comments of lines": (CURSOR, b'// mine\n{ // a\n "mcpServers": { // b\n  "a": { // c\n   "command": "x" // d\n  } // e\n }\n}\n// end', 1, ""),
    "comments of blocks": (VSCODE, b'{/**/"servers"/* , */:{/* } */"a":{"command"/*"*/:/*{*/"x"}}}', 1, ""),
    "a comment that looks like an entry": (CURSOR, b'{"mcpServers": {\n// "a": {"command": "old"},\n"a": {"command": "new"}}}', 1, ""),
    "trailing commas": (VSCODE, b'{"servers": {"a": {"command": "x", "args": ["1",],}, }, }', 1, ""),
    "comments of no UTF-8": (CURSOR, b'{"mcpServers": {"a": {"command": "x" /* \xff */}}}', 0, "not UTF-8"),
    "no UTF-8": (CURSOR, b'{"mcpServers": {"a": {"command": "\xff"}}}', 0, "not valid JSON"),
    "duplicate entries": (CURSOR, b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', 0, "duplicate object key"),
    "duplicate members": (CURSOR, b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}', 0, "duplicate object key"),
    "disabled": (WINDSURF, b'{"mcpServers": {"a": {"command": "x", "disabled": true}, "b": {"command": "y", "disabled": false}}}', 1, "is disabled"),
    "inputs": (VSCODE, b'{"inputs": [{"id": "k", "type": "promptString"}], "servers": {"a": {"type": "stdio", "command": "x", "env": '
               b'{"K": "${input:k}"}}, "b": {"type": "stdio", "command": "y"}}}', 1, "'${input:k}': there is nobody to ask for it\n"),
    "a folder of the editor": (VSCODE, b'{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}', 0, "${workspaceFolder}"),
    "a file of variables": (VSCODE, b'{"servers": {"a": {"command": "x", "envFile": ".env"}}}', 0, "envFile"),
    "Windows paths": (CLAUDE, rb'{"mcpServers": {"a": {"command": "C:\\Program Files\\x.exe", "args": ["D:\\a\\b"]}}}', 1, ""),
    "escapes": (CURSOR, rb'{"mcpServers": {"\u0061 \"b\"": {"command": "\u0078", "args": ["\n", "\ud83d\ude00"]}}}', 1, ""),
    "an escaped member": (CURSOR, rb'{"mcpServers": {"a": {"command": "x", "tim\u0065out": 5}}}', 0, "with a backslash"),
    "other alphabets": (CURSOR, '{"mcpServers": {"ファイル": {"command": "x"}, "Ümläut": {"command": "y"}}}'.encode(), 2, ""),
    "nothing": (CURSOR, b"", 0, "no entry"),
    "only space": (CURSOR, b" \r\n\t", 0, "no entry"),
    "an empty object": (CURSOR, b"{}", 0, "no entry"),
    "an empty list": (CURSOR, b'{"mcpServers": {}}', 0, "no entry"),
    "an array": (CURSOR, b"[]", 0, "no entry"),
    "a broken file": (CURSOR, PLAIN[:-4], 0, "not valid JSON"),
    "a comma is missing": (CURSOR, PLAIN.replace(b'"npx",', b'"npx"'), 0, "not valid JSON"),
    "an entry that is a text": (CURSOR, b'{"mcpServers": {"a": "x", "b": {"command": "y"}}}', 1, "not an object"),
    "an entry of nothing": (CURSOR, b'{"mcpServers": {"a": {}, "b": {"command": ""}, "c": null}}', 0, "neither of them"),
    "at a URL": (CURSOR, b'{"mcpServers": {"a": {"url": "https://example.com/mcp", "headers": {"X": "s3cret"}}}}', 0, "at a URL"),
    "an unknown member": (CURSOR, b'{"mcpServers": {"a": {"command": "x", "runAs": "me"}}}', 0, "is unknown"),
    "the client's own members": (WINDSURF, b'{"mcpServers": {"a": {"timeout": 5, "command": "x", "disabledTools": ["t"], "autoApprove": [\n"u"]}}}', 1, ""),
    "projects": (CODE, b'{"numStartups": 3, "mcpServers": {"a": {"type": "stdio", "command": "x", "args": [], "env": {}}}, "projects": {"/tmp": '
                 b'{"allowedTools": [], "mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}, "/": {"mcpServers": {"a": {"command": "x"}}}, '
                 b'"/var": {"mcpServers": {}}}, "userID": "1"}', 4, ""),
    "a project that has some disabled": (CODE, b'{"projects": {"/tmp": {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}, '
                                         b'"disabledMcpServers": ["a"]}}}', 1, "is disabled"),
    "settings around it": (ZED, b'{\n  // theme\n  "theme": "One",\n  "context_servers": {\n    "a": {\n      "source": "custom",\n      "command": "x",\n'
                           b'      "args": [],\n      "env": {},\n    },\n    "ext": {"settings": {}},\n  },\n  "vim_mode": true,\n}\n', 1, "extension"),
    "without settings": (ZED, b'{"context_servers": {"a": {"source": "custom", "command": "x", "settings": {}}, "b": {"command": {"path": "y"}, '
                              b'"settings": { } }, "c": {"command": "z", "settings": {"k": 1}}}}', 2, "c.settings: is not imported"),
    "an old form": (ZED, b'{"context_servers": {"a": {"command": {"path": "x", "args": ["1"], "env": {"K": "s3cret"}}, "settings": null}}}', 1, ""),
    "lists of what is allowed": (GEMINI, b'{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x", "trust": true}, "b": {"command": "y"}}}', 1, "is disabled"),
    "Codex": (CODEX, TOML, 1, ""),
    "Codex: CRLF": (CODEX, TOML.replace(b"\n", b"\r\n"), 1, ""),
    "Codex: a byte order mark": (CODEX, BOM + TOML, 1, ""),
    "Codex: without a line end": (CODEX, TOML.rstrip(), 1, ""),
    "Codex: comments": (CODEX, b'# mine [mcp_servers.z]\n[mcp_servers.a] # b\n# c = 1\ncommand = "x" # "d\n\n# e\nargs = [ # f\n  "1", # ]\n]\n'
                        b'# g\nstartup_timeout_sec = 20 # h\n# i\n', 1, ""),
    "Codex: odd indentation": (CODEX, b'  [ mcp_servers . a ]\n\tcommand="x"\n      args   =\t["1",\n"2" ]\n [mcp_servers.a.env]\n    K = "s3cret"\n', 1, ""),
    "Codex: duplicate tables": (CODEX, b'[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a]\nargs = []\n', 0, "3:15: not valid TOML: a table is defined twice"),
    "Codex: duplicate keys": (CODEX, b'[mcp_servers.a]\ncommand = "x"\n"comm\\u0061nd" = "y"\n', 0, "the same name once more"),
    "Codex: disabled": (CODEX, b'[mcp_servers.a]\ncommand = "x"\nenabled = false\n[mcp_servers.b]\nenabled = true\ncommand = "y"\n', 1, "is disabled"),
    "Codex: tables in braces": (CODEX, b'[mcp_servers]\na = { command = "x", args = ["1"], env = { K = "s3cret" } } # c\n'
                                b'b = {command="y", tool_timeout_sec=6}\n[tui]\n', 2, ""),
    "Codex: all in braces": (CODEX, b'mcp_servers = { a = { command = "x" }, b.command = "y" }\n', 1, "in several places"),
    "Codex: keys with dots": (CODEX, b'mcp_servers.a.command = "x"\nmcp_servers."a".args = []\nmcp_servers.a.env.K = "s3cret"\n'
                              b'mcp_servers.b.command = "y"\nmcp_servers.b.enabled = true\nmodel = "m"\n[tools]\nweb_search = true\n', 2, ""),
    "Codex: keys with dots below the list": (CODEX, b'[mcp_servers]\n  a.command = "x"\n  a.startup_timeout_sec = 1e1\n  b.command = "y"\n'
                                             b'[mcp_servers.b.env]\nK = "1"\n', 1, "in several places"),
    "Codex: dots in a table": (CODEX, b'[mcp_servers.a]\ncommand = "x"\nenv.A = "s3cret"\nenv.B = "2"\n[mcp_servers.b]\nenv.A = "1"\ncommand = "y"\n'
                               b'env.B = "2"\n', 1, "in several places"),
    "Codex: in several places": (CODEX, b'[mcp_servers.a]\ncommand = "x"\n[tui]\n[mcp_servers.a.env]\nA = "1"\n[mcp_servers.b.env]\n[mcp_servers.b]\n'
                                 b'command = "y"\n', 0, "in several places"),
    "Codex: Windows paths": (CODEX, b"[mcp_servers.a]\ncommand = 'C:\\Program Files\\x.exe'\nargs = ['D:\\a\\', '''\nC:\\'x'\\''']\n", 1, ""),
    "Codex: texts of several lines": (CODEX, b'[mcp_servers.a]\ncommand = "sh"\nargs = ["-c", """\n[mcp_servers.b]\ncommand = \\"y\\"\\\n   # no comment\n"""]\n', 1, ""),
    "Codex: odd names": (CODEX, '[mcp_servers."a b.c"]\ncommand = "x"\n[mcp_servers.\'"\']\ncommand = "y"\n[mcp_servers."ファイル"]\ncommand = "z"\n'
                         '[mcp_servers.mcp_servers]\ncommand = "w"\n'.encode(), 4, ""),
    "Codex: the client's own members": (CODEX, b'[mcp_servers.a]\nstartup_timeout_sec = 20\ncommand = "x"\nenabled_tools = [\n"t"]\n\n[mcp_servers.a.env]\n'
                                        b'K = "s3cret"\n\n[mcp_servers.a.tools.t]\napproval_mode = "auto"\n\n[projects."/srv"]\ntrust_level = "trusted"\n', 1, ""),
    "Codex: at a URL": (CODEX, b'[mcp_servers.a]\nurl = "https://example.com/mcp"\nhttp_headers = { X = "s3cret" }\n', 0, "at a URL"),
    "Codex: variables": (CODEX, b'[mcp_servers.a]\ncommand = "x"\nargs = ["${env:HOME}"]\n[mcp_servers.b]\ncommand = "x"\nenv_vars = ["LANG"]\n', 0,
                         "env_vars names variables"),
    "Codex: an unknown member": (CODEX, b'[mcp_servers.a]\ncommand = "x"\nexperimental_environment = "e"\n', 0, "is unknown"),
    "Codex: not what it should be": (CODEX, b'[mcp_servers]\na = 1\nb = { command = 2026-01-01 }\nc = { command = "x", args = ["1", 0x1] }\n'
                                     b'[[mcp_servers.d]]\ncommand = "y"\n', 0, "is not an object"),
    "Codex: a broken file": (CODEX, TOML + b'args = ["-y"\n', 0, "not valid TOML"),
    "Codex: no UTF-8": (CODEX, b'# \xff\n' + TOML, 0, "not valid TOML: it is not UTF-8"),
    "Codex: nothing": (CODEX, b'model = "m"\n', 0, "no entry"),
    "a variable of the editor": (CURSOR, b'{"mcpServers": {"a": {"command": "x", "args": ["${env:HOME}/a"], "env": {"A": "${env:HOME}"}}}}', 1, ""),
    "a variable of the shell": (CODE, b'{"mcpServers": {"a": {"command": "x", "args": ["${HOME}/a"], "env": {"A": "${HOME}"}}}}', 1, ""),
    "a text with a variable": (CURSOR, b'{"mcpServers": {"a": {"command": "sh", "args": ["-c", "cd ${HOME} && exec x"]}, "b": {"command": "y$Z"}}}', 1, "what a $ in it means"),
    "a variable of Gemini": (GEMINI, b'{"mcpServers": {"a": {"command": "x", "args": ["$HOME/a"]}, "b": {"command": "x", "args": ["${HOME}", "$1"]}}}', 1,
                             "what a $ in it means"),
    "where the client is": (CODE, b'{"mcpServers": {"a": {"command": "x", "args": ["${PWD}"]}, "b": {"command": "./x"}, "c": {"command": "x", "args": ["."]}, '
                            b'"d": {"command": "./x", "cwd": "/"}}}', 1, "in the folder that its client is in"),
    "a variable that is not set": (CODE, b'{"mcpServers": {"a": {"command": "x", "env": {"A": "${NOT_SET_AT_ALL}"}}}}', 0, "NOT_SET_AT_ALL"),
    "numbers": (CURSOR, b'{"mcpServers": {"a": {"command": "x", "env": {"PORT": 80}}}}', 0, "not a string"),
    "Claude Code, after a year": (CODE, b"""{
  "numStartups": 1312,
  "installMethod": "global",
  "tipsHistory": {"shift-enter": 1311, "mcpServers": 7},
  "oauthAccount": {"accountUuid": "00000000-0000-0000-0000-000000000000", "emailAddress": "a@example.com"},
  "cachedChangelog": "# 2.1\\n- \\"mcpServers\\": {\\"x\\": {\\"command\\": \\"y\\"}}\\n\\ud83d\\ude80",
  "projects": {
    "/srv/www": {
      "allowedTools": ["Bash(git status:*)"],
      "history": [{"display": "add the server {\\"command\\": \\"npx\\"}", "pastedContents": {}}],
      "mcpContextUris": [],
      "mcpServers": {
        "db": {"type": "stdio", "command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "/srv/www/a.db"], "env": {}}
      },
      "enabledMcpjsonServers": [],
      "disabledMcpjsonServers": [],
      "hasTrustDialogAccepted": true,
      "lastCost": 0.10000000000000001,
      "lastSessionId": 12345678901234567890
    },
    "/srv/empty": {"allowedTools": [], "mcpServers": {}}
  },
  "mcpServers": {
    "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"], "env": {}},
    "linear": {"type": "sse", "url": "https://mcp.example.com/sse"}
  },
  "userID": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
}
""", 2, "at a URL"),
    "Claude Desktop on Windows": (CLAUDE, rb"""{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "cmd",
      "args": ["/c", "npx", "-y", "@modelcontextprotocol/server-filesystem", "C:\\Users\\anna\\Documents", "\\\\server\\share\\Q1 \u2013 Q2"],
      "env": {"APPDATA": "C:\\Users\\anna\\AppData\\Roaming\\", "API_KEY": "s3cret"}
    },
    "git": {
      "command": "C:\\Users\\anna\\.local\\bin\\uvx.exe",
      "args": ["mcp-server-git", "--repository", "D:/work/repo"]
    }
  }
}
""".replace(b"\n", b"\r\n"), 2, ""),
    "Cursor with keys": (CURSOR, b"""{
    "mcpServers": {
        "github": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.example/github-mcp-server"],
            "env": {
                "GITHUB_PERSONAL_ACCESS_TOKEN": "s3cret"
            }
        },
        "old": {"command": "node", "args": ["/srv/old/index.js"], "disabled": true},
        "postgres": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-postgres", "postgresql://u:s3cret@localhost/db"],
        },
        // "later": {"command": "uvx"},
    },
}
""", 2, "is disabled"),
    "VS Code with inputs and more": (VSCODE, b"""{
\t// What is asked for.
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "description": "API key", "password": true },
\t],
\t"servers": {
\t\t"perplexity": { "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity"], "env": { "KEY": "${input:key}" } },
\t\t"memory": { "type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "dev": { "watch": "**/*.ts" } }, // mine
\t\t"playwright": { "command": "npx", "args": ["@playwright/mcp@latest"], "gallery": true },
\t\t"remote": { "type": "http", "url": "https://mcp.example.com/mcp" },
\t},
\t"sandbox": {},
}
""", 2, "${input:key}"),
    "Windsurf": (WINDSURF, b'{\n   "mcpServers" : {\n      "figma" : { "serverUrl" : "https://mcp.example.com/sse" },\n      "sequential" : {\n         '
                 b'"command" : "npx",\n         "args" : [ "-y" , "@modelcontextprotocol/server-sequential-thinking" ]\n      }\n   }\n}\n', 1, "at a URL"),
    "Zed with all its settings": (ZED, b"""// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16,
  "lsp": { "rust-analyzer": { "binary": { "path": "/usr/bin/rust-analyzer", "args": [] } } },
  "context_servers": {
    "postgres-context-server": { "settings": { "database_url": "postgresql://u@h/d" } },
    "files": {
      /* by hand */
      "source": "custom",
      "enabled": true,
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"], // one
      "env": {},
    },
  },
  "agent": { "always_allow_tool_actions": true },
}
""", 1, "extension"),
    "Gemini with comments": (GEMINI, b'{\n  "theme": "GitHub", // light\n  "mcpServers": {\n    "py": {\n      "command": "python3",\n      "args": ["-m", "srv"],\n'
                             b'      "cwd": "/srv/py",\n      "timeout": 15000,\n      "trust": false,\n      "includeTools": ["a"],\n    },\n    "web": '
                             b'{"httpUrl": "https://mcp.example.com/mcp"}\n  }\n}', 1, "at a URL"),
    "Codex with profiles": (CODEX, b"""model = "a-model"
model_reasoning_effort = "high"
notify = ["notify-send", "Codex"]

[model_providers.local]
name = "local"
base_url = "http://127.0.0.1:1/v1"

[profiles.fast]
model = "b"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp", "--api-key", "s3cret"]

[mcp_servers.node_repl]
command = "node"
args = ["repl.js"]
cwd = "/srv"
startup_timeout_sec = 30.0
enabled = true # keep

[mcp_servers.figma]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "FIGMA"

[projects."/srv/www"]
trust_level = "trusted"

[tui]
notifications = true
""", 2, "at a URL"),
    "a marker in UTF-16": (CURSOR, b"\xff\xfe" + PLAIN.decode().encode("utf-16-le"), 0, "not valid JSON"),
    "two byte order marks": (CURSOR, BOM + BOM + PLAIN, 0, "not valid JSON"),
    "line ends of both kinds": (CURSOR, PLAIN.replace(b"\n", b"\r\n", 4) + b"\r\n\n", 1, ""),
    "single quotes": (CURSOR, PLAIN.replace(b'"', b"'"), 0, "not valid JSON"),
    "names without quotes": (VSCODE, b'{servers: {a: {command: "x"}}}', 0, "not valid JSON"),
    "comments of scripts": (CURSOR, b"# mine\n" + PLAIN, 0, "not valid JSON"),
    "left over from a merge": (CURSOR, b"<<<<<<< HEAD\n" + PLAIN + b"=======\n{}\n>>>>>>> x\n", 0, "not valid JSON"),
    "two documents": (CURSOR, PLAIN + PLAIN, 0, "not valid JSON"),
    "an end of DOS": (CURSOR, PLAIN + b"\x1a", 0, "not valid JSON"),
    "half a file": (CODE, PLAIN[:len(PLAIN) // 2], 0, "not valid JSON"),
    "the list of another client": (CURSOR, b'{"servers": {"a": {"command": "x"}}, "mcp": {"servers": {"b": {"command": "y"}}}}', 0, "no entry"),
    "a list in the place of the list": (CURSOR, b'{"mcpServers": [{"name": "a", "command": "x"}]}', 0, ""),
    "arguments that are a text": (CURSOR, b'{"mcpServers": {"a": {"command": "x", "args": "--stdio"}, "b": {"command": "y", "env": null}}}', 1, ""),
    "two entries that are the same": (CURSOR, b'{"mcpServers": {"a": {"command": "x"}, "A": {"command": "x"}}}', 2, ""),
    "much of it": (CODE, b'{"history": [' + b",\n".join(b'{"display": "%d \\u00fc {\\"mcpServers\\": {"}' % i for i in range(20000)) +
                   b'],\n"mcpServers": {' + b",\n".join(b'"s%d": {"command": "x", "args": ["%d"]}' % (i, i) for i in range(40)) + b"}}", 40, ""),
}


class Home:
    """The home of a user with clients."""

    def __init__(self, folder):
        self.user = None
        self.folder, self.env = folder, {"HOME": folder, "PATH": os.environ["PATH"]}

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content, mode=0o600):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content)
        os.chmod(self.path(name), mode)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def adopt(self, *args, status=None, **more):
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "adopt", *args], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=8 * harness.SLOW, **as_user(self.user), **more)
        ok(done.returncode in ((0, 1) if status is None else (status,)), "status %d" % done.returncode, done.stdout, done.stderr)
        ok("Sanitizer" not in done.stderr and "runtime error" not in done.stderr, "a report of a sanitizer", done.stderr)
        return done.stdout + done.stderr

    def servers(self, end=".yaml"):
        with contextlib.suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(self.path(".config/mcpgated/conf.d")) if name.endswith(end))
        return []


@contextlib.contextmanager
def home():
    with tempfile.TemporaryDirectory(prefix="home-") as folder:
        yield Home(folder)


def as_before(h, path):
    """The file with what each moved entry was in the place of what it is: nothing else may differ."""
    text = h.read(path)
    for server in h.servers():
        record = json.loads(re.search(rb"^# adopted: (.*)$", h.read(".config/mcpgated/conf.d/" + server), re.M)[1])
        for entry in record["entries"]:
            ok(text.count(entry["is"].encode()) >= 1, "it is what is written down", entry)
            text = text.replace(entry["is"].encode(), entry["was"].encode(), 1)
    return text


def posted(part):
    def run(t):
        for name, (path, content, count, said) in list(POSTED.items())[part::3]:
            mode = 0o640 if len(name) % 2 else 0o600
            with home() as h:
                h.put(path, content, mode)
                eq((h.adopt("--dry-run").count(" would be "), h.read(path), h.servers()), (count, content, []), name)
                told = h.adopt()
                eq((told.count(" is now "), said in told), (count, True), name + told)
                eq(as_before(h, path), content, name + ": apart from the entries")
                eq((h.read(path) == content, os.stat(h.path(path)).st_mode & 0o777), (count == 0, mode), name)
                ok(b"s3cret" not in h.read(path) or not count, name + ": a secret has stayed")
                ok(mode == 0o600 or b"mcpg_" not in h.read(path), name + ": others could read the token")
                for file in h.servers():
                    eq(os.stat(h.path(".config/mcpgated/conf.d/" + file)).st_mode & 0o777, 0o600)
                ok("s3cret" not in told, name, told)
                eq(h.adopt().count(" is now "), 0, name + ", once more")
                edited = h.read(path) + b" " if count else content
                h.put(path, edited, mode)
                eq(h.adopt("--undo").count(" is as it was"), count, name)
                eq((h.read(path), os.stat(h.path(path)).st_mode & 0o777), (content + b" " if count else content, mode), name)
                eq(h.servers(), [], name)
                eq(sorted(os.listdir(os.path.dirname(h.path(path)))),
                   sorted({os.path.basename(path)} | ({".config"} if os.path.dirname(path) == "" else set())), name)
    run.__name__, run.__module__ = "files_as_people_post_them_%d" % part, __name__
    run.__doc__ = "product §2: of each file the entries that are understood are moved, and undo gives the same bytes."
    case(daemon=False, deadline=120)(run)


for number in range(3):
    posted(number)


@case(daemon=False, deadline=60)
def undo_after_edits(t):
    """product §2: what somebody has edited since is left alone and named, and its server stays; all else is put back."""
    with home() as h:
        content = b'{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"}}}'
        h.put(CURSOR, content)
        h.adopt(status=0)
        text = h.read(CURSOR).replace(b"/b/mcp", b"/b/mcp?mine").replace(b'"c":', b'"renamed":').replace(b'{"mcp', b'{"new": [1],\n "mcp')
        h.put(CURSOR, text)
        told = h.adopt("--undo", status=1)
        eq((told.count("the entry has been changed since"), told.count("the entry is not there any more"), told.count("is as it was")), (1, 1, 1), told)
        eq(h.servers(), ["b.yaml", "c.yaml"])
        ok(b'"a": {"command": "x"}, "b": {"url"' in h.read(CURSOR), h.read(CURSOR))
        ok(b"/b/mcp?mine" in h.read(CURSOR), "an edit is lost")
        with open(h.path(".config/mcpgated/conf.d/a.yaml"), "w") as file:
            file.write("# mine\n")
        eq(h.adopt("--undo", status=1).count("left alone"), 2)


@case(daemon=False, deadline=60)
def files_of_another_group(t):
    """product §2: a group that its user is not in is kept where it has rights, by leaving the file alone; where it has none, it is let go."""
    with home() as h:
        if os.geteuid() != 0:
            return
        h.user = OTHER
        for path, mode in ((CURSOR, 0o600), (GEMINI, 0o640)):
            h.put(path, PLAIN, mode)
        for folder, _, names in os.walk(h.folder):
            for name in [folder] + [os.path.join(folder, name) for name in names]:
                os.chown(name, OTHER, 0)
        for words in (["--dry-run"], []):
            told = h.adopt(*words, status=1)
            ok("settings.json is left alone: is also for a group that you are not in (number 0): chgrp it" in told, told)
        eq((h.servers(), h.servers("undone"), h.read(GEMINI)), (["files.yaml"], [], PLAIN))
        status = os.stat(h.path(CURSOR))
        eq((status.st_uid, status.st_gid, status.st_mode & 0o777), (OTHER, OTHER, 0o600))
        eq(h.adopt("--undo", status=0).count("is as it was"), 1)


@case(daemon=False, deadline=60)
def what_is_next(t):
    """product §2: the unit is named where there is one; without a folder for it there is no unix socket, which is told."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        told = h.adopt(status=0)
        ok("no unix socket is set up, as XDG_RUNTIME_DIR" in told, told)
        if not any(os.path.exists(folder + "/systemd/user/mcpgated.socket") for folder in ("/usr/lib", "/usr/local/lib", "/etc")):
            ok(re.search(r"next: (mcpgatectl reload|mcpgated -c \S+/mcpgated.yaml); then start", told), told)
            ok("systemctl" not in h.adopt("--undo", status=0), "a unit that is not there")
        h.adopt("--undo")
        h.put(".config/systemd/user/mcpgated.socket", b"")
        h.env["XDG_RUNTIME_DIR"] = h.path("run")
        os.mkdir(h.path("run"), 0o700)
        told = h.adopt(status=0)
        ok("next: systemctl --user enable --now mcpgated.socket, or by hand mcpgated -c" in told, told)
        ok("systemctl --user disable --now mcpgated.socket mcpgated.service" in h.adopt("--undo", status=0), "the unit")


@case(daemon=False, deadline=60)
def undo_of_what_a_client_has_lost(t):
    """product §2: there is nothing to put back; it is told once, its server is served to nobody, and one that comes back is put back."""
    with home() as h:
        content = b'{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}'
        h.put(CURSOR, content)
        h.put(GEMINI, b'{"mcpServers": {"g": {"command": "z"}}}')
        h.adopt(status=0)
        moved = h.read(CURSOR)
        h.put(CURSOR, b'{"mcpServers": {}}')
        os.unlink(h.path(GEMINI))
        told = h.adopt("--undo", "--dry-run", status=0)
        eq((told.count("nothing to put back: the entry is not"), told.count("nothing to put back: the file is not")), (2, 1), told)
        eq(h.servers(), ["a.yaml", "b.yaml", "g.yaml"])
        ok(h.adopt("--undo", status=0).startswith(told), "as announced")
        eq(h.servers(), [])
        eq(h.adopt("--undo", status=0).count("put back"), 0, "told again")
        h.put(CURSOR, moved)
        eq(h.adopt("--undo", status=0).count("is as it was"), 2, "one that has come back")
        eq(h.read(CURSOR), content)
        h.adopt(status=0)
        h.put(CURSOR, re.sub(rb'"a": .*"b"', b'"b"', h.read(CURSOR)).replace(b"/b/mcp", b"/b/mcp?mine"))
        told = h.adopt("--undo", status=1)
        eq((told.count("nothing to put back"), told.count("left alone"), h.servers()), (1, 1, ["b.yaml"]), told)


@case(daemon=False, deadline=60)
def undo_of_what_may_have_another_name(t):
    """product §2: as long as an entry leads to the daemon that no record knows, one that is lost may be that one, and its server stays."""
    with home() as h:
        h.put(CURSOR, b'{"mcpServers": {"a": {"command": "x"}}}')
        h.adopt(status=0)
        renamed = h.read(CURSOR).replace(b'"a":', b'"b":')
        h.put(CURSOR, renamed)
        for text in (renamed, b'{"mcpServers": {"b": '):  # and in what cannot be read
            h.put(CURSOR, text)
            ok("left alone" in h.adopt("--undo", status=1), text)
            eq(h.servers(), ["a.yaml"], text)
        h.put(CURSOR, renamed.replace(b'"b":', b'"old":'))  # of which a record says what was there once
        h.put(".config/mcpgated/conf.d/old.yaml.undone", h.read(".config/mcpgated/conf.d/a.yaml").replace(b'"name":"a"', b'"name":"old","undone":true'))
        ok("left alone" in h.adopt("--undo", status=1), "a name that was put back once")
        eq(h.servers(), ["a.yaml"])
        os.unlink(h.path(".config/mcpgated/conf.d/old.yaml.undone"))
        h.put(CURSOR, b"{}")
        os.rename(h.path(".config/mcpgated/mcpgated.yaml"), h.path("elsewhere"))
        ok("left alone" in h.adopt("--undo", status=1), "where the daemon is, is not known")
        os.rename(h.path("elsewhere"), h.path(".config/mcpgated/mcpgated.yaml"))
        ok("nothing to put back" in h.adopt("--undo", status=0), "no entry is left")


@case(daemon=False, deadline=60)
def undo_after_the_client_has_written(t):
    """product §2: a client that lays its file out anew changes nothing; what it or its user has added stays beside what is put back."""
    with home() as h:
        content = b'{"mcpServers": {"a": {"command": "x", "args": [ "1" ], /* c */ "timeout": 5}, "b": {"command": "y"}}}'
        for path in (CURSOR, CLAUDE):
            h.put(path, content)
        h.adopt(status=0)
        for path in (CURSOR, CLAUDE):
            servers = json.loads(re.sub(rb"/\*.*?\*/", b"", h.read(path)))["mcpServers"]
            servers["b"]["disabled"] = True
            h.put(path, json.dumps({"mcpServers": servers}, indent=2).encode())
        eq(h.adopt("--undo", status=0).count("is as it was"), 4)
        for path in (CURSOR, CLAUDE):
            ok(b'"a": {"command": "x", "args": [ "1" ], /* c */ "timeout": 5}' in h.read(path), h.read(path))
            eq(json.loads(h.read(path).replace(b"/* c */", b""))["mcpServers"]["b"], {"command": "y", "disabled": True})


@case(daemon=False, deadline=60)
def undone_and_written_again(t):
    """product §2: a client that is still open brings back the entry that it has read: its server is not lost, and undo puts it back again."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        known = h.read(CURSOR)
        h.adopt("--undo", status=0)
        eq((h.servers(), h.servers("undone")), ([], ["files.yaml.undone"]))
        h.put(CURSOR, known)
        eq(h.adopt("--undo", status=0).count("is as it was"), 1)
        eq((h.read(CURSOR), h.adopt("--undo", status=0).count("is as it was")), (PLAIN, 0))
        eq(h.adopt(status=0).count("is now files\n"), 1)
        eq((h.servers(), h.servers("undone")), (["files.yaml"], []))
        os.unlink(h.path(CURSOR))
        ok("the file is not there any more" in h.adopt("--undo", status=0), "what is told")
        eq((h.servers(), h.servers("undone")), ([], ["files.yaml.undone"]))


@case(daemon=False, deadline=60)
def what_people_have_written(t):
    """product §2: a token, a drop-in and a line above the record that are there stay; a record that is broken is named."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.put(".config/mcpgated/token", TOKEN.encode())
        h.adopt(status=0)
        ok(TOKEN.encode() in h.read(CURSOR), "the token that is there")
        eq(h.read(".config/mcpgated/token"), TOKEN.encode())
        server = h.read(".config/mcpgated/conf.d/files.yaml")
        h.put(".config/mcpgated/conf.d/files.yaml", b"# a licence\n" + server)
        eq(h.adopt("--undo", status=0).count("is as it was"), 1)
        ok(h.read(".config/mcpgated/conf.d/files.yaml.undone").startswith(b"# a licence\n"), "it stays")
        h.put(".config/mcpgated/conf.d/other.yaml", server.replace(b'"entries"', b'"entries'))
        ok("other.yaml is left alone" in h.adopt("--undo", status=1), "a broken record")
        os.unlink(h.path(".config/mcpgated/conf.d/other.yaml"))
        for mode, token, said in ((0o640, TOKEN, "others can read it"), (0o604, TOKEN, "others can read it"), (0o600, "other", "has none of the tokens")):
            h.put(".config/mcpgated/token", token.encode(), mode)
            ok(said in h.adopt(status=1), said)
        eq(h.read(CURSOR), PLAIN)
    with home() as h:
        h.put(CURSOR, PLAIN)
        os.makedirs(h.path(".config/mcpgated"))
        os.symlink("nothing", h.path(".config/mcpgated/mcpgated.yaml"))
        h.adopt(status=1)
        eq((os.readlink(h.path(".config/mcpgated/mcpgated.yaml")), h.read(CURSOR)), ("nothing", PLAIN))


@case(daemon=False, deadline=60)
def homes_that_are_not_ours(t):
    """product §2: with another user's home nothing is made; without an entry, no configuration; a file that is read-only stays."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        os.chown(h.folder, 65534, 65534)
        ok("belongs to another user" in h.adopt(status=1), "as root with the home of another")
        eq(sorted(os.listdir(h.folder)), [".cursor"])
        os.chown(h.folder, os.getuid(), -1)
        h.put(CURSOR, PLAIN, 0o400)
        ok("is read-only" in h.adopt(status=1), "read-only")
        eq((h.read(CURSOR), os.listdir(h.path(".config/mcpgated"))), (PLAIN, ["adopt.lock"]))
        for text in ("relative", b"/\xff"):
            h.env["HOME"] = text
            ok("must be paths that begin with /" in h.adopt(status=1), text)


@case(daemon=False, deadline=60)
def one_server_of_several_clients(t):
    """product §2: the same server of two clients is one; a different one of the same name gets another; an own file stays as it is."""
    with home() as h:
        h.put(CURSOR, b'{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time@1"]}, "A": {"command": "x"}}}')
        h.put(CLAUDE, b'{"mcpServers": {"clock": {"args": ["mcp-server-time@1"], "command": "uvx"}}}')
        h.put(WINDSURF, b'{"mcpServers": {"time": {"command": "uvx", "env": {}, "args": ["mcp-server-time@1"]}, "a": {"command": "other"}}}')
        h.adopt("claude", "--dry-run", status=0)
        told = h.adopt(status=0)
        eq(h.servers(), ["a-2.yaml", "a.yaml", "clock.yaml"], told)
        ok(b"isolation: shared" in h.read(".config/mcpgated/conf.d/clock.yaml"), "a well-known one")
        ok(b"isolation: session" in h.read(".config/mcpgated/conf.d/a.yaml"), "another")
        eq(json.loads(h.read(WINDSURF))["mcpServers"]["time"]["serverUrl"], "http://127.0.0.1:%d/clock/mcp" % port_of(h))
        eq(h.adopt("--undo", "cursor", status=0).count("is as it was"), 2)
        eq((h.servers(), h.servers("undone")), (["a-2.yaml", "clock.yaml"], ["a.yaml.undone"]))
    with home() as h:
        own = b"servers: {}\nlisten: [{address: '127.0.0.1:9'}]\n"
        h.put(".config/mcpgated/mcpgated.yaml", own)
        h.put(CURSOR, PLAIN)
        ok("lacks the line: include: [conf.d/*.yaml]" in h.adopt(), "an own file without it")
        eq((h.read(CURSOR), h.read(".config/mcpgated/mcpgated.yaml"), h.servers()), (PLAIN, own, []))
        h.put(".config/mcpgated/mcpgated.yaml", own + b"include: [conf.d/*.yaml]\n")
        h.adopt(status=0)
        eq(json.loads(h.read(CURSOR))["mcpServers"]["files"], {"url": "http://127.0.0.1:9/files/mcp"})
    with home() as h:
        ok("mcp-server-time" in h.adopt("--explain", status=0) and not os.listdir(h.folder), "explained")
        table = {row.pop("package"): row for row in json.loads(h.adopt("--explain", "--json", status=0))["packages"]}
        eq(table["mcp-server-time"], {"isolation": "shared", "why": "answers from its arguments alone"})
        h.put(CURSOR, b'{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}, "b": {"url": "https://b.example/mcp"}}}')
        rows = json.loads(h.adopt("--dry-run", "--json", status=0))["entries"]
        eq(["%(client)s %(entry)s %(result)s" % row for row in rows],
           ["cursor mcpServers.time would be time (isolation: shared)",
            "cursor mcpServers.b left alone: it is at a URL, and starts nothing here"])
        os.unlink(h.path(CURSOR))
        eq(json.loads(h.adopt("--dry-run", "--json", status=0))["entries"], [])
        ok("adopt takes claude, " in h.adopt("vi", status=2), "an unknown client")


@case(daemon=False, deadline=60)
def the_same_server_or_another(t):
    """product §2: order, and what says nothing, make no other server; each place is put back; what merely looks like an entry of ours is none."""
    with home() as h:
        files = {CURSOR: b'{"mcpServers": {"a": {"command": "x", "args": [], "env": {"B": "1", "A": "2"}}}}',
                 CLAUDE: b'{"mcpServers": {"b": {"env": {"A": "2", "B": "1"}, "command": "x"}}}',
                 CODE: b'{"mcpServers": {"c": {"command": "y", "cwd": "/tmp"}}, "projects": {"/tmp": {"mcpServers": {"c": {"command": "y"}}}}}'}
        for path, content in files.items():
            h.put(path, content)
        h.adopt(status=0)
        eq(h.servers(), ["b.yaml", "c.yaml"])
        ok(b'\n      PATH: "%s"\n' % h.env["PATH"].encode() in h.read(".config/mcpgated/conf.d/b.yaml"), "the PATH of the user's shell")
        h.adopt("--undo", status=0)
        eq({path: h.read(path) for path in files}, files)
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        h.put(CURSOR, b'{"mcpServers": {"a": {"url": "http://127.0.0.1:%d0/a/mcp"}, "b": {"command": "ssh", "args": ["connect"]}, "c": {"command": "files"}}}' % port_of(h))
        own = b"servers: {mine: {command: z}}\n"
        h.put(".config/mcpgated/conf.d/c.yaml", own)
        told = h.adopt(status=0)
        ok("mcpServers.a  left alone: it is at a URL" in told and "is served by the daemon already" not in told, "other addresses and commands", told)
        eq((h.servers(), h.read(".config/mcpgated/conf.d/c.yaml")), (["b.yaml", "c-2.yaml", "c.yaml", "files.yaml"], own), "one's own file of that name")


@case(daemon=False, deadline=60)
def servers_that_stay(t):
    """product §2: a server that somebody has changed is served on, and one whose record is spoilt keeps its file, whatever fails."""
    name = ".config/mcpgated/conf.d/files.yaml"
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        h.put(name, h.read(name).replace(b"isolation: session", b"isolation: shared"))
        ok("files.yaml has been changed since, and stays" in h.adopt("--undo", status=0), "what is told")
        eq((h.read(CURSOR), h.servers()), (PLAIN, ["files.yaml"]))
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        h.put(name, re.sub(rb'"entries":.*\]}', b'"entries":[]}', h.read(name)))
        own = h.read(".config/mcpgated/mcpgated.yaml")
        h.put(".config/mcpgated/mcpgated.yaml", own.replace(b"include:", b"#include:"))
        h.put(CLAUDE, PLAIN)
        h.adopt("claude", status=1)
        eq((h.read(CLAUDE), h.servers() + h.servers("undone")), (PLAIN, ["files.yaml.undone"]), "the only place that still has the command")


@case(daemon=False, deadline=60)
def folders_for_the_socket(t):
    """product §2: the unix socket is only where nobody else comes in, and where its name can be written."""
    for folder, mode, is_good in (("run", 0o700, True), ("run", 0o755, False), ("it's", 0o700, False)):
        with home() as h:
            h.env["XDG_RUNTIME_DIR"] = h.path(folder)
            os.mkdir(h.path(folder))
            os.chmod(h.path(folder), mode)
            h.put(CURSOR, PLAIN)
            h.adopt(status=0)
            eq(b"unix:" in h.read(".config/mcpgated/mcpgated.yaml"), is_good, folder + oct(mode))


# What an entry of a server of the name a was, and what it is then; T stands for the address and the token.
BECOMES = {
    "its own members stay": (CURSOR, b'{"mcpServers": {"a": {"timeout": 5, "command": "x", "autoApprove": [\n"u"], "args": []}}}',
                             b'{"mcpServers": {"a": {\nT,\n"timeout": 5,\n"autoApprove": [\n"u"]\n}}}'),
    "lines as they were": (CURSOR, b'{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "x", // c\r\n\t\t\t"trust": true,\r\n\t\t}, // d\r\n\t}\r\n}',
                           b'{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\tT,\r\n\t\t\t"trust": true\r\n\t\t}, // d\r\n\t}\r\n}'),
    "on one line": (CURSOR, b'/*1*/{"mcpServers":{"a":{"command":"x","trust":/*2*/true}/*3*/}}',
                    b'/*1*/{"mcpServers":{"a":{T, "trust":/*2*/true}/*3*/}}'),
    "between others": (CURSOR, b'{"x": 1, "mcpServers": {"z": {"url": "https://z"}, "a": {"command": "x"}, "y": 7}, "w": [ ]}',
                       b'{"x": 1, "mcpServers": {"z": {"url": "https://z"}, "a": {T}, "y": 7}, "w": [ ]}'),
}


@case(daemon=False, deadline=60)
def what_an_entry_becomes(t):
    """product §2: only what says how the server is reached is new; the client's own members, and all around the entry, stay as written."""
    for name, (path, before, after) in BECOMES.items():
        with home() as h:
            h.put(path, before)
            h.adopt(status=0)
            token = h.read(".config/mcpgated/token").strip()
            said = h.read(path)
            members = re.search(rb'"url": "http://127.0.0.1:%d/a/mcp",(\s+)"headers": \{"Authorization": "Bearer %s"\}' % (port_of(h), token), said)
            ok(members, name, said)
            eq(said.replace(members.group(0), b"T"), after, name)


def port_of(h):
    return int(re.search(rb"127.0.0.1:(\d+)", h.read(".config/mcpgated/mcpgated.yaml")).group(1))


# An entry of Codex, of a server of the name a, and what it is then; A and B stand for the address and the token.
CODEX_BECOMES = [
    (b'# 1\r\n[mcp_servers.a] # 2\r\n  command = "x" # 3\r\n  tool_timeout_sec = 9 # 4\r\n  # 5\r\n  args = []\r\n\r\n  [mcp_servers.a.tools.t] # 6\r\n  k = 1 # 7\r\n# 8\r\n',
     b'# 1\r\n[mcp_servers.a] # 2\r\n  A\r\n  B # 3\r\n  tool_timeout_sec = 9\r\n\r\n  [mcp_servers.a.tools.t] # 6\r\n  k = 1 # 7\r\n# 8\r\n'),
    (b'[mcp_servers]\nz.url = "z"\n  a.enabled = true # 1\n  a.command = "x"\n# 2\n[tui]\n',
     b'[mcp_servers]\nz.url = "z"\n  a.A\n  a.B\n  a.enabled = true\n# 2\n[tui]\n'),
    # What stands at two places is left alone: the tools would be lost.
    (b'[mcp_servers]\na.command = "x"\n[mcp_servers.a.tools.t]\nk = 1\n', None),
    (b'[mcp_servers]\na.command = "x"\nb.url = "http://127.0.0.1:1/"\na.args = ["1"]\n', None),
    (b'[mcp_servers.a]\ncommand = "x"\n[tui]\nk = 1\n[mcp_servers.a.env]\nK = "v"\n', None),
    (b'mcp_servers = {a = {command = "x", "enabled" = true, env = {}}} # 1\n', b'mcp_servers = {a = {A, B, "enabled" = true}} # 1\n'),
]


def put_codex(h, before):
    h.put(CODEX, before)
    h.adopt("codex", status=0)
    return h.read(CODEX)


@case(daemon=False, deadline=60)
def entries_of_codex(t):
    """product §2: an entry of TOML leads to the daemon with Codex' own members; undo puts it back, also after edits of all that is not ours."""
    for before, after in CODEX_BECOMES:
        with home() as h:
            if after is None:
                h.put(CODEX, before)
                ok("left alone" in h.adopt("codex", status=0) and h.read(CODEX) == before, "said in several places")
                continue
            said = put_codex(h, before)
            token = h.read(".config/mcpgated/token").strip()
            address = b'url = "http://127.0.0.1:%d/a/mcp"' % port_of(h)
            eq(said.replace(address, b"A").replace(b'http_headers = {"Authorization" = "Bearer %s"}' % token, b"B"), after)
            h.put(CODEX, b"model = 'm'\n" + said + b"[new]\n", 0o600)
            h.adopt("--undo", status=0)
            eq(h.read(CODEX), b"model = 'm'\n" + before + b"[new]\n", "edits elsewhere")
    before = b'[mcp_servers.a]\ncommand = "x"\nenv = { K = "\\u007f:\\U0001F600" }\n'
    put_back = b'[mcp_servers.a]\ncommand = "x"\nenv = {"K" = "\\u007f:\xf0\x9f\x98\x80"}'
    for edit, then in (
        (lambda said: said.replace(b"http_headers", b"\n # more space\n  http_headers"), before),
        (lambda said: said + b"tool_timeout_sec = 9 # mine\n", put_back + b"\ntool_timeout_sec = 9 # mine\n"),
        (lambda said: b"[mcp_servers]\n" + re.sub(rb'\[mcp_servers.a\]\n(url.*)\n(http.*)\n', rb"a.\1\na.\2\n", said),
         b'[mcp_servers]\na.command = "x"\na.env = {"K" = "\\u007f:\xf0\x9f\x98\x80"}\n'),
        (lambda said: b"[mcp_servers]\n" + re.sub(rb'\[mcp_servers.a\]\n(url.*)\n(http.*)\n', rb"a = { \2, \1 }\n", said),
         b'[mcp_servers]\na = {command = "x", env = {"K" = "\\u007f:\xf0\x9f\x98\x80"}}\n'),
        (lambda said: said.replace(b"/a/mcp", b"/a/mcp?mine"), None),
        (lambda said: said.replace(b"http_headers = ", b"[tui]\n[mcp_servers.a.http_headers]\nX = "), None),
        (lambda said: said + b"[", None),
        (lambda said: said + b"[tui]\ntheme = 'x'\n[mcp_servers.a.tools.t]\nk = 1\n", None),
    ):
        with home() as h:
            edited = edit(put_codex(h, before))
            h.put(CODEX, edited)
            told = h.adopt("--undo", status=1 if then is None else 0)
            eq(h.read(CODEX), then if then is not None else edited, told)
            eq(h.servers(), ["a.yaml"] if then is None else [], told)
    with home() as h:
        h.put(CURSOR, b'{"mcpServers": {"b": {"command": "x", "args": ["1"]}}}')
        put_codex(h, b'[mcp_servers.a]\nargs = [\'1\']\ncommand = "x"\n')
        h.adopt(status=0)
        eq(h.servers(), ["a.yaml"], "one server of two clients")
        h.put(CODEX, b'[mcp_servers.a]\ncommand = "y"\n', 0o644)
        h.adopt("codex", status=0)
        ok(b'", args = ["connect", "a-2"]' in h.read(CODEX).replace(b"\n", b", "), "a file that others can read", h.read(CODEX))


@case(daemon=False, deadline=60)
def odd_surroundings(t):
    """product §2: a home whose name looks like a pattern; what a killed run has left is named; undo tells before what it will do; a
    configuration that is the user's own has no unit."""
    with home() as h:
        h.env["XDG_RUNTIME_DIR"] = h.path("run")
        h.folder = h.env["HOME"] = h.path("h[a]*?\\")
        h.put(CURSOR, PLAIN)
        h.put(CURSOR + ".mcpgated-aB3xY9", b"s3cret")
        told = h.adopt(status=0)
        ok(h.path(CURSOR) + ".mcpgated-aB3xY9 is left of a run" in told and "next: mcpgat" in told, told)
        ok(b'cwd: "%s"' % h.folder.replace("\\", "\\\\").encode() in h.read(".config/mcpgated/conf.d/files.yaml"), "where it starts")
        ok("would be put back" in h.adopt("--undo", "--dry-run", status=0), "not changed")
        text = h.read(CURSOR).replace(b"/files/mcp", b"/files/mcp?mine")
        h.put(CURSOR, text)
        ok("the entry has been changed since" in h.adopt("--undo", "--dry-run", status=1), "changed")
        eq((h.read(CURSOR), h.servers()), (text, ["files.yaml"]))
    with home() as h:
        h.env["XDG_RUNTIME_DIR"] = h.path("run")
        h.put(".config/mcpgated/mcpgated.yaml", b"servers: {}\nlisten: [{address: '127.0.0.1:9'}]\ninclude: [conf.d/*.yaml]\n")
        h.put(".config/systemd/user/mcpgated.socket", b"")
        h.put(GEMINI, b'{"mcp": {"servers": {"a": {"command": "x"}}}, "mcpServers": {"b": {"command": "y"}}}')
        told = h.adopt(status=0)
        ok("mcpgated.socket" not in told and "start the daemon that has " + h.path(".config/mcpgated/mcpgated.yaml") in told, told)
        eq(h.servers(), ["b.yaml"], "a list that its client does not read")


@case(daemon=False, deadline=60)
def files_that_are_not_ours(t):
    """product §2: links are followed and stay; a file with a second name, and a folder, are left alone."""
    with home() as h:
        h.put("dotfiles/cursor.json", PLAIN)
        os.mkdir(h.path(".cursor"))
        os.symlink("../dotfiles/cursor.json", h.path(CURSOR))
        h.adopt(status=0)
        ok(os.path.islink(h.path(CURSOR)) and h.read("dotfiles/cursor.json") != PLAIN, "a link")
        h.adopt("--undo", status=0)
        ok(os.path.islink(h.path(CURSOR)) and h.read("dotfiles/cursor.json") == PLAIN, "a link, put back")
        h.adopt(status=0)
        known = h.read(CURSOR)
        os.unlink(h.path(CURSOR))
        h.put(CURSOR, known)
        h.adopt("--undo", status=0)
        eq(h.read(CURSOR), PLAIN, "the file that the client reads, which was a link")
        os.unlink(h.path(CURSOR))
        h.put("dotfiles/cursor.json", PLAIN)
        os.symlink("../dotfiles/cursor.json", h.path(CURSOR))
        os.link(h.path("dotfiles/cursor.json"), h.path("second"))
        ok("has a second name" in h.adopt(status=1), "a hard link")
        os.unlink(h.path("second"))
        os.makedirs(h.path(CLAUDE))
        ok("is not a plain file" in h.adopt("claude", status=1), "a folder")


def limited(limit):
    """Each write beyond that place in a file ends the program, or fails where the signal is ignored."""
    def limit_it():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return limit_it


# The command, a limit, how long the client's file and the server's are, and the file that cannot be written.
WRITES = [((), 0, 0, 0, ".config/mcpgated/token"), ((), 128, 0, 0, ".config/mcpgated/mcpgated.yaml"),
          ((), 2000, 0, 4000, ".config/mcpgated/conf.d/files.yaml"), ((), 6000, 8000, 0, CURSOR),
          (("--undo",), 0, 0, 0, CURSOR), (("--undo",), 2000, 0, 4000, ".config/mcpgated/conf.d/files.yaml")]


@case(daemon=False, deadline=90)
def ended_or_failed_at_each_write(t):
    """product §2: whichever write a run is killed at, or fails at, the next one does what it should; what is left beside a file is named."""
    for is_killed in (True, False):
        for args, limit, more, most, name in WRITES:
            for then in ((), ("--undo",)):
                with home() as h:
                    what = str((is_killed, args, name, then))
                    content = PLAIN + b" " * more
                    h.put(CURSOR, content)
                    h.env["PATH"] = "/bin:/" + "x" * most
                    if args:
                        h.adopt(status=0)
                    told = h.adopt(*args, status=-signal.SIGXFSZ if is_killed else 1, restore_signals=is_killed, preexec_fn=limited(limit))
                    left = [os.path.join(folder, file) for folder, _, files in os.walk(h.folder) for file in files if ".mcpgated-" in file]
                    eq([re.sub(r"\.mcpgated-.{6}$", "", path) for path in left], [h.path(name)] if is_killed else [], what)
                    ok(is_killed or h.path(name) in told or "cursor" in told, what, told)
                    told = h.adopt(*then, status=0)
                    ok(not left or left[0] + " is left of a run" in told, what, told)
                    if not then:
                        ok(b"/files/mcp" in h.read(CURSOR), what, told)
                    h.adopt("--undo", status=0)
                    eq((h.read(CURSOR), h.servers()), (content, []), what)


@case(daemon=False, deadline=60)
def ended_before_a_new_name(t):
    """product §2: a run that was killed has put all back, but its server is still served: the next undo takes it away."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        h.adopt("--undo", status=0)
        folder = h.path(".config/mcpgated/conf.d/")
        os.rename(folder + "files.yaml.undone", folder + "files.yaml")
        h.adopt("--undo", "--dry-run", status=0)
        eq(h.servers(), ["files.yaml"])
        h.adopt("--undo", status=0)
        eq((h.servers(), h.servers("undone")), ([], ["files.yaml.undone"]))


@case(daemon=False, deadline=60)
def records_that_cannot_be_used(t):
    """product §2: what undo cannot read is named, with the reason; so is an entry that leads to the daemon without a record; nothing goes."""
    name = ".config/mcpgated/conf.d/files.yaml"
    stays = "cursor  mcpServers.files  stays: it leads to the daemon, and nothing that can be read in conf.d says what it was"

    def link(h):
        os.link(h.path(name), h.path("second"))
        return "files.yaml is left alone: has a second name"

    def give_away(h):
        os.chown(h.path(name), 65534, -1)
        return "files.yaml is left alone: belongs to another user"

    def take_away(h):
        os.rename(h.path(name), h.path("away"))
        return stays

    def shorten(h):
        h.put(name, b"".join(line for line in h.read(name).splitlines(True) if not line.startswith(b"# adopted")))
        return stays

    def change(has, **members):
        def change_it(h):
            text = h.read(name)
            record = json.loads(re.search(rb"^# adopted: (.*)$", text, re.M)[1])
            record["entries"][0].update(members)
            h.put(name, re.sub(rb"(?m)^# adopted: .*$", lambda _: b"# adopted: " + json.dumps(record).encode(), text))
            return "left alone: its record is broken; %s %s what it was" % (h.path(name), has)
        return change_it

    def a_file(h):
        os.rename(h.path(".config/mcpgated/conf.d"), h.path("away"))
        h.put(".config/mcpgated/conf.d", b"")
        return "/conf.d cannot be read: Not a directory"

    for spoil in (link, give_away, take_away, shorten, change("lacks", was=5), change("lacks", was=""), change("has", **{"is": 7}),
                  change("has", was="} evil"), change("has", was="{}, "), a_file):
        if spoil is give_away and os.getuid() != 0:
            continue
        with home() as h:
            h.put(CURSOR, PLAIN)
            h.adopt(status=0)
            before, said = h.read(CURSOR), spoil(h)
            told = h.adopt("--undo", status=0 if spoil in (take_away, shorten) else 1)
            ok(said in told, said, told)
            eq((h.read(CURSOR), "as it was" in told), (before, False), said)
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        ok("stays" not in h.adopt("--undo", "--dry-run", status=0), "it has a record")
        text = re.sub(rb'"entries":.*\]}', b'"entries":[]}', h.read(name))
        h.put(name, text)
        h.adopt("--undo", status=0)
        eq(h.read(name), text, "the only place that still has the command")


@case(daemon=False, deadline=60)
def refusals_are_clear(t):
    """product §2: what cannot be done says which file, and why; an entry that could not be served makes the status 1."""
    with home() as h:
        h.put(CURSOR, b'{"mcpServers": {"files": {"command": "x"}}, "pad": "%s"}' % (b"p" * ((16 << 20) - 64)))
        text = h.read(CURSOR)
        ok("mcp.json is left alone: would be larger than 16 MiB" in h.adopt(status=1), "a file that would be too large to be read again")
        eq((h.read(CURSOR) == text, h.servers()), (True, []))
        h.put(CURSOR, b'{"mcpServers": {"files": {"command": "x", "args": ["%s"]}}}' % (b"p" * (1 << 20)))
        ok("files-2.yaml: is larger than 1024 KiB" in h.adopt(status=1), "a server that is too large")
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.put(".config/mcpgated/none", b"")
        os.symlink("/none/at/all", h.path(".config/mcpgated/conf.d"))
        ok(h.path(".config/mcpgated/conf.d/files.yaml") + ": cannot write a file beside it: No such file" in h.adopt(status=1), "a link to nothing")
        eq(h.read(CURSOR), PLAIN)
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.adopt(status=0)
        name = ".config/mcpgated/conf.d/files.yaml"
        h.put(name, h.read(name).replace(b"  files:\n", b"  docs:\n"))
        h.put(CLAUDE, PLAIN)
        ok(h.path(name) + " the server files" in h.adopt(status=1), "a server that somebody has called otherwise")
        eq(h.read(CLAUDE), PLAIN)
    with home() as h:
        h.user = OTHER
        os.mkdir(h.path(".config"), 0o500)
        for path in (h.folder, h.path(".config")):
            os.chown(path, OTHER or -1, -1)
        ok(h.path(".config/mcpgated") + " cannot be made: Permission denied" in h.adopt(status=1), "a folder that is read-only")


@case(daemon=False, deadline=30)
def another_port_from_before(t):
    """product §2: the drop-in of an adopt that was killed, for a port that is free again, is made true."""
    name = ".config/systemd/user/mcpgated.socket.d/adopt.conf"
    for made, status in ((b"# Made by mcpgatectl adopt\n", 0), (b"# mine\n", 1)):
        with home() as h:
            h.put(CURSOR, PLAIN)
            h.put(name, made + b"[Socket]\nListenStream=\nListenStream=127.0.0.1:1\n")
            before = h.read(name)
            told = h.adopt(status=status)
            if status == 0:
                ok(b"127.0.0.1:%d\n" % port_of(h) in h.read(name) and b":1\n" not in h.read(name), "the drop-in", h.read(name))
            else:
                eq((h.read(name), h.read(CURSOR), "adopt.conf is there already" in told), (before, PLAIN, True), told)


# What a client writes that another has not: as it was, CRLF, a mark, TOML.
WRITTEN = {"plain": (CURSOR, PLAIN), "CRLF": (VSCODE, PLAIN.replace(b"mcpServers", b"servers").replace(b"\n", b"\r\n")),
           "a byte order mark": (WINDSURF, BOM + PLAIN), "comments": (ZED, b"// mine\n" + PLAIN.replace(b"mcpServers", b"context_servers")),
           "Codex": (CODEX, TOML)}


@case(daemon=False, deadline=120)
def another_program_writes_in_place(t):
    """product §2: a client that opens its file, empties it and writes it anew, as most do, loses nothing to adopt, and adopt nothing to it."""
    for name, (path, before) in WRITTEN.items():
        with home() as h:
            h.put(path, before)
            stop, count = threading.Event(), [0]

            def write():
                while not stop.is_set():
                    text = re.sub(rb"\n?# count: \d+\n$|\n?// count: \d+\n$", b"", h.read(path))
                    if text.endswith((b"}", b"}\n", b"}\r\n", b'"dark"\n', b"]\n")):
                        count[0] += 1
                        with open(h.path(path), "wb") as file:
                            file.write(text + b"\n%s count: %d\n" % (b"#" if path == CODEX else b"//", count[0]))
                    stop.wait(0.002)

            thread = threading.Thread(target=write)
            thread.start()
            for _ in range(4):
                h.adopt()
                h.adopt("--undo")
            stop.set()
            thread.join()
            h.adopt("--undo")
            text = h.read(path)
            mark = b"\n%s count: %d\n" % (b"#" if path == CODEX else b"//", count[0])
            beside = [at for at in os.listdir(os.path.dirname(h.path(path))) if "mcpgated" in at]  # named in a message, and very rare
            ok(text == before + mark or beside, name + ": its last write counts", text, count)
            ok(count[0] > 3, "it has written", count)


@case(daemon=False, deadline=60)
def another_program_writes_meanwhile(t):
    """product §2: a client that writes its file all the time loses nothing to adopt, and adopt nothing to it."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        stop, kept = threading.Event(), []

        def write():
            while not stop.is_set():
                text = h.read(CURSOR)
                count = int((re.search(rb'^\{"count": (\d+),', text) or [0, 0])[1]) + 1
                with open(h.path(CURSOR + ".new"), "wb") as file:
                    file.write(b'{"count": %d,' % count + re.sub(rb'^\{("count": \d+,)?', b"", text))
                os.chmod(h.path(CURSOR + ".new"), 0o600)
                if h.read(CURSOR) == text:  # as careful as a client can be
                    os.rename(h.path(CURSOR + ".new"), h.path(CURSOR))
                    kept.append(count)
                stop.wait(0.002)

        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(6):
            h.adopt()
            h.adopt("--undo")
        stop.set()
        thread.join()
        h.adopt("--undo")
        text = h.read(CURSOR)
        beside = [name for name in os.listdir(h.path(".cursor")) if "mcpgated" in name]  # named in a message, and very rare
        eq(text, PLAIN.replace(b"{", b'{"count": %d,' % (len(kept) - len(beside)), 1), "each of its writes has counted")
        ok(len(kept) > 3, "it has written", kept)


@case(daemon=False, deadline=60)
def two_at_once(t):
    """product §2: only one adopt at a time; a second one waits for it, or says who it is, and has done nothing."""
    with home() as h:
        h.put(CURSOR, PLAIN)
        h.put(".config/mcpgated/adopt.lock", b"")
        with open(h.path(".config/mcpgated/adopt.lock"), "r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            for args in ((), ("--undo",)):
                ok("another program is at it, process %d:" % os.getpid() in h.adopt(*args, status=1), args)
            eq((h.read(CURSOR), os.listdir(h.path(".config/mcpgated"))), (PLAIN, ["adopt.lock"]))
            eq(h.adopt("--dry-run", status=0).count(" would be "), 1)
        files = {path: b'{"mcpServers": {"a": {"command": "%d"}, "b": {"command": "b"}}}' % len(path) for path in (CURSOR, CLAUDE, WINDSURF)}
        for path, content in files.items():
            h.put(path, content)
        for pair in (((), ()), (("cursor",), ("windsurf",)), ((), ("--undo",)), ((), ()), (("claude",), ("cursor",)), (("--undo",), ())):
            threads = [threading.Thread(target=h.adopt, args=args) for args in pair]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            h.adopt("--undo", status=0)
            eq(({path: h.read(path) for path in files}, h.servers()), (files, []), pair)


@case(daemon=False, deadline=60)
def adopted_and_called(t):
    """product §2: the daemon of the adopted configuration answers the entry that was written, by its URL and by connect."""
    with home() as h:
        argv = harness.child_argv({}, "files")
        entry = {"command": argv[0], "args": argv[1:], "env": {"API_KEY": "s3cret"}}
        h.put(CURSOR, json.dumps({"mcpServers": {"files": entry}}, indent=2).encode())
        h.put(CLAUDE, json.dumps({"mcpServers": {"files": entry}}, indent=2).encode())
        h.adopt(status=0)
        t.start(args=["-c", h.path(".config/mcpgated/mcpgated.yaml")], env=dict(h.env, XDG_RUNTIME_DIR=h.folder))
        there = json.loads(h.read(CURSOR))["mcpServers"]["files"]
        place = urlsplit(there["url"])
        for header, status in ((there["headers"]["Authorization"], 200), ("Bearer other", 401)):
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=5 * harness.SLOW)
            connection.request("POST", place.path, mcp.encode(mcp.initialize()),
                               {"Content-Type": "application/json", "Accept": mcp.BOTH, "Authorization": header})
            eq(connection.getresponse().status, status)
            connection.close()
        for field in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=5 * harness.SLOW)
            connection.request("POST", place.path, mcp.encode(mcp.initialize()),
                               dict(field, **{"Content-Type": "application/json", "Accept": mcp.BOTH, "Authorization": there["headers"]["Authorization"]}))
            eq(connection.getresponse().status, 403, field)
            connection.close()
        there = json.loads(h.read(CLAUDE))["mcpServers"]["files"]
        with connected(there["command"], *there["args"], env=h.env) as c:
            c.greet()
            c.do(["text", "called"])
            eq(c.read()["result"]["content"][0]["text"], "called")
            c.end()
        h.put(WINDSURF, PLAIN)
        h.env["XDG_RUNTIME_DIR"] = h.folder
        ok("next: mcpgatectl reload;" in h.adopt(status=0), "a daemon that runs")
        told = h.adopt("--undo", status=0)
        ok("next: mcpgatectl reload" in told and "if no client needs the daemon any more: " in told, told)
        subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "reload"], env=dict(h.env, XDG_RUNTIME_DIR=h.folder), check=True, timeout=20 * harness.SLOW)


@contextlib.contextmanager
def listening(family, address):
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(8)
        yield listener


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5 * harness.SLOW)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def can_connect(user, path):
    """Whether another user comes in by that socket."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        try:
            socket.socket(socket.AF_UNIX).connect(path)
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0


@case(daemon=False, deadline=60)
def by_a_unix_socket(t):
    """product §2: connect takes the daemon's unix socket, where nobody else can be in its place or come in, and tells the token nobody else."""
    with home() as h:
        h.user, h.env["XDG_RUNTIME_DIR"] = OTHER, h.path("run")
        place = h.path("run/mcpgated.sock")
        h.put(CLAUDE, json.dumps({"mcpServers": {"demo": {"command": os.path.join(harness.BIN, "mcpgated-demo")}}}).encode())
        os.mkdir(h.path("run"), 0o700)
        for folder, _, names in os.walk(h.folder):
            for path in [folder, *[os.path.join(folder, name) for name in names]]:
                os.chown(path, OTHER or -1, OTHER or -1)
        h.adopt(status=0)
        ok(b"address: 'unix:%s'" % place.encode() in h.read(".config/mcpgated/mcpgated.yaml"), h.read(".config/mcpgated/mcpgated.yaml"))
        there = json.loads(h.read(CLAUDE))["mcpServers"]["demo"]
        with listening(socket.AF_INET, ("127.0.0.1", port_of(h))) as other, listening(socket.AF_INET, ("127.0.0.1", 0)) as net, \
                listening(socket.AF_UNIX, place) as local:
            other.setblocking(False)
            os.chmod(place, 0o600)  # SocketMode=0600
            os.chown(place, OTHER or -1, -1)
            local.shutdown(socket.SHUT_RD)  # the daemon is away
            with connected(there["command"], *there["args"], env=h.env, user=OTHER) as c:
                c.say(mcp.initialize(mcp.D))
                c.process.wait(20 * harness.SLOW)
                ok("cannot be reached" in c.end(1)[1], "without a daemon")
            os.unlink(place)
            with listening(socket.AF_UNIX, place) as local:
                os.chmod(place, 0o600)
                os.chown(place, OTHER or -1, -1)
                passed = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD_CLOEXEC, 64) for s in (net, local)]
                move = 'exec 3<&%d 4<&%d; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=user:user; exec "$@"' % tuple(passed)
                user = ["setpriv", "--reuid=%d" % OTHER, "--regid=%d" % OTHER, "--clear-groups"] if OTHER else []
                t.start(args=["--listen", "systemd:user", "--listen", "systemd:user", "--plaintext",
                              "-c", h.path(".config/mcpgated/mcpgated.yaml")],
                        env=h.env, prefix=[*user, "bash", "-c", move, "bash"], keeps=passed)
                for fd in passed:
                    os.close(fd)
                with connected(there["command"], *there["args"], env=h.env, user=OTHER) as c:
                    eq(c.greet()["result"]["serverInfo"]["name"], "mcpgated-demo")
                    with open("/proc/%d/cmdline" % c.process.pid) as file:
                        ok("mcpg_" not in file.read(), "everybody can see the token")
                    c.end()
                for head, status in (({"Host": "evil.example"}, 403), ({"Origin": "https://evil.example"}, 403), ({}, 401)):
                    connection = Local(place)
                    connection.request("POST", "/demo/mcp", mcp.encode(mcp.initialize()),
                                       dict({"Content-Type": "application/json", "Accept": mcp.BOTH}, **head))
                    eq(connection.getresponse().status, status, head)
                    connection.close()
                ok("client=local" in t.daemon.wait_log("caller_refused")[0], "who it is in the log")
                for path in (h.folder, h.path("run")):
                    os.chmod(path, 0o755)
                ok(not OTHER or (can_connect(OTHER, place) and not can_connect(OTHER - 1, place)), "another user comes in")
            try:
                other.accept()
                ok(False, "who has the port was told something")
            except BlockingIOError:
                pass
