#!/usr/bin/env python3
"""Writes tests/golden/lora/*: what Hugging Face's peft computes for low-rank adapters on the small
models of tests/golden/tiny_models, on their batches.

Each folder has what peft saves (adapter_config.json, adapter_model.safetensors: adapters of random
values and the head) and expected.safetensors: logits, loss (mean cross entropy), grad.<parameter>
of everything that is trained, by the adapter file's names, adamw.losses (five steps, those before
each), and merged.<parameter> of one adapted weight. No dropout. Run in a virtual environment with
    pip install torch transformers safetensors peft==0.21.2
    scripts/reference/lora.py tests/golden
"""
import os
import sys

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

RANK, ALPHA, STEPS, LR, DECAY = 4, 6, 5, 1e-3, 0.01
# Targets of each model; one of the weights that are merged.
MODELS = {
    "tiny-bert": (["query", "value"], "bert.encoder.layer.1.attention.self.value"),
    "llama": ("all-linear", "model.layers.1.mlp.down_proj"),
    "gpt2": (["c_attn"], "transformer.h.1.attn.c_attn"),
}


def saved_name(name):
    return name.replace(".default", "").replace(".modules_to_save", "")


def adapted(folder, targets):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager")
    options = peft.LoraConfig(task_type="SEQ_CLS", r=RANK, lora_alpha=ALPHA, lora_dropout=0.0,
                              target_modules=targets)
    model = peft.get_peft_model(model, options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0.0, 0.2)
    return model.train()


def expected_of(model, batch, merged):
    inputs = {k: batch[k] for k in ("input_ids", "attention_mask")}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = batch["token_type_ids"]
    result = model(**inputs, labels=batch["labels"])
    result.loss.backward()
    out = {"logits": result.logits, "loss": result.loss.reshape(1)}
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    for name, parameter in trained.items():
        out["grad." + saved_name(name)] = parameter.grad.clone()
    model.zero_grad()
    start = {n: p.detach().clone() for n, p in trained.items()}
    optimizer = torch.optim.AdamW(trained.values(), lr=LR, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        loss = model(**inputs, labels=batch["labels"]).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    out["adamw.losses"] = torch.tensor(losses)
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(start[name])
    whole = model.merge_and_unload()
    out[f"merged.{merged}.weight"] = whole.get_parameter(merged + ".weight")
    return {k: v.detach().clone().contiguous() for k, v in out.items()}


def main():
    root = sys.argv[1]
    torch.set_num_threads(1)
    for name, (targets, merged) in MODELS.items():
        torch.manual_seed(5)
        source = os.path.join(root, "tiny_models", name)
        folder = os.path.join(root, "lora", name)
        model = adapted(source, targets)
        model.save_pretrained(folder)
        readme = os.path.join(folder, "README.md")
        if os.path.exists(readme):
            os.remove(readme)
        batch = load_file(os.path.join(source, "expected.safetensors"))
        made_by = (f"lora.py, torch {torch.__version__}, transformers {transformers.__version__}, "
                   f"peft {peft.__version__}")
        save_file(expected_of(model, batch, merged), os.path.join(folder, "expected.safetensors"),
                  {"made_by": made_by,
                   "adamw": f"{STEPS} steps, lr {LR}, weight decay {DECAY} of all parameters"})
        print(name, sorted(os.listdir(folder)))


if __name__ == "__main__":
    main()
