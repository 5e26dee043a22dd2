# SPDX-License-Identifier: Apache-2.0
"""Session ids and the life of a session. requirements §6."""
import json
import re
import time

import mcp
from harness import case, eq, is_alive, ok, wait_for, within

SERVERS = {"main": {}, "stubborn": {"script": {"eof": "ignore", "term": "ignore"}, "stop": {"grace": "300ms", "term": "300ms"}}}
PING = mcp.request(1, "ping")


@case
def ids_are_random_and_printable(t):
    """FRONT-SESS-02 SEC-04: at least 128 bits, base64url, no two alike, no common part."""
    ids = [t.session().id for _ in range(12)]
    for value in ids:
        ok(re.fullmatch(r"[A-Za-z0-9_-]{22,}", value), "id", value)
    eq(len(set(ids)), len(ids), "ids differ")
    prefixes = {value[:6] for value in ids} | {value[-6:] for value in ids}
    ok(len(prefixes) > len(ids), "ids share a part", ids)


@case
def ids_are_not_logged(t):
    """SEC-04 DEF-24: the log never holds a session id."""
    s = t.session()
    s.echo("x")
    s.get()
    before = len(t.daemon.log("session_end"))
    eq(s.delete().status, 204)
    wait_for(lambda: len(t.daemon.log("session_end")) > before, 3, "the last line about it")
    eq([l for l in t.daemon.lines if s.id in l], [], "lines")
    s.id = None


@case
def missing_id_is_400(t):
    """FRONT-SESS-03 FRONT-SESS-07: no session header: 400/-32600 for POST, GET and DELETE."""
    s = t.session()
    sid, s.id = s.id, None
    e = s.post(PING)
    eq((e.status, e.answer["error"]["code"]), (400, -32600))
    e = s.post(mcp.notification("notifications/initialized"))
    eq((e.status, e.answer["error"]["code"]), (400, -32600), "notification")
    e = s.get(check=False)
    eq((e.status, json.loads(e.response.read())["error"]["code"]), (400, -32600), "GET")
    response = s.delete()
    eq((response.status, json.loads(response.body)["error"]["code"]), (400, -32600), "DELETE")
    s.id = sid


@case
def unknown_id_is_404(t):
    """FRONT-SESS-04 FRONT-SESS-07 FRONT-POST-02: unknown ids: 404/-32001 for POST, GET and DELETE."""
    s = t.session()
    sid = s.id
    for value in ("x", sid[:-1], sid + "A", sid.swapcase(), "A" * len(sid), "../" + sid, "%41", "0" * 2000):
        s.id = value
        for message in (PING, mcp.notification("notifications/initialized"), {"jsonrpc": "2.0", "id": 1, "result": {}}):
            e = s.post(message)
            eq((e.status, e.answer["error"]["code"]), (404, -32001), "POST " + value)
        e = s.get(check=False)
        eq((e.status, json.loads(e.response.read())["error"]["code"]), (404, -32001), "GET " + value)
        response = s.delete()
        eq((response.status, json.loads(response.body)["error"]["code"]), (404, -32001), "DELETE " + value)
    s.id = sid
    eq(s.ask("ping")["result"], {})


@case
def delete_ends_everything(t):
    """FRONT-SESS-06 REL-05: 204, the child ends, later use is 404."""
    s = t.session()
    pid = s.pid()
    response = s.delete()
    eq((response.status, response.body), (204, b""))
    wait_for(lambda: not is_alive(pid), 3, "end of the child")
    for _ in range(2):
        eq(s.post(PING).status, 404)
        eq(s.get(check=False).status, 404)
        eq(s.delete().status, 404)
    s.id = None


@case
def delete_beside_a_stream_that_nobody_reads(t):
    """FRONT-SESS-06 FRONT-SESS-09: what the stream still holds outlives its session for nobody; who reads it then finds its end."""
    s, other = t.session(), t.session()
    say = ["notify", "notifications/message", {"level": "info", "data": "x" * 20000}]
    e = s.start_do(*[say] * 150, ["wait_cancel"])
    wait_for(lambda: e.next(), 3, "its beginning")
    eq(s.delete().status, 204)
    messages = e.rest()
    ok("error" in messages[-1], "the call ends with an error", messages[-1])
    eq(other.echo("alive"), "alive")
    eq(s.post(PING).status, 404)
    s.id = None


@case
def delete_with_calls_in_flight(t):
    """FRONT-SESS-06 FRONT-SESS-09 REL-05: each call ends with an error at once; streams end."""
    s = t.session()
    pid = s.pid()
    g = s.get()
    waiting = s.start_do(["wait_cancel"])
    stream = s.start_do(["progress", 1], ["wait_cancel"], token=1)
    eq(stream.next()["method"], "notifications/progress")
    started = time.monotonic()
    eq(s.delete().status, 204)
    for e in (waiting, stream):
        answer = e.final(3)
        eq((answer["id"], answer["error"]["code"]), (e.id, -32603))
    eq([m for m in g.rest(3)], [], "the standalone stream just ends")
    within(started, 3)
    wait_for(lambda: not is_alive(pid), 3, "end of the child")
    s.id = None


@case
def delete_cancels_at_the_child(t):
    """REL-05 FRONT-SESS-06: calls in flight are cancelled at the child before its stdin ends."""
    s = t.session()
    pid = s.pid()
    e = s.start_do(["wait_cancel"])
    wait_for(lambda: b"wait_cancel" in t.daemon.record(pid), 3, "call at the child")
    s.delete()
    s.id = None
    e.rest()
    wait_for(lambda: not is_alive(pid), 3, "end of the child")
    ok(b"notifications/cancelled" in t.daemon.record(pid), "cancel at the child", t.daemon.record(pid))


@case
def delete_answers_open_questions(t):
    """bridging 2.1.6: at session end the child's open requests are answered: elicitation cancel, others -32603."""
    s = t.session("main", mcp.C, {"elicitation": {}, "roots": {}})
    pid = s.pid()
    e = s.start_do(["send", "e", "elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}],
                   ["ask", "r", "roots/list"])
    e.next()
    e.next()
    s.delete()
    s.id = None
    wait_for(lambda: not is_alive(pid), 3, "end of the child")
    answers = {m["id"]: m for m in t.daemon.messages(pid) if "method" not in m}
    eq(answers["e"]["result"]["action"], "cancel")
    eq(answers["r"]["error"]["code"], -32603)


@case
def delete_of_a_stubborn_child(t):
    """BACK-PROC-02 REL-30 DEF-21: DELETE is answered at once; the child is killed by the ladder."""
    s = t.session("stubborn")
    pid = s.pid()
    started = time.monotonic()
    eq(s.delete().status, 204)
    s.id = None
    within(started, 0.25, "DELETE took")
    wait_for(lambda: not is_alive(pid), 4, "end of the child")
    words = dict((word, at) for at, word in reversed(t.daemon.life(pid)))
    ok("eof" in words and "term" in words, "life", words)
    ok(0.2 < words["term"] - words["eof"] < 1.5, "grace", words)


@case(config={"sessions": {"idle_timeout": "1s"}})
def idle_sessions_expire(t):
    """FRONT-SESS-08 FRONT-SESS-04: an idle session ends; its id is 404, its process gone."""
    idle, busy, listening = t.session(), t.session(), t.session()
    pid = idle.pid()
    e = busy.start_do(["sleep", 2.5], ["text", "slept"])
    g = listening.get()
    time.sleep(2.2)
    eq(idle.post(PING).status, 404, "idle session")
    wait_for(lambda: not is_alive(pid), 3, "end of the child")
    eq(e.final()["result"]["content"][0]["text"], "slept", "a call in flight keeps a session")
    eq(listening.ask("ping")["result"], {}, "an open stream keeps a session")
    ok(g.conn.is_silent(0.05), "stream")


@case(config={"sessions": {"max_age": "1s"}})
def old_sessions_end(t):
    """FRONT-SESS-08 DEF-15: the absolute age ends a session and its streams."""
    s = t.session()
    g = s.get()
    eq(g.rest(5), [], "stream ends")
    eq(s.post(PING).status, 404)


@case(config={"limits": {"sessions": 2}})
def sessions_over_the_limit(t):
    """FRONT-SESS-08: over the limit initialize is 503 with Retry-After; live sessions are untouched."""
    a, b = t.session(), t.session()
    e = t.session("main", check=False).started
    answer = e.final()
    eq((e.status, answer["error"]["code"], answer["error"]["data"]["reason"]), (503, -32603, "overloaded"))
    ok(e.response.header("retry-after"), "Retry-After")
    eq((a.echo("a"), b.echo("b")), ("a", "b"))
    eq(a.delete().status, 204)
    a.id = None

    def again():
        s = t.session("main", check=False)
        s.started.rest()
        s.id = s.started.response.header("mcp-session-id")
        return s.started.status == 200
    wait_for(again, 4, "room for a new session")


@case(servers={"main": {"script": {}, "pool": {"max": 2, "reclaim": "never"}}})
def processes_over_the_limit(t):
    """bridging 4: more sessions than pool.max: 503 with Retry-After, overloaded."""
    a, b = t.session(), t.session()
    e = t.session("main", check=False).started
    answer = e.final(15)
    eq((e.status, answer["error"]["code"]), (503, -32603))
    eq(answer["error"]["data"]["reason"], "overloaded")
    ok(e.response.header("retry-after"), "Retry-After")
    eq((a.echo("a"), b.echo("b")), ("a", "b"))
    t.session("main", check=False)
    t.daemon.wait_log("server_full", "server=main", "processes=2")
    eq(len(t.daemon.log("server_full")), 1, "said once a minute")


@case
def sessions_do_not_depend_on_connections(t):
    """FRONT-ERA-01 FRONT-SESS-01: many sessions over one connection, one session over many."""
    a, b = t.session(), t.session()
    conn = t.conn()
    for i in range(4):
        for s in (a, b):
            e = s.post(mcp.request(1, "tools/call", {"name": "echo", "arguments": {"text": "%d%s" % (i, s.id)}}), conn=conn)
            eq(e.answer["result"]["content"][0]["text"], "%d%s" % (i, s.id))


@case
def only_initialize_gives_an_id(t):
    """FRONT-SESS-01: no error and no other answer hands out a new session id."""
    s = t.session()
    sid, s.id = s.id, None
    for message in (PING, mcp.request(1, "initialize", {}), b"{", mcp.request(1, "tools/list")):
        e = s.post(message)
        eq(e.response.header("mcp-session-id"), None, message)
    s.id = sid
