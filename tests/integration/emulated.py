"""A server and a worker on an emulated card (emulator): real programs, real LibTorch, no GPU.

What a case does not say is as on a machine with one card. Cases share nothing but read-only data.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from harness import BIN, DEADLINE_S, SOURCE, Process, wait_until

WITH_CARD = [SOURCE / "scripts" / "with_emulated_card", "--build", BIN.parent]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(10) for b in range(10)]

BERT = {
    "model_type": "bert", "architectures": ["BertForSequenceClassification"],
    "vocab_size": len(SPECIAL) + len(WORDS), "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 1024, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02,
    "layer_norm_eps": 1e-12, "pad_token_id": 0,
}


def write_model(folder, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def write_rows(path, lengths, seed):
    """One text of so many words for each of `lengths`."""
    draw = random.Random(seed)
    with open(path, "w") as out:
        for i, length in enumerate(lengths):
            words = [draw.choice(WORDS) for _ in range(length)]
            out.write(json.dumps({"text": " ".join(words), "label": ["no", "yes"][i % 2]}) + "\n")


def profile_card(card, environment):
    """The line that a worker would measure at its first start; cases need not wait for it each."""
    done = subprocess.run(
        [*map(str, WITH_CARD), card, str(BIN / "hpo-trainer"), "--profile-device", "--device",
         "cuda:0"],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(f"no profile of {card}: {done.stderr.strip()}")
    return next(line for line in done.stdout.splitlines() if line.startswith("{"))


class EmulatedDeployment:
    """One server with one study, and workers of one emulated machine."""

    def __init__(self, study, card, data, models, environment=None, profile=None):
        self.card = card
        self.data = data
        self.models = models
        self.profile = profile
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-emulated-"))
        self.environment = {"HPO_EMULATED_STATE": str(self.folder / "card"), "HPO_NUM_THREADS": "1",
                            **(environment or {})}
        self.study_file = self.folder / "study.yaml"
        self.study_file.write_text(study)
        self.processes = []
        self.address = None

    def __enter__(self):
        address = self.folder / "address"
        self.server = self.start("server", BIN / "hpo-server", "--study", self.study_file, "--db",
                                 self.folder / "hpo.db", "--listen", "127.0.0.1:0",
                                 "--address-file", address)
        wait_until(lambda: not self.server.alive() or
                   (address.exists() and address.read_text().strip()), "the server's address")
        if not self.server.alive():
            raise AssertionError(self.server.output())
        self.address = address.read_text().strip()
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, *command, environment=None, group=False):
        process = Process(name, command, self.folder, environment, group)
        self.processes.append(process)
        return process

    def on_card(self, name, *command, environment=None):
        """Starts a program of the machine with the emulated card."""
        return self.start(name, *WITH_CARD, self.card, *command, group=True,
                          environment={**self.environment, **(environment or {})})

    def start_worker(self, *options, program=BIN / "hpo-worker", shell="", environment=None):
        """`shell`: commands of a shell before the worker, such as limits."""
        state = self.folder / "state" / "w0"
        if self.profile:
            state.mkdir(parents=True, exist_ok=True)
            (state / "device_profile.json").write_text(self.profile)
        before = ["sh", "-c", f'{shell}; exec "$@"', "sh"] if shell else []
        return self.on_card("worker", *before, program, "--server", self.address, "--name", "w0",
                            "--state-dir", state.parent, "--models", self.models, "--data",
                            self.data, "--checkpoints", "none", *options, environment=environment)

    def hpo(self, *words):
        done = subprocess.run(
            [str(BIN / "hpo"), *map(str, words)], capture_output=True, text=True,
            timeout=DEADLINE_S, env={**os.environ, "HPO_SERVER": self.address}, check=False)
        if done.returncode != 0:
            raise AssertionError(f"hpo {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def trial(self, number):
        return json.loads(self.hpo("trial", "show", number, "--output", "json"))

    def logs(self):
        with contextlib.suppress(OSError):
            return "\n".join(f"---- {p.name} ----\n{p.output()[-3000:]}" for p in self.processes)
        return ""
