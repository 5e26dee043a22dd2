# SPDX-License-Identifier: Apache-2.0
"""
What servers write reaches clients as `sanitize` and `redact` say: by every way in, in everything that carries text, raw or
as escapes. What is innocent comes byte for byte.
"""
import json
import unicodedata

import mcp
from c70_admin import admin, get, metrics, of
from c80_stateless import begin, message, messages_of
from harness import case, eq, ok

# As a server writes it, without, marked.
POISON = (
    ("a\x1b[31mb\x1b[0m", "ab", "a\\u{1b}[31mb\\u{1b}[0m"),
    ("\x1b]0;title\x07t", "t", "\\u{1b}]0;title\\u{7}t"),
    ("\x1b]8;;http://a\x1b\\l", "l", "\\u{1b}]8;;http://a\\u{1b}\\l"),
    ("\x9b2Jc\x85", "c", "\\u{9b}2Jc\\u{85}"),
    ("\x00n\x08u\x7fl", "nul", "\\u{0}n\\u{8}u\\u{7f}l"),
    ("d\u202ee\u202c\u2066f\u2069\u200e", "def", "d\\u{202e}e\\u{202c}\\u{2066}f\\u{2069}\\u{200e}"),
    ("z\u200bw\ufeffj\u2060\u00ad", "zwj", "z\\u{200b}w\\u{feff}j\\u{2060}\\u{ad}"),
    ("t\U000e0041\U000e0042", "t", "t\\u{e0041}\\u{e0042}"),
    ("v\U000e0100\U000e01ef", "v", "v\\u{e0100}\\u{e01ef}"),
    ("x\u200dy\u200c", "xy", "x\\u{200d}y\\u{200c}"),
)
BAD, STRIPPED, MARKED = ("|".join(column) for column in zip(*POISON))
CONTROLS = 9  # escape sequences, and controls by themselves
INVISIBLE = 15
INNOCENT = "|".join((
    "plain ASCII \\ \"quoted\" \t and\r\nlines " * 50,
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",
    "\u0db6\u0dd4\u0daf\u0dca\u200d\u0db0", "\u4e2d\u6587\u65e5\u672c\u8a9e\ud55c\uad6d\uc5b4", "\u8fbb\U000e0100", "\u3000\u00a0\u2028",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f469\U0001f3fd\u200d\U0001f4bb", "\u2764\ufe0f\u200d\U0001f525",
    "1\ufe0f\u20e3", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f3f4\u200d\u2620\ufe0f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\u05d0\u05b7 \u0e01\u0e33 e\u0301"))
EXPECTED = {"keep": BAD, "strip": STRIPPED, "mark": MARKED}
SPELLINGS = {"raw": lambda text: json.dumps(text, ensure_ascii=False), "escaped": json.dumps}
LISTS = {"tools/list": ("tools", {"name": "do", "inputSchema": {"type": "object", "properties": {}}}),
         "prompts/list": ("prompts", {"name": "p"}), "resources/list": ("resources", {"uri": "res://a", "name": "a"})}


def lists(spell):
    found = {}
    for method, (name, entry) in LISTS.items():
        text = json.dumps({name: [dict(entry, description="@P@")]}).replace('"@P@"', spell(BAD))
        found[method] = [["line", '{"jsonrpc":"2.0","id":@ID@,"result":%s}' % text]]
    return found


SERVERS = {"%s-%s" % (mode, spelling): {"script": {"on": lists(spell)}, "sanitize": {"controls": mode, "invisible": mode}}
           for mode in EXPECTED for spelling, spell in SPELLINGS.items()}
SERVERS["main"] = {"script": {}}
SERVERS["controls"] = {"script": {}, "sanitize": {"controls": "strip"}}
SERVERS["invisible"] = {"script": {}, "sanitize": {"invisible": "strip"}}
SERVERS["shared"] = {"script": {"on": lists(json.dumps)}, "sanitize": {"controls": "strip", "invisible": "strip"}, "isolation": "shared"}
SERVERS["modern"] = {"script": {"era": "modern"}, "era": "modern", "sanitize": {"controls": "strip", "invisible": "strip"},
                     "redact": ["sk-[a-z]+"]}
SERVERS["leaky"] = {"script": {}, "redact": ["sk-[a-z0-9]+", "(?i)password=\\S+", "(a+)+$"],
                    "sanitize": {"invisible": "strip"}}
CONFIG = {"defaults": {"pool": {"idle_timeout": "1500ms"}}}
WORDS = ["%s-%s" % (mode, spelling) for mode in EXPECTED for spelling in SPELLINGS]


# ---- every way in -------------------------------------------------------------------------------

class Streamable:
    def __init__(self, t, server, version):
        self.session = t.session(server, version, caps={"elicitation": {}, "sampling": {}})

    def ask(self, method, params):
        """(all messages of the request, their bytes); what the server asks is answered."""
        exchange = self.session.start(method, params)
        return self.read(exchange)

    def read(self, exchange):
        found = []
        while (got := exchange.next()) is not None:
            for one in got if isinstance(got, list) else [got]:
                found.append(one)
                if "method" in one and "id" in one:
                    self.session.respond(one["id"], {"action": "decline"})
        return found, b"\n".join(exchange.raw)


class Batch(Streamable):
    def ask(self, method, params):
        return self.read(self.session.begin([mcp.request(1, "ping"), mcp.request(2, method, params)]))


class HttpSse:
    def __init__(self, t, server):
        self.client = t.sse(server, caps={"elicitation": {}}, version=mcp.C)

    def ask(self, method, params):
        request_id, found = self.client.start(method, params), []
        while not found or found[-1].get("id") != request_id or "method" in found[-1]:
            found.append(self.client.next())
            if "method" in found[-1] and "id" in found[-1]:
                self.client.respond(found[-1]["id"], {"action": "decline"})
        return found, None


class Stateless:
    def __init__(self, t, server):
        self.t, self.server = t, server

    def ask(self, method, params):
        params = dict(params)
        token = params.pop("_meta", {}).get("progressToken")
        body = message(method, params, token=token, level="debug", caps={"elicitation": {}})
        conn = begin(self.t, self.server, body)
        found = messages_of(conn.response())
        conn.close()
        return found, None


WAYS = {
    "streamable of 2025-06-18": lambda t, server: Streamable(t, server, mcp.C),
    "streamable of 2025-11-25": lambda t, server: Streamable(t, server, mcp.D),
    "batch of 2025-03-26": lambda t, server: Batch(t, server, mcp.B),
    "HTTP+SSE": HttpSse,
    "stateless": Stateless,
}


def do(way, *steps):
    return way.ask("tools/call", {"name": "do", "arguments": {"steps": list(steps)}, "_meta": {"progressToken": "tok"}})


def texts_in(value):
    """Every string, names of members too."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return [value] if isinstance(value, str) else []


def line(rest, spell, text=BAD):
    return ["line", '{"jsonrpc":"2.0",%s}' % rest.replace('"@P@"', spell(text))]


RESULT = '"id":@ID@,"result":{"content":[{"type":"text","text":"@P@"}],"_meta":{"@P@":["@P@"]}}'
# What a server writes, and in how many strings of what its client gets it stands.
PLACES = {
    "result": ([RESULT], 3),
    "error": (['"id":@ID@,"error":{"code":-5,"message":"@P@","data":{"@P@":"@P@"}}'], 3),
    "log": (['"method":"notifications/message","params":{"level":"error","logger":"@P@","data":{"a":"@P@"}}',
             '"id":@ID@,"result":{"content":[]}'], 2),
    "progress": (['"method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1,"message":"@P@"}',
                  '"id":@ID@,"result":{"content":[]}'], 1),
}


def every_place(t, name):
    for server in WORDS:
        mode, spelling = server.split("-")
        way = WAYS[name](t, server)
        for place, (rests, count) in PLACES.items():
            found, _ = do(way, *[line(rest, SPELLINGS[spelling]) for rest in rests])
            texts = texts_in(found)
            eq(texts.count(EXPECTED[mode]), count, "%s of %s: %r" % (place, server, texts))
            for other in set(EXPECTED.values()) - {EXPECTED[mode]}:
                eq(texts.count(other), 0, "%s of %s" % (place, server))
        for method, (member, _) in LISTS.items():
            found, _ = way.ask(method, {})
            descriptions = [entry["description"] for m in found if isinstance(m.get("result"), dict)
                            for entry in m["result"].get(member, [])]
            eq(descriptions, [EXPECTED[mode]], "%s of %s" % (method, server))


@case(deadline=30)
def by_streamable_c(t):
    """SEC-52: over Streamable HTTP of 2025-06-18."""
    every_place(t, "streamable of 2025-06-18")


@case(deadline=30)
def by_streamable_d(t):
    """SEC-52: over Streamable HTTP of 2025-11-25."""
    every_place(t, "streamable of 2025-11-25")


@case(deadline=30)
def by_batch(t):
    """SEC-52: in a batch."""
    every_place(t, "batch of 2025-03-26")


@case(deadline=30)
def by_http_sse(t):
    """SEC-52: over HTTP+SSE."""
    every_place(t, "HTTP+SSE")


@case(deadline=30)
def by_stateless(t):
    """SEC-52: of 2026-07-28."""
    every_place(t, "stateless")


@case(deadline=30, own=True)
def questions_of_servers(t):
    """SEC-52: what a server asks a client, as a request, or as input_required; its id comes back to it as it was."""
    asked = line('"id":"q\u200b","method":"elicitation/create","params":{"message":"@P@","requestedSchema":'
                 '{"type":"object","properties":{"a":{"type":"string","description":"@P@"}}}}', json.dumps)
    for name in ("streamable of 2025-06-18", "streamable of 2025-11-25", "HTTP+SSE", "stateless"):
        way = WAYS[name](t, "strip-raw")
        found, _ = do(way, asked, ["wait", "q\u200b"], ["asked"])
        eq(texts_in(found).count(STRIPPED), 2, "%s: %r" % (name, found))
        eq(texts_in(found).count(BAD), 0, name)
        if name != "stateless":
            ok("decline" in found[-1]["result"]["content"][0]["text"], "the server has got its answer", found)


@case
def what_servers_say_first(t):
    """SEC-52: the answer to initialize."""
    script = {"init": [line('"id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"@P@",'
                            '"version":"1"},"instructions":"@P@"}', json.dumps)]}
    t.start({"main": {"script": script, "sanitize": {"controls": "strip", "invisible": "strip"}, "redact": ["2025-\\S+"]}})
    s = t.session(daemon=t.daemons[0])
    eq((s.result["result"]["instructions"], s.result["result"]["serverInfo"]["name"]), (STRIPPED, STRIPPED))
    eq(s.version, mcp.C, "what the handshake says is not redacted")


@case(deadline=30)
def innocent_texts_stay(t):
    """SEC-43 SEC-52: emoji, scripts that need joiners, CJK and long ASCII pass byte for byte."""
    for mode in EXPECTED:
        for spelling, spell in SPELLINGS.items():
            for name, open_way in WAYS.items():
                found, raw = do(open_way(t, "%s-%s" % (mode, spelling)), line(RESULT, spell, INNOCENT))
                eq(texts_in(found).count(INNOCENT), 3, "%s, %s" % (mode, name))
                if raw is not None:
                    eq(raw.count(spell(INNOCENT).encode()), 3, "%s, %s, %s: bytes" % (mode, name, spelling))


@case
def each_kind_by_itself(t):
    """SEC-52: controls and invisible are set apart."""
    for server, text in (("controls", "ab\u200b"), ("invisible", "a\x1b[31mb")):
        found, _ = do(WAYS["stateless"](t, server), line(RESULT, json.dumps, "a\x1b[31mb\u200b"))
        eq(texts_in(found).count(text), 3, server)


@case
def lists_of_many(t):
    """SEC-52: lists that are kept for all are looked at once."""
    for _ in range(3):
        for name in ("streamable of 2025-06-18", "stateless"):
            found, _ = WAYS[name](t, "shared").ask("prompts/list", {})
            eq(found[-1]["result"]["prompts"][0]["description"], STRIPPED)
    row = of(get(t, "/servers")["servers"], name="shared")
    eq(row["invisible_sanitized"] % INVISIBLE, 0)
    ok(INVISIBLE <= row["invisible_sanitized"] <= 3 * INVISIBLE, "once for each list that was fetched", row)


@case
def modern_servers(t):
    """SEC-52 SEC-53: the same of servers of 2026-07-28, for clients of both eras."""
    for name in ("streamable of 2025-11-25", "stateless"):
        result = {"content": [{"type": "text", "text": BAD}, {"type": "text", "text": "a sk-\u200babc b"}]}
        found, _ = do(WAYS[name](t, "modern"), ["result", result])
        eq([c["text"] for c in found[-1]["result"]["content"]], [STRIPPED, "a [redacted] b"], name)


@case
def halves_do_not_pair(t):
    """SEC-52: what was taken out from between two halves of a pair does not make a character of them."""
    s = t.session("strip-raw")
    e = s.start_do(["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"x\\udb40\\u0007\\udc41"}]}}'])
    e.final()
    ok(b'"x\\udb40\\ufffd"' in e.raw[-1], "bytes", e.raw)


@case
def names_that_become_one(t):
    """SEC-52 SEC-40: a message whose members are ambiguous without what was taken out is none: the call fails, and no more."""
    s = t.session("strip-raw")
    answer = s.do(["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]},"resul\u200bt":{"content":[{"type":"text","text":"x"}]}}'])
    eq(answer["error"]["code"], -32603, answer)
    eq(s.do_text(["text", "still there"]), "still there")


# ---- secrets ------------------------------------------------------------------------------------

@case(deadline=30)
def secrets_are_redacted(t):
    """SEC-53: what fits a pattern, in results, errors and notifications, by every way in; escapes and hidden characters do not help."""
    text = "key sk-abc1, s\u200bk-zz, Password=hunter2 end"
    for name, open_way in WAYS.items():
        way = open_way(t, "leaky")
        for spell in SPELLINGS.values():
            for place, (rests, count) in PLACES.items():
                found, _ = do(way, *[line(rest, spell, text) for rest in rests])
                texts = texts_in(found)
                named = {"result": 1, "error": 1}.get(place, 0)  # names of members
                eq(texts.count("key [redacted], [redacted], [redacted] end"), count - named, "%s, %s: %r" % (name, place, texts))


@case
def secrets_in_escapes(t):
    """SEC-53: a string is judged by what it means."""
    s = t.session("leaky")
    answer = s.do(["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"\\u0073k\\u002dabc \\ud83d"}]}}'])
    eq(answer["result"]["content"][0]["text"], "[redacted] \ufffd")


@case
def secrets_beside_the_result(t):
    """SEC-53: what a server writes beside the members that a message has is looked at like them."""
    beside = '"debug":"sk-a1","more":{"list":["x sk-a2"]}'
    answer = '{"jsonrpc":"2.0",%s,"id":@ID@,"result":{"content":[]}}' % beside
    error = '{"jsonrpc":"2.0","id":@ID@,"error":{"code":1,"message":"m"},%s}' % beside
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1},%s}' % beside
    for name, ask in WAYS.items():
        for line in (answer, error):
            found, raw = ask(t, "leaky").ask("tools/call", {
                "name": "do", "arguments": {"steps": [["line", progress], ["line", line]]}, "_meta": {"progressToken": "p"}})
            ok(len([m for m in found if "method" in m]) == 1 and ("result" in found[-1]) == (line == answer), name, found)
            ok("sk-a" not in json.dumps(found), name, found)
            ok("[redacted]" in json.dumps([m for m in found if "method" in m]), name, "it is told what was there", found)


@case
def what_is_too_hard_is_not_let_through(t):
    """SEC-53 SEC-14: a string over which a pattern breaks its limits is replaced as a whole, and so is one that is too long; others pass."""
    s = t.session("leaky")
    hard = "x " + "a" * 40 + "b"
    found = s.do(["result", {"content": [{"type": "text", "text": text} for text in (hard, "fine", "- " * 150000)]}])
    eq([c["text"] for c in found["result"]["content"]], ["[redacted]", "fine", "[redacted]"])
    row = of(get(t, "/servers")["servers"], name="leaky")
    eq(row["redacted_whole"], 2)


@case
def images_and_cursors_stay(t):
    """SEC-53: base64 of some length and what a client brings back are no texts."""
    s = t.session("leaky")
    content = [{"type": "image", "mimeType": "image/png", "data": "QUJD" * 100000}, {"type": "text", "text": "x"}]
    eq(s.do(["result", {"content": content}])["result"]["content"], content)
    answer = s.ask("tools/call", {"name": "do", "arguments": {"steps": [["result", {"content": [], "nextCursor": "sk-abc"}]]}})
    eq(answer["result"]["nextCursor"], "sk-abc")


# ---- what the operator sees ---------------------------------------------------------------------

@case(own=True, servers={"main": {"script": {}, "sanitize": {"controls": "strip", "invisible": "mark"}, "redact": ["sk-[a-z]+"]}})
def it_is_counted(t):
    """SEC-52 SEC-53: for each server, in /servers and /metrics."""
    s = t.session()
    s.do(["text", BAD + " sk-abc sk-def"])
    s.do(["text", "fine"])
    row = of(get(t, "/servers")["servers"], name="main")
    eq((row["controls_sanitized"], row["invisible_sanitized"], row["redacted"], row["redacted_whole"]), (CONTROLS, INVISIBLE, 2, 0))
    values = metrics(admin(t).request("GET", "/metrics").read())
    for name, value in (("controls_sanitized", CONTROLS), ("invisible_sanitized", INVISIBLE), ("redacted", 2), ("redacted_whole", 0)):
        eq(values['mcpgated_server_%s_total{server="main"}' % name], value, name)


@case
def nothing_is_set(t):
    """SEC-43: where nothing is set, nothing is changed."""
    s = t.session("main")
    e = s.start_do(line(RESULT, json.dumps, BAD + " sk-abc"))
    e.final()
    eq(e.raw[-1].count(json.dumps(BAD + " sk-abc").encode()), 3)


@case(daemon=False)
def the_oracle_sees(t):
    """SEC-52: what the tables here call stripped has none of what is meant, and what they call innocent is no poison."""
    for bad, stripped, marked in POISON:
        eq([c for c in stripped + marked if unicodedata.category(c) in ("Cc", "Cf", "Mn")], [], "what is meant")
        ok(any(unicodedata.category(c) in ("Cc", "Cf", "Mn") for c in bad), "poison", bad)
