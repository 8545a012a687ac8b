"""Who has no token: nothing of a study is readable, nobody else waits for it, and each is named in the audit log."""

import contextlib
import resource
import socket
import ssl
import threading
import time

import os

from harness import wait_until
from secured import LONG_STUDY, PREFACE, Secured, address_of, openssl, received

NUM_CONNECTIONS = 10_000
MESSAGE_BYTES = 100 << 20
TLS_ALERT, ALERT_BYTES = b"\x15", 7
HANDSHAKE_S = 10  # how long the server waits for one


def tells_nothing(answer):
    """No byte, or one alert of TLS."""
    return not answer or (answer[:1] == TLS_ALERT and len(answer) <= ALERT_BYTES)


class Strangers(Secured):
    STUDY = LONG_STUDY

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()

    def assert_served(self, within_s=10.0):
        """A client with a token is answered meanwhile."""
        begin = time.monotonic()
        self.assertIn("toy", self.hpo("status"))
        self.assertLess(time.monotonic() - begin, within_s)

    def shake(self, context):
        """What a TLS client reads of the server after its handshake; an error where there is none."""
        with self.dial() as plain, context.wrap_socket(plain) as secured:
            secured.sendall(PREFACE)
            return received(secured)

    def assert_stranger(self, context, why):
        with self.assertRaises(OSError) as raised:
            # In TLS 1.3 the client learns of it when it reads.
            if not self.shake(context):
                raise ConnectionResetError
        self.assertNotIsInstance(raised.exception, TimeoutError)
        return self.assert_audited(event="handshake", result="UNAUTHENTICATED", why=why)

    def test_a_client_without_a_certificate_is_refused(self):
        event = self.assert_stranger(self.context(), "certificate")
        self.assertNotIn("who", event)

    def test_a_certificate_of_nobody_is_refused(self):
        certificate, key = self.folder / "own.crt", self.folder / "own.key"
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", key, "-out", certificate, "-subj",
                "/CN=admin/OU=admin", "-days", 2)
        self.assert_stranger(self.context((certificate, key)), "no such token")

    def test_the_certificate_of_a_token_without_its_key_is_refused(self):
        """The public half alone is what a thief of the database could make."""
        certificate, _ = self.identity(self.join("admin"))
        key = self.folder / "other.key"
        openssl("genpkey", "-algorithm", "ed25519", "-out", key)
        with self.assertRaises(ssl.SSLError):  # OpenSSL itself will not sign
            self.context((certificate, key))

    def test_an_older_tls_is_refused(self):
        context = self.context(self.identity(self.join("admin")))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.assert_stranger(context, "unsupported protocol")

    def test_another_protocol_than_http2_is_refused(self):
        self.assert_stranger(self.context(self.identity(self.join("admin")), ["http/1.1"]), "protocol")

    def test_a_scanner_reads_nothing(self):
        """Plaintext and TLS probes of the port, as a scanner makes them."""
        probes = [b"", PREFACE, b"GET / HTTP/1.0\r\n\r\n", b"GET /hpo.v1.StudyService/ListStudies HTTP/1.1\r\n\r\n",
                  b"\x16\x03\x01", b"\x00" * 300, b"\xff" * 70_000, b"SSH-2.0-x\r\n",
                  PREFACE + b"\0\0\x08\x06\0\0\0\0\0" + b"\0" * 8]
        for number, probe in enumerate(probes):
            with self.subTest(probe=probe[:30]), self.dial() as plain:
                plain.settimeout(HANDSHAKE_S + 5)
                with contextlib.suppress(OSError):
                    plain.sendall(probe)
                    if number == 0:
                        plain.shutdown(socket.SHUT_WR)
                answer = received(plain) if number in (0, 1, 2, 3, 6) else self.first_answer(plain)
                self.assertTrue(tells_nothing(answer), answer)
        with self.assertRaises(OSError):
            if not self.shake(self.context()):
                raise ConnectionResetError
        # The handshake itself names the server's certificate, and nothing more.
        certificate = ssl.get_server_certificate(address_of(self.address))
        for name in ("toy", "confidential_width"):
            self.assertNotIn(name, certificate)
        self.audited(event="handshake", result="UNAUTHENTICATED", why="http request")

    @staticmethod
    def first_answer(plain):
        plain.settimeout(0.5)
        try:
            return plain.recv(65536)
        except OSError:
            return b""

    def test_a_server_that_is_far_away_says_that_it_needs_a_join_string(self):
        far = Recorder(address_of(self.address), delay_s=0.3)
        self.addCleanup(far.close)
        done = self.run_as("", "--server", f"127.0.0.1:{far.port}", "status")
        self.assertIn("takes TLS and a token", done.stderr)

    def test_recorded_bytes_are_worth_nothing(self):
        recorded = Recorder(address_of(self.address))
        join = self.join("admin").rsplit(":", 1)[0] + f":{recorded.port}"
        done = self.run_as(join, "status")
        self.assertEqual(done.returncode, 0, done.stderr)
        recorded.close()
        self.assertGreater(len(recorded.sent), 500)
        before = len(self.audit())
        with self.dial() as plain:
            with contextlib.suppress(OSError):
                plain.sendall(recorded.sent)
            answer = received(plain)
        # The server's half of a handshake, with keys of its own, that the replayed one does not fit.
        self.assertLess(len(answer), 4096)
        event = wait_until(lambda: self.audit()[before:], "an event")[0]
        self.assertEqual((event["event"], event["result"]), ("handshake", "UNAUTHENTICATED"))
        self.assertTrue(event["why"], event)

    def test_slow_handshakes_end_and_nobody_waits_for_them(self):
        with contextlib.ExitStack() as opened:
            slow = [opened.enter_context(self.dial()) for _ in range(20)]
            begin = time.monotonic()
            hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500
            ended = [None] * len(slow)
            self.assert_served()
            for byte in hello[:HANDSHAKE_S + 5]:
                for index, plain in enumerate(slow):
                    if ended[index] is None and self.has_ended(plain, bytes([byte])):
                        ended[index] = time.monotonic() - begin
                if all(ended):
                    break
                threading.Event().wait(1)
            self.assertTrue(all(ended), ended)
            self.assertLess(max(ended), HANDSHAKE_S + 3)
        self.assert_audited(event="handshake", why="no token was proved within 10s")

    @staticmethod
    def has_ended(plain, more):
        plain.setblocking(False)
        try:
            plain.sendall(more)
            return plain.recv(100) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def test_ten_thousand_connections_leave_room_for_others(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = min(NUM_CONNECTIONS, hard - 200)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, NUM_CONNECTIONS + 500), hard))
        before = self.descriptors()
        with contextlib.ExitStack() as opened:
            for number in range(NUM_CONNECTIONS):
                plain = socket.create_connection(address_of(self.address), timeout=10)
                if number < most:
                    opened.callback(plain.close)
                else:
                    plain.close()
                if number % 2500 == 2499:
                    self.assert_served()
            self.assertLess(self.descriptors(), before + 600)
        self.assert_audited(event="handshake", why="too many connections at once")
        wait_until(lambda: self.descriptors() <= before + 10, "their descriptors are free")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.pid}/fd"))

    def test_a_hundred_megabytes_before_a_token_are_not_kept(self):
        before = self.resident()
        with self.dial() as plain:
            sent = 0
            with contextlib.suppress(OSError):
                # A ClientHello that says that it is 16 MB, in records of 16 KB.
                plain.sendall(b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16380))
                while sent < MESSAGE_BYTES:
                    sent += plain.send(b"\x16\x03\x01\x40\x00" + bytes(16384))
            self.assertLess(sent, 8 << 20)
        self.assertLess(self.resident() - before, 16 << 20)
        self.assert_audited(event="handshake", result="UNAUTHENTICATED")
        self.assert_served()

    def resident(self):
        with open(f"/proc/{self.server.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()


class Recorder:
    """Carries connections to `server`, and keeps what clients send. `delay_s`: the way there, and back."""

    def __init__(self, server, delay_s=0.0):
        self.server = server
        self.delay_s = delay_s
        self.sent = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._serve, daemon=True)]
        self.threads[0].start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                behind = socket.create_connection(self.server)
                for source, target, keep in ((client, behind, True), (behind, client, False)):
                    self.threads.append(threading.Thread(target=self._carry, args=(source, target, keep), daemon=True))
                    self.threads[-1].start()

    def _carry(self, source, target, keep):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if keep:
                    self.sent += piece
                time.sleep(self.delay_s)
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()
