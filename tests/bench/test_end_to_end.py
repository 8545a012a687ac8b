"""What bench/end_to_end takes from records: trials finished, OOMs met and the time lost to them."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "bench" / "end_to_end"
LOADER = importlib.machinery.SourceFileLoader("end_to_end", str(SOURCE))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("end_to_end", LOADER))
LOADER.exec_module(bench)


def attempt(started, ended):
    clock = "2026-11-21T14:00:{:06.3f}Z"
    return {"started": clock.format(started), "ended": clock.format(ended) if ended else None}


def trial(attempts, outcome=None):
    return {"attempts": attempts, "outcome": {"kind": outcome} if outcome else None}


class Peer(unittest.TestCase):
    EVENTS = [
        {"event": "ready", "time": 10.0},
        {"event": "attempt", "time": 11.0, "trial": 0, "batch_size": 64},
        {"event": "oom", "time": 13.5, "trial": 0},
        {"event": "attempt", "time": 14.0, "trial": 0, "batch_size": 57},
        {"event": "oom", "time": 15.0, "trial": 0},
        {"event": "attempt", "time": 16.0, "trial": 0, "batch_size": 51},
        {"event": "completed", "time": 30.0, "trial": 0, "value": 0.6},
        {"event": "attempt", "time": 31.0, "trial": 1, "batch_size": 8},
        {"event": "oom", "time": 32.0, "trial": 1},
        {"event": "pruned", "time": 32.5, "trial": 1, "value": None},
        {"event": "attempt", "time": 33.0, "trial": 2, "batch_size": 8},
        {"event": "completed", "time": 50.0, "trial": 2, "value": 0.7},
    ]

    def test_every_failed_attempt_is_lost_and_a_pruned_trial_is_not_finished(self):
        self.assertEqual(
            bench.read_theirs(self.EVENTS, until=60.0),
            bench.Side(finished=2, best=0.7, shrunk=2, ooms=3, lost_s=4.5),
        )

    def test_what_ends_after_the_budget_does_not_count(self):
        side = bench.read_theirs(self.EVENTS, until=49.9)
        self.assertEqual((side.finished, side.best), (1, 0.6))
        self.assertEqual(bench.read_theirs(self.EVENTS, until=12.0), bench.Side())


class Ours(unittest.TestCase):
    LOG = """\
2026-11-21T14:00:01.000Z info Trial 3 - Trial Start: Allocated: 0.00GB
2026-11-21T14:00:02.000Z info Trial 3 - Training Start: Allocated: 0.25GB (25.4%)
a line of a library
2026-11-21T14:00:04.500Z warning Trial 3 - OOM Error: Allocated: 0.98GB (98.0%)
2026-11-21T14:00:04.750Z warning Trial 3 - replan: step 1 is redone with micro-batch 8 in 2 parts
2026-11-21T14:00:05.000Z warning Trial 3 - OOM Error: Allocated: 0.98GB (98.0%)
2026-11-21T14:00:09.000Z info Trial 3 - Trial Success: Allocated: 0.00GB
2026-11-21T14:00:10.000Z info Trial 4 - Trial Start: Allocated: 0.00GB
"""

    def test_the_log_says_when_an_oom_was_met_and_its_copies_say_nothing_more(self):
        with tempfile.TemporaryDirectory() as folder:
            logs = [pathlib.Path(folder) / name for name in ("trainer.log", "copy.log")]
            for log in logs:
                log.write_text(self.LOG, encoding="utf-8")
            self.assertEqual(bench.redone_seconds(logs), {3: [2.5, 0.25]})

    def test_time_lost(self):
        good, bad, running = attempt(10, 19), attempt(1, 5), attempt(20, None)
        now = bench.seconds_of("2026-11-21T14:00:30.000Z")
        cases = [
            ("no OOM", trial([good], "completed"), [], 0.0),
            ("no OOM, a lost worker", trial([bad, good], "completed"), [], 0.0),
            ("recovered", trial([good], "completed"), [2.5, 0.25], 2.75),
            ("pruned, met or predicted", trial([good], "out_of_memory"), [], 9.0),
            ("pruned after recoveries", trial([good], "out_of_memory"), [2.5], 9.0),
            ("queued again, then good", trial([bad, good], "completed"), [1.0], 5.0),
            ("recovered, still running", trial([running]), [1.5], 1.5),
            ("queued again for a larger card", trial([bad, running], "out_of_memory"), [], 14.0),
        ]
        for name, shown, redone, lost in cases:
            with self.subTest(name):
                self.assertAlmostEqual(bench.lost_to_oom(shown, redone, now), lost)


class Comparison(unittest.TestCase):
    @staticmethod
    def figures(ours, theirs):
        return {f["name"]: f for f in bench.compare({"ours": ours, "theirs": theirs})}

    def test_medians_and_sums(self):
        figures = self.figures(
            [bench.Side(best=b, finished=2, lost_s=0.5) for b in (0.5, 0.7, 0.9)],
            [bench.Side(best=b, finished=1, lost_s=10.0) for b in (0.69, 0.68, 1.0)],
        )
        self.assertEqual(figures["end_to_end_metric"]["value"], 0.7)
        self.assertTrue(figures["end_to_end_metric"]["met"])
        self.assertEqual(figures["end_to_end_oom_time_ratio"]["value"], 0.05)
        self.assertEqual(figures["trials_ours"]["value"], 6)

    def test_worse_or_wasteful_is_not_met(self):
        figures = self.figures([bench.Side(best=0.6, lost_s=2)], [bench.Side(best=0.61, lost_s=10)])
        self.assertFalse(figures["end_to_end_metric"]["met"])
        self.assertFalse(figures["end_to_end_oom_time_ratio"]["met"])

    def test_no_verdict_where_there_was_nothing_to_beat(self):
        figures = self.figures([bench.Side(best=0.6)], [bench.Side()])
        self.assertFalse(figures["end_to_end_metric"]["met"])
        self.assertIsNone(figures["end_to_end_oom_time_ratio"]["value"])
        self.assertFalse(figures["end_to_end_oom_time_ratio"]["met"])


class Data(unittest.TestCase):
    def test_joined_rows_repeat_and_keep_their_label(self):
        rows = [
            {"text": f"{label} {pair} {i}", "pair": pair, "label": label}
            for pair in ("game", "font")
            for label in ("no", "yes")
            for i in range(50)
        ]
        joined = list(bench.join_rows(rows, 200, seed=1))
        self.assertEqual(joined, list(bench.join_rows(rows, 200, seed=1)))
        self.assertNotEqual(joined, list(bench.join_rows(rows, 200, seed=2)))
        for row in joined:
            texts = row["text"].split(". ")
            self.assertEqual(len(texts), len(set(texts)))
            for text in texts:
                self.assertTrue(text.startswith(f"{row['label']} {row['pair']} "))
        sizes = [row["text"].count(". ") + 1 for row in joined]
        self.assertEqual(min(sizes), 1)
        self.assertGreater(max(sizes), 10)
        self.assertLessEqual(max(sizes), bench.MAX_TEXTS)


if __name__ == "__main__":
    unittest.main()
