# SPDX-License-Identifier: Apache-2.0
"""
What the gateway says of callers (servers.NAME.auth.grant assertion): a server that takes nobody's word but verifies each
token with the keys that the gateway publishes, by the openssl program.
"""
import base64
import json
import os
import tempfile
import threading
import time

import issuer
import mcp
import wire
from c50_config import program, refused
from c71_ctl import ctl
from c80_stateless import ask as ask_modern, fields, message
from c100_reload import reload
from c107_remote import Fake, good, text_of
from c110_processes_kept import kill_gateway
from harness import case, eq, ok, wait_for

ORIGIN = "https://mcp.example"
AUDIENCE = "https://wiki.example/mcp"
KEYS = "/.well-known/jwks.json"
HASHES = {"secret": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"}
# SubjectPublicKeyInfo of a point on P-256, up to the point. RFC 5480
POINT = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + b"\x04"


def raw(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def der(tag, body):
    size = len(body)
    length = bytes([size]) if size < 128 else bytes([0x80 | (size.bit_length() + 7) // 8]) + size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + length + body


def integer(data):
    data = data.lstrip(b"\0") or b"\0"
    return der(2, (b"\0" if data[0] & 0x80 else b"") + data)


def public_key(jwk):
    if jwk["kty"] == "EC":
        eq((jwk["crv"], len(raw(jwk["x"])), len(raw(jwk["y"]))), ("P-256", 32, 32))
        return POINT + raw(jwk["x"]) + raw(jwk["y"])
    numbers = der(0x30, integer(raw(jwk["n"])) + integer(raw(jwk["e"])))
    return der(0x30, bytes.fromhex("300d06092a864886f70d0101010500") + der(3, b"\0" + numbers))


def verify(token, keys):
    """The claims; fails unless one of the keys has signed them, under its own name."""
    head, body, signature = token.split(".")
    header = json.loads(raw(head))
    key, = [key for key in keys if key["kid"] == header["kid"]]
    eq((header["typ"], header["alg"], key["alg"], key["use"]), ("JWT", {"EC": "ES256", "RSA": "RS256"}[key["kty"]], header["alg"], "sig"))
    signature = raw(signature)
    if key["kty"] == "EC":
        eq(len(signature), 64)
        signature = der(0x30, integer(signature[:32]) + integer(signature[32:]))
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("key", "signature")]
        for path, data in zip(paths, (public_key(key), signature)):
            with open(path, "wb") as file:
                file.write(data)
        issuer.openssl("dgst", "-sha256", "-verify", paths[0], "-keyform", "DER", "-signature", paths[1], stdin=("%s.%s" % (head, body)).encode())
    return json.loads(raw(body))


def keys(t, status=200):
    answer = t.conn().request("GET", KEYS)
    eq(answer.status, status)
    body = answer.read()
    return json.loads(body)["keys"] if status == 200 else None


def new_key(t, kind="EC"):
    """In the file, in place of the one that is there."""
    options = {"EC": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"), "RSA": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
               "ED25519": ("-algorithm", "ED25519")}[kind]
    pem = issuer.openssl("genpkey", *options)
    with open(os.open(t.key_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)


def serve(t):
    def answer(request, message):
        token = request.headers.get("Authorization", "")
        t.seen.append(token)
        if request.greet(message):
            return
        if message is None:
            request.whole(405)
        elif message["method"] == "tools/list":
            request.result(message, {"tools": []})
        else:
            request.result(message, {"content": [{"type": "text", "text": token}]})
    return answer


def begin(t, config=None, kind="EC", servers=1, auth=None, **more):
    t.seen, t.key_file = [], os.path.join(t.directory(), "assertion.pem")
    new_key(t, kind)
    t.issuer, t.remote = issuer.Issuer(), Fake(serve(t))
    t.one = dict({"url": t.remote.url, "auth": dict({"grant": "assertion", "audience": AUDIENCE}, **(auth or {}))}, **more)
    t.config = {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": t.issuer.url}],
                                               "tokens": [{"name": "ci", "sha256": HASHES["secret"]}]}}
    t.config.update(config or {})
    t.config["auth"].setdefault("assertion_key", {"file": t.key_file})
    return t.start({"main" if n == 0 else "other%d" % n: t.one for n in range(servers)}, t.config)


def end(t):
    t.issuer.close()
    t.remote.shutdown()
    t.remote.server_close()


def person(t, name, place="main", **claims):
    return t.issuer.token("%s/%s/mcp" % (ORIGIN, place), **dict({"sub": name}, **claims))


def shown(s, tool="t"):
    kind, token = text_of(s.ask("tools/call", {"name": tool})).split(" ")
    eq(kind, "Bearer")
    return token


def said(t, s, tool="t"):
    """What the server is told of who calls, verified."""
    return verify(shown(s, tool), keys(t))


@case(daemon=False, deadline=40)
def the_server_knows_who_calls(t):
    """BACK-URL-11: who calls, from whom that is known, by what client, with what scopes and roles; for this server, for minutes, by us."""
    begin(t, {"roles": {"reader": {"when": {"groups": ["r"]}, "allow": {"main": ["*"]}}, "writer": {"when": {"groups": ["w"]}, "allow": {"main": ["*"]}}}})
    token = person(t, "anna \"x\" ä", client_id="editor", scope="mcp:a mcp:b", groups=["r"])
    s = t.session("main", token=token)
    claims, now = said(t, s), time.time()
    ok(now - 30 < claims["iat"] <= now + 1 and claims["exp"] == claims["iat"] + 300, claims, now)
    one = {key: claims.pop(key) for key in ("iat", "exp", "jti")}
    eq(claims, {"iss": ORIGIN, "aud": AUDIENCE, "sub": "anna \"x\" ä", "client_id": "editor", "scope": "mcp:a mcp:b", "roles": ["reader"],
                "sub_id": {"format": "iss_sub", "iss": t.issuer.url, "sub": "anna \"x\" ä"}})
    eq(said(t, s)["jti"], one["jti"], "it is kept")
    sent = json.dumps([(headers, body.decode()) for _, headers, body in t.remote.requests])
    ok(token not in sent and len(set(t.seen)) == 1 and len(t.remote.sent("GET")) > 0, "what the server gets", set(t.seen))
    end(t)


@case(daemon=False, deadline=60)
def nobody_is_taken_for_another(t):
    """BACK-URL-11: people, one by two issuers' words, one with two clients, and a static token of the same name, at once and in turn, of both eras."""
    begin(t, isolation="principal", era="legacy")
    second = issuer.Issuer()
    t.config["auth"]["issuers"].append({"issuer": second.url})
    t.config["auth"]["tokens"][0]["name"] = "alice"
    reload(t, {"main": t.one}, t.config)
    second_alice = second.token(ORIGIN + "/main/mcp", sub="alice", client_id="a")
    tokens = {(t.issuer.url, "alice", "a"): person(t, "alice", client_id="a"), (t.issuer.url, "alice", "b"): person(t, "alice", client_id="b"),
              (t.issuer.url, "bob", "a"): person(t, "bob", client_id="a"), (second.url, "alice", "a"): second_alice, (ORIGIN, "alice", "alice"): "secret"}
    sessions = {who: t.session("main", token=token) for who, token in tokens.items()}
    failures = []

    def work(who):
        for _ in range(5):
            claims = json.loads(raw(shown(sessions[who]).split(".")[1]))
            if (claims["sub_id"]["iss"], claims["sub_id"]["sub"], claims["client_id"], claims["sub"]) != (*who, who[1]):
                failures.append((who, claims))
    threads = [threading.Thread(target=work, args=(who,)) for who in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eq(failures, [])
    for who, token in tokens.items():
        params = {"name": "t", "arguments": {}}
        status, found = ask_modern(t, "main", "tools/call", params, [*fields(message("tools/call", params)), ("Authorization", "Bearer " + token)])
        claims = verify(text_of(found[-1]).split(" ")[1], keys(t))
        eq((status, claims["sub_id"]["iss"], claims["sub"], claims["client_id"]), (200, *who))
    second.close()
    end(t)


@case(daemon=False, deadline=40)
def the_last_token_shown_counts(t):
    """BACK-URL-11: other scopes of the same caller are told with the next request, in a new token."""
    begin(t)
    s = t.session("main", token=person(t, "anna", scope="a b"))
    before = said(t, s)
    s.token = person(t, "anna", scope="a")
    after = said(t, s)
    eq((before["scope"], after["scope"]), ("a b", "a"))
    ok(before["jti"] != after["jti"], "another token")
    end(t)


@case(daemon=False, deadline=40)
def who_cannot_be_named(t):
    """BACK-URL-11: a token without sub names nobody: its caller is refused, and told; so is who has too much to be said of him. Others are served."""
    begin(t)
    for n in range(2):
        for token in (t.issuer.token(ORIGIN + "/main/mcp", sub=None, client_id="robot"), person(t, "x", scope=" ".join("a-scope-with-a-long-name-%d" % k for k in range(200)))):
            refusal = t.session("main", token=token, check=False).started
            eq((refusal.final(20)["error"]["message"], refusal.status), ("There is no credential of this caller for this server", 403))
    t.daemon.wait_log("credential_failed", "with a sub")
    t.daemon.wait_log("credential_failed", "4096 bytes")
    eq(said(t, t.session("main", token="secret"))["sub"], "ci")
    eq(t.daemon.log("server_failing"), [])
    told = "".join(ctl(t, "tools", "main", "--claims", '{"sub": "anna"}', status=1))
    ok("credential" in told, "whom the operator only names the gateway does not vouch for", told)
    end(t)


@case(daemon=False, deadline=40)
def callers_of_an_endpoint(t):
    """BACK-URL-11: an endpoint's servers are told each of who calls the endpoint; whom each is for is its own."""
    begin(t, {"endpoints": {"all": {"servers": {"main": {"prefix": "a_"}, "other1": {"prefix": "b_"}}}}}, servers=2)
    t.one["auth"]["audience"] = "https://two.example"
    reload(t, {"main": dict(t.one, auth={"grant": "assertion"}), "other1": t.one}, t.config)
    for name in ("alice", "bob"):
        s = t.session("all", token=person(t, name, "all"))
        eq([(said(t, s, tool)["sub"], said(t, s, tool)["aud"]) for tool in ("a_t", "b_t")], [(name, t.remote.url), (name, "https://two.example")])
    end(t)


@case(daemon=False, deadline=40)
def where_there_is_no_issuer(t):
    """BACK-URL-11: static tokens alone: each is told by its name, as one of ours; with its scopes and roles."""
    auth = {"mode": "token", "tokens": [{"name": "ci", "sha256": HASHES["secret"], "scopes": ["b", "a"], "roles": ["reader"]}]}
    begin(t, {"auth": auth, "roles": {"reader": {"allow": {"main": ["*"]}}}}, kind="RSA", scopes=["a"])
    claims = said(t, t.session("main", token="secret"))
    eq({key: claims[key] for key in ("sub", "sub_id", "client_id", "roles")},
       {"sub": "ci", "sub_id": {"format": "iss_sub", "iss": ORIGIN, "sub": "ci"}, "client_id": "ci", "roles": ["reader"]})
    eq(sorted(claims["scope"].split()), ["a", "b"])
    end(t)


@case(daemon=False, deadline=60)
def the_key_changes(t):
    """BACK-URL-12: after a reload with another key new tokens are signed with that; the old one stays published for those that are about; nothing is interrupted."""
    begin(t)
    s = t.session("main", token=person(t, "anna"))
    old, (first,) = shown(s), keys(t)
    new_key(t, "RSA")
    reload(t, {"main": t.one}, t.config)
    both = keys(t)
    eq((len(both), first in both, {key["kty"] for key in both}), (2, True, {"EC", "RSA"}))
    eq(verify(old, both)["sub"], "anna")
    eq(said(t, s)["sub"], "anna")
    new = shown(t.session("main", token=person(t, "bob")))
    eq(json.loads(raw(new.split(".")[0]))["alg"], "RS256")
    eq(verify(new, both)["sub"], "bob")
    reload(t, {"main": t.one}, t.config)
    eq(keys(t), both, "nothing has changed")
    new_key(t)
    reload(t, {"main": t.one}, t.config)
    eq(len(keys(t)), 3)
    del t.config["auth"]["assertion_key"]
    reload(t, {"main": {"url": t.remote.url}}, t.config)
    eq(len(keys(t)), 3, "those that are about")
    end(t)


@case(daemon=False, deadline=40)
def a_key_that_is_none_changes_nothing(t):
    """BACK-URL-12: a reload with a broken key is refused, and the one before goes on."""
    begin(t)
    before = keys(t)
    with open(t.key_file, "w", encoding="ascii") as file:
        file.write("-----BEGIN PRIVATE KEY-----\n")
    t.expect_error_log("reload_refused")
    reload(t, {"main": t.one}, t.config, status=1)
    t.daemon.wait_log("reload_refused", "assertion_key: it is not a private key")
    eq(keys(t), before)
    eq(said(t, t.session("main", token=person(t, "anna")))["sub"], "anna")
    end(t)


@case(daemon=False, deadline=40)
def processes_that_outlive_the_gateway(t):
    """BACK-URL-11: the next gateway has the same key, and tells them a new token before anything else."""
    begin(t, {"sessions": {"persist": True}})
    s = t.session("main", token=person(t, "anna"))
    before, pid, published = said(t, s), t.daemon.children("main"), keys(t)
    kill_gateway(t)
    after = said(t, s)
    eq((after["sub"], t.daemon.children("main"), keys(t)), ("anna", pid, published))
    ok(after["jti"] != before["jti"], "a new one")
    end(t)


@case(daemon=False, deadline=40)
def the_keys_are_public(t):
    """BACK-URL-12: for anybody and any web page, as what they are; no cache answers for us; only the public part."""
    begin(t)
    answer = t.conn().request("GET", KEYS)
    eq((answer.status, *[answer.header(name) for name in ("content-type", "access-control-allow-origin", "cache-control")]),
       (200, "application/jwk-set+json", "*", "public, no-cache"))
    key, = json.loads(answer.read())["keys"]
    eq(sorted(key), ["alg", "crv", "kid", "kty", "use", "x", "y"])
    tag = answer.header("etag")
    eq(t.conn().request("GET", KEYS, [("If-None-Match", tag)]).status, 304)
    eq(t.conn().request("GET", KEYS, [("If-None-Match", '"x"'), ("Origin", "https://evil.example")]).status, 200)
    eq(t.conn().request("OPTIONS", KEYS, [("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")]).status, 204)
    eq(t.conn().request("POST", KEYS, [], b"{}").status, 405)
    new_key(t)
    reload(t, {"main": t.one}, t.config)
    ok(t.conn().request("GET", KEYS, [("If-None-Match", tag)]).status == 200, "a verifier that asks again is told of the new one")
    printed = program("--print-config", "-c", t.daemon.file).stdout
    ok("assertion_key: " in printed and "PRIVATE" not in printed, "the key is a secret", printed)
    t.daemon = t.start({"main": {}})
    keys(t, 404)
    end(t)


@case(daemon=False)
def what_an_assertion_needs(t):
    """product §4: -t says with file and line what is missing, what cannot stand beside, and which key cannot be used."""
    t.key_file = os.path.join(t.directory(), "a.pem")
    new_key(t)
    url, key = "url: 'https://a.example/mcp'", "assertion_key: {file: %s}" % t.key_file
    tokens = "public_url: 'https://g.example'\nauth: {mode: token, tokens: [{name: a, sha256: %s}], %%s}\n" % HASHES["secret"]
    for head, server, words in (
            ("public_url: 'https://g.example'\nauth: {%s}\n" % key, "{%s, auth: {grant: assertion}}" % url, ("set auth.mode to token or oauth",)),
            (tokens % "x_api_key: false", "{%s, auth: {grant: assertion}}" % url, ("auth.assertion_key",)),
            (tokens.replace("public_url", "#") % key, "{%s, auth: {grant: assertion}}" % url, ("public_url",)),
            (tokens % key, "{%s, isolation: shared, auth: {grant: assertion}}" % url, ("isolation session or principal",)),
            (tokens % (key + ", bind_client: false"), "{%s, auth: {grant: assertion}}" % url, ("assertion needs auth.bind_client",)),
            (tokens % key, "{%s, auth: {grant: assertion, issuer: 'https://i.example', resource: 'https://a.example'}}" % url,
             ("auth.issuer: is not used with grant assertion", "auth.resource: is not used")),
            (tokens % key, "{url: 'unix:///run/a.sock#/mcp', auth: {grant: assertion}}", ("'audience' is missing",)),
            (tokens % key, "{%s, headers: {authorization: x}, auth: {grant: assertion}}" % url, ("cannot stand beside an Authorization",))):
        for word in words:
            refused(head + "servers: {a: %s}\n" % server, word)
    good(tokens % key + "servers: {a: {%s, auth: {grant: assertion}}}\n" % url)
    for kind, word in (("ED25519", "cannot be signed with Ed25519"), ("EC", None)):
        new_key(t, kind)
        if word:
            refused(tokens % key + "servers: {a: {%s, auth: {grant: assertion}}}\n" % url, word)
    with open(t.key_file, "w", encoding="ascii") as file:
        file.write("x")
    refused(tokens % key + "servers: {}\n", ":2:")
    refused(tokens % key + "servers: {}\n", "auth.assertion_key: it is not a private key in PEM form")
