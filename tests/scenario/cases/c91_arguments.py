# SPDX-License-Identifier: Apache-2.0
"""
What the arguments of tools may hold: on every way in, nothing of what the operator forbids reaches a server, and all else
does as it was sent. What arrived is judged anew by readers of paths as servers have them.
"""
import itertools
import json
import unicodedata
import urllib.parse

from c65_doors import JSON, WAYS, Way, told
from c80_stateless import fields as modern_fields, meta
from harness import case, eq, ok, wait_for
from mcp import bearer, notification

ROOT = "/srv/data"
RULES = {"max_bytes": 2000,
         "deny_patterns": {"*": [r"(?i)\bdrop\s+table", r"^(z+)+$"], "EC*": [r"^secret$"], "other": [r"."]},
         "forbidden_keys": ["__proto__", "constructor", "prototype"],
         "paths": {"roots": [ROOT], "members": ["path", "*_path", "files"], "ignore": ["content"]}}
SERVERS = {"main": {"script": {}, "tools": {"arguments": RULES}}}
REFUSED = dict(zip(WAYS, ("200 -32602", "400 -32602", "202 -32602", "202 -32602", "200 -32602", "400 -32602", "400 -32602")))

# ---- paths ------------------------------------------------------------------

UPS = ("..", "%2e%2e", "%2E.", ".%252e", "%25252e%25252e", "\uff0e\uff0e", "\u2024.", "\u2025", ".\u200b.", "..\ufeff",
       "%c0%ae%c0%ae", ".%e0%80%ae", "%u002e%u002e", ".. ", "..;", "....", "%ef%bc%8e.", "..\u3000",
       "..\u1680", "'..'")
SLASHES = ("/", "%2f", "%252F", "\\", "%5c", "\uff0f", "\u2215", "%c0%af", "//", "/./", "\ufe68")
LEADS = (ROOT + "/", "file://" + ROOT + "/", "")
OUTSIDE = [lead + up + slash + up + slash + "etc/passwd" for lead, up, slash in itertools.product(LEADS, UPS, SLASHES)][::3]
OUTSIDE += [
    "/", "/etc/passwd", "//etc/passwd", "/./etc/passwd", "/srv", "/srv/", "/srv/database", "/srv/data2/x", "/srv/data.bak", "/SRV/data/x",
    "/srv/Data/x", "/srv/data/..", "/srv/data/../", "/srv/data/../data2/x", "/srv/data/../../etc/passwd", "/srv/data/a/../../x",
    "/srv/data/a/b/../../../x", "/srv/data/./../x", "/srv/data//..//x", "/srv/../etc", "/proc/self/environ", "/dev/fd/3", "/srv/data /x",
    "%2fetc%2fpasswd", "%252fetc%252fpasswd", "%2Fetc/passwd", "/%2e%2e/etc", "\uff0fetc\uff0fpasswd", "\u2215etc", "%c0%afetc",
    "/srv/data/%2e/../x", "/srv/data/a%2f../../x", "/srv/data/a%252fb/%2e/../../x", "/srv/data/. /../x", "/srv/data/.;/../x",
    "~", "~/x", "~/.ssh/id_rsa", "~root", "~root/x", "~\\x", "\uff5e/x", "%7e/x",
    "file:///etc/passwd", "file:/etc/passwd", "FILE:///etc/passwd", "FiLe:/etc", "file://localhost/etc/passwd", "file://host/srv/data/x",
    "file://srv/data/x", "file:///srv/data/../x", "file:///srv/data/%2e%2e/x", "file:///srv/data2", "file:///", "file%3a///etc/passwd",
    "file:///srv/data/x?/../../../etc", "file:///srv/data/x#/../../../etc",
    "C:\\Windows\\win.ini", "c:/Windows", "C:%5cWindows", "\\\\server\\share", "\\etc\\passwd", "\\\\?\\C:\\x",
    "\"/etc/passwd\"", "'/etc/passwd'", " /etc/passwd", "\t/etc/passwd", "\n/etc/passwd", "\u00a0/etc/passwd", "\"../etc/passwd", "`/etc`",
    "\u1680/etc/passwd", "\u2003\"/etc/passwd\"", "'..'", ".. ", "..\u2003", "a/..\u1680", "a/'..'/'..'/b",
    "\0/etc/passwd", "/etc/passwd\0.png", "/srv/data/x\0", "/srv/data/..\0/x", "/srv/data/x%00.png", "/srv/data/x\n",
    "../x", "../../etc/passwd", "./../x", "..", "a/../../b", "a/..", "./x", "..\\x", "a\\..\\..\\b",
]
INSIDE = [
    ROOT, ROOT + "/", "/srv/data/x", "//srv//data//x", "/srv/./data/./x", "/srv/data/a/../b", "/srv/data/a/b/../../c", "/srv/data/a/..",
    "/srv/data/with space/x.txt", "/srv/data/100%", "/srv/data/100%25.txt", "/srv/data/a%20b", "/srv/data/..hidden", "/srv/data/trailing..",
    "/srv/data/.git/config", "/srv/data/\u00fcber.txt", "/srv/data/\u00fcber/../x", "/srv/data/\u65e5\u672c", "/srv/data/\U0001f468\u200d\U0001f469.png",
    "/srv/data/a:b", "/srv/data/#1", "/srv/data/x?y", "/srv/data/~", "/srv/data/a\\b", "file:///srv/data/x", "file:/srv/data/x",
    "FILE:///srv/data/x", "file:///srv/data/a%20b", "file:///srv/data/x#L10", "file:///srv/data/a/../b", "/srv/data/" + "d/" * 100,
]
TEXTS = [
    "", ".", "...", " ", "hello", "hello, world", "notes.txt", "docs/notes.txt", "text/plain", "application/json; charset=utf-8",
    "owner/repository", "2026/01/31", "31.01.2026", "and/or", "either/or/...", "and so on ... / then", "wait .. what", "1..10", "a..b/c..d",
    "https://example.com/", "https://example.com/a/b?c=d&e=f#g", "https://example.com/a%20b/%E2%82%AC", "mailto:a@example.com",
    "user@example.com", "100%", "50%/60%", "5% of 3/4", "~5 minutes", "~~struck~~", "a ~/b", "Q: what?", "C:", "12:30", "key: value", "a:b/c",
    "profile:x", "see file:///etc/passwd", "import x from '../lib/x'", "{\"a\": [1, 2]}", "[\"/etc\"]", "<a href=\"/x\">", "# Title\n\n- one\n- two\n",
    "\u00bd", "\u2026", "\u20ac 5", "\u65e5\u672c\u8a9e", "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301", "line one\nline two", "tab\there", "a\\b", "x/y/", "a*b?c", "$HOME", "${x}", "$(x)", "a|b", "a;b", "a&b", "`x`", "%s %d", "%2", "%zz",
    "SELECT * FROM t WHERE a = 1", "drop the table", "backdrop\ttable", "dropt able", "zb", "zzb", "Secret", "secrets", "proto", "__proto__",
    "-1", "--flag", "-", "0x1F", "1e9", "true", "null", "2026-01-31T12:00:00Z", "P1D", "550e8400-e29b-41d4-a716-446655440000",
    "sha256:abcdef", "z" * 10 + "b", "b" * 1000, "v1.2.3", "^1.2.3", "@scope/package", "git@github.com:owner/x.git", "192.168.0.1/24", "[::1]:80",
]


# ---- arguments --------------------------------------------------------------
# Each is JSON text, in which MARK is to be what names it.

def wrap(i, value):
    """Where strings can stand: as a value, in lists, deep inside, as a name; with escapes."""
    forms = ('{"text":"MARK","v":%s}', '{"v":[1,[%s]],"text":"MARK"}', '{"text":"MARK","a":{"b":[{"c":%s}]}}', '{"v":{%s:1},"text":"MARK"}')
    form = forms[i % len(forms)]
    return form % json.dumps(value, ensure_ascii=i % 3 == 0)


def with_text(members):
    return '{"text":"MARK",%s}' % members


DEEP = '{"a":' * 50 + '{"__proto__":1}' + "}" * 50
ATTACKS = [wrap(i, text) for i, text in enumerate(OUTSIDE)] + [with_text(members) for members in (
    # paths by the names of members
    '"path":"x"', '"path":"a/b"', '"Path":"x"', '"PATH":"x"', '"my_path":"x"', '"files":["/srv/data/x","x"]', '"files":[["x"]]', '"p\\u0061th":"x"',
    '"path":""', '"pa\\u200bth":"x"', '"content":{"a":"/etc"}', '"content":{"path":"x"}', '"Content":"/etc"', '"content":"x","b":"../x"',
    # forbidden names
    '"__proto__":{}', '"constructor":1', '"prototype":null', '"a":{"__proto__":1}', '"a":[[{"constructor":1}]]', '"__PROTO__":1',
    '"\\u005f\\u005fproto\\u005f\\u005f":1', '" __proto__":1', '"\uff3f\uff3fproto\uff3f\uff3f":1', '"a":"}","__proto__" : 1', '"a":%s' % DEEP,
    '"a":"\\\\","constructor":1', '"Constructor":1', '"__proto__\\u200b":1', '"con\u00adstructor":1', '"prototype\\u0000x":1',
    # patterns
    '"q":"drop table x"', '"q":"DROP\\n\\tTABLE"', '"q":"\\u0064rop\\u0020table"', '"drop table":1', '"a":[{"b":["x; DROP  TABLE y"]}]',
    '"q":"drop\\u00a0table"', '"a":"secret"', '"secret":1', '"a":["sec\\u0072et"]', '"q":"%s"' % ("z" * 30), '"q":"%sb"' % ("z" * 1500),
    # what cannot be read
    '"a":"\\ud800"', '"a":"\\udc00x"', '"\\ud800":1', '"a":[{"b":"/srv/data/\\ud800"}]',
    # too long
    '"a":"%s"' % ("b" * 2000), '"a":%s1' % (" " * 2000))]
ATTACKS += ['"MARK"', '["MARK"]', '"{\\"path\\":\\"/etc/passwd\\",\\"text\\":\\"MARK\\"}"', '[{"path":"/etc/passwd","text":"MARK"}]']
INNOCENT = [wrap(i, text) for i, text in enumerate(INSIDE)] + [
    '{"text":"MARK","v":%s}' % json.dumps(text, ensure_ascii=i % 2 == 0) for i, text in enumerate(TEXTS)] + [with_text(members) for members in (
        '"path":"/srv/data/x"', '"files":["/srv/data/a","/srv/data/b"]', '"content":"/* C */"', '"content":["../x",["/etc"]]', '"v":"__proto__"',
        '"content":"~/x","path":"/srv/data/x"', '"v":{"my__proto__":1}', '"n":12345678901234567890,"f":1.0,"e":1E2,"t":true,"x":null',
        '"a":%s' % ('{"a":' * 50 + '{"b":1}' + "}" * 50), '"a":"%s"' % ("b" * 1900), '"v":"\\ud83d\\ude00"', '"v":"a\\\\b"', '"v":{"":[{}, []]}')]


# ---- how servers read paths -------------------------------------------------

def unquoted(text):
    text = text.replace("%u", "\\u")
    data = urllib.parse.unquote_to_bytes(text)
    for form, plain in ((b"\xc0\xae", b"."), (b"\xc0\xaf", b"/"), (b"\xe0\x80\xae", b".")):
        data = data.replace(form, plain)
    text = data.decode("utf-8", "replace")
    return text.replace("\\u002e", ".").replace("\\u", "%u")


def without_invisible(text):
    return "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))


def compatible(text):
    return unicodedata.normalize("NFKC", text).replace("\u2215", "/").replace("\u2044", "/")


def without_uri(text):
    return urllib.parse.urlsplit(text).path if text.lower().startswith("file:") else text


DECODED = [lambda t: t, unquoted, lambda t: unquoted(unquoted(t)), lambda t: unquoted(unquoted(unquoted(t)))]
STEPS = [DECODED, [lambda t: t, compatible], [lambda t: t, without_invisible, lambda t: t.split("\0")[0]],
         [lambda t: t, lambda t: t.replace("\\", "/")], [lambda t: t, lambda t: t.strip().strip("\"'`").strip()],
         [lambda t: t, without_uri, lambda t: t[7:] if t[:7].lower() == "file://" else t],
         [lambda t: t, lambda t: "/".join(p.split(";")[0].strip().strip("\"'`").strip() for p in t.split("/")), lambda t: t.replace("../", "").replace("....", "..")]]


def resolved(text):
    """Parts, in their order, or None: it leads above where it begins."""
    found = []
    for part in text.split("/"):
        if part == ".." and not found:
            return None
        if part == "..":
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    return found


def leads_out(text):
    if text.startswith("/"):
        parts = resolved(text)
        return parts is None or parts[:2] != ["srv", "data"]
    is_home = text.startswith("~") and " " not in text and "~" not in text[1:]
    return is_home or text[1:3] in (":/", ":\\") or text.lower().startswith("file:/") or resolved(text) is None


def some_reader_leaves(text):
    read = {text}
    for step in STEPS:
        read = {function(t) for t in read for function in step}
    # A URI that is read as one is no relative path; the rest has been read in all ways.
    return any(leads_out(t) for t in read if not (text.lower().startswith("file:") and t.lower().startswith("file:")))


def strings_of(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return list(value) + [s for key, member in value.items() if key != "content" for s in strings_of(member)]
    return [s for member in value for s in strings_of(member)] if isinstance(value, list) else []


# ---- calls ------------------------------------------------------------------

def call(way, arguments, mark, method="tools/call", name="echo"):
    """What the client is told: a status, and what its requests are answered."""
    way.last_id += 2
    more = ',"_meta":%s' % json.dumps(meta()) if way.front == "stateless" else ""
    text = '{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"%s","arguments":%s%s}}' % (
        way.last_id, method, name, arguments.replace("MARK", mark), more)
    ids = [way.last_id]
    if way.is_batch:
        ids = [way.last_id - 1, way.last_id]
        text = '[{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"do","arguments":{"steps":[["text","%s"]]}}},%s]' % (
            ids[0], mark, text)
    fields = modern_fields({"method": method, "params": {"name": name}}, JSON) if way.front == "stateless" else [
        ("Content-Type", JSON), ("Accept", JSON)]
    body = text.encode()
    conn = way.t.conn(address=way.home.address)
    token = bearer(None if way.front == "admin" else way.good)
    conn.send(conn.head("POST", way.home.path, fields + token + way.home.fields, len(body)) + body)
    response = conn.response()
    body = response.read()
    conn.close()
    if response.status in (200, 202):
        answers = [way.home.sse.wait_answer(i) for i in ids] if way.home.sse else json.loads(body)
        answers = answers if isinstance(answers, list) else [answers]
        eq(sorted(a["id"] for a in answers), ids, "ids of the answers")
        return " ".join([str(response.status)] + sorted({told(a) for a in answers}))
    return "%d %d" % (response.status, json.loads(body)["error"]["code"])


def recorded(way, prefix):
    """{number: messages} of what reached the server with such marks."""
    found = {}
    for pid, _ in way.t.daemon.records_of("main"):
        for message in way.t.daemon.messages(pid):
            text = json.dumps(message)
            if message.get("method") != "initialize" and prefix in text:
                found.setdefault(int(text.split(prefix)[1].split(".")[0]), []).append(message)
    return found


def every_argument(t, name):
    way = Way(t, name, SERVERS)
    taken = ("202" if way.home.sse else "200") + " taken"
    for i, arguments in enumerate(ATTACKS):
        eq(call(way, arguments, "attack-%d." % i), REFUSED[name], arguments[:120])
        if i % 50 == 0:
            eq(call(way, '{"text":"MARK"}', "between-%d." % i), taken, "what is allowed, between")
    for i, arguments in enumerate(INNOCENT):
        eq(call(way, arguments, "innocent-%d." % i), taken, arguments[:120])
    eq(recorded(way, "attack-"), {}, "of what is refused nothing arrives")
    arrived = recorded(way, "innocent-")
    eq(sorted(arrived), list(range(len(INNOCENT))), "all else arrives, and so would have what came before")
    for i, arguments in enumerate(INNOCENT):
        sent = [m for m in arrived[i] if m["params"]["name"] == "echo"]
        eq([m["params"]["arguments"] for m in sent], [json.loads(arguments.replace("MARK", "innocent-%d." % i))], "as it was sent")
        left = [s for s in strings_of(sent[0]["params"]["arguments"]) if some_reader_leaves(s)]
        eq(left, [], "some server would leave the root for what came with " + arguments[:120])


def for_way(name):
    def by_way(t):
        every_argument(t, name)
    by_way.__name__ = "by_" + name
    by_way.__doc__ = "SEC-54 SEC-55: what the operator forbids in arguments reaches no server by %s, and all else does." % name.replace("_", " ")
    return case(daemon=False, deadline=90)(by_way)


for _name in WAYS:
    globals()["by_" + _name] = for_way(_name)


@case(daemon=False)
def prompts_have_arguments_too(t):
    """SEC-54 SEC-55: the same for prompts/get; other methods may hold what they like."""
    way = Way(t, "streamable", SERVERS)
    for i, arguments in enumerate(ATTACKS[-40:]):
        eq(call(way, arguments, "attack-%d." % i, "prompts/get", "echo"), REFUSED[way.name], arguments[:120])
    call(way, '{"a":"secret","text":"MARK"}', "innocent-0.", "prompts/get", "p")
    call(way, '{"a":"/etc","text":"MARK"}', "innocent-1.", "x/other", "p")
    eq(call(way, '{"a":"b","text":"MARK"}', "attack-900.", "prompts/get", "other"), REFUSED[way.name], "by its name")
    eq(sorted(recorded(way, "innocent-")), [0, 1], "what arrived")
    eq(recorded(way, "attack-"), {}, "nothing else")


@case(daemon=False)
def what_only_looks_like_a_call(t):
    """SEC-50: spellings of the method, and notifications, are no way round."""
    way = Way(t, "streamable", SERVERS)
    for method in ("TOOLS/CALL", "Tools/call", "tools/call ", "\uff54ools/call", "Prompts/get", "tools\uff0fcall", "tools/call\u200b"):
        eq(call(way, '{"path":"/etc","text":"MARK"}', "attack-0.", method), REFUSED[way.name], method)
    for i, (value, status) in enumerate((("/etc", 400), ("x", 202), ("~/x", 400), ("y", 202))):
        message = notification("tools/call", {"name": "echo", "arguments": {"text": "note-%d." % i, "v": value}})
        eq(way.send(way.home, message, way.good).response().status, status, value)
    message = notification("tools/call", [{"name": "echo", "arguments": {"text": "note-4."}}])
    eq(way.send(way.home, message, way.good).response().status, 400, "an array of params")
    wait_for(lambda: 3 in recorded(way, "note-"), 3, "the last one")
    eq(sorted(recorded(way, "note-")), [1, 3], "what arrived")
    eq(recorded(way, "attack-"), {}, "what arrived")


@case(daemon=False)
def a_hard_pattern_is_bounded(t):
    """SEC-14 SEC-54: of an expression that backtracks without end the outcome is a refusal, and others are served."""
    way = Way(t, "streamable", SERVERS)
    for length in (20, 500, 1900):
        body = '{"text":"MARK","v":"%sb"}' % ("z" * length)
        is_told = call(way, body, "hard-%d." % length)
        ok(length < 500 or is_told == REFUSED[way.name], "told", length, is_told)
    eq(call(way, '{"text":"MARK"}', "between-0."), "200 taken", "afterwards")
    ok(set(recorded(way, "hard-")) <= {20}, "what cannot be checked does not arrive")


@case(daemon=False)
def the_refusal_tells_no_pattern(t):
    """SEC-51: the kind of the rule, and nothing of what it says."""
    t.start(SERVERS)
    client = t.session("main")
    for arguments, kind in (({"q": "drop table"}, "a text that is not allowed"), ({"v": "/etc"}, "a path that is not allowed"),
                            ({"__proto__": 1}, "a member whose name is not allowed"), ({"v": "b" * 3000}, "longer than is allowed")):
        answer = client.ask("tools/call", {"name": "echo", "arguments": arguments})
        message = answer["error"]["message"]
        ok(message.startswith("Invalid params: the arguments ") and kind in message, message)
        ok(not any(word in message for word in ("drop", ROOT, "proto", "2000")), message)


@case(daemon=False)
def relative_paths_begin_at_cwd(t):
    """SEC-55: where the server has a cwd inside a root, relative paths are judged from there."""
    root = t.directory()
    rules = {"paths": {"roots": [root], "members": ["path"]}}
    t.start({"main": {"script": {}, "cwd": root, "tools": {"arguments": rules}}})
    client = t.session("main")
    for path, is_taken in (("x", True), ("./x", True), ("", True), ("a/../b", True), ("..", False), ("a/../../b", False), ("%2e%2e", False)):
        answer = client.ask("tools/call", {"name": "echo", "arguments": {"path": path, "text": "x"}})
        eq("result" in answer, is_taken, path)


@case(daemon=False)
def the_readers_see(t):
    """SEC-55: what judges here leaves the root for most attacks, and for nothing that is innocent; and there are enough of both."""
    ok(len(ATTACKS) >= 250 and len(INNOCENT) >= 130, len(ATTACKS), len(INNOCENT))
    left = [text for text in OUTSIDE if some_reader_leaves(text)]
    ok(len(left) > len(OUTSIDE) * 3 // 4, "found", len(left), "of", len(OUTSIDE))
    eq([text for text in INSIDE + TEXTS if some_reader_leaves(text)], [], "innocent")
