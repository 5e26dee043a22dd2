# SPDX-License-Identifier: Apache-2.0
"""
What means the same is read the same: odd spellings of clients and servers, on every leg, before every front, with every
isolation and both eras of servers. A row says what is written; what comes out is what the plain spelling gives.
requirements RPC-08, BACK-FRAME-03 to -05, REL-23, UTIL-PAGE-01.
"""
import json
import time

import mcp
from c80_stateless import fields, message, messages_of, meta
from harness import case, eq, ok, within

LEGACY, MODERN = "legacy", "modern"
ERAS = (LEGACY, MODERN)
ISOLATIONS = ("session", "principal", "shared")
REFUSED = '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such notification"}}'
# PHP writes [] for empty objects; many answer notifications; some write empty cursors where there are none.
SCRIPT = {"caps": {"tools": [], "resources": []}, "initialized": [["line", REFUSED]]}
LIST = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("do", "echo")], "nextCursor": ""}
LISTS = {LEGACY: LIST, MODERN: dict(LIST, ttlMs=0, cacheScope="private")}
SERVERS = {"%s_%s" % (era, isolation): {"script": dict(SCRIPT, era=era, on={"tools/list": [["result", LISTS[era]]]}), "era": era,
                                       "isolation": isolation, "request_timeout": "5s"}
           for era in ERAS for isolation in ISOLATIONS}
CONFIG = {"defaults": {"pool": {"idle_timeout": "1500ms"}}}

# ---- what clients write -----------------------------------------------------
# Each is a call of echo; META stands for the members that 2026-07-28 wants in _meta.
CLIENT = {
    "plain": '{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{META}}}',
    "slashes": r'{"jsonrpc":"2.0","id":ID,"method":"tools\/call","params":{"name":"echo","arguments":{"text":"x"},'
               r'"_meta":{SLASHED"a.b\/c":"d\/e"}}}',
    "names": r'{"json\u0072pc":"2.0","\u0069d":ID,"meth\u006Fd":"tools/call","para\u006ds":{"n\u0061me":"echo",'
             r'"argument\u0073":{"te\u0078t":"x"},"\u005fmeta":{META}}}',
    "strings": r'{"jsonrpc":"2.0","id":ID,"method":"tools\u002fcall","params":{"name":"\u0065cho","arguments":{"text":"\u0078"},"_meta":{META}}}',
    "no capabilities": '{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{EMPTY}}}',
}
# The id of an answer to a server.
ANSWERS = {"plain": "%d", "text": '"%d"', "fraction": "%d.0", "exponent": "%de0", "escape": None}

# ---- what servers write -----------------------------------------------------
# Each is the answer to a call; the plain one has the text "fine". RT stands for what a modern result says of itself.
PLAIN = '{"jsonrpc":"2.0","id":@ID@,"result":{RT"content":[{"type":"text","text":"fine"}]}}'
SERVER = {
    "plain": [["line", PLAIN]],
    "id as text": [["line", PLAIN.replace("@ID@", '"@ID@"')]],
    "id as float": [["line", PLAIN.replace("@ID@", "@ID@.0")]],
    "id with exponent": [["line", PLAIN.replace("@ID@", "@ID@e0")]],
    "names": [["line", PLAIN.replace('"id"', r'"\u0069d"').replace('"content"', r'"conten\u0074"')]],
    "slashes": [["line", PLAIN.replace('"content"', r'"_meta":{"a.b\/c":1},"content"')]],
    "text before": [["write", "50% "], ["line", PLAIN]],
    "text before another order": [["write", "{50%} "], ["line", '{ "id":@ID@,%s,"jsonrpc":"2.0"}' % PLAIN.split(",", 2)[2][:-1]]],
    "empty members": [["line", PLAIN.replace('"result"', '"method":"","params":null,"error":null,"result"')]],
    "lines of a log": [["line", '{"level":"info","id":@ID@,"result":"started"}'], ["line", '{"id":@ID@,"error":"x"}'], ["line", PLAIN]],
    "not UTF-8": [["write", PLAIN.split("fine")[0]], ["hex", "fffe"], ["line", "fine" + PLAIN.split("fine")[1]]],
    "NaN": [["line", PLAIN.replace('"content"', '"x":NaN,"content"')]],
    "nothing but an id": [["line", '{"jsonrpc":"2.0","id":@ID@}']],
    "both": [["line", PLAIN.replace('"result"', '"error":{"code":1,"message":"x"},"result"')]],
}
GIVES = {"not UTF-8": "\ufffd\ufffdfine", "NaN": -32603, "nothing but an id": -32603, "both": -32603}
# What a legacy server asks during a call, and the id in its answer.
ASKS = {
    "plain": ('{"jsonrpc":"2.0","id":1,"method":"roots/list"}', 1),
    "slashes": (r'{"jsonrpc":"2.0","id":2,"method":"roots\/list"}', 2),
    "id as float": ('{"jsonrpc":"2.0","id":3.0,"method":"roots/list"}', 3.0),
    "empty members": ('{"jsonrpc":"2.0","id":4,"method":"roots/list","params":[],"result":null,"error":null}', 4),
}
HANDSHAKE = '{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}}'
HANDSHAKES = {
    "id as float": HANDSHAKE.replace("@ID@", "@ID@.0"),
    "id as text": HANDSHAKE.replace("@ID@", '"@ID@"'),
    "names": HANDSHAKE.replace('"protocolVersion"', r'"protocol\u0056ersion"').replace('"2.0"', r'"2.0"'),
    "text before": "ready: " + HANDSHAKE,
    "empty members": HANDSHAKE.replace('{"tools":{}}', '{"tools":[]}').replace('"result"', '"method":null,"error":null,"result"'),
}


# ---- the fronts -------------------------------------------------------------

class Streamable:
    caps = {"roots": {}}

    def __init__(self, t, server, version):
        self.session = t.session(server, version, self.caps)
        self.do, self.ask = self.session.do, self.session.ask

    def raw(self, text):
        return self.session.post(text.replace("ID", "5")).answer

    def ask_back(self, steps, spelling):
        call = self.session.start_do(*steps)
        question = call.next()
        eq(question["method"], "roots/list")
        eq(self.session.post(answer(question["id"], spelling)).status, 202, spelling)
        return call.final()


class HttpSse:
    def __init__(self, t, server, _):
        self.client = t.sse(server, caps=Streamable.caps)
        self.do, self.ask = self.client.do, self.client.ask

    def raw(self, text):
        self.client.send(text.replace("ID", "5"))
        return self.client.wait_answer(5)

    def ask_back(self, steps, spelling):
        call = self.client.start_do(*steps)
        question = self.client.next()
        eq(question["method"], "roots/list")
        self.client.send(answer(question["id"], spelling))
        return self.client.wait_answer(call)


class Stateless:
    ask_back = None

    def __init__(self, t, server, _):
        self.t, self.path = t, "/%s/mcp" % server

    def post(self, text, body):
        conn = self.t.conn()
        conn.send(conn.head("POST", self.path, fields(body), len(text.encode())) + text.encode())
        found = messages_of(conn.response())[-1]
        conn.close()
        return found

    def raw(self, text):
        return self.post(text.replace("ID", "5"), message("tools/call", {"name": "echo"}))

    def ask(self, method, params=None):
        body = message(method, params)
        return self.post(json.dumps(body), body)

    def do(self, *steps):
        return self.ask("tools/call", {"name": "do", "arguments": {"steps": list(steps)}})


FRONTS = {"2025-03-26": (Streamable, mcp.B), "2025-06-18": (Streamable, mcp.C), "2025-11-25": (Streamable, mcp.D),
          "HTTP+SSE": (HttpSse, None), "2026-07-28": (Stateless, None)}


def answer(request_id, spelling):
    lexeme = ANSWERS[spelling] % request_id if spelling != "escape" else '"\\u00%02x%s"' % (0x30 + int(str(request_id)[0]), str(request_id)[1:])
    return '{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}' % lexeme


def written(text, front):
    members = json.dumps(meta())[1:-1] if front == "2026-07-28" else ""
    text = text.replace("SLASHED", members.replace("/", "\\/") + ("," if members else ""))
    return text.replace("META", members).replace("EMPTY", members.replace("{}", "[]"))


def of_era(steps, era):
    return [[step[0], step[1].replace("RT", '"resultType":"complete",' if era == MODERN else "")] for step in steps]


# ---- the table --------------------------------------------------------------

def text_of(found, row):
    ok("result" in found, row, found)
    return found["result"]["content"][0]["text"]


def of_clients(front, name, row):
    for spelling, text in CLIENT.items():
        eq(text_of(front.raw(written(text, name)), row + spelling), "x", row + spelling)


def of_servers(front, era, row):
    for spelling, steps in SERVER.items():
        wanted = GIVES.get(spelling, "fine")
        started = time.monotonic()
        found = front.do(*of_era(steps, era))
        if isinstance(wanted, int):
            eq(found.get("error", {}).get("code"), wanted, (row + spelling, found))
        else:
            eq(text_of(found, row + spelling), wanted, row + spelling)
        within(started, 3)


def of_questions(front, row):
    for spelling, (text, server_id) in ASKS.items():
        found = front.ask_back([["line", text], ["wait", server_id], ["asked"]], "plain")
        eq(json.loads(text_of(found, row)), [{"jsonrpc": "2.0", "id": server_id, "result": {"roots": []}}], row + spelling)
    for server_id, spelling in enumerate(ANSWERS, 5):
        found = front.ask_back([["ask", server_id, "roots/list"], ["asked"]], spelling)
        eq(json.loads(text_of(found, row))[0]["result"], {"roots": []}, row + spelling)


def of_lists(front, row):
    found = front.ask("tools/list")["result"]
    eq([tool["name"] for tool in found["tools"]], ["do", "echo"], row)
    ok(not found.get("nextCursor"), "a cursor without end", row, found)


def table(t, era, isolation):
    for name, (kind, version) in FRONTS.items():
        front, row = kind(t, "%s_%s" % (era, isolation), version), "%s, %s, %s: " % (era, isolation, name)
        front.do(["text", "the first, which no answer to a notification may end"])
        of_clients(front, name, row)
        of_servers(front, era, row)
        of_lists(front, row)
        if front.ask_back and era == LEGACY and isolation != "shared":
            of_questions(front, row)


@case(deadline=40)
def legacy_server_of_one_session(t):
    """RPC-08 BACK-FRAME-03 BACK-FRAME-04 BACK-FRAME-05 REL-23: the table, for a legacy server that each session has to itself."""
    table(t, LEGACY, "session")


@case(deadline=40)
def legacy_server_of_one_principal(t):
    """RPC-08 BACK-FRAME-05 UTIL-PAGE-01: the table, for a legacy server that the sessions of a principal share."""
    table(t, LEGACY, "principal")


@case(deadline=40)
def legacy_server_of_all(t):
    """RPC-08 BACK-FRAME-05 UTIL-PAGE-01: the table, for a legacy server that all share."""
    table(t, LEGACY, "shared")


@case(deadline=40)
def modern_server_of_one_session(t):
    """RPC-08 BACK-FRAME-05 REL-23: the table, for a modern server that each session has to itself."""
    table(t, MODERN, "session")


@case(deadline=40)
def modern_server_of_one_principal(t):
    """RPC-08 BACK-FRAME-05 UTIL-PAGE-01: the table, for a modern server that the sessions of a principal share."""
    table(t, MODERN, "principal")


@case(deadline=40)
def modern_server_of_all(t):
    """RPC-08 BACK-FRAME-05 UTIL-PAGE-01: the table, for a modern server that all share."""
    table(t, MODERN, "shared")


@case(own=True, deadline=30, servers={name.replace(" ", "_"): {"script": {"init": [["line", line]]}, "isolation": isolation}
                                      for name, line in HANDSHAKES.items() for isolation in ("principal",)})
def handshakes(t):
    """RPC-08 BACK-FRAME-04 BACK-FRAME-05: a handshake is answered at once, however its answer is written."""
    for name in HANDSHAKES:
        started = time.monotonic()
        eq(t.session(name.replace(" ", "_")).echo("x"), "x", name)
        within(started, 5)


@case
def initialize_as_php_writes_it(t):
    """RPC-08 FRONT-INIT-02: [] for no capabilities, escaped slashes; the server is told {}."""
    text = r'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":CAPS,"clientInfo":{"name":"a\/b","version":"1"}}}'
    for written_caps, caps in (("[]", {}), ('{"roots":[]}', {"roots": {}}), ('{"extensions":{"a\\/b":[]}}', {"extensions": {"a/b": {}}})):
        conn = t.conn()
        body = text.replace("CAPS", written_caps).encode()
        conn.send(conn.head("POST", "/legacy_session/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH)], len(body)) + body)
        exchange = mcp.Exchange(conn)
        eq(exchange.final()["result"]["protocolVersion"], "2025-06-18", written_caps)
        t.will_end(exchange, "/legacy_session/mcp")
        told = [t.daemon.messages(pid)[0]["params"]["capabilities"] for pid in t.daemon.children("legacy_session")]
        ok(caps in told, "capabilities at the server", caps, told)
