#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Tests of mcpgated-demo over its pipes; prints TAP.  Argument: the program (default: the one that was built).
Every wait is bounded; only processes started here are ended.
"""
import json
import os
import select
import subprocess
import sys
import time

WAIT_S = 20
NEWEST = "2025-11-25"


class Demo:
    """One process; as a context it is ended when the test is over."""

    def __init__(self, revision=NEWEST, capabilities=None, handshake=True):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=0)
        self.rest = b""
        self.last_id = 0
        self.initialized = None
        if handshake:
            self.initialized = self.call("initialize", {"protocolVersion": revision, "capabilities": capabilities or {},
                                                        "clientInfo": {"name": "test", "version": "1"}})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def send_bytes(self, data):
        self.process.stdin.write(data)

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def request(self, method, params=None, request_id=None):
        """Sends only; returns the id."""
        self.last_id += 1
        request_id = self.last_id if request_id is None else request_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return request_id

    def read(self, wait_s=WAIT_S):
        """The next message; None if there is none in time or at the end of the output."""
        until = time.monotonic() + wait_s
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            data = self.process.stdout.read(1 << 20)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def answer(self, request_id):
        """The next message, which must be the answer to this; its result or error."""
        message = self.read()
        assert message is not None and message["jsonrpc"] == "2.0", message
        assert message.get("id") == request_id and type(message["id"]) is type(request_id), message
        return message["error"] if "error" in message else message["result"]

    def call(self, method, params=None, request_id=None):
        return self.answer(self.request(method, params, request_id))

    def tool_request(self, name, arguments, **more):
        return self.request("tools/call", {"name": name, "arguments": arguments, **more})

    def tool(self, name, **arguments):
        return self.answer(self.tool_request(name, arguments))


def text_of(result):
    assert "isError" not in result, result
    return result["content"][0]["text"]


def failure_of(result):
    assert result["isError"] is True, result
    return result["content"][0]["text"]


def test_every_known_revision_is_echoed_and_others_get_the_newest():
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        with Demo(revision) as demo:
            assert demo.initialized["protocolVersion"] == revision
            assert ("completions" in demo.initialized["capabilities"]) == (revision != "2024-11-05")
    with Demo("1999-01-01") as demo:
        assert demo.initialized["protocolVersion"] == NEWEST
        assert demo.initialized["serverInfo"]["name"] == "mcpgated-demo"
        assert demo.initialized["capabilities"]["resources"] == {"subscribe": True}


def test_errors_have_their_codes():
    with Demo() as demo:
        assert demo.call("no/such")["code"] == -32601
        assert demo.call("tools/call", {"name": "nope"})["code"] == -32602
        assert demo.call("tools/call", {"name": "echo", "arguments": {}})["code"] == -32602
        assert demo.call("tools/call", {"name": "echo", "arguments": [1]})["code"] == -32602
        assert demo.call("tools/call", [])["code"] == -32602
        assert demo.call("tools/list", {"cursor": ""})["code"] == -32602
        assert demo.call("initialize", {"protocolVersion": NEWEST, "capabilities": {}})["code"] == -32600
        for line, code in ((b"{nonsense\n", -32700), (b"\xff\n", -32700), (b"\0\n", -32700), (b"7\n", -32600),
                           (b"{}\n", -32600), (b"[]\n", -32600),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600)):
            demo.send_bytes(line)
            message = demo.read()
            assert message["id"] is None and message["error"]["code"] == code, message
        assert demo.call("x" + 100 * "\u00e4")["code"] == -32601  # quoted in part
        assert demo.call("ping") == {}


def test_only_ping_and_initialize_come_before_initialize():
    with Demo(handshake=False) as demo:
        assert demo.call("server/discover")["code"] == -32601
        assert demo.call("tools/list")["code"] == -32600
        assert demo.call("ping", request_id="a") == {}


def test_blank_lines_and_split_lines():
    with Demo() as demo:
        demo.send_bytes(b'\n \r\n{"jsonrpc":"2.0",')
        time.sleep(0.05)
        demo.send_bytes(b'"id":"x","method":"ping"}\r\n{"jsonrpc":"2.0","id":"y","method":"ping"}\n')
        assert demo.answer("x") == {}
        assert demo.answer("y") == {}


def test_batches_in_their_revision_only():
    batch = [{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}]
    with Demo("2025-03-26") as demo:
        demo.send(batch)
        assert demo.answer("a") == {} and demo.answer("b") == {}
    with Demo() as demo:
        demo.send(batch)
        assert demo.read()["error"]["code"] == -32600


def test_tools_are_described():
    with Demo() as demo:
        tools = {t["name"]: t for t in demo.call("tools/list")["tools"]}
        assert set(tools) == {"echo", "add", "time", "sleep", "progress", "elicit", "sample", "roots", "big", "log",
                              "bump", "crash", "stderr"}
        assert all(t["description"] and t["inputSchema"]["type"] == "object" for t in tools.values())
        assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
        assert "outputSchema" in tools["add"] and "outputSchema" not in tools["echo"]
    with Demo("2024-11-05") as demo:
        assert not any("outputSchema" in t for t in demo.call("tools/list")["tools"])


def test_echo_returns_any_text():
    with Demo() as demo:
        for text in ("hello", "", "a\nb\r\0\u2028\u00e4\U0001f600\"\\"):
            assert text_of(demo.tool("echo", text=text)) == text


def test_add():
    with Demo() as demo:
        assert demo.tool("add", a=2, b=3)["structuredContent"] == {"sum": 5}
        assert text_of(demo.tool("add", a=0.5, b=1)) == "1.5"
        assert demo.tool("add", a=2**63 - 1, b=1)["structuredContent"]["sum"] == 2.0**63
        assert "large" in failure_of(demo.tool("add", a=1.7e308, b=1.7e308))
        assert demo.tool("add", a="2", b=3)["code"] == -32602
    with Demo("2025-03-26") as demo:
        assert "structuredContent" not in demo.tool("add", a=2, b=3)


def test_time_and_big_and_stderr():
    with Demo() as demo:
        assert abs(time.mktime(time.strptime(text_of(demo.tool("time")), "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
                   - time.time()) < 60
        assert len(text_of(demo.tool("big", bytes=300000))) == 300000
        assert text_of(demo.tool("big", bytes=0)) == ""
        assert demo.tool("big", bytes=-1)["code"] == -32602
        assert text_of(demo.tool("stderr", text="a line")) == "written"
        assert demo.process.stderr.read(7) == b"a line\n"


def test_sleep_blocks_nobody():
    with Demo() as demo:
        long, short = demo.tool_request("sleep", {"ms": 300}), demo.tool_request("sleep", {"ms": 100})
        assert demo.call("ping") == {}
        assert text_of(demo.answer(short)) == "slept"
        assert text_of(demo.answer(long)) == "slept"


def test_sleep_can_be_cancelled():
    with Demo() as demo:
        sleeper = demo.tool_request("sleep", {"ms": 200})
        demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
        demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sleeper}})
        assert demo.call("ping") == {}
        assert demo.read(0.5) is None


def test_progress_goes_to_the_token_only():
    with Demo() as demo:
        asked = demo.tool_request("progress", {"count": 3, "interval_ms": 10}, _meta={"progressToken": "t"})
        seen = [demo.read() for _ in range(3)]
        assert [m["method"] for m in seen] == ["notifications/progress"] * 3
        assert [m["params"]["progress"] for m in seen] == [1, 2, 3]
        assert all(m["params"]["progressToken"] == "t" and m["params"]["total"] == 3 for m in seen)
        assert text_of(demo.answer(asked)) == "3 steps done"
        assert text_of(demo.tool("progress", count=3, interval_ms=0)) == "3 steps done"


def ask_client(demo, tool, arguments, method, result):
    """Calls the tool, plays the client; returns what was asked and the tool's text."""
    asked = demo.tool_request(tool, arguments)
    request = demo.read()
    assert request["method"] == method, request
    assert demo.call("ping") == {}
    demo.send({"jsonrpc": "2.0", "id": request["id"], **result})
    return request["params"], demo.answer(asked)


def test_elicit():
    with Demo(capabilities={"elicitation": {}}) as demo:
        params, result = ask_client(demo, "elicit", {"message": "Who?"}, "elicitation/create",
                                    {"result": {"action": "accept", "content": {"name": "Ada"}}})
        assert params["message"] == "Who?" and params["requestedSchema"]["type"] == "object"
        assert text_of(result) == 'accept: {"name":"Ada"}'
        result = ask_client(demo, "elicit", {}, "elicitation/create", {"result": {"action": "decline"}})[1]
        assert text_of(result) == "decline: nothing"
        result = ask_client(demo, "elicit", {}, "elicitation/create", {"error": {"code": -1, "message": "no"}})[1]
        assert failure_of(result) == "The client refused: no"


def test_sample_and_roots():
    with Demo(capabilities={"sampling": {}, "roots": {}}) as demo:
        params, result = ask_client(demo, "sample", {"prompt": "Hi"}, "sampling/createMessage", {"result": {
            "role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}}})
        assert params["messages"][0]["content"]["text"] == "Hi" and params["maxTokens"] > 0
        assert text_of(result) == "m: Hello"
        result = ask_client(demo, "roots", {}, "roots/list", {"result": {"roots": [{"uri": "file:///a"}]}})[1]
        assert text_of(result) == '[{"uri":"file:///a"}]'


def test_clients_are_not_asked_for_what_they_did_not_declare():
    with Demo(capabilities={"elicitation": {"url": {}}}) as demo:
        assert "elicitation" in failure_of(demo.tool("elicit"))
        assert "sampling" in failure_of(demo.tool("sample", prompt="x"))
        assert "roots" in failure_of(demo.tool("roots"))


def test_cancelling_a_call_withdraws_its_question():
    with Demo(capabilities={"roots": {}}) as demo:
        asked = demo.tool_request("roots", {})
        request = demo.read()
        demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked}})
        notice = demo.read()
        assert notice["method"] == "notifications/cancelled" and notice["params"]["requestId"] == request["id"]
        demo.send({"jsonrpc": "2.0", "id": request["id"], "result": {"roots": []}})
        assert demo.call("ping") == {}


def test_log_respects_the_level():
    with Demo() as demo:
        asked = demo.tool_request("log", {"level": "error", "text": "x"})
        assert demo.read() == {"jsonrpc": "2.0", "method": "notifications/message",
                               "params": {"level": "error", "logger": "demo", "data": "x"}}
        assert text_of(demo.answer(asked)) == "sent"
        assert text_of(demo.tool("log", level="debug", text="x")).startswith("not sent")
        assert demo.call("logging/setLevel", {"level": "debug"}) == {}
        assert demo.call("logging/setLevel", {"level": "loud"})["code"] == -32602
        demo.tool_request("log", {"level": "debug", "text": "y"})
        assert demo.read()["params"]["data"] == "y"


def read_resource(demo, uri):
    return demo.call("resources/read", {"uri": uri})["contents"][0]["text"]


def test_resources():
    with Demo() as demo:
        assert [r["uri"] for r in demo.call("resources/list")["resources"]] == ["demo://clock", "demo://counter"]
        template = demo.call("resources/templates/list")["resourceTemplates"][0]
        assert template["uriTemplate"] == "demo://echo/{text}"
        assert read_resource(demo, "demo://clock").endswith("Z")
        assert read_resource(demo, "demo://echo/a%20b%C3%A4") == "a b\u00e4"
        for uri in ("demo://echo/%f", "demo://echo/%zz", "demo://echo/%ff"):
            assert demo.call("resources/read", {"uri": uri})["code"] == -32602
        error = demo.call("resources/read", {"uri": "demo://nothing"})
        assert error["code"] == -32002 and error["data"] == {"uri": "demo://nothing"}


def test_subscribers_hear_of_the_counter():
    with Demo() as demo:
        assert text_of(demo.tool("bump")) == "1"
        assert demo.call("resources/subscribe", {"uri": "demo://counter"}) == {}
        asked = demo.tool_request("bump", {})
        assert demo.read() == {"jsonrpc": "2.0", "method": "notifications/resources/updated",
                               "params": {"uri": "demo://counter"}}
        assert text_of(demo.answer(asked)) == "2"
        assert read_resource(demo, "demo://counter") == "2"
        assert demo.call("resources/unsubscribe", {"uri": "demo://counter"}) == {}
        assert text_of(demo.tool("bump")) == "3"
        assert demo.call("resources/subscribe", {"uri": "demo://nothing"})["code"] == -32002


def test_prompts_and_completion():
    greet = {"type": "ref/prompt", "name": "greet"}
    with Demo() as demo:
        assert demo.call("prompts/list")["prompts"][0]["arguments"][0]["required"] is True
        prompt = demo.call("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        assert "Ada" in prompt["messages"][0]["content"]["text"]
        assert demo.call("prompts/get", {"name": "greet"})["code"] == -32602
        assert demo.call("prompts/get", {"name": "nope", "arguments": {}})["code"] == -32602
        done = demo.call("completion/complete", {"ref": greet, "argument": {"name": "name", "value": "a"}})
        assert done["completion"] == {"values": ["Ada", "Alan"], "total": 2, "hasMore": False}
        error = demo.call("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"},
                                                  "argument": {"name": "name", "value": ""}})
        assert error["code"] == -32602


def test_crash_and_end_of_input():
    with Demo() as demo:
        demo.tool_request("crash", {"status": 7})
        assert demo.process.wait(WAIT_S) == 7 and demo.read() is None
    with Demo() as demo:
        demo.tool_request("sleep", {"ms": 60000})
        demo.send_bytes(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        demo.process.stdin.close()
        assert demo.answer("last") == {}
        assert demo.process.wait(WAIT_S) == 0
        assert demo.process.stderr.read() == b""


def test_options():
    def run(*options):
        return subprocess.run([PROGRAM, *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S,
                              check=False)
    assert run("--version").stdout.startswith(b"mcpgated-demo ")
    assert run("--help").stdout.startswith(b"Usage: ")
    assert run("--nonsense").returncode == 2 and run("argument").returncode == 2
    assert run().returncode == 0


def main():
    tests = [(name[5:].replace("_", " "), test) for name, test in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}", flush=True)
        except Exception as error:  # any failure of one test is a line, not the end
            failed += 1
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            print(f"not ok {number} - {name}\n# line {where.tb_lineno}: {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


PROGRAM = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("top_builddir", "."), "mcpgated-demo")
if __name__ == "__main__":
    sys.exit(main())
