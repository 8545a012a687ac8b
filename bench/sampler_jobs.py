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


def values_at(result, count, key):
    """Of each seed, what it writes as `key` after so many evaluations or checkpoints."""
    counts = result["checkpoints"] if "checkpoints" in result else result["evaluations"]
    return [seed[key][counts.index(count)] for seed in result["runs"]]


def best_at(result, count):
    """Of each seed, the best value after so many evaluations or checkpoints; infinite where there was none."""
    return [float("inf") if value is None else value for value in values_at(result, count, "best")]


def median_at(result, count):
    return statistics.median(best_at(result, count))


def stored_peers():
    """What bench/sampler_peers stored; empty where it did not."""
    stored = pathlib.Path(__file__).resolve().parent / "results/sampler_peers.json"
    return json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
