# SPDX-License-Identifier: Apache-2.0
"""
What the cases stand on: the daemon under test (its configuration, log, processes), the register of
cases, and the object `t` that each case gets. See README.
"""
import ctypes
import functools
import json
import os
import py_compile
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import mcp
import validation
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
CHILD = os.path.join(HERE, "child.py")
BIN = None  # directory of mcpgated and mcpgated-demo, set by run
SLOW = 1.0  # factor for waits that sanitizers make longer
BUSY_MAX = 6  # the largest factor for waits that a busy machine makes longer
PR_SET_CHILD_SUBREAPER = 36
READY = re.compile(r"^mcpgated: ready: (\S+)(?: \(.*\))? at (\S+?)(?:, for clients (?:\S+))?$")
READY_JSON = re.compile(r'"event":"endpoint_ready".*"server":"([^"]+)".*"url":"([^"]+)"')
# What the service manager tells a service, or a session its programs.
ENVIRON_NOT = ("NOTIFY_SOCKET", "LISTEN_FDS", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "STATE_DIRECTORY")
FAULTS = ("addresssanitizer", "leaksanitizer", "undefinedbehavior", "runtime error:", "check failed", "assertion `")


class Failure(AssertionError):
    pass


class Skip(Exception):
    """The case cannot be run here; the reason is printed."""


def patience(seconds):
    """How long to wait here and now for what takes at most so many seconds on a machine that does nothing else."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * SLOW * min(max(busy, 1), BUSY_MAX)


class CaseTimeout(BaseException):
    pass


def eq(actual, expected, what=""):
    if actual != expected:
        raise Failure("%s: expected %s, got %s" % (what or "value", short(expected), short(actual)))


def ok(condition, what, *details):
    if not condition:
        raise Failure(what + "".join(" " + short(d) for d in details))


def short(value):
    text = repr(value)
    return text if len(text) < 700 else text[:700] + "…"


def wait_for(condition, timeout=5.0, what="condition"):
    """Polls until condition() is true and returns its value."""
    end = time.monotonic() + patience(timeout)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure("not in time: " + what)
        time.sleep(0.01)


# ---- time -------------------------------------------------------------------

class Stalls:
    """When this process could not run although it wanted to: a busy machine is not the daemon's fault."""
    TICK = 0.01

    def __init__(self):
        self.seen = []  # (end, seconds)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            began = time.monotonic()
            time.sleep(self.TICK)
            now = time.monotonic()
            if now - began > 2 * self.TICK:
                self.seen.append((now, now - began - self.TICK))

    def since(self, began):
        return sum(min(seconds, end - began) for end, seconds in list(self.seen) if end > began)


STALLS = Stalls()


def seconds_since(began):
    """Of time.monotonic(), without the time in which the machine let nobody run."""
    return time.monotonic() - began - STALLS.since(began)


def within(began, limit, what="seconds"):
    """It took less than `limit` seconds since `began`."""
    took = seconds_since(began)
    ok(took < limit, what, took)


# ---- processes --------------------------------------------------------------

def become_subreaper():
    """Whatever escapes the daemon becomes a child of this process, so that it can be seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processes():
    """{pid: (ppid, state, name)} of all processes."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as f:
                    text = f.read()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            table[int(entry)] = (int(rest[1]), rest[0], name)
    return table


def descendants(pid):
    table, found, front = processes(), [], [pid]
    while front:
        parent = front.pop()
        for child, (ppid, state, _) in table.items():
            if ppid == parent and state != "Z":
                found.append(child)
                front.append(child)
    return found


def kill(pid):
    """Whether it was there to be killed: a process may end by itself before."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def fd_count(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- configuration ----------------------------------------------------------

def to_yaml(value, indent=0):
    """Block style for maps, flow style for the rest; strings quoted as JSON does."""
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            pad = "  " * indent + (key if re.fullmatch(r"\w[\w-]*", key) else json.dumps(key, ensure_ascii=False)) + ":"
            if isinstance(item, dict) and item:
                lines.append(pad + "\n" + to_yaml(item, indent + 1))
            elif isinstance(item, list) and item and isinstance(item[0], dict):
                lines.append(pad)
                for element in item:
                    body = to_yaml(element, indent + 2)
                    lines.append("  " * (indent + 1) + "- " + body.lstrip())
            else:
                lines.append(pad + " " + to_yaml(item))
        return "\n".join(lines)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[" + ", ".join(to_yaml(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(ms|s|m|h|d|KiB|MiB|GiB)(\.\.[0-9]+(ms|s|m|h))?", value):
        return value
    return json.dumps(value)


def merged(base, extra):
    out = dict(base)
    for key, value in (extra or {}).items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        else:
            out[key] = value
    return out


def child_argv(script, name="child", record=None):
    script = dict(script, name=name)
    if record:
        script["record"] = record
    return [sys.executable, "-I", "-S", compiled_child(), json.dumps(script)]


@functools.cache
def compiled_child():
    """Hundreds of processes run it: it is compiled once. Where nothing can be written beside it, it is run as it is."""
    try:
        return py_compile.compile(CHILD)
    except OSError:
        return CHILD


# Each server is reached by an endpoint over it alone, and every case says the same as without, but for these.
BEHIND_ENDPOINTS = bool(os.environ.get("SCENARIO_BEHIND_ENDPOINTS"))
NOT_BEHIND_ENDPOINTS = {
    "c20_init.capabilities_are_those_of_the_child": "an endpoint can always tell that its lists change: a server may come back",
    "c20_init.error_of_the_child_on_initialize": "the error is that of several servers",
    "c20_init.slow_start_that_fails": "likewise",
    "c31_feature.cursors_are_opaque": "lists come joined, in one page",
    "c31_feature.log_level_that_the_child_refuses": "others may take it",
}


class Daemon:
    """One running mcpgated. servers: {name: script of child.py, or {"script":…, other keys}}."""

    def __init__(self, servers=None, config=None, args=None, env=None, nofile=None, stderr=None,
                 wait=True, text=None, prefix=None, keeps=(), program=None, prepare=None):
        self.dir = tempfile.mkdtemp(prefix="mcpgated-")
        self.records = os.path.join(self.dir, "records")
        os.mkdir(self.records)
        self.servers = servers or {}
        self.lines, self.endpoints = [], {}
        self.address = None
        self.expected_errors = set()
        self.checked = 0
        self.marks = 0
        self.received = validation.Records()
        self.forgiven = False  # a case that kills the daemon does not ask for a clean end
        self.extra = config
        self.file = os.path.join(self.dir, "mcpgated.yaml")
        self.admin = os.path.join(self.dir, "admin.sock")
        if args is None:
            with open(self.file, "w") as f:
                f.write(text if text is not None else to_yaml(self.configuration()) + "\n")
            os.chmod(self.file, 0o600)
            args = ["-c", self.file]
        self.argv = (prefix or []) + [program or os.path.join(BIN, "mcpgated")] + args
        self.keeps = keeps  # descriptors
        if prepare:
            prepare(self)
        self.start(env, nofile, stderr, wait)

    def configuration(self):
        servers = {}
        for name, spec in self.servers.items():
            spec = spec if {"script", "command", "url"} & spec.keys() else {"script": spec}
            spec = dict(spec)
            if "script" in spec:
                argv = child_argv(spec.pop("script"), name, self.records)
                spec["command"], spec["args"] = argv[0], argv[1:]
            servers[name] = spec
        base = {"listen": [{"address": "127.0.0.1:0"}], "admin": {"address": "unix:" + self.admin},
                "log": {"level": "debug"}, "sessions": {"reconnect_timeout": "300ms"},
                "defaults": {"stop": {"grace": "1s", "term": "1s"}, "start": {"try": False}}, "servers": servers}
        return self.behind_endpoints(merged(base, self.extra)) if BEHIND_ENDPOINTS else merged(base, self.extra)

    @staticmethod
    def behind_endpoints(config):
        """Each server at another path, and at its own an endpoint over it alone: to a client the same."""
        config = dict(config, servers=dict(config["servers"]), endpoints=dict(config.get("endpoints", {})))
        for name, spec in list(config["servers"].items()):
            path = spec.get("path", "/%s/mcp" % name)
            keys = {k: spec[k] for k in ("enabled", "audience", "clients") if k in spec}
            config["servers"][name] = dict(spec, path="/direct" + path)
            config["endpoints"]["over-" + name] = dict(keys, servers={name: {"prefix": ""}}, path=path)
        return config

    # ---- life -----------------------------------------------------------

    def start(self, env, nofile, stderr, wait):
        def limit():
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        environ = {k: v for k, v in os.environ.items() if k not in ENVIRON_NOT}
        # Freed memory that a sanitizer holds back would look like growth.
        environ.setdefault("ASAN_OPTIONS", "handle_segv=2:detect_leaks=1:quarantine_size_mb=1")
        # What one daemon remembers is no other's.
        environ["XDG_STATE_HOME"] = self.dir
        environ["XDG_RUNTIME_DIR"] = self.dir
        environ.update(env or {})
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=stderr or subprocess.PIPE, env=environ,
                                        preexec_fn=limit, cwd=self.dir, pass_fds=self.keeps)
        self.pid = self.process.pid
        KNOWN.add(self.pid)
        RUNNING.append(self)
        self.gateway = None
        if stderr is None:
            self.reader = threading.Thread(target=self.read_log, daemon=True)
            self.reader.start()
            if wait:
                self.wait_ready()

    def read_log(self):
        for line in self.process.stderr:
            line = line.decode("utf-8", "replace").rstrip("\n")
            m = READY.match(line) or READY_JSON.search(line)
            if m:
                self.endpoints[m.group(1)] = m.group(2)
            self.lines.append(line)

    def wait_ready(self, count=None):
        count = count or max(1, len([s for s in self.servers.values() if s.get("enabled", True)]))

        def ready():
            if self.process.poll() is not None:
                raise Failure("the daemon ended with %d before it was ready:\n%s"
                              % (self.process.returncode, "\n".join(self.lines[-20:])))
            return len(self.endpoints) >= count
        wait_for(ready, 10, "ready line of the daemon; got\n" + "\n".join(self.lines[-20:]))
        self.use_url(next(iter(self.endpoints.values())))
        self.gateway = wait_for(self.find_gateway, 2, "gateway process")
        self.base_fds = self.fds()

    def use_url(self, url):
        m = re.match(r"https?://(\[[^\]]+\]|[^:/]+):(\d+)(/.*)$", url)
        if m:
            host = m.group(1).strip("[]")
            self.address = (host if re.fullmatch(r"[0-9.]+|[0-9a-f:]+", host) else "127.0.0.1", int(m.group(2)))
        else:
            self.address = re.match(r"(?:http\+)?unix:(?://)?([^:?]+)", url).group(1)

    def find_gateway(self):
        """The child of the keeper that runs mcpgated-gateway; under valgrind, that is an argument."""
        def is_gateway(pid):
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    return any(os.path.basename(word) == b"mcpgated-gateway" for word in f.read().split(b"\0"))
            except OSError:
                return False
        for line in reversed(self.lines):
            m = re.search(r" gateway_start .*\bpid=(\d+)", line)
            if m:
                return int(m.group(1))
        return next(filter(is_gateway, descendants(self.pid)), None)

    def fds(self):
        return {pid: fd_count(pid) for pid in (self.pid, self.gateway)}

    def children(self, name=None):
        """Pids of running scripted children, of one server or of all."""
        pids = []
        for entry in os.listdir(self.records):
            m = re.fullmatch(r"(.+)-(\d+)\.ev", entry)
            if m and name in (None, m.group(1)) and is_alive(int(m.group(2))):
                pids.append(int(m.group(2)))
        return pids

    def grandchildren(self):
        try:
            with open(os.path.join(self.records, "grandchildren")) as f:
                return [int(line) for line in f]
        except OSError:
            return []

    def started(self, name):
        """How many processes of a server were ever started."""
        return len([e for e in os.listdir(self.records) if re.fullmatch(re.escape(name) + r"-\d+\.ev", e)])

    def record(self, pid):
        """All bytes that the scripted child has read so far."""
        for entry in os.listdir(self.records):
            if entry.endswith("-%d" % pid):
                with open(os.path.join(self.records, entry), "rb") as f:
                    return f.read()
        raise Failure("no record of process %d" % pid)

    def records_of(self, name):
        """[(pid, bytes)] of all processes of a server, oldest first."""
        found = []
        for entry in os.listdir(self.records):
            m = re.fullmatch(re.escape(name) + r"-(\d+)", entry)
            if m:
                path = os.path.join(self.records, entry)
                with open(path, "rb") as f:
                    found.append((os.stat(path).st_ctime, int(m.group(1)), f.read()))
        return [(pid, data) for _, pid, data in sorted(found)]

    def messages(self, pid):
        record = self.record(pid)  # its last line may still be on its way
        return [json.loads(line) for line in record[:record.rfind(b"\n") + 1].splitlines()]

    def life(self, pid):
        """Words of the life events of a child: start, eof, term, exit."""
        for entry in os.listdir(self.records):
            if entry.endswith("-%d.ev" % pid):
                with open(os.path.join(self.records, entry)) as f:
                    return [(float(line.split()[0]), line.split()[1]) for line in f]
        return []

    def log(self, event):
        """Log lines of that event."""
        return [l for l in list(self.lines) if len(l.split()) > 2 and l.split()[2] == event]

    def wait_log(self, event, *words):
        """Waits for a log line of that event that holds all words; the case's own deadline is the bound on a busy machine."""
        def found():
            return [l for l in self.log(event) if all(w in l for w in words)]
        return wait_for(found, 10, "log line %s %s" % (event, " ".join(words)))

    def never_logged(self, event, *words):
        """There is no log line of that event that holds all words, of all that has happened so far.

        A request that comes now has its line after all those; it takes a listener of plain HTTP and the level debug.
        """
        self.marks += 1
        path = "/mark-%d" % self.marks
        conn = wire.Conn(self.address)
        conn.request("GET", path).read()
        conn.close()
        self.wait_log("request", "path=" + path)
        eq([l for l in self.log(event) if all(w in l for w in words)], [], "log lines " + event)

    def term(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout=10):
        try:
            return self.process.wait(patience(timeout))
        except subprocess.TimeoutExpired:
            raise Failure("the daemon does not end")

    def stop(self, check=True):
        """Ends the daemon and says what is wrong with its end, as a list of texts."""
        problems = []
        if self.process.poll() is None:
            self.term()
        try:
            status = self.process.wait(patience(15))
            if check and status != 0:
                problems.append("the daemon ended with %d" % status)
        except subprocess.TimeoutExpired:
            problems.append("the daemon does not end on SIGTERM; killed")
            self.process.kill()
            self.process.wait()
        if hasattr(self, "reader"):
            self.reader.join(2)
        RUNNING.remove(self)
        problems += self.leftovers()
        self.validate()
        if check:
            problems += self.log_faults()
        shutil.rmtree(self.dir, ignore_errors=True)
        return problems

    def validate(self):
        """Holds what its servers were sent since the last time against the schemas."""
        if validation.is_on:
            self.received.look(self.records, self.servers)

    def leftovers(self):
        """Processes that outlived the daemon; they are killed here."""
        end = time.monotonic() + patience(3)
        while True:
            reap_adopted()
            left = [p for p in self.children() + self.grandchildren() if is_alive(p)]
            if self.process.poll() is not None:
                left += [p for p in descendants(os.getpid()) if p not in left and self.is_ours(p)]
            if not left or time.monotonic() > end:
                break
            time.sleep(0.02)
        for pid in left:
            kill(pid)
        return ["left behind: process %d" % p for p in left]

    def is_ours(self, pid):
        """Whether a process comes from this daemon: it runs the program and belongs to no living daemon."""
        others = [d for d in RUNNING if d is not self]
        if any(pid == d.pid or pid in descendants(d.pid) for d in others):
            return False
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                line = f.read()
        except OSError:
            return False
        return self.dir.encode() in line or line.startswith(self.argv[0].encode())

    def log_faults(self):
        """Log lines since the last look that no correct run has."""
        faults, lines = [], list(self.lines)
        for line in lines[self.checked:]:
            words, lower = line.split(), line.lower()
            if any(fault in lower for fault in FAULTS) and not (len(words) > 2 and words[2].startswith("child_stderr")):
                faults.append("log: " + line)
            elif len(words) > 2 and words[1] == "error" and words[2] not in self.expected_errors:
                faults.append("log: " + line)
        self.checked = len(lines)
        return faults


def reap_adopted():
    """Collects orphans that ended here, not the daemons (their Popen does)."""
    table = processes()
    for pid, (ppid, state, name) in table.items():
        if ppid == os.getpid() and state == "Z" and pid not in KNOWN:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


KNOWN = set()  # pids of daemons, which their Popen collects
RUNNING = []


# ---- cases ------------------------------------------------------------------

CASES = []


class Case:
    def __init__(self, function, deadline, own, servers, config, daemon):
        self.function, self.deadline, self.own = function, deadline, own
        self.servers, self.config, self.daemon = servers, config, daemon
        self.module = function.__module__
        self.name = "%s.%s" % (self.module, function.__name__)
        self.title = " ".join((function.__doc__ or "").split())


def case(function=None, *, deadline=10, own=False, servers=None, config=None, daemon=True):
    """
    Registers a case. own: a daemon for it alone (implied by servers and config); daemon=False: none,
    the case starts what it needs with t.start().
    """
    def register(f):
        CASES.append(Case(f, deadline, own or bool(servers) or bool(config), servers, config, daemon))
        return f
    return register(function) if function else register


class Scene:
    """What a case works with."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.conns, self.sessions, self.daemons, self.directories = [], [], [], []
        self.invalid = []  # (pattern, reason)

    def start(self, servers=None, config=None, **more):
        """A daemon of the case's own; stopped after it."""
        daemon = Daemon(servers, config, **more)
        self.daemons.append(daemon)
        if self.daemon is None:
            self.daemon = daemon
        return daemon

    def directory(self):
        """An empty directory; removed after the case."""
        self.directories.append(tempfile.mkdtemp(prefix="mcpgated-"))
        return self.directories[-1]

    def conn(self, **kw):
        conn = wire.Conn(kw.pop("address", None) or self.daemon.address, **kw)
        self.conns.append(conn)
        return conn

    def session(self, server="main", *args, daemon=None, **kw):
        """An open MCP session; ended after the case."""
        session = mcp.Session(self, daemon or self.daemon, server, *args, **kw)
        self.sessions.append(session)
        return session

    def sse(self, server="main", *, daemon=None, **kw):
        """A client of HTTP+SSE; its session ends with its connection."""
        return mcp.SseClient(self, daemon or self.daemon, server, **kw)

    def will_end(self, exchange, path, daemon=None):
        """Ends the session, if any, that an exchange outside t.session() has opened."""
        session_id = exchange.response.header("mcp-session-id")
        if session_id:
            self.sessions.append(mcp.Stub((daemon or self.daemon).address, path, session_id))

    def expect_error_log(self, *events):
        for daemon in [self.daemon] + self.daemons:
            if daemon:
                daemon.expected_errors.update(events)

    def expect_invalid(self, pattern, reason):
        """Faults against the schemas that this case is to have; one that does not come is a failure."""
        self.invalid.append((re.compile(pattern), reason))

    def invalid_messages(self):
        """The faults that the case does not expect, and those that it expects in vain."""
        if self.daemon and self.daemon in RUNNING:
            self.daemon.validate()
        faults, unneeded = list(validation.found), []
        for pattern, reason in self.invalid:
            left = [f for f in faults if not pattern.search(f)]
            if len(left) == len(faults):
                unneeded.append("nothing is against a schema here, although %s: %s" % (reason, pattern.pattern))
            faults = left
        return faults + unneeded

    def end(self):
        """Closes everything; returns what is wrong."""
        for session in self.sessions:
            session.end_quietly()
        for conn in self.conns:
            conn.close()
        problems = []
        for daemon in self.daemons:
            problems += daemon.stop(check=not daemon.forgiven)
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)
        return problems


def where():
    """The lines of the case, innermost last, and where in the harness the problem was seen."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    of_case = [f for f in frames if os.sep + "cases" + os.sep in f.filename] or frames
    seen = of_case[-2:] + ([frames[-1]] if frames[-1] not in of_case else [])
    return "\n".join("  %s:%d %s: %s" % (os.path.basename(f.filename), f.lineno, f.name, f.line) for f in seen)


def on_alarm(number, frame):
    """Time is up, unless the machine has become busier since the alarm was set."""
    left = alarm.began + patience(alarm.seconds) - time.monotonic()
    if left <= 0:
        raise CaseTimeout()
    signal.setitimer(signal.ITIMER_REAL, max(left, 0.1))


class alarm:
    """Raises CaseTimeout after that many seconds of a machine that is not busy."""
    began = seconds = 0

    @classmethod
    def set(cls, seconds):
        cls.began, cls.seconds = time.monotonic(), seconds
        signal.setitimer(signal.ITIMER_REAL, patience(seconds))

    @staticmethod
    def stop():
        signal.setitimer(signal.ITIMER_REAL, 0)


def check_descriptors(daemon):
    """After all sessions have ended the two processes hold what they held at the start."""
    if daemon.process.poll() is not None or daemon.gateway is None or not is_alive(daemon.gateway):
        return []

    def grown():
        try:
            return {p: (daemon.base_fds[p], n) for p, n in daemon.fds().items()
                    if n > daemon.base_fds.get(p, n) + 2}
        except OSError:
            return {}
    end = time.monotonic() + patience(6)
    while (grown() or daemon.children()) and time.monotonic() < end:
        time.sleep(0.05)
    problems = ["descriptors of %d have grown from %d to %d" % ((p,) + v) for p, v in grown().items()]
    return problems + ["a process is left after all sessions: %d" % p for p in daemon.children()]


class FileRun:
    """Runs the cases of one file; harmless cases share a daemon."""

    def __init__(self, module, report):
        self.module, self.report = module, report
        self.shared = None

    def run(self, cases):
        signal.signal(signal.SIGALRM, on_alarm)
        validation.is_on = True
        for c in cases:
            started = time.monotonic()
            verdict, note = self.run_case(c)
            self.report(c, verdict, note, time.monotonic() - started)
        problems = check_descriptors(self.shared) + self.shared.stop() if self.shared else []
        self.report(None, "fail" if problems else "ok", "\n".join(problems), 0)

    def run_case(self, c):
        scene, problems = None, []
        verdict, note = "ok", ""
        alarm.set(c.deadline)
        try:
            scene = self.scene(c)
            c.function(scene)
        except Skip as e:
            verdict, note = "skip", str(e)
        except CaseTimeout:
            verdict, note = "fail", "not done within %d s\n%s" % (time.monotonic() - alarm.began, where())
        except Exception as e:
            verdict, note = "fail", "%s: %s\n%s" % (type(e).__name__, e, where())
        alarm.stop()
        problems = self.clean(c, scene, verdict)
        if scene and verdict == "ok":
            problems += scene.invalid_messages()
        validation.found.clear()
        if problems and verdict != "skip":
            verdict, note = "fail", (note + "\n" + "\n".join(problems)).strip()
        if verdict == "fail" and scene and scene.daemon:
            note += "\n--- last log lines\n" + "\n".join(scene.daemon.lines[-12:])
            for daemon in dict.fromkeys([scene.daemon] + scene.daemons):
                told = [line for line in daemon.lines if re.search(r"Z (warn|error) ", line)]
                note += "\n--- what a daemon warned of last\n" + "\n".join(told[-6:]) if told else ""
        return verdict, note

    def scene(self, c):
        if not c.daemon:
            return Scene(None)
        if c.own:
            scene = Scene(None)
            servers = c.servers if c.servers is not None else self.module.SERVERS
            scene.start(servers, c.config)
            return scene
        if self.shared is None:
            self.shared = Daemon(self.module.SERVERS, getattr(self.module, "CONFIG", None))
        return Scene(self.shared)

    def clean(self, c, scene, verdict):
        if scene is None:
            return []
        alarm.set(40)
        try:
            problems = scene.end()
        except CaseTimeout:
            problems = ["cleaning up does not end"]
        finally:
            alarm.stop()
        if scene.daemon is self.shared and self.shared:
            problems += self.shared.log_faults()
            self.shared.expected_errors = set()
            # After a failed case the next ones get a fresh daemon: a failure stays one failure.
            if self.shared.process.poll() is not None:
                problems.append("the daemon has ended with %s" % self.shared.process.returncode)
            if problems or verdict == "fail":
                self.shared.stop(check=False)
                self.shared = None
        return problems
