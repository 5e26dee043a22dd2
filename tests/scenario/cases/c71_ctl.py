# SPDX-License-Identifier: Apache-2.0
"""mcpgatectl, every command, from outside. mcpgatectl(1)."""
import fcntl
import hashlib
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading

import harness
import mcp
from harness import Skip, case, child_argv, eq, is_alive, merged, ok, to_yaml, wait_for

HOSTILE = "red\x1b[31m\x07 \x9b2J \u202egnp.exe\u200b end \u2066\u034f\u3164\ufe0f\U000e0041\U000e0100"
TOOLS = [{"name": "x\x1b]0;t\x07y", "description": "first " + HOSTILE + "\nsecond", "inputSchema": {"type": "object"}},
         {"name": "plain.name", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}]
LISTS = [["result", {"tools": TOOLS}]]
SERVERS = {"main": {}, "demo": {"command": os.path.join(harness.BIN or "", "mcpgated-demo")},
           "hostile": {"on": {"tools/list": LISTS,
                              "tools/call": [["result", {"content": [{"type": "text", "text": "a\n" + HOSTILE},
                                                                     {"type": "image", "mimeType": "i\x1bx", "data": "AAAA"}]}]]}},
           "broken": {"command": "/nonexistent/command"}}
# No control but the line end, no C1 control, nothing that is invisible or turns the direction.
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
                 r"\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]")


def ctl(t, *args, status=0, socket=None, daemon=None, clean=True):
    """Runs it; returns (stdout, stderr) as text."""
    argv = [os.path.join(harness.BIN, "mcpgatectl")] + list(args)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20 * harness.SLOW,
                          env=dict(os.environ, MCPGATED_SOCKET=socket or (daemon or t.daemon).admin))
    out, err = done.stdout.decode(), done.stderr.decode()
    eq(done.returncode, status, "exit status of %r; it said %r %r" % (args, out[-300:], err[-300:]))
    for text in (out, err) if clean else ():
        found = RAW.search(text)
        ok(not found, "raw %r in" % (found and found.group()), text[:400])
    return out, err


def rows(text):
    """Lines of a table as lists of cells, by the places of its titles; right-aligned columns end there."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


@case(own=True)
def tables(t):
    """product §2: status, servers, processes, sessions and streams as aligned tables; --json unchanged."""
    for command in ("servers", "processes", "sessions", "streams"):
        out, err = ctl(t, command)
        eq(err, "")
        ok(out.count("\n") == (5 if command == "servers" else 1), "lines of " + command, out)
    s = t.session()
    s.echo("x")
    s.get()
    pid = str(t.daemon.children("main")[0])
    out, _ = ctl(t, "status")
    ok(re.match(r"mcpgated \S+: serving for \d+s, (1 connection|\d+ connections), 1 of \d+ sessions, 1 process, 0 calls in flight\n\n", out), "first line", out)
    row = [r for r in rows(out) if r[0] == "main"][0]
    eq(row[:7], ["main", "ready", "session", "legacy", "found", "1", "1"])
    ok(re.fullmatch(r"<\d+ms", row[-1]), "p99", row)
    out, _ = ctl(t, "processes")
    row = rows(out)[1]
    eq((row[0], row[1], row[2], row[4]), (pid, "main", "ready", "0"))
    eq(row[7:], [s.id[:8], "no", "-", "-", "-"], "its session, and nobody in particular")
    out, _ = ctl(t, "servers")
    eq(len({len(l) for l in out.splitlines() if "failing:" not in l}), 1, "all lines are of one length: the last column is a number")
    out, _ = ctl(t, "sessions")
    row = rows(out)[1]
    eq((row[0], row[1], row[2], row[8], row[9]), (s.id[:8], "main", s.version, "yes", pid))
    eq(row[10:], ["-", "-", "-", "scenario", "127.0.0.1"], "nobody in particular, by a program, from here")
    ok(s.id not in out, "the id is not shown")
    out, _ = ctl(t, "streams")
    eq(rows(out)[1][:5], [s.id[:8], "main", "0", "session", "yes"])
    for command in ("status", "servers", "processes", "sessions", "streams"):
        out, err = ctl(t, command, "--json")
        conn = t.conn(address=t.daemon.admin)
        there = json.loads(conn.request("GET", "/" + command).read())
        eq(sorted(json.loads(out)), sorted(there), "members of " + command)


def on_terminal(columns, argv):
    """What it writes on a terminal of this width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.DEVNULL)
    os.close(its)
    out = b""
    try:
        while data := os.read(ours, 4096):
            out += data
    except OSError:
        pass  # it has closed it
    os.close(ours)
    eq(p.wait(20 * harness.SLOW), 0)
    return out.decode().replace("\r\n", "\n")


@case(own=True)
def tables_on_a_terminal(t):
    """product §2: on a terminal no line is wider than it: texts are broken, columns that are missed least are left out, and named."""
    t.session().echo("x")
    ctl(t, "call", "broken", "x", status=1)
    ctl_argv = [os.path.join(harness.BIN, "mcpgatectl"), "-s", t.daemon.admin]
    for command in ("status", "servers", "processes", "sessions", "streams"):
        for columns in (80, 400):
            out = on_terminal(columns, ctl_argv + [command])
            ok(max(map(len, out.splitlines())) <= columns, "%s in %d columns" % (command, columns), out)
            eq("no room for" in out, columns == 80 and command in ("status", "servers", "processes", "sessions"), out)
    for columns in (80, 400):
        out = re.sub(r"\x1b\[\??[0-9]*[A-Za-z]", "", on_terminal(columns, ctl_argv + ["top", "--once"]))
        ok(max(map(len, out.splitlines())) <= columns, "top in %d columns" % columns, out)
        eq(("(no room for: P50" in out, " P50 " in out), (columns == 80, columns == 400), out)
    narrow, wide = (" ".join(on_terminal(columns, ctl_argv + ["status"]).split()) for columns in (80, 400))
    ok("SERVER STATE PROCESSES SESSIONS" in narrow and "ERA FROM" in narrow.split("no room for: ")[1], "what is left", narrow)
    ok("SERVER STATE ISOLATION ERA ERA FROM PROCESSES" in wide, "all", wide)
    ok("child_spawn_failed in the log says more" in narrow, "texts are whole", narrow)


@case(own=True)
def socket_of_the_environment(t):
    """product §2: MCPGATED_SOCKET names the daemon's socket; --socket goes before it."""
    def told(socket, *args):
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), *args], capture_output=True, text=True,
                              env=dict(os.environ, MCPGATED_SOCKET=socket), timeout=20 * harness.SLOW)
        return done.returncode, done.stdout[:9], done.stderr
    eq(told(t.daemon.admin, "status")[:2], (0, "mcpgated "))
    eq(told("/nonexistent", "status", "-s", t.daemon.admin)[:2], (0, "mcpgated "))
    ok("no daemon answers at /nonexistent/s;" in told("/nonexistent/s", "status")[2], "another")
    eq(told("/" + "x" * 108, "status")[::2], (2, "mcpgatectl: the path in MCPGATED_SOCKET is too long\ntry: mcpgatectl --help\n"))


@case(own=True)
def failing_server(t):
    """product §5: status says why a server fails, and when it is tried again."""
    ctl(t, "call", "broken", "x", status=1)
    out, _ = ctl(t, "status")
    ok(re.search(r"^broken +failing ", out, re.M), "the state", out)
    ok(re.search(r"^broken is failing: it could not be started: No such file or directory; child_spawn_failed in the "
                 r"log says more \(\d+s ago\); next try ", out, re.M), "the reason", out)


@case
def calls(t):
    """product §2: call goes the way of a client; texts are printed, what fails is said."""
    eq(ctl(t, "call", "demo", "echo", '{"text":"hello \u00e4"}'), ("hello \u00e4\n", ""))
    out, _ = ctl(t, "call", "demo", "add", '{"a":1,"b":2}', "--json")
    ok(json.loads(out)["content"], "the result", out)
    eq(ctl(t, "call", "main", "do", '{"steps":[["sleep",1.5],["text","slow"]]}')[0], "slow\n")
    out, err = ctl(t, "call", "demo", "nothing", status=1)
    ok("-32602" in err and out == "", "an unknown tool", out, err)
    out, err = ctl(t, "call", "main", "do", '{"steps":[["error",-32001,"no \\u001b[1m"]]}', status=1)
    eq((out, err), ("", "mcpgatectl: error -32001: no \\x1b[1m\n"))
    out, err = ctl(t, "call", "main", "do", '{"steps":[["result",{"isError":true,"content":[{"type":"text","text":"bad"}]}]]}', status=1)
    eq((out, err), ("bad\n", ""))
    out, err = ctl(t, "call", "main", "do", '{"steps":[["exit",3]]}', status=1)
    ok("child_exited" in err, "a process that dies", err)
    out, err = ctl(t, "call", "broken", "x", status=1)
    ok("backend_unavailable" in err, "a server that does not start", err)
    out, err = ctl(t, "call", "nobody", "x", status=1)
    ok("there is no server 'nobody' at the daemon of " + t.daemon.admin in err, "an unknown server", err)
    wait_for(lambda: json.loads(ctl(t, "sessions", "--json")[0]) == {"sessions": []}, 5, "the end of their sessions")


@case
def tools_and_formats(t):
    """product §2: tools as a list, as MCP has them, and for function-calling interfaces."""
    out, _ = ctl(t, "tools", "demo")
    ok(re.search(r"^TOOL +DESCRIPTION\necho +Returns the text\.$", out, re.M), "the list", out)
    mcp_tools = json.loads(ctl(t, "tools", "demo", "--format", "mcp")[0])
    openai = json.loads(ctl(t, "tools", "demo", "--format", "openai")[0])
    anthropic = json.loads(ctl(t, "--format=anthropic", "tools", "demo")[0])
    eq(json.loads(ctl(t, "tools", "demo", "--json")[0]), mcp_tools)
    for m, o, a in zip(mcp_tools, openai, anthropic, strict=True):
        eq(o, {"type": "function", "function": {"name": m["name"], "description": m["description"], "parameters": m["inputSchema"]}})
        eq(a, {"name": m["name"], "description": m["description"], "input_schema": m["inputSchema"]})
    pages = {"on": {"tools/list": [["result", {"tools": TOOLS[1:], "nextCursor": "c"}]]}}
    d = t.start({"endless": pages})
    out, err = ctl(t, "tools", "endless", status=1, daemon=d)
    ok("does not end" in err, "an endless list", err)


@case
def hostile_texts(t):
    """What servers say cannot act on the operator's terminal, nor turn its lines around."""
    out, _ = ctl(t, "tools", "hostile")
    ok("x\\x1b]0;t\\x07y" in out and "\\u202egnp.exe\\u200b" in out, "as escapes", out)
    eq(out.count("\n"), 3, "a line for each tool")
    out, err = ctl(t, "tools", "hostile", "--format", "openai")
    eq([x["function"]["name"] for x in json.loads(out)], [x["name"] for x in TOOLS])
    ok("plain.name" in err, "names that the interface refuses", err)
    out, _ = ctl(t, "call", "hostile", "x")
    eq(out.splitlines()[0], "a")
    eq(out.splitlines()[2], "[image i\\x1bx, about 3 bytes]")
    s = t.session()
    s.do(["stderr", HOSTILE + "\xff\n"], ["text", ""])
    wait_for(lambda: "red" in ctl(t, "logs", "main")[0], 3, "the line")
    out, _ = ctl(t, "logs", "main")
    ok(re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[\d+\] red\\x1b\[31m\\x07 ", out, re.M), "the line", out)


@case(own=True)
def nul_characters(t):
    """SEC-42: a NUL in what a server writes hides nothing from the operator."""
    eq(ctl(t, "call", "demo", "echo", '{"text":"a\\u0000b"}'), ("a\\x00b\n", ""))
    s = t.session()
    s.do(["stderr", "be\0fore\nafter\n"], ["text", ""])
    wait_for(lambda: "after" in ctl(t, "logs", "main")[0], 3, "the line")
    ok("be\\x00fore" in ctl(t, "logs", "main")[0], "the line with NUL")


@case
def output_that_cannot_be_written(t):
    """product §2: who does not get what he asked for sees it in the exit status."""
    for argv in (["mcpgatectl", "--socket", t.daemon.admin, "status"], ["mcpgatectl", "--help"], ["mcpgatectl", "token", "new"],
                 ["mcpgated", "--dump", "sample"], ["mcpgated", "--print-config", "--", "true"], ["mcpgated", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([os.path.join(harness.BIN, argv[0])] + argv[1:], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, timeout=20 * harness.SLOW)
        eq((done.returncode, b"No space left" in done.stderr), (1, True), "%r" % argv)


@case
def long_answers(t):
    """product §2: an answer longer than what is read at a time comes whole."""
    for size in (60 << 10, 64 << 10, 300 << 10):
        steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'], ["fill", "y", size], ["write", '"}]}}\n']]
        eq(len(ctl(t, "call", "main", "do", json.dumps({"steps": steps}))[0]), size + 1)


WHO = {"s": {"script": {}, "env": {"WHO": "${claim:sub}/${claim:team}"}}}
OAUTH = {"public_url": "https://a.example", "auth": {"mode": "oauth", "issuers": [{"issuer": "http://127.0.0.1:1"}]}}


@case(daemon=False)
def servers_with_claims(t):
    """AUTH-DWN-02: the operator says for whom he asks where a server gets claims; nobody else is heard who says so."""
    d = t.start(WHO, OAUTH)
    for args in (["tools", "s"], ["call", "s", "do", '{"steps":[["environ"]]}'], ["call", "s", "do", "--claims", '{"sub":"x"}']):
        out, err = ctl(t, *args, status=1, daemon=d)
        ok(out == "" and "lacks a claim" in err, "without the claims", args, err)
        eq("say them: --claims" in err, "--claims" not in args, err)
    for claims, who in (({"sub": "alice", "team": "red"}, "alice/red"), ({"sub": "b\u00f6b", "team": 7}, "b\u00f6b/7")):
        out, _ = ctl(t, "call", "s", "do", '{"steps":[["probe"]]}', "--claims", json.dumps(claims), daemon=d)
        eq([e for e in json.loads(out)["environ"] if e.startswith("WHO=")], ["WHO=" + who])
        eq(ctl(t, "tools", "s", "--claims", json.dumps(claims), daemon=d)[0].split()[:3], ["TOOL", "DESCRIPTION", "do"])
    ok("No token has such claims" in ctl(t, "tools", "s", "--claims", '{"sub":"a\\nb"}', status=1, daemon=d)[1], "not even imagined")
    for bad in ("sub=a", "[1]", '{"a":1,"a":2}'):
        ok("--claims takes a JSON object" in ctl(t, "tools", "s", "--claims", bad, status=2, daemon=d)[1], "no claims: " + bad)
    open_to_all = t.start({"main": {}})
    response = t.conn(address=open_to_all.address).request("POST", "/main/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH),
                                                           ("Caller-Claims", '{"sub":"mallory"}')], mcp.encode(mcp.initialize()))
    out, _ = ctl(t, "sessions", daemon=open_to_all)
    eq((response.status, out.count("\n"), "mallory" in out), (200, 2, False), "a client")


@case
def options_that_do_nothing(t):
    """product §2: an option that a command would ignore is an error, and what it is for is said."""
    for args, text in ((["call", "demo", "echo", "--format", "mcp"], "call takes no --format: it is for tools"),
                       (["status", "--claims", "{}"], "status takes no --claims: it is for can, tools, prompts, resources, call"),
                       (["deny", "list", "--sub", "a"], "deny takes no --sub: it is for deny add"),
                       (["deny", "remove", "1", "--for", "1h"], "deny takes no --for: it is for deny add"),
                       (["doctor", "--oauth", "https://a.example", "-c", "f"],
                        "doctor --oauth takes no --config: it is for client-config, doctor, connect\n"),
                       (["doctor", "-c", "f", "--", "true"], "doctor -- takes no --config: it is for client-config, doctor, connect\n"),
                       (["doctor", "-s", "/x", "main"], "doctor takes no --socket\n"),
                       (["connect", "http://127.0.0.1:9/mcp", "-c", "f"], "connect URL takes no --config: it is for client-config, doctor, connect\n"),
                       (["connect", "main", "-c", "f", "-s", "/x"], "connect --config takes no --socket\n"),
                       (["top", "--once", "-n", "3"], "top --once takes no --count: it is for top\n"),
                       (["adopt", "--undo", "--explain"], "adopt --explain takes no --undo: it is for adopt\n"),
                       (["adopt", "-s", "/x"], "adopt takes no --socket\n"),
                       (["token", "new", "--name", "a", "--name", "b"], "--name is given twice\n"),
                       (["status", "-s", "/x", "-s", "/y"], "--socket is given twice\n"),
                       (["doctor", "--env", "A"], "doctor takes no --env: it is for doctor --"),
                       (["servers", "-f"], "servers takes no --follow: it is for logs"),
                       (["restart", "main", "--all"], "restart takes no --all: it is for pins, client-config"),
                       (["status", "-n", "1"], "status takes no --count: it is for top"),
                       (["drain", "--name", "x"], "drain takes no --name: it is for token"),
                       (["reload", "-c", "x"], "reload takes no --config"),
                       (["metrics", "--json"], "metrics takes no --json\n"),
                       (["client-config", "main", "--json"], "client-config takes no --json\n")):
        out, err = ctl(t, *args, status=2)
        ok(out == "" and "mcpgatectl: " + text in err, "%r" % args, err)


@case(own=True)
def logs_follow(t):
    """product §2: logs -f prints what is kept and what comes, until the daemon ends."""
    s = t.session()
    s.do(["stderr", "one\n"], ["text", ""])
    wait_for(lambda: "one" in ctl(t, "logs", "main")[0], 3, "the line")
    argv = [os.path.join(harness.BIN, "mcpgatectl"), "-s", t.daemon.admin, "logs", "-f", "main"]
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        ok(p.stdout.readline().endswith(b"] one\n"), "what is kept")
        s.do(["stderr", "two\n"], ["text", ""])
        ok(p.stdout.readline().endswith(b"] two\n"), "what comes")
        s.delete()
        t.daemon.term()
        eq(p.wait(10 * harness.SLOW), 0, "exit status")
        ok(b"the daemon has stopped" in p.stderr.read(), "and says why")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        p.stderr.close()
    ctl(t, "logs", "nobody", status=1, socket="/nonexistent")


@case(own=True)
def orders(t):
    """product §2: restart, end-session, reload and drain."""
    a, b = t.session(), t.session()
    old = t.daemon.children("main")
    eq(ctl(t, "restart", "main")[0], "processes to be replaced: 2\n")
    wait_for(lambda: not any(is_alive(p) for p in old), 5, "the end of the old processes")
    eq(ctl(t, "restart", "demo")[0], "processes to be replaced: 0 (none is running)\n")
    a.echo("on")
    shown = [r[0] for r in rows(ctl(t, "sessions")[0])[1:]]
    eq(sorted(shown), sorted([a.id[:8], b.id[:8]]))
    eq(ctl(t, "end-session", b.id[:8])[0], "sessions ended: 1\n")
    eq(b.post(mcp.request(9, "ping")).status, 404)
    eq(ctl(t, "reload")[0], "no server has changed; everything else is now as the file says\n")
    t.daemon.wait_log("admin_command", "command=reload")
    a.echo("still on")
    a.delete()
    eq(ctl(t, "drain")[0], "the daemon stops after the calls in flight: 0\n")
    eq(t.daemon.wait(), 0)
    out, err = ctl(t, "status", status=1)
    ok("no daemon answers at" in err and "--socket" in err, "afterwards", err)


@case
def wrong_usage(t):
    """Wrong words get exit status 2 and a hint; what the daemon does not know, 1 and its reason."""
    for args in ([], ["nonsense"], ["status", "x"], ["restart"], ["restart", "a", "b"], ["restart", "../status"],
                 ["restart", "a?b"], ["restart", ""], ["logs", "a&follow=1"], ["end-session", "a b\r\nX: y"],
                 ["call"], ["call", "main"], ["call", "demo", "echo", "[1]"], ["call", "demo", "echo", "{"],
                 ["call", "demo", b"\xff"], ["call", "demo", "echo", '{"a":99999999999999999999}'],
                 ["deny", "add", "--sub", "x", "--for", "213503982334d"], ["deny", "add", "--sub", "x", "--for", "0"],
                 ["deny", "add", "--sub", "x", "--issuer", b"\xff"],
                 ["call", "demo", "echo", '{"a":1,"a":2}'], ["tools", "demo", "--format", "yaml"], ["--nonsense"],
                 ["pins", "approve", "demo"], ["pins", "reject", "demo", "x", "--all"], ["pins", "--all"], ["pins", "demo", "x"],
                 ["status", "--", "x"], ["doctor", "main", "--", "x"], ["doctor", "--"]):
        out, err = ctl(t, *args, status=2)
        ok(err and "try: mcpgatectl --help" in err, "a hint for %r" % args, err)
        eq(out, "")
    for name in ("restart", "logs"):
        ok("mcpgatectl servers lists them" in ctl(t, name, "nobody", status=1)[1], "what there is", name)
    for args, why in ((["restart", "nobody"], "no server of this name"), (["logs", "nobody"], "no server of this name"),
                      (["logs", "-f", "nobody"], "no server of this name"), (["end-session", "abc"], "at least 4"),
                      (["end-session", "abcdefgh"], "no session has such an id")):
        out, err = ctl(t, *args, status=1)
        ok(why in err and out == "", "%r" % args, out, err)
    for args, status, why in ((["logs", "man"], 1, "there is no server of this name; did you mean 'main'?"), (["restart", "mian"], 1, "did you mean 'main'?"),
                              (["stauts"], 2, "there is no command 'stauts'; did you mean 'status'?"), (["help", "relaod"], 2, "did you mean 'reload'?"),
                              (["status", "extra"], 2, "'status' takes no argument like 'extra'; usage: mcpgatectl status\n"),
                              (["top", "x"], 2, "'top' takes no argument like 'x'; usage: mcpgatectl top [-n N] [-d SECONDS]\n")):
        ok(why in ctl(t, *args, status=status)[1], "%r" % args, ctl(t, *args, status=status)[1])
    whole, deny = ctl(t, "--help")[0], ctl(t, "deny", "--help")[0]
    ok("usage: mcpgatectl" in whole and all(w in whole for w in ("--oauth", "--jti", "restart")), "help")
    ok("deny add|list|remove" in deny and "--jti" in deny and not any(w in deny for w in ("--oauth", "restart")), "of one command", deny)
    eq((ctl(t, "help")[0], ctl(t, "help", "deny")[0]), (whole, deny))
    ok("no command 'nonsense'" in ctl(t, "help", "nonsense", status=2)[1], "help of nothing")
    version = ctl(t, "--version")[0]
    ok(version.startswith("mcpgatectl "), "version")
    eq(json.loads(ctl(t, "--json", "status")[0])["version"], version.split()[1])
    ctl(t, "status", status=2, socket="/x" * 100)


@case(daemon=False)
def fresh_tokens(t):
    """product §4: token new prints a token that is new each time, and the entry with its hash; no daemon needed."""
    one, two = (json.loads(ctl(t, "token", "new", "--name", "ci", "--json", socket="/nonexistent")[0]) for _ in range(2))
    ok(re.fullmatch(r"mcpg_[A-Za-z0-9_-]{43}", one["token"]) and one["token"] != two["token"], "tokens", one, two)
    eq((one["name"], one["sha256"]), ("ci", hashlib.sha256(one["token"].encode()).hexdigest()))
    out, _ = ctl(t, "token", "new", socket="/nonexistent")
    token, entry = re.fullmatch(r"# For the client.*\n(\S+)\n# For auth.tokens.*\n#   - (.+)\n", out).groups()
    named = ctl(t, "token", "new", "--name", "anna", socket="/nonexistent")[0]
    ok(re.search(r"^mcpg_\S+ anna$", named, re.M) and "{name: anna, sha256: " in named, "a line with a name", named)
    eq(entry, "{name: client, sha256: %s}" % hashlib.sha256(token.encode()).hexdigest())
    path = os.path.join(t.directory(), "tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write(out)
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "--print-config", "--token-file", path, "--", "/bin/cat"], capture_output=True, text=True,
                          timeout=10 * harness.SLOW)
    eq(re.findall(r"[0-9a-f]{64}", done.stdout), re.findall(r"[0-9a-f]{64}", entry), done.stderr)
    for args in (["token"], ["token", "old"], ["token", "new", "--name", "a: b}"], ["token", "new", "x"]):
        ctl(t, *args, status=2, socket="/nonexistent")


@case
def broken_server_is_pointed_at(t):
    """product §2: of a server that cannot be started it is said where the cause is to be found."""
    for command in (["call", "broken", "x"], ["tools", "broken"]):
        err = ctl(t, *command, status=1)[1]
        ok(err.endswith("\nsee: mcpgatectl status; mcpgatectl logs broken; mcpgatectl doctor broken\n"), "the next step", err)
    ok("see:" not in ctl(t, "call", "demo", "no-such-tool", status=1)[1], "a tool that there is not")


@case(own=True)
def sessions_say_who(t):
    """product §2: a session has the name that its client gives itself, cut off, and the address that it comes from."""
    for name in ("editor", "x" * 100, "\u00e9" * 47, HOSTILE):
        with_name = t.session(info={"name": name, "version": "1"})
        row = [r for r in json.loads(ctl(t, "sessions", "--json")[0])["sessions"] if r["session"] == with_name.id[:8]][0]
        ok(row["program"] is None or (name.startswith(row["program"]) and 0 < len(row["program"].encode()) < 48), "the name", row)
        eq(row["address"], "127.0.0.1")
    out = ctl(t, "sessions")[0]
    ok(re.search(r"PROGRAM +ADDRESS\n", out) and re.search(r"editor +127\.0\.0\.1\n", out), "the table", out)


@case(servers={"slow": {"script": {"init": [["sleep", 2], ["answer"]]}, "start": {"timeout": "2800ms"}}}, own=True, deadline=20)
def starting_is_not_ready(t):
    """product §2: a server none of whose processes has answered initialize yet is starting, for so long; the log says so when that takes long."""
    def state():
        return json.loads(ctl(t, "servers", "--json")[0])["servers"][0]["state"]
    eq(state(), "idle")
    begun = t.session("slow", check=False)
    wait_for(lambda: t.daemon.children("slow"), 5, "the process")
    eq(state(), "starting")
    wait_for(lambda: re.search(r"^slow is starting: no answer to the handshake for [1-9]s$", ctl(t, "status")[0], re.M), 5, "how long")
    wait_for(lambda: any(" start_slow " in line and "timeout_ms=2800" in line for line in t.daemon.lines), 5, "a line of the log")
    begun.result = begun.started.final(20)
    begun.take_id()
    eq(state(), "ready")
    eq(json.loads(ctl(t, "servers", "--json")[0])["servers"][0]["starting_ms"], None)
    ok("is starting" not in ctl(t, "status")[0], "it is ready")


@case(daemon=False)
def places_of_the_socket_are_named(t):
    """product §3: who finds no daemon is told all places that were looked at."""
    place = t.directory()
    done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "servers"], capture_output=True, text=True,
                          env=dict(os.environ, XDG_RUNTIME_DIR=place), timeout=20)
    if "permission" in done.stderr.lower() or done.returncode == 0:
        raise Skip("a daemon of the system runs here")
    ok(place + "/mcpgated/admin.sock" in done.stderr and "/run/mcpgated/admin.sock" in done.stderr, "places", done.stderr)
    ok("admin_off of its log says why" in done.stderr, "where to read why there may be none", done.stderr)
    if os.geteuid() == 0:
        environ = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "servers"], capture_output=True, text=True, env=dict(environ, SUDO_UID="65533"), timeout=20)
        ok("/run/user/65533/mcpgated/admin.sock, nor at" in done.stderr, "that of who called sudo", done.stderr)


@case(daemon=False)
def another_users_socket_is_told(t):
    """product §3: who may not use the system's daemon is told what a daemon of the own user takes."""
    setup = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && mkdir /run/mcpgated && '
             'python3 -c "import socket,os; s=socket.socket(socket.AF_UNIX); s.bind(\'/run/mcpgated/admin.sock\'); '
             'os.chmod(\'/run/mcpgated/admin.sock\', 0o600); s.listen(); os.setgid(65534); os.setuid(65534); os.execv(os.sys.argv[1], os.sys.argv[1:])" "$@"', "sh"]
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise Skip("this takes root and a mount namespace")
    for more, is_told in (({}, True), ({"XDG_RUNTIME_DIR": "/nonexistent"}, False)):
        environ = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "MCPGATED_SOCKET")}
        done = subprocess.run(setup + [os.path.join(harness.BIN, "mcpgatectl"), "servers"] + (["--socket", "/run/mcpgated/admin.sock"] if more else []),
                              capture_output=True, text=True, env=dict(environ, **more), timeout=20 * harness.SLOW)
        ok("only for the daemon's user and root" in done.stderr, done.stderr)
        eq("XDG_RUNTIME_DIR has to be set" in done.stderr, is_told, done.stderr)
        eq("none of yours answers at /nonexistent/mcpgated/admin.sock" in done.stderr, not is_told, done.stderr)


@case(daemon=False)
def finds_the_socket(t):
    """product §3: without --socket the user's own daemon is asked."""
    place = t.directory()
    t.start({"main": {}}, {"admin": {"address": "auto"}}, env={"XDG_RUNTIME_DIR": place})
    done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "servers"], capture_output=True,
                          env=dict(os.environ, XDG_RUNTIME_DIR=place), timeout=20)
    eq(done.returncode, 0)
    ok(done.stdout.startswith(b"SERVER"), "a table", done.stdout)


def doctor(t, servers, *args, status, **config):
    """The doctor's lines for servers as Daemon takes them."""
    place = t.directory()
    entries = {}
    for name, spec in servers.items():
        spec = dict(spec)
        if "script" in spec:
            argv = child_argv(spec.pop("script"), name)
            spec["command"], spec["args"] = argv[0], argv[1:]
        entries[name] = spec
    path = os.path.join(place, "c.yaml")
    with open(path, "w") as f:
        f.write(to_yaml(dict(config, servers=entries)) + "\n")
    os.chmod(path, 0o600)
    return ctl(t, "doctor", "-c", path, *args, status=status, socket="/nonexistent")


@case(daemon=False, deadline=30)
def doctor_finds_what_is_wrong(t):
    """product §2: doctor says what goes wrong in each step of a start, without a daemon."""
    short = {"start": {"timeout": "1s"}, "stop": {"grace": "300ms", "term": "300ms"}}
    ill = {
        "gone": ({"command": "/nonexistent/x"}, r"FAIL  start +cannot execute the command '/nonexistent/x': No such file"),
        "nowhere": ({"command": "surely-no-such-command"}, r"FAIL  start .*; looked for /\S+/surely-no-such-command"),
        "rights": ({"command": "/etc/passwd"}, r"FAIL  start .*Permission denied"),
        "cwd": ({"command": "true", "cwd": "/nonexistent"}, r"FAIL  start +cannot change to the directory \(cwd\) /nonexistent: No such file"),
        "exits": ({"script": {"start": [["stderr", "no \x1b[1mkey\n"], ["exit", 3]]}},
                  r"FAIL  answer +it exited with status 3 before it answered initialize\n +stderr +\| no \\x1b\[1mkey$"),
        "silent": ({"script": {"init": [["sleep", 100]]}}, r"FAIL  answer +no answer to initialize within 1\.0 s"),
        "refuses": ({"script": {"init": [["error", -32602, "not you"]]}}, r"FAIL  answer +it refused initialize: not you"),
        "unknown": ({"script": {"version": "1999-01-01"}}, r"FAIL  answer +it answered with the revision '1999-01-01', which is unknown"),
        "dies": ({"script": {"on": {"tools/list": [["exit", 4]]}}}, r"FAIL  tools +it exited with status 4"),
    }
    out, err = doctor(t, {name: merged(short, spec) for name, (spec, _) in ill.items()}, status=1)
    eq(err, "")
    parts = dict(zip(re.findall(r"^(\S+)$", out, re.M), re.split(r"^\S+\n", out, flags=re.M)[1:], strict=True))
    eq(list(parts), list(ill))
    for name, (_, pattern) in ill.items():
        ok(re.search(pattern, parts[name], re.M), "what is said of " + name, parts[name])


@case(daemon=False)
def doctor_asks_for_cgroups(t):
    """product §2: a limit for which there is no cgroup is wrong for the doctor whenever it is for -t."""
    argv = child_argv({}, "limited")
    servers = {"limited": {"command": argv[0], "args": argv[1:], "resources": {"memory": "1GiB"}}}
    path = os.path.join(t.directory(), "t.yaml")
    with open(path, "w") as f:
        f.write(to_yaml({"servers": servers}) + "\n")
    os.chmod(path, 0o600)
    check = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "-c", path], capture_output=True, text=True, timeout=8 * harness.SLOW)
    is_refused = check.returncode != 0
    out, _ = doctor(t, servers, status=1 if is_refused else 0)
    eq("FAIL  resources" in out, is_refused, check.stderr + out)
    eq("needs a cgroup" in out, is_refused, "why")


@case(daemon=False, deadline=30)
def doctor_knows_why_nothing_comes(t):
    """product §2: a server that does not answer, in a sandbox without network, is told what it lacks."""
    spec = {"command": "sleep", "args": ["30"], "start": {"timeout": "500ms"}, "stop": {"grace": "100ms", "term": "300ms"}}
    out, _ = doctor(t, {"free": spec, "kept": dict(spec, sandbox={"mode": "landlock"}),
                        "web": dict(spec, sandbox={"mode": "landlock", "connect": [443]})}, status=1)
    free, kept, web = re.findall(r"FAIL +(?:answer|start) .*", out)
    if "start" in kept.split():
        raise Skip("this kernel keeps no sandbox")
    ok("sandbox.connect lists no port" in kept, "the sandbox", kept)
    ok("sandbox" not in free + web, "no sandbox, or one with a port", free, web)


@case(daemon=False, deadline=40)
def who_waits_is_told_for_what(t):
    """product §2: the first start of a server that answers nothing for three seconds says so while it lasts, once: in the log, and in doctor."""
    script = {"init": [["sleep", 4], ["answer"]]}
    t.start({"slow": {"script": script, "start": {"timeout": "20s", "try": True}}})
    wait_for(lambda: t.daemon.log("server_found"), 15, "its answer")
    told = t.daemon.log("start_slow")
    eq(len(told), 1, told)
    # It is counted from when the process was there, a moment after the gateway had asked for it.
    ok("waits_for=initialize" in told[0] and re.search(r"waited_ms=(2[5-9]|3\d)\d\d ", told[0]), told[0])
    ok("npx, uvx and the like may be downloading" in told[0], told[0])
    argv = harness.child_argv(script)
    _, err = doctor(t, {"slow": {"command": argv[0], "args": argv[1:]}}, status=0)
    eq(err.count("mcpgatectl: no answer to initialize yet, 3 s; it has written nothing; npx"), 1, err)


@case(daemon=False, deadline=30)
def doctor_names_what_a_sandbox_has_refused(t):
    """product §2: from what a server says of a refusal, doctor tells the line that allows it; what is listed is not proposed."""
    place = t.directory()
    secret = os.path.join(place, "secret")
    with open(secret, "w") as f:
        f.write("x")
    script = "cat %s; echo x > %s/new; exec %s" % (secret, place, os.path.join(harness.BIN, "mcpgated-demo"))
    box = {"mode": "landlock", "read": [harness.BIN]}
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "connect EACCES 127.0.0.1:5432"}}
    answer = "read l; echo '%s'; read l; exit 1" % json.dumps(error)
    out, _ = doctor(t, {"kept": {"command": "sh", "args": ["-c", script], "sandbox": box},
                        "free": {"command": "sh", "args": ["-c", script]},
                        "open": {"command": "sh", "args": ["-c", script], "sandbox": dict(box, write=[place])},
                        "web": {"command": "sh", "args": ["-c", answer], "sandbox": box}}, status=1)
    if "cannot set up the sandbox" in out:
        raise Skip("this kernel keeps no sandbox")
    eq(re.findall(r"^  warn  sandbox +something was refused; .* this allows it: (.*)$", out, re.M),
       ['servers.kept.sandbox.read: ["%s"]' % secret, 'servers.kept.sandbox.write: ["%s"]' % place, "servers.web.sandbox.connect: [5432]"])


@case(daemon=False, deadline=30)
def doctor_stands_in_for_a_caller(t):
    """product §2 AUTH-DWN-02: claims in env are what --claim says; without, their text is used, and that is said."""
    demo = os.path.join(harness.BIN, "mcpgated-demo")
    servers = {"s": {"command": "sh", "args": ["-c", 'echo "it is $WHO" >&2; exec ' + demo], "env": {"WHO": "${claim:sub}/${claim:team}"}}}
    config = {"public_url": "https://a.example", "auth": {"mode": "oauth", "issuers": [{"issuer": "http://127.0.0.1:1"}]}}
    given = ["--claim", "sub=alice=x", "--claim", "team=red y"]
    out, _ = doctor(t, servers, "s", "--claim", "subject=z", *given, status=0, **config)
    ok(re.search(r"stderr +\| it is alice=x/red y$", out, re.M) and "claims" not in out, "the values", out)
    out, _ = doctor(t, servers, *given[:2], status=0, **config)
    ok(re.search(r"^  warn  claims    its env uses .* and here there is none: it is started with the text .*; give --claim team=VALUE$", out, re.M), "what is missing", out)
    web = {"web": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-User": "${claim:sub}"}, "isolation": "principal"}}
    ok("  warn  claims    its headers use claims of the caller" in doctor(t, web, status=1, **config)[0], "of a server behind a URL")
    ok(re.search(r"stderr +\| it is \${claim:sub}/\${claim:team}$", out, re.M), "as it stands", out)
    for bad in ("sub", "=x", "sub=", "sub=a\nb", "sub=" + "x" * 1025):
        _, err = doctor(t, servers, "--claim", bad, status=2)
        ok("--claim takes NAME=VALUE" in err, bad, err)
    ctl(t, "status", "--claim", "a=b", status=2, socket="/nonexistent")


@case(daemon=False, deadline=30)
def doctor_in_json(t):
    """product §2: with --json doctor prints one object, with what it has found of each server."""
    demo = os.path.join(harness.BIN, "mcpgated-demo")
    servers = {"good": {"command": "sh", "args": ["-c", "echo 'a\x1bb' >&2; exec " + demo]}, "bad": {"command": "/nonexistent/x"}}
    out, _ = doctor(t, servers, "--json", status=1)
    good, bad = json.loads(out)["examined"]
    eq((good["server"], good["ok"], bad["server"], bad["ok"]), ("good", True, "bad", False))
    eq([(f["verdict"], f["what"]) for f in good["findings"]], [("ok", what) for what in ("start", "answer", "tools", "end")])
    ok(good["stderr"][0] == "a\\x1bb", "its stderr", good)
    eq([(f["verdict"], f["what"]) for f in bad["findings"]], [("fail", "start")])
    ok("/nonexistent/x" in bad["findings"][0]["text"], "why", bad)


@case(daemon=False, deadline=30)
def doctor_knows_what_is_not_passed_on(t):
    """product §2: a variable that a server names and has not got, and that is set where the doctor is, is told with the way to pass it on."""
    environ = dict(os.environ, DOCTOR_API_KEY="k", DOCTOR_API="x", DOCTOR_GIVEN="y", CURL_CA_BUNDLE="/z")
    script = 'test -n "$DOCTOR_API_KEY" || { echo "need DOCTOR_API_KEY (not XDOCTOR_API, $CURL_CA_BUNDLE)" "$DOCTOR_GIVEN" DOCTOR_GIVEN >&2; exit 1; }; exec ' + os.path.join(harness.BIN, "mcpgated-demo")

    def run(*args):
        done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "doctor", *args, "--env", "DOCTOR_GIVEN", "--", "sh", "-c", script],
                              capture_output=True, text=True, timeout=20, env=environ)
        return done.returncode, re.findall(r"^  warn  env .*", done.stdout, re.M), done.stdout
    status, warnings, out = run()
    eq((status, warnings), (1, ["  warn  env       DOCTOR_API_KEY is set here but not passed on; for a command use --env DOCTOR_API_KEY, "
                                "in a configuration env: {DOCTOR_API_KEY: {env: DOCTOR_API_KEY}}"]), out)
    ok("(not XDOCTOR_API, /z) y DOCTOR_GIVEN" in out, "what is inherited, and passed on", out)
    eq(run("--env", "DOCTOR_API_KEY")[:2], (0, []), "passed on")
    ctl(t, "doctor", "--env", "A=1", status=2, socket="/nonexistent")


@case(daemon=False, deadline=30)
def doctor_praises_what_is_right(t):
    """product §2: of a sound server doctor says what it is; garbage and a hard end are warnings."""
    sound = {"demo": {"command": os.path.join(harness.BIN, "mcpgated-demo")}, "off": {"command": "/nonexistent", "enabled": False}}
    out, _ = doctor(t, sound, status=0)
    ok(re.fullmatch(r"demo\n  ok    start     \S+/mcpgated-demo\n  ok    answer    after [\d.]+ s: mcpgated-demo \S+, revision 2025-11-25\n"
                    r"  ok    tools     \d+, listed in [\d.]+ s\n  ok    end       [\d.]+ s after its standard input was closed\n", out), "its lines", out)
    eq(doctor(t, sound, "off", status=1)[0].split("\n")[0], "off", "a name is asked for, enabled or not")
    out, err = doctor(t, sound, "nobody", status=1)
    eq((out, err), ("", "mcpgatectl: there is no such server in the configuration\n"))
    odd = {"odd": {"script": {"start": [["line", "hello \x1b[1m"]], "eof": "ignore", "caps": {},
                              "init": [["ask", 7, "roots/list"], ["answer"]]},
                   "stop": {"grace": "300ms", "term": "2s"}}}
    out, _ = doctor(t, odd, status=0)
    ok(re.search(r"ok    tools     it offers none", out), "no tools", out)
    ok(re.search(r"warn  stdout    lines that are not messages, .*: 1; the first: hello \\x1b\[1m", out), "garbage", out)
    ok(re.search(r"warn  end       it does not exit when its standard input is closed; SIGTERM was needed", out), "a hard end", out)
    argv = [os.path.join(harness.BIN, "mcpgated-demo")]
    ok(re.search("ok    answer", ctl(t, "doctor", "--", *argv, socket="/nonexistent")[0]), "a command line")
    ctl(t, "doctor", "-c", "/nonexistent.yaml", status=2, socket="/nonexistent")


@case(daemon=False, deadline=30)
def doctor_speaks_either_era(t):
    """product §2 BACK-ERA-05 BACK-ERA-07: a server of 2026-07-28 is sound; asked in an era that is configured and not its own, it is ill."""
    short = {"start": {"timeout": "2s"}, "stop": {"grace": "300ms", "term": "2s"}}
    modern = {"script": {"era": "modern"}}
    right = {"found": modern, "told": dict(modern, era="modern"), "both": {"script": {"era": "both"}}}
    out, _ = doctor(t, {name: merged(short, spec) for name, spec in right.items()}, status=0)
    answers = re.findall(r"^  ok    answer    after [\d.]+ s: \S+ \S+, revision (\S+)$", out, re.M)
    eq(answers, ["2026-07-28", "2026-07-28", "2025-11-25"], out)
    eq(len(re.findall(r"^  ok    tools     2, listed", out, re.M)), 3, out)
    wrong = {"old": dict(modern, era="legacy"), "new": {"script": {}, "era": "modern"}}
    out, _ = doctor(t, {name: merged(short, spec) for name, spec in wrong.items()}, status=1)
    eq(re.findall(r"FAIL  answer    it refused (\S+): ", out), ["initialize", "server/discover"], out)


@case(daemon=False, deadline=30)
def doctor_reads_as_the_daemon_does(t):
    """BACK-FRAME-04 BACK-FRAME-05: whom the daemon understands, the doctor does not call ill."""
    answer = '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"a\\u0000","version":"1"}}}'
    short = {"start": {"timeout": "2s"}, "stop": {"grace": "300ms", "term": "2s"}}
    for line, garbage in ((answer % '"@ID@"', 0), ("[%s]" % answer % "@ID@", 0), ("Ready. " + answer % "@ID@", 1), ("\ufeff" + answer % "@ID@", 1),
                          ((answer % "@ID@").replace('"capabilities":{}', '"capabilities":{"x":123456789012345678901234567890}'), 0)):
        out, _ = doctor(t, {"s": merged(short, {"script": {"init": [["line", line]]}})}, status=0)
        ok(re.search(r"ok    answer    after [\d.]+ s: a 1, revision 2025-06-18$", out, re.M), "its answer", line, out)
        eq(out.count("are not messages"), garbage, line)


@case(daemon=False)
def doctor_leaves_nothing(t):
    """REL-43: what the doctor starts is gone when it ends, helpers of the server included."""
    place = t.directory()
    script = "sleep 1000 & echo $! > %s/helper; echo $$ > %s/self; exec cat > /dev/null" % (place, place)
    doctor(t, {"s": {"command": "sh", "args": ["-c", script], "start": {"timeout": "500ms"}, "stop": {"grace": "300ms"}}}, status=1)
    for who in ("helper", "self"):
        with open(os.path.join(place, who)) as f:
            pid = int(f.read())
        wait_for(lambda: not is_alive(pid), 3, "the end of its " + who)


def completions(t, *words):
    """What the completion of bash makes of a line, whose last word is being typed."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../conf/completions/mcpgatectl.bash")
    line = [os.path.join(harness.BIN, "mcpgatectl")] + list(words)
    text = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mcpgatectl; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", text, script] + line, capture_output=True, timeout=20 * harness.SLOW, text=True)
    eq((done.returncode, done.stderr), (0, ""))
    return done.stdout.split()


@case(own=True)
def what_shells_complete(t):
    """product §2: commands, their words, options, and the servers of the daemon; nothing where it cannot be known."""
    commands = [line.split()[0] for line in ctl(t, "--help")[0].splitlines() if re.match(r"  [a-z]", line)]
    ok({"status", "logs", "doctor"} < set(commands), "commands", commands)
    eq(completions(t, ""), ["help"] + commands)
    eq((completions(t, "help", ""), completions(t, "help", "re"), completions(t, "help", "deny", "")), (commands, ["restart", "reload", "resources"], []))
    eq(completions(t, "se"), ["servers", "sessions"])
    eq(completions(t, "deny", ""), ["add", "list", "remove"])
    eq(completions(t, "deny", "add", "--s"), ["--socket", "--sub", "--sid"])
    eq(completions(t, "--json", "--socket", t.daemon.admin, "logs", ""), sorted(SERVERS, key=list(SERVERS).index))
    eq(completions(t, "-s", t.daemon.admin, "can", "alice", "de"), ["demo"])
    eq(completions(t, "-s", "/nonexistent", "logs", ""), [])
    formats, clients = ["mcp", "openai", "anthropic"], ["claude", "claude-code", "cline", "codex", "cursor"]
    for words in (["--format", ""], ["--format", "="], ["--format", "=", ""]):  # as bash breaks words
        eq(completions(t, "tools", "demo", *words), formats)
    eq((completions(t, "client-config", "demo", "--client", "c"), completions(t, "--client", "zed", "client-config", "demo", "--client", "=", "vs")), (clients, ["vscode"]))
    eq((completions(t, "--format=o"), completions(t, "--format=x"), completions(t, "--nonsense=")), (["--format=openai"], [], []))
    for words in (["--socket", ""], ["--socket="], ["status", ""], ["nonsense", ""], ["call", "main", ""]):
        eq(completions(t, *words), [], words)


@case(daemon=False)
def check_says_what_needs_attention(t):
    """product §5: check has a line for each problem, and exit statuses for monitoring; status, --json and the metrics have the same."""
    d = t.start({"good": {"script": {}}, "broken": {"command": "/nonexistent/command"}, "who": {"script": {}, "env": {"WHO": "${claim:sub}"}}},
                {"auth": {"mode": "token", "tokens": [{"name": "a", "sha256": "0" * 64}]}})
    ok([line for line in d.lines if re.match(r"mcpgated: ready: broken \(not tried yet\) at ", line)], "ready means no more", d.lines)
    out, _ = ctl(t, "check", status=1)
    eq(out.splitlines(), [
        "warn     not tried yet: good, broken; mcpgatectl tools NAME tries it now, and without `start: {try: false}` the daemon does",
        "warn     not tried yet: who, for claims of a caller; mcpgatectl tools who --claims '{\"sub\": \"...\"}' tries it now"])
    ctl(t, "tools", "who", "--claims", '{"sub": "x"}')
    ctl(t, "tools", "good")
    ctl(t, "tools", "broken", status=1)
    out, _ = ctl(t, "check", status=2)
    ok(re.fullmatch(r"failing  broken is failing: it could not be started: No such file or directory; .*; next try .*\n", out), "one line", out)
    report = json.loads(ctl(t, "check", "--json", status=2)[0])
    eq(report["verdict"], "failing")
    eq([(p["severity"], p["kind"], p["about"]) for p in report["problems"]], [("failing", "server_failing", "broken")])
    # What is known is passed over, by its kind or by what it is about; nothing else is.
    for what in ("server_failing", "broken", "x,broken"):
        eq(ctl(t, "check", "--ignore", what), ("ok       nothing needs attention\n", ""))
    eq(json.loads(ctl(t, "check", "--json", "--ignore", "broken")[0]), {"verdict": "ok", "problems": []})
    for what in ("", ",", "brok", "broken,", "warn"):
        ctl(t, "check", "--ignore", what, status=0 if what == "broken," else 2)
    head, _, section = ctl(t, "status")[0].partition("\n\nneeds attention:\n")
    ok(section.startswith("broken is failing: ") and section.count("\n") == 1 and "broken is failing" not in head, "once in status", head, section)
    ok('mcpgated_problem{kind="server_failing"} 1\n' in ctl(t, "metrics")[0], "the metric")
    t.expect_error_log("reload_refused")
    with open(d.file, "w") as f:
        f.write("servers: {good: {command: x, nonsense: 1}}\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "has failed: " in ctl(t, "check", status=2)[0], 5, "the reload")
    ok(re.search(r"^warn     the reload at \S+Z has failed: \S*:1:30: unknown key 'nonsense'.*; correct it, then mcpgatectl reload$",
                 ctl(t, "check", status=2)[0], re.M), "why", ctl(t, "check", status=2)[0])
    ctl(t, "check", "--ignore", "broken", status=1)
    eq(json.loads(ctl(t, "check", "--json", "--ignore", "broken", status=1)[0])["verdict"], "warn")


@case(daemon=False)
def check_is_at_zero_before_the_first_client(t):
    """product §5: a fresh daemon has tried the servers of its file; an endpoint over them has no era of its own."""
    demo = os.path.join(harness.BIN, "mcpgated-demo")
    d = t.start({}, text="listen: [{address: '127.0.0.1:0'}]\nservers: {demo: {command: %s}}\nendpoints: {all: {servers: [demo]}}\n" % demo)
    wait_for(lambda: d.log("server_found"), 10, "the trial")
    socket = os.path.join(d.dir, "mcpgated", "admin.sock")
    eq(ctl(t, "check", socket=socket), ("ok       nothing needs attention\n", ""))
    rows = {row["name"]: row for row in json.loads(ctl(t, "servers", "--json", socket=socket)[0])["servers"]}
    eq((rows["demo"]["era"], rows["demo"]["era_from"], rows["all"]["era"], rows["all"]["era_from"]), ("legacy", "found", None, None))


@case(daemon=False)
def check_is_silent_about_what_works(t):
    """product §5: with nothing to look at check says so, and is 0; where no daemon answers, it is 2."""
    t.start({"good": {"script": {}}})
    ctl(t, "tools", "good")
    eq(ctl(t, "check"), ("ok       nothing needs attention\n", ""))
    eq(json.loads(ctl(t, "check", "--json")[0]), {"verdict": "ok", "problems": []})
    out, err = ctl(t, "check", status=2, socket="/nonexistent/socket")
    ok(out == "" and "no daemon answers" in err, "nobody there", out, err)
