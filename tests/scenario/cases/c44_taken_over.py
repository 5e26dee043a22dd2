# SPDX-License-Identifier: Apache-2.0
"""A gateway that was taken over: tests/taken-over.c is linked into its program and tries what there is to try."""
import os
import pwd
import re
import shutil
import signal
import subprocess

import harness
from harness import Skip, case, eq, ok, wait_for
from cases.c42_confine import public_directory

# What it must be able to do, and gets through in the confined process as well.
NEEDED = ["wait_a_little", "signal_itself", "read_own_limits", "make_pipe", "more_memory", "ask_keeper"]
ENOUGH = 50
PROBES = re.compile(r"probe (\w+) (begins|\d+)")
FILES = "file", "removed", "renamed"


def place(t, *programs):
    """A directory that every user may write, with the program that was taken over in place of the gateway's."""
    folder = os.path.join(harness.BIN, "tests", "taken-over")
    if not os.path.exists(os.path.join(folder, "control")):
        raise Skip("there is no tests/taken-over beside the programs")
    base = public_directory(t, "mcpgated")
    for name in ("mcpgated-gateway", "control"):
        shutil.copy(os.path.join(folder, name), base)
    for name in FILES:
        with open(os.path.join(base, name), "w") as f:
            f.write("content")
        os.chmod(f.name, 0o666)
    os.chmod(base, 0o777)
    return base


def told(lines):
    """{probe: its result, or None if the process did not come to tell it}"""
    found = {}
    for line in lines:
        m = PROBES.search(line)
        if m:
            found[m.group(1)] = None if m.group(2) == "begins" else int(m.group(2))
    return found


def taken_over(t, user=None, config=None):
    base = place(t)
    control = told(subprocess.run([os.path.join(base, "control")], capture_output=True, text=True, timeout=20 * harness.SLOW).stdout.splitlines())
    got = [name for name, code in control.items() if code == 0]
    ok(len(got) >= ENOUGH, "too few probes get through unconfined:", ", ".join(got))
    for name in FILES:
        with open(os.path.join(base, name), "w") as f:
            f.write("content")
        os.chmod(f.name, 0o666)
    with open(os.path.join(base, "probes"), "wb") as f:
        f.write(bytes(4096))
    os.chmod(f.name, 0o666)
    become = "" if user is None else "setpriv --reuid %d --regid %d --clear-groups " % (user.pw_uid, user.pw_gid)
    script = 'cp "$3" "$0/config" && chmod 600 "$0/config" && %s cd / && exec %s"$0/mcpgated" -c "$0/config"' % (
        "" if user is None else 'chown %d "$0/config" &&' % user.pw_uid, become)
    lines = []
    for _ in range(len(control)):
        daemon = t.start({"main": {}}, {"admin": {"address": "off"}, **(config or {})}, prefix=["sh", "-c", script, base], wait=False)
        # Six gateways end one after the other; three of them come without much of a pause.
        wait_for(lambda d=daemon: len([x for x in d.lines if " gateway_forbidden " in x]) >= 3
                 or any("call=setitimer " in x or "probe set_timer 0" in x for x in d.lines) or d.process.poll() is not None, 10, "the probes")
        daemon.forgiven = True
        daemon.term()
        daemon.process.wait(15 * harness.SLOW)
        daemon.reader.join(5)
        lines += daemon.lines
        if any("probe set_timer" in x for x in lines):
            break
    results = told(lines)
    eq(sorted(set(control) - set(results)), [], "probes that were not tried")
    eq(sorted(name for name in NEEDED if results[name] != 0), [], "what it must be able to do")
    eq(sorted(name for name, code in results.items() if code is not None and name not in NEEDED), [], "what did not end the process")
    eq(len([x for x in lines if " ipc_bad_request " in x]), 2, "messages to the keeper that make no sense")
    eq(len([x for x in lines if " gateway_forbidden process=gateway call=" in x]), len([name for name, code in results.items() if code is None]), "calls that are named")
    for name in FILES:
        with open(os.path.join(base, name)) as f:
            eq(f.read(), "content", name)


@case(daemon=False, deadline=120)
def as_root(t):
    """SEC-61 SEC-60 DEF-24: a gateway that was taken over gets nothing, and each try is told by name."""
    if os.getuid() != 0:
        raise Skip("not root")
    taken_over(t)


@case(daemon=False, deadline=120)
def as_an_ordinary_user(t):
    """SEC-61: likewise where the daemon has no rights of its own to begin with."""
    if os.getuid() == 0 and not shutil.which("setpriv"):
        raise Skip("there is no setpriv to start the daemon as another user")
    taken_over(t, pwd.getpwnam("nobody") if os.getuid() == 0 else None)


@case(daemon=False, deadline=60)
def servers_that_have_gone(t):
    """SEC-61: what it asks of a server that a reload has replaced is refused, and the keeper lives on."""
    base = place(t)
    script = 'cp "$3" "$0/config" && chmod 600 "$0/config" && cd / && exec "$0/mcpgated" -c "$0/config"'
    daemon = t.start({"main": {}}, {"admin": {"address": "off"}}, prefix=["sh", "-c", script, base])
    config = os.path.join(base, "config")
    with open(config) as f:
        text = f.read()
    with open(config, "w") as f:
        f.write(re.sub(r"(?m)^defaults:\n( +)", r"defaults:\n\1env: {ANOTHER: x}\n\1", text))
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("server_reloaded", "server=main", "is=changed")
    daemon.wait_log("reload_used", "process=keeper")
    with open(os.path.join(base, "probes"), "wb") as f:
        f.write(bytes(4096))
    harness.kill(daemon.find_gateway())
    daemon.forgiven = True
    daemon.process.wait(30 * harness.SLOW)  # gateways end of what they try, one too many of them
    daemon.reader.join(5)
    eq(told(daemon.lines)["ask_keeper"], 0)
    eq(len(daemon.log("ipc_bad_request")), 3, "messages to the keeper that make no sense")
    eq(len(daemon.log("keeper_stop")), 1, "ends of the keeper")


@case(daemon=False, deadline=120)
def with_oauth(t):
    """SEC-61 SEC-10: likewise where issuers are asked, which another process does."""
    taken_over(t, None, {"public_url": "https://mcp.example",
                         "auth": {"mode": "oauth", "issuers": [{"issuer": "https://id.example"}]}})
