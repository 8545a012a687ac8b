"""Calls to the server. Messages are made from the descriptors of proto/, which the build writes
beside this file; grpc is imported with the first channel, since that takes longer than all else."""

import functools
import os
import pathlib
import threading
import time
from typing import Any, Callable, Iterator

from .errors import HpoError, InvalidInput, ServerError

CALL_S = 60.0
_RETRY_S = 0.1
_SLOW_S = 5.0  # longer than any call waits on purpose
_AWAY = ("UNAVAILABLE", "CANCELLED")  # of a server that is gone, or ends
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.max_receive_message_length", 64 << 20),
            ("grpc.enable_http_proxy", 0), ("grpc.keepalive_time_ms", 60_000), ("grpc.keepalive_timeout_ms", 20_000)]
_DESCRIPTORS = pathlib.Path(__file__).with_name("protocol.desc")


@functools.lru_cache(maxsize=None)
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    if not _DESCRIPTORS.exists():
        raise HpoError(f"{_DESCRIPTORS} is missing: install the wheel, or build the target "
                       "python_sdk and use build/dev/python")
    pool: Any = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes()).file:
        pool.Add(file)
    return pool


@functools.lru_cache(maxsize=None)
def message(name: str) -> Any:
    """The class of a message of hpo.v1."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"hpo.v1.{name}"))


def number(enum: str, value: str) -> int:
    """Of an enum's value: number("StudyOrder", "STUDY_ORDER_STOP")."""
    return int(_pool().FindEnumTypeByName(f"hpo.v1.{enum}").values_by_name[value].number)


@functools.lru_cache(maxsize=None)
def name(enum: str, value: int) -> str:
    """The reverse of `number`, without the enum's prefix, in lower case: "completed"."""
    descriptor = _pool().FindEnumTypeByName(f"hpo.v1.{enum}")
    prefix = descriptor.values_by_number[0].name[: -len("UNSPECIFIED")]
    return str(descriptor.values_by_number[value].name)[len(prefix):].lower()


def pack(value: object) -> Any:
    """A Value; its type is kept, and None is null."""
    if value is None:
        return message("Value")(null_value=0)
    for kind, field in ((bool, "bool_value"), (int, "int_value"), (float, "double_value"),
                        (str, "string_value")):
        if isinstance(value, kind):
            return message("Value")(**{field: value})
    raise InvalidInput(f"a parameter: expected None, a bool, a number or a string, got {value!r}")


def unpack(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    return None if kind == "null_value" else getattr(value, kind)


def params_of(packed: Any) -> "dict[str, Any]":
    return {key: unpack(packed[key]) for key in sorted(packed)}


class _OpenCall:
    """A call that has no answer yet. `why`: what it was last refused with, as by a full disk."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.why = ""


class Channel:
    """Calls by name, from any thread. A server that is away is waited for, as long as a call may
    take; every call is safe to repeat. `revive`: starts the server again where nobody runs it, and
    returns its address."""

    def __init__(self, address: str, revive: "Callable[[], str] | None" = None) -> None:
        # It tells of each fork of a process that has a channel, which no search forks while it uses one.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        import grpc

        self._grpc: Any = grpc
        self._revive = revive
        self._lock = threading.Lock()
        self._open: "dict[object, _OpenCall]" = {}
        self._is_closed = False
        self._connect(address)

    def _connect(self, address: str) -> None:
        self.address = address
        self._channel: Any = self._grpc.insecure_channel(address, _OPTIONS)
        self._methods: "dict[str, Callable[..., Any]]" = {}

    def close(self) -> None:
        self._is_closed = True
        self._channel.close()

    def trouble(self) -> str:
        """Why calls wait now; empty: they do not."""
        now = time.monotonic()
        calls = [one for one in list(self._open.values()) if one.why or now - one.begin > _SLOW_S]
        if not calls:
            return ""
        oldest = min(calls, key=lambda one: one.begin)
        why = f" ({oldest.why})" if oldest.why else ""
        return f"the server at {self.address} has not answered for {now - oldest.begin:.0f} s{why}"

    def call(self, method: str, request: Any, timeout: float = CALL_S) -> Any:
        """`method`: "StudyService/GetStudy". The request's class tells the answer's."""
        if self._is_closed:
            raise HpoError("the study is closed: open it again, or ask before it is closed")
        key = object()
        call = self._open[key] = _OpenCall(time.monotonic())
        try:
            return self._call(call, method, request, call.begin + timeout)
        finally:
            del self._open[key]

    def _call(self, call: "_OpenCall", method: str, request: Any, deadline: float) -> Any:
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                return self._bound(method, type(request))(request, timeout=left)
            except self._grpc.RpcError as error:
                code = str(error.code().name)
                if code not in _AWAY or self._is_closed or time.monotonic() + _RETRY_S > deadline:
                    raise self._refusal(error, code) from None
                call.why = str(error.details())
            self._reconnect()
            time.sleep(_RETRY_S)

    def _reconnect(self) -> None:
        if self._revive is None:
            return
        address = self._revive()
        with self._lock:
            if address != self.address:
                self._connect(address)

    def stream(self, method: str, request: Any) -> "Iterator[Any]":
        """Answers until there are no more, or the server is gone."""
        try:
            yield from self._bound(method, type(request), "unary_stream")(request, wait_for_ready=True)
        except self._grpc.RpcError as error:
            code = str(error.code().name)
            if code not in ("CANCELLED", "UNAVAILABLE"):
                raise self._refusal(error, code) from None

    def hold(self, method: str, request: Any, ended: "Callable[[], None]") -> Any:
        """A stream that is open until its `cancel()`, or until the server or the connection ends it:
        then a thread of gRPC calls `ended`, and `code()` says why. Fails at once where the server is
        away, since it may come back at another address."""
        held = self._bound(method, type(request), "unary_stream")(request)
        if not held.add_callback(ended):
            ended()
        return held

    def send(self, method: str, requests: "Iterator[Any]", kind: Any, timeout: float) -> Any:
        """Many requests of class `kind`, one answer. Sent once."""
        try:
            return self._bound(method, kind, "stream_unary")(requests, timeout=timeout,
                                                             wait_for_ready=True)
        except self._grpc.RpcError as error:
            raise self._refusal(error, str(error.code().name)) from None

    def _bound(self, method: str, kind: Any, way: str = "unary_unary") -> "Callable[..., Any]":
        """`kind`: the class of the request, which names the answer's."""
        if method not in self._methods:
            answer = kind.DESCRIPTOR.name.removesuffix("Request") + "Response"
            self._methods[method] = getattr(self._channel, way)(
                f"/hpo.v1.{method}", request_serializer=kind.SerializeToString,
                response_deserializer=message(answer).FromString)
        return self._methods[method]

    def _refusal(self, error: Any, code: str) -> HpoError:
        text = str(error.details())
        if code in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
            text = f"the server at {self.address} does not answer: {text}"
        return InvalidInput(text) if code == "INVALID_ARGUMENT" else ServerError(code, text)
