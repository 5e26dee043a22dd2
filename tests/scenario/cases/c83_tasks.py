# SPDX-License-Identifier: Apache-2.0
"""Tasks: those of 2026-07-28 (SEP-2663) at servers of that revision, and nobody else's. bridging.md §2.5."""
import json
import os

import mcp
from c80_stateless import META, ask, begin, fields, listen, message, messages_of
from c81_parked import ACCEPT, ALICE, FORM, TOKENS
from harness import case, eq, ok, wait_for

EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS = {"elicitation": {}, "extensions": {EXTENSION: {}}}
MODERN = {"era": "modern", "caps": {"tools": {"listChanged": True}, "extensions": {EXTENSION: {}}}}
DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
SERVERS = {
    "main": {"script": MODERN},
    "all": {"script": MODERN, "isolation": "shared"},
    "two": {"script": MODERN, "pool": {"max": 4, "requests_per_process": 1}},
    "brief": {"script": MODERN, "pool": {"idle_timeout": "300ms"}},
    "plain": {"script": {"era": "modern"}},
}
CONFIG = {"defaults": {"era": "modern", "pool": {"idle_timeout": "1500ms"}}}


def call(t, server, *steps, caps=KNOWS, **kw):
    status, found = ask(t, server, "tools/call", {"name": "do", "arguments": {"steps": list(steps)}}, caps=caps, **kw)
    return status, found[-1]


def made(t, server, *steps, task_id="t1", members=None, **kw):
    """The id of a task that does these steps, as its client knows it."""
    status, answer = call(t, server, ["task", task_id, list(steps), members], **kw)
    eq((status, answer["result"]["resultType"], answer["result"]["status"]), (200, "task", "working"), answer)
    return answer["result"]["taskId"]


def of(t, server, method, task_id, caps=KNOWS, **more):
    status, found = ask(t, server, method, dict({"taskId": task_id}, **more), caps=caps)
    return status, found[-1]


def state(t, server, task_id):
    status, answer = of(t, server, "tasks/get", task_id)
    eq((status, answer["result"]["resultType"], answer["result"]["taskId"]), (200, "complete", task_id), answer)
    return answer["result"]


def refused(t, server, method, task_id, **kw):
    status, answer = of(t, server, method, task_id, **kw)
    return status, answer["error"]["code"]


@case
def a_call_becomes_a_task(t):
    """MOD-TASK-01 MOD-TASK-02 MOD-RES-02: it is asked about by an id that is not the server's, until it has its result."""
    for server in ("main", "all"):
        task = made(t, server, ["sleep", 0.2], ["job", DONE])
        ok(task.startswith("g1.") and "t1" not in task, task)
        eq(state(t, server, task)["status"], "working")
        done = wait_for(lambda: (s := state(t, server, task))["status"] == "completed" and s, 3, "its end")
        eq((done["result"], done["ttlMs"], done["createdAt"]), (DONE["result"], 600000, "2026-01-01T00:00:00Z"))
        eq(done["_meta"][META + "serverInfo"]["name"], "scripted")
        asked = [m["params"]["taskId"] for p in t.daemon.children(server) for m in t.daemon.messages(p)
                 if m.get("method") == "tasks/get"]
        eq(set(asked), {"t1"})
