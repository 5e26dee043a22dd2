# SPDX-License-Identifier: Apache-2.0
"""
What one set of servers for all clients of a machine saves: ten clients of six servers each, as they are and after `mcpgatectl adopt`.

    python3 machine.py --npm DIR [--bin DIR] [--clients N] [--rounds N]

--npm has the folders clients and conformance with their node_modules, as `./quickstart check clients interop` makes them; --bin has
mcpgated and mcpgatectl. Only servers and the gateway are counted, not the clients. Instead of npx, which has processes of its own, a
script starts each server.
"""
import argparse
import contextlib
import json
import os
import select
import signal
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST = 120  # seconds until all have answered
SLEEP_AFTER = 30
FILE = ".cursor/mcp.json"
NPX = '#!/bin/sh\n# npx -y PACKAGE [ARGUMENT...]\npackage=$2\nshift 2\nexec node "%s/conformance/node_modules/$package/dist/index.js" "$@"\n'


def entry(package, *args, **env):
    made = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-" + package, *args]}
    return dict(made, env=env) if env else made


def make_home(home, npm):
    for folder in ("bin", "files", "run", ".cursor"):
        os.mkdir(os.path.join(home, folder), 0o700)
    with open(os.path.join(home, "bin/npx"), "w") as file:
        file.write(NPX % npm)
    os.chmod(file.name, 0o700)
    servers = {"everything": entry("everything")}
    for n in (1, 2):
        servers["memory-%d" % n] = entry("memory", MEMORY_FILE_PATH="%s/memory-%d.json" % (home, n))
    for n in (1, 2, 3):
        os.mkdir("%s/files/%d" % (home, n))
        servers["files-%d" % n] = entry("filesystem", "%s/files/%d" % (home, n))
    with open(os.path.join(home, FILE), "w") as file:
        json.dump({"mcpServers": servers}, file, indent=2)
    os.chmod(file.name, 0o600)
    return len(servers)


def processes_below(roots):
    """All processes that descend from these, without them."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open("/proc/%s/stat" % name) as file:
                parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
    found, more = set(), set(roots)
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - found
        found |= more
    return found


def measure(pids):
    """(processes, MiB of memory, shared pages divided by those who share them)."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open("/proc/%d/smaps_rollup" % pid) as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return len(pids), total / 1024


def read_lines(clients, count):
    """The times that all clients print together."""
    end, got = time.monotonic() + LONGEST, {client.stdout.fileno(): b"" for client in clients}
    while sum(text.count(b"\n") for text in got.values()) < count:
        ready = select.select(list(got), [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            raise SystemExit("not all calls were answered within %d s" % LONGEST)
        for fd in ready:
            text = os.read(fd, 4096)
            if not text:
                raise SystemExit("a client has ended")
            got[fd] += text
    return [float(number) for text in got.values() for number in text.split()]


@contextlib.contextmanager
def clients_of(home, npm, env, count, servers):
    argv = ["node", os.path.join(HERE, "machine-client.mjs"), os.path.join(npm, "clients/node_modules"), os.path.join(home, FILE)]
    clients = [subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        yield clients, read_lines(clients, count * servers)
    finally:
        for client in clients:
            client.stdin.close()
        for client in clients:
            client.wait(LONGEST)


def wait_for_sleep(pid):
    """Until the processes have been the same ones for twice the time after which a session sleeps."""
    end, since, last = time.monotonic() + LONGEST, time.monotonic(), None
    while time.monotonic() < min(end, since + 2 * SLEEP_AFTER):
        now = processes_below([pid])
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.2)


def before(home, args, env, servers):
    with clients_of(home, args.npm, env, args.clients, servers) as (clients, times):
        yield "at work, as they were", measure(processes_below([client.pid for client in clients])), times


def after(home, args, env, servers):
    subprocess.run([os.path.join(args.bin, "mcpgatectl"), "adopt"], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    config = os.path.join(home, ".config/mcpgated/mcpgated.yaml")
    with open(config, "a") as file:
        file.write("defaults: {pool: {sleep_after: %ds}}\n" % SLEEP_AFTER)
    daemon = subprocess.Popen([os.path.join(args.bin, "mcpgated"), "-c", config], env=env, stderr=subprocess.PIPE)
    try:
        ready = 0
        while ready < servers:
            line = daemon.stderr.readline()
            if not line:
                raise SystemExit("the daemon has ended")
            ready += b"mcpgated: ready: " in line and b"http://" in line
        with clients_of(home, args.npm, env, args.clients, servers) as (_, times):
            yield "at work, adopted", measure({daemon.pid} | processes_below([daemon.pid])), times
            wait_for_sleep(daemon.pid)
            yield "idle, adopted (sleep_after)", measure({daemon.pid} | processes_below([daemon.pid])), []
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.stderr.close()
        daemon.wait(LONGEST)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npm", required=True)
    parser.add_argument("--bin", default=os.path.join(HERE, "../build"))
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    args.npm, args.bin = os.path.abspath(args.npm), os.path.abspath(args.bin)
    print("%-28s %9s %8s %10s %10s" % ("", "processes", "MiB", "median ms", "max ms"))
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory(prefix="machine-") as home:
            servers = make_home(home, args.npm)
            env = {"HOME": home, "PATH": "%s/bin:%s" % (home, os.environ["PATH"]), "XDG_RUNTIME_DIR": os.path.join(home, "run")}
            for way in (before, after):
                for name, (count, memory), times in way(home, args, env, servers):
                    print("%-28s %9d %8.0f" % (name, count, memory), *("%10.0f" % f(times) for f in (statistics.median, max) if times), flush=True)


if __name__ == "__main__":
    main()
