# SPDX-License-Identifier: Apache-2.0
"""
An authorization server that only publishes: metadata and one RSA key over loopback HTTP, and signs what a case asks
for. Its answers can be held back. Signing is done by the openssl program.
"""
import base64
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.parse


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, stdin=b""):
    done = subprocess.run(["openssl"] + list(args), input=stdin, capture_output=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError("openssl %s: %s" % (args[0], done.stderr[-300:]))
    return done.stdout


class Key:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mcpgated-issuer-")
        self.path = os.path.join(self.folder.name, "key.pem")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.path)
        modulus = openssl("rsa", "-in", self.path, "-noout", "-modulus").strip().split(b"=")[1]
        self.jwk = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "e": "AQAB",
                    "n": b64(bytes.fromhex(modulus.decode()))}

    def sign(self, header, claims):
        data = "%s.%s" % (b64(json.dumps(header).encode()), b64(json.dumps(claims).encode()))
        return "%s.%s" % (data, b64(openssl("dgst", "-sha256", "-sign", self.path, stdin=data.encode())))


KEY = None  # made once: it takes a while


class Issuer:
    """Serves from its start; `gate` is what each request for keys or metadata waits for, `voice` each about a token."""

    def __init__(self, is_open=True):
        global KEY
        KEY = KEY or Key()
        self.gate = threading.Event()
        self.voice = threading.Event()
        self.voice.set()
        self.asked = []
        self.questions = []  # tokens, in the order in which they were asked about (RFC 7662)
        self.known = {}  # what is said of each
        self.forms = []  # and all that was sent with them
        self.status = 200  # of those answers
        self.give = None  # the token endpoint: gets the form and the head, returns a status and a document
        self.asked_for = []  # what has been asked for there: form and head
        if is_open:
            self.gate.set()
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.asked.append(self.path)
                issuer.gate.wait(30)
                document = issuer.documents().get(self.path)
                self.answer(200 if document else 404, document)

            def do_POST(self):
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                form_of_one = {name: values[0] for name, values in form.items()}
                if self.path == "/token":
                    issuer.asked_for.append((form_of_one, dict(self.headers)))
                    issuer.voice.wait(30)
                    self.answer(*issuer.give(form_of_one, self.headers))
                    return
                issuer.forms.append(form_of_one)
                issuer.questions.append(form["token"][0])
                issuer.voice.wait(30)
                self.answer(issuer.status, issuer.known.get(form["token"][0], {"active": False}))

            def answer(self, status, document):
                body = json.dumps(document).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # whoever asked has gone

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def documents(self):
        return {"/.well-known/oauth-authorization-server": {
                    "issuer": self.url, "jwks_uri": self.url + "/jwks", "authorization_endpoint": self.url + "/auth",
                    "token_endpoint": self.url + "/token", "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["plain", "S256"],
                    "authorization_response_iss_parameter_supported": True, "signed_metadata": "x",
                    "subject_types_supported": ["public"]},
                "/jwks": {"keys": [KEY.jwk]}}

    def token(self, aud, sub="alice", scope="use", **claims):
        now = int(time.time())
        whole = {"iss": self.url, "aud": aud, "sub": sub, "client_id": "app", "scope": scope, "iat": now, "exp": now + 600}
        whole.update(claims)
        return KEY.sign({"alg": "RS256", "kid": "k1", "typ": "at+jwt"}, {k: v for k, v in whole.items() if v is not None})

    def close(self):
        self.gate.set()
        self.voice.set()
        self.server.shutdown()
        self.server.server_close()
