"""Configurations of a study's space, and runs of its program by itself on the emulated GPU."""

import pathlib
import random
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from dry_runs import hidden_gpus, replays  # noqa: E402

STUDIES = ROOT / "bench" / "dry_runs" / "studies"


def draw(parameters, dice):
    """A configuration, evenly from the space."""
    found = {}
    for name, kind in parameters.items():
        if "choices" in kind:
            found[name] = dice.choice(kind["choices"])
        elif "int" in kind:
            low, high = kind["int"]
            found[name] = dice.randrange(low, high + 1, kind.get("step", 1))
        else:
            low, high = kind["float"]
            found[name] = low * (high / low) ** dice.random()
    return found


def sample(study, count, seed):
    dice = random.Random(seed)
    return [draw(study["parameters"], dice) for _ in range(count)]


def option(name, value):
    """As the worker writes {args}: a flag for true, nothing for false."""
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}={value}"]


def arguments_of(study, params, folder):
    """The words after the program's name."""
    words = []
    for word in study["trainer"]["command"][2:]:
        words += ([text for name, value in params.items() for text in option(name, value)] if word == "{args}"
                  else [word.replace("{output_dir}", folder)])
    return words


class Programs:
    """Runs a study's program by itself, each in a process that was forked with its libraries loaded."""

    def __init__(self, build, study):
        modules = {"finetune_lm": ["transformers.trainer", "transformers.models.qwen2.modeling_qwen2"],
                   "train_images": ["timm", "timm.data", "timm.optim"]}
        self._study = study
        self._program = study["trainer"]["command"][1].removesuffix(".py")
        self._runner = replays.Runner(build, modules.get(self._program, []))

    def run(self, params, gpu, memory=None):
        """What runs.py finds of the configuration on the GPU with its hidden share."""
        with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
            return self._runner.run(self._program, arguments_of(self._study, params, folder), hidden_gpus.GPU,
                                    context=gpu.beyond_torch, memory=memory)

    def close(self):
        self._runner.close()


def read_study(name):
    import yaml  # pylint: disable=import-outside-toplevel

    return yaml.safe_load((STUDIES / f"{name}.yaml").read_text(encoding="utf-8"))
