"""The command line's program, for what it computes itself."""

import subprocess
from typing import Any

from ._server import program


class Refused(Exception):
    """It ended with an error, whose text this is."""


def run(address: str, study: str, words: "list[str]") -> str:
    """What `hpo` writes as JSON."""
    command = [program("hpo"), "--server", address, "--study", study, "--output", "json", *words]
    fds: "tuple[int, ...]" = ()
    if address.startswith("unix:/proc/self/fd/"):  # of this process, and so of the program
        fds = (int(address.split("/")[4]),)
    done: Any = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=fds,
                               stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Refused(done.stderr.strip().removeprefix("hpo: ") or f"hpo ended with status {done.returncode}")
    return str(done.stdout)
