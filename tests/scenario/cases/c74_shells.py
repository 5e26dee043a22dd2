# SPDX-License-Identifier: Apache-2.0
"""The completions of mcpgatectl in the shells themselves. mcpgatectl(1)."""
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import Skip, case, eq, ok

SERVERS = {"main": {}, "demo": {"command": os.path.join(harness.BIN or "", "mcpgated-demo")}}
COMPLETIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../conf/completions/mcpgatectl.")
# How a shell without settings of its own is begun, in a folder that has nothing else, and how it shows the line that is typed.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             "source %(script)s; bind -x '\"\\C-xp\": printf \"\\nLINE<%%s>\\n\" \"$READLINE_LINE\"'"),
    "zsh": (["zsh", "-f", "-i"],
            "mkdir fpath; cp %(script)s fpath/_mcpgatectl; fpath=($PWD/fpath $fpath); autoload -Uz compinit; compinit -u -d dump; "
            "show() { print -r -- $'\\n'\"LINE<$BUFFER>\" }; zle -N show; bindkey '^Xp' show"),
}


class Shell:
    """A shell at a terminal, with the completion of mcpgatectl."""

    def __init__(self, t, name):
        argv, begin = SHELLS[name]
        self.folder = os.path.join(t.directory(), name)
        os.mkdir(self.folder)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(self.folder)
            os.execvpe(argv[0], argv, dict(os.environ, PATH=harness.BIN + ":" + os.environ["PATH"], TERM="vt100", PS1="$ ",
                                           COLUMNS="200", HOME=self.folder, INPUTRC="/dev/null", HISTFILE=""))
        self.got = b""
        self.send(begin % {"script": os.path.abspath(COMPLETIONS + name)} + "; echo rea''dy\r")
        self.wait(rb"[\r\n]ready")

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self, pattern):
        end = time.monotonic() + 5 * harness.SLOW
        while True:
            found = re.search(pattern, self.got)
            if found:
                self.got = self.got[found.end():]
                return found
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("no %r in %r" % (pattern, self.got))
            self.got += os.read(self.fd, 65536)

    def complete(self, line):
        """What becomes of the line with the key for completion, which is pressed twice."""
        self.send(line + "\t\t\x18p")
        text = self.wait(rb"LINE<(.*?)>").group(1).decode()
        self.send("\x15")
        return text

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def fish_offers(t, line):
    done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", os.path.abspath(COMPLETIONS + "fish"), line],
                          capture_output=True, text=True, timeout=20 * harness.SLOW, cwd=t.directory(),
                          env=dict(os.environ, PATH=harness.BIN + ":" + os.environ["PATH"], HOME=t.directory()))
    eq((done.returncode, done.stderr), (0, ""))
    return [text.split("\t")[0] for text in done.stdout.splitlines()]


NO_NAMES = ["$(touch x)", "`touch x`", "a;touch x", "a b", "a\ntouch x", "\x1b]0;x\x07", "a|x", "*", "~root", "'", "\"", "--socket=/x", "\u202ex", "a\tb"]


def hostile_daemon(t):
    """A socket at which names are told that no server can have."""
    path = os.path.join(t.directory(), "hostile.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    listener.settimeout(30 * harness.SLOW)
    body = json.dumps({"servers": [{"name": name} for name in NO_NAMES]}).encode()

    def serve():
        while True:
            try:
                conn = listener.accept()[0]
            except OSError:
                return
            conn.recv(65536)
            conn.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            conn.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener, path


@case(own=True, deadline=40)
def real_shells_complete(t):
    """product §2: bash and zsh at a terminal, and fish: what is typed is completed; nothing of a hostile daemon gets into the line, or is run."""
    missing = [name for name in list(SHELLS) + ["fish"] if shutil.which(name) is None]
    if missing:
        raise Skip("there is no " + ", ".join(missing))
    listener, path = hostile_daemon(t)
    for name in SHELLS:
        shell = Shell(t, name)
        eq(shell.complete("mcpgatectl statu"), "mcpgatectl status ", name)
        eq(shell.complete("mcpgatectl deny re"), "mcpgatectl deny remove ", name)
        eq(shell.complete("mcpgatectl help relo"), "mcpgatectl help reload ", name)
        for form in ("--format op", "--format=op"):
            eq(shell.complete("mcpgatectl tools x " + form), "mcpgatectl tools x %senai " % form, name)
        line = "mcpgatectl --socket %s logs " % t.daemon.admin
        eq(shell.complete(line + "de"), line + "demo ", name)
        line = "mcpgatectl --socket %s logs " % path
        eq(shell.complete(line + "a"), line + "a", name)
        eq(shell.complete(line + "\\$"), line + "\\$", name)
        ok(not [f for f in os.listdir(shell.folder) if "x" in f], "run", os.listdir(shell.folder))
        shell.close()
    eq(fish_offers(t, "mcpgatectl statu"), ["status"])
    eq(fish_offers(t, "mcpgatectl deny "), ["add", "list", "remove"])
    eq(fish_offers(t, "mcpgatectl help relo"), ["reload"])
    eq((fish_offers(t, "mcpgatectl --format op"), fish_offers(t, "mcpgatectl --format=op")), (["openai"], ["--format=openai"]))
    eq(fish_offers(t, "mcpgatectl --socket %s logs de" % t.daemon.admin), ["demo"])
    eq([o for o in fish_offers(t, "mcpgatectl --socket %s logs " % path) if o in NO_NAMES or "touch" in o], [])
    listener.close()


@case(daemon=False, deadline=20)
def a_key_does_not_wait_for_ever(t):
    """product §2: where nobody answers at the socket, nothing is offered, after two seconds."""
    path = os.path.join(t.directory(), "silent.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    began = time.monotonic()
    done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), "complete", "-s", path, "logs", ""], capture_output=True,
                          timeout=15 * harness.SLOW)
    eq((done.returncode, done.stdout, done.stderr), (0, b"", b""))
    ok(1.5 < time.monotonic() - began < 4 * harness.SLOW, "seconds", time.monotonic() - began)
    listener.close()
