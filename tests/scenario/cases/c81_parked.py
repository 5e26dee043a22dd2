# SPDX-License-Identifier: Apache-2.0
"""Modern clients before legacy servers that ask: the call is parked, and goes on when the client tries again."""
import hashlib
import json
import os
import signal

import mcp
from c70_admin import admin, get, metrics, of
from c71_ctl import ctl
from c80_stateless import META, begin, fields, message, messages_of
from harness import case, eq, ok, wait_for

FORM = {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 5}
CAPS = {"elicitation": {}, "sampling": {}, "roots": {}}
ACCEPT = {"action": "accept", "content": {"a": "blue"}}
SERVERS = {"main": {"script": {}}, "one": {"script": {}, "pool": {"max": 1}},
           "few": {"script": {}, "pool": {"max": 4}}, "patient": {"script": {}, "progress_while_waiting": True}}
CONFIG = {"defaults": {"pool": {"idle_timeout": "1500ms"}}}


class Caller:
    """One who makes the same call again and again, with what it was asked."""

    def __init__(self, t, steps, server="main", caps=None, token=None):
        self.t, self.server, self.caps = t, server, CAPS if caps is None else caps
        self.params = {"name": "do", "arguments": {"steps": list(steps)}}
        self.number, self.token = 0, token

    def begin(self, state=None, answers=None, **changes):
        self.number += 1
        params = dict(self.params, **changes)
        if state is not None:
            params["requestState"] = state
        if answers is not None:
            params["inputResponses"] = answers
        body = message("tools/call", params, request_id="call-%d" % self.number, caps=self.caps, token=self.token)
        return begin(self.t, self.server, body, self.head(body))

    def head(self, body):
        return fields(body)

    def ask(self, *args, **kw):
        """(status, the last message); those before are kept."""
        conn = self.begin(*args, **kw)
        response = conn.response()
        self.messages = messages_of(response)
        conn.close()
        eq(self.messages[-1]["id"], "call-%d" % self.number, "id")
        return response.status, self.messages[-1]

    def asked(self, *args, **kw):
        """({key: request}, state): what it is asked next."""
        status, answer = self.ask(*args, **kw)
        ok(answer.get("result", {}).get("resultType") == "input_required", "it is not asked", answer)
        eq(status, 200)
        eq("ttlMs" in answer["result"], False)
        return answer["result"]["inputRequests"], answer["result"]["requestState"]

    def text(self, *args, **kw):
        status, answer = self.ask(*args, **kw)
        eq((status, answer["result"]["resultType"]), (200, "complete"), answer)
        return answer["result"]["content"][0]["text"]

    def refused(self, *args, **kw):
        status, answer = self.ask(*args, **kw)
        eq((status, answer["error"]["code"]), (400, -32602), answer)
        return answer["error"].get("data", {}).get("reason")


def said(t, pid, request_id):
    """What the server was answered to its request."""
    def found():
        return [m for m in t.daemon.messages(pid) if m.get("id") == request_id and "method" not in m]
    return wait_for(found, 2, "an answer to %s" % request_id)


@case
def asked_and_answered(t):
    """MOD-MRTR-01, MOD-MRTR-02, MOD-MRTR-06, bridging.md §2.3.3: what the server asks is the answer; the retry gets the result."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["asked"]])
    requests, state = c.asked()
    eq(requests, {"r1": {"method": "elicitation/create", "params": FORM}})
    ok(state.startswith("g2."), state)
    eq(json.loads(c.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)
    eq(c.refused(state, {"r1": ACCEPT}), "invalid_request_state", "MOD-MRTR-04: once")


@case
def every_kind_of_question(t):
    """MOD-MRTR-02, bridging.md §2.3.3 (f), (g): sampling and roots, and two at once; answers go on verbatim."""
    sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}, "extra": [1]}
    roots = {"roots": [{"uri": "file:///x"}]}
    extra = dict(SAMPLE, _meta={"progressToken": 3})
    c = Caller(t, [["send", 1, "sampling/createMessage", extra], ["send", 2, "roots/list"], ["wait", 1], ["wait", 2], ["asked"]])
    requests, state = c.asked()
    eq(requests, {"r1": {"method": "sampling/createMessage", "params": SAMPLE}, "r2": {"method": "roots/list", "params": {}}})
    answers = json.loads(c.text(state, {"r1": sampled, "r2": roots, "stranger": 1}))
    eq([a["result"] for a in answers], [sampled, roots])


@case
def rounds(t):
    """bridging.md §2.3.3: partial answers are asked for again, keys are never used twice, each state counts once."""
    c = Caller(t, [["send", 1, "elicitation/create", FORM], ["send", 2, "elicitation/create", FORM], ["wait", 1], ["wait", 2],
                   ["ask", 3, "elicitation/create", FORM], ["asked"]])
    requests, first = c.asked()
    eq(sorted(requests), ["r1", "r2"])
    requests, second = c.asked(first, {"r1": ACCEPT})
    eq(sorted(requests), ["r2"])
    eq(c.refused(first, {"r2": ACCEPT}), "invalid_request_state")
    requests, third = c.asked(second, {"r2": {"action": "decline"}})
    eq(sorted(requests), ["r3"])
    eq([a["result"]["action"] for a in json.loads(c.text(third, {"r3": ACCEPT}))], ["accept", "decline", "accept"])


@case
def what_is_no_answer(t):
    """MOD-MRTR-05, bridging.md §2.3.3 (c): refused, and nothing is consumed."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["asked"]])
    _, state = c.asked()
    for wrong in ({"r1": None}, {"r1": {"action": "perhaps"}}, {"r1": 1}, {"r1": {}}):
        c.refused(state, wrong)
    eq(json.loads(c.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)


@case
def states_of_others(t):
    """MOD-MRTR-03: tampered with, for another tool, other arguments, another server: nothing runs, the call waits on."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["asked"]])
    _, state = c.asked()
    other = Caller(t, [["text", "other arguments"]])
    elsewhere = Caller(t, c.params["arguments"]["steps"], server="one")
    wrong = [lambda: c.refused(state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1], {"r1": ACCEPT}),
             lambda: c.refused("g2.x", {"r1": ACCEPT}), lambda: c.refused("", {"r1": ACCEPT}),
             lambda: other.refused(state, {"r1": ACCEPT}), lambda: elsewhere.refused(state, {"r1": ACCEPT}),
             lambda: c.refused(state, {"r1": ACCEPT}, name="echo")]
    for attempt in wrong:
        eq(attempt(), "invalid_request_state")
    eq(json.loads(c.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)


@case
def progress_on_a_retry(t):
    """bridging.md §2.3.3 (d): the token of the request that waits now is the one that counts."""
    c = Caller(t, [["progress", 1], ["ask", 7, "elicitation/create", FORM], ["progress", 2], ["asked"]], token="first")
    _, state = c.asked()
    eq([m["params"] for m in c.messages[:-1]], [{"progressToken": "first", "progress": 1}])
    c.token = "second"
    c.text(state, {"r1": ACCEPT})
    eq([m["params"] for m in c.messages[:-1]], [{"progressToken": "second", "progress": 2}])


@case
def progress_while_nobody_waits(t):
    """bridging.md §2.3.3 (j): what the server tells before the client tries again, the retry hears."""
    steps = [["send", 7, "elicitation/create", dict(FORM, message="told meanwhile")], ["sleep", 0.5], ["progress", 1], ["progress", 2],
             ["ask", 8, "roots/list"], ["wait", 7], ["asked"]]
    c = Caller(t, steps, caps={"elicitation": {}}, token="first")
    _, state = c.asked()
    pid = next(p for p in t.daemon.children("main") if b"told meanwhile" in t.daemon.record(p))
    said(t, pid, 8)  # refused at once, and what was told before has arrived
    c.token = "second"
    c.text(state, {"r1": ACCEPT})
    eq([m["params"] for m in c.messages[:-1]], [{"progressToken": "second", "progress": n} for n in (1, 2)])


@case
def leaving_while_it_runs(t):
    """CXL-04, bridging.md §2.3.3 *abandon*: who leaves has cancelled; the server hears it, and its question is over."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["wait_cancel"]])
    _, state = c.asked()
    conn = c.begin(state, {"r1": ACCEPT})
    pids = [p for p in t.daemon.children("main") if b'"wait_cancel"' in t.daemon.record(p)]
    eq(len(pids), 1)
    said(t, pids[0], 7)
    eq(c.refused(state, {"r1": ACCEPT}), "invalid_request_state", "while another one waits, which is not disturbed")
    conn.close()
    wait_for(lambda: [m for m in t.daemon.messages(pids[0]) if m.get("method") == "notifications/cancelled"], 2, "cancelled")
    eq(c.refused(state, {"r1": ACCEPT}), "invalid_request_state")


@case(own=True, deadline=30)
def left_over_questions(t):
    """bridging.md §8 (3), §2.3.3 *abandon*: a server that lives, and goes on with what was cancelled, asks nobody else's client."""
    late = [["wait_cancel"], ["sleep", 0.5], ["send", 7, "elicitation/create", FORM], ["sleep", 0.5], ["send", 8, "elicitation/create", FORM]]
    conn = Caller(t, late, server="one").begin()
    wait_for(lambda: any(b"wait_cancel" in t.daemon.record(p) for p in t.daemon.children("one")), 3, "the call")
    pid = t.daemon.children("one")[0]
    conn.close()
    wait_for(lambda: [m for m in t.daemon.messages(pid) if m.get("method") == "ping"], 3, "the ping")
    second = Caller(t, [["sleep", 1], ["text", "@PID@"]], server="one")
    other = second.text()
    eq([said(t, pid, i)[0]["error"]["code"] for i in (7, 8)], [-32602, -32602])
    ok(other != str(pid), "another process")
    # Who answers what was cancelled is done with it.
    answers = Caller(t, [["wait_cancel"], ["text", "late"]], server="one")
    conn = answers.begin()
    wait_for(lambda: b"late" in t.daemon.record(int(other)), 3, "the call")
    conn.close()
    eq(Caller(t, [["text", "@PID@"]], server="one").text(), other)


@case
def servers_that_do_not_wait(t):
    """bridging.md §2.3.3: a result, a question that is taken back, the end of the process, all while the call is parked."""
    c = Caller(t, [["send", 71, "elicitation/create", FORM], ["sleep", 0.3], ["text", "did not wait"]])
    _, state = c.asked()
    pid = [p for p in t.daemon.children("main") if b"did not wait" in t.daemon.record(p)][0]
    eq(said(t, pid, 71)[0]["result"], {"action": "cancel"}, "nobody will answer")
    eq(c.text(state, {"r1": ACCEPT}), "did not wait")
    c = Caller(t, [["send", 8, "elicitation/create", FORM], ["sleep", 0.2],
                   ["notify", "notifications/cancelled", {"requestId": 8}], ["ask", 88, "ping"], ["sleep", 0.2],
                   ["text", "took it back"]])
    _, state = c.asked()
    said(t, [p for p in t.daemon.children("main") if b"took it back" in t.daemon.record(p)][0], 88)
    eq(c.text(state), "took it back")
    c = Caller(t, [["send", 9, "elicitation/create", FORM], ["sleep", 0.3], ["exit", 3]])
    _, state = c.asked()
    t.daemon.wait_log("child_reaped", "server=main", "exit=3")
    status, answer = c.ask(state, {"r1": ACCEPT})
    eq((status, answer["error"]["data"]["reason"]), (200, "parked_call_lost"))


@case(deadline=40)
def servers_that_are_told_to_wait(t):
    """bridging.md §2.3.3 (i): with progress_while_waiting, every 20 s, to what has a token; without it nothing."""
    asked = [["send", 7, "elicitation/create", dict(FORM, _meta={"progressToken": "mine"})],
             ["send", 8, "elicitation/create", FORM], ["wait", 7], ["wait", 8], ["asked"]]
    progress, callers = {}, []
    for server in ("main", "patient"):  # main first: it would have been told before
        callers.append(Caller(t, asked, server=server))
        state = callers[-1].asked()[1]
        callers[-1].finish = lambda c=callers[-1], s=state: c.text(s, {"r1": ACCEPT, "r2": ACCEPT})
        pid = [p for p in t.daemon.children(server) if b'"mine"' in t.daemon.record(p)][0]
        progress[server] = lambda p=pid: [m["params"] for m in t.daemon.messages(p) if m.get("method") == "notifications/progress"]
    wait_for(progress["patient"], 25, "progress")
    eq(progress["patient"](), [{"progressToken": "mine", "progress": 1}])
    eq(progress["main"](), [])
    for caller in callers:
        caller.finish()


@case
def processes_come_back(t):
    """bridging.md §2.3.3: a parked call holds its process; once it is over the next one has it."""
    first = Caller(t, [["ask", 7, "elicitation/create", FORM], ["asked"]], server="one")
    _, state = first.asked()
    eq(len(t.daemon.children("one")), 1)
    second = Caller(t, [["text", "next"]], server="one")
    conn = second.begin()
    eq(json.loads(first.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)
    eq(messages_of(conn.response())[-1]["result"]["content"][0]["text"], "next")


@case(own=True)
def operators_see_them(t):
    """product §2: a call in flight counts for its server with or without a session; one whose client is away is parked."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["wait_cancel"]])
    _, state = c.asked()

    def seen():
        report = of(get(t, "/servers")["servers"], name="main")
        return report["processes"], report["calls"], report["parked"]
    eq(seen(), (1, 0, 1))
    eq(metrics(admin(t).request("GET", "/metrics").read())['mcpgated_server_calls_parked{server="main"}'], 1)
    shown = ctl(t, "servers")[0].splitlines()
    at = shown[0].index("PARKED")
    eq(shown[1][at:at + len("PARKED")].strip(), "1", shown)
    conn = c.begin(state, {"r1": ACCEPT})
    wait_for(lambda: seen() == (1, 1, 0), 2, "the call in flight")
    conn.close()
    wait_for(lambda: seen()[1:] == (0, 0), 2, "nothing in flight")


@case
def too_many_are_parked(t):
    """MOD-MRTR-07, bridging.md §2.3.3: at the cap (half of pool.max) the oldest of the same caller is given up, and no other."""
    callers = [Caller(t, [["ask", 70 + i, "elicitation/create", FORM], ["asked"]], server="few") for i in range(3)]
    states = [c.asked()[1] for c in callers]
    oldest = [p for p in t.daemon.children("few") if b"[\"ask\",70" in t.daemon.record(p)][0]
    eq(said(t, oldest, 70)[0]["result"], {"action": "cancel"})
    eq(callers[0].refused(states[0], {"r1": ACCEPT}), "invalid_request_state")
    for caller, state in list(zip(callers, states))[1:]:
        eq(json.loads(caller.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)


@case(deadline=30)
def callers_of_this_machine(t):
    """MOD-MRTR-07 FRONT-SESS-08: on loopback anonymous callers are not told apart: more than 8 may be parked."""
    callers = [Caller(t, [["ask", i, "elicitation/create", FORM], ["asked"]]) for i in range(10)]
    states = [c.asked()[1] for c in callers]
    for caller, state in zip(callers, states):
        eq(json.loads(caller.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)


@case
def what_the_client_cannot(t):
    """MOD-CAP-01, bridging.md §2.3.4: -32021 names it if the call fails over it; a result is delivered."""
    c = Caller(t, [["ask", 7, "sampling/createMessage", SAMPLE], ["error", -32000, "cannot"]], caps={})
    status, answer = c.ask()
    eq((status, answer["error"]["code"], answer["error"]["data"]), (400, -32021, {"requiredCapabilities": {"sampling": {}}}))
    c = Caller(t, [["ask", 7, "sampling/createMessage", SAMPLE], ["text", "managed"]], caps={"elicitation": {}})
    eq(c.text(), "managed")
    tools = dict(SAMPLE, tools=[{"name": "t", "inputSchema": {"type": "object"}}])
    url = {"mode": "url", "message": "m", "elicitationId": "e", "url": "https://a.example/"}
    rows = (({}, [("roots/list", {}), ("sampling/createMessage", SAMPLE), ("elicitation/create", FORM)],
             {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}),
            ({"sampling": {}, "elicitation": {}}, [("sampling/createMessage", tools), ("elicitation/create", url)],
             {"sampling": {"tools": {}}, "elicitation": {"url": {}}}),
            ({}, [("elicitation/create", url), ("elicitation/create", FORM)], {"elicitation": {"form": {}, "url": {}}}))
    for caps, wanted, needed in rows:
        steps = [["ask", i, method, params] for i, (method, params) in enumerate(wanted)]
        status, answer = Caller(t, steps + [["error", -32000, "cannot"]], caps=caps).ask()
        eq((status, answer["error"]["code"], answer["error"]["data"]), (400, -32021, {"requiredCapabilities": needed}), caps)


@case
def logs_on_demand(t):
    """MOD-LOG-01: from the level that the request sets on, on its stream; none without it."""
    steps = [["notify", "notifications/message", {"level": level, "data": level}] for level in ("debug", "warning", "error")]
    for caps in ({}, {"elicitation": {}}):
        for level, heard in (("warning", ["warning", "error"]), (None, []), ("debug", ["debug", "warning", "error"])):
            body = message("tools/call", {"name": "do", "arguments": {"steps": steps + [["text", "said"]]}}, caps=caps, level=level)
            found = messages_of(begin(t, "main", body).response())
            eq([m["params"]["level"] for m in found[:-1]], heard, "%s %s" % (caps, level))


@case
def logs_of_a_retry(t):
    """MOD-LOG-01: the level is that of the request that waits now."""
    log = ["notify", "notifications/message", {"level": "warning", "data": "x"}]
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], log, ["text", "said"]])
    _, state = c.asked()
    params = dict(c.params, requestState=state, inputResponses={"r1": ACCEPT})
    found = messages_of(begin(t, "main", message("tools/call", params, caps=CAPS, level="warning")).response())
    eq([m.get("method") for m in found], ["notifications/message", None])


# ---- URLs that are to be opened first ---------------------------------------

WEB = {"elicitation": {"url": {}}}
PAGES = [{"mode": "url", "message": "Open %d" % i, "url": "https://example.com/%d" % i, "elicitationId": "page-%d" % i} for i in (1, 2)]
ASKED = {"e%d" % i: {"method": "elicitation/create", "params": {k: page[k] for k in ("mode", "message", "url")}}
         for i, page in enumerate(PAGES, 1)}
OPENED = {"action": "accept"}


def wants(*pages):
    """What a server of 2025-11-25 answers, the first time that it is asked."""
    return ["once", ["error", -32042, "open them", {"elicitations": list(pages)}]]


@case
def urls_first(t):
    """bridging.md §2.3.7 UTIL-ELIC-01: what -32042 names is asked as input; accepted, and told to be complete, the call is made again."""
    c = Caller(t, [wants(*PAGES), ["text", "@PID@"]], caps=WEB)
    requests, state = c.asked()
    eq(requests, ASKED)
    requests, rest = c.asked(state, {"e1": OPENED})
    eq(requests, {"e2": ASKED["e2"]})
    pid = [p for p in t.daemon.children("main") if b"page-2" in t.daemon.record(p)][0]
    conn = c.begin(rest, {"e2": OPENED})
    other = Caller(t, [["notify", "notifications/elicitation/complete", {"elicitationId": i}] for i in ("page-1", "page-2")] +
                   [["text", "@PID@"]], caps=WEB)
    eq(other.text(), str(pid), "the process is free meanwhile")
    eq(messages_of(conn.response())[-1]["result"]["content"][0]["text"], str(pid))
    eq(c.text(state, {"e1": OPENED, "e2": OPENED}), str(pid), "a state is no right: it may be shown again, as the call may be made again")


@case
def urls_that_are_not_opened(t):
    """bridging.md §2.3.7 MOD-MRTR-03: declined, tampered with, of other arguments, no answer at all: nothing runs."""
    c = Caller(t, [wants(PAGES[0]), ["text", "ran"]], caps=WEB)
    _, state = c.asked()
    pid = [p for p in t.daemon.children("main") if b'"ran"' in t.daemon.record(p)][0]
    before = len(t.daemon.messages(pid))
    for action in ("decline", "cancel"):
        status, answer = c.ask(state, {"e1": {"action": action}})
        eq((status, answer["result"]["isError"]), (200, True))
    eq(c.refused(state[:-3] + ("AAA" if state[-3:] != "AAA" else "BBB"), {"e1": OPENED}), "invalid_request_state")
    eq(Caller(t, [["text", "else"]], caps=WEB).refused(state, {"e1": OPENED}), "invalid_request_state")
    eq(Caller(t, c.params["arguments"]["steps"], server="one", caps=WEB).refused(state, {"e1": OPENED}), "invalid_request_state")
    c.refused(state, {"e1": {"action": "perhaps"}})
    eq(c.asked(state)[0], {"e1": ASKED["e1"]}, "asked again")
    eq(len(t.daemon.messages(pid)), before)


@case
def urls_of_no_use(t):
    """bridging.md §2.3.7 MOD-CAP-01: clients without elicitation.url get -32021; errors that do not say what they should, -32603."""
    for caps in ({}, {"elicitation": {}}, {"elicitation": {"form": {}}}):
        status, answer = Caller(t, [["error", -32042, "no", {"elicitations": PAGES}]], caps=caps).ask()
        eq((status, answer["error"]["code"], answer["error"]["data"]),
           (400, -32021, {"requiredCapabilities": {"elicitation": {"url": {}}}}), caps)
    hostile = (1, {}, {"elicitations": {}}, {"elicitations": []}, {"elicitations": [1]}, {"elicitations": PAGES * 500},
               {"elicitations": [dict(PAGES[0], mode="form")]}, {"elicitations": [dict(PAGES[0], elicitationId=1)]},
               {"elicitations": [dict(PAGES[0], url="u" * (1 << 20))]}, {"elicitations": [PAGES[0], None]})
    for data in hostile:
        status, answer = Caller(t, [["error", -32042, "no", data]], caps=WEB).ask()
        eq((status, answer["error"]["code"]), (200, -32603), str(data)[:100])
    c = Caller(t, [["error", -32042, "no", {"elicitations": PAGES[:1] * 2}]], caps=WEB)
    eq(c.asked()[0], {"e1": ASKED["e1"], "e2": ASKED["e1"]}, "one id, twice")


@case(own=True)
def urls_outlive_the_gateway(t):
    """bridging.md §2.6: who comes back to the next gateway is served at once: it waits for no process that is gone."""
    c = Caller(t, [wants(PAGES[0]), ["text", "@PID@"]], caps=WEB)
    _, state = c.asked()
    before, pid = t.daemon.gateway, t.daemon.children("main")[0]
    t.expect_error_log("gateway_exit")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: t.daemon.find_gateway() not in (None, before), 5, "the next gateway")
    t.daemon.gateway = t.daemon.find_gateway()
    eq(c.asked(state, {"e1": OPENED})[0], {"e1": ASKED["e1"]}, "another process wants it again")
    ok(t.daemon.children("main") != [pid], "another process")


@case(own=True)
def the_gateway_stops(t):
    """bridging.md §4: parked calls are given up, the server is answered; nothing is left."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["asked"]])
    c.asked()
    pid = t.daemon.children("main")[0]
    t.daemon.term()
    eq(said(t, pid, 7)[0]["result"], {"action": "cancel"})
    eq(t.daemon.wait(), 0)


# ---- callers that are told apart ---------------------------------------------

ALICE, BOB = "alice-token-0123456789abcdef", "bob-token-0123456789abcdef"
TOKENS = [{"name": n, "sha256": hashlib.sha256(t.encode()).hexdigest()} for n, t in (("alice", ALICE), ("bob", BOB))]


class Known(Caller):
    """One who shows a token."""

    def __init__(self, t, steps, token, **kw):
        super().__init__(t, steps, **kw)
        self.bearer = mcp.bearer(token)

    def head(self, body):
        return fields(body) + self.bearer


@case(own=True, servers={"main": {"script": {}}, "all": {"script": {}, "isolation": "shared"}},
      config={"auth": {"mode": "token", "tokens": TOKENS}, "defaults": {"pool": {"idle_timeout": "1500ms"}}})
def principals_have_nothing_of_each_other(t):
    """AUTH-SES-09, MOD-RES-04, MOD-MRTR-03: processes, lists and requestState of one are no other's."""
    steps = [["ask", 7, "elicitation/create", FORM], ["asked"]]
    alice, bob = Known(t, steps, ALICE), Known(t, steps, BOB)
    _, state = alice.asked()
    eq(bob.refused(state, {"r1": ACCEPT}), "invalid_request_state")
    eq(json.loads(alice.text(state, {"r1": ACCEPT}))[0]["result"], ACCEPT)
    pids = [{Known(t, [["text", "@PID@"]], token, caps={}).text() for _ in range(3)} for token in (ALICE, BOB)]
    eq([len(p) for p in pids], [1, 1])
    ok(pids[0] != pids[1], "a process for each", pids)
    body = message("tools/list")
    for token in (ALICE, ALICE, BOB):
        eq(begin(t, "all", body, fields(body) + mcp.bearer(token)).response().status, 200)
    pid = t.daemon.children("all")[0]
    eq([m.get("method") for m in t.daemon.messages(pid)].count("tools/list"), 2, "a list for each principal")


@case
def retries_declare_the_same(t):
    """MOD-META-02 bridging.md §2.3.3 (d): one that declares other capabilities is none; with those of the first request it goes on."""
    c = Caller(t, [["ask", 7, "elicitation/create", FORM], ["ask", 8, "sampling/createMessage", SAMPLE], ["text", "done"]])
    _, state = c.asked()
    caps, c.caps = c.caps, {"elicitation": {}}
    status, answer = c.ask(state, {"r1": ACCEPT})
    eq((status, answer["error"]["code"]), (400, -32602))
    c.caps = caps
    requests, state = c.asked(state, {"r1": ACCEPT})
    eq([r["method"] for r in requests.values()], ["sampling/createMessage"])
    status, answer = c.ask(state, {key: {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"} for key in requests})
    eq((status, answer["result"]["content"][0]["text"]), (200, "done"))
