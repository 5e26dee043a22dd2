# SPDX-License-Identifier: Apache-2.0
"""
docs/guides/identity-providers.md: its configurations, and tokens of the shape that each provider gives them. The page's
configuration takes what the provider gives for this gateway, with the roles that it promises, and nothing else.
"""
import json
import os
import re
import time

import harness
import issuer
import mcp
from c63_auth_guide import begin
from harness import case, eq, ok

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "guides", "identity-providers.md")
RESOURCE = "https://mcp.example.com/files/mcp"
TENANT = "833ced3d-cb2e-41de-92f1-29e2af035ddc"
API = "6b932e2c-b430-42cb-89a6-8e5a61f8132c"
TOOLS = ["read_file", "write_file"]
SCRIPT = {"on": {"tools/list": [["result", {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}]],
                 "tools/call": [["result", {"content": []}]]}}


class Provider(issuer.Issuer):
    """Publishes its metadata where OpenID Connect Discovery has it, and nowhere else."""

    def __init__(self, path):
        super().__init__()
        self.url += path

    def documents(self):
        path = self.url.split("/", 3)[3] if self.url.count("/") > 2 else ""
        plain = super().documents()
        document = dict(plain.pop("/.well-known/oauth-authorization-server"), jwks_uri=self.url.rstrip("/") + "/jwks")
        base = ("/" + path).rstrip("/")
        return {base + "/.well-known/openid-configuration": document, base + "/jwks": plain["/jwks"]}

    def sign(self, claims, **header):
        now = int(time.time())
        whole = dict({"iss": self.url, "iat": now, "exp": now + 600}, **claims)
        head = dict({"alg": "RS256", "kid": "k1", "typ": "JWT"}, **header)
        return issuer.KEY.sign(*({k: v for k, v in part.items() if v is not None} for part in (head, whole)))


def configuration(name, provider):
    """The block of the page; what is replaced is the issuer's address, the port and the server's command."""
    with open(PAGE) as file:
        text = re.search(r"<!-- example: %s -->\n```yaml\n(.*?)^```$" % name, file.read(), re.M | re.S).group(1)
    argv = harness.child_argv(SCRIPT, "files")
    for pattern, new in ((r"issuer: https://\S+", "issuer: " + provider.url), (r"127\.0\.0\.1:8808", "127.0.0.1:0"),
                         (r"command: my-server", "command: %s\n    args: %s" % (argv[0], json.dumps(argv[1:])))):
        text, count = re.subn(pattern, lambda found: new, text)
        eq(count, 1, pattern)
    return text + "log: {level: debug}\n"


def start(t, name, path):
    provider = Provider(path)
    begin(t, configuration(name, provider))
    return provider


def post(t, token, method, params):
    body = mcp.encode(mcp.request(1, method, params))
    fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
    response = t.conn().request("POST", "/files/mcp", fields + mcp.bearer(token), body)
    response.read()
    return response


def shown(t, token, tools):
    """He is shown these tools, and may call each, unless its name begins with -: then scopes are lacking."""
    session = t.session("files", token=token)
    listed = [item["name"] for item in session.ask("tools/list", {})["result"]["tools"]]
    eq(listed, [name.lstrip("-") for name in tools], "tools")
    for name in TOOLS:
        call = {"name": name, "arguments": {}}
        if "-" + name in tools:
            eq(session.post(mcp.encode(mcp.request(9, "tools/call", call)), conn=None).status, 403, name)
        else:
            eq("result" in session.ask("tools/call", call), name in tools, name)


def refused(t, tokens):
    """For each what is wrong with it: the status; and the gateway still takes the good one, so it is that which was wrong."""
    for token, status, what in tokens:
        eq(post(t, token, "initialize", mcp.initialize()["params"]).status, status, what)


@case(daemon=False)
def keycloak(t):
    """AUTH-AUD-01 AUTH-JWT-07 SEC-56: a realm whose audience mapper names the resource; account alone is no audience."""
    p = start(t, "keycloak", "/realms/work")
    good = {"sub": "f3a1", "typ": "Bearer", "azp": "mcp-cli", "aud": [RESOURCE, "account"], "scope": "openid files profile", "sid": "s1",
            "realm_access": {"roles": ["dev"]}, "groups": ["/dev"], "jti": "onrtac:1"}
    shown(t, p.sign(good), TOOLS)
    shown(t, p.sign(dict(good, aud=RESOURCE, groups=["/staff"])), ["read_file"])
    refused(t, [(p.sign(dict(good, aud="account")), 401, "without the mapper"),
                (p.sign(dict(good, aud=None, groups=None)), 401, "a lightweight token"),
                (p.sign(dict(good, aud="mcp-cli", typ="ID")), 401, "an ID token"),
                (p.sign(dict(good, iss=p.url + "/")), 401, "a slash at the end of the issuer"),
                (p.sign(dict(good, iss=p.url.replace("work", "master"))), 401, "another realm"),
                (p.sign(dict(good, scope="openid profile")), 403, "without the scope"),
                (p.sign(dict(good, groups=None)), 403, "roles of the realm are nested, and no groups"),
                (p.sign(good, alg="HS512"), 401, "a refresh token"), (p.sign(good), 200, "the good one")])


@case(daemon=False)
def entra(t):
    """AUTH-AUD-02 AUTH-SCP-01 AUTH-SCP-05 SEC-56: v2 tokens; the scope has a long name for clients and a short one in the token."""
    p = start(t, "entra", "/%s/v2.0" % TENANT)
    good = {"aud": API, "sub": "3OBtLXUC2Z", "oid": "cb7eda1b", "tid": TENANT, "azp": "11111111-aaaa", "azpacr": "0", "ver": "2.0",
            "scp": "use write", "roles": ["Mcp.Dev"], "nbf": int(time.time())}
    told = post(t, None, "ping", {}).header("www-authenticate")
    ok('scope="%s/use"' % RESOURCE in told, "clients ask for the long name alone", told)
    shown(t, p.sign(good), TOOLS)
    v1 = dict(good, iss=p.url.replace("/v2.0", "/"), aud="api://" + API, appid="11111111-aaaa", azp=None, ver="1.0")
    overage = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": p.url + "/me"}}}
    refused(t, [(p.sign(v1), 401, "v1"), (p.sign(dict(good, aud="api://" + API)), 401, "the URI in place of the id"),
                (p.sign(dict(good, aud="00000003-0000-0000-c000-000000000000")), 401, "for Graph"),
                (p.sign(dict(good, iss=p.url.replace("833c", "0000"))), 401, "of another tenant"),
                (p.sign(dict(good, scp="User.Read")), 403, "another scope"), (p.sign(dict(good, scp=None)), 403, "a program's"),
                (p.sign(dict(good, roles=None, **overage)), 403, "groups that are elsewhere give no role"),
                (p.sign(good), 200, "the good one")])
    reader = p.sign(dict(good, scp="use"))
    shown(t, reader, ["read_file", "-write_file"])
    session = t.session("files", token=reader)
    lacking = session.post(mcp.encode(mcp.request(9, "tools/call", {"name": "write_file", "arguments": {}})), conn=None).response
    eq(re.search(' scope="(.*?)"', lacking.header("www-authenticate")).group(1), "%s/use %s/write" % (RESOURCE, RESOURCE), "no short names")


@case(daemon=False)
def auth0(t):
    """AUTH-JWT-09 AUTH-AUD-01 AUTH-SCP-02 SEC-56: the slash is a part of the issuer's name; aud is a list; claims have URLs as names."""
    p = start(t, "auth0", "/")
    good = {"sub": "auth0|1", "aud": [RESOURCE, p.url + "userinfo"], "azp": "K1AU", "scope": "openid files:write", "permissions": ["files:read"]}
    shown(t, p.sign(good), TOOLS)
    shown(t, p.sign(dict(good, scope="openid")), ["read_file", "-write_file"])
    action = dict(good, aud=RESOURCE, permissions=[], client_id="K1AU", azp=None, **{"https://mcp.example.com/roles": ["dev"]})
    shown(t, p.sign(action, typ="at+jwt"), TOOLS)
    opaque = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..aaaa.bbbb.cccc"
    refused(t, [(p.sign(dict(good, iss=p.url.rstrip("/"))), 401, "without the slash"), (opaque, 401, "encrypted, without an audience"),
                (p.sign(dict(good, aud=p.url + "userinfo")), 401, "for userinfo"),
                (p.sign(dict(good, permissions=["other"])), 403, "without a role"),
                (p.sign(good, alg="HS256"), 401, "signed with a secret"), (p.sign(good), 200, "the good one")])


@case(daemon=False)
def okta(t):
    """AUTH-JWT-07 AUTH-SCP-05 SEC-56: scopes are a list, the client is in cid, and the head names no type."""
    p = start(t, "okta", "/oauth2/aus1a2b3c4")
    good = {"ver": 1, "jti": "AT.1", "aud": RESOURCE, "cid": "0oa1", "uid": "00u1", "scp": ["files", "openid"], "sub": "ann@example.com",
            "auth_time": 1, "groups": ["Everyone", "dev"]}
    shown(t, p.sign(good, typ=None), TOOLS)
    refused(t, [(p.sign(dict(good, iss=p.url.replace("/oauth2/aus1a2b3c4", ""))), 401, "the org's own server"),
                (p.sign(dict(good, aud="api://default")), 401, "of the server that is there by default"),
                (p.sign(dict(good, scp=["openid"])), 403, "without the scope"),
                (p.sign(dict(good, groups=["Everyone"])), 403, "in no group of a role"), (p.sign(good), 200, "the good one")])


@case(daemon=False)
def cognito(t):
    """AUTH-AUD-02 AUTH-JWT-15 AUTH-SCP-02 SEC-56: without aud the client is the audience; ID tokens are refused."""
    p = start(t, "cognito", "/eu-central-1_a1B2c3D4e")
    good = {"sub": "aaaa", "cognito:groups": ["dev"], "token_use": "access", "client_id": "1example23456789", "username": "ann",
            "scope": "openid files/read files/write", "origin_jti": "o", "event_id": "e", "version": 2}
    shown(t, p.sign(good, typ=None), TOOLS)
    shown(t, p.sign(dict(good, aud=RESOURCE), typ=None), TOOLS)
    shown(t, p.sign(dict(good, scope="files/read")), ["read_file", "-write_file"])
    ident = dict(good, aud="1example23456789", token_use="id", client_id=None)
    refused(t, [(p.sign(dict(good, client_id="other")), 401, "another app client"),
                (p.sign(dict(good, aud="https://mcp.example.com/other/mcp")), 401, "bound to another resource"),
                (p.sign(dict(ident, at_hash="x")), 401, "an ID token"), (p.sign(ident), 403, "an ID token without at_hash"),
                (p.sign(dict(good, scope="aws.cognito.signin.user.admin")), 403, "of the API"),
                (p.sign(dict(good, **{"cognito:groups": None})), 403, "in no group"), (p.sign(good), 200, "the good one")])
