#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/vectors_hard_unicode.jsonl: what Hugging Face's `tokenizers` makes
of difficult text, for tests/worker/text/wordpiece_test.cc.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tokenizers==0.23.3
    /tmp/reference/bin/python scripts/reference/wordpiece.py

Random texts draw only on characters whose class has not changed since Unicode 3.2, because the
library's character tables are of another Unicode version than utf8proc's.
"""

import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
OUTPUT = GOLDEN / "vectors_hard_unicode.jsonl"
SEED = 20261121
RANDOM_TEXTS = 220
RANDOM_PAIRS = 160

HARD_TEXTS = [
    "",
    " \t\r\n\u00a0\u2003\u3000 ",
    "caf\u00e9 cafe\u0301 na\u00efve \u0130stanbul \u01c5 \u00df \u1e9e",
    "\u212bngstr\u00f6m \u2126 \u212a 5\u00b5m 5\u03bcm",
    "\u1e69 s\u0323\u0307 s\u0307\u0323 \u1ec7",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \u3131\u314f",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3001\u5168\u89d2\uff01 \uff21\uff22\uff23",
    "\uf900\ufa0e a\U00020000b a\U0002a700b a\U0002b81fb a\U0002f800b a\U0002b8aab",
    "zero\u200bwidth soft\u00adhyphen \ufeffbom right\u200fmark join\u200der",
    "nul\u0000byte bell\u0007 esc\u001b[0m del\u007f tab\tvt\u000bff\u000c nel\u0085end",
    "repl\ufffdaced private\ue000use noncharacter\ufdd0 last\uffff",
    "\u037e \u1fef \u0340a \u2024 \u2026 \u00bd \u2460",
    "semi;colon,dash\u2014em\u2013en\u2212minus $1,000.00 50% a+b=c <x> `q` ^_^ ~|",
    "\u00abquotes\u00bb \u201ccurly\u201d \u2018single\u2019 \u00bfqu\u00e9? \u00a1s\u00ed! \u00a7 \u00b6 \u00b7",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8\u05b4\u05d9\u05ea \u0627\u0644\u0639\u064e\u0631\u0628\u064a\u0629\u061f",
    "\u0395\u039b\u039b\u0397\u039d\u0399\u039a\u0386 \u03a3\u03a3 \u039f\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2 \u1f08\u03b8\u1fc6\u03bd\u03b1\u03b9",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0439 \u0451\u0436 \u040d \u0407\u0436\u0430\u043a",
    "\U0001f600 smile\U0001f600face \u2764\ufe0f \U0001f1e9\U0001f1ea \U0001f468\u200d\U0001f469",
    "\ufb01ne \ufb03x \u2168 \u33a5 \u1d2c\u02b0 x\u00b2",
    "[CLS] [SEP] [PAD] [MASK] [UNK] a[SEP]b [sep] [ SEP ] [[MASK]] [SEP][SEP",
    "##ing # ## un##able",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101,
    "\u00e9" * 100 + " " + "\u00e9" * 101 + " " + "e\u0301" * 100 + " " + "\u5b57" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "unaffable unwanted running UPPER MiXeD iPhone McDonald's don't I'LL we\u2019re",
    "http://example.org/a_b?c=d&e=f#g user@host.example C++ .NET x86_64-linux-gnu",
    "\U00010400\U00010428 \U0001d400\U0001d7d8 \U000e0041tag \U0010fffd",
    "\u0338\u0301leading marks a\u0338\u20dd",
]


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


def stable_characters():
    old = unicodedata.ucd_3_2_0
    groups = {}
    for code in range(0x20, 0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Cs", "Co") or old.category(character) != category:
            continue
        groups.setdefault(category, []).append(character)
    return groups


def random_text(rng, groups, words):
    common = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    text = []
    for _ in range(rng.randrange(1, words)):
        for _ in range(rng.randrange(1, 9)):
            if rng.random() < 0.6:
                text.append(rng.choice(common))
            else:
                text.append(rng.choice(groups[rng.choice(sorted(groups))]))
        text.append(rng.choice([" ", " ", " ", "\n", "", "-"]))
    return "".join(text)


def main():
    rng = random.Random(SEED)
    groups = stable_characters()
    cases = [(text, None, None) for text in HARD_TEXTS]
    cases += [(random_text(rng, groups, 8), None, None) for _ in range(RANDOM_TEXTS)]
    for _ in range(RANDOM_PAIRS):
        pair = random_text(rng, groups, 8) if rng.random() < 0.7 else None
        cases.append((random_text(rng, groups, 8), pair, rng.randrange(3, 24)))
    rows = []
    for folder, lowercase in (("bert-base-uncased", True), ("bert-base-cased", False)):
        tokenizer = build(folder, lowercase)
        for text, pair, max_length in cases:
            if max_length is None:
                tokenizer.no_truncation()
            else:
                tokenizer.enable_truncation(max_length, strategy="longest_first")
            encoding = tokenizer.encode(text, pair)
            row = {"tokenizer": folder, "text": text}
            if pair is not None:
                row["pair"] = pair
            if max_length is not None:
                row["max_length"] = max_length
            row["ids"] = encoding.ids
            row["type_ids"] = encoding.type_ids
            rows.append(json.dumps(row, separators=(",", ":")))
    OUTPUT.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(f"{OUTPUT.relative_to(ROOT)}: {len(rows)} rows")


if __name__ == "__main__":
    sys.exit(main())
