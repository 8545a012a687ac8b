"""Eight workers through minutes of full disk, server restarts, a wrong database and no descriptors; two workers of
one name; a program that always raises."""

import contextlib
import random
import sys
import time

from client import Channel
from deployment import Deployment, wait_until

NUM_WORKERS = 8
RECOVERY_S = 120.0


def completed(channel):
    return int(channel.study("chaos")["counts"]["completed"])


def full_disk(deployment, draw):
    deployment.fail_calls(draw.randrange(1, 50), 10_000_000, draw.choice(["ENOSPC", "EIO"]))
    time.sleep(draw.uniform(1, 5))
    deployment.heal()


def restart(deployment, draw):
    deployment.server.kill9()
    time.sleep(draw.uniform(0, 3))
    deployment.start_server()


def wrong_database(deployment, draw):
    deployment.server.kill9()
    deployment.start_server(database="other.db", studies=[])
    time.sleep(draw.uniform(0.5, 3))
    deployment.restart_server()


def no_descriptors(deployment, draw):
    with deployment.few_descriptors(0):
        time.sleep(draw.uniform(1, 4))


ACCIDENTS = [full_disk, restart, wrong_database, no_descriptors]


def workers_alive(seconds, seed, keep=False):
    """How many of eight workers live and work after so long, and why the others ended."""
    draw = random.Random(seed)
    with Deployment(trials=1_000_000, seed=seed, keep=keep) as deployment:
        deployment.start_server()
        workers = [deployment.start_worker(f"w{i}", environment={"HPO_FAKE_PACE_MS": "100"})
                   for i in range(NUM_WORKERS)]
        end = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < end:
            accident = ACCIDENTS[turn % len(ACCIDENTS)]
            turn += 1
            accident(deployment, draw)
            with contextlib.closing(Channel(deployment.address)) as channel:
                before = completed(channel)
                wait_until(lambda: completed(channel) > before, f"work after {accident.__name__}",
                           RECOVERY_S)
        with contextlib.closing(Channel(deployment.address)) as channel:
            at_work = _seen_at_work(channel)
        alive = [worker for worker in workers if worker.alive() and worker.name in at_work]
        for worker in workers:
            if worker not in alive:
                end = "is idle" if worker.alive() else f"ended with {worker.wait()}"
                print(f"{worker.name} {end}: {worker.output()[-500:]}", file=sys.stderr)
        return len(alive)


def _seen_at_work(channel):
    """Workers that hold a trial once more, until all do or it is clear that some never will."""
    seen = set()

    def look():
        seen.update(worker["name"] for worker in channel.study("chaos")["workers"]
                    if worker.get("trial"))
        return len(seen) >= NUM_WORKERS
    with contextlib.suppress(AssertionError):
        wait_until(look, "every worker at work", 30)
    return seen


def same_name(trials, seed, keep=False):
    """How many trials failed of a study that two workers of one name run."""
    with Deployment(trials=trials, seed=seed, keep=keep) as deployment:
        deployment.start_server()
        for state in ("a", "b"):
            deployment.launch(f"worker-{state}", *deployment.worker_command("same", state))
        with contextlib.closing(Channel(deployment.address)) as channel:
            wait_until(lambda: channel.study("chaos")["state"] == "STUDY_STATE_FINISHED",
                       "the study's end", 60 + trials)
            return int(channel.study("chaos")["counts"]["failed"])


def always_raising(seed, keep=False):
    """How many of 100 trials a program that always raises uses up."""
    with Deployment(trials=100, seed=seed, keep=keep) as deployment:
        deployment.start_server()
        deployment.start_worker("w", environment={"HPO_FAKE_FAULT": "exit:1"})
        with contextlib.closing(Channel(deployment.address)) as channel:
            wait_until(lambda: channel.study("chaos")["state"] == "STUDY_STATE_FINISHED",
                       "the study's end", 300)
            return len(channel.trials("chaos"))
