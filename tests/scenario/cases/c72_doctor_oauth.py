# SPDX-License-Identifier: Apache-2.0
"""mcpgatectl doctor --oauth: each step of a client's way, and what stands in it. mcpgatectl(1)."""
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time

import harness
import issuer
from harness import case, eq, ok
from wire import free_port

# No control but the line end, no C1 control, nothing that is invisible or turns the direction.
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
HOSTILE = "red\x1b[31m \u202egnp.exe"
PRM = "/.well-known/oauth-protected-resource"
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                "serverInfo": {"name": "fake " + HOSTILE, "version": "1"}}}


class Web:
    """Answers what `pages` says: path, or method and path -> (status, headers, document) or a function of the token that came (or None)."""

    def __init__(self, pages=None, pair=None):
        self.pages = pages or {}
        self.asked = []
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
                web.asked.append((self.command, self.path, token))
                page = web.pages.get(self.command + self.path, web.pages.get(self.path, (404, {}, {})))
                status, headers, document = page(token) if callable(page) else page
                body = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                for name, value in dict({"Content-Type": "application/json"}, **headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = "http%s://127.0.0.1:%d" % ("s" if pair else "", self.server.server_port)
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = self.origin + "/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def resource(i, answer=None, **changes):
    """A server that trusts the issuer, and takes any token unless `answer` is another answer for those who have one."""
    web = Web()
    document = dict({"resource": web.url, "authorization_servers": [i.url]}, **changes)
    field = 'Basic realm="a, b=c", Bearer resource_metadata="%s", scope="use more"' % (web.origin + PRM + "/mcp")
    web.pages = {PRM + "/mcp": (200, {}, {k: v for k, v in document.items() if v is not None}),
                 "/mcp": lambda token: (answer or (200, {}, RESULT)) if token else (401, {"WWW-Authenticate": field}, {})}
    return web


def doctor(t, url, *args, status=0, token=None):
    """What it says; it is clean, and nothing of the token is in it."""
    if token is not None:
        path = os.path.join(t.directory(), "token")
        with open(path, "w") as out:
            out.write(token + "\n")
        args += ("--token-file", path)
    argv = [os.path.join(harness.BIN, "mcpgatectl"), "doctor", "--oauth", url] + list(args)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30 * harness.SLOW)
    out, err = done.stdout.decode(), done.stderr.decode()
    eq(done.returncode, status, "exit status; it said %r %r" % (out, err))
    found = RAW.search(out + err)
    ok(not found, "raw %r in" % (found and found.group()), out, err)
    for part in (token or "").split("."):
        ok(len(part) < 8 or part not in out + err, "a part of the token", out)
    return out if status < 2 else err


def has(out, *patterns):
    for pattern in patterns:
        ok(re.search(pattern, out, re.M), "no %r in" % pattern, out)


@case(daemon=False)
def the_gateway_itself(t):
    """AUTH-CH-01 AUTH-PRM-01 AUTH-AS-01: the whole way to a gateway; its session does not stay behind."""
    i = issuer.Issuer()
    origin = "http://127.0.0.1:%d" % free_port()
    url = origin + "/main/mcp"
    t.start({"main": {"script": {}, "scopes": ["use"]}}, {
        "public_url": origin, "listen": [{"address": origin[len("http://"):]}],
        "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "leeway": "1s"}]}})
    out = doctor(t, url)
    has(out, r"\A%s\n  ok    connect   127\.0\.0\.1, without TLS\n" % url,
        r"^  ok    challenge 401, and the metadata is at %s%s/main/mcp; scope: use$" % (origin, PRM),
        r"^  ok    resource  %s, by %s%s/main/mcp$" % (url, origin, PRM),
        r"^  ok    servers   1 authorization server\n  ok    issuer    %s\n  ok    endpoints %s/auth, %s/token$" % (i.url, i.url, i.url),
        r"^  ok    pkce      S256\n  warn  register  neither .*\n  ok    keys      1: 1 RSA$",
        r"^next: register the client .*; get a token for %s with the scope use, and try it with --token-file\n\Z" % url)
    out = doctor(t, url, token=i.token(url))
    has(out, r"^  ok    token     iss: %s\n  ok    token     signature: RS256 by the issuer's key k1$" % i.url, r'^  ok    token     aud: "%s"$' % url, r"^  ok    token     exp: good for another \d+ s$",
        r"^  ok    token     scope: use\n  ok    answer    with this token: \S+ \S+, revision 2025-11-25\nnext: nothing; clients get in")
    harness.wait_for(lambda: not t.daemon.children("main"), 5, "the end of its session")
    out = doctor(t, url, token=i.token(url, exp=int(time.time()) - 100), status=1)
    has(out, r"^  FAIL  token     exp: it expired 10\d s ago", r"^  FAIL  answer    401: .*\(invalid_token: The access token has expired\)$",
        r"^next: see to 'token' first: get a token .* for %s with the scope use$" % url)
    out = doctor(t, url, token=i.token("https://other.example/mcp", nbf=int(time.time()) + 1000), status=1)
    has(out, r'^  warn  token     aud: "https://other.example/mcp", not %s: ' % url, r"^  FAIL  token     nbf: ", r"^  FAIL  answer    401")
    out = doctor(t, url, token=i.token(url, scope="x"), status=1)
    has(out, r"^  warn  token     scope: x; requested but missing: use$", r"^  FAIL  answer    403: .*insufficient_scope.*; it needs the scope use$")
    has(doctor(t, url, token="opaque-secret-0123456789", status=1), r"^  ok    token     it is not a JWT", r"^  FAIL  answer    401")
    i.close()


@case(daemon=False)
def nothing_is_asked_for(t):
    """product §2: without authorization there is no further step; events are read as well."""
    t.start({"main": {"script": {}}})
    out = doctor(t, "http://%s:%d/main/mcp" % t.daemon.address)
    has(out, r"^  ok    challenge no authorization is required: .*, revision 2025-11-25\nnext: nothing; clients get in without a token\n\Z")
    events = b"id: 1\ndata:\n\nevent: message\ndata: " + json.dumps(RESULT).encode() + b"\n\n"
    web = Web({"/mcp": (200, {"Content-Type": "text/event-stream", "Mcp-Session-Id": "s1"}, events)})
    has(doctor(t, web.url), r"no authorization is required: fake red\\x1b\[31m \\u202egnp.exe 1, revision")
    eq([a[0] for a in web.asked], ["POST", "DELETE"], "its session is ended")
    web.close()


@case(daemon=False)
def no_such_server(t):
    """product §2: nobody listens, a certificate is bad, or what answers is something else."""
    has(doctor(t, "http://127.0.0.1:%d/mcp" % free_port(), status=1), r"^  FAIL  connect .*; does it run", r"^next: see to 'connect' first$")
    crt = os.path.join(t.directory(), "crt")
    issuer.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
                   "-keyout", crt + ".key", "-out", crt)
    for web, pattern in ((Web(pair=(crt, crt + ".key")), r"FAIL  connect .*; the certificate must name this host"),
                         (Web({"/mcp": (200, {"Content-Type": "text/html"}, b"<p>hello")}), "FAIL  challenge this is not an MCP server: status 200, text/html"),
                         (Web(), "FAIL  challenge status 404 .*is the path right"),
                         (Web({"/mcp": (308, {"Location": "/x"}, {})}), "FAIL  challenge status 308 .* do not follow redirects; .* /x$"),
                         (Web({"/mcp": (403, {}, {})}), "FAIL  challenge status 403 .*must get 401"),
                         (Web({"/mcp": (200, {}, b" " * 300000)}), "FAIL  connect   the answer is too large")):
        has(doctor(t, web.url, status=1), pattern)
        web.close()


@case(daemon=False)
def metadata_of_the_resource(t):
    """AUTH-PRM-03 AUTH-PRM-04 RFC 9728 3.3: what it is of, where it is, and whom it names."""
    i = issuer.Issuer()
    for changes, pattern in (({"resource": "http://127.0.0.1:1/mcp"}, r"FAIL  resource  .* is for the resource .*: scheme, host or port differ"),
                             ({"resource": HOSTILE}, r"FAIL  resource  .* is for the resource red\\x1b\[31m \\u202egnp.exe, .*it is not a URL"),
                             ({"resource": None}, r"FAIL  resource  .* names no `resource`"),
                             ({"authorization_servers": []}, r"FAIL  servers   `authorization_servers` is empty"),
                             ({"authorization_servers": [7]}, r"FAIL  servers ")):
        web = resource(i, **changes)
        has(doctor(t, web.url, status=1), pattern)
        web.close()
    web = resource(i)
    web.pages[PRM + "/mcp"][2]["resource"] = web.url + "/deeper"
    has(doctor(t, web.url, status=1), "FAIL  resource .*: the paths differ")
    web.pages[PRM + "/mcp"][2]["resource"] = web.url + "/"
    has(doctor(t, web.url, status=1), "FAIL  resource .*: the slash at its end is one too many; clients refuse it$")
    web.pages[PRM + "/mcp"][2]["resource"] = web.origin + "/"
    has(doctor(t, web.url), "^  warn  resource  %s/, by .*; but some clients accept only a resource that is exactly the URL" % web.origin)
    web.pages[PRM + "/mcp"][2].update(resource=web.url, resource_name=None)
    has(doctor(t, web.url, status=1), "FAIL  resource .* has a `resource_name` that is null; clients refuse")
    del web.pages[PRM + "/mcp"][2]["resource_name"]
    has(doctor(t, web.url), "^  warn  challenge 401, and the metadata is at .* only the first challenge, which is not Bearer; scope", "^  ok    resource  %s, by " % web.url)
    page = web.pages.pop(PRM + "/mcp")
    has(doctor(t, web.url, status=1), "FAIL  resource  %s%s/mcp: status 404$" % (web.origin, PRM))
    web.pages.update({PRM: page, "/mcp": (401, {}, {})})
    web.asked.clear()
    has(doctor(t, web.url), "^  warn  challenge 401, but WWW-Authenticate has no Bearer challenge", "^  ok    resource  .*, by %s%s$" % (web.origin, PRM))
    eq([a[:2] for a in web.asked], [("POST", "/mcp"), ("GET", "/mcp"), ("GET", PRM + "/mcp"), ("GET", PRM)])
    web.pages["GET/mcp"] = (405, {}, {})
    has(doctor(t, web.url), "^  warn  challenge GET without a token gets 405, not 401: ")
    web.pages["/mcp"] = (401, {"WWW-Authenticate": 'Bearer resource_metadata="file:///etc/passwd"'}, {})
    has(doctor(t, web.url, status=1), "FAIL  resource  file:///etc/passwd: it is not an https URL")
    web.close()
    i.close()


@case(daemon=False)
def authorization_servers(t):
    """AUTH-AS-01 AUTH-AS-02 RFC 8414 3.3: down, another's, without what a client needs; texts cannot act on a terminal."""
    fake = Web()
    web = resource(fake, authorization_servers=[fake.origin + "/a"])
    places = [p % "/a" for p in ("/.well-known/oauth-authorization-server%s", "/.well-known/openid-configuration%s", "%s/.well-known/openid-configuration")]
    whole = {"issuer": fake.origin + "/a", "authorization_endpoint": fake.origin + "/auth", "token_endpoint": fake.origin + "/token",
             "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "jwks_uri": fake.origin + "/jwks"}
    has(doctor(t, web.url, status=1), "FAIL  issuer    " + "; ".join(re.escape(fake.origin + p) + ": status 404" for p in places) + "$")
    eq([a[1] for a in fake.asked], places)
    issuer.Issuer().close()  # makes the key
    keys = {"keys": [issuer.KEY.jwk, {"kty": "oct", "k": "AAAA"}, {"kty": HOSTILE}]}
    fake.pages["/jwks"] = (200, {}, keys)
    for changes, status, pattern in (
            ({}, 0, r"^  ok    keys      3: 1 RSA, 1 oct, 1 red\\x1b\[31m \\u202egnp.exe; 2 cannot verify tokens$"),
            ({"registration_endpoint": "https://x/" + HOSTILE}, 0, r"^  ok    register  dynamic, at https://x/red\\x1b\[31m"),
            ({"client_id_metadata_document_supported": True}, 0, "^  ok    register  by client id metadata documents$"),
            ({"issuer": "https://" + HOSTILE}, 1, r"FAIL  issuer    the metadata of .* it is for another issuer, `https://red\\x1b\[31m"),
            ({"code_challenge_methods_supported": ["plain"]}, 1, "FAIL  pkce      .* does not list S256"),
            ({"code_challenge_methods_supported": None}, 1, "FAIL  pkce      .* is missing"),
            ({"token_endpoint": None}, 1, "FAIL  endpoints there is no token_endpoint"),
            ({"authorization_endpoint": "http://x.example/"}, 1, "FAIL  endpoints the authorization_endpoint is not an https URL"),
            ({"response_types_supported": None}, 1, "FAIL  endpoints response_types_supported does not list code$"),
            ({"response_types_supported": ["token"], "token_endpoint": None}, 1, "FAIL  endpoints there is no token_endpoint; response_types_supported does not"),
            ({"jwks_uri": fake.origin + "/none"}, 1, "FAIL  keys      .*/none: status 404"),
            ({"jwks_uri": None}, 0, "^  warn  keys      no jwks_uri")):
        document = {k: v for k, v in dict(whole, **changes).items() if v is not None}
        fake.pages[places[2]] = (200, {}, document)
        has(doctor(t, web.url, status=status), pattern)
    fake.close()
    has(doctor(t, web.url, status=1), "FAIL  issuer    %s" % re.escape(fake.origin + places[0]) + r": [^;]*; does it run, and is the port right\?$")
    web.close()


@case(daemon=False)
def token_goes_to_the_endpoint_alone(t):
    """SEC-08: nobody else sees it; what a refusal says is clean."""
    fake = Web()
    answer = (401, {"WWW-Authenticate": 'Bearer error="invalid_token", error_description="\x1b[1mno \\"entry\\""'}, {})
    web = resource(fake, answer)
    i = issuer.Issuer()
    token = i.token(["a", web.url], iss=HOSTILE, scope="use")
    out = doctor(t, web.url, token=token, status=1)
    has(out, r"warn  token     iss: red\\x1b\[31m \\u202egnp.exe, which is not one of", r'ok    token     aud: \["a", "%s"\]' % web.url,
        "warn  token     signature: not checked, because there are no keys of its issuer", "warn  token     scope: use; requested but missing: more", r'FAIL  answer    401: .*\(invalid_token: .*no "entry"\)')
    eq([a[:2] for a in web.asked + fake.asked if a[2]], [("POST", "/mcp")])
    for x in (web, fake, i):
        x.close()


@case(daemon=False)
def signatures(t):
    """AUTH-JWT-02 AUTH-JWT-05 AUTH-JWT-08: by a key of the issuer's, and the right one; else what is wrong, in words."""
    i = issuer.Issuer()
    web = resource(i)
    good = i.token(web.url)
    header, claims, signature = good.split(".")
    now = int(time.time())
    whole = {"iss": i.url, "aud": web.url, "sub": "alice", "exp": now + 600}

    def made(**header):
        return issuer.KEY.sign({k: v for k, v in dict({"alg": "RS256", "kid": "k1"}, **header).items() if v}, whole)
    changed = issuer.b64(json.dumps(dict(whole, sub="root")).encode())
    for token, pattern in (
            (made(kid="k2" + HOSTILE), r"signature: its kid is k2red\\x1b\[31m .*, and the issuer has no such key: k1$"),
            (made(alg="ES256"), "signature: the issuer's key k1 is not for ES256$"),
            (made(alg="PS256", kid=None), "signature: it has no kid, and there is not exactly one key for PS256: k1$"),
            (made(alg="HS256"), r"the algorithm `HS256` is not accepted; is it an access token\?$"),
            (made(alg="none"), "the algorithm `none` is not accepted"),
            (made(typ="dpop+jwt"), r"by its `typ` it is not a token of this kind; is it an access token\?$"),
            (header + "." + changed + "." + signature, "signature: RS256 by the issuer's key k1, and it is wrong: the token was changed")):
        out = doctor(t, web.url, token=token, status=1)
        has(out, r"^  FAIL  token     " + pattern, r"^next: see to 'token' first")
    has(doctor(t, web.url, token=made(kid=None)), "^  ok    token     signature: RS256 by the issuer's key without id$")
    web.close()
    i.close()


@case(daemon=False)
def authorities_of_ones_own(t):
    """product §2: --ca names more that certificates may be of; without it they are bad."""
    crt = os.path.join(t.directory(), "crt")
    issuer.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
                   "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", crt + ".key", "-out", crt)
    i = issuer.Issuer()
    web = Web(pair=(crt, crt + ".key"))
    field = 'Bearer resource_metadata="%s"' % (web.origin + PRM + "/mcp")
    web.pages = {PRM + "/mcp": (200, {}, {"resource": web.url, "authorization_servers": [i.url]}), "/mcp": (401, {"WWW-Authenticate": field}, {})}
    has(doctor(t, web.url, status=1), r"^  FAIL  connect .*; the certificate must name this host")
    has(doctor(t, web.url, "--ca", crt), r"^  ok    connect   127\.0\.0\.1, by TLS; the certificate is good$", r"^  ok    resource  %s, by" % web.url)
    has(doctor(t, web.url, "--ca", crt + ".key", status=2), r"/\S+ contains no certificate in PEM form")
    has(doctor(t, web.url, "--ca", "/nonexistent", status=2), "cannot open the file of certificates: No such file")
    web.close()
    i.close()


@case(daemon=False)
def usage(t):
    """product §2: exit status 2, and nothing is asked."""
    for url in ("http://example.com/mcp", "ftp://127.0.0.1/", "x", "https://h/#f", "https://u:p@h/"):
        has(doctor(t, url, status=2), r"^try: mcpgatectl --help$")
    has(doctor(t, "https://127.0.0.1/mcp", "x", status=2), "only doctor takes --oauth")
    has(doctor(t, "https://127.0.0.1/mcp", "--token-file", "/nonexistent", status=2), "cannot open the token file /nonexistent: No such file")
    has(doctor(t, "https://127.0.0.1/mcp", token="three words here", status=2), "must hold one token")


@case(daemon=False)
def static_tokens_are_judged_alone(t):
    """AUTH-TOK-01: where static tokens are asked for no OAuth is offered, which is no fault; the token is tried."""
    import hashlib
    token = "mcpg_" + "x" * 43
    hash = hashlib.sha256(token.encode()).hexdigest()
    t.start({"main": {}}, {"auth": {"mode": "token", "tokens": [{"name": "ci", "sha256": hash}]}})
    url = "http://%s:%d/main/mcp" % t.daemon.address
    has(doctor(t, url), "^  ok    resource  no OAuth is offered here; it uses static tokens", "^next: get a token from its operator, and try it with --token-file$")
    out = doctor(t, url, token=token)
    has(out, "^  ok    resource  no OAuth", "^  ok    answer    with this token: ", "^next: nothing; clients get in with a token like this$")
    ok("FAIL" not in out and "  token  " not in out, "nothing else is judged", out)
    has(doctor(t, url, token=token[:-1] + "y", status=1), "^  FAIL  answer    401", "^next: see to 'answer' first: get a token from its operator$")
