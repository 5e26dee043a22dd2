# SPDX-License-Identifier: Apache-2.0
"""
Holds what mcpgated says against the schemas: each message that a client of the scenarios reads (wire.py hands it over)
and each line that a scripted server has read (its record). Of what clients and servers say, it learns the revision they
speak and which method a response answers; that itself is not judged.
"""
import json
import os
import re

import schema

LEGACY = schema.REVISIONS[:-1]
MODERN = schema.REVISIONS[-1]
META_VERSION = "io.modelcontextprotocol/protocolVersion"
HEAD = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.1\r\n")

found = []  # texts; whoever runs the cases takes them
sessions = {}  # by Mcp-Session-Id, or the path that an HTTP+SSE client posts to
is_on = False  # the runner of the cases turns it on


class Session:
    """What is known of one client: the revision, and the methods of the requests that it made."""

    def __init__(self, revision=None):
        self.revision, self.methods = revision, {}


def report(where, message, revision, fault):
    found.append("schema %s, %s: %s in %s" % (revision, where, fault, schema.brief(message)))


def known(revision, default):
    return revision if revision in schema.REVISIONS else default


def parse(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parts(message):
    """The objects of a message or a batch of them."""
    return [m for m in (message if isinstance(message, list) else [message]) if isinstance(m, dict)]


def params_of(message):
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def meta_version(message):
    meta = params_of(message).get("_meta")
    return meta.get(META_VERSION) if isinstance(meta, dict) else None


class Request:
    """One HTTP request, as far as its bytes tell."""

    def __init__(self, path="", fields=(), body=b""):
        self.path, self.fields = path, dict(fields)
        self.messages = parts(parse(body)) if body else []
        self.session_id = self.fields.get("mcp-session-id") or (path if path in sessions else None)
        self.methods = {json.dumps(m["id"]): m["method"] for m in self.messages
                        if "id" in m and isinstance(m.get("method"), str)}
        session = sessions.get(self.session_id)
        if session:
            session.methods.update(self.methods)

    def method_of(self, message):
        key = json.dumps(message.get("id"))
        session = sessions.get(self.session_id)
        return self.methods.get(key) or (session.methods.get(key) if session else None)

    def revision_of(self, message):
        """The one that the answers are to follow; what names none is of 2025-03-26, what names an unknown one of none."""
        if self.method_of(message) == "initialize":
            asked = next((params_of(m) for m in self.messages if m.get("method") == "initialize"), {})
            result = message.get("result") if isinstance(message.get("result"), dict) else asked
            return known(result.get("protocolVersion"), LEGACY[-1])
        session = sessions.get(self.session_id)
        if session and session.revision:
            return session.revision
        named = [meta_version(m) for m in self.messages] + [self.fields.get("mcp-protocol-version")]
        named = [n for n in named if n is not None]
        return known(named[0], MODERN) if named else schema.BATCHES


class Asked:
    """The requests of one connection, in their order; of what is no plain HTTP only that it was one."""

    def __init__(self):
        self.pending, self.requests = b"", []

    def feed(self, data):
        self.pending += data
        while b"\r\n\r\n" in self.pending:
            head, _, rest = self.pending.partition(b"\r\n\r\n")
            m = HEAD.match(head + b"\r\n")
            fields = [line.partition(b":")[::2] for line in head.split(b"\r\n")[1:]]
            fields = {k.decode("latin-1").lower(): v.decode("latin-1").strip() for k, v in fields}
            length = fields.get("content-length", "0")
            if m is None or not length.isdigit() or len(rest) < int(length):
                return
            self.pending = rest[int(length):]
            self.requests.append(Request(m.group(2).decode("latin-1"), fields, rest[:int(length)]))

    def take(self):
        if self.requests:
            return self.requests.pop(0)
        self.pending = b""
        return Request()


def on_endpoint(uri):
    """A client of HTTP+SSE has begun."""
    sessions[uri] = Session(LEGACY[0])
    return uri


def on_message(request, text, response):
    """The text of a message, or of a batch, has come to a client as (part of) the answer to the request."""
    message = parse(text)
    if not any("jsonrpc" in m for m in parts(message)):
        if response.status == 200 and request.messages and request.path.endswith("/mcp"):
            report(request.path, message, "-", ": no JSON-RPC")
        return
    for m in parts(message):
        method, revision = request.method_of(m), request.revision_of(m)
        if method == "initialize" and "result" in m:
            sessions.setdefault(response.header("mcp-session-id") or request.session_id, Session()).revision = revision
        # The transport lets the body of an HTTP error be an error without an id, the schemas before 2025-11-25 do not.
        judged = dict(m, id=0) if response.status >= 400 and "error" in m and "id" not in m else m
        fault = schema.fault(judged, revision, "server", method)
        if fault:
            report("to a client, %s" % (method or "-"), m, revision, fault)
    if isinstance(message, list) and revision != schema.BATCHES:
        report("to a client", message, revision, ": a batch")


class Record:
    """What one scripted server was sent, as far as it was looked at, and the revision that it speaks."""

    def __init__(self, path, script):
        self.path, self.script = path, script
        self.offset, self.responses, self.revision = 0, 0, LEGACY[-1]

    def look(self):
        with open(self.path, "rb") as f:
            f.seek(self.offset)
            lines = f.read().splitlines(True)
        for line in lines:
            if line.endswith(b"\n"):
                self.offset += len(line)
                self.on_line(line)

    def on_line(self, line):
        message, method, then = parse(line), None, None
        if isinstance(message, dict):
            named = meta_version(message)
            if message.get("method") == "initialize":
                self.revision = known(params_of(message).get("protocolVersion"), self.revision)
                then = known(answered(self.script), self.revision)
            elif named is not None:
                self.revision = known(named, self.revision)
            elif "method" not in message:
                method = self.method_of_response()
        fault = schema.fault(message, self.revision, "client", method)
        if fault:
            report("to a server, %s" % (method or "-"), message, self.revision, fault)
        self.revision = then or self.revision

    def method_of_response(self):
        """What the next response answers; the server has written it down. None if it knows no such request."""
        with open(self.path + ".answered") as f:
            methods = f.read().splitlines()
        self.responses += 1
        return methods[self.responses - 1].strip("?") or None if self.responses <= len(methods) else None


class Records:
    """Those of all scripted servers of one daemon."""

    def __init__(self):
        self.of = {}

    def look(self, folder, servers):
        """Checks what has come since the last look."""
        for entry in sorted(os.listdir(folder)):
            m = re.fullmatch(r"(.+)-\d+", entry)
            if m:
                server = servers.get(m.group(1)) or {}
                self.of.setdefault(entry, Record(os.path.join(folder, entry), server.get("script", server))).look()


def answered(script):
    """The revision that a script has in its answer to initialize, if it says so."""
    m = re.search(r'protocolVersion\\*": ?\\*"([0-9-]+)', json.dumps(script.get("init", "")))
    return m.group(1) if m else script.get("version")
