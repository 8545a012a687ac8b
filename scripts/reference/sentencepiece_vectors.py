#!/usr/bin/env python3
"""Writes the golden files of SentencePiece in tests/golden/tokenizers, for
tests/worker/text/tokenizers/families/sentencepiece_tokenizer_test.cc: what SentencePiece makes of difficult text, with
the special tokens and ids of the model families around it.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install sentencepiece==0.2.3 protobuf==7.36.2
    /tmp/reference/bin/python scripts/reference/sentencepiece_vectors.py DATA

DATA holds tokenizers/{xlnet-base-cased,sentencepiece-test}, tokenizers/vectors_sentencepiece.jsonl.gz
and banking77/train.jsonl.gz. Of XLNet's model the pieces that these texts can reach are kept. The
others are trained here: a unigram model with DeBERTa's special pieces and rewriting rules, one
without rules for XLM-RoBERTa, one with byte fallback, user-defined pieces and blanks as suffixes, a
BPE model of Llama's kind.
"""

import gzip
import io
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tokenizer_texts import (BLANK_TEXTS, HARD_TEXTS, LONG_WORDS, long_vector, random_cases,
                             stable_characters, write_rows)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
SEED = 20261123
RULES = [("\uff21", "A"), ("\uff22", "B"), ("\u212b", "\u00c5"), ("A\u030a", "\u00c5"),
         ("e\u0301", "\u00e9"), ("\u2026", "..."), ("\u00bd", " 1/2 "), ("\u3000", " "),
         ("\u00a0", " "), ("\t", " "), ("\n", " "), ("\r", " "), ("\u200b", ""), ("\u00ad", ""),
         ("ab", "AB"), ("abc", "C")]


def read_rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def train(name, file, texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, num_threads=1, minloglevel=2,
        hard_vocab_limit=False, **options)
    folder = GOLDEN / name
    folder.mkdir(exist_ok=True)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    (folder / file).write_bytes(proto.SerializeToString(deterministic=True))


def train_all(texts):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        for source, target in RULES:
            rules.write("\t".join(" ".join(f"{ord(c):X}" for c in part)
                                  for part in (source, target)) + "\n")
        rules.flush()
        train("deberta-like", "spm.model", texts, vocab_size=1200, model_type="unigram",
              normalization_rule_tsv=rules.name, unk_id=3, unk_piece="[UNK]", pad_id=0,
              pad_piece="[PAD]", bos_id=1, bos_piece="[CLS]", eos_id=2, eos_piece="[SEP]")
    train("xlmr-like", "sentencepiece.bpe.model", texts, vocab_size=1500, model_type="unigram",
          normalization_rule_name="identity")
    train("llama-like", "tokenizer.model", texts, vocab_size=1600, model_type="bpe",
          normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True,
          split_digits=True, allow_whitespace_only_pieces=True,
          user_defined_symbols=["<tool>", "rock'n'roll", "\u751f\u6d3b"])
    train("suffix-like", "any.model", texts, vocab_size=1400, model_type="unigram",
          normalization_rule_name="identity", byte_fallback=True, split_by_whitespace=False,
          treat_whitespace_as_suffix=True, user_defined_symbols=["<sep>", "the ", "ab"])


def excerpt(source, texts):
    """XLNet's pieces that can come up in `texts`; gives the new id of each."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(source.read_bytes())
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    parts = set()
    for text in texts:
        for word in processor.normalize(text).split("\u2581"):
            word = "\u2581" + word
            parts.update(word[i:j] for i in range(len(word))
                         for j in range(i + 1, min(len(word), i + 24) + 1))
    worst = min((p for p in proto.pieces if p.type == 1), key=lambda p: p.score).piece
    kept = [i for i, p in enumerate(proto.pieces)
            if p.type != 1 or p.piece in parts or p.piece == worst]
    pieces = [proto.pieces[i] for i in kept]
    smaller = sentencepiece_model_pb2.ModelProto()
    smaller.CopyFrom(proto)
    del smaller.pieces[:]
    smaller.pieces.extend(pieces)
    folder = GOLDEN / "xlnet-excerpt"
    folder.mkdir(exist_ok=True)
    (folder / "spiece.model").write_bytes(smaller.SerializeToString(deterministic=True))
    return {old: new for new, old in enumerate(kept)}


def truncate(first, second, room):
    """Hugging Face's longest_first: of an odd room the longer one gets the odd token."""
    shorter, longer = (second, first) if len(first) > len(second) else (first, second)
    if len(first) + len(second) > room:
        del shorter[room // 2:]
        del longer[room - len(shorter):]


class Family:
    """A model file and what its family puts around the text."""

    def __init__(self, name, file, special, around, between, id_of=lambda piece: piece, pad=None,
                 pair_type=1):
        self.name = name
        self.processor = sentencepiece.SentencePieceProcessor(str(GOLDEN / name / file))
        self.special = special
        self.around = around
        self.between = between
        self.id_of = id_of
        self.pair_type = pair_type
        tokens = sorted(special, key=len, reverse=True)
        # The mask of XLM-RoBERTa takes the white space before it.
        written = [r"\s*" + re.escape(t) if t == "<mask>" else re.escape(t) for t in tokens]
        self.pattern = re.compile("(" + "|".join(written) + ")") if tokens else None

    def pieces(self, text):
        ids = []
        for i, part in enumerate(self.pattern.split(text) if self.pattern else [text]):
            if i % 2 == 1:
                ids.append(self.special[part.strip()])
            elif part:
                ids += [self.id_of(piece) for piece in self.processor.encode(part)]
        return ids

    def vector(self, text, pair=None, max_length=None):
        first, second = self.pieces(text), self.pieces(pair) if pair is not None else []
        special = self.between if pair is not None else self.around
        if max_length is not None:
            truncate(first, second, max_length - sum(len(part) for part in special))
        row = {"tokenizer": self.name, "text": text}
        if pair is None:
            row["ids"] = special[0] + first + special[1]
            row["type_ids"] = [0] * len(row["ids"])
        else:
            row["pair"] = pair
            row["ids"] = special[0] + first + special[1] + second + special[2]
            # Llama's second <s> is the pair's.
            before = special[0] + first + ([] if self.name == "llama-like" else special[1])
            row["type_ids"] = [0] * len(before)
            row["type_ids"] += [self.pair_type] * (len(row["ids"]) - len(before))
        if max_length is not None:
            row["max_length"] = max_length
        return row

    def long_vector(self, unit, times):
        def encode(text):
            return self.around[0] + self.pieces(text) + self.around[1]
        return long_vector(self.name, encode, unit, times)


def families():
    def size(name, file):
        return sentencepiece.SentencePieceProcessor(str(GOLDEN / name / file)).get_piece_size()
    mask = size("deberta-like", "spm.model")
    yield Family("deberta-like", "spm.model",
                 {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "[MASK]": mask},
                 ([1], [2]), ([1], [2], [2]))
    yield Family("xlmr-like", "sentencepiece.bpe.model",
                 {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3,
                  "<mask>": size("xlmr-like", "sentencepiece.bpe.model") + 1},
                 ([0], [2]), ([0], [2, 2], [2]), lambda piece: 3 if piece == 0 else piece + 1,
                 pair_type=0)
    yield Family("llama-like", "tokenizer.model", {"<unk>": 0, "<s>": 1, "</s>": 2},
                 ([1], []), ([1], [1], []))
    yield Family("suffix-like", "any.model", {}, ([], []), ([], [], []))
    yield Family("sentencepiece-test", "test_model.model", {}, ([], []), ([], [], []))
    yield Family("xlnet-excerpt", "spiece.model", {}, ([], []), ([], [], []))


def main(data):
    data = pathlib.Path(data)
    rng = random.Random(SEED)
    cases = [(text, None, None) for text in HARD_TEXTS + BLANK_TEXTS]
    cases += random_cases(rng, stable_characters(), 60, 50)
    known = read_rows(data / "tokenizers" / "vectors_sentencepiece.jsonl.gz")
    texts = [row["text"] for row in read_rows(data / "banking77" / "train.jsonl.gz")]
    train_all(texts[:4000] + [line for text in (HARD_TEXTS + BLANK_TEXTS) * 3
                              for line in text.replace("\0", "").split("\n")])
    (GOLDEN / "sentencepiece-test").mkdir(exist_ok=True)
    shutil.copyfile(data / "tokenizers" / "sentencepiece-test" / "test_model.model",
                    GOLDEN / "sentencepiece-test" / "test_model.model")
    new_ids = excerpt(data / "tokenizers" / "xlnet-base-cased" / "spiece.model",
                      [row["text"] for row in known] + [case[0] for case in cases])
    rows = []
    for row in known:
        xlnet = row["model"] == "xlnet-base-cased"
        rows.append({"tokenizer": "xlnet-excerpt" if xlnet else row["model"], "text": row["text"],
                     "ids": [new_ids[i] for i in row["ids"]] if xlnet else row["ids"]})
    write_rows(GOLDEN / "vectors_sentencepiece.jsonl", rows)

    rows = []
    for family in families():
        rows += [family.vector(*case) for case in cases]
        rows += [family.long_vector(*word) for word in LONG_WORDS]
    write_rows(GOLDEN / "vectors_sentencepiece_families.jsonl", rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
