# SPDX-License-Identifier: Apache-2.0
"""The era of a server is found out once, and anew by the next gateway. bridging §1.10"""
import json
import os
import re
import shlex

import harness
from cases.c70_admin import get
from cases.c80_stateless import do
from harness import case, eq, kill, ok, wait_for

REFUSES = {"era": "modern", "init": [["error", -32601, "what is that?"]]}
DISCOVER = "server/discover"


class Program:
    """A server in a file of its own, which stays the same when the daemon is another one."""

    def __init__(self, t, script):
        self.folder = t.directory()
        self.path = os.path.join(self.folder, "server")
        self.records = os.path.join(self.folder, "records")
        os.mkdir(self.records)
        self.argv = harness.child_argv(script, "main", self.records)
        self.write("")

    def write(self, comment):
        with open(self.path, "w") as f:
            f.write("#!/bin/sh\n#%s\nexec %s\n" % (comment, " ".join(shlex.quote(word) for word in self.argv)))
        os.chmod(self.path, 0o700)

    def first_methods(self):
        """What each process was asked first, since the last look; oldest first."""
        found = []
        for name in os.listdir(self.records):
            path = os.path.join(self.records, name)
            if re.fullmatch(r"main-\d+", name):
                with open(path, "rb") as f:
                    found.append((os.stat(path).st_ctime, json.loads(f.readline())["method"]))
                os.unlink(path)
        return [method for _, method in sorted(found)]

    def start(self, t, state, **more):
        t.daemon = t.start({"main": dict({"command": self.path, "args": []}, **more)}, env={"XDG_STATE_HOME": state})
        return t.daemon

    def stop(self, t):
        t.daemon.term()
        eq(t.daemon.wait(), 0)


def known(t):
    """What the operator is told of the server's era."""
    server = get(t, "/servers")["servers"][0]
    return server["era"], server["era_from"] or ""


@case(daemon=False, deadline=30)
def next_daemon_asks_again(t):
    """BACK-ERA-06: a server that was asked is not asked again, but by the next daemon; and era: is not doubted."""
    program, state = Program(t, REFUSES), t.directory()
    for _ in range(2):
        program.start(t, state)
        eq(known(t), ("unknown", ""))
        t.session().echo("x")
        eq(program.first_methods(), ["initialize", DISCOVER, DISCOVER])
        eq(known(t), ("modern", "found"))
        t.session().echo("x")
        eq(program.first_methods(), [DISCOVER])
        program.stop(t)
    program.start(t, state, era="legacy")
    eq(known(t), ("legacy", "configured"))
    s = t.session(check=False)
    ok("error" in s.started.final(20), "its refusal is the client's")
    eq(program.first_methods(), ["initialize"])


@case(daemon=False, deadline=30)
def legacy_servers_are_not_probed_again(t):
    """BACK-ERA-06: nor is one of the legacy era, for a day; the next daemon probes it."""
    program, state = Program(t, {}), t.directory()
    for _ in range(2):
        program.start(t, state, pool={"idle_timeout": "300ms"})
        do(t, "main", ["text", "x"])
        eq(program.first_methods(), [DISCOVER, "initialize"])
        eq(known(t), ("legacy", "found"))
        wait_for(lambda: not get(t, "/processes")["processes"], 10, "the end of the idle process")
        do(t, "main", ["text", "x"])
        eq(program.first_methods(), ["initialize"])
        program.stop(t)


@case(daemon=False, deadline=30)
def next_gateway_asks_again(t):
    """BACK-ERA-06 REL-43: likewise after a gateway that was killed; sessions go on, whatever the server's era was."""
    program = Program(t, REFUSES)
    d = program.start(t, t.directory())
    s = t.session()
    s.echo("x")
    eq(len(program.first_methods()), 3)
    before = d.find_gateway()
    kill(before)
    wait_for(lambda: d.find_gateway() != before and len(d.log("gateway_ready")) == 2, 5, "the next gateway")
    eq(known(t), ("unknown", ""))
    s.echo("y")
    eq(known(t), ("modern", "found"), "by its process, which goes on")
    eq(program.first_methods(), [])
    t.daemon.forgiven = True


@case(daemon=False, deadline=30)
def sessions_go_on_at_servers_of_either_era(t):
    """BACK-ERA-06 bridging §4.1: the session of a server that spoke as modern goes on in the next daemon, whatever it is found to be."""
    for isolation in ("session", "shared"):
        program, state = Program(t, {"era": "both"}), t.directory()
        program.start(t, state, isolation=isolation)
        do(t, "main", ["text", "x"])
        s = t.session()
        s.echo("x")
        eq(known(t), ("modern", "found"))
        program.stop(t)
        program.first_methods()
        program.start(t, state, isolation=isolation)
        s.daemon, s.address = t.daemon, t.daemon.address
        s.echo("y")
        eq(program.first_methods(), ["initialize"])
        eq(known(t), ("legacy", "found"))
        program.stop(t)


@case(daemon=False, deadline=30)
def files_of_earlier_releases_are_left_alone(t):
    """BACK-ERA-06: a file of eras, a link or a FIFO of that name: it stays as it is, and nobody reads it."""
    program, state = Program(t, REFUSES), t.directory()
    folder, other = os.path.join(state, "mcpgated"), os.path.join(t.directory(), "other")
    path = os.path.join(folder, "eras")
    os.mkdir(folder, 0o700)
    text = "mcpgated eras 1\n%s legacy 1767225600 1767225600\n" % ("0" * 64)
    with open(other, "w") as f:
        f.write(text)
    for make in (lambda: os.link(other, path), lambda: os.symlink(other, path), lambda: os.mkfifo(path, 0o600)):
        if os.path.lexists(path):
            os.unlink(path)
        make()
        before = os.lstat(path)
        program.start(t, state)
        t.session().echo("x")
        eq(len(program.first_methods()), 3)
        program.stop(t)
        after = os.lstat(path)
        eq((after.st_ino, after.st_mode, after.st_mtime), (before.st_ino, before.st_mode, before.st_mtime))
    with open(other) as f:
        eq(f.read(), text)
