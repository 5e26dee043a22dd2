# SPDX-License-Identifier: Apache-2.0
"""What children write: garbage, framing, forged and late answers. requirements §17, threats.md §7."""
import json
import time

import mcp
from harness import case, eq, is_alive, ok, rss_kib, seconds_since, wait_for, within

BANNER = [["write", "Server listening!\n\n  \t \r\n{}\n[]\nnull\n42\n\"text\"\n{\"a\":1}\n"]]
SERVERS = {
    "main": {},
    "banner": {"start": BANNER, "init": BANNER + [["answer"]]},
    "glued": {"start": [["write", "Starting server... "]]},
    "bom": {"start": [["hex", "efbbbf"]]},
    "short": {"script": {}, "request_timeout": "2s"},
    "old": {"init": [["line", '{"id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}}']]},
    "array": {"init": [["line", '[{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}}]']]},
}
CONFIG = {"limits": {"response": "256KiB"}}
OK = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"fine"}]}}'


def fine(answer):
    eq(answer["result"]["content"][0]["text"], "fine")


@case
def garbage_is_skipped(t):
    """BACK-FRAME-03 REL-20: blank, CRLF, binary, scalar and foreign lines are skipped; the call completes."""
    s = t.session()
    for junk in ("\n", "\r\n", "   \n", "junk\n", "{}\n", "[]\n", "null\n", "7\n", '"x"\n', '{"a":1}\n', "{\n", "}\n",
                 '{"jsonrpc":"2.0"}\n', '{"jsonrpc":"2.0","id":5}\n', "\u2028\n", "{'a':1}\n", "\x1b[31mred\x1b[0m\n", "\x00\n"):
        fine(s.do(["write", junk], ["line", OK]))
    fine(s.do(["hex", "fffe00018010c3280a"], ["line", OK]))
    t.daemon.wait_log("child_garbage")


@case
def garbage_is_logged_at_a_limited_rate(t):
    """BACK-FRAME-03 REL-20 REL-48: thousands of garbage lines are few log lines, escaped."""
    s = t.session()
    before = len(t.daemon.log("child_garbage"))
    fine(s.do(["fill", "\x1b[2Jgarbage \x07\n", 20000], ["line", OK]))
    time.sleep(0.2)
    ok(len(t.daemon.log("child_garbage")) - before < 1000, "lines", len(t.daemon.log("child_garbage")) - before)
    ok(not any("\x1b" in l or "\x07" in l for l in t.daemon.lines), "raw control in the log")


@case
def line_ends_and_blanks(t):
    """BACK-FRAME-03: CRLF, blanks around a message and a BOM are stripped."""
    s = t.session()
    for form in (OK + "\r\n", "  \t" + OK + "  \r\n", "\ufeff" + OK + "\n", "\n\n" + OK + "\n"):
        fine(s.do(["write", form]))


@case
def banners_do_not_disturb_the_handshake(t):
    """BACK-FRAME-03 BACK-FRAME-04: banner lines, {} and a banner without newline before the first answer."""
    for server in ("banner", "glued", "bom"):
        s = t.session(server)
        eq(s.echo("x"), "x", server)


@case
def salvage_after_a_banner(t):
    """BACK-FRAME-04: text without newline before a message does not hide it."""
    s = t.session()
    fine(s.do(["write", "progress: 50%"], ["line", OK]))
    fine(s.do(["write", "{half "], ["line", OK]))


@case
def arrays_are_unpacked(t):
    """BACK-FRAME-04: an array line holds several messages, also in the handshake."""
    s = t.session()
    messages = '[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1}},%s]' % OK
    e = s.start_do(["line", messages], token="t")
    first, last = e.rest()
    eq(first["params"]["progressToken"], "t")
    fine(last)
    eq(t.session("array").result["result"]["serverInfo"]["name"], "a")


@case
def missing_jsonrpc_member(t):
    """BACK-FRAME-04: a child that leaves out `jsonrpc` is understood; the client gets a correct message."""
    line = '{"id":@ID@,"result":{"content":[{"type":"text","text":"fine"}]}}'
    answer = t.session("old").do(["line", line])
    fine(answer)
    eq(answer.get("jsonrpc"), "2.0")
    answer = t.session().do(["line", line.replace("fine", "of a log")], ["line", OK])
    fine(answer)  # that server writes the member


@case
def log_lines_in_json(t):
    """BACK-FRAME-04: a log line that has the id of a call is no answer to it, with or without a result."""
    for line in ('{"level":"info","id":@ID@,"result":"started"}', '{"level":"error","id":@ID@,"error":"x"}', '{"id":@ID@,"msg":"x"}'):
        for server in ("main", "old"):
            answer = OK if server == "main" else OK.replace('"jsonrpc":"2.0",', "")
            fine(t.session(server).do(["line", line], ["line", answer]))


@case
def string_ids_match(t):
    """BACK-FRAME-05: an id that comes back as a string still matches."""
    s = t.session()
    fine(s.do(["line", OK.replace("@ID@", '"@ID@"')]))


@case
def null_id_error_fails_the_only_call(t):
    """BACK-FRAME-05: an error with id null ends the call if exactly one is in flight, else none."""
    line = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    s = t.session()
    pid = s.pid()
    answer = s.do(["line", line])
    ok("error" in answer, "answer", answer)
    other = s.start_do(["sleep", 2], ["text", "other"])
    wait_for(lambda: "other" in str(t.daemon.messages(pid)), what="the other call")
    e = s.start_do(["line", line], ["sleep", 0.2], ["text", "mine"])
    eq(e.final()["result"]["content"][0]["text"], "mine")
    eq(other.final()["result"]["content"][0]["text"], "other")


@case
def split_and_joined_writes(t):
    """BACK-FRAME-03: a message in single bytes, and many messages in one write, are the same."""
    s = t.session()
    text = '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"fine"}]}}\n'
    pid = s.pid()
    steps = []
    for i in range(0, len(text), 20):
        steps += [["write", text[i:i + 20]], ["sleep", 0.01]]
    # @ID@ must not be cut: the piece that holds it is 20 bytes long
    if not any("@ID@" in step[1] for step in steps if step[0] == "write"):
        steps = [["write", text[:10]], ["sleep", 0.05], ["write", text[10:50]], ["sleep", 0.05], ["write", text[50:]]]
    fine(s.do(*steps))
    eq(s.pid(), pid)


@case
def several_values_on_a_line(t):
    """REL-21: pretty-printed or doubled text is dropped; the next line starts clean."""
    s = t.session("short")
    fine(s.do(["write", '{\n  "jsonrpc": "2.0",\n  "method": "x"\n}\n'], ["line", OK]))
    fine(s.do(["write", '{"jsonrpc":"2.0","method":"notifications/a"}{"jsonrpc":"2.0","method":"notifications/b"}\n'], ["line", OK]))
    answer = s.do(["write", '{\n"jsonrpc":"2.0",\n"id":@ID@,\n"result":{}}\n'])
    eq(answer["error"]["data"]["reason"], "timeout", "a pretty-printed answer is none")
    eq(s.echo("x"), "x")


@case
def last_line_without_newline(t):
    """BACK-FRAME-06 REL-28: an answer without newline before the end of output is delivered."""
    s = t.session()
    pid = s.pid()
    fine(s.do(["write", OK], ["exit", 0]))
    eq(s.echo("again"), "again")
    ok(s.pid() != pid, "same process")


@case(deadline=25)
def line_over_the_limit(t):
    """BACK-FRAME-06 REL-22: too long a line ends the child; the call fails with child_protocol_error."""
    for newline in (True, False):
        s = t.session()
        pid = s.pid()
        before = rss_kib(t.daemon.gateway)
        answer = s.do(["write", '{"jsonrpc":"2.0","id":@ID@,"result":"'], ["fill", "x", 64 << 20], ["write", "\"}\n" if newline else ""],
                      ["sleep", 20])
        eq((answer["error"]["code"], answer["error"]["data"]["reason"]), (-32603, "child_protocol_error"))
        ok(rss_kib(t.daemon.gateway) - before < 8192, "memory", before, rss_kib(t.daemon.gateway))
        wait_for(lambda: not is_alive(pid), 5, "end of the child")
        eq(s.echo("again"), "again")


@case
def line_at_the_limit(t):
    """BACK-FRAME-06: a line just under the limit passes."""
    s = t.session()
    text = s.do_text(["write", '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"'],
                     ["fill", "y", 250 << 10], ["write", '"}]}}\n'])
    eq(len(text), 250 << 10)


@case
def stray_and_double_answers(t):
    """REL-23 SEC-06 BACK-SEC-01: unknown, doubled and forged ids change nothing for anybody."""
    s, other = t.session(), t.session()
    g = s.get()
    waiting = other.start_do(["sleep", 0.8], ["text", "mine"])
    forged = [["line", '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"forged"}]}}' % i] for i in range(20, 60)]
    e = s.start_do(*forged, ["line", OK], ["line", OK], ["line", OK.replace("@ID@", "-1")], ["line", OK.replace("@ID@", '"nope"')],
                   ["line", OK.replace("@ID@", "1.5")], ["line", OK.replace("@ID@", "true")],
                   ["line", OK.replace("@ID@", "99999999999999999999")])
    eq(len(e.rest()), 1)
    eq(waiting.final()["result"]["content"][0]["text"], "mine")
    g.nothing(0.2)
    eq(s.echo("x"), "x")


@case
def malformed_answers_fail_their_call(t):
    """REL-23: a malformed answer with a live id is -32603 for that call, at once."""
    s = t.session()
    for line in ('{"jsonrpc":"2.0","id":@ID@,"result":{"x":NaN}}', '{"jsonrpc":"2.0","id":@ID@,"method":"m","result":{}}',
                 '{"jsonrpc":"2.0","id":@ID@,"result":{},"error":{"code":1,"message":"x"}}',
                 '{"jsonrpc":"2.0","id":@ID@,"error":"text"}', '{"jsonrpc":"2.0","id":@ID@,"error":{"message":"no code"}}'):
        started = time.monotonic()
        answer = s.do(["line", line])
        eq(answer["error"]["code"], -32603, line)
        within(started, 2)


@case
def notifications_with_an_id_that_is_none(t):
    """BACK-FRAME-04 UTIL-ROOT-01: what has no id to be answered with reaches the client as a notification."""
    s = t.session()
    for lexeme in ("null", "1.5", "7e0"):
        e = s.start_do(["line", '{"jsonrpc":"2.0","id":%s,"method":"notifications/message","params":{"level":"info","data":1}}' % lexeme],
                       ["line", '{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"messages":[]}}' % lexeme],
                       ["text", "x"])
        for message in e.rest()[:-1]:
            ok("id" not in message, "a notification", message)


@case
def late_answers(t):
    """REL-23 CXL-06: an answer after the time-out is dropped and does not match a later call."""
    s = t.session("short")
    e = s.start_do(["sleep", 2.4], ["text", "late"], request_id=1)
    eq(e.final()["error"]["data"]["reason"], "timeout")
    e = s.start_do(["sleep", 1], ["text", "mine"], request_id=1)
    eq(e.final()["result"]["content"][0]["text"], "mine")


def beside(quiet, noisy, what, steps):
    """The slowest call of `quiet` while the child of `noisy` does the steps."""
    e = noisy.start_do(*steps, ["text", "done"])
    slowest, started, conn = 0, time.monotonic(), quiet.new_conn()
    while time.monotonic() - started < 1:
        began = time.monotonic()
        eq(quiet.echo("x", conn=conn), "x")
        time.sleep(0.005)
        slowest = max(slowest, seconds_since(began))
    ok(slowest < 0.7, "slowest call beside a flood of " + what, slowest)
    e.final(20)
    e.close()


@case(deadline=40, config={"log": {"level": "info"}})
def floods_do_not_starve_others(t):
    """REL-24: while one child floods, calls of other sessions stay quick, and the log stays short."""
    noisy, quiet = t.session("main", mcp.C, {"roots": {}}), t.session()
    noisy.ask("resources/subscribe", {"uri": "res://a"})
    quiet.echo("warm")
    line = '{"jsonrpc":"2.0","method":"notifications/%s","params":{"progressToken":9,"progress":1,"level":"info","data":1}}\n'
    for method in ("tools/list_changed", "progress", "com.example/x", "message"):
        beside(quiet, noisy, method, [["fill", line % method, 60000]])
    updated = "".join('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"res://a/%d"}}\n' % i
                      for i in range(8000))
    beside(quiet, noisy, "updates of many resources", [["write", updated]] * 2)
    eq(noisy.echo("y"), "y")
    ok(len(t.daemon.log("stream_overflow")) < 200, "stream_overflow lines", len(t.daemon.log("stream_overflow")))


@case(deadline=30)
def flood_of_refused_questions(t):
    """REL-24 BACK-SEC-01: thousands of requests of a child are each answered once, memory bounded."""
    s = t.session()
    s.echo("warm")
    before = rss_kib(t.daemon.gateway)
    pid = s.pid()
    s.do(["fill", '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}\n', 5000], ["text", "x"], timeout=15)
    wait_for(lambda: t.daemon.record(pid).count(b"-32601") == 5000, 8, "5000 refusals")
    ok(rss_kib(t.daemon.gateway) - before < 16 << 10, "memory", before, rss_kib(t.daemon.gateway))


@case(deadline=30)
def flood_of_allowed_questions(t):
    """REL-24 BACK-SEC-01: questions that the client could get but does not read cost bounded memory and time."""
    s, other = t.session("main", mcp.C, {"roots": {}}), t.session()
    s.echo("warm")
    before = rss_kib(t.daemon.gateway)
    pad = "p" * 1000
    for k in range(10):
        lines = "".join('{"jsonrpc":"2.0","id":"%d-%d","method":"roots/list","params":{"pad":"%s"}}\n' % (k, i, pad) for i in range(3000))
        s.do(["background", [["sleep", 0.05], ["write", lines]]], ["text", "x"])
        time.sleep(0.1)
        began = time.monotonic()
        eq(other.echo("x"), "x")
        within(began, 1, "neighbour")
    ok(rss_kib(t.daemon.gateway) - before < 24 << 10, "memory", before, rss_kib(t.daemon.gateway))


@case
def huge_ids_and_methods_of_a_child(t):
    """BACK-SEC-01: long ids and method names of a child are bounded and harm nothing."""
    s = t.session("main", mcp.C, {"roots": {}})
    s.do(["line", '{"jsonrpc":"2.0","id":"%s","method":"roots/list"}' % ("i" * 100000)],
         ["line", '{"jsonrpc":"2.0","method":"%s"}' % ("m" * 100000)], ["text", "x"])
    eq(s.echo("x"), "x")


@case
def separators_in_events(t):
    """SEC-32 FRONT-SSE-02: U+2028 and U+0085 of a child do not break events."""
    s = t.session()
    e = s.start_do(["progress", 1], ["line", OK.replace("fine", "a\u2028b\u2029c\u0085d")], token=1)
    eq(e.rest()[-1]["result"]["content"][0]["text"], "a\u2028b\u2029c\u0085d")


@case
def deep_nesting_of_a_child(t):
    """BACK-SEC-01: a deeply nested result is bounded: delivered or an error, never silence."""
    s = t.session()
    for depth in (100, 2000, 100000):
        for line in ('{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"x":%s1%s}}',
                     '{"result":{"content":[],"x":%s1%s},"jsonrpc":"2.0","id":@ID@}'):
            answer = s.do(["line", line % ("[" * depth, "]" * depth)])
            ok("result" in answer or answer["error"]["code"] == -32603, "answer", str(answer)[:200])
            ok(depth > 100 or "result" in answer, "100 levels are refused")
    eq(json.loads(json.dumps(s.echo("x"))), "x")
