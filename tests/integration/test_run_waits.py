"""hpo run never waits for what does not come, and says what it waits for otherwise."""

import json
import shutil
import sys
import time
import unittest

from harness import BIN, FAKE_TRAINER, Deployment, wait_until

BLOCKED = 8
CONFIG = {"model_type": "bert", "vocab_size": 6, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
          "intermediate_size": 16, "max_position_embeddings": 32, "type_vocab_size": 2}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "4d" * 32 + "\nsize 440449768\n"
ROWS = "".join(json.dumps({"text": "good film", "label": label}) + "\n" for label in ("pos", "neg") * 4)


class RunWaits(Deployment):
    def run_hpo(self, name, *words, binaries=BIN, file="toy.yaml", memory="1GiB"):
        return self.start(name, binaries / "hpo", "run", file, "--dir", self.folder / f"run-{name}", "--device", "cpu",
                          "--memory-limit", memory, *words)

    def lines(self, process, seconds=60):
        """The process' lines with the time of each, until it ends."""
        seen, times = "", []
        start = time.monotonic()
        while process.alive() and time.monotonic() < start + seconds:
            wait_until(lambda: not process.alive() or process.output() != seen, "a line", 20)
            if process.output() != seen:
                times.append(time.monotonic() - start)
                seen = process.output()
        return times

    # -- models that cannot be used ---------------------------------------------------------------

    def binaries(self):
        """The programs, with a trainer that speaks the protocol where ours would be."""
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ("hpo", "hpo-server", "hpo-worker", "hpo-command-trainer"):
            if (BIN / name).exists():
                shutil.copy(BIN / name, folder / name)
        shutil.copy(FAKE_TRAINER, folder / "hpo-trainer")
        return folder

    def model(self, name, config=CONFIG, weights="weights"):
        folder = self.folder / "models" / name
        folder.mkdir(parents=True)
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\n")
        if config is not None:
            (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        if weights:
            (folder / "model.safetensors").write_text(weights)
        return folder

    def study(self, model):
        (self.folder / "head.yaml").write_text(f"""\
name: head
objective: {{metric: macro_f1, direction: maximize}}
trainer: {{train: train.jsonl, validation: valid.jsonl, epochs: 1}}
budget: {{trials: 1}}
parameters:
  model.name: {{choices: [{model}]}}
  tok.max_length: {{choices: [16]}}
  train.batch_size: {{choices: [8]}}
  train.lr: {{float: [1.0e-3, 2.0e-3]}}
""")
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        for name in ("train.jsonl", "valid.jsonl"):
            (data / name).write_text(ROWS)

    def test_a_model_that_cannot_be_used_ends_the_run_with_the_reason(self):
        binaries = self.binaries()
        self.model("good")
        self.model("nomodeltype", {key: value for key, value in CONFIG.items() if key != "model_type"})
        self.model("unknown", {**CONFIG, "model_type": "t5"})
        self.model("notjson", "{model_type: bert")
        self.model("lfs", weights=POINTER)
        self.model("noweights", weights="")
        (self.model("novocabulary") / "vocab.txt").unlink()
        (self.folder / "models" / "empty").mkdir()
        for name, said in (("nomodeltype", "model_type"), ("unknown", "'t5'"), ("notjson", "config.json"),
                           ("lfs", "model.safetensors is a pointer of Git LFS"), ("lfs", "git lfs pull"),
                           ("noweights", "it has no model.safetensors"), ("novocabulary", "vocab.txt"),
                           ("empty", "holds no config.json"), ("absent", "put config.json, model.safetensors")):
            with self.subTest(model=name, said=said):
                self.study(name)
                start = time.monotonic()
                run = self.run_hpo(f"{name}-{len(said)}", "--models", self.folder / "models", "--data",
                                   self.folder / "data", binaries=binaries, file="head.yaml")
                self.assertEqual(run.wait(), BLOCKED, run.output())
                self.assertLess(time.monotonic() - start, 30)
                self.assertIn(f"has no usable model of {name}", run.output())
                self.assertIn(said, run.output())
                self.assertIn("to go on, once that is changed: hpo run", run.output())
        self.study("good")
        good = self.run_hpo("good", "--models", self.folder / "models", "--data", self.folder / "data",
                            binaries=binaries, file="head.yaml")
        self.assertEqual(good.wait(), 0, good.output())

    def test_no_models_or_data_end_the_run_with_the_reason(self):
        binaries = self.binaries()
        self.study("good")
        run = self.run_hpo("none", "--data", self.folder / "data", binaries=binaries, file="head.yaml")
        self.assertEqual(run.wait(), BLOCKED, run.output())
        self.assertIn("put config.json", run.output())
        self.model("good")
        (self.folder / "data" / "valid.jsonl").write_text('{"text": 3}\n')
        for name, said in (("broken", "valid.jsonl"), ("missing", "No such file")):
            run = self.run_hpo(name, "--models", self.folder / "models", "--data", self.folder / "data",
                               binaries=binaries, file="head.yaml")
            self.assertEqual(run.wait(), BLOCKED, run.output())
            self.assertIn(said, run.output())
            (self.folder / "data" / "valid.jsonl").unlink(missing_ok=True)

    # -- errors of memory -------------------------------------------------------------------------

    def test_one_error_of_memory_does_not_end_a_search_of_real_numbers(self):
        study = self.STUDY.replace('policy: "off"', "policy: strict")
        (self.folder / "toy.yaml").write_text(study)
        code = ("import os,sys; n=len(os.listdir('met')); open('met/%d' % n, 'w');"
                "x=b'x'*((1<<29) if n in (2,3) else 1); "
                "print({'macro_f1': float(sys.argv[1])})")
        (self.folder / "met").mkdir()
        run = self.run_hpo("oom", "--trainer", f'cd {self.folder} && {sys.executable} -c "{code}" {{x}}',
                           memory="128MiB")
        self.assertEqual(run.wait(), 0, run.output())
        self.assertIn("6 of 6 trials", run.output())
        self.assertIn("trial 2 runs again", run.output())
        self.assertIn("trial 2 PRUNED (OUT_OF_MEMORY)", run.output())

    def test_a_limit_that_nothing_fits_ends_the_run(self):
        (self.folder / "toy.yaml").write_text(self.STUDY.replace('policy: "off"', "policy: strict").replace(
            "x: {float: [0.0, 1.0]}", "x: {int: [1, 3]}").replace("trials: 6", "trials: 60"))
        code = "x=b'x'*(1<<29); print({'macro_f1': 1})"
        run = self.run_hpo("oom", "--trainer", f'{sys.executable} -c "{code}" {{x}}', memory="128MiB")
        self.assertEqual(run.wait(), BLOCKED, run.output())
        self.assertIn("no configuration found that fits", run.output())
        self.assertIn("--memory-limit", run.output())

    # -- lines --------------------------------------------------------------------------------------

    def test_a_long_trial_is_told_of(self):
        run = self.run_hpo("long", "--trials", "1", "--trainer", "sleep 26; echo \"{'macro_f1': {x}}\"")
        times = self.lines(run)
        self.assertEqual(run.wait(), 0, run.output())
        self.assertLess(max(after - before for before, after in zip([0.0, *times], times)), 20, times)
        self.assertIn("running: trial 0 for", run.output())

    def test_a_trainer_that_does_not_start_is_told_of(self):
        mute = self.start("mute", BIN / "hpo", "run", "toy.yaml", "--dir", self.folder / "run-mute", "--device", "cpu",
                          "--trainer", FAKE_TRAINER, environment={"HPO_FAKE_FAULT": "silent"})
        wait_until(lambda: "waits for hpo-worker" in mute.output(), "a line")
        self.assertIn("it has to speak the trainer protocol", mute.output())
        self.assertIn("{name} or {args}, it runs as an ordinary program", mute.output())
        start = time.monotonic()
        self.assertEqual(mute.terminate(), 130, mute.output())
        self.assertLess(time.monotonic() - start, 20, "it has nothing to give back")

    def test_a_folder_of_another_run_is_left_alone(self):
        first = self.run_hpo("same", "--trainer", "sleep 3; echo \"{'macro_f1': {x}}\"")
        address = self.folder / "run-same" / "address"
        wait_until(address.exists, "the first run's address")
        known = address.read_text()
        second = self.run_hpo("same", "--trainer", "true")
        self.assertEqual(second.wait(), 4, second.output())
        self.assertIn("is in use by pid", second.output())
        self.assertEqual(address.read_text(), known)
        first.terminate()

    def test_a_folder_that_cannot_be_written_is_named(self):
        (self.folder / "run-file").write_text("")
        run = self.run_hpo("file", "--trainer", "true")
        self.assertNotEqual(run.wait(), 0)
        self.assertIn("run-file", run.output())


if __name__ == "__main__":
    unittest.main()
