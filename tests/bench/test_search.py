"""bench/search: its problems, what is counted, and the lines between it and bin/sampler_runs."""

import gzip
import importlib.util
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from searches import search_figures  # noqa: E402
from searches import search_runs  # noqa: E402

try:
    from searches import search_parts
    from searches import search_problems
    from searches import search_tables
except ImportError:
    search_problems = None

PROGRAM = os.path.join(os.environ["HPO_BIN_DIR"], "sampler_runs")
SPACE = [{"name": "x", "kind": "float", "low": 0.0, "high": 1.0, "log": False, "when": []}]


@unittest.skipIf(search_problems is None, "the Python package coco-experiment is not there (scripts/bootstrap)")
class Problems(unittest.TestCase):
    def test_the_optimum_of_every_problem_is_where_it_says(self):
        for part, spec in search_parts.PARTS.items():
            for half in spec.halves:
                for function in spec.functions:
                    instance = search_parts.instances_of(half, 2)[-1]
                    problem = search_parts.problem_of(part, function, instance)
                    self.assertGreater(problem.start, 0.0, problem.name)
                    self.assertLess(abs(problem.regret(problem.best)), 1e-7 * problem.start, problem.name)

    def test_the_optimum_is_a_configuration_and_nothing_near_it_is_better(self):
        for function in search_problems.ALL:
            for instance in (3, 23):
                problem = search_parts.problem_of("variants", function, instance)
                for parameter in problem.space:
                    active = search_problems.is_active(parameter, problem.best)
                    self.assertEqual(active, parameter["name"] in problem.best)
                    for other in self.neighbours(parameter, problem.best) if active else []:
                        regret = problem.regret(problem.best | {parameter["name"]: other})
                        self.assertGreaterEqual(regret, -1e-9 * problem.start, (problem.name, parameter, other))

    def neighbours(self, parameter, params):
        value = params[parameter["name"]]
        if parameter["kind"] == "choices":
            self.assertIn(value, parameter["choices"])
            return [other for other in parameter["choices"] if other != value and parameter["name"] != "form"]
        self.assertLessEqual(parameter["low"], value)
        self.assertLessEqual(value, parameter["high"])
        if parameter["kind"] == "int":
            self.assertEqual((value - parameter["low"]) % parameter["step"], 0)
            return [value - parameter["step"], value + parameter["step"]]
        return [value * 1.01, value / 1.01] if parameter["log"] else [value - 0.01, value + 0.01]

    def test_choices_move_the_optimum(self):
        function = self.function_of(search_problems.moving_choices)
        problem = search_parts.problem_of("variants", function, 21)
        plain = search_parts.problem_of("bbob5", function, 21)
        for kind in ("kind0", "kind1", "kind2"):
            at_the_plain_optimum = problem.regret(problem.best | {"kind": kind})
            self.assertEqual(at_the_plain_optimum > 1e-3 * plain.start, kind != problem.best["kind"])

    def function_of(self, kind):
        return next(f for f in search_problems.ALL if search_problems.kind_of(f, "report") == kind)

    def test_each_kind_has_four_functions_of_a_half_and_the_halves_differ(self):
        lots = [[search_problems.kind_of(f, half) for f in search_problems.ALL] for half in ("tune", "report")]
        for lot in lots:
            self.assertEqual({kind: lot.count(kind) for kind in lot}, {kind: 4 for kind in search_problems.KINDS})
        self.assertNotEqual(*lots)

    def test_noise_and_losses_are_the_trials_own(self):
        noisy = search_parts.problem_of("variants", self.function_of(search_problems.noise), 21)
        params = noisy.random_configuration(random.Random(0))
        seen = [noisy.observed(number, params) - noisy.value(params) for number in range(400)]
        self.assertEqual(seen[7], noisy.observed(7, params) - noisy.value(params))
        spread = math.sqrt(sum(error**2 for error in seen) / len(seen))
        self.assertIn(round(noisy.noise / spread, 1), (0.9, 1.0, 1.1))
        losing = search_parts.problem_of("variants", self.function_of(search_problems.lost_trials), 21)
        params = losing.random_configuration(random.Random(0))
        lost = sum(losing.observed(number, params) is None for number in range(1000))
        self.assertTrue(160 < lost < 240, lost)

    def test_a_run_ends_with_what_it_found(self):
        for function, in_flight in ((3, 1), (4, 5)):
            problem = search_parts.problem_of("variants", function, 1)
            with search_runs.Ours(PROGRAM, "auto", problem, 1, 12) as study:
                first, = search_runs.regrets(study, problem, 12, in_flight)
            self.assertEqual(len(study.processor_ms), 12)
            self.assertTrue(0.0 <= first < 100.0 * problem.start)
            with search_runs.Ours(PROGRAM, "auto", problem, 1, 12) as study:
                self.assertEqual([first], search_runs.regrets(study, problem, 12, in_flight))


@unittest.skipIf(search_problems is None, "the Python package coco-experiment is not there (scripts/bootstrap)")
class Tables(unittest.TestCase):
    SPACE = {
        "params": [
            {"name": "kind", "kind": "categorical", "values": ["a", "b"]},
            {"name": "size", "kind": "ordinal", "values": [1, 2, 4], "active_if": {"param": "kind", "in": ["b"]}},
        ],
        "objective": {"goal": "max", "columns": ["s0", "s1"]},
        "fidelity": {"columns": ["e1", "e2", "s0"], "at": [1, 2, 4]},
    }
    ROWS = ["kind,size,status,s0,s1,e1,e2", "0,,ok,3,,1,2", "1,0,crash,,,,", "1,1,ok,4,8,2,3", "1,2,ok,5,5,3,4"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "space.json").write_text(json.dumps(self.SPACE), encoding="utf-8")
        with gzip.open(path / "table.csv.gz", "wt", encoding="utf-8") as rows:
            rows.write("\n".join(self.ROWS) + "\n")
        self.table = search_tables.TableProblem(search_tables.Rows(path), "toy")

    def test_a_table_is_a_problem(self):
        self.assertEqual((self.table.optimum, self.table.best), (-6.0, {"kind": "1", "size": 1}))
        self.assertEqual(self.table.space[1]["when"], [{"name": "kind", "values": ["1"]}])
        self.assertEqual(self.table.regret({"kind": "0"}), 3.0)
        self.assertTrue(math.isfinite(self.table.start))
        self.assertIsNone(self.table.observed(0, {"kind": "1", "size": 0}))
        self.assertEqual({self.table.observed(number, self.table.best) for number in range(20)}, {-4.0, -8.0})

    def test_a_curve_costs_what_was_reported_of_it(self):
        class Study:
            """Prunes the first trial at its second report."""

            trials = [{"kind": "0"}, {"kind": "1", "size": 0}, {"kind": "1", "size": 2}]
            told = []

            def ask(self):
                return len(self.told), self.trials[len(self.told)]

            def tell(self, trial, loss):
                self.told.append((trial, loss))

            def prunes(self, trial, loss, step):
                if (trial, step) == (0, 2):
                    self.told.append((trial, "pruned"))
                return (trial, step) == (0, 2)

        study = Study()
        best = search_tables.optuna_on_curves(study, self.table, [1, 3, 5, 6])
        self.assertEqual(best, [math.inf, math.inf, math.inf, -5.0])
        self.assertEqual(study.told, [(0, "pruned"), (1, None)])


class Toy:
    """A problem whose noise makes the worse of two look better; trial 2 is lost."""

    space = SPACE

    def observed(self, number, params):
        return {0: 5.0, 1: 4.0, 2: None}.get(number, 6.0)

    def regret(self, params):
        return params["x"]


class Listed:
    """A study that proposes 0, 1, 2, ... and remembers the order of calls."""

    def __init__(self):
        self.calls = []
        self.asked = 0

    def ask(self):
        self.asked += 1
        self.calls.append(f"ask {self.asked - 1}")
        return self.asked - 1, {"x": float(self.asked - 1)}

    def tell(self, trial, loss):
        self.calls.append(f"tell {trial} {loss}")


class Runs(unittest.TestCase):
    def test_regret_is_of_the_trial_that_looks_best(self):
        self.assertEqual(search_runs.regrets(Listed(), Toy(), 20), [1.0, 1.0])

    def test_as_many_are_asked_for_as_are_in_flight(self):
        study = Listed()
        search_runs.regrets(study, Toy(), 4, in_flight=3)
        self.assertEqual(study.calls, ["ask 0", "ask 1", "ask 2", "tell 0 5.0", "ask 3", "tell 1 4.0", "tell 2 None",
                                       "tell 3 6.0"])


class Figures(unittest.TestCase):
    STARTS = {("bbob5", f, i): 100.0 for f in (1, 2) for i in (21, 22, 23)}

    def runs(self, first, second):
        """Of functions 1 and 2 at 50, 100 and 200, by instance."""
        values = zip(self.STARTS, first + second)
        return {key: {50: value, 100: value, 200: value} for key, value in values}

    def test_medians_are_over_common_instances_and_have_a_floor(self):
        ours = self.runs([1e-9, 1e-9, 5.0], [1.0, 2.0, 3.0])
        theirs = self.runs([0.0, 0.0, 0.0], [4.0, 1.0, 9.0])
        del theirs["bbob5", 2, 23]
        found = search_figures.compared(ours, theirs, self.STARTS, 200)
        self.assertEqual(found["bbob5", 1], (0.01, 0.01, 3))
        self.assertEqual(found["bbob5", 2], (1.5, 2.5, 2))

    def test_the_best_peer_of_a_function_and_of_all(self):
        ours = self.runs([2.0] * 3, [2.0] * 3)
        peers = {"a": self.runs([1.0] * 3, [16.0] * 3), "b": self.runs([4.0] * 3, [2.0] * 3)}
        best = search_figures.best_peers(ours, peers, self.STARTS, 200)
        self.assertEqual({function: name for function, (name, _) in best.items()},
                         {("bbob5", 1): "a", ("bbob5", 2): "b"})
        mean, name = search_figures.best_single_peer(ours, peers, self.STARTS, 200)
        self.assertEqual((round(mean, 6), name), (round(math.sqrt(0.5), 6), "b"))
        figures = {f["name"]: f for f in search_figures.measured({"auto": ours}, peers, self.STARTS, {})}
        self.assertEqual(figures["bbob_5d_no_worse_share"]["value"], 0.5)
        self.assertEqual(figures["bbob_5d_worst_ratio_200"]["value"], 2.0)
        self.assertTrue(figures["bbob_5d_mean_ratio_200"]["met"])

    def test_where_nothing_is_stored_nothing_is_met(self):
        figures = search_figures.measured({"auto": self.runs([1.0] * 3, [1.0] * 3)}, {}, self.STARTS, {})
        self.assertEqual({(f["value"], f["met"]) for f in figures}, {(None, None)})

    def test_auto_keeps_what_its_own_have(self):
        samplers = {"auto": self.runs([1.05] * 3, [1.2] * 3), "gp": self.runs([1.0] * 3, [5.0] * 3),
                    "tpe": self.runs([5.0] * 3, [1.0] * 3)}
        self.assertEqual(search_figures.keeps_its_own(samplers, self.STARTS)["value"], 0.5)

    def test_our_sampler_in_optunas_loop_is_measured_by_the_better_peer(self):
        starts = {("bbob5", f, i): 1.0 for f in (1, 2) for i in range(3)}
        ours, tpe, gp = ({key: {50: value} for key in starts} for value in (0.2, 0.4, 0.8))
        found = search_figures.in_optuna(ours, {"optuna-tpe": tpe, "optuna-gp": gp}, starts, 50)
        self.assertEqual([(f["name"], f["value"], f["met"]) for f in found], [("hpo_sampler_mean_ratio_50", 0.5, True)])

    def test_a_peer_that_is_better_on_a_curve_is_found(self):
        starts = {("curves", f, i): 1.0 for f in (1, 2) for i in range(10)}
        ours = {key: {100: 0.5, 200: 0.4, 500: 0.3} for key in starts}
        peer = {key: {100: 0.5, 200: 0.2 if key[1] == 1 else 0.4, 500: 0.9} for key in starts}
        self.assertEqual(search_figures.curves_no_worse(ours, {"optuna-tpe+asha": peer}, starts)["value"], 1)
        self.assertEqual(search_figures.curves_no_worse(peer, {"auto": ours}, starts)["value"], 2)

    def test_suggestions_take_the_median_runs_mean_time(self):
        found = search_figures.suggest_ms([[100.0] * 80 + [t] * 20 for t in (1.0, 2.0, 30.0)] + [[5.0] * 99])
        self.assertEqual([(f["name"], f["value"], f["met"]) for f in found], [("auto_suggest_ms_100", 2.0, True)])

    def test_the_sign_test_finds_what_is_worse_throughout(self):
        starts = {("bbob5", f, i): 1.0 for f in (1, 2) for i in range(15)}
        ours = {key: {200: 1.0} for key in starts}
        theirs = {key: {200: 0.5 if key[1] == 1 or key[2] % 2 else 2.0} for key in starts}
        self.assertEqual(search_figures.tpe_no_worse(ours, theirs, starts)["value"], 0.5)


@unittest.skipIf(search_problems is None, "the Python package coco-experiment is not there (scripts/bootstrap)")
class Program(unittest.TestCase):
    def search(self, *options):
        command = [sys.executable, str(ROOT / "bench/search"), "--build", os.path.dirname(os.environ["HPO_BIN_DIR"]),
                   "--sampler", "random", "--jobs", "1", *options]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=120)

    def test_a_part_ends_with_its_figures_and_can_be_compared_with_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "runs.csv")
            part = ["--part", "bbob2,quadratics", "--half", "tune", "--functions", "1", "--instances", "2"]
            done = self.search(*part, "--store", kept)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("bbob2 f1 ", done.stdout)
            self.assertEqual(json.loads(done.stdout.splitlines()[-1])["benchmark"], "search")
            done = self.search(*part, "--against", kept)
            self.assertIn("bbob2 against random before over 1 functions at 50, 100, 200, geometric mean of the ratios (runs "
                          "better/level/worse): 1 (0/2/0), 1 (0/2/0), 1 (0/2/0)", done.stdout)

    @unittest.skipIf(importlib.util.find_spec("optuna") is None, "Optuna is not installed")
    def test_a_run_may_be_short_and_in_optunas_loop(self):
        done = self.search("--part", "bbob2", "--half", "tune", "--functions", "1", "--instances", "1", "--sampler",
                           "optuna-random,optuna-hpo", "--trials", "10")
        self.assertIn(done.returncode, (0, 3), done.stderr)  # as the goal is met by so short a run or not
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["benchmark"], "search_in_optuna")

    def test_says_what_options_may_be(self):
        for options, message in (
                (["--part", "bbob3"], "--part: expected some of bbob5, bbob10, "),
                (["--part", "bbob20"], "--half: expected of bbob20 tune, got report"),
                (["--functions", "25"], "expected some of the functions of bbob5, bbob10, variants, quadratics, got "),
                (["--instances", "21"], "--instances: expected 1 to 20, got 21"),
                (["--functions", "one"], "--functions: expected numbers, got one")):
            done = self.search(*options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


class Lines(unittest.TestCase):
    def ask(self, *lines, space=None):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "space.json"
            file.write_text(json.dumps({"parameters": SPACE}) if space is None else space, encoding="utf-8")
            return subprocess.run([PROGRAM, "--ask", str(file), "--sampler", "tpe", "--first-seed", "3"],
                                  input="".join(line + "\n" for line in lines), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=120)

    def test_trials_may_end_in_any_order(self):
        done = self.ask('{"ask": true}', '{"ask": true}', '{"number": 1, "loss": 2}', '{"number": 0, "failed": true}',
                        '{"ask": true}')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["number"] for answer in answers], [0, 1, 2])
        for answer in answers:
            self.assertTrue(0.0 <= answer["params"]["x"] <= 1.0)
            self.assertGreater(answer["processor_ms"], 0.0)

    def test_says_what_is_wrong_and_where(self):
        ask = '{"ask": true}'
        for lines, message in (
                (["ask"], "line 1: "),
                (['{"ask": 1}'], 'line 1: expected {"ask": true}, {"number": N, "loss": X} or {"number": N, "failed": '
                                 'true}, got {"ask": 1}'),
                ([ask, '{"number": 1, "loss": 2}'], "line 2: number: expected a trial under way, got 1"),
                ([ask, '{"number": 0}'], "line 2: loss: "),
                ([ask, '{"number": 0, "loss": "low"}'], 'line 2: loss: expected a number, got the string "low"'),
                ([ask, '{"number": 0, "loss": null}'], "line 2: loss: expected a finite number, got null"),
                ([ask, '{"number": "0", "loss": 1}'], "line 2: number: expected an integer"),
                ([ask, '{"number": 0, "loss": 1}', '{"number": 0, "loss": 1}'],
                 "line 3: number: expected a trial under way, got 0")):
            done = self.ask(*lines)
            self.assertEqual(done.returncode, 2, message)
            self.assertIn(message, done.stderr)

    def test_says_what_is_wrong_with_a_space(self):
        for space, message in (("{", "space.json: "), ("{}", "space.json: parameters: "),
                               (json.dumps({"parameters": [SPACE[0] | {"high": -1.0}]}), "space.json: ")):
            done = self.ask('{"ask": true}', space=space)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
