#!/usr/bin/env python3
"""Measures MCP gateways with load.c in front and echo-server behind.  See README.md."""
import argparse
import contextlib
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import growth
import instructions

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
CHILD_NAMES = {"echo-server", "sh", "dash", "taskset"}

# name: (what it is, load arguments, what ranks it, higher is better, needs)
# A need is a mode, "bearer", or a number of sessions (checked against max_sessions).
SCENARIOS = {
    "a1": ("64-byte echo, 1 connection, closed loop", "--connections 1", "rps", True),
    "a16": ("64-byte echo, 16 connections and sessions", "--connections 16", "rps", True),
    "a64": ("64-byte echo, 64 connections and sessions", "--connections 64", "rps", True),
    "a256": ("64-byte echo, 256 connections and sessions", "--connections 256", "rps", True),
    "p16": ("1 KiB echo, 16 connections and sessions: what policy costs", "--connections 16 --payload 1024", "rps", True),
    "p64": ("1 KiB echo, 64 connections and sessions", "--connections 64 --payload 1024", "rps", True),
    "b": ("64-byte echo at a fixed rate, 16 connections: p99 latency", "--connections 16 --rate {rate}", "latency_us.p99", False),
    "c1m": ("1 MiB echo (in and out), 4 connections", "--connections 4 --payload 1048576", "rps", True),
    "cblob": ("1 MiB blob (out only), 4 connections", "--connections 4 --tool blob --payload 1048576", "rps", True),
    "s64k": ("64 KiB echo (in and out), 1 connection: the gateway's processor time for a byte", "--connections 1 --payload 65536", "gw_ns_per_byte", False),
    "s1m": ("1 MiB echo", "--connections 1 --payload 1048576", "gw_ns_per_byte", False),
    "s4m": ("4 MiB echo (targets that take so much)", "--connections 1 --payload 4194304", "gw_ns_per_byte", False),
    "s16m": ("16 MiB echo", "--connections 1 --payload 16777216", "gw_ns_per_byte", False),
    "s64m": ("64 MiB echo", "--connections 1 --payload 67108864", "gw_ns_per_byte", False),
    "d": ("session churn: initialize, initialized, call, DELETE; 8 connections", "--connections 8 --churn", "rps", True),
    "e1k": ("1,000 idle streams, a session each: bytes of gateway memory per stream", "streams 1000", "bytes_per_stream", False),
    "e10k": ("10,000 idle streams, a session each: bytes of gateway memory per stream", "streams 10000", "bytes_per_stream", False),
    "f": ("from process start to the first successful tools/call, ms", "first", "first_call_ms", False),
    "g1": ("1,000 progress notifications per call, 1 connection", "--connections 1 --tool progress --count 1000", "notifications_per_s", True),
    "g16": ("1,000 progress notifications per call, 16 connections", "--connections 16 --tool progress --count 1000", "notifications_per_s", True),
    "h1": ("2026-07-28 stateless echo, 1 connection", "--mode modern --connections 1", "rps", True),
    "h64": ("2026-07-28 stateless echo, 64 connections", "--mode modern --connections 64", "rps", True),
    "k4": ("64-byte echo, a new connection for each call, 4 at a time", "--connections 4 --reconnect", "rps", True),
    "k4r": ("as k4; with TLS the session is resumed", "--connections 4 --reconnect --resume", "rps", True),
    "n64": ("64-byte echo, 64 connections and sessions: instructions of its own for a call (callgrind)", "--connections 64", "instructions", False),
    "n1": ("as n64, 1 connection", "--connections 1", "instructions", False),
    "n64p": ("as n64, 1 KiB: what policy costs", "--connections 64 --payload 1024", "instructions", False),
    "n64g": ("as n64, 16 connections, 100 progress notifications in a call", "--connections 16 --tool progress --count 100",
             "instructions", False),
    "n64h": ("as n64, 2026-07-28", "--mode modern --connections 64", "instructions", False),
    "s5k": ("64-byte echo, 64 connections, 1 to 5,000 sessions: how much more a call costs the gateway", "growth 1 64 1000 5000", "growth", False),
    "i64": ("as a64, every request's token verified", "bearer --connections 64", "rps", True),
}
GROWTH = ("s5k",)
DEFAULT = "f,a1,a16,a64,a256,b,c1m,cblob,d,e1k,g1,g16,h1,h64,i64"


def die(msg):
    sys.exit("bench: " + msg)


def gateway():
    """The program behind {mcpgated}: BENCH_MCPGATED, or the one built in the folder above, or in its build/."""
    above = os.path.dirname(HERE)
    places = [os.path.join(above, "mcpgated"), os.path.join(above, "build", "mcpgated")]
    return os.environ.get("BENCH_MCPGATED") or next(filter(os.path.exists, places), places[0])


# ---- processes ---------------------------------------------------------------

def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def tree(root):
    """pid -> (comm, is the process part of the gateway) of root and its descendants."""
    kids, comm = {}, {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            s = read(f"/proc/{d}/stat")
            if s:
                r = s.rindex(")")
                f = s[r + 2:].split()
                if f[0] != "Z":
                    kids.setdefault(int(f[1]), []).append(int(d))
                    comm[int(d)] = s[s.index("(") + 1:r]
    out, todo = {}, [root]
    while todo:
        p = todo.pop()
        if p in comm:
            out[p] = comm[p]
        todo += kids.get(p, [])
    return out


def cpu_ns(pid):
    total = 0
    try:
        for t in os.listdir(f"/proc/{pid}/task"):
            s = read(f"/proc/{pid}/task/{t}/schedstat").split()
            total += int(s[0]) if s else 0
    except OSError:
        pass
    return total


def reaped_ns(pid):
    """CPU of the children that pid has waited for."""
    s = read(f"/proc/{pid}/stat")
    f = s[s.rindex(")") + 2:].split() if s else []
    return (int(f[13]) + int(f[14])) * 1_000_000_000 // TICK if f else 0


def machine_ns():
    """Time that the machine's processors were not idle (stolen time counts)."""
    f = [int(x) for x in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
    return (sum(f) - f[3] - f[4]) * 1_000_000_000 // TICK


def rss(pid):
    s = read(f"/proc/{pid}/statm").split()
    return int(s[1]) * PAGE if s else 0


class Target:
    def __init__(self, name, spec, opts, bearer=False, modern=False):
        self.name, self.spec, self.opts, self.bearer = name, spec, opts, bearer
        self.tmp = tempfile.mkdtemp(prefix="bench-")
        os.chmod(self.tmp, 0o711)                     # nginx's workers drop to another user
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        echo = shlex.quote(os.path.join(HERE, "echo-server")) + (" --modern" if modern else "")
        if opts.child_cpu is not None:
            echo = f"taskset -c {opts.child_cpu} {echo}"
        b = spec.get("bearer", {}) if bearer else {}
        token = b.get("token", "")
        if "token_cmd" in b:
            token = subprocess.check_output(["sh", "-c", self.sub(b["token_cmd"], "", echo)], text=True).strip()
        self.map = lambda s: self.sub(s, token, echo)
        self.cmd = []
        for a in b.get("cmd", spec["cmd"]):
            if a == "{echo...}":
                self.cmd += shlex.split(echo)
            else:
                self.cmd.append(self.map(a))
        self.url = self.map(spec["url"])
        self.headers = [x for h in b.get("headers", []) for x in ("--header", self.map(h))]
        self.files = {**spec.get("files", {}), **b.get("files", {})}
        self.gw_names = set(spec.get("gateway_comm", []))
        self.proc = None

    def sub(self, s, token, echo):
        words = shlex.split(echo)
        for k, v in (("{port}", str(self.port)), ("{echo_program}", json.dumps(words[0])), ("{echo_args}", json.dumps(words[1:])),
                     ("{tmp}", self.tmp), ("{echo}", echo), ("{token}", token),
                     ("{bench}", HERE), ("{peers}", self.opts.peers), ("{mcpgated}", gateway())):
            s = s.replace(k, v)
        return s

    def spawn(self):
        for n, text in self.files.items():
            with open(os.path.join(self.tmp, n), "w") as f:
                f.write(self.map(text))
        self.log = open(os.path.join(self.tmp, "log"), "wb")
        cpus = self.opts.target_cpus

        def pin():
            if cpus:
                os.sched_setaffinity(0, cpus)
        self.proc = subprocess.Popen(self.cmd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                     preexec_fn=pin, start_new_session=True, env={**os.environ, **self.spec.get("env", {})})

    def start(self, mode, timeout_s=15):
        self.spawn()
        r = load(self, ["--first-call", "--mode", mode, "--timeout", str(timeout_s)])
        if "first_call_ns" not in r:
            tail = read(os.path.join(self.tmp, "log"))[-400:]
            self.stop()
            raise RuntimeError(f"{self.name} did not answer: {r}\n{tail}")

    def sample(self):
        """Memory and CPU of the gateway's own processes, and of its children."""
        g = {"gw_rss": 0, "gw_cpu": 0, "child_rss": 0, "child_cpu": 0, "children": {}, "machine_cpu": machine_ns()}
        for p, c in tree(self.proc.pid).items():
            is_gw = c in self.gw_names if self.gw_names else p == self.proc.pid or c not in CHILD_NAMES
            if self.gw_names and c not in self.gw_names and c in ("sh", "dash"):
                continue
            k = "gw" if is_gw else "child"
            g[k + "_rss"] += rss(p)
            g[k + "_cpu"] += cpu_ns(p)
            g["child_cpu"] += reaped_ns(p)
            if not is_gw:
                g["children"][c] = g["children"].get(c, 0) + 1
        return g

    def stop(self, patience_s=5):
        if not self.proc:
            return {}
        pids = tree(self.proc.pid)
        t = time.monotonic()
        self.proc.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.proc.wait(patience_s)
        took = time.monotonic() - t
        left = []
        for _ in range(50):
            left = [p for p, c in pids.items() if read(f"/proc/{p}/comm").strip() == c and " Z " not in read(f"/proc/{p}/stat")]
            if not left:
                break
            time.sleep(0.02)
        for p in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)
        self.proc.wait()
        self.log.close()
        self.proc = None
        self.remove_tmp()
        return {"stop_s": took, "left_after_stop": len(left)}

    def remove_tmp(self):
        if not self.opts.keep_tmp:
            shutil.rmtree(self.tmp, ignore_errors=True)


# ---- one measurement ------------------------------------------------------------

@contextlib.contextmanager
def machine(opts):
    if not opts.lock:
        yield
        return
    with open(opts.lock, "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def load(target, args, watch=False):
    """Runs load; with watch, samples the target's processes meanwhile."""
    opts = target.opts
    cmd = [os.path.join(HERE, "load"), "--url", target.url, *target.headers, *target.spec.get("load_args", []), *args]

    def pin():
        if opts.load_cpus:
            os.sched_setaffinity(0, opts.load_cpus)
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin)
    at, peak, stop = {}, {"gw_rss": 0, "child_rss": 0, "children": {}}, threading.Event()

    def sampler():
        while not stop.wait(0.15):
            s = target.sample()
            for k in ("gw_rss", "child_rss"):
                peak[k] = max(peak[k], s[k])
            for k, v in s["children"].items():
                peak["children"][k] = max(v, peak["children"].get(k, 0))
    th = threading.Thread(target=sampler, daemon=True)
    if watch:
        th.start()
    text = ""
    for line in p.stdout:
        if line.startswith('{"event"'):
            if watch:
                at[json.loads(line)["event"]] = target.sample()
        else:
            text += line
    err = p.stderr.read()
    p.wait()
    stop.set()
    if watch:
        th.join()
    try:
        r = json.loads(text)
    except ValueError:
        return {"failed": (err or text).strip()[:300]}
    if watch:
        r["peak"] = peak
        r["at"] = at
        a, b = at.get("measuring"), at.get("measured")
        if a and b and r["requests"]:
            r["gw_cpu_us"] = (b["gw_cpu"] - a["gw_cpu"]) / 1e3 / r["requests"]
            if "--payload" in args:                   # each byte goes in and out
                r["gw_ns_per_byte"] = r["gw_cpu_us"] * 1e3 / 2 / int(args[args.index("--payload") + 1])
            r["child_cpu_us"] = max(0, b["child_cpu"] - a["child_cpu"]) / 1e3 / r["requests"]
        if a and b:                                   # processors kept busy by anything else
            ours = b["gw_cpu"] - a["gw_cpu"] + b["child_cpu"] - a["child_cpu"]
            r["noise"] = max(0, (b["machine_cpu"] - a["machine_cpu"] - ours) / 1e9 / r["duration_s"] - r["generator_cpu"])
    return r


def first_call(target, mode):
    """load is already knocking when the target starts."""
    cmd = [os.path.join(HERE, "load"), "--url", target.url, *target.headers, "--first-call", "--mode", mode, "--timeout", "20"]
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True)
    time.sleep(0.05)
    t0 = time.monotonic_ns()
    target.spawn()
    out = p.communicate()[0]
    if not out:
        return {"failed": "no successful call"}
    time.sleep(0.2)
    s = target.sample()
    return {"first_call_ms": (json.loads(out)["first_call_ns"] - t0) / 1e6, "requests": 1, "errors": 0,
            "peak": {"gw_rss": s["gw_rss"], "child_rss": s["child_rss"], "children": s["children"]}}


def streams(target, n, opts):
    before = target.sample()
    r = load(target, ["--connections", "0", "--sessions", str(n), "--idle-streams", str(n), "--duration", "1",
                      "--warmup", "0.2", "--setup-timeout", "60"], watch=True)
    if "failed" in r:
        return r
    held = r["at"].get("measuring", before)
    ready = r["at"].get("sessions_ready", before)
    r["gw_rss_before"] = before["gw_rss"]
    ok = max(1, r["streams"])
    r["bytes_per_stream"] = (held["gw_rss"] - before["gw_rss"]) / ok if r["streams"] else None
    r["bytes_per_session_part"] = (ready["gw_rss"] - before["gw_rss"]) / ok
    r["errors"] += r["streams_failed"] + r["streams_closed"]
    return r


def plan(name, spec, scen):
    """Why the target cannot run the scenario, or (mode, load arguments)."""
    args = SCENARIOS[scen][1].split()
    modes = spec.get("modes", ["legacy"])
    mode = "modern" if "modern" in args else "legacy"
    if args[0] == "bearer" and "bearer" not in spec:
        return "no token check", None
    if modes == ["raw"]:
        if scen[0] in "cdefgis":
            if scen not in ("f", "c1m"):
                return "raw", None
        args = [a for a in args if a not in ("--mode", "modern")] + ["--mode", "raw"]
        return None, ("raw", args)
    if mode not in modes:
        return "no " + mode, None
    if scen in spec.get("skip", []):
        return "skipped", None
    if args[0] in ("streams", "growth") and int(args[-1]) > spec.get("max_sessions", 1 << 30):
        return "over max_sessions", None
    return None, (mode, args)


def get(r, path):
    for k in path.split("."):
        r = r.get(k) if isinstance(r, dict) else None
    return r


def run_scenario(scen, names, table, opts):
    about, _, metric, higher = SCENARIOS[scen]
    results, running = {n: [] for n in names}, {}
    skipped = {}
    extra = ["--duration", str(opts.duration), "--warmup", str(opts.warmup), "--seed", str(opts.seed)]
    for n in names:
        why, p = plan(n, table[n], scen)
        if why:
            skipped[n] = why
    live = [n for n in names if n not in skipped]
    one_off = scen in GROWTH or scen[0] in "efn"
    try:
        if not one_off:
            for n in live:
                mode, args = plan(n, table[n], scen)[1]
                t = Target(n, table[n], opts, bearer=args[0] == "bearer", modern=mode == "modern")
                try:
                    t.start(mode)
                    running[n] = t
                except (RuntimeError, OSError) as e:
                    skipped[n] = "did not start"
                    print(f"  {n}: {e}", file=sys.stderr)
        for _ in range(1 if scen in GROWTH or scen[0] == "n" else opts.rounds):
            for n in [x for x in live if x not in skipped and not any("failed" in r for r in results[x])]:
                mode, args = plan(n, table[n], scen)[1]
                if scen[0] == "n":
                    r = instructions.measure(lambda: Target(n, table[n], opts, modern=mode == "modern"), load, mode, args)
                elif one_off:
                    t = Target(n, table[n], opts)
                    try:
                        if scen == "f":
                            r = first_call(t, mode)
                        else:
                            t.start(mode)
                            if scen in GROWTH:
                                r = growth.measure(t, load, mode, [int(x) for x in args[1:]], opts.rounds, extra)
                            else:
                                r = streams(t, int(args[1]), opts)
                    except (RuntimeError, OSError) as e:
                        r = {"failed": str(e)}
                    r.update(t.stop())
                else:
                    a = [x.format(rate=opts.rate) for x in args if x != "bearer"]
                    for _ in range(3):                # again if something else took the processors
                        r = load(running[n], a + extra, watch=True)
                        if r.get("noise", 0) <= opts.max_noise:
                            break
                    time.sleep(0.05)
                    r["children_after"] = sum(running[n].sample()["children"].values())
                results[n].append(r)
    finally:
        for n, t in running.items():
            e = t.stop()
            if results[n]:
                results[n][-1].update(e)
    return {"about": about, "metric": metric, "higher": higher, "results": results, "skipped": skipped}


# ---- the table ---------------------------------------------------------------------

def med(rs, path):
    v = [get(r, path) for r in rs]
    v = [x for x in v if isinstance(x, (int, float))]
    return statistics.median(v) if v else None


def num(x, digits=0):
    return "-" if x is None else f"{x:,.{digits}f}"


def show(scen, s, ref, out):
    print(f"\n{scen}: {s['about']}", file=out)
    head = ("target", s["metric"].split(".")[-1], "ratio", "spread", "p50 us", "p99 us", "errors", "gw cpu us", "child cpu us", "gen", "noise", "gw MiB", "children", "child MiB", "after")
    rows = [head]
    base = med(s["results"].get(ref, []), s["metric"])
    for n, rs in s["results"].items():
        if n in s["skipped"]:
            rows.append((n, "(" + s["skipped"][n] + ")") + ("",) * (len(head) - 2))
            continue
        v = [get(r, s["metric"]) for r in rs]
        v = [x for x in v if isinstance(x, (int, float))]
        m = statistics.median(v) if v else None
        # pair by pair: the machine's speed drifts, so the ratio of neighbours is steadier than of medians
        pairs = [a / b for a, b in zip(v, [get(r, s["metric"]) or 0 for r in s["results"].get(ref, [])]) if b] if v else []
        ratio = statistics.median(pairs) if pairs and base else None
        kids = {}
        for r in rs:
            for k, c in (get(r, "peak.children") or {}).items():
                kids[k] = max(c, kids.get(k, 0))
        mib = lambda p: (med(rs, p) or 0) / 1048576
        fails = [r["failed"] for r in rs if "failed" in r]
        rows.append((n, num(m, 3 if m and m < 10 else 1 if m and m < 1000 else 0) if not fails else "FAILED", num(ratio, 3),
                     f"{num(min(v), 3 if max(v) < 10 else 0)}-{num(max(v), 3 if max(v) < 10 else 0)}" if v else "-", num(med(rs, "latency_us.p50")), num(med(rs, "latency_us.p99")),
                     num(sum((r.get("errors") or 0) + (r.get("sessions_failed") or 0) for r in rs)), num(med(rs, "gw_cpu_us"), 1), num(med(rs, "child_cpu_us"), 1), num(med(rs, "generator_cpu"), 2), num(med(rs, "noise"), 2),
                     num(mib("peak.gw_rss"), 1), " ".join(f"{k}:{c}" for k, c in sorted(kids.items())) or "0", num(mib("peak.child_rss"), 1),
                     num(med(rs, "children_after"))))
    w = [max(len(str(r[i])) for r in rows) for i in range(len(head))]
    for r in rows:
        print("  " + "  ".join(str(x).ljust(w[i]) if i == 0 else str(x).rjust(w[i]) for i, x in enumerate(r)).rstrip(), file=out)
    for n, rs in s["results"].items():
        if growth.describe(n, rs):
            print(growth.describe(n, rs), file=out)
        for r in rs:
            e = r.get("failed") or r.get("first_error")
            if e:
                print(f"  ! {n}: {e[:200]}  {json.dumps(r.get('errors_by_kind', {}))}", file=out)
                break
    out.flush()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("targets", nargs="*", help="names from the table; the first is the reference unless --ref says otherwise")
    p.add_argument("--ref", help="the target that ratios are taken against")
    p.add_argument("--adhoc", action="append", default=[], metavar="NAME=COMMAND", help="a target given here: COMMAND may use {port} {echo} {tmp} {bench}")
    p.add_argument("--adhoc-path", default="/mcp")
    p.add_argument("--adhoc-modes", default="legacy,modern")
    p.add_argument("--table", default=os.path.join(HERE, "targets.json"))
    p.add_argument("--peers", default=os.environ.get("BENCH_PEERS", ""), help="where the peers' node_modules is")
    p.add_argument("--scenarios", default=DEFAULT, help=f"comma-separated (default {DEFAULT})")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--duration", type=float, default=2)
    p.add_argument("--warmup", type=float, default=0.5)
    p.add_argument("--rate", type=float, default=200, help="calls/s of scenario b")
    p.add_argument("--max-noise", type=float, default=0.2, help="repeat a run (twice at most) while others use more processors than this")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--target-cpus", default="0", help="processors for the target and its children ('' for any)")
    p.add_argument("--load-cpus", default="1", help="processors for the generator ('' for any)")
    p.add_argument("--child-cpu", type=int, help="move the children to this processor (taskset)")
    p.add_argument("--lock", default=os.environ.get("BENCH_LOCK", ""), help="flock this file around every scenario")
    p.add_argument("--json", help="write all results here")
    p.add_argument("--keep-tmp", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    with open(o.table) as f:
        table = json.load(f)
    for a in o.adhoc:
        n, _, c = a.partition("=")
        table[n] = {"cmd": ["sh", "-c", "exec " + c], "url": "http://127.0.0.1:{port}" + o.adhoc_path, "modes": o.adhoc_modes.split(",")}
        if n not in o.targets:
            o.targets.append(n)
    if o.list or not o.targets:
        for n, t in table.items():
            print(f"{n:24} {t.get('about', '')}")
        print()
        for n, s in SCENARIOS.items():
            print(f"{n:6} {s[0]}")
        return
    for n in o.targets:
        if n not in table:
            die(f"no target {n}")
    scens = o.scenarios.split(",")
    for s in scens:
        if s not in SCENARIOS:
            die(f"no scenario {s}")
    ncpu = os.cpu_count() or 1
    for k in ("target_cpus", "load_cpus"):
        v = {int(x) for x in getattr(o, k).split(",") if x != ""}
        setattr(o, k, v if v and max(v) < ncpu else None)
    if o.json:
        open(o.json, "a").close()
    if subprocess.call(["make", "-s", "-C", HERE]):
        die("the build failed")
    ref = o.ref or o.targets[0]
    print(f"targets {' '.join(o.targets)}; reference {ref}; {o.rounds} rounds of {o.duration:g} s, in turn; "
          f"target on {o.target_cpus or 'any'}, children on {o.child_cpu if o.child_cpu is not None else 'the same'}, load on {o.load_cpus or 'any'}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # so that the targets are stopped
    done = {}
    for s in scens:
        with machine(o):                                  # A and B see the same machine
            done[s] = run_scenario(s, o.targets, table, o)
        show(s, done[s], ref, sys.stdout)
        if o.json:
            with open(o.json, "w") as f:
                json.dump(done, f, indent=1)


if __name__ == "__main__":
    main()
