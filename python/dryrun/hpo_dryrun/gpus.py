"""The GPUs that can be emulated, as the emulator lists them, and the user's choice among them."""

import dataclasses
import difflib
import json
import os
import re
import subprocess

from .errors import UsageError
from .sizes import parse_size

MAX_COUNT = 8


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    product: str
    capability: int  # 80 is 8.0
    total_bytes: int
    aliases: tuple = ()
    kernels: object = None  # the capability whose kernels of torch run on it; 0: none; None: not known
    threads: object = None  # that it can hold at once
    multiprocessors: object = None
    sized: bool = False  # the user gave total_bytes

    @property
    def label(self):
        return f"{self.name}:{self.total_bytes >> 20}MiB" if self.sized else self.name


def known(library_folder, capabilities=None):
    """All GPUs of the emulator in `library_folder`, by its own list. `capabilities`: those that the
    program's torch has kernels for, as torch_build.TorchBuild has them."""
    program = library_folder / "emulated_card"
    env = dict(os.environ)
    if capabilities is not None:
        env["HPO_EMULATED_CAPABILITIES"] = ",".join(map(str, capabilities))
    try:
        done = subprocess.run([str(program), "--list"], env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"{program}: {error.strerror}") from error
    if done.returncode != 0:
        raise UsageError(done.stderr.strip() or f"{program} --list ended with status {done.returncode}")
    return [Gpu(name=row["name"], product=row["product"], capability=row["capability"],
                total_bytes=row["total_bytes"], aliases=tuple(row.get("aliases", ())),
                kernels=row.get("kernels"), threads=row.get("threads"),
                multiprocessors=row.get("multiprocessors")) for row in json.loads(done.stdout)]


def choose(words, all_gpus):
    """The GPUs that `--gpu` names: NAME or NAME:SIZE, several joined by commas, or `all`."""
    chosen = []
    for word in (part.strip() for text in words for part in text.split(",")):
        if word == "all":
            found = [gpu for gpu in all_gpus if gpu.kernels != 0]
        else:
            found = [_one(word, all_gpus)]
        chosen.extend(gpu for gpu in found if gpu not in chosen)
    return chosen


def _one(word, all_gpus):
    name, colon, size = word.partition(":")
    by_name = {_canonical(key): gpu for gpu in all_gpus for key in (*gpu.aliases, gpu.product, gpu.name)}
    gpu = by_name.get(_canonical(name))
    if gpu is None:
        near = [by_name[key].name for key in difflib.get_close_matches(_canonical(name), by_name, 3, 0.5)]
        meant = f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
        names = ", ".join(gpu.name for gpu in all_gpus)
        raise UsageError(f"--gpu: no GPU '{name}'{meant} (there are: {names})")
    if not colon:
        return gpu
    return dataclasses.replace(gpu, total_bytes=parse_size(size, "--gpu"), sized=True)


def _canonical(name):
    """Without what makes no difference, as the emulator does: "NVIDIA GeForce RTX 3090" is "3090"."""
    text = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"^(nvidia|geforce|tesla|rtx)+", "", text)
