"""hpo-server over a storage folder: the first process that opens the folder starts it, others join it,
and whoever finds it gone starts it again."""

import fcntl
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any

from .errors import HpoError

START_S = 60.0
STOP_S = 30.0
_POLL_S = 0.01
_SILENT_S = 10.0
_UNIX_PATH_BYTES = 100  # a socket's path is shorter than 108


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


def start(command: "list[str]", log: "IO[bytes]", kept: "tuple[int, ...]" = (),
          environment: "dict[str, str] | None" = None) -> "subprocess.Popen[bytes]":
    """A program that ends with this process (--end-with), not with the thread that calls: a thread waits
    for its end."""
    started: "queue.SimpleQueue[subprocess.Popen[bytes] | Exception]" = queue.SimpleQueue()

    def run() -> None:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=kept,
                                       env=environment, start_new_session=True)
        except Exception as error:
            started.put(error)
            return
        started.put(process)
        process.wait()

    threading.Thread(target=run, name=os.path.basename(command[0]), daemon=True).start()
    answer = started.get()
    if isinstance(answer, Exception):
        raise HpoError(f"{command[0]} cannot be started: {answer}") from answer
    return answer


def _machine() -> "dict[str, Any]":
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id")
    return {"host": socket.gethostname(), "pid": os.getpid(),
            "boot_id": boot.read_text(encoding="ascii").strip() if boot.exists() else ""}


def _takes_sockets(folder: pathlib.Path) -> bool:
    """Whether a unix socket can be made in the folder: some network file systems refuse."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        path = f"/proc/self/fd/{fd}/.probe-{os.getpid()}-{threading.get_ident()}"
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path)
        os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


class FolderServer:
    """The server over a folder's database. Safe from any thread. The server's own process holds a lock
    on the file `server.lock`, so that there is one server, whichever process started it, and so that
    nobody waits for one that has ended. It listens on a socket in the folder, which containers
    with a network of their own reach as well."""

    def __init__(self, folder: pathlib.Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise _cannot_use(folder, error) from None
        self._folder = folder.resolve()
        self.log = self._folder / "server.log"
        self._address_file = self._folder / "address"
        self._lock = threading.Lock()
        self._process: "subprocess.Popen[bytes] | None" = None
        self._closed = False
        try:
            self.address = self.ensure()
        except BaseException:
            os.close(self._fd)
            raise

    def ensure(self) -> str:
        """The server's address; starts it where none runs. Raises HpoError if it cannot be started."""
        patience = _Patience(self._folder, self.log)
        with self._lock:
            while not self._closed:
                try:
                    address = self._started(patience) or self._joined()
                except OSError as error:
                    raise _cannot_use(self._folder, error) from None
                if address is not None:
                    self.address = address
                    break
                if patience.is_over():
                    holder = self._holder()
                    who = f"process {holder['pid']} of {holder['host']} or its server" if holder else "an unknown process"
                    raise HpoError(f"the server of the folder {self._folder} does not listen, though {who} holds "
                                   f"{self._folder / 'server.lock'}")
                time.sleep(_POLL_S)
            return self.address

    def close(self) -> None:
        """Ends the server if this object started it; other processes that use the folder start it again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._fd)
            if self._process is not None:
                _end(self._process)

    def _started(self, patience: "_Patience") -> "str | None":
        """The address of a server that this call started; None where another process holds the lock."""
        fd = os.open(self._folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        else:
            os.truncate(fd, 0)
            os.pwrite(fd, json.dumps(_machine()).encode(), 0)
            return self._start_server(fd, patience)
        finally:
            os.close(fd)

    def _start_server(self, lock: int, patience: "_Patience") -> str:
        self._address_file.unlink(missing_ok=True)
        if not _takes_sockets(self._folder):
            listen, kept = "127.0.0.1:0", (lock,)
        elif self._is_plain():
            listen, kept = f"unix:{self._socket()}", (lock,)
        else:
            listen, kept = f"unix:/proc/self/fd/{self._fd}/server.sock", (lock, self._fd)
        with open(self.log, "ab") as log:
            self._process = start(
                [program("hpo-server"), "--listen", listen, "--db", str(self._folder / "hpo.db"),
                 "--address-file", str(self._address_file), "--end-with", str(os.getpid())], log, kept)
        while (address := self._address()) is None:
            status = self._process.poll()
            if status is not None or patience.is_over():
                _end(self._process)
                tail = self.log.read_text(errors="replace").strip().splitlines()[-5:]
                why = f"it did not listen within {START_S:.0f} s" if status is None else \
                    f"it ended with status {status}"
                raise HpoError(f"hpo-server did not start, {why}; its last output:\n"
                               + ("\n".join(tail) or "(none)"))
            time.sleep(_POLL_S)
        return address

    def _joined(self) -> "str | None":
        """The address of a server that another process started; None where it does not listen yet."""
        holder = self._holder()
        mine = _machine()
        if holder.get("boot_id", mine["boot_id"]) != mine["boot_id"]:
            raise HpoError(f"the folder {self._folder} is in use on another machine, {holder.get('host')}: open "
                           "it there, or run hpo-server there and pass its address as server=")
        return self._address()

    def _holder(self) -> "dict[str, Any]":
        try:
            return dict(json.loads((self._folder / "server.lock").read_text()))
        except (OSError, ValueError):
            return {}

    def _socket(self) -> str:
        return str(self._folder / "server.sock")

    def _is_plain(self) -> bool:
        """Whether the socket's path can be an address as it is: gRPC reads addresses as URIs, and lists of them."""
        path = self._socket()
        return len(os.fsencode(path)) < _UNIX_PATH_BYTES and path.isprintable() and not set(path) & set(",;#?%")

    def _address(self) -> "str | None":
        """None where the server has not written one. A socket's path is the one that this process
        has for it: a container may have the folder under another name."""
        try:
            written = self._address_file.read_text().strip()
        except FileNotFoundError:
            return None
        if not written.startswith("unix:"):
            return written or None
        if self._is_plain():
            return f"unix:{self._socket()}"
        return f"unix:/proc/self/fd/{self._fd}/server.sock"


class _Patience:
    """With a server that does not listen yet: says so after a while, with the last line of its log."""

    def __init__(self, folder: pathlib.Path, log: pathlib.Path) -> None:
        self._folder, self._log = folder, log
        self._begin = time.monotonic()
        self._next_word = self._begin + _SILENT_S

    def is_over(self) -> bool:
        now = time.monotonic()
        if now > self._next_word and sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
            self._next_word = now + _SILENT_S
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:] if self._log.exists() else []
            print(f"hpo: the server of the folder {self._folder} has not listened for {now - self._begin:.0f} s; it is "
                  f"waited for {START_S:.0f} s. The last line of its log: {''.join(last) or '(none)'}", file=sys.stderr)
        return now > self._begin + START_S


def _cannot_use(folder: pathlib.Path, error: OSError) -> HpoError:
    return HpoError(f"the storage folder {folder} cannot be used: {error.strerror}"
                    + (f" ({error.filename})" if error.filename else ""))


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)  # one that was stopped ends as well
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
