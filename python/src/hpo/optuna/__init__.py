"""hpo's samplers in Optuna's loop. One line of a program changes:

    study = optuna.create_study(sampler=hpo.optuna.HpoSampler())
"""

import hashlib
import secrets
import weakref
from typing import Any, Callable, Mapping, Sequence

from .. import options
from .._keywords import checked
from ..errors import InvalidInput
from ..options import SamplerOptions
from ..values import whole
from ._models import Models
from ._trials import Axes, Axis, attributes_of, constraints_of, optuna

_SEED_BITS = 48
_TYPES = ("auto", "tpe", "tpe-joint", "tpe-group", "tpe-univariate", "gp", "cma-es", "random", "qmc", "grid")
_ALONE = "tpe"  # what proposes one parameter alone, where the others' values are noise to it


def _check(sampler: "Mapping[str, Any]") -> None:
    """What is wrong here would otherwise be known at the first proposal, where a warning is all there can be."""
    for key in sampler:
        if key not in SamplerOptions.__annotations__:
            raise InvalidInput(f"HpoSampler: sampler: expected keys of {', '.join(SamplerOptions.__annotations__)}, "
                               f"got {key!r}")
    if sampler.get("type", "auto") not in _TYPES:
        raise InvalidInput(f"HpoSampler: sampler: expected one of {', '.join(_TYPES)}, got {sampler['type']!r}")


def _seed_of(given: Any) -> int:
    seed = whole(given, "HpoSampler: seed")
    if not 0 <= seed < 1 << 63:
        raise InvalidInput(f"HpoSampler: seed: expected 0 to 2^63 - 1, got {given!r}")
    return seed


class HpoSampler(optuna.samplers.BaseSampler):
    """An optuna.samplers.BaseSampler that proposes by hpo's samplers (docs/sampler.md). Optuna's storage keeps
    the trials and is all that a proposal depends on, apart from the seed: studies can be resumed, run by several
    processes and threads, and have trials that other samplers proposed. Trials that run count as in flight."""

    @checked
    def __init__(self, sampler: "str | SamplerOptions | None" = None, *, seed: "int | None" = None,
                 group: bool = False, trials: "int | None" = None,
                 constraints_func: "Callable[[Any], Sequence[float]] | None" = None) -> None:
        """`sampler`: a type such as "tpe", or a dict of the study file's keys; None is "auto". `seed`: of its
        proposals; with the same seed and one trial at a time a study is the same again. `group`: parameters that
        occur in some of the trials only are proposed too, by groups that occur together, as
        TPESampler(group=True) has them; without, each of these is proposed alone. `trials`: how many the study
        will have, if that is known: of few trials fewer are random. `constraints_func`: of a trial that ended,
        the values that have to be 0 or less; trial.set_constraint says the same."""
        self._options = options.section(sampler, "sampler")
        if seed is None:
            seed = self._options.pop("seed", None)
        _check(self._options)
        self._seed: int = secrets.randbits(_SEED_BITS) if seed is None else _seed_of(seed)
        self._group = group
        self._constraints_func = constraints_func
        if trials is not None and trials < 1:
            raise InvalidInput(f"HpoSampler: trials: expected 1 or more, got {trials}")
        self._models = Models(self._options, trials)
        self._intersections: Any = weakref.WeakKeyDictionary()  # by storage, of each study in it

    def __getstate__(self) -> "dict[str, Any]":
        return {**self.__dict__, "_intersections": None}

    def __setstate__(self, state: "dict[str, Any]") -> None:
        self.__dict__.update(state, _intersections=weakref.WeakKeyDictionary())

    def reseed_rng(self) -> None:
        self._seed = secrets.randbits(_SEED_BITS)

    def infer_relative_search_space(self, study: Any, trial: Any) -> "dict[str, Any]":
        spaces = self._groups(study) if self._group else [self._intersection(study)]
        return {name: distribution for space in spaces for name, distribution in sorted(space.items())
                if not distribution.single()}

    def _intersection(self, study: Any) -> "dict[str, Any]":
        """It is kept for each study: what it has looked at it does not look at again."""
        with self._models.lock:
            of_storage = self._intersections.setdefault(study._storage, {})
            kept = of_storage.setdefault(study._study_id, optuna.search_space.IntersectionSearchSpace(include_pruned=True))
            return dict(kept.calculate(study))

    def _groups(self, study: Any) -> "list[dict[str, Any]]":
        return list(optuna.search_space._GroupDecomposedSearchSpace(True).calculate(study).search_spaces)

    def sample_relative(self, study: Any, trial: Any, search_space: "Mapping[str, Any]") -> "dict[str, Any]":
        if not search_space:
            return {}
        groups = self._groups(study) if self._group else [dict(search_space)]
        spaces = [{name: search_space[name] for name in group if name in search_space} for group in groups]
        with self._models.lock:  # Until what was proposed is in flight for others.
            proposed: "dict[str, Any]" = {}
            for space in filter(None, spaces):
                proposed.update(self._proposed(study, trial, space, {}))
            self._note(study, trial, proposed, search_space)
        return proposed

    def _note(self, study: Any, trial: Any, proposed: "Mapping[str, Any]", space: "Mapping[str, Any]") -> None:
        for key, text in attributes_of(proposed, space).items():
            study._storage.set_trial_system_attr(trial._trial_id, key, text)

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        axis = Axis(param_name, param_distribution)
        if not param_distribution.single():
            alone = {"type": _ALONE} if self._options.get("type", "auto") in ("auto", "gp", "cma-es") else {}
            with self._models.lock:
                first = self._first_space(study, trial)
                space = {**(first or {}), param_name: param_distribution}
                proposed = self._proposed(study, trial, space, alone)
                if proposed and first is not None:
                    self._note(study, trial, {**trial.params, **proposed}, {**trial.distributions, **space})
            if proposed:
                return proposed[param_name]
        return axis.drawn(f"{self._seed} {trial.number} {param_name}")

    def _first_space(self, study: Any, trial: Any) -> "dict[str, Any] | None":
        """Before a trial has ended no space is known: then what this one has so far, so that of several that run
        none repeats another one."""
        states = optuna.trial.TrialState
        if study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)):
            return None
        return {name: distribution for name, distribution in trial.distributions.items() if not distribution.single()}

    def _proposed(self, study: Any, trial: Any, space: "Mapping[str, Any]",
                  alone: "Mapping[str, Any]") -> "dict[str, Any]":
        states = optuna.trial.TrialState
        trials = [one for one in study.get_trials(deepcopy=False, states=(
            states.COMPLETE, states.PRUNED, states.FAIL, states.RUNNING)) if one.number != trial.number]
        signs = [-1.0 if way == optuna.study.StudyDirection.MAXIMIZE else 1.0 for way in study.directions]
        names = sorted({name for one in trials if one.state.is_finished() for name in constraints_of(one)})
        axes = Axes(space)
        words = repr((self._seed, axes.names)).encode()
        seed = int.from_bytes(hashlib.sha256(words).digest()[:_SEED_BITS // 8], "big")
        return self._models.propose(axes, seed, trial, trials, signs, names, alone)

    def after_trial(self, study: Any, trial: Any, state: Any, values: "Sequence[float] | None") -> None:
        states = optuna.trial.TrialState
        if self._constraints_func is None or state not in (states.COMPLETE, states.PRUNED):
            return
        told = tuple(float(value) for value in self._constraints_func(trial))
        if any(value != value for value in told):
            raise ValueError(f"constraints_func: expected numbers, got {told} of trial {trial.number}")
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", told)
