"""A program that always raises."""

import contextlib

from client import Channel
from deployment import Deployment, wait_until


def always_raising(seed, keep=False):
    """How many of 100 trials a program that always raises uses up."""
    with Deployment(trials=100, seed=seed, keep=keep) as deployment:
        deployment.start_server()
        deployment.start_worker("w", environment={"HPO_FAKE_FAULT": "exit:1"})
        with contextlib.closing(Channel(deployment.address)) as channel:
            wait_until(lambda: channel.study("chaos")["state"] == "STUDY_STATE_FINISHED",
                       "the study's end", 300)
            return len(channel.trials("chaos"))
