# SPDX-License-Identifier: Apache-2.0
"""What comes before MCP: other protocols, browsers, path prefixes. requirements §1, §2."""
import hashlib
import json
import re
import shutil
import socket
import struct
import subprocess
import time

import c61_token
import harness
import mcp
import wire
from c50_config import refused
from c100_reload import reload
from harness import case, eq, ok, wait_for
from mcp import encode, request

SERVERS = {"main": {}, "other": {}}
BROWSER = [("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")]
JSON = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
TOKENS = {"auth": {"mode": "token", "tokens": [{"name": "a", "sha256": hashlib.sha256(b"a").hexdigest()}]}}


@case
def http2_is_told_so(t):
    """SEC-22: a client that begins with HTTP/2 gets an answer that it can read, and the end."""
    conn = t.conn()
    conn.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
    response = conn.response()
    eq(response.status, 505)
    ok(b"HTTP/1.1" in response.read(), "text", response.body)


@case
def a_slash_at_the_end_is_nothing(t):
    """FRONT-HTTP-01: /main/mcp/ is /main/mcp; two slashes are not."""
    for path, status in (("/main/mcp/", 400), ("/main/mcp", 400), ("/main/mcp//", 404), ("/main//mcp", 404)):
        response = t.conn().request("POST", path, JSON, encode(request(1, "ping")))
        response.read()
        eq(response.status, status, path)
    eq(t.conn().request("GET", "/healthz/").status, 200)


@case
def people_get_a_page(t):
    """SEC-01: a browser is told what this is, by a page that loads and runs nothing; on loopback which addresses there are."""
    for path in ("/", "/x", "/main/mcp", "/main/sse", "/other/message"):
        response = t.conn().request("GET", path, BROWSER)
        text = response.read().decode()
        eq((response.status, response.header("content-type")), (200, "text/html; charset=utf-8"), path)
        ok("default-src 'none'" in response.header("content-security-policy"), "policy", response.headers)
        ok("/main/mcp</code>" in text and "Model Context Protocol" in text, "text", text)
        ok("<script" not in text and "src=" not in text, "text", text)
    eq(t.conn().request("GET", "/x", [("Accept", "*/*")]).status, 404)
    eq(t.conn().request("GET", "/x", [("Accept", "text/event-stream, text/html")]).status, 404)
    eq(t.conn().request("GET", "/", BROWSER + [("Origin", "https://evil.example")]).status, 403)


@case(own=True, config=TOKENS)
def the_page_names_nobody_to_strangers(t):
    """SEC-01: where a token is needed, the page is the same at every path and names no server."""
    pages = set()
    for path in ("/", "/main/mcp", "/nowhere"):
        response = t.conn().request("GET", path, BROWSER)
        pages.add(response.read())
    eq(len(pages), 1, "pages")
    ok(b"main" not in pages.pop(), "no name", None)


@case(own=True, config={"trusted_proxies": ["127.0.0.1"]})
def the_page_names_nobody_to_who_comes_by_a_proxy(t):
    """SEC-01 DEF-07: who is not on this machine is not told which servers there are, though who passes it on is."""
    for client, expected in ((None, True), ("127.0.0.1", True), ("192.0.2.1", False)):
        text = t.conn().request("GET", "/", BROWSER + ([("X-Forwarded-For", client)] if client else [])).read()
        eq(b"/main/mcp" in text, expected, client)


@case(own=True, config={"public_url": "https://example.com/gw"})
def below_a_path(t):
    """FRONT-OLD-01: the address for messages has the path of public_url; both forms are served."""
    for path in ("/gw/main/sse", "/main/sse"):
        c = t.sse(path=path)
        ok(c.uri.startswith("/gw/main/message?sessionId="), "uri", c.uri)
        eq(c.do_text(["text", "x"]), "x")
    for path, status in (("/gw/main/mcp", 400), ("/main/mcp", 400), ("/gwmain/mcp", 404), ("/gw/gw/main/mcp", 404)):
        response = t.conn().request("POST", path, JSON, encode(request(1, "ping")))
        response.read()
        eq(response.status, status, path)


@case(own=True, config={"public_url": "https://example.com/gw", "auth": {"mode": "oauth", "issuers": [{"issuer": "https://127.0.0.1:1"}]}})
def metadata_below_a_path(t):
    """AUTH-PRM-01 AUTH-CH-01: the resource has the path of public_url; its document is where a proxy of that path alone leads, and where RFC 9728 says."""
    t.expect_error_log("issuers_failed")
    for path in ("/gw/main/mcp", "/main/mcp"):
        response = t.conn().request("POST", path, JSON, encode(request(1, "ping")))
        response.read()
        eq(response.status, 401, path)
        ok('resource_metadata="https://example.com/gw/.well-known/oauth-protected-resource/main/mcp"'
           in response.header("www-authenticate"), "challenge", response.headers)
    for path in ("/gw/.well-known/oauth-protected-resource/main/mcp", "/.well-known/oauth-protected-resource/main/mcp",
                 "/.well-known/oauth-protected-resource/gw/main/mcp"):
        response = t.conn().request("GET", path)
        ok(b'"resource":"https://example.com/gw/main/mcp"' in response.read(), path, response.body)
    eq(t.conn().request("GET", "/.well-known/oauth-protected-resource/gw/nothing").status, 404)


@case(own=True, config={"drain_delay": "1m"}, deadline=20)
def not_ready_before_it_stops(t):
    """product §3: for drain_delay /readyz is 503, all else is served, and connections are told to close, not cut; at its end those are cut
    that are between two requests, and no other."""
    idle, ready, silent, half = t.conn(), t.conn(), t.conn(), t.conn()
    for conn in silent, half:
        conn.request("GET", "/healthz").read()
    half.send(b"GET /healthz HTTP/1.1\r\nHost: local")
    eq(ready.request("GET", "/readyz").read() and ready.request("GET", "/healthz").status, 200)
    response = idle.request("GET", "/healthz")
    response.read()
    eq(response.header("connection"), None)
    s = t.session()
    t.daemon.term()
    t.daemon.wait_log("gateway_state", "to=leaving")
    eq(t.conn().request("GET", "/readyz").status, 503)
    response = idle.request("GET", "/healthz")
    response.read()
    eq((response.status, response.header("connection")), (200, "close"))
    eq(s.do_text(["text", "still served"]), "still served")
    eq(t.session().do_text(["text", "new ones, too"]), "new ones, too")
    running = s.start_do(["sleep", 2], ["text", "in time"])
    wait_for(lambda: "in time" in str([t.daemon.messages(p) for p in t.daemon.children("main")]), 5, "the call at the server")
    t.daemon.term()  # as at the end of the delay
    t.daemon.wait_log("gateway_state", "to=finishing")
    ok(silent.is_closed(3), "it is between two requests")
    half.send(b"host\r\n\r\n")
    response = half.response()
    eq((response.status, response.read() and response.header("connection")), (200, "close"), "in the middle of one")
    eq(running.final(5)["result"]["content"][0]["text"], "in time")


@case(own=True, config={"drain_delay": "300ms"})
def the_delay_has_an_end(t):
    """product §3: after drain_delay it stops without another signal, and not before."""
    began = time.monotonic()
    t.daemon.term()
    t.daemon.wait_log("gateway_state", "to=finishing")
    ok(time.monotonic() - began >= 0.3, "too early")
    eq(t.daemon.wait(), 0)


@case(own=True, config={"drain_delay": "1h"})
def a_second_signal_ends_the_delay(t):
    """product §3: who does not want to wait says so again."""
    t.daemon.term()
    t.daemon.wait_log("gateway_state", "to=leaving")
    t.daemon.term()
    t.daemon.wait_log("gateway_state", "to=finishing")


FORWARDED = (("Forwarded", "for=192.0.2.1"), ("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Host", "a.example"),
             ("X-Forwarded-Proto", "https"), ("x-forwarded-port", "443"), ("X-Real-IP", "192.0.2.1"), ("Via", "1.1 proxy"),
             ("CF-Connecting-IP", "192.0.2.1"), ("Cf-Ray", "x"), ("True-Client-IP", "192.0.2.1"), ("X-Client-IP", "192.0.2.1"))


@case(own=True)
def an_unknown_proxy_does_not_publish_it(t):
    """SEC-69: where nobody needs a token, what a proxy passes on that is not known is refused, with the lines to add."""
    for field in FORWARDED:
        response = t.conn().request("POST", "/main/mcp", JSON + [field], encode(request(1, "ping")))
        eq(response.status, 403, field)
        text = response.read()
        ok(b"trusted_proxies: [127.0.0.1]" in text and b"auth: {mode: token" in text, "the lines", text)
    eq(t.conn().request("GET", "/healthz", [FORWARDED[0]]).status, 200)
    t.daemon.wait_log("caller_refused", "status=403", "client=127.0.0.1", "a proxy has passed this on")


PING10 = b"POST /main/mcp HTTP/1.0\r\nHost: 127.0.0.1:8808\r\nConnection: close\r\n" + \
    b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s"


def ping_of_a_plain_proxy(t, address=None):
    """As nginx with proxy_pass and nothing else passes it on."""
    body = encode(request(1, "ping"))
    conn = t.conn(address=address)
    conn.send(PING10 % (len(body), body))
    return conn.response()


@case(own=True)
def a_plain_proxy_does_not_publish_it(t):
    """SEC-69: what speaks HTTP/1.0 is a proxy, and no client of MCP; probes are answered."""
    response = ping_of_a_plain_proxy(t)
    text = response.read()
    ok(response.status == 403 and b"HTTP/1.0" in text and b"trusted_proxies: [127.0.0.1]" in text, "the lines", response.status, text)
    t.daemon.wait_log("caller_refused", "status=403", "it seems (HTTP/1.0)")
    conn = t.conn()
    conn.send(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
    eq(conn.response().status, 200)


NGINX = """daemon off; master_process off; pid %(dir)s/pid; error_log %(dir)s/log; events {}
http {
    access_log off; client_body_temp_path %(dir)s/a; proxy_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/c; uwsgi_temp_path %(dir)s/d;
    scgi_temp_path %(dir)s/e;
    server { listen 127.0.0.1:%(port)d; location / { proxy_pass http://127.0.0.1:%(gateway)d; } }
}
"""


@case(own=True)
def nginx_alone_does_not_publish_it(t):
    """SEC-69: with proxy_pass and nothing else it says nothing of itself but HTTP/1.0."""
    if not shutil.which("nginx"):
        raise harness.Skip("no nginx here")
    port = wire.free_port()
    place = {"dir": t.directory(), "port": port, "gateway": t.daemon.address[1]}
    with open(place["dir"] + "/conf", "w") as f:
        f.write(NGINX % place)
    nginx = subprocess.Popen(["nginx", "-c", f.name], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, 5, "nginx")
        response = t.conn(address=("127.0.0.1", port)).request("POST", "/main/mcp", JSON, encode(request(1, "ping")))
        eq((response.status, b"HTTP/1.0" in response.read()), (403, True))
    finally:
        nginx.kill()
        nginx.wait()


@case(daemon=False)
def a_known_proxy_or_a_token_is_enough(t):
    """SEC-69: who has named the proxy, or asks for tokens, or says that everybody may, has thought of it."""
    for config, status in (({"trusted_proxies": ["127.0.0.1"]}, 400), (TOKENS, 401), ({"auth": {"mode": "anonymous"}}, 400)):
        daemon = t.start({"main": {}}, config)
        response = t.conn(address=daemon.address).request("POST", "/main/mcp", JSON + [FORWARDED[1]], encode(request(1, "ping")))
        response.read()
        eq(response.status, status, config)
        eq(ping_of_a_plain_proxy(t, daemon.address).status, status, config)


@case(own=True, config=dict(TOKENS, log={"level": "info", "access": True}))
def refused_callers_are_seen(t):
    """product §5: at info: who, where, why; ten lines a second at most. The access log has each request, without its query."""
    for i in range(30):
        t.conn().request("POST", "/main/mcp?secret=%d" % i, JSON + [("Authorization", "Bearer wrong")], encode(request(1, "ping"))).read()
    line = t.daemon.wait_log("caller_refused", "status=401", "server=main", "client=127.0.0.1")
    t.daemon.wait_log("access", "method=POST", "path=/main/mcp ", "status=401", "ms=")
    wait_for(lambda: len(t.daemon.log("access")) == 30, what="a line for each request")
    seconds = [l.split(".")[0] for l in t.daemon.log("caller_refused")]
    ok(max(seconds.count(s) for s in seconds) <= 20, "bounded", line)
    ok("secret" not in "".join(t.daemon.log("access")), "no query", None)

    def told():
        t.conn().request("POST", "/main/mcp", JSON, encode(request(1, "ping"))).read()
        return [l for l in t.daemon.log("caller_refused") if re.search(r"left_out=[1-9]", l)]
    wait_for(told, what="how many were left out")


@case(own=True, config={"log": {"level": "info", "access": True}})
def a_line_for_each_request_and_no_other(t):
    """product §5: what is no request has none, be it on a connection that had one."""
    conn = t.conn()
    conn.request("GET", "/healthz").read()
    conn.send(b"nonsense\r\n\r\n")
    eq(conn.response().status, 400)
    t.conn().request("GET", "/readyz").read()
    t.daemon.wait_log("access", "path=/readyz")
    eq([re.search(r"path=(\S+) status=(\d+)", l).groups() for l in t.daemon.log("access")], [("/healthz", "200"), ("/readyz", "200")])


def payloads(t, way):
    return [l for l in t.daemon.log("payload") if "way=%s " % way in l]


@case(own=True, servers={"main": {"script": {}}}, config={"log": {"level": "info", "payloads": True}})
def messages_are_seen_on_their_way(t):
    """product §5: with log.payloads, each message at each of its four stations, as an answer and as an event, escaped and cut."""
    s = t.session()
    for n, steps in enumerate(([["text", "plain"]], [["progress", 1], ["text", "after progress"]])):
        s.ask("tools/call", {"name": "do", "arguments": {"steps": steps, "mark": "MARK%d\u202e%s" % (n, "x" * 2000)},
                             "_meta": {"progressToken": 7}})
        for way in ("from_client", "to_server"):
            line = wait_for(lambda: [l for l in payloads(t, way) if "MARK%d" % n in l], 3, way)[0]
            ok("server=main" in line and int(re.search(r"bytes=(\d+)", line)[1]) > 2000, "whose it is", line)
            ok(len(line) < 1500 and "\u202e" not in line, "escaped and cut", line)
        for way in ("from_server", "to_client"):
            wait_for(lambda: [l for l in payloads(t, way) if steps[-1][1] in l], 3, way)
    for way in ("from_server", "to_client"):
        wait_for(lambda: [l for l in payloads(t, way) if "notifications/progress" in l], 3, way)
    response = t.conn().request("POST", "/main/mcp", JSON + [("Accept", mcp.BOTH)], b"{nonsense")
    eq((response.status, b"-32700" in response.read()), (400, True))
    wait_for(lambda: [l for l in payloads(t, "to_client") if "-32700" in l], 3, "what we answer ourselves")


@case(own=True, config={"log": {"level": "debug"}})
def messages_are_in_no_log_otherwise(t):
    """product §5: not even at debug, unless log.payloads says so."""
    t.session().echo("SECRET-TEXT")
    t.daemon.wait_log("session_start")
    eq([l for l in t.daemon.lines if "SECRET-TEXT" in l], [])


@case(daemon=False)
def a_log_of_json_is_json(t):
    """product §4: with log.format json every line is an object, the addresses included."""
    daemon = t.start({"main": {}}, {"log": {"level": "info", "format": "json", "access": True}}, wait=False)
    wait_for(lambda: any("endpoint_ready" in line for line in list(daemon.lines)), what="the address")
    line = next(l for l in list(daemon.lines) if "endpoint_ready" in l)
    url = json.loads(line)["url"]
    port = int(url.split(":")[2].split("/")[0])
    t.conn(address=("127.0.0.1", port)).request("GET", "/healthz").read()
    wait_for(lambda: any('"access"' in l for l in list(daemon.lines)), what="the access log")
    for line in list(daemon.lines):
        ok(isinstance(json.loads(line), dict), "a line", line)


@case(own=True, config={"log": {"level": "debug", "access": True}})
def who_leaves_has_a_line_too(t):
    """product §5: a request whose client did not wait for the answer was served all the same."""
    s = t.session()
    call = s.start_do(["sleep", 5], ["text", "x"])
    wait_for(lambda: len(t.daemon.log("request")) == 3, what="the call")
    call.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    call.conn.close()
    t.daemon.wait_log("access", "method=POST", "path=/main/mcp", "status=0")


@case(own=True, config={"trusted_proxies": ["127.0.0.1"]})
def the_page_of_an_old_browser(t):
    """SEC-01 SEC-69: HTTP/1.0, which a proxy speaks, need not say for which host it is; then paths alone are named."""
    conn = t.conn()
    conn.send(b"GET / HTTP/1.0\r\nAccept: text/html\r\n\r\n")
    response = conn.response()
    text = response.read()
    eq(response.status, 200)
    ok(b"<code>/main/mcp</code>" in text and b"http:///" not in text, "text", text)


@case
def the_page_reflects_nothing(t):
    """SEC-01 SEC-15 SEC-32: whatever stands in the path, in Host, or in what proxies write, is not in the page, nor in its head."""
    attack = "%3Cscript%3E%0d%0aX-Evil:%201"
    pages = set()
    for path in ("/", "/" + attack, "/<script>alert(1)</script>", "/?q=<script>", "/main/mcp?" + attack, "/'\"><svg/onload=x>"):
        response = t.conn().request("GET", path, BROWSER)
        pages.add(response.read())
        eq(response.status, 200, path)
        ok(not [h for h in response.headers if "evil" in str(h).lower()], "head", response.headers)
        eq(response.header("x-content-type-options"), "nosniff")
        eq(response.header("cache-control"), "no-store")
        ok("frame-ancestors 'none'" in response.header("content-security-policy"), "frames", response.headers)
    eq(len(pages), 1, "pages")
    for host, status in (("<script>", 400), ("localhost:1<x", 400), ("localhost\"onload=x", 400), ("localhost@evil.example", 400),
                         ("evil.example", 403), ("localhost.evil.example", 403)):
        response = t.conn().request("GET", "/", BROWSER + [("Host", host)])
        text = response.read()
        eq(response.status, status, host)
        ok(b"<" not in text and b"evil" not in text, "body", text)
    response = t.conn().request("GET", "/", BROWSER + [("X-Forwarded-Host", "evil.example")])
    ok(b"evil" not in response.read(), "forwarded", response.body)
    eq(response.status, 403)


@case
def the_operator_gets_no_page(t):
    """SEC-17: the admin socket is for programs."""
    for path in ("/mcp/main", "/mcp/other", "/mcp/nothing"):
        response = t.conn(address=t.daemon.admin).request("GET", path, BROWSER)
        ok(b"<html" not in response.read(), path, response.body)
        ok(response.status >= 400, path, response.status)


CARD = {"description": "The team's wiki.", "version": "1.0.0", "title": "Wiki"}


@case(daemon=False, deadline=30)
def a_server_card(t):
    """FRONT-HTTP-16: who has none shows none; from the configuration alone, also where tokens are needed; a reload changes it."""
    auth = {"mode": "token", "tokens": [c61_token.entry("ada", "secret")]}
    config = {"public_url": "https://mcp.example.com/p", "auth": auth,
              "endpoints": {"all": {"servers": ["main", "other"], "card": dict(CARD, websiteUrl="https://w.example")}}}
    t.start({"main": {"script": {}, "card": CARD}, "other": {"script": {}}}, config)

    def get(path, *fields, verb="GET"):
        response = t.conn().request(verb, path, list(fields))
        body = response.read()
        return response, body and json.loads(body)

    response, card = get("/main/mcp/server-card", ("Origin", "https://anywhere.example"))
    eq((response.status, response.header("content-type"), response.header("access-control-allow-origin"), response.header("access-control-expose-headers")),
       (200, "application/mcp-server-card+json", "*", "ETag"))
    eq(card, dict(CARD, **{"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json", "name": "com.example.mcp/main",
                           "remotes": [{"type": "streamable-http", "url": "https://mcp.example.com/p/main/mcp",
                                        "supportedProtocolVersions": card["remotes"][0]["supportedProtocolVersions"]}]}))
    eq(set(card["remotes"][0]["supportedProtocolVersions"]) >= {mcp.B, mcp.C, mcp.D, "2026-07-28"}, True)
    tag = response.header("etag")
    for known in (tag, "W/" + tag, '"x", ' + tag, "*"):
        response, body = get("/p/main/mcp/server-card/", ("If-None-Match", known))
        eq((response.status, body, response.header("etag")), (304, b"", tag), known)
    eq(get("/main/mcp/server-card", ("If-None-Match", '"x"'))[0].status, 200)
    eq(get("/all/mcp/server-card")[1]["name"], "com.example.mcp/all")
    eq(get("/all/mcp/server-card")[1]["websiteUrl"], "https://w.example")
    for path in ("/other/mcp/server-card", "/main/server-card", "/server-card", "/none/mcp/server-card", "/main/mcp/server-cards"):
        eq(get(path)[0].status, 404, path)
    for verb, status in (("POST", 405), ("DELETE", 405), ("OPTIONS", 204), ("HEAD", 200)):
        eq(get("/main/mcp/server-card", verb=verb)[0].status, status, verb)
    reload(t, {"main": {"script": {}}, "other": {"script": {}, "card": dict(CARD, version="2")}}, dict(config, endpoints={}))
    eq(get("/main/mcp/server-card")[0].status, 404)
    eq(get("/other/mcp/server-card")[1]["version"], "2")
    eq(t.session("other", token="secret").echo("on"), "on")


@case(daemon=False)
def a_card_that_cannot_be(t):
    """mcpgated.yaml(5): it needs what its schema wants, and an address."""
    head = "servers:\n  main:\n    command: /bin/cat\n    card: "
    url = "public_url: https://x.example\n"
    refused(head + "{description: a, version: 1.0.0}\n", "public_url")
    refused(url + head + "{description: a}\n", "card: needs a version")
    refused(url + head + "{version: '1'}\n", "card: needs a description")
    refused(url + head + "{version: '1', description: %s}\n" % ("a" * 101), "card.description: must have 1 to 100 bytes")
    refused(url + head + "{version: '1', description: a, tools: []}\n", "must be one of title, description, version, websiteUrl, not 'tools'")
