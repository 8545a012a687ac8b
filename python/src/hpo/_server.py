"""hpo-server as a child of this process."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import Future
from typing import IO

from .errors import HpoError

START_S = 60.0
STOP_S = 30.0


def program(name: str) -> str:
    """The path of a program: in HPO_BIN_DIR, in the wheel or on the PATH."""
    folders = [os.environ.get("HPO_BIN_DIR"), str(pathlib.Path(__file__).with_name("bin"))]
    for folder in folders:
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    found = shutil.which(name)
    if found is None:
        raise HpoError(f"{name} was not found: install the wheel hpo-service, put {name} on the PATH "
                       "or name its folder in HPO_BIN_DIR")
    return found


def _die_with_parent() -> None:
    """The kernel ends the calling process when the thread that started it ends (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _start(command: "list[str]", log: "IO[bytes]") -> "subprocess.Popen[bytes]":
    """Ends with this process, not with the thread that calls: one of its own waits for its end."""
    started: "Future[subprocess.Popen[bytes]]" = Future()

    def run() -> None:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True, preexec_fn=_die_with_parent)
        except Exception as error:
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()

    threading.Thread(target=run, name="hpo-server", daemon=True).start()
    return started.result()


class Server:
    """Runs from start to close() over the database of a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        address_file, self.log = folder / "address", folder / "server.log"
        address_file.unlink(missing_ok=True)
        with open(self.log, "ab") as log:
            self._process = _start(
                [program("hpo-server"), "--listen", "127.0.0.1:0", "--db", str(folder / "hpo.db"),
                 "--address-file", str(address_file)], log)
        deadline = time.monotonic() + START_S
        while not address_file.exists() or not address_file.read_text().strip():
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                self.close()
                tail = self.log.read_text(errors="replace").strip().splitlines()[-5:]
                why = f"it did not listen within {START_S:.0f} s" if status is None else \
                    f"it ended with status {status}"
                raise HpoError(f"hpo-server did not start, {why}; its last output:\n"
                               + ("\n".join(tail) or "(none)"))
            time.sleep(0.01)
        self.address = address_file.read_text().strip()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
