# SPDX-License-Identifier: Apache-2.0
"""Clients and servers of different revisions: each with each, one story. bridging §3."""
import json

from harness import case, eq, ok, wait_for
from mcp import A, B, C, D, Session

ORDER = (A, B, C, D)
NAMES = {A: "a", B: "b", C: "c", D: "d"}

TEXT = {"type": "text", "text": "t"}
TASK = {"taskId": "1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": None}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
EMBEDDED = {"type": "resource", "resource": {"uri": "res://a", "text": "x"}}
AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "annotations": {"priority": 0.5}}
AUDIO_TEXT = {"type": "text", "text": "[audio: audio/wav, 4 bytes omitted]", "annotations": {"priority": 0.5}}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "A", "mimeType": "text/plain"}
LINK_TEXT = {"type": "text", "text": "A: file:///a"}
PLAIN_TOOL = {"name": "do", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
FORM = {"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}}


def since(revision, version, items):
    return list(items) if ORDER.index(version) >= ORDER.index(revision) else []


def is_before(version, revision):
    return ORDER.index(version) < ORDER.index(revision)


# ---- servers that speak as their revision does ------------------------------

def server_capabilities(version):
    caps = {"tools": {"listChanged": True}, "prompts": {}, "logging": {}}
    if not is_before(version, B):
        caps["completions"] = {}
    if version == D:
        caps["tasks"] = {"list": {}, "requests": {"tools": {"call": {}}}}
    return caps


def tools(version):
    return ([PLAIN_TOOL] + since(C, version, [{"name": "titled", "title": "T", "inputSchema": {"type": "object"},
                                               "outputSchema": {"type": "object"}}])
            + since(D, version, [{"name": "must", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
                                 {"name": "may", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]))


def blocks(version):
    return [TEXT, IMAGE, EMBEDDED] + since(B, version, [AUDIO]) + since(C, version, [LINK])


def server(version):
    return {"version": version, "caps": server_capabilities(version), "on": {
        "tools/list": [["result", {"tools": tools(version)}]],
        "prompts/get": [["result", {"messages": [{"role": "user", "content": b} for b in blocks(version)]}]],
        "tasks/list": [["result", {"tasks": []}]]}}


SERVERS = {NAMES[v]: server(v) for v in ORDER}


# ---- what a client is to see of it ------------------------------------------

def tools_seen(version, back):
    if version == D:
        return tools(back)
    return [{k: v for k, v in tool.items() if k != "execution"} for tool in tools(back) if tool["name"] != "must"]


def capabilities_seen(version, back):
    return {k: v for k, v in server_capabilities(back).items() if k != "tasks" or version == D}


def block_seen(version, block):
    if block is AUDIO and is_before(version, B):
        return AUDIO_TEXT
    return LINK_TEXT if block is LINK and is_before(version, C) else block


def client_capabilities(version):
    caps = {"roots": {"listChanged": True}, "sampling": {}}
    if version == C:
        caps["elicitation"] = {}
    if version == D:
        caps.update({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "tasks": {}})
    return caps


# ---- clients of either transport --------------------------------------------

class Streamable:
    def __init__(self, t, name, version):
        self.session = t.session(name, version, client_capabilities(version))
        self.result, self.stream = self.session.result["result"], self.session.get()
        self.respond, self.end = self.session.respond, self.session.delete

    def begin(self, method, params):
        self.exchange = self.session.start(method, params)

    def next(self):
        return self.exchange.next()

    def news(self):
        return self.stream.next()

    def cancel(self):
        self.session.cancel(self.exchange.id)
        eq(self.exchange.rest(), [], "after the cancellation")


class HttpSse:
    def __init__(self, t, name, version):
        self.client = t.sse(name, version=version, caps=client_capabilities(version))
        self.result, self.next, self.news = self.client.result["result"], self.client.next, self.client.next
        self.respond, self.end = self.client.respond, self.client.close

    def begin(self, method, params):
        self.id = self.client.start(method, params)

    def cancel(self):
        self.client.notify("notifications/cancelled", {"requestId": self.id})


class Cell:
    """One client with one server."""

    def __init__(self, t, make, front, back):
        self.t, self.front, self.back = t, front, back
        before = set(t.daemon.children(NAMES[back]))
        self.client = make(t, NAMES[back], front)
        self.pid = (set(t.daemon.children(NAMES[back])) - before).pop()

    def ask(self, method, params=None):
        self.client.begin(method, params or {})
        return self.client.next()

    def do(self, *steps, token=None):
        """What comes while the server does these steps, the response last."""
        self.client.begin("tools/call", Session.do_params(None, steps, token))
        messages = [self.client.next()]
        while "method" in messages[-1]:
            messages.append(self.client.next())
        return messages

    def asked(self, method, params, seen, answer, answer_seen=None):
        """The server asks; `seen` is what the client gets, or the code of the error that the server gets."""
        self.client.begin("tools/call", Session.do_params(None, [["ask", "q", method, params], ["asked"]]))
        message = self.client.next()
        if not isinstance(seen, int):
            eq((message["method"], message["params"]), (method, seen), method)
            self.client.respond(message["id"], answer)
            message = self.client.next()
        got = json.loads(message["result"]["content"][0]["text"])[0]
        eq(got["error"]["code"] if isinstance(seen, int) else got["result"],
           seen if isinstance(seen, int) else answer_seen or answer, method + " at the server")

    def last(self, method):
        """The params of the last message of that method that the server has read."""
        return [m for m in self.t.daemon.messages(self.pid) if m.get("method") == method][-1].get("params")

    # ---- the story ------------------------------------------------------

    def handshake(self):
        eq(self.client.result, {"protocolVersion": self.front, "capabilities": capabilities_seen(self.front, self.back),
                                "serverInfo": {"name": "scripted", "version": "1"}})
        told = self.last("initialize")
        eq((told["protocolVersion"], told["capabilities"]), (self.front, client_capabilities(self.front)))

    def lists_and_content(self):
        eq(self.ask("tools/list")["result"], {"tools": tools_seen(self.front, self.back)})
        result = {"content": blocks(self.back)}
        if not is_before(self.back, C):
            result["structuredContent"] = {"n": 1.5}
        seen = [block_seen(self.front, b) for b in blocks(self.back)]
        eq(self.do(["result", result])[-1]["result"], dict(result, content=seen))
        eq(self.ask("prompts/get", {"name": "p"})["result"], {"messages": [{"role": "user", "content": b} for b in seen]})

    def notifications(self):
        progress = {"progress": 1, "total": 2}
        if not is_before(self.back, B):
            progress["message"] = "half"
        log = {"level": "info", "logger": "l", "data": {"a": 1}}
        got = self.do(["write", '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,%s\n'
                       % (json.dumps(progress)[1:] + "}")],
                      ["notify", "notifications/message", log], ["text", "end"], token="tok")
        eq([m.get("params") for m in got[:-1]], [dict(progress, progressToken="tok"), log])
        eq(got[-1]["result"], {"content": [{"type": "text", "text": "end"}]})
        changed = ["notify", "notifications/tools/list_changed"]
        status = ["notify", "notifications/tasks/status", TASK]
        late = since(D, self.back, [status]) + [changed]
        self.do(["background", [["sleep", 0.05]] + late], ["text", "x"])
        seen = [n[1] for n in late if n is not status or self.front == D]
        eq([self.client.news()["method"] for _ in seen], seen)

    def batch(self):
        """RPC arrays of a server come one by one, whatever the client speaks; none is sent to it."""
        array = [{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": i}} for i in (1, 2)]
        got = self.do(["line", json.dumps(array)], ["text", "x"])
        eq([m["params"]["data"] for m in got[:-1]], [1, 2])

    def elicitation(self):
        if is_before(self.back, C):
            return
        refused = -32601 if is_before(self.front, C) else None
        accept = {"action": "accept", "content": {"a": "x"}}
        self.asked("elicitation/create", FORM, refused or FORM, accept)
        if self.back != D:
            return

        def form(field):
            return dict(FORM, mode="form", requestedSchema={"type": "object", "properties": {"a": field}})
        choice = form({"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]})
        old_choice = form({"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"]})
        several = form({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}})
        url = {"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": "e"}
        is_new = self.front == D
        self.asked("elicitation/create", choice, refused or (choice if is_new else old_choice), accept)
        self.asked("elicitation/create", several, refused or (several if is_new else -32602),
                   {"action": "accept", "content": {"a": ["x", "y"]}})
        self.asked("elicitation/create", url, refused or (url if is_new else -32602), {"action": "accept"})
        complete = ["notify", "notifications/elicitation/complete", {"elicitationId": "e"}]
        self.do(["background", [["sleep", 0.05], complete, ["notify", "notifications/tools/list_changed"]]], ["text", "x"])
        eq([self.client.news()["method"] for _ in range(1 + is_new)],
           [complete[1]] * is_new + ["notifications/tools/list_changed"])
        error = self.do(["error", -32042, "open it", {"elicitations": [url]}])[-1]["error"]
        eq((error["code"], error["message"]), (-32042 if is_new else -32603, "open it"))

    def sampling(self):
        def request(*contents, **more):
            return dict({"maxTokens": 5, "messages": [{"role": "user", "content": c} for c in contents]}, **more)
        answer = {"role": "assistant", "model": "m", "content": TEXT}
        self.asked("sampling/createMessage", request(TEXT), request(TEXT), answer)
        if not is_before(self.back, B):
            self.asked("sampling/createMessage", request(AUDIO), request(block_seen(self.front, AUDIO)), answer)
        if self.back == D:
            with_tools = request(TEXT, tools=[{"name": "x", "inputSchema": {"type": "object"}}])
            several = request([TEXT, IMAGE], [TEXT])
            self.asked("sampling/createMessage", with_tools, with_tools if self.front == D else -32602, answer)
            self.asked("sampling/createMessage", several, several if self.front == D else request(TEXT, IMAGE, TEXT), answer)
        if self.front == D:
            listed = dict(answer, content=[TEXT])
            self.asked("sampling/createMessage", request(TEXT), request(TEXT), listed, listed if self.back == D else answer)
        if not is_before(self.front, B):
            sound = dict(answer, content=AUDIO)
            self.asked("sampling/createMessage", request(TEXT), request(TEXT), sound,
                       dict(answer, content=block_seen(self.back, AUDIO)))

    def requests(self):
        params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}}
        context = {"context": {"arguments": {"b": "c"}}} if not is_before(self.front, C) else {}
        eq(self.ask("completion/complete", dict(params, **context))["result"]["completion"]["values"], ["one", "two"])
        eq(self.last("completion/complete"), dict(params, **({} if is_before(self.back, C) else context)))
        call = {"name": "echo", "arguments": {"text": "x"}, "task": {"ttl": 1}}
        eq(self.ask("tools/call", call)["result"]["content"][0]["text"], "x")
        eq("task" in self.last("tools/call"), self.front == self.back == D or is_before(self.front, D) and is_before(self.back, D))
        if self.front == D != self.back:
            self.t.expect_invalid("to a server, -: /method: tasks/list", "the client asks for what its server has not announced")
        tasks = self.ask("tasks/list")
        if self.front == D:
            eq(tasks["result"], {"tasks": []})
        else:
            eq(tasks["error"]["code"], -32601)
            ok(not any(m.get("method") == "tasks/list" for m in self.t.daemon.messages(self.pid)), "the server saw tasks/list")
        eq(self.ask("ping")["result"], {})

    def cancellation(self):
        self.client.begin("tools/call", Session.do_params(None, [["wait_cancel"], ["text", "late"]]))
        wait_for(lambda: "wait_cancel" in json.dumps(self.last("tools/call")), 3, "call at the server")
        sent = [m["id"] for m in self.t.daemon.messages(self.pid) if m.get("method") == "tools/call"][-1]
        self.client.cancel()
        wait_for(lambda: [m for m in self.t.daemon.messages(self.pid) if m.get("method") == "notifications/cancelled"], 3, "cancel")
        eq(self.last("notifications/cancelled"), {"requestId": sent})
        eq(self.ask("ping")["result"], {})

    def ending(self):
        ok(all(isinstance(m, dict) for m in self.t.daemon.messages(self.pid)), "an array at the server")
        self.client.end()
        wait_for(lambda: self.pid not in self.t.daemon.children(), 5, "end of the process")

    def play(self):
        for scene in (self.handshake, self.lists_and_content, self.notifications, self.batch, self.elicitation,
                      self.sampling, self.requests, self.cancellation, self.ending):
            scene()


def register(make, front, back, how):
    def play(t):
        Cell(t, make, front, back).play()
    play.__name__ = "%s_client_%s_server%s" % (NAMES[front], NAMES[back], how)
    play.__doc__ = ("bridging 3, FRONT-INIT-01, FRONT-INIT-06, FRONT-INIT-10: a client of %s%s and a server of %s"
                    " see only what they know." % (front, " over Streamable HTTP" if how else "", back))
    case(play, deadline=20)


for the_back in ORDER:
    for the_front in ORDER:
        register(HttpSse if the_front == A else Streamable, the_front, the_back, "")
    register(Streamable, A, the_back, "_over_streamable")
    register(HttpSse, D, the_back, "_over_http_sse")


@case
def told_capabilities_fit(t):
    """BACK-INIT-03 bridging 3: a client's capability that its revision does not have is not told, and not used."""
    caps = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "tasks": {"list": {}}, "roots": {}, "experimental": {"x": {}}}
    told = {B: {"sampling": {}, "roots": {}, "experimental": {"x": {}}},
            C: {"elicitation": {}, "sampling": {}, "roots": {}, "experimental": {"x": {}}}, D: caps}
    for version, expected in told.items():
        s = t.session("d", version, caps)
        eq(t.daemon.messages(s.pid())[0]["params"]["capabilities"], expected, version)
    s = t.session("d", B, caps)
    eq(json.loads(s.do_text(["ask", "q", "elicitation/create", FORM], ["asked"]))[0]["error"]["code"], -32601)


@case
def unchanged_where_nothing_differs(t):
    """RPC-04 bridging I6: what needs no conversion, also between different revisions, keeps every byte."""
    odd = ('{"content" : [{"type":"text", "text":"\\u0041", "x":1.50}],"structuredContent":{"n":1e2},'
           '"_meta":{"a":[ ]},"execution":1,"tools":[{"execution":1}]}')
    for back in ORDER:
        for front in (A, B, C, D):
            s = t.session(NAMES[back], front)
            e = s.start_do(["line", '{"jsonrpc":"2.0", "id":@ID@,"result":%s}' % odd], request_id="i")
            e.rest()
            eq(e.raw[-1].decode(), '{"jsonrpc":"2.0", "id":"i","result":%s}' % odd, (front, back))
