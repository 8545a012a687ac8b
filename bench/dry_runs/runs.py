"""Runs programs on emulated GPUs, each in a process of its own that is forked from this one, which has imported
torch and transformers already.

usage: scripts/with_emulated_card GPU python3 bench/dry_runs/runs.py [MODULE...], which imports these modules, too,
and reads one JSON object a line:
    program, arguments   the Python program and its arguments
    gpu, memory          of the emulated GPU; without memory, the GPU's own
    context              bytes that a process takes of it beyond torch; without, the emulator's default
    settings             of the caching allocator, as PYTORCH_ALLOC_CONF
    events               a path: the program's allocation events are recorded there (hpo_dryrun.events)
and writes one for each: allocated and reserved (peaks), retries, ran_out, usable and total (bytes), gpu
(replay.Gpu), lost (of the events), error.
"""

import importlib
import json
import os
import pathlib
import runpy
import sys
import tempfile

import torch
import transformers  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "dryrun"))
from hpo_dryrun import events  # noqa: E402


def run(task):
    os.environ["HPO_EMULATED_CARD"] = task["gpu"]
    if task.get("memory"):
        os.environ["HPO_EMULATED_MEMORY"] = task["memory"]
    if task.get("context"):
        os.environ["HPO_EMULATED_CONTEXT"] = f"{task['context']}B"
    if task.get("settings"):
        torch._C._accelerator_setAllocatorSettings(task["settings"])
    if task.get("events"):
        events.start(torch)
    sys.argv = [task["program"], *task.get("arguments", [])]
    result = {"ran_out": False}
    try:
        runpy.run_path(task["program"], run_name="__main__")
    except torch.OutOfMemoryError:
        result["ran_out"] = True
    except BaseException as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}
    stats = torch.cuda.memory_stats()
    result["allocated"] = stats["allocated_bytes.all.peak"]
    result["reserved"] = stats["reserved_bytes.all.peak"]
    result["retries"] = stats["num_alloc_retries"]
    result["ooms"] = stats["num_ooms"]
    free, result["total"] = torch.cuda.mem_get_info()
    result["usable"] = free + torch.cuda.memory_reserved()
    properties = torch.cuda.get_device_properties(0)
    result["gpu"] = [10 * properties.major + properties.minor, properties.multi_processor_count,
                     properties.max_threads_per_multi_processor]
    if task.get("events"):
        result["lost"] = events.write(task["events"])["lost"]
    return result


def main():
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        task = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
            answer = os.path.join(folder, "answer")
            child = os.fork()
            if child == 0:
                os.environ["HPO_EMULATED_STATE"] = os.path.join(folder, "state")
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                pathlib.Path(answer).write_text(json.dumps(run(task)), encoding="utf-8")
                os._exit(0)
            _, status = os.waitpid(child, 0)
            path = pathlib.Path(answer)
            print(path.read_text(encoding="utf-8") if path.exists()
                  else json.dumps({"error": f"ended with status {status}"}), flush=True)


if __name__ == "__main__":
    main()
