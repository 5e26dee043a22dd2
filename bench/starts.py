"""
What an operator waits for: a configuration of many servers is checked, and a gateway that was killed is back.

    python3 starts.py [--mcpgated PROGRAM] [--rounds N] [--json FILE]
"""
import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SERVERS = (1, 300, 3000)
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}})
LONGEST = 10  # seconds


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write(folder, port, count):
    path = os.path.join(folder, "%d.yaml" % count)
    with open(path, "w") as f:
        f.write("listen: [{address: 127.0.0.1:%d}]\nlog: {level: error}\nservers:\n" % port)
        for n in range(count):
            f.write("  s%d: {command: %s, tools: {allow: [echo, 'read_*']}}\n" % (n, os.path.join(HERE, "echo-server")))
    return path


def check_ms(program, path, rounds):
    """How long `mcpgated -t` takes."""
    times = []
    for _ in range(rounds):
        started = time.monotonic()
        subprocess.run([program, "-t", "-c", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append((time.monotonic() - started) * 1000)
    return statistics.median(times)


def begins_session(port):
    """Whether a session, which starts a server's process, begins."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    try:
        conn.request("POST", "/s0/mcp", INITIALIZE, HEADERS)
        return conn.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        conn.close()


def wait_for_session(port):
    end = time.monotonic() + LONGEST
    while not begins_session(port):
        if time.monotonic() > end:
            raise SystemExit("no session within %d s" % LONGEST)
        time.sleep(0.0005)


def find_gateway(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in f.read().split():
            with open("/proc/%s/cmdline" % child, "rb") as g:
                if os.path.basename(g.read().split(b"\0")[0]) == b"mcpgated-gateway":
                    return int(child)
    raise SystemExit("there is no gateway")


def back_once_ms(program, path, port):
    daemon = subprocess.Popen([program, "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_session(port)
        os.kill(find_gateway(daemon.pid), signal.SIGKILL)
        started = time.monotonic()
        wait_for_session(port)
        return (time.monotonic() - started) * 1000
    finally:
        daemon.terminate()
        daemon.wait(LONGEST)


def back_ms(program, path, port, rounds):
    """From kill -9 of the gateway to a session, its server's process included; a daemon for each time."""
    return statistics.median(back_once_ms(program, path, port) for _ in range(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mcpgated", default=os.environ.get("BENCH_MCPGATED", os.path.join(HERE, "..", "mcpgated")))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        checks = {n: check_ms(args.mcpgated, write(folder, port, n), args.rounds) for n in SERVERS}
        back = back_ms(args.mcpgated, write(folder, port, 1), port, args.rounds)
    print("configuration checked (mcpgated -t): " + ", ".join("%d servers %.0f ms" % each for each in checks.items()))
    print("kill -9 of the gateway to a session with a server: %.1f ms" % back)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"check_ms": checks, "back_ms": back}, f)


main()
