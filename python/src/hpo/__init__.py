"""Hyperparameter search that out-of-memory errors cannot stop.

    import hpo

    def train(trial):
        return (trial["x"] - 2) ** 2

    best = hpo.minimize(train, {"x": hpo.uniform(-10, 10)}, trials=20)
    print(best.value, best.params)
"""

from .archive import restore
from .errors import (BadData, Blocked, EndedEarly, HpoError, InvalidInput, OutOfMemory, ServerError,
                     Stopped, StudyFailed)
from .ranges import Edited
from .search import maximize, minimize
from .space import Domain, choice, integer, log, uniform
from .study import Study, TrialRecord
from .trial import Trial

int = integer  # of the space: hpo.int(1, 8)

__all__ = ["BadData", "Blocked", "Domain", "Edited", "EndedEarly", "HpoError", "InvalidInput", "OutOfMemory", "ServerError",
           "Stopped", "Study", "StudyFailed", "Trial", "TrialRecord", "choice", "int", "integer",
           "log", "maximize", "minimize", "restore", "uniform"]
