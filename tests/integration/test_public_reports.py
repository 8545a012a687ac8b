"""Public bug reports of other tools, rebuilt on this one: each was silently wrong or lost here once. Models that cannot
be used are in test_run_waits.py, files of Optuna's in tests/python/test_optuna.py."""

import importlib.util
import json
import re
import sys
import unittest

from harness import BIN, SOURCE, Deployment

if HAS_PACKAGE := all(map(importlib.util.find_spec, ("hpo", "grpc"))):
    import hpo
NUMPY = importlib.util.find_spec("numpy")

EPOCHS = 6
STUDY = """\
name: toy
objective: {metric: %s, direction: minimize}
trainer: {task: custom}
budget: {trials: %d, failures_in_a_row: 0}
sampler: {type: %s}
pruner: {type: %s}
parameters:
"""
EARLIER = "{'eval_loss': 0.9}"
# Dicts as programs print them; eval_loss is 0.3 in every one.
PRINTED = {
    "numpy 2": "{'eval_loss': np.float64(0.3), 'eval_accuracy': np.float32(0.85)}",
    "a flag": "{'eval_loss': 0.3, 'ok': True}",
    "an array": "{'eval_loss': 0.3, 'per_class': array([0.1, 0.2])}",
    "json.dumps(indent=2)": '{\n  "eval_loss": 0.3,\n  "eval_accuracy": 0.85\n}',
    "a tensor": "{'eval_loss': tensor(0.3000), 'eval_accuracy': tensor(0.8500)}",
    "a tensor with a gradient": "{'eval_loss': tensor(0.3000, grad_fn=<NllLossBackward0>), 'epoch': 1}",
    "a tensor of a card": "{'eval_loss': tensor(0.3, device='cuda:0'), 'lr': 1e-05}",
    "None": "{'best_checkpoint': None, 'eval_loss': 0.3}",
    "text with a brace": "{'note': 'a } in a text', 'eval_loss': 0.3}",
    "a dict in it": "{'eval_loss': 0.3, 'config': {'lr': 1e-05, 'layers': [1, 2]}}",
    "a logger": "INFO:trainer:metrics {'eval_loss': 0.3, 'epoch': 1.0}",
    "a logger with a time": "2026-11-27 12:00:00,123 - INFO - {'eval_loss': 0.3, 'time': datetime.timedelta(seconds=3)}",
    "a dict that is not finite elsewhere": "{'eval_loss': 0.3, 'perplexity': inf, 'bleu': nan}",
    "a nested indent": '{\n  "eval_loss": 0.3,\n  "confusion": [\n    [1, 2],\n    [3, 4]\n  ],\n  "name": "run"\n}',
    "a dict of pprint": "{'a_long_name_of_a_metric': 0.85,\n 'eval_loss': 0.3,\n 'zero': 0}",
    "an object": "{'eval_loss': 0.3, 'model': <class 'object'>, 'run': Path('/tmp')}",
    "a long indent": json.dumps({"eval_loss": 0.3, "predictions": [0.5] * 1200}, indent=2),
    "a long line": "{'predictions': [%s0.5], 'eval_loss': 0.3}" % ("0.123456, " * 120_000),
    "a time before each line": '12:00:09,123 INFO {\n12:00:10,4 INFO   "eval_loss": 0.3,\n12:00:10,41 INFO   "b": 1\n12:00:11 INFO }',
    "a frame": "{'eval_loss': 0.3, 'table':    a\n0  1\n1  2}",
    "a series before it": "{'table': 0    1\n1    2\ndtype: int64, 'eval_loss': 0.3}",
    "a terminal's character set": "{'eval_loss': \x1b[1m0.3\x1b(B\x1b[m}",
    "texts of objects": "{'a': :), 'b': 3 items, 4 b, 'c': p<x, 'd': don't, 'e': , 'eval_loss': 0.3}",
    "a brace of an object": "{'eval_loss': 0.3, 'model': don't {, 'z': 1}",
    "a parameter": "{'eval_loss': Parameter containing:\ntensor(0.3, requires_grad=True)}",
    "a text of two lines": "{'eval_loss': 0.3, 'text': 'several\nlines'}",
    "thousands of metrics": str({**{f"m{i}": i for i in range(1200)}, "n" * 201: 1, "eval_loss": 0.3}),
}
# The last dicts of programs, and what is said of them.
UNREAD = {
    "{'eval_loss': None}": "got None, in the line",
    "{'eval_loss': 'see above'}": "got 'see above'",
    "{'eval_loss': 1,234.5}": "got 1, 234.5",
    "{'model': don't {, 'eval_loss': 0.3}": "is not understood, in the line '{'model': don't {",
    "{'eval_loss': 0    0.3\ndtype: float64}": "is not understood",
}


class Programs(Deployment):
    """That know nothing of hpo, under hpo-worker."""

    def run_study(self, program, arguments, *options, study, parameters):
        """The trials of a study whose program prints."""
        (self.folder / "train.py").write_text(program)
        (self.folder / "toy.yaml").write_text(STUDY % study + "".join(f"  {line}\n" for line in parameters))
        self.start_server()
        worker = self.start_worker("w0", *options, trainer=f"{sys.executable} train.py {arguments}")
        worker.wait()
        return self.trials()

    def losses_by(self, pattern):
        """Of trials that print 10^x as Python does, and the losses as they are."""
        trials = self.run_study("import sys\nprint('loss: %s' % (10 ** float(sys.argv[1])))\n", "{x}",
                                "--metric-pattern", pattern, study=("loss", 12, "random, seed: 1", "none"),
                                parameters=["x: {float: [-6, 0]}"])
        self.assertEqual(len(trials), 12)
        return [(trial, 10 ** trial["params"]["x"]) for trial in trials]

    def test_a_pattern_never_takes_a_part_of_a_number(self):
        """The manual's pattern took 1.862 out of 1.862e-05, and the wrong trial was named best."""
        for trial, loss in self.losses_by("loss: ([0-9.]+)"):
            if trial["state"] == "COMPLETED":
                self.assertAlmostEqual(trial["outcome"]["metrics"]["loss"] / loss, 1, places=9)
            else:
                self.assertEqual(trial["state"], "FAILED")
                self.assertIn(str(loss), trial["outcome"]["message"])
                self.assertLess(loss, 1e-4, "only a number with an exponent is more than the pattern takes")

    def test_a_pattern_that_takes_words_takes_the_whole_number(self):
        for trial, loss in self.losses_by("loss: (\\S+)"):
            self.assertEqual(trial["state"], "COMPLETED")
            self.assertAlmostEqual(trial["outcome"]["metrics"]["loss"] / loss, 1, places=9)

    def test_patterns_of_the_documents_take_whole_numbers(self):
        pages = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
        shown = [(page.name, pattern) for page in pages
                 for pattern in re.findall(r"""--metric-pattern ["']([^"']+)["']""", page.read_text())]
        self.assertTrue(shown)
        for page, pattern in shown:
            for number in ("1.862e-05", "-0.25", "1.5E+3"):
                with self.subTest(page=page, pattern=pattern, number=number):
                    found = re.search(pattern, pattern.partition("(")[0] + number + ", next: 1")
                    self.assertIsNotNone(found)
                    self.assertEqual(found[1].rstrip(","), number)

    def test_numbers_are_taken_out_of_every_printed_dict(self):
        (self.folder / "printed.json").write_text(json.dumps(list(PRINTED.values())))
        program = f"import json, sys\nprint({EARLIER!r})\nprint(json.load(open('printed.json'))[int(sys.argv[1])])\n"
        trials = self.run_study(program, "{which}", study=("eval_loss", len(PRINTED), "grid", "none"),
                                parameters=[f"which: {{int: [0, {len(PRINTED) - 1}]}}"])
        self.assertEqual(len(trials), len(PRINTED))
        for trial in trials:
            name = list(PRINTED)[trial["params"]["which"]]
            with self.subTest(name):
                self.assertEqual(trial["state"], "COMPLETED", trial["outcome"].get("message"))
                self.assertEqual(trial["outcome"]["metrics"]["eval_loss"], 0.3)

    def test_a_space_that_is_used_up_ends_hpo_run(self):
        (self.folder / "toy.yaml").write_text(STUDY % ("loss", 30, "random, seed: 1", "none") + "  x: {int: [1, 5]}\n")
        run = self.start("run", BIN / "hpo", "run", "toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                         "--trainer", 'echo "{\'loss\': {x}}"')
        self.assertEqual(run.wait(), 0, run.output())
        self.assertIn("every configuration of the space has been tried", run.output())
        self.assertIn("5 of 30 trials", run.output())

    def test_an_earlier_value_is_no_result_where_the_last_is_not_read(self):
        program = f"import sys\nprint({EARLIER!r})\nprint({list(UNREAD)!r}[int(sys.argv[1])])\n"
        trials = self.run_study(program, "{which}", study=("eval_loss", len(UNREAD), "grid", "none"),
                                parameters=[f"which: {{int: [0, {len(UNREAD) - 1}]}}"])
        self.assertEqual(len(trials), len(UNREAD))
        for trial in trials:
            printed, said = list(UNREAD.items())[trial["params"]["which"]]
            with self.subTest(printed):
                self.assertEqual(trial["state"], "FAILED")
                self.assertIn(said, trial["outcome"]["message"])
                self.assertIn("the value before it, 0.9, is not taken", trial["outcome"]["message"])

    def test_a_program_is_pruned_by_its_epochs(self):
        program = """\
import json, sys, time
batch, x = int(sys.argv[1]), float(sys.argv[2])
for epoch in range(1, 7):
    print(json.dumps({"step": epoch * (320 // batch), "epoch": epoch, "loss": 1 / epoch + 0.2 * abs(x - 0.5)}), flush=True)
    time.sleep(0.1)
"""
        trials = self.run_study(program, "{batch} {x}", study=("loss", 24, "random, seed: 1", "asha"),
                                parameters=["batch: {choices: [8, 64]}", "x: {float: [0, 1]}"])
        check_pruned(self, [(trial["params"], trial["state"].lower()) for trial in trials])


def check_pruned(test, trials):
    """All learn the same curve by epoch, so that both batches are pruned alike, and the best x completes."""
    def share(batch):
        states = [state for params, state in trials if params["batch"] == batch]
        return states.count("pruned") / len(states)

    said = f"of batch 8 {share(8):.0%} are pruned, of 64 {share(64):.0%}"
    test.assertLess(abs(share(8) - share(64)), 0.4, said)
    test.assertGreater(share(8) + share(64), 0, "nothing is pruned")
    best = min(trials, key=lambda trial: abs(trial[0]["x"] - 0.5))
    test.assertEqual(best[1], "completed", best)


def one_bad(kind):
    """A function whose trial 3 does something that is refused."""
    def train(trial):
        if trial.number == 3 and kind == "step":
            trial.report(-1, 1.0)  # "before training"
        if trial.number == 3 and kind == "metrics":
            return {"value": 1.0, **{f"f1_{i}": 0.5 for i in range(1001)}}
        if trial.number == 3 and kind == "message":
            raise ValueError("x" * 300000)  # a compiler's dump
        return trial["x"]
    return train


@unittest.skipUnless(HAS_PACKAGE, "needs the package and grpc")
class Functions(Deployment):
    """Under the Python package."""

    def setUp(self):
        super().setUp()
        self.space = {"x": hpo.uniform(0, 1)}

    def search(self, function, **options):
        return hpo.minimize(function, self.space, storage=self.folder / "storage", verbose=False, **options)

    def kept(self):
        with hpo.Study("study", storage=self.folder / "storage") as study:
            return study.trials

    def check_one_bad(self, kind, said):
        best = self.search(one_bad(kind), trials=10)
        trials = self.kept()
        self.assertEqual([trial.number for trial in trials if trial.state == "failed"], [3])
        self.assertEqual([trial.state for trial in trials].count("completed"), 9)
        self.assertRegex(trials[3].why, said)
        self.assertEqual(self.search(one_bad(kind), trials=10).number, best.number, "it goes on")

    def test_a_refused_step_fails_that_trial_alone(self):
        self.check_one_bad("step", r"trial\.report: .*step")

    def test_too_many_metrics_fail_that_trial_alone(self):
        self.check_one_bad("metrics", "metrics")

    def test_a_long_message_is_shortened(self):
        self.check_one_bad("message", "ValueError: x+")

    def check_exit(self, how, said):
        """The function is run once, and its failure says how it ended."""
        runs = self.folder / "runs"

        def train(_):
            with open(runs, "a", encoding="ascii") as file:
                file.write("run\n")
            how()

        with self.assertRaisesRegex(hpo.StudyFailed, said):
            self.search(train, trials=1, budget={"failures_in_a_row": 1})
        self.assertEqual(runs.read_text(), "run\n")
        self.assertRegex(self.kept()[0].why, said)

    def test_the_text_of_sys_exit_is_kept(self):
        self.check_exit(lambda: sys.exit("no CUDA device found, check the driver"), "no CUDA device found, check the driver")

    def test_what_argparse_says_is_kept(self):
        def how():
            import argparse
            parser = argparse.ArgumentParser(prog="train.py")
            parser.add_argument("--lr", type=float)
            parser.parse_args(["--lr", "1e-3x"])

        self.check_exit(how, r"(?s)(sys\.exit\(2\)|status 2).*argument --lr: invalid float value: '1e-3x'")

    def test_an_exit_with_status_0_is_no_result(self):
        self.check_exit(lambda: sys.exit(0), "status 0|sys.exit\\(0\\)")

    def test_a_signal_is_kept(self):
        def how():
            import os
            import signal
            os.kill(os.getpid(), signal.SIGTERM)

        self.check_exit(how, "SIGTERM")

    def test_a_step_is_a_whole_number_and_comes_first(self):
        with hpo.Study("study", self.space, trials=1, storage=self.folder / "storage") as study:
            trial = study.ask()
            for step, value in ((0.25, 1.0), (0.7, 2), (float("nan"), 1.0), ("1", 1.0)):
                with self.subTest(step=step, value=value), self.assertRaisesRegex(hpo.InvalidInput, "step"):
                    trial.report(step, value)
            trial.report(1, 0.5)
            trial.report(2.0, 0.4)  # a whole number
            self.assertEqual(study.tell(trial, 0.4), "completed")

    def test_no_configuration_is_tried_twice_and_a_space_that_is_used_up_ends_the_study(self):
        space = {"n_estimators": hpo.int(20, 21), "max_depth": hpo.int(2, 3)}
        for sampler in ("auto", "random", "tpe", "gp", "qmc", "cma-es", "grid"):
            with self.subTest(sampler), hpo.Study(sampler, space, trials=10, sampler=sampler,
                                                  storage=self.folder / "storage") as study:
                asked = [study.ask(timeout=10) for _ in range(3)]  # three run at once
                study.tell(asked[1], 1.0)
                asked.append(study.ask(timeout=10))
                self.assertEqual(len({(trial["n_estimators"], trial["max_depth"]) for trial in asked}), 4)
                for trial in (asked[0], asked[2], asked[3]):
                    study.tell(trial, 2.0)
                with self.assertWarnsRegex(hpo.EndedEarly, "every configuration of the space has been tried"):
                    self.assertIsNone(study.ask(timeout=10))
                self.assertTrue(study.finished)
                self.assertIn("; study.edit({...}) gives it more values", study.waiting_for)
                self.assertIn(f"hpo study edit {sampler} FILE --server", study.waiting_for)
                study.edit({"n_estimators": hpo.int(20, 22), "max_depth": hpo.int(2, 3)})
                self.assertIsNotNone(study.ask(timeout=10))

    def test_a_search_of_a_space_that_is_used_up_says_so(self):
        self.space = {"n": hpo.int(1, 3), "kind": ["a", "b"]}
        with self.assertWarnsRegex(hpo.EndedEarly, "every configuration of the space has been tried"):
            best = self.search(lambda trial: trial["n"], trials=20, parallel=2)
        self.assertEqual(best.value, 1)
        tried = [tuple(sorted(trial.params.items())) for trial in self.kept()]
        self.assertEqual((len(tried), len(set(tried))), (6, 6))

    def test_what_a_search_of_a_used_up_space_advises_works(self):
        space = {"n": hpo.int(1, 3)}
        storage = self.folder / "storage"
        for sampler in ("auto", "grid"):
            with self.subTest(sampler):
                with self.assertWarns(hpo.EndedEarly) as warned:
                    hpo.minimize(lambda trial: trial["n"], space, trials=20, sampler=sampler, verbose=False)
                self.assertTrue(str(warned.warning).endswith("every configuration of the space has been tried"),
                                "nothing can be done for a study that is gone")
                with self.assertWarns(hpo.EndedEarly) as warned:
                    hpo.minimize(lambda trial: trial["n"], space, trials=20, sampler=sampler, name=sampler, storage=storage, verbose=False)
                advised = f"hpo.load({sampler!r}, storage={str(storage)!r})"
                self.assertIn(f"; {advised}.edit({{...}}) gives it more values", str(warned.warning))
                with eval(advised) as study:  # as it is printed
                    study.edit({"n": hpo.int(1, 5)})
                with self.assertWarns(hpo.EndedEarly):
                    hpo.minimize(lambda trial: trial["n"], {"n": hpo.int(1, 5)}, trials=20, sampler=sampler, name=sampler, storage=storage,
                                 verbose=False)
                with hpo.load(sampler, storage=storage) as study:
                    self.assertEqual(sorted(trial.params["n"] for trial in study.trials), [1, 2, 3, 4, 5])

    @unittest.skipUnless(NUMPY, "needs numpy")
    def test_spaces_of_numpy_and_ranges_are_of_whole_numbers(self):
        import numpy
        for name, domain, values in (("arange", list(numpy.arange(20, 60, 20)), (20, 40)),
                                     ("array", numpy.array([16, 32]), (16, 32)),
                                     ("range", range(16, 33, 16), (16, 32)),
                                     ("bounds", hpo.int(numpy.int64(1), numpy.int64(3)), (1, 2, 3)),
                                     ("reals", numpy.linspace(0.5, 1.5, 3), (0.5, 1.0, 1.5))):
            with self.subTest(name), hpo.Study(name, {"n": domain}, trials=4, storage=self.folder / "storage") as study:
                for _ in values:
                    trial = study.ask()
                    self.assertIn(trial["n"], values)
                    self.assertIs(type(trial["n"]), type(values[0]))
                    self.assertEqual(study.tell(trial, trial["n"]), "completed")

    def test_pruners_compare_by_epoch(self):
        """Two trials of one x learn the same curve by epoch, whatever the batch: they are pruned alike."""
        for pruner in ("asha", "predictive", "median"):
            with self.subTest(pruner), hpo.Study(
                    pruner, {"batch": [8, 64], **self.space}, trials=40, storage=self.folder / "storage",
                    pruner={"type": pruner}) as study:
                ended_after = {}
                for index in range(20):
                    for batch in (8, 64) if index % 2 else (64, 8):
                        study.enqueue({"batch": batch, "x": index * 7 % 20 / 20})
                        trial = study.ask(timeout=10)
                        ended_after[index, batch] = self.epochs_of(study, trial)
                alike = sum(ended_after[index, 8] == ended_after[index, 64] for index in range(20))
                self.assertGreaterEqual(alike, 17, ended_after)
                self.assertLess(min(ended_after.values()), EPOCHS, "nothing is pruned")
                check_pruned(self, [(one.params, one.state) for one in study.trials])

    def epochs_of(self, study, trial):
        """Trains; how many epochs the pruner let it."""
        for epoch in range(1, EPOCHS + 1):
            loss = 1 / epoch + 0.2 * abs(trial["x"] - 0.5)
            trial.report(epoch * (320 // trial["batch"]), loss, epoch=epoch)
            if trial.should_stop():
                study.tell(trial, None)
                return epoch
        study.tell(trial, loss)
        return EPOCHS


if __name__ == "__main__":
    unittest.main()
