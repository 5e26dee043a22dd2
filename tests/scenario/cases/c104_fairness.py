# SPDX-License-Identifier: Apache-2.0
"""One caller takes all that it can get of what callers share; another one's call, stream, record and line come through."""
from harness import case, eq, ok

CONFIG = {"limits": {"response": "64KiB"}}
SERVERS = {"main": {"script": {}, "isolation": "shared", "pool": {"max": 1, "idle_timeout": "1500ms"}}}


@case
def an_answer_that_is_too_large(t):
    """BACK-FRAME-06, REL-22: of a shared process's calls, only the one that it answers fails, wherever the id stands."""
    other, one = t.session("main"), t.session("main")
    pid = one.pid()
    eq(other.pid(), pid, "one process")
    waiting = other.start_do(["sleep", 1], ["text", "fine"])
    for begin, end in (('{"jsonrpc":"2.0","id":@ID@,"result":"', '"}\n'), ('{"jsonrpc":"2.0","result":{"id":"', '"},"id":@ID@}\n'),
                       ('[{"jsonrpc":"2.0","result":{"id":"', '"},"id":@ID@}]\n')):
        error = one.do(["write", begin], ["fill", "x", 300 << 10], ["write", end])["error"]
        eq((error["code"], error["data"]["reason"]), (-32603, "child_protocol_error"))
        ok("larger than the gateway allows" in error["message"], "true", error)
    eq(waiting.final()["result"]["content"][0]["text"], "fine")
    eq((one.pid(), other.pid()), (pid, pid), "the process stays")
