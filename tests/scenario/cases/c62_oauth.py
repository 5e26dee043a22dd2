# SPDX-License-Identifier: Apache-2.0
"""Tokens of issuers: the documents, the challenges, who waits for whom. oauth.md §3, §4, §13, §14, §16."""
import base64
import hashlib
import json
import os
import re
import select
import signal
import ssl
import time

import harness
import issuer
import mcp
import wire
from harness import case, eq, ok, wait_for

ORIGIN = "https://mcp.example.com"
RESOURCE = ORIGIN + "/main/mcp"
METADATA = ORIGIN + "/.well-known/oauth-protected-resource/main/mcp"
PRM = "/.well-known/oauth-protected-resource"
SERVERS = {"main": {"script": {}, "scopes": ["use"], "tools": {"scopes": {"echo": ["write", "loud"]}}}}
INIT = mcp.encode(mcp.initialize())
STATIC = "static-token-0123456789abcdef"


def begin(t, servers=None, is_open=True, issuers=1, of_issuer=None, **auth):
    """A gateway that trusts an issuer of its own."""
    made = [issuer.Issuer(is_open) for _ in range(issuers)]
    entries = [dict({"issuer": i.url, "leeway": "1s", "jwks_interval": "1s"}, **(of_issuer or {})) for i in made]
    config = {"public_url": ORIGIN, "auth": dict({"mode": "oauth", "issuers": entries}, **auth)}
    t.start(servers or SERVERS, config)
    return made[0] if issuers == 1 else made


def send(t, headers=(), body=INIT, path="/main/mcp", method="POST", timeout=wire.TIMEOUT):
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)] + list(headers)
    response = t.conn(timeout=timeout).request(method, path, fields, body)
    response.read()
    return response


def get(t, path, headers=(), method="GET"):
    response = t.conn().request(method, path, list(headers))
    response.read()
    return response


def challenge(response):
    fields = [v for k, v in response.headers if k == "www-authenticate"]
    eq(len(fields), 1, "WWW-Authenticate fields")
    return fields[0]


@case(daemon=False)
def resource_is_described(t):
    """SEC-15 AUTH-PRM-01 AUTH-PRM-02 AUTH-PRM-03 AUTH-PRM-04 AUTH-PRM-05 AUTH-PRM-06 AUTH-PRM-11: while the issuer is down."""
    i = begin(t, initial_scopes=["more"])
    i.close()
    document = get(t, PRM + "/main/mcp")
    eq(json.loads(document.body), {"resource": RESOURCE, "authorization_servers": [i.url], "scopes_supported": ["use", "more"],
                                   "bearer_methods_supported": ["header"]})
    for path in (PRM, PRM + "/", PRM + "/main/mcp/", PRM + "/main/mcp?x=1"):
        eq(get(t, path).body, document.body, path)
    spoofed = get(t, PRM + "/main/mcp", [("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil.example")])
    eq(spoofed.body, document.body)
    eq(get(t, PRM + "/main/mcp", [("Authorization", "Bearer nonsense")]).status, 200, "AUTH-PRM-07")
    eq(get(t, PRM + "/main/mcp", method="POST").status, 405, "AUTH-PRM-07")


@case(daemon=False)
def resources_may_end_with_a_slash(t):
    """AUTH-PRM-01 AUTH-CH-01: the document is where the challenge says, whatever the path; a resource that is the whole origin has the
    root's; of any other a slash at its end is no part."""
    begin(t, {"whole": {"script": {}, "path": "/"}, "part": {"script": {}, "path": "/part/"}})
    for path, where, resource in (("/", PRM + "/", "/"), ("/part/", PRM + "/part", "/part"), ("/part", PRM + "/part", "/part")):
        eq(challenge(send(t, path=path)), 'Bearer resource_metadata="%s%s"' % (ORIGIN, where))
        for place in where.rstrip("/"), where.rstrip("/") + "/":
            document = get(t, place)
            eq((document.status, json.loads(document.body)["resource"]), (200, ORIGIN + resource), place)


@case(daemon=False)
def documents_are_public(t):
    """AUTH-PRM-08 AUTH-PRM-09 AUTH-PRM-10 AUTH-FAC-06: any web page may read them; what is not there is JSON."""
    begin(t)
    page = [("Origin", "https://page.example")]
    for method in ("GET", "HEAD"):
        response = get(t, PRM + "/main/mcp", page, method)
        eq((response.status, response.header("access-control-allow-origin")), (200, "*"))
        ok("max-age=3600" in response.header("cache-control"), "it may be kept")
        eq(response.header("access-control-allow-credentials"), None)
    response = get(t, PRM, page + [("Access-Control-Request-Method", "GET")], "OPTIONS")
    eq(response.status, 204)
    ok("MCP-Protocol-Version" in response.header("access-control-allow-headers"), "header")
    for path in (PRM + "/no/mcp", "/.well-known/nothing", "/authorize?x=y", "/token", "/register",
                 "/.well-known/oauth-authorization-server/main/mcp", "/main/mcp/.well-known/openid-configuration"):
        response = get(t, path)
        eq((response.status, response.is_json), (404, True), path)
        ok(json.loads(response.body) and b"static tokens" not in response.body, path)
    eq(get(t, "/main/mcp", page).status, 403, "the endpoint itself is not for every page")


@case(daemon=False)
def several_servers_have_no_root_document(t):
    """AUTH-PRM-02 AUTH-AUD-04: nobody could tell which one is meant; a token of one is nothing at the other."""
    i = begin(t, {"main": {"script": {}}, "other": {"script": {}, "audience": ["api://both", RESOURCE]}, "third": {"script": {}}})
    eq(get(t, PRM).status, 404)
    eq(json.loads(get(t, PRM + "/other/mcp").body)["resource"], ORIGIN + "/other/mcp")
    token = i.token(RESOURCE)
    eq(t.session("main", token=token).ask("ping")["result"], {})
    response = send(t, mcp.bearer(token), path="/third/mcp")
    eq((response.status, "not for this resource" in challenge(response)), (401, True))
    eq(t.session("other", token=token).ask("ping")["result"], {}, "AUTH-AUD-02: it is configured on purpose")
    eq(t.session("other", token=i.token("api://both")).ask("ping")["result"], {})


@case(daemon=False)
def client_may_be_the_audience(t):
    """AUTH-AUD-02: of issuers that write no aud; never instead of one that is there."""
    i = begin(t, of_issuer={"audience": ["app"], "audience_claim": "client_id"})
    eq(t.session("main", token=i.token(None)).ask("ping")["result"], {})
    for token in i.token(None, client_id="other"), i.token("other"), i.token(None, client_id=None):
        eq(send(t, mcp.bearer(token)).status, 401)


@case(daemon=False)
def challenges_have_one_form(t):
    """AUTH-CH-01 AUTH-CH-02 AUTH-CH-03 AUTH-CH-04 AUTH-CH-05 AUTH-CH-07 FRONT-SEC-05 AUTH-SCP-09: the whole field, byte for byte."""
    i = begin(t, initial_scopes=["more"])
    first = 'Bearer resource_metadata="%s", scope="use more"' % METADATA
    eq(challenge(send(t)), first)
    eq(challenge(send(t, [("X-Forwarded-Host", "evil.example")])), first)
    old = send(t, mcp.bearer(i.token(RESOURCE, exp=int(time.time()) - 100)))
    eq((old.status, challenge(old)), (401, first + ', error="invalid_token", error_description="The access token has expired"'))
    low = [send(t, mcp.bearer(i.token(RESOURCE, scope="write other"))) for _ in range(2)]
    eq({(r.status, challenge(r)) for r in low},
       {(403, 'Bearer resource_metadata="%s", scope="use write", error="insufficient_scope", '
              'error_description="The access token lacks a scope that this needs"' % METADATA)})
    bad = send(t, [("Authorization", "Bearer a b")])
    eq((bad.status, 'error="invalid_request"' in challenge(bad)), (400, True))


@case(daemon=False)
def step_up_asks_for_all_at_once(t):
    """AUTH-SCP-02 AUTH-SCP-03 AUTH-SCP-05 AUTH-SCP-07: what the tool needs, what the server needs, what the token has."""
    i = begin(t)
    low = i.token(RESOURCE, scope=None, scp=["use", "loud", "unknown"])
    s = t.session(token=low)
    ok("echo" in [tool["name"] for tool in s.ask("tools/list")["result"]["tools"]], "AUTH-SCP-07: lists show what may be asked for")
    response = send(t, mcp.bearer(low) + [("Mcp-Session-Id", s.id)], mcp.encode(mcp.request(3, "tools/call", {"name": "echo"})))
    eq(response.status, 403)
    ok('scope="use write loud"' in challenge(response), challenge(response))
    s.token = i.token(RESOURCE, scope="use write loud")
    eq(s.echo("x"), "x", "the session goes on with the token that has more")


@case(daemon=False)
def challenge_can_stand_in_a_result(t):
    """AUTH-SCP-11: where it is configured, for a call of a tool; 403 for all else."""
    i = begin(t, {"main": {"script": {}, "scopes": ["use"], "tools": {"scopes": {"echo": ["write"]}, "challenge_in_result": True}}})
    low = i.token(RESOURCE)
    s = t.session(token=low, version="2025-03-26")
    head = mcp.bearer(low) + [("Mcp-Session-Id", s.id)]
    call = mcp.request("a", "tools/call", {"name": "echo", "arguments": {"text": "x"}})
    response = send(t, head, mcp.encode(call))
    whole = 'Bearer resource_metadata="%s", scope="use write", error="insufficient_scope", ' % METADATA
    text = "The access token lacks a scope that this needs"
    eq((response.status, json.loads(response.body)),
       (200, {"jsonrpc": "2.0", "id": "a", "result": {"content": [{"type": "text", "text": text}], "isError": True,
                                                      "_meta": {"mcp/www_authenticate": [whole + 'error_description="%s"' % text]}}}))
    eq(send(t, head, mcp.encode([call])).status, 403, "a batch")
    events = t.conn().request("POST", "/main/mcp", head + [("Content-Type", "application/json"), ("Accept", "text/event-stream")], mcp.encode(call))
    events.read()
    eq(events.status, 403, "who takes no JSON")
    eq(send(t, mcp.bearer(i.token(RESOURCE, scope="write")) + [("Mcp-Session-Id", s.id)], mcp.encode(call)).status, 403, "the scope of the server")
    s.token = i.token(RESOURCE, scope="use write")
    eq(s.echo("x"), "x")


@case(daemon=False)
def principal_is_issuer_subject_and_client(t):
    """AUTH-SES-01 AUTH-SES-02 SEC-04: another subject or another client of the same person is a stranger."""
    i = begin(t)
    s = t.session(token=i.token(RESOURCE))
    ping = mcp.encode(mcp.request(1, "ping"))
    for other in ({"sub": "bob"}, {"client_id": "other"}, {"client_id": None}, {"sub": "alic"}):
        token = i.token(RESOURCE, **other)
        eq(send(t, mcp.bearer(token) + [("Mcp-Session-Id", s.id)], ping).status, 404, str(other))
    s.token = i.token(RESOURCE, scope="use write")
    eq(s.ask("ping")["result"], {}, "AUTH-SES-04")


@case(daemon=False)
def client_need_not_count(t):
    """AUTH-SES-01: bind_client: false; for services without a subject the client still counts."""
    i = begin(t, bind_client=False)
    ping = mcp.encode(mcp.request(1, "ping"))
    s = t.session(token=i.token(RESOURCE))
    eq(send(t, mcp.bearer(i.token(RESOURCE, client_id="other")) + [("Mcp-Session-Id", s.id)], ping).status, 200)
    s = t.session(token=i.token(RESOURCE, sub=None))
    eq(send(t, mcp.bearer(i.token(RESOURCE, sub=None, client_id="other")) + [("Mcp-Session-Id", s.id)], ping).status, 404)


@case(daemon=False)
def good_tokens_may_still_be_unwanted(t):
    """AUTH-JWT-15 AUTH-JWT-13 AUTH-ISS-03: 403 without a challenge, which no token would change; the signature is 401."""
    servers = {"main": {"script": {}, "scopes": ["use"]}, "picky": {"script": {}, "clients": ["app", "ide"]},
               "modern": {"script": {}, "algorithms": ["ES256", "EdDSA"]}}
    i = begin(t, servers, tokens=[{"name": "ci", "sha256": hashlib.sha256(STATIC.encode()).hexdigest(), "scopes": ["use"]}],
              of_issuer={"required_claims": {"tid": ["t1", "t2"], "groups": ["mcp"]}})

    def token(name, **claims):
        return i.token(ORIGIN + "/" + name + "/mcp", **dict({"tid": "t2", "groups": ["all", "mcp"]}, **claims))
    eq(t.session("main", token=token("main")).ask("ping")["result"], {})
    eq(t.session("picky", token=token("picky")).ask("ping")["result"], {})
    for name, claims in (("main", {"tid": "t3"}), ("main", {"tid": None}), ("main", {"groups": ["mcp2"]}), ("main", {"groups": None, "scope": "x"}),
                         ("picky", {"client_id": "other"}), ("picky", {"client_id": None})):
        response = send(t, mcp.bearer(token(name, **claims)), path="/" + name + "/mcp")
        eq((response.status, response.header("www-authenticate"), json.loads(response.body)),
           (403, None, {"error": "forbidden", "error_description": "This caller may not use this server"}), str(claims))
        eq((response.header("cache-control"), response.header("retry-after")), ("no-store", None))
    response = send(t, mcp.bearer(token("modern")), path="/modern/mcp")
    eq((response.status, "not signed in an accepted way" in challenge(response)), (401, True))
    eq(t.session("picky", token=STATIC).ask("ping")["result"], {}, "static tokens have no client")
    response = send(t, mcp.bearer(token("main", exp=1, tid="t3")))
    eq((response.status, "expired" in challenge(response)), (401, True), "what is no good is asked for anew")
    t.daemon.wait_log("token_refused", "server=main", "reason=policy")


@case(daemon=False)
def same_subject_of_another_issuer_is_another(t):
    """AUTH-ISS-01 AUTH-SES-02: the issuer is a part of who somebody is."""
    a, b = begin(t, issuers=2)
    s = t.session(token=a.token(RESOURCE))
    ping = mcp.encode(mcp.request(1, "ping"))
    eq(send(t, mcp.bearer(b.token(RESOURCE)) + [("Mcp-Session-Id", s.id)], ping).status, 404)
    eq(t.session(token=b.token(RESOURCE)).ask("ping")["result"], {})


@case(daemon=False)
def static_tokens_are_taken_as_well(t):
    """AUTH-TOK-08: beside those of issuers, with the same challenges."""
    begin(t, tokens=[{"name": "ci", "sha256": hashlib.sha256(STATIC.encode()).hexdigest(), "scopes": ["use"]}])
    eq(t.session(token=STATIC).ask("ping")["result"], {})
    ok("resource_metadata" in challenge(send(t, mcp.bearer(STATIC + "x"))), "challenge")


@case(daemon=False, deadline=40)
def nobody_else_waits_for_the_issuer(t):
    """AUTH-KEY-07 AUTH-AS-04 AUTH-CH-09: a token whose keys are being fetched waits, its body unread; others do not."""
    i = begin(t, is_open=False, tokens=[{"name": "ci", "sha256": hashlib.sha256(STATIC.encode()).hexdigest(), "scopes": ["use"]}])
    s = t.session(token=STATIC)
    token = i.token(RESOURCE)
    body = b" " * 300000 + INIT
    conn = t.conn()
    conn.send(conn.head("POST", "/main/mcp", mcp.bearer(token) + [("Content-Type", "application/json"), ("Accept", mcp.BOTH),
                                                                ("Expect", "100-continue")], len(body)))
    early = t.conn()  # does not wait for 100 Continue, and sends a second request behind the first
    headers = mcp.bearer(token) + [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    early.send(early.head("POST", "/main/mcp", headers, len(INIT)) + INIT + early.head("GET", "/healthz", [], 0))
    for k in range(20):
        eq(s.ask("ping")["result"], {}, "others go on")
    eq(select.select([conn.sock, early.sock], [], [], 0.3)[0], [], "neither 100 Continue nor an answer while it waits")
    leaver = t.conn()
    leaver.send(leaver.head("POST", "/main/mcp", headers, len(body)) + body[:1000])
    time.sleep(0.2)
    leaver.close()
    i.gate.set()
    eq(conn.response().status, 100)
    conn.send(body)
    response = conn.response()
    response.read()
    eq(response.status, 200)
    t.sessions.append(mcp.Stub(t.daemon.address, "/main/mcp", response.header("mcp-session-id"), token))
    first = early.response()
    first.read()
    eq(first.status, 200)
    t.sessions.append(mcp.Stub(t.daemon.address, "/main/mcp", first.header("mcp-session-id"), token))
    second = early.response()
    second.read()
    eq(second.status, 200, "the request behind it")


@case(daemon=False, deadline=60)
def verdict_that_cannot_be_had_is_503(t):
    """AUTH-OPQ-04 AUTH-AS-04: no challenge, which would make the client throw its token away; later it is good."""
    i = begin(t, is_open=False)
    token = i.token(RESOURCE)
    response = send(t, mcp.bearer(token), timeout=20)
    eq((response.status, [k for k, _ in response.headers if k == "www-authenticate"]), (503, []))
    eq((response.header("retry-after"), json.loads(response.body)["error"]), ("5", "temporarily_unavailable"))
    eq(get(t, "/.well-known/oauth-authorization-server").status, 503, "AUTH-FAC-04")
    i.gate.set()

    def is_open():
        response = send(t, mcp.bearer(token))
        t.sessions.append(mcp.Stub(t.daemon.address, "/main/mcp", response.header("mcp-session-id"), token))
        return response.status == 200
    wait_for(is_open, 20, "the keys come in the end")


@case(daemon=False)
def old_clients_find_the_issuer_here(t):
    """AUTH-FAC-01 AUTH-FAC-02 AUTH-FAC-05: a copy of what is true here, under our name; PRM never names us."""
    i = begin(t)
    t.session(token=i.token(RESOURCE))
    response = get(t, "/.well-known/oauth-authorization-server", [("Origin", "https://page.example")])
    document = json.loads(response.body)
    eq(document, {"issuer": ORIGIN, "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token",
                  "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]})
    eq(response.header("access-control-allow-origin"), "*")
    document = json.loads(get(t, "/.well-known/openid-configuration").body)
    eq((document["issuer"], document["jwks_uri"], document["subject_types_supported"]), (ORIGIN, i.url + "/jwks", ["public"]))
    ok(ORIGIN not in json.loads(get(t, PRM).body)["authorization_servers"], "PRM")


@case(daemon=False)
def facade_can_be_off(t):
    """AUTH-FAC-01 AUTH-TOK-07: off; not by itself with two issuers; and nothing at all without mode oauth."""
    paths = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
    begin(t, metadata_facade="off")
    for path in paths:
        eq(get(t, path).status, 404, path)
    t.daemon = None
    begin(t, issuers=2)
    for path in paths:
        eq(get(t, path).status, 404, path)
    t.daemon = None
    t.start({"main": {}}, {"auth": {"mode": "token", "tokens": [{"name": "a", "sha256": "0" * 64}]}})
    for path in paths + (PRM, PRM + "/main/mcp", "/register"):
        response = get(t, path)
        eq((response.status, response.is_json), (404, True), path)


@case(daemon=False)
def registration_hands_out_one_client(t):
    """AUTH-DCR-01 AUTH-DCR-02: the configured client, without secret, and only for redirect URIs that are allowed."""
    begin(t, registration_facade={"client_id": "mcp-public", "redirect_uris": ["https://claude.ai/api/mcp/auth_callback", "cursor://x/cb"]})

    def register(*uris, body=None):
        body = json.dumps({"redirect_uris": list(uris), "client_name": "x"}).encode() if body is None else body
        return send(t, [], body, "/register")
    good = ["http://127.0.0.1:7777/cb", "http://localhost/cb", "http://[::1]:80", "https://claude.ai/api/mcp/auth_callback", "cursor://x/cb"]
    response = register(*good)
    document = json.loads(response.body)
    eq((response.status, document["client_id"], document["redirect_uris"]), (201, "mcp-public", good))
    eq((document["token_endpoint_auth_method"], "client_secret" in document), ("none", False))
    ok("no-store" in response.header("cache-control"), "not kept")
    for bad in ("https://evil.example/cb", "http://127.0.0.1.evil.example/cb", "http://127.0.0.1:x/cb", "http://127.0.0.1@evil.example/",
                "http://localhost:70000/", "http://127.0.0.1/#f", "https://claude.ai/api/mcp/auth_callback/x", "javascript:alert(1)",
                "http://127.0.0.1\\@evil.example", "http://127.0.0.1:80@evil.example", ""):
        response = register("http://127.0.0.1/cb", bad)
        eq((response.status, json.loads(response.body)["error"]), (400, "invalid_redirect_uri"), bad)
    eq(json.loads(register().body)["error"], "invalid_redirect_uri", "none at all")
    for body in (b"{{", b"[]", b'"x"', b'{"redirect_uris":["http://127.0.0.1/"],"redirect_uris":[]}', b" " * 20000):
        eq(register(body=body).status, 400, body[:20].decode())
    eq(get(t, "/register").status, 405)
    document = json.loads(get(t, PRM).body)
    ok("registration_endpoint" not in document, "PRM")


@case(daemon=False)
def bound_tokens_need_their_proof(t):
    """AUTH-POP-01 AUTH-POP-03: off, a bound token is 401 and another scheme is no credential; required, a plain one is 401."""
    i = begin(t)
    token = i.token(RESOURCE, cnf={"jkt": "0" * 43})
    eq(send(t, mcp.bearer(token)).status, 401)
    eq(challenge(send(t, [("Authorization", "DPoP " + token)])), 'Bearer resource_metadata="%s", scope="use"' % METADATA)
    t.daemon = None
    i = begin(t, dpop="required")
    plain = i.token(RESOURCE)
    for header in ([("Authorization", "DPoP " + plain)], [("Authorization", "DPoP " + plain), ("DPoP", "x.y.z")], mcp.bearer(plain)):
        response = send(t, header)
        eq(response.status, 401, str(header[0][1][:6]))
        ok(", DPoP algs=" in challenge(response) and challenge(response).startswith("Bearer "), challenge(response))
    document = json.loads(get(t, PRM).body)
    eq(document["dpop_bound_access_tokens_required"], True)
    ok("ES256" in document["dpop_signing_alg_values_supported"], "algorithms")
    eq(send(t, [("Authorization", "DPoP " + plain), ("DPoP", "a"), ("DPoP", "b")]).status, 400, "two proofs")


@case(daemon=False)
def proof_is_for_the_url_that_was_asked(t):
    """AUTH-POP-02: `htu` is the URL of the request, as it was sent: with a slash at its end or without, through a proxy that takes the path
    of public_url away or not."""
    i = issuer.Issuer()
    t.start(SERVERS, {"public_url": ORIGIN + "/gw", "auth": {"mode": "oauth", "dpop": "on", "issuers": [{"issuer": i.url}]}})
    jwk = {name: issuer.KEY.jwk[name] for name in ("e", "kty", "n")}
    thumbprint = hashlib.sha256(json.dumps(jwk, sort_keys=True, separators=(",", ":")).encode()).digest()
    resource = ORIGIN + "/gw/main/mcp"
    token = i.token(resource, cnf={"jkt": issuer.b64(thumbprint)})
    ath = issuer.b64(hashlib.sha256(token.encode()).digest())

    def status(path, htu):
        proof = issuer.KEY.sign({"typ": "dpop+jwt", "alg": "RS256", "jwk": jwk},
                                {"htm": "POST", "htu": htu, "iat": int(time.time()), "jti": path + htu, "ath": ath})
        return send(t, [("Authorization", "DPoP " + token), ("DPoP", proof)], path=path).status
    for path in ("/gw/main/mcp", "/main/mcp"):
        eq(status(path, resource), 200, path)
        eq(status(path + "/", resource + "/"), 200, path + "/")
        eq(status(path, ORIGIN + "/gw/other/mcp"), 401, "another")


def make_pair(folder, name, extension):
    crt, key = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")
    issuer.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                   "-addext", extension, "-keyout", key, "-out", crt)
    os.chmod(key, 0o600)
    return crt, key


class TlsDaemon(harness.Daemon):
    """Clients show the certificate `self.client`."""

    def use_url(self, url):
        super().use_url(url)
        self.plain = self.address
        self.address = self.at(self.client)

    def at(self, client):
        context = ssl.create_default_context(cafile=self.server[0])
        context.load_cert_chain(*client)
        return wire.TlsAddress(self.plain, context)


@case(daemon=False)
def token_bound_to_a_certificate(t):
    """AUTH-POP-01 AUTH-POP-04: it is worth something on connections with that certificate alone."""
    folder = t.directory()
    TlsDaemon.server = make_pair(folder, "localhost", "subjectAltName=DNS:localhost")
    TlsDaemon.client, other = (make_pair(folder, n, "extendedKeyUsage=clientAuth") for n in ("client", "other"))
    with open(os.path.join(folder, "clients.crt"), "w") as out:
        for pair in (TlsDaemon.client, other):
            with open(pair[0]) as f:
                out.write(f.read())
    i = issuer.Issuer()
    daemon = TlsDaemon(SERVERS, {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url}]}, "listen": [
        {"address": "127.0.0.1:0", "tls": {"certificate": TlsDaemon.server[0], "key": TlsDaemon.server[1],
                                           "client_ca": os.path.join(folder, "clients.crt")}}]})
    t.daemons.append(daemon)
    t.daemon = daemon
    with open(TlsDaemon.client[0]) as f:
        thumbprint = issuer.b64(hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).digest())
    bound = i.token(RESOURCE, cnf={"x5t#S256": thumbprint})
    eq(t.session(token=bound).ask("ping")["result"], {})
    eq(send(t, mcp.bearer(i.token(RESOURCE, cnf={"x5t#S256": thumbprint[::-1]}))).status, 401, "another thumbprint")
    daemon.address = daemon.at(other)
    eq(send(t, mcp.bearer(bound)).status, 401, "the certificate of somebody else")
    daemon.address = daemon.at(TlsDaemon.client)


@case(daemon=False)
def token_is_nowhere_to_be_found(t):
    """AUTH-DWN-01 AUTH-LOG-02 SEC-08: no part of a token in the log, whatever becomes of it."""
    i = begin(t)
    good, bad = i.token(RESOURCE), i.token(RESOURCE, exp=1)
    s = t.session(token=good)
    seen = json.dumps(s.probe()) + json.dumps(t.daemon.messages(s.pid()))
    eq(send(t, mcp.bearer(bad)).status, 401)
    eq(send(t, mcp.bearer(good[:-5])).status, 401)
    eq(send(t, path="/main/mcp?access_token=" + good).status, 400)
    wait_for(lambda: t.daemon.log("token_refused"), 5, "the log says why")
    for part in good.split(".") + bad.split("."):
        ok(part[:24] not in seen, "the child has seen it")
        eq([l for l in t.daemon.lines if part[:24] in l], [], "lines of the log")


def user_of(session):
    return dict(e.split("=", 1) for e in session.probe()["environ"])["USER_ID"]


@case(daemon=False)
def servers_are_told_whose_they_are(t):
    """AUTH-DWN-01 AUTH-DWN-02 AUTH-DWN-03: each process has the claims of its own caller, and nobody's token; who lacks one is refused."""
    env = {"USER_ID": "${claim:sub}-${claim:team}"}
    i = begin(t, {name: {"script": {}, "isolation": name, "env": env} for name in ("session", "principal")})
    for name in ("session", "principal"):
        aud = ORIGIN + "/" + name + "/mcp"
        tokens = {sub: i.token(aud, sub=sub, team=team) for sub, team in (("alice", "red"), ("bob", 7), ("carol", True))}
        sessions = {sub: t.session(name, token=token) for sub, token in tokens.items()}
        eq({sub: user_of(s) for sub, s in sessions.items()}, {"alice": "alice-red", "bob": "bob-7", "carol": "carol-true"}, name)
        for s in sessions.values():
            probe = str(s.probe()) + t.daemon.record(s.pid()).decode()
            eq([sub for sub, token in tokens.items() if token in probe], [], "tokens at a child")
        for team in (None, ["red"], "a\nb", "", "x" * 1025):
            response = send(t, mcp.bearer(i.token(aud, sub="dave", team=team)), path="/" + name + "/mcp")
            error = json.loads(response.body)["error"]
            eq((response.status, error["code"], error["data"]["reason"]), (403, -32603, "forbidden"), name)
            eq((response.header("www-authenticate"), "team" in error["message"]), (None, False))
    t.daemon.wait_log("claim_missing", "server=session", "principal=dave", "claim=team")


@case(daemon=False, deadline=30)
def a_file_for_each_caller(t):
    """AUTH-DWN-02 AUTH-DWN-05: {file: PATH} with a claim in it: each process has what its caller's file holds when it starts; who has none is refused, and nobody else notices."""
    folder = t.directory()
    outside = os.path.join(folder, "outside.key")
    keys = os.path.join(folder, "keys")
    os.mkdir(keys)

    def write(name, text):
        path = os.path.join(keys, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)

    for name in ("alice", "bob", "a b\u00f6b", "."):
        write(name + ".key", "key of %s\n" % name)
    write("empty.key", "")
    with open(outside, "w") as f:
        f.write("not his")
    os.chmod(outside, 0o600)
    env = {"USER_ID": {"file": keys + "/${claim:sub}.key"}}
    i = begin(t, {name: {"script": {}, "isolation": name, "env": env} for name in ("session", "principal")})
    for name in ("session", "principal"):
        aud = ORIGIN + "/" + name + "/mcp"
        for sub in ("alice", "bob", "a b\u00f6b"):
            eq(user_of(t.session(name, token=i.token(aud, sub=sub))), "key of " + sub, name)
        for sub in ("carol", "../outside", "alice/../bob", "a..b", ".", ".hidden", "empty"):
            response = send(t, mcp.bearer(i.token(aud, sub=sub)), path="/" + name + "/mcp")
            error = json.loads(response.body)["error"]
            eq((response.status, error["data"]["reason"], error["message"]),
               (403, "forbidden", "There is no credential of this caller for this server"), sub)
        eq(user_of(t.session(name, token=i.token(aud, sub="bob"))), "key of bob", "others are served")
    t.daemon.wait_log("credential_missing", "server=session", keys + "/carol.key")
    t.daemon.wait_log("credential_missing", "server=session", "the claim sub cannot be a part of a file's name")
    t.daemon.never_logged("server_failing")
    write("alice.key", "another")
    eq(user_of(t.session("session", token=i.token(ORIGIN + "/session/mcp", sub="alice"))), "another", "the next process")


@case(daemon=False, deadline=30)
def a_credential_that_is_gone_is_looked_for_now_and_then(t):
    """AUTH-DWN-05 REL-46: a process that somebody's subscription needs, and whose file is gone: a start each second, and back when it is there."""
    path = os.path.join(t.directory(), "alice.key")

    def write():
        with open(path, "w") as f:
            f.write("hers")
        os.chmod(path, 0o600)
    write()
    env = {"USER_ID": {"file": os.path.dirname(path) + "/${claim:sub}.key"}}
    i = begin(t, {"principal": {"script": {}, "isolation": "principal", "env": env}})
    s = t.session("principal", token=i.token(ORIGIN + "/principal/mcp", sub="alice"))
    eq(s.ask("resources/subscribe", {"uri": "r:a"})["result"], {})
    os.unlink(path)
    began = time.monotonic()
    os.kill(t.daemon.children("principal")[0], signal.SIGKILL)
    wait_for(lambda: len(t.daemon.log("credential_missing")) >= 3, 20, "it is tried again")
    ok(time.monotonic() - began > 1.5, "not all the time", time.monotonic() - began)
    write()
    wait_for(lambda: t.daemon.children("principal"), 20, "her process is back")
    eq(user_of(s), "hers")


@case(daemon=False)
def claims_are_those_of_the_session(t):
    """AUTH-DWN-02 SEC-07: one caller with tokens that say different things: each session's processes have what its own token said, also the next ones."""
    env = {"USER_ID": "${claim:sub}-${claim:team}"}
    i = begin(t, {name: {"script": {}, "isolation": name, "env": env} for name in ("session", "principal")})
    for name in ("session", "principal"):
        aud = ORIGIN + "/" + name + "/mcp"
        sessions = {team: t.session(name, token=i.token(aud, sub="alice", team=team)) for team in ("red", "blue")}
        for _ in range(2):
            for team in ("red", "blue", "red"):
                eq(user_of(sessions[team]), "alice-" + team, name)
            other = t.session(name, token=i.token(aud, sub="alice", team="blue"))
            eq(user_of(other), "alice-blue", name)
            other.delete()
            pid = sessions["red"].pid()
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5, "the end of the process")


@case(daemon=False)
def gateway_signs_who_it_is(t):
    """AUTH-OPQ-01: private_key_jwt: a token for the issuer, signed with the key of the file, another one for each question."""
    i, folder = issuer.Issuer(), t.directory()
    key, public, made = (os.path.join(folder, name) for name in ("key.pem", "public.pem", "signature"))
    issuer.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
    issuer.openssl("pkey", "-in", key, "-pubout", "-out", public)
    os.chmod(key, 0o600)
    asked = {"endpoint": i.url + "/introspect", "client_id": "gateway", "auth_method": "private_key_jwt",
             "client_key": {"file": key}, "client_key_id": "ours"}
    t.start(SERVERS, {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "introspection": asked}]}})
    words = {"active": True, "client_id": "app", "aud": RESOURCE, "scope": "use", "exp": int(time.time()) + 600}
    numbers = set()
    for token in ("one", "two"):
        i.known[token] = dict(words, sub=token)
        eq(send(t, mcp.bearer(token)).status, 200)
        form = i.forms[-1]
        eq((form["token"], form["client_id"]), (token, "gateway"))
        eq(form["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        signed, signature = form["client_assertion"].rsplit(".", 1)
        header, claims, signature = (base64.urlsafe_b64decode(part + "==") for part in signed.split(".") + [signature])
        eq(json.loads(header), {"alg": "RS256", "typ": "JWT", "kid": "ours"})
        with open(made, "wb") as f:
            f.write(signature)
        issuer.openssl("dgst", "-sha256", "-verify", public, "-signature", made, stdin=signed.encode())
        claims = json.loads(claims)
        eq((claims["iss"], claims["sub"], claims["aud"]), ("gateway", "gateway", i.url))
        ok(claims["iat"] <= time.time() < claims["exp"] <= claims["iat"] + 60, str(claims))
        numbers.add(claims["jti"])
    eq(len(numbers), 2, "numbers of the tokens")
    with open(key) as f:
        secret = f.read().splitlines()[1]
    ok(not any(secret in line for line in t.daemon.lines), "the key in the log")


def find_fetcher(t, but=()):
    """The process that fetches and was started last, if it is none of those."""
    def newest():
        pids = [int(l.split("pid=")[1].split()[0]) for l in t.daemon.log("helper_start")]
        return pids[-1] if pids and pids[-1] not in but and harness.is_alive(pids[-1]) else None
    return wait_for(newest, 5, "a process that fetches")


@case(daemon=False)
def what_fetches_is_a_process_of_its_own(t):
    """SEC-10 SEC-61 REL-43: the gateway fetches nothing itself; whoever does may die and is replaced, as the gateway may."""
    i = issuer.Issuer()
    asked = {"endpoint": i.url + "/introspect", "client_id": "rs", "client_secret": "secret-for-the-issuer"}
    t.start(SERVERS, {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "introspection": asked}]}})
    words = {"active": True, "client_id": "app", "aud": RESOURCE, "scope": "use", "exp": int(time.time()) + 600}
    i.known = {token: dict(words, sub=token) for token in ("known", "cut", "later", "last")}
    eq(send(t, mcp.bearer("known")).status, 200)
    first, gateway = find_fetcher(t), t.daemon.gateway
    eq(os.path.basename(os.readlink("/proc/%d/exe" % first)), "mcpgated-fetch")
    if os.getuid() == 0:
        with open("/proc/%d/maps" % first) as of_fetcher, open("/proc/%d/maps" % gateway) as of_gateway:
            eq(["libcurl" in f.read() for f in (of_fetcher, of_gateway)], [True, False])
    i.voice.clear()
    conn = t.conn(timeout=5)
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    conn.send(conn.head("POST", "/main/mcp", mcp.bearer("cut") + fields, len(INIT)) + INIT)
    wait_for(lambda: "cut" in i.questions, 5, "the question")
    os.kill(first, signal.SIGKILL)
    response = conn.response()
    response.read()
    eq(response.status, 503, "what was asked of it")
    t.daemon.wait_log("helper_exit", "pid=%d" % first, "signal=9")
    i.voice.set()
    eq(send(t, mcp.bearer("later")).status, 200)
    second = find_fetcher(t, [first])
    eq((t.daemon.gateway, harness.is_alive(gateway)), (gateway, True), "the gateway goes on")
    t.daemon.gateway = None
    os.kill(gateway, signal.SIGKILL)
    find_fetcher(t, [first, second])
    wait_for(lambda: not harness.is_alive(second), 5, "the end of the one before")
    t.daemon.gateway = wait_for(t.daemon.find_gateway, 5, "a new gateway")
    wait_for(lambda: len(t.daemon.log("gateway_ready")) == 2, 5, "its readiness")
    eq(send(t, mcp.bearer("last")).status, 200)


def check(t):
    report = json.loads(t.conn(address=t.daemon.admin).request("GET", "/check").read())
    return {p["kind"]: (p["severity"], p["about"], p["text"]) for p in report["problems"]}


@case(daemon=False, deadline=30)
def an_issuer_that_is_away_is_told(t):
    """AUTH-AS-04: of an issuer that is down or misspelt from the start, check and status know, though nobody has a token; then that it is there."""
    i = issuer.Issuer()
    i.documents = lambda: {}
    t.start(SERVERS, {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "jwks_interval": "1s"}]}})
    wait_for(lambda: "issuer_without_keys" in check(t), 10, "the problem")
    severity, about, text = check(t)["issuer_without_keys"]
    eq((severity, about), ("failing", i.url))
    ok(text.startswith("issuer %s: no keys since 2" % i.url) and "(its metadata: " in text, "since when, and why", text)
    begun = time.time()
    wait_for(lambda: time.time() - begun > 1.1, 5, "another second")
    eq(check(t)["issuer_without_keys"][2], text, "still since then")
    ok(text in t.conn(address=t.daemon.admin).request("GET", "/status").read().decode().replace("\\/", "/"), "in status and on the page")

    def counted(kind):
        text = t.conn(address=t.daemon.admin).request("GET", "/metrics").read().decode()
        return re.findall(r'^mcpgated_problem\{kind="%s"\} (\d+)$' % kind, text, re.M)
    eq(counted("issuer_without_keys"), ["1"], "what its alert looks at")
    del i.documents
    wait_for(lambda: "issuer_without_keys" not in check(t), 20, "its keys")
    eq([kind for kind in check(t) if kind.startswith("issuer_")], [], "it is there")
    eq(counted("issuer_without_keys"), ["0"])
    i.documents = lambda: {}
    claims = {"iss": i.url, "aud": RESOURCE, "sub": "a", "client_id": "c", "exp": int(time.time()) + 600}
    send(t, mcp.bearer(issuer.KEY.sign({"alg": "RS256", "kid": "another", "typ": "at+jwt"}, claims)))  # whose key is looked for
    wait_for(lambda: "issuer_away" in check(t), 10, "that it is away again")
    severity, about, text = check(t)["issuer_away"]
    eq((severity, about, "issuer_without_keys" in check(t)), ("warn", i.url, False))
    ok("(its keys: status 404)" in text and "by the keys from before" in text, "why, and what that means", text)
    i.close()


@case(daemon=False)
def an_issuer_that_has_not_answered_yet_is_none_that_fails(t):
    """AUTH-AS-04: while the first question is on its way, nothing is told."""
    i = issuer.Issuer()
    i.gate.clear()
    t.start(SERVERS, {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "jwks_interval": "1s"}]}})
    wait_for(lambda: i.asked, 5, "the question")
    eq([kind for kind in check(t) if kind.startswith("issuer_")], [], "no answer, and no failure")
    i.gate.set()
    i.close()


@case(daemon=False)
def the_log_names_callers_and_audiences(t):
    """AUTH-LOG-01: the line of a session names its caller; that of a refusal says which audience a token has, and which it needs."""
    i = begin(t)
    t.session(token=i.token(RESOURCE)).delete()
    for event in ("session_start", "session_end"):
        t.daemon.wait_log(event, "principal=alice ")
    eq(send(t, mcp.bearer(i.token([ORIGIN + "/main", "x"]))).status, 401)
    t.daemon.wait_log("caller_refused", "cause=\"`aud` is %s/main,x, not %s\"" % (ORIGIN, RESOURCE))
    eq(send(t, mcp.bearer(i.token(None))).status, 401)
    t.daemon.wait_log("caller_refused", "cause=\"`aud` is missing, not %s\"" % RESOURCE)
