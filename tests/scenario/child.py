#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A scripted MCP server on stdio, the hostile or broken actor of the scenarios.

Its one argument is a JSON object. Everything it does is a list of steps, given there or in the
arguments of its tool `do`, so that a case reads as a story in one place:

  name, record   the bytes of stdin go to RECORD/NAME-PID, life events to RECORD/NAME-PID.ev, the method that each
                 response answers to RECORD/NAME-PID.answered
  start          steps before anything is read
  init           steps in place of the answer to `initialize`
  initialized    steps after `notifications/initialized`
  on             {METHOD: steps} in place of the answer to METHOD (requests and notifications)
  version        revision in the answer to `initialize`; default: the one that was asked for
  caps           capabilities in that answer
  era            "modern": of 2026-07-28, initialize is refused; "both"; default: legacy
  eof, term      "ignore": go on after the end of stdin / after SIGTERM

Instead of steps the arguments of `do` may have rounds: lists of steps, of which each request that comes back with the
state of the one before takes the next.

Texts in steps: @ID@ is the id of the request, @TOKEN@ its progress token, @PID@ the process.
It checks nothing and trusts its script. See the do_* functions for the steps.
"""
import errno
import heapq
import json
import os
import select
import signal
import sys
import time

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
RELATED = META + "related-task"
ENDS = ("completed", "failed", "cancelled")
CAPS = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True}, "logging": {}, "completions": {}}


class Child:
    def __init__(self, config):
        self.config = config
        self.reading = True
        self.pending = b""
        self.tasks = []  # (generator, what it waits for)
        self.timers = []
        self.serial = 0
        self.answers = {}
        self.cancelled = set()
        self.era = config.get("era", "legacy")
        self.listening = None  # the id of the last subscription
        self.levels = []
        self.done_once = set()
        self.jobs = {}  # the tasks of a modern server, by their ids
        self.watched = {}  # the ids of subscriptions to tasks, likewise
        base = None
        if config.get("record"):
            base = os.path.join(config["record"], "%s-%d" % (config.get("name", "child"), os.getpid()))
        self.record = open(base, "ab", buffering=0) if base else None
        self.events = open(base + ".ev", "a", buffering=1) if base else None
        self.answered = open(base + ".answered", "a", buffering=1) if base else None
        self.methods = {}  # of the requests that `send` has made

    # ---- life -----------------------------------------------------------

    def note(self, text):
        if self.events:
            self.events.write("%.3f %s\n" % (time.time(), text))

    def emit(self, data):
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(1, data):]

    def send(self, message):
        self.emit(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n")

    def spawn(self, steps, context):
        task = self.run(steps, context)
        self.advance(task, None)

    def advance(self, task, value):
        try:
            wait = task.send(value)
        except StopIteration:
            return
        if wait[0] == "end":
            task.close()
        elif wait[0] == "sleep":
            self.serial += 1
            heapq.heappush(self.timers, (time.monotonic() + wait[1], self.serial, task))
        else:
            self.tasks.append((task, wait))

    def wake(self):
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            self.advance(heapq.heappop(self.timers)[2], None)
        for entry in list(self.tasks):
            task, wait = entry
            value = None
            if wait[0] == "answer" and wait[1] in self.answers:
                value = self.answers[wait[1]]
            elif wait[0] == "job" and self.jobs[wait[1]]["status"] in ENDS:
                value = self.jobs[wait[1]]
            elif not (wait[0] == "cancel" and wait[1] in self.cancelled):
                continue
            self.tasks.remove(entry)
            self.advance(task, value)

    def loop(self):
        self.note("start")
        self.spawn(self.config.get("start", []), {})
        while True:
            self.wake()
            timeout = None
            if self.timers:
                timeout = max(0, self.timers[0][0] - time.monotonic())
            if not self.reading:
                if timeout is None:
                    signal.pause()
                else:
                    time.sleep(timeout)
                continue
            if not select.select([0], [], [], timeout)[0]:
                continue
            data = os.read(0, 1 << 18)
            if not data:
                self.note("eof")
                if self.config.get("eof") != "ignore":
                    return
                self.reading = False
                continue
            if self.record:
                self.record.write(data)
            self.pending += data
            lines = self.pending.split(b"\n")
            self.pending = lines.pop()
            for line in lines:
                self.on_line(line)
                self.wake()

    # ---- messages -------------------------------------------------------

    def on_line(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.note("garbage %d" % len(line))
            self.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "child: parse error"}})
            return
        method = message.get("method")
        if method is None:
            key = json.dumps(message.get("id"))
            self.answers[key] = message
            if self.answered:
                self.answered.write(self.methods.get(key, "?") + "\n")
            return
        params = message.get("params") or {}
        context = {"id": message.get("id"), "method": method, "params": params,
                   "token": (params.get("_meta") or {}).get("progressToken"), "asked": []}
        if method == "notifications/cancelled":
            self.cancelled.add(json.dumps(params.get("requestId")))
            self.note("cancelled %s" % json.dumps(params.get("requestId")))
        scripted = self.config.get("on", {}).get(method)
        if scripted is not None:
            self.spawn(scripted, context)
        elif method == "initialize" and "init" in self.config:
            self.spawn(self.config["init"], context)
        elif method == "notifications/initialized":
            self.spawn(self.config.get("initialized", []), context)
        elif method == "tools/call" and params.get("name") == "do":
            arguments = params.get("arguments", {})
            rounds = arguments.get("rounds") or [arguments.get("steps", [])]
            self.spawn(rounds[int(params.get("requestState", "0"))], context)
        elif "id" in message:
            self.answer(context)

    def answer(self, context):
        params = context["params"]
        results = {
            "initialize": lambda: self.initialize_result(params),
            "ping": lambda: {},
            "tools/list": lambda: {"tools": [{"name": "do", "inputSchema": {"type": "object"}},
                                             {"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": lambda: {"content": [{"type": "text",
                                                "text": str(params.get("arguments", {}).get("text"))}]},
            "resources/list": lambda: {"resources": [{"uri": "res://a", "name": "a"}]},
            "resources/templates/list": lambda: {"resourceTemplates": []},
            "resources/read": lambda: {"contents": [{"uri": params.get("uri"), "text": "x"}]},
            "resources/subscribe": lambda: {},
            "resources/unsubscribe": lambda: {},
            "prompts/list": lambda: {"prompts": [{"name": "p"}]},
            "prompts/get": lambda: {"messages": []},
            "completion/complete": lambda: {"completion": {"values": ["one", "two"]}},
            "logging/setLevel": lambda: {},
        }
        if self.era != "legacy":
            results["server/discover"] = self.discover_result
        if self.is_modern(params):
            for method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
                del results[method]
            if context["method"] in ("tasks/get", "tasks/update", "tasks/cancel"):
                self.answer_of_job(context)
                return
        elif context["method"].startswith("tasks/") and "tasks" in self.config.get("caps", {}):
            self.spawn([["answer_of_old_job"]], context)
            return
        if context["method"] == "initialize" and self.era == "modern":
            self.do_error(context, -32022, "child: unsupported protocol version",
                          {"supported": [MODERN], "requested": params.get("protocolVersion")})
            return
        if context["method"] == "subscriptions/listen" and self.is_modern(params):
            self.listen(context)
            return
        if context["method"] not in results:
            self.send({"jsonrpc": "2.0", "id": context["id"],
                       "error": {"code": -32601, "message": "child: no such method"}})
            return
        self.do_result(context, results[context["method"]]())

    def is_modern(self, params):
        return self.era != "legacy" and META + "protocolVersion" in params.get("_meta", {})

    def discover_result(self):
        return {"supportedVersions": [MODERN], "capabilities": self.config.get("caps", CAPS), "ttlMs": 0,
                "cacheScope": "private", "_meta": {META + "serverInfo": {"name": "scripted", "version": "1"}}}

    def listen(self, context):
        wanted = context["params"]["notifications"]
        if "taskIds" in wanted:
            granted = {"taskIds": [t for t in wanted["taskIds"] if t in self.jobs]}
            self.watched.update((t, context["id"]) for t in granted["taskIds"])
            self.do_notify(context, "notifications/subscriptions/acknowledged",
                           {"notifications": granted, "_meta": {META + "subscriptionId": context["id"]}})
            return
        self.listening = context["id"]
        self.do_changed(context, "notifications/subscriptions/acknowledged", {"notifications": wanted})

    def answer_of_job(self, context):
        """tasks/get, tasks/update and tasks/cancel of SEP-2663."""
        job = self.jobs.get(context["params"].get("taskId"))
        if job is None:
            self.do_error(context, -32602, "child: no such task")
            return
        if context["method"] == "tasks/get":
            self.do_result(context, job)
            return
        self.do_result(context, {})
        if context["method"] == "tasks/cancel":
            self.do_job({"job": job["taskId"]}, {"status": "cancelled"})
        else:
            self.answers[json.dumps(job["taskId"])] = context["params"].get("inputResponses")

    def do_answer_of_old_job(self, context):
        """tasks/get, tasks/result, tasks/cancel and tasks/list of 2025-11-25; of a list two a page."""
        if context["method"] == "tasks/list":
            first = int(context["params"].get("cursor", "0"))
            jobs = [self.state_of(job) for job in self.jobs.values()]
            rest = {"nextCursor": str(first + 2)} if len(jobs) > first + 2 else {}
            self.do_result(context, dict(rest, tasks=jobs[first:first + 2]))
            return
        task_id = context["params"].get("taskId")
        if task_id not in self.jobs or context["method"] == "tasks/cancel" and self.jobs[task_id]["status"] in ENDS:
            self.do_error(context, -32602, "child: no such task")
            return
        if context["method"] == "tasks/result":
            yield ("job", task_id)
            self.do_result(context, dict(self.jobs[task_id].get("result", {}), _meta={RELATED: {"taskId": task_id}}))
            return
        if context["method"] == "tasks/cancel":
            self.do_job({"job": task_id}, {"status": "cancelled"})
        self.do_result(context, self.state_of(self.jobs[task_id]))

    def state_of(self, job):
        return {name: value for name, value in job.items() if name != "result"}

    def initialize_result(self, params):
        return {"protocolVersion": self.config.get("version") or params.get("protocolVersion"),
                "capabilities": self.config.get("caps", CAPS),
                "serverInfo": self.config.get("info", {"name": "scripted", "version": "1"})}

    # ---- steps ----------------------------------------------------------

    def run(self, steps, context):
        for step in steps:
            outcome = getattr(self, "do_" + step[0])(context, *step[1:])
            if outcome is not None:
                yield from outcome

    def fill(self, context, text):
        text = text.replace("@ID@", json.dumps(context.get("id"))).replace("@PID@", str(os.getpid()))
        return text.replace("@TOKEN@", json.dumps(context.get("token")))

    def do_write(self, context, text):
        self.emit(self.fill(context, text))

    def do_line(self, context, text):
        self.emit(self.fill(context, text) + "\n")

    def do_hex(self, context, text):
        self.emit(bytes.fromhex(text))

    def do_fill(self, context, text, count):
        """Writes text count times, in large pieces."""
        piece = self.fill(context, text).encode()
        batch = max(1, 65536 // len(piece))
        while count > 0:
            n = min(batch, count)
            self.emit(piece * n)
            count -= n

    def do_sleep(self, context, seconds):
        yield ("sleep", seconds)

    def do_block(self, context, seconds):
        """Neither reads nor writes for so long."""
        time.sleep(seconds)

    def do_result(self, context, result):
        if self.is_modern(context["params"]):
            result = dict({"resultType": "complete"}, **result)
        self.send({"jsonrpc": "2.0", "id": context["id"], "result": result})

    def do_result_of(self, context, path):
        """The result that this file holds now, as JSON."""
        with open(path) as f:
            self.do_result(context, json.load(f))

    def do_text(self, context, text):
        self.do_result(context, {"content": [{"type": "text", "text": self.fill(context, text)}]})

    def do_error(self, context, code, message, data=None):
        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.send({"jsonrpc": "2.0", "id": context["id"], "error": error})

    def do_once(self, context, step):
        """The first request with these params gets this step, and no other."""
        key = json.dumps([step, context["params"].get("arguments")], sort_keys=True)
        if key not in self.done_once:
            self.done_once.add(key)
            yield from self.run([step], context)
            yield ("end",)

    def do_answer(self, context):
        """The answer that the method has by default."""
        self.answer(context)

    def do_input(self, context, requests):
        """What a modern server needs to be told before it can answer."""
        state = str(int(context["params"].get("requestState", "0")) + 1)
        self.do_result(context, {"resultType": "input_required", "inputRequests": requests, "requestState": state})

    def do_told(self, context):
        """The final result: what it was told, as JSON text."""
        self.do_text(context, json.dumps(context["params"].get("inputResponses")))

    def do_task(self, context, task_id, steps=(), members=None):
        """The call becomes a task, of this server's era, which does these steps."""
        is_modern = self.is_modern(context["params"])
        self.jobs[task_id] = dict({"taskId": task_id, "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                                   "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs" if is_modern else "ttl": 3000},
                                  **(members or {}))
        job = self.jobs[task_id]
        self.do_result(context, dict(job, resultType="task") if is_modern else {"task": job})
        self.spawn(steps, dict(context, job=task_id))

    def do_job(self, context, members):
        """From now on this is said of the task, to its listener at once."""
        job = self.jobs[context["job"]]
        job.pop("inputRequests", None)
        job.update(members)
        self.note("job %s %s" % (context["job"], job["status"]))
        if "ttl" in job:
            self.do_notify(context, "notifications/tasks/status", self.state_of(job))
        if context["job"] in self.watched:
            meta = {META + "subscriptionId": self.watched[context["job"]]}
            self.do_notify(context, "notifications/tasks", dict(job, _meta=meta))

    def do_job_asked(self, context):
        """The end of the task, whose result is all answers that `ask` got, as JSON text."""
        self.do_job(context, {"status": "completed", "result": {"content": [{"type": "text", "text": json.dumps(context["asked"])}]}})

    def do_updated(self, context):
        """Waits for tasks/update; what came with it is the result of the task."""
        answer = yield ("answer", json.dumps(context["job"]))
        self.do_job(context, {"status": "completed", "result": {"content": [{"type": "text", "text": json.dumps(answer)}]}})

    def do_changed(self, context, method, params=None):
        """A notification by the last subscription of a modern client."""
        meta = {META + "subscriptionId": self.listening}
        self.do_notify(context, method, dict(params or {}, _meta=meta))

    def do_notify(self, context, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def do_log(self, context, level, data):
        """A log line; of a modern server only if the request wants any."""
        if not self.is_modern(context["params"]) or META + "logLevel" in context["params"]["_meta"]:
            self.do_notify(context, "notifications/message", {"level": level, "data": data})

    def do_progress(self, context, value, token=None):
        token = context["token"] if token is None else token
        self.do_notify(context, "notifications/progress", {"progressToken": token, "progress": value})

    def do_send(self, context, request_id, method, params=None):
        self.answers.pop(json.dumps(request_id), None)  # scripts use one id again and again
        self.methods[json.dumps(request_id)] = method
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def do_ask(self, context, request_id, method, params=None):
        self.do_send(context, request_id, method, params)
        answer = yield ("answer", json.dumps(request_id))
        context["asked"].append(answer)

    def do_wait(self, context, request_id):
        """Waits for the answer to an earlier `send`."""
        answer = yield ("answer", json.dumps(request_id))
        context["asked"].append(answer)

    def do_asked(self, context):
        """The final result: all answers that `ask` got, as JSON text."""
        self.do_text(context, json.dumps(context["asked"]))

    def do_wait_cancel(self, context):
        yield ("cancel", json.dumps(context["id"]))

    def do_repeat(self, context, count, steps):
        for _ in range(count):
            yield from self.run(steps, context)

    def do_background(self, context, steps):
        self.spawn(steps, context)

    def do_stderr(self, context, text, count=1):
        data = text.encode("utf-8", "surrogateescape") * count
        while data:
            data = data[os.write(2, data[:65536]):]

    def do_exit(self, context, status):
        self.note("exit")
        os._exit(status)

    def do_kill(self, context, number):
        os.kill(os.getpid(), number)

    def do_deaf(self, context):
        """Never reads stdin again."""
        self.reading = False

    def do_close_stdout(self, context):
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)

    def do_close_stdin(self, context):
        self.reading = False
        os.close(0)

    def do_grandchild(self, context, seconds, escape=False, deaf_to_term=True):
        """A process that keeps our pipes open; escape: in a session of its own, orphaned."""
        pid = os.fork()
        if pid:
            if escape:
                os.waitpid(pid, 0)
            return
        if escape:
            os.setsid()
            if os.fork():
                os._exit(0)
        if deaf_to_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.config.get("record"):
            with open(os.path.join(self.config["record"], "grandchildren"), "a") as out:
                out.write("%d\n" % os.getpid())
        time.sleep(seconds)
        os._exit(0)

    def do_attempt(self, context, attempts):
        """Tries [[what, argument], …]; the final result is a list of "ok" or names of errors."""
        self.do_text(context, json.dumps([attempt(*a) for a in attempts]))

    def do_hoard(self, context, mib):
        """Uses that much memory, every page of it."""
        self.hoard = bytearray(os.urandom(1 << 20) * mib)

    def do_probe(self, context):
        """What this process sees of itself, as the final result."""
        fds = {}
        for fd in os.listdir("/proc/self/fd"):
            try:
                fds[fd] = os.readlink("/proc/self/fd/" + fd)
            except OSError:
                pass
        with open("/proc/self/environ", "rb") as f:
            environ = f.read().decode("utf-8", "replace").split("\0")
        with open("/proc/self/cmdline", "rb") as f:
            argv = f.read().decode("utf-8", "replace").split("\0")
        with open("/proc/self/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        own = [self.record, self.events, self.answered]
        self.do_text(context, json.dumps({
            "pid": os.getpid(), "pgid": os.getpgid(0), "sid": os.getsid(0), "ppid": os.getppid(),
            "environ": sorted(e for e in environ if e), "argv": argv, "cwd": os.getcwd(),
            "fds": fds, "own_fds": [str(f.fileno()) for f in own if f], "status": status}))


def tcp(use):
    import socket
    with socket.socket() as sock:
        sock.settimeout(2)
        use(sock)


def close_again(number):
    os.close(number)


ATTEMPTS = {
    "read": lambda path: close_again(os.open(path, os.O_RDONLY)),
    "list": os.listdir,
    "write": lambda path: close_again(os.open(path, os.O_WRONLY | os.O_APPEND)),
    "make": lambda path: close_again(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)),
    "mkdir": os.mkdir,
    "remove": os.unlink,
    "truncate": lambda path: os.truncate(path, 0),
    "link": lambda pair: os.link(*pair),
    "rename": lambda pair: os.rename(*pair),
    "run": lambda argv: os.posix_spawn(argv[0], argv, {}) and os.wait(),
    "signal": lambda pid: os.kill(pid, 0),
    "connect": lambda port: tcp(lambda sock: sock.connect(("127.0.0.1", port))),
    "bind": lambda port: tcp(lambda sock: sock.bind(("127.0.0.1", port))),
    "files": lambda count: [close_again(fd) for fd in [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]],
    "fork": lambda count: [os.waitpid(pid, 0) for pid in [os.fork() or sleep_and_exit() for _ in range(count)]],
}


def sleep_and_exit():
    time.sleep(0.5)
    os._exit(0)


def attempt(what, argument):
    try:
        ATTEMPTS[what](argument)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    return "ok"


def main():
    config = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    child = Child(config)

    def on_term(number, frame):
        child.note("term")
        if config.get("term") != "ignore":
            os._exit(0)

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child.loop()


if __name__ == "__main__":
    main()
