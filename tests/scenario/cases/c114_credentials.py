# SPDX-License-Identifier: Apache-2.0
"""Tokens that the gateway gets for servers behind a URL (servers.NAME.auth), and what of it reaches whom."""
import base64
import json
import os
import time

import harness
import issuer
import mcp
from c50_config import refused
from c71_ctl import ctl
from c100_reload import reload
from c107_remote import Fake, text_of
from harness import case, eq, ok, wait_for

ORIGIN = "https://mcp.example"
SECRET = "cl1ent-s3cret"


def answer(t):
    """A server that says what it was sent; without the tokens that `t.good` has it answers 401."""
    def serve(request, message):
        token = request.headers.get("Authorization")
        t.seen.append(token)
        if t.good is not None and token not in t.good:
            request.whole(401, b"no", WWW_Authenticate='Bearer error="invalid_token"')
        elif request.greet(message):
            return
        elif message is None:
            request.whole(405)
        else:
            request.result(message, {"content": [{"type": "text", "text": str(token)}]})
    return serve


def begin(t, grant="client_credentials", servers=1, give=None, config=None, more=None, **auth):
    """A daemon in front of that server, or several, and an issuer that gives tokens t1, t2, ..."""
    t.seen, t.good, t.good_s = [], None, 3600
    t.issuer, t.remote = issuer.Issuer(), Fake(answer(t))

    def count(form, head):
        subject = form.get("subject_token")
        name = "t%d" % len(t.issuer.asked_for) + ("-" + who(subject) if subject else "")
        return 200, {"access_token": name, "token_type": "Bearer", "expires_in": t.good_s}

    t.issuer.give = give or count
    one = dict({"url": t.remote.url, "auth": dict({"grant": grant, "issuer": t.issuer.url, "client_id": "gateway",
                                                   "client_secret": SECRET}, **auth)}, **(more or {}))
    whole = {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": t.issuer.url}]}}
    whole.update(config or {})
    t.config = whole
    return t.start({"main" if n == 0 else "other%d" % n: one for n in range(servers)}, whole)


def who(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]


def person(t, name, **claims):
    return t.issuer.token(ORIGIN + "/main/mcp", sub=name, **claims)


def call(s):
    return text_of(s.ask("tools/call", {"name": "t"}))


def end(t):
    t.issuer.close()
    t.remote.shutdown()
    t.remote.server_close()


@case(daemon=False, deadline=30)
def a_token_of_the_gateways_own(t):
    """BACK-URL-10: one request for all processes of a server, with what the configuration says; the token stands on every request."""
    begin(t, scopes=["wiki.read", "wiki.list"])
    for n in range(3):
        s = t.session("main", token=person(t, "p%d" % n))
        eq(call(s), "Bearer t1")
    (form, head), = t.issuer.asked_for
    eq(form, {"grant_type": "client_credentials", "scope": "wiki.read wiki.list", "resource": t.remote.url})
    eq(base64.b64decode(head["Authorization"].split()[1]).decode(), "gateway:" + SECRET)
    eq(set(t.seen), {"Bearer t1"})
    ok(len(t.remote.sent("GET")) > 0, "the stream, too")
    end(t)


@case(daemon=False, deadline=30)
def a_token_for_each_callers(t):
    """BACK-URL-10: the caller's token is exchanged, once for all of his sessions; nobody's is used for another, and it goes nowhere else."""
    begin(t, "token_exchange", audience="wiki")
    tokens = {name: person(t, name) for name in ("alice", "bob")}
    sessions = [(name, t.session("main", token=tokens[name])) for name in ("alice", "bob", "alice", "bob")]
    for name, s in sessions * 3:
        ok(call(s).endswith("-" + name), "whose token it is", name, call(s))
    eq(len(t.issuer.asked_for), 2)
    for form, _ in t.issuer.asked_for:
        eq(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange")
        eq(form["subject_token_type"], "urn:ietf:params:oauth:token-type:access_token")
        eq(form["audience"], "wiki")
        ok("resource" not in form and form["subject_token"] in tokens.values(), "what is exchanged")
    sent = json.dumps([(headers, body.decode()) for _, headers, body in t.remote.requests])
    ok(not any(text in sent for text in [*tokens.values(), SECRET]), "what the server gets")
    end(t)


@case(daemon=False, deadline=40)
def a_token_that_ends_is_got_anew(t):
    """BACK-URL-10: shortly before its end, when it is needed; the session goes on."""
    begin(t)
    t.good_s = 2
    s = t.session("main", token=person(t, "alice"))
    eq(call(s), "Bearer t1")
    wait_for(lambda: call(s) == "Bearer t2", 10, "the next token")
    end(t)


@case(daemon=False, deadline=40)
def the_end_of_the_callers_token_is_not_the_end(t):
    """BACK-URL-10: the next one that he shows is exchanged as soon as a new token is needed."""
    begin(t, "token_exchange")
    t.good_s = 2
    first, second = person(t, "alice"), person(t, "alice", jti="2")
    s = t.session("main", token=first)
    eq(call(s), "Bearer t1-alice")
    s.token = second
    wait_for(lambda: call(s) != "Bearer t1-alice", 10, "the next token")
    eq([form["subject_token"] for form, _ in t.issuer.asked_for], [first, second])
    end(t)


@case(daemon=False, deadline=40)
def a_refused_token_is_got_anew(t):
    """BACK-URL-09, BACK-URL-10: a 401 of the server fails that call; the next one has another token, but not at once again and again."""
    daemon = begin(t)
    s = t.session("main", token=person(t, "alice"))
    eq(call(s), "Bearer t1")
    t.good = {"Bearer t2"}
    refusal = s.ask("tools/call", {"name": "t"})["error"]["message"]
    ok("401" in refusal and "auth" in refusal, refusal)
    daemon.wait_log("server_away")
    eq(len(t.issuer.asked_for), 1)  # it had just been got
    wait_for(lambda: "result" in s.ask("tools/call", {"name": "t"}), 25, "a token that is taken")
    eq(len(t.issuer.asked_for), 2)
    end(t)


def failing(name, give, words, **more):
    def run(t):
        daemon = begin(t, give=give, **more)
        said = json.dumps(t.session("main", token=person(t, "alice"), check=False).started.final(20))
        ok("error" in said and SECRET not in said, "what the client is told", said)
        daemon.wait_log("credential_failed", "server=main", words)
        wait_for(lambda: words in ctl(t, "--json", "status")[0], 10, "the status says why")
        eq(t.remote.requests, [])
        end(t)
    run.__name__, run.__module__ = "no_token_" + name, __name__
    run.__doc__ = "BACK-URL-10: nothing is sent to the server without its token; the log and the status say why there is none."
    case(daemon=False, deadline=30)(run)


GOOD = {"access_token": "t", "token_type": "Bearer", "expires_in": 60}
failing("refused", lambda form, head: (400, {"error": "invalid_scope", "error_description": SECRET}), "invalid_scope")
failing("of_another_kind", lambda form, head: (200, dict(GOOD, token_type="mac")), "no bearer token")
failing("that_breaks_the_head", lambda form, head: (200, dict(GOOD, access_token="a\r\nX-Evil: 1")), "the token in its answer")
failing("that_is_over", lambda form, head: (200, dict(GOOD, expires_in=0)), "over already")
failing("from_a_broken_server", lambda form, head: (500, {"error": "x" * 5000}), "status 500")
