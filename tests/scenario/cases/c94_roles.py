# SPDX-License-Identifier: Apache-2.0
"""
What may be used, by whom: what no role of a caller allows is as if it were not there, in lists and in calls, on every way in
and however it is spelled; what scopes are lacking for is challenged. What was used is judged by what the server records.
"""
import fnmatch
import itertools
import json
import random
import time

import issuer
import mcp
from c61_token import entry
from c62_oauth import ORIGIN, send
from c65_doors import Way, each_way
from c71_ctl import ctl
from c80_stateless import fields, meta
from c92_permissions import LISTS, ask, refused
from harness import case, eq, ok

SERVERS = {"main": {"script": LISTS, "tools": {"deny": ["drop_*"]}},
           "pooled": {"script": LISTS, "tools": {"deny": ["drop_*"]}, "isolation": "shared"}}
ROLES = {
    "dev": {"when": {"groups": ["dev", "ops"]}, "allow": {"*": ["*"]}, "deny": {"*": ["do"]}},
    "reader": {"when": {"groups": ["read"], "tid": [7]}, "allow": {"main": ["Echo"], "pooled": ["echo"]},
               "prompts": {"allow": {"*": ["p"]}}, "resources": {"allow": {"*": ["res://*"]}, "deny": {"*": ["res://private/*"]}},
               "templates": {"allow": {"*": ["res:*"]}}},
    "doer": {"when": {"scope": ["do"]}, "allow": {"*": ["do"]}},
    "drop": {"when": {"scope": ["drop"]}, "allow": {"*": ["drop_*", "echo"]}},
    "elsewhere": {"when": {"groups": ["other"]}, "allow": {"pooled": ["*"]}},
}
# Who has which claims, and so which of tools, prompts, resources and templates he is shown, and may use.
CALLERS = {
    "dev": ({"groups": ["dev"]}, (["echo"], [], [], [])),
    "reader": ({"groups": ["read", "x"], "tid": 7}, (["echo"], ["p"], ["res://a"], ["res://{x}"])),
    "doer": ({"scope": "use do"}, (["do"], [], [], [])),
    "two": ({"groups": "read", "tid": "7", "scope": "do"}, (["echo", "do"], ["p"], ["res://a"], ["res://{x}"])),
    "denied": ({"groups": "ops", "scope": "do"}, (["echo"], [], [], [])),
    "dropper": ({"scope": "drop"}, (["echo"], [], [], [])),
}
KINDS = [("tools/list", "tools", "name"), ("prompts/list", "prompts", "name"), ("resources/list", "resources", "uri"),
         ("resources/templates/list", "resourceTemplates", "uriTemplate")]
ALL = (["echo", "do", "drop_all", "DROP_it"], ["hidden", "p"], ["res://a", "res://private/b"], ["res://{x}", "secret://{x}", "file:///{x}"])


def use(kind, name):
    if kind == 0:
        return "tools/call", {"name": name, "arguments": {"text": "x"} if name.lower() == "echo" else {"steps": [["text", "x"]]}}
    if kind == 1:
        return "prompts/get", {"name": name}
    if kind == 2:
        return "resources/read", {"uri": name}
    return "completion/complete", {"ref": {"type": "ref/resource", "uri": name}, "argument": {"name": "a", "value": ""}}


def spellings(name, front):
    """Other ways to write a name that is not to be had; in the head of a request of 2026-07-28 those that it can have."""
    if ":" in name:
        return [name.replace("a", "%61")]
    return [name.upper()] + [name[:1] + " " + name[1:]] * (len(name) > 1) + [name + "\u200b"] * (front != "stateless")


def every_use(t, name):
    way = Way(t, name, SERVERS, CALLERS["dev"][0], roles=ROLES)
    for caller, (claims, shown) in CALLERS.items():
        way.claims = dict(claims, sub=caller)
        for server in SERVERS:
            place = way.open(server)
            for kind, (method, member, key) in enumerate(KINDS):
                expected = shown[kind] if way.front != "admin" else [n for n in ALL[kind] if not n.lower().startswith("drop_")]
                _, answer = ask(way, place, server, method, {})
                eq([item[key] for item in answer["result"][member]], expected, "%s of %s for %s" % (method, server, caller))
                for item in ALL[kind]:
                    if item in expected:
                        answer = ask(way, place, server, *use(kind, item))[1]
                        ok("result" in answer, caller, server, item, answer)
                        continue
                    for spelled in [item] + spellings(item, way.front):
                        refused(way, place, server, *use(kind, spelled))
            used = {json.dumps(m["params"]) for pid, _ in t.daemon.records_of(server) for m in t.daemon.messages(pid)
                    if m.get("method") in ("tools/call", "prompts/get", "resources/read", "completion/complete")}
            ok(not [u for u in used if "drop_" in u.lower()], "what the server denies, no role allows", used)
            if way.front != "admin":
                ok(not [u for u in used if "hidden" in u or "private" in u or "secret" in u], "it has reached the server", used)
        if way.front == "admin":
            return


each_way(every_use, "by_", "SEC-56: by way of %s lists and uses agree for each caller, also on processes that they share.", deadline=90)


def status(t, server="main", token=None):
    return send(t, mcp.bearer(token), path="/%s/mcp" % server).status


@case(daemon=False)
def strangers_are_refused(t):
    """SEC-56: who has no role at a server gets 403 there, before a process is touched; elsewhere he may be at home."""
    way = Way(t, "streamable", SERVERS, CALLERS["dev"][0], roles=ROLES)
    before = t.daemon.started("main")
    for claims in ({}, {"groups": ["nobody"]}, {"groups": ["other"]}, {"groups": ["read"]}, {"groups": ["read"], "tid": 8}):
        way.claims = claims
        response = send(t, mcp.bearer(way.token("main")))
        eq(response.status, 403, claims)
        eq([v for k, v in response.headers if k == "www-authenticate"], [], "a new token would not help")
        ok(b"forbidden" in response.body or b"role" in response.body, response.body)
    eq(t.daemon.started("main"), before, "processes")
    t.daemon.wait_log("caller_refused", "status=403", 'cause="none of its roles allows anything of this server"')
    way.claims = {"groups": ["other"]}
    eq(status(t, "pooled", way.token("pooled")), 200)


@case(daemon=False)
def groups_count_from_the_next_request(t):
    """SEC-56 AUTH-SES-04: within a session, the roles of the token that comes with a request are those that count."""
    way = Way(t, "streamable", SERVERS, CALLERS["reader"][0], roles=ROLES)
    for server in SERVERS:
        way.claims = CALLERS["reader"][0]
        place = way.open(server)
        for claims, expected in [CALLERS["doer"], CALLERS["two"], CALLERS["reader"], CALLERS["dropper"], CALLERS["two"]]:
            way.claims = dict(dict.fromkeys(("groups", "tid")), **claims)
            names = [t["name"] for t in ask(way, place, server, "tools/list", {})[1]["result"]["tools"]]
            eq(names, expected[0], claims)
            for name in ("echo", "do"):
                taken = "result" in ask(way, place, server, *use(0, name))[1]
                eq(taken, name in names, "%s with %s" % (name, claims))
        way.claims = {"groups": None}
        eq(ask(way, place, server, "tools/list", {})[0], 403, "no role any more")


def updates(sse):
    return [m for m in sse.seen if m.get("method") == "notifications/resources/updated"]


@case(daemon=False)
def updates_follow_the_roles(t):
    """SEC-56: who subscribed, and by his last request has the role no more, hears no more of the resource."""
    way = Way(t, "http_sse", SERVERS, {"groups": ["read"], "tid": 7, "scope": "do"}, roles=ROLES)
    tell = ("tools/call", {"name": "do", "arguments": {"steps": [["notify", "notifications/resources/updated", {"uri": "res://a"}],
                                                                 ["text", "x"]]}})
    places = [way.open("pooled"), way.open("pooled")]
    for place in places:
        ok("result" in ask(way, place, "pooled", "resources/subscribe", {"uri": "res://a"})[1], "subscribed")
    ok("result" in ask(way, places[0], "pooled", *tell)[1], "told")
    for place in places:
        place.sse.seen.append(place.sse.next()) if not updates(place.sse) else None
        eq(len(updates(place.sse)), 1, "updates")
    way.claims = {"scope": "do"}
    ok("result" in ask(way, places[1], "pooled", *tell)[1], "told")
    places[0].sse.seen.append(places[0].sse.next())
    eq(len(updates(places[0].sse)), 2, "whose role is still there")
    ok("result" in ask(way, places[1], "pooled", "ping", {})[1], "a pong")
    eq(len(updates(places[1].sse)), 1, "whose is not")


def fronts(t, server, token, method, params):
    """One call of each era."""
    session = t.session(server, token=token)
    yield session.ask(method, params)
    message = mcp.request(1, method, dict(params, _meta=meta()))
    response = t.conn().request("POST", "/%s/mcp" % server, fields(message, mcp.BOTH) + mcp.bearer(token), mcp.encode(message))
    yield json.loads(response.read())


FREE, CI, DEV, LOST = ("%s-token-0123456789abcdef" % n for n in ("free", "ci", "dev", "lost"))


@case(daemon=False)
def static_tokens_have_tools_or_roles(t):
    """SEC-56: a static token may call what its tools, or its roles, allow; without roles, one that has neither may all."""
    tools = {"main": ["ech*"], "pooled": ["do"]}
    auth = {"mode": "token", "tokens": [entry("free", FREE), entry("ci", CI, tools=tools), ]}
    t.start(SERVERS, {"auth": auth})
    for server, names in (("main", ["echo"]), ("pooled", ["do"])):
        for answer in fronts(t, server, CI, "tools/list", {}):
            eq([x["name"] for x in answer["result"]["tools"]], names, server)
        for answer in fronts(t, server, CI, "prompts/list", {}):
            eq(answer["result"]["prompts"], [], server)
        for answer in fronts(t, server, FREE, "tools/list", {}):
            eq([x["name"] for x in answer["result"]["tools"]], ["echo", "do"], server)
        for name in ("echo", "do"):
            for answer in fronts(t, server, CI, *use(0, name)):
                eq("result" in answer, name in names, "%s of %s" % (name, server))


@case(daemon=False)
def static_tokens_name_their_roles(t):
    """SEC-56: where there are roles, a static token has those that it names; without any it is refused."""
    roles = {"dev": {"allow": {"main": ["do"]}}}
    auth = {"mode": "token", "tokens": [entry("dev", DEV, roles=["dev"]), entry("lost", LOST), entry("ci", CI, tools={"*": ["echo"]})]}
    t.start(SERVERS, {"auth": auth, "roles": roles})
    for token, name in ((DEV, "do"), (CI, "echo")):
        for answer in fronts(t, "main", token, "tools/list", {}):
            eq([x["name"] for x in answer["result"]["tools"]], [name])
    eq([status(t, server, token) for server in SERVERS for token in (DEV, LOST, CI)], [200, 403, 200, 403, 403, 200])


@case(daemon=False)
def introspected_tokens_have_roles(t):
    """SEC-56 AUTH-OPQ-02: of an opaque token the issuer's answer gives the roles."""
    i = issuer.Issuer()
    asked = {"endpoint": i.url + "/introspect", "client_id": "rs", "client_secret": "secret"}
    t.start(SERVERS, {"public_url": ORIGIN, "roles": ROLES,
                      "auth": {"mode": "oauth", "issuers": [{"issuer": i.url, "introspection": asked}]}})
    words = {"active": True, "client_id": "app", "sub": "a", "aud": ORIGIN + "/main/mcp", "exp": int(time.time()) + 600}
    i.known = {"reader": dict(words, groups=["read"], tid=7), "doer": dict(words, scope="do use"), "nobody": words}
    eq([status(t, token=token) for token in ("reader", "nobody")], [200, 403])
    for token, name in (("reader", "echo"), ("doer", "do")):
        for answer in fronts(t, "main", token, "tools/list", {}):
            eq([x["name"] for x in answer["result"]["tools"]], [name])
        for answer in fronts(t, "main", token, *use(0, "echo")):
            eq("result" in answer, name == "echo", token)


# ---- scopes -----------------------------------------------------------------

NEEDS = {"scopes": ["use"], "tools": {"scopes": {"drop_*": ["write"]}}, "prompts": {"scopes": {"hidden": ["inner", "write"]}},
         "resources": {"scopes": {"res://Private/*": ["private"]}}}
SCOPED = {"main": dict(NEEDS, script=LISTS, hide=True), "pooled": dict(NEEDS, script=LISTS, isolation="shared", hide=True),
          "plain": dict(NEEDS, script=LISTS)}
NEEDED = {(0, "drop_all"): "write", (0, "DROP_it"): "write", (1, "hidden"): "inner write", (2, "res://private/b"): "private",
          (1, "Hid Den"): "inner write", (2, "RES://x/../private/b"): None, (2, "res://priv%61te/b?q"): "private"}


def every_scope(t, name):
    way = Way(t, name, SCOPED, auth={"challenge_held": False, "scope_hierarchy": {"all": ["write", "private"]}})
    for server in SCOPED:
        place = way.open(server)
        for scope in ("use", "use write", "use all inner", "use private"):
            held = set(scope.replace("all", "write private").split())
            way.claims = {"scope": scope}
            for kind, (method, member, key) in enumerate(KINDS):
                _, answer = ask(way, place, server, method, {})
                lacking = [item for item in ALL[kind] if not set((NEEDED.get((kind, item)) or "use").split()) <= held]
                expected = [item for item in ALL[kind] if server == "plain" or way.front == "admin" or item not in lacking]
                eq([item[key] for item in answer["result"][member]], expected, "%s of %s with %s" % (method, server, scope))
            for (kind, item), needed in NEEDED.items():
                lacks = way.front != "admin" and needed and not set(needed.split()) <= held
                status, text = told(way, place, server, *use(kind, item))
                eq(status == 403, bool(lacks), "%s of %s with %s: %s" % (item, server, scope, text))
                if lacks:
                    ok('error="insufficient_scope", ' in text and 'scope="%s"' % " ".join(["use"] + needed.split()) in sort_scopes(text), text)


def sort_scopes(text):
    """The challenge with its scopes in the order of the alphabet, but for the first."""
    before, _, rest = text.partition('scope="')
    scopes, _, after = rest.partition('"')
    first, *others = scopes.split()
    return before + 'scope="' + " ".join([first] + sorted(others)) + '"' + after


def told(way, place, server, method, params):
    """A status, and with 403 its challenge."""
    way.last_id += 2
    message = mcp.request(way.last_id, method, dict(params))
    if way.front == "stateless":
        message["params"]["_meta"] = meta()
    text = [mcp.request(way.last_id - 1, "ping"), message] if way.is_batch else message
    conn = way.send(place, text, None if way.front == "admin" else way.token(server))
    response = conn.response()
    response.read()
    conn.close()
    if place.sse and response.status == 202:
        place.sse.wait_answer(way.last_id)
    return response.status, response.header("www-authenticate") or ""


each_way(every_scope, "scopes_by_", "SEC-57 SEC-58: by way of %s prompts and resources need scopes as tools do, lists hide what is lacking if "
         "that is said, and calls are challenged all the same.", deadline=90)


# ---- mcpgatectl can ---------------------------------------------------------

NAMES = {"tools": ["get_a", "get_b", "put_a", "Drop_It", "x"], "prompts": ["get_a", "draft"],
         "resources": ["res://h/a/b", "res://h/A/b", "res://h/a/../c", "res://h/c?q"]}
PATTERNS = {"tools": ["*", "get_*", "*_a", "GET_B", "drop_it", "x", "p*t_*"], "prompts": ["*", "get_a", "d*"],
            "resources": ["*", "res://h/a/*", "res://*/b", "res://h/c"]}
OPTION = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


def some(chance, kind, most):
    return chance.sample(PATTERNS[kind], chance.randrange(most + 1))


def make(chance):
    """A configuration by chance: the rules of the server, and of four roles."""
    server = {"script": LISTS, "isolation": "shared", "scopes": ["use"]}
    for kind in NAMES:
        server[kind] = {"allow": some(chance, kind, 2) or ["*"], "deny": some(chance, kind, 1),
                        "scopes": {p: [chance.choice(["one", "two"])] for p in some(chance, kind, 1)}}
    roles = {}
    for n in range(4):
        roles["r%d" % n] = role = {"when": {"groups": ["r%d" % n]}}
        for kind in NAMES:
            at = role if kind == "tools" else role.setdefault(kind, {})
            for what, most in (("allow", 3), ("deny", 1)):
                at[what] = {key: some(chance, kind, most) for key in chance.choice([["main"], ["*"], ["main", "*"]])}
    return server, roles


def fits(kind, name, patterns, is_deny):
    """Whether a name fits, found out in another way than the daemon does."""
    def plain(text):
        text = text.replace("res://", "res:/").replace("a/../", "")
        return text if kind == "resources" and not is_deny else text.lower()
    names = [plain(name)] + ([plain(name).split("?")[0]] if kind == "resources" and is_deny else [])
    return any(fnmatch.fnmatchcase(n.replace("?", "\0"), plain(p).replace("?", "\0")) for n in names for p in patterns)


def expected(server, roles, groups, held, kind, name):
    """None: it may be used; else 403 or 404."""
    def lists(role, of_kind, what):
        return [p for ps in (role if of_kind == "tools" else role[of_kind])[what].values() for p in ps]
    mine = [roles[g] for g in groups]
    if not any(lists(role, k, "allow") for role in mine for k in NAMES):
        return 403
    if any((fits(kind, name, [p], True) or fnmatch.fnmatchcase(name, p)) and not set(needed) <= held
           for p, needed in server[kind]["scopes"].items()):
        return 403
    rules = server[kind]
    is_allowed = (fits(kind, name, rules["allow"], False) and not fits(kind, name, rules["deny"], True) and
                  any(fits(kind, name, lists(role, kind, "allow"), False) for role in mine) and
                  not any(fits(kind, name, lists(role, kind, "deny"), True) for role in mine))
    return None if is_allowed else 404


def use_modern(t, token, method, params):
    message = mcp.request(1, method, dict(params, _meta=meta()))
    conn = t.conn()
    response = conn.request("POST", "/main/mcp", fields(message, mcp.BOTH) + mcp.bearer(token), mcp.encode(message))
    body = response.read()
    conn.close()
    if response.status == 403:
        return 403
    error = json.loads(body).get("error", {})
    return 404 if error.get("message", "").startswith("Invalid params: there is no such ") else None


def asked(t, question):
    conn = t.conn(address=t.daemon.admin)
    response = conn.request("POST", "/can", [("Content-Type", "application/json")], mcp.encode(question))
    answer = json.loads(response.read())
    conn.close()
    eq(response.status, 200, answer)
    return answer


def agree(t, seed):
    server, roles = make(random.Random(seed))
    way = Way(t, "stateless", {"main": server}, roles=roles)
    seen = set()
    for count in range(4):
        for groups in itertools.combinations(sorted(roles), count):
            scope = "use" + (" one" if count % 2 else "") + (" two" if count > 1 else "")
            claims = {"groups": list(groups), "scope": scope}
            token = way.token("main", **claims)
            for kind, names in NAMES.items():
                for name in names:
                    number = list(NAMES).index(kind)
                    wanted = expected(server, roles, groups, set(scope.split()), kind, name)
                    what = "seed %d: %s %s of %s with %s" % (seed, kind, name, groups, scope)
                    eq(use_modern(t, token, *use(number, name)), wanted, what)
                    answer = asked(t, {"server": "main", OPTION[kind]: name, "claims": claims})
                    eq(answer["allowed"], wanted is None, "%s: %s" % (what, answer))
                    seen.add((kind, wanted))
                    if "[" in answer["rule"]:
                        at, pattern = {"roles": roles, "servers": {"main": server}}, answer["rule"]
                        for key in pattern.split("[")[0].split("."):
                            at = at[key]
                        is_deny = ".deny" in pattern
                        ok(fits(kind, name, [at[int(pattern.split("[")[1][:-1])]], is_deny), what, answer)
                        ok(not (answer["allowed"] and is_deny), what, answer)
                    eq(answer["roles"], list(groups), what)
    return seen


for number in range(6):
    def by_chance(t, seed=number):
        seen = agree(t, seed)
        eq({wanted for _, wanted in seen}, {None, 403, 404}, "all of it was seen")
    by_chance.__name__ = "can_says_what_calls_get_%d" % number
    by_chance.__doc__ = ("SEC-56 SEC-57: in a configuration by chance, `can`, what a call gets, and a model of the rules agree, and "
                         "the rule that is named is one that fits.")
    case(daemon=False, deadline=60)(by_chance)


@case(daemon=False)
def can_where_nobody_is_asked_for_a_token(t):
    """SEC-56 product §2: there everybody may do the same, whoever is named: what allow and deny of the server leave."""
    t.start({"main": {"script": {}, "tools": {"allow": ["read_*"], "deny": ["*_secret"]}}, "free": {"script": {}},
             "most": {"script": {}, "tools": {"deny": ["secret"]}}})
    for who in (["anybody"], ["--claims", "{}"], ["--token", "nobody"]):
        for what, status, part in (
                (["main", "read_it"], 0, "servers.main.tools.allow[0]"),
                (["main", "read_secret"], 1, "servers.main.tools.deny[0]"),
                (["main", "write_it"], 1, "no: allow of the server has no pattern for it\n  rule:                servers.main.tools.allow\n"),
                (["free", "write_it"], 0, "yes: there is no rule for it"),
                (["most", "write_it"], 0, "yes: there is no rule for it\n"),
                (["most", "secret"], 1, "servers.most.tools.deny[0]"),
                (["nowhere", "x"], 2, "there is no server of this name")):
            out = "".join(ctl(t, "can", *who, *what, status=status))
            ok(part in out, "%r in what it says of %s %s" % (part, who, what), out)


@case(daemon=False)
def can_is_asked_with_mcpgatectl(t):
    """SEC-56 product §2: by claims, token and caller; exit status 0 yes, 1 no, 2 not told."""
    servers = dict(SERVERS, main=dict(SERVERS["main"], tools={"deny": ["drop_*"], "scopes": {"do": ["write"]}}))
    way = Way(t, "streamable", servers,
              CALLERS["reader"][0],
              {"tokens": [entry("ci", CI, tools={"main": ["do"]}, scopes=["use"]), entry("dev", DEV, roles=["dev"]),
                          entry("old", LOST, roles=["dev"], expires="2020-01-31")]}, roles=ROLES)
    for args, status, parts in (
            (["alice", "main", "echo"], 0, ["yes: this rule allows it", "roles.reader.allow.main[0]", "roles of the caller: reader"]),
            (["alice", "main", "do"], 1, ["no: no role of this caller allows it", "roles that allow it: doer", "that it needs: write"]),
            (["alice", "main", "--prompt", "p"], 0, ["roles.reader.prompts.allow.*[0]"]),
            (["alice", "main", "--resource", "res://x/../private/b"], 1, ["no: "]),
            (["alice", "main", "--resource", "res://private/b"], 1, ["no: this rule denies it", "roles.reader.resources.deny.*[0]"]),
            (["--claims", '{"groups": "dev"}', "main", "echo"], 0, ["roles.dev.allow.*[0]"]),
            (["--claims", '{"groups": "dev", "exp": 1}', "main", "Drop_it"], 1, ["servers.main.tools.deny[0]"]),
            (["--claims", "{}", "main", "echo"], 1, ["no role of this caller, nor tools of its token, allow anything of the server: 403"]),
            (["--claims", '{"scope": "do"}', "main", "do"], 1, ["a scope is missing", "needs: write", "roles.doer.allow.*[0]"]),
            (["--claims", '{"scope": "do write"}', "main", "do"], 0, ["roles.doer.allow.*[0]"]),
            (["--token", "ci", "main", "echo"], 1, ["no role of this caller"]),
            (["--token", "ci", "main", "do"], 1, ["a scope is missing", "auth.tokens[0].tools.main[0]"]),
            (["--token", "dev", "main", "echo"], 0, ["roles.dev.allow.*[0]"]),
            (["--token", "old", "main", "echo"], 1, ["the token has expired"]),
            (["--token", "nobody", "main", "echo"], 2, ["no token of this name\n"]),
            (["--token", "devs", "main", "echo"], 2, ["no token of this name; did you mean 'dev'?"]),
            (["alice", "mian", "echo"], 2, ["there is no server of this name; did you mean 'main'?"]),
            (["bob", "main", "echo"], 2, ["there is no session of such a caller"]),
            (["alice", "nowhere", "echo"], 2, ["there is no server of this name"]),
            (["--claims", "[]", "main", "echo"], 2, ["--claims takes a JSON object"]),
            (["alice", "main"], 2, ["usage: "]), (["--token", "ci", "--claims", "{}", "main", "echo"], 2, ["usage: "]),
            (["alice", "main", "echo", "more"], 2, ["usage: "])):
        out = "".join(ctl(t, "can", *args, status=status))
        for part in parts:
            ok(part in out, "%r in what it says of %s" % (part, args), out)
    eq(json.loads(ctl(t, "can", "--json", "alice", "main", "echo")[0])["allowed"], True)
    way.claims = CALLERS["doer"][0]
    ask(way, way.home, "main", "tools/list", {})
    ctl(t, "can", "alice", "main", "echo", status=1)
    for name in ("\x01", "e\u200b", "x" * 1000000, "[" * 300):
        eq(asked(t, {"server": "main", "tool": name, "claims": {"scope": "do"}})["allowed"], False, name[:10])
    for body in (b"", b"[]", b'{"server":"main","tool":"echo"}', b'{"server":"main","tool":"a","prompt":"b","token":"ci"}',
                 b'{"server":"main","tool":"echo","token":"ci","x":1}', b'{"server":"main","tool":7,"token":"ci"}',
                 b'{"server":"main","tool":"echo","token":"ci","claims":{}}', b'{"server":"main","tool":"echo","claims":7}'):
        conn = t.conn(address=t.daemon.admin)
        response = conn.request("POST", "/can", [("Content-Type", "application/json")], body)
        eq((response.status, "error" in json.loads(response.read())), (400, True), body)
        conn.close()


@case(daemon=False)
def can_tells_callers_and_names_apart(t):
    """SEC-56: two callers of one name are told apart, and what is no name is not taken for a lack of scopes."""
    way = Way(t, "streamable", SERVERS, CALLERS["reader"][0], {"tokens": [entry("alice", DEV, roles=["dev"])]}, roles=ROLES)
    ok("yes: " in "".join(ctl(t, "can", "alice", "main", "echo", status=0)), "the only one")
    eq(send(t, mcp.bearer(DEV)).status, 200, "another, by a token of the configuration")
    out = "".join(ctl(t, "can", "alice", "main", "echo", status=2))
    ok("several callers have this name" in out, out)


@case(daemon=False)
def can_says_what_is_no_name(t):
    """SEC-57: a name that nobody can compare is refused as that, whatever scopes its caller has."""
    t.start({"main": {"script": {}, "tools": {"scopes": {"echo": ["write"]}}}},
            {"auth": {"mode": "token", "tokens": [entry("ci", CI, scopes=["write"])]}})
    ok("no: rules cannot be asked about such a name" in "".join(ctl(t, "can", "--token", "ci", "main", "e\u200b", status=1)), "no name")
    ok("yes: " in "".join(ctl(t, "can", "--token", "ci", "main", "echo", status=0)), "a name")


@case(daemon=False)
def can_names_what_is_written(t):
    """SEC-56 product §2: where a role allows nothing at a server, `can` names the role, and no list that is not there."""
    t.start({"main": {"script": {}}}, {"auth": {"mode": "token", "tokens": [entry("dev", DEV, roles=["dev"])]},
                                       "roles": {"dev": {"deny": {"main": ["drop"]}}}})
    out = "".join(ctl(t, "can", "--token", "dev", "main", "echo", status=1))
    ok("  rule:                roles.dev\n" in out, "the role", out)
