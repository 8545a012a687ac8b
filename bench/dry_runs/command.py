"""The command of dry runs as users call it."""

import json
import os
import subprocess
import sys


def dry_run(build, options, command, folder=None, packages=()):
    """The document of the one GPU that `options` name, with "error": None; else {"error": line}.

    `packages` are folders that the program's Python searches before those of the environment.
    """
    path = [str(build.resolve() / "python"), *map(str, packages), os.environ.get("PYTHONPATH", "")]
    env = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false",
               PYTHONPATH=os.pathsep.join(filter(None, path)))
    done = subprocess.run([sys.executable, "-m", "hpo_dryrun", "--json", *options, "--", *map(str, command)], env=env,
                          cwd=folder, capture_output=True, text=True, check=False)
    try:
        return {**json.loads(done.stdout)["gpus"][0], "error": None}
    except (json.JSONDecodeError, IndexError, KeyError):
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
