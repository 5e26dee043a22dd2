# SPDX-License-Identifier: Apache-2.0
"""An MCP client of the session era, with nothing hidden: every exchange shows status and raw bytes."""
import contextlib
import json
import time

import wire

BOTH = "application/json, text/event-stream"
A, B, C, D = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"
ALL = (B, C, D)
TIMEOUT = wire.TIMEOUT


def encode(message):
    if isinstance(message, (bytes, str)):
        return message.encode() if isinstance(message, str) else message
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def request(request_id, method, params=None):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def notification(method, params=None):
    message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def bearer(token):
    """The header field that shows a token; none without one."""
    return [("Authorization", "Bearer " + token)] if token else []


def initialize(version=C, caps=None, request_id=0, info=None):
    return request(request_id, "initialize", {
        "protocolVersion": version, "capabilities": caps or {},
        "clientInfo": info or {"name": "scenario", "version": "1"}})


class Exchange:
    """One POST or GET and what comes back: one JSON body or a stream of events."""

    def __init__(self, conn, session=None):
        self.conn, self.session = conn, session
        self._response = self._reader = None
        self._json_taken = False
        self.raw = []  # data of every message, as it came
        self.ids = []  # of the event of each of them
        self.last_id = None  # of the last event of any kind
        self.primings = []  # events without data
        self.resumed = False

    @property
    def response(self):
        if self._response is None:
            self._response = self.conn.response()
        return self._response

    @property
    def status(self):
        return self.response.status

    @property
    def reader(self):
        if self._reader is None:
            self._reader = wire.EventReader(self.response)
        return self._reader

    def wait_head(self, timeout):
        if self._response is None:
            self.conn.sock.settimeout(timeout)
            try:
                self.response
            finally:
                self.conn.sock.settimeout(TIMEOUT)

    def next(self, timeout=TIMEOUT):
        """The next message, parsed; None at the end."""
        end = time.monotonic() + timeout
        self.wait_head(timeout)
        if not self.response.is_sse:
            if self._json_taken:
                return None
            self._json_taken = True
            body = self.response.read()
            if not body:
                return None
            self.raw.append(body)
            return json.loads(body)
        while True:
            event = self.reader.next(max(0.001, end - time.monotonic()))
            if event is None:
                return None
            self.take_event(event)
            if event.data:
                return json.loads(event.data)

    def take_event(self, event):
        """What holds for every event of a session. FRONT-SSE-02, -03, -04, FRONT-RES-01."""
        is_new = self.session is not None and self.session.version == D
        if event.data is None or (event.data == b"" and not is_new):
            raise wire.ProtocolError("an event without data: %r" % event)
        if event.id is None and b'"stream_expired"' not in event.data:
            raise wire.ProtocolError("an event without id: %r" % event)
        if event.name not in (None, "message"):
            raise wire.ProtocolError("event type %r" % event.name)
        self.last_id = event.id or self.last_id
        if event.data == b"":
            self.primings.append(event)
            return
        if is_new and not self.primings and not self.resumed:
            raise wire.ProtocolError("no priming event before %r" % event)
        self.raw.append(event.data)
        self.ids.append(event.id)

    def prime(self, timeout=TIMEOUT):
        """Reads the priming event that must come next."""
        self.wait_head(timeout)
        event = self.reader.next(timeout)
        if event is None or event.data != b"":
            raise wire.ProtocolError("no priming event, but %r" % event)
        self.take_event(event)
        return event

    def nothing(self, seconds):
        """Asserts that for so long no message comes and the stream stays open."""
        try:
            message = self.next(seconds)
        except TimeoutError:
            return
        raise AssertionError("a message where none should be: %r" % (message,) if message is not None
                             else "the stream has ended")

    def rest(self, timeout=TIMEOUT):
        """All messages to the end."""
        messages, end = [], time.monotonic() + timeout
        while True:
            message = self.next(max(0.001, end - time.monotonic()))
            if message is None:
                return messages
            messages += message if isinstance(message, list) else [message]

    def final(self, timeout=TIMEOUT):
        """The response at the end; what came before is dropped."""
        messages = self.rest(timeout)
        if not messages:
            raise AssertionError("no response: status %d" % self.status)
        return messages[-1]

    def close(self):
        self.conn.close()


class Stub:
    """What is needed to end a session."""

    def __init__(self, address, path, session_id, token=None):
        self.token = token
        self.address, self.path, self.id = address, path, session_id

    def end_quietly(self):
        if self.id is None:
            return
        try:
            conn = wire.Conn(self.address, timeout=3)
            conn.request("DELETE", self.path, [("Mcp-Session-Id", self.id)] + bearer(self.token)).read()
            conn.close()
        except (OSError, AssertionError):
            pass


class Session:
    def __init__(self, scene, daemon, server, version=C, caps=None, initialized=True, info=None,
                 path=None, check=True, token=None, source=None):
        self.scene, self.daemon, self.server = scene, daemon, server
        self.token, self.source = token, source
        self.address = daemon.address
        self.path = path or "/%s/mcp" % server
        self.version = version
        self.id = None
        self.next_id = 100
        self.conn = None
        self.started = Exchange(self.new_conn(), self)
        self.started.conn.send(self.head_and(encode(initialize(version, caps, info=info)), version_header=False))
        if not check:
            return
        self.result = self.started.final(20)
        if self.started.status != 200 or "result" not in self.result:
            raise AssertionError("initialize: %d %r" % (self.started.status, self.result))
        self.take_id()
        if initialized:
            self.notify("notifications/initialized")

    def take_id(self):
        self.id = self.started.response.header("mcp-session-id")
        if self.id is None:
            raise AssertionError("no Mcp-Session-Id in the answer to initialize")
        self.version = self.result["result"]["protocolVersion"]

    @contextlib.contextmanager
    def untouched(self):
        """What happens inside sends nothing to this session's process: the call after it is the next that the process reads."""
        pid = self.pid()
        before = self.daemon.record(pid)
        yield
        self.echo("the next")
        read = [json.loads(line) for line in self.daemon.record(pid)[len(before):].splitlines()]
        if [m.get("params", {}).get("arguments") for m in read] != [{"text": "the next"}]:
            raise AssertionError("the process has read %r" % read)

    # ---- sending --------------------------------------------------------

    def new_conn(self):
        return self.scene.conn(address=self.address, source=self.source)

    def headers(self, extra=(), accept=BOTH, version_header=True, content=True):
        names = [k.lower() for k, _ in extra]
        fields = list(extra)
        if "authorization" not in names:
            fields += bearer(self.token)
        if content and "content-type" not in names:
            fields.append(("Content-Type", "application/json"))
        if accept is not None and "accept" not in names:
            fields.append(("Accept", accept))
        if self.id is not None and "mcp-session-id" not in names:
            fields.append(("Mcp-Session-Id", self.id))
        if version_header and self.version != B and "mcp-protocol-version" not in names:
            fields.append(("MCP-Protocol-Version", self.version))
        return [(k, v) for k, v in fields if v is not None]

    def head_and(self, body, **kw):
        return self.scene.conns[-1].head("POST", self.path, self.headers(**kw), len(body)) + body

    def begin(self, message, conn=None, **kw):
        """Sends a message (or bytes) on a connection of its own; nothing is read yet."""
        conn = conn or self.new_conn()
        body = encode(message)
        conn.send(conn.head("POST", self.path, self.headers(**kw), len(body)) + body)
        return Exchange(conn, self)

    def post(self, message, **kw):
        """Sends a message and reads its whole answer. Exchange with .status and .answer."""
        exchange = self.begin(message, **kw)
        messages = exchange.rest(kw.pop("timeout", TIMEOUT))
        exchange.messages = messages
        exchange.answer = messages[-1] if messages else None
        return exchange

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def ask(self, method, params=None, request_id=None, timeout=TIMEOUT, **kw):
        """A request; returns the final message."""
        request_id = self.new_id() if request_id is None else request_id
        return self.begin(request(request_id, method, params), **kw).final(timeout)

    def start(self, method, params=None, request_id=None, **kw):
        """A request whose answer is read later."""
        request_id = self.new_id() if request_id is None else request_id
        exchange = self.begin(request(request_id, method, params), **kw)
        exchange.id = request_id
        return exchange

    def do_params(self, steps, token=None):
        params = {"name": "do", "arguments": {"steps": list(steps)}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return params

    def do(self, *steps, token=None, **kw):
        """Lets the scripted child do the steps inside a tool call; the final message."""
        return self.ask("tools/call", self.do_params(steps, token), **kw)

    def start_do(self, *steps, token=None, **kw):
        return self.start("tools/call", self.do_params(steps, token), **kw)

    def do_text(self, *steps, **kw):
        answer = self.do(*steps, **kw)
        if "result" not in answer:
            raise AssertionError("no result: %r" % (answer,))
        return answer["result"]["content"][0]["text"]

    def probe(self):
        return json.loads(self.do_text(["probe"]))

    def pid(self):
        return int(self.do_text(["text", "@PID@"]))

    def echo(self, text, **kw):
        answer = self.ask("tools/call", {"name": "echo", "arguments": {"text": text}}, **kw)
        return answer["result"]["content"][0]["text"]

    def notify(self, method, params=None, expect=202, **kw):
        exchange = self.post(notification(method, params), **kw)
        if expect is not None and (exchange.status != expect or exchange.response.body):
            raise AssertionError("%s: %d %r" % (method, exchange.status, exchange.response.body))
        return exchange

    def respond(self, request_id, result=None, error=None, expect=202):
        message = {"jsonrpc": "2.0", "id": request_id}
        message.update({"error": error} if error else {"result": {} if result is None else result})
        exchange = self.post(message)
        if expect is not None and (exchange.status != expect or exchange.response.body):
            raise AssertionError("response: %d %r" % (exchange.status, exchange.response.body))
        return exchange

    def cancel(self, request_id, **kw):
        return self.notify("notifications/cancelled", {"requestId": request_id}, **kw)

    def get(self, extra=(), check=True):
        """The standalone stream."""
        conn = self.new_conn()
        conn.send(conn.head("GET", self.path, self.headers(extra, accept="text/event-stream", content=False)))
        exchange = Exchange(conn, self)
        if check and (exchange.status != 200 or not exchange.response.is_sse):
            raise AssertionError("GET: %d %r" % (exchange.status, exchange.response.read()))
        return exchange

    def resume(self, last_id, check=True):
        """The stream of that event, behind it."""
        exchange = self.get([("Last-Event-ID", last_id)], check)
        exchange.resumed = True
        return exchange

    def delete(self, extra=()):
        response = self.new_conn().request("DELETE", self.path, self.headers(extra, accept=None, content=False))
        response.read()
        return response

    def end_quietly(self):
        Stub(self.address, self.path, self.id, self.token).end_quietly()


class SseClient:
    """A client of HTTP+SSE (2024-11-05): one stream for all that comes, POSTs that are answered with a status."""

    def __init__(self, scene, daemon, server="main", version=A, caps=None, initialized=True, path=None,
                 extra=(), begin=True, token=None):
        self.scene, self.daemon, self.server, self.token = scene, daemon, server, token
        self.address = daemon.address
        self.next_id = 100
        self.seen = []  # messages that nobody asked for yet
        self.conn = scene.conn(address=self.address)
        path = path or "/%s/sse" % server
        self.conn.send(self.conn.head("GET", path, [("Accept", "text/event-stream")] + bearer(token) + list(extra)))
        self.response = self.conn.response()
        if self.response.status != 200:
            return
        self.reader = wire.EventReader(self.response)
        event = self.reader.next()
        if event is None or event.name != "endpoint":
            raise wire.ProtocolError("no endpoint event first, but %r" % event)
        self.uri = event.data.decode()
        self.first, self.last_id = event, event.id
        if event.id is not None and not self.is_own(event.id):
            raise wire.ProtocolError("an id that does not name the client: %r" % event)
        if not begin:
            return
        self.result = self.ask("initialize", initialize(version, caps)["params"])
        if "result" not in self.result:
            raise AssertionError("initialize: %r" % self.result)
        self.version = self.result["result"]["protocolVersion"]
        if initialized:
            self.notify("notifications/initialized")

    def post(self, body, headers=(("Content-Type", "application/json"),), uri=None):
        conn = self.scene.conn(address=self.address)
        response = conn.request("POST", uri or self.uri, list(headers) + bearer(self.token), encode(body))
        response.read()
        conn.close()
        return response

    def send(self, message):
        response = self.post(message)
        if response.status != 202 or response.body:
            raise AssertionError("%r: %d %r" % (message, response.status, response.body))

    def next(self, timeout=TIMEOUT):
        """The next message of the stream; None at its end."""
        event = self.reader.next(timeout)
        if event is None:
            return None
        if event.name != "message" or not event.data or event.id is not None and not self.is_own(event.id):
            raise wire.ProtocolError("not an event of this transport: %r" % event)
        self.last_id = event.id or self.last_id
        return json.loads(event.data)

    def is_own(self, event_id):
        text = event_id.decode() if isinstance(event_id, bytes) else event_id
        return text.startswith(self.uri[-32:] + "-")

    def again(self, *extra, event_id=True):
        """The GET of an EventSource that has lost its connection."""
        named = [("Last-Event-ID", self.last_id)] if event_id else []
        other = SseClient(self.scene, self.daemon, self.server, begin=False, extra=named + list(extra), token=self.token)
        other.next_id = self.next_id
        return other

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def start(self, method, params=None, request_id=None):
        request_id = self.new_id() if request_id is None else request_id
        self.send(request(request_id, method, params))
        return request_id

    def wait_answer(self, request_id, timeout=TIMEOUT):
        """The response to that request; other messages are kept in .seen, in their order."""
        end = time.monotonic() + timeout
        while True:
            for message in self.seen:
                if message.get("id") == request_id and "method" not in message:
                    self.seen.remove(message)
                    return message
            message = self.next(max(0.001, end - time.monotonic()))
            if message is None:
                raise AssertionError("the stream ended before the answer to %r" % (request_id,))
            self.seen.append(message)

    def ask(self, method, params=None, request_id=None, timeout=TIMEOUT):
        return self.wait_answer(self.start(method, params, request_id), timeout)

    def notify(self, method, params=None):
        self.send(notification(method, params))

    def respond(self, request_id, result):
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def start_do(self, *steps, token=None, request_id=None):
        return self.start("tools/call", Session.do_params(self, steps, token), request_id)

    def do(self, *steps, token=None):
        return self.wait_answer(self.start_do(*steps, token=token))

    def do_text(self, *steps):
        return self.do(*steps)["result"]["content"][0]["text"]

    def pid(self):
        return int(self.do_text(["text", "@PID@"]))

    def close(self):
        self.conn.close()
