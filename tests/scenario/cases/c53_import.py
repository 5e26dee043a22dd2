# SPDX-License-Identifier: Apache-2.0
"""The files in which clients keep their servers (--import): what is taken over, and what is said of the rest. mcpgated(1)."""
import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import case, eq, ok

FILES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "import")
VARIABLES = {"IMPORT_TOKEN": "s3cret", "IMPORT_URL": "https://api.example", "HOME": "/home/me"}

# File: (exit status, what is said, without the names of program and file, what --print-config shows)
TABLE = {
    "alike.json": (0, [
        "warning: 3:5: mcpServers.My Server: is served as 'my-server'",
        "warning: 4:5: mcpServers.my-server: is served as 'my-server-2'",
    ], ['command: x', 'command: "y"', '  my-server-2:']),
    "cherry-studio.json": (0, [
        "warning: 3:5: mcpServers.k3Jx_0: is served as 'k3jx_0'",
        'warning: 4:19: mcpServers.k3Jx_0.isActive: is disabled in that file, so it is not served',
        "warning: 7:5: mcpServers.文件: is served as 'server'",
        'warning: 7:113: mcpServers.文件.env: a value that is not a string is passed on as it is written',
        'warning: 7:128: mcpServers.文件.env: a value that is not a string is passed on as it is written',
        "warning: 7:143: mcpServers.文件.env: 'NONE' is not a text, and is ignored",
        "warning: 8:5: mcpServers.搜索: is served as 'server-2'",
        'warning: 8:91: mcpServers.搜索.args: a value that is not a string is passed on as it is written',
        'warning: 8:95: mcpServers.搜索.registryUrl: is unknown and ignored; the known ones are command, args, env, cwd, disabled and enabled',
        "warning: 9:5: mcpServers.远程: is served as 'server-3'",
    ], ['enabled: false', 'env: {PORT: "8080", DEBUG: "false"}', 'args: [search-server, "3"]']),
    "claude-code-home.json": (0, [
        "warning: 8:9: projects./srv/shop.mcpServers.search: left out: another entry is already served as 'search'",
        'warning: 11:29: projects./srv/shop.mcpServers.old: is disabled in that file, so it is not served',
    ], ['command: search-server', 'command: db-server', 'cwd: /srv/shop', 'enabled: false']),
    "claude-code.json": (0, [
        "warning: 8:18: mcpServers.api.env: '${IMPORT_UNSET}' is passed on unchanged: no such variable is set here",
    ], ['url: "https://api.example/mcp"', 'headers: {Authorization: "***"}', 'command: /usr/bin/api-server', 'args: ["--url", "https://api.example", "--level", info]', 'env: {CACHE: "${IMPORT_UNSET}", AUTHORIZATION: "***"}']),
    "claude-desktop.json": (0, [
        "warning: 8:5: mcpServers.My Notes: is served as 'my-notes'",
    ], ['  filesystem:', 'args: ["-y", "@modelcontextprotocol/server-filesystem", /srv/files]', '  my-notes:', 'env: {NOTES_DIR: /srv/notes}']),
    "cline.json": (0, [
        'warning: 3:88: mcpServers.on.comand: is unknown and ignored; the known ones are command, args, env, cwd, disabled and enabled',
        'warning: 4:41: mcpServers.off.disabled: is disabled in that file, so it is not served',
    ], ['  "on":', '  "off":']),
    "comments.json": (0, [
        'warning: 3:5: mcpServers._comment: left out: it is not an object',
        'warning: 4:5: mcpServers.//: left out: it has neither of them; only servers with a command or a URL can be served',
        'warning: 5:56: mcpServers.one.//: is unknown and ignored; the known ones are command, args, env, cwd, disabled and enabled',
        "warning: 5:97: mcpServers.one.env: '' cannot be the name of a variable, and is ignored",
    ], ['  one:', '  two:']),
    "codex.toml": (0, [
        "warning: 7:1: mcp_servers.docs.startup_timeout_sec: is not imported: in a configuration file, use request_timeout and start.timeout of the server",
        "warning: 8:1: mcp_servers.docs.enabled_tools: is not imported: in a configuration file, use tools.allow and tools.deny of the server",
        "warning: 15:11: mcp_servers.off.enabled: is disabled in that file, so it is not served",
        "warning: 19:1: mcp_servers.far.bearer_token_env_var: is not imported: the gateway signs in nowhere; put a token into headers",
    ], ['args: ["-y", docs-server]', "env: {A: b}", "inherit_env: [LANG]", "enabled: false"]),
    "cursor-remote.json": (0, [], ['url: "https://far.example/mcp"', 'headers: {X: "y"}']),
    "cursor.json": (0, [
        "warning: 5:16: mcpServers.local.args: '${workspaceFolder}' is passed on unchanged: no folder is open here; write a path instead",
        'warning: 6:7: mcpServers.local.envFile: is not imported: the file is not read; put its variables into env',
    ], ['args: ["${workspaceFolder}/server.py", /home/me/data]', 'env: {API_KEY: "***"}']),
    "gemini-lists.json": (0, [
        'warning: 2:22: mcpServers.c: is disabled in that file, so it is not served',
        'warning: 2:46: mcpServers.b: is disabled in that file, so it is not served',
    ], ['command: a-server', 'enabled: false']),
    "gemini.json": (0, [
        "warning: 8:31: mcpServers.python.env: '$DB_URL' is passed on unchanged: to use a variable's value, write ${NAME}",
        'warning: 9:7: mcpServers.python.timeout: is not imported: in a configuration file, use request_timeout and start.timeout of the server',
        'warning: 11:7: mcpServers.python.includeTools: is not imported: in a configuration file, use tools.allow and tools.deny of the server',
        'warning: 13:5: mcpServers.stream: goes to another machine without TLS; the entry is left out',
        'warning: 14:5: mcpServers.sse: goes to another machine without TLS; the entry is left out',
    ], ['cwd: /srv/python', 'env: {DATABASE_URL: "$DB_URL", KEY: "***"}']),
    "missing-comma.json": (2, [
        "4:7: not valid JSON: '}' expected",
    ], []),
    "open-comment.json": (2, [
        "2:3: not valid JSON: string or '}' expected",
    ], []),
    "other.json": (2, [
        ' contains no object "mcpServers", nor one with the name that another client uses; expected: {"mcpServers": {"NAME": {"command": …, "args": […]}}}',
    ], []),
    "twice.json": (2, [
        '4:7: not valid JSON: duplicate object key',
    ], []),
    "types.json": (2, [
        ' no entry can be served; at least one must have a command or a URL',
        'warning: 3:35: mcpServers.a.args: must be an array of strings; the entry is left out',
        'warning: 5:18: mcpServers.b.command: must be a string; the entry is left out',
        'warning: 10:39: mcpServers.c.disabled: must be true or false; the entry is left out',
        'warning: 11:5: mcpServers.d: left out: it is not an object',
    ], []),
    "vscode-settings.json": (0, [
    ], ['args: [mcp-server-time, "--local-timezone=Europe/Berlin"]']),
    "vscode.json": (0, [
        "warning: 13:26: servers.perplexity.env: '${input:key}' is passed on unchanged: there is nobody to ask for it; write ${NAME} instead, and set the variable NAME for mcpgated",
        'warning: 14:7: servers.perplexity.envFile: is not imported: the file is not read; put its variables into env',
        'warning: 16:7: servers.perplexity.sandboxEnabled: is not imported: in a configuration file, use sandbox of the server',
    ], ['args: ["-y", server-perplexity, ",]"]']),
    "windows.json": (0, [
        "warning: 3:36: mcpServers.win.cwd: '${config:x}' is passed on unchanged: it is not expanded here",
    ], ['cwd: "${config:x}"']),
    "windsurf.json": (0, [
        "warning: 7:31: mcpServers.github.env: '${file:~/.github-token}' is passed on unchanged: the file is not read; a configuration file can do that: env: {NAME: {file: PATH}}, see mcpgated.yaml(5)",
        'warning: 8:7: mcpServers.github.disabledTools: is not imported: in a configuration file, use tools.allow and tools.deny of the server',
    ], ['env: {GITHUB_TOKEN: "***", HOST: "***"}']),
    "zed-old.json": (0, [
        'warning: 4:86: context_servers.old.shell: is unknown and ignored; the known ones are command, args, env, cwd, disabled and enabled',
        'warning: 5:7: context_servers.old.settings: is not imported: an editor extension turns it into arguments; write those into args',
    ], ['command: /usr/bin/old-server', 'args: [run]', 'env: {A: b}']),
    "zed.json": (0, [
        'warning: 12:44: context_servers.off.enabled: is disabled in that file, so it is not served',
        'warning: 13:5: context_servers.postgres: left out: an editor extension starts it; only servers with a command or a URL can be served',
    ], ['command: some-command', 'args: [a, b]']),
}


def import_file(folder, name):
    """Exit status, the messages without program and file, and the configuration."""
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "--print-config", "--import", name], cwd=folder,
                          capture_output=True, text=True, timeout=8 * harness.SLOW, env=dict(os.environ, **VARIABLES),
                          stdin=subprocess.DEVNULL)
    said = [line.replace("mcpgated: ", "", 1).replace(name + ":", "", 1) for line in done.stderr.splitlines()]
    return done.returncode, said, done.stdout


def copied(folder, name):
    shutil.copy(os.path.join(FILES, name), folder)
    os.chmod(os.path.join(folder, name), 0o600)


@case(daemon=False)
def files_of_clients(t):
    """product §2: what an entry has that counts is taken over, and all else is said with its line."""
    eq(sorted(os.listdir(FILES)), sorted(TABLE))
    with tempfile.TemporaryDirectory() as folder:
        for name, (status, messages, shown) in TABLE.items():
            copied(folder, name)
            code, said, printed = import_file(folder, name)
            eq(said, messages, name)
            eq(code, status, name)
            for text in shown:
                ok(text in printed, "%s: no %s in" % (name, text), printed)
            ok("s3cret" not in printed + "".join(said), name + ": a secret is shown")


@case(daemon=False)
def what_is_gone_takes_nothing_down(t):
    """product §2: a directory that an entry once had is a warning, as a missing command is; in a configuration file it is a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        copied(folder, "comments.json")
        done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "--import", "comments.json"], cwd=folder, capture_output=True, text=True,
                              timeout=8 * harness.SLOW, stdin=subprocess.DEVNULL)
        eq(done.returncode, 0, done.stderr)
        ok("warning: comments.json:5:36: servers.one.cwd: /nonexistent/one: No such file or directory" in done.stderr, done.stderr)


def nested(depth, inner):
    return b"[" * depth + inner + b"]" * depth


ENTRY = b'{"mcpServers": {"a": {"command": "x", %s}}}'
# What is in the file: (exit status, how what is said begins)
ODD_FILES = {
    "deep": (b'{"mcpServers": ' + b"[" * 200000, 2, "not valid JSON: maximum parsing depth"),
    "deep in an entry": (ENTRY % (b'"env": {"A": ' + nested(2000, b"1") + b"}"), 0, "'A' is not a text, and is ignored"),
    "deep and ignored": (ENTRY % (b'"other": ' + nested(2000, b"1")), 0, "is unknown and ignored"),
    "a NUL in a text": (ENTRY % rb'"args": ["a\u0000b"]', 2, "a text holds a NUL"),
    "a NUL byte": (ENTRY % b'"args": ["a\0b"]', 2, "not valid JSON"),
    "no UTF-8": (ENTRY % b'"args": ["\xff\xfe"]', 2, "unable to decode"),
    "half a pair": (ENTRY % rb'"args": ["\ud800"]', 2, "invalid Unicode"),
    "a name of a terminal's": (b'{"mcpServers": {"\\u001b[2J\\u202ename": {"command": "x"}}}', 0, "is served as '2j---name'"),
    "a name of a path": (b'{"mcpServers": {"../../etc/cron.d/x": {"command": "x"}}}', 0, "is served as 'etc-cron-d-x'"),
    "a name of nothing": (b'{"mcpServers": {"": {"command": "x"}}}', 0, "is served as 'server'"),
    "commands are one word": (ENTRY % b'"args": ["a\\nb", "; touch x", "$(touch x)"]', 0, ""),
    "a variable without end": (ENTRY % (b'"args": ["' + b"${" * 5000 + b'"]'), 0, "is passed on unchanged"),
    "variables within": (ENTRY % b'"args": ["${HOME:-${HOME}}"]', 0, "it is not expanded here"),
    "many unknown members": (ENTRY % b", ".join(b'"m%d": 1' % i for i in range(5000)), 0, "there are more problems than these"),
    "many entries": (b'{"mcpServers": {' + b", ".join(b'"e%d": {"command": "x", "no": 1}' % i for i in range(300)) + b"}}", 0, "is unknown and ignored"),
}


@case(daemon=False, deadline=60)
def odd_files(t):
    """product §2 REL-48: of files that somebody wrote to do harm nothing reaches the terminal, and each is read or refused in its time."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (content, status, start) in ODD_FILES.items():
            with open(os.path.join(folder, "f.json"), "wb") as file:
                file.write(content)
            os.chmod(os.path.join(folder, "f.json"), 0o600)
            code, said, _ = import_file(folder, "f.json")
            eq(code, status, "%s: %r" % (name, said[:3]))
            ok(start in "".join(said), "%s: no %s in" % (name, start), said[:3])
            ok(len(said) <= 102, name + " says too much", len(said))
            ok(not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", "".join(said)), name + " reaches the terminal", said[:3])
        ok(not os.path.exists(os.path.join(folder, "x")), "something was run")
        for path, start in (("/dev/zero", "is not a regular file"), (folder, "is not a regular file")):
            code, said, _ = import_file(folder, path)
            eq(code, 2, said)
            ok(start in "".join(said), path, said)
