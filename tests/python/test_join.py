"""hpo.connect by a join string, against a real server with TLS."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import hpo

BIN = pathlib.Path(os.environ["HPO_BIN_DIR"])


def _train(trial: hpo.Trial) -> float:
    return (trial["x"] - 0.25) ** 2


class JoinTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="hpo-join-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        log = open(self.folder / "log", "wb")
        self.addCleanup(log.close)
        self.server = subprocess.Popen([BIN / "hpo-server", "--tls", "--listen", "127.0.0.1:0", "--db",
                                        self.folder / "hpo.db", "--address-file", self.folder / "address"],
                                       stdout=log, stderr=log)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.send_signal, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while not (self.folder / "address").exists():
            self.assertLess(time.monotonic(), deadline, (self.folder / "log").read_text())
            time.sleep(0.02)

    def join(self, role: str) -> str:
        return (self.folder / "hpo.db.access" / f"join-{role}").read_text().split()[-1]

    def test_a_study_runs_through_tls(self) -> None:
        with hpo.Study("s", {"x": hpo.uniform(0.0, 1.0)}, server=self.join("write")) as study:
            study.optimize(_train, trials=5)
            self.assertEqual(len(study.trials), 5)
        with hpo.connect(self.join("read")) as there:
            self.assertEqual(there.studies, ["s"])

    def test_a_file_and_the_environment_name_the_server(self) -> None:
        path = self.folder / "hpo.db.access" / "join-read"
        with hpo.connect(f"file:{path}") as there:
            self.assertEqual(there.studies, [])
        for name, value in (("HPO_JOIN", self.join("read")), ("HPO_JOIN_FILE", str(path))):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)
            with hpo.connect() as there:
                self.assertEqual(there.studies, [])
            del os.environ[name]

    def test_a_role_is_held_to(self) -> None:
        with hpo.connect(self.join("read")) as there:
            with self.assertRaisesRegex(hpo.ServerError, "CreateStudy needs write"):
                hpo.Study("s", {"x": hpo.uniform(0.0, 1.0)}, server=there.address)

    def test_a_damaged_one_is_named(self) -> None:
        with self.assertRaisesRegex(hpo.InvalidInput, "the join string is damaged"):
            hpo.connect(self.join("read")[:-8])
        text = self.join("read")
        with self.assertRaisesRegex(hpo.InvalidInput, "checksum"):
            hpo.connect(text[:60] + ("A" if text[60] != "A" else "B") + text[61:])
        for wrong in ("hpo1.x@y", "file:/no/such/file"):
            with self.assertRaises(hpo.HpoError) as refused:
                hpo.connect(wrong)
            self.assertNotIn("HPO_JOIN", str(refused.exception))

    def test_an_address_alone_is_not_enough(self) -> None:
        address = (self.folder / "address").read_text().strip()
        with self.assertRaisesRegex(hpo.InvalidInput, "takes TLS and a token: expected a join string"):
            hpo.connect(address)


if __name__ == "__main__":
    unittest.main()
