"""Trials with Hugging Face's Trainer. Three lines of a script change:

    import hpo.hf
    ...
    training_args = TrainingArguments(**hpo.hf.arguments(output_dir="out", eval_strategy="epoch"))
    ...
    trainer.add_callback(hpo.hf.HpoCallback(trainer))

and `hpo-worker --trainer "python script.py"` runs its trials. A script whose arguments come from
the command line has hpo.hf.command_line() parsed instead of sys.argv[1:]. Run by hand, without a
worker, it does what it did before. Inside hpo.minimize give the trial to each of these calls."""

import argparse
import dataclasses
import pathlib
import re
import sys
from typing import Any, Mapping, Sequence, cast

from .errors import HpoError, Stopped, imported
from .torch import guard_of, num_rows, rows_of, torch
from .trainer import current
from .trial import Trial

transformers: Any = imported("transformers", "hpo.hf")

_BATCH, _PARTS = "per_device_train_batch_size", "gradient_accumulation_steps"
_NAMES = {"train.lr": "learning_rate", "train.batch_size": _BATCH, "train.grad_accum": _PARTS,
          "train.weight_decay": "weight_decay", "train.warmup_ratio": "warmup_ratio"}
_GONE_ON_WITH_LATER = ("drain", "preempted")
_IGNORED = -100  # the label of what has none


def arguments(trial: "Trial | None" = None, **own: Any) -> "dict[str, Any]":
    """Arguments for TrainingArguments: `own`, replaced by the trial's parameters of the same name.
    train.lr, train.batch_size, ... stand for learning_rate, per_device_train_batch_size, ...;
    parameters that TrainingArguments does not have are left to the script.
    per_device_train_batch_size × gradient_accumulation_steps is the effective batch: the Trainer
    gets it whole, and HpoCallback runs it in parts that fit.

    A trial writes into its checkpoint folder, from which a later attempt continues. Unless `own`
    says otherwise it keeps only the newest checkpoint and has a seed of its own."""
    found = trial or current()
    if found is None:
        return own
    fields = {field.name for field in dataclasses.fields(transformers.TrainingArguments)
              if field.init}
    names = {name: _NAMES.get(name, name) for name in found.params}
    given = {field: found.params[name] for name, field in names.items() if field in fields}
    made = {"seed": found.seed % 2**32, "save_total_limit": 1, **own, **given}
    if _BATCH in made or _PARTS in made:
        made[_BATCH] = int(made.get(_BATCH, 8)) * int(made.get(_PARTS, 1))
        made[_PARTS] = 1
    folder = found.checkpoint_dir or found.job.get("output_dir")
    return {**made, "output_dir": str(folder)} if folder else made


def command_line(trial: "Trial | None" = None,
                 given: "Sequence[str] | None" = None) -> "list[str]":
    """Arguments for HfArgumentParser: `given`, or the program's own, then all parameters of the
    trial as --name value (train.lr and the like by their names in TrainingArguments, of other names
    with dots the last part), then what else `arguments` sets."""
    words = list(sys.argv[1:] if given is None else given)
    found = trial or current()
    if found is None:
        return words
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in (_BATCH, _PARTS, "seed", "save_total_limit"):
        parser.add_argument(f"--{name}", default=argparse.SUPPRESS)
    own = vars(parser.parse_known_args(words)[0])
    made = {_NAMES.get(name, name.rsplit(".", 1)[-1]): value for name, value in found.params.items()}
    for name, value in {**made, **arguments(found, **own)}.items():
        words += [f"--{name}", str(value)]
    return words


class HpoCallback(transformers.TrainerCallback):  # pyright: ignore[reportUntypedBaseClass]
    """Makes `trainer` train a trial: it runs batches in parts that fit, reports each evaluation,
    ends when the trial has to end, and starts from the last checkpoint. Give it to add_callback."""

    def __init__(self, trainer: Any, trial: "Trial | None" = None) -> None:
        self._trial = trial or current()
        if self._trial is None:
            return
        if trainer.args.world_size > 1 or trainer.args.n_gpu > 1 or trainer.is_deepspeed_enabled:
            raise HpoError("hpo.hf plans for one card: expected one process with one device and "
                           f"without DeepSpeed, got {trainer.args.world_size} with "
                           f"{trainer.args.n_gpu}"
                           f"{' and DeepSpeed' if trainer.is_deepspeed_enabled else ''}; set "
                           "CUDA_VISIBLE_DEVICES to one card, and use no launcher; on several GPUs, leave "
                           "the callback out and give the study a command (trainer.gpus)")
        self._steps = _Steps(trainer, self._trial)
        self._args = trainer.args
        self._train = trainer.train
        trainer.train = self._train_on

    def _train_on(self, resume_from_checkpoint: Any = None, *given: Any, **named: Any) -> Any:
        """trainer.train, from the last checkpoint of an earlier attempt. Raises Stopped after it where
        the trial was told to end, so that the rest of the script does not run. Later calls of
        save_model write into the trial's output folder."""
        trial = cast(Trial, self._trial)
        if resume_from_checkpoint is None:
            resume_from_checkpoint = last_checkpoint(trial.checkpoint_dir)
            if resume_from_checkpoint is not None:
                trial.stage("Resumed")
        trained = self._train(resume_from_checkpoint, *given, **named)
        if trial.should_stop():
            raise Stopped(trial.stop_reason())
        # The checkpoint folder is removed with the trial; what save_model writes is kept.
        self._args.output_dir = str(trial.job.get("output_dir") or self._args.output_dir)
        return trained

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._trial is not None:
            self._trial.stage("Training Start")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._trial is None:
            return
        # What trains in parts need not be evaluated in larger ones.
        args.per_device_eval_batch_size = min(args.per_device_eval_batch_size,
                                              self._steps.micro_batch)
        if self._trial.should_stop():
            control.should_training_stop = True
            control.should_save = self._trial.stop_reason() in _GONE_ON_WITH_LATER

    def on_evaluate(self, args: Any, state: Any, control: Any,
                    metrics: "Mapping[str, Any] | None" = None, **_: Any) -> None:
        """Reports metrics by the Trainer's names (eval_accuracy); an objective `accuracy` is the
        metric eval_accuracy."""
        if self._trial is None:
            return
        told = {name: float(value) for name, value in (metrics or {}).items()
                if isinstance(value, (int, float))}
        objective = str(self._trial.job["objective"]["metric"])
        if objective not in told and f"eval_{objective}" in told:
            told[objective] = told[f"eval_{objective}"]
        told.pop("epoch", None)
        self._trial.report(state.global_step, epoch=state.epoch or 0.0, **told)
        if self._trial.should_stop():
            control.should_training_stop = True


def last_checkpoint(folder: "pathlib.Path | None") -> "str | None":
    """The newest that was written to its end: its state comes last."""
    if folder is None or not folder.is_dir():
        return None
    found = [(int(match[1]), path) for path in folder.iterdir()
             if (match := re.fullmatch(r"checkpoint-(\d+)", path.name))
             and (path / "trainer_state.json").exists()]
    return str(max(found)[1]) if found else None


class _Steps:
    """training_step of one Trainer, in parts. A part is a call of the Trainer's own training_step;
    its loss, taken where compute_loss returns it, counts by its share of the batch."""

    def __init__(self, trainer: Any, trial: Trial) -> None:
        self._trainer = trainer
        self._trial = trial
        self._training_step, self._compute_loss = trainer.training_step, trainer.compute_loss
        trainer.training_step = self._in_parts
        trainer.compute_loss = self._share_of_loss
        self._whole: "float | None" = None  # items of the batch whose parts run
        self._adds_up: "bool | None" = None

    @property
    def micro_batch(self) -> int:
        plan = self._trial.final_plan
        return plan["micro_batch"] if plan else 1 << 62

    def _in_parts(self, model: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        rows = num_rows(inputs)

        def part(first: int, last: int) -> Any:
            self._whole = self._items(inputs) if last - first < rows else None
            return self._training_step(model, rows_of(inputs, first, last, rows), *given, **named)

        try:
            return guard_of(self._trainer.model, self._trial).run(part, rows)
        finally:
            self._whole = None

    def _share_of_loss(self, model: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        if self._whole is None:
            return self._compute_loss(model, inputs, *given, **named)
        share = self._items(inputs) / self._whole if self._whole else 0.0
        if named.get("num_items_in_batch") is not None and self._is_sum(model, inputs, named):
            share = 1.0
        loss = self._compute_loss(model, inputs, *given, **named)
        return (loss[0] * share, *loss[1:]) if isinstance(loss, tuple) else loss * share

    def _is_sum(self, model: Any, inputs: Any, named: "Mapping[str, Any]") -> bool:
        """Whether the loss is a sum over the Trainer's count of items, so that parts just add up,
        or a mean that ignores it. Which, depends on the model and on the version of transformers:
        the loss itself is asked, by twice the count."""
        if self._adds_up is not None:
            return self._adds_up
        losses: "list[float]" = []
        model.eval()
        with torch.no_grad():
            for factor in (1, 2):
                count = named["num_items_in_batch"] * factor
                loss = self._compute_loss(model, dict(inputs), num_items_in_batch=count)
                losses.append(float(loss))
        model.train()
        if losses[0]:
            self._adds_up = abs(2 * losses[1] - losses[0]) < 0.01 * abs(losses[0])
        return bool(self._adds_up)

    def _items(self, inputs: "Mapping[str, Any]") -> float:
        """What a mean loss is the mean of: labels that count, else rows."""
        labels: Any = inputs.get("labels")
        if not torch.is_tensor(labels) or labels.is_floating_point():
            return float(num_rows(inputs))
        if labels.dim() > 1 and self._shifts_labels():
            labels = labels[..., 1:]
        return float((labels != _IGNORED).sum())

    def _shifts_labels(self) -> bool:
        return bool(getattr(self._trainer, "_loss_shifts_labels",
                            getattr(self._trainer.model, "loss_type", None) == "ForCausalLM"))
