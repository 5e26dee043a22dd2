# SPDX-License-Identifier: Apache-2.0
"""Several daemons that serve the same sessions, by a store: bridging §6, with a real redis-server (or valkey-server)."""
import contextlib
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import harness
import mcp
import wire
from c80_stateless import begin, fields, message, messages_of
from c81_parked import ACCEPT
from c82_modern_both import ELICIT, Rounds, sent
from c83_tasks import KNOWS, MODERN
from harness import case, eq, ok, wait_for
from wire import free_port

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
# In Debian one program under several names; that of the server comes with a service.
PROGRAMS = [path for path in map(shutil.which, ("valkey-server", "redis-server", "valkey-check-rdb", "redis-check-rdb")) if path]


class Store:
    """A server of its own, which keeps nothing on the disk."""

    host = "127.0.0.1"

    def __init__(self, t, *args, tls=None):
        if not PROGRAMS:
            raise harness.Skip("neither valkey-server nor redis-server is installed")
        self.port, self.folder, self.args, self.process, self.tls = free_port(), t.directory(), list(args), None, tls
        self.start()

    def start(self):
        port = ["--port", "0", "--tls-port", str(self.port)] if self.tls else ["--port", str(self.port)]
        self.process = subprocess.Popen(
            [PROGRAMS[0].replace("check-rdb", "server"), *port, "--bind", self.host, "--save", "", "--appendonly", "no",
             "--dir", self.folder, *self.args], executable=PROGRAMS[0], preexec_fn=self.enter, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        harness.KNOWN.add(self.process.pid)
        wait_for(self.answers, 10, "the store")

    def enter(self):
        """In its process, before it begins."""

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1) as sock:
            if self.tls:
                return True
            sock.sendall(b"PING\r\n")
            return sock.recv(64)
        return None

    def ask(self, *words):
        """What it answers to one command, as text."""
        with socket.create_connection((self.host, self.port), 5) as plain:
            sock = ssl.create_default_context(cafile=self.tls).wrap_socket(plain, server_hostname="127.0.0.1") if self.tls else plain
            sock.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words)))
            with sock.makefile("rb") as answers:
                kind = answers.readline()
                return answers.read(int(kind[1:])).decode() if kind.startswith(b"$") else kind.decode()

    def records(self):
        """Who has which line."""
        text = self.ask("EVAL", "local r = '' for _, k in ipairs(redis.call('KEYS', '*:s:*')) do local v = redis.call('HMGET', k, 'n', 'l') "
                        "r = r .. v[1] .. ' ' .. v[2] .. '\\n' end return r", "0")
        return [line.split(" ", 1) for line in text.splitlines()]

    def logs(self):
        """All of streams."""
        return self.ask("EVAL", "local r = '' for _, k in ipairs(redis.call('KEYS', '*:e:*:*')) do r = r .. redis.call('GET', k) end return r", "0")

    def wait(self, *words, node="a"):
        wait_for(lambda: [l for n, l in self.records() if n == node and all(w in l for w in words)], 10, "it is in the store")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.stop()

    @property
    def url(self):
        return "%s://%s:%d" % ("valkeys" if self.tls else "valkey", self.host, self.port)


class DistantStore(Store):
    """One in a network of its own, to which packets can be lost."""

    def __init__(self, t):
        self.net, here = "mcpgated%d" % (os.getpid() % 100000), 4 * (os.getpid() % (1 << 14))
        address, self.host = ("198.18.%d.%d" % ((here + n) // 256, (here + n) % 256) for n in (1, 2))
        steps = ("netns add @", "link add @ type veth peer name peer netns @", "addr add %s/30 dev @" % address,
                 "-n @ addr add %s/30 dev peer" % self.host, "-n @ link set peer up", "link set @ up")
        if os.getuid() != 0 or not all(self.ip(step) for step in steps):
            self.remove()
            raise harness.Skip("no network of its own can be made here")
        super().__init__(t, "--protected-mode", "no")

    def ip(self, step):
        done = subprocess.run(["ip", *step.replace("@", self.net).split()], capture_output=True)
        return done.returncode == 0

    def enter(self):
        with open("/run/netns/" + self.net) as net:
            if ctypes.CDLL(None, use_errno=True).setns(net.fileno(), 0) != 0:
                os._exit(1)

    def part(self):
        """From now on nothing reaches it, and nothing comes from it."""
        ok(self.ip("-n @ link set peer down"), "cut")

    def join(self):
        ok(self.ip("-n @ link set peer up"), "joined")

    def remove(self):
        self.ip("link del @")
        self.ip("netns del @")

    def __exit__(self, *ignored):
        self.stop()
        self.remove()


class Nodes:
    """Daemons with the same servers and the same store."""

    def __init__(self, t, store, names=("a", "b"), servers=None, config=None, **more):
        self.t, self.store, self.all, self.more = t, store, {}, more
        self.servers, self.config = servers or {"main": {"script": {}}}, config or {}
        for name in names:
            self.begin(name)

    def begin(self, name, at=None, wait=True):
        """At an address that it had before, or at a new one. Without `wait`, the store may not have been reached yet."""
        cluster = dict({"node": name, "store": self.store.url}, **self.more)
        listen = {"listen": [{"address": "%s:%d" % at}]} if at else {}
        daemon = self.t.start(self.servers, dict(self.config, cluster=cluster, **listen))
        self.t.daemon = self.all[name] = daemon
        if wait:
            daemon.wait_log("store_up")
        return daemon

    def __getitem__(self, name):
        return self.all[name]

    def move(self, session, name):
        """What a proxy does for it: its client notices nothing."""
        session.daemon, session.address = self[name], self[name].address
        return session

    def status(self, name):
        return json.loads(self.t.conn(address=self[name].admin).request("GET", "/status").read())

    def kill(self, name):
        """The machine is gone."""
        daemon = self[name]
        daemon.forgiven = True
        pids = [daemon.pid] + harness.descendants(daemon.pid)
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        daemon.process.wait()
        wait_for(lambda: not any(map(harness.is_alive, pids)), 5, "all of it is gone")


def with_store(function):
    def run(t):
        with Store(t) as store:
            function(t, store)
    run.__name__, run.__module__, run.__doc__ = function.__name__, function.__module__, function.__doc__
    return case(daemon=False, deadline=60)(run)


@with_store
def another_node_goes_on_with_a_session(t, store):
    """CLU-SESS-01 CLU-ID-01: a node dies; the same client, the same id, a fresh process with the same handshake."""
    nodes = Nodes(t, store)
    s = t.session(daemon=nodes["a"], caps={"sampling": {}})
    ok(s.id.startswith("a."), s.id)
    eq(len(s.id), 32)
    eq(s.echo("before"), "before")
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    store.wait("r:a")
    ok(s.id not in str(store.records()), "its id")
    nodes.kill("a")
    nodes.move(s, "b")
    eq(s.echo("after"), "after")
    read = [json.loads(line) for line in nodes["b"].record(s.pid()).splitlines()]
    eq(read[0]["params"]["capabilities"], {"sampling": {}})
    eq([m["params"]["uri"] for m in read if m["method"] == "resources/subscribe"], ["r:a"])
    nodes["b"].wait_log("session_taken", "from=a")
    eq(s.delete().status, 204)
    wait_for(lambda: not store.records(), 10, "it is forgotten")


@with_store
def whoever_is_replaced_ends_what_he_has(t, store):
    """CLU-SESS-03: two nodes never have one session; the call that runs may have been executed, and its client is told."""
    nodes = Nodes(t, store)
    s = t.session(daemon=nodes["a"])
    pid = s.pid()
    running = s.start_do(["progress", 1], ["sleep", 30], ["text", "x"], token="t")
    eq(running.next()["params"]["progress"], 1, "it runs there: a node that read it later would take the session back")
    store.wait('"id"')
    nodes.move(s, "b")
    ok(s.pid() != pid, "a fresh process")
    nodes["a"].wait_log("session_state", "to=ended")
    error = running.next()["error"]
    eq((error["code"], error["data"]["reason"]), (-32603, "session_moved"))
    ok("may have been executed" in error["message"], error)
    wait_for(lambda: not harness.is_alive(pid), 10, "its process ends")
    for name in "abab":
        nodes.move(s, name)
        eq(s.echo(name), name)
    eq([n for n, _ in store.records()], ["b"])


@with_store
def a_request_that_is_overtaken_is_tried_again(t, store):
    """CLU-SESS-03: its session goes to another node while its body comes. It is not said to be unknown, and nothing was executed."""
    nodes = Nodes(t, store)
    s = t.session(daemon=nodes["a"])
    store.wait('"id"')
    call = mcp.encode(mcp.request(1, "ping"))
    slow = s.new_conn()
    slow.send(slow.head("POST", s.path, s.headers(), len(call)) + call[:5])
    eq(s.echo("x"), "x", "its head has been read")
    nodes.move(s, "b")
    eq(s.echo("y"), "y")
    nodes["a"].wait_log("session_state", "to=ended")
    slow.send(call[5:])
    answer = slow.response()
    eq(answer.status, 503)
    ok("Another node" in answer.read().decode(), answer)
    eq(s.delete().status, 204)
    wait_for(lambda: not store.records(), 10, "it is forgotten")
    store.ask("SET", "mcpgated:since", "1")
    late = nodes.move(s, "a").post(mcp.request(2, "ping"))
    eq(late.status, 404, "a request that came later: %r" % late.response.read())


@with_store
def without_the_store_everything_goes_on(t, store):
    """CLU-CONN-02: sessions here are served, those of others get 503 and not 404; all is caught up."""
    nodes = Nodes(t, store)
    before, other = t.session(daemon=nodes["a"]), t.session(daemon=nodes["b"])
    store.wait('"id"')
    store.wait('"id"', node="b")
    store.stop()
    for name in "ab":
        nodes[name].wait_log("store_down")
    during = t.session(daemon=nodes["a"])
    eq(nodes.status("a")["node"], "a")
    eq([p["kind"] for p in nodes.status("a")["problems"]], ["store_away"])
    for s in (before, during):
        eq(s.echo("x"), "x")
    nodes.move(other, "a")
    refused = other.post(mcp.request(1, "ping"))
    eq(refused.status, 503)
    ok("store of the cluster" in refused.response.read().decode(), refused)
    eq(nodes.move(other, "b").echo("y"), "y")
    own = t.session(daemon=nodes["b"])
    eq(own.delete().status, 204)
    eq(own.post(mcp.request(1, "ping")).status, 503, "it might have gone to another node")
    store.start()
    store.wait('"id"', node="b")
    wait_for(lambda: sorted(n for n, _ in store.records()) == ["a", "a", "b"], 10, "all are there again")
    wait_for(lambda: not nodes.status("a")["problems"], 10, "nothing to be told")
    store.ask("FLUSHALL")
    wait_for(lambda: sorted(n for n, _ in store.records()) == ["a", "a", "b"], 20, "all are written anew")
    nodes.kill("a")
    for s in (before, during):
        eq(nodes.move(s, "b").echo("z"), "z")


@case(daemon=False, deadline=90)
def the_way_to_the_store_may_be_cut(t):
    """CLU-CONN-02: packets are lost, and nobody says so: the same, within the time that a store may be silent."""
    with DistantStore(t) as store:
        nodes = Nodes(t, store, config=TWO, plaintext=True)
        denials = Denials(t, nodes)
        s, other = t.session(daemon=nodes["a"], token="token-of-alice"), t.session(daemon=nodes["b"], token="token-of-alice")
        store.wait('"id"')
        store.wait('"id"', node="b")
        store.part()
        for name in "ab":
            eq(t.session(daemon=nodes[name], token="token-of-alice").echo("begins"), "begins")
            nodes[name].wait_log("store_down")
        began = time.monotonic()
        eq(s.echo("goes on"), "goes on")
        nodes.move(other, "a")
        eq(other.post(mcp.request(1, "ping")).status, 503, "it may be alive at b")
        ok(time.monotonic() - began < 3, "nobody waits for the store")
        denials.add("a", "bob")
        store.join()
        wait_for(lambda: denials.has("b") == ["bob"], 20, "what was said meanwhile")
        wait_for(lambda: sorted(n for n, _ in store.records()) == ["a", "a", "b", "b"], 20, "what began meanwhile")
        eq(other.echo("taken over"), "taken over")


@with_store
def a_session_is_its_owners(t, store):
    """CLU-SESS-02 FRONT-SESS-05: another caller gets 404, and takes nothing away; so does who asks at another server."""
    nodes = Nodes(t, store, servers={"main": {"script": {}}, "other": {"script": {}}}, config=TWO)
    s = t.session(daemon=nodes["a"], token="token-of-alice")
    pid = s.pid()
    store.wait('"id"')
    nodes.move(s, "b")
    s.token = "token-of-bob"
    eq(s.post(mcp.request(1, "ping")).status, 404, "bob")
    s.token = "token-of-alice"
    own, s.id = s.id, s.id[:-1] + ("A" if s.id[-1] != "A" else "B")
    eq(s.post(mcp.request(1, "ping")).status, 503, "it may not have been written again yet: CLU-CONN-05")
    store.ask("SET", "mcpgated:since", "1")
    eq(s.post(mcp.request(1, "ping")).status, 404, "there is none")
    s.id, s.path = own, "/other/mcp"
    eq(s.post(mcp.request(1, "ping")).status, 404, "at another server")
    s.path = "/main/mcp"
    eq(nodes.move(s, "a").pid(), pid, "nothing was taken")


TWO = {"auth": {"mode": "token", "tokens": [
    {"name": who, "sha256": hashlib.sha256(("token-of-%s" % who).encode()).hexdigest()} for who in ("alice", "bob")]}}


class Denials:
    """Orders to nodes, as `mcpgatectl deny` gives them."""

    def __init__(self, t, nodes):
        self.t, self.nodes = t, nodes

    def ask(self, name, method, target, body=b""):
        return json.loads(self.t.conn(address=self.nodes[name].admin).request(method, target, [("Content-Type", "application/json")], body).read())

    def add(self, name, who, for_s=3600):
        until_ms = int((time.time() + for_s) * 1000)
        return self.ask(name, "POST", "/deny-add", json.dumps({"issuer": "static", "sub": who, "until_ms": until_ms}).encode())

    def remove(self, name):
        return self.ask(name, "POST", "/deny-remove?number=%d" % self.ask(name, "GET", "/deny")["entries"][0]["number"])

    def has(self, name):
        return sorted(entry["name"] for entry in self.ask(name, "GET", "/deny")["entries"])


NOTES = ["notifications/tools/list_changed", "notifications/prompts/list_changed"]


@with_store
def streams_move_with_their_session(t, store):
    """CLU-SESS-04: what the client has not got, and what it asks for again, by the ids of the node that is gone, each once; and back."""
    nodes = Nodes(t, store, names="abc")
    s = t.session(daemon=nodes["a"], version="2025-06-18")
    stream = s.get()
    s.do(["notify", NOTES[0]], ["text", "x"])
    eq(stream.next()["method"], NOTES[0])
    first = stream.last_id
    stream.close()
    done = s.start_do(["progress", 1], ["progress", 2], ["text", "the answer"], token="t")
    eq(done.next()["params"]["progress"], 1)
    seen = done.last_id
    done.final()
    lost = s.start_do(["notify", NOTES[1]], ["progress", 1], ["sleep", 60], token="u")
    eq(lost.next()["params"]["progress"], 1)
    store.wait('"id"')

    wait_for(lambda: all(text in store.logs() for text in ("the answer", NOTES[1], '"u"', "taken 1 ")), 10, "copied")
    for gone, now in ("ab", "bc"):
        nodes.kill(gone)
        nodes.move(s, now)
        again = s.resume(seen)
        eq(again.next()["params"]["progress"], 2)
        eq(again.final()["result"]["content"][0]["text"], "the answer")
        eq(s.resume(lost.last_id).final()["error"]["data"]["reason"], "gateway_lost")
        wait_for(lambda: store.logs().count("the answer") == 1, 10, "once")
    stream = s.resume(first)
    eq(stream.next()["method"], NOTES[1], "it had not got this")
    eq(s.delete().status, 204)
    wait_for(lambda: not store.logs(), 10, "nothing is left")


def subscribed(t, nodes):
    s = t.session(daemon=nodes["a"], version="2025-06-18")
    s.ask("resources/subscribe", {"uri": "file:///of"})
    nodes.store.wait("file:///of")
    return s


def update(s, n):
    s.do(["notify", "notifications/resources/updated", {"uri": "file:///of/%d" % n}], ["text", "x"])


def updates(stream, count):
    """A node that has taken a session over says once that its lists, and what it has subscribed to, may have changed."""
    told = []
    while len(told) < count:
        uri = stream.next().get("params", {}).get("uri", "file:///of")
        if uri != "file:///of":
            told.append(int(uri.rsplit("/", 1)[1]))
    return told


@with_store
def what_the_store_lacks_is_passed_over(t, store):
    """CLU-SESS-04: a node dies before the store has all: what a client says that it has is not sent again, nor refused."""
    nodes = Nodes(t, store, names="a")
    s = subscribed(t, nodes)
    update(s, 0)
    wait_for(lambda: "waits 1 " in store.logs(), 10, "copied")
    call = s.start_do(["progress", 1], ["sleep", 60], token="t")
    eq(call.next()["params"]["progress"], 1)
    wait_for(lambda: store.logs().count("taken 1 ") == 1, 10, "copied")
    store.ask("CLIENT", "PAUSE", "100000", "WRITE")
    stream = s.get()
    eq(updates(stream, 1), [0])
    update(s, 1)
    eq(updates(stream, 1), [1])
    nodes.kill("a")
    # What a client that is still there has asked would be done now.
    wait_for(lambda: store.ask("CLIENT", "LIST").count("\n") == 1, 10, "its connections are gone")
    store.ask("CLIENT", "UNPAUSE")
    eq(store.logs().count("taken"), 1, "it lacks that")
    nodes.begin("b")
    nodes.move(s, "b")
    again = s.resume(stream.last_id)
    update(s, 2)
    eq(updates(again, 1), [2], "what it has is not sent again")
    eq(s.resume(call.last_id).final()["error"]["data"]["reason"], "gateway_lost")


@with_store
def a_node_that_stops_leaves_its_streams(t, store):
    """CLU-SESS-04: what came last before SIGTERM is at the next node, and at the same one when it begins again."""
    nodes = Nodes(t, store)
    s = subscribed(t, nodes)
    for n, (name, following) in enumerate(("ab", "bb", "ba")):
        update(s, n)
        nodes[name].term()
        eq(nodes[name].wait(20), 0)
        ok("file:///of/%d" % n in store.logs(), "it waits there")
        nodes.begin(name, wait=False)
        nodes.move(s, following)
        stream = s.get()
        eq(updates(stream, 1), [n])
        update(s, 7)
        eq(updates(stream, 1), [7], "once")
        stream.close()


@with_store
def a_denial_holds_at_every_node(t, store):
    """CLU-DENY-01: it ends what is open elsewhere, within a second, outlives a gateway, and is taken away everywhere."""
    nodes = Nodes(t, store, names="abc", config=TWO)
    denials = Denials(t, nodes)
    opened, other = t.session(daemon=nodes["b"], token="token-of-alice"), t.session(daemon=nodes["b"], token="token-of-bob")
    pid = opened.pid()
    sleeping = t.session(daemon=nodes["c"], token="token-of-alice")
    store.wait('"id"', node="c")
    nodes.kill("c")
    denials.add("a", "alice")
    wait_for(lambda: opened.post(mcp.request(1, "ping")).status == 401, 1, "she is refused at another node")
    nodes["b"].wait_log("denial_taken", "by=sub name=alice effect=denied")
    wait_for(lambda: not harness.is_alive(pid), 5, "what she had open has ended")
    eq(other.echo("x"), "x")
    eq(nodes.move(sleeping, "b").post(mcp.request(1, "ping")).status, 401)
    os.kill(nodes["b"].gateway, signal.SIGKILL)
    nodes["b"].forgiven = True
    wait_for(lambda: len(nodes["b"].log("store_up")) == 2, 10, "the next gateway")
    eq(opened.post(mcp.request(1, "ping")).status, 401)
    late = nodes.begin("d")
    wait_for(lambda: denials.has("d") == ["alice"], 5, "a node that comes later")
    eq(wire.Conn(late.address).request("POST", "/main/mcp", [("Authorization", "Bearer token-of-alice")], b"").status, 401)
    denials.remove("b")
    for name in "abd":
        wait_for(lambda: denials.has(name) == [], 5, "taken away at node %s" % name)
    eq(t.session(daemon=nodes["a"], token="token-of-alice").echo("y"), "y")


@with_store
def the_last_order_about_a_token_counts(t, store):
    """CLU-DENY-01: whichever node was given it, and whether the store was there, or was emptied; what has expired goes from it."""
    nodes = Nodes(t, store, config=TWO)
    denials = Denials(t, nodes)
    denials.add("a", "alice")
    wait_for(lambda: denials.has("b") == ["alice"], 5, "told")
    store.stop()
    for name in "ab":
        nodes[name].wait_log("store_down")
    denials.remove("a")
    denials.add("b", "bob")
    store.start()
    for name in "ab":
        wait_for(lambda: denials.has(name) == ["bob"], 10, "both orders hold at %s" % name)
    def written():
        return store.ask("EVAL", "return tostring(#redis.call('HKEYS', 'mcpgated:denials'))", "0")

    denials.add("a", "alice")
    wait_for(lambda: denials.has("b") == ["alice", "bob"], 5, "once more")
    store.ask("FLUSHALL")
    wait_for(lambda: written() == "2", 20, "written anew")
    denials.add("b", "alice", for_s=1)
    wait_for(lambda: denials.has("a") == ["bob"], 10, "over")
    nodes.begin("c")
    wait_for(lambda: denials.has("c") == ["bob"], 5, "those in force")
    wait_for(lambda: written() == "1", 5, "it is gone")


@with_store
def a_state_is_understood_at_every_node(t, store):
    """CLU-SEAL-01: what a server gave at one node comes back to a server at another one; not with another key, nor the id of a task."""
    modern = {"servers": {"main": {"script": MODERN}}, "config": {"defaults": {"era": "modern"}}}
    nodes = Nodes(t, store, seal_key="the same at these two, and long enough", **modern)
    apart = Nodes(t, store, "c", seal_key="another one at this node, long enough", **modern)
    c = Rounds(t, [["input", ELICIT]], [["told"]])
    t.daemon = nodes["a"]
    _, state = c.asked()
    body = message("tools/call", {"name": "do", "arguments": {"steps": [["task", "t", [["sleep", 60]]]]}}, caps=KNOWS)
    task = messages_of(begin(t, "main", body).response())[0]["result"]["taskId"]
    get = message("tasks/get", {"taskId": task}, caps=KNOWS)
    eq(messages_of(begin(t, "main", get).response())[0]["result"]["taskId"], task)
    nodes.kill("a")
    t.daemon = nodes["b"]
    eq(json.loads(c.text(state, {"q": ACCEPT})), {"q": ACCEPT})
    eq(sent(t, "main", "tools/call")[-1]["requestState"], "1")
    eq(messages_of(begin(t, "main", get).response())[0]["error"]["code"], -32602)
    t.daemon = apart["c"]
    eq(c.refused(state, {"q": ACCEPT}), "invalid_request_state")


@with_store
def an_endpoints_session_goes_on(t, store):
    """CLU-SESS-01: with its legs."""
    servers = {name: {"script": {}} for name in ("one", "two")}
    nodes = Nodes(t, store, servers=servers, config={"endpoints": {"all": {"servers": ["one", "two"]}}})
    s = t.session("all", daemon=nodes["a"])
    names = sorted(tool["name"] for tool in s.ask("tools/list")["result"]["tools"])
    store.wait('"leg"', '"one"')
    store.wait('"leg"', '"two"')
    nodes.kill("a")
    nodes.move(s, "b")
    eq(sorted(tool["name"] for tool in s.ask("tools/list")["result"]["tools"]), names)
    wait_for(lambda: [n for n, _ in store.records()] == ["b"] * 3, 10, "session and legs")


@case(daemon=False, deadline=60)
def a_node_shows_who_it_is(t):
    """CLU-CONN-03: a password, of the default user or another one; a wrong one is said."""
    with Store(t, "--requirepass", "of-the-default") as store:
        store.ask("AUTH", "of-the-default")
        a = t.start({"main": {"script": {}}}, {"cluster": {"node": "a", "store": store.url, "password": "of-the-default"}})
        a.wait_log("store_up")
        b = t.start({"main": {"script": {}}}, {"cluster": {"node": "b", "store": store.url, "password": "another"}})
        b.wait_log("store_down", "WRONGPASS")
        ok(not [l for l in a.lines + b.lines if "of-the-default" in l or "another" in l], "a password in the log")
        t.session(daemon=b).echo("x")


def certificate(folder, name):
    """Of this machine's address; returns the names of the files."""
    paths = [os.path.join(folder, "%s.%s" % (name, kind)) for kind in ("crt", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=store",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]], check=True, stderr=subprocess.DEVNULL)
    return paths


@case(daemon=False, deadline=60)
def the_way_to_the_store_is_secured(t):
    """CLU-CONN-04: TLS; a store with another certificate gets neither the password nor a session."""
    folder = t.directory()
    crt, key = certificate(folder, "store")
    other, _ = certificate(folder, "other")
    with Store(t, "--tls-cert-file", crt, "--tls-key-file", key, "--tls-ca-cert-file", crt, "--tls-auth-clients", "no", tls=crt) as store:
        nodes = Nodes(t, store, ca=crt)
        s = t.session(daemon=nodes["a"])
        store.wait('"id"')
        nodes.kill("a")
        eq(nodes.move(s, "b").echo("x"), "x")
        distrusts = t.start({"main": {"script": {}}}, {"cluster": {"node": "c", "store": store.url, "ca": other}})
        distrusts.wait_log("store_down", "certificate is not accepted")


@with_store
def the_rights_that_the_guide_names_suffice(t, store):
    """CLU-CONN-03: a user of the store with these and no others; one with less is told."""
    with open(os.path.join(TOP, "docs/guides/cluster.md")) as f:
        words = re.search(r"^user (mcpgated .+)$", f.read(), re.MULTILINE).group(1).split()
    eq(store.ask("ACL", "SETUSER", *[w.replace(">PASSWORD", ">of-the-node") for w in words]), "+OK\r\n")
    nodes = Nodes(t, store, username="mcpgated", password="of-the-node")
    s = t.session(daemon=nodes["a"])
    store.wait('"id"')
    eq(nodes.move(s, "b").echo("x"), "x")
    eq(s.delete().status, 204)
    wait_for(lambda: not store.records(), 10, "it is forgotten")
    eq(store.ask("ACL", "SETUSER", "mcpgated", "-hset"), "+OK\r\n")
    t.session(daemon=nodes["a"]).echo("y")
    nodes["a"].wait_log("store_refuses")


def filter_of(pid):
    """Whether system calls are filtered."""
    with open("/proc/%d/status" % pid) as f:
        return re.search(r"^Seccomp:\s*(\d)", f.read(), re.M).group(1)


@with_store
def who_connects_is_a_process_of_its_own(t, store):
    """CLU-SEC-01 SEC-81: it cannot write what the gateway keeps; it may die and is replaced, and what it missed is written."""
    nodes = Nodes(t, store, names="a")
    s = t.session(daemon=nodes["a"])
    store.wait('"id"')
    pid = int(nodes["a"].log("helper_start")[-1].split("pid=")[1].split()[0])
    eq(os.path.basename(os.readlink("/proc/%d/exe" % pid)), "mcpgated-store")
    if os.getuid() == 0:
        kept = ("sessions", "stream_logs")
        with open("/proc/%d/maps" % pid) as f:
            rights = sorted((name, line.split()[1]) for line in f for name in kept if "memfd:%s " % name in line)
        eq(rights, [(name, "r--s") for name in kept])
        held = [os.readlink("/proc/%d/fd/%s" % (pid, n)) for n in os.listdir("/proc/%d/fd" % pid)]
        eq([file for file in held if any(name in file for name in kept)], [])
        eq(filter_of(pid), filter_of(nodes["a"].gateway), "confined as the gateway")
        with open("/proc/%d/maps" % nodes["a"].gateway) as f:
            ok("hiredis" not in f.read(), "a library in the gateway")
    first = store.records()
    os.kill(pid, signal.SIGSTOP)
    second = t.session(daemon=nodes["a"])
    eq(s.delete().status, 204)
    os.kill(pid, signal.SIGKILL)
    nodes["a"].wait_log("helper_exit", "program=mcpgated-store", "signal=9")
    wait_for(lambda: len(store.records()) == 1 and store.records() != first, 10, "what began meanwhile, and not what has ended")
    eq(second.echo("x"), "x")


class Proxy:
    """One with the configuration that is shipped, in front of these nodes."""

    name = source = None
    replaced = ()  # in the file

    def __init__(self, t, nodes):
        program = shutil.which(self.name) or "/usr/sbin/" + self.name
        if not os.access(program, os.X_OK):
            raise harness.Skip("%s is not installed" % self.name)
        self.port, self.folder = free_port(), t.directory()
        with open(os.path.join(TOP, self.source)) as f:
            text = f.read()
        for old, new in self.replaced + tuple(("10.0.0.%d:8808" % n, "%s:%d" % nodes[name].address) for n, name in enumerate("abc", 1)):
            ok(old in text, "%s has %s" % (self.source, old))
            text = text.replace(old, new.replace("PORT", str(self.port)))
        path = os.path.join(self.folder, "configuration")
        with open(path, "w") as f:
            f.write(self.around(text))
        self.process = subprocess.Popen([program, *self.arguments(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.KNOWN.add(self.process.pid)
        self.address = ("127.0.0.1", self.port)

    def around(self, text):
        return text

    def serves(self):
        with contextlib.suppress(OSError, AssertionError):
            conn = wire.Conn(self.address, timeout=2)
            return conn.request("GET", "/readyz", []).status == 200

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.kill()
        self.process.wait()


class HAProxy(Proxy):
    name, source = "haproxy", "conf/haproxy/cluster.cfg"
    replaced = (("bind :443 ssl crt /etc/haproxy/mcp.example.com.pem", "bind 127.0.0.1:PORT"), ("Host mcp.example.com", "Host 127.0.0.1"),
                ("inter 1s", "inter 100ms"))

    def arguments(self, path):
        return ["-db", "-f", path]


class Nginx(Proxy):
    name, source = "nginx", "conf/nginx/cluster.conf"
    replaced = (("listen 443 ssl http2", "listen 127.0.0.1:PORT"), ("    ssl_certificate /etc/ssl/mcp/cert.pem;\n", ""),
                ("    ssl_certificate_key /etc/ssl/mcp/key.pem;\n", ""))

    def arguments(self, path):
        return ["-e", self.folder + "/log", "-c", path]

    def around(self, text):
        unused = "".join("%s_temp_path %s/%s; " % (name, self.folder, name) for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return "daemon off; master_process off; pid %s/pid; error_log %s/log; events {}\nhttp { access_log off; %s\n%s}\n" % (
            self.folder, self.folder, unused, text)


BEHIND = {"trusted_proxies": ["127.0.0.1"], "auth": {"mode": "token", "tokens": [
    {"name": "caller-%d" % n, "sha256": hashlib.sha256(b"%s-%d" % (kind, n)).hexdigest()} for kind in (b"token", b"renewed") for n in range(8)]}}


@with_store
def the_rates_of_all_nodes_count(t, store):
    """CLU-RATE-01: calls by way of another node, of the same caller, where the rate says so."""
    rate = {"calls": 200, "per": "1h"}
    servers = {"main": {"script": {}, "rate": dict(rate, shared=True)}, "own": {"script": {}, "rate": rate}}
    nodes = Nodes(t, store, servers=servers, config=TWO, seal_key="the same at both, and long enough")
    sessions = {(node, server, who): t.session(server, daemon=nodes[node], token="token-of-" + who)
                for node in "ab" for server in servers for who in ("alice", "bob")}

    def calls(node, server, count, who="alice"):
        return [sessions[node, server, who].post(mcp.request(1, "tools/list")).status for _ in range(count)]

    eq(set(calls("a", "main", 200) + calls("a", "own", 200)), {200})
    eq(calls("a", "main", 1) + calls("a", "own", 1), [429, 429])
    let_through = []
    wait_for(lambda: let_through.append(calls("b", "main", 1)[0]) or let_through[-1] == 429, 10, "it counts at the other node")
    ok(len(let_through) < 150, "by itself")
    eq(calls("b", "own", 1), [200], "a rate that is not shared")
    eq(calls("b", "main", 1, "bob"), [200], "another caller")
    nodes["a"].term()
    eq(nodes["a"].wait(20), 0)
    eq(calls("b", "main", 1), [429], "nor is it forgotten with the node")


@with_store
def the_failures_at_all_nodes_count(t, store):
    """CLU-RATE-01 AUTH-CH-11: an address that has failed too often at one node may not fail at the others."""
    config = dict(BEHIND, auth=dict(BEHIND["auth"], failures_per_minute=200))
    nodes = Nodes(t, store, config=config, seal_key="the same at both, and long enough")

    def asks(node, token="wrong", address="203.0.113.5"):
        headers = [("Authorization", "Bearer " + token), ("X-Forwarded-For", address)]
        return wire.Conn(nodes[node].address).request("POST", "/main/mcp", headers, b"{}").status

    eq([asks("a") for _ in range(201)], [401] * 200 + [429])
    tried = []
    wait_for(lambda: tried.append(asks("b")) or tried[-1] == 429, 10, "it counts at the other node")
    ok(len(tried) < 150, "by itself")
    eq(asks("b", address="203.0.113.6"), 401)
    ok(asks("a", "token-1") not in (401, 429), "a good token is good")
    wait_for(lambda: asks("b") == 401, 10, "and what failed is forgotten")


class Caller(threading.Thread):
    """A client that calls without pause, by the proxy; what fails because a node has gone it does again, in the same session."""

    def __init__(self, t, proxy, number, server="main"):
        super().__init__(daemon=True)
        self.over, self.calls, self.failed, self.wrong, self.longest, self.number = threading.Event(), 0, [], None, 0.0, number
        self.session = t.session(server, daemon=proxy, token="token-%d" % (number % 8))
        self.start_now = super().start

    def run(self):
        try:
            while not self.over.is_set():
                began = time.monotonic()
                self.call("%d-%d" % (self.number, self.calls))
                self.longest = max(self.longest, time.monotonic() - began)
                self.calls += 1
                time.sleep(0.02)  # its pace
        except BaseException as e:  # told by whoever waits
            self.wrong = repr(e)

    def call(self, text):
        deadline = time.monotonic() + 20
        while True:
            conn = None
            try:
                conn = wire.Conn(self.session.address)
                call = mcp.request(self.session.new_id(), "tools/call", {"name": "echo", "arguments": {"text": text, "message": text}})
                exchange = self.session.begin(call, conn=conn)
                ok(exchange.status in (200, 502, 503, 504), "status %d" % exchange.status)
                answer = exchange.final() if exchange.status == 200 else {}
                if "result" in answer:
                    ok(text in answer["result"]["content"][0]["text"], text, answer)
                    return
                self.failed.append((exchange.status, answer))
            except (OSError, wire.ProtocolError) as e:
                self.failed.append(repr(e))
            finally:
                if conn is not None:
                    conn.close()
            ok(time.monotonic() < deadline, "not served again", self.failed[-1])
            time.sleep(0.05)

    def proceed(self, count=3):
        before = self.calls
        wait_for(lambda: self.wrong or self.calls >= before + count, 20, "client %d is served" % self.number)
        eq(self.wrong, None)


def through(t, store, proxy, callers, act):
    for caller in callers:
        caller.start_now()
    for step in act:
        for caller in callers:
            caller.proceed()
        step()
        for caller in callers:
            caller.proceed()
    for caller in callers:
        caller.over.set()
        caller.join(20)
        eq(caller.wrong, None)


@case(daemon=False, deadline=90)
def a_node_that_is_stopped_finishes(t):
    """CLU-SESS-01: its calls, although the proxy knows that it leaves; the session goes on elsewhere."""
    with Store(t) as store:
        nodes = Nodes(t, store, "abc", config=BEHIND)
        with HAProxy(t, nodes) as proxy:
            wait_for(proxy.serves, 10, "the proxy")
            s = t.session(daemon=proxy, token="token-1")
            name = s.id[0]
            running = s.start_do(["progress", 1], ["sleep", 3], ["text", "done"], token="t")
            eq(running.next()["params"]["progress"], 1)
            store.wait('"id"', node=name)
            stream = s.get()
            nodes[name].term()
            nodes[name].wait_log("drain")
            stream.nothing(1)  # or its client would come back to another node, which ends the call
            eq(running.final()["result"]["content"][0]["text"], "done")
            eq(nodes[name].wait(20), 0)
            wait_for(lambda: s.begin(mcp.request(1, "ping")).status == 200, 20, "another node")
            store.wait('"id"', node=next(n for n, _ in store.records()))
            ok(store.records()[0][0] != name, store.records())


def everything_is_routed(t, nodes, proxy):
    """By whichever revision and transport: each caller is served, and sessions stay at their node when tokens are renewed."""
    for n in range(8):
        call = message("tools/call", {"name": "echo", "arguments": {"text": "y"}})
        response = begin(t, "main", call, fields(call) + mcp.bearer("token-%d" % n), t.conn(address=proxy.address)).response()
        eq(messages_of(response)[-1]["result"]["content"][0]["text"], "y", "without a session")
        old, s = t.sse(daemon=proxy, token="token-%d" % n), t.session(daemon=proxy, token="token-%d" % n)
        old.token = s.token = "renewed-%d" % n
        eq((old.do_text(["text", "x"]), s.echo("z")), ("x", "z"))
    for name in "abc":
        nodes[name].never_logged("session_taken")


def a_call_is_sent_once(t, store, nodes, proxy):
    """A node dies with it: it may have been executed."""
    s = t.session(daemon=proxy, token="token-0")
    name, pid = s.id[0], s.pid()
    eq(s.ask("resources/subscribe", {"uri": "r:of-the-call"})["result"], {})
    store.wait("r:of-the-call", node=name)
    call = s.start_do(["sleep", 60], ["text", "only once"])
    wait_for(lambda: b"only once" in nodes[name].record(pid), 10, "it is executed")
    nodes.kill(name)
    eq(call.status, 502)
    eq(s.echo("x"), "x")
    for other in set("abc") - {name}:
        ok(not [pid for pid, read in nodes[other].records_of("main") if b"only once" in read], "executed again at %s" % other)
    nodes.begin(name, nodes[name].address)


def each_node_goes(t, kind):
    with Store(t) as store:
        nodes = Nodes(t, store, "abc", config=dict(BEHIND, streams={"json_grace": "20s"}))
        with kind(t, nodes) as proxy:
            wait_for(proxy.serves, 10, "the proxy")
            everything_is_routed(t, nodes, proxy)
            a_call_is_sent_once(t, store, nodes, proxy)
            callers = [Caller(t, proxy, n) for n in range(6)]
            ids = [c.session.id for c in callers]
            ok(len({i[0] for i in ids}) > 1, "sessions of several nodes", ids)

            def go(name):
                def step():
                    store.wait('"id"', node=name)
                    nodes.kill(name)
                    for caller in callers:
                        caller.proceed()
                    nodes.begin(name, nodes[name].address)
                return step

            through(t, store, proxy, callers, [go(name) for name in "abc"])
            eq([c.session.id for c in callers], ids)


@case(daemon=False, deadline=120)
def every_node_may_go(t):
    """CLU-SESS-01: HAProxy as shipped, three nodes; each is killed in turn and comes back: no session is lost."""
    each_node_goes(t, HAProxy)


@case(daemon=False, deadline=120)
def every_node_may_go_behind_nginx(t):
    """CLU-SESS-01: the same with nginx as shipped."""
    each_node_goes(t, Nginx)


class QuickHAProxy(HAProxy):
    replaced = HAProxy.replaced + (("tcp-ut 20s", "tcp-ut 2s"), ("srvtcpka-idle 10s", "srvtcpka-idle 1s"), ("srvtcpka-intvl 5s", "srvtcpka-intvl 1s"))


@case(daemon=False, deadline=60)
def streams_of_a_machine_that_is_gone_end(t):
    """CLU-SESS-01: HAProxy as shipped, but for times; nobody says that it is gone, and its clients would wait for an hour."""
    with DistantStore(t) as store:
        nodes = Nodes(t, store, "bc", config=BEHIND, plaintext=True)
        here = {"listen": [{"address": store.host + ":0", "plaintext": True}], "hosts": ["127.0.0.1"]}
        nodes.all["a"] = t.start(nodes.servers, dict(BEHIND, **here, cluster={"node": "a", "store": store.url, "plaintext": True}),
                                 prefix=["ip", "netns", "exec", store.net])
        with QuickHAProxy(t, nodes) as proxy:
            wait_for(proxy.serves, 10, "the proxy")
            s = next(s for s in (t.session(daemon=proxy, token="token-%d" % n) for n in range(8)) if s.id.startswith("a."))
            stream, call = s.get(), s.start_do(["progress", 1], ["sleep", 60], token="t")
            eq(call.next()["params"]["progress"], 1)
            store.part()
            for waits in (stream, call):
                with contextlib.suppress(wire.ProtocolError, ConnectionError):
                    eq(waits.next(8), None)
            nodes.kill("a")
