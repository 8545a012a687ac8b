"""What a trial finds when its program starts: notes the GPUs that it sees, the memory that somebody holds of them,
and the processes of other runs of its study that are still there.

usage: trial_start.py OUTPUT_DIR FILE
"""

import json
import os
import pathlib
import subprocess
import sys


def own_line():
    """This process and those that have started it."""
    pids, pid = set(), os.getpid()
    while pid > 1:
        pids.add(pid)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        pid = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
    return pids


def others(output_dir):
    """Processes of trials of the same study: their folders lie beside this trial's."""
    entry = f"HPO_OUTPUT_DIR={output_dir.parent}/".encode()
    count = 0
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) in own_line():
            continue
        try:
            count += entry in (process / "environ").read_bytes()
        except OSError:
            continue
    return count


def held_mib():
    """Of the GPU of which most is held; all of the machine."""
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True)
    return max(int(line) for line in done.stdout.split())


def main():
    start = {"visible": len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")),
             "others": others(pathlib.Path(sys.argv[1])), "held_mib": held_mib()}
    with open(sys.argv[2], "a", encoding="utf-8") as file:
        file.write(json.dumps(start) + "\n")


if __name__ == "__main__":
    main()
