# SPDX-License-Identifier: Apache-2.0
"""Disconnects, cancellation and time-outs. requirements §11."""
import time

import mcp
from harness import case, eq, is_alive, ok, wait_for, within

SERVERS = {
    "main": {},
    "impatient": {"script": {}, "request_timeout": "1s", "request_timeout_max": "3s"},
    "patient": {"script": {}, "request_timeout": "1s", "request_timeout_max": "30s",
                "tool_timeout": {"slow": "3s"}},
}


def cancels(t, pid):
    return [m["params"]["requestId"] for m in t.daemon.messages(pid) if m.get("method") == "notifications/cancelled"]


def bid(t, pid, marker):
    """The id under which the child got the call that holds the marker."""
    def found():
        for m in t.daemon.messages(pid):
            if m.get("method") == "tools/call" and marker in str(m["params"]):
                return m["id"]
    return wait_for(found, 3, "call at the child")


@case
def disconnect_is_not_a_cancel(t):
    """CXL-01 REL-04: a client that leaves does not cancel; the call runs on, its result is dropped."""
    s = t.session()
    pid = s.pid()
    for way in ("close", "reset", "half_close"):
        e = s.start_do(["progress", 1], ["sleep", 0.5], ["text", "x"], token=1)
        e.next()
        getattr(e.conn, way)()
    time.sleep(0.8)
    eq(s.echo("after"), "after")
    eq(cancels(t, pid), [], "cancels at the child")


@case
def half_close_still_gets_the_answer(t):
    """CXL-01 FRONT-HTTP-15: a client that shuts down its sending side reads its answer."""
    s = t.session()
    e = s.start_do(["sleep", 0.4], ["text", "x"])
    e.conn.half_close()
    eq(e.final()["result"]["content"][0]["text"], "x")


@case
def cancel_reaches_the_child(t):
    """CXL-02 bridging 1.1 row 6: the child gets one cancel with its own id and the reason."""
    s = t.session()
    pid = s.pid()
    e = s.start_do(["progress", 1], ["wait_cancel"], token=1, request_id="c1")
    e.next()
    s.notify("notifications/cancelled", {"requestId": "c1", "reason": "bored"})
    child_id = bid(t, pid, "wait_cancel")
    wait_for(lambda: cancels(t, pid), 3, "cancel at the child")
    eq(cancels(t, pid), [child_id])
    sent = [m for m in t.daemon.messages(pid) if m.get("method") == "notifications/cancelled"][0]
    eq(sent["params"].get("reason"), "bored")
    eq(e.rest(), [], "a committed stream just ends")


@case
def cancel_of_an_uncommitted_call(t):
    """CXL-02: not committed yet: the answer is an empty event stream."""
    s = t.session()
    pid = s.pid()
    e = s.start_do(["wait_cancel"], ["text", "late"])
    bid(t, pid, "wait_cancel")
    s.cancel(e.id)
    eq(e.rest(), [])
    eq((e.status, e.response.is_sse), (200, True))


@case
def cancel_for_a_json_only_client(t):
    """CXL-02: a JSON-only client gets -32603 `cancelled`."""
    s = t.session()
    pid = s.pid()
    e = s.start_do(["wait_cancel"], accept="application/json")
    bid(t, pid, "wait_cancel")
    s.cancel(e.id)
    answer = e.final()
    eq((e.status, answer["id"], answer["error"]["code"]), (200, e.id, -32603))
    eq(answer["error"]["data"]["reason"], "cancelled")


@case
def cancel_inside_a_batch(t):
    """CXL-02 FRONT-POST-06: the other calls of the batch are answered; the array lacks the cancelled one."""
    s = t.session("main", mcp.B)
    pid = s.pid()

    def do(i, *steps):
        return mcp.request(i, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}})
    e = s.begin([do(1, ["wait_cancel"]), do(2, ["sleep", 0.5], ["text", "b"])])
    bid(t, pid, "wait_cancel")
    s.cancel(1)
    answered = [m["id"] for m in e.rest() if "result" in m]
    eq(answered, [2])


@case
def cancels_that_mean_nothing(t):
    """CXL-03 SEC-49: unknown, finished, malformed, of another session: 202, ignored, nothing at the child."""
    s, other = t.session(), t.session()
    pid = s.pid()
    e = s.start_do(["sleep", 1], ["text", "done"], request_id=77)
    bid(t, pid, "done")
    other.cancel(77)
    other.cancel("77")
    for params in ({"requestId": 4711}, {"requestId": "77"}, {"requestId": None}, {"requestId": [77]}, {}, {"requestId": 77.5},
                   {"x": 1}):
        s.notify("notifications/cancelled", params)
    s.notify("notifications/cancelled", None)
    eq(e.final()["result"]["content"][0]["text"], "done")
    s.cancel(77)
    s.echo("after")
    eq(cancels(t, pid), [], "cancels at the child")
    eq(cancels(t, other.pid()), [], "cancels at the other child")


@case
def both_calls_with_the_id_are_cancelled(t):
    """bridging 1.1 row 6: a cancel means every call of the session with that id."""
    s = t.session()
    pid = s.pid()
    calls = [s.start_do(["wait_cancel"], request_id=9) for _ in range(2)]
    wait_for(lambda: t.daemon.record(pid).count(b"wait_cancel") == 2, 3, "calls at the child")
    s.cancel(9)
    for e in calls:
        eq(e.rest(), [])
    wait_for(lambda: len(cancels(t, pid)) == 2, 3, "cancels at the child")


@case
def late_messages_after_a_cancel(t):
    """CXL-06 UTIL-PROG-01 REL-23: late progress and result of a cancelled call are dropped silently."""
    s = t.session()
    g = s.get()
    e = s.start_do(["progress", 1], ["wait_cancel"], ["progress", 2], ["text", "late"], ["text", "later"], token=1)
    e.next()
    s.cancel(e.id)
    eq(e.rest(), [])
    g.nothing(0.5)
    eq(s.echo("fine"), "fine")
    eq([l for l in t.daemon.lines if " warn call" in l], [], "log")


@case
def timeout_answers_and_cancels(t):
    """CXL-08 REL-25 DEF-13 bridging 4: no answer in time: 200/-32603 timeout, and a cancel to the child."""
    s = t.session("impatient")
    pid = s.pid()
    started = time.monotonic()
    e = s.start_do(["wait_cancel"], ["text", "late"])
    answer = e.final()
    eq((e.status, answer["id"], answer["error"]["code"]), (200, e.id, -32603))
    eq(answer["error"]["data"]["reason"], "timeout")
    ok(time.monotonic() - started > 0.8, "too early")
    within(started, 2.5)
    wait_for(lambda: cancels(t, pid) == [bid(t, pid, "wait_cancel")], 3, "cancel at the child")
    eq(s.pid(), pid, "a child that reacts is kept")


@case
def timeout_for_a_committed_stream(t):
    """CXL-08: on a committed stream the error is its last event."""
    s = t.session("impatient")
    e = s.start_do(["progress", 1], ["wait_cancel"], token=1)
    messages = e.rest()
    eq(messages[-1]["error"]["data"]["reason"], "timeout")
    eq(len(messages), 2)


@case
def progress_renews_the_timeout(t):
    """CXL-08: progress renews the idle limit, never the absolute one."""
    s = t.session("impatient")
    steps = [[["progress", i], ["sleep", 0.4]] for i in range(5)]
    e = s.start_do(*[step for pair in steps for step in pair], ["text", "x"], token=1)
    eq(e.final()["result"]["content"][0]["text"], "x", "2 s with a limit of 1 s")
    steps = [[["progress", i], ["sleep", 0.4]] for i in range(12)]
    started = time.monotonic()
    e = s.start_do(*[step for pair in steps for step in pair], ["text", "x"], token=1)
    eq(e.final()["error"]["data"]["reason"], "timeout", "absolute")
    ok(time.monotonic() - started > 2.5, "too early")
    within(started, 4.5)


@case
def progress_without_a_token_of_the_client(t):
    """CXL-08: the gateway's own token lets progress renew the limit although the client asked for none."""
    s = t.session("patient")
    e = s.start_do(["progress", 1], ["sleep", 0.6], ["progress", 2], ["sleep", 0.6], ["progress", 3], ["sleep", 0.6], ["text", "x"])
    messages = e.rest()
    if "error" in messages[-1]:  # tokens are set on every call only under a lease
        eq(messages[-1]["error"]["data"]["reason"], "timeout")
    eq(len(messages), 1, "progress without a client token is never delivered")


@case
def tool_timeout(t):
    """product §4: tool_timeout is the limit of that tool alone."""
    d = t.start({"main": {"script": {"on": {"tools/call": [["sleep", 2], ["text", "x"]]}}, "request_timeout": "1s",
                          "tool_timeout": {"slow": "5s"}}})
    s = t.session("main", daemon=d)
    a = s.start("tools/call", {"name": "slow", "arguments": {}})
    b = s.start("tools/call", {"name": "quick", "arguments": {}})
    eq(b.final()["error"]["data"]["reason"], "timeout")
    eq(a.final()["result"]["content"][0]["text"], "x")


@case
def human_time_does_not_count(t):
    """CXL-08: while the client is asked something the idle limit stands still."""
    s = t.session("patient", mcp.C, {"elicitation": {}})
    e = s.start_do(["ask", "q", "elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}],
                   ["asked"])
    asked = e.next()
    time.sleep(2)
    s.respond(asked["id"], {"action": "accept", "content": {}})
    answer = e.final()
    ok("result" in answer, "answer", answer)


@case(deadline=25)
def hung_child_is_replaced(t):
    """REL-25 bridging 4: a stopped child: timeout, no pong, killed; the session goes on with a new one."""
    s = t.session("impatient")
    pid = s.pid()
    e = s.start_do(["kill", 19], ["text", "x"])
    eq(e.final()["error"]["data"]["reason"], "timeout")
    wait_for(lambda: not is_alive(pid), 12, "end of the hung child")
    eq(s.echo("again"), "again")
    ok(s.pid() != pid, "same process")


@case
def child_cancels_its_question(t):
    """CXL-09: the child's cancel of its own request reaches the client with the mapped id, same stream."""
    s = t.session("main", mcp.C, {"roots": {}})
    pid = s.pid()
    e = s.start_do(["send", "q", "roots/list"], ["sleep", 0.2],
                   ["notify", "notifications/cancelled", {"requestId": "q", "reason": "never mind"}],
                   ["sleep", 0.5], ["text", "x"])
    asked = e.next()
    cancel = e.next()
    eq((cancel["method"], cancel["params"]["requestId"]), ("notifications/cancelled", asked["id"]))
    eq(cancel["params"].get("reason"), "never mind")
    s.respond(asked["id"], {"roots": []})
    e.final()
    s.echo("after")
    eq([m for m in t.daemon.messages(pid) if m.get("id") == "q"], [], "answer at the child")


@case
def child_cancels_something_unknown(t):
    """CXL-09 CXL-03: a child's cancel of an unknown id is dropped."""
    s = t.session()
    g = s.get()
    e = s.start_do(["notify", "notifications/cancelled", {"requestId": 1}], ["notify", "notifications/cancelled", {}],
                   ["progress", 1], ["text", "x"], token=1)
    eq([m.get("method") for m in e.rest()], ["notifications/progress", None])
    g.nothing(0.2)


@case
def questions_end_with_their_call(t):
    """bridging 4: a call that is cancelled while the child waits for an answer."""
    s = t.session("main", mcp.C, {"roots": {}})
    pid = s.pid()
    e = s.start_do(["ask", "q", "roots/list"], ["asked"])
    asked = e.next()
    s.cancel(e.id)
    e.rest()
    s.respond(asked["id"], {"roots": []})
    s.echo("after")
    ok(len([m for m in t.daemon.messages(pid) if m.get("id") == "q"]) <= 1, "answers at the child")
