# SPDX-License-Identifier: Apache-2.0
"""
How long one message holds up all others: the longest turn of the loop (mcpgated_loop_turn_max_seconds) for the worst of each
kind, as large as limits.message and limits.response let it be.
"""
import json
import os
import re
import sys

MIB = 1 << 20
# A turn may take so long for each MiB of its message: what grows faster than the message fails.
ALLOWED_MS = 60
ROUNDS = 3  # the best counts: the machine may be busy
REQUEST, RESPONSE = 4 * MIB - 4096, 16 * MIB - 4096


def filled(limit, head, one, tail):
    """head, as many of one(0), one(1)… with commas as fit, tail."""
    parts, size, n = [], len(head) + len(tail), 0
    while True:
        part = one(n)
        size += len(part.encode()) + 1
        if size > limit:
            return head + ",".join(parts) + tail
        parts.append(part)
        n += 1


def tools(one):
    return filled(RESPONSE, '{"tools":[', one, "]}")


def text_result(text):
    return '{"content":[{"type":"text","text":"%s"}]}' % (text * ((RESPONSE - 64) // len(text.encode())))


ONE_TOOL = '{"tools":[{"name":"t","description":"%s","inputSchema":{"type":"object"%s}}]}'
# What a server answers: to tools/list, and to a call of the tool `t`.
LISTS = {
    "plain": lambda: ONE_TOOL % ("x", ""),
    "many tools": lambda: tools(lambda n: '{"name":"t%d","inputSchema":{"type":"object"}}' % n),
    "names alike": lambda: tools(lambda n: '{"name":"%s%07d","inputSchema":{"type":"object"}}' % ("n" * 200, n)),
    "a long description": lambda: ONE_TOOL % ("word " * (RESPONSE // 5 - 40), ""),
    "names of tools in a description": lambda: tools(
        lambda n: '{"name":"tool_%d","description":"see tool_%d of other","inputSchema":{"type":"object"}}' % (n, n + 1)),
    "a wide schema": lambda: ONE_TOOL % ("x", ',"properties":{%s}' % filled(
        RESPONSE - 200, "", lambda n: '"p%07d":{"type":"string"}' % (n * 7919 % 1000003), "")),
    "deep schemas": lambda: tools(lambda n: '{"name":"d%d","inputSchema":{"type":"object","x":%s%s}}' % (n, "[" * 100, "]" * 100)),
    "escapes": lambda: ONE_TOOL % ("\\u0041" * (RESPONSE // 6 - 40), ""),
}
RESULTS = {
    "a text": lambda: text_result("lorem ipsum "),
    "letters beyond ASCII": lambda: text_result("\u00fc\u4f60\U0001f600"),
    "controls": lambda: text_result("a\\u001b[31m\u200bb"),
    "nearly a secret": lambda: text_result("key-aaaaaaaaaaaaaaaaaaaa "),
    "secrets in many strings": lambda: '{"content":[],"structuredContent":{"a":%s}}' % filled(
        RESPONSE - 100, "[", lambda n: '"key-%040d"' % n, "]"),
    "many members": lambda: '{"content":[],"structuredContent":%s}' % filled(
        RESPONSE - 100, "{", lambda n: '"m%07d":%d' % (n, n), "}"),
    "brackets": lambda: '{"content":[],"structuredContent":{"a":%s}}' % filled(RESPONSE - 100, "[", lambda n: "[]", "]"),
}
# What a client sends: the arguments of a call.
ARGUMENTS = {
    "a text": lambda: '{"a":"%s"}' % ("lorem ipsum " * (REQUEST // 12 - 20)),
    "many members": lambda: filled(REQUEST - 400, "{", lambda n: '"m%07d":%d' % (n, n), "}"),
    "members alike": lambda: filled(REQUEST - 400, "{", lambda n: '"%s%07d":0' % ("n" * 200, n), "}"),
    "members beyond ASCII": lambda: filled(REQUEST - 400, "{", lambda n: '"\uff41\uff42%d":0' % n, "}"),
    "paths": lambda: filled(REQUEST - 400, '{"a":[', lambda n: '"/srv/a/../%%2e%%2e/%d"' % n, "]}"),
    "a long path": lambda: '{"a":"/srv%s"}' % ("/a/.." * ((REQUEST - 400) // 5)),
    "encoded paths": lambda: '{"a":"%s"}' % ("%252e%252e%252f" * ((REQUEST - 400) // 15)),
    "nearly a pattern": lambda: filled(REQUEST - 400, '{"a":[', lambda n: '"drop %s"' % ("\\t" * 200), "]}"),
    "one of another type": lambda: filled(REQUEST - 400, '{"a":[', lambda n: '"%d"' % n, "]}"),
    "brackets": lambda: filled(REQUEST - 400, '{"a":[', lambda n: "[]", "]}"),
    "escapes": lambda: '{"a":"%s"}' % ("\\u0041" * (REQUEST // 6 - 80)),
}


def serve(listed, result):
    """An MCP server on stdio."""
    text = {"tools/list": LISTS[listed](), "tools/call": RESULTS[result]() if result else '{"content":[]}'}
    text["initialize"] = ('{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
                          '"serverInfo":{"name":"worst","version":"1"}}')
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            sys.stdout.buffer.write(('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (
                json.dumps(message["id"]), text.get(message["method"], "{}"))).encode())
            sys.stdout.buffer.flush()


RULES = {
    "tools": {"arguments": {"deny_patterns": {"*": ["(?i)drop\\s+table", "a+b+c"]}, "forbidden_keys": ["secret*"], "paths": {"roots": ["/srv"]}}},
    "pin": "warn", "sanitize": {"controls": "mark", "invisible": "strip"}, "redact": ["key-[a-z]{20}[0-9]+", "(?i)password: *\\S+"],
}
SCHEMA = {"tools": {"arguments": {"schema": "check"}}}


def longest_turn(scratch, rules, listed, result, message):
    """In ms, and how large the message was that it took so long for."""
    import common
    import harness
    import mcp
    server = dict({"command": sys.executable, "args": [__file__, listed, result], "request_timeout": "60s"}, **rules)
    daemon = harness.Daemon({"main": server}, {"log": {"level": "error"}, "audit": {"to": os.path.join(scratch, "audit"), "arguments": True}})
    try:
        client = common.Client(daemon)
        client.open()
        fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH), ("Mcp-Session-Id", client.id), ("MCP-Protocol-Version", mcp.C)]
        response = client.conn.request("POST", client.path, fields, message.encode())
        answer = response.read()
        text = common.wire.Conn(daemon.admin).request("GET", "/metrics").read().decode()
        return 1000 * float(re.search(r"^mcpgated_loop_turn_max_seconds (\S+)", text, re.M).group(1)), max(len(message), len(answer))
    finally:
        common.stop(daemon)


def rows():
    call = '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"t","arguments":%s}}'
    for kind in LISTS:
        for named, rules in (("", {}), (", rules", RULES)):
            yield "list: " + kind + named, rules, kind, "", '{"jsonrpc":"2.0","id":5,"method":"tools/list"}'
    for kind in RESULTS:
        for named, rules in (("", {}), (", rules", RULES)):
            yield "result: " + kind + named, rules, "plain", kind, call % "{}"
    for kind, arguments in ARGUMENTS.items():
        for named, rules in (("", {}), (", rules", RULES), (", schema", SCHEMA)):
            yield "arguments: " + kind + named, rules, "plain", "", call % arguments()


def part_turns(options, child):
    import common
    slow = []
    for name, *row in rows():
        for _ in range(ROUNDS):
            took, size = longest_turn(options.scratch, *row)
            if took <= ALLOWED_MS * max(size / MIB, 1):
                break
        else:
            slow.append("%s: %.0f ms" % (name, took))
        print("turns: %-50s %5.1f MiB, longest turn %4.0f ms" % (name, size / MIB, took), flush=True)
    if slow:
        raise common.Problem("; ".join(slow))


if __name__ == "__main__":
    serve(*sys.argv[1:])
