"""Fine-tunes Llama 3.2 3B in bfloat16 as PEFT's method comparison does, with random weights and token ids.

usage: peft_step.py ROW LENGTH [TABLE]: a row's name in bench/results/dry_run/peft_rows.json, and the tokens of its
longest batch
"""

import dataclasses
import json
import pathlib
import sys

import peft
import torch
import transformers
from transformers.modeling_utils import caching_allocator_warmup
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

TABLE = pathlib.Path(__file__).resolve().parents[2] / "results" / "dry_run" / "peft_rows.json"
BATCH = 4


def base_model():
    """Loaded to the GPU as from_pretrained loads it: first one large block, which the parameters are then cut from."""
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=131072, tie_word_embeddings=True,
        rms_norm_eps=1e-5, dtype="bfloat16")
    config.rope_parameters = {"rope_type": "default", "rope_theta": 500000.0}
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    parameters = dict(model.named_parameters())
    caching_allocator_warmup(model, {name: torch.device("cuda", 0) for name in parameters}, None)
    for name, parameter in parameters.items():
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, torch.nn.Parameter(torch.empty_like(parameter, device="cuda")))
    model.model.rotary_emb = LlamaRotaryEmbedding(config).cuda()
    model.tie_weights()
    model.config._name_or_path = "llama"
    return model


def adapted(model, row):
    given = dict(row["config"])
    kind = peft.PeftType(given.pop("peft_type"))
    made = peft.mapping.PEFT_TYPE_TO_CONFIG_MAPPING[kind]
    known = {field.name for field in dataclasses.fields(made)}
    return peft.get_peft_model(model, made(**{name: value for name, value in given.items() if name in known}),
                               autocast_adapter_dtype=row.get("autocast_adapter_dtype", True))


def step(model, optimizer, length):
    ids = torch.randint(5, 128000, (BATCH, length)).cuda()
    mask = torch.ones(BATCH, length, dtype=torch.long)
    mask[1:, length - 3:] = 0
    batch = {"input_ids": ids, "attention_mask": mask.cuda(), "labels": ids.clone()}
    optimizer.zero_grad()
    output = model(**batch, num_items_in_batch=int(mask.sum()))
    output.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return output


def main():
    name, length = sys.argv[1], int(sys.argv[2])
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["rows"]
    row = next(row for row in rows if row["name"] == name)
    model = adapted(base_model(), row).train()
    optimizer = torch.optim.AdamW(model.parameters(), **row["optimizer"])
    output = None
    for tokens in (64, 64, length):  # the longest batch is not the first one
        torch.cuda.empty_cache()
        output = step(model, optimizer, tokens)
    del output


main()
