"""Between workers and the server: calls are repeated, delayed, overtaken, lost on the way there or back, and sent
once more long after, with what were then their tokens."""

import concurrent.futures
import contextlib
import random
import threading
import time

import grpc

from client import OPTIONS
from simulated_client import Gate

# Also how long a quiet takes at most: while the study is paused, asking for a trial waits.
CALL_S = 5.0
LONGEST_DELAY_S = 0.3
KEPT_REQUESTS = 500
FATES = ["forward"] * 6 + ["twice", "delayed", "request lost", "answer lost"]


class Proxy(grpc.GenericRpcHandler):
    """Serves on `address` of its own until closed."""

    def __init__(self, server_address, seed):
        self._random = random.Random(seed)
        self._mutex = threading.Lock()
        self._kept = []  # (method, request) of earlier calls
        self._ended = threading.Event()
        self.counts = {}
        self.quiet = Gate()  # whoever holds it keeps every call back, once those under way are over
        self._channel = grpc.insecure_channel(server_address, OPTIONS)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        self._replayer = threading.Thread(target=self._replay, daemon=True)
        self._replayer.start()

    def close(self):
        self._ended.set()
        self._replayer.join()
        self._server.stop(grace=1).wait()
        self._channel.close()

    def service(self, handler_call_details):
        method = handler_call_details.method
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._pass_on(method, request, context))

    def _pass_on(self, method, request, context):
        with self.quiet.one_call():
            return self._handle(method, request, context)

    def _handle(self, method, request, context):
        with self._mutex:
            fate = self._random.choice(FATES)
            delay = self._random.random() * LONGEST_DELAY_S
            self._count(fate)
            self._kept.append((method, request))
            if len(self._kept) > KEPT_REQUESTS:
                self._kept.pop(self._random.randrange(KEPT_REQUESTS))
        if fate == "request lost":
            context.abort(grpc.StatusCode.UNAVAILABLE, "the proxy lost the request")
        if fate == "delayed":
            time.sleep(delay)
        try:
            answer = self._send(method, request, CALL_S)
            if fate == "twice":
                answer = self._send(method, request, CALL_S)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        if fate == "answer lost":
            context.abort(grpc.StatusCode.UNAVAILABLE, "the proxy lost the answer")
        return answer

    def _send(self, method, request, timeout):
        return self._channel.unary_unary(method)(request, timeout=timeout)

    def _count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def _replay(self):
        while not self._ended.wait(0.1):
            with self._mutex:
                if not self._kept:
                    continue
                method, request = self._random.choice(self._kept)
                self._count("replayed")
            with self.quiet.one_call(), contextlib.suppress(grpc.RpcError):  # refused, as it should be
                self._send(method, request, 1.0)
