#!/usr/bin/env python3
"""Writes tests/golden/model_traces.json: what a forward and backward of Hugging Face's models
allocates and frees on a CUDA device, in order.

The models run on FakeTensors: torch's dispatcher and autograd work as on a GPU, kernels are
replaced by their output shapes. So every tensor that an operation returns or keeps is seen, and
temporaries inside a kernel are not. Needs the CUDA build of torch; a GPU is not needed (a stand-in
for the runtime is compiled and preloaded). Run in a virtual environment with
    pip install torch==2.11.0 transformers==5.23.0 peft==0.21.2
    scripts/reference/model_traces.py tests/golden/model_traces.json

Two things differ from tensors of a real device and are undone or marked here: scatter_add writes
into its zeros there; and gradients that meet are always summed into a new tensor here
("sums_in_place": false), there only when somebody else holds the first.
"""

import json
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS, TOKENS, NUM_LABELS = 3, 6, 5

ENCODER = dict(vocab_size=96, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=40, max_position_embeddings=24, hidden_act="gelu",
               hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, layer_norm_eps=1e-5,
               pad_token_id=0)
BERT = dict(ENCODER, model_type="bert", type_vocab_size=2)
ROBERTA = dict(ENCODER, model_type="roberta", type_vocab_size=1, pad_token_id=1)
DEBERTA = dict(ENCODER, model_type="deberta-v2", type_vocab_size=0, relative_attention=True,
               max_relative_positions=-1, position_buckets=7, norm_rel_ebd="layer_norm",
               share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

DECODER = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, intermediate_size=40, max_position_embeddings=24,
               rms_norm_eps=1e-5, use_cache=False)
LLAMA = dict(DECODER, model_type="llama", tie_word_embeddings=False)
QWEN2 = dict(DECODER, model_type="qwen2", tie_word_embeddings=True)
DECODERS = ("llama", "qwen2")

CASES = {
    "bert": (BERT, TOKENS),
    "bert, no dropout": (dict(BERT, **NO_DROPOUT), TOKENS),
    "bert, aligned length": (BERT, 8),
    "bert, autocast": (dict(BERT, num_attention_heads=2), 8, "autocast"),
    "bert, bfloat16": (dict(BERT, num_attention_heads=2), 8, "bfloat16"),
    "roberta": (ROBERTA, TOKENS),
    "deberta-v3": (DEBERTA, TOKENS),
    "deberta-v3, no dropout": (dict(DEBERTA, **NO_DROPOUT), TOKENS),
    "deberta-v3, autocast": (DEBERTA, TOKENS, "autocast"),
    "deberta-v3, bfloat16": (DEBERTA, TOKENS, "bfloat16"),
    "deberta-v2, convolution": (dict(DEBERTA, conv_kernel_size=3, conv_act="gelu"), TOKENS),
    "deberta, own projections": (
        dict(DEBERTA, share_att_key=False, position_buckets=-1, max_relative_positions=9,
             position_biased_input=True, type_vocab_size=2, norm_rel_ebd="none"), TOKENS),
    "deberta, contents to positions": (dict(DEBERTA, pos_att_type="c2p", share_att_key=False),
                                       TOKENS),
    "llama": (LLAMA, TOKENS),
    "llama, bfloat16": (LLAMA, TOKENS, "bfloat16"),
    "llama, every head its keys": (dict(LLAMA, num_key_value_heads=4), 8, "bfloat16"),
    "qwen2": (QWEN2, TOKENS),
    "qwen2, bfloat16": (QWEN2, 8, "bfloat16"),
    "llama, lora": (LLAMA, TOKENS, "float32", {"rank": 4, "targets": "all-linear"}),
    "llama, lora, bfloat16": (LLAMA, TOKENS, "bfloat16", {"rank": 4, "targets": "all-linear"}),
    "llama, every head its keys, lora": (dict(LLAMA, num_key_value_heads=4), 8, "bfloat16",
                                         {"rank": 4, "targets": ["q_proj", "v_proj"]}),
    "qwen2, lora": (QWEN2, TOKENS, "bfloat16", {"rank": 4, "targets": ["q_proj", "v_proj"]}),
    "qwen2, lora with dropout": (QWEN2, 8, "bfloat16",
                                 {"rank": 4, "targets": "all-linear", "dropout": 0.1}),
    "deberta, absolute": (
        dict(DEBERTA, relative_attention=False, position_biased_input=True, pos_att_type=[],
             embedding_size=8, norm_rel_ebd="none"), TOKENS),
}


def with_stand_in():
    """Starts this script again with the stand-in preloaded, unless it is or a GPU is there."""
    if "HPO_STAND_IN" in os.environ or Path("/dev/nvidia0").exists():
        return
    import torch
    include = next(Path(torch.__file__).parents[1].glob("nvidia/**/driver_types.h")).parent
    library = Path(tempfile.mkdtemp()) / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{include}", "-Wl,-soname,libcuda.so.1",
                    str(HERE / "cuda_stand_in.c"), "-o", str(library)], check=True)
    environment = dict(os.environ, HPO_STAND_IN="1", LD_PRELOAD=str(library))
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


with_stand_in()

import torch  # noqa: E402
import transformers  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402

torch.cuda.is_available = lambda: False  # no context is made for FakeTensors
torch.autograd.set_multithreading_enabled(False)


class Recorder(TorchDispatchMode):
    """Events in order: +bytes of a new tensor's memory, -n for the end of the n-th."""

    def __init__(self, known):
        super().__init__()
        self.names = {tensor.untyped_storage()._cdata: 0 for tensor in known}
        self.events = []
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        written = args[0] if function is torch.ops.aten.scatter_add.default else None
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                self.see(tensor, written)
        return result

    def see(self, tensor, written):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.names:
            return
        if written is not None:
            name = self.names[written.untyped_storage()._cdata]
        else:
            self.count += 1
            name = self.count
            self.events.append(storage.nbytes())
        self.names[key] = name
        weakref.finalize(storage, self.end, key)

    def end(self, key):
        name = self.names.pop(key, 0)
        if name and name not in self.names.values():
            self.events.append(-name)


def autocast(enabled):
    torch.cuda.is_available = lambda: True  # asked once, by this
    context = torch.autocast("cuda", torch.float16, enabled=enabled)
    torch.cuda.is_available = lambda: False
    return context


def replace_parameters(module, function, recurse=True):
    """Module._apply for FakeTensors, which cannot be swapped in place."""
    for child in module.children():
        replace_parameters(child, function)
    for name, parameter in module.named_parameters(recurse=False):
        setattr(module, name, torch.nn.Parameter(function(parameter.data), parameter.requires_grad))
    return module


def adapted(model, lora):
    """With low-rank adapters, everything else frozen."""
    import peft
    torch.nn.Module._apply = replace_parameters
    options = peft.LoraConfig(r=lora["rank"], target_modules=lora["targets"],
                              lora_dropout=lora.get("dropout", 0.0))
    return peft.get_peft_model(model, options)


def trace(config, tokens, precision="float32", lora=None):
    config = dict(config)
    hf_config = transformers.AutoConfig.for_model(config.pop("model_type"), **config,
                                                  num_labels=NUM_LABELS)
    decodes = hf_config.model_type in DECODERS
    hf_config.problem_type = None if decodes else "single_label_classification"
    auto = (transformers.AutoModelForCausalLM if decodes
            else transformers.AutoModelForSequenceClassification)
    attention = "eager" if hf_config.model_type == "deberta-v2" else "sdpa"
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        model = auto.from_config(
            hf_config, attn_implementation=attention, dtype=dtype)
        if lora:
            model = adapted(model, lora)
        model.train()
        ids = torch.randint(0, 5, (ROWS, tokens))
        mask = torch.ones(ROWS, tokens, dtype=torch.long)
        labels = ids if decodes else torch.randint(0, NUM_LABELS, (ROWS,))
        recorder = Recorder([*model.parameters(), *model.buffers(), ids, mask, labels])
        with recorder:
            with autocast(precision == "autocast"):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            forward = len(recorder.events)
            loss.backward()
        events = list(recorder.events)
    return {"config": dict(config, model_type=hf_config.model_type), "tokens": tokens,
            "precision": precision, **({"lora": lora} if lora else {}),
            "forward": events[:forward], "backward": events[forward:]}


def main(path):
    golden = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__},
              "rows": ROWS, "num_labels": NUM_LABELS, "sums_in_place": False,
              "cases": {name: trace(*case) for name, case in CASES.items()}}
    text = json.dumps(golden, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"forward"', '\n"forward"').replace('"backward"', '\n"backward"')
                   .replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
