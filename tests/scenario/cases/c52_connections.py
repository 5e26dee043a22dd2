# SPDX-License-Identifier: Apache-2.0
"""At limits.connections what nobody uses gives way to who comes, and one address has a share. DEF-14, DEF-12."""
import socket
import time

import harness
import mcp
from c60_tls import client_context, health, start, tls_config
from c61_proxy import REQUEST, line, raw, status
from harness import case, eq, ok, wait_for, within

SERVERS = {"main": {}}
# A head whose body does not come: in progress, for as long as body_timeout.
BODY_AWAITED = (b"POST /main/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n")
KINDS = {"silent": b"", "in the middle of a head": b"GET /healthz HTTP/1.1\r\nHost: lo", "idle": REQUEST % b""}
OTHER = "127.0.0.2"


def gave_way(daemon):
    return len([l for l in daemon.log("connection_end") if "reason=gave_way" in l])


def flood(daemon, kind, count, source=OTHER):
    """So many connections one after the other; those that were answered wait for their answers."""
    socks, before = [], gave_way(daemon)
    for _ in range(count):
        sock = socket.create_connection(daemon.address, timeout=8, source_address=(source, 0))
        sock.sendall(KINDS[kind])
        if kind == "idle":
            eq(status(sock), 200, "one of many")
        socks.append(sock)
    wait_for(lambda: gave_way(daemon) - before >= count // 2, 5, "half of them have given way")
    return socks


def in_body(daemon):
    return len([l for l in daemon.log("connection_state") if "to=body" in l])


def use(daemon, count, header=b"", tls=False):
    """So many connections with a request in progress."""
    socks, before = [], in_body(daemon)
    for _ in range(count):
        sock = raw(daemon.address, header)
        if tls:
            sock = client_context().wrap_socket(sock, server_hostname="localhost")
        sock.sendall(BODY_AWAITED)
        socks.append(sock)
    wait_for(lambda: in_body(daemon) - before == count, 5, "%d requests in progress" % count)
    return socks


def is_open(sock):
    sock.settimeout(0.1)
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionResetError:
        return False


@case(deadline=40, config={"limits": {"connections": 20}})
def unused_connections_lock_nobody_out(t):
    """DEF-14: silent connections, heads that stop, idle ones, all from one address: who comes from another is served at once."""
    steady = t.conn()
    steady.request("GET", "/healthz").read()
    for kind in KINDS:
        socks = flood(t.daemon, kind, 60)
        began = time.monotonic()
        s = t.session()
        eq(s.echo("x"), "x", kind)
        within(began, 3 * harness.SLOW, kind)
        # Its address has few: it is not the one that gives way.
        eq(steady.request("GET", "/healthz").status, 200, kind)
        steady.last.read()
        for conn in [c for c in t.conns if c is not steady]:
            conn.close()
        for sock in socks:
            sock.close()
    t.daemon.never_logged("connection_refused")


@case(deadline=30, config={"limits": {"connections": 12}})
def what_is_in_progress_stays(t):
    """DEF-14: no call, stream or body is ended for who comes, even if its address has all connections."""
    s = t.session()
    call = s.start_do(["sleep", 3], ["text", "done"])
    stream = s.get()
    body = t.conn()
    text = mcp.encode(mcp.request(77, "ping"))
    body.send(body.head("POST", s.path, s.headers(), len(text)) + text[:5])
    socks = [sock for kind in KINDS for sock in flood(t.daemon, kind, 30, "127.0.0.1")]
    body.send(text[5:])
    eq(body.response().status, 200, "the request whose body had come in part")
    ok(is_open(stream.conn.sock), "the stream")
    eq(call.rest(8)[-1]["result"]["content"][0]["text"], "done")
    for sock in socks:
        sock.close()


@case(daemon=False, deadline=20)
def where_nobody_gives_way_one_is_told(t):
    """DEF-14: with requests in progress on all connections, all of one machine, the next one gets 503 and when to come again."""
    d = t.start({"main": {}}, {"limits": {"connections": 4}})
    socks = use(d, 4)
    sock = raw(d.address, REQUEST % b"")
    answer = sock.recv(4096)
    ok(answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in answer, "turned away", answer)
    d.wait_log("connection_refused", "limits.connections are open")
    ok(all(is_open(s) for s in socks), "the others")
    socks[0].close()
    wait_for(lambda: status(raw(d.address, REQUEST % b"")) == 200, 3, "room again")


@case(daemon=False, deadline=20)
def one_address_has_a_quarter(t):
    """DEF-14: while half of the connections are open an address has a quarter; what it does not use itself gives way."""
    d = t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:0", "proxy_protocol": True}],
                               "limits": {"connections": 8}, "trusted_proxies": ["10.0.0.1"]})
    used = use(d, 4, line("192.0.2.1"))
    sock = raw(d.address, line("192.0.2.1") + REQUEST % b"")
    answer = sock.recv(4096)
    ok(answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in answer, "over the share", answer)
    d.wait_log("connection_refused", "client=192.0.2.1", "a quarter")
    idle = [raw(d.address, line("192.0.2.2") + REQUEST % b"") for _ in range(2)]
    eq([status(s) for s in idle], [200, 200], "another address")
    third = raw(d.address, line("192.0.2.2") + REQUEST % b"")
    eq(status(third), 200, "in the place of its first one")
    eq(idle[0].recv(1), b"", "its first one")
    ok(is_open(idle[1]), "its second one")
    used += use(d, 3, line("10.0.0.1"))  # three of eight: a proxy that is trusted may
    ok(all(is_open(s) for s in used), "what is in progress")


@case(daemon=False, deadline=20)
def an_ipv6_network_is_one_address(t):
    """DEF-14: who has a network of 64 bits has one share."""
    d = t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:0", "proxy_protocol": True}], "limits": {"connections": 8}})
    used = use(d, 2, line("192.0.2.1"))
    for client in ("2001:db8::1", "2001:db8::2:1"):
        used += use(d, 1, line(client, "TCP6", "::1"))
    eq(status(raw(d.address, line("2001:db8::3", "TCP6", "::1") + REQUEST % b"")), 503)
    eq(status(raw(d.address, line("2001:db8:0:1::3", "TCP6", "::1") + REQUEST % b"")), 200)
    ok(all(is_open(s) for s in used), "what is in progress")


@case(daemon=False, deadline=20)
def newcomers_must_hurry(t):
    """DEF-12 DEF-14: while half of the connections are open, one that sends nothing ends after header_timeout."""
    d = t.start({"main": {}}, {"limits": {"connections": 4, "header_timeout": "1s", "idle_timeout": "1h"}})
    early = t.conn(address=d.address)
    used = use(d, 1)
    late = t.conn(address=d.address)
    began = time.monotonic()
    ok(late.is_closed(5), "it stays")
    ok(time.monotonic() - began > 0.8, "closed too early")
    ok(is_open(early.sock), "who came while there was room")
    ok(is_open(used[0]), "what is in progress")
    eq(gave_way(d), 0)


@case(daemon=False, deadline=20)
def headers_that_do_not_come_give_way(t):
    """DEF-14 SEC-25: connections that begin with no PROXY header, or half of one, lock nobody out."""
    d = t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:0", "proxy_protocol": True}], "limits": {"connections": 8}})
    for data in (b"", line()[:20]):
        socks = [raw(d.address, data) for _ in range(30)]
        began = time.monotonic()
        eq(status(raw(d.address, line() + REQUEST % b"")), 200)
        within(began, 2 * harness.SLOW, "before the header's deadline")
        for sock in socks:
            sock.close()
    d.wait_log("arrival_refused", "gave way")


@case(daemon=False, deadline=20)
def handshakes_that_do_not_end_give_way(t):
    """DEF-14 SEC-34: connections without, or in the middle of, a TLS handshake lock nobody out."""
    d = start(t, connections=8)
    for data in (b"", b"\x16\x03\x01\x02\x00\x01\x00"):
        socks = [raw(d.plain_address, data) for _ in range(30)]
        began = time.monotonic()
        conn = health(d.address)
        within(began, 2 * harness.SLOW, "before the handshake's deadline")
        conn.close()
        for sock in socks:
            sock.close()
    d.wait_log("arrival_refused", "gave way")


@case(daemon=False, deadline=20)
def share_is_asked_for_before_the_handshake(t):
    """DEF-14: behind a PROXY header the share is that of the client it names; over it, it ends before the handshake."""
    d = harness.Daemon({"main": {}}, {"listen": [dict(tls_config()["listen"][0], proxy_protocol=True)],
                                      "limits": {"connections": 8}})
    t.daemons.append(d)
    used = use(d, 4, line("192.0.2.1"), tls=True)
    sock = raw(d.address, line("192.0.2.1"))
    try:
        client_context().wrap_socket(sock, server_hostname="localhost")
        ok(False, "a handshake over the share")
    except OSError:
        pass
    d.wait_log("arrival_refused", "client=192.0.2.1", "a quarter")
    sock = client_context().wrap_socket(raw(d.address, line("192.0.2.2")), server_hostname="localhost")
    sock.sendall(REQUEST % b"")
    eq(status(sock), 200)
    ok(all(is_open(s) for s in used), "what is in progress")
