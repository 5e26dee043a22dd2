# SPDX-License-Identifier: Apache-2.0
"""Tokens that the gateway gets for servers behind a URL (servers.NAME.auth), and what of it reaches whom."""
import base64
import json
import threading
import time

import issuer
import mcp
from c50_config import refused
from c71_ctl import ctl
from c80_stateless import ask as ask_modern, fields, message
from c100_reload import reload
from c110_processes_kept import kill_gateway
from c107_remote import Fake, good, text_of
from harness import case, eq, ok, wait_for

ORIGIN = "https://mcp.example"
SECRET = "cl1ent-s3cret"
JSON_HEAD = [("Content-Type", "application/json"), ("Accept", mcp.BOTH)]
SHA256_OF_SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"


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
        elif message["method"] == "tools/list":
            request.result(message, {"tools": []})
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
    t.one = one = dict({"url": t.remote.url, "auth": dict({"grant": grant, "issuer": t.issuer.url, "client_id": "gateway",
                                                   "client_secret": SECRET}, **auth)}, **(more or {}))
    whole = {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": t.issuer.url}]}}
    whole.update(config or {})
    t.config = whole
    return t.start({"main" if n == 0 else "other%d" % n: one for n in range(servers)}, whole)


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def who(token):
    return claims(token)["sub"]


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
    """BACK-URL-10, SEC-80: the caller's token is exchanged, once for all of his sessions; nobody's is used for another, and it goes nowhere else."""
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
    wait_for(lambda: "result" in s.ask("tools/call", {"name": "t"}), 25, "a token that is taken")
    eq(len(t.issuer.asked_for), 2)
    t.good = {"Bearer t3"}
    ok("error" in s.ask("tools/call", {"name": "t"}) and "error" in s.ask("tools/call", {"name": "t"}), "it has just been got")
    eq(len(t.issuer.asked_for), 2)
    wait_for(lambda: "result" in s.ask("tools/call", {"name": "t"}), 25, "the next one")
    eq(len(t.issuer.asked_for), 3)
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


@case(daemon=False, deadline=40)
def servers_come_and_go(t):
    """BACK-URL-10: a reload gives another secret and other servers with tokens, before and behind: each process goes on with its own."""
    begin(t, scopes=["main"])
    t.good_s = 2
    s = t.session("main", token=person(t, "alice"))
    eq(call(s), "Bearer t1")
    pid, other = t.daemon.children("main"), dict(t.one, auth=dict(t.one["auth"], scopes=["other"]), start={"try": False})
    changed = dict(t.one, auth=dict(t.one["auth"], client_secret="an0ther"))
    reload(t, {"before": other, "main": changed, "next": other}, t.config)
    t.issuer.give = lambda form, head: (200, {"access_token": form["scope"], "token_type": "bearer", "expires_in": 2})
    wait_for(lambda: call(s) == "Bearer main", 10, "a token that is made with what there is now")
    eq(base64.b64decode(t.issuer.asked_for[-1][1]["Authorization"].split()[1]).decode(), "gateway:an0ther")
    eq(t.daemon.children("main"), pid)
    eq(call(t.session("before", token=t.issuer.token(ORIGIN + "/before/mcp"))), "Bearer other")
    reload(t, {"main": {"url": t.remote.url}}, t.config)
    eq(call(t.session("main", token=person(t, "alice"))), "None")
    eq(call(s), "Bearer main")  # until it is over: then it needs a new session, as its server is no more
    wait_for(lambda: "configuration" in json.dumps(s.ask("tools/call", {"name": "t"})), 10, "no other token")
    end(t)


@case(daemon=False, deadline=40)
def processes_that_outlive_the_gateway(t):
    """BACK-URL-10: the next gateway tells them a token before anything else."""
    begin(t, "token_exchange", config={"sessions": {"persist": True}})
    s = t.session("main", token=person(t, "alice"))
    eq(call(s), "Bearer t1-alice")
    pid = t.daemon.children("main")
    kill_gateway(t)
    eq(call(s), "Bearer t2-alice")
    eq(t.daemon.children("main"), pid)
    end(t)


@case(daemon=False, deadline=40)
def callers_of_an_endpoint(t):
    """BACK-URL-10: the token that the caller has shown to the endpoint is exchanged for that of each of its servers."""
    begin(t, "token_exchange", servers=2, config={"endpoints": {"all": {"servers": {"main": {"prefix": "a_"}, "other1": {"prefix": "b_"}}}}})
    t.issuer.give = lambda form, head: (200, {"access_token": form["resource"][-3:] + "-" + who(form["subject_token"]), "token_type": "Bearer"})
    for name in ("alice", "bob"):
        s = t.session("all", token=t.issuer.token(ORIGIN + "/all/mcp", sub=name))
        for tool in ("a_t", "b_t"):
            eq(text_of(s.ask("tools/call", {"name": tool})), "Bearer mcp-" + name)
    eq(len(t.issuer.asked_for), 4)
    end(t)


@case(daemon=False, deadline=40)
def who_shows_no_token_of_an_issuer(t):
    """BACK-URL-10: for a static token nothing can be exchanged; the caller is told, and nobody else's token is used."""
    begin(t, "token_exchange")
    t.config["auth"]["tokens"] = [{"name": "me", "sha256": SHA256_OF_SECRET}]
    reload(t, {"main": t.one}, t.config)
    eq(call(t.session("main", token=person(t, "alice"))), "Bearer t1-alice")
    for n in range(7):  # more than a server may fail before all are refused
        refusal = t.session("main", token="secret", check=False).started
        eq((refusal.final(20)["error"]["message"], refusal.status), ("There is no credential of this caller for this server", 403))
    t.daemon.wait_log("credential_failed", "shown no token")
    eq(call(t.session("main", token=person(t, "alice", jti="2"))), "Bearer t2-alice")
    eq((len(t.issuer.asked_for), set(t.seen)), (2, {"Bearer t1-alice", "Bearer t2-alice"}))
    end(t)


@case(daemon=False, deadline=40)
def an_issuer_that_does_not_answer(t):
    """BACK-URL-10: calls wait for it, those of others go on; a call that is given up is not sent later."""
    begin(t, "token_exchange", servers=2)
    gate = threading.Event()

    def give(form, head):
        if who(form["subject_token"]) == "alice":
            gate.wait(20)
        return 200, {"access_token": who(form["subject_token"]), "token_type": "Bearer", "expires_in": 600}
    t.issuer.give = give
    waiting = t.session("main", token=person(t, "alice"), check=False)
    wait_for(lambda: len(t.issuer.asked_for) == 1, 10, "the question")
    eq(call(t.session("main", token=person(t, "bob"))), "Bearer bob")
    gate.set()
    ok("result" in waiting.started.final(20), "what has waited")
    eq(set(t.seen), {"Bearer alice", "Bearer bob"})
    end(t)


@case(daemon=False, deadline=40)
def both_eras_have_the_token(t):
    """BACK-URL-10: a client of 2026-07-28 has no session, and its caller's token all the same."""
    begin(t, "token_exchange", more={"isolation": "principal", "era": "legacy"})
    tokens = {name: person(t, name) for name in ("alice", "bob")}
    for name in ("alice", "bob", "alice"):
        params = {"name": "t", "arguments": {}}
        head = [*fields(message("tools/call", params)), ("Authorization", "Bearer " + tokens[name])]
        status, found = ask_modern(t, "main", "tools/call", params, head)
        ok((status, text_of(found[-1]).endswith("-" + name)) == (200, True), status, found)
    eq(len(t.issuer.asked_for), 2)
    end(t)


@case(daemon=False, deadline=40)
def the_doctor_gets_a_token(t):
    """mcpgatectl(1): doctor says whether there is one, and goes on with it; without one it says why."""
    begin(t)
    said = ctl(t, "doctor", "main", "-c", t.daemon.file)[0]
    ok("good for 3600 s" in said and "revision" in said, said)
    t.issuer.give = lambda form, head: (401, {"error": "invalid_client"})
    said = ctl(t, "doctor", "main", "-c", t.daemon.file, status=1)[0]
    ok("invalid_client" in said and "revision" not in said, said)
    end(t)


@case(daemon=False)
def what_auth_needs(t):
    """product §4: -t says what is missing, and what cannot stand beside."""
    url, client = "url: 'https://a.example/mcp'", "issuer: 'https://i.example', client_id: c"
    oauth = "public_url: 'https://g.example'\nauth: {mode: oauth, issuers: [{issuer: 'https://i.example'}]}\n"
    for head, server, words in (
            ("", "{%s, auth: {grant: client_credentials}}" % url, ("'issuer' is missing", "'client_id' is missing")),
            ("", "{%s, auth: {grant: client_credentials, %s}}" % (url, client), ("'client_secret' is missing",)),
            ("", "{%s, auth: {grant: client_credentials, %s, auth_method: private_key_jwt, client_secret: s}}" % (url, client),
             ("'client_key' is missing", "set 'client_key' instead")),
            ("", "{command: x, auth: {grant: client_credentials, %s, client_secret: s}}" % client, ("is for a server with a 'url'",)),
            ("", "{%s, auth: {grant: token_exchange, %s, client_secret: s}}" % (url, client), ("set auth.mode to oauth",)),
            (oauth, "{%s, isolation: shared, auth: {grant: token_exchange, %s, client_secret: s}}" % (url, client), ("isolation session or principal",)),
            ("", "{%s, headers: {authorization: x}, auth: {grant: client_credentials, %s, client_secret: s}}" % (url, client),
             ("cannot stand beside an Authorization",)),
            (oauth.replace("mode: oauth", "mode: oauth, bind_client: false"), "{%s, auth: {grant: token_exchange, %s, client_secret: s}}" % (url, client),
             ("needs auth.bind_client",)),
            ("", "{url: 'http://10.0.0.1/mcp', allow_private: true, auth: {grant: client_credentials, %s, client_secret: s}}" % client, ("must be https: the token",)),
            ("", "{%s, auth: {grant: client_credentials, %s, client_secret: s, token_endpoint: 'http://127.0.0.1/t'}}" % (url, client), ("must begin with https://",))):
        for word in words:
            refused(head + "servers: {a: %s}\n" % server, word)
    good("defaults: {auth: {issuer: 'https://i.example', client_id: c, client_secret: s}}\nservers: {a: {%s, auth: {grant: client_credentials}}}\n" % url)


@case(daemon=False, deadline=60)
def what_is_wrong_with_one_caller(t):
    """BACK-URL-09, BACK-URL-10: whom the issuer refuses, or whose token the server refuses, is refused alone; others are served, also by modern servers."""
    begin(t, "token_exchange", more={"isolation": "principal"})
    usual = t.issuer.give
    t.issuer.give = lambda form, head: (400, {"error": "invalid_grant"}) if who(form["subject_token"]) == "mallory" else usual(form, head)
    t.good = {"Bearer t%d-%s" % (n, name) for n in range(50) for name in ("alice", "bob")}
    for name in ("mallory", "eve") * 6:  # the server takes no token of eve's
        answer = t.session("main", token=person(t, name), check=False).started
        ok("error" in answer.final(20) and answer.status == 403, name, answer.status)
        params = {"name": "t", "arguments": {}}
        head = [*fields(message("tools/call", params)), ("Authorization", "Bearer " + person(t, name))]
        ok("error" in ask_modern(t, "main", "tools/call", params, head)[1][-1], name)
    for name in ("alice", "bob"):
        ok(call(t.session("main", token=person(t, name))).endswith("-" + name), name)
    ok("failing" not in ctl(t, "status")[0], "the server is well")
    end(t)


@case(daemon=False, deadline=40)
def each_place_has_its_own_token(t):
    """BACK-URL-10: of a caller who uses two servers, each gets a token for what he has shown there; a token that is not let in is used for nothing."""
    begin(t, "token_exchange", servers=2)
    t.issuer.give = lambda form, head: (200, {"access_token": claims(form["subject_token"])["aud"].split("/")[-2], "token_type": "Bearer", "expires_in": 1})
    sessions = {name: t.session(name, token=t.issuer.token("%s/%s/mcp" % (ORIGIN, name))) for name in ("main", "other1")}
    for n in range(40):
        for name, s in sessions.items():
            eq(call(s), "Bearer " + name)
    weak = t.issuer.token(ORIGIN + "/other1/mcp", iat=1)
    eq(t.conn().request("POST", "/main/mcp", [*JSON_HEAD, *mcp.bearer(weak)], mcp.encode(mcp.initialize())).status, 401)
    eq(call(sessions["main"]), "Bearer main")
    ok(weak not in [form["subject_token"] for form, _ in t.issuer.asked_for], "a token for another place")
    end(t)


@case(daemon=False, deadline=60)
def one_that_is_refused_at_the_start(t):
    """BACK-URL-10: a process that is to be started with a token that the server takes no more: the token is got anew, and after a second refusal again."""
    begin(t)
    eq(call(t.session("main", token=person(t, "alice"))), "Bearer t1")
    t.good = {"Bearer t3"}
    wait_for(lambda: "result" in t.session("main", token=person(t, "bob"), check=False).started.final(20), 45, "one that is taken")
    eq(len(t.issuer.asked_for), 3)
    end(t)


@case(daemon=False, deadline=60)
def nothing_goes_without(t):
    """BACK-URL-10: while there is no token, neither requests nor notifications nor the end of the session are sent; what is given up meanwhile never is."""
    begin(t)
    t.good_s = 1
    gate, usual = threading.Event(), t.issuer.give
    s = t.session("main", token=person(t, "alice"))
    eq(call(s), "Bearer t1")

    def give(form, head):
        gate.wait(20)
        return usual(form, head) if t.is_open else (400, {"error": "invalid_grant"})
    t.issuer.give, t.is_open = give, True
    asked = len(t.issuer.asked_for)
    over = time.time() + 1.2
    wait_for(lambda: time.time() > over, 5, "the end of the token")
    request_id = s.new_id()
    given_up = s.start("tools/call", {"name": "given-up"}, request_id=request_id)
    wait_for(lambda: len(t.issuer.asked_for) == asked + 1, 10, "the question")
    s.cancel(request_id)
    other = s.start("tools/call", {"name": "t"})
    gate.set()
    ok("result" in other.final(20), "what has waited")
    ok("given-up" not in json.dumps([body.decode() for _, _, body in t.remote.requests]), "what was given up")
    given_up.conn.close()
    t.is_open = False
    wait_for(lambda: "error" in s.ask("tools/call", {"name": "t"}), 10, "no token")
    before = len(t.remote.requests)
    s.notify("notifications/roots/list_changed")
    s.delete()
    wait_for(lambda: not t.daemon.children("main"), 20, "the end of its process")
    eq(len(t.remote.requests), before)
    end(t)


@case(daemon=False, deadline=60)
def the_stream_has_the_next_token(t):
    """BACK-URL-10: a stream of the session that is refused for its token is opened again with another one, without a request of the client's."""
    begin(t)
    cut, told = threading.Event(), answer(t)

    def serve(request, message):
        if message is not None or request.command != "GET":
            told(request, message)
        elif cut.is_set() and request.headers["Authorization"] == "Bearer t1":
            request.whole(401)
        else:
            request.events("retry: 10", "")
            cut.wait(30)
            if request.headers["Authorization"] != "Bearer t1":
                request.say('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', "")
    end(t)
    t.issuer = issuer.Issuer()
    t.issuer.give = lambda form, head: (200, {"access_token": "t%d" % len(t.issuer.asked_for), "token_type": "Bearer", "expires_in": 3600})
    t.remote = Fake(serve)
    t.config["auth"]["issuers"] = [{"issuer": t.issuer.url}]
    t.daemon = t.start({"main": dict(t.one, url=t.remote.url, auth=dict(t.one["auth"], issuer=t.issuer.url))}, t.config)
    s = t.session("main", token=person(t, "alice"))
    stream = s.get()
    wait_for(lambda: t.remote.sent("GET"), 10, "the stream")
    over = time.time() + 10.5  # what has just been got is not got anew
    wait_for(lambda: time.time() > over, 15, "an old token")
    cut.set()
    eq(stream.next(20)["method"], "notifications/tools/list_changed")
    eq(len(t.issuer.asked_for), 2)
    end(t)
