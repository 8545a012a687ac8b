"""What hpo-sampler knows of an Optuna study: a model for each search space, told what is new before it is asked."""

import dataclasses
import threading
import warnings
from typing import Any, Mapping, Sequence

from ..errors import HpoError
from ..space import study_file
from ._proposer import Proposer
from ._trials import Axes, fixed_of, told

_KEPT = 32  # models at most: those that were not used for longest are closed


@dataclasses.dataclass
class _Trials:
    """The trials of a study, in the form that the model of one search space reads."""
    own: Any  # which a configuration is for
    others: "Mapping[int, Any]"  # by number
    axes: Axes
    signs: "Sequence[float]"  # -1 of what is maximized
    constraints: "Sequence[str]"

    def line_of(self, trial: Any) -> "dict[str, Any] | None":
        return told(trial, self.axes, self.signs, self.constraints)

    def have_more(self, known: "Mapping[int, Any]") -> bool:
        """Whether trials have parameters that the space does not have, leaving out trials that are known. Until a
        trial has ended this is False: the parameters that follow may have too few values to tell trials apart."""
        return self.any_has_ended and (self.axes.miss_some_of(self.own) or any(
            self.axes.miss_some_of(trial) for number, trial in self.others.items() if number not in known))

    @property
    def any_has_ended(self) -> bool:
        """Until then nobody knows the whole space."""
        return any(trial.state.is_finished() for trial in self.others.values())


class _Model:
    """Of hpo-sampler, and which trials it has."""

    def __init__(self, key: "tuple[Any, ...]", name: str) -> None:
        self.key = key
        self.name = name
        self.ended: "dict[int, Any]" = {}  # by number, what tells the trial from others of that number
        self.running: "dict[int, dict[str, Any]]" = {}  # by number, as they were told
        self.is_part = False  # of what trials have: there are parameters beside those of its space
        self.is_open = False

    def news(self, of: _Trials) -> "list[dict[str, Any]] | None":
        """The lines that make it know these trials; None where it knows what is not so."""
        trials = of.others
        if any(number not in trials or _identity(trials[number]) != known for number, known in self.ended.items()):
            return None
        if not self.running.keys() <= trials.keys():
            return None
        lines: "list[dict[str, Any]]" = []
        for number, trial in trials.items():
            if number in self.ended:
                continue
            line = of.line_of(trial)
            if line is None and number in self.running:
                return None
            if line is not None and line != self.running.get(number):
                lines.append(line)
        return lines

    def learn(self, trials: "Mapping[int, Any]", lines: "Sequence[dict[str, Any]]") -> None:
        for number, trial in trials.items():
            if trial.state.is_finished() and number not in self.ended:
                self.ended[number] = _identity(trial)
                self.running.pop(number, None)
        for line in lines:
            if line["state"] == "RUNNING":
                self.running[line["number"]] = line


def _identity(trial: Any) -> "tuple[Any, ...]":
    return trial._trial_id, trial.datetime_complete


class Models:
    """For any thread. A copy, and a process that was forked, begin without any: Optuna's storage has all that they
    were told."""

    def __init__(self, options: "Mapping[str, Any]", trials: "int | None") -> None:
        """`options`: the section `sampler` of a study file. `trials`: the study's budget."""
        self._options = dict(options)
        self._budget = {} if trials is None else {"trials": trials}
        self.lock = threading.RLock()
        self._forget()

    def __getstate__(self) -> "dict[str, Any]":
        return {"_options": self._options, "_budget": self._budget}

    def __setstate__(self, state: "dict[str, Any]") -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._proposer: "Proposer | None" = None
        self._models: "list[_Model]" = []  # what was used last comes last
        self._closed: "list[str]" = []
        self._num_opened = 0
        self._warned: "set[str]" = set()

    def propose(self, axes: Axes, seed: int, own: Any, trials: "Sequence[Any]", signs: "Sequence[float]",
                constraints: "Sequence[str]", options: "Mapping[str, Any]") -> "dict[str, Any]":
        """A configuration for the trial `own`, empty where hpo-sampler has none; it warns why. `trials`: all others."""
        objectives = {f"v{index}": "minimize" for index in range(len(signs))}
        text = study_file("optuna", axes.domains, objectives, budget=self._budget, memory={"policy": "off"},
                          sampler={**self._options, **options, "seed": seed},
                          constraints=[{"metric": f"c{index}", "at_most": 0} for index in range(len(constraints))])
        seen = _Trials(own, {trial.number: trial for trial in trials}, axes, signs, constraints)
        fixed = {**fixed_of(own), **own.params}
        ours = {name: axes.by_name[name].ours(value) for name, value in fixed.items() if name in axes.by_name}
        request: "dict[str, Any]" = {"number": own.number, "fixed": {
            axes.by_name[name].name: value for name, value in ours.items() if value is not None}}
        key = (text, axes.names, tuple(signs), tuple(constraints))

        with self.lock:
            try:
                answer = self._asked(key, request, seen)
            except HpoError:  # The process has ended: once more by a new one.
                self._forget()
                answer = self._asked(key, request, seen)
            if "error" in answer:
                self._warn(axes, f"drawn at random, as hpo-sampler has no proposal: {answer['error']}")
                return {}
            if "all_tried" in answer and seen.any_has_ended and not request["fixed"]:
                self._warn(axes, "every configuration has been tried, and each is proposed again from now on")
        return axes.theirs(answer["params"])

    def _asked(self, key: "tuple[Any, ...]", request: "dict[str, Any]", trials: _Trials) -> "dict[str, Any]":
        if self._proposer is None or not self._proposer.is_usable():
            self._forget()
            self._proposer = Proposer()
        model, lines = self._model_of(key, trials)
        model.is_part = model.is_part or trials.have_more(model.ended)
        request.update({"model": model.name, "trials": lines, "part": model.is_part, "close": self._closed})
        if not model.is_open:
            request["study"] = key[0]
        answer = self._proposer.ask(request)
        self._closed = []
        if answer.get("code") == "INVALID_ARGUMENT":  # then hpo-sampler has closed it
            self._models.remove(model)
            return answer
        model.is_open = True
        model.learn(trials.others, lines)
        return answer

    def _model_of(self, key: "tuple[Any, ...]", trials: _Trials) -> "tuple[_Model, list[dict[str, Any]]]":
        """The model of the space that knows most of these trials and nothing else, and what is news to it."""
        of_space = [model for model in self._models if model.key == key]
        for model in sorted(of_space, key=lambda one: -len(one.ended)):
            lines = model.news(trials)
            if lines is not None:
                self._models.remove(model)
                self._models.append(model)
                return model, lines
        self._num_opened += 1
        model = _Model(key, str(self._num_opened))
        self._models.append(model)
        if len(self._models) > _KEPT:
            self._closed.append(self._models.pop(0).name)
        return model, [line for line in map(trials.line_of, trials.others.values()) if line is not None]

    def _warn(self, axes: Axes, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(f"HpoSampler: {', '.join(axes.names)}: {what}", UserWarning, stacklevel=6)
