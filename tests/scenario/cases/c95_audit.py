# SPDX-License-Identifier: Apache-2.0
"""
The audit: each call that ends and each request that is refused has one record, by every way in, held against what the
server received; nothing secret is in it; and what becomes of calls and records when they cannot be written.
"""
import collections
import hashlib
import json
import os
import signal
import socket

import mcp
from c65_doors import ANSWER, TABLE, WAYS, Way, each_way
from c71_ctl import ctl
from c80_stateless import fields as modern_fields, meta
from harness import case, eq, ok, wait_for

# What the table of c65 refuses, and what the record of it says: a reason, and the rule.
MAIN = "servers.main."
REASONS = {
    "no token": ("no_token", None), "wrong token": ("invalid_token", None), "expired token": ("invalid_token", None),
    "token expires while its body comes": ("invalid_token", None), "denied token": ("invalid_token", "auth.deny"),
    "token denied while its body comes": ("invalid_token", "auth.deny"), "token for another server": ("invalid_token", None),
    "missing base scope": ("insufficient_scope", MAIN + "scopes"), "missing tool scope": ("insufficient_scope", MAIN + "tools.scopes"),
    "tool with a NUL behind its name": ("bad_name", MAIN + "tools.scopes"),
    "tool in an array of params": ("bad_name", MAIN + "tools.scopes"),
    "denied tool": ("not_permitted", MAIN + "tools.deny[0]"),
    "forbidden arguments": ("bad_arguments", MAIN + "tools.arguments.forbidden_keys"),
    "definition not approved": ("not_approved", "servers.pinned.pin"),
    "step-up in the result": ("insufficient_scope", "servers.stepup.tools.scopes"),
    "foreign session": ("unknown_session", None), "session of another server": ("unknown_session", None),
    "unknown session": ("unknown_session", None), "no session named": ("no_session", None),
    "before initialize": ("not_initialized", None), "initialize again": ("bad_initialize", None),
    "initialize too large": ("bad_initialize", None), "initialize incomplete": ("bad_initialize", None),
    "malformed envelope": ("malformed", None), "batch of another revision": ("bad_batch", None),
    "unknown revision": ("unsupported_version", None), "claim of the modern era": ("unsupported_method", None),
    "too many calls in flight": ("over_limit", None), "another tool in the head": ("not_modern", None),
    "draining": ("draining", None),
}
# The head of a modern request has the name, too: this one is no HTTP, and refused before the door.
NO_HTTP = ("tool with a NUL behind its name", "stateless")
AT_THE_HEAD = [reason for reason in REASONS if "token" in reason] + ["missing base scope"]  # its messages are not read

KNOWN_CALLER = ["denied token", "missing base scope"]  # whose tokens are valid
NO_CALLER = ["no token", "wrong token"]


def canonical(value):
    """As jsonrpc/canonical.h says, of texts, lists and maps of ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(arguments):
    return hashlib.sha256(canonical(arguments).encode()).hexdigest()


class Records:
    """The file of an audit, every line of it one object."""

    def __init__(self, path):
        self.path, self.seen = path, 0

    def all(self, path=None):
        with open(path or self.path, "rb") as f:
            text = f.read()
        lines = text[:text.rfind(b"\n") + 1].splitlines()
        ok(all(len(line) < 4096 and min(line, default=99) >= 32 for line in lines), "a line is too long, or not one line")
        records = [json.loads(line) for line in lines]
        for record in records:
            eq(record["v"], 1, "version")
        return records

    def fresh(self):
        """Those since the last look."""
        found = self.all()[self.seen:]
        self.seen += len(found)
        return found

    def wait(self, event, count=1, what=""):
        """So many more of an event; no more may have come."""
        found = []

        def is_there():
            found.extend(r for r in self.fresh() if r["event"] == event)
            return len(found) >= count
        wait_for(is_there, 5, "%d records %s %s" % (count, event, what))
        eq(len(found), count, "records %s: %r" % (event, found))
        return found


def expected(reason, way):
    why, rule = REASONS[reason]
    if why == "bad_initialize" and way.is_batch:
        why = "malformed"
    if way.front == "stateless" and reason in ("unknown revision", "tool in an array of params"):
        return "not_modern", None
    return why, rule


def refusal(way, records, reason):
    """One record for each request of what was refused, as far as it was read."""
    why, rule = expected(reason, way)
    is_read = reason not in AT_THE_HEAD and why != "malformed"
    count = 2 if way.is_batch and is_read else 1
    for record in records.wait("refusal", count, reason):
        eq((record["verdict"], record["reason"], record.get("rule")), ("refused", why, rule), reason)
        front = "streamable" if (way.front, reason) == ("stateless", "malformed envelope") else way.front  # its head claims no era
        eq(record["front"], "operator" if front == "admin" else front, reason)
        eq(record["address"], "local" if way.front == "admin" else "127.0.0.1", reason)
        ok("method" in record or not is_read, reason, record)
        if reason in KNOWN_CALLER + NO_CALLER:
            eq("subject" in record, reason in KNOWN_CALLER, "its name: " + reason)
        if way.is_batch and is_read:
            eq(record["batch"], 2, reason)
    return record


def every_refusal(t, name):
    records = Records(os.path.join(t.directory(), "audit"))
    way = Way(t, name, audit={"to": records.path})
    tokens = [way.good]
    for reason, how, *by_way in TABLE:
        if not ANSWER.match(by_way[WAYS.index(name)]) or (reason, name) == NO_HTTP:
            continue
        way.marker = "refused: " + reason
        records.fresh()
        how(way)
        last = refusal(way, records, reason)
        if reason == "denied tool":
            eq((last["method"], last["tool"], last["server"]), ("tools/call", "forbidden", "main"))
            eq(last.get("subject"), None if way.front == "admin" else "alice")
        if reason != "draining":
            way.permit()
    t.daemon.wait()
    is_of_calls = collections.Counter(
        (m["params"]["name"], digest(m["params"].get("arguments", {}))) for server in way.servers
        for pid, _ in t.daemon.records_of(server) for m in t.daemon.messages(pid) if m.get("method") == "tools/call")
    ends = [r for r in records.all() if r["event"] == "end" and r["method"] == "tools/call"
            and (r["server"], r["tool"]) != ("pinned", "echo")]  # what is found out behind the door
    ok(len(ends) > 20, "records", len(ends))
    found = collections.Counter((r["tool"], r["arguments_sha256"]) for r in ends)
    eq(found - is_of_calls, collections.Counter(), "records of calls that the servers did not get")
    eq(is_of_calls - found, collections.Counter(), "calls without a record")  # also of 4096 that end at once
    eq({r["event"] for r in records.all()}, {"end", "refusal"}, "events")
    with open(records.path) as f:
        text = f.read()
    for secret in tokens + ["refused:", "permitted as"] + [value for key, value in way.home.fields]:
        ok(secret not in text, "a secret is in the audit", secret)
    if way.front not in ("stateless", "http_sse"):
        ok(way.home.fields[0][1][:8] in text, "the beginning of the session's id")


each_way(every_refusal, "by_", "SEC-63 product §4: by way of %s each refusal and each call has its record, and none has a secret.", deadline=90)


def audited(t, servers=None, **options):
    """A daemon with static tokens off, and its records."""
    records = Records(os.path.join(t.directory(), "audit"))
    t.start(servers or {"main": {}}, {"audit": dict({"to": records.path}, **options)})
    return records


@case(daemon=False)
def how_calls_end(t):
    """SEC-63: a result, an error, a cancellation, a process that dies, each with its bytes and its time."""
    records = audited(t)
    s = t.session()
    eq(records.wait("end")[0]["session"], s.id[:8], "of initialize")
    s.echo("x")
    record = records.wait("end")[0]
    eq([record[k] for k in ("verdict", "front", "server", "method", "tool", "revision", "session")],
       ["allowed", "streamable", "main", "tools/call", "echo", s.version, s.id[:8]], record)
    ok(record["bytes_in"] > 60 and record["bytes_out"] > 30 and "reason" not in record, record)
    s.ask("no/such")
    record = records.wait("end")[0]
    eq((record["verdict"], record["reason"], record["method"]), ("failed", "error_answer", "no/such"))
    e = s.start_do(["wait_cancel"])
    wait_for(lambda: b"wait_cancel" in t.daemon.record(t.daemon.children("main")[0]), 3, "the call")
    s.cancel(e.id)
    eq(records.wait("end")[0]["verdict"], "cancelled")
    s.do(["exit", 1])
    record = records.wait("end")[0]
    eq((record["verdict"], record["reason"]), ("failed", "child_exited"))
    ok("bytes_out" not in record, record)
    trace = "0af7651916cd43dd8448eb211c80319c"
    s.ask("tools/call", {"name": "echo", "arguments": {"text": "t"}, "_meta": {"traceparent": "00-%s-b7ad6b7169203331-01" % trace}})
    eq(records.wait("end")[0]["trace_id"], trace)
    s.ask("ping")
    s.delete()
    t.session()
    eq([r["method"] for r in records.wait("end")], ["initialize"], "a ping is no call, nor is DELETE: the next record is that of another session")


@case(daemon=False)
def sessions_that_never_began(t):
    """SEC-63: who finds no room for a session has a record as well, which names no session; the keeper takes it for one."""
    records = audited(t, {"main": {"script": {}, "pool": {"max": 1, "reclaim": "never"}}})
    t.session()
    ok("error" in t.session(check=False).started.final(15), "no room")
    first, second = records.wait("end", 2)
    eq(("session" in first, "session" in second, second["verdict"], second["reason"]), (True, False, "failed", "over_limit"))
    ok(not t.daemon.log("audit_output"), "what was no record")


@case(daemon=False)
def who_leaves_has_cancelled(t):
    """SEC-63 CXL-04: a request of 2026-07-28 whose connection is closed."""
    records = audited(t)
    body = mcp.encode(mcp.request(1, "tools/call", dict({"name": "do", "arguments": {"steps": [["wait_cancel"]]}}, _meta=meta())))
    conn = t.conn()
    conn.send(conn.head("POST", "/main/mcp", modern_fields(json.loads(body)), len(body)) + body)
    wait_for(lambda: any(b"wait_cancel" in data for _, data in t.daemon.records_of("main")), 5, "the call")
    conn.close()
    record = records.wait("end")[0]
    eq([record[k] for k in ("verdict", "front", "revision", "tool")], ["cancelled", "stateless", "2026-07-28", "do"], record)


@case(daemon=False)
def notifications_that_are_calls(t):
    """SEC-63: a server may take a notification for a call: it has a record, too, and without one that is required it is not passed on."""
    for required in (False, True):
        records = Records(os.path.join(t.directory(), "audit"))
        d = t.start({"main": {}}, {"audit": {"to": records.path, "required": required}})
        s = t.session(daemon=d)
        records.wait("end")
        for method in ("tools/call", "Tools/Call"):
            s.post({"jsonrpc": "2.0", "method": method, "params": {"name": "echo", "arguments": {"text": method}}})
            record = records.wait("end")[0]
            eq([record[k] for k in ("verdict", "reason", "method", "tool", "session", "arguments_sha256")],
               ["allowed", "notification", method, "echo", s.id[:8], digest({"text": method})])
        s.post({"jsonrpc": "2.0", "method": "notifications/other"})
        s.echo("x")
        eq([r["tool"] for r in records.wait("end")], ["echo"], "another notification is none")
        arrived = [m for pid, _ in d.records_of("main") for m in d.messages(pid) if m.get("method", "").lower() == "tools/call"]
        eq(len(arrived), 3, "what the server got")


@case(daemon=False)
def notifications_that_are_refused(t):
    """SEC-63: also what asks for no answer has a record when it is refused."""
    records = audited(t)
    s = t.session()
    records.wait("end")
    mine, s.id = s.id, "A" * 32
    eq(s.post({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}).status, 404)
    s.id = mine
    record = records.wait("refusal")[0]
    eq((record["reason"], record["method"]), ("unknown_session", "notifications/progress"))


@case(daemon=False)
def names_do_not_inject(t):
    """SEC-63 REL-48: names of tools and callers that look like records, or have line breaks, stay within one text."""
    records = audited(t)
    s = t.session()
    records.wait("end")
    names = ["a\n{\"v\":1,\"event\":\"end\"}", "\",\"verdict\":\"allowed\",\"x\":\"", "\u2028\u202e\u200b\r\x00\x1b[2J", "\\u000a", "\U000e0041", "x" * 5000]
    for name in names:
        s.ask("tools/call", {"name": name, "arguments": {}})
        record = records.wait("end")[0]
        if len(name) < 300:
            eq(record["tool"], name)
        else:
            eq(record["tool"], name[:256] + "...")
        s.ask("resources/read", {"uri": name})
        ok(records.wait("end")[0]["resource"][:200] == name[:200], "resource", name)
    with open(records.path, "rb") as f:
        text = f.read()
    eq([c for c in (b"\x1b", b"\xe2\x80\xae", b"\xf3\xa0") if c in text], [], "raw characters that are not seen")


@case(daemon=False)
def arguments_and_kinds(t):
    """SEC-63 product §4: audit.arguments shows them up to a bound; audit.calls: refused leaves calls out."""
    records = audited(t, arguments=True)
    s = t.session()
    records.wait("end")
    s.echo("shown")
    record = records.wait("end")[0]
    eq((json.loads(record["arguments"]), "arguments_truncated" in record), ({"text": "shown"}, False))
    s.echo("x" * 5000)
    record = records.wait("end")[0]
    ok(record["arguments_truncated"] is True and len(record["arguments"]) < 1100, record)
    few = Records(os.path.join(t.directory(), "audit"))
    d = t.start({"main": {"script": {}, "tools": {"deny": ["echo"]}}}, {"audit": {"to": few.path, "calls": "refused"}})
    s = t.session(daemon=d)
    s.do_text(["text", "x"])
    s.ask("tools/call", {"name": "echo", "arguments": {"text": "marked"}})
    few.wait("refusal")
    eq([(r["event"], r["tool"]) for r in few.all()], [("refusal", "echo")], "records")
    ok("marked" not in open(few.path).read(), "arguments")


@case(daemon=False)
def hup_goes_on_in_a_new_file(t):
    """SEC-63 REL-40: after the file was renamed SIGHUP goes on in a new one; no record is lost, none is twice."""
    records = audited(t)
    s = t.session()
    s.echo("before")
    records.wait("end", 2)
    os.rename(records.path, records.path + ".1")
    t.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(records.path), 3, "the new file")
    records.seen = 0
    s.echo("after")
    records.wait("end")
    eq([r["arguments_sha256"] for r in records.all(records.path + ".1")[1:] + records.all()],
       [digest({"text": "before"}), digest({"text": "after"})], "records")
    eq(os.stat(records.path).st_mode & 0o777, 0o600, "rights")


@case(daemon=False)
def the_next_gateway_goes_on(t):
    """SEC-63 REL-43: records outlive a gateway that fails, and the next one writes on."""
    records = audited(t)
    t.expect_error_log("gateway_exit")
    s = t.session()
    s.echo("before")
    records.wait("end", 2)
    before = t.daemon.gateway
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: t.daemon.find_gateway() not in (None, before), 5, "the next gateway")
    t.sessions.remove(s)
    t.session().echo("after")
    records.wait("end", 2)


def flood(s, rounds):
    """Batches of calls that are refused: a record each."""
    batch = [mcp.request(i, "tools/call", {"name": "denied" + "x" * 200, "arguments": {}}) for i in range(64)]
    for _ in range(rounds):
        eq(s.post(batch).status, 400)


def lost(t):
    conn = t.conn(address=t.daemon.admin)
    body = conn.request("GET", "/metrics", []).read().decode()
    conn.close()
    return next((int(l.split()[1]) for l in body.splitlines() if l.startswith("mcpgated_audit_lost_total ")), 0)


DENYING = {"main": {"script": {}, "tools": {"deny": ["denied*"]}}}


@case(daemon=False, deadline=30)
def a_full_disk_stops_nothing(t):
    """SEC-63 REL-47: where nothing can be written calls go on; what does not fit into the queue is lost, counted and logged."""
    t.start(DENYING, {"audit": {"to": "/dev/full"}})
    t.expect_error_log("audit_failed", "audit_lost")
    s = t.session("main", "2025-03-26")
    t.daemon.wait_log("audit_failed", "to=/dev/full")
    eq(s.echo("x"), "x")
    eq(lost(t), 0, "what waits is not lost")
    wait_for(lambda: "audit to /dev/full fails, " in ctl(t, "status")[0], 5, "what the operator sees")
    flood(s, 60)
    ok(lost(t) > 0, "records are lost and counted")
    eq(s.echo("y"), "y")
    t.daemon.wait_log("audit_lost")
    eq(len(t.daemon.log("audit_lost")), 1, "said once")
    out, _ = ctl(t, "status")
    ok("\naudit to /dev/full fails, " in out and ": No space left on device\n" in out, out)
    audit = json.loads(ctl(t, "status", "--json")[0])["audit"]
    eq((audit["works"], audit["lost"], audit["last_error"]), (False, lost(t), "No space left on device"))


def listen(path):
    reader = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader.bind(path)
    reader.settimeout(0.2)
    return reader


def read_all(reader, until):
    """Records from a socket until one is of this kind."""
    records = []

    def is_there():
        try:
            while True:
                records.append(json.loads(reader.recv(65536)))
        except TimeoutError:
            return any(until(r) for r in records)
    wait_for(is_there, 10, "the record")
    return records


def slow_reader(t, required):
    path = os.path.join(t.directory(), "socket")
    reader = listen(path)
    t.start(DENYING, {"audit": {"to": "unix:" + path, "required": required}})
    t.expect_error_log("audit_lost")
    s = t.session("main", "2025-03-26")
    flood(s, 70)
    missing = lost(t)
    ok(missing > 0, "records are lost and counted")
    eq(s.echo("x"), "x")
    missing = lost(t)
    records = read_all(reader, lambda r: r.get("reason") == "not_permitted")
    s.echo("room again")
    records += read_all(reader, lambda r: r.get("arguments_sha256") == digest({"text": "room again"}))
    eq(sum(r["lines"] for r in records if r["event"] == "lost"), missing, "what is missing")
    eq(len([r for r in records if r["event"] == "end" and r.get("arguments_sha256") == digest({"text": "x"})]), 1, "the call during the flood")
    eq(lost(t), missing, "counted")
    reader.close()


@case(daemon=False, deadline=30)
def a_slow_reader_stops_nothing(t):
    """SEC-63: a socket that is not read; what waits comes when it is, then a record says how many are missing. No refusals push out calls."""
    slow_reader(t, False)


@case(daemon=False, deadline=30)
def refusals_do_not_stop_calls_that_need_records(t):
    """SEC-63: the same with audit.required: a flood of refusals leaves calls the room that they need."""
    slow_reader(t, True)


@case(daemon=False, deadline=30)
def required_records_or_no_call(t):
    """SEC-63: audit.required: what cannot be recorded is refused, on every front, and reaches no server; then it goes on."""
    path = os.path.join(t.directory(), "socket")
    reader = listen(path)
    t.start({"main": {}}, {"audit": {"to": "unix:" + path, "required": True}})
    t.expect_error_log("audit_failed")
    s, batching, sse = t.session(), t.session("main", "2025-03-26"), t.sse()
    s.echo("recorded")
    records = read_all(reader, lambda r: r["event"] == "end" and r.get("tool") == "echo")
    eq([r["event"] for r in records if r["method"] != "initialize"], ["begin", "end"], "records of a call")
    eq([r["event"] for r in records].count("begin"), 4, "each call begins")
    reader.close()
    os.unlink(path)
    s.echo("noticed")
    t.daemon.wait_log("audit_failed", "to=unix:" + path)
    modern = mcp.request(9, "tools/call", {"name": "echo", "arguments": {"text": "unrecorded"}, "_meta": meta()})
    call = mcp.request(8, "tools/call", {"name": "echo", "arguments": {"text": "unrecorded"}})

    def stateless():
        conn = t.conn()
        body = mcp.encode(modern)
        conn.send(conn.head("POST", "/main/mcp", modern_fields(modern), len(body)) + body)
        response = conn.response()
        answer = json.loads(response.read())
        conn.close()
        return response, answer
    wait_for(lambda: s.post(mcp.request(7, "tools/list", {})).status == 503, 5, "the gateway is told")
    ok(" fails, and calls are refused (audit.required), " in ctl(t, "status")[0], "what the operator sees")
    s.post({"jsonrpc": "2.0", "method": "tools/call", "params": call["params"]})
    for status, response, answer in [(lambda e: (e.status, e.response, e.answer))(s.post(call)),
                                     (lambda r: (r[0].status, r[0], r[1]))(stateless())]:
        eq((status, answer["error"]["code"], answer["error"]["data"]["reason"]), (503, -32603, "unrecorded"))
        ok(response.header("retry-after"), "Retry-After")
    answer = batching.post([call, mcp.request(7, "ping")])
    eq(answer.status, 200)
    told = {m["id"]: m for m in (answer.answer if isinstance(answer.answer, list) else answer.messages)}
    eq((told[8]["error"]["data"]["reason"], "result" in told[7]), ("unrecorded", True), "in a batch")
    eq(sse.ask("tools/call", {"name": "echo", "arguments": {"text": "unrecorded"}})["error"]["data"]["reason"], "unrecorded")
    refused = t.session(check=False)
    eq(refused.started.final()["error"]["data"]["reason"], "unrecorded", "initialize")
    reader = listen(path)
    t.daemon.wait_log("audit_recovered")
    wait_for(lambda: s.post(mcp.request(7, "tools/list", {})).status == 200, 5, "the gateway is told")
    eq(s.echo("recorded again"), "recorded again")
    out, _ = ctl(t, "status")
    ok("\naudit to unix:%s works, " % path in out and "; it failed before: " in out, out)
    records = read_all(reader, lambda r: r["event"] == "end" and r.get("arguments_sha256") == digest({"text": "recorded again"}))
    unrecorded = [r for r in records if r.get("reason") == "unrecorded"]
    ok(len(unrecorded) >= 5 and {r["verdict"] for r in unrecorded} == {"refused"}, "what waited says so", unrecorded)
    arrived = [m for pid, _ in t.daemon.records_of("main") for m in t.daemon.messages(pid)]
    ok("unrecorded" not in json.dumps(arrived) and "recorded again" in json.dumps(arrived), "what reached the server")
    reader.close()


@case(daemon=False)
def no_file_no_start(t):
    """SEC-63: a file that cannot be opened, or is a link, is told at the start."""
    directory = t.directory()
    os.symlink(os.path.join(directory, "target"), os.path.join(directory, "link"))
    for path in (os.path.join(directory, "no", "audit"), os.path.join(directory, "link")):
        d = t.start({"main": {}}, {"audit": {"to": path}}, wait=False)
        d.forgiven = True
        eq(d.wait(), 1, "status of exit")
        wait_for(lambda: any("cannot open the audit file" in line for line in d.lines), 2, "why")
        ok(not os.path.exists(os.path.join(directory, "target")), "a link was followed")


def line_of(t, *marks):
    """Where the file of the daemon has the first of these, and behind it the next."""
    with open(t.daemon.file) as f:
        lines = f.read().split("\n")
    number = 0
    for mark in marks:
        number = next(i for i, line in enumerate(lines) if i >= number and mark in line)
    return "%s:%d" % (t.daemon.file[-96:], number + 1)


@case(daemon=False)
def rules_have_their_line(t):
    """SEC-63: a record names the file and the line of the rule that refused, and so does mcpgatectl can; what only defaults say stands there."""
    records = Records(os.path.join(t.directory(), "audit"))
    schema = [["result", {"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}]]
    servers = {"main": {"script": {}, "tools": {"deny": ["a_*", "b_*"], "arguments": {"deny_patterns": {"*": ["no", "never"]}}}},
               "strict": {"script": {"on": {"tools/list": schema}}, "tools": {"arguments": {"schema": "check"}, "deny": ["c_*"]}},
               "plain": {"script": {}}}
    entries = [{"name": "one", "sha256": hashlib.sha256(b"one").hexdigest(), "roles": ["dev"]},
               {"name": "two", "sha256": hashlib.sha256(b"two").hexdigest(), "tools": {"main": ["echo"], "strict": ["*"]}}]
    t.start(servers, {"audit": {"to": records.path}, "auth": {"mode": "token", "tokens": entries},
                      "defaults": {"tools": {"deny": ["d_*"]}}, "roles": {"dev": {"allow": {"*": ["*"]}, "deny": {"plain": ["e_*"]}}}})
    for token, server, tool, text, rule, marks in (
            ("one", "main", "b_x", "", "servers.main.tools.deny[1]", ["  main:", "deny:"]),
            ("one", "strict", "c_x", "", "servers.strict.tools.deny[0]", ["  strict:", "deny:"]),
            ("one", "plain", "D_x", "", "servers.plain.tools.deny[0]", ["defaults:", "deny:"]),
            ("one", "plain", "e_x", "", "roles.dev.deny.plain[0]", ["roles:", "deny:", "plain:"]),
            ("two", "main", "other", "", "auth.tokens[1].tools.main", ['"two"', "tools:", "main:"]),
            ("two", "main", "echo", "never", "servers.main.tools.arguments.deny_patterns.*[1]", ["  main:", "deny_patterns:", '"*":']),
            ("one", "strict", "echo", 7, "servers.strict.tools.arguments.schema", ["  strict:", "schema:"])):
        s = t.session(server, token=token)
        records.fresh()
        ok("error" in s.ask("tools/call", {"name": tool, "arguments": {"text": text}}), "refused", rule)
        record = wait_for(lambda: next((r for r in records.fresh() if r.get("tool") == tool), None), 5, rule)
        eq([record.get(k) for k in ("verdict", "rule", "rule_at")], ["refused", rule, line_of(t, *marks)], record)
        if not text:
            out = ctl(t, "can", "--token", token, server, tool, status=1)[0]
            ok("%s\n" % rule in out and "%s\n" % line_of(t, *marks) in out, rule, out)


@case(daemon=False)
def limits_are_named(t):
    """SEC-63 REL-46: a call too many has the rule that refused it: of the server, or of some of its tools."""
    records = audited(t, {"slow": {"script": {}, "rate": {"calls": 1, "per": "1d"}}, "narrow": {"script": {}, "concurrency": 1},
                          "main": {"script": {}, "tools": {"limits": [{"tools": ["echo"], "calls": 1, "per": "1d"}]}}})
    running = None
    for server, reason, rule in (("main", "over_rate", "tools.limits[0]"), ("slow", "over_rate", "rate"),
                                 ("narrow", "over_concurrency", "concurrency")):
        s = t.session(server)
        if server == "narrow":
            running = s.start_do(["wait_cancel"])
            wait_for(lambda: any(b"wait_cancel" in data for _, data in t.daemon.records_of("narrow")), 3, "the call")
        else:
            s.echo("within")
        ok("error" in s.ask("tools/call", {"name": "echo", "arguments": {"text": "beyond"}}), "one too many")
        record = records.wait("refusal", 1, server)[0]
        eq((record["reason"], record["rule"]), (reason, "servers.%s.%s" % (server, rule)), server)
    s.cancel(running.id)
