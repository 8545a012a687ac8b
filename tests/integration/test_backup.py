"""A backup of a running server, and what it gives back to one that has been stopped."""

import os
import subprocess
import unittest

from harness import BIN, Deployment, wait_until


class BackupTest(Deployment):
    def test_a_study_goes_on_from_its_backup(self):
        server = self.start_server()
        worker = self.start_worker(environment={"HPO_FAKE_PACE_MS": "100"})
        wait_until(lambda: self.study()["counts"]["completed"] >= 2, "two trials")
        backup = self.folder / "backup.db"
        self.assertIn(f"wrote {backup}", self.hpo("admin", "backup", backup))
        self.assertEqual(os.stat(backup).st_mode & 0o777, 0o600)
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "all six")

        database = self.folder / "hpo.db"
        restore = [BIN / "hpo", "admin", "restore", backup, "--db", database]
        refused = subprocess.run(restore, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(refused.returncode, 4)
        self.assertIn(f"is in use by pid {server.pid}", refused.stderr)
        server.terminate()
        restored = subprocess.run(restore, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertIn(f"what was there is now {database}.before-restore", restored.stdout)

        self.start_server()
        counts = self.study()["counts"]
        self.assertLess(counts["completed"], 6)
        # By its state folder it gives back at once what the copy says that it runs.
        self.assertEqual(worker.wait(), 0, worker.output())
        self.start_worker()
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "all six again")


if __name__ == "__main__":
    unittest.main()
