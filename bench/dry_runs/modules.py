"""What a program imports.

usage: python3 modules.py record PATH PROGRAM ARGUMENTS   runs the program until its third optimizer step, on an
                                                          emulated GPU, and writes the names of its modules
       python3 modules.py load PATH                       imports the modules of these names, and does nothing else
"""

import contextlib
import importlib
import json
import os
import pathlib
import runpy
import sys

STEPS = 3


def record(path, program, arguments):
    import torch
    num_steps = 0

    def after_step(*_):
        nonlocal num_steps
        num_steps += 1
        if num_steps == STEPS:
            pathlib.Path(path).write_text(json.dumps(list(sys.modules)), encoding="utf-8")
            os._exit(0)

    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(after_step)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")
    sys.exit(f"{program}: expected {STEPS} steps of an optimizer of torch's, got {num_steps}")


def load(path):
    for name in json.loads(pathlib.Path(path).read_text(encoding="utf-8")):
        with contextlib.suppress(Exception):  # some are made by others, and are no files
            importlib.import_module(name)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        load(sys.argv[2])
