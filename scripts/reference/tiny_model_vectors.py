#!/usr/bin/env python3
"""Writes tests/golden/tiny_models/*: small random models of every family with what Hugging Face's
transformers computes for them.

Each folder has config.json and model.safetensors (as save_pretrained names them), and
expected.safetensors: a batch with padding and pairs (input_ids, attention_mask, token_type_ids,
labels), hidden_states.0 ... n, logits, loss (mean cross entropy), grad.<parameter>, adamw.losses
(five steps, those before each) and adamw.after.<parameter> of two parameters; and a batch of the
longest rows that the model takes (long.*: logits alone). No dropout. Language models: `labels` are
the next tokens, logits those of every token. tiny-bert, tiny-roberta and tiny-deberta-v2 come from
elsewhere (the original implementations) and are not touched. Run in a virtual environment with
    pip install torch transformers safetensors
    scripts/reference/tiny_model_vectors.py tests/golden/tiny_models [NAME...]
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

LABELS = 3
STEPS, LR, DECAY = 5, 1e-3, 0.01

ENCODER = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=48, max_position_embeddings=40, hidden_dropout_prob=0.0,
               attention_probs_dropout_prob=0.0, hidden_act="gelu")
DEBERTA = dict(ENCODER, model_type="deberta-v2", type_vocab_size=0, relative_attention=True,
               max_relative_positions=-1, position_buckets=8, norm_rel_ebd="layer_norm",
               share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False,
               pooler_dropout=0.0, pooler_hidden_size=32, pooler_hidden_act="gelu")
DECODER = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, intermediate_size=48, max_position_embeddings=64,
               rms_norm_eps=1e-5, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT2 = dict(model_type="gpt2", vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=40,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, pad_token_id=0, bos_token_id=1,
            eos_token_id=2)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=16)

CLASSIFIER, LANGUAGE_MODEL = "SequenceClassification", "CausalLM"
MODELS = {
    "xlm-roberta": (dict(ENCODER, model_type="xlm-roberta", type_vocab_size=1, pad_token_id=1,
                         layer_norm_eps=1e-5), CLASSIFIER),
    "electra": (dict(ENCODER, model_type="electra", type_vocab_size=2, embedding_size=16),
                CLASSIFIER),
    "distilbert": (dict(model_type="distilbert", vocab_size=96, dim=32, n_layers=2, n_heads=4,
                        hidden_dim=48, max_position_embeddings=40, dropout=0.0,
                        attention_dropout=0.0, seq_classif_dropout=0.0), CLASSIFIER),
    "deberta-v3-long": (dict(DEBERTA, max_position_embeddings=64, position_buckets=12), CLASSIFIER),
    "deberta-v2-convolution": (dict(DEBERTA, conv_kernel_size=3, conv_act="gelu",
                                    embedding_size=16), CLASSIFIER),
    "deberta-own-projections": (
        dict(DEBERTA, share_att_key=False, position_buckets=-1, max_relative_positions=9,
             position_biased_input=True, type_vocab_size=2, norm_rel_ebd="none"), CLASSIFIER),
    "deberta-c2p": (dict(DEBERTA, pos_att_type=["c2p"], share_att_key=False), CLASSIFIER),
    "gpt2": (GPT2, CLASSIFIER),
    "gpt2-lm": (GPT2, LANGUAGE_MODEL),
    "llama": (dict(DECODER, model_type="llama", tie_word_embeddings=False), CLASSIFIER),
    "llama-3": (dict(DECODER, model_type="llama", tie_word_embeddings=False, head_dim=12,
                     rope_parameters=LLAMA3_ROPE), LANGUAGE_MODEL),
    "qwen2": (dict(DECODER, model_type="qwen2", tie_word_embeddings=True, num_key_value_heads=4,
                   rope_parameters=dict(rope_type="default", rope_theta=1000000.0)), CLASSIFIER),
    "qwen2-lm": (dict(DECODER, model_type="qwen2", tie_word_embeddings=True), LANGUAGE_MODEL),
}


def make_model(config, head):
    config = transformers.AutoConfig.for_model(**config, num_labels=LABELS)
    auto = getattr(transformers, "AutoModelFor" + head)
    model = auto.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Large enough that every term shows, norms near 1.
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.uniform_(0.8, 1.2)
            else:
                parameter.normal_(0.0, 0.15)
    return model.train()


def make_batch(config, lengths, generator):
    """Rows of `lengths` tokens, the second half of each row its pair's; padded to the longest."""
    pad = config.pad_token_id
    width = max(lengths)
    ids = torch.full((len(lengths), width), pad)
    mask = torch.zeros((len(lengths), width), dtype=torch.int64)
    types = torch.zeros((len(lengths), width), dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(4, config.vocab_size, (length,), generator=generator)
        mask[row, :length] = 1
        if getattr(config, "type_vocab_size", 0) > 1:
            types[row, length // 2:length] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def inputs_of(model, batch):
    has_types = getattr(model.config, "type_vocab_size", 0) > 0
    return {k: v for k, v in batch.items() if k != "token_type_ids" or has_types}


def labels_of(batch, head, generator):
    if head == CLASSIFIER:
        return torch.randint(0, LABELS, (len(batch["input_ids"]),), generator=generator)
    labels = batch["input_ids"].clone()
    labels[batch["attention_mask"] == 0] = -100
    return labels


def expected_of(model, head):
    generator = torch.Generator().manual_seed(7)
    config = model.config
    longest = config.max_position_embeddings - (2 if "roberta" in config.model_type else 0)
    batch = make_batch(config, [16, 9, 13], generator)
    labels = labels_of(batch, head, generator)
    out = dict(batch, labels=labels)
    result = model(**inputs_of(model, batch), labels=labels, output_hidden_states=True)
    result.loss.backward()
    for i, hidden in enumerate(result.hidden_states):
        out[f"hidden_states.{i}"] = hidden
    out["logits"], out["loss"] = result.logits, result.loss.reshape(1)
    for name, parameter in model.named_parameters():
        out["grad." + name] = parameter.grad.clone()
    model.zero_grad()
    long = make_batch(config, [longest, longest // 2], generator)
    out.update({"long." + name: value for name, value in long.items()})
    out["long.logits"] = model(**inputs_of(model, long)).logits
    if head == LANGUAGE_MODEL:  # the last token's are enough
        out["long.logits"] = out["long.logits"][:, longest // 2 - 1]
    add_steps(model, inputs_of(model, batch), labels, out)
    return {k: v.detach().clone().contiguous() for k, v in out.items()}


def add_steps(model, inputs, labels, out):
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        loss = model(**inputs, labels=labels).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    out["adamw.losses"] = torch.tensor(losses)
    names = [name for name, parameter in model.named_parameters() if parameter.dim() > 1]
    for name in (names[1], names[-1]):
        out["adamw.after." + name] = dict(model.named_parameters())[name]


def main():
    root = sys.argv[1]
    torch.set_num_threads(1)
    for name in sys.argv[2:] or MODELS:
        config, head = MODELS[name]
        torch.manual_seed(3)
        model = make_model(config, head)
        folder = os.path.join(root, name)
        model.save_pretrained(folder)
        generation = os.path.join(folder, "generation_config.json")
        if os.path.exists(generation):
            os.remove(generation)
        made_by = f"tiny_model_vectors.py, torch {torch.__version__}, transformers {transformers.__version__}"
        save_file(expected_of(model, head), os.path.join(folder, "expected.safetensors"),
                  {"made_by": made_by, "head": head,
                   "adamw": f"{STEPS} steps, lr {LR}, betas 0.9 0.999, eps 1e-8, weight decay {DECAY}"})
        print(name, sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)) // 1000,
              "kB", json.dumps(config)[:60])


if __name__ == "__main__":
    main()
