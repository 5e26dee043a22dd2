# SPDX-License-Identifier: Apache-2.0
"""What a server is allowed: user, umask, files, network, resources. product §4, threats.md SEC-60 to SEC-62."""
import ctypes
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys

import harness
import wire
from harness import Skip, case, child_argv, eq, is_alive, ok, to_yaml, wait_for

SERVERS = {"main": {}}
SYS_LANDLOCK_CREATE_RULESET = 444
PYTHON = [os.path.realpath(sys.base_prefix), os.path.dirname(harness.CHILD)]


def landlock_version():
    return ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)


def box(**more):
    """A server in a sandbox in which the scripted child can run."""
    sandbox = dict({"mode": "landlock", "connect": [], "bind": []}, **more)
    sandbox["read"] = PYTHON + more.get("read", [])
    argv = child_argv({})
    return {"command": argv[0], "args": argv[1:], "sandbox": sandbox}


def need_landlock(version=4):
    if landlock_version() < version:
        raise Skip("the kernel's Landlock is older than version %d; see promises_are_kept_or_refused" % version)


def attempts(session, *pairs):
    return json.loads(session.do_text(["attempt", list(pairs)]))


def check(servers, directory, prefix=(), **more):
    """mcpgated -t of a file with these servers."""
    path = os.path.join(directory, "checked.yaml")
    with open(path, "w") as f:
        f.write(to_yaml(dict(more.pop("settings", {}), servers=servers)) + "\n")
    os.chmod(path, 0o644)
    program = os.path.join(more.pop("bin", harness.BIN), "mcpgated")
    return subprocess.run(list(prefix) + [program, "-t", "-c", path], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=8 * harness.SLOW, **more)


def refused(done, *words):
    eq(done.returncode, 1, "exit status of -t; " + done.stderr)
    for word in words:
        ok(word in done.stderr, "no %r in" % word, done.stderr)


def public_directory(t, *programs):
    """One that every user can enter, with copies of our programs."""
    directory = t.directory()
    os.chmod(directory, 0o755)
    beside = [name for name in os.listdir(harness.BIN) if name.startswith("mcpgated-") and "mcpgated" in programs]
    for name in [*programs, *beside]:
        if os.path.isfile(os.path.join(harness.BIN, name)):
            shutil.copy(os.path.join(harness.BIN, name), directory)
    return directory


@case(daemon=False)
def other_users_read_no_file_of_the_box(t):
    """SEC-62 SEC-03: a hostile server reads nothing but what it was given, by no way round."""
    need_landlock()
    inside, outside = t.directory(), t.directory()
    for directory in (inside, outside):
        with open(os.path.join(directory, "file"), "w") as f:
            f.write("content")
    os.symlink(os.path.join(outside, "file"), os.path.join(inside, "link"))
    secret = os.path.join(outside, "file")
    t.start({"main": box(write=[inside])})
    s = t.session()
    eq(attempts(s, ["read", os.path.join(inside, "file")], ["list", inside], ["read", "/etc/passwd"], ["read", "/dev/urandom"],
                ["read", "/proc/self/status"], ["read", "/proc/meminfo"]), ["ok"] * 6, "what is granted")
    eq(attempts(s, ["read", secret], ["list", outside], ["read", os.path.join(inside, "link")], ["read", "/etc/shadow"],
                ["list", "/root"], ["list", "/"], ["list", "/proc"], ["read", "/proc/%d/cmdline" % t.daemon.pid],
                ["read", "/proc/%d/environ" % os.getpid()], ["link", [secret, os.path.join(inside, "hard")]]),
       ["EACCES"] * 9 + ["EXDEV"], "what is not")


@case(daemon=False)
def nothing_is_written_outside(t):
    """SEC-62: writing, emptying, making, renaming and removing end at the listed directories."""
    need_landlock()
    inside, outside, read_only = t.directory(), t.directory(), t.directory()
    for directory in (inside, outside, read_only):
        with open(os.path.join(directory, "file"), "w") as f:
            f.write("content")
    t.start({"main": box(write=[inside], read=[read_only])})
    s = t.session()
    own = lambda name: os.path.join(inside, name)
    eq(attempts(s, ["write", own("file")], ["make", own("new")], ["mkdir", own("sub")], ["rename", [own("new"), own("sub/moved")]],
                ["truncate", own("file")], ["remove", own("file")], ["write", "/dev/null"]), ["ok"] * 7, "inside")
    for directory in (outside, read_only):
        path = os.path.join(directory, "file")
        # Landlock says EACCES; where the daemon can make all else read-only, that comes first.
        told = attempts(s, ["write", path], ["truncate", path], ["make", path + "2"], ["mkdir", path + "3"], ["remove", path],
                        ["write", "/proc/self/oom_score_adj"])
        ok(told in (["EACCES"] * 6, ["EROFS"] * 6), "outside", told)
        eq(attempts(s, ["rename", [path, own("stolen")]])[0] in ("EXDEV", "EACCES"), True, "moved inside")
        with open(path) as f:
            eq(f.read(), "content")


@case(daemon=False)
def programs_run_where_they_may_be_read_only(t):
    """SEC-62: what is in a directory for writing is not executed; children of the server are inside as well."""
    need_landlock()
    inside, tools = t.directory(), t.directory()
    for directory in (inside, tools):
        path = os.path.join(directory, "tool")
        with open(path, "w") as f:
            f.write("#!/bin/sh\ncat /etc/shadow >%s/stolen\ntouch %s/ran\n" % (inside, inside))
        os.chmod(path, 0o755)
    t.start({"main": box(write=[inside], read=[tools])})
    s = t.session()
    eq(attempts(s, ["run", [os.path.join(inside, "tool")]]), ["EACCES"], "from a directory for writing")
    eq(attempts(s, ["run", [os.path.join(tools, "tool")]]), ["ok"], "from one for reading")
    ok(os.path.exists(os.path.join(inside, "ran")), "the tool has run")
    eq(os.path.getsize(os.path.join(inside, "stolen")), 0, "what a child of the server could read")


@case(daemon=False)
def only_listed_ports(t):
    """SEC-62 SEC-17: TCP goes to the listed ports, and no further; so does listening."""
    need_landlock()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    good, bad = [l.getsockname()[1] for l in listeners]
    port = wire.free_port()
    t.start({"main": box(connect=[good], bind=[port]), "open": box(connect="any", bind="any"),
             "connects": box(connect=[good]), "listens": box(bind=[port])})
    eq(attempts(t.session("listens"), ["connect", good], ["bind", port]), ["EACCES", "ok"], "the one is not the other")
    eq(attempts(t.session("connects"), ["bind", port], ["connect", good]), ["EACCES", "ok"], "nor the other the one")
    s = t.session("main")
    eq(attempts(s, ["connect", good], ["bind", port]), ["ok", "ok"], "listed")
    eq(attempts(s, ["connect", bad], ["connect", t.daemon.address[1]], ["bind", 0], ["bind", good]), ["EACCES"] * 4, "not listed")
    eq(attempts(t.session("open"), ["connect", good], ["connect", bad], ["bind", 0]), ["ok"] * 3, "any")
    for l in listeners:
        l.close()


@case(daemon=False)
def others_are_out_of_reach(t):
    """SEC-61 SEC-62: a server in a sandbox signals nobody outside, whoever it runs as, and has no capability."""
    need_landlock(6)
    t.start({"main": box()})
    s = t.session()
    eq(attempts(s, ["signal", t.daemon.pid], ["signal", t.daemon.gateway], ["signal", os.getpid()], ["signal", s.pid()]),
       ["EPERM"] * 3 + ["ok"])
    status = s.probe()["status"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        eq(int(status[name], 16), 0, name)
    eq(status["NoNewPrivs"], "1")
    if os.getuid() == 0:
        eq(int(status["CapBnd"], 16), 0, "CapBnd")


@case(daemon=False)
def promises_are_kept_or_refused(t):
    """SEC-62: -t and the start refuse a sandbox that this kernel, or this machine, cannot keep."""
    directory = t.directory()
    version = landlock_version()
    done = check({"main": box()}, directory)
    if version >= 4:
        eq(done.returncode, 0, done.stderr)
    else:
        refused(done, "servers.main.sandbox", "kernel")
    gone = os.path.join(directory, "gone")
    for key in ("read", "write"):
        refused(check({"main": box(**{key: [gone]})}, directory), "servers.main.sandbox.%s" % key, gone)
    refused(check({"main": box(read=["relative"])}, directory), "absolute path")
    refused(check({"main": box(connect=[0])}, directory), "1 to 65535")
    refused(check({"main": box(connect=443)}, directory), "any")
    refused(check({"main": dict(box(), sandbox={"mode": "strict"})}, directory), "off, report, landlock")
    done = check({"main": dict(box(read=[gone]), enabled=False), "other": {"command": "/bin/cat"}}, directory)
    eq(done.returncode, 0, done.stderr)


@case(daemon=False)
def directory_that_goes_away(t):
    """SEC-62: a sandbox that cannot be made later refuses the server's start; the log says why."""
    need_landlock()
    directory = t.directory()
    lost = os.path.join(directory, "lost")
    os.mkdir(lost)
    t.start({"main": box(write=[lost]), "other": {}})
    os.rmdir(lost)
    e = t.session("main", check=False).started
    eq((e.final()["error"]["data"]["reason"], e.status), ("backend_unavailable", 503))
    t.daemon.wait_log("child_spawn_failed", "server=main", 'reason="cannot open a path of sandbox.write"')
    eq(t.session("other").echo("x"), "x")


@case(daemon=False)
def links_of_servers_are_not_followed(t):
    """SEC-62: a link that a server has put into the way of a listed path grants nothing: not to it, and not to others."""
    need_landlock()
    base, outside = t.directory(), t.directory()
    home, shared = os.path.join(base, "home"), os.path.join(base, "shared")
    for directory in (home, os.path.join(home, "cache"), shared, os.path.join(shared, "x")):
        os.mkdir(directory)
    with open(os.path.join(outside, "file"), "w") as f:
        f.write("content")
    cache = os.path.join(home, "cache")
    servers = {"main": box(write=[home], read=[cache]), "other": box(read=[os.path.join(shared, "x")]), "writer": box(write=[shared])}
    eq(check(servers, t.directory()).returncode, 0, "-t before")
    t.start(servers)
    eq(attempts(t.session(), ["list", cache], ["read", os.path.join(outside, "file")]), ["ok", "EACCES"])
    for path in (cache, os.path.join(shared, "x")):
        os.rename(path, path + ".away")
        os.symlink("/", path)
    for name in ("main", "other"):
        e = t.session(name, check=False).started
        eq((e.final()["error"]["data"]["reason"], e.status), ("backend_unavailable", 503), name)
        t.daemon.wait_log("child_spawn_failed", "server=" + name, "it goes through a symbolic link below a directory that a server may write")
    eq(t.session("writer").echo("x"), "x")
    refused(check(servers, t.directory()), "servers.main.sandbox.read", "servers.other.sandbox.read", "goes through a symbolic link below")
    # Above what servers can write, a link is the operator's.
    os.symlink(base, os.path.join(outside, "link"))
    done = check({"main": box(read=[os.path.join(outside, "link", "home")])}, t.directory())
    eq(done.returncode, 0, done.stderr)
    by_link = os.path.join(outside, "link", "home", "cache.away")
    refused(check({"main": box(write=[home], read=[by_link])}, t.directory()), by_link, "is another name for a path below")
    refused(check({"main": box(read=[home + "/../home"])}, t.directory()), "without '..'")


@case(daemon=False)
def a_command_that_became_a_directory(t):
    """SEC-62: the place of the command grants one file; a link to a directory there grants nothing."""
    need_landlock()
    home, outside = t.directory(), t.directory()
    with open(os.path.join(outside, "file"), "w") as f:
        f.write("content")
    # The first place of PATH is the server's own; the second has the program.
    os.symlink("/", os.path.join(home, os.path.basename(sys.executable)))
    argv = child_argv({})
    sandbox = {"mode": "landlock", "connect": [], "bind": [], "read": PYTHON, "write": [home]}
    t.start({"main": {"command": os.path.basename(sys.executable), "args": argv[1:], "sandbox": sandbox,
                      "env": {"PATH": home + ":" + os.path.dirname(os.path.realpath(sys.executable))}}})
    eq(attempts(t.session(), ["read", os.path.join(outside, "file")], ["list", "/"]), ["EACCES"] * 2)
    # A directory of the server's own in that place: what it writes there it may not execute all the same.
    place = os.path.join(home, os.path.basename(sys.executable))
    os.unlink(place)
    os.mkdir(place)
    tool = os.path.join(place, "tool")
    with open(tool, "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod(tool, 0o755)
    eq(attempts(t.session(), ["run", [tool]]), ["EACCES"])


@case(daemon=False)
def own_ports_are_granted_by_name(t):
    """SEC-17 SEC-62: connect lists a port of the gateway only with gateway: true; `any` is warned about."""
    need_landlock()
    directory = t.directory()
    listen = {"listen": [{"address": "127.0.0.1:8808"}], "admin": {"metrics": "127.0.0.1:9464"}}
    for port in (8808, 9464):
        refused(check({"main": box(connect=[443, port])}, directory, settings=listen),
                "servers.main.sandbox.connect[1]: %d is a port of this gateway" % port, "checked.yaml:", "gateway: true")
        done = check({"main": box(connect=[443, port], gateway=True)}, directory, settings=listen)
        eq(done.returncode, 0, done.stderr)
    warning = "servers.main.sandbox.connect: 'any' includes the ports of this gateway"
    ok(warning in check({"main": box(connect="any")}, directory, settings=listen).stderr, "the warning")
    ok(warning not in check({"main": box(connect="any", gateway=True)}, directory, settings=listen).stderr, "no warning")
    t.start({"main": box(connect="any")}).wait_log("server_reaches_gateway", "server=main")


@case(daemon=False)
def roots_of_arguments_are_told(t):
    """SEC-55: -t says what of the roots is less than it seems: no sandbox, a directory that is not there, one behind a link."""
    directory = public_directory(t, "mcpgated")
    os.mkdir(os.path.join(directory, "real"))
    os.symlink("real", os.path.join(directory, "link"))

    def said(*roots, **more):
        tools = {"arguments": {"paths": {"roots": [os.path.join(directory, root) for root in roots]}}}
        done = check({"main": dict({"command": "/bin/cat", "tools": tools}, **more)}, directory)
        eq(done.returncode, 0, done.stderr)
        return [line.split("servers.main.tools.arguments.paths", 1)[1] for line in done.stderr.splitlines() if ".arguments." in line]

    alone = said("real")
    ok(len(alone) == 1 and "sandbox.mode" in alone[0], alone)
    eq(said("real", "real/", sandbox={"mode": "landlock"}), [])
    linked = said("link", "gone", sandbox={"mode": "landlock"})
    eq(len(linked), 2, linked)
    ok("leads through a link to" in linked[0] and "/real" in linked[0] and "No such file" in linked[1], linked)


@case(daemon=False)
def root_is_told(t):
    """SEC-61: a server that is root because the daemon is gets one warning, from -t and in the log."""
    directory = public_directory(t, "mcpgated")
    plain, named = {"command": "/bin/cat"}, {"command": "/bin/cat", "user": "nobody"}
    warning = ": servers.main runs as root, because the daemon does"
    if os.getuid() != 0:
        eq(check({"main": plain}, directory).stderr.count("runs as root"), 0)
        raise Skip("this is not root; what root is told is tried there")
    eq(check({"main": plain, "other": named}, directory).stderr.count("runs as root"), 1)
    ok(warning + ";" in check({"main": plain}, directory).stderr, "the warning")
    said = check({"main": plain, "other": named, "third": plain}, directory).stderr
    ok(said.count("runs as root") == 1 and warning + ", and so do third;" in said, "once for all", said)
    done = check({"main": plain}, directory, bin=directory, user="nobody", group=os.stat("/").st_gid, extra_groups=[])
    eq(done.stderr.count("runs as root"), 0)
    d = t.start({"main": {}, "other": {"script": {}, "user": "nobody", "enabled": False}})
    d.wait_log("server_is_root", "server=main")
    eq(len(d.log("server_is_root")), 1)


@case(daemon=False)
def what_is_in_force_is_said(t):
    """SEC-62: the log, the reports and mcpgatectl say what keeps a server in."""
    need_landlock(6)
    words = "files, TCP ports, ioctl of devices, signals, rights of files, system calls, capabilities"
    d = t.start({"main": box(), "other": {}})
    d.wait_log("sandbox", "server=main", words)
    rows = {row["name"]: row for row in json.loads(t.conn(address=d.admin).request("GET", "/servers").read())["servers"]}
    eq([(rows[name]["sandbox"], rows[name]["sandbox_lacks"]) for name in ("main", "other")], [(words, None), (None, None)])
    tool = os.path.join(harness.BIN, "mcpgatectl")
    shown = subprocess.run([tool, "--socket", d.admin, "status"], capture_output=True, text=True, timeout=8 * harness.SLOW).stdout
    ok("main is in a sandbox: " + words in shown and "other is in" not in shown, "status", shown)
    shown = subprocess.run([tool, "doctor", "-c", d.file, "main"], capture_output=True, text=True, timeout=8 * harness.SLOW).stdout
    ok(any(line.split()[:2] == ["ok", "sandbox"] and words in line for line in shown.splitlines()), "doctor", shown)


@case(daemon=False)
def a_sandbox_may_only_report(t):
    """SEC-62: with mode report nothing is refused, what landlock would refuse is logged once, and everybody says that it is so."""
    secret = os.path.join(t.directory(), "secret")
    with open(secret, "w") as f:
        f.write("x")
    port = socket.create_server(("127.0.0.1", 0))
    number = port.getsockname()[1]
    server = box(mode="report")
    d = t.start({"main": server})
    d.wait_log("sandbox_reports", "server=main")
    session = t.session()
    tries = (["read", secret], ["connect", number])
    for _ in range(2):
        eq(attempts(session, *tries), ["ok", "ok"], "nothing is refused")
    lines = ['servers.main.sandbox.read: ["%s"]' % secret, "servers.main.sandbox.connect: [%d]" % number]
    for line in lines:
        d.wait_log("sandbox_would_refuse", "server=main", line.replace('"', '\\"'))
    told = [entry for entry in d.log("sandbox_would_refuse") if secret in entry or str(number) in entry]
    eq(len(told), 2, "each once: %s" % told)
    tool = os.path.join(harness.BIN, "mcpgatectl")
    shown = subprocess.run([tool, "--socket", d.admin, "status"], capture_output=True, text=True, timeout=8 * harness.SLOW).stdout
    ok("main is in no sandbox" in shown, "status", shown)
    report = json.loads(t.conn(address=d.admin).request("GET", "/check").read())
    eq([p["about"] for p in report["problems"] if p["kind"] == "sandbox_reports"], ["main"], "check")
    ok("'report' refuses nothing" in check({"main": server}, t.directory()).stderr, "-t")
    # What is proposed is enough; a server that is killed is seen to be.
    script = "cat %s; kill -9 $$" % secret
    for read, words in ((PYTHON, ["would be refused", lines[0]]), (PYTHON + [secret], ["nothing is refused"])):
        path = os.path.join(t.directory(), "doctor.yaml")
        with open(path, "w") as f:
            f.write(to_yaml({"servers": {"main": {"command": "sh", "args": ["-c", script], "sandbox": {"mode": "report", "read": read}}}}) + "\n")
        os.chmod(path, 0o600)
        shown = subprocess.run([tool, "doctor", "-c", path, "main"], capture_output=True, text=True, timeout=8 * harness.SLOW).stdout
        ok(all(word in shown for word in words) and "killed by signal KILL" in shown, "doctor", shown)
        ok(not re.search(r"\| .*sandbox\.read", shown), "what is told is none of the server's own words", shown)
    ok(lines[0] not in shown, "what is listed is not proposed", shown)


# Waits in splice(2) with the lock of its standard input held, if it is let.
HOLDER = """
import os, socket, sys, time
path = sys.argv[1]
a, b = socket.socketpair()
a.setblocking(False)
for size in (65536, 1):
    try:
        while True:
            a.send(b"x" * size)
    except BlockingIOError:
        pass
a.setblocking(True)
with open(path, "w") as f:
    f.write("tried")
try:
    os.splice(0, a.fileno(), 4096)
except OSError as e:
    with open(path, "w") as f:
        f.write("errno %d" % e.errno)
time.sleep(600)
"""


@case(daemon=False, deadline=20)
def no_server_holds_the_gateway(t):
    """REL-26: a server cannot keep the lock of its pipes, at whose other ends the gateway would wait for good."""
    told = os.path.join(t.directory(), "told")
    d = t.start({"main": {"command": sys.executable, "args": ["-I", "-c", HOLDER, told], "start": {"timeout": "1s"}}, "other": {}})
    e = t.session("main", check=False).started
    eq(e.final(10)["error"]["data"]["reason"], "backend_unavailable")
    d.wait_log("server_failing", "server=main", "reason=start_timeout")
    eq(t.session("other").echo("x"), "x")
    with open(told) as f:
        eq(f.read(), "errno 22")


# Groups that the daemon has beside its own.
GROUPS = "import os, sys; os.setgroups([4711, 4712]); os.execv(sys.argv[1], sys.argv[1:])"


@case(daemon=False)
def another_user(t):
    """SEC-61 product §4: a server runs as its user, with that user's groups, HOME, umask and directory."""
    if os.getuid() != 0:
        raise Skip("only root can start processes as another user; see users_are_checked")
    directory = public_directory(t, "mcpgated-demo")
    seen = os.path.join(directory, "seen")
    os.mkdir(seen)
    os.chmod(seen, 0o777)
    script = "(id -u; id -g; id -G; umask; pwd; echo $HOME; ulimit -n) >%s/all; touch %s/file; %s/mcpgated-demo; exec sleep 600" % (
        seen, seen, directory)
    t.start({"main": {"command": "/bin/sh", "args": ["-c", script], "user": "nobody", "umask": "0027", "cwd": seen,
                      "resources": {"open_files": 77}}}, prefix=[sys.executable, "-I", "-c", GROUPS])
    with open("/proc/%d/status" % t.daemon.gateway) as f:
        eq(dict(line.split(":", 1) for line in f)["Groups"].split(), [], "groups of the gateway")
    s = t.session()
    import pwd
    nobody = pwd.getpwnam("nobody")
    groups = " ".join(str(g) for g in os.getgrouplist("nobody", nobody.pw_gid))
    with open(os.path.join(seen, "all")) as f:
        eq(f.read().split("\n")[:7], [str(nobody.pw_uid), str(nobody.pw_gid), groups, "0027", seen, nobody.pw_dir, "77"])
    eq(stat.S_IMODE(os.stat(os.path.join(seen, "file")).st_mode), 0o640)
    eq(s.ask("tools/call", {"name": "echo", "arguments": {"text": "x", "message": "x"}})["result"].get("isError", False), False)
    child = [p for p in harness.descendants(t.daemon.pid) if os.stat("/proc/%d" % p).st_uid == nobody.pw_uid
             and p != t.daemon.gateway and os.getsid(p) == p][0]
    # The parent-death signal survives the change of the user: the reaper cannot do anything now.
    reaper = [p for p, (parent, _, name) in harness.processes().items() if parent == t.daemon.pid and name == "mcpgated-reaper"][0]
    os.kill(reaper, signal.SIGSTOP)
    t.daemon.forgiven = True
    t.daemon.process.kill()
    t.daemon.process.wait()
    wait_for(lambda: not is_alive(child), 5, "end of the server with the keeper")
    os.kill(reaper, signal.SIGCONT)


@case(daemon=False)
def users_are_checked(t):
    """product §4: -t refuses an unknown user, and any user where the daemon is not root."""
    directory = public_directory(t, "mcpgated")
    servers = {"main": {"command": "/bin/cat", "user": "no-such-user"}}
    as_nobody = {"user": "nobody", "group": os.stat("/").st_gid, "extra_groups": []} if os.getuid() == 0 else {}
    done = check(servers, directory, bin=directory, **as_nobody)
    refused(done, "servers.main.user", "only root")
    if os.getuid() == 0:
        refused(check(servers, directory), "servers.main.user", "there is no user 'no-such-user'")
        with open(os.path.join(directory, "private"), "w") as f:
            os.fchmod(f.fileno(), 0o600)
        servers["main"] = {"command": "/bin/cat", "env": {"TOKEN": {"file": f.name}}}
        refused(check(servers, directory, bin=directory, **as_nobody), f.name,
                "Permission denied; this runs as user %d, who may not read it" % pwd.getpwnam("nobody").pw_uid)
        servers["main"] = {"command": "/bin/cat", "user": "nobody"}
    if os.getuid() == 0 and shutil.which("setpriv"):
        without = ["setpriv", "--bounding-set", "-setuid"]
        refused(check(servers, directory, prefix=without), "servers.main.user", "CAP_SETUID", "mcpgated.yaml(5)")
        t.start({"main": {}}, prefix=without).wait_log("gateway_is_root")


@case(daemon=False)
def places_are_checked(t):
    """product §4: -t refuses a directory that is not there and a umask that is none."""
    directory = t.directory()
    refused(check({"main": {"command": "/bin/cat", "cwd": "/no/such"}}, directory), "servers.main.cwd", "/no/such")
    refused(check({"main": {"command": "/bin/cat", "cwd": "/etc/passwd"}}, directory), "servers.main.cwd", "is not a directory")
    for bad in ("8", "rwx", "10022", "-1"):
        refused(check({"main": {"command": "/bin/cat", "umask": bad}}, directory), "umask", "octal")
    eq(check({"main": {"command": "/bin/cat", "umask": "022", "cwd": "/"}}, directory).returncode, 0)


@case(daemon=False)
def open_files(t):
    """DEF-20 product §4: resources.open_files is what the server may have open; others keep the daemon's."""
    t.start({"main": {"script": {}, "resources": {"open_files": 64}}, "other": {}})
    eq(attempts(t.session("main"), ["files", 40], ["files", 64]), ["ok", "EMFILE"])
    eq(attempts(t.session("other"), ["files", 200]), ["ok"])


def cgroups_of(daemon):
    """The directory of the children's cgroups, or None where there are none."""
    daemon.wait_log("confine", "measure=cgroups")
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        with open("/proc/%d/cgroup" % daemon.pid) as f:
            own = [line[3:].strip("/\n") for line in f if line.startswith("0::/")]
        path = os.path.join(mount, *own, "mcpgated-%d" % daemon.pid)
        path = path.replace("mcpgated-daemon/", "")
        if os.path.isdir(path):
            return path
    return None


@case(daemon=False)
def a_group_for_each_process(t):
    """REL-30 SEC-62: what leaves its process group and session ends with the server all the same; nothing remains."""
    t.start({"main": {}}, {"log": {"level": "info"}})
    groups = cgroups_of(t.daemon)
    if not groups:
        ok(not any("measure=cgroups state=on" in l for l in t.daemon.lines), "log", t.daemon.log("confine"))
        raise Skip("no cgroup can be made here: %s" % t.daemon.log("confine")[0])
    s = t.session()
    s.do(["grandchild", 60, True], ["text", "x"])
    grandchild = wait_for(t.daemon.grandchildren, 3, "grandchild")[-1]
    names = [n for n in os.listdir(groups) if n.startswith("main.")]
    eq(len(names), 1, "groups")
    with open(os.path.join(groups, names[0], "cgroup.procs")) as f:
        eq(sorted(map(int, f)), sorted([s.pid(), grandchild]))
    s.delete()
    s.id = None
    wait_for(lambda: not is_alive(grandchild), 5, "end of the grandchild")
    wait_for(lambda: not os.path.exists(os.path.join(groups, names[0])), 3, "end of the group")
    t.session()
    t.daemon.term()
    eq(t.daemon.wait(), 0)
    ok(not os.path.exists(groups), "left behind: " + groups)


@case(daemon=False)
def groups_end_with_a_killed_keeper(t):
    """REL-43: kill -9 of the keeper leaves no cgroup and nothing in it."""
    t.start({"main": {}}, {"log": {"level": "info"}})
    groups = cgroups_of(t.daemon)
    s = t.session()
    s.do(["grandchild", 60, True], ["text", "x"])
    grandchild = wait_for(t.daemon.grandchildren, 3, "grandchild")[-1]
    t.daemon.forgiven = True
    t.daemon.process.kill()
    t.daemon.process.wait()
    if not groups:
        os.kill(grandchild, 9)
        raise Skip("no cgroup can be made here")
    wait_for(lambda: not is_alive(grandchild), 5, "end of the grandchild")
    wait_for(lambda: not os.path.exists(groups), 5, "end of " + groups)


@case(daemon=False, deadline=20)
def limits_are_kept_or_refused(t):
    """DEF-20 SEC-62: memory, processes and cpu hold for a server and all that it starts, or nothing starts."""
    limits = {"memory": "256MiB", "processes": 8, "cpu": "50%"}
    for key, controller in (("memory", "memory"), ("processes", "pids"), ("cpu", "cpu")):
        done = check({"main": {"command": "/bin/cat", "resources": {key: limits[key]}}}, t.directory())
        if done.returncode != 0:
            refused(done, "resources.%s needs a cgroup" % key, "Delegate=yes", "remove it")
            eq(check({"main": {"command": "/bin/cat", "enabled": False, "resources": {key: limits[key]}}}, t.directory()).returncode, 0)
    if check({"main": {"command": "/bin/cat", "resources": limits}}, t.directory()).returncode != 0:
        d = t.start({"main": {"command": "/bin/cat", "resources": limits}}, wait=False)
        eq(d.wait(), 2, "exit status of a start that cannot keep the limits")
        d.forgiven = True
        return
    t.start({"main": {"script": {}, "resources": limits}})
    s = t.session()
    eq(attempts(s, ["fork", 3], ["fork", 20]), ["ok", "EAGAIN"])
    eq(s.do(["hoard", 1000], ["text", "x"])["error"]["data"]["reason"], "child_exited")
    t.daemon.wait_log("child_limit", "server=main", "limit=resources.memory")
    eq(s.echo("again"), "again")


def holds(pid, needles):
    """Which of these bytes are in the memory of a process."""
    found = set()
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            begin, end = (int(n, 16) for n in where.split("-"))
            if "r" not in rights or end - begin > 1 << 30:
                continue  # so large are the shadows of a sanitizer alone
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, ValueError):
                continue
            found |= {n for n in needles if n in content}
    return found


@case(daemon=False)
def secrets_reach_the_child_alone(t):
    """DEF-24 SEC-61 product §4: values of {file}, {env}, {credential}: not in the log, --print-config, or the gateway."""
    directory = t.directory()
    # Put together here, so that no command line and no environment but the wanted one has them.
    values = {name: "".join(["secret", "-of-", name, "-%d" % os.getpid()]) for name in ("file", "env", "credential", "text")}
    for name in ("file", "credential"):
        with open(os.path.join(directory, name), "w") as f:
            f.write(values[name] + "\n")
    env = {"A": {"file": os.path.join(directory, "file")}, "B": {"env": "FOR_THE_CHILD"}, "C": {"credential": "credential"},
           "D_TOKEN": values["text"]}
    d = t.start({"main": {"script": {}, "env": env}},
                env={"FOR_THE_CHILD": values["env"], "CREDENTIALS_DIRECTORY": directory})
    s = t.session()
    # Not by the server's answer: that would go through the gateway.
    with open("/proc/%d/environ" % s.pid()) as f:
        environ = sorted(f.read().split("\0"))
    eq([e for e in environ if e[:2] in ("A=", "B=", "C=", "D_")],
       ["A=" + values["file"], "B=" + values["env"], "C=" + values["credential"], "D_TOKEN=" + values["text"]])
    ok("FOR_THE_CHILD" not in str(environ), "the daemon's variable", environ)
    printed = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "--print-config", "-c", d.file], capture_output=True, text=True,
                             env=dict(os.environ, FOR_THE_CHILD=values["env"], CREDENTIALS_DIRECTORY=directory))
    eq(printed.returncode, 0, printed.stderr)
    for value in values.values():
        ok(value not in printed.stdout + printed.stderr, "in --print-config: " + value)
        ok(not any(value in l for l in d.lines), "in the log: " + value)
    if os.getuid() != 0:
        for pid in (d.pid, d.gateway):
            eq(os.access("/proc/%d/mem" % pid, os.R_OK), False, "memory of %d can be read" % pid)
        return
    needles = {v.encode() for v in values.values()}
    eq(holds(d.pid, needles), needles, "what the keeper holds")
    with open("/proc/%d/maps" % d.gateway) as f:
        if "libasan" in f.read():
            # It keeps what is freed, and the environment that it has read itself.
            needles = {values[name].encode() for name in ("file", "credential")}
    eq(holds(d.gateway, needles), set(), "what the gateway holds")


# What a careless parent hands down: ignored and blocked signals, a descriptor, a mask, an ambient capability.
CARELESS = """
import ctypes, os, signal, sys
for number in (signal.SIGUSR1, signal.SIGQUIT, signal.SIGPIPE, signal.SIGRTMIN, signal.SIGRTMAX):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM, signal.SIGINT, signal.SIGRTMAX])
os.dup2(os.open("/dev/null", os.O_RDONLY), 77, inheritable=True)
os.umask(0o027)
libc = ctypes.CDLL(None)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, sets)
if sets[1] & 1 << 10:  # CAP_NET_BIND_SERVICE
    sets[2] |= 1 << 10
    libc.capset(header, sets)
    libc.prctl(47, 2, 10, 0, 0)  # PR_CAP_AMBIENT_RAISE
os.execv(sys.argv[1], sys.argv[1:])
"""


@case(daemon=False)
def secret_is_not_read_by_a_link_of_a_server(t):
    """SEC-62: the daemon reads with its own rights, so not what a server in its sandbox points at."""
    need_landlock()
    writable, foreign = t.directory(), os.path.join(t.directory(), "foreign")
    path = os.path.join(writable, "secret")
    for name, text in ((path, "own"), (foreign, "foreign")):
        with open(name, "w") as f:
            f.write(text)
    env = {"API_TOKEN": {"file": path}}
    servers = {"main": {"script": {}, "env": env},
               "writer": {"command": "cat", "sandbox": {"mode": "landlock", "write": [writable]}}}

    def secret():
        return dict(e.split("=", 1) for e in t.session().probe()["environ"])["API_TOKEN"]
    t.start(servers)
    eq(secret(), "own")
    os.unlink(path)
    os.symlink(foreign, path)
    eq(secret(), "own")
    t.daemon.wait_log("secret_stays", "server=main", "variable=API_TOKEN")
    servers["main"] = {"command": "cat", "env": env}
    refused(check(servers, t.directory()), "servers.main.env.API_TOKEN", "goes through a symbolic link below")


@case(daemon=False)
def sockets_are_where_no_server_makes_another(t):
    """SEC-62: a socket in a directory that a server in a sandbox may write is refused: clients would show their tokens to that server."""
    need_landlock()
    writable = t.directory()
    servers = {"main": {"command": "cat", "sandbox": {"mode": "landlock", "write": [writable]}}}
    path = os.path.join(writable, "socket")
    listen = [{"address": "127.0.0.1:0"}]
    for place, settings in (("listen[1].address", {"listen": listen + [{"address": "unix:" + path}]}), ("admin.address", {"admin": {"address": "unix:" + path}}),
                            ("admin.metrics", {"admin": {"metrics": "unix:" + path}})):
        settings.setdefault("listen", listen)
        refused(check(servers, t.directory(), settings=settings), place + ": %s: server 'main' may write to the directory" % path)
        eq(check({"main": {"command": "cat"}}, t.directory(), settings=settings).returncode, 0, place)


@case(daemon=False)
def everything_is_reset(t):
    """BACK-PROC-03 REL-32 SEC-60: descriptors, signals, session, group and limits of a server, whoever started the daemon."""
    seen = os.path.join(t.directory(), "seen")
    script = "cat /proc/self/status /proc/self/limits >%s; ls -l /proc/self/fd >>%s; exec %s/mcpgated-demo" % (seen, seen, harness.BIN)
    t.start({"main": {"command": "/bin/sh", "args": ["-c", script]}}, prefix=[sys.executable, "-I", "-c", CARELESS])
    t.session()
    with open(seen) as f:
        text = f.read()
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    for name in ("SigIgn", "SigBlk", "CapAmb"):
        eq(int(fields[name], 16), 0, name)
    eq((fields["NoNewPrivs"], fields["Umask"]), ("1", "0027"))
    core = [line.split() for line in text.splitlines() if line.startswith("Max core file size")][0]
    eq(core[4:6], ["0", "0"], "core dumps")
    # Of ls: its standard streams, and the directory that it reads.
    eq(sorted(line.split(" -> ")[0].split()[-1] for line in text.splitlines() if " -> " in line), ["0", "1", "2", "3"], "descriptors")
    child = [p for p in harness.descendants(t.daemon.pid) if p not in (t.daemon.gateway,) and os.getsid(p) == p
             and b"mcpgated-demo" in open("/proc/%d/cmdline" % p, "rb").read()]
    eq(len(child), 1, "servers that lead a session")
    eq((os.getpgid(child[0]), harness.processes()[child[0]][0]), (child[0], t.daemon.pid), "group and parent")
