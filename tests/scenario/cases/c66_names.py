# SPDX-License-Identifier: Apache-2.0
"""
Scopes are not a matter of spelling: whatever a tool is called by, on every way in, it never runs without its scope. What
ran is judged by what the server records, read in all the ways in which servers have been seen to read names.
"""
import itertools
import json
import unicodedata

from c65_doors import JSON, Way, told
from harness import case, eq, ok, wait_for
from mcp import notification

TOOLS = ("echo", "office", "list", "kill", "stra\u00dfe", "Caf\u00e9", "\u30ac\u30b9")
SERVERS = {"main": {"script": {}, "scopes": ["use"], "tools": {"scopes": {tool: ["write"] for tool in TOOLS}}}}

# ---- spellings --------------------------------------------------------------
# What they are to the daemon: none of a name; unreadable, so that it may be any tool; no message; a tool that needs the
# scope; another tool.
NONE, UNREADABLE, MALFORMED, SCOPED, OTHER = "none", "unreadable", "malformed", "scoped", "other"
# What a call is told without the scope, by the ways in; with it, what is SCOPED or OTHER is taken and all else refused.
WITHOUT = {NONE: ("200 -32602", "400 -32602", "202 -32602", "202 -32602", "200 -32602", "400 -32602"),
           UNREADABLE: ("403", "403", "403", "403", "200 -32602", "400 -32602"),
           SCOPED: ("403", "403", "403", "403", "200 taken", "200 taken"),
           OTHER: ("200 taken", "200 taken", "202 taken", "202 taken", "200 taken", "200 taken")}
WITH = dict(WITHOUT, **{UNREADABLE: WITHOUT[NONE], SCOPED: WITHOUT[OTHER]})
WAYS = ("streamable", "streamable_batch", "http_sse", "http_sse_batch", "admin", "admin_batch")

INVISIBLE = (
    "\0", "\x01", "\b", "\t", "\n", "\f", "\r", "\x1b", "\x7f", "\x85", "\x9b",                 # controls
    "\u200b", "\u200c", "\u200d", "\u2060", "\u2063", "\ufeff", "\u180e",                       # of no width
    "\u200e", "\u200f", "\u061c", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",             # directions
    "\u2066", "\u2067", "\u2068", "\u2069",
    "\u00ad", "\u034f", "\u180b", "\ufe00", "\ufe0f", "\U000e0100",                             # hyphen, joiner, variations
    "\U000e0001", "\U000e0065", "\U000e007f",                                                   # tags
    "\u115f", "\u1160", "\u3164", "\uffa0", "\u17b4",                                           # fillers
    "\u2028", "\u2029", "\u2065", "\ufff9", "\U0001d173", "\U0001bca0",
    "\u0378", "\ue000", "\ufffe", "\U0010ffff")                                                 # of no meaning
SPACES = " \u00a0\u1680\u2000\u2002\u2003\u2007\u2009\u200a\u202f\u205f\u3000"
NAMES = [(NONE, "echo" + c) for c in INVISIBLE] + [(NONE, c + "echo") for c in INVISIBLE] + [
    (NONE, "ec\0ho"), (NONE, "echo\0\0"), (NONE, "echo\0write"), (NONE, "ECHO\0"), (NONE, "read\0"), (NONE, "e\u200bc\u200bh\u200bo"),
    (NONE, ""), (NONE, " "), (NONE, "\u3000"), (NONE, "echo" + " " * 253), (NONE, "a" * 257), (NONE, "\ufdfa" * 80),
    (NONE, "\u1fb3"), (NONE, "\u03b1\u0345"),
] + [(SCOPED, "echo" + c) for c in SPACES] + [(SCOPED, c + "echo") for c in SPACES] + [
    (SCOPED, "echo"), (SCOPED, "ECHO"), (SCOPED, "Echo"), (SCOPED, "eChO"), (SCOPED, "  echo  "), (SCOPED, "e cho"),
    (SCOPED, "\uff45\uff43\uff48\uff4f"), (SCOPED, "\uff25CHO"),                                # full width
    (SCOPED, "\U0001d41e\U0001d41c\U0001d421\U0001d428"), (SCOPED, "ech\U0001d698"), (SCOPED, "\u212fcho"),
    (SCOPED, "\u24d4\u24d2\u24d7\u24de"), (SCOPED, "\u1d49cho"), (SCOPED, "ech\u00ba"),         # circled, raised
    (SCOPED, "office"), (SCOPED, "o\ufb03ce"), (SCOPED, "o\ufb00ice"), (SCOPED, "of\ufb01ce"), (SCOPED, "O\ufb03CE"),
    (SCOPED, "li\u017ft"), (SCOPED, "LI\u017fT"), (SCOPED, "li\ufb06"), (SCOPED, "li\ufb05"),   # long s
    (SCOPED, "L\u0130ST"), (SCOPED, "l\u0131st"), (SCOPED, "LI\u0307ST"), (SCOPED, "li\u0307st"),  # Turkish
    (SCOPED, "\u212aill"), (SCOPED, "\u212aILL"), (SCOPED, "KILL"),             # the Kelvin sign
    (SCOPED, "stra\u00dfe"), (SCOPED, "strasse"), (SCOPED, "STRASSE"), (SCOPED, "STRA\u1e9eE"), (SCOPED, "stra\u017f\u017fe"),
    (SCOPED, "Caf\u00e9"), (SCOPED, "Cafe\u0301"), (SCOPED, "CAF\u00c9"), (SCOPED, "cafe\u0301"), (SCOPED, "caf\u00e9"),
    (SCOPED, "\u30ab\u3099\u30b9"), (SCOPED, "\uff76\uff9e\uff7d"),                             # half width, composed
    (OTHER, "read"), (OTHER, "echoes"), (OTHER, "ech"), (OTHER, "\u0435cho"), (OTHER, "e\u0301cho"), (OTHER, "echo-"),
    (OTHER, "ech0"), (OTHER, "cafe"), (OTHER, "*"), (OTHER, "a" * 256),
]


def escaped(name, form="\\u%04x"):
    units = name.encode("utf-16-be")
    return '"%s"' % "".join(form % int.from_bytes(units[i:i + 2], "big") for i in range(0, len(units), 2))


def named(value):
    """params with that JSON in the place of the name."""
    return '{"name":%s,"arguments":{"text":"MARK"}}' % value


# (what it is, method, params)
SPELLINGS = [(what, "tools/call", named(json.dumps(name))) for what, name in NAMES]
SPELLINGS += [(what, "tools/call", named(json.dumps(name, ensure_ascii=False))) for what, name in NAMES
              if not any(c < " " for c in name)]
SPELLINGS += [(what, "tools/call", named(escaped(name, form))) for what, name in
              [(NONE, "echo\0"), (NONE, "echo\u202e"), (SCOPED, "echo"), (SCOPED, "\U0001d41echo"), (OTHER, "read")]
              for form in ("\\u%04x", "\\u%04X")]
SPELLINGS += [
    (SCOPED, "tools/call", named('"\\u0065cho"')), (SCOPED, "tools/call", named('"ech\\u006F"')),
    # half a pair
    (UNREADABLE, "tools/call", named('"echo\\ud800"')), (UNREADABLE, "tools/call", named('"\\uDC00echo"')),
    (UNREADABLE, "tools/call", named('"ec\\udc1e\\ud835ho"')), (UNREADABLE, "tools/call", named('"\\uD835cho"')),
    # no text
    (UNREADABLE, "tools/call", named("7")), (UNREADABLE, "tools/call", named("null")), (UNREADABLE, "tools/call", named("true")),
    (UNREADABLE, "tools/call", named('["echo"]')), (UNREADABLE, "tools/call", named('{"name":"echo"}')),
    (UNREADABLE, "tools/call", '{"arguments":{"text":"MARK"}}'), (UNREADABLE, "tools/call", '{"tool":"echo","arguments":{"text":"MARK"}}'),
    (UNREADABLE, "tools/call", '{"\uff4eame":"echo","arguments":{"text":"MARK"}}'),
    # elsewhere
    (NONE, "tools/call", '["echo",{"text":"MARK"}]'), (NONE, "tools/call", '[%s]' % named('"echo"')), (UNREADABLE, "tools/call", "[]"),
    (NONE, "tools/call", '[["name","echo"],["arguments",{"text":"MARK"}]]'),
    # two readings of one text
    (MALFORMED, "tools/call", '{"name":"read","name":"echo","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call", '{"name":"echo","name":"read","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call", '{"name":"read","n\\u0061me":"echo","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call", '{"name":"read","NAME":"echo","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call", '{"Name":"echo","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call", '%s,"params":%s' % (named('"read"'), named('"echo"'))),
    (MALFORMED, "tools/call", '%s,"PARAMS":%s' % (named('"read"'), named('"echo"'))),
    (MALFORMED, "tools/call", 'null'), (MALFORMED, "tools/call", '"echo MARK"'),
    (MALFORMED, "tools/call", named('"echo\t"')), (MALFORMED, "tools/call", named('"echo\\x00"')),
    (SCOPED, "tools\\/call", named('"echo"')), (SCOPED, "tools/call", '{"n\\u0061me":"echo","arguments":{"text":"MARK"}}'),
    (MALFORMED, "tools/call\\u0000", named('"echo"')),
]
# What only looks like the method; with the scope it goes to the server, which does not know it.
METHODS = ["TOOLS/CALL", "Tools/call", "tools/call ", "\uff54ools/call", "tools\uff0fcall", "tools/call\u200b", "tool\u017f/call"]


# ---- how servers read names -------------------------------------------------

def without_invisible(text):
    return "".join(c for c in text if unicodedata.category(c)[0] != "C" and c not in INVISIBLE)


def turkish(text):
    return text.replace("I", "\u0131").replace("\u0130", "i").replace("i\u0307", "i").lower()


CUTS = [str, lambda t: t.split("\0")[0], without_invisible]
TRIMS = [str, str.strip, lambda t: t.replace(" ", ""), lambda t: "".join(t.split())]
FORMS = [str] + [lambda t, form=form: unicodedata.normalize(form, t) for form in ("NFC", "NFD", "NFKC", "NFKD")]
CASES = [str, str.lower, str.upper, str.casefold, turkish, lambda t: t.upper().lower(), lambda t: t.replace("\u0131", "i").lower()]
READERS = [lambda t, chain=chain: chain[3](chain[2](chain[1](chain[0](t)))) for chain in itertools.product(CUTS, FORMS, CASES, TRIMS)]


def texts_in(value):
    """All that could be taken for a name in params."""
    if isinstance(value, str):
        return [value, value.encode("utf-8", "ignore").decode(), value.encode("utf-8", "replace").decode()]
    if isinstance(value, dict):
        return [text for key, member in value.items() if key != "arguments" for text in texts_in(member)]
    return [text for member in value for text in texts_in(member)] if isinstance(value, list) else []


def tools_read(message):
    """The tools of TOOLS that some server would run for this message."""
    names = set(texts_in(message.get("params")))
    return {tool for reader in READERS for tool in TOOLS if reader(tool) in {reader(name) for name in names}}


# ---- calls ------------------------------------------------------------------

def call(way, method, params, mark, token):
    """What the client is told, a status and what its requests are answered; a 400 tells its code."""
    way.last_id += 2
    text = '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}' % (way.last_id, method, params.replace("MARK", mark))
    ids = [way.last_id]
    if way.is_batch:
        ids = [way.last_id - 1, way.last_id]
        text = '[{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s},%s]' % (
            ids[0], '{"name":"do","arguments":{"steps":[["text","%s"]]}}' % mark, text)
    conn = way.send(way.home, text, token, JSON)
    response = conn.response()
    body = response.read()
    conn.close()
    if response.status in (200, 202):
        answers = [way.home.sse.wait_answer(i) for i in ids] if way.home.sse else json.loads(body)
        answers = answers if isinstance(answers, list) else [answers]
        eq(sorted(a["id"] for a in answers), ids, "ids of the answers")
        return " ".join([str(response.status)] + sorted({told(a) for a in answers}))
    return "400 %d" % json.loads(body)["error"]["code"] if response.status == 400 else str(response.status)


def recorded(way, prefix):
    """{number: message} of the calls with such marks that reached the server."""
    found = {}
    for pid, _ in way.t.daemon.records_of("main"):
        for message in way.t.daemon.messages(pid):
            text = json.dumps(message)
            if message.get("method") != "initialize" and prefix in text and '"do"' not in text:
                found[int(text.split(prefix)[1].split(".")[0])] = message
    return found


def expected(what, table, way):
    if what == MALFORMED:
        return ("400 -32600", "400 -32700")
    return (table[what][WAYS.index(way.name)],)


def every_spelling(t, name):
    way = Way(t, name, SERVERS)
    is_operator = way.front == "admin"
    low = None if is_operator else way.token(scope="use")
    high = None if is_operator else way.good
    for i, (what, method, params) in enumerate(SPELLINGS):
        for table, mark, token in ((WITHOUT, "without-%d.", low), (WITH, "with-%d.", high)):
            is_told = call(way, method, params, mark % i, token)
            ok(is_told in expected(what, table, way), "told", what, params[:80], is_told)
    for i, method in enumerate(METHODS):
        is_told = call(way, method, named('"echo"'), "methods-%d." % i, low)
        ok(is_operator or is_told == "403" or " -32602" in is_told, "told", method, is_told)
    eq(call(way, "tools/call", named('"echo"'), "last-0.", high)[4:], "taken", "the right name, with the scope")
    ok(0 in recorded(way, "last-"), "it arrived, and so would have what came before")
    without, allowed = recorded(way, "without-"), recorded(way, "with-")
    for i, (what, _, params) in enumerate(SPELLINGS):
        eq(i in without, what == OTHER or is_operator and what == SCOPED, "without the scope: " + params[:80])
        eq(i in allowed, what in (OTHER, SCOPED), "with the scope: " + params[:80])
        if i in allowed:
            eq(allowed[i]["params"], json.loads(params.replace("MARK", "with-%d." % i)), "as it was sent")
    if not is_operator:
        for message in list(without.values()) + list(recorded(way, "methods-").values()):
            eq(tools_read(message), set(), "without its scope some server would run what came with %s" % json.dumps(message))


@case(daemon=False, deadline=60)
def by_streamable(t):
    """AUTH-SCP-12 SEC-42 SEC-50: no spelling of a tool's name runs it without its scope, over Streamable HTTP."""
    every_spelling(t, "streamable")


@case(daemon=False, deadline=60)
def by_streamable_batch(t):
    """AUTH-SCP-12 AUTH-SCP-06: nor in a batch, of which nothing runs."""
    every_spelling(t, "streamable_batch")


@case(daemon=False, deadline=60)
def by_http_sse(t):
    """AUTH-SCP-12 SEC-50: nor over HTTP+SSE."""
    every_spelling(t, "http_sse")


@case(daemon=False, deadline=60)
def by_http_sse_batch(t):
    """AUTH-SCP-12 AUTH-SCP-06: nor in a batch there."""
    every_spelling(t, "http_sse_batch")


@case(daemon=False, deadline=60)
def by_admin(t):
    """AUTH-SCP-12: the operator needs no scope; what is no name is refused on his socket as well."""
    every_spelling(t, "admin")


@case(daemon=False, deadline=60)
def by_admin_batch(t):
    """AUTH-SCP-12: the same for batches."""
    every_spelling(t, "admin_batch")


def notifications(t, name):
    way = Way(t, name, SERVERS)
    for i, (tool, status) in enumerate((("echo", 403), ("E\uff23HO", 403), ("echo\0", 400), (7, 403), ("read", 202))):
        message = notification("tools/call", {"name": tool, "arguments": {"text": "note-%d." % i}})
        eq(way.send(way.home, message, way.token(scope="use")).response().status, status, tool)
    message = notification("tools/call", {"name": "echo", "arguments": {"text": "note-9."}})
    eq(way.send(way.home, message, way.good).response().status, 202, "with the scope")
    wait_for(lambda: 9 in recorded(way, "note-"), 3, "the last one")
    eq(sorted(recorded(way, "note-")), [4, 9], "what arrived")


@case(daemon=False)
def notifications_by_streamable(t):
    """AUTH-SCP-12 FRONT-POST-02: a call that wants no answer needs the scope and a name as well; what is refused has a status."""
    notifications(t, "streamable")


@case(daemon=False)
def notifications_by_http_sse(t):
    """AUTH-SCP-12: the same over HTTP+SSE."""
    notifications(t, "http_sse")


@case(daemon=False, deadline=60)
def the_oracle_sees(t):
    """SEC-50: what judges here finds the tool behind every spelling, and no tool behind other names."""
    for what, name in NAMES:
        found = tools_read({"params": {"name": name}})
        ok(what == NONE or bool(found) == (what == SCOPED), "found", what, name[:40], found)
