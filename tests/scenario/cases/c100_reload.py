# SPDX-License-Identifier: Apache-2.0
"""Another configuration while the daemon runs. architecture.md, "Reload"; mcpgated(1), mcpgated.yaml(5)."""
import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import c42_confine
import c75_metrics
import c95_audit
import c98_reconnect
import harness
import mcp
import wire
from c71_ctl import ctl, rows
from harness import case, eq, is_alive, merged, ok, to_yaml, wait_for

ONE, TWO = "one-token-0123456789abcdef", "two-token-0123456789abcdef"


def entry(name, token, **more):
    return dict({"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest()}, **more)


def write(t, servers=None, config=None, text=None):
    """Another file in the place of the daemon's, by rename, as tools do it."""
    d = t.daemon
    if servers is not None:
        d.servers = servers
    if config is not None:
        d.extra = config
    with open(d.file + ".new", "w") as f:
        f.write(text if text is not None else to_yaml(d.configuration()) + "\n")
    os.chmod(d.file + ".new", 0o600)
    os.rename(d.file + ".new", d.file)


def reload(t, servers=None, config=None, status=0):
    write(t, servers, config)
    return ctl(t, "reload", status=status)


def starts(t, server, **kw):
    """The status of an initialize request."""
    s = mcp.Session(t, t.daemon, server, check=False, **kw)
    status = s.started.response.status
    if status == 200:
        s.result = s.started.final(20)
        s.take_id()
        t.sessions.append(s)
    else:
        s.started.response.read()
    return status


def report(t):
    return {(s["name"], s["state"] == "retiring"): s for s in json.loads(ctl(t, "status", "--json")[0])["servers"]}


@case(daemon=False)
def servers_come_and_go(t):
    """product §4: an added server serves, a removed one is 404 for new sessions, an untouched one keeps process and session."""
    t.start({"main": {}, "old": {}})
    main, old = t.session("main"), t.session("old")
    pids = main.pid(), old.pid()
    out = reload(t, {"main": {}, "new": {}})[0]
    eq(sorted(out.splitlines()), ["added: new", "removed: old"])
    eq((main.pid(), old.pid()), pids, "processes")
    t.session("new").echo("hello")
    eq(starts(t, "old"), 404)
    eq(starts(t, "main"), 200)
    ok(("old", True) in report(t) and ("main", False) in report(t), "status", report(t).keys())
    old.delete()
    wait_for(lambda: ("old", True) not in report(t), 5, "the end of the removed server")
    t.daemon.wait_log("server_retired", "server=old")
    # And back again.
    eq(reload(t, {"main": {}, "old": {}})[0].splitlines(), ["added: old", "removed: new"])
    t.session("old").echo("again")
    eq(main.pid(), pids[0])


@case(daemon=False)
def the_first_server_comes_with_a_reload(t):
    """product §4: a configuration without a server is served, and told of; so is one whose last server was removed."""
    t.start({}, wait=False)
    t.daemon.wait_log("gateway_ready")
    t.daemon.use_url("http://%s/" % t.daemon.log("listen")[0].rpartition("address=")[2].split()[0])
    ok(any("warning: %s:" % t.daemon.file in line and "there is no server yet" in line for line in t.daemon.lines), t.daemon.lines)
    eq(t.conn().request("GET", "/readyz").status, 200)
    eq(starts(t, "main"), 404)
    eq(rows(ctl(t, "servers")[0])[1:], [])
    ok("no server has changed" in reload(t, {})[0], "of none to none")
    eq(reload(t, {"main": {}})[0], "added: main\n")
    t.session().echo("hello")
    out, err = reload(t, {})
    eq(out, "removed: main\n")
    ok("there is no server yet" in err, err)
    eq(starts(t, "main"), 404)


@case(daemon=False)
def reloads_before_there_is_a_server(t):
    """product §4: a configuration without a server, as a package installs it, is read again like any other, by SIGHUP too."""
    t.start({}, {"limits": {"processes": 7}}, wait=False)
    t.daemon.wait_log("gateway_ready")
    t.daemon.use_url("http://%s/" % t.daemon.log("listen")[0].rpartition("address=")[2].split()[0])
    eq(c75_metrics.read(t)["mcpgated_processes_max"], 7)
    t.daemon.process.send_signal(signal.SIGHUP)
    t.daemon.wait_log("reload_used", "servers=0")
    reload(t, {}, {"limits": {"processes": 9}})
    eq(c75_metrics.read(t)["mcpgated_processes_max"], 9)
    eq(len(t.daemon.log("gateway_start")), 1, "gateways")
    reload(t, {"main": {}})
    t.session().echo("hello")


@case(daemon=False, deadline=30)
def nothing_of_everything(t):
    """product §4: no servers, no tokens, no issuers, no roles, in every order: each is a configuration, and the operator is told of it."""
    oauth = {"public_url": "https://mcp.example", "auth": {"mode": "oauth", "issuers": []}}
    empty = [({}, {"auth": {"mode": "token", "tokens": []}}), ({}, oauth), ({"off": {"enabled": False}}, {"roles": {}}),
             ({}, merged(oauth, {"audit": {"to": os.path.join(t.directory(), "audit")}})), ({"main": {}}, {"auth": {"mode": "token", "tokens": []}}), ({}, {})]
    t.start({}, wait=False)
    t.daemon.wait_log("gateway_ready")
    t.daemon.use_url("http://%s/" % t.daemon.log("listen")[0].rpartition("address=")[2].split()[0])
    for servers, config in empty + empty[::-2]:
        reload(t, servers, config)
        for words in (["status"], ["status", "--json"], ["servers"], ["pins"], ["deny", "list"]):
            ctl(t, *words)
        c75_metrics.read(t)
        ok(t.conn().request("POST", "/main/mcp").status in (400, 401, 403, 404, 406, 415), "an answer")
    eq(len(t.daemon.log("gateway_start")), 1, "gateways")


@case(daemon=False)
def sessions_of_a_removed_server_have_the_drain_time(t):
    """product §4: what is left of a removed server ends after drain_timeout, with its processes."""
    t.start({"main": {}, "old": {}}, {"drain_timeout": "300ms"})
    old = t.session("old")
    pid = old.pid()
    reload(t, {"main": {}})
    wait_for(lambda: not is_alive(pid), 5, "the end of its process")
    eq(old.post(mcp.request(9, "ping")).status, 404)


@case(daemon=False)
def a_changed_server_is_another_one(t):
    """product §4: old sessions finish on the old processes, new ones get the new; status shows both."""
    t.start({"main": {"script": {}, "env": {"WHICH": "1"}}, "shared": {"script": {}, "isolation": "shared", "env": {"WHICH": "1"}}})
    env = lambda s: s.do_text([["text", "@ENV:WHICH@"]])
    first, shared = t.session(), t.session("shared")
    pids = first.pid(), shared.pid()
    out = reload(t, {"main": {"script": {}, "env": {"WHICH": "2"}}, "shared": {"script": {}, "isolation": "shared", "env": {"WHICH": "2"}}})[0]
    eq(out.splitlines(), ["changed, for new sessions: main", "changed, for new sessions: shared"])
    second, other = t.session(), t.session("shared")
    eq((first.pid(), shared.pid()), pids, "the old ones")
    ok(second.pid() != pids[0] and other.pid() != pids[1], "new processes")
    both = report(t)
    eq((both["main", True]["sessions"], both["main", False]["sessions"]), (1, 1))
    table = ctl(t, "status")[0]
    ok("retiring" in table, table)
    # Each has what it has answered itself; the name's goes on in the new one.
    answered = lambda: [report(t)["main", retiring][member] for retiring in (True, False) for member in ("answered", "errors", "failed")]
    before = answered()
    ok(0 < before[0] < before[3], before)
    second.do(["error", -32000, "no"])
    eq(answered(), [before[0], 0, 0, before[3] + 1, 1, 0])
    first.echo("x")
    eq(answered(), [before[0] + 1, 0, 0, before[3] + 2, 1, 0])
    # What a process of the old one leaves is replaced by one of the old one.
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: not is_alive(pids[0]), 5)
    wait_for(lambda: first.post(mcp.request(77, "ping")).status == 200, 5, "the old session goes on")
    first.delete()
    shared.delete()
    wait_for(lambda: not any(retiring for _, retiring in report(t)), 8, "the end of the old ones")
    wait_for(lambda: not is_alive(pids[1]), 5, "and of their processes")
    second.echo("still there")


@case(daemon=False)
def retired_servers_are_bounded(t):
    """Of one name at most 8 that are retired are kept: the sessions of the oldest end."""
    def servers(n):
        return {"main": {"script": {}, "env": {"N": str(n)}}}
    t.start(servers(0))
    sessions = [t.session()]
    for n in range(1, 11):
        reload(t, servers(n))
        sessions.append(t.session())
    wait_for(lambda: [s.post(mcp.request(5, "ping")).status for s in sessions[:2]] == [404, 404], 5, "the oldest end")
    eq([s.post(mcp.request(5, "ping")).status for s in sessions[2:]], [200] * 9)


@case(daemon=False)
def a_bad_file_changes_nothing(t):
    """product §4: every error with its place, at mcpgatectl and in the log; exit 1; the old configuration serves on."""
    t.start({"main": {}})
    t.expect_error_log("reload_refused")
    s = t.session()
    pid = s.pid()
    with open(t.daemon.file) as f:
        good = f.read()
    write(t, text=good + "\nlimits:\n  nonsense: 1\n  sessions: many\n")
    out, err = ctl(t, "reload", status=1)
    lines = good.count("\n") + 3
    ok(out == "" and "%s:%d:3: unknown key 'nonsense'" % (t.daemon.file, lines) in err and "%s:%d:13: limits.sessions" % (t.daemon.file, lines + 1) in err, err)
    ok("nothing has changed" in err, err)
    wait_for(lambda: len(t.daemon.log("reload_refused")) == 2, 3, "two lines")
    eq(s.pid(), pid)
    # By the signal, too.
    t.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(t.daemon.log("reload_refused")) == 4, 5, "the log")
    answer = json.loads(ctl(t, "reload", "--json", status=1)[0])
    eq((answer["used"], len(answer["errors"]), answer["added"]), (False, 2, []))
    write(t, text="# an editor has not written more yet\n")
    err = ctl(t, "reload", status=1)[1]
    ok("the key 'servers' is missing: to remove all servers, write 'servers: {}'" in err, err)
    eq(s.pid(), pid)
    write(t, text=good)
    eq(ctl(t, "reload")[0], "no server has changed; everything else is now as the file says\n")
    eq(s.pid(), pid)


@case(daemon=False)
def what_needs_a_restart_is_said(t):
    """product §4: the admin socket is warned of by its key; all else is used."""
    t.start({"main": {}})
    admin = t.daemon.admin
    err = reload(t, config={"admin": {"address": "unix:" + admin + ".other"}, "limits": {"sessions": 50}})[1]
    ok("warning: admin.address: the change takes effect only after a restart" in err, err)
    eq(json.loads(ctl(t, "status", "--json")[0])["sessions_max"], 50)
    # Where the file says again what runs, there is nothing to tell.
    ok("admin.address" not in reload(t, config={"limits": {"sessions": 51}})[1], "told of what runs")


@case(daemon=False)
def the_log_changes_its_format(t):
    """product §4: no line of the network process is taken for something else, however near to the change it was written."""
    t.start({"main": {}}, {"log": {"format": "text", "level": "debug"}})
    for form in ("json", "text") * 3:
        reload(t, config={"log": {"format": form, "level": "debug"}})
        t.session().delete()
    eq([line for line in t.daemon.lines if "gateway_output" in line], [])
    ok(any(line.startswith("{") and '"session_start"' in line for line in t.daemon.lines), "a line in JSON")


@case(daemon=False)
def root_is_told_once(t):
    """SEC-61 product §4: a reload says of new servers alone that they run as root."""
    if os.getuid() != 0:
        raise harness.Skip("this is not root")
    t.start({"main": {}})
    t.session().echo("x")
    reload(t, {"main": {"env": {"A": "1"}}, "more": {}})
    t.daemon.wait_log("server_is_root", "server=more")
    reload(t, {"main": {"env": {"A": "1"}}, "more": {}}, {"limits": {"sessions": 52}})
    t.daemon.wait_log("server_is_root", "server=main")
    eq([re.search(r"server=(\S+)", line)[1] for line in t.daemon.log("server_is_root")], ["main", "more"])


def shown_audit(t):
    return json.loads(ctl(t, "status", "--json")[0])["audit"]


@case(daemon=False, deadline=20)
def the_audit_goes_elsewhere(t):
    """product §4 SEC-63: each record is in one of the files, by the next gateway as well; calls that need one have it there."""
    files = [c95_audit.Records(os.path.join(t.directory(), name)) for name in ("one", "two")]
    t.start({"main": {}}, {"audit": {"to": files[0].path}})
    t.expect_error_log("gateway_exit")
    s = t.session()
    s.echo("1")
    out, err = reload(t, config={"audit": {"to": files[1].path, "required": True}})
    eq((out, "warning" in err), ("no server has changed; everything else is now as the file says\n", False), err)
    t.daemon.wait_log("audit_moved", "to=" + files[1].path)
    eq(shown_audit(t)["required"], True)
    s.echo("2")
    echoes = lambda records: sum(r.get("tool") == "echo" and r["event"] == "end" for r in records.all())
    wait_for(lambda: echoes(files[1]) == 1, 5, "its record")
    eq(echoes(files[0]), 1, "records in the file before")
    os.kill(t.daemon.find_gateway(), signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 10, "the next gateway")
    t.session().echo("3")
    wait_for(lambda: echoes(files[1]) == 2, 5, "a record of the next gateway")
    eq(echoes(files[0]), 1, "records in the file before")


@case(daemon=False, deadline=20)
def the_audit_begins_and_ends(t):
    """product §4: what cannot be opened refuses the reload; a call that needs a record has one from the moment of the reload on."""
    records = c95_audit.Records(os.path.join(t.directory(), "audit"))
    t.start({"main": {}})
    s = t.session()
    err = reload(t, config={"audit": {"to": records.path + "/none"}}, status=1)[1]
    ok(re.search(r"\.yaml:\d+: audit\.to: cannot open the audit file", err), err)
    t.expect_error_log("reload_refused")
    eq(shown_audit(t), None)
    reload(t, config={"audit": {"to": records.path, "required": True}})
    s.echo("1")
    # The gateway has written it before the answer; the keeper brings it to the file some milliseconds later.
    wait_for(lambda: any(r.get("tool") == "echo" and r["event"] == "begin" for r in records.all()), 5, "the record of its beginning")
    wait_for(lambda: any(r["event"] == "end" for r in records.all()), 5, "its end")
    reload(t, config={})
    eq(shown_audit(t), None)
    before = len(records.all())
    s.echo("2")
    reload(t, config={"audit": {"to": records.path}})
    s.echo("3")
    wait_for(lambda: len(records.all()) > before, 5, "the next record")
    eq(len(records.all()), before + 1, "records: %r" % records.all()[before:])


@case(daemon=False)
def the_log_goes_elsewhere(t):
    """product §4: from the moment of the reload on, in the words of all processes; what cannot be opened refuses the reload."""
    path = os.path.join(t.directory(), "log")
    t.start({"main": {}})
    err = reload(t, config={"log": {"target": path + "/none/log"}}, status=1)[1]
    ok(re.search(r"\.yaml:\d+: log\.target: cannot open the log file", err), err)
    t.expect_error_log("reload_refused")
    reload(t, {"main": {}, "other": {}}, config={"log": {"target": path}})
    t.daemon.wait_log("log_moved", "to=" + path)
    t.session("other").echo("x")
    lines = lambda: open(path).read().splitlines()
    wait_for(lambda: any("session_start" in line for line in lines()), 5, "what the gateway says")
    ok(any("log_reopened" in line for line in lines()), lines())
    reload(t, {"main": {}}, config={})
    ok("log_moved" in lines()[-1] and lines()[-1].endswith("to=stderr"), lines()[-1])
    t.daemon.wait_log("log_reopened", "file=stderr")


@case(daemon=False)
def a_token_is_taken_away(t):
    """AUTH-SES-07 AUTH-TOK-04: what is open for it ends, processes too, it gets 401; the sessions of others go on; one that comes is good at once."""
    t.start({"main": {}}, {"auth": {"mode": "token", "tokens": [entry("one", ONE), entry("two", TWO)]}})
    one, two = t.session(token=ONE), t.session(token=TWO)
    stream = one.get()
    pid, gone = two.pid(), one.pid()
    ok(harness.is_alive(gone), gone)
    reload(t, config={"auth": {"mode": "token", "tokens": [entry("two", TWO)]}})
    eq(stream.reader.next(5), None, "its stream has ended")
    harness.wait_for(lambda: not harness.is_alive(gone), what="the end of its process")
    eq(one.post(mcp.request(1, "ping")).status, 401)
    eq(two.pid(), pid)
    # The same name with another token is another one.
    reload(t, config={"auth": {"mode": "token", "tokens": [entry("two", ONE)]}})
    eq((starts(t, "main", token=ONE), starts(t, "main", token=TWO)), (200, 401))
    eq(two.post(mcp.request(1, "ping")).status, 401)


@case(daemon=False)
def rules_hold_for_sessions_that_are_open(t):
    """product §4: what a tool list shows and a call may do changes at the next message, in processes that go on, old and new."""
    tools = {"on": {"tools/list": [["result", {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("get", "delete")]}]]}}
    t.start({"main": {"script": tools}})
    s = t.session()
    names = lambda s: [tool["name"] for tool in s.ask("tools/list")["result"]["tools"]]
    may = lambda s: "result" in s.ask("tools/call", {"name": "delete", "arguments": {}})
    pid = s.pid()
    eq((names(s), may(s)), (["get", "delete"], True))
    eq(reload(t, {"main": {"script": tools, "tools": {"deny": ["delete"]}}})[0], "changed, for all sessions: main\n")
    eq((names(s), may(s), s.pid()), (["get"], False, pid))
    # A server that is retired as well, once another one has its name.
    reload(t, {"main": {"script": tools, "tools": {"deny": ["delete"]}, "env": {"A": "1"}}})
    eq((names(s), s.pid()), (["get"], pid))
    reload(t, {"main": {"script": tools, "env": {"A": "1"}, "tools": {"deny": ["get"]}}})
    eq((names(s), names(t.session()), s.pid()), (["delete"], ["delete"], pid))


@case(daemon=False)
def roles_are_who_they_were(t):
    """SEC-56: with roles put before others, taken away and made, each token has what its roles say now."""
    tools = {"on": {"tools/list": [["result", {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("a", "b")]}]]}}

    def config(roles, token_roles):
        return {"auth": {"mode": "token", "tokens": [entry("one", ONE, roles=token_roles)]},
                "roles": {name: {"allow": {"main": [tool]}} for name, tool in roles}}
    t.start({"main": {"script": tools}}, config([("dev", "a")], ["dev"]))
    s = t.session(token=ONE)
    names = lambda: [tool["name"] for tool in s.ask("tools/list")["result"]["tools"]]
    eq(names(), ["a"])
    reload(t, config=config([("all", "*"), ("dev", "a")], ["dev"]))
    eq(names(), ["a"])
    reload(t, config=config([("all", "*"), ("dev", "b")], ["dev"]))
    eq(names(), ["b"])
    reload(t, config=config([("all", "*"), ("dev", "b")], ["all"]))
    eq(names(), ["a", "b"])
    reload(t, config=config([("ops", "a"), ("dev", "b")], ["ops"]))
    eq(names(), ["a"])


@case(daemon=False)
def a_door_is_shut_behind_who_came_without_a_token(t):
    """AUTH-SES-07: with `auth` where there was none, sessions without a token end, and new ones need one."""
    t.start({"main": {}})
    s = t.session()
    stream = s.get()
    reload(t, config={"auth": {"mode": "token", "tokens": [entry("one", ONE)]}})
    eq(stream.reader.next(5), None, "its stream has ended")
    eq((s.post(mcp.request(1, "ping")).status, starts(t, "main"), starts(t, "main", token=ONE)), (401, 401, 200))


@case(daemon=False, deadline=20)
def untouched_under_traffic(t):
    """product §4: while configurations change, no call of an untouched server is lost, and no session of it ends."""
    def servers(n):
        return {"main": {"script": {}}, "other": {"script": {}, "env": {"N": str(n)}}}
    t.start(servers(0))
    sessions = [t.session() for _ in range(4)]
    pids = [s.pid() for s in sessions]
    faults, calls, stop = [], [0], threading.Event()

    def work(s, pid):
        while not stop.is_set():
            try:
                if s.pid() != pid:
                    raise AssertionError("another process")
                calls[0] += 1
            except BaseException as e:
                faults.append(repr(e))
                return
    threads = [threading.Thread(target=work, args=(s, p)) for s, p in zip(sessions, pids)]
    for thread in threads:
        thread.start()
    for n in range(1, 9):
        reload(t, servers(n), {"limits": {"sessions": 100 + n}})
    stop.set()
    for thread in threads:
        thread.join()
    eq(faults, [])
    ok(calls[0] > 20, "calls", calls)


@case(daemon=False)
def the_next_gateway_has_the_new_one(t):
    """REL-43: a gateway that has to be started again serves what the last reload has brought."""
    t.start({"main": {}})
    t.expect_error_log("gateway_exit")
    reload(t, {"main": {}, "new": {}})
    os.kill(t.daemon.find_gateway(), signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 10, "the next gateway")
    t.session("new").echo("hello")
    eq(reload(t, {"main": {}})[0], "removed: new\n")
    eq(starts(t, "new"), 404)


@case(daemon=False)
def changed_under_http_sse(t):
    """FRONT-OLD-03: a client of HTTP+SSE goes on with the process that it has."""
    t.start({"main": {"script": {}, "env": {"N": "1"}}})
    client = t.sse()
    pid = client.pid()
    reload(t, {"main": {"script": {}, "env": {"N": "2"}}})
    eq(client.pid(), pid)
    ok(t.sse().pid() != pid, "another one")


@case(daemon=False)
def taken_up_under_http_sse(t):
    """FRONT-OLD-09 product §4: who comes back without an id, over reloads that replaced its server, has its session and process again."""
    alice = mcp.bearer("alice")
    def main(n):
        return {"main": {"script": {}, "env": {"N": n}}}
    t.start(main("1"), dict(c98_reconnect.LONG, **c98_reconnect.TOKENS))
    client = c98_reconnect.SseOf(t, alice)
    pid = client.pid()
    late = client.start_do(["sleep", 1], ["text", "for its caller"])
    c98_reconnect.lose(client)
    reload(t, main("2"))
    back = c98_reconnect.SseOf(t, alice, c98_reconnect.VERSION)
    reload(t, main("3"))
    eq(back.pid(), pid, "its first message takes it up")
    eq(back.wait_answer(late)["result"]["content"][0]["text"], "for its caller")
    c98_reconnect.lose(back)
    again = c98_reconnect.SseOf(t, alice, c98_reconnect.VERSION)
    late = again.start_do(["text", "x"])
    eq(again.wait_answer(late)["result"]["content"][0]["text"], "x")
    eq(again.pid(), pid, "it need not say anything")
    again.notify("notifications/x")
    fresh = c98_reconnect.SseOf(t, alice)
    ok(fresh.pid() != pid, "a new one has a new process")


@case(daemon=False)
def begun_over_a_reload_under_http_sse(t):
    """FRONT-OLD-03 product §4: a client whose stream began before its server was replaced, and its session after, is served by the new one."""
    def main(n):
        return {"main": {"script": {}, "env": {"N": n}}}
    t.start(main("1"), c98_reconnect.LONG)
    new, returning = t.sse(begin=False), t.sse(begin=False, extra=[c98_reconnect.VERSION])
    reload(t, main("2"))
    ok("result" in new.ask("initialize", mcp.initialize(mcp.A)["params"]), "initialize")
    new.notify("notifications/initialized")
    eq(new.do_text(["text", "x"]), "x")
    wait_for(lambda: returning.post(mcp.request("a", "ping")).status == 202, what="the session")
    eq(returning.next(), {"jsonrpc": "2.0", "id": "a", "result": {}})
    eq({s["state"] for s in json.loads(ctl(t, "status", "--json")[0])["servers"] if s["processes"]}, {"ready"})


@case(daemon=False)
def included_files(t):
    """product §4: conf.d/*.yaml beside the file: servers and tokens are added; a name twice is refused with both places."""
    t.start({"main": {}}, {"auth": {"mode": "token", "tokens": [entry("one", ONE)]}, "include": ["conf.d/*.yaml"]})
    t.expect_error_log("reload_refused")
    path = os.path.join(t.daemon.dir, "conf.d")
    os.mkdir(path, 0o700)

    def put(name, value, mode=0o600):
        with open(os.path.join(path, name), "w") as f:
            f.write(to_yaml(value) + "\n")
        os.chmod(os.path.join(path, name), mode)
    argv = harness.child_argv({}, "more", t.daemon.records)
    more = {"servers": {"more": {"command": argv[0], "args": argv[1:]}}, "auth": {"tokens": [entry("two", TWO)]}}
    put("a.yaml", more)
    put("ignored.txt", {"nonsense": 1})
    eq(ctl(t, "reload")[0], "added: more\n")
    t.session("more", token=TWO).echo("hello")
    put("b.yaml", more)
    err = ctl(t, "reload", status=1)[1]
    b, a = os.path.join(path, "b.yaml"), os.path.join(path, "a.yaml")
    ok("%s:2:3: the server 'more' is already defined in %s:2:3" % (b, a) in err, err)
    ok("the token 'two' is already defined in %s:" % a in err, err)
    put("b.yaml", {"limits": {"sessions": 5}})
    err = ctl(t, "reload", status=1)[1]
    ok("%s:1:1: an included file may have only servers, endpoints, auth.tokens and auth.issuers" % b in err, err)
    put("b.yaml", {"servers": {"c": {"command": argv[0], "args": argv[1:]}}}, 0o620)
    ok("%s: is writable by group or others, but only its owner may write to it" % b in ctl(t, "reload", status=1)[1], "mode")
    os.unlink(b)
    os.unlink(a)
    eq(ctl(t, "reload")[0], "removed: more\n")
    write(t, config={"auth": t.daemon.extra["auth"], "include": ["missing.yaml"]})
    ok("missing.yaml: there is no such file" in ctl(t, "reload", status=1)[1], "a name")


@case(daemon=False)
def records_and_numbers_go_on(t):
    """SEC-63, product §3: a record names the line where its rule stands now; counters of a name never fall, whatever server has it."""
    tool = {"on": {"tools/list": [["result", {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}]]}}
    main = lambda deny, **env: {"script": tool, "tools": {"deny": deny}, "env": env}
    records = c95_audit.Records(os.path.join(t.directory(), "audit"))
    t.start({"main": main(["b_*"])}, {"audit": {"to": records.path}})
    ended = lambda: c75_metrics.series(c75_metrics.read(t), "mcpgated_calls_ended_total", server="main", tool="echo")["method=tools/call,status=ok"]
    sums = lambda: [sum(c75_metrics.series(c75_metrics.read(t), "mcpgated_" + name, server="main").values())
                    for name in ("refusals_total", "server_process_starts_total", "call_duration_seconds_count", "answer_seconds_count")]
    lines = []

    def refused(s, name, rule):
        records.fresh()
        ok("error" in s.ask("tools/call", {"name": name, "arguments": {}}), "refused", name)
        record = records.wait("refusal", 1, name)[0]
        at = c95_audit.line_of(t, "  main:", "deny:")
        eq([record.get(k) for k in ("tool", "rule", "rule_at")], [name, rule, at], record)
        ok("%s\n" % at in ctl(t, "can", "anonymous", "main", name, status=1)[0], "can")
        lines.append(at)

    def call(s, count):
        s.echo("x")
        wait_for(lambda: any((r["event"], r.get("tool"), r["verdict"]) == ("end", "echo", "allowed") for r in records.fresh()), 5, "its record")
        eq(ended(), count)
    first = t.session()
    first.ask("tools/list")
    call(first, 1)
    refused(first, "b_x", "servers.main.tools.deny[0]")
    before = sums()
    # Of the rules alone, further down in the file.
    reload(t, {"a": {}, "main": main(["a_*", "b_*"])})
    refused(first, "b_x", "servers.main.tools.deny[1]")
    call(first, 2)
    # Another server of the name, beside the one that the session has.
    reload(t, {"main": main(["b_*"], N="2")})
    second = t.session()
    for count, s in enumerate((first, second, first), 3):
        call(s, count)
        refused(s, "b_x", "servers.main.tools.deny[0]")
    eq(len(set(lines)), 2, "lines")
    first.delete()
    wait_for(lambda: not any(retiring for _, retiring in report(t)), 8, "the end of the old one")
    eq(ended(), 5)
    call(second, 6)
    after = sums()
    ok(all(b <= a for b, a in zip(before, after)) and after[:2] == [5, 2], "numbers", before, after)


@case(daemon=False)
def servers_that_are_tried(t):
    """product §2: one that a reload has added is started once, too, and what it is stands in the log."""
    tried = {"script": {}, "start": {"try": True}}
    t.start({"main": {}})
    for n in range(3):
        reload(t, {"main": {}, "new-%d" % n: dict(tried, env={"N": str(n)})})
        t.daemon.wait_log("server_found", "server=new-%d" % n)
    wait_for(lambda: not t.daemon.children(), 5, "their ends")
    t.session().echo("still there")


@case(daemon=False, deadline=20)
def files_that_a_server_may_write_into_the_way(t):
    """SEC-62: a FIFO in the place of a file stops no reload, and a link that a server has made is not followed, to read or to write."""
    c42_confine.need_landlock()
    writable, foreign = t.directory(), os.path.join(t.directory(), "foreign")
    path = os.path.join(writable, "secret")
    writer = {"command": "cat", "sandbox": {"mode": "landlock", "write": [writable]}}
    refusal = lambda: ctl(t, "reload", status=1)[1]

    def put(name, text):
        with open(name, "w") as f:
            f.write(text)
        os.chmod(name, 0o600)
    put(foreign, "foreign")
    put(path, "own")
    t.start({"main": {}, "writer": writer})
    t.expect_error_log("reload_refused")
    s = t.session()
    later = {"main": {"script": {}, "env": {"TOKEN": {"file": path}}}, "writer": writer}
    os.unlink(path)
    os.mkfifo(path)
    write(t, later)
    ok("the file %s is not a regular file" % path in refusal(), "a FIFO")
    os.unlink(path)
    os.symlink(foreign, path)
    ok("the file %s goes through a symbolic link below a directory that a server may write" % path in refusal(), "a link")
    # Also where the server that may write there goes with the same reload: it runs until then.
    write(t, {"main": later["main"]})
    ok("goes through a symbolic link below" in refusal(), "a link of one that is removed")
    # Nor is anything written by such a link, or beside one.
    for name, words in (("secret", "goes through a symbolic link below a directory that a server may write to"), ("log", "'writer', as it has run until now, may write to the directory")):
        target = os.path.join(writable, name)
        for config in ({"log": {"target": target}}, {"audit": {"to": target}}):
            write(t, {"main": {}}, config)
            ok(words in refusal(), words, config)
    with open(foreign) as f:
        eq(f.read(), "foreign", "what the link leads to")
    ok(not os.path.exists(os.path.join(writable, "log")), "a file where a server writes")
    write(t, {"main": later["main"]}, {})
    os.unlink(path)
    put(path, "own")
    eq(ctl(t, "reload")[0].splitlines(), ["changed, for new sessions: main", "removed: writer"])
    ok("TOKEN=own" in t.session().probe()["environ"], "the secret")
    s.echo("still there")
    # The file itself, by SIGHUP, which nobody waits for.
    os.unlink(t.daemon.file)
    os.mkfifo(t.daemon.file)
    count = len(t.daemon.log("reload_refused"))
    t.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(t.daemon.log("reload_refused")) > count, 5, "the refusal")
    ok("is not a regular file" in t.daemon.log("reload_refused")[-1], "its text")


@case(daemon=False)
def none_during_a_drain(t):
    """product §4: who asks for a reload of a daemon that is about to stop is told so at once."""
    t.start({"main": {}})
    s = t.session()
    call = s.start("tools/call", {"name": "do", "arguments": {"steps": [["sleep", 1], ["text", "x"]]}})
    wait_for(lambda: json.loads(ctl(t, "status", "--json")[0])["calls"] == 1, 5, "the call")
    ctl(t, "drain")
    t.daemon.wait_log("drain")
    ok("draining, up for" in ctl(t, "status")[0], "status")
    ok("about to stop" in ctl(t, "reload", status=1)[1], "the refusal")
    ok(call.final(10)["result"], "the call")
    eq(t.daemon.process.wait(10), 0)


@case(daemon=False, deadline=30)
def those_that_wait_when_a_drain_begins(t):
    """product §4: orders that wait for their outcome, and those that come within drain_delay, are answered at once, not when the daemon ends."""
    t.start({"main": {}}, {"drain_delay": "1m"})
    tool = [os.path.join(harness.BIN, "mcpgatectl"), "--socket", t.daemon.admin, "reload"]
    refusals = []

    def order():  # more than are followed at once: some wait
        while True:
            done = subprocess.run(tool, capture_output=True, text=True)
            if done.returncode != 0:
                refusals.append(done.stderr)
                return
    threads = [threading.Thread(target=order) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(t.daemon.log("admin_command")) > 24, 10, "orders")
    t.daemon.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(10)
    eq(refusals, ["mcpgatectl: the daemon is about to stop\n"] * 6)
    t.daemon.process.send_signal(signal.SIGTERM)
    eq(t.daemon.process.wait(10), 0)


@case(daemon=False)
def logs_go_on_with_the_server_in_its_place(t):
    """product §4: who follows a server's standard error gets that of the one that a reload puts in its place as well."""
    t.start({"main": {"script": {}, "env": {"N": "1"}}})
    old = t.session()
    old.do(["stderr", "old\n"], ["text", ""])
    conn = t.conn(address=t.daemon.admin)
    lines = wire.EventReader(conn.request("GET", "/logs?server=main&follow=1"))
    eq(json.loads(lines.next().data)["text"], "old")
    reload(t, {"main": {"script": {}, "env": {"N": "2"}}})
    t.session().do(["stderr", "new\n"], ["text", ""])
    eq(json.loads(lines.next().data)["text"], "new")
    old.do(["stderr", "of the old one\n"], ["text", ""])
    eq(json.loads(lines.next().data)["text"], "of the old one")
    # Nor does who reads keep what has gone.
    for s in t.sessions:
        s.delete()
    wait_for(lambda: len(report(t)) == 1, 5, "the end of the retired one")
    reload(t, {"other": {}})
    eq(lines.next(), None, "the end, when there is no server of this name")
