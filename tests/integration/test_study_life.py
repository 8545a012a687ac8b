"""What people do with a study apart from running it: they note things of it and of its trials, set a target
and retry what failed. Through real programs."""

import json
import signal
import sqlite3
import sys
import unittest

from harness import Deployment, wait_until

# Fails while the file `broken` is there; notes what it knows of its trial.
TRAINER = """\
import json, os, pathlib, sys
channel = os.fdopen(int(os.environ.get("HPO_TRAINER_FD", "3")), "r+b", buffering=0)
def tell(**message):
    channel.write((json.dumps(message) + "\\n").encode())
tell(type="hello", version=1)
job = json.loads(channel.readline())
tell(type="attributes", attributes={"rows": 12, "data": {"split": [1, 2]}})
tell(type="measurement", step=1, metrics={"macro_f1": job["params"]["x"]})
tell(type="attributes", attributes={"rows": 13})
if pathlib.Path("%s").exists():
    tell(type="outcome", outcome={"kind": "failed", "class": "BAD_DATA", "message": "broken"})
else:
    tell(type="outcome", outcome={"kind": "completed", "metrics": {"macro_f1": job["params"]["x"]}})
"""


class StudyLifeTest(Deployment):
    def setUp(self):
        super().setUp()
        self.broken = self.folder / "broken"
        (self.folder / "train.py").write_text(TRAINER % self.broken)
        self.trainer = f"{sys.executable} {self.folder / 'train.py'}"

    def test_what_is_noted_is_kept_shown_listed_and_exported(self):
        server = self.start_server()
        worker = self.start_worker(trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        self.hpo("study", "annotate", "toy", "--note", "the first one", "--tag", "paper")
        self.hpo("trial", "annotate", 2, "--tag", "good", "--tag", "odd", "--set", "seen=yes",
                 "--set", "rows=14")
        self.assertIn("good", self.hpo("trial", "annotate", 2, "--untag", "odd"))
        self.assertIn("expected --note", self.hpo("trial", "annotate", 2, status=2))
        self.assertIn("does not begin with hpo.",
                      self.hpo("trial", "annotate", 2, "--set", "hpo.tags=1", status=2))
        self.assertEqual(server.terminate(), 0)
        self.start_server()
        self.assertEqual(self.study()["note"], "the first one")
        self.assertEqual(self.study()["tags"], ["paper"])
        self.assertIn("the first one", self.hpo("study", "show"))
        trial = self.trial(2)
        self.assertEqual(trial["tags"], ["good"])
        self.assertEqual(trial["attributes"],
                         {"data": {"split": [1, 2]}, "rows": 14, "seen": "yes"})
        self.assertEqual(self.trial(1)["attributes"]["rows"], 13)
        self.assertIn('{"split":[1,2]}', self.hpo("trial", "show", 2))
        self.assertEqual([t["number"] for t in self.trials("--tag", "good")], [2])
        self.assertEqual(self.trials("--tag", "good", "--tag", "odd"), [])
        self.assertEqual([s["name"] for s in self.json("study", "list", "--tag", "paper")], ["toy"])
        self.assertEqual(self.json("study", "list", "--tag", "other"), [])
        self.hpo("export", "optuna", self.folder / "optuna.db")
        with sqlite3.connect(self.folder / "optuna.db") as exported:
            noted = dict(exported.execute(
                'SELECT "key", value_json FROM trial_user_attributes JOIN trials USING (trial_id) '
                "WHERE number = 2"))
            of_study = dict(exported.execute('SELECT "key", value_json FROM study_user_attributes'))
        self.assertEqual(json.loads(noted["data"]), {"split": [1, 2]})
        self.assertEqual(json.loads(noted["hpo.tags"]), ["good"])
        self.assertEqual(json.loads(of_study["hpo.note"]), "the first one")

    def test_attributes_wait_for_a_server_that_is_away_as_results_do(self):
        server = self.start_server()
        self.hpo("enqueue", "x=0.5")
        worker = self.start_worker(trainer=self.trainer)
        wait_until(lambda: self.study()["counts"]["completed"] >= 1, "a result")
        server.kill9()
        wait_until(lambda: "cannot reach" in worker.output() or "away" in worker.output()
                   or "Unavailable" in worker.output() or "UNAVAILABLE" in worker.output(),
                   "that the worker misses the server")
        self.start_server()
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual([t["attributes"]["rows"] for t in self.trials()], [13] * 6)

    def test_a_target_ends_the_study(self):
        self.start_server("--target", "0.4")
        for x in (0.1, 0.5, 0.9):
            self.hpo("enqueue", f"x={x}")
        worker = self.start_worker(trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        reached = "trial #1 reached the target: macro_f1 0.5, at least 0.4"
        self.assertIn(reached, worker.output())
        study = self.study()
        self.assertEqual((study["state"], study["counts"]["completed"]), ("FINISHED", 2))
        self.assertEqual(study["budget"]["target"], 0.4)
        for words in (("status",), ("study", "show")):
            self.assertIn(reached, self.hpo(*words))
        self.assertIn("target      macro_f1 at least 0.4", self.hpo("study", "show"))
        self.assertIn(reached, self.hpo("enqueue", "x=0.2", status=4))
        self.assertIn("target 0.8", self.hpo("study", "extend", "--target", "0.8"))
        worker = self.start_worker("w1", trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertIn("trial #2 reached the target: macro_f1 0.9", self.hpo("status"))
        self.hpo("study", "extend", "--target", "none")
        self.assertEqual(self.study()["budget"]["target"], None)
        self.assertEqual(self.study()["state"], "ACTIVE")

    def test_failed_trials_are_tried_again_once(self):
        self.start_server()
        self.broken.touch()
        self.hpo("enqueue", "x=0.25")
        self.hpo("enqueue", "x=0.5")
        worker = self.start_worker(trainer=self.trainer)
        wait_until(lambda: self.study()["counts"]["failed"] >= 2, "two failures")
        worker.send(signal.SIGTERM)
        worker.wait()
        failed = [t["number"] for t in self.trials("--state", "failed")]
        self.broken.unlink()
        self.assertIn("no trial #99", self.hpo("trial", "retry", 99, status=3))
        if self.study()["failure"] is not None:
            self.hpo("study", "resume")
        again = self.json("trial", "retry", 1)
        self.assertEqual([t["retry_of"] for t in again["trials"]], [1])
        self.assertEqual(again["trials"][0]["params"], self.trial(1)["params"])
        rest = self.json("trial", "retry", "--failed")
        self.assertEqual([t["retry_of"] for t in rest["trials"]], [n for n in failed if n != 1])
        self.assertEqual([s["number"] for s in rest["skipped"]], [1])
        self.assertIn("skipped", self.hpo("trial", "retry", 1))
        worker = self.start_worker("w1", trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(self.trial(1)["state"], "FAILED")
        number = again["trials"][0]["number"]
        self.assertEqual(self.trial(number)["state"], "COMPLETED")
        self.assertIn("trial #1", self.hpo("trial", "show", number))
        self.assertIn("completed", self.hpo("trial", "retry", 1))

    def test_ranges_are_edited_while_a_worker_runs(self):
        self.start_server()
        self.hpo("enqueue", "x=0.9", "y=0.5")
        self.hpo("enqueue", "x=0.1", "y=0.5")
        worker = self.start_worker(trainer=self.trainer)
        wait_until(lambda: self.study()["counts"]["completed"] >= 2, "results")
        worker.send(signal.SIGTERM)
        worker.wait()
        self.hpo("enqueue", "x=0.95", "y=0.5")
        waiting = self.trials("--state", "queued")[-1]["number"]
        before = self.study()
        dry = self.hpo("study", "edit", "toy", "--set", "x=0..0.5", "--dry-run")
        self.assertIn("[0, 1]", dry)
        self.assertIn("[0, 0.5]", dry)
        self.assertEqual(self.study()["parameters"], before["parameters"])
        edited = self.json("study", "edit", "toy", "--set", "x=0..0.5")
        self.assertEqual((edited["before"]["x"]["high"], edited["after"]["x"]["high"]), (1, 0.5))
        self.assertIn(waiting, edited["cancelled"])
        self.assertEqual(self.trial(waiting)["state"], "CANCELLED")
        self.assertEqual(self.trial(0)["state"], "COMPLETED")
        self.assertEqual(self.study()["best_trial"], before["best_trial"])
        for words, why in ((("--set", "x=0.5"), "expected LOW..HIGH"),
                           (("--set", "z=0..1"), "no parameter 'z'"),
                           (("--set", "x=1..0"), "x"), ((), "expected a changed file or --set")):
            self.assertIn(why, self.hpo("study", "edit", "toy", *words, status=2))
        changed = self.folder / "changed.yaml"
        changed.write_text(self.STUDY.replace("x: {float: [0.0, 1.0]}", "x: {float: [0.2, 0.4]}"))
        self.hpo("study", "edit", "toy", changed)
        changed.write_text(changed.read_text().replace("direction: maximize", "direction: minimize"))
        self.assertIn("direction", self.hpo("study", "edit", "toy", changed, status=4))
        self.hpo("study", "extend", "--add", "3")
        done = self.study()["counts"]["completed"]
        worker = self.start_worker("w1", trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        new = [t for t in self.trials() if t["number"] > waiting and t["state"] == "COMPLETED"]
        self.assertGreaterEqual(len(new), 3)
        self.assertTrue(all(0.2 <= t["params"]["x"] <= 0.4 for t in new), new)
        self.assertGreater(self.study()["counts"]["completed"], done)

    def test_a_deleted_study_comes_back_as_it_was(self):
        server = self.start_server()
        worker = self.start_worker(trainer=self.trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        self.hpo("study", "annotate", "toy", "--tag", "paper")
        shown = [self.trial(number) for number in range(6)]
        study = self.study()
        archive = self.folder / "toy.archive"
        nowhere = self.folder / "nowhere" / "toy.archive"
        self.assertIn("nothing is deleted",
                      self.hpo("study", "delete", "toy", "--archive", nowhere, status=3))
        self.assertEqual(self.study()["counts"], study["counts"])
        self.assertIn("6 trials deleted", self.hpo("study", "delete", "toy", "--archive", archive))
        self.assertEqual(self.json("study", "list"), [])
        self.assertEqual(server.terminate(), 0)
        (self.folder / "other.yaml").write_text(self.STUDY.replace("name: toy", "name: other"))
        self.start_server(study="other.yaml")
        self.assertIn("not whole", self.restore_part_of(archive))
        self.hpo("study", "restore", archive)
        self.assertEqual([self.trial(number) for number in range(6)], shown)
        again = self.study()
        for key in ("counts", "best_trial", "tags", "created", "parameters", "state", "budget"):
            self.assertEqual(again[key], study[key])
        self.assertIn("choose another with --name", self.hpo("study", "restore", archive, status=4))
        self.hpo("study", "restore", archive, "--name", "again")
        self.assertEqual(self.json("study", "show", "again")["counts"], study["counts"])
        self.assertIn("deleted", self.hpo("study", "delete", "again", "--no-archive"))
        self.assertEqual({s["name"] for s in self.json("study", "list")}, {"toy", "other"})

    def restore_part_of(self, archive):
        part = self.folder / "part.archive"
        lines = archive.read_text().splitlines(keepends=True)
        part.write_text("".join(lines[:-1]))
        return self.hpo("study", "restore", part, status=2)


if __name__ == "__main__":
    unittest.main()
