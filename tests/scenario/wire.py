# SPDX-License-Identifier: Apache-2.0
"""
A raw HTTP/1.1 client: the case decides about every byte that is sent, and sees every byte that
comes back. Responses are read strictly: what does not follow RFC 9112 is an error.
"""
import fcntl
import os
import random
import re
import socket
import struct
import time

import validation

TIMEOUT = 8.0 * float(os.environ.get("SCENARIO_SLOW", "1"))  # the runner sets that, from --slow
# Nothing of the machine may stand in the answers. SEC-51
HERE = os.path.dirname(os.path.abspath(__file__))
LEAKS = re.compile(rb"child\.py|/tmp/|/usr/|/home/|python|Traceback|0x[0-9a-f]{6,}|" + re.escape(HERE.encode()))

TAKEN = []  # descriptors: the marks at the ports below


def free_port():
    """One on loopback that nobody gets by chance: below those that the kernel gives out, and no other test's while this process lives."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first = int(f.read().split()[0])
    for port in random.sample(range(first - 8192, first), 100):
        mark = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                mark.bind("\0port-of-a-test-%d" % port)
                probe.bind(("127.0.0.1", port))
            except OSError:
                mark.close()
                continue
        TAKEN.append(fcntl.fcntl(mark, fcntl.F_DUPFD_CLOEXEC, 512))  # high: a shell names descriptors of one digit alone
        mark.close()
        return port
    raise AssertionError("no port is free")


class ProtocolError(AssertionError):
    """What came back is not HTTP, not SSE or not what a client could use."""


class Response:
    """Head of a response; the body is read on demand."""

    def __init__(self, conn, head, is_head):
        self.conn = conn
        self.raw_head = head
        lines = head.decode("latin-1").split("\r\n")
        m = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9][0-9]) ?([\x20-\x7e]*)", lines[0])
        if not m:
            raise ProtocolError("bad status line %r" % lines[0])
        self.status = int(m.group(1))
        is_last = self.status >= 200  # the body of the request comes after a 100
        self.request = conn.asked.take() if validation.is_on and is_last else None
        self.headers = []
        for line in lines[1:]:
            m = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*", line)
            if not m:
                raise ProtocolError("bad header line %r" % line)
            self.headers.append((m.group(1).lower(), m.group(2)))
        self.left = None
        self.framing = self.find_framing(is_head)
        self.done = self.framing == "none" or self.left == 0
        self.body = b""

    def find_framing(self, is_head):
        length, coding = self.header("content-length"), self.header("transfer-encoding")
        if length is not None and coding is not None:
            raise ProtocolError("both Content-Length and Transfer-Encoding")
        if is_head or self.status in (204, 304) or self.status < 200:
            return "none"
        if coding is not None:
            if coding != "chunked":
                raise ProtocolError("coding %r" % coding)
            return "chunked"
        if length is not None:
            self.left = int(length)
            return "length"
        return "close"

    def header(self, name, default=None):
        found = [v for k, v in self.headers if k == name.lower()]
        if len(found) > 1 and name.lower() not in ("vary", "allow", "www-authenticate"):
            raise ProtocolError("%s occurs %d times" % (name, len(found)))
        return found[0] if found else default

    @property
    def is_sse(self):
        return (self.header("content-type") or "").split(";")[0].strip() == "text/event-stream"

    @property
    def is_json(self):
        return (self.header("content-type") or "").split(";")[0].strip() == "application/json"

    def read_some(self):
        """The next piece of the body; b"" at its end."""
        if self.done:
            return b""
        if self.framing == "length":
            piece = self.conn.take_some(self.left)
            if not piece:
                raise ProtocolError("body ends %d bytes early" % self.left)
            self.left -= len(piece)
            self.done = self.left == 0
        elif self.framing == "chunked":
            piece = self.read_chunk()
        else:
            piece = self.conn.take_some(1 << 16)
            self.done = not piece
        return piece

    def read_chunk(self):
        size = self.conn.take_line()
        if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", size):
            raise ProtocolError("chunk size %r" % size)
        size = int(size, 16)
        piece = self.conn.take(size)
        if self.conn.take(2) != b"\r\n":
            raise ProtocolError("chunk does not end with CRLF")
        self.done = size == 0
        return piece

    def read(self):
        was_done = self.done
        while True:
            piece = self.read_some()
            if not piece and self.done:
                break
            self.body += piece
        if self.request and self.is_json and not was_done:
            validation.on_message(self.request, self.body, self)
        if self.status >= 400 and LEAKS.search(self.body):
            raise ProtocolError("an error tells too much: %r" % self.body[:400])
        return self.body


class Event:
    def __init__(self):
        self.name, self.data, self.id, self.retry, self.raw = None, None, None, None, b""

    def __repr__(self):
        return "Event(%r)" % self.raw


class EventReader:
    """Events of a text/event-stream response, strictly: one data line each. FRONT-SSE-02."""

    def __init__(self, response):
        self.response = response
        self.pending = b""
        self.comments = 0
        self.event = Event()  # as far as it has come

    def next(self, timeout=TIMEOUT):
        """The next event, or None at the end of the stream. TimeoutError if neither comes."""
        end = time.monotonic() + timeout
        while True:
            line = self.line(end)
            if line is None:
                if self.event.raw:
                    raise ProtocolError("stream ends inside an event: %r" % self.event.raw)
                return None
            if line == b"" and self.event.raw:
                event, self.event = self.event, Event()
                self.validate(event)
                return event
            if line != b"":
                self.field(self.event, line)

    def validate(self, event):
        request = self.response.request
        if request and event.name == "endpoint":
            request.session_id = validation.on_endpoint(event.data.decode())
        elif request and event.data:
            validation.on_message(request, event.data, self.response)

    def field(self, event, line):
        if line.startswith(b":"):
            self.comments += 1
            return
        event.raw += line + b"\n"
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"data":
            if event.data is not None:
                raise ProtocolError("an event with two data lines: %r" % event.raw)
            event.data = value
        elif name == b"event":
            event.name = value.decode()
        elif name == b"id":
            # FRONT-RES-01: it must come back unchanged as a header.
            if not re.fullmatch(rb"[\x21-\x7e]+", value):
                raise ProtocolError("event id %r" % value)
            event.id = value.decode()
        elif name == b"retry":
            event.retry = int(value)
        else:
            raise ProtocolError("unknown field in an event: %r" % line)

    def line(self, end):
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("no event in time")
            self.response.conn.sock.settimeout(left)
            try:
                piece = self.response.read_some()
            finally:
                self.response.conn.sock.settimeout(TIMEOUT)
            if not piece and self.response.done:
                if self.pending:
                    raise ProtocolError("stream ends inside a line: %r" % self.pending)
                return None
            self.pending += piece
        line, _, self.pending = self.pending.partition(b"\n")
        if line.endswith(b"\r"):
            line = line[:-1]
        if b"\r" in line or b"\0" in line:
            raise ProtocolError("CR or NUL inside a line: %r" % line)
        return line


class TlsAddress(tuple):
    """(host, port) of a port that speaks TLS: a Conn to it has done the handshake."""

    def __new__(cls, address, context, name="localhost", session=None):
        self = super().__new__(cls, address)
        self.context, self.name, self.session = context, name, session
        return self

    def wrap(self, sock):
        return self.context.wrap_socket(sock, server_hostname=self.name, session=self.session)


class Conn:
    def __init__(self, address, timeout=TIMEOUT, receive_buffer=None, source=None):
        self.address = address
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        if not isinstance(address, str) and ":" in address[0]:
            family = socket.AF_INET6
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:  # an address of this machine to come from
            self.sock.bind((source, 0))
        self.sock.settimeout(timeout)
        self.sock.connect(tuple(address) if isinstance(address, tuple) else address)
        if family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(address, TlsAddress):
            self.sock = address.wrap(self.sock)
        self.pending = b""
        self.last = None
        self.asked = validation.Asked()

    @property
    def host(self):
        if isinstance(self.address, str):
            return "localhost"
        return ("[%s]:%d" if ":" in self.address[0] else "%s:%d") % self.address[:2]

    # ---- sending --------------------------------------------------------

    def send(self, data):
        data = data if isinstance(data, bytes) else data.encode("latin-1")
        if validation.is_on:
            self.asked.feed(data)
        self.sock.sendall(data)

    def head(self, method, path, headers=(), length=None):
        """Bytes of a request head. Host is added unless the case brings one; None leaves it out."""
        fields = [(k, v) for k, v in headers if v is not None]
        if not any(k.lower() == "host" for k, v in headers):
            fields.insert(0, ("Host", self.host))
        if length is not None:
            fields.append(("Content-Length", str(length)))
        lines = ["%s %s HTTP/1.1" % (method, path)] + ["%s: %s" % f for f in fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def request(self, method, path, headers=(), body=None):
        """Sends a request and returns its response, head read, body not."""
        if isinstance(body, str):
            body = body.encode()
        length = None if body is None else len(body)
        self.send(self.head(method, path, headers, length) + (body or b""))
        return self.response(method == "HEAD")

    # ---- receiving ------------------------------------------------------

    def fill(self):
        piece = self.sock.recv(1 << 16)
        self.pending += piece
        return len(piece) > 0

    def take_some(self, n):
        if not self.pending:
            self.fill()
        piece, self.pending = self.pending[:n], self.pending[n:]
        return piece

    def take(self, n):
        while len(self.pending) < n:
            if not self.fill():
                raise ProtocolError("connection ends in the middle of something: %r" % self.pending[:200])
        piece, self.pending = self.pending[:n], self.pending[n:]
        return piece

    def take_line(self):
        while b"\r\n" not in self.pending:
            if not self.fill():
                raise ProtocolError("connection ends in the middle of a line: %r" % self.pending[:200])
        line, _, self.pending = self.pending.partition(b"\r\n")
        return line

    def response(self, is_head=False):
        while b"\r\n\r\n" not in self.pending:
            if not self.fill():
                raise ProtocolError("no response, connection closed; got %r" % self.pending[:200])
        head, _, self.pending = self.pending.partition(b"\r\n\r\n")
        self.last = Response(self, head, is_head)
        return self.last

    def is_closed(self, timeout=5.0):
        """Whether the other side closes within the time (bytes that come before, or that nobody has taken, are an error)."""
        if self.pending:
            raise ProtocolError("bytes where the connection should end: %r" % self.pending[:200])
        self.sock.settimeout(timeout)
        try:
            while True:
                piece = self.sock.recv(1 << 16)
                if not piece:
                    return True
                raise ProtocolError("bytes where the connection should end: %r" % piece[:200])
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self.sock.settimeout(TIMEOUT)

    def is_silent(self, seconds):
        """Whether nothing at all (bytes or an end) comes for so long."""
        if self.pending:
            return False
        self.sock.settimeout(seconds)
        try:
            self.pending += self.sock.recv(1 << 16)
            return False
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        finally:
            self.sock.settimeout(TIMEOUT)

    # ---- ending ---------------------------------------------------------

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()
