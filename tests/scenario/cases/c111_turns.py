# SPDX-License-Identifier: Apache-2.0
"""
No message, however large, holds the loop: the worst of each kind, up to the limits. REL-54

A turn is compared with the longest one in which the same gateway passes on a plain text as large as a message may be,
on the same machine at the same time; what is not given way for takes ten times as long and more. A machine that others use may
stop any program for a while, so a turn that is too long counts only if it is so three times, each time with a new gateway.
"""
import json
import os
import re
import select

from c80_stateless import begin, message
from harness import case, eq, ok, rss_kib, wait_for

RESPONSE, MESSAGE = 16 << 20, 4 << 20  # limits.response, limits.message
TURN, TIMES = 0.020, 3  # seconds; and as often as long as that of a plain text, if it is slow here
PLAIN = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'], ["fill", "x", RESPONSE - 2000],
         ["write", '"}]}}\n']]
SHOWN = os.environ.get("C111_SHOW")  # a file for the figures


def longest(t):
    text = t.conn(address=t.daemon.admin).request("GET", "/metrics").read().decode()
    return float(re.search(r"^mcpgated_loop_turn_max_seconds (\S+)", text, re.M).group(1))


def one_try(t, servers, act, config):
    t.daemon = None
    t.start(dict(servers, plain={"script": {}}), config=config)
    with_plain = t.session("plain")
    ok("result" in with_plain.do(*PLAIN, timeout=60), "true", "the plain text came")
    plain = longest(t)
    act(t)
    return plain, longest(t)


def measure(t, servers, act, config=None):
    figures = []
    for _ in range(1 if SHOWN else 3):
        plain, turn = one_try(t, servers, act, config)
        figures.append("%d ms, plain %d ms" % (1000 * turn, 1000 * plain))
        if SHOWN:
            with open(SHOWN, "a") as f:
                f.write(figures[-1] + "\n")
        if turn <= max(TURN, TIMES * plain):
            return
    ok(SHOWN, "true", "no turn that is too long: " + "; ".join(figures))


def define(name, servers, act, config=None):
    def run(t):
        if SHOWN:
            with open(SHOWN, "a") as f:
                f.write("%-36s " % name)
        measure(t, servers, act, config)
    run.__name__ = name
    run.__doc__ = "REL-54: " + name.replace("_", " ")
    case(daemon=False, deadline=120)(run)


# ---- lists ----

def listing(kind, item, size=RESPONSE):
    """A script that answers with as many items as a message has room for."""
    return {"on": {kind + "/list": [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"%s":[' % kind],
                                    ["fill", item + ",", (size - 2000) // (len(item.encode()) + 1)], ["write", item + ']}}\n']]}}


def lists(kind, servers=("main",), more=()):
    def act(t):
        for server in servers:
            s = t.session(server)
            ok("result" in s.ask(kind + "/list", timeout=60), "true", "the list came")
            for method, params in more:
                s.ask(method, params, timeout=60)
            s.delete()
    return act


SMALL = '{"name":"abc","inputSchema":{"type":"object"}}'
NORMAL = '{"name":"ab","description":"Some text about it","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}'
ODD = '{"name":"%s","inputSchema":{"type":"object"}}' % ("\\u0301\\u0323" * 10)
FILE = '{"uri":"file:///home/user/%s.txt","name":"x"}' % ("y" * 20)
UNSORTED = '{"name":"abc","inputSchema":{"type":"object","b":[1.50,{"z":1,"a":2}],"a":"\\u00e9"}}'
CALL = [("tools/call", {"name": "abc", "arguments": {"text": "x"}})]
LISTS = {
    "tools": ("tools", SMALL, {}),
    "tools_deny": ("tools", NORMAL, {"tools": {"deny": ["secret*"]}}),
    "tools_renamed": ("tools", SMALL, {"tools": {"rename": {"xyz": "other"}}}),
    "tools_odd": ("tools", ODD, {"tools": {"deny": ["secret*"]}}),
    "tools_pinned": ("tools", UNSORTED, {"pin": "enforce"}),
    "tools_pinned_warn": ("tools", SMALL, {"pin": "warn"}),
    "tools_sanitized": ("tools", SMALL, {"sanitize": {"invisible": "strip", "controls": "strip"}}),
    "tools_checked": ("tools", SMALL, {"tools": {"arguments": {"schema": "check"}}}),
    "resources": ("resources", FILE, {}),
    "resources_deny": ("resources", FILE, {"resources": {"deny": ["secret*"]}}),
}
for isolation in "session", "shared":
    for label, (kind, item, more) in LISTS.items():
        pool = {"pool": {"max": 1}} if isolation == "shared" else {}
        spec = dict({"script": listing(kind, item), "isolation": isolation}, **pool, **more)
        define("list_%s_%s" % (isolation, label), {"main": spec}, lists(kind, more=CALL if "checked" in label or "pinned" in label else ()))


def joined(kind, item):
    half = {"script": listing(kind, item, RESPONSE // 2), "isolation": "shared", "pool": {"max": 1}}
    define("list_joined_" + kind, {"a": half, "b": half}, lists(kind, ("all",)), {"endpoints": {"all": {"servers": ["a", "b"]}}})


joined("tools", SMALL)
joined("resources", FILE)


def found(t):
    """Whole definitions, in a text."""
    answer = t.session("all").ask("tools/call", {"name": "find_tool", "arguments": {"query": "abc", "limit": 20}}, timeout=60)
    ok(len(answer["result"]["content"][0]["text"]) > RESPONSE // 3, "true", "all of them", str(answer)[:300])


def long_tools():
    for i in range(20):
        yield from (["write", '%s{"name":"abc%d","inputSchema":{"type":"object"},"description":"' % ("," if i else "", i)],
                    ["fill", "\\n", RESPONSE // 80], ["write", '"}'])


LONG_TOOLS = {"on": {"tools/list": [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"tools":['], *long_tools(), ["write", "]}}\n"]]}}
define("list_searched", {"main": {"script": LONG_TOOLS, "isolation": "shared", "pool": {"max": 1}}}, found,
       {"endpoints": {"all": {"servers": ["main"], "search": True}}})


HALVES = {name: {"script": listing("tools", SMALL, RESPONSE // 2), "isolation": "shared", "pool": {"max": 1}} for name in "ab"}


@case(servers=HALVES, config={"endpoints": {"all": {"servers": ["a", "b"]}}}, deadline=90)
def clients_leave_while_lists_are_joined(t):
    """REL-54: the session may end at any point of joining its lists."""
    for i in range(10):
        s, other = t.session("all"), t.session("a")
        asked = [s.begin(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list"}).encode()) for n in range(2)]
        for _ in range(i * 3):
            eq(other.do_text(["text", "here"]), "here")
        if i % 2:
            asked[0].conn.close()
        s.delete()
        other.delete()
    s = t.session("all")
    ok("result" in s.ask("tools/list", timeout=60), "true", "the list came")


# ---- answers ----

def answers(*fill):
    def act(t):
        s = t.session()
        size = len(json.dumps(fill[0])) - 2
        s.do(["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'], ["fill", fill[0], (RESPONSE - 2000) // size],
             ["write", '"}]%s}}\n' % (fill[1] if len(fill) > 1 else "")], timeout=60)
    return act


def values(item, before='"x":[', after="]"):
    def act(t):
        t.session().do(["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"structuredContent":{' + before],
                       ["fill", item + ",", (RESPONSE - 2000) // (len(item) + 1)], ["write", item + after + '}}}\n'], timeout=60)
    return act


ANSWERS = {
    "numbers": (values("1"), {}),
    "strings": (values('""'), {}),
    "names": (values('"a":1', '"x":{', "}"), {}),
    "escaped_names": (values('"\\u0061":1', '"x":{', "}"), {}),
    "many_members": (values('"a":1', "", ""), {}),
    "line_breaks": (values("1 \r"), {}),
    "sanitized_escapes": (answers("\\n"), {"sanitize": {"invisible": "strip", "controls": "strip"}}),
    "sanitized_text": (answers("\u4e2d\u200b"), {"sanitize": {"invisible": "strip", "controls": "mark"}}),
    "redacted": (values('"a@b.c"'), {"redact": ["[a-z]+@[a-z]+\\.c", "(?i)secret\\s*=\\s*\\S+"]}),
    "redacted_text": (answers("some text, a@b.c 123-456 "), {"redact": ["[a-z]+@[a-z]+\\.c", "(?i)secret\\s*=\\s*\\S+"]}),
    "no_json": (values("{"), {}),
    "not_utf8": (values('"\\u00e9"'), {}),
}
for label, (act, more) in ANSWERS.items():
    define("answer_" + label, {"main": dict({"script": {}, "isolation": "shared", "pool": {"max": 1}}, **more)}, act)


def rewritten(item, before="", after=""):
    """What a modern client gets is written anew."""
    def act(t):
        steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"ttlMs":1,' + before], ["fill", item + ",", (RESPONSE - 2000) // (len(item) + 1)],
                 ["write", item + after + '}}\n']]
        body = message("tools/call", {"name": "do", "arguments": {"steps": steps}})
        answer = begin(t, "main", body).response().read()
        ok(b'"resultType":"complete"' in answer[:200] and len(answer) > RESPONSE // 2, "true", "it was rewritten", answer[:300])
    return act


for era in "legacy", "modern":
    spec = {"main": {"script": {"era": "modern"} if era == "modern" else {}, "isolation": "shared", "pool": {"max": 1}, "era": era}}
    define("rewritten_%s_values" % era, spec, rewritten("1", '"structuredContent":{"x":[', "]}"))
    define("rewritten_%s_members" % era, spec, rewritten('"a":1'))


def long_error(t):
    """What an error of a legacy server says to a modern client: the code alone says whether it is about URLs."""
    steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"error":{"message":"m","data":{"x":['], ["fill", "1,", RESPONSE // 2 - 1000],
             ["write", '1]},"code":-32042}}\n']]
    answer = begin(t, "main", message("tools/call", {"name": "do", "arguments": {"steps": steps}})).response().read()
    ok(b'"error"' in answer[:200] and len(answer) > RESPONSE // 2, "true", "it came", answer[:300])


define("rewritten_error", {"main": {"script": {}, "isolation": "shared", "pool": {"max": 1}, "era": "legacy"}}, long_error)


def of_a_leg(t):
    """An answer that an endpoint passes on."""
    steps = [["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"structuredContent":{"x":['], ["fill", "1,", RESPONSE // 2 - 1000],
             ["write", '1]}}}\n']]
    answer = t.session("all").ask("tools/call", {"name": "main__do", "arguments": {"steps": steps}}, timeout=60)
    ok("result" in answer and len(answer["result"]["structuredContent"]["x"]) > RESPONSE // 5, "true", "it came", str(answer)[:300])


define("answer_of_a_leg", {"main": {"script": {}, "isolation": "shared", "pool": {"max": 1}}}, of_a_leg, {"endpoints": {"all": {"servers": ["main"]}}})


# ---- calls ----

def calls(part, batch=False):
    def act(t):
        s = t.session("main", "2025-03-26") if batch else t.session()
        parts, size, n = [], 200, 0
        while size < MESSAGE - 10000:
            parts.append(part % n if "%d" in part else part)
            size += len(parts[-1]) + 1
            n += 1
        text = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{%s}}}'
        if batch:
            each = len(parts) // 60 + 1
            text = "[%s]" % ",".join(text % (900 + i, ",".join(parts[i * each:(i + 1) * each])) for i in range(60))
        else:
            text %= 900, ",".join(parts)
        s.begin(text.encode()).rest(60)
    return act


def arguments(**rules):
    return {"tools": {"arguments": rules}}


PATTERNS = {"deny_patterns": {"*": ["(?i)drop\\s+table", "a+b+c"]}}
SCHEMA = ('{"name":"echo","inputSchema":{"type":"object","additionalProperties":{"anyOf":[{"type":"string","pattern":"^b+$"},'
          '{"type":"integer","enum":[1,2,3]},{"type":"string","maxLength":3},{"type":"integer"}]}}}')
CALLS = {
    "numbers": ('"k%d":0', {}),
    "patterns": ('"k%d":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"', arguments(**PATTERNS)),
    "odd_names": ('"\\uff41\\uff42%d":0', arguments(forbidden_keys=["secret*"], **PATTERNS)),
    "schema": ('"k%d":0', dict(arguments(schema="check"), script=listing("tools", SCHEMA, 4000))),
    "paths": ('"k%d":"/srv/a/../b/./c"', arguments(paths={"roots": ["/srv"]})),
}
for label, (part, more) in CALLS.items():
    spec = dict({"script": {}, "isolation": "shared", "pool": {"max": 1}}, **more)
    define("call_" + label, {"main": spec}, calls(part))
    if label == "odd_names":
        define("call_batch", {"main": spec}, calls(part, batch=True))
ODD_CALLS = {"main": {"script": {}, "isolation": "shared", "pool": {"max": 1}, **arguments(forbidden_keys=["secret*"], **PATTERNS)}}


def odd_call():
    part = ",".join('"\\uff41\\uff42%d":0' % i for i in range(150000))
    return ('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{%s}}}' % part).encode()


@case(servers=ODD_CALLS, deadline=60)
def clients_leave_while_they_are_heard(t):
    """REL-54: whoever sends the longest call and goes away in the middle of it disturbs nobody."""
    other = t.session()
    body = odd_call()
    for i in range(12):
        s = t.session()
        conn = s.begin(body).conn
        if i % 3 == 0:
            s.delete()
        for _ in range(i):
            eq(other.do_text(["text", "here"]), "here")
        conn.close()
    eq(other.do_text(["text", "still"]), "still")


def has_come(exchange):
    return bool(select.select([exchange.conn.sock], [], [], 0)[0])


@case(servers=ODD_CALLS, deadline=90)
def who_sends_much_waits_longest(t):
    """REL-54: the long messages of one caller wait for each other, not those of others for them."""
    much, other = t.session(source="127.0.0.2"), t.session()
    body = odd_call()
    calls = [much.begin(body) for _ in range(24)]
    eq(len(other.do_text(["text", "x" * 200000], timeout=60)), 200000)
    other.begin(body).rest(60)
    ok(sum(map(has_come, calls)) < 20, "true", "most of those that were sent before have not been heard yet")
    for call in calls:
        call.rest(60)


@case(servers=ODD_CALLS, deadline=90, own=True)
def what_others_leave_is_freed_meanwhile(t):
    """REL-54: however long something is being heard, nobody fills the memory with what he begins and gives up."""
    s = t.session()
    body = odd_call()
    calls = [s.begin(body) for _ in range(24)]
    before = rss_kib(t.daemon.gateway)
    for i in range(50):
        conn = s.new_conn()
        conn.send(conn.head("POST", s.path, s.headers(), 3600000) + b" " * 3500000)
        conn.close()
        wait_for(lambda: sum("state=body" in line for line in t.daemon.log("connection_end")) > i, 10, "it is gone")
    ok(not has_come(calls[-1]), "true", "it has not been idle meanwhile")
    ok(rss_kib(t.daemon.gateway) - before < 100 << 10, "memory", before, rss_kib(t.daemon.gateway))
    for call in calls:
        call.rest(60)


define("call_audited", {"main": {"script": {}}}, calls('"k%d":0'), {"audit": {"to": os.devnull}})
