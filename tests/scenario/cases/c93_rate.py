# SPDX-License-Identifier: Apache-2.0
"""How often a caller may call a server: on every way in, each caller for itself, and nothing of what is refused arrives."""
import json

import mcp
from c65_doors import EVENTS, WAYS, Way, each_way
from c80_stateless import meta
from harness import case, eq, ok, wait_for

SERVERS = {"main": {"script": {}, "rate": {"calls": 4, "per": "1d"}}, "free": {"script": {}},
           "narrow": {"script": {}, "concurrency": 2},
           "tools": {"script": {}, "rate": {"calls": 9, "per": "1d"}, "tools": {"limits": [
               {"tools": ["e*"], "calls": 3, "per": "1d"}, {"tools": ["do"], "concurrency": 1}]}},
           "quick": {"script": {}, "rate": {"calls": 1, "per": "1s", "burst": 1}}}


def tell(way, place, text, server="main", sub="alice", tool="echo"):
    """(status, Retry-After, code or reason) of one call, in a batch with a ping."""
    way.last_id += 2
    params = {"name": tool, "arguments": {"text": text}}
    if way.front == "stateless":
        params["_meta"] = meta()
    call = mcp.request(way.last_id, "tools/call", params)
    token = None if way.front == "admin" else way.token(server, sub)
    conn = way.send(place, [mcp.request(way.last_id - 1, "ping"), call] if way.is_batch else call, token)
    response = conn.response()
    body = response.read()
    conn.close()
    if place.sse and response.status == 202:
        answer = place.sse.wait_answer(way.last_id)
    else:
        answers = json.loads(body)
        answers = answers if isinstance(answers, list) else [answers]
        answer = next((a for a in answers if a.get("id") == way.last_id), answers[0])
    reason = answer["error"]["data"]["reason"] if "error" in answer else "taken"
    return response.status, response.header("retry-after"), reason


def by_rate(t, name):
    way = Way(t, name, SERVERS)
    place = way.home
    for i in range(4):
        eq(tell(way, place, "within-%d" % i)[2], "taken", i)
    for i in range(3):
        status, after, reason = tell(way, place, "beyond-%d" % i)
        eq(reason, "rate_limited")
        eq(status, 202 if place.sse else 429)
        ok(place.sse or 0 < int(after) <= 86400 // 4 + 1, "Retry-After", after)
    if not place.sse:
        t.daemon.wait_log("caller_refused", "status=429", "server=main", "cause=servers.main.rate")
    other = way.open("free")
    for i in range(6):
        eq(tell(way, other, "free-%d" % i, "free")[2], "taken", "another server")
    arrived = {m["params"]["arguments"]["text"] for pid, _ in t.daemon.records_of("main") for m in t.daemon.messages(pid)
               if m.get("method") == "tools/call"}
    eq(arrived, {"within-%d" % i for i in range(4)}, "what reached the server")


each_way(by_rate, "by_", "REL-46 product §5: by way of %s a caller has so many calls, and nothing beyond reaches the server.")


def without_answer(t, name):
    """Notifications with the method of a call, in a batch with another one."""
    way = Way(t, name, SERVERS)
    token = None if way.front == "admin" else way.good

    def status_of(message):
        conn = way.send(way.home, [message, mcp.notification("notifications/other")] if way.is_batch else message, token)
        status = conn.response().status
        conn.close()
        return status

    calls = [mcp.notification("Tools/Call " if i == 1 else "tools/call", {"name": "echo", "arguments": {"text": "note-%d" % i}})
             for i in range(6)]
    eq([status_of(call) for call in calls], [202] * 4 + [429] * 2, "notifications")
    eq(tell(way, way.home, "beyond")[2], "rate_limited", "a call")
    eq(status_of(mcp.notification("notifications/last")), 202, "what is no call")
    sent = lambda: [m for pid, _ in t.daemon.records_of("main") for m in t.daemon.messages(pid)]
    wait_for(lambda: [m for m in sent() if m["method"] == "notifications/last"], 5, "the last one")
    eq([m["params"]["arguments"]["text"] for m in sent() if m["method"] in ("tools/call", "Tools/Call ")],
       ["note-%d" % i for i in range(4)], "what reached the server")


each_way(without_answer, "without_an_answer_by_", "REL-46 SEC-50: by way of %s a notification that a server may take for a call is counted as one.", ways=WAYS[:-1])


@case(daemon=False, deadline=60)
def callers_are_counted_apart(t):
    """REL-46 AUTH-SES-01: one who has called too often keeps nobody else from calling, and has a call again by and by."""
    way = Way(t, "stateless", SERVERS)
    for i in range(4):
        eq(tell(way, way.home, "a")[2], "taken")
    eq(tell(way, way.home, "a")[2], "rate_limited")
    for i in range(4):
        eq(tell(way, way.home, "b", sub="bob")[2], "taken", "bob")
    eq(tell(way, way.home, "b", sub="bob")[2], "rate_limited", "bob")
    eq(tell(way, way.home, "a")[2], "rate_limited", "alice is still known")
    quick = way.open("quick")
    eq(tell(way, quick, "1", "quick")[2], "taken")
    eq(tell(way, quick, "2", "quick"), (429, "1", "rate_limited"))
    wait_for(lambda: tell(way, quick, "3", "quick")[2] == "taken", 3, "another call")


def by_concurrency(t, name):
    """Two calls that run; a third is refused, until one of them has ended."""
    way = Way(t, name, SERVERS)
    place = way.open("narrow")
    token = None if way.front == "admin" else way.token("narrow")
    running = []
    for i in range(2):
        params = {"name": "do", "arguments": {"steps": [["wait_cancel"], ["text", "stopped"]]}}
        if way.front == "stateless":
            params["_meta"] = meta()
        call = mcp.request("long-%d" % i, "tools/call", params)
        running.append(way.send(place, [call] if way.is_batch else call, token))
        wait_for(lambda: len(of_method(t, "tools/call")) == i + 1, 5, "the call")
    for i in range(2):
        status, after, reason = tell(way, place, "beyond-%d" % i, "narrow")
        eq((status, reason), (202 if place.sse else 429, "rate_limited"))
        ok(place.sse or after == "1", "Retry-After", after)
    if way.front != "stateless":
        cancel = mcp.notification("notifications/cancelled", {"requestId": "long-0"})
        conn = way.send(place, [cancel] if way.is_batch else cancel, token)
        eq(conn.response().status, 202)
        conn.close()
    running.pop(0).close()  # of a request without a session this cancels it
    wait_for(lambda: tell(way, place, "within", "narrow")[2] == "taken", 5, "a call again")
    texts = [m["params"]["arguments"].get("text", "long") for m in of_method(t, "tools/call")]
    eq(texts, ["long", "long", "within"])
    for conn in running:
        conn.close()


def of_method(t, method, server="narrow"):
    return [m for pid, _ in t.daemon.records_of(server) for m in t.daemon.messages(pid) if m.get("method") == method]


each_way(by_concurrency, "at_once_by_", "REL-46 product §5: by way of %s a caller has so many calls in flight.")


def discover_beyond(t, front):
    """The statuses of server/discover for a caller who has called too often."""
    way = Way(t, front, SERVERS)
    place = way.open("main")
    params = {"_meta": meta()} if front == "stateless" else {}
    while tell(way, place, "x")[2] == "taken":
        pass
    statuses = []
    for ident in range(3):
        conn = way.send(place, mcp.request("discover-%d" % ident, "server/discover", params), way.token("main"))
        statuses.append(conn.response().status)
        conn.close()
    return statuses


@case(daemon=False, deadline=30)
def the_modern_handshake_is_free(t):
    """REL-46: who has called too often still learns what the server is, and does not take it for one of another era."""
    eq(discover_beyond(t, "stateless"), [200] * 3)


@case(daemon=False, deadline=30)
def what_only_looks_like_it_is_not(t):
    """REL-46 SEC-50: server/discover of a session is a call, as the server hears of it."""
    eq(discover_beyond(t, "streamable"), [429] * 3)


@case(daemon=False, deadline=60)
def streams_of_changes_are_not_counted(t):
    """REL-46 MOD-SUB-01 product §5: who has as many calls in flight as may be may listen to changes all the same, and a
    stream takes no place of a call; but opening streams has its rate."""
    way = Way(t, "stateless", SERVERS)
    place = way.open("narrow")
    token = way.token("narrow")

    def listen(ident, at, whom):
        params = {"_meta": meta(), "notifications": {"toolsListChanged": True}}
        return way.send(at, mcp.request(ident, "subscriptions/listen", params), whom, EVENTS)

    streams = [listen("listen-%d" % i, place, token) for i in range(3)]
    for conn in streams:
        eq(conn.response().status, 200, "a stream before the calls")
    running = []
    for i in range(2):
        call = mcp.request("long-%d" % i, "tools/call", {"name": "do", "arguments": {"steps": [["wait_cancel"]]}, "_meta": meta()})
        running.append(way.send(place, call, token))
        wait_for(lambda: len(of_method(t, "tools/call")) == i + 1, 5, "the call")
    eq(tell(way, place, "beyond", "narrow")[2], "rate_limited")
    streams.append(listen("listen-late", place, token))
    eq(streams[-1].response().status, 200, "a stream beside the calls")
    main = [listen("listen-main-%d" % i, way.home, way.token("main")) for i in range(5)]
    eq([conn.response().status for conn in main], [200] * 4 + [429])
    for conn in streams + running + main:
        conn.close()


def by_tool(t, name):
    """Three calls of tools that begin with e, nine of any."""
    way = Way(t, name, SERVERS)
    place = way.open("tools")
    for i in range(3):
        eq(tell(way, place, "e%d" % i, "tools", tool=("echo", "ECHO", "e cho")[i])[2], "taken", i)
    for tool in ("echo", "Echo", "e"):
        status, after, reason = tell(way, place, "beyond", "tools", tool=tool)
        eq((status, reason), (202 if place.sse else 429, "rate_limited"), tool)
        ok(place.sse or 0 < int(after) <= 86400 // 3 + 1, "Retry-After", after)
    for i in range(6):
        eq(tell(way, place, "o%d" % i, "tools", tool="other")[2], "taken", "what was refused has taken nothing from the rest")
    eq(tell(way, place, "beyond", "tools", tool="other")[2], "rate_limited", "the server's own")
    arrived = [m["params"]["arguments"]["text"] for m in of_method(t, "tools/call", "tools")]
    eq(sorted(arrived), ["e0", "e1", "e2"] + ["o%d" % i for i in range(6)], "what reached the server")


def by_tool_at_once(t, name):
    """One call of `do` that runs: a second one waits for its end, other tools do not."""
    way = Way(t, name, SERVERS)
    place = way.open("tools")
    params = {"name": "do", "arguments": {"steps": [["wait_cancel"]]}}
    if way.front == "stateless":
        params["_meta"] = meta()
    call = mcp.request("long", "tools/call", params)
    conn = way.send(place, [call] if way.is_batch else call, None if way.front == "admin" else way.token("tools"))
    wait_for(lambda: len(of_method(t, "tools/call", "tools")) == 1, 5, "the call")
    eq(tell(way, place, "beyond", "tools", tool="do")[2], "rate_limited")
    eq(tell(way, place, "beyond", "tools", tool="DO")[2], "rate_limited")
    eq(tell(way, place, "beside", "tools")[2], "taken")
    conn.close()


for what in (by_tool, by_tool_at_once):
    each_way(what, what.__name__ + "_", "REL-46 product §4: by way of %s calls of some tools have limits of their own.")


@case(daemon=False, deadline=60)
def batches_are_taken_as_a_whole(t):
    """REL-46: of a batch that goes beyond one of several limits, nothing is taken from any."""
    way = Way(t, "streamable_batch", SERVERS)
    place = way.open("tools")

    def status_of(*tools):
        calls = [mcp.request("b%d" % i, "tools/call", {"name": tool, "arguments": {"text": "b"}}) for i, tool in enumerate(tools)]
        conn = way.send(place, calls, way.token("tools"))
        status = conn.response().status
        conn.close()
        return status

    eq(status_of("echo", "other", "echo"), 200)
    for i in range(5):
        eq(status_of("echo", "other", "echo"), 429)
    eq(status_of("other", "other", "other", "echo", "other", "other"), 200)
    eq(status_of("other"), 429)


def echo_of(text):
    return mcp.request(text, "tools/call", {"name": "echo", "arguments": {"text": text}})


@case(daemon=False, deadline=60)
def sessions_are_counted_where_they_began(t):
    """REL-46 product §5: who may use a session from several addresses has no more calls by that."""
    t.start({"main": SERVERS["main"], "narrow": SERVERS["narrow"]})
    session = t.session("main", source="127.0.0.1")
    eq([session.post(echo_of("here-%d" % i)).status for i in range(4)], [200] * 4)
    session.source = "127.0.0.2"
    eq(session.post(echo_of("there")).status, 429)
    eq(t.session("main", source="127.0.0.2").post(echo_of("another session")).status, 200)
    narrow = t.session("narrow", source="127.0.0.1")
    long = {"name": "do", "arguments": {"steps": [["wait_cancel"]]}}
    for i in range(2):
        narrow.begin(mcp.request("long-%d" % i, "tools/call", long))
        wait_for(lambda: len(of_method(t, "tools/call")) == i + 1, 5, "the call")
    narrow.source = "127.0.0.2"
    eq(narrow.post(echo_of("there")).status, 429)


@case(daemon=False, deadline=60)
def what_is_refused_takes_nothing(t):
    """SEC-54 product §5: the rate is the last check, so calls that a rule refuses, however many, leave all of it."""
    t.start({"main": dict(SERVERS["main"], tools={"deny": ["do"], "arguments": {"forbidden_keys": ["no"]}})})
    session = t.session("main")
    for i in range(6):
        eq(session.ask("tools/call", {"name": "echo", "arguments": {"no": 1}})["error"]["code"], -32602)
        eq(session.ask("tools/call", {"name": "do", "arguments": {}})["error"]["code"], -32602)
    eq([session.post(echo_of("w%d" % i)).status for i in range(5)], [200] * 4 + [429])


@case(daemon=False, deadline=60)
def batches_have_places_for_all(t):
    """REL-46 product §5: a batch is taken if there is room for all of its calls, and else none of them runs."""
    t.start({"narrow": SERVERS["narrow"]})
    session = t.session("narrow", version=mcp.B)
    eq(session.post([echo_of("a"), echo_of("b"), echo_of("c")]).status, 429)
    eq(session.post([echo_of("d"), echo_of("e")]).status, 200)
    eq([m["params"]["arguments"]["text"] for m in of_method(t, "tools/call")], ["d", "e"])
