# SPDX-License-Identifier: Apache-2.0
"""What the tests of the pages' examples share: checks that count, the blocks of a page, and a gateway that runs one."""
import os
import re
import signal
import subprocess
import threading
import time

START_S = 60
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
counted = {"passed": 0, "failed": 0, "skipped": 0}
lock = threading.Lock()


def check(name, what):
    """Runs it: an AssertionError, or any other, is what has failed. Any thread may."""
    try:
        what()
        why = None
    except Exception as err:  # of whatever kind, it is one failed check
        why = "%s: %s" % (type(err).__name__, err)
    with lock:
        counted["failed" if why else "passed"] += 1
        if why:
            print("FAIL  %s: %s" % (name, why), flush=True)


def skip(name, why):
    with lock:
        counted["skipped"] += 1
        print("SKIP  %s: %s" % (name, why), flush=True)


def finish():
    """Prints the line that counts; the exit status."""
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counted)
    return counted["failed"] > 0


def demand(condition, *why):
    if not condition:
        raise AssertionError(" ".join(map(str, why)))


def until(condition, seconds, *why):
    """Waits for it: what it returns once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        demand(time.monotonic() < deadline, *why)
        time.sleep(0.02)


def example(page, name, replacements):
    """The block of docs/`page` that is marked with `name`, as it stands but for what stands for something else."""
    with open(os.path.join(DOCS, page)) as file:
        text = re.search(r"<!-- example: %s -->\n```\w+\n(.*?)```" % re.escape(name), file.read(), re.S).group(1)
    for old, new in replacements:
        text = text.replace(old, new)
    return text


class Gateway:
    def __init__(self, program, configuration, folder):
        path = os.path.join(folder, "mcpgated.yaml")
        with open(path, "w") as file:
            file.write(configuration)
        os.chmod(path, 0o600)
        self.log = open(os.path.join(folder, "log"), "w+")
        self.process = subprocess.Popen([program, "-c", path], stdout=self.log, stderr=subprocess.STDOUT)
        until(lambda: "ready: " in self.text() or self.process.poll() is not None, START_S, "the gateway does not get ready")
        found = re.search(r"ready: .* at (http://[^/\s]+)", self.text())
        demand(self.process.poll() is None, "not ready:", self.text())
        self.base = found and found.group(1)

    def text(self):
        with open(self.log.name) as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.log.close()
        return status
