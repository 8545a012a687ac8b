"""A token that holds as much as it can get: others are served meanwhile, administrators above all."""

import contextlib
import threading
import unittest

from harness import DEADLINE_S
from secured import LONG_STUDY, PREFACE, Secured

try:
    import grpc
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed; scripts/bootstrap --tests brings it"

NUM_DESCRIPTORS = 600
NUM_CONNECTIONS = 200
NUM_STREAMS = 2_100
STREAMS_OF_A_CONNECTION = 500
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


@unittest.skipIf(MISSING, MISSING)
class Streams(Secured):
    STUDY = LONG_STUDY

    def setUp(self):
        super().setUp()
        self.server = self.start_secured()

    def open_streams(self, join, name, method, number, opened):
        """Opens idle streams of one token, which end when `opened` closes."""
        address = self.connect(join, name)
        over = threading.Event()

        def nothing():
            over.wait(DEADLINE_S)
            yield from ()

        for first in range(0, number, STREAMS_OF_A_CONNECTION):
            channel = opened.enter_context(grpc.insecure_channel(address, options=[
                ("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]))
            call = channel.stream_stream(method, request_serializer=bytes, response_deserializer=bytes)
            for _ in range(min(STREAMS_OF_A_CONNECTION, number - first)):
                opened.callback(call(nothing(), timeout=DEADLINE_S).cancel)
        opened.callback(over.set)

    def await_refusal(self, who, method):
        self.audited(event="refused", who=who, method=method, result="RESOURCE_EXHAUSTED")

    def test_streams_of_two_tokens_take_no_thread_that_others_need(self):
        with contextlib.ExitStack() as opened:
            for name in ("read", "another"):
                join = self.join("read") if name == "read" else self.new_token("another", "read")
                self.open_streams(join, name, REFLECTION, NUM_STREAMS, opened)
                self.await_refusal(name, REFLECTION)
            for name in ("write", "admin"):
                done = self.run_as(self.join(name), "status")
                self.assertEqual(done.returncode, 0, done.stderr)
            self.hpo("admin", "token", "revoke", "another")


class Connections(Secured):
    """A server with few descriptors, so that there are few connections to have."""

    STUDY = LONG_STUDY

    def start(self, name, *command, **more):
        limit = ("prlimit", f"--nofile={NUM_DESCRIPTORS}") if name == "server" else ()
        return super().start(name, *limit, *command, **more)

    def test_a_token_holds_no_connection_that_others_need(self):
        self.start_secured()
        context = self.context(self.identity(self.join("read")))
        with contextlib.ExitStack() as opened:
            for _ in range(NUM_CONNECTIONS):
                with contextlib.suppress(OSError):
                    opened.enter_context(context.wrap_socket(opened.enter_context(self.dial()))).sendall(PREFACE)
            self.audited(event="handshake", who="read", result="RESOURCE_EXHAUSTED", why="connections, the most")
            for name in ("write", "admin"):
                done = self.run_as(self.join(name), "status")
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
