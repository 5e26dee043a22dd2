# SPDX-License-Identifier: Apache-2.0
"""Sessions outlive the gateway and the daemon: bridging §4.1. Their clients never initialize again."""
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess

import harness
import mcp
from c62_oauth import RESOURCE
from c62_oauth import begin as begin_oauth
from c64_deny import deny, status_in
from c96_pins import unsaved
from c100_reload import reload
from harness import case, eq, ok, wait_for

LISTS = ["notifications/%s/list_changed" % kind for kind in ("tools", "prompts", "resources")]
ISOLATIONS = ("session", "shared")


def servers(isolation="session", **more):
    return {"main": dict({"script": {}, "isolation": isolation}, **more)}


def lines_saved(state):
    """Those of what is on the disk."""
    folder = os.path.join(state, "mcpgated")
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.startswith("sessions-") and not name.endswith((".lock", ".new")):
            with open(os.path.join(folder, name)) as f:
                return f.read().splitlines()[1:]
    return []


def saved(state):
    """Those of sessions; the others are of pools."""
    return [line for line in lines_saved(state) if not line.startswith('{"pool":')]


class Daemons:
    """One daemon after the other, with the same state directory, and sessions that are of none in particular."""

    def __init__(self, t):
        self.t, self.state, self.daemon = t, t.directory(), None

    def begin(self, *args, config=None, prefix=None, **kw):
        self.daemon = self.t.daemon = self.t.start(servers(*args, **kw), config, env={"XDG_STATE_HOME": self.state}, prefix=prefix)
        return self.daemon

    def stop(self):
        self.daemon.term()
        eq(self.daemon.wait(), 0)

    def again(self, *args, **kw):
        self.stop()
        return self.begin(*args, **kw)

    def move(self, session):
        """The session's client comes to the daemon of now, at its address; it has done nothing else."""
        session.daemon, session.address = self.daemon, self.daemon.address
        return session

    def saved(self):
        return saved(self.state)


def kill_gateway(t):
    before = t.daemon.gateway
    t.expect_error_log("gateway_exit")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: t.daemon.find_gateway() != before, 10, "another gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    wait_for(lambda: len(t.daemon.log("gateway_ready")) >= len(t.daemon.log("gateway_start")), 10, "it serves")


def told(stream, count):
    """The methods of the next messages of a stream."""
    return [stream.next()["method"] for _ in range(count)]


def for_each_isolation(function):
    for isolation in ISOLATIONS:
        def run(t, isolation=isolation):
            function(t, isolation)
        run.__name__, run.__module__ = "%s_%s" % (function.__name__, isolation), function.__module__
        run.__doc__ = function.__doc__
        case(daemon=False, deadline=30)(run)


@for_each_isolation
def a_session_outlives_the_daemon(t, isolation):
    """The next request goes on in a fresh process, which had the same handshake; level, subscriptions, and lists that may differ."""
    daemons = Daemons(t)
    daemons.begin(isolation)
    s = t.session(caps={"sampling": {}, "roots": {"listChanged": True}})
    pid = s.pid()
    eq(s.ask("logging/setLevel", {"level": "error"})["result"] if isolation == "session" else {}, {})
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    for _ in range(2):
        daemons.again(isolation)
        daemons.move(s)
        stream = s.get()
        eq(sorted(told(stream, 3)), sorted(LISTS))
        ok(s.pid() != pid, "a process of this daemon")
        pid = s.pid()
        read = [json.loads(line) for line in daemons.daemon.record(pid).splitlines()]
        if isolation == "session":
            eq(read[0]["params"]["capabilities"], {"sampling": {}, "roots": {"listChanged": True}}, "the handshake")
            eq([m["params"]["level"] for m in read if m["method"] == "logging/setLevel"], ["error"])
        eq([m["params"]["uri"] for m in read if m["method"] == "resources/subscribe"], ["r:a"])
        s.do(["notify", "notifications/resources/updated", {"uri": "r:a"}], ["text", "x"])
        wait_for(lambda: stream.next().get("method") == "notifications/resources/updated", 10, "the update")
        stream.conn.close()
    eq(s.delete().status, 204)
    daemons.again(isolation)
    daemons.move(s)
    eq(s.post(mcp.request(1, "ping")).status, 404, "what its client has ended is over")


@for_each_isolation
def a_session_outlives_the_gateway(t, isolation):
    """A gateway that is killed: what it knew at that moment goes on."""
    daemons = Daemons(t)
    daemons.begin(isolation)
    s = t.session()
    eq(s.echo("before"), "before")
    wait_for(lambda: daemons.saved(), 10, "the session on the disk")
    kill_gateway(t)
    eq(s.echo("after"), "after")
    kill_gateway(t)
    eq(s.echo("again"), "again")


@case(daemon=False, deadline=30)
def nothing_that_opens_a_session_is_on_the_disk(t):
    """SEC-68: the id only as a digest; the file is ours alone, and whole."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    wait_for(lambda: daemons.saved(), 10, "the session on the disk")
    folder = os.path.join(daemons.state, "mcpgated")
    for name in os.listdir(folder):
        eq(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600, name)
        with open(os.path.join(folder, name), "rb") as f:
            ok(s.id.encode() not in f.read(), "the id", name)


@case(daemon=False, deadline=40)
def who_is_another_finds_nothing(t):
    """FRONT-SESS-05 AUTH-SES-02: another caller, another server, an age that is over; and the owner still does."""
    auth = {"auth": {"mode": "token", "tokens": [
        {"name": who, "sha256": hashlib.sha256(("token-of-%s" % who).encode()).hexdigest()} for who in ("alice", "bob")]}}
    daemons = Daemons(t)
    daemons.begin(config=auth)
    s = t.session(token="token-of-alice")
    eq(s.echo("x"), "x")
    daemons.again(config=auth)
    daemons.move(s)
    s.token = "token-of-bob"
    eq(s.post(mcp.request(1, "ping")).status, 404, "bob")
    s.token = "nobody"
    eq(s.post(mcp.request(1, "ping")).status, 401, "nobody")
    s.token = "token-of-alice"
    eq(s.echo("y"), "y")
    daemons.again(config=dict(auth, sessions={"max_age": "1ms"}))
    daemons.move(s)
    eq(s.post(mcp.request(1, "ping")).status, 404, "too old")
    daemons.again(config=dict(auth, sessions={"persist": False}))
    daemons.move(s)
    eq(s.post(mcp.request(1, "ping")).status, 404, "not kept")


@case(daemon=False, deadline=30)
def a_removed_server_is_gone(t):
    """A server of another name does not take over sessions; a changed one does."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    eq(s.echo("x"), "x")
    daemons.stop()
    daemons.daemon = t.daemon = t.start({"other": {"script": {}}}, env={"XDG_STATE_HOME": daemons.state})
    daemons.move(s)
    s.path = "/other/mcp"
    eq(s.post(mcp.request(1, "ping")).status, 404)
    s.path = "/main/mcp"
    daemons.again(env={"CHANGED": "1"})
    daemons.move(s)
    eq(s.echo("y"), "y")


@case(daemon=False, deadline=30)
def streams_of_before(t):
    """FRONT-RES-05: GET with an event id of an earlier daemon opens the session's stream; a lost answer is told to be lost."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    stream = s.get()
    s.do(["notify", "notifications/tools/list_changed"], ["text", "x"])
    eq(stream.next()["method"], "notifications/tools/list_changed")
    last = stream.last_id
    call = s.start_do(["progress", 1], ["sleep", 1], ["text", "x"], token="t")
    eq(call.next()["method"], "notifications/progress")
    daemons.again()
    daemons.move(s)
    t.expect_invalid("id missing", "nobody knows any more which request it was")
    lost = s.resume(call.last_id)
    ok("error" in lost.next(), "the answer is lost")
    daemons.again()
    daemons.move(s)
    stream = s.resume(last)
    ok("notifications/tools/list_changed" in told(stream, 3), "it goes on")
    wait_for(lambda: daemons.daemon.children("main"), 10, "a process, whose changes it is told")


NOTES = ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"]


@case(daemon=False, deadline=60)
def streams_outlive_the_gateway(t):
    """FRONT-RES-11: what clients have not got, and what they may ask for again, by the ids that they have, each once; killed twice."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session(version="2025-06-18")
    stream = s.get()
    s.do(["notify", NOTES[0]], ["text", "x"])
    eq(stream.next()["method"], NOTES[0])
    first = stream.last_id
    s.do(["notify", NOTES[1]], ["text", "x"])
    eq(stream.next()["method"], NOTES[1])
    stream.close()
    done = s.start_do(["progress", 1], ["progress", 2], ["text", "the answer"], token="t")
    eq(done.next()["params"]["progress"], 1)
    seen = done.last_id
    eq(done.next()["params"]["progress"], 2)
    done.final()
    lost = s.start_do(["notify", NOTES[2]], ["progress", 1], ["sleep", 60], token="u")
    eq(lost.next()["params"]["progress"], 1)
    for _ in range(2):
        kill_gateway(t)
        again = s.resume(seen)
        eq(again.next()["params"]["progress"], 2)
        eq(again.final()["result"]["content"][0]["text"], "the answer")
        error = s.resume(lost.last_id).final()
        eq(error["error"]["data"]["reason"], "gateway_lost")
        ok("may have been executed" in error["error"]["message"], error)
    stream = s.resume(first)
    told_now = told(stream, 2)
    eq(told_now, NOTES[1:], "what it has seen comes once more, what it has not once")
    eq(s.echo("after"), "after")
    s.start_do(["notify", NOTES[0]], ["text", "x"]).final()
    ok(NOTES[0] in told(stream, 3), "it goes on")


@case(daemon=False, deadline=30)
def a_file_that_cannot_be_used(t):
    """SEC-68: cut, or of somebody else: said once, set aside, and all begins anew."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    daemons.stop()
    folder = os.path.join(daemons.state, "mcpgated")
    name = [n for n in os.listdir(folder) if n.startswith("sessions-") and not n.endswith(".lock")][0]
    os.truncate(os.path.join(folder, name), 100)
    daemons.begin()
    daemons.move(s)
    eq(s.post(mcp.request(1, "ping")).status, 404)
    daemons.daemon.wait_log("sessions_unreadable")
    ok(os.path.exists(os.path.join(folder, name + ".bad")), "set aside")


@case(daemon=False, deadline=60)
def a_full_disk(t):
    """SEC-68: what is on it stays whole, everybody is served, check says so; and once there is room, all is written."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise harness.Skip("this takes root and a mount namespace")
    daemons = Daemons(t)
    place = os.path.join(daemons.state, "mcpgated")
    os.mkdir(place, 0o700)
    mount = 'mount -t tmpfs -o size=64k,mode=700 none "$0" && exec "$@"'
    inside = "/proc/%d/root" % daemons.begin(prefix=["unshare", "-m", "sh", "-c", mount, place]).pid + place

    def written():
        return len(saved(os.path.dirname(inside)))
    first = t.session()
    wait_for(lambda: written() == 1, 10, "it is written")
    with contextlib.suppress(OSError), open(os.path.join(inside, "other"), "wb", buffering=0) as other:
        while True:
            other.write(bytes(4096))
    second = t.session()
    t.daemon.wait_log("sessions_unsaved", "No space left")
    wait_for(lambda: unsaved(t), 10, "check says so")
    processes = first.pid(), second.pid()
    kill_gateway(t)
    eq((written(), first.pid(), second.pid()), (1, *processes))
    os.unlink(os.path.join(inside, "other"))
    wait_for(lambda: written() == 2, 20, "both are written")
    for name in os.listdir(inside):
        shutil.copy(os.path.join(inside, name), place)
    daemons.again()
    for session in (first, second):
        daemons.move(session).echo("hello")


@case(daemon=False, deadline=30)
def when_there_is_no_room(t):
    """FRONT-SESS-08: a session that sleeps waits for room; it is not lost."""
    daemons = Daemons(t)
    limits = {"limits": {"sessions": 1}}
    daemons.begin()
    s = t.session()
    eq(s.echo("x"), "x")
    daemons.again(config=limits)
    daemons.move(s)
    other = t.session()
    running = other.start_do(["sleep", 1.5], ["text", "done"])
    wait_for(lambda: running.conn is not None, 5, "it runs")
    answer = s.post(mcp.request(1, "ping"))
    eq(answer.status, 503)
    running.final()
    eq(other.delete().status, 204)
    eq(s.echo("y"), "y")


@case(daemon=False, deadline=30)
def who_wakes_while_another_subscribes(t):
    """UTIL-SUBS-01: one asks for a resource, slowly, that another one is subscribed to from before: neither disturbs the other."""
    slow = {"main": {"isolation": "shared", "script": {"on": {"resources/subscribe": [["sleep", 1], ["error", -32000, "no"]]}}}}
    daemons = Daemons(t)
    daemons.begin("shared")
    b, c = t.session(), t.session()
    for s in (b, c):
        eq(s.ask("resources/subscribe", {"uri": "r:u"})["result"], {})
    daemons.stop()
    daemons.daemon = t.daemon = t.start(slow, env={"XDG_STATE_HOME": daemons.state})
    a = t.session()
    a.echo("a process is there")
    first, second = (a.start("resources/subscribe", {"uri": "r:u"}) for _ in range(2))
    for s in (b, c):
        daemons.move(s)
        eq(s.echo("awake"), "awake")
    eq(b.delete().status, 204)
    ok("error" in first.final() and "error" in second.final(), "both are told")
    ok("error" in a.ask("resources/subscribe", {"uri": "r:v"}), "and it goes on")
    eq(c.ask("resources/unsubscribe", {"uri": "r:u"})["result"], {})
    eq(c.delete().status, 204)
    eq(a.echo("x"), "x")


@case(daemon=False, deadline=30)
def what_is_off_comes_back_from_nowhere(t):
    """A session that has ended while nothing was kept is over, also when sessions are kept again."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    wait_for(lambda: daemons.saved(), 10, "the session on the disk")
    for persist in (False, True):
        daemons.again(config={"sessions": {"persist": persist}})
        daemons.move(s)
        eq(s.post(mcp.request(1, "ping")).status, 404, persist)
        eq(daemons.saved(), [])


@for_each_isolation
def open_sessions_are_kept_from_now_on(t, isolation):
    """`sessions.persist` on, off and on again by reloads: the sessions that are open then go on after a restart."""
    daemons = Daemons(t)
    for before in ([False], [True, False]):
        daemons.begin(isolation, config={"sessions": {"persist": before[0]}})
        s = t.session(caps={"roots": {}})
        for persist in before[1:]:
            wait_for(daemons.saved, 10, "the session on the disk")
            reload(t, servers(isolation), {"sessions": {"persist": persist}})
        wait_for(lambda: not daemons.saved(), 10, "nothing is kept")
        reload(t, servers(isolation), {"sessions": {"persist": True}})
        wait_for(daemons.saved, 10, "the session on the disk")
        daemons.again(isolation)
        daemons.move(s)
        eq(s.echo("on"), "on", (isolation, before))
        eq(s.delete().status, 204)
        wait_for(lambda: not daemons.saved(), 10, "it is over")
        daemons.stop()


@case(daemon=False, deadline=30)
def initialize_wakes_nobody(t):
    """FRONT-INIT-05: a client that begins anew, and still names its old session, gets a new one, and no more."""
    daemons = Daemons(t)
    daemons.begin()
    s = t.session()
    daemons.again()
    daemons.move(s)
    answer = s.post(mcp.initialize(s.version))
    eq(answer.status, 200)
    t.will_end(answer, s.path)
    ok(answer.response.header("mcp-session-id") != s.id, "another session")
    daemons.daemon.never_logged("session_continued")
    eq(s.echo("x"), "x", "the old one sleeps until it is used")


@case(daemon=False, deadline=40)
def a_denial_ends_what_sleeps(t):
    """AUTH-SES-07: the token that a session was begun with, whichever came with later requests, and whether it sleeps or was woken."""
    i = begin_oauth(t)
    bad, good = (i.token(RESOURCE, jti=jti) for jti in ("bad", "good"))
    asleep, woken, other = t.session(token=bad), t.session(token=bad), t.session(token=good)
    wait_for(lambda: len(saved(t.daemon.dir)) == 3, 10, "the sessions on the disk")
    kill_gateway(t)
    eq(status_in(t, woken, good), 200)
    kill_gateway(t)
    eq(status_in(t, woken, good), 200, "once more")
    eq(deny(t, jti="bad")["sessions_ended"], 1, "the one that is awake")
    eq(status_in(t, woken, good), 404)
    eq(status_in(t, asleep, good), 404)
    eq(status_in(t, other, good), 200)


@case(daemon=False, deadline=40)
def what_a_reload_takes_away(t):
    """AUTH-SES-07: a session that sleeps ends with its static token, or with its server, as one that is awake does."""
    def auth(secret):
        return {"mode": "token", "tokens": [{"name": "alice", "sha256": hashlib.sha256(secret.encode()).hexdigest()}]}
    both = {"main": {"script": {}}, "other": {"script": {}}}
    t.start(both, {"auth": auth("first-token")})
    first, other, kept = t.session(token="first-token"), t.session("other", token="first-token"), t.session(token="first-token")
    eq(kept.echo("x"), "x")
    wait_for(lambda: len(saved(t.daemon.dir)) == 3, 10, "the sessions on the disk")
    kill_gateway(t)
    eq(kept.echo("y"), "y")
    reload(t, {"main": both["main"]}, {"auth": auth("first-token")})
    reload(t, both, {"auth": auth("first-token")})
    eq(other.post(mcp.request(1, "ping")).status, 404, "its server was removed")
    eq(kept.echo("z"), "z")
    reload(t, both, {"auth": auth("second-token")})
    first.token = kept.token = "second-token"
    eq(kept.post(mcp.request(1, "ping")).status, 404, "awake")
    eq(first.post(mcp.request(1, "ping")).status, 404, "asleep")
