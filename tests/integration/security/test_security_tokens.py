"""Who has a token may do what its role allows, as long as the token is valid; what is refused is in the audit log."""

import pathlib
import socket
import struct
import subprocess
import sys
import time
import uuid

from harness import BIN, DEADLINE_S, wait_until
from secured import LONG_STUDY, PREFACE, Secured, received

try:
    import grpc
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "chaos"))
    from client import Channel, Worker
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed; scripts/bootstrap --tests brings it"

import unittest

CLOSED_WITHIN_S = 2.0
HUNDRED_MB = 100 << 20
COMMAND_STUDY = """\
name: {name}
objective: {{metric: loss, direction: minimize}}
trainer: {{task: custom, command: "touch {name}"}}
budget: {{trials: 1}}
parameters:
  x: {{float: [0.0, 1.0]}}
"""


class Roles(Secured):
    def setUp(self):
        super().setUp()
        self.server = self.start_secured()

    def assert_denied(self, role, method, *words):
        self.refused(self.run_as(self.join(role), *words), f"the token '{role}'", "needs", "hpo admin token create")
        return self.assert_audited(event="refused", who=role, role=role, method=method, result="PERMISSION_DENIED")

    def study_file(self, name, text):
        file = self.folder / f"{name}.yaml"
        file.write_text(text)
        return file

    def test_read_sees_and_changes_nothing(self):
        join = self.join("read")
        for words in (["status"], ["study", "show", "toy"], ["trial", "list", "--study", "toy"]):
            self.assertEqual(self.run_as(join, *words).returncode, 0, words)
        self.assert_denied("read", "OrderStudy", "study", "pause", "toy")
        self.assert_denied("read", "EnqueueTrial", "enqueue", "x=0.5", "--study", "toy")
        self.assert_denied("read", "ListTokens", "admin", "token", "list")
        self.assert_denied("read", "BackUpDatabase", "admin", "backup", self.folder / "copy.db")
        self.assertFalse((self.folder / "copy.db").exists())
        self.assertEqual(self.study()["state"], "ACTIVE")

    def test_a_worker_with_a_reader_s_token_ends_with_one_line(self):
        worker = self.start_worker("reader", join=self.join("read"))
        self.assertEqual(worker.wait(30), 78, worker.output())
        errors = [line for line in worker.output().splitlines() if "error" in line]
        self.assertEqual(len(errors), 1, worker.output())
        self.assertIn("needs work", errors[0])
        self.assert_audited(event="refused", who="read", method="/hpo.v1.WorkerService/", result="PERMISSION_DENIED")

    def test_work_may_use_the_worker_s_service_alone(self):
        self.assert_denied("work", "ListStudies", "status")
        self.assert_denied("work", "GetStudy", "study", "show", "toy")
        self.assert_denied("work", "OrderStudy", "study", "pause", "toy")
        self.assert_denied("work", "CreateToken", "admin", "token", "create", "mine", "--role", "admin")
        command = self.study_file("command", COMMAND_STUDY.format(name="by-work"))
        self.assert_denied("work", "CreateStudy", "study", "create", command)
        self.assertNotIn("by-work", self.hpo("status"))

    def test_write_names_no_command_and_makes_no_token(self):
        join = self.join("write")
        plain = self.study_file("plain", self.STUDY.replace("name: toy", "name: plain"))
        self.assertEqual(self.run_as(join, "study", "create", plain).returncode, 0)
        self.assert_audited_call(who="write", method="CreateStudy", what="plain", result="OK")
        command = self.study_file("command", COMMAND_STUDY.format(name="by-write"))
        self.refused(self.run_as(join, "study", "create", command), "command")
        self.assert_audited_call(who="write", method="CreateStudy", why="study by-write names a command",
                                 result="PERMISSION_DENIED")
        self.assertNotIn("by-write", self.hpo("status"))
        self.assert_denied("write", "ListTokens", "admin", "token", "list")
        self.assert_denied("write", "RevokeToken", "admin", "token", "revoke", "admin")

    def test_write_brings_no_command_by_an_archive_or_an_edit(self):
        self.hpo("study", "create", self.study_file("a", COMMAND_STUDY.format(name="by-admin")))
        archive = self.folder / "by-admin.hpo"
        self.hpo("study", "delete", "by-admin", "--archive", archive)
        self.refused(self.run_as(self.join("write"), "study", "restore", archive), "command")
        self.assert_audited_call(who="write", method="RestoreStudy", result="PERMISSION_DENIED")
        self.assertNotIn("by-admin", self.hpo("status"))
        self.hpo("study", "restore", archive)
        edited = self.study_file("b", COMMAND_STUDY.format(name="by-admin").replace("touch", "rm"))
        self.run_as(self.join("write"), "study", "edit", edited)
        self.assertNotIn("rm by-admin", self.hpo("study", "show", "by-admin", "--output", "json"))

    def assert_audited_call(self, **fields):
        event = self.audited(event="call", **fields)
        self.assertRegex(event["from"], r"^127\.0\.0\.1:\d+$", event)
        return event

    def test_changes_are_in_the_audit_log_with_their_subject(self):
        self.hpo("study", "pause", "toy")
        self.assert_audited_call(who="admin", role="admin", method="OrderStudy", what="toy", result="OK")
        self.new_token("ci", "read")
        self.assert_audited_call(who="admin", method="CreateToken", what="ci", result="OK")
        # One's own end is answered and named, although its connection ends soon after.
        done = self.run_as(self.new_token("last", "admin"), "admin", "token", "revoke", "last")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_audited_call(who="last", method="RevokeToken", what="last", result="OK")

    def test_a_client_that_hangs_up_early_is_in_the_audit_log(self):
        """It resets its connection once it has sent the call, at any moment of the call."""
        context = self.context(self.identity(self.join("write")))

        def num_trials():
            return len(self.trials())

        def num_lines():
            return sum(event["event"] == "call" and "EnqueueTrial" in event["method"] for event in self.audit())

        before = num_trials()
        for call in range(100):
            secured = context.wrap_socket(self.dial())
            secured.sendall(PREFACE + call_of("/hpo.v1.StudyService/EnqueueTrial", b"\x0a\x03toy"))
            time.sleep(0.0003 * 1.06 ** call)  # up to 0.1 s, for a busy machine
            secured.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            secured.close()
        self.assertGreater(num_trials(), before, "no call arrived")
        wait_until(lambda: num_lines() >= num_trials() - before, "a line for each trial", 10)

    def test_names_lead_nowhere_else(self):
        for name in ("../../escaped", "/tmp/escaped", "a/b", "..\\x", "", "a\nb", "x" * 65):
            self.refused(self.run_as(self.join("admin"), "admin", "token", "create", name, "--role", "read"), "name")
        self.new_token("..", "read")
        study = self.STUDY.replace("name: toy", "name: ../../escaped")
        self.assertNotEqual(self.run_as(self.join("write"), "study", "create",
                                        self.study_file("escape", study)).returncode, 0)
        self.assertEqual(sorted(file.name for file in self.access.iterdir()),
                         ["audit.jsonl", "join-admin", "join-read", "join-work", "join-write", "tls-cert.pem",
                          "tls-key.pem"])
        self.assertEqual([], list(self.folder.parent.glob("escaped*")))
        self.hpo("admin", "token", "revoke", "..")
        self.assertTrue(self.access.is_dir())

    def test_connect_listens_for_this_machine_alone_and_deletes_no_file(self):
        for address in ("0.0.0.0:0", "[::]:0"):
            self.refused(self.run_as(self.join("read"), "connect", "--listen", address), "this machine alone")
        precious = self.folder / "precious"
        precious.write_text("kept")
        self.refused(self.run_as(self.join("read"), "connect", "--listen", f"unix:{precious}"))
        self.assertEqual(precious.read_text(), "kept")
        self.refused(self.run_as(self.join("read"), "connect", "--listen", f"unix:{self.folder}/no/such/x"))


class Lives(Secured):
    """Tokens that end."""
    STUDY = LONG_STUDY

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()

    def open(self, join):
        """A connection of a token, after its handshake; `assert_open` and received tell how it fares."""
        tls = self.context(self.identity(join)).wrap_socket(self.dial())
        self.addCleanup(tls.close)
        tls.sendall(PREFACE)
        self.assertTrue(tls.recv(100))  # HTTP/2's own first words
        return tls

    def watch(self, join, name="watch"):
        """An open connection of a token, with a stream that lasts."""
        process = self.start(name, BIN / "hpo", "watch", "--study", "toy", environment={"HPO_JOIN": join})
        wait_until(lambda: process.output() or not process.alive(), "what it watches")
        self.assertTrue(process.alive(), process.output())
        return process

    def assert_closed(self, connection, after, before):
        """The server closes the connection between these times."""
        received(connection)
        now = time.monotonic()
        self.assertGreater(now, after)
        self.assertLess(now, before)

    def assert_told(self, process, *said):
        """A command that watched ends soon, with one line."""
        self.assertNotEqual(process.wait(15), 0)
        last = process.output().strip().splitlines()[-1]
        for text in said:
            self.assertIn(text, last)

    def test_revoked_ends_its_connections_and_nobody_else_s(self):
        self.start_worker("w0", environment={"HPO_FAKE_PACE_MS": "300"})
        wait_until(lambda: [t for t in self.trials() if t["state"] == "RUNNING"], "a running trial")
        join = self.new_token("leaver", "read")
        opened, watching = self.open(join), self.watch(join)
        kept = self.watch(self.join("read"), "kept")
        self.hpo("admin", "token", "revoke", "leaver")
        since = time.monotonic()
        self.assert_closed(opened, since - 5, since + CLOSED_WITHIN_S)
        self.assert_told(watching, "revoked")
        self.refused(self.run_as(join, "status"), "revoked")
        self.assert_audited(event="handshake", who="leaver", role="read", why="revoked")
        self.assertTrue(kept.alive(), kept.output())
        running = wait_until(lambda: [t for t in self.trials() if t["state"] == "RUNNING"], "a running trial")[0]
        ended = wait_until(lambda: self.ended(running["number"]), "the trial's end")
        self.assertEqual((ended["state"], len(ended["attempts"])), ("COMPLETED", 1), ended)

    def ended(self, number):
        trial = self.trial(number)
        return trial if trial["state"] != "RUNNING" else None

    def test_the_last_administrator_stays_and_others_are_made_without_one(self):
        self.refused(self.run_as(self.join("admin"), "admin", "token", "revoke", "admin"),
                     "the last token of the role admin", "create another one first")
        self.assertEqual(self.run_as(self.join("admin"), "admin", "token", "list").returncode, 0)
        join = self.new_token("second", "admin")
        self.assertEqual(self.run_as(join, "admin", "token", "revoke", "admin").returncode, 0)
        self.assertFalse((self.access / "join-admin").exists())

    def test_expired_ends_its_connections(self):
        join = self.new_token("brief", "read", "--expires-in", "3s")
        since = time.monotonic()
        opened = self.open(join)
        self.assert_closed(opened, since + 2, since + 3 + CLOSED_WITHIN_S)
        self.refused(self.run_as(join, "status"), "expired")
        self.assert_audited(event="handshake", who="brief", role="read", why="expired")

    def test_rotated_works_with_both_secrets_for_the_grace(self):
        old = self.new_token("ci", "read")
        watching, opened = self.watch(old), self.open(old)
        begin = time.monotonic()
        new = self.json("admin", "token", "rotate", "ci", "--grace", "4s")["join"]
        self.assertEqual(self.run_as(new, "status").returncode, 0)
        self.assertEqual(self.run_as(old, "status").returncode, 0)
        self.assertLess(time.monotonic() - begin, 4, "the machine is too slow for this test")
        self.assert_closed(opened, begin + 3.5, begin + 5 + CLOSED_WITHIN_S)
        self.assert_told(watching, "replaced")
        self.refused(self.run_as(old, "status"), "replaced")
        self.assert_audited(event="handshake", who="ci", why="replaced")
        self.assertEqual(self.run_as(new, "status").returncode, 0)

    def test_a_worker_whose_token_is_revoked_ends_and_its_trial_runs_again(self):
        join = self.new_token("fleet", "work")
        worker = self.start_worker("w1", join=join, environment={"HPO_FAKE_PACE_MS": "400"})
        wait_until(lambda: [t for t in self.trials() if t["state"] == "RUNNING"], "a running trial")
        self.hpo("admin", "token", "revoke", "fleet")
        self.assertEqual(worker.wait(DEADLINE_S), 78, worker.output())
        self.assertIn("revoked", worker.output())
        self.assertIn("run it again with a new join string", worker.output().strip().splitlines()[-1])
        self.assertNotIn("unix-abstract", worker.output())


@unittest.skipIf(MISSING, MISSING)
class Calls(Secured):
    """Calls that no client of ours makes, through hpo connect."""
    STUDY = LONG_STUDY

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()
        self.one = self.connect(self.new_token("one", "work"), "one")
        self.other = self.connect(self.new_token("other", "work"), "other")

    def worker(self, address, name):
        worker = Worker(address, name)
        self.addCleanup(worker.close)
        worker.register()
        return worker

    def fails(self, code, call, *arguments, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments, **fields)
        self.assertEqual(raised.exception.code(), code, raised.exception.details())
        return raised.exception.details()

    def test_another_s_lease_is_another_s(self):
        owner, thief = self.worker(self.one, "owner"), self.worker(self.other, "thief")
        assignment, _ = owner.acquire(uuid.uuid4().hex)
        guessed = {**assignment, "lease_token": uuid.uuid4().hex}
        self.fails(grpc.StatusCode.ABORTED, thief.finish, guessed, uuid.uuid4().hex, 1.0)
        self.fails(grpc.StatusCode.ABORTED, thief.release, guessed, uuid.uuid4().hex)
        self.fails(grpc.StatusCode.ABORTED, thief.report, guessed, 1, 1.0)
        for method in ("FinishTrial", "ReleaseTrial", "ReportMeasurements"):
            self.assert_audited(event="refused", who="other", role="work", method=method)
        self.assertIn("LOST", thief.beat([guessed])["directives"][0])
        self.assertTrue(owner.finish(assignment, uuid.uuid4().hex, 0.5)["stored"])
        self.assertEqual(self.study()["best_value"], 0.5)

    def test_a_session_and_a_name_need_their_secrets(self):
        owner, thief = self.worker(self.one, "owner"), self.worker(self.other, "thief")
        assignment, _ = owner.acquire(uuid.uuid4().hex)
        thief.session = uuid.uuid4().hex
        self.fails(grpc.StatusCode.NOT_FOUND, thief.acquire, uuid.uuid4().hex)
        namesake = Worker(self.other, "owner")
        self.addCleanup(namesake.close)
        namesake.registered = uuid.uuid4().hex  # as its successor
        self.fails(grpc.StatusCode.UNAVAILABLE, namesake.register)
        owner.beat([assignment])
        self.fails(grpc.StatusCode.ALREADY_EXISTS, namesake.register)
        self.assert_audited(event="call", who="other", role="work", method="RegisterWorker", what="worker=owner",
                            result="ALREADY_EXISTS")
        self.assertTrue(owner.finish(assignment, uuid.uuid4().hex, 0.5)["stored"])

    def test_a_session_is_of_its_token(self):
        """A thief who knows a process' session and key, but has another token."""
        owner = self.worker(self.one, "owner")
        assignment, _ = owner.acquire(uuid.uuid4().hex)
        thief = Worker(self.other, "owner")
        self.addCleanup(thief.close)
        thief.session = owner.session
        self.fails(grpc.StatusCode.PERMISSION_DENIED, thief.acquire, uuid.uuid4().hex)
        self.fails(grpc.StatusCode.PERMISSION_DENIED, thief.beat, [assignment])
        thief.instance = owner.instance
        self.fails(grpc.StatusCode.PERMISSION_DENIED, thief.register)
        for method in ("AcquireTrial", "Heartbeat", "RegisterWorker"):
            self.assert_audited(event="refused", who="other", method=method, result="PERMISSION_DENIED",
                                why="has registered by another token")
        thief.instance, thief.registered = uuid.uuid4().hex, owner.instance
        self.fails(grpc.StatusCode.UNAVAILABLE, thief.register)
        self.assertTrue(owner.finish(assignment, uuid.uuid4().hex, 0.5)["stored"])

    def test_a_hundred_megabytes_are_refused_and_others_are_served(self):
        big = grpc.insecure_channel(self.one, [("grpc.max_send_message_length", -1)])
        self.addCleanup(big.close)
        call = big.unary_unary("/hpo.v1.WorkerService/RegisterWorker")
        before = self.resident()
        begun = call.future(b"\x0a" + varint(HUNDRED_MB) + bytes(HUNDRED_MB), timeout=DEADLINE_S)
        worker = self.worker(self.other, "meanwhile")
        assignment, _ = worker.acquire(uuid.uuid4().hex)
        self.assertTrue(worker.finish(assignment, uuid.uuid4().hex, 0.5)["stored"])
        self.assertIn(begun.exception().code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE))
        self.assertLess(self.resident() - before, 32 << 20)
        self.assert_audited(event="refused", who="one", role="work", result="RESOURCE_EXHAUSTED",
                            why="a message of 1048576")

    def test_a_small_message_that_unpacks_to_a_large_one_is_refused(self):
        bomb = grpc.insecure_channel(self.one, [("grpc.default_compression_algorithm", 2)])  # gzip
        self.addCleanup(bomb.close)
        before = self.resident()
        call = bomb.unary_unary("/hpo.v1.WorkerService/RegisterWorker")
        with self.assertRaises(grpc.RpcError) as raised:
            call(b"\x0a" + varint(HUNDRED_MB) + bytes(HUNDRED_MB), timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED, raised.exception.details())
        self.assertLess(self.resident() - before, 32 << 20)

    def resident(self):
        with open(f"/proc/{self.server.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def test_too_many_calls_a_second_are_refused(self):
        reader = self.connect(self.join("read"), "reader")
        channel = Channel(reader)
        self.addCleanup(channel.close)
        call = channel.channel.unary_unary("/hpo.v1.AdminService/GetServer")
        codes = []
        end = time.monotonic() + 15
        while "RESOURCE_EXHAUSTED" not in codes and time.monotonic() < end:
            flight = [call.future(b"", timeout=DEADLINE_S) for _ in range(400)]
            codes += [one.code().name for one in flight]
        self.assertIn("RESOURCE_EXHAUSTED", codes)
        self.assert_audited(event="refused", who="read", result="RESOURCE_EXHAUSTED", why="calls a second")
        worker = self.worker(self.one, "meanwhile")
        self.assertIsNotNone(worker.acquire(uuid.uuid4().hex)[0])


def call_of(method, message):
    """A unary call in HTTP/2, to be sent after PREFACE."""
    def frame(kind, flags, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", 1) + payload

    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost",
              "content-type": "application/grpc", "te": "trailers"}
    headers = b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                       for name, value in fields.items())
    return frame(1, 4, headers) + frame(0, 1, b"\0" + struct.pack(">I", len(message)) + message)


def varint(number):
    whole = b""
    while number >= 0x80:
        whole += bytes([number & 0x7f | 0x80])
        number >>= 7
    return whole + bytes([number])
