# SPDX-License-Identifier: Apache-2.0
"""What docs/guides/container.md says of process 1: an ordinary user without capabilities, its orphans, its end by TERM."""
import os
import signal

from support import demand, until

WAIT_S = 10
# As an engine would start it; unshare itself is the engine, outside.
CONTAINER = "unshare --user --map-user=10001 --map-group=10001 --pid --fork --kill-child --mount --mount-proc "
SERVER = "#!/bin/sh\nsleep 300 &\nsetsid sleep 301 &\nexec mcpgated-demo\n"


def status_of(pid):
    """Empty if it has just ended."""
    try:
        with open("/proc/%d/status" % pid) as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def commands_below(pid):
    """Of all that descends from it: orphans are its children, since it is process 1 there."""
    found = []
    for child in children(pid):
        try:
            with open("/proc/%d/cmdline" % child) as file:
                found.append(file.read().replace("\0", " ").strip())
            found += commands_below(child)
        except OSError:
            pass  # it has just ended
    return found


def process_1(session):
    session.write_file("server.sh", SERVER)
    session.write_file("container.yaml", "servers: {files: {command: %s/server.sh}}\n" % session.home)
    session.run_in_background(CONTAINER + "mcpgated -c container.yaml", "ready: files")
    pid, output = session.background.pop()
    (daemon,) = children(pid)
    status = status_of(daemon)
    demand(status["NSpid"].split()[-1] == "1", "it is process", status["NSpid"])
    demand(int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, "it has capabilities", status["CapEff"])
    demand("hi" in session.sh("mcpgatectl call files echo '{\"text\": \"hi\"}'"), "a call")
    until(lambda: "sleep 300" not in commands_below(daemon) and "mcpgated-demo" not in commands_below(daemon), WAIT_S,
          "what the server has left goes on:", commands_below(daemon))
    until(lambda: not [c for c in children(daemon) if status_of(c).get("State", "").startswith("Z")], WAIT_S, "it leaves zombies")
    os.kill(daemon, signal.SIGTERM)
    session.write("wait %d; echo $? >%s.status\n" % (pid, output))
    session.wait(lambda: os.path.exists(output + ".status") and open(output + ".status").read(), output, "it does not end")
    with open(output + ".status") as file:
        demand(file.read().strip() == "0", "its status")
    demand(not os.path.exists("/proc/%d" % daemon), "it is still there")
