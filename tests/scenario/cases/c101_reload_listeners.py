# SPDX-License-Identifier: Apache-2.0
"""Listeners that come, change and go at a reload. mcpgated.yaml(5), "Reload"; architecture.md, "Reload"."""
import contextlib
import json
import os
import re
import signal
import socket
import stat
import threading

import c60_tls
import c61_proxy
import harness
import mcp
import wire
from c51_operation import cpu_seconds, notify_socket, start_activated
from c71_ctl import ctl
from c100_reload import reload, write
from harness import case, eq, ok, wait_for
from wire import free_port

KEPT = {"address": "127.0.0.1:0"}


def at(port, host="127.0.0.1", **more):
    return dict({"address": "%s:%d" % (host, port)}, **more)


def listen(*entries):
    return {"listen": list(entries)}


def status(t, address, path="/healthz", **headers):
    """Of one request on a connection of its own."""
    conn = t.conn(address=address)
    conn.send(conn.head("GET", path, list(headers.items())))
    return conn.response().status


def asked(conn):
    """The status of one more request on it."""
    response = conn.request("GET", "/healthz")
    response.read()
    return response.status


def is_refused(address):
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as s:
        s.settimeout(5)
        return s.connect_ex(address) != 0


def session_at(t, address):
    before, t.daemon.address = t.daemon.address, address
    try:
        return t.session()
    finally:
        t.daemon.address = before


def take(port):
    """Another program has the port: as servers do it, and at once."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(1)
    return s


@case(daemon=False)
def one_comes_and_goes(t):
    """product §4: it serves from the reload on; what goes is refused and free at once, and what is under way there goes on."""
    t.start({"main": {}}, listen(KEPT))
    kept, port = t.session(), free_port()
    there = ("127.0.0.1", port)
    pid = kept.pid()
    ok(is_refused(there), "nobody listens there yet")
    eq(reload(t, config=listen(KEPT, at(port)))[0].splitlines(), ["no server has changed; everything else is now as the file says", "listening: 127.0.0.1:%d" % port])
    t.daemon.wait_log("listen", "address=127.0.0.1:%d " % port)
    other = session_at(t, there)
    stream, call = other.get(), other.start_do(["sleep", 1], ["text", "late"])
    idle = t.conn(address=there)
    eq(asked(idle), 200)
    slow = t.conn(address=there)
    eq(asked(slow), 200)
    slow.send(slow.head("POST", "/main/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH)])[:-2])
    answer = json.loads(ctl(t, "reload", "--json")[0])
    eq((answer["listen_added"], answer["listen_removed"], answer["used"]), ([], [], True))
    eq(reload(t, config=listen(KEPT))[0].splitlines()[1:], ["no longer listening: 127.0.0.1:%d" % port])
    with take(port):
        slow.send("Content-Length: 2\r\n\r\n{}")
        answer = slow.response()
        eq((answer.status, answer.header("connection")), (400, "close"), "a request that was under way")
        t.daemon.wait_log("listen_end", "address=127.0.0.1:%d" % port)
        ok(idle.is_closed(5), "a connection between two requests")
        eq(call.final()["result"]["content"][0]["text"], "late")
        other.address = t.daemon.address
        other.do(["background", [["notify", "notifications/tools/list_changed"]]], ["text", "x"])
        eq(stream.next()["method"], "notifications/tools/list_changed")
    eq(kept.pid(), pid)


@case(daemon=False, deadline=40)
def nobody_is_refused(t):
    """product §4: while others come and go, each connection to a listener that stays is taken and served."""
    t.start({"main": {}}, listen(KEPT))
    faults, count, stop = [], [0], threading.Event()
    address = t.daemon.address

    def work():
        while not stop.is_set():
            try:
                with contextlib.closing(wire.Conn(address)) as conn:
                    eq(asked(conn), 200)
                count[0] += 1
            except BaseException as e:
                faults.append(repr(e))
                return
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    ports = [free_port() for _ in range(4)]
    for n in range(10):
        before = count[0]
        # Also in another place of the list, and with others before it.
        entries = [at(port) for port in ports[:n % 4]]
        entries.insert(n % (len(entries) + 1), KEPT)
        reload(t, config=listen(*entries))
        for port in ports[:n % 4]:
            eq(status(t, ("127.0.0.1", port)), 200, "a new one")
        wait_for(lambda: faults or count[0] > before + 8, 5, "connections meanwhile")
    stop.set()
    for thread in threads:
        thread.join()
    eq(faults, [])


@case(daemon=False)
def those_who_wait_are_served(t):
    """product §4: whoever had connected to a listener that goes is not reset."""
    port = free_port()
    t.start({"main": {}}, listen(KEPT, at(port)))
    os.kill(t.daemon.gateway, signal.SIGSTOP)
    try:
        waiting = [t.conn(address=("127.0.0.1", port)) for _ in range(100)]
        for conn in waiting:
            conn.send(conn.head("GET", "/healthz"))
        write(t, config=listen(KEPT))
        t.daemon.process.send_signal(signal.SIGHUP)
        t.daemon.wait_log("reload_state", "to=judged")
    finally:
        os.kill(t.daemon.gateway, signal.SIGCONT)
    for conn in waiting:
        eq(conn.response().status, 200)
    wait_for(lambda: is_refused(("127.0.0.1", port)), 5, "its end")


@case(daemon=False)
def an_address_in_use_changes_nothing(t):
    """product §4: what cannot be bound is named, nothing else of the file is used, and what was bound with it is given up."""
    t.start({"main": {}}, listen(KEPT))
    t.expect_error_log("listen_failed", "reload_refused")
    good, address = free_port(), t.daemon.address
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        err = reload(t, {"main": {}, "new": {}}, merged_listen(at(good), at(port)), status=1)[1]
        ok(re.search(r"\.yaml:\d+: listen\[1\]\.address: cannot listen on 127.0.0.1:%d: Address already in use" % port, err) and "nothing has changed" in err, err)
    eq(sorted(s["name"] for s in json.loads(ctl(t, "status", "--json")[0])["servers"]), ["main"])
    take(good).close()
    eq(status(t, address), 200)
    # Once it is free, the same file is good.
    reload(t, {"main": {}, "new": {}}, merged_listen(at(good), at(port)))
    eq((status(t, ("127.0.0.1", port)), status(t, ("127.0.0.1", good))), (200, 200))


def merged_listen(*entries):
    return dict(listen(*entries), limits={"sessions": 77})


@case(daemon=False)
def a_port_that_it_has_itself(t):
    """product §4: from one address of a port to all addresses there is no step without a gap: said, with the way."""
    port = free_port()
    more = {"auth": {"mode": "anonymous"}, "hosts": ["127.0.0.1"]}
    t.start({"main": {}}, dict(listen(at(port)), **more))
    t.expect_error_log("listen_failed", "reload_refused")
    err = reload(t, config=dict(listen(at(port, "0.0.0.0", plaintext=True)), **more), status=1)[1]
    ok(re.search(r"\.yaml:\d+: listen\[0\]\.address: cannot listen on 0.0.0.0:%d while this daemon listens on 127.0.0.1:%d: needs a restart"
                 % (port, port), err), err)
    eq(status(t, ("127.0.0.1", port)), 200)


@case(daemon=False)
def one_address_by_two_names(t):
    """product §4: localhost:PORT is 127.0.0.1:PORT: the same socket goes on, an open connection too."""
    port = free_port()
    t.start({"main": {}}, listen(at(port)))
    inode = os.stat("/proc/%d/fd/10" % t.daemon.gateway).st_ino
    reload(t, config=listen(at(port, "localhost")))
    eq(os.stat("/proc/%d/fd/10" % t.daemon.gateway).st_ino, inode, "the socket")
    eq(status(t, ("127.0.0.1", port)), 200)


@case(daemon=False)
def unix_sockets(t):
    """product §4: a file is made with the listener and goes with it; one of a refused configuration leaves none."""
    t.start({"main": {}}, listen(KEPT))
    t.expect_error_log("listen_failed", "reload_refused")
    one, two = (os.path.join(t.daemon.dir, name) for name in ("one.sock", "two.sock"))
    reload(t, config=listen(KEPT, {"address": "unix:" + one}))
    eq((stat.S_IMODE(os.stat(one).st_mode), status(t, one, Host="localhost")), (0o660, 200))
    conn = t.conn(address=one)
    eq(asked(conn), 200)
    reload(t, config=listen(KEPT, {"address": "unix:" + two}))
    eq((os.path.exists(one), os.path.exists(two)), (False, True), "the files")
    eq(status(t, two), 200)
    reload(t, config=listen(KEPT, {"address": "unix:" + one}, {"address": "unix:/nowhere/x.sock"}), status=1)
    eq((os.path.exists(one), os.path.exists(two)), (False, True), "the files")
    eq(status(t, two), 200)


@case(daemon=False, deadline=30)
def tls_is_added(t):
    """product §4: an address that goes on speaks TLS for new connections; open ones stay as they are; and back."""
    t.start({"main": {}}, listen(KEPT))
    plain = t.daemon.address
    conn = t.conn()
    eq(asked(conn), 200)
    s = t.session()
    config = listen(dict(KEPT, tls=c60_tls.pair("server")))
    out = reload(t, config=config)[0]
    ok("changed, for new connections: 127.0.0.1:0" in out, out)
    eq(asked(conn), 200, "an open one")
    tls = wire.TlsAddress(plain, c60_tls.client_context())
    c60_tls.health(tls)
    eq(status(t, plain), 400, "plain HTTP")
    s.address = tls
    s.conn = None
    s.echo("by TLS")
    # Files with other names, and one more listener with them, and a client certificate asked for.
    first = dict(KEPT, tls=c60_tls.pair("renewed"))
    port = free_port()
    second = at(port, tls=dict(c60_tls.pair("second"), client_ca=c60_tls.path("ca.crt")))
    session = c60_tls.health(tls).sock.session
    reload(t, config=listen(second, first))
    eq(c60_tls.leaf(c60_tls.health(tls)), c60_tls.leaf_of("renewed"))
    ok(c60_tls.health(wire.TlsAddress(plain, tls.context, session=session)).sock.session_reused, "resumed across the reload")
    c60_tls.handshake_fails(("127.0.0.1", port), c60_tls.client_context(), "second.test")
    c60_tls.health(wire.TlsAddress(("127.0.0.1", port), c60_tls.client_context("client"), "second.test"))
    # SIGHUP reads those files again, and a gateway that has to be started again gets them.
    t.expect_error_log("gateway_exit")
    os.kill(t.daemon.find_gateway(), signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 10, "the next gateway")
    eq(c60_tls.leaf(c60_tls.health(tls)), c60_tls.leaf_of("renewed"))
    reload(t, config=listen(KEPT))
    eq(status(t, plain), 200)


@case(daemon=False)
def certificates_of_other_listeners_are_judged_first(t):
    """REL-50: with a pair that does not fit, or a file that is not there, nothing of the new configuration is used."""
    t.start({"main": {}}, listen(KEPT))
    t.expect_error_log("certificates_refused", "reload_failed", "reload_refused")
    port = free_port()
    for key, why in ((c60_tls.path("second.key"), "does not belong"), (c60_tls.path("no.key"), "no.key")):
        broken = at(port, tls=dict(c60_tls.pair("server"), key=key))
        path = os.path.join(t.daemon.dir, "refused.sock")
        err = reload(t, {"main": {}, "new": {}}, listen({"address": "unix:" + path}, broken, dict(KEPT, tls=c60_tls.pair("server"))), status=1)[1]
        ok(why in err, err)
        ok(not os.path.exists(path), "the file of a socket that was not used")
        take(port).close()
        eq(status(t, t.daemon.address), 200, "without TLS")
    write(t, {"main": {}}, listen(at(port, tls=c60_tls.pair("server")), KEPT))
    ctl(t, "reload")
    c60_tls.health(wire.TlsAddress(("127.0.0.1", port), c60_tls.client_context()))


@case(daemon=False)
def settings_hold_for_new_connections(t):
    """product §4: proxy_protocol begins and ends with a reload; who has connected before speaks on as he did."""
    t.start({"main": {}}, listen(KEPT))
    before = t.conn()
    eq(asked(before), 200)
    reload(t, config=listen(dict(KEPT, proxy_protocol=True)))
    with c61_proxy.raw(t.daemon.address, c61_proxy.line() + c61_proxy.REQUEST % b"") as proxied:
        eq(c61_proxy.status(proxied), 200)
        wait_for(lambda: "192.0.2.7" in c61_proxy.clients(t.daemon), 5, "the client in the log")
        eq(asked(before), 200)
        reload(t, config=listen(KEPT))
        proxied.sendall(c61_proxy.REQUEST % b"")
        eq(c61_proxy.status(proxied), 200)
    eq(status(t, t.daemon.address), 200)


@case(daemon=False)
def names_follow(t):
    """DEF-05: the Host of a listener is good as long as it is there; what clients are told is where the first one is."""
    port = free_port()
    t.start({"main": {}}, listen(at(port)))
    asks = lambda: status(t, ("127.0.0.1", port), "/main/mcp", Host="127.9.9.9:1", Accept="text/event-stream")
    url = lambda: ctl(t, "client-config", "main", "--client", "cursor")[0]
    refused = asks()
    ok(refused in (403, 421), "a foreign Host", refused)
    ok("http://127.0.0.1:%d/main/mcp" % port in url(), url())
    other = free_port()
    reload(t, config=listen(at(other, "127.9.9.9"), at(port)))
    ok(asks() != refused, "it is its own now")
    ok("http://127.9.9.9:%d/main/mcp" % other in url(), url())
    reload(t, config=listen(at(port)))
    eq(asks(), refused)
    ok("http://127.0.0.1:%d/main/mcp" % port in url(), url())


@case(daemon=False, deadline=30)
def the_next_gateway_has_them(t):
    """REL-43: one that has to be started again serves at the listeners of the last reload, and at no others."""
    old, new = free_port(), free_port()
    t.start({"main": {}}, listen(at(old), KEPT))
    t.expect_error_log("gateway_exit")
    reload(t, config=listen(at(new), KEPT))
    os.kill(t.daemon.find_gateway(), signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 10, "the next gateway")
    eq((status(t, t.daemon.address), status(t, ("127.0.0.1", new))), (200, 200))
    ok(is_refused(("127.0.0.1", old)), "the old one")
    reload(t, config=listen(KEPT))
    ok(is_refused(("127.0.0.1", new)), "the new one")


@case(daemon=False, deadline=30)
def a_gateway_that_dies_over_it(t):
    """REL-43: killed while it is to judge: the next one is asked again, and has the listeners then."""
    t.start({"main": {}}, listen(KEPT))
    t.expect_error_log("gateway_exit")
    port, path = free_port(), os.path.join(t.daemon.dir, "new.sock")
    os.kill(t.daemon.gateway, signal.SIGSTOP)
    write(t, config=listen(at(port), {"address": "unix:" + path}, KEPT))
    t.daemon.process.send_signal(signal.SIGHUP)
    t.daemon.wait_log("reload_state", "to=judged")
    os.kill(t.daemon.gateway, signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("reload_used")) >= 2, 10, "another try")
    eq((status(t, ("127.0.0.1", port)), status(t, path, Host="localhost"), status(t, t.daemon.address)), (200, 200, 200))


@case(daemon=False)
def systemd_hears_of_the_outcome(t):
    """REL-52: RELOADING=1 with the time, then READY=1 with what came of it."""
    path = os.path.join(t.directory(), "notify")
    with contextlib.closing(notify_socket(path)) as sock:
        t.start({"main": {}}, listen(KEPT), env={"NOTIFY_SOCKET": path})
        t.expect_error_log("listen_failed", "reload_refused")
        eq(sock.recv(4096), b"READY=1")
        with take(free_port()) as taken:
            for port, outcome in ((free_port(), b"read again$"), (taken.getsockname()[1], b"refused; the previous one stays in use")):
                write(t, config=listen(KEPT, at(port)))
                t.daemon.process.send_signal(signal.SIGHUP)
                ok(re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*", sock.recv(4096)), "the beginning")
                ok(re.search(outcome, sock.recv(4096).splitlines()[1]), "the end")


@case(daemon=False, deadline=30)
def sockets_of_the_manager(t):
    """REL-42: one that is listened at no more costs nothing and is not closed; whoever connects is served once it is named again."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        d = start_activated(t, listener)
        more = dict(d.extra)
        eq(status(t, d.address), 200)
        reload(t, config=dict(more, listen=[KEPT]))
        before = cpu_seconds(d.gateway)
        waiting = [t.conn(address=listener.getsockname()) for _ in range(3)]
        for conn in waiting:
            conn.send(conn.head("GET", "/healthz"))
        ok(waiting[0].is_silent(1.5), "nobody answers")
        ok(cpu_seconds(d.gateway) - before < 0.3, "seconds of the processor's time", cpu_seconds(d.gateway) - before)
        reload(t, config=more)
        for conn in waiting:
            eq(conn.response().status, 200)
        d.term()
        eq(d.process.wait(10), 0)
