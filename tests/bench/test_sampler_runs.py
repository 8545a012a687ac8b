"""bin/sampler_runs over tables and functions: what counts, what fails, what is refused."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["HPO_BIN_DIR"], "sampler_runs")
SPACE = {
    "format": "hpo-table/1",
    "name": "toy",
    "params": [
        {"name": "kind", "kind": "categorical", "values": ["a", "b"]},
        {"name": "rate", "kind": "ordinal", "values": [0.1, 1.0, 10.0], "scale": "log",
         "active_if": {"param": "kind", "in": ["b"]}},
    ],
    "objective": {"goal": "max", "columns": ["score1", "score2"]},
    "constraints": [{"column": "size", "max": 6.0}, {"column": "size", "max": 5.0}],
}
# b with the highest rate is best, but too large; b with the lowest fails.
ROWS = ["kind,rate,status,score1,score2,size", "0,,ok,3,3,1", "1,0,crash,,,2", "1,1,ok,4,,5", "1,2,ok,9,9,8"]


def run(*options):
    return subprocess.run([PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write(SPACE, ROWS)

    def write(self, space, rows):
        (self.folder / "space.json").write_text(json.dumps(space), encoding="utf-8")
        (self.folder / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def runs(self, *options):
        done = run("--table", str(self.folder), "--seeds", "2", "--evaluations", "30", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["runs"]

    def test_finds_the_best_row_and_counts_what_failed(self):
        for seed in self.runs():
            self.assertEqual(seed["best"], [-9.0])
            self.assertGreater(seed["failed"], 0)
            self.assertEqual(seed["infeasible"], 0)

    def test_a_measured_constraint_makes_runs_infeasible_at_its_tightest_limit(self):
        for seed in self.runs("--constraint", "size"):
            self.assertEqual(seed["best"], [-4.0])
            self.assertGreater(seed["infeasible"], 0)

    def test_a_known_constraint_is_kept(self):
        for seed in self.runs("--constraint", "size", "--known"):
            self.assertEqual(seed["best"], [-4.0])
            self.assertEqual(seed["infeasible"], 0)

    def test_says_where_a_table_is_wrong(self):
        self.write(SPACE, ROWS + ["1,x,ok,1,1,1"])
        done = run("--table", str(self.folder))
        self.assertEqual(done.returncode, 2)
        self.assertIn("table.csv:6: expected an index, got x", done.stderr)
        self.write(SPACE, ROWS[:2] + ["1,1,ok"])
        self.assertIn("table.csv:3: expected 6 cells, got 3", run("--table", str(self.folder)).stderr)
        self.write(dict(SPACE, format="other"), ROWS)
        self.assertIn("space.json: expected a space of hpo-table/1", run("--table", str(self.folder)).stderr)
        self.write(SPACE, ROWS)
        done = run("--table", str(self.folder), "--constraint", "weight")
        self.assertIn("space.json: no constraint on weight", done.stderr)


class Curves(unittest.TestCase):
    """The grid's order is the table's: what each trial costs is known."""

    SPACE = {
        "format": "hpo-table/1",
        "name": "curves",
        "params": [{"name": "kind", "kind": "ordinal", "values": [1, 2, 3, 4], "scale": "linear"}],
        "objective": {"goal": "min", "columns": ["final"]},
        "fidelity": {"column": "curve", "unit": "checkpoint"},
    }
    # A good one, a bad one, one that failed and the best.
    ROWS = ["kind,status,final,curve", "0,ok,1,1.2 1.1 1", "1,ok,2,2 2 2 2", "2,crash,,", "3,ok,0.4,0.5 0.4"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write(self.SPACE, self.ROWS)

    def write(self, space, rows):
        (self.folder / "space.json").write_text(json.dumps(space), encoding="utf-8")
        (self.folder / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def replay(self, checkpoints, *options):
        """What the first seed's run came to after each of so many checkpoints."""
        done = run("--table", str(self.folder), "--seeds", "1", "--sampler", "grid", "--checkpoints",
                   ",".join(map(str, range(1, checkpoints + 1))), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["runs"][0]

    def refused(self, *options):
        done = run("--table", str(self.folder), "--checkpoints", "5", *options)
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr

    def test_without_a_pruner_every_checkpoint_is_spent(self):
        found = self.replay(10)
        self.assertEqual(found["completed"], [0, 0, 1, 1, 1, 1, 2, 2, 2, 3])
        self.assertEqual(found["failed"], [0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
        self.assertEqual(found["pruned"], [0] * 10)
        self.assertEqual(found["best"], [None, None] + [1.0] * 7 + [0.4])

    def test_a_pruned_trial_costs_what_it_has_spent(self):
        found = self.replay(7, "--pruner", "median:startup_trials=1")
        self.assertEqual(found["completed"], [0, 0, 1, 1, 1, 1, 2])
        self.assertEqual(found["pruned"], [0, 0, 0, 1, 1, 1, 1])
        self.assertEqual(found["failed"], [0, 0, 0, 0, 1, 1, 1])
        self.assertEqual(found["best"], [None, None, 1.0, 1.0, 1.0, 1.0, 0.4])
        found = self.replay(8, "--pruner", "median:startup_trials=1:warmup_steps=2")
        self.assertEqual(found["pruned"], [0, 0, 0, 0, 1, 1, 1, 1])
        found = self.replay(5, "--pruner", "threshold:upper=1.15")
        self.assertEqual((found["pruned"], found["completed"]), ([1, 2, 2, 2, 2], [0, 0, 0, 0, 1]))

    def test_the_last_checkpoint_comes_with_the_result(self):
        found = self.replay(10, "--pruner", "median:startup_trials=1:warmup_steps=4")
        self.assertEqual((found["completed"][-1], found["pruned"][-1]), (3, 0))

    def test_trials_in_flight_advance_together(self):
        found = self.replay(6, "--pruner", "median:startup_trials=1", "--in-flight", "2")
        self.assertEqual(found["completed"], [0, 0, 0, 0, 1, 1])
        self.assertEqual(found["pruned"], [0, 0, 0, 0, 0, 1])

    def test_steps_are_those_of_the_columns(self):
        space = self.SPACE | {"fidelity": {"columns": ["e1", "e2", "e4", "final"], "at": [1, 2, 4, 8]}}
        self.write(space, ["kind,e1,e2,e4,final"] + [f"{i},{value},{value},{value},{value}"
                                                     for i, value in enumerate((1, 2, 0.5, 0.4))])
        for warmup, pruned in ((2, [0] * 5 + [1]), (3, [0] * 6 + [1]), (5, [0] * 8)):
            found = self.replay(len(pruned), "--pruner", f"median:startup_trials=1:warmup_steps={warmup}")
            self.assertEqual(found["pruned"], pruned, warmup)

    def test_evaluations_do_not_look_at_the_curve(self):
        done = run("--table", str(self.folder), "--seeds", "1", "--sampler", "grid", "--evaluations", "1,4")
        self.assertEqual(json.loads(done.stdout)["runs"][0]["best"], [1.0, 0.4])

    def test_pruners_are_those_of_a_study_file(self):
        self.assertIn("pruner.type: expected predictive, median, percentile, threshold, patient, asha, hyperband, wilcoxon or "
                      "none, got 'medain'", self.refused("--pruner", "medain"))
        self.assertIn("pruner: expected of asha one of min_resource, reduction_factor, min_early_stopping_rate, "
                      "bootstrap_count, got startup_trials", self.refused("--pruner", "asha:startup_trials=3"))
        self.assertIn("min_resource: expected an integer, got the string \"two\"",
                      self.refused("--pruner", "asha:min_resource=two"))
        self.assertIn("--pruner requires --checkpoints", run("--problem", "branin", "--pruner", "asha").stderr)

    def test_says_where_a_curve_is_missing_or_wrong(self):
        done = run("--problem", "branin", "--checkpoints", "5")
        self.assertIn("--checkpoints: expected --table with learning curves, got branin", done.stderr)
        self.assertIn("--checkpoints: expected ascending numbers, got 5,3", self.refused("--checkpoints", "3"))
        self.write(self.SPACE, self.ROWS + ["3,ok,1,1 x"])
        self.assertIn("table.csv:6: expected a number at step 2 of the learning curve, got 'x'", self.refused())
        self.write(self.SPACE, self.ROWS + ["3,ok,1,"])
        self.assertIn("table.csv:6: expected a learning curve, got none", self.refused())
        for fidelity, message in (
                (None, "space.json: fidelity: expected the column or columns of a learning curve, got none"),
                ({"column": "loss"}, "space.json: fidelity: expected a column of the table, got loss"),
                ({"columns": ["final"]}, "space.json: fidelity.at: "),
                ({"columns": ["final"], "at": [0]}, "[0]: expected a step, 1 or more, got the integer 0"),
                ({"columns": ["final", "curve"], "at": [2, 1]}, "each of the columns, ascending, got 2 columns and 2, 1")):
            self.write(self.SPACE | {"fidelity": fidelity}, self.ROWS)
            self.assertIn(message, self.refused())


class Functions(unittest.TestCase):
    def test_same_seed_same_runs(self):
        options = ["--problem", "branin", "--seeds", "2", "--evaluations", "15,30"]
        first, second = (json.loads(run(*options).stdout)["runs"] for _ in range(2))
        self.assertEqual(first, second)
        self.assertNotEqual(first[0]["best"], first[1]["best"])
        self.assertLessEqual(first[0]["best"][1], first[0]["best"][0])

    def test_a_known_cliff_is_never_met(self):
        runs = json.loads(run("--problem", "cliff_known", "--seeds", "1", "--evaluations", "40").stdout)["runs"]
        self.assertEqual(runs[0]["out_of_memory"], 0)
        self.assertGreater(runs[0]["best"][0], 0.0)

    def test_a_learned_cliff_is_met_seldom(self):
        done = run("--problem", "cliff_learned", "--seeds", "2", "--evaluations", "60")
        for seed in json.loads(done.stdout)["runs"]:
            self.assertGreater(seed["out_of_memory"], 0)
            self.assertLess(seed["out_of_memory"], 15)

    def test_an_unknown_problem_or_sampler_is_refused(self):
        self.assertIn("expected one of ackley10, branin", run("--problem", "brann").stderr)
        done = run("--problem", "branin", "--sampler", "tpee")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tpee", done.stderr)


class Fleets(unittest.TestCase):
    def runs(self, *options):
        done = run("--seeds", "1", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["runs"][0]

    def test_every_card_gets_what_fits_it_and_none_is_idle(self):
        found = self.runs("--problem", "fleet", "--cards", "8GB:1,80GB:8", "--evaluations", "40")
        self.assertEqual(found["out_of_memory"], 0)
        self.assertEqual(found["idle_s"], 0)
        small, large = found["classes"]
        self.assertEqual((small["capacity"], large["capacity"]), (8 * 10**9, 80 * 10**9))
        self.assertEqual(small["trials"] + large["trials"], 40)
        self.assertEqual(small["for_smaller"], 0)
        self.assertGreater(small["trials"], 0)
        self.assertLess(large["for_smaller"], large["trials"])

    def test_a_card_that_nothing_fits_is_idle(self):
        found = self.runs("--problem", "fleet", "--cards", "1GB,80GB:8", "--evaluations", "5")
        self.assertEqual([c["trials"] for c in found["classes"]], [5])
        self.assertGreater(found["idle_s"], 0)

    def test_a_run_ends_at_its_target_sooner_on_faster_cards(self):
        options = ["--problem", "fleet", "--evaluations", "200", "--target", "0.2", "--cards"]
        slow, fast = (self.runs(*options, card) for card in ("80GB", "80GB:4"))
        self.assertLessEqual(slow["best"][0], 0.2)
        self.assertEqual(slow["best"], fast["best"])
        self.assertAlmostEqual(slow["reached_s"], 4 * fast["reached_s"])
        self.assertIsNone(self.runs("--problem", "branin", "--evaluations", "5", "--target", "0")["reached_s"])

    def test_trials_in_flight_start_without_each_other(self):
        options = ["--problem", "branin", "--evaluations", "40"]
        alone, parallel = (self.runs(*options, "--in-flight", n) for n in ("1", "40"))
        random = self.runs(*options, "--sampler", "random")
        self.assertEqual(parallel["best"], random["best"])
        self.assertNotEqual(alone["best"], random["best"])

    def test_says_what_is_wrong_with_cards(self):
        for cards in ("80GB:0", "0", "80GB:1:2"):
            self.assertIn(f"CAPACITY:SPEED, both above 0, got {cards}", run("--problem", "fleet", "--cards", cards).stderr)
        self.assertIn("all have its capacity", run("--problem", "cliff_learned", "--cards", "1GB").stderr)


if __name__ == "__main__":
    unittest.main()
