# SPDX-License-Identifier: Apache-2.0
"""
Thousands of processes that are started and killed at random: the servers', the gateway, the keeper. Each server has children
of its own, and one of these has left its group and session. A life of the daemon ends with kill -9 of the keeper or with TERM;
after it no process, zombie or cgroup is left, and before TERM the descriptors are those of the beginning.
"""
import os
import random
import re
import threading
import time

import harness

WORKERS = 6
SPAWNS_PER_LIFE = 250
GATEWAY_KILLS_PER_LIFE = 3  # more within a minute, and the keeper gives up
SETTLE_SECONDS = 15
GUARD_SECONDS = 6
# Each process has a child in its group and, where there are cgroups, one that has left it: without them such a one is
# found by a keeper that ends in peace, but not after kill -9.
SERVER = "sleep 600 & exec \"$0\""
SERVER_WITH_GROUPS = "setsid sleep 600 & " + SERVER


class Tally:
    def __init__(self):
        self.spawns = self.children = self.gateways = self.keepers = self.stops = self.answers = self.cut = 0
        self.problems = []


def marked(mark):
    """All processes that this life has started, wherever they are now; zombies have no environment any more."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % entry, "rb") as f:
                if mark in f.read():
                    found.append(int(entry))
        except OSError:
            continue
    return found


def groups_of(daemon):
    """The directory of the children's cgroups, or None."""
    if not any("measure=cgroups state=on" in line for line in daemon.log("confine")):
        return None
    with open("/proc/%d/cgroup" % daemon.pid) as f:
        own = re.search(r"^0::/(.*)$", f.read(), re.M).group(1).replace("mcpgated-daemon", "").strip("/")
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        path = os.path.join(mount, own, "mcpgated-%d" % daemon.pid)
        if os.path.isdir(path):
            return path
    raise AssertionError("the log says that there are cgroups; there are none")


def direct_children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


class Life:
    """One daemon from its start to its end."""

    def __init__(self, new_client, child, rng, tally, script):
        self.new_client, self.rng, self.tally = new_client, rng, tally
        self.mark = b"MCPGATED_KILLS=%d.%d" % (os.getpid(), rng.randrange(1 << 60))
        name, value = self.mark.decode().split("=")
        server = {"command": "/bin/sh", "args": ["-c", script, child], "pool": {"max": 100}, "env": {name: value},
                  "start": {"backoff": "1ms..20ms", "give_up_after": 1000}, "stop": {"grace": "300ms", "term": "300ms"}}
        self.daemon = harness.Daemon({"main": server}, {"log": {"level": "debug"}, "sessions": {"idle_timeout": "5s"}},
                                     env={name: value})
        self.base_processes = len(harness.descendants(self.daemon.pid))
        self.base_fds = {"keeper": harness.fd_count(self.daemon.pid), "gateway": harness.fd_count(self.daemon.gateway)}
        self.groups = groups_of(self.daemon)
        self.over = threading.Event()

    def spawns(self):
        return len(self.daemon.log("child_spawn"))

    def work(self, seed):
        """Sessions, one after the other; what the kills cut short is not wrong, a wrong answer is."""
        rng = random.Random(seed)
        while not self.over.is_set():
            client = None
            try:
                client = self.new_client(self.daemon)
                client.open()
                for k in range(rng.randrange(3)):
                    client.echo("%d %d" % (seed, rng.randrange(1 << 30)), k)
                    self.tally.answers += 1
                if rng.random() < 0.9:
                    client.end()  # the others are left to their idle timeout
            except Exception as e:
                self.tally.cut += 1
                if "a wrong answer" in str(e):
                    self.tally.problems.append(str(e))
                time.sleep(0.005)
            if client:
                client.conn.close()

    def kill_child(self):
        """Only what the log calls a server's process: a new gateway is a child of the keeper before the log names it."""
        servers = {int(re.search(r" pid=(\d+)", line).group(1)) for line in self.daemon.log("child_spawn")}
        victims = [p for p in direct_children(self.daemon.pid) if p in servers]
        if victims:
            harness.kill(self.rng.choice(victims))
            self.tally.children += 1

    def run(self, end_by_kill):
        workers = [threading.Thread(target=self.work, args=(self.rng.randrange(1 << 30),)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        due = sorted(self.rng.randrange(SPAWNS_PER_LIFE) for _ in range(GATEWAY_KILLS_PER_LIFE))
        deadline = time.monotonic() + 120
        while self.spawns() < SPAWNS_PER_LIFE and time.monotonic() < deadline:
            if due and self.spawns() >= due[0]:
                due.pop(0)
                harness.kill(self.daemon.find_gateway())
                self.tally.gateways += 1
            else:
                self.kill_child()
            time.sleep(self.rng.random() * 0.03)
        if end_by_kill:
            self.end_by_kill(workers)
        else:
            self.end_by_term(workers)
        self.tally.spawns += self.spawns()

    def join(self, workers):
        self.over.set()
        for worker in workers:
            worker.join()

    def end_by_kill(self, workers):
        """In the midst of everything."""
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.tally.keepers += 1
        self.join(workers)
        self.expect_nothing(GUARD_SECONDS)
        self.daemon.stop(check=False)

    def end_by_term(self, workers):
        self.join(workers)
        self.expect_quiet()
        # Deaths of the gateway are errors in the log, and ours.
        self.daemon.expected_errors.add("gateway_exit")
        self.tally.problems += self.daemon.stop()
        self.tally.stops += 1
        self.expect_nothing(0)

    def expect(self, what, condition, seconds):
        try:
            harness.wait_for(condition, seconds, what)
        except harness.Failure as e:
            self.tally.problems.append(str(e))

    def expect_nothing(self, seconds):
        def is_empty():
            harness.reap_adopted()
            return not marked(self.mark)
        self.expect("end of all processes, after the daemon's", is_empty, seconds)
        if self.groups:
            self.expect("end of " + self.groups, lambda: not os.path.exists(self.groups), seconds)

    def expect_quiet(self):
        daemon, gateway = self.daemon, self.daemon.find_gateway()
        self.expect("end of the servers' processes", lambda: len(harness.descendants(daemon.pid)) == self.base_processes, SETTLE_SECONDS)
        if self.groups:
            self.expect("removal of their cgroups", lambda: not [e for e in os.scandir(self.groups) if e.is_dir()], 1)
        table = harness.processes()
        zombies = [p for p, (parent, state, _) in table.items() if parent == daemon.pid and state == "Z"]
        self.expect("reaping of %s" % zombies, lambda: not set(zombies) & set(harness.processes()), 1)
        self.expect("the keeper's descriptors", lambda: harness.fd_count(daemon.pid) <= self.base_fds["keeper"], SETTLE_SECONDS)
        self.expect("the gateway's descriptors", lambda: harness.fd_count(gateway) <= self.base_fds["gateway"], SETTLE_SECONDS)


def can_make_groups():
    daemon = harness.Daemon({"main": {"command": "/bin/cat"}}, {"log": {"level": "info"}})
    groups = groups_of(daemon)
    daemon.stop()
    return groups is not None


def run(new_client, child, spawns):
    seed = int(os.environ.get("SCENARIO_SEED", random.randrange(1 << 30)))
    rng, tally, lives, started = random.Random(seed), Tally(), 0, time.monotonic()
    has_groups = can_make_groups()
    while tally.spawns < spawns and not tally.problems:
        life = Life(new_client, child, rng, tally, SERVER_WITH_GROUPS if has_groups else SERVER)
        life.run(end_by_kill=lives % 2 == 0)
        lives += 1
    if tally.answers == 0:
        tally.problems.append("no call was answered")
    print("kills: %d processes started in %.1f s, %d of them killed, the gateway %d times, the keeper %d times, %d stops by TERM; "
          "%d answers, %d exchanges cut short; cgroups: %s; left: %s" % (
              tally.spawns, time.monotonic() - started, tally.children, tally.gateways, tally.keepers, tally.stops,
              tally.answers, tally.cut, "yes" if has_groups else "no", "something" if tally.problems else "nothing"), flush=True)
    return ["%s (SCENARIO_SEED=%d)" % (p, seed) for p in tally.problems]
