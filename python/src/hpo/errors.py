"""What can go wrong, as exceptions. All but Stopped, OutOfMemory and BadData are HpoError."""

import importlib
from typing import Any


class HpoError(Exception):
    """hpo cannot do what it was asked for; the text says what to do."""


class InvalidInput(HpoError, ValueError):
    """A value, a range or a study that hpo cannot take."""


class UnknownParameter(InvalidInput, KeyError):
    """A trial has no parameter of that name; the text names those that it has."""

    def __str__(self) -> str:
        return str(self.args[0])


class ServerError(HpoError):
    """The server refused a call, or does not answer. `code` is the name of gRPC's status code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class StudyFailed(HpoError):
    """Failed trials ended the study; the text holds the traceback of the last one."""


class Blocked(HpoError):
    """Nothing that could run is left, as where no configuration fits into the memory; the text is the
    server's, and says what would help."""


class EndedEarly(UserWarning):
    """A search ended before its budget was used: nothing that could run is left, or every configuration of the
    space has been tried. The text says why."""


class Stopped(Exception):
    """The trial has to end: it was pruned, cancelled or is out of time. Let it pass through
    your code."""


class OutOfMemory(Exception):
    """This configuration does not fit into memory; the sampler learns to avoid such ones."""

    def __init__(self, text: str = "out of memory", needed_bytes: int = 0) -> None:
        super().__init__(text)
        self.needed_bytes = needed_bytes


class BadData(Exception):
    """The data are wrong, so that no configuration can work: the trial fails."""


def imported(name: str, wanted_by: str) -> Any:
    """Imports an optional package that the module `wanted_by` needs, or raises an HpoError that says so."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise HpoError(f"{wanted_by} needs {name}: pip install {name} ({error})") from None
