# SPDX-License-Identifier: Apache-2.0
"""TLS on a listener: who may connect and how, certificates that change, connections that break. DEF-03, SEC-34."""
import hashlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time

import harness
import mcp
import wire
from harness import Failure, case, eq, ok, wait_for, within

FILES = tempfile.TemporaryDirectory(prefix="mcpgated-tls-")


def path(name):
    return os.path.join(FILES.name, name)


def openssl(*args, stdin=b"", timeout=20):
    return subprocess.run(["openssl"] + list(args), input=stdin, capture_output=True, timeout=timeout * harness.SLOW)


def made(done):
    ok(done.returncode == 0, "openssl", done.stderr[-500:])


def make_certificate(name, *dns, ca=None, days="30", algorithm=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
    """NAME.crt and NAME.key: signed by the authority `ca`, or by itself; without names an authority."""
    extensions = (["-addext", "subjectAltName=" + ",".join("DNS:" + d for d in dns)] if dns else
                  ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"])
    command = ["req", "-newkey", *algorithm, "-nodes", "-keyout", path(name + ".key"), "-subj", "/CN=" + name]
    if ca:
        made(openssl(*command, "-out", path(name + ".csr"), *extensions))
        made(openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path(ca + ".crt"), "-CAkey", path(ca + ".key"),
                     "-CAcreateserial", "-copy_extensions", "copy", "-days", days, "-out", path(name + ".crt")))
    else:
        made(openssl(*command, "-x509", "-days", days, "-out", path(name + ".crt"), *extensions))
    os.chmod(path(name + ".key"), 0o600)


def make_all():
    make_certificate("ca")
    make_certificate("other-ca")
    make_certificate("server", "localhost", "*.example.com", ca="ca")
    make_certificate("second", "second.test", ca="ca")
    make_certificate("renewed", "localhost", ca="ca")
    make_certificate("short", "second.test", ca="ca", days="3")
    make_certificate("client", "client", ca="ca")
    make_certificate("stranger", "stranger", ca="other-ca")


make_all()


def pair(name):
    return {"certificate": path(name + ".crt"), "key": path(name + ".key")}


def tls_config(*names, address="127.0.0.1:0", **first):
    entries = [pair(n) for n in names or ("server",)]
    entries[0].update(first)
    return {"listen": [{"address": address, "tls": entries if len(entries) > 1 else entries[0]}]}


def start(t, config=None, servers=None, **limits):
    """A daemon whose listener speaks TLS."""
    daemon = TlsDaemon(servers or {"main": {}}, config or tls_config(), limits)
    t.daemons.append(daemon)
    if t.daemon is None:
        t.daemon = daemon
    return daemon


class TlsDaemon(harness.Daemon):
    def __init__(self, servers, config, limits, **more):
        super().__init__(servers, dict(config, limits=limits) if limits else config, **more)

    def use_url(self, url):
        ok(url.startswith("https://"), "an https URL is announced", url)
        super().use_url(url)
        self.plain_address = self.address
        self.address = wire.TlsAddress(self.address, client_context())

    def at(self, context=None, name="localhost", session=None):
        return wire.TlsAddress(self.plain_address, context or client_context(), name, session)


@case(daemon=False)
def command_line_with_a_certificate(t):
    """product §2 DEF-02: one command reaches other machines with --tls and --token-file; a certificate that has no key is refused with its place."""
    token = "0123456789abcdef0123456789abcdef"
    tokens = os.path.join(t.directory(), "tokens")
    with open(tokens, "w") as f:
        f.write(token + "\n")
    os.chmod(tokens, 0o600)
    files = os.path.relpath(path("server.crt"), "/tmp") + "," + path("server.key")
    argv = ["--listen", "0.0.0.0:0", "--tls", path("server.crt") + "," + path("server.key"), "--token-file", tokens, "--"] + harness.child_argv({})
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "--tls", files] + argv[6:], capture_output=True, text=True, timeout=20, cwd="/tmp")
    eq(done.returncode, 0, done.stderr)
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "--tls", path("server.crt") + "," + path("second.key")] + argv[6:],
                          capture_output=True, text=True, timeout=20)
    eq((done.returncode, "--tls: listen[0].tls.key: " in done.stderr), (1, True), done.stderr)
    t.daemon = TlsDaemon({}, None, {}, args=argv)
    t.daemons.append(t.daemon)
    t.daemon.address = wire.TlsAddress(("127.0.0.1", t.daemon.plain_address[1]), client_context(), "localhost")
    eq(t.conn().request("POST", "/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH)], b"{}").status, 401, "without a token")
    eq(t.session("main", path="/mcp", token=token).echo("x"), "x")


@case(daemon=False)
def certificate_of_one_command(t):
    """product §2 DEF-02: --tls self makes a certificate for the names of this machine, tells its fingerprint, and keeps it for the next start; -t makes none."""
    token, state = "0123456789abcdef0123456789abcdef", t.directory()
    tokens = os.path.join(t.directory(), "tokens")
    with open(tokens, "w") as f:
        f.write(token + "\n")
    os.chmod(tokens, 0o600)
    argv = ["--listen", "0.0.0.0:0", "--tls", "self", "--token-file", tokens, "--"] + harness.child_argv({})
    env = dict(os.environ, STATE_DIRECTORY=state)
    mcpgated = os.path.join(harness.BIN, "mcpgated")
    done = subprocess.run([mcpgated, "-t"] + argv, capture_output=True, text=True, timeout=20, env=env)
    eq((done.returncode, os.listdir(state)), (0, []), done.stderr)
    done = subprocess.run([mcpgated, "-t", "-c", "none.yaml", "--listen", "127.0.0.1:0", "--tls", "self"], capture_output=True, text=True, timeout=20, env=env)
    eq((done.returncode, "--tls self requires a command" in done.stderr), (2, True), done.stderr)
    fingerprints = []
    for _ in range(2):
        daemon = TlsDaemon({}, None, {}, args=argv, env={"STATE_DIRECTORY": state})
        t.daemons.append(daemon)
        file, fingerprint = re.search(r"certificate: (\S+), until .*, SHA-256 (\S+)", "\n".join(daemon.lines)).groups()
        fingerprints.append(fingerprint)
        with open(file) as f:
            pem = f.read()
        eq(fingerprint.replace(":", "").lower(), hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest(), "its own fingerprint")
        eq(os.stat(file.removesuffix(".crt") + ".key").st_mode & 0o777, 0o600, "the mode of the key")
        context = ssl.create_default_context(cafile=file)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        for name in ("localhost", socket.gethostname()):
            conn = wire.Conn(wire.TlsAddress(("127.0.0.1", daemon.plain_address[1]), context, name))
            headers = [("Content-Type", "application/json"), ("Accept", mcp.BOTH), ("Authorization", "Bearer " + token),
                       ("Host", "%s:%d" % (name, daemon.plain_address[1]))]
            eq(conn.request("POST", "/mcp", headers, json.dumps(mcp.initialize()).encode()).status, 200, name)
        ctl = [os.path.join(harness.BIN, "mcpgatectl"), "connect", "--token-file", tokens]
        env = dict(os.environ, MCPGATED_SOCKET=os.path.join(daemon.dir, "mcpgated", "admin.sock"))
        url = "https://localhost:%d/mcp" % daemon.plain_address[1]
        name = re.search(r"ready: (\S+) ", "\n".join(daemon.lines)).group(1)
        for args, said in (([url], "SSL"), ([url, "--ca", file], '"protocolVersion"'), ([name], '"protocolVersion"')):
            done = subprocess.run(ctl + args, input=json.dumps(mcp.initialize()) + "\n", capture_output=True, text=True, timeout=20 * harness.SLOW,
                                  env=env)
            ok(said in done.stdout + done.stderr, " ".join(args), done.stdout, done.stderr)
        eq(daemon.stop(), [])
        t.daemons.remove(daemon)
    eq(fingerprints[0], fingerprints[1], "the same certificate at the next start")


def client_context(certificate=None, low=None, high=None, alpn=None, ciphers=None):
    context = ssl.create_default_context(cafile=path("ca.crt"))
    if certificate:
        context.load_cert_chain(path(certificate + ".crt"), path(certificate + ".key"))
    if low:
        context.minimum_version = low
    if high:
        context.maximum_version = high
    if alpn:
        context.set_alpn_protocols(alpn)
    if ciphers:
        context.set_ciphers(ciphers)
    return context


def handshake_fails(address, context=None, name="localhost"):
    """The error with which the client notices it, at the latest when it reads."""
    try:
        conn = wire.Conn(wire.TlsAddress(address, context or client_context(), name), timeout=5)
        conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        conn.sock.recv(1)
    except (ssl.SSLError, ConnectionError) as e:
        return str(e)
    raise Failure("the handshake has succeeded")


def health(address):
    """One request on a connection of its own; the connection."""
    conn = wire.Conn(address)
    response = conn.request("GET", "/healthz")
    eq(response.status, 200)
    response.read()
    return conn


def leaf(conn):
    return hashlib.sha256(conn.sock.getpeercert(True)).hexdigest()


def leaf_of(name):
    with open(path(name + ".crt")) as f:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()


def reload(daemon, event="certificates_used"):
    before = len(daemon.log(event))
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(daemon.log(event)) > before, 5, "log line " + event)


def copy(source, target):
    """By rename, as tools that renew certificates do it."""
    for kind in (".crt", ".key"):
        with open(path(source + kind), "rb") as f:
            data = f.read()
        with open(path(target + kind + ".new"), "wb", opener=lambda p, fl: os.open(p, fl, 0o600)) as f:
            f.write(data)
        os.rename(path(target + kind + ".new"), path(target + kind))


# ---- versions and ciphers ----

@case(daemon=False)
def versions(t):
    """DEF-03: TLS 1.2 and 1.3 work, ALPN says http/1.1, nothing is compressed."""
    daemon = start(t)
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        conn = health(daemon.at(client_context(low=version, high=version, alpn=["h2", "http/1.1"])))
        eq(conn.sock.version(), name)
        eq(conn.sock.selected_alpn_protocol(), "http/1.1")
        eq(conn.sock.compression(), None)
        ok(re.search("GCM|CHACHA20", conn.sock.cipher()[0]), "cipher", conn.sock.cipher())
        conn.close()
    eq(health(daemon.at(client_context())).sock.selected_alpn_protocol(), None, "without an offer")


@case(daemon=False, deadline=30)
def weak_clients_are_refused(t):
    """DEF-03: TLS 1.0, 1.1, ciphers without forward secrecy or authentication, and clients for h2 alone are refused."""
    daemon = start(t)
    where = "%s:%d" % daemon.plain_address
    for args in (("-tls1",), ("-tls1_1",), ("-tls1_2", "-cipher", "AES128-SHA:AES256-GCM-SHA384:@SECLEVEL=0"),
                 ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0"),
                 ("-tls1_2", "-cipher", "aNULL:eNULL:@SECLEVEL=0"), ("-alpn", "h2")):
        low = ("-cipher", "DEFAULT:@SECLEVEL=0") if args[0] in ("-tls1", "-tls1_1") else ()
        done = openssl("s_client", "-connect", where, *args, *low)
        ok(done.returncode != 0, "refused: " + " ".join(args), done.stdout[-300:])
    ok("alert" in handshake_fails(daemon.plain_address, client_context(alpn=["h2"])).lower(), "an alert for h2")
    wait_for(lambda: len(daemon.log("arrival_refused")) == 7, 3, "refused here, not given up there")
    health(daemon.address)


@case(daemon=False)
def clients_that_do_not_trust_the_certificate(t):
    """SEC-34: the log says so of a client that ends the handshake when it has the certificate, with an alert or without; not of one that leaves before."""
    daemon = start(t, tls_config())

    def said():
        return len([line for line in daemon.log("arrival_refused") if "does not trust the certificate" in line])
    ok("verif" in handshake_fails(daemon.plain_address, ssl.create_default_context()).lower(), "its own reason")
    wait_for(lambda: said() == 1, what="an alert")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        count = said()
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = client_context(low=version, high=version).wrap_bio(coming, going, server_hostname="localhost")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        with socket.create_connection(daemon.plain_address) as sock:
            sock.settimeout(5 * harness.SLOW)
            sock.sendall(going.read())
            ok(sock.recv(65536), "its hello")
        wait_for(lambda: said() == count + 1, what="no word")
    with socket.create_connection(daemon.plain_address) as sock:
        sock.sendall(b"\x16\x03\x01")
    wait_for(lambda: len(daemon.log("arrival_refused")) == count + 2, what="one that leaves before")
    eq(said(), count + 1)


@case(daemon=False)
def min_version(t):
    """product §4: min_version 1.3 refuses TLS 1.2."""
    daemon = start(t, tls_config(min_version="1.3"))
    ok("version" in handshake_fails(daemon.plain_address, client_context(high=ssl.TLSVersion.TLSv1_2)).lower(), "alert")
    eq(health(daemon.at()).sock.version(), "TLSv1.3")


@case(daemon=False)
def no_renegotiation(t):
    """DEF-03: a client that asks for renegotiation is refused; nobody else notices."""
    daemon = start(t)
    process = subprocess.Popen(["openssl", "s_client", "-connect", "%s:%d" % daemon.plain_address, "-tls1_2"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process.stdin.write(b"R\n")
    process.stdin.flush()
    output = process.communicate(timeout=8 * harness.SLOW)[0]
    ok(b"RENEGOTIATING" in output, "it was asked for", output[-300:])
    ok(b"no renegotiation" in output.lower(), "and refused", output[-300:])
    health(daemon.address)


# ---- certificates ----

@case(daemon=False)
def names(t):
    """product §4: of several certificates a client gets the one for its name, else the first."""
    daemon = start(t, tls_config("server", "second"))
    loose = client_context()
    loose.check_hostname = False
    for name, expected in (("localhost", "server"), ("a.example.com", "server"), ("second.test", "second"),
                           ("SECOND.test", "second"), ("unknown.test", "server")):
        eq(leaf(health(daemon.at(loose, name))), leaf_of(expected), name)


@case(daemon=False)
def client_certificates(t):
    """product §4: with client_ca, none and a foreign one are refused, a right one is let in, also on resumption."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        daemon = start(t, tls_config("server", "second", client_ca=path("ca.crt")))
        for wrong in (None, "stranger"):
            for name in ("localhost", "second.test"):
                handshake_fails(daemon.plain_address, client_context(wrong, high=version, low=version), name)
        context = client_context("client", high=version, low=version)
        conn = health(daemon.at(context))
        again = health(daemon.at(context, session=conn.sock.session))
        ok(again.sock.session_reused, "resumed")
        health(daemon.at(context, "second.test"))
        daemon.wait_log("arrival_refused", "certificate")


@case(daemon=False)
def sessions_stay_where_they_were_made(t):
    """SEC-34: a session of a listener without client certificates opens no listener that wants one."""
    config = tls_config()
    config["listen"] += tls_config(client_ca=path("ca.crt"))["listen"]
    daemon = start(t, config)
    found = [re.search(r"address=127.0.0.1:(\d+)", line) for line in daemon.log("listen")]
    ports = [int(m.group(1)) for m in found if m]
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client_context(low=version, high=version)
        conn = health(wire.TlsAddress(("127.0.0.1", ports[0]), context))
        ok(health(wire.TlsAddress(("127.0.0.1", ports[0]), context, session=conn.sock.session)).sock.session_reused, "")
        try:
            health(wire.TlsAddress(("127.0.0.1", ports[1]), context, session=conn.sock.session))
        except (ssl.SSLError, ConnectionError, wire.ProtocolError):
            continue
        raise Failure("let in without a certificate")


@case(daemon=False)
def expiry_is_told(t):
    """product §5: a metric has when each certificate in use expires, and check names those that expire soon, until they are renewed."""
    copy("server", "lasting")
    copy("short", "live")
    daemon = start(t, tls_config("lasting", "live"))
    def metrics():
        text = t.conn(address=daemon.admin).request("GET", "/metrics").read().decode()
        return dict(re.findall(r'^mcpgated_certificate_not_after_seconds\{listener="127.0.0.1:0",file="(?:.*/)?(\w+).crt"\} (\d+)\.000$', text, re.M))
    def problems():
        report = json.loads(t.conn(address=daemon.admin).request("GET", "/check").read())
        return [p["text"] for p in report["problems"] if p["kind"].startswith("certificate_")]
    days = {name: (int(at) - time.time()) / 86400 for name, at in metrics().items()}
    ok(29 < days["lasting"] < 31 and 2 < days["live"] < 4, "both, in days", days)
    [text] = problems()
    ok(re.fullmatch(r"the certificate \S*live.crt of 127.0.0.1:0 expires on \S+Z: renew it, then mcpgatectl reload", text), "the one that is short", text)
    copy("second", "live")
    reload(daemon)
    wait_for(lambda: problems() == [], 5, "renewed")


@case(daemon=False, deadline=30)
def new_certificates(t):
    """REL-50: SIGHUP brings new certificates to new connections; streams and sessions live, clients resume."""
    copy("server", "live")
    daemon = start(t, tls_config("live"))
    s = t.session(daemon=daemon)
    streams = [t.session(daemon=daemon) for _ in range(24)]
    gets = [one.get() for one in streams]
    context = client_context()
    before = health(daemon.at(context))
    eq(leaf(before), leaf_of("server"))
    pending = s.start_do(["sleep", 1.5], ["text", "late"])
    copy("renewed", "live")
    reload(daemon)
    eq(leaf(health(daemon.at())), leaf_of("renewed"))
    ok(health(daemon.at(context, session=before.sock.session)).sock.session_reused, "resumed across the reload")
    eq(before.request("GET", "/healthz").status, 200, "the old connection")
    eq(pending.final()["result"]["content"][0]["text"], "late")
    for one, get in zip(streams, gets):
        one.do(["background", [["notify", "notifications/tools/list_changed"]]], ["text", "x"])
        eq(get.next()["method"], "notifications/tools/list_changed")


@case(daemon=False, deadline=30)
def bad_certificates(t):
    """REL-50: a bad pair, or a missing file, keeps the old one, and says so."""
    copy("server", "live2")
    daemon = start(t, tls_config("live2"))
    t.daemon.expected_errors.update(("certificates_refused", "reload_refused"))
    with open(path("second.key"), "rb") as f:
        foreign = f.read()
    with open(path("live2.key"), "wb") as f:
        f.write(foreign)
    reload(daemon, "certificates_refused")
    ok("does not belong" in daemon.log("certificates_refused")[-1], "why", daemon.log("certificates_refused"))
    eq(leaf(health(daemon.at())), leaf_of("server"))
    os.unlink(path("live2.crt"))
    reload(daemon, "certificates_refused")
    ok("live2.crt" in daemon.log("certificates_refused")[-1], "which file", daemon.log("certificates_refused"))
    eq(leaf(health(daemon.at())), leaf_of("server"))
    copy("renewed", "live2")
    reload(daemon)
    eq(leaf(health(daemon.at())), leaf_of("renewed"))


@case(daemon=False)
def systemd_sees_the_reload(t):
    """REL-52: RELOADING=1 with the time in one datagram, READY=1 when the certificates are in use, or are refused."""
    copy("server", "live4")
    name = os.path.join(t.directory(), "notify")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(name)
    sock.settimeout(5)
    daemon = harness.Daemon({"main": {}}, tls_config("live4"), env={"NOTIFY_SOCKET": name})
    t.daemons.append(daemon)
    daemon.expected_errors.update(("certificates_refused", "reload_refused"))
    eq(sock.recv(4096), b"READY=1")
    for event in ("certificates_used", "certificates_refused"):
        daemon.process.send_signal(signal.SIGHUP)
        ok(re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*", sock.recv(4096)), "the beginning")
        ok(re.fullmatch(rb"READY=1\nSTATUS=The configuration was read again.*", sock.recv(4096)), "the end")
        daemon.wait_log(event)
        os.truncate(path("live4.key"), 0)
    sock.close()


@case(daemon=False, deadline=20)
def gateway_restart(t):
    """REL-43: a network process that had to be started again serves with the certificates it had."""
    copy("server", "live3")
    daemon = start(t, tls_config("live3"))
    os.unlink(path("live3.key"))
    os.kill(daemon.gateway, signal.SIGKILL)
    wait_for(lambda: len(daemon.log("gateway_ready")) == 2, 5, "the second gateway")
    eq(leaf(health(daemon.at())), leaf_of("server"))
    copy("renewed", "live3")
    os.kill(daemon.find_gateway(), signal.SIGKILL)
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(daemon.log("certificates_used")) == 4, 5, "the third gateway's set, and the new one")
    eq(leaf(health(daemon.at())), leaf_of("renewed"), "asked for while there was no gateway, or it was about to go")
    daemon.gateway = daemon.find_gateway()
    daemon.base_fds = daemon.fds()


# ---- what is sent ----

@case(daemon=False, deadline=30)
def drain_hears_who_has_come(t):
    """REL-41: at the stop a handshake that has begun goes on, and a request that was not read yet is answered."""
    daemon = start(t)
    kept = health(daemon.address)
    begun = socket.create_connection(daemon.plain_address)
    call = t.session(daemon=daemon).start_do(["sleep", 3], ["text", "x"])
    wait_for(lambda: "sleep" in str(daemon.messages(daemon.children()[0])), what="the call at the server")
    os.kill(daemon.gateway, signal.SIGSTOP)
    try:
        kept.send(kept.head("GET", "/readyz"))
        daemon.term()
        daemon.wait_log("signal")
    finally:
        os.kill(daemon.gateway, signal.SIGCONT)
    ok(kept.response().status in (200, 503), "an answer")
    daemon.wait_log("drain")
    tls = client_context().wrap_socket(begun, server_hostname="localhost")
    tls.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    ok(tls.recv(100).startswith(b"HTTP/1.1 503 "), "the end of the handshake, and an answer")
    tls.close()
    eq(call.final()["result"]["content"][0]["text"], "x")
    eq(daemon.wait(), 0)


@case(daemon=False, deadline=30)
def messages_of_all_sizes(t):
    """stack §4: messages of all sizes pass unchanged both ways, in both versions; small ones at once."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        daemon = start(t)
        daemon.address = daemon.at(client_context(low=version, high=version))
        s = t.session(daemon=daemon)
        for size in (1, 16000, 16384, 16385, 40000, 300000, 3000000):
            text = "x%dy" % size * (size // 4 + 1)
            eq(s.echo(text[:size]) == text[:size], True, "echo of %d" % size)
        began = time.monotonic()
        for _ in range(20):
            s.echo("small")
        within(began, 0.5 * harness.SLOW, "no wait for an acknowledgement")


@case(daemon=False)
def events(t):
    """FRONT-SSE-01: an event stream over TLS, event by event."""
    daemon = start(t)
    s = t.session(daemon=daemon)
    e = s.start_do(["progress", 1], ["sleep", 0.2], ["progress", 2], ["sleep", 0.2], ["text", "x"], token="a")
    eq(e.next()["params"]["progress"], 1)
    eq(e.next()["params"]["progress"], 2)
    eq(e.final()["result"]["content"][0]["text"], "x")


@case(daemon=False, deadline=30)
def slow_reader(t):
    """stack §4: an answer that the socket takes in pieces arrives whole, whatever the pieces."""
    daemon = start(t)
    s = t.session(daemon=daemon)
    text = "0123456789abcdef" * 65536
    e = s.start_do(["text", text], conn=t.conn(address=daemon.address, receive_buffer=4096))
    time.sleep(0.5)
    ok(e.final(20)["result"]["content"][0]["text"] == text, "unchanged")


# ---- broken and slow connections ----

@case(daemon=False, deadline=30)
def slow_handshakes(t):
    """SEC-25 SEC-34: a silent or trickling client is closed 5 s after accept and delays nobody."""
    daemon = start(t)
    began = time.monotonic()
    silent = [socket.create_connection(daemon.plain_address) for _ in range(50)]
    trickle = socket.create_connection(daemon.plain_address)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    latest = 0
    for at in range(16):
        try:
            trickle.send(hello[at % len(hello):at % len(hello) + 1])
        except OSError:
            break
        one = time.monotonic()
        health(daemon.address).close()
        latest = max(latest, harness.seconds_since(one))
        time.sleep(0.25)
    ok(latest < 0.5 * harness.SLOW, "nobody waits", latest)
    for sock in silent + [trickle]:
        sock.settimeout(8 * harness.SLOW)
        try:
            eq(sock.recv(100), b"")
        except ConnectionResetError:
            pass
    took = time.monotonic() - began
    ok(took > 4.5, "too early", took)
    within(began, 7 * harness.SLOW, "after 5 s")
    daemon.wait_log("arrival_refused", "took too long")
    ok(len(daemon.log("arrival_refused")) <= 20, "few lines", len(daemon.log("tls_refused")))


@case(daemon=False, deadline=60)
def many_handshakes_at_a_time(t):
    """SEC-34 REL-51: beyond the bound the oldest handshake ends; a client that is quick gets in."""
    daemon = start(t)
    socks = [socket.create_connection(daemon.plain_address) for _ in range(1024 + 16)]
    health(daemon.address).close()
    socks[0].settimeout(3 * harness.SLOW)
    try:
        eq(socks[0].recv(1), b"")
    except ConnectionResetError:
        pass
    socks[-1].settimeout(0.1)
    try:
        socks[-1].recv(1)
        raise Failure("the newest was ended")
    except TimeoutError:
        pass
    for sock in socks:
        sock.close()


@case(daemon=False, deadline=30)
def torn_connections(t):
    """SEC-34 SEC-35: connections cut at every place, garbage and HTTP harm nobody and leak nothing."""
    daemon = start(t)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    for cut in range(0, len(hello) + 1, 7):
        sock = socket.create_connection(daemon.plain_address)
        sock.send(hello[:cut])
        if cut % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    for garbage in (b"\0" * 100, b"\x16\x03\x01\xff\xff" + b"a" * 70000, os.urandom(1000), b"\x80\x2e\x01\x00\x02" * 9):
        sock = socket.create_connection(daemon.plain_address)
        sock.settimeout(7)
        try:
            sock.sendall(garbage)
            while sock.recv(1000):
                pass
        except ConnectionError:
            pass
        sock.close()
    conn = health(daemon.address)
    raw = conn.sock.detach()
    os.write(raw, b"\x17\x03\x03\x00\x20" + b"z" * 32)  # a record that is not authentic
    sock = socket.socket(fileno=raw)
    sock.settimeout(5)
    while sock.recv(1000):
        pass
    sock.close()
    s = t.session(daemon=daemon)
    eq(s.echo("x"), "x")
    wait_for(lambda: daemon.fds()[daemon.gateway] <= daemon.base_fds[daemon.gateway] + 8, 8, "descriptors")


@case(daemon=False)
def ends_without_goodbye(t):
    """stack §4: FIN without close_notify is a peer that has gone; with it, the answer is still written."""
    daemon = start(t)
    s = t.session(daemon=daemon)
    conn = t.conn(address=daemon.address)
    s.begin(mcp.request(7, "tools/call", s.do_params([["sleep", 0.5], ["text", "x"]])), conn=conn)
    conn.sock.shutdown(socket.SHUT_WR)
    daemon.wait_log("connection_end", "peer_error")
    conn = t.conn(address=daemon.address)
    e = s.start_do(["sleep", 0.5], ["text", "still"], conn=conn)
    notify = conn.sock
    notify.setblocking(False)
    try:
        notify.unwrap()
    except ssl.SSLError:
        pass
    notify.settimeout(5)
    eq(s.echo("x"), "x", "the session goes on")


@case(daemon=False)
def http_on_a_tls_port(t):
    """SEC-34: HTTP without TLS gets a text that says so."""
    daemon = start(t)
    conn = t.conn(address=daemon.plain_address)
    response = conn.request("POST", "/main/mcp", [("Content-Type", "application/json")], "{}")
    eq(response.status, 400)
    ok(b"https" in response.read(), "text", response.body)
    daemon.wait_log("arrival_refused", "HTTP without TLS")


@case(daemon=False)
def tls_on_a_plain_port(t):
    """SEC-34: TLS on a port without is ended at once, with a line in the log."""
    t.start({"main": {}})
    began = time.monotonic()
    error = handshake_fails(t.daemon.address)
    within(began, 1 * harness.SLOW, "at once")
    t.daemon.wait_log("tls_unexpected", "127.0.0.1")
    for _ in range(30):
        handshake_fails(t.daemon.address)
    lines = t.daemon.log("tls_unexpected")
    ok(len(lines) <= 1 + time.monotonic() - began, "once a second", len(lines))


@case(daemon=False)
def connection_limit(t):
    """design stack §3: over limits.connections the connection is closed before the handshake."""
    daemon = start(t, connections=3)
    held = [wire.Conn(daemon.address) for _ in range(3)]
    for conn in held:
        # A body that does not come: an idle connection would give way.
        conn.send(conn.head("POST", "/main/mcp", [("Content-Type", "application/json"), ("Accept", mcp.BOTH)], 100))
    wait_for(lambda: len([l for l in daemon.log("connection_state") if "to=body" in l]) == 3, 3, "three in use")
    handshake_fails(daemon.plain_address)
    held[0].close()
    wait_for(lambda: daemon.log("connection_end"), 3, "the end of one")
    health(daemon.address)


# ---- configuration ----

def checked(text):
    """(exit code, output) of -t."""
    file = path("check.yaml")
    with open(file, "w") as f:
        f.write(text)
    os.chmod(file, 0o600)
    done = subprocess.run([os.path.join(harness.BIN, "mcpgated"), "-t", "-c", file], capture_output=True, text=True,
                          timeout=8 * harness.SLOW, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


GOOD = "servers:\n  main:\n    command: /bin/cat\n"


@case(daemon=False)
def configuration_problems(t):
    """product §4: what is wrong with a certificate is said with file, line and column."""
    made(openssl("req", "-new", "-key", path("server.key"), "-subj", "/CN=localhost", "-out", path("expired.csr")))
    made(openssl("x509", "-req", "-in", path("expired.csr"), "-signkey", path("server.key"), "-days", "0",
                 "-out", path("expired.crt")))
    make_certificate("weak", "localhost", algorithm=("rsa:1024",))
    made(openssl("pkey", "-in", path("server.key"), "-aes128", "-passout", "pass:x", "-out", path("locked.key")))
    line = "listen:\n  - address: 127.0.0.1:0\n    tls: {%s}\n"
    for tls, place, words in (
            ({"certificate": "server.crt", "key": "second.key"}, "3:", "does not belong to the certificate"),
            ({"certificate": "none.crt", "key": "server.key"}, "3:", "No such file"),
            ({"certificate": "server.key", "key": "server.key"}, "3:", "no certificate"),
            ({"certificate": "server.crt", "key": "server.crt"}, "3:", "no private key"),
            ({"certificate": "server.crt", "key": "locked.key"}, "3:", "passphrase"),
            ({"certificate": "weak.crt", "key": "weak.key"}, "3:", "too small"),
            ({"certificate": "server.crt", "key": "server.key", "client_ca": "server.key"}, "3:", "no certificate"),
            ({"certificate": "server.crt"}, "3:", "'key' is missing")):
        fields = ", ".join('%s: "%s"' % (k, path(v)) for k, v in tls.items())
        code, output = checked(line % fields + GOOD)
        eq(code, 1, output)
        ok(re.search(r"check\.yaml:%s\d+: .*%s" % (place, re.escape(words)), output), words, output)
    code, output = checked(line % 'certificate: server.crt, key: "%s"' % path("server.key") + GOOD)
    eq(code, 1, output)
    ok("tls.certificate: must be an absolute path, not 'server.crt'" in output, "a path that depends on the working directory", output)
    expired = line % 'certificate: "%s", key: "%s"' % (path("expired.crt"), path("server.key")) + GOOD
    wait_for(lambda: re.search(r"check\.yaml:3:\d+: .*expired", checked(expired)[1]), 5, "a warning: it was good for a second")
    eq(checked(expired)[0], 0)
    code, output = checked(line % 'certificate: "%s", key: "%s", min_version: "1.1"' % (path("server.crt"), path("server.key")) + GOOD)
    eq(code, 1, output)
    ok("must be one of 1.2, 1.3" in output, "versions", output)


@case(daemon=False)
def reachable_with_tls(t):
    """DEF-02: a non-loopback listener needs TLS or plaintext: true, and then authorization."""
    tls = '    tls: {certificate: "%s", key: "%s"}\n' % (path("server.crt"), path("server.key"))
    anonymous = "auth: {mode: anonymous}\n"
    address = "listen:\n  - address: 0.0.0.0:0\n"
    code, output = checked(address + anonymous + GOOD)
    eq(code, 1, output)
    ok("tls: {certificate: FILE, key: FILE}" in output and "plaintext: true" in output, "what to write", output)
    eq(checked(address + tls + anonymous + GOOD)[0], 0)
    eq(checked(address + tls + GOOD)[0], 1, "authorization is missing")
    code, output = checked(address + tls + "    plaintext: true\n" + anonymous + GOOD)
    eq(code, 1, output)


@case(daemon=False)
def the_page_has_the_scheme(t):
    """SEC-01 DEF-06: the page names addresses with https; a page that came without TLS may not call, be it of the same host and port."""
    start(t)
    port = t.daemon.plain_address[1]
    response = t.conn().request("GET", "/", [("Accept", "text/html"), ("Host", "localhost:%d" % port)])
    text = response.read()
    ok(b"<code>https://localhost:%d/main/mcp</code>" % port in text and b"http://" not in text, "page", text)
    for host, origin, status in (("localhost:%d" % port, "https://localhost:%d" % port, 204), ("localhost:%d" % port, "http://localhost:%d" % port, 403),
                                 ("localhost", "https://localhost", 204), ("localhost", "http://localhost", 403)):
        response = t.conn().request("OPTIONS", "/main/mcp", [("Host", host), ("Origin", origin)])
        response.read()
        eq(response.status, status, origin)
