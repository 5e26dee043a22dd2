# SPDX-License-Identifier: Apache-2.0
"""Behind proxies: the PROXY protocol on a listener, and whom Forwarded fields are believed. DEF-07, SEC-25."""
import re
import socket
import ssl
import struct
import time

import harness
import mcp
import wire
from c60_tls import client_context, tls_config
from harness import case, eq, ok, wait_for, within

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n"


def block(command=0x21, family=0x11, source="192.0.2.7", more=b""):
    body = b""
    if family == 0x11:
        body = socket.inet_aton(source) + socket.inet_aton("198.51.100.1") + struct.pack(">HH", 40000, 443)
    elif family == 0x21:
        body = socket.inet_pton(socket.AF_INET6, source) + bytes(16) + struct.pack(">HH", 40000, 443)
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(body + more)) + body + more


def line(source="192.0.2.7", protocol="TCP4", destination="198.51.100.1"):
    return ("PROXY %s %s %s 40000 443\r\n" % (protocol, source, destination)).encode()


def raw(address, data, pieces=None):
    """Connects and sends; in pieces of that many bytes."""
    sock = socket.create_connection(tuple(address), timeout=8)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    size = pieces or len(data) or 1
    for at in range(0, len(data), size):
        sock.sendall(data[at:at + size])
        if pieces:
            time.sleep(0.002)
    return sock


def status(sock):
    return int(sock.recv(65536).split()[1])


def clients(daemon):
    """Addresses of the requests in the log."""
    return [re.search(r" client=(\S+)", l).group(1) for l in daemon.log("request")]


def last_client(daemon, count):
    wait_for(lambda: len(clients(daemon)) >= count, 3, "%d requests in the log" % count)
    return clients(daemon)[-1]


def proxied(t, **more):
    return t.start({"main": {}}, {"listen": [dict({"address": "127.0.0.1:0", "proxy_protocol": True}, **more)]})


@case(daemon=False)
def header_names_the_client(t):
    """product §4: with proxy_protocol the client is whom the header names, in both versions, whatever the pieces."""
    daemon = proxied(t)
    count = 0
    for header, client in ((line(), "192.0.2.7"), (line("2001:db8::7", "TCP6", "::1"), "2001:db8::7"), (block(), "192.0.2.7"),
                           (block(family=0x21, source="2001:db8::7"), "2001:db8::7"),
                           (block(more=b"\x04\0\x02ab"), "192.0.2.7"), (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
                           (block(command=0x20, family=0), "127.0.0.1")):
        for pieces in (None, 1):
            sock = raw(daemon.address, header + REQUEST % b"", pieces)
            eq(status(sock), 200, header)
            count += 1
            eq(last_client(daemon, count), client, header)
            sock.close()


@case(daemon=False)
def wrong_headers_end_the_connection(t):
    """SEC-20: a connection that does not begin with a correct header is closed without an answer."""
    daemon = proxied(t)
    for data in (REQUEST % b"", b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n" + REQUEST % b"", line().replace(b"\r\n", b"\n"),
                 line().replace(b" ", b"  ", 1) + REQUEST % b"", block(family=0x12) + REQUEST % b"",
                 block(command=0x11) + REQUEST % b"", SIGNATURE + b"\x21\x11\xff\xff", b"PROXY UNKNOWN " + b"x" * 200,
                 block(more=b"\x04\0\x09ab") + REQUEST % b""):
        sock = raw(daemon.address, data)
        try:
            eq(sock.recv(100), b"", data)
        except ConnectionResetError:
            pass
        sock.close()
    ok("PROXY header" in daemon.wait_log("arrival_refused")[0], "why", daemon.log("arrival_refused"))
    eq(status(raw(daemon.address, line() + REQUEST % b"")), 200)
    last_client(daemon, 1)
    eq(len(clients(daemon)), 1, "none of theirs is a request")
    # One header, not two.
    eq(status(raw(daemon.address, line() + line() + REQUEST % b"")), 400)


@case(daemon=False, deadline=20)
def slow_header(t):
    """SEC-25: a header that does not come, or trickles, ends the connection 5 s after accept, and costs no time meanwhile."""
    daemon = proxied(t)
    silent, part = raw(daemon.address, b""), raw(daemon.address, line()[:20])
    began, cpu = time.monotonic(), harness.cpu_seconds(daemon.gateway)
    for sock in (silent, part):
        eq(sock.recv(100), b"")
    took = time.monotonic() - began
    ok(took > 4.5, "too early", took)
    within(began, 7 * harness.SLOW, "after 5 s")
    ok(harness.cpu_seconds(daemon.gateway) - cpu < 0.5 * harness.SLOW, "it does not spin")
    daemon.wait_log("arrival_refused", "took too long")


@case(daemon=False)
def header_before_tls(t):
    """product §4: the header stands before the TLS handshake."""
    listen = tls_config()["listen"][0]
    daemon = harness.Daemon({"main": {}}, {"listen": [dict(listen, proxy_protocol=True)]})
    t.daemons.append(daemon)
    for header in (line(), block()):
        sock = raw(daemon.address, header)
        tls = client_context().wrap_socket(sock, server_hostname="localhost")
        tls.sendall(REQUEST % b"")
        eq(status(tls), 200)
        tls.close()
    wait_for(lambda: clients(daemon) == ["192.0.2.7"] * 2, 3, "both requests in the log")
    sock = raw(daemon.address, b"")
    try:
        client_context().wrap_socket(sock, server_hostname="localhost")
        ok(False, "a handshake without the header")
    except (ssl.SSLError, ConnectionError):
        pass


@case(daemon=False)
def forwarded_is_believed_from_trusted_proxies(t):
    """DEF-07: Forwarded and X-Forwarded-For count from trusted_proxies only."""
    fields = ((b"Forwarded: for=192.0.2.9;proto=https\r\n", "192.0.2.9"),
              (b"Forwarded: for=\"[2001:db8::9]:1\"\r\n", "2001:db8::9"),
              (b"X-Forwarded-For: 6.6.6.6, 192.0.2.9\r\n", "192.0.2.9"),
              (b"Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 192.0.2.9\r\n", "192.0.2.9"),
              (b"X-Forwarded-For: " + b"127.0.0.9, " * 100 + b"192.0.2.9, 127.0.0.3\r\n", "192.0.2.9"),
              (b"Forwarded: for=unknown\r\n", "127.0.0.1"), (b"Forwarded: for=\"\r\n", "127.0.0.1"))
    for trusted in ([], ["192.0.2.0/24"], ["127.0.0.0/8"]):
        daemon = t.start({"main": {}}, {"trusted_proxies": trusted})
        for count, (field, client) in enumerate(fields):
            eq(status(raw(daemon.address, REQUEST % field)), 200)
            eq(last_client(daemon, count + 1), client if trusted == ["127.0.0.0/8"] else "127.0.0.1", field)


@case(daemon=False)
def sessions_tell_who_began_them(t):
    """DEF-07: the log says from where a session was begun, on both transports."""
    daemon = t.start({"main": {}}, {"trusted_proxies": ["127.0.0.0/8"]})
    body = mcp.encode(mcp.initialize())
    fields = [("Forwarded", "for=192.0.2.9"), ("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    e = mcp.Exchange(t.conn())
    e.conn.send(e.conn.head("POST", "/main/mcp", fields, len(body)) + body)
    eq(e.status, 200)
    t.will_end(e, "/main/mcp")
    daemon.wait_log("session_start", " client=192.0.2.9 ")
    c = t.sse(extra=[("Forwarded", "for=\"[2001:db8::9]:1\"")])
    daemon.wait_log("session_start", " client=2001:db8::9 ")
    c.close()


@case(daemon=False)
def forwarded_behind_a_header(t):
    """DEF-07: whose fields are believed is decided by the address in the PROXY header."""
    daemon = t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:0", "proxy_protocol": True}],
                                    "trusted_proxies": ["10.0.0.0/8"]})
    eq(status(raw(daemon.address, line("10.0.0.5") + REQUEST % b"X-Forwarded-For: 192.0.2.9\r\n")), 200)
    eq(last_client(daemon, 1), "192.0.2.9")
    eq(status(raw(daemon.address, line("11.0.0.5") + REQUEST % b"X-Forwarded-For: 192.0.2.9\r\n")), 200)
    eq(last_client(daemon, 2), "11.0.0.5")
