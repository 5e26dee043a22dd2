# SPDX-License-Identifier: Apache-2.0
"""
What authorization costs: calls per second with tokens that are known, in turns with none at all; and the gateway's
processor time for a token that it has not seen, by algorithm. Figures only: nothing here fails by being slow.
"""
import json
import os
import statistics
import subprocess
import time

import harness
import issuer
import mcp
import wire
from common import BENCH, Problem, compiled, stop

ORIGIN = "http://localhost"
RESOURCE = ORIGIN + "/main/mcp"
ROUNDS, SECONDS, TOKENS = 5, 1, 300


class Key(issuer.Key):
    """A key of another kind, signing as its algorithm says."""

    def __init__(self, algorithm):
        super().__init__()
        self.algorithm = algorithm
        if algorithm in ("RS256", "PS256"):
            self.jwk["alg"] = algorithm
            return
        kind = ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"] if algorithm == "ES256" else ["ED25519"]
        issuer.openssl("genpkey", "-algorithm", *kind, "-out", self.path)
        public = issuer.openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        self.jwk = {"kid": "k1", "alg": algorithm, "use": "sig"}
        if algorithm == "ES256":
            self.jwk.update(kty="EC", crv="P-256", x=issuer.b64(public[-64:-32]), y=issuer.b64(public[-32:]))
        else:
            self.jwk.update(kty="OKP", crv="Ed25519", x=issuer.b64(public[-32:]))

    def sign(self, header, claims):
        header = dict(header, alg=self.algorithm)
        data = "%s.%s" % (issuer.b64(json.dumps(header).encode()), issuer.b64(json.dumps(claims).encode()))
        return "%s.%s" % (data, issuer.b64(self.signature(data.encode())))

    def signature(self, data):
        if self.algorithm == "EdDSA":
            path = os.path.join(self.folder.name, "data")
            with open(path, "wb") as f:
                f.write(data)
            return issuer.openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", path)
        options = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"] if self.algorithm == "PS256" else []
        signed = issuer.openssl("dgst", "-sha256", *options, "-sign", self.path, stdin=data)
        return flat(signed) if self.algorithm == "ES256" else signed


def flat(der):
    """r and s of an ECDSA signature as 32 bytes each."""
    at, numbers = 2, []
    for _ in range(2):
        n = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2:at + 2 + n], "big").to_bytes(32, "big"))
        at += 2 + n
    return b"".join(numbers)


def daemon_with(child, auth):
    server = {"command": child[0], "args": child[1:], "isolation": "shared"}
    return harness.Daemon({"main": server}, dict(auth, log={"level": "warn"}))


def trusting(made):
    return {"public_url": ORIGIN, "auth": {"mode": "oauth", "issuers": [{"issuer": made.url}]},
            "limits": {"sessions_per_principal": 10000}}


def calls_per_second(load, daemon, token):
    headers = ["--header", "Authorization: Bearer " + token] if token else []
    run = subprocess.run([load, "--url", "http://127.0.0.1:%d/main/mcp" % daemon.address[1], "--connections", "64",
                          "--duration", str(SECONDS), "--warmup", "0.5"] + headers, capture_output=True, text=True)
    figures = json.loads(run.stdout[run.stdout.find("{\n"):])
    if figures["errors"]:
        raise Problem("load: %d errors, the first: %s" % (figures["errors"], figures["first_error"]))
    return figures["rps"]


def known_tokens(child, load):
    made = issuer.Issuer()
    daemon, guarded = daemon_with(child, {}), daemon_with(child, trusting(made))
    token, ratios, rates = made.token(RESOURCE), [], []
    for _ in range(ROUNDS):
        without = calls_per_second(load, daemon, None)
        rates.append(calls_per_second(load, guarded, token))
        ratios.append(rates[-1] / without)
    stop(daemon)
    stop(guarded)
    print("tokens: 64 connections, a known RS256 token: %.0f calls/s, %.2f of those without authorization (median of %d pairs: %s)" % (
        statistics.median(rates), statistics.median(ratios), ROUNDS, " ".join("%.2f" % r for r in sorted(ratios))), flush=True)


def run_ns(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])


def us_per_ping(daemon, tokens):
    """The gateway's processor time for one request, with each of the tokens in turn."""
    conn = wire.Conn(daemon.address, timeout=30)
    began = run_ns(daemon.gateway)
    for token in tokens:
        fields = [("Content-Type", "application/json"), ("Accept", mcp.BOTH), ("Authorization", "Bearer " + token)]
        response = conn.request("POST", "/main/mcp", fields, mcp.encode(mcp.request(1, "ping")))
        response.read()
        if response.status != 400:  # known, and without a session
            raise Problem("a token was refused: %d %r" % (response.status, response.body))
    conn.close()
    return (run_ns(daemon.gateway) - began) / len(tokens) / 1000


def new_tokens(child):
    for algorithm in ("RS256", "PS256", "ES256", "EdDSA"):
        issuer.KEY = Key(algorithm)
        made = issuer.Issuer()
        daemon = daemon_with(child, trusting(made))
        tokens = [made.token(RESOURCE, jti=str(i)) for i in range(TOKENS)]
        us_per_ping(daemon, [made.token(RESOURCE, jti="first")] * 50)
        new, known = us_per_ping(daemon, tokens), us_per_ping(daemon, tokens)
        stop(daemon)
        print("tokens: %s: a request takes %.0f us of the gateway with a new token, %.0f us with a known one" % (
            algorithm, new, known), flush=True)
    issuer.KEY = None


def part_tokens(options, child):
    load = compiled(options.scratch, os.path.join(BENCH, "load.c"))
    if load is None or "echo-server" not in child[0]:
        raise Problem("no compiler for load.c")
    known_tokens(child, load)
    new_tokens(child)
