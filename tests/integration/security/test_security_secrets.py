"""Secrets stay where they belong, and a client proves nothing to anybody but the server of its join string."""

import os
import pathlib
import shutil
import socket
import ssl
import stat
import subprocess
import threading
import unittest

from harness import BIN, DEADLINE_S, FAKE_TRAINER, wait_until
from secured import LONG_STUDY, SECRET, Secured, derived_seed, openssl, secret_of

ROLES = ("read", "work", "write", "admin")
OTHER = "A" * 43


class Secrets(Secured):
    STUDY = LONG_STUDY

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()
        self.secrets = [SECRET.search(self.join(role)).group(1) for role in ROLES]

    def assert_without_secrets(self, text, secrets, where):
        for secret in secrets:
            self.assertNotIn(secret[:20].encode(), text, where)
            self.assertNotIn(secret[20:43].encode(), text, where)

    def test_ps_shows_no_secret(self):
        join = self.join("work")
        words = [["connect", "--listen", "127.0.0.1:0", "--join", join], ["--join", join, "connect", "--listen=127.0.0.1:0"],
                 [f"--join={join}", "connect", "--listen", f"unix:{self.folder}/s"]]
        programs = [self.start(f"connect{i}", BIN / "hpo", *one) for i, one in enumerate(words)]
        programs.append(self.start_worker("w0", "--join", join, join=""))
        programs.append(self.start_worker("w1", f"--join=hpo-worker --join {join}", join=""))
        for program in programs:
            wait_until(lambda p=program: p.output() or not p.alive(), "what it says")
            self.assertTrue(program.alive(), program.output())
            shown = pathlib.Path(f"/proc/{program.pid}/cmdline").read_bytes()
            self.assert_without_secrets(shown, self.secrets, shown)
            self.assertIn(b"--join", shown)

    def test_a_join_string_in_the_wrong_place_is_refused_unseen(self):
        join = self.join("read")
        fleet = ["fleet", "slurm", "--workers", "1", "--time", "1h", "--study", "toy"]
        cases = [(["--server", join, "status"], {}), (["status"], {"HPO_SERVER": join}),
                 (["status"], {"HPO_JOIN_FILE": join}), (["--join", f"file:{join}", "status"], {}),
                 (["study", "show", join], {}), (["connect", "--listen", join], {}),
                 (["--server", join, *fleet], {}), ([*fleet, "--", "--server", join], {})]
        for program, words, environment in [("hpo", *case) for case in cases] + [
                ("hpo-worker", ["--server", join], {}), ("hpo-worker", [], {"HPO_SERVER": join})]:
            with self.subTest(program=program, words=[word for word in words if word != join]):
                done = subprocess.run([BIN / program, *words], capture_output=True, text=True, timeout=DEADLINE_S,
                                      env={**os.environ, **environment}, check=False)
                self.assertEqual(done.returncode, 78 if program == "hpo-worker" else 2, done.stderr)
                self.refused(done, "got a join string", "HPO_JOIN_FILE")
                self.assertEqual("", done.stdout)
                self.assert_without_secrets((done.stdout + done.stderr).encode(), self.secrets, words[0:1])

    def test_a_trial_s_program_gets_no_join_string(self):
        seen = self.folder / "seen"
        self.start_worker("w0", trainer=f"env > {seen}; cat /proc/$PPID/cmdline >> {seen}; "
                          "echo \"{'macro_f1':\" {confidential_width} '}'")
        wait_until(lambda: seen.exists() and b"hpo-worker" in seen.read_bytes() or b"HPO_" in
                   (seen.read_bytes() if seen.exists() else b""), "a trial's environment")
        wait_until(lambda: self.study()["counts"]["completed"] > 0, "a trial's end")
        whole = seen.read_bytes()
        self.assert_without_secrets(whole, self.secrets, whole)
        self.assertNotIn(b"HPO_JOIN", whole)

    def test_logs_and_the_database_have_no_secret(self):
        shown = self.new_token("shown-once", "write")
        self.secrets.append(SECRET.search(shown).group(1))
        worker = self.start_worker("w0", environment={"HPO_LOG_LEVEL": "debug"})
        wait_until(lambda: self.study()["counts"]["completed"] > 2, "trials")
        for words in (["admin", "token", "list"], ["status"], ["study", "show", "toy"]):
            for output in ("table", "json"):
                self.assert_without_secrets(self.hpo(*words, "--output", output).encode(), self.secrets, words)
        self.refused(self.run_as(shown[:-3] + "x:1", "status"))
        worker.terminate()
        self.server.terminate()
        # What the server prints for people is the line of a worker, and that alone.
        printed = [secret for secret in self.secrets if secret != self.secrets[ROLES.index("work")]]
        self.assert_without_secrets(self.server.log.read_bytes(), printed, "the server's output")
        self.assertEqual(self.server.output().count(self.secrets[ROLES.index("work")]), 1)
        files = [file for file in self.folder.rglob("*") if file.is_file() and file.name != "server.log" and
                 not file.name.startswith("join-")]
        self.assertGreater(len(files), 5)
        seeds = [derived_seed(secret_of(self.join(role))) for role in ROLES] + [derived_seed(secret_of(shown))]
        for file in files:
            content = file.read_bytes()
            self.assert_without_secrets(content, self.secrets, file)
            for seed in seeds:
                self.assertNotIn(seed, content, file)
                self.assertNotIn(seed.hex().encode(), content, file)

    def test_files_of_secrets_are_their_owner_s_alone(self):
        self.assertEqual(stat.S_IMODE(self.access.stat().st_mode), 0o700)
        for file in self.access.iterdir():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600, file)

    def test_the_order_is_option_environment_file_and_none_is_passed_over(self):
        good, other = self.join("read"), self.folder / "other"
        other.write_text(good)
        damaged = good[:-20]
        cases = [
            ({"HPO_JOIN": damaged, "HPO_JOIN_FILE": "/no/such/file"}, ["--join", good], None),
            ({"HPO_JOIN": good, "HPO_JOIN_FILE": "/no/such/file"}, [], None),
            ({"HPO_JOIN": "", "HPO_JOIN_FILE": str(other)}, [], None),
            ({"HPO_JOIN": "", "HPO_JOIN_FILE": ""}, ["--join", f"file:{other}"], None),
            ({"HPO_JOIN": damaged, "HPO_JOIN_FILE": str(other)}, [], "HPO_JOIN"),
            ({"HPO_JOIN": good}, ["--join", damaged], "--join"),
            ({"HPO_JOIN": good}, ["--join", "file:/no/such/file"], "/no/such/file"),
            ({"HPO_JOIN": "", "HPO_JOIN_FILE": "/no/such/file"}, [], "/no/such/file"),
            ({"HPO_JOIN": "", "HPO_JOIN_FILE": str(self.folder)}, [], str(self.folder)),
        ]
        # A plaintext server where a fall-back would lead to.
        for environment, words, error in cases:
            with self.subTest(environment=environment, words=words):
                done = self.run_as(environment["HPO_JOIN"], *words, "status",
                                   environment={"HPO_SERVER": "127.0.0.1:9", **environment})
                if error is None:
                    self.assertEqual(done.returncode, 0, done.stderr)
                else:
                    self.refused(done, error)

    @unittest.skipIf(os.geteuid() != 0 or shutil.which("setpriv") is None, "needs root and setpriv")
    def test_a_file_of_somebody_else_is_fatal(self):
        """Root reads everything, so somebody else tries: hpo may not read the file, and does not do without."""
        reader = self.access / "join-read"
        for folder in (self.folder, self.access):
            folder.chmod(0o755)
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", BIN / "hpo", "status"], text=True,
                              env={**os.environ, "HPO_JOIN_FILE": str(reader), "HPO_SERVER": self.address},
                              capture_output=True, timeout=DEADLINE_S, check=False)
        self.refused(done, "HPO_JOIN_FILE", "join-read", "ermission denied")

    def test_damaged_join_strings_are_told_in_one_line(self):
        join = self.join("read")
        head, address = join.split("@")
        other = "B" if join[60] == "A" else "A"
        cases = {"cut short": join[:70], "without a host": head, "cut in the secret": head[:-3] + "@" + address,
                 "another letter": join[:60] + other + join[61:], "no port": join.rsplit(":", 1)[0],
                 "port 0": join.rsplit(":", 1)[0] + ":0", "another version": "hpo2" + join[4:],
                 "not one at all": "admin:admin@host:1", "longer": head + "x@" + address}
        for name, text in cases.items():
            with self.subTest(name):
                done = self.run_as(text, "status")
                self.refused(done, "join string is damaged", "copy the whole line")
                self.assert_without_secrets(done.stderr.encode(), self.secrets, done.stderr)
                worker = self.start_worker(name.replace(" ", "-"), join=text)
                self.assertEqual(worker.wait(), 78, worker.output())
                self.assert_without_secrets(worker.output().encode(), self.secrets, name)

    def test_a_join_string_of_another_database_is_told(self):
        stale = self.join("read")
        self.server.terminate()
        for file in self.folder.glob("hpo.db*"):
            if file.is_file():
                file.unlink()
        certificate = {name: (self.access / name).read_bytes() for name in ("tls-cert.pem", "tls-key.pem")}
        shutil.rmtree(self.access)
        self.start_secured()
        self.refused(self.run_as(stale, "status"), "another server")
        # The same certificate, other tokens.
        self.processes[-1].terminate()
        for name, content in certificate.items():
            (self.access / name).write_bytes(content)
        self.start_secured()
        self.refused(self.run_as(stale, "status"), "does not know the token")


class Impostor:
    """Answers with TLS, or plain, at a port of its own; keeps every byte it gets, and what TLS makes of it."""

    def __init__(self, folder=None):
        self.bytes = b""
        self.presented = None
        self.read = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.context = None
        if folder:
            certificate, key = folder / "impostor.crt", folder / "impostor.key"
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=hpo-server", "-addext", "subjectAltName=IP:127.0.0.1", "-days", 2)
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.context.load_verify_locations(certificate)
            self.context.set_alpn_protocols(["h2"])
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(3)
                self._talk(connection)

    def _talk(self, connection):
        if self.context is None:
            connection.sendall(b"\0\0\0\x04\0\0\0\0\0")  # settings of HTTP/2
            self._take(connection.recv)
            return
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(incoming, outgoing, server_side=True)
        shaken = False
        try:
            while True:
                try:
                    if not shaken:
                        tls.do_handshake()
                        shaken = True
                        self.presented = tls.getpeercert(binary_form=True)
                    self.read += tls.read(65536)
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    self.bytes += piece
                    incoming.write(piece)
        except OSError:
            return

    def _take(self, receive):
        try:
            while piece := receive(65536):
                self.bytes += piece
        except OSError:
            pass

    def close(self):
        self.listener.close()


class Impostors(Secured):
    """No client of ours proves its token, or says anything else, to what is not its server."""

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()

    def assert_nothing_came(self, impostor, join):
        secret = SECRET.search(join).group(1)
        for text in (secret.encode(), secret[:20].encode(), secret_of(join), derived_seed(secret_of(join))):
            self.assertNotIn(text, impostor.bytes + impostor.read)
        certificate, _ = self.identity(join)
        public = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], capture_output=True,
                                check=True).stdout
        der = ssl.PEM_cert_to_DER_cert(public.decode().replace("PUBLIC KEY", "CERTIFICATE"))
        self.assertEqual(len(der), 44)
        self.assertNotIn(der[-32:], impostor.bytes + impostor.read)
        self.assertIsNone(impostor.presented)
        self.assertEqual(impostor.read, b"")

    def towards(self, impostor, role):
        return self.join(role).rsplit(":", 1)[0] + f":{impostor.port}"

    def test_the_impostor_of_this_test_would_see_a_certificate(self):
        """The test itself is tested: a client that believes everybody shows its certificate."""
        impostor = Impostor(self.folder)
        self.addCleanup(impostor.close)
        context = self.context(self.identity(self.join("read")))
        try:
            with socket.create_connection(("127.0.0.1", impostor.port)) as plain, context.wrap_socket(plain) as tls:
                tls.sendall(b"secret")
                tls.recv(10)
        except OSError:
            pass
        self.assertGreater(len(impostor.bytes), 300)

    def test_another_certificate_gets_no_proof(self):
        impostor = Impostor(self.folder)
        self.addCleanup(impostor.close)
        join = self.towards(impostor, "admin")
        self.refused(self.run_as(join, "status"), "is not the one of the join string", "Nothing was proved to it",
                     "sha256:")
        self.refused(self.run_as(join, "connect", "--listen", "127.0.0.1:0"), "is not the one of the join string")
        worker = self.start_worker("w0", join=self.towards(impostor, "work"))
        self.assertEqual(worker.wait(), 78, worker.output())
        self.assertGreater(len(impostor.bytes), 300)
        for role in ("admin", "work"):
            self.assert_nothing_came(impostor, self.join(role))

    def test_a_server_without_tls_gets_no_word(self):
        plain = Impostor()
        self.addCleanup(plain.close)
        join = self.towards(plain, "admin")
        self.refused(self.run_as(join, "status"), "does not speak TLS")
        worker = self.start_worker("w0", join=self.towards(plain, "work"))
        self.assertEqual(worker.wait(), 78, worker.output())
        self.assertEqual(plain.bytes[:1], b"\x16")  # the beginning of TLS, nothing of HTTP/2
        self.assertNotIn(b"PRI * HTTP/2.0", plain.bytes)
        self.assert_nothing_came(plain, self.join("admin"))

    def test_a_tls_1_2_server_gets_no_proof(self):
        old = Impostor(self.folder)
        old.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.addCleanup(old.close)
        self.refused(self.run_as(self.towards(old, "admin"), "status"), "TLS")
        self.assert_nothing_came(old, self.join("admin"))

    def test_a_real_plaintext_server_is_not_used_with_a_join_string(self):
        address = self.folder / "plain.address"
        self.start("plain", BIN / "hpo-server", "--db", self.folder / "plain.db", "--listen", "127.0.0.1:0",
                   "--address-file", address)
        port = wait_until(lambda: address.exists() and address.read_text().strip(), "its address").rsplit(":", 1)[1]
        done = self.run_as(self.join("admin").rsplit(":", 1)[0] + f":{port}", "status")
        self.refused(done, "does not speak TLS", "--server")

    def test_a_client_without_a_join_string_is_told_that_it_needs_one(self):
        self.refused(self.run_as("", "--server", self.address, "status"), "takes TLS and a token",
                     "expected a join string")
        worker = self.start("w0", BIN / "hpo-worker", "--server", self.address, "--device", "cpu",
                            "--memory-limit", "1GiB", "--trainer", FAKE_TRAINER)
        self.assertEqual(worker.wait(DEADLINE_S), 78, worker.output())
        self.assertIn("expected a join string", worker.output())
