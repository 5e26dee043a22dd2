# SPDX-License-Identifier: Apache-2.0
"""docs/auth/README.md, followed: its configurations are taken from the page, its steps are done, what it promises holds."""
import hashlib
import json
import os
import re
import subprocess

import harness
import issuer
import mcp
from harness import case, eq, ok

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "auth", "README.md")
STATIC, OAUTH = range(2)  # the blocks of the page
LISTEN = "listen: [{address: '127.0.0.1:0'}]\nlog: {level: debug}\n"


def block(number, replacements):
    """The block of YAML, with what a reader puts in place of the examples."""
    with open(PAGE) as f:
        text = re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.M | re.S)[number]
    argv = harness.child_argv({}, "files")
    # a server's command line stands in one key on the page
    replacements = replacements + [("command: my-server", "command: %s\n    args: %s" % (argv[0], json.dumps(argv[1:])))]
    for old, new in replacements:
        ok(old in text, "the page has it", old)
        text = text.replace(old, new)
    return text


def begin(t, text):
    path = os.path.join(t.directory(), "mcpgated.yaml")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o600)
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "-c", path], capture_output=True, text=True,
                          timeout=20 * harness.SLOW)
    said = [line for line in done.stderr.splitlines() if " runs as root, " not in line]
    verdict = "mcpgated: the configuration is fine" + (", with 1 warning" if len(said) < len(done.stderr.splitlines()) else "")
    eq((done.returncode, said), (0, [verdict]), "mcpgated -t")
    return t.start(args=["-c", path])


def call(t, session, tool):
    body = mcp.encode(mcp.request(9, "tools/call", {"name": tool, "arguments": {}}))
    return session.post(body, conn=None)


@case(daemon=False)
def static_tokens(t):
    """AUTH-TOK-01 AUTH-TOK-03: the section Static tokens."""
    tokens = [subprocess.run(["openssl", "rand", "-hex", "32"], capture_output=True, text=True, timeout=20).stdout.strip() for _ in range(2)]
    hashes = [hashlib.sha256(token.encode()).hexdigest() for token in tokens]
    text = block(STATIC, [("{name: ci, sha256: HASH}", "{name: ci, sha256: %s}" % hashes[0]), ("sha256: HASH,", "sha256: %s," % hashes[1])])
    begin(t, LISTEN + text)
    ci, desk = (t.session("files", token=token) for token in tokens)
    eq(call(t, ci, "delete_all").status, 403)
    eq(call(t, ci, "echo").status, 200)
    eq(call(t, desk, "delete_all").status, 200, "its token has files:write")


@case(daemon=False)
def oauth(t):
    """AUTH-PRM-01 AUTH-CH-01 FRONT-SEC-05: the section OAuth, step by step."""
    i = issuer.Issuer()
    text = block(OAUTH, [("https://id.example.com", i.url)])
    text = re.sub(r"^listen:\n  - .*\n", LISTEN, text, flags=re.M)
    begin(t, text)
    response = t.conn().request("GET", "/files/mcp", [])
    response.read()
    eq(response.status, 401, "step 4")
    url = re.search(r'resource_metadata="([^"]+)"', response.header("www-authenticate")).group(1)
    eq(url, "https://mcp.example.com/.well-known/oauth-protected-resource/files/mcp", "step 5 asks for this")
    response = t.conn().request("GET", url[len("https://mcp.example.com"):], [])
    document = json.loads(response.read())
    eq((document["resource"], document["authorization_servers"]), ("https://mcp.example.com/files/mcp", [i.url]))
    s = t.session("files", token=i.token(document["resource"], scope="files"))
    eq(call(t, s, "echo").status, 200, "step 6")
    eq(call(t, s, "delete_all").status, 403)
    stranger = s.id
    s.token = i.token(document["resource"], scope="files files:write")
    eq(call(t, s, "delete_all").status, 200)
    for token, status in ((i.token(document["resource"], exp=1), 401), (i.token(document["resource"], scope="x"), 403),
                          (i.token(document["resource"], scope="files", sub="bob"), 404)):
        response = t.conn().request("POST", "/files/mcp", mcp.bearer(token) + [("Content-Type", "application/json"), ("Mcp-Session-Id", stranger)],
                                    mcp.encode(mcp.request(1, "ping")))
        response.read()
        eq(response.status, status, "the table of answers")
