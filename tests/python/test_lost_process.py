"""Python processes that are killed: their trials go on at once."""

import os
import signal
import subprocess
import sys
import time

import pytest

import hpo
from hpo import _server

SPACE = {"x": hpo.uniform(0, 1)}
CODE = """
import sys
import hpo
from hpo import _session
if sys.argv[2] == "elsewhere":
    _session._own_process = lambda: {}
study = hpo.Study("mine", {"x": hpo.uniform(0, 1)}, trials=1, server=sys.argv[1])
print(study.ask().number, flush=True)
sys.stdin.read()
"""


class Holder:
    """A process that holds the study's only trial until it is killed. `where`: "here" or "elsewhere",
    as one of another machine, of which the server sees the connection only."""

    def __init__(self, address, where):
        self.process = subprocess.Popen([sys.executable, "-c", CODE, address, where],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "0\n"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path):
    """With a TTL of 300 s: whoever waits for it fails."""
    address_file = tmp_path / "address"
    running = subprocess.Popen(
        [_server.program("hpo-server"), "--listen", "127.0.0.1:0", "--db", str(tmp_path / "hpo.db"),
         "--address-file", str(address_file), "--lease-ttl", "300s", "--log-level", "off"])
    while not address_file.exists():
        assert running.poll() is None
        time.sleep(0.01)
    yield address_file.read_text().strip()
    running.terminate()
    running.wait()


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_trial_of_a_killed_process_is_queued_again(server, where):
    holder = Holder(server, where)
    holder.kill()
    with hpo.Study("mine", server=server) as study:
        session = study.session()
        lease, answer = session.acquire(40)
        session.close()
    assert lease is not None, answer.waiting_for
    assert lease.assignment.trial == 0


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_process_that_is_only_stopped_has_lost_nothing(server, where):
    holder = Holder(server, where)
    try:
        os.kill(holder.process.pid, signal.SIGSTOP)
        with hpo.Study("mine", server=server) as study:
            time.sleep(3)  # Three looks of the server at its clients.
            assert [one.state for one in study.trials] == ["running"]
    finally:
        os.kill(holder.process.pid, signal.SIGCONT)
        holder.kill()
