"""scripts/gpu_check: what it makes of trials that failed and of machines without a card; and all of
it, in short, on an emulated card."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["HPO_BIN_DIR"]).parent
SCRIPT = ROOT / "scripts" / "gpu_check"
sys.path.insert(0, str(ROOT / "scripts"))

from gpu_checks import cases, made_up, rows  # noqa: E402
from gpu_checks.programs import Ended, last_line  # noqa: E402

GIB = 1 << 30
# Measured over predicted peaks of jobs, but where rows vary in length and it is chance which of
# them meet: replayed as they were drawn these three need what was measured, to the byte.
PEAKS = {"live": (0.998, 1.001), "reserved": (0.999, 1.001)}
# The longest rows are taken to be of the texts that ask most.
SPANS = {"live": (0.85, 1.001), "reserved": (0.85, 1.001)}
# Every batch has lengths of its own, and the model is small against a segment.
UNPADDED = {"live": (0.998, 1.001), "reserved": (0.999, 1.053)}
FEW_ROWS = {"live": (0.998, 1.001), "reserved": (0.98, 1.001)}
PEAKS_OF = {"multi-query-spans": SPANS, "bf16, dropout 0.1": UNPADDED, "bf16, 4 rows": FEW_ROWS}


def trial(state="COMPLETED", demonstration=False, **memory):
    attempt = {"predicted_bytes": 2 * GIB,
               "memory": {"baseline_bytes": GIB, "reserved_peak_bytes": GIB, "num_replans": 0,
                          **memory} if memory is not None else None}
    return {"state": state, "demonstration": demonstration, "attempts": [attempt]}


def ended(kind="completed", predicted=100, peak=90, message="", reserved=180):
    job = Ended()
    job.messages = [
        {"type": "memory", "stage": "Probe", "predicted_bytes": predicted, "peak_bytes": peak,
         "predicted_reserved_bytes": 2 * predicted},
        {"type": "outcome", "outcome": {"kind": kind, "message": message},
         "memory": {"reserved_peak_bytes": reserved}}]
    return job


def reserved_peaks(trace):
    """As the head of a trace says, and as its segments add up to."""
    said = int(re.search(r"^# reserved_peak_bytes: (\d+)$", trace, re.MULTILINE).group(1))
    now = peak = 0
    for kind, size in re.findall(r"^([SsMm]) (\d+)$", trace, re.MULTILINE):
        now += int(size) if kind.isupper() else -int(size)
        peak = max(peak, now)
    return said, peak


class Rows(unittest.TestCase):
    def seen(self, trials):
        return {row.key: (row.seen, row.as_expected) for row in rows.study_rows(trials)}

    def test_a_good_study_is_as_expected(self):
        found = self.seen([trial(demonstration=True, num_replans=1), trial(), trial(), trial()])
        self.assertTrue(all(expected for _, expected in found.values()), found)
        self.assertEqual(found["estimate"][0], "used / predicted 0.500 to 0.500")
        self.assertEqual(found["replanned"][0], "COMPLETED, 1 re-plans")

    def test_trials_that_failed_have_no_peaks(self):
        """An attempt that ends before its first step: the peak is missing, or null, or 0."""
        failed = trial("FAILED", reserved_peak_bytes=None)
        bare = trial("FAILED")
        bare["attempts"][0]["memory"] = None
        unpredicted = trial("FAILED", reserved_peak_bytes=0)
        unpredicted["attempts"][0]["predicted_bytes"] = None
        missing = trial("FAILED")
        del missing["attempts"][0]["memory"]["reserved_peak_bytes"]
        found = self.seen([failed, bare, unpredicted, missing, {"state": "WAITING"}])
        self.assertEqual(found["estimate"], ("no prediction", False))
        self.assertEqual(found["study"], ("0 of 5 completed", False))
        self.assertEqual(found["replanned"], ("not run, 0 re-plans", False))

    def test_no_trial_at_all(self):
        self.assertFalse(any(expected for _, expected in self.seen([]).values()))

    def test_a_peak_above_the_prediction_or_a_baseline_that_moved_is_not_expected(self):
        found = self.seen([trial(reserved_peak_bytes=3 * GIB), trial(baseline_bytes=GIB + 512)])
        self.assertEqual(found["estimate"], ("used / predicted 0.500 to 1.500", False))
        self.assertFalse(found["baseline"][1])

    def test_jobs(self):
        good = rows.job_row("precision", [("fp32", ended()), ("bf16", ended(peak=100))])
        self.assertEqual((good.seen, good.as_expected),
                         ("2 of 2 completed; used / predicted 0.900 to 1.000", True))
        for high, seen in ((ended(peak=101), "fp32: live 1.0100 of what was predicted"),
                           (ended(reserved=201), "fp32: reserved 1.0050 of what was predicted")):
            under = rows.job_row("precision", [("fp32", high)])
            self.assertFalse(under.as_expected)
            self.assertIn(seen, under.seen)
        failed = rows.job_row("precision", [("fp32", ended("failed", message="no | such"))])
        self.assertEqual(failed.cells()[1:], [
            "0 of 1 completed; used / predicted 0.900 to 0.900; fp32: failed no / such", "NO"])
        self.assertEqual(Ended().outcome(), ("no outcome", ""))
        partly = rows.job_row("precision", [("fp32", ended())], ["fp16"])
        self.assertEqual((partly.seen, partly.as_expected), (
            "1 of 1 completed; used / predicted 0.900 to 0.900; no time for fp16", False))

    def test_every_card_is_as_nvidia_smi_says(self):
        ours = [{"name": "T4", "driver": "1.2", "total_bytes": 100 << 20}]
        self.assertTrue(rows.nvml_row(ours, [("T4", "1.2", "101")]).as_expected)
        for cards in ([], [("T4", "1.2", "102")], [("T4", "1.3", "100")],
                      [("T4", "1.2", "100"), ("T4", "1.2", "100")]):
            self.assertFalse(rows.nvml_row(ours, cards).as_expected, cards)
        self.assertFalse(rows.nvml_row([], [("T4", "1.2", "100")]).as_expected)

    def test_losses_of_a_card_are_compared_with_float32s(self):
        jobs = [("bf16", ended()), ("fp32", ended())]
        for (_, job), loss, second in zip(jobs, (0.70, 0.74), (1.0, 3.0)):
            job.messages[-1]["outcome"]["metrics"] = {"loss": loss}
            job.messages[:0] = [{"type": "progress", "step": 1}, {"type": "progress", "step": 11}]
            job.times = [0.0, second]
        near = rows.with_numbers(rows.job_row("precision", jobs), jobs)
        self.assertTrue(near.as_expected)
        self.assertIn("; loss bf16 0.7000, fp32 0.7400; steps a second: bf16 10.0, fp32 3.3",
                      near.seen)
        jobs[0][1].messages[-1]["outcome"]["metrics"] = {"loss": 0.8}
        self.assertFalse(rows.with_numbers(rows.job_row("precision", jobs), jobs).as_expected)

    def test_every_case_has_its_row_and_model(self):
        for case in cases.cases(short=False, total_bytes=80 * GIB):
            self.assertIn(case.row, rows.WANTED)
            self.assertIn(case.model, made_up.MODELS)
        short = cases.cases(short=True, total_bytes=80 * GIB)
        self.assertEqual({case.row for case in short},
                         {case.row for case in cases.cases(False, 80 * GIB)})
        small = [case.name for case in cases.cases(False, 12 * GIB - 1)]
        self.assertFalse([name for name in small if "7B" in name])

    def test_the_rows_are_those_of_the_document(self):
        owed = (ROOT / "docs" / "gpu" / "OWED.md").read_text()
        for words in rows.WANTED.values():
            self.assertIn(f"| {words} |", owed)


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name, "out")

    def run_script(self, *words, emulated=None, script=SCRIPT):
        before = [ROOT / "scripts" / "with_emulated_card", "--build", BUILD, *emulated] \
            if emulated else []
        return subprocess.run([str(word) for word in [*before, script, *words, self.out]],
                              capture_output=True, text=True, check=False, timeout=280)

    def package(self):
        """What scripts/package makes of the build, unpacked; its gpu_check."""
        stage = self.out.parent / "hpo-1"
        for folder in ("bin", "lib", "libexec"):
            (stage / folder).mkdir(parents=True)
        for program in ("hpo", "hpo-server", "hpo-worker"):
            shutil.copy(BUILD / "bin" / program, stage / "bin")
        shutil.copy(BUILD / "bin" / "hpo-trainer", stage / "libexec")
        shutil.copy(BUILD / "lib" / "hpo_cuda.so", stage / "lib")
        shutil.copy(ROOT / "scripts" / "packaged_trainer", stage / "bin" / "hpo-trainer")
        shutil.copy(SCRIPT, stage / "bin")
        shutil.copytree(ROOT / "scripts" / "gpu_checks", stage / "share" / "gpu_checks")
        return stage / "bin" / "gpu_check"

    def test_without_programs_it_says_so_in_one_line(self):
        done = self.run_script(self.out.parent)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr, f"gpu_check: nothing ran: {self.out.parent}: expected an "
                         "archive of scripts/package, its folder or a build folder; there is no "
                         "bin/hpo-trainer\n")

    @unittest.skipUnless((BUILD / "bin" / "hpo-trainer").exists(), "built without LibTorch")
    def test_on_a_machine_without_a_card_too(self):
        """From an unpacked package, whose programs it takes."""
        done = self.run_script(emulated=["--cards", "0", "a100"], script=self.package())
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr.partition("\n")[2], r"\Agpu_check: nothing ran: .*no such card.*\n\Z")

    @unittest.skipUnless((BUILD / "bin" / "hpo-trainer").exists(), "built without LibTorch")
    def test_on_an_emulated_card_every_row_runs(self):
        done = self.run_script("--short", emulated=["a100+t4"], script=self.package())
        report = json.loads((self.out / "gpu_check.json").read_text())
        found = {row["key"]: row for row in report["rows"]}
        self.assertEqual(list(found), list(rows.WANTED))
        self.assertNotIn("errors", report)
        for row in report["rows"]:
            self.assertTrue(row["as_expected"], row)
        self.assertEqual(done.returncode, 0, done.stderr)
        for key in ("precision", "adapters", "families", "unpadded", "small_batches",
                    "clear_cache", "resumed"):
            self.assertRegex(found[key]["seen"], r"(\d+) of \1 completed", done.stderr)
        for job in report["jobs"]:
            self.assertEqual(list(job["peaks"]), list(PEAKS), job)
            for kind, (least, most) in PEAKS_OF.get(job["name"], PEAKS).items():
                self.assertTrue(least <= job["peaks"][kind] <= most, job)
        self.assertIn("goes on after step", found["resumed"]["seen"])
        self.assertEqual(found["all"]["seen"], "2 workers, 2 cards")
        self.assertEqual(report["profile"]["total_bytes"], 42298834944)  # CUDA's; NVML's is larger
        self.assertIn("storm_baseline_drift 0 B after", found["replay"]["seen"])
        table = (self.out / "gpu_check.md").read_text()
        self.assertTrue(table.startswith("# gpu_check: NVIDIA A100-PCIE-40GB (emulated)"), table)
        self.assertEqual(table, done.stdout)
        suite = (self.out / "memory_suite.md").read_text()
        self.assertIn("# Memory suite: NVIDIA A100-PCIE-40GB (emulated)", suite)
        traces = sorted(self.out.rglob("*.trace"))
        self.assertEqual(len(traces), 4)
        for trace in traces:
            self.assertEqual(*reserved_peaks(trace.read_text()), trace)


class LastLine(unittest.TestCase):
    def test_of_a_log_with_colours_or_without_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            log.write_text("one\n\x1b[31mtwo\x1b[0m\n\n")
            self.assertEqual(last_line(log), "two")
            log.write_text("")
            self.assertEqual(last_line(log), "")


if __name__ == "__main__":
    unittest.main()
