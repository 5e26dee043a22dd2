# SPDX-License-Identifier: Apache-2.0
"""mcpgatectl client-config: each entry is read as its client reads it, and leads to the server. mcpgatectl(1)."""
import hashlib
import json
import os
import re
import subprocess
import tempfile
import tomllib
from urllib.parse import urlsplit

import harness
from harness import case, eq, ok

TOKEN = "mcpg_" + "t" * 40
SERVERS = {"main": {}}
AUTH = {"mode": "token", "tokens": [{"name": "ci", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}

# Client: (the list of its file, the member with the URL, what stands for the token)
OBJECTS = {
    "claude-code": ("mcpServers", "url", "${MCPGATED_TOKEN}"),
    "cline": ("mcpServers", "url", "TOKEN"),
    "cursor": ("mcpServers", "url", "${env:MCPGATED_TOKEN}"),
    "gemini": ("mcpServers", "httpUrl", "${MCPGATED_TOKEN}"),
    "opencode": ("mcp", "url", "{env:MCPGATED_TOKEN}"),
    "vscode": ("servers", "url", "${input:mcpgated-token}"),
    "windsurf": ("mcpServers", "serverUrl", "${env:MCPGATED_TOKEN}"),
    "zed": ("context_servers", "url", "TOKEN"),
}
TYPES = {"claude-code": "http", "cline": "streamableHttp", "opencode": "remote", "vscode": "http"}
FILES = {"claude": "claude_desktop_config.json", "claude-code": ".mcp.json", "cline": "cline_mcp_settings.json",
         "codex": "~/.codex/config.toml", "cursor": "~/.cursor/mcp.json", "gemini": "~/.gemini/settings.json",
         "opencode": "opencode.json", "stdio": "any client", "vscode": ".vscode/mcp.json",
         "windsurf": "~/.codeium/windsurf/mcp_config.json", "zed": "~/.config/zed/settings.json"}


def ctl(*args, status=0):
    done = subprocess.run([os.path.join(harness.BIN, "mcpgatectl"), *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=20 * harness.SLOW)
    eq(done.returncode, status, "%r said %r %r" % (args, done.stdout[-300:], done.stderr[-300:]))
    return done.stdout, done.stderr


def entry_of(client, out):
    """What the client finds in its file: (the URL, the Authorization header or None)."""
    if client == "codex":
        (name, entry), = tomllib.loads(out)["mcp_servers"].items()
        header = entry.get("http_headers", {}).get("Authorization")
        return name, entry["url"], header or ("Bearer ${%s}" % entry["bearer_token_env_var"] if "bearer_token_env_var" in entry else None)
    root = json.loads(out)
    if client in ("claude", "stdio"):
        (name, entry), = root["mcpServers"].items()
        eq((entry["command"], entry["args"][:2]), ("npx", ["-y", "mcp-remote"]))
        ok("--allow-http" in entry["args"], "mcp-remote would refuse", entry)
        header = entry["args"][entry["args"].index("--header") + 1] if "--header" in entry["args"] else None
        if header:
            eq(header, "Authorization:${AUTHORIZATION}")
            header = entry["env"]["AUTHORIZATION"]
        return name, entry["args"][2], header
    servers, url, _ = OBJECTS[client]
    (name, entry), = root[servers].items()
    eq(entry.get("type"), TYPES.get(client))
    return name, entry[url], entry.get("headers", {}).get("Authorization")


def call_at(t, url, header):
    """The status of an initialize at the URL."""
    at = urlsplit(url)
    response = t.conn().request("POST", at.path, [("Content-Type", "application/json"), ("Authorization", header),
                                                   ("Accept", "application/json, text/event-stream")],
                                harness.mcp.encode(harness.mcp.initialize()))
    response.read()
    return response.status


@case(own=True)
def entries_without_authorization(t):
    """product §2: the entry for each client has the address of the running daemon, and no header where none is asked for."""
    (_, port) = t.daemon.address
    for client, file in FILES.items():
        out, err = ctl("--socket", t.daemon.admin, "client-config", "main", "--client", client)
        eq(entry_of(client, out), ("main", "http://127.0.0.1:%d/main/mcp" % port, None), client)
        ok(file in err, "no %s in" % file, err)
        ok("token" not in err, "a token is spoken of", err)
    eq(ctl("--socket", t.daemon.admin, "client-config", "main"), ctl("--socket", t.daemon.admin, "client-config", "main", "--client", "claude-code"))


@case(config={"auth": AUTH}, own=True)
def entries_with_a_token(t):
    """product §2: where tokens are asked for the entry says where the token comes from; it is in it only with --token-file."""
    (_, port) = t.daemon.address
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "token")
        with open(path, "w") as file:
            file.write(TOKEN + "\n")
        os.chmod(path, 0o600)
        for client in FILES:
            out, err = ctl("--socket", t.daemon.admin, "client-config", "main", "--client", client)
            stands = OBJECTS[client][2] if client in OBJECTS else "${MCPGATED_TOKEN}" if client == "codex" else "TOKEN"
            eq(entry_of(client, out), ("main", "http://127.0.0.1:%d/main/mcp" % port, "Bearer " + stands), client)
            ok("mcpgatectl token new" in err, "where a token comes from", err)
            eq("inputs" in out, client == "vscode")
            out, err = ctl("--socket", t.daemon.admin, "client-config", "main", "--client", client, "--token-file", path)
            name, url, header = entry_of(client, out)
            eq((header, "inputs" in out, TOKEN in err), ("Bearer " + TOKEN, False, False), client)
            eq(call_at(t, url, header), 200, client)


@case(config={"auth": AUTH}, own=True)
def a_file_of_one_token(t):
    """product §2: --token-file takes what `token new` has written, and no file with several tokens or none."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "token")
        for text, token in ((ctl("token", "new")[0].replace("mcpg_", "#mcpg_") + TOKEN + "\n", TOKEN), ("\r\n  " + TOKEN + " \r\n# x", TOKEN),
                            (TOKEN + "\n" + TOKEN + "\n", None), ("# none\n", None), (TOKEN + " anna\n", TOKEN), (TOKEN + "\n# x\0y\n\0", None)):
            with open(path, "w") as file:
                file.write(text)
            out, err = ctl("--socket", t.daemon.admin, "client-config", "main", "--client", "cursor", "--token-file", path,
                           status=0 if token else 2)
            if token:
                eq(entry_of("cursor", out)[2], "Bearer " + token)
            else:
                ok("must hold one token" in err, text, err)


@case(daemon=False)
def entries_from_a_configuration(t):
    """product §2: with -c no daemon is asked; public_url goes before the listeners, and those behind unix sockets are no address."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mcpgated.yaml")

        def url_of(text, status=0):
            with open(path, "w") as file:
                file.write("servers: {main: {command: /bin/cat, path: /x/mcp}}\n" + text)
            os.chmod(path, 0o600)
            out, err = ctl("client-config", "main", "-c", path, "--client", "cursor", status=status)
            return json.loads(out)["mcpServers"]["main"]["url"] if status == 0 else err

        eq(url_of(""), "http://127.0.0.1:8808/x/mcp")
        eq(url_of("public_url: https://mcp.example.com\n"), "https://mcp.example.com/x/mcp")
        every = "auth: {mode: anonymous}\nlisten: [{address: 'unix:%s/s'}, {address: '0.0.0.0:9000', plaintext: true}]\n" % folder
        eq(url_of(every), "http://127.0.0.1:9000/x/mcp")
        eq(url_of(every + "hosts: [gate.example]\n"), "http://gate.example:9000/x/mcp")
        ok("there is no address for clients" in url_of("listen: [{address: 'unix:%s/s'}]\n" % folder, status=1), "unix alone")
        ok("there is no address for clients" in url_of("listen: [{address: '127.0.0.1:0'}]\n", status=1), "a port that nobody knows")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a",
                        "-keyout", folder + "/key", "-out", folder + "/crt"], check=True, capture_output=True)
        eq(url_of("listen: [{address: '127.0.0.1:9000', tls: {certificate: %s/crt, key: %s/key}}]\n" % (folder, folder)), "https://127.0.0.1:9000/x/mcp")
        err = ctl("client-config", "main", "-c", path, "--client", "claude")[1]
        ok(folder + "/crt" in err and "NODE_EXTRA_CA_CERTS" in err, "what the client may have to trust", err)
        ok("must be" in url_of("public_url: x\n", status=2), "a bad configuration")
        url_of("")
        ok("there is no such server" in ctl("client-config", "other", "-c", path, status=1)[1], "another server")
        ok("one of claude, claude-code, " in ctl("client-config", "main", "-c", path, "--client", "vi", status=2)[1], "names")
        ok("status takes no --client: it is for client-config" in ctl("status", "--client", "vscode", status=2)[1], "elsewhere")


@case(config={"auth": {"mode": "anonymous"}}, own=True)
def entries_for_everybody(t):
    """product §2: no daemon, no such server, and anonymous access are told apart."""
    out, _ = ctl("--socket", t.daemon.admin, "client-config", "main", "--client", "zed")
    eq(entry_of("zed", out)[2], None)
    ok("there is no such server at the daemon of %s (pid %d)" % (t.daemon.admin, t.daemon.pid) in
       ctl("--socket", t.daemon.admin, "client-config", "other", status=1)[1], "no such server")
    ok("-c FILE" in ctl("--socket", "/nonexistent/socket", "client-config", "main", status=1)[1], "no daemon")


AT_ITS_PLACE = '''set -e; mount -t tmpfs none "$(dirname "$0")"; mkdir "$0"; cp "$1" "$0/mcpgated.yaml"; shift; exec "$@"'''


@case(daemon=False)
def entries_of_the_installed_configuration(t):
    """product §2: where no daemon runs, the entry is made from the configuration at its default place."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise harness.Skip("this takes root and a mount namespace")
    mcpgatectl, own = os.path.join(harness.BIN, "mcpgatectl"), t.directory()
    place = re.search(r"default: (/\S+)/mcpgated\.yaml", subprocess.run([mcpgatectl, "help"], capture_output=True, text=True).stdout).group(1)
    if not os.path.isdir(os.path.dirname(place)):
        raise harness.Skip("there is no " + os.path.dirname(place))
    path = os.path.join(own, "file.yaml")
    with open(path, "w") as f:
        f.write("public_url: https://mcp.example.com\nservers: {main: {command: x}}\n")
    os.chmod(path, 0o600)

    def run(*command):
        return subprocess.run(["unshare", "-m", "sh", "-c", AT_ITS_PLACE, place, path, *command], capture_output=True, text=True,
                              timeout=20 * harness.SLOW, env=dict(os.environ, MCPGATED_SOCKET=own + "/admin.sock"))
    done = run(mcpgatectl, "client-config", "main", "--client", "cursor")
    eq((done.returncode, json.loads(done.stdout)), (0, {"mcpServers": {"main": {"url": "https://mcp.example.com/main/mcp"}}}), done.stderr)
    ok("no daemon runs; this is from %s/mcpgated.yaml\n" % place in done.stderr, "which file", done.stderr)


@case(daemon=False)
def entries_of_all(t):
    """product §2: --all has the entries of every server in one document; Claude Code's command has the same URL and header."""
    t.start({"a": {}, "b": {}}, {"auth": AUTH})
    (_, port) = t.daemon.address
    urls = ["http://127.0.0.1:%d/%s/mcp" % (port, name) for name in "ab"]
    out, err = ctl("--socket", t.daemon.admin, "client-config", "--all")
    eq([entry["url"] for entry in json.loads(out)["mcpServers"].values()], urls)
    for name, url in zip("ab", urls, strict=True):
        ok("or, with the token in MCPGATED_TOKEN: claude mcp add --transport http %s %s --header \"Authorization: Bearer $MCPGATED_TOKEN\"\n" % (name, url) in err, "the command", err)
    eq(err.count("mcpgatectl token new"), 1)
    out, err = ctl("--socket", t.daemon.admin, "client-config", "--all", "--client", "codex")
    eq(([server["url"] for server in tomllib.loads(out)["mcp_servers"].values()], "claude mcp" in err), (urls, False))
    for args in ([], ["a", "--all"]):
        ok("client-config SERVER|--all" in ctl("--socket", t.daemon.admin, "client-config", *args, status=2)[1], "which")


@case(daemon=False)
def everywhere_the_same_address(t):
    """product §2: the ready line, the page for browsers and client-config name one address, with public_url and without."""
    def told(config):
        d = t.start({"main": {}}, config)
        t.daemon = d
        [line] = [x for x in d.lines if x.startswith("mcpgated: ready: main")]
        page = t.conn().request("GET", "/", [("Accept", "text/html")]).read().decode()
        shown = re.findall("<code>([^<]*/mcp)</code>", page)
        entry = ctl("--socket", d.admin, "client-config", "main", "--client", "claude-code")[0]
        port = re.search(r":(\d+)/main/mcp", line).group(1)
        return line, shown, re.findall(r'https?://[^" ]+', entry), port
    line, shown, entry, port = told({})
    url = "http://127.0.0.1:%s/main/mcp" % port
    ok(line.endswith(" at " + url), "the line", line)
    eq((shown, entry), ([url], [url]))
    line, shown, entry, port = told({"public_url": "https://mcp.example.com/gw"})
    url = "https://mcp.example.com/gw/main/mcp"
    ok(line.endswith(" at http://127.0.0.1:%s/main/mcp, for clients %s" % (port, url)), "the line", line)
    eq((shown, entry), ([url], [url]))
    line, _, entry, port = told({"listen": [{"address": "0.0.0.0:0", "plaintext": True}], "hosts": ["gw.example"], "auth": {"mode": "anonymous"}})
    url = "http://gw.example:%s/main/mcp" % port
    ok(line.endswith(" at " + url), "the line", line)
    eq(entry, [url])
