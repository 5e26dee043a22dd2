# SPDX-License-Identifier: Apache-2.0
"""What was found out about the era of a server is known to the next gateway, and to the next daemon. bridging §1.10"""
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


def eras(state):
    with open(os.path.join(state, "mcpgated", "eras")) as f:
        return [line.split()[1] for line in f.read().splitlines()[1:]]


def known(t):
    """What the operator is told of the server's era."""
    server = get(t, "/servers")["servers"][0]
    return server["era"], server["era_from"] or ""


@case(daemon=False, deadline=30)
def next_daemon_knows(t):
    """BACK-ERA-06: a server that was asked is not asked again; a new version of its program is, and era: is not doubted."""
    program, state = Program(t, REFUSES), t.directory()
    program.start(t, state)
    eq(known(t), ("unknown", ""))
    t.session().echo("x")
    eq(program.first_methods(), ["initialize", DISCOVER, DISCOVER])
    program.stop(t)
    eq(eras(state), ["modern"])
    eq(os.stat(os.path.join(state, "mcpgated", "eras")).st_mode, 0o100600)
    program.start(t, state)
    eq(known(t), ("modern", "remembered"))
    t.session().echo("x")
    eq(program.first_methods(), [DISCOVER])
    t.daemon.never_logged("server_era")
    eq(known(t), ("modern", "found"))
    program.stop(t)
    program.write(" another version")
    program.start(t, state)
    t.session().echo("x")
    eq(program.first_methods(), ["initialize", DISCOVER, DISCOVER])
    program.stop(t)
    program.start(t, state, era="legacy")
    eq(known(t), ("legacy", "configured"))
    s = t.session(check=False)
    ok("error" in s.started.final(20), "its refusal is the client's")
    eq(program.first_methods(), ["initialize"])


@case(daemon=False, deadline=30)
def legacy_servers_are_not_probed_again(t):
    """BACK-ERA-06: nor is one of the legacy era, for a day; then it is."""
    program, state = Program(t, {}), t.directory()
    program.start(t, state)
    do(t, "main", ["text", "x"])
    eq(program.first_methods(), [DISCOVER, "initialize"])
    program.stop(t)
    eq(eras(state), ["legacy"])
    program.start(t, state)
    do(t, "main", ["text", "x"])
    eq(program.first_methods(), ["initialize"])
    program.stop(t)
    path = os.path.join(state, "mcpgated", "eras")
    with open(path) as f:
        first, line = f.read().splitlines()
    digest, era, noted, probed = line.split()
    with open(path, "w") as f:  # as an earlier release wrote it: without a digest
        f.write("%s\n%s %s %s %d\n" % (first.rsplit(" ", 1)[0], digest, era, noted, int(probed) - 86400))
    program.start(t, state)
    do(t, "main", ["text", "x"])
    eq(program.first_methods(), [DISCOVER, "initialize"])


@case(daemon=False, deadline=30)
def contradiction_is_remembered(t):
    """BACK-ERA-06: a server that refuses what was remembered of it is found out anew, and so the next daemon has it."""
    program, state = Program(t, REFUSES), t.directory()
    program.start(t, state)
    t.session().echo("x")
    program.stop(t)
    program.first_methods()
    path = os.path.join(state, "mcpgated", "eras")
    with open(path) as f:
        text = f.read()
    first, _, rest = text.partition("\n")
    with open(path, "w") as f:
        f.write(first.rsplit(" ", 1)[0] + "\n" + rest.replace(" modern ", " legacy ").rsplit(" ", 1)[0] + " 0\n")
    program.start(t, state)
    t.session().echo("x")
    eq(program.first_methods(), ["initialize", DISCOVER, DISCOVER])
    program.stop(t)
    eq(eras(state), ["modern"])


@case(daemon=False, deadline=30)
def next_gateway_knows(t):
    """BACK-ERA-06 REL-43: a gateway that was killed loses nothing of it, also where no file can be had."""
    program = Program(t, REFUSES)
    d = program.start(t, "/nowhere/at/all")
    t.session().echo("x")
    eq(len(program.first_methods()), 3)
    d.wait_log("eras_unsaved")
    before = d.find_gateway()
    kill(before)
    wait_for(lambda: d.find_gateway() != before and len(d.log("gateway_ready")) == 2, 5, "the next gateway")
    t.session().echo("x")
    eq(program.first_methods(), [DISCOVER])
    t.daemon.forgiven = True


@case(daemon=False, deadline=30)
def strange_files_do_no_harm(t):
    """BACK-ERA-06: a file that is none of ours, a link, a FIFO: what is in it is found out anew, and it is replaced."""
    program, state = Program(t, REFUSES), t.directory()
    folder, other = os.path.join(state, "mcpgated"), os.path.join(t.directory(), "other")
    path = os.path.join(folder, "eras")
    os.mkdir(folder, 0o700)
    with open(other, "w") as f:
        f.write("left alone")

    def rubbish():
        with open(path, "wb") as f:
            f.write(os.urandom(200000))

    for make in (rubbish, lambda: os.symlink(other, path), lambda: os.mkfifo(path, 0o600)):
        if os.path.lexists(path):
            os.unlink(path)
        make()
        program.start(t, state)
        t.session().echo("x")
        eq(len(program.first_methods()), 3)
        t.daemon.wait_log("eras_unreadable")
        program.stop(t)
        ok(not os.path.islink(path), "a plain file")
        eq(eras(state), ["modern"])
    with open(other) as f:
        eq(f.read(), "left alone")
