"""Many studies through one server: what it holds must not grow with what it has done."""

import contextlib
import os
import sys
import time

from client import Channel
from deployment import Deployment, wait_until
from ledger import Ledger
from simulated_client import Gate
from simulated_workers import SimulatedWorker

NUM_WORKERS = 6
# Pools of threads shrink when nobody calls: gRPC's poll for 10 s before one too many of them ends.
# The least of some looks over a longer time counts.
SETTLING_S = 15.0
LOOKS = 30


def footprint(deployment):
    """WAL bytes, descriptors, threads and resident bytes of the server."""
    pid = deployment.server.pid
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        status = dict(line.split(":", 1) for line in lines)
    return {"wal": os.path.getsize(deployment.folder / "hpo.db-wal"),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": int(status["Threads"]), "rss": int(status["VmRSS"].split()[0]) * 1024}


def run(studies, trials, seed, keep=False):
    """(drift of WAL, descriptors and threads since the first tenth; RSS over that of a restart), as factors."""
    with Deployment(trials=trials, seed=seed, ttl="60s", keep=keep) as deployment:
        files = [deployment.write_study(f"soak{i}", trials, seed + i) for i in range(studies)]
        deployment.start_server(studies=files)
        ledger, gate = Ledger(), Gate()
        workers = [SimulatedWorker(deployment.address, f"sim{i}", ledger, gate, seed + i)
                   for i in range(NUM_WORKERS)]
        for worker in workers:
            worker.honest.set()
            worker.start()
        try:
            early = _after(studies * trials // 10, ledger, gate, deployment)
            late = _after(studies * trials, ledger, gate, deployment)
        finally:
            for worker in workers:
                worker.stop()
        deployment.server.terminate()
        deployment.start_server(studies=files)
        with contextlib.closing(Channel(deployment.address)) as channel:
            channel.study("soak0")
        fresh = footprint(deployment)
    print(f"soak: early {early}, late {late}, restarted {fresh}", file=sys.stderr)
    drift = max(abs(late[name] / early[name] - 1) for name in ("wal", "descriptors", "threads"))
    return drift, late["rss"] / fresh["rss"]


def _after(results, ledger, gate, deployment):
    """The footprint once so many results are there and nobody calls."""
    wait_until(lambda: ledger.count() >= results, f"{results} results", 60 + results)
    with gate:
        looks = []
        for _ in range(LOOKS):
            time.sleep(SETTLING_S / LOOKS)
            looks.append(footprint(deployment))
        return {name: min(look[name] for look in looks) for name in looks[0]}
