"""When bench/emulated_cards holds a goal for met, missed, or not to be told; its jobs are what it says."""

import json
import pathlib
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from emulated import card as emulated_card  # noqa: E402
from emulated import end_to_end as emulated_end_to_end  # noqa: E402
from emulated import jobs as emulated_jobs  # noqa: E402
from emulated import matrix as emulated_matrix  # noqa: E402
from emulated import suite as emulated_suite  # noqa: E402

MIB = 1 << 20


def configuration(**changed):
    return {"type": "configuration", "name": "h256", "completed": True, "fragile": False, "peak_phase": "backward",
            "predicted_live_bytes": 100 * MIB, "measured_live_bytes": 100 * MIB,
            "predicted_reserved_bytes": 120 * MIB, "measured_reserved_bytes": 120 * MIB, **changed}


def step(expected, ran):
    return {"type": "ladder", "name": "h256", "share": 1.0, "expected": expected, "ran": ran}


def storm(**changed):
    return {"type": "storm", "cycles": 10, "met": 10, "at_baseline": 10, "live_drift_bytes": 0,
            "reserved_drift_bytes": 0, **changed}


def run(*more, allocator="default", count=64):
    lines = [configuration() for _ in range(count)] + [step(True, True), step(False, False)]
    kinds = {line["type"] for line in more}
    lines += [] if "storm" in kinds else [storm()]
    return emulated_suite.Run("t4", allocator, lines + list(more) + [{"type": "done"}])


class Suite(unittest.TestCase):
    def missed(self, *runs):
        return {figure["name"] for figure in emulated_suite.judged(runs, 10) if not figure["met"]}

    def test_a_suite_as_predicted_meets_every_goal(self):
        self.assertEqual(self.missed(run(), run(allocator="expandable")), set())
        self.assertEqual(list(emulated_suite.told([run()])), [])

    def test_one_wrong_live_peak_is_enough(self):
        wrong = run(configuration(measured_live_bytes=101 * MIB))
        self.assertEqual(self.missed(wrong), {"suite_live_worst_error"})
        self.assertIn("live -0.990 %", "\n".join(emulated_suite.told([wrong])))

    def test_a_few_wrong_reserved_peaks_are_not_enough(self):
        wrong = [configuration(measured_reserved_bytes=126 * MIB) for _ in range(8)]
        self.assertEqual(self.missed(run(*wrong)), {"suite_reserved_p95_error"})
        self.assertEqual(self.missed(run(*wrong[:2])), set())

    def test_admitted_and_refused_count_apart(self):
        right = [step(True, True) for _ in range(1000)]
        self.assertEqual(self.missed(run(*right, step(True, False))), {"suite_admitted_ran_out"})
        self.assertEqual(self.missed(run(*right, step(False, True))), set())
        self.assertEqual(self.missed(run(*right, *[step(False, True)] * 6)),
                         {"suite_refused_though_it_runs", "suite_ladder_right_share"})

    def test_what_was_skipped_is_missed(self):
        self.assertEqual(self.missed(run({"type": "skipped", "name": "ladder of h256"})), {"suite_runs_whole"})
        self.assertEqual(self.missed(run(count=63)), {"suite_runs_whole"})
        self.assertEqual(self.missed(run(storm(met=9))), {"suite_runs_whole"})

    def test_a_configuration_too_big_for_its_card_is_not_to_complete(self):
        profile = {"type": "profile", "device": {"total_bytes": 1000 * MIB, "base_bytes": 300 * MIB}}
        too_big = configuration(completed=False, predicted_reserved_bytes=701 * MIB)
        fits = configuration(completed=False, predicted_reserved_bytes=700 * MIB)
        self.assertEqual(self.missed(run(profile, too_big)), set())
        self.assertEqual(self.missed(run(profile, fits)), {"suite_admitted_ran_out"})

    def test_drift_is_of_each_kind(self):
        self.assertEqual(self.missed(run(storm(live_drift_bytes=512))), {"storm_drift_bytes"})
        self.assertEqual(self.missed(run(storm(reserved_drift_bytes=2 * MIB))), {"storm_drift_bytes_reserved"})
        page = storm(reserved_drift_bytes=2 * MIB)
        self.assertEqual(self.missed(run(page, allocator="expandable")), set())
        pages = storm(reserved_drift_bytes=4 * MIB)
        self.assertEqual(self.missed(run(pages, allocator="expandable")), {"storm_drift_bytes_expandable"})


class Matrix(unittest.TestCase):
    def result(self, live=100 * MIB, predicted_reserved=120 * MIB, completed=True):
        return emulated_matrix.Result("t4 bert", completed, live=live, predicted_live=100 * MIB, reserved=120 * MIB,
                                      predicted_reserved=predicted_reserved)

    def met(self, *results):
        return [figure["met"] for figure in emulated_matrix.judged(results)]

    def test_jobs_must_complete_within_their_prediction(self):
        self.assertEqual(self.met(self.result(), self.result(live=90 * MIB)), [True, True])
        self.assertEqual(self.met(self.result(live=100 * MIB + MIB // 2)), [True, False])
        self.assertEqual(self.met(self.result(predicted_reserved=119 * MIB)), [True, False])
        self.assertEqual(self.met(self.result(), self.result(completed=False)), [False, True])

    def test_without_a_prediction_nothing_is_met(self):
        self.assertEqual(self.met(self.result(predicted_reserved=None)), [True, None])
        self.assertEqual(self.met(), [False, None])

    def test_reads_what_the_trainer_says(self):
        memory = {"live_peak_bytes": 5, "reserved_peak_bytes": 6, "peak_phase": "forward"}
        said = [{"type": "memory", "stage": "Probe", "predicted_bytes": 7, "predicted_reserved_bytes": 8},
                {"type": "outcome", "outcome": {"kind": "completed"}, "memory": memory}]
        self.assertEqual(emulated_matrix.result_of("a", said),
                         emulated_matrix.Result("a", True, "", "forward", 5, 7, 6, 8))
        failed = [{"type": "outcome", "outcome": {"kind": "failed", "message": "no\nsuch"}, "memory": {}}]
        self.assertEqual(emulated_matrix.result_of("a", failed).why, "failed: no")


class Jobs(unittest.TestCase):
    JOBS = emulated_jobs.all_jobs()

    def test_cover_families_precisions_techniques_and_tasks(self):
        self.assertGreaterEqual(len(self.JOBS), 120)
        self.assertEqual(sum(job.in_ci for job in self.JOBS), 12)
        pairs = {(job.family, job.params["train.precision"]) for job in self.JOBS if job.what == "plain"}
        self.assertEqual(len(pairs), len(emulated_jobs.FAMILIES) * len(emulated_jobs.PRECISIONS))
        bases = {(job.family, job.params.get("lora.base")) for job in self.JOBS}
        for family in emulated_jobs.FAMILIES:
            self.assertLessEqual({(family, base) for base in ("fp32", "bf16", "nf4")}, bases)
        self.assertEqual(len({job.task for job in self.JOBS}), 5)
        self.assertEqual({job.params.get("train.optimizer", "adamw") for job in self.JOBS},
                         {"adamw", "adamw_8bit", "adafactor", "sgd"})

    def test_rows_have_the_lengths_that_they_say(self):
        job = self.JOBS[0]
        with tempfile.TemporaryDirectory() as folder:
            message = emulated_jobs.message(job, pathlib.Path(folder), 1)
            rows = [json.loads(line) for line in pathlib.Path(message["train_path"]).read_text().splitlines()]
        lengths = [len(row["text"].split()) + 2 for row in rows]
        self.assertEqual(lengths, emulated_jobs.row_lengths(job.rows, emulated_jobs.TRAIN_ROWS))
        self.assertEqual(max(emulated_jobs.row_lengths(emulated_jobs.ROWS_OF_MANY, 20)), 128)


class Studies(unittest.TestCase):
    def study(self, **changed):
        return {"policy": "plan", "trials": 200, "completed": 100, "refused_share_of_drawn": 0.5, "ran_out": [],
                "refused_wrongly": [], "other_ends": [], **changed}

    def met(self, *studies):
        return [figure["met"] for figure in emulated_end_to_end.judged_studies(studies)]

    def test_what_is_refused_counts_against_what_runs(self):
        self.assertEqual(self.met(self.study(), self.study()), [True] * 4)
        self.assertEqual(self.met(self.study(refused_wrongly=[{}])), [True] * 4)
        self.assertEqual(self.met(self.study(refused_wrongly=[{}, {}])), [True, False, True, True])
        self.assertEqual(self.met(self.study(ran_out=[{}, {}])), [False, True, True, True])

    def test_about_half_does_not_fit_for_every_policy(self):
        self.assertEqual(self.met(self.study(), self.study(refused_share_of_drawn=0.3))[2], False)

    def test_all_faults_end_as_expected(self):
        judged = emulated_end_to_end.judged_faults
        self.assertTrue(judged({"fault_cases": 26, "fault_cases_as_expected": 26})[0]["met"])
        self.assertFalse(judged({"fault_cases": 26, "fault_cases_as_expected": 25})[0]["met"])
        self.assertFalse(judged({"fault_cases": 3, "fault_cases_as_expected": 3})[0]["met"])


class Trainer(unittest.TestCase):
    def test_one_that_says_nothing_is_told_as_that(self):
        with tempfile.TemporaryDirectory() as folder:
            trainer = emulated_card.Trainer("build", "t4", pathlib.Path(folder), 0.1)
            trainer.command = ["sh", "-c", "echo a card >&2; exec cat >&2"]
            with self.assertRaisesRegex(RuntimeError, "says nothing more for 0.1 s"):
                trainer.run({})
            trainer.command = ["sh", "-c", "echo no such card >&2"]
            with self.assertRaisesRegex(RuntimeError, "no such card"):
                trainer.run({})


if __name__ == "__main__":
    unittest.main()
