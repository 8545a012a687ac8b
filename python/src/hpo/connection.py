"""Where studies are kept: a folder, whose server the first process starts and others join, or a server's
address."""

import contextlib
import os
import pathlib
import time
from typing import TYPE_CHECKING, Any

from . import _wire
from ._keywords import checked
from .errors import HpoError, InvalidInput, ServerError

if TYPE_CHECKING:
    from .study import Study

_SCHEMES = ("grpc://", "http://", "hpo://")
_PORT = 50051
_FIRST_CALL_S = 10.0
_PROBE_S = 2.0
_JOIN, _FILE = "hpo1.", "file:"
_TUNNEL_S = 30.0
_POLL_S = 0.01


def address_of(server: str) -> str:
    """As gRPC takes it: without a scheme, with a port."""
    address = server.strip()
    for scheme in _SCHEMES:
        address = address[len(scheme):] if address.startswith(scheme) else address
    address = address.rstrip("/") if not address.startswith("unix:") else address
    if not address:
        raise InvalidInput(f"server: expected an address such as \"localhost:{_PORT}\", got {server!r}")
    if address.startswith("unix:") or address.rpartition("]")[2].count(":") == 1:
        return address
    return f"{address}:{_PORT}"


def _is_address(where: "str | os.PathLike[str]") -> bool:
    return isinstance(where, str) and (where.startswith((*_SCHEMES, "unix:")))


def _is_join(text: str) -> bool:
    """Whether `text` is a join string, or names a file with one ("file:PATH")."""
    return text.strip().startswith((_JOIN, _FILE))


def _join_of_environment() -> str:
    """The join string of HPO_JOIN or HPO_JOIN_FILE; empty: neither is set."""
    path = os.environ.get("HPO_JOIN_FILE", "")
    return os.environ.get("HPO_JOIN", "") or (_FILE + path if path else "")


class _Tunnel:
    """A server on another machine: `hpo connect`, a child that ends with this process, carries the calls there
    by TLS, from a unix socket that only this user can use."""

    def __init__(self, join: str) -> None:
        """Raises InvalidInput where the join string is damaged, and HpoError with the reason where the
        server does not accept it."""
        import tempfile

        from ._server import program, start

        self._folder = tempfile.TemporaryDirectory(prefix="hpo-join-")  # mode 0700
        folder = pathlib.Path(self._folder.name)
        self.address = f"unix:{folder / 'server'}"
        ready, log = folder / "address", folder / "log"
        # The environment, since other users can read command lines.
        variables = {"HPO_JOIN": join, "HPO_JOIN_FILE": ""}
        if join.startswith(_FILE):
            variables = {"HPO_JOIN": "", "HPO_JOIN_FILE": join[len(_FILE):]}
        command = [program("hpo"), "connect", "--listen", self.address, "--address-file", str(ready),
                   "--end-with", str(os.getpid())]
        with open(log, "ab") as output:
            self._process = start(command, output, environment={**os.environ, **variables})
        deadline = time.monotonic() + _TUNNEL_S
        while not ready.exists():
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                why = log.read_text(errors="replace").strip().rpartition("\n")[2].removeprefix("hpo: ")
                if join != _join_of_environment():  # `hpo connect` names the variable that it was passed by
                    why = why.removeprefix("HPO_JOIN: ").removeprefix("HPO_JOIN_FILE: ")
                self.close()
                if status == 2:
                    raise InvalidInput(why)
                raise HpoError(why or f"hpo connect did not start within {_TUNNEL_S:.0f} s")
            time.sleep(_POLL_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()  # it has nothing to save
            self._process.wait()
        self._folder.cleanup()


def _reached(server: str, cleanup: contextlib.ExitStack) -> str:
    """The address of a server, or one that leads to the server of a join string."""
    if not _is_join(server):
        return address_of(server)
    tunnel = _Tunnel(server)
    cleanup.callback(tunnel.close)
    return tunnel.address


def _speaks_tls(address: str) -> bool:
    """Whether what answers at "host:port" sets up TLS with anybody. Nothing is proved or sent by it."""
    import socket
    import ssl

    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _PROBE_S) as plain:
            context.wrap_socket(plain).close()
    except (OSError, ValueError):
        return False
    return True


def _usual() -> str:
    """The server where nothing else is said: that of the environment's join string, else of HPO_SERVER, else
    of this machine."""
    return _join_of_environment() or os.environ.get("HPO_SERVER") or f"127.0.0.1:{_PORT}"


class Connection:
    """A storage folder or a server. Close it, or use it in a `with` statement: a server that this process
    started over a folder ends then, and others that use the folder start it again."""

    def __init__(self, storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None) -> None:
        """With neither, a temporary folder, deleted on close."""
        if storage is not None and server is not None:
            raise InvalidInput(f"storage and server: expected one of them, got {str(storage)!r} and {server!r}")
        if storage is not None and _is_address(storage):
            storage, server = None, str(storage)
        elif isinstance(storage, str) and "://" in storage:
            raise InvalidInput("storage: expected a folder or the address of a server, such as "
                               f"\"grpc://localhost:{_PORT}\", got {storage!r}")
        self.folder: "pathlib.Path | None" = None
        with contextlib.ExitStack() as cleanup:
            if server is not None:
                self.channel = _wire.Channel(_reached(server, cleanup))
                cleanup.callback(self.channel.close)
                self._greet()
            else:
                self._open_folder(storage, cleanup)
            self._cleanup = cleanup.pop_all()

    def _greet(self) -> None:
        """Raises ServerError if the server does not answer, and InvalidInput if it takes join strings only."""
        try:
            self.channel.call("StudyService/ListStudies", _wire.message("ListStudiesRequest")(page_size=1),
                              _FIRST_CALL_S)
        except ServerError as error:
            if error.code == "UNAVAILABLE" and _speaks_tls(self.channel.address):
                raise InvalidInput(
                    f"the server at {self.channel.address} takes TLS and a token: expected a join string, such as "
                    "\"hpo1...\" or \"file:PATH\", or HPO_JOIN_FILE in the environment, got an address alone; on its "
                    "machine they lie next to the database, such as "
                    "~/.local/state/hpo/hpo.db.access/join-read") from None
            raise

    def _open_folder(self, storage: "str | os.PathLike[str] | None", cleanup: contextlib.ExitStack) -> None:
        from ._server import FolderServer  # what only a folder needs is imported by it

        if storage is None:
            import tempfile

            storage = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="hpo-"))
        if not str(storage):
            raise InvalidInput("storage: expected a folder, got an empty text")
        # As it is now: the program may change its working directory.
        self.folder = pathlib.Path(storage).expanduser().absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInput(f"storage: expected a folder, or an address such as \"grpc://localhost:{_PORT}\", got "
                               f"the file {str(storage)!r}")
        own = FolderServer(self.folder)
        cleanup.callback(own.close)
        self.channel = _wire.Channel(own.address, own.ensure)
        cleanup.callback(self.channel.close)

    @property
    def address(self) -> str:
        """Of the server, as server= and `hpo --server` take it."""
        return self.channel.address

    @property
    def studies(self) -> "list[str]":
        """The names of all studies."""
        names: "list[str]" = []
        request: Any = _wire.message("ListStudiesRequest")(page_size=1000)
        while True:
            answer = self.channel.call("StudyService/ListStudies", request)
            names += [str(study.name) for study in answer.studies]
            request.page_token = answer.next_page_token
            if not request.page_token:
                return names

    def load(self, name: str = "") -> "Study":
        """Opens a study that is there. Without a name: the only one."""
        return load(name, storage=self.folder) if self.folder is not None else load(name, server=self.address)

    def close(self) -> None:
        """Ends the server that this process started, if it did."""
        self._cleanup.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"hpo.connect({str(self.folder or self.address)!r})"


def connect(where: "str | os.PathLike[str] | None" = None) -> Connection:
    """Connects to a storage folder, by its path, or to a server: by its address ("host:port"), or on another
    machine by its join string ("hpo1...", or "file:PATH" of a file with one). Without either, to the server of
    HPO_JOIN, HPO_JOIN_FILE or HPO_SERVER in the environment, else to that of this machine (port 50051)."""
    if where is None:
        return Connection(server=_usual())
    if isinstance(where, str) and _is_join(where):
        return Connection(server=where)
    if isinstance(where, str) and not os.path.isdir(where) and os.sep not in where.replace("://", ""):
        if ":" in where or _is_address(where):
            return Connection(server=where)
        raise InvalidInput(f"hpo.connect: expected a folder that is there, or an address with a port such as "
                           f"\"localhost:{_PORT}\", got {where!r}")
    if _is_address(where):
        return Connection(server=str(where))
    if not os.path.isdir(where):
        raise InvalidInput(f"hpo.connect: expected a folder that is there, got {str(where)!r}; "
                           "hpo.Study(name, space, storage=...) makes one")
    return Connection(storage=where)


@checked
def load(name: str = "", *, storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None) -> "Study":
    """Opens a study that is there: to look at it while others run it, or to go on with it. Without a name: the
    only one. Without storage= and server=: of the server that hpo.connect() finds."""
    from .study import Study

    if storage is None and server is None:
        server = _usual()
    if storage is not None and not _is_address(storage) and not os.path.isdir(storage):
        raise InvalidInput(f"hpo.load: expected a folder that is there, got {str(storage)!r}")
    try:
        return Study(name, storage=storage, server=server)
    except ServerError as error:
        if error.code != "NOT_FOUND":
            raise
        with Connection(storage, server) as there:
            known = ", ".join(map(repr, there.studies)) or "none"
        raise ServerError(error.code, f"{error}; the studies there are: {known}") from None
