"""A server with TLS on loopback, its tokens, and clients that may or may not be who they say.

The Python side derives a token's key by itself, from the sentence of docs/security.md: a second implementation that
the C++ one is held against, and the only one that can misuse it.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess

from harness import BIN, DEADLINE_S, FAKE_TRAINER, Deployment, wait_until

# The beginning of HTTP/2 without any settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
LABEL = b"hpo join string, client key, version 1"
# PKCS 8 around an Ed25519 seed (RFC 8410).
ED25519_HEAD = bytes.fromhex("302e020100300506032b657004220420")
SECRET = re.compile(r"hpo1\.[\w-]{43}\.([\w-]{47})@")
LONG_STUDY = """\
name: toy
objective: {metric: macro_f1, direction: maximize}
trainer: {task: custom, epochs: 1}
budget: {trials: 100000}
memory: {policy: "off"}
sampler: {type: random, seed: 3}
pruner: {type: none}
parameters:
  confidential_width: {float: [0.0, 1.0]}
"""


def secret_of(join):
    """The 32 bytes of a join string's secret."""
    return base64.urlsafe_b64decode(SECRET.search(join).group(1)[:43] + "=")


def derived_seed(secret):
    """HKDF-SHA256 (RFC 5869) without a salt, one block."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, LABEL + b"\x01", hashlib.sha256).digest()


def openssl(*words, now=None):
    """`now`: the time that openssl sees, as faketime takes it ("-1d")."""
    shift = ["faketime", "-f", now] if now else []
    subprocess.run([*shift, "openssl", *map(str, words)], check=True, capture_output=True, timeout=DEADLINE_S)


def pem(label, der):
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n"


def address_of(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def received(connection, most=1 << 20):
    """Everything until the other side closes, at most so many bytes."""
    whole = b""
    with contextlib.suppress(OSError):
        while len(whole) < most:
            piece = connection.recv(65536)
            if not piece:
                break
            whole += piece
    return whole


class Secured(Deployment):
    """Commands run as the token `admin` unless they say otherwise."""

    def setUp(self):
        super().setUp()
        self.access = self.folder / "hpo.db.access"

    def start_secured(self, *options, **more):
        return self.start_server("--tls", *options, **more)

    # -- tokens -----------------------------------------------------------------------------------

    def join(self, name):
        """The join string of a token that the server has made by itself."""
        return (self.access / f"join-{name}").read_text().split()[-1]

    def new_token(self, name, role, *options):
        return self.json("admin", "token", "create", name, "--role", role, *options)["join"]

    def identity(self, join, name="token"):
        """Files of the certificate and the key that are derived from a join string."""
        key, certificate = self.folder / f"{name}.key", self.folder / f"{name}.crt"
        key.write_text(pem("PRIVATE KEY", ED25519_HEAD + derived_seed(secret_of(join))))
        openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN={name}", "-days", 2, "-out", certificate)
        return certificate, key

    # -- commands ---------------------------------------------------------------------------------

    def run_as(self, join, *words, environment=None):
        """A command of hpo with a join string; the completed process."""
        return subprocess.run([str(BIN / "hpo"), *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S,
                              env={**os.environ, "HPO_JOIN": join, **(environment or {})}, check=False)

    def hpo(self, *words, status=0):
        done = self.run_as(self.join("admin"), *words)
        self.assertEqual(done.returncode, status, f"hpo {words}: {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def refused(self, done, *said):
        """`done` failed with one clear line, which says all of `said`."""
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)

    def start_worker(self, name="w0", *options, join=None, environment=None, trainer=FAKE_TRAINER):
        """Its join string is in its environment; an empty `join`: the caller gives one."""
        given = {"HPO_JOIN": self.join("work") if join is None else join}
        return self.start(name, BIN / "hpo-worker", "--device", "cpu", "--memory-limit", "1GiB", "--name", name,
                          "--state-dir", self.folder / f"state-{name}", "--trainer", trainer, *options,
                          environment={**given, **(environment or {})})

    def connect(self, join, name="connect", listen="127.0.0.1:0"):
        """hpo connect with that join string; the address that leads to the server."""
        file = self.folder / f"{name}.address"
        forwarder = self.start(name, BIN / "hpo", "connect", "--listen", listen, "--address-file", file,
                               environment={"HPO_JOIN": join})
        wait_until(lambda: not forwarder.alive() or file.exists(), "hpo connect")
        self.assertTrue(forwarder.alive(), forwarder.output())
        return file.read_text().strip()

    # -- bytes ------------------------------------------------------------------------------------

    def dial(self):
        return socket.create_connection(address_of(self.address), timeout=DEADLINE_S)

    def context(self, identity=None, protocols=("h2",)):
        """A TLS client that believes every server."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(list(protocols))
        if identity:
            context.load_cert_chain(*identity)
        return context

    # -- the audit log ----------------------------------------------------------------------------

    def audit(self):
        file = pathlib.Path(self.access / "audit.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def audited(self, **fields):
        """The first event whose fields contain these texts; fails where there is none within a while."""
        def find():
            return next((event for event in self.audit()
                         if all(text in event.get(name, "") for name, text in fields.items())), None)
        return wait_until(find, f"an audited event with {fields}", 10)

    def assert_audited(self, **fields):
        """Who where known, from where and why."""
        event = self.audited(**fields)
        self.assertRegex(event["from"], r"^127\.0\.0\.1:\d+$", event)
        self.assertTrue(event.get("why"), event)
        return event
