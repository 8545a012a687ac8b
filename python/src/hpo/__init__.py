"""Hyperparameter search that out-of-memory errors cannot stop.

    import hpo

    def train(trial):
        return (trial["x"] - 2) ** 2

    best = hpo.minimize(train, {"x": hpo.uniform(-10, 10)}, trials=20)
    print(best.value, best.params)
"""

from typing import TYPE_CHECKING

from .archive import restore
from .connection import Connection, connect, load
from .custom import Pruner, RunningTrial, Sampler
from .dry import DryRun, dry_run
from .errors import (BadData, Blocked, EndedEarly, HpoError, InvalidInput, OutOfMemory, ServerError,
                     Stopped, StudyFailed, UnknownParameter)
from .ranges import Edited
from .records import Attempt, Report, TrialRecord
from .search import maximize, minimize
from .space import Domain, choice, integer, log, uniform
from .study import Study
from .trial import Trial

if TYPE_CHECKING:
    from . import plot

int = integer  # of the space: hpo.int(1, 8)

__all__ = ["Attempt", "BadData", "Blocked", "Connection", "Domain", "DryRun", "Edited", "EndedEarly", "HpoError",
           "InvalidInput", "OutOfMemory", "Pruner", "Report", "RunningTrial", "Sampler", "ServerError", "Stopped", "Study", "StudyFailed",
           "Trial", "TrialRecord", "UnknownParameter", "choice", "connect", "dry_run", "int", "integer", "load", "log",
           "maximize", "minimize", "plot", "restore", "uniform"]


def __getattr__(name: str) -> object:
    """hpo.plot is imported when it is first used."""
    if name == "plot":
        import importlib

        return importlib.import_module(".plot", __name__)
    from ._keywords import ours

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{ours(name)}")
