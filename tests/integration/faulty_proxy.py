"""A gRPC server that forwards every unary call to a real one, or answers it as a test says.

Knows no message: bytes in, bytes out. Statuses keep their details, as a proxy's should.
"""

import concurrent.futures
import threading

import grpc

CALL_TIMEOUT_S = 60
DETAILS = "grpc-status-details-bin"


def as_it_is(data):
    return data


class FaultyProxy(grpc.GenericRpcHandler):
    def __init__(self, target):
        self._lock = threading.Lock()
        self._fault = None
        self._counts = {}
        self._target(target)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), handlers=[self])
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _target(self, address):
        self._channel = grpc.insecure_channel(address, options=[
            ("grpc.max_reconnect_backoff_ms", 200), ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 50)])

    def point_at(self, address):
        """Another server answers from now on."""
        with self._lock:
            self._target(address)

    def fail(self, code, methods=None):
        """Calls (of these methods; None: all) end with `code`; None: they are forwarded."""
        with self._lock:
            self._fault = code and (code, methods)

    def num_failed(self, *methods):
        with self._lock:
            return sum(self._counts.get(method, 0) for method in methods)

    def stop(self):
        self._server.stop(0).wait()

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]

        def answer(request, context):
            with self._lock:
                fault, channel = self._fault, self._channel
                if fault and (fault[1] is None or method in fault[1]):
                    self._counts[method] = self._counts.get(method, 0) + 1
                    context.abort(fault[0], f"{method} fails, as the test says")
            call = channel.unary_unary(details.method, request_serializer=as_it_is,
                                       response_deserializer=as_it_is)
            left = min(CALL_TIMEOUT_S, context.time_remaining() or CALL_TIMEOUT_S)
            try:
                return call(request, timeout=left)
            except grpc.RpcError as error:
                context.set_trailing_metadata(
                    [(k, v) for k, v in error.trailing_metadata() or () if k == DETAILS])
                context.abort(error.code(), error.details())

        return grpc.unary_unary_rpc_method_handler(answer, request_deserializer=as_it_is,
                                                   response_serializer=as_it_is)
