"""Optuna's own tests of a storage, against a real hpo-server: `pytest optuna_storage.py`, run by
test_optuna_storage.py and bench/optuna_storage. HPO_BIN_DIR names the server's folder."""

import os
import pathlib
import subprocess
import tempfile
import threading
import time

import optuna
import pytest
from optuna.testing.pytest_storages import StorageTestCase

# Each of these two passes or fails by chance: a trial's parameters travel in a protobuf map, which has no order in
# Python. With Optuna's own server it is the same.
BY_CHANCE = ["test_get_all_trials_params_order[param_names0]", "test_get_all_trials_params_order[param_names1]"]
START_S = 60.0


class Server:
    """An hpo-server without studies in a folder of its own."""

    def __init__(self, folder):
        self.address_file = pathlib.Path(folder) / "address"
        self.child = subprocess.Popen(
            [f"{os.environ['HPO_BIN_DIR']}/hpo-server", "--db", f"{folder}/hpo.db", "--listen", "127.0.0.1:0",
             "--address-file", str(self.address_file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end, pause = time.monotonic() + START_S, threading.Event()
        while not (self.address_file.exists() and self.address_file.read_text().strip()):
            if self.child.poll() is not None or time.monotonic() > end:
                raise RuntimeError("hpo-server did not start")
            pause.wait(0.01)
        host, _, port = self.address_file.read_text().strip().rpartition(":")
        self.host, self.port = host, int(port)

    def close(self):
        self.child.terminate()
        self.child.wait(START_S)


class TestHpoServer(StorageTestCase):
    @pytest.fixture
    def storage(self):
        with tempfile.TemporaryDirectory(prefix="hpo-optuna-") as folder:
            server = Server(folder)
            proxy = optuna.storages.GrpcStorageProxy(host=server.host, port=server.port)
            yield proxy
            proxy.close()
            server.close()
