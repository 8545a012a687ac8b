"""Whole studies as files: what Study.delete keeps, and what brings it back."""

import contextlib
import os
import pathlib
from typing import IO, Any, Iterator

from . import _wire
from ._keywords import checked
from .connection import Connection
from .errors import HpoError, InvalidInput

SUFFIX = ".hpo-study"
_PIECE = 1 << 20
_RESTORE_S = 600.0


def _receive(channel: _wire.Channel, study: str, file: "IO[bytes]") -> str:
    """Writes the study's archive; its digest, by which the server knows it again."""
    import hashlib

    digest, end = hashlib.sha256(), None
    request = _wire.message("ArchiveStudyRequest")(name=study)
    for answer in channel.stream("StudyService/ArchiveStudy", request):
        end = answer.end if answer.HasField("end") else None
        digest.update(answer.data)
        file.write(answer.data)
    if end is None or end.sha256 != digest.hexdigest():
        raise HpoError(f"the archive of study {study} did not arrive whole: expected digest "
                       f"{end.sha256 if end else '(its end)'}, got {digest.hexdigest()}; try again")
    return digest.hexdigest()


def write(channel: _wire.Channel, study: str, path: pathlib.Path) -> str:
    """A new file, whole and on the disk when this returns, or none. The archive's digest."""
    import tempfile

    if path.exists():
        raise InvalidInput(f"{path} is there: expected a new file for the archive; name another one, or "
                           "move this one away")
    with contextlib.ExitStack() as cleanup:
        fd, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        cleanup.callback(pathlib.Path(aside).unlink)
        with open(fd, "wb") as file:
            sha256 = _receive(channel, study, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, path)
        cleanup.pop_all()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return sha256


def _pieces(file: "IO[bytes]", name: str) -> "Iterator[Any]":
    """At least one: an empty file is the server's to refuse."""
    data, first = file.read(_PIECE), True
    while data or first:
        yield _wire.message("RestoreStudyRequest")(name=name, data=data)
        data, first = file.read(_PIECE), False


@checked
def restore(file: "str | os.PathLike[str]", name: str = "", *,
            storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None) -> str:
    """Restores a study from an archive (Study.delete, `hpo study delete`), under its own name or as
    `name`: into the folder `storage`, or on the `server` at that address. Returns its name, with
    which hpo.Study(name, storage=...) opens it. Restores all of it, or raises and changes nothing."""
    if (storage is None) == (server is None):
        raise InvalidInput("hpo.restore: expected storage= or server=, got "
                           f"{'neither' if server is None else 'both'}")
    with contextlib.ExitStack() as cleanup:
        archive = cleanup.enter_context(open(file, "rb"))
        channel = cleanup.enter_context(Connection(storage, server)).channel
        answer = channel.send("StudyService/RestoreStudy", _pieces(archive, name),
                              _wire.message("RestoreStudyRequest"), _RESTORE_S)
        return str(answer.study.name)
