#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/vectors_hard_unicode.jsonl: what Hugging Face's `tokenizers` makes
of difficult text, for tests/worker/text/tokenizers/families/wordpiece_test.cc.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tokenizers==0.23.3
    /tmp/reference/bin/python scripts/reference/wordpiece.py
"""

import pathlib
import random
import sys

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from tokenizer_texts import (HARD_TEXTS, LONG_WORDS, long_vector, random_cases, stable_characters, vector,
                             write_rows)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
OUTPUT = GOLDEN / "vectors_hard_unicode.jsonl"
SEED = 20261121
RANDOM_TEXTS = 220
RANDOM_PAIRS = 160


def build(folder, lowercase):
    vocabulary = str(GOLDEN / folder / "vocab.txt")
    tokenizer = Tokenizer(WordPiece.from_file(vocabulary, unk_token="[UNK]",
                                              max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                          strip_accents=None, lowercase=lowercase)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in
                                  ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return tokenizer


def main():
    rng = random.Random(SEED)
    groups = stable_characters()
    cases = [(text, None, None) for text in HARD_TEXTS]
    cases += random_cases(rng, groups, RANDOM_TEXTS, RANDOM_PAIRS, shortest=3)
    rows = []
    for folder, lowercase in (("bert-base-uncased", True), ("bert-base-cased", False)):
        tokenizer = build(folder, lowercase)
        rows += [vector(folder, tokenizer, *case) for case in cases]
        tokenizer.no_truncation()
        rows += [long_vector(folder, lambda text: tokenizer.encode(text).ids, *word)
                 for word in LONG_WORDS]
    write_rows(OUTPUT, rows)


if __name__ == "__main__":
    sys.exit(main())
