"""When bench/sampler_tables and bench/sampler_quality hold a goal for met, missed, or not to be told."""

import argparse
import gzip
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import random
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import figures  # noqa: E402
import one_sided  # noqa: E402
import table_folders  # noqa: E402


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(BENCH / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


TABLES = script("sampler_tables")
QUALITY = script("sampler_quality")
SPACE = {
    "params": [
        {"name": "kind", "kind": "categorical", "values": ["a", "b"]},
        {"name": "rate", "kind": "ordinal", "values": [0.1, 1.0], "active_if": {"param": "kind", "in": ["b"]}},
    ],
    "objective": {"goal": "max", "columns": ["score1", "score2"]},
    "constraints": [{"column": "size", "max": 5.0}, {"column": "size", "max": 6.0}],
}
ROWS = ["kind,rate,status,score1,score2,size", "0,,ok,3,,1", "1,0,crash,,,2", "1,1,ok,4,5,5"]
BASELINES = {"tables": {"toy": {
    "optuna_3.1.0": {"seeds": 10, "tpe": {"20": [9.0, 8.0, 7.0], "failed_share": 0.0}},
    "optuna_3.1.0_constrained": {"column": "size", "max": 6.0, "tpe": {"20": [4.0, 3.0, 2.0]}},
}}}


class OneSided(unittest.TestCase):
    def test_rank_tests_are_scipys(self):
        # scipy.stats.mannwhitneyu(alternative="greater", method="asymptotic") of SciPy 1.17.1.
        for ours, theirs, p in (([1, 2, 3, 4, 5, 9], [2, 3, 3, 7, 1], 0.3217574999581050),
                                ([5, 6, 7, 8], [1, 2, 3, 4, 6], 0.0245450581613038), ([1, 1, 1], [1, 1], 1.0)):
            self.assertAlmostEqual(one_sided.p_larger(ours, theirs), p, places=12)
        self.assertLess(one_sided.p_larger([math.inf] * 8, [1.0] * 8), 0.001)

    def test_sign_tests_leave_out_what_is_equal(self):
        self.assertEqual(one_sided.p_above([1, 2, 3, 3, 4, 5, 6], 3), 0.5)
        self.assertEqual(one_sided.p_above([4, 5, 6], 3), 0.125)
        self.assertEqual(one_sided.p_above([3, 3], 3), 1.0)

    def test_holm_multiplies_by_those_that_are_left(self):
        for p, expected in zip(one_sided.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]):
            self.assertAlmostEqual(p, expected)
        self.assertEqual(one_sided.holm([0.6, 0.9]), [1.0, 1.0])


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "toy"
        self.folder.mkdir()
        (self.folder / "space.json").write_text(json.dumps(SPACE), encoding="utf-8")
        (self.folder.parent / "baselines.json").write_text(json.dumps(BASELINES), encoding="utf-8")
        with gzip.open(self.folder / "table.csv.gz", "wt", encoding="utf-8") as rows:
            rows.write("\n".join(ROWS) + "\n")

    def figure(self, sampler, values, constrained=False, peers=()):
        """Of `toy` after 20 evaluations, where each seed came to one of `values`."""
        scored = TABLES.Scored(self.folder, constrained)
        scored.peers += peers
        result = {"evaluations": [20], "runs": [{"best": [-value]} for value in values]}
        found = TABLES.verdicts({scored: result}, {scored: scored.peers_of(sampler)}, 20)
        return TABLES.figure_of(scored, sampler, 20, result, found[scored], constrained)

    def pruned_figure(self, values, alone):
        """Of `toy` after 100 checkpoints with a pruner, where each seed came to one of `values`, and without one."""
        scored = TABLES.Scored(self.folder, False)
        with_pruner, without = (
            {"checkpoints": [50, 100],
             "runs": [{"best": [None, value and -value], "completed": [0, 3], "pruned": [0, pruned]} for value in best]}
            for best, pruned in ((values, 8), (alone, 0)))
        options = argparse.Namespace(samplers=["tpe"], pruners=["asha"], checkpoints=[50, 100])
        results = {(scored, "tpe", "none"): without, (scored, "tpe", "asha"): with_pruner}
        return TABLES.replayed([scored], results, options)

    def test_a_peer_is_better_where_the_test_says_so(self):
        self.assertIs(self.figure("tpe", [7.0] * 5)["met"], False)
        self.assertIs(self.figure("tpe", [7.0, 7.0, 7.0, 9.0])["met"], True)
        self.assertEqual(self.figure("tpe", [7.0, 7.0, 9.0])["value"], 7.0)

    def test_a_goal_without_its_baseline_is_not_met(self):
        found = self.figure("auto", [9.0] * 5)
        self.assertIsNone(found["met"])
        self.assertIn("no baseline stored of gp", found["goal"])
        self.assertIs(self.figure("auto", [7.0] * 5)["met"], False)
        found = self.figure("tpe", [4.0] * 5, constrained=True)
        self.assertIsNone(found["met"])
        self.assertIn("no baseline stored of c-TPE", found["goal"])

    def test_only_its_own_peers_count_for_a_sampler(self):
        gp = TABLES.Peer("gp, 8 seeds", "gp", {20: [20.0] * 8})
        self.assertIs(self.figure("tpe", [9.0] * 8, peers=[gp])["met"], True)
        self.assertIs(self.figure("auto", [9.0] * 8, peers=[gp])["met"], False)

    def test_published_runs_with_a_constraint_are_the_peer_where_there_are_any(self):
        toy = BASELINES["tables"]["toy"] | {"published_ctpe_paper": {"c-tpe": {"20": [6.0, 5.0, 4.0]}, "seeds": 15}}
        text = json.dumps({"tables": {"toy": toy}})
        (self.folder.parent / "baselines.json").write_text(text, encoding="utf-8")
        self.assertIs(self.figure("auto", [5.5] * 5, constrained=True)["met"], True)
        self.assertIs(self.figure("auto", [4.5] * 5, constrained=True)["met"], False)

    def test_the_constraint_is_the_one_that_peers_had(self):
        scored = TABLES.Scored(self.folder, True)
        self.assertEqual(scored.constraint, {"column": "size", "max": 6.0})
        space = json.loads((scored.unpacked(self.folder.parent / "toy") / "space.json").read_text(encoding="utf-8"))
        self.assertEqual(space["constraints"], [scored.constraint])
        (self.folder.parent / "baselines.json").unlink()
        self.assertEqual(TABLES.Scored(self.folder, True).constraint, {"column": "size", "max": 5.0})

    def test_a_limit_counts_beside_the_peers(self):
        key = ("toy", 20)
        self.addCleanup(TABLES.LIMITS.pop, key)
        TABLES.LIMITS[key] = -8.5
        self.assertIs(self.figure("tpe", [8.0] * 3)["met"], False)
        self.assertIs(self.figure("tpe", [9.0] * 3)["met"], True)

    def test_a_pruner_is_held_against_the_sampler_without_one(self):
        early, late = self.pruned_figure([9.0] * 10, [8.0] * 10)
        self.assertEqual((early["name"], early["value"]), ("table_toy_tpe_asha_50", None))
        self.assertIs(early["met"], True)
        self.assertEqual((late["name"], late["value"]), ("table_toy_tpe_asha_100", 9.0))
        self.assertEqual(late["trials"], {"completed": 3, "pruned": 8, "completed_without": 3})
        self.assertIn("not worse than 8 without", late["goal"])
        for values, met in (([9.0] * 10, True), ([8.0] * 10, True), ([7.0] * 10, False), ([None] * 10, False)):
            self.assertIs(self.pruned_figure(values, [8.0] * 10)[1]["met"], met, values)

    def test_only_tables_with_a_curve_are_replayed(self):
        options = argparse.Namespace(tables=self.folder, constrained=False, pruners=["asha"])
        with self.assertRaises(SystemExit) as ended:
            TABLES.chosen_tables(options)
        self.assertIn("expected tables with learning curves (a fidelity in space.json), got", ended.exception.code)
        space = json.dumps(SPACE | {"fidelity": {"column": "score1"}})
        (self.folder / "space.json").write_text(space, encoding="utf-8")
        self.assertEqual([table.folder for table in TABLES.chosen_tables(options)], [self.folder])

    def test_a_table_is_asked_as_it_is_written(self):
        class Trial:
            def __init__(self, *indices):
                self.indices = list(indices)

            def suggest_int(self, name, low, high):
                assert (name, low, high) == ("rate", 0, 1)
                return self.indices.pop(0)

            def suggest_categorical(self, name, choices):
                assert (name, choices) == ("kind", [0, 1])
                return self.indices.pop(0)

        table = table_folders.Table(self.folder)
        self.assertTrue(table.maximized)
        noise = random.Random(0)
        self.assertEqual(table.evaluate(Trial(0), noise), 3.0)
        self.assertEqual({table.evaluate(Trial(1, 1), noise) for _ in range(20)}, {4.0, 5.0})
        with self.assertRaises(LookupError):
            table.evaluate(Trial(1, 0), noise)


class Quality(unittest.TestCase):
    STORED = {"evaluations": [50, 100, 200], "runs": {
        "branin/optuna_5.0.0_tpe": {"0": [0.3, 0.2, 0.1]}, "branin/optuna_5.0.0_gp": {"0": [0.03, 0.02, 0.01]},
        "ackley10/optuna_5.0.0_tpe": {"0": [3.0, 2.0, 1.0]}}}

    def met(self, *figure):
        return QUALITY.figure_of(self.STORED, *figure)["met"]

    def test_tpe_is_held_against_tpe_and_others_against_the_better(self):
        self.assertIs(self.met("branin", "tpe", 200, 0.05), True)
        self.assertIs(self.met("branin", "tpe", 200, 0.11), False)
        self.assertIs(self.met("branin", "auto", 200, 0.05), False)
        self.assertIs(self.met("branin", "auto", 100, 0.02), True)

    def test_without_a_peer_nothing_is_met(self):
        self.assertIsNone(self.met("ackley10", "auto", 200, 0.5))
        self.assertIs(self.met("ackley10", "auto", 200, 1.5), False)
        self.assertIsNone(self.met("hartmann6", "tpe", 200, 0.0))

    def test_the_conditional_function_has_a_goal_of_its_own(self):
        self.assertIs(self.met("conditional", "auto", 200, 0.06), True)
        self.assertIs(self.met("conditional", "auto", 200, 0.061), False)
        self.assertIsNone(self.met("conditional", "auto", 100, 0.01))


class Status(unittest.TestCase):
    def test_what_nothing_can_tell_is_no_success(self):
        for met, status in ((True, 0), (False, 3), (None, 3)):
            with self.assertRaises(SystemExit) as ended:
                figures.report("toy", [figures.figure("one", 1.0, "", "<= 2", True),
                                       figures.figure("two", 1.0, "", "any", met)])
            self.assertEqual(ended.exception.code, status)


if __name__ == "__main__":
    unittest.main()
