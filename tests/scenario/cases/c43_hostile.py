# SPDX-License-Identifier: Apache-2.0
"""A server that means ill (tests/hostile-server.c) in its sandbox. threats.md SEC-17, SEC-61, SEC-62."""
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess

import harness
import wire
from harness import Skip, case, eq, ok
from c42_confine import need_landlock, public_directory

SERVERS = {"main": {}}

# What an honest server needs, and why it is no danger.
NEEDED = {
    "pair_of_streams": "node speaks with its children by it; it is connected for good",
    "pair_of_seqpackets": "likewise",
    "netlink_route": "the resolver asks which addresses there are",
    "be_nicer": "of itself", "pin_itself": "of itself", "limit_itself": "of itself",
    "start_thread": "", "run_program": "programs of /usr", "kill_child": "its own", "watch_child": "its own",
    "read_passwd": "names of users",
}
# Where it may write, and connect to a port.
NEEDED_WITH_WRITE = {
    "create_inside": "", "tcp_connect_listed": "its port is listed",
    "chmod_inside": "installed programs are made executable", "utimes_inside": "archives keep their times",
    "udp_send": "names are looked up with it", "udp_socket_6": "likewise",
}
# What nothing here refuses; the manual says so.
GAPS = {
    "stat_outside": "whether a name exists; sizes, rights and times",
    "lock_passwd": "of what it may read; who else locks the same file waits",
    "run_from_memory": "no more than it can do anyway",
    "watch_outside": "inotify: that a file has changed", "watch_inside": "likewise",
}
# A server that may write somewhere may also change the rights of what its user owns elsewhere, but for where the daemon can make
# that read-only ("rights of files" of the sandbox).
GAPS_WITH_WRITE = {"chmod_outside": "", "utimes_outside": ""}
# Nothing is to be tried there at which a server without a directory of its own could succeed.
INSIDE = ("link_from_outside", "read_through_symlink", "run_from_inside", "fchown_inside", "chmod_setuid", "fchmod_setgid",
          "fchmodat2_setuid", "create_setuid", "creat_setuid", "unix_bind")
ENOUGH = 50


class Place:
    """What there is to try at: files, sockets and a process of the same user."""

    def __init__(self, t, user):
        self.t, self.user = t, user
        self.uid = pwd.getpwnam(user).pw_uid if user else os.getuid()
        self.gid = pwd.getpwnam(user).pw_gid if user else os.getgid()
        self.base = public_directory(t, "mcpgated", "mcpgated-gateway", "mcpgated-reaper")
        os.chown(self.base, self.uid, self.gid)
        program = os.path.join(harness.BIN, "tests", "hostile-server")
        if not os.path.exists(program):
            raise Skip("there is no tests/hostile-server beside the programs")
        self.program = shutil.copy(program, self.base)
        os.chown(self.program, self.uid, self.gid)
        self.inside, self.outside = self.make("inside", "file", "tool"), self.make("outside", "file", "removed", "renamed", "marked")
        with open(os.path.join(self.inside, "tool"), "w") as f:
            f.write("#!/bin/sh\n")
        os.chmod(os.path.join(self.inside, "tool"), 0o755)
        try:
            os.setxattr(os.path.join(self.outside, "marked"), "user.mark", b"x")
        except OSError:
            pass  # then the probe does not get through without a sandbox either
        self.sockets = []
        self.victim = self.popen(["sleep", "600"], start_new_session=True)

    def make(self, name, *files):
        path = os.path.join(self.base, name)
        os.mkdir(path)
        for file in files:
            with open(os.path.join(path, file), "w") as f:
                f.write("content")
            os.chown(f.name, self.uid, self.gid)
        os.chown(path, self.uid, self.gid)
        return path

    def popen(self, argv, **more):
        if self.user:
            more.update(user=self.uid, group=self.gid, extra_groups=[])
        return subprocess.Popen(argv, cwd="/", stdin=subprocess.DEVNULL, **more)

    def listener(self, family, kind, address):
        self.sockets.append(socket.socket(family, kind))
        self.sockets[-1].bind(address)
        if kind == socket.SOCK_STREAM:
            self.sockets[-1].listen(64)
        if family == socket.AF_UNIX and address[0] != "\0":
            os.chmod(address, 0o777)
        return self.sockets[-1].getsockname()

    def arguments(self):
        """Of the program. Everything that it says is there."""
        abstract = "mcpgated-test-%d" % os.getpid()
        self.listener(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
        streams, datagrams = os.path.join(self.base, "stream"), os.path.join(self.base, "datagram")
        self.listener(socket.AF_UNIX, socket.SOCK_STREAM, streams)
        self.listener(socket.AF_UNIX, socket.SOCK_DGRAM, datagrams)
        self.listed = self.listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1]
        with open("/proc/%d/maps" % self.victim.pid) as f:
            page = [line.split("-")[0] for line in f if "[stack]" in line][0]
        self.admin = os.path.join(self.base, "admin")
        self.gateway = wire.free_port()
        return ["outside=" + self.outside, "inside=" + self.inside, "stream=" + streams, "datagram=" + datagrams,
                "abstract=" + abstract, "admin=" + self.admin, "victim=%d" % self.victim.pid, "page=" + page, "listed=%d" % self.listed,
                "gateway=%d" % self.gateway,
                "port=%d" % self.listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1]]

    def daemon_prefix(self):
        """Starts the daemon as this user, who can read neither its programs nor its configuration where they are."""
        if not shutil.which("setpriv"):
            raise Skip("there is no setpriv to start the daemon as another user")
        script = 'cd / && cp "$3" "$0/config" && chmod 600 "$0/config" && chown %d "$0/config" && ' \
                 'exec setpriv --reuid %d --regid %d --clear-groups "$0/mcpgated" -c "$0/config"' % (self.uid, self.uid, self.gid)
        return ["sh", "-c", script, self.base]

    def close(self):
        self.victim.send_signal(signal.SIGCONT)
        self.victim.kill()
        self.victim.wait()
        for s in self.sockets:
            s.close()


def parse(text):
    return dict(item.split(" ") for item in text.replace(";", "\n").replace("\n ", "\n").splitlines() if " " in item)


def compare(t, user, sandbox, needed, gaps, skipped=(), daemon_too=False):
    """Every probe that gets through without the sandbox is refused in it, but for those that are listed."""
    need_landlock(6)
    place = Place(t, user)
    try:
        arguments = place.arguments()
        settings = dict({"mode": "landlock", "connect": [], "bind": []}, **sandbox(place))
        server = {"command": place.program, "sandbox": settings, "args": arguments, "start": {"timeout": "60s"}}
        if user and not daemon_too:
            server["user"] = user
        t.start({"main": server}, {"listen": [{"address": "127.0.0.1:%d" % place.gateway}], "admin": {"address": "unix:" + place.admin}},
                prefix=place.daemon_prefix() if daemon_too else None)
        os.chmod(place.admin, 0o777)
        row = json.loads(t.conn(address=place.admin).request("GET", "/servers").read())["servers"][0]
        if "rights of files" in row["sandbox"]:
            gaps = {name: why for name, why in gaps.items() if name not in GAPS_WITH_WRITE}
        inside = parse(t.session().result["result"]["instructions"])
        control = place.popen([place.program, "--once"] + arguments, stdout=subprocess.PIPE, text=True)
        outside = parse(control.communicate(timeout=60)[0])
    finally:
        place.close()
    eq(sorted(inside), sorted(outside), "the probes")
    through = sorted(name for name in inside if inside[name] == "ok" and name not in needed and name not in gaps)
    eq(through, [], "what got through")
    eq(sorted(name for name in needed if inside[name] != "ok"), [], "what an honest server needs")
    eq(sorted(name for name in gaps if inside[name] != "ok"), [], "what is refused by now, and can be struck off the gaps")
    shown = [name for name in outside if outside[name] == "ok" and name not in needed and name not in gaps and name not in skipped]
    ok(len(shown) >= ENOUGH, "only %d probes get through without a sandbox; not" % len(shown),
       {name: value for name, value in outside.items() if value != "ok"})


def closed(place):
    """Nothing is listed."""
    return {}


def common(place):
    """As for a server that installs itself: a directory, and a port."""
    return {"write": [place.inside], "connect": [place.listed]}


def need_root():
    if os.getuid() != 0:
        raise Skip("only root can start something as another user; this user's own are tried in the other cases")


@case(daemon=False, deadline=60)
def closed_sandbox_as_the_daemons_user(t):
    """SEC-62 SEC-61 SEC-17: with nothing listed, every probe of a hostile server is refused."""
    compare(t, None, closed, NEEDED, GAPS, INSIDE)


@case(daemon=False, deadline=60)
def closed_sandbox_as_a_user_of_its_own(t):
    """SEC-62: likewise with servers.NAME.user."""
    need_root()
    compare(t, "nobody", closed, NEEDED, GAPS, INSIDE)


@case(daemon=False, deadline=60)
def common_sandbox_as_the_daemons_user(t):
    """SEC-62: with a directory to write in and a port to connect to, nothing more gets through than these."""
    compare(t, None, common, {**NEEDED, **NEEDED_WITH_WRITE}, {**GAPS, **GAPS_WITH_WRITE})


@case(daemon=False, deadline=60)
def common_sandbox_as_a_user_of_its_own(t):
    """SEC-62: likewise with servers.NAME.user."""
    need_root()
    compare(t, "nobody", common, {**NEEDED, **NEEDED_WITH_WRITE}, {**GAPS, **GAPS_WITH_WRITE})


@case(daemon=False, deadline=60)
def closed_sandbox_of_an_ordinary_users_daemon(t):
    """SEC-62: likewise where the daemon has no rights of its own to begin with."""
    need_root()
    compare(t, "nobody", closed, NEEDED, GAPS, INSIDE, daemon_too=True)


@case(daemon=False, deadline=60)
def common_sandbox_of_an_ordinary_users_daemon(t):
    """SEC-62: likewise."""
    need_root()
    compare(t, "nobody", common, {**NEEDED, **NEEDED_WITH_WRITE}, {**GAPS, **GAPS_WITH_WRITE}, daemon_too=True)
