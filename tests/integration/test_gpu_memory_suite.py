"""scripts/gpu_memory_suite with trainers that print what was recorded, or nothing."""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_memory_suite"
sys.path.insert(0, str(SCRIPT.parent))

from gpu_checks import memory_suite  # noqa: E402

DEVICE = {"kind": "cuda", "name": "NVIDIA H200", "uuid": "GPU-a", "driver": "580.1",
          "total_bytes": 150 << 30, "base_bytes": 517 << 20, "workspace_bytes": 64 << 20,
          "source": "measured", "torch_build": "2.11.0+cu130", "capability": "9.0",
          "attention": "efficient", "allocator": "expandable_segments:False", "threads": 0}


def configuration(number, reserved_error=0.0, completed=True):
    measured = (number + 1) << 30
    return {"type": "configuration", "name": f"h768 l{number}", "completed": completed,
            "predicted_live_bytes": measured, "measured_live_bytes": measured,
            "predicted_reserved_bytes": round(measured * (1 + reserved_error)),
            "measured_reserved_bytes": measured,
            "predicted_device_bytes": round(measured * 1.02), "measured_device_bytes": measured,
            "fragile": False, "peak_phase": "backward", "seconds": 1.5}


def recording(reserved_error=0.001, wrong_steps=0, drift=0, count=60):
    lines = [{"type": "profile", "device": DEVICE}]
    lines += [{"type": "trace", "name": "h256 l4", "file": "cuda_h256_l4.trace", "events": 4321}]
    lines += [{"type": "storm", "name": "h256 l4", "cycles": 100, "met": 100, "at_baseline": 100,
               "live_drift_bytes": drift, "reserved_drift_bytes": 0, "seconds_before": 1.0,
               "seconds_after": 1.0}]
    for step in range(100):
        expected = step >= 50
        lines.append({"type": "ladder", "name": "h256 l4", "limit_bytes": (step + 1) << 20,
                      "share": 0.9 + step / 500, "expected": expected,
                      "ran": expected != (step < wrong_steps), "alloc_retries": 0})
    lines += [configuration(number, reserved_error) for number in range(count)]
    lines += [{"type": "skipped", "name": "h1024 l24"}, {"type": "done", "seconds": 400.0}]
    return "".join(json.dumps(line) + "\n" for line in lines)


class GpuMemorySuite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"

    def report(self, text):
        (self.folder / "lines.jsonl").write_text(text)
        done = subprocess.run([SCRIPT, "--report", self.folder / "lines.jsonl",
                               self.folder / "table.md"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stderr, "")
        return done, (self.folder / "table.md").read_text()

    def run_with(self, script):
        """The suite with a package whose trainer is `script`."""
        trainer = self.folder / "hpo-9" / "bin" / "hpo-trainer"
        trainer.parent.mkdir(parents=True)
        trainer.write_text("#!/bin/sh\n" + script)
        os.chmod(trainer, 0o755)
        archive = self.folder / "hpo.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(self.folder / "hpo-9", "hpo-9")
        return subprocess.run([SCRIPT, archive, self.out], capture_output=True, text=True,
                              check=False)

    def test_a_good_run_meets_every_goal(self):
        done, table = self.report(recording())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("every goal is met", done.stdout)
        self.assertIn("# Memory suite: NVIDIA H200", table)
        self.assertIn("| base (context, libraries) | 517.0 MiB |", table)
        self.assertIn("| reserved_median_error | 0.10% (worst 0.10%) | <= 0.5 % | yes |", table)
        self.assertIn("| device_median_error | 2.00% (worst 2.00%) |", table)
        self.assertIn("| ladder_right_share | 100.0% of 100 (0 ran out that were to fit) |", table)
        self.assertIn("| h768 l1 | 2,048.0 | 2,048.0 | +0.00% | 2,050.0 | 2,048.0 | +0.10% |", table)
        self.assertIn("cuda_h256_l4.trace", table)
        self.assertIn("Skipped for time: 1 (h1024 l24).", table)

    def test_each_goal_can_be_missed(self):
        cases = [("reserved_median_error", recording(reserved_error=0.02)),
                 ("ladder_right_share", recording(wrong_steps=2)),
                 ("storm_baseline_drift", recording(drift=512)),
                 ("configurations", recording(count=59))]
        for name, text in cases:
            with self.subTest(name):
                done, table = self.report(text)
                self.assertEqual(done.returncode, 3)
                self.assertIn(f"missed: {name}", done.stdout)
                self.assertRegex(table, rf"\| {name} \|.*\| NO \|")

    def test_a_run_that_was_cut_off_is_told(self):
        text = recording()
        done, table = self.report(text[:text.rindex('{"type": "done"')] + '{"type": "do')
        self.assertEqual(done.returncode, 3)
        self.assertIn("did not come to its end", table)

    def test_runs_the_packaged_trainer(self):
        lines = self.folder / "recorded"
        lines.write_text(recording())
        done = self.run_with(f'[ "$1 $3 $4" = "--memory-suite --device cuda:0" ] && cat {lines}\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("NVIDIA H200", (self.out / "memory_suite.md").read_text())
        self.assertEqual((self.out / "memory_suite.jsonl").read_text(), recording())

    def test_without_a_card_it_ends_with_one_clear_line(self):
        done = self.run_with("echo 'hpo-trainer: no NVIDIA driver: not found' >&2\nexit 24\n")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr, "gpu_memory_suite: nothing was measured: hpo-trainer: no "
                                      "NVIDIA driver: not found\n")
        self.assertEqual(done.stdout, "")

    def test_one_that_hangs_is_said_to_have_timed_out(self):
        trainer = self.folder / "hpo-trainer"
        for said, reason in [("", "no output"), ("echo driver: wait >&2\n", "driver: wait")]:
            trainer.write_text(f"#!/bin/sh\n{said}exec sleep 60\n")
            os.chmod(trainer, 0o755)
            self.assertEqual(memory_suite.run_suite(self.folder, self.out, seconds=0.5),
                             ([], f"timed out after 0.5 s, {reason}"))

    def test_without_an_archive_too(self):
        done = subprocess.run([SCRIPT, self.folder / "none.tar.gz", self.out],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected an archive of scripts/package", done.stderr)


if __name__ == "__main__":
    unittest.main()
