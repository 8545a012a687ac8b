#!/usr/bin/env python3
"""Writes tests/golden/model_traces.json: what a forward and backward of Hugging Face's models
allocates and frees on a CUDA device, in order.

The models run on FakeTensors: torch's dispatcher and autograd work as on a GPU, kernels are
replaced by their output shapes. So every tensor that an operation returns or keeps is seen, and
temporaries inside a kernel are not. Needs the CUDA build of torch; a GPU is not needed (a stand-in
for the runtime is compiled and preloaded). Run in a virtual environment with
    pip install torch==2.11.0 transformers==5.23.0 peft==0.21.2
    scripts/reference/model_traces.py tests/golden/model_traces.json

Two things differ from tensors of a real device and are undone or marked here: scatter_add, and
indexing in backward, write into their zeros there; and gradients that meet are always summed into a new tensor here
("sums_in_place": false), there only when somebody else holds the first.
"""

import json
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from event_order import ordered

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

GPT2 = dict(model_type="gpt2", vocab_size=96, n_embd=16, n_layer=2, n_head=4, n_inner=40,
            n_positions=24, use_cache=False)
DISTILBERT = dict(model_type="distilbert", vocab_size=96, dim=16, n_layers=2, n_heads=4,
                  hidden_dim=40, max_position_embeddings=24, seq_classif_dropout=0.1)
ELECTRA = dict(ENCODER, model_type="electra", type_vocab_size=2, embedding_size=16)
DECODERS = ("gpt2", "llama", "qwen2")


def case(config, tokens=TOKENS, precision="float32", **options):
    return dict(config=config, tokens=tokens, precision=precision, **options)


CASES = {
    "bert": case(BERT),
    "bert, no dropout": case(dict(BERT, **NO_DROPOUT)),
    "bert, aligned length": case(BERT, 8),
    "bert, autocast": case(dict(BERT, num_attention_heads=2), 8, "autocast"),
    "bert, bfloat16": case(dict(BERT, num_attention_heads=2), 8, "bfloat16"),
    "roberta": case(ROBERTA),
    "deberta-v3": case(DEBERTA),
    "deberta-v3, no dropout": case(dict(DEBERTA, **NO_DROPOUT)),
    "deberta-v3, autocast": case(DEBERTA, precision="autocast"),
    "deberta-v3, bfloat16": case(DEBERTA, precision="bfloat16"),
    "deberta-v2, convolution": case(dict(DEBERTA, conv_kernel_size=3, conv_act="gelu")),
    "deberta, own projections": case(
        dict(DEBERTA, share_att_key=False, position_buckets=-1, max_relative_positions=9,
             position_biased_input=True, type_vocab_size=2, norm_rel_ebd="none")),
    "deberta, contents to positions": case(
        dict(DEBERTA, pos_att_type="c2p", share_att_key=False)),
    "llama": case(LLAMA),
    "llama, bfloat16": case(LLAMA, precision="bfloat16"),
    "llama, every head its keys": case(dict(LLAMA, num_key_value_heads=4), 8, "bfloat16"),
    "qwen2": case(QWEN2),
    "qwen2, bfloat16": case(QWEN2, 8, "bfloat16"),
    "llama, lora": case(LLAMA, lora={"rank": 4, "targets": "all-linear"}),
    "llama, lora, bfloat16": case(LLAMA, precision="bfloat16",
                                  lora={"rank": 4, "targets": "all-linear"}),
    "llama, every head its keys, lora": case(
        dict(LLAMA, num_key_value_heads=4), 8, "bfloat16",
        lora={"rank": 4, "targets": ["q_proj", "v_proj"]}),
    "qwen2, lora": case(QWEN2, precision="bfloat16",
                        lora={"rank": 4, "targets": ["q_proj", "v_proj"]}),
    "qwen2, lora with dropout": case(
        QWEN2, 8, "bfloat16", lora={"rank": 4, "targets": "all-linear", "dropout": 0.1}),
    "deberta, absolute": case(
        dict(DEBERTA, relative_attention=False, position_biased_input=True, pos_att_type=[],
             embedding_size=8, norm_rel_ebd="none")),
    "gpt2": case(GPT2),
    "gpt2, no dropout": case(dict(GPT2, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0)),
    "gpt2, bfloat16": case(dict(GPT2, n_head=2), 8, "bfloat16"),
    "gpt2, untied head": case(dict(GPT2, tie_word_embeddings=False)),
    "gpt2, gelu in one kernel": case(dict(GPT2, activation_function="gelu_pytorch_tanh")),
    "gpt2, lora": case(GPT2, lora={"rank": 4, "targets": ["c_attn", "mlp.c_proj"]}),
    "gpt2, lora with dropout": case(dict(GPT2, n_head=2), 8, "bfloat16",
                                    lora={"rank": 4, "targets": ["c_attn"], "dropout": 0.1}),
    "bert, relu": case(dict(BERT, hidden_act="relu")),
    "bert, gelu by tanh": case(dict(BERT, hidden_act="gelu_new")),
    "bert, gelu by tanh, autocast": case(
        dict(BERT, hidden_act="gelu_new", num_attention_heads=2), 8, "autocast"),
    "gpt2, autocast": case(dict(GPT2, n_head=2), 8, "autocast"),
    "llama, autocast": case(LLAMA, 8, precision="autocast"),
    "llama, lora, autocast": case(LLAMA, 8, "autocast", lora={"rank": 4, "targets": "all-linear"}),
    "qwen2, autocast": case(QWEN2, 8, precision="autocast"),
    "distilbert": case(DISTILBERT),
    "distilbert, no dropout": case(
        dict(DISTILBERT, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)),
    "distilbert, bfloat16": case(dict(DISTILBERT, n_heads=2), 8, "bfloat16"),
    "distilbert, autocast": case(dict(DISTILBERT, n_heads=2), 8, "autocast"),
    "electra": case(ELECTRA),
    "electra, narrow embedding": case(dict(ELECTRA, embedding_size=8)),
    "electra, autocast": case(dict(ELECTRA, num_attention_heads=2), 8, "autocast"),
    "electra, bfloat16": case(dict(ELECTRA, num_attention_heads=2), 8, "bfloat16"),
    "bert, checkpointing": case(BERT, checkpointing=True),
    "bert, checkpointing, no dropout": case(dict(BERT, **NO_DROPOUT), checkpointing=True),
    "bert, checkpointing, autocast": case(dict(BERT, num_attention_heads=2), 8, "autocast",
                                          checkpointing=True),
    "roberta, checkpointing": case(ROBERTA, checkpointing=True),
    "distilbert, checkpointing": case(DISTILBERT, checkpointing=True),
    "electra, checkpointing": case(ELECTRA, checkpointing=True),
    "deberta-v3, checkpointing": case(DEBERTA, checkpointing=True),
    "deberta-v3, checkpointing, autocast": case(DEBERTA, precision="autocast",
                                                checkpointing=True),
    "deberta-v2, checkpointing": case(dict(DEBERTA, conv_kernel_size=3, conv_act="gelu"),
                                      checkpointing=True),
    "gpt2, checkpointing": case(GPT2, checkpointing=True),
    "llama, checkpointing": case(LLAMA, checkpointing=True),
    "qwen2, checkpointing, bfloat16": case(QWEN2, 8, "bfloat16", checkpointing=True),
    "llama, lora, checkpointing": case(LLAMA, 8, "bfloat16", checkpointing=True,
                                       lora={"rank": 4, "targets": "all-linear"}),
    "bert, lora": case(BERT, lora={"rank": 4, "targets": ["query", "value"]}),
    "bert, lora, autocast": case(dict(BERT, num_attention_heads=2), 8, "autocast",
                                 lora={"rank": 4, "targets": ["query", "value"]}),
    "bert, lora, bfloat16": case(dict(BERT, num_attention_heads=2), 8, "bfloat16",
                                 lora={"rank": 4, "targets": "all-linear", "dropout": 0.1}),
    "roberta, lora": case(ROBERTA, lora={"rank": 4, "targets": "all-linear"}),
    "deberta-v3, lora": case(DEBERTA, lora={"rank": 4, "targets": ["query_proj", "value_proj"]}),
    "deberta-v3, lora everywhere": case(DEBERTA, lora={"rank": 4, "targets": "all-linear",
                                                       "dropout": 0.1}),
    "distilbert, lora": case(DISTILBERT, lora={"rank": 4, "targets": ["q_lin", "v_lin"]}),
    "electra, lora": case(ELECTRA, lora={"rank": 4, "targets": "all-linear"}),
    "gpt2, classification": case(dict(GPT2, pad_token_id=0), classifies=True),
    "gpt2, classification, autocast": case(dict(GPT2, n_head=2, pad_token_id=0), 8, "autocast",
                                           classifies=True),
    "llama, classification": case(dict(LLAMA, pad_token_id=0), classifies=True),
    "qwen2, classification, bfloat16": case(dict(QWEN2, pad_token_id=0), 8, "bfloat16",
                                            classifies=True),
    "llama, classification, checkpointing": case(dict(LLAMA, pad_token_id=0), 8, "bfloat16",
                                                 classifies=True, checkpointing=True),
    "llama, classification, lora": case(dict(LLAMA, pad_token_id=0), 8, "bfloat16", classifies=True,
                                        lora={"rank": 4, "targets": ["q_proj", "v_proj"]}),
    "bert, lora, checkpointing": case(BERT, checkpointing=True,
                                      lora={"rank": 4, "targets": ["query", "value"]}),
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
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402

torch.cuda.is_available = lambda: False  # no context is made for FakeTensors
torch.cuda.amp.common.amp_definitely_not_available = lambda: False  # but autocast is
torch.autograd.set_multithreading_enabled(False)


WRITES_IN_PLACE = (torch.ops.aten.scatter_add.default, torch.ops.aten.index_put.default)


class Recorder(TorchDispatchMode):
    """Events in order: +bytes of a new tensor's memory, -n for the end of the n-th."""

    def __init__(self, known):
        super().__init__()
        self.names = {tensor.untyped_storage()._cdata: 0 for tensor in known}
        self.events = []
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        written = args[0] if function in WRITES_IN_PLACE else None
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


def replace_parameters(module, function, recurse=True):
    """Module._apply for FakeTensors, which cannot be swapped in place."""
    for child in module.children():
        replace_parameters(child, function)
    for name, parameter in module.named_parameters(recurse=False):
        setattr(module, name, torch.nn.Parameter(function(parameter.data), parameter.requires_grad))
    return module


def copy_parameter(parameter, memo):
    """copy.deepcopy for FakeTensors, which have no bytes to copy."""
    memo[id(parameter)] = torch.nn.Parameter(parameter.detach().clone(), parameter.requires_grad)
    return memo[id(parameter)]


def adapted(model, lora, classifies):
    """With low-rank adapters, everything else frozen; a classification head is trained whole."""
    import peft
    torch.nn.Module._apply = replace_parameters
    FakeTensor.__deepcopy__ = copy_parameter
    options = peft.LoraConfig(r=lora["rank"], target_modules=lora["targets"],
                              lora_dropout=lora.get("dropout", 0.0),
                              task_type="SEQ_CLS" if classifies else None)
    return peft.get_peft_model(model, options)


def trace(config, tokens, precision, lora=None, checkpointing=False, classifies=None):
    config = dict(config)
    hf_config = transformers.AutoConfig.for_model(config.pop("model_type"), **config,
                                                  num_labels=NUM_LABELS)
    labels_rows = classifies or hf_config.model_type not in DECODERS
    hf_config.problem_type = "single_label_classification" if labels_rows else None
    auto = (transformers.AutoModelForSequenceClassification if labels_rows
            else transformers.AutoModelForCausalLM)
    attention = "eager" if hf_config.model_type == "deberta-v2" else "sdpa"
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        model = auto.from_config(
            hf_config, attn_implementation=attention, dtype=dtype)
        if checkpointing:
            model.activation_checkpointing_enable()
        if lora:
            model = adapted(model, lora, labels_rows)
        model.train()
        ids = torch.randint(0, 5, (ROWS, tokens))
        mask = torch.ones(ROWS, tokens, dtype=torch.long)
        labels = torch.randint(0, NUM_LABELS, (ROWS,)) if labels_rows else ids
        recorder = Recorder([*model.parameters(), *model.buffers(), ids, mask, labels])
        with recorder:
            with torch.autocast("cuda", torch.float16, enabled=precision == "autocast"):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            forward = len(recorder.events)
            loss.backward()
            del loss  # and the graph, which holds leaves that are no parameters
        events = list(recorder.events)
    return {"config": dict(config, model_type=hf_config.model_type), "tokens": tokens,
            "precision": precision, **({"lora": lora} if lora else {}),
            **({"checkpointing": True} if checkpointing else {}),
            **({"classifies": True} if classifies else {}),
            "forward": ordered(events[:forward]), "backward": ordered(events[forward:])}


def main(path):
    golden = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__},
              "rows": ROWS, "num_labels": NUM_LABELS, "sums_in_place": False,
              "cases": {name: trace(**options) for name, options in CASES.items()}}
    text = json.dumps(golden, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"forward"', '\n"forward"').replace('"backward"', '\n"backward"')
                   .replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
