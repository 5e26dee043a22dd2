# SPDX-License-Identifier: Apache-2.0
"""What nobody uses gives way to who comes: processes, shares of them, sessions. bridging.md §1.9, SEC-16."""
import json
import subprocess
import time

import harness
import mcp
from c61_token import ALICE, BOB, entry
from harness import case, eq, ok, wait_for, within

HERE, THERE = "127.0.0.1", "127.0.0.2"
IDLE = 2.0  # what a session must have done nothing for
AUTH = {"auth": {"mode": "token", "tokens": [entry("alice", ALICE), entry("bob", BOB)]}}


def methods(t, pid):
    return [m.get("method") for m in t.daemon.messages(pid)]


def asleep(t):
    return len(t.daemon.log("session_asleep"))


@case(daemon=False, deadline=40)
def who_left_makes_room(t):
    """bridging §1.9: clients that went without DELETE do not keep the next one out; their sessions sleep, and go on."""
    t.start({"main": {"script": {}, "pool": {"max": 3}}})
    kept = [t.session(source=HERE) for _ in range(3)]
    pids = [s.pid() for s in kept]
    began = time.monotonic()
    new = t.session(source=THERE)
    ok(time.monotonic() - began > IDLE - 0.5, "a session that was used a moment ago gave way", time.monotonic() - began)
    within(began, 8, "the newcomer's wait")
    new_pid = new.pid()
    ok(new_pid not in pids, "a process of its own", new_pid, pids)
    eq((asleep(t), len(t.daemon.children("main"))), (1, 3))
    eq(kept[0].echo("awake"), "awake")  # it was idle for longest: it slept
    eq([s.ask("ping")["result"] for s in kept + [new]], [{}] * 4, "nobody's session has ended")
    eq(len(t.daemon.log("session_end")), 0)


@case(daemon=False, deadline=40)
def what_was_asked_for_is_asked_again(t):
    """bridging §1.9, §4: a session that wakes: initialize, level and subscriptions are repeated, and its lists may have changed."""
    t.start({"main": {"script": {}, "pool": {"max": 1}}})
    a = t.session(source=HERE, caps={"roots": {}})
    eq(a.ask("logging/setLevel", {"level": "warning"})["result"], {})
    eq(a.ask("resources/subscribe", {"uri": "res://1"})["result"], {})
    first = a.pid()
    b = t.session(source=THERE)
    ok(b.pid() != first, "another process")
    eq(a.echo("again"), "again")
    third = a.pid()
    said = t.daemon.messages(third)
    eq(said[0]["params"], t.daemon.messages(first)[0]["params"], "initialize")
    eq([m["params"] for m in said if m.get("method") in ("logging/setLevel", "resources/subscribe")],
       [{"level": "warning"}, {"uri": "res://1"}])
    told = a.get()
    ok("notifications/tools/list_changed" in [told.next()["method"] for _ in range(3)], "list_changed")
    told.close()
