"""Jobs of hpo-trainer that docs/gpu/OWED.md asks for: every family, task, precision, technique."""

import dataclasses

GIB = 1 << 30


@dataclasses.dataclass
class Case:
    row: str  # of rows.WANTED
    name: str
    model: str = "bert-base"
    task: str = "text-classification"
    params: dict = dataclasses.field(default_factory=dict)
    short: bool = False  # one of those that stand for all where time is short
    needs: int = 0       # bytes of the card
    saves: bool = True   # its best weights
    seconds: int = 90    # that it may take


def precision_cases():
    for precision in ("fp32", "tf32", "bf16", "fp16"):
        yield Case("precision", precision, params={"train.precision": precision})
    yield Case("precision", "bf16, layers again", short=True,
               params={"train.precision": "bf16", "memory.checkpoint_every": 1})


def adapter_cases():
    for base in ("fp32", "bf16", "nf4"):
        yield Case("adapters", f"LoRA on {base}", "qwen2.5-0.5b", short=base == "nf4",
                   params={"lora.rank": 8, "lora.base": base, "train.precision": "bf16"})


# Apart: weights of 7 billion are drawn for a minute before training begins, and would fill 13 to
# 26 GB of the disk.
def large_cases():
    for base, needs in (("nf4", 12 * GIB), ("bf16", 23 * GIB), ("fp32", 42 * GIB)):
        yield Case("adapters", f"LoRA on a 7B model in {base}", "qwen2.5-7b", needs=needs, saves=False,
                   seconds=180,
                   params={"lora.rank": 8, "lora.base": base, "train.precision": "bf16",
                           "train.batch_size": 2, "memory.checkpoint_every": 1})


def family_cases():
    for model in ("distilbert", "electra", "roberta", "xlm-roberta", "deberta-v3", "gpt2", "llama",
                  "qwen2.5-0.5b"):
        yield Case("families", model, model, short=model == "deberta-v3")
    yield Case("families", "regression", task="text-regression")
    yield Case("families", "language modelling", "gpt2", "language-modeling", short=True)
    yield Case("families", "multi-query", task="multi-query")
    yield Case("families", "multi-query-spans", task="multi-query-spans", short=True)


def unpadded_cases():
    yield Case("unpadded", "padded fp32, dropout 0.0", params={"model.dropout": 0.0})
    for precision in ("fp32", "bf16", "fp16"):
        for dropout in (0.1, 0.0):
            yield Case("unpadded", f"{precision}, dropout {dropout}",
                       short=(precision, dropout) == ("bf16", 0.1),
                       params={"memory.unpadded": True, "train.precision": precision,
                               "model.dropout": dropout})


def timed_cases():
    yield Case("small_batches", "bf16, 4 rows", short=True,
               params={"train.precision": "bf16", "train.batch_size": 4})
    for every in (0, 1):
        yield Case("clear_cache", f"every {every}", short=every == 1,
                   params={"memory.clear_cache_every": every, "train.batch_size": 16})


def cases(short, total_bytes):
    """All that a card of `total_bytes` takes, one for each row first, the longest last; with
    `short` a few of them."""
    found = [*precision_cases(), *adapter_cases(), *family_cases(), *unpadded_cases(),
             *timed_cases(), *large_cases()]
    found.sort(key=lambda case: not case.short)
    return [case for case in found if case.needs <= total_bytes and (case.short or not short)]
