#!/usr/bin/env python3
"""Writes tests/golden/span_queries/: the loss of task multi-query-spans and its gradients, as
PyTorch computes them on a small random BERT of Hugging Face's transformers.

The folder is a model's (config.json, model.safetensors with both heads, vocab.txt) and has
aspects.jsonl, the data, and expected.safetensors: loss (the mean over all queries), spans.<query>
(0 and 1: where spans begin and end, by row) and grad.<parameter>. Every query runs alone, and
spans come from the offsets of Hugging Face's tokenizer, which ours does not have. Run with
    python3 scripts/reference/span_queries.py tests/golden/span_queries
in an environment with torch 2.11, transformers 5.23 and safetensors."""

import json
import os
import re
import sys

import torch
import transformers
from safetensors.torch import save_file
from torch.nn import functional

MAX_LENGTH = 24  # cuts the last text off
CLASSES = ["FOOD", "PLACE", "SERVICE"]
WORDS = ("which aspects opinions of are ? the wine was good , slow but cheap service fine not all "
         "bar ##man ##ten ##der ( ) . it we waited an hour for cold soup and cosy null").split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS


def aspect(name, category, opinion, numbers):
    return {"Aspect": name, "Category": category, "Opinion": opinion, "VA": numbers}


ROWS = [
    # Two opinions of one aspect.
    {"Text": "the wine was good , but not cheap .",
     "Quadruplet": [aspect("wine", "FOOD", "good", "7.1#5.5"),
                    aspect("wine", "FOOD", "not cheap", "3.0#4.5")]},
    # An aspect of several tokens, an opinion that occurs twice, and one inside brackets.
    {"Text": "Bartender was slow , (service) slow .",
     "Quadruplet": [aspect("Bartender", "SERVICE", "slow", "2.5#6.0"),
                    aspect("service", "SERVICE", "slow", "2.0#6.5")]},
    # What the text does not say, and what it does not have.
    {"Text": "we waited an hour .",
     "Quadruplet": [aspect("NULL", "SERVICE", "waited an hour", "1.5#7.0"),
                    aspect("waiter", "SERVICE", "NULL", "1.5#7.0")]},
    # A word inside another is not meant; the end is cut off.
    {"Text": "it was fine for all but the soup and the barman , bar the bar , cosy and cosy and cold",
     "Quadruplet": [aspect("bar", "PLACE", "cosy", "6.5#4.0"),
                    aspect("soup", "FOOD", "cold", "3.5#5.0")]},
]


def distinct(values):
    return list(dict.fromkeys(value for value in values if value != "NULL"))


def queries_of(row):
    """(question, kind, answers): the six passes of a text."""
    pairs = row["Quadruplet"]
    aspects = distinct(pair["Aspect"] for pair in pairs)
    opinions = distinct(pair["Opinion"] for pair in pairs)
    yield "which aspects ?", "span", aspects
    for name in aspects:
        answers = distinct(pair["Opinion"] for pair in pairs if pair["Aspect"] == name)
        yield f"which opinions of {name} ?", "span", answers
    yield "which opinions ?", "span", opinions
    for name in opinions:
        answers = distinct(pair["Aspect"] for pair in pairs if pair["Opinion"] == name)
        yield f"which aspects are {name} ?", "span", answers
    for pair in pairs:
        opinion = "" if pair["Opinion"] == "NULL" else " , " + pair["Opinion"]
        yield pair["Aspect"] + opinion, "class", pair


def make_model(vocabulary):
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=32, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = torch.nn.Module()
    model.bert = transformers.BertModel(config)
    model.classifier = torch.nn.Linear(config.hidden_size, len(CLASSES) + 2)
    model.qa_outputs = torch.nn.Linear(config.hidden_size, 2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.uniform_(0.8, 1.2)
            else:
                parameter.normal_(0.0, 0.15)
    return config, model


def span_targets(encoded, text, answers):
    """[tokens, 2] of 0 and 1, and which tokens are the text's."""
    in_text = torch.tensor([sequence == 1 for sequence in encoded.sequence_ids(0)])
    offsets = encoded["offset_mapping"][0].tolist()
    targets = torch.zeros(len(offsets), 2)
    for answer in answers:
        for match in re.finditer(r"(?<!\w)" + re.escape(answer) + r"(?!\w)", text):
            begins = [i for i, (begin, _) in enumerate(offsets)
                      if in_text[i] and begin == match.start()]
            ends = [i for i, (_, end) in enumerate(offsets) if in_text[i] and end == match.end()]
            if begins and ends:
                targets[begins[0], 0] = targets[ends[0], 1] = 1.0
    return targets, in_text


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(5)
    path = os.path.join(folder, "vocab.txt")
    with open(path, "w") as file:
        file.write("\n".join(VOCABULARY) + "\n")
    with open(os.path.join(folder, "aspects.jsonl"), "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in ROWS)
    backend = transformers.BertTokenizerFast(vocab={t: i for i, t in enumerate(VOCABULARY)},
                                             do_lower_case=True)
    config, model = make_model(VOCABULARY)
    with open(os.path.join(folder, "config.json"), "w") as file:
        keys = ("vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
                "max_position_embeddings hidden_dropout_prob attention_probs_dropout_prob "
                "hidden_act layer_norm_eps type_vocab_size pad_token_id").split()
        json.dump({"model_type": "bert", **{key: getattr(config, key) for key in keys}}, file,
                  indent=1)
    out, losses = {}, []
    for row in ROWS:
        for question, kind, answer in queries_of(row):
            encoded = backend([question], [row["Text"]], truncation="longest_first",
                              max_length=MAX_LENGTH, return_offsets_mapping=True,
                              return_tensors="pt")
            inputs = {k: encoded[k] for k in ("input_ids", "attention_mask", "token_type_ids")}
            result = model.bert(**inputs)
            if kind == "span":
                targets, in_text = span_targets(encoded, row["Text"], answer)
                out[f"spans.{len(losses)}"] = targets
                logits = model.qa_outputs(result.last_hidden_state[0])
                loss = functional.binary_cross_entropy_with_logits(logits[in_text],
                                                                   targets[in_text])
            else:
                logits = model.classifier(result.pooler_output)
                label = torch.tensor([CLASSES.index(answer["Category"])])
                numbers = torch.tensor([[float(n) for n in answer["VA"].split("#")]])
                loss = (functional.cross_entropy(logits[:, :len(CLASSES)], label)
                        + functional.mse_loss(logits[:, len(CLASSES):], numbers))
            losses.append(loss)
    loss = torch.stack(losses).mean()
    loss.backward()
    out["loss"] = loss.detach().reshape(1)
    for name, parameter in model.named_parameters():
        out["grad." + name] = parameter.grad
    save_file({name: parameter.detach().contiguous()
               for name, parameter in model.named_parameters()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})
    made_by = f"span_queries.py, torch {torch.__version__}, transformers {transformers.__version__}"
    save_file({k: v.contiguous() for k, v in out.items()},
              os.path.join(folder, "expected.safetensors"), {"made_by": made_by})
    print(len(losses), "queries, loss", loss.item())


if __name__ == "__main__":
    main()
