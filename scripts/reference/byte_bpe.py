#!/usr/bin/env python3
"""Writes the golden files of byte-level BPE in tests/golden/tokenizers, for
tests/worker/text/tokenizers/families/byte_bpe_tokenizer_test.cc: what Hugging Face's `tokenizers` makes of difficult
text.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tokenizers==0.23.3
    /tmp/reference/bin/python scripts/reference/byte_bpe.py FOLDER TEXTS VECTORS

FOLDER holds RoBERTa's vocab.json and merges.txt, of which the part that these texts can reach is
kept (roberta-excerpt); VECTORS is transformers.js's vectors_transformersjs.jsonl; TEXTS is a .jsonl
or .jsonl.gz with `text`, from which small vocabularies of GPT-2's and Qwen2's kind are trained.
"""

import gzip
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from tokenizer_texts import (BLANK_TEXTS, HARD_TEXTS, LONG_WORDS, long_vector, random_cases,
                             stable_characters, vector, write_rows)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
SEED = 20261122
QWEN2_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+"
               r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TRAINING_ROWS = 4_000


def read_texts(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(
        path, encoding="utf-8")
    with opened as lines:
        return [json.loads(line)["text"] for line in lines]


def qwen2_words():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_REGEX), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def train(name, words, texts, size):
    """Trains vocab.json and merges.txt of a folder, deterministically."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = words
    tokenizer.train_from_iterator(texts, BpeTrainer(
        vocab_size=size, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    folder = GOLDEN / name
    folder.mkdir(exist_ok=True)
    tokenizer.model.save(str(folder))


def model_of(name):
    folder = GOLDEN / name
    return BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))


def roberta(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False) for token in ("<s>", "<pad>", "</s>", "<unk>")]
        + [AddedToken("<mask>", normalized=False, lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def gpt2(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    return tokenizer


def qwen2(model):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = qwen2_words()
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False)
         for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return tokenizer


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n",
                    encoding="utf-8")


def excerpt(source, texts):
    """The tokens and merges of RoBERTa that can come up in `texts`, with their ids."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = {word for text in texts for word, _ in splitter.pre_tokenize_str(text)}
    parts = {word[i:j] for word in words for i in range(len(word))
             for j in range(i + 1, min(len(word), i + 40) + 1)}
    vocab = json.loads((source / "vocab.json").read_text(encoding="utf-8"))
    merges = (source / "merges.txt").read_text(encoding="utf-8").split("\n")
    kept = [line for line in merges if line.replace(" ", "") in parts]
    needed = {"<s>", "<pad>", "</s>", "<unk>", "<mask>", *pre_tokenizers.ByteLevel.alphabet()}
    for line in kept:
        needed.update([*line.split(" "), line.replace(" ", "")])
    folder = GOLDEN / "roberta-excerpt"
    folder.mkdir(exist_ok=True)
    write_json(folder / "vocab.json",
               {token: id for token, id in sorted(vocab.items(), key=lambda item: item[1])
                if token in needed})
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(kept) + "\n",
                                       encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer"})


def main(source, texts_path, vectors_path):
    rng = random.Random(SEED)
    cases = [(text, None, None) for text in HARD_TEXTS + BLANK_TEXTS]
    cases += random_cases(rng, stable_characters(), 120, 100)
    texts = read_texts(texts_path)
    cases += [(text, None, None) for text in texts[TRAINING_ROWS:TRAINING_ROWS + 40]]

    vectors = [json.loads(line) for line in open(vectors_path, encoding="utf-8")]
    vectors = [row for row in vectors if row["tokenizer"] == "roberta-base"]
    write_rows(GOLDEN / "vectors_transformersjs_roberta.jsonl",
               [{"tokenizer": "roberta-excerpt", "text": row["text"], "ids": row["ids"]}
                for row in vectors])
    all_texts = [row["text"] for row in vectors] + [unit * 12 for unit, _ in LONG_WORDS]
    all_texts += [text for case in cases for text in case[:2] if text is not None]
    source = pathlib.Path(source)
    excerpt(source, all_texts)

    training = texts[:TRAINING_ROWS] + HARD_TEXTS * 4 + BLANK_TEXTS * 4
    train("gpt2-like", pre_tokenizers.ByteLevel(add_prefix_space=False), training, 3_000)
    train("qwen2-like", qwen2_words(), training, 3_000)
    write_json(GOLDEN / "gpt2-like" / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer"})
    write_json(GOLDEN / "qwen2-like" / "tokenizer_config.json", {
        "tokenizer_class": "Qwen2Tokenizer", "pad_token": "<|endoftext|>",
        "added_tokens_decoder": {str(3_000 + i): {
            "content": token, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": True}
            for i, token in enumerate(("<|endoftext|>", "<|im_start|>", "<|im_end|>"))}})

    rows = []
    whole = BPE.from_file(str(source / "vocab.json"), str(source / "merges.txt"))
    for name, tokenizer in (("roberta-excerpt", roberta(whole)),
                            ("gpt2-like", gpt2(model_of("gpt2-like"))),
                            ("qwen2-like", qwen2(model_of("qwen2-like")))):
        rows += [vector(name, tokenizer, *case) for case in cases]
        tokenizer.no_truncation()
        rows += [long_vector(name, lambda text: tokenizer.encode(text).ids, *word)
                 for word in LONG_WORDS]
    write_rows(GOLDEN / "vectors_byte_bpe.jsonl", rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
