#!/usr/bin/env python3
"""Runs described training steps (docs/step-description.md) with torch.nn on an emulated
card and writes what torch's caching allocator was asked for, event by event.

The card is emulated: the genuine kernels' host code and allocator of torch run, and no kernel does.
So every allocation is torch's own, also those inside a kernel's launcher. Nothing here needs a GPU.
Needs Python 3.11, the torch that scripts/bootstrap unpacks (2.11.0+cu130) and, in a folder DIR, its
requirements:
    pip install --target DIR typing_extensions sympy networkx jinja2 filelock fsspec mpmath numpy
    export PYTHONPATH=$HOME/.cache/hpo/torch-2.11.0:DIR
    scripts/with_emulated_card a100 python3.11 scripts/reference/described_steps.py \\
        golden tests/golden/described_steps.json
    ... described_steps.py published bench/published/memory_published.csv bench/published/memory_published_dry_runs.csv
    ... described_steps.py published bench/published/memory_published_base.csv \\
        bench/published/memory_published_base_dry_runs.csv
    ... described_steps.py models tests/golden/known_model_peaks.json

`golden` writes the events of CASES, `models` the peaks of MODELS, which are transformers' (install
transformers==5.23.0 to DIR too). `published` runs the programs of published measurements (rows
as in bench/published/memory_published.csv) as their authors did, to the end of an epoch and beyond, and
writes each one's peaks.
"""

import csv
import gc
import json
import sys

import torch
from event_order import ordered
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
PUBLISHED = {
    "layers": [
        {"type": "embedding", "rows": 700962, "width": 768},
        {"type": "positions", "rows": 512},
        {"type": "encoder", "layers": 2, "heads": 8, "feed_forward": 1663},
        {"type": "pooling", "kind": "mean"},
        {"type": "linear", "out": 553},
    ],
    "batch": 32, "length": 512, "warm_up_forwards": 2, "steps": 2, "last_batch": 7,
}


def small(layers=2, heads=4, feed_forward=80, width=32, rows=4, length=16, **members):
    """An encoder of few and small tensors."""
    encoder = {key: members.pop(key) for key in ("norm", "activation", "dropout", "checkpointing")
               if key in members}
    return {
        "layers": [
            {"type": "embedding", "rows": 96, "width": width},
            {"type": "positions", "rows": length},
            {"type": "encoder", "layers": layers, "heads": heads, "feed_forward": feed_forward,
             **encoder},
            {"type": "pooling", "kind": members.pop("pooling", "mean")},
            {"type": "linear", "out": 5},
        ],
        "batch": rows, "length": length, "steps": 2, **members,
    }


CASES = {
    "published": PUBLISHED,
    "small": small(),
    "sorted indices": small(rows=32, length=128, warm_up_forwards=1, last_batch=3),
    "scratch of sums": small(width=128, feed_forward=332, rows=64, length=128),
    "wide": small(width=1024, heads=16, feed_forward=2864, rows=8, length=64, layers=1),
    "one row": small(rows=1, length=32),
    "odd length": small(length=19),
    "norm first": small(norm="pre", activation="gelu"),
    "no dropout": small(dropout=0.0, activation="gelu"),
    "first token": small(pooling="first_token"),
    "checkpointing": small(checkpointing=True),
    "accumulation and clipping": small(accumulation=3, clip=True),
    "evaluations": small(evaluates_first=True, evaluates=True),
    "adam-loop": small(optimizer="adam-loop"),
    "adam-fused": small(optimizer="adam-fused"),
    "sgd": small(optimizer="sgd"),
    "sgd-momentum": small(optimizer="sgd-momentum"),
    "bfloat16": small(precision="bfloat16", rows=16, length=128),
    "autocast": small(precision="bfloat16-autocast", rows=16, length=128),
    "math": small(attention="math"),
    "norm first, sorted indices": small(norm="pre", rows=32, length=128, last_batch=3,
                                        warm_up_forwards=1),
    "norm first, evaluations": small(norm="pre", evaluates_first=True, evaluates=True),
    "norm first, checkpointing": small(norm="pre", checkpointing=True, layers=3),
    "bfloat16, evaluations": small(precision="bfloat16", evaluates=True),
    "bfloat16, no dropout": small(precision="bfloat16", dropout=0.0),
    "bfloat16, efficient": small(precision="bfloat16", attention="efficient"),
    "autocast, evaluations": small(precision="bfloat16-autocast", evaluates_first=True),
    "autocast, checkpointing": small(precision="bfloat16-autocast", checkpointing=True),
    "silu, evaluations": small(activation="silu", evaluates=True),
    "one head": small(heads=1),
    "one token": small(length=1),
    "one row, bfloat16": small(rows=1, precision="bfloat16"),
    "one row, norm first, math": small(rows=1, norm="pre", attention="math"),
    "long": small(length=600, rows=2, heads=2, layers=1),
    "large heads": small(width=512, heads=2, layers=1, length=48),
}
CASES["layers apart"] = {
    "layers": [
        {"type": "embedding", "rows": 96, "width": 32},
        {"type": "dropout", "probability": 0.1},
        {"type": "norm"},
        {"type": "linear", "out": 64, "bias": False},
        {"type": "activation", "function": "silu"},
        {"type": "linear", "out": 48},
        {"type": "activation", "function": "tanh"},
    ],
    "batch": 4, "length": 16, "steps": 2,
}


BERT = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512,
        "type_vocab_size": 2, "pad_token_id": 0, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
ROBERTA = {**BERT, "model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514,
           "type_vocab_size": 1, "pad_token_id": 1}
ELECTRA = {**BERT, "model_type": "electra", "embedding_size": 768}
DISTILBERT = {"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6,
              "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512,
              "activation": "gelu", "pad_token_id": 0}
DEBERTA = {**BERT, "model_type": "deberta-v2", "vocab_size": 128100, "type_vocab_size": 0,
           "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
           "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False,
           "max_relative_positions": -1, "layer_norm_eps": 1e-7}
GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "n_inner": 3072, "n_positions": 1024, "activation_function": "gelu_new"}
QWEN2 = {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "num_hidden_layers": 24,
         "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2,
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "hidden_act": "silu",
         "tie_word_embeddings": True}
LLAMA = {**QWEN2, "model_type": "llama", "vocab_size": 32000, "hidden_size": 1024,
         "num_hidden_layers": 8, "intermediate_size": 2816, "num_attention_heads": 16,
         "num_key_value_heads": 4, "max_position_embeddings": 2048, "tie_word_embeddings": False}
DECODERS = ("gpt2", "qwen2", "llama")


def of_model(config, batch, length, precision="float32", **members):
    return {"model": config, "batch": batch, "length": length, "precision": precision,
            "attention": "efficient", **members}


MODELS = {
    "bert": of_model(BERT, 32, 512),
    "bert, short": of_model(BERT, 8, 128, optimizer="adamw-fused"),
    "bert, autocast": of_model(BERT, 16, 384, "bfloat16-autocast"),
    "bert, bfloat16": of_model(BERT, 16, 384, "bfloat16"),
    "bert, checkpointing": of_model(BERT, 16, 384, checkpointing=True),
    "bert, accumulation": of_model(BERT, 8, 256, accumulation=2, clip=True),
    "roberta": of_model(ROBERTA, 16, 384, last_batch=5),
    "electra": of_model(ELECTRA, 16, 256),
    "distilbert": of_model(DISTILBERT, 16, 384),
    "deberta": of_model(DEBERTA, 8, 256),
    "deberta, autocast": of_model(DEBERTA, 8, 256, "bfloat16-autocast"),
    "gpt2": of_model(GPT2, 4, 512),
    "gpt2, autocast": of_model(GPT2, 4, 512, "bfloat16-autocast"),
    "qwen2": of_model(QWEN2, 2, 256),
    "qwen2, bfloat16": of_model(QWEN2, 4, 512, "bfloat16"),
    "llama": of_model(LLAMA, 4, 512),
    "llama, autocast": of_model(LLAMA, 4, 512, "bfloat16-autocast"),
    "llama, checkpointing": of_model(LLAMA, 4, 512, checkpointing=True),
}


# ---- Model --------------------------------------------------------------------------------------

class Positions(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, length, width))

    def forward(self, x):
        return x + self.table


class Encoder(nn.TransformerEncoder):
    def __init__(self, width, layer):
        super().__init__(
            nn.TransformerEncoderLayer(
                width, layer["heads"], layer["feed_forward"], layer.get("dropout", 0.1),
                {"silu": nn.functional.silu, "tanh": torch.tanh}.get(
                    layer.get("activation"), layer.get("activation", "relu")),
                batch_first=True, norm_first=layer.get("norm", "post") == "pre"),
            layer["layers"], enable_nested_tensor=False)
        self.checkpointing = layer.get("checkpointing", False)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointing else layer(x)
        return x


class Pooling(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.mean(dim=1) if self.kind == "mean" else x[:, 0]


ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


def build(description):
    modules, width = [], None
    for layer in description["layers"]:
        kind = layer["type"]
        if kind == "embedding":
            width = layer["width"]
            modules.append(nn.Embedding(layer["rows"], width))
        elif kind == "positions":
            modules.append(Positions(description["length"], width))
        elif kind == "encoder":
            modules.append(Encoder(width, layer))
        elif kind == "linear":
            modules.append(nn.Linear(width, layer["out"], layer.get("bias", True)))
            width = layer["out"]
        elif kind == "activation":
            modules.append(ACTIVATIONS[layer["function"]]())
        elif kind == "dropout":
            modules.append(nn.Dropout(layer["probability"]))
        elif kind == "norm":
            modules.append(nn.LayerNorm(width))
        else:
            modules.append(Pooling(layer.get("kind", "mean")))
    return nn.Sequential(*modules)


def known_model(description):
    import transformers
    options = dict(description["model"])
    kind = options.pop("model_type")
    config = transformers.AutoConfig.for_model(kind, **options)
    config.num_labels = 2
    config.use_cache = False
    if kind not in DECODERS:
        config.problem_type = "single_label_classification"  # else labels decide, which are zeros
    auto = (transformers.AutoModelForCausalLM if kind in DECODERS
            else transformers.AutoModelForSequenceClassification)
    attention = "eager" if kind == "deberta-v2" else "sdpa"
    model = auto.from_config(config, attn_implementation=attention)
    if description.get("checkpointing"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def optimizer_of(name, parameters):
    kind, _, variant = name.partition("-")
    kind = kind.removesuffix("w")
    if kind == "sgd":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9 if variant else 0.0)
    return torch.optim.Adam(parameters, fused=variant == "fused", foreach=variant == "foreach")


# ---- Record -------------------------------------------------------------------------------------

class Record:
    """Events of the allocator: +bytes of an allocation, -n for the end of the n-th. Marks: where
    phases and (with `names`) backward nodes begin."""

    def __init__(self, names):
        self.names = names
        self.marks = []
        torch.cuda.memory._record_memory_history(max_entries=10**7, context=None)

    def mark(self, name):
        stats = torch.cuda.memory_stats()
        done = stats.get("allocation.all.allocated", 0) + stats.get("allocation.all.freed", 0)
        self.marks.append([done, name])

    def name_nodes(self, root):
        seen, stack = set(), [root.grad_fn]
        while self.names and stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            node.register_prehook(lambda _, name=node.name(): self.mark(name))
            stack.extend(parent for parent, _ in node.next_functions)

    def events(self):
        numbers, events, count = {}, [], 0
        for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
            if entry["action"] == "alloc":
                count += 1
                numbers[entry["addr"]] = count
                events.append(entry["size"])
            elif entry["action"] == "free_completed":
                events.append(-numbers.pop(entry["addr"]))
        torch.cuda.memory._record_memory_history(enabled=None)
        return events


class NoRecord:
    def mark(self, name):
        pass

    def name_nodes(self, root):
        pass


# ---- Steps --------------------------------------------------------------------------------------

class Run:
    """The loop as most people write it: what a step made is held by its variables until the next
    step makes it again."""

    def __init__(self, description, record):
        self.description = description
        self.record = record
        half = description.get("precision", "float32") == "bfloat16"
        self.autocast = description.get("precision", "") == "bfloat16-autocast"
        record.mark("load")
        with torch.device("meta"):
            model = known_model(description) if "model" in description else build(description)
        self.model = model.to(torch.bfloat16 if half else torch.float32).to_empty(device=DEVICE)
        if "model" in description:
            self.model.tie_weights()  # which to_empty has untied
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self.optimizer = optimizer_of(description.get("optimizer", "adam-foreach"),
                                      self.model.parameters())
        self.criterion = nn.CrossEntropyLoss()
        self.inputs = self.labels = self.outputs = self.loss = None

    def forward(self, inputs):
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            return self.model(inputs)

    def known_loss(self):
        """As transformers' Trainer: the outputs end with the loss."""
        causal = self.description["model"]["model_type"] in DECODERS
        return self.model(input_ids=self.inputs, attention_mask=torch.ones_like(self.inputs),
                          labels=self.inputs if causal else self.labels).loss

    def take_batch(self, rows):
        layers = self.description.get("layers", [{"type": "pooling"}])
        per_token = not any(layer["type"] == "pooling" for layer in layers)
        shape = (rows, self.description["length"])
        self.inputs = torch.zeros(shape, dtype=torch.long)
        self.labels = torch.zeros(shape if per_token else (rows,), dtype=torch.long)
        self.inputs, self.labels = self.inputs.to(DEVICE), self.labels.to(DEVICE)

    def step(self, rows):
        parts = self.description.get("accumulation", 1)
        for part in range(parts):
            self.record.mark("batch")
            self.take_batch(rows)
            if part == 0:
                self.optimizer.zero_grad()
            self.record.mark("forward")
            with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
                if "model" in self.description:
                    self.loss = self.known_loss()
                else:
                    self.outputs = self.model(self.inputs)
                    self.loss = self.criterion(self.outputs.flatten(0, -2), self.labels.flatten())
            self.record.name_nodes(self.loss)
            self.record.mark("backward")
            self.loss.backward()
        if self.description.get("clip"):
            self.record.mark("gradient clipping")
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.record.mark("optimizer step")
        self.optimizer.step()

    def evaluate(self):
        self.record.mark("evaluation")
        self.model.eval()
        with torch.no_grad():
            self.forward(self.inputs)
        self.model.train()

    def run(self):
        description = self.description
        batch = description["batch"]
        self.record.mark("batch")
        if description.get("warm_up_forwards") or description.get("evaluates_first"):
            self.take_batch(batch)
        if description.get("evaluates_first"):
            self.evaluate()
        for _ in range(description.get("warm_up_forwards", 0)):
            self.record.mark("warm-up forward")
            self.forward(self.inputs)
        sizes = [batch] * description.get("steps", 3)
        if description.get("last_batch"):
            sizes += [description["last_batch"], batch]
        for rows in sizes:
            self.step(rows)
            if description.get("evaluates"):
                self.evaluate()
        self.record.mark("end")


def start():
    """With nothing held, as a new process."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    if torch.cuda.memory_reserved() != 0:
        sys.exit("described_steps.py: a run left memory behind")


def set_attention(kernel):
    torch.backends.cuda.enable_flash_sdp(kernel == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(kernel == "efficient")
    torch.backends.cuda.enable_math_sdp(kernel == "math")
    torch.backends.cuda.enable_cudnn_sdp(False)


def dry_run(description, names=False):
    start()
    set_attention(description.get("attention") or
                  ("efficient" if description.get("precision", "float32") == "float32" else "flash"))
    record = Record(names)
    run = Run(description, record)
    run.run()
    peaks = {"live_peak": torch.cuda.max_memory_allocated(),
             "reserved_peak": torch.cuda.max_memory_reserved()}
    events = record.events()
    del run
    return events, record.marks, peaks


def last_of_each_event(marks):
    """Of marks at one event the last: of nodes without events nothing is to be told."""
    return [mark for mark, after in zip(marks, marks[1:] + [[None]]) if mark[0] != after[0]]


def golden(path):
    cases = {}
    for name, description in CASES.items():
        events, _, peaks = dry_run(description)
        named, marks, _ = dry_run(description, names=True)
        if description.get("precision", "").endswith("autocast"):
            events, named = ordered(events), ordered(named)
        if named != events:
            sys.exit(f"described_steps.py: {name}: naming the nodes changes the events")
        marks = last_of_each_event(marks)
        cases[name] = {"description": description, **peaks, "marks": marks, "events": events}
    start()
    text = ",\n".join(f"{json.dumps(name)}:" + "{" + ",\n".join(
        f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
        for key, value in case.items()) + "}" for name, case in cases.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{"torch":"{torch.__version__}","cases":{{\n{text}\n}}}}\n')


def models(path):
    cases = {}
    for name, description in MODELS.items():
        start()
        set_attention("efficient")
        run = Run(description, NoRecord())
        run.run()
        cases[name] = {"description": description,
                       "live_peak": torch.cuda.max_memory_allocated(),
                       "reserved_peak": torch.cuda.max_memory_reserved()}
        del run
    text = ",\n".join(f"{json.dumps(name)}:{json.dumps(case, separators=(',', ':'))}"
                      for name, case in cases.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{"torch":"{torch.__version__}","cases":{{\n{text}\n}}}}\n')


# ---- Published measurements ---------------------------------------------------------------------

class PublishedModel(nn.Module):
    """As transformer.py of github.com/itu-rad/GPUMemNet has it."""

    def __init__(self, row):
        super().__init__()
        self.embedding = nn.Embedding(row["vocabulary"], row["width"])
        self.positions = nn.Parameter(torch.zeros(1, row["length"], row["width"]))
        layer = nn.TransformerEncoderLayer(row["width"], row["heads"], row["feed_forward"], 0.1,
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, row["layers"])
        self.head = nn.Linear(row["width"], row["classes"])

    def forward(self, ids):
        x = self.embedding(ids) + self.positions
        x = self.encoder(x)
        x = x.mean(dim=1)
        return self.head(x)


def published_run(row):
    """Two forwards, then training: whole batches, an epoch's last one, the next epoch's first."""
    with torch.device("meta"):
        model = PublishedModel(row)
    model = model.to_empty(device=DEVICE)
    batch, length = row["batch"], row["length"]
    mock_input = torch.zeros(batch, length, dtype=torch.long).to(DEVICE)
    for _ in range(2):
        model(mock_input)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    last = row["samples"] % batch
    for rows in [batch] * 4 + [last] * (last > 0) + [batch] * 2:
        inputs = torch.zeros(rows, length, dtype=torch.long)
        labels = torch.zeros(rows, dtype=torch.long)
        inputs, labels = inputs.to(DEVICE), labels.to(DEVICE)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        loss.item()
        _, predicted = torch.max(outputs, 1)
        (predicted == labels).sum().item()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def published(rows_path, path):
    set_attention("efficient")
    with open(rows_path, newline="", encoding="utf-8") as file:
        rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("batch,length,width,layers,vocabulary,live_peak_bytes,reserved_peak_bytes\n")
        for row in rows:
            start()
            live, reserved = published_run(row)
            names = [str(row[key]) for key in ("batch", "length", "width", "layers", "vocabulary")]
            file.write(",".join([*names, str(live), str(reserved)]) + "\n")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "golden":
        golden(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "models":
        models(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "published":
        published(sys.argv[2], sys.argv[3])
    else:
        sys.exit("usage: described_steps.py golden FILE | models FILE | published ROWS FILE")


if __name__ == "__main__":
    main()
