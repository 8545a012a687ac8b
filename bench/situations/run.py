"""Situations of bench/waits in which `hpo run` searches for a program of the user's, or for our trainer."""

import json
import os
import signal
import socket
import struct
import sys

from .python import can_mount, cut_off, fill, wait_for
from .watch import EITHER, REFUSAL, WAITS, Situation

STUDY = """\
name: toy
objective: {metric: loss, direction: minimize}
trainer: {command: [%s]}
budget: {trials: %d%s}
sampler: {type: random, seed: 1}
parameters:
  x: {float: [0, 1]}
"""
TRAIN = """\
import json, os, pathlib, resource, signal, sys, time
x = float(sys.argv[1])
mark = pathlib.Path(__file__).with_name("once")
first = not mark.exists()
mark.touch()
%s
print(json.dumps({"loss": x}))
"""


def run(world, *words, memory="1GiB"):
    return [world.build / "bin/hpo", "run", world.folder / "study.yaml", "--device", "cpu", "--memory-limit", memory,
            "--dir", world.storage, *words]


def program(body="", trials=6, budget="", memory="1GiB"):
    """`hpo run` over a Python program of the user's."""
    def begin(world):
        world.write("train.py", TRAIN % body)
        world.write("study.yaml", STUDY % (f'"{sys.executable}", train.py, "{{x}}"', trials, budget))
        return run(world, memory=memory)
    return begin


def command(words, trials=6):
    def begin(world):
        world.write("study.yaml", STUDY % (words, trials, ""))
        return run(world)
    return begin


def not_executable(world):
    world.write("train.sh", "echo '{\"loss\": 1}'\n").chmod(0o644)
    return command('./train.sh, "{x}"')(world)


SLOW = "time.sleep(0.5)"
PROGRAMS = [
    Situation("run_completes", program(), says=("best trial",)),
    Situation("run_program_of_forty_seconds", program("time.sleep(40)", trials=1), says=("best trial",)),
    Situation("run_program_does_not_exist", command('no-such-program, "{x}"'), REFUSAL, ("no-such-program",)),
    Situation("run_program_is_not_executable", not_executable, REFUSAL, ("train.sh",)),
    Situation("run_script_does_not_exist", command(f'"{sys.executable}", no-such.py, "{{x}}"'), REFUSAL,
              ("no-such.py",)),
    Situation("run_program_fails", program("sys.exit('no such column')"), REFUSAL, ("no such column",)),
    Situation("run_program_crashes", program("os.abort()"), REFUSAL, ("SIGABRT|signal 6",)),
    Situation("run_program_hangs_with_a_time_limit", program("if first: time.sleep(1000)", trials=3,
                                                             budget=", trial_wall_clock: 3s"),
              says=("best trial", "time")),
    Situation("run_program_always_hangs", program("time.sleep(1000)", trials=3, budget=", trial_wall_clock: 3s"),
              REFUSAL, ("time",)),
    Situation("run_program_hangs_without_a_limit", program("time.sleep(1000)", trials=3), WAITS, ("run",)),
    Situation("run_no_metric", program("print('done'); sys.exit()"), REFUSAL, ("loss",)),
    Situation("run_another_metric", program("print(json.dumps({'accuracy': x})); sys.exit()"), REFUSAL, ("loss",)),
    Situation("run_one_oom", program("if first: raise MemoryError('CUDA out of memory')"), says=("best trial",)),
    Situation("run_every_trial_out_of_memory", program("raise MemoryError('CUDA out of memory')"), REFUSAL,
              ("memory",)),
    Situation("run_every_trial_over_the_limit", program("held = bytearray(300 << 20); time.sleep(3)",
                                                        memory="64MiB"), REFUSAL, ("memory",)),
    Situation("run_program_closes_its_output", program("os.close(1); os.close(2)"), REFUSAL,
              ("printed nothing",)),
    Situation("run_program_writes_without_end", program("[sys.stdout.write('.' * 100000) for _ in range(500)]; print()"),
              says=("best trial",)),
    Situation("run_leaves_a_child", program(
        "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)", trials=2),
        says=("best trial",)),
]


# --- its folder, its server, a second one -----------------------------------------------------------------

def run_for_long(world):
    return program(SLOW, trials=300)(world)


def completed(running, number=1):
    if not running.wait_for(rf"trial {number} COMPLETED"):
        raise RuntimeError(f"trial {number} did not complete")


def second_at_once(world):
    first = world.start(run_for_long(world))
    completed(first)
    return run(world)


def first_of_two(world, running):
    """The one that runs goes on where a second one is started, and can still be looked at."""
    completed(running)
    address = (world.storage / "address").read_text().strip()
    world.run(run(world))
    completed(running, 4)
    again = world.storage / "address"
    if not again.exists() or again.read_text().strip() != address:
        raise RuntimeError("the second run took the first one's address away")


def after_kill(world):
    first = world.start(program(SLOW, trials=8)(world))
    completed(first)
    first.process.kill()
    first.wait(10)
    return run(world)


def storage_is_a_file(world):
    world.storage.write_text("")
    return run_for_long(world)


def not_writable(world):
    world.storage.mkdir()
    world.storage.chmod(0o555)
    return cut_off(world, "dac_override") + run_for_long(world)


def garbage(world):
    world.storage.mkdir()
    (world.storage / "hpo.db").write_bytes(bytes(range(256)) * 64)
    return run_for_long(world)


def on_a_small_disk(world):
    world.storage = world.small_disk("8m") / "storage"
    return run_for_long(world)


def signalled(number, *words):
    """Sends the signal to the one process whose command has the words."""
    def during(world, running):
        completed(running)
        os.kill(min(world.processes(*words)), number)  # a copy that has not become a trainer yet is younger
    return during


def ordered(*words):
    def during(world, running):
        completed(running)
        done = world.cli(*words)
        if done.process.returncode != 0:
            raise RuntimeError(done.output)
    return during


def fill_disk(world, running):
    completed(running)
    fill(world)


def without_program(name):
    """A folder of programs in which one is missing."""
    def begin(world):
        folder = world.folder / "bin"
        folder.mkdir()
        for path in (world.build / "bin").iterdir():
            if path.name != name:
                os.link(path, folder / path.name) if _same_disk(path, folder) else (folder / path.name).symlink_to(path)
        words = run_for_long(world)
        return [folder / "hpo", *words[1:]]
    return begin


def _same_disk(one, other):
    return one.stat().st_dev == other.stat().st_dev


def behind_a_proxy(world):
    world.environment |= {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "grpc_proxy")}
    return program()(world)


def port_in_use(world):
    listener = socket.create_server(("127.0.0.1", 0))
    world.listener = listener
    return [world.build / "bin/hpo-server", "--db", world.folder / "hpo.db", "--listen",
            f"127.0.0.1:{listener.getsockname()[1]}"]


FOLDERS = [
    Situation("run_a_second_one_at_once", second_at_once, REFUSAL, ("in use|another|already",)),
    Situation("run_the_first_of_two", run_for_long, WAITS, during=first_of_two),
    Situation("run_after_kill_9", after_kill, says=("best trial",)),
    Situation("run_folder_is_a_file", storage_is_a_file, REFUSAL, ("storage",)),
    Situation("run_folder_is_not_writable", not_writable, REFUSAL, ("storage",)),
    Situation("run_database_is_garbage", garbage, REFUSAL, ("hpo.db|not a database",)),
    Situation("run_server_killed", run_for_long, REFUSAL, ("server",),
              during=signalled(signal.SIGKILL, "bin/hpo-server", "--db")),
    Situation("run_worker_killed", run_for_long, REFUSAL, ("worker",),
              during=signalled(signal.SIGKILL, "bin/hpo-worker", "--state-dir")),
    Situation("run_worker_stopped", run_for_long, WAITS, ("worker.*(silent|heard|heartbeat|answer)|lease|suspect|gone",),
              during=signalled(signal.SIGSTOP, "bin/hpo-worker", "--state-dir")),
    Situation("run_server_stopped", run_for_long, WAITS, ("not answer",),
              during=signalled(signal.SIGSTOP, "bin/hpo-server", "--db")),
    Situation("run_stopped_from_elsewhere", run_for_long, EITHER, ("stop",), during=ordered("study", "stop")),
    Situation("run_paused_from_elsewhere", run_for_long, WAITS, ("pause",), during=ordered("study", "pause")),
    Situation("run_interrupted", run_for_long, REFUSAL, ("to go on",),
              during=lambda _, running: completed(running) or os.kill(running.process.pid, signal.SIGINT)),
    Situation("run_without_hpo_server", without_program("hpo-server"), REFUSAL, ("hpo-server",)),
    Situation("run_without_hpo_worker", without_program("hpo-worker"), REFUSAL, ("hpo-worker",)),
    Situation("run_behind_a_proxy", behind_a_proxy, says=("best trial",)),
    Situation("server_port_in_use", port_in_use, REFUSAL, (r"127.0.0.1:\d+ is in use",)),
] + ([
    Situation("run_disk_full", on_a_small_disk, WAITS, (r"\bfull\b|no space",), during=fill_disk),
] if can_mount() else [])

# --- our trainer: models and data -------------------------------------------------------------------------

TRAINED = """\
name: head
objective: {metric: accuracy, direction: maximize}
trainer: {train: train.jsonl, validation: valid.jsonl, epochs: 1}
budget: {trials: 2, failures_in_a_row: 1}
parameters:
  model.name: {choices: [tiny]}
  tok.max_length: {choices: [16]}
  train.batch_size: {choices: [8]}
  train.lr: {float: [1.0e-3, 2.0e-3], log: true}
"""
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
CONFIG = {"architectures": ["BertModel"], "model_type": "bert", "attention_probs_dropout_prob": 0.1,
          "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 8, "initializer_range": 0.02,
          "intermediate_size": 8, "layer_norm_eps": 1e-12, "max_position_embeddings": 32, "num_attention_heads": 2,
          "num_hidden_layers": 1, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": len(WORDS)}


def bert_shapes():
    """The tensors of CONFIG's model."""
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {"word_embeddings": (len(WORDS), width), "position_embeddings": (32, width),
              "token_type_embeddings": (2, width)}
    found = {f"bert.embeddings.{name}.weight": shape for name, shape in shapes.items()}

    def layer(name, *shape):
        found.update({f"{name}.weight": shape, f"{name}.bias": shape[:1]})

    layer("bert.embeddings.LayerNorm", width)
    prefix = "bert.encoder.layer.0."
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        layer(prefix + name, width, width)
    layer(prefix + "intermediate.dense", inner, width)
    layer(prefix + "output.dense", width, inner)
    layer(prefix + "attention.output.LayerNorm", width)
    layer(prefix + "output.LayerNorm", width)
    layer("bert.pooler.dense", width, width)
    return found


def safetensors():
    header, at = {}, 0
    for name, shape in bert_shapes().items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def model(without=(), keys=(), files=None, **changes):
    """`hpo run` with a model folder that lacks files and keys of its configuration, and has others."""
    def begin(world):
        folder = world.folder / "models" / "tiny"
        folder.mkdir(parents=True)
        config = {key: value for key, value in {**CONFIG, **changes}.items() if key not in keys}
        made = {"config.json": json.dumps(config).encode(), "vocab.txt": "\n".join(WORDS).encode() + b"\n",
                "model.safetensors": safetensors(), **(files or {})}
        for name, data in made.items():
            if name not in without:
                (folder / name).write_bytes(data)
        return with_data(world)
    return begin


def with_data(world, lines=8):
    (world.folder / "data").mkdir()
    rows = "".join(json.dumps({"text": "good film" if i % 2 else "bad film", "label": "ab"[i % 2]}) + "\n"
                   for i in range(lines))
    for name in ("train.jsonl", "valid.jsonl"):
        (world.folder / "data" / name).write_text(rows)
    world.write("study.yaml", TRAINED)
    return run(world, "--models", world.folder / "models", "--data", world.folder / "data")


def without_data(world):
    words = model()(world)
    (world.folder / "data" / "train.jsonl").unlink()
    return words


def without_models(world):
    return with_data(world)


def another_name(world):
    words = model()(world)
    (world.folder / "models" / "tiny").rename(world.folder / "models" / "other")
    return words


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 440449768\n"
TRAINER = ("hpo-trainer",)
MODELS = [Situation(f"run_{name}", begin, ends, says, needs=TRAINER) for name, begin, ends, says in [
    ("model_trains", model(), "result", ("best trial",)),
    ("model_without_model_type", model(keys=["model_type"]), REFUSAL, ("model_type",)),
    ("model_of_unknown_architecture", model(model_type="mamba", architectures=["MambaModel"]), REFUSAL, ("mamba",)),
    ("model_is_a_git_lfs_pointer", model(files={"model.safetensors": POINTER}), REFUSAL, ("lfs",)),
    ("model_without_weights", model(without=["model.safetensors"]), REFUSAL, ("safetensors",)),
    ("model_without_tokenizer", model(without=["vocab.txt"]), REFUSAL, ("token|vocab",)),
    ("model_without_config", model(without=["config.json"]), REFUSAL, ("config.json",)),
    ("model_config_is_no_json", model(files={"config.json": b"{"}), REFUSAL, ("config.json",)),
    ("model_has_another_name", another_name, REFUSAL, ("tiny",)),
    ("models_folder_is_missing", without_models, REFUSAL, ("models",)),
    ("data_file_is_missing", without_data, REFUSAL, ("train.jsonl",)),
]]
SITUATIONS = [*PROGRAMS, *FOLDERS, *MODELS]
