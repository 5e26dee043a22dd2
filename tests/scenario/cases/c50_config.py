# SPDX-License-Identifier: Apache-2.0
"""Command line and configuration: what is accepted, what is refused and how. mcpgated(1), mcpgated.yaml(5)."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile

import harness
import mcp
import wire
from c42_confine import need_landlock
from harness import case, child_argv, eq, ok, to_yaml

SERVERS = {"main": {}}
GOOD = "servers:\n  main:\n    command: /bin/cat\n"


def program(*args, env=None, cwd=None, timeout=8):
    """Runs mcpgated to its end."""
    environ = dict(os.environ, **(env or {}))
    return subprocess.run([os.path.join(harness.BIN, "mcpgated")] + list(args), capture_output=True, text=True,
                          timeout=timeout * harness.SLOW, env=environ, cwd=cwd, stdin=subprocess.DEVNULL)


class Files:
    """A directory with one configuration file in it."""

    def __init__(self, text=GOOD, name="mcpgated.yaml"):
        self.dir = tempfile.TemporaryDirectory(prefix="mcpgated-")
        self.path = self.write(text, name)

    def write(self, text, name):
        path = os.path.join(self.dir.name, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path


def refused(text, *words, line=None):
    """-t lists the problem with its place; a start fails with 2."""
    files = Files(text)
    done = program("-t", "-c", files.path)
    output = done.stdout + done.stderr
    eq(done.returncode, 1, "exit code of -t: " + output)
    ok(re.search(re.escape(os.path.basename(files.path)) + r":\d+:\d+: ", output), "no FILE:LINE:COLUMN in", output)
    if line:
        ok("%s:%d:" % (os.path.basename(files.path), line) in output, "line %d in" % line, output)
    for word in words:
        ok(word in output, "no %r in" % word, output)
    return output


@case(daemon=False)
def version_and_help(t):
    """product §2: --version and --help print to stdout and exit 0; the version names the commit."""
    done = program("--version")
    eq(done.returncode, 0)
    commit = subprocess.run(["git", "-C", os.path.dirname(__file__), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    ok(re.fullmatch(r"mcpgated \d+\.\d+\.\d+(\+[0-9a-f]{12}(-dirty)?)?\n", done.stdout), "version", done.stdout)
    ok("+" in done.stdout or commit.returncode != 0, "the commit", done.stdout)
    done = program("--help")
    eq(done.returncode, 0)
    for word in ("--listen", "--import", "--print-config", "-c"):
        ok(word in done.stdout, "help lacks " + word, done.stdout)


@case(daemon=False)
def usage_errors_are_2(t):
    """product §2: wrong usage exits 2 with a line on stderr, nothing on stdout."""
    for args in (["--no-such-option"], ["-c"], ["--listen"], ["surplus"], ["-c", "/nonexistent/file.yaml"],
                 ["--listen", "nowhere", "--", "/bin/cat"], ["--listen", "127.0.0.1:99999", "--", "/bin/cat"], ["--"],
                 ["--import", "/nonexistent.json"], ["-c", "/etc/hostname", "--", "/bin/cat"]):
        done = program(*args)
        eq(done.returncode, 2, args)
        ok(done.stderr.strip(), "nothing on stderr", args)
        eq(done.stdout, "", args)
    ok("command after -- is missing" in program("--").stderr, "what is wrong with an empty command")
    many = program(*["--listen", "127.0.0.1:0"] * 9, "-t", "--", "cat")
    eq((many.returncode, "--listen may be given at most 8 times" in many.stderr), (2, True), many.stderr)
    eq(program("--listen", "127.0.0.1:0", "--listen", "localhost:0", "-t", "--", "cat").returncode, 0, "--listen twice")
    for option in (["--plaintext"], ["--tls", "a,b"]):
        done = program(*option, "-t", "-c", "/etc/hostname")
        eq((done.returncode, "in a configuration file use listen" in done.stderr), (2, True), done.stderr)


@case(daemon=False)
def check_of_a_good_file(t):
    """product §2: -t of a good file exits 0 and starts nothing."""
    files = Files("listen:\n  - address: 127.0.0.1:0\nservers:\n  main:\n    command: /bin/sh\n    args: [-c, \"touch %s/ran\"]\n" % tempfile.gettempdir())
    done = program("-t", "-c", files.path)
    eq(done.returncode, 0, done.stderr)
    ok(not os.path.exists(tempfile.gettempdir() + "/ran"), "the command has run")


@case(daemon=False)
def missing_commands_are_told(t):
    """product §2: a command that is not there, looked for as its server would, is a warning: it may come later; alone on the command line it is refused."""
    rows = {"one": "command: nonexistent-command", "line": "command: /bin/cat -u", "gone": "command: /nonexistent/x",
            "below": "command: ./nonexistent, cwd: /tmp", "off": "command: nonexistent-too, enabled: false", "text": "command: /etc/passwd",
            "own": "command: mine, env: {PATH: '/nonexistent:/etc'}", "good": "command: cat", "home": "command: ~/x", "inside": "command: bin/cat, cwd: /",
            "args": "command: cat, args: ['~/x', '~x', a$HOME/b]", "args2": "command: cat, args: [$HOME/b]", "shell": "command: /bin/sh, args: [-c, ~/x]"}
    files = Files("servers:\n" + "".join("  %s: {%s}\n" % row for row in rows.items()))
    done = program("-t", "-c", files.path, env={"PATH": "/usr/bin:/bin"})
    eq(done.returncode, 0, done.stderr)
    # Of root's servers -t says one thing more: c42_confine.root_is_told.
    lines = [line for line in done.stderr.splitlines() if " runs as root, " not in line]
    warnings = len(done.stderr.splitlines()) - 1
    at = "mcpgated: warning: " + files.path
    eq(lines, [
        at + ":2:18: servers.one.command: 'nonexistent-command' was not found in PATH (/usr/bin:/bin)",
        at + ":3:19: servers.line.command: '/bin/cat -u' does not exist; the command is a single program: put its arguments under args",
        at + ":4:19: servers.gone.command: '/nonexistent/x' does not exist",
        at + ":5:20: servers.below.command: './nonexistent' does not exist",
        at + ":7:19: servers.text.command: '/etc/passwd' is not an executable program",
        at + ":8:18: servers.own.command: 'mine' was not found in PATH (/nonexistent:/etc)",
        at + ":10:19: servers.home.command: '~/x' does not exist; ~ is not expanded here, write the path in full",
        at + ":12:30: servers.args.args: '~/x' is passed on as it is: no shell expands it; write the path in full",
        at + ":13:31: servers.args2.args: '$HOME/b' is passed on as it is: no shell expands it; write the path in full",
        "mcpgated: the configuration is fine, with %d warnings" % warnings], "what is said")
    long = ":".join("/nonexistent/%d" % i for i in range(100))
    done = program("-t", "-c", Files(GOOD.replace("/bin/cat", "gone")).path, env={"PATH": long})
    ok(all(len(line) < 300 for line in done.stderr.splitlines()), "a long PATH is cut off", done.stderr)
    done = program("-t", "--", "/bin/cat -u")
    ok("leave out the quotes" in done.stderr and "args" not in done.stderr.replace("arguments", ""), "a quoted command line", done.stderr)
    files = Files('{"mcpServers": {"a": {"command": "/bin/cat -u"}}}', "a.json")
    done = program("-t", "--import", files.path)
    ok("put its arguments under args" in done.stderr and "quotes" not in done.stderr, "a client's file", done.stderr)
    for args, status in ((["-t", "--", "surely-no-such-command"], 1), (["--listen", "127.0.0.1:0", "--", "/nonexistent/x"], 2)):
        done = program(*args)
        eq(done.returncode, status, args)
        ok(".command: " in done.stderr, "what is missing", done.stderr)


@case(daemon=False)
def where_the_records_go_is_tried(t):
    """SEC-63 product §2: -t refuses a file of the log or the audit that a start could not open; it makes none. A socket may come later."""
    path = os.path.join(t.directory(), "audit")
    os.symlink(path, path + ".link")
    rows = [(path, None), ("/dev/null", None), (path + "/below", "its directory does not exist"), ("/dev/null/below", "it cannot be opened: Not a directory"),
            (os.path.dirname(path), "it cannot be opened: Is a directory")]
    if os.geteuid() != 0:
        rows.append(("/proc/none", "cannot create a file in its directory: Permission denied"))
    for key, to, why in [(key, *row) for key in ("audit.to", "log.target") for row in rows] + [
            ("audit.to", path + ".link", "it cannot be opened: Too many levels of symbolic links"),
            ("audit.to", "unix:" + path, "nothing is listening there now: No such file or directory")]:
        files = Files(GOOD + "%s: {%s: '%s'}\n" % (*key.split("."), to))
        done = program("-t", "-c", files.path)
        told = [line for line in done.stderr.splitlines() if key in line]
        kind = "warning: " if to.startswith("unix:") else ""
        eq(told, ["mcpgated: %s%s:4:%d: %s: %s: %s" % (kind, files.path, len(key) + 5, key, to, why)] if why else [], done.stderr)
        eq(done.returncode, 1 if why and not kind else 0, done.stderr)
        ok(not os.path.exists(path), "it was made")
    # What is no place at all is not tried.
    for to in ("x", "unix:/" + "x" * 200):
        refused(GOOD + "audit: {to: '%s'}\n" % to, "audit.to: must be")


@case(daemon=False)
def a_start_names_the_place_of_what_it_cannot_open(t):
    """product §2: file, line and key of what cannot be opened at the start, or by a reload."""
    gone = "/nonexistent/x"
    for text, place, words in (("log: {target: %s}\n" % gone, "4: log.target: ", "cannot open the log file %s: No such file or directory" % gone),
                               ("audit: {to: %s}\n" % gone, "4: audit.to: ", "cannot open the audit file %s: No such file or directory" % gone),
                               ("listen:\n - address: 127.0.0.1:0\n - {address: 'unix:%s'}\n" % gone, "6: listen[1].address: ", "cannot listen on unix:%s: No such" % gone),
                               ("listen:\n - address: 127.0.0.1:0\nadmin: {metrics: 'unix:%s'}\n" % gone, "6: admin.metrics: ", "cannot listen on unix:%s: No such" % gone)):
        files = Files(GOOD + text)
        done = program("-c", files.path)
        eq(done.returncode, 1, done.stderr)
        ok("mcpgated: %s:%s%s" % (files.path, place, words) in done.stderr, place, done.stderr)
        if "unix:" in text:  # a service manager may make the directory
            done = program("-t", "-c", files.path)
            eq(done.returncode, 0, done.stderr)
            ok(re.search(r"warning: %s:6:\d+: %scannot listen on unix:%s now: cannot create a socket in its directory: No such" % (files.path, re.escape(place[3:]), gone),
                         done.stderr), done.stderr)


@case(daemon=False)
def every_address_is_tried(t):
    """product §2: -t names the place of each address that it could not listen on: an error, or a warning for a socket that may come later."""
    for key, column in (("address", 18), ("metrics", 18), ("page", 15)):
        for address, kind in (("192.0.2.1:1", ""), ("unix:/nonexistent/x", "warning: ")):
            files = Files(GOOD + "admin: {%s: '%s'}\n" % (key, address))
            done = program("-t", "-c", files.path)
            ok("mcpgated: %s%s:4:%d: admin.%s: cannot listen on %s now: " % (kind, files.path, column, key, address) in done.stderr, key, done.stderr)


@case(daemon=False)
def what_a_server_could_replace_is_refused(t):
    """SEC-62: each file or socket of the daemon where a server may write, with its place, also while that server is there no more."""
    need_landlock()
    home = t.directory()
    box = "servers: {a: {command: /bin/cat, sandbox: {mode: landlock, write: ['%s']}}}\n" % home
    texts = ("listen: [{address: 'unix:%s/l'}]" % home, "admin: {address: 'unix:%s/a'}" % home, "admin: {metrics: 'unix:%s/m'}" % home,
             "log: {target: '%s/log'}" % home, "audit: {to: '%s/audit'}" % home)
    places = ("2:20: listen[0].address", "2:18: admin.address", "2:18: admin.metrics", "2:15: log.target", "2:13: audit.to")
    for text, place in zip(texts, places):
        files = Files(box + text + "\n")
        done = program("-t", "-c", files.path)
        told = [line for line in done.stderr.splitlines() if "server 'a' may write to the directory" in line]
        eq([line.split(home)[0] for line in told], ["mcpgated: %s:%s: " % (files.path, place)], done.stderr)
        eq(done.returncode, 1, done.stderr)
    d = t.start({"a": {"command": "/bin/cat", "sandbox": {"mode": "landlock", "write": [home]}}, "b": {"command": "/bin/cat"}})
    d.servers = {"b": {"command": "/bin/cat"}}
    config = harness.merged(d.configuration(), {"log": {"level": "debug", "target": home + "/log"}})
    with open(d.file, "w") as f:
        f.write(harness.to_yaml(config) + "\n")
    d.process.send_signal(signal.SIGHUP)
    d.wait_log("reload_refused", "may write to the directory")
    t.expect_error_log("reload_refused")


@case(daemon=False)
def bad_file_is_2_at_start(t):
    """product §2: a start with a bad configuration exits 2 and lists the problems."""
    files = Files("servers:\n  main:\n    comand: /bin/cat\n")
    done = program("-c", files.path)
    eq(done.returncode, 2, done.stderr)
    ok("comand" in done.stderr and ":3:" in done.stderr, "message", done.stderr)


@case(daemon=False)
def unknown_keys_name_the_nearest(t):
    """product §4: unknown keys are errors that name file, line, column and the nearest valid key."""
    refused("servers:\n  main:\n    comand: /bin/cat\n", "comand", "command", line=3)
    refused(GOOD + "limit:\n  sessions: 5\n", "limit", "limits", line=4)
    refused(GOOD + "log:\n  levle: info\n", "levle", "level", line=5)
    refused(GOOD + "    isolaton: session\n", "isolaton", line=4)


@case(daemon=False)
def every_problem_is_reported(t):
    """product §2: all problems at once, each on its line."""
    output = refused("log: {level: loud}\nlimits: {sessions: -1}\nservers:\n  main:\n    command: 5x\n    args: text\n    nonsense: 1\n",
                     "loud", "sessions", "nonsense")
    places = set(re.findall(r"yaml:(\d+):\d+: ", output))
    ok({"1", "2", "7"} <= places, "lines with problems", places, output)


@case(daemon=False)
def problems_of_every_stage(t):
    """product §2: what the rules find, what is in files, and what the machine lacks, in one run, each with its place."""
    output = refused("""listen:
  - address: 127.0.0.1:0
    tls: {certificate: /nonexistent.crt, key: /nonexistent.key}
defaults:
  cwd: /nonexistent/usual
servers:
  one:
    command: nonexistent-command
    comand: typo
  two:
    command: cat
    cwd: ~/two
    pool: {min: 5, max: 4}
  three:
    command: cat
    user: nobody-of-this-name
    resources: {open_files: 1048576}
    sandbox: {mode: landlock, read: [/nonexistent/read]}
""")
    expected = [("9:5", "unknown key 'comand'"), ("13:17", "servers.two.pool.min: "), ("3:24", "tls.certificate: /nonexistent.crt: "),
                ("5:8", "servers.one.cwd: /nonexistent/usual: "), ("12:10", "servers.two.cwd: ~/two: "), ("12:10", "~ is not expanded"),
                ("16:11", "servers.three.user: "), ("18:37", "servers.three.sandbox.read: /nonexistent/read: "),
                ("8:14", "servers.one.command: 'nonexistent-command'")]
    for place, words in expected:
        ok(any(":%s: " % place in line and words in line for line in output.splitlines()), "%s at %s in" % (words, place), output)


CAT = "servers:\n  a: {command: cat}\n"
# What people write, and every line that -t says of it: its place and its words.
MISTAKES = [
    ("servers:\n  a:\n\tcommand: x\n",
     ["3:1: not valid YAML: found character that cannot start any token, while scanning for the next token (a tab: indent with spaces)"]),
    ("servers:\n  a: {command: cat\n",
     ["3:1: not valid YAML: did not find expected ',' or '}', while parsing a flow mapping (is there a '{' that is not closed?)"]),
    ("servers:\n  a:\n    command: cat\n  a:\n    command: cat\n",
     ["4:3: the key 'a' occurs twice, first in line 2"]),
    ("mcpServers:\n  a: {command: cat}\n",
     ["1:1: unknown key 'mcpServers': this is the file of a client; to serve what it has, use --import"]),
    ("server:\n  a: {command: cat}\n",
     ["1:1: unknown key 'server'; did you mean 'servers'?"]),
    ("servers:\n  - {name: a, command: cat}\n",
     ["2:3: servers: must be a map of names and servers"]),
    ("servers:\n  a: cat\n",
     ["2:6: servers.a: must be a map of keys and values"]),
    ("servers:\n  a:\n    cmd: cat\n",
     ["3:5: unknown key 'cmd'; did you mean 'command'?",
      "3:5: servers.a: the key 'command' or 'url' is missing"]),
    ("servers:\n  a: {}\n",
     ["2:6: servers.a: the key 'command' or 'url' is missing"]),
    ("servers:\n  a:\n    command: [cat, -u]\n",
     ["3:14: servers.a.command: must be a text, not a list"]),
    ("servers:\n  a: {command: cat, args: -u}\n",
     ["2:27: servers.a.args: must be a list, like [a, b]"]),
    ("servers:\n  a: {command: cat, args: [-y, [x]]}\n",
     ["2:32: servers.a.args[1]: must be a text, not a list"]),
    ("servers:\n  a: {command: cat, env: [A=b]}\n",
     ["2:26: servers.a.env: must be a map, like {NAME: value}"]),
    ("servers:\n  a: {command: cat, env: {A: {enviroment: B}}}\n",
     ["2:30: servers.a.env.A: must be a text, {file: PATH}, {env: NAME} or {credential: NAME}"]),
    ("servers:\n  a: {command: cat, env: {A: {env: C50_SURELY_NOT_SET}}}\n",
     ["2:36: servers.a.env.A.env: the variable C50_SURELY_NOT_SET is not set in the daemon's environment"]),
    ("servers:\n  a: {command: cat, env: {A: {file: /nonexistent/token}}}\n",
     ["2:37: servers.a.env.A.file: the file /nonexistent/token cannot be opened: No such file or directory"]),
    ("servers:\n  a: {command: cat, env: {A: '${GITHUB_TOKEN}'}}\n",
     ["2:30: servers.a.env.A: ${GITHUB_TOKEN} is not expanded; to use a variable of the daemon, write {env: GITHUB_TOKEN}; to use a file, {file: PATH}"]),
    ("servers:\n  a: {command: cat, args: ['--key=${KEY}']}\n",
     ["2:28: servers.a.args[0]: ${KEY} is not expanded; pass the variable to the server, env: {KEY: {env: KEY}}, and if it must be an argument let a shell expand it: command: sh, args: [-c, 'exec COMMAND \"$KEY\"']"]),
    ("servers:\n  a: {command: cat, cwd: /nonexistent}\n",
     ["2:26: servers.a.cwd: /nonexistent: No such file or directory"]),
    ("servers:\n  a: {command: cat, cwd: ~/x}\n",
     ["2:26: servers.a.cwd: ~/x: No such file or directory; ~ is not expanded here, write the path in full"]),
    ("servers:\n  a: {command: cat, user: c50-nobody-at-all}\n",
     ["2:27: servers.a.user: there is no user 'c50-nobody-at-all'"]),
    ("servers:\n  a: {command: cat, isolation: none}\n",
     ["2:32: servers.a.isolation: must be one of session, principal, shared, not 'none'"]),
    ("servers:\n  a: {command: cat, start: {timeout: 30}}\n",
     ["2:38: servers.a.start.timeout: must be a time like 500ms, 30s, 5m, 2h or 1d, not '30'"]),
    ("servers:\n  a: {command: cat, pool: {max: many}}\n",
     ["2:33: servers.a.pool.max: must be a whole number, not 'many'"]),
    ("servers:\n  a: {command: cat, pool: {min: 9, max: 2}}\n",
     ["2:33: servers.a.pool.min: pool.min must not be more than pool.max"]),
    ("servers:\n  a: {command: cat, enabled: yes}\n",
     ["2:30: servers.a.enabled: must be true or false, not 'yes'"]),
    ("servers:\n  a: {command: cat, path: mcp}\n",
     ["2:27: servers.a.path: the path 'mcp' must begin with '/' and have only visible ASCII characters other than ? # % \" and backslash"]),
    (CAT + "  b: {command: cat, path: /a/mcp}\n",
     ["3:27: servers.b.path: the path '/a/mcp' is already used by the server 'a'"]),
    ("servers:\n  My Server: {command: cat}\n",
     ["2:3: the server name 'My Server' must have 1 to 64 lowercase letters, digits, '-' and '_', and begin with a letter or digit"]),
    ("servers:\n  a: {command: cat, umask: 0999}\n",
     ["2:28: servers.a.umask: must be up to four octal digits like \"0077\", not '0999'"]),
    ("servers:\n  a: {command: cat, redact: ['(']}\n",
     ["2:30: servers.a.redact[0]: is not a usable pattern: missing closing parenthesis, at byte 1"]),
    (CAT + "listen: 127.0.0.1:8808\n",
     ["3:9: listen: must be a list of maps, like [{address: 127.0.0.1:8808}]"]),
    (CAT + "listen:\n  - address: 8808\n",
     ["4:14: listen[0].address: must end in ':' and a port from 0 to 65535, like 127.0.0.1:8808"]),
    (CAT + "listen:\n  - address: example.com:80\n",
     ["4:14: listen[0].address: 'example.com:80' is not an address to listen on; it must be an IPv4 address, an IPv6 address in brackets, 'localhost', 'unix:PATH' or 'systemd:NAME'"]),
    (CAT + "listen:\n  - address: 127.0.0.1:0\n    tls: {certificate: x.crt, key: /nonexistent/x.key}\n",
     ["5:24: listen[0].tls.certificate: must be an absolute path, not 'x.crt'",
      "5:36: listen[0].tls.key: /nonexistent/x.key: cannot be opened: No such file or directory"]),
    (CAT + "limits: {message: 4}\n",
     ["3:19: limits.message: must be at least 1KiB, not '4'"]),
    (CAT + "limits: {message: 4MB}\n",
     ["3:19: limits.message: must be a size like 512KiB, 4MiB or 1GiB, not '4MB'"]),
    (CAT + "log: {level: verbose}\n",
     ["3:14: log.level: must be one of error, warn, info, debug, not 'verbose'"]),
    (CAT + "log: {target: mcpgated.log}\n",
     ["3:15: log.target: must be stderr, journal, or the absolute path of a file, not 'mcpgated.log'"]),
    (CAT + "auth: {mode: token}\n",
     ["3:14: auth.mode: token needs auth.tokens, like [{name: ci, sha256: HEX, expires: 2027-01-31}]"]),
    (CAT + "auth: {mode: token, tokens: [{name: a, sha256: secret}]}\n",
     ["3:48: auth.tokens[0].sha256: must be 64 hexadecimal digits, the output of: printf %s TOKEN | sha256sum"]),
    (CAT + "auth: {tokens: [{name: a, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]}\n",
     ["3:16: auth.tokens: needs 'auth.mode: token' or 'auth.mode: oauth': tokens are not checked otherwise"]),
    (CAT + "auth: {mode: bearer}\n",
     ["3:14: auth.mode: must be one of none, token, oauth, anonymous, not 'bearer'"]),
    (CAT + "origins: ['*']\n",
     ["3:11: origins[0]: must be an origin like https://app.example.com, without a path or '*', not '*'"]),
    (CAT + "admin: {metrics: 0.0.0.0:9464}\n",
     ["3:18: admin.metrics: must be an address that only this machine can reach, like 127.0.0.1:9464 or unix:PATH, not '0.0.0.0:9464'"]),
    (CAT + "trusted_proxies: [proxy.example.com]\n",
     ["3:19: trusted_proxies[0]: must be an address, a network like 10.0.0.0/8, or unix, not 'proxy.example.com'"]),
    (CAT + "roles: {dev: {allow: {b: ['*']}}}\n",
     ["3:8: roles: needs 'auth.mode: token' or 'auth.mode: oauth': roles are given to tokens",
      "3:26: roles.dev.allow.b: there is no server 'b'"]),
    (CAT + "traces:\n  otlp: {endpoint: 'https://otel.example.com/v1/traces', sample: 0.1}\n",
     ["4:66: traces.otlp.sample: must be a percentage such as 10%, not '0.1'"]),
]


@case(daemon=False, deadline=60)
def every_mistake_has_its_words(t):
    """product §4: each of many mistakes is told with line, column and what to write, once; and nothing beside it."""
    files = Files()
    ok(len(MISTAKES) >= 25, "so many are tried", len(MISTAKES))
    for text, expected in MISTAKES:
        if "user: c50" in text and os.geteuid() != 0:
            continue  # only root is asked who that is
        files.write(text, "mcpgated.yaml")
        done = program("-t", "-c", files.path)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("mcpgated: warning: ")]
        eq((done.returncode, lines), (1, ["mcpgated: %s:%s" % (files.path, line) for line in expected]), text)


@case(daemon=False)
def idle_keys_are_told(t):
    """product §4: what does nothing where it stands is a warning, and so is a token whose time is over."""
    hash = "0" * 64
    files = Files("auth: {mode: token, tokens: [{name: a, sha256: '%s', expires: 2020-01-01}]}\n" % hash +
                  GOOD + "    pool: {min: 1, sleep_after: 5m}\n  many:\n    command: cat\n    isolation: shared\n"
                  "    assume_no_server_requests: true\n    progress_while_waiting: true\n    pool: {min: 1, warm: 1, sleep_after: 5m, reclaim: never}\n")
    done = program("-t", "-c", files.path)
    eq(done.returncode, 0, done.stderr)
    told = re.findall(r"^mcpgated: warning: \S+:(\d+):\d+: (\S+): (?:has no effect|is in the past)", done.stderr, re.M)
    eq(told, [("1", "auth.tokens[0].expires"), ("5", "servers.main.pool.min"), ("9", "servers.many.assume_no_server_requests"),
              ("10", "servers.many.progress_while_waiting"), ("11", "servers.many.pool.warm"), ("11", "servers.many.pool.sleep_after"),
              ("11", "servers.many.pool.reclaim")])


@case(daemon=False)
def a_log_for_a_journal_that_is_not_there(t):
    """product §2: -t tells that no journal runs; the log goes to standard error then."""
    files = Files(GOOD + "log: {target: journal}\n")
    done = program("-t", "-c", files.path)
    told = re.findall(r"warning: \S+:4:15: log.target: (.*)", done.stderr)
    has_journal = os.path.exists("/run/systemd/journal/socket")
    eq((done.returncode, told), (0, [] if has_journal else ["journal: there is no systemd journal here; the log goes to standard error"]), done.stderr)


@case(daemon=False)
def who_is_behind_a_proxy(t):
    """SEC-69: -t tells that a proxy opens the servers to everybody, unless it is said who may call."""
    for lines, place in (("public_url: https://mcp.example\n", "public_url"), ("trusted_proxies: [127.0.0.1]\n", "trusted_proxies"),
                         ("listen: [{address: 127.0.0.1:0, proxy_protocol: true}]\n", "listen[0].proxy_protocol"),
                         ("public_url: https://mcp.example\nauth: {mode: anonymous}\n", None), ("", None)):
        files = Files(lines + GOOD)
        done = program("-t", "-c", files.path)
        told = re.findall(r"^mcpgated: warning: \S+:(\d+):\d+: (\S+): clients seem to come through a proxy", done.stderr, re.M)
        eq((done.returncode, told), (0, [("1", place)] if place else []), done.stderr)


@case(daemon=False)
def wrong_types_and_values(t):
    """product §4: wrong types and impossible values are errors."""
    for text in ("limits: {sessions: many}", "limits: {sessions: 0}", "limits: {message: 4MB}", "limits: {message: [1]}",
                 "sessions: {idle_timeout: 5}", "sessions: {idle_timeout: 1 hour}", "sessions: {idle_timeout: -1s}",
                 "streams: {keepalive: 60s}", "streams: {response: maybe}", "log: {level: 3x}", "log: {format: xml}", "log: []",
                 "listen: 127.0.0.1:1", "listen: [{address: 127.0.0.1}]", "listen: [{address: 127.0.0.1:http}]",
                 "listen: [{address: 127.0.0.1:70000}]", "auth: {mode: open}", "origins: https://a.example",
                 "hosts: {a: b}", "limits: {json_depth: 100000}", "public_url: ftp://x"):
        refused(GOOD + text + "\n", line=4)


@case(daemon=False)
def yaml_features_are_refused(t):
    """stack §7: duplicate keys, anchors, tags and merge keys are errors; so is what is no YAML."""
    for text in (GOOD + "log: {level: info}\nlog: {level: warn}\n", "servers: &a\n  main: {command: /bin/cat}\n",
                 "servers:\n  main: &a {command: /bin/cat}\n  other: *a\n", "servers: !!map\n  main: {command: /bin/cat}\n",
                 "servers:\n  main:\n    <<: {command: /bin/cat}\n", "servers: [\n", "\tservers: 1\n", "- a\n- b\n", "text\n",
                 GOOD + "---\n" + GOOD):
        refused(text)


@case(daemon=False)
def nesting_and_size_of_the_file(t):
    """stack §7: deep nesting and huge files are refused quickly."""
    refused("servers: " + "[" * 2000 + "]" * 2000 + "\n")
    files = Files("# " + "x" * (2 << 20) + "\n" + GOOD)
    done = program("-t", "-c", files.path)
    ok(done.returncode != 0, "2 MiB accepted")


@case(daemon=False)
def names_of_servers(t):
    """product §3: names that could not stand in a path are refused."""
    for name in ("a/b", "../x", "a b", "\u00e9", "A?", "..", '""'):
        refused("servers:\n  \"%s\":\n    command: /bin/cat\n" % name.replace('"', ''))


@case(daemon=False)
def file_without_servers(t):
    """product §4: nothing to serve is a warning: the first server may come with a reload."""
    for text in ("listen: [{address: 127.0.0.1:0}]\n", "servers: {}\n", ""):
        files = Files(text)
        done = program("-t", "-c", files.path)
        eq(done.returncode, 0, text)
        ok("there is no server" in done.stderr, "what is warned of", done.stderr)


@case(daemon=False)
def paths_must_differ(t):
    """product §3: two servers on one path, or a path of the daemon's own, are refused."""
    refused(GOOD + "  other:\n    command: /bin/cat\n    path: /main/mcp\n", "/main/mcp")
    refused(GOOD + "    path: /healthz\n", "/healthz")
    refused(GOOD + "    path: main/mcp\n")


@case(daemon=False)
def open_listener_is_refused(t):
    """FRONT-SEC-03 DEF-02 DEF-04: a non-loopback listener is refused with the lines to add."""
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:8808"):
        for extra in ("", "    plaintext: true\n", "auth: {mode: anonymous}\n"):
            text = "listen:\n  - address: \"%s\"\n%s%s" % (address, extra, GOOD)
            output = refused(text)
            if "plaintext" not in extra:
                ok("plaintext: true" in output, "the line to add", output)
            if "auth" not in extra:
                ok("auth: {mode: anonymous}" in output, "the line to add", output)
        done = program("--listen", address, "--", "/bin/cat")
        eq(done.returncode, 2, address)
        ok("--tls CERTIFICATE,KEY" in done.stderr and "--token-file FILE" in done.stderr and "In the configuration" not in done.stderr,
           "there is no file", done.stderr)


@case(daemon=False)
def open_listener_when_written_out(t):
    """FRONT-SEC-03 DEF-05: with both lines it starts, and serves; that others will be refused for their Host is said then, too."""
    t.start({"main": {}}, {"listen": [{"address": "0.0.0.0:0", "plaintext": True}], "auth": {"mode": "anonymous"}})
    ok(any("clients on other machines will be refused" in line for line in t.daemon.lines), "a warning", t.daemon.lines)
    port = int(re.search(r":(\d+)/", next(iter(t.daemon.endpoints.values()))).group(1))
    t.daemon.address = ("127.0.0.1", port)
    eq(t.session().echo("x"), "x")


@case(daemon=False)
def default_listener_is_loopback(t):
    """FRONT-SEC-03 DEF-01: without `listen` the address is 127.0.0.1:8808."""
    files = Files()
    done = program("--print-config", "-c", files.path)
    eq(done.returncode, 0, done.stderr)
    ok("127.0.0.1:8808" in done.stdout, "address", done.stdout)


@case(daemon=False)
def print_config_round_trip(t):
    """product §2: --print-config prints what -c reads back to the same effect."""
    files = Files("listen:\n  - address: 127.0.0.1:0\nlimits:\n  sessions: 7\n  message: 3MiB\nsessions: {idle_timeout: 90s}\n"
                  "defaults: {request_timeout: 7s}\nservers:\n  main:\n    command: /bin/cat\n    args: [\"a b\", \"c: d\", \"\u00e9\\n\", \"#x\"]\n"
                  "    env: {MODE: fast}\n    tool_timeout: {deploy: 10m}\n")
    first = program("--print-config", "-c", files.path)
    eq(first.returncode, 0, first.stderr)
    again = files.write(first.stdout, "again.yaml")
    second = program("--print-config", "-c", again)
    eq(second.returncode, 0, second.stderr + first.stdout)
    eq(second.stdout, first.stdout)
    # No default that it prints is a key that does nothing.
    told = [re.findall(r"warning: \S+?:\d+:\d+: (.*)", program("-t", "-c", path).stderr) for path in (files.path, again)]
    eq(told[1], told[0], "warnings")
    for word in ("7", "3MiB", "/bin/cat", "a b", "deploy"):
        ok(word in first.stdout, "lacks " + word, first.stdout)


@case(daemon=False)
def print_config_shows_every_default(t):
    """DEF-10 DEF-11 DEF-12 DEF-15: the effective configuration names the limits in force."""
    done = program("--print-config", "--", "/bin/cat")
    eq(done.returncode, 0, done.stderr)
    for key in ("connections", "sessions", "header_bytes", "message", "response", "json_depth", "header_timeout",
                "body_timeout", "idle_timeout", "max_age", "keepalive", "json_grace", "request_timeout", "inherit_env"):
        ok(re.search(r"^\s*(- )?%s:" % key, done.stdout, re.M), "lacks " + key, done.stdout)
    ok(re.search(r"^\s*sleep_when_gone: 2m$", done.stdout, re.M), "what sizing.md promises", done.stdout)


@case(daemon=False)
def secrets_are_masked(t):
    """DEF-24 product §2: values from files, environment and credentials print as ***."""
    files = Files()
    token = files.write("f1le-secret\n", "token")
    credentials = os.path.join(files.dir.name, "cred")
    os.mkdir(credentials)
    with open(os.path.join(credentials, "c"), "w") as f:
        f.write("cr3d-secret")
    path = files.write(GOOD + "    env:\n      A: {file: %s}\n      B: {env: FROM_ENV}\n      C: {credential: c}\n      D: plain\n" % token, "s.yaml")
    done = program("--print-config", "-c", path, env={"FROM_ENV": "3nv-secret", "CREDENTIALS_DIRECTORY": credentials})
    eq(done.returncode, 0, done.stderr)
    for secret in ("f1le-secret", "3nv-secret", "cr3d-secret"):
        ok(secret not in done.stdout + done.stderr, "secret printed", done.stdout)
    ok("***" in done.stdout, "no mask", done.stdout)


@case(daemon=False)
def secrets_reach_the_child_only(t):
    """product §4: {file:}, {env:} and {credential:} are resolved for the child's environment."""
    files = Files()
    token = files.write("f1le-secret\n", "token")
    credentials = os.path.join(files.dir.name, "cred")
    os.mkdir(credentials)
    with open(os.path.join(credentials, "c"), "w") as f:
        f.write("cr3d-secret")
    argv = child_argv({})
    text = to_yaml({"listen": [{"address": "127.0.0.1:0"}], "log": {"level": "debug"},
                    "servers": {"main": {"command": argv[0], "args": argv[1:],
                                         "env": {"A": {"file": token}, "B": {"env": "FROM_ENV"}, "C": {"credential": "c"}}}}})
    t.start({"main": {}}, text=text, env={"FROM_ENV": "3nv-secret", "CREDENTIALS_DIRECTORY": credentials})
    environ = t.session().probe()["environ"]
    for pair in ("A=f1le-secret", "B=3nv-secret", "C=cr3d-secret"):
        ok(pair in environ, "lacks " + pair, environ)
    ok("CREDENTIALS_DIRECTORY=" + credentials not in environ, "credentials directory at the child")
    eq([l for l in t.daemon.lines if "secret" in l], [], "log")
    for pid in (t.daemon.gateway,):
        with open("/proc/%d/environ" % pid, "rb") as f:
            ok(b"cr3d-secret" not in f.read(), "credential in the gateway's environment")


@case(daemon=False)
def variables_of_the_command_line(t):
    """product §2: --env NAME must be set, and goes with a command; more than there is room for are refused, not dropped."""
    done = program("--print-config", "--env", "C50_A", "--env", "C50_B=b", "--", "cat", env={"C50_A": "a"})
    ok('env: {C50_A: "***", C50_B: b}' in done.stdout, "what holds", done.stdout, done.stderr)
    done = program("-t", "--env", "C50_A", "--", "cat")
    eq(done.returncode, 1)
    ok("the variable C50_A is not set in the daemon's environment" in done.stderr, "what is missing", done.stderr)
    done = program("-t", "--env", "A=b", "-c", Files().path)
    eq((done.returncode, "require a command; in a configuration file use servers.NAME" in done.stderr), (2, True), done.stderr)
    done = program("-t", *["--env=A=1"] * 257, "--", "cat")
    eq((done.returncode, "--env may be given at most 256 times" in done.stderr), (2, True), done.stderr)


@case(daemon=False)
def missing_secret_is_an_error(t):
    """product §4: a secret that cannot be read is a configuration error with its place."""
    refused(GOOD + "    env:\n      A: {file: /nonexistent/secret}\n", "/nonexistent/secret", line=5)
    refused(GOOD + "    env:\n      A: {env: NO_SUCH_VARIABLE_HERE}\n", "NO_SUCH_VARIABLE_HERE", line=5)


@case(daemon=False)
def file_that_others_can_write(t):
    """DEF-25: a file that group or world may write is refused."""
    files = Files()
    os.chmod(files.path, 0o666)
    done = program("-t", "-c", files.path)
    ok(done.returncode != 0, "accepted", done.stdout + done.stderr)


@case(daemon=False)
def clients_of_other_machines_need_a_name(t):
    """DEF-05: of a listener at every address it is said that nobody else will be served, until a name is known."""
    files = Files("0123456789abcdef0123456789abcdef\n", "t")  # which go with it
    token = files.path
    words = "clients on other machines will be refused"
    for address in ("0.0.0.0:1", "[::]:1"):
        args = ["-t", "--listen", address, "--plaintext", "--token-file", token]
        done = program(*args, "--", "/bin/cat")
        eq((done.returncode, words in done.stderr, "--host NAME" in done.stderr), (0, True, True), done.stderr)
        ok(words not in program(*args, "--host", "mcp.example.com", "--", "/bin/cat").stderr, "with a name")
        text = "listen: [{address: '%s', plaintext: true}]\nauth: {mode: anonymous}\n%s" % (address, GOOD)
        done = program("-t", "-c", files.write(text, "a.yaml"))
        eq((done.returncode, words in done.stderr, "'hosts'" in done.stderr), (0, True, True), done.stderr)
        for more in ("hosts: [a]\n", "public_url: https://a\n"):
            ok(words not in program("-t", "-c", files.write(more + text, "b.yaml")).stderr, more)


@case(daemon=False)
def import_of_client_files(t):
    """product §2: --import serves every entry of an mcpServers file that it can; others are left out with a word."""
    argv = child_argv({})
    files = Files(json.dumps({"mcpServers": {
        "one": {"command": argv[0], "args": argv[1:], "env": {"X": "1"}},
        "two": {"type": "stdio", "command": argv[0], "args": argv[1:], "unknown": {"a": []}},
        "web": {"type": "http", "url": "http://192.0.2.1/mcp"},
        "off": {"command": "/bin/cat", "disabled": True}}}), "claude.json")
    d = t.start(args=["--listen", "127.0.0.1:0", "--import", files.path], servers={})
    harness.wait_for(lambda: len(d.endpoints) >= 2, 3, "both endpoints")
    eq(sorted(d.endpoints), ["one", "two"])
    for name in d.endpoints:
        d.wait_log("server_found", "server=%s " % name, "tools=2")
    s = t.session("one")
    ok("X=1" in s.probe()["environ"], "environment")
    eq(t.session("two").echo("x"), "x")
    ok(any("web" in l for l in d.lines), "nothing said about the entry that was left out", d.lines)
    response = t.conn().request("POST", "/web/mcp", [("Content-Type", "application/json")], mcp.encode(mcp.initialize()))
    eq((response.status, "they are at /NAME/mcp" in response.read().decode()), (404, True))


@case(daemon=False)
def import_of_bad_files(t):
    """product §2: a broken import file is a configuration error that names it."""
    for text in ("{", "[]", "{}", '{"mcpServers":[]}', '{"mcpServers":{"a":{"command":5}}}', '{"mcpServers":{"a":{"args":[]}}}',
                 '{"mcpServers":{"a":{"url":"http://192.0.2.1/mcp"}}}'):
        files = Files(text, "import.json")
        done = program("--import", files.path, "--listen", "127.0.0.1:0")
        eq(done.returncode, 2, text)
        ok("import.json" in done.stderr and "-c" not in done.stderr.replace(files.path, ""), "message", done.stderr)
    files = Files("servers: {a: {command: /bin/cat}}\n")
    ok(files.path + ": a configuration of mcpgated is read with -c" in program("-t", "--import", files.path).stderr, "its own file")


@case(daemon=False)
def options_that_do_nothing(t):
    """product §3: of two values of an option, or two things to do, one would be ignored: both are refused, like what --dump does not read."""
    for args, said in ((["-c", "a", "-c", "b"], "-c is given twice"), (["--name", "a", "--name", "b", "--", "true"], "--name is given twice"),
                       (["--tls", "self", "--tls", "a,b", "--", "true"], "--tls is given twice"), (["--import", "a", "--import", "b"], "--import is"),
                       (["--token-file", "a", "--token-file", "b", "--", "true"], "--token-file is"), (["-t", "--print-config"], "mutually exclusive"),
                       (["--isolation", "shared", "--isolation", "session", "--", "true"], "--isolation is"), (["--dump", "sample", "-t"], "mutually"),
                       (["--log-level", "info", "--log-level", "warn", "--", "true"], "--log-level is"),
                       (["--dump", "sample", "--dump", "schema"], "--dump is given twice"), (["--dump", "sample", "-c", "x"], "--dump prints what no")):
        done = program(*args)
        eq((done.returncode, done.stdout, said in done.stderr), (2, "", True), "%s: %s" % (args, done.stderr))
    eq(program("-t", "-t", "--help").returncode, 0, "what is meant both times")


@case(daemon=False)
def few_lines_before_ready(t):
    """product §5: one command is served after ten lines of the log at most, each of which says something else."""
    d = t.start(args=["--listen", "127.0.0.1:0", "--"] + harness.child_argv({}))
    before = d.lines[:next(i for i, line in enumerate(d.lines) if "mcpgated: ready: " in line)]
    ok(len(before) <= 10, "%d lines" % len(before), before)


@case(daemon=False)
def print_config_of_an_import(t):
    """product §2: --print-config --import shows what would run."""
    files = Files('{"mcpServers":{"one":{"command":"/bin/cat","args":["x"],"env":{"K":"v"}}}}', "import.json")
    done = program("--print-config", "--import", files.path)
    eq(done.returncode, 0, done.stderr)
    for word in ("one", "/bin/cat", "K"):
        ok(word in done.stdout, "lacks " + word, done.stdout)


@case(daemon=False)
def disabled_servers(t):
    """product §4: enabled: false leaves a server out; its path is 404."""
    t.start({"main": {}, "off": {"script": {}, "enabled": False}})
    eq(list(t.daemon.endpoints), ["main"])
    response = t.conn().request("POST", "/off/mcp", [("Content-Type", "application/json")], mcp.encode(mcp.initialize()))
    response.read()
    eq(response.status, 404)


@case(daemon=False)
def own_path(t):
    """product §4: `path` is where clients find the server."""
    t.start({"main": {"script": {}, "path": "/tools/v1"}})
    ok(t.daemon.endpoints["main"].endswith(":%d/tools/v1" % t.daemon.address[1]), "ready line", t.daemon.endpoints)
    eq(t.session("main", path="/tools/v1").echo("x"), "x")


@case(daemon=False)
def several_listeners(t):
    """product §4: every address is served."""
    path = os.path.join(t.directory(), "http.sock")
    t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:0"}, {"address": "unix:" + path}]})
    eq(t.session().echo("x"), "x")
    conn = t.conn(address=path)
    conn.request("GET", "/healthz").read()
    eq(conn.last.status, 200, "unix socket")
    t.daemon.address = path
    eq(t.session().echo("y"), "y")
    t.daemons.pop().stop()
    ok(not os.path.exists(path), "the socket's file is left after a clean stop")


@case(daemon=False)
def unix_listener_of_the_command_line(t):
    """product §2: --listen unix:PATH; a stale socket file is replaced, a live one is not."""
    path = os.path.join(t.directory(), "s")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    t.start(args=["--listen", "unix:" + path, "--"] + child_argv({}))
    t.daemon.address = path
    eq(t.session("main", path="/mcp").echo("x"), "x")
    done = program("--listen", "unix:" + path, "--", "/bin/cat")
    eq(done.returncode, 1, "second daemon on a live socket")
    eq(t.session("main", path="/mcp").echo("x"), "x")


@case
def address_in_use(t):
    """product §2: an address that is taken is a run-time failure, exit 1, and says which."""
    done = program("--listen", "127.0.0.1:%d" % t.daemon.address[1], "--", "/bin/cat")
    eq(done.returncode, 1)
    ok(str(t.daemon.address[1]) in done.stderr, "message", done.stderr)
    address = "127.0.0.1:%d" % t.daemon.address[1]
    files = Files("listen:\n  - address: 127.0.0.1:0\n  - address: %s\n%s" % (address, GOOD))
    for args, place in ((["-c", files.path], files.path + ":3:14"), (["--listen", address, "--", "/bin/cat"], "--listen")):
        done = program("-t", *args)
        eq(done.returncode, 0, done.stderr)
        ok(place + ": listen[%d].address: cannot listen on %s now: Address already in use; another program listens on this port: end it, or choose another one (perhaps this daemon is already running)\n"
           % (args[0] == "-c", address) in done.stderr, "what -t says", done.stderr)
    done = program("-t", "--listen", "192.0.2.1:1", "--plaintext", "--token-file", files.write("0123456789abcdef0123456789abcdef\n", "t"), "--", "/bin/cat")
    ok("--listen: listen[0].address: cannot listen on 192.0.2.1:1 now: Cannot assign requested address" in done.stderr, "an address of another machine", done.stderr)
    eq(done.returncode, 1, "a start would fail")


@case(daemon=False)
def names_of_the_command_line(t):
    """FRONT-SEC-01 DEF-05: --host says by which names the one command is reached; the refusal of others says so."""
    t.start(args=["--listen", "127.0.0.1:0", "--host", "mcp", "--host", "Box.example", "--"] + child_argv({}))

    def answer(host):
        conn = t.conn()
        conn.send(b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
        response = conn.response()
        return response.status, response.read().decode()
    for host in ("mcp", "mcp:8808", "box.EXAMPLE:1", "localhost"):
        eq(answer(host)[0], 200, host)
    status, text = answer("other")
    ok(status == 403 and "--host NAME" in text and "`hosts`" in text, "the refusal", status, text)
    done = program("-t", "--host", "a:1", "--", "/bin/cat")
    ok(done.returncode == 1 and "--host: hosts[0]: must be a name or an address without a port" in done.stderr, "no name", done.stderr)
    for args in (["-c", Files(GOOD).path, "--host", "a"], ["--host", "a"] * 17 + ["--", "/bin/cat"]):
        eq(program(*args).returncode, 2, args)


@case(daemon=False)
def ipv6_loopback(t):
    """product §2: [::1] is a loopback listener."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        raise harness.Skip("no IPv6 here")
    t.start(args=["--listen", "[::1]:0", "--"] + child_argv({}))
    eq(t.session("main", path="/mcp").echo("x"), "x")


@case(daemon=False)
def options_override_nothing_silently(t):
    """product §2: --import, -c and a command exclude each other."""
    files = Files()
    for args in (["-c", files.path, "--import", files.path], ["--import", files.path, "--", "/bin/cat"],
                 ["-c", files.path, "--name", "x"]):
        eq(program(*args).returncode, 2, args)


@case(daemon=False)
def json_log(t):
    """product §4: log.format json: every line is an object."""
    t.start({"main": {}}, {"log": {"format": "json", "level": "debug"}})
    t.session().echo("x\u2028\n")
    lines = t.daemon.lines
    ok(len(lines) > 2, "lines", lines)
    for line in lines:
        ok(isinstance(json.loads(line), dict), "line", line)


@case(daemon=False)
def path_lookup_of_commands(t):
    """product §4: a bare command name is looked up in PATH."""
    t.start(args=["--listen", "127.0.0.1:0", "--", "mcpgated-demo"], env={"PATH": harness.BIN + ":" + os.environ["PATH"]})
    s = t.session("demo", path="/mcp")
    ok(s.ask("tools/list")["result"]["tools"], "tools")


@case(daemon=False)
def a_check_beside_the_daemon_is_silent_about_its_addresses(t):
    """product §2: -t knows that the ports which its own daemon has are not taken by another program."""
    port = wire.free_port()
    d = t.start({"main": {}}, {"listen": [{"address": "127.0.0.1:%d" % port}]})
    done = program("-t", "-c", d.file)
    eq((done.returncode, "cannot listen" in done.stderr), (0, False), done.stderr)
    with open(d.file) as f:
        text = f.read()
    files = Files(text.replace(d.admin, d.admin + "2"))
    done = program("-t", "-c", files.path)
    ok("cannot listen on 127.0.0.1:%d now" % port in done.stderr, "of another daemon", done.stderr)
