# SPDX-License-Identifier: Apache-2.0
"""The ways in which a client can call: every revision of Streamable HTTP, a batch, HTTP+SSE, and without a session."""
import http.client
import json
import urllib.parse

DEADLINE = 30
CLIENT = {"name": "policy", "version": "1"}
META = "io.modelcontextprotocol/"


class Answer:
    """What came of a request: its result, or the status, code and message of an error."""

    def __init__(self, status, message):
        self.status = status
        self.result = message.get("result")
        error = message.get("error") or {}
        error = error if isinstance(error, dict) else {"code": error}  # of OAuth
        self.code, self.text = error.get("code"), error.get("message", "")
        self.reason = (error.get("data") or {}).get("reason") if isinstance(error.get("data"), dict) else None

    def __repr__(self):
        return repr(self.result) if self.result is not None else "%s %s %s %s" % (self.status, self.code, self.reason, self.text)


def connect(address):
    """How all ways connect; a test that stands elsewhere puts its own here."""
    return http.client.HTTPConnection(*address, timeout=DEADLINE)


class Way:
    """One client of one server. `call` gives an Answer."""

    def __init__(self, base, server, token):
        url = urllib.parse.urlsplit(base)
        self.address = (url.hostname, url.port)
        self.path = "/%s/mcp" % server
        self.head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            self.head["Authorization"] = "Bearer " + token
        self.last_id = 0

    def post(self, body, head=None):
        conn = connect(self.address)
        conn.request("POST", self.path, json.dumps(body), {**self.head, **(head or {})})
        response = conn.getresponse()
        text = response.read().decode()
        conn.close()
        return response, messages(text, response.getheader("content-type") or "")

    def request(self, method, params):
        self.last_id += 1
        return {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": dict(params)}

    def begin(self, version):
        hello = self.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT})
        response, answers = self.post(hello)
        if response.status != 200 or "result" not in answers[-1]:
            raise AssertionError("initialize: %s %s" % (response.status, answers))
        self.head["Mcp-Session-Id"] = response.getheader("mcp-session-id")
        self.head["MCP-Protocol-Version"] = version
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, method, params):
        message = self.request(method, params)
        response, answers = self.post(message)
        return pick(response.status, answers, message["id"])

    def end(self):
        pass


def messages(text, media_type):
    if media_type.startswith("text/event-stream"):
        found = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    else:
        found = json.loads(text) if text else []
    return found if isinstance(found, list) else [found]


def pick(status, answers, ident):
    own = [a for a in answers if a.get("id") == ident and "method" not in a]
    return Answer(status, (own or answers or [{}])[-1])


class Streamable(Way):
    def __init__(self, version, *args):
        super().__init__(*args)
        self.begin(version)


class Batch(Way):
    """Every call stands behind a ping."""

    def __init__(self, *args):
        super().__init__(*args)
        self.begin("2025-03-26")

    def call(self, method, params):
        message = self.request(method, params)
        response, answers = self.post([self.request("ping", {}), message])
        return pick(response.status, answers, self.last_id - 1)


class HttpSse(Way):
    """2024-11-05: answers come on a stream."""

    def __init__(self, base, server, token):
        super().__init__(base, server, token)
        self.conn = connect(self.address)
        self.conn.request("GET", "/%s/sse" % server, headers={**self.head, "Accept": "text/event-stream"})
        self.stream = self.conn.getresponse()
        if self.stream.status != 200:
            raise AssertionError("GET: %s %s" % (self.stream.status, self.stream.read()))
        url = urllib.parse.urlsplit(self.event())
        self.path = url.path + "?" + url.query
        hello = self.request("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": CLIENT})
        self.tell(hello)
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def event(self):
        while True:
            line = self.stream.readline().decode().rstrip("\r\n")
            if line.startswith("data: "):
                return line[6:]

    def tell(self, message):
        response, answers = self.post(message)
        while response.status == 202:
            answer = json.loads(self.event())
            if answer.get("id") == message["id"] and "method" not in answer:
                return Answer(200, answer)
        return pick(response.status, answers, message["id"])

    def call(self, method, params):
        return self.tell(self.request(method, params))

    def end(self):
        self.conn.close()


class Stateless(Way):
    def prepare(self, method, params):
        """The message, and what the head repeats of it."""
        message = self.request(method, params)
        message["params"]["_meta"] = {META + "protocolVersion": "2026-07-28", META + "clientInfo": CLIENT,
                                      META + "clientCapabilities": {}}
        head = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        name = params.get("uri") if method.startswith("resources/") else params.get("name")
        if name:
            head["Mcp-Name"] = name
        return message, head

    def call(self, method, params):
        message, head = self.prepare(method, params)
        response, answers = self.post(message, head)
        return pick(response.status, answers, message["id"])


WAYS = {
    "2025-03-26": lambda *a: Streamable("2025-03-26", *a),
    "2025-06-18": lambda *a: Streamable("2025-06-18", *a),
    "2025-11-25": lambda *a: Streamable("2025-11-25", *a),
    "batch": Batch,
    "http+sse": HttpSse,
    "2026-07-28": Stateless,
}
