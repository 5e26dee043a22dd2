# SPDX-License-Identifier: Apache-2.0
"""HTTP+SSE after a lost connection: the client's EventSource comes back, and never initializes again. requirements §12."""
import hashlib
import json
import re

import mcp
from c62_oauth import RESOURCE, begin as begin_oauth
from c64_deny import deny
from harness import case, eq, ok, wait_for
from mcp import A, notification, request

VERSION = ("MCP-Protocol-Version", A)
TOKENS = {"auth": {"mode": "token", "tokens": [{"name": n, "sha256": hashlib.sha256(n.encode()).hexdigest()} for n in ("alice", "bob")]}}
SERVERS = {"main": {}, "other": {}}
LONG = {"sessions": {"reconnect_timeout": "1m"}}
SHORT = {"sessions": {"reconnect_timeout": "300ms"}}
ERROR_WITHOUT_ID = "what no request asked for has no id; FRONT-RES-07"


def state(daemon, name):
    daemon.wait_log("sse_client_state", "to=" + name)


def lose(c):
    def lost():
        return len([line for line in c.daemon.log("sse_client_state") if "to=lost" in line])
    before = lost()
    c.close()
    wait_for(lambda: lost() == before + 1, what="the loss")


@case(own=True, config=LONG)
def comes_back_and_goes_on(t):
    """FRONT-OLD-04: the same address, process and session; what was answered meanwhile comes, and nothing twice."""
    c = t.sse()
    pid = c.pid()
    call = c.start_do(["sleep", 0.3], ["text", "late"])
    lose(c)
    eq(c.post(request("more", "tools/list")).status, 503, "nobody would read the answer")
    eq(c.post(notification("notifications/x")).status, 202)
    d = c.again()
    eq(d.uri, c.uri)
    ok(b"retry: 1000" in d.first.raw, "retry", d.first)
    eq(d.wait_answer(call)["result"]["content"][0]["text"], "late")
    eq(d.seen, [])
    eq(d.pid(), pid)
    seen = d.last_id
    call = d.start_do(["text", "seen by nobody"])
    ok(d.next(), "an answer that the client did not get")
    d.last_id = seen
    d.close()
    e = d.again()
    eq(e.wait_answer(call)["result"]["content"][0]["text"], "seen by nobody")


@case(own=True, config=LONG)
def takes_over_a_connection_that_is_only_half_dead(t):
    """FRONT-OLD-04: the old connection is ended, and the new one has the rest."""
    c = t.sse()
    call = c.start_do(["sleep", 0.5], ["text", "x"])
    d = c.again()
    eq(d.wait_answer(call)["result"]["content"][0]["text"], "x")
    eq(c.next(), None)
    eq(d.do_text(["text", "y"]), "y")


@case(own=True, config=LONG)
def before_initialize_nothing_is_kept(t):
    """FRONT-OLD-04: a client that had no session begins anew, with the id of the first event, too."""
    c = t.sse(begin=False)
    ok(c.last_id.endswith("-0"), "id", c.last_id)
    c.close()
    state(c.daemon, "gone")
    d = t.sse(extra=[("Last-Event-ID", c.last_id)])
    ok(d.uri != c.uri, "a new client", d.uri)
    eq(d.do_text(["text", "x"]), "x")


@case(own=True, config=LONG)
def away_during_initialize(t):
    """FRONT-OLD-04: the answer to initialize waits for its client."""
    daemon = t.start({"main": {"script": {"init": [["sleep", 0.5], ["answer"]]}}}, config=LONG)
    c = t.sse(daemon=daemon, begin=False)
    call = c.start("initialize", mcp.initialize(A)["params"])
    c.close()
    state(daemon, "lost")
    d = c.again()
    ok("result" in d.wait_answer(call), "initialize", d.seen)
    eq(d.do_text(["text", "x"]), "x")


@case(own=True, config=SHORT)
def not_for_ever(t):
    """FRONT-OLD-04: after sessions.reconnect_timeout the call is cancelled, the process ends, the id is unknown."""
    c = t.sse()
    pid = c.pid()
    c.start_do(["wait_cancel"])
    wait_for(lambda: "wait_cancel" in str(t.daemon.messages(pid)), what="the call at the child")
    lose(c)
    wait_for(lambda: "notifications/cancelled" in str(t.daemon.messages(pid)), what="the cancellation")
    wait_for(lambda: pid not in t.daemon.children(), what="the end of the process")
    eq(t.sse(begin=False, extra=[("Last-Event-ID", c.last_id)]).response.status, 404)


@case(own=True, config=dict(LONG, streams={"replay_bytes": "1KiB"}))
def what_is_kept_is_bounded(t):
    """FRONT-OLD-04 FRONT-RES-07: what is no longer kept is said; answers that are too much end the session."""
    t.expect_invalid("2024-11-05, to a client.* id missing", ERROR_WITHOUT_ID)
    c = t.sse()
    first = c.last_id
    for i in range(4):
        c.do_text(["text", "x" * 900])
    lose(c)
    c.last_id, newest = first, c.last_id
    d = c.again()
    lost = d.next()
    eq((lost["error"]["code"], lost["error"]["data"]), (-32603, {"reason": "stream_expired"}))
    eq(d.last_id, newest)
    eq(d.do_text(["text", "y"]), "y")
    for _ in range(4):
        d.start_do(["sleep", 0.5], ["text", "z" * 900])
    lose(d)
    wait_for(lambda: not t.daemon.children(), what="the end of the process")
    eq(d.again().response.status, 404)


@case(own=True, config=dict(LONG, **TOKENS))
def ids_are_their_owners(t):
    """FRONT-OLD-04 FRONT-RES-03: another principal's id, another server's, and one that was made up are unknown."""
    alice, bob = mcp.bearer("alice"), mcp.bearer("bob")
    c = SseOf(t, alice)
    event = c.last_id
    ok(not event.endswith("-0"), "an event was seen", event)
    for server, who, event_id in (("main", bob, event), ("other", alice, event), ("main", alice, "x" + event[1:]),
                                  ("main", alice, event[:-1]), ("main", alice, "00000000-0-1"), ("main", alice, "z" * 300)):
        status = t.sse(server=server, begin=False, extra=list(who) + [("Last-Event-ID", event_id)]).response.status
        eq(status, 404, (server, event_id))
    eq(t.sse(begin=False, extra=[("Last-Event-ID", event)]).response.status, 401)
    eq(c.again(*alice).response.status, 200, "its owner")


@case(own=True, config=LONG)
def without_an_id_a_new_session(t):
    """FRONT-OLD-09: of an anonymous client, as far as it says that it has initialized; nothing of the old session is in it."""
    c = t.sse()
    pid = c.pid()
    call = c.start_do(["sleep", 0.2], ["text", "not for everybody"])
    lose(c)
    d = c.again(VERSION, event_id=False)
    ok(d.uri != c.uri, "another client", d.uri)
    wait_for(lambda: d.post(notification("notifications/initialized")).status == 202, what="the session")
    wait_for(lambda: d.post(request("a", "ping")).status == 202, what="the session")
    eq(d.next(), {"jsonrpc": "2.0", "id": "a", "result": {}})
    ok(d.pid() != pid, "a process of its own", pid)
    eq(d.seen, [])
    e = c.again()
    eq(e.wait_answer(call)["result"]["content"][0]["text"], "not for everybody")


@case(own=True, config=LONG)
def without_a_word_a_new_session(t):
    """FRONT-OLD-09: a client that names nothing when it comes back; one that is new may ping before it initializes."""
    c = t.sse()
    pid = c.pid()
    lose(c)
    d = c.again(event_id=False)
    wait_for(lambda: d.post(request("a", "tools/list")).status == 202, what="the session")
    eq(d.next()["id"], "a")
    ok(d.pid() != pid, "a process of its own", pid)
    e = t.sse(begin=False)
    eq(e.ask("ping")["error"]["code"], -32600)
    ok("result" in e.ask("initialize", mcp.initialize(A)["params"]), "initialize")


@case(own=True, config=dict(LONG, **TOKENS))
def without_an_id_the_only_lost_session(t):
    """FRONT-OLD-09: of a caller with a token, if it is the only one that he has lost; nobody else's."""
    alice, bob = mcp.bearer("alice"), mcp.bearer("bob")
    c = SseOf(t, alice)
    pid = c.pid()
    call = c.start_do(["sleep", 1], ["text", "for its caller"])
    lose(c)
    stranger = SseOf(t, bob, VERSION)
    ok(stranger.uri != c.uri, "his own", stranger.uri)
    d = SseOf(t, alice, VERSION)
    eq(d.wait_answer(call)["result"]["content"][0]["text"], "for its caller", "it need not say anything")
    eq(d.pid(), pid)
    eq(d.seen, [])
    late = d.start_do(["sleep", 1], ["text", "on its way"])
    lose(d)
    e = SseOf(t, alice, VERSION)
    eq((e.pid(), e.seen), (pid, []), "by its first message")
    eq(e.wait_answer(late)["result"]["content"][0]["text"], "on its way")


@case(own=True, config=dict(LONG, **TOKENS))
def a_new_client_names_its_revision_too(t):
    """FRONT-OLD-09: AI SDKs do so before they initialize; whoever initializes is a new client, and takes nothing."""
    alice = mcp.bearer("alice")
    c = SseOf(t, alice)
    pid = c.pid()
    call = c.start_do(["sleep", 0.1], ["text", "of the lost one"])
    lose(c)
    d = SseOf(t, alice, VERSION)
    ok("result" in d.ask("initialize", mcp.initialize(A)["params"]), "initialize")
    eq(d.post(notification("notifications/initialized")).status, 202)
    ok(d.pid() != pid, "a process of its own", pid)
    eq(d.seen, [])
    e = c.again(*alice)
    eq(e.wait_answer(call)["result"]["content"][0]["text"], "of the lost one")


@case(own=True, config=LONG)
def a_new_anonymous_client_names_its_revision_too(t):
    """FRONT-OLD-09."""
    d = t.sse(extra=[VERSION], begin=False)
    ok("result" in d.ask("initialize", mcp.initialize(A)["params"]), "initialize")
    eq(d.post(notification("notifications/initialized")).status, 202)
    eq(d.do_text(["text", "x"]), "x")
    eq(len(t.daemon.children()), 1)


@case(own=True, config=dict(LONG, **TOKENS))
def none_of_several_lost_sessions(t):
    """FRONT-OLD-09: who has lost two, and does not say which, gets neither."""
    alice = mcp.bearer("alice")
    lost = [SseOf(t, alice), SseOf(t, alice)]
    pids = [c.pid() for c in lost]
    for c in lost:
        lose(c)
    d = SseOf(t, alice, VERSION)
    wait_for(lambda: d.post(notification("notifications/initialized")).status == 202, what="the session")
    wait_for(lambda: d.post(request("a", "ping")).status == 202, what="the session")
    eq(d.next(), {"jsonrpc": "2.0", "id": "a", "result": {}})
    ok(d.pid() not in pids, "a process of its own", pids)
    for c, pid in zip(lost, pids):
        eq(SseAgain(c, alice).pid(), pid, "its own by its id")


@case(own=True, config=dict(LONG, **TOKENS))
def denied_while_it_is_read(t):
    """AUTH-SES-07: who is denied is not waited for: stream, session and process end at once."""
    c = SseOf(t, mcp.bearer("alice"))
    pid = c.pid()
    eq(deny(t, issuer="static", sub="alice")["issuer"], "static")
    eq(c.next(), None)
    wait_for(lambda: pid not in t.daemon.children(), what="the end of the process")
    t.daemon.never_logged("sse_client_state", "to=lost")


@case(own=True, config=dict(LONG, **TOKENS))
def denied_while_it_is_away(t):
    """AUTH-SES-07: nobody reads the stream that would end: the session ends all the same, at once; that of another does not."""
    alice, bob = SseOf(t, mcp.bearer("alice")), SseOf(t, mcp.bearer("bob"))
    pids = [alice.pid(), bob.pid()]
    for c in (alice, bob):
        lose(c)
    eq(deny(t, issuer="static", sub="alice")["sessions_ended"], 1)
    wait_for(lambda: pids[0] not in t.daemon.children(), what="the end of the process")
    eq(alice.again(*mcp.bearer("alice")).response.status, 401)
    eq(SseAgain(bob, mcp.bearer("bob")).pid(), pids[1])


@case(own=True, config=dict(LONG, **TOKENS), servers={"main": {"script": {"init": [["sleep", 0.5], ["answer"]]}}})
def denied_after_it_left_during_initialize(t):
    """AUTH-SES-07: the same of a session that began while its client was away."""
    c = SseOf(t, mcp.bearer("alice"), ("X", "x"))
    c.start("initialize", mcp.initialize(A)["params"])
    lose(c)
    wait_for(lambda: json.loads(ask_admin(t, "/status"))["sessions"] == 1, what="the session")
    eq(deny(t, issuer="static", sub="alice")["sessions_ended"], 1)
    wait_for(lambda: not t.daemon.children(), what="the end of the process")


@case(daemon=False, deadline=20)
def another_token_takes_it_up(t):
    """AUTH-SES-07 FRONT-OLD-04: the same principal may come back with a fresh token; the old one, denied then, ends nothing."""
    i = begin_oauth(t, SERVERS)
    t.daemon = t.daemons[-1]
    first, second = i.token(RESOURCE, jti="first"), i.token(RESOURCE, jti="second")
    c = SseOf(t, mcp.bearer(first))
    pid = c.pid()
    lose(c)
    d = SseAgain(c, mcp.bearer(second))
    eq(d.pid(), pid)
    eq(deny(t, issuer=i.url, jti="first")["sessions_ended"], 0)
    eq(d.pid(), pid, "it goes on")
    eq(t.sse(begin=False, token=first, extra=[("Last-Event-ID", d.last_id)]).response.status, 401)
    stranger = i.token(RESOURCE, client_id="other")
    eq(t.sse(begin=False, token=stranger, extra=[("Last-Event-ID", d.last_id)]).response.status, 404, "another client of his")


@case(own=True, config=LONG, servers={"main": {"script": {}}})
def its_process_dies_while_it_is_away(t):
    """FRONT-OLD-04 REL-28: the call that ran is told as failed when the client is back, and the session goes on with a fresh process."""
    c = t.sse()
    pid = c.pid()
    call = c.start_do(["sleep", 0.3], ["exit", 3])
    lose(c)
    wait_for(lambda: pid not in t.daemon.children(), what="its end")
    d = c.again()
    eq(d.wait_answer(call)["error"]["data"]["reason"], "child_exited")
    ok(d.pid() != pid, "a fresh one", pid)


def ask_admin(t, path):
    return t.conn(address=t.daemon.admin).request("GET", path).read()


def SseAgain(c, who):
    d = c.again(*who)
    plain = d.post
    d.post = lambda body, headers=(("Content-Type", "application/json"),), uri=None: plain(body, list(headers) + list(who), uri)
    return d


def SseOf(t, who, *more):
    c = t.sse(extra=list(who) + list(more), begin=False)
    plain = c.post
    c.post = lambda body, headers=(("Content-Type", "application/json"),), uri=None: plain(body, list(headers) + list(who), uri)
    if not more:
        c.ask("initialize", mcp.initialize(A)["params"])
    return c
