# SPDX-License-Identifier: Apache-2.0
"""What the parts of the soak test share: a cheap server, the daemon, a client, threads."""
import json
import os
import ssl
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
sys.path.insert(0, os.path.join(HERE, "..", "scenario", "cases"))

import harness  # noqa: E402
import mcp  # noqa: E402
import wire  # noqa: E402

BENCH = os.path.join(HERE, "..", "..", "bench")


class Problem(Exception):
    pass


def compiled(scratch, source):
    """The program of a C file, built into scratch; None without a compiler."""
    out = os.path.join(scratch, os.path.basename(source)[:-2])
    command = [os.environ.get("CC", "cc"), "-O2", "-std=gnu11", "-o", out, source, "-lssl", "-lcrypto"]
    return out if os.path.exists(out) or subprocess.run(command).returncode == 0 else None


def tiny_child(scratch):
    """A C server that costs next to nothing; built here unless the benchmark has it already."""
    ready = os.path.join(BENCH, "echo-server")
    if os.access(ready, os.X_OK):
        return [ready]
    return [compiled(scratch, ready + ".c") or os.path.join(harness.BIN, "mcpgated-demo")]


def start(child, prefix=None, level="warn"):
    servers = {"main": {"command": child[0], "args": child[1:], "pool": {"max": 1000}}}
    return harness.Daemon(servers, {"log": {"level": level}, "limits": {"processes": 1000}}, prefix=prefix)


def make_certificate(folder, name):
    """A P-256 certificate of its own authority; by rename, as tools that renew certificates do it."""
    for kind in ("key", "crt"):
        if os.path.exists(os.path.join(folder, "new." + kind)):
            os.unlink(os.path.join(folder, "new." + kind))
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                           "2", "-subj", "/CN=" + name, "-keyout", "new.key", "-out", "new.crt"], cwd=folder, capture_output=True)
    if made.returncode:
        raise Problem("openssl: %r" % made.stderr[-300:])
    os.chmod(os.path.join(folder, "new.key"), 0o600)
    for kind in ("key", "crt"):
        os.rename(os.path.join(folder, "new." + kind), os.path.join(folder, "tls." + kind))


def over_tls(address):
    """The same address for a client that trusts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return wire.TlsAddress(address, context)


class Client:
    """A session over one keep-alive connection; nothing is parsed that need not be."""

    def __init__(self, daemon, address=None):
        self.daemon, self.address = daemon, address or daemon.address
        self.conn = wire.Conn(self.address, timeout=60)
        self.is_closing = False  # the daemon has said so
        self.id = None
        self.path = "/main/mcp"

    def post(self, message):
        fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
        if self.id:
            fields += [("Mcp-Session-Id", self.id), ("MCP-Protocol-Version", mcp.C)]
        if self.is_closing:
            self.conn.close()
            self.conn = wire.Conn(self.address, timeout=60)
        response = self.conn.request("POST", self.path, fields, mcp.encode(message))
        self.is_closing = response.header("connection") == "close"
        if response.is_sse:
            exchange = mcp.Exchange(self.conn)
            exchange._response = response
            return response, exchange.rest(60)[-1]
        body = response.read()
        return response, json.loads(body) if body else None

    def open(self):
        self.id = None
        response, answer = self.post(mcp.initialize(mcp.C))
        if response.status != 200 or "result" not in answer:
            raise Problem("initialize: %d %r" % (response.status, answer))
        self.id = response.header("mcp-session-id")
        self.post(mcp.notification("notifications/initialized"))

    def echo(self, text, request_id=1):
        params = {"name": "echo", "arguments": {"text": text, "message": text}}
        response, answer = self.post(mcp.request(request_id, "tools/call", params))
        if response.status != 200 or answer.get("id") != request_id or "result" not in answer:
            raise Problem("call: %d %r" % (response.status, str(answer)[:300]))
        if text not in answer["result"]["content"][0]["text"]:
            raise Problem("a wrong answer: sent %r, got %r" % (text[:100], str(answer)[:300]))

    def end(self):
        response = self.conn.request("DELETE", self.path, [("Mcp-Session-Id", self.id)])
        response.read()
        if response.status != 204:
            raise Problem("DELETE: %d" % response.status)


def in_parallel(count, work):
    """work(n) in threads; raises the first problem that one of them had."""
    problems = []

    def guarded(n):
        try:
            work(n)
        except Exception as e:
            problems.append(e)
    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise Problem("%d of %d workers failed, the first: %r" % (len(problems), count, problems[0]))


def stop(daemon):
    problems = daemon.stop()
    if problems:
        raise Problem("; ".join(problems))
