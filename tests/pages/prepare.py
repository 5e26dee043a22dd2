# SPDX-License-Identifier: Apache-2.0
"""
What a reader of the pages has already, or is told to put in the place of an example: files at absolute paths, programs.
Each entry is a difference between the page and the test; there is no other.
"""
import json
import os
import re
import subprocess

import yaml

# What `mcpgated -t` may find in a configuration that is right: what this machine lacks.
OF_THE_MACHINE = re.compile(r"there is no user '|needs a cgroup|the running kernel|takes root|needs root|this machine has no such address")
# These directories are the session's own: the path stands below its directory.
PLACES = ["/etc/mcpgated", "/etc/ssl/mcp", "/srv/files", "/srv/docs", "/var/log/mcpgated", "/var/lib/files"]
CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
               "-subj", "/CN=mcp.example.com", "-addext", "subjectAltName=DNS:mcp.example.com,IP:127.0.0.1"]
MCP_SERVERS = json.dumps({"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}})
SUDO = '#!/bin/sh\nexec "$@"\n'  # the session is of one user


def write(path, text, mode=0o600):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def places(folder):
    for place in PLACES + ["/run"]:
        os.makedirs(folder + place, exist_ok=True)
        os.chmod(folder + place, 0o700)
    for name in ("tls", "id-ca"):
        subprocess.run(CERTIFICATE + ["-keyout", "%s/etc/mcpgated/%s.key" % (folder, name),
                                      "-out", "%s/etc/mcpgated/%s.crt" % (folder, name)], check=True, capture_output=True)
    for name in ("github.token", "introspection.secret", "memory.key", "wiki.authorization", "wiki.secret", "tickets.secret"):
        write(folder + "/etc/mcpgated/" + name, "secret")
    write(folder + "/srv/files/a.txt", "hello")
    os.mkdir(folder + "/var/lib/files/.npm")


def shims(folder, programs, trees):
    write(folder + "/sudo", SUDO, 0o755)
    write(folder + "/npx", '#!/bin/sh\nPAGES_NPM="%s" exec python3 "%s/npx" "$@"\n' % (trees, os.path.dirname(os.path.abspath(__file__))), 0o755)
    write(folder + "/my-server", '#!/bin/sh\nexec "%s/mcpgated-demo" "$@"\n' % programs, 0o755)


def session(session, name):
    """What certain sessions need beyond that."""
    if name == "docs/guides/first-steps.md: import":
        os.makedirs(session.home + "/.config/Claude")
        write(session.home + "/.config/Claude/claude_desktop_config.json", MCP_SERVERS)
    if name in ("docs/guides/first-steps.md: demo", "docs/guides/service.md: install"):
        os.symlink(os.path.realpath(session.bin), session.home + "/build")
    if name == "docs/auth/README.md: OAuth":  # curl comes to the public name
        write(session.home + "/.curlrc", 'resolve = "mcp.example.com:443:127.0.0.1"\ncacert = "%s/etc/mcpgated/tls.crt"\n' % session.folder)
    if name == "docs/guides/troubleshooting.md: three commands":
        session.write_file("mcpgated.yaml", "servers: {files: {command: mcpgated-demo}}\n")
        session.run_in_background("mcpgated -c mcpgated.yaml", "ready: files")
    if name.startswith("docs/guides/moving.md"):
        write(session.home + "/servers.json", MCP_SERVERS)
        write(session.home + "/server.js", "import('%s');\n" % session.module("@modelcontextprotocol/server-memory/dist/index.js"))


# ---- Traefik, which Debian does not have ---------------------------------------------------------

# Of https://doc.traefik.io/traefik/reference/: the paths of keys that its files may have, as far as the page has them.
TRAEFIK = ["entryPoints.*.address", "entryPoints.*.transport.respondingTimeouts.readTimeout", "providers.file.filename", "http.routers.*.rule",
           "http.routers.*.entryPoints", "http.routers.*.service", "http.routers.*.tls", "http.services.*.loadBalancer.servers.url",
           "tls.certificates.certFile", "tls.certificates.keyFile"]


def paths(value, path=""):
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from paths(below, path + "." + key)
    elif isinstance(value, list) and isinstance(value[0], dict):
        for below in value:
            yield from paths(below, path)
    else:
        yield path[1:]


def check_traefik(text):
    """The first key that it does not have, or None."""
    known = [re.compile(key.replace(".", r"\.").replace("*", r"[^.]+")) for key in TRAEFIK]
    return next((path for path in paths(yaml.safe_load(text)) if not any(key.fullmatch(path) for key in known)), None)
