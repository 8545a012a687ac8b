"""bin/sampler_runs of a build: a sampler on a problem, one process for each core."""

import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess

import deployment


def built(build):
    """bin/sampler_runs of the folder; of build/release, where none is given, built first."""
    return os.path.join(deployment.built(build, "-DHPO_BUILD_TRAINER=OFF"), "bin/sampler_runs")


def run(program, *options):
    """What it writes, as a dictionary."""
    output = subprocess.run([program, *map(str, options)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout)


def run_all(program, jobs):
    """jobs: lists of options. Their results, in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda options: run(program, *options), jobs))


def best_at(result, evaluations):
    """Of each seed, the best value after so many evaluations; infinite where there was none."""
    column = result["evaluations"].index(evaluations)
    values = [seed["best"][column] for seed in result["runs"]]
    return [float("inf") if value is None else value for value in values]


def median_at(result, evaluations):
    return statistics.median(best_at(result, evaluations))


def stored_peers():
    """What bench/sampler_peers stored; empty where it did not."""
    stored = pathlib.Path(__file__).resolve().parent / "sampler_peers.json"
    return json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
