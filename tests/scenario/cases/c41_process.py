# SPDX-License-Identifier: Apache-2.0
"""Children as processes: start, death, shutdown, what they inherit. requirements §17, threats.md §7."""
import os
import re
import signal
import socket
import time

import harness
import mcp
from c70_admin import get
from harness import case, child_argv, eq, is_alive, ok, processes, wait_for, within

SERVERS = {
    "main": {},
    "absent": {"command": "/nonexistent/mcp-server"},
    "crash": {"script": {"start": [["stderr", "secret words of the crash\n"], ["exit", 7]]}, "start": {"backoff": "300ms..1s"}},
    "dies_late": {"script": {"init": [["exit", 0]]}, "start": {"backoff": "300ms..1s"}},
    "stubborn": {"script": {"eof": "ignore", "term": "ignore"}, "stop": {"grace": "300ms", "term": "400ms"}},
    "slow_exit": {"script": {"eof": "ignore"}, "stop": {"grace": "300ms", "term": "2s"}},
}


def unavailable(t, server, timeout=15):
    started = time.monotonic()
    e = t.session(server, check=False).started
    answer = e.final(timeout)
    eq((e.status, answer["error"]["code"]), (503, -32603), server)
    eq(answer["error"]["data"]["reason"], "backend_unavailable", server)
    ok(e.response.header("retry-after"), "Retry-After", e.response.headers)
    return time.monotonic() - started, answer


@case
def command_not_found(t):
    """BACK-PROC-06 product §5: 503 backend_unavailable at once, naming the server and no path."""
    seconds, answer = unavailable(t, "absent")
    ok(seconds < 3, "seconds", seconds)
    eq(answer["error"]["data"].get("server"), "absent")
    ok("nonexistent" not in str(answer), "path in the answer", answer)
    t.daemon.wait_log("child_spawn_failed", "absent")


@case
def exit_before_the_handshake(t):
    """BACK-PROC-06 SEC-51: 503 at once; the last stderr lines are in the log, not in the answer."""
    for server in ("crash", "dies_late"):
        seconds, answer = unavailable(t, server)
        ok(seconds < 4, "seconds", seconds)
        ok("secret" not in str(answer), "stderr in the answer", answer)
    wait_for(lambda: any("secret words of the crash" in l for l in t.daemon.lines), 2, "stderr in the log")
    t.daemon.wait_log("server_failing", "server=crash", "try=1", "reason=child_exited", 'exit="status 7"', 'stderr="secret words of the crash"',
                      "ran_ms=", "next_try_ms=")


NPX_404 = "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/nothere - Not found\n"
NODE_18 = ("file:///srv/index.js:3\nimport { styleText } from 'node:util';\n         ^^^^^^^^^\nSyntaxError: The requested module 'node:util' "
           "does not provide an export named 'styleText'\n" + "    at ModuleJob.run (node:internal/modules/esm/module_job:180:21)\n" * 30 +
           "\nNode.js v18.20.4\n")
FAILING = {"npx": ({"start": [["stderr", NPX_404], ["exit", 1]]}, ("error code E404", 'exit="status 1"')),
           "old": ({"start": [["stderr", NODE_18], ["exit", 1]]}, ("SyntaxError: The requested module", "Node.js v18.20.4\"")),
           "key": ({"start": [["stderr", "Error: API_KEY is required\n"], ["exit", 2]]}, ('stderr="Error: API_KEY is required"',)),
           "web": ({"start": [["stderr", "one moment\n"]], "init": [["write", "Listening on port 3000\n"]]},
                   ("reason=start_timeout", "no answer to the handshake", "Listening on port 3000", 'stderr="one moment"')),
           # The client's initialize may be what it refuses: no reason to wait.
           "no": ({"init": [["error", -32600, "not today"]]}, ("not today",))}


@case(servers={name: {"script": script, "start": {"backoff": "100ms..100ms", "give_up_after": 100, "timeout": "1s"}}
               for name, (script, _) in FAILING.items()}, config={"log": {"level": "info"}}, own=True, deadline=30)
def failing_try_is_one_line(t):
    """BACK-PROC-06 product §5: at the usual level a try that fails is one line, which says how; further ones are counted in it."""
    for name, (_, words) in FAILING.items():
        tries = 3 if name == "key" else 1
        for i in range(tries):
            t.session(name, check=False).started.final(10)
            if name == "no":
                t.daemon.wait_log("child_failed", "server=no ", *words)
            else:
                t.daemon.wait_log("server_failing", "server=%s try=%d " % (name, i + 1), "next_try_ms=", *words)
        once = (" server_is_root ", " server_era ", " start_slow ")
        lines = [l for l in t.daemon.lines if "server=%s " % name in l + " " and not any(e in l for e in once)]
        ok(len(lines) == tries or name == "no", "lines of " + name, lines)
    t.daemon.process.send_signal(signal.SIGHUP)  # its line comes after all that were to come
    t.daemon.wait_log("reload_used")
    eq(t.daemon.log("session_end"), [], "sessions that never began")


@case(servers={"gone": {"command": "/nonexistent/x", "start": {"backoff": "50ms..50ms", "give_up_after": 100}}}, own=True)
def missing_command_is_said_once(t):
    """BACK-PROC-06: that there is no such command is one line, each try another."""
    for i in range(3):
        unavailable(t, "gone")
        t.daemon.wait_log("server_failing", "server=gone try=%d " % (i + 1), "No such file")
    eq(len(t.daemon.log("child_spawn_failed")), 1, "child_spawn_failed")


def looked(t, name, event):
    return wait_for(lambda: next((line for line in t.daemon.lines if " %s " % event in line and "server=%s " % name in line), None), 8, event + " of " + name)


TRIED = {"good": {"script": {}, "start": {"try": True}},
         "slow": {"script": {"init": [["sleep", 1], ["answer"]]}, "start": {"try": True}},
         "modern": {"script": {"era": "modern"}, "start": {"try": True}},
         "bare": {"script": {"caps": {}}, "start": {"try": True}},
         "unlisted": {"script": {"on": {"tools/list": [["error", -32000, "no"]]}}, "start": {"try": True}},
         "asks": {"script": {"initialized": [["ask", "r", "roots/list"]]}, "start": {"try": True}},
         "dies": {"script": {"start": [["stderr", "no key\n"], ["exit", 3]]}, "start": {"try": True, "backoff": "10s..60s"}},
         "untried": {}}


@case(servers=TRIED, own=True, deadline=30)
def servers_are_tried_at_the_start(t):
    """product §2 BACK-ERA-05: start.try starts a server once with the daemon; the log says what it is, or that it fails; nothing stays."""
    line = looked(t, "good", "server_found")
    ok(re.search(r" name=scripted version=1 revision=2025-11-25 tools=2 start_ms=\d+$", line), "what it is", line)
    ok("revision=2026-07-28 tools=2 " in looked(t, "modern", "server_found"), "of the modern era")
    ok("tools=0 " in looked(t, "bare", "server_found"), "without tools")
    ok("tools=2 " in looked(t, "asks", "server_found"), "one that asks something")
    ok("answered with an error" in looked(t, "unlisted", "server_unlisted"), "its list")
    looked(t, "dies", "server_failing")
    looked(t, "slow", "server_found")
    wait_for(lambda: not t.daemon.children(), 8, "their ends")
    eq([t.daemon.started(name) for name in TRIED], [1, 1, 2, 1, 1, 1, 1, 0], "processes")
    eq(t.session("good").echo("x"), "x", "it serves")


@case(servers={"slow": TRIED["slow"]}, config={"log": {"format": "json"}}, own=True, deadline=20)
def who_comes_while_a_server_is_tried(t):
    """product §2: a client that comes while its server is started for the first time waits for that, and gets a process then."""
    waiting = t.session("slow", check=False)
    wait_for(lambda: t.daemon.started("slow") == 1, 5, "the first process")
    time.sleep(0.3)
    eq(t.daemon.started("slow"), 1, "one at a time")
    waiting.result = waiting.started.final(10)
    waiting.take_id()
    waiting.notify("notifications/initialized")
    eq(waiting.echo("x"), "x")
    eq(t.daemon.started("slow"), 2, "its own")
    wait_for(lambda: any('"event":"server_found"' in l for l in t.daemon.lines), 8, "server_found")


@case(servers={"s%d" % i: {"script": {"init": [["sleep", 1], ["answer"]]}, "start": {"try": True}} for i in range(7)},
      config={"log": {"format": "json"}}, own=True, deadline=30)
def few_servers_are_tried_at_once(t):
    """product §2: four at a time; the server of a client that comes meanwhile is next."""
    count = lambda: [t.daemon.started("s%d" % i) for i in range(7)]
    wait_for(lambda: sum(count()) == 4, 5, "the first four")
    eq(count(), [1, 1, 1, 1, 0, 0, 0])
    waiting = t.session("s6", check=False)
    wait_for(lambda: t.daemon.started("s6") == 1, 1, "that of the client, before one of the four has answered")
    most, found = 0, lambda: len([l for l in t.daemon.lines if '"event":"server_found"' in l])
    while found() < 7:
        most = max(most, sum(len(t.daemon.children("s%d" % i)) > 0 for i in range(6)))
        time.sleep(0.02)
    ok(most <= 5, "at once", most)  # one may be on its way out
    waiting.result = waiting.started.final(10)
    waiting.take_id()


@case(servers={"silent": {"script": {"init": []}, "start": {"try": True}}}, config={"log": {"format": "json"}}, own=True)
def stops_while_a_server_is_tried(t):
    """REL-41: a daemon that stops while a server is tried leaves nothing."""
    wait_for(lambda: t.daemon.children("silent"), 5, "the process")
    t.daemon.term()
    eq(t.daemon.wait(10), 0)
    eq(t.daemon.leftovers(), [], "leftovers")


@case(daemon=False)
def one_command_is_tried(t):
    """product §2: the server of the command line is tried; one that fails leaves the gateway serving."""
    t.start(args=["--listen", "127.0.0.1:0", "--name", "one", "--"] + child_argv({}))
    ok("tools=2 " in looked(t, "one", "server_found"), "what it is")
    t.start(args=["--listen", "127.0.0.1:0", "--name", "one", "--"] + child_argv({"start": [["exit", 3]]}))
    t.daemon = t.daemons[-1]
    looked(t, "one", "server_failing")
    eq(t.daemon.process.poll(), None, "it serves")


def ready_line(t, name):
    return wait_for(lambda: next((l for l in t.daemon.lines if l.startswith("mcpgated: ready: %s " % name)), None), 8, "ready " + name)


LOOKED = {"good": (TRIED["good"], r" \(scripted 1, 2 tools\)"), "bare": (TRIED["bare"], r" \(scripted 1, 0 tools\)"),
          "unlisted": (TRIED["unlisted"], r" \(scripted 1\)"), "dies": (TRIED["dies"], r" \(fails to start, see the log\)"),
          "strange": ({"script": {"info": {"name": "x\n\x1b[31m\u202eat http://evil/" + "n" * 500, "version": "\u0007"}}, "start": {"try": True}},
                      r" \(x\\u000a\\u001b\[31m\\u202eat http://evil/n{20,60}\.\.\. \\u0007, 2 tools\)"),
          "untried": ({}, r" \(not tried yet\)")}


@case(servers={name: server for name, (server, _) in LOOKED.items()}, own=True, deadline=20)
def ready_says_what_was_found(t):
    """product §2 REL-48: the line that says where a server is has what it is, in few words, and bent by nobody."""
    for name, (_, words) in LOOKED.items():
        ok(re.fullmatch(r"mcpgated: ready: %s%s at http://127\.0\.0\.1:\d+/%s/mcp" % (name, words, name), ready_line(t, name)), name, ready_line(t, name))
        eq(len([l for l in t.daemon.lines if l.startswith("mcpgated: ready: %s " % name)]), 1, "once")


@case(daemon=False, deadline=20)
def ready_does_not_wait_for_long(t):
    """product §2 REL-52: a server that takes its time delays the line for two seconds, and systemd and probes not at all."""
    path = os.path.join(t.directory(), "notify")
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(10)
    d = t.start({"silent": {"script": {"init": []}, "start": {"try": True}}}, env={"NOTIFY_SOCKET": path}, wait=False)
    ok(heard.recv(200).startswith(b"READY=1"), "READY=1")
    began = time.monotonic()
    ok(not any("mcpgated: ready" in l for l in d.lines), "it waits")
    d.wait_ready()
    ok(1.5 < time.monotonic() - began < 6 * harness.SLOW, "seconds", time.monotonic() - began)
    ok(re.fullmatch(r"mcpgated: ready: silent \(no answer yet\) at \S+", ready_line(t, "silent")), "what is known", ready_line(t, "silent"))


@case(daemon=False)
def stops_before_it_is_announced(t):
    """REL-41: a stop while the line still waits is a stop."""
    d = t.start({"silent": {"script": {"init": []}, "start": {"try": True}}}, wait=False)
    wait_for(lambda: d.log("gateway_ready"), 8, "gateway_ready")
    d.term()
    eq(d.wait(10), 0)


@case(deadline=25, servers={"main": {}, "loop": {"script": {"start": [["exit", 1]]}, "start": {"backoff": "500ms..2s", "give_up_after": 3}}})
def crash_loop_backs_off(t):
    """BACK-PROC-04 REL-29: starts are spaced out; callers get quick errors; others are unaffected."""
    main = t.session("main")
    started, attempts = time.monotonic(), 0
    while time.monotonic() - started < 6:
        seconds, _ = unavailable(t, "loop")
        attempts += 1
        ok(seconds < 6, "seconds", seconds)
        eq(main.ask("ping")["result"], {})
        time.sleep(0.05)
    ok(t.daemon.started("loop") <= 14, "starts in 6 s", t.daemon.started("loop"))
    ok(attempts >= 3, "attempts", attempts)
    t.daemon.wait_log("server_failing", "loop")


@case(daemon=False)
def backend_recovers(t):
    """BACK-PROC-04: after the cause is gone the server is started again."""
    t.start({"main": {"command": "/bin/sh", "args": ["-c", "test -e flag && exec \"$@\"; exit 1", "sh"] + child_argv({}),
                      "start": {"backoff": "200ms..500ms", "give_up_after": 2}}})
    unavailable(t, "main")
    unavailable(t, "main")
    open(os.path.join(t.daemon.dir, "flag"), "w").close()
    time.sleep(0.6)

    def again():
        s = t.session("main", check=False)
        s.started.rest()
        s.id = s.started.response.header("mcp-session-id")
        return s.id and s
    s = wait_for(again, 5, "a session")
    eq(s.echo("x"), "x")


@case
def exit_in_a_call(t):
    """REL-28 bridging 4: -32603 child_exited at once; the session goes on with a fresh process."""
    s = t.session()
    for status in (0, 1, 42):
        pid = s.pid()
        started = time.monotonic()
        e = s.start_do(["exit", status])
        answer = e.final()
        eq((e.status, answer["id"], answer["error"]["code"]), (200, e.id, -32603))
        eq(answer["error"]["data"]["reason"], "child_exited")
        within(started, 1)
        eq(s.echo("again"), "again")
        ok(s.pid() != pid, "same process")


@case
def killed_in_a_call(t):
    """REL-28: death by a signal, with a committed stream and several calls: each ends once."""
    s = t.session()
    calls = [s.start_do(["progress", 1], ["wait_cancel"], token=i) for i in range(4)]
    for e in calls:
        e.next()
    os.kill(t.daemon.children("main")[0], signal.SIGKILL)
    for e in calls:
        answers = e.rest()
        eq([(m["id"], m["error"]["data"]["reason"]) for m in answers], [(e.id, "child_exited")])
    eq(s.echo("again"), "again")


@case
def answers_before_death_count(t):
    """REL-28: what the child wrote before it died is delivered first."""
    for _ in range(8):
        s = t.session()
        e = s.start_do(["progress", 1], ["text", "last words"], ["exit", 1], token=1)
        first, last = e.next(), e.final()
        eq(first.get("method"), "notifications/progress")
        ok("result" in last and last["result"]["content"][0]["text"] == "last words", "answer", last)


@case
def respawn_replays_the_session(t):
    """bridging 4: the new process gets the stored initialize, the level and the subscriptions; list_changed follows."""
    s = t.session("main", mcp.C, {"roots": {}}, info={"name": "me", "version": "9"})
    g = s.get()
    s.ask("logging/setLevel", {"level": "error"})
    s.ask("resources/subscribe", {"uri": "res://a"})
    s.ask("resources/subscribe", {"uri": "res://b"})
    s.ask("resources/unsubscribe", {"uri": "res://b"})
    first = t.daemon.messages(s.pid())[0]
    s.do(["exit", 1])
    s.echo("again")
    seen = t.daemon.messages(s.pid())
    eq(seen[0]["params"], first["params"], "initialize")
    eq(seen[1]["method"], "notifications/initialized")
    asked = {m["method"]: m["params"] for m in seen if m.get("method") in ("logging/setLevel", "resources/subscribe")}
    eq(asked.get("logging/setLevel", {}).get("level"), "error")
    eq(asked.get("resources/subscribe", {}).get("uri"), "res://a")
    news = sorted(g.next()["method"] for _ in range(3))
    eq(news, ["notifications/%s/list_changed" % x for x in ("prompts", "resources", "tools")])


@case
def question_of_a_dead_child(t):
    """bridging 4: questions of a child that died are cancelled at the client."""
    s = t.session("main", mcp.C, {"roots": {}})
    e = s.start_do(["send", "q", "roots/list"], ["sleep", 0.2], ["exit", 1])
    asked = e.next()
    messages = e.rest()
    cancels = [m for m in messages if m.get("method") == "notifications/cancelled"]
    eq([m["params"]["requestId"] for m in cancels], [asked["id"]])
    eq(messages[-1]["error"]["data"]["reason"], "child_exited")
    s.respond(asked["id"], {"roots": []})
    s.echo("again")
    ok(b"roots" not in t.daemon.record(s.pid()).split(b"again")[-1], "old answer at the new child")


@case
def dead_while_idle(t):
    """REL-28: a child that dies between calls is replaced for the next call."""
    s = t.session()
    pid = s.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: pid not in processes(), 3, "reaping")
    t.daemon.wait_log("child_failed", "pid=%d " % pid)
    eq(s.echo("again"), "again")


@case(deadline=20)
def too_many_restarts_end_the_session(t):
    """bridging 4: more than 3 restarts in 5 minutes: the session is terminated, 404."""
    s = t.session()
    statuses = []
    for _ in range(8):
        e = s.post(mcp.request(1, "tools/call", s.do_params([["exit", 1]])))
        statuses.append(e.status)
        if e.status == 404:
            break
    ok(404 in statuses and len(statuses) >= 4, "statuses", statuses)
    s.id = None


@case
def closed_stdout_is_death(t):
    """REL-27: stdout closed while the process lives: the call fails within a second, the child is ended."""
    s = t.session()
    pid = s.pid()
    started = time.monotonic()
    answer = s.do(["close_stdout"], ["sleep", 60])
    eq(answer["error"]["data"]["reason"], "child_exited")
    within(started, 1.5)
    wait_for(lambda: not is_alive(pid), 5, "end of the child")
    eq(s.echo("again"), "again")


@case
def closed_stdin_is_death(t):
    """REL-27: stdin closed: the next call fails quickly and the child is replaced."""
    s = t.session()
    pid = s.pid()
    s.do(["text", "x"], ["close_stdin"])
    time.sleep(0.1)
    started = time.monotonic()
    answer = s.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    ok("result" in answer or answer["error"]["data"]["reason"] == "child_exited", "answer", answer)
    within(started, 2)
    wait_for(lambda: not is_alive(pid), 5, "end of the child")
    eq(s.echo("again"), "again")


@case(deadline=60, servers={"main": {}, "other": {}})
def child_that_stops_reading(t):
    """REL-26 BACK-FRAME-07 DEF-18: a full stdin never blocks; calls fail, the child is replaced, others go on."""
    s, other = t.session(), t.session("other")
    pid = s.pid()
    s.do(["text", "x"], ["deaf"])
    big = "z" * (3 << 20)
    calls = [s.start("tools/call", {"name": "echo", "arguments": {"text": big}}) for _ in range(4)]
    started = time.monotonic()
    eq(other.echo("x"), "x")
    within(started, 2, "neighbour waited")
    for e in calls:
        answer = e.final(45)
        eq(answer["error"]["code"], -32603)
        ok(answer["error"]["data"]["reason"] in ("timeout", "overloaded", "child_exited"), "reason", answer)
    wait_for(lambda: not is_alive(pid), 5, "end of the child")
    eq(s.echo("again"), "again")


@case
def full_stdout_while_stdin_is_full(t):
    """BACK-FRAME-07: stdout is drained while stdin is backed up: no deadlock."""
    s = t.session()
    steps = [["fill", '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"%s"}}\n' % ("d" * 900), 3000], ["text", "x"]]
    calls = [s.start_do(*steps) for _ in range(3)]
    big = "z" * (1 << 20)
    more = [s.start("tools/call", {"name": "echo", "arguments": {"text": big}}) for _ in range(3)]
    for e in more:
        eq(e.final()["result"]["content"][0]["text"], big)
    for e in calls:
        e.close()


@case
def stderr_is_drained_and_logged(t):
    """BACK-PROC-01 REL-31: 16 MiB of stderr block nothing; it never marks a child as failed."""
    s = t.session()
    pid = s.pid()
    eq(s.do_text(["stderr", "E" * 1023 + "\n", 16 << 10], ["text", "x"]), "x")
    eq(s.do_text(["stderr", "no newline at all ", 100000], ["text", "x"]), "x")
    eq(s.pid(), pid)
    s.do(["stderr", "\nremember this line\n"], ["text", "x"])
    wait_for(lambda: any("remember this line" in l["text"] for l in get(t, "/logs?server=main")["lines"]), 3, "the line")


@case
def stderr_is_sanitised(t):
    """REL-31 REL-48 BACK-PROC-01: control characters and forged log lines of a child stay inside a value."""
    s = t.session()
    fake = "\x1b[31m2026-01-01T00:00:00Z error gateway_give_up pid=1\r\x07\n"
    s.do(["stderr", fake], ["text", "x"])
    wait_for(lambda: any("gateway_give_up" in l for l in t.daemon.lines), 3, "line in the log")
    for line in t.daemon.lines:
        if "gateway_give_up" in line:
            eq(line.split()[2], "child_stderr", line)
            ok(not any(c in line for c in "\x1b\x07\r"), "raw control", line)


@case
def ladder_of_shutdown(t):
    """BACK-PROC-02 REL-30: stdin is closed first, then SIGTERM, then SIGKILL, to the whole group."""
    for server, words in (("main", ["eof"]), ("slow_exit", ["eof", "term"]), ("stubborn", ["eof", "term"])):
        s = t.session(server)
        pid = s.pid()
        s.delete()
        s.id = None
        wait_for(lambda: not is_alive(pid), 5, "end of " + server)
        eq([w for _, w in t.daemon.life(pid) if w in ("eof", "term")], words, server)


@case
def grandchildren_end_with_the_child(t):
    """REL-30 BACK-PROC-02: a grandchild in the group, deaf to SIGTERM, is killed with it."""
    s = t.session("stubborn")
    s.do(["grandchild", 60], ["text", "x"])
    grandchild = wait_for(t.daemon.grandchildren, 3, "grandchild")[-1]
    s.delete()
    s.id = None
    wait_for(lambda: not is_alive(grandchild), 5, "end of the grandchild")


@case
def grandchild_holds_the_pipe(t):
    """REL-28: the child's death is noticed although a grandchild keeps its stdout open."""
    s = t.session()
    started = time.monotonic()
    answer = s.do(["grandchild", 60], ["sleep", 0.1], ["exit", 1])
    eq(answer["error"]["data"]["reason"], "child_exited")
    within(started, 2)
    eq(s.echo("again"), "again")
    grandchild = t.daemon.grandchildren()[-1]
    wait_for(lambda: not is_alive(grandchild), 6, "end of the grandchild")


@case(deadline=20, daemon=False)
def escaped_grandchildren_end_with_the_daemon(t):
    """REL-30: a double fork into a session of its own does not outlive the daemon."""
    d = t.start({"main": {}})
    s = t.session()
    s.do(["grandchild", 60, True], ["text", "x"])
    grandchild = wait_for(d.grandchildren, 3, "grandchild")[-1]
    s.delete()
    s.id = None
    d.term()
    eq(d.wait(), 0)
    wait_for(lambda: not is_alive(grandchild), 3, "end of the grandchild")


@case
def nothing_is_inherited(t):
    """BACK-PROC-03 REL-32: own group, three descriptors, default signals, nothing of the daemon."""
    before = set(processes())
    s = t.session()
    probe = s.probe()
    foreign = {fd: to for fd, to in probe["fds"].items() if int(fd) > 2 and fd not in probe["own_fds"]
               and "/proc/" not in to and "/fd" not in to}
    eq(foreign, {}, "descriptors")
    ok(all(probe["fds"][str(i)].startswith("pipe:") for i in range(3)), "standard streams", probe["fds"])
    eq(probe["pgid"], probe["pid"], "process group")
    eq(probe["ppid"], t.daemon.pid, "parent is the keeper")
    ok(probe["pid"] not in before, "new process")
    status = probe["status"]
    eq(status["SigBlk"], "0000000000000000", "blocked signals")
    pipe = 1 << (signal.SIGPIPE - 1)
    ok(not int(status["SigIgn"], 16) & ~(pipe | 1 << (signal.SIGXFSZ - 1)), "ignored signals", status["SigIgn"])
    eq(status.get("NoNewPrivs"), "1", "no_new_privs")


@case(daemon=False)
def environment_is_minimal(t):
    """BACK-PROC-03 SEC-60 DEF-09: listed variables only; nothing of the daemon's environment leaks."""
    secrets = {"SECRET_TOKEN": "s3cret", "LISTEN_PID": "1", "WATCHDOG_USEC": "9000000", "CREDENTIALS_DIRECTORY": "/run/x",
               "PASSED": "yes", "LD_PRELOAD": ""}
    t.start({"main": {"script": {}, "env": {"OWN": "value with spaces = and \u00e9"}, "inherit_env": ["PATH", "PASSED"],
                      "cwd": "/"}}, env=secrets)
    probe = t.session().probe()
    environ = dict(e.split("=", 1) for e in probe["environ"])
    eq(environ["OWN"], "value with spaces = and \u00e9")
    eq(environ["PASSED"], "yes")
    eq(sorted(set(environ) - {"LC_CTYPE"}), ["OWN", "PASSED", "PATH"])
    eq(probe["cwd"], "/")


@case(daemon=False)
def rotated_secrets_reach_the_next_process(t):
    """AUTH-DWN-05: what is in the file when a process starts; what cannot be read again stays as it was, and is told."""
    path = os.path.join(t.directory(), "secret")

    def write(text):
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def secret():
        return dict(e.split("=", 1) for e in t.session().probe()["environ"])["API_TOKEN"]
    write("first\n")
    t.start({"main": {"script": {}, "env": {"API_TOKEN": {"file": path}, "MODE": "fast"}}})
    kept = t.session()
    eq(secret(), "first")
    write("second, and longer")
    eq((secret(), secret()), ("second, and longer", "second, and longer"))
    eq(dict(e.split("=", 1) for e in kept.probe()["environ"])["API_TOKEN"], "first", "a process that was there before")
    write("")
    eq(secret(), "second, and longer")
    t.daemon.wait_log("secret_stays", "server=main", "variable=API_TOKEN", "is empty")
    os.unlink(path)
    eq(secret(), "second, and longer")
    os.mkfifo(path)
    eq(secret(), "second, and longer", "nobody writes into it")
    os.unlink(path)
    write("third")
    eq(secret(), "third")


@case
def token_never_reaches_a_child(t):
    """FRONT-SEC-06 SEC-08: Authorization, cookies and session id are in no line and no environment of a child."""
    s = t.session()
    s.ask("tools/call", {"name": "echo", "arguments": {}}, extra=[("Authorization", "Bearer t0psecret"), ("Cookie", "c=t0psecret")])
    probe = s.probe()
    data = t.daemon.record(probe["pid"]).decode() + str(probe["environ"]) + str(probe["argv"])
    ok("t0psecret" not in data, "token at the child")
    ok(s.id not in data, "session id at the child")
    ok(not any("t0psecret" in l for l in t.daemon.lines), "token in the log")


@case
def no_zombies(t):
    """REL-32: ended children are reaped at once."""
    pids = []
    for _ in range(5):
        s = t.session()
        pids.append(s.pid())
        s.delete()
        s.id = None
    wait_for(lambda: not [p for p in pids if p in processes()], 4, "reaping of all children")


@case(deadline=40)
def deaths_at_random_moments(t):
    """REL-28 bridging I3: children killed at random points: every call ends exactly once."""
    for round_number in range(25):
        s = t.session()
        pid = s.pid()
        calls = [s.start_do(["sleep", 0.002 * i], ["text", "a"]) for i in range(6)]
        time.sleep(0.0008 * (round_number % 13))
        os.kill(pid, signal.SIGKILL)
        for e in calls:
            messages = e.rest()
            eq(len(messages), 1, "answers")
            ok("result" in messages[0] or messages[0]["error"]["data"]["reason"] == "child_exited", "answer", messages)
            e.close()
        s.delete()
        s.id = None


@case(config={"log": {"level": "info"}})
def spawns_are_logged(t):
    """FRONT-SEC-08: every start and end of a child is a line at the default level."""
    s = t.session()
    pid = s.pid()
    s.delete()
    s.id = None
    t.daemon.wait_log("child_start", "pid=%d" % pid, "server=main", "start_ms=")
    t.daemon.wait_log("child_end", "pid=%d" % pid, "server=main")
