"""The jobs of bench/emulated_cards: every family, precision, technique and task of docs/training.md, as folders
with a small model of random weights and rows of its words."""

import dataclasses
import itertools
import json
import random

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000
POSITIONS = 512
TRAIN_ROWS, VALIDATION_ROWS = 20, 10
ROWS_OF_ONE_LENGTH, ROWS_OF_MANY = "one", "many"

DEBERTA = {
    "model_type": "deberta-v2",
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_biased_input": False,
    "position_buckets": 256,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "pos_att_type": "p2c|c2p",
}
# Family: hidden size, layers, heads, intermediate size, what else its config.json says.
FAMILIES = {
    "bert": (768, 3, 12, 3072, {}),
    "distilbert": (512, 3, 8, 2048, {}),
    "electra": (512, 4, 8, 2048, {"embedding_size": 128}),
    "roberta": (640, 2, 10, 2560, {}),
    "xlm-roberta": (384, 4, 6, 1536, {}),
    "deberta-v2": (512, 2, 8, 2048, {**DEBERTA, "share_att_key": False, "conv_kernel_size": 3, "conv_act": "gelu"}),
    "deberta-v3": (384, 3, 6, 1536, {**DEBERTA, "share_att_key": True}),
    "gpt2": (512, 3, 8, 2048, {}),
    "llama": (512, 3, 8, 1408, {"num_key_value_heads": 2, "tie_word_embeddings": False}),
    "qwen2": (448, 3, 7, 1216, {"num_key_value_heads": 1, "tie_word_embeddings": True}),
}
DECODERS = ("gpt2", "llama", "qwen2")
PACKING = ("bert", "distilbert", "electra", "roberta", "xlm-roberta")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
OPTIMIZERS = (
    {"train.optimizer": "adamw_8bit"},
    {"train.optimizer": "adafactor"},
    {"train.optimizer": "sgd"},
    {"train.optimizer": "sgd", "train.momentum": 0.0},
)


@dataclasses.dataclass(frozen=True)
class Job:
    """One trial: `params` over the defaults below; `micro_batch` of its effective batch."""

    card: str
    family: str
    what: str  # the technique or task, for people
    params: dict
    task: str = "text-classification"
    rows: str = ROWS_OF_MANY
    multi_label: bool = False
    micro_batch: int = 8
    in_ci: bool = False

    @property
    def name(self):
        return f"{self.card} {self.family} {self.params['train.precision']} {self.what}"


def job(card, family, precision, what, params=None, **others):
    return Job(card, family, what, {"train.precision": precision, **(params or {})}, **others)


def adapters(family, base, **more):
    targets = {"lora.targets": "all-linear"} if family == "distilbert" else {}
    return {"lora.rank": 8, "lora.base": base, **targets, **more}


def plain(card, precisions):
    for family in FAMILIES:
        for number, precision in enumerate(precisions):
            rows = ROWS_OF_ONE_LENGTH if number % 2 else ROWS_OF_MANY
            yield job(card, family, precision, "plain", rows=rows, in_ci=(card, family, precision) in IN_CI)


def techniques(card, precisions):
    """Every family with layers computed again and with adapters on a base of each type."""
    turn = itertools.cycle(precisions)
    for number, family in enumerate(FAMILIES):
        every = 1 + number % 2
        yield job(card, family, next(turn), f"checkpoint {every}", {"memory.checkpoint_every": every},
                  in_ci=family in ("deberta-v3", "llama") and card == "t4")
        for base in ("fp32", "bf16", "nf4"):
            yield job(card, family, next(turn), f"lora {base}", adapters(family, base),
                      in_ci=(family, base, card) in (("qwen2", "nf4", "a100"), ("bert", "bf16", "t4")))
        next(turn)


def unpadded(card, precisions):
    for family in PACKING:
        for precision in precisions:
            yield job(card, family, precision, "unpadded", {"memory.unpadded": True},
                      in_ci=(card, family, precision) == ("a100", "roberta", "bf16"))


def optimizers(card, families):
    for number, params in enumerate(OPTIMIZERS):
        for family in families:
            what = " ".join(str(value) for value in params.values())
            yield job(card, family, ("fp32", "bf16")[number % 2], what, params)


def tasks(card, precision):
    for family in ("bert", "deberta-v3", "llama"):
        yield job(card, family, precision, "regression", task="text-regression")
    for family in DECODERS:
        yield job(card, family, precision, "language model", task="language-modeling",
                  in_ci=(card, family) == ("a100", "gpt2"))
        yield job(card, family, precision, "language model in pieces", {"memory.loss_rows": 300},
                  task="language-modeling")
    for family, padding in (("bert", "none"), ("roberta", "batch"), ("deberta-v3", "corpus")):
        params = {"aspects.padding": padding, "aspects.at_once": 4 if padding == "batch" else 0}
        yield job(card, family, precision, f"multi-query {padding}", params, task="multi-query")
        yield job(card, family, precision, f"spans {padding}", params, task="multi-query-spans",
                  in_ci=(card, family) == ("t4", "bert"))
    yield job(card, "electra", precision, "several labels", multi_label=True)


def combined(card):
    """What people combine, and options that leave little else to see."""
    yield job(card, "bert", "bf16", "8-bit states, checkpoint, micro-batch 3",
              {"train.optimizer": "adamw_8bit", "memory.checkpoint_every": 1}, micro_batch=3)
    yield job(card, "llama", "bf16", "nf4, checkpoint, micro-batch 2, language model",
              adapters("llama", "nf4", **{"memory.checkpoint_every": 1, "lora.targets": "all-linear"}),
              task="language-modeling", micro_batch=2)
    yield job(card, "qwen2", "fp16", "bf16 base, dropout, language model",
              adapters("qwen2", "bf16", **{"lora.dropout": 0.1}), task="language-modeling")
    yield job(card, "roberta", "fp16", "unpadded, checkpoint, micro-batch 5",
              {"memory.unpadded": True, "memory.checkpoint_every": 2}, micro_batch=5)
    yield job(card, "bert", "bf16", "unpadded, lora", adapters("bert", "fp32", **{"memory.unpadded": True}))
    yield job(card, "electra", "fp32", "frozen", {"model.freeze_embeddings": True, "model.freeze_layers": 2})
    yield job(card, "gpt2", "bf16", "frozen, sgd",
              {"model.freeze_embeddings": True, "model.freeze_layers": 1, "train.optimizer": "sgd"})
    yield job(card, "distilbert", "fp32", "no dropout, one length", {"model.dropout": 0.0},
              rows=ROWS_OF_ONE_LENGTH)
    yield job(card, "bert", "fp32", "cache given back", {"memory.clear_cache_every": 1})
    yield job(card, "xlm-roberta", "bf16", "evaluation of 4 micro-batches", {"train.eval_batch_multiplier": 4})
    yield job(card, "bert", "fp16", "two batches a step", {"train.grad_accum": 2})
    yield job(card, "deberta-v2", "bf16", "two batches a step, micro-batch 3", {"train.grad_accum": 2},
              micro_batch=3)
    yield job(card, "roberta", "fp32", "head of two layers, weights, smoothing",
              {"head.layers": 2, "head.size_1": 512, "head.size_2": 128, "train.class_weights": "balanced",
               "train.label_smoothing": 0.1})


IN_CI = {("a100", "bert", "fp32"), ("a100", "distilbert", "tf32"), ("a100", "deberta-v2", "bf16"),
         ("t4", "electra", "fp16"), ("t4", "xlm-roberta", "fp32")}


def all_jobs():
    """What each card runs. A T4 has no tf32, and torch computes bf16 there without kernels of its own."""
    ampere, turing = "a100", "t4"
    half = ("fp32", "bf16", "fp16")
    jobs = [*plain(ampere, PRECISIONS), *techniques(ampere, PRECISIONS), *unpadded(ampere, half),
            *optimizers(ampere, ("bert", "llama")), *tasks(ampere, "bf16"), *combined(ampere),
            *plain(turing, half), *techniques(turing, ("fp32", "fp16")), *unpadded(turing, ("fp32", "fp16")),
            *optimizers(turing, ("deberta-v3",)), *tasks(turing, "fp16")]
    names = [one.name for one in jobs]
    assert len(set(names)) == len(names), names
    return jobs


# ---- Files --------------------------------------------------------------------------------------


def config(family):
    hidden, layers, heads, intermediate, more = FAMILIES[family]
    common = {"model_type": family, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS,
              "pad_token_id": 0}
    if family == "distilbert":
        own = {"dim": hidden, "n_layers": layers, "n_heads": heads, "hidden_dim": intermediate, "dropout": 0.1,
               "attention_dropout": 0.1}
    elif family == "gpt2":
        own = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_inner": intermediate,
               "n_positions": POSITIONS, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
    else:
        own = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
               "intermediate_size": intermediate, "type_vocab_size": 1 if "roberta" in family else 2,
               "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "attention_dropout": 0.0}
    return {**common, **own, **more}


def row_lengths(rows, count):
    """Tokens of each row: 96 of one length, or 24 to 128, the longest among them once."""
    if rows == ROWS_OF_ONE_LENGTH:
        return count * [96]
    return [24 + (37 * row) % 105 for row in range(count - 1)] + [128]


def line_of(one, row, words):
    text = " ".join(words)
    if one.task.startswith("multi-query"):
        # Rows of 1, 2, 3, 1, ... aspects, each a word of the text with the next as its opinion.
        aspects = [{"Aspect": words[i], "Opinion": words[i + 1], "Category": LABELS[(row + i) % len(LABELS)],
                    "VA": f"{1 + i}.5#{1 + row % 8}.0"} for i in range(1 + row % 3)]
        return {"Text": text, "Quadruplet": aspects}
    if one.task == "text-regression":
        return {"text": text, **{label: 0.5 * row for label in LABELS}}
    if one.multi_label:
        return {"text": text, "labels": [LABELS[row % len(LABELS)], LABELS[(row + 1) % len(LABELS)]]}
    return {"text": text, "label": LABELS[row % len(LABELS)]}


LABELS = ("first", "second", "third", "fourth")


def write_rows(path, one, count, seed):
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for row, length in enumerate(row_lengths(one.rows, count)):
            # Different words, so that an aspect occurs once.
            words = [f"w{word}" for word in draw.sample(range(VOCABULARY - len(SPECIAL)), length - 2)]
            file.write(json.dumps(line_of(one, row, words)) + "\n")


def write_model(folder, family):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config(family)))
    words = SPECIAL + [f"w{i}" for i in range(VOCABULARY - len(SPECIAL))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text(
        '{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')


def message(one, folder, number):
    """The job as the trainer reads it, its files written below `folder` where they are not there."""
    model = folder / "models" / one.family
    if not model.exists():
        write_model(model, one.family)
    data = folder / f"{one.task}-{one.rows}-{int(one.multi_label)}"
    if not data.exists():
        data.mkdir()
        write_rows(data / "train.jsonl", one, TRAIN_ROWS, 1)
        write_rows(data / "valid.jsonl", one, VALIDATION_ROWS, 2)
    classifies = one.task == "text-classification"
    params = {"train.batch_size": 8, "train.grad_accum": 1, "tok.max_length": 128, **one.params}
    return {
        "type": "job",
        "study": "emulated",
        "trial": number,
        "attempt": 1,
        "params": params,
        "task": one.task,
        "train_path": str(data / "train.jsonl"),
        "validation_path": str(data / "valid.jsonl"),
        "labels": [] if one.task == "language-modeling" else list(LABELS),
        "epochs": 1,
        "model_name": one.family,
        "model_path": str(model),
        "model_init": "random",
        "objective": ({"metric": "macro_f1", "direction": "maximize"} if classifies
                      else {"metric": "loss", "direction": "minimize"}),
        "device": "cuda:0",
        "policy": "plan",
        "admission": False,
        "plan": {"effective_batch": params["train.batch_size"] * params["train.grad_accum"],
                 "micro_batch": one.micro_batch},
        "seed": 1,
        "output_dir": "",
    }
