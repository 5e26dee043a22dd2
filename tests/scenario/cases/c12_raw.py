# SPDX-License-Identifier: Apache-2.0
"""HTTP as bytes: smuggling, chunk syntax, slow and storming clients. threats.md §4."""
import time

import mcp
import wire
from harness import case, eq, fd_count, ok, rss_kib, wait_for

SERVERS = {"main": {}}
CONFIG = {"limits": {"header_timeout": "1s", "body_timeout": "1s", "idle_timeout": "3s"}}
H = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def inner(s):
    """A request that must not run: it would end the session."""
    return (b"DELETE /main/mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: " + s.id.encode() + b"\r\n\r\n")


def session_head(s):
    return (b"POST /main/mcp HTTP/1.1\r\n" + H + JSON + b"Mcp-Session-Id: " + s.id.encode() + b"\r\n")


def refused(t, s, data, statuses, what):
    """The bytes get one refusal (or none) and the end of the connection; nothing of them runs."""
    conn = t.conn()
    try:
        conn.send(data)
    except OSError:
        pass
    try:
        response = conn.response()
        response.read()
    except (wire.ProtocolError, ConnectionError):
        response = None
    if response is None:
        ok(None in statuses, "no answer to", what)
    else:
        ok(response.status in statuses, "status of " + what, response.status)
        ok(conn.is_closed(4), "connection stays open after", what)
    ok(s.ask("ping").get("result") == {}, "the inner request has run:", what)


@case(deadline=40)
def smuggling_table(t):
    """SEC-20 SEC-24: ambiguous framing is refused and the connection closed; the rest never runs."""
    s = t.session()
    post, inside = session_head(s), inner(s)
    n = b"Content-Length: %d\r\n" % len(PING)
    chunks = b"28\r\n" + PING + b"\r\n0\r\n\r\n"
    cases = {
        "both framings": post + n + b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        "both, other order": post + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunks,
        "two codings": post + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks,
        "chunked twice": post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
        "identity": post + b"Transfer-Encoding: identity\r\n\r\n" + PING,
        "xchunked": post + b"Transfer-Encoding: xchunked\r\n\r\n" + chunks,
        "chunked with VT": post + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + chunks,
        "empty coding": post + b"Transfer-Encoding: \r\n\r\n" + chunks,
        "coding on 1.0": post.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        "two lengths": post + b"Content-Length: 0\r\n" + n + b"\r\n" + PING,
        "two equal lengths": post + n + n + b"\r\n" + PING,
        "length list": post + b"Content-Length: 40, 40\r\n\r\n" + PING,
        "length +40": post + b"Content-Length: +40\r\n\r\n" + PING,
        "length -1": post + b"Content-Length: -1\r\n\r\n" + PING,
        "length 0x28": post + b"Content-Length: 0x28\r\n\r\n" + PING,
        "length 4 0": post + b"Content-Length: 4 0\r\n\r\n" + PING,
        "length empty": post + b"Content-Length: \r\n\r\n" + PING,
        "length huge": post + b"Content-Length: 99999999999999999999\r\n\r\n" + PING,
        "length wraps": post + b"Content-Length: 18446744073709551656\r\n\r\n" + PING,
        "space before colon": post + b"Content-Length : 40\r\n\r\n" + PING,
        "tab before colon": post + b"Transfer-Encoding\t: chunked\r\n\r\n" + chunks,
        "leading space in name": post + n + b" X: y\r\n\r\n" + PING,
        "obs-fold": post + n + b"X: a\r\n b\r\n\r\n" + PING,
        "empty name": post + n + b": x\r\n\r\n" + PING,
        "no colon": post + n + b"nonsense\r\n\r\n" + PING,
        "control in name": post + n + b"X\x01: y\r\n\r\n" + PING,
        "bad token in name": post + n + b"X(y): z\r\n\r\n" + PING,
        "8-bit in name": post + n + b"X\xe9: y\r\n\r\n" + PING,
        "NUL in value": post + n + b"X: a\0b\r\n\r\n" + PING,
        "bare CR in value": post + n + b"X: a\rb\r\n\r\n" + PING,
        "bare LF ends line": post + n + b"X: a\nY: b\r\n\r\n" + PING,
        "bare LF all over": (post + n + b"\r\n").replace(b"\r\n", b"\n") + PING,
        "CR CR LF": post + n + b"X: a\r\r\n\r\n" + PING,
        "DEL in value": post + n + b"X: a\x7fb\r\n\r\n" + PING,
        "ESC in value": post + n + b"X: a\x1bb\r\n\r\n" + PING,
    }
    for what, data in cases.items():
        refused(t, s, data + inside, (400, 501, None) if what == "bare LF all over" else (400, 501, 413), what)


@case(deadline=30)
def chunk_syntax_table(t):
    """SEC-21: chunk syntax is exact; what is wrong is refused and closed."""
    s = t.session()
    head, inside = session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n", inner(s)
    for what, data in {
            "not hex": b"zz\r\n" + PING, "empty size": b"\r\n" + PING, "sign": b"+28\r\n" + PING,
            "0x": b"0x28\r\n" + PING, "leading space": b" 28\r\n" + PING, "underscore": b"2_8\r\n" + PING,
            "17 digits": b"10000000000000028\r\n" + PING, "wrap": b"ffffffffffffffff\r\n" + PING,
            "bare LF": b"28\n" + PING + b"\n0\n\n", "CR only": b"28\r" + PING,
            "no CRLF after data": b"28\r\n" + PING + b"0\r\n\r\n",
            "data too long": b"27\r\n" + PING + b"\r\n0\r\n\r\n", "minus": b"-1\r\n" + PING,
            "trailing space": b"28 \r\n" + PING + b"\r\n0\r\n\r\n"}.items():
        refused(t, s, head + data + inside, (400, 413), what)


@case
def chunk_extensions_do_not_hide_requests(t):
    """SEC-21: extensions and trailers are refused, and never read as a request."""
    s = t.session()
    head = session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n"
    for data in (b"28;a=b\r\n" + PING + b"\r\n0\r\n\r\n", b"28\r\n" + PING + b"\r\n0\r\nX: y\r\n\r\n",
                 b"28;" + b"a" * 20000 + b"\r\n" + PING + b"\r\n0\r\n\r\n",
                 b"28\r\n" + PING + b"\r\n0\r\n" + b"X: y\r\n" * 5000 + b"\r\n"):
        refused(t, s, head + data, (400,), str(data[:40]))
    eq(s.ask("ping")["result"], {})


@case
def chunk_size_over_the_limit_is_refused_at_once(t):
    """SEC-21 SEC-29: a chunk that announces too much is refused before its data."""
    s = t.session()
    conn = t.conn()
    conn.send(session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n")
    response = conn.response()
    response.read()
    eq(response.status, 413)


@case
def tiny_chunks_are_bounded(t):
    """SEC-21: framing bytes beyond 16 KiB + 4 x payload are refused."""
    s = t.session()
    conn = t.conn()
    body = b" " * 20000 + PING
    data = b"".join(b"00000001\r\n%c\r\n" % c for c in body)
    try:
        conn.send(session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n" + data + b"0\r\n\r\n")
    except OSError:
        pass
    response = conn.response()
    response.read()
    eq(response.status, 400)


@case
def chunked_body_is_read(t):
    """SEC-21: a correct chunked body in any split is one message."""
    s = t.session()
    head = session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n"
    body = b"1\r\n{\r\n" + b"%X\r\n" % (len(PING) - 1) + PING[1:] + b"\r\n00\r\n\r\n"
    conn = t.conn()
    for i in range(0, len(head + body), 7):
        conn.send((head + body)[i:i + 7])
    response = conn.response()
    response.read()
    eq(response.status, 200)


@case
def request_line_table(t):
    """SEC-22: version, target and spaces of the request line are exact."""
    s = t.session()
    tail = b"\r\n" + H + b"\r\n"
    for line, statuses in ((b"GET /healthz HTTP/2.0", (400, 505)), (b"GET /healthz HTTP/0.9", (400, 505)),
                           (b"GET /healthz http/1.1", (400, 505)), (b"GET /healthz HTTP/1.10", (400, 505)),
                           (b"GET /healthz", (400, 505)), (b"GET  /healthz HTTP/1.1", (400,)),
                           (b"GET /healthz  HTTP/1.1", (400, 505)), (b"GET\t/healthz HTTP/1.1", (400,)),
                           (b"GET /health z HTTP/1.1", (400, 505)), (b"GET /h\xe4 HTTP/1.1", (400,)),
                           (b"GET /\x01 HTTP/1.1", (400,)), (b"GET healthz HTTP/1.1", (400,)),
                           (b" GET /healthz HTTP/1.1", (400,)), (b"G@T /healthz HTTP/1.1", (400, 405, 501)),
                           (b"CONNECT localhost:80 HTTP/1.1", (400, 405, 501)), (b"GET * HTTP/1.1", (400, 404)),
                           (b"GET ftp://localhost/healthz HTTP/1.1", (400,)), (b"GET http:///healthz HTTP/1.1", (400,))):
        refused(t, s, line + tail + inner(s), statuses, repr(line))


@case
def absolute_targets(t):
    """SEC-22 SEC-23: a URL as the target is served; its authority is what is checked, whatever Host says."""
    port = str(t.daemon.address[1]).encode()
    for target, host, origin, status in ((b"http://localhost/healthz", b"evil.example", None, 200),
                                         (b"HTTP://127.0.0.1:9/healthz?a", b"localhost", None, 200),
                                         (b"http://evil.example/healthz", b"localhost", None, 403),
                                         (b"http://localhost:" + port + b"/healthz", b"localhost:9", b"http://localhost:" + port, 200),
                                         (b"http://localhost:9/healthz", b"localhost:" + port, b"http://localhost:" + port, 403)):
        conn = t.conn()
        head = b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n"
        conn.send(head + (b"Origin: " + origin + b"\r\n" if origin else b"") + b"\r\n")
        eq(conn.response().status, status, (target, host, origin))


@case
def long_request_line(t):
    """SEC-22 DEF-10: a target over 8 KiB is 414 (or 431)."""
    conn = t.conn()
    conn.send(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + H + b"\r\n")
    ok(conn.response().status in (414, 431), "status", conn.last.status)


@case
def host_table(t):
    """SEC-23: exactly one well-formed Host."""
    s = t.session()
    line = b"GET /healthz HTTP/1.1\r\n"
    for host in (b"", H + H, H + b"Host: evil.example\r\n", b"Host: \r\n", b"Host: a b\r\n", b"Host: localhost:port\r\n",
                 b"Host: localhost/x\r\n", b"Host: user@localhost\r\n", b"Host: localhost, evil.example\r\n"):
        refused(t, s, line + host + b"\r\n" + inner(s), (400, 403), repr(host))


@case
def refused_request_with_a_request_as_body(t):
    """SEC-24: the body of a refused request is never read as the next request."""
    s = t.session()
    inside = inner(s)
    for path, headers in ((b"/nowhere", b""), (b"/main/mcp", b"Origin: https://evil.example\r\n"),
                          (b"/main/mcp", b"Content-Type: text/plain\r\n"), (b"/healthz", b"")):
        conn = t.conn()
        conn.send(b"POST %s HTTP/1.1\r\n" % path + H + headers + b"Content-Length: %d\r\n\r\n" % len(inside) + inside)
        response = conn.response()
        response.read()
        ok(response.status >= 400, "status", response.status)
        eq(s.ask("ping")["result"], {}, "the body has run")


@case
def get_with_a_body(t):
    """SEC-24: a body on GET is counted off, not taken for a request."""
    s = t.session()
    conn = t.conn()
    inside = inner(s)
    conn.send(b"GET /healthz HTTP/1.1\r\n" + H + b"Content-Length: %d\r\n\r\n" % len(inside) + inside)
    response = conn.response()
    response.read()
    ok(response.status in (200, 400), "status", response.status)
    eq(s.ask("ping")["result"], {}, "the body has run")


@case(deadline=15)
def slow_clients_meet_a_deadline(t):
    """SEC-25 DEF-12: one byte at a time does not extend the deadline of head or body."""
    s = t.session()
    whole = session_head(s) + b"Content-Length: 400000\r\n\r\n"
    conns = {"head": (t.conn(), whole), "body": (t.conn(), b" " * 1000),
             "chunks": (t.conn(), b"1\r\n \r\n" * 200)}
    conns["body"][0].send(whole)
    conns["chunks"][0].send(session_head(s) + b"Transfer-Encoding: chunked\r\n\r\n")
    started, ended, sent = time.monotonic(), {}, 0
    while len(ended) < 3 and time.monotonic() - started < 8:
        for what, (conn, data) in conns.items():
            if what in ended:
                continue
            try:
                conn.send(data[sent:sent + 1])
                conn.sock.setblocking(False)
                got = conn.sock.recv(4096)
                ended[what] = (time.monotonic() - started, got)
            except BlockingIOError:
                pass
            except OSError:
                ended[what] = (time.monotonic() - started, b"")
            finally:
                conn.sock.setblocking(True)
        sent += 1
        eq(s.ask("ping")["result"], {}, "neighbour")
        time.sleep(0.1)
    eq(sorted(ended), ["body", "chunks", "head"], "ended")
    for what, (seconds, got) in ended.items():
        ok(seconds < 5, what + " lives too long", seconds)
        ok(got == b"" or got.startswith(b"HTTP/1.1 408"), what, got[:60])


@case
def idle_connection_is_closed(t):
    """SEC-25 DEF-12: a connection without a request ends after the idle time."""
    conn = t.conn()
    conn.request("GET", "/healthz").read()
    started = time.monotonic()
    ok(conn.is_closed(6), "idle connection stays")
    ok(time.monotonic() - started > 1.5, "closed too early")


@case(deadline=20)
def client_that_never_reads(t):
    """SEC-26 DEF-17: pipelined requests whose answers are not read cost bounded memory."""
    s = t.session()
    s.echo("warm")
    before = rss_kib(t.daemon.gateway)
    conn = t.conn(receive_buffer=4096)
    one = session_head(s) + b"Content-Length: %d\r\n\r\n" % len(PING) + PING
    conn.sock.settimeout(0.5)
    sent = 0
    try:
        while sent < 40 << 20:
            conn.sock.sendall(one * 200)
            sent += len(one) * 200
    except OSError:
        pass
    ok(rss_kib(t.daemon.gateway) - before < 16 << 10, "memory", before, rss_kib(t.daemon.gateway))
    eq(s.ask("ping")["result"], {}, "neighbour")


@case
def pipelined_requests_are_answered_in_order(t):
    """SEC-27: several requests in one packet: answers in order, or only the first and the end."""
    s = t.session()
    conn = t.conn()
    bodies = [mcp.encode(mcp.request(i, "ping")) for i in range(1, 6)]
    conn.send(b"".join(session_head(s) + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies))
    for i in range(1, 6):
        try:
            response = conn.response()
        except (wire.ProtocolError, ConnectionError):
            ok(i > 1, "not even the first was answered")
            return
        body = response.read()
        eq(response.status, 200)
        ok(b'"id":%d' % i in body, "order", body)


@case
def split_requests_are_whole(t):
    """SEC-20: the same request in pieces of any size gives the same answer."""
    s = t.session()
    data = session_head(s) + b"Content-Length: %d\r\n\r\n" % len(PING) + PING
    for size in (1, 2, 3, 17, 64):
        conn = t.conn()
        for i in range(0, len(data), size):
            conn.send(data[i:i + size])
        eq(conn.response().status, 200, "pieces of %d" % size)
        conn.last.read()
    conn = t.conn()
    conn.send(b"\r")
    time.sleep(0.05)
    conn.send(b"\n" + data)
    eq(conn.response().status, 200, "leading CRLF, split")


@case
def header_bombs(t):
    """SEC-28 DEF-10: 8 MiB of header costs little and ends with 431."""
    before = rss_kib(t.daemon.gateway)
    for bomb in (b"X: " + b"y" * (8 << 20), b"X: y\r\n" * 200000, b"y" * (8 << 20)):
        conn = t.conn()
        try:
            conn.send(b"GET /healthz HTTP/1.1\r\n" + H + bomb)
        except OSError:
            pass
        eq(conn.response().status, 431)
    ok(rss_kib(t.daemon.gateway) - before < 2048, "memory", before, rss_kib(t.daemon.gateway))


@case
def too_many_fields(t):
    """SEC-28 DEF-10: more than 100 header fields are 431."""
    conn = t.conn()
    conn.send(b"GET /healthz HTTP/1.1\r\n" + H + b"".join(b"X%d: y\r\n" % i for i in range(150)) + b"\r\n")
    eq(conn.response().status, 431)


@case
def huge_declared_body(t):
    """SEC-29: 10 GB declared: refused from the head, no 100-continue."""
    s = t.session()
    for extra in (b"", b"Expect: 100-continue\r\n"):
        conn = t.conn()
        conn.send(session_head(s) + extra + b"Content-Length: 10000000000\r\n\r\n")
        response = conn.response()
        eq(response.status, 413, "with %r" % extra)
        response.read()
        ok(conn.is_closed(4), "connection stays open")


@case
def expect_continue(t):
    """SEC-29: 100-continue is answered when the head is fine; other expectations are 417."""
    s = t.session()
    conn = t.conn()
    conn.send(session_head(s) + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(PING))
    eq(conn.response().status, 100)
    conn.send(PING)
    eq(conn.response().status, 200)
    conn.last.read()
    conn = t.conn()
    conn.send(session_head(s) + b"Expect: tea\r\nContent-Length: %d\r\n\r\n" % len(PING))
    eq(conn.response().status, 417)


@case
def content_codings_are_refused(t):
    """SEC-31: a body with Content-Encoding is 415; nothing is inflated."""
    s = t.session()
    for coding in (b"gzip", b"deflate", b"br", b"x"):
        conn = t.conn()
        conn.send(session_head(s) + b"Content-Encoding: " + coding + b"\r\nContent-Length: %d\r\n\r\n" % len(PING) + PING)
        eq(conn.response().status, 415, coding)


@case
def foreign_text_never_splits_a_response(t):
    """SEC-32: ids, names and errors with CR, LF, U+2028 come back inside JSON strings only."""
    s = t.session()
    nasty = "a\r\nSet-Cookie: x=1\r\n\r\nevent: y\ndata: z\n\n\u2028\u2029\u0085\x00"
    answer = s.ask("tools/call", {"name": "echo", "arguments": {"text": nasty}}, request_id=nasty[:40])
    eq(answer["id"], nasty[:40])
    eq(answer["result"]["content"][0]["text"], nasty)
    e = s.start_do(["progress", 1], ["error", -32000, nasty, {nasty: nasty}], token=nasty)
    first, last = e.rest()
    eq(first["params"]["progressToken"], nasty)
    eq(last["error"], {"code": -32000, "message": nasty, "data": {nasty: nasty}})


@case
def line_breaks_between_tokens(t):
    """SEC-32: CR and LF as JSON white space reach neither a line nor an event."""
    s = t.session()
    body = b'{\r\n "jsonrpc": "2.0",\n "id": 5,\r "method": "tools/call",\r\n\r\n "params": {"name": "echo",\n "arguments": {"text": "x"}}\n}\r\n'
    e = s.post(body)
    eq(e.answer["result"]["content"][0]["text"], "x")
    raw = '{\t"jsonrpc":"2.0",\r"id":@ID@,\r"result":\r{"content":[{"type":"text","text":"cr"}]}}'
    e = s.start_do(["progress", 1], ["line", raw], token=1)
    eq(e.rest()[-1]["result"]["content"][0]["text"], "cr")
    ok(b"\r" not in e.raw[-1], "CR in event", e.raw[-1])


@case
def protocol_switches_are_ignored(t):
    """SEC-33: Upgrade and method override change nothing; 101 never comes."""
    s = t.session()
    for extra in (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
                  b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n",
                  b"X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: DELETE\r\n"):
        conn = t.conn()
        conn.send(session_head(s) + extra + b"Content-Length: %d\r\n\r\n" % len(PING) + PING)
        response = conn.response()
        ok(response.status == 200, "status", response.status, extra)
        response.read()
    eq(s.ask("ping")["result"], {})
    conn = t.conn()
    conn.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    ok(conn.response().status in (400, 505), "HTTP/2 preface")


@case
def http_1_0(t):
    """SEC-22: an HTTP/1.0 request gets an answer without chunks, and the end."""
    conn = t.conn()
    conn.send(b"GET /healthz HTTP/1.0\r\n" + H + b"\r\n")
    response = conn.response()
    ok(response.framing != "chunked", "framing", response.framing)
    eq((response.status, response.read() is not None), (200, True))
    ok(conn.is_closed(4), "connection stays")


@case
def connection_close_is_obeyed(t):
    """SEC-27: Connection: close, also inside a list and in any case, ends the connection."""
    for value in ("close", "Close", "foo, CLOSE", "keep-alive, close"):
        conn = t.conn()
        conn.request("GET", "/healthz", [("Connection", value)]).read()
        ok(conn.is_closed(4), "stays open after", value)


@case(deadline=40)
def connection_storm(t):
    """SEC-35: connections that end at every phase leak neither descriptors nor memory."""
    s = t.session()
    s.echo("warm")
    data = session_head(s) + b"Content-Length: %d\r\n\r\n" % len(PING) + PING
    stream = b"GET /main/mcp HTTP/1.1\r\n" + H + b"Accept: text/event-stream\r\nMcp-Session-Id: " + s.id.encode() + b"\r\n\r\n"

    def storm(count):
        for i in range(count):
            conn = wire.Conn(t.daemon.address)
            whole = stream if i % 5 == 0 else data
            conn.send(whole[:(i * 37) % (len(whole) + 1)])
            if i % 3 == 0:
                conn.half_close()
            (conn.reset if i % 2 else conn.close)()
    storm(300)
    time.sleep(0.5)
    fds, rss = fd_count(t.daemon.gateway), rss_kib(t.daemon.gateway)
    storm(3000)
    wait_for(lambda: fd_count(t.daemon.gateway) <= fds + 2, 5, "descriptors back to %d" % fds)
    ok(rss_kib(t.daemon.gateway) - rss < 4096, "memory", rss, rss_kib(t.daemon.gateway))
    eq(s.ask("ping")["result"], {})
