# SPDX-License-Identifier: Apache-2.0
"""
Every key of the configuration by a reload, there and back, while there is work. The keys are the program's own list: a new
one without a row here is a failure. After each reload, new clients are told what a daemon is told that starts like this.
"""
import json
import os
import subprocess

import harness
import mcp
from c100_reload import reload
from c80_stateless import begin as begin_modern, fields, message, messages_of
from harness import case, eq, ok

# By servers.NAME.: what the reload gives a server that has none of it; or (that, what the server has before and after).
SERVERS = {
    "assume_no_server_requests": (True, {"isolation": "principal"}),
    "concurrency": 1,
    "enabled": False,
    "env": {"N": "1"},
    "era": "legacy",
    "inherit_env": ["HOME"],
    "isolation": "principal",
    "path": "/other",
    "pin": "enforce",
    "pool.idle_timeout": "1m",
    "pool.max": 3,
    "pool.max_age": "1h",
    "pool.min": 1,
    "pool.queue": 5,
    "pool.queue_timeout": "5s",
    "pool.reclaim": ("never", {"isolation": "session"}),
    "pool.remember": "0",
    "pool.requests_per_process": 2,
    "pool.sessions_per_process": 2,
    "pool.share": ("20%", {"isolation": "session"}),
    "pool.sleep_after": ("1m", {"isolation": "session"}),
    "pool.sleep_when_gone": ("1m", {"isolation": "session"}),
    "pool.warm": (1, {"isolation": "session"}),
    "progress_while_waiting": (True, {"isolation": "principal"}),
    "prompts.allow": ["p"],
    "prompts.deny": ["p"],
    "prompts.describe": {"p": "New."},
    "prompts.rename": {"p": "q"},
    "rate.burst": (9, {"rate": {"calls": 100}}),
    "rate.calls": 100,
    "rate.per": ("1s", {"rate": {"calls": 100}}),
    "rate.shared": (True, {"rate": {"calls": 100}}),
    "redact": ["sk-[0-9]+"],
    "request_timeout": "30s",
    "request_timeout_max": "2h",
    "resources.allow": ["res://*"],
    "resources.deny": ["res://*"],
    "resources.open_files": 512,
    "sanitize.controls": "strip",
    "sanitize.invisible": "mark",
    "start.backoff": "1s..10s",
    "start.give_up_after": 2,
    "start.rate": 50,
    "start.timeout": "20s",
    "start.try": True,
    "stop.grace": "1s",
    "stop.term": "1s",
    "templates.allow": ["t://*"],
    "templates.deny": ["t://*"],
    "tool_timeout": {"echo": "20s"},
    "tools.allow": ["do"],
    "tools.arguments.deny_patterns": {"*": ["hel+o"]},
    "tools.arguments.forbidden_keys": ["text"],
    "tools.arguments.max_bytes": 8,
    "tools.arguments.paths.ignore": (["text"], {"tools": {"arguments": {"paths": {"roots": ["/srv"], "members": ["text"]}}}}),
    "tools.arguments.paths.members": (["text"], {"tools": {"arguments": {"paths": {"roots": ["/srv"]}}}}),
    "tools.arguments.paths.roots": ["/srv"],
    "tools.arguments.schema": "check",
    "tools.annotations": {"echo": {"title": "Echo", "readOnlyHint": True}},
    "tools.deny": ["echo"],
    "tools.describe": {"echo": "New."},
    "tools.rename": {"do": "make"},
    "tools.limits.[].burst": None,
    "tools.limits.[].calls": None,
    "tools.limits.[].concurrency": None,
    "tools.limits.[].per": None,
    "tools.limits.[].shared": None,
    "tools.limits.[].tools": None,
    "umask": "0027",
}
# All of these at once.
GLOBAL = {
    "drain_delay": "1ms", "drain_timeout": "5s", "hosts": ["other.example"], "limits.body_timeout": "20s", "limits.connections": 900,
    "limits.header_bytes": "20KiB", "limits.header_timeout": "20s", "limits.idle_timeout": "2m", "limits.json_depth": 32,
    "limits.processes": 300, "limits.sessions": 400, "limits.sessions_per_principal": 400, "log.access": True, "log.format": "json",
    "log.payloads": True, "origins": ["https://o.example"], "sessions.idle_timeout": "5m", "sessions.max_age": "1h", "sessions.persist": False,
    "sessions.reconnect_timeout": "0", "streams.json_grace": "50ms", "streams.keepalive": "5s", "streams.max_connection_age": "10m",
    "streams.replay_age": "2m", "streams.replay_bytes": "64KiB", "streams.replay_events": 100, "streams.response": "sse",
    "streams.retry": "2s", "streams.session_bytes": "2MiB", "streams.total_bytes": "32MiB",
}
# Why not here; where it is.
ELSEWHERE = {
    "c100": ["servers.NAME." + key for key in ("args", "command", "cwd")] + ["include", "log.level", "log.target", "audit.arguments", "audit.calls",
             "audit.required", "audit.to"],
    "c108": ["endpoints.NAME." + key for key in ("servers", "search", "path", "enabled", "audience", "clients", "scopes")],
    "c99": ["servers.NAME.card", "endpoints.NAME.card"],
    "c114": ["servers.NAME.auth." + key for key in ("grant", "issuer", "token_endpoint", "client_id", "client_secret", "auth_method",
                                                  "client_key", "client_key_id", "scopes", "resource", "audience", "ca",
                                                  "allow_private")],
    "c107": ["servers.NAME." + key for key in ("url", "headers", "ca", "certificate", "key", "proxy", "allow_private")],
    "c102, with tokens": ["servers.NAME." + key for key in ("algorithms", "audience", "clients", "hide", "scopes", "prompts.scopes", "resources.scopes",
                          "tools.scopes", "tools.challenge_in_result")] + ["public_url", "trusted_proxies"],
    "needs root or cgroups": ["servers.NAME." + key for key in ("user", "resources.cpu", "resources.memory", "resources.processes")],
    "a sandbox is another process; c42": ["servers.NAME.sandbox." + key for key in ("bind", "connect", "gateway", "mode", "read", "udp", "unix_sockets", "write")],
    "a message in transit would decide; c41": ["limits.message", "limits.response"],
}
WHOLE = {"admin.": "needs a restart; c100", "cluster.": "needs a restart; c117", "auth.": "c102", "roles.": "c102, c94", "listen.": "c101", "traces.": "c76"}

SECRET = "sk-0123456789 a​b"
TOOL = {"name": "echo", "description": SECRET, "inputSchema": {"type": "object", "required": ["text"]}}
CALL = {"name": "echo", "arguments": {"text": "hello"}}
SCRIPT = {"on": {"tools/list": [["result", {"tools": [TOOL, {"name": "do", "inputSchema": {"type": "object"}}]}]]}}


def known_keys(t):
    program = os.path.join(harness.BIN, "mcpgated")
    schema = json.loads(subprocess.run([program, "--dump", "schema"], stdout=subprocess.PIPE, check=True).stdout)
    found = []

    def walk(node, path):
        inner = [(path + [name], child) for name, child in node.get("properties", {}).items()]
        inner += [(path + [word], node[member]) for word, member in (("NAME", "additionalProperties"), ("[]", "items"))
                  if isinstance(node.get(member), dict) and "properties" in node[member]]
        for place, child in inner:
            walk(child, place)
        if not inner:
            found.append(".".join(path))
    walk(schema, [])
    return set(found)


@case(daemon=False, deadline=20)
def every_key_has_a_row(t):
    """product §4: what a reload does to each key is tried here, or it is said where."""
    keys = known_keys(t)
    rows = {"servers.NAME." + key for key in SERVERS} | set(GLOBAL) | {key for some in ELSEWHERE.values() for key in some}
    mine = {key for key in keys if not key.startswith(tuple(WHOLE) + ("defaults.",))}
    eq(sorted(mine - rows), [], "keys without a row")
    eq(sorted(rows - mine), [], "rows of no key")
    eq({key.replace("defaults.", "servers.NAME.") for key in keys if key.startswith("defaults.")} - keys, set(), "defaults are those of servers")


def put(config, key, value):
    names = key.split(".")
    for name in names[:-1]:
        config = config.setdefault(name, {})
    config[names[-1]] = value


def name_of(key):
    return "k-" + key.replace(".", "-").replace("_", "-")


def servers_with(keys, with_value):
    servers = {}
    for key in keys:
        value, base = SERVERS[key] if isinstance(SERVERS[key], tuple) else (SERVERS[key], {})
        server = dict({"script": SCRIPT, "isolation": "shared"}, **json.loads(json.dumps(base)))
        if server["isolation"] == "shared" and key != "isolation":
            server["pool"] = {"max": 1, "requests_per_process": 1}
        if with_value:
            put(server, key, value)
        servers[name_of(key)] = server
    return servers


def look(t, daemon, name, path):
    """What a new client of either era is told, and what becomes of its call."""
    s = mcp.Session(t, daemon, name, check=False, path=path)
    if s.started.response.status != 200:
        s.started.response.read()
        return s.started.response.status
    s.result = s.started.final(20)
    s.take_id()
    t.sessions.append(s)
    body = message("tools/list", {})
    modern = messages_of(begin_modern(t, name, body, fields(body), conn=t.conn(address=daemon.address)).response())[-1] if path is None else None
    listed = s.ask("tools/list")
    called = s.ask("tools/call", CALL)
    return [s.result["result"].get("instructions"), listed["result"]["tools"], modern and modern["result"]["tools"],
            called.get("error") or called["result"]["content"]]


class Work:
    """What goes on at one server while the configuration changes."""

    def __init__(self, t, name):
        self.session = t.session(name)
        self.stream = self.session.get()
        self.lost = t.sse(server=name)
        self.lost.close()
        self.open = t.sse(server=name)
        # It lasts over the reload.
        self.call = self.session.start_do(["progress", 1], ["sleep", harness.patience(1)], ["text", "ran"], token="a")
        self.is_running = "method" in self.call.next()  # else it is refused here
        self.queued = self.session.start("tools/call", CALL)

    def check(self, what, expected):
        """`expected`: what a new client finds now; None: the call that waits may have been refused before."""
        if self.is_running:
            eq(self.call.final(20 * harness.SLOW)["result"]["content"][0]["text"], "ran", what)
        queued = self.queued.final(20 * harness.SLOW)
        if isinstance(expected, list):
            eq(queued.get("error") or queued["result"]["content"], expected[-1], (what, "the call that waited"))
        tools = self.session.ask("tools/list")
        ok("result" in tools or "error" in tools, what, tools)
        ok(self.lost.again().response.status in (200, 404), what)
        ok("result" in self.open.ask("tools/list") or what[1] == "after", what)
        self.open.close()
        if self.open.last_id:
            ok(self.open.again().response.status in (200, 404), what)


def there_and_back(t, before, after, config=None):
    t.start(before)
    gateway = t.daemon.find_gateway()
    expected = {}
    for kind, servers in (("before", before), ("after", after)):
        fresh = t.start(servers, config if kind == "after" else None)
        expected[kind] = {name: look(t, fresh, name, server.get("path")) for name, server in servers.items()}
    for kind, servers in (("before", before), ("after", after), ("before", before)):
        eq(t.daemon.find_gateway(), gateway, "the gateway")
        for name, server in servers.items():
            eq(look(t, t.daemon, name, server.get("path")), expected[kind][name], (name, kind))
        works = {name: Work(t, name) for name in before if kind == "before" or (after[name].get("enabled", True) and "path" not in after[name])}
        reload(t, after if kind == "before" else before, (config if kind == "before" else None) or {})
        for name, work in works.items():
            work.check((name, kind), expected["after"][name] if kind == "before" else None)
    eq(t.daemon.find_gateway(), gateway, "the gateway")


@case(daemon=False, deadline=60)
def keys_of_the_daemon(t):
    """product §4: those that are no server's, all at once."""
    config = {}
    for key, value in GLOBAL.items():
        put(config, key, value)
    servers = {"k-" + kind: {"script": SCRIPT, "isolation": kind} for kind in ("session", "principal", "shared")}
    there_and_back(t, servers, servers, config)


def groups():
    keys = [key for key in sorted(SERVERS) if SERVERS[key] is not None]
    return [keys[i:i + 10] for i in range(0, len(keys), 10)]


def register(number, keys):
    def keys_of_servers(t):
        there_and_back(t, servers_with(keys, False), servers_with(keys, True))
    keys_of_servers.__name__ = "keys_of_servers_%d" % number
    keys_of_servers.__doc__ = "product §4: %s." % ", ".join("servers.NAME." + key for key in keys)
    case(daemon=False, deadline=60)(keys_of_servers)


for number, keys in enumerate(groups(), 1):
    register(number, keys)
