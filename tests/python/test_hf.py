"""hpo.hf: a Trainer's run is the same in whatever parts its batches run, and obeys its trial."""

import inspect
import pathlib
import subprocess
import sys

import pytest

import hpo

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")
import hpo.hf  # noqa: E402
from test_torch import OOM, trial  # noqa: E402

TINY = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 32}


def bert(dropout=0.0):
    torch.manual_seed(1)
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        **TINY, num_labels=3, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0))


def tagger():
    torch.manual_seed(1)
    return transformers.BertForTokenClassification(transformers.BertConfig(
        **TINY, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def gpt2():
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0))


def rows(kind, count=24):
    """Lengths differ, so that a mean over tokens is not one over rows."""
    made = torch.Generator().manual_seed(2)
    for number in range(count):
        length = 4 + 3 * number % 11
        ids = torch.zeros(16, dtype=torch.long)
        ids[:length] = torch.randint(1, 50, (length,), generator=made)
        mask = (torch.arange(16) < length).long()
        labels = torch.tensor(int(ids.sum() % 3))
        if kind != "bert":
            labels = torch.where(mask.bool(), ids % (3 if kind == "tagger" else 50), -100)
        yield {"input_ids": ids, "attention_mask": mask, "labels": labels}


def trainer_of(kind, folder, given=None, **more):
    made = {"bert": bert, "tagger": tagger, "gpt2": gpt2}[kind]()
    args = {"output_dir": str(folder), "max_steps": 6, "learning_rate": 0.5, "optim": "sgd", "report_to": [],
            "disable_tqdm": True, "logging_steps": 1, "save_strategy": "no", "use_cpu": True,
            "per_device_train_batch_size": 12, "seed": 5, "lr_scheduler_type": "constant", **more}
    if given is not None:
        args = hpo.hf.arguments(given, **args)
    return transformers.Trainer(model=made, args=transformers.TrainingArguments(**args),
                                train_dataset=list(rows(kind)), eval_dataset=list(rows(kind, 5)))


class TooMuch:
    """The model's forward, out of memory above so many rows."""

    def __init__(self, trainer, most, backward=False):
        self.forward, self.most, self.sizes = trainer.model.forward, most, []
        trainer.model.forward = self
        # The signature is how a Trainer finds out which columns and arguments a model takes.
        self.__signature__ = inspect.signature(self.forward)
        if backward:
            next(iter(trainer.model.parameters())).register_hook(self.in_backward)
        self.backward = backward

    def in_backward(self, gradient):
        if self.sizes[-1] > self.most:
            raise RuntimeError(OOM)
        return gradient

    def __call__(self, input_ids=None, **more):
        if torch.is_grad_enabled():
            self.sizes.append(len(input_ids))
            if len(input_ids) > self.most and not self.backward:
                raise RuntimeError(OOM)
        return self.forward(input_ids=input_ids, **more)


def losses_of(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def same(one, other):
    for mine, theirs in zip(one.model.state_dict().values(), other.model.state_dict().values()):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["bert", "tagger", "gpt2"])
def test_an_oom_leaves_losses_and_weights_as_they_were(tmp_path, kind, backward):
    reference = trainer_of(kind, tmp_path / "reference")
    reference.train()
    told = trial()
    guarded = trainer_of(kind, tmp_path / "guarded")
    guarded.add_callback(hpo.hf.HpoCallback(guarded, told))
    counted = TooMuch(guarded, 5, backward)
    guarded.train()
    assert losses_of(guarded) == pytest.approx(losses_of(reference), rel=1e-3)
    same(guarded, reference)
    assert counted.sizes == [12, 6] + [3] * 24
    assert told.memory["num_replans"] == 2
    assert told.final_plan == {"effective_batch": 12, "micro_batch": 3}


def test_with_dropout_it_is_the_run_that_was_smaller_from_the_start(tmp_path):
    told = trial()
    trainers = []
    for name, given in (("oom", told),
                        ("small", trial(plan={"effective_batch": 12, "micro_batch": 3}))):
        trainer = trainer_of("bert", tmp_path / name)
        trainer.model.config.hidden_dropout_prob = 0.3
        for module in trainer.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.3
        trainer.add_callback(hpo.hf.HpoCallback(trainer, given))
        if given is told:
            TooMuch(trainer, 5)
        trainer.train()
        trainers.append(trainer)
    assert losses_of(trainers[0]) == losses_of(trainers[1])
    assert told.memory["num_ooms"] == 2


def test_accumulation_becomes_one_batch_in_parts(tmp_path):
    given = trial(params={"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3,
                          "train.lr": 0.02, "width": 7}, seed=2**40 + 3)
    made = hpo.hf.arguments(given, output_dir="out", learning_rate=1.0)
    assert made == {"per_device_train_batch_size": 12, "gradient_accumulation_steps": 1,
                    "learning_rate": 0.02, "seed": 3, "save_total_limit": 1, "output_dir": "out"}
    line = hpo.hf.command_line(given, ["--per_device_train_batch_size", "2", "--seed", "9"])
    read = dict(zip(line[4::2], line[5::2]))
    assert read == {"--per_device_train_batch_size": "12", "--gradient_accumulation_steps": "1",
                    "--learning_rate": "0.02", "--seed": "9", "--save_total_limit": "1",
                    "--width": "7"}


def test_without_a_trial_the_script_is_as_it_was(tmp_path):
    assert hpo.hf.arguments(output_dir="out", seed=3) == {"output_dir": "out", "seed": 3}
    assert hpo.hf.command_line(given=["--seed", "3"]) == ["--seed", "3"]
    plain, other = trainer_of("bert", tmp_path), trainer_of("bert", tmp_path)
    other.add_callback(hpo.hf.HpoCallback(other))
    plain.train()
    other.train()
    assert losses_of(plain) == losses_of(other)


def test_a_saved_model_outlives_the_trial(tmp_path):
    given = trial(checkpoint_dir=str(tmp_path / "checkpoints"), output_dir=str(tmp_path / "kept"))
    trainer = trainer_of("bert", tmp_path / "out", given)
    trainer.add_callback(hpo.hf.HpoCallback(trainer, given))
    assert trainer.args.output_dir == str(tmp_path / "checkpoints")
    trainer.train()
    trainer.save_model()
    assert (tmp_path / "kept" / "config.json").exists()
    assert not (tmp_path / "checkpoints" / "config.json").exists()


def test_a_dead_attempt_is_gone_on_with(tmp_path):
    reference = trainer_of("bert", tmp_path / "reference")
    reference.train()
    given = trial(checkpoint_dir=str(tmp_path / "kept"))

    class Dies(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            if state.global_step == 4:
                raise SystemError("as by a signal")

    first = trainer_of("bert", tmp_path, given, seed=5, save_strategy="steps", save_steps=3)
    first.add_callback(hpo.hf.HpoCallback(first, given))
    first.add_callback(Dies)
    with pytest.raises(SystemError):
        first.train()
    (tmp_path / "kept" / "checkpoint-5").mkdir()  # one that was not written to its end
    again = trial(checkpoint_dir=str(tmp_path / "kept"))
    second = trainer_of("bert", tmp_path, again, seed=5, save_strategy="no")
    second.add_callback(hpo.hf.HpoCallback(second, again))
    second.train()
    assert [name for name, _ in again.sink.stages] == ["Resumed", "Training Start"]
    assert losses_of(second)[3:] == pytest.approx(losses_of(reference)[3:], rel=1e-6)
    same(second, reference)


def test_evaluations_are_reported_and_the_trial_ends_where_it_is_to_end(tmp_path):
    given = trial()
    reports = []
    given.sink.measurement = lambda step, epoch, metrics: reports.append((step, metrics))
    given.sink.stop_reason = lambda: "pruned" if len(reports) == 2 else ""
    trainer = trainer_of("bert", tmp_path, given, eval_strategy="steps", eval_steps=2)
    trainer.add_callback(hpo.hf.HpoCallback(trainer, given))
    with pytest.raises(hpo.Stopped, match="pruned"):
        trainer.train()
    assert [step for step, _ in reports] == [2, 4] and trainer.state.global_step == 4
    assert reports[0][1]["loss"] == reports[0][1]["eval_loss"]


def test_a_worker_that_drains_has_the_trial_saved(tmp_path):
    given = trial(checkpoint_dir=str(tmp_path / "kept"))
    given.sink.stop_reason = lambda: "drain"
    trainer = trainer_of("bert", tmp_path, given)
    trainer.add_callback(hpo.hf.HpoCallback(trainer, given))
    with pytest.raises(hpo.Stopped):
        trainer.train()
    assert hpo.hf.last_checkpoint(tmp_path / "kept") == str(tmp_path / "kept" / "checkpoint-1")


KILLED = """
import os, pathlib, signal, sys
import hpo, hpo.hf, transformers
from test_hf import trainer_of

folder = pathlib.Path(sys.argv[1])

def train(given):
    import torch
    torch.set_num_threads(1)
    trainer = trainer_of("bert", folder, given, save_strategy="steps", save_steps=2)
    trainer.add_callback(hpo.hf.HpoCallback(trainer, given))
    marked = folder / f"killed-{given.number}"

    class Dies(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            steps.append(state.global_step)
            if state.global_step == 3 and not marked.exists():
                marked.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    steps = []
    trainer.add_callback(Dies)
    trainer.train()
    (folder / f"steps-{given.number}").write_text(f"{given.job['attempt']} {steps}")
    return trainer.evaluate()["eval_loss"]

best = hpo.minimize(train, {"learning_rate": hpo.log(1e-4, 1e-2)}, trials=2, plan=True,
                    memory="4GiB", storage=folder / "study", verbose=False)
assert best.value > 0
"""


def test_a_killed_process_goes_on_from_its_checkpoint(tmp_path):
    """minimize in real processes; the first attempt of each trial is killed after a checkpoint. In
    a fresh one: torch has used its threads here, and they do not survive a fork."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True,
                          text=True, timeout=200, cwd=pathlib.Path(__file__).parent, check=False)
    assert done.returncode == 0, done.stderr
    told = [pathlib.Path(tmp_path, f"steps-{number}").read_text() for number in range(2)]
    assert told == ["2 [3, 4, 5, 6]"] * 2
    assert not list((tmp_path / "study" / "checkpoints").glob("*/*"))
