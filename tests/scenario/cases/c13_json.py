# SPDX-License-Identifier: Apache-2.0
"""JSON and JSON-RPC: what was sent is what arrives, and nothing is read twice. threats.md §5."""
import json
import time

import mcp
from harness import case, eq, ok, within

SERVERS = {"main": {}}


def raw_call(t, s, text):
    e = s.post(text)
    return e.status, json.loads(e.raw[-1]) if e.raw else None


def refused(t, s, text, code):
    status, message = raw_call(t, s, text)
    eq(status, 400, text[:200])
    eq(message["error"]["code"], code, text[:200])
    return message


ARGUMENTS = (
    '{"n":9007199254740993,"big":123456789012345678901234567890,"f":1.0,"e":1E2,"m":-0,"d":0.10000000000000001}',
    '{"tiny":1e-400,"huge":1e400,"neg":-1.5e-7}',
    '{"s":"\\u0000\\u001f\\"\\\\\\/\\b\\f\\n\\r\\t","lone":"\\ud800x","pair":"\\ud83d\\ude00","raw":"\u00e9\U0001f600"}',
    '{"same":1,"same":2}', '{"":{"":[]},"a":{},"b":[],"c":null,"d":true}', '{"  spaced" :   [ 1 , 2 ]  }',
    '{"jsonrpc":"1.0","id":99,"method":"x","params":{"id":1},"_meta":{"progressToken":5}}',
)


@case
def arguments_arrive_byte_for_byte(t):
    """SEC-43 RPC-04: lexemes of numbers and strings in arguments reach the child unchanged."""
    s = t.session()
    pid = s.pid()
    for arguments in ARGUMENTS:
        text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%s,"x-other":[1.50]}}' % arguments
        status, message = raw_call(t, s, text)
        eq(status, 200, arguments)
        line = t.daemon.record(pid).splitlines()[-1]
        ok(arguments.encode() in line, "arguments at the child", arguments, line)
        ok(b'"x-other":[1.50]' in line, "unknown member", line)


@case
def results_arrive_byte_for_byte(t):
    """SEC-43 RPC-04: lexemes of results and unknown members reach the client unchanged."""
    s = t.session()
    for value in ARGUMENTS:
        for stream in (False, True):
            steps = [["line", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"v":%s,"_meta":{"a/b":1.0}}}' % value]]
            e = s.start_do(*([["progress", 1]] * stream + steps), token=1)
            e.rest()
            ok(('"v":%s' % value).encode() in e.raw[-1], "result at the client", value, e.raw[-1])
            ok(b'"_meta":{"a/b":1.0}' in e.raw[-1], "_meta", e.raw[-1])


@case
def errors_arrive_unchanged(t):
    """RPC-04 bridging 2.1: a child's error object passes as it is, code, message and data."""
    s = t.session()
    for text in ('{"code":-32602,"message":"caf\\u00e9 \u00e9","data":{"n":1.0,"x":[1E2]}}',
                 '{"code":17,"message":"","data":null}', '{"code":-32002,"message":"no such resource","data":{"uri":"a"}}',
                 '{"code":-32042,"message":"url","data":{"elicitations":[]}}'):
        e = s.start_do(["line", '{"jsonrpc":"2.0","id":@ID@,"error":%s}' % text])
        e.rest()
        eq(e.status, 200)
        ok(('"error":' + text).encode() in e.raw[-1], "error at the client", text, e.raw[-1])


@case
def resource_not_found_of_old_servers(t):
    """BACK-MSG-08: -32002 from a child reaches a session client as it is."""
    s = t.session()
    answer = s.do(["error", -32002, "Resource not found", {"uri": "res://x"}])
    eq(answer["error"]["code"], -32002)


@case
def strict_json_table(t):
    """SEC-40: texts that two parsers could read differently are refused with -32700."""
    s = t.session()
    m = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%s}}'
    for value in ("NaN", "Infinity", "-Infinity", "+1", ".5", "1.", "01", "0x1", "1e", "- 1", "'a'", '"\t"', '"\\x"',
                  '"\\u12"', '"a', "tru", "True", "{a:1}", "[1,]", '{"a":1,}', "[1 2]", "/* c */ 1", "\x0b1", "\u00a01"):
        refused(t, s, m % value, -32700)
    for raw in (b"\x00", b"\x80", b"\xc3", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"):
        refused(t, s, (m % '"@"').encode().replace(b"@", raw), -32700)
    refused(t, s, (m % "1").encode() + b"\0", -32700)


@case
def look_alike_members_are_refused(t):
    """SEC-41 RPC-08: names that differ from ours by case, or stand twice under different escapes, are refused."""
    s = t.session()
    for text in ('{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}',
                 '{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}',
                 '{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}',
                 '{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"\\u0070arams":{}}',
                 '{"jsonrpc":"2.0","id":1,"method":"ping","Meth\\u006fd":"tools/list"}',
                 '{"jsonrpc":"2.0","id":1,"method":"ping","meth\\u006fd":"tools/list"}'):
        refused(t, s, text, -32600)
    for text in ('{"jsonrpc":"2.0","id":1,"method":"ping","\\u0070arams":{}}', '{"jsonrpc":"2.0","id":1,"meth\\u006fd":"ping"}'):
        eq(raw_call(t, s, text)[0], 200, text)


@case
def nul_does_not_shorten(t):
    """SEC-42: a name with \\u0000 is not the name before it."""
    s = t.session()
    status, message = raw_call(t, s, '{"jsonrpc":"2.0","id":1,"method":"ping\\u0000x"}')
    ok(status == 400 or message["error"]["code"] in (-32601, -32600), "method", status, message)
    status, message = raw_call(t, s, '{"jsonrpc":"2.0","id":"a\\u0000b","method":"ping"}')
    eq((status, message["id"]), (200, "a\0b"))
    e = s.start_do(["sleep", 0.8], ["text", "done"], request_id="a")
    s.cancel("a\0b")
    eq(e.final()["result"]["content"][0]["text"], "done", "cancel of another id")


@case
def many_keys_are_cheap(t):
    """SEC-44: 50,000 keys cost no noticeable time."""
    s = t.session()
    body = json.dumps({"name": "echo", "arguments": {"k%d" % i: i for i in range(50000)}})
    started = time.monotonic()
    status, message = raw_call(t, s, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % body)
    eq(status, 200)
    within(started, 3)


@case
def ids_of_requests(t):
    """FRONT-POST-11 SEC-45: strings and integers, echoed with the same lexeme."""
    s = t.session()
    for lexeme in ('0', '1', '-1', '9007199254740993', '9223372036854775807', '-9223372036854775808', '"1"', '""',
                   '"\\u0041\u00e9"', '"a\\/b"', '"%s"' % ("x" * 200)):
        for method in ("ping", "tools/list"):
            e = s.post('{"jsonrpc":"2.0","id":%s,"method":"%s"}' % (lexeme, method))
            eq(e.status, 200, lexeme)
            ok(('"id":%s' % lexeme).encode() in e.raw[-1].replace(b'"id": ', b'"id":'), "id", lexeme, e.raw[-1])


@case
def bad_ids_are_refused(t):
    """FRONT-POST-11 SEC-45: null, fractions, booleans, containers and very long ids are 400/-32600."""
    s = t.session()
    for lexeme in ("null", "1.5", "1.0", "1e3", "true", "false", "[]", "{}", "[1]", '"%s"' % ("x" * 5000)):
        message = refused(t, s, '{"jsonrpc":"2.0","id":%s,"method":"ping"}' % lexeme, -32600)
        ok("id" not in message, "id echoed", message)


@case
def envelope_rules(t):
    """RPC-01: version, result or error, integer codes; a notification gets no response."""
    s = t.session()
    for text in ('{"id":1,"method":"ping"}', '{"jsonrpc":2.0,"id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1}',
                 '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
                 '{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}', '{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}',
                 '{"jsonrpc":"2.0","id":1,"error":"x"}', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
                 '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}'):
        refused(t, s, text, -32600)
    e = s.post('{"jsonrpc":"2.0","method":"no/such/notification"}')
    eq((e.status, e.messages), (202, []))


@case
def what_the_gateway_writes_is_well_formed(t):
    """RPC-01 RPC-05: gateway errors carry jsonrpc, an integer code and a text; no reserved code of others."""
    s = t.session()
    for text in ("{", "{}", '{"jsonrpc":"2.0","id":1,"method":"ping","params":1}', "[]"):
        status, message = raw_call(t, s, text)
        eq(message["jsonrpc"], "2.0")
        ok(message["error"]["code"] in (-32700, -32600), "code", message)
        ok("result" not in message, "result", message)


@case
def lines_to_the_child_are_clean(t):
    """BACK-FRAME-01 BACK-FRAME-02: one compact message a line; separators escaped; nothing else."""
    s = t.session()
    pid = s.pid()
    s.post(b'\n{"jsonrpc" : "2.0" ,\r\n"id":1,"method":"tools/call","params":{"name":"echo",\n"arguments":{"text":"\xc2\x85 \xe2\x80\xa8 \xe2\x80\xa9 \xc3\xa9"}}}\n')
    s.notify("notifications/vendor", {"text": "\u2028"})
    s.respond("nothing")
    eq(s.ask("ping")["result"], {})
    s.echo("after")
    data = t.daemon.record(pid)
    ok(data.endswith(b"\n"), "ends with", data[-40:])
    for line in data[:-1].split(b"\n"):
        ok(line and b"\r" not in line, "line", line)
        for raw in (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9"):
            ok(raw not in line, "raw separator", line)
        eq(json.loads(line)["jsonrpc"], "2.0")
    texts = [m["params"]["arguments"]["text"] for m in t.daemon.messages(pid)
             if m.get("params", {}).get("name") == "echo"]
    eq(texts[0], "\u0085 \u2028 \u2029 \u00e9")
    eq([m for m in t.daemon.messages(pid) if "method" not in m], [], "responses at the child")


@case
def ids_at_the_child(t):
    """BACK-FRAME-08 RPC-02: positive integers, increasing, below 2^31; progress tokens likewise."""
    s = t.session()
    pid = s.pid()
    for i in range(5):
        s.ask("tools/call", {"name": "echo", "arguments": {}, "_meta": {"progressToken": "tok-%d" % i}}, request_id="id-%d" % i)
    requests = [m for m in t.daemon.messages(pid) if "id" in m]
    ids = [m["id"] for m in requests]
    ok(all(type(i) is int and 0 < i < 2 ** 31 for i in ids), "ids", ids)
    ok(all(a < b for a, b in zip(ids, ids[1:])), "ids increase", ids)
    tokens = [m["params"]["_meta"]["progressToken"] for m in requests if m.get("params", {}).get("name") == "echo"]
    ok(len(tokens) == 5 and all(type(x) is int and 0 < x < 2 ** 31 for x in tokens), "tokens", tokens)
    eq(len(set(tokens)), 5, "tokens differ")


@case
def meta_of_clients(t):
    """BACK-MSG-06 RPC-07: trace context and vendor keys pass; keys of the modern era do not."""
    s = t.session()
    pid = s.pid()
    meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b",
            "baggage": "k=v", "com.example/x": {"y": [1]}, "io.modelcontextprotocol/protocolVersion": "2025-06-18",
            "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"}}
    answer = s.ask("tools/call", {"name": "echo", "arguments": {"text": "m"}, "_meta": meta})
    eq(answer["result"]["content"][0]["text"], "m")
    seen = t.daemon.messages(pid)[-1]["params"]["_meta"]
    for key in ("traceparent", "tracestate", "baggage", "com.example/x"):
        eq(seen.get(key), meta[key], key)
    eq([k for k in seen if k.startswith("io.modelcontextprotocol/")], [], "modern keys at the child")


@case
def meta_of_children(t):
    """RPC-07 RPC-04: _meta of results and notifications passes unchanged."""
    s = t.session()
    meta = {"traceparent": "00-x", "com.example/x": [1.0]}
    e = s.start_do(["notify", "notifications/progress", {"progressToken": 0, "progress": 0}],
                   ["result", {"content": [], "_meta": meta}])
    eq(e.final()["result"]["_meta"], meta)


@case
def error_texts_tell_nothing_of_the_machine(t):
    """SEC-51: errors of every kind hold no path, argv, address, pointer or child output."""
    s = t.session()
    bodies = ["{", "[]", "{}", '{"jsonrpc":"2.0","id":1}', mcp.encode(mcp.request(1, "tools/call", {"name": "do", "arguments": {
        "steps": [["stderr", "secret words\n"], ["exit", 3]]}}))]
    for body in bodies:
        e = s.post(body)
        text = b"".join(e.raw)
        for leak in (b"secret", b"child.py", b"__pycache__", b"/tmp", b"python", t.daemon.dir.encode(), b"127.0.0.1"):
            ok(leak not in text, "error text", text)
