"""Certificates of one's own, clocks that are off, restarts, several addresses, other hosts."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import unittest

from harness import BIN, DEADLINE_S, wait_until
from secured import LONG_STUDY, Secured, openssl

try:
    import grpc
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed; scripts/bootstrap --tests brings it"

FAKETIME = shutil.which("faketime")
SHORT_LIFE_S = 12


class Authority:
    """Keys and certificates that openssl makes: a root, an intermediate one, and what they sign."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.root = self._sign(f"{name}-root", None, "/CN=Root", "basicConstraints=critical,CA:TRUE")
        self.middle = self._sign(f"{name}-middle", self.root, "/CN=Middle", "basicConstraints=critical,CA:TRUE")

    def _path(self, name, kind):
        return self.folder / f"{name}.{kind}"

    def _sign(self, name, issuer, subject, extensions, days=90, now=None):
        key, certificate = self._path(name, "key"), self._path(name, "crt")
        request, text = self._path(name, "csr"), self._path(name, "ext")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                "-out", request, "-subj", subject)
        text.write_text(extensions)
        signer = ["-CA", self._path(issuer, "crt"), "-CAkey", self._path(issuer, "key"), "-CAcreateserial"] if issuer \
            else ["-signkey", key]
        openssl("x509", "-req", "-in", request, *signer, "-out", certificate, "-days", days, "-extfile", text, now=now)
        return name

    def server(self, name, days=90, host="IP:127.0.0.1"):
        """(certificate with its chain, key)"""
        self._sign(name, self.middle, f"/CN={name}", f"subjectAltName={host}\nextendedKeyUsage=serverAuth", days)
        chain = self._path(name, "pem")
        chain.write_text("".join(self._path(one, "crt").read_text() for one in (name, self.middle, self.root)))
        return chain, self._path(name, "key")

    def client(self, name, role, usage="clientAuth", days=90, now=None):
        """(certificate with the intermediate one, key)"""
        subject = f"/OU={role}/CN={name}" if role else f"/CN={name}"
        self._sign(name, self.middle, subject, f"extendedKeyUsage={usage}", days, now)
        chain = self._path(name, "pem")
        chain.write_text("".join(self._path(one, "crt").read_text() for one in (name, self.middle)))
        return chain, self._path(name, "key")

    @property
    def anchor(self):
        return self._path(self.root, "crt")


class OwnCertificates(Secured):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)

    def options(self, certificate, key, *more):
        return ["--tls-cert", certificate, "--tls-key", key, *more]

    def fails(self, *options, said):
        done = subprocess.run([BIN / "hpo-server", "--db", self.folder / "other.db", "--listen", "127.0.0.1:0", "--tls",
                               *options], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.refused(done, *said)

    def test_tokens_work_with_a_chain_and_a_renewed_certificate(self):
        server = self.start_secured(*self.options(*self.authority.server("one")))
        join = self.join("read")
        self.assertEqual(self.run_as(join, "status").returncode, 0)
        server.terminate()
        # The next certificate of the same authority: what clients have stays valid.
        server = self.start_secured(*self.options(*self.authority.server("two")))
        done = self.run_as(join, "status")
        self.assertEqual(done.returncode, 0, done.stderr)
        server.terminate()
        # Of the same authority, but for another host.
        server = self.start_secured(*self.options(*self.authority.server("three", host="DNS:elsewhere")))
        self.refused(self.run_as(join, "status"), "is not the one of the join string", "mismatch")
        server.terminate()
        # Of another authority with the same names.
        other = Authority(self.folder, "other")
        self.start_secured(*self.options(*other.server("four")))
        self.refused(self.run_as(join, "status"), "is not the one of the join string")

    def test_bad_certificates_are_told_at_the_start(self):
        good, key = self.authority.server("good")
        expired, its_key = self.authority.server("expired", days=-1)
        other = self.authority.server("other")[1]
        self.fails(*self.options(expired, its_key), said=("expired",))
        self.fails(*self.options(good, other), said=(str(other),))
        noise = self.folder / "noise"
        noise.write_text("no PEM")
        self.fails(*self.options(noise, key), said=("PEM", str(noise)))
        self.fails(*self.options(good, noise), said=("PEM", str(noise)))
        self.fails("--tls-client-ca", noise, said=("--tls-client-ca", "PEM"))

    @unittest.skipIf(MISSING, MISSING)
    def test_a_client_certificate_has_the_role_of_its_unit(self):
        self.start_secured(*self.options(*self.authority.server("server")), "--tls-client-ca", self.authority.anchor)
        expected = {"read": ("OK", "PERMISSION_DENIED"), "work": ("PERMISSION_DENIED", "PERMISSION_DENIED"),
                    "write": ("OK", "PERMISSION_DENIED"), "admin": ("OK", "OK"),
                    "nonsense": ("OK", "PERMISSION_DENIED"), None: ("OK", "PERMISSION_DENIED")}
        for role, codes in expected.items():
            with self.subTest(role=role):
                identity = self.authority.client(f"client-{role}", role)
                self.assertEqual((self.code(identity, "/hpo.v1.StudyService/ListStudies"),
                                  self.code(identity, "/hpo.v1.AdminService/ListTokens")), codes)
        self.assert_audited(event="refused", who="certificate:client-work", role="work", method="ListStudies")
        self.assertEqual(self.run_as(self.join("read"), "status").returncode, 0)  # tokens as well

    @unittest.skipIf(MISSING, MISSING)
    def test_other_client_certificates_are_refused(self):
        self.start_secured(*self.options(*self.authority.server("server")), "--tls-client-ca", self.authority.anchor)
        other = Authority(self.folder, "other")
        for identity, why in ((other.client("stranger", "admin"), ""),
                              (self.authority.client("late", "admin", days=-1), "expired"),
                              (self.authority.client("for-servers", "admin", usage="serverAuth"), "purpose")):
            self.assertEqual(self.code(identity, "/hpo.v1.StudyService/ListStudies"), "UNAVAILABLE")
            name = identity[0].stem
            event = self.assert_audited(event="handshake", why=f"(of certificate '{name}')")
            self.assertIn(why, event["why"])
            self.assertNotIn("who", event, "nothing has proved the name")

    @unittest.skipIf(MISSING, MISSING)
    @unittest.skipIf(FAKETIME is None, "faketime is not installed: apt-get install faketime")
    def test_an_open_stream_ends_with_its_certificate(self):
        self.start_secured(*self.options(*self.authority.server("server")), "--tls-client-ca", self.authority.anchor)
        end = time.monotonic() + SHORT_LIFE_S
        short = self.authority.client("short", "read", days=1, now=f"-{24 * 3600 - SHORT_LIFE_S}s")
        long = self.authority.client("long", "read")
        ends, streams = {}, {}
        with contextlib.ExitStack() as opened:
            for name, identity in (("short", short), ("long", long)):
                channel = opened.enter_context(grpc.secure_channel(self.address, self.credentials(identity)))
                stream = channel.unary_stream("/hpo.v1.StudyService/WatchStudy")(b"\x0a\x03toy", timeout=DEADLINE_S)
                streams[name] = stream
                stream.add_callback(lambda name=name: ends.setdefault(name, time.monotonic()))
            wait_until(lambda: "short" in ends, "the end of the stream", SHORT_LIFE_S + 10)
            self.assertGreater(ends["short"], end - 2, streams["short"].details())
            self.assertNotIn("long", ends)

    def credentials(self, identity):
        return grpc.ssl_channel_credentials(self.authority.anchor.read_bytes(), identity[1].read_bytes(),
                                            identity[0].read_bytes())

    def code(self, identity, method):
        """The code of a call of stock gRPC with these files."""
        with contextlib.closing(grpc.secure_channel(self.address, self.credentials(identity))) as channel:
            try:
                channel.unary_unary(method)(b"", timeout=5)
                return "OK"
            except grpc.RpcError as error:
                return error.code().name

    @unittest.skipIf(FAKETIME is None, "faketime is not installed: apt-get install faketime")
    def test_a_clock_that_is_a_year_off_is_told(self):
        self.start_secured(*self.options(*self.authority.server("server")))
        for shift, said in (("+1y", "expired"), ("-1y", "not yet valid")):
            with self.subTest(shift):
                done = subprocess.run([FAKETIME, "-f", shift, BIN / "hpo", "status"], capture_output=True, text=True,
                                      timeout=DEADLINE_S, env={**os.environ, "HPO_JOIN": self.join("read")}, check=False)
                self.refused(done, said, "clock")
        done = subprocess.run([FAKETIME, "-f", "+1y", BIN / "hpo-server", "--db", self.folder / "other.db", "--tls",
                               "--listen", "127.0.0.1:0", *self.options(*self.authority.server("again"))],
                              capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.refused(done, "expired", "clock")

    @unittest.skipIf(FAKETIME is None, "faketime is not installed: apt-get install faketime")
    def test_a_clock_that_is_off_harms_no_pinned_certificate(self):
        self.start_secured()
        for shift in ("+1y", "-1y", "+20y"):
            done = subprocess.run([FAKETIME, "-f", shift, BIN / "hpo", "status"], capture_output=True, text=True,
                                  timeout=DEADLINE_S, env={**os.environ, "HPO_JOIN": self.join("read")}, check=False)
            self.assertEqual(done.returncode, 0, (shift, done.stderr))


class Starts(Secured):
    """The server starts again, and elsewhere."""

    def test_killed_servers_lose_nothing(self):
        server = self.start_secured("--lease-ttl", "5s")
        joins = {role: self.join(role) for role in ("read", "work", "admin")}
        workers = [self.start_worker(f"w{i}", environment={"HPO_FAKE_PACE_MS": "200"}) for i in range(2)]
        for done in (1, 3):
            wait_until(lambda n=done: self.study()["counts"]["completed"] >= n, "completed trials")
            server.kill9()
            server = self.start_secured("--lease-ttl", "5s")
        self.assertEqual({role: self.join(role) for role in joins}, joins)
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "the study's end")
        trials = self.trials()
        self.assertEqual([trial["state"] for trial in trials], ["COMPLETED"] * 6)
        self.assertEqual([len(self.trial(trial["number"])["attempts"]) for trial in trials], [1] * 6)
        self.assertEqual([worker.wait() for worker in workers], [0, 0])

    def test_the_files_lead_to_the_server_as_it_is_now(self):
        server = self.start_secured()
        join = self.join("read")
        server.terminate()
        self.address = None  # another port
        server = self.start_secured()
        self.assertNotEqual(self.join("read"), join)
        self.assertIn(self.address, server.output())
        self.assertEqual(self.run_as(self.join("read"), "status").returncode, 0)
        server.terminate()
        for name in ("tls-cert.pem", "tls-key.pem"):
            (self.access / name).unlink()
        self.start_secured()
        self.assertEqual(self.run_as(self.join("read"), "status").returncode, 0)
        self.refused(self.run_as(join, "status"))

    def test_of_several_addresses_the_one_with_tls_is_named(self):
        server = self.start_server("--listen", "0.0.0.0:0", listen="127.0.0.1:0")
        self.assertNotEqual(self.join("read").rsplit(":", 1)[1], self.address.rsplit(":", 1)[1])
        port = self.join("read").rsplit(":", 1)[1]
        self.assertEqual(self.run_as(self.join("read").split("@")[0] + f"@127.0.0.1:{port}", "status").returncode, 0)
        # On loopback as before.
        done = subprocess.run([BIN / "hpo", "--server", self.address, "status"], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("INSECURE", server.output())

    def test_insecure_is_in_capitals_wherever_it_is(self):
        server = self.start_server("--insecure", "--listen", "0.0.0.0:0", listen="127.0.0.1:0")
        wait_until(lambda: "INSECURE: PLAINTEXT" in server.output(), "the warning", 5)

    def test_one_half_of_the_certificate_is_no_certificate(self):
        server = self.start_secured()
        server.terminate()
        (self.access / "tls-key.pem").unlink()
        done = subprocess.run([BIN / "hpo-server", "--db", self.folder / "hpo.db", "--listen", "127.0.0.1:0", "--tls"],
                              capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.refused(done, "tls-key.pem")


def can_make_hosts():
    return os.geteuid() == 0 and shutil.which("ip") is not None and subprocess.run(
        ["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(can_make_hosts(), "needs root, ip and network namespaces")
class TwoHosts(Secured):
    """Two network namespaces with a cable between them: what a machine beside the server sees and needs."""
    STUDY = LONG_STUDY.replace("100000", "4")
    SERVER, OTHER = "10.77.0.1", "10.77.0.2"

    def setUp(self):
        super().setUp()
        mark = f"hpo{os.getpid()}"
        self.hosts = [f"{mark}a", f"{mark}b"]
        for host in self.hosts:
            self.ip("netns", "add", host)
            self.addCleanup(self.ip, "netns", "del", host)
        self.ip("link", "add", "cable0", "netns", self.hosts[0], "type", "veth", "peer", "name", "cable0", "netns",
                self.hosts[1])
        for host, address in zip(self.hosts, (self.SERVER, self.OTHER)):
            self.ip("-n", host, "addr", "add", f"{address}/24", "dev", "cable0")
            for device in ("cable0", "lo"):
                self.ip("-n", host, "link", "set", device, "up")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=DEADLINE_S)

    def on(self, host, *words):
        return ["ip", "netns", "exec", self.hosts[host], *words]

    def test_two_commands_and_nothing_for_a_scanner(self):
        server = self.start("server", *self.on(0, BIN / "hpo-server", "--study", self.folder / "toy.yaml", "--db",
                                               self.folder / "hpo.db", "--listen", "0.0.0.0:50051"))
        line = wait_until(lambda: [text for text in server.output().splitlines() if "hpo-worker --join" in text],
                          "the line to paste")[0].split()
        self.assertRegex(line[-1], rf"@{self.SERVER}:50051$")
        scanner = subprocess.run(self.on(1, sys.executable, "-c", SCANNER, self.SERVER, "50051"), capture_output=True,
                                 timeout=DEADLINE_S, check=True)
        self.assertEqual(scanner.stdout, b"")
        worker = self.start("worker", *self.on(1, BIN / line[0], *line[1:], "--device", "cpu", "--memory-limit", "1GiB",
                                               "--state-dir", self.folder / "state", "--trainer",
                                               os.environ["HPO_FAKE_TRAINER"]))
        self.assertEqual(worker.wait(), 0, worker.output())
        done = subprocess.run(self.on(1, BIN / "hpo", "status", "--output", "json"), capture_output=True, text=True,
                              timeout=DEADLINE_S, env={**os.environ, "HPO_JOIN_FILE": str(self.access / "join-read")},
                              check=True)
        self.assertIn('"completed": 4', done.stdout)
        self.assertTrue(any(event["from"].startswith(self.OTHER) and event["event"] == "handshake"
                            for event in self.audit()), self.audit())


# Prints what a server says to somebody without a token, but for an alert of TLS.
SCANNER = r"""
import socket, ssl, sys
target = sys.argv[1], int(sys.argv[2])
found = b""
def read(connection):
    whole = b""
    try:
        while piece := connection.recv(65536):
            whole += piece
    except OSError:
        pass
    return whole
for probe in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"):
    with socket.create_connection(target, timeout=5) as plain:
        plain.sendall(probe)
        answer = read(plain)
        if not (answer[:1] == b"\x15" and len(answer) == 7):
            found += answer
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
try:
    with socket.create_connection(target, timeout=5) as plain, context.wrap_socket(plain) as tls:
        tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
        found += read(tls)
except OSError:
    pass
sys.stdout.buffer.write(found)
"""
